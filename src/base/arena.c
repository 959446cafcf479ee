/* The bump arena. See arena.h. */
#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"

#define FIRST_CHUNK 4096u    /* bytes of room in the first chunk */
#define LARGEST_CHUNK 65536u /* chunks double up to this; only a large request gets a larger one */

struct hed_arena_chunk {
    struct hed_arena_chunk *next; /* the one before it in time */
    size_t size;                  /* bytes of room */
    size_t used;                  /* bytes */
    _Alignas(max_align_t) unsigned char room[];
};

void
hed_arena_init(struct hed_arena *a, size_t ceiling)
{
    *a = (struct hed_arena){.ceiling = ceiling};
}

/* Takes size bytes from the chunk, or NULL if they do not fit. */
static void *
take_from_chunk(struct hed_arena_chunk *c, size_t size, size_t align)
{
    const size_t pad = -((uintptr_t)c->room + c->used) & (align - 1);
    const size_t left = c->size - c->used;

    if (pad > left || size > left - pad)
        return NULL;

    void *p = c->room + c->used + pad;

    c->used += pad + size;
    return p;
}

/* Adds a chunk at the front that holds size bytes at any alignment. */
static bool
add_arena_chunk(struct hed_arena *a, size_t size, size_t align)
{
    size_t room = a->chunks ? a->chunks->size : FIRST_CHUNK / 2;
    size_t need;

    room = room < LARGEST_CHUNK / 2 ? room * 2 : LARGEST_CHUNK;
    if (__builtin_add_overflow(size, align - 1, &need))
        return false;
    if (room < need)
        room = need;

    size_t total;

    if (__builtin_add_overflow(room, sizeof(struct hed_arena_chunk), &total))
        return false;

    struct hed_arena_chunk *c = malloc(total);

    if (!c)
        return false;
    c->next = a->chunks;
    c->size = room;
    c->used = 0;
    a->chunks = c;
    return true;
}

void *
hed_arena_alloc(struct hed_arena *a, size_t size, size_t align)
{
    size_t charge;

    if (align == 0 || (align & (align - 1)) != 0) {
        hed_bug("alignment %zu is not a power of two", align);
        return NULL;
    }
    if (size == 0)
        size = 1;
    if (__builtin_add_overflow(size, align - 1, &charge))
        return NULL;
    charge &= ~(align - 1);
    if (charge > a->ceiling - a->used)
        return NULL;

    void *p = a->chunks ? take_from_chunk(a->chunks, size, align) : NULL;

    if (!p) {
        if (!add_arena_chunk(a, size, align))
            return NULL;
        p = take_from_chunk(a->chunks, size, align);
    }
    a->used += charge;
    return p;
}

static void
free_from(struct hed_arena_chunk *c)
{
    while (c) {
        struct hed_arena_chunk *next = c->next;

        free(c);
        c = next;
    }
}

void
hed_arena_reset(struct hed_arena *a)
{
    if (a->chunks) {
        free_from(a->chunks->next);
        a->chunks->next = NULL;
        a->chunks->used = 0;
    }
    a->used = 0;
}

void
hed_arena_fini(struct hed_arena *a)
{
    free_from(a->chunks);
    a->chunks = NULL;
    a->used = 0;
}
