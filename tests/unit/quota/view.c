/* Tests of the quota layer in one process: several devices, NVML, limits of contexts, libraries
 * that are loaded when they are used, pools that do not belong to the device. */
#include "unit/quota/make.h"

#include <unistd.h>

#define NVML(l, call, ...) (l)->nvml->call((l), &(struct hed_##call){__VA_ARGS__})

static int
setup(void **state)
{
    assert_int_equal(atomic_load(&fake.taken), 0);
    fake.pool_step = 512;
    fake.uuid = 7;
    fake.code = 0;
    fake_context = 1;
    fake_device = 0;
    *state = quota_over(100 * MIB, "");
    return 0;
}

static int
teardown(void **state)
{
    struct hed_layer *l = *state;

    assert_int_equal(charged(l), 0);
    assert_int_equal(atomic_load(&fake.taken), 0);
    quota_discard(l);
    return 0;
}

static uint64_t
charged_on(struct hed_layer *l, CUdevice ordinal)
{
    return atomic_load(&hed_quota_device(l, ordinal)->own);
}

static void
use_device(CUdevice ordinal)
{
    fake_device = ordinal;
    fake_context = (uintptr_t)ordinal + 1;
}

static void
each_device_has_a_limit(void **state)
{
    struct hed_layer *l = *state;
    CUdeviceptr p[2];
    size_t free, total;
    nvmlMemory_t m;

    for (int i = 0; i < 2; i++) {
        use_device(i);
        p[i] = take(l, (100 - 30 * (unsigned)i) * MIB, CUDA_SUCCESS);
        (void)take(l, 40 * MIB, CUDA_ERROR_OUT_OF_MEMORY);
    }
    for (int i = 0; i < 2; i++) {
        use_device(i);
        assert_int_equal(charged_on(l, i), (100 - 30 * (unsigned)i) * MIB);
        assert_int_equal(CALL(l, cuMemGetInfo_v2, &free, &total), CUDA_SUCCESS);
        assert_int_equal(free, 30 * (unsigned)i * MIB);
        assert_int_equal(total, 100 * MIB);
        assert_int_equal(CALL(l, cuDeviceTotalMem_v2, &total, i), CUDA_SUCCESS);
        assert_int_equal(total, 100 * MIB);
        assert_int_equal(NVML(l, nvmlDeviceGetMemoryInfo, (nvmlDevice_t)(uintptr_t)(i + 1), &m),
                         NVML_SUCCESS);
        assert_int_equal(m.total, 100 * MIB);
        assert_int_equal(m.free, 30 * (unsigned)i * MIB);
        assert_int_equal(m.used, m.total - m.free);
    }
    /* It is freed while the other device is current, and given back where it was charged. */
    use_device(1);
    give(l, p[0]);
    assert_int_equal(charged_on(l, 0), 0);
    use_device(0);
    give(l, p[1]);
    assert_int_equal(charged_on(l, 1), 0);
}

static void
nvml_shows_the_limit(void **state)
{
    struct hed_layer *l = *state;
    const CUdeviceptr p = take(l, 30 * MIB, CUDA_SUCCESS);
    nvmlDevice_t device = (nvmlDevice_t)(uintptr_t)1;
    nvmlMemory_v2_t m = {0};
    nvmlProcessInfo_t infos[3];
    nvmlProcessInfo_v1_t old;
    unsigned n = 1;

    assert_int_equal(NVML(l, nvmlDeviceGetMemoryInfo_v2, device, &m), NVML_SUCCESS);
    assert_int_equal(m.total, 100 * MIB);
    assert_int_equal(m.reserved, 0);
    assert_int_equal(m.used, 30 * MIB);
    assert_int_equal(m.free, 70 * MIB);

    fake.stranger = 999999;
    fake.strangers = 700 * MIB;
    assert_int_equal(NVML(l, nvmlDeviceGetComputeRunningProcesses_v3, device, &n, infos),
                     NVML_ERROR_INSUFFICIENT_SIZE);
    assert_int_equal(n, 3);
    assert_int_equal(NVML(l, nvmlDeviceGetComputeRunningProcesses_v3, device, &n, infos),
                     NVML_SUCCESS);
    assert_int_equal(infos[0].usedGpuMemory, 100 * MIB);
    assert_true(infos[1].usedGpuMemory == UINT64_MAX); /* NVML did not say, and this stays so */
    assert_int_equal(infos[2].pid, getpid());
    assert_int_equal(infos[2].usedGpuMemory, 30 * MIB);
    assert_int_equal(NVML(l, nvmlDeviceGetGraphicsRunningProcesses, device, &n, &old),
                     NVML_SUCCESS);
    assert_int_equal(old.usedGpuMemory, 100 * MIB);
    give(l, p);
}

