/* Executable graphs at the standby, before the program is held: making one takes as long as
 * hundreds of launches, and the first launch at the new worker would wait for it. See early.h.
 *
 * Only graphs that the program's worker has as a mirror are told, and only if their nodes name
 * nothing but functions, and memory that the standby has already. All others are made with their
 * next launch: to a driver, memory that it does not know is memory of its process.
 *
 * Invariant: a mirror is kept only if both workers have this version, so it does not matter where
 * the program goes on.
 */
#include <stdlib.h>

#include "driver/driver.h"
#include "move/session/early.h"
#include "move/session/standby.h"
#include "remote/client.h"

struct hed_remote_early_graph {
    struct hed_remote_early_graph *next;
    uint64_t name, version;
    bool refused; /* the standby does not have it */
};

static struct hed_remote_early_graph *
find_early_graph(const struct hed_remote_standby *t, uint64_t name)
{
    struct hed_remote_early_graph *g = t->graphs;

    while (g && g->name != name)
        g = g->next;
    return g;
}

/* A graph that is looked at, and what the standby has. */
struct early_look {
    struct hed_remote_standby *standby;
    struct hed_remote_mappings device, host;
    struct hed_context *ctx; /* in which it can be made; NULL: in none */
};

static bool
is_in_mappings(const struct hed_remote_mappings *l, uint64_t at)
{
    for (size_t i = 0; i < l->count; i++)
        if (at - l->all[i].at < l->all[i].size)
            return true;
    return false;
}

/* An allocation lies within one mapping, so its first byte will do. */
static bool
has_early_memory(const struct early_look *k, uint64_t at)
{
    return is_in_mappings(&k->device, at) || is_in_mappings(&k->host, at);
}

static bool
has_early_side(const struct early_look *k, const struct hed_copy_side *s)
{
    return !s->array && has_early_memory(k, s->at);
}

static bool
can_tell_early_work(const struct early_look *k, const struct hed_work *w)
{
    struct hed_remote *standby = &k->standby->remote;

    if (!hed_remote_standby_has(standby, w->ctx))
        return false;
    switch (w->kind) {
    case HED_WORK_NONE:
        return true;
    case HED_WORK_FILL:
        return has_early_memory(k, w->fill.to);
    case HED_WORK_COPY:
        return has_early_side(k, &w->copy.from) && has_early_side(k, &w->copy.to);
    case HED_WORK_KERNEL:
        return hed_remote_early_function(standby, w->kernel.function) != NULL;
    default:
        return false;
    }
}

static bool
can_tell_early_graph(struct early_look *k, const struct hed_graph_exec *g)
{
    bool can = g->root == 0;

    for (size_t i = 0; i < g->count && can; i++) {
        const struct hed_exec_node *n = &g->nodes[i];

        if (n->condition.count)
            can = false;
        else if (n->child)
            can = can_tell_early_graph(k, n->child);
        else if (n->work)
            can = can_tell_early_work(k, n->work);
        if (n->work && can)
            k->ctx = n->work->ctx;
    }
    return can;
}

/* A context in which the standby can make it now; NULL: it cannot. */
static struct hed_context *
early_context(struct hed_remote_standby *t, const struct hed_graph_exec *body)
{
    struct early_look k = {.standby = t};
    const bool can = hed_remote_mappings_list(&t->remote, HED_MAP_DEVICE, &k.device) == 0 &&
                     hed_remote_mappings_list(&t->remote, HED_MAP_HOST, &k.host) == 0 &&
                     can_tell_early_graph(&k, body);

    free(k.device.all);
    free(k.host.all);
    return can ? k.ctx : NULL;
}

static void
tell_early_graph(struct hed_remote_standby *t, struct hed_exec *e, struct hed_graph_exec *body,
                 uint64_t version)
{
    struct hed_remote_early_graph *g = find_early_graph(t, e->object.handle);
    struct hed_context *ctx = early_context(t, body);

    if (!ctx)
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
hed_remote_early_graph(struct hed_remote_standby *t, struct hed_exec *e)
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
hed_remote_early_drop_graphs(struct hed_remote_standby *t)
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
hed_remote_graph_again(struct hed_remote *r, struct hed_remote *standby, struct hed_exec *e)
{
    const struct hed_remote_standby *t = (const struct hed_remote_standby *)standby;
    const struct hed_remote_early_graph *g = t ? find_early_graph(t, e->object.handle) : NULL;
    struct hed_remote_exec *x = e->own;

    if (g && !g->refused && g->version == e->version && x->mirrored == e->version)
        return;
    if (g && !g->refused)
        hed_remote_drop_exec(r, e->object.handle);
    x->mirrored = 0;
}

void
hed_remote_early_forget_graphs(struct hed_remote_standby *t)
{
    while (t->graphs) {
        struct hed_remote_early_graph *g = t->graphs;

        t->graphs = g->next;
        free(g);
    }
}
