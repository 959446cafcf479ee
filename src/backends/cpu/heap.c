/* The heap of device code. See heap.h. */
#include "backends/cpu/heap.h"

#include <stdlib.h>

#include "backends/cpu/engine.h"
#include "base/err.h"
#include "base/log.h"

#define ROOM_FIRST 64

static char removed; /* its address marks a slot that was used and is free again */

void
hed_heap_init(struct hed_heap *h)
{
    *h = (struct hed_heap){0};
    hed_lock_init(&h->lock, HED_RANK_HEAP);
}

void
hed_heap_fini(struct hed_heap *h)
{
    for (size_t i = 0; i < h->room; i++) {
        if (h->slots[i].at != &removed)
            free(h->slots[i].at);
    }
    free(h->slots);
    hed_lock_fini(&h->lock);
}

static size_t
slot_index(const struct hed_heap *h, const void *p)
{
    return (size_t)(((uint64_t)(uintptr_t)p >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20) &
           (h->room - 1);
}

static void
put_slot_locked(struct hed_heap *h, void *p, size_t size)
{
    size_t i = slot_index(h, p);

    while (h->slots[i].at)
        i = (i + 1) & (h->room - 1);
    h->slots[i] = (struct hed_heap_slot){.at = p, .size = size};
    h->filled++;
}

/* Makes room for one more, with a quarter of the slots empty. */
static int
grow_heap_locked(struct hed_heap *h)
{
    if (h->filled * 4 < h->room * 3)
        return 0;

    struct hed_heap_slot *old = h->slots;
    const size_t old_room = h->room;
    size_t live = 0;

    for (size_t i = 0; i < old_room; i++)
        live += old[i].at && old[i].at != &removed;

    const size_t room = live * 2 >= old_room ? (old_room ? old_room * 2 : ROOM_FIRST) : old_room;
    struct hed_heap_slot *slots = calloc(room, sizeof *slots);

    if (!slots)
        return HED_ENOMEM;
    h->slots = slots;
    h->room = room;
    h->filled = 0;
    for (size_t i = 0; i < old_room; i++) {
        if (old[i].at && old[i].at != &removed)
            put_slot_locked(h, old[i].at, old[i].size);
    }
    free(old);
    return 0;
}

void *
hed_heap_take(struct hed_heap *h, size_t size, size_t limit)
{
    void *p = NULL;

    if (size == 0 || size > limit)
        return NULL;
    hed_lock(&h->lock);
    if (size <= limit - h->used && h->used <= limit && grow_heap_locked(h) == 0) {
        p = aligned_alloc(16, (size + 15) & ~(size_t)15);
        if (p) {
            put_slot_locked(h, p, size);
            h->used += size;
        }
    }
    hed_unlock(&h->lock);
    return p;
}

int
hed_heap_give(struct hed_heap *h, void *p)
{
    int err = HED_EINVAL;

    hed_lock(&h->lock);
    if (h->room) {
        for (size_t i = slot_index(h, p); h->slots[i].at; i = (i + 1) & (h->room - 1)) {
            if (h->slots[i].at == p) {
                h->used -= h->slots[i].size;
                h->slots[i].at = &removed;
                err = 0;
                break;
            }
        }
    }
    hed_unlock(&h->lock);
    if (!err)
        free(p);
    return err;
}

uint64_t
hed_rt_malloc(struct hed_ptx_strand *s, uint64_t size)
{
    const struct hed_job *job = hed_strand_of(s)->block->grid->job;

    if (!job->heap || size > SIZE_MAX)
        return 0;
    return (uint64_t)(uintptr_t)hed_heap_take(job->heap, size, job->heap_limit);
}

/* A pointer that is not malloc's is ignored, as on an H200, except for a line in the log. */
void
hed_rt_free(struct hed_ptx_strand *s, uint64_t p)
{
    const struct hed_job *job = hed_strand_of(s)->block->grid->job;

    if (p == 0)
        return;
    if (!job->heap || hed_heap_give(job->heap, (void *)(uintptr_t)p) != 0)
        hed_warn(CPU, "kernel %s frees 0x%llx, which malloc did not return", job->name,
                 (unsigned long long)p);
}
