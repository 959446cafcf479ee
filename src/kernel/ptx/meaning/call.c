/* Calls: of functions with a body, through pointers, and of what every GPU has. */
#include <string.h>

#include "base/device_calls.h"
#include "kernel/ptx/meaning/family.h"
#include "kernel/ptx/run/layout.h"

static const struct {
    const char *name;
    const char *args; /* as in struct hed_ptx_callee */
    char result;
} builtins[HED_PTX_BUILTINS] = {
    [HED_PTX_VPRINTF] = {"vprintf", "ll", 'w'},
    [HED_PTX_MALLOC] = {"malloc", "l", 'l'},
    [HED_PTX_FREE] = {"free", "l", 0},
    [HED_PTX_SET_CONDITION] = {"cudaGraphSetConditional", "lw", 0},
    [HED_PTX_ASSERTFAIL] = {"__assertfail", "llwll", 0},
};

/* ---- functions of the program ---------------------------------------------------------------- */

static const struct hed_ptx_sig *
prototype_of(const struct hed_ptx_inst *i)
{
    const struct hed_ptx_table *table =
        i->noperands > 3 && i->operands[3].kind == HED_PTX_OPERAND_TABLE ? i->operands[3].table
                                                                         : NULL;

    if (table && table->kind == HED_PTX_TABLE_PROTO)
        return &table->sig;
    if (table && table->count && table->targets[0].kind == HED_PTX_OPERAND_FUNC)
        return &table->targets[0].func->sig;
    return NULL;
}

/* The parameters of a kernel are the grid's; those of other functions are the thread's own. */
static bool
is_of_thread(const struct hed_ptx_func *f, const struct hed_ptx_var *v)
{
    for (const struct hed_ptx_var *p = f->is_entry ? f->sig.params : NULL; p; p = p->next) {
        if (p == v)
            return false;
    }
    return v->owner == f;
}

static int
check_passed(const struct hed_ptx_func *f, const struct hed_ptx_operand *list, struct hed_why *why)
{
    for (uint32_t k = 0; k < list->count; k++) {
        const struct hed_ptx_operand *o = &list->elems[k];

        if (o->kind == HED_PTX_OPERAND_VAR && o->var->space == HED_PTX_SPACE_PARAM &&
            !is_of_thread(f, o->var))
            return hed_meaning_refuse(why, "argument %s is not a variable of this function",
                                      o->var->name);
    }
    return 0;
}

int
hed_meaning_check_passed(const struct hed_ptx_func *f, const struct hed_ptx_inst *i,
                         struct hed_why *why)
{
    const int err = check_passed(f, &i->operands[2], why);

    return err ? err : check_passed(f, &i->operands[0], why);
}

static int
take_function(const struct hed_ptx_inst *i, struct hed_ptx_callee *c,
              const struct hed_ptx_func *callee, struct hed_why *why)
{
    *c = (struct hed_ptx_callee){
        .kind = callee ? HED_PTX_CALLS_FUNCTION : HED_PTX_CALLS_POINTER,
        .func = callee,
        .sig = callee ? &callee->sig : prototype_of(i),
    };
    return c->sig ? 0 : hed_meaning_refuse(why, "an indirect call needs a prototype");
}

/* ---- functions that are not the program's ---------------------------------------------------- */

static bool
fits(const struct hed_ptx_inst *i, const struct hed_ptx_callee *c)
{
    const struct hed_ptx_operand *args = &i->operands[2];

    if (args->count != strlen(c->args) || i->operands[0].count > (c->result ? 1u : 0u))
        return false;
    for (uint32_t k = 0; k < args->count; k++) {
        if (c->args[k] == 'd' && args->elems[k].kind != HED_PTX_OPERAND_VAR)
            return false;
    }
    return true;
}

static int
take_builtin(const struct hed_ptx_inst *i, struct hed_ptx_callee *c, unsigned number,
             struct hed_why *why)
{
    *c = (struct hed_ptx_callee){
        .kind = HED_PTX_CALLS_BUILTIN,
        .number = number,
        .args = builtins[number].args,
        .result = builtins[number].result,
    };
    if (!fits(i, c))
        return hed_meaning_refuse(why, "%s does not take these arguments", builtins[number].name);
    return 0;
}

static int
take_device_call(const struct hed_ptx_inst *i, struct hed_ptx_callee *c, unsigned number,
                 struct hed_why *why)
{
    *c = (struct hed_ptx_callee){
        .kind = HED_PTX_CALLS_DEVICE,
        .number = number,
        .args = hed_device_calls[number].args,
        .result = hed_device_calls[number].result,
    };
    if (!fits(i, c))
        return hed_meaning_refuse(why, "cuda%s of the device does not take these arguments",
                                  hed_device_calls[number].name);
    return 0;
}

HED_MEANING(call)
{
    const struct hed_ptx_operand *o = &i->operands[1];
    const struct hed_ptx_func *callee;
    int device;

    if (o->kind != HED_PTX_OPERAND_FUNC)
        return take_function(i, &m->callee, NULL, why);
    callee = hed_ptx_func_real(o->func);
    if (callee->has_body)
        return take_function(i, &m->callee, callee, why);
    for (unsigned k = 0; k < HED_PTX_BUILTINS; k++) {
        if (strcmp(builtins[k].name, callee->name) == 0)
            return take_builtin(i, &m->callee, k, why);
    }
    device = hed_device_call_find(callee->name, strlen(callee->name), false);
    if (device >= 0)
        return take_device_call(i, &m->callee, (unsigned)device, why);
    return hed_meaning_refuse(why, "function %s is declared but not defined", callee->name);
}
