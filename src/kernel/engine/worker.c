/* The engine's threads, and the workers that calling threads use while their grid runs.
 *
 * A thread sleeps until a grid has blocks to hand out, works on the grid until there are none, and
 * looks for the next. The threads start with the first grid that has more than one block.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/thread.h"
#include "kernel/engine/engine_parts.h"
#include "kernel/engine/sandbox.h"

#define THREAD_STACK ((size_t)512 << 10)
#define SPARE_BLOCKS 8 /* open blocks that a worker keeps from grid to grid */

static bool
has_blocks(struct hed_grid *g)
{
    /* Relaxed: a stale value costs one more look. */
    return atomic_load_explicit(&g->next, memory_order_relaxed) < g->blocks &&
           !atomic_load_explicit(&g->handed_over, memory_order_relaxed) && !hed_grid_failed(g);
}

static void
worker_free(struct hed_engine_worker *w)
{
    if (!w)
        return;
    hed_block_trim(w, 0);
    hed_fault_fini(w);
    if (w->given.at)
        hed_region_give(&w->engine->sandbox->open, &w->given);
    pthread_cond_destroy(&w->own.left_cond);
    hed_lock_fini(&w->own.out_lock);
    free(w);
}

/* The grid that needs a worker most: the one with the fewest. */
static struct hed_grid *
choose_grid_locked(struct hed_engine *e)
{
    struct hed_grid *best = NULL;

    for (struct hed_grid *g = e->grids; g; g = g->next_grid) {
        if (has_blocks(g) && (!best || g->users < best->users))
            best = g;
    }
    return best;
}

static void
work_on_grid(struct hed_engine_worker *w, struct hed_grid *g)
{
    w->grid = g;
    if (g->direct)
        hed_direct_work(w, g);
    else
        hed_grid_work(w, g);
    w->grid = NULL;
    hed_block_trim(w, SPARE_BLOCKS);
}

static void *
thread_main(void *arg)
{
    struct hed_engine_worker *w = arg;
    struct hed_engine *e = w->engine;
    stack_t before;

    hed_fault_enter(w, &before);
    hed_lock(&e->lock);
    while (!e->stopping) {
        struct hed_grid *g = choose_grid_locked(e);

        if (!g) {
            (void)hed_lock_wait(&e->lock, &e->work, UINT64_MAX);
            continue;
        }
        g->users++;
        hed_unlock(&e->lock);
        work_on_grid(w, g);
        hed_lock(&e->lock);
        if (--g->users == 0)
            pthread_cond_broadcast(&g->left_cond);
    }
    hed_unlock(&e->lock);
    hed_fault_leave(w, &before);
    return NULL;
}

static int
start_engine_thread(struct hed_engine_worker *w)
{
    char name[16];
    const struct hed_thread_how how = {.name = name, .stack = THREAD_STACK};

    snprintf(name, sizeof name, "heddle-cpu-%u", w->index % 10000);
    return hed_thread_start(&how, thread_main, w, &w->thread);
}

static struct hed_engine_worker *
worker_create(struct hed_engine *e, unsigned index)
{
    struct hed_engine_worker *w = aligned_alloc(_Alignof(struct hed_engine_worker), sizeof *w);

    if (!w)
        return NULL;
    memset(w, 0, sizeof *w);
    w->engine = e;
    w->index = index;
    hed_lock_init(&w->own.out_lock, HED_RANK_OUTPUT);
    pthread_cond_init(&w->own.left_cond, NULL);
    if (hed_fault_init(w) == 0 &&
        (!e->sandbox || hed_region_take(&e->sandbox->open, HED_REGION_LEAST, &w->given) == 0))
        return w;
    worker_free(w);
    return NULL;
}

static void
start_threads_locked(struct hed_engine *e)
{
    while (e->started + 1 < e->threads) {
        struct hed_engine_worker *w = worker_create(e, e->started + 1);

        if (!w || start_engine_thread(w) != 0) {
            hed_warn(CPU, "only %u of %u threads could be started", e->started + 1, e->threads);
            worker_free(w);
            e->threads = e->started + 1;
            break;
        }
        e->workers[e->started++] = w;
    }
}

