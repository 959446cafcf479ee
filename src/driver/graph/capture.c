/* Stream capture: work that is put on capturing streams becomes nodes of a graph.
 *
 *   (none) --cuStreamBeginCapture--> active --cuStreamEndCapture--> (none), the graph is handed out
 *                                       |
 *                                       +--something that cannot be captured--> invalidated
 *
 * A capture has an origin stream, and streams that joined it by waiting for an event recorded in
 * it. For each stream it knows the tips: the nodes that the stream's next node will come after.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "driver/graph/capture.h"
#include "driver/graph/node.h"
#include "driver/parts.h"
#include "driver/stream/stream.h"

struct hed_lock hed_captures_lock = HED_LOCK_INIT(HED_RANK_CAPTURE);
struct hed_capture *hed_captures;
_Atomic unsigned hed_captures_active;
__thread CUstreamCaptureMode hed_capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* ---- tips ------------------------------------------------------------------------------------ */

bool
hed_tips_add(struct hed_tips *t, struct hed_node *n)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->at[i] == n)
            return true;
    if (t->count == t->room) {
        const size_t room = t->room ? 2 * t->room : 4;
        struct hed_node **at = realloc(t->at, room * sizeof(struct hed_node *));

        if (!at)
            return false;
        t->at = at;
        t->room = room;
    }
    /* The node is alive: its graph keeps it while it is added here. */
    t->at[t->count++] = (struct hed_node *)hed_handles_get(n->graph->driver->handles,
                                                           HED_KIND_GRAPH_NODE, n->object.handle);
    return true;
}

void
hed_tips_clear(struct hed_tips *t)
{
    for (size_t i = 0; i < t->count; i++)
        hed_object_put(&t->at[i]->object);
    t->count = 0;
}

void
hed_tips_free(struct hed_tips *t)
{
    hed_tips_clear(t);
    free(t->at);
    free(t->handles);
    *t = (struct hed_tips){0};
}

static bool
tips_merge(struct hed_tips *to, const struct hed_tips *from)
{
    for (size_t i = 0; i < from->count; i++)
        if (from->at[i]->graph && !hed_tips_add(to, from->at[i]))
            return false;
    return true;
}

/* The tips as handles; valid until the next call on the stream. */
CUgraphNode *
hed_tips_handles(struct hed_tips *t)
{
    CUgraphNode *h = realloc(t->handles, (t->count + 1) * sizeof *h);

    if (!h)
        return NULL;
    for (size_t i = 0; i < t->count; i++)
        h[i] = (CUgraphNode)(uintptr_t)t->at[i]->object.handle;
    t->handles = h;
    return h;
}

/* ---- captures -------------------------------------------------------------------------------- */

void
hed_capture_unref_locked(struct hed_capture *c)
{
    if (--c->refs > 0)
        return;
    if (c->graph)
        hed_object_put(&c->graph->object);
    hed_tips_free(&c->left);
    free(c);
}

struct hed_joined *
hed_capture_joined_locked(struct hed_capture *c, const struct hed_stream *s)
{
    struct hed_joined *j = c->streams;

    while (j && j->stream != s)
        j = j->next;
    return j;
}

struct hed_capture *
hed_capture_of(struct hed_stream *s)
{
    /* Relaxed: the caller holds the lock, or looks again under it. */
    return atomic_load_explicit(&s->capture, memory_order_relaxed);
}

CUresult
hed_capture_join_locked(struct hed_capture *c, struct hed_stream *s, struct hed_joined **out)
{
    struct hed_joined *j = calloc(1, sizeof *j);

    if (!j)
        return CUDA_ERROR_OUT_OF_MEMORY;
    /* The capture needs a reference of its own: the caller's ends with the call. */
    atomic_fetch_add_explicit(&s->object.refs, 1, memory_order_relaxed);
    j->stream = s;
    j->next = c->streams;
    c->streams = j;
    c->refs++;
    /* Release: pairs with the acquire in hed_submit(), which takes the lock if it finds a
     * capture. */
    atomic_store_explicit(&s->capture, c, memory_order_release);
    *out = j;
    return CUDA_SUCCESS;
}

