/* The functions in the export tables. What they do was measured, or read from the runtimes that
 * call them; their errors are those that NVIDIA's driver 580 was seen to return. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "core/stats.h"
#include "driver/logs.h"
#include "driver/module/module.h"
#include "driver/stream/stream.h"
#include "driver/table/integrity.h"
#include "driver/table/tables.h"

/* The driver, if it is ready for calls. */
static CUresult
ready_driver(struct hed_driver **out)
{
    *out = hed_driver_here();
    return *out ? hed_driver_ready(*out) : CUDA_ERROR_NOT_INITIALIZED;
}

/* ---- CUDART_INTERFACE ------------------------------------------------------------------------ */

/* Runtimes up to CUDA 11 load their fat binaries through this; later ones use cuLibraryLoadData. */
CUresult
hed_slot_load_wrapper(CUmodule *out, const void *wrapper)
{
    struct hed_driver *d;
    const CUresult r = ready_driver(&d);
    struct hed_cuModuleLoadData a = {out, wrapper};

    if (r != CUDA_SUCCESS)
        return r;
    if (!d->self.cuda->cuModuleLoadData)
        return hed_driver_unsupported(&d->self, HED_cuModuleLoadData, &a);
    return d->self.cuda->cuModuleLoadData(&d->self, &a);
}

CUresult
hed_slot_load_wrapper_with(CUmodule *out, const void *wrapper, void *a, void *b, unsigned c)
{
    if (a || b || c)
        hed_info(DRIVER, "a runtime loads a module with unknown options");
    return hed_slot_load_wrapper(out, wrapper);
}

CUresult
hed_slot_load_header_with(const void *header, CUmodule *out, void *a, void *b, unsigned c)
{
    return hed_slot_load_wrapper_with(out, header, a, b, c);
}

/* Returns the handle only: the context is not retained and does not become active. */
CUresult
hed_slot_primary(CUcontext *out, CUdevice ordinal)
{
    struct hed_driver *d;
    const CUresult r = ready_driver(&d);

    if (r != CUDA_SUCCESS)
        return r;
    if (ordinal < 0 || ordinal >= d->device_count)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = hed_context_handle(d->devices[ordinal].primary);
    return CUDA_SUCCESS;
}

