/* A worker's part of a grid whose warps have stacks of their own.
 *
 *   open blocks form a ring; the first one takes a step:
 *     every warp that is ready runs until it yields, waits or ends
 *     ended    -> the next block of the grid takes its place
 *     moved    -> it takes another step
 *     waited   -> its warps only yielded: the next block in the ring takes a step
 *     stuck    -> none of its warps can ever run: the launch fails
 *   all blocks only waited -> one more block is opened, if there is one and the limit allows it
 *
 * Blocks are handed out in the order of their index, so a block that waits for an earlier one waits
 * for a block that runs or has ended.
 */
#include "kernel/engine/engine_parts.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/demangle.h"

#define STEPS_MOST 64       /* of a block that moves, before others take theirs */
#define PATIENCE 64         /* rounds of waiting before a worker opens more than its share */
#define PATIENCE_ALONE 1000 /* the same for kernels that seem not to wait for other blocks */
#define ROUNDS_BUSY 256     /* rounds of waiting before the thread sleeps for a while */
#define NAP_NS 20000

enum step { STEP_ENDED, STEP_MOVED, STEP_WAITED, STEP_STUCK };

bool
hed_grid_fail(struct hed_grid *g, CUresult r, const struct hed_engine_warp *s, const char *fmt, ...)
{
    uint32_t none = 0;
    char text[sizeof(struct hed_why)], room[HED_DEMANGLED_MAX];
    const char *name;
    va_list ap;

    /* Relaxed: `why` is read only after all workers have left, under the engine's lock. */
    if (!atomic_compare_exchange_strong_explicit(&g->failed, &none, (uint32_t)r,
                                                 memory_order_relaxed, memory_order_relaxed))
        return false;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    name = hed_demangle(g->job->name, room, sizeof room);
    if (!s) {
        hed_why_set(&g->why, "%s: kernel %.200s", text, name);
        return true;
    }

    const struct hed_ptx_warp *a = &s->abi;
    const uint32_t lane = a->lane % HED_PTX_LANES;
    const uint32_t *c = s->block->abi.ctaid;

    hed_why_set(
        &g->why, "%s: kernel %.200s, block (%u, %u, %u), warp of thread (%u, %u, %u), PTX line %u",
        text, name, c[0], c[1], c[2], a->tid[0][lane], a->tid[1][lane], a->tid[2][lane], a->line);
    return true;
}

void
hed_engine_warp_ready(struct hed_engine_warp *s)
{
    struct hed_block *b = s->block;

    s->state = HED_ENGINE_WARP_READY;
    s->next = NULL;
    if (b->first)
        b->last->next = s;
    else
        b->first = s;
    b->last = s;
    b->queued++;
}

void
hed_engine_warp_leave(struct hed_engine_warp *s)
{
    hed_side_switch(&s->side, &s->block->worker->side);
}

void
hed_engine_warp_wait(struct hed_engine_warp *s)
{
    s->state = HED_ENGINE_WARP_WAITING;
    s->spun = 0;
    s->block->moved++;
    hed_engine_warp_leave(s);
}

void
hed_engine_warp_abandon(struct hed_engine_warp *s)
{
    struct hed_engine_worker *w = s->block->worker;

    w->gone = true;
    hed_side_leave(&s->side, &w->side);
}

void
hed_engine_warp_end(struct hed_engine_warp *s)
{
    struct hed_block *b = s->block;

    s->state = HED_ENGINE_WARP_ENDED;
    b->live--;
    b->moved++;
    b->ended_threads += s->threads;
    hed_barrier_ended(b);
    hed_engine_warp_abandon(s);
}

void
hed_engine_warp_run(struct hed_engine_worker *w, struct hed_engine_warp *s)
{
    w->gone = false;
    w->fault.signo = 0;
    w->running = s;
    hed_side_switch(&w->side, &s->side);
    s = w->running; /* direct.c changes it from warp to warp, and so does hed_kernel */
    if (w->grid->direct && w->direct.run.running)
        s = hed_engine_warp_of(w->direct.run.running);
    w->running = NULL;
    if (w->fault.signo)
        hed_fault_report(w, s);
}

