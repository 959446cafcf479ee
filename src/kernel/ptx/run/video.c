/* The video instructions: select parts, extend, compute, saturate, combine. PTX ISA, "Scalar Video
 * Instructions" and "SIMD Video Instructions".
 */
#include "kernel/ptx/run/video.h"

#include <stdbool.h>
#include <stdlib.h>

#include "kernel/ptx/ptx.h"

static const struct {
    uint16_t one, two, four; /* enum hed_ptx_op: on one, two and four parts of a word; 0: none */
    uint8_t op;              /* enum hed_video_op */
} video_ops[] = {
    {HED_PTX_OP_VADD, HED_PTX_OP_VADD2, HED_PTX_OP_VADD4, HED_VIDEO_ADD},
    {HED_PTX_OP_VSUB, HED_PTX_OP_VSUB2, HED_PTX_OP_VSUB4, HED_VIDEO_SUB},
    {HED_PTX_OP_VABSDIFF, HED_PTX_OP_VABSDIFF2, HED_PTX_OP_VABSDIFF4, HED_VIDEO_ABSDIFF},
    {HED_PTX_OP_VMIN, HED_PTX_OP_VMIN2, HED_PTX_OP_VMIN4, HED_VIDEO_MIN},
    {HED_PTX_OP_VMAX, HED_PTX_OP_VMAX2, HED_PTX_OP_VMAX4, HED_VIDEO_MAX},
    {HED_PTX_OP_VSHL, 0, 0, HED_VIDEO_SHL},
    {HED_PTX_OP_VSHR, 0, 0, HED_VIDEO_SHR},
    {HED_PTX_OP_VMAD, 0, 0, HED_VIDEO_MAD},
    {HED_PTX_OP_VSET, HED_PTX_OP_VSET2, HED_PTX_OP_VSET4, HED_VIDEO_SET},
    {0, HED_PTX_OP_VAVRG2, HED_PTX_OP_VAVRG4, HED_VIDEO_AVRG},
};

/* Sets the operation and the number of parts it works on. */
static void
find_video_op(enum hed_ptx_op op, struct hed_video *v)
{
    for (size_t i = 0; i < sizeof(video_ops) / sizeof(video_ops[0]); i++) {
        v->op = video_ops[i].op & 15u;
        v->parts = op == video_ops[i].one    ? 1
                   : op == video_ops[i].two  ? 2
                   : op == video_ops[i].four ? 4
                                             : 0;
        if (v->parts)
            return;
    }
}

static unsigned
second_operation(enum hed_ptx_oper o)
{
    return o == HED_PTX_OPER_ADD ? 1 : o == HED_PTX_OPER_MIN ? 2 : o == HED_PTX_OPER_MAX ? 3 : 0;
}

struct hed_video
hed_video_describe(const struct hed_ptx_inst *i)
{
    const struct hed_ptx_form *f = i->form;
    /* vset has no type for its destination: 0 and 1 are the same in all types. */
    const unsigned sources = f->ntypes > 2 ? 1 : 0;
    struct hed_video v = {
        .d_signed = sources && hed_ptx_types[f->types[0]].kind == HED_PTX_KIND_S,
        .a_signed = hed_ptx_types[f->types[sources]].kind == HED_PTX_KIND_S,
        .b_signed = hed_ptx_types[f->types[sources + 1]].kind == HED_PTX_KIND_S,
        .sat = (f->flags & HED_PTX_FLAG(SAT)) != 0,
        .wrap = f->clamp == HED_PTX_CLAMP_WRAP,
        .second = second_operation(f->oper) & 3u,
        .merges = i->noperands > 3 && !second_operation(f->oper),
        .po = (f->flags & HED_PTX_FLAG(PO)) != 0,
        .shift = f->flags & HED_PTX_FLAG(SHR15)  ? 15
                 : f->flags & HED_PTX_FLAG(SHR7) ? 7
                                                 : 0,
        .negates_product = i->operands[1].negated != i->operands[2].negated,
        .negates_c = i->noperands > 3 && i->operands[3].negated,
        .cmp = f->cmp & 31u,
        .d_sel = i->operands[0].sel,
        .a_sel = i->operands[1].sel,
        .b_sel = i->operands[2].sel,
    };

    find_video_op(f->op, &v);
    return v;
}

