/* Keeps calls out. See hold.h. */
#include "move/session/hold.h"

#include <limits.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/futex.h"

static _Thread_local struct hed_hold_thread *own_thread;
static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;

static void
give_hold_thread(void *arg)
{
    struct hed_hold_thread *s = arg;

    own_thread = NULL;
    hed_lock(&s->hold->lock);
    s->taken = false;
    hed_unlock(&s->hold->lock);
}

static void
make_thread_key(void)
{
    (void)pthread_key_create(&thread_key, give_hold_thread);
}

void
hed_hold_init(struct hed_hold *h)
{
    hed_lock_init(&h->lock, HED_RANK_HOLD);
    h->fences = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0;
}

static struct hed_hold_thread *
take_hold_thread(struct hed_hold *h)
{
    struct hed_hold_thread *s;

    (void)pthread_once(&thread_once, make_thread_key);
    hed_lock(&h->lock);
    for (s = h->threads; s && s->taken; s = s->next)
        continue;
    if (!s && (s = calloc(1, sizeof *s))) {
        s->hold = h;
        s->next = h->threads;
        h->threads = s;
    }
    if (s)
        s->taken = true;
    hed_unlock(&h->lock);
    if (s) {
        own_thread = s;
        (void)pthread_setspecific(thread_key, s);
    }
    return s;
}

/* A thread that is not inside any more tells the holder. */
static void
step_out(struct hed_hold *h, struct hed_hold_thread *s)
{
    /* Release: pairs with the acquire in find_inside(); what the call did is visible to the
     * holder. */
    atomic_store_explicit(&s->inside, 0, memory_order_release);
    if (h->fences)
        atomic_thread_fence(memory_order_seq_cst);
    atomic_signal_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&h->closed, memory_order_relaxed) == 0)
        return;
    atomic_fetch_add_explicit(&h->left, 1, memory_order_release);
    (void)hed_futex_wake_private(&h->left, INT_MAX);
}

static void
wait_outside(struct hed_hold *h, struct hed_hold_thread *s)
{
    do {
        step_out(h, s);
        while (atomic_load_explicit(&h->closed, memory_order_acquire) != 0)
            (void)hed_futex_wait_private(&h->closed, 1, -1);
        atomic_store_explicit(&s->inside, 1, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst);
    } while (atomic_load_explicit(&h->closed, memory_order_relaxed) != 0);
}

struct hed_hold_thread *
hed_hold_enter(struct hed_hold *h, int call)
{
    struct hed_hold_thread *s =
        own_thread && own_thread->hold == h ? own_thread : take_hold_thread(h);

    if (!s)
        return NULL;

    /* Relaxed, all: only this thread writes its record. The holder's membarrier() stands for the
     * fence between the store and the load; see invariant 2. */
    const uint32_t inside = atomic_load_explicit(&s->inside, memory_order_relaxed);

    atomic_store_explicit(&s->inside, inside + 1, memory_order_relaxed);
    atomic_store_explicit(&s->call, call, memory_order_relaxed);
    if (h->fences)
        atomic_thread_fence(memory_order_seq_cst);
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&h->closed, memory_order_acquire) != 0, 0) &&
        inside == 0)
        wait_outside(h, s);
    return s;
}

void
hed_hold_leave(struct hed_hold_thread *s)
{
    const uint32_t inside = atomic_load_explicit(&s->inside, memory_order_relaxed);

    if (inside > 1) /* relaxed: only this thread writes it */
        atomic_store_explicit(&s->inside, inside - 1, memory_order_relaxed);
    else
        step_out(s->hold, s);
}

/* The record of a thread other than the holder that is inside; NULL if there is none. */
static struct hed_hold_thread *
find_inside(struct hed_hold *h)
{
    struct hed_hold_thread *s;

    hed_lock(&h->lock);
    for (s = h->threads; s; s = s->next) /* acquire: pairs with step_out() */
        if (s != own_thread && atomic_load_explicit(&s->inside, memory_order_acquire) != 0)
            break;
    hed_unlock(&h->lock);
    return s;
}

int
hed_hold_close(struct hed_hold *h, int deadline_ms, int *call)
{
    const uint64_t end = hed_now_ns() + (uint64_t)deadline_ms * HED_NS_PER_MS;
    struct hed_hold_thread *s;

    atomic_store_explicit(&h->closed, 1, memory_order_seq_cst);
    atomic_thread_fence(memory_order_seq_cst);
    if (!h->fences)
        (void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    for (;;) {
        const uint32_t seen = atomic_load_explicit(&h->left, memory_order_acquire);
        const uint64_t now = hed_now_ns();

        s = find_inside(h);
        if (!s)
            return 0;
        if (now >= end)
            break;
        (void)hed_futex_wait_private(&h->left, seen, (int64_t)(end - now));
    }
    *call = atomic_load_explicit(&s->call, memory_order_relaxed);
    hed_hold_open(h);
    return HED_ETIME;
}

void
hed_hold_open(struct hed_hold *h)
{
    /* Release: pairs with the acquire in wait_outside(); what the holder did is visible. */
    atomic_store_explicit(&h->closed, 0, memory_order_release);
    (void)hed_futex_wake_private(&h->closed, INT_MAX);
}
