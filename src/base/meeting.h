/* The folder where the processes of a user meet: the files in it hold what they share.
 *
 *   /run/user/UID/heddle    if /run/user/UID is a folder of the user alone
 *   /dev/shm/heddle-UID     otherwise; the first process creates it
 *   ~/.heddle-HOST          if another user has taken that name; ~ is from the password database
 *
 * Nothing here depends on the environment, so that two programs of a user meet however they were
 * started. /run/user/UID comes and goes with the user's logins: a file that is already in
 * /dev/shm/heddle-UID is used there (hed_meeting_find). A home folder is used for as long as it
 * exists and /dev/shm has no folder of the user.
 *
 * Invariants:
 * 1. No other user can create, remove or rename anything in these folders: each is a folder, not a
 *    link, of the user and with mode 0700.
 * 2. Files are opened relative to a folder's descriptor, without following links, and are checked
 *    after they have been opened (hed_meeting_owns).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

#define HED_MEETING_PATH_MAX 512 /* bytes of a folder's path, the 0 included */
#define HED_MEETING_FOLDERS 2

struct hed_meeting_folder {
    int fd;
    uid_t user;  /* that the folder and its files belong to */
    mode_t mode; /* of files that are created in it */
    char path[HED_MEETING_PATH_MAX];
};

/* The folders where files may lie. New files go into the first. */
struct hed_meeting_folders {
    size_t count;
    struct hed_meeting_folder at[HED_MEETING_FOLDERS];
    struct hed_why warning; /* which user took the name of the folder, for people; empty: none */
};

/* Opens the folders; with `make`, creates the first. The warning is logged once per process.
 * HED_ENOTFOUND if there is none (only without `make`); HED_EACCESS, HED_EIO. */
int hed_meeting_open(bool make, struct hed_meeting_folders *out, struct hed_why *why);
void hed_meeting_close(struct hed_meeting_folders *f);

/* The folder that has something called `name`, or the first. */
const struct hed_meeting_folder *hed_meeting_find(const struct hed_meeting_folders *f,
                                                  const char *name);

/* Calls `visit` for the name of everything in the folders, once for each name, until it returns
 * false. */
void hed_meeting_each(const struct hed_meeting_folders *f,
                      bool (*visit)(void *arg, const char *name), void *arg);

/* Is fd a plain file that only processes of this folder can open, and has it no second name? A file
 * that has lost its name passes. */
bool hed_meeting_owns(const struct hed_meeting_folder *f, int fd);

/* The same with other places, for tests. */
struct hed_meeting_places {
    uid_t user;
    const char *run;    /* "/run/user/UID"; the folder is made in it */
    const char *shared; /* "/dev/shm" */
    const char *home;   /* NULL: from the password database */
};

int hed_meeting_open_in(const struct hed_meeting_places *p, bool make,
                        struct hed_meeting_folders *out, struct hed_why *why);
