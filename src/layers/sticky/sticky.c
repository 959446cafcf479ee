/* The sticky layer: a launch that is refused sticks to its context.
 *
 * CUDA reports a launch that it refuses (a wrong configuration, too few resources, no code for the
 * device) once, as the result of the launch, and the context stays usable. A library that ignores
 * that result goes on and reports success without having computed anything. Under this layer the
 * context behaves as after a fault of a kernel: from then on every call that launches, copies,
 * fills, orders, waits, captures or makes an object in it answers the error of the refused launch.
 * Asking, setting and ending go on as before, so that a program can find out and clean up. A new
 * context starts afresh, also one that gets the handle of an old one.
 *
 * It stands right above the backend, where deferred launches arrive too.
 *
 * Invariant: count is the number of entries of list that are in use; they are the first ones.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/lock.h"
#include "base/log.h"
#include "core/config.h"
#include "core/errors.h"
#include "core/layer.h"
#include "core/stream.h"

#define STUCK_MAX 64 /* contexts; those of more refused launches behave as under CUDA */

struct stuck {
    CUcontext context;
    unsigned long long id; /* cuCtxGetId: tells a new context from an old one of the same handle */
    CUresult error;
};

struct sticky {
    struct hed_lock lock; /* guards list and changes of count */
    struct stuck list[STUCK_MAX];
    _Atomic uint32_t count; /* relaxed: a thread sees its own refusals, others see them soon */
};

/* The context that a call is made in, and its id; false if there is none. */
static bool
find_context(struct hed_layer *self, const struct hed_call_info *info, const void *args,
             struct stuck *out)
{
    out->context = info->of_kind == HED_CUDA_KIND_CONTEXT
                       ? (CUcontext)(uintptr_t)hed_call_about(info, args)
                       : NULL;
    if (!out->context)
        out->context = hed_current_context(self->next);
    if (!out->context)
        return false;
    if (hed_call(self->next, cuCtxGetId, .ctx = out->context, .ctxId = &out->id) != CUDA_SUCCESS)
        out->id = 0; /* a driver before CUDA 12.0 */
    return true;
}

/* Does a call answer the error of its context? */
static bool
is_answered(enum hed_call_does does)
{
    switch (does) {
    case HED_DOES_LAUNCH:
    case HED_DOES_COPY:
    case HED_DOES_FILL:
    case HED_DOES_MOVE:
    case HED_DOES_ORDER:
    case HED_DOES_WAIT:
    case HED_DOES_POLL:
    case HED_DOES_BEGIN_CAPTURE:
    case HED_DOES_END_CAPTURE:
    case HED_DOES_MAKE:
        return true;
    default:
        return false;
    }
}

/* What sticks to a context. An entry of an old context with the same handle is dropped. */
static CUresult
find_error(struct sticky *s, const struct stuck *context)
{
    CUresult error = CUDA_SUCCESS;

    hed_lock(&s->lock);

    uint32_t count = atomic_load_explicit(&s->count, memory_order_relaxed);

    for (uint32_t i = 0; i < count; i++) {
        if (s->list[i].context != context->context)
            continue;
        if (s->list[i].id == context->id)
            error = s->list[i].error;
        else
            s->list[i] = s->list[--count];
        break;
    }
    atomic_store_explicit(&s->count, count, memory_order_relaxed);
    hed_unlock(&s->lock);
    return error;
}

/* Returns whether that is new: the first refusal counts. */
static bool
add_error(struct sticky *s, const struct stuck *context)
{
    const bool known = find_error(s, context) != CUDA_SUCCESS;
    bool added = false;

    hed_lock(&s->lock);

    const uint32_t count = atomic_load_explicit(&s->count, memory_order_relaxed);

    if (!known && count < STUCK_MAX) {
        s->list[count] = *context;
        atomic_store_explicit(&s->count, count + 1, memory_order_relaxed);
        added = true;
    }
    hed_unlock(&s->lock);
    return added;
}

static void
note_refusal(struct hed_layer *self, const struct hed_call_info *info, const void *args,
             CUresult error)
{
    struct stuck context = {.error = error};
    const char *name = "an unknown error";

    if (!find_context(self, info, args, &context) || !add_error(self->state, &context))
        return;
    (void)hed_cuda_error_name(error, &name);
    hed_warn(CORE,
             "%s was refused with %s. Later calls in this context answer the same, because "
             "sticky_launch is on",
             info->name, name);
}

static CUresult
sticky_cuda_any(struct hed_layer *self, enum hed_cuda_call id, void *args)
{
    const struct hed_call_info *info = &hed_cuda_info[id];
    struct sticky *s = self->state;
    struct stuck context;

    if (atomic_load_explicit(&s->count, memory_order_relaxed) && is_answered(info->does) &&
        find_context(self, info, args, &context)) {
        const CUresult error = find_error(s, &context);

        if (error != CUDA_SUCCESS)
            return error;
    }

    const CUresult r = hed_cuda_invoke(self->next, id, args);

    if (r != CUDA_SUCCESS && info->does == HED_DOES_LAUNCH)
        note_refusal(self, info, args, r);
    return r;
}

static int
sticky_init(struct hed_layer *self, const struct hed_config *config, struct hed_why *why)
{
    struct sticky *s = calloc(1, sizeof *s);

    if (!s) {
        hed_why_set(why, "sticky: %s", hed_err_text(HED_ENOMEM));
        return HED_ENOMEM;
    }
    hed_lock_init(&s->lock, HED_RANK_STICKY);
    self->state = s;
    return 0;
}

const struct hed_layer_type hed_sticky_layer = {
    .name = "sticky",
    .cuda_any = sticky_cuda_any,
    .init = sticky_init,
};
