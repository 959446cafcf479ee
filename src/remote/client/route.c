/* Routes copies. If the worker has both sides, they are work for it. Memory that only this process
 * has (private.c) is sent, or is used here. See queue.h. */
#include <string.h>

#include "remote/client/queue.h"

/* Both sides are private: copies here, when the stream has come so far. */
static CUresult
copy_here(struct hed_stream *s, const struct hed_copy *c)
{
    const CUresult r = hed_stream_synchronize(s);

    if (r != CUDA_SUCCESS)
        return r;
    for (uint64_t z = 0; z < c->box.depth; z++)
        for (uint64_t y = 0; y < c->box.height; y++)
            memmove((void *)(uintptr_t)hed_side_at(&c->to, 0, y, z),
                    (const void *)(uintptr_t)hed_side_at(&c->from, 0, y, z), c->box.width);
    return CUDA_SUCCESS;
}

/* Neither side is private. The caller never waits for a copy from device to device. */
static CUresult
copy_there(void *m, struct hed_stream *s, const struct hed_copy *c, bool waits)
{
    struct hed_work *w = hed_work_create(s->ctx, HED_WORK_COPY);

    if (!w)
        return CUDA_ERROR_OUT_OF_MEMORY;
    w->copy = *c;
    return hed_remote_submit(
        m, s, w, (waits && (c->from.host || c->to.host)) || c->from.pageable || c->to.pageable);
}

/* Bytes from pageable memory are read during the call, so the caller need not wait for such
 * copies. */
CUresult
hed_remote_copy(void *m, struct hed_stream *s, const struct hed_copy *c, bool waits)
{
    const bool from = hed_remote_is_private(m, &c->from, &c->box);
    const bool to = hed_remote_is_private(m, &c->to, &c->box);
    CUresult r = CUDA_SUCCESS;

    if (!from && !to)
        return copy_there(m, s, c, waits);
    if (from && to)
        return copy_here(s, c);
    hed_remote_settle(m, s);
    /* A kernel that is launched next may read the memory, so the bytes must be there by then. */
    if (to)
        return hed_remote_copy_host(m, s, c, true, waits || c->to.pageable || c->to.mapped);
    /* Earlier work on the stream may still write the memory that is read here. */
    if (c->from.mapped || (!c->from.pageable && hed_remote_functions_wait(m)))
        r = hed_stream_synchronize(s);
    if (r != CUDA_SUCCESS)
        return r;

    /* Another program may be told of the bytes next. */
    const bool wait = waits && (!c->from.pageable || hed_remote_has_shared(m));

    r = hed_remote_copy_host(m, s, c, false, wait);
    if (r == CUDA_SUCCESS && waits && !wait)
        hed_remote_copied(s);
    return r;
}
