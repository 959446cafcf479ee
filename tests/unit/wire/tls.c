/* Tests of TLS: which peers are accepted, which are refused and told why, and that bytes under TLS
 * are as robust as bytes without. The certificates are made here, by remote/wire/tls/cert.h.
 */
#include "unit/wire/make.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include "base/str.h"
#include "remote/wire/tls/cert.h"

#ifdef HED_HAVE_OPENSSL

#include <openssl/err.h>
#include <openssl/ssl.h>

#define BIG (2u << 20)

/* ---- certificates ---------------------------------------------------------------------------- */

static void
make_cert(enum hed_cert_kind kind, const char *folder, const char *name, const char *hosts,
          int days)
{
    const struct hed_cert_request r = {kind, folder, name, hosts, days, true};
    struct hed_cert_files files;
    struct hed_why why = {""};

    if (hed_cert_make(&r, &files, &why))
        fail_msg("%s", why.text);
}

static int
setup(void **state)
{
    (void)state;
    enter_scratch();
    make_cert(HED_CERT_CA, "a", "test CA", NULL, 10);
    make_cert(HED_CERT_CA, "b", "other CA", NULL, 10);
    make_cert(HED_CERT_SERVER, "a", NULL, "localhost,127.0.0.1,::1", 5);
    make_cert(HED_CERT_CLIENT, "a", "alice", NULL, 5);
    make_cert(HED_CERT_CLIENT, "b", "alice", NULL, 5);
    return 0;
}

static struct hed_tls
files(const char *ca, const char *own)
{
    struct hed_tls t = {.insecure = false};

    if (ca)
        (void)snprintf(t.ca, sizeof t.ca, "%s/ca.pem", ca);
    if (own) {
        (void)snprintf(t.cert, sizeof t.cert, "%s.pem", own);
        (void)snprintf(t.key, sizeof t.key, "%s.key", own);
    }
    return t;
}

/* ---- both sides ------------------------------------------------------------------------------ */

struct meeting {
    int listener;
    struct hed_address at;
    struct hed_tls server, client;
    int server_err, client_err;
    struct hed_why server_why, client_why;
    struct pair pair;
};

static void *
serve(void *arg)
{
    struct meeting *m = arg;

    m->server_err = hed_conn_accept(accept_at(m->listener), &m->server, PATIENCE_MS,
                                    &m->pair.server, &m->server_why);
    return NULL;
}

static struct meeting
meet(const char *at, struct hed_tls server, struct hed_tls client)
{
    struct meeting m = {.at = address(at), .server = server, .client = client};
    pthread_t thread;

    m.listener = listen_at(&m.at);
    assert_int_equal(pthread_create(&thread, NULL, serve, &m), 0);
    m.client_err =
        hed_conn_open(&m.at, &m.client, &preface, PATIENCE_MS, &m.pair.client, &m.client_why);
    pthread_join(thread, NULL);
    close(m.listener);
    return m;
}

/* Neither side gets a connection, and each gives this reason; NULL for any reason. */
static void
expect_refusal(const char *at, struct hed_tls server, struct hed_tls client,
               const char *server_says, const char *client_says)
{
    const struct meeting m = meet(at, server, client);

    assert_null(m.pair.client);
    assert_null(m.pair.server);
    assert_true(m.client_err < 0 && m.server_err < 0);
    assert_true(m.client_err != HED_ETIME && m.server_err != HED_ETIME);
    if (server_says && !strstr(m.server_why.text, server_says))
        fail_msg("the server says: %s", m.server_why.text);
    if (client_says && !strstr(m.client_why.text, client_says))
        fail_msg("the client says: %s", m.client_why.text);
}

static struct pair
accept_both(const char *at, struct hed_tls server, struct hed_tls client)
{
    const struct meeting m = meet(at, server, client);

    if (m.client_err || m.server_err)
        fail_msg("client: %s; server: %s", m.client_why.text, m.server_why.text);
    return m.pair;
}

struct flow {
    struct hed_conn *conn;
    size_t n;
    int err;
};

