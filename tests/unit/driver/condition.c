/* Conditional nodes on this machine: which branches run, how often, and what ends them. Host
 * functions stand for kernels that set a condition. */
#include "unit/driver/busy.h"

static _Atomic unsigned ran[3]; /* by branch: how often it ran */

static void
count_run(void *arg)
{
    atomic_fetch_add((_Atomic unsigned *)arg, 1);
}

struct countdown {
    const struct hed_near *near;
    CUgraphConditionalHandle handle;
    uint32_t left;
};

/* Counts the condition down. */
static void
count_down(void *arg)
{
    struct countdown *c = arg;

    assert_true(hed_near_condition_set(c->near, c->handle, --c->left));
    c->left = c->left ? c->left : 5; /* for the next launch */
}

static void
add_host(struct fake *f, CUgraph g, void (*function)(void *), void *arg)
{
    CUDA_HOST_NODE_PARAMS_v1 p = {function, arg};
    CUgraphNode n;

    OK(fake_call(f, cuGraphAddHostNode, &n, g, NULL, 0, &p));
}

/* A graph with one conditional node, whose branches count. Returns the handle. */
static CUgraphConditionalHandle
make_choice(struct fake *f, CUgraphConditionalNodeType type, unsigned size, unsigned first,
            unsigned flags, CUgraph *graph, CUgraph *branch)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    CUgraphNode n;

    OK(fake_call(f, cuGraphCreate, graph, 0));
    OK(fake_call(f, cuGraphConditionalHandleCreate, &p.conditional.handle, *graph, NULL, first,
                 flags));
    p.conditional.type = type;
    p.conditional.size = size;
    OK(fake_call(f, cuGraphAddNode_v2, &n, *graph, NULL, NULL, 0, &p));
    for (unsigned i = 0; i < size; i++)
        add_host(f, p.conditional.phGraph_out[i], count_run, &ran[i]);
    *branch = p.conditional.phGraph_out[0];
    return p.conditional.handle;
}

/* The graph is destroyed before it is launched, as programs do. */
static void
launch_graph(struct fake *f, CUgraph g, CUstream s, unsigned times)
{
    CUgraphExec e;

    for (unsigned i = 0; i < 3; i++)
        atomic_store(&ran[i], 0);
    OK(fake_call(f, cuGraphInstantiateWithFlags, &e, g, 0));
    OK(fake_call(f, cuGraphDestroy, g));
    for (unsigned i = 0; i < times; i++)
        OK(fake_call(f, cuGraphLaunch, e, s));
    OK(fake_call(f, cuStreamSynchronize, s));
    OK(fake_call(f, cuGraphExecDestroy, e));
}

static void
check_choice(struct fake *f, CUstream s, CUgraphConditionalNodeType type, unsigned size,
             unsigned value, const char *expected)
{
    CUgraph g, branch;

    (void)make_choice(f, type, size, value, CU_GRAPH_COND_ASSIGN_DEFAULT, &g, &branch);
    launch_graph(f, g, s, 1);
    for (unsigned i = 0; i < size; i++)
        assert_int_equal(atomic_load(&ran[i]), expected[i] - '0');
}

static void
conditions_choose_branches(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);

    check_choice(f, s, CU_GRAPH_COND_TYPE_IF, 1, 7, "1");
    check_choice(f, s, CU_GRAPH_COND_TYPE_IF, 1, 0, "0");
    check_choice(f, s, CU_GRAPH_COND_TYPE_IF, 2, 1, "10");
    check_choice(f, s, CU_GRAPH_COND_TYPE_IF, 2, 0, "01");
    check_choice(f, s, CU_GRAPH_COND_TYPE_WHILE, 1, 0, "0");
    check_choice(f, s, CU_GRAPH_COND_TYPE_SWITCH, 3, 2, "001");
    check_choice(f, s, CU_GRAPH_COND_TYPE_SWITCH, 3, 3, "000");
    busy_fake_free(f);
}

