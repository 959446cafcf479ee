/* Operations on bits: what they make of classes. See transfer.h.
 *
 * Where all lanes have the same bits from bit k on, and known ones below it, an operation on bits
 * keeps that apart:
 *
 *      %tid.x             n | 00000 00001 00010 00011 ...     n: the first lane's, a multiple of 32
 *      shr 2              n >> 2 | 000 000 000 000 001 ...
 *      and 3              n & 3  |   0   1   2   3   0 ...
 */
#include "base/number.h"
#include "kernel/ptx/pass/class.h"
#include "kernel/ptx/pass/transfer.h"

#define OPERANDS_MAX 3

static const struct hed_uniform varies = {.kind = HED_VARIES, .wraps = HED_FLOW_NONE};
static const struct hed_uniform unknown = {.kind = HED_UNKNOWN, .wraps = HED_FLOW_NONE};

/* ---- what is known of bits ------------------------------------------------------------------- */

/* An operand: all lanes have the same bits from bit `most` on, and the lowest `most` bits of the
 * first lane's number are 0, unless all of it is known. */
struct bits {
    struct hed_uniform class;
    int64_t lanes[HED_PTX_LANES];
    unsigned least; /* the fewest bits that hold the differences */
    unsigned most;  /* the most bits that can be told apart from the rest */
};

static bool
read_bits(struct hed_uniform c, unsigned width, struct bits *out)
{
    int64_t most = 0;

    out->class = c;
    if (!hed_class_get_offsets(c, out->lanes))
        return false;
    for (unsigned i = 0; i < HED_PTX_LANES; i++) {
        if (out->lanes[i] < 0)
            return false;
        most = out->lanes[i] > most ? out->lanes[i] : most;
    }
    out->least = most ? 64 - (unsigned)__builtin_clzll((uint64_t)most) : 0;
    out->most = c.is_constant ? width : (unsigned)hed_min(c.align, width);
    return out->least <= out->most;
}

/* The lowest bits of one lane. */
static uint64_t
low_bits(const struct bits *b, unsigned lane, unsigned count)
{
    const uint64_t mask = count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX;

    return ((b->class.is_constant ? b->class.constant : 0) + (uint64_t)b->lanes[lane]) & mask;
}

/* The table of a function of up to three bits, as lop3 has it: a is bit 2 of the index. */
static uint64_t
combine(unsigned table, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t r = 0;

    for (unsigned i = 0; i < 8; i++)
        if (table >> i & 1)
            r |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return r;
}

/* An and with a constant has no bits above that one's. */
static unsigned
below_of_table(unsigned table, const struct bits *in, unsigned n)
{
    unsigned least = 64, most = 0;
    bool all = true;

    if (table & 1)
        return 0;
    for (unsigned k = 0; k < n; k++) {
        const unsigned below = in[k].class.below;

        all = all && below;
        most = (unsigned)hed_max(most, below);
        /* The result is 0 wherever operand k is. */
        if (below && (table & (k == 0 ? 0x0f : k == 1 ? 0x33 : 0x55)) == 0)
            least = (unsigned)hed_min(least, below);
    }
    return least < 64 ? least : all ? most : 0;
}

/* The first lane's number: how many of its lowest bits are 0. */
static unsigned
align_of_table(unsigned table, const struct bits *in, unsigned n)
{
    unsigned least = 63, most = 0;

    for (unsigned k = 0; k < n; k++) {
        const unsigned align = in[k].class.align;

        least = (unsigned)hed_min(least, align);
        if ((table & (k == 0 ? 0x0f : k == 1 ? 0x33 : 0x55)) == 0)
            most = (unsigned)hed_max(most, align);
    }
    return table & 1 ? 0 : (unsigned)hed_max(least, most);
}

/* A number of the first lane that is below the unit that it is a multiple of is 0. */
static struct hed_uniform
settle_align(struct hed_uniform r)
{
    if (r.kind != HED_VARIES && r.below && r.below <= r.align)
        r.align = 63;
    return r;
}

