/* The machine: where work runs. One table, two implementations.
 *
 *   API calls ──> driver: handles, addresses, rules, captures, graphs as objects
 *                   │
 *                   │ struct hed_machine: memory, contexts, streams, events, work, code, arrays
 *                   │
 *          ┌────────┴───────────┐
 *        near/                backends/remote
 *   this process executes:   a worker executes: work is numbered
 *   queues, runner threads   and sent, objects have a mirror there
 *          │                    │
 *   struct hed_executor       messages (wire/)
 *   memory, code, launch        │
 *          │                  heddled: server/worker
 *   backends/cpu, tests' fake
 *
 * The driver never asks which of the two it is on. It keeps what a program can ask about, and
 * checks what CUDA checks at once; what a machine has to do, or may want to know, is an entry of
 * the table.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/profile.h"
#include "gen/cuda_abi.h"
#include "gen/cuda_calls.h"

struct hed_allocation;
struct hed_array;
struct hed_buf;
struct hed_code;
struct hed_context;
struct hed_copy;
struct hed_device;
struct hed_event;
struct hed_exec;
struct hed_function;
struct hed_graph_exec;
struct hed_image;
struct hed_jit_how;
struct hed_launch;
struct hed_mipmap;
struct hed_module;
struct hed_point;
struct hed_program;
struct hed_stream;
struct hed_surface;
struct hed_texture;
struct hed_texture_given;
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

struct hed_linker; /* the machine's own */
struct hed_linker_input {
    CUjitInputType type;
    const void *data;
    size_t size;
    const char *name; /* for its log; NULL: none */
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

    bool clusters;   /* blocks of a cluster reach each other; if not, such launches are refused */
    bool registered; /* kernels reach memory that the program registered (cuMemHostRegister) */
    bool alone;      /* the devices' use is not this computer's: other processes of it do not see
                      * it (driver/shared.h) */

    /* Bytes that the machine wants for itself in every struct hed_context, struct hed_stream and
     * struct hed_exec (`own`). They are zeroed when the object is made. */
    size_t context_bytes, stream_bytes, exec_bytes;

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

    /* A launch, under the same conditions: the hot path, without a struct hed_work. What `l` points
     * to need not live longer than the call. The function has been loaded (function_load). */
    CUresult (*launch)(void *m, struct hed_stream *s, const struct hed_launch *l);

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

    /* A conditional handle for a graph, which is named by its handle; both NULL where there are
     * none. The second: the graph is being freed, and its handles with it. */
    CUresult (*graph_condition)(void *m, struct hed_context *c, uint64_t graph, unsigned value,
                                unsigned flags, uint64_t *out);
    void (*graph_conditions_gone)(void *m, uint64_t graph);

    /* ---- code (module/) ---- */

    /* Opens an image for a device: sets p->code, and what else of it the machine knows. `why` takes
     * the reason of a failure. Code may list its variables, which the driver then gives memory in
     * every context and finds by name; or have none (var_count is 0) and answer `variable`. */
    CUresult (*open)(void *m, struct hed_device *dev, struct hed_program *p,
                     const struct hed_image *image, const struct hed_jit_how *how,
                     struct hed_why *why);
    void (*close)(void *m, struct hed_program *p);

    /* Fills in code->kernels[kernel] if that has not been done: before anything of it but its name
     * is looked at. Threads may do it at once. */
    CUresult (*describe)(void *m, struct hed_device *dev, struct hed_code *code, uint32_t kernel);

    /* Writes the first values of listed variables, which have these addresses in a context. */
    void (*fill_vars)(void *m, struct hed_program *p, const uint64_t *addresses);

    /* A variable that is not listed: its address and size in a context, or, if it is managed, in
     * none (c is NULL). The memory is the machine's. NOT_FOUND. */
    CUresult (*variable)(void *m, struct hed_context *c, struct hed_code *code, bool managed,
                         const char *name, uint64_t *at, uint64_t *size);

    /* A function has got its handle in its context; is losing it; a setting of it was changed. */
    void (*function_made)(void *m, struct hed_function *f);
    void (*function_gone)(void *m, struct hed_function *f);
    CUresult (*function_set)(void *m, struct hed_function *f, CUfunction_attribute a, int value);
    /* It is about to run for the first time, or is to be loaded: NO_BINARY_FOR_GPU, ... with the
     * reason. */
    CUresult (*function_load)(void *m, struct hed_function *f, struct hed_why *why);
    /* A module was loaded eagerly: the same for all of its kernels. Failures are told at launch. */
    void (*module_load)(void *m, struct hed_module *mod);

