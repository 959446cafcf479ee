/* HED_MSG_GRAPH: executable graphs, which the client describes node by node. See wire.h.
 *
 *   begin ──> a draft ──node──node──> make: instantiated or updated under the client's name
 *               ├── begin ──> an inner draft ──node──> child: a node of the outer draft
 *               └── branch ──> a draft of the last node's graph ──node──> end
 *
 * Each channel has its own drafts. The outermost draft remembers the backend's first failure. What
 * follows it is counted but not done, and the end reports the failure.
 *
 * Invariant: a draft's nodes are the backend's handles in the client's order; positions from the
 * client are less than their number.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "remote/server/worker/graph.h"
#include "remote/server/worker/worker.h"

#define DEPTH_MAX 16
#define NODES_MAX (1u << 20) /* of one graph */

struct hed_drafts {
    struct hed_draft *top;
    unsigned depth;
    CUresult failed; /* the first failure since the outermost draft began */
};

static void
drop_draft(struct hed_worker *w, struct hed_drafts *d)
{
    struct hed_draft *t = d->top;

    d->top = t->outer;
    d->depth--;
    if (t->kept)
        hed_kept_graph_return(t);
    if (t->graph && !t->borrowed)
        (void)hed_worker_do(w, cuGraphDestroy, .hGraph = t->graph);
    free(t->nodes);
    free(t);
}

bool
hed_worker_has_draft(const struct hed_worker_channel *ch)
{
    return ch->drafts && ch->drafts->top;
}

/* Adds a draft on top of the others. */
static int
push_draft(struct hed_worker_channel *ch)
{
    struct hed_drafts *d = ch->drafts;

    if (!d && !(d = ch->drafts = calloc(1, sizeof *d)))
        return HED_ENOMEM;
    if (d->depth == DEPTH_MAX)
        return HED_EFORMAT;

    struct hed_draft *t = calloc(1, sizeof *t);

    if (!t)
        return HED_ENOMEM;
    if (!d->top)
        d->failed = CUDA_SUCCESS;
    t->outer = d->top;
    d->top = t;
    d->depth++;
    return 0;
}

static int
begin_draft(struct hed_worker_channel *ch, const struct hed_graph_body *b)
{
    const int err = push_draft(ch);
    struct hed_drafts *d = ch->drafts;

    if (err)
        return err;
    if (b->exec && d->depth > 1) /* only the outermost graph is kept */
        return HED_EFORMAT;
    if (d->failed == CUDA_SUCCESS)
        d->failed = b->exec ? hed_kept_graph_lend(ch->worker, b->exec, d->top)
                            : hed_worker_do(ch->worker, cuGraphCreate, .phGraph = &d->top->graph);
    return 0;
}

/* Begins a graph of the conditional node that was described last. */
static int
begin_branch(struct hed_worker_channel *ch, const struct hed_graph_body *b)
{
    struct hed_drafts *d = ch->drafts;
    const struct hed_draft *of = d ? d->top : NULL;
    int err = of && b->flags < of->branch_count ? push_draft(ch) : HED_EFORMAT;

    if (err)
        return err;
    d->top->borrowed = true;
    d->top->graph = of->branches ? of->branches[b->flags] : NULL;
    return 0;
}

