/* Graphs: built call by call, captured, cloned, instantiated, changed, run. */
#include <stdlib.h>
#include <unistd.h>

#include "unit/driver/busy.h"

/* Host functions that record the order in which they ran. */
static char order[16];
static _Atomic unsigned ran;

static void
note(void *arg)
{
    order[atomic_fetch_add(&ran, 1)] = *(const char *)arg;
}

static void
forget_order(void)
{
    memset(order, 0, sizeof order);
    atomic_store(&ran, 0);
}

static CUgraphNode
host_node(struct fake *f, CUgraph g, const char *name, const CUgraphNode *deps, size_t count)
{
    CUDA_HOST_NODE_PARAMS_v1 p = {note, (void *)(uintptr_t)name};
    CUgraphNode n = NULL;

    OK(fake_call(f, cuGraphAddHostNode, &n, g, deps, count, &p));
    return n;
}

static CUgraph
new_graph(struct fake *f)
{
    CUgraph g = NULL;

    OK(fake_call(f, cuGraphCreate, &g, 0));
    return g;
}

static void
run_graph(struct fake *f, CUgraph g, CUstream s)
{
    CUgraphExec e;

    forget_order();
    OK(fake_call(f, cuGraphInstantiateWithFlags, &e, g, 0));
    OK(fake_call(f, cuGraphLaunch, e, s));
    OK(fake_call(f, cuStreamSynchronize, s));
    OK(fake_call(f, cuGraphExecDestroy, e));
}

static void
nodes_run_in_the_order_of_their_edges(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUgraph g = new_graph(f);
    CUgraphNode c = host_node(f, g, "c", NULL, 0);
    CUgraphNode b = host_node(f, g, "b", NULL, 0);
    CUgraphNode a = host_node(f, g, "a", NULL, 0);
    const CUgraphNode from[] = {a, b};
    const CUgraphNode to[] = {b, c};
    size_t count = 0;

    OK(fake_call(f, cuGraphAddDependencies, g, from, to, 2));
    run_graph(f, g, s);
    assert_string_equal(order, "abc");
    OK(fake_call(f, cuGraphGetEdges, g, NULL, NULL, &count));
    assert_int_equal(count, 2);
    OK(fake_call(f, cuGraphGetRootNodes, g, NULL, &count));
    assert_int_equal(count, 1);
    OK(fake_call(f, cuGraphRemoveDependencies, g, from, to, 1));
    OK(fake_call(f, cuGraphDestroyNode, b));
    run_graph(f, g, s);
    assert_int_equal(strlen(order), 2);
    OK(fake_call(f, cuGraphDestroy, g));
    busy_fake_free(f);
}

static void
edges_that_make_no_sense_are_refused(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUgraph g = new_graph(f);
    CUgraph other = new_graph(f);
    CUgraphNode a = host_node(f, g, "a", NULL, 0);
    CUgraphNode b = host_node(f, g, "b", &a, 1);
    CUgraphNode x = host_node(f, other, "x", NULL, 0);
    CUgraphNode n;
    CUDA_HOST_NODE_PARAMS_v1 p = {note, NULL};
    const CUgraphNode twice[] = {a, a};

    assert_int_equal(fake_call(f, cuGraphAddDependencies, g, &b, &a, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuGraphAddDependencies, g, &a, &a, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuGraphAddDependencies, g, &a, &x, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuGraphAddDependencies, g, &a, &b, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuGraphAddHostNode, &n, g, twice, 2, &p),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuGraphAddHostNode, &n, g, &x, 1, &p), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuGraphAddHostNode, &n, g, NULL, 1, &p),
                     CUDA_ERROR_INVALID_VALUE);
    busy_fake_free(f);
}

static void
a_dead_graph_and_its_nodes_are_recognised(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUgraph g = new_graph(f);
    CUgraphNode a = host_node(f, g, "a", NULL, 0);
    CUgraphNodeType type;
    size_t count;

    OK(fake_call(f, cuGraphDestroy, g));
    assert_int_equal(fake_call(f, cuGraphDestroy, g), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuGraphGetNodes, g, NULL, &count), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuGraphNodeGetType, a, &type), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuGraphDestroyNode, a), CUDA_ERROR_INVALID_VALUE);
    busy_fake_free(f);
}

