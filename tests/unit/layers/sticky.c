/* Tests of the sticky layer: what a refused launch does to its context. */
#include "harness/unit.h"

#include <stdlib.h>

#include "base/err.h"
#include "core/config.h"
#include "core/layer.h"
#include "layers/layers.h"

#define CONTEXT(n) ((CUcontext)(uintptr_t)(n))

/* ---- the backend ----------------------------------------------------------------------------- */

static struct {
    CUcontext current;
    unsigned long long id; /* of every context */
    CUresult launch;       /* the result of launches */
    unsigned launches, syncs, frees;
} backend;

static CUresult
fake_cuCtxGetCurrent(struct hed_layer *self, struct hed_cuCtxGetCurrent *a)
{
    *a->pctx = backend.current;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuCtxSetCurrent(struct hed_layer *self, struct hed_cuCtxSetCurrent *a)
{
    backend.current = a->ctx;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuCtxGetId(struct hed_layer *self, struct hed_cuCtxGetId *a)
{
    *a->ctxId = backend.id;
    return backend.id ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult
fake_cuLaunchKernel(struct hed_layer *self, struct hed_cuLaunchKernel *a)
{
    backend.launches++;
    return backend.launch;
}

static CUresult
fake_cuCtxSynchronize(struct hed_layer *self, struct hed_cuCtxSynchronize *a)
{
    backend.syncs++;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuCtxSynchronize_v2(struct hed_layer *self, struct hed_cuCtxSynchronize_v2 *a)
{
    backend.syncs++;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuMemFree_v2(struct hed_layer *self, struct hed_cuMemFree_v2 *a)
{
    backend.frees++;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuGraphLaunch(struct hed_layer *self, struct hed_cuGraphLaunch *a)
{
    return backend.launch;
}

static CUresult
fake_rest(struct hed_layer *self, enum hed_cuda_call id, void *args)
{
    return CUDA_SUCCESS;
}

#define FAKE(name) .name = fake_##name
static const struct hed_cuda_ops calls = {
    FAKE(cuCtxGetCurrent),  FAKE(cuCtxSetCurrent), FAKE(cuCtxGetId),          FAKE(cuLaunchKernel),
    FAKE(cuCtxSynchronize), FAKE(cuMemFree_v2),    FAKE(cuCtxSynchronize_v2), FAKE(cuGraphLaunch)};
static const struct hed_layer_type fake = {.name = "fake", .cuda = &calls, .cuda_any = fake_rest};

/* ---- the chain ------------------------------------------------------------------------------- */

static int
setup(void **state)
{
    static struct hed_layer_room bottom;
    static struct hed_config config;
    struct hed_layer *top = NULL;

    memset(&backend, 0, sizeof backend);
    backend.current = CONTEXT(1);
    backend.id = 100;
    hed_config_init(&config);
    hed_layer_place(&bottom, &fake, NULL);
    *state =
        hed_layer_create(&hed_sticky_layer, &bottom.layer, &config, &top, NULL) == 0 ? top : NULL;
    return *state ? 0 : -1;
}

static int
teardown(void **state)
{
    struct hed_layer *l = *state;

    free(l->state); /* the layer has no fini: its state lives as long as the process */
    hed_layer_free(l);
    return 0;
}

static CUresult
launch_kernel(struct hed_layer *l)
{
    struct hed_cuLaunchKernel a = {0};

    return l->cuda->cuLaunchKernel(l, &a);
}

static CUresult
synchronize(struct hed_layer *l)
{
    struct hed_cuCtxSynchronize a = {0};

    return l->cuda->cuCtxSynchronize(l, &a);
}

static void
without_a_refusal_nothing_changes(void **state)
{
    struct hed_layer *l = *state;

    assert_int_equal(launch_kernel(l), CUDA_SUCCESS);
    assert_int_equal(synchronize(l), CUDA_SUCCESS);
    assert_int_equal(backend.launches, 1);
    assert_int_equal(backend.syncs, 1);
}

static void
the_first_refusal_sticks(void **state)
{
    struct hed_layer *l = *state;
    CUdeviceptr p;
    struct hed_cuMemAlloc_v2 alloc = {&p, 4};
    struct hed_cuMemcpyHtoD_v2 copy = {.ByteCount = 4};
    struct hed_cuMemsetD8_v2 fill = {.N = 4};
    struct hed_cuStreamQuery poll = {0};
    struct hed_cuEventRecord order = {0};

    backend.launch = CUDA_ERROR_INVALID_VALUE;
    assert_int_equal(launch_kernel(l), CUDA_ERROR_INVALID_VALUE);
    backend.launch = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    assert_int_equal(launch_kernel(l), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(backend.launches, 1); /* the second did not go down */
    assert_int_equal(synchronize(l), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(l->cuda->cuMemAlloc_v2(l, &alloc), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(l->cuda->cuMemcpyHtoD_v2(l, &copy), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(l->cuda->cuMemsetD8_v2(l, &fill), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(l->cuda->cuStreamQuery(l, &poll), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(l->cuda->cuEventRecord(l, &order), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(backend.syncs, 0);
}

static void
graphs_are_launches_too(void **state)
{
    struct hed_layer *l = *state;
    struct hed_cuGraphLaunch a = {0};

    backend.launch = CUDA_ERROR_NOT_SUPPORTED;
    assert_int_equal(l->cuda->cuGraphLaunch(l, &a), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(synchronize(l), CUDA_ERROR_NOT_SUPPORTED);
}

static void
cleaning_up_still_works(void **state)
{
    struct hed_layer *l = *state;
    CUcontext current;
    struct hed_cuMemFree_v2 free_it = {0};
    struct hed_cuCtxGetCurrent ask = {&current};
    struct hed_cuInit init = {0};

    backend.launch = CUDA_ERROR_INVALID_VALUE;
    (void)launch_kernel(l);
    assert_int_equal(l->cuda->cuMemFree_v2(l, &free_it), CUDA_SUCCESS);
    assert_int_equal(backend.frees, 1);
    assert_int_equal(l->cuda->cuCtxGetCurrent(l, &ask), CUDA_SUCCESS);
    assert_int_equal(l->cuda->cuInit(l, &init), CUDA_SUCCESS);
}

static void
other_contexts_still_work(void **state)
{
    struct hed_layer *l = *state;
    struct hed_cuCtxSetCurrent other = {CONTEXT(2)};
    struct hed_cuCtxSynchronize_v2 named = {CONTEXT(1)};

    backend.launch = CUDA_ERROR_INVALID_VALUE;
    (void)launch_kernel(l);
    assert_int_equal(l->cuda->cuCtxSetCurrent(l, &other), CUDA_SUCCESS);
    backend.launch = CUDA_SUCCESS;
    assert_int_equal(launch_kernel(l), CUDA_SUCCESS);
    assert_int_equal(synchronize(l), CUDA_SUCCESS);
    /* A call that names a context is about that one, not about the current one. */
    assert_int_equal(l->cuda->cuCtxSynchronize_v2(l, &named), CUDA_ERROR_INVALID_VALUE);
}

static void
a_new_context_starts_afresh(void **state)
{
    struct hed_layer *l = *state;

    backend.launch = CUDA_ERROR_INVALID_VALUE;
    (void)launch_kernel(l);
    backend.id++; /* the same handle, another context */
    backend.launch = CUDA_SUCCESS;
    assert_int_equal(synchronize(l), CUDA_SUCCESS);
    assert_int_equal(launch_kernel(l), CUDA_SUCCESS);
    backend.launch = CUDA_ERROR_NOT_SUPPORTED;
    (void)launch_kernel(l);
    assert_int_equal(synchronize(l), CUDA_ERROR_NOT_SUPPORTED);
}

static void
drivers_without_context_ids_are_supported(void **state)
{
    struct hed_layer *l = *state;

    backend.id = 0;
    backend.launch = CUDA_ERROR_INVALID_VALUE;
    (void)launch_kernel(l);
    assert_int_equal(synchronize(l), CUDA_ERROR_INVALID_VALUE);
}

static void
a_launch_without_a_context_sticks_to_nothing(void **state)
{
    struct hed_layer *l = *state;

    backend.current = NULL;
    backend.launch = CUDA_ERROR_INVALID_CONTEXT;
    assert_int_equal(launch_kernel(l), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(synchronize(l), CUDA_SUCCESS);
}

static void
old_failures_are_kept_when_there_are_many(void **state)
{
    struct hed_layer *l = *state;

    backend.launch = CUDA_ERROR_INVALID_VALUE;
    for (uintptr_t i = 1; i <= 1000; i++) {
        backend.current = CONTEXT(i);
        assert_int_equal(launch_kernel(l), CUDA_ERROR_INVALID_VALUE);
    }
    backend.current = CONTEXT(1);
    assert_int_equal(synchronize(l), CUDA_ERROR_INVALID_VALUE);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(without_a_refusal_nothing_changes, setup, teardown),
    cmocka_unit_test_setup_teardown(the_first_refusal_sticks, setup, teardown),
    cmocka_unit_test_setup_teardown(graphs_are_launches_too, setup, teardown),
    cmocka_unit_test_setup_teardown(cleaning_up_still_works, setup, teardown),
    cmocka_unit_test_setup_teardown(other_contexts_still_work, setup, teardown),
    cmocka_unit_test_setup_teardown(a_new_context_starts_afresh, setup, teardown),
    cmocka_unit_test_setup_teardown(drivers_without_context_ids_are_supported, setup, teardown),
    cmocka_unit_test_setup_teardown(a_launch_without_a_context_sticks_to_nothing, setup, teardown),
    cmocka_unit_test_setup_teardown(old_failures_are_kept_when_there_are_many, setup, teardown),
};

HED_UNIT_MAIN(tests)
