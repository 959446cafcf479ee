/* The bounds of values: they start as unknown, and grow until nothing changes; one that grows again
 * is given up, so that a loop's counter does not grow bit by bit. See bounds.h.
 */
#include "kernel/ptx/pass/bounds.h"

#include "base/number.h"

/* Positions in a block and in a grid are below 2 to the power of this. */
#define THREAD_BITS 10 /* a block has at most 1024 threads */
#define LANE_BITS 5
#define GRID_X_BITS 31
#define GRID_BITS 16

#define UNKNOWN 0 /* nothing was seen that gives the value */

struct bounding {
    struct hed_flow *f;
    const struct hed_ssa *ssa;
    uint8_t *bounds;
    bool changed;
};

static unsigned
width_of_type(unsigned t)
{
    return hed_ptx_types[t].bits;
}

static unsigned
bits_of_number(uint64_t v)
{
    return v ? 64 - (unsigned)__builtin_clzll(v) : 1;
}

/* ---- operands -------------------------------------------------------------------------------- */

static unsigned
bound_of_sreg(const struct hed_ptx_operand *o)
{
    const bool is_x = o->sel < 2;

    switch (o->sreg) {
    case HED_PTX_SREG_TID:
        return THREAD_BITS;
    case HED_PTX_SREG_NTID:
        return THREAD_BITS + 1;
    case HED_PTX_SREG_LANEID:
        return LANE_BITS;
    case HED_PTX_SREG_CTAID:
    case HED_PTX_SREG_NCTAID:
        return is_x ? GRID_X_BITS : GRID_BITS;
    default:
        return 64;
    }
}

unsigned
hed_bounds_operand(const uint8_t *bounds, const struct hed_ptx_operand *o, unsigned bits)
{
    const uint64_t all = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;

    switch (o->kind) {
    case HED_PTX_OPERAND_REG:
        return o->sel ? bits : (unsigned)hed_min(bounds[o->reg->id], bits);
    case HED_PTX_OPERAND_INT:
        return bits_of_number(o->bits & all);
    case HED_PTX_OPERAND_SREG:
        return (unsigned)hed_min(bound_of_sreg(o), bits);
    default:
        return bits;
    }
}

/* A constant, whose value is *v? */
static bool
is_number(const struct hed_ptx_operand *o, uint64_t *v)
{
    *v = o->bits;
    return o->kind == HED_PTX_OPERAND_INT;
}

