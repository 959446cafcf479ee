/* Libraries: images that belong to no context, and their kernels.
 *
 *   LoadData  : the image is recognised (and copied unless the program keeps it)
 *   GetKernel : the image is opened for a compute capability, once: struct hed_program
 *   launch    : the program is loaded into a context, once: struct hed_module
 *
 * Invariants:
 * 1. At most one thread opens or loads at a time (`busy`); it does so without the lock.
 * 2. Kernels live as long as the library object; a kernel's name holds a reference on it.
 * 3. A managed variable has one address, whatever contexts the library is loaded in.
 */
#pragma once

#include <pthread.h>

#include "driver/module/jit.h"
#include "driver/module/module.h"
#include "fatbin/image.h"

struct hed_buf;

struct hed_kernel {
    struct hed_object object; /* first */
    struct hed_library *library;
    struct hed_kernel *next;           /* in its bucket; guarded by library->lock */
    char *name;                        /* owned */
    const struct hed_program *program; /* the one it was found in, and where; others may differ */
    uint32_t index;
    struct hed_settings *settings; /* by device ordinal */
};

/* The library's module in a context. */
struct hed_library_in_context {
    struct hed_library_in_context *next;
    struct hed_context *ctx;   /* identity only: a dead context removes its entry */
    struct hed_module *module; /* a reference */
};

struct hed_managed {
    struct hed_managed *next;
    const struct hed_code_var *var; /* of the program that was opened first */
    uint64_t at;
};

struct hed_library {
    struct hed_object object; /* first */
    struct hed_driver *driver;
    struct hed_image image;
    void *copy;             /* of the image, owned; or NULL */
    struct hed_bytes file;  /* the image, if it was mapped from a file */
    struct hed_jit_how how; /* it is to be opened; log: NULL */

    struct hed_lock lock; /* rank HED_RANK_LIBRARY; guards what follows */
    pthread_cond_t changed;
    bool busy, unloaded;
    struct hed_program *programs[HED_PROFILE_DEVICES_MAX]; /* by device; references */
    struct hed_kernel **kernels;                           /* buckets by name */
    uint32_t bucket_mask;
    struct hed_library_in_context *contexts;
    struct hed_managed *managed;
    struct hed_unlisted_variable *found; /* unlisted.c: managed ones that were asked for */

    /* What managed variables are allocated in: no context of the program's, so that none takes them
     * with it. Only its device counts. */
    struct hed_context owner;
};

/* A library of an image, with a handle. Takes `copy` and `file` in any case. */
CUresult hed_library_create(struct hed_driver *d, const struct hed_image *image, void *copy,
                            struct hed_bytes file, struct hed_library **out);

/* The library of a handle, to be put back with hed_object_put(&l->object); NULL: there is none. */
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

/* The image opened for a device; no reference: it lives as long as the library. */
CUresult hed_library_program(struct hed_library *l, struct hed_device *dev, struct hed_buf *log,
                             struct hed_program **out);

/* The library's module in a context, loaded if need be; a reference. */
CUresult hed_library_module(struct hed_library *l, struct hed_context *c, struct hed_module **out);

/* A kernel by name: NOT_FOUND. A handle that stays the same. */
CUresult hed_library_kernel(struct hed_library *l, struct hed_device *dev, const char *name,
                            CUkernel *out);

/* A kernel as a function in a context; a reference. */
CUresult hed_kernel_function(struct hed_kernel *k, struct hed_context *c,
                             struct hed_function **out);

/* unlisted.c. As hed_library_managed, for a variable that the code does not list: kernels and
 * copies reach it, the program itself does not. Forgetting: the library goes. */
CUresult hed_library_unlisted(struct hed_library *l, struct hed_code *code, const char *name,
                              uint64_t *at, uint64_t *size);
void hed_library_forget_unlisted(struct hed_library *l);

/* settings.c. Tells the machine of a setting, for all functions that the kernel is on a device. */
CUresult hed_kernel_tell(struct hed_kernel *k, struct hed_device *dev, CUfunction_attribute a,
                         int value);

/* A managed variable's address: NOT_FOUND. */
CUresult hed_library_managed(struct hed_library *l, struct hed_device *dev, const char *name,
                             uint64_t *at, uint64_t *size);

/* A context dies, and with it the library's module there. */
void hed_library_context_gone(struct hed_library *l, struct hed_context *c);

/* Takes the name away, unloads it everywhere. */
CUresult hed_library_unload(struct hed_driver *d, CUlibrary handle);
