/* The record engine's own: what its files share. What it promises is in record.h.
 *
 *     threads of a client                       the client's issuing thread, or one that drains
 *       take: under the lock, into the ring       in its turn (role), in order:
 *         in++, wake it if it sleeps                next layer (gate), out++, wake who waits
 *
 * Invariants:
 * 1. Records in..out of a ring are written before `in` says so, and not touched until `out`
 *    and `head` say that they are done with.
 * 2. Who has the role, and nobody else, moves `out` and `head` and makes calls of the queue. It is
 *    given up only when nothing is left or by somebody who wakes the issuing thread.
 * 3. The lock is never held across a call of the next layer.
 */
#pragma once

#include <stdatomic.h>

#include "base/lock.h"
#include "core/stream.h"
#include "record/record.h"
#include "sched/gate.h"

#define HED_RECORD_RING (2u << 20)    /* bytes of a client's queue; a power of two */
#define HED_RECORD_MAX (192u << 10)   /* bytes of one record */
#define HED_RECORD_INLINE (64u << 10) /* bytes of pageable memory that are copied into a record */
#define HED_RECORD_CLIENTS 64
#define HED_RECORD_KINDS 1024   /* kinds of launches known, a client; a power of two */
#define HED_RECORD_HANDLES 1024 /* streams, events and graphs known, a client; a power of two */
#define HED_RECORD_TOUCHED 256  /* counters by stream or event; a power of two */
#define HED_RECORD_CAPTURES 64
#define HED_RECORD_CONTEXTS 64 /* with a stream of ours */
#define HED_RECORD_PARAMS 4096 /* of a kernel */

/* A call in the ring. Its arguments follow, and what they point at. */
struct hed_record {
    _Alignas(16) uint32_t size; /* bytes, this included; a multiple of 32 */
    uint32_t id;                /* enum hed_cuda_call; 0: go on at the beginning of the ring */
    CUcontext context;
    struct hed_gate *gpu; /* where it counts as queued; NULL: nowhere */
    uint64_t tag;         /* see hed_recorder_set_tag */
};

/* The words of a launch's `extra`. */
#define HED_PARAM_END ((void *)0)
#define HED_PARAM_BUFFER_POINTER ((void *)1)
#define HED_PARAM_BUFFER_SIZE ((void *)2)

struct hed_record_param {
    uint16_t offset, size;
};

/* A kernel's parameters. */
struct hed_record_layout {
    uint32_t count;
    uint32_t bytes;
    struct hed_record_param at[];
};

/* A launch that has succeeded: the like may be deferred. */
struct hed_record_kind {
    uint64_t key; /* 0: none */
    CUfunction function;
    uint32_t shared;
    struct hed_record_layout *layout; /* NULL: there are no arguments to copy */
};

/* A stream, an event or a graph that a call has succeeded with, in that context. */
struct hed_record_handle {
    uint64_t handle; /* 0: none */
    CUcontext context;
};

struct hed_record_client {
    struct hed_recorder *engine;
    char name[HED_SCHED_NAME]; /* "": the process's own */
    char text[512];            /* what the layers below are told */
    uint32_t index;

    pthread_t thread;     /* the issuing one, if started */
    struct hed_lock lock; /* guards what is below up to `last`, and writing of `in` and `last` */
    char *ring;           /* NULL: nothing has been taken yet */
    uint64_t tail;        /* bytes ever taken */
    bool started;         /* there is an issuing thread */
    uint32_t epoch;       /* of the engine, when kinds was last emptied */
    struct hed_record_kind kinds[HED_RECORD_KINDS];
    struct hed_record_handle handles[HED_RECORD_HANDLES];

    _Atomic(struct hed_gate *) gpu;            /* where the last one counts as queued; NULL */
    _Atomic uint64_t last[HED_RECORD_TOUCHED]; /* number of the last record that touches it */
    _Atomic uint64_t last_default;             /* the same of the default stream */
    _Alignas(64) _Atomic uint64_t in;          /* records ever taken */
    _Alignas(64) _Atomic uint64_t out;         /* records ever issued */
    _Atomic uint64_t head;                     /* bytes ever issued */
    _Atomic uint64_t wake_at;                  /* the first that somebody waits for; UINT64_MAX */
    _Atomic uint32_t progress;                 /* a futex; changes when wake_at has been reached */
    _Atomic uint32_t role;                     /* 1: somebody issues */
    _Atomic uint32_t sleeping;                 /* the issuing thread does */
    _Atomic uint32_t wake;                     /* its futex */
    _Atomic uint32_t error;                    /* CUresult of the first call that failed; 0 */
};

struct hed_recorder {
    struct hed_layer *next;
    struct hed_sched *sched; /* its engine, if `next` is the layer sched; else NULL */
    bool own;                /* stream=own */
    unsigned defer;
    uint32_t queue;
    _Atomic bool off;           /* nothing is taken any more */
    _Atomic bool passing;       /* recording is off, and our streams have been waited for */
    _Atomic uint32_t passed;    /* calls ever that went straight down, by the program's streams */
    _Atomic bool stop;          /* issuing threads end when they have nothing to do */
    _Atomic uint32_t epoch;     /* changes when functions may have gone */
    _Atomic uint32_t capturing; /* captures under way, or about to be */
    _Atomic uint32_t count;     /* of clients; grows only */
    struct hed_record_client *clients[HED_RECORD_CLIENTS];

