/* The lease: bytes of each device that may be mapped without asking the worker. See memory.h.
 *
 * Invariants:
 * 1. devices[i].lease plus what is mapped and created (HED_MAP_DEVICE, HED_MAP_PHYSICAL) is what
 *    the worker has granted and not got back. So mapping under the lease cannot fail because the
 *    server has promised the memory to another client.
 * 2. At most one thread asks for more of a device, so no thread is refused memory that another is
 *    about to get.
 */
#include <pthread.h>

#include "base/err.h"
#include "driver/driver.h"
#include "remote/client/memory.h"

#define LEASE_STEP (UINT64_C(64) << 20) /* bytes, or a fraction of the device if that is more */
#define LEASE_PART 256

static bool
take_lease(struct hed_remote *r, int device, uint64_t size)
{
    _Atomic uint64_t *lease = &r->devices[device].lease;
    uint64_t had = atomic_load_explicit(lease, memory_order_relaxed);

    /* Relaxed: only the number counts; the messages that follow from it have their own order. */
    while (had >= size)
        if (atomic_compare_exchange_weak_explicit(lease, &had, had - size, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    return false;
}

static uint64_t
lease_step(const struct hed_remote *r, int device)
{
    const uint64_t part =
        r->driver ? r->driver->devices[device].info.profile.memory / LEASE_PART : 0;

    return part > LEASE_STEP ? part : LEASE_STEP;
}

/* Returns how many bytes were granted; 0: there are no more. */
static uint64_t
ask_lease(struct hed_remote *r, int device, uint64_t want, uint64_t least)
{
    struct hed_remote_channel *channel;
    struct hed_lease *l = hed_remote_begin(r, HED_MSG_LEASE, sizeof *l, 0, 0, 0, &channel);

    if (!l)
        return 0;
    l->head.flags = HED_MSG_WANTS_ANSWER;
    l->device = r->devices[device].ordinal;
    l->want = want;
    l->least = least;
    if (hed_remote_end(channel, &l->head, sizeof *l) != 0)
        return 0;

    const struct hed_lease_answer *a = (const struct hed_lease_answer *)hed_remote_answer(channel);

    if (!a)
        return 0;
    if (a->head.head.size < sizeof *a || (a->head.result == CUDA_SUCCESS && a->granted < least)) {
        hed_remote_lose(r, "the worker sent an invalid lease");
        return 0;
    }
    return a->head.result == CUDA_SUCCESS ? a->granted : 0;
}

bool
hed_remote_lease_take(struct hed_remote *r, int device, uint64_t size)
{
    struct hed_remote_memory *m = r->memory;
    bool taken = take_lease(r, device, size);

    if (taken)
        return true;
    hed_lock(&m->lock);
    while (m->asking[device])
        (void)hed_lock_wait(&m->lock, &m->answered, UINT64_MAX);
    m->asking[device] = true;
    hed_unlock(&m->lock);
    /* Other threads may take from the lease meanwhile, which is fine as long as the server has
     * more. */
    while (!(taken = take_lease(r, device, size))) {
        const uint64_t step = lease_step(r, device);
        const uint64_t has = atomic_load_explicit(&r->devices[device].lease, memory_order_relaxed);
        const uint64_t least = has < size ? size - has : 1;
        const uint64_t granted = ask_lease(r, device, least > step ? least : step, least);

        if (granted == 0)
            break;
        /* Relaxed, here and below: only the numbers count. */
        atomic_fetch_add_explicit(&m->granted[device], granted, memory_order_relaxed);
        atomic_fetch_add_explicit(&r->devices[device].lease, granted, memory_order_relaxed);
    }
    hed_lock(&m->lock);
    m->asking[device] = false;
    (void)pthread_cond_broadcast(&m->answered);
    hed_unlock(&m->lock);
    return taken;
}

/* Gives bytes back that are not in the lease any more. */
static void
give_lease(struct hed_remote *r, int device, uint64_t size)
{
    struct hed_remote_channel *channel;
    struct hed_lease *l = hed_remote_begin(r, HED_MSG_LEASE, sizeof *l, 0, 0, 0, &channel);

    if (!l)
        return;
    l->device = r->devices[device].ordinal;
    l->give = size;
    atomic_fetch_sub_explicit(&r->memory->granted[device], size, memory_order_relaxed);
    /* Others may need it, and this program may have nothing more to say. */
    if (hed_remote_end(channel, &l->head, sizeof *l) == 0)
        (void)hed_channel_flush(channel->channel);
}

void
hed_remote_lease_return(struct hed_remote *r, int device, uint64_t size)
{
    _Atomic uint64_t *lease = &r->devices[device].lease;
    const uint64_t step = lease_step(r, device);
    const uint64_t has = atomic_fetch_add_explicit(lease, size, memory_order_relaxed) + size;

    if (has >= 2 * step && take_lease(r, device, has - step))
        give_lease(r, device, has - step);
}

void
hed_remote_lease_taken(struct hed_remote *r, int device, uint64_t size)
{
    /* Relaxed: only the number counts. */
    atomic_fetch_sub_explicit(&r->memory->granted[device], size, memory_order_relaxed);
}

/* Relaxed, all: only the numbers count. If they are the same as at the last look, the program has
 * not needed memory in between, or as much as it has freed. */
void
hed_remote_lease_rest(struct hed_remote *r, struct hed_remote_rest *seen)
{
    for (int i = 0; i < r->device_count; i++) {
        struct hed_device *dev = &r->driver->devices[i];
        _Atomic uint64_t *lease = &r->devices[i].lease;
        const struct hed_remote_rest now = {
            atomic_load_explicit(&r->memory->granted[i], memory_order_relaxed),
            atomic_load_explicit(lease, memory_order_relaxed) + hed_memory_spare(dev)};
        const bool same = now.granted == seen[i].granted && now.unused == seen[i].unused;

        seen[i] = now;
        if (!same || now.unused < lease_step(r, i) / 2)
            continue;
        hed_memory_drop_spare(dev);

        const uint64_t has = atomic_load_explicit(lease, memory_order_relaxed);

        if (has && take_lease(r, i, has))
            give_lease(r, i, has);
    }
}

/* Relaxed: if the session was lost, this thread has noticed itself. */
int
hed_remote_lease_none(const struct hed_remote *r)
{
    return atomic_load_explicit(&r->lost, memory_order_relaxed) ? HED_EIO : HED_ENOMEM;
}

/* ---- another worker -------------------------------------------------------------------------- */

static int
add_need(void *arg, const struct hed_remote_mapping *m)
{
    uint64_t *need = arg;

    if (m->device >= 0)
        need[m->device] += m->size;
    return 0;
}

/* All or nothing, in one question for each device: a program that does not fit must not take memory
 * from others while it finds out. */
int
hed_remote_lease_again(struct hed_remote *r, struct hed_why *why)
{
    uint64_t need[HED_PROFILE_DEVICES_MAX] = {0};
    int err = hed_remote_mappings_each(r, HED_MAP_PHYSICAL, add_need, need);

    if (!err)
        err = hed_remote_mappings_each(r, HED_MAP_DEVICE, add_need, need);
    for (int i = 0; i < r->device_count && !err; i++) {
        const uint64_t granted = need[i] ? ask_lease(r, i, need[i], need[i]) : 0;

        /* Relaxed: only the numbers count. */
        atomic_fetch_add_explicit(&r->memory->granted[i], granted, memory_order_relaxed);
        atomic_fetch_add_explicit(&r->devices[i].lease, granted, memory_order_relaxed);
        if (need[i] && !granted) {
            err = hed_remote_lease_none(r);
            hed_why_set(why, "device %d of the server does not have %llu MiB for the program", i,
                        (unsigned long long)(need[i] >> 20));
        }
    }
    return err;
}

/* ---- memory sizes ---------------------------------------------------------------------------- */

size_t
hed_remote_memory_left(void *machine, struct hed_context *c)
{
    struct hed_remote *r = hed_remote_of(machine);
    const int device = c->device->ordinal;
    struct hed_remote_channel *channel;
    struct hed_lease *l = hed_remote_begin(r, HED_MSG_LEASE, sizeof *l, 0, 0, 0, &channel);

    /* Asking for 0 bytes returns how many are available, including those granted already. */
    if (!l)
        return SIZE_MAX;
    l->head.flags = HED_MSG_WANTS_ANSWER;
    l->device = r->devices[device].ordinal;
    if (hed_remote_end(channel, &l->head, sizeof *l) != 0)
        return SIZE_MAX;

    const struct hed_lease_answer *a = (const struct hed_lease_answer *)hed_remote_answer(channel);

    if (!a || a->head.head.size < sizeof *a)
        return SIZE_MAX;

    const uint64_t has = atomic_load_explicit(&r->memory->granted[device], memory_order_relaxed);
    const uint64_t unused = hed_memory_spare(c->device) +
                            atomic_load_explicit(&r->devices[device].lease, memory_order_relaxed);
    const uint64_t used = has > unused ? has - unused : 0;

    if (a->head.result != CUDA_SUCCESS)
        return SIZE_MAX;
    return a->granted > used ? a->granted - used : 0;
}
