/* A queue: its records go to the next layer in order, and threads wait for that. push.c adds
 * records. */
#include <limits.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/log.h"
#include "base/relax.h"
#include "base/thread.h"
#include "core/errors.h"
#include "core/nvtx.h"
#include "share/record/engine.h"

#define SPINS 400 /* polls before the issuing thread sleeps: some microseconds */

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
keep_error(struct hed_record_queue *q, uint32_t id, CUresult result)
{
    uint32_t none = 0;
    const char *name = NULL;

    (void)hed_cuda_error_name(result, &name);
    atomic_compare_exchange_strong_explicit(&q->client->error, &none, (uint32_t)result,
                                            memory_order_relaxed, memory_order_relaxed);
    atomic_fetch_add_explicit(&q->engine->epoch, 1, memory_order_release);
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

/* The oldest record, and where it begins. There is one, and the calling thread has the role. */
static struct hed_record *
oldest_record(const struct hed_record_queue *q, uint64_t *head)
{
    struct hed_record *s;

    *head = atomic_load_explicit(&q->head, memory_order_relaxed);
    s = (struct hed_record *)(q->ring + *head % HED_RECORD_RING);
    if (s->id == HED_RECORD_SKIP) {
        *head += s->size;
        s = (struct hed_record *)(q->ring + *head % HED_RECORD_RING);
    }
    return s;
}

/* Whether the oldest record is a barrier that still has to wait. */
static bool
is_at_barrier(const struct hed_record_queue *q)
{
    uint64_t head;
    const struct hed_record *s = oldest_record(q, &head);
    const struct hed_record_barrier *b = (const struct hed_record_barrier *)(s + 1);

    return s->id == HED_RECORD_BARRIER && !hed_record_is_issued(b->queue, b->number);
}

static void
wait_for_barrier(const struct hed_record_barrier *b)
{
    for (int i = 0; i < SPINS && !hed_record_is_issued(b->queue, b->number); i++)
        hed_relax();
    while (!hed_record_is_issued(b->queue, b->number))
        hed_record_wait(b->queue, b->number, -1);
}

static void
issue_call(struct hed_record_queue *q, const struct hed_record *s, struct current *now)
{
    const struct hed_recorder *r = q->engine;
    struct hed_record_thread *me = hed_record_thread();

    make_current(r, now, s->context);
    if (s->gpu)
        hed_gate_unqueue(s->gpu);
    me->issuing = s->tag;

    const CUresult result = hed_cuda_invoke(r->next, s->id, (void *)(s + 1));

    me->issuing = 0;
    if (result != CUDA_SUCCESS)
        keep_error(q, s->id, result);
}

/* Issues the oldest record. The calling thread has the role. */
static void
issue_one(struct hed_record_queue *q, struct current *now)
{
    uint64_t head;
    const struct hed_record *s = oldest_record(q, &head);

    if (s->id == HED_RECORD_BARRIER)
        wait_for_barrier((const struct hed_record_barrier *)(s + 1));
    else
        issue_call(q, s, now);
    /* Release: pairs with the acquire in reserve_locked. */
    atomic_store_explicit(&q->head, head + s->size, memory_order_release);

    const uint64_t out = atomic_load_explicit(&q->out, memory_order_relaxed) + 1;

    /* Both sequentially consistent: either this thread or hed_record_wait sees the other's
     * write. */
    (void)atomic_exchange_explicit(&q->out, out, memory_order_seq_cst);
    if (atomic_load_explicit(&q->wake_at, memory_order_seq_cst) <= out) {
        atomic_store_explicit(&q->wake_at, UINT64_MAX, memory_order_seq_cst);
        atomic_fetch_add_explicit(&q->progress, 1, memory_order_seq_cst);
        (void)hed_futex_wake_private(&q->progress, INT_MAX);
    }
}

static bool
has_records(const struct hed_record_queue *q)
{
    /* `in` sequentially consistent: pairs with commit_locked, and is ordered with `sleeping`. */
    return atomic_load_explicit(&q->in, memory_order_seq_cst) !=
           atomic_load_explicit(&q->out, memory_order_relaxed);
}

static bool
take_role(struct hed_record_queue *q)
{
    uint32_t free_role = 0;

    /* Acquire: pairs with give_role. */
    return atomic_load_explicit(&q->role, memory_order_relaxed) == 0 &&
           atomic_compare_exchange_strong_explicit(&q->role, &free_role, 1, memory_order_seq_cst,
                                                   memory_order_relaxed);
}

void
hed_record_wake_issuer(struct hed_record_queue *q)
{
    atomic_store_explicit(&q->sleeping, 0, memory_order_seq_cst);
    atomic_fetch_add_explicit(&q->wake, 1, memory_order_seq_cst);
    (void)hed_futex_wake_private(&q->wake, 1);
}

static void
give_role(struct hed_record_queue *q)
{
    (void)atomic_exchange_explicit(&q->role, 0, memory_order_seq_cst);
    if (has_records(q))
        hed_record_wake(q);
}

/* Issues the queued records, up to that number, or to a barrier that still has to wait if the
 * thread is not `patient`. The calling thread has the role. */
static void
issue_until(struct hed_record_queue *q, uint64_t number, bool patient, struct current *now)
{
    struct hed_record_thread *me = hed_record_thread();

    me->inside++;
    hed_nvtx_push("heddle: submit");
    while (atomic_load_explicit(&q->out, memory_order_relaxed) < number &&
           /* Acquire: pairs with commit_locked, so that the record is complete. */
           atomic_load_explicit(&q->in, memory_order_acquire) >
               atomic_load_explicit(&q->out, memory_order_relaxed) &&
           (patient || !is_at_barrier(q)))
        issue_one(q, now);
    hed_nvtx_pop();
    me->inside--;
}

/* ---- the issuing thread ---------------------------------------------------------------------- */

static void
sleep_until_woken(struct hed_record_queue *q)
{
    const uint32_t wake = atomic_load_explicit(&q->wake, memory_order_seq_cst);

    for (int i = 0; i < SPINS; i++) {
        if (has_records(q) && atomic_load_explicit(&q->role, memory_order_relaxed) == 0)
            return;
        hed_relax();
    }
    /* Sequentially consistent: either this thread sees the new record, or the thread that pushes it
     * sees that this one sleeps. */
    (void)atomic_exchange_explicit(&q->sleeping, 1, memory_order_seq_cst);
    if ((!has_records(q) || atomic_load_explicit(&q->role, memory_order_seq_cst) != 0) &&
        !atomic_load_explicit(&q->engine->stop, memory_order_seq_cst))
        (void)hed_futex_wait_private(&q->wake, wake, -1);
    atomic_store_explicit(&q->sleeping, 0, memory_order_seq_cst);
}

static void *
issuer_main(void *arg)
{
    struct hed_record_queue *q = arg;
    const struct hed_recorder *r = q->engine;
    struct current now = {0};

    hed_record_thread()->inside = 1;
    if (r->sched)
        hed_sched_set_client(r->sched, q->client->text);
    while (has_records(q) || !atomic_load_explicit(&r->stop, memory_order_seq_cst)) {
        if (!has_records(q) || !take_role(q)) {
            sleep_until_woken(q);
            continue;
        }
        issue_until(q, UINT64_MAX, true, &now);
        give_role(q);
    }
    return NULL;
}

bool
hed_record_start(struct hed_record_queue *q)
{
    const int err = hed_thread_start(NULL, issuer_main, q, &q->thread);

    if (err)
        hed_warn(SCHED, "cannot start the thread that issues queued calls: calls are not deferred");
    return err == 0;
}

void
hed_record_stop(struct hed_record_queue *q)
{
    if (!q->started)
        return;
    atomic_fetch_add_explicit(&q->wake, 1, memory_order_seq_cst);
    (void)hed_futex_wake_private(&q->wake, 1);
    (void)pthread_join(q->thread, NULL);
}

/* ---- waiting --------------------------------------------------------------------------------- */

bool
hed_record_is_issued(const struct hed_record_queue *q, uint64_t number)
{
    /* Sequentially consistent: see issue_one. */
    return atomic_load_explicit(&q->out, memory_order_seq_cst) >= number;
}

void
hed_record_wait(struct hed_record_queue *q, uint64_t number, int64_t ns)
{
    const uint32_t progress = atomic_load_explicit(&q->progress, memory_order_seq_cst);
    uint64_t at = atomic_load_explicit(&q->wake_at, memory_order_seq_cst);

    while (at > number && !atomic_compare_exchange_weak_explicit(
                              &q->wake_at, &at, number, memory_order_seq_cst, memory_order_seq_cst))
        ;
    if (!hed_record_is_issued(q, number))
        (void)hed_futex_wait_private(&q->progress, progress, ns);
}

/* Issues the records up to that number in this thread, like issue_until. False: another thread has
 * the role, or the queue is at a barrier. */
static bool
issue_here(struct hed_record_queue *q, uint64_t number, bool patient)
{
    const struct hed_recorder *r = q->engine;
    CUcontext before;
    struct current now;
    int cancel;

    if (!take_role(q))
        return false;
    /* A thread that was cancelled here would keep the role. */
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    before = hed_current_context(r->next);
    now = (struct current){before, atomic_load_explicit(&r->epoch, memory_order_acquire)};
    issue_until(q, number, patient, &now);
    if (now.context != before)
        set_current(r, before);
    give_role(q);
    (void)pthread_setcancelstate(cancel, NULL);
    return patient || hed_record_is_issued(q, number);
}

/* Releases the queued calls of a client: the queue that a thread waits for may be at a barrier, and
 * wait for the others. False: none of its calls passes a gate. */
static bool
release_client(struct hed_record_client *c)
{
    /* Acquire: see hed_record_choose. */
    const uint32_t count = atomic_load_explicit(&c->count, memory_order_acquire);
    struct hed_gate *last = NULL;

    for (uint32_t i = 0; i < count; i++) {
        struct hed_gate *g = atomic_load_explicit(&c->queues[i]->gpu, memory_order_relaxed);

        if (g && g != last)
            hed_gate_release(g);
        last = g ? g : last;
    }
    return last;
}

/* Waits for another client's record. That client may be held because this one has the GPU, so its
 * queued calls are released. */
static void
wait_for_other(struct hed_record_queue *q, uint64_t number)
{
    const bool released = release_client(q->client);

    /* A call that was on its way to the gate has not been counted. Release again after a while. */
    hed_record_wait(q, number, released ? (int64_t)HED_NS_PER_MS : -1);
}

void
hed_record_drain(struct hed_record_queue *q, uint64_t number, bool mine)
{
    const struct hed_recorder *r = q->engine;
    const bool helps = mine && !(r->defer & HED_RECORD_ASIDE);
    struct hed_gate *g;

    if (hed_record_is_issued(q, number))
        return;
    g = r->sched && mine ? hed_gate_current(r->sched) : NULL;
    if (g)
        hed_gate_sync_begin(g);
    hed_nvtx_push("heddle: wait for queued work");
    while (!hed_record_is_issued(q, number))
        if (!mine)
            wait_for_other(q, number);
        else if (!helps || !issue_here(q, number, true))
            hed_record_wait(q, number, -1);
    hed_nvtx_pop();
    if (g)
        hed_gate_sync_end(g);
}

bool
hed_record_settle(struct hed_record_queue *q, uint64_t end)
{
    const uint64_t in = atomic_load_explicit(&q->in, memory_order_seq_cst);

    while (!hed_record_is_issued(q, in) && hed_now_ns() < end)
        if (!issue_here(q, in, false))
            hed_record_wait(q, in, (int64_t)HED_NS_PER_MS);
    /* A thread that has issued the last call may have yet to end its NVTX range. */
    while (atomic_load_explicit(&q->role, memory_order_acquire) != 0 && hed_now_ns() < end)
        hed_sleep_ns(HED_NS_PER_MS / 100);
    return hed_record_is_issued(q, in);
}
