/* Guards, branches, and the ends of functions and threads. */
#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/lanes.h"

#define FUEL_APART 64 /* the price of a round of a waiting loop while other lanes wait */

/* ---- guards ---------------------------------------------------------------------------------- */

/* The running lanes for which the guard holds: predicate a, inverted by the bits of e. */
static inline uint32_t
guarded_lanes(const struct interp_warp *w, const struct interp_step *s)
{
    return w->active & (interp_predicate(w, s->a) ^ s->e);
}

INTERP_SHARED_STEP(hed_interp_guard)
{
    const uint32_t lanes = guarded_lanes(w, s);

    if (!lanes)
        return s->more; /* after the unguard step */
    w->mask = lanes;
    if (lanes != w->active)
        w->write = lanes;
    INTERP_NEXT(w, s);
}

INTERP_SHARED_STEP(hed_interp_unguard)
{
    interp_set_active(w, w->active);
    INTERP_NEXT(w, s);
}

/* Of an instruction in which lanes meet: the others wait after it. */
INTERP_SHARED_STEP(hed_interp_guard_split)
{
    const uint32_t lanes = guarded_lanes(w, s);
    const struct interp_step *after = s->more;

    if (!lanes)
        return after;
    if (lanes != w->active) {
        hed_interp_wait(w, w->active ^ lanes, interp_pc(w, after));
        interp_set_active(w, lanes);
    }
    return s + 1;
}

/* ---- branches -------------------------------------------------------------------------------- */

/* A loop that may wait yields to other warps, and to other lanes, now and then. */
static const struct interp_step *
go_waiting(struct interp_warp *w, const struct interp_step *to)
{
    struct hed_ptx_warp *warp = w->warp;

    warp->fuel -= w->active == w->live ? 1 : FUEL_APART;
    if (warp->fuel > 0)
        return hed_interp_go(w, to);
    warp->grid->host->yield(warp);
    return hed_interp_rotate(w, interp_pc(w, to));
}

static inline const struct interp_step *
go_back(struct interp_warp *w, const struct interp_step *s)
{
    interp_leave_if_stopped(w);
    return s->imm ? go_waiting(w, s->more) : hed_interp_go(w, s->more);
}

static INTERP_STEP(bra_always)
{
    return go_back(w, s);
}

static INTERP_STEP(bra_forward)
{
    const uint32_t taken = guarded_lanes(w, s);

    if (!taken)
        return s + 1;
    if (taken == w->active)
        return hed_interp_go(w, s->more);
    hed_interp_wait(w, taken, interp_pc(w, s->more));
    interp_set_active(w, w->active ^ taken);
    return s + 1;
}

static INTERP_STEP(bra_backward)
{
    const uint32_t taken = guarded_lanes(w, s);
    const uint32_t staying = w->active ^ taken;

    if (!taken) {
        if (s->d + 1 < w->frame->next)
            return s + 1;
        hed_interp_wait(w, staying, s->d + 1);
        return hed_interp_next(w);
    }
    if (staying) {
        hed_interp_wait(w, staying, s->d + 1);
        interp_set_active(w, taken);
    }
    return go_back(w, s);
}

static void
emit_branch(struct interp_decoder *d, const struct hed_ptx_label *to)
{
    const struct hed_ptx_inst *i = d->inst;
    const bool is_back = d->labels[to->id] != INTERP_NONE;
    const uint32_t guard = i->guard ? d->regs[i->guard->id] : 0;
    const uint32_t at = d->count;
    struct interp_step *s = hed_interp_emit(d, !i->guard ? bra_always
                                               : is_back ? bra_backward
                                                         : bra_forward);

    s->d = at; /* its own index */
    s->a = guard;
    s->e = i->guard_negated ? UINT32_MAX : 0;
    s->imm = is_back && d->waits[to->id];
    s->more = to; /* decode.c puts the step there when all labels are known */
}

void
hed_interp_op_bra(struct interp_decoder *d)
{
    emit_branch(d, d->inst->operands[0].label);
}

/* The targets of brx.idx. */
struct branch_table {
    uint32_t count;
    uint32_t pcs[];
};

