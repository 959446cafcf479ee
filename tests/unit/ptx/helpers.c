/* Tests of ptx/helpers: the functions that compiled kernels call, found by name as kernels find
 * them. The rows (tests/ptx/exec) test the instructions behind hed_ptx_*. */
#include "harness/unit.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

#include "kernel/ptx/ptx.h"
#include "kernel/ptx/run/abi.h"
#include "kernel/ptx/run/group.h"
#include "kernel/ptx/run/small_float.h"
#include "kernel/ptx/words.h"

typedef unsigned __int128 u128;
typedef __int128 i128;

static const void *
find_helper(const char *name)
{
    for (const struct hed_ptx_symbol *s = hed_ptx_helpers; s->name; s++) {
        if (strcmp(s->name, name) == 0)
            return s->address;
    }
    fail_msg("no helper %s", name);
    return NULL;
}

/* Returns a function pointer of the table. ISO C has no cast for this. */
#define FIND(type, variable, name)                \
    __typeof__(type) *variable;                   \
    {                                             \
        const void *found = find_helper(name);    \
        memcpy(&variable, &found, sizeof(found)); \
    }

static uint64_t
random_bits(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint64_t
bits_of(double d)
{
    uint64_t v;

    memcpy(&v, &d, sizeof(v));
    return v;
}

static double
double_of(uint64_t v)
{
    double d;

    memcpy(&d, &v, sizeof(d));
    return d;
}

static void
every_name_exists_once(void **state)
{
    (void)state;
    for (const struct hed_ptx_symbol *s = hed_ptx_helpers; s->name; s++) {
        assert_non_null(s->address);
        for (const struct hed_ptx_symbol *t = s + 1; t->name; t++)
            assert_string_not_equal(s->name, t->name);
    }
}

static void
every_half_survives_a_float(void **state)
{
    FIND(float(uint16_t), widen, "__gnu_h2f_ieee")
    FIND(uint16_t(float), narrow, "__gnu_f2h_ieee")

    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        const bool is_nan = (h & 0x7fff) > 0x7c00;
        const float f = widen((uint16_t)h);

        assert_int_equal(isnan(f) != 0, is_nan);
        if (!is_nan)
            assert_int_equal(narrow(f), h);
    }
    assert_true(widen(0x0001) == 0x1p-24f);
    assert_true(widen(0x3c00) == 1.0f);
    assert_true(widen(0x7bff) == 65504.0f);
}

static void
halves_are_rounded_to_nearest_even(void **state)
{
    FIND(float(uint16_t), widen, "__gnu_h2f_ieee")
    FIND(uint16_t(double), narrow, "__gnu_d2h_ieee")

    (void)state;
    /* Half way between two neighbours the even one is taken; slightly off it, the nearer one. */
    for (uint32_t h = 0; h < 0x7bff; h++) {
        const double low = (double)widen((uint16_t)h);
        const double high = (double)widen((uint16_t)(h + 1));
        const double middle = (low + high) / 2;

        assert_int_equal(narrow(middle), h + (h & 1));
        assert_int_equal(narrow(nextafter(middle, 0)), h);
        assert_int_equal(narrow(-nextafter(middle, 1e9)), 0x8000 | (h + 1));
    }
    assert_int_equal(narrow(65519.99), 0x7bff);
    assert_int_equal(narrow(65520), 0x7c00);
    assert_int_equal(narrow(0x1p-25), 0);
}

static void
long_division_never_traps(void **state)
{
    FIND(i128(i128, i128), divide, "__divti3")
    FIND(i128(i128, i128), rest, "__modti3")
    const i128 least = (i128)((u128)1 << 127);

    (void)state;
    assert_true(divide(-7, 2) == -3);
    assert_true(rest(-7, 2) == -1);
    assert_true(rest(7, -2) == 1);
    assert_true(divide(least, -1) == least);
    divide(1, 0);
    rest(1, 0);
}

static void
round_even_takes_halves_to_even(void **state)
{
    FIND(double(double), round_even, "roundeven")

    (void)state;
    assert_true(round_even(0.5) == 0 && !signbit(round_even(0.5)));
    assert_true(round_even(1.5) == 2);
    assert_true(round_even(-2.5) == -2);
    assert_true(round_even(-0.2) == 0 && signbit(round_even(-0.2)));
    assert_true(round_even(0x1.fffffffffffffp51) == 0x1p52);
    assert_true(isnan(round_even(NAN)));
    assert_true(isinf(round_even(INFINITY)));
}

