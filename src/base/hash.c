/* BLAKE2b-256. See hash.h. */
#include "base/hash.h"

#include <string.h>

#include "base/number.h"

#define BLOCK 128 /* bytes */
#define ROUNDS 12

static const uint64_t initial[8] = {UINT64_C(0x6a09e667f3bcc908), UINT64_C(0xbb67ae8584caa73b),
                                    UINT64_C(0x3c6ef372fe94f82b), UINT64_C(0xa54ff53a5f1d36f1),
                                    UINT64_C(0x510e527fade682d1), UINT64_C(0x9b05688c2b3e6c1f),
                                    UINT64_C(0x1f83d9abfb41bd6b), UINT64_C(0x5be0cd19137e2179)};

/* The order in which each round uses the words of a block. Rounds 10 and 11 repeat 0 and 1. */
static const uint8_t order[10][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                      {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
                                      {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
                                      {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
                                      {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
                                      {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
                                      {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
                                      {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
                                      {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
                                      {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

static inline uint64_t
rotate_right(uint64_t x, unsigned n)
{
    return x >> n | x << (64 - n);
}

static inline void
blake_mix(uint64_t *a, uint64_t *b, uint64_t *c, uint64_t *d, uint64_t x, uint64_t y)
{
    *a += *b + x;
    *d = rotate_right(*d ^ *a, 32);
    *c += *d;
    *b = rotate_right(*b ^ *c, 24);
    *a += *b + y;
    *d = rotate_right(*d ^ *a, 16);
    *c += *d;
    *b = rotate_right(*b ^ *c, 63);
}

/* The compiler must unroll the rounds: with indices it does not know, it would keep the sixteen
 * words in memory instead of registers. */
static void
blake_compress(struct hed_hash *h, const uint8_t *block, uint64_t last)
{
    uint64_t m[16], v[16];

    memcpy(m, block, sizeof m); /* little-endian, like all hosts we support */
    memcpy(v, h->state, sizeof h->state);
    memcpy(v + 8, initial, sizeof initial);
    v[12] ^= h->bytes;
    v[14] ^= last;
#pragma GCC unroll 12
    for (int i = 0; i < ROUNDS; i++) {
        const uint8_t *o = order[i % 10];

        blake_mix(&v[0], &v[4], &v[8], &v[12], m[o[0]], m[o[1]]);
        blake_mix(&v[1], &v[5], &v[9], &v[13], m[o[2]], m[o[3]]);
        blake_mix(&v[2], &v[6], &v[10], &v[14], m[o[4]], m[o[5]]);
        blake_mix(&v[3], &v[7], &v[11], &v[15], m[o[6]], m[o[7]]);
        blake_mix(&v[0], &v[5], &v[10], &v[15], m[o[8]], m[o[9]]);
        blake_mix(&v[1], &v[6], &v[11], &v[12], m[o[10]], m[o[11]]);
        blake_mix(&v[2], &v[7], &v[8], &v[13], m[o[12]], m[o[13]]);
        blake_mix(&v[3], &v[4], &v[9], &v[14], m[o[14]], m[o[15]]);
    }
    for (int i = 0; i < 8; i++)
        h->state[i] ^= v[i] ^ v[i + 8];
}

void
hed_hash_init(struct hed_hash *h)
{
    memset(h, 0, sizeof *h);
    memcpy(h->state, initial, sizeof initial);
    h->state[0] ^=
        UINT64_C(0x01010000) | HED_HASH_SIZE; /* sequential, no key, HED_HASH_SIZE bytes out */
}

void
hed_hash_add(struct hed_hash *h, const void *p, size_t n)
{
    const uint8_t *from = p;

    while (n > 0) {
        /* Only hed_hash_end() may compress the last block: a full one waits for the next byte. */
        if (h->held == BLOCK || (h->held == 0 && n > BLOCK)) {
            const uint8_t *block = h->held ? h->block : from;

            h->bytes += BLOCK;
            blake_compress(h, block, 0);
            if (h->held) {
                h->held = 0;
            } else {
                from += BLOCK;
                n -= BLOCK;
            }
            continue;
        }

        const size_t some = hed_min(n, BLOCK - h->held);

        memcpy(h->block + h->held, from, some);
        h->held += some;
        from += some;
        n -= some;
    }
}

void
hed_hash_add_text(struct hed_hash *h, const char *text)
{
    hed_hash_add(h, text, strlen(text) + 1);
}

void
hed_hash_end(struct hed_hash *h, uint8_t out[HED_HASH_SIZE])
{
    memset(h->block + h->held, 0, BLOCK - h->held);
    h->bytes += h->held;
    blake_compress(h, h->block, UINT64_MAX);
    memcpy(out, h->state, HED_HASH_SIZE);
}

void
hed_hash_of(const void *p, size_t n, uint8_t out[HED_HASH_SIZE])
{
    struct hed_hash h;

    hed_hash_init(&h);
    hed_hash_add(&h, p, n);
    hed_hash_end(&h, out);
}

const char *
hed_hash_text(const uint8_t hash[HED_HASH_SIZE], char out[HED_HASH_TEXT])
{
    static const char digits[] = "0123456789abcdef";

    for (int i = 0; i < HED_HASH_SIZE; i++) {
        out[2 * i] = digits[hash[i] >> 4];
        out[2 * i + 1] = digits[hash[i] & 15];
    }
    out[HED_HASH_TEXT - 1] = '\0';
    return out;
}
