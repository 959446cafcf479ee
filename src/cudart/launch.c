/* Launches: what compilers make of <<< >>>, and the calls behind it.
 *
 *   kernel<<<grid, block>>>(x)
 *     __cudaPushCallConfiguration(grid, block, ...)    in the caller
 *     stub(x): __cudaPopCallConfiguration(...)         in the stub of the kernel
 *              cudaLaunchKernel(stub, ...)
 *
 * Launches nest when an argument of one is computed by another: hence push and pop.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "cudart/context.h"
#include "cudart/exports.h"
#include "cudart/front.h"
#include "cudart/launch.h"
#include "cudart/old_texture.h"
#include "cudart/registry.h"
#include "cudart/thread.h"
#include "gen/cudart_calls.h"

/* ---- configurations -------------------------------------------------------------------------- */

/* A configuration that another one stands in front of. */
struct hed_rt_outer {
    struct hed_rt_config config;
    struct hed_rt_outer *next;
};

static pthread_once_t outer_once = PTHREAD_ONCE_INIT;
static pthread_key_t outer_key; /* frees what a thread leaves behind */

static void
free_outer(void *list)
{
    for (struct hed_rt_outer *o = list; o;) {
        struct hed_rt_outer *next = o->next;

        free(o);
        o = next;
    }
}

static void
make_outer_key(void)
{
    (void)pthread_key_create(&outer_key, free_outer);
}

unsigned
hed_rt_push_config(const struct hed_rt_config *c)
{
    struct hed_rt_thread *t = &hed_rt_thread;

    if (t->depth) {
        struct hed_rt_outer *o = malloc(sizeof *o);

        if (!o)
            return cudaErrorMemoryAllocation;
        *o = (struct hed_rt_outer){t->config, t->outer};
        t->outer = o;
        (void)pthread_once(&outer_once, make_outer_key);
        (void)pthread_setspecific(outer_key, o);
    }
    t->config = *c;
    t->depth++;
    return cudaSuccess;
}

bool
hed_rt_pop_config(struct hed_rt_config *out)
{
    struct hed_rt_thread *t = &hed_rt_thread;

    if (!t->depth)
        return false;
    *out = t->config;
    if (--t->depth) {
        struct hed_rt_outer *o = t->outer;

        t->config = o->config;
        t->outer = o->next;
        (void)pthread_setspecific(outer_key, t->outer);
        free(o);
    }
    return true;
}

cudaError_t
hed_rt___cudaPopCallConfiguration(const struct hed_rt_driver *cu, dim3 *gridDim, dim3 *blockDim,
                                  size_t *sharedMem, void *stream)
{
    struct hed_rt_config c;

    if (!hed_rt_pop_config(&c))
        return cudaErrorMissingConfiguration;
    *gridDim = c.grid;
    *blockDim = c.block;
    *sharedMem = c.shared;
    *(cudaStream_t *)stream = c.stream;
    return cudaSuccess;
}

/* ---- launches -------------------------------------------------------------------------------- */

bool
hed_rt_sizes_are_valid(const struct hed_rt_driver *cu, dim3 grid, dim3 block)
{
    const struct {
        CUdevice_attribute limit;
        unsigned long long is;
    } sizes[] = {
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, grid.x},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, grid.y},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, grid.z},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, block.x},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, block.y},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, block.z},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
         (unsigned long long)block.x * block.y * block.z},
    };
    int device;

    if (hed_rt_device(&device) != cudaSuccess)
        return true;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int limit = 0;

        if (cu->cuDeviceGetAttribute(&limit, sizes[i].limit, device) != CUDA_SUCCESS)
            return true;
        if (!sizes[i].is || sizes[i].is > (unsigned long long)limit)
            return false;
    }
    return true;
}

cudaError_t
hed_rt_launch_result(const struct hed_rt_driver *cu, CUresult r, dim3 grid, dim3 block)
{
    if (r == CUDA_ERROR_INVALID_VALUE && hed_rt_version < 13000 &&
        !hed_rt_sizes_are_valid(cu, grid, block))
        return cudaErrorInvalidConfiguration;
    return (cudaError_t)r;
}

static cudaError_t
launch_kernel(const struct hed_rt_driver *cu, CUkernel kernel, dim3 gridDim, dim3 blockDim,
              void **args, size_t sharedMem, cudaStream_t stream)
{
    const cudaError_t e = hed_rt_before_launch(cu);
    CUresult r;

    if (__builtin_expect(e != cudaSuccess, 0))
        return e;
    r = cu->cuLaunchKernel((CUfunction)kernel, gridDim.x, gridDim.y, gridDim.z, blockDim.x,
                           blockDim.y, blockDim.z, (unsigned)sharedMem, stream, args, NULL);
    if (__builtin_expect(r == CUDA_SUCCESS, 1))
        return cudaSuccess;
    return hed_rt_launch_result(cu, r, gridDim, blockDim);
}

