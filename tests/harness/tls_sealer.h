/* Makes TLS records in its own way, not with remote/wire/tls/records.c, so that both cannot be
 * wrong together. For unit tests and fuzz targets.
 */
#pragma once

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "remote/wire/conn.h"

#define CONTENT_MAX 16384 /* bytes of a record's content */
#define RECORD_ROOM (CONTENT_MAX + 2048)

enum { ALERT = 21, HANDSHAKE = 22, DATA = 23 };

static const struct suite {
    uint32_t number;
    const char *name, *cipher, *digest;
    size_t key, secret;
} suites[] = {
    {0x1301, "TLS_AES_128_GCM_SHA256", "AES-128-GCM", "SHA256", 16, 32},
    {0x1302, "TLS_AES_256_GCM_SHA384", "AES-256-GCM", "SHA384", 32, 48},
    {0x1303, "TLS_CHACHA20_POLY1305_SHA256", "ChaCha20-Poly1305", "SHA256", 32, 32},
};

static inline void
sealer_must(bool holds)
{
    if (!holds)
        abort();
}

/* One of two ends that understand each other. */
static inline struct hed_conn_state
state_of(const struct suite *suite, bool first, uint64_t records)
{
    struct hed_conn_state s = {.cipher = suite->number};

    memset(s.write.bytes, first ? 1 : 2, suite->secret);
    memset(s.read.bytes, first ? 2 : 1, suite->secret);
    s.read.records = s.write.records = records;
    return s;
}

struct sealer {
    const struct suite *suite;
    uint8_t secret[48], key[32], iv[12];
    uint64_t records;
};

static inline void
sealer_expand(const struct sealer *s, const char *label, uint8_t *out, size_t n)
{
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    EVP_KDF_CTX *c = EVP_KDF_CTX_new(kdf);
    int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
    uint8_t info[64] = {0};
    const int size = snprintf((char *)info + 3, sizeof info - 3, "tls13 %s", label);
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)s->suite->digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)s->secret, s->suite->secret),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, (size_t)size + 4),
        OSSL_PARAM_construct_end()};

    info[1] = (uint8_t)n;
    info[2] = (uint8_t)size;
    sealer_must(EVP_KDF_derive(c, out, n, params) == 1);
    EVP_KDF_CTX_free(c);
    EVP_KDF_free(kdf);
}

static inline void
sealer_use_secret(struct sealer *s)
{
    s->records = 0;
    sealer_expand(s, "key", s->key, s->suite->key);
    sealer_expand(s, "iv", s->iv, sizeof s->iv);
}

/* Of what the end with this state reads. */
static inline struct sealer
sealer_for(const struct suite *suite, bool first)
{
    const struct hed_conn_state state = state_of(suite, first, 0);
    struct sealer s = {.suite = suite};

    memcpy(s.secret, state.read.bytes, sizeof s.secret);
    sealer_use_secret(&s);
    return s;
}

static inline void
sealer_change_key(struct sealer *s)
{
    uint8_t next[48];

    sealer_expand(s, "traffic upd", next, s->suite->secret);
    memcpy(s->secret, next, s->suite->secret);
    sealer_use_secret(s);
}

/* Seals n bytes of inner plaintext, type and zeros included. Returns the size of the record. */
static inline size_t
seal(struct sealer *s, const void *inner, size_t n, uint8_t *out)
{
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, s->suite->cipher, NULL);
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    uint8_t nonce[12];
    int done;

    memcpy(nonce, s->iv, sizeof nonce);
    for (int i = 0; i < 8; i++)
        nonce[11 - i] ^= (uint8_t)(s->records >> 8 * i);
    s->records++;
    memcpy(out, (const uint8_t[]){DATA, 3, 3, (uint8_t)((n + 16) >> 8), (uint8_t)(n + 16)}, 5);
    sealer_must(EVP_EncryptInit_ex2(c, cipher, s->key, nonce, NULL));
    sealer_must(EVP_EncryptUpdate(c, NULL, &done, out, 5));
    sealer_must(n == 0 || EVP_EncryptUpdate(c, out + 5, &done, inner, (int)n));
    sealer_must(EVP_EncryptFinal_ex(c, out + 5 + n, &done));
    sealer_must(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, 16, out + 5 + n));
    EVP_CIPHER_CTX_free(c);
    EVP_CIPHER_free(cipher);
    return 5 + n + 16;
}

/* A record of n bytes of content of this type, and some zeros. Together they fit into RECORD_ROOM,
 * but may be more than is allowed. `out` has RECORD_ROOM bytes. */
static inline size_t
seal_content(struct sealer *s, uint8_t type, const void *content, size_t n, size_t zeros,
             uint8_t *out)
{
    static uint8_t inner[RECORD_ROOM];

    sealer_must(n + 1 + zeros + 21 <= sizeof inner);
    memset(inner, 0, sizeof inner);
    memcpy(inner, content, n);
    inner[n] = type;
    return seal(s, inner, n + 1 + zeros, out);
}
