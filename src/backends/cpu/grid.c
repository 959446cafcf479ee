/* A worker's part of a grid whose strands have stacks of their own.
 *
 *   open blocks in a ring; the first has its turn:
 *     every strand that is ready runs until it yields, waits or ends
 *     ended    -> the next block takes its place
 *     moved    -> it goes on
 *     waited   -> all it did was yield: the next in the ring has its turn
 *     stuck    -> nobody in it can ever run: the launch fails
 *   a whole round of waiting -> one more block is opened, if there is one and the bound allows
 *
 * Blocks are handed out in order of their index, so a block that waits for an earlier one waits for
 * something that runs or has ended.
 */
#include "backends/cpu/engine.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/demangle.h"

#define TURNS_MOST 64       /* of a block that moves, before others have theirs */
#define PATIENCE 64         /* rounds of waiting before more than a worker's share is opened */
#define PATIENCE_ALONE 1000 /* the same for kernels that seem not to wait for other blocks */
#define ROUNDS_BUSY 256 /* rounds of waiting before the processor is left to others for a while */
#define NAP_NS 20000

enum turn { TURN_ENDED, TURN_MOVED, TURN_WAITED, TURN_STUCK };

void
hed_grid_fail(struct hed_grid *g, CUresult r, const struct hed_strand *s, const char *fmt, ...)
{
    uint32_t none = 0;
    char text[256], room[HED_DEMANGLED_MAX];
    const char *name;
    va_list ap;

    /* Relaxed: `why` is read only after all workers have left, under the engine's lock. */
    if (!atomic_compare_exchange_strong_explicit(&g->failed, &none, (uint32_t)r,
                                                 memory_order_relaxed, memory_order_relaxed))
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    name = hed_demangle(g->job->name, room, sizeof room);
    if (!s) {
        hed_why_set(&g->why, "%s: kernel %.200s", text, name);
        return;
    }

    const struct hed_ptx_strand *a = &s->abi;
    const uint32_t lane = g->job->info.lanes == 1 ? 0 : a->lane % HED_PTX_LANES;
    const uint32_t *c = s->block->abi.ctaid;

    hed_why_set(&g->why, "%s: kernel %.200s, block (%u, %u, %u), %s (%u, %u, %u), PTX line %u",
                text, name, c[0], c[1], c[2], g->job->info.lanes == 1 ? "thread" : "warp of thread",
                a->tid[0][lane], a->tid[1][lane], a->tid[2][lane], a->line);
}

void
hed_strand_ready(struct hed_strand *s)
{
    struct hed_block *b = s->block;
    struct hed_lanes *w = hed_lanes_of(s);

    if (w && s->state == HED_STRAND_WAITING)
        w->ready++;
    s->state = HED_STRAND_READY;
    s->next = NULL;
    if (b->first)
        b->last->next = s;
    else
        b->first = s;
    b->last = s;
    b->queued++;
}

void
hed_strand_leave(struct hed_strand *s)
{
    hed_side_switch(&s->side, &s->block->worker->side);
}

void
hed_strand_wait(struct hed_strand *s)
{
    struct hed_lanes *w = hed_lanes_of(s);

    s->state = HED_STRAND_WAITING;
    s->spun = 0;
    s->block->moved++;
    if (w) {
        w->ready--;
        w->yields = 0;
        hed_lanes_changed(s->block, w);
    }
    hed_strand_leave(s);
}

void
hed_strand_abandon(struct hed_strand *s)
{
    struct hed_engine_worker *w = s->block->worker;

    w->gone = true;
    hed_side_leave(&s->side, &w->side);
}

void
hed_strand_end(struct hed_strand *s)
{
    struct hed_block *b = s->block;

    s->state = HED_STRAND_ENDED;
    b->live--;
    b->moved++;
    b->ended_threads += s->threads;
    hed_lanes_ended(s);
    hed_barrier_ended(b);
    hed_strand_abandon(s);
}

void
hed_strand_run(struct hed_engine_worker *w, struct hed_strand *s)
{
    w->gone = false;
    w->fault.signo = 0;
    w->running = s;
    hed_side_switch(&w->side, &s->side);
    s = w->running; /* direct.c goes from strand to strand. */
    w->running = NULL;
    if (w->fault.signo)
        hed_fault_report(w, s);
}

