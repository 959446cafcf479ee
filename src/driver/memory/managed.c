/* Managed memory: host memory that all devices see at the same address, charged to the device it
 * was allocated for. Nothing moves. Advice and prefetches are checked and remembered, so that a
 * program that asks gets back what it set. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "driver/memory/memory_calls.h"
#include "driver/memory/memory_index.h"
#include "driver/stream/stream.h"

struct place {
    CUmemLocationType type; /* INVALID: no location */
    int id;
};

struct advice {
    bool read_mostly;
    bool accessed_by_host;
    uint64_t accessed_by; /* one bit per device */
    struct place preferred, prefetched;
};

/* Pieces tile the allocation from its first byte to its last. */
struct piece {
    uint64_t end; /* bytes from the start of the allocation */
    struct advice advice;
};

struct pieces { /* hed_allocation.extra; NULL until the program says something */
    size_t count;
    struct piece at[];
};

static const struct advice no_advice = {
    .preferred = {CU_MEM_LOCATION_TYPE_INVALID, CU_DEVICE_INVALID},
    .prefetched = {CU_MEM_LOCATION_TYPE_INVALID, CU_DEVICE_INVALID}};

/* One piece of advice about a range; `what` says which member is used. */
struct saying {
    enum { READ_MOSTLY, PREFERRED, ACCESSED_BY, PREFETCHED } what;
    bool on;
    struct place place;
};

