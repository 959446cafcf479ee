/* The layer's calls in two halves: for calls that the driver makes itself, between which and after
 * which somebody is told (src/inject). What each half does is what calls.c and sync.c do around the
 * call. */
#include "layers/sched/sched.h"

void
hed_sched_before(struct hed_layer *self, struct hed_turn *t, enum hed_cuda_call id,
                 const void *args)
{
    *t = (struct hed_turn){.id = id};
    switch (hed_cuda_info[id].does) {
    case HED_DOES_LAUNCH:
    case HED_DOES_COPY:
    case HED_DOES_FILL:
    case HED_DOES_MOVE:
        if (!hed_sched_open(self->state))
            hed_sched_enter(self, t, id, args);
        break;
    case HED_DOES_END_CONTEXT:
        hed_sched_keep_off(self->state);
        hed_pace_forget(self);
        break;
    case HED_DOES_BEGIN_CAPTURE:
        hed_sched_keep_off(self->state);
        break;
    case HED_DOES_WAIT:
        t->gpu = hed_sched_wait_begins(self);
        break;
    default:
        break;
    }
}

void
hed_sched_after(struct hed_layer *self, struct hed_turn *t, enum hed_cuda_call id, const void *args,
                CUresult result)
{
    const bool done = result == CUDA_SUCCESS;

    switch (hed_cuda_info[id].does) {
    case HED_DOES_LAUNCH:
    case HED_DOES_COPY:
    case HED_DOES_FILL:
    case HED_DOES_MOVE:
        hed_sched_leave(self, t, result);
        break;
    case HED_DOES_BEGIN_CONTEXT:
        if (done)
            (void)hed_sched_join_gpu(self, hed_sched_device_of(id, args));
        break;
    case HED_DOES_END_CONTEXT:
        if (done)
            hed_sched_context_ended(self->state, hed_sched_context_of(id, args));
        hed_sched_come_back(self->state);
        break;
    case HED_DOES_BEGIN_CAPTURE:
        if (done)
            hed_sched_capture_began(self, hed_sched_stream_key(id, args));
        else
            hed_sched_come_back(self->state);
        break;
    case HED_DOES_END_CAPTURE:
        /* As in calls.c: another thread's attempt does not end it. */
        if (result != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
            hed_sched_capture_ended(self->state, hed_sched_stream_key(id, args));
        break;
    case HED_DOES_END:
        if (done && hed_cuda_info[id].of_kind == HED_CUDA_KIND_STREAM)
            hed_sched_capture_ended(self->state, hed_sched_stream_key(id, args));
        break;
    case HED_DOES_WAIT:
        hed_sched_wait_ends(self, t->gpu, result, hed_sched_waited_for(self, id, args));
        break;
    default:
        break;
    }
}
