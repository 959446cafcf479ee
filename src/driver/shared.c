/* The driver's side of driver/shared.h: its devices, the usage it reports, and the answers to NVML.
 * The file itself is in shared_file.c. */
#include "driver/shared.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/lock.h"
#include "core/session.h"
#include "driver/parts.h"
#include "driver/shared_file.h"

struct hed_shared_state {
    struct hed_profile_device *all;          /* constant */
    size_t count;                            /* constant */
    size_t visible[HED_PROFILE_DEVICES_MAX]; /* ordinal -> index in all; constant */
    _Atomic unsigned inits;                  /* nvmlInit minus nvmlShutdown of this process */
    uint64_t (*now)(void);                   /* the clock that measures load; constant */
    struct hed_lock lock;                    /* held while the file is joined */
    _Atomic(struct hed_shared_file *) file;  /* NULL until the file is joined */
    struct hed_shared_part part;             /* set before `file` is; constant from then on */
};

static struct hed_shared_file *
join_shared_file(struct hed_shared_state *s)
{
    /* Acquire: pairs with the release below, so that part is seen. */
    struct hed_shared_file *f = atomic_load_explicit(&s->file, memory_order_acquire);

    if (f)
        return f;
    hed_lock(&s->lock);
    f = atomic_load_explicit(&s->file, memory_order_relaxed);
    if (!f) {
        f = hed_shared_join(s->all, s->count, &s->part);
        atomic_store_explicit(&s->file, f, memory_order_release);
    }
    hed_unlock(&s->lock);
    return f;
}

/* ---- the driver's state ---------------------------------------------------------------------- */

static struct hed_shared_state *
create_shared_state(size_t count)
{
    struct hed_shared_state *s = calloc(1, sizeof *s);

    if (!s || count > HED_PROFILE_DEVICES_MAX) {
        free(s);
        return NULL;
    }
    s->now = hed_now_ns;
    s->all = calloc(count ? count : 1, sizeof *s->all);
    if (!s->all) {
        free(s);
        return NULL;
    }
    s->count = count;
    hed_lock_init(&s->lock, HED_RANK_SHARED);
    return s;
}

static void
destroy_shared_state(struct hed_shared_state *s)
{
    hed_lock_fini(&s->lock);
    free(s->all);
    free(s);
}

/* Finds each visible device in the list of all devices. */
static void
match_visible_devices(struct hed_shared_state *s, const struct hed_driver *d)
{
    for (int i = 0; i < d->device_count; i++) {
        size_t k = 0;

        while (k < s->count && memcmp(s->all[k].uuid, d->devices[i].info.uuid, 16) != 0)
            k++;
        s->visible[i] = k;
    }
}

int
hed_shared_attach(struct hed_driver *d, const struct hed_profile_device *all, size_t count)
{
    struct hed_shared_state *s = create_shared_state(count);

    if (!s)
        return HED_ENOMEM;
    memcpy(s->all, all, count * sizeof *all);
    match_visible_devices(s, d);
    hed_shared_free(d);
    /* Release: pairs with the acquire in state. */
    __atomic_store_n(&d->shared, s, __ATOMIC_RELEASE);
    return 0;
}

/* The state; made from the visible devices if hed_shared_attach() was not called. Two threads may
 * both try to make it. */
