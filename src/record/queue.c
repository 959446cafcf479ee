/* A client's queue. Records go into a ring and, in the same order, from there to the next layer. */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/log.h"
#include "base/number.h"
#include "base/relax.h"
#include "core/errors.h"
#include "core/nvtx.h"
#include "record/engine.h"

#define SPINS 400 /* polls before the issuing thread sleeps: some microseconds */
/* An empty ring starts again after so many bytes, so that it stays in the cache. */
#define RESTART (64u << 10)
#define ALIGN 32u

/* Where a thread writes a word and then looks whether another thread sleeps, it writes with an
 * exchange. When ARM code is emulated on another processor (QEMU on x86-64), the look may overtake
 * a plain store, and a wake-up would be lost. An exchange costs the same. */

/* ---- issuing --------------------------------------------------------------------------------- */

static void
set_current(const struct hed_recorder *r, CUcontext context)
{
    (void)hed_call(r->next, cuCtxSetCurrent, .ctx = context);
}

/* Keeps the first error for the program, and logs every error. Later calls may fail as well, so the
 * engine forgets which kinds have succeeded. */
static void
keep_error(struct hed_record_client *c, uint32_t id, CUresult result)
{
    uint32_t none = 0;
    const char *name = NULL;

    (void)hed_cuda_error_name(result, &name);
    atomic_compare_exchange_strong_explicit(&c->error, &none, (uint32_t)result,
                                            memory_order_relaxed, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->engine->epoch, 1, memory_order_release);
    hed_warn(SCHED, "%s, which had been queued, failed: %s", hed_cuda_info[id].name,
             name ? name : "an error without a name");
}

/* The context that is current in an issuing thread. A context that has ended may come back under
 * the same address without being current, so the epoch is kept as well. */
struct current {
    CUcontext context;
    uint32_t epoch;
};

static void
make_current(const struct hed_recorder *r, struct current *p, CUcontext context)
{
    const uint32_t epoch = atomic_load_explicit(&r->epoch, memory_order_acquire);

    if (p->context == context && p->epoch == epoch)
        return;
    set_current(r, context);
    *p = (struct current){context, epoch};
}

/* Issues the oldest record. The calling thread has the role. */
static void
issue_one(struct hed_record_client *c, struct current *now)
{
    const struct hed_recorder *r = c->engine;
    uint64_t head = atomic_load_explicit(&c->head, memory_order_relaxed);
    struct hed_record *s = (struct hed_record *)(c->ring + head % HED_RECORD_RING);

    if (s->id == 0) {
        head += s->size;
        s = (struct hed_record *)(c->ring + head % HED_RECORD_RING);
    }
    make_current(r, now, s->context);
    if (s->gpu)
        hed_gate_unqueue(s->gpu);

    hed_record_thread()->issuing = s->tag;

    const CUresult result = hed_cuda_invoke(r->next, s->id, s + 1);

    hed_record_thread()->issuing = 0;
    if (result != CUDA_SUCCESS)
        keep_error(c, s->id, result);
    /* Release: pairs with the acquire in reserve_locked. */
    atomic_store_explicit(&c->head, head + s->size, memory_order_release);

    const uint64_t out = atomic_load_explicit(&c->out, memory_order_relaxed) + 1;

    /* Both sequentially consistent: either this thread or wait_for_record sees the other's
     * write. */
    (void)atomic_exchange_explicit(&c->out, out, memory_order_seq_cst);
    if (atomic_load_explicit(&c->wake_at, memory_order_seq_cst) <= out) {
        atomic_store_explicit(&c->wake_at, UINT64_MAX, memory_order_seq_cst);
        atomic_fetch_add_explicit(&c->progress, 1, memory_order_seq_cst);
        (void)hed_futex_wake_private(&c->progress, INT_MAX);
    }
}

static bool
has_records(struct hed_record_client *c)
{
    /* `in` sequentially consistent: pairs with push_locked, and is ordered with `sleeping`. */
    return atomic_load_explicit(&c->in, memory_order_seq_cst) !=
           atomic_load_explicit(&c->out, memory_order_relaxed);
}