/* All streams leave and the capture is no longer active. Returns the streams, which the caller puts
 * back after it has released the lock. */
struct hed_joined *
hed_capture_leave_locked(struct hed_capture *c)
{
    struct hed_joined *all = c->streams;
    struct hed_capture **at = &hed_captures;

    for (struct hed_joined *j = all; j; j = j->next) {
        atomic_store_explicit(&j->stream->capture, NULL, memory_order_release);
        c->refs--;
    }
    c->streams = NULL;
    hed_tips_free(&c->left);
    while (*at && *at != c)
        at = &(*at)->next;
    if (*at) {
        *at = c->next;
        /* Relaxed: only a hint that tells others to look under the lock. */
        atomic_fetch_sub_explicit(&hed_captures_active, 1, memory_order_relaxed);
    }
    return all;
}

void
hed_capture_put_streams(struct hed_joined *all)
{
    while (all) {
        struct hed_joined *j = all;

        all = j->next;
        hed_tips_free(&j->tips);
        hed_object_put(&j->stream->object);
        free(j);
    }
}

/* ---- questions of hed_submit() and of events ------------------------------------------------- */

static const CUgraphNodeType node_types[HED_WORK_COUNT] = {
    [HED_WORK_NONE] = CU_GRAPH_NODE_TYPE_EMPTY,
    [HED_WORK_KERNEL] = CU_GRAPH_NODE_TYPE_KERNEL,
    [HED_WORK_COPY] = CU_GRAPH_NODE_TYPE_MEMCPY,
    [HED_WORK_FILL] = CU_GRAPH_NODE_TYPE_MEMSET,
    [HED_WORK_HOST] = CU_GRAPH_NODE_TYPE_HOST,
    [HED_WORK_EVENT_RECORD] = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
    [HED_WORK_EVENT_WAIT] = CU_GRAPH_NODE_TYPE_WAIT_EVENT,
    [HED_WORK_ALLOC] = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
    [HED_WORK_FREE] = CU_GRAPH_NODE_TYPE_MEM_FREE,
    [HED_WORK_MEMOP] = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
    [HED_WORK_GRAPH] = CU_GRAPH_NODE_TYPE_GRAPH,
};

/* The memory of a captured allocation lives as long as its graph, however often the graph runs.
 * Freeing it inside the graph only means that it is no longer used. */
static CUresult
own_memory(struct hed_graph *g, struct hed_node *n)
{
    struct hed_work *w = n->work;

    if (n->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
        struct hed_graph_memory *m = calloc(1, sizeof *m);

        if (!m)
            return CUDA_ERROR_OUT_OF_MEMORY;
        atomic_init(&m->refs, 1);
        m->driver = g->driver;
        m->at = w->memory.at;
        m->size = w->memory.size;
        m->given.bytesize = w->memory.size;
        m->given.dptr = w->memory.at;
        n->memory = m;
    } else {
        const struct hed_node *a = g->first;

        n->freed = w->memory.at;
        while (a && !(a->memory && a->memory->at == n->freed))
            a = a->next;
        if (!a)
            return CUDA_SUCCESS; /* memory from outside the graph: freed when the graph runs */
    }
    n->work = NULL;
    hed_work_free(w);
    return CUDA_SUCCESS;
}

static CUresult
capture_add_locked(struct hed_capture *c, struct hed_joined *j, struct hed_work *w)
{
    struct hed_node *n;
    const CUgraphNodeType type = node_types[w->kind];
    CUgraphNode *deps = hed_tips_handles(&j->tips);

    if (!deps) {
        hed_work_free(w);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }

    CUresult r = hed_graph_add(c->graph, type, w, deps, NULL, j->tips.count, &n);

    if (r != CUDA_SUCCESS)
        return r;
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        r = own_memory(c->graph, n);
    hed_tips_clear(&j->tips);
    return r == CUDA_SUCCESS && !hed_tips_add(&j->tips, n) ? CUDA_ERROR_OUT_OF_MEMORY : r;
}

