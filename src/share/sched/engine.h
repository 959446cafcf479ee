/* The engine's structures, and what its files share. Its users include share/sched/gate.h.
 *
 * Invariants:
 * 1. No lock is held across a call of the driver, or while a thread waits.
 * 2. While a stream captures, the engine makes no driver call except to ask whether a stream
 *    captures. The same holds while a context is being ended, which may have the engine's events.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "share/sched/share.h"

#define HED_SCHED_GATES 256   /* of a process: one for each client on each GPU */
#define HED_SCHED_CLIENTS 64  /* named ones, of a process */
#define HED_SCHED_CAPTURES 64 /* captures that are known at a time */
#define HED_PACE_MARKS 32     /* marks of a gate at a time */
#define HED_PACE_KEPT 64      /* events that a process keeps for later */
#define HED_PACE_SPARE 256    /* room for them: one poll may give back many */
#define HED_PACE_KINDS 1024   /* kinds of work whose time is known; a power of two */

enum hed_event_state { HED_EVENT_DONE, HED_EVENT_PENDING, HED_EVENT_FAILED };

/* What the engine needs of a driver. The engine calls these from threads of the program and holds
 * no lock then. All but one must be there. */
struct hed_sched_driver {
    bool (*get_device)(void *below, int *device); /* of the current context; false: none */
    bool (*get_uuid)(void *below, int device, unsigned char uuid[16]);
    uint64_t (*get_context)(void *below);                          /* the current one */
    bool (*is_capturing)(void *below, uint64_t stream, bool ptds); /* true also on failure */
    uint64_t (*create_event)(void *below); /* in the current context; 0: failed */
    void (*destroy_event)(void *below, uint64_t event);
    bool (*record_event)(void *below, uint64_t event, uint64_t stream, bool ptds);
    enum hed_event_state (*query_event)(void *below, uint64_t event);
    double (*elapsed_ms)(void *below, uint64_t start, uint64_t end); /* < 0: failed */

    /* The process has that slot of a device now, and `slot` shows its memory; NULL: not any more.
     * May be NULL. */
    void (*show_memory)(int device, struct hed_sched_slot *slot);

    /* Ranges of the calling thread, for profilers. */
    bool (*has_ranges)(void);
    void (*push_range)(const char *text);
    void (*pop_range)(void);
};

/* What a call puts on the GPU. */
struct hed_gpu_work {
    uint64_t stream;     /* its handle */
    uint64_t stream_key; /* tells the stream from all others; never 0 */
    bool on_stream;      /* false: the call names no stream */
    bool ptds;           /* the per-thread-default-stream variant of the call */
    bool blocks;         /* when the call returns, its work is done */
    uint64_t kind;       /* works of one kind take about as long; never 0 */
    uint64_t guess;      /* ns, as long as nothing is known about the kind */
};

/* An event after some work, and one before it if the work is to be timed. */
struct hed_mark {
    uint64_t start; /* 0: only a mark */
    uint64_t end;
    uint64_t context; /* of both */
    uint64_t kind;
    uint64_t predicted; /* ns: when the work ends by the clock */
};

/* A gate's clock: when does the client's work on this GPU end?
 *
 * Every paced call reads the first part, so it changes rarely: a thread adds up the time of its own
 * calls, and takes the lock for a part of the cap at a time. */
struct hed_pace {
    /* Written under hed_sched.lock, read without. */
    _Alignas(64) _Atomic uint64_t ends; /* ns */
    _Atomic uint64_t stream;    /* key of the only stream with work; 0: none, UINT64_MAX: several */
    _Atomic uint64_t next_poll; /* ns: when to ask the driver about marks; UINT64_MAX: none */
    _Atomic uint64_t next_sample; /* ns: when a call may be timed again */

    /* Guarded by hed_sched.lock. */
    _Alignas(64) uint64_t marked; /* ns: `ends` at the last mark */
    uint64_t last_poll;           /* ns */
    bool polling;                 /* a thread is asking the driver about marks */
    struct hed_mark marks[HED_PACE_MARKS];
    unsigned first, count;
};

/* A client that threads name (heddle_set_client). Never freed. */
struct hed_sched_named {
    char name[HED_SCHED_NAME];
    struct hed_sched_settings settings;
};

/* The gate of one client on one GPU. Never freed. */
struct hed_gate {
    struct hed_sched *sched;
    int device;
    const struct hed_sched_named *client; /* NULL: the process's own */
    struct hed_meet *meet; /* NULL: the GPU's other clients cannot be reached; always open */
    struct hed_sched_slot *slot;
    struct hed_sched_common *common;
    _Atomic bool warned; /* the log says already that the lock could not be had */
    _Atomic bool ending; /* the process ends: calls do not wait any more */
    struct hed_pace pace;
};

