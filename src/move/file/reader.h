/* Reading snapshots. A reader trusts nothing: every number of the file is checked before it is
 * used, and what is not as the format says is refused with the reason.
 *
 * Opening reads and checks the superblock, the tables and the footer, and those of the homes: the
 * older files in which chunks of this snapshot are stored. Payloads are checked when they are read.
 *
 * After it was opened, any number of threads may use a reader at once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "move/file/format.h"
#include "move/file/hash.h"

struct hed_snap_files;
struct hed_snap_reader;
struct hed_why;

/* What a snapshot says about itself. */
struct hed_snap_about {
    uint8_t uuid[HED_SNAP_UUID];   /* zeros, for a writer: a new one is made */
    uint8_t parent[HED_SNAP_UUID]; /* a writer takes it from the parent, if it is given one */
    uint8_t session[HED_SNAP_UUID];
    uint64_t epoch;
    uint64_t created_ns; /* 0, for a writer: now */
    uint64_t heap_base, heap_size;
    uint32_t chunk_size; /* 0, for a writer: HED_SNAP_CHUNK */
    uint32_t pid;
    char backend[32], arch[32], device[96], address[256], program[256], label[128];
};

struct hed_snap_extent {
    enum hed_snap_kind kind;
    uint32_t device;
    uint64_t key;
    uint64_t context;
    uint64_t size;    /* bytes */
    uint32_t mode;    /* of a file */
    const char *name; /* never NULL in a reader's; a writer copies it and takes NULL for "" */
};

/* How much there is, and where. */
struct hed_snap_sizes {
    uint64_t file;      /* bytes of the file */
    uint64_t content;   /* bytes of all extents */
    uint64_t stored;    /* bytes of the blobs in the file */
    uint64_t elsewhere; /* bytes of chunks that lie in the homes */
    uint64_t zeros;     /* bytes of chunks that are all zeros */
    uint32_t extents, chunks, blobs, homes;
};

/* Opens the file of the home that has this UUID, for the reader to close; -1 if there is none. */
typedef int hed_snap_home_fn(void *arg, const uint8_t uuid[HED_SNAP_UUID]);

enum hed_snap_open_flag {
    /* A file that its first writer has finished as partial, or whose end a second writer did not
     * get to finish, is accepted: the last valid footer counts. */
    HED_SNAP_OPEN_PARTIAL = 1,
};

/* Opens a snapshot. fd stays the caller's and must stay open as long as the reader. home may be
 * NULL: the tables can be read, but no chunk that lies in a home. HED_EFORMAT, HED_ETRUNC: damaged;
 * HED_EVERSION, HED_ENOTSUP: this heddle cannot read it; HED_ESTATE: it is partial; HED_ENOTFOUND:
 * a home is missing.
 */
int hed_snap_reader_open(const struct hed_snap_files *files, int fd, unsigned flags,
                         hed_snap_home_fn *home, void *arg, struct hed_snap_reader **out,
                         struct hed_why *why);
void hed_snap_reader_free(struct hed_snap_reader *r); /* r may be NULL */

/* What the superblock of a file says, whatever the rest is like. */
int hed_snap_about_get(const struct hed_snap_files *files, int fd, struct hed_snap_about *out);

const struct hed_snap_about *hed_snap_reader_about(const struct hed_snap_reader *r);
void hed_snap_reader_sizes(const struct hed_snap_reader *r, struct hed_snap_sizes *out);
bool hed_snap_reader_is_partial(const struct hed_snap_reader *r);

/* The UUID of a home, by its number below sizes.homes. */
const uint8_t *hed_snap_reader_home(const struct hed_snap_reader *r, uint32_t number);

/* Extents are numbered from 0. NULL for a number that is too large. */
uint32_t hed_snap_extent_count(const struct hed_snap_reader *r);
const struct hed_snap_extent *hed_snap_extent_at(const struct hed_snap_reader *r, uint32_t id);

/* Finds the extent with the same kind, device, key, context and name. */
bool hed_snap_extent_find(const struct hed_snap_reader *r, const struct hed_snap_extent *like,
                          uint32_t *id);

/* How many chunks an extent of a size has, and how long one of them is. */
uint32_t hed_snap_chunk_count(const struct hed_snap_reader *r, uint32_t id);
size_t hed_snap_chunk_length(const struct hed_snap_reader *r, uint32_t id, uint32_t index);

enum hed_snap_where {
    HED_SNAP_IN_FILE,
    HED_SNAP_IN_HOME,
    HED_SNAP_IS_ZERO,
};

/* Of a chunk that exists; NULL otherwise. */
const struct hed_snap_hash *hed_snap_chunk_hash(const struct hed_snap_reader *r, uint32_t id,
                                                uint32_t index);
enum hed_snap_where hed_snap_chunk_where(const struct hed_snap_reader *r, uint32_t id,
                                         uint32_t index);

/* Reads one chunk into p, which has room for `size` bytes, exactly its length, and checks its hash.
 * HED_EFORMAT: the bytes are damaged. p may have been written to on failure. */
int hed_snap_chunk_get(const struct hed_snap_reader *r, uint32_t id, uint32_t index, void *p,
                       size_t size, struct hed_why *why);

/* The same, but the hash of bytes that were stored unpacked is not checked: for a caller that
 * checks it later, on the device. */
int hed_snap_chunk_read(const struct hed_snap_reader *r, uint32_t id, uint32_t index, void *p,
                        size_t size, struct hed_why *why);

/* What hed_snap_verify() found. */
struct hed_snap_verdict {
    uint64_t blobs; /* read and checked */
    uint64_t bytes; /* of them */
    uint64_t bad;   /* blobs that are damaged */
};

/* Reads every payload of the snapshot, also those in its homes, and checks every checksum with
 * `threads` threads (0: as many as processors, at most 8). 0: intact; HED_EFORMAT: damaged, and why
 * says which chunk is the first. out may be NULL. */
int hed_snap_verify(const struct hed_snap_reader *r, unsigned threads, struct hed_snap_verdict *out,
                    struct hed_why *why);

/* "device", "physical", "array", "variable", "file", "objects", "host"; "?" for other numbers. */
const char *hed_snap_kind_name(enum hed_snap_kind kind);

#define HED_SNAP_UUID_TEXT 37
const char *hed_snap_uuid_text(const uint8_t uuid[HED_SNAP_UUID], char out[HED_SNAP_UUID_TEXT]);
/* A random one. HED_EIO: the system has no random numbers. */
int hed_snap_uuid_make(uint8_t out[HED_SNAP_UUID]);
bool hed_snap_uuid_is_zero(const uint8_t uuid[HED_SNAP_UUID]);
