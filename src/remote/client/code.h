/* What the files about code share: image.c (what is sent), code.c (libraries), function.c (kernels,
 * functions, variables). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "driver/driver.h"
#include "kernel/fatbin.h"
#include "remote/client/remote.h"
#include "remote/wire/code.h"

struct hed_why;

/* A library. Of a kernel that has not been described, only the name may be used; `described` is set
 * last, once, under the lock. */
struct hed_remote_library {
    struct hed_code code; /* must come first */
    struct hed_remote *remote;
    uint32_t number; /* its number on the wire */
    struct hed_code_kernel *kernels;
    _Atomic bool *described; /* one per kernel */
    struct hed_arena arena;  /* names, parameters; guarded by the lock once it is open */
    struct hed_code *local;  /* if the worker cannot describe code (null): described here */
    _Atomic int atomics;     /* whether it has system-wide atomics, if known: atomics.c */

    uint64_t serial; /* no other library of this process has had it */
    unsigned pins;   /* it is not closed while there are any; guarded by the lock */

    /* For another worker: what it was opened from, and how. */
    struct hed_remote_library *next; /* in code->libraries, by number; guarded by the lock */
    struct hed_device *device;
    uint64_t context; /* that was current, or 0 */
    struct hed_image image;
    void *copy;             /* of the image, owned; NULL if the program keeps it */
    struct hed_jit_how how; /* without a log */
    int8_t allocates; /* whether kernels can allocate device memory: 1 yes, -1 no, 0 not known */
    uint32_t *order;  /* where the worker has each kernel; NULL: at the same position; owned */
    uint32_t *before; /* the same of the worker before, until the new one is accepted; owned */
    bool reopened;    /* at a worker that has not been accepted yet */
    struct hed_remote_names *names;         /* of its variables; owned; the mover's */
    struct hed_remote_early_library *early; /* at the next worker; the mover's */
};

/* What a worker was told of a function, beside its name. */
#define HED_REMOTE_SETTINGS 8
struct hed_remote_told {
    int settings[HED_REMOTE_SETTINGS];
    bool loaded;
};

/* Ranges of the worker's addresses that are reserved here, with gaps between them. */
struct hed_remote_range {
    struct hed_remote_range *next;
    uint64_t at, end;
};

struct hed_remote_code {
    struct hed_lock lock;    /* rank HED_RANK_IMAGES; guards all */
    pthread_cond_t unpinned; /* signals that a library has lost a pin */
    uint64_t serials;        /* the last one given */
    uint64_t numbers[HED_CODES_MAX / 64];
    struct hed_remote_range *ranges;
    struct hed_remote_library *libraries;
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
    struct hed_buf contents;
    const struct hed_jit_how *how;
    uint32_t kernels;
    const struct hed_linker_input *input; /* of a linker */
    bool last;
    uint64_t context; /* in which it is opened, or 0 */
};

/* ---- code.c ---------------------------------------------------------------------------------- */

bool hed_remote_take_number(struct hed_remote *r, uint32_t *out);
void hed_remote_give_number(struct hed_remote *r, uint32_t number);

/* Writes the options, and whether a log is wanted, into a body that has room for them. Returns its
 * size. */
uint32_t hed_remote_put_options(struct hed_open_body *b, const struct hed_jit_how *how);
/* Reads the answer to LOAD, MORE and LINK: the log goes to how->log, contents to o->contents. */
CUresult hed_remote_open_answer(struct hed_remote_opening *o, struct hed_remote_channel *channel,
                                struct hed_open_answer *a);
/* Fetches the rest of the contents, `all` bytes in total. */
CUresult hed_remote_open_more(struct hed_remote_opening *o, uint64_t all);
/* Calls fn, for which the worker needs o->bytes; sends them if it does not have them. */
CUresult hed_remote_with_image(struct hed_remote_opening *o,
                               CUresult (*fn)(struct hed_remote_opening *o));
void hed_remote_close_there(struct hed_remote_library *c);

/* Begins a message about a library, with `extra` bytes behind it. NULL if the session is lost. */
struct hed_open_body *hed_remote_begin_open(struct hed_remote_library *c, enum hed_open_op op,
                                            uint64_t context, uint32_t extra,
                                            struct hed_remote_channel **channel);
/* Reads bulk of an answer into a buffer; `to` may be NULL. Bytes above the buffer's ceiling are
 * dropped. */
int hed_remote_take_bulk(struct hed_remote_channel *channel, struct hed_buf *to, uint64_t n);

/* The description of a kernel at p, if all of its parts are within n bytes; else NULL. */
const struct hed_wire_kernel *hed_remote_description(const unsigned char *p, size_t n);
/* Fills in a kernel that has its name already. HED_ENOMEM, HED_EFORMAT. */
int hed_remote_read_record(struct hed_arena *arena, const struct hed_wire_kernel *w,
                           struct hed_code_kernel *k);

/* Opens o->code, which has its number, from an image. */
CUresult hed_remote_open_there(struct hed_remote_opening *o, const struct hed_image *image,
                               struct hed_why *why);
void hed_remote_library_free(struct hed_remote_library *c);

/* ---- function.c ------------------------------------------------------------------------------ */

/* Tells a worker, which has the library under this number and the kernel at this index, about a
 * function; `told` is what it knows then. retell: tells it what has changed since, and to load the
 * function if the program's worker has. forget: the function is gone. */
void hed_remote_function_tell(struct hed_remote *r, struct hed_function *f, uint32_t number,
                              uint32_t index, struct hed_remote_told *told);
void hed_remote_function_retell(struct hed_remote *r, struct hed_function *f,
                                struct hed_remote_told *told);
void hed_remote_function_forget(struct hed_remote *r, uint64_t name);

/* Where the worker has a kernel. */
static inline uint32_t
hed_remote_kernel_there(const struct hed_remote_library *c, uint32_t index)
{
    return c->order ? c->order[index] : index;
}

/* The device as hed_remote_pack() wants to know it: where code is chosen for the worker's device,
 * which may not be the one that the program was told about. */
struct hed_profile;
void hed_remote_profile_there(const struct hed_remote *r, const struct hed_device *dev,
                              struct hed_profile *out);

/* ---- describe.c ------------------------------------------------------------------------------ */

/* Describes here what a worker without a device cannot describe, from machine code or PTX: any of a
 * fat binary, or the PTX of the parts that it was linked from, if the device accepts it. An image
 * that cannot be read becomes a library without kernels. 0 or HED_ENOMEM. */
int hed_remote_describe_here(struct hed_remote_library *c, const struct hed_image *image,
                             const struct hed_profile *profile);

/* ---- image.c --------------------------------------------------------------------------------- */

/* Unpacks any machine code, or any PTX, of a fat binary. HED_ENOTFOUND, HED_E... */
int hed_remote_any(struct hed_bytes fatbin, enum hed_fatbin_kind kind, struct hed_arena *arena,
                   struct hed_bytes *out);

/* Selects the parts of an image that a device needs, as bytes to be sent.
 *
 *   real: machine code that it runs; without any, PTX; without any, the parts that it was linked
 *         from (struct hed_wire_linked). Nothing is unpacked.
 *   else: all PTX, or that of its parts; without any, machine code, to be described.
 *
 * If nothing fits, or the image makes no sense, all of it is sent: the worker then answers with the
 * right error. The bytes are those of the image, or of `made`. 0, HED_ENOMEM, HED_ELIMIT.
 */
int hed_remote_pack(const struct hed_image *image, const struct hed_profile *profile, bool real,
                    struct hed_buf *made, struct hed_bytes *out);
