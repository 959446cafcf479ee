/* Texture and surface references: see old_texture.h.
 *
 *   texture<float, 2> t;              struct textureReference of the host, and a .texref named "t"
 *   __cudaRegisterTexture(&t, "t")    a symbol
 *   cudaBindTextureToArray(&t, a)     cuTexRefSetArray; `t` says how it is read
 *   kernel<<<...>>>()                 `t` may have changed since: hed_rt_tell_textures()
 *
 * A reference is bound in one context; another context has bindings of its own.
 *
 * Invariants:
 * 1. `bindings` has an entry for each bound reference, and hed_rt_bound_textures counts them.
 * 2. The lock is never held while the driver works.
 */
#include "cudart/old_texture.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "cudart/context.h"
#include "cudart/front.h"
#include "cudart/texture.h"
#include "gen/cudart_calls.h"

struct binding {
    const textureReference *host; /* the program's */
    const struct hed_rt_module *module;
    CUcontext context;
    CUtexref reference;
    CUarray_format format;
    bool fractions; /* HED_RT_AS_FRACTIONS */
    bool is_memory; /* not an array */
    size_t offset;  /* of memory: bytes from what is bound to what the program asked for */
    bool told;      /* the driver knows `as` */
    textureReference as;
    struct binding *next;
};

atomic_uint hed_rt_bound_textures;

static struct hed_lock binding_lock = HED_LOCK_INIT(HED_RANK_RUNTIME);
static struct binding *bindings; /* under the lock */

/* ---- bindings -------------------------------------------------------------------------------- */

/* The place of a binding, or the end of the list. */
static struct binding **
find_binding_locked(const textureReference *host, CUcontext context)
{
    struct binding **at = &bindings;

    while (*at && ((*at)->host != host || (*at)->context != context))
        at = &(*at)->next;
    return at;
}

static void
remove_binding_locked(struct binding **at)
{
    struct binding *b = *at;

    *at = b->next;
    free(b);
    atomic_fetch_sub_explicit(&hed_rt_bound_textures, 1, memory_order_relaxed);
}

static void
remove_binding(const textureReference *host, CUcontext context)
{
    struct binding **at;

    hed_lock(&binding_lock);
    at = find_binding_locked(host, context);
    if (*at)
        remove_binding_locked(at);
    hed_unlock(&binding_lock);
}

static cudaError_t
add_binding(const struct binding *b)
{
    struct binding *own = malloc(sizeof *own);
    struct binding **at;

    if (!own)
        return cudaErrorMemoryAllocation;
    *own = *b;
    hed_lock(&binding_lock);
    at = find_binding_locked(b->host, b->context);
    if (*at)
        remove_binding_locked(at);
    own->next = bindings;
    bindings = own;
    atomic_fetch_add_explicit(&hed_rt_bound_textures, 1, memory_order_relaxed);
    hed_unlock(&binding_lock);
    return cudaSuccess;
}

void
hed_rt_forget_textures(const struct hed_rt_module *m)
{
    hed_lock(&binding_lock);
    for (struct binding **at = &bindings; *at;)
        if ((*at)->module == m)
            remove_binding_locked(at);
        else
            at = &(*at)->next;
    hed_unlock(&binding_lock);
}

/* ---- how textures are read ------------------------------------------------------------------- */

/* The member is reserved until CUDA 10.2. */
static bool
plain_trilinear(const textureReference *t)
{
    return hed_rt_version >= 11000 && t->disableTrilinearOptimization;
}

