/* Making and reading certificates, with OpenSSL. See cert.h. Only the command line uses this, so it
 * works in OpenSSL's default library context.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "remote/wire/tls/cert.h"
#include "remote/wire/tls/password.h"

#ifdef HED_HAVE_OPENSSL

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#define DAY 86400L
#define SKEW 300 /* seconds that a client's clock may be behind */
#define SERIAL_BYTES 16
#define FILE_MAX_BYTES 1048576 /* of a file that should be a certificate */

/* ---- words ----------------------------------------------------------------------------------- */

/* Can it be part of a file's name? Letters, digits and a few more. */
static bool
is_file_name(const char *s)
{
    static const char fits[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "._@-";

    return *s && *s != '.' && *s != '-' && strspn(s, fits) == strlen(s);
}

static bool
is_printable(const char *s)
{
    for (const char *p = s; *p; p++)
        if ((unsigned char)*p < ' ' || (unsigned char)*p >= 0x7f)
            return false;
    return *s != '\0';
}

static bool
is_ip(const char *s)
{
    unsigned char at[16];

    return inet_pton(AF_INET, s, at) == 1 || inet_pton(AF_INET6, s, at) == 1;
}

/* Turns "a,10.0.0.1" into the form of the extension, "DNS:a,IP:10.0.0.1". The first host names the
 * server. */
static int
read_hosts(const char *hosts, char *out, size_t size, char *first, size_t first_size,
           struct hed_why *why)
{
    size_t n = 0;
    int count = 0;

    for (const char *p = hosts;; p++) {
        char host[256];
        const size_t length = strcspn(p, ",");

        if (length < sizeof host) {
            memcpy(host, p, length);
            host[length] = '\0';
        }
        /* No '@' or '_' tricks: only the characters of a host's name, or "*." before it. */
        if (length >= sizeof host ||
            !(is_ip(host) || (is_file_name(strncmp(host, "*.", 2) == 0 ? host + 2 : host) &&
                              !strchr(host, '@')))) {
            hed_why_set(why, "'%.*s' is not the name or address of a host",
                        length < 100 ? (int)length : 100, p);
            return HED_EINVAL;
        }
        if (++count > HED_CERT_HOSTS) {
            hed_why_set(why, "more than %d hosts for one certificate", HED_CERT_HOSTS);
            return HED_ELIMIT;
        }
        if (count == 1 && !hed_str_copy(first, first_size, host)) {
            hed_why_set(why, "the first host's name is longer than %zu characters", first_size - 1);
            return HED_ELIMIT;
        }
        n += (size_t)snprintf(out + n, size - n, "%s%s:%s", count > 1 ? "," : "",
                              is_ip(host) ? "IP" : "DNS", host);
        p += length;
        if (!*p)
            return 0;
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static int
pem_path(char *out, size_t size, const char *folder, const char *prefix, const char *name,
         const char *suffix, struct hed_why *why)
{
    const int n = snprintf(out, size, "%s/%s%s%s", folder, prefix, name, suffix);

    if (n >= 0 && (size_t)n < size)
        return 0;
    hed_why_set(why, "%.100s...: the path is too long", folder);
    return HED_ELIMIT;
}

/* Writes what `put` makes, all or nothing: to a new file, which then replaces the old one. */
static int
write_file(const char *path, mode_t mode, int (*put)(FILE *, void *), void *arg,
           struct hed_why *why)
{
    char beside[1100];

    (void)snprintf(beside, sizeof beside, "%s.new", path);
    (void)unlink(beside);

    const int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool good = f && fchmod(fd, mode) == 0 && put(f, arg) == 1;

    if (f)
        good = fclose(f) == 0 && good;
    else if (fd >= 0)
        close(fd);
    if (good && rename(beside, path) == 0)
        return 0;

    const int err = errno ? hed_err_from_errno(errno) : HED_EIO;

    hed_why_set(why, "%s: %s", path, errno ? strerror(errno) : "cannot be written");
    (void)unlink(beside);
    return err;
}

static int
put_key(FILE *f, void *key)
{
    return PEM_write_PKCS8PrivateKey(f, key, NULL, NULL, 0, NULL, NULL);
}

static int
put_cert(FILE *f, void *cert)
{
    return PEM_write_X509(f, cert);
}

static FILE *
open_pem_file(const char *path, struct hed_why *why)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0) {
        hed_why_set(why, "%s: %s", path, strerror(errno));
        return NULL;
    }
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_MAX_BYTES) {
        hed_why_set(why, "%s: not a certificate or key", path);
        close(fd);
        errno = EINVAL;
        return NULL;
    }
    return fdopen(fd, "r");
}

