/* The hash of a chunk. See hash.h. */
#include "snap/hash.h"

#include <string.h>

#define PRIME_A UINT64_C(0x9e3779b185ebca87)
#define PRIME_B UINT64_C(0xc2b2ae3d27d4eb4f)

static uint64_t
hash_avalanche(uint64_t x)
{
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

void
hed_snap_hash(const void *data, size_t size, struct hed_snap_hash *out)
{
    const unsigned char *p = data;
    uint64_t a = PRIME_A ^ size, b = PRIME_B + size;

    for (size_t left = size; left > 0;) {
        const size_t some = left < sizeof(uint64_t) ? left : sizeof(uint64_t);
        uint64_t word = 0;

        memcpy(&word, p, some);
        a = (a ^ word) * PRIME_A;
        a ^= a >> 29;
        b = (b + word) * PRIME_B;
        b ^= b >> 31;
        p += some;
        left -= some;
    }
    out->w[0] = hash_avalanche(a ^ b >> 7);
    out->w[1] = hash_avalanche(b + a);
}
