/* Contexts: primary and created ones, the stack of each thread, and context-local storage.
 *
 *   created (cuCtxCreate)   : alive --cuCtxDestroy--> destroyed
 *   primary                 : inactive --first retain--> active --last release, reset--> inactive
 *
 * Invariants:
 * 1. A primary context's object and handle live as long as the driver; its contents (streams,
 *    modules, memory, storage) only while it is active.
 * 2. `generation` goes up whenever contents are destroyed, so that a thread can check without a
 *    lock whether what it has cached about a context is still valid.
 * 3. error is set once, by the first asynchronous failure, and stays until the context is
 *    destroyed or, for a primary context, reset.
 * 4. A thread's stack holds a reference to each context on it, so the memory of the current context
 *    stays valid however the context dies. `alive` says whether it can still be used.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "driver/handle.h"
#include "driver/parts.h"

struct hed_module;
struct hed_storage;

#define HED_LIMITS 16 /* number of CUlimit values that are kept */

struct hed_context {
    struct hed_object object; /* must come first */
    struct hed_device *device;
    struct hed_context *next; /* in driver->contexts */
    bool primary;
    _Atomic bool alive;   /* created and not destroyed, or primary and active */
    bool closing;         /* contents come or go; guarded by driver->contexts_lock */
    uint32_t retains;     /* of a primary context; guarded by driver->contexts_lock */
    uint32_t attaches;    /* of a created context: cuCtxAttach; guarded by driver->contexts_lock */
    unsigned flags;       /* CU_CTX_...; guarded by driver->contexts_lock */
    unsigned state_flags; /* of a primary context: cuDevicePrimaryCtxGetState; guarded likewise */
    _Atomic uint32_t generation;
    _Atomic int error; /* CUresult; the sticky error */
    /* cuCtxGetId; never used twice. Relaxed: threads may ask while a primary context comes back. */
    _Atomic uint64_t id;

    struct hed_lock lock;        /* guards the lists below; rank HED_RANK_CONTEXT */
    struct hed_stream *streams;  /* all but the default streams */
    struct hed_stream *legacy;   /* the legacy default stream; created with the context */
    struct hed_module *modules;  /* all modules loaded in it, including those of libraries */
    struct hed_storage *storage; /* context-local storage: storage.c */
    _Atomic uint64_t limits[HED_LIMITS];
    _Atomic int cache_config;     /* CUfunc_cache */
    CUsharedconfig shared_config; /* constant while the context is alive */
    _Atomic uint64_t peers;       /* one bit per device ordinal: cuCtxEnablePeerAccess */

    void *own; /* the machine's own bytes, which follow this struct */
};

/* For use beyond the current call: keeps the memory of the context object, not its contents. */
void hed_context_ref(struct hed_context *c);
void hed_context_unref(struct hed_context *c);

/* A living context on a device, or on any if that is negative, with a reference: one that has
 * not failed, and a primary one, if there is one. NULL if there is none. */
struct hed_context *hed_context_living(struct hed_driver *d, int device);

/* The same without a reference, valid for the length of the call. For calls that need no context of
 * the thread's. */
struct hed_context *hed_context_any(struct hed_driver *d, int device);

/* The context of a handle; NULL if there is none or it has been destroyed. Valid for the length of
 * the call. The second function also accepts a primary context that is not active. */
struct hed_context *hed_context_find(struct hed_driver *d, CUcontext handle);
struct hed_context *hed_context_find_inactive(struct hed_driver *d, CUcontext handle);

static inline CUcontext
hed_context_handle(const struct hed_context *c)
{
    return (CUcontext)(uintptr_t)c->object.handle;
}

static inline uint64_t
hed_context_id(const struct hed_context *c)
{
    return atomic_load_explicit(&c->id, memory_order_relaxed);
}

static inline bool
hed_context_alive(const struct hed_context *c)
{
    /* Acquire: pairs with the release in open_contents(), so that the contents are visible. */
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

/* Sets the sticky error of a context. Only the first failure counts; later ones are dropped. */
void hed_context_fail(struct hed_context *c, CUresult error);

static inline CUresult
hed_context_error(const struct hed_context *c)
{
    const int error = atomic_load_explicit(&c->error, memory_order_acquire);

    /* Relaxed: a thread that misses it finds out from the machine itself. */
    return (CUresult)(error ? error
                            : atomic_load_explicit(&c->device->driver->lost, memory_order_relaxed));
}

/* ---- life: context.c ------------------------------------------------------------------------- */

/* Creates a context that is alive and on no stack. OUT_OF_MEMORY. */
CUresult hed_context_create(struct hed_device *dev, unsigned flags, struct hed_context **out);

/* Destroys a created context: waits for its work, then destroys its contents. CONTEXT_IS_DESTROYED
 * if another thread has done that or is doing it. */
CUresult hed_context_destroy(struct hed_context *c);

/* Retains and releases the primary context of a device, as cuDevicePrimaryCtxRetain does. */
CUresult hed_primary_retain(struct hed_device *dev, struct hed_context **out);
CUresult hed_primary_release(struct hed_device *dev);
CUresult hed_primary_reset(struct hed_device *dev);

/* Waits for all work on the context's streams. Returns its sticky error, or success. */
CUresult hed_context_synchronize(struct hed_context *c);

/* Sets the limits (CU_LIMIT_...) of a new context. */
void hed_context_default_limits(struct hed_context *c);

/* Called for a context's streams (stream.c): made creates the default stream with the context; gone
 * destroys all streams, whose work is done by then. */
CUresult hed_stream_context_made(struct hed_context *c);
/* A program may not wait for a context in which a stream is being captured: the capture becomes
 * invalid, and this returns the error. Calls that merely free memory or code wait all the same. */
CUresult hed_stream_context_uncaptured(struct hed_context *c);
void hed_stream_context_gone(struct hed_context *c);

/* ---- the calling thread's stack: stack.c ----------------------------------------------------- */

/* The context on top of the thread's stack, alive or not; NULL if the stack is empty. */
struct hed_context *hed_thread_context(struct hed_driver *d);

/* push returns false if there is no memory. set replaces the top, or pushes on an empty stack. */
bool hed_thread_push(struct hed_driver *d, struct hed_context *c);
bool hed_thread_set(struct hed_driver *d, struct hed_context *c);
void hed_thread_pop(struct hed_driver *d);

/* Keeps a reference, which the caller hands over, for the length of the call. */
struct hed_context *hed_thread_borrow(struct hed_driver *d, struct hed_context *c);

/* Is the driver ready for calls? NOT_INITIALIZED, DEINITIALIZED. */
CUresult hed_driver_ready(const struct hed_driver *d);

/* ---- context-local storage: storage.c -------------------------------------------------------- */

/* Context-local storage (storage.c), where the runtime keeps state of its own. These follow the
 * export table's functions: put (INVALID_HANDLE: the key is taken), get and remove (INVALID_HANDLE:
 * no such key). A primary context has storage even while it is not active. */
typedef void (*hed_storage_dtor)(CUcontext ctx, void *key, void *value);
CUresult hed_storage_put(struct hed_context *c, void *key, void *value, hed_storage_dtor dtor);
CUresult hed_storage_get(struct hed_context *c, void *key, void **value);
CUresult hed_storage_remove(struct hed_context *c, void *key);
void hed_storage_clear(struct hed_context *c); /* calls the destructors */
