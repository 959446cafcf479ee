/* Operations among the lanes of a warp in the scalar shape, where each lane is a strand.
 *
 * Lanes that wait with the same operation and the same mask form a group. The group continues when
 * every lane of the mask is in it or has ended; the last lane to come does the work for all.
 *
 * activemask has no mask to wait for. The lanes that call it from the same place belong together,
 * and they continue when no other lane of the warp can run, because then no more can come. A lane
 * that only yields waits for something else and does not count.
 */
#include "backends/cpu/engine.h"

#include "ptx/run/warp.h"

#define YIELDS_MOST 4 /* of each lane that can run, before activemask continues without it */

static uint32_t
lane_bit(const struct hed_strand *s)
{
    return UINT32_C(1) << s->abi.lane;
}

/* The strand of a lane. A warp of the scalar shape is 32 consecutive strands. */
static struct hed_strand *
strand_of_lane(struct hed_block *b, const struct hed_lanes *w, uint32_t lane)
{
    return &b->strands[(uint32_t)(w - b->warps) * HED_PTX_LANES + lane];
}

/* The lanes that wait with the operation and mask of s. */
static uint32_t
waiting_group(struct hed_block *b, const struct hed_lanes *w, const struct hed_strand *s)
{
    uint32_t group = 0;

    for (uint32_t rest = w->waiting & s->mask, lane; hed_next_lane(&rest, &lane);) {
        const struct hed_strand *other = strand_of_lane(b, w, lane);

        if (other->fn == s->fn && other->mask == s->mask && other->arg == s->arg)
            group |= UINT32_C(1) << lane;
    }
    return group;
}

/* The group is complete: does its work and makes all lanes but `me` ready. */
static void
finish_group(struct hed_block *b, struct hed_lanes *w, uint32_t group, const struct hed_strand *me)
{
    void *data[HED_PTX_LANES] = {0};
    const struct hed_strand *first = strand_of_lane(b, w, (uint32_t)__builtin_ctz(group));

    for (uint32_t rest = group, lane; hed_next_lane(&rest, &lane);)
        data[lane] = strand_of_lane(b, w, lane)->data;
    if (first->fn)
        first->fn(data, group, first->arg);
    w->waiting &= ~group;
    b->moved++;
    for (uint32_t rest = group, lane; hed_next_lane(&rest, &lane);) {
        struct hed_strand *s = strand_of_lane(b, w, lane);

        if (s != me)
            hed_strand_ready(s);
    }
}

/* Makes those lanes at activemask ready that called it from the same place as the first of them. */
static void
finish_activemask(struct hed_block *b, struct hed_lanes *w)
{
    const void *site = strand_of_lane(b, w, (uint32_t)__builtin_ctz(w->active))->site;
    uint32_t mask = 0;

    for (uint32_t rest = w->active, lane; hed_next_lane(&rest, &lane);) {
        if (strand_of_lane(b, w, lane)->site == site)
            mask |= UINT32_C(1) << lane;
    }
    w->active &= ~mask;
    w->yields = 0;
    for (uint32_t rest = mask, lane; hed_next_lane(&rest, &lane);) {
        struct hed_strand *s = strand_of_lane(b, w, lane);

        s->mask = mask;
        hed_strand_ready(s);
    }
}

void
hed_lanes_changed(struct hed_block *b, struct hed_lanes *w)
{
    if (w->active && w->yields >= YIELDS_MOST * w->ready)
        finish_activemask(b, w);
}

void
hed_lanes_ended(struct hed_strand *s)
{
    struct hed_block *b = s->block;
    struct hed_lanes *w = hed_lanes_of(s);

    if (!w)
        return;
    w->live &= ~lane_bit(s);
    w->ready--;
    w->yields = 0;
    for (uint32_t rest = w->waiting; rest; rest &= w->waiting & (rest - 1)) {
        const struct hed_strand *other = strand_of_lane(b, w, (uint32_t)__builtin_ctz(rest));
        const uint32_t group = waiting_group(b, w, other);

        if (group == (other->mask & w->live))
            finish_group(b, w, group, NULL);
    }
    hed_lanes_changed(b, w);
}

void
hed_rt_collect(struct hed_ptx_strand *a, uint32_t mask, hed_rt_together fn, void *data,
               uint64_t arg)
{
    struct hed_strand *s = hed_strand_of(a);
    struct hed_lanes *w = hed_lanes_of(s);

    /* A mask without the lane itself is an error of the program; the lane is added. */
    s->mask = mask | lane_bit(s);
    s->fn = fn;
    s->data = data;
    s->arg = arg;
    if (!w || s->block->grid->direct)
        hed_rt_trap(a, HED_PTX_TRAP_INSTRUCTION, a->line);
    w->waiting |= lane_bit(s);

    const uint32_t group = waiting_group(s->block, w, s);

    if (group == (s->mask & w->live))
        finish_group(s->block, w, group, s);
    else
        hed_strand_wait(s);
}

uint32_t
hed_rt_activemask(struct hed_ptx_strand *a)
{
    struct hed_strand *s = hed_strand_of(a);
    struct hed_lanes *w = hed_lanes_of(s);

    if (!w || s->block->grid->direct)
        return a->lanes;
    s->site = __builtin_return_address(0);
    w->active |= lane_bit(s);
    hed_strand_wait(s);
    return s->mask;
}

