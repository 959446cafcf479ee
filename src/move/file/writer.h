/* Writing snapshots. The writer appends payloads as chunks are put, and at the end the tables and
 * the footer. A chunk that is all zeros, that the parent has, or that was put before, is not
 * stored.
 *
 *     create | append  >  extent_begin, chunk_put, chunk_same ...  >  finish  >  free
 *
 * Threads: chunk_put and chunk_same may be called by several threads at once; hashing, packing and
 * writing then happen in parallel. The other functions are for one thread, while no other uses the
 * writer.
 *
 * Errors are sticky: after a failed write every call returns the same error, and finish says why.
 * A writer that was not finished leaves no valid footer behind. If it had continued a file, the
 * file is cut to what it was (hed_snap_writer_free).
 *
 * The file becomes durable in hed_snap_writer_finish(), and visible when its caller renames it
 * (store.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "move/file/reader.h"

struct hed_snap_writer;

struct hed_snap_how {
    int zstd;     /* level; 0: no packing */
    bool partial; /* another writer will continue the file; until then it is not a snapshot */
};

/* Can this heddle pack and unpack zstd? */
bool hed_snap_has_zstd(void);

/* Begins a new snapshot in an empty file. fd stays the caller's. Whatever chunk the parent has need
 * not be stored again; parent may be NULL, may have been opened without its homes, and is not
 * needed after the call. how may be NULL. HED_ELIMIT: the parent already depends on
 * HED_SNAP_HOMES_MAX files, compact it first; HED_ENOTSUP: no zstd. */
int hed_snap_writer_create(const struct hed_snap_files *files, int fd,
                           const struct hed_snap_about *about, const struct hed_snap_reader *parent,
                           const struct hed_snap_how *how, struct hed_snap_writer **out,
                           struct hed_why *why);

/* Continues a file that hed_snap_writer_finish() has ended: everything in it stays, more extents
 * are added. fd must be open for reading and writing. */
int hed_snap_writer_append(const struct hed_snap_files *files, int fd,
                           const struct hed_snap_reader *parent, const struct hed_snap_how *how,
                           struct hed_snap_writer **out, struct hed_why *why);

/* Adds an extent, and says its number. HED_EEXIST: there is one of the same kind, device, key,
 * context and name; HED_EINVAL: a name that cannot be. */
int hed_snap_extent_begin(struct hed_snap_writer *w, const struct hed_snap_extent *e, uint32_t *id);

/* Puts a chunk. size is exactly its length. hash may be NULL: it is computed here; otherwise it is
 * believed. HED_EEXIST: it was put before. data is not needed after the call. */
int hed_snap_chunk_put(struct hed_snap_writer *w, uint32_t id, uint32_t index, const void *data,
                       size_t size, const struct hed_snap_hash *hash);

/* Puts a chunk that the parent, or this file, has: with this hash, anywhere. HED_ENOTFOUND if
 * neither has: the caller must put the bytes. That is not sticky. */
int hed_snap_chunk_same(struct hed_snap_writer *w, uint32_t id, uint32_t index,
                        const struct hed_snap_hash *hash);

/* Would hed_snap_chunk_same() find a chunk of this length and hash? */
bool hed_snap_writer_has(struct hed_snap_writer *w, const struct hed_snap_hash *hash, size_t size);

/* Puts all of an extent from memory, or from a file at its beginning. */
int hed_snap_extent_put(struct hed_snap_writer *w, const struct hed_snap_extent *e,
                        const void *data);
int hed_snap_extent_put_file(struct hed_snap_writer *w, const struct hed_snap_extent *e, int from);

/* Ends the file: tables, fdatasync, footer, fdatasync. HED_ESTATE: a chunk was not put. Afterwards
 * the writer can only be freed. */
int hed_snap_writer_finish(struct hed_snap_writer *w, struct hed_why *why);

/* Why the writer has failed; "" if it has not. For callers that give up before they finish. */
const char *hed_snap_writer_reason(const struct hed_snap_writer *w);

/* w may be NULL. */
void hed_snap_writer_free(struct hed_snap_writer *w);

/* Of the snapshot being written. */
const struct hed_snap_about *hed_snap_writer_about(const struct hed_snap_writer *w);
uint64_t hed_snap_writer_bytes(const struct hed_snap_writer *w); /* of the file so far */
