/* The calls that pass the gate, and what sort of work they are.
 *
 * Not among them: host functions, which take no GPU time, waits for and writes of words in memory,
 * which others may be waiting for, and allocations.
 */
#include <pthread.h>

#include "layers/sched/sched.h"

/* X(call): launches. */
#define LAUNCHES(X)                         \
    X(cuLaunch)                             \
    X(cuLaunchGrid)                         \
    X(cuLaunchGridAsync)                    \
    X(cuLaunchKernel)                       \
    X(cuLaunchKernelEx)                     \
    X(cuLaunchCooperativeKernel)            \
    X(cuLaunchCooperativeKernelMultiDevice) \
    X(cuGraphLaunch)

/* X(call): copies of ByteCount bytes. */
#define COPIES(X)           \
    X(cuMemcpyHtoD)         \
    X(cuMemcpyHtoD_v2)      \
    X(cuMemcpyDtoH)         \
    X(cuMemcpyDtoH_v2)      \
    X(cuMemcpyDtoD)         \
    X(cuMemcpyDtoD_v2)      \
    X(cuMemcpyDtoA)         \
    X(cuMemcpyDtoA_v2)      \
    X(cuMemcpyAtoD)         \
    X(cuMemcpyAtoD_v2)      \
    X(cuMemcpyHtoA)         \
    X(cuMemcpyHtoA_v2)      \
    X(cuMemcpyAtoH)         \
    X(cuMemcpyAtoH_v2)      \
    X(cuMemcpyAtoA)         \
    X(cuMemcpyAtoA_v2)      \
    X(cuMemcpyHtoAAsync)    \
    X(cuMemcpyHtoAAsync_v2) \
    X(cuMemcpyAtoHAsync)    \
    X(cuMemcpyAtoHAsync_v2) \
    X(cuMemcpyHtoDAsync)    \
    X(cuMemcpyHtoDAsync_v2) \
    X(cuMemcpyDtoHAsync)    \
    X(cuMemcpyDtoHAsync_v2) \
    X(cuMemcpyDtoDAsync)    \
    X(cuMemcpyDtoDAsync_v2) \
    X(cuMemcpy)             \
    X(cuMemcpyAsync)        \
    X(cuMemcpyPeer)         \
    X(cuMemcpyPeerAsync)

/* X(call): copies, fills and moves whose size is not looked for. */
#define OTHERS(X)                        \
    X(cuMemcpy2D)                        \
    X(cuMemcpy2D_v2)                     \
    X(cuMemcpy2DUnaligned)               \
    X(cuMemcpy2DUnaligned_v2)            \
    X(cuMemcpy3D)                        \
    X(cuMemcpy3D_v2)                     \
    X(cuMemcpy2DAsync)                   \
    X(cuMemcpy2DAsync_v2)                \
    X(cuMemcpy3DAsync)                   \
    X(cuMemcpy3DAsync_v2)                \
    X(cuMemcpy3DPeer)                    \
    X(cuMemcpy3DPeerAsync)               \
    X(cuMemcpyBatchAsync)                \
    X(cuMemcpyBatchAsync_v2)             \
    X(cuMemcpy3DBatchAsync)              \
    X(cuMemcpy3DBatchAsync_v2)           \
    X(cuMemsetD8)                        \
    X(cuMemsetD8_v2)                     \
    X(cuMemsetD16)                       \
    X(cuMemsetD16_v2)                    \
    X(cuMemsetD32)                       \
    X(cuMemsetD32_v2)                    \
    X(cuMemsetD2D8)                      \
    X(cuMemsetD2D8_v2)                   \
    X(cuMemsetD2D16)                     \
    X(cuMemsetD2D16_v2)                  \
    X(cuMemsetD2D32)                     \
    X(cuMemsetD2D32_v2)                  \
    X(cuMemsetD8Async)                   \
    X(cuMemsetD16Async)                  \
    X(cuMemsetD32Async)                  \
    X(cuMemsetD2D8Async)                 \
    X(cuMemsetD2D16Async)                \
    X(cuMemsetD2D32Async)                \
    X(cuMemPrefetchAsync)                \
    X(cuMemPrefetchAsync_v2)             \
    X(cuMemPrefetchBatchAsync)           \
    X(cuMemDiscardAndPrefetchBatchAsync) \
    X(cuMemBatchDecompressAsync)

#define GUESS_KERNEL_NS 50000
#define GUESS_COPY_NS 5000
#define BYTES_PER_NS 16

static unsigned
log2_of(uint64_t n)
{
    return n ? 64 - (unsigned)__builtin_clzll(n) : 0;
}

/* Never 0. */
static uint64_t
kind_of(uint64_t what, uint64_t size)
{
    const uint64_t key = (what ^ (uint64_t)log2_of(size) << 56) * UINT64_C(0x9e3779b97f4a7c15);

    return key ^ key >> 32 ? key ^ key >> 32 : 1;
}

static void
kernel(struct hed_turn *t, CUfunction f, uint64_t blocks)
{
    t->kind = kind_of((uint64_t)(uintptr_t)f, blocks);
    t->guess = GUESS_KERNEL_NS;
}

