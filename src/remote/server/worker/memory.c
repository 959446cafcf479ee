/* The memory at the arena's addresses, in the worker: HED_MSG_LEASE, HED_MSG_MAP, HED_MSG_UNMAP.
 * Host memory is in pinned.c.
 *
 * The client chooses the addresses, and the worker checks them: they are inside the arena and
 * multiples of the unit, nothing is mapped twice, nothing is unmapped that is not there, and no
 * more is mapped than was leased. Memory that is unmapped is not in use: the client has waited for
 * it. If it has not, only its own device context suffers.
 *
 * Invariant: left[i] plus the sizes of device i's blocks and physical memory equals this worker's
 * lease.
 */
#include "remote/server/worker/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/number.h"
#include "remote/server/lease_socket.h"

#define PHYSICALS_MAX (1u << 20)

/* The backend's own memory may follow the usable part of a device's share. */
bool
hed_memory_in_arena(const struct hed_worker *w, const struct hed_map *m, bool host, uint64_t unit)
{
    const uint64_t from = host ? hed_worker_host_base(w) : w->base;
    const uint64_t all = host ? w->usable : (uint64_t)w->device_shares * w->stride;

    if (!w->base || m->size == 0 || m->at < from || m->at - from >= all || m->at % unit ||
        m->size % unit)
        return false;

    const uint64_t offset = host ? m->at - from : (m->at - from) % w->stride;

    return offset <= w->usable && m->size <= w->usable - offset;
}

/* ---- the lease ------------------------------------------------------------------------------- */

static bool
is_client_device(const struct hed_worker *w, int device)
{
    return device >= 0 && device < w->device_count && device < HED_LEASE_SOCKET_DEVICES;
}

uint64_t
hed_memory_obtainable(struct hed_worker *w, int device)
{
    return is_client_device(w, device) ? hed_lease_obtainable(w, device) : UINT64_MAX;
}

int
hed_do_lease(struct hed_worker_channel *ch, struct hed_msg *m)
{
    const struct hed_lease *q = (const struct hed_lease *)m;
    struct hed_worker *w = ch->worker;
    struct hed_lease_answer a;
    CUresult r = CUDA_SUCCESS;

    memset(&a, 0, sizeof a);
    if (!is_client_device(w, q->device) || !w->memory || q->least > q->want)
        return HED_EFORMAT;

    uint64_t *left = &w->memory->left[q->device];

    if (q->give > *left)
        return HED_EFORMAT;
    if (q->give) {
        hed_lease_give(w, q->device, q->give);
        *left -= q->give;
    }
    if (q->want) {
        a.granted = hed_lease_take(w, q->device, q->want, q->least ? q->least : 1);
        *left += a.granted;
        r = a.granted ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
        if (a.granted)
            hed_worker_has_room(w);
    } else {
        a.granted = hed_memory_obtainable(w, q->device);
    }
    return m->flags & HED_MSG_WANTS_ANSWER ? hed_worker_answer_with(ch, m, (int)r, &a, sizeof a, 0)
                                           : 0;
}

/* ---- device memory --------------------------------------------------------------------------- */

/* Sets the access to a range for its own device and for all others that can reach it. */
static CUresult
set_access(struct hed_worker *w, uint64_t at, uint64_t size, int device, unsigned flags)
{
    CUmemAccessDesc_v1 desc[HED_LEASE_SOCKET_DEVICES];
    size_t count = 0;

    for (int i = 0; i < w->device_count && i < HED_LEASE_SOCKET_DEVICES; i++) {
        int can = i == device || device < 0;

        if (!can)
            (void)hed_worker_do(w, cuDeviceCanAccessPeer, .canAccessPeer = &can, .dev = i,
                                .peerDev = device);
        if (can)
            desc[count++] =
                (CUmemAccessDesc_v1){.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = i},
                                     .flags = (CUmemAccess_flags)flags};
    }
    return hed_worker_do(w, cuMemSetAccess, .ptr = at, .size = size, .desc = desc, .count = count);
}

static CUresult
create_backend_memory(struct hed_worker *w, int device, uint64_t size, uint64_t *real)
{
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp_v1 prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        /* Any of it may be shared with another client later. */
        .requestedHandleTypes = device >= 0 && w->capabilities & HED_CAN_SHARE
                                    ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
                                    : CU_MEM_HANDLE_TYPE_NONE,
        .location = {.type = device < 0 ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE,
                     .id = device < 0 ? 0 : device}};
    CUresult r = hed_worker_do(w, cuMemCreate, .handle = &handle, .size = size, .prop = &prop);

    if (r != CUDA_SUCCESS && r != CUDA_ERROR_OUT_OF_MEMORY && prop.requestedHandleTypes) {
        prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
        r = hed_worker_do(w, cuMemCreate, .handle = &handle, .size = size, .prop = &prop);
    }
    *real = handle;
    return r;
}

