/* What the processes that use one GPU share: a common part, and a slot for each client
 * (src/share/meet).
 *
 *     IDLE --first call: hed_sched_announce--> WORKING --hed_sched_rest, or others notice--> IDLE
 *
 * Invariants:
 * 1. A gate word is 0 only while its client works and no decision restricts it. Its calls then cost
 *    a load and a count. A client that begins to work finds IDLE in its own word and announces
 *    itself; that decision gives other clients' words their bits.
 * 2. Gate words, states and the common part change only under hed_meet_lock. The counters of a slot
 *    belong to its owner. Everybody reads everything without a lock: each number is right, but no
 *    two are of the same instant.
 * 3. Nothing here is trusted: a wrong number costs fairness, or a wait that ends.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "share/meet/meet.h"
#include "share/sched/policy.h"
#include "share/sched/settings.h"

#define HED_SCHED_MAGIC 0x53434836u
#define HED_SCHED_SLOTS 128
#define HED_SCHED_STRIPES 16 /* counters that the threads of a process divide among themselves */
#define HED_SCHED_WAITS 24 /* classes of waits: [i] counts those below 2^i us; the last, the rest */

/* Bits of a gate word. */
enum hed_gate_bit {
    HED_GATE_CLOSED = 1, /* calls wait until it is cleared */
    HED_GATE_LIMIT = 2,  /* calls keep the work in flight below the cap */
    HED_GATE_WATCH = 4,  /* others have work, too: measure GPU time, and look at the clock */
    HED_GATE_IDLE = 8,   /* the client has no work: announce it before the next call */
    HED_GATE_NEWS = 16,  /* flips with every release and every earlier look, to wake sleepers */
};

struct hed_sched_common {
    _Atomic uint64_t next_look;  /* ns: the first process that passes by after this decides again */
    _Atomic uint32_t generation; /* counts changes of the settings below */
    _Atomic uint32_t made;       /* 1: the settings have been filled in */
    _Atomic uint32_t policy;     /* index in hed_policies */
    _Atomic uint32_t paused;     /* 1: all clients wait */
    _Atomic uint32_t high;       /* 1 + the highest slot that was ever used */
    _Atomic uint32_t held;       /* clients whose gate the last decision closed */
    _Atomic uint32_t watchman;   /* 1 + the slot of the waiting client that looks first; 0: none */
    _Atomic uint32_t batch;      /* struct hed_sched_params */
    _Atomic uint64_t hold, cap, slice, batch_wait;
    _Atomic uint64_t census;                    /* ns: when dead clients were last looked for */
    _Atomic uint64_t watch_until;               /* ns: somebody looks until then: measure all */
    _Atomic uint64_t memory[HED_POLICY_MEMORY]; /* the policy's */
};

struct hed_sched_slot {
    _Alignas(64) _Atomic uint32_t gate; /* enum hed_gate_bit; a futex */

    /* Written by the owner. */
    _Alignas(64) _Atomic uint64_t last_call; /* ns, while it is watched */
    _Atomic uint64_t ends;                   /* ns: when its work in flight ends, as estimated */
    _Atomic uint64_t used;                   /* ns of GPU time, while it was watched */
    _Atomic uint64_t waited;                 /* ns at the gate, of all threads together */
    _Atomic uint64_t waits_since;            /* ns: since when the first of them waits */
    _Atomic uint32_t waiting;                /* threads at the gate */
    _Atomic uint32_t syncing;                /* threads that wait for the GPU */
    _Atomic uint32_t queued;                 /* recorded calls that are not at the gate yet */
    _Atomic uint32_t present;                /* 1: the rest is filled in */
    _Atomic int32_t pid;
    _Atomic uint64_t family;                 /* struct hed_sched_settings */
    _Atomic uint64_t waits[HED_SCHED_WAITS]; /* at the gate, by their length, ended */
    _Atomic uint64_t memory_used;            /* bytes of the GPU's memory, of the whole process */
    _Atomic uint64_t memory_limit;           /* bytes that it may have; 0: there is no limit */
    _Atomic uint32_t memory_known;           /* 1: somebody counts memory_used */
    char name[HED_SCHED_NAME];
    char group[HED_SCHED_NAME];

