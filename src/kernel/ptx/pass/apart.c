/* Operations that lanes come to at different places. See apart.h.
 *
 * Lanes that part at a branch meet again at the nearest block that all of their paths pass. An
 * operation that one side comes to before that, and a like one of the other side, may be one.
 */
#include "kernel/ptx/pass/apart.h"

#include <string.h>

#include "base/err.h"
#include "base/number.h"
#include "kernel/ptx/pass/masks.h"

#define NO_MASK UINT32_MAX   /* instead of the index of an operand */
#define COPIES_MAX 16        /* of a mask that are followed */
#define BLOCKS_MAX 4000      /* of a function that is looked at before its first launch */
#define CELLS_MAX 20000000   /* blocks x registers of it: the analysis takes a bit for each */
#define LOOKS_MAX 100000000u /* at pairs of sites; a kernel that needs more is taken to be apart */

/* An operation that waits for other lanes. */
struct site {
    const struct hed_ptx_inst *inst;
    uint32_t block;
    struct hed_uniform mask; /* of the lanes; VARIES for a barrier, which is for all */
    uint32_t gathered;       /* the block where the mask was made of the lanes there, or NONE */
};

struct search {
    const struct hed_flow *f;
    struct site *sites;
    uint32_t nsites;
    uint8_t *reached; /* by block: 1 and 2 for the two sides of a branch */
    uint32_t *stack;
    uint64_t looks; /* so far */
};

/* Does an instruction wait for other lanes, wherever they come from? Sets *mask to the operand that
 * says for which; a barrier of the block has none. Those of matrices are for lanes that come
 * together. */
static bool
awaits_lanes(const struct hed_ptx_inst *i, uint32_t *mask)
{
    *mask = NO_MASK;
    if (i->is_refused)
        return false;
    if (hed_masks_is_barrier(i))
        return true;
    switch (i->form->op) {
    case HED_PTX_OP_SHFL:
        *mask = 4;
        break;
    case HED_PTX_OP_VOTE:
    case HED_PTX_OP_MATCH:
    case HED_PTX_OP_REDUX:
        *mask = 2;
        break;
    case HED_PTX_OP_ELECT:
        *mask = 1;
        break;
    case HED_PTX_OP_BAR_WARP_SYNC:
        *mask = 0;
        break;
    default:
        return false;
    }
    return i->noperands > *mask;
}

/* The block where a mask was made of the running lanes (activemask), or NONE. Machine code has many
 * of these: BSSY, whose lanes meet at BSYNC. */
static uint32_t
gathering_block(const struct hed_uniforms *u, const struct hed_ptx_operand *mask)
{
    const struct hed_ptx_operand *o = mask;

    for (unsigned n = 0; n < COPIES_MAX && o->kind == HED_PTX_OPERAND_REG; n++) {
        const struct hed_ssa_value *v = &u->ssa->values[o->reg->id];

        if (!v->made_by || v->made_by->is_refused || v->made_by->guard)
            break;
        if (v->made_by->form->op == HED_PTX_OP_ACTIVEMASK)
            return v->block;
        if (v->made_by->form->op != HED_PTX_OP_MOV)
            break;
        o = &v->made_by->operands[1];
    }
    return HED_FLOW_NONE;
}

static void
note_site(struct search *s, const struct hed_uniforms *u, uint32_t block,
          const struct hed_ptx_inst *i)
{
    uint32_t mask;

    if (!awaits_lanes(i, &mask))
        return;
    s->sites[s->nsites++] = (struct site){
        .inst = i,
        .block = block,
        .mask = mask == NO_MASK ? (struct hed_uniform){.kind = HED_VARIES}
                                : hed_uniform_operand(u, &i->operands[mask]),
        .gathered = mask == NO_MASK ? HED_FLOW_NONE : gathering_block(u, &i->operands[mask]),
    };
}

/* May lanes at two places wait for each other? */
static bool
is_like(const struct site *a, const struct site *b)
{
    const struct hed_ptx_form *x = a->inst->form, *y = b->inst->form;

    return a != b && x->op == y->op && x->mode == y->mode && x->oper == y->oper &&
           (!a->mask.is_constant || !b->mask.is_constant || a->mask.constant == b->mask.constant);
}

/* Do lanes come to an operation from one side of the branch, and may they wait there for lanes of
 * the other? A mask that was made of the lanes of one side has none of the other. */
static bool
awaits_other_side(const struct search *s, const struct site *site, uint8_t side)
{
    return (s->reached[site->block] & side) &&
           (site->gathered == HED_FLOW_NONE || s->reached[site->gathered] != side);
}

/* Marks the blocks that lanes come to from one side of a branch before they meet again, or part
 * again there. */
static void
reach_side(struct search *s, uint32_t branch, unsigned way)
{
    const uint32_t from = s->f->blocks[branch].next[way];
    const uint32_t until = s->f->blocks[branch].after;
    const uint8_t side = (uint8_t)(way + 1);
    uint32_t depth = 0;

    if (from == until || from == branch)
        return;
    s->reached[from] |= side;
    s->stack[depth++] = from;
    while (depth) {
        const struct hed_flow_block *b = &s->f->blocks[s->stack[--depth]];

        s->looks++;
        for (uint32_t k = 0; k < b->nnext; k++) {
            const uint32_t to = b->next[k];

            if (to == until || to == branch || (s->reached[to] & side))
                continue;
            s->reached[to] |= side;
            s->stack[depth++] = to;
        }
    }
}

