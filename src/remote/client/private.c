/* Private memory: memory that only this process has, which is pageable and registered memory, and
 * pinned memory that is not shared. This file alone decides what is private. See queue.h. */
#include <string.h>

#include "driver/driver.h"
#include "remote/client/queue.h"

bool
hed_remote_is_private(void *m, const struct hed_copy_side *side, const struct hed_box *box)
{
    uint64_t bytes = 0;

    (void)hed_side_span(side, box, &bytes); /* cannot fail: checked with the copy */
    return side->host && !hed_remote_shares(m, side->at, bytes);
}

bool
hed_remote_fill_is_private(void *m, struct hed_driver *d, const struct hed_fill *f)
{
    const struct hed_box box = {f->width * f->size, f->height, 1};
    struct hed_allocation a;
    const struct hed_copy_side side = {.at = f->to,
                                       .pitch = f->pitch,
                                       .host = hed_memory_find(d, f->to, &a) &&
                                               (a.kind == HED_MEMORY_HOST ||
                                                a.kind == HED_MEMORY_REGISTERED ||
                                                a.kind == HED_MEMORY_MANAGED)};

    return hed_remote_is_private(m, &side, &box);
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
