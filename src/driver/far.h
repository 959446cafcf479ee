/* The far side: a machine that has queues, code and objects of its own (the backend `remote`).
 *
 * The soft driver stays what it is: handles, addresses, rules and answers. But where a machine has
 * a `far`, work is not run here: it is handed over in program order and runs there; streams,
 * events, code, arrays and executable graphs have a twin there, named by the handle they have here.
 *
 *   hed_submit ── captured? ──> node of a graph, as ever
 *            \── far? ───────> far->put(): encoded and sent, nothing is waited for
 *            \── else ───────> queue, runner (queue.c)
 *
 * Rules:
 * 1. Operations without a result cannot fail at once: what goes wrong is told later, by
 *    hed_context_fail().
 * 2. They may be called with the lock of the object they are about (stream, event), so that the
 *    order there is the order here; with no other lock. They never call back into the driver's
 *    calls.
 * 3. Points (driver/stream/stream.h) of far streams: `submitted` counts as ever; `done` is what is
 *    known to be done, and may lag.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/machine.h"
#include "gen/cuda_abi.h"
#include "gen/cuda_calls.h"

struct hed_array;
struct hed_context;
struct hed_copy;
struct hed_device;
struct hed_event;
struct hed_exec;
struct hed_function;
struct hed_graph_exec;
struct hed_image;
struct hed_jit_how;
struct hed_kernel_work;
struct hed_mipmap;
struct hed_stream;
struct hed_work;

struct hed_far_link;
struct hed_far_input { /* of a linker */
    CUjitInputType type;
    const void *data;
    size_t size;
    const char *name; /* for its log; NULL: none */
};

struct hed_far {
    /* Is this host memory that the far side has at the same address? */
    bool (*shares)(void *m, uint64_t at, uint64_t size);

    /* ---- code (image.c, module.c, function.c) ---- */

    /* Loads an image: the code's kernels have names, positions and, once described, the rest.
     * Variables are found by name only (var_count is 0). */
    CUresult (*open)(void *m, struct hed_device *dev, const struct hed_image *image,
                     struct hed_code **out, const struct hed_jit_how *how, struct hed_why *why);
    /* A linker, as cuLinkCreate makes it; an input for it; its result into `out`; it is no longer
     * needed. `log` may be NULL. NOT_SUPPORTED by the first: PTX must do, which is linked here. */
    CUresult (*link_made)(void *m, struct hed_device *dev, const struct hed_jit_how *how,
                          struct hed_far_link **out);
    CUresult (*link_add)(void *m, struct hed_far_link *l, const struct hed_far_input *input,
                         struct hed_buf *log);
    CUresult (*link_end)(void *m, struct hed_far_link *l, struct hed_buf *out, struct hed_buf *log);
    void (*link_gone)(void *m, struct hed_far_link *l);
    void (*close)(void *m, struct hed_code *code);
    /* Fills in code->kernels[kernel] if that has not been done; before anything of it but its name
     * is looked at. Threads may do it at once. */
    CUresult (*describe)(void *m, struct hed_device *dev, struct hed_code *code, uint32_t kernel);
    /* A variable's address and size in a context: NOT_FOUND. Of a managed one in none: c is NULL.
     * The memory is the far side's; here its address is only reserved. */
    CUresult (*variable)(void *m, struct hed_context *c, struct hed_code *code, bool managed,
                         const char *name, uint64_t *at, uint64_t *size);
    /* A function has got its name (f->object.handle) in its context; a setting of it changed. */
    void (*function_made)(void *m, struct hed_function *f);
    void (*function_gone)(void *m, struct hed_function *f);
    CUresult (*function_set)(void *m, struct hed_function *f, CUfunction_attribute a, int value);
    /* It is about to run for the first time, or is to be loaded: NO_BINARY_FOR_GPU, ... */
    CUresult (*function_load)(void *m, struct hed_function *f);

    /* ---- arrays, textures, surfaces (array.c, mipmap.c, texture.c) ---- */

    CUresult (*array_made)(void *m, struct hed_context *c, struct hed_array *a);
    CUresult (*mipmap_made)(void *m, struct hed_context *c, struct hed_mipmap *mm);
    void (*array_gone)(void *m, uint64_t context, uint64_t handle); /* of either; handles */
    /* The value that kernels are given is the far side's own. */
    CUresult (*texture_made)(void *m, struct hed_context *c, const CUDA_RESOURCE_DESC_v1 *res,
                             const CUDA_TEXTURE_DESC_v1 *tex,
                             const CUDA_RESOURCE_VIEW_DESC_v1 *view, uint64_t *value);
    CUresult (*surface_made)(void *m, struct hed_context *c, const CUDA_RESOURCE_DESC_v1 *res,
                             uint64_t *value);
    void (*object_gone)(void *m, struct hed_context *c, bool surface, uint64_t value);

    /* ---- the rest ---- */

    /* A call that no area of the soft driver has, or that only the far side can answer (tensor
     * maps, clusters' occupancy): NOT_SUPPORTED where it cannot travel. */
    CUresult (*call)(void *m, struct hed_context *c, enum hed_cuda_call id, void *args);
    /* Memory the device really has left. */
    CUresult (*memory_info)(void *m, struct hed_context *c, size_t *free, size_t *total);
};
