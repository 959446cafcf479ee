/* A client's queue: records go into a ring, and out of it in the same order, to the next layer. */
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

#define SPINS 400           /* looks for more before the issuing thread sleeps: some microseconds */
#define RESTART (64u << 10) /* an empty ring begins anew from there on: it stays in the cache */
#define ALIGN 32u

/* Below, what is written before somebody is looked for is written by an exchange: a plain store may
 * be passed by the look that follows where this is ARM code that is emulated on another processor
 * (QEMU on x86-64), and a wake-up would be lost. It costs the same. */

/* ---- issuing --------------------------------------------------------------------------------- */

static void
set_current(const struct hed_recorder *r, CUcontext context)
{
    struct hed_cuCtxSetCurrent a = {context};

    (void)r->next->cuda->cuCtxSetCurrent(r->next, &a);
}

/* The first error is kept for the program, all go to the log. What has failed once may fail again:
 * nothing is known to be good any more. */
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

/* What is current in a thread that issues. A context that has ended may come back under the same
 * address, and is not current then. */
struct place {
    CUcontext context;
    uint32_t epoch;
};

static void
go_to(const struct hed_recorder *r, struct place *p, CUcontext context)
{
    const uint32_t epoch = atomic_load_explicit(&r->epoch, memory_order_acquire);

    if (p->context == context && p->epoch == epoch)
        return;
    set_current(r, context);
    *p = (struct place){context, epoch};
}

/* Issues the oldest record. The role is ours. */
static void
issue_one(struct hed_record_client *c, struct place *place)
{
    const struct hed_recorder *r = c->engine;
    uint64_t head = atomic_load_explicit(&c->head, memory_order_relaxed);
    struct hed_record *s = (struct hed_record *)(c->ring + head % HED_RECORD_RING);

    if (s->id == 0) {
        head += s->size;
        s = (struct hed_record *)(c->ring + head % HED_RECORD_RING);
    }
    go_to(r, place, s->context);
    if (s->gpu)
        hed_gate_unqueue(s->gpu);

    hed_record_thread()->issuing = s->tag;

    const CUresult result = hed_cuda_invoke(r->next, s->id, s + 1);

    hed_record_thread()->issuing = 0;
    if (result != CUDA_SUCCESS)
        keep_error(c, s->id, result);
    /* Release: pairs with the acquire of who wants room. */
    atomic_store_explicit(&c->head, head + s->size, memory_order_release);

    const uint64_t out = atomic_load_explicit(&c->out, memory_order_relaxed) + 1;

    /* Sequentially consistent, both: against wait_for, of which one sees the other. */
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
    /* `in` sequentially consistent: pairs with the store in push, against `sleeping`, too. */
    return atomic_load_explicit(&c->in, memory_order_seq_cst) !=
           atomic_load_explicit(&c->out, memory_order_relaxed);
}

static bool
take_role(struct hed_record_client *c)
{
    uint32_t nobody = 0;

    /* Acquire: pairs with the release of whoever had it. */
    return atomic_load_explicit(&c->role, memory_order_relaxed) == 0 &&
           atomic_compare_exchange_strong_explicit(&c->role, &nobody, 1, memory_order_seq_cst,
                                                   memory_order_relaxed);
}

