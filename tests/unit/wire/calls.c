/* Tests of calls as bytes, with hand-written arguments: calls with nested data arrive field by
 * field. */
#include "harness/unit.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/pack.h"
#include "gen/cuda_wire.h"
#include "gen/nvml_wire.h"

static struct hed_arena arena;
static uint8_t bytes[65536];

static int
setup(void **state)
{
    hed_arena_init(&arena, 1 << 20);
    return 0;
}

static int
teardown(void **state)
{
    hed_arena_fini(&arena);
    return 0;
}

#define SEND(api, part, call, from, to, ...)                            \
    do {                                                                \
        struct hed_enc e_ = hed_enc_over(bytes, sizeof bytes);          \
        struct hed_dec d_;                                              \
                                                                        \
        hed_##api##_put_##part(&e_, HED_##call, (from), ##__VA_ARGS__); \
        assert_int_equal(e_.err, 0);                                    \
        d_ = hed_dec_over(bytes, (size_t)(e_.at - bytes), &arena);      \
        hed_##api##_get_##part(&d_, HED_##call, (to), ##__VA_ARGS__);   \
        assert_int_equal(d_.err, 0);                                    \
        assert_ptr_equal(d_.at, d_.end);                                \
    } while (0)

/* The request of a call, as the other side sees it. */
#define REQUEST(call, from, to) SEND(cuda, request, call, from, to)
#define REPLY(call, from, to) SEND(cuda, reply, call, from, to, 0)
#define FAILURE(call, from, to, result) SEND(cuda, reply, call, from, to, result)

#define HANDLE(type, n) ((type)(uintptr_t)(n))

static void
launch_with_attributes(void **state)
{
    CUlaunchAttribute attrs[3] = {
        {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {2, 3, 4}},
        {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
         .value.programmaticEvent = {HANDLE(CUevent, 0x77), 5, 6}},
        {.id = 0x7fffff, .value.pad = "an attribute of tomorrow"},
    };
    const CUlaunchConfig config = {1, 2, 3, 4, 5, 6, 7, HANDLE(CUstream, 8), attrs, 3};
    const struct hed_cuLaunchKernelEx a = {&config, HANDLE(CUfunction, 9), HANDLE(void **, 10),
                                           HANDLE(void **, 11), true};
    struct hed_cuLaunchKernelEx b = {0};

    REQUEST(cuLaunchKernelEx, &a, &b);
    assert_ptr_equal(b.f, a.f);
    assert_ptr_equal(b.kernelParams, a.kernelParams); /* by_hand: sent as an address */
    assert_ptr_equal(b.extra, a.extra);
    assert_true(b.ptds);
    assert_int_equal(b.config->gridDimZ, 3);
    assert_int_equal(b.config->sharedMemBytes, 7);
    assert_ptr_equal(b.config->hStream, config.hStream);
    assert_int_equal(b.config->numAttrs, 3);
    assert_ptr_not_equal(b.config->attrs, attrs);
    assert_int_equal(b.config->attrs[0].value.clusterDim.z, 4);
    assert_ptr_equal(b.config->attrs[1].value.programmaticEvent.event, (void *)0x77);
    assert_int_equal(b.config->attrs[1].value.programmaticEvent.triggerAtBlockStart, 6);
    assert_memory_equal(b.config->attrs[2].value.pad, attrs[2].value.pad, 64);
}

static void
launch_without_configuration(void **state)
{
    const struct hed_cuLaunchKernelEx a = {0};
    struct hed_cuLaunchKernelEx b = {.config = (const void *)1, .ptds = true};

    REQUEST(cuLaunchKernelEx, &a, &b);
    assert_null(b.config);
    assert_false(b.ptds);
}

