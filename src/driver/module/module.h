/* Modules and functions, and what launching needs. Libraries and kernels are in
 * driver/module/library.h.
 *
 *   image (fat binary, PTX, cubin) -> struct hed_program (module/image.h) -> module in a context
 *
 * A library does not belong to a context. It is loaded into one, as a module, when one of its
 * kernels or variables is first used there. Calls that take a CUfunction also accept a CUkernel.
 *
 * Invariants:
 * 1. A function has a reference to its module, and work has one to its function. So code, variables
 *    and settings live as long as the work that uses them.
 * 2. A function has a handle from when it is first asked for until its module is unloaded or its
 *    context is destroyed; asking again gives the same one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver/context/context.h"
#include "driver/handle.h"
#include "driver/machine.h"

struct hed_library;
struct hed_old_launch;
struct hed_program;
struct hed_reference;
struct hed_unlisted_variable;
struct hed_work;

/* Settings of a function, or of a kernel on a device. Relaxed: each value stands for itself; a
 * launch at the same time as a change sees the old value or the new one. */
struct hed_settings {
    _Atomic int max_dynamic_shared; /* bytes; -1: not set */
    _Atomic int carveout;           /* -1: no preference */
    _Atomic int cluster[3];         /* 0 if not set */
    _Atomic int nonportable_cluster;
    _Atomic int cluster_policy;
    _Atomic int cache_config;
};

void hed_settings_init(struct hed_settings *s);

struct hed_function {
    struct hed_object object;  /* must come first */
    struct hed_module *module; /* a reference */
    uint32_t kernel;           /* index in module->code->kernels */
    CUfunction handle;
    struct hed_settings own;
    struct hed_settings *settings; /* its own, or those of the library's kernel on this device */
    _Atomic bool loaded;           /* the machine has prepared it */
    _Atomic bool refusal_logged;   /* the log has said why it cannot run */
    _Atomic uint8_t late;          /* how often a machine has waited for it in vain */
    struct hed_old_launch *old; /* for cuParamSet and its like, or NULL; guarded by module->lock */
};

struct hed_module {
    struct hed_object object; /* must come first */
    struct hed_driver *driver;
    struct hed_context *ctx; /* a reference */
    struct hed_module *next; /* in ctx->modules; guarded by ctx->lock */
    struct hed_program *program;
    struct hed_code *code;       /* that of the program */
    uint64_t *variables;         /* addresses of code->vars; 0 for those without one */
    uint64_t block, managed;     /* memory that is given back with the module; 0 if there is none */
    struct hed_library *library; /* a reference to the library whose module it is; or NULL */

    struct hed_lock lock; /* rank HED_RANK_LIBRARY; guards what follows */
    /* code->kernel_count of them; made when first asked for. Written under the lock; a thread that
     * keeps the module from being unloaded may read them without it. */
    _Atomic(struct hed_function *) *functions;
    bool unloaded;                       /* no more functions or references may be made */
    struct hed_reference **references;   /* by variable; NULL until one is asked for */
    struct hed_unlisted_variable *found; /* variables that were asked for: unlisted.c */
};

/* Loads a program into a context. If `library` is NULL, managed variables get memory of their own;
 * otherwise managed[i] is the address of code->vars[i] if that is managed. The module has a handle,
 * and the caller gets a reference as well. */
CUresult hed_module_create(struct hed_context *c, struct hed_program *p,
                           struct hed_library *library, const uint64_t *managed,
                           struct hed_module **out);

/* Removes its handle and its functions' handles, and takes it out of the context's list. */
void hed_module_unload(struct hed_module *m);

/* The module of a handle, with a reference that the caller gives back by hed_object_put(); NULL if
 * there is none. */
struct hed_module *hed_module_find(struct hed_driver *d, CUmodule handle);

/* A function by position, made if necessary, with a reference. `settings` may be NULL. */
CUresult hed_module_function(struct hed_module *m, uint32_t kernel, struct hed_settings *settings,
                             struct hed_function **out);

