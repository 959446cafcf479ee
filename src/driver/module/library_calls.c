/* Calls about libraries and kernels. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "core/stats.h"
#include "driver/module/image.h"
#include "driver/module/jit.h"
#include "driver/module/library.h"
#include "driver/module/module.h"
#include "kernel/fatbin.h"

/* ---- loading --------------------------------------------------------------------------------- */

/* The device that a call is about: that of the current context, or else the first one. */
static CUresult
device_for(struct hed_layer *self, struct hed_device **out)
{
    const CUresult r = hed_device_get(self, 0, out);

    if (r != CUDA_SUCCESS)
        return r;

    const struct hed_context *c = hed_thread_context(hed_driver_of(self));

    if (c)
        *out = c->device;
    return CUDA_SUCCESS;
}

struct library_options {
    bool preserved; /* the program keeps the image where it is */
};

static CUresult
read_options(unsigned count, const CUlibraryOption *options, void *const *values,
             enum hed_cuda_call id, struct library_options *out)
{
    *out = (struct library_options){false};
    if (count > 0 && !options)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        switch (options[i]) {
        case CU_LIBRARY_BINARY_IS_PRESERVED:
            out->preserved = !values || values[i];
            break;
        case CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE:
            hed_stats_unsupported(HED_API_CUDA, id, "the soft driver (function tables)");
            return CUDA_ERROR_NOT_SUPPORTED;
        default:
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

/* An image is opened only when something in it is asked for, since a program may have thousands. A
 * program that gives buffers for logs wants them at once, so its image is opened now. */
static CUresult
create_library(struct hed_layer *self, const struct hed_image *image, void *copy,
               struct hed_bytes file, struct hed_jit *j, CUlibrary *out)
{
    struct hed_library *l;
    struct hed_device *dev;
    struct hed_program *p;
    CUresult r = hed_library_create(hed_driver_of(self), image, copy, file, &l);

    if (r != CUDA_SUCCESS)
        return r;

    const CUlibrary handle = (CUlibrary)(uintptr_t)l->object.handle;

    l->how = j->how; /* no other thread knows the handle yet */
    l->how.log = NULL;
    if (j->error || j->info) {
        r = device_for(self, &dev);
        if (r == CUDA_SUCCESS)
            r = hed_library_program(l, dev, &j->log, &p);
    }
    if (r == CUDA_SUCCESS)
        *out = handle;
    else
        (void)hed_library_unload(hed_driver_of(self), handle);
    return r;
}

static CUresult
load_data(struct hed_layer *self, struct hed_cuLibraryLoadData *a, struct hed_jit *j)
{
    struct library_options o;
    struct hed_image image;
    struct hed_why why;
    void *copy = NULL;
    const CUresult r = read_options(a->numLibraryOptions, a->libraryOptions, a->libraryOptionValues,
                                    HED_cuLibraryLoadData, &o);

    if (r != CUDA_SUCCESS)
        return r;

    const int err = hed_image_at(a->code, &image, &why);

    if (err != 0) {
        hed_warn(DRIVER, "a library cannot be loaded: %s", why.text);
        return hed_image_result(err);
    }
    image.preserved = o.preserved;
    if (!o.preserved) {
        copy = malloc(image.bytes.size + 1);
        if (!copy)
            return CUDA_ERROR_OUT_OF_MEMORY;
        memcpy(copy, image.bytes.data, image.bytes.size);
        image.bytes.data = copy;
    }
    return create_library(self, &image, copy, (struct hed_bytes){NULL, 0}, j, a->library);
}

static CUresult
soft_cuLibraryLoadData(struct hed_layer *self, struct hed_cuLibraryLoadData *a)
{
    struct hed_device *any;
    struct hed_jit j;
    CUresult r = hed_device_get(self, 0, &any);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->library || !a->code)
        return CUDA_ERROR_INVALID_VALUE;
    r = hed_jit_begin(&j, a->numJitOptions, a->jitOptions, a->jitOptionsValues);
    if (r == CUDA_SUCCESS)
        r = load_data(self, a, &j);
    hed_jit_finish(&j, r);
    return r;
}

static CUresult
load_library_file(struct hed_layer *self, struct hed_cuLibraryLoadFromFile *a, struct hed_jit *j)
{
    struct library_options o;
    struct hed_image image;
    struct hed_bytes file;
    CUresult r = read_options(a->numLibraryOptions, a->libraryOptions, a->libraryOptionValues,
                              HED_cuLibraryLoadFromFile, &o);

    /* "Specifying this option with cuLibraryLoadFromFile() is invalid and will return
     * CUDA_ERROR_INVALID_VALUE." (cuda.h) */
    if (r == CUDA_SUCCESS && o.preserved)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        r = hed_image_file(a->fileName, &image, &file);
    if (r == CUDA_SUCCESS)
        r = create_library(self, &image, NULL, file, j, a->library);
    return r;
}

static CUresult
soft_cuLibraryLoadFromFile(struct hed_layer *self, struct hed_cuLibraryLoadFromFile *a)
{
    struct hed_device *any;
    struct hed_jit j;
    CUresult r = hed_device_get(self, 0, &any);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->library || !a->fileName)
        return CUDA_ERROR_INVALID_VALUE;
    r = hed_jit_begin(&j, a->numJitOptions, a->jitOptions, a->jitOptionsValues);
    if (r == CUDA_SUCCESS)
        r = load_library_file(self, a, &j);
    hed_jit_finish(&j, r);
    return r;
}

