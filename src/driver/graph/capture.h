/* Captures from the inside: for capture.c and capture_calls.c only.
 *
 * One lock (rank HED_RANK_CAPTURE) guards all captures, and a stream's `capture` only changes under
 * it. Nothing here is touched while no stream captures.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "driver/graph/node.h"
#include "driver/stream/stream.h"

/* Nodes that the next node comes after. */
struct hed_tips {
    struct hed_node **at; /* references */
    size_t count, room;
    CUgraphNode *handles; /* as returned by cuStreamGetCaptureInfo; has room + 1 entries */
};

struct hed_joined {
    struct hed_joined *next;
    struct hed_stream *stream; /* a reference */
    struct hed_tips tips;
};

struct hed_capture {
    uint32_t refs; /* held by streams and events; guarded by hed_captures_lock */
    uint64_t id;
    struct hed_graph *graph; /* a reference until it is given to the program */
    bool owns_graph;         /* created by the capture, not given by the program */
    bool invalidated;
    CUstreamCaptureMode mode;
    pthread_t thread;
    struct hed_stream *origin;
    struct hed_joined *streams; /* the origin comes last */
    struct hed_tips left;       /* tips of streams that have been destroyed since */
    struct hed_capture *next;
};

extern struct hed_lock hed_captures_lock;
extern struct hed_capture *hed_captures;     /* active captures; guarded by the lock */
extern _Atomic unsigned hed_captures_active; /* their number; read without the lock as a hint */
extern __thread CUstreamCaptureMode hed_capture_mode; /* cuThreadExchangeStreamCaptureMode */

bool hed_tips_add(struct hed_tips *t, struct hed_node *n);
void hed_tips_clear(struct hed_tips *t);
void hed_tips_free(struct hed_tips *t);

/* The tips as handles; valid until the next call on the stream. NULL if there is no memory. */
CUgraphNode *hed_tips_handles(struct hed_tips *t);

struct hed_capture *hed_capture_of(struct hed_stream *s);
struct hed_joined *hed_capture_joined_locked(struct hed_capture *c, const struct hed_stream *s);
CUresult hed_capture_join_locked(struct hed_capture *c, struct hed_stream *s,
                                 struct hed_joined **out);

/* All streams leave. Returns them; the caller puts them back after it has released the lock. */
struct hed_joined *hed_capture_leave_locked(struct hed_capture *c);
void hed_capture_put_streams(struct hed_joined *all);
void hed_capture_unref_locked(struct hed_capture *c);
