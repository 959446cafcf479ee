/* Calls of functions that every GPU has, traps, and what else a thread does on its own. */
#include <string.h>

#include "base/device_calls.h"
#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/lanes.h"

#define ARGS_MAX HED_DEVICE_WORDS /* of both kinds of calls */

static uint64_t
run_builtin(struct hed_ptx_warp *s, unsigned which, const uint64_t *args)
{
    switch (which) {
    case HED_PTX_VPRINTF:
        return s->grid->host->vprintf(s, args[0], args[1]);
    case HED_PTX_MALLOC:
        return s->grid->host->malloc(s, args[0]);
    case HED_PTX_FREE:
        s->grid->host->free(s, args[0]);
        return 0;
    case HED_PTX_SET_CONDITION:
        s->grid->host->set_condition(s, args[0], (uint32_t)args[1]);
        return 0;
    default:
        s->grid->host->assertfail(s, args[0], args[1], (uint32_t)args[2], args[3], args[4]);
        return 0;
    }
}

/* A call of a function that is not PTX's. */
struct outer_call {
    unsigned which;          /* as in struct hed_ptx_callee */
    unsigned count;          /* arguments, with each word of a dim3 counted */
    uint32_t args[ARGS_MAX]; /* places */
    uint8_t bytes[ARGS_MAX];
};

/* Takes the arguments of a lane, and says whose call it is. */
static void
begin_lane(struct interp_warp *w, const struct outer_call *c, unsigned lane, uint64_t *args)
{
    for (unsigned i = 0; i < ARGS_MAX; i++)
        args[i] = i < c->count ? interp_get_lane(w, c->args[i], c->bytes[i], lane) : 0;
    w->warp->lane = lane;
}

/* d is the place of the result, e its width; 0 if there is none. */
static INTERP_STEP(builtin_lanes)
{
    const struct outer_call *c = s->more;

    w->warp->line = s->line;
    MASKED_LANES(w->mask, lane)
    {
        uint64_t args[ARGS_MAX], r;

        begin_lane(w, c, lane, args);
        r = run_builtin(w->warp, c->which, args);
        if (s->e)
            interp_set_lane(w, s->d, s->e, lane, r);
    }
    w->warp->lane = 0;
    if (c->which == HED_PTX_ASSERTFAIL)
        hed_interp_trap(w, s, w->mask, HED_PTX_TRAP);
    return s + 1;
}

/* d is the place of the result, e its width. */
static INTERP_STEP(device_lanes)
{
    const struct outer_call *c = s->more;

    w->warp->line = s->line;
    MASKED_LANES(w->mask, lane)
    {
        uint64_t a[ARGS_MAX];

        begin_lane(w, c, lane, a);
        interp_set_lane(w, s->d, s->e, lane,
                        w->warp->grid->host->device_call(w->warp, c->which, a[0], a[1], a[2], a[3],
                                                         a[4], a[5], a[6], a[7]));
    }
    w->warp->lane = 0;
    return s + 1;
}

/* An access to a variable of the function, outside of an instruction that says so. a is the offset
 * in local memory, b the width. */
static INTERP_STEP(load_variable)
{
    const struct interp_frame *f = w->frame;

    MASKED_LANES(w->mask, lane)
    {
        uint64_t v = 0;

        memcpy(&v, f->local + lane * f->stride + s->a, s->b);
        interp_set_lane(w, s->d, s->b, lane, v);
    }
    return s + 1;
}

static INTERP_STEP(store_variable)
{
    const struct interp_frame *f = w->frame;

    MASKED_LANES(w->mask, lane)
    {
        const uint64_t v = interp_get_lane(w, s->d, s->b, lane);

        memcpy(f->local + lane * f->stride + s->a, &v, s->b);
    }
    return s + 1;
}

/* Offset of a parameter variable in local memory. */
static bool
find_variable(struct interp_decoder *d, const struct hed_ptx_operand *o, uint32_t *offset)
{
    if (o->kind != HED_PTX_OPERAND_VAR || o->var->space != HED_PTX_SPACE_PARAM ||
        !hed_interp_map_get(d->locals, (uintptr_t)o->var, offset))
        return false;
    *offset += (uint32_t)o->offset;
    return true;
}

