/* Libraries: images that belong to no context, and their kernels.
 *
 *   LoadData  : the image is recognised (and copied unless the program keeps it)
 *   GetKernel : the image is opened for a compute capability, once: struct hed_program
 *   launch    : the program is loaded into a context, once: struct hed_module
 *
 * Invariants:
 * 1. At most one thread opens or loads at a time (`busy`); it does so without the lock.
 * 2. Kernels live as long as the library object; a kernel's handle holds a reference to it.
 * 3. A managed variable has one address, whatever contexts the library is loaded in.
 */
#pragma once

#include <pthread.h>

#include "driver/module/jit.h"
#include "driver/module/module.h"
#include "kernel/fatbin.h"

struct hed_buf;

struct hed_kernel {
    struct hed_object object; /* must come first */
    struct hed_library *library;
    struct hed_kernel *next;           /* in its bucket; guarded by library->lock */
    char *name;                        /* owned */
    const struct hed_program *program; /* the program it was found in, and its position there;
                                        * others may differ */
    uint32_t index;
    struct hed_settings *settings; /* by device ordinal */
};

/* The library's module in a context. */
struct hed_library_in_context {
    struct hed_library_in_context *next;
    struct hed_context *ctx;   /* for comparing only; a dead context removes its entry */
    struct hed_module *module; /* a reference */
};

struct hed_managed {
    struct hed_managed *next;
    const struct hed_code_var *var; /* in the program that was opened first */
    uint64_t at;
    bool placed; /* addresses in its initial value have been filled in */
};

struct hed_library {
    struct hed_object object; /* must come first */
    struct hed_driver *driver;
    struct hed_image image;
    void *copy;             /* a copy of the image, owned; or NULL */
    struct hed_bytes file;  /* the file that the image was mapped from, if any */
    struct hed_jit_how how; /* how to open it; its log is NULL */

    struct hed_lock lock; /* rank HED_RANK_LIBRARY; guards what follows */
    pthread_cond_t changed;
    bool busy, unloaded;
    struct hed_program *programs[HED_PROFILE_DEVICES_MAX]; /* references, by device */
    bool spent[HED_PROFILE_DEVICES_MAX]; /* loaded in the primary context before it was reset */
    struct hed_kernel **kernels;         /* buckets by name */
    uint32_t bucket_mask;
    struct hed_library_in_context *contexts;
    struct hed_managed *managed;
    struct hed_unlisted_variable *found; /* managed variables that were asked for: unlisted.c */

    /* Managed variables are allocated in this context, which is none of the program's, so that they
     * are not freed with one. Only its device matters. */
    struct hed_context owner;
};

/* Makes a library with a handle from an image. Takes ownership of `copy` and `file` even on
 * failure. */
CUresult hed_library_create(struct hed_driver *d, const struct hed_image *image, void *copy,
                            struct hed_bytes file, struct hed_library **out);

/* The library of a handle, with a reference that the caller gives back by hed_object_put(); NULL if
 * there is none. */
static inline struct hed_library *
hed_library_find(struct hed_driver *d, CUlibrary handle)
{
    return (struct hed_library *)hed_handles_get(d->handles, HED_KIND_LIBRARY,
                                                 (uint64_t)(uintptr_t)handle);
}

static inline struct hed_kernel *
hed_kernel_find(struct hed_driver *d, CUkernel handle)
{
    return (struct hed_kernel *)hed_handles_get(d->handles, HED_KIND_KERNEL,
                                                (uint64_t)(uintptr_t)handle);
}

/* The image opened for a device. No reference is added: it lives as long as the library. */
CUresult hed_library_program(struct hed_library *l, struct hed_device *dev, struct hed_buf *log,
                             struct hed_program **out);

/* The library's module in a context, loaded if necessary, with a reference. */
CUresult hed_library_module(struct hed_library *l, struct hed_context *c, struct hed_module **out);

/* The same if it has been loaded there, without a reference; NULL if not. */
struct hed_module *hed_library_module_in_locked(struct hed_library *l, const struct hed_context *c);

/* Finds a kernel by name: NOT_FOUND. Its handle stays the same. kernel.c */
CUresult hed_library_kernel(struct hed_library *l, struct hed_device *dev, const char *name,
                            CUkernel *out);

/* The function that a kernel is in a context, with a reference. kernel.c */
CUresult hed_kernel_function(struct hed_kernel *k, struct hed_context *c,
                             struct hed_function **out);

/* Like hed_library_managed(), for a variable that the code does not list: kernels and copies can
 * reach it, but the program's host code cannot. forget_unlisted is for when the library goes.
 * unlisted.c */
CUresult hed_library_unlisted(struct hed_library *l, struct hed_code *code, const char *name,
                              uint64_t *at, uint64_t *size);
void hed_library_forget_unlisted(struct hed_library *l);
int hed_library_each_unlisted(const struct hed_library *l, hed_unlisted_fn fn, void *arg);

/* Tells the machine about a setting, for every function that the kernel is on a device.
 * settings.c */
CUresult hed_kernel_tell(struct hed_kernel *k, struct hed_device *dev, CUfunction_attribute a,
                         int value);

/* The address of a managed variable: NOT_FOUND. */
CUresult hed_library_managed(struct hed_library *l, struct hed_device *dev, const char *name,
                             uint64_t *at, uint64_t *size);

/* A context is being destroyed: unloads the library's module there. */
void hed_library_context_gone(struct hed_library *l, struct hed_context *c);

/* Removes the handle and unloads the library everywhere. */
CUresult hed_library_unload(struct hed_driver *d, CUlibrary handle);