CUresult
hed_soft_cuMemAllocManaged(struct hed_layer *self, struct hed_cuMemAllocManaged *a)
{
    struct hed_context *c;
    uint64_t at;
    CUresult r = hed_memory_begin(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->dptr || a->bytesize == 0 ||
        (a->flags != CU_MEM_ATTACH_GLOBAL && a->flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    r = hed_memory_take_flags(c, HED_MEMORY_MANAGED, a->bytesize, 0, a->flags, &at);
    if (r == CUDA_SUCCESS) {
        /* Relaxed: a thread that uses the memory got its address from this call. */
        atomic_store_explicit(&hed_driver_of(self)->managed, true, memory_order_relaxed);
        *a->dptr = at;
    }
    return r == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_OUT_OF_MEMORY : r;
}

/* ---- advice about ranges --------------------------------------------------------------------- */

static void
apply_saying(struct advice *v, const struct saying *s)
{
    switch (s->what) {
    case READ_MOSTLY:
        v->read_mostly = s->on;
        break;
    case PREFERRED:
        v->preferred = s->on ? s->place : no_advice.preferred;
        break;
    case ACCESSED_BY:
        if (s->place.type != CU_MEM_LOCATION_TYPE_DEVICE)
            v->accessed_by_host = s->on;
        else if (s->on)
            v->accessed_by |= 1ull << s->place.id;
        else
            v->accessed_by &= ~(1ull << s->place.id);
        break;
    case PREFETCHED:
        v->prefetched = s->place;
        break;
    }
}

/* Adds a piece at the end, or extends the last one if it has the same advice. */
static void
push_piece(struct pieces *p, uint64_t end, const struct advice *v)
{
    struct piece *last = p->count ? &p->at[p->count - 1] : NULL;

    if (last && last->end >= end)
        return;
    if (last && memcmp(&last->advice, v, sizeof *v) == 0)
        last->end = end;
    else
        p->at[p->count++] = (struct piece){end, *v};
}

/* A copy of the pieces with advice added for [from, to); NULL if there is no memory. */
static struct pieces *
pieces_changed(const struct pieces *old, uint64_t size, uint64_t from, uint64_t to,
               const struct saying *s)
{
    const size_t count = old ? old->count : 1;
    struct pieces *p = calloc(1, sizeof *p + (count + 2) * sizeof p->at[0]);
    uint64_t begin = 0;

    if (!p)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        const uint64_t end = old ? old->at[i].end : size;
        struct advice v = old ? old->at[i].advice : no_advice;

        if (from > begin)
            push_piece(p, from < end ? from : end, &v);
        if (from < end && to > begin) {
            struct advice said = v;

            apply_saying(&said, s);
            push_piece(p, to < end ? to : end, &said);
        }
        push_piece(p, end, &v);
        begin = end;
    }
    return p;
}

/* The managed allocation that contains all of a range. */
static struct hed_allocation *
managed_locked(struct hed_driver *d, uint64_t at, uint64_t size)
{
    struct hed_allocation *m = hed_memory_in_locked(d->memory, HED_TREE_ALLOCATIONS, at);

    if (!m || m->kind != HED_MEMORY_MANAGED || size == 0 || size > m->size - (at - m->at))
        return NULL;
    return m;
}

static CUresult
say_about_range(struct hed_driver *d, uint64_t at, uint64_t size, const struct saying *s)
{
    CUresult r = CUDA_ERROR_INVALID_VALUE;

    hed_lock(&d->memory_lock);

    struct hed_allocation *m = managed_locked(d, at, size);

    if (m) {
        const uint64_t from = at - m->at;
        struct pieces *p = pieces_changed(m->extra, m->size, from, from + size, s);

        if (p) {
            free(m->extra);
            m->extra = p;
        }
        r = p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    hed_unlock(&d->memory_lock);
    return r;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* A location as a call names it. */
static CUresult
place_of_location(struct hed_driver *d, CUmemLocation_v1 l, struct place *out)
{
    switch (l.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        if (l.id < 0 || l.id >= d->device_count)
            return CUDA_ERROR_INVALID_DEVICE;
        *out = (struct place){l.type, l.id};
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST:
        *out = (struct place){l.type, CU_DEVICE_CPU};
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        if (l.id < 0)
            return CUDA_ERROR_INVALID_VALUE;
        *out = (struct place){l.type, l.id};
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        *out = (struct place){CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUmemLocation_v1
location_of(CUdevice device)
{
    if (device == CU_DEVICE_CPU)
        return (CUmemLocation_v1){CU_MEM_LOCATION_TYPE_HOST, 0};
    return (CUmemLocation_v1){CU_MEM_LOCATION_TYPE_DEVICE, device};
}

CUresult
hed_soft_cuMemAdvise_v2(struct hed_layer *self, struct hed_cuMemAdvise_v2 *a)
{
    struct saying s = {.on = a->advice == CU_MEM_ADVISE_SET_READ_MOSTLY ||
                             a->advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
                             a->advice == CU_MEM_ADVISE_SET_ACCESSED_BY};
    struct hed_context *c;
    CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    switch (a->advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
        s.what = READ_MOSTLY;
        break;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        r = place_of_location(c->device->driver, a->location, &s.place);
        s.what = PREFERRED;
        break;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        s.what = PREFERRED;
        break;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
        r = place_of_location(c->device->driver, a->location, &s.place);
        s.what = ACCESSED_BY;
        if (r == CUDA_SUCCESS && s.place.type == CU_MEM_LOCATION_TYPE_HOST_NUMA)
            r = CUDA_ERROR_INVALID_VALUE;
        break;
    default:
        r = CUDA_ERROR_INVALID_VALUE;
        break;
    }
    return r == CUDA_SUCCESS ? say_about_range(c->device->driver, a->devPtr, a->count, &s) : r;
}

CUresult
hed_soft_cuMemAdvise(struct hed_layer *self, struct hed_cuMemAdvise *a)
{
    return hed_soft_cuMemAdvise_v2(
        self, &(struct hed_cuMemAdvise_v2){.devPtr = a->devPtr,
                                           .count = a->count,
                                           .advice = a->advice,
                                           .location = location_of(a->device)});
}

/* Checks the stream of a call that puts nothing on it: it must exist and not be capturing. */
static CUresult
check_stream(struct hed_layer *self, CUstream handle, bool ptds)
{
    struct hed_stream *s;
    const CUresult r = hed_stream_begin(self, handle, ptds, &s, NULL);

    if (r != CUDA_SUCCESS)
        return r;

    /* Relaxed: the program orders the beginning of a capture and the use of the stream. */
    const bool captures = atomic_load_explicit(&s->capture, memory_order_relaxed) != NULL;

    hed_stream_put(s);
    return captures ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

static CUresult
prefetch_range(struct hed_driver *d, uint64_t at, size_t size, CUmemLocation_v1 to)
{
    struct saying s = {.what = PREFETCHED};
    const CUresult r = place_of_location(d, to, &s.place);

    return r == CUDA_SUCCESS ? say_about_range(d, at, size, &s) : r;
}

CUresult
hed_soft_cuMemPrefetchAsync_v2(struct hed_layer *self, struct hed_cuMemPrefetchAsync_v2 *a)
{
    CUresult r = check_stream(self, a->hStream, a->ptds);

    if (r == CUDA_SUCCESS && a->flags != 0)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r != CUDA_SUCCESS)
        return r;
    return prefetch_range(hed_driver_of(self), a->devPtr, a->count, a->location);
}

CUresult
hed_soft_cuMemPrefetchAsync(struct hed_layer *self, struct hed_cuMemPrefetchAsync *a)
{
    return hed_soft_cuMemPrefetchAsync_v2(
        self, &(struct hed_cuMemPrefetchAsync_v2){.devPtr = a->devPtr,
                                                  .count = a->count,
                                                  .location = location_of(a->dstDevice),
                                                  .hStream = a->hStream,
                                                  .ptds = a->ptds});
}

/* Are all ranges of a batch managed? */
static CUresult
check_batch(struct hed_driver *d, const CUdeviceptr *at, const size_t *sizes, size_t count,
            unsigned long long flags)
{
    bool ok = true;

    if (!at || !sizes || count == 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;

    hed_lock(&d->memory_lock);
    for (size_t i = 0; ok && i < count; i++)
        ok = managed_locked(d, at[i], sizes[i]) != NULL;
    hed_unlock(&d->memory_lock);
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult
hed_soft_cuMemPrefetchBatchAsync(struct hed_layer *self, struct hed_cuMemPrefetchBatchAsync *a)
{
    struct hed_driver *d = hed_driver_of(self);
    CUresult r = check_stream(self, a->hStream, a->ptds);
    size_t place = 0;

    if (r == CUDA_SUCCESS)
        r = check_batch(d, a->dptrs, a->sizes, a->count, a->flags);
    if (r != CUDA_SUCCESS)
        return r;
    if (!a->prefetchLocs || !a->prefetchLocIdxs || a->numPrefetchLocs == 0 ||
        a->numPrefetchLocs > a->count || a->prefetchLocIdxs[0] != 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 1; i < a->numPrefetchLocs; i++)
        if (a->prefetchLocIdxs[i] <= a->prefetchLocIdxs[i - 1] || a->prefetchLocIdxs[i] >= a->count)
            return CUDA_ERROR_INVALID_VALUE;
    /* A location applies from its index up to the next one's. */
    for (size_t i = 0; r == CUDA_SUCCESS && i < a->count; i++) {
        if (place + 1 < a->numPrefetchLocs && a->prefetchLocIdxs[place + 1] == i)
            place++;
        r = prefetch_range(d, a->dptrs[i], a->sizes[i], a->prefetchLocs[place]);
    }
    return r;
}

/* Discarded memory has undefined contents, so its old contents will do. */
CUresult
hed_soft_cuMemDiscardBatchAsync(struct hed_layer *self, struct hed_cuMemDiscardBatchAsync *a)
{
    const CUresult r = check_stream(self, a->hStream, a->ptds);

    if (r != CUDA_SUCCESS)
        return r;
    return check_batch(hed_driver_of(self), a->dptrs, a->sizes, a->count, a->flags);
}

CUresult
hed_soft_cuMemDiscardAndPrefetchBatchAsync(struct hed_layer *self,
                                           struct hed_cuMemDiscardAndPrefetchBatchAsync *a)
{
    return hed_soft_cuMemPrefetchBatchAsync(
        self, &(struct hed_cuMemPrefetchBatchAsync){.dptrs = a->dptrs,
                                                    .sizes = a->sizes,
                                                    .count = a->count,
                                                    .prefetchLocs = a->prefetchLocs,
                                                    .prefetchLocIdxs = a->prefetchLocIdxs,
                                                    .numPrefetchLocs = a->numPrefetchLocs,
                                                    .flags = a->flags,
                                                    .hStream = a->hStream,
                                                    .ptds = a->ptds});
}

/* ---- queries --------------------------------------------------------------------------------- */

static struct place
same_place(struct place a, struct place b)
{
    return a.type == b.type && a.id == b.id ? a : no_advice.preferred;
}

/* The advice that applies to all of [from, to). */
static struct advice
common_advice(const struct pieces *p, uint64_t from, uint64_t to)
{
    struct advice all = no_advice;
    uint64_t begin = 0;
    bool first = true;

    for (size_t i = 0; p && i < p->count && begin < to; begin = p->at[i++].end) {
        const struct advice *v = &p->at[i].advice;

        if (p->at[i].end <= from)
            continue;
        if (first) {
            all = *v;
        } else {
            all.read_mostly = all.read_mostly && v->read_mostly;
            all.accessed_by_host = all.accessed_by_host && v->accessed_by_host;
            all.accessed_by &= v->accessed_by;
            all.preferred = same_place(all.preferred, v->preferred);
            all.prefetched = same_place(all.prefetched, v->prefetched);
        }
        first = false;
    }
    return all;
}

/* A location as a device number; the host is CU_DEVICE_CPU wherever it is. */
static int
as_device(struct place p)
{
    return p.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ? CU_DEVICE_CPU : p.id;
}

static void
put_accessed_by(const struct advice *v, int *out, size_t count)
{
    size_t n = 0;

    for (int i = 0; i < HED_PROFILE_DEVICES_MAX && n < count; i++)
        if (v->accessed_by >> i & 1)
            out[n++] = i;
    if (v->accessed_by_host && n < count)
        out[n++] = CU_DEVICE_CPU;
    while (n < count)
        out[n++] = CU_DEVICE_INVALID;
}

static CUresult
get_attribute(struct hed_driver *d, void *data, size_t size, CUmem_range_attribute attribute,
              uint64_t at, size_t count)
{
    if (!data || size < sizeof(int) || size % sizeof(int) ||
        (attribute != CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY && size != sizeof(int)))
        return CUDA_ERROR_INVALID_VALUE;
    hed_lock(&d->memory_lock);

    const struct hed_allocation *m = managed_locked(d, at, count);
    const struct advice v = m ? common_advice(m->extra, at - m->at, at - m->at + count) : no_advice;

    hed_unlock(&d->memory_lock);
    if (!m)
        return CUDA_ERROR_INVALID_VALUE;

    const int answers[] = {
        [CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY] = v.read_mostly,
        [CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION] = as_device(v.preferred),
        [CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION] = as_device(v.prefetched),
        [CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE] = (int)v.preferred.type,
        [CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID] = v.preferred.id,
        [CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE] = (int)v.prefetched.type,
        [CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID] = v.prefetched.id,
    };

    if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY)
        put_accessed_by(&v, data, size / sizeof(int));
    else if (attribute >= 1 && attribute < sizeof answers / sizeof answers[0])
        memcpy(data, &answers[attribute], sizeof(int));
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult
hed_soft_cuMemRangeGetAttribute(struct hed_layer *self, struct hed_cuMemRangeGetAttribute *a)
{
    struct hed_context *c;
    const CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    return get_attribute(c->device->driver, a->data, a->dataSize, a->attribute, a->devPtr,
                         a->count);
}

CUresult
hed_soft_cuMemRangeGetAttributes(struct hed_layer *self, struct hed_cuMemRangeGetAttributes *a)
{
    struct hed_context *c;
    CUresult r = hed_current(self, &c);

    if (r == CUDA_SUCCESS && (!a->data || !a->dataSizes || !a->attributes || !a->numAttributes))
        r = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; r == CUDA_SUCCESS && i < a->numAttributes; i++)
        r = get_attribute(c->device->driver, a->data[i], a->dataSizes[i], a->attributes[i],
                          a->devPtr, a->count);
    return r;
}
