/* Calls about modules. */
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>

#include "base/err.h"
#include "base/log.h"
#include "core/stats.h"
#include "driver/module/image.h"
#include "driver/module/jit.h"
#include "driver/module/module.h"
#include "kernel/fatbin.h"

/* ---- loading --------------------------------------------------------------------------------- */

static const struct hed_jit_how plain = {.now = true}; /* without options */
static CUmoduleLoadingMode loading_mode;

static void
find_loading_mode(void)
{
    const char *s = getenv("CUDA_MODULE_LOADING");

    loading_mode =
        s && strcasecmp(s, "EAGER") == 0 ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
}

/* The environment is read once, as CUDA does. */
static CUmoduleLoadingMode
get_loading_mode(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, find_loading_mode);
    return loading_mode;
}

/* Loads an image as a module of the current context. */
static CUresult
load_module(struct hed_layer *self, const struct hed_image *image, const struct hed_jit_how *how,
            CUmodule *out)
{
    struct hed_context *c;
    struct hed_program *p;
    struct hed_module *m;
    CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    r = hed_program_open(c->device, image, how, &p);
    if (r != CUDA_SUCCESS)
        return r;
    r = hed_module_create(c, p, NULL, NULL, &m);
    hed_program_unref(p);
    if (r != CUDA_SUCCESS)
        return r;
    if (get_loading_mode() == CU_MODULE_EAGER_LOADING)
        m->driver->machine->module_load(m->driver->machine_state, m);
    *out = (CUmodule)(uintptr_t)m->object.handle;
    hed_object_put(&m->object);
    return CUDA_SUCCESS;
}

static CUresult
load_at(struct hed_layer *self, const void *at, const struct hed_jit_how *how, CUmodule *out)
{
    struct hed_context *c;
    struct hed_image image;
    struct hed_why why;
    const CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (!at || !out)
        return CUDA_ERROR_INVALID_VALUE;

    const int err = hed_image_at(at, &image, &why);

    if (err != 0) {
        hed_warn(DRIVER, "an image cannot be loaded: %s", why.text);
        return hed_image_result(err);
    }
    return load_module(self, &image, how, out);
}

static CUresult
soft_cuModuleLoad(struct hed_layer *self, struct hed_cuModuleLoad *a)
{
    struct hed_context *c;
    struct hed_image image;
    struct hed_bytes file;
    CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->module || !a->fname)
        return CUDA_ERROR_INVALID_VALUE;
    r = hed_image_file(a->fname, &image, &file);
    if (r != CUDA_SUCCESS)
        return r;
    r = load_module(self, &image, &plain, a->module);
    hed_fatbin_unmap(file);
    return r;
}

static CUresult
soft_cuModuleLoadData(struct hed_layer *self, struct hed_cuModuleLoadData *a)
{
    return load_at(self, a->image, &plain, a->module);
}

static CUresult
soft_cuModuleLoadDataEx(struct hed_layer *self, struct hed_cuModuleLoadDataEx *a)
{
    struct hed_jit j;
    CUresult r = hed_jit_begin(&j, a->numOptions, a->options, a->optionValues);

    j.how.now = true;
    if (r == CUDA_ERROR_NOT_SUPPORTED)
        hed_stats_unsupported(HED_API_CUDA, HED_cuModuleLoadDataEx, "an option of the soft driver");
    if (r == CUDA_SUCCESS)
        r = load_at(self, a->image, &j.how, a->module);
    hed_jit_finish(&j, r);
    return r;
}

static CUresult
soft_cuModuleLoadFatBinary(struct hed_layer *self, struct hed_cuModuleLoadFatBinary *a)
{
    return load_at(self, a->fatCubin, &plain, a->module);
}

/* The module of a handle, with a reference. */
static CUresult
find_module(struct hed_layer *self, CUmodule handle, struct hed_module **out)
{
    struct hed_device *any;
    const CUresult r = hed_device_get(self, 0, &any);

    if (r != CUDA_SUCCESS)
        return r;

    struct hed_module *m = hed_module_find(hed_driver_of(self), handle);

    if (!m)
        return CUDA_ERROR_INVALID_HANDLE;

    const CUresult sticky = hed_context_error(m->ctx);

    if (sticky != CUDA_SUCCESS) {
        hed_object_put(&m->object);
        return sticky;
    }
    *out = m;
    return CUDA_SUCCESS;
}

/* cuda.h speaks of the current context, but NVIDIA's driver unloads from any. Work that uses the
 * module is waited for. */
