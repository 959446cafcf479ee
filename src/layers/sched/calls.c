/* The calls that pass the gate, and what the layer does about the others. Which calls these are is
 * said in the spec (does=).
 *
 * Calls that put something on a stream without taking the GPU's time do not pass the gate: events,
 * host functions, and waits for and writes of words in memory, which others may be waiting for.
 */
#include <pthread.h>
#include <string.h>

#include "gen/cuda_sets.h"
#include "gen/cuda_work.h"
#include "layers/sched/sched.h"

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

void
hed_sched_describe(struct hed_turn *t, enum hed_cuda_call id, const void *args)
{
    const struct hed_call_info *info = &hed_cuda_info[id];
    const uint64_t size = hed_cuda_size(id, args);

    if (info->does == HED_DOES_LAUNCH) {
        t->kind = kind_of(hed_call_about(info, args), size);
        t->guess = GUESS_KERNEL_NS;
    } else {
        t->kind = kind_of(id, size);
        t->guess = GUESS_COPY_NS + size / BYTES_PER_NS;
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

HED_CUDA_WORK(GATED)

/* ---- contexts: with its first one on a GPU, a process joins the GPU's users ------------------ */

CUdevice
hed_sched_device_of(enum hed_cuda_call id, const void *args)
{
    CUdevice device;

    memcpy(&device, (const char *)args + hed_cuda_info[id].about, sizeof device);
    return device;
}

#define JOINS(call)                                                             \
    static CUresult sched_##call(struct hed_layer *self, struct hed_##call *a)  \
    {                                                                           \
        const CUresult r = hed_next(self, call, a);                             \
                                                                                \
        if (r == CUDA_SUCCESS)                                                  \
            (void)hed_sched_join_gpu(self, hed_sched_device_of(HED_##call, a)); \
        return r;                                                               \
    }

HED_CUDA_DOES_BEGIN_CONTEXT(JOINS)

CUcontext
hed_sched_context_of(enum hed_cuda_call id, const void *args)
{
    const struct hed_call_info *info = &hed_cuda_info[id];

    /* A context that is detached may still be in use. */
    if (info->of_kind != HED_CUDA_KIND_CONTEXT || id == HED_cuCtxDetach)
        return NULL;
    return (CUcontext)(uintptr_t)hed_call_about(info, args);
}

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

HED_CUDA_DOES_END_CONTEXT(FORGETS)

/* ---- captures -------------------------------------------------------------------------------- */

uint64_t
hed_sched_stream_key(enum hed_cuda_call id, const void *args)
{
    const struct hed_call_info *info = &hed_cuda_info[id];
    uint64_t stream = 0;
    const bool ptds = hed_call_ptds(info, args);

    (void)hed_call_stream(info, args, &stream);
    return hed_stream_key((CUstream)(uintptr_t)stream, ptds, (uint64_t)pthread_self());
}

#define CAPTURES(call)                                                          \
    static CUresult sched_##call(struct hed_layer *self, struct hed_##call *a)  \
    {                                                                           \
        hed_sched_keep_off(self->state);                                        \
                                                                                \
        const CUresult r = hed_next(self, call, a);                             \
                                                                                \
        if (r == CUDA_SUCCESS)                                                  \
            hed_sched_capture_began(self, hed_sched_stream_key(HED_##call, a)); \
        else                                                                    \
            hed_sched_come_back(self->state);                                   \
        return r;                                                               \
    }

HED_CUDA_DOES_BEGIN_CAPTURE(CAPTURES)

/* "Capture must be ended on the same thread": another thread's attempt does not end it. */
#define ENDS_CAPTURE(call)                                                             \
    static CUresult sched_##call(struct hed_layer *self, struct hed_##call *a)         \
    {                                                                                  \
        const CUresult r = hed_next(self, call, a);                                    \
                                                                                       \
        if (r != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)                               \
            hed_sched_capture_ended(self->state, hed_sched_stream_key(HED_##call, a)); \
        return r;                                                                      \
    }

HED_CUDA_DOES_END_CAPTURE(ENDS_CAPTURE)

#define ENDS_STREAM(call)                                                              \
    static CUresult sched_##call(struct hed_layer *self, struct hed_##call *a)         \
    {                                                                                  \
        const CUresult r = hed_next(self, call, a);                                    \
                                                                                       \
        if (r == CUDA_SUCCESS)                                                         \
            hed_sched_capture_ended(self->state, hed_sched_stream_key(HED_##call, a)); \
        return r;                                                                      \
    }

HED_CUDA_END_STREAM(ENDS_STREAM)

/* ---- waits ----------------------------------------------------------------------------------- */

uint64_t
hed_sched_waited_for(struct hed_layer *self, enum hed_cuda_call id, const void *args)
{
    const struct hed_call_info *info = &hed_cuda_info[id];

    if (info->stream >= 0)
        return hed_sched_stream_key(id, args);
    if (info->of_kind == HED_CUDA_KIND_EVENT)
        return UINT64_MAX;
    /* NVIDIA's runtime waits so, for the current context; another one may be of another GPU. */
    if (info->of_kind == HED_CUDA_KIND_CONTEXT)
        return hed_sched_of_context(self, (CUcontext)(uintptr_t)hed_call_about(info, args));
    return 0;
}

#define WAITS(call)                                                                     \
    static CUresult sched_##call(struct hed_layer *self, struct hed_##call *a)          \
    {                                                                                   \
        struct hed_sched_gpu *g = hed_sched_wait_begins(self);                          \
        const CUresult r = hed_next(self, call, a);                                     \
                                                                                        \
        if (g)                                                                          \
            hed_sched_wait_ends(self, g, r, hed_sched_waited_for(self, HED_##call, a)); \
        return r;                                                                       \
    }

HED_CUDA_DOES_WAIT(WAITS)

/* ---- the table ------------------------------------------------------------------------------- */

#define ENTRY(call) .call = sched_##call,

const struct hed_cuda_ops hed_sched_cuda = {
    HED_CUDA_WORK(ENTRY)               /* pass the gate */
    HED_CUDA_DOES_BEGIN_CONTEXT(ENTRY) /* the process joins the GPU's users */
    HED_CUDA_DOES_END_CONTEXT(ENTRY)   /* what we have there goes first */
    HED_CUDA_DOES_BEGIN_CAPTURE(ENTRY) /* our own calls keep off */
    HED_CUDA_DOES_END_CAPTURE(ENTRY)   /* and come back */
    HED_CUDA_END_STREAM(ENTRY)         /* ends its capture, too */
    HED_CUDA_DOES_WAIT(ENTRY)          /* afterwards there may be no work left */
};
