/* Arrays: creating, queries, destroying. See driver/memory/array.h.
 *
 * The machine gives an array memory and chooses the key under which it is in the index of
 * allocations: its address or, if the memory is not in this process, its handle, which is not the
 * address of any memory.
 */
#include "driver/memory/array.h"

#include <stdlib.h>

#include "base/number.h"
#include "core/stats.h"
#include "driver/memory/memory_calls.h"
#include "driver/memory/memory_index.h"

#define ROW_ALIGN 64 /* bytes; rows begin at multiples of this */
#define KNOWN_FLAGS                                                                      \
    (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |           \
     CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_COLOR_ATTACHMENT | CUDA_ARRAY3D_SPARSE | \
     CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_VIDEO_ENCODE_DECODE)
#define REFUSED_FLAGS \
    (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_VIDEO_ENCODE_DECODE)

/* ---- formats and shapes ---------------------------------------------------------------------- */

/* Formats that allow any number of channels. */
static bool
plain_format(CUarray_format format, struct hed_format *out)
{
    static const struct {
        CUarray_format format;
        uint8_t texel, bits;
    } plain[] = {
        {CU_AD_FORMAT_UNSIGNED_INT8, HED_TEXEL_UINT, 8},
        {CU_AD_FORMAT_UNSIGNED_INT16, HED_TEXEL_UINT, 16},
        {CU_AD_FORMAT_UNSIGNED_INT32, HED_TEXEL_UINT, 32},
        {CU_AD_FORMAT_SIGNED_INT8, HED_TEXEL_SINT, 8},
        {CU_AD_FORMAT_SIGNED_INT16, HED_TEXEL_SINT, 16},
        {CU_AD_FORMAT_SIGNED_INT32, HED_TEXEL_SINT, 32},
        {CU_AD_FORMAT_HALF, HED_TEXEL_FLOAT, 16},
        {CU_AD_FORMAT_FLOAT, HED_TEXEL_FLOAT, 32},
    };

    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        if (plain[i].format == format) {
            *out = (struct hed_format){.texel = plain[i].texel, .bits = plain[i].bits};
            return true;
        }
    }
    return false;
}

/* Formats that imply the number of channels: X1, X2, X4 of each, in this order. */
static bool
normalized_format(CUarray_format format, unsigned channels, struct hed_format *out)
{
    const unsigned i = (unsigned)format - CU_AD_FORMAT_UNORM_INT8X1;
    const unsigned group = i / 3;

    if (format < CU_AD_FORMAT_UNORM_INT8X1 || format > CU_AD_FORMAT_SNORM_INT16X4 ||
        channels != 1u << i % 3)
        return false;
    *out = (struct hed_format){.texel = group < 2 ? HED_TEXEL_UNORM : HED_TEXEL_SNORM,
                               .bits = group % 2 ? 16 : 8};
    return true;
}

bool
hed_format_of(CUarray_format format, unsigned channels, struct hed_format *out, bool *known)
{
    /* Block-compressed, planar and packed formats are in these ranges. */
    *known = (format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_YUV444_16bit_SemiPlanar) ||
             format == CU_AD_FORMAT_UNORM_INT_101010_2;
    if (!plain_format(format, out) && !normalized_format(format, channels, out))
        return false;
    *known = true;
    if (channels != 1 && channels != 2 && channels != 4) {
        *known = false;
        return false;
    }
    out->channels = (uint8_t)channels;
    out->bytes = (uint8_t)(channels * out->bits / 8);
    return true;
}

