/* The reserved addresses of the arena, while there is no worker. See snap.h.
 *
 * A program that is away can be saved to disk by CRIU, which looks at every page of every mapping,
 * whether there is memory behind it or not. So the reservation is given back meanwhile, except
 * where pinned memory is. The system puts new mappings far above it, unless the program asks for
 * one of these addresses itself; then it cannot come back to a worker, and is told so.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "base/err.h"
#include "base/reserve.h"
#include "move/session/snap.h"
#include "remote/client.h"

static int
compare_mappings(const void *a, const void *b)
{
    const struct hed_remote_mapping *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

/* A change of each part of the arena in which this process has no memory, in order of address. */
struct gap_change {
    int (*change)(uint64_t at, uint64_t size);
    size_t done, most; /* parts that have been changed, and that may be */
};

static int
change_gap(struct gap_change *g, uint64_t at, uint64_t size)
{
    int err = 0;

    if (g->done < g->most && size > 0)
        err = g->change(at, size);
    if (!err)
        g->done++;
    return err;
}

static int
change_gaps(struct hed_remote *r, struct gap_change *g)
{
    struct hed_remote_mappings p;
    uint64_t at = r->base;
    int err = hed_remote_mappings_list(r, HED_MAP_HOST, &p);

    if (!err && p.count)
        qsort(p.all, p.count, sizeof *p.all, compare_mappings);
    for (size_t i = 0; i < p.count && !err; i++) {
        err = change_gap(g, at, p.all[i].at - at);
        at = p.all[i].at + p.all[i].size;
    }
    if (!err)
        err = change_gap(g, at, r->base + r->size - at);
    free(p.all);
    return err;
}

static int
give_gap(uint64_t at, uint64_t size)
{
    return munmap((void *)(uintptr_t)at, size) == 0 ? 0 : HED_ENOMEM;
}

static int
take_gap(uint64_t at, uint64_t size)
{
    return hed_reserve_addresses(at, size) ? 0 : HED_EEXIST;
}

int
hed_remote_space_give(struct hed_remote *r)
{
    return change_gaps(r, &(struct gap_change){.change = give_gap, .most = SIZE_MAX});
}

int
hed_remote_space_take(struct hed_remote *r, struct hed_why *why)
{
    struct gap_change taken = {.change = take_gap, .most = SIZE_MAX};
    const int err = change_gaps(r, &taken);

    if (!err)
        return 0;
    hed_why_set(why, "addresses of its device memory are used for something else in the program");
    (void)change_gaps(r, &(struct gap_change){.change = give_gap, .most = taken.done});
    return err;
}
