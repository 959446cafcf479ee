/* The inside of a reader, for the files of this room that check, verify and continue snapshots. */
#pragma once

#include "move/file/files.h"
#include "move/file/format.h"
#include "move/file/reader.h"

struct hed_snap_home {
    int fd; /* owned; -1: not opened */
    struct hed_snap_reader *reader;
};

struct hed_snap_reader {
    const struct hed_snap_files *files;
    int fd;              /* the caller's */
    uint64_t file_bytes; /* up to the end of the footer */
    struct hed_snap_about about;
    struct hed_snap_super super;
    struct hed_snap_footer footer;
    unsigned char *tables; /* owned; all that follow point into it */
    const struct hed_snap_home_row *home_rows;
    const struct hed_snap_blob_row *blobs;
    const struct hed_snap_extent_row *extent_rows;
    const struct hed_snap_chunk_row *chunks;
    const char *names;
    struct hed_snap_extent *extents; /* owned; footer.extents of them */
    uint32_t *order;                 /* owned; their numbers, sorted by what they are */
    struct hed_snap_home *homes;     /* owned; footer.homes of them, or NULL */
};

/* Bytes of all tables that a footer describes. */
uint64_t hed_snap_tables_bytes(const struct hed_snap_footer *f);

/* The digest of a file: superblock, tables and what fills up their last block, and the footer
 * before its digest. */
void hed_snap_digest(const struct hed_snap_super *s, const void *tables, uint64_t bytes,
                     const struct hed_snap_footer *f, uint8_t out[HED_SNAP_DIGEST]);

/* Points a reader into its tables. */
void hed_snap_lay_out(struct hed_snap_reader *r);

/* Checks what the tables say, homes not included. They have been read, and the digest is right. */
int hed_snap_check_tables(struct hed_snap_reader *r, struct hed_why *why);

/* May an extent have this kind and name? */
int hed_snap_check_name(uint32_t kind, const char *name, size_t bytes, struct hed_why *why);

/* Orders extents by kind, device, key, context and name. */
int hed_snap_extent_compare(const struct hed_snap_extent *a, const struct hed_snap_extent *b);

/* The length of a chunk of an extent. */
uint32_t hed_snap_length(const struct hed_snap_extent *e, uint32_t chunk_size, uint64_t index);

/* Reads a blob of the reader's own file into p. The hash is checked if `check` says so, or if the
 * bytes were packed. */
int hed_snap_blob_get(const struct hed_snap_reader *r, uint32_t blob, void *p, bool check,
                      struct hed_why *why);

/* For messages: "device 0x7f0000000000". */
const char *hed_snap_extent_text(const struct hed_snap_extent *e, char *out, size_t size);
