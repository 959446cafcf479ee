/* The handshake of TLS 1.3 over a connected socket, with OpenSSL. records.c does the rest. See
 * socket.h.
 *
 * The program that heddle is loaded into may use OpenSSL too. So everything here is in a library
 * context of its own, the thread's queue of errors is left as it was found, and nothing is ever
 * cleaned up for the process.
 *
 * Invariants:
 * 1. OpenSSL never waits and touches the socket only through our BIO, which asks the kernel with
 *    MSG_DONTWAIT and notes in `blocked` what it would have had to wait for. It takes no byte
 *    beyond the handshake from the socket.
 * 2. `blocked` decides whether to try again, not SSL_get_error(), which also looks at errors that
 *    the program left in the queue.
 * 3. OpenSSL checks the peer's certificate in the handshake, against the CA file alone; no file of
 *    the system is a trust anchor.
 */
#ifdef HED_HAVE_OPENSSL

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "remote/wire/conn.h"
#include "remote/wire/socket.h"
#include "remote/wire/tls/password.h"

#define CIPHERS "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"

struct handshake {
    int fd; /* the connection's, like link */
    const struct hed_link *link;
    bool client;
    OSSL_LIB_CTX *library; /* not owned if it was prepared */
    SSL_CTX *context;
    SSL *ssl;
    short blocked;              /* POLLIN, POLLOUT: what the last call would have waited for */
    unsigned long reason;       /* OpenSSL's reason why it broke; 0 if the peer hung up */
    struct hed_conn_state done; /* what it leads to */
};

/* ---- the socket, as OpenSSL sees it ---------------------------------------------------------- */

static int
bio_read(BIO *b, char *p, int n)
{
    struct handshake *t = BIO_get_data(b);
    const ssize_t got = n > 0 ? hed_socket_recv(t->fd, p, (size_t)n, MSG_DONTWAIT) : 0;

    BIO_clear_retry_flags(b);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        BIO_set_retry_read(b);
        t->blocked = POLLIN;
    }
    return (int)got;
}

static int
bio_write(BIO *b, const char *p, int n)
{
    struct handshake *t = BIO_get_data(b);
    struct iovec part = {.iov_base = (void *)p, .iov_len = n > 0 ? (size_t)n : 0};
    const struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    const ssize_t sent = hed_socket_sendmsg(t->fd, &m, MSG_DONTWAIT);

    BIO_clear_retry_flags(b);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
        BIO_set_retry_write(b);
        t->blocked = POLLOUT;
    }
    return (int)sent;
}

static long
bio_ctrl(BIO *b, int what, long n, void *p)
{
    (void)b, (void)n, (void)p;
    return what == BIO_CTRL_FLUSH; /* nothing is buffered */
}

static BIO_METHOD *method;
static pthread_once_t method_once = PTHREAD_ONCE_INIT;

static void
make_method(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "heddle");

    if (m && BIO_meth_set_read(m, bio_read) && BIO_meth_set_write(m, bio_write) &&
        BIO_meth_set_ctrl(m, bio_ctrl))
        method = m;
}

/* ---- the thread's queue of errors ------------------------------------------------------------ */

#define ERRORS 16 /* as many as OpenSSL keeps */

struct errors {
    size_t count;
    struct {
        unsigned long code;
        int line;
        char file[64], function[64], text[128];
    } all[ERRORS];
};

/* The handshake clears the queue. Reading and writing only add to it, and marks undo that. */
static void
errors_save(struct errors *e)
{
    const char *file, *function, *text;
    int flags = 0;

    for (e->count = 0; e->count < ERRORS; e->count++) {
        e->all[e->count].code =
            ERR_get_error_all(&file, &e->all[e->count].line, &function, &text, &flags);
        if (!e->all[e->count].code)
            break;
        (void)hed_str_copy(e->all[e->count].file, sizeof e->all->file, file);
        (void)hed_str_copy(e->all[e->count].function, sizeof e->all->function, function);
        (void)hed_str_copy(e->all[e->count].text, sizeof e->all->text,
                           flags & ERR_TXT_STRING ? text : "");
    }
}