static void *
pour(void *arg)
{
    struct flow *f = arg;
    char *p = calloc(1, f->n);
    struct iovec parts[3];

    for (size_t i = 0; i < f->n; i++)
        p[i] = (char)(i * 7 + (i >> 9));
    parts[0] = (struct iovec){p, 10};
    parts[1] = (struct iovec){NULL, 0};
    parts[2] = (struct iovec){p + 10, f->n - 10};
    f->err = hed_conn_writev(f->conn, parts, 3);
    free(p);
    return NULL;
}

static void
check_flow(struct hed_conn *from, struct hed_conn *to, size_t n, int timeout_ms)
{
    struct flow f = {from, n, 1};
    char *p = calloc(1, n);
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, pour, &f), 0);
    assert_int_equal(hed_conn_read(to, p, n, timeout_ms), 0);
    pthread_join(thread, NULL);
    assert_int_equal(f.err, 0);
    for (size_t i = 0; i < n; i++)
        if (p[i] != (char)(i * 7 + (i >> 9)))
            fail_msg("byte %zu of %zu differs", i, n);
    free(p);
}

/* ---- who gets through ------------------------------------------------------------------------ */

#define SERVER "a/server-localhost"

static void
both_with_certificates_talk(void **state)
{
    static const char *const places[] = {"tcp://127.0.0.1:0", "tcp://localhost:0"};

    assert_true(hed_tls_built());
    for (size_t i = 0; i < 2; i++) {
        const struct pair p =
            accept_both(places[i], files("a", SERVER), files("a", "a/client-alice"));
        char byte;

        assert_true(hed_conn_secure(p.client) && hed_conn_secure(p.server));
        assert_true(hed_conn_who(p.client)->certified && hed_conn_who(p.server)->certified);
        assert_string_equal(hed_conn_who(p.server)->name, "alice");
        assert_string_equal(hed_conn_who(p.client)->name, "localhost");
        check_flow(p.client, p.server, BIG, -1);
        check_flow(p.server, p.client, BIG, PATIENCE_MS);
        check_flow(p.server, p.client, 20, -1);
        assert_int_equal(hed_conn_read(p.client, &byte, 1, 50), HED_ETIME);
        assert_int_equal(hed_conn_read(p.client, &byte, 1, 0), HED_ETIME);
        check_flow(p.server, p.client, 20, -1);
        assert_false(hed_conn_gone(p.client));
        hed_conn_close(p.server);
        assert_int_equal(hed_conn_read(p.client, &byte, 1, -1), HED_EIO);
        assert_true(hed_conn_gone(p.client));
        hed_conn_close(p.client);
    }
}

static void
a_token_does_instead_of_a_certificate(void **state)
{
    struct hed_tls with_ca = files("a", SERVER);
    struct hed_tls without_ca = files(NULL, SERVER);

    with_ca.token = without_ca.token = true;

    struct pair p = accept_both("tcp://127.0.0.1:0", with_ca, files("a", NULL));

    assert_false(hed_conn_who(p.server)->certified);
    assert_true(hed_conn_who(p.client)->certified);
    assert_string_equal(hed_conn_who(p.server)->name, "");
    close_pair(p);
    p = accept_both("tcp://127.0.0.1:0", with_ca, files("a", "a/client-alice"));
    assert_true(hed_conn_who(p.server)->certified);
    close_pair(p);

    /* Without a CA a certificate proves nothing. */
    p = accept_both("tcp://127.0.0.1:0", without_ca, files("a", "b/client-alice"));
    assert_false(hed_conn_who(p.server)->certified);
    assert_string_equal(hed_conn_who(p.server)->name, "");
    close_pair(p);

    /* A wrong certificate is not made good by a token that might follow. */
    expect_refusal("tcp://127.0.0.1:0", with_ca, files("a", "b/client-alice"), "is not accepted",
                   NULL);
}

