/* Memory behind the arena's addresses: mapping, the shared heap.
 *
 *   device's share   memory of the worker's device: a message, under the lease, without an answer
 *   host's share     shm: the heap, the same pages in both processes
 *                    a guest: pieces of its window, the same pages; the worker says where
 *                    sockets: memory of this process, and other memory at the same address there
 */
#include "remote/client/memory.h"
#include "remote/client/queue.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/err.h"
#include "base/log.h"
#include "base/number.h"
#include "driver/driver.h"

struct remote_physical {
    struct hed_physical_memory pub; /* must come first */
    uint64_t name;
    int device;  /* -1 for the host */
    bool opened; /* it is another program's, and in no lease (share.c) */
};

int
hed_remote_memory_init(struct hed_remote *r, struct hed_why *why)
{
    struct hed_remote_memory *m = calloc(1, sizeof *m);
    struct hed_remote_copies *c = calloc(1, sizeof *c);

    if (!m || !c) {
        hed_why_set(why, "not enough memory for a remote GPU's memory");
        free(m);
        free(c);
        return HED_ENOMEM;
    }
    hed_lock_init(&m->lock, HED_RANK_LEASE);
    hed_lock_init(&m->alike, HED_RANK_MIRRORS);
    (void)pthread_cond_init(&m->answered, NULL);
    hed_lock_init(&c->lock, HED_RANK_LEASE);
    (void)pthread_cond_init(&c->came, NULL);
    c->last = &c->first;
    r->memory = m;
    r->copies = c;
    return 0;
}

/* The device in whose share an address is; -1 for the host. */
static int
device_of_address(const struct hed_remote *r, uint64_t at)
{
    const uint64_t i = (at - r->base) / r->stride;

    return i < (uint64_t)r->device_count ? (int)i : -1;
}

uint64_t
hed_remote_usable(void *m)
{
    return hed_remote_of(m)->usable;
}

/* ---- messages -------------------------------------------------------------------------------- */

static int
send_map(struct hed_remote *r, enum hed_msg_kind kind, const struct hed_map *what, bool asks,
         uint64_t *offset)
{
    struct hed_remote_channel *channel;
    struct hed_map *m = hed_remote_begin(r, kind, sizeof *m, hed_remote_current(r), 0, 0, &channel);

    if (!m)
        return HED_EIO;
    m->kind = what->kind;
    m->device = what->device;
    m->at = what->at;
    m->size = what->size;
    m->physical = what->physical;
    m->access = what->access;
    m->head.flags = asks ? HED_MSG_WANTS_ANSWER : 0;

    const int err = hed_remote_end(channel, &m->head, sizeof *m);

    if (err || !asks)
        return err;

    const struct hed_answer *a = hed_remote_answer(channel);

    if (!a)
        return HED_EIO;
    if (a->result == CUDA_SUCCESS && offset) {
        if (a->head.size < sizeof *a + sizeof *offset)
            return HED_EFORMAT;
        memcpy(offset, a + 1, sizeof *offset);
    }
    return a->result == CUDA_SUCCESS ? 0 : HED_ENOMEM;
}

static int
send_access(struct hed_remote *r, uint64_t at, uint64_t size, unsigned access)
{
    const struct hed_map what = {
        .kind = HED_MAP_ACCESS, .device = -1, .at = at, .size = size, .access = access};

    return send_map(r, HED_MSG_MAP, &what, false, NULL);
}

/* Memory of the host is not under a lease, so this asks whether there is any. */
static int
send_mapping(struct hed_remote *r, const struct hed_remote_mapping *m)
{
    const struct hed_map what = {.kind = m->kind,
                                 .device = m->device < 0 ? -1 : r->devices[m->device].ordinal,
                                 .at = m->at,
                                 .size = m->size,
                                 .physical = m->physical};

    return send_map(r, HED_MSG_MAP, &what,
                    m->kind == HED_MAP_HOST || (m->kind == HED_MAP_PHYSICAL && m->device < 0),
                    NULL);
}

