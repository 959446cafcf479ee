/* Rows: the table, the inputs, and the module's text. See rows.h. */
#include "rows.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- references of approximations: exact in double ------------------------------------------- */

static double
ftz(double x)
{
    return fabs(x) < 0x1p-126 ? copysign(0, x) : x;
}

#define REFERENCE(name, expr)                                                  \
    static double ref_##name(double a, double b)                               \
    {                                                                          \
        (void)b;                                                               \
        return expr;                                                           \
    }                                                                          \
    __attribute__((unused)) static double ref_##name##_ftz(double a, double b) \
    {                                                                          \
        a = ftz(a);                                                            \
        b = ftz(b);                                                            \
        (void)b;                                                               \
        return ftz(expr);                                                      \
    }

/* "For 2^126 < |b| < 2^128, if a is infinity, div.approx returns NaN, otherwise it returns 0": PTX
 * ISA, div. */
static double
divide_fast(double a, double b)
{
    if (fabs(b) > 0x1p126 && !isinf(b))
        return isinf(a) || isnan(a) ? NAN : a * copysign(0, b);
    return a / b;
}

/* rcp and rsqrt .approx.ftz.f64 use only the upper half of their input. */
static double
high_half(double a)
{
    uint64_t bits;

    memcpy(&bits, &a, sizeof(bits));
    bits &= UINT64_C(0xffffffff00000000);
    memcpy(&a, &bits, sizeof(bits));
    return fabs(a) < 0x1p-1022 ? copysign(0, a) : a;
}

static double
ref_rcp64(double a, double b)
{
    (void)b;
    a = 1 / high_half(a);
    return fabs(a) < 0x1p-1022 ? copysign(0, a) : a;
}

static double
ref_rsqrt64(double a, double b)
{
    (void)b;
    return 1 / sqrt(high_half(a));
}

REFERENCE(rcp, 1 / a)
REFERENCE(sqrt, sqrt(a))
REFERENCE(rsqrt, 1 / sqrt(a))
REFERENCE(ex2, exp2(a))
REFERENCE(lg2, log2(a))
REFERENCE(sin, sin(a))
REFERENCE(cos, cos(a))
REFERENCE(tanh, tanh(a))
REFERENCE(div, divide_fast(a, b))
REFERENCE(full, a / b)
#define ref_ex2_f16 ref_ex2
#define ref_ex2_bf16 ref_ex2_ftz
#define ref_tanh_f16 ref_tanh
#define ref_tanh_bf16 ref_tanh

/* ---- the table ------------------------------------------------------------------------------- */

