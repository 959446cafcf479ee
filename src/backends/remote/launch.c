/* Launches: one message, and no answer. */
#include <string.h>

#include "backends/remote/queue.h"
#include "backends/remote/remote.h"
#include "base/err.h"
#include "driver/context/context.h"
#include "driver/module/module.h"
#include "driver/stream/stream.h"
#include "driver/stream/work.h"

_Static_assert(sizeof(CUlaunchAttribute) == 72, "as wire.h has it");

/* Events of a launch are recorded behind it, by messages of their own. */
static bool
travels(const CUlaunchAttribute *a)
{
    return a->id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT &&
           a->id != CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT &&
           a->id != CU_LAUNCH_ATTRIBUTE_IGNORE;
}

static CUresult
send_launch(struct hed_remote *r, struct hed_stream *s, const struct hed_function *f,
            uint64_t number, const struct hed_launch *l, const CUlaunchAttribute *attributes,
            unsigned count)
{
    const uint32_t room =
        (uint32_t)(sizeof(struct hed_launch_body) + count * sizeof *attributes) + l->param_bytes;
    struct hed_remote_channel *channel;

    hed_remote_sync_out(r);

    struct hed_launch_body *b = hed_remote_begin(r, HED_MSG_LAUNCH, room, s->ctx->object.handle,
                                                 hed_stream_name(s), number, &channel);

    if (!b)
        return CUDA_ERROR_DEVICE_UNAVAILABLE;

    CUlaunchAttribute *to = (CUlaunchAttribute *)(b + 1);

    b->function = f->object.handle;
    memcpy(b->grid, l->grid, sizeof b->grid);
    memcpy(b->block, l->block, sizeof b->block);
    b->dynamic_shared = l->dynamic_shared;
    for (unsigned i = 0; i < count; i++)
        if (travels(&attributes[i]))
            *to++ = attributes[i];
    b->attributes = (uint32_t)(to - (CUlaunchAttribute *)(b + 1));
    b->params = l->param_bytes;
    if (l->param_bytes)
        memcpy(to, l->params, l->param_bytes);

    const uint32_t size = (uint32_t)((char *)to - (char *)b) + l->param_bytes;

    return hed_remote_end(channel, &b->head, size) == 0 ? CUDA_SUCCESS
                                                        : CUDA_ERROR_DEVICE_UNAVAILABLE;
}

CUresult
hed_remote_put_launch(void *m, struct hed_stream *s, struct hed_function *f,
                      const struct hed_launch *l, const CUlaunchAttribute *attributes,
                      unsigned count)
{
    return send_launch(hed_remote_of(m), s, f, s->submitted, l, attributes, count);
}

CUresult
hed_remote_put_kernel(struct hed_remote *r, struct hed_stream *s, struct hed_work *w)
{
    return send_launch(r, s, w->kernel.function, w->number, &w->kernel.launch, w->kernel.attributes,
                       w->kernel.attribute_count);
}
