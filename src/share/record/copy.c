/* Which copies, fills and prefetches may be deferred: those whose memory the driver knows, and
 * small copies from pageable memory, which is copied into the record. Copies into pageable memory
 * are not deferred: when such a call returns, the program may read the memory. */
#include <stddef.h>

#include "gen/cuda_work.h"
#include "share/record/engine.h"

/* ---- questions about memory ------------------------------------------------------------------ */

static bool
ask_range(struct hed_recorder *r, CUdeviceptr p, CUdeviceptr *base, size_t *size)
{
    *base = 0;
    *size = 0;
    return hed_call(r->next, cuMemGetAddressRange_v2, .pbase = base, .psize = size, .dptr = p) ==
           CUDA_SUCCESS;
}

bool
hed_record_is_device(struct hed_recorder *r, CUdeviceptr p, size_t size)
{
    CUdeviceptr base;
    size_t whole;

    return p && size && ask_range(r, p, &base, &whole) && p >= base && size <= whole &&
           p - base <= whole - size;
}

bool
hed_record_is_allocation(struct hed_recorder *r, CUdeviceptr p)
{
    CUdeviceptr base;
    size_t whole;

    return p && ask_range(r, p, &base, &whole) && base == p && whole;
}

/* What the driver says about an address; 0 if it does not know it. */
static unsigned
ask_about(struct hed_recorder *r, CUdeviceptr p, CUpointer_attribute attribute)
{
    unsigned value = 0;

    return hed_call(r->next, cuPointerGetAttribute, .data = &value, .attribute = attribute,
                    .ptr = p) == CUDA_SUCCESS
               ? value
               : 0;
}