static CUresult
unmap_backend_memory(struct hed_worker *w, uint64_t at, uint64_t size)
{
    return hed_worker_do(w, cuMemUnmap, .ptr = at, .size = size);
}

/* The memory is freed with its mapping, since it has no other handle. */
static CUresult
map_backend_memory(struct hed_worker *w, int device, uint64_t at, uint64_t size)
{
    uint64_t physical;
    CUresult r = create_backend_memory(w, device, size, &physical);

    if (r != CUDA_SUCCESS)
        return r;
    r = hed_worker_do(w, cuMemMap, .ptr = at, .size = size, .handle = physical);
    (void)hed_worker_do(w, cuMemRelease, .handle = physical);
    if (r != CUDA_SUCCESS)
        return r;
    r = set_access(w, at, size, device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    if (r != CUDA_SUCCESS)
        (void)unmap_backend_memory(w, at, size);
    return r;
}

/* Memory that could not be mapped does not exist, but the client believes that it does. The failure
 * of its context will tell it. The client may use the addresses again after that, in another
 * context, so the memory is asked for once more when the failed one has ended. */
static int
map_device(struct hed_worker *w, const struct hed_map *m, CUresult *r)
{
    const struct hed_mapping p = {
        .at = m->at, .size = m->size, .kind = HED_MAPPING_BLOCK, .device = m->device};

    if (!is_client_device(w, m->device) || !hed_memory_in_arena(w, m, false, w->map_unit) ||
        m->size > w->memory->left[m->device])
        return HED_EFORMAT;

    const int err = hed_mapping_enter(w->memory, &p);

    if (err)
        return err;
    w->memory->left[m->device] -= m->size;
    if (!w->no_memory)
        *r = map_backend_memory(w, m->device, m->at, m->size);
    if (*r != CUDA_SUCCESS)
        hed_mapping_find(w->memory, m->at)->missing = true;
    return 0;
}

/* Memory of a device is not the client's any more. Other clients may still have what was offered
 * (`key`). */
static void
return_to_lease(struct hed_worker *w, int device, uint64_t size, const uint8_t *key)
{
    w->memory->taken = key ? hed_min(hed_share_withdraw(w, key), size) : 0;
    w->memory->left[device] += size - w->memory->taken;
}

static int
unmap_device(struct hed_worker *w, const struct hed_map *m, CUresult *r)
{
    struct hed_mapping p;

    if (hed_mapping_leave(w->memory, m->at, m->size, HED_MAPPING_BLOCK, &p) != 0)
        return HED_EFORMAT;
    if (!w->no_memory && !p.missing)
        *r = unmap_backend_memory(w, m->at, m->size);
    return_to_lease(w, p.device, p.size, p.offered ? p.key : NULL);
    return 0;
}

/* ---- physical memory ------------------------------------------------------------------------- */

static size_t
index_of_physical(const struct hed_worker_memory *m, uint64_t name)
{
    size_t low = 0, high = m->made_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (m->made[middle].name < name)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct hed_physical_made *
hed_physical_by_name(struct hed_worker_memory *m, uint64_t name)
{
    const size_t i = index_of_physical(m, name);

    return i < m->made_count && m->made[i].name == name ? &m->made[i] : NULL;
}

bool
hed_memory_take_host(struct hed_worker *w, uint64_t size)
{
    const uint64_t limit = w->start->host_limit;

    if ((limit && (w->memory->host > limit || size > limit - w->memory->host)) ||
        hed_lease_take(w, HED_LEASE_SOCKET_HOST, size, size) != size)
        return false;
    w->memory->host += size;
    return true;
}

void
hed_memory_give_host(struct hed_worker *w, uint64_t size)
{
    w->memory->host -= size;
    hed_lease_give(w, HED_LEASE_SOCKET_HOST, size);
}

/* Frees the memory if it has neither a name nor a mapping any more. */
static void
drop_physical(struct hed_worker *w, struct hed_physical_made *p)
{
    struct hed_worker_memory *m = w->memory;
    const size_t i = (size_t)(p - m->made);

    if (p->views || !p->released)
        return;
    if (p->opened)
        hed_share_close(w, p->key);
    else if (p->device >= 0)
        return_to_lease(w, p->device, p->size, p->offered ? p->key : NULL);
    else
        hed_memory_give_host(w, p->size);
    m->made_count--;
    memmove(&m->made[i], &m->made[i + 1], (m->made_count - i) * sizeof *p);
}

int
hed_physical_enter(struct hed_worker_memory *m, const struct hed_physical_made *p)
{
    const size_t i = index_of_physical(m, p->name);

    if (!hed_table_grow((void **)&m->made, m->made_count, &m->made_room, PHYSICALS_MAX, sizeof *p))
        return HED_ELIMIT;
    memmove(&m->made[i + 1], &m->made[i], (m->made_count - i) * sizeof *p);
    m->made[i] = *p;
    m->made_count++;
    return 0;
}

static int
make_physical(struct hed_worker *w, const struct hed_map *m, CUresult *r)
{
    struct hed_worker_memory *mem = w->memory;
    struct hed_physical_made p = {.name = m->physical, .size = m->size, .device = m->device};

    if ((m->device != -1 && !is_client_device(w, m->device)) || m->size == 0 ||
        m->size % w->map_unit || (m->device >= 0 && m->size > mem->left[m->device]) ||
        hed_physical_by_name(mem, m->physical))
        return HED_EFORMAT;
    if (!hed_table_grow((void **)&mem->made, mem->made_count, &mem->made_room, PHYSICALS_MAX,
                        sizeof p))
        return HED_ELIMIT;
    if (m->device < 0 && !hed_memory_take_host(w, m->size)) {
        *r = CUDA_ERROR_OUT_OF_MEMORY;
        return 0;
    }
    if (!w->no_memory)
        *r = create_backend_memory(w, m->device, m->size, &p.real);
    if (*r != CUDA_SUCCESS) {
        if (m->device < 0)
            hed_memory_give_host(w, m->size);
        return 0;
    }
    if (m->device >= 0)
        mem->left[m->device] -= m->size;
    return hed_physical_enter(mem, &p); /* there is room */
}

int
hed_memory_missing(const struct hed_worker *w)
{
    /* Relaxed: this thread, or that of an earlier ticket, has written it. */
    return atomic_load_explicit(&w->failed, memory_order_relaxed) ? 0 : HED_EFORMAT;
}

static int
release_physical(struct hed_worker *w, const struct hed_map *m, CUresult *r)
{
    struct hed_physical_made *p = hed_physical_by_name(w->memory, m->physical);

    if (!p || p->released)
        return hed_memory_missing(w);
    if (!w->no_memory)
        *r = hed_worker_do(w, cuMemRelease, .handle = p->real);
    p->released = true;
    drop_physical(w, p);
    return 0;
}

static int
map_view(struct hed_worker *w, const struct hed_map *m, CUresult *r)
{
    struct hed_physical_made *p = hed_physical_by_name(w->memory, m->physical);
    const struct hed_mapping new = {.at = m->at,
                                    .size = m->size,
                                    .kind = HED_MAPPING_VIEW,
                                    .device = p ? p->device : -1,
                                    .physical = m->physical};

    if (!p || p->released)
        return hed_memory_missing(w);
    if (m->size != p->size || (!hed_memory_in_arena(w, m, false, w->map_unit) &&
                               !hed_memory_in_arena(w, m, true, w->map_unit)))
        return HED_EFORMAT;

    const int err = hed_mapping_enter(w->memory, &new);

    if (err)
        return err;
    p->views++;
    if (!w->no_memory)
        *r = hed_worker_do(w, cuMemMap, .ptr = m->at, .size = m->size, .handle = p->real);
    return 0;
}

static int
unmap_view(struct hed_worker *w, const struct hed_map *m, CUresult *r)
{
    struct hed_mapping old;
    struct hed_physical_made *p;

    if (hed_mapping_leave(w->memory, m->at, m->size, HED_MAPPING_VIEW, &old) != 0)
        return hed_memory_missing(w);
    if (!w->no_memory)
        *r = hed_worker_do(w, cuMemUnmap, .ptr = m->at, .size = m->size);
    p = hed_physical_by_name(w->memory, old.physical);
    if (p) {
        p->views--;
        drop_physical(w, p);
    }
    return 0;
}

static int
change_access(struct hed_worker *w, const struct hed_map *m, CUresult *r)
{
    const struct hed_mapping *p = hed_mapping_find(w->memory, m->at);

    if (!p || p->kind != HED_MAPPING_VIEW || p->at != m->at || p->size != m->size)
        return hed_memory_missing(w);
    if (m->access != CU_MEM_ACCESS_FLAGS_PROT_NONE && m->access != CU_MEM_ACCESS_FLAGS_PROT_READ &&
        m->access != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return HED_EFORMAT;
    if (!w->no_memory)
        *r = set_access(w, m->at, m->size, p->device, m->access);
    return 0;
}

/* ---- after a context has ended --------------------------------------------------------------- */

bool
hed_memory_restore(struct hed_worker *w, uint64_t context)
{
    CUresult r = CUDA_SUCCESS;

    for (size_t i = 0; w->memory && !w->no_memory && i < w->memory->count; i++) {
        struct hed_mapping *p = &w->memory->mappings[i];

        if (p->kind == HED_MAPPING_HOST) {
            r = hed_pinned_register(w, p->at, p->size);
            if (r == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
                r = CUDA_SUCCESS;
        } else if (p->missing) {
            r = map_backend_memory(w, p->device, p->at, p->size);
            p->missing = r != CUDA_SUCCESS;
        }
        if (r == CUDA_ERROR_INVALID_CONTEXT || r == CUDA_ERROR_CONTEXT_IS_DESTROYED)
            return false;
        hed_worker_failed(w, context, r);
    }
    return true;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Sends the answer, or notes the failure of the context. */
static int
answer_mapping(struct hed_worker_channel *ch, const struct hed_msg *m, CUresult r)
{
    const uint64_t taken = ch->worker->memory->taken;
    const uint64_t offset = hed_pinned_offset(ch->worker, ((const struct hed_map *)m)->at);

    if (m->flags & HED_MSG_WANTS_ANSWER && m->kind == HED_MSG_UNMAP)
        return hed_worker_answer(ch, m, (int)r, &taken, sizeof taken);
    if (m->flags & HED_MSG_WANTS_ANSWER) /* of memory in a window, where it is */
        return hed_worker_answer(ch, m, (int)r, &offset, offset ? sizeof offset : 0);
    hed_worker_failed(ch->worker, m->context, r);
    return 0;
}

/* By enum hed_map_kind. */
typedef int (*map_fn)(struct hed_worker *w, const struct hed_map *m, CUresult *r);
static const map_fn makers[] = {[HED_MAP_DEVICE] = map_device,
                                [HED_MAP_HOST] = hed_pinned_map,
                                [HED_MAP_PHYSICAL] = make_physical,
                                [HED_MAP_VIEW] = map_view,
                                [HED_MAP_ACCESS] = change_access};
static const map_fn takers[] = {[HED_MAP_DEVICE] = unmap_device,
                                [HED_MAP_HOST] = hed_pinned_unmap,
                                [HED_MAP_PHYSICAL] = release_physical,
                                [HED_MAP_VIEW] = unmap_view};

static int
change_mapping(struct hed_worker_channel *ch, const struct hed_msg *msg, const map_fn *by_kind,
               size_t kinds)
{
    const struct hed_map *m = (const struct hed_map *)msg;
    CUresult r = CUDA_SUCCESS;

    if (!ch->worker->memory || m->kind >= kinds)
        return HED_EFORMAT;
    ch->worker->memory->taken = 0;

    const int err = by_kind[m->kind](ch->worker, m, &r);

    if (r != CUDA_SUCCESS)
        hed_warn(SERVER, "mapping or unmapping %llu bytes of kind %u failed with error %d",
                 (unsigned long long)m->size, m->kind, (int)r);
    return err ? err : answer_mapping(ch, msg, r);
}

int
hed_do_map(struct hed_worker_channel *ch, struct hed_msg *m)
{
    return change_mapping(ch, m, makers, sizeof makers / sizeof makers[0]);
}

int
hed_do_unmap(struct hed_worker_channel *ch, struct hed_msg *m)
{
    return change_mapping(ch, m, takers, sizeof takers / sizeof takers[0]);
}

int
hed_worker_memory_init(struct hed_worker *w, struct hed_why *why)
{
    struct hed_worker_memory *m = calloc(1, sizeof *m);

    if (!m) {
        hed_why_set(why, "not enough memory for the client's mappings");
        return HED_ENOMEM;
    }
    m->deferred = hed_deferred_copies_create();
    if (!m->deferred) {
        free(m);
        hed_why_set(why, "not enough memory for the client's mappings");
        return HED_ENOMEM;
    }
    w->memory = m;
    return hed_pinned_init(w, why);
}