/* What is known about the time that a kind of work takes. */
struct hed_sched_kind {
    uint64_t key; /* 0: none */
    uint32_t ns;
    uint32_t samples;
    uint32_t calls;
    uint32_t steady; /* samples in a row that were alike */
};

/* The parts are aligned so that what every call reads shares no cache line with what calls
 * write. */
struct hed_sched {
    /* The slot of the only gate; NULL: there are several gates, or none. */
    _Alignas(64) _Atomic(struct hed_sched_slot *) only;
    _Atomic uint32_t count;     /* of gates; only grows */
    _Atomic uint32_t forbidden; /* captures, and contexts being ended: no driver calls */
    const struct hed_sched_driver *driver;
    void *below;
    uint64_t id; /* of this engine; never 0, and never used again in this process */
    struct hed_gate *gates[HED_SCHED_GATES];
    struct hed_sched_settings settings;

    _Alignas(64) _Atomic uint32_t busy; /* threads that make driver calls for the engine */

    _Alignas(64) struct hed_lock lock; /* guards what follows, the adding of gates, every pace */
    struct hed_sched_named *named[HED_SCHED_CLIENTS];
    uint32_t named_count;
    struct {
        uint64_t stream; /* its key; 0: none */
        uint64_t context;
    } capturing[HED_SCHED_CAPTURES];
    struct hed_sched_kind kinds[HED_PACE_KINDS];
    struct hed_mark spare[HED_PACE_SPARE]; /* only `end` and `context` */
    unsigned spares;
    uint32_t era; /* counts how often all events were destroyed */
};

/* The passage of one call through the gate. */
struct hed_gate_pass {
    struct hed_gate *gate; /* NULL: the call is not the engine's business */
    struct hed_gpu_work work;
    bool watched;   /* its time counts */
    bool known;     /* `takes` comes from samples, not from a guess */
    uint64_t takes; /* ns, if it is watched */
    struct hed_mark mark;
    uint32_t era; /* of the mark's start */
};

/* clients.c: the client that the calling thread has named; NULL: the process's own. */
const struct hed_sched_named *hed_sched_thread_client(const struct hed_sched *s);

/* ranges.c: shows a profiler that the thread waits. Pop the range afterwards. */
void hed_gate_push_closed(struct hed_gate *g);
void hed_gate_push_limited(struct hed_gate *g);

/* captures.c: around driver calls of the engine's own. False: not now. */
bool hed_sched_begin_own_calls(struct hed_sched *s);
void hed_sched_end_own_calls(struct hed_sched *s);

/* waits.c: the client has no work on that GPU any more, as far as anybody knows. */
void hed_gate_rest(struct hed_gate *g, uint64_t now);

/* kinds.c. ns that work of that kind takes. The second fills in `takes` and `known` of a pass, and
 * answers whether this call is to be timed. */
uint64_t hed_sched_kind_takes(struct hed_sched *s, const struct hed_gpu_work *work);
bool hed_sched_kind_estimate(struct hed_gate_pass *pass, uint64_t now);
struct hed_sched_kind *hed_sched_kind_find_locked(struct hed_sched *s, uint64_t key);
void hed_sched_kind_learn_locked(struct hed_sched *s, uint64_t key, double ms);

/* events.c: a pool of events. Taking one needs the right to make driver calls. */
uint64_t hed_event_take(struct hed_sched *s, uint64_t context, uint32_t *era);
void hed_event_give_locked(struct hed_sched *s, uint64_t event, uint64_t context);
unsigned hed_event_surplus_locked(struct hed_sched *s, unsigned keep,
                                  uint64_t events[HED_PACE_SPARE]);
void hed_event_destroy(struct hed_sched *s, const uint64_t *events, unsigned count);

/* pace.c */
uint64_t hed_pace_ends(struct hed_gate *g, uint64_t now); /* at least now */
void hed_pace_begin(struct hed_gate_pass *pass, uint64_t now);
void hed_pace_end(struct hed_gate_pass *pass);
void hed_pace_cancel(struct hed_gate_pass *pass);
void hed_pace_poll(struct hed_gate *g, uint64_t now);
void hed_pace_rest_locked(struct hed_gate *g, uint64_t now);

/* GPU time that a limited client may have in flight, whatever shared memory says. */
static inline uint64_t
hed_gate_cap(const struct hed_gate *g)
{
    const uint64_t cap = atomic_load_explicit(&g->common->cap, memory_order_relaxed);

    return cap < HED_SCHED_PATIENCE_NS ? cap : HED_SCHED_PATIENCE_NS;
}
