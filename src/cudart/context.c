/* Contexts and devices of threads: see context.h.
 *
 * Invariants:
 * 1. `primary` has a device's primary context while we hold one reference to it. It is taken once
 *    for all threads, and never given back, except by cudaDeviceReset().
 * 2. The runtime makes no other context current than a primary one.
 */
#include "cudart/context.h"

#include <limits.h>
#include <stdatomic.h>

#include "cudart/device.h"
#include "cudart/driver.h"
#include "cudart/front.h"
#include "cudart/registry.h"
#include "cudart/thread.h"
#include "gen/cudart_calls.h"

#define DEVICES_MAX 256

/* A thread begins with device 0 and no error. */
__thread struct hed_rt_thread hed_rt_thread __attribute__((tls_model("initial-exec")));

_Atomic unsigned hed_rt_age = 1;

static _Atomic CUcontext primary[DEVICES_MAX];

static const struct hed_rt_driver *const cuda = &hed_rt_legacy;

cudaError_t
hed_rt_primary(int device, CUcontext *out)
{
    CUcontext context;
    CUcontext none = NULL;
    CUresult r;

    if (device < 0 || device >= DEVICES_MAX)
        return cudaErrorInvalidDevice;
    context = atomic_load_explicit(&primary[device], memory_order_acquire);
    if (!context) {
        r = cuda->cuDevicePrimaryCtxRetain(&context, device);
        if (r != CUDA_SUCCESS)
            return (cudaError_t)r;
        /* Another thread was faster: its reference is enough. */
        if (!atomic_compare_exchange_strong_explicit(&primary[device], &none, context,
                                                     memory_order_acq_rel, memory_order_acquire))
            (void)cuda->cuDevicePrimaryCtxRelease_v2(device);
        hed_rt_know_devices(cuda);
    }
    *out = context;
    return cudaSuccess;
}

/* Somebody has reset the device: our reference is gone with the context. */
static void
forget_primary(int device, CUcontext context)
{
    (void)atomic_compare_exchange_strong_explicit(&primary[device], &context, NULL,
                                                  memory_order_acq_rel, memory_order_relaxed);
}

static bool
is_primary_active(int device)
{
    unsigned flags;
    int active = 0;

    return cuda->cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active;
}

cudaError_t
hed_rt_peer(int device, CUcontext *out)
{
    const cudaError_t r = hed_rt_primary(device, out);

    if (r != cudaSuccess || is_primary_active(device))
        return r;
    forget_primary(device, *out);
    return hed_rt_primary(device, out);
}

/* Makes the primary context of a device current, by cuCtxSetCurrent or cuCtxPushCurrent. */
static CUresult
enter_primary_by(int device, CUresult (*make_current)(CUcontext context))
{
    const unsigned age = atomic_load_explicit(&hed_rt_age, memory_order_relaxed);
    CUcontext context;
    CUresult r = (CUresult)hed_rt_primary(device, &context);

    if (r != CUDA_SUCCESS)
        return r;
    r = make_current(context);
    if (r == CUDA_ERROR_CONTEXT_IS_DESTROYED || r == CUDA_ERROR_INVALID_CONTEXT) {
        forget_primary(device, context);
        r = (CUresult)hed_rt_primary(device, &context);
        if (r == CUDA_SUCCESS)
            r = make_current(context);
    }
    if (r == CUDA_SUCCESS) {
        hed_rt_thread.device = device;
        hed_rt_thread.arrived = age;
        hed_rt_thread.chosen = false;
        hed_rt_init_modules();
    }
    return r;
}

static CUresult
enter_primary(int device)
{
    return enter_primary_by(device, cuda->cuCtxSetCurrent);
}

/* Leaves the thread without a context until it needs one. There may be another one below a context
 * that the program has pushed, which must not take its place: cuCtxSetCurrent(NULL) only
 * takes away the topmost one. Then the device's is entered at once. If there cannot be one, the
 * program's stack stays as it was. */
static CUresult
enter_later(int device)
{
    CUcontext top = NULL, below = NULL;
    CUresult r = cuda->cuCtxGetCurrent(&top);

    if (r == CUDA_SUCCESS)
        r = cuda->cuCtxSetCurrent(NULL);
    if (r == CUDA_SUCCESS)
        r = cuda->cuCtxGetCurrent(&below);
    if (r == CUDA_SUCCESS && below) {
        r = enter_primary_by(device, cuda->cuCtxPushCurrent_v2);
        if (r != CUDA_SUCCESS)
            (void)cuda->cuCtxPushCurrent_v2(top);
        return r;
    }
    if (r == CUDA_SUCCESS) {
        hed_rt_thread.device = device;
        hed_rt_thread.arrived = 0;
        hed_rt_thread.chosen = true;
    }
    return r;
}

