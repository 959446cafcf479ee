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

#define HED_SCHED_GPUS 256    /* a client's on one GPU: pairs */
#define HED_SCHED_CLIENTS 64  /* named ones, a process */
#define HED_SCHED_CAPTURES 64 /* streams of which it is known that they capture */
#define HED_PACE_MARKS 32     /* events under way, a GPU */
#define HED_PACE_KEPT 64      /* events kept for later, a process */
#define HED_PACE_SPARE 256    /* room for them: a poll may give back many at once */
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

/* A client that threads belong to by its name (heddle_set_client). Never freed. */
struct hed_sched_named {
    char name[HED_SCHED_NAME];
    struct hed_sched_settings settings;
};

/* What a client is on a GPU. */
struct hed_sched_gpu {
    CUdevice device;
    const struct hed_sched_named *client; /* NULL: the process's own */
    struct hed_meet *meet; /* NULL: it could not be joined, and the gate is always open */
    struct hed_sched_place *place;
    struct hed_sched_common *common;
    _Atomic bool warned; /* the log knows that the lock was not to be had */
    struct hed_pace pace;
};

/* What is known of the time a kind of work takes: a kernel with such a grid, a graph, a copy of
 * such a size. */
struct hed_work_time {
    uint64_t key; /* 0: none */
    uint32_t ns;
    uint32_t samples;
    uint32_t calls;
    uint32_t steady; /* samples in a row that were alike */
};

struct hed_sched {
    /* The one place there is, of the one client on the one GPU; NULL: there are several or none. */
    _Atomic(struct hed_sched_place *) only;
    _Atomic uint32_t count; /* of gpus; grows only */
    struct hed_sched_gpu *gpus[HED_SCHED_GPUS];
    struct hed_sched_settings settings;

    struct hed_lock lock; /* guards what is below, gpus being joined, and each pace */
    struct hed_sched_named *named[HED_SCHED_CLIENTS];
    uint32_t named_count;
    _Atomic uint32_t keep_off; /* captures under way, contexts being ended: no calls of ours */
    _Atomic uint32_t busy;     /* threads that make calls of ours */
    struct {
        uint64_t stream; /* hed_stream_key; 0: none */
        CUcontext context;
    } capturing[HED_SCHED_CAPTURES];
    struct hed_work_time kinds[HED_PACE_KINDS];
    struct hed_mark spare[HED_PACE_SPARE]; /* `end` and context alone */
    unsigned spares;
    uint32_t era; /* all events of before have been destroyed */
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
    uint32_t era; /* of the mark's start */
};

/* calls.c: all calls that pass the gate. */
extern const struct hed_cuda_ops hed_sched_cuda;

/* What sort of work a call is: its kind, and a guess of its time. */
void hed_sched_describe(struct hed_turn *t, enum hed_cuda_call id, const void *args);

/* Whether the layer does anything about a call. */
static inline bool
hed_sched_sees(const struct hed_call_info *info)
{
    if (info->does == HED_DOES_END)
        return info->of_kind == HED_CUDA_KIND_STREAM;
    return hed_call_is_work(info) || info->does == HED_DOES_WAIT ||
           (info->does >= HED_DOES_BEGIN_CAPTURE && info->does <= HED_DOES_END_CONTEXT);
}

/* The device of a call that begins a context; the context that a call ends, NULL if unknown. */
CUdevice hed_sched_device_of(enum hed_cuda_call id, const void *args);
CUcontext hed_sched_context_of(enum hed_cuda_call id, const void *args);

/* What tells the call's stream from others. */
uint64_t hed_sched_stream_key(enum hed_cuda_call id, const void *args);

/* Which stream has no work any more after a call that waits, see hed_sched_wait_ends. */
uint64_t hed_sched_waited_for(struct hed_layer *self, enum hed_cuda_call id, const void *args);

/* halves.c: the same for who is told before and after a call that somebody else makes. `t` belongs
 * to the call; the second must follow, in the same thread. */
void hed_sched_before(struct hed_layer *self, struct hed_turn *t, enum hed_cuda_call id,
                      const void *args);
void hed_sched_after(struct hed_layer *self, struct hed_turn *t, enum hed_cuda_call id,
                     const void *args, CUresult result);

/* gate.c */
void hed_sched_enter(struct hed_layer *self, struct hed_turn *t, enum hed_cuda_call id,
                     const void *args);
void hed_sched_leave(struct hed_layer *self, struct hed_turn *t, CUresult result);