static void
a_clone_has_nodes_of_its_own(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUgraph g = new_graph(f);
    CUgraph child = new_graph(f);
    CUgraph clone, inner, inner_of_clone;
    CUgraphNode a = host_node(f, g, "a", NULL, 0);
    CUgraphNode in = host_node(f, child, "i", NULL, 0);
    CUgraphNode c, found, child_in;

    OK(fake_call(f, cuGraphAddChildGraphNode, &c, g, &a, 1, child));
    OK(fake_call(f, cuGraphClone, &clone, g));
    OK(fake_call(f, cuGraphNodeFindInClone, &found, a, clone));
    assert_ptr_not_equal(found, a);
    OK(fake_call(f, cuGraphChildGraphNodeGetGraph, c, &inner));
    assert_ptr_not_equal(inner, child);
    OK(fake_call(f, cuGraphNodeFindInClone, &child_in, in, inner));
    OK(fake_call(f, cuGraphNodeFindInClone, &found, c, clone));
    OK(fake_call(f, cuGraphChildGraphNodeGetGraph, found, &inner_of_clone));
    assert_int_equal(fake_call(f, cuGraphDestroy, inner), CUDA_ERROR_INVALID_VALUE);
    OK(fake_call(f, cuGraphDestroy, g));
    OK(fake_call(f, cuGraphDestroy, child));
    run_graph(f, clone, s);
    assert_string_equal(order, "ai");
    busy_fake_free(f);
}

static void
a_launched_graph_keeps_what_it_was_launched_with(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUgraph g = new_graph(f);
    CUgraphNode a = host_node(f, g, "a", NULL, 0);
    CUDA_HOST_NODE_PARAMS_v1 p = {note, (void *)(uintptr_t) "b"};
    CUgraphExec e;
    struct busy b;

    forget_order();
    OK(fake_call(f, cuGraphInstantiateWithFlags, &e, g, 0));
    busy_begin(f, &b, s);
    OK(fake_call(f, cuGraphLaunch, e, s));
    OK(fake_call(f, cuGraphExecHostNodeSetParams, e, a, &p));
    OK(fake_call(f, cuGraphLaunch, e, s));
    OK(fake_call(f, cuGraphExecDestroy, e));
    OK(fake_call(f, cuGraphDestroy, g));
    busy_end(&b);
    OK(fake_call(f, cuStreamSynchronize, s));
    assert_string_equal(order, "ab");
    busy_fake_free(f);
}

static void
launches_of_one_graph_come_one_behind_the_other(void **state)
{
    CUstream s, t;
    struct fake *f = busy_fake_create(&s);
    CUgraph g = new_graph(f);
    CUgraphExec e;
    struct busy b;

    OK(fake_call(f, cuStreamCreate, &t, CU_STREAM_NON_BLOCKING));
    (void)host_node(f, g, "a", NULL, 0);
    OK(fake_call(f, cuGraphInstantiateWithFlags, &e, g, 0));
    forget_order();
    busy_begin(f, &b, s);
    OK(fake_call(f, cuGraphLaunch, e, s));
    OK(fake_call(f, cuGraphLaunch, e, t)); /* nothing else orders the two streams */
    give_a_moment(30);
    assert_int_equal(atomic_load(&ran), 0);
    busy_end(&b);
    OK(fake_call(f, cuStreamSynchronize, t));
    assert_string_equal(order, "aa");
    busy_fake_free(f);
}

