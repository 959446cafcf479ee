/* Launches: one message without an answer. */
#include <string.h>

#include "base/err.h"
#include "driver/driver.h"
#include "remote/client/queue.h"
#include "remote/client/remote.h"

_Static_assert(sizeof(CUlaunchAttribute) == 72, "as wire.h has it");

/* Events of a launch are recorded behind it, by separate messages. */
static bool
attribute_travels(const CUlaunchAttribute *a)
{
    return a->id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT &&
           a->id != CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT &&
           a->id != CU_LAUNCH_ATTRIBUTE_IGNORE;
}

CUresult
hed_remote_put_launch(void *m, struct hed_stream *s, const struct hed_launch *l, uint64_t number)
{
    struct hed_remote *r = hed_remote_of(m);
    const CUlaunchAttribute *attributes = l->attributes;
    const unsigned count = l->attribute_count;
    const uint32_t room =
        (uint32_t)(sizeof(struct hed_launch_body) + count * sizeof *attributes) + l->param_bytes;
    struct hed_remote_channel *channel;

    hed_remote_sync_out(r);

    struct hed_launch_body *b = hed_remote_begin(r, HED_MSG_LAUNCH, room, s->ctx->object.handle,
                                                 hed_stream_name(s), number, &channel);

    if (!b)
        return CUDA_ERROR_DEVICE_UNAVAILABLE;

    CUlaunchAttribute *to = (CUlaunchAttribute *)(b + 1);

    b->function = l->function->object.handle;
    memcpy(b->grid, l->grid, sizeof b->grid);
    memcpy(b->block, l->block, sizeof b->block);
    b->dynamic_shared = l->dynamic_shared;
    for (unsigned i = 0; i < count; i++)
        if (attribute_travels(&attributes[i]))
            *to++ = attributes[i];
    b->attributes = (uint32_t)(to - (CUlaunchAttribute *)(b + 1));
    b->params = l->param_bytes;
    if (l->param_bytes)
        memcpy(to, l->params, l->param_bytes);

    const uint32_t size = (uint32_t)((char *)to - (char *)b) + l->param_bytes;

    return hed_remote_end(channel, &b->head, size) == 0 ? CUDA_SUCCESS
                                                        : CUDA_ERROR_DEVICE_UNAVAILABLE;
}