static int
read_cert(const char *path, X509 **out, struct hed_why *why)
{
    FILE *f = open_pem_file(path, why);

    if (!f)
        return hed_err_from_errno(errno);
    *out = PEM_read_X509(f, NULL, hed_tls_no_password, NULL);
    fclose(f);
    if (*out)
        return 0;
    hed_why_set(why, "%s: not a certificate in PEM", path);
    return HED_EFORMAT;
}

static int
read_authority(const char *folder, const char *cert_path, X509 **cert, EVP_PKEY **key,
               struct hed_why *why)
{
    char path[1024];
    int err = pem_path(path, sizeof path, folder, "ca", "", ".key", why);

    if (!err)
        err = read_cert(cert_path, cert, why);
    if (err == HED_ENOTFOUND)
        hed_why_set(why, "%s: there is no CA; make one with `heddle cert ca %s`", folder, folder);
    if (err)
        return err;

    FILE *f = open_pem_file(path, why);

    if (!f)
        return hed_err_from_errno(errno);
    *key = PEM_read_PrivateKey(f, NULL, hed_tls_no_password, NULL);
    fclose(f);
    if (!*key || X509_check_private_key(*cert, *key) != 1 || X509_check_ca(*cert) != 1) {
        hed_why_set(why, "%s: not the key of the CA %s", path, cert_path);
        return HED_EFORMAT;
    }
    return 0;
}

/* ---- making ---------------------------------------------------------------------------------- */

static bool
add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;

    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);

    X509_EXTENSION *e = X509V3_EXT_nconf_nid(NULL, &ctx, nid, value);
    const bool good = e && X509_add_ext(cert, e, -1) == 1;

    X509_EXTENSION_free(e);
    return good;
}

static bool
add_extensions(X509 *cert, X509 *issuer, enum hed_cert_kind kind, const char *hosts)
{
    const bool ca = kind == HED_CERT_CA;

    return add_extension(cert, issuer, NID_basic_constraints,
                         ca ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE") &&
           add_extension(cert, issuer, NID_key_usage,
                         ca ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature") &&
           add_extension(cert, issuer, NID_subject_key_identifier, "hash") &&
           add_extension(cert, issuer, NID_authority_key_identifier, "keyid:always") &&
           (ca || add_extension(cert, issuer, NID_ext_key_usage,
                                kind == HED_CERT_SERVER ? "serverAuth" : "clientAuth")) &&
           (kind != HED_CERT_SERVER || add_extension(cert, issuer, NID_subject_alt_name, hosts));
}

/* Valid from now, a little earlier for clocks that are behind; not longer than the CA. */
static bool
set_times(X509 *cert, X509 *issuer, int days)
{
    const long end = days * DAY;
    const long begin = days < 0 ? end - DAY : -SKEW;

    if (!X509_gmtime_adj(X509_getm_notBefore(cert), begin) ||
        !X509_gmtime_adj(X509_getm_notAfter(cert), end))
        return false;
    if (issuer == cert ||
        ASN1_TIME_compare(X509_get0_notAfter(cert), X509_get0_notAfter(issuer)) <= 0)
        return true;
    return X509_set1_notAfter(cert, X509_get0_notAfter(issuer)) == 1;
}

static bool
set_serial(X509 *cert)
{
    unsigned char bytes[SERIAL_BYTES];

    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return false;
    bytes[0] = (bytes[0] & 0x7f) | 0x40; /* positive, and of full length */

    BIGNUM *n = BN_bin2bn(bytes, sizeof bytes, NULL);
    const bool good = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));

    BN_free(n);
    return good;
}

/* `issuer` and `issuer_key` are NULL for a CA, which signs itself. */
static X509 *
make_cert(const struct hed_cert_request *r, const char *name, const char *hosts, EVP_PKEY *key,
          X509 *issuer, EVP_PKEY *issuer_key)
{
    X509 *cert = X509_new();
    X509_NAME *subject = cert ? X509_get_subject_name(cert) : NULL;

    if (!issuer) {
        issuer = cert;
        issuer_key = key;
    }
    if (cert && X509_set_version(cert, X509_VERSION_3) && set_serial(cert) &&
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1,
                                   -1, 0) &&
        X509_set_issuer_name(cert, X509_get_subject_name(issuer)) &&
        set_times(cert, issuer, r->days) && X509_set_pubkey(cert, key) &&
        add_extensions(cert, issuer, r->kind, hosts) && X509_sign(cert, issuer_key, EVP_sha256()))
        return cert;
    X509_free(cert);
    return NULL;
}

