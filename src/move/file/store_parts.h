/* The inside of a folder of snapshots, for the files of this room that change it. */
#pragma once

#include "move/file/files.h"
#include "move/file/store.h"

#define HED_SNAP_SUFFIX ".snap"
#define HED_SNAP_DRAFT ".tmp-" /* in the name of a file that is being written */
#define HED_SNAP_HEAD "HEAD"

/* Which file has which snapshot. */
struct hed_snap_known {
    char name[HED_SNAP_FILE_NAME];
    uint8_t uuid[HED_SNAP_UUID];
};

struct hed_snap_store {
    const struct hed_snap_files *files;
    int folder;                   /* the caller's */
    struct hed_snap_known *known; /* owned; as of the last look */
    size_t known_count, known_room;
};

/* Is it the name of a snapshot, or of an unfinished file? */
bool hed_snap_is_snapshot(const char *name);
bool hed_snap_is_draft(const char *name);

/* Looks at the folder again: which file has which snapshot. */
int hed_snap_store_look(struct hed_snap_store *s, struct hed_why *why);

/* hed_snap_home_fn over the store. */
int hed_snap_store_home(void *store, const uint8_t uuid[HED_SNAP_UUID]);

/* Opens the folder and locks it. */
int hed_snap_store_lock(struct hed_snap_store *s, enum hed_snap_lock_mode mode, int *fd,
                        struct hed_why *why);

/* Lets HEAD name a snapshot, durably. */
int hed_snap_store_set_head(struct hed_snap_store *s, const char *name,
                            const uint8_t uuid[HED_SNAP_UUID], struct hed_why *why);