/* Each target in turn takes its lanes; those at the lowest pc run first. */
static INTERP_STEP(brx_lanes)
{
    const struct branch_table *t = s->more;
    const uint32_t *index = interp_at(w, s->b);
    const uint32_t lanes = s->c ? guarded_lanes(w, s) : w->active;
    const uint32_t rest = w->active ^ lanes;

    interp_leave_if_stopped(w);
    MASKED_LANES(lanes, lane)
    {
        if (index[lane] >= t->count)
            hed_interp_trap(w, s, UINT32_C(1) << lane, HED_PTX_TRAP_INSTRUCTION);
        hed_interp_wait(w, UINT32_C(1) << lane, t->pcs[index[lane]]);
    }
    if (s->imm && lanes) {
        w->warp->fuel -= FUEL_APART;
        if (w->warp->fuel <= 0)
            w->warp->grid->host->yield(w->warp);
    }
    if (!rest)
        return hed_interp_next(w);
    interp_set_active(w, rest);
    return s + 1;
}

void
hed_interp_op_brx_idx(struct interp_decoder *d)
{
    const struct hed_ptx_inst *i = d->inst;
    const struct hed_ptx_table *table = i->operands[1].table;
    const uint32_t index = hed_interp_operand(d, 0, HED_PTX_TYPE_U32);
    struct branch_table *t =
        hed_interp_alloc(d, sizeof(*t) + (size_t)table->count * sizeof(t->pcs[0]));
    bool waits = false;

    if (!t)
        return;
    t->count = table->count;
    for (uint32_t k = 0; k < table->count; k++) {
        t->pcs[k] = table->targets[k].label->id; /* decode.c replaces it */
        waits = waits || d->waits[table->targets[k].label->id];
    }

    struct interp_step *s = hed_interp_emit(d, brx_lanes);

    s->a = i->guard ? d->regs[i->guard->id] : 0;
    s->e = i->guard_negated ? UINT32_MAX : 0;
    s->b = index;
    s->c = i->guard != NULL;
    s->imm = waits;
    s->more = t;
}

void
hed_interp_patch(struct interp_decoder *d, struct interp_step *s)
{
    if (s->run == bra_always || s->run == bra_forward || s->run == bra_backward) {
        const struct hed_ptx_label *to = s->more;

        s->more = &d->func->steps[d->labels[to->id]];
    } else if (s->run == brx_lanes) {
        struct branch_table *t = (struct branch_table *)s->more;

        for (uint32_t k = 0; k < t->count; k++)
            t->pcs[k] = d->labels[t->pcs[k]];
    } else if (s->run == hed_interp_guard || s->run == hed_interp_guard_split) {
        s->more = &d->func->steps[s->imm];
    }
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* Lanes have left the frame: the others go on, or the next ones run. */
static const struct interp_step *
go_without(struct interp_warp *w, const struct interp_step *s, uint32_t gone)
{
    const uint32_t rest = w->active & ~gone;

    if (!rest)
        return hed_interp_next(w);
    interp_set_active(w, rest);
    return s + 1;
}

static INTERP_STEP(exit_lanes)
{
    const uint32_t gone = s->c ? guarded_lanes(w, s) : w->active;
    struct interp_frame *f = w->frame;

    if (!gone)
        return s + 1;
    w->live &= ~gone;
    while (f) {
        struct interp_frame *parent = f->parent;

        hed_interp_leave(w, f, gone);
        f = parent;
    }
    return go_without(w, s, gone);
}

static INTERP_STEP(ret_lanes)
{
    const uint32_t gone = s->c ? guarded_lanes(w, s) : w->active;
    struct interp_frame *f = w->frame;

    if (!f->parent)
        return exit_lanes(w, s);
    if (!gone)
        return s + 1;
    hed_interp_results(w, gone);

    struct interp_frame *parent = f->parent;
    const uint32_t pc = (uint32_t)(f->site - parent->func->steps) + 1;

    MASKED_LANES(gone, lane)
    parent->pc[lane] = pc;
    if (pc < parent->next)
        parent->next = pc;
    hed_interp_leave(w, f, gone);
    return go_without(w, s, gone);
}

INTERP_SHARED_STEP(hed_interp_end)
{
    return ret_lanes(w, s);
}

static void
emit_end(struct interp_decoder *d, interp_run run)
{
    const struct hed_ptx_inst *i = d->inst;
    struct interp_step *s = hed_interp_emit(d, run);

    s->a = i->guard ? d->regs[i->guard->id] : 0;
    s->e = i->guard_negated ? UINT32_MAX : 0;
    s->c = i->guard != NULL;
}

void
hed_interp_op_ret(struct interp_decoder *d)
{
    emit_end(d, ret_lanes);
}

void
hed_interp_op_exit(struct interp_decoder *d)
{
    emit_end(d, exit_lanes);
}
