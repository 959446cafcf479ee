/* Tests of cudart/context: a call that lacks a context gets one, once, and only the right one. */
#include "harness/unit.h"

#include "cudart/context.h"
#include "cudart/front.h"
#include "cudart/thread.h"
#include "gen/cudart_calls.h"

const int hed_rt_version = 11080; /* cudaSetDevice() waits with the context */

#define DEVICES 2
#define PRIMARY(device) ((CUcontext)(uintptr_t)(0x100 + (device)))
#define OWN ((CUcontext)(uintptr_t)0x999)
#define GONE ((CUcontext)(uintptr_t)0x998) /* on device 1, of another runtime */

static struct hed_rt_driver *const cu = &hed_rt_legacy;
static CUcontext current;
static CUcontext below; /* that one, where the program has pushed contexts */
static int retained[DEVICES];
static bool has_driver; /* not the child of a process that uses it */
static int alive;       /* how often a primary context is still there when somebody looks */
static int refused;     /* calls that failed for the lack of a context */
static int resets;      /* how often another thread resets what is about to be made current */

static CUresult
play_count(int *count)
{
    *count = DEVICES;
    return has_driver ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

static CUresult
play_driver_version(int *version)
{
    *version = 13000;
    return has_driver ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

static CUresult
play_retain(CUcontext *out, CUdevice device)
{
    if (device < 0 || device >= DEVICES)
        return CUDA_ERROR_INVALID_DEVICE;
    retained[device]++;
    *out = PRIMARY(device);
    return CUDA_SUCCESS;
}

static CUresult
play_release(CUdevice device)
{
    retained[device]--;
    return CUDA_SUCCESS;
}

static CUresult
play_reset(CUdevice device)
{
    return CUDA_SUCCESS;
}

static CUresult
play_state(CUdevice device, unsigned int *flags, int *active)
{
    *flags = 0;
    *active = retained[device] > 0;
    return CUDA_SUCCESS;
}

static CUresult
play_set(CUcontext context)
{
    if (context && resets > 0) {
        resets--;
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    current = context ? context : below;
    if (!context)
        below = NULL;
    return CUDA_SUCCESS;
}

static CUresult
play_push(CUcontext context)
{
    below = current;
    current = context;
    return CUDA_SUCCESS;
}

static CUresult
play_enable_peer(CUcontext peer, unsigned int flags)
{
    return retained[peer == PRIMARY(1)] ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static CUresult
play_get(CUcontext *out)
{
    *out = current;
    return CUDA_SUCCESS;
}

static CUresult
play_device(CUdevice *device)
{
    if (!current) {
        refused++;
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    *device = current == PRIMARY(1) || current == GONE;
    return CUDA_SUCCESS;
}

static CUresult
play_version(CUcontext context, unsigned *version)
{
    *version = 3020;
    return context == OWN || alive-- > 0 ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static int
play_driver(void **state)
{
    cu->cuCtxGetApiVersion = play_version;
    cu->cuDeviceGetCount = play_count;
    cu->cuDriverGetVersion = play_driver_version;
    cu->cuDevicePrimaryCtxRetain = play_retain;
    cu->cuDevicePrimaryCtxRelease_v2 = play_release;
    cu->cuDevicePrimaryCtxReset_v2 = play_reset;
    cu->cuDevicePrimaryCtxGetState = play_state;
    cu->cuCtxSetCurrent = play_set;
    cu->cuCtxPushCurrent_v2 = play_push;
    cu->cuCtxEnablePeerAccess = play_enable_peer;
    cu->cuCtxGetCurrent = play_get;
    cu->cuCtxGetDevice = play_device;
    current = below = NULL;
    has_driver = true;
    alive = refused = resets = 0;
    hed_rt_thread.arrived = 0;
    /* No test finds the contexts of another. */
    for (int i = DEVICES - 1; i >= 0; i--) {
        hed_rt_thread.device = i;
        hed_rt_thread.chosen = true;
        assert_int_equal(hed_rt_cudaDeviceReset(cu), cudaSuccess);
        retained[i] = 0;
    }
    hed_rt_thread.chosen = hed_rt_thread.keeps = false;
    return 0;
}

static void
other_errors_are_the_callers(void **state)
{
    assert_false(hed_rt_enter(&(cudaError_t){cudaErrorInvalidValue}));
    assert_false(hed_rt_enter(&(cudaError_t){cudaErrorInitializationError}));
    assert_null(current);
}

static void
a_thread_without_a_context_gets_that_of_its_device(void **state)
{
    int device = -1;

    assert_int_equal(hed_rt_cudaSetDevice(cu, 1), cudaSuccess);
    assert_null(current); /* not before it is used */
    assert_int_equal(hed_rt_device(&device), cudaSuccess);
    assert_int_equal(device, 1);
    assert_true(hed_rt_enter(&(cudaError_t){cudaErrorDeviceUninitialized}));
    assert_ptr_equal(current, PRIMARY(1));
    assert_int_equal(retained[1], 1);
    /* It has one now, so the next failure is not for the lack of it. */
    assert_false(hed_rt_enter(&(cudaError_t){cudaErrorDeviceUninitialized}));
    assert_false(hed_rt_enter(&(cudaError_t){cudaErrorInvalidResourceHandle}));
    assert_int_equal(retained[1], 1);
}

/* Drivers log calls that fail. */
static void
a_newcomer_asks_for_nothing_that_it_lacks(void **state)
{
    int device = -1;

    assert_int_equal(hed_rt_device(&device), cudaSuccess);
    assert_int_equal(device, 0);
    assert_int_equal(refused, 0);
    assert_int_equal(hed_rt_arrive(), cudaSuccess);
    assert_ptr_equal(current, PRIMARY(0));
    assert_int_equal(hed_rt_thread.arrived, hed_rt_age);
    assert_int_equal(hed_rt_cudaSetDevice(cu, 1), cudaSuccess);
    assert_int_equal(hed_rt_thread.arrived, 0);
    assert_int_equal(hed_rt_arrive(), cudaSuccess);
    assert_ptr_equal(current, PRIMARY(1));
    assert_int_equal(refused, 0);
    assert_int_equal(hed_rt_cudaDeviceReset(cu), cudaSuccess);
}

static void
a_newcomer_with_a_context_keeps_it(void **state)
{
    int device = -1;

    current = OWN;
    assert_int_equal(hed_rt_arrive(), cudaSuccess);
    assert_ptr_equal(current, OWN);
    assert_int_equal(hed_rt_thread.arrived, hed_rt_age);
    hed_rt_thread.arrived = 0;
    current = GONE;
    assert_int_equal(hed_rt_device(&device), cudaSuccess);
    assert_int_equal(device, 1);
}

static CUresult
play_busy(CUcontext *out, CUdevice device)
{
    return CUDA_ERROR_DEVICE_UNAVAILABLE;
}

/* cudaDeviceReset(); cudaFree(NULL); and then calls of the driver. */
static void
a_reset_makes_threads_look_after_their_context(void **state)
{
    assert_int_equal(hed_rt_arrive(), cudaSuccess);
    assert_int_equal(hed_rt_thread.arrived, hed_rt_age);
    assert_int_equal(hed_rt_cudaDeviceReset(cu), cudaSuccess);
    assert_int_equal(retained[0], 0);
    assert_int_not_equal(hed_rt_thread.arrived, hed_rt_age);
    assert_int_equal(hed_rt_arrive(), cudaSuccess);
    assert_int_equal(retained[0], 1);
    assert_int_equal(hed_rt_cudaDeviceReset(cu), cudaSuccess);
}

static void
a_thread_without_a_context_resets_nothing(void **state)
{
    assert_int_equal(hed_rt_arrive(), cudaSuccess);
    assert_int_equal(retained[0], 1);
    current = NULL; /* as in another thread */
    hed_rt_thread.arrived = 0;
    assert_int_equal(hed_rt_cudaDeviceReset(cu), cudaSuccess);
    assert_int_equal(retained[0], 1);
    /* Unless it has chosen the device, whose context it would take later. */
    hed_rt_thread.chosen = true;
    assert_int_equal(hed_rt_cudaDeviceReset(cu), cudaSuccess);
    assert_int_equal(retained[0], 0);
}

/* The next calls must fail, too, and not run on the device before. */
static void
a_device_that_cannot_be_entered_is_chosen_all_the_same(void **state)
{
    int device = -1;

    assert_int_equal(hed_rt_cudaSetDevice(cu, 1), cudaSuccess);
    assert_int_equal(hed_rt_arrive(), cudaSuccess);
    assert_int_equal(hed_rt_cudaSetDevice(cu, 0), cudaSuccess);
    assert_int_equal(hed_rt_arrive(), cudaSuccess);
    assert_ptr_equal(current, PRIMARY(0));
    resets = 1;
    cu->cuDevicePrimaryCtxRetain = play_busy;
    assert_int_equal(hed_rt_cudaSetDevice(cu, 1), cudaErrorDevicesUnavailable);
    assert_null(current);
    assert_int_equal(hed_rt_device(&device), cudaSuccess);
    assert_int_equal(device, 1);
    assert_int_equal(hed_rt_arrive(), cudaErrorDevicesUnavailable);
    hed_rt_thread.device = 0;
    assert_int_equal(hed_rt_cudaDeviceReset(cu), cudaSuccess);
    retained[1] = 0;
}

static void
why_there_is_no_context_is_told(void **state)
{
    cudaError_t r = cudaErrorDeviceUninitialized;

    hed_rt_thread.device = 1;
    cu->cuDevicePrimaryCtxRetain = play_busy;
    assert_false(hed_rt_enter(&r));
    assert_int_equal(r, cudaErrorDevicesUnavailable);
    assert_int_equal(hed_rt_arrive(), cudaErrorDevicesUnavailable);
    assert_int_equal(hed_rt_thread.arrived, 0);
}

static void
a_context_of_the_programs_own_is_left_alone(void **state)
{
    current = OWN;
    assert_false(hed_rt_enter(&(cudaError_t){cudaErrorDeviceUninitialized}));
    assert_ptr_equal(current, OWN);
    /* A stream's context is gone, not this one. */
    assert_false(hed_rt_enter(&(cudaError_t){cudaErrorContextIsDestroyed}));
    assert_ptr_equal(current, OWN);
}

static void
after_a_reset_the_context_is_taken_again(void **state)
{
    assert_true(hed_rt_enter(&(cudaError_t){cudaErrorDeviceUninitialized}));
    assert_ptr_equal(current, PRIMARY(0));
    assert_int_equal(hed_rt_cudaDeviceReset(cu), cudaSuccess);
    assert_int_equal(retained[0], 0);
    assert_true(hed_rt_enter(&(cudaError_t){cudaErrorContextIsDestroyed}));
    assert_int_equal(retained[0], 1);
    assert_int_equal(hed_rt_cudaDeviceReset(cu), cudaSuccess);
}

/* Choosing a device replaces what the program has pushed, and does not bring back what is below. */
static void
a_chosen_device_hides_contexts_below(void **state)
{
    int device = -1;
    int first = 1;

    assert_int_equal(play_push(PRIMARY(0)) | play_push(OWN), 0);
    assert_int_equal(hed_rt_cudaSetDevice(cu, 1), cudaSuccess);
    assert_int_equal(hed_rt_device(&device), cudaSuccess);
    assert_int_equal(device, 1);
    assert_ptr_equal(below, PRIMARY(0));
    assert_int_equal(play_set(PRIMARY(0)), 0);
    hed_rt_thread.keeps = false; /* as in a thread that has chosen none */
    assert_int_equal(hed_rt_cudaSetValidDevices(cu, &first, 1), cudaSuccess);
    assert_int_equal(hed_rt_device(&device), cudaSuccess);
    assert_int_equal(device, 1);
    current = below = NULL;
    assert_int_equal(hed_rt_cudaDeviceReset(cu), cudaSuccess);
}

static void
a_list_leaves_a_chosen_device_alone(void **state)
{
    int device = -1;
    int first = 0;

    assert_int_equal(hed_rt_cudaSetDevice(cu, 1), cudaSuccess);
    assert_int_equal(hed_rt_cudaSetValidDevices(cu, &first, 1), cudaSuccess);
    assert_int_equal(hed_rt_device(&device), cudaSuccess);
    assert_int_equal(device, 1);
}

static void
a_device_that_cannot_be_entered_leaves_the_stack_alone(void **state)
{
    assert_int_equal(play_push(PRIMARY(0)) | play_push(OWN), 0);
    cu->cuDevicePrimaryCtxRetain = play_busy;
    assert_int_equal(hed_rt_cudaSetDevice(cu, 1), cudaErrorDevicesUnavailable);
    assert_ptr_equal(current, OWN);
    assert_ptr_equal(below, PRIMARY(0));
}

/* By the program itself, or by another runtime of the process. */
static void
a_peer_that_others_have_reset_is_taken_again(void **state)
{
    assert_int_equal(hed_rt_arrive(), cudaSuccess);
    assert_int_equal(hed_rt_cudaDeviceEnablePeerAccess(cu, 1, 0), cudaSuccess);
    retained[1] = 0;
    assert_int_equal(hed_rt_cudaDeviceEnablePeerAccess(cu, 1, 0), cudaSuccess);
    assert_int_equal(retained[1], 1);
}

static void
contexts_of_the_programs_own_have_no_peers(void **state)
{
    current = OWN;
    assert_int_equal(hed_rt_cudaDeviceEnablePeerAccess(cu, 1, 0),
                     cudaErrorIncompatibleDriverContext);
    assert_int_equal(hed_rt_cudaDeviceDisablePeerAccess(cu, 1), cudaErrorIncompatibleDriverContext);
    assert_int_equal(retained[1], 0);
}

static void
a_forked_child_still_knows_the_count(void **state)
{
    int count = 0;

    assert_int_equal(hed_rt_cudaGetDeviceCount(cu, &count), cudaSuccess);
    has_driver = false;
    count = 0;
    assert_int_equal(hed_rt_cudaGetDeviceCount(cu, &count), cudaSuccess);
    assert_int_equal(count, DEVICES);
}

static void
a_reset_by_others_is_noticed(void **state)
{
    assert_true(hed_rt_enter(&(cudaError_t){cudaErrorDeviceUninitialized}));
    assert_int_equal(retained[0], 1);
    retained[0] = 0;
    assert_true(hed_rt_enter(&(cudaError_t){cudaErrorContextIsDestroyed}));
    assert_int_equal(retained[0], 1);
    assert_int_equal(hed_rt_cudaDeviceReset(cu), cudaSuccess);
}

/* A call may meet several resets; none of them is the program's error. */
static void
resets_that_come_in_between_cost_another_try(void **state)
{
    assert_true(hed_rt_enter(&(cudaError_t){cudaErrorDeviceUninitialized}));
    assert_int_equal(hed_rt_cudaDeviceReset(cu), cudaSuccess);
    /* Another thread makes the context anew and resets it while this one looks. */
    alive = 3;
    assert_true(hed_rt_enter(&(cudaError_t){cudaErrorContextIsDestroyed}));
    assert_int_equal(hed_rt_cudaDeviceReset(cu), cudaSuccess);
    alive = 0;
    resets = 2;
    assert_true(hed_rt_enter(&(cudaError_t){cudaErrorContextIsDestroyed}));
    assert_int_equal(hed_rt_cudaDeviceReset(cu), cudaSuccess);
}

static void
a_lost_context_of_others_is_followed_by_one_of_its_device(void **state)
{
    current = GONE;
    assert_true(hed_rt_enter(&(cudaError_t){cudaErrorContextIsDestroyed}));
    assert_ptr_equal(current, PRIMARY(1));
}

static void
devices_that_are_not_there_are_refused(void **state)
{
    assert_int_equal(hed_rt_cudaSetDevice(cu, -1), cudaErrorInvalidDevice);
    assert_int_equal(hed_rt_cudaSetDevice(cu, DEVICES), cudaErrorInvalidDevice);
    assert_int_equal(hed_rt_thread.device, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(why_there_is_no_context_is_told, play_driver),
    cmocka_unit_test_setup(other_errors_are_the_callers, play_driver),
    cmocka_unit_test_setup(a_thread_without_a_context_gets_that_of_its_device, play_driver),
    cmocka_unit_test_setup(a_newcomer_asks_for_nothing_that_it_lacks, play_driver),
    cmocka_unit_test_setup(a_newcomer_with_a_context_keeps_it, play_driver),
    cmocka_unit_test_setup(a_reset_makes_threads_look_after_their_context, play_driver),
    cmocka_unit_test_setup(a_thread_without_a_context_resets_nothing, play_driver),
    cmocka_unit_test_setup(a_device_that_cannot_be_entered_is_chosen_all_the_same, play_driver),
    cmocka_unit_test_setup(a_context_of_the_programs_own_is_left_alone, play_driver),
    cmocka_unit_test_setup(after_a_reset_the_context_is_taken_again, play_driver),
    cmocka_unit_test_setup(a_reset_by_others_is_noticed, play_driver),
    cmocka_unit_test_setup(resets_that_come_in_between_cost_another_try, play_driver),
    cmocka_unit_test_setup(a_lost_context_of_others_is_followed_by_one_of_its_device, play_driver),
    cmocka_unit_test_setup(a_chosen_device_hides_contexts_below, play_driver),
    cmocka_unit_test_setup(a_device_that_cannot_be_entered_leaves_the_stack_alone, play_driver),
    cmocka_unit_test_setup(a_list_leaves_a_chosen_device_alone, play_driver),
    cmocka_unit_test_setup(a_peer_that_others_have_reset_is_taken_again, play_driver),
    cmocka_unit_test_setup(contexts_of_the_programs_own_have_no_peers, play_driver),
    cmocka_unit_test_setup(a_forked_child_still_knows_the_count, play_driver),
    cmocka_unit_test_setup(devices_that_are_not_there_are_refused, play_driver),
};

HED_UNIT_MAIN(tests)
