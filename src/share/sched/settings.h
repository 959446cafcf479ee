/* The settings of sharing, as users write them: "prio=high,share=3,policy=fair".
 *
 * Some belong to a program or to one of its clients, some to all programs that share a GPU.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "share/sched/policy.h"

struct hed_why;

#define HED_SCHED_NAME 32    /* bytes of a name, with its 0 */
#define HED_SCHED_QUEUE 4096 /* the default of `queue` */
#define HED_SCHED_QUEUES 8   /* the default of `queues` */

/* Which settings a text contains. */
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
    HED_SCHED_GIVEN_SCOPE = 1024,
    HED_SCHED_GIVEN_MODE = 2048,
    HED_SCHED_GIVEN_STREAM = 4096,
    HED_SCHED_GIVEN_QUEUE = 8192,
    HED_SCHED_GIVEN_QUEUES = 16384,
    HED_SCHED_GIVEN_SWAP = 32768,
};

struct hed_sched_settings {
    uint32_t priority; /* enum hed_priority */
    uint32_t weight;
    uint64_t deadline; /* ns; 0: none */
    char group[HED_SCHED_NAME];
    uint64_t family; /* without a group: programs of one family have one share; 0: none */
    char scope[HED_SCHED_NAME]; /* only processes of the same scope see each other; "" */
    uint32_t given;             /* HED_SCHED_GIVEN_*: settings that the text contained */
    uint32_t policy;            /* with `params`: of all that share the GPU */
    struct hed_sched_params params;
    bool swap;       /* swap=on: device memory goes to the client of higher priority */
    bool record;     /* mode=record: calls are queued and issued later; else they wait */
    bool own_stream; /* stream=own: recorded work runs on a stream of heddle's */
    uint32_t queue;  /* calls that each queue may hold */
    uint32_t queues; /* queues that a client may have, for as many of its threads */
};

/* Reads the settings of a program: "on", or a list. What the list does not contain has its default.
 * HED_EINVAL, HED_EFORMAT and HED_ELIMIT leave *out alone. */
int hed_sched_parse(const char *text, struct hed_sched_settings *out, struct hed_why *why);

/* The same for a change while programs run. Refuses group, scope, mode, stream, queue and queues,
 * which a program keeps for its life. */
int hed_sched_parse_change(const char *text, struct hed_sched_settings *out, struct hed_why *why);

/* Reads a client's name, or its name and settings: "web:prio=high,share=3". `settings` holds those
 * of its process before, and the client's afterwards. A client can have its own prio, share,
 * deadline_us and group, and nothing else. */
int hed_sched_parse_client(const char *text, char name[HED_SCHED_NAME],
                           struct hed_sched_settings *settings, struct hed_why *why);