/* Tells the driver of what the host's variable says. */
static cudaError_t
tell_texture(const struct hed_rt_driver *cu, const struct binding *b)
{
    const textureReference *t = &b->as;
    const bool whole = hed_rt_is_integer(b->format);
    const unsigned flags = (whole && !b->fractions ? CU_TRSF_READ_AS_INTEGER : 0u) |
                           (t->normalized ? CU_TRSF_NORMALIZED_COORDINATES : 0u) |
                           (t->sRGB ? CU_TRSF_SRGB : 0u) |
                           (plain_trilinear(t) ? CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION : 0u);
    CUresult r;

    if (whole) {
        const cudaError_t bad = hed_rt_check_reading(
            b->format, b->fractions ? cudaReadModeNormalizedFloat : cudaReadModeElementType,
            t->filterMode);

        if (bad != cudaSuccess)
            return bad;
    }
    r = cu->cuTexRefSetFlags(b->reference, flags);
    if (r == CUDA_SUCCESS)
        r = cu->cuTexRefSetFilterMode(b->reference, (CUfilter_mode)t->filterMode);
    if (r == CUDA_SUCCESS)
        r = cu->cuTexRefSetMipmapFilterMode(b->reference, (CUfilter_mode)t->mipmapFilterMode);
    if (r == CUDA_SUCCESS)
        r = cu->cuTexRefSetMipmapLevelBias(b->reference, t->mipmapLevelBias);
    if (r == CUDA_SUCCESS)
        r = cu->cuTexRefSetMipmapLevelClamp(b->reference, t->minMipmapLevelClamp,
                                            t->maxMipmapLevelClamp);
    if (r == CUDA_SUCCESS)
        r = cu->cuTexRefSetMaxAnisotropy(b->reference, t->maxAnisotropy);
    for (int i = 0; r == CUDA_SUCCESS && i < 3; i++)
        r = cu->cuTexRefSetAddressMode(b->reference, i, (CUaddress_mode)t->addressMode[i]);
    return (cudaError_t)r;
}

/* Whether all that tell_texture() tells is the same. */
static bool
is_texture_told(const struct binding *b)
{
    const textureReference *t = b->host;

    return b->told && b->as.normalized == t->normalized && b->as.filterMode == t->filterMode &&
           memcmp(b->as.addressMode, t->addressMode, sizeof t->addressMode) == 0 &&
           b->as.sRGB == t->sRGB && plain_trilinear(&b->as) == plain_trilinear(t) &&
           b->as.maxAnisotropy == t->maxAnisotropy &&
           b->as.mipmapFilterMode == t->mipmapFilterMode &&
           memcmp(&b->as.mipmapLevelBias, &t->mipmapLevelBias, 3 * sizeof(float)) == 0;
}

_Static_assert(offsetof(textureReference, maxMipmapLevelClamp) ==
                   offsetof(textureReference, mipmapLevelBias) + 2 * sizeof(float),
               "three floats follow each other");

/* Takes a copy of a binding that the driver is to be told of. */
static bool
next_to_tell(CUcontext context, struct binding *out)
{
    struct binding *b;

    hed_lock(&binding_lock);
    b = bindings;
    while (b && (b->context != context || is_texture_told(b)))
        b = b->next;
    if (b) {
        b->as = *b->host;
        b->told = true;
        *out = *b;
    }
    hed_unlock(&binding_lock);
    return b != NULL;
}

/* The driver refused it: that is tried again at the next launch. */
static void
mark_untold(const struct binding *refused)
{
    struct binding **at;

    hed_lock(&binding_lock);
    at = find_binding_locked(refused->host, refused->context);
    if (*at)
        (*at)->told = false;
    hed_unlock(&binding_lock);
}

cudaError_t
hed_rt_tell_textures(const struct hed_rt_driver *cu)
{
    CUcontext context = NULL;
    struct binding b;

    if (cu->cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context)
        return cudaSuccess; /* the launch will fail for that reason */
    while (next_to_tell(context, &b)) {
        const cudaError_t r = tell_texture(cu, &b);

        if (r == cudaErrorInvalidResourceHandle) {
            remove_binding(b.host, b.context); /* the context was reset */
        } else if (r != cudaSuccess) {
            mark_untold(&b);
            return r;
        }
    }
    return cudaSuccess;
}

/* ---- binding --------------------------------------------------------------------------------- */

