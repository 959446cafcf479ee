/* Turns calls into records. */
#include "see/trace/call.h"

#include <string.h>

#include "gen/cuda_wire.h"
#include "gen/nvml_wire.h"
#include "see/trace/format.h"
#include "see/trace/put.h"
#include "see/trace/write.h"

/* The two APIs differ only in types. */
#define TRACE_API(api, API)                                                                   \
    void hed_trace_early_##api(struct hed_trace_early *early, uint32_t id, const void *args)  \
    {                                                                                         \
        struct hed_enc e = hed_enc_over(early->bytes, sizeof early->bytes);                   \
                                                                                              \
        e.max_items = e.max_bytes = 0;                                                        \
        e.max_text = HED_TRACE_TEXT_MAX;                                                      \
        hed_##api##_put_request(&e, (enum hed_##api##_call)id, args);                         \
        early->size = (size_t)(e.at - early->bytes);                                          \
        early->cut = e.err != 0;                                                              \
    }                                                                                         \
                                                                                              \
    /* A call that failed, or whose request was encoded before it was made. */                \
    static __attribute__((noinline)) void put_rare_##api(struct hed_enc *e,                   \
                                                         const struct hed_trace_call *call)   \
    {                                                                                         \
        const struct hed_trace_early *early = call->early;                                    \
        const enum hed_##api##_call id = (enum hed_##api##_call)call->id;                     \
                                                                                              \
        /* A call that failed did not accept its counts: nobody may read by them. */          \
        if (call->result != 0)                                                                \
            e->max_items = e->max_bytes = 0;                                                  \
        if (early)                                                                            \
            hed_put_raw(e, early->bytes, early->size);                                        \
        else                                                                                  \
            hed_##api##_put_request(e, id, call->args);                                       \
        if (!early || !early->cut)                                                            \
            hed_##api##_put_reply(e, id, call->args, call->result);                           \
    }                                                                                         \
                                                                                              \
    void hed_trace_put_##api(struct hed_trace_writer *w, const struct hed_trace_call *call)   \
    {                                                                                         \
        struct hed_trace_put put;                                                             \
                                                                                              \
        if (!hed_trace_put_begin(w, &put))                                                    \
            return;                                                                           \
        if (__builtin_expect(call->result == 0 && !call->early, 1))                           \
            hed_##api##_put_call(&put.enc, (enum hed_##api##_call)call->id, call->args);      \
        else                                                                                  \
            put_rare_##api(&put.enc, call);                                                   \
        hed_trace_put_end(                                                                    \
            w, &put,                                                                          \
            &(struct hed_trace_head){HED_TRACE_CALL, HED_TRACE_API_##API, (uint16_t)call->id, \
                                     call->start, call->duration, call->result,               \
                                     call->early && call->early->cut ? HED_TRACE_CUT : 0,     \
                                     call->correlation});                                     \
    }

TRACE_API(cuda, CUDA)
TRACE_API(nvml, NVML)

void
hed_trace_put_note(struct hed_trace_writer *w, uint8_t kind, const char *text)
{
    struct hed_trace_put put;
    struct hed_enc *e = hed_trace_begin(w, &put);

    if (!e)
        return;
    if (text)
        hed_put_raw(e, text, strnlen(text, HED_TRACE_TEXT_MAX));
    hed_trace_end(w, &put, &(struct hed_trace_head){.kind = kind, .start = hed_trace_ticks(w)});
}
