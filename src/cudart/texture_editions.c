/* Texture and surface objects as older editions describe them.
 *
 *   edition        resources, views         textures
 *   8.0, 10.2      without room to grow     without a word on trilinear filters
 *   11.0           without room to grow     without seamless cubemaps (_v2: with them)
 *   12             without room to grow     today's
 *
 * Never writes beyond the struct that a caller of that edition has.
 */
#include <stddef.h>
#include <string.h>

#include "gen/cudart_calls.h"

/* What the old ones have, today's ones have at the same place. */
_Static_assert(offsetof(cudaResourceDesc_12, res.pitch2D.pitchInBytes) ==
                   offsetof(cudaResourceDesc, res.pitch2D.pitchInBytes),
               "resources differ");
_Static_assert(offsetof(cudaResourceViewDesc_12, lastLayer) ==
                   offsetof(cudaResourceViewDesc, lastLayer),
               "views differ");
_Static_assert(offsetof(cudaTextureDesc_11, disableTrilinearOptimization) ==
                   offsetof(cudaTextureDesc, disableTrilinearOptimization),
               "textures differ");
_Static_assert(offsetof(cudaTextureDesc_10, maxMipmapLevelClamp) ==
                   offsetof(cudaTextureDesc, maxMipmapLevelClamp),
               "textures differ");
_Static_assert(sizeof(cudaTextureDesc_v2) == sizeof(cudaTextureDesc), "textures differ");

/* Today's form of an older description, in `room`; NULL stays NULL. */
static const void *
widen_desc(void *room, size_t room_size, const void *old, size_t old_size)
{
    if (!old)
        return NULL;
    memset(room, 0, room_size);
    memcpy(room, old, old_size);
    return room;
}

static cudaError_t
create_old_texture(const struct hed_rt_driver *cu, cudaTextureObject_t *object,
                   const cudaResourceDesc_12 *resource, const void *texture, size_t texture_size,
                   const cudaResourceViewDesc_12 *view)
{
    cudaResourceDesc r;
    cudaTextureDesc t;
    cudaResourceViewDesc v;

    return hed_rt_cudaCreateTextureObject(cu, object,
                                          widen_desc(&r, sizeof r, resource, sizeof *resource),
                                          widen_desc(&t, sizeof t, texture, texture_size),
                                          widen_desc(&v, sizeof v, view, sizeof *view));
}

cudaError_t
hed_rt_cudaCreateTextureObject_12(const struct hed_rt_driver *cu, cudaTextureObject_t *pTexObject,
                                  const cudaResourceDesc_12 *pResDesc,
                                  const cudaTextureDesc *pTexDesc,
                                  const cudaResourceViewDesc_12 *pResViewDesc)
{
    return create_old_texture(cu, pTexObject, pResDesc, pTexDesc, sizeof *pTexDesc, pResViewDesc);
}

cudaError_t
hed_rt_cudaCreateTextureObject_11(const struct hed_rt_driver *cu, cudaTextureObject_t *pTexObject,
                                  const cudaResourceDesc_12 *pResDesc,
                                  const cudaTextureDesc_11 *pTexDesc,
                                  const cudaResourceViewDesc_12 *pResViewDesc)
{
    return create_old_texture(cu, pTexObject, pResDesc, pTexDesc, sizeof *pTexDesc, pResViewDesc);
}

cudaError_t
hed_rt_cudaCreateTextureObject_10(const struct hed_rt_driver *cu, cudaTextureObject_t *pTexObject,
                                  const cudaResourceDesc_12 *pResDesc,
                                  const cudaTextureDesc_10 *pTexDesc,
                                  const cudaResourceViewDesc_12 *pResViewDesc)
{
    static const cudaTextureDesc_10 zeros; /* what no description meant before CUDA 11 */

    if (!pTexDesc)
        pTexDesc = &zeros;
    return create_old_texture(cu, pTexObject, pResDesc, pTexDesc, sizeof *pTexDesc, pResViewDesc);
}

