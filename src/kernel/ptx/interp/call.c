/* Calls: the lanes that call get a frame of their own, in which they run until they return. */
#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/lanes.h"

#define UNSIZED UINT32_MAX

struct interp_call {
    const struct interp_func *callee; /* NULL: by pointer */
    struct interp_value *args, *rets;
    uint32_t nargs, nrets;
};

/* ---- running --------------------------------------------------------------------------------- */

/* The bytes of a lane's value in a frame. */
static unsigned char *
value_bytes(const struct interp_warp *w, const struct interp_frame *f, const struct interp_value *v,
            unsigned lane)
{
    if (!v->is_register)
        return f->local + lane * f->stride + v->place;

    unsigned char *base = v->place & 1 ? f->func->program->constants : f->registers;

    return base + (v->place & ~UINT32_C(1)) + (size_t)lane * v->bytes;
}

/* Predicates are 1 byte in memory. */
static uint8_t
predicate_value(const struct interp_warp *w, const struct interp_frame *f,
                const struct interp_value *v, unsigned lane)
{
    if (!v->is_register || v->bytes)
        return *value_bytes(w, f, v, lane) & 1;

    const uint32_t *p = (const uint32_t *)value_bytes(w, f, v, 0);

    return *p >> lane & 1;
}

static void
copy_value(const struct interp_warp *w, const struct interp_frame *to,
           const struct interp_value *formal, const struct interp_frame *from,
           const struct interp_value *actual, uint32_t lanes)
{
    const bool to_predicate = formal->is_register && formal->bytes == 0;
    const bool from_predicate = actual->is_register && actual->bytes == 0;

    MASKED_LANES(lanes, lane)
    {
        if (to_predicate) {
            uint32_t *p = (uint32_t *)value_bytes(w, to, formal, 0);
            const uint32_t bit = predicate_value(w, from, actual, lane);

            *p = (*p & ~(UINT32_C(1) << lane)) | bit << lane;
        } else if (from_predicate) {
            *value_bytes(w, to, formal, lane) = predicate_value(w, from, actual, lane);
        } else {
            const uint32_t bytes = formal->bytes < actual->bytes ? formal->bytes : actual->bytes;
            unsigned char *at = value_bytes(w, to, formal, lane);

            if (formal->is_register && bytes < formal->bytes)
                memset(at, 0, formal->bytes);
            memcpy(at, value_bytes(w, from, actual, lane), bytes);
        }
    }
}

/* The function that a pointer stands for; NULL if there is none. */
static const struct interp_func *
function_at(const struct hed_interp *p, uint64_t address)
{
    const uint64_t index = address / HED_PTX_FUNC_STRIDE - 1;
    const struct hed_interp *other;

    if (address % HED_PTX_FUNC_STRIDE == 0 && index < p->nmodule && p->by_index[index])
        return p->by_index[index];
    other = p->find ? p->find(p->find_arg, address) : NULL;
    return other ? &other->funcs[0] : NULL;
}

static const struct interp_step *
enter_function(struct interp_warp *w, const struct interp_step *s, const struct interp_func *f,
               uint32_t lanes)
{
    const struct interp_call *call = s->more;
    struct interp_frame *from = w->frame;
    const uint32_t n = f->nparams < call->nargs ? f->nparams : call->nargs;
    const bool grows = n > 0 && f->params[n - 1].bytes == UNSIZED;
    const uint32_t rest = w->active & ~lanes;
    struct interp_frame *to;

    interp_leave_if_stopped(w);
    w->warp->line = s->line;
    to = hed_interp_push(w, f, lanes, grows ? call->args[n - 1].bytes : 0);
    to->parent = from;
    to->site = s;
    for (uint32_t i = 0; i < n; i++)
        copy_value(w, to, &f->params[i], from, &call->args[i], lanes);
    if (rest)
        hed_interp_wait(w, rest, interp_pc(w, s) + 1);
    MASKED_LANES(lanes, lane)
    from->pc[lane] = INTERP_CALLED;
    hed_interp_enter(w, to);
    interp_set_active(w, lanes);
    return f->steps;
}

void
hed_interp_results(struct interp_warp *w, uint32_t lanes)
{
    const struct interp_frame *f = w->frame;
    const struct interp_call *call = f->site->more;

    for (uint32_t i = 0; i < f->func->nrets && i < call->nrets; i++)
        copy_value(w, f->parent, &call->rets[i], f, &f->func->rets[i], lanes);
}

static INTERP_STEP(call_function)
{
    const struct interp_call *call = s->more;

    return enter_function(w, s, call->callee, w->mask);
}

