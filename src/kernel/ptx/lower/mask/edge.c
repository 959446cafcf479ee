/* From block to block.
 *
 *      gate of b:  do lanes wait for b?  yes: run b     no: on to the gate of the next block
 *      end of b:   each edge adds its lanes to those that wait for its target, and copies phis;
 *                  then on to the next gate, or straight to the target where no other lane waits
 *                  before it
 *      end of a loop's last block:  do lanes wait for the header?  yes: once more
 *
 * Invariants:
 * 1. A block runs with at least one lane.
 * 2. While a block runs, lanes wait only for blocks after it, and for headers of loops around it.
 * 3. If the block is not `partial` (pass/uniform.h), no lane waits anywhere.
 */
#include <stddef.h>
#include <stdlib.h>

#include "base/err.h"
#include "kernel/ptx/lower/mask/mask.h"

void
hed_mask_go_on_behind(struct hed_lower *l, uint32_t b)
{
    const struct mask *m = hed_mask_state(l);
    const struct hed_flow *f = &m->flow;

    for (uint32_t i = f->nloops; i-- > 0;) {
        /* Inner loops come after outer ones in the list. */
        if (f->loops[i].last != b)
            continue;

        LLVMBasicBlockRef out = hed_lower_block(l, "");
        LLVMValueRef again = LLVMBuildLoad2(l->b, l->i32, m->waiting[f->loops[i].header], "");

        LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, again, ""), out, m->begins[f->loops[i].header]);
        LLVMPositionBuilderAtEnd(l->b, out);
    }
    LLVMBuildBr(l->b, b + 1 < f->nblocks ? m->gates[b + 1] : m->end);
}

/* Blocks first..last: where they begin, and their gates. No lane waits for them yet. */
static void
make_gates_of(struct hed_lower *l, uint32_t first, uint32_t last)
{
    const struct mask *m = hed_mask_state(l);
    LLVMBasicBlockRef here = LLVMGetInsertBlock(l->b);

    for (uint32_t b = first; b <= last; b++) {
        m->begins[b] = hed_lower_block(l, "");
        m->gates[b] = hed_lower_block(l, "");
        m->waiting[b] = hed_lower_alloca(l, l->i32, 1, 0);
        LLVMBuildStore(l->b, hed_lower_word(l, 0), m->waiting[b]);
    }
    for (uint32_t b = first; b <= last; b++) {
        LLVMBasicBlockRef skip = hed_lower_block(l, "");

        LLVMPositionBuilderAtEnd(l->b, m->gates[b]);
        LLVMBuildCondBr(l->b,
                        LLVMBuildIsNull(l->b, LLVMBuildLoad2(l->b, l->i32, m->waiting[b], ""), ""),
                        skip, m->begins[b]);
        LLVMPositionBuilderAtEnd(l->b, skip);
        hed_mask_go_on_behind(l, b);
    }
    LLVMPositionBuilderAtEnd(l->b, here);
}

void
hed_mask_make_loop_gates(struct hed_lower *l, uint32_t loop)
{
    const struct hed_flow_loop *f = &hed_mask_state(l)->flow.loops[loop];

    make_gates_of(l, f->header, f->last);
}

int
hed_mask_make_gates(struct hed_lower *l)
{
    struct mask *m = hed_mask_state(l);
    const uint32_t n = m->flow.nblocks;

    m->begins = calloc(n + 1, sizeof(LLVMBasicBlockRef));
    m->gates = calloc(n + 1, sizeof(LLVMBasicBlockRef));
    m->waiting = calloc(n + 1, sizeof(LLVMValueRef));
    if (!m->begins || !m->gates || !m->waiting)
        return HED_ENOMEM;
    m->end = hed_lower_block(l, "end");
    make_gates_of(l, 0, n - 1);
    return 0;
}

void
hed_mask_begin_block(struct hed_lower *l, uint32_t b)
{
    const struct mask *m = hed_mask_state(l);
    const struct warp *w = hed_lower_warp_state(l);

    LLVMMoveBasicBlockAfter(m->begins[b], LLVMGetInsertBlock(l->b));
    LLVMPositionBuilderAtEnd(l->b, m->begins[b]);
    LLVMBuildStore(l->b, LLVMBuildLoad2(l->b, l->i32, m->waiting[b], ""), w->bits);
    LLVMBuildStore(l->b, hed_lower_word(l, 0), m->waiting[b]);
}

/* ---- phis ------------------------------------------------------------------------------------ */

/* May other lanes wait for the target already when lanes come along this edge? */
static bool
others_may_wait(const struct mask *m, uint32_t from, uint32_t to)
{
    const struct hed_flow_block *b = &m->flow.blocks[to];

    if (to <= from) /* back to a header */
        return m->flow.loops[b->loop].nlatches > 1;
    return hed_uniform_leaves_singly(&m->uniforms, from, to) || b->before[0] != from;
}

struct edge {
    uint32_t from, to;
    LLVMValueRef lanes; /* i32 */
    bool is_alone;      /* all lanes that are anywhere go this way */
    LLVMValueRef *old;  /* values of phis' sources: one per slot, in the order of the phis */
};