static int
check_request(const struct hed_cert_request *r, char *hosts, size_t size, char *name,
              struct hed_why *why)
{
    if (r->days > HED_CERT_DAYS || r->days < -HED_CERT_DAYS || r->days == 0) {
        hed_why_set(why, "a certificate is valid for 1 to %d days", HED_CERT_DAYS);
        return HED_ERANGE;
    }
    if (r->kind == HED_CERT_SERVER)
        return read_hosts(r->hosts, hosts, size, name, HED_CERT_NAME + 1, why);
    if (!(r->kind == HED_CERT_CA ? is_printable(r->name) : is_file_name(r->name))) {
        hed_why_set(why, "'%.64s' is not a name%s", r->name,
                    r->kind == HED_CERT_CA ? "" : "; use letters, digits and . _ @ -");
        return HED_EINVAL;
    }
    if (hed_str_copy(name, HED_CERT_NAME + 1, r->name))
        return 0;
    hed_why_set(why, "a name has at most %d characters", HED_CERT_NAME);
    return HED_ELIMIT;
}

static int
cert_paths(const struct hed_cert_request *r, const char *name, struct hed_cert_files *f,
           struct hed_why *why)
{
    const bool ca = r->kind == HED_CERT_CA;
    const char *prefix = ca ? "ca" : r->kind == HED_CERT_SERVER ? "server-" : "client-";
    const char *stem = ca ? "" : strncmp(name, "*.", 2) == 0 ? name + 2 : name;
    int err = pem_path(f->cert, sizeof f->cert, r->folder, prefix, stem, ".pem", why);

    if (!err)
        err = pem_path(f->key, sizeof f->key, r->folder, prefix, stem, ".key", why);
    if (!err)
        err = pem_path(f->ca, sizeof f->ca, r->folder, "ca", "", ".pem", why);
    if (!err && !r->force) {
        const char *there = access(f->cert, F_OK) == 0  ? f->cert
                            : access(f->key, F_OK) == 0 ? f->key
                                                        : NULL;

        if (there) {
            hed_why_set(why, "%s exists already; --force replaces it", there);
            return HED_EEXIST;
        }
    }
    if (!err && ca && mkdir(r->folder, 0700) != 0 && errno != EEXIST) {
        hed_why_set(why, "%s: %s", r->folder, strerror(errno));
        err = hed_err_from_errno(errno);
    }
    return err;
}

