/* The inside of a writer, for writer.c (chunks, the end) and begin.c (the beginning, extents). */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/lock.h"
#include "move/file/files.h"
#include "move/file/index.h"
#include "move/file/writer.h"

/* Home of a chunk that was not put yet; never in a file. */
#define HED_SNAP_NOT_PUT (UINT32_MAX - 1)

struct hed_snap_packer;

struct hed_snap_writer {
    const struct hed_snap_files *files;
    int fd; /* the caller's */
    struct hed_snap_how how;
    struct hed_snap_super super; /* constant after create */
    struct hed_snap_about about; /* the same */
    struct hed_snap_hash zeros;  /* of a whole chunk of zeros; the same */
    uint64_t start;              /* bytes of a file that is continued; 0: a new one */

    struct hed_lock lock; /* guards all below while chunks are put */
    int err;              /* sticky */
    struct hed_why why;   /* its reason */
    bool finished;
    uint64_t end;     /* where the next payload goes */
    uint64_t stored;  /* bytes of all blobs */
    uint64_t content; /* bytes of all extents */
    uint32_t needs;
    uint32_t home_count, blob_count, extent_count, chunk_count;
    size_t blob_room, extent_room, chunk_room; /* rows that fit */
    struct hed_snap_home_row homes[HED_SNAP_HOMES_MAX];
    struct hed_snap_blob_row *blobs;     /* owned, as are the next four */
    struct hed_snap_extent_row *extents; /* only extent_begin changes it, without the lock */
    struct hed_snap_chunk_row *chunks;
    struct hed_buf names;
    uint32_t *lookup;   /* extents by what they are: number + 1, 0: free */
    size_t lookup_room; /* a power of two, or 0 */
    struct hed_snap_index index;
    struct hed_snap_packer *packers; /* that no thread uses now */
};

/* Sets the sticky error, unless there is one, and returns it. The lock is held, or no other thread
 * uses the writer. */
int hed_snap_writer_fail(struct hed_snap_writer *w, int err, const char *what);

/* Makes room for `more` rows after `count`. */
int hed_snap_grow(void **rows, size_t *room, size_t count, size_t more, size_t row);
