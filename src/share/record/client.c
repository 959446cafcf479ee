/* The clients of a process, the queues of a client, and which of them a thread uses. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "share/record/engine.h"

_Thread_local struct hed_record_thread hed_record_this_thread;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;
static pthread_key_t exit_key; /* its value is the queue that the thread owns */

/* ---- queues ---------------------------------------------------------------------------------- */

static void
leave_queue(void *queue)
{
    struct hed_record_queue *q = queue;

    hed_record_thread()->queue = NULL;
    /* Release: pairs with the acquire in take_free_queue_locked. */
    atomic_store_explicit(&q->is_owned, false, memory_order_release);
}

static void
create_exit_key(void)
{
    if (pthread_key_create(&exit_key, leave_queue) != 0)
        hed_bug("no thread key for the recorder");
}

static struct hed_record_queue *
add_queue_locked(struct hed_record_client *c)
{
    const uint32_t count = atomic_load_explicit(&c->count, memory_order_relaxed);
    struct hed_record_queue *q = count < c->engine->queues
                                     ? aligned_alloc(_Alignof(struct hed_record_queue), sizeof *q)
                                     : NULL;

    if (!q)
        return NULL;
    memset(q, 0, sizeof *q);
    q->engine = c->engine;
    q->client = c;
    q->index = count;
    hed_lock_init(&q->lock, HED_RANK_SCHED);
    atomic_init(&q->wake_at, UINT64_MAX);
    c->queues[count] = q;
    /* Release: pairs with the acquire of every thread that walks the queues. */
    atomic_store_explicit(&c->count, count + 1, memory_order_release);
    return q;
}

/* A queue that nobody owns. The records of its last owner may still be in it. */
static struct hed_record_queue *
take_free_queue_locked(struct hed_record_client *c)
{
    const uint32_t count = atomic_load_explicit(&c->count, memory_order_relaxed);

    for (uint32_t i = 0; i < count; i++)
        if (!atomic_load_explicit(&c->queues[i]->is_owned, memory_order_acquire))
            return c->queues[i];
    return add_queue_locked(c);
}

/* A queue for the calling thread: its own, or a shared one if there are not enough. */
static struct hed_record_queue *
find_queue(struct hed_record_client *c)
{
    (void)pthread_once(&exit_once, create_exit_key);
    hed_lock(&c->lock);

    struct hed_record_queue *q = take_free_queue_locked(c);
    const bool is_own = q != NULL;
    const uint32_t count = atomic_load_explicit(&c->count, memory_order_relaxed);

    if (is_own)
        atomic_store_explicit(&q->is_owned, true, memory_order_relaxed);
    else if (count > 0)
        q = c->queues[c->sharers++ % count];
    hed_unlock(&c->lock);
    (void)pthread_setspecific(exit_key, is_own ? q : NULL);
    return q;
}

/* The thread uses this engine and client from now on. */
static void
use_client(struct hed_recorder *r, struct hed_record_client *c)
{
    struct hed_record_thread *me = hed_record_thread();
    void *owned;

    (void)pthread_once(&exit_once, create_exit_key);
    owned = pthread_getspecific(exit_key);
    /* The queues of another engine may not exist any more. */
    if (owned && me->engine == r->id)
        leave_queue(owned);
    (void)pthread_setspecific(exit_key, NULL);
    me->engine = r->id;
    me->client = c;
    me->queue = me->last = NULL;
    me->gpu_client = NULL;
}

struct hed_record_queue *
hed_record_assign_queue(struct hed_record_client *c)
{
    struct hed_record_thread *me = hed_record_thread();

    if (me->engine != c->engine->id)
        use_client(c->engine, NULL);
    me->queue = find_queue(c);
    return me->queue;
}

static void
free_queue(struct hed_record_queue *q)
{
    hed_record_forget_all(&q->known, 0);
    free(q->ring);
    hed_lock_fini(&q->lock);
    free(q);
}

/* ---- clients --------------------------------------------------------------------------------- */

struct hed_record_client *
hed_record_add_client_locked(struct hed_recorder *r, const char *name, const char *text)
{
    const uint32_t count = atomic_load_explicit(&r->count, memory_order_relaxed);
    struct hed_record_client *c = count < HED_RECORD_CLIENTS ? calloc(1, sizeof *c) : NULL;

    if (!c)
        return NULL;
    c->engine = r;
    (void)snprintf(c->name, sizeof c->name, "%s", name);
    (void)snprintf(c->text, sizeof c->text, "%s", text);
    hed_lock_init(&c->lock, HED_RANK_SCHED);
    r->clients[count] = c;
    /* Release: pairs with the acquire of every thread that walks the clients. */
    atomic_store_explicit(&r->count, count + 1, memory_order_release);
    return c;
}

void
hed_record_free_client(struct hed_record_client *c)
{
    /* A queue may be at a barrier and wait for another one: none is freed before all are empty. */
    for (uint32_t i = 0; i < c->count; i++)
        hed_record_stop(c->queues[i]);
    for (uint32_t i = 0; i < c->count; i++)
        free_queue(c->queues[i]);
    hed_record_forget_all(&c->known, 0);
    hed_lock_fini(&c->lock);
    free(c);
}

static struct hed_record_client *
find_client(struct hed_recorder *r, const char *name, const char *text)
{
    struct hed_record_client *c = NULL;

    hed_lock(&r->lock);
    for (uint32_t i = 0; !c && i < r->count; i++)
        if (strcmp(r->clients[i]->name, name) == 0)
            c = r->clients[i];
    if (!c)
        c = hed_record_add_client_locked(r, name, text);
    hed_unlock(&r->lock);
    return c;
}

void
hed_recorder_set_client(struct hed_recorder *r, const char *text, bool below)
{
    char name[HED_SCHED_NAME] = "";
    struct hed_sched_settings settings = {0};
    struct hed_record_client *c = NULL;

    /* An error in the text is logged once, by the layer sched if it is in the chain. */
    if (text && *text && hed_sched_parse_client(text, name, &settings, NULL) == 0)
        c = find_client(r, name, text);
    if (hed_record_client_of_thread(r) != (c ? c : r->clients[0]))
        use_client(r, c);
    if (below && r->sched)
        hed_sched_set_client(r->sched, text);
}

struct hed_record_client *
hed_record_client_of_thread(struct hed_recorder *r)
{
    const struct hed_record_thread *me = hed_record_thread();

    return me->engine == r->id && me->client ? me->client : r->clients[0];
}