    struct hed_lock lock; /* guards clients being added, and what is below */
    uint64_t captures[HED_RECORD_CAPTURES];
    struct {
        CUcontext context;
        CUstream stream;
        uint32_t after; /* it comes after so many of `passed` */
    } streams[HED_RECORD_CONTEXTS];
};

/* A call as it is being looked at. */
struct hed_record_candidate {
    enum hed_cuda_call id;
    const struct hed_call_info *info;
    void *args;
    CUcontext context;
    struct hed_gate *gpu; /* see hed_record_slot */
    uint64_t stream;      /* that it will run on */
    uint64_t touches;     /* another handle that it uses; 0: none */
    uint64_t frees;       /* an address that it gives back; 0: none */
    uint64_t kind;
    CUfunction function;
    uint32_t shared;
    bool swapped;                 /* the stream is ours */
    bool has_params;              /* the kernel's arguments are in `params` */
    void **params;                /* may be NULL: it has none */
    size_t params_at;             /* offset of that in the arguments */
    const CUlaunchConfig *config; /* NULL: there is none; else the arguments begin with it */
    const void *data;             /* copied behind the arguments; NULL */
    size_t size;                  /* of that */
    size_t data_at;               /* offset of the pointer to it, in the arguments */
    bool packed;                  /* `data` are kernel's arguments, given by `extra` */
};

/* What a thread knows. */
struct hed_record_thread {
    unsigned inside;  /* it makes calls of ours */
    uint64_t tag;     /* goes with the calls that it hands over */
    uint64_t issuing; /* the tag of the call that it is issuing */
    const struct hed_recorder *engine;
    struct hed_record_client *client; /* of that engine */
    const struct hed_record_client *gpu_client;
    CUcontext gpu_context;
    uint32_t gpu_epoch;
    struct hed_gate *gpu; /* of that client, in that context */
};

struct hed_record_thread *hed_record_thread(void);
struct hed_record_client *hed_record_mine(struct hed_recorder *r);

/* record_queue.c. What becomes of a call that could be deferred: */
enum hed_record_push {
    HED_PUSH_TAKEN,
    HED_PUSH_UNKNOWN, /* the like has not succeeded yet */
    HED_PUSH_CANNOT,
};

enum hed_record_push hed_record_push(struct hed_record_client *c,
                                     const struct hed_record_candidate *t);

/* Waits until the record of that number has been issued. `mine`: this thread is of that client, and
 * may do it itself. */
void hed_record_drain(struct hed_record_client *c, uint64_t number, bool mine);
bool hed_record_start(struct hed_record_client *c); /* its issuing thread */
void hed_record_stop(struct hed_record_client *c);
bool hed_record_settle(struct hed_record_client *c, uint64_t end); /* by then, at exit */

/* record_order.c */
void hed_record_wait_others(struct hed_recorder *r, const struct hed_record_client *c,
                            const uint64_t *handles, unsigned count, bool all);
bool hed_record_has(const struct hed_record_client *c, uint64_t handle, bool everything);
void hed_record_touch_locked(struct hed_record_client *c, uint64_t handle, uint64_t number);

/* record_take.c: may it be deferred, apart from what only the client knows? */
unsigned hed_record_sort(enum hed_cuda_call id); /* enum hed_record_defer; 0: it may not */
bool hed_record_examine(struct hed_recorder *r, struct hed_record_candidate *t);

/* record_copy.c */
bool hed_record_examine_copy(struct hed_recorder *r, struct hed_record_candidate *t);
bool hed_record_is_device(struct hed_recorder *r, CUdeviceptr p, size_t size);
bool hed_record_is_pinned(struct hed_recorder *r, CUdeviceptr p, size_t size);
bool hed_record_is_allocation(struct hed_recorder *r, CUdeviceptr p);

/* record_known.c; the client's lock is held where it says so. */
struct hed_record_kind *hed_record_find_kind_locked(struct hed_record_client *c, uint64_t key);
bool hed_record_known_locked(struct hed_record_client *c, uint64_t handle, CUcontext context);
void hed_record_learn(struct hed_record_client *c, const struct hed_record_candidate *t);
void hed_record_forget_handle(struct hed_recorder *r, uint64_t handle);
void hed_record_forget_shared(struct hed_recorder *r, CUfunction f, uint32_t shared);
void hed_record_forget_all_locked(struct hed_record_client *c);

/* record_stream.c: the stream that work in the current context runs on; 0: there is none. */
uint64_t hed_record_own_stream(struct hed_recorder *r, CUcontext context);
/* The same for what is to go to a stream of the program, which may be of another context. */
uint64_t hed_record_own_stream_of(struct hed_recorder *r, CUcontext context, uint64_t stream);
void hed_record_forget_streams(struct hed_recorder *r);
CUresult hed_record_wait_own(struct hed_recorder *r, CUcontext context); /* NULL: all */

/* Puts our stream into a call that is made, where that is work; and the program's back. */
void hed_record_swap(struct hed_recorder *r, enum hed_cuda_call id, void *args, CUcontext context,
                     struct hed_record_call *c);
void hed_record_put_back(enum hed_cuda_call id, void *args, const struct hed_record_call *c,
                         CUresult made);
/* After a call that was made, and succeeded: what comes next on our stream comes after it. */
CUresult hed_record_catch_up(struct hed_recorder *r, enum hed_cuda_call id, void *args,
                             const struct hed_record_call *c);

static inline uint64_t
hed_record_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static inline bool
hed_record_is_default(uint64_t stream)
{
    return stream == 0 || stream == 1;
}
