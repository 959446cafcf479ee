/* A layer of your own: a library that heddle puts between a program and the GPU, and that sees the
 * program's CUDA calls, and may answer, change, delay or count them.
 *
 *     #include <heddle/layer.h>
 *
 *     static CUresult
 *     count_alloc(struct heddle_layer *self, void *args)
 *     {
 *         struct hed_cuMemAlloc_v2 *a = args;
 *         const CUresult r = heddle_next(self, cuMemAlloc_v2, a);
 *         ...
 *         return r;
 *     }
 *
 *     static const struct heddle_layer_override overrides[] = {
 *         {HED_cuMemAlloc_v2, count_alloc},
 *         {0},
 *     };
 *
 *     const struct heddle_layer_plugin heddle_layer_plugin = {
 *         .abi = HEDDLE_LAYER_ABI,
 *         .size = sizeof heddle_layer_plugin,
 *         .name = "count",
 *         .overrides = overrides,
 *     };
 *
 *     cc -shared -fPIC $(pkg-config --cflags heddle) count.c -o count.so
 *     heddle run --set plugins=$PWD/count.so -- ./app
 *
 * The library is not linked with heddle, and does not include cuda.h: gen/cuda_calls.h has CUDA's
 * types, and for each call a struct of its arguments, with the names of NVIDIA's documentation.
 *
 * Rules:
 * 1. A function makes the call happen by heddle_next(), or answers it itself. It never calls an
 *    exported function such as cuMemAlloc.
 * 2. No lock is held while heddle_next() runs: the call may block, or call back.
 * 3. `args` belongs to the caller. Values that are changed on the way down are put back; outputs
 *    are valid after CUDA_SUCCESS only.
 * 4. Functions run in the program's threads, several at once; init and fini run alone.
 * 5. Nothing is printed and the process is never ended: there is host->log, and a result.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "gen/cuda_calls.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. It rises when a plug-in that was built with an older header would
 * no longer work; a heddle says which versions it takes, and refuses the others by name. What can
 * be added without that (functions at the end of a table, calls) does not raise it: both sides say
 * how large their structs are, and a call's number and arguments never change. */
#define HEDDLE_LAYER_ABI 1

struct heddle_layer;

enum heddle_log_level { HEDDLE_LOG_ERROR, HEDDLE_LOG_WARN, HEDDLE_LOG_INFO, HEDDLE_LOG_DEBUG };

/* What heddle does for a layer. */
struct heddle_layer_host {
    uint32_t abi;        /* of this heddle, HEDDLE_LAYER_ABI */
    uint32_t size;       /* of this struct: what lies beyond it is not there */
    const char *version; /* heddle's, "0.3.0" */

    /* Makes the call in the layer below. `args` is the struct of that call. */
    CUresult (*next)(struct heddle_layer *self, enum hed_cuda_call call, void *args);

    /* The name of a call, "cuMemAlloc_v2"; NULL if there is no such call. */
    const char *(*call_name)(enum hed_cuda_call call);

    /* Writes a line to heddle's log: standard error, if the user asked for it (setting `log`,
     * component `plugin`). */
    void (*log)(struct heddle_layer *self, enum heddle_log_level level, const char *text);
};

/* One instance: there is one in a process, and another one in each child that it forks. */
struct heddle_layer {
    const struct heddle_layer_host *host;
    const char *options; /* what the user wrote after the path, "" if nothing; stays valid */
    void *state;         /* the plug-in's own, set by its init */
};

typedef CUresult (*heddle_layer_function)(struct heddle_layer *self, void *args);

/* `function` gets the calls of this number; its `args` is a struct hed_NAME. */
struct heddle_layer_override {
    enum hed_cuda_call call; /* HED_NAME; 0 ends the list */
    heddle_layer_function function;
};

/* What a plug-in exports as `heddle_layer_plugin`. */
struct heddle_layer_plugin {
    uint32_t abi;  /* HEDDLE_LAYER_ABI */
    uint32_t size; /* of this struct */

    const char *name; /* 1 to 31 small letters, digits and '-', for messages */

    /* The calls that it sees. NULL: none. Calls that this heddle does not know are ignored, because
     * no program can make them. */
    const struct heddle_layer_override *overrides;

    /* Gets the calls that are not in the list. NULL: they go to the layer below, at no cost. */
    CUresult (*any)(struct heddle_layer *self, enum hed_cuda_call call, void *args);

    /* Sets self->state. Other than 0: the layer cannot start; `why` (size bytes) takes the reason,
     * and the program's CUDA calls fail. NULL: nothing to do. */
    int (*init)(struct heddle_layer *self, char *why, size_t size);

    /* At the end of the process. Calls may still come afterwards, from the program's exit handlers:
     * the state must stay usable. NULL: nothing to do. */
    void (*fini)(struct heddle_layer *self);

    /* In the child of a fork, for the instance of the parent, which is not used again: leaves the
     * parent's files and connections alone. NULL: nothing to do. */
    void (*forked)(struct heddle_layer *self);
};

__attribute__((visibility("default"))) extern const struct heddle_layer_plugin heddle_layer_plugin;

/* Makes the call in the layer below: heddle_next(self, cuMemAlloc_v2, a). */
#define heddle_next(self, name, a) ((self)->host->next((self), HED_##name, (a)))

/* Makes a call of its own there: heddle_call(self, cuMemFree_v2, .dptr = at). */
#define heddle_call(self, name, ...) \
    ((self)->host->next((self), HED_##name, &(struct hed_##name){__VA_ARGS__}))

#ifdef __cplusplus
}
#endif