/* Without a first value, the second launch finds what the first one left. */
static void
loops_begin_with_their_first_value(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUgraph g, body;

    for (unsigned flags = 0; flags <= CU_GRAPH_COND_ASSIGN_DEFAULT; flags++) {
        struct countdown c = {&f->near,
                              make_choice(f, CU_GRAPH_COND_TYPE_WHILE, 1, 5, flags, &g, &body), 5};

        assert_int_equal(c.handle, 1); /* the lowest that is free, as on a GPU */
        add_host(f, body, count_down, &c);
        launch_graph(f, g, s, 2);
        assert_int_equal(atomic_load(&ran[0]), flags ? 10 : 5);
    }
    busy_fake_free(f);
}

/* Nothing ever sets its condition. */
static void
failed_context_ends_loops(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUgraph g, body;
    CUgraphExec e;

    (void)make_choice(f, CU_GRAPH_COND_TYPE_WHILE, 1, 1, CU_GRAPH_COND_ASSIGN_DEFAULT, &g, &body);
    atomic_store(&ran[0], 0);
    OK(fake_call(f, cuGraphInstantiateWithFlags, &e, g, 0));
    OK(fake_call(f, cuGraphLaunch, e, s));
    while (atomic_load(&ran[0]) < 3)
        give_a_moment(1);
    hed_context_fail(f->driver->devices[0].primary, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(fake_call(f, cuCtxSynchronize), CUDA_ERROR_ILLEGAL_ADDRESS);
    busy_fake_free(f);
}

/* Measured on NVIDIA's driver 580. */
static void
handles_need_nodes_and_keep_graphs_from_being_cloned(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUgraph g, body, clone;
    CUgraphExec e;
    CUgraphConditionalHandle unused;

    (void)make_choice(f, CU_GRAPH_COND_TYPE_IF, 1, 1, 0, &g, &body);
    OK(fake_call(f, cuGraphInstantiateWithFlags, &e, g, 0));
    assert_int_equal(fake_call(f, cuGraphClone, &clone, g), CUDA_ERROR_NOT_SUPPORTED);
    OK(fake_call(f, cuGraphConditionalHandleCreate, &unused, g, NULL, 0, 0));
    assert_int_equal(fake_call(f, cuGraphInstantiateWithFlags, &e, g, 0), CUDA_ERROR_INVALID_VALUE);
    OK(fake_call(f, cuGraphCreate, &g, 0));
    OK(fake_call(f, cuGraphConditionalHandleCreate, &unused, g, NULL, 0, 0));
    assert_int_equal(fake_call(f, cuGraphClone, &clone, g), CUDA_ERROR_NOT_SUPPORTED);
    busy_fake_free(f);
}

static void
handle_of_a_destroyed_node_is_free_again(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUgraph g, body;
    CUgraphExec e;
    CUgraphNode node;
    size_t one = 1;
    CUgraphNodeParams p = {
        .type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
        .conditional = {.handle = make_choice(f, CU_GRAPH_COND_TYPE_IF, 1, 1, 0, &g, &body),
                        .type = CU_GRAPH_COND_TYPE_IF,
                        .size = 1}};

    assert_int_equal(fake_call(f, cuGraphAddNode_v2, &node, g, NULL, NULL, 0, &p),
                     CUDA_ERROR_INVALID_VALUE);
    OK(fake_call(f, cuGraphGetNodes, g, &node, &one));
    OK(fake_call(f, cuGraphDestroyNode, node));
    assert_int_equal(fake_call(f, cuGraphInstantiateWithFlags, &e, g, 0), CUDA_ERROR_INVALID_VALUE);
    OK(fake_call(f, cuGraphAddNode_v2, &node, g, NULL, NULL, 0, &p));
    OK(fake_call(f, cuGraphInstantiateWithFlags, &e, g, 0));
    busy_fake_free(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(handle_of_a_destroyed_node_is_free_again),
    cmocka_unit_test(handles_need_nodes_and_keep_graphs_from_being_cloned),
    cmocka_unit_test(conditions_choose_branches),
    cmocka_unit_test(loops_begin_with_their_first_value),
    cmocka_unit_test(failed_context_ends_loops),
};

HED_UNIT_MAIN(tests)
