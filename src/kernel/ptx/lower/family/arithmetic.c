/* Arithmetic: the type decides whether integer.c, float.c or half.c makes the code. */
#include "kernel/ptx/lower/family/family.h"
#include "kernel/ptx/lower/family/math.h"

void
hed_op_arithmetic(struct hed_lower *l)
{
    const enum hed_ptx_type t = l->inst->form->types[0];

    switch (t) {
    case HED_PTX_TYPE_F16:
    case HED_PTX_TYPE_BF16:
    case HED_PTX_TYPE_F16X2:
    case HED_PTX_TYPE_BF16X2:
        hed_lower_half(l);
        break;
    case HED_PTX_TYPE_F32:
    case HED_PTX_TYPE_F64:
    case HED_PTX_TYPE_F32X2:
        hed_lower_real(l);
        break;
    default:
        hed_lower_integer(l);
        break;
    }
}
