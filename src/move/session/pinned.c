/* Pinned memory at the standby (standby.h), before the program is held: registering it with a
 * device takes longer than copying as much.
 *
 * Over shm both workers map the program's heap, so there is nothing to copy. But a worker that
 * unmaps pinned memory frees its pages, whoever else has them.
 *
 * Invariants:
 * 1. While the program runs, the standby is never told to unmap pinned memory: the program may have
 *    new memory there by the time it does so. While it is held, the standby is waited for.
 * 2. A device keeps the pages that it was given first. So memory that the program has freed and
 *    made again at the same place (another serial) must not be used through the old registration.
 *    Then the standby is of no use: HED_EEXIST.
 */
#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "move/session/standby.h"
#include "remote/client.h"

static bool
overlaps_any(const struct hed_remote_mapping *m, const struct hed_remote_mappings *l)
{
    for (size_t i = 0; i < l->count; i++)
        if (m->at < l->all[i].at + l->all[i].size && l->all[i].at < m->at + m->size)
            return true;
    return false;
}

static bool
has_pinned(const struct hed_remote_mappings *l, const struct hed_remote_mapping *m)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->all[i].at == m->at && l->all[i].size == m->size && l->all[i].serial == m->serial)
            return true;
    return false;
}

/* What the standby has and the program has not: goes, if nothing of the program is there. */
static int
drop_stale_pinned(struct hed_remote_standby *t, const struct hed_remote_mappings *here,
                  const struct hed_remote_mappings *there)
{
    bool dropped = false;
    int err = 0;

    for (size_t i = 0; i < there->count && !err; i++) {
        if (has_pinned(here, &there->all[i]))
            continue;
        if (overlaps_any(&there->all[i], here)) {
            err = HED_EEXIST;
        } else {
            hed_remote_unmap_at_standby(&t->remote, there->all[i].at, there->all[i].size);
            dropped = true;
        }
    }
    if (dropped)
        hed_remote_look(&t->remote);
    return err;
}

int
hed_remote_standby_adjust_pinned(struct hed_remote_standby *t, bool held)
{
    struct hed_remote_mappings here, there = {.count = 0};
    int err = hed_remote_mappings_list(t->of, HED_MAP_HOST, &here);

    if (!err)
        err = hed_remote_mappings_list(&t->remote, HED_MAP_HOST, &there);
    if (!err && held)
        err = drop_stale_pinned(t, &here, &there);
    for (size_t i = 0; i < here.count && !err; i++) {
        const struct hed_remote_mapping *m = &here.all[i];
        const bool offered = m->at == t->offered;

        if (has_pinned(&there, m) || overlaps_any(m, &there) ||
            (t->without_pinned && !offered && !held))
            continue;
        /* What is refused now is asked for again when the program is held, and then counts. */
        if (hed_remote_map_at_standby(&t->remote, m) != 0)
            hed_info(REMOTE, "pinned memory of %llu KiB is not prepared at the new server",
                     (unsigned long long)(m->size >> 10));
        else if (offered)
            t->shared = true;
    }
    free(here.all);
    free(there.all);
    return err;
}
