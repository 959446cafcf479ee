/* Executable graphs on this machine: one piece of work on a stream, whose nodes run one after the
 * other. */
#include "driver/graph/node.h"
#include "driver/near/near.h"
#include "driver/parts.h"
#include "driver/stream/stream.h"

/* The stream handles the events of a graph: before the graph runs, it waits for them at their
 * current points, and it records them behind the graph. */
static CUresult
submit_events(struct hed_stream *s, const struct hed_graph_exec *g, enum hed_work_kind kind)
{
    const unsigned flags = kind == HED_WORK_EVENT_RECORD ? HED_EVENT_OF_GRAPH : 0;
    CUresult r = CUDA_SUCCESS;

    for (size_t i = 0; i < g->count && r == CUDA_SUCCESS; i++) {
        const struct hed_exec_node *n = &g->nodes[i];

        if (n->child)
            r = submit_events(s, n->child, kind);
        else if (n->work && n->work->kind == kind)
            r = hed_event_submit(s, n->work->event.event, kind, flags);
    }
    return r;
}

CUresult
hed_near_graph_launch(void *m, struct hed_exec *e, struct hed_stream *s,
                      struct hed_graph_exec *body)
{
    struct hed_work *w = hed_work_create(s->ctx, HED_WORK_GRAPH);
    CUresult r = CUDA_SUCCESS;

    if (!w)
        return CUDA_ERROR_OUT_OF_MEMORY;
    hed_graph_exec_ref(body);
    w->graph = body;
    if (!hed_exec_add_last(e, &w->after))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (r == CUDA_SUCCESS)
        r = submit_events(s, body, HED_WORK_EVENT_WAIT);
    if (r != CUDA_SUCCESS) {
        hed_work_free(w);
        return r;
    }
    r = hed_near_submit(m, s, w, false);
    if (r == CUDA_SUCCESS)
        r = hed_exec_launched(e, s);
    if (r == CUDA_SUCCESS)
        r = submit_events(s, body, HED_WORK_EVENT_RECORD);
    return r;
}
