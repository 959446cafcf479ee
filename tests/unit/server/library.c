/* Tests of how the worker loads and links, on a driver that compiles late, as NVIDIA's does. */
#include "remote/server/worker/library.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/str.h"
#include "harness/unit.h"
#include "remote/server/worker/images.h"
#include "remote/server/worker/worker.h"

#define LIBRARY ((CUlibrary)(uintptr_t)7)
#define LINKER ((CUlinkState)(uintptr_t)9)

/* ---- the driver ------------------------------------------------------------------------------ */

static struct {
    const CUjit_option *options; /* as they were given; used later */
    void **values;
    unsigned count;
    CUresult module; /* the result of compiling it */
    unsigned kernels, described, modules, links, adds, unloads;
    size_t added;
    const char *text;
} driver;

static CUresult
fake_cuLibraryLoadData(struct hed_layer *self, struct hed_cuLibraryLoadData *a)
{
    driver.options = a->jitOptions;
    driver.values = a->jitOptionsValues;
    driver.count = a->numJitOptions;
    *a->library = LIBRARY;
    return CUDA_SUCCESS;
}

static void *
value_of(CUjit_option option)
{
    for (unsigned i = 0; i < driver.count; i++)
        if (driver.options[i] == option)
            return driver.values[i];
    return NULL;
}

static CUresult
fake_cuLibraryGetModule(struct hed_layer *self, struct hed_cuLibraryGetModule *a)
{
    char *log = value_of(CU_JIT_ERROR_LOG_BUFFER);

    driver.modules++;
    if (driver.module != CUDA_SUCCESS && log)
        (void)hed_str_copy(log, 32, "line 3: bogus");
    *a->pMod = (CUmodule)(uintptr_t)8;
    return driver.module;
}

