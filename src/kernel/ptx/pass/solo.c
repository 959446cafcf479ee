/* The choice: what a loop costs either way, estimated from its instructions. See solo.h. */
#include "kernel/ptx/pass/solo.h"

#include "base/number.h"
#include "kernel/ptx/pass/transfer.h"
#include "kernel/ptx/run/abi.h"

/* What an instruction takes for 32 lanes, in instructions of the machine: measured on Neoverse-V1,
 * where a vector has 4 words. */
#define LANE_COST 32       /* one after the other */
#define WORDS_COST 8       /* vectors of 32 bits */
#define SCATTERED_COST 130 /* addresses go through memory */
#define PARTIAL_COST 48    /* a row of memory of which not all lanes run */
#define LONG_FACTOR 8      /* divisions, roots, approximations */

struct costs {
    uint64_t together, solo;
};

/* Do fewer and fewer lanes run, because they leave the loop or end one by one? */
static bool
thins_out(const struct hed_uniforms *u, uint32_t loop)
{
    bool ends = false;

    for (uint32_t b = u->f->loops[loop].header; b <= u->f->loops[loop].last; b++) {
        const struct hed_flow_block *block = &u->f->blocks[b];

        ends |= (block->end == HED_FLOW_LEAVES_IF || block->end == HED_FLOW_LEAVES_UNLESS) &&
                u->values[block->last->guard->id].kind != HED_UNIFORM;
    }
    return ends || u->leaves_singly[loop];
}

/* ---- may it? --------------------------------------------------------------------------------- */

static bool
is_plain_access(const struct hed_ptx_form *f)
{
    return (f->sem == HED_PTX_SEM_NONE || f->sem == HED_PTX_SEM_WEAK) && f->cop != HED_PTX_COP_CV &&
           !(f->flags & HED_PTX_FLAG(MMIO));
}

static bool
is_own_variable(const struct hed_ptx_operand *o)
{
    return (o->kind == HED_PTX_OPERAND_VAR ||
            (o->kind == HED_PTX_OPERAND_MEM && o->base == HED_PTX_OPERAND_VAR)) &&
           (o->var->space == HED_PTX_SPACE_LOCAL || o->var->space == HED_PTX_SPACE_PARAM);
}

/* A loop whose lanes stay together may be lockstep code that passes values through memory. Where
 * they leave one by one only shared memory is suspected. */
static bool
may_store_solo(const struct hed_ptx_form *f, bool thins)
{
    return thins && f->nspaces && f->spaces[0] == HED_PTX_SPACE_GLOBAL;
}

/* An update of a word in any order gives the same word, if nobody asks what was there before. */
static bool
is_update_in_any_order(const struct hed_ptx_inst *i, const bool *is_read)
{
    const struct hed_ptx_form *f = i->form;
    const struct hed_ptx_type_info *t = &hed_ptx_types[f->types[0]];

    if (f->op == HED_PTX_OP_ATOM && i->operands[0].kind != HED_PTX_OPERAND_SINK &&
        (i->operands[0].kind != HED_PTX_OPERAND_REG || is_read[i->operands[0].reg->id]))
        return false;
    if ((f->sem != HED_PTX_SEM_NONE && f->sem != HED_PTX_SEM_RELAXED) || f->vec || t->bits < 32 ||
        (t->kind != HED_PTX_KIND_S && t->kind != HED_PTX_KIND_U && t->kind != HED_PTX_KIND_B))
        return false;
    switch (f->oper) {
    case HED_PTX_OPER_ADD:
    case HED_PTX_OPER_MIN:
    case HED_PTX_OPER_MAX:
    case HED_PTX_OPER_AND:
    case HED_PTX_OPER_OR:
    case HED_PTX_OPER_XOR:
        return true;
    default:
        return false;
    }
}

static bool
may_inst_run_solo(const struct hed_ptx_inst *i, bool thins, const bool *is_read)
{
    const struct hed_ptx_form *f = i->form;

    if (i->is_refused || (f->flags & HED_PTX_FLAG(CC)))
        return false;
    for (unsigned k = 0; k < i->noperands; k++)
        if (is_own_variable(&i->operands[k]))
            return false;
    switch (f->op) {
    case HED_PTX_OP_ADDC:
    case HED_PTX_OP_SUBC:
    case HED_PTX_OP_MADC:
        return false; /* the carry is kept for 32 lanes */
    case HED_PTX_OP_LD:
    case HED_PTX_OP_LDU:
        return is_plain_access(f) && !(f->nspaces && f->spaces[0] == HED_PTX_SPACE_LOCAL);
    case HED_PTX_OP_ST:
        return is_plain_access(f) && may_store_solo(f, thins);
    case HED_PTX_OP_ATOM:
    case HED_PTX_OP_RED:
        return may_store_solo(f, thins) && is_update_in_any_order(i, is_read);
    default:
        return hed_ptx_op_nature(f->op) == HED_PTX_COMPUTES;
    }
}

/* Can a value that a lane leaves a loop with be kept as its class says? */
static bool
may_leave_solo(const struct hed_uniforms *u, const struct hed_flow_block *to)
{
    for (const struct hed_flow_phi *p = to->phis; p; p = p->next) {
        const struct hed_uniform *c = &u->values[p->to->id];

        if (c->kind == HED_OFFSETS)
            return false;
        if (c->kind == HED_ROWS && (c->wraps != HED_FLOW_NONE || u->width != HED_PTX_LANES))
            return false;
    }
    return true;
}

