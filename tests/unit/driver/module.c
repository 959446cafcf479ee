/* Modules of the soft driver. The expected results are those of NVIDIA's driver 580 on an H200 for
 * the same calls, where they make sense without a GPU. */
#include "driver/module/module.h"

#include <pthread.h>
#include <unistd.h>

#include "driver/memory/memory.h"
#include "driver/table/tables.h"
#include "unit/driver/captured.h"
#include "unit/driver/module_machine.h"
#include "unit/fatbin/make.h"

static void
images_that_are_none_are_refused(void **state)
{
    struct fake *f = text_started(1);
    CUmodule m = NULL;

    assert_int_equal(fake_call(f, cuModuleLoadData, &m, text_ptx), CUDA_ERROR_INVALID_CONTEXT);
    (void)fake_use_primary(f, 0);
    assert_int_equal(fake_call(f, cuModuleLoadData, &m, "garbage"), CUDA_ERROR_INVALID_IMAGE);
    assert_int_equal(fake_call(f, cuModuleLoadData, &m, ""), CUDA_ERROR_INVALID_IMAGE);
    assert_int_equal(fake_call(f, cuModuleLoadData, &m, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuModuleLoadData, NULL, text_ptx), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuModuleLoad, &m, "/nonexistent"), CUDA_ERROR_FILE_NOT_FOUND);
    assert_int_equal(fake_call(f, cuModuleLoad, &m, "/etc/passwd"), CUDA_ERROR_INVALID_IMAGE);
    assert_int_equal(fake_call(f, cuModuleLoadData, &m, PTX_HEAD ".entry k(){BAD;}"),
                     CUDA_ERROR_INVALID_PTX);
    assert_int_equal(fake_call(f, cuModuleLoadData, &m, ".version 8.7\n.target sm_120\n"),
                     CUDA_ERROR_INVALID_PTX);
    assert_int_equal(fake_call(f, cuModuleLoadData, &m, ".version 99.0\n.target sm_70\n"),
                     CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    assert_null(m);
    fake_free(f);
}

static void
a_file_that_is_not_there_is_no_news(void **state)
{
    struct fake *f = text_started(1);
    struct captured log;
    char text[1024];
    CUmodule m = NULL;
    CUlibrary library = NULL;

    (void)fake_use_primary(f, 0);
    /* Programs ask like this whether a cache has a file. */
    captured_begin(&log);
    assert_int_equal(fake_call(f, cuModuleLoad, &m, "/nonexistent"), CUDA_ERROR_FILE_NOT_FOUND);
    assert_int_equal(
        fake_call(f, cuLibraryLoadFromFile, &library, "/nonexistent", NULL, NULL, 0, NULL, NULL, 0),
        CUDA_ERROR_FILE_NOT_FOUND);
    captured_end(&log, text, sizeof text);
    assert_string_equal(text, "");
    captured_begin(&log);
    assert_int_equal(fake_call(f, cuModuleLoad, &m, "/etc/passwd"), CUDA_ERROR_INVALID_IMAGE);
    captured_end(&log, text, sizeof text);
    assert_one_line(text, "/etc/passwd");
    fake_free(f);
}

static void
functions_have_one_handle_each(void **state)
{
    struct fake *f = text_started(1);
    CUfunction a = NULL, b = NULL, all[9] = {NULL};
    CUmodule of = NULL;
    unsigned count = 0;
    const char *name = NULL;

    (void)fake_use_primary(f, 0);

    const CUmodule m = text_module(f);

    a = text_function(f, m, "k_none");
    ok(fake_call(f, cuModuleGetFunction, &b, m, "k_none"));
    assert_ptr_equal(a, b);
    assert_int_equal(fake_call(f, cuModuleGetFunction, &b, m, "nope"), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(fake_call(f, cuModuleGetFunction, &b, m, ""), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuModuleGetFunction, &b, NULL, "k"), CUDA_ERROR_INVALID_HANDLE);
    ok(fake_call(f, cuModuleGetFunctionCount, &count, m));
    assert_int_equal(count, 5);
    ok(fake_call(f, cuModuleEnumerateFunctions, all, 9, m));
    assert_ptr_equal(all[1], a);
    assert_null(all[5]);
    ok(fake_call(f, cuFuncGetName, &name, a));
    assert_string_equal(name, "k_none");
    ok(fake_call(f, cuFuncGetModule, &of, a));
    assert_ptr_equal(of, m);
    fake_free(f);
}

