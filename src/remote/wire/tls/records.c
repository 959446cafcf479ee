/* TLS 1.3 after the handshake: the records that carry data, with OpenSSL's ciphers. See socket.h.
 *
 * OpenSSL does the handshake (tls.c) and then has nothing more to do: all that a connection needs
 * from there on is a secret and a count for each direction (struct hed_conn_state). So the process
 * that has the server's key can do the handshake, and another one, which has not, carries on.
 *
 *   record: 23, 3, 3, length  ||  sealed: content, type of the content, zeros  ||  tag
 *
 * Invariants:
 * 1. The two directions share nothing that changes but `asked`, so that a reader and a writer never
 *    wait for each other.
 * 2. A direction that failed once fails for ever: its count no longer agrees with the peer's.
 * 3. No byte beyond the record that holds what was asked for is taken from the socket while
 *    `exact` is set.
 */
#ifdef HED_HAVE_OPENSSL

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/number.h"
#include "remote/wire/conn.h"
#include "remote/wire/socket.h"

#define HEAD 5                                    /* bytes before what is sealed */
#define TAG 16                                    /* bytes after it */
#define CONTENT_MAX 16384                         /* bytes of one record's content */
#define SEALED_MAX (CONTENT_MAX + 256)            /* with its type, zeros and tag */
#define AT_ONCE 4                                 /* records that one call to the kernel moves */
#define IN_SIZE (AT_ONCE * (HEAD + SEALED_MAX))   /* bytes */
#define OUT_RECORD (HEAD + CONTENT_MAX + 1 + TAG) /* bytes of the largest that we write */
#define OUT_SIZE (AT_ONCE * OUT_RECORD)           /* bytes */
#define DATALESS_MAX 32                           /* records in a row that carry no data */
#define RECORDS_PER_KEY (UINT64_C(1) << 24)       /* AES-GCM is safe for as many (RFC 8446) */

enum content { CONTENT_ALERT = 21, CONTENT_HANDSHAKE = 22, CONTENT_DATA = 23 };
enum { MESSAGE_KEY_UPDATE = 24, ALERT_WARNING = 1, ALERT_CLOSE = 0 };

static const struct suite {
    uint32_t number; /* TLS's */
    const char *cipher, *digest;
    size_t key, secret; /* bytes */
} suites[] = {
    {0x1301, "AES-128-GCM", "SHA256", 16, 32},
    {0x1302, "AES-256-GCM", "SHA384", 32, 48},
    {0x1303, "ChaCha20-Poly1305", "SHA256", 32, 32},
};

struct direction {
    EVP_CIPHER_CTX *cipher;
    struct hed_conn_secret secret;
    uint8_t iv[12];
    bool broken;
};

struct hed_tls_end {
    int fd; /* the connection's, like link */
    const struct hed_link *link;
    bool exact;
    const struct suite *suite;
    struct hed_conn_who who;
    OSSL_LIB_CTX *library;
    EVP_CIPHER *algorithm;

    struct direction in; /* the reader's, like the following */
    uint8_t *arrived;    /* IN_SIZE bytes */
    size_t from, to;     /* of it: bytes that have not been opened */
    uint8_t *content;    /* in it: what was opened and has not been read */
    size_t content_size;
    unsigned dataless;

    struct direction out; /* the writer's */
    uint8_t *leaving;     /* OUT_SIZE bytes */
    _Atomic bool asked;   /* the peer wants us to change our key */
};

/* ---- keys ------------------------------------------------------------------------------------ */

/* HKDF-Expand-Label of RFC 8446 with an empty context, for at most one block of the digest. */
static bool
derive(const struct hed_tls_end *t, const uint8_t *secret, const char *label, uint8_t *out,
       size_t n)
{
    char info[32];
    const size_t length = strlen(label);
    uint8_t block[EVP_MAX_MD_SIZE];
    size_t size = 0;

    info[0] = 0;
    info[1] = (char)n;
    info[2] = (char)(6 + length);
    memcpy(info + 3, "tls13 ", 6);
    memcpy(info + 9, label, length);
    info[9 + length] = 0;
    info[10 + length] = 1; /* the number of the block */

    const bool done =
        EVP_Q_mac(t->library, "HMAC", NULL, t->suite->digest, NULL, secret, t->suite->secret,
                  (const unsigned char *)info, 11 + length, block, sizeof block, &size) &&
        size >= n;

    if (done)
        memcpy(out, block, n);
    OPENSSL_cleanse(block, sizeof block);
    return done;
}

