/* The structures that the files of the record engine share. record.h says what the engine promises.
 *
 *     a thread of the client                 the queue's issuing thread, or a thread that drains
 *       choose a queue (order.c)               with the role, in order:
 *       under its lock: write the record         wait for other queues where a barrier says so
 *       into the ring, in++                      call the next layer, which is the gate
 *       wake the issuing thread if it sleeps     out++, wake the threads that wait for this number
 *
 * A client has several queues, so that the calls of several threads are issued at the same time.
 * Each thread has a queue of its own, as long as there are enough.
 *
 * Invariants:
 * 1. A record is complete before `in` counts it, and nobody overwrites it before `out` and `head`
 *    count it as issued.
 * 2. Only the thread that has a queue's role changes its `out` and `head` and issues its records.
 *    It gives the role up when no record is left, or wakes the issuing thread.
 * 3. No lock is held during a call of the next layer.
 * 4. A barrier waits only for records that were queued before it. So queues never wait for each
 *    other in a circle.
 */
#pragma once

#include <stdatomic.h>

#include "base/lock.h"
#include "core/stream.h"
#include "share/record/record.h"
#include "share/sched/gate.h"

#define HED_RECORD_RING (2u << 20)    /* bytes of a queue; a power of two */
#define HED_RECORD_MAX (192u << 10)   /* bytes of one record */
#define HED_RECORD_INLINE (64u << 10) /* bytes of pageable memory that are copied into a record */
#define HED_RECORD_CLIENTS 64
#define HED_RECORD_QUEUES 16    /* per client */
#define HED_RECORD_KINDS 1024   /* known kinds of calls; a power of two */
#define HED_RECORD_HANDLES 1024 /* known streams, events and graphs; a power of two */
#define HED_RECORD_TOUCHED 2048 /* counters by stream or event; a power of two */
#define HED_RECORD_CAPTURES 64
#define HED_RECORD_CONTEXTS 64 /* contexts with a stream of heddle's */
#define HED_RECORD_PARAMS 4096 /* parameters of a kernel */

/* A call in the ring. The argument struct follows, and the data that it points to. */
struct hed_record {
    _Alignas(16) uint32_t size; /* bytes, with this header; a multiple of 32 */
    uint32_t id;                /* enum hed_cuda_call, or one of the two below */
    CUcontext context;
    struct hed_gate *gpu; /* the gate that counts it as queued; NULL: none */
    uint64_t tag;         /* see hed_recorder_set_tag */
};

#define HED_RECORD_SKIP 0u            /* no record: the next one is at the start of the ring */
#define HED_RECORD_BARRIER UINT32_MAX /* no call: a struct hed_record_barrier follows */

/* The records behind it are issued after record `number` of another queue of the client. */
struct hed_record_barrier {
    struct hed_record_queue *queue;
    uint64_t number;
};

struct hed_record_param {
    uint16_t offset, size;
};

/* A kernel's parameters. */
struct hed_record_layout {
    uint32_t count;
    uint32_t bytes;
    struct hed_record_param at[];
};

/* A kind of call that has succeeded: calls of this kind may be deferred. */
struct hed_record_kind {
    uint64_t key; /* 0: the entry is free */
    CUfunction function;
    uint32_t shared;
    struct hed_record_layout *layout; /* NULL: the kernel has no arguments */
};

/* A stream, an event or a graph that a call has used with success, in that context. */
struct hed_record_handle {
    uint64_t handle; /* 0: the entry is free */
    CUcontext context;
};

/* What has succeeded. A client has one, which all its threads fill, and each of its queues has a
 * copy of the parts that it has needed, so that threads do not share a lock. */
struct hed_record_known {
    uint32_t epoch; /* the engine's epoch when this was last emptied */
    struct hed_record_kind kinds[HED_RECORD_KINDS];
    struct hed_record_handle handles[HED_RECORD_HANDLES];
};

struct hed_record_queue {
    struct hed_recorder *engine;
    struct hed_record_client *client;
    uint32_t index;        /* in client->queues */
    _Atomic bool is_owned; /* a thread has it as its own */