static CUfunction told[8];
static unsigned times;

static uintptr_t
note_function(void *data, CUfunction function, const char *name)
{
    assert_ptr_equal(data, &times);
    assert_non_null(name);
    told[times++ % 8] = function;
    return 0;
}

/* cuFFT asks for this through a private table. */
static void
functions_are_told_one_by_one(void **state)
{
    struct fake *f = text_started(1);
    CUfunction all[5];

    (void)fake_use_primary(f, 0);

    const CUmodule m = text_module(f);

    times = 0;
    ok(fake_call(f, cuModuleEnumerateFunctions, all, 5, m));
    assert_int_equal(hed_slot_each_function(NULL, m, note_function, &times), 5);
    assert_int_equal(times, 5);
    assert_memory_equal(told, all, sizeof all);
    assert_int_equal(hed_slot_each_function(NULL, NULL, note_function, &times), 0);
    assert_int_equal(hed_slot_each_function(NULL, m, NULL, &times), 0);
    fake_free(f);
}

static void
variables_have_memory_and_first_values(void **state)
{
    struct fake *f = text_started(1);
    CUdeviceptr at = 0;
    size_t size = 0;

    (void)fake_use_primary(f, 0);

    const CUmodule m = text_module(f);
    struct hed_allocation a;

    ok(fake_call(f, cuModuleGetGlobal_v2, &at, &size, m, "global_var"));
    assert_int_equal(size, 64);
    assert_memory_equal((void *)(uintptr_t)at, text_first, sizeof text_first);
    assert_true(hed_memory_find(f->driver, at, &a));
    assert_int_equal(a.kind, HED_MEMORY_MODULE);
    ok(fake_call(f, cuModuleGetGlobal_v2, NULL, &size, m, "global_var"));
    assert_int_equal(fake_call(f, cuModuleGetGlobal_v2, NULL, NULL, m, "global_var"),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuModuleGetGlobal_v2, &at, NULL, m, "k_none"),
                     CUDA_ERROR_NOT_FOUND);
    ok(fake_call(f, cuModuleUnload, m));
    assert_false(hed_memory_find(f->driver, at, &a));
    fake_free(f);
}

