/* Tests of cudart/func and cudart/launch: one kernel among thousands is asked about alone; errors
 * of launches are those of the edition; a stub without a kernel tries again. */
#include "harness/unit.h"

#include <stdio.h>

#include "cudart/front.h"
#include "cudart/registry.h"
#include "gen/cudart_calls.h"

const int hed_rt_version = 12090;

#define MANY 5000

static struct hed_rt_driver *const cu = &hed_rt_legacy;
static char stubs[MANY];
static char names[MANY][8];
static struct hed_rt_module *module;
static int loads, kernels, attributes;
static CUresult load_result;
static CUkernel launched;

static CUresult
play_load(CUlibrary *library, const void *code, CUjit_option *jitOptions, void **jitOptionsValues,
          unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
          unsigned int numLibraryOptions)
{
    loads++;
    *library = (CUlibrary)(uintptr_t)0x1000;
    return load_result;
}

static CUresult
play_unload(CUlibrary library)
{
    return CUDA_SUCCESS;
}

static CUresult
play_get_kernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    unsigned number = 0;

    kernels++;
    if (sscanf(name, "k%u", &number) != 1)
        return CUDA_ERROR_NOT_FOUND;
    *kernel = (CUkernel)(uintptr_t)(0x10000 + number);
    return CUDA_SUCCESS;
}

static CUresult
play_attribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device)
{
    attributes++;
    *value = (int)attribute + 1;
    return CUDA_SUCCESS;
}

static CUresult
play_current(CUcontext *out)
{
    *out = (CUcontext)(uintptr_t)1;
    return CUDA_SUCCESS;
}

static CUresult
play_context_device(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}

static CUresult
play_device_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    *value = 1024;
    return CUDA_SUCCESS;
}

static CUresult
play_launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
            unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)
{
    launched = (CUkernel)f;
    return gx && bx && bx * by * bz <= 1024 && shared <= 4096 ? CUDA_SUCCESS
                                                              : CUDA_ERROR_INVALID_VALUE;
}

static int
play_driver(void **state)
{
    cu->cuLibraryLoadData = play_load;
    cu->cuLibraryUnload = play_unload;
    cu->cuLibraryGetKernel = play_get_kernel;
    cu->cuKernelGetAttribute = play_attribute;
    cu->cuCtxGetCurrent = play_current;
    cu->cuCtxGetDevice = play_context_device;
    cu->cuDeviceGetAttribute = play_device_attribute;
    cu->cuLaunchKernel = play_launch;
    loads = kernels = attributes = 0;
    load_result = CUDA_SUCCESS;
    launched = NULL;
    module = hed_rt_add_module("image");
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "k%u", i);
        hed_rt_add_symbol(module, HED_RT_KERNEL, &stubs[i], names[i], 0);
    }
    return 0;
}

static int
forget_module(void **state)
{
    hed_rt_remove_module(module);
    return 0;
}

static void
one_of_thousands_is_asked_about_alone(void **state)
{
    cudaFuncAttributes a;
    struct {
        cudaFuncAttributes_11 attr;
        int behind;
    } old = {.behind = 7};

    for (int i = 0; i < 3; i++)
        assert_int_equal(hed_rt_cudaFuncGetAttributes(cu, &a, &stubs[4000]), cudaSuccess);
    assert_int_equal(loads, 1);
    assert_int_equal(kernels, 1);
    assert_int_equal(attributes, 3 * 16);
    assert_int_equal(a.maxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK + 1);
    assert_int_equal(a.sharedSizeBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES + 1);
    assert_int_equal(a.nonPortableClusterSizeAllowed,
                     CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED + 1);
    assert_int_equal(a.reserved[15], 0);
    assert_int_equal(hed_rt_cudaFuncGetAttributes_11(cu, &old.attr, &stubs[4000]), cudaSuccess);
    assert_int_equal(old.attr.preferredShmemCarveout,
                     CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT + 1);
    assert_int_equal(old.behind, 7);
}

static cudaError_t
launch_sized(unsigned grid, unsigned block, size_t shared)
{
    return hed_rt_cudaLaunchKernel(cu, &stubs[1], (dim3){grid, 1, 1}, (dim3){block, 1, 1}, NULL,
                                   shared, NULL);
}

static void
sizes_that_no_device_has_are_told_from_other_bad_values(void **state)
{
    assert_int_equal(launch_sized(1, 32, 0), cudaSuccess);
    assert_int_equal(launch_sized(0, 32, 0), cudaErrorInvalidConfiguration);
    assert_int_equal(launch_sized(1, 0, 0), cudaErrorInvalidConfiguration);
    assert_int_equal(launch_sized(1, 2048, 0), cudaErrorInvalidConfiguration);
    assert_int_equal(launch_sized(1, 32, 8192), cudaErrorInvalidValue);
}

static cudaError_t
launch_handle(cudaKernel_t handle)
{
    return hed_rt___cudaLaunchKernel(cu, handle, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL);
}

static void
a_stub_without_a_kernel_tries_again(void **state)
{
    cudaKernel_t handle = NULL;

    load_result = CUDA_ERROR_OUT_OF_MEMORY;
    assert_int_equal(hed_rt___cudaGetKernel(cu, &handle, &stubs[5]), cudaErrorMemoryAllocation);
    assert_int_equal(launch_handle(handle), cudaErrorMemoryAllocation);
    load_result = CUDA_SUCCESS;
    assert_int_equal(launch_handle(handle), cudaSuccess);
    assert_ptr_equal(launched, (void *)(uintptr_t)0x10005);
    assert_int_equal(hed_rt___cudaGetKernel(cu, &handle, &stubs[5]), cudaSuccess);
    assert_int_equal(launch_handle(handle), cudaSuccess);
    assert_ptr_equal(launched, (void *)(uintptr_t)0x10005);
    assert_int_equal(launch_handle(NULL), cudaErrorInvalidDeviceFunction);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(one_of_thousands_is_asked_about_alone, play_driver,
                                    forget_module),
    cmocka_unit_test_setup_teardown(sizes_that_no_device_has_are_told_from_other_bad_values,
                                    play_driver, forget_module),
    cmocka_unit_test_setup_teardown(a_stub_without_a_kernel_tries_again, play_driver,
                                    forget_module),
};

HED_UNIT_MAIN(tests)
