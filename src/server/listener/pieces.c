/* Pieces of a window: see pieces.h. */
#include "server/listener/pieces.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/number.h"
#include "wire/window.h"

int
hed_pieces_init(struct hed_pieces *p, uint64_t size)
{
    const uint64_t units = size / HED_WINDOW_UNIT;

    *p = (struct hed_pieces){.next = 1};
    if (units > UINT32_MAX)
        return HED_ELIMIT;
    p->owner = units ? calloc(units, sizeof *p->owner) : NULL;
    p->units = p->owner ? (uint32_t)units : 0;
    return units && !p->owner ? HED_ENOMEM : 0;
}

void
hed_pieces_fini(struct hed_pieces *p)
{
    free(p->owner);
    *p = (struct hed_pieces){.units = 0};
}

/* The first run of `count` free units in [from, end); 0 if there is none. */
static uint32_t
find_free_units(const struct hed_pieces *p, uint32_t from, uint32_t end, uint32_t count)
{
    uint32_t run = 0;

    for (uint32_t i = from; i < end; i++) {
        run = p->owner[i] ? 0 : run + 1;
        if (run == count)
            return i + 1 - count;
    }
    return 0;
}

uint64_t
hed_pieces_take(struct hed_pieces *p, uint32_t worker, uint64_t bytes)
{
    const uint64_t count = hed_round_up(bytes, HED_WINDOW_UNIT) / HED_WINDOW_UNIT;
    uint32_t first;

    if (bytes == 0 || bytes > (uint64_t)p->units * HED_WINDOW_UNIT || worker >= UINT16_MAX)
        return 0;
    /* After the last piece, so that a piece that was given back stays unused for a while: a program
     * of the guest may still write to it. */
    first = find_free_units(p, p->next, p->units, (uint32_t)count);
    if (!first)
        first = find_free_units(p, 1, p->units, (uint32_t)count);
    if (!first)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        p->owner[first + i] = (uint16_t)(worker + 1);
    p->next = first + (uint32_t)count;
    return first * HED_WINDOW_UNIT;
}

void
hed_pieces_give(struct hed_pieces *p, uint32_t worker, uint64_t offset, uint64_t bytes)
{
    const uint64_t first = offset / HED_WINDOW_UNIT;
    const uint64_t count = bytes / HED_WINDOW_UNIT;

    if (offset % HED_WINDOW_UNIT || bytes % HED_WINDOW_UNIT || first == 0 || first >= p->units ||
        count > p->units - first || worker >= UINT16_MAX)
        return;
    for (uint64_t i = first; i < first + count; i++)
        if (p->owner[i] != worker + 1)
            return;
    memset(&p->owner[first], 0, count * sizeof *p->owner);
}

uint64_t
hed_pieces_clear(struct hed_pieces *p, uint32_t worker, uint64_t *offset)
{
    uint32_t first = 1, end;

    while (first < p->units && p->owner[first] != worker + 1)
        first++;
    for (end = first; end < p->units && p->owner[end] == worker + 1; end++)
        p->owner[end] = 0;
    *offset = first * HED_WINDOW_UNIT;
    return (end - first) * HED_WINDOW_UNIT;
}

uint64_t
hed_pieces_used(const struct hed_pieces *p)
{
    uint64_t n = 0;

    for (uint32_t i = 1; i < p->units; i++)
        n += p->owner[i] != 0;
    return n * HED_WINDOW_UNIT;
}

uint64_t
hed_pieces_unused(const struct hed_pieces *p, uint64_t from, uint64_t *offset)
{
    uint64_t first = hed_round_up(from, HED_WINDOW_UNIT) / HED_WINDOW_UNIT;
    uint64_t end;

    first = first ? first : 1;
    while (first < p->units && p->owner[first])
        first++;
    for (end = first; end < p->units && !p->owner[end];)
        end++;
    *offset = first * HED_WINDOW_UNIT;
    return (end - first) * HED_WINDOW_UNIT;
}
