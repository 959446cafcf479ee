/* Looking at who shares a GPU, from outside: what `heddle sched list`, `heddle top` and the like
 * show comes from here.
 *
 * Nothing in shared memory is believed: the file is copied (share/meet/copy.h), a program is there
 * only if the kernel says that it lives, numbers that index something are in their range, and texts
 * end. Texts may still contain anything else; hed_sched_plain() makes letters of it. Looking
 * changes nothing; hed_sched_watch_all() does.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "share/sched/share.h"

#define HED_SCHED_GPUS 64 /* meetings that are looked at */
#define HED_SCHED_UUID_DIGITS 32

struct hed_buf;
struct hed_meeting_folders;

enum hed_sched_state {
    HED_SCHED_IDLE,
    HED_SCHED_RUNNING,
    HED_SCHED_WAITING,
    HED_SCHED_PAUSED,
    HED_SCHED_OUT,
    HED_SCHED_STATES
};

/* A client of a GPU. */
struct hed_sched_program {
    uint32_t slot;
    int32_t pid; /* as it says itself */
    char name[HED_SCHED_NAME];
    char group[HED_SCHED_NAME];
    uint32_t priority; /* enum hed_priority */
    uint32_t share;
    uint64_t deadline; /* ns */
    uint32_t waiting;  /* threads at the gate */
    uint32_t queued;   /* recorded calls */
    bool working, open, paused, out, swap;
    uint32_t outs;      /* how often it was off the GPU, and is */
    uint64_t out_ns;    /* for how long, up to now */
    uint64_t copy_ns;   /* what leaving and coming back took */
    uint64_t calls;     /* that put work on the GPU */
    uint64_t used;      /* ns of GPU time that was done while it was measured */
    uint64_t waited;    /* ns, with those waits that have not ended */
    uint64_t in_flight; /* ns of GPU time, as estimated */
    uint64_t waits[HED_SCHED_WAITS];
    bool measured;         /* its GPU time is being measured */
    bool memory_known;     /* the next two are */
    uint64_t memory_used;  /* bytes */
    uint64_t memory_limit; /* bytes; 0: none */
};

/* The clients of a GPU that meet in one file. */
struct hed_sched_gpu {
    char file[HED_SCHED_MEET_MAX];
    char uuid[HED_SCHED_UUID_DIGITS + 1];
    char scope[HED_SCHED_NAME];
    uid_t user;      /* that the file belongs to */
    bool shared;     /* by the users of a group: programs may be others' */
    uint64_t at;     /* ns: when it was looked at */
    uint32_t policy; /* < HED_POLICY_COUNT */
    bool paused;     /* all of them */
    uint64_t hold, cap, slice, batch_wait;
    uint32_t batch;
    size_t count;
    struct hed_sched_program programs[HED_SCHED_SLOTS];
};

/* Everything that was found. */
struct hed_sched_scene {
    size_t count;
    struct hed_sched_gpu *gpus[HED_SCHED_GPUS]; /* owned; by UUID, scope and user */
    struct hed_why problem; /* the last file that could not be read, for people; empty: none */
};

/* Adds what meets in those folders. GPUs without programs are left out. HED_ENOMEM. */
int hed_sched_look(const struct hed_meeting_folders *folders, struct hed_sched_scene *out);
void hed_sched_scene_sort(struct hed_sched_scene *s);
void hed_sched_scene_free(struct hed_sched_scene *s); /* and empties it */

/* What a program does, by its calls and those that it had made at an earlier look. */
enum hed_sched_state hed_sched_state_of(const struct hed_sched_gpu *g,
                                        const struct hed_sched_program *p, uint64_t calls_before);
const char *hed_sched_state_name(enum hed_sched_state state);
const char *hed_sched_priority_name(uint32_t priority);
const char *hed_sched_policy_name(const struct hed_sched_gpu *g);

/* Copies text that others wrote as letters that a terminal prints; all others become '?'. Returns
 * its length. */
size_t hed_sched_plain(const char *text, char *out, size_t size);

/* Appends GPU-8-4-4-4-12, as nvidia-smi writes it. */
void hed_sched_put_uuid(struct hed_buf *b, const char uuid[HED_SCHED_UUID_DIGITS + 1]);

/* Splits a file's name, sched-[SCOPE-]UUID. False: it is not such a name. */
bool hed_sched_read_name(const char *file, char uuid[HED_SCHED_UUID_DIGITS + 1],
                         char scope[HED_SCHED_NAME]);

/* Somebody looks at the programs in the folders of this process's user: asks them to measure their
 * GPU time for the next HED_SCHED_WATCH_NS. */
void hed_sched_watch_all(const struct hed_meeting_folders *folders);

/* Changes one client of this process's user, and decides. HED_ENOTFOUND: it is gone. */
int hed_sched_change_program(const struct hed_sched_gpu *g, const struct hed_sched_program *p,
                             const struct hed_sched_change *change, struct hed_why *why);
