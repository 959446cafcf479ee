/* Order between queues. A record must come after every queued record that uses the same stream or
 * event, and after the earlier records of its own thread.
 *
 * Within a client, a record goes to the queue that still holds work on its stream, and otherwise to
 * the queue of its thread. Barriers in that queue wait for the other queues, so no thread of the
 * program waits. A thread waits only for the queues of other clients.
 *
 * Each queue has counters for the handles that it touches. Several handles share a counter, so a
 * record may wait for more records than necessary, but never for too few.
 */
#include "share/record/engine.h"

#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)

static _Atomic uint64_t *
counter_of(const struct hed_record_queue *q, uint64_t handle)
{
    return (_Atomic uint64_t *)&q->last[hed_record_mix(1, handle) >> 32 & (HED_RECORD_TOUCHED - 1)];
}

/* Relaxed: a thread that must see the number learns of the call in another way, which orders this
 * write as well. */
void
hed_record_touch_locked(struct hed_record_queue *q, uint64_t handle, uint64_t number)
{
    if (hed_record_is_default(handle))
        atomic_store_explicit(&q->last_default, number, memory_order_relaxed);
    else
        atomic_store_explicit(counter_of(q, handle), number, memory_order_relaxed);
}

/* The last record of q that work on the handle comes after. The default stream waits for all other
 * streams, and they wait for it. Non-blocking streams do not, but are not told apart. */
static uint64_t
last_touching(const struct hed_record_queue *q, uint64_t handle)
{
    if (hed_record_is_default(handle))
        return GET(q->in);

    const uint64_t own = GET(*counter_of(q, handle));
    const uint64_t all = GET(q->last_default);

    return own > all ? own : all;
}

static uint64_t
last_touching_any(const struct hed_record_queue *q, const uint64_t *handles, unsigned count)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < count; i++) {
        const uint64_t last = last_touching(q, handles[i]);

        number = last > number ? last : number;
    }
    return number;
}

/* Whether that record is still queued. 0 is none: another queue's words are not read for it. */
static bool
is_pending(const struct hed_record_queue *q, uint64_t number)
{
    return number && !hed_record_is_issued(q, number);
}

/* The last record of q on that very stream. */
static uint64_t
last_on_stream(const struct hed_record_queue *q, uint64_t stream)
{
    return hed_record_is_default(stream) ? GET(q->in) : GET(*counter_of(q, stream));
}

/* Chooses among several queues. While work on the default stream is queued, everything goes to its
 * queue, because that work would otherwise need barriers on both sides. */
static struct hed_record_queue *
choose_queue(const struct hed_record_client *c, uint32_t count, uint64_t stream,
             struct hed_record_queue *mine)
{
    struct hed_record_queue *chosen = is_pending(mine, last_on_stream(mine, stream)) ? mine : NULL;

    for (uint32_t i = 0; i < count; i++) {
        struct hed_record_queue *q = c->queues[i];

        if (is_pending(q, GET(q->last_default)))
            return q;
        if (!chosen && is_pending(q, last_on_stream(q, stream)))
            chosen = q;
    }
    return chosen ? chosen : mine;
}

void
hed_record_choose(struct hed_record_client *c, const struct hed_record_candidate *t,
                  struct hed_record_route *out)
{
    const struct hed_record_thread *me = hed_record_thread();
    const uint64_t touched[] = {t->stream, t->touches};
    /* Acquire: pairs with the release in add_queue_locked, so that the queues are complete. */
    const uint32_t count = atomic_load_explicit(&c->count, memory_order_acquire);

    out->queue = choose_queue(c, count, t->stream, out->queue);
    for (uint32_t i = 0; i < count; i++) {
        struct hed_record_queue *q = c->queues[i];
        uint64_t number = last_touching_any(q, touched, t->touches ? 2 : 1);

        if (q == me->last && me->number > number)
            number = me->number;
        if (q != out->queue && is_pending(q, number))
            out->after[out->count++] = (struct hed_record_barrier){q, number};
    }
}

bool
hed_record_has(const struct hed_record_client *c, uint64_t handle, bool everything)
{
    /* Acquire: see hed_record_choose. */
    const uint32_t count = atomic_load_explicit(&c->count, memory_order_acquire);
    bool found = false;

    for (uint32_t i = 0; !found && i < count; i++) {
        const struct hed_record_queue *q = c->queues[i];

        found = is_pending(q, everything ? GET(q->in) : last_touching(q, handle));
    }
    return found;
}

void
hed_record_wait_client(struct hed_record_client *c, const uint64_t *handles, unsigned count,
                       bool all, bool mine)
{
    /* Acquire: see hed_record_choose. */
    const uint32_t queues = atomic_load_explicit(&c->count, memory_order_acquire);

    for (uint32_t i = 0; i < queues; i++) {
        struct hed_record_queue *q = c->queues[i];

        hed_record_drain(q, all ? GET(q->in) : last_touching_any(q, handles, count), mine);
    }
}

void
hed_record_wait_others(struct hed_recorder *r, const struct hed_record_client *c,
                       const uint64_t *handles, unsigned count, bool all)
{
    /* Acquire: pairs with hed_record_add_client_locked, so that the clients are complete. */
    const uint32_t clients = atomic_load_explicit(&r->count, memory_order_acquire);

    for (uint32_t i = 0; i < clients; i++)
        if (r->clients[i] != c)
            hed_record_wait_client(r->clients[i], handles, count, all, false);
}