static void
errors_restore(const struct errors *e)
{
    ERR_clear_error();
    for (size_t i = 0; i < e->count; i++) {
        const unsigned long code = e->all[i].code;

        ERR_new();
        ERR_set_debug(e->all[i].file, e->all[i].line, e->all[i].function);
        if (e->all[i].text[0])
            ERR_set_error(ERR_GET_LIB(code), ERR_GET_REASON(code), "%s", e->all[i].text);
        else
            ERR_set_error(ERR_GET_LIB(code), ERR_GET_REASON(code), NULL);
    }
}

/* ---- one step, and waiting between steps ----------------------------------------------------- */

/* Handshakes, or reads the byte that a server says first. Waits for both. */
static int
run_step(struct handshake *t, char *byte, uint64_t end)
{
    for (;;) {
        const unsigned long before = ERR_peek_last_error();

        t->blocked = 0;
        (void)ERR_set_mark();

        const int r = byte        ? SSL_read(t->ssl, byte, 1)
                      : t->client ? SSL_connect(t->ssl)
                                  : SSL_accept(t->ssl);

        if (r <= 0 && !t->reason && ERR_peek_last_error() != before)
            t->reason = ERR_peek_last_error();
        (void)ERR_pop_to_mark();
        if (r > 0)
            return 0;

        const int err = t->blocked ? hed_socket_wait(t->fd, t->blocked, end, t->link) : HED_EIO;

        if (err)
            return err;
    }
}

/* ---- what the handshake leads to ------------------------------------------------------------- */

static bool
read_hex(const char *text, uint8_t *out, size_t room)
{
    const size_t n = strlen(text) / 2;

    for (size_t i = 0; i < n && n <= room; i++) {
        const char digits[3] = {text[2 * i], text[2 * i + 1], '\0'};
        char *end;

        out[i] = (uint8_t)strtoul(digits, &end, 16);
        if (*end)
            return false;
    }
    return n > 0 && n <= room;
}

/* OpenSSL tells the secrets in the form of a log: "NAME RANDOM SECRET". */
static void
note_secret(const SSL *ssl, const char *line)
{
    static const char client[] = "CLIENT_TRAFFIC_SECRET_0 ", server[] = "SERVER_TRAFFIC_SECRET_0 ";
    struct handshake *t = SSL_get_app_data(ssl);
    const bool is_client = strncmp(line, client, sizeof client - 1) == 0;
    const char *secret = strrchr(line, ' ');

    if (!secret || (!is_client && strncmp(line, server, sizeof server - 1) != 0))
        return;
    if (!read_hex(secret + 1, is_client == t->client ? t->done.write.bytes : t->done.read.bytes,
                  sizeof t->done.read.bytes))
        hed_bug("a secret of TLS that is none");
}

/* ---- files, and whom to trust ---------------------------------------------------------------- */

static int
check_file(const char *what, const char *path, bool secret, struct hed_why *why)
{
    struct stat st;

    if (access(path, R_OK) != 0 || stat(path, &st) != 0) {
        hed_why_set(why, "%s %s: %s", what, path, strerror(errno));
        return hed_err_from_errno(errno);
    }
    if (!S_ISREG(st.st_mode)) {
        hed_why_set(why, "%s %s: not a regular file", what, path);
        return HED_EINVAL;
    }
    if (secret && st.st_mode & (S_IROTH | S_IWOTH))
        hed_warn(WIRE, "%s: every user can read this key; set its mode to 0600", path);
    return 0;
}

static int
load_own_certificate(struct handshake *t, const struct hed_tls *tls, struct hed_why *why)
{
    int err = check_file("certificate", tls->cert, false, why);

    if (!err)
        err = check_file("key", tls->key, true, why);
    if (err)
        return err;
    if (SSL_CTX_use_certificate_chain_file(t->context, tls->cert) != 1) {
        hed_why_set(why, "%s: not a certificate in PEM", tls->cert);
        return HED_EFORMAT;
    }
    if (SSL_CTX_use_PrivateKey_file(t->context, tls->key, SSL_FILETYPE_PEM) != 1) {
        hed_why_set(why, "%s: not a key in PEM without a password, or not the key of %s", tls->key,
                    tls->cert);
        return HED_EFORMAT;
    }
    return 0;
}

