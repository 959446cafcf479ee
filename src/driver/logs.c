/* Callbacks for messages of the driver (cuLogs*): what a program did wrong, in words.
 *
 * There are two sources: NVIDIA's runtime, which hands its messages to the driver (the table
 * ERROR_LOG), and kernels that cannot run here. Messages are not kept, so cuLogsCurrent() and the
 * dumps are not supported.
 *
 * Callbacks belong to the process, and may be registered before cuInit(). One that is being removed
 * may still be called once by another thread.
 */
#include "driver/logs.h"

#include <string.h>

#include "base/lock.h"
#include "driver/parts.h"

#define CALLBACKS_MAX 16

struct callback {
    CUlogsCallback tell; /* NULL: the entry is free */
    void *data;
    uintptr_t id; /* the handle: a multiple of HED_HANDLE_ALIGN, because it is a pointer in CUDA */
};

static struct {
    struct hed_lock lock; /* guards the rest */
    struct callback list[CALLBACKS_MAX];
    uintptr_t last_id;
} logs = {.lock = HED_LOCK_INIT(HED_RANK_LOGS)};

void
hed_logs_tell(CUlogLevel level, char *text)
{
    struct callback list[CALLBACKS_MAX];

    hed_lock(&logs.lock);
    memcpy(list, logs.list, sizeof list);
    hed_unlock(&logs.lock);
    for (int i = 0; i < CALLBACKS_MAX; i++)
        if (list[i].tell)
            list[i].tell(list[i].data, level, text, strlen(text));
}

static CUresult
soft_cuLogsRegisterCallback(struct hed_layer *self, struct hed_cuLogsRegisterCallback *a)
{
    CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

    (void)self;
    if (!a->callbackFunc)
        return CUDA_ERROR_INVALID_VALUE;
    hed_lock(&logs.lock);
    for (int i = 0; i < CALLBACKS_MAX && r != CUDA_SUCCESS; i++) {
        struct callback *c = &logs.list[i];

        if (c->tell)
            continue;
        *c = (struct callback){a->callbackFunc, a->userData, logs.last_id += HED_HANDLE_ALIGN};
        if (a->callback_out)
            *a->callback_out = (CUlogsCallbackHandle)c->id;
        r = CUDA_SUCCESS;
    }
    hed_unlock(&logs.lock);
    return r;
}

static CUresult
soft_cuLogsUnregisterCallback(struct hed_layer *self, struct hed_cuLogsUnregisterCallback *a)
{
    CUresult r = CUDA_ERROR_INVALID_VALUE;

    (void)self;
    hed_lock(&logs.lock);
    for (int i = 0; i < CALLBACKS_MAX; i++)
        if (logs.list[i].tell && logs.list[i].id == (uintptr_t)a->callback) {
            logs.list[i] = (struct callback){NULL, NULL, 0};
            r = CUDA_SUCCESS;
        }
    hed_unlock(&logs.lock);
    return r;
}

const struct hed_cuda_ops hed_calls_logs = {
    .cuLogsRegisterCallback = soft_cuLogsRegisterCallback,
    .cuLogsUnregisterCallback = soft_cuLogsUnregisterCallback,
};
