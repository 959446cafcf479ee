/* Arrays, mipmapped arrays, texture and surface objects of a worker. Making one waits for an
 * answer, since it may fail (memory) or has a value (objects). Destroying one does not. */
#include <string.h>

#include "driver/driver.h"
#include "remote/client/queue.h"
#include "remote/client/remote.h"

static CUresult
send_array(struct hed_remote *r, const struct hed_context *c, uint64_t name,
           const CUDA_ARRAY3D_DESCRIPTOR_v2 *g, const uint64_t *levels, uint32_t count)
{
    const uint32_t size = (uint32_t)(sizeof(struct hed_array_body) + count * sizeof *levels);
    struct hed_remote_channel *channel;
    struct hed_array_body *b =
        hed_remote_begin(r, HED_MSG_ARRAY, size, c->object.handle, 0, 0, &channel);

    if (!b)
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    b->head.flags |= HED_MSG_WANTS_ANSWER;
    b->op = HED_ARRAY_CREATE;
    b->name = name;
    b->levels = count;
    b->width = g->Width;
    b->height = g->Height;
    b->depth = g->Depth;
    b->format = (uint32_t)g->Format;
    b->channels = g->NumChannels;
    b->flags = g->Flags;
    if (count)
        memcpy(b + 1, levels, count * sizeof *levels);
    if (hed_remote_end(channel, &b->head, size) != 0)
        return CUDA_ERROR_DEVICE_UNAVAILABLE;

    const struct hed_answer *a = hed_remote_answer(channel);

    return a ? (CUresult)a->result : CUDA_ERROR_DEVICE_UNAVAILABLE;
}

CUresult
hed_remote_make_array(void *m, struct hed_context *c, struct hed_array *a)
{
    return send_array(hed_remote_of(m), c, a->object.handle, &a->given, NULL, 0);
}

CUresult
hed_remote_make_mipmap(void *m, struct hed_context *c, struct hed_mipmap *mm)
{
    return send_array(hed_remote_of(m), c, mm->object.handle, &mm->given, mm->level, mm->levels);
}

void
hed_remote_drop_array(void *m, uint64_t context, uint64_t handle)
{
    struct hed_remote_channel *channel;
    struct hed_array_body *b =
        hed_remote_begin(hed_remote_of(m), HED_MSG_ARRAY, sizeof *b, context, 0, 0, &channel);

    if (!b)
        return;
    b->op = HED_ARRAY_DESTROY;
    b->name = handle;
    (void)hed_remote_end(channel, &b->head, sizeof *b);
}

CUresult
hed_remote_make_texture(void *m, struct hed_context *c, const CUDA_RESOURCE_DESC_v1 *res,
                        const CUDA_TEXTURE_DESC_v1 *tex, const CUDA_RESOURCE_VIEW_DESC_v1 *view,
                        uint64_t *value)
{
    CUtexObject object = 0;
    const CUresult r = hed_remote_ask(hed_remote_of(m), c->object.handle, 0, cuTexObjectCreate,
                                      .pTexObject = &object, .pResDesc = res, .pTexDesc = tex,
                                      .pResViewDesc = view);

    *value = object;
    return r;
}

CUresult
hed_remote_make_surface(void *m, struct hed_context *c, const CUDA_RESOURCE_DESC_v1 *res,
                        uint64_t *value)
{
    CUsurfObject object = 0;
    const CUresult r = hed_remote_ask(hed_remote_of(m), c->object.handle, 0, cuSurfObjectCreate,
                                      .pSurfObject = &object, .pResDesc = res);

    *value = object;
    return r;
}

void
hed_remote_drop_object(void *m, struct hed_context *c, bool surface, uint64_t value)
{
    if (surface)
        hed_remote_send(hed_remote_of(m), c->object.handle, 0, 0, cuSurfObjectDestroy,
                        .surfObject = value);
    else
        hed_remote_send(hed_remote_of(m), c->object.handle, 0, 0, cuTexObjectDestroy,
                        .texObject = value);
}