static bool
take_role(struct hed_record_client *c)
{
    uint32_t free_role = 0;

    /* Acquire: pairs with give_role. */
    return atomic_load_explicit(&c->role, memory_order_relaxed) == 0 &&
           atomic_compare_exchange_strong_explicit(&c->role, &free_role, 1, memory_order_seq_cst,
                                                   memory_order_relaxed);
}

static void
wake_issuer(struct hed_record_client *c)
{
    /* Sequentially consistent: pairs with sleep_until_woken. */
    if (!atomic_load_explicit(&c->sleeping, memory_order_seq_cst))
        return;
    atomic_store_explicit(&c->sleeping, 0, memory_order_seq_cst);
    atomic_fetch_add_explicit(&c->wake, 1, memory_order_seq_cst);
    (void)hed_futex_wake_private(&c->wake, 1);
}

static void
give_role(struct hed_record_client *c)
{
    (void)atomic_exchange_explicit(&c->role, 0, memory_order_seq_cst);
    if (has_records(c))
        wake_issuer(c);
}

/* Issues the queued records, up to that number. The calling thread has the role. */
static void
issue_until(struct hed_record_client *c, uint64_t number, struct current *now)
{
    struct hed_record_thread *me = hed_record_thread();

    me->inside++;
    hed_nvtx_push("heddle: submit");
    while (atomic_load_explicit(&c->out, memory_order_relaxed) < number &&
           /* Acquire: pairs with push_locked, so that the record is complete. */
           atomic_load_explicit(&c->in, memory_order_acquire) >
               atomic_load_explicit(&c->out, memory_order_relaxed))
        issue_one(c, now);
    hed_nvtx_pop();
    me->inside--;
}

/* ---- the issuing thread ---------------------------------------------------------------------- */

static void
sleep_until_woken(struct hed_record_client *c)
{
    const uint32_t wake = atomic_load_explicit(&c->wake, memory_order_seq_cst);

    for (int i = 0; i < SPINS; i++) {
        if (has_records(c) && atomic_load_explicit(&c->role, memory_order_relaxed) == 0)
            return;
        hed_relax();
    }
    /* Sequentially consistent: either this thread sees the new record, or the thread that pushes it
     * sees that this one sleeps. */
    (void)atomic_exchange_explicit(&c->sleeping, 1, memory_order_seq_cst);
    if ((!has_records(c) || atomic_load_explicit(&c->role, memory_order_seq_cst) != 0) &&
        !atomic_load_explicit(&c->engine->stop, memory_order_seq_cst))
        (void)hed_futex_wait_private(&c->wake, wake, -1);
    atomic_store_explicit(&c->sleeping, 0, memory_order_seq_cst);
}

static void *
issuer_main(void *arg)
{
    struct hed_record_client *c = arg;
    struct current now = {0};

    hed_record_thread()->inside = 1;
    if (c->engine->sched)
        hed_sched_set_client(c->engine->sched, c->text);
    while (has_records(c) || !atomic_load_explicit(&c->engine->stop, memory_order_seq_cst)) {
        if (!has_records(c) || !take_role(c)) {
            sleep_until_woken(c);
            continue;
        }
        issue_until(c, UINT64_MAX, &now);
        give_role(c);
    }
    return NULL;
}

bool
hed_record_start(struct hed_record_client *c)
{
    sigset_t all;
    sigset_t old;

    /* The program's signals go to its own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);

    const int err = pthread_create(&c->thread, NULL, issuer_main, c);

    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (err)
        hed_warn(SCHED, "cannot start the thread that issues queued calls: calls are not deferred");
    return err == 0;
}

void
hed_record_stop(struct hed_record_client *c)
{
    if (!c->started)
        return;
    atomic_fetch_add_explicit(&c->wake, 1, memory_order_seq_cst);
    (void)hed_futex_wake_private(&c->wake, 1);
    (void)pthread_join(c->thread, NULL);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static bool
is_issued(const struct hed_record_client *c, uint64_t number)
{
    /* Sequentially consistent: see issue_one. */
    return atomic_load_explicit(&c->out, memory_order_seq_cst) >= number;
}

