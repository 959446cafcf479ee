/* The public C API (include/heddle.h) on the session. */
#include "heddle.h"

#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "core/foreign.h"
#include "core/layer.h"
#include "core/nvtx.h"
#include "core/refusal.h"
#include "core/session.h"
#include "core/stats.h"

HED_EXPORT const char *
heddle_version(void)
{
    return HED_VERSION;
}

HED_EXPORT int
heddle_record(int on)
{
    return atomic_exchange_explicit(&hed_session.recording, on != 0, memory_order_relaxed);
}

HED_EXPORT int
heddle_set_client(const char *name)
{
    return hed_session_note(HED_NOTE_CLIENT, name ? name : "");
}

HED_EXPORT int
heddle_mark(const char *text)
{
    if (!text)
        return -1;
    return hed_session_note(HED_NOTE_MARK, text);
}

HED_EXPORT int
heddle_range_push(const char *text)
{
    if (!text)
        return -1;

    const int err = hed_session_note(HED_NOTE_RANGE_BEGIN, text);

    hed_nvtx_push(text);
    return err;
}

HED_EXPORT int
heddle_range_pop(void)
{
    const int err = hed_session_note(HED_NOTE_RANGE_END, NULL);

    hed_nvtx_pop();
    return err;
}

static uint64_t
get_counter(_Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

HED_EXPORT int
heddle_read_counters(struct heddle_counters *counters)
{
    struct hed_counts counts = {0};

    if (!counters || counters->size < sizeof counters->size)
        return -1;
    for (struct hed_layer *l = hed_top(); l; l = l->next)
        if (l->type->count)
            l->type->count(l, &counts);

    const struct heddle_counters all = {
        .size = counters->size,
        .unsupported_calls = get_counter(&hed_stats.unsupported_calls),
        .foreign_pointers = get_counter(&hed_stats.foreign_pointers),
        .foreign_calls = hed_foreign_calls(),
        .export_tables = get_counter(&hed_stats.export_tables),
        .trace_records = counts.trace_records,
        .trace_dropped = counts.trace_dropped,
        .faults_injected = get_counter(&hed_stats.faults_injected),
        .problems = hed_problem_count(),
        .refusals = get_counter(&hed_stats.refusals),
        .launches = counts.launches,
        .context_errors = counts.context_errors,
        .allocations = counts.allocations,
        .live_allocations = counts.live_allocations,
        .memory_bytes = counts.memory_bytes,
        .memory_peak = counts.memory_peak,
        .grids_interpreted = get_counter(&hed_stats.grids_interpreted),
        .grids_compiled = get_counter(&hed_stats.grids_compiled),
        .kernels_compiled = get_counter(&hed_stats.kernels_compiled),
        .kernels_cached = get_counter(&hed_stats.kernels_cached),
    };

    memcpy(counters, &all, counters->size < sizeof all ? counters->size : sizeof all);
    return 0;
}

/* ---- what needs a reason --------------------------------------------------------------------- */

static __thread struct hed_why last_why;

HED_EXPORT const char *
heddle_reason(void)
{
    return last_why.text;
}

static int
refuse_argument(const char *text)
{
    hed_why_set(&last_why, "%s", text);
    return HED_EINVAL;
}

/* Asks the layers. 0, or HED_E... with the reason. */
static int
ask_layers(struct hed_control *c)
{
    last_why.text[0] = '\0';
    return hed_session_control(c, &last_why);
}

HED_EXPORT int
heddle_is_running(void)
{
    return atomic_load_explicit(&hed_session.top, memory_order_relaxed) != NULL;
}

HED_EXPORT int
heddle_chain(char *out, size_t size)
{
    if (!out || size == 0)
        return refuse_argument("there is no room for the chain");
    last_why.text[0] = '\0';
    (void)hed_top();

    const char *failure = hed_session_failure();
    const char *chain = hed_session_chain();

    if (*failure) {
        hed_why_set(&last_why, "%s", failure);
        return HED_ESTATE;
    }

    (void)hed_str_copy(out, size, chain);
    return (int)strlen(chain);
}

HED_EXPORT int
heddle_problem(uint64_t number, char *out, size_t size)
{
    if (out && size && hed_problem_get(number, out, size))
        return 0;
    return -1;
}

HED_EXPORT int
heddle_fault_add(const char *rules)
{
    struct hed_control c = {.what = HED_CONTROL_FAULT_ADD, .text = rules};

    if (!rules)
        return refuse_argument("fault: no rule is given");

    const int err = ask_layers(&c);

    return err ? err : c.id;
}

HED_EXPORT int
heddle_fault_remove(int rules)
{
    struct hed_control c = {.what = HED_CONTROL_FAULT_REMOVE, .id = rules};

    return ask_layers(&c);
}

HED_EXPORT int64_t
heddle_fault_count(int rules)
{
    struct hed_control c = {.what = HED_CONTROL_FAULT_COUNT, .id = rules};
    const int err = ask_layers(&c);

    return err ? err : (int64_t)c.count;
}

HED_EXPORT int
heddle_trace_start(const char *path)
{
    struct hed_control c = {.what = HED_CONTROL_TRACE_START, .text = path};

    if (!path || !*path)
        return refuse_argument("a trace needs a file name");
    return ask_layers(&c);
}

HED_EXPORT int
heddle_trace_stop(void)
{
    struct hed_control c = {.what = HED_CONTROL_TRACE_STOP};

    return ask_layers(&c);
}

HED_EXPORT int
heddle_trace_file(char *out, size_t size)
{
    struct hed_control c = {.what = HED_CONTROL_TRACE_FILE, .out = out, .room = size};

    if (!out || size == 0)
        return refuse_argument("there is no room for the trace's path");
    return ask_layers(&c);
}

_Static_assert(sizeof(struct heddle_memory) == sizeof(struct hed_control_memory) &&
                   offsetof(struct heddle_memory, library) ==
                       offsetof(struct hed_control_memory, library) &&
                   offsetof(struct heddle_memory, bytes) ==
                       offsetof(struct hed_control_memory, bytes),
               "layers write the program's struct");

HED_EXPORT int
heddle_list_memory(uint64_t after, struct heddle_memory *out, int room)
{
    struct hed_control c = {.what = HED_CONTROL_MEMORY, .count = after, .out = out};

    if (room < 0 || (room > 0 && !out))
        return refuse_argument("there is no room for the list of memory");
    c.room = (size_t)room * sizeof *out;

    const int err = ask_layers(&c);

    return err ? err : (int)c.count;
}

HED_EXPORT int
heddle_settle(void)
{
    struct hed_control c = {.what = HED_CONTROL_SETTLE};
    const int err = ask_layers(&c);

    return err ? err : (int)c.count;
}
