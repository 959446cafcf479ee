/* The backend `cpu`: the soft driver on the machine that is this computer. See cpu.h.
 *
 * It is a plug-in (core/plugin.h) with a copy of heddle's lower rooms of its own; the session, the
 * counters and the names of errors are libheddle's.
 */
#include "backends/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/meeting.h"
#include "base/str.h"
#include "core/activity.h"
#include "core/config.h"
#include "core/layer.h"
#include "core/plugin.h"
#include "core/session.h"
#include "driver/driver.h"
#include "kernel/engine.h"
#include "kernel/ptx.h"
#include "kernel/sass.h"

static void
executor_forked(void *m)
{
    struct hed_cpu *c = m;

    hed_engine_forked(c->engine);
    hed_watch_forked(c->watch);
    hed_tier_forked(c);
    c->board = NULL; /* it is the parent's */
}

static void
executor_runner_begins(void *m, bool again)
{
    hed_engine_thread_begin(((struct hed_cpu *)m)->engine, again);
}

static void
executor_runner_ends(void *m)
{
    hed_engine_thread_end(((struct hed_cpu *)m)->engine);
}

const struct hed_executor hed_cpu_executor = {
    .memory = {.reserve = hed_cpu_reserve,
               .map = hed_cpu_map,
               .unmap = hed_cpu_unmap,
               .physical_create = hed_cpu_physical_create,
               .physical_free = hed_cpu_physical_free,
               .physical_map = hed_cpu_physical_map,
               .physical_export = hed_cpu_physical_export,
               .physical_import = hed_cpu_physical_import,
               .physical_discard = hed_cpu_physical_discard,
               .share = hed_cpu_share,
               .protect = hed_cpu_protect,
               .copy = hed_cpu_copy,
               .fill = hed_cpu_fill},
    .takes_cubin = hed_sass_lifts,
    .open = hed_cpu_open,
    .close = hed_cpu_close,
    .fill_vars = hed_cpu_fill_vars,
    .prepare = hed_cpu_prepare,
    .launch = hed_cpu_launch,
    .runner_begins = executor_runner_begins,
    .runner_ends = executor_runner_ends,
    .forked = executor_forked,
    /* No fini: when the process ends, the threads sleep, or run a kernel whose result is not
     * needed, and the compilers end with it. Calls may still come. */
};

static void
cpu_free(struct hed_cpu *c)
{
    if (!c)
        return;
    hed_tier_stop(c);
    hed_compilers_fini(&c->compilers);
    hed_engine_free(c->engine);
    hed_watch_free(c->watch);
    for (int i = 0; i < HED_PROFILE_DEVICES_MAX; i++) {
        hed_heap_fini(&c->heaps[i]);
        hed_heap_fini(&c->buffers[i]);
    }
    hed_address_sandbox_free(c->sandbox);
    hed_cache_free(c->cache);
    hed_board_free(c->board);
    hed_perf_map_fini(&c->perf_map);
    free(c);
}

/* The address sandbox begins where devices' addresses do on every backend. */
_Static_assert(HED_SPACE_BASE % HED_PTX_SANDBOX_SIZE == 0, "the usual place");

