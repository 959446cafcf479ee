/* Turns calls into records. */
#include "trace/call.h"

#include <string.h>

#include "gen/cuda_wire.h"
#include "gen/nvml_wire.h"
#include "trace/format.h"
#include "trace/write.h"

#define TEXT_MAX 1024 /* bytes of a string or note that are kept */

/* The APIs' numbers, in the order of their schemas. */
enum { API_CUDA, API_NVML };

/* The two APIs differ only in types. */
#define TRACE_API(api, API)                                                                   \
    void hed_trace_early_##api(struct hed_trace_early *early, uint32_t id, const void *args)  \
    {                                                                                         \
        struct hed_enc e = hed_enc_over(early->bytes, sizeof early->bytes);                   \
                                                                                              \
        e.max_items = e.max_bytes = 0;                                                        \
        e.max_text = TEXT_MAX;                                                                \
        hed_##api##_put_request(&e, (enum hed_##api##_call)id, args);                         \
        early->size = (size_t)(e.at - early->bytes);                                          \
        early->cut = e.err != 0;                                                              \
    }                                                                                         \
                                                                                              \
    void hed_trace_put_##api(struct hed_trace_writer *w, const struct hed_trace_call *call)   \
    {                                                                                         \
        const struct hed_trace_early *early = call->early;                                    \
        const bool cut = early && early->cut;                                                 \
        const enum hed_##api##_call id = (enum hed_##api##_call)call->id;                     \
        struct hed_enc *e = hed_trace_begin(w);                                               \
                                                                                              \
        if (!e)                                                                               \
            return;                                                                           \
        /* A call that failed did not accept its counts: nobody may read by them. */          \
        if (call->result != 0)                                                                \
            e->max_items = e->max_bytes = 0;                                                  \
        if (early)                                                                            \
            hed_put_raw(e, early->bytes, early->size);                                        \
        else                                                                                  \
            hed_##api##_put_request(e, id, call->args);                                       \
        if (!cut)                                                                             \
            hed_##api##_put_reply(e, id, call->args, call->result);                           \
        hed_trace_end(w, e,                                                                   \
                      &(struct hed_trace_head){HED_TRACE_CALL, API_##API, (uint16_t)call->id, \
                                               call->start, call->duration, call->result,     \
                                               cut ? HED_TRACE_CUT : 0, call->correlation});  \
    }

TRACE_API(cuda, CUDA)
TRACE_API(nvml, NVML)

void
hed_trace_put_note(struct hed_trace_writer *w, uint8_t kind, const char *text)
{
    struct hed_enc *e = hed_trace_begin(w);

    if (!e)
        return;
    if (text)
        hed_put_raw(e, text, strnlen(text, TEXT_MAX));
    hed_trace_end(w, e, &(struct hed_trace_head){.kind = kind, .start = hed_trace_ticks(w)});
}