static void
counts_must_be_true(void **state)
{
    CUlaunchAttribute attr = {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY};
    CUlaunchConfig config = {.attrs = &attr, .numAttrs = 1};
    const struct hed_cuLaunchKernelEx a = {.config = &config};
    struct hed_cuLaunchKernelEx b = {0};
    struct hed_enc e = hed_enc_over(bytes, sizeof bytes);

    hed_cuda_put_request(&e, HED_cuLaunchKernelEx, &a);

    /* The count lies after the array, before the function, two addresses and the flag. */
    const size_t n = (size_t)(e.at - bytes);
    uint32_t count;

    memcpy(&count, e.at - 8 * 3 - 1 - 4, 4);
    assert_int_equal(count, 1);
    count = 1000;
    memcpy(e.at - 8 * 3 - 1 - 4, &count, 4);

    struct hed_dec d = hed_dec_over(bytes, n, &arena);

    hed_cuda_get_request(&d, HED_cuLaunchKernelEx, &b);
    assert_int_equal(d.err, HED_EFORMAT);
}

static void
graph_node_of_every_kind(void **state)
{
    CUexternalSemaphore semaphores[2] = {HANDLE(CUexternalSemaphore, 1),
                                         HANDLE(CUexternalSemaphore, 2)};
    const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_v1 signals[2] = {{.flags = 7}, {.flags = 8}};
    const CUgraphNode depends[2] = {HANDLE(CUgraphNode, 3), HANDLE(CUgraphNode, 4)};
    CUgraphNode node = NULL;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL, .reserved2 = 11};
    struct hed_cuGraphAddNode_v2 a = {&node, HANDLE(CUgraph, 5), depends, NULL, 2, &params};
    struct hed_cuGraphAddNode_v2 b = {0};

    params.extSemSignal = (CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2){semaphores, signals, 2};
    REQUEST(cuGraphAddNode_v2, &a, &b);
    assert_null(b.dependencyData);
    assert_ptr_equal(b.dependencies[1], depends[1]);
    assert_ptr_equal(b.nodeParams->extSemSignal.extSemArray[1], semaphores[1]);
    assert_int_equal(b.nodeParams->extSemSignal.paramsArray[1].flags, 8);
    assert_int_equal(b.nodeParams->reserved2, 11);
    assert_non_null(b.phGraphNode);

    params.type = CU_GRAPH_NODE_TYPE_MEMSET;
    params.memset = (CUDA_MEMSET_NODE_PARAMS_v2){.dst = 1, .width = 17, .height = 18};
    REQUEST(cuGraphAddNode_v2, &a, &b);
    assert_true(b.nodeParams->memset.width == 17 && b.nodeParams->memset.height == 18);

    /* The reply brings the new node, and what the driver wrote into the parameters. */
    *b.phGraphNode = HANDLE(CUgraphNode, 99);
    b.nodeParams->memset.value = 21;
    REPLY(cuGraphAddNode_v2, &b, &a);
    assert_ptr_equal(node, (void *)99);
    assert_int_equal(params.memset.value, 21);
}

static void
copy_in_three_dimensions(void **state)
{
    CUDA_MEMCPY3D_v2 copy;
    struct hed_cuMemcpy3D_v2 a = {.pCopy = &copy};
    struct hed_cuMemcpy3D_v2 b = {0};

    for (size_t i = 0; i < sizeof copy / 8; i++)
        ((uint64_t *)(void *)&copy)[i] = 0x100 + i;
    REQUEST(cuMemcpy3D_v2, &a, &b);
    /* It has padding after its two enums, nowhere else. */
    CUDA_MEMCPY3D_v2 got = *b.pCopy;

    assert_int_equal(got.srcMemoryType, copy.srcMemoryType);
    assert_int_equal(got.dstMemoryType, copy.dstMemoryType);
    memcpy((char *)&got + offsetof(CUDA_MEMCPY3D_v2, srcMemoryType),
           (char *)&copy + offsetof(CUDA_MEMCPY3D_v2, srcMemoryType), 8);
    memcpy((char *)&got + offsetof(CUDA_MEMCPY3D_v2, dstMemoryType),
           (char *)&copy + offsetof(CUDA_MEMCPY3D_v2, dstMemoryType), 8);
    assert_memory_equal(&got, &copy, sizeof copy);
}