#define LOOKS 4

/* It is looked at several times, because other threads may reset a primary context and make it
 * anew: then it is none while it is gone. */
bool
hed_rt_is_others_context(CUcontext context, int device)
{
    unsigned version;

    for (int i = 0; i < LOOKS; i++)
        if (cuda->cuCtxGetApiVersion(context, &version) != CUDA_SUCCESS ||
            hed_rt_is_primary(context, device))
            return false;
    return true;
}

#define HAS_CONTEXT (-1)

/* Which device the thread, whose context is `current`, should enter after a call has failed with
 * `r`. */
static int
device_to_enter(cudaError_t r, CUcontext current)
{
    CUdevice device;

    if (!current)
        return hed_rt_thread.device;
    if (r == cudaErrorInvalidResourceHandle)
        return HAS_CONTEXT;
    for (int i = 0; i < DEVICES_MAX; i++)
        if (atomic_load_explicit(&primary[i], memory_order_relaxed) == current) {
            /* If it lives, another thread has just made it anew: this one has to enter it too. */
            if (is_primary_active(i))
                return r == cudaErrorContextIsDestroyed ? i : HAS_CONTEXT;
            forget_primary(i, current);
            return i;
        }
    if (r != cudaErrorContextIsDestroyed)
        return HAS_CONTEXT;
    /* A primary context that we have given up, or a context of others, who may have chosen the
     * device too. */
    if (cuda->cuCtxGetDevice(&device) != CUDA_SUCCESS)
        device = hed_rt_thread.device;
    /* The context that is gone may be the one of a stream; then the thread keeps its own. */
    return hed_rt_is_others_context(current, device) ? HAS_CONTEXT : device;
}

bool
hed_rt_enter(cudaError_t *r)
{
    CUcontext current = NULL;
    CUresult entered;
    int device;

    /* The third: without a context, a handle may be said to be none. */
    if (*r != cudaErrorDeviceUninitialized && *r != cudaErrorContextIsDestroyed &&
        *r != cudaErrorInvalidResourceHandle)
        return false;
    if (cuda->cuCtxGetCurrent(&current) != CUDA_SUCCESS)
        return false;
    device = device_to_enter(*r, current);
    if (device == HAS_CONTEXT)
        return false;
    entered = enter_primary(device);
    /* Other threads have reset it again and again: that is worth another try. */
    if (entered == CUDA_ERROR_CONTEXT_IS_DESTROYED)
        return true;
    if (entered != CUDA_SUCCESS)
        *r = (cudaError_t)entered;
    return entered == CUDA_SUCCESS;
}

cudaError_t
hed_rt_arrive(void)
{
    const unsigned age = atomic_load_explicit(&hed_rt_age, memory_order_relaxed);
    CUcontext current = NULL;
    CUresult r = cuda->cuCtxGetCurrent(&current);
    int device;

    if (r != CUDA_SUCCESS)
        return (cudaError_t)r;
    /* It may have a context that somebody else made current, or one that is gone. */
    device = device_to_enter(cudaErrorContextIsDestroyed, current);
    if (device == HAS_CONTEXT) {
        hed_rt_thread.arrived = age;
        hed_rt_init_modules();
        return cudaSuccess;
    }
    r = enter_primary(device);
    /* Other threads reset it again and again: the call itself will try again. */
    return r == CUDA_ERROR_CONTEXT_IS_DESTROYED ? cudaSuccess : (cudaError_t)r;
}

cudaError_t
hed_rt_device(int *out)
{
    CUcontext current = NULL;
    CUdevice device;
    CUresult r = CUDA_SUCCESS;

    /* A driver logs calls that fail, so none is made that has to. */
    if (!hed_rt_thread.arrived) {
        r = cuda->cuCtxGetCurrent(&current);
        if ((r == CUDA_SUCCESS && !current) || r == CUDA_ERROR_NOT_PERMITTED)
            r = CUDA_ERROR_INVALID_CONTEXT;
    }
    if (r == CUDA_SUCCESS)
        r = cuda->cuCtxGetDevice(&device);
    if (r == CUDA_SUCCESS)
        *out = device;
    else if (r == CUDA_ERROR_INVALID_CONTEXT || r == CUDA_ERROR_CONTEXT_IS_DESTROYED)
        *out = hed_rt_thread.device;
    else
        return (cudaError_t)r;
    return cudaSuccess;
}