/* ---- host memory ----------------------------------------------------------------------------- */

static int
map_here(const struct hed_remote *r, uint64_t at, uint64_t size, uint64_t offset)
{
    const int shared = r->heap >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    void *p = mmap((void *)(uintptr_t)at, size, PROT_READ | PROT_WRITE,
                   shared | MAP_NORESERVE | MAP_FIXED, r->heap, (off_t)offset);

    return p == MAP_FAILED ? HED_ENOMEM : 0;
}

static void
unmap_here(uint64_t at, uint64_t size)
{
    void *p = mmap((void *)(uintptr_t)at, size, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

    if (p == MAP_FAILED) /* no more mappings: at least the memory cannot be used */
        (void)mprotect((void *)(uintptr_t)at, size, PROT_NONE);
}

/* In a guest: the worker chooses a piece of the window. */
static int
map_in_window(struct hed_remote *r, const struct hed_map *what)
{
    uint64_t offset = 0;
    int err = send_map(r, HED_MSG_MAP, what, true, &offset);

    if (err)
        return err;
    err = map_here(r, what->at, what->size, offset);
    if (err)
        (void)send_map(r, HED_MSG_UNMAP, what, false, NULL);
    return err;
}

/* Pinning may fail, and the worker may have a limit, so this waits for the answer. */
static int
map_pinned(struct hed_remote *r, uint64_t at, uint64_t size)
{
    const struct hed_map what = {.kind = HED_MAP_HOST, .device = -1, .at = at, .size = size};

    if (r->in_window)
        return map_in_window(r, &what);

    const uint64_t offset = r->heap >= 0 ? at - hed_remote_host_base(r) : 0;
    int err = hed_remote_heap_need(r, offset + size);

    if (!err)
        err = map_here(r, at, size, offset);
    if (err)
        return err;
    err = send_map(r, HED_MSG_MAP, &what, true, NULL);
    if (err)
        unmap_here(at, size);
    else
        hed_remote_mirror_made(r, at, size);
    return err;
}

bool
hed_remote_shares(void *m, uint64_t at, uint64_t size)
{
    const struct hed_remote *r = hed_remote_of(m);
    const uint64_t end = at >= hed_remote_host_base(r) && !r->shares_heap ? hed_remote_host_base(r)
                                                                          : r->base + r->size;

    return at >= r->base && at < end && size <= end - at;
}

/* ---- the machine's map and unmap ------------------------------------------------------------- */

int
hed_remote_map(void *machine, uint64_t at, uint64_t size)
{
    struct hed_remote *r = hed_remote_of(machine);
    const int device = device_of_address(r, at);

    const struct hed_remote_mapping what = {.kind = device < 0 ? HED_MAP_HOST : HED_MAP_DEVICE,
                                            .device = device,
                                            .at = at,
                                            .size = size};
    int err;

    if (device >= 0 && !hed_remote_lease_take(r, device, size))
        return hed_remote_lease_none(r);
    err = device < 0 ? map_pinned(r, at, size) : send_mapping(r, &what);
    return err ? err : hed_remote_mapping_add(r, &what);
}

/* The message goes first: any use of the returned lease comes behind it. If other programs can have
 * the memory, the worker says how much of it they keep. */
static void
unmap_leased(struct hed_remote *r, const struct hed_map *what, int device, bool offered)
{
    uint64_t taken = 0;

    if (send_map(r, HED_MSG_UNMAP, what, offered, offered ? &taken : NULL) != 0)
        return;
    taken = hed_min(taken, what->size); /* the worker is not trusted */
    if (taken)
        hed_remote_lease_taken(r, device, taken);
    hed_remote_lease_return(r, device, what->size - taken);
}

void
hed_remote_unmap(void *machine, uint64_t at, uint64_t size)
{
    struct hed_remote *r = hed_remote_of(machine);
    const int device = device_of_address(r, at);
    struct hed_map what = {.kind = HED_MAP_DEVICE, .device = -1, .at = at, .size = size};

    /* Unmapping a view of physical memory returns nothing to the lease. */
    if (hed_remote_mapping_remove(r, HED_MAP_VIEW, at)) {
        what.kind = HED_MAP_VIEW;
        (void)send_map(r, HED_MSG_UNMAP, &what, false, NULL);
        return;
    }
    if (device < 0) {
        (void)hed_remote_mapping_remove(r, HED_MAP_HOST, at);
        what.kind = HED_MAP_HOST;
        hed_remote_mirror_gone(r, at);
        unmap_here(at, size);
        (void)send_map(r, HED_MSG_UNMAP, &what, false, NULL);
        return;
    }
    what.device = r->devices[device].ordinal;
    hed_lock(&r->unmap_lock);

    const bool offered = hed_remote_mapping_remove_offered(r, HED_MAP_DEVICE, at);

    hed_unlock(&r->unmap_lock);
    unmap_leased(r, &what, device, offered);
}

/* ---- physical memory that the program creates ------------------------------------------------ */

uint64_t
hed_remote_physical_number(struct hed_remote *r)
{
    /* Relaxed: the names only have to differ. */
    return 1 + atomic_fetch_add_explicit(&r->memory->names, 1, memory_order_relaxed);
}

int
hed_remote_physical_adopt(struct hed_remote *r, uint64_t name, int device, uint64_t size,
                          struct hed_physical_memory **out)
{
    struct remote_physical *p = malloc(sizeof *p);
    const struct hed_map what = {.kind = HED_MAP_PHYSICAL, .size = size, .physical = name};

    if (!p || size == 0 || size % r->map_unit) {
        (void)send_map(r, HED_MSG_UNMAP, &what, false, NULL);
        free(p);
        return HED_ENOMEM;
    }
    *p = (struct remote_physical){.pub.size = size, .name = name, .device = device, .opened = true};
    /* Relaxed: a program that is held has no call under way. */
    atomic_fetch_add_explicit(&r->memory->opened, 1, memory_order_relaxed);
    atomic_store_explicit(&r->memory->shared, true, memory_order_relaxed);
    *out = &p->pub;
    return 0;
}

bool
hed_remote_has_shared(void *m)
{
    /* Relaxed: as where it is written. */
    return atomic_load_explicit(&hed_remote_of(m)->memory->shared, memory_order_relaxed);
}

int
hed_remote_physical_create(void *machine, int device, uint64_t size,
                           struct hed_physical_memory **out)
{
    struct hed_remote *r = hed_remote_of(machine);
    struct remote_physical *p = malloc(sizeof *p);

    if (!p)
        return HED_ENOMEM;
    *p = (struct remote_physical){
        .name = hed_remote_physical_number(r), .pub.size = size, .device = device};

    int err = device < 0 || hed_remote_lease_take(r, device, size) ? 0 : hed_remote_lease_none(r);

    const struct hed_remote_mapping what = {
        .kind = HED_MAP_PHYSICAL, .device = device, .size = size, .physical = p->name};

    if (!err)
        err = send_mapping(r, &what);
    if (!err)
        err = hed_remote_mapping_add(r, &what);
    if (err)
        free(p);
    else
        *out = &p->pub;
    return err;
}

uint64_t
hed_remote_physical_name(const struct hed_physical_memory *p)
{
    return ((const struct remote_physical *)p)->name;
}

void
hed_remote_physical_free(void *machine, struct hed_physical_memory *memory)
{
    struct hed_remote *r = hed_remote_of(machine);
    struct remote_physical *p = (struct remote_physical *)memory;
    const struct hed_map what = {.kind = HED_MAP_PHYSICAL,
                                 .device = p->device < 0 ? -1 : r->devices[p->device].ordinal,
                                 .size = p->pub.size,
                                 .physical = p->name};

    const bool offered = hed_remote_mapping_remove_offered(r, HED_MAP_PHYSICAL, p->name);

    if (p->device >= 0 && !p->opened)
        unmap_leased(r, &what, p->device, offered);
    else
        (void)send_map(r, HED_MSG_UNMAP, &what, false, NULL);
    if (p->opened) /* relaxed: as where it is counted */
        atomic_fetch_sub_explicit(&r->memory->opened, 1, memory_order_relaxed);
    free(p);
}

int
hed_remote_physical_map(void *machine, struct hed_physical_memory *p, uint64_t offset, uint64_t at,
                        uint64_t size)
{
    const uint64_t name = ((const struct remote_physical *)p)->name;
    struct hed_remote *r = hed_remote_of(machine);
    const struct hed_remote_mapping what = {
        .kind = HED_MAP_VIEW, .device = -1, .at = at, .size = size, .physical = name};
    int err = offset == 0 && size == p->size ? 0 : HED_ERANGE;

    if (!err)
        err = hed_remote_mapping_add(r, &what);
    if (!err)
        err = send_mapping(r, &what);
    return err;
}

int
hed_remote_protect(void *machine, uint64_t at, uint64_t size, bool readable, bool writable)
{
    const unsigned access = writable   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                            : readable ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                       : CU_MEM_ACCESS_FLAGS_PROT_NONE;

    hed_remote_mapping_access(hed_remote_of(machine), at, size, access);
    return send_access(hed_remote_of(machine), at, size, access);
}

/* ---- another worker -------------------------------------------------------------------------- */

/* To whom memory is told, and who has some of it already. */
struct mapping_again {
    struct hed_remote *remote;
    struct hed_remote *standby; /* may be NULL */
};

static int
map_again(void *arg, const struct hed_remote_mapping *m)
{
    const struct mapping_again *a = arg;
    struct hed_remote *r = a->remote;
    int err = 0;

    if (a->standby && m->kind == HED_MAP_DEVICE &&
        hed_remote_mapping_has(a->standby, m->kind, m->at, m->size))
        return 0;
    if (a->standby && m->kind == HED_MAP_HOST && hed_remote_mapping_same(a->standby, m))
        return 0;
    if ((m->kind == HED_MAP_DEVICE || m->kind == HED_MAP_PHYSICAL) && m->device >= 0 &&
        !hed_remote_lease_take(r, m->device, m->size))
        return hed_remote_lease_none(r);
    err = send_mapping(r, m);
    if (!err && m->kind == HED_MAP_VIEW && m->has_access)
        err = send_access(r, m->at, m->size, m->access);
    return err;
}

int
hed_remote_map_at_standby(struct hed_remote *standby, const struct hed_remote_mapping *m)
{
    const int err = send_mapping(standby, m);

    return err ? err : hed_remote_mapping_add(standby, m);
}

void
hed_remote_unmap_at_standby(struct hed_remote *standby, uint64_t at, uint64_t size)
{
    const struct hed_map what = {.kind = HED_MAP_HOST, .device = -1, .at = at, .size = size};

    (void)hed_remote_mapping_remove(standby, HED_MAP_HOST, at);
    (void)send_map(standby, HED_MSG_UNMAP, &what, false, NULL);
}

int
hed_remote_map_again(struct hed_remote *r, struct hed_remote *standby, struct hed_why *why)
{
    static const enum hed_map_kind order[] = {HED_MAP_PHYSICAL, HED_MAP_DEVICE, HED_MAP_HOST,
                                              HED_MAP_VIEW};
    struct mapping_again a = {r, standby};
    int err = hed_remote_heap_enter(r);

    for (size_t i = 0; i < sizeof order / sizeof *order && !err; i++)
        err = hed_remote_mappings_each(r, order[i], map_again, &a);
    if (!err)
        err = hed_remote_mirror_again(r);
    if (err == HED_ENOMEM)
        hed_why_set(why, "the server does not have as much memory as the program uses");
    else if (err)
        hed_why_set(why, "the program's memory could not be mapped: %s", hed_err_text(err));
    return err;
}
