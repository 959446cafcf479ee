/* Tests of the watch layer: what it counts, which memory it knows, which contexts are broken. */
#include "harness/unit.h"

#include <stdlib.h>

#include "backends/null/null.h"
#include "base/err.h"
#include "core/config.h"
#include "core/layer.h"
#include "core/refusal.h"
#include "core/stats.h"
#include "layers/layers.h"

/* ---- a layer below that answers what the test wants ------------------------------------------ */

static CUresult answer; /* of cuCtxSynchronize, cuMemFree, cuMemRelease and others below */
static CUcontext current = (CUcontext)0x10;
static CUcontext broken;        /* cuCtxSynchronize fails there alone; NULL: everywhere */
static CUcontext of_stream;     /* whose streams are */
static bool captures;           /* all streams do */
static int active;              /* is the primary context? */
static void (*meanwhile)(void); /* what another thread does after a context has ended */

static CUresult
odd_cuCtxSynchronize(struct hed_layer *self, struct hed_cuCtxSynchronize *a)
{
    (void)self;
    (void)a;
    if (meanwhile)
        meanwhile();
    return !broken || broken == current ? answer : CUDA_SUCCESS;
}

static CUresult
odd_cuMemFree_v2(struct hed_layer *self, struct hed_cuMemFree_v2 *a)
{
    return answer ? answer : hed_next(self, cuMemFree_v2, a);
}

static CUresult
odd_cuMemRelease(struct hed_layer *self, struct hed_cuMemRelease *a)
{
    (void)self;
    (void)a;
    return answer;
}

static CUresult
odd_cuMemCreate(struct hed_layer *self, struct hed_cuMemCreate *a)
{
    (void)self;
    *a->handle = 0x99;
    return CUDA_SUCCESS;
}

static CUresult
odd_cuMemRetainAllocationHandle(struct hed_layer *self, struct hed_cuMemRetainAllocationHandle *a)
{
    (void)self;
    *a->handle = 0x99;
    return CUDA_SUCCESS;
}

static CUresult
odd_cuCtxGetCurrent(struct hed_layer *self, struct hed_cuCtxGetCurrent *a)
{
    (void)self;
    *a->pctx = current;
    return CUDA_SUCCESS;
}

static CUresult
odd_cuCtxDestroy_v2(struct hed_layer *self, struct hed_cuCtxDestroy_v2 *a)
{
    (void)self;
    (void)a;
    if (meanwhile)
        meanwhile();
    return answer;
}

static CUresult
odd_cuCtxCreate_v2(struct hed_layer *self, struct hed_cuCtxCreate_v2 *a)
{
    (void)self;
    *a->pctx = current = (CUcontext)0x30;
    return CUDA_SUCCESS;
}

static CUresult
odd_cuCtxPushCurrent_v2(struct hed_layer *self, struct hed_cuCtxPushCurrent_v2 *a)
{
    (void)self;
    current = a->ctx;
    return CUDA_SUCCESS;
}

static CUresult
odd_cuCtxPopCurrent_v2(struct hed_layer *self, struct hed_cuCtxPopCurrent_v2 *a)
{
    (void)self;
    *a->pctx = current;
    current = (CUcontext)0x10;
    return CUDA_SUCCESS;
}

static CUresult
odd_cuDevicePrimaryCtxRetain(struct hed_layer *self, struct hed_cuDevicePrimaryCtxRetain *a)
{
    (void)self;
    *a->pctx = (CUcontext)0x10;
    active++;
    return CUDA_SUCCESS;
}

static CUresult
odd_cuDevicePrimaryCtxRelease_v2(struct hed_layer *self, struct hed_cuDevicePrimaryCtxRelease_v2 *a)
{
    (void)self;
    (void)a;
    active--;
    return CUDA_SUCCESS;
}

static CUresult
odd_cuDevicePrimaryCtxGetState(struct hed_layer *self, struct hed_cuDevicePrimaryCtxGetState *a)
{
    (void)self;
    *a->active = active > 0;
    return CUDA_SUCCESS;
}

static CUresult
odd_cuStreamGetCtx(struct hed_layer *self, struct hed_cuStreamGetCtx *a)
{
    (void)self;
    *a->pctx = of_stream;
    return CUDA_SUCCESS;
}

static CUresult
odd_cuStreamQuery(struct hed_layer *self, struct hed_cuStreamQuery *a)
{
    (void)self;
    (void)a;
    return answer;
}

static CUresult
odd_cuEventQuery(struct hed_layer *self, struct hed_cuEventQuery *a)
{
    (void)self;
    (void)a;
    return answer;
}