static void
copy(struct hed_turn *t, enum hed_cuda_call id, uint64_t bytes)
{
    t->kind = kind_of(id, bytes);
    t->guess = GUESS_COPY_NS + bytes / BYTES_PER_NS;
}

#define SIZE_OF(call)                                              \
    case HED_##call:                                               \
        copy(t, id, ((const struct hed_##call *)args)->ByteCount); \
        break;

static void
describe_copy(struct hed_turn *t, enum hed_cuda_call id, const void *args)
{
    switch (id) {
        COPIES(SIZE_OF)
    default:
        copy(t, id, 0);
        break;
    }
}

void
hed_sched_describe(struct hed_turn *t, enum hed_cuda_call id, const void *args)
{
    const struct hed_cuLaunchKernel *k = args;
    const struct hed_cuLaunchCooperativeKernel *c = args;
    const struct hed_cuLaunchKernelEx *x = args;
    const struct hed_cuLaunchGrid *g = args;
    const struct hed_cuLaunchGridAsync *ga = args;
    const struct hed_cuGraphLaunch *graph = args;

    switch (id) {
    case HED_cuLaunchKernel:
        kernel(t, k->f, (uint64_t)k->gridDimX * k->gridDimY * k->gridDimZ);
        break;
    case HED_cuLaunchCooperativeKernel:
        kernel(t, c->f, (uint64_t)c->gridDimX * c->gridDimY * c->gridDimZ);
        break;
    case HED_cuLaunchKernelEx:
        kernel(t, x->f,
               x->config ? (uint64_t)x->config->gridDimX * x->config->gridDimY * x->config->gridDimZ
                         : 0);
        break;
    case HED_cuLaunchGrid:
        kernel(t, g->f, (uint64_t)g->grid_width * (uint64_t)g->grid_height);
        break;
    case HED_cuLaunchGridAsync:
        kernel(t, ga->f, (uint64_t)ga->grid_width * (uint64_t)ga->grid_height);
        break;
    case HED_cuLaunch:
        kernel(t, ((const struct hed_cuLaunch *)args)->f, 1);
        break;
    case HED_cuLaunchCooperativeKernelMultiDevice:
        kernel(t, NULL, 1);
        break;
    case HED_cuGraphLaunch:
        kernel(t, (CUfunction)(void *)graph->hGraph, 0);
        break;
    default:
        describe_copy(t, id, args);
        break;
    }
}

#define GATED(call)                                                            \
    static CUresult sched_##call(struct hed_layer *self, struct hed_##call *a) \
    {                                                                          \
        struct hed_turn t;                                                     \
                                                                               \
        if (__builtin_expect(hed_sched_open(self->state), 1))                  \
            return hed_next(self, call, a);                                    \
        hed_sched_enter(self, &t, HED_##call, a);                              \
                                                                               \
        const CUresult r = hed_next(self, call, a);                            \
                                                                               \
        hed_sched_leave(self, &t, r);                                          \
        return r;                                                              \
    }

LAUNCHES(GATED)
COPIES(GATED)
OTHERS(GATED)

/* ---- contexts: with its first one on a GPU, a process joins the GPU's users ------------------ */

#define JOINS(call)                                                            \
    static CUresult sched_##call(struct hed_layer *self, struct hed_##call *a) \
    {                                                                          \
        const CUresult r = hed_next(self, call, a);                            \
                                                                               \
        if (r == CUDA_SUCCESS)                                                 \
            (void)hed_sched_join_gpu(self, a->dev);                            \
        return r;                                                              \
    }

#define CONTEXT_BEGINS(X)       \
    X(cuDevicePrimaryCtxRetain) \
    X(cuCtxCreate)              \
    X(cuCtxCreate_v2)           \
    X(cuCtxCreate_v3)           \
    X(cuCtxCreate_v4)           \
    X(cuGreenCtxCreate)

CONTEXT_BEGINS(JOINS)

#define FORGETS(call)                                                                  \
    static CUresult sched_##call(struct hed_layer *self, struct hed_##call *a)         \
    {                                                                                  \
        hed_sched_keep_off(self->state);                                               \
        hed_pace_forget(self);                                                         \
                                                                                       \
        const CUresult r = hed_next(self, call, a);                                    \
                                                                                       \
        if (r == CUDA_SUCCESS)                                                         \
            hed_sched_context_ended(self->state, hed_sched_context_of(HED_##call, a)); \
        hed_sched_come_back(self->state);                                              \
        return r;                                                                      \
    }

#define CONTEXT_ENDS(X)             \
    X(cuDevicePrimaryCtxRelease)    \
    X(cuDevicePrimaryCtxRelease_v2) \
    X(cuDevicePrimaryCtxReset)      \
    X(cuDevicePrimaryCtxReset_v2)   \
    X(cuCtxDestroy)                 \
    X(cuCtxDestroy_v2)              \
    X(cuCtxDetach)                  \
    X(cuGreenCtxDestroy)

CONTEXT_ENDS(FORGETS)

/* ---- captures -------------------------------------------------------------------------------- */

static uint64_t
key(CUstream stream, bool ptds)
{
    return hed_stream_key(stream, ptds, (uint64_t)pthread_self());
}

#define CAPTURES(call)                                                         \
    static CUresult sched_##call(struct hed_layer *self, struct hed_##call *a) \
    {                                                                          \
        hed_sched_keep_off(self->state);                                       \
                                                                               \
        const CUresult r = hed_next(self, call, a);                            \
                                                                               \
        if (r == CUDA_SUCCESS)                                                 \
            hed_sched_capture_began(self, key(a->hStream, a->ptds));           \
        else                                                                   \
            hed_sched_come_back(self->state);                                  \
        return r;                                                              \
    }

#define CAPTURE_BEGINS(X)      \
    X(cuStreamBeginCapture)    \
    X(cuStreamBeginCapture_v2) \
    X(cuStreamBeginCaptureToGraph)

CAPTURE_BEGINS(CAPTURES)

static CUresult
sched_cuStreamEndCapture(struct hed_layer *self, struct hed_cuStreamEndCapture *a)
{
    const CUresult r = hed_next(self, cuStreamEndCapture, a);

    /* "Capture must be ended on the same thread": another's attempt does not end it. */
    if (r != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
        hed_sched_capture_ended(self->state, key(a->hStream, a->ptds));
    return r;
}

static CUresult
sched_cuStreamDestroy(struct hed_layer *self, struct hed_cuStreamDestroy *a)
{
    const CUresult r = hed_next(self, cuStreamDestroy, a);

    if (r == CUDA_SUCCESS)
        hed_sched_capture_ended(self->state, key(a->hStream, false));
    return r;
}

static CUresult
sched_cuStreamDestroy_v2(struct hed_layer *self, struct hed_cuStreamDestroy_v2 *a)
{
    const CUresult r = hed_next(self, cuStreamDestroy_v2, a);

    if (r == CUDA_SUCCESS)
        hed_sched_capture_ended(self->state, key(a->hStream, false));
    return r;
}

/* ---- by number, for calls in two halves ------------------------------------------------------ */

#define IS(call) case HED_##call:

enum hed_sched_sort
hed_sched_sort(enum hed_cuda_call id)
{
    switch ((int)id) {
        LAUNCHES(IS) COPIES(IS) OTHERS(IS) return HED_SORT_WORK;
        CONTEXT_BEGINS(IS)
        return HED_SORT_CONTEXT_BEGINS;
        CONTEXT_ENDS(IS)
        return HED_SORT_CONTEXT_ENDS;
        CAPTURE_BEGINS(IS)
        return HED_SORT_CAPTURE_BEGINS;
        IS(cuStreamEndCapture)
        return HED_SORT_CAPTURE_ENDS;
        IS(cuStreamDestroy)
        IS(cuStreamDestroy_v2)
        return HED_SORT_STREAM_ENDS;
        IS(cuCtxSynchronize)
        IS(cuCtxSynchronize_v2)
        IS(cuStreamSynchronize)
        IS(cuEventSynchronize)
        return HED_SORT_WAITS;
    default:
        return HED_SORT_OTHER;
    }
}

bool
hed_sched_is_launch(enum hed_cuda_call id)
{
    switch ((int)id) {
        LAUNCHES(IS)
        return true;
    default:
        return false;
    }
}

#define DEVICE_OF(call) \
    case HED_##call:    \
        return ((const struct hed_##call *)args)->dev;

CUdevice
hed_sched_device_of(enum hed_cuda_call id, const void *args)
{
    switch ((int)id) {
        CONTEXT_BEGINS(DEVICE_OF)
    default:
        return -1;
    }
}

CUcontext
hed_sched_context_of(enum hed_cuda_call id, const void *args)
{
    if (id == HED_cuCtxDestroy)
        return ((const struct hed_cuCtxDestroy *)args)->ctx;
    return id == HED_cuCtxDestroy_v2 ? ((const struct hed_cuCtxDestroy_v2 *)args)->ctx : NULL;
}

#define ENTRY(call) .call = sched_##call,

const struct hed_cuda_ops hed_sched_cuda = {
    LAUNCHES(ENTRY) COPIES(ENTRY) OTHERS(ENTRY) CONTEXT_BEGINS(ENTRY) CONTEXT_ENDS(ENTRY)
        CAPTURE_BEGINS(ENTRY)
            .cuStreamEndCapture = sched_cuStreamEndCapture,
    .cuStreamDestroy = sched_cuStreamDestroy,
    .cuStreamDestroy_v2 = sched_cuStreamDestroy_v2,
    .cuCtxSynchronize = hed_sched_cuCtxSynchronize,
    .cuCtxSynchronize_v2 = hed_sched_cuCtxSynchronize_v2,
    .cuStreamSynchronize = hed_sched_cuStreamSynchronize,
    .cuEventSynchronize = hed_sched_cuEventSynchronize,
};