static bool
use_secret(const struct hed_tls_end *t, struct direction *d)
{
    uint8_t key[32];
    const bool done = derive(t, d->secret.bytes, "key", key, t->suite->key) &&
                      derive(t, d->secret.bytes, "iv", d->iv, sizeof d->iv) &&
                      EVP_CipherInit_ex2(d->cipher, t->algorithm, key, NULL, d == &t->out, NULL);

    OPENSSL_cleanse(key, sizeof key);
    return done;
}

static bool
next_secret(const struct hed_tls_end *t, struct direction *d)
{
    d->secret.records = 0;
    return derive(t, d->secret.bytes, "traffic upd", d->secret.bytes, t->suite->secret) &&
           use_secret(t, d);
}

/* Prepares the cipher for the next record: its number is part of it, its head is not changed. */
static bool
begin_record(struct direction *d, const uint8_t *head)
{
    uint8_t nonce[sizeof d->iv];
    int n;

    memcpy(nonce, d->iv, sizeof nonce);
    for (unsigned i = 0; i < 8; i++)
        nonce[sizeof nonce - 1 - i] ^= (uint8_t)(d->secret.records >> 8 * i);
    d->secret.records++;
    return EVP_CipherInit_ex2(d->cipher, NULL, NULL, nonce, -1, NULL) &&
           EVP_CipherUpdate(d->cipher, NULL, &n, head, HEAD);
}

/* ---- reading --------------------------------------------------------------------------------- */

static size_t
sealed_size(const uint8_t *head)
{
    return (size_t)head[3] << 8 | head[4];
}

/* Is it the head of a record that may come after the handshake? */
static bool
is_head(const uint8_t *head)
{
    return head[0] == CONTENT_DATA && head[1] == 3 && head[2] == 3 && sealed_size(head) > TAG &&
           sealed_size(head) <= SEALED_MAX;
}

/* How many bytes are missing for a complete record; 0: it is there. */
static size_t
missing_bytes(const struct hed_tls_end *t)
{
    const size_t have = t->to - t->from;
    const size_t want = have < HEAD ? HEAD : HEAD + sealed_size(t->arrived + t->from);

    return have < want ? want - have : 0;
}

/* Takes what is there from the socket, or waits. */
static int
fetch_bytes(struct hed_tls_end *t, uint64_t end)
{
    const size_t missing = missing_bytes(t);

    if (t->from == t->to)
        t->from = t->to = 0;
    if (missing > IN_SIZE - t->to) {
        memmove(t->arrived, t->arrived + t->from, t->to - t->from);
        t->to -= t->from;
        t->from = 0;
    }
    for (;;) {
        const ssize_t got = hed_socket_recv(t->fd, t->arrived + t->to,
                                            t->exact ? missing : IN_SIZE - t->to, MSG_DONTWAIT);

        if (got > 0) {
            t->to += (size_t)got;
            return 0;
        }
        if (got == 0 || (errno != EAGAIN && errno != EINTR))
            return HED_EIO;

        const int err = errno == EINTR ? 0 : hed_socket_wait(t->fd, POLLIN, end, t->link);

        if (err)
            return err;
    }
}

/* Opens the complete record at t->from where it lies. */
static bool
open_record(struct hed_tls_end *t, uint8_t **content, size_t *size)
{
    uint8_t *head = t->arrived + t->from, *sealed = head + HEAD;
    const size_t n = sealed_size(head) - TAG;
    int done = 0, rest = 0;

    t->from += HEAD + n + TAG;
    *content = sealed;
    *size = n;
    return begin_record(&t->in, head) &&
           EVP_CIPHER_CTX_ctrl(t->in.cipher, EVP_CTRL_AEAD_SET_TAG, TAG, sealed + n) > 0 &&
           EVP_CipherUpdate(t->in.cipher, sealed, &done, sealed, (int)n) && (size_t)done == n &&
           EVP_CipherFinal_ex(t->in.cipher, sealed + n, &rest) > 0;
}

/* The type is the last byte that is not zero. 0 if there is none. */
static unsigned
strip_type(const uint8_t *content, size_t *size)
{
    while (*size > 0 && content[*size - 1] == 0)
        --*size;
    return *size > 0 ? content[--*size] : 0;
}

/* The one message of a handshake that may come later: the peer has changed its key. */
static bool
take_key_update(struct hed_tls_end *t, const uint8_t *message, size_t n)
{
    static const uint8_t form[] = {MESSAGE_KEY_UPDATE, 0, 0, 1};

    if (n != sizeof form + 1 || memcmp(message, form, sizeof form) != 0 || message[4] > 1)
        return false;
    if (message[4]) /* relaxed: the writer needs nothing else of ours */
        atomic_store_explicit(&t->asked, true, memory_order_relaxed);
    return next_secret(t, &t->in);
}

