/* Between the files of code: image.c (what is sent), code.c (libraries), function.c (the rest). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "backends/remote/remote.h"
#include "base/arena.h"
#include "base/buf.h"
#include "fatbin/image.h"
#include "wire/code.h"

struct hed_why;

/* A library. Of a kernel that has not been described only the name is looked at; `described` is set
 * last, once, under the lock. */
struct hed_remote_library {
    struct hed_code code; /* first */
    struct hed_remote *remote;
    uint32_t number; /* on the wire */
    struct hed_code_kernel *kernels;
    _Atomic bool *described; /* by kernel */
    struct hed_arena arena;  /* names, parameters; guarded by the lock once it is open */
    struct hed_code *local;  /* of a worker that knows nothing of code: described here */
};

/* Addresses of the worker's that are reserved here, apart from each other. */
struct hed_remote_range {
    struct hed_remote_range *next;
    uint64_t at, end;
};

struct hed_remote_code {
    struct hed_lock lock; /* rank HED_RANK_IMAGES; guards all */
    uint64_t numbers[HED_CODES_MAX / 64];
    struct hed_remote_range *ranges;
};

static inline struct hed_remote_library *
hed_remote_library(struct hed_code *code)
{
    return (struct hed_remote_library *)code;
}

static inline int
hed_remote_ordinal(const struct hed_remote *r, const struct hed_device *dev)
{
    return r->devices[dev->ordinal].ordinal;
}

/* ---- code.c ---------------------------------------------------------------------------------- */

/* A message about a library, with `extra` bytes behind it. NULL: lost. */
struct hed_open_body *hed_remote_begin_open(struct hed_remote_library *c, enum hed_open_op op,
                                            uint64_t context, uint32_t extra,
                                            struct hed_remote_lane **lane);
/* Bulk of an answer into a buffer; NULL: nowhere. What is over its ceiling is dropped. */
int hed_remote_take_bulk(struct hed_remote_lane *lane, struct hed_buf *to, uint64_t n);

/* The record at p: its parts are all inside of n bytes. NULL: they are not. */
const struct hed_wire_kernel *hed_remote_record(const unsigned char *p, size_t n);
/* Fills in a kernel that has its name. HED_ENOMEM, HED_EFORMAT. */
int hed_remote_read_record(struct hed_arena *arena, const struct hed_wire_kernel *w,
                           struct hed_code_kernel *k);

/* ---- image.c --------------------------------------------------------------------------------- */

/* Any machine code of a fat binary, unpacked. HED_ENOTFOUND, HED_E... */
int hed_remote_any_cubin(struct hed_bytes fatbin, struct hed_arena *arena, struct hed_bytes *out);

/* What of an image a device needs, as bytes to be sent.
 *
 *   real: machine code that it runs; without any, PTX. Nothing is unpacked.
 *   else: all PTX, or that of its parts joined; without any, machine code, to be described.
 *
 * Where nothing fits, or what is there makes no sense, all of it: the worker answers as it should.
 * The bytes are the image's own, or `made`'s. 0, HED_ENOMEM, HED_ELIMIT. */
int hed_remote_pack(const struct hed_image *image, const struct hed_profile *profile, bool real,
                    struct hed_buf *made, struct hed_bytes *out);
