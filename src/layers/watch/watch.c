/* The watch layer: sees what a program would like to know afterwards, for heddle.h (setting
 * control=yes). How many launches were there? Which memory is still allocated, and by whom? Is a
 * context broken?
 *
 * It changes no call. It is below the fault layer: an error that was injected breaks nothing.
 *
 * Invariants:
 * 1. A block is taken out of the table before its memory is freed, because another thread may be
 *    given the same address right after, and put back if it was not freed.
 * 2. `broken` has the contexts of which a problem was told, until they end.
 *
 * Memory of arrays and pools is what the program asked for, not what the device has lost. Physical
 * memory counts until its handle is released, mapped or not. Host memory and what graphs
 * allocate are not counted.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/lock.h"
#include "base/str.h"
#include "core/array_format.h"
#include "core/config.h"
#include "core/errors.h"
#include "core/layer.h"
#include "core/refusal.h"
#include "core/stats.h"
#include "gen/cuda_sets.h"
#include "layers/watch/table.h"

#define CONTEXTS_MAX 64
#define FRAMES 16

struct watch_primary {
    CUdevice device;
    CUcontext context; /* NULL: free */
};

struct watch {
    _Atomic uint64_t launches;
    _Atomic uint64_t context_errors;
    struct watch_table table;
    struct hed_lock lock; /* guards the rest */
    struct watch_primary primaries[CONTEXTS_MAX];
    CUcontext broken[CONTEXTS_MAX];
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

static CUcontext
current_context(struct hed_layer *self)
{
    CUcontext context = NULL;

    return hed_call(self->next, cuCtxGetCurrent, .pctx = &context) == CUDA_SUCCESS ? context : NULL;
}

/* True if the context was not known to be broken. Where there are too many, each is told again. */
static bool
note_broken(struct watch *w, CUcontext context)
{
    size_t free_at = CONTEXTS_MAX;
    bool known = false;

    hed_lock(&w->lock);
    for (size_t i = 0; i < CONTEXTS_MAX; i++) {
        known = known || (context && w->broken[i] == context);
        free_at = !w->broken[i] && free_at == CONTEXTS_MAX ? i : free_at;
    }
    if (!known && free_at < CONTEXTS_MAX)
        w->broken[free_at] = context;
    hed_unlock(&w->lock);
    return !known;
}

static __attribute__((noinline, cold)) void
note_result(struct hed_layer *self, const char *call, CUresult r)
{
    struct watch *w = self->state;
    const char *name = "an unknown error";
    char cause[256];

    if (!breaks_context(r) || !note_broken(w, current_context(self)))
        return;
    atomic_fetch_add_explicit(&w->context_errors, 1, memory_order_relaxed);
    (void)hed_cuda_error_name(r, &name);
    if (hed_problem_take_cause(cause, sizeof cause))
        hed_problem_add("a context is broken: %s (%s: %s)", cause, call, name);
    else
        hed_problem_add("a context is broken: %s was answered with %s", call, name);
}

static CUresult
watch_any(struct hed_layer *self, enum hed_cuda_call id, void *args)
{
    const CUresult r = hed_cuda_invoke(self->next, id, args);
    struct watch *w = self->state;

    if (__builtin_expect(r != CUDA_SUCCESS, 0))
        note_result(self, hed_cuda_info[id].name, r);
    else if (hed_cuda_info[id].does == HED_DOES_LAUNCH)
        atomic_fetch_add_explicit(&w->launches, 1, memory_order_relaxed);
    return r;
}

static CUresult
make_watched(struct hed_layer *self, const struct watch_call *c)
{
    return watch_any(self, c->id, c->args);
}

/* ---- contexts -------------------------------------------------------------------------------- */

static CUcontext
find_primary(struct watch *w, CUdevice device)
{
    CUcontext context = NULL;

    hed_lock(&w->lock);
    for (size_t i = 0; i < CONTEXTS_MAX; i++)
        if (w->primaries[i].context && w->primaries[i].device == device)
            context = w->primaries[i].context;
    hed_unlock(&w->lock);
    return context;
}

static void
note_primary(struct watch *w, CUdevice device, CUcontext context)
{
    size_t at = CONTEXTS_MAX;

    hed_lock(&w->lock);
    for (size_t i = CONTEXTS_MAX; i-- > 0;)
        if (!w->primaries[i].context || w->primaries[i].device == device)
            at = i;
    for (size_t i = 0; i < CONTEXTS_MAX; i++)
        if (w->primaries[i].context && w->primaries[i].device == device)
            at = i;
    if (at < CONTEXTS_MAX)
        w->primaries[at] = (struct watch_primary){device, context};
    hed_unlock(&w->lock);
}

static void
forget_context(struct watch *w, CUcontext context)
{
    watch_table_drop(&w->table, context);
    hed_lock(&w->lock);
    for (size_t i = 0; context && i < CONTEXTS_MAX; i++) {
        if (w->broken[i] == context)
            w->broken[i] = NULL;
        if (w->primaries[i].context == context)
            w->primaries[i].context = NULL;
    }
    hed_unlock(&w->lock);
}

static CUresult
watch_do_context_end(struct hed_layer *self, const struct watch_call *c)
{
    const CUresult r = make_watched(self, c);

    if (r == CUDA_SUCCESS)
        forget_context(self->state, (CUcontext)(uintptr_t)c->key);
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

    if (r == CUDA_SUCCESS && c->out.at)
        note_primary(self->state, (CUdevice)c->device, (CUcontext)(uintptr_t)hed_place_get(c->out));
    return r;
}

static CUresult
watch_do_primary_reset(struct hed_layer *self, const struct watch_call *c)
{
    const CUcontext context = find_primary(self->state, (CUdevice)c->device);
    const CUresult r = make_watched(self, c);

    if (r == CUDA_SUCCESS)
        forget_context(self->state, context);
    return r;
}

static CUresult
watch_do_primary_release(struct hed_layer *self, const struct watch_call *c)
{
    const CUcontext context = find_primary(self->state, (CUdevice)c->device);
    const CUresult r = make_watched(self, c);
    unsigned flags = 0;
    int active = 1;

    if (r == CUDA_SUCCESS &&
        hed_call(self->next, cuDevicePrimaryCtxGetState, .dev = (CUdevice)c->device,
                 .flags = &flags, .active = &active) == CUDA_SUCCESS &&
        !active)
        forget_context(self->state, context);
    return r;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static const char *
file_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;

    return slash ? slash + 1 : path ? path : "";
}

static bool
begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The library that asked for memory: the first one on the stack that is neither heddle nor a shared
 * CUDA runtime. */
static __attribute__((noinline)) void
find_caller(char *out, size_t size)
{
    void *frames[FRAMES];
    const int n = backtrace(frames, FRAMES);
    Dl_info info;

    out[0] = '\0';
    for (int i = 0; i < n; i++) {
        const char *name = dladdr(frames[i], &info) ? file_name(info.dli_fname) : "";

        if (!*name || begins_with(name, "libheddle") || begins_with(name, "libcuda.so") ||
            begins_with(name, "libcudart.so"))
            continue;
        (void)hed_str_copy(out, size, name);
        return;
    }
}

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
        .context = of_context ? current_context(self) : NULL,
        .kind = hed_cuda_info[c->id].new_kind,
        .refs = 1,
        .item = {.address = hed_place_get(c->out)},
    };

    find_caller(b.item.library, sizeof b.item.library);
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
    const uint64_t rows = (c->height ? c->height : 1) * (c->depth ? c->depth : 1);

    return note_block(self, c, c->width * rows * element, true, make_watched(self, c));
}

