/* What a GPU did: one record for each kernel, copy or fill, with the times when it began and ended
 * there (docs/trace-format.md).
 *
 * A record names the call that caused it by a correlation id, which the call's own record has, too
 * (hed_trace_head.correlation). The code that makes both chooses the ids; 0 means none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hed_buf;
struct hed_trace_record;
struct hed_trace_writer;

#define HED_TRACE_NAME_MAX 4096 /* bytes of a name that are kept; C++ names can be long */

enum hed_trace_activity_kind {
    HED_TRACE_KERNEL = 1,
    HED_TRACE_COPY = 2,
    HED_TRACE_FILL = 3,
    HED_TRACE_OTHER = 4, /* it has a name */
};

/* Where the bytes of a copy or fill are. */
enum hed_trace_memory {
    HED_TRACE_MEMORY_UNKNOWN = 0,
    HED_TRACE_MEMORY_HOST = 1, /* pageable */
    HED_TRACE_MEMORY_PINNED = 2,
    HED_TRACE_MEMORY_DEVICE = 3,
    HED_TRACE_MEMORY_ARRAY = 4,
    HED_TRACE_MEMORY_MANAGED = 5,
    HED_TRACE_MEMORY_PEER = 6, /* of another GPU */
};

struct hed_trace_activity {
    uint16_t kind;    /* enum hed_trace_activity_kind, or one of a later version */
    const char *name; /* of a kernel, or of what is OTHER; may be NULL */
    size_t name_size; /* bytes of the name; for the writer, 0 means up to the NUL */
    uint64_t start;   /* ns of CLOCK_MONOTONIC */
    uint64_t end;     /* the same */
    uint32_t device;  /* as CUDA counts them in that process */
    uint32_t context;
    uint32_t stream;
    uint64_t correlation; /* of the call that caused it; 0: not known */

    /* Kernels. */
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t static_shared;  /* bytes per block */
    uint32_t dynamic_shared; /* the same */
    uint32_t registers;      /* per thread */

    /* Copies and fills. */
    uint64_t bytes;
    uint8_t from; /* enum hed_trace_memory; copies only */
    uint8_t to;
};

/* Puts a record into the trace. From any thread, and in any order of time; nothing of *a is kept.
 * As with every record, a full ring makes the thread wait, or drop and count. */
void hed_trace_put_activity(struct hed_trace_writer *w, const struct hed_trace_activity *a);

/* Reads one back. False for records of another kind and for incomplete ones. The name is
 * `name_size` bytes in the mapping, without a NUL. */
bool hed_trace_get_activity(const struct hed_trace_record *r, struct hed_trace_activity *a);

/* "kernel", "copy", "fill", "other", "unknown". */
const char *hed_trace_activity_name(unsigned kind);

/* "host", "pinned", "device", ...; "memory" for what is not known. */
const char *hed_trace_memory_name(unsigned memory);

/* The name of a kernel as people write it, without control characters; otherwise the name. */
void hed_trace_add_readable(struct hed_buf *b, const struct hed_trace_activity *a);

/* As text: `kernel saxpy grid 256x1x1 block 128x1x1`, `copy host to device, 4096 bytes`. */
void hed_trace_print_activity(const struct hed_trace_record *r, struct hed_buf *b);

/* Everything but its kind, name and times, as members of a JSON object: `"device":0,...`, without
 * braces. Nothing for an incomplete record. */
void hed_trace_json_activity(const struct hed_trace_record *r, struct hed_buf *b);
