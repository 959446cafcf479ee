/* Tests of the functions that visit handles and addresses, and of what can travel. */
#include "harness/unit.h"

#include "gen/cuda_handles.h"
#include "gen/cuda_hash.h"
#include "gen/cuda_travel.h"
#include "gen/nvml_handles.h"
#include "gen/nvml_hash.h"
#include "gen/nvml_travel.h"

#define HANDLE(type, n) ((type)(uintptr_t)(n))
#define CHANGED 1000 /* added to every handle that is visited */

/* "kind:value " of everything visited, up to `stop` things. */
struct seen {
    char text[512];
    int count;
    int stop; /* 0 for never */
};

static void
note(struct seen *s, const char *kind, uint64_t value)
{
    const size_t n = strlen(s->text);

    snprintf(s->text + n, sizeof s->text - n, "%s:%llu ", kind, (unsigned long long)value);
    s->count++;
}

static int
see(void *arg, const char *kind, uint64_t *handle)
{
    struct seen *s = arg;

    note(s, kind, *handle);
    *handle += CHANGED;
    return s->stop && s->count == s->stop ? -42 : 0;
}

static int
see_address(void *arg, const char *kind, uint64_t address)
{
    note(arg, kind, address);
    return 0;
}

#define SEES(walk, call, args, expected)                                         \
    do {                                                                         \
        struct seen s_ = {.count = 0};                                           \
                                                                                 \
        assert_int_equal(hed_cuda_each_##walk(HED_##call, (args), see, &s_), 0); \
        assert_string_equal(s_.text, (expected));                                \
    } while (0)

#define SEES_ADDRESSES(call, args, expected)                                              \
    do {                                                                                  \
        struct seen s_ = {.count = 0};                                                    \
                                                                                          \
        assert_int_equal(hed_cuda_each_address(HED_##call, (args), see_address, &s_), 0); \
        assert_string_equal(s_.text, (expected));                                         \
    } while (0)

static void
a_launch_and_its_attributes(void **state)
{
    CUlaunchAttribute attrs[] = {
        {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
         .value.programmaticEvent.event = HANDLE(CUevent, 3)},
        {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = 4},
        {.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
         .value.launchCompletionEvent.event = HANDLE(CUevent, 5)},
        {.id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
         .value.accessPolicyWindow.base_ptr = HANDLE(void *, 6)},
    };
    CUlaunchConfig config = {.hStream = HANDLE(CUstream, 2), .attrs = attrs, .numAttrs = 4};
    struct hed_cuOccupancyMaxActiveClusters a = {.func = HANDLE(CUfunction, 1), .config = &config};

    SEES(in, cuOccupancyMaxActiveClusters, &a, "function:1 stream:2 event:3 event:5 ");
    assert_ptr_equal(a.func, HANDLE(void *, 1 + CHANGED));
    assert_ptr_equal(config.hStream, HANDLE(void *, 2 + CHANGED));
    assert_ptr_equal(attrs[0].value.programmaticEvent.event, HANDLE(void *, 3 + CHANGED));
    assert_int_equal(attrs[1].value.priority, 4);
    assert_ptr_equal(attrs[2].value.launchCompletionEvent.event, HANDLE(void *, 5 + CHANGED));
    SEES_ADDRESSES(cuOccupancyMaxActiveClusters, &a, "device:6 ");
    config.attrs = NULL; /* its count is 4 */
    SEES(in, cuOccupancyMaxActiveClusters, &a, "function:1001 stream:1002 ");
    a.config = NULL;
    SEES(in, cuOccupancyMaxActiveClusters, &a, "function:2001 ");
}

static void
graph_nodes_by_their_type(void **state)
{
    CUgraphNode before[] = {HANDLE(CUgraphNode, 7), HANDLE(CUgraphNode, 8)};
    CUgraphNode made = HANDLE(CUgraphNode, 9);
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    struct hed_cuGraphAddNode_v2 a = {.phGraphNode = &made,
                                      .hGraph = HANDLE(CUgraph, 1),
                                      .dependencies = before,
                                      .numDependencies = 2,
                                      .nodeParams = &params};

    params.kernel.func = HANDLE(CUfunction, 2);
    params.kernel.kern = HANDLE(CUkernel, 3);
    params.kernel.ctx = HANDLE(CUcontext, 4);
    SEES(in, cuGraphAddNode_v2, &a,
         "graph:1 graphNode:7 graphNode:8 function:2 kernel:3 context:4 ");
    assert_ptr_equal(before[1], HANDLE(void *, 8 + CHANGED));
    SEES(new, cuGraphAddNode_v2, &a, "graphNode:9 ");
    assert_ptr_equal(made, HANDLE(void *, 9 + CHANGED));
    SEES_ADDRESSES(cuGraphAddNode_v2, &a, "host:0 host:0 ");

    params = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_HOST};
    params.host.fn = HANDLE(CUhostFn, 5);
    a = (struct hed_cuGraphAddNode_v2){.nodeParams = &params};
    SEES(in, cuGraphAddNode_v2, &a, "graph:0 ");
    SEES(new, cuGraphAddNode_v2, &a, "");
    SEES_ADDRESSES(cuGraphAddNode_v2, &a, "function:5 host:0 ");

    params = (CUgraphNodeParams){.type = (CUgraphNodeType)77}; /* a type that we do not know */
    SEES(in, cuGraphAddNode_v2, &a, "graph:1000 ");
}

static void
nodes_with_lists_of_their_own(void **state)
{
    CUexternalSemaphore semaphores[] = {HANDLE(CUexternalSemaphore, 3),
                                        HANDLE(CUexternalSemaphore, 4)};
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v1 p = {.extSemArray = semaphores, .numExtSems = 2};
    struct hed_cuGraphExternalSemaphoresSignalNodeSetParams a = {.hNode = HANDLE(CUgraphNode, 1),
                                                                 .nodeParams = &p};

    SEES(in, cuGraphExternalSemaphoresSignalNodeSetParams, &a,
         "graphNode:1 externalSemaphore:3 externalSemaphore:4 ");

    /* What comes out has pointers into the driver's memory, which must not be changed. */
    struct hed_cuGraphExternalSemaphoresSignalNodeGetParams b = {.params_out = &p};

    SEES(out, cuGraphExternalSemaphoresSignalNodeGetParams, &b, "");
    assert_ptr_equal(semaphores[0], HANDLE(void *, 3 + CHANGED));
}

static void
copies_by_their_memory_type(void **state)
{
    CUDA_MEMCPY3D_v2 copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                             .srcHost = HANDLE(void *, 1),
                             .srcDevice = 2,
                             .srcArray = HANDLE(CUarray, 3),
                             .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                             .dstHost = HANDLE(void *, 4),
                             .dstDevice = 5,
                             .dstArray = HANDLE(CUarray, 6)};
    struct hed_cuMemcpy3DAsync_v2 a = {.pCopy = &copy, .hStream = HANDLE(CUstream, 7)};

    SEES(in, cuMemcpy3DAsync_v2, &a, "array:6 stream:7 ");
    SEES_ADDRESSES(cuMemcpy3DAsync_v2, &a, "host:1 host:0 host:0 ");
    copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    SEES_ADDRESSES(cuMemcpy3DAsync_v2, &a, "device:2 host:0 host:0 ");
}

static void
batches(void **state)
{
    CUstreamBatchMemOpParams_v1 ops[2] = {{.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32},
                                          {.operation = CU_STREAM_MEM_OP_BARRIER}};
    struct hed_cuStreamBatchMemOp_v2 a = {
        .stream = HANDLE(CUstream, 1), .count = 2, .paramArray = ops};

    ops[0].waitValue.address = 5;
    SEES(in, cuStreamBatchMemOp_v2, &a, "stream:1 ");
    SEES_ADDRESSES(cuStreamBatchMemOp_v2, &a, "device:5 device:0 ");
}

static void
what_ends_and_what_only_comes_out(void **state)
{
    struct hed_cuStreamDestroy_v2 destroy = {.hStream = HANDLE(CUstream, 1)};
    CUgraphNode nodes[3] = {HANDLE(CUgraphNode, 1), HANDLE(CUgraphNode, 2), HANDLE(CUgraphNode, 3)};
    size_t count = 2;
    struct hed_cuGraphGetNodes get = {
        .hGraph = HANDLE(CUgraph, 9), .nodes = nodes, .numNodes = &count};
    CUgraphExecUpdateResultInfo_v1 info = {.errorNode = HANDLE(CUgraphNode, 4),
                                           .errorFromNode = HANDLE(CUgraphNode, 5)};
    struct hed_cuGraphExecUpdate_v2 update = {.resultInfo = &info};
    CUdeviceptr at = 1;
    struct hed_cuMemAlloc_v2 alloc = {.dptr = &at};

    SEES(freed, cuStreamDestroy_v2, &destroy, "stream:1 ");
    SEES(freed, cuGraphGetNodes, &get, "");
    SEES(out, cuGraphGetNodes, &get, "graphNode:1 graphNode:2 ");
    SEES(new, cuGraphGetNodes, &get, "");
    get.numNodes = NULL;
    SEES(out, cuGraphGetNodes, &get, "");
    SEES(failed, cuGraphExecUpdate_v2, &update, "graphNode:4 graphNode:5 ");
    /* An address is not a handle, although it is new. */
    SEES(new, cuMemAlloc_v2, &alloc, "");
}

static void
the_first_refusal_ends_the_walk(void **state)
{
    struct seen s = {.stop = 1};
    struct hed_cuStreamWaitEvent a = {.hStream = HANDLE(CUstream, 1), .hEvent = HANDLE(CUevent, 2)};

    assert_int_equal(hed_cuda_each_in(HED_cuStreamWaitEvent, &a, see, &s), -42);
    assert_string_equal(s.text, "stream:1 ");
    assert_ptr_equal(a.hEvent, HANDLE(void *, 2));
    assert_int_equal(hed_cuda_each_in(HED_CUDA_CALLS, &a, see, &s), 0);
    assert_int_equal(hed_cuda_each_in((enum hed_cuda_call)0, &a, see, &s), 0);
}

static void
nvml_devices(void **state)
{
    struct seen s = {.count = 0};
    unsigned int count = 1;
    nvmlDevice_t list[1] = {HANDLE(nvmlDevice_t, 6)};
    struct hed_nvmlDeviceGetTopologyNearestGpus a = {
        .device = HANDLE(nvmlDevice_t, 5), .count = &count, .deviceArray = list};
    uint64_t rooms[HED_NVML_ROOMS];

    assert_int_equal(hed_nvml_each_in(HED_nvmlDeviceGetTopologyNearestGpus, &a, see, &s), 0);
    assert_string_equal(s.text, "device:5 ");
    hed_nvml_rooms(HED_nvmlDeviceGetTopologyNearestGpus, &a, rooms);
    assert_true(hed_nvml_rooms_fit(HED_nvmlDeviceGetTopologyNearestGpus, &a, rooms));
    count = 2;
    assert_false(hed_nvml_rooms_fit(HED_nvmlDeviceGetTopologyNearestGpus, &a, rooms));
    a.deviceArray = NULL; /* only asks how many there are */
    assert_true(hed_nvml_rooms_fit(HED_nvmlDeviceGetTopologyNearestGpus, &a, rooms));
}

static void
structs_that_say_their_size(void **state)
{
    nvmlMemory_v2_t memory = {.version = sizeof memory | 2u << 24};
    const struct hed_nvmlDeviceGetMemoryInfo_v2 a = {.memory = &memory};

    assert_true(hed_nvml_sizes_fit(HED_nvmlDeviceGetMemoryInfo_v2, &a));
    memory.version += 8;
    assert_false(hed_nvml_sizes_fit(HED_nvmlDeviceGetMemoryInfo_v2, &a));
    assert_true(hed_nvml_sizes_fit(HED_nvmlDeviceGetMemoryInfo_v2,
                                   &(struct hed_nvmlDeviceGetMemoryInfo_v2){.memory = NULL}));
}

static void
what_can_travel(void **state)
{
    static const enum hed_cuda_call can[] = {HED_cuEventCreate,        HED_cuMemcpy3DAsync_v2,
                                             HED_cuMemCreate,          HED_cuGraphAddNode_v2,
                                             HED_cuMemcpyDtoDAsync_v2, HED_cuMemPoolCreate};
    static const enum hed_cuda_call cannot[] = {
        HED_cuLaunchKernel,          HED_cuLaunchHostFunc,
        HED_cuMemAllocHost_v2,       HED_cuModuleLoad,
        HED_cuGetProcAddress,        HED_cuIpcOpenMemHandle_v2,
        HED_cuImportExternalMemory,  HED_cuGraphDebugDotPrint,
        HED_cuCheckpointProcessLock, HED_CUDA_CALLS,
        (enum hed_cuda_call)0};

    for (size_t i = 0; i < sizeof can / sizeof *can; i++)
        assert_true(hed_cuda_can_travel(can[i]));
    for (size_t i = 0; i < sizeof cannot / sizeof *cannot; i++) {
        assert_false(hed_cuda_can_travel(cannot[i]));
        assert_false(hed_cuda_can_answer(cannot[i]));
    }
    assert_true(hed_cuda_can_answer(HED_cuEventElapsedTime));
    assert_false(hed_cuda_can_answer(HED_cuGraphAddNode_v2));
    assert_true(hed_nvml_can_travel(HED_nvmlDeviceGetUtilizationRates));
    assert_false(hed_nvml_can_travel(HED_nvmlDeviceSetPersistenceMode));
    assert_false(hed_nvml_can_travel(HED_nvmlSystemGetProcessName));
    assert_true(HED_CUDA_HASH != HED_NVML_HASH);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_launch_and_its_attributes),
    cmocka_unit_test(graph_nodes_by_their_type),
    cmocka_unit_test(nodes_with_lists_of_their_own),
    cmocka_unit_test(copies_by_their_memory_type),
    cmocka_unit_test(batches),
    cmocka_unit_test(what_ends_and_what_only_comes_out),
    cmocka_unit_test(the_first_refusal_ends_the_walk),
    cmocka_unit_test(nvml_devices),
    cmocka_unit_test(structs_that_say_their_size),
    cmocka_unit_test(what_can_travel),
};

HED_UNIT_MAIN(tests)
