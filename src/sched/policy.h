/* Policies: who of the clients of a GPU may run. Pure functions of clients and clock.
 *
 * A policy looks at the scene, gives every client a verdict and says when it wants to be asked
 * again at the latest. It is asked under the lock of all, by whichever process noticed something,
 * so it must be quick, and it must depend on nothing but the scene: what it remembers is in the
 * scene, too (`memory`, of all; `kept`, of each client).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HED_POLICY_MEMORY 4
#define HED_POLICY_KEPT 4

enum hed_priority { HED_PRIORITY_LOW, HED_PRIORITY_NORMAL, HED_PRIORITY_HIGH };

enum hed_verdict {
    HED_VERDICT_OPEN,   /* as it likes */
    HED_VERDICT_LIMIT,  /* with little work in flight: somebody's turn may come */
    HED_VERDICT_CLOSED, /* it waits */
};

struct hed_sched_params {
    uint64_t hold;       /* ns that a client counts as working after its work has ended */
    uint64_t cap;        /* ns of GPU time in flight of a client that is limited */
    uint64_t slice;      /* ns of a turn */
    uint64_t batch_wait; /* ns a launch waits for others at most */
    uint32_t batch;      /* launches that are released together */
};

struct hed_sched_client {
    uint32_t place;
    bool working;
    bool fresh;       /* it was not at the last decision */
    uint32_t waiting; /* calls at its gate, and those queued behind them */
    uint32_t syncing;
    uint32_t priority;
    uint32_t weight;      /* > 0; what it has of its group's */
    uint64_t deadline;    /* ns from when it begins to work; 0: none */
    uint64_t since;       /* ns: works since */
    uint64_t rested;      /* ns: end of its last work; 0: none yet */
    uint64_t waits_since; /* ns; only while waiting > 0 */
    uint64_t used;        /* ns of GPU time */
    uint64_t ends;        /* ns: when its work in flight ends, as far as can be told */
    uint64_t kept[HED_POLICY_KEPT];
    enum hed_verdict verdict; /* out; OPEN at first */
    uint64_t until; /* out; ns: where LIMIT, its work is to have ended by then; 0: never */
    uint64_t spare; /* out; ns: pieces of work that take longer need not */
};

struct hed_scene {
    uint64_t now;
    struct hed_sched_params params;
    uint64_t memory[HED_POLICY_MEMORY];
    struct hed_sched_client *clients; /* in the order of their places; none is paused */
    size_t count;
    size_t working;     /* of them */
    uint64_t next_look; /* out */
};

struct hed_policy {
    const char *name;
    const char *help;
    void (*decide)(struct hed_scene *scene);
    bool alone;    /* it has something to say also where only one client works */
    bool on_sync;  /* it wants to know when somebody begins to wait for the GPU */
    bool by_count; /* OPEN is for the calls that wait now, not for those that come later */
};

extern const struct hed_policy *const hed_policies[]; /* NULL at the end */
#define HED_POLICY_COUNT 6
#define HED_POLICY_DEFAULT 0

extern const struct hed_policy hed_policy_priority;
extern const struct hed_policy hed_policy_fair;
extern const struct hed_policy hed_policy_fifo;
extern const struct hed_policy hed_policy_deadline;
extern const struct hed_policy hed_policy_slice;
extern const struct hed_policy hed_policy_batch;

extern const struct hed_sched_params hed_sched_defaults;

/* The index of a policy by its name; -1. */
int hed_policy_find(const char *name);

/* For policies: ask again at t, or before. */
void hed_scene_look(struct hed_scene *s, uint64_t t);

/* The working client with a turn (memory holds place + 1), NULL: nobody. */
struct hed_sched_client *hed_scene_turn(struct hed_scene *s, uint64_t memory);

/* Only that client may run: limited where others wait for their turn. */
void hed_scene_give(struct hed_scene *s, struct hed_sched_client *turn);