static CUresult
odd_cuStreamIsCapturing(struct hed_layer *self, struct hed_cuStreamIsCapturing *a)
{
    (void)self;
    *a->captureStatus = captures ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

static CUresult
odd_cuMemAllocAsync(struct hed_layer *self, struct hed_cuMemAllocAsync *a)
{
    (void)self;
    *a->dptr = 0x7000;
    return CUDA_SUCCESS;
}

static CUresult
odd_cuMemFreeAsync(struct hed_layer *self, struct hed_cuMemFreeAsync *a)
{
    (void)self;
    (void)a;
    return CUDA_SUCCESS;
}

static CUresult
odd_cuLaunchKernel(struct hed_layer *self, struct hed_cuLaunchKernel *a)
{
    (void)self;
    (void)a;
    return answer;
}

static const struct hed_cuda_ops odd_ops = {
    .cuCtxSynchronize = odd_cuCtxSynchronize,
    .cuMemFree_v2 = odd_cuMemFree_v2,
    .cuMemRelease = odd_cuMemRelease,
    .cuMemCreate = odd_cuMemCreate,
    .cuMemRetainAllocationHandle = odd_cuMemRetainAllocationHandle,
    .cuCtxGetCurrent = odd_cuCtxGetCurrent,
    .cuCtxDestroy_v2 = odd_cuCtxDestroy_v2,
    .cuCtxCreate_v2 = odd_cuCtxCreate_v2,
    .cuCtxPushCurrent_v2 = odd_cuCtxPushCurrent_v2,
    .cuCtxPopCurrent_v2 = odd_cuCtxPopCurrent_v2,
    .cuDevicePrimaryCtxRetain = odd_cuDevicePrimaryCtxRetain,
    .cuDevicePrimaryCtxRelease_v2 = odd_cuDevicePrimaryCtxRelease_v2,
    .cuDevicePrimaryCtxGetState = odd_cuDevicePrimaryCtxGetState,
    .cuStreamGetCtx = odd_cuStreamGetCtx,
    .cuStreamQuery = odd_cuStreamQuery,
    .cuEventQuery = odd_cuEventQuery,
    .cuStreamIsCapturing = odd_cuStreamIsCapturing,
    .cuMemAllocAsync = odd_cuMemAllocAsync,
    .cuMemFreeAsync = odd_cuMemFreeAsync,
    .cuLaunchKernel = odd_cuLaunchKernel,
};

static const struct hed_layer_type odd = {.name = "odd", .cuda = &odd_ops};

static struct hed_layer *top;

static int
open_chain(void **state)
{
    static struct hed_config config; /* large */
    static struct hed_layer_room bottom;
    static struct hed_layer_room middle;
    struct hed_why why = {""};

    (void)state;
    answer = CUDA_SUCCESS;
    current = (CUcontext)0x10;
    broken = of_stream = NULL;
    captures = false;
    active = 0;
    meanwhile = NULL;
    hed_config_init(&config);
    hed_layer_place(&bottom, &hed_null_backend, NULL);
    hed_layer_place(&middle, &odd, &bottom.layer);
    if (hed_layer_create(&hed_watch_layer, &middle.layer, &config, &top, &why) != 0)
        fail_msg("%s", why.text);
    return 0;
}

static int
close_chain(void **state)
{
    (void)state;
    hed_layer_free(top); /* its state stays, as at a program's end */
    return 0;
}

static struct hed_counts
counts(void)
{
    struct hed_counts c = {0};

    top->type->count(top, &c);
    return c;
}

static CUdeviceptr
allocate(size_t bytes)
{
    CUdeviceptr p = 0;

    assert_int_equal(top->cuda->cuMemAlloc_v2(top, &(struct hed_cuMemAlloc_v2){&p, bytes}), 0);
    return p;
}

static CUresult
give_back(CUdeviceptr p)
{
    return top->cuda->cuMemFree_v2(top, &(struct hed_cuMemFree_v2){p});
}

static uint64_t
list_memory(uint64_t after, struct hed_control_memory *out, size_t room)
{
    struct hed_control c = {
        .what = HED_CONTROL_MEMORY, .count = after, .out = out, .room = room * sizeof *out};

    assert_int_equal(top->type->control(top, &c, NULL), 0);
    return c.count;
}

static CUresult
end_context(CUcontext context)
{
    return top->cuda->cuCtxDestroy_v2(top, &(struct hed_cuCtxDestroy_v2){context});
}

static CUresult
settle(void)
{
    struct hed_control c = {.what = HED_CONTROL_SETTLE};

    assert_int_equal(top->type->control(top, &c, NULL), 0);
    return (CUresult)c.count;
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void
memory_is_known_until_it_is_freed(void **state)
{
    struct hed_control_memory items[4];
    const CUdeviceptr a = allocate(100);
    const CUdeviceptr b = allocate(1000);

    assert_true(counts().allocations == 2 && counts().live_allocations == 2);
    assert_true(counts().memory_bytes == 1100);
    assert_int_equal(give_back(a), CUDA_SUCCESS);
    assert_true(counts().allocations == 2 && counts().live_allocations == 1);
    assert_true(counts().memory_bytes == 1000 && counts().memory_peak == 1100);
    assert_int_equal(list_memory(0, items, 4), 1);
    assert_true(items[0].serial == 2 && items[0].address == b && items[0].bytes == 1000);
    assert_int_not_equal(items[0].library[0], '\0'); /* this program */
    assert_int_equal(list_memory(2, items, 4), 0);
    answer = CUDA_ERROR_INVALID_VALUE;
    assert_int_equal(give_back(b), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(list_memory(0, items, 4), 1);
    assert_true(items[0].serial == 2); /* the same allocation still */
    answer = CUDA_SUCCESS;
    assert_int_equal(give_back(b), CUDA_SUCCESS);
    assert_int_equal(give_back(0x12345), CUDA_SUCCESS); /* never seen */
    assert_true(counts().live_allocations == 0 && counts().memory_bytes == 0);
}

static void
lists_begin_with_the_oldest(void **state)
{
    struct hed_control_memory items[8];

    for (int i = 1; i <= 20; i++)
        (void)allocate(16);
    assert_int_equal(list_memory(5, items, 8), 8);
    for (uint64_t i = 0; i < 8; i++)
        assert_true(items[i].serial == 6 + i);
    assert_int_equal(list_memory(0, NULL, 0), 0);
}

static void
memory_ends_with_its_context(void **state)
{
    (void)allocate(100);
    current = (CUcontext)0x20;
    (void)allocate(10);
    answer = CUDA_ERROR_INVALID_VALUE;
    assert_int_equal(end_context((CUcontext)0x10), CUDA_ERROR_INVALID_VALUE);
    assert_true(counts().memory_bytes == 110 && counts().live_allocations == 2);
    answer = CUDA_SUCCESS;
    assert_int_equal(end_context((CUcontext)0x10), CUDA_SUCCESS);
    assert_true(counts().memory_bytes == 10);
}

static void
allocate_in_the_same_place(void)
{
    meanwhile = NULL;
    current = (CUcontext)0x10;
    (void)allocate(5);
}

static void
a_new_context_with_the_same_handle_keeps_its_memory(void **state)
{
    (void)allocate(100);
    meanwhile = allocate_in_the_same_place;
    assert_int_equal(end_context((CUcontext)0x10), CUDA_SUCCESS);
    assert_true(counts().memory_bytes == 5 && counts().live_allocations == 1);
}

static void
captured_calls_are_no_memory(void **state)
{
    CUdeviceptr p = 0;
    const CUstream stream = (CUstream)0x100;
    struct hed_cuMemAllocAsync make = {.dptr = &p, .bytesize = 100, .hStream = stream};
    struct hed_cuMemFreeAsync end = {.dptr = 0x7000, .hStream = stream};
    struct hed_cuStreamBeginCapture_v2 begin = {.hStream = stream};

    assert_int_equal(top->cuda->cuMemAllocAsync(top, &make), CUDA_SUCCESS);
    assert_true(counts().memory_bytes == 100);
    (void)top->cuda->cuStreamBeginCapture_v2(top, &begin);
    captures = true;
    assert_int_equal(top->cuda->cuMemFreeAsync(top, &end), CUDA_SUCCESS);
    assert_true(counts().memory_bytes == 100);
    assert_int_equal(top->cuda->cuMemAllocAsync(top, &make), CUDA_SUCCESS);
    assert_true(counts().memory_bytes == 100 && counts().allocations == 1);
    captures = false;
    assert_int_equal(top->cuda->cuMemFreeAsync(top, &end), CUDA_SUCCESS);
    assert_true(counts().memory_bytes == 0);
}

static void
memory_of_the_host_is_not_counted(void **state)
{
    CUmemAllocationProp_v1 prop = {.location = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA}};
    CUmemGenericAllocationHandle h = 0;
    struct hed_cuMemCreate make = {.handle = &h, .size = 4096, .prop = &prop};

    assert_int_equal(top->cuda->cuMemCreate(top, &make), CUDA_SUCCESS);
    assert_true(counts().memory_bytes == 0);
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    assert_int_equal(top->cuda->cuMemCreate(top, &make), CUDA_SUCCESS);
    assert_true(counts().memory_bytes == 4096);
}

static void
a_handle_counts_its_owners(void **state)
{
    CUmemGenericAllocationHandle h = 0;
    struct hed_cuMemCreate make = {.handle = &h, .size = 4096};
    struct hed_cuMemRetainAllocationHandle retain = {.handle = &h};
    struct hed_cuMemRelease release = {0x99};

    assert_int_equal(top->cuda->cuMemCreate(top, &make), CUDA_SUCCESS);
    assert_int_equal(top->cuda->cuMemRetainAllocationHandle(top, &retain), CUDA_SUCCESS);
    assert_int_equal(top->cuda->cuMemRelease(top, &release), CUDA_SUCCESS);
    assert_true(counts().memory_bytes == 4096);
    answer = CUDA_ERROR_INVALID_VALUE;
    assert_int_equal(top->cuda->cuMemRelease(top, &release), CUDA_ERROR_INVALID_VALUE);
    assert_true(counts().memory_bytes == 4096);
    answer = CUDA_SUCCESS;
    assert_int_equal(top->cuda->cuMemRelease(top, &release), CUDA_SUCCESS);
    assert_true(counts().memory_bytes == 0);
}

static void
mipmapped_arrays_count_all_levels(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR_v2 d = {
        .Width = 8, .Height = 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    CUmipmappedArray array = NULL;
    struct hed_cuMipmappedArrayCreate make = {
        .pHandle = &array, .pMipmappedArrayDesc = &d, .numMipmapLevels = 3};

    assert_int_equal(top->cuda->cuMipmappedArrayCreate(top, &make), CUDA_SUCCESS);
    assert_int_equal(counts().memory_bytes, (8 * 4 + 4 * 2 + 2 * 1) * 4);
}

static CUresult
synchronize(void)
{
    return top->cuda->cuCtxSynchronize(top, &(struct hed_cuCtxSynchronize){0});
}

static void
a_broken_context_is_one_problem(void **state)
{
    const uint64_t before = hed_problem_count();
    char text[256];

    answer = CUDA_ERROR_INVALID_VALUE; /* an error of the call alone */
    (void)synchronize();
    assert_true(hed_problem_count() == before && counts().context_errors == 0);
    answer = CUDA_ERROR_ILLEGAL_ADDRESS;
    for (int i = 0; i < 5; i++)
        assert_int_equal(synchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_true(hed_problem_count() == before + 1 && counts().context_errors == 1);
    assert_true(hed_problem_get(before, text, sizeof text));
    assert_string_equal(text, "a context is broken: cuCtxSynchronize was answered with "
                              "CUDA_ERROR_ILLEGAL_ADDRESS");
    hed_problem_cause("address 0x10 in kernel k");
    current = (CUcontext)0x20;
    (void)synchronize();
    assert_true(hed_problem_get(before + 1, text, sizeof text));
    assert_string_equal(text, "a context is broken: address 0x10 in kernel k (cuCtxSynchronize: "
                              "CUDA_ERROR_ILLEGAL_ADDRESS)");
    answer = CUDA_SUCCESS;
    assert_int_equal(end_context(current), CUDA_SUCCESS);
    answer = CUDA_ERROR_ILLEGAL_ADDRESS;
    (void)synchronize(); /* a new context may have the same handle */
    assert_true(counts().context_errors == 3);
    assert_false(hed_problem_get(before + 3, text, sizeof text));
}

static void
the_context_of_a_stream_is_blamed(void **state)
{
    const CUstream stream = (CUstream)0x100;

    of_stream = (CUcontext)0x20;
    answer = CUDA_ERROR_LAUNCH_FAILED;
    (void)top->cuda->cuStreamQuery(top, &(struct hed_cuStreamQuery){.hStream = stream});
    assert_true(counts().context_errors == 1);
    current = (CUcontext)0x20; /* it is known now */
    (void)synchronize();
    assert_true(counts().context_errors == 1);
    current = (CUcontext)0x10; /* and this one breaks later */
    (void)synchronize();
    assert_true(counts().context_errors == 2);
}

static void
polling_is_one_problem(void **state)
{
    answer = CUDA_ERROR_LAUNCH_FAILED;
    current = NULL;
    for (int i = 0; i < 100; i++)
        (void)synchronize();
    assert_true(counts().context_errors == 1);
    for (int i = 0; i < 100; i++) {
        current = i % 2 ? NULL : (CUcontext)0x10;
        (void)top->cuda->cuEventQuery(top, &(struct hed_cuEventQuery){(CUevent)0x500});
    }
    assert_true(counts().context_errors == 1);
    current = (CUcontext)0x10; /* this was it */
    (void)synchronize();
    assert_true(counts().context_errors == 1);
    current = (CUcontext)0x20; /* another one */
    (void)synchronize();
    assert_true(counts().context_errors == 2);
}

static void
contexts_of_the_program_are_waited_for(void **state)
{
    CUcontext made = NULL;

    assert_int_equal(top->cuda->cuCtxCreate_v2(top, &(struct hed_cuCtxCreate_v2){.pctx = &made}),
                     CUDA_SUCCESS);
    current = (CUcontext)0x10;
    assert_int_equal(settle(), CUDA_SUCCESS);
    broken = made;
    answer = CUDA_ERROR_ILLEGAL_ADDRESS;
    assert_int_equal(settle(), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_true(counts().context_errors == 1 && current == (CUcontext)0x10);
    answer = CUDA_SUCCESS;
    assert_int_equal(end_context(made), CUDA_SUCCESS);
    answer = CUDA_ERROR_ILLEGAL_ADDRESS;
    assert_int_equal(settle(), CUDA_SUCCESS);
}

static void
release_while_waiting(void)
{
    meanwhile = NULL;
    active--; /* in another thread, by a call that the layer does not see */
}

static void
waiting_may_end_a_primary_context(void **state)
{
    CUcontext primary = NULL;

    assert_int_equal(top->cuda->cuDevicePrimaryCtxRetain(
                         top, &(struct hed_cuDevicePrimaryCtxRetain){.pctx = &primary}),
                     CUDA_SUCCESS);
    (void)allocate(100);
    assert_int_equal(settle(), CUDA_SUCCESS);
    assert_true(counts().memory_bytes == 100);
    meanwhile = release_while_waiting;
    assert_int_equal(settle(), CUDA_SUCCESS);
    assert_true(counts().memory_bytes == 0);
}

static void
old_problems_are_forgotten(void **state)
{
    const uint64_t before = hed_problem_count();
    char text[8];

    for (int i = 0; i <= HED_PROBLEMS_KEPT; i++)
        hed_problem_add("problem %d\n", i);
    assert_false(hed_problem_get(before, text, sizeof text));
    assert_true(hed_problem_get(before + 1, text, sizeof text));
    assert_string_equal(text, "problem"); /* cut off */
    assert_true(hed_problem_count() == before + HED_PROBLEMS_KEPT + 1);
}

static void
accepted_launches_are_counted(void **state)
{
    struct hed_cuLaunchKernel launch = {0};

    (void)top->cuda->cuLaunchKernel(top, &launch);
    (void)top->cuda->cuLaunchKernel(top, &launch);
    answer = CUDA_ERROR_INVALID_VALUE;
    (void)top->cuda->cuLaunchKernel(top, &launch);
    assert_true(counts().launches == 2);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(memory_is_known_until_it_is_freed, open_chain, close_chain),
    cmocka_unit_test_setup_teardown(lists_begin_with_the_oldest, open_chain, close_chain),
    cmocka_unit_test_setup_teardown(memory_ends_with_its_context, open_chain, close_chain),
    cmocka_unit_test_setup_teardown(a_handle_counts_its_owners, open_chain, close_chain),
    cmocka_unit_test_setup_teardown(a_broken_context_is_one_problem, open_chain, close_chain),
    cmocka_unit_test_setup_teardown(a_new_context_with_the_same_handle_keeps_its_memory, open_chain,
                                    close_chain),
    cmocka_unit_test_setup_teardown(captured_calls_are_no_memory, open_chain, close_chain),
    cmocka_unit_test_setup_teardown(memory_of_the_host_is_not_counted, open_chain, close_chain),
    cmocka_unit_test_setup_teardown(mipmapped_arrays_count_all_levels, open_chain, close_chain),
    cmocka_unit_test_setup_teardown(the_context_of_a_stream_is_blamed, open_chain, close_chain),
    cmocka_unit_test_setup_teardown(polling_is_one_problem, open_chain, close_chain),
    cmocka_unit_test_setup_teardown(contexts_of_the_program_are_waited_for, open_chain,
                                    close_chain),
    cmocka_unit_test_setup_teardown(waiting_may_end_a_primary_context, open_chain, close_chain),
    cmocka_unit_test_setup_teardown(accepted_launches_are_counted, open_chain, close_chain),
    cmocka_unit_test(old_problems_are_forgotten),
};

HED_UNIT_MAIN(tests)
