/* The file of a meeting: its layout, its locks, and how it gets and loses its name. Only this room
 * includes it.
 *
 *   head (64 bytes) | common, to 64 | slot 0 | slot 1 | ...      a slot: owner (64) | its bytes
 *
 * The file has its final size and a valid head when it appears under its name, and neither changes
 * afterwards. Its locks are locks of open file descriptions, on offsets that mean nothing as bytes
 * of the file:
 *
 *   0                       held while the common part changes (hed_meet_lock)
 *   1 + i                   slot i is in use: it was zeroed, and its owner lives
 *   1 + SLOTS_MAX + i       slot i is claimed: the claimer may zero it
 *   1 + 2 * SLOTS_MAX       a process that has all slot locks has this one too
 *   1 + 2 * SLOTS_MAX + 1   held while the file loses its name
 *
 * The locks of a slot are for writing (exclusive) until its owner is about to leave. Then they are
 * for reading: others still see that the slot is taken, but two processes that leave at the same
 * time can both have all slot locks, so that one of them removes the file:
 *
 *   member ──hed_meet_end──> its locks become read locks ──> read locks on all slots
 *                                                      │               └─> last lock ──> unlink
 *                                                      └─ somebody stays: the file stays
 *
 * A process that is not in the file removes it with write locks on all of it.
 *
 * Invariants:
 * 1. A slot that is in use holds nothing of its previous owner.
 * 2. A process uses a slot only in the file that has the name: it checks the name again after it
 *    has claimed the slot.
 * 3. A file loses its name only while one process has all of its slot locks and the last lock. So
 *    nobody else is in the file except processes that leave, and nobody else removes it.
 * 4. Sizes come from the caller's shape, never from the file.
 *
 * A process that truncates the file ends the processes that have mapped it, as it could with
 * kill(2).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/lock.h"
#include "base/meeting.h"
#include "share/meet/meet.h"

#define HED_MEET_LINE 64u
#define HED_MEET_NAME_MAX 100 /* letters */
#define HED_MEET_SLOTS_MAX 4096u

struct hed_meet_head {
    uint64_t magic;
    struct hed_meet_shape shape;
    _Atomic int32_t holder;  /* the process that has lock 0; 0 if none or unknown */
    _Atomic uint32_t serial; /* how often lock 0 has been taken */
    uint32_t reserved[8];
};

struct hed_meet_owner {
    _Atomic int32_t pid;
    uint32_t reserved[15];
};

_Static_assert(sizeof(struct hed_meet_head) == HED_MEET_LINE &&
                   sizeof(struct hed_meet_owner) == HED_MEET_LINE,
               "layout of the file");

struct hed_meet {
    struct hed_meet_shape shape;
    struct hed_lock lock;             /* lock 0 keeps processes apart, not threads */
    struct hed_meeting_folder folder; /* its fd is -1 if none is open */
    char name[HED_MEET_NAME_MAX + 1];
    int fd;     /* -1 in the child of a fork */
    int index;  /* of the own slot; -1 for none */
    bool stuck; /* the last wait for lock 0 failed */
    unsigned char *map;
    size_t size;
};

static inline off_t
hed_meet_use_byte(uint32_t index)
{
    return 1 + (off_t)index;
}

static inline off_t
hed_meet_claim_byte(uint32_t index)
{
    return 1 + (off_t)HED_MEET_SLOTS_MAX + (off_t)index;
}

/* Locks or unlocks [at, at + n) without waiting; n = 0 means to the end. Returns 0 or errno. */
int hed_meet_lock_bytes(int fd, short type, off_t at, off_t n);
bool hed_meet_is_lock_taken(int e); /* is it the errno of a lock that another process has? */

/* Does another process have a lock on that byte? If the kernel does not tell, the answer is yes. */
bool hed_meet_is_byte_locked(int fd, off_t at);

/* Does a process have all slot locks, because it is about to remove the file? */
bool hed_meet_has_remover(int fd);

/* Is the file that is open as m->fd still the one that the name stands for? */
bool hed_meet_has_name(const struct hed_meet *m);

/* Finds the file, creates it if `join`, and checks that it has the right layout. 1: the file has
 * gone or is about to, so close it (hed_meet_close_file) and start again. */
int hed_meet_open_file(struct hed_meet *m, bool join, struct hed_why *why);
void hed_meet_close_file(struct hed_meet *m);

/* Checks a name and a shape, and puts them into m, with the size of such a file. */
int hed_meet_name_file(struct hed_meet *m, const char *name, const struct hed_meet_shape *shape,
                       struct hed_why *why);
size_t hed_meet_slot_offset(const struct hed_meet_shape *s, uint32_t index);

/* Has m->fd the right layout? Only looks at it: HED_EVERSION if processes of another layout use it,
 * HED_ENOTFOUND if nobody does. */
int hed_meet_judge(const struct hed_meet *m, struct hed_why *why);

/* Says why, with the file's path, and returns the code for an errno. */
int hed_meet_explain(const struct hed_meet *m, struct hed_why *why, int e);