static CUresult
soft_cuModuleUnload(struct hed_layer *self, struct hed_cuModuleUnload *a)
{
    struct hed_module *m;
    CUresult r = find_module(self, a->hmod, &m);

    if (r != CUDA_SUCCESS)
        return r;
    if (m->library) {
        r = CUDA_ERROR_NOT_PERMITTED; /* it goes with its library */
    } else {
        (void)hed_context_synchronize(m->ctx);
        hed_module_unload(m);
    }
    hed_object_put(&m->object);
    return r;
}

static CUresult
soft_cuModuleGetLoadingMode(struct hed_layer *self, struct hed_cuModuleGetLoadingMode *a)
{
    const CUresult r = hed_driver_ready(hed_driver_of(self));

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->mode)
        return CUDA_ERROR_INVALID_VALUE;
    *a->mode = get_loading_mode();
    return CUDA_SUCCESS;
}

/* ---- contents -------------------------------------------------------------------------------- */

static CUresult
function_handle(struct hed_module *m, uint32_t kernel, CUfunction *out)
{
    struct hed_function *f;
    const CUresult r = hed_module_function(m, kernel, NULL, &f);

    if (r != CUDA_SUCCESS)
        return r;
    *out = f->handle;
    hed_object_put(&f->object);
    return CUDA_SUCCESS;
}

static CUresult
soft_cuModuleGetFunction(struct hed_layer *self, struct hed_cuModuleGetFunction *a)
{
    struct hed_module *m;

    if (!a->hfunc || !a->name || !a->name[0])
        return CUDA_ERROR_INVALID_VALUE;

    CUresult r = find_module(self, a->hmod, &m);

    if (r != CUDA_SUCCESS)
        return r;

    const uint32_t i = hed_program_kernel(m->program, a->name);

    r = i == HED_PROGRAM_NONE ? CUDA_ERROR_NOT_FOUND : function_handle(m, i, a->hfunc);
    hed_object_put(&m->object);
    return r;
}

static CUresult
soft_cuModuleGetFunctionCount(struct hed_layer *self, struct hed_cuModuleGetFunctionCount *a)
{
    struct hed_module *m;

    if (!a->count)
        return CUDA_ERROR_INVALID_VALUE;

    const CUresult r = find_module(self, a->mod, &m);

    if (r != CUDA_SUCCESS)
        return r;
    *a->count = m->code->kernel_count;
    hed_object_put(&m->object);
    return CUDA_SUCCESS;
}

static CUresult
soft_cuModuleEnumerateFunctions(struct hed_layer *self, struct hed_cuModuleEnumerateFunctions *a)
{
    struct hed_module *m;

    if (!a->functions || a->numFunctions == 0)
        return CUDA_ERROR_INVALID_VALUE;

    CUresult r = find_module(self, a->mod, &m);

    if (r != CUDA_SUCCESS)
        return r;
    for (uint32_t i = 0; i < m->code->kernel_count && i < a->numFunctions && r == CUDA_SUCCESS; i++)
        r = function_handle(m, i, &a->functions[i]);
    hed_object_put(&m->object);
    return r;
}

static CUresult
soft_cuModuleGetGlobal_v2(struct hed_layer *self, struct hed_cuModuleGetGlobal_v2 *a)
{
    struct hed_module *m;

    if (!a->name || (!a->dptr && !a->bytes))
        return CUDA_ERROR_INVALID_VALUE;

    CUresult r = find_module(self, a->hmod, &m);

    if (r != CUDA_SUCCESS)
        return r;
    r = hed_module_variable(m, a->name, a->dptr, a->bytes);
    hed_object_put(&m->object);
    return r;
}

const struct hed_cuda_ops hed_calls_module = {
    .cuModuleLoad = soft_cuModuleLoad,
    .cuModuleLoadData = soft_cuModuleLoadData,
    .cuModuleLoadDataEx = soft_cuModuleLoadDataEx,
    .cuModuleLoadFatBinary = soft_cuModuleLoadFatBinary,
    .cuModuleUnload = soft_cuModuleUnload,
    .cuModuleGetLoadingMode = soft_cuModuleGetLoadingMode,
    .cuModuleGetFunction = soft_cuModuleGetFunction,
    .cuModuleGetFunctionCount = soft_cuModuleGetFunctionCount,
    .cuModuleEnumerateFunctions = soft_cuModuleEnumerateFunctions,
    .cuModuleGetGlobal_v2 = soft_cuModuleGetGlobal_v2,
};
