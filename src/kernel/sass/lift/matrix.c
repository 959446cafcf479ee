/* Products of matrices, whose parts lie in registers as PTX has them. See inside.h for the rules.
 */
#include <string.h>

#include "kernel/sass/lift/family.h"
#include "kernel/sass/lift/inside.h"
#include "kernel/sass/lift/memory.h"

/* A product: the shape, and how many registers hold the parts of d and c, of a and of b. */
struct product {
    const char *shape, *types;
    unsigned sums, a, b;
    bool sparse;
    const char *flags; /* ".satfinite", or "" */
};

/* ---- groups of registers --------------------------------------------------------------------- */

/* 1, 2 or 4 registers that are read; zeros for RZ. */
static const char *
source_group(struct lift *l, const struct hed_sass_operand *o, unsigned count)
{
    const char *regs[4], *zero = NULL;

    if (o->kind != HED_SASS_REG || o->negate || o->absolute)
        hed_lift_refuse(l, "a matrix with a sign");
    if (o->reg == HED_SASS_RZ) {
        zero = hed_lift_temp(l, 't');
        hed_lift_calc(l, "mov.b32 %s, 0", zero);
    }
    for (unsigned i = 0; i < count; i++)
        regs[i] = zero ? zero : hed_lift_nth(l, o, i);
    return hed_lift_braces(l, regs, count);
}

static const char *
result_group(struct lift *l, const struct hed_sass_operand *o, unsigned count)
{
    const char *regs[4];

    for (unsigned i = 0; i < count; i++)
        regs[i] = hed_lift_def_nth(l, o, i);
    return hed_lift_braces(l, regs, count);
}

/* ---- products -------------------------------------------------------------------------------- */

static void
put_product(struct lift *l, const struct product *m)
{
    const char *a = source_group(l, hed_lift_operand(l, 1), m->a);
    const char *b = source_group(l, hed_lift_operand(l, 2), m->b);
    const char *c = source_group(l, hed_lift_operand(l, 3), m->sums);
    const char *more = "", *d;

    if (m->sparse) {
        const struct hed_sass_operand *meta = hed_lift_operand(l, 4);

        more = hed_lift_text(l, ", %s, %u", hed_lift_word(l, meta),
                             (unsigned)hed_sass_bits(l->inst, 48, 2));
    }
    d = result_group(l, hed_lift_operand(l, 0), m->sums);
    hed_lift_put(l, "mma%s.sync.aligned.%s.row.col%s.%s %s, %s, %s, %s%s", m->sparse ? ".sp" : "",
                 m->shape, m->flags, m->types, d, a, b, c, more);
}

static void
refuse_product(struct lift *l)
{
    hed_lift_refuse(l, "a product of matrices that is not known");
}

static bool
has_uniform_predicate(const struct lift *l)
{
    for (unsigned i = 0; i < l->inst->operand_count; i++)
        if (l->inst->operands[i].kind == HED_SASS_UPRED)
            return true;
    return false;
}

void
hed_lift_half_product(struct lift *l)
{
    static const char *const inputs[] = {"f16", "bf16", "tf32", NULL};
    const bool low = hed_sass_bits(l->inst, 75, 1), high = hed_sass_bits(l->inst, 78, 1);
    const bool sparse = hed_sass_bits(l->inst, 73, 1), is_f32 = hed_sass_bits(l->inst, 76, 1);
    const char *in = inputs[hed_sass_bits(l->inst, 82, 2)];
    /* How many of a row's elements, in units of the smallest shape of the input's type. */
    unsigned k = high ? (low ? 32 : 4) : (low ? 16 : 8), least;
    struct product m = {.sparse = sparse, .sums = is_f32 ? 4 : 2, .flags = ""};

    if (!in || (!is_f32 && strcmp(in, "f16") != 0) || has_uniform_predicate(l) ||
        (l->inst->opcode & 0xff) != 0x3c) { /* the steps of sm_75 */
        refuse_product(l);
        return;
    }
    least = (strcmp(in, "tf32") == 0 ? 4u : 8u) * (sparse ? 2 : 1);
    if (k != least && k != 2 * least) {
        refuse_product(l);
        return;
    }
    m.a = k / least * 2;
    m.b = sparse ? m.a : k / least;
    m.shape = hed_lift_text(l, "m16n8k%u", k);
    m.types = is_f32 ? hed_lift_text(l, "f32.%s.%s.f32", in, in) : "f16.f16.f16.f16";
    put_product(l, &m);
}

