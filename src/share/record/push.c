/* Adding a call to a queue: the record is a copy of the call with everything that it points to. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "core/nvtx.h"
#include "share/record/engine.h"

/* An empty ring starts again after so many bytes, so that it stays in the cache. */
#define RESTART (64u << 10)
#define ALIGN 32u

/* ---- copying a call -------------------------------------------------------------------------- */

static size_t
attributes_size(const CUlaunchConfig *config)
{
    return hed_round_up(sizeof *config, 16) +
           hed_round_up(config->numAttrs * sizeof *config->attrs, 16);
}

/* The size of a record in bytes. */
static size_t
record_size(const struct hed_record_candidate *t, const struct hed_record_kind *k)
{
    const struct hed_record_layout *l = k->layout;
    size_t n = sizeof(struct hed_record) + hed_round_up(t->info->size, 16);

    if (t->config)
        n += attributes_size(t->config);
    if (t->data)
        n += hed_round_up(t->size, 16);
    if (t->packed)
        n += 6 * sizeof(void *);
    if (t->has_params && l)
        n += hed_round_up(l->count * sizeof(void *), 16) + l->bytes;
    return hed_round_up(n, ALIGN);
}

static char *
copy_config(char *at, char *args, const struct hed_record_candidate *t)
{
    CUlaunchConfig *config = (CUlaunchConfig *)at;
    CUlaunchAttribute *attrs = (CUlaunchAttribute *)(at + hed_round_up(sizeof *config, 16));

    *config = *t->config;
    if (config->numAttrs)
        memcpy(attrs, config->attrs, config->numAttrs * sizeof *attrs);
    config->attrs = attrs;
    if (t->swapped)
        config->hStream = (CUstream)(uintptr_t)t->stream;
    memcpy(args, &config, sizeof config);
    return at + attributes_size(t->config);
}

static char *
copy_params(char *at, char *args, const struct hed_record_candidate *t,
            const struct hed_record_layout *l)
{
    void **array = (void **)at;
    char *values = at + hed_round_up(l->count * sizeof *array, 16);

    for (uint32_t i = 0; i < l->count; i++) {
        array[i] = values + l->at[i].offset;
        memcpy(array[i], t->params[i], l->at[i].size);
    }
    memcpy(args + t->params_at, &array, sizeof(void *));
    return values + l->bytes;
}

