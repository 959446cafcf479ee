/* Kernels: what is known about them, and how many blocks of them fit on a device.
 *
 * All of it is asked of the CUkernel, for one device. So only this kernel is ever looked for, and
 * no context is needed, except where the driver wants the kernel's function in the current one.
 */
#include <stddef.h>
#include <string.h>

#include "cudart/context.h"
#include "cudart/launch.h"
#include "cudart/registry.h"
#include "gen/cudart_calls.h"

/* ---- attributes ------------------------------------------------------------------------------ */

/* Member of cudaFuncAttributes and the attribute that it has. */
struct function_member {
    unsigned char offset;
    unsigned char bytes; /* 4 or 8 */
    short attribute;     /* CUfunction_attribute */
};

#define MEMBER(member, attribute)                                                           \
    {                                                                                       \
        offsetof(cudaFuncAttributes, member), sizeof(((cudaFuncAttributes *)NULL)->member), \
            CU_FUNC_ATTRIBUTE_##attribute                                                   \
    }

/* Those that CUDA 11 does not have come last. */
static const struct function_member function_members[] = {
    MEMBER(sharedSizeBytes, SHARED_SIZE_BYTES),
    MEMBER(constSizeBytes, CONST_SIZE_BYTES),
    MEMBER(localSizeBytes, LOCAL_SIZE_BYTES),
    MEMBER(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
    MEMBER(numRegs, NUM_REGS),
    MEMBER(ptxVersion, PTX_VERSION),
    MEMBER(binaryVersion, BINARY_VERSION),
    MEMBER(cacheModeCA, CACHE_MODE_CA),
    MEMBER(maxDynamicSharedSizeBytes, MAX_DYNAMIC_SHARED_SIZE_BYTES),
    MEMBER(preferredShmemCarveout, PREFERRED_SHARED_MEMORY_CARVEOUT),
    MEMBER(clusterDimMustBeSet, CLUSTER_SIZE_MUST_BE_SET),
    MEMBER(requiredClusterWidth, REQUIRED_CLUSTER_WIDTH),
    MEMBER(requiredClusterHeight, REQUIRED_CLUSTER_HEIGHT),
    MEMBER(requiredClusterDepth, REQUIRED_CLUSTER_DEPTH),
    MEMBER(clusterSchedulingPolicyPreference, CLUSTER_SCHEDULING_POLICY_PREFERENCE),
    MEMBER(nonPortableClusterSizeAllowed, NON_PORTABLE_CLUSTER_SIZE_ALLOWED),
};

_Static_assert(offsetof(cudaFuncAttributes_11, preferredShmemCarveout) ==
                   offsetof(cudaFuncAttributes, preferredShmemCarveout),
               "the layout of CUDA 11 is the beginning of today's");

/* The kernel of `func`, and the device that it is asked about. */
static cudaError_t
kernel_and_device(const struct hed_rt_driver *cu, const void *func, CUkernel *kernel, int *device)
{
    const cudaError_t r = hed_rt_kernel(cu, func, kernel);

    return r == cudaSuccess ? hed_rt_device(device) : r;
}

static cudaError_t
describe_function(const struct hed_rt_driver *cu, void *attr, size_t bytes, const void *func)
{
    const size_t count = sizeof function_members / sizeof function_members[0];
    cudaFuncAttributes a = {0};
    CUkernel kernel;
    int device;
    cudaError_t r;

    if (!attr)
        return cudaErrorInvalidValue;
    r = kernel_and_device(cu, func, &kernel, &device);
    for (size_t i = 0; i < count && r == cudaSuccess; i++) {
        const struct function_member *m = &function_members[i];
        int value = 0;
        size_t wide;

        if (m->offset >= bytes)
            break;
        r = (cudaError_t)cu->cuKernelGetAttribute(&value, (CUfunction_attribute)m->attribute,
                                                  kernel, device);
        wide = (size_t)value;
        if (m->bytes == sizeof wide)
            memcpy((char *)&a + m->offset, &wide, sizeof wide);
        else
            memcpy((char *)&a + m->offset, &value, sizeof value);
    }
    if (r == cudaSuccess)
        memcpy(attr, &a, bytes);
    return r;
}

cudaError_t
hed_rt_cudaFuncGetAttributes(const struct hed_rt_driver *cu, cudaFuncAttributes *attr,
                             const void *func)
{
    return describe_function(cu, attr, sizeof *attr, func);
}

cudaError_t
hed_rt_cudaFuncGetAttributes_11(const struct hed_rt_driver *cu, cudaFuncAttributes_11 *attr,
                                const void *func)
{
    return describe_function(cu, attr, sizeof *attr, func);
}

/* A kernel that is about to be changed. The driver would do that even in a context that has failed,
 * but does not give its function there. */
static cudaError_t
kernel_to_change(const struct hed_rt_driver *cu, const void *func, CUkernel *kernel, int *device)
{
    cudaError_t r = kernel_and_device(cu, func, kernel, device);
    CUfunction unused;

    if (r == cudaSuccess)
        r = (cudaError_t)cu->cuKernelGetFunction(&unused, *kernel);
    return r;
}

cudaError_t
hed_rt_cudaFuncSetAttribute(const struct hed_rt_driver *cu, const void *func,
                            cudaFuncAttribute attr, int value)
{
    CUkernel kernel;
    int device;
    cudaError_t r;

    if (attr < cudaFuncAttributeMaxDynamicSharedMemorySize || attr >= cudaFuncAttributeMax)
        return cudaErrorInvalidValue;
    r = kernel_to_change(cu, func, &kernel, &device);
    return r == cudaSuccess ? (cudaError_t)cu->cuKernelSetAttribute((CUfunction_attribute)attr,
                                                                    value, kernel, device)
                            : r;
}

cudaError_t
hed_rt_cudaFuncSetCacheConfig(const struct hed_rt_driver *cu, const void *func,
                              cudaFuncCache cacheConfig)
{
    CUkernel kernel;
    int device;
    const cudaError_t r = kernel_to_change(cu, func, &kernel, &device);

    return r == cudaSuccess
               ? (cudaError_t)cu->cuKernelSetCacheConfig(kernel, (CUfunc_cache)cacheConfig, device)
               : r;
}

/* The function of a kernel in the current context. */
static cudaError_t
function_here(const struct hed_rt_driver *cu, const void *func, CUfunction *out)
{
    CUkernel kernel;
    const cudaError_t r = hed_rt_kernel(cu, func, &kernel);

    return r == cudaSuccess ? (cudaError_t)cu->cuKernelGetFunction(out, kernel) : r;
}

cudaError_t
hed_rt_cudaFuncSetSharedMemConfig(const struct hed_rt_driver *cu, const void *func,
                                  cudaSharedMemConfig config)
{
    CUfunction function;
    const cudaError_t r = function_here(cu, func, &function);

    return r == cudaSuccess
               ? (cudaError_t)cu->cuFuncSetSharedMemConfig(function, (CUsharedconfig)config)
               : r;
}

cudaError_t
hed_rt_cudaGetFuncBySymbol(const struct hed_rt_driver *cu, cudaFunction_t *functionPtr,
                           const void *symbolPtr)
{
    const struct hed_rt_symbol *s = hed_rt_find(symbolPtr);
    CUfunction function;
    cudaError_t r;

    if (!functionPtr)
        return cudaErrorInvalidValue;
    if (!s || s->kind != HED_RT_KERNEL)
        return cudaErrorInvalidDeviceFunction;
    r = function_here(cu, symbolPtr, &function);
    if (r == cudaSuccess)
        *functionPtr = (cudaFunction_t)function;
    return r;
}

/* ---- names and parameters -------------------------------------------------------------------- */

cudaError_t
hed_rt_cudaFuncGetName(const struct hed_rt_driver *cu, const char **name, const void *func)
{
    const struct hed_rt_symbol *s = hed_rt_find(func);
    CUkernel kernel;
    cudaError_t r;

    if (!name)
        return cudaErrorInvalidValue;
    r = hed_rt_kernel(cu, func, &kernel);
    if (r != cudaSuccess)
        return r;
    if (!s || s->kind != HED_RT_KERNEL || !s->module)
        return (cudaError_t)cu->cuKernelGetName(name, kernel);
    *name = s->name;
    return cudaSuccess;
}

cudaError_t
hed_rt_cudaFuncGetParamInfo(const struct hed_rt_driver *cu, const void *func, size_t paramIndex,
                            size_t *paramOffset, size_t *paramSize)
{
    CUkernel kernel;
    const cudaError_t r = hed_rt_kernel(cu, func, &kernel);

    return r == cudaSuccess
               ? (cudaError_t)cu->cuKernelGetParamInfo(kernel, paramIndex, paramOffset, paramSize)
               : r;
}

/* No driver call of CUDA 13.0 tells their number: counts them. */
cudaError_t
hed_rt_cudaFuncGetParamCount(const struct hed_rt_driver *cu, const void *func, size_t *paramCount)
{
    CUkernel kernel;
    size_t offset;
    size_t n = 0;
    cudaError_t r;

    if (!paramCount)
        return cudaErrorInvalidValue;
    r = hed_rt_kernel(cu, func, &kernel);
    while (r == cudaSuccess) {
        r = (cudaError_t)cu->cuKernelGetParamInfo(kernel, n, &offset, NULL);
        n += r == cudaSuccess;
    }
    if (r != cudaErrorInvalidValue)
        return r;
    *paramCount = n;
    return cudaSuccess;
}

/* ---- occupancy ------------------------------------------------------------------------------- */

cudaError_t
hed_rt_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(const struct hed_rt_driver *cu,
                                                              int *numBlocks, const void *func,
                                                              int blockSize, size_t dynamicSMemSize,
                                                              unsigned int flags)
{
    CUkernel kernel;
    const cudaError_t r = hed_rt_kernel(cu, func, &kernel);

    return r == cudaSuccess ? (cudaError_t)cu->cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                                  numBlocks, (CUfunction)kernel, blockSize, dynamicSMemSize, flags)
                            : r;
}