    pthread_t thread;     /* the issuing thread, if `started` */
    struct hed_lock lock; /* guards the fields up to `known`, and writes of `last` and `in` */
    char *ring;           /* NULL: no call has been queued yet */
    uint64_t tail;        /* bytes ever put into the ring */
    bool started;         /* the issuing thread exists */
    uint64_t joined[HED_RECORD_QUEUES]; /* by queue: the highest number that a barrier waits for */
    struct hed_record_known known;

    _Atomic(struct hed_gate *) gpu;            /* the gate of the last record; NULL: none */
    _Atomic uint64_t last[HED_RECORD_TOUCHED]; /* number of the last record with that handle */
    _Atomic uint64_t last_default;             /* the same for the default stream */
    _Alignas(64) _Atomic uint64_t in;          /* records ever queued */
    _Alignas(64) _Atomic uint64_t out;         /* records ever issued */
    _Atomic uint64_t head;                     /* bytes ever issued */
    _Atomic uint64_t wake_at;                  /* the lowest number that a thread waits for */
    _Atomic uint32_t progress;                 /* a futex; changes when `out` reaches wake_at */
    _Atomic uint32_t role;                     /* 1: a thread issues records */
    _Atomic uint32_t sleeping;                 /* 1: the issuing thread sleeps */
    _Atomic uint32_t wake;                     /* the futex on which it sleeps */
};

struct hed_record_client {
    struct hed_recorder *engine;
    char name[HED_SCHED_NAME]; /* "": the process's own client */
    char text[512];            /* the client's text for hed_sched_set_client() */
    _Atomic uint32_t error;    /* CUresult of the first queued call that failed; 0: none */

    struct hed_lock lock; /* guards `known`, `sharers` and additions to `queues` */
    struct hed_record_known known;
    uint32_t sharers;         /* threads that found no queue of their own */
    _Atomic uint32_t forgets; /* changes when something in `known` is forgotten */
    _Atomic uint32_t count;   /* queues; only grows */
    struct hed_record_queue *queues[HED_RECORD_QUEUES];
};

struct hed_recorder {
    struct hed_layer *next;
    struct hed_sched *sched; /* the engine of `next`, if that is the layer sched */
    bool own;                /* stream=own */
    unsigned defer;
    uint64_t id;                /* differs from that of every other engine in this process */
    uint32_t queue;             /* records that each queue may hold */
    uint32_t queues;            /* queues that each client may have */
    _Atomic bool off;           /* no call is queued any more */
    _Atomic bool passing;       /* recording is off, and heddle's streams have no work left */
    _Atomic uint32_t passed;    /* calls ever that were made while recording was off */
    _Atomic bool stop;          /* issuing threads end when their queue is empty */
    _Atomic uint32_t epoch;     /* changes when functions may have ended */
    _Atomic uint32_t capturing; /* captures that run or are about to begin */
    _Atomic uint32_t count;     /* clients; only grows */
    struct hed_record_client *clients[HED_RECORD_CLIENTS];

    struct hed_lock lock; /* guards additions to `clients`, and the fields below */
    uint64_t captures[HED_RECORD_CAPTURES];
    struct {
        CUcontext context;
        CUstream stream;
        uint32_t after; /* the value of `passed` whose calls it comes after */
    } streams[HED_RECORD_CONTEXTS];
};

/* What a call that may be deferred is about, in the words of the spec (defer=). Roles that a call
 * does not have are 0. */
struct hed_record_roles {
    uint64_t kernel; /* function of a launch */
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared;
    bool whole; /* all of the grid must fit on the GPU at once */
    const CUlaunchConfig *config;
    void **const *params, **const *extra; /* where the arguments say where the kernel's are */

    uint64_t object;  /* an event or a graph */
    uint64_t address; /* of device memory */
    uint64_t bytes;
    unsigned flags;
    CUhostFn function;
    CUstreamCallback callback;
    bool any;      /* a copy between addresses of any kind */
    bool prefetch; /* to `where` and `device` */
    CUmemLocationType where;
    int device;
    const CUDA_MEMCPY2D_v2 *copy_2d;
    const CUDA_MEMCPY3D_v2 *copy_3d;
    const void *at; /* of the pointer to these */
};

