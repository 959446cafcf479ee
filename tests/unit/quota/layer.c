/* Tests of the quota layer in one process: what is charged for what, when it is given back, and
 * that a device never has to give more than the limit. */
#include "unit/quota/make.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"

static int
setup(void **state)
{
    assert_int_equal(atomic_load(&fake.taken), 0);
    atomic_store(&fake.high, 0);
    fake.pool_step = 512;
    fake.uuid = 7;
    fake_context = 1;
    *state = quota_over(100 * MIB, "");
    return 0;
}

static int
teardown(void **state)
{
    struct hed_layer *l = *state;

    /* Whatever a test did, the device never had more than the limit, and everything was given
     * back. */
    assert_int_equal(charged(l), 0);
    assert_true(atomic_load(&fake.high) <= (int64_t)(100 * MIB));
    quota_discard(l);
    return 0;
}

static void
the_limit_is_met_exactly(void **state)
{
    struct hed_layer *l = *state;
    const CUdeviceptr a = take(l, 100 * MIB, CUDA_SUCCESS);
    const uint64_t calls = atomic_load(&fake.calls);

    (void)take(l, 1, CUDA_ERROR_OUT_OF_MEMORY);
    (void)take(l, UINT64_MAX, CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(atomic_load(&fake.calls), calls); /* refused by the layer, not by the device */
    give(l, a);
    give(l, take(l, 98 * MIB + 1, CUDA_SUCCESS));
    assert_int_equal(CALL(l, cuMemFree_v2, 0x1234), CUDA_ERROR_INVALID_VALUE);
    (void)take(l, 101 * MIB, CUDA_ERROR_OUT_OF_MEMORY);
}

/* Allocates more than the limit, and reads what the refusal puts into the log. */
static void
read_refusal(struct hed_layer *l, uint64_t n, char *text, size_t size)
{
    const int before = dup(STDERR_FILENO);
    int fds[2];

    assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
    assert_int_equal(hed_log_setup("quota=info", NULL), 0);
    (void)dup2(fds[1], STDERR_FILENO);
    (void)take(l, n, CUDA_ERROR_OUT_OF_MEMORY);
    (void)dup2(before, STDERR_FILENO);
    assert_int_equal(hed_log_setup(NULL, NULL), 0);

    const ssize_t got = read(fds[0], text, size - 1);

    text[got > 0 ? got : 0] = '\0';
    close(fds[0]);
    close(fds[1]);
    close(before);
}

static void
every_refusal_is_logged(void **state)
{
    struct hed_layer *l = *state;
    const CUdeviceptr a = take(l, 60 * MIB, CUDA_SUCCESS);
    char text[512];

    read_refusal(l, 50 * MIB, text, sizeof text);
    assert_non_null(
        strstr(text, "52428800 bytes are over the limit of 104857600, of which 62914560 are used"));
    /* Larger than the limit itself. */
    read_refusal(l, 200 * MIB, text, sizeof text);
    assert_non_null(strstr(
        text, "209715200 bytes are over the limit of 104857600, of which 62914560 are used"));
    give(l, a);
}

static void
an_allocation_that_fails_is_given_back(void **state)
{
    struct hed_layer *l = *state;
    CUmemGenericAllocationHandle h = 0;
    const CUmemAllocationProp_v1 prop = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUdeviceptr p = 0;

    atomic_store(&fake.fail, CUDA_ERROR_LAUNCH_FAILED);
    (void)take(l, MIB, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(charged(l), 0);
    atomic_store(&fake.fail, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(CALL(l, cuMemCreate, &h, 2 * MIB, &prop, 0), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(charged(l), 0);
    atomic_store(&fake.fail, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(CALL(l, cuMemAllocAsync, &p, MIB, NULL, false), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(charged(l), 0);
}

static void
without_a_context_the_call_is_passed_on(void **state)
{
    struct hed_layer *l = *state;
    CUdeviceptr p = 0;

    fake_context = 0;
    assert_int_equal(CALL(l, cuMemAlloc_v2, &p, 64), CUDA_SUCCESS); /* the fake does not care */
    give(l, p);
    fake_context = 1;
}

static void
charges_equal_what_the_device_loses(void **state)
{
    struct hed_layer *l = *state;
    CUdeviceptr p = take(l, 1, CUDA_SUCCESS);
    size_t pitch;

    assert_int_equal(charged(l), 512);
    give(l, p);
    p = take(l, MIB, CUDA_SUCCESS);
    assert_int_equal(charged(l), MIB);
    give(l, p);
    p = take(l, MIB + 1, CUDA_SUCCESS);
    assert_int_equal(charged(l), 2 * MIB);
    give(l, p);
    assert_int_equal(CALL(l, cuMemAllocManaged, &p, 3 * MIB, 1), CUDA_SUCCESS);
    assert_int_equal(charged(l), 4 * MIB);
    give(l, p);
    assert_int_equal(CALL(l, cuMemAllocPitch_v2, &p, &pitch, 100, 1000, 4), CUDA_SUCCESS);
    assert_int_equal(charged(l), 1000 * 512);
    give(l, p);
    assert_int_equal(CALL(l, cuMemAllocPitch_v2, &p, &pitch, SIZE_MAX / 2, SIZE_MAX / 2, 4),
                     CUDA_ERROR_OUT_OF_MEMORY);
}

static void
arrays_are_charged_with_whole_tiles(void **state)
{
    struct hed_layer *l = *state;
    CUarray array;
    CUDA_ARRAY3D_DESCRIPTOR_v2 d = {
        .Width = 1000, .Height = 100, .Depth = 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 2};

    assert_int_equal(CALL(l, cuArray3DCreate_v2, &array, &d), CUDA_SUCCESS);
    assert_int_equal(charged(l), 4 * MIB); /* 8192 * 104 * 4, rounded */
    assert_int_equal(CALL(l, cuArrayDestroy, array), CUDA_SUCCESS);
    assert_int_equal(charged(l), 0);
    d.Width = SIZE_MAX;
    assert_int_equal(CALL(l, cuArray3DCreate_v2, &array, &d), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(CALL(l, cuArray3DCreate_v2, &array, NULL), CUDA_ERROR_INVALID_VALUE);
    d = (CUDA_ARRAY3D_DESCRIPTOR_v2){.Width = 64, .Format = CU_AD_FORMAT_HALF, .NumChannels = 1};
    d.Flags = 0x40; /* sparse: memory is mapped to it */
    assert_int_equal(CALL(l, cuArray3DCreate_v2, &array, &d), CUDA_SUCCESS);
    assert_int_equal(charged(l), 0);
    assert_int_equal(CALL(l, cuArrayDestroy, array), CUDA_SUCCESS);
}

static void
a_pool_is_charged_with_what_it_keeps(void **state)
{
    struct hed_layer *l = *state;
    CUdeviceptr a, b, c;

    fake.pool_step = 32 * MIB;
    assert_int_equal(CALL(l, cuMemAllocAsync, &a, MIB, NULL, false), CUDA_SUCCESS);
    assert_int_equal(charged(l), 32 * MIB);
    assert_int_equal(CALL(l, cuMemAllocAsync, &b, 31 * MIB, NULL, false), CUDA_SUCCESS);
    assert_int_equal(charged(l), 32 * MIB);
    assert_int_equal(CALL(l, cuMemFreeAsync, b, NULL, false), CUDA_SUCCESS);
    assert_int_equal(charged(l), 32 * MIB);
    assert_int_equal(CALL(l, cuMemFreeAsync, a, NULL, false), CUDA_SUCCESS);
    assert_int_equal(charged(l), 32 * MIB);
    /* An allocation needs the memory that the pool keeps, so the pool gives it up. */
    c = take(l, 98 * MIB, CUDA_SUCCESS);
    assert_int_equal(charged(l), 98 * MIB);
    give(l, c);
    assert_int_equal(CALL(l, cuMemAllocAsync, &a, 40 * MIB, NULL, false), CUDA_SUCCESS);
    assert_int_equal(CALL(l, cuMemFreeAsync, a, NULL, false), CUDA_SUCCESS);
    assert_int_equal(CALL(l, cuMemPoolTrimTo, (CUmemoryPool)(uintptr_t)0x7001, 0), CUDA_SUCCESS);
    assert_int_equal(charged(l), 0);
}

/* The one case where a device has more than the limit for a moment: the step by which a pool grows
 * is not known before. */
static void
a_step_that_does_not_fit_is_undone(void **state)
{
    struct hed_layer *l = *state;
    CUdeviceptr a, b;

    fake.pool_step = 64 * MIB;
    assert_int_equal(CALL(l, cuMemAllocAsync, &a, 60 * MIB, NULL, false), CUDA_SUCCESS);
    assert_int_equal(CALL(l, cuMemAllocAsync, &b, 30 * MIB, NULL, false), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(charged(l), 64 * MIB);
    assert_int_equal(atomic_load(&fake.taken), 64 * MIB);
    assert_int_equal(CALL(l, cuMemFreeAsync, a, NULL, false), CUDA_SUCCESS);
    assert_int_equal(CALL(l, cuMemPoolTrimTo, (CUmemoryPool)(uintptr_t)0x7001, 0), CUDA_SUCCESS);
    atomic_store(&fake.high, 0);
}

static void
physical_memory_lasts_until_its_last_handle_and_mapping(void **state)
{
    struct hed_layer *l = *state;
    CUmemGenericAllocationHandle h = 0;
    CUmemAllocationProp_v1 prop = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const CUdeviceptr at = 0x7000000000ull;

    assert_int_equal(CALL(l, cuMemCreate, &h, 64 * MIB, &prop, 0), CUDA_SUCCESS);
    assert_int_equal(CALL(l, cuMemCreate, &(CUmemGenericAllocationHandle){0}, 64 * MIB, &prop, 0),
                     CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(CALL(l, cuMemMap, at, 32 * MIB, 0, h, 0), CUDA_SUCCESS);
    assert_int_equal(CALL(l, cuMemMap, at + 32 * MIB, 32 * MIB, 32 * MIB, h, 0), CUDA_SUCCESS);
    assert_int_equal(CALL(l, cuMemRelease, h), CUDA_SUCCESS);
    assert_int_equal(charged(l), 64 * MIB);
    assert_int_equal(CALL(l, cuMemUnmap, at, 32 * MIB), CUDA_SUCCESS);
    assert_int_equal(charged(l), 64 * MIB);

    /* A new handle, from the mapping that is left. */
    CUmemGenericAllocationHandle again = 0;

    assert_int_equal(
        CALL(l, cuMemRetainAllocationHandle, &again, (void *)(uintptr_t)(at + 40 * MIB)),
        CUDA_SUCCESS);
    assert_int_equal(CALL(l, cuMemUnmap, at, 64 * MIB), CUDA_SUCCESS);
    assert_int_equal(charged(l), 64 * MIB);
    assert_int_equal(CALL(l, cuMemRelease, again), CUDA_SUCCESS);
    assert_int_equal(charged(l), 0);

    prop.location.type = CU_MEM_LOCATION_TYPE_HOST;
    assert_int_equal(CALL(l, cuMemCreate, &again, 640 * MIB, &prop, 0), CUDA_SUCCESS);
    assert_int_equal(charged(l), 0);
    CALL(l, cuArrayDestroy, (CUarray)(uintptr_t)h); /* the fake's way of freeing a handle */
    CALL(l, cuArrayDestroy, (CUarray)(uintptr_t)again);
    atomic_store(&fake.high, 0);
}

static void
a_context_takes_its_memory_with_it(void **state)
{
    struct hed_layer *l = *state;
    CUdeviceptr p[8];
    CUcontext primary;

    fake_context = 2;
    for (int i = 0; i < 8; i++)
        p[i] = take(l, 4 * MIB, CUDA_SUCCESS);
    fake_context = 1;

    const CUdeviceptr other = take(l, 2 * MIB, CUDA_SUCCESS);

    atomic_store(&fake.fail, CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(CALL(l, cuCtxDestroy_v2, (CUcontext)(uintptr_t)2), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(charged(l), 34 * MIB);
    assert_int_equal(CALL(l, cuCtxDestroy_v2, (CUcontext)(uintptr_t)2), CUDA_SUCCESS);
    assert_int_equal(charged(l), 2 * MIB);
    /* The memory of the primary context goes with its last user. */
    assert_int_equal(CALL(l, cuDevicePrimaryCtxRetain, &primary, 0), CUDA_SUCCESS);
    assert_int_equal(CALL(l, cuDevicePrimaryCtxRetain, &primary, 0), CUDA_SUCCESS);
    assert_int_equal(CALL(l, cuDevicePrimaryCtxRelease_v2, 0), CUDA_SUCCESS);
    assert_int_equal(charged(l), 2 * MIB);
    assert_int_equal(CALL(l, cuDevicePrimaryCtxRelease_v2, 0), CUDA_SUCCESS);
    assert_int_equal(charged(l), 0);
    for (int i = 0; i < 8; i++)
        give(l, p[i]); /* the fake still has them */
    give(l, other);
}

/* A launch takes the memory and a trim gives it back; before the first launch, all of the graph's
 * memory is charged. */
static void
graph_memory_counts_while_graphs_have_it(void **state)
{
    struct hed_layer *l = *state;
    CUDA_MEM_ALLOC_NODE_PARAMS_v1 p = {.poolProps = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
                                       .bytesize = 60 * MIB};
    const CUgraph graph = (CUgraph)(uintptr_t)3;
    CUgraphNode node;
    CUgraphExec a, b, none = NULL;
    CUdeviceptr held;

    assert_int_equal(CALL(l, cuGraphAddMemAllocNode, &node, graph, NULL, 0, &p), CUDA_SUCCESS);
    assert_int_equal(charged(l), 0);
    assert_int_equal(CALL(l, cuGraphInstantiateWithFlags, &a, graph, 0), CUDA_SUCCESS);
    assert_int_equal(charged(l), 60 * MIB);
    assert_int_equal(CALL(l, cuGraphInstantiateWithFlags, &none, graph, 0),
                     CUDA_ERROR_OUT_OF_MEMORY);
    assert_null(none);
    (void)take(l, 42 * MIB, CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(CALL(l, cuGraphLaunch, a, NULL, false), CUDA_SUCCESS);
    assert_int_equal(CALL(l, cuGraphLaunch, a, NULL, false), CUDA_SUCCESS);
    assert_int_equal(charged(l), 60 * MIB);
    /* Memory that is kept without need goes to an allocation that needs it, and then a launch
     * fails. */
    held = take(l, 50 * MIB, CUDA_SUCCESS);
    assert_int_equal(fake.graph_reserved, 0);
    assert_int_equal(CALL(l, cuGraphLaunch, a, NULL, false), CUDA_ERROR_OUT_OF_MEMORY);
    give(l, held);
    assert_int_equal(CALL(l, cuGraphLaunch, a, NULL, false), CUDA_SUCCESS);
    /* Another graph may use the same memory, which is given up first. */
    assert_int_equal(CALL(l, cuGraphInstantiateWithFlags, &b, graph, 0), CUDA_SUCCESS);
    assert_int_equal(CALL(l, cuGraphLaunch, b, NULL, false), CUDA_SUCCESS);
    assert_int_equal(charged(l), 60 * MIB);
    assert_int_equal(CALL(l, cuGraphExecDestroy, a), CUDA_SUCCESS);
    assert_int_equal(CALL(l, cuGraphExecDestroy, b), CUDA_SUCCESS);
    assert_int_equal(charged(l), 60 * MIB);
    assert_int_equal(CALL(l, cuDeviceGraphMemTrim, 0), CUDA_SUCCESS);
    assert_int_equal(charged(l), 0);
}

static void
loaded_code_is_charged_by_measuring(void **state)
{
    struct hed_layer *l = *state;
    CUmodule m = NULL;
    CUdeviceptr p;

    fake.code = 10 * MIB;
    assert_int_equal(CALL(l, cuModuleLoadData, &m, ""), CUDA_SUCCESS);
    assert_int_equal(charged(l), 10 * MIB);
    assert_int_equal(CALL(l, cuModuleUnload, m), CUDA_SUCCESS);
    assert_int_equal(charged(l), 0);
    /* It is too large, and is unloaded again. */
    p = take(l, 94 * MIB, CUDA_SUCCESS);
    assert_int_equal(CALL(l, cuModuleLoadData, &m, ""), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(charged(l), 94 * MIB);
    assert_int_equal(fake.module, 0);
    /* Another process took memory meanwhile, which is not charged to the module. */
    fake.code = 2 * MIB;
    fake.others = 50 * MIB;
    assert_int_equal(CALL(l, cuModuleLoadData, &m, ""), CUDA_SUCCESS);
    assert_int_equal(charged(l), 96 * MIB);
    assert_int_equal(CALL(l, cuModuleUnload, m), CUDA_SUCCESS);
    give(l, p);
    atomic_fetch_sub(&fake.taken, 50 * MIB);
    atomic_store(&fake.high, 0);
}

static void
programs_see_the_limit_as_the_memory(void **state)
{
    struct hed_layer *l = *state;
    const CUdeviceptr p = take(l, 30 * MIB, CUDA_SUCCESS);
    size_t free = 0, total = 0;
    nvmlMemory_t m;

    assert_int_equal(CALL(l, cuMemGetInfo_v2, &free, &total), CUDA_SUCCESS);
    assert_int_equal(free, 70 * MIB);
    assert_int_equal(total, 100 * MIB);
    assert_int_equal(CALL(l, cuDeviceTotalMem_v2, &total, 0), CUDA_SUCCESS);
    assert_int_equal(total, 100 * MIB);
    assert_int_equal(l->nvml->nvmlDeviceGetMemoryInfo(
                         l, &(struct hed_nvmlDeviceGetMemoryInfo){(nvmlDevice_t)1, &m}),
                     NVML_SUCCESS);
    assert_int_equal(m.total, 100 * MIB);
    assert_int_equal(m.free, 70 * MIB);
    assert_int_equal(m.used, 30 * MIB);
    /* Other processes leave less memory than the limit allows. */
    atomic_fetch_add(&fake.taken, 960 * MIB);
    assert_int_equal(CALL(l, cuMemGetInfo_v2, &free, &total), CUDA_SUCCESS);
    assert_int_equal(free, 34 * MIB);
    atomic_fetch_sub(&fake.taken, 960 * MIB);
    give(l, p);
}

/* ---- threads, and a model -------------------------------------------------------------------- */

static uint32_t
next_random(uint32_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 17;
    *s ^= *s << 5;
    return *s;
}

static void *
churn(void *arg)
{
    struct hed_layer *l = arg;
    uint32_t seed = (uint32_t)(uintptr_t)&seed | 1;
    CUdeviceptr own[16] = {0};
    bool async[16] = {false};

    for (int i = 0; i < 3000; i++) {
        const unsigned k = next_random(&seed) % 16;

        if (own[k]) {
            if (async[k])
                (void)CALL(l, cuMemFreeAsync, own[k], NULL, false);
            else
                (void)CALL(l, cuMemFree_v2, own[k]);
            own[k] = 0;
            continue;
        }
        async[k] = next_random(&seed) % 3 == 0;

        const uint64_t n = next_random(&seed) % (8 * MIB) + 1;
        const CUresult r = async[k] ? CALL(l, cuMemAllocAsync, &own[k], n, NULL, false)
                                    : CALL(l, cuMemAlloc_v2, &own[k], n);

        if (r != CUDA_SUCCESS)
            own[k] = 0;
    }
    for (unsigned k = 0; k < 16; k++) {
        if (own[k] && async[k])
            (void)CALL(l, cuMemFreeAsync, own[k], NULL, false);
        else if (own[k])
            (void)CALL(l, cuMemFree_v2, own[k]);
    }
    return NULL;
}

static void
threads_together_stay_below_the_limit(void **state)
{
    struct hed_layer *l = *state;
    pthread_t threads[8];

    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, l), 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(CALL(l, cuMemPoolTrimTo, (CUmemoryPool)(uintptr_t)0x7001, 0), CUDA_SUCCESS);
    assert_int_equal(atomic_load(&fake.taken), 0);
}

static void
random_sequences_agree_with_a_model(void **state)
{
    struct hed_layer *l = *state;
    uint64_t size[64] = {0};
    CUdeviceptr at[64] = {0};
    uint64_t model = 0;
    uint32_t seed = 20;

    for (int i = 0; i < 20000; i++) {
        const unsigned k = next_random(&seed) % 64;

        if (size[k]) {
            give(l, at[k]);
            model -= size[k];
            size[k] = 0;
        } else {
            const uint64_t n = (next_random(&seed) % 5 ? next_random(&seed) % (8 * MIB)
                                                       : next_random(&seed) % 3000) +
                               1;
            const uint64_t want = hed_quota_round(n);
            const CUresult expect =
                model + want <= 100 * MIB ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

            at[k] = take(l, n, expect);
            size[k] = expect == CUDA_SUCCESS ? want : 0;
            model += size[k];
        }
        assert_int_equal(charged(l), model);
    }
    for (unsigned k = 0; k < 64; k++)
        if (size[k])
            give(l, at[k]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(the_limit_is_met_exactly, setup, teardown),
    cmocka_unit_test_setup_teardown(every_refusal_is_logged, setup, teardown),
    cmocka_unit_test_setup_teardown(an_allocation_that_fails_is_given_back, setup, teardown),
    cmocka_unit_test_setup_teardown(without_a_context_the_call_is_passed_on, setup, teardown),
    cmocka_unit_test_setup_teardown(charges_equal_what_the_device_loses, setup, teardown),
    cmocka_unit_test_setup_teardown(arrays_are_charged_with_whole_tiles, setup, teardown),
    cmocka_unit_test_setup_teardown(a_pool_is_charged_with_what_it_keeps, setup, teardown),
    cmocka_unit_test_setup_teardown(a_step_that_does_not_fit_is_undone, setup, teardown),
    cmocka_unit_test_setup_teardown(physical_memory_lasts_until_its_last_handle_and_mapping, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(a_context_takes_its_memory_with_it, setup, teardown),
    cmocka_unit_test_setup_teardown(graph_memory_counts_while_graphs_have_it, setup, teardown),
    cmocka_unit_test_setup_teardown(loaded_code_is_charged_by_measuring, setup, teardown),
    cmocka_unit_test_setup_teardown(programs_see_the_limit_as_the_memory, setup, teardown),
    cmocka_unit_test_setup_teardown(threads_together_stay_below_the_limit, setup, teardown),
    cmocka_unit_test_setup_teardown(random_sequences_agree_with_a_model, setup, teardown),
};

HED_UNIT_MAIN(tests)