    /* A linker, as cuLinkCreate makes it; an input for it; its result into `out`; it is no longer
     * needed. `log` may be NULL. NOT_SUPPORTED by the first: the driver joins PTX itself, and the
     * others may be NULL if that is always so. */
    CUresult (*link_made)(void *m, struct hed_device *dev, const struct hed_jit_how *how,
                          struct hed_linker **out);
    CUresult (*link_add)(void *m, struct hed_linker *l, const struct hed_linker_input *input,
                         struct hed_buf *log);
    CUresult (*link_end)(void *m, struct hed_linker *l, struct hed_buf *out, struct hed_buf *log);
    void (*link_gone)(void *m, struct hed_linker *l);

    /* ---- arrays, textures, surfaces (memory/) ---- */

    /* Gives an array that has its handle memory of so many bytes; the same for a mipmap with all of
     * its levels. Sets `key`, under which it is in the index of memory (hed_array_own), and, where
     * the memory has an address, image.at. */
    CUresult (*array_made)(void *m, struct hed_context *c, struct hed_array *a, uint64_t bytes);
    CUresult (*mipmap_made)(void *m, struct hed_context *c, struct hed_mipmap *mm, uint64_t bytes);
    /* The program destroys an array: waits for work that uses it, unless that is no matter. */
    CUresult (*array_quiesce)(void *m, struct hed_context *c, const struct hed_allocation *a);
    /* The entry of an array or mipmap has left the index; its handle is still its own. */
    void (*array_gone)(void *m, const struct hed_allocation *a, uint64_t handle);

    /* An object as kernels are to be given it. `key` is where it is in the index, or where it is to
     * be put if it is not: unlike values, keys are unique in a driver. */
    CUresult (*texture_made)(void *m, struct hed_context *c, const struct hed_texture *t,
                             const struct hed_texture_given *given, uint64_t *value);
    CUresult (*surface_made)(void *m, struct hed_context *c, const struct hed_surface *s,
                             const CUDA_RESOURCE_DESC_v1 *given, uint64_t *value);
    uint64_t (*object_key)(void *m, const struct hed_context *c, bool surface, uint64_t value);
    /* The program destroys it; then its entry, if the index has one, is given back. */
    CUresult (*object_gone)(void *m, struct hed_context *c, bool surface, uint64_t value);

    /* ---- other calls ---- */

    /* A setting was changed by a call that the driver has checked and noted (peers, caches): the
     * machine may want to know. */
    CUresult (*tell)(void *m, struct hed_context *c, enum hed_cuda_call id, void *args);
    /* A question that the machine may answer better than the driver (how clusters fit, peers).
     * NOT_SUPPORTED: the driver answers. c may be NULL. */
    CUresult (*call)(void *m, struct hed_context *c, enum hed_cuda_call id, void *args);
    /* A call that no area of the driver has. NOT_SUPPORTED where the machine has it neither. */
    CUresult (*unknown)(void *m, struct hed_layer *self, enum hed_cuda_call id, void *args);
    /* Bytes that the context's device has left; SIZE_MAX: as many as the driver counts. */
    size_t (*memory_left)(void *m, struct hed_context *c);

    /* ---- the process ---- */

    /* In the child of a fork: forgets threads. May be NULL. */
    void (*forked)(void *m);
    /* The process ends: stops threads. May be NULL. */
    void (*fini)(void *m);
};

#define HED_MACHINE_PAGE 65536 /* bytes; a multiple of any host's page */

/* A launch: everything a grid needs to run. During a call it points to what the caller has; as work
 * (driver/stream/work.h) it owns its parameters and attributes, and has a reference on its
 * function.
 */
struct hed_launch {
    struct hed_function *function;
    CUfunction given; /* the handle that the program used: CUfunction or CUkernel */
    struct hed_code *code;
    uint32_t kernel;           /* index in code->kernels */
    const uint64_t *variables; /* addresses of code->vars in the context; lives with the module */
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t cluster[3]; /* 0 0 0 or 1 1 1: none */
    uint32_t dynamic_shared;
    uint32_t param_bytes;
    const unsigned char *params;   /* param_bytes */
    CUlaunchAttribute *attributes; /* as the program gave them */
    unsigned attribute_count;
    bool cooperative;
    int device;                        /* ordinal */
    const struct hed_profile *profile; /* of the device */
    uint64_t grid_id;
    size_t stack_limit;  /* bytes a thread: CU_LIMIT_STACK_SIZE */
    size_t heap_limit;   /* CU_LIMIT_MALLOC_HEAP_SIZE */
    size_t printf_limit; /* CU_LIMIT_PRINTF_FIFO_SIZE */
};