/* cudaGLSetGLDevice, cudaVDPAUSetVDPAUDevice. */
CUresult
hed_slot_graphics_device(CUdevice ordinal, void *data)
{
    (void)ordinal;
    (void)data;
    hed_warn(DRIVER, "sharing a device with OpenGL or VDPAU is not supported");
    hed_stats_add(&hed_stats.unsupported_calls, 1);
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* An old runtime is about to unload a module. Nothing to do: cuModuleUnload follows. */
void
hed_slot_module_gone(size_t n)
{
    (void)n;
}

/* Nothing to do: our compilers are loaded when they are needed. */
CUresult
hed_slot_load_compilers(void)
{
    return CUDA_SUCCESS;
}

/* ---- TOOLS_RUNTIME_CALLBACK_HOOKS ------------------------------------------------------------ */

/* The runtime reads these on every call: 0 means that no tool wants to be told. */
static const uint32_t hook_calls[HED_HOOK_CALLS];
static const uint32_t hook_events[HED_HOOK_EVENTS];

static void
give_hooks(const uint32_t *array, size_t n, const uint32_t **flags, size_t *count)
{
    if (flags)
        *flags = array;
    if (count)
        *count = n;
}

void
hed_slot_hook_calls(const uint32_t **flags, size_t *count)
{
    give_hooks(hook_calls, HED_HOOK_CALLS, flags, count);
}

void
hed_slot_hook_events(const uint32_t **flags, size_t *count)
{
    give_hooks(hook_events, HED_HOOK_EVENTS, flags, count);
}

/* ---- TOOLS_TLS ------------------------------------------------------------------------------- */

CUresult
hed_slot_current(CUcontext *out)
{
    struct hed_driver *d = hed_driver_here();
    const struct hed_context *c = d ? hed_thread_context(d) : NULL;

    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = c ? hed_context_handle(c) : NULL;
    return CUDA_SUCCESS;
}

/* ---- CONTEXT_LOCAL_STORAGE ------------------------------------------------------------------- */

/* A context that is named may be a primary one that is not active. The current context must be
 * alive; if it is not, the result is `dead`. */
static CUresult
storage_context(CUcontext handle, CUresult dead, struct hed_context **out)
{
    struct hed_driver *d;
    const CUresult r = ready_driver(&d);

    if (__builtin_expect(r != CUDA_SUCCESS, 0))
        return r;
    if (handle) {
        *out = hed_context_find_inactive(d, handle);
        return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    }
    *out = hed_thread_context(d);
    if (!*out)
        return CUDA_ERROR_INVALID_CONTEXT;
    return hed_context_alive(*out) ? CUDA_SUCCESS : dead;
}

CUresult
hed_slot_storage_put(CUcontext handle, void *key, void *value, hed_storage_dtor dtor)
{
    struct hed_context *c;
    const CUresult r = storage_context(handle, CUDA_ERROR_CONTEXT_IS_DESTROYED, &c);

    return r == CUDA_SUCCESS ? hed_storage_put(c, key, value, dtor) : r;
}

CUresult
hed_slot_storage_remove(CUcontext handle, void *key)
{
    struct hed_context *c;
    const CUresult r = storage_context(handle, CUDA_ERROR_CONTEXT_IS_DESTROYED, &c);

    return r == CUDA_SUCCESS ? hed_storage_remove(c, key) : r;
}

/* Called at least once in every call of the runtime. */
CUresult
hed_slot_storage_get(void **value, CUcontext handle, void *key)
{
    struct hed_context *c;
    const CUresult r = storage_context(handle, CUDA_ERROR_INVALID_CONTEXT, &c);

    if (__builtin_expect(r != CUDA_SUCCESS, 0))
        return r;
    return value ? hed_storage_get(c, key, value) : CUDA_ERROR_INVALID_VALUE;
}

/* ---- CONTEXT_CHECKS -------------------------------------------------------------------------- */

/* Any value but 0 marks a context that the runtime must not use. */
CUresult
hed_slot_check_context(CUcontext handle, uint32_t *kind, const void **more)
{
    (void)handle;
    (void)more;
    if (kind)
        *kind = 0;
    return CUDA_SUCCESS;
}

uint32_t
hed_slot_check_nothing(void)
{
    return 0;
}

/* ---- INTEGRITY_CHECK ------------------------------------------------------------------------- */

CUresult
hed_slot_integrity(uint32_t version, uint64_t seconds, uint8_t out[16])
{
    struct hed_integrity_device devices[HED_PROFILE_DEVICES_MAX];
    struct hed_driver *d;
    const CUresult r = ready_driver(&d);

    if (r != CUDA_SUCCESS)
        return r;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < d->device_count; i++) {
        const struct hed_profile_device *info = &d->devices[i].info;

        devices[i] = (struct hed_integrity_device){
            .pci_domain = info->pci_domain, .pci_bus = info->pci_bus, .pci_device = info->pci_slot};
        for (int k = 0; k < 16; k++)
            devices[i].uuid[k] = info->uuid[k];
    }

    const struct hed_integrity in = {
        .driver_version = HED_DRIVER_VERSION,
        .version = version,
        .process = (uint32_t)getpid(),
        .thread = (uint32_t)(uintptr_t)pthread_self(),
        .interface_table = (uintptr_t)hed_table_interface,
        .integrity_table = (uintptr_t)hed_table_integrity,
        .function = (uintptr_t)hed_table_integrity[1],
        .seconds = seconds,
        .devices = devices,
        .device_count = (size_t)d->device_count,
    };

    hed_integrity_answer(&in, out);
    return CUDA_SUCCESS;
}

/* ---- ERROR_LOG ------------------------------------------------------------------------------- */

/* Messages of the runtime about errors of the program. The format is the runtime's. */
__attribute__((format(printf, 3, 0))) void
hed_slot_log(const char *component, int level, const char *format, va_list ap)
{
    char text[512];

    if (!format)
        return;
    (void)vsnprintf(text, sizeof text, format, ap);
    if (level == 0)
        hed_warn(DRIVER, "%.32s runtime: %s", component ? component : "CUDA", text);
    else
        hed_info(DRIVER, "%.32s runtime: %s", component ? component : "CUDA", text);
    hed_logs_tell(level == 0 ? CU_LOG_LEVEL_ERROR : CU_LOG_LEVEL_WARNING, text);
}

