/* Tests of fastlibs/convert: every number of 16 bits, and every way of rounding to one. */
#include "harness/unit.h"

#include <math.h>
#include <string.h>

#include "fastlibs/convert.h"

/* What the bits say, by the format's definition. */
static double
value_of(uint16_t h, int exponent_bits)
{
    const int fraction_bits = 15 - exponent_bits;
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = h >> fraction_bits & ((1 << exponent_bits) - 1);
    const int fraction = h & ((1 << fraction_bits) - 1);
    const double sign = h & 0x8000 ? -1 : 1;

    if (exponent == (1 << exponent_bits) - 1)
        return fraction ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - bias - fraction_bits);
    return sign * ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

static void
check_all(void (*from)(float *, const uint16_t *, int64_t),
          void (*to)(uint16_t *, const float *, int64_t), int exponent_bits)
{
    static uint16_t in[65536], back[65536];
    static float out[65536];

    for (unsigned i = 0; i < 65536; i++)
        in[i] = (uint16_t)i;
    from(out, in, 65536);
    to(back, out, 65536);
    for (unsigned i = 0; i < 65536; i++) {
        const double want = value_of(in[i], exponent_bits);

        if (isnan(want)) {
            assert_true(isnan(out[i]));
            assert_true(isnan(value_of(back[i], exponent_bits)));
            continue;
        }
        assert_true((double)out[i] == want);
        assert_int_equal(signbit(out[i]) != 0, in[i] >> 15);
        assert_int_equal(back[i], in[i]);
    }
}

/* Between each two neighbours: below, at and above the middle. */
static void
check_rounding(void (*to)(uint16_t *, const float *, int64_t), int exponent_bits, unsigned last)
{
    for (unsigned i = 0; i < last; i++) {
        const double a = value_of((uint16_t)i, exponent_bits);
        const double b = i + 1 == last ? ldexp(1, (1 << (exponent_bits - 1)))
                                       : value_of((uint16_t)(i + 1), exponent_bits);
        const float middle = (float)((a + b) / 2);
        const float in[] = {nextafterf(middle, 0), middle, nextafterf(middle, INFINITY), -middle};
        uint16_t out[4];

        if ((double)middle != (a + b) / 2 || isinf(middle))
            continue; /* subnormal bfloats have no middle among the floats */
        to(out, in, 4);
        assert_int_equal(out[0], i);
        assert_int_equal(out[1], i + (i & 1));
        assert_int_equal(out[2], i + 1);
        assert_int_equal(out[3], 0x8000 | (i + (i & 1)));
    }
}

static void
halves(void **state)
{
    (void)state;
    check_all(hed_convert_from_f16, hed_convert_to_f16, 5);
    check_rounding(hed_convert_to_f16, 5, 0x7c00);
}

static void
bfloats(void **state)
{
    (void)state;
    check_all(hed_convert_from_bf16, hed_convert_to_bf16, 8);
    check_rounding(hed_convert_to_bf16, 8, 0x7f80);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves),
        cmocka_unit_test(bfloats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
