/* Makes layers of libraries that somebody else built (include/heddle/layer.h).
 *
 *     chain -> hed_cuda_any -> plugin_cuda_any -> the plug-in's function -> host_next -> chain
 *
 * Only the calls that the plug-in overrides take this way: the others are forwarded as in a layer
 * of ours that does not override them.
 *
 * What a plug-in says of itself is checked before any function of it is called, but it is code of
 * the user's choice and runs with all rights of the program.
 */
#include "layers/plugin/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "core/layer.h"
#include "heddle/layer.h"

#define NAME_MAX_LENGTH 31
#define OVERRIDES_MAX (4 * HED_CUDA_CALLS) /* a list without an end is not read for ever */

/* The first version of the interface ended here. */
#define OLDEST_ABI 1
#define OLDEST_SIZE (offsetof(struct heddle_layer_plugin, forked) + sizeof(void (*)(void)))

/* One layer: its type, and the instance of it in this process. */
struct plugged {
    struct hed_layer_type type;
    struct hed_cuda_ops cuda; /* forwards what the plug-in does not want to see */
    heddle_layer_function functions[HED_CUDA_CALLS];
    struct heddle_layer_plugin plugin; /* a copy; what its header did not have is 0 */
    struct heddle_layer instance;      /* what the plug-in sees */
    struct hed_layer *layer;           /* what the chain sees */
    char name[NAME_MAX_LENGTH + 1];
    char options[PATH_MAX];
};

static struct plugged *
plugged_of(struct heddle_layer *instance)
{
    return (struct plugged *)((char *)instance - offsetof(struct plugged, instance));
}

static CUresult
host_next(struct heddle_layer *self, enum hed_cuda_call call, void *args)
{
    if ((unsigned)call - 1 >= HED_CUDA_CALLS - 1)
        return CUDA_ERROR_NOT_SUPPORTED; /* a call that is newer than this heddle */
    return hed_cuda_invoke(plugged_of(self)->layer->next, call, args);
}

static const char *
host_call_name(enum hed_cuda_call call)
{
    return (unsigned)call - 1 < HED_CUDA_CALLS - 1 ? hed_cuda_info[call].name : NULL;
}

static void
host_log(struct heddle_layer *self, enum heddle_log_level level, const char *text)
{
    const char *name = plugged_of(self)->name;

    switch (level) {
    case HEDDLE_LOG_ERROR:
        hed_error(PLUGIN, "%s: %s", name, text);
        break;
    case HEDDLE_LOG_WARN:
        hed_warn(PLUGIN, "%s: %s", name, text);
        break;
    case HEDDLE_LOG_INFO:
        hed_info(PLUGIN, "%s: %s", name, text);
        break;
    default:
        hed_debug(PLUGIN, "%s: %s", name, text);
    }
}

static const struct heddle_layer_host host = {
    .abi = HEDDLE_LAYER_ABI,
    .size = sizeof host,
    .version = HED_VERSION,
    .next = host_next,
    .call_name = host_call_name,
    .log = host_log,
};

static CUresult
plugin_cuda_any(struct hed_layer *self, enum hed_cuda_call id, void *args)
{
    struct plugged *p = self->state;

    if (p->functions[id])
        return p->functions[id](&p->instance, args);
    return p->plugin.any(&p->instance, id, args);
}

static int
plugin_init(struct hed_layer *self, const struct hed_config *config, struct hed_why *why)
{
    /* The type is the first member. It belongs to this layer alone. */
    struct plugged *p = (struct plugged *)(uintptr_t)self->type;
    char text[256] = "it does not say why";

    self->state = p;
    p->layer = self;
    if (!p->plugin.init || p->plugin.init(&p->instance, text, sizeof text) == 0)
        return 0;
    text[sizeof text - 1] = '\0';
    hed_why_set(why, "the layer '%s' of a plug-in cannot start: %s", p->name, text);
    return HED_ESTATE;
}

static void
plugin_fini(struct hed_layer *self)
{
    struct plugged *p = self->state;

    if (p->plugin.fini)
        p->plugin.fini(&p->instance);
}

static void
plugin_forked(struct hed_layer *self)
{
    struct plugged *p = self->state;

    if (p->plugin.forked)
        p->plugin.forked(&p->instance);
}