#define ROW(set, signature, text) {text, signature, ROWS_##set, 0, 0, NULL, false},
#define APPROX(set, signature, limit, ref, text) \
    {text, signature, ROWS_##set, limit, ref_##ref, false},
#define ZERO(set, signature, text) {text, signature, ROWS_##set, 0, 0, NULL, true},
#define ULP(n) ROWS_ULP, n
#define ABS(n) ROWS_ABS, n
#define REL(n) ROWS_REL, n
#define HALF(n) ROWS_HALF, n
#define HIGH() ROWS_HIGH, 0

const struct row rows[] = {
#include "rows_table.def"
};
const unsigned rows_count = sizeof(rows) / sizeof(rows[0]);

uint64_t rows_seed;

/* ---- inputs ---------------------------------------------------------------------------------- */

static uint64_t
random_bits(uint64_t *state)
{
    /* splitmix64 */
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static const uint64_t edges_int[] = {
    0,
    1,
    2,
    3,
    7,
    8,
    15,
    16,
    31,
    32,
    33,
    63,
    64,
    65,
    127,
    128,
    255,
    256,
    0x7fff,
    0x8000,
    0x8001,
    0xffff,
    0x10000,
    0x1234567,
    0x7fffffff,
    0x80000000,
    0x80000001,
    0xfffffffe,
    0xffffffff,
    0x7fffffffffffffff,
    0x8000000000000000,
    0xffffffffffffffff,
};

static const uint64_t edges_f16[] = {
    0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x83ff, 0x0400, 0x8400, 0x3c00, 0xbc00,
    0x3c01, 0x3bff, 0x3800, 0xb800, 0x3e00, 0x4000, 0xc200, 0x4c00, 0x5bff, 0x7800,
    0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7c01, 0x7fff,
};

static const uint64_t edges_bf16[] = {
    0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x807f, 0x0080, 0x8080, 0x3f80, 0xbf80,
    0x3f81, 0x3f7f, 0x3f00, 0xbf00, 0x3fc0, 0x4000, 0xc040, 0x437f, 0x4f00, 0x5f00,
    0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0xffc1, 0x7f81, 0x7fff,
};

static const uint64_t edges_f32[] = {
    0x00000000,
    0x80000000,
    0x00000001,
    0x80000001,
    0x007fffff,
    0x807fffff,
    0x00800000,
    0x80800000,
    0x3f800000,
    0xbf800000,
    0x3f800001,
    0x3f7fffff,
    0x3f000000,
    0xbf000000,
    0x3fc00000,
    0x40200000,
    0x437f8000,
    0x4effffff,
    0x4f000000,
    0xcf000000,
    0x4f800000,
    0x5f000000,
    0xdf000000,
    0x7f7fffff,
    0xff7fffff,
    0x7f800000,
    0xff800000,
    0x7fc00000,
    0xffc12345,
    0x7f812345,
    0x7fffffff,
    /* Their product is just under the smallest normal number. */
    0x32918e00,
    0x0d612000,
};

static const uint64_t edges_f64[] = {
    0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x8000000000000001,
    0x000fffffffffffff, 0x800fffffffffffff, 0x0010000000000000, 0x8010000000000000,
    0x3ff0000000000000, 0xbff0000000000000, 0x3ff0000000000001, 0x3fefffffffffffff,
    0x3fe0000000000000, 0x3ff8000000000000, 0x4004000000000000, 0x41dfffffffc00000,
    0x41efffffffe00000, 0xc1e0000000200000, 0x43e0000000000000, 0xc3e0000000000000,
    0x47efffffefffffff, 0x47effffff0000000, 0x36a0000000000000, 0x3690000000000000,
    0x380fffffffffffff, 0x7fefffffffffffff, 0xffefffffffffffff, 0x7ff0000000000000,
    0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000012345, 0x7ff0000000012345,
    0x7ff4deadbeefcafe, 0xffffffffffffffff,
};

struct numbers {
    const uint64_t *edges;
    unsigned nedges;
    unsigned bits, mantissa, bias; /* of a float; bits 0 for integers */
};

#define EDGES(name) edges_##name, sizeof(edges_##name) / sizeof(uint64_t)

static const struct numbers numbers[ROWS_SETS] = {
    [ROWS_I16] = {EDGES(int), 0, 0, 0},        [ROWS_I32] = {EDGES(int), 0, 0, 0},
    [ROWS_I64] = {EDGES(int), 0, 0, 0},        [ROWS_F16] = {EDGES(f16), 16, 10, 15},
    [ROWS_BF16] = {EDGES(bf16), 16, 7, 127},   [ROWS_F16X2] = {EDGES(f16), 16, 10, 15},
    [ROWS_BF16X2] = {EDGES(bf16), 16, 7, 127}, [ROWS_F32] = {EDGES(f32), 32, 23, 127},
    [ROWS_TRIG] = {EDGES(f32), 32, 23, 127},   [ROWS_F64] = {EDGES(f64), 64, 52, 1023},
    [ROWS_F32X2] = {EDGES(f32), 32, 23, 127},
};

/* Half of the random floats lie near one, a quarter near the smallest ones; the rest anywhere. */
static uint64_t
random_number(const struct numbers *n, uint64_t *state, unsigned range)
{
    const uint64_t r = random_bits(state);

    if (n->bits == 0)
        return (r & 3) == 0 ? r >> (r >> 2 & 63) : random_bits(state);

    const uint64_t sign = (r >> 8 & 1) << (n->bits - 1);
    const uint64_t mantissa = random_bits(state) & ((UINT64_C(1) << n->mantissa) - 1);
    uint64_t exponent = random_bits(state) & ((UINT64_C(1) << (n->bits - 1 - n->mantissa)) - 1);

    if (r & 1)
        exponent = n->bias + (r >> 16) % range - range / 2;
    else if ((r & 3) == 0)
        exponent = (r >> 16) % 4;
    return sign | exponent << n->mantissa | mantissa;
}

static uint64_t
number(enum rows_set set, unsigned i, unsigned place, uint64_t *state)
{
    const struct numbers *n = &numbers[set];
    const unsigned ne = n->nedges;
    const unsigned pairs = ne * ne < ROWS_INPUTS * 3 / 4 ? ne * ne : ROWS_INPUTS * 3 / 4;
    const uint64_t drawn = random_number(n, state, n->bits == 16 ? 8 : 20);

    if (i >= pairs || rows_seed)
        return drawn;
    /* A step that has no factor in common with the count meets every pair early. */
    const unsigned k = (unsigned)((uint64_t)i * 389 % (ne * ne));

    return n->edges[place == 0 ? k % ne : place == 1 ? k / ne : (k * 7 + k / ne) % ne];
}

void
rows_inputs(enum rows_set set, uint64_t *in)
{
    uint64_t state = 0x68656464 + (uint64_t)set + (rows_seed << 32);
    const bool two16 = set == ROWS_F16X2 || set == ROWS_BF16X2;

    for (unsigned i = 0; i < ROWS_INPUTS; i++) {
        for (unsigned place = 0; place < 3; place++) {
            uint64_t v = number(set, i, place, &state);

            if (two16)
                v |= number(set, (i * 5 + 3) % ROWS_INPUTS, place, &state) << 16;
            if (set == ROWS_F32X2)
                v |= number(set, (i * 5 + 3) % ROWS_INPUTS, place, &state) << 32;
            in[3 * i + place] = v;
        }
        /* Some sums cancel: c is near -a*b. */
        if (set == ROWS_F32 && i % 8 == 7) {
            const uint32_t a = (uint32_t)in[3 * i];
            const uint32_t b = (uint32_t)in[3 * i + 1];
            float x, y;
            uint32_t c;

            memcpy(&x, &a, sizeof(x));
            memcpy(&y, &b, sizeof(y));
            x = -(x * y);
            memcpy(&c, &x, sizeof(c));
            if (x == x)
                in[3 * i + 2] = c;
        }
        /* Within 256, except for values that are no number. */
        if (set == ROWS_TRIG && (in[3 * i] >> 23 & 255) > 134 && (in[3 * i] >> 23 & 255) < 255)
            in[3 * i] = (in[3 * i] & 0x807fffff) | (120 + (in[3 * i] >> 23 & 15) % 15) << 23;
    }
}

/* ---- text ------------------------------------------------------------------------------------ */

struct text {
    char *p;
    size_t len, room;
};

__attribute__((format(printf, 2, 3))) static void
put(struct text *t, const char *fmt, ...)
{
    char line[512];
    va_list args;

    va_start(args, fmt);
    const int n = vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    if (t->len + (size_t)n + 1 > t->room) {
        t->room = (t->room + (size_t)n) * 2 + 4096;
        t->p = realloc(t->p, t->room);
        if (!t->p)
            abort();
    }
    memcpy(t->p + t->len, line, (size_t)n + 1);
    t->len += (size_t)n;
}

static const char *
register_type(char letter)
{
    return letter == 'p' ? "pred" : letter == 'h' ? "b16" : letter == 'w' ? "b32" : "b64";
}

/* The text with its registers in place: $a of letter w is %wa, $d is d. */
static void
put_instruction(struct text *t, const struct row *r)
{
    for (const char *p = r->text; *p; p++) {
        if (*p != '$') {
            put(t, "%c", *p);
        } else {
            const char c = *++p;

            if (c >= 'a' && c <= 'c')
                put(t, "%%%c%c", r->signature[c - 'a'], c);
            else
                put(t, "%c", c);
        }
    }
}

static void
put_row(struct text *t, const struct row *r, unsigned at)
{
    const char *out = strchr(r->signature, ':') + 1;
    const char *to = "%dx";

    put(t, "{\n.reg .%s d;\n.reg .%s e;\n", register_type(out[0]),
        register_type(out[1] ? out[1] : 'w'));
    put_instruction(t, r);
    put(t, "\n");
    for (unsigned i = 0; i < 2 && out[i]; i++, to = "%dy") {
        const char c = "de"[i];

        if (out[i] == 'p')
            put(t, "selp.b64 %s, 1, 0, %c;\n", to, c);
        else if (out[i] == 'd')
            put(t, "mov.b64 %s, %c;\n", to, c);
        else
            put(t, "cvt.u64.u%d %s, %c;\n", out[i] == 'h' ? 16 : 32, to, c);
    }
    if (out[1])
        put(t, "shl.b64 %%dy, %%dy, 32;\nor.b64 %%dx, %%dx, %%dy;\n");
    put(t, "st.global.b64 [%%dout+%u], %%dx;\n}\n", at * ROWS_INPUTS * 8);
}

static void
put_kernel(struct text *t, const struct rows_kernel *k)
{
    put(t, ".visible .entry %s(.param .b64 in, .param .b64 out)\n{\n", k->name);
    put(t,
        ".reg .b16 %%ha, %%hb, %%hc;\n.reg .b32 %%wa, %%wb, %%wc, %%wi, %%wj, %%wk;\n"
        ".reg .b64 %%da, %%db, %%dc, %%din, %%dout, %%dx, %%dy;\n.reg .pred %%pa, %%pb, %%pc;\n");
    put(t, "mov.u32 %%wi, %%ctaid.x;\nmov.u32 %%wj, %%ntid.x;\nmov.u32 %%wk, %%tid.x;\n"
           "mad.lo.u32 %%wi, %%wi, %%wj, %%wk;\n");
    put(t, "ld.param.b64 %%din, [in];\nld.param.b64 %%dout, [out];\n"
           "mul.wide.u32 %%dx, %%wi, 24;\nadd.u64 %%din, %%din, %%dx;\n"
           "mul.wide.u32 %%dx, %%wi, 8;\nadd.u64 %%dout, %%dout, %%dx;\n");
    for (unsigned i = 0; i < 3; i++) {
        const char c = (char)('a' + (int)i);

        put(t, "ld.global.b64 %%d%c, [%%din+%u];\ncvt.u32.u64 %%w%c, %%d%c;\n", c, i * 8, c, c);
        put(t, "cvt.u16.u64 %%h%c, %%d%c;\nand.b64 %%dx, %%d%c, 1;\n", c, c, c);
        put(t, "setp.ne.u64 %%p%c, %%dx, 0;\n", c);
    }
    for (unsigned i = 0; i < k->count; i++)
        put_row(t, &rows[k->rows[i]], i);
    put(t, "ret;\n}\n");
}

char *
rows_module(const struct rows_kernel *kernels, unsigned count, bool on_new)
{
    struct text t = {0};

    put(&t, ".version %s\n.target %s\n.address_size 64\n", on_new ? "8.8" : "8.2",
        on_new ? "sm_100a" : "sm_90");
    for (unsigned i = 0; i < count; i++)
        put_kernel(&t, &kernels[i]);
    return t.p;
}

struct rows_kernel *
rows_kernels(bool on_new, unsigned *count)
{
    struct rows_kernel *list = calloc(rows_count, sizeof(*list));
    unsigned n = 0;

    if (!list)
        abort();
    for (unsigned set = 0; set < ROWS_SETS; set++) {
        struct rows_kernel *k = NULL;

        for (unsigned i = 0; i < rows_count; i++) {
            if (rows[i].on_new != on_new || rows[i].set != set)
                continue;
            if (!k || k->count == ROWS_A_KERNEL) {
                k = &list[n++];
                snprintf(k->name, sizeof(k->name), "k%u", i);
                k->set = (uint8_t)set;
            }
            k->rows[k->count++] = i;
        }
    }
    *count = n;
    return list;
}

/* ---- comparing ------------------------------------------------------------------------------- */

uint64_t
rows_hash(const uint64_t *out)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (unsigned i = 0; i < ROWS_INPUTS; i++) {
        for (unsigned k = 0; k < 64; k += 8)
            h = (h ^ (out[i] >> k & 255)) * 0x100000001b3u;
    }
    return h;
}

static double
as_double(uint64_t v, unsigned bits, unsigned mantissa)
{
    const uint64_t m = v & ((UINT64_C(1) << mantissa) - 1);
    const unsigned width = bits - 1 - mantissa;
    const int e = (int)(v >> mantissa & ((1u << width) - 1));
    const int bias = (1 << (width - 1)) - 1;
    const double sign = v >> (bits - 1) & 1 ? -1 : 1;
    double d;

    if (bits == 64) {
        memcpy(&d, &v, sizeof(d));
        return d;
    }

    if (e == 2 * bias + 1)
        return m ? NAN : sign * INFINITY;
    if (e == 0)
        return sign * ldexp((double)m, 1 - bias - (int)mantissa);
    return sign * ldexp((double)(m | UINT64_C(1) << mantissa), e - bias - (int)mantissa);
}

/* To nearest even, from an exact double. */
static uint64_t
from_double(double d, unsigned bits, unsigned mantissa)
{
    const unsigned width = bits - 1 - mantissa;
    const int bias = (1 << (width - 1)) - 1;
    const uint64_t inf = ((UINT64_C(1) << width) - 1) << mantissa;
    const uint64_t sign = signbit(d) ? UINT64_C(1) << (bits - 1) : 0;
    int e;

    if (isnan(d))
        return inf | UINT64_C(1) << (mantissa - 1);
    if (isinf(d))
        return sign | inf;
    frexp(d, &e);
    e = e - 1 < 1 - bias ? 1 - bias : e - 1;

    const uint64_t m = (uint64_t)rint(ldexp(fabs(d), (int)mantissa - e));
    const uint64_t r = ((uint64_t)(e + bias - 1) << mantissa) + m;

    return sign | (d == 0 ? 0 : r > inf ? inf : r);
}

uint64_t
rows_reference(const struct row *r, const uint64_t *in)
{
    const struct numbers *n = &numbers[r->set];
    const bool is_pair = r->set == ROWS_F16X2 || r->set == ROWS_BF16X2;
    const uint64_t mask = n->bits == 64 ? UINT64_MAX : (UINT64_C(1) << n->bits) - 1;
    uint64_t out = 0;

    for (unsigned h = 0; h <= is_pair; h++) {
        const double a = as_double(in[0] >> (16 * h) & mask, n->bits, n->mantissa);
        const double b = as_double(in[1] >> (16 * h) & mask, n->bits, n->mantissa);

        out |= from_double(r->reference(a, b), n->bits, n->mantissa) << (16 * h);
    }
    return out;
}

static bool
near(const struct row *r, uint64_t got, uint64_t want, unsigned bits, unsigned mantissa)
{
    const double g = as_double(got, bits, mantissa);
    const double w = as_double(want, bits, mantissa);

    if (got == want || (isnan(g) && isnan(w)))
        return true;
    if (!isfinite(g) || !isfinite(w) || (r->kind == ROWS_HIGH && (g == 0) != (w == 0)))
        return false;

    const double off = fabs(g - w);
    int e;

    frexp(w, &e);
    if (e < 3 - (1 << (bits - 2 - mantissa)))
        e = 3 - (1 << (bits - 2 - mantissa));
    if (r->kind == ROWS_ABS)
        return off <= ldexp(fabs(w) > 1 ? fabs(w) : 1, r->limit);
    if (r->kind == ROWS_REL)
        return off <= ldexp(fabs(w), r->limit);
    if (r->kind == ROWS_HIGH)
        return off <= ldexp(fabs(w), -19);
    return off <= r->limit * ldexp(1, e - 1 - (int)mantissa);
}

bool
rows_near(const struct row *r, uint64_t got, uint64_t want)
{
    switch ((enum rows_set)r->set) {
    case ROWS_F16X2:
        return near(r, got & 0xffff, want & 0xffff, 16, 10) &&
               near(r, got >> 16 & 0xffff, want >> 16 & 0xffff, 16, 10);
    case ROWS_BF16X2:
        return near(r, got & 0xffff, want & 0xffff, 16, 7) &&
               near(r, got >> 16 & 0xffff, want >> 16 & 0xffff, 16, 7);
    case ROWS_F16:
        return near(r, got, want, 16, 10);
    case ROWS_BF16:
        return near(r, got, want, 16, 7);
    case ROWS_F64:
        return near(r, got, want, 64, 52);
    default:
        return near(r, got, want, 32, 23);
    }
}
