/* Launches as compilers made them of <<< >>> until CUDA 9.1, and other calls that are gone.
 *
 *   kernel<<<grid, block>>>(x)
 *     cudaConfigureCall(grid, block, ...)     in the caller
 *     stub(x): cudaSetupArgument(&x, 4, 0)    in the stub of the kernel, once for each argument
 *              cudaLaunch(stub)
 *
 * Launches nest when an argument of one is computed by another, so there is a stack of them.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cudart/context.h"
#include "cudart/launch.h"
#include "cudart/old_texture.h"
#include "cudart/registry.h"
#include "cudart/thread.h"
#include "gen/cudart_calls.h"

#define ARGUMENTS_MAX 4096 /* bytes; no kernel of that time has more */

/* A launch that is being made. */
struct hed_rt_old_call {
    struct hed_rt_config config;
    size_t size; /* bytes of arguments */
    struct hed_rt_old_call *outer;
    _Alignas(16) unsigned char arguments[ARGUMENTS_MAX];
};

static pthread_once_t old_once = PTHREAD_ONCE_INIT;
static pthread_key_t old_key; /* the thread's innermost launch */

static void
free_old_calls(void *innermost)
{
    for (struct hed_rt_old_call *c = innermost; c;) {
        struct hed_rt_old_call *outer = c->outer;

        free(c);
        c = outer;
    }
}

static void
make_old_key(void)
{
    (void)pthread_key_create(&old_key, free_old_calls);
}

static struct hed_rt_old_call *
innermost_old_call(void)
{
    (void)pthread_once(&old_once, make_old_key);
    return pthread_getspecific(old_key);
}

cudaError_t
hed_rt_cudaConfigureCall(const struct hed_rt_driver *cu, dim3 gridDim, dim3 blockDim,
                         size_t sharedMem, cudaStream_t stream)
{
    struct hed_rt_old_call *outer = innermost_old_call();
    struct hed_rt_old_call *c = malloc(sizeof *c);

    if (!c)
        return cudaErrorMemoryAllocation;
    c->config = (struct hed_rt_config){gridDim, blockDim, sharedMem, stream};
    c->size = 0;
    c->outer = outer;
    if (pthread_setspecific(old_key, c) != 0) {
        free(c);
        return cudaErrorMemoryAllocation;
    }
    return cudaSuccess;
}

cudaError_t
hed_rt_cudaSetupArgument(const struct hed_rt_driver *cu, const void *arg, size_t size,
                         size_t offset)
{
    struct hed_rt_old_call *c = innermost_old_call();

    if (!c)
        return cudaErrorMissingConfiguration;
    if (!arg || offset > ARGUMENTS_MAX || size > ARGUMENTS_MAX - offset)
        return cudaErrorInvalidValue;
    /* Arguments may come in any order, and leave gaps for alignment. */
    if (offset > c->size)
        memset(c->arguments + c->size, 0, offset - c->size);
    memcpy(c->arguments + offset, arg, size);
    if (c->size < offset + size)
        c->size = offset + size;
    return cudaSuccess;
}

static cudaError_t
launch_old_call(const struct hed_rt_driver *cu, const void *func, struct hed_rt_old_call *c)
{
    const struct hed_rt_config *g = &c->config;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, c->arguments, CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &c->size, CU_LAUNCH_PARAM_END};
    CUkernel kernel;
    cudaError_t e = hed_rt_kernel(cu, func, &kernel);
    CUresult r;

    if (e == cudaErrorSymbolNotFound)
        e = cudaErrorInvalidDeviceFunction; /* registered, but not in the image */
    if (e == cudaSuccess)
        e = hed_rt_before_launch(cu);
    if (e != cudaSuccess)
        return e;
    r = cu->cuLaunchKernel((CUfunction)kernel, g->grid.x, g->grid.y, g->grid.z, g->block.x,
                           g->block.y, g->block.z, (unsigned)g->shared, g->stream, NULL,
                           c->size ? extra : NULL);
    return r == CUDA_SUCCESS ? cudaSuccess : hed_rt_launch_result(cu, r, g->grid, g->block);
}

