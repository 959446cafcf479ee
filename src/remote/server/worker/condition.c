/* Graphs that are kept for their conditional handles, and conditional nodes. See graph.h.
 *
 * A handle of the driver belongs to a graph of the driver. The client gets the handle before it
 * describes the graph, because kernels get it as a parameter. So the worker keeps a graph of that
 * name from its first handle until the client forgets it, and lends it to the draft when the client
 * describes it.
 *
 * Invariants:
 * 1. All of this is done by the thread that holds the current ticket.
 * 2. A kept graph is lent to one draft at a time.
 * 3. The driver only gets handles that it has created for the draft's own graph.
 */
#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "remote/server/worker/graph.h"
#include "remote/server/worker/worker.h"

#define KEPT_MAX 4096u     /* per client */
#define HANDLES_MAX 4096u  /* per graph */
#define BRANCHES_MAX 4096u /* per node */

struct hed_kept_graph {
    struct hed_kept_graph *next;
    uint64_t name;
    CUgraph graph;
    bool lent;
    CUgraphNode *nodes; /* from the last draft; owned */
    uint32_t count;
    uint32_t handle_count;
    uint64_t handles[];
};

static struct hed_kept_graph **
find_kept_graph(struct hed_worker *w, uint64_t name)
{
    struct hed_kept_graph **at = &w->kept_graphs;

    while (*at && (*at)->name != name)
        at = &(*at)->next;
    return at;
}

static struct hed_kept_graph *
keep_graph(struct hed_worker *w, uint64_t name, CUresult *r)
{
    struct hed_kept_graph *k;
    unsigned count = 0;

    for (k = w->kept_graphs; k; k = k->next)
        count++;
    k = count < KEPT_MAX ? calloc(1, sizeof *k + HANDLES_MAX * sizeof k->handles[0]) : NULL;
    *r = CUDA_ERROR_OUT_OF_MEMORY;
    if (!k)
        return NULL;
    *r = hed_worker_do(w, cuGraphCreate, .phGraph = &k->graph);
    if (*r != CUDA_SUCCESS) {
        free(k);
        return NULL;
    }
    k->name = name;
    k->next = w->kept_graphs;
    w->kept_graphs = k;
    return k;
}

/* Removes the graph at a link of the list. */
static void
drop_kept_graph(struct hed_worker *w, struct hed_kept_graph **at)
{
    struct hed_kept_graph *k = *at;

    *at = k->next;
    (void)hed_worker_do(w, cuGraphDestroy, .hGraph = k->graph);
    free(k->nodes);
    free(k);
}

static CUresult
make_condition_handle(struct hed_worker *w, const struct hed_graph_body *b, uint64_t *out)
{
    const struct hed_graph_condition *c = (const struct hed_graph_condition *)(const void *)(b + 1);
    CUgraphConditionalHandle handle = 0;
    CUresult r = CUDA_SUCCESS;
    struct hed_kept_graph *k = *find_kept_graph(w, b->exec);

    if (!k)
        k = keep_graph(w, b->exec, &r);
    if (!k)
        return r;
    if (k->handle_count == HANDLES_MAX)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r = hed_worker_do(w, cuGraphConditionalHandleCreate, .pHandle_out = &handle, .hGraph = k->graph,
                      .ctx = hed_worker_current(w), .defaultLaunchValue = c->value,
                      .flags = c->flags);
    if (r == CUDA_SUCCESS)
        *out = k->handles[k->handle_count++] = handle;
    else if (k->handle_count == 0) /* without a handle, the client never forgets it */
        drop_kept_graph(w, find_kept_graph(w, b->exec));
    return r;
}

int
hed_worker_condition(struct hed_worker_channel *ch, const struct hed_graph_body *b)
{
    struct hed_graph_condition_answer a = {.handle = 0};
    CUresult r = CUDA_ERROR_INVALID_HANDLE;

    if (!(b->head.flags & HED_MSG_WANTS_ANSWER) ||
        b->head.size < sizeof *b + sizeof(struct hed_graph_condition) || !b->exec)
        return HED_EFORMAT;
    if (hed_name_fits(b->exec, "graph"))
        r = make_condition_handle(ch->worker, b, &a.handle);
    return hed_worker_answer_with(ch, &b->head, (int)r, &a, sizeof a, 0);
}

int
hed_worker_forget_graph(struct hed_worker_channel *ch, const struct hed_graph_body *b)
{
    struct hed_kept_graph **at = find_kept_graph(ch->worker, b->exec);
    const struct hed_kept_graph *k = *at;

    if (!k)
        return 0;
    if (k->lent)
        return HED_EFORMAT;
    drop_kept_graph(ch->worker, at);
    return 0;
}

CUresult
hed_kept_graph_lend(struct hed_worker *w, uint64_t name, struct hed_draft *to)
{
    struct hed_kept_graph *k = *find_kept_graph(w, name);
    CUresult r = CUDA_SUCCESS;

    if (!k || k->lent)
        return CUDA_ERROR_INVALID_HANDLE;
    /* The client described it before and does so again: it is instantiated twice, or was
     * changed. */
    while (k->count > 0 && r == CUDA_SUCCESS) {
        const CUgraphNode node = k->nodes[--k->count];

        if (node)
            r = hed_worker_do(w, cuGraphDestroyNode, .hNode = node);
    }
    k->lent = true;
    to->kept = k;
    to->graph = k->graph;
    to->borrowed = true;
    return r;
}

void
hed_kept_graph_return(struct hed_draft *from)
{
    struct hed_kept_graph *k = from->kept;

    free(k->nodes);
    k->nodes = from->nodes;
    k->count = from->count;
    k->lent = false;
    from->nodes = NULL;
}

/* ---- conditional nodes ----------------------------------------------------------------------- */

/* Was the handle created for the graph that the drafts describe? */
static bool
is_own_handle(const struct hed_draft *d, uint64_t handle)
{
    while (d->outer)
        d = d->outer;
    for (uint32_t i = 0; d->kept && i < d->kept->handle_count; i++)
        if (d->kept->handles[i] == handle)
            return true;
    return false;
}

int
hed_worker_add_choice(struct hed_worker *w, const struct hed_node_position *p, CUgraphNode *out,
                      CUresult *r)
{
    const struct hed_graph_choice *c = p->own;
    struct hed_draft *d = p->draft;

    if (p->size < sizeof *c || c->branches == 0 || c->branches > BRANCHES_MAX ||
        c->type > CU_GRAPH_COND_TYPE_SWITCH || !is_own_handle(d, c->handle))
        return HED_EFORMAT;

    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
                                .conditional = {.handle = c->handle,
                                                .type = (CUgraphConditionalNodeType)c->type,
                                                .size = c->branches,
                                                .ctx = hed_worker_current(w)}};

    *r =
        hed_worker_do(w, cuGraphAddNode_v2, .phGraphNode = out, .hGraph = d->graph,
                      .dependencies = p->after, .numDependencies = p->count, .nodeParams = &params);
    d->branches = *r == CUDA_SUCCESS ? params.conditional.phGraph_out : NULL;
    d->branch_count = c->branches;
    if (*r == CUDA_SUCCESS && !d->branches && !w->no_memory)
        *r = CUDA_ERROR_UNKNOWN; /* the driver does not tell the branches */
    return 0;
}
