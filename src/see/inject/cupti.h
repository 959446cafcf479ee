/* The part of CUPTI that heddle uses, in our own declarations: heddle builds without a CUDA
 * toolkit, and the library is opened after the driver has loaded us. These declarations have been
 * valid since CUDA 10; later fields come after them. tests/e2e/inject/layout.c compares them with
 * NVIDIA's headers.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct hed_why;

#define HED_CUPTI_DRIVER_API 1 /* the domain of the callbacks */
#define HED_CUPTI_ENTER 0      /* site */
#define HED_CUPTI_EXIT 1
#define HED_CUPTI_FLUSH_FORCED 1
#define HED_CUPTI_CALLS_MAX 4096 /* callback ids that are tried; CUDA 13 has 807 */

/* Results that we look at. */
#define HED_CUPTI_FULL 12 /* MAX_LIMIT_REACHED: no more records; no more subscribers */
#define HED_CUPTI_NOT_SUPPORTED 27
#define HED_CUPTI_OTHER_PROFILER 39 /* MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */

/* What a callback learns of a call. */
struct hed_cupti_call {
    int site;
    const char *function;
    void *params;  /* the arguments in order; the driver uses these very words afterwards */
    void *returns; /* CUresult, at EXIT; the program gets what is written there */
    const char *symbol;
    void *context;
    uint32_t context_id;
    uint64_t *shared;
    uint32_t correlation; /* of this call and of the work that it gives the GPU */
};

enum hed_cupti_kind {
    HED_CUPTI_COPY = 1,
    HED_CUPTI_FILL = 2,
    HED_CUPTI_KERNEL = 10,    /* CONCURRENT_KERNEL */
    HED_CUPTI_PEER_COPY = 22, /* MEMCPY2 */
};

/* The beginnings of the activity records of these kinds. They are 8-aligned. */
struct hed_cupti_kernel {
    uint32_t kind;
    uint8_t cache, shared_config;
    uint16_t registers;
    uint32_t partition_wanted, partition;
    uint64_t start, end, completed; /* ns; 0 if not known */
    uint32_t device, context, stream;
    int32_t grid[3], block[3];
    int32_t static_shared, dynamic_shared;
    uint32_t local_per_thread, local_total;
    uint32_t correlation;
    int64_t grid_id;
    const char *name;
};

struct hed_cupti_copy {
    uint32_t kind;
    uint8_t direction, from, to, flags; /* direction: enum of CUPTI, 1 HtoD, 2 DtoH, 8 DtoD, ... */
    uint64_t bytes;
    uint64_t start, end;
    uint32_t device, context, stream;
    union {
        uint32_t correlation;
        struct { /* PEER_COPY */
            uint32_t from_device, from_context, to_device, to_context;
            uint32_t correlation;
        } peer;
    };
};

struct hed_cupti_fill {
    uint32_t kind;
    uint32_t value;
    uint64_t bytes;
    uint64_t start, end;
    uint32_t device, context, stream;
    uint32_t correlation;
};

typedef void (*hed_cupti_callback)(void *user, int domain, uint32_t id, const void *call);
typedef void (*hed_cupti_requested)(uint8_t **buffer, size_t *size, size_t *records_max);
typedef void (*hed_cupti_completed)(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                                    size_t used);

/* X(name, arguments): functions that are needed. All return a CUptiResult, 0 for success. */
#define HED_CUPTI_NEEDED(X)                                         \
    X(cuptiSubscribe, (void **, hed_cupti_callback, void *))        \
    X(cuptiUnsubscribe, (void *))                                   \
    X(cuptiEnableCallback, (uint32_t on, void *, int, uint32_t id)) \
    X(cuptiGetCallbackName, (int, uint32_t id, const char **))      \
    X(cuptiGetResultString, (int, const char **))                   \
    X(cuptiGetVersion, (uint32_t *))

/* Functions for a trace; an older CUPTI lacks the last two. */
#define HED_CUPTI_WANTED(X)                                                       \
    X(cuptiActivityRegisterCallbacks, (hed_cupti_requested, hed_cupti_completed)) \
    X(cuptiActivityEnable, (int kind))                                            \
    X(cuptiActivityGetNextRecord, (uint8_t *, size_t, void **))                   \
    X(cuptiActivityGetNumDroppedRecords, (void *, uint32_t, size_t *))            \
    X(cuptiActivityFlushAll, (uint32_t))                                          \
    X(cuptiGetTimestamp, (uint64_t *))                                            \
    X(cuptiActivityFlushPeriod, (uint32_t ms))                                    \
    X(cuptiActivityRegisterTimestampCallback, (uint64_t(*)(void)))

struct hed_cupti {
#define HED_CUPTI_ENTRY(name, arguments) int(*name) arguments;
    HED_CUPTI_NEEDED(HED_CUPTI_ENTRY)
    HED_CUPTI_WANTED(HED_CUPTI_ENTRY) /* NULL if missing */
#undef HED_CUPTI_ENTRY
};

/* Set by hed_cupti_open(), constant afterwards. */
extern struct hed_cupti hed_cupti;

/* Opens libcupti: `given` (a full path) if it is not "", else one that the process has loaded, else
 * one on the loader's search path, else one in the toolkit's usual folders. */
int hed_cupti_open(const char *given, struct hed_why *why);

/* The meaning of a result, for messages. */
const char *hed_cupti_text(int result);
