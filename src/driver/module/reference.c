/* Textures and surfaces by name, as programs until CUDA 11 have them: PTX declares a .texref, and
 * the program binds it to memory.
 *
 *   .global .texref t;            a variable of the module, of the form union hed_reference_room
 *   cuModuleGetTexRef(m, "t")     a reference: what is known of the variable here
 *   cuTexRefSetFormat, ...        changes the reference
 *   cuTexRefSetAddress, ...       binds it: the descriptor is made, and copied into the variable
 *   tex.2d ... [t, {x, y}]        samples the descriptor at the variable's address
 *
 * Kernels that run while a reference changes are waited for: they see what was bound when they were
 * launched. Only machines whose code lists such variables have references.
 *
 * Invariants:
 * 1. A reference has a handle from when it is first asked for until its module is unloaded; asking
 *    again gives the same one. Its module outlives it.
 * 2. What is bound is described by `resource` and `texture`; module->lock guards both.
 */
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "driver/memory/array.h"
#include "driver/module/image.h"
#include "driver/module/module.h"

#define OVERRIDE_FORMAT 1u /* CU_TRSA_OVERRIDE_FORMAT: arrays know their format themselves */

struct hed_reference {
    struct hed_object object; /* must come first */
    struct hed_module *module;
    uint32_t var; /* index in module->code->vars */
    bool surface;
    bool bound;
    CUDA_RESOURCE_DESC_v1 resource;
    CUDA_TEXTURE_DESC_v1 texture;
    CUarray_format format; /* of linear memory */
    unsigned channels;
};

/* ---- finding --------------------------------------------------------------------------------- */

static void
reference_destroy(struct hed_object *o)
{
    struct hed_reference *r = (struct hed_reference *)o;

    hed_object_put(&r->module->object);
    free(r);
}

