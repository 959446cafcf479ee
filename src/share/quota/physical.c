/* Memory by handles (share/quota/engine.h). It is charged to its device from when it is made until
 * its last handle is released and its last mapping is removed.
 *
 * Memory that was imported is charged to the process that made it. Host memory is not charged.
 */
#include <stdlib.h>
#include <string.h>

#include "share/quota/engine.h"

struct quota_physical {
    struct quota_device *device;
    uint64_t bytes;
    uint64_t handle;
    uint32_t refs; /* handles; guarded by quota.lock, as is the rest */
    uint32_t maps; /* addresses and arrays */
};

/* Gives the memory back if nothing refers to it any more. The caller holds the lock. */
static void
physical_let_go(struct quota_physical *p)
{
    if (p->refs || p->maps)
        return;
    hed_quota_give(p->device, p->bytes);
    free(p);
}

static int
remember_physical(struct hed_quota *q, struct quota_physical *p)
{
    const struct quota_charge r = {.key = p->handle,
                                   .bytes = p->bytes,
                                   .device = p->device,
                                   .thing = p,
                                   .kind = QUOTA_PHYSICAL};

    return hed_quota_put(q, &r);
}

static CUresult
quota_do_physical_make(struct hed_layer *self, const struct quota_call *c)
{
    const bool counts = c->out.at && c->bytes && c->where == CU_MEM_LOCATION_TYPE_DEVICE;
    struct quota_device *d = counts ? hed_quota_device(self, c->device) : NULL;

    if (!d)
        return quota_next(self, c);

    struct quota_physical *p = calloc(1, sizeof *p);

    if (!p || !hed_quota_claim(self, d, c->bytes)) {
        free(p);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }

    CUresult r = quota_next(self, c);

    if (r == CUDA_SUCCESS) {
        *p = (struct quota_physical){d, c->bytes, hed_place_get(c->out), 1, 0};
        if (remember_physical(self->state, p) == 0)
            return r;
        (void)hed_call(self->next, cuMemRelease, .handle = p->handle);
        r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    hed_quota_give(d, c->bytes);
    free(p);
    return r;
}

HED_CUDA_MEMORY_PHYSICAL_MAKE(QUOTA_CALL)

/* Drops a handle before the call, because its value may be given to other memory right after. */
static struct quota_physical *
drop_handle(struct hed_quota *q, uint64_t handle)
{
    struct quota_physical *p = NULL;
    struct quota_charge r;

    hed_lock(&q->lock);
    if (hed_quota_peek(q, QUOTA_PHYSICAL, handle, &r)) {
        p = r.thing;
        p->maps++; /* keeps it until the call has returned */
        if (--p->refs == 0)
            (void)hed_quota_take(q, QUOTA_PHYSICAL, handle, &r);
    }
    hed_unlock(&q->lock);
    return p;
}

static CUresult
quota_do_physical_release(struct hed_layer *self, const struct quota_call *c)
{
    struct hed_quota *q = self->state;
    struct quota_physical *p = drop_handle(q, c->key);
    const CUresult r = quota_next(self, c);

    if (p) {
        hed_lock(&q->lock);
        p->maps--;
        if (r != CUDA_SUCCESS && p->refs++ == 0)
            (void)remember_physical(q, p);
        physical_let_go(p);
        hed_unlock(&q->lock);
    }
    return r;
}

HED_CUDA_MEMORY_PHYSICAL_RELEASE(QUOTA_CALL)

/* ---- mappings -------------------------------------------------------------------------------- */

/* The first mapping at or behind an address. */
static size_t
first_mapping_from(const struct hed_quota *q, uint64_t at)
{
    size_t low = 0;
    size_t high = q->mapping_count;

    while (low < high) {
        const size_t mid = low + (high - low) / 2;

        if (q->mappings[mid].at < at)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool
add_mapping(struct hed_quota *q, uint64_t at, uint64_t size, struct quota_physical *p)
{
    if (q->mapping_count == q->mapping_size) {
        const size_t n = q->mapping_size ? q->mapping_size * 2 : 64;
        struct quota_mapping *m = realloc(q->mappings, n * sizeof *m);

        if (!m)
            return false;
        q->mappings = m;
        q->mapping_size = n;
    }

    const size_t i = first_mapping_from(q, at);

    memmove(&q->mappings[i + 1], &q->mappings[i], (q->mapping_count - i) * sizeof *q->mappings);
    q->mappings[i] = (struct quota_mapping){at, size, p};
    q->mapping_count++;
    p->maps++;
    return true;
}

/* Drops the mappings in [at, at + size), or those of an array (size 0). */
static void
drop_mappings(struct hed_quota *q, uint64_t at, uint64_t size)
{
    size_t to;

    hed_lock(&q->lock);
    to = first_mapping_from(q, at);
    for (size_t i = to; i < q->mapping_count; i++) {
        const struct quota_mapping m = q->mappings[i];
        const bool array = m.size == 0;

        if (array == (size == 0) && (array ? m.at == at : m.at - at < size)) {
            m.physical->maps--;
            physical_let_go(m.physical);
        } else {
            q->mappings[to++] = m;
        }
    }
    q->mapping_count = to;
    hed_unlock(&q->lock);
}

/* Keeps physical memory during a call that may map it. NULL: it is not known. */
static struct quota_physical *
hold_physical(struct hed_quota *q, uint64_t handle)
{
    struct quota_physical *p = NULL;
    struct quota_charge r;

    hed_lock(&q->lock);
    if (hed_quota_peek(q, QUOTA_PHYSICAL, handle, &r)) {
        p = r.thing;
        p->maps++;
    }
    hed_unlock(&q->lock);
    return p;
}

/* After the call: remembers the mapping. If there is no memory for that, the physical memory stays
 * held: charged for too long, never for too short. */
static void
physical_mapped(struct hed_quota *q, struct quota_physical *p, uint64_t at, uint64_t size,
                bool done)
{
    if (!p)
        return;
    hed_lock(&q->lock);
    if (!done || add_mapping(q, at, size, p))
        p->maps--;
    physical_let_go(p);
    hed_unlock(&q->lock);
}

static CUresult
quota_do_physical_map(struct hed_layer *self, const struct quota_call *c)
{
    struct quota_physical *p = hold_physical(self->state, c->key);
    const CUresult r = quota_next(self, c);

    physical_mapped(self->state, p, c->at, c->bytes, r == CUDA_SUCCESS && c->bytes != 0);
    return r;
}

HED_CUDA_MEMORY_PHYSICAL_MAP(QUOTA_CALL)

static CUresult
quota_do_physical_unmap(struct hed_layer *self, const struct quota_call *c)
{
    const CUresult r = quota_next(self, c);

    if (r == CUDA_SUCCESS && c->bytes != 0)
        drop_mappings(self->state, c->at, c->bytes);
    return r;
}

HED_CUDA_MEMORY_PHYSICAL_UNMAP(QUOTA_CALL)

/* Memory that was mapped to an array is held until the array is destroyed: which of its tiles are
 * still mapped is not tracked. */
static CUresult
quota_do_physical_map_arrays(struct hed_layer *self, const struct quota_call *c)
{
    const CUresult r = quota_next(self, c);

    for (unsigned i = 0; r == CUDA_SUCCESS && c->maps && i < c->count; i++) {
        const CUarrayMapInfo_v1 *m = &c->maps[i];

        if (m->memOperationType == CU_MEM_OPERATION_TYPE_MAP)
            physical_mapped(self->state, hold_physical(self->state, m->memHandle.memHandle),
                            (uint64_t)(uintptr_t)m->resource.array, 0, true);
    }
    return r;
}

HED_CUDA_MEMORY_PHYSICAL_MAP_ARRAYS(QUOTA_CALL)

void
hed_quota_physical_array_gone(struct hed_quota *q, uint64_t array)
{
    hed_lock_brief(&q->lock);

    const bool any = q->mapping_count != 0;

    hed_unlock_brief(&q->lock);
    if (any)
        drop_mappings(q, array, 0);
}

/* Mapped memory gets one more handle to release. Its first one may have been released long ago. */
static CUresult
quota_do_physical_retain(struct hed_layer *self, const struct quota_call *c)
{
    struct hed_quota *q = self->state;
    const CUresult r = quota_next(self, c);

    if (r != CUDA_SUCCESS || !c->out.at)
        return r;
    hed_lock(&q->lock);
    for (size_t i = first_mapping_from(q, c->at + 1); i-- > 0;) {
        const struct quota_mapping *m = &q->mappings[i];

        if (m->size == 0)
            continue;
        if (c->at - m->at < m->size) {
            m->physical->handle = hed_place_get(c->out);
            if (m->physical->refs++ == 0)
                (void)remember_physical(q, m->physical);
        }
        break;
    }
    hed_unlock(&q->lock);
    return r;
}

HED_CUDA_MEMORY_PHYSICAL_RETAIN(QUOTA_CALL)
