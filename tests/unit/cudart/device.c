/* Tests of cudart/device: each member of cudaDeviceProp has its own attribute, in each layout; what
 * is known is not asked again; a device is chosen by what it has. */
#include "harness/unit.h"

#include <string.h>

#include "cudart/device.h"
#include "cudart/front.h"
#include "gen/cudart_calls.h"

const int hed_rt_version = 12090;

#define DEVICES 3

static struct hed_rt_driver *const cu = &hed_rt_legacy;
static int asked;
static CUdevice_attribute unknown; /* a driver that is too old for it */

static CUresult
play_count(int *count)
{
    *count = DEVICES;
    return CUDA_SUCCESS;
}

static CUresult
play_name(char *name, int len, CUdevice device)
{
    snprintf(name, (size_t)len, "device %d", device);
    return CUDA_SUCCESS;
}

static CUresult
play_memory(size_t *bytes, CUdevice device)
{
    *bytes = (size_t)(device + 1) << 33;
    return CUDA_SUCCESS;
}

static CUresult
play_uuid(CUuuid *uuid, CUdevice device)
{
    memset(uuid, 'a' + device, sizeof *uuid);
    return CUDA_SUCCESS;
}

static CUresult
play_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    asked++;
    if (attribute == unknown)
        return CUDA_ERROR_INVALID_VALUE;
    *value = 1000 * device + (int)attribute;
    return CUDA_SUCCESS;
}

static int
play_driver(void **state)
{
    cu->cuDeviceGetCount = play_count;
    cu->cuDeviceGetName = play_name;
    cu->cuDeviceTotalMem_v2 = play_memory;
    cu->cuDeviceGetUuid_v2 = play_uuid;
    cu->cuDeviceGetAttribute = play_attribute;
    asked = 0;
    unknown = 0;
    return 0;
}

static void
members_have_their_attributes(void **state)
{
    cudaDeviceProp p13;
    cudaDeviceProp_12 p12;
    cudaDeviceProp_11 p11;

    assert_int_equal(hed_rt_cudaGetDeviceProperties(cu, &p13, 0), cudaSuccess);
    assert_int_equal(hed_rt_cudaGetDeviceProperties_v2(cu, &p12, 0), cudaSuccess);
    assert_int_equal(hed_rt_cudaGetDeviceProperties_11(cu, &p11, 0), cudaSuccess);
    assert_string_equal(p13.name, "device 0");
    assert_string_equal(p11.name, "device 0");
    assert_int_equal(p12.uuid.bytes[15], 'a');
    assert_int_equal(p11.totalGlobalMem, (size_t)1 << 33);
    assert_int_equal(p13.totalGlobalMem, (size_t)1 << 33);
    assert_int_equal(p13.sharedMemPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    assert_int_equal(p13.multiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    assert_int_equal(p12.multiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    assert_int_equal(p12.clockRate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    assert_int_equal(p11.maxGridSize[2], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
    assert_int_equal(p11.reservedSharedMemPerBlock,
                     CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    assert_int_equal(p12.unifiedFunctionPointers, CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS);
    assert_int_equal(p13.hostNumaMultinodeIpcSupported,
                     CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED);
    assert_int_equal(p13.luidDeviceNodeMask, 0);
}

static void
what_is_reserved_is_left_alone(void **state)
{
    cudaDeviceProp p13;
    cudaDeviceProp_12 p12;
    union {
        cudaDeviceProp_12 all;
        cudaDeviceProp_11 begin;
    } old;

    memset(&p13, 0x77, sizeof p13);
    memset(&p12, 0x77, sizeof p12);
    memset(&old, 0x77, sizeof old);
    assert_int_equal(hed_rt_cudaGetDeviceProperties(cu, &p13, 1), cudaSuccess);
    assert_int_equal(hed_rt_cudaGetDeviceProperties_v2(cu, &p12, 1), cudaSuccess);
    assert_int_equal(hed_rt_cudaGetDeviceProperties_12(cu, &old.all, 1), cudaSuccess);
    assert_int_equal(p13.reserved[0], 0x77777777);
    assert_int_equal(p12.reserved[62], 0x77777777);
    /* The old name in CUDA 12 is for programs that know no more than the layout of 11. */
    assert_int_equal(old.all.hostRegisterSupported, 0x77777777);
}

static void
what_is_known_is_not_asked_again(void **state)
{
    cudaDeviceProp first, second;

    assert_int_equal(hed_rt_cudaGetDeviceProperties(cu, &first, 2), cudaSuccess);
    assert_true(asked > 0);
    asked = 0;
    assert_int_equal(hed_rt_cudaGetDeviceProperties(cu, &second, 2), cudaSuccess);
    assert_int_equal(asked, 0);
    assert_memory_equal(&first, &second, offsetof(cudaDeviceProp, reserved));
}

static void
bad_requests_touch_nothing(void **state)
{
    cudaDeviceProp p;
    int device = 77;

    memset(&p, 0x77, sizeof p);
    assert_int_equal(hed_rt_cudaGetDeviceProperties(cu, &p, DEVICES), cudaErrorInvalidDevice);
    assert_int_equal(hed_rt_cudaGetDeviceProperties(cu, &p, -1), cudaErrorInvalidDevice);
    assert_int_equal(hed_rt_cudaGetDeviceProperties(cu, NULL, 0), cudaErrorInvalidValue);
    assert_int_equal(p.warpSize, 0x77777777);
    assert_int_equal(hed_rt_cudaChooseDevice(cu, NULL, &p), cudaErrorInvalidValue);
    assert_int_equal(hed_rt_cudaChooseDevice(cu, &device, NULL), cudaErrorInvalidValue);
    assert_int_equal(device, 77);
}

static void
a_device_is_chosen_by_what_it_has(void **state)
{
    cudaDeviceProp p = {0};
    int device = 77;

    assert_int_equal(hed_rt_cudaChooseDevice(cu, &device, &p), cudaSuccess);
    assert_int_equal(device, 0);
    p.totalGlobalMem = (size_t)2 << 33;
    assert_int_equal(hed_rt_cudaChooseDevice(cu, &device, &p), cudaSuccess);
    assert_int_equal(device, 1);
    p.major = 2000;
    assert_int_equal(hed_rt_cudaChooseDevice(cu, &device, &p), cudaSuccess);
    assert_int_equal(device, 2);
}

/* Runs alone: what it learns is remembered. */
static void
attributes_that_the_driver_lacks_are_0(void **state)
{
    cudaDeviceProp p;

    unknown = CU_DEVICE_ATTRIBUTE_MPS_ENABLED;
    assert_int_equal(hed_rt_cudaGetDeviceProperties(cu, &p, 0), cudaSuccess);
    assert_int_equal(p.mpsEnabled, 0);
    assert_int_equal(p.hostNumaId, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(attributes_that_the_driver_lacks_are_0, play_driver),
    cmocka_unit_test_setup(members_have_their_attributes, play_driver),
    cmocka_unit_test_setup(what_is_reserved_is_left_alone, play_driver),
    cmocka_unit_test_setup(what_is_known_is_not_asked_again, play_driver),
    cmocka_unit_test_setup(bad_requests_touch_nothing, play_driver),
    cmocka_unit_test_setup(a_device_is_chosen_by_what_it_has, play_driver),
};

HED_UNIT_MAIN(tests)