static void
wrong_authorities_are_refused(void **state)
{
    expect_refusal("tcp://127.0.0.1:0", files("a", SERVER), files("b", "a/client-alice"),
                   "refused by", "the server's certificate is not accepted");
    expect_refusal("tcp://127.0.0.1:0", files("a", SERVER), files("a", "b/client-alice"),
                   "the client's certificate is not accepted", "refused by the server");
}

static void
no_client_certificate_is_refused(void **state)
{
    expect_refusal("tcp://127.0.0.1:0", files("a", SERVER), files("a", NULL),
                   "the client showed no certificate", "refused by the server");
}

static void
another_host_is_refused(void **state)
{
    make_cert(HED_CERT_SERVER, "a", NULL, "other.example,10.1.2.3", 5);
    expect_refusal("tcp://127.0.0.1:0", files("a", "a/server-other.example"),
                   files("a", "a/client-alice"), NULL, "certificate is not for 127.0.0.1");
    expect_refusal("tcp://localhost:0", files("a", "a/server-other.example"),
                   files("a", "a/client-alice"), NULL, "certificate is not for localhost");
}

static void
expired_certificates_are_refused(void **state)
{
    make_cert(HED_CERT_SERVER, "a", NULL, "127.0.0.1", -1);
    make_cert(HED_CERT_CLIENT, "a", "bob", NULL, -1);
    expect_refusal("tcp://127.0.0.1:0", files("a", "a/server-127.0.0.1"),
                   files("a", "a/client-alice"), NULL, "expired");
    expect_refusal("tcp://127.0.0.1:0", files("a", SERVER), files("a", "a/client-bob"), "expired",
                   "refused by the server");
}

static void
certificates_are_good_for_one_side_only(void **state)
{
    expect_refusal("tcp://127.0.0.1:0", files("a", "a/client-alice"), files("a", "a/client-alice"),
                   NULL, "is not accepted");
    expect_refusal("tcp://127.0.0.1:0", files("a", SERVER), files("a", SERVER), "is not accepted",
                   "refused by the server");
}

/* ---- files that will not do ------------------------------------------------------------------ */

static void
bad_files_are_named(void **state)
{
    struct hed_tls t = files("a", "a/client-alice");

    make_cert(HED_CERT_CLIENT, "a", "carol", NULL, 5);
    close(open("empty", O_CREAT | O_WRONLY, 0600));
    expect_refusal("tcp://127.0.0.1:0", files("a", SERVER), files("nowhere", NULL), NULL,
                   "CA nowhere/ca.pem: No such file");
    expect_refusal("tcp://127.0.0.1:0", files("a", SERVER), files("a", "a"), NULL,
                   "certificate a.pem: No");
    (void)hed_str_copy(t.key, sizeof t.key, "a/client-carol.key");
    expect_refusal("tcp://127.0.0.1:0", files("a", SERVER), t, NULL,
                   "not the key of a/client-alice.pem");
    (void)hed_str_copy(t.key, sizeof t.key, "");
    expect_refusal("tcp://127.0.0.1:0", files("a", SERVER), t, NULL, "set both");
    t = files("a", NULL);
    (void)hed_str_copy(t.ca, sizeof t.ca, "empty");
    expect_refusal("tcp://127.0.0.1:0", files("a", SERVER), t, NULL, "empty: no certificate");
    (void)hed_str_copy(t.ca, sizeof t.ca, ".");
    expect_refusal("tcp://127.0.0.1:0", files("a", SERVER), t, NULL, "not a regular file");
    expect_refusal("tcp://127.0.0.1:0", files(NULL, SERVER), files("a", NULL),
                   "a CA file or a token", NULL);
    expect_refusal("tcp://127.0.0.1:0", files("a", NULL), files("a", NULL),
                   "the server has no certificate", NULL);
}

/* ---- peers that speak something else --------------------------------------------------------- */