/* ---- what lanes do together ------------------------------------------------------------------ */

struct shfl {
    uint32_t value, b, c;
    uint32_t result, inside;
};

static void
together_shfl(void *const data[HED_PTX_LANES], uint32_t mask, uint64_t mode)
{
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(rest);
        struct shfl *d = data[lane];
        unsigned from;

        d->inside = hed_warp_source((uint32_t)mode, lane, d->b, d->c, &from);

        /* PTX does not define the value from a lane that does not take part. */
        const struct shfl *source = data[from];

        d->result = source ? source->value : d->value;
    }
}

uint32_t
hed_rt_shfl(struct hed_ptx_strand *s, uint32_t mode, uint32_t value, uint32_t b, uint32_t c,
            uint32_t mask, uint32_t *inside)
{
    struct shfl d = {.value = value, .b = b, .c = c};

    hed_rt_collect(s, mask, together_shfl, &d, mode);
    if (inside)
        *inside = d.inside;
    return d.result;
}

struct vote {
    uint32_t predicate, result;
};

static void
together_vote(void *const data[HED_PTX_LANES], uint32_t mask, uint64_t mode)
{
    uint32_t ballot = 0, result;

    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(rest);
        const struct vote *d = data[lane];

        if (d->predicate)
            ballot |= UINT32_C(1) << lane;
    }
    switch (mode) {
    case HED_RT_VOTE_ALL:
        result = ballot == mask;
        break;
    case HED_RT_VOTE_ANY:
        result = ballot != 0;
        break;
    case HED_RT_VOTE_UNI:
        result = ballot == mask || ballot == 0;
        break;
    default:
        result = ballot;
        break;
    }
    for (uint32_t rest = mask; rest; rest &= rest - 1)
        ((struct vote *)data[__builtin_ctz(rest)])->result = result;
}

uint32_t
hed_rt_vote(struct hed_ptx_strand *s, uint32_t mode, uint32_t predicate, uint32_t mask)
{
    struct vote d = {.predicate = predicate};

    hed_rt_collect(s, mask, together_vote, &d, mode);
    return d.result;
}

struct match {
    uint64_t value;
    uint32_t result, same;
};

static void
together_match(void *const data[HED_PTX_LANES], uint32_t mask, uint64_t all)
{
    uint64_t values[HED_PTX_LANES] = {0};
    uint32_t masks[HED_PTX_LANES], out[HED_PTX_LANES];
    uint32_t same = 0;

    for (unsigned i = 0; i < HED_PTX_LANES; i++) {
        masks[i] = mask;
        if (mask >> i & 1)
            values[i] = ((const struct match *)data[i])->value;
    }
    if (all)
        same = hed_warp_match_all(values, masks, mask, out);
    else
        hed_warp_match_any(values, masks, mask, out);
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(rest);
        struct match *d = data[lane];

        d->result = out[lane];
        d->same = same >> lane & 1;
    }
}

uint32_t
hed_rt_match_any(struct hed_ptx_strand *s, uint64_t value, uint32_t mask)
{
    struct match d = {.value = value};

    hed_rt_collect(s, mask, together_match, &d, 0);
    return d.result;
}

uint32_t
hed_rt_match_all(struct hed_ptx_strand *s, uint64_t value, uint32_t mask, uint32_t *same)
{
    struct match d = {.value = value};

    hed_rt_collect(s, mask, together_match, &d, 1);
    if (same)
        *same = d.same;
    return d.result;
}

struct redux {
    uint32_t value, result;
};

static void
together_redux(void *const data[HED_PTX_LANES], uint32_t mask, uint64_t op)
{
    uint32_t values[HED_PTX_LANES] = {0}, masks[HED_PTX_LANES], out[HED_PTX_LANES];

    for (unsigned i = 0; i < HED_PTX_LANES; i++) {
        masks[i] = mask;
        if (mask >> i & 1)
            values[i] = ((const struct redux *)data[i])->value;
    }
    hed_warp_redux((uint32_t)op, values, masks, mask, out);
    for (uint32_t rest = mask; rest; rest &= rest - 1)
        ((struct redux *)data[__builtin_ctz(rest)])->result = out[__builtin_ctz(rest)];
}

uint32_t
hed_rt_redux(struct hed_ptx_strand *s, uint32_t op, uint32_t value, uint32_t mask)
{
    struct redux d = {.value = value};

    hed_rt_collect(s, mask, together_redux, &d, op);
    return d.result;
}

static void
together_elect(void *const data[HED_PTX_LANES], uint32_t mask, uint64_t arg)
{
    for (uint32_t rest = mask; rest; rest &= rest - 1)
        *(uint32_t *)data[__builtin_ctz(rest)] = (uint32_t)__builtin_ctz(mask);
}

uint32_t
hed_rt_elect(struct hed_ptx_strand *s, uint32_t mask, uint32_t *elected)
{
    uint32_t leader = 0;

    hed_rt_collect(s, mask, together_elect, &leader, 0);
    if (elected)
        *elected = leader == s->lane;
    return leader;
}

/* Lanes only come together. A function of its own, which tells this operation from others. */
static void
together_nothing(void *const data[HED_PTX_LANES], uint32_t mask, uint64_t arg)
{
}

void
hed_rt_warp_sync(struct hed_ptx_strand *s, uint32_t mask)
{
    hed_rt_collect(s, mask, together_nothing, NULL, 0);
}
