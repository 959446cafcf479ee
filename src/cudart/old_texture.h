/* Texture and surface references, which programs until CUDA 11 have: variables of the host that
 * stand for variables of the device, and are bound to memory. */
#pragma once

#include <stdatomic.h>

#include "cudart/registry.h"

/* What __cudaRegisterTexture() tells of a texture is kept as its symbol's size. */
#define HED_RT_AS_FRACTIONS 1 /* integers are read as fractions: cudaReadModeNormalizedFloat */

extern atomic_uint hed_rt_bound_textures; /* how many are bound */

/* Programs may change how a bound texture is read, until a kernel is launched: this tells the
 * driver. For every launch, while textures are bound. */
cudaError_t hed_rt_tell_textures(const struct hed_rt_driver *cu);

static inline cudaError_t
hed_rt_before_launch(const struct hed_rt_driver *cu)
{
    /* Relaxed: a thread that launches a kernel knows of its own bindings, and orders others'. */
    return __builtin_expect(atomic_load_explicit(&hed_rt_bound_textures, memory_order_relaxed) != 0,
                            0)
               ? hed_rt_tell_textures(cu)
               : cudaSuccess;
}

/* The textures of a module that goes are no longer looked at. */
void hed_rt_forget_textures(const struct hed_rt_module *m);
