/* Streams and events: ordered queues of work, and points in them.
 *
 * A stream numbers its work 1, 2, 3, ...; `done` is the number of the last that is finished. Work
 * waits for pairs (stream, number), all of them earlier in program order, so waiting cannot go in a
 * circle. The rules of the default streams are only such pairs:
 *
 *   work on the legacy stream waits for the last number of every blocking stream of its context,
 *   work on a blocking stream waits for the last number of the legacy stream.
 *
 * The points that work waits for are taken before it gets a number: so they are older than it, also
 * when several threads put work in at once, and the first sentence holds.
 *
 * Who does the work, and how far a stream is known to have come, is the machine's business
 * (driver/machine.h).
 *
 * A stream is in its context's list, which has a reference, until it is destroyed and everything in
 * it is done: the legacy stream and cuCtxSynchronize wait for what destroyed streams still do.
 *
 * An event's record is a pair (stream, number) and a time. A waiter takes the pair that was there
 * when it began to wait, so that recording again does not matter to it.
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

/* What cuCtxGetStreamPriorityRange answers; others are taken for the nearest. */
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
    struct hed_object object; /* first */
    struct hed_context *ctx;  /* a reference */
    struct hed_stream *next;  /* ctx->streams; guarded by ctx->lock */
    struct hed_stream **link; /* what points to this one there; NULL: not in the list */
    uint32_t generation;      /* the context's, when it was made */
    bool blocking;            /* synchronises with the legacy stream */
    bool is_legacy, is_per_thread;
    unsigned flags; /* as created */
    int priority;
    uint64_t id;

    struct hed_lock lock; /* guards what follows; rank HED_RANK_STREAM */
    uint64_t submitted;   /* number of the last work put in */
    uint64_t done;        /* number of the last work that is known to be finished */
    bool destroyed;       /* no more work comes */

    _Atomic(struct hed_capture *) capture; /* into which it captures; NULL: it does not */
    CUlaunchAttributeValue attributes[16]; /* by CUstreamAttrID */

    void *own;                          /* the machine's bytes, behind this struct */
    void (*fini)(struct hed_stream *s); /* of what the machine keeps there; NULL: nothing */
};

/* A point in a stream: the stream may be gone, then the point has been reached. */
struct hed_point {
    struct hed_stream *stream; /* a reference, or NULL: reached */
    uint64_t number;
};

struct hed_event {
    struct hed_object object;              /* first */
    struct hed_context *ctx;               /* a reference */
    uint32_t generation;                   /* the context's, when it was made */
    unsigned flags;                        /* CU_EVENT_... */
    _Atomic bool gone;                     /* the machine has been told that it is destroyed */
    _Atomic bool mirrored;                 /* the machine's: its worker has the event, too */
    struct hed_lock lock;                  /* guards what follows; rank HED_RANK_EVENT */
    struct hed_point point;                /* of the last record */
    bool recorded;                         /* ever */
    uint64_t records;                      /* so many times */
    uint64_t time;                         /* ns, when the last record was reached; 0: not yet */
    _Atomic(struct hed_capture *) capture; /* recorded inside it; changed by capture.c only */
    void *capture_node;
};

/* The stream a call names: NULL is the legacy stream or, when `ptds`, the thread's own;
 * CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, or a handle, for which no context need be current.
 * INVALID_HANDLE, INVALID_CONTEXT, or the sticky error of the stream's context. To be put back with
 * hed_stream_put. */
CUresult hed_stream_find(struct hed_layer *self, CUstream handle, bool ptds,
                         struct hed_stream **out);
void hed_stream_put(struct hed_stream *s);

/* The event of a handle, to be put back with hed_object_put(&e->object); NULL: there is none. */
struct hed_event *hed_event_find(struct hed_driver *d, CUevent handle);

/* Waits for everything put in so far, in blocking streams too if it is the legacy one. The
 * context's sticky error, or success. */
CUresult hed_stream_synchronize(struct hed_stream *s);

/* Waits for a point, without a look at errors. */
void hed_point_wait(struct hed_point p);
bool hed_point_reached(struct hed_point p);

/* ---- between the files of streams ------------------------------------------------------------ */

/* stream.c. A stream with a handle, belonging to that and its context; the flags are good ones. */
CUresult hed_stream_create(struct hed_context *c, unsigned flags, int priority, CUstream *out);

/* No more work comes. What is in it is still done. The caller's reference stays. */
void hed_stream_end(struct hed_stream *s);

/* Takes a stream that is destroyed and has nothing left to do out of its context's list. */
void hed_stream_retire(struct hed_stream *s);

/* stream.c. Adds a stream's last number to the points, if it has not been reached; those of all
 * streams of a context, or of the blocking ones. False: no memory. */
bool hed_points_add(struct hed_points *p, struct hed_stream *s);
bool hed_points_add_all(struct hed_points *p, struct hed_context *c, bool only_blocking);

/* Adds any point, with a reference of its own. */
bool hed_points_add_point(struct hed_points *p, struct hed_point point);

/* Forgets those that have been reached. Lets go of all. */
void hed_points_prune(struct hed_points *p);
void hed_points_clear(struct hed_points *p);

/* A flag of a record that is put behind a graph whose node sets the time: the time stays, since the
 * node may have been there already. */
#define HED_EVENT_OF_GRAPH 0x80000000u

/* event.c. Puts HED_WORK_EVENT_RECORD or _WAIT on a stream, or into its capture. Launching a graph
 * is: this for the events its nodes wait for, the graph, this for those they record. */
CUresult hed_event_submit(struct hed_stream *s, struct hed_event *e, enum hed_work_kind kind,
                          unsigned flags);

/* event.c. Adds the event's last record, if it has one that has not been reached. False: no
 * memory. */
bool hed_points_add_event(struct hed_points *p, struct hed_event *e);

/* event.c. The point of the last record, with a reference to its stream, which may be NULL. */
struct hed_point hed_event_point(struct hed_event *e);

/* What a machine calls a stream whose objects are named by their handles: 1 is the legacy one of
 * its context. */
static inline uint64_t
hed_stream_name(const struct hed_stream *s)
{
    return s->is_legacy ? 1 : s->object.handle;
}

/* The number of the last work that was put on the stream. */
uint64_t hed_stream_now(struct hed_stream *s);

/* submit.c. May work be put on the stream now? The sticky error; captures that a call on the legacy
 * stream would break. Not whether the stream itself captures. */
CUresult hed_submit_allowed(struct hed_stream *s);

/* memop.c. Are these operations on values that can be done? INVALID_VALUE, NOT_SUPPORTED. */
CUresult hed_memops_check(struct hed_driver *d, const CUstreamBatchMemOpParams_v1 *ops,
                          unsigned count);