/* The driver's module of a symbol in the current context; `unknown` if it is no such symbol. */
static cudaError_t
symbol_module(const struct hed_rt_driver *cu, const void *host, enum hed_rt_kind kind,
              cudaError_t unknown, struct hed_rt_symbol **symbol, CUmodule *out)
{
    CUlibrary library;
    cudaError_t r;

    *symbol = hed_rt_find(host);
    if (!*symbol || (*symbol)->kind != kind)
        return unknown;
    r = hed_rt_library(cu, (*symbol)->module, &library);
    return r == cudaSuccess ? (cudaError_t)cu->cuLibraryGetModule(out, library) : r;
}

/* Begins a binding: the reference is found, and bound to nothing. */
static cudaError_t
begin_binding(const struct hed_rt_driver *cu, const textureReference *texref, struct binding *out)
{
    struct hed_rt_symbol *symbol;
    CUmodule module;
    cudaError_t r =
        symbol_module(cu, texref, HED_RT_TEXTURE, cudaErrorInvalidTexture, &symbol, &module);

    if (r != cudaSuccess)
        return r;
    memset(out, 0, sizeof *out);
    r = (cudaError_t)cu->cuModuleGetTexRef(&out->reference, module, symbol->name);
    if (r == cudaSuccess)
        r = (cudaError_t)cu->cuCtxGetCurrent(&out->context);
    if (r != cudaSuccess)
        return r == cudaErrorSymbolNotFound ? cudaErrorInvalidTexture : r;
    out->host = texref;
    out->module = symbol->module;
    out->fractions = symbol->size == HED_RT_AS_FRACTIONS;
    return cudaSuccess;
}

static cudaError_t
unbind(const struct hed_rt_driver *cu, const struct binding *b)
{
    remove_binding(b->host, b->context);
    return (cudaError_t)cu->cuTexRefSetAddress_v2(NULL, b->reference, 0, 0);
}

/* Ends a binding. How the texture is read is told now, too, for launches of which the runtime does
 * not know (graphs); what is wrong with it is the next launch's result. */
static cudaError_t
end_binding(const struct hed_rt_driver *cu, const struct binding *b)
{
    const cudaError_t r = add_binding(b);

    if (r == cudaSuccess)
        (void)hed_rt_tell_textures(cu);
    return r;
}

static bool
same_channels(const cudaChannelFormatDesc *a, const cudaChannelFormatDesc *b)
{
    return a->x == b->x && a->y == b->y && a->z == b->z && a->w == b->w && a->f == b->f;
}

/* What textures of memory have in common: alignment, size, and the format. */
static cudaError_t
check_texture_memory(const struct hed_rt_driver *cu, const void *devPtr, bool can_shift,
                     struct binding *b, CUdeviceptr *at, size_t *left)
{
    const CUdeviceptr p = (CUdeviceptr)(uintptr_t)devPtr;
    CUdeviceptr base;
    size_t size;
    int device, align = 0;
    cudaError_t r = (cudaError_t)cu->cuMemGetAddressRange_v2(&base, &size, p);

