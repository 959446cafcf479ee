/* libheddle-inject.so, which the driver itself loads into a program (CUDA_INJECTION64_PATH): what
 * its files share.
 *
 *     program -> driver -> CUPTI -> ENTER -> gate, or record (the call is voided)
 *                  |                           |
 *                  v                           v        chain: sched > gpu
 *                the call                   our own calls -> driver (their callbacks are ignored)
 *                  |
 *                  +------> CUPTI -> EXIT -> gate, answer repaired, trace
 *
 * Invariants:
 * 1. A callback that one of our own calls causes is ignored.
 * 2. The arguments of a call are restored before it returns. Its answer is changed only if heddle
 *    has taken the call.
 * 3. Whatever goes wrong while starting, the program runs as if we were not there.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/layer.h"
#include "see/inject/cupti.h"

#define HED_INJECT_ARGS 256 /* bytes of a call's arguments; a call with more is left alone */

/* What we want of a call, as bits. */
enum hed_inject_wants {
    HED_INJECT_TRACE = 1,
    HED_INJECT_GATE = 2,
    HED_INJECT_RECORD = 4,
    HED_INJECT_DRAIN = 8, /* issue held work first: a call that the recorder does not know */
};

/* The call of a callback id. */
struct hed_inject_call {
    uint16_t id;   /* enum hed_cuda_call; 0 if heddle does not know it */
    bool ptds;     /* its per-thread-default-stream variant */
    uint8_t wants; /* enum hed_inject_wants */
};

/* Everything is set before the first callback is enabled, and is constant afterwards. */
struct hed_inject {
    _Atomic bool off;                /* in the child of a fork: do nothing any more */
    struct hed_layer *sched;         /* NULL if not asked for */
    struct hed_recorder *record;     /* NULL if calls are not recorded */
    struct hed_trace_writer *writer; /* NULL without a trace */
    struct hed_inject_call calls[HED_CUPTI_CALLS_MAX];
};

extern struct hed_inject hed_inject;

/* calls.c: finds out which call each callback id stands for, and what we want of it. Returns how
 * many we want. */
unsigned hed_inject_list(struct hed_inject *i);

/* callback.c */
void hed_inject_callback(void *user, int domain, uint32_t id, const void *data);

/* activity.c: attributes what a call of ours causes to a call of the program. */
void hed_inject_link(uint32_t ours, uint64_t programs);

/* Starts writing kernels, copies and fills of the GPU into the trace. Returns 0 or CUPTI's
 * error. */
int hed_inject_watch(void);
void hed_inject_flush(void); /* fetches what CUPTI still has; at the end of the process */
