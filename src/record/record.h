/* Record mode: calls that put work on a GPU are copied into a queue and made later, in the same
 * order, by a thread of ours, so that work can be held without holding the program's threads.
 *
 * The engine. The layer `record` (record_layer.c) drives it from above the layer `sched`; whoever
 * sees calls in another way can drive it as well:
 *
 *     struct hed_record_call c;
 *     CUresult result;
 *
 *     switch (hed_recorder_before(r, id, args, &c, &result)) {
 *     case HED_RECORD_TAKEN:  return result;           it is in the queue; do not make it
 *     case HED_RECORD_ANSWER: return result;           do not make it; the program gets this
 *     case HED_RECORD_MAKE:   break;
 *     }
 *     made = ... make the call with args, in this thread ...
 *     return hed_recorder_after(r, id, args, &c, made);  always, if MAKE was the answer
 *
 * Promises:
 * 1. All that a client queues is issued in the order it was queued in, whatever the streams.
 * 2. When `before` says MAKE, everything that the call may not overtake has been issued.
 * 3. What a call points at is copied before it counts as taken: the caller may overwrite it.
 * 4. While any stream captures, nothing is taken, and no call of ours is made that could end it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/layer.h"
#include "sched/share.h"

struct hed_recorder;
struct hed_gate;
struct hed_sched;

/* What may be taken. */
enum hed_record_defer {
    HED_RECORD_LAUNCHES = 1, /* launches of kernels and graphs */
    HED_RECORD_COPIES = 2,   /* copies, fills and prefetches, where their memory allows it */
    HED_RECORD_ORDER = 4,    /* events, waits, host functions, frees in stream order */
    HED_RECORD_ALL = 7,
    HED_RECORD_ASIDE = 8, /* besides: only threads of ours issue, never one that drains */
};

enum hed_record_verdict {
    HED_RECORD_MAKE,   /* make the call now, in this thread, then hed_recorder_after */
    HED_RECORD_TAKEN,  /* it is in the queue: *result is its answer */
    HED_RECORD_ANSWER, /* it must not be made: *result is its answer, an error of earlier work */
};

/* What `before` tells `after` of the same call. The caller's memory, the engine's contents. */
struct hed_record_call {
    struct hed_record_client *client; /* NULL: `after` has nothing to do */
    struct hed_gate *hurried;         /* its thread counts there as waiting for the GPU */
    bool tried;                       /* what it uses becomes known as good if it succeeds */
    bool passed;                      /* recording is off: it goes straight down */
    bool joins;   /* it goes to the program's stream, which may join a capture by it */
    bool swapped; /* a stream of ours is in the place of the program's: */
    bool ptds;
    uint64_t stream;
    CUlaunchConfig config;       /* what the arguments point at meanwhile, */
    const CUlaunchConfig *given; /* instead of this */
    CUstreamCallback callback;   /* the program's, if ours is in its place */
    void *user;
    void *told; /* what ours is given; NULL: the program's is there */
};

/* An engine over `next`: calls are issued by calling that layer. If it is the layer `sched`, queued
 * work counts there as waiting, and clients have places of their own. `settings` is copied.
 *
 * settings->own_stream works only for a caller that hands on `args` as they are after `before`. */
int hed_recorder_create(struct hed_layer *next, struct hed_sched *sched,
                        const struct hed_sched_settings *settings, unsigned defer,
                        struct hed_recorder **out, struct hed_why *why);

/* Before and after a call. By any thread; may wait (for a full queue, for work to be issued).
 * Inside a call of ours (hed_recorder_inside) and while recording is off, nothing is taken.
 *
 * `args` is as in the table of calls (struct hed_cuLaunchKernel ...). */
enum hed_record_verdict hed_recorder_before(struct hed_recorder *r, enum hed_cuda_call id,
                                            void *args, struct hed_record_call *c,
                                            CUresult *result);
CUresult hed_recorder_after(struct hed_recorder *r, enum hed_cuda_call id, void *args,
                            struct hed_record_call *c, CUresult made);

/* Is the calling thread making a call of ours? Then what it calls goes straight down. */
bool hed_recorder_inside(void);

/* A word of the caller's own that goes with a call: set for the calls that this thread hands over
 * from now on; and that of the call that this thread is issuing, 0 if none. */
void hed_recorder_set_tag(uint64_t tag);
uint64_t hed_recorder_tag(void);

/* The client that the calling thread works for from now on, "name" or "name:prio=high,share=3"; ""
 * or NULL: the process's own. Tells the layers below, too, if `below`. */
void hed_recorder_set_client(struct hed_recorder *r, const char *text, bool below);

/* Waits until everything that all clients have queued so far has been issued. */
void hed_recorder_drain_all(struct hed_recorder *r);

/* Drains; from then on nothing is taken. Calls may still come. */
void hed_recorder_fini(struct hed_recorder *r);

/* In the child of a fork: what is queued is forgotten, and nothing is taken any more. */
void hed_recorder_forked(struct hed_recorder *r);

/* Only where no call can be under way and hed_recorder_fini has been called: for tests. */
void hed_recorder_free(struct hed_recorder *r);
