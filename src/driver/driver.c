/* Making a soft driver: its addresses, its devices, and the tables of all areas merged into one. */
#include "driver/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "core/stats.h"
#include "driver/graph/graph.h"
#include "driver/memory/memory.h"
#include "driver/module/image.h"
#include "driver/shared.h"

#define SHARE_MOST (1ull << 40)  /* bytes of addresses for each device, and for the host */
#define SHARE_LEAST (1ull << 28) /* with less than this a driver does not start */

static _Atomic(struct hed_driver *) here;

/* ---- the table of calls ---------------------------------------------------------------------- */

static const struct hed_cuda_ops *const cuda_areas[] = {
    &hed_calls_device,       &hed_calls_device_info, &hed_calls_context,
    &hed_calls_primary,      &hed_calls_stream,      &hed_calls_event,
    &hed_calls_memop,        &hed_calls_memory,      &hed_calls_copy,
    &hed_calls_pool,         &hed_calls_virtual,     &hed_calls_array,
    &hed_calls_module,       &hed_calls_library,     &hed_calls_function,
    &hed_calls_launch,       &hed_calls_link,        &hed_calls_graph,
    &hed_calls_node,         &hed_calls_exec,        &hed_calls_capture,
    &hed_calls_table,        &hed_calls_user_object, &hed_calls_graph_dot,
    &hed_calls_graph_update, &hed_calls_condition,   &hed_calls_node_attribute,
    &hed_calls_logs,         &hed_calls_reference,   &hed_calls_ipc_memory,
    &hed_calls_ipc_event,    &hed_calls_ipc_pool,
};

static const struct hed_nvml_ops *const nvml_areas[] = {
    &hed_calls_nvml_device,
    &hed_calls_nvml_system,
    &hed_calls_nvml_sensor,
    &hed_calls_nvml_process,
};

static struct hed_cuda_ops cuda_calls;
static struct hed_nvml_ops nvml_calls;

typedef void (*entry)(void);

/* Operation tables are arrays of function pointers in all but name; struct hed_cuda_ops promises
 * it. */
static void
merge_tables(void *table, const void *area, size_t size, const char *api)
{
    for (size_t at = 0; at < size; at += sizeof(entry)) {
        entry ours;
        entry theirs;

        memcpy(&ours, (char *)table + at, sizeof ours);
        memcpy(&theirs, (const char *)area + at, sizeof theirs);
        if (ours && theirs)
            hed_bug("%s call %zu is in two areas", api, at / sizeof(entry) + 1);
        if (theirs)
            memcpy((char *)table + at, &theirs, sizeof theirs);
    }
}

static void
merge_all(void)
{
    for (size_t i = 0; i < sizeof cuda_areas / sizeof cuda_areas[0]; i++)
        merge_tables(&cuda_calls, cuda_areas[i], sizeof cuda_calls, "cuda");
    for (size_t i = 0; i < sizeof nvml_areas / sizeof nvml_areas[0]; i++)
        merge_tables(&nvml_calls, nvml_areas[i], sizeof nvml_calls, "nvml");
}

static void
merge_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, merge_all);
}

const struct hed_cuda_ops *
hed_driver_calls(void)
{
    merge_once();
    return &cuda_calls;
}

const struct hed_nvml_ops *
hed_driver_nvml_calls(void)
{
    merge_once();
    return &nvml_calls;
}

CUresult
hed_driver_unsupported(struct hed_layer *self, enum hed_cuda_call id, void *args)
{
    const struct hed_driver *d = hed_driver_of(self);
    const CUresult r =
        d ? d->machine->unknown(d->machine_state, self, id, args) : CUDA_ERROR_NOT_SUPPORTED;

    if (r == CUDA_ERROR_NOT_SUPPORTED)
        hed_stats_unsupported(HED_API_CUDA, id, "the soft driver");
    return r;
}

