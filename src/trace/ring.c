/* The ring of trace/ring.h. */
#include "trace/ring.h"

#include <stdlib.h>
#include <sys/mman.h>

struct hed_trace_ring *
hed_trace_ring_create(uint64_t size, uint64_t slack, uint64_t thread)
{
    struct hed_trace_ring *r = calloc(1, sizeof *r);

    if (!r)
        return NULL;
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

uint8_t *
hed_trace_ring_reserve(struct hed_trace_ring *r)
{
    const uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

    if (head + r->slack - r->known_tail > r->size) {
        /* Acquire: pairs with the consumer's release in hed_trace_ring_take, after which it no
         * longer reads what is about to be overwritten. */
        r->known_tail = atomic_load_explicit(&r->tail, memory_order_acquire);
        if (head + r->slack - r->known_tail > r->size)
            return NULL;
    }
    return r->data + head % r->size;
}

void
hed_trace_ring_commit(struct hed_trace_ring *r, size_t size)
{
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    const uint64_t at = head % r->size;

    if (at + size >= r->size) {
        atomic_store_explicit(&r->lap_end, at + size, memory_order_relaxed);
        head += r->size - at;
    } else {
        head += size;
    }
    /* Only the producer writes it: no atomic addition is needed. */
    atomic_store_explicit(&r->records, atomic_load_explicit(&r->records, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    /* Release: the record and lap_end are there before the consumer sees the new head. */
    atomic_store_explicit(&r->head, head, memory_order_release);
}

const uint8_t *
hed_trace_ring_peek(struct hed_trace_ring *r, size_t *n)
{
    const uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    /* Acquire: pairs with the producer's release in hed_trace_ring_commit. */
    const uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);

    if (head == tail)
        return NULL;

    const uint64_t at = tail % r->size;
    /* The producer cannot finish a second lap before this one is taken, so lap_end is this lap's.
     * */
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
    /* Release: pairs with the acquire in hed_trace_ring_reserve. */
    atomic_store_explicit(&r->tail, tail, memory_order_release);
}