static void
unloading_takes_everything_away(void **state)
{
    struct fake *f = text_started(1);
    int value;

    (void)fake_use_primary(f, 0);

    const CUmodule m = text_module(f);
    const CUfunction k = text_function(f, m, "k_none");

    ok(TEXT_LAUNCH(f, k));
    ok(fake_call(f, cuModuleUnload, m));
    assert_int_equal(text_closes, 1);
    assert_int_equal(TEXT_LAUNCH(f, k), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(fake_call(f, cuFuncGetAttribute, &value, 0, k), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(fake_call(f, cuModuleUnload, m), CUDA_ERROR_INVALID_HANDLE);
    fake_free(f);
}

static _Atomic bool running, may_end;

static CUresult
slow_launch(struct fake *f, const struct hed_launch *l)
{
    atomic_store(&running, true);
    WAIT_UNTIL(atomic_load(&may_end));
    /* It is still there, although the program has unloaded it. */
    assert_string_equal(l->code->kernels[l->kernel].name, "k_none");
    return CUDA_SUCCESS;
}

/* Ends the kernel once the main thread waits for it. */
static void *
end_late(void *arg)
{
    WAIT_UNTIL(atomic_load(&running) && thread_state(getpid()) == 'S');
    atomic_store(&may_end, true);
    return NULL;
}

static void
unloading_waits_for_work(void **state)
{
    struct fake *f = text_started(1);
    pthread_t t;

    (void)fake_use_primary(f, 0);

    const CUmodule m = text_module(f);

    f->launch = slow_launch;
    ok(TEXT_LAUNCH(f, text_function(f, m, "k_none")));
    assert_int_equal(pthread_create(&t, NULL, end_late, NULL), 0);
    ok(fake_call(f, cuModuleUnload, m));
    assert_true(atomic_load(&may_end));
    assert_int_equal(text_closes, 1);
    assert_int_equal(pthread_join(t, NULL), 0);
    fake_free(f);
}

static void
a_context_takes_its_modules_with_it(void **state)
{
    struct fake *f = text_started(1);
    CUcontext c = NULL;
    unsigned count;

    ok(fake_call(f, cuCtxCreate_v2, &c, 0, 0));

    const CUmodule m = text_module(f);
    const CUfunction k = text_function(f, m, "k_none");

    (void)fake_use_primary(f, 0);
    /* A function belongs to a context. */
    assert_int_equal(TEXT_LAUNCH(f, k), CUDA_ERROR_INVALID_HANDLE);
    ok(fake_call(f, cuCtxDestroy_v2, c));
    assert_int_equal(fake_call(f, cuModuleGetFunctionCount, &count, m), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(text_closes, 1);
    fake_free(f);
}

static void
jit_options_are_read_and_answered(void **state)
{
    struct fake *f = text_started(1);
    char error[64] = "?", info[64] = "?";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_WALL_TIME};
    void *values[] = {error, (void *)(uintptr_t)sizeof error, info, (void *)(uintptr_t)sizeof info,
                      NULL};
    CUjit_option unknown[] = {(CUjit_option)77};
    CUmodule m = NULL;
    unsigned size;

    (void)fake_use_primary(f, 0);
    assert_int_equal(
        fake_call(f, cuModuleLoadDataEx, &m, PTX_HEAD ".entry k(){BAD;}", 5, options, values),
        CUDA_ERROR_INVALID_PTX);
    assert_string_equal(error, "line 4: BAD is no instruction\n");
    memcpy(&size, &values[1], sizeof size);
    assert_int_equal(size, strlen(error));
    assert_string_equal(info, "");
    assert_int_equal(fake_call(f, cuModuleLoadDataEx, &m, text_ptx, 1, unknown, values),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuModuleLoadDataEx, &m, text_ptx, 1, NULL, NULL),
                     CUDA_ERROR_INVALID_VALUE);
    ok(fake_call(f, cuModuleLoadDataEx, &m, text_ptx, 0, NULL, NULL));
    fake_free(f);
}

/* ---- fat binaries ---------------------------------------------------------------------------- */

static void
ptx_is_preferred_to_machine_code(void **state)
{
    struct fake *f = text_started(1);
    CUmodule m = NULL;

    (void)fake_use_primary(f, 0);
    ok(fake_call(f, cuModuleLoadData, &m, fixture("fatbin/plain").data));
    assert_non_null(strstr(text_last, ".version"));
    fake_free(f);
}

#define NEWER ".version 8.8\n.target sm_120\n.address_size 64\n"

/* NVIDIA's libraries have machine code for every device, and PTX for the newest. */
static void
newer_ptx_runs_where_machine_code_fits(void **state)
{
    struct fake *f = text_started(1);
    CUmodule m = NULL;
    struct make image;

    (void)fake_use_primary(f, 0);
    make_begin(&image);
    make_entry(&image, HED_FATBIN_CUBIN, FAKE_ARCH, HED_FATBIN_64BIT);
    make_ptx(&image, 120, NEWER);
    ok(fake_call(f, cuModuleLoadData, &m, image.data));
    assert_non_null(strstr(text_last, "sm_120"));
    fake_free(f);
}

static void
newer_ptx_without_machine_code_is_refused(void **state)
{
    struct fake *f = text_started(1);
    CUmodule m = NULL;
    struct make image;

    (void)fake_use_primary(f, 0);
    make_begin(&image);
    make_entry(&image, HED_FATBIN_CUBIN, 75, HED_FATBIN_64BIT);
    make_ptx(&image, 120, NEWER);
    assert_int_equal(fake_call(f, cuModuleLoadData, &m, image.data), CUDA_ERROR_NO_BINARY_FOR_GPU);
    assert_int_equal(fake_call(f, cuModuleLoadData, &m, NEWER), CUDA_ERROR_INVALID_PTX);
    fake_free(f);
}

static void
machine_code_alone_can_be_asked_about_but_not_run(void **state)
{
    struct fake *f = text_started(1);
    CUmodule m = NULL;
    CUfunction k = NULL;
    unsigned count = 0;
    int registers = 0;

    (void)fake_use_primary(f, 0);
    ok(fake_call(f, cuModuleLoadData, &m, fixture("cubin/sm_90").data));
    ok(fake_call(f, cuModuleGetFunctionCount, &count, m));
    assert_true(count > 0);
    ok(fake_call(f, cuModuleEnumerateFunctions, &k, 1, m));
    ok(fake_call(f, cuFuncGetAttribute, &registers, CU_FUNC_ATTRIBUTE_NUM_REGS, k));
    assert_true(registers > 0);

    unsigned char params[4096] = {0};
    void *each[64];

    for (int i = 0; i < 64; i++)
        each[i] = params;
    assert_int_equal(fake_call(f, cuLaunchKernel, k, 1, 1, 1, 1, 1, 1, 0, NULL, each, NULL, false),
                     CUDA_ERROR_NO_BINARY_FOR_GPU);
    assert_int_equal(fake_call(f, cuFuncLoad, k), CUDA_ERROR_NO_BINARY_FOR_GPU);
    assert_int_equal(fake_call(f, cuModuleLoadData, &m, fixture("cubin/sm_75").data),
                     CUDA_ERROR_NO_BINARY_FOR_GPU);
    fake_free(f);
}

struct messages {
    int count;
    char last[1024];
};

static void
note_message(void *data, CUlogLevel level, char *text, size_t size)
{
    struct messages *t = data;

    assert_int_equal(level, CU_LOG_LEVEL_ERROR);
    assert_int_equal(strlen(text), size);
    t->count++;
    (void)snprintf(t->last, sizeof t->last, "%s", text);
}

static void
programs_are_told_why_a_kernel_cannot_run(void **state)
{
    struct fake *f = text_started(1);
    CUlogsCallbackHandle handle = NULL, other = NULL;
    struct messages seen = {0}, removed = {0};
    CUmodule m = NULL;
    CUfunction k = NULL;

    assert_int_equal(fake_call(f, cuLogsRegisterCallback, NULL, NULL, &handle),
                     CUDA_ERROR_INVALID_VALUE);
    ok(fake_call(f, cuLogsRegisterCallback, note_message, &seen, &handle));
    ok(fake_call(f, cuLogsRegisterCallback, note_message, &removed, &other));
    ok(fake_call(f, cuLogsUnregisterCallback, other));
    assert_int_equal(fake_call(f, cuLogsUnregisterCallback, other), CUDA_ERROR_INVALID_VALUE);
    (void)fake_use_primary(f, 0);
    ok(fake_call(f, cuModuleLoadData, &m, fixture("cubin/sm_90").data));
    ok(fake_call(f, cuModuleEnumerateFunctions, &k, 1, m));
    assert_int_equal(fake_call(f, cuFuncLoad, k), CUDA_ERROR_NO_BINARY_FOR_GPU);
    assert_int_equal(fake_call(f, cuFuncLoad, k), CUDA_ERROR_NO_BINARY_FOR_GPU);
    assert_int_equal(seen.count, 1);
    assert_int_equal(removed.count, 0);
    assert_non_null(strstr(seen.last, "machine code"));
    ok(fake_call(f, cuLogsUnregisterCallback, handle));
    fake_free(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(images_that_are_none_are_refused),
    cmocka_unit_test(a_file_that_is_not_there_is_no_news),
    cmocka_unit_test(functions_have_one_handle_each),
    cmocka_unit_test(variables_have_memory_and_first_values),
    cmocka_unit_test(unloading_takes_everything_away),
    cmocka_unit_test(unloading_waits_for_work),
    cmocka_unit_test(a_context_takes_its_modules_with_it),
    cmocka_unit_test(jit_options_are_read_and_answered),
    cmocka_unit_test(ptx_is_preferred_to_machine_code),
    cmocka_unit_test(newer_ptx_runs_where_machine_code_fits),
    cmocka_unit_test(newer_ptx_without_machine_code_is_refused),
    cmocka_unit_test(machine_code_alone_can_be_asked_about_but_not_run),
    cmocka_unit_test(programs_are_told_why_a_kernel_cannot_run),
    cmocka_unit_test(functions_are_told_one_by_one),
};

HED_UNIT_MAIN(tests)
