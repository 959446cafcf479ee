/* Conditional nodes on a remote machine: its handles, the branches of nodes, and what an executable
 * graph has of them. */
#include "harness/unit.h"

#include "driver/context/context.h"
#include "driver/graph/node.h"
#include "driver/stream/stream.h"
#include "unit/remote/peer.h"

/* ---- the far side ---------------------------------------------------------------------------- */

static struct {
    unsigned handles, gone, execs, launches;
    uint64_t graph;      /* for which the last handle was made */
    uint64_t gone_graph; /* the last graph whose handles were freed */
    CUresult next;       /* the answer to making an executable graph */
    struct hed_graph_exec *body;
} far;

static CUresult
context_made(void *m, struct hed_context *c)
{
    return CUDA_SUCCESS;
}

static void
context_gone(void *m, struct hed_context *c)
{
}

static void
of_stream(void *m, struct hed_stream *s)
{
}

static CUresult
wait_context(void *m, struct hed_context *c)
{
    return CUDA_SUCCESS;
}

static CUresult
wait_stream(void *m, struct hed_stream *s)
{
    return CUDA_SUCCESS;
}

static CUresult
put(void *m, struct hed_stream *s, struct hed_work *w)
{
    far.launches += w->kind == HED_WORK_GRAPH;
    return CUDA_SUCCESS;
}

static CUresult
exec_made(void *m, struct hed_context *c, struct hed_exec *e, struct hed_graph_exec *body,
          bool first)
{
    far.execs++;
    far.body = body;
    return far.next;
}

static void
exec_gone(void *m, uint64_t handle)
{
}

static CUresult
condition_made(void *m, struct hed_context *c, uint64_t graph, unsigned value, unsigned flags,
               uint64_t *out)
{
    assert_int_equal(value, 3);
    assert_int_equal(flags, CU_GRAPH_COND_ASSIGN_DEFAULT);
    far.graph = graph;
    *out = 0xc000 + ++far.handles;
    return CUDA_SUCCESS;
}

static void
conditions_gone(void *m, uint64_t graph)
{
    far.gone_graph = graph;
    far.gone++;
}

static const struct peer peer = {
    .context_made = context_made,
    .context_gone = context_gone,
    .context_wait = wait_context,
    .stream_made = of_stream,
    .stream_gone = of_stream,
    .stream_wait = wait_stream,
    .stream_query = wait_stream,
    .stream_look = of_stream,
    .put = put,
    .exec_made = exec_made,
    .exec_gone = exec_gone,
    .condition_made = condition_made,
    .conditions_gone = conditions_gone,
};

static struct fake *
begin_fake(void)
{
    struct fake *f;

    memset(&far, 0, sizeof far);
    f = peer_create(1, &peer, NULL);
    (void)fake_use_primary(f, 0);
    return f;
}

/* ---- the program ----------------------------------------------------------------------------- */

static CUgraph
make_graph(struct fake *f)
{
    CUgraph g = NULL;

    assert_int_equal(fake_call(f, cuGraphCreate, &g, 0), CUDA_SUCCESS);
    return g;
}

static CUgraphConditionalHandle
make_handle(struct fake *f, CUgraph g)
{
    CUgraphConditionalHandle h = 0;

    assert_int_equal(
        fake_call(f, cuGraphConditionalHandleCreate, &h, g, NULL, 3, CU_GRAPH_COND_ASSIGN_DEFAULT),
        CUDA_SUCCESS);
    return h;
}

static CUresult
add_choice(struct fake *f, CUgraph g, CUgraphConditionalHandle h, CUgraphConditionalNodeType type,
           unsigned size, CUgraph *first)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
                           .conditional = {.handle = h, .type = type, .size = size}};
    CUgraphNode n = NULL;
    const CUresult r = fake_call(f, cuGraphAddNode_v2, &n, g, NULL, NULL, 0, &p);

    if (r == CUDA_SUCCESS)
        memcpy(first, p.conditional.phGraph_out, size * sizeof *first);
    return r;
}

static void
add_empty(struct fake *f, CUgraph g)
{
    CUgraphNode n = NULL;

    assert_int_equal(fake_call(f, cuGraphAddEmptyNode, &n, g, NULL, 0), CUDA_SUCCESS);
}

static CUgraphExec
instantiate(struct fake *f, CUgraph g)
{
    CUgraphExec e = NULL;

    assert_int_equal(fake_call(f, cuGraphInstantiateWithFlags, &e, g, 0), CUDA_SUCCESS);
    return e;
}

static void
a_graph_has_its_branches_inside(void **state)
{
    struct fake *f = begin_fake();
    CUgraph g = make_graph(f), branches[3] = {0}, inner[1] = {0};
    const CUgraphConditionalHandle h = make_handle(f, g);
    CUgraphExec e;

    assert_int_equal(far.graph, (uint64_t)(uintptr_t)g);
    assert_int_equal(add_choice(f, g, h, CU_GRAPH_COND_TYPE_SWITCH, 3, branches), CUDA_SUCCESS);
    add_empty(f, branches[1]);
    add_empty(f, branches[1]);

    /* The handles of a branch belong to the outermost graph. */
    const CUgraphConditionalHandle more = make_handle(f, branches[2]);

    assert_int_equal(far.graph, (uint64_t)(uintptr_t)g);
    assert_int_equal(add_choice(f, branches[2], more, CU_GRAPH_COND_TYPE_WHILE, 1, inner),
                     CUDA_SUCCESS);
    add_empty(f, inner[0]);
    e = instantiate(f, g);
    assert_int_equal(fake_call(f, cuGraphLaunch, e, NULL, false), CUDA_SUCCESS);
    assert_int_equal(far.launches, 1);
    assert_int_equal(far.body->root, (uint64_t)(uintptr_t)g);
    assert_int_equal(far.body->count, 1);

    const struct hed_exec_node *n = &far.body->nodes[0];

    assert_int_equal(n->condition.handle, h);
    assert_int_equal(n->condition.count, 3);
    assert_int_equal(n->branches[0]->count, 0);
    assert_int_equal(n->branches[1]->count, 2);
    assert_int_equal(n->branches[2]->nodes[0].condition.handle, more);
    assert_int_equal(n->branches[2]->nodes[0].branches[0]->count, 1);
    fake_free(f);
}