void
hed_engine_workers_join(struct hed_engine *e, struct hed_grid *g)
{
    hed_lock(&e->lock);
    start_threads_locked(e);
    g->previous_grid = NULL;
    g->next_grid = e->grids;
    if (e->grids)
        e->grids->previous_grid = g;
    e->grids = g;
    if (g->blocks > 2)
        pthread_cond_broadcast(&e->work);
    else
        pthread_cond_signal(&e->work);
    hed_unlock(&e->lock);
}

void
hed_engine_interrupt(struct hed_engine *e, pthread_t caller)
{
    (void)pthread_kill(caller, HED_INTERRUPT);
    hed_lock(&e->lock);
    for (unsigned i = 0; i < e->started; i++)
        (void)pthread_kill(e->workers[i]->thread, HED_INTERRUPT);
    hed_unlock(&e->lock);
}

void
hed_engine_workers_leave(struct hed_engine *e, struct hed_grid *g)
{
    hed_lock(&e->lock);
    if (g->previous_grid)
        g->previous_grid->next_grid = g->next_grid;
    else
        e->grids = g->next_grid;
    if (g->next_grid)
        g->next_grid->previous_grid = g->previous_grid;
    while (g->users > 0)
        (void)hed_lock_wait(&e->lock, &g->left_cond, UINT64_MAX);
    hed_unlock(&e->lock);
}

/* ---- workers of calling threads -------------------------------------------------------------- */

static _Thread_local struct hed_engine_worker *bound; /* with is_bound */

struct hed_engine_worker *
hed_engine_worker_take(struct hed_engine *e)
{
    struct hed_engine_worker *w = bound;

    if (w && w->engine == e)
        return w;
    /* Acquire: pairs with the release in hed_engine_worker_give. */
    w = atomic_exchange_explicit(&e->hot, NULL, memory_order_acquire);
    if (w)
        return w;
    hed_lock(&e->lock);
    w = e->idle;
    if (w)
        e->idle = w->next_idle;

    const unsigned index = w ? w->index : e->worker_count++;

    hed_unlock(&e->lock);
    /* Calling threads share the numbers of our threads: a number stands for an SM, not for a
     * thread. */
    return w ? w : worker_create(e, index);
}

void
hed_engine_worker_give(struct hed_engine_worker *w)
{
    struct hed_engine *e = w->engine;
    struct hed_engine_worker *none = NULL;

    /* Release: the next thread that takes it sees what this one left in it. */
    if (w->is_bound || atomic_compare_exchange_strong_explicit(
                           &e->hot, &none, w, memory_order_release, memory_order_relaxed))
        return;
    hed_lock(&e->lock);
    w->next_idle = e->idle;
    e->idle = w;
    hed_unlock(&e->lock);
}

void
hed_engine_thread_begin(struct hed_engine *e, bool again)
{
    struct hed_engine_worker *w = again ? bound : hed_engine_worker_take(e);
    stack_t ours;

    if (!w)
        return; /* launches try again, and fail with a reason */
    hed_fault_enter(w, w->is_bound ? &ours : &w->before);
    w->is_bound = true;
    bound = w;
}

void
hed_engine_thread_end(struct hed_engine *e)
{
    struct hed_engine_worker *w = bound;

    if (!w || w->engine != e)
        return;
    bound = NULL;
    w->is_bound = false;
    hed_fault_leave(w, &w->before);
    hed_engine_worker_give(w);
}

void
hed_engine_worker_run(struct hed_engine_worker *w, struct hed_grid *g)
{
    struct hed_engine_worker *other = hed_engine_worker_begin(w);
    stack_t before;

    if (w->is_bound) {
        hed_fault_renew();
        work_on_grid(w, g);
    } else {
        hed_fault_enter(w, &before);
        work_on_grid(w, g);
        hed_fault_leave(w, &before);
    }
    (void)hed_engine_worker_begin(other);
}

void
hed_engine_workers_stop(struct hed_engine *e)
{
    hed_lock(&e->lock);
    e->stopping = true;
    pthread_cond_broadcast(&e->work);
    hed_unlock(&e->lock);
    for (unsigned i = 0; i < e->started; i++) {
        pthread_join(e->workers[i]->thread, NULL);
        worker_free(e->workers[i]);
    }
    e->started = 0;
    worker_free(atomic_exchange_explicit(&e->hot, NULL, memory_order_acquire));
    while (e->idle) {
        struct hed_engine_worker *w = e->idle;

        e->idle = w->next_idle;
        worker_free(w);
    }
}