static void
wait_for_record(struct hed_record_client *c, uint64_t number, int64_t ns)
{
    const uint32_t progress = atomic_load_explicit(&c->progress, memory_order_seq_cst);
    uint64_t at = atomic_load_explicit(&c->wake_at, memory_order_seq_cst);

    while (at > number && !atomic_compare_exchange_weak_explicit(
                              &c->wake_at, &at, number, memory_order_seq_cst, memory_order_seq_cst))
        ;
    if (!is_issued(c, number))
        (void)hed_futex_wait_private(&c->progress, progress, ns);
}

/* Issues the records up to that number in this thread. False: another thread has the role. */
static bool
issue_here(struct hed_record_client *c, uint64_t number)
{
    CUcontext before;
    struct current now;
    int cancel;

    if (!take_role(c))
        return false;
    /* A thread that was cancelled here would keep the role. */
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    before = hed_current_context(c->engine->next);
    now = (struct current){before, atomic_load_explicit(&c->engine->epoch, memory_order_acquire)};
    issue_until(c, number, &now);
    if (now.context != before)
        set_current(c->engine, before);
    give_role(c);
    (void)pthread_setcancelstate(cancel, NULL);
    return true;
}

/* Waits for another client's record. That client may be held because this one has the GPU, so its
 * queued calls are released. */
static void
wait_for_other(struct hed_record_client *c, uint64_t number)
{
    struct hed_gate *g = atomic_load_explicit(&c->gpu, memory_order_relaxed);

    if (g)
        hed_gate_release(g);
    /* A call that was on its way to the gate has not been counted. Release again after a while. */
    wait_for_record(c, number, g ? (int64_t)HED_NS_PER_MS : -1);
}

void
hed_record_drain(struct hed_record_client *c, uint64_t number, bool mine)
{
    const bool helps = mine && !(c->engine->defer & HED_RECORD_ASIDE);
    struct hed_gate *g;

    if (is_issued(c, number))
        return;
    g = c->engine->sched && mine ? hed_gate_current(c->engine->sched) : NULL;
    if (g)
        hed_gate_sync_begin(g);
    hed_nvtx_push("heddle: wait for queued work");
    while (!is_issued(c, number))
        if (!mine)
            wait_for_other(c, number);
        else if (!helps || !issue_here(c, number))
            wait_for_record(c, number, -1);
    hed_nvtx_pop();
    if (g)
        hed_gate_sync_end(g);
}

bool
hed_record_settle(struct hed_record_client *c, uint64_t end)
{
    const uint64_t in = atomic_load_explicit(&c->in, memory_order_seq_cst);

    while (!is_issued(c, in) && hed_now_ns() < end)
        if (!issue_here(c, in))
            wait_for_record(c, in, (int64_t)HED_NS_PER_MS);
    return is_issued(c, in);
}

/* ---- adding a record ------------------------------------------------------------------------- */

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
    list[0] = HED_PARAM_BUFFER_POINTER;
    list[1] = data;
    list[2] = HED_PARAM_BUFFER_SIZE;
    list[3] = size;
    list[4] = HED_PARAM_END;
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

/* Finds room for a record, behind the last one or at the start of the ring. NULL: it is full. */
static struct hed_record *
reserve_locked(struct hed_record_client *c, size_t size)
{
    /* Acquire: pairs with issue_one, which has finished with the bytes before `head`. */
    const uint64_t head = atomic_load_explicit(&c->head, memory_order_acquire);
    const uint64_t offset = c->tail % HED_RECORD_RING;
    const uint64_t rest = HED_RECORD_RING - offset;
    const bool restart = rest < size || (head == c->tail && offset >= RESTART && size <= offset);
    const uint64_t out = atomic_load_explicit(&c->out, memory_order_relaxed);

    if (c->tail - head + size + (restart ? rest : 0) > HED_RECORD_RING ||
        atomic_load_explicit(&c->in, memory_order_relaxed) - out >= c->engine->queue)
        return NULL;
    if (restart) {
        struct hed_record *skip = (struct hed_record *)(c->ring + offset);

        skip->size = (uint32_t)rest;
        skip->id = 0;
        c->tail += rest;
    }
    return (struct hed_record *)(c->ring + c->tail % HED_RECORD_RING);
}