enum hed_shape
hed_array_shape(const CUDA_ARRAY3D_DESCRIPTOR_v2 *given)
{
    const bool layered = given->Flags & CUDA_ARRAY3D_LAYERED;

    if (given->Flags & CUDA_ARRAY3D_CUBEMAP)
        return layered ? HED_SHAPE_CUBE_LAYERED : HED_SHAPE_CUBE;
    if (layered)
        return given->Height ? HED_SHAPE_2D_LAYERED : HED_SHAPE_1D_LAYERED;
    if (given->Depth)
        return HED_SHAPE_3D;
    return given->Height ? HED_SHAPE_2D : HED_SHAPE_1D;
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Is a size within a limit of the device? A limit that the profile does not have is no limit. */
static bool
within_limit(const struct hed_device *dev, int attribute, size_t size)
{
    const struct hed_profile *p = &dev->info.profile;

    if (!(p->has_attribute[attribute / 64] >> attribute % 64 & 1) || p->attributes[attribute] <= 0)
        return size <= UINT32_MAX;
    return size <= (size_t)p->attributes[attribute];
}

/* The attributes that limit width, height and depth of each shape; 0: the previous one applies. */
static bool
array_fits(const struct hed_device *dev, const CUDA_ARRAY3D_DESCRIPTOR_v2 *g)
{
    static const int limits[][3] = {
        [HED_SHAPE_1D] = {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH},
        [HED_SHAPE_2D] = {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH,
                          CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT},
        [HED_SHAPE_3D] = {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH,
                          CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT,
                          CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH},
        [HED_SHAPE_1D_LAYERED] = {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH, 0,
                                  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS},
        [HED_SHAPE_2D_LAYERED] = {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH,
                                  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT,
                                  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS},
        [HED_SHAPE_CUBE] = {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH,
                            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH},
        [HED_SHAPE_CUBE_LAYERED] = {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH,
                                    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH,
                                    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS},
    };
    const int *limit = limits[hed_array_shape(g)];

    return within_limit(dev, limit[0], g->Width) &&
           (!limit[1] || within_limit(dev, limit[1], g->Height)) &&
           (!limit[2] || within_limit(dev, limit[2], g->Depth));
}

/* Do the sizes and flags describe a valid shape? */
static bool
has_shape(const CUDA_ARRAY3D_DESCRIPTOR_v2 *g)
{
    const bool layered = g->Flags & CUDA_ARRAY3D_LAYERED;

    if (g->Width == 0 || (g->Flags & ~KNOWN_FLAGS))
        return false;
    if (g->Flags & CUDA_ARRAY3D_CUBEMAP)
        return g->Width == g->Height && g->Depth > 0 &&
               (layered ? g->Depth % 6 == 0 : g->Depth == 6);
    if ((g->Flags & CUDA_ARRAY3D_TEXTURE_GATHER) && (g->Height == 0 || (g->Depth && !layered)))
        return false;
    return layered ? g->Depth > 0 : g->Depth == 0 || g->Height > 0;
}

CUresult
hed_array_check(const struct hed_device *dev, const CUDA_ARRAY3D_DESCRIPTOR_v2 *g,
                enum hed_cuda_call id, struct hed_format *format)
{
    bool known;

    if (!has_shape(g))
        return CUDA_ERROR_INVALID_VALUE;
    if (!hed_format_of(g->Format, g->NumChannels, format, &known)) {
        if (!known)
            return CUDA_ERROR_INVALID_VALUE;
        hed_stats_unsupported(HED_API_CUDA, id, "a compressed or planar format");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (g->Flags & REFUSED_FLAGS) {
        hed_stats_unsupported(HED_API_CUDA, id, "a sparse or unmapped array");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return array_fits(dev, g) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void
destroy_array(struct hed_object *o)
{
    free(o); /* of an array or a mipmap; the index of memory owns the memory */
}

struct hed_array *
hed_array_find(struct hed_driver *d, CUarray handle)
{
    return (struct hed_array *)hed_handles_get(d->handles, HED_KIND_ARRAY,
                                               (uint64_t)(uintptr_t)handle);
}

struct hed_mipmap *
hed_mipmap_find(struct hed_driver *d, CUmipmappedArray handle)
{
    return (struct hed_mipmap *)hed_handles_get(d->handles, HED_KIND_MIPMAP,
                                                (uint64_t)(uintptr_t)handle);
}

void
hed_array_forget(struct hed_driver *d, uint64_t handle)
{
    const enum hed_kind kind = hed_handle_kind(handle);
    struct hed_object *o = hed_handles_remove(d->handles, kind, handle);

    if (!o)
        return;
    if (kind == HED_KIND_MIPMAP) {
        const struct hed_mipmap *m = (const struct hed_mipmap *)o;

        for (unsigned i = 0; i < m->levels; i++) {
            struct hed_object *level = hed_handles_remove(d->handles, HED_KIND_ARRAY, m->level[i]);

            if (level)
                hed_object_put(level);
        }
    }
    hed_object_put(o);
}

void
hed_array_release(struct hed_driver *d, const struct hed_allocation *a)
{
    const uint64_t handle = (uint64_t)(uintptr_t)a->extra;

    d->machine->array_gone(d->machine_state, a, handle);
    if (d->handles && handle)
        hed_array_forget(d, handle);
}

void
hed_array_discharge(struct hed_driver *d, const struct hed_allocation *a)
{
    hed_lock(&d->memory_lock);
    hed_device_discharge(a->device, a->taken);
    hed_unlock(&d->memory_lock);
}

CUresult
hed_array_enter(struct hed_context *c, uint64_t handle, uint64_t bytes)
{
    struct hed_driver *d = c->device->driver;
    struct hed_allocation a = {.at = handle, .size = 1, .taken = bytes, .kind = HED_MEMORY_ARRAY};

    hed_memory_mark(&a, c);
    hed_lock(&d->memory_lock);

    const bool paid = hed_device_charge(c->device, bytes);

    hed_unlock(&d->memory_lock);

    const CUresult r = paid ? hed_memory_add(d, &a) : CUDA_ERROR_OUT_OF_MEMORY;

    if (paid && r != CUDA_SUCCESS) {
        hed_lock(&d->memory_lock);
        hed_device_discharge(c->device, bytes);
        hed_unlock(&d->memory_lock);
    }
    return r;
}

void
hed_array_leave(struct hed_context *c, uint64_t handle)
{
    /* It has no owner, so no object is destroyed. */
    (void)hed_memory_give(c->device->driver, HED_MEMORY_ARRAY, handle);
}

void
hed_array_own(struct hed_driver *d, uint64_t key, uint64_t handle)
{
    hed_lock(&d->memory_lock);

    struct hed_allocation *a = hed_memory_in_locked(d->memory, HED_TREE_ALLOCATIONS, key);

    if (a)
        a->extra = (void *)(uintptr_t)handle;
    hed_unlock(&d->memory_lock);
}

uint64_t
hed_array_lay_out(const CUDA_ARRAY3D_DESCRIPTOR_v2 *g, const struct hed_format *f, uint64_t at,
                  struct hed_texels *out)
{
    out->at = at;
    out->width = (uint32_t)g->Width;
    out->height = g->Height ? (uint32_t)g->Height : 1;
    out->depth = g->Depth ? (uint32_t)g->Depth : 1;
    out->pitch = hed_round_up((uint64_t)out->width * f->bytes, ROW_ALIGN);
    out->slice = out->pitch * out->height;
    return out->slice * out->depth;
}

struct hed_array *
hed_array_add(struct hed_context *c, const CUDA_ARRAY3D_DESCRIPTOR_v2 *g,
              const struct hed_format *f, bool is_level)
{
    struct hed_array *a = calloc(1, sizeof *a);

    if (!a)
        return NULL;
    a->object.destroy = destroy_array;
    a->driver = c->device->driver;
    a->device = c->device;
    a->given = *g;
    a->format = *f;
    a->is_level = is_level;
    (void)hed_array_lay_out(g, f, 0, &a->image);
    if (hed_handles_add(a->driver->handles, HED_KIND_ARRAY, &a->object)) {
        free(a);
        return NULL;
    }
    return a;
}

static CUresult
create_array(struct hed_layer *self, enum hed_cuda_call id, const CUDA_ARRAY3D_DESCRIPTOR_v2 *g,
             CUarray *out)
{
    struct hed_format format;
    struct hed_context *c;
    void *m;
    CUresult r = hed_memory_begin(self, &c);

    if (r == CUDA_SUCCESS && !out)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        r = hed_array_check(c->device, g, id, &format);
    if (r != CUDA_SUCCESS)
        return r;

    struct hed_array *a = hed_array_add(c, g, &format, false);

    if (!a)
        return CUDA_ERROR_OUT_OF_MEMORY;

    const uint64_t handle = a->object.handle;

    r = hed_machine_of(c, &m)->array_made(m, c, a, a->image.slice * a->image.depth);
    if (r == CUDA_SUCCESS)
        *out = (CUarray)(uintptr_t)handle;
    else
        hed_array_forget(c->device->driver, handle);
    return r;
}

#define DESCRIPTOR_2D(p)                                                   \
    (CUDA_ARRAY3D_DESCRIPTOR_v2)                                           \
    {                                                                      \
        .Width = (p)->Width, .Height = (p)->Height, .Format = (p)->Format, \
        .NumChannels = (p)->NumChannels                                    \
    }

static CUresult
soft_cuArrayCreate(struct hed_layer *self, struct hed_cuArrayCreate *a)
{
    if (!a->pAllocateArray)
        return CUDA_ERROR_INVALID_VALUE;
    return create_array(self, HED_cuArrayCreate, &DESCRIPTOR_2D(a->pAllocateArray), a->pHandle);
}

static CUresult
soft_cuArrayCreate_v2(struct hed_layer *self, struct hed_cuArrayCreate_v2 *a)
{
    if (!a->pAllocateArray)
        return CUDA_ERROR_INVALID_VALUE;
    return create_array(self, HED_cuArrayCreate_v2, &DESCRIPTOR_2D(a->pAllocateArray), a->pHandle);
}

static CUresult
soft_cuArray3DCreate(struct hed_layer *self, struct hed_cuArray3DCreate *a)
{
    if (!a->pAllocateArray)
        return CUDA_ERROR_INVALID_VALUE;

    CUDA_ARRAY3D_DESCRIPTOR_v2 g = DESCRIPTOR_2D(a->pAllocateArray);

    g.Depth = a->pAllocateArray->Depth;
    g.Flags = a->pAllocateArray->Flags;
    return create_array(self, HED_cuArray3DCreate, &g, a->pHandle);
}

static CUresult
soft_cuArray3DCreate_v2(struct hed_layer *self, struct hed_cuArray3DCreate_v2 *a)
{
    if (!a->pAllocateArray)
        return CUDA_ERROR_INVALID_VALUE;
    return create_array(self, HED_cuArray3DCreate_v2, a->pAllocateArray, a->pHandle);
}

CUresult
hed_array_give(struct hed_driver *d, struct hed_context *c, uint64_t key)
{
    struct hed_allocation a;
    CUresult r = CUDA_SUCCESS;
    void *m;

    if (!hed_memory_find(d, key, &a))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!c)
        c = hed_memory_owner(d, &a);
    if (c)
        r = hed_machine_of(c, &m)->array_quiesce(m, c, &a);

    const CUresult given = hed_memory_give(d, HED_MEMORY_ARRAY, key);

    return r != CUDA_SUCCESS ? r : given;
}

static CUresult
soft_cuArrayDestroy(struct hed_layer *self, struct hed_cuArrayDestroy *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_context *c;
    CUresult r = hed_memory_begin_free(self, &c);

    if (r != CUDA_SUCCESS)
        return r;

    struct hed_array *array = hed_array_find(d, a->hArray);

    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    /* A level belongs to its mipmap. NVIDIA's driver accepts the call and does nothing. */
    if (!array->is_level)
        r = hed_array_give(d, c, array->key);
    hed_object_put(&array->object);
    return r;
}

/* ---- queries --------------------------------------------------------------------------------- */

static CUresult
describe_array(struct hed_layer *self, CUarray handle, CUDA_ARRAY3D_DESCRIPTOR_v2 *out)
{
    struct hed_context *c;
    const CUresult r = hed_current_if_any(self, &c);

    if (r != CUDA_SUCCESS)
        return r;

    struct hed_array *array = hed_array_find(hed_driver_of(self), handle);

    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = array->given;
    hed_object_put(&array->object);
    return CUDA_SUCCESS;
}

/* Fills in *to, a descriptor of either type, from the one that the program gave. */
#define ANSWER_2D(to, g)                                                     \
    ((to)->Width = (unsigned)(g).Width, (to)->Height = (unsigned)(g).Height, \
     (to)->Format = (g).Format, (to)->NumChannels = (g).NumChannels)

static CUresult
soft_cuArrayGetDescriptor(struct hed_layer *self, struct hed_cuArrayGetDescriptor *a)
{
    CUDA_ARRAY3D_DESCRIPTOR_v2 g;
    const CUresult r = describe_array(self, a->hArray, &g);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->pArrayDescriptor)
        return CUDA_ERROR_INVALID_VALUE;
    ANSWER_2D(a->pArrayDescriptor, g);
    return CUDA_SUCCESS;
}

static CUresult
soft_cuArrayGetDescriptor_v2(struct hed_layer *self, struct hed_cuArrayGetDescriptor_v2 *a)
{
    CUDA_ARRAY3D_DESCRIPTOR_v2 g;
    const CUresult r = describe_array(self, a->hArray, &g);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->pArrayDescriptor)
        return CUDA_ERROR_INVALID_VALUE;
    ANSWER_2D(a->pArrayDescriptor, g);
    return CUDA_SUCCESS;
}

static CUresult
soft_cuArray3DGetDescriptor(struct hed_layer *self, struct hed_cuArray3DGetDescriptor *a)
{
    CUDA_ARRAY3D_DESCRIPTOR_v2 g;
    const CUresult r = describe_array(self, a->hArray, &g);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->pArrayDescriptor)
        return CUDA_ERROR_INVALID_VALUE;
    ANSWER_2D(a->pArrayDescriptor, g);
    a->pArrayDescriptor->Depth = (unsigned)g.Depth;
    a->pArrayDescriptor->Flags = g.Flags;
    return CUDA_SUCCESS;
}

