/* Memory pools and virtual memory management of the soft driver. The expected errors are those of
 * NVIDIA's driver 580 on an H200. */
#include "driver/graph/graph.h"
#include "driver/memory/memory.h"
#include "unit/driver/memory_make.h"

static uint64_t
attribute(struct fake *f, CUmemoryPool pool, CUmemPool_attribute what)
{
    uint64_t v = 0;

    ok(fake_call(f, cuMemPoolGetAttribute, pool, what, &v));
    return v;
}

static CUmemoryPool
default_pool(struct fake *f)
{
    CUmemoryPool pool = NULL;

    ok(fake_call(f, cuDeviceGetDefaultMemPool, &pool, 0));
    return pool;
}

static CUmemoryPool
made(struct fake *f, CUmemLocationType where, size_t most)
{
    const CUmemPoolProps_v1 props = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = where}, .maxSize = most};
    CUmemoryPool pool = NULL;

    ok(fake_call(f, cuMemPoolCreate, &pool, &props));
    return pool;
}

static _Atomic bool gate;

static void
wait_for_gate(void *data)
{
    while (!atomic_load(&gate))
        ;
}

/* ---- pools ----------------------------------------------------------------------------------- */

static void
pools_count_what_they_have(void **state)
{
    struct fake *f = ready(1);
    const CUmemoryPool pool = default_pool(f);
    CUdeviceptr p = 0, none = 1;

    assert_int_equal(attribute(f, pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC), 1);
    assert_int_equal(attribute(f, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 0);
    ok(fake_call(f, cuMemAllocAsync, &none, 0, NULL));
    ok(fake_call(f, cuMemAllocAsync, &p, 100, NULL));
    memset(host(p), 1, 100);
    assert_int_equal(attribute(f, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 32 * MIB);
    assert_int_equal(attribute(f, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 100);
    assert_int_equal(used(f), 32 * MIB);
    ok(fake_call(f, cuMemFreeAsync, p, NULL));
    ok(fake_call(f, cuCtxSynchronize));
    assert_int_equal(attribute(f, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
    assert_int_equal(attribute(f, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 32 * MIB);
    assert_int_equal(attribute(f, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
    assert_int_equal(attribute(f, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 100);
    bad(fake_call(f, cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &(uint64_t){5}));
    ok(fake_call(f, cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &(uint64_t){0}));
    assert_int_equal(attribute(f, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0);
    bad(fake_call(f, cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
                  &(uint64_t){0}));
    bad(fake_call(f, cuMemPoolSetAttribute, pool, 99, &(uint64_t){0}));
    bad(fake_call(f, cuMemPoolGetAttribute, pool, 99, &none));
    bad(fake_call(f, cuMemPoolGetAttribute, NULL, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &none));
    assert_int_equal(used(f), 0);
    fake_free(f);
}

static void
a_pool_keeps_up_to_its_threshold(void **state)
{
    struct fake *f = ready(1);
    const CUmemoryPool pool = default_pool(f);
    CUdeviceptr p = 0;

    ok(fake_call(f, cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                 &(uint64_t){64 * MIB}));
    for (int i = 0; i < 100; i++) {
        ok(fake_call(f, cuMemAllocAsync, &p, 20 * MIB, NULL));
        ok(fake_call(f, cuMemFreeAsync, p, NULL));
    }
    ok(fake_call(f, cuCtxSynchronize));
    assert_int_equal(attribute(f, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 32 * MIB);
    assert_int_equal(f->maps, 1);
    ok(fake_call(f, cuMemPoolTrimTo, pool, 0));
    assert_int_equal(attribute(f, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
    assert_int_equal(used(f), 0);
    fake_free(f);
}

static void
what_a_pool_keeps_is_there_for_others(void **state)
{
    struct fake *f = ready(1);
    CUdeviceptr p = 0;

    ok(fake_call(f, cuMemPoolSetAttribute, default_pool(f), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                 &(uint64_t){UINT64_MAX}));
    ok(fake_call(f, cuMemAllocAsync, &p, 5ull << 30, NULL));
    ok(fake_call(f, cuMemFreeAsync, p, NULL));
    ok(fake_call(f, cuCtxSynchronize));
    assert_int_equal(used(f), 5ull << 30);
    ok(fake_call(f, cuMemAlloc_v2, &p, 4ull << 30));
    assert_int_equal(used(f), 4ull << 30);
    fake_free(f);
}

static void
frees_wait_for_the_stream(void **state)
{
    struct fake *f = ready(1);
    CUdeviceptr p = 0, q = 0, plain = 0;
    CUstream s = NULL, other = NULL;

    ok(fake_call(f, cuStreamCreate, &s, CU_STREAM_NON_BLOCKING));
    ok(fake_call(f, cuStreamCreate, &other, CU_STREAM_NON_BLOCKING));
    ok(fake_call(f, cuMemAllocAsync, &p, 1000, s));
    ok(fake_call(f, cuMemAlloc_v2, &plain, 1000));
    atomic_store(&gate, false);
    ok(fake_call(f, cuLaunchHostFunc, s, wait_for_gate, NULL));
    ok(fake_call(f, cuMemFreeAsync, p, s));
    ok(fake_call(f, cuMemFreeAsync, plain, s));
    /* The program may not use it any more, but earlier work on the stream may. */
    bad(fake_call(f, cuMemFreeAsync, p, s));
    bad(fake_call(f, cuMemFreeAsync, plain, s));
    bad(fake_call(f, cuMemFree_v2, p));
    bad(fake_call(f, cuMemsetD8Async, p, 1, 10, s));
    memset(host(p), 1, 1000);
    /* Another stream gets other memory; the same stream may get the same memory. */
    ok(fake_call(f, cuMemAllocAsync, &q, 1000, other));
    assert_int_not_equal(q, p);
    ok(fake_call(f, cuMemFreeAsync, q, other));
    ok(fake_call(f, cuMemAllocAsync, &q, 900, s));
    assert_int_equal(q, p);
    atomic_store(&gate, true);
    ok(fake_call(f, cuStreamSynchronize, s));
    ok(fake_call(f, cuMemsetD8Async, q, 1, 900, s)); /* the earlier free has left it alone */
    ok(fake_call(f, cuMemFreeAsync, q, s));
    ok(fake_call(f, cuStreamSynchronize, s));
    assert_int_equal(used(f), 0);
    bad(fake_call(f, cuMemFreeAsync, 0x1234, s));
    ok(fake_call(f, cuMemFreeAsync, 0, s));
    ok(fake_call(f, cuStreamDestroy_v2, s));
    ok(fake_call(f, cuStreamDestroy_v2, other));
    fake_free(f);
}

static void
an_allocation_waits_for_frees_when_memory_is_short(void **state)
{
    struct fake *f = ready(1);
    CUstream s = NULL, other = NULL;
    CUdeviceptr p = 0, q = 0;

    ok(fake_call(f, cuStreamCreate, &s, 0));
    ok(fake_call(f, cuStreamCreate, &other, 0));
    for (int i = 0; i < 10; i++) {
        ok(fake_call(f, cuMemAllocAsync, &p, FAKE_MEMORY / 2 + MIB, i % 2 ? s : other));
        ok(fake_call(f, cuMemFreeAsync, p, i % 2 ? s : other));
    }
    ok(fake_call(f, cuMemAllocAsync, &p, FAKE_MEMORY / 2 + MIB, s));
    assert_int_equal(fake_call(f, cuMemAllocAsync, &q, FAKE_MEMORY / 2 + MIB, s),
                     CUDA_ERROR_OUT_OF_MEMORY);
    ok(fake_call(f, cuMemFree_v2, p));
    fake_free(f);
}

static void
pools_are_made_and_destroyed(void **state)
{
    struct fake *f = ready(2);
    CUmemPoolProps_v1 props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemoryPool pool = made(f, CU_MEM_LOCATION_TYPE_DEVICE, 0), now = NULL;
    CUmemAccess_flags flags = 0;
    CUdeviceptr p = 0, q = 0;
    uint64_t handle = 0;

    bad(fake_call(f, cuMemPoolDestroy, default_pool(f)));
    ok(fake_call(f, cuDeviceSetMemPool, 0, pool));
    bad(fake_call(f, cuDeviceSetMemPool, 1, pool));
    ok(fake_call(f, cuMemAllocAsync, &p, 100, NULL));
    ok(fake_call(f, cuMemAllocFromPoolAsync, &q, 100, default_pool(f), NULL));
    ok(fake_call(f, cuPointerGetAttribute, &handle, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
    assert_int_equal(handle, (uint64_t)(uintptr_t)pool);
    ok(fake_call(f, cuMemPoolGetAccess, &flags, pool, &(CUmemLocation_v1){1, 0}));
    assert_int_equal(flags, 3);
    ok(fake_call(f, cuMemPoolGetAccess, &flags, pool, &(CUmemLocation_v1){1, 1}));
    assert_int_equal(flags, 0);
    ok(fake_call(f, cuMemPoolSetAccess, pool, &(CUmemAccessDesc_v1){{1, 1}, 1}, 1));
    ok(fake_call(f, cuMemPoolGetAccess, &flags, pool, &(CUmemLocation_v1){1, 1}));
    assert_int_equal(flags, 1);
    assert_int_equal(fake_call(f, cuMemPoolSetAccess, pool, &(CUmemAccessDesc_v1){{1, 0}, 0}, 1),
                     CUDA_ERROR_INVALID_DEVICE);
    ok(fake_call(f, cuMemPoolDestroy, pool));
    bad(fake_call(f, cuMemPoolDestroy, pool));
    ok(fake_call(f, cuDeviceGetMemPool, &now, 0));
    assert_ptr_equal(now, default_pool(f));
    memset(host(p), 1, 100); /* the allocation outlives its pool */
    ok(fake_call(f, cuMemFree_v2, p));
    ok(fake_call(f, cuMemFree_v2, q));
    assert_int_equal(used(f), 0);
    props.allocType = 0;
    bad(fake_call(f, cuMemPoolCreate, &pool, &props));
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.id = 9;
    bad(fake_call(f, cuMemPoolCreate, &pool, &props));
    props.location = (CUmemLocation_v1){0};
    bad(fake_call(f, cuMemPoolCreate, &pool, &props));
    bad(fake_call(f, cuMemPoolCreate, &pool, NULL));
    fake_free(f);
}

static void
pools_of_the_host_and_with_a_limit(void **state)
{
    struct fake *f = ready(1);
    CUmemoryPool pool = made(f, CU_MEM_LOCATION_TYPE_HOST, 0), d = NULL;
    CUdeviceptr p = 0;

    ok(fake_call(f, cuMemAllocFromPoolAsync, &p, 100, pool, NULL));
    assert_int_equal(used(f), 0);
    memset(host(p), 1, 100);
    ok(fake_call(f, cuMemFreeAsync, p, NULL));
    pool = made(f, CU_MEM_LOCATION_TYPE_DEVICE, 1);
    ok(fake_call(f, cuMemAllocFromPoolAsync, &p, 1000, pool, NULL));
    assert_int_equal(fake_call(f, cuMemAllocFromPoolAsync, &p, 40 * MIB, pool, NULL),
                     CUDA_ERROR_OUT_OF_MEMORY);
    bad(fake_call(f, cuMemAllocFromPoolAsync, &p, 1000, NULL, NULL));
    ok(fake_call(f, cuMemGetDefaultMemPool, &d, &(CUmemLocation_v1){CU_MEM_LOCATION_TYPE_DEVICE, 0},
                 CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_ptr_equal(d, default_pool(f));
    ok(fake_call(f, cuMemGetMemPool, &d, &(CUmemLocation_v1){CU_MEM_LOCATION_TYPE_HOST, 0},
                 CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_int_equal(fake_call(f, cuMemGetMemPool, &d,
                               &(CUmemLocation_v1){CU_MEM_LOCATION_TYPE_DEVICE, 0},
                               CU_MEM_ALLOCATION_TYPE_MANAGED),
                     CUDA_ERROR_NOT_SUPPORTED);
    fake_free(f);
}

static void
captured_memory_lives_with_its_graph(void **state)
{
    struct fake *f = ready(1);
    CUgraphExec exec = NULL;
    CUgraph graph = NULL;
    CUstream s = NULL;
    CUdeviceptr p = 0;

    ok(fake_call(f, cuStreamCreate, &s, 0));
    ok(fake_call(f, cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    assert_int_equal(fake_call(f, cuMemAlloc_v2, &p, 100), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    (void)fake_call(f, cuStreamEndCapture, s, &graph);
    graph = NULL;
    ok(fake_call(f, cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    ok(fake_call(f, cuMemAllocAsync, &p, 1000, s));
    ok(fake_call(f, cuMemsetD8Async, p, 5, 1000, s));
    ok(fake_call(f, cuMemFreeAsync, p, s));
    ok(fake_call(f, cuStreamEndCapture, s, &graph));
    ok(fake_call(f, cuGraphInstantiateWithFlags, &exec, graph, 0));
    for (int i = 0; i < 3; i++)
        ok(fake_call(f, cuGraphLaunch, exec, s));
    ok(fake_call(f, cuStreamSynchronize, s));
    assert_int_equal(((char *)host(p))[999], 5);
    ok(fake_call(f, cuGraphExecDestroy, exec));
    ok(fake_call(f, cuGraphDestroy, graph));
    assert_int_equal(used(f), 0);
    ok(fake_call(f, cuStreamDestroy_v2, s));
    fake_free(f);
}

/* ---- virtual memory -------------------------------------------------------------------------- */

#define UNIT (2 * MIB)

static const CUmemAllocationProp_v1 on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                 .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemAccessDesc_v1 full = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, 3};

static void
physical_memory_is_mapped_twice(void **state)
{
    struct fake *f = ready(1);
    CUmemGenericAllocationHandle h = 0, again = 0;
    CUmemAllocationProp_v1 prop;
    unsigned long long flags = 9;
    CUdeviceptr va = 0, base = 0;
    size_t unit = 0, size = 0;
    char own[16] = "fifteen letters";
    int v = 0;

    ok(fake_call(f, cuMemGetAllocationGranularity, &unit, &on_device, 0));
    assert_int_equal(unit, UNIT);
    ok(fake_call(f, cuMemAddressReserve, &va, 4 * UNIT, 0, 0, 0));
    ok(fake_call(f, cuMemCreate, &h, UNIT, &on_device, 0));
    assert_int_equal(used(f), UNIT);
    ok(fake_call(f, cuMemMap, va, UNIT, 0, h, 0));
    ok(fake_call(f, cuMemMap, va + UNIT, UNIT, 0, h, 0));
    bad(fake_call(f, cuMemcpyHtoD_v2, va, own, 16)); /* no access yet */
    ok(fake_call(f, cuMemSetAccess, va, 2 * UNIT, &full, 1));
    ok(fake_call(f, cuMemcpyHtoD_v2, va + UNIT - 8, own, 16)); /* across both */
    ok(fake_call(f, cuMemcpyHtoD_v2, va, own, 16));
    assert_memory_equal(host(va + UNIT), own, 16);
    ok(fake_call(f, cuMemGetAccess, &flags, &on_device.location, va + 5));
    assert_int_equal(flags, 3);
    ok(fake_call(f, cuMemGetAddressRange_v2, &base, &size, va));
    ok(fake_call(f, cuPointerGetAttribute, &size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, va));
    assert_int_equal(size, 4 * UNIT);
    ok(fake_call(f, cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, va));
    assert_int_equal(v, CU_MEMORYTYPE_DEVICE);
    ok(fake_call(f, cuMemGetAllocationPropertiesFromHandle, &prop, h));
    assert_int_equal(prop.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
    ok(fake_call(f, cuMemRelease, h));
    bad(fake_call(f, cuMemRelease, h));
    ok(fake_call(f, cuMemRetainAllocationHandle, &again, host(va + 100)));
    assert_int_equal(again, h);
    ok(fake_call(f, cuMemRelease, again));
    bad(fake_call(f, cuMemAddressFree, va, 4 * UNIT));
    assert_int_equal(used(f), UNIT);
    ok(fake_call(f, cuMemUnmap, va, 4 * UNIT)); /* holes do not matter */
    ok(fake_call(f, cuMemUnmap, va, 4 * UNIT));
    assert_int_equal(used(f), 0);
    assert_int_equal(f->physicals, 0);
    bad(fake_call(f, cuMemRetainAllocationHandle, &again, host(va)));
    ok(fake_call(f, cuMemAddressFree, va, 4 * UNIT));
    bad(fake_call(f, cuMemAddressFree, va, 4 * UNIT));
    fake_free(f);
}

static void
bad_mappings_are_refused(void **state)
{
    struct fake *f = ready(1);
    CUmemAllocationProp_v1 prop = on_device;
    CUmemGenericAllocationHandle h = 0;
    unsigned long long flags = 0;
    CUdeviceptr va = 0, other = 0;

    bad(fake_call(f, cuMemAddressReserve, &va, 1000, 0, 0, 0));
    bad(fake_call(f, cuMemAddressReserve, &va, 4 * UNIT, 3, 0, 0));
    bad(fake_call(f, cuMemAddressReserve, &va, 0, 0, 0, 0));
    bad(fake_call(f, cuMemAddressReserve, &va, 4 * UNIT, 0, 0, 1));
    ok(fake_call(f, cuMemAddressReserve, &va, 4 * UNIT, 0, 0, 0));
    ok(fake_call(f, cuMemAddressReserve, &other, 4 * UNIT, 0, va, 0)); /* elsewhere */
    assert_int_not_equal(other, va);
    ok(fake_call(f, cuMemAddressFree, other, 4 * UNIT));
    ok(fake_call(f, cuMemAddressReserve, &va, 4 * UNIT, 0, other, 0)); /* at this address */
    assert_int_equal(other, va);
    bad(fake_call(f, cuMemCreate, &h, 1000, &prop, 0));
    bad(fake_call(f, cuMemCreate, &h, UNIT, &prop, 1));
    bad(fake_call(f, cuMemCreate, &h, UNIT, NULL, 0));
    prop.location.id = 7;
    assert_int_equal(fake_call(f, cuMemCreate, &h, UNIT, &prop, 0), CUDA_ERROR_INVALID_DEVICE);
    prop.location.id = 0;
    prop.type = 0;
    bad(fake_call(f, cuMemCreate, &h, UNIT, &prop, 0));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    assert_int_equal(fake_call(f, cuMemCreate, &h, UNIT, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(fake_call(f, cuMemCreate, &h, FAKE_MEMORY + UNIT, &on_device, 0),
                     CUDA_ERROR_OUT_OF_MEMORY);
    ok(fake_call(f, cuMemCreate, &h, UNIT, &on_device, 0));
    assert_int_equal(fake_call(f, cuMemMap, va, UNIT, UNIT, h, 0), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(fake_call(f, cuMemMap, va, 2 * UNIT, 0, h, 0), CUDA_ERROR_NOT_SUPPORTED);
    bad(fake_call(f, cuMemMap, 0x700000000000, UNIT, 0, h, 0));
    bad(fake_call(f, cuMemMap, va, UNIT, 0, 0x1234, 0));
    ok(fake_call(f, cuMemMap, va, UNIT, 0, h, 0));
    bad(fake_call(f, cuMemMap, va, UNIT, 0, h, 0));
    bad(fake_call(f, cuMemSetAccess, va, UNIT / 2, &full, 1));
    bad(fake_call(f, cuMemSetAccess, va, 2 * UNIT, &full, 1));
    bad(fake_call(f, cuMemSetAccess, va, UNIT, &(CUmemAccessDesc_v1){{1, 5}, 3}, 1));
    bad(fake_call(f, cuMemSetAccess, va, UNIT, &(CUmemAccessDesc_v1){{1, 0}, 2}, 1));
    bad(fake_call(f, cuMemGetAccess, &flags, &on_device.location, va + 2 * UNIT));
    bad(fake_call(f, cuMemUnmap, va, UNIT / 2));
    ok(fake_call(f, cuMemSetAccess, va, UNIT, &(CUmemAccessDesc_v1){{1, 0}, 1}, 1));
    bad(fake_call(f, cuMemsetD8_v2, va, 1, 16)); /* read-only */
    bad(fake_call(f, cuMemFree_v2, va));
    fake_free(f);
}

/* ---- without a context ----------------------------------------------------------------------- */

/* Else its address is given to somebody else, whose memory the graph then writes to and frees. */
static void
memory_of_a_graph_outlives_its_context(void **state)
{
    CUDA_MEM_ALLOC_NODE_PARAMS_v1 take = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
        .bytesize = 100};
    struct fake *f = ready(1);
    CUcontext c = NULL, none = NULL;
    CUgraphNode n = NULL;
    CUgraph g = NULL;
    CUdeviceptr p = 0;

    ok(fake_call(f, cuGraphCreate, &g, 0));
    ok(fake_call(f, cuCtxCreate_v2, &c, 0, 0));
    ok(fake_call(f, cuGraphAddMemAllocNode, &n, g, NULL, 0, &take));
    ok(fake_call(f, cuCtxDestroy_v2, c));
    for (int i = 0; i < 4; i++) {
        ok(fake_call(f, cuMemAllocAsync, &p, 100, NULL));
        assert_int_not_equal(p, take.dptr);
    }
    ok(fake_call(f, cuGraphDestroy, g));
    memset(host(p), 1, 100);
    /* The node can be added in a thread that has no context. */
    ok(fake_call(f, cuGraphCreate, &g, 0));
    ok(fake_call(f, cuCtxGetCurrent, &c));
    ok(fake_call(f, cuCtxSetCurrent, none));
    ok(fake_call(f, cuGraphAddMemAllocNode, &n, g, NULL, 0, &take));
    memset(host(take.dptr), 1, 100);
    ok(fake_call(f, cuMemFree_v2, p));
    ok(fake_call(f, cuGraphDestroy, g));
    ok(fake_call(f, cuCtxSetCurrent, c));
    fake_free(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pools_count_what_they_have),
    cmocka_unit_test(a_pool_keeps_up_to_its_threshold),
    cmocka_unit_test(what_a_pool_keeps_is_there_for_others),
    cmocka_unit_test(frees_wait_for_the_stream),
    cmocka_unit_test(an_allocation_waits_for_frees_when_memory_is_short),
    cmocka_unit_test(pools_are_made_and_destroyed),
    cmocka_unit_test(pools_of_the_host_and_with_a_limit),
    cmocka_unit_test(captured_memory_lives_with_its_graph),
    cmocka_unit_test(physical_memory_is_mapped_twice),
    cmocka_unit_test(bad_mappings_are_refused),
    cmocka_unit_test(memory_of_a_graph_outlives_its_context),
};

HED_UNIT_MAIN(tests)