static bool
is_layer_name(const char *name)
{
    const size_t n = name ? strnlen(name, NAME_MAX_LENGTH + 1) : 0;

    return n > 0 && n <= NAME_MAX_LENGTH &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

/* Copies what the plug-in says of itself, after it was checked. */
static int
take_description(struct plugged *p, const char *path, const struct heddle_layer_plugin *found,
                 struct hed_why *why)
{
    if (!found) {
        hed_why_set(why, "plugins: %s is not a layer for heddle: it has no heddle_layer_plugin",
                    path);
        return HED_EINVAL;
    }
    /* The version is the first word in every version of the interface. */
    if (found->abi < OLDEST_ABI || found->abi > HEDDLE_LAYER_ABI) {
        hed_why_set(why,
                    "plugins: %s has version %u of the interface for layers, but heddle %s takes "
                    "%d to %d: build it again with this heddle's heddle/layer.h",
                    path, (unsigned)found->abi, HED_VERSION, OLDEST_ABI, HEDDLE_LAYER_ABI);
        return HED_EVERSION;
    }
    if (found->size < OLDEST_SIZE || !is_layer_name(found->name)) {
        hed_why_set(why, "plugins: %s describes itself wrongly (%s): see heddle/layer.h", path,
                    found->size < OLDEST_SIZE ? "size" : "name");
        return HED_EINVAL;
    }
    memcpy(&p->plugin, found, found->size < sizeof p->plugin ? found->size : sizeof p->plugin);
    (void)hed_str_copy(p->name, sizeof p->name, found->name);
    return 0;
}

/* Entry i of the table of operations is call i + 1 (gen/cuda_calls.h). */
static void
override_call(struct plugged *p, const struct heddle_layer_override *o)
{
    const size_t at = ((size_t)o->call - 1) * sizeof(void (*)(void));

    p->functions[o->call] = o->function;
    memcpy((char *)&p->cuda + at, (const char *)&hed_cuda_any + at, sizeof(void (*)(void)));
}

static int
take_overrides(struct plugged *p, const char *path, struct hed_why *why)
{
    const struct heddle_layer_override *o = p->plugin.overrides;

    p->cuda = p->plugin.any ? hed_cuda_any : hed_cuda_forward;
    for (size_t i = 0; o && o->call; o++, i++) {
        if (!o->function || i == OVERRIDES_MAX) {
            hed_why_set(why, "plugins: the list of calls in %s has %s", path,
                        o->function ? "no end" : "an entry without a function");
            return HED_EINVAL;
        }
        if ((unsigned)o->call < HED_CUDA_CALLS)
            override_call(p, o);
    }
    return 0;
}

static int
load_plugin(struct plugged *p, const char *path, struct hed_why *why)
{
    if (access(path, F_OK) != 0) {
        hed_why_set(why, "plugins: there is no file %s", path);
        return HED_ENOTFOUND;
    }

    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

    if (!library) {
        const char *text = dlerror();

        hed_why_set(why, "plugins: cannot load %s: %s", path,
                    text ? text : "the loader does not say why");
        return HED_EINVAL;
    }

    const int err = take_description(p, path, dlsym(library, "heddle_layer_plugin"), why);

    return err ? err : take_overrides(p, path, why);
}

int
hed_layer_plugin_open(const char *entry, const struct hed_layer_type **out, struct hed_why *why)
{
    struct plugged *p = calloc(1, sizeof *p);
    char path[PATH_MAX];
    const size_t n = strcspn(entry, ":");

    if (!p) {
        hed_why_set(why, "plugins: %s", hed_err_text(HED_ENOMEM));
        return HED_ENOMEM;
    }
    (void)snprintf(path, sizeof path, "%.*s", (int)n, entry);
    (void)hed_str_copy(p->options, sizeof p->options, entry[n] ? entry + n + 1 : "");
    p->instance = (struct heddle_layer){.host = &host, .options = p->options};

    const int err = load_plugin(p, path, why);

    if (err) {
        free(p);
        return err;
    }
    p->type = (struct hed_layer_type){
        .name = p->name,
        .cuda = &p->cuda,
        .cuda_any = plugin_cuda_any,
        .init = plugin_init,
        .fini = plugin_fini,
        .forked = plugin_forked,
    };
    *out = &p->type;
    return 0;
}
