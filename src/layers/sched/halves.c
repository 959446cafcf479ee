/* The layer's calls in two halves: for calls that the driver makes itself, between which and after
 * which somebody is told (src/inject). What each half does is what calls.c and sync.c do around the
 * call. */
#include <pthread.h>

#include "layers/sched/sched.h"

static uint64_t
stream_key(enum hed_cuda_call id, const void *args)
{
    const struct hed_call_info *info = &hed_cuda_info[id];
    uint64_t stream = 0;
    const bool ptds = hed_call_ptds(info, args);

    (void)hed_call_stream(info, args, &stream);
    return hed_stream_key((CUstream)(uintptr_t)stream, ptds, (uint64_t)pthread_self());
}

void
hed_sched_before(struct hed_layer *self, struct hed_turn *t, enum hed_cuda_call id,
                 const void *args)
{
    *t = (struct hed_turn){.id = id};
    switch (hed_sched_sort(id)) {
    case HED_SORT_WORK:
        if (!hed_sched_open(self->state))
            hed_sched_enter(self, t, id, args);
        break;
    case HED_SORT_CONTEXT_ENDS:
        hed_sched_keep_off(self->state);
        hed_pace_forget(self);
        break;
    case HED_SORT_CAPTURE_BEGINS:
        hed_sched_keep_off(self->state);
        break;
    case HED_SORT_WAITS:
        t->gpu = hed_sched_wait_begins(self);
        break;
    default:
        break;
    }
}

/* Which stream has no work any more, see hed_sched_wait_ends. */
static uint64_t
waited_for(struct hed_layer *self, enum hed_cuda_call id, const void *args)
{
    if (id == HED_cuCtxSynchronize)
        return 0;
    if (id == HED_cuCtxSynchronize_v2)
        return hed_sched_of_context(self, ((const struct hed_cuCtxSynchronize_v2 *)args)->ctx);
    return id == HED_cuStreamSynchronize ? stream_key(id, args) : UINT64_MAX;
}

void
hed_sched_after(struct hed_layer *self, struct hed_turn *t, enum hed_cuda_call id, const void *args,
                CUresult result)
{
    const bool done = result == CUDA_SUCCESS;

    switch (hed_sched_sort(id)) {
    case HED_SORT_WORK:
        hed_sched_leave(self, t, result);
        break;
    case HED_SORT_CONTEXT_BEGINS:
        if (done)
            (void)hed_sched_join_gpu(self, hed_sched_device_of(id, args));
        break;
    case HED_SORT_CONTEXT_ENDS:
        if (done)
            hed_sched_context_ended(self->state, hed_sched_context_of(id, args));
        hed_sched_come_back(self->state);
        break;
    case HED_SORT_CAPTURE_BEGINS:
        if (done)
            hed_sched_capture_began(self, stream_key(id, args));
        else
            hed_sched_come_back(self->state);
        break;
    case HED_SORT_CAPTURE_ENDS:
        /* As in calls.c: another thread's attempt does not end it. */
        if (result != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
            hed_sched_capture_ended(self->state, stream_key(id, args));
        break;
    case HED_SORT_STREAM_ENDS:
        if (done)
            hed_sched_capture_ended(self->state, stream_key(id, args));
        break;
    case HED_SORT_WAITS:
        hed_sched_wait_ends(self, t->gpu, result, waited_for(self, id, args));
        break;
    default:
        break;
    }
}
