/* Loops that run lane by lane (pass/solo.h).
 *
 *      header's waiting lanes
 *        │  values from outside: vectors become arrays, one word per lane
 *        v
 *      for each lane ──────────────────────────┐
 *        the loop's blocks, all values numbers │
 *        at an exit: note the lane's bit, put ─┘
 *        what the phis there get into arrays
 *        │
 *        v
 *      arrays become vectors again; lanes wait for the blocks behind the loop
 *
 * Inside, l->lanes is 1, as for instructions that are carried out once for the warp, and the mask
 * of running lanes has one bit.
 */
#include <stddef.h>
#include <stdlib.h>

#include "base/err.h"
#include "kernel/ptx/lower/mask/mask.h"

/* A value in the loop that is being made. */
struct solo_value {
    LLVMValueRef slot;   /* of one lane: made in the loop */
    LLVMValueRef array;  /* of 32: comes from outside and varies, or leaves the loop */
    LLVMValueRef number; /* comes from outside: uniform, or of lane 0 if it steps; or bits, i32 */
};

struct mask_solo {
    uint32_t loop;
    LLVMValueRef lane;
    LLVMBasicBlockRef next;    /* on to the next lane */
    LLVMBasicBlockRef *begins; /* by block of the loop */
    LLVMValueRef *left;        /* by block behind an exit: i32 slot, the lanes that left to it */
    struct solo_value *values; /* by id */
};

static LLVMTypeRef
array_type(struct hed_lower *l, const struct hed_ptx_reg *r)
{
    LLVMTypeRef t = hed_lower_int_type(l, r->type);

    /* A vector of predicates is stored as bits; an array must have bytes. */
    return t == l->i1 ? l->i8 : t;
}

static bool
is_made_inside(const struct mask *m, const struct hed_ptx_reg *r)
{
    return hed_ssa_is_made_in(&m->ssa, &m->flow, r->id, m->solo->loop);
}

/* ---- values ---------------------------------------------------------------------------------- */

static LLVMValueRef
solo_slot(struct hed_lower *l, const struct hed_ptx_reg *r)
{
    struct solo_value *v = &hed_mask_state(l)->solo->values[r->id];

    if (!v->slot)
        v->slot = hed_lower_alloca(l, hed_lower_int_type(l, r->type), 1, 0);
    return v->slot;
}

static LLVMValueRef
array_element(struct hed_lower *l, const struct hed_ptx_reg *r, LLVMValueRef array)
{
    return hed_lower_warp_element(l, array_type(l, r), array, hed_mask_state(l)->solo->lane);
}

/* The lane's own value of a register that was written outside. */
static LLVMValueRef
outer_value(struct hed_lower *l, const struct hed_ptx_reg *r)
{
    const struct mask *m = hed_mask_state(l);
    const struct solo_value *v = &m->solo->values[r->id];
    const struct hed_uniform *c = &m->uniforms.values[r->id];
    LLVMTypeRef t = hed_lower_int_type(l, r->type);
    LLVMValueRef lane = m->solo->lane;

    if (v->array)
        return hed_lower_resize(
            l, LLVMBuildLoad2(l->b, array_type(l, r), array_element(l, r, v->array), ""), t, false);
    if (!v->number)
        return LLVMConstNull(t); /* never written */
    if (c->kind == HED_UNIFORM)
        return v->number;
    if (c->kind == HED_VARIES) /* bits */
        return LLVMBuildTrunc(l->b, LLVMBuildLShr(l->b, v->number, lane, ""), t, "");
    return LLVMBuildAdd(l->b, v->number,
                        LLVMBuildMul(l->b, hed_lower_resize(l, lane, t, false),
                                     LLVMConstInt(t, (uint64_t)c->step, true), ""),
                        "");
}

LLVMValueRef
hed_mask_solo_number(struct hed_lower *l, const struct hed_ptx_reg *r)
{
    const struct mask *m = hed_mask_state(l);

    if (is_made_inside(m, r))
        return LLVMBuildLoad2(l->b, hed_lower_int_type(l, r->type), solo_slot(l, r), "");
    return outer_value(l, r);
}

void
hed_mask_solo_write(struct hed_lower *l, const struct hed_ptx_reg *r, LLVMValueRef v)
{
    LLVMBuildStore(l->b, v, solo_slot(l, r));
}

LLVMValueRef
hed_mask_solo_lane(struct hed_lower *l)
{
    return hed_mask_state(l)->solo->lane;
}