static void
an_older_tls_is_refused(void **state)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    struct meeting m = {.at = address("tcp://127.0.0.1:0"), .server = files("a", SERVER)};
    struct hed_tls plain = insecure;
    pthread_t thread;

    m.listener = listen_at(&m.at);
    assert_int_equal(pthread_create(&thread, NULL, serve, &m), 0);
    assert_int_equal(hed_conn_open(&m.at, &plain, &preface, PATIENCE_MS, &m.pair.client, NULL), 0);
    SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION);

    SSL *ssl = SSL_new(ctx);

    SSL_set_fd(ssl, hed_conn_fd(m.pair.client));
    assert_true(SSL_connect(ssl) <= 0);
    pthread_join(thread, NULL);
    assert_int_equal(m.server_err, HED_EVERSION);
    assert_non_null(strstr(m.server_why.text, "does not speak TLS 1.3"));
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    hed_conn_close(m.pair.client);
    close(m.listener);
}

static void
plain_text_is_refused_at_once(void **state)
{
    static const char *const words[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                        "HEDDLE1\nHEDDLE1\nHEDDLE1\nHEDDLE1\n"};

    for (size_t i = 0; i < 2; i++) {
        struct meeting m = {.at = address("tcp://127.0.0.1:0"), .server = files("a", SERVER)};
        pthread_t thread;

        m.listener = listen_at(&m.at);
        assert_int_equal(pthread_create(&thread, NULL, serve, &m), 0);
        assert_int_equal(
            hed_conn_open(&m.at, &insecure, &preface, PATIENCE_MS, &m.pair.client, NULL), 0);
        assert_int_equal(hed_conn_write(m.pair.client, words[i], strlen(words[i])), 0);
        pthread_join(thread, NULL);
        assert_int_equal(m.server_err, HED_EFORMAT);
        assert_non_null(strstr(m.server_why.text, "the client does not speak TLS"));
        hed_conn_close(m.pair.client);
        close(m.listener);
    }
}

/* A part of a handshake, and then nothing. */
static void
a_peer_that_does_not_finish_is_left(void **state)
{
    const struct hed_tls server = files("a", SERVER);
    const struct hed_tls client = files("a", "a/client-alice");
    struct hed_address at = address("tcp://127.0.0.1:0");
    const int listener = listen_at(&at);
    struct hed_conn *c = NULL;
    struct hed_conn *s = NULL;
    struct hed_why why = {""};

    /* Nothing accepts, so nothing answers. */
    assert_int_equal(hed_conn_open(&at, &client, &preface, 300, &c, &why), HED_ETIME);
    assert_non_null(strstr(why.text, "did not finish"));
    close(accept_at(listener));

    /* The beginning of a record, and no more. */
    assert_int_equal(hed_conn_open(&at, &insecure, &preface, PATIENCE_MS, &c, NULL), 0);
    assert_int_equal(hed_conn_write(c, "\x16\x03\x01\x01", 4), 0);
    assert_int_equal(hed_conn_accept(accept_at(listener), &server, 300, &s, &why), HED_ETIME);
    assert_non_null(strstr(why.text, "the client did not finish"));
    hed_conn_close(c);

    /* And one that hangs up. */
    assert_int_equal(hed_conn_open(&at, &insecure, &preface, PATIENCE_MS, &c, NULL), 0);
    hed_conn_close(c);
    assert_int_equal(hed_conn_accept(accept_at(listener), &server, 300, &s, &why), HED_EIO);
    assert_non_null(strstr(why.text, "hung up"));
    close(listener);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void
short_and_interrupted_calls_change_nothing(void **state)
{
    hed_conn_kernel(&bad_kernel);
    bad.most = 5;
    bad.interrupt = 3;

    const struct pair p =
        accept_both("tcp://127.0.0.1:0", files("a", SERVER), files("a", "a/client-alice"));

    check_flow(p.client, p.server, 50001, -1);
    check_flow(p.server, p.client, 50001, PATIENCE_MS);
    good_again(NULL);
    close_pair(p);
}

static void
a_cut_line_is_an_error(void **state)
{
    char bytes[2000] = {0};

    for (size_t cut = 0; cut < 3000; cut += 777) {
        const struct pair p =
            accept_both("tcp://127.0.0.1:0", files("a", SERVER), files("a", "a/client-alice"));

        hed_conn_kernel(&bad_kernel);
        bad.cut = true;
        bad.left = cut;
        if (hed_conn_write(p.client, bytes, sizeof bytes) == 0)
            assert_int_equal(hed_conn_read(p.server, bytes, sizeof bytes, PATIENCE_MS), HED_EIO);
        assert_int_equal(hed_conn_read(p.server, bytes, sizeof bytes, PATIENCE_MS), HED_EIO);
        good_again(NULL);
        close_pair(p);
    }
}

/* Each side reads in one thread and writes in another, as a channel does that other threads
 * flush. */
static void
a_reader_and_a_writer_do_not_disturb_each_other(void **state)
{
    const struct pair p =
        accept_both("tcp://127.0.0.1:0", files("a", SERVER), files("a", "a/client-alice"));
    struct flow there = {p.client, BIG, 1};
    struct flow back = {p.server, BIG, 1};
    pthread_t threads[2];
    char *bytes = malloc(BIG);

    assert_int_equal(pthread_create(&threads[0], NULL, pour, &there), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, pour, &back), 0);
    /* Alternately, so that both directions are full for a while. */
    for (size_t i = 0; i < BIG; i += BIG / 64) {
        assert_int_equal(hed_conn_read(p.client, bytes, BIG / 64, PATIENCE_MS), 0);
        assert_int_equal(hed_conn_read(p.server, bytes, BIG / 64, PATIENCE_MS), 0);
    }
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert_int_equal(there.err, 0);
    assert_int_equal(back.err, 0);
    free(bytes);
    close_pair(p);
}

