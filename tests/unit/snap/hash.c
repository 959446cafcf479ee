/* Tests of the hash of chunks: the definition of hash.h written out plainly, and how well it tells
 * contents apart. */
#include "harness/unit.h"

#include <stdlib.h>
#include <string.h>

#include "move/file/hash.h"

#define BYTES (3 * HED_SNAP_STRIPE)

static uint64_t seed;

static uint64_t
next_number(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static void
fill_random(unsigned char *p, size_t n)
{
    seed = 88172645463325252;
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)next_number();
}

static uint64_t
plain_scatter(uint64_t n)
{
    n *= 0x9e3779b97f4a7c15;
    n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9;
    n = (n ^ n >> 27) * 0x94d049bb133111eb;
    return n ^ n >> 31;
}

static void
plain_mix(uint64_t *s)
{
    for (int i = 0; i < 3; i++) {
        uint64_t *to = &s[i % 2], *by = &s[1 - i % 2];

        *to += (uint64_t)(uint32_t)*by * (uint32_t)(*by >> 32);
        *by = *by << 32 | *by >> 32;
    }
}

static void
plain_hash(const unsigned char *p, size_t size, struct hed_snap_hash *out)
{
    uint64_t s[HED_SNAP_LANES][2];

    for (uint64_t i = 0; i < HED_SNAP_LANES; i++)
        for (uint64_t k = 0; k < 2; k++)
            s[i][k] = plain_scatter(2 * i + k + 1);
    for (size_t at = 0; at < size; at += HED_SNAP_STRIPE)
        for (size_t i = 0; i < HED_SNAP_LANES; i++) {
            for (size_t k = 0; k < 2; k++)
                for (size_t b = 0; b < 8; b++) {
                    const size_t from = at + 8 * (HED_SNAP_LANES * k + i) + b;

                    s[i][k] ^= (uint64_t)(from < size ? p[from] : 0) << (8 * b);
                }
            plain_mix(s[i]);
        }
    for (size_t n = HED_SNAP_LANES / 2; n > 0; n /= 2)
        for (size_t i = 0; i < n; i++) {
            plain_mix(s[i]);
            s[i][0] ^= s[i + n][0];
            s[i][1] ^= s[i + n][1];
            plain_mix(s[i]);
        }
    s[0][0] ^= size;
    for (int i = 0; i < 4; i++)
        plain_mix(s[0]);
    memcpy(out->w, s[0], sizeof out->w);
}

static void
is_what_the_header_says(void **state)
{
    static unsigned char p[BYTES + 1];
    static const size_t sizes[] = {0,    1,    7,    8,    9,    15,   16,    2047,      2048,
                                   2049, 4095, 4096, 4097, 6143, 8192, 10000, BYTES - 1, BYTES};

    fill_random(p, sizeof p);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (size_t shift = 0; shift < 2; shift++) {
            struct hed_snap_hash got, want;

            hed_snap_hash(p + shift, sizes[i], &got);
            plain_hash(p + shift, sizes[i], &want);
            assert_memory_equal(&got, &want, sizeof got);
        }
}

static void
never_changes(void **state)
{
    static unsigned char p[BYTES];
    struct hed_snap_hash h;

    /* Files hold these numbers, so no version of heddle may compute others. */
    hed_snap_hash(NULL, 0, &h);
    assert_int_equal(h.w[0], 0x1c14a9c796ea1928);
    assert_int_equal(h.w[1], 0xd25f4035e79479ad);
    fill_random(p, sizeof p);
    hed_snap_hash(p, 10000, &h);
    assert_int_equal(h.w[0], 0x21d02972dab376a4);
    assert_int_equal(h.w[1], 0x294aed607b537e62);
}

static void
zeros_need_no_memory(void **state)
{
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 65536, 2 << 20};
    unsigned char *p = calloc(1, 2 << 20);
    struct hed_snap_hash a, b, before = {{0}};

    assert_non_null(p);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        hed_snap_hash(p, sizes[i], &a);
        hed_snap_hash_zeros(sizes[i], &b);
        assert_true(hed_snap_hash_same(&a, &b));
        assert_false(hed_snap_hash_same(&a, &before)); /* each length has its own */
        before = a;
    }
    free(p);
}

static int
compare_hashes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct hed_snap_hash));
}

/* No two are equal, and neither are their halves (64 bits each). */
static void
assert_all_differ(struct hed_snap_hash *h, size_t n)
{
    for (int half = 0; half < 2; half++) {
        qsort(h, n, sizeof *h, compare_hashes);
        for (size_t i = 1; i < n; i++)
            assert_int_not_equal(h[i].w[0], h[i - 1].w[0]);
        for (size_t i = 0; i < n; i++)
            h[i] = (struct hed_snap_hash){{h[i].w[1], h[i].w[0]}};
    }
}

