/* The backend `remote`, which is made when HEDDLE_GPU is an address. See remote.h. */
#include "remote/client/remote.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/meeting.h"
#include "core/config.h"
#include "core/layer.h"
#include "remote/client/mover.h"
#include "remote/client/queue.h"

static const struct hed_remote_mover *mover; /* NULL: there is none */
static struct hed_nvml_ops nvml;
static struct hed_layer_type inner_type = {
    /* the soft driver's calls, behind the hold */
    .name = "remote",
    .cuda_any = hed_driver_unsupported,
    .nvml_any = hed_driver_nvml_unsupported,
};

void
hed_remote_use_mover(const struct hed_remote_mover *table)
{
    mover = table;
}

static int
make_driver(struct hed_remote *r, const struct hed_config *config, struct hed_why *why)
{
    struct hed_profile_device *devices = calloc(HED_PROFILE_DEVICES_MAX, sizeof *devices);
    size_t count = 0;
    int err = devices ? 0 : HED_ENOMEM;

    if (!err)
        err = hed_remote_connect(r, config, devices, &count, why);
    if (!err) {
        r->device_count = (int)count;
        err = hed_remote_memory_init(r, why);
    }
    if (!err)
        err = hed_remote_host_init(r);
    if (!err)
        err = hed_driver_create(&hed_remote_machine, r, devices, count, &r->driver, why);
    free(devices);
    return err;
}

static int
remote_init(struct hed_layer *self, const struct hed_config *config, struct hed_why *why)
{
    struct hed_remote *r = calloc(1, sizeof *r);
    int err = r ? 0 : HED_ENOMEM;

    if (err)
        hed_why_set(why, "not enough memory for a remote GPU");
    /* This library's own copies of the log and of the folder have not been set up yet. */
    if (!err)
        err = hed_log_setup(config->log, why);
    hed_meeting_choose(config->meet_dir);
    if (!err) {
        r->heap = -1;
        hed_lock_init(&r->channels_lock, HED_RANK_CHANNELS);
        (void)pthread_cond_init(&r->turn, NULL);
        hed_lock_init(&r->events_lock, HED_RANK_EVENTS);
        hed_lock_init(&r->flush_lock, HED_RANK_FLUSH);
        hed_lock_init(&r->unmap_lock, HED_RANK_UNMAP);
        hed_layer_place(&r->calls, &inner_type, NULL);
        err = hed_remote_code_init(r);
    }
    if (!err && mover) {
        r->mover = mover;
        err = mover->create(r, config, why);
    }
    if (!err)
        err = make_driver(r, config, why);
    if (err) /* threads and channels end with the connection */
        return err;
    self->state = r->calls.layer.state = r->driver;
    /* Functions of export tables make calls without a layer: they wait while it is held, too. */
    r->driver->self = (struct hed_layer){
        .cuda = self->cuda, .nvml = self->nvml, .type = self->type, .state = r->driver};
    if (mover)
        mover->start(r);
    return 0;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* A call of the program waits here while the mover holds the program. A function that a stream
 * calls is part of the work that a hold waits for, so its calls do not wait. */
static CUresult
remote_any(struct hed_layer *self, enum hed_cuda_call id, void *args)
{
    struct hed_remote *m = ((struct hed_driver *)self->state)->machine_state;

    if (hed_in_callback())
        return hed_cuda_invoke(&m->calls.layer, id, args);

    void *entered = m->mover ? m->mover->enter(m, (int)id) : NULL;

    if (m->mover && !entered)
        return CUDA_ERROR_OUT_OF_MEMORY;
    hed_remote_turn_begins(m);

    const CUresult r = hed_cuda_invoke(&m->calls.layer, id, args);

    hed_remote_turn_ends(m);
    if (entered)
        m->mover->leave(entered);
    return r;
}

static nvmlReturn_t
remote_nvml_any(struct hed_layer *self, enum hed_nvml_call id, void *args)
{
    struct hed_remote *m = ((struct hed_driver *)self->state)->machine_state;

    void *entered = m->mover ? m->mover->enter(m, HED_MOVER_NVML) : NULL;

    if (m->mover && !entered)
        return NVML_ERROR_MEMORY;
    hed_remote_turn_begins(m);

    const nvmlReturn_t r = hed_nvml_invoke(&m->calls.layer, id, args);

    hed_remote_turn_ends(m);
    if (entered)
        m->mover->leave(entered);
    return r;
}

const struct hed_layer_type hed_remote_type = {
    .name = "remote",
    .cuda_any = remote_any,
    .nvml_any = remote_nvml_any,
    .init = remote_init,
    .fini = hed_driver_layer_fini,
    .forked = hed_driver_layer_forked,
    .soft = true,
};

/* Adds the calls that only the worker can answer to the soft driver's. */
void
hed_remote_complete_type(void)
{
    void (*const *from)(void) = (void (*const *)(void))(const void *)&hed_remote_nvml;
    void (**to)(void) = (void (**)(void))(void *)&nvml;

    nvml = *hed_driver_nvml_calls();
    for (size_t i = 0; i < sizeof nvml / sizeof *to; i++)
        if (from[i])
            to[i] = from[i];
    inner_type.cuda = hed_driver_calls();
    inner_type.nvml = &nvml;
}
