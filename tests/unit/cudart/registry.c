/* Tests of cudart/registry: symbols are found by their addresses, while others come and go; code is
 * loaded at its first use, once. */
#include "harness/unit.h"

#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "cudart/front.h"
#include "cudart/registry.h"

const int hed_rt_version = 13000;

#define MANY 5000

static struct hed_rt_driver *const cu = &hed_rt_legacy;
static _Atomic int loads, unloads;
static int lookups;            /* of kernels and variables */
static CUresult load_result;   /* of cuLibraryLoadData */
static CUresult lookup_result; /* of those that look something up in a library */
static CUdevice current_device;
static char stubs[MANY]; /* addresses of the host */
static const char image[] = "image";

static CUresult
play_load(CUlibrary *library, const void *code, CUjit_option *jitOptions, void **jitOptionsValues,
          unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
          unsigned int numLibraryOptions)
{
    *library = (CUlibrary)(uintptr_t)(0x1000 + atomic_fetch_add(&loads, 1));
    return load_result;
}

static CUresult
play_unload(CUlibrary library)
{
    atomic_fetch_add(&unloads, 1);
    return CUDA_SUCCESS;
}

/* A kernel's handle tells its library and the number in its name. */
static CUresult
play_get_kernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    unsigned number;

    if (lookup_result != CUDA_SUCCESS) {
        lookups++;
        return lookup_result;
    }
    if (sscanf(name, "k%u", &number) != 1)
        return CUDA_ERROR_NOT_FOUND;
    *kernel = (CUkernel)((uintptr_t)library << 32 | (number + 1));
    return CUDA_SUCCESS;
}

