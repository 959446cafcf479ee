/* The machine's table for executors. See near.h. */
#include "driver/near/near.h"

#include "driver/driver.h"

/* ---- objects that are nothing but what the driver keeps of them ------------------------------ */

static CUresult
context_made(void *m, struct hed_context *c)
{
    return CUDA_SUCCESS;
}

static void
context_gone(void *m, struct hed_context *c)
{
}

static CUresult
context_limit(void *m, struct hed_context *c, CUlimit limit, size_t value)
{
    return CUDA_SUCCESS;
}

static void
stream_made(void *m, struct hed_stream *s)
{
}

static void
stream_set(void *m, struct hed_stream *s, CUlaunchAttributeID id,
           const CUlaunchAttributeValue *value)
{
}

static void
event_changed(void *m, struct hed_event *e)
{
}

static void
graph_upload(void *m, struct hed_exec *e, struct hed_stream *s)
{
}

static void
graph_gone(void *m, struct hed_exec *e)
{
}

/* ---- the table ------------------------------------------------------------------------------- */

void
hed_near_init(struct hed_near *n, const struct hed_executor *executor)
{
    n->executor = executor;
    n->machine = (struct hed_machine){
        .memory = executor->memory,
        .clusters = executor->clusters,
        .executor = executor,
        .stream_bytes = sizeof(struct hed_near_stream),
        .context_made = context_made,
        .context_gone = context_gone,
        .context_limit = context_limit,
        .context_wait = hed_near_context_wait,
        .stream_init = hed_near_stream_init,
        .stream_made = stream_made,
        .stream_gone = hed_near_stream_gone,
        .stream_set = stream_set,
        .stream_query = hed_near_stream_query,
        .stream_wait = hed_near_stream_wait,
        .point_reached = hed_near_point_reached,
        .point_wait = hed_near_point_wait,
        .event_made = event_changed,
        .event_gone = event_changed,
        .event_query = hed_near_event_query,
        .event_wait = hed_near_event_wait,
        .event_time = hed_near_event_time,
        .submit = hed_near_submit,
        .launch = hed_near_launch,
        .copy = hed_near_copy,
        .graph_launch = hed_near_graph_launch,
        .graph_upload = graph_upload,
        .graph_gone = graph_gone,
        .forked = executor->forked,
        .fini = executor->fini,
    };
}