/* A call that is being examined: can it be deferred? */
struct hed_record_candidate {
    enum hed_cuda_call id;
    const struct hed_call_info *info;
    void *args;
    CUcontext context;
    struct hed_gate *gpu; /* the gate that counts it as queued; NULL: none */
    uint64_t stream;      /* the stream that it will run on */
    uint64_t touches;     /* another handle that it uses, an event or a graph; 0: none */
    uint64_t frees;       /* an address that it frees; 0: none */
    uint64_t kind;
    CUfunction function;
    uint32_t shared;
    bool swapped;                 /* `stream` is heddle's, not the program's */
    bool has_params;              /* the kernel's arguments are in `params` */
    void **params;                /* NULL: the kernel has no arguments */
    size_t params_at;             /* the offset of that pointer in `args` */
    const CUlaunchConfig *config; /* NULL: none; otherwise `args` begins with this pointer */
    const void *data;             /* data to copy behind `args`; NULL: none */
    size_t size;                  /* bytes of `data` */
    size_t data_at;               /* the offset of the pointer to it in `args` */
    bool packed;                  /* `data` holds the kernel's arguments, from `extra` */
};

/* The engine's state of one thread. */
struct hed_record_thread {
    unsigned inside;  /* how many calls of the engine it is inside */
    uint64_t tag;     /* goes with the calls that it queues */
    uint64_t issuing; /* the tag of the call that it is issuing */
    uint64_t engine;  /* the id of the engine that the fields below belong to; 0: none */
    struct hed_record_client *client; /* NULL: the process's own */
    struct hed_record_queue *queue;   /* its own or a shared one; NULL: none yet */
    struct hed_record_queue *last;    /* the queue of its last record; NULL: none */
    uint64_t number;                  /* of that record */
    const struct hed_record_client *gpu_client;
    CUcontext gpu_context;
    uint32_t gpu_epoch;
    struct hed_gate *gpu; /* the gate of gpu_client in gpu_context */
};

extern _Thread_local struct hed_record_thread hed_record_this_thread;

static inline struct hed_record_thread *
hed_record_thread(void)
{
    return &hed_record_this_thread;
}

/* ---- client.c -------------------------------------------------------------------------------- */

struct hed_record_client *hed_record_add_client_locked(struct hed_recorder *r, const char *name,
                                                       const char *text);
void hed_record_free_client(struct hed_record_client *c);

/* The client that the calling thread works for. */
struct hed_record_client *hed_record_client_of_thread(struct hed_recorder *r);

/* Gives the calling thread a queue. NULL: there is no memory. */
struct hed_record_queue *hed_record_assign_queue(struct hed_record_client *c);

/* The queue of the calling thread. NULL: there is no memory. */
static inline struct hed_record_queue *
hed_record_queue_of_thread(struct hed_record_client *c)
{
    const struct hed_record_thread *me = hed_record_thread();

    if (me->engine == c->engine->id && me->queue && me->queue->client == c)
        return me->queue;
    return hed_record_assign_queue(c);
}

/* ---- push.c ---------------------------------------------------------------------------------- */

/* The outcome of an attempt to queue a call. */
enum hed_record_push {
    HED_PUSH_TAKEN,
    HED_PUSH_UNKNOWN, /* no call like it has succeeded yet */
    HED_PUSH_CANNOT,
};

enum hed_record_push hed_record_push(struct hed_record_client *c,
                                     const struct hed_record_candidate *t);

/* ---- queue.c --------------------------------------------------------------------------------- */

bool hed_record_is_issued(const struct hed_record_queue *q, uint64_t number);

/* Sleeps until the record of that number has been issued, or so many ns have passed (-1: for ever).
 * May return early. */
void hed_record_wait(struct hed_record_queue *q, uint64_t number, int64_t ns);

/* Waits until the record of that number has been issued. `mine`: the calling thread works for this
 * client and may issue the records itself. */
void hed_record_drain(struct hed_record_queue *q, uint64_t number, bool mine);

/* Starts, wakes and ends the issuing thread. */
bool hed_record_start(struct hed_record_queue *q);
void hed_record_wake_issuer(struct hed_record_queue *q);
void hed_record_stop(struct hed_record_queue *q);

/* At exit: issues the queued calls, and waits until no thread issues any. False: some calls are
 * left at the time `end`. */
bool hed_record_settle(struct hed_record_queue *q, uint64_t end);

/* ---- order.c --------------------------------------------------------------------------------- */

