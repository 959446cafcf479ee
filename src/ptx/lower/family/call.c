/* Branches, calls and ends. */
#include <string.h>

#include "ptx/lower/lower.h"
#include "ptx/run/layout.h"

/* ---- what CUDA's device code takes for granted ----------------------------------------------- */

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

struct known {
    const char *name;
    const char *runtime;
    const char *args; /* a letter each: w 32 bits, l 64 bits */
    char result;      /* the same, or 0 */
    bool traps;       /* threads that called it do not go on */
};

static const struct known knowns[] = {
    {"vprintf", "hed_rt_vprintf", "ll", 'w', false},
    {"malloc", "hed_rt_malloc", "l", 'l', false},
    {"free", "hed_rt_free", "l", 0, false},
    {"__assertfail", "hed_rt_assertfail", "llwll", 0, true},
};

static const struct known *
find_known(const char *name)
{
    for (size_t i = 0; i < sizeof(knowns) / sizeof(knowns[0]); i++) {
        if (strcmp(knowns[i].name, name) == 0)
            return &knowns[i];
    }
    return NULL;
}

static void
call_known_one(struct hed_lower *l, void *arg, LLVMValueRef *args, LLVMValueRef *results)
{
    const struct known *k = arg;
    const unsigned n = (unsigned)strlen(k->args);
    LLVMTypeRef result = k->result == 'w' ? l->i32 : k->result == 'l' ? l->i64 : l->nothing;
    LLVMValueRef all[8] = {l->function->strand};
    LLVMValueRef v;

    for (unsigned i = 0; i < n; i++)
        all[i + 1] = args[i];
    v = hed_lower_runtime(l, k->runtime, result, all, n + 1);
    if (k->result)
        results[0] = v;
}

static void
call_known(struct hed_lower *l, const struct known *k)
{
    const struct hed_ptx_operand *rets = &l->inst->operands[0];
    const struct hed_ptx_operand *args = &l->inst->operands[2];
    const unsigned n = (unsigned)strlen(k->args);
    LLVMTypeRef type = k->result == 'w' ? l->i32 : l->i64;
    LLVMValueRef values[8], result;

    if (args->count != n || rets->count > (k->result ? 1u : 0u)) {
        hed_lower_refuse(l, "%s is called with other arguments than it takes", k->name);
        return;
    }
    for (unsigned i = 0; i < n; i++)
        values[i] = hed_lower_argument(l, &args->elems[i], k->args[i] == 'w' ? l->i32 : l->i64);
    l->shape->each(l, call_known_one, (void *)k, values, n, &type, &result, k->result ? 1 : 0);
    if (k->traps)
        l->shape->trap(l, NULL, HED_PTX_TRAP);
    if (rets->count == 0)
        return;
    if (rets->elems[0].kind == HED_PTX_OPERAND_VAR) {
        const struct hed_lower_place at = {.var = rets->elems[0].var,
                                           .offset = rets->elems[0].offset};
        const struct hed_lower_access how = {.type = type, .count = 1, .align = 1};

        l->shape->store(l, &at, &how, &result);
    } else {
        hed_lower_set(l, &rets->elems[0], k->result == 'w' ? HED_PTX_TYPE_B32 : HED_PTX_TYPE_B64,
                      result);
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void
call(struct hed_lower *l)
{
    const struct hed_ptx_operand *o = l->inst->operands;
    const struct hed_ptx_func *callee;
    const struct known *known;

    if (o[1].kind != HED_PTX_OPERAND_FUNC) {
        const struct hed_ptx_table *table =
            l->inst->noperands > 3 && o[3].kind == HED_PTX_OPERAND_TABLE ? o[3].table : NULL;
        const struct hed_ptx_sig *sig = NULL;

        if (table && table->kind == HED_PTX_TABLE_PROTO)
            sig = &table->sig;
        else if (table && table->count && table->targets[0].kind == HED_PTX_OPERAND_FUNC)
            sig = &table->targets[0].func->sig;
        if (!sig)
            hed_lower_refuse(l, "an indirect call without a prototype");
        else
            l->shape->call(l, NULL, hed_lower_get(l, &o[1], HED_PTX_TYPE_U64), sig, &o[0], &o[2]);
        return;
    }
    callee = hed_ptx_func_real(o[1].func);
    if (callee->has_body) {
        l->shape->call(l, callee, NULL, &callee->sig, &o[0], &o[2]);
        return;
    }
    known = find_known(callee->name);
    if (known)
        call_known(l, known);
    else
        hed_lower_refuse(l, "function %s is declared but nowhere defined", callee->name);
}

bool
hed_lower_control(struct hed_lower *l)
{
    const struct hed_ptx_operand *o = l->inst->operands;

    switch (l->inst->form->op) {
    case HED_PTX_OP_BRA:
        l->shape->branch(l, o[0].label);
        return true;
    case HED_PTX_OP_BRX_IDX:
        l->shape->branch_table(l, hed_lower_get(l, &o[0], HED_PTX_TYPE_U32), o[1].table);
        return true;
    case HED_PTX_OP_CALL:
        call(l);
        return true;
    case HED_PTX_OP_RET:
        l->shape->ret(l);
        return true;
    case HED_PTX_OP_EXIT:
        l->shape->exit(l);
        return true;
    case HED_PTX_OP_TRAP:
    case HED_PTX_OP_BRKPT:
        l->shape->trap(l, NULL, HED_PTX_TRAP);
        return true;
    case HED_PTX_OP_PMEVENT:
    case HED_PTX_OP_SETMAXNREG_INC:
    case HED_PTX_OP_SETMAXNREG_DEC:
        return true;
    default:
        return false;
    }
}
