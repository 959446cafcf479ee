/* Whom a snapshot may be believed.
 *
 * A snapshot holds a process with its user, its rights and its memory, and CRIU makes it as the
 * file says. So whoever can write the file of a snapshot that root restores can become root.
 *
 *     a program of another user    writes its GPU memory into root's file, but never the images
 *     a file of another user       is not restored
 *     another user's program       is restored by root only if he says so: CRIU opens its files as
 *                                  root, by their names, which that user may have given to others
 *
 * Programs and files of the user himself are believed, and so are those of root.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "move/file/reader.h"

struct hed_why;

/* The user who started a process. False: it is not known. */
bool hed_snap_user_of(pid_t pid, uid_t *out);

/* Do all of the process's user numbers equal ours? */
bool hed_snap_is_own_process(pid_t pid);

/* May we restore a program of that user? Our own may be, and those of the user who has become root
 * by sudo. HED_EACCESS. */
int hed_snap_check_user(uid_t user, struct hed_why *why);

/* A descriptor of the same file that is good for reading only; -1 on failure. */
int hed_snap_reading_copy(int fd);

/* Takes the file back from a program that was to write its part: *fd, open for reading and writing,
 * becomes another descriptor of the same file. HED_EACCESS: a program of another user (`own` is
 * false) still has the file open for writing, so what is added now would not be safe from it;
 * HED_ENOTSUP: the file system cannot tell. */
int hed_snap_claim(int *fd, bool own, struct hed_why *why);

/* Checks the program's part: that it is the snapshot that was asked for, and has memory of devices
 * only. HED_EACCESS. */
int hed_snap_check_part(int fd, const struct hed_snap_about *asked, struct hed_why *why);

/* Checks that a file from which a process is made can be believed. HED_EACCESS. */
int hed_snap_check_owner(int fd, struct hed_why *why);
