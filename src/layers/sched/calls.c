/* What the layer does about calls. The spec says which call does what (does=).
 *
 * Calls that put something on a stream without taking GPU time do not pass the gate: events, host
 * functions, and waits for and writes of words in memory. Other clients may be waiting for them.
 */
#include "core/stream.h"
#include "gen/cuda_sets.h"
#include "gen/cuda_work.h"
#include "layers/sched/sched.h"

/* ---- calls in the engine's terms ------------------------------------------------------------- */

static struct hed_gpu_work
work_of(enum hed_cuda_call id, const void *args)
{
    const struct hed_call_info *info = &hed_cuda_info[id];
    const uint64_t size = hed_cuda_size(id, args);
    struct hed_gpu_work w = {
        .ptds = hed_call_ptds(info, args),
        .blocks = info->flags & HED_CALL_BLOCKS,
    };

    w.on_stream = hed_call_stream(info, args, &w.stream);
    w.stream_key = hed_stream_key(w.stream, w.ptds);
    if (info->does == HED_DOES_LAUNCH)
        hed_gpu_work_set_launch(&w, hed_call_about(info, args), size);
    else
        hed_gpu_work_set_copy(&w, id, size);
    return w;
}

/* The device of a call that begins a context. */
static CUdevice
device_of(enum hed_cuda_call id, const void *args)
{
    CUdevice device;

    memcpy(&device, (const char *)args + hed_cuda_info[id].about, sizeof device);
    return device;
}

/* The context that a call ends; 0: not known. */
static uint64_t
ended_context(enum hed_cuda_call id, const void *args)
{
    const struct hed_call_info *info = &hed_cuda_info[id];

    /* A context that is detached may still be in use. */
    if (info->of_kind != HED_CUDA_KIND_CONTEXT || id == HED_cuCtxDetach)
        return 0;
    return hed_call_about(info, args);
}

/* The stream that has no work left after a call that waits (hed_gate_wait_end). */
static uint64_t
waited_stream(struct hed_sched *s, enum hed_cuda_call id, const void *args)
{
    const struct hed_call_info *info = &hed_cuda_info[id];

    if (info->stream >= 0)
        return hed_call_stream_key(info, args);
    if (info->of_kind == HED_CUDA_KIND_EVENT)
        return UINT64_MAX;
    /* NVIDIA's runtime waits for the current context this way; another may be of another GPU. */
    if (info->of_kind == HED_CUDA_KIND_CONTEXT)
        return hed_sched_stream_of_context(s, hed_call_about(info, args));
    return 0;
}

/* ---- before and after ------------------------------------------------------------------------ */

bool
hed_sched_sees(enum hed_cuda_call id)
{
    const struct hed_call_info *info = &hed_cuda_info[id];

    if (info->does == HED_DOES_END)
        return info->of_kind == HED_CUDA_KIND_STREAM;
    return hed_call_is_work(info) || info->does == HED_DOES_WAIT ||
           (info->does >= HED_DOES_BEGIN_CAPTURE && info->does <= HED_DOES_END_CONTEXT);
}

_Static_assert(sizeof(struct hed_gate_pass) <= HED_LAYER_MEMO, "room for a pass");

void
hed_sched_before(struct hed_layer *self, enum hed_cuda_call id, const void *args, void *memo)
{
    struct hed_sched *s = self->state;
    struct hed_gate_pass *pass = memo;
    struct hed_gpu_work work;

    switch (hed_cuda_info[id].does) {
    case HED_DOES_LAUNCH:
    case HED_DOES_COPY:
    case HED_DOES_FILL:
    case HED_DOES_MOVE:
        pass->gate = NULL;
        if (hed_gate_open(s))
            break;
        work = work_of(id, args);
        hed_gate_enter(s, pass, &work);
        break;
    case HED_DOES_END_CONTEXT:
        hed_sched_forbid_calls(s);
        hed_sched_context_ends(s);
        break;
    case HED_DOES_BEGIN_CAPTURE:
        hed_sched_forbid_calls(s);
        break;
    case HED_DOES_WAIT:
        pass->gate = hed_gate_wait_begin(s);
        break;
    default:
        break;
    }
}

