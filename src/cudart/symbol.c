/* Variables of kernels, which programs know by the address of a shadow in the host's memory.
 *
 * Checks are made in this order: nothing to copy, symbol, size (since CUDA 11, only by the calls
 * without a stream), kind.
 */
#include <stdint.h>

#include "cudart/copy.h"
#include "cudart/driver.h"
#include "cudart/front.h"
#include "cudart/registry.h"
#include "gen/cudart_calls.h"

cudaError_t
hed_rt_cudaGetSymbolAddress(const struct hed_rt_driver *cu, void **devPtr, const void *symbol)
{
    CUdeviceptr at;
    size_t size;
    const cudaError_t r = hed_rt_variable(cu, symbol, &at, &size);

    if (r == cudaSuccess && !devPtr)
        return cudaErrorInvalidValue;
    if (r == cudaSuccess)
        *devPtr = (void *)(uintptr_t)at;
    return r;
}

cudaError_t
hed_rt_cudaGetSymbolSize(const struct hed_rt_driver *cu, size_t *size, const void *symbol)
{
    CUdeviceptr at;
    size_t bytes;
    const cudaError_t r = hed_rt_variable(cu, symbol, &at, &bytes);

    if (r == cudaSuccess && !size)
        return cudaErrorInvalidValue;
    if (r == cudaSuccess)
        *size = bytes;
    return r;
}

cudaError_t
hed_rt_symbol_range(const struct hed_rt_driver *cu, const void *symbol, size_t count, size_t offset,
                    CUdeviceptr *at)
{
    size_t size;
    const cudaError_t r = hed_rt_variable(cu, symbol, at, &size);

    if (r != cudaSuccess)
        return r;
    if (hed_rt_version >= 11000 && (offset > size || count > size - offset))
        return cudaErrorInvalidValue;
    *at += offset;
    return cudaSuccess;
}

/* The driver finds what lies outside of all memory. */
static cudaError_t
place_in_symbol(const struct hed_rt_driver *cu, const void *symbol, size_t offset, void **at)
{
    size_t size;
    CUdeviceptr p;
    const cudaError_t r = hed_rt_variable(cu, symbol, &p, &size);

    if (r == cudaSuccess)
        *at = (void *)(uintptr_t)(p + offset);
    return r;
}

static bool
kind_is_to_symbol(cudaMemcpyKind kind)
{
    return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice ||
           kind == cudaMemcpyDefault;
}

static bool
kind_is_from_symbol(cudaMemcpyKind kind)
{
    return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice ||
           kind == cudaMemcpyDefault;
}

cudaError_t
hed_rt_cudaMemcpyToSymbol(const struct hed_rt_driver *cu, const void *symbol, const void *src,
                          size_t count, size_t offset, cudaMemcpyKind kind)
{
    CUdeviceptr at;
    cudaError_t r;

    if (count == 0)
        return cudaSuccess;
    r = hed_rt_symbol_range(cu, symbol, count, offset, &at);
    if (r != cudaSuccess)
        return r;
    return kind_is_to_symbol(kind) ? hed_rt_cudaMemcpy(cu, (void *)(uintptr_t)at, src, count, kind)
                                   : cudaErrorInvalidMemcpyDirection;
}

cudaError_t
hed_rt_cudaMemcpyToSymbolAsync(const struct hed_rt_driver *cu, const void *symbol, const void *src,
                               size_t count, size_t offset, cudaMemcpyKind kind,
                               cudaStream_t stream)
{
    void *at;
    cudaError_t r;

    if (count == 0)
        return cudaSuccess;
    r = place_in_symbol(cu, symbol, offset, &at);
    if (r != cudaSuccess)
        return r;
    return kind_is_to_symbol(kind) ? hed_rt_cudaMemcpyAsync(cu, at, src, count, kind, stream)
                                   : cudaErrorInvalidMemcpyDirection;
}

cudaError_t
hed_rt_cudaMemcpyFromSymbol(const struct hed_rt_driver *cu, void *dst, const void *symbol,
                            size_t count, size_t offset, cudaMemcpyKind kind)
{
    CUdeviceptr at;
    cudaError_t r;

    if (count == 0)
        return cudaSuccess;
    r = hed_rt_symbol_range(cu, symbol, count, offset, &at);
    if (r != cudaSuccess)
        return r;
    return kind_is_from_symbol(kind)
               ? hed_rt_cudaMemcpy(cu, dst, (void *)(uintptr_t)at, count, kind)
               : cudaErrorInvalidMemcpyDirection;
}

cudaError_t
hed_rt_cudaMemcpyFromSymbolAsync(const struct hed_rt_driver *cu, void *dst, const void *symbol,
                                 size_t count, size_t offset, cudaMemcpyKind kind,
                                 cudaStream_t stream)
{
    void *at;
    cudaError_t r;

    if (count == 0)
        return cudaSuccess;
    r = place_in_symbol(cu, symbol, offset, &at);
    if (r != cudaSuccess)
        return r;
    return kind_is_from_symbol(kind) ? hed_rt_cudaMemcpyAsync(cu, dst, at, count, kind, stream)
                                     : cudaErrorInvalidMemcpyDirection;
}
