/* Calls, traps, and what else a thread does on its own. */
#include "base/device_calls.h"
#include "kernel/ptx/lower/family/family.h"
#include "kernel/ptx/lower/lower.h"

/* ---- functions that are not the program's ---------------------------------------------------- */

LLVMValueRef
hed_lower_argument(struct hed_lower *l, const struct hed_ptx_operand *o, LLVMTypeRef t)
{
    const bool is_wide = t == l->i64;
    LLVMValueRef v;

    if (o->kind == HED_PTX_OPERAND_VAR && o->var->space == HED_PTX_SPACE_PARAM) {
        const struct hed_lower_place at = {.var = o->var, .offset = o->offset};
        const struct hed_lower_access how = {.type = t, .count = 1, .align = 1};

        l->shape->load(l, &at, &how, &v);
        return v;
    }
    v = hed_lower_get(l, o, is_wide ? HED_PTX_TYPE_U64 : HED_PTX_TYPE_U32);
    return v;
}

static const char *const runtime_functions[HED_PTX_BUILTINS] = {
    [HED_PTX_VPRINTF] = "hed_rt_vprintf",
    [HED_PTX_MALLOC] = "hed_rt_malloc",
    [HED_PTX_FREE] = "hed_rt_free",
    [HED_PTX_SET_CONDITION] = "hed_rt_set_condition",
    [HED_PTX_ASSERTFAIL] = "hed_rt_assertfail",
};

/* A call of a function that is not the program's. */
struct outer_call {
    const struct hed_ptx_callee *callee;
    unsigned words; /* arguments, with each word of a dim3 counted */
};

static void
call_builtin_for_lane(struct hed_lower *l, void *arg, LLVMValueRef *args, LLVMValueRef *results)
{
    const struct outer_call *c = arg;
    const char letter = c->callee->result;
    LLVMTypeRef result = letter == 'w' ? l->i32 : letter ? l->i64 : l->nothing;
    LLVMValueRef all[1 + HED_DEVICE_WORDS] = {l->function->warp};
    LLVMValueRef v;

    for (unsigned i = 0; i < c->words; i++)
        all[i + 1] = args[i];
    v = hed_lower_runtime(l, runtime_functions[c->callee->number], result, all, c->words + 1);
    if (letter)
        results[0] = v;
}

static void
call_device_for_lane(struct hed_lower *l, void *arg, LLVMValueRef *args, LLVMValueRef *results)
{
    const struct outer_call *c = arg;
    LLVMValueRef all[2 + HED_DEVICE_WORDS] = {l->function->warp,
                                              hed_lower_word(l, c->callee->number)};
    LLVMValueRef v;

    for (unsigned i = 0; i < HED_DEVICE_WORDS; i++)
        all[i + 2] = i < c->words ? LLVMBuildZExt(l->b, args[i], l->i64, "")
                                  : LLVMConstInt(l->i64, 0, false);
    v = hed_lower_runtime(l, "hed_rt_device_call", l->i64, all, 2 + HED_DEVICE_WORDS);
    results[0] = c->callee->result == 'w' ? LLVMBuildTrunc(l->b, v, l->i32, "") : v;
}

/* A variable or a register takes the result of a call. */
static void
put_call_result(struct hed_lower *l, const struct hed_ptx_operand *to, char letter,
                LLVMValueRef result)
{
    if (to->kind == HED_PTX_OPERAND_VAR) {
        const struct hed_lower_place at = {.var = to->var, .offset = to->offset};
        const struct hed_lower_access how = {
            .type = letter == 'w' ? l->i32 : l->i64, .count = 1, .align = 1};

        l->shape->store(l, &at, &how, &result);
    } else {
        hed_lower_set(l, to, letter == 'w' ? HED_PTX_TYPE_B32 : HED_PTX_TYPE_B64, result);
    }
}

/* A dim3 is passed in a variable. */
static void
add_call_argument(struct hed_lower *l, struct outer_call *c, const struct hed_ptx_operand *o,
                  char letter, LLVMValueRef *values)
{
    struct hed_ptx_operand part = *o;

    if (letter != 'd') {
        values[c->words++] = hed_lower_argument(l, o, letter == 'w' ? l->i32 : l->i64);
        return;
    }
    for (unsigned i = 0; i < 3; i++) {
        part.offset = o->offset + 4 * (int)i;
        values[c->words++] = hed_lower_argument(l, &part, l->i32);
    }
}

static void
call_outside(struct hed_lower *l, const struct hed_ptx_callee *m)
{
    const struct hed_ptx_operand *rets = &l->inst->operands[0];
    const struct hed_ptx_operand *args = &l->inst->operands[2];
    const bool is_builtin = m->kind == HED_PTX_CALLS_BUILTIN;
    struct outer_call c = {.callee = m};
    LLVMTypeRef type = m->result == 'w' ? l->i32 : l->i64;
    LLVMValueRef values[HED_DEVICE_WORDS], result;

    for (uint32_t i = 0; i < args->count; i++)
        add_call_argument(l, &c, &args->elems[i], m->args[i], values);
    l->shape->each(l, is_builtin ? call_builtin_for_lane : call_device_for_lane, &c, values,
                   c.words, &type, &result, m->result ? 1 : 0);
    if (is_builtin && m->number == HED_PTX_ASSERTFAIL)
        l->shape->trap(l, NULL, HED_PTX_TRAP);
    if (rets->count)
        put_call_result(l, &rets->elems[0], m->result, result);
}

/* ---- calls ----------------------------------------------------------------------------------- */

void
hed_op_call(struct hed_lower *l)
{
    const struct hed_ptx_callee *m = &l->meaning->callee;
    const struct hed_ptx_operand *o = l->inst->operands;

    if (m->kind == HED_PTX_CALLS_FUNCTION)
        l->shape->call(l, m->func, NULL, m->sig, &o[0], &o[2]);
    else if (m->kind == HED_PTX_CALLS_POINTER)
        l->shape->call(l, NULL, hed_lower_get(l, &o[1], HED_PTX_TYPE_U64), m->sig, &o[0], &o[2]);
    else
        call_outside(l, m);
}

/* ---- one line each --------------------------------------------------------------------------- */

void
hed_op_trap(struct hed_lower *l)
{
    l->shape->trap(l, NULL, HED_PTX_TRAP);
}

void
hed_op_nanosleep(struct hed_lower *l)
{
    l->shape->nanosleep(l, hed_lower_get(l, &l->inst->operands[0], HED_PTX_TYPE_B32));
}

void
hed_op_activemask(struct hed_lower *l)
{
    hed_lower_set(l, &l->inst->operands[0], HED_PTX_TYPE_B32, l->shape->activemask(l));
}
