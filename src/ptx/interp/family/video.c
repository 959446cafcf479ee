/* The video instructions: describes them for hed_ptx_video(), which does the work for one lane. */
#include "ptx/run/video.h"

#include "ptx/interp/family.h"
#include "ptx/interp/lanes.h"

static const struct {
    uint16_t one, two, four; /* enum hed_ptx_op: on one, two and four parts of a word; 0: none */
    uint8_t op;              /* enum hed_video_op */
} video_ops[] = {
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

static void
set_operation(enum hed_ptx_op op, struct hed_video *v)
{
    for (size_t i = 0; i < sizeof(video_ops) / sizeof(video_ops[0]); i++) {
        v->op = video_ops[i].op & 15u;
        v->parts = op == video_ops[i].one    ? 1
                   : op == video_ops[i].two  ? 2
                   : op == video_ops[i].four ? 4
                                             : 0;
        if (v->parts)
            return;
    }
}

static void
describe_instruction(const struct hed_ptx_inst *i, struct hed_video *v)
{
    const struct hed_ptx_form *f = i->form;
    /* vset has no type for its destination: 0 and 1 are the same in all types. */
    const unsigned sources = f->ntypes > 2 ? 1 : 0;

    v->d_signed = sources && interp_is_signed(f->types[0]);
    v->a_signed = interp_is_signed(f->types[sources]);
    v->b_signed = interp_is_signed(f->types[sources + 1]);
    v->sat = INTERP_HAS(f, SAT);
    v->wrap = f->clamp == HED_PTX_CLAMP_WRAP;
    v->second = f->oper == HED_PTX_OPER_ADD   ? 1
                : f->oper == HED_PTX_OPER_MIN ? 2
                : f->oper == HED_PTX_OPER_MAX ? 3
                                              : 0;
    v->merges = i->noperands > 3 && !v->second;
    v->po = INTERP_HAS(f, PO);
    v->shift = INTERP_HAS(f, SHR15) ? 15 : INTERP_HAS(f, SHR7) ? 7 : 0;
    v->negates_product = i->operands[1].negated != i->operands[2].negated;
    v->negates_c = i->noperands > 3 && i->operands[3].negated;
    v->cmp = f->cmp & 31u;
    v->d_sel = i->operands[0].sel;
    v->a_sel = i->operands[1].sel;
    v->b_sel = i->operands[2].sel;
}

/* e and imm are the two numbers that describe the instruction. */
static INTERP_STEP(video_lanes)
{
    const uint32_t *pa = interp_at(w, s->a);
    const uint32_t *pb = interp_at(w, s->b);
    const uint32_t *pc = interp_at(w, s->c);
    uint32_t *to = interp_at(w, s->d);

    MASKED_LANES(w->write, i)
    to[i] = hed_ptx_video(pa[i], pb[i], pc[i], s->e, (uint64_t)s->imm);
    return s + 1;
}

void
hed_interp_op_video(struct interp_decoder *d)
{
    const struct hed_ptx_inst *i = d->inst;
    struct hed_video v = {0};
    struct interp_step *s;
    uint32_t from[3];

    set_operation(i->form->op, &v);
    describe_instruction(i, &v);
    for (unsigned k = 0; k < 3; k++)
        from[k] = k + 1 < i->noperands ? hed_interp_operand(d, k + 1, HED_PTX_TYPE_U32)
                                       : hed_interp_constant(d, 0, 4);
    s = hed_interp_emit3(d, video_lanes, hed_interp_dest(d, &i->operands[0], HED_PTX_TYPE_U32),
                         from[0], from[1], from[2]);
    s->e = hed_video_how(&v);
    s->imm = (int64_t)hed_video_selectors(&v);
}