bool
hed_rt_is_primary(CUcontext context, int device)
{
    CUcontext ours = NULL;

    if (device < DEVICES_MAX)
        ours = atomic_load_explicit(&primary[device], memory_order_acquire);
    /* Others may have made it: only if there is one, it is taken to be compared. */
    if (!ours && (!is_primary_active(device) || hed_rt_primary(device, &ours) != cudaSuccess))
        return false;
    return ours == context;
}

/* ---- calls ----------------------------------------------------------------------------------- */

cudaError_t
hed_rt_cudaGetDevice(const struct hed_rt_driver *cu, int *device)
{
    return device ? hed_rt_device(device) : cudaErrorInvalidValue;
}

cudaError_t
hed_rt_cudaGetDeviceCount(const struct hed_rt_driver *cu, int *count)
{
    int n = 0;
    cudaError_t r;

    if (!count)
        return cudaErrorInvalidValue;
    r = hed_rt_count_devices(cu, &n);
    if (r != cudaSuccess)
        return r;
    if (!n)
        return cudaErrorNoDevice;
    *count = n;
    return cudaSuccess;
}

/* Since CUDA 12, choosing a device also makes its context; before, the first use did. */
cudaError_t
hed_rt_cudaSetDevice(const struct hed_rt_driver *cu, int device)
{
    int count = 0;
    cudaError_t r = hed_rt_count_devices(cu, &count);

    if (r != cudaSuccess)
        return r;
    if (device < 0 || device >= count)
        return cudaErrorInvalidDevice;
    if (hed_rt_version < 12000 &&
        !(device < DEVICES_MAX && atomic_load_explicit(&primary[device], memory_order_relaxed))) {
        r = (cudaError_t)enter_later(device);
    } else {
        r = (cudaError_t)enter_primary(device);
        /* What comes next must not run on the device that the thread had before, unless the program
         * has contexts of its own. */
        if (r != cudaSuccess)
            (void)enter_later(device);
    }
    hed_rt_thread.keeps |= r == cudaSuccess;
    return r;
}

/* "the first device in the list is tried first" of those that the thread may use, unless
 * cudaSetDevice() has said which. */
cudaError_t
hed_rt_cudaSetValidDevices(const struct hed_rt_driver *cu, int *device_arr, int len)
{
    int count = 0;
    int device;
    const cudaError_t r = hed_rt_count_devices(cu, &count);

    if (r != cudaSuccess)
        return r;
    if (len < 0 || len > count || (len && !device_arr))
        return cudaErrorInvalidValue;
    for (int i = 0; i < len; i++)
        if (device_arr[i] < 0 || device_arr[i] >= count)
            return cudaErrorInvalidDevice;
    return hed_rt_thread.keeps ? hed_rt_device(&device)
                               : (cudaError_t)enter_later(len ? device_arr[0] : 0);
}

cudaError_t
hed_rt_cudaInitDevice(const struct hed_rt_driver *cu, int device, unsigned int deviceFlags,
                      unsigned int flags)
{
    CUcontext context;
    const cudaError_t r = hed_rt_peer(device, &context);

    /* cudaInitDeviceFlagsAreValid; NVIDIA's runtime takes no notice of other bits. */
    return r == cudaSuccess && (flags & 1) ? hed_rt_set_flags(cu, device, deviceFlags) : r;
}

/* A context of the program's own is no state of the runtime's, so it is left alone; and a thread
 * without a context has nothing to reset. */
cudaError_t
hed_rt_cudaDeviceReset(const struct hed_rt_driver *cu)
{
    CUcontext current = NULL;
    CUcontext ours;
    CUresult r = cu->cuCtxGetCurrent(&current);
    int device;

    if (r == CUDA_SUCCESS)
        r = (CUresult)hed_rt_device(&device);
    if (r != CUDA_SUCCESS)
        return (cudaError_t)r;
    if (current ? !hed_rt_is_primary(current, device) : !hed_rt_thread.chosen)
        return cudaSuccess;
    /* Our reference ends with the context. Of two threads, one gives it back. */
    ours = device < DEVICES_MAX
               ? atomic_exchange_explicit(&primary[device], NULL, memory_order_acq_rel)
               : NULL;
    if (ours)
        (void)cu->cuDevicePrimaryCtxRelease_v2(device);
    r = cu->cuDevicePrimaryCtxReset_v2(device);
    while (atomic_fetch_add_explicit(&hed_rt_age, 1, memory_order_relaxed) == UINT_MAX)
        continue; /* 0 is no age */
    return (cudaError_t)r;
}