uint32_t
hed_video_how(const struct hed_video *v)
{
    return v->op | v->parts << 4 | v->d_signed << 7 | v->a_signed << 8 | v->b_signed << 9 |
           v->sat << 10 | v->wrap << 11 | v->second << 12 | v->merges << 14 | v->po << 15 |
           v->shift << 16 | v->negates_product << 20 | v->negates_c << 21 | v->cmp << 22;
}

uint64_t
hed_video_selectors(const struct hed_video *v)
{
    return v->d_sel | (uint64_t)v->a_sel << 16 | (uint64_t)v->b_sel << 32;
}

static struct hed_video
unpack_video(uint32_t how, uint64_t selectors)
{
    return (struct hed_video){
        .op = how & 15,
        .parts = how >> 4 & 7,
        .d_signed = how >> 7 & 1,
        .a_signed = how >> 8 & 1,
        .b_signed = how >> 9 & 1,
        .sat = how >> 10 & 1,
        .wrap = how >> 11 & 1,
        .second = how >> 12 & 3,
        .merges = how >> 14 & 1,
        .po = how >> 15 & 1,
        .shift = how >> 16 & 15,
        .negates_product = how >> 20 & 1,
        .negates_c = how >> 21 & 1,
        .cmp = how >> 22 & 31,
        .d_sel = (uint16_t)selectors,
        .a_sel = (uint16_t)(selectors >> 16),
        .b_sel = (uint16_t)(selectors >> 32),
    };
}

/* Digit n of a selector, counted from the right; the first is the highest. */
static unsigned
digit(uint16_t sel, unsigned n)
{
    return sel >> (3 * n) & 7;
}

static unsigned
digits(uint16_t sel)
{
    return (sel >> 12 & 3) + 1u;
}

static int64_t
extend_part(uint64_t v, unsigned bits, bool is_signed)
{
    const unsigned above = 64 - bits;

    v <<= above;
    return is_signed ? (int64_t)v >> above : (int64_t)(v >> above);
}

static int64_t
clamp_part(int64_t v, unsigned bits, bool is_signed)
{
    const int64_t most = is_signed ? (INT64_C(1) << (bits - 1)) - 1 : (INT64_C(1) << bits) - 1;
    const int64_t least = is_signed ? -(INT64_C(1) << (bits - 1)) : 0;

    return v > most ? most : v < least ? least : v;
}

static bool
compare_parts(int64_t a, int64_t b, unsigned cmp)
{
    switch (cmp) {
    case HED_PTX_CMP_EQ:
        return a == b;
    case HED_PTX_CMP_NE:
        return a != b;
    case HED_PTX_CMP_LT:
        return a < b;
    case HED_PTX_CMP_LE:
        return a <= b;
    case HED_PTX_CMP_GT:
        return a > b;
    default:
        return a >= b;
    }
}

static int64_t
compute_part(const struct hed_video *v, int64_t a, int64_t b)
{
    const unsigned by = v->wrap ? (unsigned)b & 31 : b > 32 || b < 0 ? 32 : (unsigned)b;

    switch (v->op) {
    case HED_VIDEO_ADD:
        return a + b;
    case HED_VIDEO_SUB:
        return a - b;
    case HED_VIDEO_ABSDIFF:
        return a > b ? a - b : b - a;
    case HED_VIDEO_MIN:
        return a < b ? a : b;
    case HED_VIDEO_MAX:
        return a > b ? a : b;
    case HED_VIDEO_SHL:
        return (int64_t)((uint64_t)a << by);
    case HED_VIDEO_SHR:
        return a >> by;
    case HED_VIDEO_SET:
        return compare_parts(a, b, v->cmp);
    default:
        return (a + b + (a + b >= 0)) >> 1;
    }
}