static CUresult
soft_cuArray3DGetDescriptor_v2(struct hed_layer *self, struct hed_cuArray3DGetDescriptor_v2 *a)
{
    CUDA_ARRAY3D_DESCRIPTOR_v2 g;
    const CUresult r = describe_array(self, a->hArray, &g);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->pArrayDescriptor)
        return CUDA_ERROR_INVALID_VALUE;
    *a->pArrayDescriptor = g;
    return CUDA_SUCCESS;
}

/* These calls are for sparse, planar and unmapped arrays, which do not exist here: every array is
 * of the wrong kind. */
static CUresult
not_sparse_array(struct hed_layer *self, CUarray handle)
{
    CUDA_ARRAY3D_DESCRIPTOR_v2 g;
    const CUresult r = describe_array(self, handle, &g);

    return r == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : r;
}

static CUresult
soft_cuArrayGetMemoryRequirements(struct hed_layer *self,
                                  struct hed_cuArrayGetMemoryRequirements *a)
{
    return not_sparse_array(self, a->array);
}

static CUresult
soft_cuArrayGetSparseProperties(struct hed_layer *self, struct hed_cuArrayGetSparseProperties *a)
{
    return not_sparse_array(self, a->array);
}

static CUresult
soft_cuArrayGetPlane(struct hed_layer *self, struct hed_cuArrayGetPlane *a)
{
    return not_sparse_array(self, a->hArray);
}

