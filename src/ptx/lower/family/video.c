/* The video instructions: describes them for a helper, which does the work for one lane at a
 * time. */
#include "ptx/run/video.h"

#include "ptx/lower/family/family.h"
#include "ptx/lower/family/math.h"

static const struct {
    uint16_t one, two, four; /* enum hed_ptx_op: on one, two and four parts of a word; 0: none */
    uint8_t op;              /* enum hed_video_op */
} ops[] = {
    {HED_PTX_OP_VADD, HED_PTX_OP_VADD2, HED_PTX_OP_VADD4, HED_VIDEO_ADD},
    {HED_PTX_OP_VSUB, HED_PTX_OP_VSUB2, HED_PTX_OP_VSUB4, HED_VIDEO_SUB},
    {HED_PTX_OP_VABSDIFF, HED_PTX_OP_VABSDIFF2, HED_PTX_OP_VABSDIFF4, HED_VIDEO_ABSDIFF},
    {HED_PTX_OP_VMIN, HED_PTX_OP_VMIN2, HED_PTX_OP_VMIN4, HED_VIDEO_MIN},
    {HED_PTX_OP_VMAX, HED_PTX_OP_VMAX2, HED_PTX_OP_VMAX4, HED_VIDEO_MAX},
    {HED_PTX_OP_VSHL, 0, 0, HED_VIDEO_SHL},
    {HED_PTX_OP_VSHR, 0, 0, HED_VIDEO_SHR},
    {HED_PTX_OP_VMAD, 0, 0, HED_VIDEO_MAD},
    {HED_PTX_OP_VSET, HED_PTX_OP_VSET2, HED_PTX_OP_VSET4, HED_VIDEO_SET},
    {0, HED_PTX_OP_VAVRG2, HED_PTX_OP_VAVRG4, HED_VIDEO_AVRG},
};

/* Sets the operation and the number of parts it works on. */
static void
find_video_op(enum hed_ptx_op op, struct hed_video *v)
{
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        v->op = ops[i].op & 15u;
        v->parts = op == ops[i].one ? 1 : op == ops[i].two ? 2 : op == ops[i].four ? 4 : 0;
        if (v->parts)
            return;
    }
}

static unsigned
second_operation(enum hed_ptx_oper o)
{
    return o == HED_PTX_OPER_ADD ? 1 : o == HED_PTX_OPER_MIN ? 2 : o == HED_PTX_OPER_MAX ? 3 : 0;
}

static void
describe_video(struct hed_lower *l, struct hed_video *v)
{
    const struct hed_ptx_inst *i = l->inst;
    const struct hed_ptx_form *f = i->form;
    /* vset has no type for its destination: 0 and 1 are the same in all types. */
    const unsigned sources = f->ntypes > 2 ? 1 : 0;

    v->d_signed = sources && hed_is_signed(f->types[0]);
    v->a_signed = hed_is_signed(f->types[sources]);
    v->b_signed = hed_is_signed(f->types[sources + 1]);
    v->sat = HED_SAID(l, SAT);
    v->wrap = f->clamp == HED_PTX_CLAMP_WRAP;
    v->second = second_operation(f->oper) & 3u;
    v->merges = i->noperands > 3 && !v->second;
    v->po = HED_SAID(l, PO);
    v->shift = HED_SAID(l, SHR15) ? 15 : HED_SAID(l, SHR7) ? 7 : 0;
    v->negates_product = i->operands[1].negated != i->operands[2].negated;
    v->negates_c = i->noperands > 3 && i->operands[3].negated;
    v->cmp = f->cmp & 31u;
    v->d_sel = i->operands[0].sel;
    v->a_sel = i->operands[1].sel;
    v->b_sel = i->operands[2].sel;
}

void
hed_op_video(struct hed_lower *l)
{
    const struct hed_ptx_inst *i = l->inst;
    struct hed_video v = {0};
    LLVMValueRef args[5];

    find_video_op(i->form->op, &v);
    describe_video(l, &v);
    for (unsigned k = 0; k < 3; k++)
        args[k] = k + 1 < i->noperands ? hed_operand(l, k + 1, HED_PTX_TYPE_U32)
                                       : hed_lower_int(l, l->i32, 0);
    args[3] = hed_lower_int(l, l->i32, hed_video_how(&v));
    args[4] = hed_lower_int(l, l->i64, hed_video_selectors(&v));
    hed_lower_set(l, &i->operands[0], HED_PTX_TYPE_U32,
                  hed_lower_helper(l, "hed_ptx_video", l->i32, args, 5));
}
