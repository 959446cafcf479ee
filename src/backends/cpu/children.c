/* Runs the grids that kernels launch. See children.h. */
#include "backends/cpu/children.h"

#include <stdlib.h>
#include <string.h>

#include "backends/cpu/cpu.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/thread.h"
#include "kernel/engine.h"

#define LOOK_NS 10000000 /* how often a launch that waits for room looks whether its grid failed */

/* ---- lists ----------------------------------------------------------------------------------- */

static void
list_push(struct hed_child_list *l, struct hed_child_grid *c)
{
    c->next = NULL;
    if (!l->first)
        l->last = &l->first;
    *l->last = c;
    l->last = &c->next;
    l->count++;
}

static struct hed_child_grid *
list_take(struct hed_child_list *l)
{
    struct hed_child_grid *c = l->first;

    if (!c)
        return NULL;
    l->first = c->next;
    l->count--;
    return c;
}

/* Puts the children of `from` before those of `to`. */
static void
list_prepend(struct hed_child_list *to, struct hed_child_list *from)
{
    if (!from->first)
        return;
    *from->last = to->first;
    if (!to->first)
        to->last = from->last;
    to->first = from->first;
    to->count += from->count;
    *from = (struct hed_child_list){0};
}

static void
list_free(struct hed_child_list *l)
{
    struct hed_child_grid *c;

    while ((c = list_take(l)))
        free(c);
}

/* ---- the end of a grid ----------------------------------------------------------------------- */

/* The runner does what is left, unless the grid has failed. Returns the first failure. */
static CUresult
end_runner(struct hed_children *k, CUresult r, struct hed_why *why)
{
    bool has_runner;

    hed_lock(&k->lock);
    k->ended = true;
    if (r != CUDA_SUCCESS)
        list_free(&k->queue);
    has_runner = k->has_runner;
    pthread_cond_broadcast(&k->changed);
    hed_unlock(&k->lock);
    if (has_runner)
        pthread_join(k->runner, NULL);
    if (k->result == CUDA_SUCCESS)
        return r;
    hed_why_set(why, "%s", k->why.text);
    return k->result;
}

/* Gives back what the kernel took and did not use. */
static void
free_children(const struct hed_parent *p, struct hed_children *k)
{
    list_free(&k->queue);
    list_free(&k->tails);
    for (unsigned i = 0; i < HED_CHILDREN_BUCKETS; i++)
        while (k->given[i]) {
            struct hed_child_grid *c = k->given[i];

            k->given[i] = c->next;
            (void)hed_heap_give(&p->cpu->buffers[p->launch->device], c->buffer);
            free(c);
        }
    while (k->errors) {
        struct hed_device_error *e = k->errors;

        k->errors = e->next;
        free(e);
    }
    free(k->handles);
    pthread_cond_destroy(&k->changed);
    hed_lock_fini(&k->lock);
    free(k);
}

/* ---- one child ------------------------------------------------------------------------------- */

/* A child that has run, and whose own children run now. */
struct level {
    struct level *below; /* its parent's; NULL if that is where run_list() began */
    struct hed_launch launch;
    struct hed_parent parent;
    struct hed_child_grid *child;
};

/* Ids of grids that programs launch are far below. */
static uint64_t
next_grid_id(void)
{
    static _Atomic uint64_t ids = UINT64_C(1) << 62;

    /* Relaxed: the ids only have to differ. */
    return atomic_fetch_add_explicit(&ids, 1, memory_order_relaxed);
}

/* A copy or a fill runs as a kernel of one thread, so that a bad address fails the launch. */
static CUresult
run_move(const struct hed_parent *p, const struct hed_child_grid *c, struct hed_why *why)
{
    const struct hed_job job = {
        .entry = hed_cpu_move_rows,
        .info = {.abi = HED_PTX_ABI, .flags = p->cpu->sandbox ? HED_PTX_CONFINED : 0},
        .deadline = p->deadline,
        .name = "a copy by a kernel",
        .grid = {1, 1, 1},
        .block = {1, 1, 1},
        .params = c->params,
        .param_bytes = sizeof(struct hed_move),
        .id = next_grid_id(),
        .sm_count = 1,
    };

    return hed_engine_run(p->cpu->engine, &job, why);
}

static void
describe_launch(const struct hed_parent *p, const struct hed_child_grid *c, struct hed_launch *out)
{
    *out = *p->launch;
    out->kernel = c->kernel;
    out->dynamic_shared = c->dynamic_shared;
    out->params = c->params;
    out->param_bytes = c->param_bytes;
    out->attributes = NULL;
    out->attribute_count = 0;
    out->cooperative = false;
    out->grid_id = next_grid_id();
    out->begin = hed_now_ns();
    for (int d = 0; d < 3; d++) {
        out->grid[d] = c->grid[d];
        out->block[d] = c->block[d];
        out->cluster[d] = 0;
    }
}