static CUresult
soft_cuLibraryUnload(struct hed_layer *self, struct hed_cuLibraryUnload *a)
{
    struct hed_device *any;
    const CUresult r = hed_device_get(self, 0, &any);

    return r == CUDA_SUCCESS ? hed_library_unload(hed_driver_of(self), a->library) : r;
}

/* ---- contents -------------------------------------------------------------------------------- */

/* A library, with a reference, and the device that the call is about. */
static CUresult
find_library(struct hed_layer *self, CUlibrary handle, struct hed_library **out,
             struct hed_device **dev)
{
    const CUresult r = device_for(self, dev);

    if (r != CUDA_SUCCESS)
        return r;
    *out = hed_library_find(hed_driver_of(self), handle);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult
soft_cuLibraryGetKernel(struct hed_layer *self, struct hed_cuLibraryGetKernel *a)
{
    struct hed_library *l;
    struct hed_device *dev;

    if (!a->pKernel || !a->name)
        return CUDA_ERROR_INVALID_VALUE;

    CUresult r = find_library(self, a->library, &l, &dev);

    if (r != CUDA_SUCCESS)
        return r;
    r = hed_library_kernel(l, dev, a->name, a->pKernel);
    hed_object_put(&l->object);
    return r;
}

static CUresult
soft_cuLibraryGetKernelCount(struct hed_layer *self, struct hed_cuLibraryGetKernelCount *a)
{
    struct hed_library *l;
    struct hed_device *dev;
    struct hed_program *p;

    if (!a->count)
        return CUDA_ERROR_INVALID_VALUE;

    CUresult r = find_library(self, a->lib, &l, &dev);

    if (r != CUDA_SUCCESS)
        return r;
    r = hed_library_program(l, dev, NULL, &p);
    if (r == CUDA_SUCCESS)
        *a->count = p->code->kernel_count;
    hed_object_put(&l->object);
    return r;
}

static CUresult
soft_cuLibraryEnumerateKernels(struct hed_layer *self, struct hed_cuLibraryEnumerateKernels *a)
{
    struct hed_library *l;
    struct hed_device *dev;
    struct hed_program *p;

    if (!a->kernels || a->numKernels == 0)
        return CUDA_ERROR_INVALID_VALUE;

    CUresult r = find_library(self, a->lib, &l, &dev);

    if (r != CUDA_SUCCESS)
        return r;
    r = hed_library_program(l, dev, NULL, &p);
    if (r == CUDA_SUCCESS)
        for (uint32_t i = 0; i < p->code->kernel_count && i < a->numKernels && r == CUDA_SUCCESS;
             i++)
            r = hed_library_kernel(l, dev, p->code->kernels[i].name, &a->kernels[i]);
    hed_object_put(&l->object);
    return r;
}

/* The library's module in the current context, with a reference. */
static CUresult
module_here(struct hed_layer *self, CUlibrary handle, struct hed_module **out)
{
    struct hed_context *c;
    CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;

    struct hed_library *l = hed_library_find(hed_driver_of(self), handle);

    if (!l)
        return CUDA_ERROR_INVALID_HANDLE;
    r = hed_library_module(l, c, out);
    hed_object_put(&l->object);
    return r;
}

static CUresult
soft_cuLibraryGetModule(struct hed_layer *self, struct hed_cuLibraryGetModule *a)
{
    struct hed_module *m;

    if (!a->pMod)
        return CUDA_ERROR_INVALID_VALUE;

    const CUresult r = module_here(self, a->library, &m);

    if (r != CUDA_SUCCESS)
        return r;
    *a->pMod = (CUmodule)(uintptr_t)m->object.handle;
    hed_object_put(&m->object);
    return CUDA_SUCCESS;
}

static CUresult
soft_cuLibraryGetGlobal(struct hed_layer *self, struct hed_cuLibraryGetGlobal *a)
{
    struct hed_module *m;

    if (!a->name || (!a->dptr && !a->bytes))
        return CUDA_ERROR_INVALID_VALUE;

    CUresult r = module_here(self, a->library, &m);

    if (r != CUDA_SUCCESS)
        return r;
    r = hed_module_variable(m, a->name, a->dptr, a->bytes);
    hed_object_put(&m->object);
    return r;
}

static CUresult
soft_cuLibraryGetManaged(struct hed_layer *self, struct hed_cuLibraryGetManaged *a)
{
    struct hed_library *l;
    struct hed_device *dev;
    uint64_t at, size;

    if (!a->name || (!a->dptr && !a->bytes))
        return CUDA_ERROR_INVALID_VALUE;

    CUresult r = find_library(self, a->library, &l, &dev);

    if (r != CUDA_SUCCESS)
        return r;
    r = hed_library_managed(l, dev, a->name, &at, &size);
    if (r == CUDA_SUCCESS && a->dptr)
        *a->dptr = at;
    if (r == CUDA_SUCCESS && a->bytes)
        *a->bytes = size;
    hed_object_put(&l->object);
    return r;
}

/* No library has a table of functions here, so there are no unified functions. */
static CUresult
soft_cuLibraryGetUnifiedFunction(struct hed_layer *self, struct hed_cuLibraryGetUnifiedFunction *a)
{
    struct hed_library *l;
    struct hed_device *dev;

    if (!a->fptr || !a->symbol)
        return CUDA_ERROR_INVALID_VALUE;

    const CUresult r = find_library(self, a->library, &l, &dev);

    if (r != CUDA_SUCCESS)
        return r;
    hed_object_put(&l->object);
    return CUDA_ERROR_NOT_FOUND;
}

/* ---- kernels --------------------------------------------------------------------------------- */

static CUresult
soft_cuKernelGetFunction(struct hed_layer *self, struct hed_cuKernelGetFunction *a)
{
    struct hed_context *c;
    struct hed_function *f;

    if (!a->pFunc)
        return CUDA_ERROR_INVALID_VALUE;

    CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;

    struct hed_kernel *k = hed_kernel_find(hed_driver_of(self), a->kernel);

    if (!k)
        return CUDA_ERROR_INVALID_HANDLE;
    r = hed_kernel_function(k, c, &f);
    hed_object_put(&k->object);
    if (r != CUDA_SUCCESS)
        return r;
    *a->pFunc = f->handle;
    hed_object_put(&f->object);
    return CUDA_SUCCESS;
}

static CUresult
soft_cuKernelGetLibrary(struct hed_layer *self, struct hed_cuKernelGetLibrary *a)
{
    struct hed_kernel *k = hed_kernel_find(hed_driver_of(self), a->kernel);

    if (!k)
        return CUDA_ERROR_INVALID_HANDLE;
    if (a->pLib)
        *a->pLib = (CUlibrary)(uintptr_t)k->library->object.handle;
    hed_object_put(&k->object);
    return a->pLib ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* A kernel on a device. */
struct on_device {
    struct hed_kernel *kernel; /* a reference */
    struct hed_device *dev;
    const struct hed_code_kernel *code;
    struct hed_settings *settings;
};

static CUresult
look_up_on_device(struct hed_kernel *k, struct hed_device *dev, struct on_device *out)
{
    struct hed_program *p;
    const CUresult r = hed_library_program(k->library, dev, NULL, &p);

    if (r != CUDA_SUCCESS)
        return r;

    const uint32_t i = hed_program_kernel(p, k->name);

    if (i == HED_PROGRAM_NONE)
        return CUDA_ERROR_NOT_FOUND;

    const CUresult described =
        dev->driver->machine->describe(dev->driver->machine_state, dev, p->code, i);

    if (described != CUDA_SUCCESS)
        return described;
    *out = (struct on_device){k, dev, &p->code->kernels[i], &k->settings[dev->ordinal]};
    return CUDA_SUCCESS;
}

static CUresult
find_kernel_on_device(struct hed_layer *self, CUkernel handle, struct hed_device *dev,
                      struct on_device *out)
{
    struct hed_kernel *k = hed_kernel_find(hed_driver_of(self), handle);

    if (!k)
        return CUDA_ERROR_INVALID_HANDLE;

    const CUresult r = look_up_on_device(k, dev, out);

    if (r != CUDA_SUCCESS)
        hed_object_put(&k->object);
    return r;
}

static CUresult
soft_cuKernelGetAttribute(struct hed_layer *self, struct hed_cuKernelGetAttribute *a)
{
    struct hed_device *dev;
    struct on_device k;
    CUresult r = hed_device_get(self, a->dev, &dev);

    if (r == CUDA_SUCCESS)
        r = find_kernel_on_device(self, a->kernel, dev, &k);
    if (r != CUDA_SUCCESS)
        return r;
    r = hed_attribute_get(k.code, &dev->info.profile, k.settings, a->attrib, a->pi);
    hed_object_put(&k.kernel->object);
    return r;
}

static CUresult
soft_cuKernelSetAttribute(struct hed_layer *self, struct hed_cuKernelSetAttribute *a)
{
    struct hed_device *dev;
    struct on_device k;
    CUresult r = hed_device_get(self, a->dev, &dev);

    if (r == CUDA_SUCCESS)
        r = find_kernel_on_device(self, a->kernel, dev, &k);
    if (r != CUDA_SUCCESS)
        return r;

    int before = 0, after = 0;

    (void)hed_attribute_get(k.code, &dev->info.profile, k.settings, a->attrib, &before);
    r = hed_attribute_set(k.code, &dev->info.profile, k.settings, a->attrib, a->val);
    (void)hed_attribute_get(k.code, &dev->info.profile, k.settings, a->attrib, &after);
    /* Programs set the same value again and again, before every launch. */
    if (r == CUDA_SUCCESS && before != after)
        r = hed_kernel_tell(k.kernel, dev, a->attrib, a->val);
    hed_object_put(&k.kernel->object);
    return r;
}

static CUresult
soft_cuKernelSetCacheConfig(struct hed_layer *self, struct hed_cuKernelSetCacheConfig *a)
{
    struct hed_device *dev;
    struct on_device k;
    CUresult r = hed_device_get(self, a->dev, &dev);

    if (r == CUDA_SUCCESS && (unsigned)a->config > CU_FUNC_CACHE_PREFER_EQUAL)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        r = find_kernel_on_device(self, a->kernel, dev, &k);
    if (r != CUDA_SUCCESS)
        return r;
    atomic_store_explicit(&k.settings->cache_config, (int)a->config, memory_order_relaxed);
    hed_object_put(&k.kernel->object);
    return CUDA_SUCCESS;
}

/* The name is part of the code, which lives as long as the library. */
static CUresult
soft_cuKernelGetName(struct hed_layer *self, struct hed_cuKernelGetName *a)
{
    struct hed_kernel *k = hed_kernel_find(hed_driver_of(self), a->hfunc);

    if (!k)
        return CUDA_ERROR_INVALID_HANDLE;
    if (a->name)
        *a->name = k->name;
    hed_object_put(&k->object);
    return a->name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
soft_cuKernelGetParamInfo(struct hed_layer *self, struct hed_cuKernelGetParamInfo *a)
{
    struct hed_device *dev;
    struct on_device k;
    CUresult r = device_for(self, &dev);

    if (r == CUDA_SUCCESS && !a->paramOffset)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        r = find_kernel_on_device(self, a->kernel, dev, &k);
    if (r != CUDA_SUCCESS)
        return r;
    if (a->paramIndex < k.code->param_count) {
        *a->paramOffset = k.code->params[a->paramIndex].offset;
        if (a->paramSize)
            *a->paramSize = k.code->params[a->paramIndex].size;
    } else {
        r = CUDA_ERROR_INVALID_VALUE;
    }
    hed_object_put(&k.kernel->object);
    return r;
}

const struct hed_cuda_ops hed_calls_library = {
    .cuLibraryLoadData = soft_cuLibraryLoadData,
    .cuLibraryLoadFromFile = soft_cuLibraryLoadFromFile,
    .cuLibraryUnload = soft_cuLibraryUnload,
    .cuLibraryGetKernel = soft_cuLibraryGetKernel,
    .cuLibraryGetKernelCount = soft_cuLibraryGetKernelCount,
    .cuLibraryEnumerateKernels = soft_cuLibraryEnumerateKernels,
    .cuLibraryGetModule = soft_cuLibraryGetModule,
    .cuLibraryGetGlobal = soft_cuLibraryGetGlobal,
    .cuLibraryGetManaged = soft_cuLibraryGetManaged,
    .cuLibraryGetUnifiedFunction = soft_cuLibraryGetUnifiedFunction,
    .cuKernelGetFunction = soft_cuKernelGetFunction,
    .cuKernelGetLibrary = soft_cuKernelGetLibrary,
    .cuKernelGetAttribute = soft_cuKernelGetAttribute,
    .cuKernelSetAttribute = soft_cuKernelSetAttribute,
    .cuKernelSetCacheConfig = soft_cuKernelSetCacheConfig,
    .cuKernelGetName = soft_cuKernelGetName,
    .cuKernelGetParamInfo = soft_cuKernelGetParamInfo,
};