static void
wake_issuer(struct hed_record_client *c)
{
    /* Sequentially consistent: against sleep_until_woken. */
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

/* Issues as long as there is something, up to that number. The role is ours. */
static void
issue_until(struct hed_record_client *c, uint64_t number, struct place *place)
{
    struct hed_record_thread *me = hed_record_thread();

    me->inside++;
    hed_nvtx_push("heddle: submit");
    while (atomic_load_explicit(&c->out, memory_order_relaxed) < number &&
           /* Acquire: pairs with the store in push, so that the record is seen complete. */
           atomic_load_explicit(&c->in, memory_order_acquire) >
               atomic_load_explicit(&c->out, memory_order_relaxed))
        issue_one(c, place);
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
    /* Sequentially consistent: of this and the look, and of push and wake_issuer, one sees the
     * other. */
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
    struct place place = {0};

    hed_record_thread()->inside = 1;
    if (c->engine->sched)
        hed_sched_set_client(c->engine->sched, c->text);
    while (has_records(c) || !atomic_load_explicit(&c->engine->stop, memory_order_seq_cst)) {
        if (!has_records(c) || !take_role(c)) {
            sleep_until_woken(c);
            continue;
        }
        issue_until(c, UINT64_MAX, &place);
        give_role(c);
    }
    return NULL;
}

bool
hed_record_start(struct hed_record_client *c)
{
    sigset_t all;
    sigset_t old;

    /* The program's signals are for its own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);

    const int err = pthread_create(&c->thread, NULL, issuer_main, c);

    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (err)
        hed_warn(SCHED, "there is no thread to issue calls: nothing is recorded");
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
is_out(const struct hed_record_client *c, uint64_t number)
{
    /* Sequentially consistent: as in issue_one. */
    return atomic_load_explicit(&c->out, memory_order_seq_cst) >= number;
}

static void
wait_for(struct hed_record_client *c, uint64_t number, int64_t ns)
{
    const uint32_t progress = atomic_load_explicit(&c->progress, memory_order_seq_cst);
    uint64_t at = atomic_load_explicit(&c->wake_at, memory_order_seq_cst);

    while (at > number && !atomic_compare_exchange_weak_explicit(
                              &c->wake_at, &at, number, memory_order_seq_cst, memory_order_seq_cst))
        ;
    if (!is_out(c, number))
        (void)hed_futex_wait_private(&c->progress, progress, ns);
}

/* Does the issuing thread's work, up to that number, in this thread. False: somebody else does. */
static bool
issue_here(struct hed_record_client *c, uint64_t number)
{
    CUcontext before;
    struct place place;
    int cancel;

    if (!take_role(c))
        return false;
    /* A thread that ended here would take the role with it. */
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    before = hed_current_context(c->engine->next);
    place = (struct place){before, atomic_load_explicit(&c->engine->epoch, memory_order_acquire)};
    issue_until(c, number, &place);
    if (place.context != before)
        set_current(c->engine, before);
    give_role(c);
    (void)pthread_setcancelstate(cancel, NULL);
    return true;
}

/* Another client's work. What it is held for may be this very client's turn: it goes on, then. */
static void
wait_for_other(struct hed_record_client *c, uint64_t number)
{
    struct hed_gate *g = atomic_load_explicit(&c->gpu, memory_order_relaxed);

    if (g)
        hed_gate_release(g);
    /* One that was on its way to the gate was not counted: once more, then. */
    wait_for(c, number, g ? (int64_t)HED_NS_PER_MS : -1);
}

void
hed_record_drain(struct hed_record_client *c, uint64_t number, bool mine)
{
    const bool helps = mine && !(c->engine->defer & HED_RECORD_ASIDE);
    struct hed_gate *g;

    if (is_out(c, number))
        return;
    g = c->engine->sched && mine ? hed_gate_current(c->engine->sched) : NULL;
    if (g)
        hed_gate_sync_begin(g);
    hed_nvtx_push("heddle: wait for queued work");
    while (!is_out(c, number))
        if (!mine)
            wait_for_other(c, number);
        else if (!helps || !issue_here(c, number))
            wait_for(c, number, -1);
    hed_nvtx_pop();
    if (g)
        hed_gate_sync_end(g);
}

bool
hed_record_settle(struct hed_record_client *c, uint64_t end)
{
    const uint64_t in = atomic_load_explicit(&c->in, memory_order_seq_cst);

    while (!is_out(c, in) && hed_now_ns() < end)
        if (!issue_here(c, in))
            wait_for(c, in, (int64_t)HED_NS_PER_MS);
    return is_out(c, in);
}

/* ---- taking ---------------------------------------------------------------------------------- */

static size_t
attributes_size(const CUlaunchConfig *config)
{
    return hed_round_up(sizeof *config, 16) +
           hed_round_up(config->numAttrs * sizeof *config->attrs, 16);
}

/* Bytes of a record. */
static size_t
size_of(const struct hed_record_candidate *t, const struct hed_record_kind *k)
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

/* Arguments in one piece: the list that names it, and the piece. */
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
fill(struct hed_record *s, const struct hed_record_candidate *t, const struct hed_record_kind *k)
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
        memset(args + t->params_at, 0, sizeof(void *)); /* the program's list may be gone */
    if (t->packed) {
        copy_packed(at, args, t);
    } else if (t->data) {
        memcpy(at, t->data, t->size);
        memcpy(args + t->data_at, &at, sizeof at);
    }
}

