/* The operations on files that snapshots need, as a table, so that a test can put a file system
 * below that loses power.
 *
 * The operations behave like the system calls of their names: -1 and errno on failure, short counts
 * and EINTR are possible. The functions below them retry and return 0 or HED_E...
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct hed_why;

enum hed_snap_lock_mode {
    HED_SNAP_LOCK_SHARED,
    HED_SNAP_LOCK_ALONE,
};

struct hed_snap_files {
    void *state; /* of the table's owner */

    ssize_t (*pread)(void *state, int fd, void *p, size_t n, uint64_t at);
    ssize_t (*pwrite)(void *state, int fd, const void *p, size_t n, uint64_t at);
    int (*datasync)(void *state, int fd);
    int (*size)(void *state, int fd, uint64_t *out);
    int (*truncate)(void *state, int fd, uint64_t size);
    int (*close)(void *state, int fd);

    /* In a folder, by a name without '/'. open: flags and mode as in open(2); links are not
     * followed. rename: EEXIST if there is `to`, unless it may be replaced. */
    int (*open)(void *state, int folder, const char *name, int flags, mode_t mode);
    int (*rename)(void *state, int folder, const char *from, const char *to, bool replace);
    int (*remove)(void *state, int folder, const char *name);
    int (*syncdir)(void *state, int folder);

    /* Calls visit for each name in the folder, except "." and "..", until it returns false. */
    int (*list)(void *state, int folder, bool (*visit)(void *arg, const char *name), void *arg);

    /* flock(2). HED_SNAP_LOCK_ALONE does not wait: EWOULDBLOCK if another process has it locked.
     * Closing the descriptor unlocks it. */
    int (*lock)(void *state, int fd, enum hed_snap_lock_mode mode);
};

/* The system's own. */
extern const struct hed_snap_files hed_snap_files_real;

/* Exactly n bytes. HED_ETRUNC if the file ends before. */
int hed_snap_pread(const struct hed_snap_files *f, int fd, void *p, size_t n, uint64_t at);
int hed_snap_pwrite(const struct hed_snap_files *f, int fd, const void *p, size_t n, uint64_t at);
int hed_snap_datasync(const struct hed_snap_files *f, int fd);

/* What the system said when the last of these functions failed in this thread, with that code:
 * "No space left on device" says more than "over a limit". */
const char *hed_snap_io_text(int err);