static struct hed_children *
children_of_level(const struct level *l)
{
    return atomic_load_explicit(&l->parent.children, memory_order_acquire);
}

/* Runs the grid of a child of p, which is at the level `below`, and makes a level of it. Takes the
 * child. */
static CUresult
push_level(struct level **top, const struct hed_parent *p, struct hed_child_grid *c,
           struct hed_why *why)
{
    struct level *l = calloc(1, sizeof *l);
    CUresult r;

    if (!l) {
        free(c);
        hed_why_set(why, "not enough memory for a kernel that a kernel launched");
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    describe_launch(p, c, &l->launch);
    l->parent = (struct hed_parent){
        .cpu = p->cpu, .launch = &l->launch, .deadline = p->deadline, .depth = p->depth + 1};
    l->child = c;
    l->below = *top;
    *top = l;
    r = hed_cpu_run_grid(&l->parent, why);
    return children_of_level(l) ? end_runner(children_of_level(l), r, why) : r;
}

/* All children of the top level are done. What it launched at its tail comes next; `next` is the
 * queue that it came from. */
static void
pop_level(struct level **top, struct hed_child_list *next)
{
    struct level *l = *top;
    struct hed_children *k = children_of_level(l);

    if (k) {
        list_prepend(next, &k->tails);
        free_children(&l->parent, k);
    }
    *top = l->below;
    free(l->child);
    free(l);
}

static CUresult
run_next(struct level **top, const struct hed_parent *p, struct hed_child_grid *c,
         struct hed_why *why)
{
    CUresult r;

