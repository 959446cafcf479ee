/* Between the files of code: image.c (what is sent), code.c (libraries), function.c (the rest). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "backends/remote/remote.h"
#include "base/arena.h"
#include "base/buf.h"
#include "driver/module/jit.h"
#include "fatbin/fatbin.h"
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
    _Atomic int atomics;     /* atomics.c's: what is known of system-wide ones */
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

/* A library, or a linker, that is being opened. */
struct hed_remote_opening {
    struct hed_remote *remote;
    struct hed_remote_library *code;
    struct hed_device *device;
    struct hed_bytes bytes;
    uint8_t hash[HED_HASH_SIZE];
    struct hed_buf records;
    const struct hed_jit_how *how;
    uint32_t kernels;
    const struct hed_linker_input *input; /* of a linker */
    bool last;
};

/* ---- code.c ---------------------------------------------------------------------------------- */

bool hed_remote_take_number(struct hed_remote *r, uint32_t *out);
void hed_remote_give_number(struct hed_remote *r, uint32_t number);

/* Puts the options and the wish for a log into a body that has room for them: its size. */
uint32_t hed_remote_put_options(struct hed_open_body *b, const struct hed_jit_how *how);
/* The answer to LOAD, MORE and LINK: the log to how->log, records to o->records. */
CUresult hed_remote_open_answer(struct hed_remote_opening *o, struct hed_remote_channel *channel,
                                struct hed_open_answer *a);
/* The records up to `all` bytes. */
CUresult hed_remote_open_more(struct hed_remote_opening *o, uint64_t all);
/* Does something for which the worker needs o->bytes: sends them if it has not got them. */
CUresult hed_remote_with_image(struct hed_remote_opening *o,
                               CUresult (*fn)(struct hed_remote_opening *o));
void hed_remote_close_there(struct hed_remote_library *c);

/* A message about a library, with `extra` bytes behind it. NULL: lost. */
struct hed_open_body *hed_remote_begin_open(struct hed_remote_library *c, enum hed_open_op op,
                                            uint64_t context, uint32_t extra,
                                            struct hed_remote_channel **channel);
/* Bulk of an answer into a buffer; NULL: nowhere. What is over its ceiling is dropped. */
int hed_remote_take_bulk(struct hed_remote_channel *channel, struct hed_buf *to, uint64_t n);

/* The record at p: its parts are all inside of n bytes. NULL: they are not. */
const struct hed_wire_kernel *hed_remote_record(const unsigned char *p, size_t n);
/* Fills in a kernel that has its name. HED_ENOMEM, HED_EFORMAT. */
int hed_remote_read_record(struct hed_arena *arena, const struct hed_wire_kernel *w,
                           struct hed_code_kernel *k);

/* ---- describe.c ------------------------------------------------------------------------------ */

/* What a worker without a device knows nothing of is read here, out of machine code or PTX: any of
 * a fat binary, or the PTX of the parts that it was linked of, as far as the device takes it. What
 * cannot be read is a library without kernels. 0 or HED_ENOMEM. */
int hed_remote_describe_here(struct hed_remote_library *c, const struct hed_image *image,
                             const struct hed_profile *profile);

/* ---- image.c --------------------------------------------------------------------------------- */

/* Any machine code of a fat binary, or any PTX, unpacked. HED_ENOTFOUND, HED_E... */
int hed_remote_any(struct hed_bytes fatbin, enum hed_fatbin_kind kind, struct hed_arena *arena,
                   struct hed_bytes *out);

/* What of an image a device needs, as bytes to be sent.
 *
 *   real: machine code that it runs; without any, PTX; without any, the parts that it was linked
 *         of (struct hed_wire_linked). Nothing is unpacked.
 *   else: all PTX, or that of its parts; without any, machine code, to be described.
 *
 * Where nothing fits, or what is there makes no sense, all of it: the worker answers as it should.
 * The bytes are the image's own, or `made`'s. 0, HED_ENOMEM, HED_ELIMIT. */
int hed_remote_pack(const struct hed_image *image, const struct hed_profile *profile, bool real,
                    struct hed_buf *made, struct hed_bytes *out);
