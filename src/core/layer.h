/* Layers: the code between the exported functions and the place where work runs.
 *
 * A layer is a constant type, a small instance and the next layer. A backend is a layer with
 * nothing below it. A type overrides single calls, with one function each (`cuda`), or handles all
 * others in one function (`cuda_any`), or both. All other calls are forwarded.
 *
 *     exported cuMemAlloc_v2 -> trace.any -> quota.cuMemAlloc_v2 -> gpu.cuMemAlloc_v2 -> NVIDIA's
 *
 * Rules:
 * 1. A layer that overrides a call makes it happen by hed_next(), or answers it itself; it never
 *    calls an exported function.
 * 2. No heddle lock is held across hed_next(): the call may block, or call back.
 * 3. `args` belongs to the caller. A layer may change values on the way down only if it puts them
 *    back; outputs are valid only after success.
 * 4. Operations run on the application's thread, several at once; init and fini run alone.
 */
#pragma once

#include "core/call.h"
#include "core/export.h"
#include "gen/cuda_calls.h"
#include "gen/nvml_calls.h"

struct hed_config;
struct hed_control;
struct hed_counts;
struct hed_layer_type;
struct hed_why;

/* What the public API (heddle.h) tells the layers. */
enum hed_note { HED_NOTE_MARK, HED_NOTE_RANGE_BEGIN, HED_NOTE_RANGE_END, HED_NOTE_CLIENT };

/* What the program wants of a layer while it runs (heddle.h). Each is for one layer. */
enum hed_control_what {
    HED_CONTROL_FAULT_ADD,    /* text: rules; writes id */
    HED_CONTROL_FAULT_REMOVE, /* id */
    HED_CONTROL_FAULT_COUNT,  /* id; writes count: calls that failed because of it */
    HED_CONTROL_TRACE_START,  /* text: the file */
    HED_CONTROL_TRACE_STOP,
    HED_CONTROL_TRACE_FILE, /* writes to out: the file; "" while nothing is written */
    HED_CONTROL_MEMORY,     /* count: a serial; writes struct hed_control_memory to out, and their
                             * count */
    HED_CONTROL_SETTLE,     /* writes count: the CUresult of the first context with an error */
};

/* Device memory that the program has: as struct heddle_memory. */
struct hed_control_memory {
    uint64_t serial; /* allocations are numbered from 1 */
    uint64_t address;
    uint64_t bytes;
    char library[64]; /* the file whose code asked for it; "" if that is not known */
};

struct hed_control {
    enum hed_control_what what;
    const char *text;
    int id;
    uint64_t count;
    void *out;
    size_t room; /* bytes of out */
};

/* Results that generated code needs by role. */
#define HED_CUDA_OK CUDA_SUCCESS
#define HED_CUDA_BAD_VALUE CUDA_ERROR_INVALID_VALUE
#define HED_CUDA_UNSUPPORTED CUDA_ERROR_NOT_SUPPORTED
#define HED_NVML_OK NVML_SUCCESS
#define HED_NVML_BAD_VALUE NVML_ERROR_INVALID_ARGUMENT
#define HED_NVML_UNSUPPORTED NVML_ERROR_NOT_SUPPORTED

struct hed_layer {
    const struct hed_cuda_ops *cuda; /* complete: every entry can be called */
    const struct hed_nvml_ops *nvml; /* the same */
    struct hed_layer *next;          /* NULL in a backend */
    const struct hed_layer_type *type;
    void *state; /* the type's own; set by its init */
};

#define HED_LAYER_MEMO 192 /* bytes that a layer may keep from `before` to `after` of a call */

struct hed_layer_type {
    const char *name;

    /* Overrides. A NULL entry goes to `any` where there is one, else to `rest` where there is one
     * (a backend's generated answers), else to the next layer. */
    const struct hed_cuda_ops *cuda;
    const struct hed_nvml_ops *nvml;
    const struct hed_cuda_ops *cuda_rest;
    const struct hed_nvml_ops *nvml_rest;
    CUresult (*cuda_any)(struct hed_layer *self, enum hed_cuda_call id, void *args);
    nvmlReturn_t (*nvml_any)(struct hed_layer *self, enum hed_nvml_call id, void *args);

    /* For calls that do not come through the chain, because the program's driver makes them itself
     * (src/see/inject): whether the layer does anything about a call, and what it does before and
     * after it, in the call's thread. `memo` has HED_LAYER_MEMO bytes, aligned to 16, and belongs
     * to the call. All three or none: NULL means that the layer does nothing about such calls. */
    bool (*sees)(enum hed_cuda_call id);
    void (*before)(struct hed_layer *self, enum hed_cuda_call id, const void *args, void *memo);
    void (*after)(struct hed_layer *self, enum hed_cuda_call id, const void *args, void *memo,
                  CUresult result);

