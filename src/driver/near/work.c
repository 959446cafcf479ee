/* Launches and copies here: made into work that outlives the call. */
#include <stdlib.h>
#include <string.h>

#include "driver/driver.h"
#include "driver/module/module.h"
#include "driver/near/near.h"
#include "driver/stream/stream.h"
#include "driver/stream/work.h"

#define STAGED_MAX (64u << 10) /* bytes of pageable memory that are read at the call */

CUresult
hed_near_launch(void *m, struct hed_stream *s, const struct hed_launch *l)
{
    struct hed_work *w = hed_work_create(s->ctx, HED_WORK_KERNEL);
    unsigned char *params = w && l->param_bytes ? malloc(l->param_bytes) : NULL;

    if (!w || (l->param_bytes && !params)) {
        hed_work_free(w);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (params)
        memcpy(params, l->params, l->param_bytes);
    w->kernel = *l;
    w->kernel.params = params;
    w->kernel.attributes = NULL; /* only nodes of graphs are asked about theirs */
    w->kernel.attribute_count = 0;
    hed_object_ref(&l->function->object);
    return hed_near_submit(m, s, w, false);
}

/* CUDA's rules about memory that is not pinned (cuda.h, "API synchronization behavior"): a copy to
 * it returns when it is done; one from it returns when it has been read, which for up to 64 KiB
 * never waits for the stream. */

/* Reads pageable memory now: rows side by side in memory of the work. False: it is too much. */
static bool
stage_copy(struct hed_copy *c)
{
    const size_t most = STAGED_MAX;

    if (c->width > most || c->height > most / c->width || c->depth > most / c->width / c->height)
        return false;
    c->staged_size = c->width * c->height * c->depth;
    c->staged = malloc(c->staged_size);
    if (!c->staged)
        return false;

    char *at = c->staged;

    for (size_t z = 0; z < c->depth; z++)
        for (size_t y = 0; y < c->height; y++, at += c->width)
            memcpy(at,
                   (const void *)(uintptr_t)(c->from.at + z * c->from.slice + y * c->from.pitch),
                   c->width);
    c->from = (struct hed_copy_side){.at = (uint64_t)(uintptr_t)c->staged,
                                     .pitch = c->width,
                                     .slice = (uint64_t)c->width * c->height};
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
                           waits || c->to.pageable || (c->from.pageable && !stage_copy(&w->copy)));
}
