/* The sched layer's own: what its files share. What processes share is in sched/share.h.
 *
 *     a call that puts work on a GPU
 *       gate word 0 ----------------------------------------------> next layer
 *       else: hed_sched_enter: announce, wait, keep below the cap -> next layer -> hed_sched_leave
 *
 * Invariants:
 * 1. No lock is held across a call of the next layer or while waiting.
 * 2. While any stream captures, the layer makes no call of its own but to ask whether a stream
 *    does; neither while a context is being ended, of which it may have events.
 * 3. The layer never changes, keeps or reorders a call: it only delays it, in its own thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "core/layer.h"
#include "sched/share.h"

#define HED_SCHED_GPUS 64
#define HED_SCHED_CAPTURES 64 /* streams of which it is known that they capture */
#define HED_PACE_MARKS 32     /* events under way, a GPU */
#define HED_PACE_SPARE 64     /* events kept, a process */
#define HED_PACE_KINDS 1024   /* kinds of work whose time is known; a power of two */

/* An event behind some work, and one in front of it where its time is to be taken. */
struct hed_mark {
    CUevent start; /* NULL: only a mark */
    CUevent end;
    CUcontext context; /* of both */
    uint64_t kind;
    uint64_t predicted; /* ns: when the clock says that the work ends */
};

/* A clock of a GPU: when does what this process has put there end? Guarded by hed_sched.lock. */
struct hed_pace {
    uint64_t ends;      /* ns */
    uint64_t marked;    /* ns: `ends` at the last mark */
    uint64_t last_poll; /* ns */
    uint64_t stream;    /* the one stream that work is on; 0: no work, UINT64_MAX: several */
    bool polling;       /* a thread is asking the driver about marks */
    struct hed_mark marks[HED_PACE_MARKS];
    unsigned first, count;
};

struct hed_sched_gpu {
    CUdevice device;
    struct hed_meet *meet; /* NULL: it could not be joined, and the gate is always open */
    struct hed_sched_place *place;
    struct hed_sched_common *common;
    struct hed_pace pace;
};

/* What is known of the time a kind of work takes: a kernel with such a grid, a graph, a copy of
 * such a size. */
struct hed_kind {
    uint64_t key; /* 0: none */
    uint32_t ns;
    uint32_t samples;
    uint32_t calls;
};

struct hed_sched {
    _Atomic uint32_t count; /* of gpus; grows only */
    struct hed_sched_gpu *gpus[HED_SCHED_GPUS];
    struct hed_sched_wish wish;

    struct hed_lock lock;      /* guards what is below, gpus being joined, and each pace */
    _Atomic uint32_t keep_off; /* captures under way, contexts being ended: no calls of ours */
    _Atomic uint32_t busy;     /* threads that make calls of ours */
    uint64_t capturing[HED_SCHED_CAPTURES]; /* streams, hed_stream_key */
    struct hed_kind kinds[HED_PACE_KINDS];
    struct hed_mark spare[HED_PACE_SPARE]; /* `end` and context alone */
    unsigned spares;
};

/* A call's way through the gate. */
struct hed_turn {
    struct hed_sched_gpu *gpu; /* NULL: it is none of our business */
    enum hed_cuda_call id;
    CUstream stream;
    bool ptds;
    bool watch;  /* its time counts */
    bool blocks; /* when it returns, its work is done */
    uint64_t kind;
    uint64_t guess; /* ns, where nothing is known of its kind */
    struct hed_mark mark;
};

/* calls.c: all calls that pass the gate. */
extern const struct hed_cuda_ops hed_sched_cuda;

/* What sort of work a call is: its kind, and a guess of its time. */
void hed_sched_describe(struct hed_turn *t, enum hed_cuda_call id, const void *args);

/* gate.c */
void hed_sched_enter(struct hed_layer *self, struct hed_turn *t, enum hed_cuda_call id,
                     const void *args);
