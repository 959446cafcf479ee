/* Streams and events: ordered queues of work, and points in them.
 *
 * A stream numbers its work 1, 2, 3, ...; `done` is the number of the last work that has finished.
 * Work waits for pairs (stream, number), all of them earlier in program order, so there are no
 * cycles of waiting. The rules of the default streams are such pairs too:
 *
 *   work on the legacy stream waits for the last number of every blocking stream of its context,
 *   work on a blocking stream waits for the last number of the legacy stream.
 *
 * The points that work waits for are collected before it gets its number. So they are older than
 * the work, even if several threads add work at once, and there are still no cycles.
 *
 * The machine decides which thread runs the work, and how far a stream is known to have come
 * (driver/machine.h).
 *
 * A stream is in its context's list, which has a reference, until it has been destroyed and all of
 * its work is done: the legacy stream and cuCtxSynchronize also wait for the work of destroyed
 * streams.
 *
 * An event's record is a pair (stream, number) and a time. A waiter uses the pair that was there
 * when it began to wait, so recording the event again does not affect it.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "driver/context/context.h"
#include "driver/handle.h"
#include "driver/stream/work.h"

struct hed_capture; /* driver/graph/graph.h */
struct hed_shared_event;

/* The answers of cuCtxGetStreamPriorityRange; other priorities are clamped. */
#define HED_STREAM_PRIORITY_LEAST 0
#define HED_STREAM_PRIORITY_GREATEST (-5)

static inline int
hed_stream_priority(int given)
{
    if (given > HED_STREAM_PRIORITY_LEAST)
        return HED_STREAM_PRIORITY_LEAST;
    return given < HED_STREAM_PRIORITY_GREATEST ? HED_STREAM_PRIORITY_GREATEST : given;
}

struct hed_stream {
    struct hed_object object; /* must come first */
    struct hed_context *ctx;  /* a reference */
    struct hed_stream *next;  /* in ctx->streams; guarded by ctx->lock */
    struct hed_stream **link; /* the pointer to this stream in that list; NULL: not in the list */
    uint32_t generation;      /* the context's, when the stream was created */
    bool blocking;            /* synchronises with the legacy stream */
    bool is_legacy, is_per_thread;
    unsigned flags; /* as created */
    int priority;
    uint64_t id;

    struct hed_lock lock; /* guards what follows; rank HED_RANK_STREAM */
    uint64_t submitted;   /* number of the last work added */
    uint64_t done;        /* number of the last work that is known to be finished */
    bool destroyed;       /* no more work may be added */

    _Atomic(struct hed_capture *) capture; /* the capture it takes part in, or NULL */
    CUlaunchAttributeValue attributes[16]; /* by CUstreamAttrID */

    void *own;                          /* the machine's own bytes, which follow this struct */
    void (*fini)(struct hed_stream *s); /* frees what the machine keeps there; may be NULL */
};

/* A point in a stream. If the stream is gone, the point has been reached. */
struct hed_point {
    struct hed_stream *stream; /* a reference; NULL: reached */
    uint64_t number;
};

struct hed_event {
    struct hed_object object;              /* must come first */
    struct hed_context *ctx;               /* a reference */
    uint32_t generation;                   /* the context's, when the event was created */
    unsigned flags;                        /* CU_EVENT_... */
    struct hed_shared_event *shared;       /* CU_EVENT_INTERPROCESS: driver/ipc/event.h; or NULL */
    _Atomic bool gone;                     /* the machine has been told that it is destroyed */
    _Atomic bool mirrored;                 /* used by the machine: its worker has the event too */
    struct hed_lock lock;                  /* guards what follows; rank HED_RANK_EVENT */
    struct hed_point point;                /* point of the last record */
    bool recorded;                         /* it has been recorded at least once */
    uint64_t records;                      /* how many times it has been recorded */
    uint64_t time;                         /* ns; when the last record was reached; 0: not yet */
    _Atomic(struct hed_capture *) capture; /* it was recorded in; changed by capture.c */
    void *capture_node;
};

/* The stream that a call names. NULL is the legacy stream or, if `ptds`, the thread's own default
 * stream; others are CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, or a handle, for which no context need
 * be current. INVALID_HANDLE, INVALID_CONTEXT, or the sticky error of the stream's context. The
 * caller gives the reference back by hed_stream_put(). */