/* The queue for a record, and the records of other queues that must be issued before it. */
struct hed_record_route {
    struct hed_record_queue *queue;
    uint32_t count;
    struct hed_record_barrier after[HED_RECORD_QUEUES];
};

/* Chooses among several queues of the client. `out` holds the queue of the calling thread
 * before. */
void hed_record_choose(struct hed_record_client *c, const struct hed_record_candidate *t,
                       struct hed_record_route *out);

/* Waits until the client's records that touch these handles, or all its records, have been issued.
 * `mine`: it is the calling thread's client. */
void hed_record_wait_client(struct hed_record_client *c, const uint64_t *handles, unsigned count,
                            bool all, bool mine);

/* The same for all other clients. */
void hed_record_wait_others(struct hed_recorder *r, const struct hed_record_client *c,
                            const uint64_t *handles, unsigned count, bool all);

/* Whether a record of the client that touches the handle, or any record, is still queued. */
bool hed_record_has(const struct hed_record_client *c, uint64_t handle, bool everything);
void hed_record_touch_locked(struct hed_record_queue *q, uint64_t handle, uint64_t number);

/* ---- take.c ---------------------------------------------------------------------------------- */

/* The bit of enum hed_record_defer that allows this call to be deferred; 0: it is never
 * deferred. */
unsigned hed_record_sort(enum hed_cuda_call id);

/* Whether the call can be deferred, as far as its arguments say. Only the client knows whether a
 * call like it has succeeded before. */
bool hed_record_examine(struct hed_recorder *r, struct hed_record_candidate *t);

/* ---- copy.c ---------------------------------------------------------------------------------- */

/* The same for copies, fills and prefetches. */
bool hed_record_examine_copy(struct hed_recorder *r, struct hed_record_candidate *t,
                             const struct hed_record_roles *a);
bool hed_record_is_device(struct hed_recorder *r, CUdeviceptr p, size_t size);
bool hed_record_is_pinned(struct hed_recorder *r, CUdeviceptr p, size_t size);
bool hed_record_is_allocation(struct hed_recorder *r, CUdeviceptr p);

/* ---- known.c --------------------------------------------------------------------------------- */

/* The caller holds the lock that guards `k`. */
struct hed_record_kind *hed_record_find_kind(struct hed_record_known *k, uint64_t key);
bool hed_record_knows_handle(struct hed_record_known *k, uint64_t handle, CUcontext context);
void hed_record_forget_all(struct hed_record_known *k, uint32_t epoch);

/* Copies what the client knows about the call to its queue. False: it does not know enough. */
bool hed_record_copy_known(struct hed_record_queue *q, const struct hed_record_candidate *t);

void hed_record_learn(struct hed_record_client *c, const struct hed_record_candidate *t);
void hed_record_forget_handle(struct hed_recorder *r, uint64_t handle);
void hed_record_forget_shared(struct hed_recorder *r, CUfunction f, uint32_t shared);

/* ---- stream.c -------------------------------------------------------------------------------- */

/* heddle's stream of the current context; 0: there is none. */
uint64_t hed_record_own_stream(struct hed_recorder *r, CUcontext context);
/* The same for work on a stream of the program, which may belong to another context. */
uint64_t hed_record_own_stream_of(struct hed_recorder *r, CUcontext context, uint64_t stream);
void hed_record_forget_streams(struct hed_recorder *r);
CUresult hed_record_wait_own(struct hed_recorder *r, CUcontext context); /* NULL: all */

/* Replace the program's stream of a call that is work by heddle's, and put it back afterwards. */
void hed_record_swap(struct hed_recorder *r, enum hed_cuda_call id, void *args, CUcontext context,
                     struct hed_record_call *c);
void hed_record_put_back(enum hed_cuda_call id, void *args, const struct hed_record_call *c,
                         CUresult made);
/* After a call that succeeded: later work on heddle's stream comes after it. */
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

/* Wakes the issuing thread if records would otherwise stay where they are. */
static inline void
hed_record_wake(struct hed_record_queue *q)
{
    /* Sequentially consistent: pairs with sleep_until_woken. A thread that has the role looks for
     * more records when it has given it up. */
    if (atomic_load_explicit(&q->role, memory_order_seq_cst) == 0 &&
        atomic_load_explicit(&q->sleeping, memory_order_seq_cst) != 0)
        hed_record_wake_issuer(q);
}
