/* The machine: what a soft driver needs done that takes a device. A backend fills one in.
 *
 * The driver keeps handles, addresses, order and rules; the machine has memory behind addresses,
 * turns code into something that runs, and runs it. It knows nothing of streams, of contexts or of
 * the API.
 *
 * Threads: every operation may be called from any thread, several at once, with no lock held.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/profile.h"
#include "gen/cuda_abi.h"

struct hed_buf;
struct hed_code;
struct hed_context;
struct hed_copy;
struct hed_event;
struct hed_exec;
struct hed_executor;
struct hed_far;
struct hed_function;
struct hed_graph_exec;
struct hed_launch;
struct hed_point;
struct hed_stream;
struct hed_why;
struct hed_work;

/* Physical memory that can be mapped at several addresses (cuMemCreate). The machine's own data
 * follows it. */
struct hed_physical_memory {
    uint64_t size; /* bytes */
};

/* A kernel as code has it: by position in hed_code.kernels. Numbers are bytes unless said. */
struct hed_code_param {
    uint32_t offset; /* from the first parameter */
    uint32_t size;
};

struct hed_code_kernel {
    const char *name;
    const struct hed_code_param *params;
    uint32_t param_count;
    uint32_t param_bytes;
    uint32_t registers;     /* a thread; an estimate on machines that have none, never 0 */
    uint32_t shared;        /* static */
    uint32_t local;         /* a thread */
    uint32_t constant;      /* user constants of the module */
    uint32_t max_threads;   /* a block: from launch bounds, else the device's limit (0: that) */
    uint32_t required[3];   /* .reqntid; 0 for not said */
    uint32_t cluster[3];    /* .reqnctapercluster; 0 for not said */
    bool must_have_cluster; /* .explicitcluster */
    uint32_t ptx_version;   /* 10 * major + minor of the architecture: 75 */
    uint32_t binary_version;
    bool has_code; /* false: only machine code for real GPUs is there; cannot be launched here */
};

struct hed_code_var {
    const char *name;
    uint64_t size;
    uint32_t align;
    bool constant; /* .const */
    bool managed;
    bool visible;     /* can be found by name */
    const void *init; /* the first init_size bytes; the rest is zero */
    uint64_t init_size;
    bool texture; /* a .texref, .surfref or .samplerref: no memory */
};

/* What was loaded, described; the machine's own data is behind it. Shared by all contexts that load
 * the same module object; constant after open. */
struct hed_code {
    const struct hed_code_kernel *kernels;
    uint32_t kernel_count;
    const struct hed_code_var *vars; /* all of the module, in the machine's order */
    uint32_t var_count;
};

/* Addresses and the memory behind them. Every machine has these, and so has every executor
 * (driver/near/near.h). Any thread may call them, several at once, with no lock held. */
struct hed_machine_memory {
    /* Called once, before anything else: reserves `size` bytes of addresses, at `want` if that is
     * free, else elsewhere. Nothing is usable yet. */
    int (*reserve)(void *m, uint64_t want, uint64_t size, uint64_t *base);

    /* Bytes of each share of the range (a device's, the host's) that may be used, from its
     * beginning. NULL: all. */
    uint64_t (*usable)(void *m);

    /* Bytes that map and unmap take multiples of; 0 for HED_MACHINE_PAGE. */
    uint64_t map_unit;

    /* Up to so many bytes of empty blocks of device memory stay mapped: for machines where mapping
     * is expensive, and where a kernel that uses freed memory may go unnoticed. */
    uint64_t keep;

    /* map makes [at, at + size), a part of the reserved range, usable zeroed memory. unmap gives it
     * back, so that a kernel that touches it fails. Both are multiples of map_unit. */
    int (*map)(void *m, uint64_t at, uint64_t size);
    void (*unmap)(void *m, uint64_t at, uint64_t size);

    /* cuMemCreate and its kind. `device` is an ordinal, or -1 for the host. `readable` and
     * `writable` hold for kernels and copies alike. */
    int (*physical_create)(void *m, int device, uint64_t size, struct hed_physical_memory **out);
    void (*physical_free)(void *m, struct hed_physical_memory *p);
    int (*physical_map)(void *m, struct hed_physical_memory *p, uint64_t offset, uint64_t at,
                        uint64_t size);
    int (*protect)(void *m, uint64_t at, uint64_t size, bool readable, bool writable);

    /* Small copies and fills of the driver's own, done when they return. Ranges may overlap. */
    void (*copy)(void *m, uint64_t to, uint64_t from, size_t size);
    void (*fill)(void *m, uint64_t to, uint32_t value, unsigned width, size_t count);
};

/* Where work runs. Unless an entry says otherwise, it is called by any thread, several at once,
 * with no lock held, and is not NULL. Entries never call back into the driver's API calls.
 *
 * Entries without a result cannot fail at once: a machine tells of a failure later, by
 * hed_context_fail(). Objects are told of when their handle is given and before it can be given to
 * another object, so a machine may use handles as names. */
struct hed_machine {
    struct hed_machine_memory memory;

    bool clusters; /* blocks of a cluster reach each other; if not, such launches are refused */

    /* Bytes that the machine wants for itself in every struct hed_context, struct hed_stream and
     * struct hed_exec (`own`). They are zeroed when the object is made. */
    size_t context_bytes, stream_bytes, exec_bytes;

