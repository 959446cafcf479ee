/* What processes that use one GPU share: a common part and a place for each (src/meet).
 *
 *     IDLE --first call: hed_sched_announce--> WORKING --hed_sched_rest, or others find out--> IDLE
 *
 * Invariants:
 * 1. A gate word is 0 only while its process works and nobody decides about it: its calls then cost
 *    a load and a count. Whoever begins to work finds IDLE in its own word and announces itself;
 *    that is when others' words get their bits.
 * 2. Gate words, states and the common part change only under hed_meet_lock; a place's counters are
 *    its owner's. All are read without a lock, by everybody: each is right, no two are of the same
 *    instant.
 * 3. Nothing here is believed: a wrong number costs fairness or a wait that ends.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "meet/meet.h"
#include "sched/policy.h"
#include "sched/settings.h"

#define HED_SCHED_MAGIC 0x53434832u
#define HED_SCHED_PLACES 128
#define HED_SCHED_STRIPES 4 /* of a counter that all threads of a process count in */

/* Bits of a gate word. */
enum hed_gate {
    HED_GATE_CLOSED = 1, /* wait until it is gone */
    HED_GATE_LIMIT = 2,  /* keep the work in flight below the cap */
    HED_GATE_WATCH = 4,  /* somebody cares: count GPU time, look at the clock */
    HED_GATE_IDLE = 8,   /* announce yourself */
    HED_GATE_NEWS = 16,  /* changes with every release or new hour: nobody may sleep through one */
};

struct hed_sched_common {
    _Atomic uint64_t next_look;  /* ns: whoever comes by then decides again */
    _Atomic uint32_t generation; /* changes of the settings below */
    _Atomic uint32_t made;       /* the settings have been filled in */
    _Atomic uint32_t policy;     /* index in hed_policies */
    _Atomic uint32_t paused;     /* everybody waits */
    _Atomic uint32_t high;       /* places that have ever been used */
    _Atomic uint32_t held;       /* clients that are closed out, by the last decision */
    _Atomic uint32_t watchman;   /* place of the one of them that looks first, + 1; 0: none waits */
    _Atomic uint32_t batch;      /* struct hed_sched_params */
    _Atomic uint64_t hold, cap, slice, batch_wait;
    _Atomic uint64_t census;                    /* ns: when the dead were last looked for */
    _Atomic uint64_t memory[HED_POLICY_MEMORY]; /* the policy's */
};

struct hed_sched_place {
    _Alignas(64) _Atomic uint32_t gate; /* enum hed_gate; a futex */

    /* Written by the owner. */
    _Alignas(64) _Atomic uint64_t last_call; /* ns, while it is watched */
    _Atomic uint64_t ends;        /* ns: when the work in flight ends, as far as can be told */
    _Atomic uint64_t used;        /* ns of GPU time, while it was watched */
    _Atomic uint64_t waited;      /* ns at the gate, all threads together */
    _Atomic uint64_t waits_since; /* ns: since when the first of those waits */
    _Atomic uint32_t waiting;     /* threads at the gate */
    _Atomic uint32_t syncing;     /* threads that wait for the GPU */
    _Atomic uint32_t queued;  /* calls that are recorded (record mode) and not at the gate yet */
    _Atomic uint32_t present; /* the rest is filled in */
    _Atomic int32_t pid;
    char name[HED_SCHED_NAME];
    char group[HED_SCHED_NAME];

    /* Written under the lock, by anybody. */
    _Alignas(64) _Atomic uint32_t working;
    _Atomic uint32_t fresh; /* it has begun to work since the last decision */
    _Atomic uint32_t priority;
    _Atomic uint32_t weight;
    _Atomic uint32_t paused;
    _Atomic uint32_t release; /* what is held at the next decision gets tickets, whatever for */
    _Atomic uint32_t
        tickets; /* calls that may pass though the gate is not open; taken by the owner */
    _Atomic uint64_t deadline; /* ns from when it begins to work */
    _Atomic uint64_t since;    /* ns: works since, or has been idle since */
    _Atomic uint64_t rested;   /* ns: end of its last work; 0: it has done none */
    _Atomic uint64_t until;    /* struct hed_sched_client */
    _Atomic uint64_t spare;
    _Atomic uint64_t memory[HED_POLICY_CLIENT_MEMORY]; /* the policy's, about this client */

    /* Calls that put work on a GPU, in the whole process. */
    struct {
        _Alignas(64) _Atomic uint64_t n;
    } calls[HED_SCHED_STRIPES];
};

#define HED_SCHED_MEET_MAX 101 /* bytes of the name of a meeting place, the 0 included */
#define HED_SCHED_BEGIN "sched-"

/* The name under which the users of a GPU meet, by its UUID. */
void hed_sched_meet_name(const char *scope, const unsigned char uuid[16],
                         char out[HED_SCHED_MEET_MAX]);

extern const struct hed_meet_shape hed_sched_shape;

/* Joins, with a place filled in from `settings`. */
int hed_sched_join(const char *meet_name, const struct hed_sched_settings *settings,
                   struct hed_meet **out, struct hed_why *why);

/* Changes what all share, and wakes whoever it concerns. */
int hed_sched_set_common(struct hed_meet *m, const struct hed_sched_settings *settings,
                         uint64_t now);

/* Changes one client. Only what `given` says; paused and release: -1 leaves it. */
struct hed_sched_change {
    struct hed_sched_settings settings;
    int paused;
    int release;
};

void hed_sched_change_locked(struct hed_sched_place *p, const struct hed_sched_change *c);

/* Who waits longer goes on: what it waits for may wait for it, by ways that we do not see. */
#define HED_SCHED_PATIENCE_NS (10 * HED_NS_PER_S)

/* Decides who may run, now, and tells them. HED_ETIME and others: somebody who is stopped has the
 * lock; whoever waits goes on by itself then. */
int hed_sched_decide(struct hed_meet *m, uint64_t now);
int hed_sched_look(struct hed_meet *m, uint64_t now); /* only if nobody has meanwhile */

/* Is it time to? Also where the time is further away than anybody sets it. */
bool hed_sched_due(const struct hed_sched_common *c, uint64_t now);
void hed_sched_decide_locked(struct hed_meet *m, uint64_t now);

/* The owner of a place begins to work: decides. Has no work any more: whoever waits for that is
 * told when to look. It has a moment to come back: many programs do, and would lose their turn. */
#define HED_SCHED_MARGIN_NS 200000
int hed_sched_announce(struct hed_meet *m, uint64_t now);
void hed_sched_rest(struct hed_meet *m, uint64_t now);

/* The owner is about to end: nobody counts with it any more. */
void hed_sched_go(struct hed_meet *m, uint64_t now);

uint64_t hed_sched_calls(const struct hed_sched_place *p);