/* What is divided by 0 gives all ones, and so does the rest. */
static bool
may_be_zero(const struct hed_ptx_operand *o)
{
    uint64_t v;

    return !is_number(o, &v) || v == 0;
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* The operands' bounds; false while one is not known yet. */
static bool
read_bounds(const struct bounding *b, const struct hed_ptx_inst *i, unsigned bits, unsigned *in)
{
    for (unsigned k = 1; k < 4; k++) {
        const struct hed_ptx_operand *o = &i->operands[k];

        in[k - 1] = k < i->noperands ? hed_bounds_operand(b->bounds, o, bits) : 64;
        if (in[k - 1] == UNKNOWN)
            return false;
    }
    return true;
}

/* Bits of the result are 0 where those of the operands are; see lop3. */
static unsigned
bound_of_table(unsigned table, const unsigned *in)
{
    static const unsigned zero[3] = {0x0f, 0x33, 0x55}; /* where an operand's bit is 0 */
    unsigned least = 64, most = 0;

    if (table & 1)
        return 64;
    for (unsigned k = 0; k < 3; k++) {
        most = (unsigned)hed_max(most, in[k]);
        if ((table & zero[k]) == 0)
            least = (unsigned)hed_min(least, in[k]);
    }
    return (unsigned)hed_min(least, most);
}

static unsigned
bound_of_product(const struct hed_ptx_inst *i, const unsigned *in, unsigned bits)
{
    const bool is_signed = hed_ptx_types[i->form->types[0]].kind == HED_PTX_KIND_S;

    if (is_signed && (in[0] >= bits || in[1] >= bits))
        return 64;
    if (i->form->part == HED_PTX_PART_HI)
        return in[0] + in[1] > bits ? in[0] + in[1] - bits : 1;
    return in[0] + in[1];
}

static unsigned
bound_of_shift(const struct hed_ptx_inst *i, const unsigned *in, unsigned bits)
{
    uint64_t by;
    const bool is_known = is_number(&i->operands[2], &by) && by < bits;

    if (i->form->op == HED_PTX_OP_SHL)
        return is_known ? in[0] + (unsigned)by : 64;
    if (hed_ptx_types[i->form->types[0]].kind == HED_PTX_KIND_S && in[0] >= bits)
        return 64;
    return is_known ? (unsigned)hed_max(in[0], by + 1) - (unsigned)by : in[0];
}

static unsigned
bound_of_field(const struct hed_ptx_inst *i, const unsigned *in)
{
    uint64_t count;

    if (hed_ptx_types[i->form->types[0]].kind == HED_PTX_KIND_S ||
        !is_number(&i->operands[3], &count))
        return 64;
    return (unsigned)hed_clamp(count & 255, 1, in[0]);
}

static unsigned
bound_of_conversion(const struct bounding *b, const struct hed_ptx_inst *i)
{
    const unsigned from = i->form->types[1], kind = hed_ptx_types[from].kind;
    const unsigned to = i->form->types[0], bits = width_of_type(from);
    unsigned in;

    if (i->form->ntypes != 2 || (i->form->flags & HED_PTX_FLAG(SAT)) ||
        (kind != HED_PTX_KIND_S && kind != HED_PTX_KIND_U) ||
        hed_ptx_types[to].kind == HED_PTX_KIND_F)
        return 64;
    in = hed_bounds_operand(b->bounds, &i->operands[1], bits);
    /* cvt.s8.s32: what is cut gets a sign. */
    if (hed_ptx_types[to].kind == HED_PTX_KIND_S && in >= width_of_type(to))
        return 64;
    return in == UNKNOWN || kind == HED_PTX_KIND_U || in < bits ? in : 64;
}

/* mov.b64 %d, {%r, %r} */
static unsigned
bound_of_words(const struct bounding *b, const struct hed_ptx_operand *o)
{
    unsigned low, high;

    if (o->count != 2)
        return 64;
    low = hed_bounds_operand(b->bounds, &o->elems[0], 32);
    high = hed_bounds_operand(b->bounds, &o->elems[1], 32);
    if (low == UNKNOWN || high == UNKNOWN)
        return UNKNOWN;
    return o->elems[1].kind == HED_PTX_OPERAND_INT && o->elems[1].bits == 0 ? low : 32 + high;
}

/* 64: any. */
static unsigned
bound_of_result(const struct bounding *b, const struct hed_ptx_inst *i)
{
    const unsigned bits = width_of_type(i->form->types[0]);
    const bool is_signed = hed_ptx_types[i->form->types[0]].kind == HED_PTX_KIND_S;
    const bool is_wide = i->form->part == HED_PTX_PART_WIDE;
    unsigned in[3];

    if (i->is_refused || hed_ptx_types[i->form->types[0]].kind == HED_PTX_KIND_F ||
        (i->form->flags & (HED_PTX_FLAG(CC) | HED_PTX_FLAG(SAT))))
        return 64;
    if (i->form->op == HED_PTX_OP_CVT)
        return bound_of_conversion(b, i);
    if (i->form->op == HED_PTX_OP_LD)
        return is_signed ? 64 : bits;
    if (i->form->op == HED_PTX_OP_MOV && i->operands[1].kind == HED_PTX_OPERAND_VEC)
        return bits == 64 ? bound_of_words(b, &i->operands[1]) : 64;
    if (!read_bounds(b, i, bits, in))
        return UNKNOWN;
    switch (i->form->op) {
    case HED_PTX_OP_MOV:
        return in[0];
    case HED_PTX_OP_ADD:
        return (unsigned)hed_max(in[0], in[1]) + 1;
    case HED_PTX_OP_MUL:
        return bound_of_product(i, in, bits);
    case HED_PTX_OP_MAD:
        if (is_wide)
            in[2] = hed_bounds_operand(b->bounds, &i->operands[3], 2 * bits);
        return in[2] == UNKNOWN ? UNKNOWN
                                : (unsigned)hed_max(bound_of_product(i, in, bits), in[2]) + 1;
    case HED_PTX_OP_AND:
        return (unsigned)hed_min(in[0], in[1]);
    case HED_PTX_OP_OR:
    case HED_PTX_OP_XOR:
        return (unsigned)hed_max(in[0], in[1]);
    case HED_PTX_OP_LOP3:
        return bound_of_table((unsigned)i->operands[4].bits & 255, in);
    case HED_PTX_OP_SHL:
    case HED_PTX_OP_SHR:
        return bound_of_shift(i, in, bits);
    case HED_PTX_OP_BFE:
        return bound_of_field(i, in);
    case HED_PTX_OP_SELP:
        return (unsigned)hed_max(in[0], in[1]);
    case HED_PTX_OP_DIV:
        return is_signed || may_be_zero(&i->operands[2]) ? 64 : in[0];
    case HED_PTX_OP_REM:
        return is_signed || may_be_zero(&i->operands[2]) ? 64 : (unsigned)hed_min(in[0], in[1]);
    default:
        return 64;
    }
}

/* ---- values ---------------------------------------------------------------------------------- */

/* The bound of a value is at least this. More bits than a sum can have say nothing: it wraps
 * around. */
static void
raise_bound(struct bounding *b, const struct hed_ptx_reg *r, unsigned bound)
{
    const unsigned width = width_of_type(r->type);
    uint8_t *was = &b->bounds[r->id];

    bound = (unsigned)hed_min(bound, width);
    if (bound == UNKNOWN || bound <= *was)
        return;
    *was = (uint8_t)(*was == UNKNOWN ? bound : width);
    b->changed = true;
}

struct writing {
    struct bounding *b;
    const struct hed_ptx_inst *inst;
    unsigned bound;
};

static void
write_bound(void *arg, const struct hed_ptx_reg **reg)
{
    struct writing *w = arg;
    const struct hed_ptx_reg *old = w->b->ssa->values[(*reg)->id].old;

    raise_bound(w->b, *reg, w->bound);
    if (w->inst->guard)
        raise_bound(w->b, *reg, old ? w->b->bounds[old->id] : 1);
}

/* The two words of a number of 64 bits. */
static bool
visit_words(struct bounding *b, struct hed_ptx_inst *i)
{
    const struct hed_ptx_operand *o = &i->operands[0];
    unsigned in;

    if (i->form->op != HED_PTX_OP_MOV || o->kind != HED_PTX_OPERAND_VEC || o->count != 2 ||
        width_of_type(i->form->types[0]) != 64)
        return false;
    in = hed_bounds_operand(b->bounds, &i->operands[1], 64);
    for (unsigned half = 0; half < 2; half++) {
        struct writing w = {.b = b, .inst = i};
        const struct hed_ptx_reg *r = o->elems[half].reg;

        w.bound = in == UNKNOWN ? UNKNOWN
                  : half == 0   ? (unsigned)hed_min(in, 32)
                  : in > 32     ? in - 32
                                : 1;
        if (o->elems[half].kind == HED_PTX_OPERAND_REG)
            write_bound(&w, &r);
    }
    return true;
}

static void
bound_inst(struct bounding *b, struct hed_ptx_inst *i)
{
    struct writing w = {.b = b, .inst = i};

    if (!i->is_refused && visit_words(b, i))
        return;
    /* Anything but a single number may be anything. */
    w.bound = i->noperands && i->operands[0].kind == HED_PTX_OPERAND_REG && !i->operands[0].sel
                  ? bound_of_result(b, i)
                  : 64;
    hed_flow_each_write(i, write_bound, &w);
}

static void
bound_block(struct bounding *b, const struct hed_flow_block *block)
{
    for (const struct hed_flow_phi *p = block->phis; p; p = p->next)
        for (uint32_t k = 0; k < block->nbefore; k++)
            raise_bound(b, p->to, p->from[k] ? b->bounds[p->from[k]->id] : 1);
    for (uint32_t i = 0; i < block->ninsts; i++)
        bound_inst(b, block->insts[i]);
}

uint8_t *
hed_bounds_init(struct hed_flow *f, const struct hed_ssa *ssa)
{
    struct bounding b = {.f = f, .ssa = ssa, .changed = true};

    b.bounds = hed_flow_alloc(f, f->nvalues, 1);
    if (!b.bounds)
        return NULL;
    for (uint32_t v = 0; v < f->nvalues; v++)
        if (!ssa->values[v].made_by && !ssa->values[v].phi)
            b.bounds[v] = 1; /* it is 0 */
    while (b.changed) {
        b.changed = false;
        for (uint32_t n = 0; n < f->nblocks; n++)
            bound_block(&b, &f->blocks[n]);
    }
    for (uint32_t v = 0; v < f->nvalues; v++)
        if (b.bounds[v] == UNKNOWN)
            b.bounds[v] = (uint8_t)width_of_type(f->values[v]->type);
    return b.bounds;
}
