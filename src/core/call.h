/* What is known of a call without its arguments. The tables are generated from the spec. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/export.h"

enum hed_api { HED_API_CUDA, HED_API_NVML, HED_API_COUNT };

enum hed_call_flags {
    HED_CALL_BLOCKS = 1,  /* may wait for the device */
    HED_CALL_DEFER = 2,   /* may be made later, by another thread */
    HED_CALL_BY_HAND = 4, /* is given an address that only hand-written code can follow */
    HED_CALL_INOUT = 8,   /* overwrites something the caller put in */
    HED_CALL_TRAVEL = 16, /* the remote backend sends it to a worker */
};

/* What queued work a call may not overtake. Work without a stream (allocations, attributes, graph
 * changes) counts as on every stream. */
enum hed_call_after {
    HED_AFTER_ALL,    /* anything queued by this client */
    HED_AFTER_STREAM, /* anything queued on its stream */
    HED_AFTER_NONE,   /* nothing: a pure question */
};

/* What a call does (does= in the spec). */
enum hed_call_does {
    HED_DOES_NOTHING, /* there is no such call */

    /* Work that takes the GPU's time. */
    HED_DOES_LAUNCH,
    HED_DOES_COPY,
    HED_DOES_FILL,
    HED_DOES_MOVE,

    HED_DOES_ORDER, /* puts on a stream what takes no time: events, waits, host functions */
    HED_DOES_WAIT,  /* returns when work is done */
    HED_DOES_POLL,  /* asks whether work is done */
    HED_DOES_BEGIN_CAPTURE,
    HED_DOES_END_CAPTURE,
    HED_DOES_BEGIN_CONTEXT, /* or the use of one */
    HED_DOES_END_CONTEXT,
    HED_DOES_MAKE, /* makes an object */
    HED_DOES_END,  /* ends an object */
    HED_DOES_SET,  /* changes something else */
    HED_DOES_ASK,  /* changes nothing */
};

struct hed_call_info {
    const char *name;   /* cuMemcpyHtoD_v2 */
    const char *suffix; /* of its per-thread-default-stream variant; "" if there is none */
    uint32_t flags;     /* enum hed_call_flags */
    enum hed_call_after after;
    int stream;    /* offset of the stream in the argument struct; -1: it has none */
    int stream_in; /* if not -1: there is a pointer, and the stream is so far behind it */
    int ptds;      /* offset of the bool that says which variant was called; -1 */
    size_t size;   /* of the argument struct */
    enum hed_call_does does;
    int about;         /* offset of the object that the call is about; -1 */
    unsigned of_kind;  /* kind of that object, enum hed_<api>_kind */
    unsigned new_kind; /* kind of the object that it makes, the same */
    const char *area;  /* what people would file it under: "copy", "graph" */
};

/* A number or a handle that a call reads or writes: where it is, and how large. */
struct hed_place {
    void *at; /* NULL: the caller gave none */
    size_t size;
};

#define HED_PLACE(pointer) ((struct hed_place){(pointer), sizeof *(pointer)})

static inline uint64_t
hed_place_get(struct hed_place p)
{
    uint32_t word = 0;
    uint64_t value = 0;

    if (p.at && p.size == sizeof word) {
        memcpy(&word, p.at, sizeof word);
        return word;
    }
    if (p.at)
        memcpy(&value, p.at, sizeof value);
    return value;
}

/* Nothing happens where there is no place. */
static inline void
hed_place_put(struct hed_place p, uint64_t value)
{
    const uint32_t word = (uint32_t)value;

    if (p.at)
        memcpy(p.at, p.size == sizeof word ? (const void *)&word : &value, p.size);
}

/* Memory that a call touches: `count` elements of `element` bytes in each of `rows` rows, which
 * begin `pitch` bytes apart. */
struct hed_extent {
    uint64_t at;
    uint64_t count;
    uint32_t element;
    uint64_t rows;
    uint64_t pitch; /* 0: there is one row */
    int offset;     /* of the address in the argument struct */
    bool host;      /* it is an address of the process, not of device memory */
};

/* Bytes from the first to the last one. False: no memory is that large, or rows would overlap. */
static inline bool
hed_extent_bytes(const struct hed_extent *e, uint64_t *bytes)
{
    uint64_t width;
    uint64_t before;

    if (__builtin_mul_overflow(e->count, (uint64_t)e->element, &width))
        return false;
    *bytes = 0;
    if (width == 0 || e->rows == 0)
        return true;
    if (e->rows > 1 && e->pitch < width)
        return false;
    return !__builtin_mul_overflow(e->rows - 1, e->pitch, &before) &&
           !__builtin_add_overflow(before, width, bytes);
}

/* Whether a call puts work on the GPU that takes its time. */
static inline bool
hed_call_is_work(const struct hed_call_info *info)
{
    return info->does >= HED_DOES_LAUNCH && info->does <= HED_DOES_MOVE;
}

/* The handle that a call is about; 0 if there is none. Not for devices, which are no handles. */
static inline uint64_t
hed_call_about(const struct hed_call_info *info, const void *args)
{
    uint64_t handle = 0;

    if (info->about >= 0)
        memcpy(&handle, (const char *)args + info->about, sizeof handle);
    return handle;
}

/* The stream a call is made on; false if it has none. */
static inline bool
hed_call_stream(const struct hed_call_info *info, const void *args, uint64_t *stream)
{
    const char *at = (const char *)args + info->stream;

    if (info->stream < 0)
        return false;
    if (info->stream_in >= 0) {
        const void *behind;

        memcpy(&behind, at, sizeof behind);
        if (!behind)
            return false;
        at = (const char *)behind + info->stream_in;
    }
    memcpy(stream, at, sizeof *stream);
    return true;
}

/* Whether its per-thread-default-stream variant was called. */
static inline bool
hed_call_ptds(const struct hed_call_info *info, const void *args)
{
    return info->ptds >= 0 && *(const bool *)((const char *)args + info->ptds);
}

/* By call number; entry 0 is empty. */
HED_EXPORT extern const struct hed_call_info hed_cuda_info[];
HED_EXPORT extern const struct hed_call_info hed_nvml_info[];

/* The description of a call, or NULL for a number that is none. */
HED_EXPORT const struct hed_call_info *hed_call_info(enum hed_api api, uint32_t id);

/* The number of a call by its exact name, 0 if there is none. A search: not for the hot path. */
HED_EXPORT uint32_t hed_call_find(enum hed_api api, const char *name);
