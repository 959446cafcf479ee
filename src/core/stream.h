/* Questions about streams and contexts that several rooms ask. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/layer.h"

/* Handles that mean a default stream. */
#define HED_STREAM_LEGACY 1     /* CU_STREAM_LEGACY; 0 means the same, except in ptds variants */
#define HED_STREAM_PER_THREAD 2 /* CU_STREAM_PER_THREAD */

/* A number that tells a stream from all others, also from those of other threads. Never 0. */
static inline uint64_t
hed_stream_key(uint64_t stream, bool ptds)
{
    if (stream == HED_STREAM_PER_THREAD || (stream == 0 && ptds))
        return (uint64_t)pthread_self() | 3;
    return stream == 0 ? HED_STREAM_LEGACY : stream;
}

/* The same for the stream of a call. */
static inline uint64_t
hed_call_stream_key(const struct hed_call_info *info, const void *args)
{
    uint64_t stream = 0;

    (void)hed_call_stream(info, args, &stream);
    return hed_stream_key(stream, hed_call_ptds(info, args));
}

/* The calling thread's context, NULL if it has none. `at` is the layer that answers. */
static inline CUcontext
hed_current_context(struct hed_layer *at)
{
    CUcontext context = NULL;

    return hed_call(at, cuCtxGetCurrent, .pctx = &context) == CUDA_SUCCESS ? context : NULL;
}

/* Whether a stream captures. Only the driver knows: streams join captures through events, which
 * cannot be followed from outside. True also if the driver does not answer. */
static inline bool
hed_stream_captures(struct hed_layer *at, uint64_t stream, bool ptds)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    return hed_call(at, cuStreamIsCapturing, .hStream = (CUstream)(uintptr_t)stream,
                    .captureStatus = &status, .ptds = ptds) != CUDA_SUCCESS ||
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}
