/* Tests of TLS records with OpenSSL's own TLS at the other end. */
#include "unit/wire/records_make.h"

#include <openssl/ssl.h>

#include "remote/wire/tls/cert.h"

static int
setup(void **state)
{
    const struct hed_cert_request ca = {HED_CERT_CA, "r", "test CA", NULL, 10, true};
    const struct hed_cert_request server = {HED_CERT_SERVER, "r", NULL, "localhost", 5, true};
    struct hed_cert_files files;
    struct hed_why why = {""};

    (void)state;
    enter_scratch();
    assert_int_equal(hed_cert_make(&ca, &files, &why), 0);
    assert_int_equal(hed_cert_make(&server, &files, &why), 0);
    return 0;
}

struct other {
    int fd;
    bool server;
    const char *suite;
    SSL_CTX *context;
    SSL *ssl;
    bool done;
};

static void *
be_other(void *arg)
{
    struct other *o = arg;

    o->context = SSL_CTX_new(TLS_method());
    (void)SSL_CTX_set_ciphersuites(o->context, o->suite);
    (void)SSL_CTX_set_num_tickets(o->context, 0);
    if (o->server) {
        (void)SSL_CTX_use_certificate_chain_file(o->context, "r/server-localhost.pem");
        (void)SSL_CTX_use_PrivateKey_file(o->context, "r/server-localhost.key", SSL_FILETYPE_PEM);
    }
    o->ssl = SSL_new(o->context);
    (void)SSL_set_fd(o->ssl, o->fd);
    o->done = o->server ? SSL_accept(o->ssl) == 1 && SSL_write(o->ssl, "R", 1) == 1
                        : SSL_connect(o->ssl) == 1;
    return NULL;
}

/* Both ends say something, with small and large records. */
static void
talk(SSL *ssl, struct hed_tls_end *t)
{
    static char sent[50000], got[50000];
    pthread_t thread;
    size_t n;

    for (size_t i = 0; i < sizeof sent; i++)
        sent[i] = byte_at(i);
    for (size_t size = 1; size < sizeof sent; size = size * 7 + 1) {
        struct flow f = {t, size, 1};

        assert_int_equal(SSL_write_ex(ssl, sent, size, &n), 1);
        assert_int_equal(read_bytes(t, size), 0);
        assert_int_equal(pthread_create(&thread, NULL, pour, &f), 0);
        for (size_t at = 0; at < size; at += n)
            assert_int_equal(SSL_read_ex(ssl, got + at, size - at, &n), 1);
        pthread_join(thread, NULL);
        assert_int_equal(f.err, 0);
        assert_memory_equal(got, sent, size);
    }
}

static void
openssl_is_the_other_end(void **state)
{
    const struct hed_tls files[2] = {
        {.cert = "r/server-localhost.pem", .key = "r/server-localhost.key", .token = true},
        {.ca = "r/ca.pem"},
    };

    for (int i = 0; i < 6; i++) {
        const bool server = i % 2;
        struct other o = {.server = server, .suite = suites[i / 2].name};
        struct hed_why why = {""};
        struct hed_tls_end *t;
        struct hed_conn_state moving;
        pthread_t thread;
        int fds[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        o.fd = fds[0];
        assert_int_equal(pthread_create(&thread, NULL, be_other, &o), 0);
        if (hed_tls_begin(fds[1], &hed_link_unix, &files[server], server ? "localhost" : NULL,
                          hed_socket_end(PATIENCE_MS), &t, &why) != 0)
            fail_msg("%s", why.text);
        pthread_join(thread, NULL);
        assert_true(o.done);
        talk(o.ssl, t);
        for (int k = 0; k < 4; k++) {
            assert_int_equal(SSL_key_update(o.ssl, k % 2 ? SSL_KEY_UPDATE_REQUESTED
                                                         : SSL_KEY_UPDATE_NOT_REQUESTED),
                             1);
            talk(o.ssl, t);
            assert_int_equal(hed_tls_suspend(t, &moving), 0);
            hed_tls_close(t, true);
            t = resume(fds[1], &moving, k % 2);
            talk(o.ssl, t);
        }
        if (server) {
            assert_int_equal(SSL_shutdown(o.ssl), 0);
            assert_int_equal(read_bytes(t, 1), HED_EIO);
        }
        hed_tls_close(t, true);
        assert_int_equal(SSL_read(o.ssl, &(char){0}, 1), 0);
        assert_int_equal(SSL_get_error(o.ssl, 0), SSL_ERROR_ZERO_RETURN);
        SSL_free(o.ssl);
        SSL_CTX_free(o.context);
        close(fds[0]);
        close(fds[1]);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(openssl_is_the_other_end, setup),
};

HED_UNIT_MAIN(tests)