static uint32_t
second(const struct hed_video *v, uint32_t r, uint32_t c)
{
    const bool less = v->d_signed ? (int32_t)r < (int32_t)c : r < c;

    if (v->second == 1)
        return r + c;
    return less == (v->second == 2) ? r : c;
}

/* ---- one lane -------------------------------------------------------------------------------- */

static int64_t
part(uint32_t v, uint16_t sel, bool is_signed)
{
    const unsigned bits = sel & HED_PTX_SEL_HALF ? 16 : 8;

    if (!sel)
        return extend_part(v, 32, is_signed);
    return extend_part((uint64_t)v >> (bits * digit(sel, 0)), bits, is_signed);
}

static uint32_t
single(const struct hed_video *v, uint32_t a, uint32_t b, uint32_t c)
{
    const unsigned bits = !v->d_sel ? 32 : v->d_sel & HED_PTX_SEL_HALF ? 16 : 8;
    int64_t r = compute_part(v, part(a, v->a_sel, v->a_signed), part(b, v->b_sel, v->b_signed));

    if (v->sat)
        r = clamp_part(r, bits, v->d_signed);
    if (v->second)
        return second(v, (uint32_t)r, c);
    if (v->merges && v->d_sel) {
        const unsigned at = bits * digit(v->d_sel, 0);
        const uint32_t mask = ((UINT32_C(1) << bits) - 1) << at;

        return (c & ~mask) | ((uint32_t)r << at & mask);
    }
    return (uint32_t)r;
}

static uint32_t
multiply_add(const struct hed_video *v, uint32_t a, uint32_t b, uint32_t c)
{
    const bool is_signed = v->a_signed || v->b_signed || v->negates_product || v->negates_c;
    __int128 r = (__int128)part(a, v->a_sel, v->a_signed) * part(b, v->b_sel, v->b_signed);
    int64_t addend;

    if (v->negates_product && !v->po)
        r = -r;
    if (v->negates_c && !v->po)
        c = ~c;
    addend = extend_part(c, 32, is_signed);
    r += addend + (v->po || v->negates_c);
    r >>= v->shift;
    if (v->sat) {
        const __int128 most = is_signed ? INT32_MAX : UINT32_MAX;
        const __int128 least = is_signed ? INT32_MIN : 0;

        r = r > most ? most : r < least ? least : r;
    }
    return (uint32_t)r;
}

/* ---- two and four parts ---------------------------------------------------------------------- */

static uint32_t
compute_parts(const struct hed_video *v, uint32_t a, uint32_t b, uint32_t c)
{
    const unsigned bits = 32 / v->parts;
    const uint64_t both = (uint64_t)b << 32 | a;
    const uint32_t mask = (UINT32_C(1) << bits) - 1;
    uint32_t sum = c;
    uint32_t out = c;

    for (unsigned i = 0; i < v->parts; i++) {
        const unsigned from_a = v->a_sel ? digit(v->a_sel, i) : i;
        const unsigned from_b = v->b_sel ? digit(v->b_sel, i) : i + v->parts;
        bool wanted = v->d_sel == 0;
        int64_t r = compute_part(v, extend_part(both >> (bits * from_a), bits, v->a_signed),
                                 extend_part(both >> (bits * from_b), bits, v->b_signed));

        for (unsigned k = 0; v->d_sel && k < digits(v->d_sel); k++)
            wanted |= digit(v->d_sel, k) == i;
        if (!wanted)
            continue;
        if (v->sat)
            r = clamp_part(r, bits, v->d_signed);
        sum += (uint32_t)r;
        out = (out & ~(mask << (bits * i))) | ((uint32_t)r & mask) << (bits * i);
    }
    return v->second ? sum : out;
}

uint32_t
hed_ptx_video(uint32_t a, uint32_t b, uint32_t c, uint32_t how, uint64_t selectors)
{
    const struct hed_video v = unpack_video(how, selectors);

    if (v.parts > 1)
        return compute_parts(&v, a, b, c);
    return v.op == HED_VIDEO_MAD ? multiply_add(&v, a, b, c) : single(&v, a, b, c);
}
