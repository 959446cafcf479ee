/* The calls of the lift layer. See lift.h. */
#include "layers/lift/lift.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "core/config.h"
#include "core/errors.h"
#include "core/layer.h"
#include "kernel/fatbin.h"

#define TEXT_MAX ((size_t)1 << 30) /* bytes of PTX */

/* The compute capability that an image is loaded for: that of the current context's device. A
 * library is loaded for all devices, perhaps before there is a context; then the first one counts.
 * 0 if the driver does not say. */
static uint32_t
find_capability(struct hed_layer *self)
{
    CUdevice device = 0;
    int major = 0, minor = 0;

    if (hed_call(self->next, cuCtxGetDevice, .device = &device) != CUDA_SUCCESS)
        device = 0;
    if (hed_call(self->next, cuDeviceGetAttribute, .pi = &major,
                 .attrib = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                 .dev = device) != CUDA_SUCCESS ||
        hed_call(self->next, cuDeviceGetAttribute, .pi = &minor,
                 .attrib = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                 .dev = device) != CUDA_SUCCESS ||
        major <= 0 || minor < 0 || minor > 9)
        return 0;
    return (uint32_t)major * 10 + (uint32_t)minor;
}

/* Frees the text and passes on what the driver said of it. */
static CUresult
end_text(struct hed_buf *text, CUresult result)
{
    const char *name = "an unknown error";

    if (result != CUDA_SUCCESS) {
        (void)hed_cuda_error_name(result, &name);
        hed_warn(CORE, "the driver refuses PTX that was lifted: %s", name);
    }
    hed_buf_fini(text);
    return result;
}

/* ---- modules --------------------------------------------------------------------------------- */

static CUresult
lift_cuModuleLoad(struct hed_layer *self, struct hed_cuModuleLoad *a)
{
    struct hed_buf text;

    hed_buf_init(&text, TEXT_MAX);
    if (!hed_relift_file(a->fname, find_capability(self), &text)) {
        hed_buf_fini(&text);
        return hed_next(self, cuModuleLoad, a);
    }
    return end_text(&text, hed_call(self->next, cuModuleLoadData, .module = a->module,
                                    .image = hed_buf_cstr(&text)));
}

static CUresult
lift_cuModuleLoadData(struct hed_layer *self, struct hed_cuModuleLoadData *a)
{
    struct hed_cuModuleLoadData b = *a;
    struct hed_buf text;

    hed_buf_init(&text, TEXT_MAX);
    if (!hed_relift_memory(a->image, find_capability(self), &text)) {
        hed_buf_fini(&text);
        return hed_next(self, cuModuleLoadData, a);
    }
    b.image = hed_buf_cstr(&text);
    return end_text(&text, hed_next(self, cuModuleLoadData, &b));
}

static CUresult
lift_cuModuleLoadDataEx(struct hed_layer *self, struct hed_cuModuleLoadDataEx *a)
{
    struct hed_cuModuleLoadDataEx b = *a;
    struct hed_buf text;

    hed_buf_init(&text, TEXT_MAX);
    if (!hed_relift_memory(a->image, find_capability(self), &text)) {
        hed_buf_fini(&text);
        return hed_next(self, cuModuleLoadDataEx, a);
    }
    b.image = hed_buf_cstr(&text);
    return end_text(&text, hed_next(self, cuModuleLoadDataEx, &b));
}

static CUresult
lift_cuModuleLoadFatBinary(struct hed_layer *self, struct hed_cuModuleLoadFatBinary *a)
{
    struct hed_buf text;

    hed_buf_init(&text, TEXT_MAX);
    if (!hed_relift_memory(a->fatCubin, find_capability(self), &text)) {
        hed_buf_fini(&text);
        return hed_next(self, cuModuleLoadFatBinary, a);
    }
    return end_text(&text, hed_call(self->next, cuModuleLoadData, .module = a->module,
                                    .image = hed_buf_cstr(&text)));
}

/* ---- libraries ------------------------------------------------------------------------------- */

/* Loads the text with the options of the program, except for its promise to keep the image where it
 * is: the text is not its image. */
static CUresult
load_library_text(struct hed_layer *self, const struct hed_cuLibraryLoadData *a)
{
    struct hed_cuLibraryLoadData b = *a;
    const unsigned count = a->libraryOptions && a->libraryOptionValues ? a->numLibraryOptions : 0;
    CUlibraryOption *options = calloc((size_t)count + 1, sizeof *options);
    void **values = calloc((size_t)count + 1, sizeof *values);
    CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
    unsigned kept = 0;

    for (unsigned i = 0; options && values && i < count; i++) {
        if (a->libraryOptions[i] == CU_LIBRARY_BINARY_IS_PRESERVED)
            continue;
        options[kept] = a->libraryOptions[i];
        values[kept++] = a->libraryOptionValues[i];
    }
    b.libraryOptions = kept ? options : NULL;
    b.libraryOptionValues = kept ? values : NULL;
    b.numLibraryOptions = kept;
    if (options && values)
        r = hed_next(self, cuLibraryLoadData, &b);
    free(options);
    free(values);
    return r;
}