/* ---- the program has OpenSSL, too ------------------------------------------------------------ */

static void
the_program_s_errors_are_left_alone(void **state)
{
    ERR_clear_error();
    ERR_raise(ERR_LIB_USER, 77);

    ERR_raise_data(ERR_LIB_USER, 78, "the %dnd", 2);

    const unsigned long mine = ERR_peek_error();
    const unsigned long last = ERR_peek_last_error();
    const struct pair p =
        accept_both("tcp://127.0.0.1:0", files("a", SERVER), files("a", "a/client-alice"));
    char byte;

    check_flow(p.client, p.server, 1000, -1);
    assert_int_equal(hed_conn_read(p.client, &byte, 1, 20), HED_ETIME);
    expect_refusal("tcp://127.0.0.1:0", files("a", SERVER), files("b", NULL), NULL,
                   "is not accepted");
    close_pair(p);
    assert_true(ERR_peek_error() == mine);
    assert_true(ERR_peek_last_error() == last);
    ERR_clear_error();
}

/* ---- certificates ---------------------------------------------------------------------------- */

static void
certificates_say_what_they_are(void **state)
{
    struct hed_cert_facts f;
    struct hed_why why = {""};
    struct stat st;

    assert_int_equal(hed_cert_read("a/ca.pem", &f, &why), 0);
    assert_string_equal(f.subject, "CN=test CA");
    assert_string_equal(f.issuer, "CN=test CA");
    assert_string_equal(f.use, "CA");
    assert_true(f.days_left == 9 || f.days_left == 10);
    assert_int_equal(strlen(f.fingerprint), 95);
    assert_int_equal(hed_cert_read(SERVER ".pem", &f, &why), 0);
    assert_string_equal(f.hosts, "localhost,127.0.0.1,::1");
    assert_string_equal(f.use, "server");
    assert_int_equal(hed_cert_read("a/client-alice.pem", &f, &why), 0);
    assert_string_equal(f.use, "client");
    assert_string_equal(f.hosts, "");

    /* A certificate does not outlive its CA. */
    make_cert(HED_CERT_CLIENT, "a", "long", NULL, 5000);
    assert_int_equal(hed_cert_read("a/client-long.pem", &f, &why), 0);
    assert_true(f.days_left <= 10);
    make_cert(HED_CERT_CLIENT, "a", "old", NULL, -3);
    assert_int_equal(hed_cert_read("a/client-old.pem", &f, &why), 0);
    assert_true(f.days_left < 0);
    assert_int_equal(hed_cert_read("a/ca.key", &f, &why), HED_EFORMAT);
    assert_int_equal(hed_cert_read("a", &f, &why), HED_EINVAL);
    assert_int_equal(hed_cert_read("none", &f, &why), HED_ENOTFOUND);
    assert_int_equal(stat("a/client-alice.key", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(stat("a", &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
}

static void
requests_that_make_no_sense_are_refused(void **state)
{
    static const struct {
        struct hed_cert_request r;
        int err;
    } rows[] = {
        {{HED_CERT_CA, "a", "x", NULL, 1, false}, HED_EEXIST},
        {{HED_CERT_CLIENT, "a", "alice", NULL, 1, false}, HED_EEXIST},
        {{HED_CERT_CA, "c", "", NULL, 1, false}, HED_EINVAL},
        {{HED_CERT_CA, "c", "a\nb", NULL, 1, false}, HED_EINVAL},
        {{HED_CERT_CA, "c", "x", NULL, 0, false}, HED_ERANGE},
        {{HED_CERT_CA, "c", "x", NULL, 99999, false}, HED_ERANGE},
        {{HED_CERT_CLIENT, "c", "x", NULL, 1, false}, HED_ENOTFOUND},
        {{HED_CERT_CLIENT, "a", "../x", NULL, 1, false}, HED_EINVAL},
        {{HED_CERT_CLIENT, "a", ".x", NULL, 1, false}, HED_EINVAL},
        {{HED_CERT_CLIENT, "a", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
          NULL, 1, false},
         HED_ELIMIT},
        {{HED_CERT_SERVER, "a", NULL, "", 1, false}, HED_EINVAL},
        {{HED_CERT_SERVER, "a", NULL, "x,", 1, false}, HED_EINVAL},
        {{HED_CERT_SERVER, "a", NULL, "x,,y", 1, false}, HED_EINVAL},
        {{HED_CERT_SERVER, "a", NULL, "x,DNS:y", 1, false}, HED_EINVAL},
        {{HED_CERT_SERVER, "a", NULL, "x/y", 1, false}, HED_EINVAL},
        {{HED_CERT_SERVER, "a", NULL, "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", 1, false},
         HED_ELIMIT},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hed_cert_files f;
        struct hed_why why = {""};

        if (hed_cert_make(&rows[i].r, &f, &why) != rows[i].err || !why.text[0])
            fail_msg("row %zu: %s", i, why.text);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(both_with_certificates_talk, setup),
    cmocka_unit_test_setup(a_token_does_instead_of_a_certificate, setup),
    cmocka_unit_test_setup(wrong_authorities_are_refused, setup),
    cmocka_unit_test_setup(no_client_certificate_is_refused, setup),
    cmocka_unit_test_setup(another_host_is_refused, setup),
    cmocka_unit_test_setup(expired_certificates_are_refused, setup),
    cmocka_unit_test_setup(certificates_are_good_for_one_side_only, setup),
    cmocka_unit_test_setup(bad_files_are_named, setup),
    cmocka_unit_test_setup(an_older_tls_is_refused, setup),
    cmocka_unit_test_setup(plain_text_is_refused_at_once, setup),
    cmocka_unit_test_setup(a_peer_that_does_not_finish_is_left, setup),
    cmocka_unit_test_setup_teardown(short_and_interrupted_calls_change_nothing, setup, good_again),
    cmocka_unit_test_setup_teardown(a_cut_line_is_an_error, setup, good_again),
    cmocka_unit_test_setup(a_reader_and_a_writer_do_not_disturb_each_other, setup),
    cmocka_unit_test_setup(the_program_s_errors_are_left_alone, setup),
    cmocka_unit_test_setup(certificates_say_what_they_are, setup),
    cmocka_unit_test_setup(requests_that_make_no_sense_are_refused, setup),
};

HED_UNIT_MAIN(tests)

#endif