static CUresult
reference_create_locked(struct hed_module *m, uint32_t var)
{
    struct hed_reference *r = calloc(1, sizeof *r);

    if (!m->references)
        m->references = calloc(m->code->var_count, sizeof *m->references);
    if (!r || !m->references) {
        free(r);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    r->object.destroy = reference_destroy;
    r->module = m;
    r->var = var;
    r->surface = m->code->vars[var].surface;
    r->format = CU_AD_FORMAT_FLOAT;
    r->channels = 1;
    if (hed_handles_add(m->driver->handles, HED_KIND_REFERENCE, &r->object) != 0) {
        free(r);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    hed_object_ref(&m->object);
    m->references[var] = r;
    return CUDA_SUCCESS;
}

/* The handle of a module's reference. */
static CUresult
find_reference(struct hed_layer *self, CUmodule handle, const char *name, bool surface,
               uint64_t *out)
{
    struct hed_context *c;
    CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;

    struct hed_module *m = hed_module_find(c->device->driver, handle);

    if (!m)
        return CUDA_ERROR_INVALID_HANDLE;

    const uint32_t i = hed_program_var(m->program, name);

    if (i == HED_PROGRAM_NONE && m->driver->machine->alone) {
        /* Its variables are not listed here. */
        hed_stats_unsupported(HED_API_CUDA,
                              surface ? HED_cuModuleGetSurfRef : HED_cuModuleGetTexRef,
                              "remote devices");
        r = CUDA_ERROR_NOT_SUPPORTED;
    } else if (i == HED_PROGRAM_NONE || !m->code->vars[i].texture ||
               m->code->vars[i].surface != surface) {
        r = CUDA_ERROR_NOT_FOUND;
    }
    hed_lock(&m->lock);
    if (r == CUDA_SUCCESS && m->unloaded)
        r = CUDA_ERROR_INVALID_HANDLE;
    if (r == CUDA_SUCCESS && (!m->references || !m->references[i]))
        r = reference_create_locked(m, i);
    if (r == CUDA_SUCCESS)
        *out = m->references[i]->object.handle;
    hed_unlock(&m->lock);
    hed_object_put(&m->object);
    return r;
}

void
hed_module_forget_references(struct hed_module *m)
{
    /* No more references are added by now. */
    for (uint32_t i = 0; m->references && i < m->code->var_count; i++) {
        struct hed_reference *r = m->references[i];

        m->references[i] = NULL;
        if (r && hed_handles_remove(m->driver->handles, HED_KIND_REFERENCE, r->object.handle))
            hed_object_put(&r->object);
    }
}

/* The reference of a handle, with its module's lock held: release_reference(). */
static CUresult
take_reference(struct hed_layer *self, const void *handle, bool surface, struct hed_reference **out)
{
    struct hed_context *c;
    const CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;

    struct hed_reference *ref = (struct hed_reference *)hed_handles_get(
        c->device->driver->handles, HED_KIND_REFERENCE, (uint64_t)(uintptr_t)handle);

    if (ref && ref->surface == surface) {
        hed_lock(&ref->module->lock);
        *out = ref;
        return CUDA_SUCCESS;
    }
    if (ref)
        hed_object_put(&ref->object);
    return CUDA_ERROR_INVALID_HANDLE;
}

static void
release_reference(struct hed_reference *r)
{
    hed_unlock(&r->module->lock);
    hed_object_put(&r->object);
}

/* ---- binding --------------------------------------------------------------------------------- */

/* Makes kernels that are launched from now on see the reference as it is; gives the reference
 * back. */
static CUresult
publish_reference(struct hed_reference *r, const union hed_reference_room *room)
{
    struct hed_module *m = r->module;
    CUresult result;

    hed_unlock(&m->lock);
    result = hed_context_synchronize(m->ctx);
    if (result == CUDA_SUCCESS)
        m->driver->machine->memory.copy(m->driver->machine_state, m->variables[r->var],
                                        (uint64_t)(uintptr_t)room, sizeof *room);
    hed_object_put(&r->object);
    return result;
}

/* The descriptor of what a reference is bound to. */
static CUresult
describe_reference(const struct hed_reference *r, union hed_reference_room *out)
{
    struct hed_context *c = r->module->ctx;

    *out = (union hed_reference_room){.magic = HED_UNBOUND_MAGIC};
    if (!r->bound)
        return CUDA_SUCCESS;
    return r->surface ? hed_surface_describe(c, &r->resource, &out->surface)
                      : hed_texture_describe(c, &r->resource, &r->texture, NULL, &out->texture);
}

/* Binds a reference to a resource; NULL: to nothing. One that is refused leaves it as it was. */
static CUresult
bind_reference(struct hed_reference *r, const CUDA_RESOURCE_DESC_v1 *resource)
{
    const CUDA_RESOURCE_DESC_v1 before = r->resource;
    const bool was_bound = r->bound;
    union hed_reference_room room;
    CUresult result;

    r->bound = resource != NULL;
    if (resource)
        r->resource = *resource;
    result = describe_reference(r, &room);
    if (result == CUDA_SUCCESS && (r->bound || was_bound))
        return publish_reference(r, &room);
    if (result != CUDA_SUCCESS) {
        r->bound = was_bound;
        r->resource = before;
    }
    release_reference(r);
    return result;
}

static CUresult
bind_array(struct hed_layer *self, const void *handle, bool surface, CUarray array)
{
    const CUDA_RESOURCE_DESC_v1 d = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array};
    struct hed_reference *ref;
    const CUresult r = take_reference(self, handle, surface, &ref);

    return r == CUDA_SUCCESS ? bind_reference(ref, array ? &d : NULL) : r;
}

static CUresult
soft_cuModuleGetTexRef(struct hed_layer *self, struct hed_cuModuleGetTexRef *a)
{
    uint64_t handle;
    const CUresult r = a->pTexRef ? find_reference(self, a->hmod, a->name, false, &handle)
                                  : CUDA_ERROR_INVALID_VALUE;

    if (r == CUDA_SUCCESS)
        *a->pTexRef = (CUtexref)(uintptr_t)handle;
    return r;
}

static CUresult
soft_cuModuleGetSurfRef(struct hed_layer *self, struct hed_cuModuleGetSurfRef *a)
{
    uint64_t handle;
    const CUresult r = a->pSurfRef ? find_reference(self, a->hmod, a->name, true, &handle)
                                   : CUDA_ERROR_INVALID_VALUE;

    if (r == CUDA_SUCCESS)
        *a->pSurfRef = (CUsurfref)(uintptr_t)handle;
    return r;
}

static CUresult
soft_cuTexRefSetArray(struct hed_layer *self, struct hed_cuTexRefSetArray *a)
{
    if (a->Flags & ~OVERRIDE_FORMAT)
        return CUDA_ERROR_INVALID_VALUE;
    return bind_array(self, a->hTexRef, false, a->hArray);
}

static CUresult
soft_cuSurfRefSetArray(struct hed_layer *self, struct hed_cuSurfRefSetArray *a)
{
    return a->Flags ? CUDA_ERROR_INVALID_VALUE : bind_array(self, a->hSurfRef, true, a->hArray);
}

static CUresult
soft_cuTexRefSetMipmappedArray(struct hed_layer *self, struct hed_cuTexRefSetMipmappedArray *a)
{
    const CUDA_RESOURCE_DESC_v1 d = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
                                     .res.mipmap.hMipmappedArray = a->hMipmappedArray};
    struct hed_reference *ref;
    CUresult r;

    if (a->Flags & ~OVERRIDE_FORMAT)
        return CUDA_ERROR_INVALID_VALUE;
    r = take_reference(self, a->hTexRef, false, &ref);
    return r == CUDA_SUCCESS ? bind_reference(ref, a->hMipmappedArray ? &d : NULL) : r;
}