/* client.c: the calling thread's client; NULL: the process's own, as after a name that was refused
 * (HED_E..., said in the log). */
const struct hed_sched_named *hed_sched_mine(const struct hed_sched *s);
int hed_sched_set_client(struct hed_layer *self, const char *text);
bool hed_sched_all_open(struct hed_sched *s);

/* The GPU of the calling thread's context as its client has it, joined; NULL. */
struct hed_sched_gpu *hed_sched_here(struct hed_layer *self);

/* Calls of a client that are recorded and not at the gate yet: counts one, takes it back, and looks
 * whether that one is reason enough to decide. */
void hed_sched_queue(struct hed_sched_gpu *g);
void hed_sched_unqueue(struct hed_sched_gpu *g);
void hed_sched_queued(struct hed_sched_gpu *g);

/* From the first to the second, a thread waits for the client's work. */
void hed_sched_hurry(struct hed_sched_gpu *g);
void hed_sched_hurried(struct hed_sched_gpu *g);

/* What the client has queued so far goes on: another one waits for it, in its own turn perhaps.
 * Nothing happens where somebody has paused it. */
void hed_sched_release(struct hed_sched_gpu *g);

/* sched.c */
extern const struct hed_layer_type hed_sched_layer;
struct hed_sched_gpu *hed_sched_join_gpu(struct hed_layer *self, CUdevice device);
void hed_sched_let_go(struct hed_layer *self); /* all gates are open from now on */

/* ranges.c: for profilers, the time that a thread waits, and for whom. Off: a load. */
void hed_sched_range_turn(struct hed_sched_gpu *g);
void hed_sched_range_cap(void);

/* sync.c: calls that wait for the GPU, captures, contexts that end. */
/* Around a call that waits for the GPU. Counted also while the gate is open: who comes now must see
 * that there is work. NULL: there is no GPU to speak of. `stream`: the one that has no work any
 * more; 0: none has, UINT64_MAX: nobody knows. */
struct hed_sched_gpu *hed_sched_wait_begins(struct hed_layer *self);
void hed_sched_wait_ends(struct hed_layer *self, struct hed_sched_gpu *g, CUresult r,
                         uint64_t stream);
/* `stream` for a context. */
uint64_t hed_sched_of_context(struct hed_layer *self, CUcontext context);
void hed_sched_capture_began(struct hed_layer *self, uint64_t stream);
void hed_sched_capture_ended(struct hed_sched *s, uint64_t stream);
void hed_sched_context_ended(struct hed_sched *s, CUcontext context); /* with its captures */

/* Questions to a layer: the current context, NULL if there is none; does that stream capture? */
CUcontext hed_sched_context(struct hed_layer *at);
bool hed_sched_captures(struct hed_layer *at, CUstream stream, bool ptds);

/* From the first to the second, no thread makes a call of ours (but to ask about a capture). */
void hed_sched_keep_off(struct hed_sched *s);
void hed_sched_come_back(struct hed_sched *s);

/* Around calls of ours. False: not now. */
bool hed_sched_own_begin(struct hed_sched *s);
void hed_sched_own_end(struct hed_sched *s);

/* The process's work on that GPU is done, as far as anybody can tell. */
void hed_sched_quiet(struct hed_sched *s, struct hed_sched_gpu *g, uint64_t now);

/* pace.c */
uint64_t hed_pace_takes(struct hed_sched *s, const struct hed_turn *t); /* ns, as far as known */
uint64_t hed_pace_ends(struct hed_sched *s, struct hed_sched_gpu *g, uint64_t now); /* >= now */
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

/* GPU time that a limited client may have in flight, whatever shared memory says. */
static inline uint64_t
hed_sched_cap(const struct hed_sched_gpu *g)
{
    const uint64_t cap = atomic_load_explicit(&g->common->cap, memory_order_relaxed);

    return cap < HED_SCHED_PATIENCE_NS ? cap : HED_SCHED_PATIENCE_NS;
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
    /* Acquire: pairs with the release in hed_sched_join_gpu, so that the place is seen complete. */
    struct hed_sched_place *p = atomic_load_explicit(&s->only, memory_order_acquire);

    if (__builtin_expect(p == NULL, 0))
        return hed_sched_all_open(s);
    /* Relaxed: a gate that closes just now is seen by the next call. */
    if (__builtin_expect(atomic_load_explicit(&p->gate, memory_order_relaxed) != 0, 0))
        return false;
    hed_sched_count(p);
    return true;
}