static CUresult
lift_cuLibraryLoadData(struct hed_layer *self, struct hed_cuLibraryLoadData *a)
{
    struct hed_cuLibraryLoadData b = *a;
    struct hed_buf text;

    hed_buf_init(&text, TEXT_MAX);
    if (!hed_relift_memory(a->code, find_capability(self), &text)) {
        hed_buf_fini(&text);
        return hed_next(self, cuLibraryLoadData, a);
    }
    b.code = hed_buf_cstr(&text);
    return end_text(&text, load_library_text(self, &b));
}

static CUresult
lift_cuLibraryLoadFromFile(struct hed_layer *self, struct hed_cuLibraryLoadFromFile *a)
{
    struct hed_cuLibraryLoadData b = {.library = a->library,
                                      .jitOptions = a->jitOptions,
                                      .jitOptionsValues = a->jitOptionsValues,
                                      .numJitOptions = a->numJitOptions,
                                      .libraryOptions = a->libraryOptions,
                                      .libraryOptionValues = a->libraryOptionValues,
                                      .numLibraryOptions = a->numLibraryOptions};
    struct hed_buf text;

    hed_buf_init(&text, TEXT_MAX);
    if (!hed_relift_file(a->fileName, find_capability(self), &text)) {
        hed_buf_fini(&text);
        return hed_next(self, cuLibraryLoadFromFile, a);
    }
    b.code = hed_buf_cstr(&text);
    return end_text(&text, load_library_text(self, &b));
}

/* ---- links ----------------------------------------------------------------------------------- */

/* Only machine code that is complete can be lifted; most of what is linked is not. */
static bool
can_be_lifted(CUjitInputType type)
{
    return type == CU_JIT_INPUT_CUBIN || type == CU_JIT_INPUT_FATBINARY;
}

static bool
relift_data(struct hed_layer *self, CUjitInputType type, const void *data, size_t size,
            struct hed_buf *text)
{
    return can_be_lifted(type) && data &&
           hed_relift_bytes((struct hed_bytes){data, size}, find_capability(self), text);
}

static bool
relift_file(struct hed_layer *self, CUjitInputType type, const char *path, struct hed_buf *text)
{
    return can_be_lifted(type) && hed_relift_file(path, find_capability(self), text);
}

/* Both versions of a call have the same arguments. */
#define LINK_DATA(call)                                                       \
    static CUresult lift_##call(struct hed_layer *self, struct hed_##call *a) \
    {                                                                         \
        struct hed_##call b = *a;                                             \
        struct hed_buf text;                                                  \
                                                                              \
        hed_buf_init(&text, TEXT_MAX);                                        \
        if (!relift_data(self, a->type, a->data, a->size, &text)) {           \
            hed_buf_fini(&text);                                              \
            return hed_next(self, call, a);                                   \
        }                                                                     \
        b.type = CU_JIT_INPUT_PTX;                                            \
        b.data = text.data;                                                   \
        b.size = text.size + 1;                                               \
        return end_text(&text, hed_next(self, call, &b));                     \
    }

#define LINK_FILE(call, data_call)                                                          \
    static CUresult lift_##call(struct hed_layer *self, struct hed_##call *a)               \
    {                                                                                       \
        struct hed_buf text;                                                                \
                                                                                            \
        hed_buf_init(&text, TEXT_MAX);                                                      \
        if (!relift_file(self, a->type, a->path, &text)) {                                  \
            hed_buf_fini(&text);                                                            \
            return hed_next(self, call, a);                                                 \
        }                                                                                   \
        return end_text(&text, hed_call(self->next, data_call, .state = a->state,           \
                                        .type = CU_JIT_INPUT_PTX, .data = text.data,        \
                                        .size = text.size + 1, .name = a->path,             \
                                        .numOptions = a->numOptions, .options = a->options, \
                                        .optionValues = a->optionValues));                  \
    }

LINK_DATA(cuLinkAddData)
LINK_DATA(cuLinkAddData_v2)
LINK_FILE(cuLinkAddFile, cuLinkAddData)
LINK_FILE(cuLinkAddFile_v2, cuLinkAddData_v2)

/* ---- the layer ------------------------------------------------------------------------------- */

static const struct hed_cuda_ops lift_cuda = {
    .cuModuleLoad = lift_cuModuleLoad,
    .cuModuleLoadData = lift_cuModuleLoadData,
    .cuModuleLoadDataEx = lift_cuModuleLoadDataEx,
    .cuModuleLoadFatBinary = lift_cuModuleLoadFatBinary,
    .cuLibraryLoadData = lift_cuLibraryLoadData,
    .cuLibraryLoadFromFile = lift_cuLibraryLoadFromFile,
    .cuLinkAddData = lift_cuLinkAddData,
    .cuLinkAddData_v2 = lift_cuLinkAddData_v2,
    .cuLinkAddFile = lift_cuLinkAddFile,
    .cuLinkAddFile_v2 = lift_cuLinkAddFile_v2,
};

/* A plug-in's own copy of the log has not been set up yet. */
static int
lift_init(struct hed_layer *self, const struct hed_config *config, struct hed_why *why)
{
    return hed_log_setup(config->log, why);
}

const struct hed_layer_type hed_lift_layer = {
    .name = "lift",
    .cuda = &lift_cuda,
    .init = lift_init,
};
