/* Loading libraries. See library.h.
 *
 * NVIDIA's driver compiles a library when something in it is first needed, and only then reports
 * what is wrong with it. It compiles a module at once. So a library that will be used as a module
 * is loaded into its context at once.
 */
#include "remote/server/worker/library.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "remote/server/worker/images.h"
#include "remote/server/worker/required.h"
#include "remote/server/worker/worker.h"

#define DESCRIBE_ALL 64 /* a library with no more kernels is described completely */
#define LOG_ROOM (HED_CODE_LOG_MAX / 2)

/* ---- options --------------------------------------------------------------------------------- */

/* Options that are plain numbers. */
static bool
can_option_travel(uint32_t option)
{
    switch (option) {
    case CU_JIT_WALL_TIME:
    case CU_JIT_INFO_LOG_BUFFER:
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
    case CU_JIT_ERROR_LOG_BUFFER:
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
    case CU_JIT_GLOBAL_SYMBOL_NAMES:
    case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
    case CU_JIT_GLOBAL_SYMBOL_COUNT:
    case CU_JIT_REFERENCED_KERNEL_NAMES:
    case CU_JIT_REFERENCED_KERNEL_COUNT:
    case CU_JIT_REFERENCED_VARIABLE_NAMES:
    case CU_JIT_REFERENCED_VARIABLE_COUNT:
        return false;
    default:
        return option < CU_JIT_NUM_OPTIONS;
    }
}

static void
add_option(struct hed_jit_room *j, CUjit_option option, uint64_t value)
{
    j->options[j->count] = option;
    j->values[j->count++] = (void *)(uintptr_t)value;
}

static int
add_logs(struct hed_jit_room *j)
{
    j->error = calloc(2, LOG_ROOM);
    if (!j->error)
        return HED_ENOMEM;
    j->info = j->error + LOG_ROOM;
    add_option(j, CU_JIT_ERROR_LOG_BUFFER, (uint64_t)(uintptr_t)j->error);
    add_option(j, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, LOG_ROOM);
    add_option(j, CU_JIT_INFO_LOG_BUFFER, (uint64_t)(uintptr_t)j->info);
    add_option(j, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, LOG_ROOM);
    return 0;
}

int
hed_jit_room_create(const struct hed_open_body *b, struct hed_jit_room **out)
{
    const struct hed_wire_jit *options = (const struct hed_wire_jit *)(b + 1);
    struct hed_jit_room *j;
    int err = 0;

    if (b->options > HED_JIT_OPTIONS_MAX || b->head.size < sizeof *b ||
        b->options > (b->head.size - sizeof *b) / sizeof *options)
        return HED_EFORMAT;
    j = calloc(1, sizeof *j);
    if (!j)
        return HED_ENOMEM;
    if (b->log)
        err = add_logs(j);
    for (uint32_t i = 0; i < b->options && !err; i++) {
        if (can_option_travel(options[i].option))
            add_option(j, (CUjit_option)options[i].option, options[i].value);
        else
            err = HED_EFORMAT;
    }
    if (err) {
        hed_jit_room_free(j);
        return err;
    }
    *out = j;
    return 0;
}

void
hed_jit_room_free(struct hed_jit_room *j)
{
    if (j)
        free(j->error);
    free(j);
}

const char *
hed_jit_room_log(const struct hed_jit_room *j)
{
    if (!j || !j->error)
        return "";
    j->error[LOG_ROOM - 1] = j->info[LOG_ROOM - 1] = '\0';
    return j->error[0] ? j->error : j->info;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* To describe a kernel is to load it. NVIDIA's driver loads a kernel when it is first needed, and
 * libraries have many kernels that never are. Modules have few, and use them. */
static bool
describes_all(const struct hed_worker *w, const struct hed_open_body *b, unsigned kernels)
{
    return kernels <= DESCRIBE_ALL && (w->backend != HED_BACKEND_GPU || b->flags & HED_OPEN_NOW);
}

/* Sends the names of all kernels, and their descriptions if describes_all(). */
static CUresult
enumerate_kernels(struct hed_worker *w, struct hed_worker_library *lib,
                  const struct hed_open_body *b)
{
    unsigned n = 0;
    CUresult r = hed_worker_do(w, cuLibraryGetKernelCount, .count = &n, .lib = lib->real);

    if (r != CUDA_SUCCESS)
        return r;
    if (n > HED_KERNELS_MAX)
        return CUDA_ERROR_NOT_SUPPORTED;
    lib->kernels = calloc(n + (size_t)1, sizeof *lib->kernels);
    lib->param_bytes = calloc(n + (size_t)1, sizeof *lib->param_bytes);
    if (!lib->kernels || !lib->param_bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (n)
        r = hed_worker_do(w, cuLibraryEnumerateKernels, .kernels = lib->kernels, .numKernels = n,
                          .lib = lib->real);
    lib->kernel_count = r == CUDA_SUCCESS ? n : 0;
    for (uint32_t i = 0; i < n && r == CUDA_SUCCESS; i++) {
        lib->param_bytes[i] = HED_PARAMS_UNKNOWN;
        r = hed_worker_describe(w, lib, i, b->device, true, describes_all(w, b, n), &lib->contents);
    }
    return r;
}

CUresult
hed_worker_library_load(struct hed_worker *w, struct hed_worker_library *lib,
                        const struct hed_open_body *b)
{
    CUlibraryOption preserved = CU_LIBRARY_BINARY_IS_PRESERVED;
    void *yes = (void *)(uintptr_t)1;
    CUmodule module;
    const void *code = lib->wrapper ? lib->wrapper : lib->image;
    CUresult r = hed_worker_do(w, cuLibraryLoadData, .library = &lib->real, .code = code,
                               .jitOptions = lib->jit->count ? lib->jit->options : NULL,
                               .jitOptionsValues = lib->jit->count ? lib->jit->values : NULL,
                               .numJitOptions = lib->jit->count, .libraryOptions = &preserved,
                               .libraryOptionValues = &yes, .numLibraryOptions = 1);

    if (r != CUDA_SUCCESS)
        lib->real = NULL;
    if (r == CUDA_SUCCESS && b->flags & HED_OPEN_NOW && !w->no_memory)
        r = hed_worker_do(w, cuLibraryGetModule, .pMod = &module, .library = lib->real);
    if (r == CUDA_SUCCESS)
        r = enumerate_kernels(w, lib, b);
    if (r == CUDA_SUCCESS && lib->wrapper && !lib->kernel_count && !w->no_memory)
        hed_warn(SERVER, "the driver found no kernel in a program that was linked from parts");
    return r;
}

void
hed_worker_library_free(struct hed_worker *w, struct hed_worker_library *lib)
{
    const bool gone =
        !lib->real || hed_worker_do(w, cuLibraryUnload, .library = lib->real) == CUDA_SUCCESS;

    if (lib->link)
        (void)hed_worker_do(w, cuLinkDestroy, .state = lib->link);
    /* The backend may still point into these if unloading failed. */
    if (gone && lib->image)
        hed_images_unmap(lib->image, lib->image_size);
    if (gone) {
        hed_jit_room_free(lib->jit);
        free(lib->wrapper);
    }
    hed_buf_fini(&lib->contents);
    hed_required_free(lib->required);
    free(lib->kernels);
    free(lib->param_bytes);
    free(lib);
}
