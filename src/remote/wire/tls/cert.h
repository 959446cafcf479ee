/* Certificates of a small authority: a CA, servers and clients. ECDSA P-256, PEM.
 *
 * The folder of an authority holds ca.pem, ca.key and, for each name, NAME.pem and NAME.key. From
 * the moment they exist, keys can be read by their owner only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct hed_why;

#define HED_CERT_NAME 64   /* characters of a name (CN), the limit of X.509 */
#define HED_CERT_HOSTS 16  /* per server */
#define HED_CERT_DAYS 7300 /* at most */

enum hed_cert_kind { HED_CERT_CA, HED_CERT_SERVER, HED_CERT_CLIENT };

struct hed_cert_request {
    enum hed_cert_kind kind;
    const char *folder;
    const char *name;  /* CN; for servers and clients also the name of the files */
    const char *hosts; /* servers: "name,10.0.0.1,::1" */
    int days;          /* valid from now; negative: it expired that long ago (for tests) */
    bool force;        /* replace existing files */
};

/* The files that were written. */
struct hed_cert_files {
    char cert[1024], key[1024], ca[1024];
};

/* HED_EEXIST if a file exists and must not be replaced; nothing was written. HED_EINVAL for a name
 * or host that makes no sense; HED_ENOTFOUND if there is no CA in the folder; HED_ENOTSUP without
 * OpenSSL. */
int hed_cert_make(const struct hed_cert_request *r, struct hed_cert_files *out,
                  struct hed_why *why);

/* The contents of a certificate, for display. */
struct hed_cert_facts {
    char subject[256], issuer[256];
    char from[32], until[32]; /* 2030-01-31 12:00:00 UTC */
    char hosts[512];          /* separated by commas */
    char use[64];             /* "CA", "server", "client", "server, client", "any" */
    char fingerprint[96];     /* SHA-256, hexadecimal with colons */
    long days_left;           /* negative if it has expired */
};
int hed_cert_read(const char *path, struct hed_cert_facts *out, struct hed_why *why);
