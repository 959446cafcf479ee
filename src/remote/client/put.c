/* Work on streams, as messages: which file sends which kind. See queue.h. */
#include "remote/client/queue.h"
#include "remote/client/remote.h"

static CUresult
put_memops(struct hed_remote *r, struct hed_stream *s, struct hed_work *w)
{
    hed_remote_sync_out(r);
    hed_remote_send(r, s->ctx->object.handle, hed_stream_name(s), w->number, cuStreamBatchMemOp_v2,
                    .stream = (CUstream)(uintptr_t)hed_stream_name(s), .count = w->memops.count,
                    .paramArray = w->memops.ops);
    return CUDA_SUCCESS;
}

CUresult
hed_remote_put(void *m, struct hed_stream *s, struct hed_work *w)
{
    struct hed_remote *r = hed_remote_of(m);

    switch (w->kind) {
    case HED_WORK_KERNEL:
        return hed_remote_put_launch(m, s, &w->kernel, w->number);
    case HED_WORK_COPY:
        return hed_remote_put_copy(r, s, w);
    case HED_WORK_FILL:
        return hed_remote_put_fill(r, s, w);
    case HED_WORK_GRAPH:
        return hed_remote_put_graph(r, s, w);
    case HED_WORK_HOST:
    case HED_WORK_CALLBACK:
        return hed_remote_put_host(r, s, w);
    case HED_WORK_EVENT_RECORD:
    case HED_WORK_EVENT_WAIT:
        return hed_remote_put_event(r, s, w);
    case HED_WORK_MEMOP:
        return put_memops(r, s, w);
    default:
        return CUDA_SUCCESS; /* nothing to send: no work, or memory that this side handles */
    }
}
