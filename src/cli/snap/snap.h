/* What the subcommands of `heddle snap` share. snap.c has the table. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "move/move.h"

int hed_cli_snap(int argc, char **argv);

int hed_cli_snap_list(int argc, char **argv);
int hed_cli_snap_info(int argc, char **argv);
int hed_cli_snap_verify(int argc, char **argv);
int hed_cli_snap_prune(int argc, char **argv);
int hed_cli_snap_compact(int argc, char **argv);

int hed_cli_snap_save(int argc, char **argv);
int hed_cli_snap_restore(int argc, char **argv);
int hed_cli_snap_fork(int argc, char **argv);
int hed_cli_snap_out(int argc, char **argv);
int hed_cli_snap_in(int argc, char **argv);
int hed_cli_snap_pause(int argc, char **argv);
int hed_cli_snap_resume(int argc, char **argv);

/* Finds the process that a word names: its own number, that of the heddle command that has started
 * it, or that of the worker that serves it at the server `listen` (NULL: the usual one). On
 * failure prints the reason and returns an exit code. */
int hed_snap_subject(const char *command, const char *word, const char *listen, pid_t *out);

struct hed_talk_answer;

/* What the program was held for, a line each. Parts that took no time to speak of are left out. */
void hed_snap_print_parts(const struct hed_talk_answer *a);

/* A folder of snapshots, and one of them. */
struct hed_cli_snaps {
    int folder;
    struct hed_snap_store *store;
    char name[HED_SNAP_FILE_NAME]; /* of the file; "" for the folder as a whole */
};

/* Opens the folder `path`, or the folder of the file `path`, which need not exist. Complains with
 * the command's name and returns the exit code if that fails. */
int hed_cli_snap_folder(const char *command, const char *path, struct hed_cli_snaps *out);
int hed_cli_snap_file(const char *command, const char *path, struct hed_cli_snaps *out);
void hed_cli_snap_close(struct hed_cli_snaps *s);

struct hed_buf;

/* Adds what a snapshot says about itself as members of a JSON object that has one already. sizes
 * may be NULL. */
void hed_cli_snap_json(struct hed_buf *b, const struct hed_snap_about *about,
                       const struct hed_snap_sizes *sizes);

bool hed_cli_snap_is_folder(const char *path);

/* "0 B", "1.5 GiB". */
const char *hed_cli_snap_bytes(uint64_t n, char *out, size_t size);

/* When it was, in local time; "" for 0. */
const char *hed_cli_snap_time(uint64_t ns, char *out, size_t size);