/* Lanes with different pointers call one after the other: the others come back to this step. */
static INTERP_STEP(call_pointer)
{
    const uint64_t *pointers = interp_at(w, s->b);
    const uint64_t first = pointers[__builtin_ctz(w->mask)];
    const struct interp_func *f = function_at(w->frame->func->program, first);
    uint32_t same = 0;

    if (!f)
        hed_interp_trap(w, s, w->mask, HED_PTX_TRAP_CALL);
    MASKED_LANES(w->mask, lane)
    same |= (uint32_t)(pointers[lane] == first) << lane;

    const uint32_t others = w->mask & ~same;

    if (others) {
        /* The guard step, if there is one, lets the same lanes pass again. */
        const uint32_t passed = w->active & ~w->mask;

        if (passed)
            hed_interp_wait(w, passed, interp_pc(w, s) + 1);
        hed_interp_wait(w, others, interp_pc(w, s));
        w->active = same;
    }
    return enter_function(w, s, f, same);
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* A vector register is passed element by element. */
static unsigned
count_passed(const struct hed_ptx_var *formal)
{
    return formal && formal->space == HED_PTX_SPACE_REG && formal->vec ? formal->vec : 1;
}

void
hed_interp_values(struct interp_decoder *d, const struct hed_ptx_var *v, struct interp_value **out,
                  uint32_t *count)
{
    uint32_t n = 0;

    for (const struct hed_ptx_var *at = v; at; at = at->next)
        n += count_passed(at);
    *out = hed_interp_alloc(d, (n + 1) * sizeof(**out));
    *count = n;
    for (uint32_t i = 0, k = 0; *out && i < n; i++) {
        struct interp_value *value = &(*out)[i];

        value->is_register = v->space == HED_PTX_SPACE_REG && v->reg;
        if (value->is_register) {
            const struct hed_ptx_operand o = {
                .kind = HED_PTX_OPERAND_REG, .reg = v->reg, .sel = (uint16_t)(v->vec ? k + 1 : 0)};

            value->place = hed_interp_register_place(d, &o);
            value->bytes = interp_bytes(v->reg->type);
        } else {
            (void)hed_interp_map_get(d->locals, (uintptr_t)v, &value->place);
            value->bytes = v->unsized ? UNSIZED : (uint32_t)v->size;
        }
        if (++k == count_passed(v)) {
            v = v->next;
            k = 0;
        }
    }
}

static bool
is_param_variable(const struct hed_ptx_operand *o)
{
    return o->kind == HED_PTX_OPERAND_VAR && o->var->space == HED_PTX_SPACE_PARAM;
}

static void
variable_value(struct interp_decoder *d, const struct hed_ptx_operand *o, struct interp_value *v)
{
    v->is_register = false;
    v->bytes = (uint32_t)o->var->size;
    (void)hed_interp_map_get(d->locals, (uintptr_t)o->var, &v->place);
    v->place += (uint32_t)o->offset;
}

/* Element k of an argument, or of the place of a result. */
static void
call_value(struct interp_decoder *d, const struct hed_ptx_operand *whole,
           const struct hed_ptx_var *formal, unsigned k, bool is_in, struct interp_value *v)
{
    const enum hed_ptx_type t = formal ? formal->type : HED_PTX_TYPE_B32;
    const struct hed_ptx_operand o = hed_ptx_nth_element(whole, k);

    if (is_param_variable(&o)) {
        variable_value(d, &o, v);
        v->place += k * interp_bytes(t);
        v->bytes = v->bytes > k * interp_bytes(t) ? v->bytes - k * interp_bytes(t) : 0;
        return;
    }
    v->is_register = true;
    if (is_in) {
        v->place = hed_interp_source(d, &o, t);
        v->bytes = interp_bytes(t);
    } else if (o.kind == HED_PTX_OPERAND_REG) {
        v->place = hed_interp_register_place(d, &o);
        v->bytes = interp_bytes(o.reg->type);
    } else {
        v->place = hed_interp_temp(d, 16);
        v->bytes = 16;
    }
}

/* The arguments of a call, or the places of its results. */
static struct interp_value *
call_values(struct interp_decoder *d, const struct hed_ptx_operand *list,
            const struct hed_ptx_var *first, bool is_in, uint32_t *count)
{
    const struct hed_ptx_var *formal = first;
    struct interp_value *values;
    uint32_t n = 0;

    for (uint32_t i = 0; i < list->count; i++, formal = formal ? formal->next : NULL)
        n += count_passed(formal);
    values = hed_interp_alloc(d, (n + 1) * sizeof(*values));
    *count = n;
    n = 0;
    formal = first;
    for (uint32_t i = 0; values && i < list->count; i++, formal = formal ? formal->next : NULL)
        for (unsigned k = 0; k < count_passed(formal); k++)
            call_value(d, &list->elems[i], formal, k, is_in, &values[n++]);
    return values;
}

void
hed_interp_emit_call(struct interp_decoder *d, const struct hed_ptx_func *callee,
                     const struct hed_ptx_sig *sig)
{
    const struct hed_ptx_operand *o = d->inst->operands;
    struct interp_call *call = hed_interp_alloc(d, sizeof(*call));
    uint32_t pointer = 0;
    struct interp_step *s;

    if (!call)
        return;
    call->args = call_values(d, &o[2], sig->params, true, &call->nargs);
    call->rets = call_values(d, &o[0], sig->rets, false, &call->nrets);
    if (callee)
        call->callee = d->program->by_index[hed_ptx_func_index(d->module, callee)];
    else
        pointer = hed_interp_source(d, &o[1], HED_PTX_TYPE_U64);
    s = hed_interp_emit(d, callee ? call_function : call_pointer);
    s->b = pointer;
    s->more = call;
}
