/* Contents of memory on their way: from a worker into a file or into memory of this process, and
 * back to another worker. All functions are for the agent, while the program is held, unless
 * they say otherwise.
 *
 *   capture.c   extents ──pump──> snapshot file
 *   host_copy.c     extents ──pump──> memory of this process ──pump──> extents
 *   fill.c      snapshot file ──pump──> extents
 *   hasher.c    the hash of chunks, on the device
 */
#pragma once

#include "move/file/writer.h"
#include "move/session/extents.h"
#include "move/session/pump.h"
#include "move/session/snap.h"

/* How much was moved. */
struct hed_remote_moved {
    _Atomic uint64_t bytes; /* copied */
    uint64_t same;          /* that did not have to be */
};

/* ---- hasher.c -------------------------------------------------------------------------------- */

struct hed_remote_hasher;

/* Loads the kernel and takes memory for up to that many chunks, on every device that has a context.
 * While the program runs, since it takes a while. HED_ENOTSUP: no device computes it. */
int hed_remote_hasher_open(struct hed_remote *r, size_t chunks, struct hed_remote_hasher **out,
                           struct hed_why *why);
void hed_remote_hasher_close(struct hed_remote_hasher *h); /* h may be NULL */

/* Is it a chunk that the device can hash? */
static inline bool
hed_remote_is_hashable(const struct hed_remote_chunk *c)
{
    return !c->extent->array && c->extent->about.kind != HED_SNAP_VARIABLE &&
           (c->extent->at + c->offset) % 16 == 0;
}

/* Hashes the chunks that can be, which are grouped by context, where they are now; out[i] is the
 * hash of chunks[i]. */
int hed_remote_hasher_run(struct hed_remote_hasher *h, const struct hed_remote_chunk *chunks,
                          size_t count, struct hed_snap_hash *out, struct hed_why *why);

/* The same in two steps, so that something else can be done meanwhile; for up to `room` chunks. */
size_t hed_remote_hasher_room(const struct hed_remote_hasher *h);
int hed_remote_hasher_begin(struct hed_remote_hasher *h, const struct hed_remote_chunk *chunks,
                            size_t count, struct hed_why *why);
int hed_remote_hasher_end(struct hed_remote_hasher *h, const struct hed_remote_chunk *chunks,
                          size_t count, struct hed_snap_hash *out, struct hed_why *why);

/* Is it the address of the hasher's own memory? */
bool hed_remote_hasher_owns(const struct hed_remote_hasher *h, uint64_t at);
/* Takes the hasher's own memory out of a list. */
void hed_remote_hasher_hide(const struct hed_remote_hasher *h, struct hed_remote_extents *x);
void hed_remote_extents_hide(struct hed_remote_extents *x, uint64_t at);

/* ---- capture.c ------------------------------------------------------------------------------- */

/* Writes all memory to a snapshot. With a hasher, chunks that the writer's parent has, and zeros,
 * are not copied. */
int hed_remote_capture(struct hed_remote *r, struct hed_remote_pump *p, struct hed_remote_hasher *h,
                       struct hed_snap_writer *w, struct hed_remote_moved *moved,
                       struct hed_why *why);

/* Begins all extents in a snapshot. ids[i] is the number of x->all[i]. */
int hed_remote_begin_extents(const struct hed_remote_extents *x, struct hed_snap_writer *w,
                             uint32_t *ids, struct hed_why *why);

/* Puts a chunk, whose hash may be known. */
int hed_remote_put_chunk(struct hed_snap_writer *w, const struct hed_remote_chunk *c,
                         const void *data, const struct hed_snap_hash *known, struct hed_why *why);

/* ---- host_copy.c ----------------------------------------------------------------------------- */

struct hed_remote_host_copy;

/* Gets memory of this process ready for that many bytes. While the program runs, since it takes a
 * while. HED_ENOMEM: the machine does not have that much. */
int hed_remote_host_copy_make(struct hed_remote_pump *p, uint64_t bytes,
                              struct hed_remote_host_copy **out, struct hed_why *why);
void hed_remote_host_copy_free(struct hed_remote_host_copy *h); /* h may be NULL */
uint64_t hed_remote_host_copy_bytes(const struct hed_remote_host_copy *h);

/* Takes all memory of the worker. rest: without device memory, which goes another way
 * (precopy.c). */
int hed_remote_host_copy_take(struct hed_remote_host_copy *h, struct hed_remote *r,
                              struct hed_remote_pump *p, bool rest, struct hed_remote_moved *moved,
                              struct hed_why *why);

/* ---- sources for hed_remote_arrive(): host_copy.c, fill.c ------------------------------------ */

struct hed_remote_staging;

struct hed_remote_fill {
    struct hed_remote_source source;          /* must come first */
    struct hed_remote_host_copy *host_copy;   /* from here, */
    struct hed_snap_reader *reader;           /* or from here */
    const struct hed_remote_staging *staging; /* memory of ours, which was not saved; may be NULL */
    struct hed_remote_pump *pump;             /* NULL: one is made */
    bool verify;                              /* hash the memory afterwards, and compare */
    struct hed_remote_moved moved;
};

void hed_remote_fill_init(struct hed_remote_fill *f, struct hed_remote_host_copy *host_copy,
                          struct hed_snap_reader *reader, bool verify);

/* Finds the bytes of a chunk of the list in a host copy; NULL: it is not there. */
const char *hed_remote_host_copy_find(const struct hed_remote_host_copy *h,
                                      const struct hed_remote_chunk *c);