/* Opens the next record. *content stays empty if it has no data for the reader. */
static int
take_record(struct hed_tls_end *t)
{
    uint8_t *content;
    size_t size;

    if (!open_record(t, &content, &size))
        return HED_EIO;

    const unsigned type = strip_type(content, &size);

    if (size > CONTENT_MAX)
        return HED_EIO;
    if (type == CONTENT_DATA && size > 0) {
        t->content = content;
        t->content_size = size;
        t->dataless = 0;
        return 0;
    }
    /* The peer has hung up, or says what it does not like; both are the end. */
    if (type != CONTENT_DATA && type != CONTENT_HANDSHAKE)
        return HED_EIO;
    if (type == CONTENT_HANDSHAKE && !take_key_update(t, content, size))
        return HED_EIO;
    return ++t->dataless > DATALESS_MAX ? HED_EIO : 0;
}

static int
next_content(struct hed_tls_end *t, uint64_t end)
{
    while (t->content_size == 0) {
        int err = 0;

        if (t->in.broken)
            return HED_EIO;
        if (t->to - t->from >= HEAD && !is_head(t->arrived + t->from))
            err = HED_EIO;
        else if (missing_bytes(t))
            err = fetch_bytes(t, end);
        else
            err = take_record(t);
        t->in.broken = err && err != HED_ETIME;
        if (err)
            return err;
    }
    return 0;
}

