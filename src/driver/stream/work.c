/* Work: creating, copying, freeing; calling functions of the program. See work.h. */
#include "driver/stream/work.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "driver/context/context.h"
#include "driver/graph/graph.h"
#include "driver/ipc/event.h"
#include "driver/memory/memory.h"
#include "driver/module/module.h"
#include "driver/parts.h"
#include "driver/stream/stream.h"

static _Thread_local unsigned callbacks; /* how many functions of the program this thread is in */

/* ---- life ------------------------------------------------------------------------------------ */

struct hed_work *
hed_work_create(struct hed_context *ctx, enum hed_work_kind kind)
{
    struct hed_work *w = calloc(1, sizeof *w);

    if (!w)
        return NULL;
    w->kind = kind;
    w->ctx = ctx;
    hed_context_ref(ctx);
    return w;
}

struct hed_work *
hed_work_create_launch(struct hed_context *ctx, const struct hed_launch *l)
{
    struct hed_work *w = malloc(sizeof *w + HED_PARAMS_ALIGN + l->param_bytes);
    unsigned char *params;

    if (!w)
        return NULL;
    params = (unsigned char *)hed_round_up((uintptr_t)(w + 1), HED_PARAMS_ALIGN);
    *w = (struct hed_work){
        .kind = HED_WORK_KERNEL, .ctx = ctx, .kernel = *l, .has_params_inside = true};
    hed_context_ref(ctx);
    hed_object_ref(&l->function->object);
    w->kernel.params = params;
    if (l->param_bytes)
        memcpy(params, l->params, l->param_bytes);
    w->kernel.attributes = NULL; /* only nodes of graphs are queried for theirs */
    w->kernel.attribute_count = 0;
    return w;
}

struct hed_work *
hed_work_create_copy(struct hed_context *ctx, const struct hed_copy *c,
                     const CUDA_MEMCPY3D_v2 *given)
{
    struct hed_work *w = hed_work_create(ctx, HED_WORK_COPY);

    if (!w)
        return NULL;
    w->copy = *c;
    w->copy_given = malloc(sizeof *given);
    if (!w->copy_given) {
        hed_work_free(w);
        return NULL;
    }
    *w->copy_given = *given;
    return w;
}

/* Replaces *p by a copy of its n bytes; NULL stays NULL. */
static bool
duplicate_bytes(void **p, size_t n)
{
    void *copy;

    if (!*p)
        return true;
    copy = malloc(n ? n : 1);
    if (copy && n)
        memcpy(copy, *p, n);
    *p = copy;
    return copy != NULL;
}

unsigned char *
hed_params_create(uint32_t size)
{
    const size_t whole = hed_round_up(size ? size : 1, HED_PARAMS_ALIGN);
    unsigned char *params = aligned_alloc(HED_PARAMS_ALIGN, whole);

    return params ? memset(params, 0, whole) : NULL;
}

static bool
copy_kernel(struct hed_work *w)
{
    struct hed_launch *k = &w->kernel;
    unsigned char *params = k->params ? hed_params_create(k->param_bytes) : NULL;
    void *attributes = k->attributes;
    const bool has_params = params || !k->params;
    const bool has_attributes =
        duplicate_bytes(&attributes, k->attribute_count * sizeof *k->attributes);

    if (params)
        memcpy(params, k->params, k->param_bytes);
    k->params = params;
    w->has_params_inside = false;
    k->attributes = attributes;
    if (k->function)
        hed_object_ref(&k->function->object);
    return has_params && has_attributes;
}

static bool
copy_copy(struct hed_work *w)
{
    void *given = w->copy_given;
    const bool has_given = duplicate_bytes(&given, sizeof *w->copy_given);
    const bool has_staged = duplicate_bytes(&w->staged, w->staged_size);

    w->copy_given = given;
    if (w->staged)
        w->copy.from.at = (uint64_t)(uintptr_t)w->staged;
    return has_given && has_staged;
}

/* Gives a copy its own copies of what it points to. If it returns false there is no memory, but the
 * work can be freed. */
static bool
own_contents(struct hed_work *w)
{
    switch (w->kind) {
    case HED_WORK_KERNEL:
        return copy_kernel(w);
    case HED_WORK_COPY:
        return copy_copy(w);
    case HED_WORK_EVENT_RECORD:
    case HED_WORK_EVENT_WAIT:
        hed_object_ref(&w->event.event->object);
        w->event.shared = 0;
        return true;
    case HED_WORK_ALLOC:
    case HED_WORK_FREE:
        hed_pool_ref(w->memory.pool);
        return true;
    case HED_WORK_MEMOP: {
        void *ops = w->memops.ops;
        const bool good = duplicate_bytes(&ops, w->memops.count * sizeof w->memops.ops[0]);

        w->memops.ops = ops;
        return good;
    }
    case HED_WORK_GRAPH:
        hed_graph_exec_ref(w->graph);
        return true;
    default:
        return true;
    }
}

struct hed_work *
hed_work_copy(const struct hed_work *from)
{
    struct hed_work *w = malloc(sizeof *w);

    if (!w)
        return NULL;
    *w = *from;
    w->next = NULL;
    w->number = 0;
    w->after = (struct hed_points){0};
    w->result = NULL;
    hed_context_ref(w->ctx);
    if (!own_contents(w)) {
        hed_work_free(w);
        return NULL;
    }
    return w;
}

void
hed_work_free(struct hed_work *w)
{
    if (!w)
        return;
    switch (w->kind) {
    case HED_WORK_KERNEL:
        if (!w->has_params_inside)
            free((void *)(uintptr_t)w->kernel.params);
        free(w->kernel.attributes);
        if (w->kernel.function)
            hed_object_put(&w->kernel.function->object);
        break;
    case HED_WORK_COPY:
        free(w->copy_given);
        free(w->staged);
        break;
    case HED_WORK_EVENT_RECORD:
        /* It has run or never will: other processes must not wait for it. */
        if (w->event.event && w->event.shared)
            hed_shared_event_reached(w->event.event->shared, w->event.shared);
        __attribute__((fallthrough));
    case HED_WORK_EVENT_WAIT:
        if (w->event.event)
            hed_object_put(&w->event.event->object);
        break;
    case HED_WORK_ALLOC:
    case HED_WORK_FREE:
        hed_pool_unref(w->memory.pool);
        break;
    case HED_WORK_MEMOP:
        free(w->memops.ops);
        break;
    case HED_WORK_GRAPH:
        if (w->graph)
            hed_graph_exec_unref(w->graph);
        break;
    default:
        break;
    }
    hed_points_clear(&w->after);
    hed_context_unref(w->ctx);
    free(w);
}

/* ---- functions of the program ---------------------------------------------------------------- */

bool
hed_in_callback(void)
{
    return callbacks > 0;
}

void
hed_work_call(struct hed_work *w)
{
    callbacks++;
    if (w->kind == HED_WORK_HOST)
        w->host.fn(w->host.data);
    else
        w->callback.fn(w->callback.stream, hed_context_error(w->ctx), w->callback.data);
    callbacks--;
}