static struct hed_shared_state *
shared_state(struct hed_driver *d)
{
    struct hed_shared_state *none = NULL;
    struct hed_shared_state *s = __atomic_load_n(&d->shared, __ATOMIC_ACQUIRE);

    if (s)
        return s;
    s = create_shared_state((size_t)d->device_count);
    if (!s)
        return NULL;
    for (int i = 0; i < d->device_count; i++)
        s->all[i] = d->devices[i].info;
    match_visible_devices(s, d);
    if (__atomic_compare_exchange_n(&d->shared, &none, s, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return s;
    destroy_shared_state(s);
    return none;
}

void
hed_shared_leave(struct hed_driver *d)
{
    struct hed_shared_state *s = __atomic_load_n(&d->shared, __ATOMIC_ACQUIRE);

    const struct hed_shared_file *f =
        s ? atomic_load_explicit(&s->file, memory_order_acquire) : NULL;

    if (!f || !s->part.slot)
        return;

    uint64_t owner = s->part.owner;

    /* In the child of a fork the slot belongs to the parent. */
    if ((pid_t)(owner >> 32) == getpid() &&
        atomic_compare_exchange_strong_explicit(&s->part.slot->owner, &owner, 0,
                                                memory_order_release, memory_order_relaxed))
        hed_shared_remove(f, &s->part);
}

void
hed_shared_free(struct hed_driver *d)
{
    struct hed_shared_state *s = d->shared;

    if (!s)
        return;
    hed_shared_leave(d);

    struct hed_shared_file *f = atomic_load_explicit(&s->file, memory_order_relaxed);

    if (f)
        (void)munmap((void *)f, sizeof *f);
    destroy_shared_state(s);
    d->shared = NULL;
}

/* ---- reporting ------------------------------------------------------------------------------- */

/* The index of a visible device in the list of all devices; false if it is not there. */
static bool
find_visible_device(const struct hed_driver *d, const struct hed_shared_state *s, int ordinal,
                    size_t *out)
{
    if (!s || ordinal < 0 || ordinal >= d->device_count)
        return false;
    *out = s->visible[ordinal];
    return *out < s->count;
}

void
hed_shared_memory(struct hed_driver *d, int ordinal, uint64_t used)
{
    struct hed_shared_state *s;
    size_t i;

    if (d->machine->alone)
        return;
    s = shared_state(d);
    if (!find_visible_device(d, s, ordinal, &i) || !join_shared_file(s) || !s->part.slot)
        return;
    /* A process that took us for dead may have claimed the slot; then it is not ours to write. */
    if (atomic_load_explicit(&s->part.slot->owner, memory_order_relaxed) == s->part.owner)
        atomic_store_explicit(&s->part.slot->used[i], used, memory_order_relaxed);
}

/* Adds microseconds to one second of the history, replacing an older second that used the same
 * entry. */
static void
add_second(struct hed_shared_device *d, uint64_t second, uint64_t us)
{
    _Atomic uint64_t *word = &d->seconds[second % HED_SHARED_SECONDS];
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
    uint64_t new;

    do {
        const uint64_t there = old >> 32 == (second & UINT32_MAX) ? old & UINT32_MAX : 0;
        const uint64_t sum = there + us;

        new = second << 32 | (sum < UINT32_MAX ? sum : UINT32_MAX);
    } while (!atomic_compare_exchange_weak_explicit(word, &old, new, memory_order_relaxed,
                                                    memory_order_relaxed));
}

void
hed_shared_clock(struct hed_driver *d, uint64_t (*now)(void))
{
    shared_state(d)->now = now;
}

void
hed_shared_busy(struct hed_driver *d, int ordinal, uint64_t ns, uint64_t end)
{
    struct hed_shared_state *s = shared_state(d);
    struct hed_shared_file *f;
    size_t i;

    if (!find_visible_device(d, s, ordinal, &i) || !(f = join_shared_file(s)) || !s->part.device[i])
        return;

    struct hed_shared_device *device = &f->devices[s->part.device[i] - 1];

    atomic_fetch_add_explicit(&device->worked, ns, memory_order_relaxed);
    /* Work that lasted longer than the history fills all of it. */
    for (int k = 0; k < HED_SHARED_SECONDS && ns > 0; k++) {
        const uint64_t second = end / HED_NS_PER_S;
        const uint64_t in = end - second * HED_NS_PER_S;
        const uint64_t part = ns < in ? ns : in;

        add_second(device, second, part / 1000);
        ns -= part;
        if (second == 0)
            break;
        end = second * HED_NS_PER_S - 1;
    }
}

/* ---- queries --------------------------------------------------------------------------------- */

size_t
hed_shared_devices(struct hed_driver *d, const struct hed_profile_device **out)
{
    const struct hed_shared_state *s = shared_state(d);

    *out = s ? s->all : NULL;
    return s ? s->count : 0;
}

_Atomic unsigned *
hed_shared_inits(struct hed_driver *d)
{
    struct hed_shared_state *s = shared_state(d);

    return s ? &s->inits : NULL;
}

/* The device's entry in the file; NULL if it has none. */
static struct hed_shared_device *
find_device(struct hed_driver *d, size_t index)
{
    struct hed_shared_state *s = shared_state(d);
    struct hed_shared_file *f = s && index < s->count ? join_shared_file(s) : NULL;

    return f && s->part.device[index] ? &f->devices[s->part.device[index] - 1] : NULL;
}

/* Calls fn for every living process that uses memory of a device. */
typedef void (*use_fn)(void *arg, pid_t pid, uint64_t used);

/* The device of another computer: this process knows only its own use. */
static void
own_use(struct hed_driver *d, size_t index, use_fn fn, void *arg)
{
    const struct hed_shared_state *s = shared_state(d);

    for (int i = 0; i < d->device_count; i++) {
        size_t k;

        if (!find_visible_device(d, s, i, &k) || k != index)
            continue;
        hed_lock(&d->memory_lock);

        const uint64_t used = d->devices[i].used;

        hed_unlock(&d->memory_lock);
        if (used)
            fn(arg, getpid(), used);
    }
}

static void
each_use(struct hed_driver *d, size_t index, use_fn fn, void *arg)
{
    if (d->machine->alone) {
        own_use(d, index, fn, arg);
        return;
    }

    struct hed_shared_state *s = shared_state(d);
    struct hed_shared_file *f = s && index < s->count ? join_shared_file(s) : NULL;

    for (size_t i = 0; f && s->part.device[index] && i < HED_SHARED_SLOTS; i++) {
        struct hed_shared_slot *slot = &f->slots[i];
        const uint64_t owner = atomic_load_explicit(&slot->owner, memory_order_acquire);
        uint64_t used = 0;

        for (size_t k = 0; owner && k < HED_PROFILE_DEVICES_MAX; k++)
            if (atomic_load_explicit(&slot->device[k], memory_order_relaxed) ==
                s->part.device[index])
                used += atomic_load_explicit(&slot->used[k], memory_order_relaxed);
        if (used && hed_shared_alive(owner))
            fn(arg, (pid_t)(owner >> 32),
               used < s->all[index].profile.memory ? used : s->all[index].profile.memory);
    }
}

static void
add_use(void *arg, pid_t pid, uint64_t used)
{
    uint64_t *sum = arg;

    /* This cannot overflow: the number of slots and the memory counted for each are both
     * bounded. */
    *sum += used;
}

uint64_t
hed_shared_used(struct hed_driver *d, size_t index)
{
    const struct hed_profile_device *all;
    uint64_t sum = 0;

    if (index >= hed_shared_devices(d, &all))
        return 0;
    each_use(d, index, add_use, &sum);

    const uint64_t most = all[index].profile.memory;
    const uint64_t others = hed_session_others((int)index);

    return sum < most && others < most - sum ? sum + others : most;
}

/* Microseconds of work during one second of the clock. */
static uint64_t
get_second(const struct hed_shared_device *d, uint64_t second)
{
    const uint64_t word =
        atomic_load_explicit(&d->seconds[second % HED_SHARED_SECONDS], memory_order_relaxed);

    return word >> 32 == (second & UINT32_MAX) ? word & UINT32_MAX : 0;
}

unsigned
hed_shared_load(struct hed_driver *d, size_t index)
{
    const struct hed_shared_device *device = find_device(d, index);

    if (!device)
        return 0;

    const uint64_t now = shared_state(d)->now();
    const uint64_t second = now / HED_NS_PER_S;
    const uint64_t window = 1000000 + now % HED_NS_PER_S / 1000;

    if (second == 0)
        return 0;

    const uint64_t busy = get_second(device, second) + get_second(device, second - 1);

    return busy < window ? (unsigned)(busy * 100 / window) : 100;
}

uint64_t
hed_shared_worked(struct hed_driver *d, size_t index)
{
    const struct hed_shared_device *device = find_device(d, index);

    return device ? atomic_load_explicit(&device->worked, memory_order_relaxed) : 0;
}

struct listing {
    struct hed_shared_process *out;
    size_t room;
    size_t count;
};

static void
add_process(void *arg, pid_t pid, uint64_t used)
{
    struct listing *l = arg;

    if (l->count < l->room)
        l->out[l->count] = (struct hed_shared_process){pid, used};
    l->count++;
}

size_t
hed_shared_processes(struct hed_driver *d, size_t index, struct hed_shared_process *out,
                     size_t room)
{
    struct listing l = {out, room, 0};

    each_use(d, index, add_process, &l);
    return l.count;
}
