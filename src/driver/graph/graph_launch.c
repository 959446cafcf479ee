/* Launching executable graphs. On a capturing stream a launch becomes a node; otherwise the machine
 * runs it. */
#include "driver/graph/node.h"
#include "driver/parts.h"
#include "driver/stream/stream.h"

bool
hed_exec_add_last(struct hed_exec *e, struct hed_points *after)
{
    bool done = true;

    hed_lock(&e->lock);
    hed_points_prune(&e->last);
    for (unsigned i = 0; i < e->last.count && done; i++)
        done = hed_points_add_point(after, e->last.at[i]);
    hed_unlock(&e->lock);
    return done;
}

CUresult
hed_exec_launched(struct hed_exec *e, struct hed_stream *s)
{
    hed_lock(&e->lock);
    hed_points_clear(&e->last);

    const bool done = hed_points_add(&e->last, s);

    hed_unlock(&e->lock);
    return done ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
capture_graph_launch(struct hed_stream *s, struct hed_graph_exec *body)
{
    struct hed_work *w = hed_work_create(s->ctx, HED_WORK_GRAPH);

    if (!w)
        return CUDA_ERROR_OUT_OF_MEMORY;
    hed_graph_exec_ref(body);
    w->graph = body;
    return hed_submit(s, w);
}

static CUresult
launch_body(struct hed_exec *e, struct hed_stream *s, struct hed_graph_exec *body)
{
    const struct hed_driver *d = e->driver;
    CUresult r;

    /* Relaxed: the program orders its capture and its launches. */
    if (atomic_load_explicit(&s->capture, memory_order_relaxed))
        return capture_graph_launch(s, body);
    r = hed_submit_allowed(s);
    return r == CUDA_SUCCESS ? d->machine->graph_launch(d->machine_state, e, s, body) : r;
}

CUresult
hed_soft_cuGraphLaunch(struct hed_layer *self, struct hed_cuGraphLaunch *a)
{
    struct hed_exec *e = hed_exec_find(hed_driver_of(self), a->hGraph);
    struct hed_stream *s = NULL;

    if (!e)
        return CUDA_ERROR_INVALID_VALUE;

    CUresult r = hed_stream_find(self, a->hStream, a->ptds, &s);

    if (r == CUDA_SUCCESS) {
        hed_lock(&e->lock);

        struct hed_graph_exec *body = e->body;

        hed_graph_exec_ref(body);
        hed_unlock(&e->lock);
        r = launch_body(e, s, body);
        hed_graph_exec_unref(body);
        hed_stream_put(s);
    }
    hed_object_put(&e->object);
    return r;
}

CUresult
hed_soft_cuGraphUpload(struct hed_layer *self, struct hed_cuGraphUpload *a)
{
    const struct hed_driver *d = hed_driver_of(self);
    struct hed_exec *e = hed_exec_find(hed_driver_of(self), a->hGraph);
    struct hed_stream *s;

    if (!e)
        return CUDA_ERROR_INVALID_VALUE;

    const CUresult r = hed_stream_find(self, a->hStream, a->ptds, &s);

    if (r == CUDA_SUCCESS) {
        d->machine->graph_upload(d->machine_state, e, s);
        hed_stream_put(s);
    }
    hed_object_put(&e->object);
    return r;
}