static bool
may_block_run_solo(const struct hed_uniforms *u, uint32_t loop, uint32_t b, bool thins)
{
    const struct hed_flow_block *block = &u->f->blocks[b];

    for (uint32_t i = 0; i < block->ninsts; i++)
        if (!may_inst_run_solo(block->insts[i], thins, u->ssa->is_read))
            return false;
    for (uint32_t k = 0; k < block->nnext; k++)
        if (!hed_flow_in_loop(u->f, block->next[k], loop) &&
            !may_leave_solo(u, &u->f->blocks[block->next[k]]))
            return false;
    return true;
}

/* ---- what does it cost? ---------------------------------------------------------------------- */

static bool
is_access(const struct hed_ptx_inst *i)
{
    return i->form->op == HED_PTX_OP_LD || i->form->op == HED_PTX_OP_LDU ||
           i->form->op == HED_PTX_OP_ST;
}

static unsigned
access_cost(const struct hed_uniforms *u, const struct hed_ptx_inst *i, bool is_partial)
{
    const struct hed_uniform at = hed_uniform_memory(u, i);
    const unsigned count = i->form->vec ? i->form->vec : 1;

    if (at.kind == HED_UNIFORM)
        return WORDS_COST;
    if (at.kind == HED_ROWS && at.step == (int64_t)hed_uniform_bytes(i))
        return is_partial ? PARTIAL_COST : WORDS_COST * count;
    return at.kind == HED_ROWS || at.kind == HED_OFFSETS ? 2 * LANE_COST
                                                         : SCATTERED_COST + (count - 1) * LANE_COST;
}

bool
hed_solo_takes_long(const struct hed_ptx_inst *i)
{
    switch (i->form->op) {
    case HED_PTX_OP_DIV:
    case HED_PTX_OP_REM:
    case HED_PTX_OP_RCP:
    case HED_PTX_OP_SQRT:
    case HED_PTX_OP_RSQRT:
    case HED_PTX_OP_SIN:
    case HED_PTX_OP_COS:
    case HED_PTX_OP_LG2:
    case HED_PTX_OP_EX2:
    case HED_PTX_OP_TANH:
        return true;
    default:
        return false;
    }
}

static void
add_inst_cost(const struct hed_uniforms *u, const struct hed_ptx_inst *i, bool is_partial,
              struct costs *c)
{
    const enum hed_uniform_way way = hed_uniform_way(u, i);
    unsigned words = 1;

    if (i->form->ntypes)
        words = hed_max(hed_ptx_types[i->form->types[0]].bits / 32, 1);
    if (i->form->part == HED_PTX_PART_WIDE)
        words *= 2;
    words *= hed_solo_takes_long(i) ? LONG_FACTOR : 1;
    c->solo += hed_solo_takes_long(i) ? LONG_FACTOR * LANE_COST : LANE_COST;
    if (i->form->op == HED_PTX_OP_ATOM || i->form->op == HED_PTX_OP_RED)
        c->together += 2 * LANE_COST;
    if (way != HED_PER_LANE)
        c->together += HED_PTX_LANES / u->width;
    else if (is_access(i))
        c->together += access_cost(u, i, is_partial);
    else
        c->together += (uint64_t)words * WORDS_COST;
}

static struct costs
loop_costs(const struct hed_uniforms *u, uint32_t loop)
{
    const struct hed_flow *f = u->f;
    struct costs c = {0, 0};

    for (uint32_t b = f->loops[loop].header; b <= f->loops[loop].last; b++) {
        struct costs own = {2 * WORDS_COST, LANE_COST}; /* where it goes on */
        unsigned weight = 1;

        for (uint32_t i = 0; i < f->blocks[b].ninsts; i++)
            add_inst_cost(u, f->blocks[b].insts[i], u->partial[b], &own);
        for (uint32_t l = f->blocks[b].loop; l != loop; l = f->loops[l].parent)
            weight *= 4;
        c.together += own.together * weight;
        c.solo += own.solo * weight;
    }
    return c;
}

static bool
is_loop_better_solo(const struct hed_uniforms *u, uint32_t loop)
{
    const struct hed_flow *f = u->f;
    const bool thins = thins_out(u, loop);
    struct costs c;

    for (uint32_t b = f->loops[loop].header; b <= f->loops[loop].last; b++)
        if (!may_block_run_solo(u, loop, b, thins))
            return false;
    c = loop_costs(u, loop);
    /* Of lanes that leave one by one, many are gone while the last ones run. */
    return thins ? 2 * c.solo < 3 * c.together : c.solo < c.together;
}

bool *
hed_solo_init(struct hed_flow *f, const struct hed_uniforms *u)
{
    bool *solo = hed_flow_alloc(f, f->nloops, sizeof(bool));

    /* Outer loops come first. */
    for (uint32_t l = 0; solo && l < f->nloops; l++)
        solo[l] = (f->loops[l].parent != HED_FLOW_NONE && solo[f->loops[l].parent]) ||
                  is_loop_better_solo(u, l);
    return solo;
}
