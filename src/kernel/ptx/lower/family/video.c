/* The video instructions: describes them for a helper, which does the work for one lane at a
 * time. */
#include "kernel/ptx/run/video.h"

#include "kernel/ptx/lower/family/family.h"
#include "kernel/ptx/lower/family/math.h"

void
hed_op_video(struct hed_lower *l)
{
    const struct hed_ptx_inst *i = l->inst;
    const struct hed_video v = hed_video_describe(i);
    LLVMValueRef args[5];

    for (unsigned k = 0; k < 3; k++)
        args[k] = k + 1 < i->noperands ? hed_operand(l, k + 1, HED_PTX_TYPE_U32)
                                       : hed_lower_int(l, l->i32, 0);
    args[3] = hed_lower_int(l, l->i32, hed_video_how(&v));
    args[4] = hed_lower_int(l, l->i64, hed_video_selectors(&v));
    hed_lower_set(l, &i->operands[0], HED_PTX_TYPE_U32,
                  hed_lower_helper(l, "hed_ptx_video", l->i32, args, 5));
}
