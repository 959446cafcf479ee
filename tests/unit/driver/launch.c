/* Launches, attributes and occupancy of the soft driver. The expected values and errors are those
 * of NVIDIA's driver 580 on an H200 for kernels like these. */
#include "driver/module/module.h"
#include "driver/module/occupancy.h"
#include "driver/stream/work.h"
#include "unit/driver/captured.h"
#include "unit/driver/module_machine.h"

static const char *const names[] = {"k_plain", "k_none", "k_static", "k_max", "k_req"};

/* A driver with the kernels loaded. */
struct loaded {
    struct fake *f;
    CUmodule m;
    CUfunction k[5];
};

enum { PLAIN, NONE, STATIC, MAX, REQ };

/* The fake profile with an H200's number of multiprocessors. */
static struct loaded
loaded(void)
{
    struct loaded l = {.f = text_started(1)};
    struct hed_profile *p = &l.f->driver->devices[0].info.profile;

    p->attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = 132;
    (void)fake_use_primary(l.f, 0);
    l.m = text_module(l.f);
    for (int i = 0; i < 5; i++)
        l.k[i] = text_function(l.f, l.m, names[i]);
    return l;
}

#define LAUNCH(l, k, gx, gy, gz, bx, by, bz, sh, params, extra) \
    fake_call((l).f, cuLaunchKernel, k, gx, gy, gz, bx, by, bz, sh, NULL, params, extra, false)