static int
end_branch(struct hed_worker_channel *ch)
{
    struct hed_drafts *d = ch->drafts;

    if (!d || d->depth < 2 || !d->top->borrowed)
        return HED_EFORMAT;
    drop_draft(ch->worker, d);
    return 0;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool
make_room_for_node(struct hed_draft *t)
{
    if (t->count < t->room)
        return true;

    const uint32_t room = t->room ? 2 * t->room : 64;
    CUgraphNode *nodes = room <= NODES_MAX ? realloc(t->nodes, room * sizeof(CUgraphNode)) : NULL;

    if (!nodes)
        return false;
    t->nodes = nodes;
    t->room = room;
    return true;
}

/* Reads what follows the body: the positions of earlier nodes of the draft, then the node's own
 * part. */
static int
read_position(struct hed_worker_channel *ch, const struct hed_graph_body *b, struct hed_draft *t,
              struct hed_node_position *p)
{
    const uint32_t rest = b->head.size - (uint32_t)sizeof *b;
    const uint32_t *positions = (const uint32_t *)(const void *)(b + 1);

    if (b->after > rest / sizeof *positions)
        return HED_EFORMAT;

    const uint32_t own = (b->after * (uint32_t)sizeof *positions + 7) / 8 * 8;

    if (own > rest || b->size > rest - own)
        return HED_EFORMAT;
    p->draft = t;
    p->count = b->after;
    p->own = (const char *)(b + 1) + own;
    p->size = b->size;
    p->after = hed_arena_alloc(&ch->arena, (b->after + 1) * sizeof *p->after, 16);
    if (!p->after)
        return HED_ENOMEM;
    for (uint32_t i = 0; i < b->after; i++) {
        if (positions[i] >= t->count)
            return HED_EFORMAT;
        p->after[i] = t->nodes[positions[i]];
    }
    return make_room_for_node(t) ? 0 : HED_ELIMIT;
}

/* The client describes the branches even of a node that was not added. */
static int
expect_branches(struct hed_draft *t, const struct hed_node_position *p)
{
    const struct hed_graph_choice *c = p->own;

    if (p->size < sizeof *c)
        return HED_EFORMAT;
    t->branches = NULL;
    t->branch_count = c->branches;
    return 0;
}

static int
add_node(struct hed_worker_channel *ch, const struct hed_graph_body *b)
{
    struct hed_drafts *d = ch->drafts;
    CUgraphNode made = NULL;
    struct hed_node_position p;
    int err = d && d->top ? read_position(ch, b, d->top, &p) : HED_EFORMAT;

    if (!err && d->failed == CUDA_SUCCESS)
        err = hed_worker_add_node(ch, b->type, &p, &made, &d->failed);
    if (!err)
        d->top->nodes[d->top->count++] = made;
    if (!err && b->type == CU_GRAPH_NODE_TYPE_CONDITIONAL && d->failed != CUDA_SUCCESS)
        err = expect_branches(d->top, &p);
    return err;
}

/* Adds the top draft as a node to the draft outside it. */
static int
end_child(struct hed_worker_channel *ch, const struct hed_graph_body *b)
{
    struct hed_drafts *d = ch->drafts;
    CUgraphNode made = NULL;
    struct hed_node_position p;
    int err = d && d->depth > 1 && !d->top->borrowed ? read_position(ch, b, d->top->outer, &p)
                                                     : HED_EFORMAT;

    if (err)
        return err;
    if (d->failed == CUDA_SUCCESS)
        d->failed = hed_worker_do(ch->worker, cuGraphAddChildGraphNode, .phGraphNode = &made,
                                  .hGraph = p.draft->graph, .dependencies = p.after,
                                  .numDependencies = p.count, .childGraph = d->top->graph);
    drop_draft(ch->worker, d);
    d->top->nodes[d->top->count++] = made;
    return 0;
}

/* Updates the executable graph of that name with the draft. If that is not possible, a new one
 * takes its name. */
static CUresult
instantiate_draft(struct hed_worker *w, CUgraph graph, const struct hed_graph_body *b)
{
    uint64_t real = 0;
    CUgraphExec made = NULL;
    const bool has =
        hed_name_fits(b->exec, "graphExec") && hed_name_real(w->names, b->exec, &real) == 0 && real;
    CUgraphExec old = (CUgraphExec)(uintptr_t)real;
    CUgraphExecUpdateResultInfo_v1 info = {0};

    if (has && hed_worker_do(w, cuGraphExecUpdate_v2, .hGraphExec = old, .hGraph = graph,
                             .resultInfo = &info) == CUDA_SUCCESS)
        return CUDA_SUCCESS;

    const CUresult r = hed_worker_do(w, cuGraphInstantiateWithFlags, .phGraphExec = &made,
                                     .hGraph = graph, .flags = b->flags);

    if (r != CUDA_SUCCESS)
        return r;
    if (has) {
        (void)hed_name_unbind(w->names, b->exec, NULL);
        (void)hed_worker_do(w, cuGraphExecDestroy, .hGraphExec = old);
    }
    if (hed_name_fits(b->exec, "graphExec") &&
        hed_name_bind(w->names, b->exec, (uint64_t)(uintptr_t)made) == 0)
        return CUDA_SUCCESS;
    hed_warn(SERVER, "the client's name of an executable graph cannot be used");
    (void)hed_worker_do(w, cuGraphExecDestroy, .hGraphExec = made);
    return CUDA_ERROR_INVALID_HANDLE;
}

static int
make_exec(struct hed_worker_channel *ch, const struct hed_graph_body *b)
{
    struct hed_drafts *d = ch->drafts;

    if (!d || d->depth != 1)
        return HED_EFORMAT;
    if (d->failed == CUDA_SUCCESS)
        d->failed = instantiate_draft(ch->worker, d->top->graph, b);
    drop_draft(ch->worker, d);
    if (b->head.flags & HED_MSG_WANTS_ANSWER)
        return hed_worker_answer(ch, &b->head, (int)d->failed, NULL, 0);
    hed_worker_failed(ch->worker, b->head.context, d->failed);
    return 0;
}

/* "If the executable graph is in-flight, it will not be terminated, but rather freed asynchronously
 * on completion." (CUDA Driver API, cuGraphExecDestroy) Its context may be gone already. */
static int
drop_exec(struct hed_worker_channel *ch, const struct hed_graph_body *b)
{
    uint64_t real;

    if (!hed_name_fits(b->exec, "graphExec") ||
        hed_name_unbind(ch->worker->names, b->exec, &real) != 0)
        return 0;

    const CUresult r =
        hed_worker_do(ch->worker, cuGraphExecDestroy, .hGraphExec = (CUgraphExec)(uintptr_t)real);

    if (r != CUDA_SUCCESS)
        hed_debug(SERVER, "destroying an executable graph answered %d", (int)r);
    return 0;
}

int
hed_do_graph(struct hed_worker_channel *ch, struct hed_msg *m)
{
    const struct hed_graph_body *b = (const struct hed_graph_body *)m;

    switch (b->op) {
    case HED_GRAPH_BEGIN:
        return begin_draft(ch, b);
    case HED_GRAPH_NODE:
        return add_node(ch, b);
    case HED_GRAPH_CHILD:
        return end_child(ch, b);
    case HED_GRAPH_BRANCH:
        return begin_branch(ch, b);
    case HED_GRAPH_END:
        return end_branch(ch);
    case HED_GRAPH_MAKE:
        return make_exec(ch, b);
    case HED_GRAPH_DROP:
        return drop_exec(ch, b);
    case HED_GRAPH_CONDITION:
        return hed_worker_condition(ch, b);
    case HED_GRAPH_FORGET:
        return hed_worker_forget_graph(ch, b);
    default:
        return HED_EFORMAT;
    }
}