int
hed_cert_make(const struct hed_cert_request *r, struct hed_cert_files *out, struct hed_why *why)
{
    char hosts[HED_CERT_HOSTS * 264] = "";
    char name[HED_CERT_NAME + 1] = "";
    struct hed_cert_files files;
    X509 *issuer = NULL;
    X509 *cert = NULL;
    EVP_PKEY *issuer_key = NULL;
    EVP_PKEY *key = NULL;
    int err = check_request(r, hosts, sizeof hosts, name, why);

    if (!err)
        err = cert_paths(r, name, &files, why);
    if (!err && r->kind != HED_CERT_CA)
        err = read_authority(r->folder, files.ca, &issuer, &issuer_key, why);
    if (!err && (key = EVP_EC_gen("P-256")))
        cert = make_cert(r, name, hosts, key, issuer, issuer_key);
    if (!err && !cert) {
        const char *text = ERR_reason_error_string(ERR_peek_last_error());

        hed_why_set(why, "OpenSSL cannot make the certificate: %s", text ? text : "unknown reason");
        err = HED_EIO;
    }
    errno = 0;
    if (!err)
        err = write_file(files.key, 0600, put_key, key, why);
    if (!err)
        err = write_file(files.cert, 0644, put_cert, cert, why);
    if (!err)
        *out = files;
    X509_free(cert);
    X509_free(issuer);
    EVP_PKEY_free(key);
    EVP_PKEY_free(issuer_key);
    ERR_clear_error();
    return err;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void
show_name(const X509_NAME *name, char *out, size_t size)
{
    BIO *b = BIO_new(BIO_s_mem());
    int n = 0;

    /* The format of RFC 2253 escapes control characters and everything beyond ASCII. */
    if (b && X509_NAME_print_ex(b, name, 0, XN_FLAG_RFC2253) >= 0)
        n = BIO_read(b, out, (int)size - 1);
    out[n > 0 ? n : 0] = '\0';
    BIO_free(b);
}

static void
show_time(const ASN1_TIME *at, char *out, size_t size)
{
    struct tm t;

    memset(&t, 0, sizeof t);
    if (ASN1_TIME_to_tm(at, &t) != 1 || strftime(out, size, "%Y-%m-%d %H:%M:%S UTC", &t) == 0)
        (void)hed_str_copy(out, size, "?");
}

/* Writes a host of a certificate as text; false if it is neither a name nor an address. */
static bool
show_host(const GENERAL_NAME *name, char *out, size_t size)
{
    const ASN1_STRING *s = name->type == GEN_DNS     ? name->d.dNSName
                           : name->type == GEN_IPADD ? name->d.iPAddress
                                                     : NULL;
    const unsigned char *p = s ? ASN1_STRING_get0_data(s) : NULL;
    const int n = s ? ASN1_STRING_length(s) : 0;

    if (name->type == GEN_IPADD)
        return (n == 4 || n == 16) &&
               inet_ntop(n == 4 ? AF_INET : AF_INET6, p, out, (socklen_t)size);
    if (!s || n <= 0 || (size_t)n >= size)
        return false;
    for (int i = 0; i < n; i++)
        out[i] = p[i] > ' ' && p[i] < 0x7f ? (char)p[i] : '?';
    out[n] = '\0';
    return true;
}

static void
show_hosts(X509 *cert, char *out, size_t size)
{
    GENERAL_NAMES *all = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    size_t n = 0;

    out[0] = '\0';
    for (int i = 0; i < sk_GENERAL_NAME_num(all); i++) {
        char host[256];

        if (!show_host(sk_GENERAL_NAME_value(all, i), host, sizeof host) ||
            n + strlen(host) + 2 > size)
            continue;
        n += (size_t)snprintf(out + n, size - n, "%s%s", n ? "," : "", host);
    }
    GENERAL_NAMES_free(all);
}

static void
show_use(X509 *cert, char *out, size_t size)
{
    const bool any = !(X509_get_extension_flags(cert) & EXFLAG_XKUSAGE);
    const uint32_t use = any ? 0 : X509_get_extended_key_usage(cert);
    const char *text = "other";

    if (X509_check_ca(cert) == 1)
        text = "CA";
    else if (any || (use & XKU_ANYEKU))
        text = "any";
    else if ((use & XKU_SSL_SERVER) && (use & XKU_SSL_CLIENT))
        text = "server, client";
    else if (use & (XKU_SSL_SERVER | XKU_SSL_CLIENT))
        text = use & XKU_SSL_SERVER ? "server" : "client";
    (void)hed_str_copy(out, size, text);
}

static void
show_fingerprint(X509 *cert, char *out, size_t size)
{
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    size_t at = 0;

    out[0] = '\0';
    if (X509_digest(cert, EVP_sha256(), bytes, &n) != 1)
        return;
    for (unsigned i = 0; i < n && at + 4 <= size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%02x", i ? ":" : "", bytes[i]);
}

int
hed_cert_read(const char *path, struct hed_cert_facts *out, struct hed_why *why)
{
    X509 *cert = NULL;
    int days = 0;
    int seconds = 0;
    const int err = read_cert(path, &cert, why);

    if (err) {
        ERR_clear_error();
        return err;
    }
    memset(out, 0, sizeof *out);
    show_name(X509_get_subject_name(cert), out->subject, sizeof out->subject);
    show_name(X509_get_issuer_name(cert), out->issuer, sizeof out->issuer);
    show_time(X509_get0_notBefore(cert), out->from, sizeof out->from);
    show_time(X509_get0_notAfter(cert), out->until, sizeof out->until);
    show_hosts(cert, out->hosts, sizeof out->hosts);
    show_use(cert, out->use, sizeof out->use);
    show_fingerprint(cert, out->fingerprint, sizeof out->fingerprint);
    if (ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(cert)) == 1)
        out->days_left = seconds < 0 ? days - 1L : days;
    X509_free(cert);
    ERR_clear_error();
    return 0;
}

#else

static const char no_openssl[] = "this heddle was built without OpenSSL";

int
hed_cert_make(const struct hed_cert_request *r, struct hed_cert_files *out, struct hed_why *why)
{
    (void)r, (void)out;
    hed_why_set(why, "%s", no_openssl);
    return HED_ENOTSUP;
}

int
hed_cert_read(const char *path, struct hed_cert_facts *out, struct hed_why *why)
{
    (void)path, (void)out;
    hed_why_set(why, "%s", no_openssl);
    return HED_ENOTSUP;
}

#endif
