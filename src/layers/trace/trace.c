/* The trace layer: every call becomes a record in a file (docs/trace-format.md).
 *
 * It sees all calls through `any`. A record is made after the call, when its outputs are known;
 * only arguments that the call overwrites are encoded before. Between the two readings of the time
 * there is nothing but the call itself.
 */
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "core/config.h"
#include "core/layer.h"
#include "core/session.h"
#include "core/stats.h"
#include "gen/cuda_names.h"
#include "gen/nvml_names.h"
#include "trace/call.h"
#include "trace/format.h"
#include "trace/write.h"

/* The two APIs differ only in types. TRACE_ANY(cuda, CUDA, CUresult) makes trace_cuda_any and what
 * it needs. The calls that overwrite arguments are kept as a small set of our own, because the
 * description of a call is far larger, and looking at it costs a cache line for each call. */
#define TRACE_ANY(api, API, result_t)                                                          \
    static uint64_t inout_##api[HED_##API##_CALLS / 64 + 1]; /* constant after init */         \
                                                                                               \
    static void set_inout_##api(void)                                                          \
    {                                                                                          \
        for (uint32_t id = 0; id < HED_##API##_CALLS; id++)                                    \
            if (hed_##api##_info[id].flags & HED_CALL_INOUT)                                   \
                inout_##api[id / 64] |= UINT64_C(1) << id % 64;                                \
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
        if (__builtin_expect(!hed_session_recording(), 0))                                     \
            return hed_##api##_invoke(self->next, id, args);                                   \
        if (__builtin_expect(inout_##api[id / 64] >> (id % 64) & 1, 0))                        \
            return trace_##api##_inout(self, id, args);                                        \
                                                                                               \
        const uint64_t start = hed_trace_ticks(self->state);                                   \
        const result_t r = hed_##api##_invoke(self->next, id, args);                           \
                                                                                               \
        put_##api(self, id, args, r, start, NULL);                                             \
        return r;                                                                              \
    }

TRACE_ANY(cuda, CUDA, CUresult)
TRACE_ANY(nvml, NVML, nvmlReturn_t)

static int
trace_note(struct hed_layer *self, enum hed_note note, const char *text)
{
    static const uint8_t kinds[] = {
        [HED_NOTE_MARK] = HED_TRACE_MARK,
        [HED_NOTE_RANGE_BEGIN] = HED_TRACE_RANGE_BEGIN,
        [HED_NOTE_RANGE_END] = HED_TRACE_RANGE_END,
        [HED_NOTE_CLIENT] = HED_TRACE_CLIENT,
    };

    if (hed_session_recording())
        hed_trace_put_note(self->state, kinds[note], text);
    return 0;
}

static int
trace_init(struct hed_layer *self, const struct hed_config *config, struct hed_why *why)
{
    static const char *const schemas[] = {hed_cuda_schema, hed_nvml_schema, NULL};
    const struct hed_trace_options options = {
        .path = config->trace,
        .owner = config->trace_owner,
        .ring_size = config->trace_buffer,
        .data_bytes = (uint32_t)config->trace_data,
        .drop = strcmp(config->trace_full, "drop") == 0,
        .chain = hed_session_chain(),
        .counter = !hed_config_perf_has(config, "no_counter"),
        .schemas = schemas,
    };
    struct hed_trace_writer *w;

    if (!*config->trace) {
        hed_why_set(why, "the trace layer needs the setting 'trace', the file to write to");
        return HED_EINVAL;
    }

    const int err = hed_trace_writer_open(&options, &w, why);

    if (err)
        return err;
    self->state = w;
    set_inout_cuda();
    set_inout_nvml();
    hed_info(TRACE, "writing %s", hed_trace_writer_path(w));
    return 0;
}

static void
trace_fini(struct hed_layer *self)
{
    uint64_t records;
    uint64_t dropped;

    hed_trace_writer_close(self->state);
    hed_trace_writer_count(self->state, &records, &dropped);
    if (dropped)
        hed_warn(TRACE, "%s: %llu records were dropped", hed_trace_writer_path(self->state),
                 (unsigned long long)dropped);
}

static void
trace_forked(struct hed_layer *self)
{
    hed_trace_writer_forked(self->state);
}

static void
trace_count(struct hed_layer *self, struct hed_counts *out)
{
    hed_trace_writer_count(self->state, &out->trace_records, &out->trace_dropped);
}

const struct hed_layer_type hed_trace_layer = {
    .name = "trace",
    .cuda_any = trace_cuda_any,
    .nvml_any = trace_nvml_any,
    .init = trace_init,
    .fini = trace_fini,
    .forked = trace_forked,
    .note = trace_note,
    .count = trace_count,
};
