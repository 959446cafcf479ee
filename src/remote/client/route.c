/* Routes copies and fills. If the worker has both sides, they are work for it. Memory that only
 * this process has ("private": pageable and registered memory, and pinned memory that is not
 * shared) is sent, or is used here. See queue.h. */
#include <string.h>

#include "driver/memory/memory.h"
#include "remote/client/queue.h"

/* ---- fills ----------------------------------------------------------------------------------- */

bool
hed_remote_fill_is_private(void *m, struct hed_driver *d, const struct hed_fill *f)
{
    const uint64_t bytes = (f->height - 1) * f->pitch + f->width * f->size;
    struct hed_allocation a;

    return !hed_remote_shares(m, f->to, bytes) && hed_memory_find(d, f->to, &a) &&
           (a.kind == HED_MEMORY_HOST || a.kind == HED_MEMORY_REGISTERED ||
            a.kind == HED_MEMORY_MANAGED);
}

CUresult
hed_remote_fill_here(struct hed_stream *s, const struct hed_fill *f)
{
    const CUresult r = hed_stream_synchronize(s);

    for (size_t y = 0; y < f->height && r == CUDA_SUCCESS; y++) {
        char *row = (char *)(uintptr_t)(f->to + y * f->pitch);

        /* Little-endian: the low bytes of the value come first. */
        for (size_t x = 0; x < f->width; x++)
            memcpy(row + x * f->size, &f->value, f->size);
    }
    return r;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* The bytes that a side spans. The copy has been checked, so this cannot overflow. */
static uint64_t
span_of_side(const struct hed_copy *c, const struct hed_copy_side *side)
{
    uint64_t bytes = 0;

    (void)hed_side_span(side, &c->box, &bytes);
    return bytes;
}

bool
hed_remote_is_private(void *m, struct hed_driver *d, const struct hed_copy_side *side,
                      const struct hed_copy *c)
{
    struct hed_allocation a;

    if (side->array)
        return false;
    if (hed_memory_find(d, side->at, &a) && a.kind != HED_MEMORY_HOST &&
        a.kind != HED_MEMORY_REGISTERED && a.kind != HED_MEMORY_MANAGED)
        return false;
    return !hed_remote_shares(m, side->at, span_of_side(c, side));
}

/* Is a side private, given that its kind is known? */
static bool
is_private_side(void *m, const struct hed_copy *c, const struct hed_copy_side *side)
{
    return side->host && !hed_remote_shares(m, side->at, span_of_side(c, side));
}

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
    const bool from = is_private_side(m, c, &c->from);
    const bool to = is_private_side(m, c, &c->to);
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
    r = hed_remote_copy_host(m, s, c, false, waits && !c->from.pageable);
    if (r == CUDA_SUCCESS && waits && c->from.pageable)
        hed_remote_copied(s);
    return r;
}
