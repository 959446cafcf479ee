/* What `heddle snap`, `heddle migrate` and `heddle run --ckpt` do with running programs. The words
 * are the command line's (src/cli/snap): nothing here reads options, and what there is to say goes
 * through a function that the caller gives.
 *
 *   program.c   the program that a command is about, and what it says
 *   amounts.c   times and sizes as people write them
 *   place.c     the folder and the name of a snapshot, and the files that it needs
 *   images.c    the images of CRIU as part of a snapshot
 *   take.c      saves a program; guard.c lets it go on if the command dies meanwhile
 *   bring.c     makes a program again; trust.c says whose snapshots may be used, tails.c what
 *               becomes of files that have grown
 *   recover.c   a program that has lost its server goes on from a snapshot
 *   private.c   a server for one program
 *   criu.c      runs CRIU; criu_log.c says why it failed
 *   new_pids.c  a namespace in which a process has its old number
 *   saved.c     tells the command that has started a program where it was saved
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "move/command/criu.h"
#include "move/file/store.h"
#include "move/talk/talk.h"

struct hed_why;

/* Says a line to the user, as printf() does, without a newline. */
typedef void hed_command_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- program.c ------------------------------------------------------------------------------- */

/* How long a program may take to stop what it is doing, unless the user says otherwise. */
#define HED_SNAP_DEADLINE_MS 60000

/* Finds the program that a number means: its own, or that of the heddle command that has started
 * it. False, with the reason: there is no such program. */
bool hed_snap_find_program(pid_t number, pid_t *out, struct hed_why *why);

/* Asks a program how it is. */
int hed_snap_ask_info(pid_t pid, struct hed_talk_answer *out, struct hed_why *why);

/* Checks that the program is in the state that is needed, and has nothing that cannot be saved. */
int hed_snap_check_info(const struct hed_talk_answer *info, enum hed_talk_state needed,
                        struct hed_why *why);

/* Checks the address of a server. "" and NULL pass. */
int hed_snap_check_address(const char *address, struct hed_why *why);

/* ---- amounts.c ------------------------------------------------------------------------------- */

/* Parses a time such as 500ms, 60s, 5m, 2h; plain numbers are seconds. */
int hed_snap_parse_time(const char *text, uint64_t *ns);

/* "1.5 GiB", "12 ms", for people. out has HED_SNAP_AMOUNT bytes; returns it. */
#define HED_SNAP_AMOUNT 32
const char *hed_snap_bytes_text(uint64_t bytes, char *out);
const char *hed_snap_time_text(uint64_t ns, char *out);

/* ---- place.c --------------------------------------------------------------------------------- */

struct hed_snap_folder {
    char dir[PATH_MAX];
    int folder;
    struct hed_snap_store *store;
};

/* Opens a folder of snapshots; with `make`, creates it. */
int hed_snap_place_open(const char *dir, bool make, struct hed_snap_folder *out,
                        struct hed_why *why);
void hed_snap_place_close(struct hed_snap_folder *p);

/* Splits the path of a snapshot into folder and name. */
int hed_snap_place_split(const char *path, char dir[PATH_MAX], char name[HED_SNAP_FILE_NAME],
                         struct hed_why *why);

/* Opens the files in which chunks of a snapshot lie, to give them to a program. fds has room for
 * `room`; they are the caller's to close. */
int hed_snap_place_homes(struct hed_snap_folder *p, const struct hed_snap_reader *r, int *fds,
                         size_t room, size_t *count, struct hed_why *why);

/* ---- images.c -------------------------------------------------------------------------------- */

#define HED_SNAP_GPU 256

/* What of a process is not in CRIU's images. Kept in the snapshot as text. */
struct hed_snap_process {
    struct hed_criu_process criu;
    char socket[HED_TALK_PATH_MAX]; /* where the program listens (move/talk/talk.h) */
    int criu_version;
    bool has_user; /* snapshots of before do not say it */
    uid_t user;    /* who started it */
    /* What its server used, if that was for this program alone (private.h); else "". */
    char private_gpu[HED_SNAP_GPU];
};

#define HED_SNAP_PRIVATE_USUAL "auto" /* for servers that could not be asked */

