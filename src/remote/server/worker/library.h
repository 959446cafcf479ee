/* A library that a client has opened. Shared by code.c (the messages), library.c (loading),
 * describe.c (descriptions of kernels), function.c and link.c.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/lock.h"
#include "gen/cuda_abi.h"
#include "remote/server/worker/code.h"
#include "remote/server/worker/worker.h"
#include "remote/wire/code.h"

struct hed_images;
struct hed_required;
struct hed_worker;

/* The options of a compilation, and the logs that the driver writes. A driver that compiles later
 * goes on using all of it. */
struct hed_jit_room {
    CUjit_option options[HED_JIT_OPTIONS_MAX + 4];
    void *values[HED_JIT_OPTIONS_MAX + 4];
    unsigned count;
    char *error, *info; /* NULL if the client does not want them; HED_CODE_LOG_MAX / 2 bytes each */
};

struct hed_worker_library {
    CUlibrary real;
    bool links;        /* it is a linker; later its result, whose bytes are in `contents` */
    CUlinkState link;  /* NULL when linking has ended */
    _Atomic bool busy; /* being loaded or linked, while later tickets proceed */
    void *image;
    uint64_t image_size;
    void *wrapper; /* what the driver got, if the image has parts (linked.h); else NULL */
    struct hed_jit_room *jit;
    uint32_t kernel_count;
    CUkernel *kernels;
    uint32_t *param_bytes; /* of each kernel; HED_PARAMS_UNKNOWN if not yet asked for */
    struct hed_buf contents;
    struct hed_required *required; /* NULL if not yet looked for */
};

#define HED_FUNCTION_CHUNK 1024u
#define HED_FUNCTION_CHUNKS (HED_NAME_SLOTS / HED_FUNCTION_CHUNK)

/* A variable whose address the client was told. */
struct hed_worker_variable {
    uint64_t at, size;
    uint64_t context; /* the client's name of the context that the variable belongs to */
    const struct hed_worker_library *library;
};

struct hed_worker_code {
    struct hed_images *images;
    struct hed_lock lock; /* rank HED_RANK_CODE; guards libraries */
    struct hed_worker_library *libraries[HED_CODES_MAX];
    /* Only the thread that holds the current ticket uses the following. */
    struct hed_worker_function *functions[HED_FUNCTION_CHUNKS]; /* by hed_name_slot() */
    struct hed_worker_variable *variables;
    size_t variable_count;
};

/* ---- code.c ---------------------------------------------------------------------------------- */

/* Finds a library by its number; NULL if there is none. */
struct hed_worker_library *hed_worker_library(struct hed_worker_code *c, uint32_t number);

/* ---- library.c ------------------------------------------------------------------------------- */

/* Reads the options after a body and allocates the logs. HED_EFORMAT if they are not options. */
int hed_jit_room_create(const struct hed_open_body *b, struct hed_jit_room **out);
void hed_jit_room_free(struct hed_jit_room *j); /* NULL is allowed */
/* The log to send: that of the errors or, without errors, the other one. "" for none. */
const char *hed_jit_room_log(const struct hed_jit_room *j);

/* Loads lib->image with the options in lib->jit. The body's context must be current. */
CUresult hed_worker_library_load(struct hed_worker *w, struct hed_worker_library *lib,
                                 const struct hed_open_body *b);
void hed_worker_library_free(struct hed_worker *w, struct hed_worker_library *lib);

/* ---- link.c ---------------------------------------------------------------------------------- */

/* Does one step: creates the linker of a new library, adds an image, or puts the result into
 * lib->contents. FILE_NOT_FOUND if the client has to send the image first. *err is HED_EFORMAT if
 * the request makes no sense. */
CUresult hed_worker_link(struct hed_worker *w, struct hed_worker_library *lib,
                         const struct hed_open_body *b, int *err);

/* ---- describe.c ------------------------------------------------------------------------------ */

/* Appends the description of a kernel to `out`. */
CUresult hed_worker_describe(struct hed_worker *w, struct hed_worker_library *lib, uint32_t index,
                             int device, bool with_name, bool describe, struct hed_buf *out);
/* The size of a kernel's parameters in bytes. */
uint32_t hed_worker_param_bytes(struct hed_worker *w, struct hed_worker_library *lib,
                                uint32_t index);
