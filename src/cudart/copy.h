/* Copies as the driver describes them. Used by the copies themselves and by the nodes of graphs. */
#pragma once

#include <stdbool.h>

#include "gen/cudart_abi.h"
#include "gen/cudart_driver.h"

/* The kinds of memory between which a kind of copy goes. cudaErrorInvalidMemcpyDirection: it is
 * none. */
cudaError_t hed_rt_copy_types(cudaMemcpyKind kind, CUmemorytype *src, CUmemorytype *dst);

/* What an array consists of. */
struct hed_rt_element {
    size_t bytes;
    size_t side; /* 1, or how many texels wide and high a compressed block is */
};

/* cudaErrorInvalidChannelDescriptor: the runtime does not know the format. */
cudaError_t hed_rt_element(const CUDA_ARRAY3D_DESCRIPTOR_v2 *d, struct hed_rt_element *out);

/* Checks a copy as cudaMemcpy3D() does and translates it. A copy of nothing is right whatever the
 * rest says, and becomes one of no bytes. */
cudaError_t hed_rt_copy_3d(const struct hed_rt_driver *cu, const cudaMemcpy3DParms *p,
                           CUDA_MEMCPY3D_v2 *out);

/* The way back, for those who ask a graph. */
cudaError_t hed_rt_copy_3d_back(const struct hed_rt_driver *cu, const CUDA_MEMCPY3D_v2 *copy,
                                cudaMemcpy3DParms *out);

/* One end of a copy of pointers. The type is not CU_MEMORYTYPE_ARRAY. */
void hed_rt_copy_from(CUDA_MEMCPY3D_v2 *c, CUmemorytype type, const void *src, size_t pitch);
void hed_rt_copy_to(CUDA_MEMCPY3D_v2 *c, CUmemorytype type, void *dst, size_t pitch);

/* Makes a copy. stream NULL: as the calls without a stream do. */
cudaError_t hed_rt_copy(const struct hed_rt_driver *cu, const CUDA_MEMCPY3D_v2 *c,
                        const cudaStream_t *stream);

/* A copy of `count` bytes; of nothing as above. */
cudaError_t hed_rt_copy_1d(void *dst, const void *src, size_t count, cudaMemcpyKind kind,
                           CUDA_MEMCPY3D_v2 *out);

/* Where in a variable a copy begins, after the checks that copies with symbols make.
 * cudaErrorInvalidSymbol: it is no variable; cudaErrorInvalidValue (since CUDA 11): it is too
 * short. */
cudaError_t hed_rt_symbol_range(const struct hed_rt_driver *cu, const void *symbol, size_t count,
                                size_t offset, CUdeviceptr *at);

/* The primary contexts of two devices. */
cudaError_t hed_rt_peers(int dst, int src, CUcontext *to, CUcontext *from);
