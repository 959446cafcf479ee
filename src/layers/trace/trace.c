/* The trace layer: every call becomes a record in a file (docs/trace-format.md).
 *
 * It sees all calls through `any`. A record is made after the call, when its outputs are known;
 * only arguments that the call overwrites are encoded before. Between the two readings of the time
 * there is nothing but the call itself.
 *
 * With the setting control=yes the layer is there without a file, and the program begins and ends
 * files while it runs (heddle.h).
 */
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/str.h"
#include "core/activity.h"
#include "core/config.h"
#include "core/layer.h"
#include "core/session.h"
#include "core/stats.h"
#include "gen/cuda_names.h"
#include "gen/cuda_sets.h"
#include "gen/nvml_names.h"
#include "see/see.h"

/* Is there a file? It can change while the program runs (heddle.h). That is a request, not a
 * barrier: relaxed. */
static _Atomic bool is_running;

static inline bool
is_recorded(void)
{
    return hed_session_recording() && atomic_load_explicit(&is_running, memory_order_relaxed);
}

/* How a call is recorded. Kept in small tables of our own, because the description of a call is far
 * larger, and looking at it costs a cache line for each call. */
enum way {
    WORK,   /* it puts something on a stream, or asks or waits for what is there */
    CAUSE,  /* the same, and the GPU's work that comes from it may be told (core/activity.h) */
    CHANGE, /* it may change what questions are answered: repeats are not counted beyond it */
    INOUT,  /* the same, and it overwrites arguments: they are encoded before the call */
};

static uint8_t
way_of(const struct hed_call_info *info)
{
    if (info->flags & HED_CALL_INOUT)
        return INOUT;
    switch (info->does) {
    case HED_DOES_LAUNCH:
    case HED_DOES_COPY:
    case HED_DOES_FILL:
    case HED_DOES_ORDER:
        return CAUSE;
    case HED_DOES_MOVE:
    case HED_DOES_WAIT:
    case HED_DOES_POLL:
        return WORK;
    default:
        return CHANGE;
    }
}

/* The two APIs differ only in types. TRACE_ANY(cuda, CUDA, CUresult) makes trace_cuda_any and what
 * it needs. */