static void
an_update_takes_the_same_shape_only(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUgraph g = new_graph(f);
    CUgraph same = new_graph(f);
    CUgraph other = new_graph(f);
    CUgraphNode a = host_node(f, g, "a", NULL, 0);
    CUgraphExecUpdateResultInfo_v1 info;
    CUgraphExec e;
    CUgraphNode n;

    (void)host_node(f, g, "b", &a, 1);
    a = host_node(f, same, "x", NULL, 0);
    (void)host_node(f, same, "y", &a, 1);
    (void)host_node(f, other, "x", NULL, 0);
    OK(fake_call(f, cuGraphAddEmptyNode, &n, other, NULL, 0));
    OK(fake_call(f, cuGraphInstantiateWithFlags, &e, g, 0));
    assert_int_equal(fake_call(f, cuGraphExecUpdate_v2, e, other, &info),
                     CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    assert_int_not_equal(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    OK(fake_call(f, cuGraphExecUpdate_v2, e, same, &info));
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    forget_order();
    OK(fake_call(f, cuGraphLaunch, e, s));
    OK(fake_call(f, cuStreamSynchronize, s));
    assert_string_equal(order, "xy");
    busy_fake_free(f);
}

/* ---- capture ------------------------------------------------------------------------------- */

static void
captured_streams_fork_and_join(void **state)
{
    CUstream s, t;
    struct fake *f = busy_fake_create(&s);
    CUevent fork, join;
    CUgraph g = NULL;
    CUstreamCaptureStatus status;
    size_t count = 0;

    OK(fake_call(f, cuStreamCreate, &t, CU_STREAM_NON_BLOCKING));
    OK(fake_call(f, cuEventCreate, &fork, 0));
    OK(fake_call(f, cuEventCreate, &join, 0));
    forget_order();
    OK(fake_call(f, cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(fake_call(f, cuLaunchHostFunc, s, note, (void *)(uintptr_t) "a"));
    OK(fake_call(f, cuEventRecord, fork, s));
    OK(fake_call(f, cuStreamWaitEvent, t, fork, 0));
    OK(fake_call(f, cuStreamIsCapturing, t, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(fake_call(f, cuLaunchHostFunc, t, note, (void *)(uintptr_t) "b"));
    OK(fake_call(f, cuEventRecord, join, t));
    OK(fake_call(f, cuStreamWaitEvent, s, join, 0));
    OK(fake_call(f, cuLaunchHostFunc, s, note, (void *)(uintptr_t) "c"));
    OK(fake_call(f, cuStreamEndCapture, s, &g));
    assert_int_equal(atomic_load(&ran), 0);
    OK(fake_call(f, cuStreamIsCapturing, t, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
    OK(fake_call(f, cuGraphGetEdges, g, NULL, NULL, &count));
    assert_int_equal(count, 3); /* a before b, and both before c, since the stream was behind a */
    run_graph(f, g, s);
    assert_string_equal(order, "abc");
    busy_fake_free(f);
}

/* As cuDNN does, to look at the nodes. */
static void
fills_are_captured_without_their_memory(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUDA_MEMSET_NODE_PARAMS_v1 p;
    CUgraphExec e;
    CUgraph g;
    CUgraphNode n;
    size_t one = 1;

    assert_int_equal(fake_call(f, cuMemsetD8Async, 0x80, 0, 16, s), CUDA_ERROR_INVALID_VALUE);
    OK(fake_call(f, cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(fake_call(f, cuMemsetD8Async, 0x80, 0, 16, s));
    assert_int_equal(fake_call(f, cuMemsetD16Async, 0x81, 0, 16, s), CUDA_ERROR_INVALID_VALUE);
    OK(fake_call(f, cuStreamEndCapture, s, &g));
    OK(fake_call(f, cuGraphGetNodes, g, &n, &one));
    OK(fake_call(f, cuGraphMemsetNodeGetParams, n, &p));
    assert_int_equal(p.dst, 0x80);
    assert_int_equal(fake_call(f, cuGraphInstantiateWithFlags, &e, g, 0), CUDA_ERROR_INVALID_VALUE);
    OK(fake_call(f, cuMemAlloc_v2, &p.dst, 16));
    OK(fake_call(f, cuGraphMemsetNodeSetParams, n, &p));
    OK(fake_call(f, cuGraphInstantiateWithFlags, &e, g, 0));
    busy_fake_free(f);
}

static void
a_stream_that_does_not_come_back_spoils_the_capture(void **state)
{
    CUstream s, t;
    struct fake *f = busy_fake_create(&s);
    CUevent fork;
    CUgraph g = (CUgraph)(uintptr_t)1;

    OK(fake_call(f, cuStreamCreate, &t, CU_STREAM_NON_BLOCKING));
    OK(fake_call(f, cuEventCreate, &fork, 0));
    OK(fake_call(f, cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(fake_call(f, cuEventRecord, fork, s));
    OK(fake_call(f, cuStreamWaitEvent, t, fork, 0));
    OK(fake_call(f, cuLaunchHostFunc, t, note, (void *)(uintptr_t) "b"));
    assert_int_equal(fake_call(f, cuStreamEndCapture, s, &g), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    assert_null(g);
    busy_fake_free(f);
}

/* A helper stream that exists only during the capture is common: its work stays in the graph. */
static void
a_capture_outlives_the_streams_that_joined_it(void **state)
{
    CUstream s, t;
    struct fake *f = busy_fake_create(&s);
    CUevent fork, join;
    CUgraph g = NULL;

    OK(fake_call(f, cuEventCreate, &fork, 0));
    OK(fake_call(f, cuEventCreate, &join, 0));
    for (int back = 1; back >= 0; back--) {
        OK(fake_call(f, cuStreamCreate, &t, CU_STREAM_NON_BLOCKING));
        forget_order();
        OK(fake_call(f, cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_GLOBAL));
        OK(fake_call(f, cuEventRecord, fork, s));
        OK(fake_call(f, cuStreamWaitEvent, t, fork, 0));
        OK(fake_call(f, cuLaunchHostFunc, t, note, (void *)(uintptr_t) "b"));
        OK(fake_call(f, cuEventRecord, join, t));
        if (back)
            OK(fake_call(f, cuStreamWaitEvent, s, join, 0));
        OK(fake_call(f, cuStreamDestroy_v2, t));
        assert_int_equal(fake_call(f, cuStreamEndCapture, s, &g),
                         back ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
        if (back) {
            run_graph(f, g, s);
            assert_string_equal(order, "b");
        }
    }
    busy_fake_free(f);
}

static void
a_capture_into_a_given_graph_need_not_hand_it_out(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUgraph g;

    OK(fake_call(f, cuGraphCreate, &g, 0));
    OK(fake_call(f, cuStreamBeginCaptureToGraph, s, g, NULL, NULL, 0,
                 CU_STREAM_CAPTURE_MODE_GLOBAL));
    forget_order();
    OK(fake_call(f, cuLaunchHostFunc, s, note, (void *)(uintptr_t) "a"));
    OK(fake_call(f, cuStreamEndCapture, s, NULL));
    run_graph(f, g, s);
    assert_string_equal(order, "a");
    OK(fake_call(f, cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_int_equal(fake_call(f, cuStreamEndCapture, s, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(fake_call(f, cuStreamEndCapture, s, &g));
    busy_fake_free(f);
}

static void
what_a_capture_does_not_survive(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUgraph g;
    CUdeviceptr p;

    assert_int_equal(fake_call(f, cuStreamEndCapture, s, &g), CUDA_ERROR_ILLEGAL_STATE);
    assert_int_equal(fake_call(f, cuStreamBeginCapture_v2, NULL, CU_STREAM_CAPTURE_MODE_GLOBAL),
                     CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    OK(fake_call(f, cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_int_equal(fake_call(f, cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_GLOBAL),
                     CUDA_ERROR_ILLEGAL_STATE);
    assert_int_equal(fake_call(f, cuMemAlloc_v2, &p, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_int_equal(fake_call(f, cuStreamEndCapture, s, &g),
                     CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

    OK(fake_call(f, cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(fake_call(f, cuMemAlloc_v2, &p, 64));
    OK(fake_call(f, cuStreamEndCapture, s, &g));

    OK(fake_call(f, cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_int_equal(fake_call(f, cuStreamSynchronize, s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_int_equal(fake_call(f, cuStreamEndCapture, s, &g),
                     CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    busy_fake_free(f);
}

/* Freeing memory waits for all work, but that is not a wait that the program asks for. */
static void
memory_can_be_freed_beside_a_relaxed_capture(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUgraph g;
    CUdeviceptr p;

    OK(fake_call(f, cuMemAlloc_v2, &p, 64));
    OK(fake_call(f, cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(fake_call(f, cuMemFree_v2, p));
    OK(fake_call(f, cuStreamEndCapture, s, &g));

    OK(fake_call(f, cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_int_equal(fake_call(f, cuCtxSynchronize), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_int_equal(fake_call(f, cuStreamEndCapture, s, &g),
                     CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    busy_fake_free(f);
}

static void
copies_and_fills_are_captured(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUdeviceptr a, b;
    CUgraph g;
    uint32_t host[16] = {0};

    OK(fake_call(f, cuMemAlloc_v2, &a, 64));
    OK(fake_call(f, cuMemAlloc_v2, &b, 64));
    OK(fake_call(f, cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(fake_call(f, cuMemsetD32Async, a, 7, 16, s));
    OK(fake_call(f, cuMemcpyDtoDAsync_v2, b, a, 64, s));
    OK(fake_call(f, cuMemcpyDtoHAsync_v2, host, b, 64, s));
    OK(fake_call(f, cuStreamEndCapture, s, &g));
    assert_int_equal(host[15], 0);
    run_graph(f, g, s);
    assert_int_equal(host[15], 7);
    busy_fake_free(f);
}

static void
memory_of_a_captured_allocation_outlives_the_runs(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUdeviceptr p;
    CUgraph g;
    uint32_t host[4] = {0};

    OK(fake_call(f, cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(fake_call(f, cuMemAllocAsync, &p, 64, s));
    OK(fake_call(f, cuMemsetD32Async, p, 9, 4, s));
    OK(fake_call(f, cuMemcpyDtoHAsync_v2, host, p, 16, s));
    OK(fake_call(f, cuMemFreeAsync, p, s));
    OK(fake_call(f, cuStreamEndCapture, s, &g));
    for (int i = 0; i < 3; i++) {
        memset(host, 0, sizeof host);
        run_graph(f, g, s);
        assert_int_equal(host[3], 9);
    }
    OK(fake_call(f, cuGraphDestroy, g));
    busy_fake_free(f);
}

/* ---- the rest ------------------------------------------------------------------------------ */

static void
an_event_waited_for_in_a_graph_is_the_one_of_the_launch(void **state)
{
    CUstream s, t;
    struct fake *f = busy_fake_create(&s);
    CUgraph g = new_graph(f);
    CUgraphNode n;
    CUgraphExec e;
    CUevent event;
    struct busy b;

    OK(fake_call(f, cuStreamCreate, &t, CU_STREAM_NON_BLOCKING));
    OK(fake_call(f, cuEventCreate, &event, 0));
    OK(fake_call(f, cuGraphAddEventWaitNode, &n, g, NULL, 0, event));
    (void)host_node(f, g, "x", &n, 1);
    OK(fake_call(f, cuGraphInstantiateWithFlags, &e, g, 0));
    forget_order();
    busy_begin(f, &b, t);
    OK(fake_call(f, cuEventRecord, event, t));
    OK(fake_call(f, cuGraphLaunch, e, s));
    OK(fake_call(f, cuEventRecord, event, s)); /* behind the graph */
    give_a_moment(30);
    assert_int_equal(atomic_load(&ran), 0);
    busy_end(&b);
    OK(fake_call(f, cuStreamSynchronize, s));
    assert_string_equal(order, "x");
    OK(fake_call(f, cuEventSynchronize, event));
    busy_fake_free(f);
}

static void
kernel_nodes_say_what_they_were_given(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUgraph g = new_graph(f);
    CUmodule m;
    CUfunction fn;
    CUgraphNode n;
    uint64_t to = 0x1000, from = 0x2000;
    uint32_t bytes = 0;
    void *params[] = {&to, &from, &bytes};
    CUDA_KERNEL_NODE_PARAMS_v2 p = {.gridDimX = 2,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = 32,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .kernelParams = params};
    CUDA_KERNEL_NODE_PARAMS_v2 got;

    OK(fake_call(f, cuModuleLoadData, &m, ".version 8.0\n.target sm_80\n"));
    OK(fake_call(f, cuModuleGetFunction, &fn, m, "fake_copy"));
    p.func = fn;
    OK(fake_call(f, cuGraphAddKernelNode_v2, &n, g, NULL, 0, &p));
    OK(fake_call(f, cuGraphKernelNodeGetParams_v2, n, &got));
    assert_ptr_equal(got.func, fn);
    assert_int_equal(got.gridDimX, 2);
    assert_int_equal(*(uint64_t *)got.kernelParams[1], 0x2000);
    assert_int_equal(*(uint32_t *)got.kernelParams[2], 0);
    run_graph(f, g, s);
    assert_int_equal(atomic_load(&f->launches), 1);
    p.gridDimX = 0;
    assert_int_equal(fake_call(f, cuGraphAddKernelNode_v2, &n, g, NULL, 0, &p),
                     CUDA_ERROR_INVALID_VALUE);
    busy_fake_free(f);
}

static _Atomic unsigned destroyed;

static void
destroy(void *arg)
{
    atomic_fetch_add(&destroyed, *(const unsigned *)arg);
}

static void
a_user_object_lives_as_long_as_the_graphs(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUgraph g = new_graph(f);
    CUgraph clone;
    CUuserObject o;
    unsigned one = 1;

    atomic_store(&destroyed, 0);
    OK(fake_call(f, cuUserObjectCreate, &o, &one, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    OK(fake_call(f, cuGraphRetainUserObject, g, o, 1, CU_GRAPH_USER_OBJECT_MOVE));
    OK(fake_call(f, cuGraphClone, &clone, g));
    OK(fake_call(f, cuGraphDestroy, g));
    assert_int_equal(atomic_load(&destroyed), 0);
    OK(fake_call(f, cuGraphDestroy, clone));
    assert_int_equal(atomic_load(&destroyed), 1);
    assert_int_equal(fake_call(f, cuUserObjectRelease, o, 1), CUDA_ERROR_INVALID_VALUE);
    busy_fake_free(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nodes_run_in_the_order_of_their_edges),
    cmocka_unit_test(edges_that_make_no_sense_are_refused),
    cmocka_unit_test(a_dead_graph_and_its_nodes_are_recognised),
    cmocka_unit_test(a_clone_has_nodes_of_its_own),
    cmocka_unit_test(a_launched_graph_keeps_what_it_was_launched_with),
    cmocka_unit_test(launches_of_one_graph_come_one_behind_the_other),
    cmocka_unit_test(an_update_takes_the_same_shape_only),
    cmocka_unit_test(captured_streams_fork_and_join),
    cmocka_unit_test(fills_are_captured_without_their_memory),
    cmocka_unit_test(a_stream_that_does_not_come_back_spoils_the_capture),
    cmocka_unit_test(a_capture_outlives_the_streams_that_joined_it),
    cmocka_unit_test(a_capture_into_a_given_graph_need_not_hand_it_out),
    cmocka_unit_test(what_a_capture_does_not_survive),
    cmocka_unit_test(memory_can_be_freed_beside_a_relaxed_capture),
    cmocka_unit_test(copies_and_fills_are_captured),
    cmocka_unit_test(memory_of_a_captured_allocation_outlives_the_runs),
    cmocka_unit_test(an_event_waited_for_in_a_graph_is_the_one_of_the_launch),
    cmocka_unit_test(kernel_nodes_say_what_they_were_given),
    cmocka_unit_test(a_user_object_lives_as_long_as_the_graphs),
};

HED_UNIT_MAIN(tests)
