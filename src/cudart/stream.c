/* Streams and events: what is not the driver's own. */
#include <stdlib.h>

#include "cudart/attribute.h"
#include "cudart/error.h"
#include "cudart/front.h"
#include "gen/cudart_calls.h"

/* ---- callbacks ------------------------------------------------------------------------------- */

/* A callback gets the stream as the program named it, and a status with the edition's number. */
struct stream_callback {
    cudaStreamCallback_t fn;
    cudaStream_t stream;
    void *data;
};

static void
run_stream_callback(CUstream stream, CUresult status, void *data)
{
    const struct stream_callback c = *(struct stream_callback *)data;
    const cudaError_t r = (cudaError_t)status;

    (void)stream;
    free(data);
    c.fn(c.stream, hed_rt_version < 10010 ? hed_rt_old_error(r) : r, c.data);
}

cudaError_t
hed_rt_cudaStreamAddCallback(const struct hed_rt_driver *cu, cudaStream_t stream,
                             cudaStreamCallback_t callback, void *userData, unsigned int flags)
{
    struct stream_callback *c;
    CUresult r;

    if (!callback)
        return cudaErrorInvalidValue;
    c = malloc(sizeof *c);
    if (!c)
        return cudaErrorMemoryAllocation;
    *c = (struct stream_callback){callback, stream, userData};
    r = cu->cuStreamAddCallback(stream, run_stream_callback, c, flags);
    if (r != CUDA_SUCCESS)
        free(c);
    return (cudaError_t)r;
}

/* Events of other captures came with CUDA 11. */
cudaError_t
hed_rt_cudaStreamWaitEvent_10(const struct hed_rt_driver *cu, cudaStream_t stream,
                              cudaEvent_t event, unsigned int flags)
{
    return flags ? cudaErrorInvalidValue
                 : (cudaError_t)cu->cuStreamWaitEvent(stream, (CUevent)event, flags);
}

/* How a thread waits for the function is a hint, and the driver call that takes it is newer than
 * CUDA 13.0. */
cudaError_t
hed_rt_cudaLaunchHostFunc_v2(const struct hed_rt_driver *cu, cudaStream_t stream, cudaHostFn_t fn,
                             void *userData, unsigned int syncMode)
{
    if (syncMode > 1) /* cudaHostTaskBlocking, cudaHostTaskSpinWait */
        return cudaErrorInvalidValue;
    return (cudaError_t)cu->cuLaunchHostFunc(stream, (CUhostFn)fn, userData);
}

/* ---- attributes ------------------------------------------------------------------------------ */

cudaError_t
hed_rt_cudaStreamGetAttribute(const struct hed_rt_driver *cu, cudaStream_t stream,
                              cudaLaunchAttributeID attr, cudaLaunchAttributeValue *value)
{
    CUlaunchAttributeValue v;
    const CUresult r = cu->cuStreamGetAttribute(stream, (CUlaunchAttributeID)attr, &v);

    return r == CUDA_SUCCESS ? hed_rt_attribute_out(HED_RT_OF_STREAM, attr, &v, value)
                             : (cudaError_t)r;
}

cudaError_t
hed_rt_cudaStreamSetAttribute(const struct hed_rt_driver *cu, cudaStream_t stream,
                              cudaLaunchAttributeID attr, const cudaLaunchAttributeValue *param)
{
    CUlaunchAttributeValue v;
    const cudaError_t r = hed_rt_attribute_in(HED_RT_OF_STREAM, attr, param, &v);

    if (r != cudaSuccess)
        return r;
    return (cudaError_t)cu->cuStreamSetAttribute(stream, (CUlaunchAttributeID)attr, &v);
}

/* ---- events ---------------------------------------------------------------------------------- */

cudaError_t
hed_rt_cudaEventElapsedTime_12(const struct hed_rt_driver *cu, float *ms, cudaEvent_t start,
                               cudaEvent_t end)
{
    return ms ? (cudaError_t)cu->cuEventElapsedTime(ms, start, end) : cudaErrorInvalidValue;
}

cudaError_t
hed_rt_cudaEventElapsedTime(const struct hed_rt_driver *cu, float *ms, cudaEvent_t start,
                            cudaEvent_t end)
{
    return ms ? (cudaError_t)cu->cuEventElapsedTime_v2(ms, start, end) : cudaErrorInvalidValue;
}
