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

#define HED_SCHED_MAGIC 0x53434832u
#define HED_SCHED_PLACES 128
#define HED_SCHED_STRIPES 4 /* of a counter that all threads of a process count in */
#define HED_SCHED_NAME 32   /* bytes of a program's or a group's name, the 0 included */

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

/* What a client wants to be (`heddle run --sched ...`). */
struct hed_sched_wish {
    uint32_t priority; /* enum hed_priority */
    uint32_t weight;
    uint64_t deadline; /* ns; 0: none */
    char group[HED_SCHED_NAME];
    char room[HED_SCHED_NAME]; /* only processes that name the same room meet; "" */
    uint32_t given;            /* HED_SCHED_GIVEN_*: what changes the settings of all */
    uint32_t policy;
    struct hed_sched_params params;
    bool record;     /* calls are recorded and issued later (mode=record), else they wait */
    bool own_stream; /* recorded work runs on a stream of ours (stream=own) */
    uint32_t queue;  /* records that a client may have waiting */
};

#define HED_SCHED_QUEUE 4096 /* unless wished otherwise */

enum {
    HED_SCHED_GIVEN_POLICY = 1,
    HED_SCHED_GIVEN_HOLD = 2,
    HED_SCHED_GIVEN_CAP = 4,
    HED_SCHED_GIVEN_SLICE = 8,
    HED_SCHED_GIVEN_BATCH = 16,
    HED_SCHED_GIVEN_BATCH_WAIT = 32,
    HED_SCHED_GIVEN_PRIORITY = 64,
    HED_SCHED_GIVEN_WEIGHT = 128,
    HED_SCHED_GIVEN_DEADLINE = 256,
    HED_SCHED_GIVEN_GROUP = 512,
    HED_SCHED_GIVEN_ROOM = 1024,
    HED_SCHED_GIVEN_MODE = 2048,
    HED_SCHED_GIVEN_STREAM = 4096,
    HED_SCHED_GIVEN_QUEUE = 8192,
};

/* Reads "prio=high,share=3,policy=fair,group=a,...". The defaults are filled in first. */
int hed_sched_parse(const char *text, struct hed_sched_wish *out, struct hed_why *why);

/* The same for what is to be changed while programs run: not group, room, mode, stream and queue,
 * which a program keeps. */
int hed_sched_parse_change(const char *text, struct hed_sched_wish *out, struct hed_why *why);

/* Reads "name" or "name:prio=high,share=3": a client in a process whose wishes `wish` has already.
 * Only what is a client's own can be wished: prio, share, deadline_us, group. */
int hed_sched_parse_client(const char *text, char name[HED_SCHED_NAME], struct hed_sched_wish *wish,
                           struct hed_why *why);

#define HED_SCHED_MEET_MAX 101 /* bytes of the name of a meeting place, the 0 included */
#define HED_SCHED_BEGIN "sched-"

/* The name under which the users of a GPU meet, by its UUID. */
void hed_sched_meet_name(const char *room, const unsigned char uuid[16],
                         char out[HED_SCHED_MEET_MAX]);

extern const struct hed_meet_shape hed_sched_shape;

/* Joins, with a place filled in after `wish`. */
int hed_sched_join(const char *meet_name, const struct hed_sched_wish *wish, struct hed_meet **out,
                   struct hed_why *why);

/* Changes what all share, and wakes whoever it concerns. */
int hed_sched_set_common(struct hed_meet *m, const struct hed_sched_wish *wish, uint64_t now);

/* Changes one client. Only what `given` says; paused and release: -1 leaves it. */
struct hed_sched_change {
    struct hed_sched_wish wish;
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
