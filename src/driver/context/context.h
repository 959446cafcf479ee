/* Contexts: primary and made ones, the stack of each thread, storage of the runtime in them.
 *
 *   made (cuCtxCreate)      : alive --cuCtxDestroy--> destroyed
 *   primary                 : inactive --first retain--> active --last release, reset--> inactive
 *
 * Invariants:
 * 1. A primary context's object and handle live as long as the driver; its contents (streams,
 *    modules, memory, storage) only while it is active.
 * 2. `generation` goes up whenever contents die, so that what a thread has cached about a context
 *    can be checked without a lock.
 * 3. error is set once, by the first asynchronous failure, and stays until the context is
 *    destroyed or, for a primary context, reset.
 * 4. A thread's stack holds a reference to each context on it, so the current context's memory is
 *    there however it dies; whether it still is a context, `alive` says.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "driver/driver.h"
#include "driver/handle.h"

struct hed_module;
struct hed_storage;

#define HED_LIMITS 16 /* CUlimit numbers that are kept */

struct hed_context {
    struct hed_object object; /* first */
    struct hed_device *device;
    struct hed_context *next; /* driver->contexts */
    bool primary;
    _Atomic bool alive;   /* made and not destroyed, or primary and active */
    bool closing;         /* contents are going, or coming; guarded by driver->contexts_lock */
    uint32_t retains;     /* primary; guarded by driver->contexts_lock */
    uint32_t attaches;    /* made: cuCtxAttach; guarded by driver->contexts_lock */
    unsigned flags;       /* CU_CTX_...; guarded by driver->contexts_lock */
    unsigned state_flags; /* primary: cuDevicePrimaryCtxGetState; guarded likewise */
    unsigned version;     /* cuCtxGetApiVersion */
    _Atomic uint32_t generation;
    _Atomic int error; /* CUresult: sticky */
    uint64_t id;       /* cuCtxGetId: never used twice */

    struct hed_lock lock;        /* guards the lists below; rank HED_RANK_CONTEXT */
    struct hed_stream *streams;  /* all but the default ones */
    struct hed_stream *legacy;   /* the legacy default stream; made with the context */
    struct hed_module *modules;  /* loaded in it, libraries' included */
    struct hed_storage *storage; /* context-local storage: storage.c */
    _Atomic uint64_t limits[HED_LIMITS];
    _Atomic int cache_config;     /* CUfunc_cache */
    CUsharedconfig shared_config; /* constant while it is alive */
    _Atomic uint64_t peers;       /* bit per device ordinal: cuCtxEnablePeerAccess */

    void *own; /* the machine's bytes, behind this struct */
};

/* Longer than the call: keeps the memory of the context object, not its contents. */
void hed_context_ref(struct hed_context *c);
void hed_context_unref(struct hed_context *c);

/* The context of a handle, NULL if it is none or destroyed. Good for the length of the call. The
 * second takes a primary context that is not active, too. */
struct hed_context *hed_context_find(struct hed_driver *d, CUcontext handle);
struct hed_context *hed_context_find_inactive(struct hed_driver *d, CUcontext handle);

static inline CUcontext
hed_context_handle(const struct hed_context *c)
{
    return (CUcontext)(uintptr_t)c->object.handle;
}

static inline bool
hed_context_alive(const struct hed_context *c)
{
    /* Acquire: pairs with the release when it is opened, so that its contents are seen. */
    return atomic_load_explicit(&c->alive, memory_order_acquire);
}

/* Where the context's work runs, and the state that the machine's operations take. */
static inline const struct hed_machine *
hed_machine_of(const struct hed_context *c, void **m)
{
    const struct hed_driver *d = c->device->driver;

    *m = d->machine_state;
    return d->machine;
}

/* The first asynchronous failure of a context; later ones are dropped. */
void hed_context_fail(struct hed_context *c, CUresult error);

static inline CUresult
hed_context_error(const struct hed_context *c)
{
    const int error = atomic_load_explicit(&c->error, memory_order_acquire);

    /* Relaxed: whoever sees it a little later finds the machine gone. */
    return (CUresult)(error ? error
                            : atomic_load_explicit(&c->device->driver->lost, memory_order_relaxed));
}

/* ---- life: context.c ------------------------------------------------------------------------- */

/* A made context, alive and on no stack. OUT_OF_MEMORY. */
CUresult hed_context_create(struct hed_device *dev, unsigned flags, struct hed_context **out);

/* Destroys a made context: waits for its work, then everything in it goes. CONTEXT_IS_DESTROYED if
 * that has been done, or is being done, by somebody else. */
CUresult hed_context_destroy(struct hed_context *c);

/* Retains the primary context of a device, as cuDevicePrimaryCtxRetain; release likewise. */
CUresult hed_primary_retain(struct hed_device *dev, struct hed_context **out);
CUresult hed_primary_release(struct hed_device *dev);
CUresult hed_primary_reset(struct hed_device *dev);

/* Waits for everything that was put on the context's streams: its sticky error, or success. */
CUresult hed_context_synchronize(struct hed_context *c);

/* CU_LIMIT_... as a new context has them. */
void hed_context_default_limits(struct hed_context *c);

/* What streams do about contexts (stream.c): the default stream comes with the context;
 * everything goes, nothing runs any more. */
CUresult hed_stream_context_made(struct hed_context *c);
/* A program may not wait for a context that a stream is captured in: the capture is invalid then,
 * and this the error. What only frees memory or code waits all the same. */
CUresult hed_stream_context_uncaptured(struct hed_context *c);
void hed_stream_context_gone(struct hed_context *c);

/* ---- the calling thread's stack: stack.c ----------------------------------------------------- */

/* The context on top, alive or not; NULL where the stack is empty. */
struct hed_context *hed_thread_context(struct hed_driver *d);

/* push: false when there is no memory. set replaces the top, or pushes on an empty stack. */
bool hed_thread_push(struct hed_driver *d, struct hed_context *c);
bool hed_thread_set(struct hed_driver *d, struct hed_context *c);
void hed_thread_pop(struct hed_driver *d);

/* Keeps a reference that the caller hands over for the length of the call. */
struct hed_context *hed_thread_borrow(struct hed_driver *d, struct hed_context *c);

/* Is the driver ready for calls? NOT_INITIALIZED, DEINITIALIZED. */
CUresult hed_driver_ready(const struct hed_driver *d);

/* ---- context-local storage: storage.c -------------------------------------------------------- */

/* Context-local storage (storage.c): the runtime keeps its own state there. As the export table's
 * functions: put (INVALID_HANDLE: the key is taken), get and remove (INVALID_HANDLE: no such key).
 * A primary context that is not active has storage, too. */
typedef void (*hed_storage_dtor)(CUcontext ctx, void *key, void *value);
CUresult hed_storage_put(struct hed_context *c, void *key, void *value, hed_storage_dtor dtor);
CUresult hed_storage_get(struct hed_context *c, void *key, void **value);
CUresult hed_storage_remove(struct hed_context *c, void *key);
void hed_storage_clear(struct hed_context *c); /* calls the destructors */
