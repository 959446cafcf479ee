/* The backend `remote`: made when HEDDLE_GPU is an address. See remote.h. */
#include "backends/remote/remote.h"

#include <stdlib.h>
#include <string.h>

#include "backends/remote/queue.h"
#include "base/err.h"
#include "base/log.h"
#include "core/config.h"
#include "core/layer.h"
#include "core/plugin.h"

#define KEPT (UINT64_C(256) << 20) /* bytes of empty blocks that stay mapped */
#define UNIT (2u << 20)            /* bytes; what GPUs map in */

const struct hed_far hed_remote_far = {
    .shares = hed_remote_shares,
    .open = hed_remote_open,
    .close = hed_remote_close,
    .link_made = hed_remote_link_made,
    .link_add = hed_remote_link_add,
    .link_end = hed_remote_link_end,
    .link_gone = hed_remote_link_gone,
    .describe = hed_remote_describe,
    .variable = hed_remote_variable,
    .function_made = hed_remote_function_made,
    .function_gone = hed_remote_function_gone,
    .function_set = hed_remote_function_set,
    .function_load = hed_remote_function_load,
    .array_made = hed_remote_array_made,
    .mipmap_made = hed_remote_mipmap_made,
    .array_gone = hed_remote_array_gone,
    .texture_made = hed_remote_texture_made,
    .surface_made = hed_remote_surface_made,
    .object_gone = hed_remote_object_gone,
    .call = hed_remote_call,
    .memory_info = hed_remote_memory_info,
};

static void
machine_forked(void *m)
{
    struct hed_remote *r = m;

    /* Relaxed: there is one thread. */
    atomic_store_explicit(&r->ended, true, memory_order_relaxed);
    hed_remote_channels_forked(r);
    hed_remote_host_forked(r);
}

/* The process ends. Calls may still come; the worker notices that we are gone. */
static void
machine_fini(void *m)
{
    struct hed_remote *r = m;

    /* Relaxed: whoever sees it a little later finds the connection closed. */
    atomic_store_explicit(&r->ended, true, memory_order_relaxed);
}

static uint64_t
usable(void *m)
{
    return ((struct hed_remote *)m)->usable;
}

const struct hed_machine hed_remote_machine = {
    .clusters = true, /* the device's attributes say whether it has them */
    .far = &hed_remote_far,
    .context_bytes = sizeof(struct hed_remote_context),
    .stream_bytes = sizeof(struct hed_remote_stream),
    .exec_bytes = sizeof(struct hed_remote_exec),
    .context_made = hed_remote_context_made,
    .context_gone = hed_remote_context_gone,
    .context_limit = hed_remote_context_limit,
    .context_wait = hed_remote_context_wait,
    .stream_init = hed_remote_stream_init,
    .stream_made = hed_remote_stream_made,
    .stream_gone = hed_remote_stream_gone,
    .stream_set = hed_remote_stream_set,
    .stream_query = hed_remote_stream_query,
    .stream_wait = hed_remote_stream_wait,
    .point_reached = hed_remote_point_reached,
    .point_wait = hed_remote_point_wait,
    .event_made = hed_remote_event_made,
    .event_gone = hed_remote_event_gone,
    .event_query = hed_remote_event_query,
    .event_wait = hed_remote_event_wait,
    .event_time = hed_remote_event_time,
    .submit = hed_remote_submit,
    .launch = hed_remote_launch,
    .copy = hed_remote_copy,
    .graph_launch = hed_remote_graph_launch,
    .graph_upload = hed_remote_graph_upload,
    .graph_gone = hed_remote_graph_gone,
    .memory = {.reserve = hed_remote_reserve,
               .usable = usable,
               .map_unit = UNIT,
               .keep = KEPT,
               .map = hed_remote_map,
               .unmap = hed_remote_unmap,
               .physical_create = hed_remote_physical_create,
               .physical_free = hed_remote_physical_free,
               .physical_map = hed_remote_physical_map,
               .protect = hed_remote_protect,
               .copy = hed_remote_memory_copy,
               .fill = hed_remote_memory_fill},
    .forked = machine_forked,
    .fini = machine_fini,
};

static int
make_driver(struct hed_remote *r, const struct hed_config *config, struct hed_why *why)
{
    struct hed_profile_device *devices = calloc(HED_PROFILE_DEVICES_MAX, sizeof *devices);
    size_t count = 0;
    int err = devices ? 0 : HED_ENOMEM;

    if (!err)
        err = hed_remote_connect(r, config, devices, HED_PROFILE_DEVICES_MAX, &count, why);
    if (!err) {
        r->device_count = (int)count;
        err = hed_driver_create(&hed_remote_machine, r, devices, count, &r->driver, why);
    }
    free(devices);
    return err;
}

static int
remote_init(struct hed_layer *self, const struct hed_config *config, struct hed_why *why)
{
    struct hed_remote *r = calloc(1, sizeof *r);
    int err = r ? 0 : HED_ENOMEM;

    if (err)
        hed_why_set(why, "no memory for a remote GPU");
    /* This library's own copy of the log has not been set up yet. */
    if (!err)
        err = hed_log_setup(config->log, why);
    if (!err) {
        r->heap = -1;
        hed_lock_init(&r->channels_lock, HED_RANK_CHANNELS);
        err = hed_remote_code_init(r);
    }
    if (!err)
        err = make_driver(r, config, why);
    if (err) /* what threads and channels there are, ends with the connection */
        return err;
    self->state = r->driver;
    return 0;
}

static struct hed_layer_type type = {
    .name = "remote",
    .cuda_any = hed_driver_unsupported,
    .nvml_any = hed_driver_nvml_unsupported,
    .init = remote_init,
    .fini = hed_driver_layer_fini,
    .forked = hed_driver_layer_forked,
    .soft = true,
};

static struct hed_nvml_ops nvml;

/* What only the worker knows is asked; the rest is the soft driver's. */
static void
complete_type(void)
{
    void (*const *from)(void) = (void (*const *)(void))(const void *)&hed_remote_nvml;
    void (**to)(void) = (void (**)(void))(void *)&nvml;

    nvml = *hed_driver_nvml_calls();
    for (size_t i = 0; i < sizeof nvml / sizeof *to; i++)
        if (from[i])
            to[i] = from[i];
    type.cuda = hed_driver_calls();
    type.nvml = &nvml;
}

HED_EXPORT extern const char hed_backend_version[];
const char hed_backend_version[] = HED_VERSION;

HED_EXPORT const struct hed_layer_type *hed_backend_plugin(void);

const struct hed_layer_type *
hed_backend_plugin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, complete_type);
    return &type;
}
