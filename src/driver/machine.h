/* The machine: where work runs. One table, two implementations.
 *
 *   API calls ──> driver: handles, addresses, rules, captures, graphs as objects
 *                   │
 *                   │ struct hed_machine: memory, contexts, streams, events, work, code, arrays
 *                   │
 *          ┌────────┴───────────┐
 *        near/                remote/client
 *   this process executes:   a worker executes: work is numbered
 *   queues, runner threads   and sent, objects have a mirror there
 *          │                    │
 *   struct hed_executor       messages (wire/)
 *   memory, code, launch        │
 *          │                  heddled: remote/server/worker
 *   backends/cpu, tests' fake
 *
 * The driver never asks which of the two it runs on. It keeps everything that a program can ask
 * about, and makes the checks that CUDA makes before a call returns. Everything that a machine has
 * to do, or may want to know, is an entry of the table.
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
struct hed_numbers;
struct hed_texture;
struct hed_texture_given;
struct hed_why;
struct hed_work;

/* Physical memory that can be mapped at several addresses (cuMemCreate). The machine's own data
 * follows it. */
struct hed_physical_memory {
    uint64_t size; /* bytes */
};

#define HED_PHYSICAL_OWNER 32 /* bytes that exported memory carries along */

/* A kernel, found by its position in hed_code.kernels. Sizes are in bytes unless a field says
 * otherwise. */
struct hed_code_param {
    uint32_t offset; /* from the first parameter */
    uint32_t size;
};

struct hed_code_kernel {
    const char *name;
    const struct hed_code_param *params;
    uint32_t param_count;
    uint32_t param_bytes;
    uint32_t registers;     /* per thread; an estimate on machines without registers; never 0 */
    uint32_t shared;        /* static */
    uint32_t local;         /* per thread */
    uint32_t constant;      /* user constants of the module */
    uint32_t max_threads;   /* per block, from launch bounds; 0 means the device's limit */
    uint32_t required[3];   /* .reqntid; 0 if the kernel does not say */
    uint32_t cluster[3];    /* .reqnctapercluster; 0 if the kernel does not say */
    bool must_have_cluster; /* .explicitcluster */
    uint32_t ptx_version;   /* 10 * major + minor of the architecture: 75 */
    uint32_t binary_version;
    bool has_code; /* false: there is machine code for real GPUs only */
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
    bool texture; /* a .texref, .surfref or .samplerref: its memory has the descriptor of what it is
                   * bound to (union hed_reference_room) */
    bool surface; /* a texture, and a .surfref */
    /* In machine code, variables are parts of larger ones: if part_of is not 0, this one has no
     * memory of its own and begins at byte `at` of vars[part_of - 1], which is not a part. The
     * larger ones have the name "", so they are not found. */
    uint32_t part_of;
    uint64_t at;
};

/* A description of loaded code. The machine's own data follows it. All contexts that load the same
 * module object share it; constant after open. */
struct hed_code {
    const struct hed_code_kernel *kernels;
    uint32_t kernel_count;
    const struct hed_code_var *vars; /* all variables of the module, in the machine's order */
    uint32_t var_count;
};

struct hed_linker; /* the machine's own */
struct hed_linker_input {
    CUjitInputType type;
    const void *data;
    size_t size;
    const char *name; /* for the linker's log; may be NULL */
};

/* Addresses and the memory behind them. Every machine has these, and so has every executor
 * (driver/near/near.h). Any thread may call them, several at once, with no lock held. */
struct hed_machine_memory {
    /* Called once, before anything else: reserves `size` bytes of addresses, at `want` if that is
     * free, else elsewhere. Nothing is usable yet. */
    int (*reserve)(void *m, uint64_t want, uint64_t size, uint64_t *base);

    /* Returns how many bytes of each share of the range (a device's or the host's) may be used,
     * counted from its beginning. NULL means all of them. */
    uint64_t (*usable)(void *m);

    /* map and unmap take multiples of this many bytes; 0 means HED_MACHINE_PAGE. */
    uint64_t map_unit;

    /* Up to this many bytes of empty blocks of device memory stay mapped. For machines where
     * mapping is expensive, and where a kernel that uses freed memory may go unnoticed. */
    uint64_t keep;

