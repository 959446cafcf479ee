/* A folder on a disk that can fail: a table of file operations over memory, for tests of snapshots.
 *
 * What was written and not synced is lost in a crash, or survives, or survives in part: each sector
 * for itself. Changes of the folder that were not synced survive up to some point.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "move/file/files.h"

#define DISK_FOLDER 1000 /* its descriptor */

/* What goes wrong. Operations that change something are counted from 1. */
struct disk_faults {
    uint64_t crash_at;   /* the power fails in this operation; 0: never */
    uint64_t error_at;   /* this operation fails with `error` ... */
    int error;           /* (ENOSPC, EIO) */
    bool error_stays;    /* ... and so do all writes after it */
    unsigned interrupts; /* one of so many calls fails with EINTR; 0: none */
    unsigned shorts;     /* one of so many writes and reads is short; 0: none */
};

enum disk_loss {
    DISK_LOSE_ALL,  /* nothing survives that was not synced */
    DISK_LOSE_NONE, /* everything does */
    DISK_LOSE_SOME, /* chance decides */
};

struct disk;

struct disk *disk_create(void);
void disk_free(struct disk *d);

/* The table; valid as long as the disk. */
const struct hed_snap_files *disk_files(struct disk *d);

void disk_set_faults(struct disk *d, const struct disk_faults *f);
uint64_t disk_operations(const struct disk *d); /* since the faults were set */
bool disk_crashed(const struct disk *d);

/* What is found when the power is back. All descriptors are closed, nothing fails any more. */
void disk_restart(struct disk *d, enum disk_loss loss, unsigned seed);

/* The same for tests without a crash: files by name; NULL if there is none. */
unsigned char *disk_bytes(struct disk *d, const char *name, uint64_t *size);
void disk_cut(struct disk *d, const char *name, uint64_t size);
unsigned disk_open_files(const struct disk *d); /* descriptors that were not closed */
