/* The engine of record mode. Calls that put work on a GPU are copied into a queue, and threads of
 * the engine make them later in the same order. So work can be held without holding the program's
 * threads.
 *
 * The layer `record` (src/layers/record) drives the engine from above the layer `sched`.
 * src/see/inject, which sees calls through CUPTI, drives it in the same way:
 *
 *     struct hed_record_call c;
 *     CUresult result;
 *
 *     switch (hed_recorder_before(r, id, args, &c, &result)) {
 *     case HED_RECORD_TAKEN:  return result;           the call is in the queue; do not make it
 *     case HED_RECORD_ANSWER: return result;           do not make it; return this answer
 *     case HED_RECORD_MAKE:   break;
 *     }
 *     made = ... make the call with args, in this thread ...
 *     return hed_recorder_after(r, id, args, &c, made);  always after MAKE
 *
 * Promises:
 * 1. The calls that a thread queues are issued in the order in which they were queued. So are the
 *    calls of several threads on the same stream, event or executable graph.
 * 2. When `before` answers MAKE, every queued call that this call may not overtake has been issued.
 * 3. The data that a call points to is copied before `before` answers TAKEN. The caller may
 *    overwrite it then.
 * 4. While any stream captures, no call is queued, and the engine makes no call that could end the
 *    capture.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/layer.h"
#include "share/sched/share.h"

struct hed_recorder;
struct hed_gate;
struct hed_sched;

/* Which calls may be queued: a set of these bits. */
enum hed_record_defer {
    HED_RECORD_LAUNCHES = 1, /* launches of kernels and graphs */
    HED_RECORD_COPIES = 2,   /* copies, fills and prefetches, if their memory allows it */
    HED_RECORD_ORDER = 4,    /* events, waits, host functions, frees in stream order */
    HED_RECORD_ALL = 7,
    HED_RECORD_ASIDE = 8, /* only the engine's threads issue calls, never a program thread */
};

enum hed_record_verdict {
    HED_RECORD_MAKE,   /* make the call now, in this thread, then hed_recorder_after */
    HED_RECORD_TAKEN,  /* the call is in the queue, and *result is its answer */
    HED_RECORD_ANSWER, /* do not make it: *result is its answer, an error of earlier work */
};

/* What `before` tells `after` about a call. The memory belongs to the caller, the contents to the
 * engine. */
struct hed_record_call {
    struct hed_record_client *client; /* NULL: `after` has nothing to do */
    struct hed_gate *hurried;         /* where the thread counts as waiting for the GPU */
    bool tried;                       /* calls like it may be deferred if it succeeds */
    bool passed;                      /* recording is off: it goes straight to the next layer */
    bool joins;   /* it goes to the program's stream, which may join a capture through it */
    bool swapped; /* heddle's stream replaces the program's, which the next fields keep */
    bool ptds;
    uint64_t stream;
    CUlaunchConfig config;       /* the arguments point to this during the call */
    const CUlaunchConfig *given; /* the program's configuration */
    CUstreamCallback callback;   /* the program's callback, if heddle's replaces it */
    void *user;
    void *told; /* the argument of heddle's callback; NULL: the program's is in use */
};

/* Creates an engine that issues calls by calling the layer `next`. If `next` is the layer `sched`,
 * `sched` is its engine: queued work counts as waiting there, and named clients have slots of their
 * own. `settings` is copied.
 *
 * settings->own_stream works only if the caller makes the call with `args` as `before` left
 * them. */
int hed_recorder_create(struct hed_layer *next, struct hed_sched *sched,
                        const struct hed_sched_settings *settings, unsigned defer,
                        struct hed_recorder **out, struct hed_why *why);

/* Before and after a call, in any thread. May wait for room in a queue or for work to be issued.
 * Inside a call of the engine (hed_recorder_inside) and while recording is off, no call is queued.
 *
 * `args` is the argument struct of the call (struct hed_cuLaunchKernel ...). */
enum hed_record_verdict hed_recorder_before(struct hed_recorder *r, enum hed_cuda_call id,
                                            void *args, struct hed_record_call *c,
                                            CUresult *result);
CUresult hed_recorder_after(struct hed_recorder *r, enum hed_cuda_call id, void *args,
                            struct hed_record_call *c, CUresult made);

/* Whether the calling thread is inside a call of the engine. Calls that it makes there go straight
 * to the next layer. */
bool hed_recorder_inside(void);

/* A word of the caller's own that travels with a queued call. The first function sets the word for
 * the calls that this thread queues from now on. The second returns the word of the call that this
 * thread is issuing, 0 if there is none. */
void hed_recorder_set_tag(uint64_t tag);
uint64_t hed_recorder_tag(void);

/* Sets the client that the calling thread works for from now on: "name" or
 * "name:prio=high,share=3". "" or NULL is the process's own client. With `below`, also tells the
 * engine of `sched`. */
void hed_recorder_set_client(struct hed_recorder *r, const char *text, bool below);

/* Waits until all calls that any client has queued so far have been issued. */
void hed_recorder_drain_all(struct hed_recorder *r);

/* Issues the queued calls and queues no more. Calls may still come. */
void hed_recorder_fini(struct hed_recorder *r);

/* In the child of a fork: forgets the queued calls and queues no more. */
void hed_recorder_forked(struct hed_recorder *r);

/* For tests, after hed_recorder_fini and when no call can be under way. */
void hed_recorder_free(struct hed_recorder *r);