    /* map makes [at, at + size), a part of the reserved range, usable zeroed memory. unmap gives it
     * back, so that a kernel that touches it fails. `at` and `size` are multiples of map_unit. */
    int (*map)(void *m, uint64_t at, uint64_t size);
    void (*unmap)(void *m, uint64_t at, uint64_t size);

    /* The memory of cuMemCreate. `device` is an ordinal, or -1 for the host. `readable` and
     * `writable` apply to kernels and copies alike. */
    int (*physical_create)(void *m, int device, uint64_t size, struct hed_physical_memory **out);
    void (*physical_free)(void *m, struct hed_physical_memory *p);
    int (*physical_map)(void *m, struct hed_physical_memory *p, uint64_t offset, uint64_t at,
                        uint64_t size);
    int (*protect)(void *m, uint64_t at, uint64_t size, bool readable, bool writable);

    /* Physical memory as a file descriptor that other processes can import. `owner`
     * (HED_PHYSICAL_OWNER bytes) is anything that the importer is to know. The descriptor belongs
     * to the caller; import leaves that of its caller alone. HED_EINVAL if the descriptor is not
     * such memory. Both are NULL on a machine without this. */
    int (*physical_export)(void *m, struct hed_physical_memory *p, const uint8_t *owner, int *fd);
    int (*physical_import)(void *m, int fd, uint8_t *owner, struct hed_physical_memory **out);

    /* Turns memory that was mapped by `map` into physical memory with the same contents, mapped at
     * the same place, while kernels and copies go on using it. The caller frees it after it has
     * unmapped it, and sees to it that no two threads are here at once. NULL on a machine without
     * physical_export. */
    int (*share)(void *m, uint64_t at, uint64_t size, struct hed_physical_memory **out);
    /* Gives back what is behind a part of physical memory, which reads as zero from then on. NULL
     * where share is. */
    void (*physical_discard)(void *m, struct hed_physical_memory *p, uint64_t offset,
                             uint64_t size);

    /* Small copies and fills that the driver needs for itself. They are done when the function
     * returns. Ranges may overlap. */
    void (*copy)(void *m, uint64_t to, uint64_t from, size_t size);
    void (*fill)(void *m, uint64_t to, uint32_t value, unsigned width, size_t count);
};

#define HED_MACHINE_KEY 16 /* bytes */

/* Memory and events of other programs that use the same machine, on machines where these programs
 * find them by a key. A key is random and comes from the machine. All return 0 or
 *   HED_ESTATE     it is this program's own
 *   HED_ENOTFOUND  the key opens nothing
 *   HED_ENOTSUP, HED_ENOMEM, HED_EIO */
struct hed_machine_keys {
    /* Can it be done with the present machine? */
    bool (*possible)(void *m);
    /* A key for memory that `map` has mapped. It opens the memory until that is unmapped. `owner`
     * is as for physical_export. */
    int (*offer)(void *m, uint64_t at, uint64_t size, const uint8_t *owner,
                 uint8_t key[HED_MACHINE_KEY]);
    /* The memory of a key, as physical memory that can only be mapped as a whole. */
    int (*open)(void *m, const uint8_t key[HED_MACHINE_KEY], uint8_t *owner,
                struct hed_physical_memory **out);
    /* The same for events with CU_EVENT_INTERPROCESS. open: `e` has just been made. */
    int (*event_offer)(void *m, struct hed_event *e, uint8_t key[HED_MACHINE_KEY]);
    int (*event_open)(void *m, struct hed_event *e, const uint8_t key[HED_MACHINE_KEY]);
};

/* Where work runs. Unless an entry says otherwise, any thread may call it, several threads at once,
 * with no lock held, and it is not NULL. Entries never call back into the driver's API calls.
 *
 * Entries without a result cannot report a failure at once: the machine reports it later, through
 * hed_context_fail(). The machine learns of an object as soon as the object has its handle, and
 * learns that it is gone before that handle can be given to another object, so it may use handles
 * as names.
 */
struct hed_machine {
    struct hed_machine_memory memory;
    const struct hed_machine_keys *keys; /* NULL: programs share files (driver/ipc/name.h) */

