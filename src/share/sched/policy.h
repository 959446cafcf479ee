/* Policies: which clients of a GPU may run.
 *
 * A policy is a pure function of the scene. It gives every client a verdict and says when it wants
 * to be asked again at the latest. It runs under the lock that all processes share, in whichever
 * process noticed a change, so it must be quick and must depend on nothing but the scene. What it
 * remembers between two decisions is part of the scene, too: `memory` of the scene, and `memory` of
 * each client. Both lie in shared memory and begin as 0.
 *
 * docs/adding-a-policy.md adds one step by step.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HED_POLICY_MEMORY 4        /* words, of the policy as a whole */
#define HED_POLICY_CLIENT_MEMORY 4 /* words, for each client */

enum hed_priority { HED_PRIORITY_LOW, HED_PRIORITY_NORMAL, HED_PRIORITY_HIGH };

enum hed_verdict {
    HED_VERDICT_OPEN,   /* its calls go on */
    HED_VERDICT_LIMIT,  /* its calls go on, with little work in flight: another may need the GPU */
    HED_VERDICT_CLOSED, /* its calls wait */
};

struct hed_sched_params {
    uint64_t hold;       /* ns that a client counts as working after its work has ended */
    uint64_t cap;        /* ns of GPU time that a limited client may have in flight */
    uint64_t slice;      /* ns of a time slice */
    uint64_t batch_wait; /* ns that a launch waits for others at most */
    uint32_t batch;      /* launches that are released together */
};

/* A client as a policy sees it. The policy writes `memory` and the fields marked "out". */
struct hed_sched_client {
    uint32_t slot;    /* its number; constant while it lives */
    bool working;     /* it has work, on the GPU or waiting at its gate */
    bool fresh;       /* it began to work after the last decision */
    uint32_t waiting; /* calls that wait at its gate, and calls queued behind them */
    uint32_t syncing; /* threads that wait for the GPU */
    uint32_t priority;
    uint32_t weight;      /* its part of its group's share; > 0 */
    uint64_t deadline;    /* ns after it begins to work; 0: none */
    uint64_t since;       /* ns: when it began to work */
    uint64_t rested;      /* ns: when its last work ended; 0: it has done none yet */
    uint64_t waits_since; /* ns: since when a call waits; only while waiting > 0 */
    uint64_t used;        /* ns of GPU time so far */
    uint64_t ends;        /* ns: when its work in flight ends, as estimated */
    uint64_t memory[HED_POLICY_CLIENT_MEMORY];
    enum hed_verdict verdict; /* out; OPEN before the policy is asked */
    uint64_t until; /* out; ns: with LIMIT, its work must have ended by then; 0: no such time */
    uint64_t spare; /* out; ns: `until` does not bind pieces of work that take longer than this */
};

struct hed_scene {
    uint64_t now;
    struct hed_sched_params params;
    uint64_t memory[HED_POLICY_MEMORY];
    struct hed_sched_client *clients; /* ordered by slot; paused clients are not among them */
    size_t count;
    size_t working;     /* clients that work */
    uint64_t next_look; /* out: set it with hed_scene_look() */
};

/* What policy/NAME.c defines. */
struct hed_policy {
    void (*decide)(struct hed_scene *scene);
    bool asked_alone;    /* it is also asked while only one client works; else that one runs */
    bool asked_on_sync;  /* it is also asked when a thread begins to wait for the GPU */
    bool releases_calls; /* OPEN lets the calls go on that wait now, and no later ones */
};

/* policies.def as an enum, as declarations and as a table. */
enum {
#define POLICY(name, help) HED_POLICY_##name,
#include "share/sched/policies.def"
#undef POLICY
    HED_POLICY_COUNT,
    HED_POLICY_DEFAULT = 0,
};

#define POLICY(name, help) extern const struct hed_policy hed_policy_##name;
#include "share/sched/policies.def"
#undef POLICY

struct hed_policy_entry {
    const char *name;
    const char *help; /* one line */
    const struct hed_policy *policy;
};

extern const struct hed_policy_entry hed_policies[HED_POLICY_COUNT];

extern const struct hed_sched_params hed_sched_defaults;

/* The number of a policy by its name; -1 if there is none of that name. */
int hed_policy_find(const char *name);

/* The policy of a number from shared memory, which may hold anything: the default where there is no
 * such policy. */
const struct hed_policy *hed_policy_at(uint32_t number);

/* ---- for policies ---------------------------------------------------------------------------- */

/* Asks to decide again at `t`, or before. */
void hed_scene_look(struct hed_scene *s, uint64_t t);

/* For policies that run one client at a time; they use memory[0] of the scene for this. The first
 * lets only that client run (limited, if others have work, too; NULL: nobody) and remembers it. The
 * second is the client that was given the GPU last, if it still works; else NULL. */
void hed_scene_run_only(struct hed_scene *s, struct hed_sched_client *runner);
struct hed_sched_client *hed_scene_runner(struct hed_scene *s);