static void
every_bit_counts(void **state)
{
    static unsigned char p[BYTES];
    const size_t n = 8 * sizeof p;
    struct hed_snap_hash *h = calloc(2 * n + 1, sizeof *h);

    assert_non_null(h);
    for (int random = 0; random < 2; random++) {
        if (random)
            fill_random(p, sizeof p);
        hed_snap_hash(p, sizeof p, &h[n]);
        for (size_t i = 0; i < n; i++) {
            p[i / 8] ^= (unsigned char)(1 << i % 8);
            hed_snap_hash(p, sizeof p, &h[i]);
            p[i / 8] ^= (unsigned char)(1 << i % 8);
        }
        assert_all_differ(h, n + 1);
    }
    free(h);
}

static void
swap_words(unsigned char *p, size_t a, size_t b)
{
    uint64_t x, y;

    memcpy(&x, p + 8 * a, 8);
    memcpy(&y, p + 8 * b, 8);
    memcpy(p + 8 * a, &y, 8);
    memcpy(p + 8 * b, &x, 8);
}

static void
order_counts(void **state)
{
    static unsigned char p[BYTES];
    const size_t words = sizeof p / 8;
    struct hed_snap_hash *h = calloc(words * 3 + 1, sizeof *h);
    size_t n = 0;

    assert_non_null(h);
    fill_random(p, sizeof p);
    hed_snap_hash(p, sizeof p, &h[n++]);
    /* The neighbour (another lane), the other word of a lane, the same lane's next stripe. */
    for (size_t i = 0; i < words; i++) {
        const size_t others[] = {i + 1, i + HED_SNAP_LANES, i + 2 * HED_SNAP_LANES};

        for (int k = 0; k < 3; k++)
            if (others[k] < words) {
                swap_words(p, i, others[k]);
                hed_snap_hash(p, sizeof p, &h[n++]);
                swap_words(p, i, others[k]);
            }
    }
    assert_all_differ(h, n);
    free(h);
}

/* Pairs of flipped bits in one lane, where a weak mix would let the second hide the first. */
static void
a_second_change_does_not_hide_the_first(void **state)
{
    static unsigned char p[BYTES];
    struct hed_snap_hash *h = calloc(128 * 128, sizeof *h);
    size_t n = 0;

    assert_non_null(h);
    fill_random(p, sizeof p);
    for (size_t i = 0; i < 128; i++)
        for (size_t k = 0; k < 128; k++) {
            unsigned char *x = p + (i / 64 ? 2048 : 0) + i % 64 / 8;
            unsigned char *y = p + 4096 + (k / 64 ? 2048 : 0) + k % 64 / 8;

            *x ^= (unsigned char)(1 << i % 8);
            *y ^= (unsigned char)(1 << k % 8);
            hed_snap_hash(p, sizeof p, &h[n++]);
            *x ^= (unsigned char)(1 << i % 8);
            *y ^= (unsigned char)(1 << k % 8);
        }
    assert_all_differ(h, n);
    free(h);
}

/* A flipped bit of the input flips each bit of the hash half of the time. */
static void
changes_spread(void **state)
{
    enum { TRIES = 4096 };
    static unsigned char p[BYTES];
    unsigned flips[128] = {0};
    struct hed_snap_hash a, b;

    for (int t = 0; t < TRIES; t++) {
        /* The last bits of the last stripe are mixed least. */
        const size_t bit = 8 * (sizeof p - HED_SNAP_STRIPE) + (size_t)t * 8 % (8 * HED_SNAP_STRIPE);

        fill_random(p, 64);
        memcpy(p, &t, sizeof t);
        hed_snap_hash(p, sizeof p, &a);
        p[bit / 8] ^= (unsigned char)(0x80 >> t % 8);
        hed_snap_hash(p, sizeof p, &b);
        p[bit / 8] ^= (unsigned char)(0x80 >> t % 8);
        for (int i = 0; i < 128; i++)
            flips[i] += (a.w[i / 64] ^ b.w[i / 64]) >> i % 64 & 1;
    }
    for (int i = 0; i < 128; i++) /* 5 standard deviations of 32 */
        assert_in_range(flips[i], TRIES / 2 - 160, TRIES / 2 + 160);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(is_what_the_header_says),
    cmocka_unit_test(never_changes),
    cmocka_unit_test(zeros_need_no_memory),
    cmocka_unit_test(every_bit_counts),
    cmocka_unit_test(order_counts),
    cmocka_unit_test(a_second_change_does_not_hide_the_first),
    cmocka_unit_test(changes_spread),
};

HED_UNIT_MAIN(tests)