    /* Makes self->state. Layers below are already up. NULL: there is nothing to do. */
    int (*init)(struct hed_layer *self, const struct hed_config *config, struct hed_why *why);

    /* At the end of the process, top layer first. Calls may still come afterwards, from the
     * application's own exit handlers: state must stay usable. NULL: there is nothing to do. */
    void (*fini)(struct hed_layer *self);

    /* In the child of a fork, where only the calling thread exists: leave the parent's files and
     * connections alone. The layer is not used again; a new chain is built on the child's first
     * call. NULL: there is nothing to do. */
    void (*forked)(struct hed_layer *self);

    /* The program told us something through the public API. 0, or HED_E... if the layer refuses it
     * and has logged the reason. NULL: the layer does not need to know. */
    int (*note)(struct hed_layer *self, enum hed_note note, const char *text);

    /* The program wants something of a layer. HED_ENOTSUP: of another one, so it is asked next.
     * NULL: always that. */
    int (*control)(struct hed_layer *self, struct hed_control *c, struct hed_why *why);

    /* The backend has taken the program off its GPUs (`away`), with all that it has there, or has
     * brought it back, which took `copy_ns`. In a thread of the backend's, while the program is
     * held. NULL: the layer does not need to know. */
    void (*away)(struct hed_layer *self, bool away, uint64_t copy_ns);

    /* Adds what the layer has counted. NULL: nothing. */
    void (*count)(struct hed_layer *self, struct hed_counts *out);

    /* Backend: the address of an exported name in the library that it uses. NULL: there is none, or
     * it uses no library. */
    void *(*symbol)(struct hed_layer *self, enum hed_api api, const char *name);

    /* Backend: it keeps the state of a driver itself, so it must be told of a fork. */
    bool soft;
};

/* Calls the next layer: hed_next(self, cuMemAlloc_v2, a). */
#define hed_next(self, call, a) ((self)->next->cuda->call((self)->next, (a)))
#define hed_next_nvml(self, call, a) ((self)->next->nvml->call((self)->next, (a)))

/* Makes a call of our own, in this layer: hed_call(self->next, cuMemFree_v2, .dptr = at). */
#define hed_call(layer, call, ...) ((layer)->cuda->call((layer), &(struct hed_##call){__VA_ARGS__}))
#define hed_call_nvml(layer, call, ...) \
    ((layer)->nvml->call((layer), &(struct hed_##call){__VA_ARGS__}))

/* Calls a layer by number. */
HED_EXPORT CUresult hed_cuda_invoke(struct hed_layer *layer, enum hed_cuda_call id, void *args);
HED_EXPORT nvmlReturn_t hed_nvml_invoke(struct hed_layer *layer, enum hed_nvml_call id, void *args);

/* Generated tables for the calls that a type does not override. */
extern const struct hed_cuda_ops hed_cuda_forward;
extern const struct hed_cuda_ops hed_cuda_any;
extern const struct hed_nvml_ops hed_nvml_forward;
extern const struct hed_nvml_ops hed_nvml_any;

/* For generated code: a number that is not a call, which is a bug of ours; and a function that
 * NVIDIA's library does not have, which is counted and logged once. */
CUresult hed_cuda_no_such_call(enum hed_cuda_call id);
nvmlReturn_t hed_nvml_no_such_call(enum hed_nvml_call id);
CUresult hed_cuda_not_in_driver(struct hed_layer *self, enum hed_cuda_call id);
nvmlReturn_t hed_nvml_not_in_driver(struct hed_layer *self, enum hed_nvml_call id);

/* Memory for an instance and its operation tables, which are the type's with all entries filled. */
struct hed_layer_room {
    struct hed_layer layer;
    struct hed_cuda_ops cuda;
    struct hed_nvml_ops nvml;
};

/* Makes an instance in memory of the caller's, without calling init. */
HED_EXPORT void hed_layer_place(struct hed_layer_room *room, const struct hed_layer_type *type,
                                struct hed_layer *next);

/* Makes an instance of a type above `next`, and calls init. It may be freed with hed_layer_free
 * only when no call can be under way any more. */
int hed_layer_create(const struct hed_layer_type *type, struct hed_layer *next,
                     const struct hed_config *config, struct hed_layer **out, struct hed_why *why);
void hed_layer_free(struct hed_layer *layer);