static void
handles_live_as_long_as_what_runs(void **state)
{
    struct fake *f = begin_fake();
    CUgraph g = make_graph(f), branch = NULL;
    CUgraphExec e;

    assert_int_equal(add_choice(f, g, make_handle(f, g), CU_GRAPH_COND_TYPE_IF, 1, &branch),
                     CUDA_SUCCESS);
    e = instantiate(f, g);
    assert_int_equal(fake_call(f, cuGraphDestroy, branch), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuGraphDestroy, g), CUDA_SUCCESS);
    assert_int_equal(far.gone, 0);
    assert_int_equal(fake_call(f, cuGraphLaunch, e, NULL, false), CUDA_SUCCESS);
    assert_int_equal(fake_call(f, cuGraphExecDestroy, e), CUDA_SUCCESS);
    assert_int_equal(far.gone, 1);
    assert_int_equal(far.gone_graph, far.graph);
    fake_free(f);
}

static void
a_handle_is_for_one_node_of_its_graph(void **state)
{
    struct fake *f = begin_fake();
    CUgraph g = make_graph(f), other = make_graph(f), branch[2];
    const CUgraphConditionalHandle h = make_handle(f, g);

    assert_int_equal(add_choice(f, other, h, CU_GRAPH_COND_TYPE_IF, 1, branch),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(add_choice(f, g, h + 1, CU_GRAPH_COND_TYPE_IF, 1, branch),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(add_choice(f, g, h, CU_GRAPH_COND_TYPE_IF, 3, branch),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(add_choice(f, g, h, CU_GRAPH_COND_TYPE_WHILE, 2, branch),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(add_choice(f, g, h, CU_GRAPH_COND_TYPE_SWITCH, 0, branch),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(add_choice(f, g, h, CU_GRAPH_COND_TYPE_IF, 2, branch), CUDA_SUCCESS);
    assert_int_equal(add_choice(f, g, h, CU_GRAPH_COND_TYPE_IF, 1, branch),
                     CUDA_ERROR_INVALID_VALUE);
    fake_free(f);
}

static void
such_graphs_stay_where_they_are(void **state)
{
    struct fake *f = begin_fake();
    CUgraph g = make_graph(f), outer = make_graph(f), copy = NULL, branch;
    CUgraphNode n = NULL;
    CUgraphNodeParams move = {
        .type = CU_GRAPH_NODE_TYPE_GRAPH,
        .graph = {.graph = g, .ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE}};

    assert_int_equal(add_choice(f, g, make_handle(f, g), CU_GRAPH_COND_TYPE_IF, 1, &branch),
                     CUDA_SUCCESS);
    assert_int_equal(fake_call(f, cuGraphClone, &copy, g), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(fake_call(f, cuGraphAddChildGraphNode, &n, outer, NULL, 0, g),
                     CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(fake_call(f, cuGraphAddNode_v2, &n, outer, NULL, NULL, 0, &move),
                     CUDA_ERROR_NOT_SUPPORTED);
    fake_free(f);
}

static void
nobody_else_can_choose(void **state)
{
    struct fake *f = begin_fake();
    CUgraph g = make_graph(f), branch = NULL;
    CUgraphExec e;

    assert_int_equal(add_choice(f, g, make_handle(f, g), CU_GRAPH_COND_TYPE_IF, 1, &branch),
                     CUDA_SUCCESS);
    e = instantiate(f, g);
    far.next = CUDA_ERROR_NOT_SUPPORTED;
    assert_int_equal(fake_call(f, cuGraphLaunch, e, NULL, false), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(fake_call(f, cuGraphLaunch, e, NULL, false), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(far.execs, 1);
    assert_int_equal(far.launches, 0);
    fake_free(f);
}

static void
an_executable_graph_can_be_updated(void **state)
{
    struct fake *f = begin_fake();
    CUgraph g = make_graph(f), branch = NULL, other = make_graph(f), theirs = NULL;
    CUgraphExecUpdateResultInfo_v1 info;
    CUgraphExec e;

    assert_int_equal(add_choice(f, g, make_handle(f, g), CU_GRAPH_COND_TYPE_IF, 1, &branch),
                     CUDA_SUCCESS);
    e = instantiate(f, g);
    assert_int_equal(fake_call(f, cuGraphExecUpdate_v2, e, g, &info), CUDA_SUCCESS);
    assert_int_equal(add_choice(f, other, make_handle(f, other), CU_GRAPH_COND_TYPE_IF, 1, &theirs),
                     CUDA_SUCCESS);
    assert_int_equal(fake_call(f, cuGraphExecUpdate_v2, e, other, &info),
                     CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    add_empty(f, branch);
    assert_int_equal(fake_call(f, cuGraphExecUpdate_v2, e, g, &info),
                     CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    fake_free(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_graph_has_its_branches_inside),
    cmocka_unit_test(handles_live_as_long_as_what_runs),
    cmocka_unit_test(a_handle_is_for_one_node_of_its_graph),
    cmocka_unit_test(such_graphs_stay_where_they_are),
    cmocka_unit_test(nobody_else_can_choose),
    cmocka_unit_test(an_executable_graph_can_be_updated),
};

HED_UNIT_MAIN(tests)