    /* Code, arrays and graphs are elsewhere: driver/far.h. NULL: they are here. */
    const struct hed_far *far;
    const struct hed_executor *executor; /* NULL where there is a far side */

    /* ---- contexts (context/) ---- */

    /* The context has contents now; they are going, after everything that was in it; a limit was
     * set. */
    CUresult (*context_made)(void *m, struct hed_context *c);
    void (*context_gone)(void *m, struct hed_context *c);
    CUresult (*context_limit)(void *m, struct hed_context *c, CUlimit limit, size_t value);
    /* Waits for all work on its streams, destroyed streams included. */
    CUresult (*context_wait)(void *m, struct hed_context *c);

    /* ---- streams (stream/stream.c, stream/stream_calls.c) ---- */

    /* Prepares `own` of a new stream that no other thread knows. It may set s->fini, which is
     * called when the memory is freed, maybe after the driver itself has gone. */
    void (*stream_init)(void *m, struct hed_stream *s);
    /* The stream has its handle. Not called for the legacy stream, which has none. */
    void (*stream_made)(void *m, struct hed_stream *s);
    /* No more work comes. s->lock is held. True: nothing is left to be done for it here, so that it
     * leaves its context's list at once; else the machine calls hed_stream_retire() later. */
    bool (*stream_gone)(void *m, struct hed_stream *s);
    /* A setting was changed. s->lock is held. */
    void (*stream_set)(void *m, struct hed_stream *s, CUlaunchAttributeID id,
                       const CUlaunchAttributeValue *value);
    /* Is everything done that was put on it, and on blocking streams if it is the legacy one?
     * SUCCESS, NOT_READY, or the failure. */
    CUresult (*stream_query)(void *m, struct hed_stream *s);
    /* Waits for the same. The context's sticky error, or success. */
    CUresult (*stream_wait)(void *m, struct hed_stream *s);

    /* A point of a stream (stream/stream.h): has it been reached; waits for it. */
    bool (*point_reached)(void *m, struct hed_point p);
    CUresult (*point_wait)(void *m, struct hed_point p);

    /* ---- events (stream/event.c) ---- */

    void (*event_made)(void *m, struct hed_event *e);
    void (*event_gone)(void *m, struct hed_event *e);
    /* Has its last record been reached? SUCCESS, NOT_READY, or a failure. Waits for it. */
    CUresult (*event_query)(void *m, struct hed_event *e);
    CUresult (*event_wait)(void *m, struct hed_event *e);
    /* Both have times and records. NOT_READY: one of them has not been reached. */
    CUresult (*event_time)(void *m, struct hed_event *begin, struct hed_event *end, float *ms);

    /* ---- work (stream/submit.c, module/launch.c, memory/copy.c) ---- */

    /* Puts work on a stream that may have it now (hed_submit_allowed) and does not capture. Takes
     * the work in any case. wait: it is done when this returns, and the result is the work's own if
     * it failed. INVALID_HANDLE: the stream has been destroyed. */
    CUresult (*submit)(void *m, struct hed_stream *s, struct hed_work *w, bool wait);

    /* A launch, under the same conditions: the hot path, without a struct hed_work. `l->params` and
     * the attributes need not live longer than the call. */
    CUresult (*launch)(void *m, struct hed_stream *s, struct hed_function *f,
                       const struct hed_launch *l, const CUlaunchAttribute *attributes,
                       unsigned count);

    /* A copy, under the same conditions, with CUDA's rules about what the caller waits for (cuda.h,
     * "API synchronization behavior"). waits: the call is one of those without a stream. */
    CUresult (*copy)(void *m, struct hed_stream *s, const struct hed_copy *c, bool waits);

    /* Launches an executable graph on a stream, as `body` is now; prepares that. `e` is locked by
     * the machine where it needs it. */
    CUresult (*graph_launch)(void *m, struct hed_exec *e, struct hed_stream *s,
                             struct hed_graph_exec *body);
    void (*graph_upload)(void *m, struct hed_exec *e, struct hed_stream *s);
    /* The executable graph is being freed. */
    void (*graph_gone)(void *m, struct hed_exec *e);

    /* ---- the process ---- */

    /* In the child of a fork: forgets threads. May be NULL. */
    void (*forked)(void *m);
    /* The process ends: stops threads. May be NULL. */
    void (*fini)(void *m);
};

#define HED_MACHINE_PAGE 65536 /* bytes; a multiple of any host's page */

/* Everything a grid needs to run. Owned by the work it is part of (driver/stream/work.h). */
struct hed_launch {
    struct hed_code *code;
    uint32_t kernel;           /* index in code->kernels */
    const uint64_t *variables; /* addresses of code->vars in the context; lives with the module */
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t cluster[3]; /* 0 0 0 or 1 1 1: none */
    uint32_t dynamic_shared;
    uint32_t param_bytes;
    const unsigned char *params; /* param_bytes */
    bool cooperative;
    int device;                        /* ordinal */
    const struct hed_profile *profile; /* of the device */
    uint64_t grid_id;
    size_t stack_limit;  /* bytes a thread: CU_LIMIT_STACK_SIZE */
    size_t heap_limit;   /* CU_LIMIT_MALLOC_HEAP_SIZE */
    size_t printf_limit; /* CU_LIMIT_PRINTF_FIFO_SIZE */
};
