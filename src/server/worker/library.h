/* A library that a client has opened, between the files that deal with it: code.c (the messages),
 * library.c (loading), describe.c (what is told of kernels), function.c, link.c.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/lock.h"
#include "gen/cuda_abi.h"
#include "server/worker/code.h"
#include "wire/code.h"

struct hed_images;
struct hed_required;
struct hed_worker;

/* What a driver was told about how to compile, and where it writes what it found: a driver that
 * compiles later goes on using all of it. */
struct hed_jit_room {
    CUjit_option options[HED_JIT_OPTIONS_MAX + 4];
    void *values[HED_JIT_OPTIONS_MAX + 4];
    unsigned count;
    char *error, *info; /* NULL: nobody wants them; HED_CODE_LOG_MAX / 2 bytes each */
};

struct hed_worker_library {
    CUlibrary real;
    bool links;        /* a linker, and then its result: only its bytes, in `records` */
    CUlinkState link;  /* NULL: it has come to its end */
    _Atomic bool busy; /* it is being loaded, or a step made, while others have the turn */
    void *image;
    uint64_t image_size;
    void *wrapper; /* what the driver got, if the image has parts (linked.h); else NULL */
    struct hed_jit_room *jit;
    uint32_t kernel_count;
    CUkernel *kernels;
    uint32_t *param_bytes; /* of each kernel; HED_PARAMS_UNKNOWN: not asked yet */
    struct hed_buf records;
    struct hed_required *required; /* NULL: not looked for yet */
};

#define HED_FUNCTION_CHUNK 1024u
#define HED_FUNCTION_CHUNKS 8192u /* as many functions as there are names */

/* A variable that the client has been told of. */
struct hed_worker_variable {
    uint64_t at, size;
    uint64_t context; /* the client's name of it: the variable goes with it */
    const struct hed_worker_library *library;
};

struct hed_worker_code {
    struct hed_images *images;
    struct hed_lock lock; /* rank HED_RANK_CODE; guards libraries */
    struct hed_worker_library *libraries[HED_CODES_MAX];
    /* What follows is of whoever has the turn. */
    struct hed_worker_function *functions[HED_FUNCTION_CHUNKS]; /* by the low half of the name */
    struct hed_worker_variable *variables;
    size_t variable_count;
};

/* ---- code.c ---------------------------------------------------------------------------------- */

/* By number; NULL: there is none. */
struct hed_worker_library *hed_worker_library(struct hed_worker_code *c, uint32_t number);

/* ---- library.c ------------------------------------------------------------------------------- */

/* The options behind a body, and room for logs. HED_EFORMAT: they are no options. */
int hed_jit_room_create(const struct hed_open_body *b, struct hed_jit_room **out);
void hed_jit_room_free(struct hed_jit_room *j); /* NULL is fine */
/* The log that travels: that of the errors, or, where there are none, the other. "" for none. */
const char *hed_jit_room_log(const struct hed_jit_room *j);

/* Loads lib->image with lib->jit; the body's context is current. */
CUresult hed_worker_library_load(struct hed_worker *w, struct hed_worker_library *lib,
                                 const struct hed_open_body *b);
void hed_worker_library_free(struct hed_worker *w, struct hed_worker_library *lib);

/* ---- link.c ---------------------------------------------------------------------------------- */

/* One step: the linker of a new library is made, an image added, the result put into lib->records.
 * FILE_NOT_FOUND: the image is to be sent first. *err: HED_EFORMAT for nonsense. */
CUresult hed_worker_link(struct hed_worker *w, struct hed_worker_library *lib,
                         const struct hed_open_body *b, int *err);

/* ---- describe.c ------------------------------------------------------------------------------ */

/* A kernel's record, behind what is in `out`. */
CUresult hed_worker_record(struct hed_worker *w, struct hed_worker_library *lib, uint32_t index,
                           int device, bool with_name, bool describe, struct hed_buf *out);
/* Bytes of a kernel's parameters. */
uint32_t hed_worker_param_bytes(struct hed_worker *w, struct hed_worker_library *lib,
                                uint32_t index);
