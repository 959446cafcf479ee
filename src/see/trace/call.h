/* Turns calls into records, for the trace layer and the injected library.
 *
 * A record is made after its call, when the outputs are known. A call that overwrites what it was
 * given (HED_CALL_INOUT) is encoded before it is made:
 *
 *     hed_trace_early_cuda(&early, id, args)     only where the call's info says INOUT
 *     ... the call ...
 *     hed_trace_put_cuda(w, &call)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hed_trace_writer;

#define HED_TRACE_EARLY_MAX 4096 /* bytes of a request that has to be encoded before its call */

/* A request that was encoded before its call. */
struct hed_trace_early {
    size_t size;
    bool cut; /* it did not fit */
    uint8_t bytes[HED_TRACE_EARLY_MAX];
};

struct hed_trace_call {
    uint32_t id;                         /* enum hed_cuda_call, enum hed_nvml_call */
    int32_t result;                      /* 0 is success in both */
    const void *args;                    /* struct hed_cuMemAlloc_v2 and so on */
    uint64_t start;                      /* hed_trace_ticks() before the call */
    uint64_t duration;                   /* ticks */
    uint64_t correlation;                /* the id by which GPU activity names it; 0: none */
    const struct hed_trace_early *early; /* NULL: encode the request now */
};

/* Encodes a request before its call. Arrays are left out, because the driver has not yet accepted
 * their counts. */
void hed_trace_early_cuda(struct hed_trace_early *early, uint32_t id, const void *args);
void hed_trace_early_nvml(struct hed_trace_early *early, uint32_t id, const void *args);

/* Puts the calling thread's record of a call that has returned. The file's schemas must be cuda's,
 * then nvml's, because the API's number is that of hed_api. */
void hed_trace_put_cuda(struct hed_trace_writer *w, const struct hed_trace_call *call);
void hed_trace_put_nvml(struct hed_trace_writer *w, const struct hed_trace_call *call);

/* Puts a mark, the begin or end of a range, or a client (enum hed_trace_record_kind), now. text may
 * be NULL. */
void hed_trace_put_note(struct hed_trace_writer *w, uint8_t kind, const char *text);