static void
heaps_and_stacks_count_until_their_context_ends(void **state)
{
    struct hed_layer *l = *state;

    fake_context = 2;
    /* The defaults, which every context has, are not charged. */
    assert_int_equal(CALL(l, cuCtxSetLimit, CU_LIMIT_MALLOC_HEAP_SIZE, 8 * MIB), CUDA_SUCCESS);
    assert_int_equal(CALL(l, cuCtxSetLimit, CU_LIMIT_STACK_SIZE, 512), CUDA_SUCCESS);
    assert_int_equal(charged(l), 0);
    assert_int_equal(CALL(l, cuCtxSetLimit, CU_LIMIT_MALLOC_HEAP_SIZE, 48 * MIB), CUDA_SUCCESS);
    assert_int_equal(charged(l), 40 * MIB);
    /* 3 KiB for each of 10 * 1024 threads. */
    assert_int_equal(CALL(l, cuCtxSetLimit, CU_LIMIT_STACK_SIZE, 4096), CUDA_SUCCESS);
    assert_int_equal(charged(l), 40 * MIB + 30 * MIB);
    /* The device rounds it up. */
    assert_int_equal(CALL(l, cuCtxSetLimit, CU_LIMIT_PRINTF_FIFO_SIZE, 2 * MIB - 1), CUDA_SUCCESS);
    assert_int_equal(charged(l), 71 * MIB);
    /* A limit that is too large, or that fails below, changes nothing. */
    assert_int_equal(CALL(l, cuCtxSetLimit, CU_LIMIT_MALLOC_HEAP_SIZE, 80 * MIB),
                     CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(CALL(l, cuCtxSetLimit, CU_LIMIT_STACK_SIZE, SIZE_MAX),
                     CUDA_ERROR_OUT_OF_MEMORY);
    atomic_store(&fake.fail, CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(CALL(l, cuCtxSetLimit, CU_LIMIT_MALLOC_HEAP_SIZE, 58 * MIB),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(charged(l), 71 * MIB);
    (void)take(l, 30 * MIB, CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(CALL(l, cuCtxSetLimit, CU_LIMIT_MALLOC_HEAP_SIZE, 18 * MIB), CUDA_SUCCESS);
    assert_int_equal(charged(l), 41 * MIB);
    assert_int_equal(CALL(l, cuCtxDestroy_v2, (CUcontext)(uintptr_t)2), CUDA_SUCCESS);
    assert_int_equal(charged(l), 0);
}

/* Loading the first module of a context also allocates the heap, which is not charged twice. */
static void
a_heap_is_charged_once(void **state)
{
    struct hed_layer *l = *state;
    CUmodule m;

    fake_context = 2;
    assert_int_equal(CALL(l, cuCtxSetLimit, CU_LIMIT_MALLOC_HEAP_SIZE, 38 * MIB), CUDA_SUCCESS);
    assert_int_equal(charged(l), 30 * MIB);
    fake.code = 35 * MIB;
    assert_int_equal(CALL(l, cuModuleLoadData, &m, ""), CUDA_SUCCESS);
    assert_int_equal(charged(l), 35 * MIB);
    assert_int_equal(CALL(l, cuModuleUnload, m), CUDA_SUCCESS);
    assert_int_equal(charged(l), 30 * MIB); /* the heap stays */
    assert_int_equal(CALL(l, cuModuleLoadData, &m, ""), CUDA_SUCCESS);
    assert_int_equal(charged(l), 65 * MIB); /* this one is code */
    assert_int_equal(CALL(l, cuModuleUnload, m), CUDA_SUCCESS);
    assert_int_equal(CALL(l, cuCtxDestroy_v2, (CUcontext)(uintptr_t)2), CUDA_SUCCESS);
}

/* A library that is loaded at its first use cannot be removed again, so the limit is exceeded until
 * the program unloads it. Until then it is charged, and neither memory nor the library is given
 * out. */
static void
a_library_that_does_not_fit_is_not_given_out(void **state)
{
    struct hed_layer *l = *state;
    const CUlibrary library = (CUlibrary)(uintptr_t)0x5001;
    CUdeviceptr p = take(l, 90 * MIB, CUDA_SUCCESS);
    CUmodule m = NULL;
    size_t free, total;

    fake.code = 20 * MIB;
    assert_int_equal(CALL(l, cuLibraryGetModule, &m, library), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(charged(l), 110 * MIB);
    assert_int_equal(CALL(l, cuLibraryGetModule, &m, library), CUDA_ERROR_OUT_OF_MEMORY);
    (void)take(l, 1, CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(CALL(l, cuMemGetInfo_v2, &free, &total), CUDA_SUCCESS);
    assert_int_equal(free, 0);
    /* Now it fits, and can be used. */
    give(l, p);
    assert_int_equal(CALL(l, cuLibraryGetModule, &m, library), CUDA_SUCCESS);
    assert_int_equal(charged(l), 20 * MIB);
    assert_int_equal(CALL(l, cuLibraryUnload, library), CUDA_SUCCESS);
    assert_int_equal(charged(l), 0);
    /* Or the program unloads it. */
    p = take(l, 90 * MIB, CUDA_SUCCESS);
    assert_int_equal(CALL(l, cuLibraryGetModule, &m, library), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(CALL(l, cuLibraryUnload, library), CUDA_SUCCESS);
    assert_int_equal(charged(l), 90 * MIB);
    give(l, take(l, 10 * MIB, CUDA_SUCCESS));
    give(l, p);
}

static void
a_library_counts_on_each_device_it_is_used_on(void **state)
{
    struct hed_layer *l = *state;
    const CUlibrary library = (CUlibrary)(uintptr_t)0x5001;
    CUmodule m = NULL;

    fake.code = 20 * MIB;
    for (int i = 0; i < 2; i++) {
        use_device(i);
        fake.library = 0; /* it is not in this context */
        assert_int_equal(CALL(l, cuLibraryGetModule, &m, library), CUDA_SUCCESS);
        assert_int_equal(CALL(l, cuLibraryGetModule, &m, library), CUDA_SUCCESS);
        assert_int_equal(charged_on(l, i), 20 * MIB);
    }
    /* One context ends; then the library is unloaded from the other. */
    assert_int_equal(CALL(l, cuCtxDestroy_v2, (CUcontext)(uintptr_t)2), CUDA_SUCCESS);
    assert_int_equal(charged_on(l, 1), 0);
    assert_int_equal(charged_on(l, 0), 20 * MIB);
    fake.library = 40 * MIB;
    assert_int_equal(CALL(l, cuLibraryUnload, library), CUDA_SUCCESS);
    assert_int_equal(charged_on(l, 0), 0);
}

static void
pools_of_managed_memory_count_and_imported_ones_do_not(void **state)
{
    struct hed_layer *l = *state;
    const CUmemPoolProps_v1 managed = {.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED,
                                       .location = {CU_MEM_LOCATION_TYPE_HOST, 0}};
    CUmemoryPool pool;
    CUdeviceptr p;

    fake.made = (CUmemoryPool)(uintptr_t)0x7002;
    assert_int_equal(CALL(l, cuMemPoolCreate, &pool, &managed), CUDA_SUCCESS);
    assert_int_equal(CALL(l, cuMemAllocFromPoolAsync, &p, 60 * MIB, pool, NULL, false),
                     CUDA_SUCCESS);
    assert_int_equal(charged(l), 60 * MIB);
    assert_int_equal(
        CALL(l, cuMemAllocFromPoolAsync, &(CUdeviceptr){0}, 60 * MIB, pool, NULL, false),
        CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(
        CALL(l, cuMemAllocFromPoolAsync, &(CUdeviceptr){0}, SIZE_MAX, pool, NULL, false),
        CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(CALL(l, cuMemFreeAsync, p, NULL, false), CUDA_SUCCESS);
    assert_int_equal(CALL(l, cuMemPoolTrimTo, pool, 0), CUDA_SUCCESS);
    assert_int_equal(charged(l), 0);

    fake.made = (CUmemoryPool)(uintptr_t)0x7003;
    assert_int_equal(CALL(l, cuMemPoolImportFromShareableHandle, &pool, NULL, 0, 0), CUDA_SUCCESS);
    assert_int_equal(CALL(l, cuMemAllocFromPoolAsync, &p, MIB, pool, NULL, false), CUDA_SUCCESS);
    assert_int_equal(charged(l), 0);
    assert_int_equal(CALL(l, cuMemFreeAsync, p, NULL, false), CUDA_SUCCESS);
    assert_int_equal(CALL(l, cuMemPoolTrimTo, pool, 0), CUDA_SUCCESS);
}

/* This driver takes a graph's memory when nodes are added, and gives it up at a trim. The next
 * launch takes it again, and is charged before that. */
static void
a_graph_that_was_trimmed_is_charged_again(void **state)
{
    struct hed_layer *l = *state;
    CUDA_MEM_ALLOC_NODE_PARAMS_v1 p = {.poolProps = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
                                       .bytesize = 60 * MIB};
    const CUgraph graph = (CUgraph)(uintptr_t)3;
    CUgraphNode node;
    CUgraphExec exec;
    CUdeviceptr held;

    fake.graph_early = true;
    atomic_store(&fake.high, 0);
    assert_int_equal(CALL(l, cuGraphAddMemAllocNode, &node, graph, NULL, 0, &p), CUDA_SUCCESS);
    assert_int_equal(charged(l), 60 * MIB);
    assert_int_equal(CALL(l, cuGraphInstantiateWithFlags, &exec, graph, 0), CUDA_SUCCESS);
    assert_int_equal(CALL(l, cuGraphLaunch, exec, NULL, false), CUDA_SUCCESS);
    assert_int_equal(charged(l), 60 * MIB); /* once */
    held = take(l, 50 * MIB, CUDA_SUCCESS);
    assert_int_equal(CALL(l, cuGraphLaunch, exec, NULL, false), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(charged(l), 50 * MIB);
    give(l, held);
    assert_int_equal(CALL(l, cuGraphLaunch, exec, NULL, false), CUDA_SUCCESS);
    assert_int_equal(charged(l), 60 * MIB);
    assert_true(atomic_load(&fake.high) <= (int64_t)(100 * MIB));
    assert_int_equal(CALL(l, cuGraphExecDestroy, exec), CUDA_SUCCESS);
    assert_int_equal(CALL(l, cuDeviceGraphMemTrim, 0), CUDA_SUCCESS);
    fake.graph_early = false;
}

static void
sizes_that_no_device_has_are_refused(void **state)
{
    struct hed_layer *l = *state;
    CUDA_MEM_ALLOC_NODE_PARAMS_v1 p = {.poolProps = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
                                       .bytesize = MIB};
    const CUgraph graph = (CUgraph)(uintptr_t)3;
    const uint64_t sizes[] = {UINT64_MAX,     UINT64_MAX - 1,     UINT64_MAX / 2,
                              UINT64_MAX / 4, UINT64_MAX / 4 - 1, (uint64_t)1 << 48};
    CUgraphNode node;
    CUgraphExec exec;
    CUdeviceptr at;

    assert_int_equal(CALL(l, cuGraphAddMemAllocNode, &node, graph, NULL, 0, &p), CUDA_SUCCESS);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        (void)take(l, sizes[i], CUDA_ERROR_OUT_OF_MEMORY);
        assert_int_equal(CALL(l, cuMemAllocAsync, &at, sizes[i], NULL, false),
                         CUDA_ERROR_OUT_OF_MEMORY);
        p.bytesize = sizes[i];
        assert_int_equal(CALL(l, cuGraphAddMemAllocNode, &node, graph, NULL, 0, &p),
                         CUDA_ERROR_OUT_OF_MEMORY);
        fake.graph_node = sizes[i]; /* as if such a node had been added */
        assert_int_equal(CALL(l, cuGraphInstantiateWithFlags, &exec, graph, 0),
                         CUDA_ERROR_OUT_OF_MEMORY);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(each_device_has_a_limit, setup, teardown),
    cmocka_unit_test_setup_teardown(nvml_shows_the_limit, setup, teardown),
    cmocka_unit_test_setup_teardown(heaps_and_stacks_count_until_their_context_ends, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(a_heap_is_charged_once, setup, teardown),
    cmocka_unit_test_setup_teardown(a_library_that_does_not_fit_is_not_given_out, setup, teardown),
    cmocka_unit_test_setup_teardown(a_library_counts_on_each_device_it_is_used_on, setup, teardown),
    cmocka_unit_test_setup_teardown(pools_of_managed_memory_count_and_imported_ones_do_not, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(a_graph_that_was_trimmed_is_charged_again, setup, teardown),
    cmocka_unit_test_setup_teardown(sizes_that_no_device_has_are_refused, setup, teardown),
};

HED_UNIT_MAIN(tests)
