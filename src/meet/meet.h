/* Where processes meet: a file in shared memory with a place for each process that is there.
 *
 *   /dev/shm/heddle-UID-NAME    (mode 0600; made by the first process)
 *
 * The kernel notices when a process dies, however it dies: its place is a byte of the file that it
 * has locked (an open file description's lock, which goes with the process). So nobody has to
 * clean up after it, and nobody has to guess from a timeout that a process is dead. Joining and
 * leaving never wait for another process, however slowly that one runs.
 *
 * Invariants:
 * 1. Only the owner of a place writes to it, but for words that its user says others may write.
 * 2. A place is handed out again only after its last owner's lock has gone. It is zeroed before
 *    hed_meet_taken() is true of it, so a word that is read after that is its owner's.
 * 3. Nothing in the file is believed: a process of the same user may write nonsense there, and the
 *    worst of it is a wrong number or a wait that ends.
 * 4. No lock is held across a call of the application or of a driver.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct hed_why;

struct hed_meet; /* this process's part in it */

struct hed_meet_shape {
    uint32_t magic;  /* of the user and its version: a file with another one is not joined */
    uint32_t common; /* bytes that all share, in front */
    uint32_t place;  /* bytes of each process's place */
    uint32_t places; /* how many */
};

/* Joins NAME (letters, digits, '-', '.'), making it if need be, and takes a place. HED_ELIMIT: all
 * places are taken; HED_EVERSION: it is another kind of file; HED_EACCESS, HED_ENOMEM, HED_EIO. */
int hed_meet_join(const char *name, const struct hed_meet_shape *shape, struct hed_meet **out,
                  struct hed_why *why);

/* Joins without a place of its own: to look, or to tell others something (heddle sched ...).
 * HED_ENOTFOUND: nobody has made it, or whoever comes next makes it anew. */
int hed_meet_look(const char *name, const struct hed_meet_shape *shape, struct hed_meet **out,
                  struct hed_why *why);

void hed_meet_leave(struct hed_meet *m);  /* the place is free; NULL is fine */
void hed_meet_forked(struct hed_meet *m); /* in the child: the place is the parent's */

void *hed_meet_common(struct hed_meet *m);
void *hed_meet_mine(struct hed_meet *m);      /* NULL: only looking */
int hed_meet_index(const struct hed_meet *m); /* of the own place; -1 */
void *hed_meet_place(struct hed_meet *m, uint32_t index);

/* Is somebody there, now? Asks the kernel: a system call. *pid (may be NULL) is who says so. */
bool hed_meet_taken(struct hed_meet *m, uint32_t index, pid_t *pid);

/* Held while the common part changes, by one process at a time and for microseconds. The kernel
 * releases it if its holder dies. HED_ETIME: the same process has had it for too long, 2 seconds if
 * it is stopped and 10 otherwise; later calls then give up after a millisecond, until one
 * succeeds. */
int hed_meet_lock(struct hed_meet *m);
void hed_meet_unlock(struct hed_meet *m);