void
hed_sched_after(struct hed_layer *self, enum hed_cuda_call id, const void *args, void *memo,
                CUresult result)
{
    const struct hed_call_info *info = &hed_cuda_info[id];
    struct hed_sched *s = self->state;
    struct hed_gate_pass *pass = memo;
    const bool ok = result == CUDA_SUCCESS;

    switch (info->does) {
    case HED_DOES_LAUNCH:
    case HED_DOES_COPY:
    case HED_DOES_FILL:
    case HED_DOES_MOVE:
        hed_gate_leave(s, pass, ok);
        break;
    case HED_DOES_BEGIN_CONTEXT: /* the first one on a GPU: the process joins the GPU's clients */
        if (ok)
            (void)hed_sched_join_device(s, device_of(id, args));
        break;
    case HED_DOES_END_CONTEXT:
        if (ok)
            hed_sched_context_ended(s, ended_context(id, args));
        hed_sched_allow_calls(s);
        break;
    case HED_DOES_BEGIN_CAPTURE:
        if (ok)
            hed_sched_capture_began(s, hed_call_stream_key(info, args));
        else
            hed_sched_allow_calls(s);
        break;
    case HED_DOES_END_CAPTURE:
        /* "Capture must be ended on the same thread": another thread's attempt does not end it. */
        if (result != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
            hed_sched_capture_ended(s, hed_call_stream_key(info, args));
        break;
    case HED_DOES_END:
        if (ok && info->of_kind == HED_CUDA_KIND_STREAM)
            hed_sched_capture_ended(s, hed_call_stream_key(info, args));
        break;
    case HED_DOES_WAIT:
        if (pass->gate)
            hed_gate_wait_end(s, pass->gate, ok, waited_stream(s, id, args));
        break;
    default:
        break;
    }
}

/* ---- calls that come through the chain ------------------------------------------------------- */

/* Work: with an open gate, nothing but a load and a count. */
#define GATED(call)                                                            \
    static CUresult sched_##call(struct hed_layer *self, struct hed_##call *a) \
    {                                                                          \
        struct hed_gate_pass pass;                                             \
                                                                               \
        if (__builtin_expect(hed_gate_open(self->state), 1))                   \
            return hed_next(self, call, a);                                    \
                                                                               \
        const struct hed_gpu_work work = work_of(HED_##call, a);               \
                                                                               \
        hed_gate_enter(self->state, &pass, &work);                             \
                                                                               \
        const CUresult r = hed_next(self, call, a);                            \
                                                                               \
        hed_gate_leave(self->state, &pass, r == CUDA_SUCCESS);                 \
        return r;                                                              \
    }

HED_CUDA_WORK(GATED)

#define SEEN(call)                                                             \
    static CUresult sched_##call(struct hed_layer *self, struct hed_##call *a) \
    {                                                                          \
        struct hed_gate_pass pass;                                             \
                                                                               \
        hed_sched_before(self, HED_##call, a, &pass);                          \
                                                                               \
        const CUresult r = hed_next(self, call, a);                            \
                                                                               \
        hed_sched_after(self, HED_##call, a, &pass, r);                        \
        return r;                                                              \
    }

HED_CUDA_DOES_END_CONTEXT(SEEN)
HED_CUDA_DOES_BEGIN_CAPTURE(SEEN)
HED_CUDA_DOES_END_CAPTURE(SEEN)
HED_CUDA_END_STREAM(SEEN)
HED_CUDA_DOES_WAIT(SEEN)

/* A context takes memory, too. */
#define BEGINS(call)                                                                         \
    static CUresult sched_##call(struct hed_layer *self, struct hed_##call *a)               \
    {                                                                                        \
        CUresult r = hed_next(self, call, a);                                                \
                                                                                             \
        if (r == CUDA_ERROR_OUT_OF_MEMORY)                                                   \
            r = hed_sched_make_room(                                                         \
                self, &(struct hed_sched_need){                                              \
                          .id = HED_##call, .args = a, .device = device_of(HED_##call, a)}); \
        hed_sched_after(self, HED_##call, a, NULL, r);                                       \
        return r;                                                                            \
    }

HED_CUDA_DOES_BEGIN_CONTEXT(BEGINS)

/* Calls that take device memory, in the words of the spec (memory=). */
struct taking {
    struct hed_place out;
    uint64_t bytes, key, stream;
    bool ptds;
    CUmemLocationType where;
    int device;
};

/* What is left of a call that has found no memory. */
static CUresult
take_from_others(struct hed_layer *self, enum hed_cuda_call id, void *args, const struct taking *t)
{
    const bool here = t->where == CU_MEM_LOCATION_TYPE_DEVICE;

    if (t->where != 0 && !here)
        return CUDA_ERROR_OUT_OF_MEMORY; /* of the host */
    return hed_sched_make_room(
        self, &(struct hed_sched_need){
                  .id = id, .args = args, .bytes = t->bytes, .device = here ? t->device : -1});
}

#define TAKES(call, class, ...) TAKES_BYTES(call, class, .bytes = 0)
#define TAKES_BYTES(call, class, ...)                                                      \
    static CUresult sched_##call(struct hed_layer *self, struct hed_##call *a)             \
    {                                                                                      \
        const CUresult r = hed_next(self, call, a);                                        \
                                                                                           \
        return __builtin_expect(r != CUDA_ERROR_OUT_OF_MEMORY, 1)                          \
                   ? r                                                                     \
                   : take_from_others(self, HED_##call, a, &(struct taking){__VA_ARGS__}); \
    }

#define HED_SCHED_TAKES(X)         \
    HED_CUDA_MEMORY_ALLOC_ROWS(X)  \
    HED_CUDA_MEMORY_ALLOC_ARRAY(X) \
    HED_CUDA_MEMORY_CODE_LOAD(X)   \
    HED_CUDA_MEMORY_LIBRARY_USE(X) \
    HED_CUDA_MEMORY_EXEC_MAKE(X)
#define HED_SCHED_TAKES_BYTES(X)  \
    HED_CUDA_MEMORY_ALLOC(X)      \
    HED_CUDA_MEMORY_POOL_ALLOC(X) \
    HED_CUDA_MEMORY_PHYSICAL_MAKE(X)

HED_SCHED_TAKES(TAKES)
HED_SCHED_TAKES_BYTES(TAKES_BYTES)

#define ENTRY(call, ...) .call = sched_##call,

const struct hed_cuda_ops hed_sched_cuda = {
    HED_CUDA_WORK(ENTRY)               /* pass the gate */
    HED_CUDA_DOES_BEGIN_CONTEXT(ENTRY) /* the process joins the GPU's clients */
    HED_CUDA_DOES_END_CONTEXT(ENTRY)   /* the engine's events there go first */
    HED_CUDA_DOES_BEGIN_CAPTURE(ENTRY) /* the engine makes no driver calls from here */
    HED_CUDA_DOES_END_CAPTURE(ENTRY)   /* to here */
    HED_CUDA_END_STREAM(ENTRY)         /* a stream's end also ends its capture */
    HED_CUDA_DOES_WAIT(ENTRY)          /* afterwards the client may have no work left */
    HED_SCHED_TAKES(ENTRY)             /* if there is no memory, others leave theirs */
    HED_SCHED_TAKES_BYTES(ENTRY)};
