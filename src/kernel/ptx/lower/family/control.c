/* Calls, traps, and what else a thread does on its own. */
#include <string.h>

#include "base/device_calls.h"
#include "kernel/ptx/lower/family/family.h"
#include "kernel/ptx/lower/lower.h"
#include "kernel/ptx/run/layout.h"

/* ---- functions that every GPU has ------------------------------------------------------------ */

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

struct builtin {
    const char *name;
    const char *runtime;
    const char *args; /* one letter each: w for 32 bits, l for 64 bits */
    char result;      /* such a letter, or 0 for none */
    bool traps;       /* the calling thread ends */
};

static const struct builtin builtins[] = {
    {"vprintf", "hed_rt_vprintf", "ll", 'w', false},
    {"malloc", "hed_rt_malloc", "l", 'l', false},
    {"free", "hed_rt_free", "l", 0, false},
    {"__assertfail", "hed_rt_assertfail", "llwll", 0, true},
    {"cudaGraphSetConditional", "hed_rt_set_condition", "lw", 0, false},
};

static const struct builtin *
find_builtin(const char *name)
{
    for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++) {
        if (strcmp(builtins[i].name, name) == 0)
            return &builtins[i];
    }
    return NULL;
}

static void
call_builtin_for_lane(struct hed_lower *l, void *arg, LLVMValueRef *args, LLVMValueRef *results)
{
    const struct builtin *k = arg;
    const unsigned n = (unsigned)strlen(k->args);
    LLVMTypeRef result = k->result == 'w' ? l->i32 : k->result == 'l' ? l->i64 : l->nothing;
    LLVMValueRef all[8] = {l->function->warp};
    LLVMValueRef v;

    for (unsigned i = 0; i < n; i++)
        all[i + 1] = args[i];
    v = hed_lower_runtime(l, k->runtime, result, all, n + 1);
    if (k->result)
        results[0] = v;
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

static void
call_builtin(struct hed_lower *l, const struct builtin *k)
{
    const struct hed_ptx_operand *rets = &l->inst->operands[0];
    const struct hed_ptx_operand *args = &l->inst->operands[2];
    const unsigned n = (unsigned)strlen(k->args);
    LLVMTypeRef type = k->result == 'w' ? l->i32 : l->i64;
    LLVMValueRef values[8], result;

    if (args->count != n || rets->count > (k->result ? 1u : 0u)) {
        hed_lower_refuse(l, "%s does not take these arguments", k->name);
        return;
    }
    for (unsigned i = 0; i < n; i++)
        values[i] = hed_lower_argument(l, &args->elems[i], k->args[i] == 'w' ? l->i32 : l->i64);
    l->shape->each(l, call_builtin_for_lane, (void *)k, values, n, &type, &result,
                   k->result ? 1 : 0);
    if (k->traps)
        l->shape->trap(l, NULL, HED_PTX_TRAP);
    if (rets->count)
        put_call_result(l, &rets->elems[0], k->result, result);
}

/* ---- calls of the device runtime ------------------------------------------------------------- */

struct device_call {
    const struct hed_device_call *call;
    unsigned number; /* enum hed_device_call_number */
    unsigned words;  /* arguments, with each word of a dim3 counted */
};

static void
call_device_for_lane(struct hed_lower *l, void *arg, LLVMValueRef *args, LLVMValueRef *results)
{
    const struct device_call *d = arg;
    LLVMValueRef all[2 + HED_DEVICE_WORDS] = {l->function->warp, hed_lower_word(l, d->number)};
    LLVMValueRef v;

    for (unsigned i = 0; i < HED_DEVICE_WORDS; i++)
        all[i + 2] = i < d->words ? LLVMBuildZExt(l->b, args[i], l->i64, "")
                                  : LLVMConstInt(l->i64, 0, false);
    v = hed_lower_runtime(l, "hed_rt_device_call", l->i64, all, 2 + HED_DEVICE_WORDS);
    results[0] = d->call->result == 'w' ? LLVMBuildTrunc(l->b, v, l->i32, "") : v;
}

/* A dim3 is passed in a variable. */
static void
device_argument(struct hed_lower *l, struct device_call *d, const struct hed_ptx_operand *o,
                char letter, LLVMValueRef *values)
{
    struct hed_ptx_operand part = *o;

    if (letter != 'd') {
        values[d->words++] = hed_lower_argument(l, o, letter == 'w' ? l->i32 : l->i64);
        return;
    }
    for (unsigned i = 0; i < 3; i++) {
        part.offset = o->offset + 4 * (int)i;
        values[d->words++] = hed_lower_argument(l, &part, l->i32);
    }
}

static void
call_device(struct hed_lower *l, int number)
{
    const struct hed_ptx_operand *rets = &l->inst->operands[0];
    const struct hed_ptx_operand *args = &l->inst->operands[2];
    struct device_call d = {.call = &hed_device_calls[number], .number = (unsigned)number};
    const unsigned n = (unsigned)strlen(d.call->args);
    LLVMTypeRef type = d.call->result == 'w' ? l->i32 : l->i64;
    LLVMValueRef values[HED_DEVICE_WORDS], result;
    bool fits = args->count == n && rets->count <= 1;

    for (unsigned i = 0; i < n && fits; i++)
        fits = d.call->args[i] != 'd' || args->elems[i].kind == HED_PTX_OPERAND_VAR;
    if (!fits) {
        hed_lower_refuse(l, "cuda%s of the device does not take these arguments", d.call->name);
        return;
    }
    for (unsigned i = 0; i < n; i++)
        device_argument(l, &d, &args->elems[i], d.call->args[i], values);
    l->shape->each(l, call_device_for_lane, &d, values, d.words, &type, &result, 1);
    if (rets->count)
        put_call_result(l, &rets->elems[0], d.call->result, result);
}

/* ---- calls ----------------------------------------------------------------------------------- */

void
hed_op_call(struct hed_lower *l)
{
    const struct hed_ptx_operand *o = l->inst->operands;
    const struct hed_ptx_func *callee;
    const struct builtin *builtin;
    int device;

    if (o[1].kind != HED_PTX_OPERAND_FUNC) {
        const struct hed_ptx_table *table =
            l->inst->noperands > 3 && o[3].kind == HED_PTX_OPERAND_TABLE ? o[3].table : NULL;
        const struct hed_ptx_sig *sig = NULL;

        if (table && table->kind == HED_PTX_TABLE_PROTO)
            sig = &table->sig;
        else if (table && table->count && table->targets[0].kind == HED_PTX_OPERAND_FUNC)
            sig = &table->targets[0].func->sig;
        if (!sig)
            hed_lower_refuse(l, "an indirect call needs a prototype");
        else
            l->shape->call(l, NULL, hed_lower_get(l, &o[1], HED_PTX_TYPE_U64), sig, &o[0], &o[2]);
        return;
    }
    callee = hed_ptx_func_real(o[1].func);
    if (callee->has_body) {
        l->shape->call(l, callee, NULL, &callee->sig, &o[0], &o[2]);
        return;
    }
    builtin = find_builtin(callee->name);
    device = hed_device_call_find(callee->name, strlen(callee->name), false);
    if (builtin)
        call_builtin(l, builtin);
    else if (device >= 0)
        call_device(l, device);
    else
        hed_lower_refuse(l, "function %s is declared but not defined", callee->name);
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
