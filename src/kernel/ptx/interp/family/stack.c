/* Memory on the stack of a lane, and cache hints, which do nothing. */
#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/lanes.h"

#define STACK_ROOM (1u << 20) /* bytes of a confined warp that alloca can have */

/* b is the width of the size and of the result, c the alignment. */
static INTERP_STEP(alloca_lanes)
{
    uint64_t most = 0, stride;
    struct interp_block *block;
    unsigned char *at;

    w->warp->line = s->line;
    MASKED_LANES(w->mask, lane)
    {
        const uint64_t size = interp_get_lane(w, s->a, s->b, lane);

        most = size > most ? size : most;
    }
    if (most > (uint64_t)(w->local ? w->local_end - w->local : w->end - w->free))
        hed_interp_trap(w, s, w->mask, HED_PTX_TRAP_ADDRESS);
    stride = (most + s->c - 1) / s->c * s->c;
    block = hed_interp_take(w, sizeof(*block));
    *block = (struct interp_block){.below = w->top, .local = w->local, .previous = w->frame->extra};
    at = hed_interp_take_local(w, s->c + stride * HED_PTX_LANES);
    w->top = block;
    w->frame->extra = block;
    at = (unsigned char *)(((uintptr_t)at + s->c - 1) / s->c * s->c);
    MASKED_LANES(w->mask, lane)
    interp_set_lane(w, s->d, s->b, lane, (uintptr_t)at + lane * stride);
    return s + 1;
}

void
hed_interp_op_alloca(struct interp_decoder *d)
{
    const struct hed_ptx_inst *i = d->inst;
    const enum hed_ptx_type t = i->form->types[0];
    const uint32_t size = hed_interp_operand(d, 1, t);

    d->program->info.local = STACK_ROOM;
    hed_interp_emit3(d, alloca_lanes, hed_interp_dest(d, &i->operands[0], t), size, interp_bytes(t),
                     d->meaning->align);
}

/* The memory of alloca is released when the function returns, so any value will do. */
void
hed_interp_op_stacksave(struct interp_decoder *d)
{
    const enum hed_ptx_type t = d->inst->form->types[0];

    hed_interp_move(d, hed_interp_dest(d, &d->inst->operands[0], t),
                    hed_interp_constant(d, 0, interp_bytes(t)), interp_bytes(t));
}

/* Only cache hints use the value of createpolicy. */
void
hed_interp_op_createpolicy(struct interp_decoder *d)
{
    hed_interp_move(d, hed_interp_dest(d, &d->inst->operands[0], HED_PTX_TYPE_B64),
                    hed_interp_constant(d, 0, 8), 8);
}
