/* Texture and surface objects. See memory/array.h.
 *
 * The program gets the value that the machine has given the object. The description that it gave is
 * kept in the index for queries, under a key that the machine chooses too.
 */
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "driver/memory/array.h"
#include "driver/memory/memory_calls.h"
#include "driver/memory/memory_index.h"

/* Used if the profile does not have the attribute. */
#define TEXTURE_ALIGN 512
#define TEXTURE_PITCH_ALIGN 32
#define LINEAR_WIDTH (1 << 28)

struct object { /* hed_allocation.extra */
    bool is_surface;
    struct hed_texture_given given;
};

static uint64_t
texture_limit(const struct hed_device *dev, int number, int otherwise)
{
    const struct hed_profile *p = &dev->info.profile;

    if (!(p->has_attribute[number / 64] >> number % 64 & 1) || p->attributes[number] <= 0)
        return (uint64_t)otherwise;
    return (uint64_t)p->attributes[number];
}

uint64_t
hed_texture_align(const struct hed_device *dev)
{
    return texture_limit(dev, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, TEXTURE_ALIGN);
}

/* ---- what is sampled ------------------------------------------------------------------------- */

static CUresult
from_array(struct hed_driver *d, CUarray handle, struct hed_texture *t)
{
    struct hed_array *a = hed_array_find(d, handle);

    if (!a)
        return CUDA_ERROR_INVALID_VALUE;
    t->shape = (uint8_t)hed_array_shape(&a->given);
    t->format = a->format;
    t->levels = 1;
    t->level[0] = a->image;
    hed_object_put(&a->object);
    return CUDA_SUCCESS;
}

static CUresult
from_mipmap(struct hed_driver *d, CUmipmappedArray handle, struct hed_texture *t)
{
    struct hed_mipmap *m = hed_mipmap_find(d, handle);
    CUresult r = m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

    for (unsigned i = 0; r == CUDA_SUCCESS && i < m->levels; i++) {
        struct hed_array *a = hed_array_find(d, (CUarray)(uintptr_t)m->level[i]);

        if (a) {
            t->format = a->format;
            t->level[i] = a->image;
            hed_object_put(&a->object);
        } else {
            r = CUDA_ERROR_INVALID_VALUE; /* it is being destroyed */
        }
    }
    if (r == CUDA_SUCCESS) {
        t->shape = (uint8_t)hed_array_shape(&m->given);
        t->levels = (uint8_t)m->levels;
    }
    if (m)
        hed_object_put(&m->object);
    return r;
}

/* Checks format and address of linear memory. NVIDIA's driver does not check its size. */
static bool
is_linear(const struct hed_device *dev, uint64_t at, CUarray_format format, unsigned channels,
          struct hed_format *out)
{
    bool known;

    return hed_format_of(format, channels, out, &known) && at % hed_texture_align(dev) == 0 &&
           hed_memory_usable(dev->driver, at, 1, false, &known, NULL) && known;
}

static CUresult
from_linear(const struct hed_device *dev, const CUDA_RESOURCE_DESC_v1 *d, struct hed_texture *t)
{
    if (!is_linear(dev, d->res.linear.devPtr, d->res.linear.format, d->res.linear.numChannels,
                   &t->format))
        return CUDA_ERROR_INVALID_VALUE;

    const uint64_t width = d->res.linear.sizeInBytes / t->format.bytes;

    if (width >
        texture_limit(dev, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, LINEAR_WIDTH))
        return CUDA_ERROR_INVALID_VALUE;
    t->shape = HED_SHAPE_LINEAR;
    t->levels = 1;
    t->level[0] = (struct hed_texels){.at = d->res.linear.devPtr,
                                      .pitch = d->res.linear.sizeInBytes,
                                      .slice = d->res.linear.sizeInBytes,
                                      .width = (uint32_t)width,
                                      .height = 1,
                                      .depth = 1};
    return CUDA_SUCCESS;
}

