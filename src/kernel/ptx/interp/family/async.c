/* Asynchronous copies, which are finished at once here, and mbarriers, the barrier objects in
 * shared memory that such copies complete.
 */
#include <string.h>

#include "base/number.h"
#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/lanes.h"
#include "kernel/ptx/run/group.h"

/* ---- copies ---------------------------------------------------------------------------------- */

/* d is the place of the destination, a of the source, b of the number of bytes to take from it;
 * zeros follow them up to c bytes. */
static INTERP_STEP(copy_lanes)
{
    const uint64_t *to = interp_at(w, s->d);
    const uint64_t *from = interp_at(w, s->a);
    const uint32_t *take = interp_at(w, s->b);

    w->warp->line = s->line;
    MASKED_LANES(w->mask, lane)
    {
        unsigned char buffer[16] = {0};

        memcpy(buffer, (const void *)(uintptr_t)from[lane], take[lane] < s->c ? take[lane] : s->c);
        memcpy((void *)(uintptr_t)to[lane], buffer, s->c);
    }
    return s + 1;
}

static INTERP_STEP(none_or_all)
{
    const uint32_t p = interp_predicate(w, s->a);
    const uint32_t bytes = s->e;

    COMPUTE_LANES(uint32_t, r = p & hed_interp_bits[i] ? 0 : bytes);
}

void
hed_interp_op_copy(struct interp_decoder *d)
{
    const struct hed_ptx_copy *m = &d->meaning->copy;
    const struct hed_ptx_operand *o = d->inst->operands;
    const uint32_t to = hed_interp_address(d, &o[0], HED_PTX_SPACE_SHARED, m->bytes);
    const uint32_t from = hed_interp_address(d, &o[1], HED_PTX_SPACE_GLOBAL, m->bytes);
    uint32_t take;

    if (!m->take) {
        take = hed_interp_constant(d, m->bytes, 4);
    } else if (m->take_is_predicate) {
        const uint32_t p = hed_interp_source(d, m->take, HED_PTX_TYPE_PRED);

        take = hed_interp_temp(d, 4);
        hed_interp_emit3(d, none_or_all, take, p, 0, 0)->e = m->bytes;
    } else {
        take = hed_interp_source(d, m->take, HED_PTX_TYPE_U32);
    }
    hed_interp_emit3(d, copy_lanes, to, from, take, m->bytes);
}

/* d is the place of the destination, a of the source, b of the number of bytes. */
static INTERP_STEP(bulk_copy_lanes)
{
    const uint64_t *to = interp_at(w, s->d);
    const uint64_t *from = interp_at(w, s->a);
    const uint32_t *bytes = interp_at(w, s->b);

    w->warp->line = s->line;
    MASKED_LANES(w->mask, lane)
    memcpy((void *)(uintptr_t)to[lane], (const void *)(uintptr_t)from[lane], bytes[lane]);
    return s + 1;
}

/* d is the place of the address, a of the number of bytes. */
static INTERP_STEP(bulk_clear_lanes)
{
    const uint64_t *to = interp_at(w, s->d);
    const uint64_t *bytes = interp_at(w, s->a);

    w->warp->line = s->line;
    MASKED_LANES(w->mask, lane)
    memset((void *)(uintptr_t)to[lane], 0,
           w->sandbox_outer ? hed_min(bytes[lane], HED_PTX_SANDBOX_LENGTH) : bytes[lane]);
    return s + 1;
}

void
hed_interp_op_bulk_clear(struct interp_decoder *d)
{
    const uint32_t to =
        hed_interp_address(d, &d->inst->operands[0], hed_ptx_first_space(d->inst->form), 8);
    const uint32_t bytes = hed_interp_operand(d, 1, HED_PTX_TYPE_U64);

    hed_interp_emit3(d, bulk_clear_lanes, to, bytes, 0, 0);
}

/* ---- mbarriers ------------------------------------------------------------------------------- */

/* a is the place of the barrier's address, b, c and e those of count, bytes and drop; the state
 * before goes to d. */
static INTERP_STEP(mbarrier_arrive_lanes)
{
    const uint64_t *at = interp_at(w, s->a);
    const uint32_t *count = interp_at(w, s->b);
    const uint32_t *tx = interp_at(w, s->c);
    const uint32_t *drop = interp_at(w, s->e);
    uint64_t *to = interp_at(w, s->d);

    w->warp->line = s->line;
    MASKED_LANES(w->mask, lane)
    to[lane] = hed_ptx_mbarrier_arrive((uint64_t *)(uintptr_t)at[lane], count[lane],
                                       (int32_t)tx[lane], drop[lane]);
    return s + 1;
}

static void
emit_arrival(struct interp_decoder *d, uint32_t to, uint32_t barrier, uint32_t count, uint32_t tx,
             uint32_t drop)
{
    hed_interp_emit3(d, mbarrier_arrive_lanes, to, barrier, count, tx)->e = drop;
}

static uint32_t
barrier_address(struct interp_decoder *d, const struct hed_ptx_operand *o)
{
    return hed_interp_address(d, o, hed_ptx_first_space(d->inst->form), 8);
}

