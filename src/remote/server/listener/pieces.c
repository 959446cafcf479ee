/* Pieces of a window: see pieces.h. */
#include "remote/server/listener/pieces.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/number.h"
#include "remote/wire/window.h"

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

/* The first run of `count` units in [from, end) that are free, or left if that is good enough; 0 if
 * there is none. */
static uint32_t
find_units(const struct hed_pieces *p, uint32_t from, uint32_t end, uint32_t count, bool left)
{
    uint32_t run = 0;

    for (uint32_t i = from; i < end; i++) {
        run = p->owner[i] == 0 || (left && p->owner[i] == HED_PIECES_LEFT) ? run + 1 : 0;
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

    if (bytes == 0 || bytes > (uint64_t)p->units * HED_WINDOW_UNIT || worker >= HED_PIECES_LEFT - 1)
        return 0;
    /* After the last piece, so that a piece that was given back stays unused for a while: a program
     * of the guest may still write to it. */
    first = find_units(p, p->next, p->units, (uint32_t)count, false);
    if (!first)
        first = find_units(p, 1, p->units, (uint32_t)count, false);
    if (!first && p->left)
        first = find_units(p, 1, p->units, (uint32_t)count, true);
    if (!first)
        return 0;
    for (uint32_t i = first; i < first + count; i++) {
        p->left -= p->owner[i] == HED_PIECES_LEFT;
        p->owner[i] = (uint16_t)(worker + 1);
    }
    p->next = first + (uint32_t)count;
    return first * HED_WINDOW_UNIT;
}

void
hed_pieces_give(struct hed_pieces *p, uint32_t worker, uint64_t offset, uint64_t bytes)
{
    const uint64_t first = offset / HED_WINDOW_UNIT;
    const uint64_t count = bytes / HED_WINDOW_UNIT;

    if (offset % HED_WINDOW_UNIT || bytes % HED_WINDOW_UNIT || first == 0 || first >= p->units ||
        count > p->units - first || worker >= HED_PIECES_LEFT - 1)
        return;
    for (uint64_t i = first; i < first + count; i++)
        if (p->owner[i] != worker + 1)
            return;
    memset(&p->owner[first], 0, count * sizeof *p->owner);
}

static void
leave_units_of(struct hed_pieces *p, uint32_t owner)
{
    for (uint32_t i = 1; i < p->units; i++) {
        if (p->owner[i] != owner)
            continue;
        p->owner[i] = HED_PIECES_LEFT;
        p->left++;
    }
    p->swept = 1;
}

void
hed_pieces_leave(struct hed_pieces *p, uint32_t worker)
{
    leave_units_of(p, worker + 1);
}

void
hed_pieces_leave_free(struct hed_pieces *p)
{
    leave_units_of(p, 0);
}

uint64_t
hed_pieces_clear(struct hed_pieces *p, uint64_t most, uint64_t *offset)
{
    uint32_t first = p->swept, end;

    if (!p->left)
        return 0;
    while (p->owner[first] != HED_PIECES_LEFT)
        first++;
    for (end = first; end < p->units && p->owner[end] == HED_PIECES_LEFT &&
                      (end - first) * HED_WINDOW_UNIT < most;
         end++)
        p->owner[end] = 0;
    p->left -= end - first;
    p->swept = end;
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
