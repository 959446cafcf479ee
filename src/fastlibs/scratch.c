/* See scratch.h.
 *
 * Invariant: a piece that is as large as the most that was ever reserved is spare, or with a job
 * that puts it back. The largest spare piece is therefore never freed.
 */
#include "fastlibs/scratch.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/lock.h"

#define ALIGN 64
#define SPARE_MOST 4
#define SPARE_LARGE (8 << 20) /* of pieces that are larger, the largest alone stays */
#define TAKEN_MOST 16         /* a BLAS has room for so many calls at least */

struct piece {
    struct piece *next;
    size_t bytes;
};

_Static_assert(sizeof(struct piece) <= ALIGN, "the head of a piece fits in front of it");

static struct hed_lock lock = HED_LOCK_INIT(HED_RANK_SCRATCH);
static pthread_cond_t was_put = PTHREAD_COND_INITIALIZER;
static struct piece *spare; /* sorted by size; these are guarded by the lock */
static unsigned spares, taken;
static size_t reserved;

static struct piece *
make_piece(size_t bytes)
{
    struct piece *p;

    if (bytes > SIZE_MAX - 2 * ALIGN)
        return NULL;
    p = aligned_alloc(ALIGN, (bytes + 2 * ALIGN - 1) / ALIGN * ALIGN);
    if (p)
        *p = (struct piece){NULL, bytes};
    return p;
}

/* With the lock held. Returns a piece to free: the smallest one if there are too many, or a large
 * one. */
static struct piece *
put_piece(struct piece *p)
{
    struct piece **at = &spare, *first = NULL;

    while (*at && (*at)->bytes < p->bytes)
        at = &(*at)->next;
    p->next = *at;
    *at = p;
    spares++;
    at = &spare;
    while (*at && (*at)->bytes <= SPARE_LARGE)
        at = &(*at)->next;
    if (spares > SPARE_MOST)
        at = &spare;
    if (*at && (*at)->next) {
        first = *at;
        *at = first->next;
        spares--;
    }
    pthread_cond_broadcast(&was_put);
    return first;
}

bool
hed_scratch_reserve(size_t bytes)
{
    struct piece *p;
    bool is_there;

    hed_lock(&lock);
    is_there = bytes <= reserved;
    hed_unlock(&lock);
    if (is_there)
        return true;
    p = make_piece(bytes);
    if (!p)
        return false;
    hed_lock(&lock);
    if (reserved < bytes)
        reserved = bytes;
    p = put_piece(p);
    hed_unlock(&lock);
    free(p);
    return true;
}

void *
hed_scratch_take(size_t bytes)
{
    struct piece **at, *p;

    hed_lock(&lock);
    while (taken >= TAKEN_MOST)
        hed_lock_wait(&lock, &was_put, UINT64_MAX);
    taken++;
    for (;;) {
        at = &spare;
        while (*at && (*at)->bytes < bytes)
            at = &(*at)->next;
        p = *at;
        if (p) {
            *at = p->next;
            spares--;
            break;
        }
        p = make_piece(bytes);
        if (p)
            break;
        hed_lock_wait(&lock, &was_put, UINT64_MAX);
    }
    hed_unlock(&lock);
    return (char *)p + ALIGN;
}

void
hed_scratch_put(void *memory)
{
    struct piece *p = (struct piece *)((char *)memory - ALIGN);

    hed_lock(&lock);
    taken--;
    p = put_piece(p);
    hed_unlock(&lock);
    free(p);
}

/* Another thread may have been changing the list. What is on it is left alone, and stays shared
 * with the parent. */
void
hed_scratch_forked(void)
{
    hed_lock_init(&lock, HED_RANK_SCRATCH);
    was_put = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    spare = NULL;
    spares = taken = 0;
    reserved = 0;
}