#define TRACE_ANY(api, API, result_t)                                                          \
    static uint8_t ways_##api[HED_##API##_CALLS]; /* enum way; constant after init */          \
                                                                                               \
    static void set_ways_##api(void)                                                           \
    {                                                                                          \
        for (uint32_t id = 0; id < HED_##API##_CALLS; id++)                                    \
            ways_##api[id] = way_of(&hed_##api##_info[id]);                                    \
    }                                                                                          \
                                                                                               \
    static void put_##api(struct hed_layer *self, enum hed_##api##_call id, const void *args,  \
                          result_t r, uint64_t start, const struct hed_trace_early *early)     \
    {                                                                                          \
        const uint64_t duration = hed_trace_ticks(self->state) - start;                        \
                                                                                               \
        hed_trace_put_##api(self->state, &(struct hed_trace_call){id, (int32_t)r, args, start, \
                                                                  duration, 0, early});        \
    }                                                                                          \
                                                                                               \
    /* With an id, by which records of what the GPU did name this call. */                     \
    static __attribute__((noinline))                                                           \
    result_t trace_##api##_cause(struct hed_layer *self, enum hed_##api##_call id, void *args) \
    {                                                                                          \
        uint64_t before;                                                                       \
        const uint64_t cause = hed_activity_begin_cause(&before);                              \
        const uint64_t start = hed_trace_ticks(self->state);                                   \
        const result_t r = hed_##api##_invoke(self->next, id, args);                           \
        const uint64_t duration = hed_trace_ticks(self->state) - start;                        \
                                                                                               \
        hed_activity_end_cause(before);                                                        \
        hed_trace_put_##api(self->state, &(struct hed_trace_call){id, (int32_t)r, args, start, \
                                                                  duration, cause, NULL});     \
        return r;                                                                              \
    }                                                                                          \
                                                                                               \
    static __attribute__((noinline))                                                           \
    result_t trace_##api##_inout(struct hed_layer *self, enum hed_##api##_call id, void *args) \
    {                                                                                          \
        struct hed_trace_early early;                                                          \
                                                                                               \
        hed_trace_early_##api(&early, id, args);                                               \
                                                                                               \
        const uint64_t start = hed_trace_ticks(self->state);                                   \
        const result_t r = hed_##api##_invoke(self->next, id, args);                           \
                                                                                               \
        put_##api(self, id, args, r, start, &early);                                           \
        return r;                                                                              \
    }                                                                                          \
                                                                                               \
    static result_t trace_##api##_any(struct hed_layer *self, enum hed_##api##_call id,        \
                                      void *args)                                              \
    {                                                                                          \
        /* Also while nothing is recorded: questions after that are not those before it. */    \
        if (ways_##api[id] >= CHANGE)                                                          \
            hed_trace_end_counting();                                                          \
        if (__builtin_expect(!is_recorded(), 0))                                               \
            return hed_##api##_invoke(self->next, id, args);                                   \
        if (ways_##api[id] == INOUT)                                                           \
            return trace_##api##_inout(self, id, args);                                        \
        if (ways_##api[id] == CAUSE && hed_activity_is_offered())                              \
            return trace_##api##_cause(self, id, args);                                        \
                                                                                               \
        const uint64_t start = hed_trace_ticks(self->state);                                   \
        const result_t r = hed_##api##_invoke(self->next, id, args);                           \
                                                                                               \
        put_##api(self, id, args, r, start, NULL);                                             \
        return r;                                                                              \
    }

TRACE_ANY(cuda, CUDA, CUresult)
TRACE_ANY(nvml, NVML, nvmlReturn_t)

/* ---- questions ------------------------------------------------------------------------------- */

static bool counts_repeats; /* constant after init */

/* Puts a question that was expected to be counted, and so was not timed, but failed (words is NULL)
 * or got another answer than before. */
static __attribute__((noinline)) void
put_untimed(struct hed_layer *self, enum hed_cuda_call id, const void *args, CUresult r,
            const uint64_t *words)
{
    const uint64_t now = hed_trace_ticks(self->state);
    const struct hed_trace_call call = {id, (int32_t)r, args, now, HED_TRACE_NOT_TIMED, 0, NULL};

    if (words)
        hed_trace_put_first(self->state, &call, words);
    else
        hed_trace_put_cuda(self->state, &call);
}

static void
put_question(struct hed_layer *self, enum hed_cuda_call id, const void *args, uint64_t start,
             const uint64_t *words)
{
    const uint64_t duration = hed_trace_ticks(self->state) - start;

    hed_trace_put_first(self->state,
                        &(struct hed_trace_call){id, 0, args, start, duration, 0, NULL}, words);
}

/* Reading the time costs more than counting, so a call that will probably be counted is not timed.
 */
#define TRACE_QUESTION(call, given, same, ...)                                                     \
    static __attribute__((noinline, cold))                                                         \
    CUresult first_##call(struct hed_layer *self, struct hed_##call *a)                            \
    {                                                                                              \
        if (!is_recorded())                                                                        \
            return self->next->cuda->call(self->next, a);                                          \
        if (!counts_repeats)                                                                       \
            return trace_cuda_any(self, HED_##call, a);                                            \
                                                                                                   \
        const uint64_t start = hed_trace_ticks(self->state);                                       \
        const CUresult r = self->next->cuda->call(self->next, a);                                  \
                                                                                                   \
        if (r == CUDA_SUCCESS && (given))                                                          \
            put_question(self, HED_##call, a, start,                                               \
                         (const uint64_t[HED_TRACE_QUESTION_WORDS]){__VA_ARGS__});                 \
        else                                                                                       \
            put_cuda(self, HED_##call, a, r, start, NULL);                                         \
        return r;                                                                                  \
    }                                                                                              \
                                                                                                   \
    static CUresult trace_##call(struct hed_layer *self, struct hed_##call *a)                     \
    {                                                                                              \
        const struct hed_trace_own *own = hed_trace_self();                                        \
        const struct hed_trace_open *o = hed_trace_find_open(own, HED_##call);                     \
                                                                                                   \
        if (__builtin_expect(!o || !(same) || !is_recorded(), 0))                                  \
            return first_##call(self, a);                                                          \
                                                                                                   \
        const CUresult r = self->next->cuda->call(self->next, a);                                  \
        const bool good = r == CUDA_SUCCESS && (given);                                            \
                                                                                                   \
        if (__builtin_expect(!good || !hed_trace_count(own, o, HED_##call,                         \
                                                       (const uint64_t[HED_TRACE_QUESTION_WORDS]){ \
                                                           __VA_ARGS__}),                          \
                             0))                                                                   \
            put_untimed(self, HED_##call, a, r,                                                    \
                        good ? (const uint64_t[HED_TRACE_QUESTION_WORDS]){__VA_ARGS__} : NULL);    \
        return r;                                                                                  \
    }

HED_CUDA_QUESTIONS(TRACE_QUESTION)

static const struct hed_cuda_ops questions = {
#define QUESTION(call, ...) .call = trace_##call,
    HED_CUDA_QUESTIONS(QUESTION)
#undef QUESTION
};

/* ---- what the GPU did ------------------------------------------------------------------------ */

static struct hed_trace_writer *watching; /* constant once the watcher is set */

static void
put_activity(struct hed_watcher *watcher, const struct hed_activity *a)
{
    static const uint8_t kinds[] = {
        [HED_ACTIVITY_KERNEL] = HED_TRACE_KERNEL,
        [HED_ACTIVITY_COPY] = HED_TRACE_COPY,
        [HED_ACTIVITY_FILL] = HED_TRACE_FILL,
        [HED_ACTIVITY_HOST] = HED_TRACE_OTHER,
    };
    static const uint8_t places[] = {
        [HED_PLACE_DEVICE] = HED_TRACE_MEMORY_DEVICE,
        [HED_PLACE_PINNED] = HED_TRACE_MEMORY_PINNED,
        [HED_PLACE_PAGEABLE] = HED_TRACE_MEMORY_HOST,
        [HED_PLACE_ARRAY] = HED_TRACE_MEMORY_ARRAY,
    };
    struct hed_trace_activity record = {
        .kind = kinds[a->kind],
        .name = a->kind == HED_ACTIVITY_HOST ? "host function" : a->name,
        .start = a->begin,
        .end = a->end,
        .device = a->device,
        .context = (uint32_t)a->context,
        .stream = (uint32_t)a->stream,
        .correlation = a->cause,
        .static_shared = a->static_shared,
        .dynamic_shared = a->dynamic_shared,
        .registers = a->registers,
        .bytes = a->bytes,
        .from = places[a->from],
        .to = places[a->to],
    };

    if (!is_recorded())
        return;
    memcpy(record.grid, a->grid, sizeof record.grid);
    memcpy(record.block, a->block, sizeof record.block);
    hed_trace_put_activity(watching, &record);
}

static struct hed_watcher watcher = {put_activity};

/* While there is no file, the backend times nothing. */
static void
set_running(bool on)
{
    atomic_store_explicit(&is_running, on, memory_order_relaxed);
    hed_activity_watch(on ? &watcher : NULL);
}

/* ---- the layer ------------------------------------------------------------------------------- */

static int
trace_note(struct hed_layer *self, enum hed_note note, const char *text)
{
    static const uint8_t kinds[] = {
        [HED_NOTE_MARK] = HED_TRACE_MARK,
        [HED_NOTE_RANGE_BEGIN] = HED_TRACE_RANGE_BEGIN,
        [HED_NOTE_RANGE_END] = HED_TRACE_RANGE_END,
        [HED_NOTE_CLIENT] = HED_TRACE_CLIENT,
    };

    if (!is_recorded())
        return 0;
    hed_trace_end_counting();
    hed_trace_put_note(self->state, kinds[note], text);
    return 0;
}

static const char *const schemas[] = {hed_cuda_schema, hed_nvml_schema, NULL};

static struct hed_lock switch_lock = HED_LOCK_INIT(HED_RANK_TRACE_SWITCH);
static struct hed_trace_options kept; /* of later files; the path is not */

/* Writing to disk under a lock holds up nobody but those who want to switch, too. */
static int
start_trace(struct hed_layer *self, const char *path, struct hed_why *why)
{
    struct hed_trace_options options = kept;
    int err = HED_ESTATE;

    hed_lock(&switch_lock);
    options.path = path;
    options.replace = true;
    if (atomic_load_explicit(&is_running, memory_order_relaxed))
        hed_why_set(why, "a trace is being written already: '%s'",
                    hed_trace_writer_path(self->state));
    else
        err = hed_trace_writer_start(self->state, &options, why);
    if (!err)
        set_running(true);
    hed_unlock(&switch_lock);
    return err;
}

static int
stop_trace(struct hed_layer *self, struct hed_why *why)
{
    int err = HED_ESTATE;

    hed_lock(&switch_lock);
    if (!atomic_load_explicit(&is_running, memory_order_relaxed)) {
        hed_why_set(why, "no trace is being written");
    } else {
        set_running(false);
        err = hed_trace_writer_stop(self->state);
        if (err)
            hed_why_set(why, "the trace '%s' is not complete: %s",
                        hed_trace_writer_path(self->state), hed_err_text(err));
    }
    hed_unlock(&switch_lock);
    return err;
}

static int
tell_file(struct hed_layer *self, struct hed_control *c, struct hed_why *why)
{
    const char *path = "";
    int err = 0;

    hed_lock(&switch_lock);
    if (atomic_load_explicit(&is_running, memory_order_relaxed))
        path = hed_trace_writer_path(self->state);
    if (!hed_str_copy(c->out, c->room, path)) {
        hed_why_set(why, "there is no room for the trace's path");
        err = HED_ELIMIT;
    }
    hed_unlock(&switch_lock);
    return err;
}

static int
trace_control(struct hed_layer *self, struct hed_control *c, struct hed_why *why)
{
    switch (c->what) {
    case HED_CONTROL_TRACE_START:
        return start_trace(self, c->text, why);
    case HED_CONTROL_TRACE_STOP:
        return stop_trace(self, why);
    case HED_CONTROL_TRACE_FILE:
        return tell_file(self, c, why);
    default:
        return HED_ENOTSUP;
    }
}

static int
trace_init(struct hed_layer *self, const struct hed_config *config, struct hed_why *why)
{
    const bool control = strcmp(config->control, "yes") == 0;
    struct hed_trace_writer *w;

    /* A process that has set the owner itself while it ran wants its older trace replaced. */
    kept = (struct hed_trace_options){
        .path = config->trace,
        .replace = control && config->trace_owner == (uint64_t)getpid(),
        .owner = config->trace_owner,
        .ring_size = config->trace_buffer,
        .data_bytes = (uint32_t)config->trace_data,
        .drop = strcmp(config->trace_full, "drop") == 0,
        .chain = hed_session_chain(),
        .counter = !hed_config_perf_has(config, "no_counter"),
        .schemas = schemas,
    };
    if (!*config->trace && !control) {
        hed_why_set(why, "the trace layer needs the setting 'trace', the file to write to");
        return HED_EINVAL;
    }

    const int err = hed_trace_writer_open(&kept, &w, why);

    if (err)
        return err;
    self->state = w;
    kept.path = "";
    kept.owner = 0;
    counts_repeats = strcmp(config->trace_repeats, "count") == 0;
    set_ways_cuda();
    set_ways_nvml();
    watching = w;
    set_running(*config->trace != '\0');
    if (*config->trace)
        hed_info(TRACE, "writing %s", hed_trace_writer_path(w));
    return 0;
}

static void
trace_fini(struct hed_layer *self)
{
    uint64_t records;
    uint64_t dropped;

    if (!atomic_load_explicit(&is_running, memory_order_relaxed))
        return;
    hed_trace_writer_close(self->state);
    hed_trace_writer_count(self->state, &records, &dropped);
    if (dropped)
        hed_warn(TRACE, "%s: %llu records were dropped", hed_trace_writer_path(self->state),
                 (unsigned long long)dropped);
}

static void
trace_forked(struct hed_layer *self)
{
    hed_lock_init(&switch_lock, HED_RANK_TRACE_SWITCH); /* another thread may have held it */
    hed_trace_writer_forked(self->state);
}

static void
trace_count(struct hed_layer *self, struct hed_counts *out)
{
    hed_trace_writer_count(self->state, &out->trace_records, &out->trace_dropped);
}

const struct hed_layer_type hed_trace_layer = {
    .name = "trace",
    .cuda = &questions,
    .cuda_any = trace_cuda_any,
    .nvml_any = trace_nvml_any,
    .init = trace_init,
    .fini = trace_fini,
    .forked = trace_forked,
    .note = trace_note,
    .count = trace_count,
    .control = trace_control,
};
