/* The gpu backend: every call goes to NVIDIA's library, opened by its full path.
 *
 * The tables of NVIDIA's functions are filled once, before the first call, and constant afterwards;
 * they are shared by all chains of the process (a forked child keeps the loaded libraries). NVML is
 * loaded by the first NVML call: many programs never make one.
 */
#include "backends/gpu/gpu.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/lock.h"
#include "base/log.h"
#include "core/config.h"
#include "core/stats.h"
#include "gen/cuda_real.h"
#include "gen/nvml_real.h"
#include "locate/driver.h"

struct gpu {
    char nvml_path[HED_CONFIG_TEXT_MAX]; /* the setting; "" for none */
};

static void *cuda_library; /* set while the chain is built, constant afterwards */

static struct hed_lock nvml_lock = HED_LOCK_INIT(HED_RANK_DRIVER);
static void *nvml_library; /* guarded by nvml_lock until nvml_tried, constant afterwards */
static _Atomic bool nvml_tried;

/* Finds and opens a library and fills its table of functions. Absent functions stay NULL and are
 * refused by name when they are called. */
static int
load_library_table(const char *soname, const char *given, const char *const *names, size_t count,
                   void *table, void **library, struct hed_why *why)
{
    char path[4096];
    const int err = hed_locate_find(soname, given, path, sizeof path, why);
    size_t missing = 0;

    if (err)
        return err;
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*library) {
        hed_why_set(why, "cannot load %s: %s", path, dlerror());
        return HED_EINVAL;
    }
    for (size_t i = 0; i < count; i++) {
        void *f = dlsym(*library, names[i]);

        memcpy((char *)table + i * sizeof f, &f, sizeof f);
        missing += !f;
    }
    hed_info(GPU, "%s: %zu functions, %zu of ours are not in it", path, count - missing, missing);
    return 0;
}

static int
gpu_init(struct hed_layer *self, const struct hed_config *config, struct hed_why *why)
{
    struct gpu *g = malloc(sizeof *g);
    int err = g ? 0 : HED_ENOMEM;

    if (!err && !cuda_library)
        err = load_library_table("libcuda.so.1", config->driver, hed_cuda_real_names,
                                 hed_cuda_real_count, &hed_cuda_real, &cuda_library, why);
    if (err) {
        free(g);
        return err;
    }
    memcpy(g->nvml_path, config->nvml, sizeof g->nvml_path);
    self->state = g;
    return 0;
}

/* Loads NVML; false when there is none, which is said once. */
static bool
load_nvml(struct hed_layer *self)
{
    struct gpu *g = self->state;
    struct hed_why why = {""};

    /* Acquire: pairs with the release below; the table is complete when this is seen. */
    if (!atomic_load_explicit(&nvml_tried, memory_order_acquire)) {
        hed_lock(&nvml_lock);
        if (!atomic_load_explicit(&nvml_tried, memory_order_relaxed)) {
            if (load_library_table("libnvidia-ml.so.1", g->nvml_path, hed_nvml_real_names,
                                   hed_nvml_real_count, &hed_nvml_real, &nvml_library, &why))
                hed_warn(GPU, "%s", why.text);
            atomic_store_explicit(&nvml_tried, true, memory_order_release);
        }
        hed_unlock(&nvml_lock);
    }
    return nvml_library != NULL;
}

static nvmlReturn_t
gpu_nvml_any(struct hed_layer *self, enum hed_nvml_call id, void *args)
{
    if (!load_nvml(self))
        return NVML_ERROR_LIBRARY_NOT_FOUND;

    static const struct hed_layer real = {.nvml = &hed_nvml_real_ops, .type = &hed_gpu_backend};

    return hed_nvml_invoke((struct hed_layer *)(uintptr_t)&real, id, args);
}

/* NVIDIA's private tables are passed on as they are: its runtime checks their addresses. */
static CUresult
gpu_cuGetExportTable(struct hed_layer *self, struct hed_cuGetExportTable *a)
{
    const CUresult r = hed_cuda_real_ops.cuGetExportTable(self, a);

    if (r == CUDA_SUCCESS && a->ppExportTable && *a->ppExportTable)
        hed_stats_add(&hed_stats.export_tables, 1);
    return r;
}

static const struct hed_cuda_ops gpu_cuda = {
    .cuGetExportTable = gpu_cuGetExportTable,
};

static void
gpu_forked(struct hed_layer *self)
{
    hed_lock_init(&nvml_lock, HED_RANK_DRIVER);
}

static void *
gpu_symbol(struct hed_layer *self, enum hed_api api, const char *name)
{
    if (api == HED_API_CUDA)
        return dlsym(cuda_library, name);
    return load_nvml(self) ? dlsym(nvml_library, name) : NULL;
}

const struct hed_layer_type hed_gpu_backend = {
    .name = "gpu",
    .cuda = &gpu_cuda,
    .cuda_rest = &hed_cuda_real_ops,
    .nvml_any = gpu_nvml_any,
    .init = gpu_init,
    .forked = gpu_forked,
    .symbol = gpu_symbol,
};
