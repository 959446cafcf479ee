/* The hash of a chunk on the CPU. See hash.h. */
#include "move/file/hash.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define LANES HED_SNAP_LANES

struct lanes {
    uint64_t a[LANES], b[LANES];
};

static uint64_t
scatter_number(uint64_t n)
{
    n *= UINT64_C(0x9e3779b97f4a7c15);
    n = (n ^ n >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    n = (n ^ n >> 27) * UINT64_C(0x94d049bb133111eb);
    return n ^ n >> 31;
}

static inline void
mix_pair(uint64_t *a, uint64_t *b)
{
    *a += (*b & UINT32_MAX) * (*b >> 32);
    *b = *b >> 32 | *b << 32;
    *b += (*a & UINT32_MAX) * (*a >> 32);
    *a = *a >> 32 | *a << 32;
    *a += (*b & UINT32_MAX) * (*b >> 32);
    *b = *b >> 32 | *b << 32;
}

/* ---- stripes --------------------------------------------------------------------------------- */

/* Lane i takes its two words. `data` need not be aligned. */
static void
take_stripes(struct lanes *l, const unsigned char *data, size_t count)
{
    for (; count > 0; count--, data += HED_SNAP_STRIPE)
        for (int i = 0; i < LANES; i++) {
            uint64_t x, y;

            memcpy(&x, data + 8 * (size_t)i, 8);
            memcpy(&y, data + 8 * (size_t)(LANES + i), 8);
            l->a[i] ^= x;
            l->b[i] ^= y;
            mix_pair(&l->a[i], &l->b[i]);
        }
}

#if defined(__x86_64__)
/* Compilers multiply all 64 bits when they vectorise the function above, hence this one. */
__attribute__((target("avx2"))) static void
take_stripes_avx2(struct lanes *l, const unsigned char *data, size_t count)
{
    for (; count > 0; count--, data += HED_SNAP_STRIPE)
        for (int i = 0; i < LANES; i += 4) {
            const void *x = data + 8 * (size_t)i, *y = data + 8 * (size_t)(LANES + i);
            __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)&l->a[i]);
            __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)&l->b[i]);
            __m256i swapped;

            a = _mm256_xor_si256(a, _mm256_loadu_si256(x));
            b = _mm256_xor_si256(b, _mm256_loadu_si256(y));
            swapped = _mm256_shuffle_epi32(b, 0xb1);
            a = _mm256_add_epi64(a, _mm256_mul_epu32(b, swapped));
            b = swapped;
            swapped = _mm256_shuffle_epi32(a, 0xb1);
            b = _mm256_add_epi64(b, _mm256_mul_epu32(a, swapped));
            a = swapped;
            swapped = _mm256_shuffle_epi32(b, 0xb1);
            a = _mm256_add_epi64(a, _mm256_mul_epu32(b, swapped));
            b = swapped;
            _mm256_storeu_si256((__m256i *)(void *)&l->a[i], a);
            _mm256_storeu_si256((__m256i *)(void *)&l->b[i], b);
        }
}
#endif

static void
take_stripes_fast(struct lanes *l, const unsigned char *data, size_t count)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        take_stripes_avx2(l, data, count);
        return;
    }
#endif
    take_stripes(l, data, count);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void
begin_lanes(struct lanes *l)
{
    for (uint64_t i = 0; i < LANES; i++) {
        l->a[i] = scatter_number(2 * i + 1);
        l->b[i] = scatter_number(2 * i + 2);
    }
}

static void
join_lanes(struct lanes *l, uint64_t size, struct hed_snap_hash *out)
{
    for (int n = LANES / 2; n > 0; n /= 2)
        for (int i = 0; i < n; i++) {
            mix_pair(&l->a[i], &l->b[i]);
            l->a[i] ^= l->a[i + n];
            l->b[i] ^= l->b[i + n];
            mix_pair(&l->a[i], &l->b[i]);
        }
    l->a[0] ^= size;
    for (int i = 0; i < 4; i++)
        mix_pair(&l->a[0], &l->b[0]);
    out->w[0] = l->a[0];
    out->w[1] = l->b[0];
}

void
hed_snap_hash(const void *data, size_t size, struct hed_snap_hash *out)
{
    const unsigned char *p = data;
    const size_t whole = size / HED_SNAP_STRIPE;
    const size_t rest = size % HED_SNAP_STRIPE;
    struct lanes l;

    begin_lanes(&l);
    take_stripes_fast(&l, p, whole);
    if (rest > 0) {
        unsigned char last[HED_SNAP_STRIPE] = {0};

        memcpy(last, p + whole * HED_SNAP_STRIPE, rest);
        take_stripes_fast(&l, last, 1);
    }
    join_lanes(&l, size, out);
}

void
hed_snap_hash_zeros(size_t size, struct hed_snap_hash *out)
{
    static const unsigned char zeros[HED_SNAP_STRIPE];
    struct lanes l;

    begin_lanes(&l);
    for (size_t n = (size + HED_SNAP_STRIPE - 1) / HED_SNAP_STRIPE; n > 0; n--)
        take_stripes_fast(&l, zeros, 1);
    join_lanes(&l, size, out);
}
