/* The ledger of leases. See ledger.h. */
#include "remote/server/listener/ledger.h"

#include <stdbool.h>
#include <string.h>

#include "base/number.h"

static bool
is_in_ledger(uint32_t worker, int device)
{
    return worker < HED_LEDGER_WORKERS && device >= 0 && device < HED_LEASE_SOCKET_PLACES;
}

void
hed_ledger_changed(struct hed_ledger *l)
{
    /* Release: pairs with the acquire in ask_again(); who reads it and asks gets a new answer. */
    if (l->notice)
        atomic_fetch_add_explicit(&l->notice->changes, 1, memory_order_release);
}

uint64_t
hed_ledger_leased(const struct hed_ledger *l, int device)
{
    uint64_t sum;

    if (!is_in_ledger(0, device))
        return 0;
    sum = l->orphaned[device];
    for (uint32_t i = 0; i < HED_LEDGER_WORKERS; i++)
        sum = l->leased[i][device] > UINT64_MAX - sum ? UINT64_MAX : sum + l->leased[i][device];
    return sum;
}

uint64_t
hed_ledger_others(const struct hed_ledger *l, uint32_t worker, int device)
{
    const uint64_t all = hed_ledger_leased(l, device);

    return is_in_ledger(worker, device) ? all - hed_min(all, l->leased[worker][device]) : 0;
}

/* How much more a worker could have. */
static uint64_t
bytes_left(const struct hed_ledger *l, uint32_t worker, int device, uint64_t limit)
{
    const uint64_t mine = l->leased[worker][device] + l->opened[worker][device];
    const uint64_t leased = hed_ledger_leased(l, device);
    const uint64_t most = l->total[device] ? l->total[device] : UINT64_MAX;
    const uint64_t total = most - hed_min(most, l->kept[device]);
    const uint64_t left = total > leased ? total - leased : 0;

    return limit ? hed_min(left, limit > mine ? limit - mine : 0) : left;
}

uint64_t
hed_ledger_obtainable(const struct hed_ledger *l, uint32_t worker, int device, uint64_t limit)
{
    return is_in_ledger(worker, device)
               ? l->leased[worker][device] + bytes_left(l, worker, device, limit)
               : 0;
}

uint64_t
hed_ledger_take(struct hed_ledger *l, uint32_t worker, int device, uint64_t want, uint64_t least,
                uint64_t limit)
{
    if (!is_in_ledger(worker, device) || want == 0 || least > want)
        return 0;

    const uint64_t left = bytes_left(l, worker, device, limit);

    if (left < least)
        return 0;

    /* What a worker does not need at once is for later; others may need it now. */
    const uint64_t more = hed_max((left - least) / HED_LEDGER_PARTS, HED_LEDGER_CRUMB);
    const uint64_t some = least + hed_min(want - least, hed_min(left - least, more));

    if (some == 0)
        return 0;
    l->leased[worker][device] += some;
    hed_ledger_changed(l);
    return some;
}

void
hed_ledger_give(struct hed_ledger *l, uint32_t worker, int device, uint64_t bytes)
{
    if (!is_in_ledger(worker, device))
        return;
    l->leased[worker][device] -= hed_min(bytes, l->leased[worker][device]);
    hed_ledger_changed(l);
}

bool
hed_ledger_open(struct hed_ledger *l, uint32_t worker, int device, uint64_t bytes, uint64_t limit)
{
    if (!is_in_ledger(worker, device) || bytes > UINT64_MAX / HED_LEDGER_WORKERS)
        return false;

    const uint64_t has = l->leased[worker][device] + l->opened[worker][device];

    if (has > UINT64_MAX / 2 || (limit && (has > limit || bytes > limit - has)))
        return false;
    l->opened[worker][device] += bytes;
    hed_ledger_changed(l);
    return true;
}

void
hed_ledger_close(struct hed_ledger *l, uint32_t worker, int device, uint64_t bytes)
{
    if (!is_in_ledger(worker, device))
        return;
    l->opened[worker][device] -= hed_min(bytes, l->opened[worker][device]);
    hed_ledger_changed(l);
}

uint64_t
hed_ledger_orphan(struct hed_ledger *l, uint32_t worker, int device, uint64_t bytes)
{
    if (!is_in_ledger(worker, device))
        return 0;

    const uint64_t moved = hed_min(bytes, l->leased[worker][device]);

    l->leased[worker][device] -= moved;
    l->orphaned[device] += moved;
    hed_ledger_changed(l);
    return moved;
}

void
hed_ledger_bury(struct hed_ledger *l, int device, uint64_t bytes)
{
    if (!is_in_ledger(0, device))
        return;
    l->orphaned[device] -= hed_min(bytes, l->orphaned[device]);
    hed_ledger_changed(l);
}

void
hed_ledger_clear(struct hed_ledger *l, uint32_t worker)
{
    if (!is_in_ledger(worker, 0))
        return;
    memset(l->leased[worker], 0, sizeof l->leased[worker]);
    memset(l->opened[worker], 0, sizeof l->opened[worker]);
    hed_ledger_changed(l);
}