static CUresult
play_get_global(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
    if (lookup_result != CUDA_SUCCESS) {
        lookups++;
        return lookup_result;
    }
    *dptr = 0x7000;
    *bytes = 24;
    return strcmp(name, "x") == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static __thread bool is_slow; /* this thread's driver waits */
static sem_t is_asked, may_answer;

static CUresult
play_get_managed(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
    if (is_slow) {
        sem_post(&is_asked);
        while (sem_wait(&may_answer) != 0)
            continue;
    }
    *dptr = (CUdeviceptr)(uintptr_t)&stubs[100];
    *bytes = 24;
    return strcmp(name, "m") == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult
play_current(CUcontext *context)
{
    *context = (CUcontext)1;
    return CUDA_SUCCESS;
}

static CUresult
play_device(CUdevice *device)
{
    *device = current_device;
    return CUDA_SUCCESS;
}

static int
play_driver(void **state)
{
    cu->cuCtxGetCurrent = play_current;
    cu->cuCtxGetDevice = play_device;
    cu->cuLibraryLoadData = play_load;
    cu->cuLibraryUnload = play_unload;
    cu->cuLibraryGetKernel = play_get_kernel;
    cu->cuLibraryGetGlobal = play_get_global;
    cu->cuLibraryGetManaged = play_get_managed;
    loads = unloads = lookups = 0;
    load_result = lookup_result = CUDA_SUCCESS;
    current_device = 0;
    return 0;
}

static void
code_is_loaded_at_its_first_use(void **state)
{
    struct hed_rt_module *m = hed_rt_add_module(image);
    CUkernel a = NULL, b = NULL;

    hed_rt_add_symbol(m, HED_RT_KERNEL, &stubs[0], "k0", 0);
    hed_rt_add_symbol(m, HED_RT_KERNEL, &stubs[1], "k1", 0);
    assert_int_equal(loads, 0);
    assert_int_equal(hed_rt_kernel(cu, &stubs[1], &a), cudaSuccess);
    assert_int_equal(hed_rt_kernel(cu, &stubs[1], &b), cudaSuccess);
    assert_ptr_equal(a, b);
    assert_int_equal(loads, 1);
    assert_ptr_equal(hed_rt_stub(a), &stubs[1]);
    hed_rt_remove_module(m);
    assert_int_equal(unloads, 1);
    assert_ptr_equal(hed_rt_stub(a), a);
}

static void
bad_code_is_loaded_once(void **state)
{
    struct hed_rt_module *m = hed_rt_add_module(image);
    CUkernel k;

    hed_rt_add_symbol(m, HED_RT_KERNEL, &stubs[0], "k0", 0);
    load_result = CUDA_ERROR_INVALID_IMAGE;
    for (int i = 0; i < 3; i++)
        assert_int_equal(hed_rt_kernel(cu, &stubs[0], &k), cudaErrorInvalidKernelImage);
    assert_int_equal(loads, 1);
    /* What is registered at the same place later is other code. */
    hed_rt_remove_module(m);
    load_result = CUDA_SUCCESS;
    m = hed_rt_add_module(image);
    hed_rt_add_symbol(m, HED_RT_KERNEL, &stubs[0], "k0", 0);
    assert_int_equal(hed_rt_kernel(cu, &stubs[0], &k), cudaSuccess);
    hed_rt_remove_module(m);
}

static void
a_device_without_code_is_asked_once_until_a_reset(void **state)
{
    struct hed_rt_module *m = hed_rt_add_module(image);
    CUdeviceptr at;
    size_t size;
    CUkernel k;

    hed_rt_add_symbol(m, HED_RT_KERNEL, &stubs[0], "k0", 0);
    hed_rt_add_symbol(m, HED_RT_VARIABLE, &stubs[1], "x", 24);
    lookup_result = CUDA_ERROR_NO_BINARY_FOR_GPU;
    for (int i = 0; i < 3; i++) {
        current_device = i & 1;
        assert_int_equal(hed_rt_kernel(cu, &stubs[0], &k), cudaErrorNoKernelImageForDevice);
        assert_int_equal(hed_rt_variable(cu, &stubs[1], &at, &size),
                         cudaErrorNoKernelImageForDevice);
    }
    assert_int_equal(lookups, 2); /* one for each device */
    atomic_fetch_add(&hed_rt_age, 1);
    lookup_result = CUDA_SUCCESS;
    assert_int_equal(hed_rt_variable(cu, &stubs[1], &at, &size), cudaSuccess);
    assert_int_equal(hed_rt_kernel(cu, &stubs[0], &k), cudaSuccess);
    hed_rt_remove_module(m);
}

static void
the_lack_of_memory_is_not_remembered(void **state)
{
    struct hed_rt_module *m = hed_rt_add_module(image);
    CUkernel k;

    hed_rt_add_symbol(m, HED_RT_KERNEL, &stubs[0], "k0", 0);
    load_result = CUDA_ERROR_OUT_OF_MEMORY;
    assert_int_equal(hed_rt_kernel(cu, &stubs[0], &k), cudaErrorMemoryAllocation);
    load_result = CUDA_SUCCESS;
    assert_int_equal(hed_rt_kernel(cu, &stubs[0], &k), cudaSuccess);
    hed_rt_remove_module(m);
}

static void
a_module_that_was_not_used_is_not_unloaded(void **state)
{
    struct hed_rt_module *m = hed_rt_add_module(image);

    hed_rt_add_symbol(m, HED_RT_KERNEL, &stubs[0], "k0", 0);
    hed_rt_remove_module(m);
    assert_int_equal(loads + unloads, 0);
    assert_null(hed_rt_find(&stubs[0]));
}

static void
a_module_that_is_removed_twice_is_used_once(void **state)
{
    struct hed_rt_module *m = hed_rt_add_module(image);
    struct hed_rt_module *a, *b;

    hed_rt_remove_module(m);
    hed_rt_remove_module(m);
    a = hed_rt_add_module(image);
    b = hed_rt_add_module(image);
    assert_ptr_not_equal(a, b);
    hed_rt_remove_module(a);
    hed_rt_remove_module(b);
}

static void
what_is_not_a_kernel_is_refused(void **state)
{
    struct hed_rt_module *m = hed_rt_add_module(image);
    CUkernel k;
    CUdeviceptr at;
    size_t size;

    hed_rt_add_symbol(m, HED_RT_VARIABLE, &stubs[0], "x", 24);
    hed_rt_add_symbol(m, HED_RT_KERNEL, &stubs[1], "none", 0);
    hed_rt_add_symbol(m, HED_RT_KERNEL, NULL, "k0", 0);
    hed_rt_add_symbol(NULL, HED_RT_KERNEL, &stubs[2], "k0", 0);
    assert_int_equal(hed_rt_kernel(cu, &stubs[1], &k), cudaErrorSymbolNotFound);
    assert_int_equal(hed_rt_kernel(cu, NULL, &k), cudaErrorInvalidDeviceFunction);
    /* What was not registered may be a handle: the driver is asked. */
    assert_int_equal(hed_rt_kernel(cu, &stubs[0], &k), cudaSuccess);
    assert_ptr_equal(k, &stubs[0]);
    assert_int_equal(hed_rt_kernel(cu, &stubs[2], &k), cudaSuccess);
    assert_ptr_equal(k, &stubs[2]);
    assert_int_equal(hed_rt_variable(cu, &stubs[1], &at, &size), cudaErrorInvalidSymbol);
    assert_int_equal(hed_rt_variable(cu, &stubs[0], &at, &size), cudaSuccess);
    assert_int_equal(at, 0x7000);
    hed_rt_remove_module(m);
}

/* Two objects of a program have the same template: the linker keeps one stub, both register it. */
static void
one_stub_of_two_modules_lives_as_long_as_one_of_them(void **state)
{
    for (int first = 0; first < 2; first++) {
        struct hed_rt_module *m[2] = {hed_rt_add_module(image), hed_rt_add_module(image)};
        CUkernel k;

        hed_rt_add_symbol(m[0], HED_RT_KERNEL, &stubs[7], "k7", 0);
        hed_rt_add_symbol(m[1], HED_RT_KERNEL, &stubs[7], "k7", 0);
        hed_rt_remove_module(m[first]);
        assert_int_equal(hed_rt_kernel(cu, &stubs[7], &k), cudaSuccess);
        hed_rt_remove_module(m[!first]);
        assert_null(hed_rt_find(&stubs[7]));
    }
}

static void
modules_come_and_go(void **state)
{
    static char name[MANY][8];

    for (int round = 0; round < 20; round++) {
        struct hed_rt_module *m = hed_rt_add_module(image);

        for (int i = 0; i < MANY; i++) {
            (void)snprintf(name[i], sizeof name[i], "k%d", i);
            hed_rt_add_symbol(m, HED_RT_KERNEL, &stubs[i], name[i], 0);
        }
        for (int i = 0; i < MANY; i++) {
            CUkernel k;

            assert_int_equal(hed_rt_kernel(cu, &stubs[i], &k), cudaSuccess);
            assert_int_equal((uintptr_t)k & UINT32_MAX, i + 1);
        }
        hed_rt_remove_module(m);
        for (int i = 0; i < MANY; i++)
            assert_null(hed_rt_find(&stubs[i]));
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

static _Atomic bool stop;

/* Looks for a kernel that stays, while the table grows and shrinks around it. */
static void *
look_for_one(void *arg)
{
    unsigned long wrong = 0;

    while (!atomic_load(&stop)) {
        CUkernel k = NULL;

        wrong += hed_rt_kernel(cu, &stubs[0], &k) != cudaSuccess || !k;
    }
    return (void *)wrong;
}

static void
threads_find_what_stays(void **state)
{
    struct hed_rt_module *stays = hed_rt_add_module(image);
    pthread_t readers[3];

    hed_rt_add_symbol(stays, HED_RT_KERNEL, &stubs[0], "k0", 0);
    stop = false;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, look_for_one, NULL), 0);
    for (int round = 0; round < 30; round++) {
        struct hed_rt_module *m = hed_rt_add_module(image);

        for (int i = 1; i < 1000 + round * 100; i++)
            hed_rt_add_symbol(m, HED_RT_KERNEL, &stubs[i], "k1", 0);
        hed_rt_remove_module(m);
    }
    stop = true;
    for (int i = 0; i < 3; i++) {
        void *wrong;

        assert_int_equal(pthread_join(readers[i], &wrong), 0);
        assert_null(wrong);
    }
    /* Those that lost the race to load it have unloaded theirs. */
    assert_int_equal(loads - unloads, 1);
    hed_rt_remove_module(stays);
}

static void *
init_slowly(void *arg)
{
    is_slow = true;
    hed_rt_init_modules();
    return NULL;
}

/* A thread that gets a context uses managed variables, even if another one is just placing them. */
static void
no_thread_goes_on_without_managed_variables(void **state)
{
    struct hed_rt_module *m = hed_rt_add_module(image);
    char *pointer = NULL;
    pthread_t other;

    hed_rt_add_symbol(m, HED_RT_MANAGED_POINTER, &pointer, "m", 24);
    assert_int_equal(sem_init(&is_asked, 0, 0) | sem_init(&may_answer, 0, 0), 0);
    assert_int_equal(pthread_create(&other, NULL, init_slowly, NULL), 0);
    while (sem_wait(&is_asked) != 0)
        continue;
    hed_rt_init_modules();
    assert_ptr_equal(__atomic_load_n(&pointer, __ATOMIC_RELAXED), &stubs[100]);
    sem_post(&may_answer);
    assert_int_equal(pthread_join(other, NULL), 0);
    hed_rt_remove_module(m);
}

/* The driver's answer comes when the module is gone, and with it the pointer. */
static void
pointers_of_removed_modules_are_not_written(void **state)
{
    struct hed_rt_module *m = hed_rt_add_module(image);
    char *pointer = NULL;
    pthread_t other;

    hed_rt_add_symbol(m, HED_RT_MANAGED_POINTER, &pointer, "m", 24);
    assert_int_equal(sem_init(&is_asked, 0, 0) | sem_init(&may_answer, 0, 0), 0);
    assert_int_equal(pthread_create(&other, NULL, init_slowly, NULL), 0);
    while (sem_wait(&is_asked) != 0)
        continue;
    hed_rt_remove_module(m);
    sem_post(&may_answer);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_null(pointer);
}

/* Bytes that are allocated; 0 under a sanitizer, which has its own allocator. */
static size_t
allocated(void)
{
    const struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

/* A plug-in that is loaded again and again has new handles, and perhaps new addresses. */
static void
plugins_that_come_and_go_leave_nothing(void **state)
{
    size_t before = 0;

    for (int round = 0; round < 50 * MANY; round++) {
        struct hed_rt_module *m = hed_rt_add_module(image);
        const void *stub = &stubs[0] + (size_t)round * 4096;
        CUkernel k;

        hed_rt_add_symbol(m, HED_RT_KERNEL, stub, "k0", 0);
        assert_int_equal(hed_rt_kernel(cu, stub, &k), cudaSuccess);
        hed_rt_remove_module(m);
        if (round == MANY)
            before = allocated();
    }
    assert_true(allocated() <= before);
}

/* Programs know managed variables by their own addresses, not by those of the pointers to them. */
static void
managed_variables_are_found_by_their_addresses(void **state)
{
    struct hed_rt_module *m = hed_rt_add_module(image);
    struct hed_rt_module *other = hed_rt_add_module(image);
    char *pointer = NULL, *removed = NULL;
    CUdeviceptr at;
    size_t size;

    hed_rt_add_symbol(m, HED_RT_MANAGED_POINTER, &pointer, "m", 24);
    hed_rt_add_symbol(other, HED_RT_MANAGED_POINTER, &removed, "m", 24);
    hed_rt_remove_module(other);
    assert_int_equal(hed_rt_variable(cu, &stubs[100], &at, &size), cudaErrorInvalidSymbol);
    hed_rt_init_modules();
    assert_ptr_equal(pointer, &stubs[100]);
    assert_null(removed);
    assert_int_equal(hed_rt_variable(cu, pointer, &at, &size), cudaSuccess);
    assert_int_equal(at, (CUdeviceptr)(uintptr_t)pointer);
    assert_int_equal(size, 24);
    assert_int_equal(hed_rt_variable(cu, &pointer, &at, &size), cudaErrorInvalidSymbol);
    assert_true(hed_rt_init_module(m));
    hed_rt_remove_module(m);
    assert_int_equal(hed_rt_variable(cu, pointer, &at, &size), cudaErrorInvalidSymbol);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(code_is_loaded_at_its_first_use, play_driver),
    cmocka_unit_test_setup(bad_code_is_loaded_once, play_driver),
    cmocka_unit_test_setup(a_device_without_code_is_asked_once_until_a_reset, play_driver),
    cmocka_unit_test_setup(the_lack_of_memory_is_not_remembered, play_driver),
    cmocka_unit_test_setup(a_module_that_was_not_used_is_not_unloaded, play_driver),
    cmocka_unit_test_setup(a_module_that_is_removed_twice_is_used_once, play_driver),
    cmocka_unit_test_setup(what_is_not_a_kernel_is_refused, play_driver),
    cmocka_unit_test_setup(one_stub_of_two_modules_lives_as_long_as_one_of_them, play_driver),
    cmocka_unit_test_setup(managed_variables_are_found_by_their_addresses, play_driver),
    cmocka_unit_test_setup(no_thread_goes_on_without_managed_variables, play_driver),
    cmocka_unit_test_setup(pointers_of_removed_modules_are_not_written, play_driver),
    cmocka_unit_test_setup(modules_come_and_go, play_driver),
    cmocka_unit_test_setup(plugins_that_come_and_go_leave_nothing, play_driver),
    cmocka_unit_test_setup(threads_find_what_stays, play_driver),
};

HED_UNIT_MAIN(tests)
