/* The layers and backends there are: the one file that knows them all. */
#include "core/registry.h"

#include <stddef.h>
#include <string.h>

#include "backends/backends.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "core/config.h"
#include "core/layer.h"
#include "core/plugin.h"
#include "gen/storeys.h"
#include "layers/layers.h"
#include "locate/driver.h"
#include "locate/guest.h"

const struct hed_layer_type *const hed_layer_types[] = {
#if HED_HAVE_SEE
    &hed_trace_layer,
#endif
    &hed_fault_layer,
    &hed_watch_layer,
#if HED_HAVE_SHARE
    &hed_quota_layer,
    &hed_record_layer,
    &hed_sched_layer,
#endif
    NULL,
};

const struct hed_layer_type *const hed_backend_types[] = {
    &hed_gpu_backend,
    &hed_null_backend,
    NULL,
};

int
hed_layer_find(const char *name, const struct hed_layer_type **out, struct hed_why *why)
{
    for (const struct hed_layer_type *const *t = hed_layer_types; *t; t++) {
        if (strcmp((*t)->name, name) == 0) {
            *out = *t;
            return 0;
        }
    }
    if (strcmp(name, "lift") == 0)
        return hed_plugin_open("layer", name, out, why);
    hed_why_set(why, "this heddle was built without the layer '%.64s', which a setting asks for",
                name);
    return HED_ESTATE;
}

int
hed_layer_find_plugin(const char *entry, const struct hed_layer_type **out, struct hed_why *why)
{
    return hed_layer_plugin_open(entry, out, why);
}

void
hed_backend_ask_host(struct hed_config *c)
{
    if (strcmp(c->gpu, "auto") == 0 && !hed_locate_gpu(c->driver) && hed_locate_host(""))
        (void)hed_str_copy(c->gpu, sizeof c->gpu, "vm:");
}

static const struct hed_layer_type *
choose(const struct hed_config *c)
{
    const struct hed_layer_type *cpu;
    struct hed_why why = {""};

    if (hed_locate_gpu(c->driver))
        return &hed_gpu_backend;
    if (hed_plugin_open("backend", "cpu", &cpu, &why) == 0)
        return cpu;
    hed_debug(CORE, "%s", why.text);
    return &hed_gpu_backend;
}

bool
hed_backend_is_driver(const struct hed_config *c)
{
    return strcmp(c->gpu, "gpu") == 0 || (strcmp(c->gpu, "auto") == 0 && hed_locate_gpu(c->driver));
}

int
hed_backend_find(const struct hed_config *c, const struct hed_layer_type **out, struct hed_why *why)
{
    if (strcmp(c->gpu, "auto") == 0) {
        *out = choose(c);
        return 0;
    }
    if (hed_config_gpu_is(c->gpu, "cpu"))
        return hed_plugin_open("backend", "cpu", out, why);
    if (hed_config_gpu_is_address(c->gpu))
        return hed_plugin_open("backend", "remote", out, why);
    for (const struct hed_layer_type *const *t = hed_backend_types; *t; t++) {
        if (strcmp((*t)->name, c->gpu) == 0) {
            *out = *t;
            return 0;
        }
    }
    hed_why_set(why, "a setting names the backend '%.64s', which does not exist", c->gpu);
    return HED_ESTATE;
}