    bool clusters;   /* launches with clusters are possible; otherwise they are refused */
    bool registered; /* kernels can reach memory that the program registered (cuMemHostRegister) */
    bool keeps_variables; /* an open program's variables keep their values when the primary context
                           * is reset: it is opened again for the next one */
    bool alone;           /* the devices belong to another computer, so other processes of this one
                           * are not told how they are used (driver/shared.h) */

    /* Bytes that the machine wants for itself in every struct hed_context, struct hed_stream and
     * struct hed_exec (`own`). They are zeroed when the object is made. */
    size_t context_bytes, stream_bytes, exec_bytes;

    /* ---- contexts (context/) ---- */

    /* context_made: the context has contents from now on. context_gone: the contents are about to
     * be destroyed, after everything that was in the context. context_limit: a limit was set. */
    CUresult (*context_made)(void *m, struct hed_context *c);
    void (*context_gone)(void *m, struct hed_context *c);
    CUresult (*context_limit)(void *m, struct hed_context *c, CUlimit limit, size_t value);
    /* Waits for all work on the context's streams, including streams that were destroyed. */
    CUresult (*context_wait)(void *m, struct hed_context *c);

    /* ---- streams (stream/stream.c, stream/stream_calls.c) ---- */

    /* Prepares `own` of a new stream that no other thread knows yet. It may set s->fini, which is
     * called when the memory is freed, possibly after the driver itself has gone. */
    void (*stream_init)(void *m, struct hed_stream *s);
    /* The stream has its handle. Not called for the legacy stream, which has none. */
    void (*stream_made)(void *m, struct hed_stream *s);
    /* The stream gets no more work. s->lock is held. Returns true if nothing is left to do for it
     * here, so that it leaves its context's list at once; otherwise the machine calls
     * hed_stream_retire() later. */
    bool (*stream_gone)(void *m, struct hed_stream *s);
    /* A setting of the stream has changed. s->lock is held. */
    void (*stream_set)(void *m, struct hed_stream *s, CUlaunchAttributeID id,
                       const CUlaunchAttributeValue *value);
    /* Is all work on the stream done? For the legacy stream, also all work on blocking streams.
     * Returns SUCCESS, NOT_READY, or the failure. */
    CUresult (*stream_query)(void *m, struct hed_stream *s);
    /* Waits for the same work. Returns the context's sticky error, or success. */
    CUresult (*stream_wait)(void *m, struct hed_stream *s);

    /* Asks whether a point of a stream (stream/stream.h) has been reached, or waits for it. */
    bool (*point_reached)(void *m, struct hed_point p);
    CUresult (*point_wait)(void *m, struct hed_point p);

    /* ---- events (stream/event.c) ---- */

    void (*event_made)(void *m, struct hed_event *e);
    void (*event_gone)(void *m, struct hed_event *e);
    /* Asks whether the event's last record has been reached (SUCCESS, NOT_READY, or a failure), or
     * waits for it. */
    CUresult (*event_query)(void *m, struct hed_event *e);
    CUresult (*event_wait)(void *m, struct hed_event *e);
    /* Both events have been recorded and keep times. NOT_READY: one of them has not been reached
     * yet. */
    CUresult (*event_time)(void *m, struct hed_event *begin, struct hed_event *end, float *ms);

    /* ---- work (stream/submit.c, module/launch.c, memory/copy.c) ---- */

    /* Puts work on a stream that may take it now (hed_submit_allowed) and is not capturing. Takes
     * ownership of the work even on failure. With `wait`, the work is done when this returns, and
     * the result is the work's own if it failed. INVALID_HANDLE: the stream has been destroyed. */
    CUresult (*submit)(void *m, struct hed_stream *s, struct hed_work *w, bool wait);

    /* Launches a kernel under the same conditions. This is the hot path, so there is no struct
     * hed_work. Whatever `l` points to need not outlive the call. The function has been loaded
     * (function_load). */
    CUresult (*launch)(void *m, struct hed_stream *s, const struct hed_launch *l);

    /* Copies under the same conditions. What the caller waits for follows CUDA's rules (cuda.h,
     * "API synchronization behavior"). `waits` is set for the calls that take no stream. */
    CUresult (*copy)(void *m, struct hed_stream *s, const struct hed_copy *c, bool waits);