nvmlReturn_t
hed_driver_nvml_unsupported(struct hed_layer *self, enum hed_nvml_call id, void *args)
{
    (void)self;
    (void)args;
    hed_stats_unsupported(HED_API_NVML, id, "the soft driver");
    return NVML_ERROR_NOT_SUPPORTED;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Reserves one range for all devices, at the same addresses on every machine that can have them.
 * Address space may be limited (ulimit -v, sanitizers), so it asks for less until it gets it. */
static int
reserve_range(struct hed_driver *d, uint64_t *share, struct hed_why *why)
{
    const uint64_t parts = (uint64_t)d->device_count + 1;
    int err = HED_ENOMEM;

    for (*share = SHARE_MOST; *share >= SHARE_LEAST; *share /= 2) {
        err = d->machine->memory.reserve(d->machine_state, HED_SPACE_BASE, *share * parts,
                                         &d->space_base);
        if (!err) {
            d->space_size = *share * parts;
            return 0;
        }
    }
    hed_why_set(why, "cannot reserve %llu GiB of addresses: %s",
                (unsigned long long)((SHARE_LEAST * parts) >> 30), hed_err_text(err));
    return err;
}

static int
make_devices(struct hed_driver *d, const struct hed_profile_device *devices, uint64_t share)
{
    const uint64_t usable =
        d->machine->memory.usable ? d->machine->memory.usable(d->machine_state) : share;
    uint64_t at = d->space_base;

    for (int i = 0; i < d->device_count; i++, at += share) {
        struct hed_device *dev = &d->devices[i];

        dev->driver = d;
        dev->ordinal = i;
        dev->info = devices[i];
        dev->space = hed_space_create(at, usable);
        if (!dev->space)
            return HED_ENOMEM;
    }
    d->host_space = hed_space_create(at, usable);
    return d->host_space ? 0 : HED_ENOMEM;
}

static int
make_parts(struct hed_driver *d)
{
    int err = hed_memory_driver_init(d);

    if (!err)
        err = hed_context_driver_init(d);
    if (!err)
        err = hed_pool_driver_init(d);
    return err;
}

static struct hed_driver *
create_empty(const struct hed_machine *machine, void *machine_state, size_t count)
{
    static _Atomic uint64_t serials;
    struct hed_driver *d = calloc(1, sizeof *d);

    if (!d)
        return NULL;
    d->serial = atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed) + 1;
    d->machine = machine;
    d->machine_state = machine_state;
    d->device_count = (int)count;
    d->self =
        (struct hed_layer){.cuda = hed_driver_calls(), .nvml = hed_driver_nvml_calls(), .state = d};
    hed_lock_init(&d->memory_lock, HED_RANK_MEMORY);
    hed_lock_init(&d->contexts_lock, HED_RANK_CONTEXTS);
    (void)pthread_cond_init(&d->contexts_changed, NULL);
    d->handles = hed_handles_create();
    return d;
}

int
hed_driver_create(const struct hed_machine *machine, void *machine_state,
                  const struct hed_profile_device *devices, size_t count, struct hed_driver **out,
                  struct hed_why *why)
{
    uint64_t share = 0;

    if (count > HED_PROFILE_DEVICES_MAX) {
        hed_why_set(why, "%zu devices; at most %d can be visible", count, HED_PROFILE_DEVICES_MAX);
        return HED_ELIMIT;
    }

    struct hed_driver *d = create_empty(machine, machine_state, count);
    int err = d && d->handles ? 0 : HED_ENOMEM;

    if (!err) {
        err = reserve_range(d, &share, why);
        if (err)
            goto out;
        err = make_devices(d, devices, share);
    }
    if (!err)
        err = make_parts(d);
    if (err) {
        hed_why_set(why, "the soft driver: %s", hed_err_text(err));
        goto out;
    }
    hed_debug(DRIVER, "%zu devices, addresses from %#llx, %llu GiB each", count,
              (unsigned long long)d->space_base, (unsigned long long)(share >> 30));
    /* Release: pairs with the acquire in hed_driver_here, so tables see it complete. */
    atomic_store_explicit(&here, d, memory_order_release);
    *out = d;
out:
    if (err)
        hed_driver_free(d);
    return err;
}

struct hed_driver *
hed_driver_here(void)
{
    return atomic_load_explicit(&here, memory_order_acquire);
}

void
hed_driver_free(struct hed_driver *d)
{
    struct hed_driver *expected = d;

    if (!d)
        return;
    (void)atomic_compare_exchange_strong_explicit(&here, &expected, NULL, memory_order_relaxed,
                                                  memory_order_relaxed);
    hed_context_driver_fini(d);
    if (d->handles) {
        hed_graph_driver_fini(d);
        hed_handles_free(d->handles);
    }
    hed_pool_driver_fini(d);
    hed_memory_driver_fini(d);
    for (int i = 0; i < d->device_count; i++)
        hed_space_free(d->devices[i].space);
    hed_space_free(d->host_space);
    hed_shared_free(d);
    (void)pthread_cond_destroy(&d->contexts_changed);
    hed_lock_fini(&d->contexts_lock);
    hed_lock_fini(&d->memory_lock);
    free(atomic_load_explicit(&d->not_loaded, memory_order_relaxed));
    free(d);
}

void
hed_driver_fini(struct hed_driver *d)
{
    /* Relaxed: a call under way on another thread may still succeed, as on NVIDIA's driver. */
    atomic_store_explicit(&d->ended, true, memory_order_relaxed);
    hed_program_end(d);
    hed_shared_leave(d);
    if (d->machine->fini)
        d->machine->fini(d->machine_state);
}

void
hed_driver_forked(struct hed_driver *d)
{
    if (d->machine->forked)
        d->machine->forked(d->machine_state);
}

void
hed_driver_layer_fini(struct hed_layer *self)
{
    hed_driver_fini(self->state);
}

void
hed_driver_layer_forked(struct hed_layer *self)
{
    hed_driver_forked(self->state);
}