    if (r == cudaSuccess)
        r = hed_rt_device(&device);
    if (r == cudaSuccess)
        r = (cudaError_t)cu->cuDeviceGetAttribute(&align, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT,
                                                  device);
    if (r != cudaSuccess)
        return r;
    b->is_memory = true;
    b->offset = align > 0 ? (size_t)(p % (unsigned)align) : 0;
    *at = p - b->offset;
    *left = (size_t)(base + size - p);
    return b->offset && !can_shift ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t
hed_rt_cudaBindTexture(const struct hed_rt_driver *cu, size_t *offset,
                       const textureReference *texref, const void *devPtr,
                       const cudaChannelFormatDesc *desc, size_t size)
{
    struct hed_rt_texel texel;
    struct binding b;
    CUdeviceptr at;
    size_t left;
    cudaError_t r = begin_binding(cu, texref, &b);

    if (r == cudaSuccess && !desc)
        r = cudaErrorInvalidValue;
    if (r == cudaSuccess)
        r = check_texture_memory(cu, devPtr, offset != NULL, &b, &at, &left);
    if (r == cudaSuccess)
        r = hed_rt_texel(desc, &texel);
    if (r == cudaSuccess && !same_channels(desc, &texref->channelDesc))
        r = cudaErrorInvalidValue;
    if (r == cudaSuccess)
        r = unbind(cu, &b);
    if (r == cudaSuccess)
        r = (cudaError_t)cu->cuTexRefSetFormat(b.reference, texel.format, (int)texel.channels);
    if (r == cudaSuccess)
        r = (cudaError_t)cu->cuTexRefSetAddress_v2(NULL, b.reference, at,
                                                   (size < left ? size : left) + b.offset);
    if (r != cudaSuccess)
        return r;
    b.format = texel.format;
    if (offset)
        *offset = b.offset;
    return end_binding(cu, &b);
}

cudaError_t
hed_rt_cudaBindTexture2D(const struct hed_rt_driver *cu, size_t *offset,
                         const textureReference *texref, const void *devPtr,
                         const cudaChannelFormatDesc *desc, size_t width, size_t height,
                         size_t pitch)
{
    CUDA_ARRAY_DESCRIPTOR_v2 d = {.Width = width, .Height = height};
    struct hed_rt_texel texel;
    struct binding b;
    CUdeviceptr at;
    size_t left;
    cudaError_t r;

    if (!desc || width == 0 || height == 0)
        return cudaErrorInvalidValue;
    r = hed_rt_texel(desc, &texel);
    if (r == cudaSuccess)
        r = begin_binding(cu, texref, &b);
    if (r == cudaSuccess)
        r = check_texture_memory(cu, devPtr, offset != NULL, &b, &at, &left);
    if (r == cudaSuccess && !same_channels(desc, &texref->channelDesc))
        r = cudaErrorInvalidValue;
    if (r == cudaSuccess)
        r = unbind(cu, &b);
    if (r != cudaSuccess)
        return r;
    b.format = d.Format = texel.format;
    d.NumChannels = texel.channels;
    r = (cudaError_t)cu->cuTexRefSetAddress2D_v3(b.reference, &d, at, pitch);
    if (r != cudaSuccess)
        return r;
    if (offset)
        *offset = b.offset;
    return end_binding(cu, &b);
}

/* Textures of arrays, and of mipmapped arrays by their first level. */
static cudaError_t
begin_array(const struct hed_rt_driver *cu, const textureReference *texref, CUarray array,
            const cudaChannelFormatDesc *desc, struct binding *b)
{
    CUDA_ARRAY3D_DESCRIPTOR_v2 d;
    cudaChannelFormatDesc channels;
    cudaError_t r = (cudaError_t)cu->cuArray3DGetDescriptor_v2(&d, array);

    if (r == cudaSuccess)
        r = begin_binding(cu, texref, b);
    if (r != cudaSuccess)
        return r;
    channels = hed_rt_channels(d.Format, d.NumChannels);
    if (!desc || !same_channels(desc, &channels) || !same_channels(desc, &texref->channelDesc))
        return cudaErrorInvalidValue;
    b->format = d.Format;
    return unbind(cu, b);
}

cudaError_t
hed_rt_cudaBindTextureToArray(const struct hed_rt_driver *cu, const textureReference *texref,
                              cudaArray_const_t array, const cudaChannelFormatDesc *desc)
{
    CUarray a = (CUarray)(uintptr_t)array;
    struct binding b;
    cudaError_t r = begin_array(cu, texref, a, desc, &b);

    if (r == cudaSuccess)
        r = (cudaError_t)cu->cuTexRefSetArray(b.reference, a, 0);
    return r == cudaSuccess ? end_binding(cu, &b) : r;
}

cudaError_t
hed_rt_cudaBindTextureToMipmappedArray(const struct hed_rt_driver *cu,
                                       const textureReference *texref,
                                       cudaMipmappedArray_const_t mipmappedArray,
                                       const cudaChannelFormatDesc *desc)
{
    CUmipmappedArray m = (CUmipmappedArray)(uintptr_t)mipmappedArray;
    struct binding b;
    CUarray level;
    cudaError_t r = (cudaError_t)cu->cuMipmappedArrayGetLevel(&level, m, 0);

    if (r == cudaSuccess)
        r = begin_array(cu, texref, level, desc, &b);
    if (r == cudaSuccess)
        r = (cudaError_t)cu->cuTexRefSetMipmappedArray(b.reference, m, 1);
    return r == cudaSuccess ? end_binding(cu, &b) : r;
}

cudaError_t
hed_rt_cudaUnbindTexture(const struct hed_rt_driver *cu, const textureReference *texref)
{
    struct binding b;
    const cudaError_t r = begin_binding(cu, texref, &b);

    return r == cudaSuccess ? unbind(cu, &b) : r;
}

cudaError_t
hed_rt_cudaBindSurfaceToArray(const struct hed_rt_driver *cu, const surfaceReference *surfref,
                              cudaArray_const_t array, const cudaChannelFormatDesc *desc)
{
    CUarray a = (CUarray)(uintptr_t)array;
    CUDA_ARRAY3D_DESCRIPTOR_v2 d;
    struct hed_rt_symbol *symbol;
    CUmodule module;
    CUsurfref reference;
    cudaError_t r = (cudaError_t)cu->cuArray3DGetDescriptor_v2(&d, a);

    if (r == cudaSuccess)
        r = symbol_module(cu, surfref, HED_RT_SURFACE, cudaErrorInvalidSurface, &symbol, &module);
    if (r != cudaSuccess)
        return r;
    r = (cudaError_t)cu->cuModuleGetSurfRef(&reference, module, symbol->name);
    if (r != cudaSuccess)
        return r == cudaErrorSymbolNotFound ? cudaErrorInvalidSurface : r;
    return (cudaError_t)cu->cuSurfRefSetArray(reference, a, 0);
}

/* ---- questions ------------------------------------------------------------------------------- */

cudaError_t
hed_rt_cudaGetTextureAlignmentOffset(const struct hed_rt_driver *cu, size_t *offset,
                                     const textureReference *texref)
{
    struct binding b, **at;
    cudaError_t r = begin_binding(cu, texref, &b);

    if (r == cudaSuccess && !offset)
        r = cudaErrorInvalidValue;
    if (r != cudaSuccess)
        return r;
    hed_lock(&binding_lock);
    at = find_binding_locked(texref, b.context);
    if (*at && (*at)->is_memory)
        *offset = (*at)->offset;
    else
        r = cudaErrorInvalidTextureBinding;
    hed_unlock(&binding_lock);
    return r;
}

/* The host's variable is the reference; what is asked is whether the device has it, too. These two
 * do not count as failures of the program's, so that nobody else makes a context. */
cudaError_t
hed_rt_cudaGetTextureReference(const struct hed_rt_driver *cu, const textureReference **texref,
                               const void *symbol)
{
    struct binding b;
    cudaError_t r;
    int tries = 0;

    if (!texref)
        return cudaErrorInvalidValue;
    do {
        r = begin_binding(cu, symbol, &b);
    } while (r != cudaSuccess && ++tries < HED_RT_TRIES && hed_rt_enter(&r));
    if (r == cudaSuccess)
        *texref = symbol;
    return r;
}

cudaError_t
hed_rt_cudaGetSurfaceReference(const struct hed_rt_driver *cu, const surfaceReference **surfref,
                               const void *symbol)
{
    struct hed_rt_symbol *s;
    CUmodule module;
    CUsurfref reference;
    cudaError_t r;
    int tries = 0;

    if (!surfref)
        return cudaErrorInvalidValue;
    do {
        r = symbol_module(cu, symbol, HED_RT_SURFACE, cudaErrorInvalidSurface, &s, &module);
        if (r == cudaSuccess)
            r = (cudaError_t)cu->cuModuleGetSurfRef(&reference, module, s->name);
    } while (r != cudaSuccess && ++tries < HED_RT_TRIES && hed_rt_enter(&r));
    if (r == cudaSuccess)
        *surfref = symbol;
    return r == cudaErrorSymbolNotFound ? cudaErrorInvalidSurface : r;
}