/* Memory that is not aligned is bound from the last aligned byte before it. */
static CUresult
soft_cuTexRefSetAddress_v2(struct hed_layer *self, struct hed_cuTexRefSetAddress_v2 *a)
{
    struct hed_reference *ref;
    CUresult r = take_reference(self, a->hTexRef, false, &ref);

    if (r != CUDA_SUCCESS)
        return r;

    const uint64_t offset = a->dptr % hed_texture_align(ref->module->ctx->device);
    const CUDA_RESOURCE_DESC_v1 d = {
        .resType = CU_RESOURCE_TYPE_LINEAR,
        .res.linear = {.devPtr = a->dptr - offset,
                       .format = ref->format,
                       .numChannels = ref->channels,
                       .sizeInBytes = a->bytes + offset},
    };

    if (offset && !a->ByteOffset) {
        release_reference(ref);
        return CUDA_ERROR_INVALID_VALUE;
    }
    r = bind_reference(ref, a->dptr ? &d : NULL);
    if (r == CUDA_SUCCESS && a->ByteOffset)
        *a->ByteOffset = offset;
    return r;
}

static CUresult
bind_rows(struct hed_layer *self, CUtexref handle, const CUDA_ARRAY_DESCRIPTOR_v2 *desc,
          CUdeviceptr at, size_t pitch)
{
    struct hed_reference *ref;
    CUresult r;

    if (!desc)
        return CUDA_ERROR_INVALID_VALUE;

    const CUDA_RESOURCE_DESC_v1 d = {
        .resType = CU_RESOURCE_TYPE_PITCH2D,
        .res.pitch2D = {.devPtr = at,
                        .format = desc->Format,
                        .numChannels = desc->NumChannels,
                        .width = desc->Width,
                        .height = desc->Height,
                        .pitchInBytes = pitch},
    };

    r = take_reference(self, handle, false, &ref);
    return r == CUDA_SUCCESS ? bind_reference(ref, at ? &d : NULL) : r;
}

static CUresult
soft_cuTexRefSetAddress2D_v2(struct hed_layer *self, struct hed_cuTexRefSetAddress2D_v2 *a)
{
    return bind_rows(self, a->hTexRef, a->desc, a->dptr, a->Pitch);
}

static CUresult
soft_cuTexRefSetAddress2D_v3(struct hed_layer *self, struct hed_cuTexRefSetAddress2D_v3 *a)
{
    return bind_rows(self, a->hTexRef, a->desc, a->dptr, a->Pitch);
}

/* ---- settings -------------------------------------------------------------------------------- */

/* Ends a change of settings. If what the reference is bound to is gone by now, it is bound to
 * nothing: kernels that do not use it can still be launched. */
static CUresult
end_change(struct hed_reference *r, const CUDA_TEXTURE_DESC_v1 *before)
{
    union hed_reference_room room;

    if (!r->bound || memcmp(&r->texture, before, sizeof *before) == 0) {
        release_reference(r);
        return CUDA_SUCCESS;
    }
    if (describe_reference(r, &room) != CUDA_SUCCESS)
        room.magic = HED_UNBOUND_MAGIC;
    return publish_reference(r, &room);
}

#define SET_REFERENCE(call, good, change)                                     \
    static CUresult soft_##call(struct hed_layer *self, struct hed_##call *a) \
    {                                                                         \
        CUDA_TEXTURE_DESC_v1 before;                                          \
        struct hed_reference *ref;                                            \
        CUresult r;                                                           \
                                                                              \
        if (!(good))                                                          \
            return CUDA_ERROR_INVALID_VALUE;                                  \
        r = take_reference(self, a->hTexRef, false, &ref);                    \
        if (r != CUDA_SUCCESS)                                                \
            return r;                                                         \
        before = ref->texture;                                                \
        change;                                                               \
        return end_change(ref, &before);                                      \
    }

