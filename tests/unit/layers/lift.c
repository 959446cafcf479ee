/* Tests of the lift layer: what reaches the driver when a program loads an image. */
#include "harness/unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "core/config.h"
#include "core/layer.h"
#include "kernel/fatbin/image.h"
#include "layers/lift/lift.h"
#include "unit/fatbin/make.h"

/* ---- the backend ----------------------------------------------------------------------------- */

static struct {
    int major, minor;
    const char *call; /* the last one that loaded something */
    const void *data; /* where they were */
    unsigned options, library_options;
    CUjitInputType type;
    bool is_text; /* it ends with a NUL, and has the kernel */
    CUresult result;
} backend;

static void
note_load(const char *call, const void *data)
{
    backend.call = call;
    backend.data = data;
    backend.is_text = data && strncmp(data, ".version", 8) == 0;
}

static CUresult
fake_cuDeviceGetAttribute(struct hed_layer *self, struct hed_cuDeviceGetAttribute *a)
{
    *a->pi = a->attrib == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? backend.major
             : a->attrib == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? backend.minor
                                                                         : -1;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuCtxGetDevice(struct hed_layer *self, struct hed_cuCtxGetDevice *a)
{
    return CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult
fake_cuModuleLoad(struct hed_layer *self, struct hed_cuModuleLoad *a)
{
    note_load("cuModuleLoad", NULL);
    return backend.result;
}

static CUresult
fake_cuModuleLoadData(struct hed_layer *self, struct hed_cuModuleLoadData *a)
{
    note_load("cuModuleLoadData", a->image);
    return backend.result;
}

static CUresult
fake_cuModuleLoadDataEx(struct hed_layer *self, struct hed_cuModuleLoadDataEx *a)
{
    note_load("cuModuleLoadDataEx", a->image);
    backend.options = a->numOptions;
    return backend.result;
}

static CUresult
fake_cuModuleLoadFatBinary(struct hed_layer *self, struct hed_cuModuleLoadFatBinary *a)
{
    note_load("cuModuleLoadFatBinary", a->fatCubin);
    return backend.result;
}

static CUresult
fake_cuLibraryLoadData(struct hed_layer *self, struct hed_cuLibraryLoadData *a)
{
    note_load("cuLibraryLoadData", a->code);
    backend.options = a->numJitOptions;
    backend.library_options = a->numLibraryOptions;
    return backend.result;
}

static CUresult
fake_cuLibraryLoadFromFile(struct hed_layer *self, struct hed_cuLibraryLoadFromFile *a)
{
    note_load("cuLibraryLoadFromFile", NULL);
    return backend.result;
}

static CUresult
fake_cuLinkAddData_v2(struct hed_layer *self, struct hed_cuLinkAddData_v2 *a)
{
    note_load("cuLinkAddData_v2", a->data);
    backend.type = a->type;
    if (backend.is_text)
        assert_int_equal(strlen(a->data) + 1, a->size);
    return backend.result;
}

static CUresult
fake_cuLinkAddFile_v2(struct hed_layer *self, struct hed_cuLinkAddFile_v2 *a)
{
    note_load("cuLinkAddFile_v2", NULL);
    return backend.result;
}

#define FAKE(name) .name = fake_##name
static const struct hed_cuda_ops calls = {FAKE(cuDeviceGetAttribute), FAKE(cuCtxGetDevice),
                                          FAKE(cuModuleLoad),         FAKE(cuModuleLoadData),
                                          FAKE(cuModuleLoadDataEx),   FAKE(cuModuleLoadFatBinary),
                                          FAKE(cuLibraryLoadData),    FAKE(cuLibraryLoadFromFile),
                                          FAKE(cuLinkAddData_v2),     FAKE(cuLinkAddFile_v2)};

static CUresult
fake_rest(struct hed_layer *self, enum hed_cuda_call id, void *args)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

static const struct hed_layer_type fake = {.name = "fake", .cuda = &calls, .cuda_any = fake_rest};

/* ---- the chain ------------------------------------------------------------------------------- */

static struct hed_bytes cubin; /* of sm_80, in memory that can be changed */

static int
setup(void **state)
{
    static struct hed_layer_room bottom;
    static struct hed_config config;
    const struct hed_bytes file = fixture("cubin/sm_80");
    struct hed_layer *top = NULL;
    uint8_t *copy = malloc(file.size);

    memcpy(copy, file.data, file.size);
    cubin = (struct hed_bytes){copy, file.size};
    memset(&backend, 0, sizeof backend);
    backend.major = 9;
    hed_config_init(&config);
    hed_layer_place(&bottom, &fake, NULL);
    *state =
        hed_layer_create(&hed_lift_layer, &bottom.layer, &config, &top, NULL) == 0 ? top : NULL;
    return *state ? 0 : -1;
}

static int
teardown(void **state)
{
    hed_layer_free(*state);
    free((void *)(uintptr_t)cubin.data);
    return 0;
}

static const char *
path_of(const char *name)
{
    static char path[4096];

    (void)snprintf(path, sizeof path, "%s/%s", getenv("HED_CORPUS"), name);
    return path;
}

static void
expect_load(const char *call, bool is_text)
{
    assert_non_null(backend.call);
    assert_string_equal(backend.call, call);
    assert_int_equal(backend.is_text, is_text);
    backend.call = NULL;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void
a_cubin_of_another_architecture_becomes_text(void **state)
{
    struct hed_layer *l = *state;
    CUjit_option options[] = {CU_JIT_MAX_REGISTERS};
    void *values[] = {NULL};
    CUmodule m;

    assert_int_equal(hed_call(l, cuModuleLoadData, &m, cubin.data), CUDA_SUCCESS);
    expect_load("cuModuleLoadData", true);
    assert_int_equal(hed_call(l, cuModuleLoadDataEx, &m, cubin.data, 1, options, values),
                     CUDA_SUCCESS);
    expect_load("cuModuleLoadDataEx", true);
    assert_int_equal(backend.options, 1);
    assert_int_equal(hed_call(l, cuModuleLoad, &m, path_of("cubin/sm_80")), CUDA_SUCCESS);
    expect_load("cuModuleLoadData", true);
    assert_int_equal(hed_call(l, cuModuleLoad, &m, path_of("cubin/sm_75")), CUDA_SUCCESS);
    expect_load("cuModuleLoadData", true);
}

static void
what_the_device_runs_goes_on_unchanged(void **state)
{
    struct hed_layer *l = *state;
    CUmodule m;
    CUlibrary lib;

    backend.major = 8;
    backend.minor = 6;
    assert_int_equal(hed_call(l, cuModuleLoadData, &m, cubin.data), CUDA_SUCCESS);
    expect_load("cuModuleLoadData", false);
    assert_ptr_equal(backend.data, cubin.data);
    assert_int_equal(hed_call(l, cuModuleLoad, &m, path_of("cubin/sm_80")), CUDA_SUCCESS);
    expect_load("cuModuleLoad", false);
    assert_int_equal(
        hed_call(l, cuLibraryLoadFromFile, .library = &lib, .fileName = path_of("cubin/sm_80")),
        CUDA_SUCCESS);
    expect_load("cuLibraryLoadFromFile", false);
}

static void
an_older_device_cannot_compile_the_text(void **state)
{
    CUmodule m;

    backend.major = 7;
    backend.minor = 5;
    assert_int_equal(hed_call((struct hed_layer *)*state, cuModuleLoadData, &m, cubin.data),
                     CUDA_SUCCESS);
    expect_load("cuModuleLoadData", false);
}

static void
other_images_go_on_unchanged(void **state)
{
    static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n";
    struct hed_layer *l = *state;
    CUmodule m;

    assert_int_equal(hed_call(l, cuModuleLoadData, &m, text), CUDA_SUCCESS);
    assert_ptr_equal(backend.data, text);
    assert_int_equal(hed_call(l, cuModuleLoadData, &m, "garbage"), CUDA_SUCCESS);
    expect_load("cuModuleLoadData", false);
    assert_int_equal(hed_call(l, cuModuleLoadData, &m, NULL), CUDA_SUCCESS);
    expect_load("cuModuleLoadData", false);
    assert_int_equal(hed_call(l, cuModuleLoad, &m, path_of("cubin/sm_90")), CUDA_SUCCESS);
    expect_load("cuModuleLoad", false);
    assert_int_equal(hed_call(l, cuModuleLoad, &m, "/does/not/exist"), CUDA_SUCCESS);
    expect_load("cuModuleLoad", false);
    assert_int_equal(hed_call(l, cuModuleLoad, &m, NULL), CUDA_SUCCESS);
    expect_load("cuModuleLoad", false);
}

/* A fat binary with one image, and its wrapper, as NVIDIA's runtime passes it. */
struct packed {
    uint8_t *data;
    struct hed_fatbin_wrapper wrapper;
};

static void
put_entry(uint8_t **at, uint16_t kind, uint32_t arch, struct hed_bytes image)
{
    const uint32_t header = HED_FATBIN_ENTRY_SIZE, size = (uint32_t)image.size;
    const uint64_t padded = (image.size + 7) & ~UINT64_C(7), flags = HED_FATBIN_64BIT;

    memcpy(*at, &kind, 2);
    memcpy(*at + 4, &header, 4);
    memcpy(*at + 8, &padded, 8);
    memcpy(*at + 28, &arch, 4);
    memcpy(*at + 40, &flags, 8);
    memcpy(*at + header, image.data, size);
    *at += header + padded;
}

static struct packed
pack_image(bool with_text, uint32_t text_arch)
{
    static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n";
    const uint32_t magic = HED_FATBIN_MAGIC;
    const uint16_t version = 1, header = HED_FATBIN_HEADER_SIZE;
    struct packed p = {.data = calloc(1, cubin.size + 4096)};
    uint8_t *at = p.data + header;
    uint64_t size;

    put_entry(&at, HED_FATBIN_CUBIN, 80, cubin);
    if (with_text)
        put_entry(&at, HED_FATBIN_PTX, text_arch,
                  (struct hed_bytes){(const uint8_t *)text, sizeof text});
    size = (uint64_t)(at - p.data) - header;
    memcpy(p.data, &magic, 4);
    memcpy(p.data + 4, &version, 2);
    memcpy(p.data + 6, &header, 2);
    memcpy(p.data + 8, &size, 8);
    p.wrapper = (struct hed_fatbin_wrapper){HED_FATBIN_WRAPPER_MAGIC, 1, p.data, NULL};
    return p;
}

static void
a_runtime_loads_its_wrapper(void **state)
{
    struct hed_layer *l = *state;
    struct packed p = pack_image(false, 0);
    CUlibraryOption options[] = {CU_LIBRARY_BINARY_IS_PRESERVED};
    void *values[] = {(void *)1};
    CUlibrary lib;
    CUmodule m;

    assert_int_equal(hed_call(l, cuLibraryLoadData, .library = &lib, .code = &p.wrapper,
                              .libraryOptions = options, .libraryOptionValues = values,
                              .numLibraryOptions = 1),
                     CUDA_SUCCESS);
    expect_load("cuLibraryLoadData", true);
    assert_int_equal(backend.library_options, 0); /* the text goes away */
    assert_int_equal(hed_call(l, cuModuleLoadFatBinary, &m, p.data), CUDA_SUCCESS);
    expect_load("cuModuleLoadData", true);
    free(p.data);
}

static void
text_of_the_program_comes_first(void **state)
{
    struct hed_layer *l = *state;
    struct packed p = pack_image(true, 80);
    CUlibrary lib;

    assert_int_equal(hed_call(l, cuLibraryLoadData, .library = &lib, .code = &p.wrapper),
                     CUDA_SUCCESS);
    expect_load("cuLibraryLoadData", false);
    assert_ptr_equal(backend.data, &p.wrapper);
    free(p.data);
    p = pack_image(true, 100); /* text that is too new for the device */
    assert_int_equal(hed_call(l, cuLibraryLoadData, .library = &lib, .code = &p.wrapper),
                     CUDA_SUCCESS);
    expect_load("cuLibraryLoadData", true);
    free(p.data);
}

static void
links_get_text(void **state)
{
    struct hed_layer *l = *state;
    void *data = (void *)(uintptr_t)cubin.data;

    assert_int_equal(
        hed_call(l, cuLinkAddData_v2, .type = CU_JIT_INPUT_CUBIN, .data = data, .size = cubin.size),
        CUDA_SUCCESS);
    expect_load("cuLinkAddData_v2", true);
    assert_int_equal(backend.type, CU_JIT_INPUT_PTX);
    assert_int_equal(
        hed_call(l, cuLinkAddFile_v2, .type = CU_JIT_INPUT_CUBIN, .path = path_of("cubin/sm_80")),
        CUDA_SUCCESS);
    expect_load("cuLinkAddData_v2", true);
    /* A part that must be linked first, and a length that lies. */
    assert_int_equal(
        hed_call(l, cuLinkAddFile_v2, .type = CU_JIT_INPUT_CUBIN, .path = path_of("cubin/parts")),
        CUDA_SUCCESS);
    expect_load("cuLinkAddFile_v2", false);
    assert_int_equal(
        hed_call(l, cuLinkAddData_v2, .type = CU_JIT_INPUT_CUBIN, .data = data, .size = 70),
        CUDA_SUCCESS);
    expect_load("cuLinkAddData_v2", false);
    assert_int_equal(backend.type, CU_JIT_INPUT_CUBIN);
}

static void
what_the_driver_says_of_the_text_is_the_answer(void **state)
{
    CUmodule m;

    backend.result = CUDA_ERROR_INVALID_PTX;
    assert_int_equal(hed_call((struct hed_layer *)*state, cuModuleLoadData, &m, cubin.data),
                     CUDA_ERROR_INVALID_PTX);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_cubin_of_another_architecture_becomes_text, setup, teardown),
    cmocka_unit_test_setup_teardown(what_the_device_runs_goes_on_unchanged, setup, teardown),
    cmocka_unit_test_setup_teardown(an_older_device_cannot_compile_the_text, setup, teardown),
    cmocka_unit_test_setup_teardown(other_images_go_on_unchanged, setup, teardown),
    cmocka_unit_test_setup_teardown(a_runtime_loads_its_wrapper, setup, teardown),
    cmocka_unit_test_setup_teardown(text_of_the_program_comes_first, setup, teardown),
    cmocka_unit_test_setup_teardown(links_get_text, setup, teardown),
    cmocka_unit_test_setup_teardown(what_the_driver_says_of_the_text_is_the_answer, setup,
                                    teardown),
};

HED_UNIT_MAIN(tests)
