/* Double arithmetic in all rounding directions, done with integers.
 *
 * A number is m * 2^exp with m of up to 128 bits. If anything was lost below m, its lowest bit is
 * set; that bit is far below the bits that decide the rounding. For NaNs the result is some NaN;
 * the caller chooses the right one.
 */
#include "kernel/ptx/run/soft.h"

#include <stdbool.h>
#include <stddef.h>

#include "kernel/ptx/words.h"

#define NAN_BITS UINT64_C(0x7ff8000000000000)
#define INF_BITS UINT64_C(0x7ff0000000000000)
#define SIGN_BIT (UINT64_C(1) << 63)
#define ONE_BITS UINT64_C(0x3ff0000000000000)

typedef unsigned __int128 wide;

struct number {
    bool negative;
    int exp;
    wide m;
};

/* The layout of a float. */
struct layout {
    unsigned bits, mantissa;
};

static const struct layout f64 = {64, 52};

static bool
is_nan_bits(uint64_t v)
{
    return (v & ~SIGN_BIT) > INF_BITS;
}

static bool
is_inf(uint64_t v)
{
    return (v & ~SIGN_BIT) == INF_BITS;
}

static struct number
unpack_number(uint64_t v)
{
    const int e = (int)(v >> 52 & 0x7ff);
    const uint64_t m = v & ((UINT64_C(1) << 52) - 1);

    return (struct number){
        .negative = v >> 63, .exp = (e ? e : 1) - 1075, .m = e ? m | UINT64_C(1) << 52 : m};
}

static unsigned
width_of(wide m)
{
    const uint64_t high = (uint64_t)(m >> 64);
    const uint64_t low = (uint64_t)m;

    if (high)
        return 128 - (unsigned)__builtin_clzll(high);
    return low ? 64 - (unsigned)__builtin_clzll(low) : 0;
}

/* Shifts right by n; the lowest bit is set if anything was shifted out. */
static wide
shift_down(wide m, unsigned n)
{
    if (n == 0)
        return m;
    if (n > 127)
        return m != 0;
    return m >> n | ((m << (128 - n)) != 0);
}

static bool
rounds_up(wide rest, wide half, bool odd, bool negative, uint32_t mode)
{
    switch (mode) {
    case HED_PTX_ROUND_RZ:
        return false;
    case HED_PTX_ROUND_RM:
        return rest && negative;
    case HED_PTX_ROUND_RP:
        return rest && !negative;
    default:
        return rest > half || (rest == half && odd);
    }
}

/* The bits of a number that is not zero, rounded. */
static uint64_t
pack_number(struct number n, struct layout f, uint32_t mode)
{
    const unsigned exponents = f.bits - 1 - f.mantissa;
    const int bias = (1 << (exponents - 1)) - 1;
    const int lowest = 1 - bias - (int)f.mantissa; /* exponent of the last bit of a subnormal */
    const uint64_t inf = ((UINT64_C(1) << exponents) - 1) << f.mantissa;
    const uint64_t sign = (uint64_t)n.negative << (f.bits - 1);
    unsigned w = width_of(n.m);

    /* Keep two bits below the last one: for one half, and for the rest. */
    if (w < f.mantissa + 3) {
        n.m <<= f.mantissa + 3 - w;
        n.exp -= (int)(f.mantissa + 3 - w);
        w = f.mantissa + 3;
    }

    int down = (int)(w - f.mantissa - 1);

    if (n.exp + down < lowest)
        down = lowest - n.exp;

    /* Everything is shifted out: the rest is less than half of the last bit. */
    const unsigned by = down > 126 ? 126 : (unsigned)down;

    n.m = shift_down(n.m, down > 126 ? (unsigned)(down - 126) : 0);

    wide q = n.m >> by;
    const wide rest = n.m - (q << by);

    q += rounds_up(rest, (wide)1 << (by - 1), q & 1, n.negative, mode);

    const int e = n.exp + down - lowest; /* 0 for subnormals and the first normal ones */
    const uint64_t r = ((uint64_t)e << f.mantissa) + (uint64_t)q;

    if (e > 2 * bias || r >= inf) {
        const bool away = mode == HED_PTX_ROUND_RN || (mode == HED_PTX_ROUND_RM && n.negative) ||
                          (mode == HED_PTX_ROUND_RP && !n.negative);

        return sign | (away ? inf : inf - 1);
    }
    return sign | r;
}

/* ---- operations ------------------------------------------------------------------------------ */

static uint64_t
add_numbers(struct number a, struct number b, uint32_t mode)
{
    if (a.m == 0 && b.m == 0)
        return a.negative == b.negative ? (uint64_t)a.negative << 63
                                        : (uint64_t)(mode == HED_PTX_ROUND_RM) << 63;
    /* Shift both to the top, less two bits, then the smaller one down to the other's exponent. */
    for (struct number *n = &a; n; n = n == &a ? &b : NULL) {
        const unsigned up = 126 - width_of(n->m);

        if (n->m == 0)
            continue;
        n->m <<= up;
        n->exp -= (int)up;
    }
    if (a.m == 0 || (b.m != 0 && b.exp > a.exp)) {
        const struct number t = a;

        a = b;
        b = t;
    }
    if (b.m)
        b.m = shift_down(b.m, (unsigned)(a.exp - b.exp));
    if (a.negative == b.negative) {
        a.m += b.m;
    } else if (a.m >= b.m) {
        a.m -= b.m;
    } else {
        a.m = b.m - a.m;
        a.negative = b.negative;
    }
    if (a.m == 0)
        return (uint64_t)(mode == HED_PTX_ROUND_RM) << 63;
    return pack_number(a, f64, mode);
}

