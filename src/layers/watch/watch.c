/* The watch layer: sees what a program would like to know afterwards, for heddle.h (setting
 * control=yes). How many launches were there? Which memory is still allocated, and by whom? Is a
 * context broken?
 *
 * It changes no call. It is below the fault layer: an error that was injected breaks nothing.
 *
 * Invariant: a block is taken out of the table before its memory is freed, because another thread
 * may be given the same address right after, and put back if it was not freed. The same is true of
 * contexts, and of the blocks that end with one.
 *
 * Memory of arrays and pools is what the program asked for, not what the device has lost. Physical
 * memory counts until its handle is released, mapped or not. Host memory and what graphs
 * allocate are not counted, but for pools in host memory, which look like others.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/err.h"
#include "core/array_format.h"
#include "core/config.h"
#include "core/errors.h"
#include "core/layer.h"
#include "core/refusal.h"
#include "core/stats.h"
#include "core/stream.h"
#include "gen/cuda_sets.h"
#include "layers/watch/caller.h"
#include "layers/watch/contexts.h"
#include "layers/watch/table.h"

struct watch {
    _Atomic uint64_t launches;
    _Atomic uint64_t context_errors;
    _Atomic bool captures; /* a capture has been begun */
    struct watch_table table;
    struct watch_contexts contexts;
};

/* What the spec says of a call that concerns memory: fields that its word does not name are 0. */
struct watch_call {
    uint32_t id;
    void *args;
    struct hed_place out;   /* where the address or handle goes */
    struct hed_place pitch; /* bytes of a row */
    uint64_t bytes, rows, key, at;
    uint64_t width, height, depth, format, channels, levels, flags;
    uint64_t where, device, stream;
    bool ptds;
};

/* ---- errors ---------------------------------------------------------------------------------- */

/* "This leaves the process in an inconsistent state and any further CUDA work will return the same
 * error. To continue using CUDA, the process must be terminated and relaunched." (CUDA Driver API,
 * CUresult, of each of them or in like words) */
static bool
breaks_context(CUresult r)
{
    switch (r) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
        return true;
    default:
        return false;
    }
}

/* The context that a call's error comes from: that of its stream, or the current one. NULL if that
 * cannot be found out: an event does not say whose it is. */
static CUcontext
context_of_error(struct hed_layer *self, const struct hed_call_info *info, const void *args)
{
    CUcontext context = NULL;
    uint64_t stream = 0;

    if (hed_call_stream(info, args, &stream) && stream > HED_STREAM_PER_THREAD)
        return hed_call(self->next, cuStreamGetCtx, .hStream = (CUstream)(uintptr_t)stream,
                        .pctx = &context) == CUDA_SUCCESS
                   ? context
                   : NULL;
    return info->of_kind == HED_CUDA_KIND_EVENT ? NULL : hed_current_context(self->next);
}

static void
note_broken(struct watch *w, CUcontext context, const char *call, CUresult r)
{
    const char *name = "an unknown error";
    char cause[256];

    if (!watch_context_broke(&w->contexts, context))
        return;
    atomic_fetch_add_explicit(&w->context_errors, 1, memory_order_relaxed);
    (void)hed_cuda_error_name(r, &name);
    if (hed_problem_take_cause(cause, sizeof cause))
        hed_problem_add("a context is broken: %s (%s: %s)", cause, call, name);
    else
        hed_problem_add("a context is broken: %s was answered with %s", call, name);
}

static __attribute__((noinline, cold)) void
note_result(struct hed_layer *self, enum hed_cuda_call id, const void *args, CUresult r)
{
    const struct hed_call_info *info = &hed_cuda_info[id];

    if (breaks_context(r))
        note_broken(self->state, context_of_error(self, info, args), info->name, r);
}