static uint32_t
count_slots(struct hed_lower *l, const struct edge *e)
{
    uint32_t n = 0;

    for (const struct hed_flow_phi *p = hed_mask_state(l)->flow.blocks[e->to].phis; p; p = p->next)
        n += hed_mask_rows(l, p->to);
    return n;
}

/* Loads the sources of all phis before any of them is written: they may be each other's. */
static void
load_sources(struct hed_lower *l, struct edge *e)
{
    const struct mask *m = hed_mask_state(l);
    const uint32_t index = hed_flow_edge(&m->flow, e->from, e->to);
    uint32_t n = 0;

    e->old = calloc(count_slots(l, e) + 1, sizeof(LLVMValueRef));
    if (!e->old) {
        l->err = HED_ENOMEM;
        return;
    }
    for (const struct hed_flow_phi *p = m->flow.blocks[e->to].phis; p; p = p->next) {
        const struct hed_ptx_reg *from = p->from[index];
        LLVMTypeRef t = hed_lower_int_type(l, p->to->type);

        if (m->uniforms.values[p->to->id].kind == HED_VARIES)
            e->old[n++] = from ? hed_mask_settle(l, from, p->to, hed_mask_lanes(l, from))
                               : LLVMConstNull(LLVMVectorType(t, HED_PTX_LANES));
        else
            for (unsigned row = 0; row < hed_mask_rows(l, p->to); row++)
                e->old[n++] = from ? hed_mask_settle(l, from, p->to, hed_mask_number(l, from, row))
                                   : LLVMConstNull(t);
    }
}

static void
store_phis(struct hed_lower *l, struct edge *e)
{
    const struct mask *m = hed_mask_state(l);
    const bool masked = !e->is_alone && others_may_wait(m, e->from, e->to);
    LLVMValueRef mask = NULL;
    uint32_t n = 0;

    for (const struct hed_flow_phi *p = m->flow.blocks[e->to].phis; p && e->old; p = p->next) {
        const bool varies = m->uniforms.values[p->to->id].kind == HED_VARIES;

        for (unsigned row = 0; row < hed_mask_rows(l, p->to); row++) {
            LLVMValueRef slot = hed_mask_slot(l, p->to, row);
            LLVMValueRef v = e->old[n++];

            if (varies && masked) {
                mask = mask ? mask : hed_lower_warp_unpack(l, e->lanes);
                v = LLVMBuildSelect(l->b, mask, v, LLVMBuildLoad2(l->b, LLVMTypeOf(v), slot, ""),
                                    "");
            }
            LLVMBuildStore(l->b, v, slot);
        }
    }
    free(e->old);
    e->old = NULL;
}

/* A loop that may wait yields to other warps now and then. */
static void
burn_warp_fuel(struct hed_lower *l)
{
    LLVMValueRef warp = l->function->warp;
    LLVMValueRef at = hed_lower_at(l, warp, offsetof(struct hed_ptx_warp, fuel));
    LLVMBasicBlockRef empty = hed_lower_block(l, ""), on = hed_lower_block(l, "");
    LLVMValueRef fuel =
        LLVMBuildSub(l->b, LLVMBuildLoad2(l->b, l->i32, at, ""), hed_lower_word(l, 1), "");

    LLVMBuildStore(l->b, fuel, at);
    LLVMBuildCondBr(l->b, LLVMBuildICmp(l->b, LLVMIntSLE, fuel, hed_lower_word(l, 0), ""), empty,
                    on);
    LLVMPositionBuilderAtEnd(l->b, empty);
    hed_lower_runtime(l, "hed_rt_yield", l->nothing, &warp, 1);
    LLVMBuildBr(l->b, on);
    LLVMPositionBuilderAtEnd(l->b, on);
}

static void
take_edge(struct hed_lower *l, struct edge *e)
{
    const struct mask *m = hed_mask_state(l);
    LLVMValueRef wait = m->waiting[e->to];
    LLVMValueRef lanes = e->lanes;

    if (e->to <= e->from && m->masks.waits[m->flow.blocks[e->to].loop])
        burn_warp_fuel(l);

    store_phis(l, e);
    if (!e->is_alone && others_may_wait(m, e->from, e->to))
        lanes = LLVMBuildOr(l->b, lanes, LLVMBuildLoad2(l->b, l->i32, wait, ""), "");
    LLVMBuildStore(l->b, lanes, wait);
}

/* ---- ends of blocks -------------------------------------------------------------------------- */

/* Goes to the target straight away if nothing lies between, else through the gates. */
static void
go_to(struct hed_lower *l, const struct edge *e)
{
    const struct mask *m = hed_mask_state(l);
    const struct hed_flow *f = &m->flow;
    const bool closes_loop = e->to <= e->from && f->loops[f->blocks[e->to].loop].last == e->from;

    if (e->is_alone || closes_loop ||
        (e->to == e->from + 1 && f->blocks[e->from].loop == f->blocks[e->to].loop))
        LLVMBuildBr(l->b, m->begins[e->to]);
    else
        hed_mask_go_on_behind(l, e->from);
}

