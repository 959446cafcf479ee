/* Launches and copies on this machine: turned into work that outlives the call. */
#include <stdlib.h>
#include <string.h>

#include "driver/module/module.h"
#include "driver/near/near.h"
#include "driver/parts.h"
#include "driver/stream/stream.h"
#include "driver/stream/work.h"

#define STAGED_MAX (64u << 10) /* pageable bytes that are read during the call */

CUresult
hed_near_launch(void *m, struct hed_stream *s, const struct hed_launch *l)
{
    struct hed_work *w = hed_work_create_launch(s->ctx, l);

    return w ? hed_near_submit(m, s, w, false) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* CUDA's rules about memory that is not pinned (cuda.h, "API synchronization behavior"): a copy to
 * such memory returns when it is done. A copy from it returns when the memory has been read, which
 * for up to 64 KiB never waits for the stream. */

/* Reads pageable memory now, into memory of the work, without gaps between rows. False if it is too
 * much. */
static bool
stage_copy(struct hed_work *w)
{
    const struct hed_box b = w->copy.box;
    const struct hed_copy_side from = w->copy.from;

    if (b.width > STAGED_MAX || b.height > STAGED_MAX / b.width ||
        b.depth > STAGED_MAX / b.width / b.height)
        return false;
    w->staged_size = hed_box_bytes(&b);
    w->staged = malloc(w->staged_size);
    if (!w->staged)
        return false;

    char *at = w->staged;

    for (uint64_t z = 0; z < b.depth; z++)
        for (uint64_t y = 0; y < b.height; y++, at += b.width)
            memcpy(at, (const void *)(uintptr_t)hed_side_at(&from, 0, y, z), b.width);
    w->copy.from = (struct hed_copy_side){
        .at = (uint64_t)(uintptr_t)w->staged, .pitch = b.width, .slice = b.width * b.height};
    return true;
}

CUresult
hed_near_copy(void *m, struct hed_stream *s, const struct hed_copy *c, bool waits)
{
    struct hed_work *w = hed_work_create(s->ctx, HED_WORK_COPY);

    if (!w)
        return CUDA_ERROR_OUT_OF_MEMORY;
    w->copy = *c;
    return hed_near_submit(m, s, w,
                           waits || c->to.pageable || (c->from.pageable && !stage_copy(w)));
}
