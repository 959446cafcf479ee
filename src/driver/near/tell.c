/* Tells whoever watches what has run here. See core/activity.h. */
#include <string.h>

#include "core/activity.h"
#include "driver/module/module.h"
#include "driver/near/near.h"
#include "driver/parts.h"
#include "driver/stream/work.h"

static enum hed_activity_place
place_of(const struct hed_copy_side *s)
{
    if (s->array)
        return HED_PLACE_ARRAY;
    if (s->pageable)
        return HED_PLACE_PAGEABLE;
    return s->host ? HED_PLACE_PINNED : HED_PLACE_DEVICE;
}

static void
fill_in_kernel(struct hed_activity *a, const struct hed_launch *l)
{
    const struct hed_code_kernel *k = &l->code->kernels[l->kernel];

    a->name = k->name;
    memcpy(a->grid, l->grid, sizeof a->grid);
    memcpy(a->block, l->block, sizeof a->block);
    a->static_shared = k->shared;
    a->dynamic_shared = l->dynamic_shared;
    a->registers = k->registers;
}

static void
fill_in_copy(struct hed_activity *a, const struct hed_work *w)
{
    a->bytes = hed_box_bytes(&w->copy.box);
    /* What was read during the call was pageable. */
    a->from = w->staged ? HED_PLACE_PAGEABLE : place_of(&w->copy.from);
    a->to = place_of(&w->copy.to);
}

bool
hed_near_is_told(const struct hed_work *w)
{
    switch (w->kind) {
    case HED_WORK_KERNEL:
    case HED_WORK_COPY:
    case HED_WORK_FILL:
    case HED_WORK_HOST:
    case HED_WORK_CALLBACK:
        return true;
    default:
        return false;
    }
}

void
hed_near_tell(struct hed_watcher *watcher, const struct hed_work *w, const struct hed_work *of,
              uint64_t begin, uint64_t end)
{
    struct hed_activity a = {
        .begin = begin,
        .end = end,
        .cause = of->cause,
        .device = (uint32_t)w->ctx->device->ordinal,
        .context = hed_context_id(w->ctx),
        .stream = of->stream,
    };

    switch (w->kind) {
    case HED_WORK_KERNEL:
        a.kind = HED_ACTIVITY_KERNEL;
        fill_in_kernel(&a, &w->kernel);
        break;
    case HED_WORK_COPY:
        a.kind = HED_ACTIVITY_COPY;
        fill_in_copy(&a, w);
        break;
    case HED_WORK_FILL:
        a.kind = HED_ACTIVITY_FILL;
        a.bytes = w->fill.size * w->fill.width * w->fill.height;
        a.to = HED_PLACE_DEVICE;
        break;
    default:
        a.kind = HED_ACTIVITY_HOST;
        break;
    }
    watcher->ran(watcher, &a);
}
