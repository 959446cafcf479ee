/* A folder of snapshots.
 *
 *     NAME.snap           a snapshot; its name is the user's, or EPOCH-UUID
 *     NAME.snap.tmp-UUID  one that is being written
 *     HEAD                the name of the one that was published last
 *
 * Processes that write hold a shared lock (flock) on the folder, those that remove hold it alone.
 *
 * Invariants:
 * 1. Whatever is called *.snap was complete and durable when it got that name.
 * 2. Nothing is removed while a kept snapshot has it as a home, or while a process writes.
 * 3. HEAD names a snapshot that was durable before HEAD was. Old snapshots are removed only after
 *    HEAD is durable. HEAD is a hint: readers look at the snapshots themselves.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "move/file/reader.h"

struct hed_snap_store;

#define HED_SNAP_FILE_NAME 256    /* bytes of a name, the NUL included */
#define HED_SNAP_STORE_MAX 65536u /* snapshots in one folder */

/* One snapshot of a folder. */
struct hed_snap_entry {
    char name[HED_SNAP_FILE_NAME];
    int err; /* 0: it can be used, all homes included; otherwise what hed_snap_reader_open() said */
    bool known;     /* the superblock is intact: about is valid */
    bool whole;     /* the tables are intact, too: sizes and homes are valid */
    bool head;      /* HEAD names it */
    uint32_t users; /* usable snapshots that have it as a home */
    char why[256];
    struct hed_snap_about about;
    struct hed_snap_sizes sizes;
    uint8_t (*homes)[HED_SNAP_UUID]; /* sizes.homes of them */
};

struct hed_snap_list {
    struct hed_snap_entry *entries; /* the newest first: by epoch, then by time */
    size_t count;
    size_t unfinished;             /* files of writers, dead or alive */
    char head[HED_SNAP_FILE_NAME]; /* what HEAD says; "" if there is none */
};

/* folder is open for reading and stays the caller's. */
int hed_snap_store_open(const struct hed_snap_files *files, int folder, struct hed_snap_store **out,
                        struct hed_why *why);
void hed_snap_store_close(struct hed_snap_store *s); /* s may be NULL */

/* All snapshots, the damaged ones included. */
int hed_snap_store_list(struct hed_snap_store *s, struct hed_snap_list *out, struct hed_why *why);
void hed_snap_list_fini(struct hed_snap_list *l);

/* Opens a snapshot by its name, with its homes. Both are the caller's to free: first the reader. */
int hed_snap_store_get(struct hed_snap_store *s, const char *name, unsigned flags, int *fd,
                       struct hed_snap_reader **out, struct hed_why *why);

/* Opens the newest snapshot that can be used, of a session (NULL: of any), older than `before`
 * (UINT64_MAX: all). With `deep`, all payloads are read and checked. name takes its name; why says
 * on success which newer ones were passed over, or is empty. HED_ENOTFOUND: there is none. */
int hed_snap_store_newest(struct hed_snap_store *s, const uint8_t *session, uint64_t before,
                          bool deep, int *fd, struct hed_snap_reader **out,
                          char name[HED_SNAP_FILE_NAME], struct hed_why *why);

/* The epoch for the next snapshot. */
int hed_snap_store_epoch(struct hed_snap_store *s, uint64_t *out, struct hed_why *why);

/* The usual name of a snapshot: 000007-1a2b3c4d.snap. */
void hed_snap_store_name(uint64_t epoch, const uint8_t uuid[HED_SNAP_UUID],
                         char out[HED_SNAP_FILE_NAME]);

/* A snapshot being written: a file without a name that counts. */
struct hed_snap_draft {
    int fd;   /* read and write; closed by publish and drop */
    int lock; /* the folder, locked: keeps others from removing the parent */
    char name[HED_SNAP_FILE_NAME];
    char file[HED_SNAP_FILE_NAME + 48]; /* what it is called meanwhile */
};

/* Creates the file. name without ".snap" gets it. uuid is the one of the snapshot. HED_EEXIST:
 * there is a snapshot of that name; HED_ESTATE: another process is removing snapshots. */
int hed_snap_store_begin(struct hed_snap_store *s, const char *name,
                         const uint8_t uuid[HED_SNAP_UUID], struct hed_snap_draft *out,
                         struct hed_why *why);

/* Makes a finished file a snapshot: checks its footer, renames it, then HEAD. After a failure
 * before the rename is durable, the file may have either name. The draft is used up in any case.
 * `head` is false for a file that the user keeps among other things: HEAD is left alone. */
int hed_snap_store_publish(struct hed_snap_store *s, struct hed_snap_draft *d, bool head,
                           struct hed_why *why);

/* Removes the file. */
void hed_snap_store_drop(struct hed_snap_store *s, struct hed_snap_draft *d);

/* What prune has done, or with `dry` would do. */
struct hed_snap_pruned {
    uint32_t removed, kept;
    uint32_t needed;     /* of the kept: only because others need them */
    uint32_t unfinished; /* files of dead writers, removed */
    uint64_t bytes;      /* of what was removed */
};

/* Removes all but the newest `keep` (at least 1) usable snapshots of each session and what they
 * need. Damaged snapshots are removed only with `damaged`, and if no kept one needs them. `gone`,
 * if not NULL, is called with each name. HED_ESTATE: a process is writing. */
int hed_snap_store_prune(struct hed_snap_store *s, uint32_t keep, bool damaged, bool dry,
                         void (*gone)(void *arg, const char *name), void *arg,
                         struct hed_snap_pruned *out, struct hed_why *why);

/* Writes a snapshot again as `name` (NULL: made from epoch and UUID), without homes, as a new
 * snapshot of the same epoch; the old one stays. zstd: the level, 0 for no packing. */
int hed_snap_store_compact(struct hed_snap_store *s, const char *from, const char *name, int zstd,
                           char out_name[HED_SNAP_FILE_NAME], struct hed_why *why);