const struct hed_cuda_ops hed_calls_array = {
    .cuArrayCreate = soft_cuArrayCreate,
    .cuArrayCreate_v2 = soft_cuArrayCreate_v2,
    .cuArray3DCreate = soft_cuArray3DCreate,
    .cuArray3DCreate_v2 = soft_cuArray3DCreate_v2,
    .cuArrayDestroy = soft_cuArrayDestroy,
    .cuArrayGetDescriptor = soft_cuArrayGetDescriptor,
    .cuArrayGetDescriptor_v2 = soft_cuArrayGetDescriptor_v2,
    .cuArray3DGetDescriptor = soft_cuArray3DGetDescriptor,
    .cuArray3DGetDescriptor_v2 = soft_cuArray3DGetDescriptor_v2,
    .cuArrayGetMemoryRequirements = soft_cuArrayGetMemoryRequirements,
    .cuArrayGetSparseProperties = soft_cuArrayGetSparseProperties,
    .cuArrayGetPlane = soft_cuArrayGetPlane,
    .cuMipmappedArrayCreate = hed_soft_cuMipmappedArrayCreate,
    .cuMipmappedArrayGetLevel = hed_soft_cuMipmappedArrayGetLevel,
    .cuMipmappedArrayDestroy = hed_soft_cuMipmappedArrayDestroy,
    .cuMipmappedArrayGetMemoryRequirements = hed_soft_cuMipmappedArrayGetMemoryRequirements,
    .cuMipmappedArrayGetSparseProperties = hed_soft_cuMipmappedArrayGetSparseProperties,
    .cuTexObjectCreate = hed_soft_cuTexObjectCreate,
    .cuTexObjectDestroy = hed_soft_cuTexObjectDestroy,
    .cuTexObjectGetResourceDesc = hed_soft_cuTexObjectGetResourceDesc,
    .cuTexObjectGetTextureDesc = hed_soft_cuTexObjectGetTextureDesc,
    .cuTexObjectGetResourceViewDesc = hed_soft_cuTexObjectGetResourceViewDesc,
    .cuSurfObjectCreate = hed_soft_cuSurfObjectCreate,
    .cuSurfObjectDestroy = hed_soft_cuSurfObjectDestroy,
    .cuSurfObjectGetResourceDesc = hed_soft_cuSurfObjectGetResourceDesc,
};