/* Whatever comes of it, the launch is over. So a context is made here if one is missing: the call
 * cannot be made again. */
cudaError_t
hed_rt_cudaLaunch(const struct hed_rt_driver *cu, const void *func)
{
    struct hed_rt_old_call *c = innermost_old_call();
    cudaError_t r;
    int tries = 0;

    if (!c)
        return cudaErrorMissingConfiguration;
    do {
        r = launch_old_call(cu, func, c);
    } while (r != cudaSuccess && ++tries < HED_RT_TRIES && hed_rt_enter(&r));
    (void)pthread_setspecific(old_key, c->outer);
    free(c);
    return r;
}

/* ---- one launch on several devices ----------------------------------------------------------- */

/* A launch as the driver describes it: with the function of the context of its stream. */
static cudaError_t
multi_launch(const struct hed_rt_driver *cu, const cudaLaunchParams *in, CUDA_LAUNCH_PARAMS_v1 *out)
{
    CUfunction function = NULL;
    CUcontext context, before;
    CUkernel kernel;
    cudaError_t r = hed_rt_kernel(cu, in->func, &kernel);

    if (r == cudaSuccess)
        r = (cudaError_t)cu->cuStreamGetCtx(in->stream, &context);
    if (r == cudaSuccess)
        r = (cudaError_t)cu->cuCtxPushCurrent_v2(context);
    if (r != cudaSuccess)
        return r;
    r = (cudaError_t)cu->cuKernelGetFunction(&function, kernel);
    (void)cu->cuCtxPopCurrent_v2(&before);
    *out = (CUDA_LAUNCH_PARAMS_v1){
        .function = function,
        .gridDimX = in->gridDim.x,
        .gridDimY = in->gridDim.y,
        .gridDimZ = in->gridDim.z,
        .blockDimX = in->blockDim.x,
        .blockDimY = in->blockDim.y,
        .blockDimZ = in->blockDim.z,
        .sharedMemBytes = (unsigned)in->sharedMem,
        .hStream = in->stream,
        .kernelParams = in->args,
    };
    return r;
}

cudaError_t
hed_rt_cudaLaunchCooperativeKernelMultiDevice(const struct hed_rt_driver *cu,
                                              cudaLaunchParams *launchParamsList,
                                              unsigned int numDevices, unsigned int flags)
{
    CUDA_LAUNCH_PARAMS_v1 *list;
    int devices = 0;
    cudaError_t r = (cudaError_t)cu->cuDeviceGetCount(&devices);

    if (r != cudaSuccess)
        return r;
    if (!launchParamsList || numDevices == 0 || numDevices > (unsigned)devices)
        return cudaErrorInvalidValue;
    list = calloc(numDevices, sizeof *list);
    if (!list)
        return cudaErrorMemoryAllocation;
    for (unsigned i = 0; i < numDevices && r == cudaSuccess; i++)
        r = launchParamsList[i].func == launchParamsList[0].func
                ? multi_launch(cu, &launchParamsList[i], &list[i])
                : cudaErrorInvalidValue;
    if (r == cudaSuccess)
        r = hed_rt_before_launch(cu);
    if (r == cudaSuccess &&
        !hed_rt_sizes_are_valid(cu, launchParamsList[0].gridDim, launchParamsList[0].blockDim))
        r = cudaErrorInvalidConfiguration;
    if (r == cudaSuccess)
        r = (cudaError_t)cu->cuLaunchCooperativeKernelMultiDevice(list, numDevices, flags);
    free(list);
    return r;
}

/* ---- no conversion is needed since CUDA 2.0's devices ---------------------------------------- */

cudaError_t
hed_rt_cudaSetDoubleForDevice(const struct hed_rt_driver *cu, double *d)
{
    return cudaSuccess;
}

cudaError_t
hed_rt_cudaSetDoubleForHost(const struct hed_rt_driver *cu, double *d)
{
    return cudaSuccess;
}
