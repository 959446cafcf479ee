/* Modules and functions; what launching takes. Libraries and kernels: driver/module/library.h.
 *
 *   image (fat binary, PTX, cubin) -> struct hed_program (module/image.h) -> module in a context
 *
 * A library is context-independent: it is loaded into a context, as a module, when one of its
 * kernels or variables is first asked for there. A CUkernel is recognised where a CUfunction is
 * wanted.
 *
 * Invariants:
 * 1. A function holds a reference on its module, and work holds one on its function: so code,
 *    variables and settings are there as long as work that uses them.
 * 2. A function has a name (handle) from when it is first asked for until its module is unloaded or
 *    its context dies; asking again gives the same one.
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
struct hed_unlisted_variable;
struct hed_work;

/* What the program may set of a function, or of a kernel on a device. Relaxed: each value stands
 * for itself; a launch that runs beside a setting sees the old or the new one. */
struct hed_settings {
    _Atomic int max_dynamic_shared; /* bytes; -1: not set */
    _Atomic int carveout;           /* -1: no preference */
    _Atomic int cluster[3];         /* 0 for not set */
    _Atomic int nonportable_cluster;
    _Atomic int cluster_policy;
    _Atomic int cache_config;
};

void hed_settings_init(struct hed_settings *s);

struct hed_function {
    struct hed_object object;  /* first */
    struct hed_module *module; /* a reference */
    uint32_t kernel;           /* index in module->code->kernels */
    CUfunction handle;
    struct hed_settings own;
    struct hed_settings *settings; /* own, or those of the library's kernel on this device */
    _Atomic bool loaded;           /* the machine has prepared it */
    _Atomic bool refusal_logged;   /* the log says why it cannot run */
    struct hed_old_launch *old;    /* of cuParamSet and its like; NULL: never used. module->lock */
};

struct hed_module {
    struct hed_object object; /* first */
    struct hed_driver *driver;
    struct hed_context *ctx; /* a reference */
    struct hed_module *next; /* ctx->modules; guarded by ctx->lock */
    struct hed_program *program;
    struct hed_code *code;       /* the program's */
    uint64_t *variables;         /* addresses of code->vars; 0 for those that have none */
    uint64_t block, managed;     /* memory that is given back with the module; 0: none */
    struct hed_library *library; /* a reference to the library it is the module of; or NULL */

    struct hed_lock lock; /* rank HED_RANK_LIBRARY; guards what follows */
    /* code->kernel_count; made when first asked for. Written under lock; whoever keeps the module
     * from being unloaded may read them without. */
    _Atomic(struct hed_function *) *functions;
    bool unloaded;                       /* no more functions are made */
    struct hed_unlisted_variable *found; /* unlisted.c: those that were asked for */
};

/* Loads a program into a context. `library` may be NULL; then managed variables get memory of their
 * own, else managed[i] has the address of those of code->vars that are managed. The module has a
 * handle; a reference is handed out besides. */
CUresult hed_module_create(struct hed_context *c, struct hed_program *p,
                           struct hed_library *library, const uint64_t *managed,
                           struct hed_module **out);

/* Takes away its name, its functions' names and its place in the context. */
void hed_module_unload(struct hed_module *m);

/* The module of a handle, to be put back with hed_object_put(&m->object); NULL: there is none. */
struct hed_module *hed_module_find(struct hed_driver *d, CUmodule handle);

/* A function by position, made if need be, and a reference on it. `settings` may be NULL. */
CUresult hed_module_function(struct hed_module *m, uint32_t kernel, struct hed_settings *settings,
                             struct hed_function **out);

/* The address of a variable that can be found by name: NOT_FOUND. Either result may be NULL. */
CUresult hed_module_variable(struct hed_module *m, const char *name, CUdeviceptr *at,
                             size_t *bytes);

/* The function behind a CUfunction or CUkernel in a context, loading a library's module if need be.
 * INVALID_HANDLE, also for a function of another one; errors of loading. A reference:
 * hed_object_put(&f->object). */
CUresult hed_function_find(struct hed_context *c, CUfunction handle, struct hed_function **out);

/* The function of a CUfunction, wherever it is loaded; a CUkernel is INVALID_HANDLE, or is taken in
 * the thread's current context. */
CUresult hed_function_get(struct hed_layer *self, CUfunction handle, struct hed_function **out);
CUresult hed_function_or_kernel(struct hed_layer *self, CUfunction handle,
                                struct hed_function **out);

/* A context dies: its work is done, its memory not yet given back. */
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

/* As hed_module_variable. Forgetting: the module goes. */
CUresult hed_module_unlisted(struct hed_module *m, const char *name, CUdeviceptr *at,
                             size_t *bytes);
void hed_module_forget_unlisted(struct hed_module *m);

/* ---- function.c ------------------------------------------------------------------------------ */

/* Attributes of a kernel on a device with its settings: INVALID_VALUE. */
CUresult hed_attribute_get(const struct hed_code_kernel *k, const struct hed_profile *p,
                           const struct hed_settings *s, CUfunction_attribute a, int *out);
CUresult hed_attribute_set(const struct hed_code_kernel *k, const struct hed_profile *p,
                           struct hed_settings *s, CUfunction_attribute a, int value);

/* How much dynamic shared memory a launch may ask for. */
uint32_t hed_dynamic_shared_max(const struct hed_code_kernel *k, const struct hed_profile *p,
                                const struct hed_settings *s);

/* Has the machine compile it: NO_BINARY_FOR_GPU, INVALID_PTX, ... named in the log. */
CUresult hed_function_prepare(struct hed_function *f);

/* ---- launch.c -------------------------------------------------------------------------------- */

/* Work of kind HED_WORK_KERNEL out of what a launch or a graph's node says: every check that CUDA
 * makes at once, parameters copied. config->hStream is not looked at. `params` and `extra` as
 * cuLaunchKernel has them. */
CUresult hed_kernel_work_create(struct hed_context *c, CUfunction handle,
                                const CUlaunchConfig *config, void **params, void **extra,
                                struct hed_work **out);