void
hed_interp_op_mbarrier_arrive(struct interp_decoder *d)
{
    const struct hed_ptx_arrival *m = &d->meaning->arrival;
    const uint32_t zero = hed_interp_constant(d, 0, 4);
    const uint32_t count =
        m->count ? hed_interp_source(d, m->count, HED_PTX_TYPE_B32) : hed_interp_constant(d, 1, 4);
    const uint32_t bytes = m->bytes ? hed_interp_source(d, m->bytes, HED_PTX_TYPE_B32) : zero;
    const uint32_t barrier = barrier_address(d, m->barrier);
    const uint32_t to =
        m->state ? hed_interp_dest(d, m->state, HED_PTX_TYPE_B64) : hed_interp_temp(d, 8);

    emit_arrival(d, to, barrier, count, bytes, m->drops ? count : zero);
}

STEP_UNARY(negated_word, uint32_t, uint32_t, 0 - a)

static uint32_t
emit_negated(struct interp_decoder *d, uint32_t v)
{
    const uint32_t to = hed_interp_temp(d, 4);

    hed_interp_emit3(d, negated_word, to, v, 0, 0);
    return to;
}

/* mbarrier.expect_tx and .complete_tx */
void
hed_interp_op_mbarrier_tx(struct interp_decoder *d)
{
    const bool is_done = d->inst->form->op == HED_PTX_OP_MBARRIER_COMPLETE_TX;
    const uint32_t zero = hed_interp_constant(d, 0, 4);
    uint32_t bytes = hed_interp_operand(d, 1, HED_PTX_TYPE_B32);

    if (is_done)
        bytes = emit_negated(d, bytes);
    emit_arrival(d, hed_interp_temp(d, 8), barrier_address(d, &d->inst->operands[0]), zero, bytes,
                 zero);
}

static INTERP_STEP(mbarrier_init_lanes)
{
    const uint64_t *at = interp_at(w, s->a);
    const uint32_t *count = interp_at(w, s->b);

    w->warp->line = s->line;
    MASKED_LANES(w->mask, lane)
    hed_ptx_mbarrier_init((uint64_t *)(uintptr_t)at[lane], count[lane]);
    return s + 1;
}

void
hed_interp_op_mbarrier_init(struct interp_decoder *d)
{
    const uint32_t barrier = barrier_address(d, &d->inst->operands[0]);

    hed_interp_emit3(d, mbarrier_init_lanes, 0, barrier, hed_interp_operand(d, 1, HED_PTX_TYPE_B32),
                     0);
}

/* c: the state is a parity. */
static INTERP_STEP(mbarrier_test_lanes)
{
    const uint64_t *at = interp_at(w, s->a);

    w->warp->line = s->line;
    MASKED_LANES(w->mask, lane)
    {
        const uint64_t state =
            s->c ? interp_get_lane(w, s->b, 4, lane) << 63 : interp_get_lane(w, s->b, 8, lane);

        interp_set_lane(w, s->d, 0, lane,
                        hed_ptx_mbarrier_test((const uint64_t *)(uintptr_t)at[lane], state) != 0);
    }
    return s + 1;
}

void
hed_interp_op_mbarrier_test(struct interp_decoder *d)
{
    const struct hed_ptx_operand *o = d->inst->operands;
    const bool is_parity = INTERP_SAID(d, PARITY);
    const uint32_t barrier = barrier_address(d, &o[1]);
    const uint32_t state =
        hed_interp_source(d, &o[2], is_parity ? HED_PTX_TYPE_B32 : HED_PTX_TYPE_B64);

    hed_interp_emit3(d, mbarrier_test_lanes, hed_interp_dest(d, &o[0], HED_PTX_TYPE_PRED), barrier,
                     state, is_parity);
}

/* Copies are finished when they are started, so their arrival happens at once. Without .noinc it
 * would also raise the expected count by one, which cancels out. */
void
hed_interp_op_copy_arrive(struct interp_decoder *d)
{
    const uint32_t zero = hed_interp_constant(d, 0, 4);

    if (INTERP_SAID(d, NOINC))
        emit_arrival(d, hed_interp_temp(d, 8), barrier_address(d, &d->inst->operands[0]),
                     hed_interp_constant(d, 1, 4), zero, zero);
}

void
hed_interp_op_bulk_copy(struct interp_decoder *d)
{
    const struct hed_ptx_inst *i = d->inst;
    const struct hed_ptx_operand *o = i->operands;
    const struct hed_ptx_operand *barrier = d->meaning->copy.barrier;
    const uint32_t zero = hed_interp_constant(d, 0, 4);
    uint32_t to, from, bytes;

    to = hed_interp_address(d, &o[0], i->form->spaces[0], 16);
    from = hed_interp_address(d, &o[1], i->form->spaces[1], 16);
    bytes = hed_interp_source(d, &o[2], HED_PTX_TYPE_U32);
    hed_interp_emit3(d, bulk_copy_lanes, to, from, bytes, 0);
    if (barrier) {
        const uint32_t less = emit_negated(d, bytes);

        emit_arrival(d, hed_interp_temp(d, 8),
                     hed_interp_address(d, barrier, HED_PTX_SPACE_SHARED, 8), zero, less, zero);
    }
}

static uint64_t
pending_lane(const struct hed_ptx_form *f, const uint64_t *in)
{
    (void)f;
    return hed_ptx_mbarrier_pending(in[0]);
}

void
hed_interp_op_mbarrier_pending(struct interp_decoder *d)
{
    const uint8_t types[2] = {HED_PTX_TYPE_B32, HED_PTX_TYPE_B64};

    hed_interp_scalar(d, pending_lane, types, 1);
}
