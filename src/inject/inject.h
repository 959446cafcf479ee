/* libheddle-inject.so: what the driver itself loads into a program (CUDA_INJECTION64_PATH), and its
 * files' common part.
 *
 *     program -> driver -> CUPTI -> ENTER -> gate, or record (the call is voided)
 *                  |                           |
 *                  v                           v        chain: sched > gpu
 *                the call                   calls of ours -> driver (callbacks that we pass over)
 *                  |
 *                  +------> CUPTI -> EXIT -> gate, answer repaired, trace
 *
 * Invariants:
 * 1. A callback that one of our own calls causes is passed over.
 * 2. What a call is given is put back before it returns; its answer is changed only where heddle
 *    has taken the call.
 * 3. Whatever goes wrong while starting, the program runs as if we were not there.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/layer.h"
#include "inject/cupti.h"

#define HED_INJECT_ARGS 256 /* bytes of a call's arguments; more is a call that is left alone */

/* What becomes of a call, bits. */
enum hed_inject_wants {
    HED_INJECT_TRACE = 1,
    HED_INJECT_GATE = 2,
    HED_INJECT_RECORD = 4,
    HED_INJECT_DRAIN = 8, /* what is held goes first: a call that the record knows nothing of */
};

/* A callback id's call. */
struct hed_inject_call {
    uint16_t id;   /* enum hed_cuda_call; 0: heddle does not know it */
    bool ptds;     /* its per-thread-default-stream variant */
    uint8_t wants; /* enum hed_inject_wants */
};

/* Everything is set before the first callback is enabled, and constant afterwards. */
struct hed_inject {
    _Atomic bool off;                /* in a forked child: nothing is done any more */
    struct hed_layer *sched;         /* NULL: not asked for */
    struct hed_recorder *record;     /* NULL: calls are not recorded */
    struct hed_trace_writer *writer; /* NULL: no trace */
    struct hed_inject_call calls[HED_CUPTI_CALLS_MAX];
};

extern struct hed_inject hed_inject;

/* calls.c: finds out what each callback id is, and what is wanted of it. Returns how many. */
unsigned hed_inject_list(struct hed_inject *i);

/* callback.c */
void hed_inject_callback(void *user, int domain, uint32_t id, const void *data);

/* activity.c. What one call of ours causes is put down to a call of the program. */
void hed_inject_link(uint32_t ours, uint64_t programs);

/* Kernels, copies and fills on the GPU, into the trace. 0, or CUPTI's error. */
int hed_inject_watch(void);
void hed_inject_flush(void); /* what CUPTI still has; at the end of the process */