SET_REFERENCE(cuTexRefSetAddressMode,
              a->dim >= 0 && a->dim < 3 && (unsigned)a->am <= CU_TR_ADDRESS_MODE_BORDER,
              ref->texture.addressMode[a->dim] = a->am)
SET_REFERENCE(cuTexRefSetFilterMode, (unsigned)a->fm <= CU_TR_FILTER_MODE_LINEAR,
              ref->texture.filterMode = a->fm)
SET_REFERENCE(cuTexRefSetMipmapFilterMode, (unsigned)a->fm <= CU_TR_FILTER_MODE_LINEAR,
              ref->texture.mipmapFilterMode = a->fm)
SET_REFERENCE(cuTexRefSetMipmapLevelBias, true, ref->texture.mipmapLevelBias = a->bias)
SET_REFERENCE(cuTexRefSetMipmapLevelClamp, true,
              ref->texture.minMipmapLevelClamp = a->minMipmapLevelClamp;
              ref->texture.maxMipmapLevelClamp = a->maxMipmapLevelClamp)
SET_REFERENCE(cuTexRefSetMaxAnisotropy, true, ref->texture.maxAnisotropy = a->maxAniso)
SET_REFERENCE(cuTexRefSetBorderColor, a->pBorderColor,
              memcpy(ref->texture.borderColor, a->pBorderColor, sizeof ref->texture.borderColor))
SET_REFERENCE(cuTexRefSetFlags, !(a->Flags & ~HED_TEXTURE_FLAGS), ref->texture.flags = a->Flags)

/* The format counts for linear memory that is bound afterwards. */
static CUresult
soft_cuTexRefSetFormat(struct hed_layer *self, struct hed_cuTexRefSetFormat *a)
{
    struct hed_reference *ref;
    struct hed_format format;
    bool known;
    CUresult r;

    if (a->NumPackedComponents < 0 ||
        !hed_format_of(a->fmt, (unsigned)a->NumPackedComponents, &format, &known))
        return CUDA_ERROR_INVALID_VALUE;
    r = take_reference(self, a->hTexRef, false, &ref);
    if (r != CUDA_SUCCESS)
        return r;
    ref->format = a->fmt;
    ref->channels = (unsigned)a->NumPackedComponents;
    release_reference(ref);
    return CUDA_SUCCESS;
}

/* ---- questions ------------------------------------------------------------------------------- */

#define GET_REFERENCE(call, handle, is_surface, good, answer)                 \
    static CUresult soft_##call(struct hed_layer *self, struct hed_##call *a) \
    {                                                                         \
        struct hed_reference *ref;                                            \
        CUresult r = take_reference(self, a->handle, is_surface, &ref);       \
                                                                              \
        if (r != CUDA_SUCCESS)                                                \
            return r;                                                         \
        if (good) {                                                           \
            answer;                                                           \
        } else {                                                              \
            r = CUDA_ERROR_INVALID_VALUE;                                     \
        }                                                                     \
        release_reference(ref);                                               \
        return r;                                                             \
    }

static bool
is_bound_to(const struct hed_reference *r, CUresourcetype type)
{
    return r->bound && r->resource.resType == type;
}

GET_REFERENCE(cuTexRefGetAddress_v2, hTexRef, false,
              a->pdptr && (is_bound_to(ref, CU_RESOURCE_TYPE_LINEAR) ||
                           is_bound_to(ref, CU_RESOURCE_TYPE_PITCH2D)),
              *a->pdptr = ref->resource.resType == CU_RESOURCE_TYPE_LINEAR
                              ? ref->resource.res.linear.devPtr
                              : ref->resource.res.pitch2D.devPtr)
GET_REFERENCE(cuTexRefGetArray, hTexRef, false,
              a->phArray != NULL && is_bound_to(ref, CU_RESOURCE_TYPE_ARRAY),
              *a->phArray = ref->resource.res.array.hArray)
GET_REFERENCE(cuSurfRefGetArray, hSurfRef, true,
              a->phArray != NULL && is_bound_to(ref, CU_RESOURCE_TYPE_ARRAY),
              *a->phArray = ref->resource.res.array.hArray)
GET_REFERENCE(cuTexRefGetMipmappedArray, hTexRef, false,
              a->phMipmappedArray != NULL && is_bound_to(ref, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY),
              *a->phMipmappedArray = ref->resource.res.mipmap.hMipmappedArray)