static bool
start_queue_locked(struct hed_record_client *c)
{
    if (!c->ring)
        c->ring = aligned_alloc(64, HED_RECORD_RING);
    if (c->ring && !c->started)
        c->started = hed_record_start(c);
    return c->ring && c->started;
}

/* Tries once to add a record. If the ring is full, *full is the number of the record that must be
 * issued first; otherwise it is 0. */
static enum hed_record_push
push_locked(struct hed_record_client *c, const struct hed_record_candidate *t, uint64_t *full)
{
    struct hed_recorder *r = c->engine;
    struct hed_record_kind *k;
    struct hed_record *s;
    size_t size;

    *full = 0;
    if (c->epoch != atomic_load_explicit(&r->epoch, memory_order_acquire))
        hed_record_forget_all_locked(c);
    k = hed_record_find_kind_locked(c, t->kind);
    if (!k)
        return HED_PUSH_UNKNOWN;
    if (!t->swapped && !hed_record_known_locked(c, t->stream, t->context))
        return HED_PUSH_UNKNOWN;
    if (t->touches && !hed_record_known_locked(c, t->touches, t->context))
        return HED_PUSH_UNKNOWN;
    size = record_size(t, k);
    if (size > HED_RECORD_MAX || !params_are_there(t, k->layout) || !start_queue_locked(c))
        return HED_PUSH_CANNOT;

    const uint64_t number = atomic_load_explicit(&c->in, memory_order_relaxed) + 1;

    s = reserve_locked(c, size);
    if (!s) {
        const uint64_t in = number - 1;
        const uint64_t out = atomic_load_explicit(&c->out, memory_order_relaxed);

        /* Wait for a quarter of the queue, so that the thread is not woken for every record. The
         * number must exist: the queue may be empty by now. */
        *full = out < in ? out + 1 + (in - out - 1) / 4 : in;
        return HED_PUSH_CANNOT;
    }
    s->size = (uint32_t)size;
    s->id = t->id;
    s->context = t->context;
    s->gpu = t->gpu;
    s->tag = hed_record_thread()->tag;
    fill_call(s, t, k);
    c->tail += size;
    if (t->gpu) {
        hed_gate_queue(t->gpu);
        atomic_store_explicit(&c->gpu, t->gpu, memory_order_relaxed);
    }
    hed_record_touch_locked(c, t->stream, number);
    if (t->touches)
        hed_record_touch_locked(c, t->touches, number);
    if (t->frees)
        hed_record_touch_locked(c, t->frees, number);
    /* Sequentially consistent: the record is complete; pairs with sleep_until_woken. */
    (void)atomic_exchange_explicit(&c->in, number, memory_order_seq_cst);
    return HED_PUSH_TAKEN;
}

enum hed_record_push
hed_record_push(struct hed_record_client *c, const struct hed_record_candidate *t)
{
    enum hed_record_push done;
    uint64_t full;

    for (;;) {
        hed_lock_brief(&c->lock);
        done = push_locked(c, t, &full);
        hed_unlock_brief(&c->lock);
        if (!full)
            break;
        /* The program waits, as it does when a GPU's own queue is full. The thread counts as
         * waiting for the GPU, because a batch that is larger than the queue would never be
         * complete. */
        struct hed_gate *g = c->engine->sched ? hed_gate_current(c->engine->sched) : NULL;

        hed_nvtx_push("heddle: wait for room in the queue");
        if (g)
            hed_gate_sync_begin(g);
        while (!is_issued(c, full))
            wait_for_record(c, full, -1);
        if (g)
            hed_gate_sync_end(g);
        hed_nvtx_pop();
    }
    if (done != HED_PUSH_TAKEN)
        return done;
    if (atomic_load_explicit(&c->role, memory_order_seq_cst) == 0)
        wake_issuer(c);
    if (t->gpu)
        hed_gate_queued(t->gpu);
    return done;
}