uint64_t
hed_ptx_add_f64(uint64_t a, uint64_t b, uint32_t mode)
{
    if (is_nan_bits(a) || is_nan_bits(b) || (is_inf(a) && is_inf(b) && a != b))
        return NAN_BITS;
    if (is_inf(a) || is_inf(b))
        return is_inf(a) ? a : b;
    return add_numbers(unpack_number(a), unpack_number(b), mode);
}

uint64_t
hed_ptx_sub_f64(uint64_t a, uint64_t b, uint32_t mode)
{
    return hed_ptx_add_f64(a, b ^ SIGN_BIT, mode);
}

uint64_t
hed_ptx_fma_f64(uint64_t a, uint64_t b, uint64_t c, uint32_t mode)
{
    const uint64_t sign = (a ^ b) & SIGN_BIT;
    struct number x = unpack_number(a);
    const struct number y = unpack_number(b);

    if (is_nan_bits(a) || is_nan_bits(b) || is_nan_bits(c))
        return NAN_BITS;
    if (is_inf(a) || is_inf(b)) {
        if (((a | SIGN_BIT) == SIGN_BIT) || ((b | SIGN_BIT) == SIGN_BIT))
            return NAN_BITS;
        return is_inf(c) && c != (sign | INF_BITS) ? NAN_BITS : sign | INF_BITS;
    }
    if (is_inf(c))
        return c;
    x.m *= y.m;
    x.exp += y.exp;
    x.negative = sign != 0;
    return add_numbers(x, unpack_number(c), mode);
}

uint64_t
hed_ptx_mul_f64(uint64_t a, uint64_t b, uint32_t mode)
{
    const uint64_t sign = (a ^ b) & SIGN_BIT;
    struct number x = unpack_number(a);
    const struct number y = unpack_number(b);

    if (is_nan_bits(a) || is_nan_bits(b))
        return NAN_BITS;
    if (is_inf(a) || is_inf(b))
        return x.m == 0 || y.m == 0 ? NAN_BITS : sign | INF_BITS;
    x.m *= y.m;
    x.exp += y.exp;
    x.negative = sign != 0;
    return x.m == 0 ? sign : pack_number(x, f64, mode);
}

uint64_t
hed_ptx_div_f64(uint64_t a, uint64_t b, uint32_t mode)
{
    const uint64_t sign = (a ^ b) & SIGN_BIT;
    struct number x = unpack_number(a);
    const struct number y = unpack_number(b);

    if (is_nan_bits(a) || is_nan_bits(b) || (is_inf(a) && is_inf(b)) || (x.m == 0 && y.m == 0))
        return NAN_BITS;
    if (is_inf(a) || y.m == 0)
        return sign | INF_BITS;
    if (is_inf(b) || x.m == 0)
        return sign;

    /* The quotient gets at least 64 bits. */
    const unsigned up = 127 - width_of(x.m);

    x.m <<= up;

    const wide q = x.m / y.m;

    x = (struct number){sign != 0, x.exp - (int)up - y.exp, q << 1 | (x.m % y.m != 0)};
    x.exp--;
    return pack_number(x, f64, mode);
}

uint64_t
hed_ptx_rcp_f64(uint64_t a, uint32_t mode)
{
    return hed_ptx_div_f64(ONE_BITS, a, mode);
}

uint64_t
hed_ptx_sqrt_f64(uint64_t a, uint32_t mode)
{
    struct number x = unpack_number(a);
    wide root = 0;

    if (x.m == 0)
        return a;
    if (is_nan_bits(a) || a >> 63)
        return NAN_BITS;
    if (is_inf(a))
        return a;

    /* The exponent must be even, and there are as many bits as fit. */
    unsigned up = 126 - width_of(x.m);

    up -= (unsigned)(x.exp - (int)up) & 1;
    x.m <<= up;
    x.exp -= (int)up;
    for (wide bit = (wide)1 << 126, rest = x.m; bit; bit >>= 2) {
        if (rest >= root + bit) {
            rest -= root + bit;
            root = (root >> 1) + bit;
        } else {
            root >>= 1;
        }
        if (bit == 1)
            x.m = root << 1 | (rest != 0);
    }
    x.exp = x.exp / 2 - 1;
    return pack_number(x, f64, mode);
}

uint64_t
hed_ptx_round_int(uint64_t v, uint32_t how)
{
    const bool negative = (how >> 8 & 1) && v >> 63;
    const struct layout f = {how >> 16 & 255, how >> 24};
    const struct number n = {negative, 0, negative ? -v : v};

    return v ? pack_number(n, f, how & 255) : 0;
}