static void
end_going(struct hed_lower *l, uint32_t from, uint32_t to)
{
    const struct mask *m = hed_mask_state(l);
    struct edge e = {.from = from,
                     .to = to,
                     .lanes = hed_lower_warp_running(l),
                     .is_alone = !m->uniforms.partial[from]};

    load_sources(l, &e);
    take_edge(l, &e);
    go_to(l, &e);
}

static LLVMValueRef
guard_number(struct hed_lower *l, const struct hed_ptx_inst *i)
{
    LLVMValueRef p = hed_mask_number(l, i->guard, 0);

    return i->guard_negated ? LLVMBuildNot(l->b, p, "") : p;
}

static LLVMValueRef
guard_bits(struct hed_lower *l, const struct hed_ptx_inst *i)
{
    LLVMValueRef p = hed_mask_bits(l, i->guard);

    return i->guard_negated ? LLVMBuildNot(l->b, p, "") : p;
}

static bool
is_uniform_guard(const struct hed_lower *l, const struct hed_ptx_inst *i)
{
    return hed_mask_state(l)->uniforms.values[i->guard->id].kind == HED_UNIFORM;
}

static void
end_branching(struct hed_lower *l, uint32_t from)
{
    const struct mask *m = hed_mask_state(l);
    const struct hed_flow_block *b = &m->flow.blocks[from];
    LLVMValueRef all = hed_lower_warp_running(l), taken;

    if (is_uniform_guard(l, b->last)) {
        LLVMBasicBlockRef yes = hed_lower_block(l, ""), no = hed_lower_block(l, "");

        LLVMBuildCondBr(l->b, guard_number(l, b->last), yes, no);
        LLVMPositionBuilderAtEnd(l->b, yes);
        end_going(l, from, b->next[0]);
        LLVMPositionBuilderAtEnd(l->b, no);
        end_going(l, from, b->next[1]);
        return;
    }
    taken = LLVMBuildAnd(l->b, all, guard_bits(l, b->last), "");

    struct edge edges[] = {
        {.from = from, .to = b->next[0], .lanes = taken},
        {.from = from, .to = b->next[1], .lanes = LLVMBuildXor(l->b, all, taken, "")}};

    load_sources(l, &edges[0]);
    load_sources(l, &edges[1]);
    take_edge(l, &edges[0]);
    take_edge(l, &edges[1]);
    hed_mask_go_on_behind(l, from);
}

/* Where code goes on when no lane of this block is left. */
static void
go_on_without(struct hed_lower *l)
{
    const struct mask *m = hed_mask_state(l);

    if (m->uniforms.partial[m->block])
        hed_mask_go_on_behind(l, m->block);
    else
        LLVMBuildBr(l->b, m->end);
}

void
hed_mask_leave(struct hed_lower *l, LLVMValueRef gone)
{
    const struct warp *w = hed_lower_warp_state(l);
    LLVMValueRef left =
        LLVMBuildAnd(l->b, hed_lower_warp_running(l), LLVMBuildNot(l->b, gone, ""), "");
    LLVMBasicBlockRef none = hed_lower_block(l, ""), some = hed_lower_block(l, "");

    LLVMBuildStore(l->b, left, w->bits);
    LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, left, ""), none, some);
    LLVMPositionBuilderAtEnd(l->b, none);
    go_on_without(l);
    LLVMPositionBuilderAtEnd(l->b, some);
}

static void
end_leaving(struct hed_lower *l, uint32_t from)
{
    const struct hed_flow_block *b = &hed_mask_state(l)->flow.blocks[from];
    LLVMValueRef bits;

    if (b->end == HED_FLOW_LEAVES) {
        go_on_without(l);
        return;
    }
    if (is_uniform_guard(l, b->last)) {
        LLVMBasicBlockRef yes = hed_lower_block(l, ""), no = hed_lower_block(l, "");
        const bool leaves_if = b->end == HED_FLOW_LEAVES_IF;

        LLVMBuildCondBr(l->b, guard_number(l, b->last), yes, no);
        LLVMPositionBuilderAtEnd(l->b, leaves_if ? yes : no);
        go_on_without(l);
        LLVMPositionBuilderAtEnd(l->b, leaves_if ? no : yes);
    } else {
        bits = guard_bits(l, b->last);
        hed_mask_leave(l, b->end == HED_FLOW_LEAVES_IF ? bits : LLVMBuildNot(l->b, bits, ""));
    }
    end_going(l, from, b->next[0]);
}

void
hed_mask_end_block(struct hed_lower *l, uint32_t b)
{
    const struct hed_flow_block *block = &hed_mask_state(l)->flow.blocks[b];

    if (block->end == HED_FLOW_GOES)
        end_going(l, b, block->next[0]);
    else if (block->end == HED_FLOW_BRANCHES)
        end_branching(l, b);
    else
        end_leaving(l, b);
}
