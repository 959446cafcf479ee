/* Executable graphs of a worker: with a mirror there, or without. See queue.h.
 *
 * The mirror is made or updated when the graph is launched, so changes cost nothing until then.
 * Some graphs cannot have a mirror, for example because they copy memory that only this process
 * has. Their nodes are put on the stream one by one, in an order that respects their edges.
 */
#include "core/stats.h"
#include "driver/driver.h"
#include "remote/client/queue.h"

static struct hed_remote_exec *
mirror_of(const struct hed_exec *e)
{
    return e->own;
}

/* Only the worker's driver can run conditional nodes. */
static bool
has_condition(const struct hed_graph_exec *g)
{
    for (size_t i = 0; i < g->count; i++) {
        const struct hed_exec_node *n = &g->nodes[i];

        if (n->condition.count || (n->child && has_condition(n->child)) ||
            (n->work && n->work->kind == HED_WORK_GRAPH && has_condition(n->work->graph)))
            return true;
    }
    return false;
}

/* ---- without a mirror ------------------------------------------------------------------------ */

static CUresult
put_node_work(struct hed_stream *s, struct hed_work *w)
{
    struct hed_work *copy;

    switch (w->kind) {
    case HED_WORK_EVENT_RECORD:
    case HED_WORK_EVENT_WAIT:
        return hed_event_submit(s, w->event.event, w->kind, 0);
    case HED_WORK_COPY:
        return hed_copy_submit(s, w->copy_given);
    default:
        copy = hed_work_copy(w);
        return copy ? hed_submit(s, copy) : CUDA_ERROR_OUT_OF_MEMORY;
    }
}

static CUresult
put_nodes(struct hed_stream *s, const struct hed_graph_exec *g)
{
    CUresult r = CUDA_SUCCESS;

    for (size_t i = 0; i < g->count && r == CUDA_SUCCESS; i++) {
        const struct hed_exec_node *n = &g->nodes[i];
        struct hed_work *w = n->work;

        if (n->disabled)
            continue;
        if (n->child)
            r = put_nodes(s, n->child);
        else if (w && w->kind == HED_WORK_GRAPH)
            r = put_nodes(s, w->graph);
        else if (w)
            r = put_node_work(s, w);
    }
    return r;
}

/* Waits for launches of the same executable graph on other streams, which are rare. */
static CUresult
wait_for_last(void *m, struct hed_exec *e, const struct hed_stream *s)
{
    struct hed_points last = {0};
    CUresult r = hed_exec_add_last(e, &last) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

    for (unsigned i = 0; i < last.count && r == CUDA_SUCCESS; i++)
        if (last.at[i].stream != s)
            r = hed_remote_point_wait(m, last.at[i]);
    hed_points_clear(&last);
    return r;
}

/* ---- with a mirror --------------------------------------------------------------------------- */

/* An event that a mirror records is recorded here with the last work on the stream; this side
 * cannot know its point more precisely. */
static void
mark_record(struct hed_stream *s, struct hed_event *e)
{
    const uint64_t number = hed_stream_now(s);

    hed_capture_forget(e);
    hed_lock(&e->lock);

    struct hed_stream *before = e->point.stream;

    hed_object_ref(&s->object);
    e->point = (struct hed_point){s, number};
    e->records++;
    e->recorded = true;
    e->time = 0;
    hed_unlock(&e->lock);
    if (before)
        hed_stream_put(before);
}

static void
mark_records(struct hed_stream *s, const struct hed_graph_exec *g)
{
    for (size_t i = 0; i < g->count; i++) {
        const struct hed_exec_node *n = &g->nodes[i];

        if (n->child)
            mark_records(s, n->child);
        else if (n->work && n->work->kind == HED_WORK_GRAPH)
            mark_records(s, n->work->graph);
        else if (n->work && n->work->kind == HED_WORK_EVENT_RECORD)
            mark_record(s, n->work->event.event);
    }
}

static CUresult
launch_mirror(void *m, struct hed_exec *e, struct hed_stream *s, struct hed_graph_exec *body)
{
    struct hed_work *w = hed_work_create(s->ctx, HED_WORK_GRAPH);

    if (!w)
        return CUDA_ERROR_OUT_OF_MEMORY;
    hed_graph_exec_ref(body);
    w->graph = body;
    w->exec = e->object.handle;

    const CUresult r = hed_remote_submit(m, s, w, false);

    if (r == CUDA_SUCCESS)
        mark_records(s, body);
    return r;
}

/* Makes the mirror the same as the body, or finds that there cannot be one. */
static void
bring_up_locked(void *m, struct hed_exec *e, struct hed_stream *s)
{
    struct hed_remote_exec *x = mirror_of(e);

    if (x->mirrored == e->version || x->by_node == e->version)
        return;
    x->refused = hed_remote_mirror_exec(m, s->ctx, e, e->body, x->mirrored == 0);
    if (x->refused == CUDA_SUCCESS)
        x->mirrored = e->version;
    else
        x->by_node = e->version;
}

CUresult
hed_remote_graph_launch(void *m, struct hed_exec *e, struct hed_stream *s,
                        struct hed_graph_exec *body)
{
    CUresult r;

    hed_lock(&e->lock);
    bring_up_locked(m, e, s);

    const bool by_node = mirror_of(e)->by_node == e->version;

    r = mirror_of(e)->refused;
    hed_unlock(&e->lock);
    if (by_node && has_condition(body)) {
        if (r == CUDA_ERROR_NOT_SUPPORTED)
            hed_stats_unsupported(
                HED_API_CUDA, HED_cuGraphLaunch,
                "a remote GPU (a conditional node in a child graph, or in a graph "
                "that copies private memory or calls the program)");
    } else if (by_node) {
        r = wait_for_last(m, e, s);
        if (r == CUDA_SUCCESS)
            r = put_nodes(s, body);
    } else {
        r = launch_mirror(m, e, s, body);
    }
    return r == CUDA_SUCCESS ? hed_exec_launched(e, s) : r;
}

void
hed_remote_graph_upload(void *m, struct hed_exec *e, struct hed_stream *s)
{
    hed_lock(&e->lock);
    bring_up_locked(m, e, s);
    hed_unlock(&e->lock);
}

void
hed_remote_graph_gone(void *m, struct hed_exec *e)
{
    if (mirror_of(e)->mirrored)
        hed_remote_drop_exec(m, e->object.handle);
}
