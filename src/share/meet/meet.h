/* Where processes meet: a file in shared memory with a slot for each process that has joined.
 *
 *   FOLDER/NAME    (mode 0600; created by the first process, removed by the last)
 *
 * The folder is the user's own (base/meeting.h).
 *
 * The kernel notices when a process dies, however it dies: a process has locked one byte of the
 * file for its slot, with a lock of an open file description, which ends with the process. So no
 * process has to clean up after another, or guess from a timeout that it is dead. Joining and
 * leaving never wait for another process, however slowly it runs. The file of a process that was
 * killed stays until a process of the same name leaves, or another that creates a file finds that
 * this one is old and unused.
 *
 * Invariants:
 * 1. Only the owner of a slot writes to it, except for words that the user of the file lets others
 *    write.
 * 2. A slot is handed out again only after the lock of its last owner has ended. It is zeroed
 *    before hed_meet_taken() is true for it, so a word that is read after that was written by its
 *    owner.
 * 3. Nothing in the file is trusted: a process of the same user may write nonsense there. The worst
 *    result is a wrong number or a wait that ends.
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
    uint32_t magic;  /* of the user and its version; a file with another is not joined */
    uint32_t common; /* bytes that all processes share, at the beginning */
    uint32_t slot;   /* bytes of each process's slot */
    uint32_t slots;  /* how many */
};

/* Joins NAME (letters, digits, '-', '.'), creates the file if needed, and takes a slot. HED_ELIMIT
 * if all slots are taken; HED_EVERSION if it is another kind of file; HED_EACCESS, HED_ENOMEM,
 * HED_EIO. */
int hed_meet_join(const char *name, const struct hed_meet_shape *shape, struct hed_meet **out,
                  struct hed_why *why);

/* Joins without a slot: to look, or to tell others something (heddle sched ...). HED_ENOTFOUND if
 * the file does not exist, or the next process that joins would replace it. */
int hed_meet_look(const char *name, const struct hed_meet_shape *shape, struct hed_meet **out,
                  struct hed_why *why);

/* The process is about to end, or to leave: removes the file if no other process stays in it. The
 * slot stays taken, and other threads may still use m. NULL is allowed. */
void hed_meet_end(struct hed_meet *m);

void hed_meet_leave(struct hed_meet *m);  /* hed_meet_end, and frees the slot; NULL is allowed */
void hed_meet_forked(struct hed_meet *m); /* in the child of a fork: the slot is the parent's */

void *hed_meet_common(struct hed_meet *m);
void *hed_meet_mine(struct hed_meet *m);      /* NULL without a slot */
int hed_meet_index(const struct hed_meet *m); /* of the process's own slot; -1 if it has none */
void *hed_meet_slot(struct hed_meet *m, uint32_t index);

/* Does a process have the slot now? Asks the kernel: one system call. *pid (pid may be NULL) is
 * what the owner wrote. */
bool hed_meet_taken(struct hed_meet *m, uint32_t index, pid_t *pid);

/* Held while the common part changes, by one process at a time and for microseconds. The kernel
 * releases it if its holder dies. HED_ETIME if the same process has held it for too long, 2 seconds
 * if it is stopped and 10 otherwise; later calls then give up after a millisecond, until one
 * succeeds. */
int hed_meet_lock(struct hed_meet *m);
void hed_meet_unlock(struct hed_meet *m);
