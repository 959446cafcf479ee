/* Operands: elements of vectors, and what has no value or no place. */
#include "kernel/ptx/meaning/meaning.h"

struct hed_ptx_operand
hed_ptx_nth_element(const struct hed_ptx_operand *o, unsigned i)
{
    struct hed_ptx_operand e = *o;

    if (o->kind == HED_PTX_OPERAND_VEC)
        return i < o->count ? o->elems[i] : (struct hed_ptx_operand){.kind = HED_PTX_OPERAND_SINK};
    if (o->kind == HED_PTX_OPERAND_REG && o->reg->vec && !o->sel)
        e.sel = (uint16_t)(i + 1);
    return e;
}

const char *
hed_ptx_lacks_value(const struct hed_ptx_operand *o, enum hed_ptx_type t)
{
    const unsigned bits = hed_ptx_types[t].bits;

    switch (o->kind) {
    case HED_PTX_OPERAND_REG:
    case HED_PTX_OPERAND_SREG:
    case HED_PTX_OPERAND_INT:
    case HED_PTX_OPERAND_VAR:
    case HED_PTX_OPERAND_FUNC:
    case HED_PTX_OPERAND_SINK: /* reads as 0 */
        return NULL;
    case HED_PTX_OPERAND_FLOAT:
        if (bits == 32 || bits == 64 || t == HED_PTX_TYPE_F16 || t == HED_PTX_TYPE_BF16)
            return NULL;
        return "this type has no constants";
    default:
        return "an operand of this kind has no value";
    }
}

const char *
hed_ptx_lacks_place(const struct hed_ptx_operand *o)
{
    if (o->kind == HED_PTX_OPERAND_REG || o->kind == HED_PTX_OPERAND_SINK)
        return NULL;
    return "the destination is not a register";
}
