/* The trace layer: every call becomes a record in a file (docs/trace-format.md).
 *
 * It sees all calls through `any`. A record is made after the call, when its outputs are known;
 * only what the call overwrites is encoded before. Between the two clock readings there is nothing
 * but the call itself.
 */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "core/config.h"
#include "core/layer.h"
#include "core/session.h"
#include "core/stats.h"
#include "gen/cuda_names.h"
#include "gen/cuda_wire.h"
#include "gen/nvml_names.h"
#include "gen/nvml_wire.h"
#include "trace/format.h"
#include "trace/write.h"

#define REQUEST_MAX 4096 /* bytes of a request that has to be encoded before its call */

/* A request that was encoded before its call. */
struct early {
    const void *p; /* NULL: it was not */
    size_t size;
    bool cut; /* it did not fit */
};

/* Calls that overwrite what they were given (inout) are encoded before they are made; their counts
 * are not accepted yet, so arrays that go in are left out.
 *
 * The two APIs differ only in types. TRACE_ANY(cuda, CUDA, CUresult) makes trace_cuda_any and what
 * it needs. */
#define TRACE_ANY(api, API, result_t)                                                             \
    static void put_##api(struct hed_trace_writer *w, enum hed_##api##_call id, const void *args, \
                          result_t r, uint64_t start, uint64_t duration, struct early early)      \
    {                                                                                             \
        struct hed_enc *e = hed_trace_begin(w);                                                   \
        const struct hed_trace_head head = {HED_TRACE_CALL,                                       \
                                            HED_API_##API,                                        \
                                            (uint16_t)id,                                         \
                                            start,                                                \
                                            duration,                                             \
                                            (int32_t)r,                                           \
                                            early.cut ? HED_TRACE_CUT : 0};                       \
                                                                                                  \
        if (!e)                                                                                   \
            return;                                                                               \
        /* A call that failed did not accept its counts: nobody may read by them. */              \
        if (r != 0)                                                                               \
            e->max_items = e->max_bytes = 0;                                                      \
        if (early.p)                                                                              \
            hed_put_raw(e, early.p, early.size);                                                  \
        else                                                                                      \
            hed_##api##_put_request(e, id, args);                                                 \
        if (!early.cut)                                                                           \
            hed_##api##_put_reply(e, id, args, (int)r);                                           \
        hed_trace_end(w, &head);                                                                  \
    }                                                                                             \
                                                                                                  \
    static __attribute__((noinline))                                                              \
    result_t trace_##api##_inout(struct hed_layer *self, enum hed_##api##_call id, void *args)    \
    {                                                                                             \
        uint8_t request[REQUEST_MAX];                                                             \
        struct hed_enc e = hed_enc_over(request, sizeof request);                                 \
                                                                                                  \
        e.max_items = e.max_bytes = 0;                                                            \
        e.max_text = 1024;                                                                        \
        hed_##api##_put_request(&e, id, args);                                                    \
                                                                                                  \
        const uint64_t start = hed_now_ns();                                                      \
        const result_t r = hed_##api##_invoke(self->next, id, args);                              \
        const uint64_t duration = hed_now_ns() - start;                                           \
                                                                                                  \
        put_##api(self->state, id, args, r, start, duration,                                      \
                  (struct early){request, (size_t)(e.at - request), e.err != 0});                 \
        return r;                                                                                 \
    }                                                                                             \
                                                                                                  \
    static result_t trace_##api##_any(struct hed_layer *self, enum hed_##api##_call id,           \
                                      void *args)                                                 \
    {                                                                                             \
        if (__builtin_expect(!hed_session_recording(), 0))                                        \
            return hed_##api##_invoke(self->next, id, args);                                      \
        if (hed_##api##_info[id].flags & HED_CALL_INOUT)                                          \
            return trace_##api##_inout(self, id, args);                                           \
                                                                                                  \
        const uint64_t start = hed_now_ns();                                                      \
        const result_t r = hed_##api##_invoke(self->next, id, args);                              \
        const uint64_t duration = hed_now_ns() - start;                                           \
                                                                                                  \
        put_##api(self->state, id, args, r, start, duration, (struct early){0});                  \
        return r;                                                                                 \
    }

TRACE_ANY(cuda, CUDA, CUresult)
TRACE_ANY(nvml, NVML, nvmlReturn_t)

static void
trace_note(struct hed_layer *self, enum hed_note note, const char *text)
{
    static const uint8_t kinds[] = {
        [HED_NOTE_MARK] = HED_TRACE_MARK,
        [HED_NOTE_RANGE_BEGIN] = HED_TRACE_RANGE_BEGIN,
        [HED_NOTE_RANGE_END] = HED_TRACE_RANGE_END,
        [HED_NOTE_CLIENT] = HED_TRACE_CLIENT,
    };
    struct hed_enc *e = hed_session_recording() ? hed_trace_begin(self->state) : NULL;

    if (!e)
        return;
    if (text)
        hed_put_raw(e, text, strnlen(text, 1024));
    hed_trace_end(self->state,
                  &(struct hed_trace_head){.kind = kinds[note], .start = hed_now_ns()});
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
        .schemas = schemas,
    };
    struct hed_trace_writer *w;

    if (!*config->trace) {
        hed_why_set(why, "the trace layer needs the setting 'trace', a file to write");
        return HED_EINVAL;
    }

    const int err = hed_trace_writer_open(&options, &w, why);

    if (err)
        return err;
    self->state = w;
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