CUresult hed_stream_find(struct hed_layer *self, CUstream handle, bool ptds,
                         struct hed_stream **out);
/* The same for a call that works in a context, too: *c, unless `c` is NULL, is the current one, or
 * else the stream's, which is valid for as long as the stream. */
CUresult hed_stream_begin(struct hed_layer *self, CUstream handle, bool ptds,
                          struct hed_stream **out, struct hed_context **c);
void hed_stream_put(struct hed_stream *s);

/* Makes an event in a context; `shared` is owned by it if it succeeds. event.c */
CUresult hed_event_create(struct hed_context *c, unsigned flags, struct hed_shared_event *shared,
                          CUevent *out);

/* As cuEventDestroy. */
CUresult hed_event_drop(struct hed_driver *d, CUevent handle);

/* The event of a handle, with a reference that the caller gives back by hed_object_put(); NULL if
 * there is none. */
struct hed_event *hed_event_find(struct hed_driver *d, CUevent handle);

/* Waits for all work added so far; for the legacy stream, on blocking streams too. Returns the
 * context's sticky error, or success. */
CUresult hed_stream_synchronize(struct hed_stream *s);

/* Waits for a point and ignores errors. */
void hed_point_wait(struct hed_point p);
bool hed_point_reached(struct hed_point p);

/* ---- between the files of streams ------------------------------------------------------------ */

/* Creates a stream with a handle. The handle and the context have references to it. The flags have
 * been checked. stream.c */
CUresult hed_stream_create(struct hed_context *c, unsigned flags, int priority, CUstream *out);

/* Ends a stream: no more work may be added, but its work still runs. The caller keeps its
 * reference. */
void hed_stream_end(struct hed_stream *s);

/* Takes a stream that has been destroyed and has nothing left to do out of its context's list. */
void hed_stream_retire(struct hed_stream *s);

/* Adds the last number of a stream, if it has not been reached; or those of all streams of a
 * context, or of its blocking streams. False if there is no memory. stream.c */
bool hed_points_add(struct hed_points *p, struct hed_stream *s);
bool hed_points_add_all(struct hed_points *p, struct hed_context *c, bool only_blocking);

/* Adds any point, with its own reference. */
bool hed_points_add_point(struct hed_points *p, struct hed_point point);

/* prune drops the points that have been reached; clear drops all. */
void hed_points_prune(struct hed_points *p);
void hed_points_clear(struct hed_points *p);

/* A flag of a record that is put behind a graph in which a node sets the time: the record leaves
 * the time alone, since the node may have been reached already. */
#define HED_EVENT_OF_GRAPH 0x80000000u

/* Puts HED_WORK_EVENT_RECORD or _WAIT on a stream, or into its capture. To launch a graph, this is
 * called for the events that its nodes wait for, then the graph is launched, then this is called
 * for those that they record. event.c */
CUresult hed_event_submit(struct hed_stream *s, struct hed_event *e, enum hed_work_kind kind,
                          unsigned flags);

/* Adds the event's last record, if there is one that has not been reached. False if there is no
 * memory. event.c */
bool hed_points_add_event(struct hed_points *p, struct hed_event *e);

/* The point of the last record, with a reference to its stream, which may be NULL. event.c */
struct hed_point hed_event_point(struct hed_event *e);

/* The name of a stream for machines that name objects by their handles: 1 is the legacy stream of
 * its context. */
static inline uint64_t
hed_stream_name(const struct hed_stream *s)
{
    return s->is_legacy ? 1 : s->object.handle;
}

/* The number of the last work that was put on the stream. */
uint64_t hed_stream_now(struct hed_stream *s);

/* May work be put on the stream now? Returns the sticky error, or the error for a call on the
 * legacy stream that would break a capture. Does not check whether the stream itself captures.
 * submit.c */
CUresult hed_submit_allowed(struct hed_stream *s);

/* Can these operations on values be done? INVALID_VALUE, NOT_SUPPORTED. memop.c */
CUresult hed_memops_check(struct hed_driver *d, const CUstreamBatchMemOpParams_v1 *ops,
                          unsigned count);
