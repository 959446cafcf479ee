/* Records of a trace as text and JSON.
 *
 *     cuMemAlloc_v2(bytesize=1048576) -> dptr=0x302000000
 *     {"in":{"bytesize":1048576},"out":{"dptr":"0x302000000"}}
 *
 * All of these append to a buffer whose ceiling the caller has chosen. What does not fit is
 * replaced by a word that says so, and the buffer stays usable. Any record can be printed safely,
 * however broken it is. Texts that are returned stay valid while the trace is open.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct hed_buf;
struct hed_trace;
struct hed_trace_record;

/* Facts about a call. */
struct hed_trace_facts {
    const char *name;   /* without suffix; NULL if the schema does not know the call */
    const char *suffix; /* "_ptsz", "_ptds" or "" */
    bool has_stream;    /* it takes a stream, as an argument or in a struct */
    uint64_t stream;    /* its handle; 0: the default one, 1: legacy, 2: per thread */
};

void hed_trace_facts(const struct hed_trace *t, const struct hed_trace_record *r,
                     struct hed_trace_facts *facts);

/* The call's name with its suffix; "cuda#12" for one that the schema does not have. */
void hed_trace_print_name(const struct hed_trace *t, const struct hed_trace_record *r,
                          struct hed_buf *b);

/* The complete call, without its result. */
void hed_trace_print_args(const struct hed_trace *t, const struct hed_trace_record *r,
                          struct hed_buf *b);

/* Its arguments as a JSON object: "in", "out" after success, "cut":true if some are missing. */
void hed_trace_json_args(const struct hed_trace *t, const struct hed_trace_record *r,
                         struct hed_buf *b);

/* The result's name, or its number. */
void hed_trace_print_result(const struct hed_trace *t, const struct hed_trace_record *r,
                            struct hed_buf *b);

/* A call that failed. "Not ready" is an answer, not a failure. */
bool hed_trace_is_error(const struct hed_trace *t, const struct hed_trace_record *r);

/* A record that is not a call: `range "text"` and the like. */
void hed_trace_print_other(const struct hed_trace_record *r, struct hed_buf *b);

/* "call", "mark", "begin", "end", "client", "dropped", "activity", "unknown". */
const char *hed_trace_kind_name(unsigned kind);

/* How many records a record of kind DROPPED stands for. */
uint64_t hed_trace_dropped(const struct hed_trace_record *r);
