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
 * A stream that has work has a runner, a thread that is made on the first work and goes away when
 * there has been none for a while. Work that the caller waits for anyway runs on the caller's own
 * thread when the stream is idle, and so does what takes no time: no thread hop.
 *
 * A stream is in its context's list, which has a reference, until it is destroyed and everything in
 * it is done: the legacy stream and cuCtxSynchronize wait for what destroyed streams still do.
 * Functions of the program (callbacks) run on runners only.
 *
 * An event's record is a pair (stream, number) and a time. A waiter takes the pair that was there
 * when it began to wait, so that recording again does not matter to it.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "driver/context/context.h"
#include "driver/handle.h"
#include "driver/stream/work.h"

struct hed_capture; /* driver/graph/graph.h */

/* Names that are no handles: CU_STREAM_LEGACY and CU_STREAM_PER_THREAD of cuda.h. */
#define HED_STREAM_LEGACY ((CUstream)(uintptr_t)1)
#define HED_STREAM_PER_THREAD ((CUstream)(uintptr_t)2)

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

    struct hed_lock lock;    /* guards the queue; rank HED_RANK_STREAM */
    pthread_cond_t finished; /* done has come to wanted */
    pthread_cond_t filled;   /* for the runner: there is work, or the stream is destroyed */
    struct hed_work *first, **last;
    uint64_t submitted; /* number of the last work put in */
    uint64_t done;      /* number of the last work finished */
    uint64_t wanted;    /* the lowest number that somebody waits for; UINT64_MAX: nobody */
    bool running;       /* work is being done, by the runner or by a caller */
    bool has_runner;
    bool destroyed; /* no more work comes */

    _Atomic(struct hed_capture *) capture; /* into which it captures; NULL: it does not */
    CUlaunchAttributeValue attributes[16]; /* by CUstreamAttrID; guarded by lock */

    /* Where work is done elsewhere (driver/far.h, far_queue.c); guarded by lock. */
    struct {
        uint64_t answered; /* done, and an answer said so: what comes with answers is here, too */
        uint64_t late;     /* the last work whose results come with an answer only */
        uint64_t begun;    /* ctx->far_begun after the last work was handed over */
        uint64_t marked;   /* the far side tells unasked when this number is reached */
        uint64_t asked;    /* ns: when somebody who does not wait last asked */
        uint32_t slot;     /* where it tells; 0: nowhere yet */
        uint64_t copied;   /* the last copy that the program takes to be done */
        _Atomic uint64_t settled; /* ctx->far_copies when those of others were last waited for */
    } far;
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
    _Atomic bool gone;                     /* a far side has been told that it is destroyed */
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

/* Has everything been done that was put in so far? For the legacy stream, in blocking ones too. */
bool hed_stream_idle(struct hed_stream *s);

/* Waits for a number; for everything put in so far. The context's sticky error, or success. */
CUresult hed_stream_wait(struct hed_stream *s, uint64_t number);
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

/* event.c. A record has been reached: the time is now. Record 0 is a node's in a running graph: it
 * has a time but no point, which is that of a record that was put on the stream after the graph. */
void hed_event_reached(struct hed_event *e, uint64_t record);

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

/* ---- far_queue.c: work that is done elsewhere ------------------------------------------------ */

/* The far side of a context's machine; NULL: work is done here. */
const struct hed_far *hed_far_of(const struct hed_context *c, void **m);

/* What a far side calls a stream: 1 is the legacy one of its context. */
static inline uint64_t
hed_stream_name(const struct hed_stream *s)
{
    return s->is_legacy ? 1 : s->object.handle;
}

/* May work be put on the stream now? As hed_submit() asks first: the sticky error, captures that a
 * call on the legacy stream would break. Not whether the stream itself captures. */
CUresult hed_submit_allowed(struct hed_stream *s);

/* Hands work over, and takes it. */
CUresult hed_far_submit(struct hed_stream *s, struct hed_work *w, bool wait);

/* For work without a struct hed_work that is one message: on success s->lock is held and the number
 * given; then it is sent, and ended with the second. INVALID_HANDLE: the stream is destroyed. */
CUresult hed_far_begin(struct hed_stream *s, uint64_t *number);
void hed_far_end(struct hed_stream *s);

/* For work that is many messages, sent without the lock: its number, when the last one is out.
 * late: its results come with a later answer. */
uint64_t hed_far_sent(struct hed_stream *s, bool late);

/* The last work that was handed over is a copy which the program takes to be done, as its call has
 * returned: what is put on streams that have no order with this one comes behind it. */
void hed_far_copied(struct hed_stream *s);
void hed_far_settle_now(struct hed_stream *s);

/* Before something is put on a stream: waits for such copies on other streams. No lock is held. */
static inline void
hed_far_settle(struct hed_stream *s)
{
    /* Acquire: pairs with hed_far_copied. Relaxed: this stream's own note. */
    if (atomic_load_explicit(&s->ctx->far_copies, memory_order_acquire) !=
        atomic_load_explicit(&s->far.settled, memory_order_relaxed))
        hed_far_settle_now(s);
}

/* The number of the last work that has been handed over; an answer that was asked for after that
 * said that it is done. */
uint64_t hed_far_now(struct hed_stream *s);
void hed_far_answered(struct hed_stream *s, uint64_t number);

/* The far side tells unasked that this number has been reached; s->lock is held. What comes late is
 * not here yet. */
void hed_far_told_locked(struct hed_stream *s, uint64_t number);

/* A stream has left its context's list with work that is not known to be done. */
void hed_far_left(struct hed_context *c);

/* Points: without waiting, and without an answer most of the time; waiting. */
bool hed_far_reached(struct hed_point p);
CUresult hed_far_wait(struct hed_point p);

/* Is everything done that was put on it, in blocking streams too if it is the legacy one? SUCCESS,
 * NOT_READY, the failure. */
CUresult hed_far_stream_query(struct hed_stream *s);
CUresult hed_far_stream_synchronize(struct hed_stream *s);
CUresult hed_far_context_wait(struct hed_context *c);

/* Is the point still that of the event's last record? If not, what the far side said of the event
 * may be about a record that another thread has made meanwhile. */
bool hed_far_is_last(struct hed_event *e, struct hed_point p);
CUresult hed_far_event_query(struct hed_event *e);
CUresult hed_far_event_synchronize(struct hed_event *e);

/* memop.c. Are these operations on values that can be done? INVALID_VALUE, NOT_SUPPORTED. */
CUresult hed_memops_check(struct hed_driver *d, const CUstreamBatchMemOpParams_v1 *ops,
                          unsigned count);