static enum turn
turn(struct hed_engine_worker *w, struct hed_block *b)
{
    uint32_t n = b->queued;

    b->moved = 0;
    while (n-- > 0) {
        struct hed_strand *s = b->first;

        b->first = s->next;
        b->queued--;
        hed_strand_run(w, s);
        if (hed_grid_failed(b->grid))
            return TURN_WAITED;
    }
    if (b->live == 0)
        return TURN_ENDED;
    if (!b->first)
        return hed_barrier_stuck(b) ? TURN_MOVED : TURN_STUCK;
    return b->moved ? TURN_MOVED : TURN_WAITED;
}

/* The next block of the grid, opened and put where it has its turn now. */
static bool
open_next(struct hed_engine_worker *w, struct hed_grid *g)
{
    /* Relaxed: the number is all that is handed over; what the launch made was seen when the worker
     * came to the grid, under the engine's lock. */
    if (atomic_load_explicit(&g->next, memory_order_relaxed) >= g->blocks)
        return false;

    struct hed_block *b = hed_block_open(w, g);

    if (!b) {
        if (w->open_count == 0)
            hed_grid_fail(g, CUDA_ERROR_OUT_OF_MEMORY, NULL, "no memory for a block");
        return false;
    }

    const uint64_t index = atomic_fetch_add_explicit(&g->next, 1, memory_order_relaxed);

    if (index >= g->blocks) {
        hed_block_close(b);
        return false;
    }
    hed_block_begin(b, index);
    if (w->open) {
        b->next = w->open->next;
        w->open->next = b;
    } else {
        b->next = b;
        w->open = b;
    }
    w->open_count++;
    return true;
}

/* w->open is the block that had its turn last; the next one in the ring has the next. */
static struct hed_block *
ring_first(struct hed_engine_worker *w)
{
    return w->open->next;
}

/* Takes the first out of the ring. */
static void
close_first(struct hed_engine_worker *w)
{
    struct hed_block *b = ring_first(w);

    if (b == w->open)
        w->open = NULL;
    else
        w->open->next = b->next;
    w->open_count--;
    hed_block_close(b);
}

/* Rounds of waiting before one more block is opened. Blocks of a cooperative grid are known to wait
 * for all the others. Of other kernels all that is known is that they may: mostly they wait for
 * earlier blocks, or only look as if they waited, so the more are open, the longer it takes. */
static uint32_t
patience_of(const struct hed_engine_worker *w, const struct hed_grid *g)
{
    if (g->job->cooperative)
        return w->open_count < g->open_share ? 1 : PATIENCE;
    if (g->job->info.flags & HED_PTX_GRID)
        return w->open_count < g->open_share ? 1 + w->open_count : PATIENCE + w->open_count;
    return PATIENCE_ALONE;
}

/* Blocks have only waited for a number of turns: opens one more, or lets others have the processor.
 */
static void
wait_on(struct hed_engine_worker *w, struct hed_grid *g, uint64_t *turns)
{
    const uint64_t rounds = *turns / w->open_count;
    const uint32_t patience = patience_of(w, g);

    if (rounds < 1)
        return;
    if (rounds >= patience && w->open_count < g->open_most && open_next(w, g)) {
        *turns = 0;
        return;
    }
    if (rounds >= ROUNDS_BUSY && *turns % w->open_count == 0)
        hed_sleep_ns(NAP_NS);
    else if (rounds >= 4 && *turns % w->open_count == 0)
        sched_yield();
}

void
hed_grid_work(struct hed_engine_worker *w, struct hed_grid *g)
{
    uint64_t waited = 0; /* turns since something moved */

    while (!hed_grid_failed(g)) {
        if (w->open_count == 0 && !open_next(w, g))
            break;

        struct hed_block *b = ring_first(w);

        switch (turn(w, b)) {
        case TURN_ENDED:
            close_first(w);
            waited = 0;
            break;
        case TURN_MOVED:
            waited = 0;
            if (++b->turns < TURNS_MOST)
                break;
            /* It may move around in circles until another block has done something. */
            b->turns = 0;
            w->open = b;
            if (w->open_count < g->open_share && g->open_share > 1)
                (void)open_next(w, g);
            break;
        case TURN_WAITED:
            w->open = b;
            waited++;
            wait_on(w, g, &waited);
            break;
        case TURN_STUCK:
            hed_grid_fail(g, CUDA_ERROR_LAUNCH_TIMEOUT, &b->strands[0],
                          "all threads of the block wait for each other");
            break;
        }
    }
    while (w->open_count > 0)
        close_first(w);
}