/* Adds the images in a folder, and the notes, to a snapshot that a program has begun. */
int hed_snap_images_put(int fd, const struct hed_snap_reader *parent, int zstd, const char *folder,
                        const struct hed_snap_process *p, struct hed_why *why);

/* Writes them back into an empty folder. HED_ENOTFOUND: the snapshot has memory of devices only. */
int hed_snap_images_get(const struct hed_snap_reader *r, const char *folder,
                        struct hed_snap_process *out, struct hed_why *why);

/* Reads only what was noted. */
int hed_snap_images_notes(const struct hed_snap_reader *r, struct hed_snap_process *out,
                          struct hed_why *why);

/* The same, and CRIU's image of open files, which is the caller's to free. */
int hed_snap_images_peek(const struct hed_snap_reader *r, struct hed_snap_process *out,
                         void **files, size_t *size, struct hed_why *why);

/* The notes as text, and back. For tests, too. */
int hed_snap_notes_read(const char *text, size_t size, struct hed_snap_process *out,
                        struct hed_why *why);

/* Sends a signal to every process that has images in a folder. */
void hed_snap_images_kill(const char *folder, int signal_number);

/* ---- take.c ---------------------------------------------------------------------------------- */

struct hed_snap_take {
    pid_t pid;
    const char *dir;
    const char *name;  /* NULL: made from the program's name and the epoch */
    bool own_file;     /* the user named the file: HEAD is left alone, and there is no parent */
    bool running;      /* the program goes on afterwards; otherwise it is ended */
    int zstd;          /* level; 0: no packing */
    const char *label; /* may be NULL */
    uint32_t deadline_ms;
    hed_command_say *say;
};

struct hed_snap_taken {
    char path[PATH_MAX];
    uint64_t device_bytes;
    uint64_t written, same; /* bytes of device memory */
    uint64_t stall_ns;      /* how long the program stood still; only if it goes on */
    uint64_t total_ns;
    uint64_t file_bytes;
    uint8_t session[HED_SNAP_UUID];
    bool staged; /* the copy was made in device memory */
    bool stuck;  /* after a failure: the program has left its server, and could not go back */
};

/* Saves a program. After any failure it goes on, and nothing is left of the snapshot. */
int hed_snap_take(const struct hed_snap_take *t, struct hed_snap_taken *out, struct hed_why *why);

/* ---- bring.c --------------------------------------------------------------------------------- */

struct hed_snap_bring {
    const char *dir;
    const char *name;       /* NULL: the newest that can be used */
    const uint8_t *session; /* of this session; NULL: of any. Only without a name */
    const char *address;    /* of the server; "": the one that it had */
    bool verify;            /* compare the memory with the snapshot after it was filled */
    bool cut;               /* cut files that have grown, if the program will write that again */
    bool trust_user;        /* even if the program is another user's (trust.h) */
    bool glance;            /* only look at it: its payloads are not read */
    hed_command_say *say;   /* about snapshots that are passed over; may be NULL */
};

struct hed_snap_brought {
    pid_t pid; /* a child of ours */
    char name[HED_SNAP_FILE_NAME];
    char socket[HED_TALK_PATH_MAX];
    uint8_t session[HED_SNAP_UUID];
    uint64_t epoch;
    uint64_t created_ns; /* wall clock */
    uint64_t device_bytes;
    uint64_t process_ns, memory_ns;
    unsigned cut; /* files */
};

/* What a server for the program has to use, if the program had one of its own, which has ended with
 * it; "" if it used a server that others can use, too. */
int hed_snap_private_gpu(const char *dir, const char *name, char out[HED_SNAP_GPU],
                         struct hed_why *why);

/* Makes a program again, as a child of this process. After a failure there is none. */
int hed_snap_bring(const struct hed_snap_bring *b, struct hed_snap_brought *out,
                   struct hed_why *why);

/* ---- new_pids.c ------------------------------------------------------------------------------ */

/* Forks a child that is process 1 of a new namespace of processes. In the child: returns 0 and
 * *child is 0. In the parent, *child is its number. */
int hed_snap_new_pids(pid_t *child, struct hed_why *why);

/* In the parent: gives the socket of a program in that namespace, which `inner` names, the name
 * that belongs to its number here. The program is a child of `init`. out is its number here. */
int hed_snap_rename_socket(pid_t init, const char *inner, pid_t *out, struct hed_why *why);
