/* Beginning and ending captures, and queries about them. capture.c explains what a capture is. */
#include <stdlib.h>
#include <string.h>

#include "driver/graph/capture.h"
#include "driver/parts.h"

static _Atomic uint64_t next_id = 1;

/* Sets the nodes after which a capture into a given graph begins. */
static CUresult
begin_behind_locked(struct hed_capture *c, struct hed_joined *j, const CUgraphNode *deps,
                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct hed_node *n = hed_node_find(c->graph->driver, deps[i]);
        const bool fits = n && n->graph == c->graph && hed_tips_add(&j->tips, n);

        if (n)
            hed_object_put(&n->object);
        if (!fits)
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* Makes the capture and lets the stream join it. Takes the reference to the graph on success. */
static CUresult
begin_capture_locked(struct hed_stream *s, CUstreamCaptureMode mode, struct hed_graph *g, bool owns)
{
    struct hed_capture *c = calloc(1, sizeof *c);
    struct hed_joined *j;

    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *c = (struct hed_capture){
        .refs = 1,
        .id = atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed),
        .graph = g,
        .owns_graph = owns,
        .mode = mode,
        .thread = pthread_self(),
        .origin = s,
    };

    const CUresult r = hed_capture_join_locked(c, s, &j);

    if (r != CUDA_SUCCESS) {
        free(c);
        return r;
    }
    c->refs--; /* the creator's reference: the stream has its own now */
    c->next = hed_captures;
    hed_captures = c;
    /* Relaxed: only a hint that tells others to look under the lock. */
    atomic_fetch_add_explicit(&hed_captures_active, 1, memory_order_relaxed);
    return CUDA_SUCCESS;
}

struct begin {
    CUstreamCaptureMode mode;
    CUgraph graph; /* NULL: make a new one */
    const CUgraphNode *deps;
    size_t count;
};

static CUresult
begin_stream(struct hed_driver *d, struct hed_stream *s, const struct begin *b)
{
    struct hed_graph *g = b->graph ? hed_graph_find(d, b->graph) : hed_graph_create(d);

    if (!g)
        return b->graph ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
    if (!b->graph) /* the handle keeps its own reference; this one is the capture's */
        (void)hed_graph_find(d, (CUgraph)(uintptr_t)g->object.handle);

    hed_lock(&hed_captures_lock);

    CUresult r = hed_capture_of(s) ? CUDA_ERROR_ILLEGAL_STATE
                                   : begin_capture_locked(s, b->mode, g, !b->graph);
    struct hed_joined *all = NULL;

    if (r == CUDA_SUCCESS && b->count > 0) {
        struct hed_capture *c = hed_capture_of(s);

        r = begin_behind_locked(c, hed_capture_joined_locked(c, s), b->deps, b->count);
        if (r != CUDA_SUCCESS) {
            c->refs++;
            c->graph = NULL;
            all = hed_capture_leave_locked(c);
            hed_capture_unref_locked(c);
        }
    }
    hed_unlock(&hed_captures_lock);
    hed_capture_put_streams(all);
    if (r != CUDA_SUCCESS) {
        if (!b->graph)
            hed_graph_destroy(g);
        hed_object_put(&g->object);
    }
    return r;
}

