/* Tests of cudart/execution: an execution context is a CUcontext; green ones are made, used and
 * destroyed as such, and nothing else is. */
#include "harness/unit.h"

#include "cudart/front.h"
#include "gen/cudart_calls.h"

const int hed_rt_version = 13000;

#define PRIMARY ((CUcontext)(uintptr_t)0x100)
#define GREEN(n) ((CUgreenCtx)(uintptr_t)(0x200 + (n)))
#define CONTEXT_OF(n) ((CUcontext)(uintptr_t)(0x300 + (n)))
#define DESC ((cudaDevResourceDesc_t)(uintptr_t)0x400)

static struct hed_rt_driver *const cu = &hed_rt_legacy;
static int created, destroyed, pushed;
static CUgreenCtx streamed; /* whose stream was made last */
static CUresult from_result, destroy_result;

static CUresult
play_create(CUgreenCtx *out, CUdevResourceDesc desc, CUdevice device, unsigned flags)
{
    assert_int_equal(flags, CU_GREEN_CTX_DEFAULT_STREAM);
    *out = GREEN(created++);
    return CUDA_SUCCESS;
}

static CUresult
play_from(CUcontext *out, CUgreenCtx green)
{
    *out = CONTEXT_OF((uintptr_t)green - (uintptr_t)GREEN(0));
    return from_result;
}

static CUresult
play_destroy(CUgreenCtx green)
{
    destroyed += destroy_result == CUDA_SUCCESS;
    return destroy_result;
}

static CUresult
play_green_stream(CUstream *stream, CUgreenCtx green, unsigned flags, int priority)
{
    streamed = green;
    return CUDA_SUCCESS;
}

static CUresult
play_push(CUcontext context)
{
    assert_ptr_equal(context, PRIMARY);
    pushed++;
    return CUDA_SUCCESS;
}

static CUresult
play_pop(CUcontext *context)
{
    pushed--;
    *context = PRIMARY;
    return CUDA_SUCCESS;
}

static CUresult
play_stream(CUstream *stream, unsigned flags, int priority)
{
    assert_int_equal(pushed, 1);
    streamed = NULL;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static int
play_driver(void **state)
{
    cu->cuGreenCtxCreate = play_create;
    cu->cuCtxFromGreenCtx = play_from;
    cu->cuGreenCtxDestroy = play_destroy;
    cu->cuGreenCtxStreamCreate = play_green_stream;
    cu->cuCtxPushCurrent_v2 = play_push;
    cu->cuCtxPopCurrent_v2 = play_pop;
    cu->cuStreamCreateWithPriority = play_stream;
    created = destroyed = pushed = 0;
    from_result = destroy_result = CUDA_SUCCESS;
    return 0;
}

static void
green_contexts_are_known_by_their_contexts(void **state)
{
    cudaExecutionContext_t a = NULL, b = NULL;
    cudaStream_t stream;

    assert_int_equal(hed_rt_cudaGreenCtxCreate(cu, &a, DESC, 0, 0), cudaSuccess);
    assert_int_equal(hed_rt_cudaGreenCtxCreate(cu, &b, DESC, 0, 0), cudaSuccess);
    assert_ptr_equal(a, CONTEXT_OF(0));
    assert_ptr_equal(b, CONTEXT_OF(1));
    assert_int_equal(hed_rt_cudaExecutionCtxStreamCreate(cu, &stream, a, 1, 0), cudaSuccess);
    assert_ptr_equal(streamed, GREEN(0));
    assert_int_equal(hed_rt_cudaExecutionCtxDestroy(cu, a), cudaSuccess);
    assert_int_equal(hed_rt_cudaExecutionCtxDestroy(cu, a), cudaErrorInvalidValue);
    assert_int_equal(hed_rt_cudaExecutionCtxDestroy(cu, b), cudaSuccess);
    assert_int_equal(destroyed, 2);
}

/* The front makes a call again that failed for the lack of a context. */
static void
an_end_that_fails_can_be_tried_again(void **state)
{
    cudaExecutionContext_t a = NULL;

    assert_int_equal(hed_rt_cudaGreenCtxCreate(cu, &a, DESC, 0, 0), cudaSuccess);
    destroy_result = CUDA_ERROR_INVALID_CONTEXT;
    assert_int_equal(hed_rt_cudaExecutionCtxDestroy(cu, a), cudaErrorDeviceUninitialized);
    destroy_result = CUDA_SUCCESS;
    assert_int_equal(hed_rt_cudaExecutionCtxDestroy(cu, a), cudaSuccess);
    assert_int_equal(destroyed, 1);
}

static void
what_fails_leaves_nothing_behind(void **state)
{
    cudaExecutionContext_t a = NULL;

    from_result = CUDA_ERROR_OUT_OF_MEMORY;
    assert_int_equal(hed_rt_cudaGreenCtxCreate(cu, &a, DESC, 0, 0), cudaErrorMemoryAllocation);
    assert_null(a);
    assert_int_equal(destroyed, 1);
    assert_int_equal(hed_rt_cudaGreenCtxCreate(cu, &a, DESC, 0, 1), cudaErrorInvalidValue);
    assert_int_equal(hed_rt_cudaGreenCtxCreate(cu, &a, NULL, 0, 0), cudaErrorInvalidValue);
    assert_int_equal(created, 1);
}

static void
other_contexts_are_entered_for_the_call(void **state)
{
    const cudaExecutionContext_t primary = (cudaExecutionContext_t)PRIMARY;
    cudaStream_t stream;

    assert_int_equal(hed_rt_cudaExecutionCtxStreamCreate(cu, &stream, primary, 0, 0),
                     cudaErrorMemoryAllocation);
    assert_int_equal(pushed, 0);
    assert_int_equal(hed_rt_cudaExecutionCtxDestroy(cu, primary), cudaErrorInvalidValue);
    assert_int_equal(hed_rt_cudaExecutionCtxSynchronize(cu, NULL), cudaErrorInvalidValue);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(green_contexts_are_known_by_their_contexts, play_driver),
    cmocka_unit_test_setup(an_end_that_fails_can_be_tried_again, play_driver),
    cmocka_unit_test_setup(what_fails_leaves_nothing_behind, play_driver),
    cmocka_unit_test_setup(other_contexts_are_entered_for_the_call, play_driver),
};

HED_UNIT_MAIN(tests)
