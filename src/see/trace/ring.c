/* The ring of see/trace/ring.h. */
#include "see/trace/ring.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The producer has seen this tail. */
static void
set_tail_seen(struct hed_trace_ring *r, uint64_t tail)
{
    r->full_at = tail + r->size - r->slack;
    r->wake_at = tail + r->size / 2;
}

struct hed_trace_ring *
hed_trace_ring_create(uint64_t size, uint64_t slack, uint64_t thread)
{
    struct hed_trace_ring *r = aligned_alloc(_Alignof(struct hed_trace_ring), sizeof *r);

    if (!r)
        return NULL;
    memset(r, 0, sizeof *r);
    /* Pages that are never reached cost nothing: most threads make few calls. */
    r->data = mmap(NULL, size + slack, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (r->data == MAP_FAILED) {
        free(r);
        return NULL;
    }
    r->size = size;
    r->slack = slack;
    r->thread = thread;
    set_tail_seen(r, 0);
    return r;
}

void
hed_trace_ring_free(struct hed_trace_ring *r)
{
    if (!r)
        return;
    munmap(r->data, r->size + r->slack);
    free(r);
}

bool
hed_trace_ring_look(struct hed_trace_ring *r)
{
    /* Acquire: pairs with the consumer's release in hed_trace_ring_take, after which it no longer
     * reads what is about to be overwritten. */
    set_tail_seen(r, atomic_load_explicit(&r->tail, memory_order_acquire));
    return atomic_load_explicit(&r->head, memory_order_relaxed) <= r->full_at;
}

bool
hed_trace_ring_look_for_wake(struct hed_trace_ring *r)
{
    (void)hed_trace_ring_look(r);
    if (atomic_load_explicit(&r->head, memory_order_relaxed) <= r->wake_at)
        return false;
    /* The head cannot get there while the tail stands still. Once the ring looks full, the tail is
     * looked at again, and this is set right. */
    r->wake_at = UINT64_MAX;
    return true;
}

uint8_t *
hed_trace_ring_peek(struct hed_trace_ring *r, size_t *n)
{
    const uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    /* Acquire: pairs with the producer's release in hed_trace_ring_commit. */
    const uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);

    if (head == tail)
        return NULL;

    const uint64_t at = tail % r->size;
    /* The producer cannot finish a second lap before this one is taken, so lap_end is this lap's.
     */
    const uint64_t end = head / r->size == tail / r->size
                             ? head % r->size
                             : atomic_load_explicit(&r->lap_end, memory_order_relaxed);

    *n = (size_t)(end - at);
    return r->data + at;
}

void
hed_trace_ring_take(struct hed_trace_ring *r, size_t n)
{
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    const uint64_t at = tail % r->size;

    tail += at + n >= r->size ? r->size - at : n;
    /* Release: pairs with the acquire in hed_trace_ring_look. */
    atomic_store_explicit(&r->tail, tail, memory_order_release);
}