static uint32_t
builtin_argument(struct interp_decoder *d, const struct hed_ptx_operand *o, unsigned bytes)
{
    uint32_t offset, to;

    if (!find_variable(d, o, &offset))
        return hed_interp_source(d, o, bytes == 8 ? HED_PTX_TYPE_U64 : HED_PTX_TYPE_U32);
    to = hed_interp_temp(d, bytes);
    hed_interp_emit3(d, load_variable, to, offset, bytes, 0);
    return to;
}

/* The place that takes the result of a call; afterwards, emit_result() moves it to a variable. */
static uint32_t
result_place(struct interp_decoder *d, const struct hed_ptx_operand *rets, unsigned bytes)
{
    uint32_t offset;

    if (rets->count == 0 || find_variable(d, &rets->elems[0], &offset))
        return hed_interp_temp(d, 8);
    return hed_interp_dest(d, &rets->elems[0], bytes == 4 ? HED_PTX_TYPE_B32 : HED_PTX_TYPE_B64);
}

static void
emit_result(struct interp_decoder *d, const struct hed_ptx_operand *rets, uint32_t from,
            unsigned bytes)
{
    uint32_t offset;

    if (rets->count && find_variable(d, &rets->elems[0], &offset))
        hed_interp_emit3(d, store_variable, from, offset, bytes, 0);
}

/* A dim3 is passed in a variable. */
static void
add_outer_argument(struct interp_decoder *d, struct outer_call *c, const struct hed_ptx_operand *o,
                   char letter)
{
    const unsigned parts = letter == 'd' ? 3 : 1, bytes = letter == 'l' || letter == 'p' ? 8 : 4;
    struct hed_ptx_operand part = *o;

    for (unsigned i = 0; i < parts; i++) {
        part.offset = o->offset + 4 * (int)i;
        c->bytes[c->count] = (uint8_t)bytes;
        c->args[c->count++] = builtin_argument(d, parts > 1 ? &part : o, bytes);
    }
}

static void
emit_outer_call(struct interp_decoder *d, const struct hed_ptx_callee *m)
{
    const struct hed_ptx_operand *rets = &d->inst->operands[0];
    const struct hed_ptx_operand *args = &d->inst->operands[2];
    const unsigned bytes = m->result == 'w' ? 4 : m->result ? 8 : 0;
    struct outer_call *c = hed_interp_alloc(d, sizeof(*c));
    struct interp_step *s;
    uint32_t to;

    if (!c)
        return;
    c->which = m->number;
    for (uint32_t i = 0; i < args->count; i++)
        add_outer_argument(d, c, &args->elems[i], m->args[i]);
    to = result_place(d, rets, bytes);
    s = hed_interp_emit(d, m->kind == HED_PTX_CALLS_BUILTIN ? builtin_lanes : device_lanes);
    s->d = to;
    s->e = bytes;
    s->more = c;
    emit_result(d, rets, to, bytes);
}

void
hed_interp_op_call(struct interp_decoder *d)
{
    const struct hed_ptx_callee *m = &d->meaning->callee;

    if (m->sig)
        hed_interp_emit_call(d, m->func, m->sig);
    else
        emit_outer_call(d, m);
}

/* ---- one step each --------------------------------------------------------------------------- */

static INTERP_STEP(trap_lanes)
{
    hed_interp_trap(w, s, w->mask, HED_PTX_TRAP);
}

void
hed_interp_op_trap(struct interp_decoder *d)
{
    hed_interp_emit(d, trap_lanes);
}

static INTERP_STEP(nanosleep_lanes)
{
    const uint32_t *ns = interp_at(w, s->a);

    w->warp->grid->host->nanosleep(w->warp, ns[__builtin_ctz(w->mask)]);
    return s + 1;
}

void
hed_interp_op_nanosleep(struct interp_decoder *d)
{
    const uint32_t ns = hed_interp_operand(d, 0, HED_PTX_TYPE_B32);

    d->program->info.flags |= HED_PTX_WAITS | HED_PTX_GRID;
    hed_interp_emit3(d, nanosleep_lanes, 0, ns, 0, 0);
}

static INTERP_STEP(activemask_lanes)
{
    const uint32_t mask = w->mask;

    COMPUTE_LANES(uint32_t, r = mask);
}

void
hed_interp_op_activemask(struct interp_decoder *d)
{
    hed_interp_emit3(d, activemask_lanes,
                     hed_interp_dest(d, &d->inst->operands[0], HED_PTX_TYPE_B32), 0, 0, 0);
}