GET_REFERENCE(cuTexRefGetAddressMode, hTexRef, false, a->pam && a->dim >= 0 && a->dim < 3,
              *a->pam = ref->texture.addressMode[a->dim])
GET_REFERENCE(cuTexRefGetFilterMode, hTexRef, false, a->pfm, *a->pfm = ref->texture.filterMode)
GET_REFERENCE(cuTexRefGetMipmapFilterMode, hTexRef, false, a->pfm,
              *a->pfm = ref->texture.mipmapFilterMode)
GET_REFERENCE(cuTexRefGetMipmapLevelBias, hTexRef, false, a->pbias,
              *a->pbias = ref->texture.mipmapLevelBias)
GET_REFERENCE(cuTexRefGetMipmapLevelClamp, hTexRef, false,
              a->pminMipmapLevelClamp && a->pmaxMipmapLevelClamp,
              *a->pminMipmapLevelClamp = ref->texture.minMipmapLevelClamp;
              *a->pmaxMipmapLevelClamp = ref->texture.maxMipmapLevelClamp)
GET_REFERENCE(cuTexRefGetMaxAnisotropy, hTexRef, false, a->pmaxAniso,
              *a->pmaxAniso = (int)ref->texture.maxAnisotropy)
GET_REFERENCE(cuTexRefGetBorderColor, hTexRef, false, a->pBorderColor,
              memcpy(a->pBorderColor, ref->texture.borderColor, sizeof ref->texture.borderColor))
GET_REFERENCE(cuTexRefGetFlags, hTexRef, false, a->pFlags, *a->pFlags = ref->texture.flags)
GET_REFERENCE(cuTexRefGetFormat, hTexRef, false, a->pFormat && a->pNumChannels,
              *a->pFormat = ref->format;
              *a->pNumChannels = (int)ref->channels)

const struct hed_cuda_ops hed_calls_reference = {
    .cuModuleGetTexRef = soft_cuModuleGetTexRef,
    .cuModuleGetSurfRef = soft_cuModuleGetSurfRef,
    .cuTexRefSetArray = soft_cuTexRefSetArray,
    .cuTexRefSetMipmappedArray = soft_cuTexRefSetMipmappedArray,
    .cuTexRefSetAddress_v2 = soft_cuTexRefSetAddress_v2,
    .cuTexRefSetAddress2D_v2 = soft_cuTexRefSetAddress2D_v2,
    .cuTexRefSetAddress2D_v3 = soft_cuTexRefSetAddress2D_v3,
    .cuTexRefSetFormat = soft_cuTexRefSetFormat,
    .cuTexRefSetAddressMode = soft_cuTexRefSetAddressMode,
    .cuTexRefSetFilterMode = soft_cuTexRefSetFilterMode,
    .cuTexRefSetMipmapFilterMode = soft_cuTexRefSetMipmapFilterMode,
    .cuTexRefSetMipmapLevelBias = soft_cuTexRefSetMipmapLevelBias,
    .cuTexRefSetMipmapLevelClamp = soft_cuTexRefSetMipmapLevelClamp,
    .cuTexRefSetMaxAnisotropy = soft_cuTexRefSetMaxAnisotropy,
    .cuTexRefSetBorderColor = soft_cuTexRefSetBorderColor,
    .cuTexRefSetFlags = soft_cuTexRefSetFlags,
    .cuTexRefGetAddress_v2 = soft_cuTexRefGetAddress_v2,
    .cuTexRefGetArray = soft_cuTexRefGetArray,
    .cuTexRefGetMipmappedArray = soft_cuTexRefGetMipmappedArray,
    .cuTexRefGetAddressMode = soft_cuTexRefGetAddressMode,
    .cuTexRefGetFilterMode = soft_cuTexRefGetFilterMode,
    .cuTexRefGetFormat = soft_cuTexRefGetFormat,
    .cuTexRefGetMipmapFilterMode = soft_cuTexRefGetMipmapFilterMode,
    .cuTexRefGetMipmapLevelBias = soft_cuTexRefGetMipmapLevelBias,
    .cuTexRefGetMipmapLevelClamp = soft_cuTexRefGetMipmapLevelClamp,
    .cuTexRefGetMaxAnisotropy = soft_cuTexRefGetMaxAnisotropy,
    .cuTexRefGetBorderColor = soft_cuTexRefGetBorderColor,
    .cuTexRefGetFlags = soft_cuTexRefGetFlags,
    .cuSurfRefSetArray = soft_cuSurfRefSetArray,
    .cuSurfRefGetArray = soft_cuSurfRefGetArray,
};
