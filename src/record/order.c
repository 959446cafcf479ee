/* Order between the clients of a process: a call that uses a stream or an event waits first for the
 * work that other clients have queued on it. Each queue has counters for the handles that it
 * touches. Several handles share a counter, so a call may wait for more records than necessary, but
 * never for too few. */
#include "record/engine.h"

#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)

static _Atomic uint64_t *
counter_of(const struct hed_record_client *c, uint64_t handle)
{
    return (_Atomic uint64_t *)&c->last[hed_record_mix(1, handle) >> 32 & (HED_RECORD_TOUCHED - 1)];
}

/* Relaxed: a thread that must see the number learns of the call in another way, which orders this
 * write as well. */
void
hed_record_touch_locked(struct hed_record_client *c, uint64_t handle, uint64_t number)
{
    if (hed_record_is_default(handle))
        atomic_store_explicit(&c->last_default, number, memory_order_relaxed);
    else
        atomic_store_explicit(counter_of(c, handle), number, memory_order_relaxed);
}

/* The last record of c that work on the handle comes after. The default stream waits for all other
 * streams, and they wait for it. Non-blocking streams do not, but are not told apart. */
static uint64_t
last_touching(const struct hed_record_client *c, uint64_t handle)
{
    if (hed_record_is_default(handle))
        return GET(c->in);

    const uint64_t own = GET(*counter_of(c, handle));
    const uint64_t all = GET(c->last_default);

    return own > all ? own : all;
}

bool
hed_record_has(const struct hed_record_client *c, uint64_t handle, bool everything)
{
    return (everything ? GET(c->in) : last_touching(c, handle)) >
           atomic_load_explicit(&c->out, memory_order_acquire);
}

void
hed_record_wait_others(struct hed_recorder *r, const struct hed_record_client *c,
                       const uint64_t *handles, unsigned count, bool all)
{
    /* Acquire: pairs with the release in add_client_locked, so that the clients are complete. */
    const uint32_t clients = atomic_load_explicit(&r->count, memory_order_acquire);

    for (uint32_t i = 0; i < clients; i++) {
        struct hed_record_client *o = r->clients[i];
        uint64_t number = all ? GET(o->in) : 0;

        for (unsigned k = 0; !all && k < count; k++) {
            const uint64_t last = last_touching(o, handles[k]);

            number = last > number ? last : number;
        }
        if (o != c)
            hed_record_drain(o, number, false);
    }
}