    /* Launches an executable graph on a stream; graph_upload only prepares the launch. `body` is
     * its current contents. The machine locks `e` where it needs to. */
    CUresult (*graph_launch)(void *m, struct hed_exec *e, struct hed_stream *s,
                             struct hed_graph_exec *body);
    void (*graph_upload)(void *m, struct hed_exec *e, struct hed_stream *s);
    /* The executable graph is being freed. */
    void (*graph_gone)(void *m, struct hed_exec *e);

    /* graph_condition makes a conditional handle for a graph, which is named by the graph's handle.
     * graph_conditions_gone: the graph is being freed, and its conditional handles with it. Both
     * are NULL on machines without conditional nodes. */
    CUresult (*graph_condition)(void *m, struct hed_context *c, uint64_t graph, unsigned value,
                                unsigned flags, uint64_t *out);
    void (*graph_conditions_gone)(void *m, uint64_t graph);

    /* ---- code (module/) ---- */

    /* Opens an image for a device: sets p->code and whatever else the machine knows of the image.
     * `why` takes the reason of a failure. Either the code lists its variables, and then the driver
     * gives them memory in every context and finds them by name; or it lists none (var_count is 0)
     * and the machine answers `variable`. */
    CUresult (*open)(void *m, struct hed_device *dev, struct hed_program *p,
                     const struct hed_image *image, const struct hed_jit_how *how,
                     struct hed_why *why);
    void (*close)(void *m, struct hed_program *p);

    /* Fills in code->kernels[kernel] if that has not been done yet. Called before any field but the
     * name is read. Several threads may call it at once. */
    CUresult (*describe)(void *m, struct hed_device *dev, struct hed_code *code, uint32_t kernel);

    /* Writes the initial values of the listed variables, whose addresses in a context are given, to
     * `where`: usually to the variable itself; 0: nowhere. */
    void (*fill_vars)(void *m, struct hed_program *p, const uint64_t *addresses,
                      const uint64_t *where);

    /* Finds a variable that is not listed: its address and size in a context or, for a managed
     * variable, in no context (c is NULL). The memory belongs to the machine. NOT_FOUND if there is
     * none. */
    CUresult (*variable)(void *m, struct hed_context *c, struct hed_code *code, bool managed,
                         const char *name, uint64_t *at, uint64_t *size);

    /* A function has been given its handle in its context; is about to lose it; had a setting
     * changed. */
    void (*function_made)(void *m, struct hed_function *f);
    void (*function_gone)(void *m, struct hed_function *f);
    CUresult (*function_set)(void *m, struct hed_function *f, CUfunction_attribute a, int value);
    /* Loads a function, either because it is about to run for the first time or because the program
     * asks for it. `block` has the dimensions of the blocks that will run; NULL if they are not
     * known. On failure (NO_BINARY_FOR_GPU, ...) `why` takes the reason. */
    CUresult (*function_load)(void *m, struct hed_function *f, const uint32_t *block,
                              struct hed_why *why);
    /* A module was loaded eagerly: loads all of its kernels. Failures are reported at launch. */
    void (*module_load)(void *m, struct hed_module *mod);

    /* Linking, as with cuLinkCreate: makes a linker; adds an input; writes the result to `out`;
     * frees the linker. `log` may be NULL. If link_made returns NOT_SUPPORTED the driver joins PTX
     * itself. The others may be NULL if it always does. */
    CUresult (*link_made)(void *m, struct hed_device *dev, const struct hed_jit_how *how,
                          struct hed_linker **out);
    CUresult (*link_add)(void *m, struct hed_linker *l, const struct hed_linker_input *input,
                         struct hed_buf *log);
    CUresult (*link_end)(void *m, struct hed_linker *l, struct hed_buf *out, struct hed_buf *log);
    void (*link_gone)(void *m, struct hed_linker *l);

    /* ---- arrays, textures, surfaces (memory/) ---- */

