/* Devices: flags, peers, versions. Which device a thread uses is in context.c. */
#include "cudart/device.h"

#include <stdatomic.h>
#include <stdint.h>

#include "cudart/context.h"
#include "cudart/driver.h"
#include "cudart/front.h"
#include "cudart/thread.h"
#include "gen/cudart_calls.h"

/* ---- what children may ask for --------------------------------------------------------------- */

static _Atomic int known_count;   /* of devices; 0: not known yet, or none */
static _Atomic int known_version; /* of the driver; 0: not known yet */

/* Asks the driver for a number that does not change, unless it is known. */
static CUresult
ask_once(_Atomic int *known, CUresult (*ask)(int *), int *out)
{
    CUresult r = CUDA_SUCCESS;
    int n = atomic_load_explicit(known, memory_order_relaxed);

    if (!n) {
        r = ask(&n);
        if (r == CUDA_SUCCESS)
            atomic_store_explicit(known, n, memory_order_relaxed);
    }
    if (r == CUDA_SUCCESS)
        *out = n;
    return r;
}

void
hed_rt_know_devices(const struct hed_rt_driver *cu)
{
    static _Atomic bool done;
    int count, version;

    if (atomic_load_explicit(&done, memory_order_relaxed) ||
        atomic_exchange_explicit(&done, true, memory_order_relaxed))
        return;
    (void)ask_once(&known_version, cu->cuDriverGetVersion, &version);
    if (ask_once(&known_count, cu->cuDeviceGetCount, &count) == CUDA_SUCCESS &&
        hed_rt_version >= 13000)
        hed_rt_know_properties(cu, count);
}

cudaError_t
hed_rt_count_devices(const struct hed_rt_driver *cu, int *out)
{
    const CUresult r = ask_once(&known_count, cu->cuDeviceGetCount, out);

    if (r == CUDA_SUCCESS)
        hed_rt_know_devices(cu);
    return (cudaError_t)r;
}

/* ---- flags ----------------------------------------------------------------------------------- */

enum {
    SCHEDULE_MASK = 0x07,
    MAP_HOST = 0x08, /* always on, and no flag of the driver's any more */
    RESIZE_LOCAL = 0x10,
    SYNC_MEMORY = 0x80, /* since CUDA 12 */
};

static bool
flags_are_valid(unsigned flags)
{
    const unsigned schedule = flags & SCHEDULE_MASK;
    const unsigned known =
        SCHEDULE_MASK | MAP_HOST | RESIZE_LOCAL | (hed_rt_version >= 12000 ? SYNC_MEMORY : 0);

    return !(flags & ~known) && !(schedule & (schedule - 1));
}

cudaError_t
hed_rt_set_flags(const struct hed_rt_driver *cu, int device, unsigned flags)
{
    if (!flags_are_valid(flags))
        return cudaErrorInvalidValue;
    return (cudaError_t)cu->cuDevicePrimaryCtxSetFlags_v2(device, flags & ~(unsigned)MAP_HOST);
}

cudaError_t
hed_rt_cudaSetDeviceFlags(const struct hed_rt_driver *cu, unsigned int flags)
{
    CUcontext current = NULL;
    CUresult r;
    int device;
    cudaError_t e;

    if (!flags_are_valid(flags))
        return cudaErrorInvalidValue;
    r = cu->cuCtxGetCurrent(&current);
    if (r != CUDA_SUCCESS)
        return (cudaError_t)r;
    /* Since CUDA 11, this makes the context: the front does that and calls again. */
    if (!current && hed_rt_version >= 11000)
        return cudaErrorDeviceUninitialized;
    e = hed_rt_device(&device);
    if (e == cudaSuccess && current && hed_rt_is_others_context(current, device))
        return cudaErrorIncompatibleDriverContext;
    if (e == cudaSuccess && current && hed_rt_version < 11000)
        return cudaErrorSetOnActiveProcess;
    return e == cudaSuccess ? hed_rt_set_flags(cu, device, flags) : e;
}