    /* Of the whole process, which is taken off all of its GPUs at once (swap.c). */
    _Atomic uint32_t out;       /* 1: it is off the GPU, and its memory is in host memory */
    _Atomic uint32_t outs;      /* how often it was, and is */
    _Atomic uint64_t out_since; /* ns, while it is out */
    _Atomic uint64_t out_ns;    /* how long it was out, not counting this time */
    _Atomic uint64_t copy_ns;   /* of leaving and coming back: what the swapping itself took */

    /* Written under the lock, by any process. */
    _Alignas(64) _Atomic uint32_t working;
    _Atomic uint32_t fresh; /* 1: it began to work after the last decision */
    _Atomic uint32_t priority;
    _Atomic uint32_t weight;
    _Atomic uint32_t swap; /* 1: clients of higher priority may take it off the GPU */
    _Atomic uint32_t paused;
    _Atomic uint32_t release;  /* 1: the next decision lets the calls go on that wait then */
    _Atomic uint32_t tickets;  /* calls that may pass a closed gate; the owner takes them */
    _Atomic uint64_t deadline; /* ns after it begins to work */
    _Atomic uint64_t since;    /* ns: since when it works, or is idle */
    _Atomic uint64_t rested;   /* ns: when its last work ended; 0: it has done none */
    _Atomic uint64_t until;    /* struct hed_sched_client */
    _Atomic uint64_t spare;
    _Atomic uint64_t memory[HED_POLICY_CLIENT_MEMORY]; /* the policy's, about this client */

    /* Calls that put work on a GPU, of the whole process. */
    struct {
        _Alignas(64) _Atomic uint64_t n;
    } calls[HED_SCHED_STRIPES];
};

#define HED_SCHED_MEET_MAX 101 /* bytes of a meeting file's name, with its 0 */
#define HED_SCHED_BEGIN "sched-"

/* The name of the meeting file of a GPU, by its UUID. */
void hed_sched_meet_name(const char *scope, const unsigned char uuid[16],
                         char out[HED_SCHED_MEET_MAX]);

extern const struct hed_meet_shape hed_sched_shape;

/* Joins the clients of a GPU, and fills in the own slot. */
int hed_sched_join(const char *meet_name, const struct hed_sched_settings *settings,
                   struct hed_meet **out, struct hed_why *why);

/* Changes the settings that all clients share, and decides. */
int hed_sched_set_common(struct hed_meet *m, const struct hed_sched_settings *settings,
                         uint64_t now);

/* A change of one client: the settings that `given` names. -1 leaves paused and release alone. */
struct hed_sched_change {
    struct hed_sched_settings settings;
    int paused;
    int release;
};

void hed_sched_change_locked(struct hed_sched_slot *p, const struct hed_sched_change *c);

/* A call that has waited for so long goes on: what it waits for may wait for it, in a way that
 * heddle does not see. */
#define HED_SCHED_PATIENCE_NS (10 * HED_NS_PER_S)

/* Decides which clients may run, and tells them. HED_ETIME and other errors: a process that is
 * stopped holds the lock, and calls go on by themselves. */
int hed_sched_decide(struct hed_meet *m, uint64_t now);
void hed_sched_decide_locked(struct hed_meet *m, uint64_t now);

/* Whether it is time to decide: next_look has come, or is too far away to be true. */
bool hed_sched_is_due(const struct hed_sched_common *c, uint64_t now);

/* Decides if it is still due once the lock is held. */
int hed_sched_decide_if_due(struct hed_meet *m, uint64_t now);

/* The owner of the slot begins to work: decides. */
int hed_sched_announce(struct hed_meet *m, uint64_t now);

/* The owner of the slot has no work any more: waiting clients learn when to look. It keeps the GPU
 * for this margin, because most programs wait for the GPU and go on at once. */
#define HED_SCHED_MARGIN_NS 200000
void hed_sched_rest(struct hed_meet *m, uint64_t now);

/* The owner of the slot is about to end: it does not count any more, and its gate stays open. */
void hed_sched_retire(struct hed_meet *m, uint64_t now);

/* Somebody looks at the GPU's clients: the GPU time of each is measured for so long, even of one
 * that works alone. Whoever looks says so again and again, because a time further away than this
 * counts as nonsense. */
#define HED_SCHED_WATCH_NS (5 * HED_NS_PER_S)
int hed_sched_watch(struct hed_meet *m, uint64_t now);
bool hed_sched_is_watched(const struct hed_sched_common *c, uint64_t now);

/* Calls of the slot's owner so far. */
uint64_t hed_sched_calls(const struct hed_sched_slot *p);
