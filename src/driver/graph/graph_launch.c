/* Launching executable graphs: here, or at a far side (driver/far.h).
 *
 * Here a graph is one piece of work on a stream. A far side has a twin of the executable graph,
 * which is made or brought up to date when it is launched: changes cost nothing until then. Where
 * there cannot be a twin (memory of the program's own in copies, for one), the nodes are put on the
 * stream one after the other, which is an order their edges allow.
 */
#include "driver/driver.h"
#include "driver/far.h"
#include "driver/graph/node.h"
#include "driver/memory/memory.h"
#include "driver/stream/stream.h"

/* ---- here ---------------------------------------------------------------------------------- */

/* The events of a graph are the stream's business: it waits for them before the graph runs, at the
 * points they stand for now, and they are recorded behind it. */
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

/* "Each launch is ordered behind both any previous work in this stream and any previous launches of
 * this graph." (CUDA Driver API, cuGraphLaunch) */
static bool
come_behind_last(struct hed_exec *e, struct hed_points *after)
{
    bool done = true;

    hed_lock(&e->lock);
    hed_points_prune(&e->last);
    for (unsigned i = 0; i < e->last.count && done; i++)
        done = hed_points_add_point(after, e->last.at[i]);
    hed_unlock(&e->lock);
    return done;
}

static CUresult
remember_last(struct hed_exec *e, struct hed_stream *s)
{
    hed_lock(&e->lock);
    hed_points_clear(&e->last);

    const bool done = hed_points_add(&e->last, s);

    hed_unlock(&e->lock);
    return done ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- at a far side ------------------------------------------------------------------------- */

bool
hed_graph_is_private(struct hed_driver *d, const struct hed_copy_side *side,
                     const struct hed_copy *c)
{
    const uint64_t bytes = c->width + (c->height - 1) * side->pitch + (c->depth - 1) * side->slice;
    struct hed_allocation a;

    if (side->array)
        return false;
    if (hed_memory_find(d, side->at, &a) && a.kind != HED_MEMORY_HOST &&
        a.kind != HED_MEMORY_REGISTERED && a.kind != HED_MEMORY_MANAGED)
        return false;
    return !d->machine->far->shares(d->machine_state, side->at, bytes);
}

static CUresult
put_work(struct hed_stream *s, struct hed_work *w)
{
    struct hed_work *copy;

    switch (w->kind) {
    case HED_WORK_EVENT_RECORD:
    case HED_WORK_EVENT_WAIT:
        return hed_event_submit(s, w->event.event, w->kind, 0);
    case HED_WORK_COPY:
        return hed_copy_submit(s, &w->copy.given);
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
            r = put_work(s, w);
    }
    return r;
}

/* Launches on other streams come first; of one executable graph that is rare. */
static CUresult
wait_for_last(struct hed_exec *e, const struct hed_stream *s)
{
    struct hed_points last = {0};
    CUresult r = come_behind_last(e, &last) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

    for (unsigned i = 0; i < last.count && r == CUDA_SUCCESS; i++)
        if (last.at[i].stream != s)
            r = hed_far_wait(last.at[i]);
    hed_points_clear(&last);
    return r;
}

/* An event that a twin records is recorded, as far as anybody here can tell, with the work that was
 * put on the stream last. */
static void
mark_record(struct hed_stream *s, struct hed_event *e)
{
    const uint64_t number = hed_far_now(s);

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

/* The twin is what the body is, or there is none and by_node says so. */
static void
bring_up_locked(struct hed_exec *e, struct hed_stream *s)
{
    const struct hed_driver *d = e->driver;

    if (e->twin == HED_TWIN_CURRENT || e->by_node)
        return;
    if (d->machine->far->exec_made(d->machine_state, s->ctx, e, e->body) == CUDA_SUCCESS)
        e->twin = HED_TWIN_CURRENT;
    else
        e->by_node = true;
}

static CUresult
launch_far(struct hed_exec *e, struct hed_stream *s, struct hed_graph_exec *body)
{
    CUresult r = hed_submit_allowed(s);

    if (r != CUDA_SUCCESS)
        return r;
    hed_lock(&e->lock);
    bring_up_locked(e, s);

    const bool by_node = e->by_node;

    hed_unlock(&e->lock);
    if (by_node) {
        r = wait_for_last(e, s);
        if (r == CUDA_SUCCESS)
            r = put_nodes(s, body);
    } else {
        struct hed_work *w = hed_work_create(s->ctx, HED_WORK_GRAPH);

        if (!w)
            return CUDA_ERROR_OUT_OF_MEMORY;
        hed_graph_exec_ref(body);
        w->graph = body;
        w->exec = e->object.handle;
        r = hed_submit(s, w);
        if (r == CUDA_SUCCESS)
            mark_records(s, body);
    }
    return r == CUDA_SUCCESS ? remember_last(e, s) : r;
}

/* ---- calls --------------------------------------------------------------------------------- */

static CUresult
launch(struct hed_exec *e, struct hed_stream *s, struct hed_graph_exec *body)
{
    /* Relaxed: the program orders its capture and its launches. */
    const bool captures = atomic_load_explicit(&s->capture, memory_order_relaxed) != NULL;

    if (!captures && e->driver->machine->far)
        return launch_far(e, s, body);

    struct hed_work *w = hed_work_create(s->ctx, HED_WORK_GRAPH);
    CUresult r = CUDA_SUCCESS;

    if (!w)
        return CUDA_ERROR_OUT_OF_MEMORY;
    hed_graph_exec_ref(body);
    w->graph = body;
    if (!captures && !come_behind_last(e, &w->after))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (r == CUDA_SUCCESS && !captures)
        r = submit_events(s, body, HED_WORK_EVENT_WAIT);
    if (r != CUDA_SUCCESS) {
        hed_work_free(w);
        return r;
    }
    r = hed_submit(s, w);
    if (r == CUDA_SUCCESS && !captures)
        r = remember_last(e, s);
    if (r == CUDA_SUCCESS && !captures)
        r = submit_events(s, body, HED_WORK_EVENT_RECORD);
    return r;
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
        r = launch(e, s, body);
        hed_graph_exec_unref(body);
        hed_stream_put(s);
    }
    hed_object_put(&e->object);
    return r;
}

/* Here everything is where it is to be already; a far side makes its twin now. */
CUresult
hed_soft_cuGraphUpload(struct hed_layer *self, struct hed_cuGraphUpload *a)
{
    struct hed_exec *e = hed_exec_find(hed_driver_of(self), a->hGraph);
    struct hed_stream *s;

    if (!e)
        return CUDA_ERROR_INVALID_VALUE;

    const CUresult r = hed_stream_find(self, a->hStream, a->ptds, &s);

    if (r == CUDA_SUCCESS) {
        if (e->driver->machine->far) {
            hed_lock(&e->lock);
            bring_up_locked(e, s);
            hed_unlock(&e->lock);
        }
        hed_stream_put(s);
    }
    hed_object_put(&e->object);
    return r;
}
