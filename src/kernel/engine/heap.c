/* The heap of device code. See heap.h. */
#include "kernel/engine/heap.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "kernel/engine/engine_parts.h"
#include "kernel/engine/rt.h"

#define ROOM_FIRST 64

static char removed; /* its address marks a slot that was used and is free again */

void
hed_heap_init(struct hed_heap *h, struct hed_regions *sandbox)
{
    *h = (struct hed_heap){.sandbox = sandbox};
    hed_lock_init(&h->lock, HED_RANK_HEAP);
}

/* ---- memory in the address sandbox ----------------------------------------------------------- */

static int
class_of_size(size_t size)
{
    int class = 0;

    while (class < HED_HEAP_CLASSES && (size_t)16 << class < size)
        class ++;
    return class;
}

/* Keeps an address for later; without memory for that, it is lost. */
static void
put_spare_locked(struct hed_heap_spare *s, void *p)
{
    if (s->count == s->room) {
        const size_t room = s->room ? 2 * s->room : ROOM_FIRST;
        void **at = realloc(s->at, room * sizeof *at);

        if (!at)
            return;
        s->at = at;
        s->room = room;
    }
    s->at[s->count++] = p;
}

/* Cuts a piece of the address sandbox into parts of one size. No lock is held. */
static void
cut_piece(struct hed_heap *h, int class)
{
    struct hed_region piece;

    if (hed_region_take(h->sandbox, HED_REGION_LEAST, &piece) != 0)
        return;
    hed_lock(&h->lock);
    for (size_t at = piece.size; at > 0; at -= (size_t)16 << class)
        put_spare_locked(&h->spare[class], piece.at + at - ((size_t)16 << class));
    hed_unlock(&h->lock);
}

static void *
take_from_sandbox(struct hed_heap *h, size_t size)
{
    const int class = class_of_size(size);
    struct hed_region piece;
    void *p = NULL;

    if (class == HED_HEAP_CLASSES)
        return hed_region_take(h->sandbox, size, &piece) == 0 ? piece.at : NULL;

    struct hed_heap_spare *s = &h->spare[class];

    for (int i = 0; i < 2 && !p; i++) {
        hed_lock(&h->lock);
        if (s->count)
            p = s->at[--s->count];
        hed_unlock(&h->lock);
        if (!p && i == 0)
            cut_piece(h, class);
    }
    return p;
}

static void
give_to_sandbox(struct hed_heap *h, void *p, size_t size)
{
    const int class = class_of_size(size);
    struct hed_region piece = {.at = p, .size = HED_REGION_LEAST};

    if (class < HED_HEAP_CLASSES) {
        hed_lock(&h->lock);
        put_spare_locked(&h->spare[class], p);
        hed_unlock(&h->lock);
        return;
    }
    while (piece.size < size)
        piece.size *= 2;
    hed_region_give(h->sandbox, &piece);
}

static void *
take_memory(struct hed_heap *h, size_t size)
{
    return h->sandbox ? take_from_sandbox(h, size) : aligned_alloc(16, (size + 15) & ~(size_t)15);
}

static void
give_memory(struct hed_heap *h, void *p, size_t size)
{
    if (h->sandbox)
        give_to_sandbox(h, p, size);
    else
        free(p);
}

/* ---- the table ------------------------------------------------------------------------------- */

void
hed_heap_fini(struct hed_heap *h)
{
    for (size_t i = 0; i < h->room && !h->sandbox; i++) {
        if (h->slots[i].at != &removed)
            free(h->slots[i].at);
    }
    for (int i = 0; i < HED_HEAP_CLASSES; i++)
        free(h->spare[i].at);
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
    bool fits = false;
    void *p;

    if (size == 0 || size > limit)
        return NULL;
    hed_lock(&h->lock);
    if (h->used <= limit && size <= limit - h->used) {
        h->used += size;
        fits = true;
    }
    hed_unlock(&h->lock);
    if (!fits)
        return NULL;
    p = take_memory(h, size);
    hed_lock(&h->lock);
    fits = p && grow_heap_locked(h) == 0;
    if (fits)
        put_slot_locked(h, p, size);
    else
        h->used -= size;
    hed_unlock(&h->lock);
    if (fits)
        return p;
    if (p)
        give_memory(h, p, size);
    return NULL;
}

int
hed_heap_give(struct hed_heap *h, void *p)
{
    int err = HED_EINVAL;
    size_t size = 0;

    hed_lock(&h->lock);
    if (h->room && p != &removed) {
        for (size_t i = slot_index(h, p); h->slots[i].at; i = (i + 1) & (h->room - 1)) {
            if (h->slots[i].at == p) {
                size = h->slots[i].size;
                h->used -= size;
                h->slots[i].at = &removed;
                err = 0;
                break;
            }
        }
    }
    hed_unlock(&h->lock);
    if (!err)
        give_memory(h, p, size);
    return err;
}

uint64_t
hed_rt_malloc(struct hed_ptx_warp *s, uint64_t size)
{
    const struct hed_job *job = hed_engine_warp_of(s)->block->grid->job;

    hed_engine_warp_look(s);
    if (!job->heap || size > SIZE_MAX)
        return 0;
    return (uint64_t)(uintptr_t)hed_heap_take(job->heap, size, job->heap_limit);
}

/* A pointer that is not malloc's is ignored, as on an H200, except for a line in the log. */
void
hed_rt_free(struct hed_ptx_warp *s, uint64_t p)
{
    const struct hed_job *job = hed_engine_warp_of(s)->block->grid->job;

    hed_engine_warp_look(s);
    if (p == 0)
        return;
    if (!job->heap || hed_heap_give(job->heap, (void *)(uintptr_t)p) != 0)
        hed_warn(CPU, "kernel %s frees 0x%llx, which malloc did not return", job->name,
                 (unsigned long long)p);
}