static CUresult
fake_cuLibraryGetKernelCount(struct hed_layer *self, struct hed_cuLibraryGetKernelCount *a)
{
    *a->count = driver.kernels;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuLibraryEnumerateKernels(struct hed_layer *self, struct hed_cuLibraryEnumerateKernels *a)
{
    for (unsigned i = 0; i < a->numKernels; i++)
        a->kernels[i] = (CUkernel)(uintptr_t)(i + 1);
    return CUDA_SUCCESS;
}

static CUresult
fake_cuKernelGetName(struct hed_layer *self, struct hed_cuKernelGetName *a)
{
    *a->name = "k";
    return CUDA_SUCCESS;
}

static CUresult
fake_cuKernelGetAttribute(struct hed_layer *self, struct hed_cuKernelGetAttribute *a)
{
    driver.described++;
    *a->pi = 1024;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuKernelGetParamInfo(struct hed_layer *self, struct hed_cuKernelGetParamInfo *a)
{
    driver.described++;
    return CUDA_ERROR_INVALID_VALUE;
}

static CUresult
fake_cuLibraryUnload(struct hed_layer *self, struct hed_cuLibraryUnload *a)
{
    char *log = value_of(CU_JIT_INFO_LOG_BUFFER);

    driver.unloads++;
    if (log) /* the driver may use what it was given until the end */
        (void)hed_str_copy(log, 32, "late");
    return CUDA_SUCCESS;
}

static CUresult
fake_cuLinkCreate_v2(struct hed_layer *self, struct hed_cuLinkCreate_v2 *a)
{
    driver.links++;
    *a->stateOut = LINKER;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuLinkAddData_v2(struct hed_layer *self, struct hed_cuLinkAddData_v2 *a)
{
    assert_ptr_equal(a->state, LINKER);
    assert_int_equal(((const char *)a->data)[a->size - 1], 0); /* text, with its NUL */
    assert_string_equal(a->name, "input");
    driver.adds++;
    driver.added = a->size;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuLinkComplete(struct hed_layer *self, struct hed_cuLinkComplete *a)
{
    static char made[] = "machine code";

    *a->cubinOut = made;
    *a->sizeOut = sizeof made;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuLinkDestroy(struct hed_layer *self, struct hed_cuLinkDestroy *a)
{
    driver.links--;
    return CUDA_SUCCESS;
}

#define FAKE(name) .name = fake_##name
static const struct hed_cuda_ops fake = {
    FAKE(cuLibraryLoadData),         FAKE(cuLibraryGetModule), FAKE(cuLibraryGetKernelCount),
    FAKE(cuLibraryEnumerateKernels), FAKE(cuKernelGetName),    FAKE(cuKernelGetAttribute),
    FAKE(cuKernelGetParamInfo),      FAKE(cuLibraryUnload),    FAKE(cuLinkCreate_v2),
    FAKE(cuLinkAddData_v2),          FAKE(cuLinkComplete),     FAKE(cuLinkDestroy)};

/* ---- the worker ------------------------------------------------------------------------------ */

struct fixture {
    struct hed_worker_start start;
    struct hed_layer top;
    struct hed_worker worker;
    struct hed_worker_library *library;
    struct {
        struct hed_open_body open;
        struct hed_wire_jit options[2];
        char name[8];
    } m;
};

static int
setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct hed_why why;

    memset(&driver, 0, sizeof driver);
    driver.kernels = 2;
    f->start.images = "";
    f->top.cuda = &fake;
    f->worker = (struct hed_worker){
        .start = &f->start, .top = &f->top, .device_count = 1, .backend = HED_BACKEND_GPU};
    f->m.open.head.size = sizeof f->m;
    f->m.open.log = HED_CODE_LOG_MAX;
    f->m.open.options = 2;
    f->m.options[0] = (struct hed_wire_jit){.option = CU_JIT_MAX_REGISTERS, .value = 24};
    f->m.options[1] = (struct hed_wire_jit){.option = CU_JIT_OPTIMIZATION_LEVEL, .value = 1};
    memcpy(f->m.name, "input", 6);
    f->library = calloc(1, sizeof *f->library);
    hed_buf_init(&f->library->contents, 1 << 20);
    *state = f;
    return hed_worker_code_init(&f->worker, &why);
}

static int
teardown(void **state)
{
    struct fixture *f = *state;

    if (f->library)
        hed_worker_library_free(&f->worker, f->library);
    hed_images_free(f->worker.code->images);
    free(f->worker.code);
    free(f);
    return 0;
}

static CUresult
load_library(struct fixture *f)
{
    assert_int_equal(hed_jit_room_create(&f->m.open, &f->library->jit), 0);
    return hed_worker_library_load(&f->worker, f->library, &f->m.open);
}

static void
a_module_is_compiled_at_once(void **state)
{
    struct fixture *f = *state;

    f->m.open.flags = HED_OPEN_NOW;
    driver.module = CUDA_ERROR_INVALID_PTX;
    assert_int_equal(load_library(f), CUDA_ERROR_INVALID_PTX);
    assert_string_equal(hed_jit_room_log(f->library->jit), "line 3: bogus");
    /* and what was loaded is unloaded while its buffers exist */
    hed_worker_library_free(&f->worker, f->library);
    f->library = NULL;
    assert_int_equal(driver.unloads, 1);
}

static void
a_library_is_not_and_no_kernel_of_it_is_loaded(void **state)
{
    struct fixture *f = *state;

    driver.module = CUDA_ERROR_INVALID_PTX;
    assert_int_equal(load_library(f), CUDA_SUCCESS);
    assert_int_equal(driver.modules, 0);
    assert_int_equal(driver.described, 0);
    assert_int_equal(f->library->kernel_count, 2);
}

static void
a_modules_kernels_are_described(void **state)
{
    struct fixture *f = *state;

    f->m.open.flags = HED_OPEN_NOW;
    assert_int_equal(load_library(f), CUDA_SUCCESS);
    assert_int_equal(driver.modules, 1);
    assert_true(driver.described > 0);
}

static void
options_travel(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(load_library(f), CUDA_SUCCESS);
    assert_int_equal((uintptr_t)value_of(CU_JIT_MAX_REGISTERS), 24);
    assert_int_equal((uintptr_t)value_of(CU_JIT_OPTIMIZATION_LEVEL), 1);
    assert_non_null(value_of(CU_JIT_ERROR_LOG_BUFFER));
}

static void
addresses_do_not(void **state)
{
    static const CUjit_option bad[] = {CU_JIT_WALL_TIME,
                                       CU_JIT_INFO_LOG_BUFFER,
                                       CU_JIT_ERROR_LOG_BUFFER,
                                       CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                                       CU_JIT_GLOBAL_SYMBOL_ADDRESSES,
                                       CU_JIT_REFERENCED_KERNEL_NAMES,
                                       CU_JIT_NUM_OPTIONS,
                                       (CUjit_option)UINT32_MAX};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        f->m.options[1].option = bad[i];
        assert_int_equal(hed_jit_room_create(&f->m.open, &f->library->jit), HED_EFORMAT);
    }
    f->m.open.options = HED_JIT_OPTIONS_MAX + 1;
    assert_int_equal(hed_jit_room_create(&f->m.open, &f->library->jit), HED_EFORMAT);
    f->m.open.options = 3; /* beyond the end of the message */
    f->m.open.head.size = sizeof f->m.open + 2 * sizeof(struct hed_wire_jit);
    assert_int_equal(hed_jit_room_create(&f->m.open, &f->library->jit), HED_EFORMAT);
}

static void
linking_goes_step_by_step(void **state)
{
    struct fixture *f = *state;
    struct hed_open_body *b = &f->m.open;
    struct hed_hash h;
    bool whole;
    int err = 0;

    assert_int_equal(hed_jit_room_create(b, &f->library->jit), 0);
    assert_int_equal(hed_worker_link(&f->worker, f->library, b, &err), CUDA_SUCCESS);
    b->type = CU_JIT_INPUT_PTX;
    b->size = 4;
    hed_hash_init(&h);
    hed_hash_add(&h, "text", 4);
    hed_hash_end(&h, b->hash);
    assert_int_equal(hed_worker_link(&f->worker, f->library, b, &err), CUDA_ERROR_FILE_NOT_FOUND);
    assert_int_equal(hed_images_add(f->worker.code->images, f, b->hash, 4, 0, "text", 4, &whole),
                     0);
    assert_int_equal(hed_worker_link(&f->worker, f->library, b, &err), CUDA_SUCCESS);
    assert_int_equal(driver.added, 5);
    b->size = 0;
    b->flags = HED_OPEN_LAST;
    assert_int_equal(hed_worker_link(&f->worker, f->library, b, &err), CUDA_SUCCESS);
    assert_int_equal(err, 0);
    assert_int_equal(driver.links, 0);
    assert_string_equal((char *)f->library->contents.data, "machine code");
    /* linking has ended */
    (void)hed_worker_link(&f->worker, f->library, b, &err);
    assert_int_equal(err, HED_EFORMAT);
}

static void
steps_that_make_no_sense(void **state)
{
    struct fixture *f = *state;
    struct hed_open_body *b = &f->m.open;
    int err = 0;

    assert_int_equal(hed_jit_room_create(b, &f->library->jit), 0);
    b->type = CU_JIT_NUM_INPUT_TYPES;
    (void)hed_worker_link(&f->worker, f->library, b, &err);
    assert_int_equal(err, HED_EFORMAT);
    err = 0;
    b->type = 0;
    b->size = HED_IMAGE_MAX + 1;
    (void)hed_worker_link(&f->worker, f->library, b, &err);
    assert_int_equal(err, HED_EFORMAT);
    err = 0;
    b->size = 1;
    memset(f->m.name, 'x', sizeof f->m.name); /* a name without a NUL */
    (void)hed_worker_link(&f->worker, f->library, b, &err);
    assert_int_equal(err, HED_EFORMAT);
    assert_int_equal(driver.links, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_module_is_compiled_at_once, setup, teardown),
    cmocka_unit_test_setup_teardown(a_library_is_not_and_no_kernel_of_it_is_loaded, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(a_modules_kernels_are_described, setup, teardown),
    cmocka_unit_test_setup_teardown(options_travel, setup, teardown),
    cmocka_unit_test_setup_teardown(addresses_do_not, setup, teardown),
    cmocka_unit_test_setup_teardown(linking_goes_step_by_step, setup, teardown),
    cmocka_unit_test_setup_teardown(steps_that_make_no_sense, setup, teardown),
};

HED_UNIT_MAIN(tests)