cudaError_t
hed_rt_cudaCreateTextureObject_v2(const struct hed_rt_driver *cu, cudaTextureObject_t *pTexObject,
                                  const cudaResourceDesc_12 *pResDesc,
                                  const cudaTextureDesc_v2 *pTexDesc,
                                  const cudaResourceViewDesc_12 *pResViewDesc)
{
    return create_old_texture(cu, pTexObject, pResDesc, pTexDesc, sizeof *pTexDesc, pResViewDesc);
}

cudaError_t
hed_rt_cudaCreateSurfaceObject_12(const struct hed_rt_driver *cu, cudaSurfaceObject_t *pSurfObject,
                                  const cudaResourceDesc_12 *pResDesc)
{
    cudaResourceDesc r;

    return hed_rt_cudaCreateSurfaceObject(cu, pSurfObject,
                                          widen_desc(&r, sizeof r, pResDesc, sizeof *pResDesc));
}

/* ---- asking ---------------------------------------------------------------------------------- */

cudaError_t
hed_rt_cudaGetTextureObjectResourceDesc_12(const struct hed_rt_driver *cu,
                                           cudaResourceDesc_12 *pResDesc,
                                           cudaTextureObject_t texObject)
{
    cudaResourceDesc d;
    const cudaError_t r =
        hed_rt_cudaGetTextureObjectResourceDesc(cu, pResDesc ? &d : NULL, texObject);

    if (r == cudaSuccess)
        memcpy(pResDesc, &d, sizeof *pResDesc);
    return r;
}

cudaError_t
hed_rt_cudaGetSurfaceObjectResourceDesc_12(const struct hed_rt_driver *cu,
                                           cudaResourceDesc_12 *pResDesc,
                                           cudaSurfaceObject_t surfObject)
{
    cudaResourceDesc d;
    const cudaError_t r =
        hed_rt_cudaGetSurfaceObjectResourceDesc(cu, pResDesc ? &d : NULL, surfObject);

    if (r == cudaSuccess)
        memcpy(pResDesc, &d, sizeof *pResDesc);
    return r;
}

cudaError_t
hed_rt_cudaGetTextureObjectResourceViewDesc_12(const struct hed_rt_driver *cu,
                                               cudaResourceViewDesc_12 *pResViewDesc,
                                               cudaTextureObject_t texObject)
{
    cudaResourceViewDesc d;
    const cudaError_t r =
        hed_rt_cudaGetTextureObjectResourceViewDesc(cu, pResViewDesc ? &d : NULL, texObject);

    if (r == cudaSuccess)
        memcpy(pResViewDesc, &d, sizeof *pResViewDesc);
    return r;
}

static cudaError_t
old_texture_desc(const struct hed_rt_driver *cu, void *out, size_t size, cudaTextureObject_t object)
{
    cudaTextureDesc d;
    const cudaError_t r = hed_rt_cudaGetTextureObjectTextureDesc(cu, out ? &d : NULL, object);

    if (r == cudaSuccess)
        memcpy(out, &d, size);
    return r;
}

cudaError_t
hed_rt_cudaGetTextureObjectTextureDesc_11(const struct hed_rt_driver *cu,
                                          cudaTextureDesc_11 *pTexDesc,
                                          cudaTextureObject_t texObject)
{
    return old_texture_desc(cu, pTexDesc, sizeof *pTexDesc, texObject);
}

cudaError_t
hed_rt_cudaGetTextureObjectTextureDesc_10(const struct hed_rt_driver *cu,
                                          cudaTextureDesc_10 *pTexDesc,
                                          cudaTextureObject_t texObject)
{
    return old_texture_desc(cu, pTexDesc, sizeof *pTexDesc, texObject);
}

cudaError_t
hed_rt_cudaGetTextureObjectTextureDesc_v2(const struct hed_rt_driver *cu,
                                          cudaTextureDesc_v2 *pTexDesc,
                                          cudaTextureObject_t texObject)
{
    return old_texture_desc(cu, pTexDesc, sizeof *pTexDesc, texObject);
}