static CUresult
from_pitch2d(const struct hed_device *dev, const CUDA_RESOURCE_DESC_v1 *d, struct hed_texture *t)
{
    const size_t width = d->res.pitch2D.width;
    const size_t height = d->res.pitch2D.height;
    const size_t pitch = d->res.pitch2D.pitchInBytes;

    if (!is_linear(dev, d->res.pitch2D.devPtr, d->res.pitch2D.format, d->res.pitch2D.numChannels,
                   &t->format) ||
        width == 0 || height == 0 || pitch == 0 ||
        pitch %
            texture_limit(dev, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, TEXTURE_PITCH_ALIGN) ||
        width > texture_limit(dev, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH, 131072) ||
        height > texture_limit(dev, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, 65536) ||
        pitch > texture_limit(dev, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH, 1 << 21))
        return CUDA_ERROR_INVALID_VALUE;
    t->shape = HED_SHAPE_2D;
    t->levels = 1;
    t->level[0] = (struct hed_texels){.at = d->res.pitch2D.devPtr,
                                      .pitch = pitch,
                                      .slice = pitch * height,
                                      .width = (uint32_t)width,
                                      .height = (uint32_t)height,
                                      .depth = 1};
    return CUDA_SUCCESS;
}

static CUresult
set_resource(struct hed_context *c, const CUDA_RESOURCE_DESC_v1 *d, struct hed_texture *t)
{
    if (d->flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    switch (d->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        return from_array(c->device->driver, d->res.array.hArray, t);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        return from_mipmap(c->device->driver, d->res.mipmap.hMipmappedArray, t);
    case CU_RESOURCE_TYPE_LINEAR:
        return from_linear(c->device, d, t);
    case CU_RESOURCE_TYPE_PITCH2D:
        return from_pitch2d(c->device, d, t);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* ---- how it is sampled ----------------------------------------------------------------------- */

static CUresult
set_sampler(const CUDA_TEXTURE_DESC_v1 *d, struct hed_texture *t)
{
    if ((d->flags & ~HED_TEXTURE_FLAGS) || (unsigned)d->filterMode > CU_TR_FILTER_MODE_LINEAR ||
        (unsigned)d->mipmapFilterMode > CU_TR_FILTER_MODE_LINEAR)
        return CUDA_ERROR_INVALID_VALUE;
    t->normalized = d->flags & CU_TRSF_NORMALIZED_COORDINATES;
    for (int i = 0; i < 3; i++) {
        if ((unsigned)d->addressMode[i] > CU_TR_ADDRESS_MODE_BORDER)
            return CUDA_ERROR_INVALID_VALUE;
        t->address[i] = (uint8_t)d->addressMode[i];
        /* Only coordinates from 0 to 1 can wrap or be mirrored; others are clamped. */
        if (!t->normalized && d->addressMode[i] != CU_TR_ADDRESS_MODE_BORDER)
            t->address[i] = CU_TR_ADDRESS_MODE_CLAMP;
    }
    t->filter = (uint8_t)d->filterMode;
    t->mipmap_filter = (uint8_t)d->mipmapFilterMode;
    /* cuda.h: "a texture with 32-bit integer format will not be promoted, regardless of whether or
     * not this flag is specified." */
    t->as_integer = (d->flags & CU_TRSF_READ_AS_INTEGER) || t->format.bits == 32;
    t->srgb = d->flags & CU_TRSF_SRGB;
    t->seamless = d->flags & CU_TRSF_SEAMLESS_CUBEMAP;
    t->anisotropy = d->maxAnisotropy > 16 ? 16 : d->maxAnisotropy;
    t->bias = d->mipmapLevelBias;
    t->level_min = d->minMipmapLevelClamp;
    t->level_max = d->maxMipmapLevelClamp;
    memcpy(t->border, d->borderColor, sizeof t->border);
    return CUDA_SUCCESS;
}

/* Formats of views have 1, 2 and 4 channels of each of these, in this order. */
static bool
view_format(CUresourceViewFormat format, struct hed_format *out)
{
    static const struct {
        uint8_t texel, bits;
    } groups[] = {
        {HED_TEXEL_UINT, 8},  {HED_TEXEL_SINT, 8},  {HED_TEXEL_UINT, 16},  {HED_TEXEL_SINT, 16},
        {HED_TEXEL_UINT, 32}, {HED_TEXEL_SINT, 32}, {HED_TEXEL_FLOAT, 16}, {HED_TEXEL_FLOAT, 32},
    };
    const unsigned i = (unsigned)format - CU_RES_VIEW_FORMAT_UINT_1X8;

    if (format < CU_RES_VIEW_FORMAT_UINT_1X8 || format > CU_RES_VIEW_FORMAT_FLOAT_4X32)
        return false;
    out->texel = groups[i / 3].texel;
    out->bits = groups[i / 3].bits;
    out->channels = (uint8_t)(1u << i % 3);
    out->bytes = (uint8_t)(out->channels * out->bits / 8);
    return true;
}

static CUresult
set_view(const CUDA_RESOURCE_VIEW_DESC_v1 *v, struct hed_texture *t)
{
    struct hed_format format = t->format;

    /* Linear memory has only one view. */
    if (t->shape == HED_SHAPE_LINEAR)
        return CUDA_SUCCESS;
    if (v->format >= CU_RES_VIEW_FORMAT_UNSIGNED_BC1 &&
        v->format <= CU_RES_VIEW_FORMAT_UNSIGNED_BC7) {
        hed_stats_unsupported(HED_API_CUDA, HED_cuTexObjectCreate, "a compressed format");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (v->format != CU_RES_VIEW_FORMAT_NONE && !view_format(v->format, &format))
        return CUDA_ERROR_INVALID_VALUE;
    if (format.bytes != t->format.bytes || v->firstMipmapLevel > v->lastMipmapLevel ||
        v->lastMipmapLevel >= t->levels || v->firstLayer > v->lastLayer ||
        v->lastLayer >= t->level[0].depth || v->width > t->level[0].width ||
        v->height > t->level[0].height || v->depth > t->level[0].depth)
        return CUDA_ERROR_INVALID_VALUE;
    t->format = format;
    t->first_level = (uint8_t)v->firstMipmapLevel;
    t->levels = (uint8_t)(v->lastMipmapLevel - v->firstMipmapLevel + 1);
    memmove(t->level, t->level + t->first_level, t->levels * sizeof t->level[0]);
    if (t->shape >= HED_SHAPE_1D_LAYERED) {
        t->first_layer = v->firstLayer;
        if (v->lastLayer > 0)
            t->layers = v->lastLayer - v->firstLayer + 1;
    }
    return CUDA_SUCCESS;
}

/* ---- objects --------------------------------------------------------------------------------- */

static uint64_t
texture_key(const struct hed_context *c, unsigned long long value, bool surface)
{
    void *m;

    return hed_machine_of(c, &m)->object_key(m, c, surface, value);
}

/* Adds the program's description to the entry under a key. False if there is no such entry. */
static bool
keep_in_entry(struct hed_driver *d, uint64_t key, struct object *kept)
{
    hed_lock(&d->memory_lock);

    struct hed_allocation *a = hed_memory_in_locked(d->memory, HED_TREE_DESCRIPTORS, key);
    const bool found = a && a->at == key;

    if (found)
        a->extra = kept;
    hed_unlock(&d->memory_lock);
    return found;
}

/* Keeps the program's description of an object that the machine has made. */
static CUresult
keep_object(struct hed_context *c, unsigned long long value, const struct object *o,
            unsigned long long *out)
{
    struct hed_driver *d = c->device->driver;
    struct object *kept = malloc(sizeof *kept);
    struct hed_allocation a = {.at = texture_key(c, value, o->is_surface),
                               .size = 1,
                               .kind = HED_MEMORY_DESCRIPTOR,
                               .extra = kept};
    CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

    if (kept) {
        *kept = *o;
        hed_memory_mark(&a, c);
        r = keep_in_entry(d, a.at, kept) ? CUDA_SUCCESS : hed_memory_add(d, &a);
    }
    if (r != CUDA_SUCCESS) {
        free(kept);
        (void)d->machine->object_gone(d->machine_state, c, o->is_surface, value);
        (void)hed_memory_give(d, HED_MEMORY_DESCRIPTOR, a.at);
        return r;
    }
    *out = value;
    return CUDA_SUCCESS;
}

/* A copy of the description an object was made from; false if there is none. */
static bool
look_up_description(const struct hed_context *c, unsigned long long handle, bool surface,
                    struct object *out, struct hed_allocation *entry)
{
    struct hed_driver *d = c->device->driver;
    const uint64_t key = texture_key(c, handle, surface);
    bool found = false;

    hed_lock(&d->memory_lock);

    const struct hed_allocation *a = hed_memory_in_locked(d->memory, HED_TREE_DESCRIPTORS, key);
    const struct object *o = a && a->at == key ? a->extra : NULL;

    if (o && o->is_surface == surface) {
        *out = *o;
        *entry = *a;
        found = true;
    }
    hed_unlock(&d->memory_lock);
    return found;
}

/* Copies the entry of the first object at or above a key, and its description. */
static bool
next_object(struct hed_driver *d, uint64_t key, struct hed_allocation *entry, struct object *out)
{
    hed_lock(&d->memory_lock);

    const struct hed_allocation *a =
        hed_memory_ceiling_locked(d->memory, HED_TREE_DESCRIPTORS, key);

    if (a) {
        *entry = *a;
        *out = *(const struct object *)a->extra;
    }
    hed_unlock(&d->memory_lock);
    return a != NULL;
}

int
hed_texture_each(struct hed_driver *d,
                 int (*fn)(void *arg, const struct hed_allocation *entry, bool surface,
                           const struct hed_texture_given *given),
                 void *arg)
{
    struct hed_allocation entry = {.at = 0};
    struct object o;
    int err = 0;

    while (!err && next_object(d, entry.at, &entry, &o)) {
        err = fn(arg, &entry, o.is_surface, &o.given);
        entry.at++;
    }
    return err;
}

CUresult
hed_texture_describe(struct hed_context *c, const CUDA_RESOURCE_DESC_v1 *resource,
                     const CUDA_TEXTURE_DESC_v1 *texture, const CUDA_RESOURCE_VIEW_DESC_v1 *view,
                     struct hed_texture *out)
{
    struct hed_texture t = {.magic = HED_TEXTURE_MAGIC};
    CUresult r = set_resource(c, resource, &t);

    t.layers = t.shape >= HED_SHAPE_1D_LAYERED ? t.level[0].depth : 1;
    if (r == CUDA_SUCCESS && view)
        r = set_view(view, &t);
    if (r == CUDA_SUCCESS)
        r = set_sampler(texture, &t);
    if (r == CUDA_SUCCESS)
        *out = t;
    return r;
}

CUresult
hed_surface_describe(struct hed_context *c, const CUDA_RESOURCE_DESC_v1 *resource,
                     struct hed_surface *out)
{
    struct hed_texture t = {0};
    const CUresult r = set_resource(c, resource, &t);

    if (r == CUDA_SUCCESS)
        *out = (struct hed_surface){
            .magic = HED_SURFACE_MAGIC, .shape = t.shape, .format = t.format, .image = t.level[0]};
    return r;
}

CUresult
hed_soft_cuTexObjectCreate(struct hed_layer *self, struct hed_cuTexObjectCreate *a)
{
    struct hed_texture t;
    struct hed_context *c;
    CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->pTexObject || !a->pResDesc || !a->pTexDesc)
        return CUDA_ERROR_INVALID_VALUE;
    r = hed_texture_describe(c, a->pResDesc, a->pTexDesc, a->pResViewDesc, &t);
    if (r != CUDA_SUCCESS)
        return r;

    struct object o = {.given = {.resource = *a->pResDesc,
                                 .texture = *a->pTexDesc,
                                 .has_view = a->pResViewDesc != NULL}};
    uint64_t value = 0;
    void *m;

    if (a->pResViewDesc)
        o.given.view = *a->pResViewDesc;
    r = hed_machine_of(c, &m)->texture_made(m, c, &t, &o.given, &value);
    return r == CUDA_SUCCESS ? keep_object(c, value, &o, a->pTexObject) : r;
}

CUresult
hed_soft_cuSurfObjectCreate(struct hed_layer *self, struct hed_cuSurfObjectCreate *a)
{
    struct hed_surface s;
    struct hed_context *c;
    CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->pSurfObject || !a->pResDesc || a->pResDesc->resType != CU_RESOURCE_TYPE_ARRAY)
        return CUDA_ERROR_INVALID_VALUE;
    r = hed_surface_describe(c, a->pResDesc, &s);
    if (r != CUDA_SUCCESS)
        return r;

    const struct object o = {.is_surface = true, .given = {.resource = *a->pResDesc}};
    uint64_t value = 0;
    void *m;

    r = hed_machine_of(c, &m)->surface_made(m, c, &s, a->pResDesc, &value);
    return r == CUDA_SUCCESS ? keep_object(c, value, &o, a->pSurfObject) : r;
}

/* NVIDIA's driver accepts an object that does not exist. */
static CUresult
destroy_texture_object(struct hed_layer *self, unsigned long long handle, bool surface)
{
    struct hed_allocation entry;
    struct hed_context *c;
    struct object o;
    CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS || !look_up_description(c, handle, surface, &o, &entry))
        return r;

    struct hed_driver *d = c->device->driver;

    r = d->machine->object_gone(d->machine_state, c, surface, handle);
    (void)hed_memory_give(d, HED_MEMORY_DESCRIPTOR, entry.at);
    return r;
}

CUresult
hed_soft_cuTexObjectDestroy(struct hed_layer *self, struct hed_cuTexObjectDestroy *a)
{
    return destroy_texture_object(self, a->texObject, false);
}

CUresult
hed_soft_cuSurfObjectDestroy(struct hed_layer *self, struct hed_cuSurfObjectDestroy *a)
{
    return destroy_texture_object(self, a->surfObject, true);
}

/* The description that the program gave when it made the object. */
static CUresult
ask_object(struct hed_layer *self, unsigned long long handle, bool surface, const void *answer,
           struct object *out)
{
    struct hed_allocation entry;
    struct hed_context *c;
    const CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    return answer && look_up_description(c, handle, surface, out, &entry)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

CUresult
hed_soft_cuTexObjectGetResourceDesc(struct hed_layer *self,
                                    struct hed_cuTexObjectGetResourceDesc *a)
{
    struct object o;
    const CUresult r = ask_object(self, a->texObject, false, a->pResDesc, &o);

    if (r == CUDA_SUCCESS)
        *a->pResDesc = o.given.resource;
    return r;
}

CUresult
hed_soft_cuTexObjectGetTextureDesc(struct hed_layer *self, struct hed_cuTexObjectGetTextureDesc *a)
{
    struct object o;
    const CUresult r = ask_object(self, a->texObject, false, a->pTexDesc, &o);

    if (r == CUDA_SUCCESS)
        *a->pTexDesc = o.given.texture;
    return r;
}

CUresult
hed_soft_cuTexObjectGetResourceViewDesc(struct hed_layer *self,
                                        struct hed_cuTexObjectGetResourceViewDesc *a)
{
    struct object o;
    const CUresult r = ask_object(self, a->texObject, false, a->pResViewDesc, &o);

    if (r == CUDA_SUCCESS)
        *a->pResViewDesc = o.given.view;
    return r;
}

CUresult
hed_soft_cuSurfObjectGetResourceDesc(struct hed_layer *self,
                                     struct hed_cuSurfObjectGetResourceDesc *a)
{
    struct object o;
    const CUresult r = ask_object(self, a->surfObject, true, a->pResDesc, &o);

    if (r == CUDA_SUCCESS)
        *a->pResDesc = o.given.resource;
    return r;
}