ssize_t
hed_tls_read(struct hed_tls_end *t, void *p, size_t n, uint64_t end)
{
    (void)ERR_set_mark();

    const int err = next_content(t, end);

    (void)ERR_pop_to_mark();
    if (err)
        return err;
    n = hed_min(n, t->content_size);
    memcpy(p, t->content, n);
    t->content += n;
    t->content_size -= n;
    return (ssize_t)n;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Makes a record of the content. Returns its size, 0 if it cannot be made. */
static size_t
seal_record(struct hed_tls_end *t, enum content type, const void *content, size_t n, uint8_t *out)
{
    const size_t sealed = n + 1 + TAG;
    const uint8_t last = (uint8_t)type;
    int done = 0, more = 0, rest = 0;

    out[0] = CONTENT_DATA;
    out[1] = out[2] = 3;
    out[3] = (uint8_t)(sealed >> 8);
    out[4] = (uint8_t)sealed;
    if (!begin_record(&t->out, out) ||
        !EVP_CipherUpdate(t->out.cipher, out + HEAD, &done, content, (int)n) ||
        !EVP_CipherUpdate(t->out.cipher, out + HEAD + done, &more, &last, 1) ||
        (size_t)done + (size_t)more != n + 1 ||
        EVP_CipherFinal_ex(t->out.cipher, out + HEAD + n + 1, &rest) <= 0 ||
        EVP_CIPHER_CTX_ctrl(t->out.cipher, EVP_CTRL_AEAD_GET_TAG, TAG, out + HEAD + n + 1) <= 0)
        return 0;
    return HEAD + sealed;
}

static int
send_bytes(struct hed_tls_end *t, const uint8_t *p, size_t n)
{
    while (n > 0) {
        struct iovec part = {.iov_base = (void *)p, .iov_len = n};
        const struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
        const ssize_t sent = hed_socket_sendmsg(t->fd, &m, MSG_DONTWAIT);

        if (sent >= 0) {
            p += sent;
            n -= (size_t)sent;
            continue;
        }
        if (errno != EAGAIN && errno != EINTR)
            return HED_EIO;

        const int err = errno == EINTR ? 0 : hed_socket_wait(t->fd, POLLOUT, UINT64_MAX, t->link);

        if (err)
            return err;
    }
    return 0;
}

static int
send_record(struct hed_tls_end *t, enum content type, const void *content, size_t n)
{
    const size_t size = seal_record(t, type, content, n, t->leaving);

    return size ? send_bytes(t, t->leaving, size) : HED_EIO;
}

/* Changes our key if the peer has asked for it, or if it has been used for long. */
static int
renew_key(struct hed_tls_end *t)
{
    static const uint8_t message[] = {MESSAGE_KEY_UPDATE, 0, 0, 1, 0};

    /* Relaxed: as where it is set. */
    if (t->out.secret.records < RECORDS_PER_KEY &&
        !atomic_load_explicit(&t->asked, memory_order_relaxed))
        return 0;
    atomic_store_explicit(&t->asked, false, memory_order_relaxed);

    const int err = send_record(t, CONTENT_HANDSHAKE, message, sizeof message);

    return err ? err : next_secret(t, &t->out) ? 0 : HED_EIO;
}

/* Seals and sends as much as one call to the kernel takes. Returns how much, or an error. */
static ssize_t
write_some(struct hed_tls_end *t, const uint8_t *p, size_t n)
{
    size_t done = 0, size = 0;
    int err = renew_key(t);

    for (int i = 0; i < AT_ONCE && done < n && !err; i++) {
        const size_t part = hed_min(n - done, CONTENT_MAX);
        const size_t sealed = seal_record(t, CONTENT_DATA, p + done, part, t->leaving + size);

        done += part;
        size += sealed;
        err = sealed ? 0 : HED_EIO;
    }
    if (!err)
        err = send_bytes(t, t->leaving, size);
    return err ? err : (ssize_t)done;
}

int
hed_tls_write(struct hed_tls_end *t, const void *p, size_t n)
{
    ssize_t done = 0;

    (void)ERR_set_mark();
    for (size_t at = 0; at < n && done >= 0; at += done > 0 ? (size_t)done : 0) {
        done = t->out.broken ? HED_EIO : write_some(t, (const uint8_t *)p + at, n - at);
        t->out.broken = done < 0;
    }
    (void)ERR_pop_to_mark();
    return done < 0 ? (int)done : 0;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void
free_end(struct hed_tls_end *t)
{
    EVP_CIPHER_CTX_free(t->in.cipher);
    EVP_CIPHER_CTX_free(t->out.cipher);
    EVP_CIPHER_free(t->algorithm);
    OSSL_LIB_CTX_free(t->library);
    free(t->arrived);
    free(t->leaving);
    OPENSSL_cleanse(t, sizeof *t);
    free(t);
}

static const struct suite *
find_suite(uint32_t number)
{
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++)
        if (suites[i].number == number)
            return &suites[i];
    return NULL;
}

int
hed_tls_resume(int fd, const struct hed_link *link, const struct hed_conn_state *s, bool exact,
               struct hed_tls_end **out)
{
    const struct suite *suite = find_suite(s->cipher);
    struct hed_tls_end *t = suite ? calloc(1, sizeof *t) : NULL;

    if (!t)
        return suite ? HED_ENOMEM : HED_EINVAL;
    (void)ERR_set_mark();
    t->fd = fd;
    t->link = link;
    t->exact = exact;
    t->suite = suite;
    t->who = s->who;
    t->in.secret = s->read;
    t->out.secret = s->write;
    atomic_init(&t->asked, s->asked != 0);
    t->arrived = malloc(IN_SIZE);
    t->leaving = malloc(OUT_SIZE);
    t->in.cipher = EVP_CIPHER_CTX_new();
    t->out.cipher = EVP_CIPHER_CTX_new();
    t->library = OSSL_LIB_CTX_new();
    t->algorithm = t->library ? EVP_CIPHER_fetch(t->library, suite->cipher, NULL) : NULL;

    const bool done = t->arrived && t->leaving && t->in.cipher && t->out.cipher && t->algorithm &&
                      use_secret(t, &t->in) && use_secret(t, &t->out);

    (void)ERR_pop_to_mark();
    if (!done) {
        free_end(t);
        return HED_ENOMEM;
    }
    *out = t;
    return 0;
}

int
hed_tls_suspend(struct hed_tls_end *t, struct hed_conn_state *out)
{
    if (t->in.broken || t->out.broken)
        return HED_EIO;
    if (t->content_size || t->from != t->to)
        return HED_ESTATE;
    *out = (struct hed_conn_state){.cipher = t->suite->number,
                                   .who = t->who,
                                   .read = t->in.secret,
                                   .write = t->out.secret,
                                   .asked = atomic_load(&t->asked)};
    t->in.broken = t->out.broken = true; /* nothing more is said here */
    return 0;
}

const struct hed_conn_who *
hed_tls_who(const struct hed_tls_end *t)
{
    return &t->who;
}

void
hed_tls_close(struct hed_tls_end *t, bool bye)
{
    static const uint8_t alert[] = {ALERT_WARNING, ALERT_CLOSE};

    /* Another thread may have been inside OpenSSL when the process was forked, so nothing is
     * touched. */
    if (!bye)
        return;
    (void)ERR_set_mark();
    if (!t->out.broken) {
        const size_t n = seal_record(t, CONTENT_ALERT, alert, sizeof alert, t->leaving);
        struct iovec part = {.iov_base = t->leaving, .iov_len = n};
        const struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

        if (n)
            (void)hed_socket_sendmsg(t->fd, &m, MSG_DONTWAIT);
    }
    (void)ERR_pop_to_mark();
    free_end(t);
}

#else
typedef int hed_tls_records_is_empty; /* a file must not be empty */
#endif