static CUresult
watch_any(struct hed_layer *self, enum hed_cuda_call id, void *args)
{
    const CUresult r = hed_cuda_invoke(self->next, id, args);
    struct watch *w = self->state;

    if (__builtin_expect(r != CUDA_SUCCESS, 0))
        note_result(self, id, args, r);
    else if (hed_cuda_info[id].does == HED_DOES_LAUNCH)
        atomic_fetch_add_explicit(&w->launches, 1, memory_order_relaxed);
    return r;
}

/* The calls that are not treated in a way of their own. */
static CUresult
watch_other(struct hed_layer *self, enum hed_cuda_call id, void *args)
{
    const CUresult r = watch_any(self, id, args);
    struct watch *w = self->state;

    /* What makes a context makes it the current one. */
    if (__builtin_expect(hed_cuda_info[id].new_kind == HED_CUDA_KIND_CONTEXT, 0) &&
        r == CUDA_SUCCESS)
        watch_context_made(&w->contexts, hed_current_context(self->next));
    return r;
}

static CUresult
make_watched(struct hed_layer *self, const struct watch_call *c)
{
    return watch_any(self, c->id, c->args);
}

/* ---- contexts -------------------------------------------------------------------------------- */

/* What is known of a context that is about to end. */
struct watch_ending {
    struct watch_context context;
    struct watch_taken memory;
    bool known;
};

/* Before the call that ends it: its memory and itself are not found any more. */
static void
begin_ending(struct watch *w, CUcontext context, struct watch_ending *e)
{
    e->known = watch_context_take(&w->contexts, context, &e->context);
    watch_table_take_context(&w->table, context, &e->memory);
}

static void
finish_ending(struct watch *w, struct watch_ending *e, bool ended)
{
    if (!ended)
        watch_table_put_back(&w->table, &e->memory);
    if (!ended && e->known)
        watch_context_put_back(&w->contexts, &e->context);
    watch_taken_free(&e->memory);
}

/* A context has ended in a way that nobody could foresee. */
static void
forget_context(struct watch *w, CUcontext context)
{
    struct watch_ending e;

    begin_ending(w, context, &e);
    finish_ending(w, &e, true);
}

static CUresult
watch_do_context_end(struct hed_layer *self, const struct watch_call *c)
{
    struct watch_ending e;

    begin_ending(self->state, (CUcontext)(uintptr_t)c->key, &e);

    const CUresult r = make_watched(self, c);

    finish_ending(self->state, &e, r == CUDA_SUCCESS);
    return r;
}

/* A context that was attached more than once lives on. */
static CUresult
watch_do_context_detach(struct hed_layer *self, const struct watch_call *c)
{
    const CUcontext context = (CUcontext)(uintptr_t)c->key;
    const CUresult r = make_watched(self, c);
    unsigned version = 0;

    if (r == CUDA_SUCCESS && context &&
        hed_call(self->next, cuCtxGetApiVersion, .ctx = context, .version = &version) ==
            CUDA_ERROR_INVALID_CONTEXT)
        forget_context(self->state, context);
    return r;
}

static CUresult
watch_do_primary_retain(struct hed_layer *self, const struct watch_call *c)
{
    const CUresult r = make_watched(self, c);
    struct watch *w = self->state;

    if (r == CUDA_SUCCESS && c->out.at)
        watch_primary_retained(&w->contexts, (CUdevice)c->device,
                               (CUcontext)(uintptr_t)hed_place_get(c->out));
    return r;
}

static CUresult
watch_do_primary_reset(struct hed_layer *self, const struct watch_call *c)
{
    struct watch *w = self->state;
    struct watch_context primary = {.context = NULL};
    struct watch_ending e;

    (void)watch_primary_find(&w->contexts, (CUdevice)c->device, &primary);
    begin_ending(w, primary.context, &e);

    const CUresult r = make_watched(self, c);

    finish_ending(w, &e, r == CUDA_SUCCESS);
    return r;
}