static void
context_with_parameters(void **state)
{
    CUexecAffinityParam_v1 affinity[1] = {
        {.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT, .param.smCount.val = 13}};
    CUctxCigParam cig = {.sharedData = (void *)0x1234};
    CUctxCreateParams params = {affinity, 1, &cig};
    struct hed_cuCtxCreate_v4 a = {NULL, &params, 3, 4};
    struct hed_cuCtxCreate_v4 b = {0};

    REQUEST(cuCtxCreate_v4, &a, &b);
    assert_null(b.pctx); /* the caller gave no pointer for it, and the other side knows */
    assert_int_equal(b.ctxCreateParams->execAffinityParams[0].param.smCount.val, 13);
    assert_ptr_equal(b.ctxCreateParams->cigParams->sharedData, (void *)0x1234);
    params = (CUctxCreateParams){0};
    REQUEST(cuCtxCreate_v4, &a, &b);
    assert_null(b.ctxCreateParams->execAffinityParams);
    assert_null(b.ctxCreateParams->cigParams);
}

static void
memory_operations_of_every_kind(void **state)
{
    CUstreamBatchMemOpParams_v1 ops[3] = {{0}};
    struct hed_cuStreamBatchMemOp_v2 a = {HANDLE(CUstream, 1), 3, ops, 7, false};
    struct hed_cuStreamBatchMemOp_v2 b = {0};

    ops[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    ops[0].writeValue.value64 = 0x1122334455667788;
    ops[1].memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
    ops[1].memoryBarrier.flags = 9;
    ops[2].pad[0] = 0x7fff; /* an operation of a later version */
    ops[2].pad[5] = 55;
    REQUEST(cuStreamBatchMemOp_v2, &a, &b);
    assert_true(b.paramArray[0].writeValue.value64 == 0x1122334455667788);
    assert_int_equal(b.paramArray[1].memoryBarrier.flags, 9);
    assert_true(b.paramArray[2].pad[0] == 0x7fff && b.paramArray[2].pad[5] == 55);
}

static void
texture_of_every_kind(void **state)
{
    CUtexObject texture = 0;
    CUDA_RESOURCE_DESC_v1 resource = {.resType = CU_RESOURCE_TYPE_PITCH2D, .flags = 3};
    const CUDA_TEXTURE_DESC_v1 desc = {.borderColor = {1, 2, 3, 4}, .maxMipmapLevelClamp = 1.5f};
    struct hed_cuTexObjectCreate a = {&texture, &resource, &desc, NULL};
    struct hed_cuTexObjectCreate b = {0};

    resource.res.pitch2D.pitchInBytes = 512;
    REQUEST(cuTexObjectCreate, &a, &b);
    assert_true(b.pResDesc->res.pitch2D.pitchInBytes == 512);
    assert_true(b.pTexDesc->borderColor[3] == 4 && b.pTexDesc->maxMipmapLevelClamp == 1.5f);
    assert_null(b.pResViewDesc);
    *b.pTexObject = 0xabcdef;
    REPLY(cuTexObjectCreate, &b, &a);
    assert_true(texture == 0xabcdef);
}

static void
stream_attribute_by_its_number(void **state)
{
    const CUlaunchAttributeValue value = {.priority = -3};
    const struct hed_cuStreamSetAttribute a = {NULL, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value, true};
    struct hed_cuStreamSetAttribute b = {0};

    REQUEST(cuStreamSetAttribute, &a, &b);
    assert_int_equal(b.param->priority, -3);
}

static void
data_comes_back_into_the_callers_memory(void **state)
{
    char host[16] = "---------------";
    struct hed_cuMemcpyDtoH_v2 a = {host, 5, 8, false};
    struct hed_cuMemcpyDtoH_v2 b = {0};

    REQUEST(cuMemcpyDtoH_v2, &a, &b);
    assert_true(b.ByteCount == 8);
    memcpy(b.dstHost, "12345678", 8);
    REPLY(cuMemcpyDtoH_v2, &b, &a);
    assert_string_equal(host, "12345678-------");

    /* A reply with more than the caller has room for. */
    struct hed_enc e = hed_enc_over(bytes, sizeof bytes);

    b.ByteCount = 8;
    hed_cuda_put_reply(&e, HED_cuMemcpyDtoH_v2, &b, 0);
    a.ByteCount = 7;

    struct hed_dec d = hed_dec_over(bytes, (size_t)(e.at - bytes), &arena);

    memset(host, '-', 15);
    hed_cuda_get_reply(&d, HED_cuMemcpyDtoH_v2, &a, 0);
    assert_int_equal(d.err, HED_EFORMAT);
    assert_string_equal(host, "---------------");
}

static void
counts_that_change_on_the_way_back(void **state)
{
    nvmlProcessInfo_t infos[4] = {{0}};
    unsigned count = 4;
    struct hed_nvmlDeviceGetComputeRunningProcesses_v3 a = {NULL, &count, infos};
    struct hed_nvmlDeviceGetComputeRunningProcesses_v3 b = {0};

    SEND(nvml, request, nvmlDeviceGetComputeRunningProcesses_v3, &a, &b);
    assert_int_equal(*b.infoCount, 4);
    *b.infoCount = 2;
    b.infos[1].pid = 321;
    SEND(nvml, reply, nvmlDeviceGetComputeRunningProcesses_v3, &b, &a, 0);
    assert_int_equal(count, 2);
    assert_int_equal(infos[1].pid, 321);

    /* Only the count is asked for. */
    a.infos = NULL;
    count = 0;
    memset(&b, 0, sizeof b);
    SEND(nvml, request, nvmlDeviceGetComputeRunningProcesses_v3, &a, &b);
    assert_null(b.infos);
    *b.infoCount = 77;
    SEND(nvml, reply, nvmlDeviceGetComputeRunningProcesses_v3, &b, &a, 0);
    assert_int_equal(count, 77);
}

static void
replies_that_promise_more_are_refused(void **state)
{
    CUgraphNode nodes[2];
    size_t count = 2;
    struct hed_cuGraphGetNodes a = {NULL, nodes, &count};
    struct hed_enc e = hed_enc_over(bytes, sizeof bytes);

    hed_put_u32(&e, 2);
    hed_put_u32(&e, 2);
    hed_put_u64(&e, 1);
    hed_put_u64(&e, 2);
    hed_put_u64(&e, 1000); /* the count says 1000 nodes, but there are two */

    struct hed_dec d = hed_dec_over(bytes, (size_t)(e.at - bytes), &arena);

    hed_cuda_get_reply(&d, HED_cuGraphGetNodes, &a, 0);
    assert_int_equal(d.err, HED_EFORMAT);
}

static void
texts_in_and_out(void **state)
{
    const char *text = NULL;
    struct hed_cuGetErrorString a = {CUDA_ERROR_ASSERT, &text};
    struct hed_cuGetErrorString b = {0};
    char name[8] = "";
    struct hed_cuDeviceGetName c = {name, 8, 0};
    struct hed_cuDeviceGetName d = {0};

    REQUEST(cuGetErrorString, &a, &b);
    *b.pStr = "a text";
    REPLY(cuGetErrorString, &b, &a);
    assert_string_equal(text, "a text");
    REQUEST(cuDeviceGetName, &c, &d);
    memcpy(d.name, "H200", 5);
    REPLY(cuDeviceGetName, &d, &c);
    assert_string_equal(name, "H200");
}

static void
room_for_outputs_is_bounded(void **state)
{
    struct hed_cuMemcpyDtoH_v2 a = {bytes, 0, SIZE_MAX, false};
    struct hed_cuMemcpyDtoH_v2 b = {0};
    struct hed_enc e = hed_enc_over(bytes, sizeof bytes);

    hed_cuda_put_request(&e, HED_cuMemcpyDtoH_v2, &a);

    struct hed_dec d = hed_dec_over(bytes, (size_t)(e.at - bytes), &arena);

    hed_cuda_get_request(&d, HED_cuMemcpyDtoH_v2, &b);
    assert_int_equal(d.err, HED_ELIMIT);
    assert_null(b.dstHost);
}

/* What a failing call sets comes back, and nothing else. */
static void
failures_that_set_outputs(void **state)
{
    void *pfn = NULL;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    CUdriverProcAddressQueryResult status_back = CU_GET_PROC_ADDRESS_SUCCESS;
    void *pfn_back = HANDLE(void *, 0x55);
    const struct hed_cuGetProcAddress_v2 from = {
        .symbol = "cuX", .pfn = &pfn, .symbolStatus = &status};
    struct hed_cuGetProcAddress_v2 to = {
        .symbol = "cuX", .pfn = &pfn_back, .symbolStatus = &status_back};

    FAILURE(cuGetProcAddress_v2, &from, &to, CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(status_back, CU_GET_PROC_ADDRESS_SUCCESS);
    FAILURE(cuGetProcAddress_v2, &from, &to, CUDA_ERROR_NOT_FOUND);
    assert_int_equal(status_back, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    assert_ptr_equal(pfn_back, HANDLE(void *, 0x55));

    size_t at = 7;
    size_t at_back = 0;
    const struct hed_cuMemcpyBatchAsync batch = {.failIdx = &at};
    struct hed_cuMemcpyBatchAsync batch_back = {.failIdx = &at_back};

    FAILURE(cuMemcpyBatchAsync, &batch, &batch_back, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(at_back, 7);
    batch_back.failIdx = NULL;
    FAILURE(cuMemcpyBatchAsync, &(struct hed_cuMemcpyBatchAsync){0}, &batch_back,
            CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* A count that says how much room was missing does not bring the array with it. */
static void
counts_of_arrays_that_are_too_short(void **state)
{
    unsigned int clocks[1] = {9};
    unsigned int count = 40;
    unsigned int back = 1;
    const struct hed_nvmlDeviceGetSupportedMemoryClocks from = {.count = &count,
                                                                .clocksMHz = clocks};
    struct hed_nvmlDeviceGetSupportedMemoryClocks to = {.count = &back, .clocksMHz = clocks};

    SEND(nvml, reply, nvmlDeviceGetSupportedMemoryClocks, &from, &to, NVML_ERROR_INSUFFICIENT_SIZE);
    assert_int_equal(back, 40);
    assert_int_equal(clocks[0], 9);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(launch_with_attributes, setup, teardown),
    cmocka_unit_test_setup_teardown(launch_without_configuration, setup, teardown),
    cmocka_unit_test_setup_teardown(counts_must_be_true, setup, teardown),
    cmocka_unit_test_setup_teardown(graph_node_of_every_kind, setup, teardown),
    cmocka_unit_test_setup_teardown(copy_in_three_dimensions, setup, teardown),
    cmocka_unit_test_setup_teardown(context_with_parameters, setup, teardown),
    cmocka_unit_test_setup_teardown(memory_operations_of_every_kind, setup, teardown),
    cmocka_unit_test_setup_teardown(texture_of_every_kind, setup, teardown),
    cmocka_unit_test_setup_teardown(stream_attribute_by_its_number, setup, teardown),
    cmocka_unit_test_setup_teardown(data_comes_back_into_the_callers_memory, setup, teardown),
    cmocka_unit_test_setup_teardown(counts_that_change_on_the_way_back, setup, teardown),
    cmocka_unit_test_setup_teardown(replies_that_promise_more_are_refused, setup, teardown),
    cmocka_unit_test_setup_teardown(texts_in_and_out, setup, teardown),
    cmocka_unit_test_setup_teardown(room_for_outputs_is_bounded, setup, teardown),
    cmocka_unit_test_setup_teardown(failures_that_set_outputs, setup, teardown),
    cmocka_unit_test_setup_teardown(counts_of_arrays_that_are_too_short, setup, teardown),
};

HED_UNIT_MAIN(tests)