static void
sizes_are_checked_at_once(void **state)
{
    static const struct {
        int kernel;
        unsigned size[7];
        CUresult result;
    } rows[] = {
        {NONE, {1, 1, 1, 1, 1, 1, 0}, CUDA_SUCCESS},
        {NONE, {0, 1, 1, 1, 1, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {NONE, {1, 1, 1, 0, 1, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {NONE, {1, 1, 1, 1025, 1, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {NONE, {1, 1, 1, 1, 1, 65, 0}, CUDA_ERROR_INVALID_VALUE},
        {NONE, {1, 1, 1, 64, 64, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {NONE, {0x80000000u, 1, 1, 1, 1, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {NONE, {1, 65536, 1, 1, 1, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {NONE, {1, 1, 65536, 1, 1, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {NONE, {1, 1, 1, 1, 1, 1, 49152}, CUDA_SUCCESS},
        {NONE, {1, 1, 1, 1, 1, 1, 49153}, CUDA_ERROR_INVALID_VALUE},
        {STATIC, {1, 1, 1, 1, 1, 1, 45056}, CUDA_SUCCESS},
        {STATIC, {1, 1, 1, 1, 1, 1, 45057}, CUDA_ERROR_INVALID_VALUE},
        {MAX, {1, 1, 1, 128, 1, 1, 0}, CUDA_SUCCESS},
        {MAX, {1, 1, 1, 129, 1, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {MAX, {1, 1, 1, 1, 128, 1, 0}, CUDA_SUCCESS},
        {REQ, {1, 1, 1, 64, 1, 1, 0}, CUDA_SUCCESS},
        {REQ, {1, 1, 1, 32, 1, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {REQ, {1, 1, 1, 8, 8, 1, 0}, CUDA_ERROR_INVALID_VALUE},
    };
    struct loaded l = loaded();

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const unsigned *s = rows[i].size;
        const CUresult r =
            LAUNCH(l, l.k[rows[i].kernel], s[0], s[1], s[2], s[3], s[4], s[5], s[6], NULL, NULL);

        if (r != rows[i].result)
            fail_msg("row %zu: %d, not %d", i, r, rows[i].result);
    }
    assert_int_equal(LAUNCH(l, NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(LAUNCH(l, (CUfunction)l.m, 1, 1, 1, 1, 1, 1, 0, NULL, NULL),
                     CUDA_ERROR_INVALID_HANDLE);
    fake_free(l.f);
}

static unsigned char seen[12];

static CUresult
keep_params(struct fake *f, const struct hed_launch *l)
{
    assert_int_equal(l->param_bytes, sizeof seen);
    memcpy(seen, l->params, sizeof seen);
    return CUDA_SUCCESS;
}

static void
parameters_come_one_by_one_or_in_a_buffer(void **state)
{
    struct loaded l = loaded();
    uint64_t a = 0x1122334455667788ull;
    uint32_t b = 0x99aabbcc;
    void *each[] = {&a, &b};
    void *hole[] = {&a, NULL};
    unsigned char buffer[64];
    size_t size = 12;
    void *extra[] = {(void *)1, buffer, (void *)2, &size, NULL};
    void *no_size[] = {(void *)1, buffer, NULL};
    void *unknown[] = {(void *)3, buffer, NULL};
    void *empty[] = {NULL};

    l.f->launch = keep_params;
    ok(LAUNCH(l, l.k[PLAIN], 1, 1, 1, 1, 1, 1, 0, each, NULL));
    ok(fake_call(l.f, cuCtxSynchronize, 0));
    assert_memory_equal(seen, &a, 8);
    assert_memory_equal(seen + 8, &b, 4);
    for (size_t i = 0; i < sizeof buffer; i++)
        buffer[i] = (unsigned char)i;
    ok(LAUNCH(l, l.k[PLAIN], 1, 1, 1, 1, 1, 1, 0, NULL, extra));
    ok(fake_call(l.f, cuCtxSynchronize, 0));
    assert_memory_equal(seen, buffer, 12);
    size = 8;
    ok(LAUNCH(l, l.k[PLAIN], 1, 1, 1, 1, 1, 1, 0, NULL, extra));
    size = 16;
    assert_int_equal(LAUNCH(l, l.k[PLAIN], 1, 1, 1, 1, 1, 1, 0, NULL, extra),
                     CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    size = 0;
    assert_int_equal(LAUNCH(l, l.k[PLAIN], 1, 1, 1, 1, 1, 1, 0, NULL, extra),
                     CUDA_ERROR_INVALID_VALUE);
    size = 12;
    assert_int_equal(LAUNCH(l, l.k[PLAIN], 1, 1, 1, 1, 1, 1, 0, each, extra),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(LAUNCH(l, l.k[PLAIN], 1, 1, 1, 1, 1, 1, 0, NULL, NULL),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(LAUNCH(l, l.k[PLAIN], 1, 1, 1, 1, 1, 1, 0, hole, NULL),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(LAUNCH(l, l.k[PLAIN], 1, 1, 1, 1, 1, 1, 0, NULL, no_size),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(LAUNCH(l, l.k[PLAIN], 1, 1, 1, 1, 1, 1, 0, NULL, unknown),
                     CUDA_ERROR_INVALID_VALUE);
    ok(fake_call(l.f, cuCtxSynchronize, 0));
    l.f->launch = text_launch;
    ok(LAUNCH(l, l.k[NONE], 1, 1, 1, 1, 1, 1, 0, NULL, empty));
    fake_free(l.f);
}

/* ---- attributes ------------------------------------------------------------------------------ */

static void
functions_have_attributes(void **state)
{
    static const int expected[5][16] = {
        {1024, 0, 100, 0, 4, 70, 90, 0, 49152, -1},    {1024, 0, 100, 0, 4, 70, 90, 0, 49152, -1},
        {1024, 4096, 100, 0, 4, 70, 90, 0, 45056, -1}, {128, 0, 100, 0, 4, 70, 90, 0, 49152, -1},
        {1024, 0, 100, 0, 4, 70, 90, 0, 49152, -1},
    };
    struct loaded l = loaded();

    for (int k = 0; k < 5; k++) {
        for (int a = 0; a < 16; a++) {
            int value = 77;

            ok(fake_call(l.f, cuFuncGetAttribute, &value, (CUfunction_attribute)a, l.k[k]));
            if (value != expected[k][a])
                fail_msg("%s, attribute %d: %d, not %d", names[k], a, value, expected[k][a]);
        }
        assert_int_equal(
            fake_call(l.f, cuFuncGetAttribute, &(int){0}, CU_FUNC_ATTRIBUTE_MAX, l.k[k]),
            CUDA_ERROR_INVALID_VALUE);
    }
    fake_free(l.f);
}

static void
settings_are_bounded(void **state)
{
    static const struct {
        int kernel, attribute, value;
        CUresult result;
    } rows[] = {
        {NONE, 8, 232448, CUDA_SUCCESS},
        {NONE, 8, 232449, CUDA_ERROR_INVALID_VALUE},
        {STATIC, 8, 228352, CUDA_SUCCESS},
        {STATIC, 8, 228353, CUDA_ERROR_INVALID_VALUE},
        {NONE, 8, -1, CUDA_ERROR_INVALID_VALUE},
        {NONE, 9, 101, CUDA_ERROR_INVALID_VALUE},
        {NONE, 9, -2, CUDA_ERROR_INVALID_VALUE},
        {NONE, 9, 50, CUDA_SUCCESS},
        {NONE, 9, -1, CUDA_SUCCESS},
        {NONE, 0, 1, CUDA_ERROR_INVALID_VALUE},
        {NONE, 10, 1, CUDA_ERROR_INVALID_VALUE},
        {NONE, 11, 2, CUDA_SUCCESS},
        {NONE, 11, 0, CUDA_SUCCESS},
        {NONE, 14, 2, CUDA_SUCCESS},
        {NONE, 14, 0, CUDA_SUCCESS},
        {NONE, 15, 9, CUDA_ERROR_INVALID_VALUE},
        {NONE, 16, 0, CUDA_ERROR_INVALID_VALUE},
        {NONE, 99, 0, CUDA_ERROR_INVALID_VALUE},
    };
    struct loaded l = loaded();

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (fake_call(l.f, cuFuncSetAttribute, l.k[rows[i].kernel],
                      (CUfunction_attribute)rows[i].attribute, rows[i].value) != rows[i].result)
            fail_msg("row %zu", i);
    ok(LAUNCH(l, l.k[NONE], 1, 1, 1, 1, 1, 1, 232448, NULL, NULL));
    ok(fake_call(l.f, cuFuncSetAttribute, l.k[NONE], 8, 100));
    assert_int_equal(LAUNCH(l, l.k[NONE], 1, 1, 1, 1, 1, 1, 101, NULL, NULL),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(l.f, cuFuncSetCacheConfig, l.k[NONE], (CUfunc_cache)9),
                     CUDA_ERROR_INVALID_VALUE);
    fake_free(l.f);
}

static void
kernels_share_settings_with_their_functions(void **state)
{
    struct loaded l = loaded();
    CUlibrary library = NULL;
    CUkernel k = NULL;
    CUfunction in = NULL;
    int value = 0;

    ok(fake_call(l.f, cuLibraryLoadData, &library, text_ptx, NULL, NULL, 0, NULL, NULL, 0));
    ok(fake_call(l.f, cuLibraryGetKernel, &k, library, "k_none"));
    ok(fake_call(l.f, cuKernelSetAttribute, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000,
                 k, 0));
    ok(fake_call(l.f, cuKernelGetFunction, &in, k));
    ok(fake_call(l.f, cuFuncGetAttribute, &value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                 in));
    assert_int_equal(value, 60000);
    assert_int_equal(fake_call(l.f, cuKernelSetAttribute, 8, 60000, k, 5),
                     CUDA_ERROR_INVALID_DEVICE);
    /* Calls that query functions do not accept a CUkernel. */
    assert_int_equal(fake_call(l.f, cuFuncGetAttribute, &value, 0, (CUfunction)k),
                     CUDA_ERROR_INVALID_HANDLE);
    ok(fake_call(l.f, cuOccupancyMaxActiveBlocksPerMultiprocessor, &value, (CUfunction)k, 128, 0));
    assert_int_equal(value, 16);
    ok(fake_call(l.f, cuLibraryUnload, library));
    fake_free(l.f);
}

static void
parameters_can_be_asked_about(void **state)
{
    struct loaded l = loaded();
    size_t offset = 0, size = 0;

    ok(fake_call(l.f, cuFuncGetParamInfo, l.k[PLAIN], 1, &offset, &size));
    assert_int_equal(offset, 8);
    assert_int_equal(size, 4);
    assert_int_equal(fake_call(l.f, cuFuncGetParamInfo, l.k[PLAIN], 2, &offset, &size),
                     CUDA_ERROR_INVALID_VALUE);
    fake_free(l.f);
}

static void
loading_a_function_compiles_it_once(void **state)
{
    struct loaded l = loaded();
    CUfunctionLoadingState loading;

    ok(fake_call(l.f, cuFuncIsLoaded, &loading, l.k[NONE]));
    assert_int_equal(loading, CU_FUNCTION_LOADING_STATE_UNLOADED);
    ok(fake_call(l.f, cuFuncLoad, l.k[NONE]));
    ok(LAUNCH(l, l.k[NONE], 1, 1, 1, 1, 1, 1, 0, NULL, NULL));
    ok(fake_call(l.f, cuFuncIsLoaded, &loading, l.k[NONE]));
    assert_int_equal(loading, CU_FUNCTION_LOADING_STATE_LOADED);
    assert_int_equal(atomic_load(&l.f->prepares), 1);
    fake_free(l.f);
}

static CUresult
launch_plainly(struct loaded *l)
{
    return LAUNCH((*l), l->k[NONE], 1, 1, 1, 1, 1, 1, 0, NULL, NULL);
}

/* Makes a launch that is refused three times; the log goes to text. */
static void
launch_refused(struct loaded *l, CUresult (*launch)(struct loaded *l), char *text, size_t size)
{
    struct captured log;

    captured_begin(&log);
    for (int i = 0; i < 3; i++)
        assert_int_equal(launch(l), CUDA_ERROR_NOT_SUPPORTED);
    captured_end(&log, text, size);
}

static void
a_kernel_that_cannot_run_is_named_once(void **state)
{
    struct loaded l = loaded();
    char text[2048];

    l.f->prepare_result = CUDA_ERROR_NOT_SUPPORTED;
    l.f->driver->devices[0].info.profile.major = 8;
    launch_refused(&l, launch_plainly, text, sizeof text);
    assert_one_line(text, "not today: kernel k_none cannot run here. Run it on a GPU.");
    fake_free(l.f);
}

/* ---- occupancy ------------------------------------------------------------------------------- */

static void
blocks_fit_as_on_an_h200(void **state)
{
    static const struct {
        int kernel, threads;
        size_t dynamic;
        int blocks;
    } rows[] = {
        {NONE, 1, 0, 32},        {NONE, 33, 0, 32},        {NONE, 100, 0, 16},
        {NONE, 128, 0, 16},      {NONE, 768, 0, 2},        {NONE, 1024, 0, 2},
        {NONE, 1025, 0, 0},      {MAX, 256, 0, 8},         {NONE, 128, 8192, 16},
        {NONE, 128, 16384, 13},  {STATIC, 128, 16384, 10}, {NONE, 128, 49153, 4},
        {STATIC, 128, 49153, 4}, {NONE, 128, 100000, 2},   {NONE, 128, 116000, 1},
        {NONE, 128, 232448, 1},  {STATIC, 128, 232448, 0}, {NONE, 128, 300000, 0},
    };
    struct loaded l = loaded();
    int n = 0;

    ok(fake_call(l.f, cuFuncSetAttribute, l.k[NONE], 8, 232448));
    ok(fake_call(l.f, cuFuncSetAttribute, l.k[STATIC], 8, 228352));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ok(fake_call(l.f, cuOccupancyMaxActiveBlocksPerMultiprocessor, &n, l.k[rows[i].kernel],
                     rows[i].threads, rows[i].dynamic));
        if (n != rows[i].blocks)
            fail_msg("row %zu: %d, not %d", i, n, rows[i].blocks);
    }
    assert_int_equal(
        fake_call(l.f, cuOccupancyMaxActiveBlocksPerMultiprocessor, &n, l.k[NONE], 0, 0),
        CUDA_ERROR_INVALID_VALUE);
    fake_free(l.f);
}

static void
registers_limit_blocks(void **state)
{
    struct hed_profile_device d;
    struct hed_need need = {.threads = 256, .registers = 255};

    fake_profile(&d, 0);
    assert_int_equal(hed_occupancy_blocks(&d.profile, &need), 1);
    need.registers = 128;
    assert_int_equal(hed_occupancy_blocks(&d.profile, &need), 2);
    need.registers = 40;
    assert_int_equal(hed_occupancy_blocks(&d.profile, &need), 6);
    need = (struct hed_need){.threads = 1024, .registers = 65};
    assert_int_equal(hed_occupancy_blocks(&d.profile, &need), 0);
    need.registers = 256;
    assert_int_equal(hed_occupancy_blocks(&d.profile, &need), 0);
}

static size_t
per_thread(int threads)
{
    return (size_t)threads * 100;
}

static void
the_best_block_is_found(void **state)
{
    static const struct {
        int kernel;
        size_t dynamic;
        int limit, grid, block;
    } rows[] = {{NONE, 0, 0, 264, 1024},
                {MAX, 0, 0, 2112, 128},
                {NONE, 0, 200, 2112, 128},
                {NONE, 100000, 0, 264, 1024}};
    struct loaded l = loaded();
    int grid = 0, block = 0;

    ok(fake_call(l.f, cuFuncSetAttribute, l.k[NONE], 8, 232448));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ok(fake_call(l.f, cuOccupancyMaxPotentialBlockSize, &grid, &block, l.k[rows[i].kernel],
                     NULL, rows[i].dynamic, rows[i].limit));
        assert_int_equal(grid, rows[i].grid);
        assert_int_equal(block, rows[i].block);
    }
    ok(fake_call(l.f, cuOccupancyMaxPotentialBlockSize, &grid, &block, l.k[NONE], per_thread, 0,
                 0));
    assert_true(block > 0 && grid > 0);
    fake_free(l.f);
}

static void
shared_memory_that_is_left_is_told(void **state)
{
    static const struct {
        int kernel, blocks;
        size_t left;
    } rows[] = {{NONE, 1, 232448}, {STATIC, 1, 228352}, {NONE, 2, 116736}, {STATIC, 2, 112640},
                {NONE, 8, 29184},  {STATIC, 8, 25088},  {NONE, 16, 14592}, {STATIC, 16, 10496}};
    struct loaded l = loaded();
    size_t left = 0;

    /* No more than a launch may have. */
    ok(fake_call(l.f, cuOccupancyAvailableDynamicSMemPerBlock, &left, l.k[STATIC], 1, 128));
    assert_int_equal(left, 45056);
    ok(fake_call(l.f, cuFuncSetAttribute, l.k[NONE],
                 CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448));
    ok(fake_call(l.f, cuFuncSetAttribute, l.k[STATIC],
                 CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 228352));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ok(fake_call(l.f, cuOccupancyAvailableDynamicSMemPerBlock, &left, l.k[rows[i].kernel],
                     rows[i].blocks, 128));
        assert_int_equal(left, rows[i].left);
    }
    assert_int_equal(
        fake_call(l.f, cuOccupancyAvailableDynamicSMemPerBlock, &left, l.k[NONE], 33, 128),
        CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(
        fake_call(l.f, cuOccupancyAvailableDynamicSMemPerBlock, &left, l.k[NONE], 3, 1024),
        CUDA_ERROR_INVALID_VALUE);
    fake_free(l.f);
}

/* ---- launches with attributes ---------------------------------------------------------------- */

static CUresult
launch_with(struct loaded *l, unsigned grid, const CUlaunchAttribute *a)
{
    CUlaunchAttribute copy = *a;
    const CUlaunchConfig config = {.gridDimX = grid,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = 128,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .attrs = &copy,
                                   .numAttrs = 1};

    return fake_call(l->f, cuLaunchKernelEx, &config, l->k[NONE], NULL, NULL, false);
}

static CUresult
launch_cluster(struct loaded *l, unsigned grid, unsigned x)
{
    return launch_with(l, grid,
                       &(CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                            .value.clusterDim = {x, 1, 1}});
}

static void
clusters_are_checked(void **state)
{
    struct loaded l = loaded();

    for (unsigned n = 1; n <= 8; n *= 2)
        ok(launch_cluster(&l, 100 * n, n));
    assert_int_equal(launch_cluster(&l, 1600, 16), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    ok(launch_cluster(&l, 132, 3));
    assert_int_equal(launch_cluster(&l, 133, 2), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    assert_int_equal(launch_cluster(&l, 132, 0), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    ok(fake_call(l.f, cuFuncSetAttribute, l.k[NONE],
                 CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    ok(launch_cluster(&l, 160, 16));
    fake_free(l.f);
}

static CUresult
launch_pair(struct loaded *l)
{
    return launch_cluster(l, 2, 2);
}

static void
a_kernel_that_needs_clusters_is_named_once(void **state)
{
    struct loaded l = loaded();
    char text[2048];

    l.f->near.machine.clusters = false;
    launch_refused(&l, launch_pair, text, sizeof text);
    assert_one_line(text,
                    "error driver: clusters of blocks are not supported: kernel k_none cannot "
                    "run here. Choose an older device (--gpu cpu:a100), or run it on a GPU.");
    fake_free(l.f);
}

static void
attributes_of_a_launch_are_checked(void **state)
{
    static const CUresult zero[20] = {
        [3] = CUDA_ERROR_INVALID_VALUE,   [7] = CUDA_ERROR_INVALID_HANDLE,
        [12] = CUDA_ERROR_INVALID_HANDLE, [13] = CUDA_ERROR_NOT_SUPPORTED,
        [15] = CUDA_ERROR_INVALID_VALUE,  [17] = CUDA_ERROR_INVALID_VALUE,
        [18] = CUDA_ERROR_INVALID_VALUE,  [19] = CUDA_ERROR_INVALID_VALUE,
    };
    struct loaded l = loaded();

    for (int id = 0; id < 20; id++) {
        const CUresult r = launch_with(&l, 4, &(CUlaunchAttribute){.id = (CUlaunchAttributeID)id});

        if (r != zero[id])
            fail_msg("attribute %d: %d, not %d", id, r, zero[id]);
    }
    assert_int_equal(fake_call(l.f, cuLaunchKernelEx, NULL, l.k[NONE], NULL, NULL, false),
                     CUDA_ERROR_INVALID_VALUE);
    fake_free(l.f);
}

static void
a_cooperative_grid_must_fit(void **state)
{
    struct loaded l = loaded();
    const CUlaunchAttribute a = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};

    ok(launch_with(&l, 132 * 16, &a));
    assert_int_equal(launch_with(&l, 132 * 16 + 1, &a), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    assert_int_equal(fake_call(l.f, cuLaunchCooperativeKernel, l.k[NONE], 132 * 16 + 1, 1, 1, 128,
                               1, 1, 0, NULL, NULL, false),
                     CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    fake_free(l.f);
}

static void
a_completion_event_is_recorded(void **state)
{
    struct loaded l = loaded();
    CUevent e = NULL;

    ok(fake_call(l.f, cuEventCreate, &e, CU_EVENT_DISABLE_TIMING));
    ok(launch_with(&l, 1,
                   &(CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
                                        .value.launchCompletionEvent = {e, 0}}));
    ok(fake_call(l.f, cuEventSynchronize, e));
    assert_int_equal(atomic_load(&l.f->launches), 1);
    fake_free(l.f);
}

static void
old_launches_work(void **state)
{
    struct loaded l = loaded();
    const uint64_t a = 5;

    l.f->launch = keep_params;
    ok(fake_call(l.f, cuFuncSetBlockShape, l.k[PLAIN], 32, 1, 1));
    ok(fake_call(l.f, cuParamSetSize, l.k[PLAIN], 12));
    ok(fake_call(l.f, cuParamSetv, l.k[PLAIN], 0, (void *)(uintptr_t)&a, 8));
    ok(fake_call(l.f, cuParamSeti, l.k[PLAIN], 8, 6));
    assert_int_equal(fake_call(l.f, cuParamSeti, l.k[PLAIN], 4096, 6), CUDA_ERROR_INVALID_VALUE);
    ok(fake_call(l.f, cuLaunchGrid, l.k[PLAIN], 2, 2));
    ok(fake_call(l.f, cuCtxSynchronize, 0));
    assert_memory_equal(seen, &a, 8);
    assert_int_equal(seen[8], 6);
    fake_free(l.f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sizes_are_checked_at_once),
    cmocka_unit_test(parameters_come_one_by_one_or_in_a_buffer),
    cmocka_unit_test(functions_have_attributes),
    cmocka_unit_test(settings_are_bounded),
    cmocka_unit_test(kernels_share_settings_with_their_functions),
    cmocka_unit_test(parameters_can_be_asked_about),
    cmocka_unit_test(loading_a_function_compiles_it_once),
    cmocka_unit_test(a_kernel_that_cannot_run_is_named_once),
    cmocka_unit_test(blocks_fit_as_on_an_h200),
    cmocka_unit_test(registers_limit_blocks),
    cmocka_unit_test(the_best_block_is_found),
    cmocka_unit_test(shared_memory_that_is_left_is_told),
    cmocka_unit_test(clusters_are_checked),
    cmocka_unit_test(a_kernel_that_needs_clusters_is_named_once),
    cmocka_unit_test(attributes_of_a_launch_are_checked),
    cmocka_unit_test(a_cooperative_grid_must_fit),
    cmocka_unit_test(a_completion_event_is_recorded),
    cmocka_unit_test(old_launches_work),
};

HED_UNIT_MAIN(tests)