static bool
is_primary_inactive(struct hed_layer *self, CUdevice device)
{
    unsigned flags = 0;
    int active = 1;

    return hed_call(self->next, cuDevicePrimaryCtxGetState, .dev = device, .flags = &flags,
                    .active = &active) == CUDA_SUCCESS &&
           !active;
}

/* The last release ends the context. Others may have retained it by calls that we do not see. */
static CUresult
watch_do_primary_release(struct hed_layer *self, const struct watch_call *c)
{
    const CUdevice device = (CUdevice)c->device;
    struct watch *w = self->state;
    struct watch_context primary = {.context = NULL};
    const bool last = watch_primary_find(&w->contexts, device, &primary) && primary.refs <= 1;
    struct watch_ending e;

    if (last)
        begin_ending(w, primary.context, &e);

    const CUresult r = make_watched(self, c);
    const bool ended = r == CUDA_SUCCESS && is_primary_inactive(self, device);

    if (last)
        finish_ending(w, &e, ended);
    else if (ended)
        forget_context(w, primary.context);
    if (r == CUDA_SUCCESS && !ended)
        watch_primary_released(&w->contexts, primary.context);
    return r;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Notes what a successful call has made. If there is no memory for that, nothing can be told of the
 * block later, and its end finds nothing. */
static CUresult
note_block(struct hed_layer *self, const struct watch_call *c, uint64_t bytes, bool of_context,
           CUresult r)
{
    struct watch *w = self->state;

    if (r != CUDA_SUCCESS || !c->out.at || hed_place_get(c->out) == 0)
        return r;

    struct watch_block b = {
        .bytes = bytes,
        .context = of_context ? hed_current_context(self->next) : NULL,
        .kind = hed_cuda_info[c->id].new_kind,
        .refs = 1,
        .item = {.address = hed_place_get(c->out)},
    };

    watch_find_caller(b.item.library, sizeof b.item.library);
    (void)watch_table_put(&w->table, &b);
    return r;
}

static CUresult
watch_do_alloc(struct hed_layer *self, const struct watch_call *c)
{
    return note_block(self, c, c->bytes, true, make_watched(self, c));
}

static CUresult
watch_do_alloc_rows(struct hed_layer *self, const struct watch_call *c)
{
    const CUresult r = make_watched(self, c);

    return note_block(self, c, hed_place_get(c->pitch) * c->rows, true, r);
}

static CUresult
watch_do_alloc_array(struct hed_layer *self, const struct watch_call *c)
{
    const uint64_t element =
        hed_array_element_bytes((CUarray_format)c->format, (unsigned)c->channels);
    const bool layered = c->flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
    const unsigned levels = c->levels ? (unsigned)c->levels : 1;
    uint64_t w = c->width;
    uint64_t h = c->height ? c->height : 1;
    uint64_t d = c->depth ? c->depth : 1;
    uint64_t elements = 0;

    for (unsigned i = 0; i < levels && i < 64; i++) {
        elements += w * h * d;
        w = w > 1 ? w / 2 : w;
        h = h > 1 ? h / 2 : h;
        d = d > 1 && !layered ? d / 2 : d; /* layers and faces stay as many */
    }
    return note_block(self, c, elements * element, true, make_watched(self, c));
}

/* Before the first capture, no stream has to be asked. */
static CUresult
watch_do_capture(struct hed_layer *self, const struct watch_call *c)
{
    struct watch *w = self->state;

    atomic_store_explicit(&w->captures, true, memory_order_relaxed);
    return make_watched(self, c);
}

/* Does a call on this stream become a node of a graph? Then it neither takes nor frees memory. */
static bool
is_captured(struct hed_layer *self, uint64_t stream, bool ptds)
{
    const struct watch *w = self->state;

    return atomic_load_explicit(&w->captures, memory_order_relaxed) &&
           hed_stream_captures(self->next, stream, ptds);
}

/* Memory of a pool outlives contexts. */
static CUresult
watch_do_pool_alloc(struct hed_layer *self, const struct watch_call *c)
{
    if (is_captured(self, c->stream, c->ptds))
        return make_watched(self, c);
    return note_block(self, c, c->bytes, false, make_watched(self, c));
}

static CUresult
watch_do_physical_make(struct hed_layer *self, const struct watch_call *c)
{
    if (c->where > CU_MEM_LOCATION_TYPE_DEVICE) /* it is the host's */
        return make_watched(self, c);
    return note_block(self, c, c->bytes, false, make_watched(self, c));
}

static CUresult
watch_do_physical_retain(struct hed_layer *self, const struct watch_call *c)
{
    const CUresult r = make_watched(self, c);
    struct watch *w = self->state;

    if (r == CUDA_SUCCESS && c->out.at)
        (void)watch_table_share(&w->table, HED_CUDA_KIND_PHYSICAL, hed_place_get(c->out));
    return r;
}

static CUresult
end_block(struct hed_layer *self, const struct watch_call *c, uint32_t kind)
{
    struct watch *w = self->state;
    struct watch_block b;
    const bool known = watch_table_take(&w->table, kind, c->key, &b);
    const CUresult r = make_watched(self, c);

    if (known && r != CUDA_SUCCESS)
        (void)watch_table_put(&w->table, &b);
    else if (r != CUDA_SUCCESS)
        (void)watch_table_share(&w->table, kind, c->key);
    return r;
}

static CUresult
watch_do_free(struct hed_layer *self, const struct watch_call *c)
{
    const struct hed_call_info *info = &hed_cuda_info[c->id];
    uint64_t stream = 0;

    if (hed_call_stream(info, c->args, &stream) &&
        is_captured(self, stream, hed_call_ptds(info, c->args)))
        return make_watched(self, c);
    return end_block(self, c, info->of_kind);
}

static CUresult
watch_do_physical_release(struct hed_layer *self, const struct watch_call *c)
{
    return end_block(self, c, HED_CUDA_KIND_PHYSICAL);
}

/* The calls that are treated in a way of their own: all others go to watch_other(). */
#define WATCHED(X)                      \
    HED_CUDA_MEMORY_ALLOC(X)            \
    HED_CUDA_MEMORY_ALLOC_ROWS(X)       \
    HED_CUDA_MEMORY_ALLOC_ARRAY(X)      \
    HED_CUDA_MEMORY_POOL_ALLOC(X)       \
    HED_CUDA_MEMORY_PHYSICAL_MAKE(X)    \
    HED_CUDA_MEMORY_PHYSICAL_RETAIN(X)  \
    HED_CUDA_MEMORY_PHYSICAL_RELEASE(X) \
    HED_CUDA_MEMORY_FREE(X)             \
    HED_CUDA_MEMORY_CAPTURE(X)          \
    HED_CUDA_MEMORY_CONTEXT_END(X)      \
    HED_CUDA_MEMORY_CONTEXT_DETACH(X)   \
    HED_CUDA_MEMORY_PRIMARY_RETAIN(X)   \
    HED_CUDA_MEMORY_PRIMARY_RELEASE(X)  \
    HED_CUDA_MEMORY_PRIMARY_RESET(X)

#define WATCH_CALL(call, word, ...)                                                             \
    static CUresult watch_##call(struct hed_layer *self, struct hed_##call *a)                  \
    {                                                                                           \
        return watch_do_##word(self,                                                            \
                               &(struct watch_call){.id = HED_##call, .args = a, __VA_ARGS__}); \
    }

WATCHED(WATCH_CALL)

static const struct hed_cuda_ops watch_cuda = {
#define WATCH_ENTRY(call, ...) .call = watch_##call,
    WATCHED(WATCH_ENTRY)
#undef WATCH_ENTRY
};

/* ---- what the program asks ------------------------------------------------------------------- */

/* Waits for the work of a context. */
static CUresult
settle_context(struct hed_layer *self, CUcontext context)
{
    CUcontext popped;
    CUresult r;

    if (hed_call(self->next, cuCtxPushCurrent_v2, .ctx = context) != CUDA_SUCCESS)
        return CUDA_SUCCESS; /* another thread has ended it */
    r = hed_call(self->next, cuCtxSynchronize);
    if (breaks_context(r))
        note_broken(self->state, context, "a later wait", r);
    (void)hed_call(self->next, cuCtxPopCurrent_v2, .pctx = &popped);
    return r;
}

/* The same for a device's primary context, if it is in use. */
static CUresult
settle_primary(struct hed_layer *self, int i)
{
    CUcontext context;
    CUdevice device;

    if (hed_call(self->next, cuDeviceGet, .device = &device, .ordinal = i) != CUDA_SUCCESS ||
        is_primary_inactive(self, device) ||
        hed_call(self->next, cuDevicePrimaryCtxRetain, .pctx = &context, .dev = device) !=
            CUDA_SUCCESS)
        return CUDA_SUCCESS;

    const CUresult r = settle_context(self, context);

    (void)hed_call(self->next, cuDevicePrimaryCtxRelease_v2, .dev = device);
    /* The program may have released it meanwhile: then that was the last one. */
    if (is_primary_inactive(self, device))
        forget_context(self->state, context);
    return r;
}

/* A program that captures a graph, or that has not initialised CUDA, has nothing to wait for. */
static CUresult
settle_all(struct hed_layer *self)
{
    CUcontext made[WATCH_CONTEXTS];
    struct watch *w = self->state;
    CUresult first = CUDA_SUCCESS;
    int count = 0;

    if (hed_call(self->next, cuDeviceGetCount, .count = &count) != CUDA_SUCCESS)
        return CUDA_SUCCESS;
    for (int i = 0; i < count; i++) {
        const CUresult r = settle_primary(self, i);

        first = first == CUDA_SUCCESS ? r : first;
    }

    const size_t more = watch_contexts_made(&w->contexts, made);

    for (size_t i = 0; i < more; i++) {
        const CUresult r = settle_context(self, made[i]);

        first = first == CUDA_SUCCESS ? r : first;
    }
    return first;
}

static int
watch_control(struct hed_layer *self, struct hed_control *c, struct hed_why *why)
{
    struct watch *w = self->state;

    (void)why;
    switch (c->what) {
    case HED_CONTROL_MEMORY:
        c->count = watch_table_list(&w->table, c->count, c->out,
                                    c->room / sizeof(struct hed_control_memory));
        return 0;
    case HED_CONTROL_SETTLE:
        c->count = (uint64_t)settle_all(self);
        return 0;
    default:
        return HED_ENOTSUP;
    }
}

static void
watch_count(struct hed_layer *self, struct hed_counts *out)
{
    struct watch *w = self->state;
    const struct watch_totals t = watch_table_totals(&w->table);

    out->launches = atomic_load_explicit(&w->launches, memory_order_relaxed);
    out->context_errors = atomic_load_explicit(&w->context_errors, memory_order_relaxed);
    out->allocations = t.serial;
    out->live_allocations = t.live;
    out->memory_bytes = t.bytes;
    out->memory_peak = t.peak;
}

static int
watch_init(struct hed_layer *self, const struct hed_config *config, struct hed_why *why)
{
    struct watch *w = calloc(1, sizeof *w);

    (void)config;
    if (!w) {
        hed_why_set(why, "watch: %s", hed_err_text(HED_ENOMEM));
        return HED_ENOMEM;
    }
    watch_table_init(&w->table);
    watch_contexts_init(&w->contexts);
    self->state = w;
    return 0;
}

extern const struct hed_layer_type hed_watch_layer;

const struct hed_layer_type hed_watch_layer = {
    .name = "watch",
    .cuda = &watch_cuda,
    .cuda_any = watch_other,
    .init = watch_init,
    .count = watch_count,
    .control = watch_control,
};