/* The address of a variable by name: NOT_FOUND. Either result may be NULL. */
CUresult hed_module_variable(struct hed_module *m, const char *name, CUdeviceptr *at,
                             size_t *bytes);

/* The function that a CUfunction or CUkernel stands for in a context; loads a library's module if
 * necessary. INVALID_HANDLE, also for a function of another context; errors of loading. The caller
 * gives the reference back by hed_object_put(). */
CUresult hed_function_find(struct hed_context *c, CUfunction handle, struct hed_function **out);

/* The function of a CUfunction, wherever it is loaded. hed_function_get() refuses a CUkernel with
 * INVALID_HANDLE; hed_function_or_kernel() takes it in the thread's current context. */
CUresult hed_function_get(struct hed_layer *self, CUfunction handle, struct hed_function **out);
CUresult hed_function_or_kernel(struct hed_layer *self, CUfunction handle,
                                struct hed_function **out);

/* A context is being destroyed: its work is done, but its memory has not been given back yet. */
void hed_module_context_gone(struct hed_context *c);

static inline const struct hed_code_kernel *
hed_function_kernel(const struct hed_function *f)
{
    return &f->module->code->kernels[f->kernel];
}

static inline const struct hed_profile *
hed_function_profile(const struct hed_function *f)
{
    return &f->module->ctx->device->info.profile;
}

/* ---- unlisted.c: variables that code does not list ------------------------------------------- */

/* Like hed_module_variable(), for a variable that the code does not list. forget_unlisted is for
 * when the module goes. */
CUresult hed_module_unlisted(struct hed_module *m, const char *name, CUdeviceptr *at,
                             size_t *bytes);
void hed_module_forget_unlisted(struct hed_module *m);

/* Calls fn for the variables that have been asked for so far, until it fails. For when no other
 * thread uses the module. hed_library_each_unlisted (library.h) does so for managed ones. */
typedef int (*hed_unlisted_fn)(void *arg, const char *name, uint64_t at, uint64_t size);
int hed_module_each_unlisted(const struct hed_module *m, hed_unlisted_fn fn, void *arg);

/* ---- reference.c: textures and surfaces by name ---------------------------------------------- */

/* Removes the handles of a module's references, which is being unloaded. */
void hed_module_forget_references(struct hed_module *m);

/* ---- function.c ------------------------------------------------------------------------------ */

/* An attribute of a kernel on a device with its settings: INVALID_VALUE. */
CUresult hed_attribute_get(const struct hed_code_kernel *k, const struct hed_profile *p,
                           const struct hed_settings *s, CUfunction_attribute a, int *out);
CUresult hed_attribute_set(const struct hed_code_kernel *k, const struct hed_profile *p,
                           struct hed_settings *s, CUfunction_attribute a, int value);

/* The most dynamic shared memory that a launch may ask for. */
uint32_t hed_dynamic_shared_max(const struct hed_code_kernel *k, const struct hed_profile *p,
                                const struct hed_settings *s);

/* Has the machine compile the function: NO_BINARY_FOR_GPU, INVALID_PTX, ... The log says why.
 * `block` has the dimensions of the blocks that will be launched; NULL if they are not known. */
CUresult hed_function_prepare(struct hed_function *f, const uint32_t *block);

/* Logs why a launch is refused, once per function: programs try again, and libraries try hundreds
 * of times. */
void hed_function_refused(struct hed_function *f, CUresult r, const char *why);

/* ---- launch.c -------------------------------------------------------------------------------- */

/* Makes work of kind HED_WORK_KERNEL from the parameters of a launch or a node: makes the checks
 * that CUDA makes before the call returns, and copies the parameters. config->hStream is ignored.
 * `params` and `extra` are as for cuLaunchKernel. */
CUresult hed_kernel_work_create(struct hed_context *c, CUfunction handle,
                                const CUlaunchConfig *config, void **params, void **extra,
                                struct hed_work **out);