void
hed_lift_integer_product(struct lift *l)
{
    /* By bits 85, 86 and 75; sparse ones apart. */
    static const struct {
        uint8_t rows, k;
    } shapes[2][8] = {
        {{8, 16}, {0, 0}, {8, 32}, {0, 0}, {16, 16}, {16, 32}, {16, 64}, {0, 0}},
        {{0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {16, 32}, {16, 64}, {16, 128}},
    };
    const bool sparse = hed_sass_bits(l->inst, 72, 1), four = hed_sass_bits(l->inst, 83, 1);
    const unsigned at =
        (unsigned)(hed_sass_bits(l->inst, 85, 2) << 1 | hed_sass_bits(l->inst, 75, 1));
    const unsigned rows = shapes[sparse][at].rows, k = shapes[sparse][at].k;
    const unsigned least = (four ? 32u : 16u) * (sparse ? 2 : 1);
    struct product m = {.sparse = sparse, .flags = hed_lift_has(l, "SAT") ? ".satfinite" : ""};

    if (!rows || hed_sass_bits(l->inst, 84, 1) != four || hed_sass_bits(l->inst, 77, 1) ||
        hed_sass_bits(l->inst, 79, 1) || (k != least && (k != 2 * least || rows == 8))) {
        refuse_product(l);
        return;
    }
    m.sums = rows == 8 ? 2 : 4;
    m.a = rows == 8 ? 1 : k / least * 2;
    m.b = sparse ? m.a : k / least;
    m.shape = hed_lift_text(l, "m%un8k%u", rows, k);
    m.types = hed_lift_text(l, "s32.%c%c.%c%c.s32", hed_sass_bits(l->inst, 76, 1) ? 's' : 'u',
                            four ? '4' : '8', hed_sass_bits(l->inst, 78, 1) ? 's' : 'u',
                            four ? '4' : '8');
    put_product(l, &m);
}

/* Bits: how many are 1 in the exclusive or, or in both. */
void
hed_lift_bit_product(struct lift *l)
{
    static const struct product shapes[] = {
        {.shape = "m8n8k128", .sums = 2, .a = 1, .b = 1},
        {.shape = "m16n8k128", .sums = 4, .a = 2, .b = 1},
        {.shape = "m16n8k256", .sums = 4, .a = 4, .b = 2},
    };
    const unsigned shape = (unsigned)hed_sass_bits(l->inst, 75, 2);
    struct product m;

    if (shape >= sizeof shapes / sizeof shapes[0] || !hed_lift_has(l, "POPC") ||
        hed_sass_bits(l->inst, 73, 2) != 2 || /* a by rows, b by columns */
        hed_lift_has(l, "XOR") == hed_lift_has(l, "AND")) {
        refuse_product(l);
        return;
    }
    m = shapes[shape];
    m.flags = "";
    m.types = hed_lift_has(l, "AND") ? "s32.b1.b1.s32.and.popc" : "s32.b1.b1.s32.xor.popc";
    put_product(l, &m);
}

/* A pair that is read, with its sign; zero for RZ. */
static const char *
double_source(struct lift *l, const struct hed_sass_operand *o, unsigned n)
{
    const char *v = o->reg == HED_SASS_RZ ? NULL : hed_lift_u64_nth(l, o, n), *q;

    if (o->kind != HED_SASS_REG)
        hed_lift_refuse(l, "a matrix that is not in registers");
    if (v && !o->negate && !o->absolute)
        return v;
    q = hed_lift_temp(l, 'q');
    hed_lift_calc(l, "mov.b64 %s, %s", q, v ? v : "0");
    if (o->absolute) {
        v = q;
        q = hed_lift_temp(l, 'q');
        hed_lift_calc(l, "and.b64 %s, %s, 0x7fffffffffffffff", q, v);
    }
    if (o->negate) {
        v = q;
        q = hed_lift_temp(l, 'q');
        hed_lift_calc(l, "xor.b64 %s, %s, 0x8000000000000000", q, v);
    }
    return q;
}

/* Doubles as a list in braces: "{%d0, %d2}". */
static const char *
double_sources(struct lift *l, const struct hed_sass_operand *o, unsigned count)
{
    const char *all = double_source(l, o, 0);

    for (unsigned i = 1; i < count; i++)
        all = hed_lift_text(l, "%s, %s", all, double_source(l, o, 2 * i));
    return all;
}

void
hed_lift_double_product(struct lift *l)
{
    static const struct {
        const char *shape;
        unsigned a, b, c; /* doubles of a lane */
    } shapes[] = {
        {"m8n8k4", 1, 1, 2}, {"m16n8k4", 2, 1, 4}, {"m16n8k8", 4, 2, 4}, {"m16n8k16", 8, 4, 4}};
    const unsigned n =
        hed_lift_arch(l) >= LIFT_HOPPER ? (unsigned)hed_sass_bits(l->inst, 76, 2) : 0;
    const struct hed_sass_operand *d = hed_lift_operand(l, 0);
    const char *a = double_sources(l, hed_lift_operand(l, 1), shapes[n].a);
    const char *b = double_sources(l, hed_lift_operand(l, 2), shapes[n].b);
    const char *c = double_sources(l, hed_lift_operand(l, 3), shapes[n].c), *results;

    if (hed_sass_bits(l->inst, 78, 2) || has_uniform_predicate(l)) {
        refuse_product(l);
        return;
    }
    results = hed_lift_def64_nth(l, d, 0);
    for (unsigned i = 1; i < shapes[n].c; i++)
        results = hed_lift_text(l, "%s, %s", results, hed_lift_def64_nth(l, d, 2 * i));
    hed_lift_put(l, "mma.sync.aligned.%s.row.col.f64.f64.f64.f64 {%s}, {%s}, {%s}, {%s}",
                 shapes[n].shape, results, a, b, c);
    for (unsigned i = 0; i < shapes[n].c; i++)
        hed_lift_end64_nth(l, d, 2 * i);
}

/* ---- moves ----------------------------------------------------------------------------------- */

void
hed_lift_load_matrix(struct lift *l)
{
    static const uint8_t counts[] = {1, 2, 4, 0};
    const unsigned count = counts[hed_sass_bits(l->inst, 72, 2)];
    const unsigned layout = (unsigned)hed_sass_bits(l->inst, 78, 2);
    const char *at = hed_lift_shared(l, hed_lift_operand(l, 1));

    if (!count || layout > 1) {
        hed_lift_refuse(l, "a matrix of another form");
        return;
    }
    hed_lift_put(l, "ldmatrix.sync.aligned.m8n8.x%u%s.shared.b16 %s, [%s]", count,
                 layout ? ".trans" : "", result_group(l, hed_lift_operand(l, 0), count), at);
}

/* STSM */
void
hed_lift_store_matrix(struct lift *l)
{
    static const uint8_t counts[] = {1, 2, 4, 0};
    const unsigned count = counts[hed_sass_bits(l->inst, 72, 2)];
    const unsigned layout = (unsigned)hed_sass_bits(l->inst, 78, 2);
    const struct hed_sass_operand *s = hed_lift_operand(l, 1);
    const char *at = hed_lift_shared(l, hed_lift_operand(l, 0)), *all = hed_lift_nth(l, s, 0);

    if (!count || layout > 1) {
        hed_lift_refuse(l, "a matrix of another form");
        return;
    }
    for (unsigned i = 1; i < count; i++)
        all = hed_lift_text(l, "%s, %s", all, hed_lift_nth(l, s, i));
    hed_lift_put(l, "stmatrix.sync.aligned.m8n8.x%u%s.shared.b16 [%s], {%s}", count,
                 layout ? ".trans" : "", at, all);
}

void
hed_lift_transpose(struct lift *l)
{
    const char *a = hed_lift_nth(l, hed_lift_operand(l, 1), 0);

    if (hed_sass_bits(l->inst, 78, 2))
        hed_lift_refuse(l, "a matrix of another form");
    else
        hed_lift_put(l, "movmatrix.sync.aligned.m8n8.trans.b16 %s, %s",
                     hed_lift_def(l, hed_lift_operand(l, 0)), a);
}
