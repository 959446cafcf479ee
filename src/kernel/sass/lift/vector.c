/* Integers in the unit of sm_90 that also knows pairs of 16 bits: VIADD, VIMNMX, VIMNMX3 and
 * VIADDMNMX. See inside.h for the rules. */
#include "kernel/sass/lift/family.h"
#include "kernel/sass/lift/inside.h"

enum { VI_U32, VI_S32, VI_U16X2, VI_S16X2 };

static const char *const vi_types[] = {"u32", "s32", "u16", "s16"};

/* What both halves of a register, or all of it, become. */
typedef const char *(*vi_fn)(struct lift *l, unsigned type, const char *const *in);

/* The halves of a word, in new registers of 16 bits. */
static void
split_word(struct lift *l, const char *word, const char *halves[2])
{
    halves[0] = hed_lift_temp(l, 'h');
    halves[1] = hed_lift_temp(l, 'h');
    hed_lift_calc(l, "mov.b32 {%s, %s}, %s", halves[0], halves[1], hed_lift_reg(l, word));
}

static char
temp_kind(unsigned type)
{
    return type >= VI_U16X2 ? 'h' : 't';
}

static void
put_each(struct lift *l, unsigned type, const char *const *in, unsigned count, vi_fn fn)
{
    const struct hed_sass_operand *d = hed_lift_operand(l, 0);
    const char *halves[3][2], *low[3] = {NULL}, *high[3] = {NULL}, *t;

    if (type < VI_U16X2) {
        t = fn(l, type, in);
        hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, d), t);
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        split_word(l, in[i], halves[i]);
        low[i] = halves[i][0];
        high[i] = halves[i][1];
    }

    const char *first = fn(l, type, low), *second = fn(l, type, high);

    hed_lift_put(l, "mov.b32 %s, {%s, %s}", hed_lift_def(l, d), first, second);
}

/* The smaller one or, if a predicate is false, the larger one. */
static const char *
choose_one(struct lift *l, unsigned type, const char *a, const char *b)
{
    const char kind = temp_kind(type);
    const char *t = hed_lift_temp(l, kind);
    bool is_min;
    const char *p = hed_lift_pred(l, 87, &is_min);

    if (!p) {
        hed_lift_calc(l, "%s.%s %s, %s, %s", is_min ? "min" : "max", vi_types[type], t, a, b);
        return t;
    }

    const char *low = hed_lift_temp(l, kind), *high = hed_lift_temp(l, kind);

    hed_lift_calc(l, "min.%s %s, %s, %s", vi_types[type], low, a, b);
    hed_lift_calc(l, "max.%s %s, %s, %s", vi_types[type], high, a, b);
    hed_lift_calc(l, "selp.b%d %s, %s, %s, %s", kind == 'h' ? 16 : 32, t, low, high, p);
    return t;
}

/* .RELU: not below zero. Only signed numbers have it. */
static const char *
clamped(struct lift *l, unsigned type, const char *v)
{
    const char *t;

    if (!hed_lift_has(l, "RELU"))
        return v;
    if (type == VI_U32 || type == VI_U16X2)
        hed_lift_refuse(l, "unsigned numbers that are not below zero");
    t = hed_lift_temp(l, temp_kind(type));
    hed_lift_calc(l, "max.%s %s, %s, 0", vi_types[type], t, v);
    return t;
}

static const char *
choose_two(struct lift *l, unsigned type, const char *const *in)
{
    return clamped(l, type, choose_one(l, type, in[0], in[1]));
}

static const char *
choose_three(struct lift *l, unsigned type, const char *const *in)
{
    return clamped(l, type, choose_one(l, type, choose_one(l, type, in[0], in[1]), in[2]));
}

static const char *
add_two(struct lift *l, unsigned type, const char *const *in)
{
    const char *t = hed_lift_temp(l, temp_kind(type));

    hed_lift_calc(l, "add.%s %s, %s, %s", vi_types[type], t, in[0], in[1]);
    return t;
}

static const char *
choose_sum(struct lift *l, unsigned type, const char *const *in)
{
    return clamped(l, type, choose_one(l, type, add_two(l, type, in), in[2]));
}

/* A negated pair of halves is none that compilers write. */
static const char *
vi_source(struct lift *l, unsigned n, unsigned type)
{
    const struct hed_sass_operand *o = hed_lift_operand(l, n);

    if (o->negate && type >= VI_U16X2)
        hed_lift_refuse(l, "a negated pair");
    return hed_lift_u32(l, o);
}

static void
lift_vector(struct lift *l, unsigned type, unsigned count, vi_fn fn)
{
    const char *in[3];

    for (unsigned i = 0; i < count; i++)
        in[i] = vi_source(l, i + 1, type);
    put_each(l, type, in, count, fn);
}

void
hed_lift_vector_add(struct lift *l)
{
    lift_vector(l, hed_sass_bits(l->inst, 73, 1) ? VI_U16X2 : VI_U32, 2, add_two);
}

void
hed_lift_vector_min_max(struct lift *l)
{
    lift_vector(l, (unsigned)hed_sass_bits(l->inst, 72, 2), 2, choose_two);
}

void
hed_lift_vector_min_max3(struct lift *l)
{
    lift_vector(l, (unsigned)hed_sass_bits(l->inst, 72, 2), 3, choose_three);
}

void
hed_lift_vector_add_min_max(struct lift *l)
{
    lift_vector(l, (unsigned)hed_sass_bits(l->inst, 72, 2), 3, choose_sum);
}