static bool
has_like_sites(struct search *s)
{
    for (uint32_t i = 0; i < s->nsites; i++) {
        const struct site *a = &s->sites[i];
        const bool awaits = awaits_other_side(s, a, 1);

        s->looks += awaits ? s->nsites : 1;
        if (s->looks > LOOKS_MAX)
            break;
        for (uint32_t k = 0; awaits && k < s->nsites; k++) {
            const struct site *b = &s->sites[k];

            /* Where both sides come to both, they have met in between. */
            if (awaits_other_side(s, b, 2) && (s->reached[a->block] & s->reached[b->block]) != 3 &&
                is_like(a, b))
                return true;
        }
    }
    return false;
}

/* Two like operations in a row, one for the lanes where a guard holds and one for the others. */
static bool
has_guarded_sites(struct search *s, const struct hed_uniforms *u)
{
    for (uint32_t i = 0; i < s->nsites; i++) {
        const struct hed_ptx_inst *a = s->sites[i].inst;

        if (!a->guard || u->values[a->guard->id].kind == HED_UNIFORM)
            continue;
        s->looks += s->nsites;
        if (s->looks > LOOKS_MAX)
            break;
        for (uint32_t k = 0; k < s->nsites; k++) {
            const struct hed_ptx_inst *b = s->sites[k].inst;

            if (b->guard == a->guard && b->guard_negated != a->guard_negated &&
                is_like(&s->sites[i], &s->sites[k]))
                return true;
        }
    }
    return false;
}

int
hed_apart_find(struct hed_flow *f, const struct hed_uniforms *u, bool *apart)
{
    struct search s = {.f = f};
    uint32_t count = 0, mask;

    *apart = false;
    for (uint32_t b = 0; b < f->nblocks; b++)
        for (uint32_t i = 0; i < f->blocks[b].ninsts; i++)
            count += awaits_lanes(f->blocks[b].insts[i], &mask);
    if (count < 2)
        return 0;
    s.sites = hed_flow_alloc(f, count, sizeof(*s.sites));
    s.reached = hed_flow_alloc(f, f->nblocks, 1);
    s.stack = hed_flow_alloc(f, f->nblocks, sizeof(uint32_t));
    if (!s.sites || !s.reached || !s.stack)
        return HED_ENOMEM;
    for (uint32_t b = 0; b < f->nblocks; b++)
        for (uint32_t i = 0; i < f->blocks[b].ninsts; i++)
            note_site(&s, u, b, f->blocks[b].insts[i]);
    *apart = has_guarded_sites(&s, u);
    for (uint32_t b = 0; b < f->nblocks && !*apart && s.looks <= LOOKS_MAX; b++) {
        if (!u->parts[b])
            continue;
        memset(s.reached, 0, f->nblocks);
        reach_side(&s, b, 0);
        reach_side(&s, b, 1);
        *apart = has_like_sites(&s);
    }
    *apart |= s.looks > LOOKS_MAX;
    return 0;
}

/* ---- a function ------------------------------------------------------------------------------ */

/* What can be told without an analysis. */
struct outline {
    uint32_t alike; /* operations that wait for other lanes, of the kind that is there most often */
    uint64_t blocks; /* at most */
};

static struct outline
outline_of(const struct hed_ptx_func *f, bool with_barriers)
{
    uint32_t counts[HED_PTX_OPS] = {0}, mask;
    struct outline o = {.blocks = 1};

    for (const struct hed_ptx_stmt *s = f->body; s; s = s->next) {
        const struct hed_ptx_inst *i = (const struct hed_ptx_inst *)s;

        if (s->kind != HED_PTX_STMT_INST || i->is_refused) {
            o.blocks += s->kind == HED_PTX_STMT_LABEL;
            continue;
        }
        o.blocks += hed_ptx_op_nature(i->form->op) == HED_PTX_LEAVES;
        if (awaits_lanes(i, &mask) && (with_barriers || mask != NO_MASK))
            o.alike = (uint32_t)hed_max(o.alike, ++counts[i->form->op]);
    }
    return o;
}

bool
hed_apart_awaits(const struct hed_ptx_func *f)
{
    return outline_of(f, true).alike > 0;
}

bool
hed_apart_unknown(const struct hed_ptx_func *f)
{
    return outline_of(f, false).alike > 1;
}

bool
hed_apart_in(const struct hed_ptx_func *func)
{
    const struct outline o = outline_of(func, true);
    const char *why;
    struct hed_flow f;
    struct hed_ssa ssa;
    struct hed_uniforms u;
    bool apart = false;
    int err;

    if (o.alike < 2)
        return false;
    if (o.blocks > BLOCKS_MAX || o.blocks * func->nregs > CELLS_MAX)
        return true;
    err = hed_flow_init(&f, func, &why);
    if (err == 0)
        err = hed_ssa_init(&ssa, &f, &why);
    if (err == 0)
        err = hed_uniforms_init(&u, &f, &ssa, HED_ROWS_ANY);
    if (err == 0)
        err = hed_apart_find(&f, &u, &apart);
    hed_flow_fini(&f);
    return err != 0 || apart;
}