/* Memory of a pool outlives contexts. */
static CUresult
watch_do_pool_alloc(struct hed_layer *self, const struct watch_call *c)
{
    return note_block(self, c, c->bytes, false, make_watched(self, c));
}

static CUresult
watch_do_physical_make(struct hed_layer *self, const struct watch_call *c)
{
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
    return end_block(self, c, hed_cuda_info[c->id].of_kind);
}

static CUresult
watch_do_physical_release(struct hed_layer *self, const struct watch_call *c)
{
    return end_block(self, c, HED_CUDA_KIND_PHYSICAL);
}

/* The calls that are treated in a way of their own: all others go to watch_any(). */
#define WATCHED(X)                      \
    HED_CUDA_MEMORY_ALLOC(X)            \
    HED_CUDA_MEMORY_ALLOC_ROWS(X)       \
    HED_CUDA_MEMORY_ALLOC_ARRAY(X)      \
    HED_CUDA_MEMORY_POOL_ALLOC(X)       \
    HED_CUDA_MEMORY_PHYSICAL_MAKE(X)    \
    HED_CUDA_MEMORY_PHYSICAL_RETAIN(X)  \
    HED_CUDA_MEMORY_PHYSICAL_RELEASE(X) \
    HED_CUDA_MEMORY_FREE(X)             \
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

/* Waits for the work of a device's primary context, if it is in use. */
static CUresult
settle_device(struct hed_layer *self, int i)
{
    CUcontext context;
    CUdevice device;
    unsigned flags;
    int active = 0;
    CUresult r;

    if (hed_call(self->next, cuDeviceGet, .device = &device, .ordinal = i) != CUDA_SUCCESS ||
        hed_call(self->next, cuDevicePrimaryCtxGetState, .dev = device, .flags = &flags,
                 .active = &active) != CUDA_SUCCESS ||
        !active ||
        hed_call(self->next, cuDevicePrimaryCtxRetain, .pctx = &context, .dev = device) !=
            CUDA_SUCCESS)
        return CUDA_SUCCESS;
    r = hed_call(self->next, cuCtxPushCurrent_v2, .ctx = context);
    if (r == CUDA_SUCCESS) {
        r = hed_call(self->next, cuCtxSynchronize);
        note_result(self, "a later wait", r);
        (void)hed_call(self->next, cuCtxPopCurrent_v2, .pctx = &context);
    }
    (void)hed_call(self->next, cuDevicePrimaryCtxRelease_v2, .dev = device);
    return r;
}

/* A program that captures a graph, or that has not initialised CUDA, has nothing to wait for. */
static CUresult
settle_all(struct hed_layer *self)
{
    CUresult first = CUDA_SUCCESS;
    int count = 0;

    if (hed_call(self->next, cuDeviceGetCount, .count = &count) != CUDA_SUCCESS)
        return CUDA_SUCCESS;
    for (int i = 0; i < count; i++) {
        const CUresult r = settle_device(self, i);

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
    hed_lock_init(&w->lock, HED_RANK_WATCHED);
    self->state = w;
    return 0;
}

extern const struct hed_layer_type hed_watch_layer;

const struct hed_layer_type hed_watch_layer = {
    .name = "watch",
    .cuda = &watch_cuda,
    .cuda_any = watch_any,
    .init = watch_init,
    .count = watch_count,
    .control = watch_control,
};