CUresult
hed_capture_add(struct hed_stream *s, struct hed_work *w)
{
    hed_lock(&hed_captures_lock);

    struct hed_capture *c = hed_capture_of(s);
    struct hed_joined *j = c ? hed_capture_joined_locked(c, s) : NULL;
    CUresult r;

    if (!j) {
        r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED; /* the capture ended while this thread waited
                                                    * for the lock */
    } else if (c->invalidated || w->kind == HED_WORK_CALLBACK) {
        r = c->invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                           : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        c->invalidated = true;
    } else {
        r = capture_add_locked(c, j, w);
        w = NULL;
        if (r != CUDA_SUCCESS)
            c->invalidated = true;
    }
    hed_unlock(&hed_captures_lock);
    if (w)
        hed_work_free(w);
    return r;
}

static void
forget_locked(struct hed_event *e)
{
    struct hed_tips *t = e->capture_node;

    if (t) {
        hed_tips_free(t);
        free(t);
    }
    if (e->capture)
        hed_capture_unref_locked(e->capture);
    e->capture = NULL;
    e->capture_node = NULL;
}

void
hed_capture_forget(struct hed_event *e)
{
    hed_lock(&hed_captures_lock);
    forget_locked(e);
    hed_unlock(&hed_captures_lock);
}

CUresult
hed_capture_record(struct hed_stream *s, struct hed_event *e)
{
    CUresult r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;

    hed_lock(&hed_captures_lock);

    struct hed_capture *c = hed_capture_of(s);
    struct hed_joined *j = c ? hed_capture_joined_locked(c, s) : NULL;

    if (j && !c->invalidated) {
        struct hed_tips *t = calloc(1, sizeof *t);

        forget_locked(e);
        r = t && tips_merge(t, &j->tips) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
        if (r == CUDA_SUCCESS) {
            e->capture = c;
            e->capture_node = t;
            c->refs++;
        } else if (t) {
            hed_tips_free(t);
            free(t);
        }
    }
    hed_unlock(&hed_captures_lock);
    return r;
}