/* NVIDIA's runtimes call it once for every device that they find, with no arguments, and do not
 * look at what it returns. */
void
hed_slot_log_device(void)
{
}

/* ---- others ---------------------------------------------------------------------------------- */

CUresult
hed_slot_context_id(CUcontext handle, uint32_t *id)
{
    struct hed_driver *d;
    const CUresult r = ready_driver(&d);

    if (r != CUDA_SUCCESS)
        return r;

    const struct hed_context *c = hed_context_find_inactive(d, handle);

    if (!c)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!id)
        return CUDA_ERROR_INVALID_VALUE;
    *id = (uint32_t)hed_context_id(c);
    return CUDA_SUCCESS;
}

/* cuBLAS keeps a workspace for each stream of a context. It finds it by the stream's number, which
 * it asks for with both of these: the stream that the program's handle stands for, and its number.
 * Without an answer it takes what happens to be on its stack, and two streams may share a
 * workspace. */
CUresult
hed_slot_stream(CUcontext handle, CUstream given, CUstream *out, uint32_t per_thread)
{
    struct hed_driver *d;
    struct hed_stream *s;
    CUresult r = ready_driver(&d);

    (void)handle; /* the current one, for streams that have no handle */
    if (r != CUDA_SUCCESS)
        return r;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    r = hed_stream_find(&d->self, given, per_thread != 0, &s);
    if (r != CUDA_SUCCESS)
        return r;
    *out = s->is_legacy ? CU_STREAM_LEGACY : (CUstream)(uintptr_t)s->object.handle;
    hed_stream_put(s);
    return CUDA_SUCCESS;
}

CUresult
hed_slot_stream_id(CUcontext handle, CUstream stream, uint64_t *id)
{
    struct hed_driver *d;
    struct hed_stream *s;
    CUresult r = ready_driver(&d);

    (void)handle;
    if (r != CUDA_SUCCESS)
        return r;
    if (!id)
        return CUDA_ERROR_INVALID_VALUE;
    r = hed_stream_find(&d->self, stream, false, &s);
    if (r != CUDA_SUCCESS)
        return r;
    *id = s->id;
    hed_stream_put(s);
    return CUDA_SUCCESS;
}

/* Calls `tell` for each function of a module, with its name, and returns their number. cuFFT finds
 * its kernels this way. Seen on NVIDIA's driver 580: the result of `tell` does not matter. */
uint32_t
hed_slot_each_function(CUcontext handle, CUmodule module, hed_slot_function_fn tell, void *data)
{
    struct hed_driver *d;
    uint32_t count = 0;

    (void)handle;
    if (ready_driver(&d) != CUDA_SUCCESS || !tell)
        return 0;

    struct hed_module *m = hed_module_find(d, module);

    for (uint32_t i = 0; m && i < m->code->kernel_count; i++) {
        struct hed_function *f;

        if (hed_module_function(m, i, NULL, &f) != CUDA_SUCCESS)
            continue;
        (void)tell(data, f->handle, m->code->kernels[i].name);
        hed_object_put(&f->object);
        count++;
    }
    if (m)
        hed_object_put(&m->object);
    return count;
}

/* Creates a context without telling tools about it; there are no tools here. */
CUresult
hed_slot_create_context(CUcontext *out, unsigned flags, CUdevice ordinal)
{
    struct hed_driver *d;
    const CUresult r = ready_driver(&d);
    struct hed_cuCtxCreate_v2 a = {out, flags, ordinal};

    return r == CUDA_SUCCESS ? d->self.cuda->cuCtxCreate_v2(&d->self, &a) : r;
}

/* Which group of processors each pair of multiprocessors belongs to. cuBLASLt asks on devices with
 * clusters, calls through the table whether it got one or not, and does without an answer. Profiles
 * have no such groups. */
CUresult
hed_slot_layout(const uint8_t **groups, uint64_t *more)
{
    (void)groups;
    (void)more;
    return CUDA_ERROR_NOT_SUPPORTED;
}