/* Packed arguments: the list `extra`, and the data that it points to. */
static void
copy_packed(char *at, char *args, const struct hed_record_candidate *t)
{
    void **list = (void **)at;
    size_t *size = (size_t *)&list[5];
    char *data = (char *)&list[6];

    *size = t->size;
    list[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
    list[1] = data;
    list[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
    list[3] = size;
    list[4] = CU_LAUNCH_PARAM_END;
    memcpy(data, t->data, t->size);
    memcpy(args + t->data_at, &list, sizeof(void *));
}

static void
fill_call(struct hed_record *s, const struct hed_record_candidate *t,
          const struct hed_record_kind *k)
{
    char *args = (char *)(s + 1);
    char *at = args + hed_round_up(t->info->size, 16);

    memcpy(args, t->args, t->info->size);
    if (t->swapped && t->info->stream_in < 0)
        memcpy(args + t->info->stream, &t->stream, sizeof t->stream);
    if (t->swapped && t->info->ptds >= 0)
        args[t->info->ptds] = 0;
    if (t->config)
        at = copy_config(at, args, t);
    if (t->has_params && k->layout)
        at = copy_params(at, args, t, k->layout);
    else if (t->has_params)
        /* The program's list may not exist any more when the call is made. */
        memset(args + t->params_at, 0, sizeof(void *));
    if (t->packed) {
        copy_packed(at, args, t);
    } else if (t->data) {
        memcpy(at, t->data, t->size);
        memcpy(args + t->data_at, &at, sizeof at);
    }
}

/* Whether the program gave a pointer to every argument of the kernel. */
static bool
params_are_there(const struct hed_record_candidate *t, const struct hed_record_layout *l)
{
    if (!t->has_params || !l)
        return true;
    for (uint32_t i = 0; i < l->count; i++)
        if (!t->params || !t->params[i])
            return false;
    return true;
}

/* ---- the ring -------------------------------------------------------------------------------- */

/* Finds room for a record, behind the last one or at the start of the ring. NULL: it is full. */
static struct hed_record *
reserve_locked(struct hed_record_queue *q, size_t size)
{
    /* Acquire: pairs with issue_one, which has finished with the bytes before `head`. */
    const uint64_t head = atomic_load_explicit(&q->head, memory_order_acquire);
    const uint64_t offset = q->tail % HED_RECORD_RING;
    const uint64_t rest = HED_RECORD_RING - offset;
    const bool restart = rest < size || (head == q->tail && offset >= RESTART && size <= offset);
    const uint64_t out = atomic_load_explicit(&q->out, memory_order_relaxed);

    if (q->tail - head + size + (restart ? rest : 0) > HED_RECORD_RING ||
        atomic_load_explicit(&q->in, memory_order_relaxed) - out >= q->engine->queue)
        return NULL;
    if (restart) {
        struct hed_record *skip = (struct hed_record *)(q->ring + offset);

        skip->size = (uint32_t)rest;
        skip->id = HED_RECORD_SKIP;
        q->tail += rest;
    }

    struct hed_record *s = (struct hed_record *)(q->ring + q->tail % HED_RECORD_RING);

    s->size = (uint32_t)size;
    return s;
}

/* Counts the reserved record, which is complete. */
static void
commit_locked(struct hed_record_queue *q, const struct hed_record *s)
{
    q->tail += s->size;
    /* Sequentially consistent: the record is complete; pairs with sleep_until_woken. */
    (void)atomic_fetch_add_explicit(&q->in, 1, memory_order_seq_cst);
}

static bool
start_queue_locked(struct hed_record_queue *q)
{
    if (!q->ring)
        q->ring = aligned_alloc(64, HED_RECORD_RING);
    if (q->ring && !q->started)
        q->started = hed_record_start(q);
    return q->ring && q->started;
}

/* ---- adding a record ------------------------------------------------------------------------- */

/* The kind of a call that may be queued. NULL: no call like it has succeeded yet. */
static const struct hed_record_kind *
find_known_locked(struct hed_record_queue *q, const struct hed_record_candidate *t)
{
    /* Acquire: pairs with the threads that change the epoch. */
    const uint32_t epoch = atomic_load_explicit(&q->engine->epoch, memory_order_acquire);

    if (q->known.epoch != epoch)
        hed_record_forget_all(&q->known, epoch);
    if (!t->swapped && !hed_record_knows_handle(&q->known, t->stream, t->context))
        return NULL;
    if (t->touches && !hed_record_knows_handle(&q->known, t->touches, t->context))
        return NULL;
    return hed_record_find_kind(&q->known, t->kind);
}

/* False: the ring is full. */
static bool
push_barriers_locked(struct hed_record_queue *q, const struct hed_record_route *route)
{
    const size_t size =
        hed_round_up(sizeof(struct hed_record) + sizeof(struct hed_record_barrier), ALIGN);

    for (uint32_t i = 0; i < route->count; i++) {
        const struct hed_record_barrier *after = &route->after[i];
        struct hed_record *s;

        if (after->number <= q->joined[after->queue->index])
            continue;
        s = reserve_locked(q, size);
        if (!s)
            return false;
        s->id = HED_RECORD_BARRIER;
        s->gpu = NULL;
        memcpy(s + 1, after, sizeof *after);
        commit_locked(q, s);
        q->joined[after->queue->index] = after->number;
    }
    return true;
}

static bool
push_call_locked(struct hed_record_queue *q, const struct hed_record_candidate *t,
                 const struct hed_record_kind *k, size_t size)
{
    const uint64_t number = atomic_load_explicit(&q->in, memory_order_relaxed) + 1;
    struct hed_record_thread *me = hed_record_thread();
    struct hed_record *s = reserve_locked(q, size);

    if (!s)
        return false;
    s->id = t->id;
    s->context = t->context;
    s->gpu = t->gpu;
    s->tag = me->tag;
    fill_call(s, t, k);
    if (t->gpu) {
        hed_gate_queue(t->gpu);
        atomic_store_explicit(&q->gpu, t->gpu, memory_order_relaxed);
    }
    hed_record_touch_locked(q, t->stream, number);
    if (t->touches)
        hed_record_touch_locked(q, t->touches, number);
    if (t->frees)
        hed_record_touch_locked(q, t->frees, number);
    commit_locked(q, s);
    me->last = q;
    me->number = number;
    return true;
}

/* Tries once to add a record. If the ring is full, *full is the number of the record that must be
 * issued first; otherwise it is 0. */
static enum hed_record_push
push_locked(const struct hed_record_route *route, const struct hed_record_candidate *t,
            uint64_t *full)
{
    struct hed_record_queue *q = route->queue;
    const struct hed_record_kind *k = find_known_locked(q, t);
    size_t size;

    *full = 0;
    if (!k)
        return HED_PUSH_UNKNOWN;
    size = record_size(t, k);
    if (size > HED_RECORD_MAX || !params_are_there(t, k->layout) || !start_queue_locked(q))
        return HED_PUSH_CANNOT;
    if (push_barriers_locked(q, route) && push_call_locked(q, t, k, size))
        return HED_PUSH_TAKEN;

    const uint64_t in = atomic_load_explicit(&q->in, memory_order_relaxed);
    const uint64_t out = atomic_load_explicit(&q->out, memory_order_relaxed);

    /* Wait for a quarter of the queue, so that the thread is not woken for every record. The number
     * must exist: the queue may be empty by now. */
    *full = out < in ? out + 1 + (in - out - 1) / 4 : in;
    return HED_PUSH_CANNOT;
}

/* The program waits, as it does when a GPU's own queue is full. The thread counts as waiting for
 * the GPU, because a batch that is larger than the queue would never be complete. */
static void
wait_for_ring_room(struct hed_record_queue *q, uint64_t number)
{
    struct hed_sched *sched = q->engine->sched;
    struct hed_gate *g = sched ? hed_gate_current(sched) : NULL;

    hed_nvtx_push("heddle: wait for room in the queue");
    hed_record_wake(q); /* a barrier may be the first record */
    if (g)
        hed_gate_sync_begin(g);
    while (!hed_record_is_issued(q, number))
        hed_record_wait(q, number, -1);
    if (g)
        hed_gate_sync_end(g);
    hed_nvtx_pop();
}

enum hed_record_push
hed_record_push(struct hed_record_client *c, const struct hed_record_candidate *t)
{
    struct hed_record_route route;
    struct hed_record_queue *q;
    enum hed_record_push done;
    bool is_copied = false;
    uint64_t full;

    route.queue = hed_record_queue_of_thread(c);
    route.count = 0;
    if (!route.queue)
        return HED_PUSH_CANNOT;
    /* Relaxed: the queue of another thread whose calls must come first has been counted by now. */
    if (atomic_load_explicit(&c->count, memory_order_relaxed) > 1)
        hed_record_choose(c, t, &route);
    q = route.queue;
    for (;;) {
        hed_lock_brief(&q->lock);
        done = push_locked(&route, t, &full);
        hed_unlock_brief(&q->lock);
        if (full)
            wait_for_ring_room(q, full);
        else if (done != HED_PUSH_UNKNOWN || is_copied || !hed_record_copy_known(q, t))
            break;
        else
            is_copied = true;
    }
    if (done != HED_PUSH_TAKEN)
        return done;
    hed_record_wake(q);
    if (t->gpu)
        hed_gate_queued(t->gpu);
    return done;
}
