/* Memory with contents that must not be lost when a worker is left: what there is of it, and copies
 * between it and memory of this process.
 *
 *   mappings of device memory that something lives in      HED_SNAP_DEVICE    address
 *   physical memory (cuMemCreate)                          HED_SNAP_PHYSICAL  its number
 *   arrays, also levels of mipmaps                         HED_SNAP_ARRAY     handle
 *   variables of modules                                   HED_SNAP_VARIABLE  module, name
 *
 * Pinned and managed memory is this process's own (heap.c, mirror.c) and is not listed.
 *
 * Lists are made while the program is held, by the agent. A list made at one worker and a list
 * made at the next one have the same extents in the same order; addresses of variables may differ.
 */
#pragma once

#include "move/file/reader.h"
#include "remote/client.h"

struct hed_array;

#define HED_EXTENT_CHUNK HED_SNAP_CHUNK /* bytes of a chunk; the last of an extent may be shorter */

struct hed_remote_extent {
    struct hed_snap_extent about;
    struct hed_context *ctx; /* in which it is copied; alive while the program is held */
    uint64_t at;             /* address on the device; 0: an array */
    const struct hed_array *array;
    struct hed_physical *view; /* physical memory that was mapped for this list only */
    char *name;                /* owned; may be NULL */
};

struct hed_remote_extents {
    struct hed_remote *remote;
    struct hed_remote_extent *all; /* grouped by context */
    size_t count, room;
    uint64_t bytes;  /* of all */
    uint64_t chunks; /* of all */
};

/* Lists all memory. HED_ENOTSUP: something cannot be read, and the reason names it. */
int hed_remote_extents_list(struct hed_remote *r, struct hed_remote_extents *out,
                            struct hed_why *why);
void hed_remote_extents_free(struct hed_remote_extents *x);
/* Takes out device memory. */
void hed_remote_extents_rest(struct hed_remote_extents *x);
/* Does anything of the program live in a range of device memory? Any time. */
bool hed_remote_is_lived_in(struct hed_driver *d, uint64_t at, uint64_t size);

/* Bytes of device memory that would be saved, about: while the program runs. */
uint64_t hed_remote_extents_guess(struct hed_remote *r);

/* A piece of an extent. */
struct hed_remote_chunk {
    const struct hed_remote_extent *extent;
    uint64_t offset; /* in the extent */
    uint64_t from;   /* where its bytes are, if not there: an address on the device; else 0 */
    uint32_t size;
    uint32_t index; /* of the chunk in its extent */
    uint32_t id;    /* of the extent: in its list, then where the caller needs it */
    uint32_t tag;   /* the caller's */
};

/* Cuts all extents into chunks. `out` has room for x->chunks of them. */
void hed_remote_extents_cut(const struct hed_remote_extents *x, struct hed_remote_chunk *out);

/* Copies bytes of one extent to or from memory of this process, on a stream of its context. It may
 * only have begun when this returns. */
CUresult hed_remote_extent_copy(struct hed_remote *r, struct hed_stream *s,
                                const struct hed_remote_extent *e, uint64_t at, uint64_t offset,
                                uint64_t size, void *host, bool to_host);

/* ---- known.c --------------------------------------------------------------------------------- */

/* Addresses of variables at one worker, for as long as it is asked for them often. */
struct hed_remote_known;
struct hed_remote_known *hed_remote_known_create(void); /* NULL: there is no memory */
void hed_remote_known_free(struct hed_remote_known *k); /* k may be NULL */

/* Where the worker of r has a variable of a library that it knows as `there`: as known, or asks. */
CUresult hed_remote_variable_known(struct hed_remote *r, struct hed_context *c,
                                   struct hed_code *code, struct hed_code *there, const char *name,
                                   uint64_t *at, uint64_t *size);

/* ---- variables.c ----------------------------------------------------------------------------- */

/* Calls fn, unless that is NULL, with the name of every variable that the code of a library may
 * have. Some may not exist there. HED_ENOMEM, or what fn returns. */
int hed_remote_variable_names(struct hed_remote *r, struct hed_code *code,
                              int (*fn)(void *arg, const char *name), void *arg);
/* Are they known, so that the image need not be read? */
bool hed_remote_knows_names(const struct hed_remote *r, struct hed_code *code);
