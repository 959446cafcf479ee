/* The sixteen barriers of a block.
 *
 * A barrier counts threads. A barrier for all threads of the block also counts those that have
 * ended. Only a running warp knows how many of its lanes have ended. So if no warp of a block can
 * run and all that are left wait at one such barrier, it is complete.
 */
#include "kernel/engine/engine_parts.h"
#include "kernel/engine/rt.h"

static void
release_barrier(struct hed_barrier *r)
{
    struct hed_engine_warp *list = r->waiting, *ordered = NULL;

    /* The list has the latest first; they continue in the order in which they came. */
    while (list) {
        struct hed_engine_warp *s = list;

        list = s->next;
        s->next = ordered;
        ordered = s;
    }
    while (ordered) {
        struct hed_engine_warp *s = ordered;

        ordered = s->next;
        s->barrier = 0;
        s->barrier_trues = r->trues;
        s->barrier_count = r->arrived;
        hed_engine_warp_ready(s);
    }
    *r = (struct hed_barrier){0};
}

static bool
is_barrier_complete(const struct hed_block *b, const struct hed_barrier *r)
{
    if (r->expected == 0)
        return r->arrived + b->ended_threads >= b->grid->threads;
    return r->arrived >= r->expected;
}

void
hed_barrier_ended(struct hed_block *b)
{
    for (uint32_t id = 0; id < HED_BARRIERS; id++) {
        struct hed_barrier *r = &b->barriers[id];

        if (r->arrived && r->expected == 0 && is_barrier_complete(b, r))
            release_barrier(r);
    }
}

bool
hed_barrier_stuck(struct hed_block *b)
{
    for (uint32_t id = 0; id < HED_BARRIERS; id++) {
        struct hed_barrier *r = &b->barriers[id];
        uint32_t waiting = 0;

        if (r->expected != 0 || !r->waiting)
            continue;
        for (const struct hed_engine_warp *s = r->waiting; s; s = s->next)
            waiting++;
        if (waiting == b->live) {
            release_barrier(r);
            return true;
        }
    }
    return false;
}

/* Counts an arrival. True if the barrier is complete, and the warps that waited can continue. */
static bool
arrive_at_barrier(struct hed_engine_warp *s, uint32_t id, uint32_t threads, uint32_t arriving,
                  uint32_t trues)
{
    struct hed_block *b = s->block;

    if (id >= HED_BARRIERS)
        hed_rt_trap(&s->abi, HED_PTX_TRAP_INSTRUCTION, s->abi.line);

    struct hed_barrier *r = &b->barriers[id];

    b->moved++;
    r->expected = threads >= b->grid->threads ? 0 : threads;
    r->arrived += arriving;
    r->trues += trues;
    if (!is_barrier_complete(b, r))
        return false;
    s->barrier_trues = r->trues;
    s->barrier_count = r->arrived;
    release_barrier(r);
    return true;
}

static void
wait_at_barrier(struct hed_engine_warp *s, uint32_t id, uint32_t threads, uint32_t arriving,
                uint32_t trues)
{
    if (arrive_at_barrier(s, id, threads, arriving, trues))
        return;

    struct hed_barrier *r = &s->block->barriers[id];

    s->barrier = id + 1;
    s->next = r->waiting;
    r->waiting = s;
    hed_engine_warp_wait(s);
}

void
hed_rt_barrier(struct hed_ptx_warp *a, uint32_t id, uint32_t threads, uint32_t arriving)
{
    wait_at_barrier(hed_engine_warp_of(a), id, threads, arriving, 0);
}

void
hed_rt_barrier_arrive(struct hed_ptx_warp *a, uint32_t id, uint32_t threads, uint32_t arriving)
{
    (void)arrive_at_barrier(hed_engine_warp_of(a), id, threads, arriving, 0);
}

uint32_t
hed_rt_barrier_reduce(struct hed_ptx_warp *a, uint32_t id, uint32_t threads, uint32_t arriving,
                      uint32_t trues, uint32_t op)
{
    struct hed_engine_warp *s = hed_engine_warp_of(a);

    wait_at_barrier(s, id, threads, arriving, trues);
    switch (op) {
    case HED_RT_AND:
        return s->barrier_trues == s->barrier_count;
    case HED_RT_OR:
        return s->barrier_trues != 0;
    default:
        return s->barrier_trues;
    }
}