cudaError_t
hed_rt_cudaGetDeviceFlags(const struct hed_rt_driver *cu, unsigned int *flags)
{
    CUcontext current = NULL;
    unsigned f = 0;
    int active;
    CUresult r;

    if (!flags)
        return cudaErrorInvalidValue;
    r = cu->cuCtxGetCurrent(&current);
    if (r != CUDA_SUCCESS)
        return (cudaError_t)r;
    if (current) {
        r = cu->cuCtxGetFlags(&f);
    } else {
        r = cu->cuDevicePrimaryCtxGetState(hed_rt_thread.device, &f, &active);
        f |= MAP_HOST;
    }
    if (r == CUDA_SUCCESS)
        *flags = f;
    return (cudaError_t)r;
}

/* ---- peers ----------------------------------------------------------------------------------- */

/* The primary context of another device, for calls that change the one of this device: it has to be
 * current. */
static cudaError_t
peer_of_primary(const struct hed_rt_driver *cu, int device, CUcontext *out)
{
    CUcontext current = NULL;
    CUdevice here;
    CUresult r = cu->cuCtxGetCurrent(&current);

    if (r == CUDA_SUCCESS)
        r = cu->cuCtxGetDevice(&here);
    if (r != CUDA_SUCCESS)
        return (cudaError_t)r;
    if (hed_rt_is_others_context(current, here))
        return cudaErrorIncompatibleDriverContext;
    return hed_rt_peer(device, out);
}

cudaError_t
hed_rt_cudaDeviceEnablePeerAccess(const struct hed_rt_driver *cu, int peerDevice,
                                  unsigned int flags)
{
    CUcontext peer = NULL;
    const cudaError_t r = peer_of_primary(cu, peerDevice, &peer);

    return r == cudaSuccess ? (cudaError_t)cu->cuCtxEnablePeerAccess(peer, flags) : r;
}

/* Devices are looked at before the place for the answer. */
cudaError_t
hed_rt_cudaDeviceCanAccessPeer(const struct hed_rt_driver *cu, int *canAccessPeer, int device,
                               int peerDevice)
{
    int answer = 0;
    const CUresult r = cu->cuDeviceCanAccessPeer(&answer, device, peerDevice);

    if (r != CUDA_SUCCESS)
        return (cudaError_t)r;
    if (!canAccessPeer)
        return cudaErrorInvalidValue;
    *canAccessPeer = answer;
    return cudaSuccess;
}

cudaError_t
hed_rt_cudaDeviceDisablePeerAccess(const struct hed_rt_driver *cu, int peerDevice)
{
    CUcontext peer = NULL;
    const cudaError_t r = peer_of_primary(cu, peerDevice, &peer);

    return r == cudaSuccess ? (cudaError_t)cu->cuCtxDisablePeerAccess(peer) : r;
}

/* What is profiled is a context; without one there is nothing to stop. */
cudaError_t
hed_rt_cudaProfilerStop(const struct hed_rt_driver *cu)
{
    CUcontext current = NULL;
    CUresult r = cu->cuCtxGetCurrent(&current);

    if (r == CUDA_SUCCESS && current)
        r = cu->cuProfilerStop();
    /* In a callback, or in the child of a process that used the driver, unless it had a context. */
    if (r == CUDA_ERROR_NOT_PERMITTED ||
        (r == CUDA_ERROR_NOT_INITIALIZED && !hed_rt_thread.arrived))
        r = CUDA_SUCCESS;
    return (cudaError_t)r;
}

/* ---- versions -------------------------------------------------------------------------------- */

/* "If no driver is installed, then 0 is returned as the driver version." (CUDA Runtime API,
 * cudaDriverGetVersion) */
cudaError_t
hed_rt_cudaDriverGetVersion(const struct hed_rt_driver *cu, int *driverVersion)
{
    CUresult r;

    if (!driverVersion)
        return cudaErrorInvalidValue;
    r = ask_once(&known_version, cu->cuDriverGetVersion, driverVersion);
    if (r == (CUresult)cudaErrorInsufficientDriver) {
        *driverVersion = 0;
        r = CUDA_SUCCESS;
    }
    return (cudaError_t)r;
}

cudaError_t
hed_rt_cudaRuntimeGetVersion(const struct hed_rt_driver *cu, int *runtimeVersion)
{
    if (!runtimeVersion)
        return cudaErrorInvalidValue;
    if (hed_rt_version < 12000 && hed_rt_start() != CUDA_SUCCESS)
        return (cudaError_t)hed_rt_start();
    *runtimeVersion = hed_rt_version;
    return cudaSuccess;
}
