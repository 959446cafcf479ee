/* Running CRIU, which saves a process and its memory to a folder of images and makes it again from
 * them. It is a program of its own; heddle finds it, gives it options, and reads in its log why it
 * failed.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct hed_why;

#define HED_CRIU_STREAMS 3  /* standard input, output and error */
#define HED_CRIU_STREAM 400 /* bytes of a stream's name */

struct hed_criu {
    char path[PATH_MAX];
    char preload[PATH_MAX]; /* libheddle-criu.so; "": this machine does not need it */
    int version;            /* 31701 is 3.17.1 */
    bool unprivileged;      /* it runs without root */
};

/* Finds criu, and checks that this user may use it on this kernel. HED_ENOTFOUND: it is not
 * installed; HED_EACCESS: it needs rights that we do not have; HED_ENOTSUP: it cannot work here. */
int hed_criu_find(struct hed_criu *out, struct hed_why *why);

/* A standard stream is "pipe:[123]", "tty", "file:SIZE:PATH" for a file that is written to, but not
 * for appending, or "": criu finds it again by its path. criu refuses a file that has another size
 * than at that time; then our own standard stream takes its place. */

/* What must be known about a process besides its images, to restore it. */
struct hed_criu_process {
    pid_t pid;
    bool shell_job;                                 /* it is not the leader of its session */
    char stream[HED_CRIU_STREAMS][HED_CRIU_STREAM]; /* as described below */
};

/* Asks the kernel. HED_ENOTFOUND: there is no such process. */
int hed_criu_describe(pid_t pid, struct hed_criu_process *out, struct hed_why *why);

enum hed_criu_after { HED_CRIU_STOP, HED_CRIU_RUN };

/* Saves a process and its descendants in `folder`. Afterwards they are stopped, or go on. After a
 * failure they go on. */
int hed_criu_dump(const struct hed_criu *c, const struct hed_criu_process *p, const char *folder,
                  enum hed_criu_after after, struct hed_why *why);

/* Makes the process again from `folder`, as a child of ours. Pipes and terminals that were its
 * standard streams become our own standard streams. `out` is its number. HED_EEXIST: its old number
 * is taken. */
int hed_criu_restore(const struct hed_criu *c, const struct hed_criu_process *p, const char *folder,
                     pid_t *out, struct hed_why *why);

/* Finds in the text of a log the line that says why criu failed, and explains it. For tests. */
void hed_criu_explain(const char *log, size_t size, struct hed_why *why);

/* A folder of our own, for images; only its owner can look into it. It may lie in a folder of
 * another user, who can rename it and put something else in its place: so it is found through a
 * descriptor of ours, never by its name. */
struct hed_criu_folder {
    int fd;              /* -1: there is none */
    char path[48];       /* the way to it through the descriptor, for this process and criu */
    char name[PATH_MAX]; /* what it was called when it was made */
};

/* Makes the folder in the folder `near`. */
int hed_criu_folder_make(const char *near, struct hed_criu_folder *out, struct hed_why *why);

/* Removes the folder and the files in it. */
void hed_criu_folder_remove(struct hed_criu_folder *f);