/* The kernel's arguments are where they should be. */
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

/* Room for so many bytes, behind what is there or at the beginning of the ring. NULL: not now. */
static struct hed_record *
reserve_locked(struct hed_record_client *c, size_t size)
{
    /* Acquire: pairs with the release in issue_one: nobody looks at those bytes any more. */
    const uint64_t head = atomic_load_explicit(&c->head, memory_order_acquire);
    const uint64_t offset = c->tail % HED_RECORD_RING;
    const uint64_t rest = HED_RECORD_RING - offset;
    const bool anew = rest < size || (head == c->tail && offset >= RESTART && size <= offset);
    const uint64_t out = atomic_load_explicit(&c->out, memory_order_relaxed);

    if (c->tail - head + size + (anew ? rest : 0) > HED_RECORD_RING ||
        atomic_load_explicit(&c->in, memory_order_relaxed) - out >= c->engine->queue)
        return NULL;
    if (anew) {
        struct hed_record *skip = (struct hed_record *)(c->ring + offset);

        skip->size = (uint32_t)rest;
        skip->id = 0;
        c->tail += rest;
    }
    return (struct hed_record *)(c->ring + c->tail % HED_RECORD_RING);
}

static bool
prepare_locked(struct hed_record_client *c)
{
    if (!c->ring)
        c->ring = aligned_alloc(64, HED_RECORD_RING);
    if (c->ring && !c->started)
        c->started = hed_record_start(c);
    return c->ring && c->started;
}

/* One attempt; the record that has to be issued first is in *full, where the ring is. */
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
    size = size_of(t, k);
    if (size > HED_RECORD_MAX || !params_are_there(t, k->layout) || !prepare_locked(c))
        return HED_PUSH_CANNOT;

    const uint64_t number = atomic_load_explicit(&c->in, memory_order_relaxed) + 1;

    s = reserve_locked(c, size);
    if (!s) {
        const uint64_t in = number - 1;
        const uint64_t out = atomic_load_explicit(&c->out, memory_order_relaxed);

        /* Some at once, so that it is not woken for each; none that is not there: the queue may be
         * empty by now. */
        *full = out < in ? out + 1 + (in - out - 1) / 4 : in;
        return HED_PUSH_CANNOT;
    }
    s->size = (uint32_t)size;
    s->id = t->id;
    s->context = t->context;
    s->gpu = t->gpu;
    s->tag = hed_record_thread()->tag;
    fill(s, t, k);
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
    /* Sequentially consistent: the record is complete, and see sleep_until_woken. */
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
        /* The queue's ceiling: the program waits, as it does where a GPU's queue is full. A batch
         * that is larger than the queue would never be full. */
        struct hed_gate *g = c->engine->sched ? hed_gate_current(c->engine->sched) : NULL;

        hed_nvtx_push("heddle: wait for room in the queue");
        if (g)
            hed_gate_sync_begin(g);
        while (!is_out(c, full))
            wait_for(c, full, -1);
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