cudaError_t
hed_rt_cudaOccupancyMaxActiveBlocksPerMultiprocessor(const struct hed_rt_driver *cu, int *numBlocks,
                                                     const void *func, int blockSize,
                                                     size_t dynamicSMemSize)
{
    return hed_rt_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        cu, numBlocks, func, blockSize, dynamicSMemSize, 0);
}

cudaError_t
hed_rt_cudaOccupancyAvailableDynamicSMemPerBlock(const struct hed_rt_driver *cu,
                                                 size_t *dynamicSmemSize, const void *func,
                                                 int numBlocks, int blockSize)
{
    CUkernel kernel;
    const cudaError_t r = hed_rt_kernel(cu, func, &kernel);

    return r == cudaSuccess ? (cudaError_t)cu->cuOccupancyAvailableDynamicSMemPerBlock(
                                  dynamicSmemSize, (CUfunction)kernel, numBlocks, blockSize)
                            : r;
}

cudaError_t
hed_rt_cudaOccupancyMaxActiveClusters(const struct hed_rt_driver *cu, int *numClusters,
                                      const void *func, const cudaLaunchConfig_t *launchConfig)
{
    CUlaunchConfig config;
    CUfunction function;
    cudaError_t r;

    if (!launchConfig)
        return cudaErrorInvalidValue;
    r = function_here(cu, func, &function);
    if (r != cudaSuccess)
        return r;
    config = hed_rt_launch_config(launchConfig);
    return (cudaError_t)cu->cuOccupancyMaxActiveClusters(numClusters, function, &config);
}

cudaError_t
hed_rt_cudaOccupancyMaxPotentialClusterSize(const struct hed_rt_driver *cu, int *clusterSize,
                                            const void *func,
                                            const cudaLaunchConfig_t *launchConfig)
{
    CUlaunchConfig config;
    CUfunction function;
    cudaError_t r;

    if (!launchConfig)
        return cudaErrorInvalidValue;
    r = function_here(cu, func, &function);
    if (r != cudaSuccess)
        return r;
    config = hed_rt_launch_config(launchConfig);
    return (cudaError_t)cu->cuOccupancyMaxPotentialClusterSize(clusterSize, function, &config);
}
