/* Work: what is put on a stream, held by a graph's node, and run in order.
 *
 *   API call --checks, copies what it must--> struct hed_work
 *       --hed_submit()--> machine->submit: queued and run here, or sent to where it runs
 *                    \--> captured: a node of the graph being built
 *
 * Invariant: work owns what it points to (kernel parameters, references to objects), so it can
 * outlive the call, be copied into a graph and run many times.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/copy.h"
#include "driver/machine.h"
#include "gen/cuda_abi.h"

struct hed_context;
struct hed_event;
struct hed_function;
struct hed_graph;
struct hed_graph_exec;
struct hed_stream;

enum hed_work_kind {
    HED_WORK_NONE, /* does nothing: an empty node, a marker in a queue */
    HED_WORK_KERNEL,
    HED_WORK_COPY,
    HED_WORK_FILL,
    HED_WORK_HOST,     /* cuLaunchHostFunc: not run after a sticky error */
    HED_WORK_CALLBACK, /* cuStreamAddCallback: always run, and given the stream's state */
    HED_WORK_EVENT_RECORD,
    HED_WORK_EVENT_WAIT,
    HED_WORK_ALLOC, /* cuMemAllocAsync: the call chooses the address; the memory is taken here */
    HED_WORK_FREE,
    HED_WORK_MEMOP, /* cuStreamWaitValue, cuStreamWriteValue, batches */
    HED_WORK_GRAPH, /* a whole executable graph */
    HED_WORK_COUNT
};

struct hed_fill {
    uint64_t to, pitch;
    uint32_t value;
    unsigned size;        /* bytes per element: 1, 2 or 4 */
    size_t width, height; /* elements, rows */
    bool unplaced;        /* captured although there was no memory: hed_fill_fits() */
};

/* Operations of cuStreamBatchMemOp, or a single one. */
struct hed_memops {
    unsigned count;
    CUstreamBatchMemOpParams_v1 *ops; /* owned */
};

/* Points in streams (driver/stream/stream.h), each with a reference to its stream. */
struct hed_points {
    struct hed_point *at;
    unsigned count, room;
};

struct hed_work {
    /* Used while it is on a stream. */
    struct hed_work *next;
    uint64_t number;         /* its number in the stream */
    struct hed_points after; /* points that must be reached before it runs */
    CUresult *result;        /* result for the caller that waits, written before the number is
                              * done; may be NULL */
    uint64_t stream, cause;  /* where it is told what runs (core/activity.h): of the stream; of
                              * the call */

    enum hed_work_kind kind;
    bool has_params_inside;  /* of a kernel: they are behind this struct */
    struct hed_context *ctx; /* a reference */
    union {
        struct hed_launch kernel;
        struct {
            struct hed_copy copy;
            CUDA_MEMCPY3D_v2 *copy_given; /* owned: as the program gave it; of nodes only */
            void *staged;                 /* owned: bytes read at the call, for copy.from */
            size_t staged_size;
        };
        struct hed_fill fill;
        struct {
            CUhostFn fn;
            void *data;
        } host;
        struct {
            CUstreamCallback fn;
            void *data;
            CUstream stream; /* as the program named it */
        } callback;
        struct {
            struct hed_event *event; /* a reference */
            uint64_t record;         /* number of the record: driver/stream/stream.h */
            uint64_t shared;         /* of an event of several processes: the number of the record
                                      * that has begun, or that is waited for; 0: none */
            unsigned flags;
        } event;
        struct {
            uint64_t at, size;
            struct hed_pool *pool; /* a reference; NULL for plain memory */
        } memory;
        struct hed_memops memops;
        struct {
            struct hed_graph_exec *graph; /* a reference */
            uint64_t exec;                /* the handle that was launched */
        };
    };
};

/* New work of a kind for a context, otherwise zeroed. NULL if there is no memory. */
struct hed_work *hed_work_create(struct hed_context *ctx, enum hed_work_kind kind);

/* Work that is a launch for a queue: with a copy of its parameters in the same piece of memory, its
 * own reference to the function, and no attributes. */
struct hed_work *hed_work_create_launch(struct hed_context *ctx, const struct hed_launch *l);

/* Memory for the parameters of a launch, all 0; free() frees it. */
unsigned char *hed_params_create(uint32_t size);

/* A copy, as the node of a graph. */
struct hed_work *hed_work_create_copy(struct hed_context *ctx, const struct hed_copy *c,
                                      const CUDA_MEMCPY3D_v2 *given);

/* A deep copy. */
struct hed_work *hed_work_copy(const struct hed_work *w);
void hed_work_free(struct hed_work *w);

/* Calls the program's function of HED_WORK_HOST or HED_WORK_CALLBACK on this thread. */
void hed_work_call(struct hed_work *w);

/* Is this thread inside a function of the program that was called by work? CUDA calls that need a
 * current context answer CUDA_ERROR_NOT_PERMITTED there; calls that name a stream or an event work.
 */
bool hed_in_callback(void);

/* Puts work on a stream, or into the graph that the stream captures. Takes ownership of the work
 * even on failure. Returns the context's sticky error if it is set, or
 * CUDA_ERROR_STREAM_CAPTURE_... for what the stream may not do now (capture modes, an invalidated
 * capture). */
CUresult hed_submit(struct hed_stream *s, struct hed_work *w);

/* The same, and waits until the work is done. Not allowed while the stream captures. The result is
 * the work's own if it failed. */
CUresult hed_submit_wait(struct hed_stream *s, struct hed_work *w);
