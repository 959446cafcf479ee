/* Executable graphs at the twin, before the program is held: making one takes as long as hundreds
 * of launches, and the first launch at the new worker would wait for it. See early.h.
 *
 * Only graphs that the program's worker has as a mirror are told, and only if their nodes name
 * nothing but functions and memory. All others are made with their next launch.
 *
 * Invariant: a mirror is kept only if both workers have this version, so it does not matter where
 * the program goes on.
 */
#include <stdlib.h>

#include "backends/remote/queue.h"
#include "backends/remote/snap/early.h"
#include "backends/remote/snap/twin.h"
#include "driver/graph/graph.h"
#include "driver/graph/node.h"
#include "driver/module/module.h"

struct hed_remote_early_graph {
    struct hed_remote_early_graph *next;
    uint64_t name, version;
    bool refused; /* the twin does not have it */
};

static struct hed_remote_early_graph *
find_early_graph(const struct hed_remote_twin *t, uint64_t name)
{
    struct hed_remote_early_graph *g = t->graphs;

    while (g && g->name != name)
        g = g->next;
    return g;
}

static bool
can_tell_early_work(struct hed_remote_twin *t, const struct hed_work *w)
{
    if (!hed_remote_twin_has(&t->remote, w->ctx))
        return false;
    switch (w->kind) {
    case HED_WORK_NONE:
    case HED_WORK_FILL:
        return true;
    case HED_WORK_COPY:
        return !w->copy.from.array && !w->copy.to.array;
    case HED_WORK_KERNEL:
        return hed_remote_early_function(&t->remote, w->kernel.function) != NULL;
    default:
        return false;
    }
}

/* *ctx is a context in which it can be made. */
static bool
can_tell_early_graph(struct hed_remote_twin *t, const struct hed_graph_exec *g,
                     struct hed_context **ctx)
{
    bool can = g->root == 0;

    for (size_t i = 0; i < g->count && can; i++) {
        const struct hed_exec_node *n = &g->nodes[i];

        if (n->condition.count)
            can = false;
        else if (n->child)
            can = can_tell_early_graph(t, n->child, ctx);
        else if (n->work)
            can = can_tell_early_work(t, n->work);
        if (n->work && can)
            *ctx = n->work->ctx;
    }
    return can;
}

static void
tell_early_graph(struct hed_remote_twin *t, struct hed_exec *e, struct hed_graph_exec *body,
                 uint64_t version)
{
    struct hed_remote_early_graph *g = find_early_graph(t, e->object.handle);
    struct hed_context *ctx = NULL;

    if (!can_tell_early_graph(t, body, &ctx) || !ctx)
        return;
    if (!g) {
        g = calloc(1, sizeof *g);
        if (!g)
            return;
        g->name = e->object.handle;
        g->next = t->graphs;
        t->graphs = g;
    }
    g->version = version;
    g->refused = hed_remote_mirror_exec(&t->remote, ctx, e, body, true) != CUDA_SUCCESS;
}

void
hed_remote_early_graph(struct hed_remote_twin *t, struct hed_exec *e)
{
    const struct hed_remote_early_graph *known = find_early_graph(t, e->object.handle);
    struct hed_graph_exec *body = NULL;
    uint64_t version;

    hed_lock(&e->lock);
    version = e->version;
    if (((const struct hed_remote_exec *)e->own)->mirrored == version &&
        (!known || known->version != version)) {
        body = e->body; /* it stays as it is while there is a second reference */
        hed_graph_exec_ref(body);
    }
    hed_unlock(&e->lock);
    if (!body)
        return;
    tell_early_graph(t, e, body, version);
    hed_graph_exec_unref(body);
}

void
hed_remote_early_drop_graphs(struct hed_remote_twin *t)
{
    for (const struct hed_remote_early_graph *g = t->graphs; g; g = g->next) {
        struct hed_object *o =
            hed_handles_get(t->of->driver->handles, HED_KIND_GRAPH_EXEC, g->name);

        if (!o && !g->refused)
            hed_remote_drop_exec(&t->remote, g->name);
        if (o)
            hed_object_put(o);
    }
}

void
hed_remote_graph_again(struct hed_remote *r, struct hed_remote *twin, struct hed_exec *e)
{
    const struct hed_remote_twin *t = (const struct hed_remote_twin *)twin;
    const struct hed_remote_early_graph *g = t ? find_early_graph(t, e->object.handle) : NULL;
    struct hed_remote_exec *x = e->own;

    if (g && !g->refused && g->version == e->version && x->mirrored == e->version)
        return;
    if (g && !g->refused)
        hed_remote_drop_exec(r, e->object.handle);
    x->mirrored = 0;
}

void
hed_remote_early_forget_graphs(struct hed_remote_twin *t)
{
    while (t->graphs) {
        struct hed_remote_early_graph *g = t->graphs;

        t->graphs = g->next;
        free(g);
    }
}
