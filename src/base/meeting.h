/* The folder where the processes of a user meet: the files in it hold what they share.
 *
 *   the setting meet_dir    if there is one: a folder that an administrator has made
 *   /run/user/UID/heddle    if /run/user/UID is a folder of the user alone
 *   /dev/shm/heddle-UID     otherwise; the first process creates it
 *   ~/.heddle-HOST          if another user has taken that name; ~ is from the password database
 *
 * Without meet_dir nothing here depends on the environment, so that two programs of a user meet
 * however they were started. /run/user/UID comes and goes with the user's logins: a file that is
 * already in /dev/shm/heddle-UID is used there (hed_meeting_find). A home folder is used for as
 * long as it exists and /dev/shm has no folder of the user.
 *
 * Users of one group meet in a folder that the group can write to. Its files have the folder's
 * group and mode 0660, whoever has created them. There is no other folder then: a program that
 * cannot use this one is told why, and does not meet others elsewhere.
 *
 * Invariants:
 * 1. No other user can create, remove or rename anything in these folders: each is a folder, not a
 *    link, of the user and with mode 0700. With meet_dir it is a folder of the user or of root that
 *    others than its owner and its group cannot write to.
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
    bool shared; /* by the users of a group: files belong to any of them */
    uid_t user;  /* that the files belong to, if it is not shared */
    gid_t group; /* of its files, if it is */
    mode_t mode; /* of files that are created in it */
    char path[HED_MEETING_PATH_MAX];
};

/* The folders where files may lie. New files go into the first. */
struct hed_meeting_folders {
    size_t count;
    struct hed_meeting_folder at[HED_MEETING_FOLDERS];
    struct hed_why warning; /* which user took the name of the folder, for people; empty: none */
};

/* The folders of another user, for root; without the setting meet_dir. HED_ENOTFOUND if there are
 * none. Which users have such folders in the usual places, besides this process's own? Returns how
 * many, of at most `room`. */
int hed_meeting_open_of(uid_t user, struct hed_meeting_folders *out, struct hed_why *why);
size_t hed_meeting_users(uid_t *out, size_t room);

/* Chooses the folder of the setting meet_dir; "" for none. Called before the folders are opened, by
 * whoever has read the settings. The text is copied; one that is too long is refused when it is
 * opened. */
void hed_meeting_choose(const char *path);

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

/* Gives a file that was just created the folder's mode and group, which the umask and the user's
 * own group may have kept from it. 0 or -errno. */
int hed_meeting_adopt(const struct hed_meeting_folder *f, int fd);

/* The same with other places, for tests. */
struct hed_meeting_places {
    uid_t user;
    const char *run;    /* "/run/user/UID"; the folder is made in it */
    const char *shared; /* "/dev/shm" */
    const char *home;   /* NULL: from the password database */
    const char *given;  /* the setting meet_dir; NULL or "": none */
};

int hed_meeting_open_in(const struct hed_meeting_places *p, bool make,
                        struct hed_meeting_folders *out, struct hed_why *why);