void hed_sched_leave(struct hed_layer *self, struct hed_turn *t, CUresult result);
bool hed_sched_all_open(struct hed_sched *s, uint32_t count);

/* The GPU of the calling thread's context, joined; NULL. */
struct hed_sched_gpu *hed_sched_here(struct hed_layer *self);

/* sched.c */
struct hed_sched_gpu *hed_sched_join_gpu(struct hed_layer *self, CUdevice device);

/* sync.c: calls that wait for the GPU, captures, contexts that end. */
CUresult hed_sched_cuCtxSynchronize(struct hed_layer *self, struct hed_cuCtxSynchronize *a);
CUresult hed_sched_cuCtxSynchronize_v2(struct hed_layer *self, struct hed_cuCtxSynchronize_v2 *a);
CUresult hed_sched_cuStreamSynchronize(struct hed_layer *self, struct hed_cuStreamSynchronize *a);
CUresult hed_sched_cuEventSynchronize(struct hed_layer *self, struct hed_cuEventSynchronize *a);
void hed_sched_capture_began(struct hed_sched *s, uint64_t stream);
void hed_sched_capture_ended(struct hed_sched *s, uint64_t stream);
bool hed_sched_captures(struct hed_layer *self, CUstream stream, bool ptds);

/* From the first to the second, no thread makes a call of ours (but to ask about a capture). */
void hed_sched_keep_off(struct hed_sched *s);
void hed_sched_come_back(struct hed_sched *s);

/* Around calls of ours. False: not now. */
bool hed_sched_own_begin(struct hed_sched *s);
void hed_sched_own_end(struct hed_sched *s);

/* The process's work on that GPU is done, as far as anybody can tell. */
void hed_sched_quiet(struct hed_sched *s, struct hed_sched_gpu *g, uint64_t now);

/* pace.c */
void hed_pace_begin(struct hed_layer *self, struct hed_turn *t);
void hed_pace_end(struct hed_layer *self, struct hed_turn *t, uint64_t now);
void hed_pace_cancel(struct hed_sched *s, struct hed_turn *t);
void hed_pace_poll(struct hed_layer *self, struct hed_sched_gpu *g, uint64_t now);
void hed_pace_quiet_locked(struct hed_sched *s, struct hed_sched_gpu *g, uint64_t now);
void hed_pace_forget(struct hed_layer *self); /* while everybody keeps off: a context may end */

static inline uint64_t
hed_stream_key(CUstream stream, bool ptds, uint64_t thread)
{
    const uint64_t s = (uint64_t)(uintptr_t)stream;

    if (s == 2 || (s == 0 && ptds)) /* the thread's own: CU_STREAM_PER_THREAD */
        return thread | 3;
    return s == 0 ? 1 : s; /* CU_STREAM_LEGACY */
}

/* Counts a call. Threads use counters of their own where their stacks differ enough. */
static inline void
hed_sched_count(struct hed_sched_place *p)
{
    const uintptr_t stack = (uintptr_t)__builtin_frame_address(0);

    atomic_fetch_add_explicit(&p->calls[(stack >> 16) % HED_SCHED_STRIPES].n, 1,
                              memory_order_relaxed);
}

/* May a call go on at once? Counts it, then. */
static inline bool
hed_sched_open(struct hed_sched *s)
{
    /* Acquire: pairs with the release in hed_sched_join_gpu, so that the GPU is seen complete. */
    const uint32_t count = atomic_load_explicit(&s->count, memory_order_acquire);

    if (__builtin_expect(count != 1, 0))
        return hed_sched_all_open(s, count);

    struct hed_sched_place *p = s->gpus[0]->place;

    /* Relaxed: a gate that closes just now is seen by the next call. */
    if (__builtin_expect(atomic_load_explicit(&p->gate, memory_order_relaxed) != 0, 0))
        return false;
    hed_sched_count(p);
    return true;
}