/* Each bit is a function of the bits of the operands at the same place. */
static struct hed_uniform
combine_classes(const struct hed_uniforms *u, const struct hed_uniform *classes, unsigned n,
                unsigned table, unsigned width)
{
    struct bits in[OPERANDS_MAX] = {{.least = 0}};
    int64_t lanes[HED_PTX_LANES];
    uint64_t first = 0;
    unsigned k = 0;

    bool all = true;

    for (unsigned o = 0; o < n; o++)
        all = all && classes[o].is_constant;
    if (all) {
        const uint64_t v = combine(table, classes[0].constant, n > 1 ? classes[1].constant : 0,
                                   n > 2 ? classes[2].constant : 0);

        return hed_class_constant(width < 64 ? v & ((UINT64_C(1) << width) - 1) : v);
    }
    for (unsigned o = 0; o < n; o++) {
        if (!read_bits(classes[o], width, &in[o]))
            return varies;
        k = (unsigned)hed_max(k, in[o].least);
    }
    for (unsigned o = 0; o < n; o++)
        if (in[o].most < k)
            return varies;
    for (unsigned i = 0; i < HED_PTX_LANES; i++) {
        const uint64_t mask = k < 64 ? (UINT64_C(1) << k) - 1 : UINT64_MAX;
        const uint64_t v =
            combine(table, low_bits(&in[0], i, k), n > 1 ? low_bits(&in[1], i, k) : 0,
                    n > 2 ? low_bits(&in[2], i, k) : 0) &
            mask;

        first = i == 0 ? v : first;
        lanes[i] = (int64_t)(v - first);
    }
    return settle_align(hed_class_below(
        hed_class_offsets(u, lanes, first ? hed_class_align(first) : align_of_table(table, in, n)),
        below_of_table(table, in, n), width));
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* The tables of and, or, xor, not: of a and b, whatever c. */
static unsigned
table_of(const struct hed_ptx_inst *i)
{
    switch (i->form->op) {
    case HED_PTX_OP_AND:
        return 0xc0;
    case HED_PTX_OP_OR:
        return 0xfc;
    case HED_PTX_OP_XOR:
        return 0x3c;
    case HED_PTX_OP_NOT:
        return 0x0f;
    default:
        return (unsigned)(i->operands[4].bits & 255); /* lop3 */
    }
}

static struct hed_uniform
logic_class(const struct hed_uniforms *u, const struct hed_ptx_inst *i, unsigned width)
{
    const unsigned n = i->form->op == HED_PTX_OP_NOT ? 1 : i->form->op == HED_PTX_OP_LOP3 ? 3 : 2;
    struct hed_uniform in[OPERANDS_MAX];

    for (unsigned k = 0; k < n; k++) {
        in[k] = hed_transfer_operand(u, i, k + 1, width);
        if (in[k].kind == HED_UNKNOWN)
            return unknown;
    }
    return combine_classes(u, in, n, table_of(i), width);
}

/* A number of which the lowest bits are known is shifted to the right. */
static struct hed_uniform
shift_right(const struct hed_uniforms *u, struct hed_uniform a, unsigned by, unsigned width)
{
    struct bits in;
    int64_t lanes[HED_PTX_LANES];

    if (!read_bits(a, width, &in))
        return varies;
    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        lanes[i] = in.lanes[i] >> by;
    return settle_align(hed_class_below(hed_class_offsets(u, lanes,
                                                          a.align == 63  ? 63
                                                          : a.align > by ? a.align - by
                                                                         : 0),
                                        !a.below        ? 0
                                        : a.below <= by ? 1
                                                        : a.below - by,
                                        width));
}

static struct hed_uniform
shift_class(const struct hed_uniforms *u, const struct hed_ptx_inst *i, unsigned width)
{
    const struct hed_uniform a = hed_transfer_operand(u, i, 1, width);
    const struct hed_uniform by = hed_uniform_operand(u, &i->operands[2]);

    if (a.kind == HED_UNKNOWN || by.kind == HED_UNKNOWN)
        return unknown;
    if (!by.is_constant || by.constant >= width)
        return varies;
    if (i->form->op == HED_PTX_OP_SHR)
        return shift_right(u, a, (unsigned)by.constant, width);
    if (by.constant >= 24)
        return varies;
    return hed_class_below(hed_class_scale(u, a, INT64_C(1) << by.constant),
                           a.below ? a.below + (unsigned)by.constant : 0, width);
}

/* bfe.u32 is a shift and a mask. */
static struct hed_uniform
extract_class(const struct hed_uniforms *u, const struct hed_ptx_inst *i, unsigned width)
{
    const struct hed_uniform a = hed_transfer_operand(u, i, 1, width);
    const struct hed_uniform from = hed_uniform_operand(u, &i->operands[2]);
    const struct hed_uniform count = hed_uniform_operand(u, &i->operands[3]);
    struct hed_uniform in[2];

    if (a.kind == HED_UNKNOWN || from.kind == HED_UNKNOWN || count.kind == HED_UNKNOWN)
        return unknown;
    if (hed_ptx_types[i->form->types[0]].kind == HED_PTX_KIND_S || !from.is_constant ||
        !count.is_constant || from.constant >= width || count.constant >= width)
        return varies;
    in[0] = shift_right(u, a, (unsigned)from.constant, width);
    in[1] = hed_class_constant((UINT64_C(1) << count.constant) - 1);
    return in[0].kind == HED_VARIES ? varies : combine_classes(u, in, 2, 0xc0, width);
}

struct hed_uniform
hed_transfer_bits(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    const unsigned width = hed_ptx_types[i->form->types[0]].bits;

    if (u->width != HED_PTX_LANES || width < 16)
        return varies;
    switch (i->form->op) {
    case HED_PTX_OP_SHL:
    case HED_PTX_OP_SHR:
        return shift_class(u, i, width);
    case HED_PTX_OP_BFE:
        return extract_class(u, i, width);
    default:
        return logic_class(u, i, width);
    }
}
