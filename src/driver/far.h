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
    /* ---- contexts (context.c, primary_calls.c) ---- */

    /* Contents come to be; go (everything in it goes there, too); a limit was set. */
    CUresult (*context_made)(void *m, struct hed_context *c);
    void (*context_gone)(void *m, struct hed_context *c);
    CUresult (*context_limit)(void *m, struct hed_context *c, CUlimit limit, size_t value);
    /* Waits for all that was put on its streams. The first failure, or success. */
    CUresult (*context_wait)(void *m, struct hed_context *c);

    /* ---- streams and events (stream.c, queue.c, event.c) ---- */

    void (*stream_made)(void *m, struct hed_stream *s); /* not for the legacy stream */
    void (*stream_gone)(void *m, struct hed_stream *s);
    /* Waits for everything put on it so far; asks. They may set s->done (under s->lock). */
    CUresult (*stream_wait)(void *m, struct hed_stream *s);
    CUresult (*stream_query)(void *m, struct hed_stream *s); /* SUCCESS, NOT_READY, the failure */
    /* Takes note of what is known without waiting (hed_far_told_locked); asks only now and then. */
    void (*stream_look)(void *m, struct hed_stream *s);
    /* A setting was changed. s->lock is held. */
    void (*stream_set)(void *m, struct hed_stream *s, CUlaunchAttributeID id,
                       const CUlaunchAttributeValue *value);

    void (*event_made)(void *m, struct hed_event *e);
    void (*event_gone)(void *m, struct hed_event *e);
    CUresult (*event_wait)(void *m, struct hed_event *e);
    CUresult (*event_query)(void *m, struct hed_event *e);
    CUresult (*event_time)(void *m, struct hed_event *begin, struct hed_event *end, float *ms);

    /* ---- work (queue.c) ---- */

    /* Puts work on a stream; s->lock is held and w->number given. The work stays the caller's, who
     * frees it: what is needed later is copied, or taken by setting the pointer in it to NULL. All
     * kinds but copies of pageable memory. */
    CUresult (*put)(void *m, struct hed_stream *s, struct hed_work *w);

    /* A launch, without a struct hed_work: the hot path. `l->params` need not live longer. */
    CUresult (*launch)(void *m, struct hed_stream *s, struct hed_function *f,
                       const struct hed_launch *l, const CUlaunchAttribute *attributes,
                       unsigned count);

    /* A copy one side of which is memory that only this process has (pageable or, where pinned
     * memory is not shared, pinned). wait: done when it returns; else the program's memory may be
     * changed when it returns (from), or is written before the stream is next known to have come
     * this far (to). s->lock is not held: it is a matter of many messages. */
    CUresult (*copy_host)(void *m, struct hed_stream *s, const struct hed_copy *c, bool to_host,
                          bool wait);

    /* Is this host memory that the far side has at the same address? */
    bool (*shares)(void *m, uint64_t at, uint64_t size);

    /* Are functions of the program still to be run? They may write what a copy is to read. */
    bool (*functions_wait)(void *m);

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

    /* ---- graphs (graph_exec.c) ---- */

    /* An executable graph's body is to be run as e->object.handle; the same after a change. */
    CUresult (*exec_made)(void *m, struct hed_context *c, struct hed_exec *e,
                          struct hed_graph_exec *body);
    void (*exec_gone)(void *m, uint64_t handle);

    /* ---- the rest ---- */

    /* A call that no area of the soft driver has, or that only the far side can answer (tensor
     * maps, clusters' occupancy): NOT_SUPPORTED where it cannot travel. */
    CUresult (*call)(void *m, struct hed_context *c, enum hed_cuda_call id, void *args);
    /* Memory the device really has left. */
    CUresult (*memory_info)(void *m, struct hed_context *c, size_t *free, size_t *total);
};