static enum step
step_block(struct hed_engine_worker *w, struct hed_block *b)
{
    uint32_t n = b->queued;

    b->moved = 0;
    while (n-- > 0) {
        struct hed_engine_warp *s = b->first;

        b->first = s->next;
        b->queued--;
        hed_engine_warp_run(w, s);
        if (hed_grid_failed(b->grid))
            return STEP_WAITED;
    }
    if (b->live == 0)
        return STEP_ENDED;
    if (!b->first)
        return hed_barrier_stuck(b) ? STEP_MOVED : STEP_STUCK;
    return b->moved ? STEP_MOVED : STEP_WAITED;
}

/* Opens the next block of the grid and makes it the first in the ring. */
static bool
open_next_block(struct hed_engine_worker *w, struct hed_grid *g)
{
    /* Relaxed: only the number is handed over. The worker saw the data of the launch when it came
     * to the grid, under the engine's lock. */
    if (atomic_load_explicit(&g->next, memory_order_relaxed) >= g->blocks)
        return false;

    struct hed_block *b = hed_block_open(w, g);

    if (!b) {
        if (w->open_count == 0)
            hed_grid_fail(g, CUDA_ERROR_OUT_OF_MEMORY, NULL, "not enough memory for a block");
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

/* w->open is the block that took the last step; the one after it in the ring takes the next. */
static struct hed_block *
first_in_ring(struct hed_engine_worker *w)
{
    return w->open->next;
}

/* Removes the first block from the ring. */
static void
close_first_block(struct hed_engine_worker *w)
{
    struct hed_block *b = first_in_ring(w);

    if (b == w->open)
        w->open = NULL;
    else
        w->open->next = b->next;
    w->open_count--;
    hed_block_close(b);
}

/* The rounds of waiting before one more block is opened. The blocks of a cooperative grid are known
 * to wait for all others. Blocks of other kernels may wait: mostly for earlier blocks, or they only
 * seem to, so the more blocks are open, the longer it takes. */
static uint32_t
rounds_of_patience(const struct hed_engine_worker *w, const struct hed_grid *g)
{
    if (g->job->cooperative)
        return w->open_count < g->open_share ? 1 : PATIENCE;
    if (g->job->info.flags & HED_PTX_GRID)
        return w->open_count < g->open_share ? 1 + w->open_count : PATIENCE + w->open_count;
    return PATIENCE_ALONE;
}

/* Blocks have only waited for a number of steps: opens one more, or yields the processor. */
static void
wait_for_blocks(struct hed_engine_worker *w, struct hed_grid *g, uint64_t *steps)
{
    const uint64_t rounds = *steps / w->open_count;
    const uint32_t patience = rounds_of_patience(w, g);

    if (rounds < 1)
        return;
    if (rounds >= patience && w->open_count < g->open_most && open_next_block(w, g)) {
        *steps = 0;
        return;
    }
    if (rounds >= ROUNDS_BUSY && *steps % w->open_count == 0)
        hed_sleep_ns(NAP_NS);
    else if (rounds >= 4 && *steps % w->open_count == 0)
        sched_yield();
}

void
hed_grid_work(struct hed_engine_worker *w, struct hed_grid *g)
{
    uint64_t waited = 0; /* steps since something moved */

    while (!hed_grid_failed(g)) {
        if (w->open_count == 0 && (hed_grid_hands_over(g) || !open_next_block(w, g)))
            break;

        struct hed_block *b = first_in_ring(w);

        switch (step_block(w, b)) {
        case STEP_ENDED:
            close_first_block(w);
            waited = 0;
            break;
        case STEP_MOVED:
            waited = 0;
            if (++b->steps < STEPS_MOST)
                break;
            /* It may move in circles until another block has done something. */
            b->steps = 0;
            w->open = b;
            if (w->open_count < g->open_share && g->open_share > 1)
                (void)open_next_block(w, g);
            break;
        case STEP_WAITED:
            w->open = b;
            waited++;
            wait_for_blocks(w, g, &waited);
            break;
        case STEP_STUCK:
            hed_grid_fail(g, CUDA_ERROR_LAUNCH_TIMEOUT, &b->warps[0],
                          "all threads of the block wait for each other");
            break;
        }
    }
    while (w->open_count > 0)
        close_first_block(w);
}