void
hed_mask_solo_each(struct hed_lower *l, hed_lower_each fn, void *arg, LLVMValueRef *args,
                   LLVMValueRef *results)
{
    LLVMBuildStore(l->b, hed_mask_solo_lane(l),
                   hed_lower_at(l, l->function->warp, offsetof(struct hed_ptx_warp, lane)));
    fn(l, arg, args, results);
}

/* Keeps a value from outside as the loop needs it. The code goes before the loop over lanes. */
static void
bring_in(struct hed_lower *l, const struct hed_ptx_reg *r)
{
    struct mask *m = hed_mask_state(l);
    struct solo_value *v = &m->solo->values[r->id];
    const struct hed_uniform *c = &m->uniforms.values[r->id];
    const struct hed_ssa_value *made = &m->ssa.values[r->id];

    if (v->array || v->number || (!made->made_by && !made->phi))
        return;
    if (c->kind == HED_VARIES && m->values[r->id].bits)
        v->number = hed_mask_bits(l, r);
    else if (c->kind == HED_UNIFORM ||
             (c->kind == HED_ROWS && c->wraps == HED_FLOW_NONE && hed_mask_rows(l, r) == 1))
        v->number = hed_mask_number(l, r, 0);
    else
        v->array = hed_lower_warp_array(
            l, array_type(l, r),
            hed_lower_resize(l, hed_mask_lanes(l, r), array_type(l, r), false));
}

static void
bring_in_read(void *arg, const struct hed_ptx_reg **reg)
{
    struct hed_lower *l = arg;
    const struct mask *m = hed_mask_state(l);

    if (!is_made_inside(m, *reg))
        bring_in(l, *reg);
}

/* What lanes keep for which a guard does not hold. */
static void
bring_in_old(void *arg, const struct hed_ptx_reg **reg)
{
    struct hed_lower *l = arg;
    const struct hed_ptx_reg *old = hed_mask_state(l)->ssa.values[(*reg)->id].old;

    if (old)
        bring_in_read(l, &old);
}

/* ---- edges ----------------------------------------------------------------------------------- */

/* What the lane gives a phi. */
static LLVMValueRef
phi_source(struct hed_lower *l, const struct hed_flow_phi *p, uint32_t index)
{
    const struct hed_ptx_reg *from = p->from[index];

    return from ? hed_mask_settle(l, from, p->to, hed_mask_solo_number(l, from))
                : LLVMConstNull(hed_lower_int_type(l, p->to->type));
}

/* Keeps what a phi behind the loop gets, in the form that its class has. */
static void
put_leaving(struct hed_lower *l, const struct hed_flow_phi *p, LLVMValueRef v)
{
    struct mask *m = hed_mask_state(l);
    const struct hed_uniform *c = &m->uniforms.values[p->to->id];
    struct solo_value *a = &m->solo->values[p->to->id];
    LLVMTypeRef t = LLVMTypeOf(v);

    if (c->kind == HED_VARIES) {
        if (!a->array)
            a->array = hed_lower_warp_array(l, array_type(l, p->to), NULL);
        LLVMBuildStore(l->b, hed_lower_resize(l, v, array_type(l, p->to), false),
                       array_element(l, p->to, a->array));
        return;
    }
    if (c->kind == HED_ROWS)
        v = LLVMBuildSub(l->b, v,
                         LLVMBuildMul(l->b, hed_lower_resize(l, m->solo->lane, t, false),
                                      LLVMConstInt(t, (uint64_t)c->step, true), ""),
                         "");
    LLVMBuildStore(l->b, v, hed_mask_slot(l, p->to, 0));
}

static void
leave_loop(struct hed_lower *l, uint32_t from, uint32_t to)
{
    const struct mask *m = hed_mask_state(l);
    const struct hed_flow_block *block = &m->flow.blocks[to];
    const uint32_t index = hed_flow_edge(&m->flow, from, to);
    LLVMValueRef *left = &m->solo->left[to];
    LLVMValueRef bit = hed_lower_warp_running(l);

    for (const struct hed_flow_phi *p = block->phis; p; p = p->next)
        put_leaving(l, p, phi_source(l, p, index));
    LLVMBuildStore(l->b, LLVMBuildOr(l->b, bit, LLVMBuildLoad2(l->b, l->i32, *left, ""), ""),
                   *left);
    LLVMBuildBr(l->b, m->solo->next);
}

