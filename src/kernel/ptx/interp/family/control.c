/* Calls of functions that every GPU has, traps, and what else a thread does on its own. */
#include <string.h>

#include "base/device_calls.h"
#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/lanes.h"

enum builtin_name {
    BUILTIN_VPRINTF,
    BUILTIN_MALLOC,
    BUILTIN_FREE,
    BUILTIN_SET_CONDITION,
    BUILTIN_ASSERTFAIL
};

#define ARGS_MAX HED_DEVICE_WORDS /* of both kinds of calls */

static const struct {
    const char *name;
    const char *args; /* one letter each: w for 32 bits, l for 64 bits */
    char result;      /* such a letter, or 0 for none */
} builtins[] = {
    [BUILTIN_VPRINTF] = {"vprintf", "ll", 'w'},
    [BUILTIN_MALLOC] = {"malloc", "l", 'l'},
    [BUILTIN_FREE] = {"free", "l", 0},
    [BUILTIN_SET_CONDITION] = {"cudaGraphSetConditional", "lw", 0},
    [BUILTIN_ASSERTFAIL] = {"__assertfail", "llwll", 0},
};

static uint64_t
run_builtin(struct hed_ptx_warp *s, unsigned which, const uint64_t *args)
{
    switch (which) {
    case BUILTIN_VPRINTF:
        return s->grid->host->vprintf(s, args[0], args[1]);
    case BUILTIN_MALLOC:
        return s->grid->host->malloc(s, args[0]);
    case BUILTIN_FREE:
        s->grid->host->free(s, args[0]);
        return 0;
    case BUILTIN_SET_CONDITION:
        s->grid->host->set_condition(s, args[0], (uint32_t)args[1]);
        return 0;
    default:
        s->grid->host->assertfail(s, args[0], args[1], (uint32_t)args[2], args[3], args[4]);
        return 0;
    }
}

/* A call of a function that is not PTX's. */
struct outer_call {
    unsigned which;          /* enum builtin_name, enum hed_device_call_number */
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
    if (c->which == BUILTIN_ASSERTFAIL)
        hed_interp_trap(w, s, w->mask, HED_PTX_TRAP);
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

static void
emit_builtin(struct interp_decoder *d, unsigned which)
{
    const struct hed_ptx_operand *rets = &d->inst->operands[0];
    const struct hed_ptx_operand *args = &d->inst->operands[2];
    const unsigned n = (unsigned)strlen(builtins[which].args);
    const unsigned bytes = builtins[which].result == 'w' ? 4 : builtins[which].result ? 8 : 0;
    struct outer_call *c = hed_interp_alloc(d, sizeof(*c));
    struct interp_step *s;
    uint32_t to;

    if (args->count != n || rets->count > (bytes ? 1u : 0u)) {
        hed_interp_refuse(d, "%s does not take these arguments", builtins[which].name);
        return;
    }
    if (!c)
        return;
    *c = (struct outer_call){.which = which, .count = n};
    for (unsigned i = 0; i < n; i++) {
        c->bytes[i] = builtins[which].args[i] == 'w' ? 4 : 8;
        c->args[i] = builtin_argument(d, &args->elems[i], c->bytes[i]);
    }
    to = result_place(d, rets, bytes);
    s = hed_interp_emit3(d, builtin_lanes, to, 0, 0, 0);
    s->e = bytes;
    s->more = c;
    emit_result(d, rets, to, bytes);
}

/* ---- calls of the device runtime ------------------------------------------------------------- */

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

/* A dim3 is passed in a variable. */
static void
add_device_argument(struct interp_decoder *d, struct outer_call *c, const struct hed_ptx_operand *o,
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
emit_device_call(struct interp_decoder *d, int number)
{
    const struct hed_device_call *call = &hed_device_calls[number];
    const struct hed_ptx_operand *rets = &d->inst->operands[0];
    const struct hed_ptx_operand *args = &d->inst->operands[2];
    const unsigned n = (unsigned)strlen(call->args), bytes = call->result == 'w' ? 4 : 8;
    struct outer_call *c = hed_interp_alloc(d, sizeof(*c));
    struct interp_step *s;
    bool fits = args->count == n && rets->count <= 1;
    uint32_t to;

    for (unsigned i = 0; i < n && fits; i++)
        fits = call->args[i] != 'd' || args->elems[i].kind == HED_PTX_OPERAND_VAR;
    if (!fits) {
        hed_interp_refuse(d, "cuda%s of the device does not take these arguments", call->name);
        return;
    }
    if (!c)
        return;
    *c = (struct outer_call){.which = (unsigned)number};
    for (unsigned i = 0; i < n; i++)
        add_device_argument(d, c, &args->elems[i], call->args[i]);
    to = result_place(d, rets, bytes);
    s = hed_interp_emit3(d, device_lanes, to, 0, 0, 0);
    s->e = bytes;
    s->more = c;
    emit_result(d, rets, to, bytes);
}

/* ---- calls ----------------------------------------------------------------------------------- */

void
hed_interp_op_call(struct interp_decoder *d)
{
    const struct hed_ptx_operand *o = d->inst->operands;
    const struct hed_ptx_func *callee;
    int device;

    if (o[1].kind != HED_PTX_OPERAND_FUNC) {
        hed_interp_emit_call(d, NULL);
        return;
    }
    callee = hed_ptx_func_real(o[1].func);
    if (callee->has_body) {
        hed_interp_emit_call(d, callee);
        return;
    }
    for (unsigned i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++) {
        if (strcmp(builtins[i].name, callee->name) == 0) {
            emit_builtin(d, i);
            return;
        }
    }
    device = hed_device_call_find(callee->name, strlen(callee->name), false);
    if (device >= 0)
        emit_device_call(d, device);
    else
        hed_interp_refuse(d, "function %s is declared but not defined", callee->name);
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

    COMPUTE_LANES(uint32_t, to[i] = mask);
}

void
hed_interp_op_activemask(struct interp_decoder *d)
{
    hed_interp_emit3(d, activemask_lanes,
                     hed_interp_dest(d, &d->inst->operands[0], HED_PTX_TYPE_B32), 0, 0, 0);
}