static int
load_files(struct handshake *t, const struct hed_tls *tls, struct hed_why *why)
{
    int err = 0;

    if (!tls->cert[0] != !tls->key[0]) {
        hed_why_set(why, "a certificate needs its key, and a key its certificate; set both");
        return HED_EINVAL;
    }
    if (!t->client && (!tls->cert[0] || (!tls->ca[0] && !tls->token))) {
        hed_why_set(why, "a server needs a certificate, and a CA file or a token for its clients");
        return HED_EINVAL;
    }
    if (tls->ca[0]) {
        err = check_file("CA", tls->ca, false, why);
        if (!err && SSL_CTX_load_verify_locations(t->context, tls->ca, NULL) != 1) {
            hed_why_set(why, "%s: no certificate in PEM", tls->ca);
            err = HED_EFORMAT;
        }
    }
    return err || !tls->cert[0] ? err : load_own_certificate(t, tls, why);
}

/* The context of a server that cannot open its files any more; see hed_tls_prepare(). */
static struct {
    const struct hed_tls *tls; /* NULL: there is none */
    OSSL_LIB_CTX *library;
    SSL_CTX *context;
} prepared;

static int
make_context(struct handshake *t, const struct hed_tls *tls, struct hed_why *why)
{
    int verify = SSL_VERIFY_PEER;

    pthread_once(&method_once, make_method);
    t->library = method ? OSSL_LIB_CTX_new() : NULL;
    t->context = t->library ? SSL_CTX_new_ex(t->library, NULL, TLS_method()) : NULL;
    if (!t->context || !SSL_CTX_set_min_proto_version(t->context, TLS1_3_VERSION) ||
        !SSL_CTX_set_max_proto_version(t->context, TLS1_3_VERSION) ||
        !SSL_CTX_set_ciphersuites(t->context, CIPHERS)) {
        hed_why_set(why, "OpenSSL does not support TLS 1.3 here");
        return HED_ENOTSUP;
    }
    if (!t->client && !tls->ca[0])
        verify = SSL_VERIFY_NONE; /* only the token counts, as load_files() has checked */
    else if (!t->client && !tls->token)
        verify |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    SSL_CTX_set_verify(t->context, verify, NULL);
    SSL_CTX_set_security_level(t->context, 2);
    SSL_CTX_set_default_passwd_cb(t->context, hed_tls_no_password);
    SSL_CTX_set_session_cache_mode(t->context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(t->context, 0); /* sessions are not resumed */
    SSL_CTX_set_mode(t->context, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_read_ahead(t->context, 0); /* what follows the handshake is not for OpenSSL */
    SSL_CTX_set_keylog_callback(t->context, note_secret);
    return load_files(t, tls, why);
}

static bool
use_prepared(struct handshake *t, const struct hed_tls *tls)
{
    if (t->client || !prepared.tls || prepared.tls != tls || !SSL_CTX_up_ref(prepared.context))
        return false;
    t->library = prepared.library;
    t->context = prepared.context;
    return true;
}

int
hed_tls_prepare(const struct hed_tls *tls, struct hed_why *why)
{
    struct handshake t = {.client = false};
    struct errors errors;

    errors_save(&errors);

    const int err = make_context(&t, tls, why);

    if (err) {
        SSL_CTX_free(t.context);
        OSSL_LIB_CTX_free(t.library);
    } else {
        prepared.library = t.library;
        prepared.context = t.context;
        prepared.tls = tls;
    }
    errors_restore(&errors);
    return err;
}

/* The certificate must be for this host: by its address if it is one, else by its name. */
static bool
require_host(SSL *ssl, const char *host)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    char number[INET6_ADDRSTRLEN];
    unsigned char at[16];
    const size_t n = strcspn(host, "%");

    if (n < sizeof number) {
        memcpy(number, host, n);
        number[n] = '\0';
        if (inet_pton(AF_INET, number, at) == 1 || inet_pton(AF_INET6, number, at) == 1)
            return X509_VERIFY_PARAM_set1_ip_asc(param, number) == 1;
    }
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                               X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    return X509_VERIFY_PARAM_set1_host(param, host, 0) == 1 &&
           SSL_set_tlsext_host_name(ssl, host) == 1;
}

static int
make_session(struct handshake *t, const char *host)
{
    BIO *b = BIO_new_ex(t->library, method);

    t->ssl = SSL_new(t->context);
    if (!b || !t->ssl || (host && !require_host(t->ssl, host))) {
        BIO_free(b);
        return HED_ENOMEM;
    }
    BIO_set_data(b, t);
    BIO_set_init(b, 1);
    SSL_set_bio(t->ssl, b, b); /* takes ownership */
    (void)SSL_set_app_data(t->ssl, t);
    return 0;
}

/* ---- why it did not work --------------------------------------------------------------------- */

/* Was the certificate issued by a CA that we do not know? */
static bool
is_unknown_issuer(long verify)
{
    return verify == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
           verify == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
           verify == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
           verify == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT;
}

static int
explain_certificate(const struct handshake *t, const char *host, struct hed_why *why)
{
    const long verify = SSL_get_verify_result(t->ssl);

    if (verify == X509_V_ERR_HOSTNAME_MISMATCH || verify == X509_V_ERR_IP_ADDRESS_MISMATCH)
        hed_why_set(why,
                    "the server's certificate is not for %s (`heddle cert show` says for which "
                    "hosts it is)",
                    host);
    else
        hed_why_set(why, "the %s's certificate is not accepted: %s%s",
                    t->client ? "server" : "client", X509_verify_cert_error_string(verify),
                    !is_unknown_issuer(verify) ? ""
                    : t->client                ? " (is tls_ca the CA that made it?)"
                                               : " (is --tls-ca the CA that made it?)");
    return HED_EACCESS;
}

/* Explains a broken session to a person. */
static int
explain_broken(const struct handshake *t, int err, const char *host, struct hed_why *why)
{
    const char *peer = t->client ? "server" : "client";
    const char *text = ERR_reason_error_string(t->reason);

    if (err == HED_ETIME) {
        hed_why_set(why, "the %s did not finish the TLS handshake in time (does it use TLS?)",
                    peer);
        return err;
    }
    switch (t->reason && !ERR_SYSTEM_ERROR(t->reason) ? ERR_GET_REASON(t->reason) : 0) {
    case 0:
        hed_why_set(why, "the %s hung up during the TLS handshake (does it use TLS?%s)", peer,
                    t->client ? " Its log may say why" : "");
        return HED_EIO;
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
        return explain_certificate(t, host, why);
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
        hed_why_set(why, "the client showed no certificate");
        return HED_EACCESS;
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    case SSL_R_NO_PROTOCOLS_AVAILABLE:
        hed_why_set(why, "the %s does not speak TLS 1.3", peer);
        return HED_EVERSION;
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_UNEXPECTED_MESSAGE:
    case SSL_R_BAD_RECORD_TYPE:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_RECORD_LENGTH_MISMATCH:
        hed_why_set(why, "the %s does not speak TLS", peer);
        return HED_EFORMAT;
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
        hed_why_set(why, "refused by the %s: our certificate was not issued by a CA that it knows",
                    peer);
        return HED_EACCESS;
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
        hed_why_set(why, "refused by the %s: our certificate has expired (`heddle cert show`)",
                    peer);
        return HED_EACCESS;
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        hed_why_set(why, "refused by the %s: it wants a certificate (tls_cert, tls_key)", peer);
        return HED_EACCESS;
    default:
        break;
    }
    /* Reasons from SSL_AD_REASON_OFFSET on are alerts that the peer sent. */
    const bool alert = ERR_GET_REASON(t->reason) >= SSL_AD_REASON_OFFSET;

    hed_why_set(why, "%s%s: %s", alert ? "refused by the " : "no TLS with the ", peer,
                text ? text : "unknown reason");
    return alert ? HED_EACCESS : HED_EIO;
}

/* ---- for socket.h ---------------------------------------------------------------------------- */

bool
hed_tls_built(void)
{
    return true;
}

/* Two certificates are of one client if the same authority gave them the same name. */
static bool
note_subject(X509 *peer, struct hed_conn_who *who)
{
    uint8_t names[2][32];
    unsigned n = sizeof names[0];

    if (!X509_digest(peer, EVP_sha256(), who->fingerprint, &n))
        return false;
    if (X509_NAME_entry_count(X509_get_subject_name(peer)) == 0) {
        memcpy(who->subject, who->fingerprint, sizeof who->subject);
        return true;
    }
    return X509_NAME_digest(X509_get_issuer_name(peer), EVP_sha256(), names[0], &n) &&
           X509_NAME_digest(X509_get_subject_name(peer), EVP_sha256(), names[1], &n) &&
           EVP_Digest(names, sizeof names, who->subject, &n, EVP_sha256(), NULL);
}

/* Fails rather than take a client with a certificate for one without: such a one may be let in for
 * another reason. */
static int
note_peer(struct handshake *t, struct hed_why *why)
{
    struct hed_conn_who *who = &t->done.who;
    X509 *peer = SSL_get0_peer_certificate(t->ssl);

    if (!peer || !(SSL_get_verify_mode(t->ssl) & SSL_VERIFY_PEER))
        return 0;
    if (SSL_get_verify_result(t->ssl) != X509_V_OK || !note_subject(peer, who)) {
        hed_why_set(why, "the %s's certificate cannot be read", t->client ? "server" : "client");
        return HED_EACCESS;
    }
    (void)X509_NAME_get_text_by_NID(X509_get_subject_name(peer), NID_commonName, who->name,
                                    sizeof who->name);
    hed_conn_show_name(who->name);
    who->certified = true;
    return 0;
}

/* The server refuses a client in answer to what the client sent last, so the client waits for the
 * server's first byte. */
static int
await_ready(struct handshake *t, uint64_t end, struct hed_why *why)
{
    char ready = 0;
    const int err = run_step(t, &ready, end);

    if (err)
        return explain_broken(t, err, "", why);
    if (ready == HED_TLS_READY && !SSL_pending(t->ssl)) {
        t->done.read.records = 1;
        return 0;
    }
    hed_why_set(why, "the server does not speak this protocol");
    return HED_EFORMAT;
}

static void
free_handshake(struct handshake *t)
{
    SSL_free(t->ssl);
    SSL_CTX_free(t->context);
    if (t->library != prepared.library)
        OSSL_LIB_CTX_free(t->library);
    OPENSSL_cleanse(&t->done, sizeof t->done);
}

int
hed_tls_begin(int fd, const struct hed_link *link, const struct hed_tls *tls, const char *host,
              uint64_t end, struct hed_tls_end **out, struct hed_why *why)
{
    struct handshake t = {.fd = fd, .link = link, .client = host != NULL};
    struct errors errors;

    errors_save(&errors);

    int err = use_prepared(&t, tls) ? 0 : make_context(&t, tls, why);

    if (!err && (err = make_session(&t, host)))
        hed_why_set(why, "OpenSSL cannot start a session");
    if (!err && (err = run_step(&t, NULL, end)))
        err = explain_broken(&t, err, host, why);
    if (!err && t.client)
        err = await_ready(&t, end, why);
    if (!err)
        err = note_peer(&t, why);
    if (!err) {
        t.done.cipher = SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(t.ssl));
        /* What comes now may be for another process. */
        err = hed_tls_resume(fd, link, &t.done, !t.client, out);
        if (err)
            hed_why_set(why, "%s", hed_err_text(err));
    }
    free_handshake(&t);
    errors_restore(&errors);
    return err;
}

#else
typedef int hed_tls_is_empty; /* a file must not be empty */
#endif
