/* Tests of the matrix products that have code of their own (run/product.c): the same bits as plain
 * loops over rows, columns and k, for numbers of all kinds. */
#include "harness/unit.h"

#include <math.h>

#include "kernel/ptx/ptx.h"
#include "kernel/ptx/run/group.h"
#include "kernel/ptx/run/small_float.h"

#define LANES HED_PTX_LANES
#define ROWS 16
#define COLUMNS 8
#define WORDS 16 /* of a lane: more than any of these products has */

static uint32_t
next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

/* Any bits now and then, so that there are infinities, subnormal numbers and numbers that are none;
 * else a number near 1. */
static uint32_t
random_factor(uint64_t *state, enum hed_ptx_type t)
{
    const uint32_t bits = next_random(state), small = next_random(state) % 64 ? 1 : 0;

    if (!small)
        return t == HED_PTX_TYPE_TF32 ? bits : bits & 0xffff;
    if (t == HED_PTX_TYPE_TF32)
        return (bits & 0x807fffffu) | (126 + bits % 3) << 23;
    if (t == HED_PTX_TYPE_BF16)
        return (bits & 0x807f) | (126 + bits % 3) << 7;
    return (bits & 0x83ff) | (14 + bits % 3) << 10;
}

static float
factor_value(uint32_t bits, enum hed_ptx_type t)
{
    if (t == HED_PTX_TYPE_TF32)
        return hed_from_bits32(bits & 0xffffe000u);
    return t == HED_PTX_TYPE_BF16 ? hed_from_bits32(bits << 16) : hed_from_f16((uint16_t)bits);
}

struct product {
    uint32_t a[ROWS][16], b[16][COLUMNS], c[ROWS][COLUMNS];
};

/* Puts the elements where the PTX manual says that the lanes have them. */
static void
spread_elements(const struct product *p, enum hed_ptx_type t, unsigned k,
                uint32_t words[LANES][WORDS])
{
    const unsigned each = t == HED_PTX_TYPE_TF32 ? 1 : 2; /* in a register */
    const unsigned a_words = ROWS * k / LANES / each, b_words = k * COLUMNS / LANES / each;

    for (unsigned lane = 0; lane < LANES; lane++) {
        const unsigned group = lane / 4, place = lane % 4;

        for (unsigned n = 0; n < a_words * each; n++) {
            const unsigned r = n / each;

            words[lane][r] |=
                p->a[group + 8 * (r & 1)][each * place + n % each + 4 * each * (r >> 1)]
                << 16 * (n % each);
        }
        for (unsigned n = 0; n < b_words * each; n++)
            words[lane][a_words + n / each] |=
                p->b[each * place + n % each + 4 * each * (n / each)][group] << 16 * (n % each);
        for (unsigned i = 0; i < 4; i++)
            words[lane][a_words + b_words + i] = p->c[group + 8 * (i / 2)][2 * place + i % 2];
    }
}

static uint32_t
plain_sum(const struct product *p, enum hed_ptx_type t, unsigned k, unsigned row, unsigned column)
{
    float sum = hed_from_bits32(p->c[row][column]);

    for (unsigned i = 0; i < k; i++)
        sum = fmaf(factor_value(p->a[row][i], t), factor_value(p->b[i][column], t), sum);
    return isnan(sum) ? 0x7fffffffu : hed_to_bits32(sum);
}

static void
check_product(enum hed_ptx_type t, unsigned k, bool is_strided, uint64_t seed)
{
    const struct hed_ptx_mma m = {.m = ROWS,
                                  .n = COLUMNS,
                                  .k = (uint16_t)k,
                                  .a = t,
                                  .b = t,
                                  .c = HED_PTX_TYPE_F32,
                                  .d = HED_PTX_TYPE_F32};
    uint32_t words[LANES][WORDS] = {{0}}, strided[WORDS][LANES] = {{0}};
    void *data[LANES];
    unsigned in, out;
    struct product p;

    for (unsigned i = 0; i < ROWS * k; i++)
        p.a[i / k][i % k] = random_factor(&seed, t);
    for (unsigned i = 0; i < k * COLUMNS; i++)
        p.b[i / COLUMNS][i % COLUMNS] = random_factor(&seed, t);
    for (unsigned i = 0; i < ROWS * COLUMNS; i++)
        p.c[i / COLUMNS][i % COLUMNS] = random_factor(&seed, HED_PTX_TYPE_TF32);
    spread_elements(&p, t, k, words);
    for (unsigned lane = 0; lane < LANES; lane++) {
        for (unsigned i = 0; i < WORDS; i++)
            strided[i][lane] = words[lane][i];
        data[lane] = is_strided ? &strided[0][lane] : words[lane];
    }
    hed_ptx_mma_words(&m, &in, &out);
    assert_int_equal(out, 4);
    assert_true(hed_ptx_mma_usual(data, &m, is_strided));
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned i = 0; i < out; i++)
            assert_int_equal(is_strided ? strided[in + i][lane] : words[lane][in + i],
                             plain_sum(&p, t, k, lane / 4 + 8 * (i / 2), 2 * (lane % 4) + i % 2));
}

static void
products_have_the_bits_of_plain_loops(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++)
        for (unsigned is_strided = 0; is_strided < 2; is_strided++) {
            for (unsigned k = 8; k <= 16; k += 8) {
                check_product(HED_PTX_TYPE_F16, k, is_strided, seed);
                check_product(HED_PTX_TYPE_BF16, k, is_strided, seed);
            }
            for (unsigned k = 4; k <= 8; k += 4)
                check_product(HED_PTX_TYPE_TF32, k, is_strided, seed);
        }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(products_have_the_bits_of_plain_loops),
};

HED_UNIT_MAIN(tests)