    if (p->deadline && hed_now_ns() > p->deadline) {
        free(c);
        hed_why_set(why, "the time limit has passed for kernels that kernels launched");
        return CUDA_ERROR_LAUNCH_TIMEOUT;
    }
    if (!c->is_move)
        return push_level(top, p, c, why);
    r = run_move(p, c, why);
    free(c);
    return r;
}

/* The queue of the top level; of p's own children without one. */
static struct hed_child_list *
queue_of_level(struct level *top, struct hed_child_list *list)
{
    struct hed_children *k = top ? children_of_level(top) : NULL;

    return top ? (k ? &k->queue : NULL) : list;
}

/* Runs children of p in the order of the list, each with all that comes of it. Launches may be
 * nested thousands deep, so this is a loop and no recursion. */
static CUresult
run_list(const struct hed_parent *p, struct hed_child_list *list, struct hed_why *why)
{
    struct hed_child_list dropped = {0};
    struct level *top = NULL;
    CUresult r = CUDA_SUCCESS;

    while (r == CUDA_SUCCESS) {
        struct hed_child_list *queue = queue_of_level(top, list);
        struct hed_child_grid *c = queue ? list_take(queue) : NULL;

        if (c)
            r = run_next(&top, top ? &top->parent : p, c, why);
        else if (top)
            pop_level(&top, queue_of_level(top->below, list));
        else
            break;
    }
    while (top)
        pop_level(&top, &dropped);
    list_free(&dropped);
    list_free(list);
    return r;
}

static CUresult
run_alone(const struct hed_parent *p, struct hed_child_grid *c, struct hed_why *why)
{
    struct hed_child_list list = {0};

    list_push(&list, c);
    return run_list(p, &list, why);
}

/* ---- while the parent runs ------------------------------------------------------------------- */

/* A child has failed: the grid ends, too, which may be waiting for it. */
static void
fail_parent(struct hed_children *k, CUresult r)
{
    hed_lock(&k->lock);
    k->result = r;
    list_free(&k->queue);
    if (k->grid)
        hed_grid_fail(k->grid, r, NULL, "a kernel that it launched has failed");
    pthread_cond_broadcast(&k->changed);
    hed_unlock(&k->lock);
}

/* A thread that runs children until their grid has ended and none is left. */
static void *
runner_main(void *arg)
{
    const struct hed_parent *p = arg;
    struct hed_children *k = atomic_load_explicit(&p->children, memory_order_acquire);
    CUresult r = CUDA_SUCCESS;

    while (r == CUDA_SUCCESS) {
        struct hed_child_grid *c;

        hed_lock(&k->lock);
        while (!k->queue.first && !k->ended)
            (void)hed_lock_wait(&k->lock, &k->changed, UINT64_MAX);
        c = list_take(&k->queue);
        pthread_cond_broadcast(&k->changed);
        hed_unlock(&k->lock);
        if (!c)
            break;
        r = run_alone(p, c, &k->why);
    }
    if (r != CUDA_SUCCESS)
        fail_parent(k, r);
    return NULL;
}

/* Without a thread, the children run later. */
static void
start_runner_locked(struct hed_parent *p, struct hed_children *k)
{
    const struct hed_thread_how how = {.name = "heddle-children", .faults = true};

    if (!k->has_runner && !k->ended)
        k->has_runner = hed_thread_start(&how, runner_main, p, &k->runner) == 0;
}

uint32_t
hed_children_limit(const struct hed_parent *p)
{
    return (uint32_t)hed_clamp(p->launch->pending_limit, 1, HED_CHILDREN_PENDING_MAX);
}

struct hed_children *
hed_children_of(struct hed_parent *p)
{
    struct hed_children *k = atomic_load_explicit(&p->children, memory_order_acquire), *made;

    if (k)
        return k;
    made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    hed_lock_init(&made->lock, HED_RANK_CHILDREN);
    pthread_cond_init(&made->changed, NULL);
    /* Acquire and release: pair with each other on the grid's other threads. */
    if (atomic_compare_exchange_strong_explicit(&p->children, &k, made, memory_order_acq_rel,
                                                memory_order_acquire))
        return made;
    pthread_cond_destroy(&made->changed);
    hed_lock_fini(&made->lock);
    free(made);
    return k;
}

/* Waits until fewer children are pending than the limit. False if the grid fails meanwhile. */
static bool
wait_for_room_locked(struct hed_grid *g, struct hed_parent *p, struct hed_children *k,
                     uint32_t limit)
{
    if (k->queue.count >= limit)
        start_runner_locked(p, k);
    while (k->queue.count >= limit && k->has_runner && !hed_grid_has_failed(g))
        (void)hed_lock_wait(&k->lock, &k->changed, hed_now_ns() + LOOK_NS);
    return !hed_grid_has_failed(g);
}

enum hed_device_result
hed_children_add(struct hed_ptx_warp *s, struct hed_parent *p, struct hed_child_grid *child,
                 bool is_tail)
{
    struct hed_children *k = hed_children_of(p);
    const uint32_t limit = hed_children_limit(p);
    bool room, failed;

    if (!k) {
        free(child);
        return HED_DEVICE_NO_MEMORY;
    }
    hed_lock(&k->lock);
    k->grid = hed_grid_of(s);
    failed = !is_tail && !wait_for_room_locked(k->grid, p, k, limit);
    room = !failed && (is_tail ? k->tails.count < limit : k->queue.count < limit);
    if (room)
        list_push(is_tail ? &k->tails : &k->queue, child);
    pthread_cond_broadcast(&k->changed);
    hed_unlock(&k->lock);
    if (!room)
        free(child);
    if (failed)
        hed_engine_warp_leave_failed(s);
    return room ? HED_DEVICE_SUCCESS : HED_DEVICE_TOO_MANY_PENDING;
}

void
hed_children_hurry(void *parent, struct hed_grid *g)
{
    struct hed_parent *p = parent;
    struct hed_children *k = atomic_load_explicit(&p->children, memory_order_acquire);

    if (!k)
        return;
    hed_lock(&k->lock);
    k->grid = g;
    if (k->queue.first)
        start_runner_locked(p, k);
    hed_unlock(&k->lock);
}

/* ---- errors ---------------------------------------------------------------------------------- */

uint32_t
hed_children_error(struct hed_children *k, uint64_t thread, bool clears)
{
    struct hed_device_error **at, *found = NULL;
    uint32_t error = 0;

    hed_lock(&k->lock);
    for (at = &k->errors; *at && (*at)->thread != thread; at = &(*at)->next)
        ;
    if (*at) {
        error = (*at)->error;
        found = clears ? *at : NULL;
    }
    if (found) {
        *at = found->next;
        k->error_count--;
    }
    hed_unlock(&k->lock);
    free(found);
    return error;
}

uint32_t
hed_children_set_error(struct hed_children *k, uint64_t thread, uint32_t error)
{
    struct hed_device_error *e;

    (void)hed_children_error(k, thread, true);
    e = error ? calloc(1, sizeof *e) : NULL;
    if (!e)
        return error;
    e->thread = thread;
    e->error = error;
    hed_lock(&k->lock);
    if (k->error_count < HED_CHILDREN_GIVEN_MAX) {
        e->next = k->errors;
        k->errors = e;
        k->error_count++;
        e = NULL;
    }
    hed_unlock(&k->lock);
    free(e);
    return error;
}

/* ---- afterwards ------------------------------------------------------------------------------ */

void
hed_children_grid_ended(const struct hed_parent *p)
{
    struct hed_children *k = atomic_load_explicit(&p->children, memory_order_acquire);

    if (!k)
        return;
    hed_lock(&k->lock);
    k->grid = NULL;
    hed_unlock(&k->lock);
}

CUresult
hed_children_run(struct hed_parent *p, CUresult r, struct hed_why *why)
{
    struct hed_children *k = atomic_load_explicit(&p->children, memory_order_acquire);

    if (!k)
        return r;
    r = end_runner(k, r, why);
    if (r == CUDA_SUCCESS)
        r = run_list(p, &k->queue, why);
    if (r == CUDA_SUCCESS)
        r = run_list(p, &k->tails, why);
    free_children(p, k);
    return r;
}
