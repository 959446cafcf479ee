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

    COMPUTE_LANES(uint32_t, to[i] = p & hed_interp_bits[i] ? 0 : bytes);
}

/* cp.async [to], [from], bytes {, bytes to take from the source | ignore the source} */
void
hed_interp_op_copy(struct interp_decoder *d)
{
    const struct hed_ptx_inst *i = d->inst;
    const struct hed_ptx_operand *o = i->operands;
    const bool has_more = i->noperands > (INTERP_SAID(d, CACHE_HINT) ? 4 : 3);
    const unsigned bytes = o[2].kind == HED_PTX_OPERAND_INT ? (unsigned)o[2].bits : 0;
    uint32_t to, from, take;

    if (bytes != 4 && bytes != 8 && bytes != 16) {
        hed_interp_refuse(d, "a copy of %u bytes is not supported", bytes);
        return;
    }
    to = hed_interp_address(d, &o[0], HED_PTX_SPACE_SHARED, bytes);
    from = hed_interp_address(d, &o[1], HED_PTX_SPACE_GLOBAL, bytes);
    if (!has_more) {
        take = hed_interp_constant(d, bytes, 4);
    } else if (o[3].kind == HED_PTX_OPERAND_REG && o[3].reg->type == HED_PTX_TYPE_PRED) {
        const uint32_t p = hed_interp_source(d, &o[3], HED_PTX_TYPE_PRED);

        take = hed_interp_temp(d, 4);
        hed_interp_emit3(d, none_or_all, take, p, 0, 0)->e = bytes;
    } else {
        take = hed_interp_source(d, &o[3], HED_PTX_TYPE_U32);
    }
    hed_interp_emit3(d, copy_lanes, to, from, take, bytes);
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

static unsigned
first_space(const struct hed_ptx_form *f)
{
    return f->nspaces ? f->spaces[0] : HED_PTX_SPACE_NONE;
}

void
hed_interp_op_bulk_clear(struct interp_decoder *d)
{
    const uint32_t to = hed_interp_address(d, &d->inst->operands[0], first_space(d->inst->form), 8);
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
    return hed_interp_address(d, o, first_space(d->inst->form), 8);
}

/* mbarrier.arrive and .arrive_drop: {state,} [barrier] {, count}; with .expect_tx the last operand
 * is a number of bytes instead. */
void
hed_interp_op_mbarrier_arrive(struct interp_decoder *d)
{
    const struct hed_ptx_inst *i = d->inst;
    const struct hed_ptx_operand *o = i->operands;
    const unsigned at = i->pattern == 0 ? 1 : 0; /* of the barrier */
    const uint32_t one = hed_interp_constant(d, 1, 4);
    const uint32_t zero = hed_interp_constant(d, 0, 4);
    const uint32_t given =
        i->noperands > at + 1 ? hed_interp_source(d, &o[at + 1], HED_PTX_TYPE_B32) : one;
    const bool expects = INTERP_SAID(d, EXPECT_TX);
    const uint32_t count = expects ? one : given;
    const uint32_t barrier = barrier_address(d, &o[at]);
    const uint32_t to =
        at == 1 ? hed_interp_dest(d, &o[0], HED_PTX_TYPE_B64) : hed_interp_temp(d, 8);

    emit_arrival(d, to, barrier, count, expects && i->noperands > at + 1 ? given : zero,
                 i->form->op == HED_PTX_OP_MBARRIER_ARRIVE_DROP ? count : zero);
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

/* cp.async.bulk [to], [from], bytes {, [barrier]} ... */
void
hed_interp_op_bulk_copy(struct interp_decoder *d)
{
    const struct hed_ptx_inst *i = d->inst;
    const struct hed_ptx_operand *o = i->operands;
    const uint32_t zero = hed_interp_constant(d, 0, 4);
    uint32_t to, from, bytes;

    if (i->form->nspaces < 2 || strstr(i->form->text, "cp_mask")) {
        hed_interp_refuse(d, "this kind of copy is not supported");
        return;
    }
    to = hed_interp_address(d, &o[0], i->form->spaces[0], 16);
    from = hed_interp_address(d, &o[1], i->form->spaces[1], 16);
    bytes = hed_interp_source(d, &o[2], HED_PTX_TYPE_U32);
    hed_interp_emit3(d, bulk_copy_lanes, to, from, bytes, 0);
    if (strstr(i->form->text, "mbarrier::complete_tx") && i->noperands > 3) {
        const uint32_t less = emit_negated(d, bytes);

        emit_arrival(d, hed_interp_temp(d, 8),
                     hed_interp_address(d, &o[3], HED_PTX_SPACE_SHARED, 8), zero, less, zero);
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