cudaError_t
hed_rt_cudaLaunchKernel(const struct hed_rt_driver *cu, const void *func, dim3 gridDim,
                        dim3 blockDim, void **args, size_t sharedMem, cudaStream_t stream)
{
    CUkernel kernel;
    const cudaError_t r = hed_rt_kernel(cu, func, &kernel);

    return r == cudaSuccess ? launch_kernel(cu, kernel, gridDim, blockDim, args, sharedMem, stream)
                            : r;
}

/* A stub asks for its kernel only once. If it cannot be had then, the stub gets its own address
 * with this bit, which neither addresses nor handles have, so that each launch tries again and
 * tells what is wrong. */
#define STUB_BIT ((uintptr_t)1 << 63)

cudaError_t
hed_rt___cudaGetKernel(const struct hed_rt_driver *cu, cudaKernel_t *kernel, const void *entry)
{
    const struct hed_rt_symbol *s = hed_rt_find(entry);
    CUkernel k;
    cudaError_t r = cudaErrorInvalidDeviceFunction;

    if (!kernel)
        return cudaErrorInvalidValue;
    if ((s && s->kind == HED_RT_KERNEL) || hed_rt_version < 13000)
        r = hed_rt_kernel(cu, entry, &k);
    *kernel = r == cudaSuccess ? (cudaKernel_t)k
              : entry          ? (cudaKernel_t)((uintptr_t)entry | STUB_BIT)
                               : NULL;
    return r;
}

cudaError_t
hed_rt___cudaLaunchKernel(const struct hed_rt_driver *cu, cudaKernel_t kernel, dim3 gridDim,
                          dim3 blockDim, void **args, size_t sharedMem, cudaStream_t stream)
{
    if (__builtin_expect((intptr_t)kernel <= 0, 0))
        return hed_rt_cudaLaunchKernel(cu, (const void *)((uintptr_t)kernel & ~STUB_BIT), gridDim,
                                       blockDim, args, sharedMem, stream);
    return launch_kernel(cu, (CUkernel)kernel, gridDim, blockDim, args, sharedMem, stream);
}

cudaError_t
hed_rt_cudaLaunchCooperativeKernel(const struct hed_rt_driver *cu, const void *func, dim3 gridDim,
                                   dim3 blockDim, void **args, size_t sharedMem,
                                   cudaStream_t stream)
{
    CUkernel kernel;
    cudaError_t e = hed_rt_kernel(cu, func, &kernel);
    CUresult r;

    if (e == cudaSuccess)
        e = hed_rt_before_launch(cu);
    if (e != cudaSuccess)
        return e;
    r = cu->cuLaunchCooperativeKernel((CUfunction)kernel, gridDim.x, gridDim.y, gridDim.z,
                                      blockDim.x, blockDim.y, blockDim.z, (unsigned)sharedMem,
                                      (CUstream)stream, args);
    return hed_rt_launch_result(cu, r, gridDim, blockDim);
}

cudaError_t
hed_rt_cudaLaunchKernelExC(const struct hed_rt_driver *cu, const cudaLaunchConfig_t *config,
                           const void *func, void **args)
{
    CUlaunchConfig c;
    CUkernel kernel;
    cudaError_t r;

    if (!config)
        return cudaErrorInvalidValue;
    r = hed_rt_kernel(cu, func, &kernel);
    if (r == cudaSuccess)
        r = hed_rt_before_launch(cu);
    if (r != cudaSuccess)
        return r;
    c = hed_rt_launch_config(config);
    return hed_rt_launch_result(cu, cu->cuLaunchKernelEx(&c, (CUfunction)kernel, args, NULL),
                                config->gridDim, config->blockDim);
}

cudaError_t
hed_rt_cudaGetKernel(const struct hed_rt_driver *cu, cudaKernel_t *kernel, const void *entry)
{
    const struct hed_rt_symbol *s = hed_rt_find(entry);
    CUkernel k;
    cudaError_t r;

    if (!kernel)
        return cudaErrorInvalidValue;
    if (!s || s->kind != HED_RT_KERNEL)
        return cudaErrorInvalidDeviceFunction;
    r = hed_rt_kernel(cu, entry, &k);
    if (r == cudaSuccess)
        *kernel = (cudaKernel_t)k;
    return r;
}
