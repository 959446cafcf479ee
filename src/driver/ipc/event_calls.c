/* Calls for events between processes. See event.h. */
#include <string.h>

#include "base/err.h"
#include "driver/ipc/event.h"
#include "driver/ipc/imported.h"
#include "driver/parts.h"
#include "driver/stream/stream.h"

static int
name_event(struct hed_driver *d, struct hed_event *e, struct hed_ipc_name *out)
{
    uint8_t key[HED_IPC_KEY];
    int err;

    if (e->shared)
        return hed_shared_event_name(e->shared, out);
    if (!d->machine->keys || !(e->flags & CU_EVENT_INTERPROCESS))
        return HED_EINVAL;
    err = d->machine->keys->event_offer(d->machine_state, e, key);
    if (!err)
        hed_ipc_key_name(HED_IPC_KEY_EVENT, key, NULL, 0, 1, out);
    return err == HED_ENOTFOUND ? HED_EINVAL : err;
}

/* The event of a name with a key. */
static CUresult
open_event_key(struct hed_context *c, const struct hed_ipc_name *n, CUevent *out)
{
    struct hed_driver *d = c->device->driver;
    int err = hed_ipc_check(n, HED_IPC_KEY_EVENT);
    CUevent event;

    if (err)
        return hed_ipc_refused(n, err, "an event", CUDA_ERROR_MAP_FAILED);

    CUresult r = hed_event_create(c, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS, NULL, &event);

    if (r != CUDA_SUCCESS)
        return r;

    struct hed_event *e = hed_event_find(d, event);

    err = e ? d->machine->keys->event_open(d->machine_state, e, n->key) : HED_ENOTFOUND;
    if (e)
        hed_object_put(&e->object);
    if (err) {
        (void)hed_event_drop(d, event);
        return hed_ipc_refused(n, err, "an event", CUDA_ERROR_MAP_FAILED);
    }
    *out = event;
    return CUDA_SUCCESS;
}

static CUresult
soft_cuIpcGetEventHandle(struct hed_layer *self, struct hed_cuIpcGetEventHandle *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_ipc_name n;
    struct hed_context *c;
    CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (!hed_ipc_is_possible(d, HED_cuIpcGetEventHandle))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!a->pHandle)
        return CUDA_ERROR_INVALID_VALUE;

    struct hed_event *e = hed_event_find(d, a->event);
    const int err = e ? name_event(d, e, &n) : HED_EINVAL;

    if (e)
        hed_object_put(&e->object);
    if (err)
        return err == HED_EINVAL   ? CUDA_ERROR_INVALID_HANDLE
               : err == HED_ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY
                                   : CUDA_ERROR_NOT_SUPPORTED;
    memcpy(a->pHandle, &n, sizeof n);
    return CUDA_SUCCESS;
}

static CUresult
soft_cuIpcOpenEventHandle(struct hed_layer *self, struct hed_cuIpcOpenEventHandle *a)
{
    struct hed_shared_event *shared;
    struct hed_ipc_name n;
    struct hed_context *c;
    CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (!hed_ipc_is_possible(hed_driver_of(self), HED_cuIpcOpenEventHandle))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!a->phEvent)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&n, &a->handle, sizeof n);
    if (c->device->driver->machine->keys)
        return open_event_key(c, &n, a->phEvent);

    const int err = hed_shared_event_open(&n, &shared);

    if (err)
        return hed_ipc_refused(&n, err, "an event", CUDA_ERROR_MAP_FAILED);
    r = hed_event_create(c, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS, shared, a->phEvent);
    if (r != CUDA_SUCCESS)
        hed_shared_event_free(shared);
    return r;
}

const struct hed_cuda_ops hed_calls_ipc_event = {
    .cuIpcGetEventHandle = soft_cuIpcGetEventHandle,
    .cuIpcOpenEventHandle = soft_cuIpcOpenEventHandle,
};
