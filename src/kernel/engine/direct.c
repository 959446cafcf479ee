/* A worker's part of a grid whose warps never wait on a stack: they run one after the other on
 * one stack. Compiled warps run block after block by themselves (HED_PTX_BLOCKS). Others run warp
 * by warp; a kernel that is cut at barriers returns there, and when all warps of the block have
 * returned, they go on in another round.
 */
#include "base/number.h"
#include "kernel/engine/engine_parts.h"

#define PARTS 4 /* of the blocks that are left to each worker */

/* Takes blocks to run: a part of those that are left, so that all workers end at the same time.
 * False if there are none. */
static bool
take_blocks(struct hed_engine_worker *w, struct hed_grid *g)
{
    /* Relaxed: as in open_next_block() of grid.c. */
    uint64_t from = atomic_load_explicit(&g->next, memory_order_relaxed), end;
    const uint64_t parts = g->shared ? PARTS * (uint64_t)g->engine->threads : 1;

    if (hed_grid_hands_over(g))
        return false;
    do {
        if (from >= g->blocks)
            return false;
        end = from + hed_clamp((g->blocks - from) / parts, 1, g->chunk);
    } while (!atomic_compare_exchange_weak_explicit(&g->next, &from, end, memory_order_relaxed,
                                                    memory_order_relaxed));
    w->direct.block = from;
    w->direct.end = end;
    return true;
}

/* Goes to the next block, when a block is finished or at the beginning. False if there is none. */
static bool
advance_block(struct hed_engine_worker *w, struct hed_grid *g)
{
    struct hed_block *b = w->direct.room;

    if (hed_grid_failed(g) || (w->direct.block == w->direct.end && !take_blocks(w, g)))
        return false;
    hed_block_place(b, w->direct.block++);
    w->direct.warp = 0;
    w->direct.rounds = 0;
    return true;
}

static void
run_each_warp(struct hed_engine_worker *w, struct hed_grid *g)
{
    struct hed_block *b = w->direct.room;

    while (w->direct.warp < g->warps) {
        struct hed_engine_warp *s = &b->warps[w->direct.warp];

        s->abi.fuel = HED_FUEL;
        s->abi.line = 0;
        w->direct.warp++;
        w->running = s;
        g->job->entry(&s->abi);
    }
}

/* One round for all warps of the block that are not at their end. False if all are. */
static bool
run_round(struct hed_engine_worker *w, struct hed_grid *g)
{
    struct hed_block *b = w->direct.room;
    bool any = false;

    for (; w->direct.warp < g->warps; w->direct.warp++) {
        struct hed_engine_warp *s = &b->warps[w->direct.warp];

        if (w->direct.rounds && !s->abi.resume)
            continue;
        s->abi.line = 0;
        w->running = s;
        g->job->entry(&s->abi);
        any = any || s->abi.resume;
    }
    w->direct.warp = 0;
    w->direct.rounds++;
    return any && !hed_grid_failed(g);
}

/* The kernel goes from warp to warp and from block to block. */
static void
run_whole_blocks(struct hed_engine_worker *w, struct hed_grid *g)
{
    struct hed_block *b = w->direct.room;
    struct hed_ptx_run *run = &w->direct.run;

    while (!hed_grid_failed(g) && take_blocks(w, g)) {
        hed_block_place(b, w->direct.block);
        run->blocks = w->direct.end - w->direct.block;
        hed_ptx_run_blocks(g->job->entry, run);
    }
}

static void
direct_main(void *arg)
{
    struct hed_engine_worker *w = arg;
    struct hed_grid *g = w->grid;

    hed_side_first(&w->side);
    if (g->job->info.flags & HED_PTX_BLOCKS)
        run_whole_blocks(w, g);
    else
        do {
            if (g->job->info.flags & HED_PTX_CUT) {
                while (w->direct.warp < g->warps && run_round(w, g))
                    ;
            } else {
                run_each_warp(w, g);
            }
        } while (advance_block(w, g));
    hed_engine_warp_abandon(&w->direct.room->warps[0]);
}

void
hed_direct_work(struct hed_engine_worker *w, struct hed_grid *g)
{
    struct hed_block *b = hed_block_open(w, g);

    if (!b) {
        hed_grid_fail(g, CUDA_ERROR_OUT_OF_MEMORY, NULL, "not enough memory for a block");
        return;
    }
    w->direct.room = b;
    w->direct.block = w->direct.end = 0;
    w->direct.warp = g->warps;
    w->direct.run = (struct hed_ptx_run){.block = &b->abi,
                                         .warps = &b->warps[0].abi,
                                         .stride = sizeof *b->warps,
                                         .count = g->warps,
                                         .stop = (const uint32_t *)&g->failed};
    b->live = 0;
    if (!hed_grid_failed(g)) {
        struct hed_engine_warp *s = &b->warps[0];

        hed_side_init(&s->side, b->stacks.at + b->guard, b->stack_size - b->guard);
        s->side.sp = hed_fiber_make(b->stacks.at + b->stack_size, direct_main, w);
        hed_engine_warp_run(w, s);
    }
    hed_block_close(b);
}