static void
go_along(struct hed_lower *l, uint32_t from, uint32_t to)
{
    const struct mask *m = hed_mask_state(l);
    const struct hed_flow_block *block = &m->flow.blocks[to];
    const uint32_t index = hed_flow_edge(&m->flow, from, to);
    LLVMValueRef *sources;
    uint32_t n = 0;

    if (!hed_flow_in_loop(&m->flow, to, m->solo->loop)) {
        leave_loop(l, from, to);
        return;
    }
    for (const struct hed_flow_phi *p = block->phis; p; p = p->next)
        n++;
    sources = calloc(n + 1, sizeof(LLVMValueRef));
    if (!sources) {
        l->err = HED_ENOMEM;
        return;
    }
    /* All sources are loaded before any phi is written: they may be each other's. */
    n = 0;
    for (const struct hed_flow_phi *p = block->phis; p; p = p->next)
        sources[n++] = phi_source(l, p, index);
    n = 0;
    for (const struct hed_flow_phi *p = block->phis; p; p = p->next)
        LLVMBuildStore(l->b, sources[n++], solo_slot(l, p->to));
    free(sources);
    LLVMBuildBr(l->b, m->solo->begins[to]);
}

static void
end_solo_block(struct hed_lower *l, uint32_t b)
{
    const struct mask_solo *a = hed_mask_state(l)->solo;
    const struct hed_flow_block *block = &hed_mask_state(l)->flow.blocks[b];
    LLVMBasicBlockRef yes, no;
    LLVMValueRef guard;

    if (block->end == HED_FLOW_LEAVES) {
        LLVMBuildBr(l->b, a->next);
        return;
    }
    if (block->end == HED_FLOW_GOES) {
        go_along(l, b, block->next[0]);
        return;
    }
    guard = hed_mask_solo_number(l, block->last->guard);
    if (block->last->guard_negated)
        guard = LLVMBuildNot(l->b, guard, "");
    yes = hed_lower_block(l, "");
    no = hed_lower_block(l, "");
    LLVMBuildCondBr(l->b, guard, yes, no);
    LLVMPositionBuilderAtEnd(l->b, yes);
    if (block->end == HED_FLOW_LEAVES_IF)
        LLVMBuildBr(l->b, a->next);
    else
        go_along(l, b, block->next[0]);
    LLVMPositionBuilderAtEnd(l->b, no);
    if (block->end == HED_FLOW_LEAVES_UNLESS)
        LLVMBuildBr(l->b, a->next);
    else
        go_along(l, b, block->next[block->end == HED_FLOW_BRANCHES ? 1 : 0]);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void
keep_old_number(void *arg, const struct hed_ptx_reg **reg)
{
    struct hed_lower *l = arg;
    const struct hed_ptx_reg *old = hed_mask_state(l)->ssa.values[(*reg)->id].old;

    hed_mask_solo_write(l, *reg,
                        old ? hed_mask_settle(l, old, *reg, hed_mask_solo_number(l, old))
                            : LLVMConstNull(hed_lower_int_type(l, (*reg)->type)));
}

static void
make_solo_block(struct hed_lower *l, uint32_t b)
{
    struct mask *m = hed_mask_state(l);
    const struct hed_flow_block *block = &m->flow.blocks[b];

    LLVMPositionBuilderAtEnd(l->b, m->solo->begins[b]);
    m->block = b;
    m->way = HED_ONCE;
    for (uint32_t i = 0; i < block->ninsts && !l->err; i++) {
        if (block->insts[i]->guard)
            hed_flow_each_write(block->insts[i], keep_old_number, l);
        hed_lower_inst(l, block->insts[i]);
    }
    if (!l->err)
        end_solo_block(l, b);
}

/* Takes in what the loop's blocks read, and makes slots of the lanes that leave to each exit. */
static void
prepare_block(struct hed_lower *l, uint32_t b)
{
    const struct mask *m = hed_mask_state(l);
    const struct hed_flow_block *block = &m->flow.blocks[b];

    for (uint32_t i = 0; i < block->ninsts; i++) {
        hed_flow_each_read(block->insts[i], bring_in_read, l);
        hed_flow_each_write(block->insts[i], bring_in_old, l);
    }
    if (block->last)
        hed_flow_each_read((struct hed_ptx_inst *)block->last, bring_in_read, l);
    for (uint32_t k = 0; k < block->nnext; k++) {
        const struct hed_flow_block *to = &m->flow.blocks[block->next[k]];
        const uint32_t index = hed_flow_edge(&m->flow, b, block->next[k]);

        for (const struct hed_flow_phi *p = to->phis; p; p = p->next)
            if (p->from[index])
                bring_in_read(l, &p->from[index]);
        if (hed_flow_in_loop(&m->flow, block->next[k], m->solo->loop) ||
            m->solo->left[block->next[k]])
            continue;
        m->solo->left[block->next[k]] = hed_lower_alloca(l, l->i32, 1, 0);
        LLVMBuildStore(l->b, hed_lower_word(l, 0), m->solo->left[block->next[k]]);
    }
}

/* The lanes that left to a block wait for it now. */
static void
wait_behind(struct hed_lower *l, uint32_t to)
{
    const struct mask *m = hed_mask_state(l);
    LLVMValueRef left = LLVMBuildLoad2(l->b, l->i32, m->solo->left[to], ""), mask = NULL;

    for (const struct hed_flow_phi *p = m->flow.blocks[to].phis; p; p = p->next) {
        LLVMValueRef array = m->solo->values[p->to->id].array, slot = hed_mask_slot(l, p->to, 0);
        LLVMTypeRef t = hed_lower_int_type(l, p->to->type);
        LLVMValueRef v;

        if (!array)
            continue;
        mask = mask ? mask : hed_lower_warp_unpack(l, left);
        v = LLVMBuildLoad2(l->b, LLVMVectorType(array_type(l, p->to), HED_PTX_LANES), array, "");
        LLVMSetAlignment(v, 16);
        v = hed_lower_resize(l, v, t, false);
        LLVMBuildStore(
            l->b, LLVMBuildSelect(l->b, mask, v, LLVMBuildLoad2(l->b, LLVMTypeOf(v), slot, ""), ""),
            slot);
    }
    LLVMBuildStore(l->b,
                   LLVMBuildOr(l->b, left, LLVMBuildLoad2(l->b, l->i32, m->waiting[to], ""), ""),
                   m->waiting[to]);
}

static void
make_solo_loop(struct hed_lower *l)
{
    struct mask *m = hed_mask_state(l);
    const struct hed_flow_loop *loop = &m->flow.loops[m->solo->loop];
    const struct warp *w = hed_lower_warp_state(l);
    LLVMValueRef one = hed_lower_word(l, 1);
    struct warp_loop lanes;

    for (const struct hed_flow_phi *p = m->flow.blocks[loop->header].phis; p; p = p->next)
        bring_in(l, p->to);
    for (uint32_t b = loop->header; b <= loop->last; b++) {
        m->solo->begins[b] = hed_lower_block(l, "");
        prepare_block(l, b);
    }
    hed_lower_warp_loop_begin(l, hed_lower_warp_running(l), &lanes);
    m->solo->lane = lanes.lane;
    m->solo->next = hed_lower_block(l, "");
    LLVMBuildStore(l->b, LLVMBuildShl(l->b, one, lanes.lane, ""), w->bits);
    for (const struct hed_flow_phi *p = m->flow.blocks[loop->header].phis; p; p = p->next)
        LLVMBuildStore(l->b, outer_value(l, p->to), solo_slot(l, p->to));
    LLVMBuildBr(l->b, m->solo->begins[loop->header]);
    l->lanes = 1;
    for (uint32_t b = loop->header; b <= loop->last && !l->err; b++)
        make_solo_block(l, b);
    l->lanes = HED_PTX_LANES;
    LLVMPositionBuilderAtEnd(l->b, m->solo->next);
    hed_lower_warp_loop_end(l, &lanes);
    for (uint32_t b = 0; b < m->flow.nblocks; b++)
        if (m->solo->left[b])
            wait_behind(l, b);
}

void
hed_mask_make_solo(struct hed_lower *l, uint32_t loop)
{
    struct mask *m = hed_mask_state(l);
    struct mask_solo a = {.loop = loop};

    hed_mask_begin_block(l, m->flow.loops[loop].header);
    a.begins = calloc(m->flow.nblocks, sizeof(LLVMBasicBlockRef));
    a.left = calloc(m->flow.nblocks, sizeof(LLVMValueRef));
    a.values = calloc(m->flow.nvalues, sizeof(*a.values));
    m->solo = &a;
    if (a.begins && a.left && a.values)
        make_solo_loop(l);
    else
        l->err = HED_ENOMEM;
    m->solo = NULL;
    if (!l->err)
        hed_mask_go_on_behind(l, m->flow.loops[loop].last);
    /* No lane waits for the other blocks of the loop. */
    for (uint32_t b = m->flow.loops[loop].header + 1; b <= m->flow.loops[loop].last; b++) {
        LLVMPositionBuilderAtEnd(l->b, m->begins[b]);
        LLVMBuildUnreachable(l->b);
    }
    free(a.begins);
    free(a.left);
    free(a.values);
}