CUresult
hed_capture_wait(struct hed_stream *s, struct hed_event *e)
{
    CUresult r = CUDA_SUCCESS;

    hed_lock(&hed_captures_lock);

    struct hed_capture *mine = hed_capture_of(s);
    struct hed_capture *c = e->capture;
    struct hed_joined *j = NULL;

    if (!c) {
        /* A capture cannot depend on events outside it. */
        r = mine ? CUDA_ERROR_STREAM_CAPTURE_ISOLATION : CUDA_SUCCESS;
        if (mine)
            mine->invalidated = true;
    } else if (c->invalidated || !c->streams) {
        r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else if (mine && mine != c) {
        r = CUDA_ERROR_STREAM_CAPTURE_MERGE;
        mine->invalidated = c->invalidated = true;
    } else if (s->is_legacy) {
        r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        c->invalidated = true;
    } else {
        if (mine)
            j = hed_capture_joined_locked(c, s);
        else
            r = hed_capture_join_locked(c, s, &j);
        if (r == CUDA_SUCCESS && !(j && tips_merge(&j->tips, e->capture_node)))
            r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    hed_unlock(&hed_captures_lock);
    return r;
}

CUresult
hed_capture_broken(struct hed_stream *s)
{
    hed_lock(&hed_captures_lock);

    struct hed_capture *c = hed_capture_of(s);

    if (c)
        c->invalidated = true;
    hed_unlock(&hed_captures_lock);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* Calls that this thread's mode forbids: "cudaStreamCaptureModeGlobal: if the local thread has an
 * ongoing capture sequence that was not initiated with cudaStreamCaptureModeRelaxed at
 * cuStreamBeginCapture, or if any other thread has a concurrent capture sequence initiated with
 * cudaStreamCaptureModeGlobal, this thread is prohibited from potentially unsafe API calls." (CUDA
 * Driver API, cuThreadExchangeStreamCaptureMode) */
CUresult
hed_capture_unsafe(struct hed_layer *self)
{
    bool forbidden = false;

    /* Relaxed: a capture that another thread begins at this moment does not come before this
     * call. */
    if (atomic_load_explicit(&hed_captures_active, memory_order_relaxed) == 0 ||
        hed_capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    hed_lock(&hed_captures_lock);
    for (struct hed_capture *c = hed_captures; c; c = c->next) {
        const bool mine = pthread_equal(c->thread, pthread_self());
        const bool hits = mine ? c->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                               : hed_capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                                     c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;

        if (hits) {
            c->invalidated = true;
            forbidden = true;
        }
    }
    hed_unlock(&hed_captures_lock);
    return forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

/* Does a blocking stream of the context capture? */
static bool
find_blocking(const struct hed_context *ctx, bool invalidate)
{
    bool forbidden = false;

    /* Relaxed: as above. */
    if (atomic_load_explicit(&hed_captures_active, memory_order_relaxed) == 0)
        return false;
    hed_lock(&hed_captures_lock);
    for (struct hed_capture *c = hed_captures; c; c = c->next)
        for (struct hed_joined *j = c->streams; j; j = j->next)
            if (j->stream->ctx == ctx && j->stream->blocking) {
                c->invalidated = c->invalidated || invalidate;
                forbidden = true;
            }
    hed_unlock(&hed_captures_lock);
    return forbidden;
}

CUresult
hed_capture_implicit(struct hed_context *ctx)
{
    return find_blocking(ctx, true) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

CUresult
hed_capture_would_be_implicit(struct hed_context *ctx)
{
    return find_blocking(ctx, false) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

void
hed_capture_stream_destroyed(struct hed_stream *s)
{
    struct hed_joined *gone = NULL;

    hed_lock(&hed_captures_lock);

    struct hed_capture *c = hed_capture_of(s);
    struct hed_joined **at = c ? &c->streams : NULL;

    while (at && *at && (*at)->stream != s)
        at = &(*at)->next;
    if (at && *at && c->origin != s) {
        gone = *at;
        *at = gone->next;
        gone->next = NULL;
        if (!tips_merge(&c->left, &gone->tips))
            c->invalidated = true;
        atomic_store_explicit(&s->capture, NULL, memory_order_release);
        hed_capture_unref_locked(c);
    }
    hed_unlock(&hed_captures_lock);
    if (gone)
        hed_capture_put_streams(gone);
    else
        hed_capture_stream_gone(s);
}

void
hed_capture_event_asked(struct hed_event *e)
{
    hed_lock(&hed_captures_lock);

    struct hed_capture *c = atomic_load_explicit(&e->capture, memory_order_relaxed);

    if (c)
        c->invalidated = true;
    hed_unlock(&hed_captures_lock);
}

void
hed_capture_stream_gone(struct hed_stream *s)
{
    struct hed_joined *all = NULL;
    struct hed_graph *graph = NULL;

    if (!hed_capture_of(s))
        return;
    hed_lock(&hed_captures_lock);

    struct hed_capture *c = hed_capture_of(s);

    if (c) {
        c->refs++;
        all = hed_capture_leave_locked(c);
        graph = c->owns_graph ? c->graph : NULL;
        if (graph)
            c->graph = NULL;
        c->invalidated = true;
        hed_capture_unref_locked(c);
    }
    hed_unlock(&hed_captures_lock);
    hed_capture_put_streams(all);
    if (graph) {
        hed_graph_destroy(graph);
        hed_object_put(&graph->object);
    }
}