static int
cpu_create(const struct hed_config *config, struct hed_cpu **out, struct hed_why *why)
{
    struct hed_cpu *c = calloc(1, sizeof *c);
    int err;

    if (!c) {
        hed_why_set(why, "not enough memory for the CPU GPU");
        return HED_ENOMEM;
    }
    if (strcmp(config->cpu_confine, "yes") == 0) {
        err = hed_address_sandbox_create(HED_SPACE_BASE, &c->sandbox, why);
        if (err) {
            free(c);
            return err;
        }
    }
    hed_near_init(&c->near, &hed_cpu_executor);
    hed_activity_offer();
    for (int i = 0; i < HED_PROFILE_DEVICES_MAX; i++) {
        hed_heap_init(&c->heaps[i], c->sandbox ? &c->sandbox->open : NULL);
        hed_heap_init(&c->buffers[i], c->sandbox ? &c->sandbox->open : NULL);
    }
    c->near.prefers = strcmp(config->cpu_code, "sass") == 0  ? HED_NEAR_SASS
                      : strcmp(config->cpu_code, "ptx") == 0 ? HED_NEAR_PTX
                                                             : HED_NEAR_AUTO;
    c->tiered = strcmp(config->cpu_codegen, "tiered") == 0;
    c->baseline = c->tiered || strcmp(config->cpu_codegen, "baseline") == 0;
    c->cache = hed_cache_create(config->cache, config->cache_size);
    if (strcmp(config->cache_trust, "group") == 0)
        hed_cache_trust_group(c->cache);
    c->board = hed_board_create();
    if (strcmp(config->cpu_perf_map, "yes") == 0)
        hed_perf_map_init(&c->perf_map);
    hed_cpu_compile_init(c);
    /* A server's workers can lock nothing, and leave nothing behind. */
    c->claims = !c->sandbox && strcmp(config->cache_trust, "user") == 0;
    if (c->claims && strcmp(config->cpu_after, "on") == 0 && getauxval(AT_SECURE) == 0)
        c->compilers.after =
            (struct hed_compilers_after){.cache = c->cache,
                                         .seconds = (unsigned)config->cpu_after_time,
                                         .kernels = (unsigned)config->cpu_after_most};
    (void)hed_str_copy(c->compilers.after.lock, sizeof c->compilers.after.lock,
                       config->cpu_after_lock);
    c->compilers.given = hed_session_compilers;
    c->compile_time = (uint32_t)config->compile_time;
    c->watch = hed_watch_create(config->kernel_time * HED_NS_PER_S,
                                config->compile_time * HED_NS_PER_S, hed_session_give_up);

    const unsigned threads = config->cpu_threads < HED_ENGINE_THREADS_MAX
                                 ? (unsigned)config->cpu_threads
                                 : HED_ENGINE_THREADS_MAX;
    err = hed_engine_create_confined(threads, c->sandbox, &c->engine, why);
    if (err) {
        cpu_free(c);
        return err;
    }
    hed_engine_set_watch(c->engine, c->watch);
    *out = c;
    return 0;
}

static int
cpu_init(struct hed_layer *self, const struct hed_config *config, struct hed_why *why)
{
    /* Room for all devices and, after them, for those that CUDA_VISIBLE_DEVICES selects. */
    struct hed_profile_device *devices = calloc(2 * HED_PROFILE_DEVICES_MAX, sizeof *devices);
    struct hed_profile_device *visible = devices ? devices + HED_PROFILE_DEVICES_MAX : NULL;
    struct hed_driver *driver = NULL;
    struct hed_cpu *c = NULL;
    size_t count = 0;
    int err = devices ? 0 : HED_ENOMEM;

    if (err)
        hed_why_set(why, "not enough memory for the CPU GPU");
    /* This library's own copies of the log and of the folder have not been set up yet. */
    if (!err)
        err = hed_log_setup(config->log, why);
    hed_meeting_choose(config->meet_dir);
    if (!err)
        err = hed_profile_devices(config->gpu, devices, HED_PROFILE_DEVICES_MAX, &count, why);
    if (!err)
        err = cpu_create(config, &c, why);
    if (!err) {
        memcpy(visible, devices, count * sizeof *devices);

        const size_t left = hed_profile_visible(visible, count, getenv("CUDA_VISIBLE_DEVICES"));

        c->device_count = (int)left;
        err = hed_driver_create(&c->near.machine, c, visible, left, &driver, why);
    }
    /* NVML shows all devices. If there is no memory for that, it shows the visible ones. */
    if (!err)
        (void)hed_shared_attach(driver, devices, count);
    free(devices);
    if (err) {
        cpu_free(c);
        return err;
    }
    self->state = driver;
    return 0;
}

static struct hed_layer_type type = {
    .name = "cpu",
    .cuda_any = hed_driver_unsupported,
    .nvml_any = hed_driver_nvml_unsupported,
    .init = cpu_init,
    .fini = hed_driver_layer_fini,
    .forked = hed_driver_layer_forked,
    .soft = true,
};

static void
complete_cpu_type(void)
{
    type.cuda = hed_driver_calls();
    type.nvml = hed_driver_nvml_calls();
}

HED_EXPORT extern const char hed_plugin_version[];
const char hed_plugin_version[] = HED_VERSION;

HED_EXPORT const struct hed_layer_type *hed_plugin_type(void);

const struct hed_layer_type *
hed_plugin_type(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, complete_cpu_type);
    return &type;
}
