/* The hold: keeps the program's calls out of the driver while its worker is looked at or replaced.
 *
 *   call:  enter ── closed? wait ──> driver ──> leave     one record per thread, no shared writes
 *   hold:  close ──> wait until nobody is inside ──> drained ──> ... ──> open
 *
 * A call that is under way when the hold begins is finished first: the worker still serves it. So
 * a held program is between two calls in every thread, and all of its work on devices is done.
 *
 * Invariants:
 * 1. While the hold is complete (hed_hold_close has returned 0), no thread but the holder is
 *    inside.
 * 2. Entering writes only the thread's own record. Either the entering thread sees that the hold is
 *    closed, or the holder sees the thread inside: the holder's membarrier() orders both, so that
 *    entering needs no fence.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"

#define HED_HOLD_NVML (-1) /* instead of the number of a call */

/* One thread's record. It is never freed: when its thread ends, another takes it. */
struct hed_hold_thread {
    struct hed_hold_thread *next; /* in hold->threads */
    struct hed_hold *hold;
    _Atomic uint32_t inside; /* calls of the thread that are under way; written by it alone */
    _Atomic int call;        /* the last one: enum hed_cuda_call, or HED_HOLD_NVML; for messages */
    bool taken;              /* guarded by hold->lock */
};

struct hed_hold {
    _Atomic uint32_t closed; /* 1: calls wait; a futex */
    _Atomic uint32_t left;   /* changes when a thread leaves while it is closed; a futex */
    bool fences;             /* the system has no membarrier(), so entering has a fence */
    struct hed_lock lock;    /* rank HED_RANK_HOLD; guards the list */
    struct hed_hold_thread *threads;
};

void hed_hold_init(struct hed_hold *h);

/* Enters; waits while the hold is closed, unless the thread is inside already. NULL: there is no
 * memory for the record, and the call must not be made. leave: the call has returned. */
struct hed_hold_thread *hed_hold_enter(struct hed_hold *h, int call);
void hed_hold_leave(struct hed_hold_thread *thread);

/* Closes the hold and waits up to deadline_ms until no other thread is inside. HED_ETIME: a call
 * has not returned; *call is one of those, and the hold is open again. */
int hed_hold_close(struct hed_hold *h, int deadline_ms, int *call);
void hed_hold_open(struct hed_hold *h);

static inline bool
hed_hold_is_closed(const struct hed_hold *h)
{
    /* Relaxed: the holder itself asks, or somebody who only wants to show it. */
    return atomic_load_explicit(&h->closed, memory_order_relaxed) != 0;
}
