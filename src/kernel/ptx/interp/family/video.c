/* The video instructions: describes them for hed_ptx_video(), which does the work for one lane. */
#include "kernel/ptx/run/video.h"

#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/lanes.h"

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
    const struct hed_video v = hed_video_describe(i);
    struct interp_step *s;
    uint32_t from[3];

    for (unsigned k = 0; k < 3; k++)
        from[k] = k + 1 < i->noperands ? hed_interp_operand(d, k + 1, HED_PTX_TYPE_U32)
                                       : hed_interp_constant(d, 0, 4);
    s = hed_interp_emit3(d, video_lanes, hed_interp_dest(d, &i->operands[0], HED_PTX_TYPE_U32),
                         from[0], from[1], from[2]);
    s->e = hed_video_how(&v);
    s->imm = (int64_t)hed_video_selectors(&v);
}
