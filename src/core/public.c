/* The public C API (include/heddle.h) on the session. */
#include "heddle.h"

#include <string.h>

#include "core/foreign.h"
#include "core/nvtx.h"
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
    };

    memcpy(counters, &all, counters->size < sizeof all ? counters->size : sizeof all);
    return 0;
}
