/* How a function's body uses its registers. Statements are looked at in the order of the text. */
#include <stdlib.h>

#include "kernel/ptx/pass/pass.h"
#include "kernel/ptx/ptx.h"

/* Notes what an operand does with the registers it mentions. */
static void
note_operand_uses(uint8_t *uses, const struct hed_ptx_operand *o, bool is_write)
{
    switch (o->kind) {
    case HED_PTX_OPERAND_MEM:
        if (o->base != HED_PTX_OPERAND_REG)
            return;
        is_write = false;
        break;
    case HED_PTX_OPERAND_REG:
        break;
    case HED_PTX_OPERAND_VEC:
    case HED_PTX_OPERAND_PAIR:
    case HED_PTX_OPERAND_LIST:
    case HED_PTX_OPERAND_TUPLE:
        for (uint32_t i = 0; i < o->count; i++)
            note_operand_uses(uses, &o->elems[i], is_write);
        return;
    default:
        return;
    }

    uint8_t *use = &uses[o->reg->id];

    if (is_write)
        *use = *use == HED_PTX_USE_NONE ? HED_PTX_USE_ONCE : HED_PTX_USE_MANY;
    else if (*use == HED_PTX_USE_NONE)
        *use = HED_PTX_USE_MANY;
}

uint8_t *
hed_ptx_find_uses(const struct hed_ptx_func *f)
{
    uint8_t *uses = calloc((size_t)f->nregs + 1, 1);

    for (const struct hed_ptx_stmt *s = uses ? f->body : NULL; s; s = s->next) {
        const struct hed_ptx_inst *i = (const struct hed_ptx_inst *)s;

        if (s->kind != HED_PTX_STMT_INST)
            continue;
        if (i->guard && uses[i->guard->id] == HED_PTX_USE_NONE)
            uses[i->guard->id] = HED_PTX_USE_MANY;
        if (i->is_refused)
            continue;
        for (unsigned k = i->noperands; k-- > 1;)
            note_operand_uses(uses, &i->operands[k], false);
        if (i->noperands > 0)
            note_operand_uses(uses, &i->operands[0], !i->guard);
    }
    return uses;
}