/* The processor can round in all directions, and is the reference. */
static void
doubles_are_rounded_as_the_machine_does(void **state)
{
    static const struct {
        int machine;
        uint32_t mode;
    } modes[] = {{FE_TONEAREST, HED_PTX_ROUND_RN},
                 {FE_TOWARDZERO, HED_PTX_ROUND_RZ},
                 {FE_DOWNWARD, HED_PTX_ROUND_RM},
                 {FE_UPWARD, HED_PTX_ROUND_RP}};
    FIND(uint64_t(uint64_t, uint64_t, uint32_t), add, "hed_ptx_add_f64")
    FIND(uint64_t(uint64_t, uint64_t, uint32_t), mul, "hed_ptx_mul_f64")
    FIND(uint64_t(uint64_t, uint64_t, uint32_t), divide, "hed_ptx_div_f64")
    FIND(uint64_t(uint64_t, uint32_t), root, "hed_ptx_sqrt_f64")
    FIND(uint64_t(uint64_t, uint64_t, uint64_t, uint32_t), fused, "hed_ptx_fma_f64")
    uint64_t seed = 42;

    (void)state;
    for (unsigned i = 0; i < 200000; i++) {
        const uint64_t near = UINT64_C(0x3f) << 56 | random_bits(&seed) >> 10;
        const uint64_t bits[3] = {i & 1 ? near : random_bits(&seed), random_bits(&seed),
                                  i & 2 ? near ^ random_bits(&seed) << 40 : random_bits(&seed)};
        const volatile double a = double_of(bits[0]);
        const volatile double b = double_of(i & 4 ? near + (random_bits(&seed) & 7) : bits[1]);
        const volatile double c = double_of(bits[2]);

        for (unsigned k = 0; k < 4; k++) {
            const uint32_t m = modes[k].mode;

            fesetround(modes[k].machine);

            const volatile double results[] = {a + b, a * b, a / b, sqrt(a), fma(a, b, c)};

            fesetround(FE_TONEAREST);

            const uint64_t ours[] = {add(bits_of(a), bits_of(b), m), mul(bits_of(a), bits_of(b), m),
                                     divide(bits_of(a), bits_of(b), m), root(bits_of(a), m),
                                     fused(bits_of(a), bits_of(b), bits_of(c), m)};

            for (unsigned n = 0; n < 5; n++) {
                if (isnan(results[n]))
                    assert_true(isnan(double_of(ours[n])));
                else
                    assert_int_equal(ours[n], bits_of(results[n]));
            }
        }
    }
}

/* ---- matrices -------------------------------------------------------------------------------- */

#define WORDS 16 /* per lane: of a, b, c and d */

/* Element (row, column) of mma.m16n8k16 of halves: a in words 0 to 3, b in 4 and 5. */
static float
half_factor(uint32_t words[][WORDS], bool is_b, unsigned row, unsigned column)
{
    const unsigned k = is_b ? row : column, group = is_b ? column : row % 8;
    const unsigned word = is_b ? 4 + k / 8 : row / 8 + k / 8 * 2;
    const uint32_t v = words[group * 4 + k % 8 / 2][word];

    return hed_from_f16((uint16_t)(k % 2 ? v >> 16 : v));
}

static void
products_are_added_in_order(void **state)
{
    const struct hed_ptx_mma m = {
        16, 8, 16, HED_PTX_TYPE_F32, HED_PTX_TYPE_F16, HED_PTX_TYPE_F16, HED_PTX_TYPE_F32};
    uint32_t words[HED_PTX_LANES][WORDS], seed = 1;
    void *data[HED_PTX_LANES];

    (void)state;
    for (unsigned lane = 0; lane < HED_PTX_LANES; lane++) {
        data[lane] = words[lane];
        for (unsigned i = 0; i < WORDS; i++) {
            seed = seed * 1664525u + 1013904223u;
            words[lane][i] = seed & 0xbfffbfff; /* numbers, large and small */
        }
    }
    words[9][1] = 0x3c007e01; /* a NaN in row 10 */
    hed_ptx_mma(data, UINT32_MAX, hed_ptx_mma_pack(&m));
    for (unsigned row = 0; row < 16; row++) {
        for (unsigned column = 0; column < 8; column++) {
            const uint32_t *own = words[row % 8 * 4 + column / 2] + row / 8 * 2 + column % 2;
            float sum = hed_from_bits32(own[6]);

            for (unsigned k = 0; k < 16; k++)
                sum = fmaf(half_factor(words, false, row, k), half_factor(words, true, k, column),
                           sum);
            assert_int_equal(own[10], row == 10 ? 0x7fffffff : hed_to_bits32(sum));
        }
    }
}

/* Sums of bytes wrap around; signs are those of each matrix. */
static void
products_of_bytes_wrap_around(void **state)
{
    const struct hed_ptx_mma m = {
        16, 8, 16, HED_PTX_TYPE_S32, HED_PTX_TYPE_U8, HED_PTX_TYPE_S8, HED_PTX_TYPE_S32};
    uint32_t words[HED_PTX_LANES][WORDS];
    void *data[HED_PTX_LANES];

    (void)state;
    memset(words, 0xff, sizeof(words)); /* a: 255, b: -1 */
    for (unsigned lane = 0; lane < HED_PTX_LANES; lane++) {
        data[lane] = words[lane];
        for (unsigned i = 3; i < 7; i++)
            words[lane][i] = 0x80000000 + lane * 4 + i;
    }
    hed_ptx_mma(data, UINT32_MAX, hed_ptx_mma_pack(&m));
    for (unsigned lane = 0; lane < HED_PTX_LANES; lane++)
        for (unsigned i = 3; i < 7; i++)
            assert_int_equal(words[lane][i + 4], 0x80000000 + lane * 4 + i - 16 * 255);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(products_are_added_in_order),
    cmocka_unit_test(products_of_bytes_wrap_around),
    cmocka_unit_test(every_name_exists_once),
    cmocka_unit_test(every_half_survives_a_float),
    cmocka_unit_test(halves_are_rounded_to_nearest_even),
    cmocka_unit_test(long_division_never_traps),
    cmocka_unit_test(round_even_takes_halves_to_even),
    cmocka_unit_test(doubles_are_rounded_as_the_machine_does),
};

HED_UNIT_MAIN(tests)