static CUresult
begin_capture(struct hed_layer *self, CUstream stream, bool ptds, const struct begin *b)
{
    struct hed_stream *s;
    CUresult r;

    if (b->mode != CU_STREAM_CAPTURE_MODE_GLOBAL &&
        b->mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && b->mode != CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    r = hed_stream_find(self, stream, ptds, &s);
    if (r != CUDA_SUCCESS)
        return r;
    /* "Capture must not be initiated on the legacy stream." */
    r = s->is_legacy ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                     : begin_stream(hed_driver_of(self), s, b);
    hed_stream_put(s);
    return r;
}

static CUresult
soft_cuStreamBeginCapture(struct hed_layer *self, struct hed_cuStreamBeginCapture *a)
{
    return begin_capture(self, a->hStream, a->ptds,
                         &(struct begin){.mode = CU_STREAM_CAPTURE_MODE_GLOBAL});
}

static CUresult
soft_cuStreamBeginCapture_v2(struct hed_layer *self, struct hed_cuStreamBeginCapture_v2 *a)
{
    return begin_capture(self, a->hStream, a->ptds, &(struct begin){.mode = a->mode});
}

static CUresult
soft_cuStreamBeginCaptureToGraph(struct hed_layer *self, struct hed_cuStreamBeginCaptureToGraph *a)
{
    if (!a->hGraph || (a->numDependencies > 0 && !a->dependencies))
        return CUDA_ERROR_INVALID_VALUE;
    return begin_capture(self, a->hStream, a->ptds,
                         &(struct begin){a->mode, a->hGraph, a->dependencies, a->numDependencies});
}

static bool
came_back(const struct hed_tips *t, const struct hed_tips *end)
{
    for (size_t i = 0; i < t->count; i++) {
        bool back = !t->at[i]->graph || t->at[i]->out.count > 0;

        for (size_t k = 0; !back && k < end->count; k++)
            back = end->at[k] == t->at[i];
        if (!back)
            return false;
    }
    return true;
}

/* Does the origin's last node come after everything that the other streams did? Every node without
 * a successor must be one of the origin's tips. */
static bool
all_came_back_locked(struct hed_capture *c)
{
    const struct hed_tips *end = &hed_capture_joined_locked(c, c->origin)->tips;

    for (struct hed_joined *j = c->streams; j; j = j->next)
        if (j->stream != c->origin && !came_back(&j->tips, end))
            return false;
    return came_back(&c->left, end);
}

/* `untold`: the program gave no pointer for the graph. That is allowed only if it captures into a
 * graph of its own. */
static CUresult
end_capture_locked(struct hed_stream *s, bool untold, struct hed_capture **out)
{
    struct hed_capture *c = hed_capture_of(s);

    if (!c)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (c->origin != s) {
        c->invalidated = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    if (untold && c->owns_graph)
        return CUDA_ERROR_INVALID_VALUE;
    if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(c->thread, pthread_self()))
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    *out = c;
    if (c->invalidated)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    return all_came_back_locked(c) ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
}

static CUresult
soft_cuStreamEndCapture(struct hed_layer *self, struct hed_cuStreamEndCapture *a)
{
    struct hed_stream *s;
    struct hed_capture *c = NULL;
    struct hed_joined *all = NULL;
    struct hed_graph *g = NULL;
    bool owns = false;
    CUresult r = hed_stream_find(self, a->hStream, a->ptds, &s);

    if (r != CUDA_SUCCESS)
        return r;
    hed_lock(&hed_captures_lock);
    r = end_capture_locked(s, !a->phGraph, &c);
    if (c) {
        g = c->graph;
        owns = c->owns_graph;
        c->graph = NULL;
        c->refs++;
        all = hed_capture_leave_locked(c);
        c->invalidated = true; /* for events that still refer to the capture */
        hed_capture_unref_locked(c);
    }
    hed_unlock(&hed_captures_lock);
    hed_capture_put_streams(all);
    hed_stream_put(s);
    if (a->phGraph && c)
        *a->phGraph = r == CUDA_SUCCESS ? (CUgraph)(uintptr_t)g->object.handle : NULL;
    if (g) {
        if (r != CUDA_SUCCESS && owns)
            hed_graph_destroy(g);
        hed_object_put(&g->object);
    }
    return r;
}

/* ---- queries --------------------------------------------------------------------------------- */

struct info {
    CUstreamCaptureStatus *status;
    cuuint64_t *id;
    CUgraph *graph;
    const CUgraphNode **deps;
    const CUgraphEdgeData **edges;
    size_t *count;
};

static CUresult
info_locked(struct hed_stream *s, const struct info *i)
{
    struct hed_capture *c = hed_capture_of(s);

    *i->status = !c               ? CU_STREAM_CAPTURE_STATUS_NONE
                 : c->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                  : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (!c || c->invalidated)
        return CUDA_SUCCESS;
    if (i->id)
        *i->id = c->id;
    if (i->graph)
        *i->graph = (CUgraph)(uintptr_t)c->graph->object.handle;

    struct hed_joined *j = hed_capture_joined_locked(c, s);

    if (i->deps && !(*i->deps = hed_tips_handles(&j->tips)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (i->edges)
        *i->edges = NULL; /* no edge carries data */
    if (i->count)
        *i->count = j->tips.count;
    return CUDA_SUCCESS;
}

static CUresult
ask_capture(struct hed_layer *self, CUstream stream, bool ptds, const struct info *i)
{
    struct hed_stream *s;

    if (!i->status)
        return CUDA_ERROR_INVALID_VALUE;

    CUresult r = hed_stream_find(self, stream, ptds, &s);

    if (r != CUDA_SUCCESS)
        return r;
    /* "If called on the legacy stream while a blocking stream captures: STREAM_CAPTURE_IMPLICIT.
     * The blocking stream capture is not invalidated." (CUDA Driver API, cuStreamIsCapturing) */
    r = s->is_legacy ? hed_capture_would_be_implicit(s->ctx) : CUDA_SUCCESS;
    if (r == CUDA_SUCCESS) {
        hed_lock(&hed_captures_lock);
        r = info_locked(s, i);
        hed_unlock(&hed_captures_lock);
    }
    hed_stream_put(s);
    return r;
}

static CUresult
soft_cuStreamIsCapturing(struct hed_layer *self, struct hed_cuStreamIsCapturing *a)
{
    return ask_capture(self, a->hStream, a->ptds, &(struct info){.status = a->captureStatus});
}

static CUresult
soft_cuStreamGetCaptureInfo(struct hed_layer *self, struct hed_cuStreamGetCaptureInfo *a)
{
    return ask_capture(self, a->hStream, a->ptds,
                       &(struct info){.status = a->captureStatus_out, .id = a->id_out});
}

static CUresult
soft_cuStreamGetCaptureInfo_v2(struct hed_layer *self, struct hed_cuStreamGetCaptureInfo_v2 *a)
{
    return ask_capture(self, a->hStream, a->ptds,
                       &(struct info){a->captureStatus_out, a->id_out, a->graph_out,
                                      a->dependencies_out, NULL, a->numDependencies_out});
}

static CUresult
soft_cuStreamGetCaptureInfo_v3(struct hed_layer *self, struct hed_cuStreamGetCaptureInfo_v3 *a)
{
    return ask_capture(self, a->hStream, a->ptds,
                       &(struct info){a->captureStatus_out, a->id_out, a->graph_out,
                                      a->dependencies_out, a->edgeData_out,
                                      a->numDependencies_out});
}

static CUresult
update_locked(struct hed_stream *s, const CUgraphNode *deps, size_t count, unsigned flags)
{
    struct hed_capture *c = hed_capture_of(s);

    if (!c || c->invalidated)
        return c ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_ERROR_ILLEGAL_STATE;

    struct hed_joined *j = hed_capture_joined_locked(c, s);

    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        hed_tips_clear(&j->tips);
    return begin_behind_locked(c, j, deps, count);
}

static CUresult
update_dependencies(struct hed_layer *self, CUstream stream, bool ptds, const CUgraphNode *deps,
                    size_t count, unsigned flags)
{
    struct hed_stream *s;

    if ((count > 0 && !deps) || (flags != CU_STREAM_ADD_CAPTURE_DEPENDENCIES &&
                                 flags != CU_STREAM_SET_CAPTURE_DEPENDENCIES))
        return CUDA_ERROR_INVALID_VALUE;

    CUresult r = hed_stream_find(self, stream, ptds, &s);

    if (r != CUDA_SUCCESS)
        return r;
    hed_lock(&hed_captures_lock);
    r = update_locked(s, deps, count, flags);
    hed_unlock(&hed_captures_lock);
    hed_stream_put(s);
    return r;
}

static CUresult
soft_cuStreamUpdateCaptureDependencies(struct hed_layer *self,
                                       struct hed_cuStreamUpdateCaptureDependencies *a)
{
    return update_dependencies(self, a->hStream, a->ptds, a->dependencies, a->numDependencies,
                               a->flags);
}

static CUresult
soft_cuStreamUpdateCaptureDependencies_v2(struct hed_layer *self,
                                          struct hed_cuStreamUpdateCaptureDependencies_v2 *a)
{
    return update_dependencies(self, a->hStream, a->ptds, a->dependencies, a->numDependencies,
                               a->flags);
}

static CUresult
soft_cuThreadExchangeStreamCaptureMode(struct hed_layer *self,
                                       struct hed_cuThreadExchangeStreamCaptureMode *a)
{
    if (!a->mode || (unsigned)*a->mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;

    const CUstreamCaptureMode old = hed_capture_mode;

    hed_capture_mode = *a->mode;
    *a->mode = old;
    return CUDA_SUCCESS;
}

const struct hed_cuda_ops hed_calls_capture = {
    .cuStreamBeginCapture = soft_cuStreamBeginCapture,
    .cuStreamBeginCapture_v2 = soft_cuStreamBeginCapture_v2,
    .cuStreamBeginCaptureToGraph = soft_cuStreamBeginCaptureToGraph,
    .cuStreamEndCapture = soft_cuStreamEndCapture,
    .cuStreamIsCapturing = soft_cuStreamIsCapturing,
    .cuStreamGetCaptureInfo = soft_cuStreamGetCaptureInfo,
    .cuStreamGetCaptureInfo_v2 = soft_cuStreamGetCaptureInfo_v2,
    .cuStreamGetCaptureInfo_v3 = soft_cuStreamGetCaptureInfo_v3,
    .cuStreamUpdateCaptureDependencies = soft_cuStreamUpdateCaptureDependencies,
    .cuStreamUpdateCaptureDependencies_v2 = soft_cuStreamUpdateCaptureDependencies_v2,
    .cuThreadExchangeStreamCaptureMode = soft_cuThreadExchangeStreamCaptureMode,
};