/* The type of the memory; 0: the driver does not know it. */
static unsigned
ask_memory_type(struct hed_recorder *r, CUdeviceptr p)
{
    return ask_about(r, p, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
}

bool
hed_record_is_pinned(struct hed_recorder *r, CUdeviceptr p, size_t size)
{
    return p && size && ask_memory_type(r, p) == CU_MEMORYTYPE_HOST &&
           ask_memory_type(r, p + size - 1) == CU_MEMORYTYPE_HOST;
}

/* ---- copies in one dimension ----------------------------------------------------------------- */

/* A copy from host memory. `at` is the offset of the pointer to it in the arguments. */
static bool
examine_host_source(struct hed_recorder *r, struct hed_record_candidate *t, const void *p,
                    size_t size, size_t at)
{
    const CUdeviceptr address = (CUdeviceptr)(uintptr_t)p;

    if (hed_record_is_pinned(r, address, size))
        return true;
    if (!p || size > HED_RECORD_INLINE || ask_memory_type(r, address) != 0)
        return false;
    t->data = p;
    t->size = size;
    t->data_at = at;
    return true;
}

static bool
is_device_or_pinned(struct hed_recorder *r, CUdeviceptr p, size_t size)
{
    return hed_record_is_device(r, p, size) || hed_record_is_pinned(r, p, size);
}

/* A copy between addresses of any kind. */
static bool
examine_copy_any(struct hed_recorder *r, struct hed_record_candidate *t,
                 const struct hed_record_roles *a)
{
    struct hed_extent extents[HED_CUDA_EXTENTS];
    const struct hed_extent *to = &extents[0];
    const struct hed_extent *from = &extents[1];

    (void)hed_cuda_extents(t->id, t->args, extents);
    if (is_device_or_pinned(r, from->at, from->count))
        return is_device_or_pinned(r, to->at, to->count);
    return hed_record_is_device(r, to->at, to->count) &&
           examine_host_source(r, t, (const void *)(uintptr_t)from->at, from->count,
                               (size_t)from->offset);
}

/* ---- copies in two and three dimensions ------------------------------------------------------ */

/* The bytes from the first to the last of `lines` lines of `width` bytes that are `pitch` apart.
 * False: there are none, or too many for any memory. */
static bool
lines_size(size_t width, size_t lines, size_t pitch, size_t *out)
{
    size_t before;

    if (!width || !lines || (lines > 1 && pitch < width) ||
        __builtin_mul_overflow(lines - 1, pitch, &before))
        return false;
    return !__builtin_add_overflow(before, width, out);
}

/* One side of a copy. Copies of arrays and pageable memory are not deferred. */
static bool
examine_side(struct hed_recorder *r, CUmemorytype type, const void *host, CUdeviceptr device,
             size_t skip, size_t size)
{
    const CUdeviceptr p = type == CU_MEMORYTYPE_HOST ? (CUdeviceptr)(uintptr_t)host : device;
    CUdeviceptr at;

    if (!p || __builtin_add_overflow(p, skip, &at))
        return false;
    if (type == CU_MEMORYTYPE_HOST)
        return hed_record_is_pinned(r, at, size);
    if (type == CU_MEMORYTYPE_DEVICE)
        return hed_record_is_device(r, at, size);
    return type == CU_MEMORYTYPE_UNIFIED && is_device_or_pinned(r, at, size);
}

static bool
offset_of_start(size_t x, size_t y, size_t pitch, size_t *out)
{
    size_t lines;

    return !__builtin_mul_overflow(y, pitch, &lines) && !__builtin_add_overflow(lines, x, out);
}

/* The description of a copy travels with the record. */
static void
set_description(struct hed_record_candidate *t, const struct hed_record_roles *a, const void *copy,
                size_t size)
{
    t->data = copy;
    t->size = size;
    t->data_at = (size_t)((const char *)a->at - (const char *)t->args);
}

static bool
examine_copy_2d(struct hed_recorder *r, struct hed_record_candidate *t,
                const struct hed_record_roles *a)
{
    const CUDA_MEMCPY2D_v2 *c = a->copy_2d;
    size_t from;
    size_t to;
    size_t src_skip;
    size_t dst_skip;

    if (!c || !lines_size(c->WidthInBytes, c->Height, c->srcPitch, &from) ||
        !lines_size(c->WidthInBytes, c->Height, c->dstPitch, &to) ||
        !offset_of_start(c->srcXInBytes, c->srcY, c->srcPitch, &src_skip) ||
        !offset_of_start(c->dstXInBytes, c->dstY, c->dstPitch, &dst_skip))
        return false;
    set_description(t, a, c, sizeof *c);
    /* The device limits pitches, so a pitch is part of the kind. */
    t->kind = hed_record_mix(hed_record_mix(t->id, c->srcPitch), c->dstPitch);
    return examine_side(r, c->srcMemoryType, c->srcHost, c->srcDevice, src_skip, from) &&
           examine_side(r, c->dstMemoryType, c->dstHost, c->dstDevice, dst_skip, to);
}

/* Copies in three dimensions: only without offsets, and only from device to device. */
static bool
examine_copy_3d(struct hed_recorder *r, struct hed_record_candidate *t,
                const struct hed_record_roles *a)
{
    const CUDA_MEMCPY3D_v2 *c = a->copy_3d;
    size_t planes[2];
    size_t from;
    size_t to;

    if (!c || c->srcMemoryType != CU_MEMORYTYPE_DEVICE || c->dstMemoryType != CU_MEMORYTYPE_DEVICE)
        return false;
    if (c->srcXInBytes || c->srcY || c->srcZ || c->dstXInBytes || c->dstY || c->dstZ || c->srcLOD ||
        c->dstLOD || c->reserved0 || c->reserved1 || c->srcHeight < c->Height ||
        c->dstHeight < c->Height || !c->Height || !c->Depth || c->srcPitch < c->WidthInBytes ||
        c->dstPitch < c->WidthInBytes)
        return false;
    if (__builtin_mul_overflow(c->srcHeight, c->Depth, &planes[0]) ||
        __builtin_mul_overflow(c->dstHeight, c->Depth, &planes[1]) ||
        !lines_size(c->WidthInBytes, planes[0], c->srcPitch, &from) ||
        !lines_size(c->WidthInBytes, planes[1], c->dstPitch, &to))
        return false;
    set_description(t, a, c, sizeof *c);
    t->kind = hed_record_mix(hed_record_mix(t->id, c->srcPitch), c->dstPitch);
    return hed_record_is_device(r, c->srcDevice, from) && hed_record_is_device(r, c->dstDevice, to);
}

/* ---- prefetches ------------------------------------------------------------------------------ */

static bool
is_managed(struct hed_recorder *r, CUdeviceptr p, size_t size)
{
    return hed_record_is_device(r, p, size) && ask_about(r, p, CU_POINTER_ATTRIBUTE_IS_MANAGED);
}

/* The destination is part of the kind: the driver decides whether it can be prefetched to. */
static bool
examine_prefetch(struct hed_recorder *r, struct hed_record_candidate *t,
                 const struct hed_record_roles *a)
{
    t->kind = hed_record_mix(t->id, (uint64_t)a->where << 32 | a->flags);
    t->kind = hed_record_mix(t->kind, (uint32_t)a->device);
    return is_managed(r, a->address, a->bytes);
}

/* ---- copies and fills of ranges -------------------------------------------------------------- */

/* One range of memory that a copy or a fill touches. */
static bool
examine_extent(struct hed_recorder *r, struct hed_record_candidate *t, const struct hed_extent *e,
               bool is_written)
{
    uint64_t bytes;

    if (!hed_extent_bytes(e, &bytes) || bytes == 0)
        return false;
    /* The device limits pitches, so a pitch is part of the kind. */
    if (e->pitch)
        t->kind = hed_record_mix(t->id, e->pitch);
    if (!e->host)
        return e->at % e->element == 0 && e->pitch % e->element == 0 &&
               hed_record_is_device(r, e->at, bytes);
    if (is_written)
        return hed_record_is_pinned(r, e->at, bytes);
    return examine_host_source(r, t, (const void *)(uintptr_t)e->at, bytes, (size_t)e->offset);
}

static bool
examine_ranges(struct hed_recorder *r, struct hed_record_candidate *t,
               const struct hed_record_roles *a)
{
    struct hed_extent extents[HED_CUDA_EXTENTS];
    const unsigned count = hed_cuda_extents(t->id, t->args, extents);

    /* CUDA's copies and fills name their destination first. */
    for (unsigned i = 0; i < count; i++)
        if (!examine_extent(r, t, &extents[i], i == 0))
            return false;
    return count > 0;
}

bool
hed_record_examine_copy(struct hed_recorder *r, struct hed_record_candidate *t,
                        const struct hed_record_roles *a)
{
    if (a->copy_2d)
        return examine_copy_2d(r, t, a);
    if (a->copy_3d)
        return examine_copy_3d(r, t, a);
    if (a->any)
        return examine_copy_any(r, t, a);
    return a->prefetch ? examine_prefetch(r, t, a) : examine_ranges(r, t, a);
}
