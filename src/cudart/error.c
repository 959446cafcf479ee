/* The runtime's errors: see error.h. */
#include "cudart/error.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"
#include "cudart/driver.h"
#include "cudart/thread.h"
#include "gen/cudart_calls.h"

static int
compare_error(const void *number, const void *error)
{
    const int a = *(const int *)number, b = ((const struct hed_rt_error *)error)->number;

    return (a > b) - (a < b);
}

const struct hed_rt_error *
hed_rt_find_error(int number)
{
    return bsearch(&number, hed_rt_errors, hed_rt_error_count, sizeof hed_rt_errors[0],
                   compare_error);
}

cudaError_t
hed_rt_failed(cudaError_t r)
{
    /* Without a driver, that is what is wrong with any call, whatever else is. */
    const CUresult driver = hed_rt_start();

    if (driver != CUDA_SUCCESS)
        r = (cudaError_t)driver;
    /* That something is not done yet is an answer and not an error. */
    if (r != cudaErrorNotReady)
        hed_rt_thread.last = r;
    return r;
}

void
hed_rt_say_missing(const char *name, const char *why)
{
    hed_rt_open_log();
    hed_warn(CUDART, "%s is not supported: %s", name, why);
}

/* NVIDIA's runtime loads the driver for these too, and tells if there is none. */
cudaError_t
hed_rt_cudaGetLastError(const struct hed_rt_driver *cu)
{
    const cudaError_t r = hed_rt_cudaPeekAtLastError(cu);

    hed_rt_thread.last = cudaSuccess;
    return r;
}

cudaError_t
hed_rt_cudaPeekAtLastError(const struct hed_rt_driver *cu)
{
    return hed_rt_thread.last != cudaSuccess ? hed_rt_thread.last : (cudaError_t)hed_rt_start();
}

/* ---- CUDA 8.0 -------------------------------------------------------------------------------- */

/* {number since CUDA 10.1, number before}; errors that are not here did not exist, and are told as
 * unknown. */
static const struct {
    short now, then;
} renumbered[] = {
    {cudaErrorInvalidValue, 11},
    {cudaErrorMemoryAllocation, 2},
    {cudaErrorInitializationError, 3},
    {cudaErrorCudartUnloading, 29},
    {cudaErrorProfilerDisabled, 55},
    {cudaErrorProfilerNotInitialized, 56},
    {cudaErrorProfilerAlreadyStarted, 57},
    {cudaErrorProfilerAlreadyStopped, 58},
    {cudaErrorInvalidConfiguration, 9},
    {cudaErrorInvalidPitchValue, 12},
    {cudaErrorInvalidSymbol, 13},
    {cudaErrorInvalidHostPointer, 16},
    {cudaErrorInvalidDevicePointer, 17},
    {cudaErrorInvalidTexture, 18},
    {cudaErrorInvalidTextureBinding, 19},
    {cudaErrorInvalidChannelDescriptor, 20},
    {cudaErrorInvalidMemcpyDirection, 21},
    {cudaErrorInvalidFilterSetting, 26},
    {cudaErrorInvalidNormSetting, 27},
    {cudaErrorInsufficientDriver, 35},
    {cudaErrorDevicesUnavailable, 46},
    {cudaErrorMissingConfiguration, 1},
    {cudaErrorLaunchMaxDepthExceeded, 65},
    {cudaErrorLaunchFileScopedTex, 66},
    {cudaErrorLaunchFileScopedSurf, 67},
    {cudaErrorSyncDepthExceeded, 68},
    {cudaErrorLaunchPendingCountExceeded, 69},
    {cudaErrorInvalidDeviceFunction, 8},
    {cudaErrorNoDevice, 38},
    {cudaErrorInvalidDevice, 10},
    {cudaErrorStartupFailure, 127},
    {cudaErrorInvalidKernelImage, 47},
    {cudaErrorMapBufferObjectFailed, 14},
    {cudaErrorUnmapBufferObjectFailed, 15},
    {cudaErrorNoKernelImageForDevice, 48},
    {cudaErrorECCUncorrectable, 39},
    {cudaErrorUnsupportedLimit, 42},
    {cudaErrorDeviceAlreadyInUse, 54},
    {cudaErrorPeerAccessUnsupported, 64},
    {cudaErrorInvalidPtx, 78},
    {cudaErrorInvalidGraphicsContext, 79},
    {cudaErrorNvlinkUncorrectable, 80},
    {cudaErrorSharedObjectSymbolNotFound, 40},
    {cudaErrorSharedObjectInitFailed, 41},
    {cudaErrorOperatingSystem, 63},
    {cudaErrorInvalidResourceHandle, 33},
    {cudaErrorNotReady, 34},
    {cudaErrorIllegalAddress, 77},
    {cudaErrorLaunchOutOfResources, 7},
    {cudaErrorLaunchTimeout, 6},
    {cudaErrorPeerAccessAlreadyEnabled, 50},
    {cudaErrorPeerAccessNotEnabled, 51},
    {cudaErrorSetOnActiveProcess, 36},
    {cudaErrorAssert, 59},
    {cudaErrorTooManyPeers, 60},
    {cudaErrorHostMemoryAlreadyRegistered, 61},
    {cudaErrorHostMemoryNotRegistered, 62},
    {cudaErrorHardwareStackError, 72},
    {cudaErrorIllegalInstruction, 73},
    {cudaErrorMisalignedAddress, 74},
    {cudaErrorInvalidAddressSpace, 75},
    {cudaErrorInvalidPc, 76},
    {cudaErrorLaunchFailure, 4},
    {cudaErrorNotPermitted, 70},
    {cudaErrorNotSupported, 71},
    {cudaErrorDuplicateVariableName, 43},
    {cudaErrorDuplicateTextureName, 44},
    {cudaErrorDuplicateSurfaceName, 45},
    {cudaErrorIncompatibleDriverContext, 49},
    {cudaErrorPriorLaunchFailure, 5},
    {cudaErrorAddressOfConstant, 22},
    {cudaErrorTextureFetchFailed, 23},
    {cudaErrorTextureNotBound, 24},
    {cudaErrorSynchronizationError, 25},
    {cudaErrorMixedDeviceExecution, 28},
    {cudaErrorNotYetImplemented, 31},
    {cudaErrorMemoryValueTooLarge, 32},
    {cudaErrorInvalidSurface, 37},
    {cudaErrorApiFailureBase, 10000},
    /* What had no number of its own then; after the error whose number it gets. */
    {cudaErrorDeviceUninitialized, 49},
    {cudaErrorContextIsDestroyed, 49},
    {cudaErrorSymbolNotFound, 13},
    {cudaErrorInvalidSource, 47},
    {cudaErrorUnsupportedPtxVersion, 78},
};

enum { OLD_UNKNOWN = 30 };

cudaError_t
hed_rt_old_error(cudaError_t r)
{
    if (r == cudaSuccess)
        return r;
    for (size_t i = 0; i < sizeof renumbered / sizeof renumbered[0]; i++)
        if (renumbered[i].now == (int)r)
            return (cudaError_t)renumbered[i].then;
    return (cudaError_t)OLD_UNKNOWN;
}

cudaError_t
hed_rt_new_error(int old)
{
    if (old == 0)
        return cudaSuccess;
    for (size_t i = 0; i < sizeof renumbered / sizeof renumbered[0]; i++)
        if (renumbered[i].then == old)
            return (cudaError_t)renumbered[i].now;
    return cudaErrorUnknown;
}