    /* Gives an array, which has its handle already, `bytes` of memory; mipmap_made does the same
     * for a mipmap with all of its levels. Sets `key`, under which the index of memory has it
     * (hed_array_own), and image.at where the memory has an address. */
    CUresult (*array_made)(void *m, struct hed_context *c, struct hed_array *a, uint64_t bytes);
    CUresult (*mipmap_made)(void *m, struct hed_context *c, struct hed_mipmap *mm, uint64_t bytes);
    /* The program destroys an array: waits for the work that uses it, where that is necessary. */
    CUresult (*array_quiesce)(void *m, struct hed_context *c, const struct hed_allocation *a);
    /* The entry of an array or mipmap has left the index. Its handle still belongs to it. */
    void (*array_gone)(void *m, const struct hed_allocation *a, uint64_t handle);

    /* Makes a texture or surface object; `value` is what kernels are given. object_key returns the
     * key under which the index has the object, or is to have it. Keys, unlike values, are unique
     * within a driver. */
    CUresult (*texture_made)(void *m, struct hed_context *c, const struct hed_texture *t,
                             const struct hed_texture_given *given, uint64_t *value);
    CUresult (*surface_made)(void *m, struct hed_context *c, const struct hed_surface *s,
                             const CUDA_RESOURCE_DESC_v1 *given, uint64_t *value);
    uint64_t (*object_key)(void *m, const struct hed_context *c, bool surface, uint64_t value);
    /* The program destroys the object. Afterwards its entry in the index, if there is one, is given
     * back. */
    CUresult (*object_gone)(void *m, struct hed_context *c, bool surface, uint64_t value);

    /* ---- other calls ---- */

    /* A call has changed a setting (peers, caches), which the driver has already checked and noted.
     * Machines for which the setting matters act on it. */
    CUresult (*tell)(void *m, struct hed_context *c, enum hed_cuda_call id, void *args);
    /* A question that the machine may answer better than the driver (how clusters fit, peers).
     * NOT_SUPPORTED: the driver answers it. c may be NULL. */
    CUresult (*call)(void *m, struct hed_context *c, enum hed_cuda_call id, void *args);
    /* A call that no area of the driver implements. NOT_SUPPORTED if the machine does not
     * either. */
    CUresult (*unknown)(void *m, struct hed_layer *self, enum hed_cuda_call id, void *args);
    /* Returns how many bytes the context's device has left. SIZE_MAX: use the driver's own
     * count. */
    size_t (*memory_left)(void *m, struct hed_context *c);

    /* ---- the process ---- */

    /* Called in the child of a fork: forgets the parent's threads. May be NULL. */
    void (*forked)(void *m);
    /* The process ends: stops the machine's threads. May be NULL. */
    void (*fini)(void *m);
};

#define HED_MACHINE_PAGE 65536 /* bytes; a multiple of every host's page size */

/* Bytes; what kernels may expect of their parameters as a whole: the largest access (16), and the
 * place of a CUtensorMap (64). */
#define HED_PARAMS_ALIGN 64

/* A launch: everything a grid needs to run. During a call it points to the caller's data. As part
 * of work (driver/stream/work.h) it owns its parameters and attributes and has a reference to its
 * function. */
struct hed_launch {
    struct hed_function *function;
    CUfunction given; /* the handle that the program used: CUfunction or CUkernel */
    CUkernel beside;  /* of nodes: the kernel that the program named beside a function, or NULL */
    struct hed_code *code;
    uint32_t kernel;           /* index in code->kernels */
    const uint64_t *variables; /* addresses of code->vars in the context; lives with the module */
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t cluster[3]; /* all 0 or all 1: no clusters */
    uint32_t dynamic_shared;
    uint32_t param_bytes;
    const unsigned char *params;   /* param_bytes long, at a multiple of HED_PARAMS_ALIGN */
    CUlaunchAttribute *attributes; /* as the program gave them */
    unsigned attribute_count;
    bool cooperative;
    int device;                        /* ordinal */
    const struct hed_profile *profile; /* of the device */
    const struct hed_numbers
        *objects; /* textures and surfaces, on machines that run it themselves */
    uint64_t grid_id;
    uint64_t begin;      /* ns; when the grid began, on machines that run it themselves */
    size_t stack_limit;  /* bytes per thread: CU_LIMIT_STACK_SIZE */
    size_t heap_limit;   /* CU_LIMIT_MALLOC_HEAP_SIZE */
    size_t printf_limit; /* CU_LIMIT_PRINTF_FIFO_SIZE */
    /* Launches by the kernel that have not begun: CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT. */
    size_t pending_limit;
};
