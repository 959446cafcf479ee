/* Mipmapped arrays: levels, each half the size of the one before. The levels are arrays in one
 * piece of memory. */
#include <stdlib.h>

#include "base/number.h"
#include "driver/memory/array.h"
#include "driver/memory/memory_calls.h"
#include "driver/memory/memory_index.h"

static size_t
half_size(size_t size)
{
    return size > 1 ? size / 2 : size; /* 0 stays 0: there is no such dimension */
}

/* The next smaller level. Layers and faces are not halved. */
static CUDA_ARRAY3D_DESCRIPTOR_v2
next_level(const CUDA_ARRAY3D_DESCRIPTOR_v2 *g)
{
    CUDA_ARRAY3D_DESCRIPTOR_v2 next = *g;

    next.Width = half_size(g->Width);
    next.Height = half_size(g->Height);
    if (!(g->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)))
        next.Depth = half_size(g->Depth);
    return next;
}

/* cuda.h: "This value is clamped to the range [1, 1 + floor(log2(max(width, height, depth)))]" */
static unsigned
clamp_levels(const CUDA_ARRAY3D_DESCRIPTOR_v2 *g, unsigned asked)
{
    CUDA_ARRAY3D_DESCRIPTOR_v2 level = *g;
    const bool has_depth = !(g->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP));
    unsigned most = 1;

    while (most < HED_MIPMAP_LEVELS &&
           (level.Width > 1 || level.Height > 1 || (has_depth && level.Depth > 1))) {
        level = next_level(&level);
        most++;
    }
    if (asked == 0)
        return 1;
    return asked < most ? asked : most;
}

static uint64_t
level_bytes(const CUDA_ARRAY3D_DESCRIPTOR_v2 *g, const struct hed_format *f)
{
    struct hed_texels image;

    return hed_round_up(hed_array_lay_out(g, f, 0, &image), HED_LEVEL_ALIGN);
}

static void
destroy_mipmap(struct hed_object *o)
{
    free(o);
}

/* A mipmap with a handle, but without memory yet. Its first m->levels levels have handles too. */
static struct hed_mipmap *
add_mipmap(struct hed_context *c, const CUDA_ARRAY3D_DESCRIPTOR_v2 *g, const struct hed_format *f,
           unsigned levels)
{
    struct hed_mipmap *m = calloc(1, sizeof *m);
    CUDA_ARRAY3D_DESCRIPTOR_v2 level = *g;

    if (!m)
        return NULL;
    m->object.destroy = destroy_mipmap;
    m->driver = c->device->driver;
    m->device = c->device;
    m->given = *g;
    if (hed_handles_add(m->driver->handles, HED_KIND_MIPMAP, &m->object)) {
        free(m);
        return NULL;
    }
    for (; m->levels < levels; m->levels++) {
        const struct hed_array *a = hed_array_add(c, &level, f, true);

        if (!a)
            break;
        m->level[m->levels] = a->object.handle;
        level = next_level(&level);
    }
    return m;
}

CUresult
hed_soft_cuMipmappedArrayCreate(struct hed_layer *self, struct hed_cuMipmappedArrayCreate *a)
{
    struct hed_format format;
    struct hed_context *c;
    uint64_t bytes = 0;
    void *machine_state;
    CUresult r = hed_memory_begin(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->pHandle || !a->pMipmappedArrayDesc)
        return CUDA_ERROR_INVALID_VALUE;
    r = hed_array_check(c->device, a->pMipmappedArrayDesc, HED_cuMipmappedArrayCreate, &format);
    if (r != CUDA_SUCCESS)
        return r;

    const unsigned levels = clamp_levels(a->pMipmappedArrayDesc, a->numMipmapLevels);
    CUDA_ARRAY3D_DESCRIPTOR_v2 level = *a->pMipmappedArrayDesc;

    for (unsigned i = 0; i < levels; i++, level = next_level(&level))
        bytes += level_bytes(&level, &format);

    struct hed_mipmap *m = add_mipmap(c, a->pMipmappedArrayDesc, &format, levels);

    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;

    const uint64_t handle = m->object.handle;

    r = m->levels < levels
            ? CUDA_ERROR_OUT_OF_MEMORY
            : hed_machine_of(c, &machine_state)->mipmap_made(machine_state, c, m, bytes);
    if (r == CUDA_SUCCESS)
        *a->pHandle = (CUmipmappedArray)(uintptr_t)handle;
    else
        hed_array_forget(c->device->driver, handle);
    return r;
}

CUresult
hed_soft_cuMipmappedArrayGetLevel(struct hed_layer *self, struct hed_cuMipmappedArrayGetLevel *a)
{
    struct hed_context *c;
    CUresult r = hed_current_if_any(self, &c);

    if (r != CUDA_SUCCESS)
        return r;

    struct hed_mipmap *m = hed_mipmap_find(hed_driver_of(self), a->hMipmappedArray);

    if (!m)
        return CUDA_ERROR_INVALID_HANDLE;
    r = a->pLevelArray && a->level < m->levels ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        *a->pLevelArray = (CUarray)(uintptr_t)m->level[a->level];
    hed_object_put(&m->object);
    return r;
}

CUresult
hed_soft_cuMipmappedArrayDestroy(struct hed_layer *self, struct hed_cuMipmappedArrayDestroy *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_context *c;
    CUresult r = hed_memory_begin_free(self, &c);

    if (r != CUDA_SUCCESS)
        return r;

    struct hed_mipmap *m = hed_mipmap_find(d, a->hMipmappedArray);

    if (!m)
        return CUDA_ERROR_INVALID_HANDLE;
    r = hed_array_give(d, c, m->key);
    hed_object_put(&m->object);
    return r;
}

/* These calls are for sparse and unmapped arrays, which do not exist here: every mipmap is of the
 * wrong kind. */
static CUresult
not_sparse_mipmap(struct hed_layer *self, CUmipmappedArray handle)
{
    struct hed_context *c;
    const CUresult r = hed_current_if_any(self, &c);

    if (r != CUDA_SUCCESS)
        return r;

    struct hed_mipmap *m = hed_mipmap_find(hed_driver_of(self), handle);

    if (!m)
        return CUDA_ERROR_INVALID_HANDLE;
    hed_object_put(&m->object);
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult
hed_soft_cuMipmappedArrayGetMemoryRequirements(struct hed_layer *self,
                                               struct hed_cuMipmappedArrayGetMemoryRequirements *a)
{
    return not_sparse_mipmap(self, a->mipmap);
}

CUresult
hed_soft_cuMipmappedArrayGetSparseProperties(struct hed_layer *self,
                                             struct hed_cuMipmappedArrayGetSparseProperties *a)
{
    return not_sparse_mipmap(self, a->mipmap);
}
