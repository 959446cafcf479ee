/* Libraries of the soft driver, and linking. The expected results are those of NVIDIA's driver 580
 * on an H200 for the same calls, where they make sense without a GPU. */
#include <pthread.h>

#include "base/buf.h"
#include "unit/driver/module_machine.h"

static CUlibrary
library(struct fake *f, const char *ptx)
{
    CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED;
    void *value = (void *)(uintptr_t)1;
    CUlibrary l = NULL;

    ok(fake_call(f, cuLibraryLoadData, &l, ptx, NULL, NULL, 0, &option, &value, 1));
    return l;
}

static void
libraries_are_opened_when_something_is_asked_for(void **state)
{
    struct fake *f = text_started(2);
    CUkernel k = NULL, again = NULL;
    CUlibrary of = NULL;
    CUfunction in = NULL;
    const CUlibrary l = library(f, text_ptx);

    assert_int_equal(text_opens, 0);
    ok(fake_call(f, cuLibraryGetKernel, &k, l, "k_none"));
    ok(fake_call(f, cuLibraryGetKernel, &again, l, "k_none"));
    assert_ptr_equal(k, again);
    assert_int_equal(fake_call(f, cuLibraryGetKernel, &again, l, "nope"), CUDA_ERROR_NOT_FOUND);
    ok(fake_call(f, cuKernelGetLibrary, &of, k));
    assert_ptr_equal(of, l);
    assert_int_equal(fake_call(f, cuKernelGetFunction, &in, k), CUDA_ERROR_INVALID_CONTEXT);

    for (int device = 0; device < 2; device++) {
        (void)fake_use_primary(f, device);
        ok(TEXT_LAUNCH(f, (CUfunction)k));
        ok(fake_call(f, cuKernelGetFunction, &in, k));
        ok(TEXT_LAUNCH(f, in));
    }
    /* Devices of the same kind share what was opened. */
    assert_int_equal(text_opens, 1);
    ok(fake_call(f, cuLibraryUnload, l));
    assert_int_equal(text_closes, 1);
    assert_int_equal(TEXT_LAUNCH(f, (CUfunction)k), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(TEXT_LAUNCH(f, in), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(fake_call(f, cuLibraryUnload, l), CUDA_ERROR_INVALID_HANDLE);
    fake_free(f);
}

static void
a_library_comes_back_after_a_reset(void **state)
{
    struct fake *f = text_started(1);
    CUkernel k = NULL;
    CUdeviceptr at = 0;
    size_t size;
    const CUlibrary l = library(f, text_ptx);

    (void)fake_use_primary(f, 0);
    ok(fake_call(f, cuLibraryGetKernel, &k, l, "k_none"));
    ok(TEXT_LAUNCH(f, (CUfunction)k));
    ok(fake_call(f, cuLibraryGetGlobal, &at, &size, l, "global_var"));
    memset((void *)(uintptr_t)at, 0xff, 8);
    ok(fake_call(f, cuDevicePrimaryCtxReset_v2, 0));
    (void)fake_use_primary(f, 0);
    ok(TEXT_LAUNCH(f, (CUfunction)k));
    ok(fake_call(f, cuLibraryGetGlobal, &at, &size, l, "global_var"));
    assert_memory_equal((void *)(uintptr_t)at, text_first, sizeof text_first);
    ok(fake_call(f, cuLibraryUnload, l));
    fake_free(f);
}

static void
managed_variables_are_there_before_any_context(void **state)
{
    struct fake *f = text_started(2);
    CUkernel k = NULL;
    CUdeviceptr at = 0, same = 0;
    size_t size = 0;
    const CUlibrary l = library(f, PTX_HEAD ".global managed_var, global_var;.entry k_none(){}");
    const uint32_t written[] = {7, 8, 9};

    ok(fake_call(f, cuLibraryGetManaged, &at, &size, l, "managed_var"));
    assert_int_equal(size, 12);
    assert_memory_equal((void *)(uintptr_t)at, text_first, sizeof text_first);
    memcpy((void *)(uintptr_t)at, written, sizeof written);
    ok(fake_call(f, cuLibraryGetKernel, &k, l, "k_none"));
    for (int device = 0; device < 2; device++) {
        (void)fake_use_primary(f, device);
        ok(TEXT_LAUNCH(f, (CUfunction)k));
        ok(fake_call(f, cuLibraryGetGlobal, &same, &size, l, "managed_var"));
        assert_int_equal(same, at);
        assert_memory_equal((void *)(uintptr_t)at, written, sizeof written);
    }
    assert_int_equal(text_overwrites, 0); /* kernels of other devices may be writing to it */
    ok(fake_call(f, cuDevicePrimaryCtxReset_v2, 0));
    assert_memory_equal((void *)(uintptr_t)at, written, sizeof written);
    assert_int_equal(fake_call(f, cuLibraryGetManaged, &at, &size, l, "global_var"),
                     CUDA_ERROR_NOT_FOUND);
    ok(fake_call(f, cuLibraryUnload, l));
    fake_free(f);
}

static void
an_image_that_is_not_preserved_is_copied(void **state)
{
    struct fake *f = text_started(1);
    CUlibrary l = NULL;
    CUkernel k = NULL;
    CUmodule m = NULL;
    char *ptx = strdup(text_ptx);

    ok(fake_call(f, cuLibraryLoadData, &l, ptx, NULL, NULL, 0, NULL, NULL, 0));
    memset(ptx, 'x', strlen(ptx));
    free(ptx);
    ok(fake_call(f, cuLibraryGetKernel, &k, l, "k_max"));
    (void)fake_use_primary(f, 0);
    ok(fake_call(f, cuLibraryGetModule, &m, l));
    assert_int_equal(fake_call(f, cuModuleUnload, m), CUDA_ERROR_NOT_PERMITTED);
    ok(fake_call(f, cuLibraryUnload, l));
    fake_free(f);
}

/* NVIDIA's runtime adds nodes with a kernel and its function, and later asks for the kernel. */
static void
a_node_tells_the_kernel_of_its_function(void **state)
{
    struct fake *f = text_started(1);
    const CUlibrary l = library(f, text_ptx);
    CUDA_KERNEL_NODE_PARAMS_v2 p = {.gridDimX = 1,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = 1,
                                    .blockDimY = 1,
                                    .blockDimZ = 1};
    CUDA_KERNEL_NODE_PARAMS_v2 got;
    CUgraph g = NULL;
    CUgraphNode n = NULL;

    (void)fake_use_primary(f, 0);
    ok(fake_call(f, cuLibraryGetKernel, &p.kern, l, "k_none"));
    ok(fake_call(f, cuKernelGetFunction, &p.func, p.kern));
    ok(fake_call(f, cuGraphCreate, &g, 0));
    ok(fake_call(f, cuGraphAddKernelNode_v2, &n, g, NULL, 0, &p));
    ok(fake_call(f, cuGraphKernelNodeGetParams_v2, n, &got));
    assert_ptr_equal(got.func, p.func);
    assert_ptr_equal(got.kern, p.kern);
    assert_int_equal(fake_call(f, cuGraphExecKernelNodeSetParams_v2, NULL, n, &p),
                     CUDA_ERROR_INVALID_VALUE);
    ok(fake_call(f, cuGraphDestroy, g));
    fake_free(f);
}

static void
thousands_of_kernels_are_found(void **state)
{
    struct fake *f = text_started(1);
    struct hed_buf text;
    CUkernel *kernels = calloc(8000, sizeof *kernels);
    unsigned count = 0;
    CUkernel k = NULL;

    hed_buf_init(&text, 1 << 20);
    hed_buf_addf(&text, PTX_HEAD);
    for (int i = 0; i < 8000; i++)
        hed_buf_addf(&text, ".visible .entry k%d(){}\n", i);

    const CUlibrary l = library(f, hed_buf_cstr(&text));

    ok(fake_call(f, cuLibraryGetKernelCount, &count, l));
    assert_int_equal(count, 8000);
    ok(fake_call(f, cuLibraryEnumerateKernels, kernels, 8000, l));
    ok(fake_call(f, cuLibraryGetKernel, &k, l, "k7999"));
    assert_ptr_equal(k, kernels[7999]);
    ok(fake_call(f, cuLibraryUnload, l));
    hed_buf_fini(&text);
    free(kernels);
    fake_free(f);
}

struct race {
    struct fake *f;
    CUlibrary library;
    CUcontext ctx;
};

static void *
race(void *arg)
{
    struct race *r = arg;

    ok(fake_call(r->f, cuCtxSetCurrent, r->ctx));
    for (int i = 0; i < 200; i++) {
        CUkernel k = NULL;

        ok(fake_call(r->f, cuLibraryGetKernel, &k, r->library, i % 2 ? "k_none" : "k_max"));
        ok(TEXT_LAUNCH(r->f, (CUfunction)k));
    }
    return NULL;
}

static void
threads_open_and_load_a_library_once(void **state)
{
    struct fake *f = text_started(1);
    struct race r = {f, library(f, text_ptx), fake_use_primary(f, 0)};
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, race, &r), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(text_opens, 1);
    ok(fake_call(f, cuCtxSynchronize, 0));
    ok(fake_call(f, cuLibraryUnload, r.library));
    fake_free(f);
}

/* ---- linking --------------------------------------------------------------------------------- */

static void
what_is_linked_can_be_loaded(void **state)
{
    struct fake *f = text_started(1);
    const char *one = PTX_HEAD ".extern .func helper();\n.visible .entry k_one(){call helper;}\n";
    const char *two = PTX_HEAD ".visible .func helper(){}\n.visible .entry k_two(){}\n";
    CUlinkState s = NULL;
    CUmodule m = NULL;
    CUfunction k = NULL;
    void *cubin = NULL;
    size_t size = 0;

    (void)fake_use_primary(f, 0);
    ok(fake_call(f, cuLinkCreate_v2, 0, NULL, NULL, &s));
    ok(fake_call(f, cuLinkAddData_v2, s, CU_JIT_INPUT_PTX, (void *)(uintptr_t)one, strlen(one) + 1,
                 "one", 0, NULL, NULL));
    ok(fake_call(f, cuLinkAddData_v2, s, CU_JIT_INPUT_PTX, (void *)(uintptr_t)two, strlen(two) + 1,
                 "two", 0, NULL, NULL));
    ok(fake_call(f, cuLinkComplete, s, &cubin, &size));
    assert_int_equal(fake_call(f, cuLinkComplete, s, &cubin, &size), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(fake_call(f, cuLinkAddData_v2, s, CU_JIT_INPUT_PTX, (void *)(uintptr_t)two,
                               strlen(two) + 1, "two", 0, NULL, NULL),
                     CUDA_ERROR_INVALID_VALUE);

    /* Programs keep the image longer than the state. */
    void *copy = malloc(size);

    memcpy(copy, cubin, size);
    ok(fake_call(f, cuLinkDestroy, s));
    assert_int_equal(fake_call(f, cuLinkDestroy, s), CUDA_ERROR_INVALID_HANDLE);
    ok(fake_call(f, cuModuleLoadData, &m, copy));
    free(copy);
    ok(fake_call(f, cuModuleGetFunction, &k, m, "k_one"));
    ok(fake_call(f, cuModuleGetFunction, &k, m, "k_two"));
    fake_free(f);
}

static void
bad_input_of_a_link_is_told_at_once(void **state)
{
    struct fake *f = text_started(1);
    const char *bad = PTX_HEAD ".entry k(){BAD;}";
    char error[64] = "?";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {error, (void *)(uintptr_t)sizeof error};
    CUlinkState s = NULL;

    (void)fake_use_primary(f, 0);
    ok(fake_call(f, cuLinkCreate_v2, 2, options, values, &s));
    assert_int_equal(fake_call(f, cuLinkAddData_v2, s, CU_JIT_INPUT_PTX, (void *)(uintptr_t)bad,
                               strlen(bad) + 1, "bad", 0, NULL, NULL),
                     CUDA_ERROR_INVALID_PTX);
    assert_string_equal(error, "line 4: BAD is no instruction\n");
    assert_int_equal(
        fake_call(f, cuLinkAddFile_v2, s, CU_JIT_INPUT_PTX, "/nonexistent", 0, NULL, NULL),
        CUDA_ERROR_FILE_NOT_FOUND);
    ok(fake_call(f, cuLinkDestroy, s));
    fake_free(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(libraries_are_opened_when_something_is_asked_for),
    cmocka_unit_test(a_library_comes_back_after_a_reset),
    cmocka_unit_test(managed_variables_are_there_before_any_context),
    cmocka_unit_test(an_image_that_is_not_preserved_is_copied),
    cmocka_unit_test(a_node_tells_the_kernel_of_its_function),
    cmocka_unit_test(thousands_of_kernels_are_found),
    cmocka_unit_test(threads_open_and_load_a_library_once),
    cmocka_unit_test(what_is_linked_can_be_loaded),
    cmocka_unit_test(bad_input_of_a_link_is_told_at_once),
};

HED_UNIT_MAIN(tests)
