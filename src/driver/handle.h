/* Handles: the 64-bit names that a soft driver gives its objects.
 *
 *     63      56 55             32 31            4 3   0
 *     |  kind   |   generation    |   index       |  0  |
 *
 * Programs use the low bits of pointers as flags (PyTorch bit 0 of a CUstream), and these handles
 * are pointers in CUDA, so all of them are multiples of 16. They are made in the client, without
 * asking a server. A stale, foreign or invented handle is recognised and never causes a crash: the
 * kind must fit, the index must be in use, and the generation must be the index's current one. A
 * CUkernel can be told from a CUfunction by the handle alone.
 *
 * Invariants:
 * 1. A slot's generation goes up when its handle is freed, so a freed handle does not become valid
 *    again before 2^24 more objects have lived in that slot. A slot at its last generation is
 *    retired.
 * 2. An object returned by hed_handles_get() stays valid until hed_object_put(). Removing a handle
 *    takes the name away at once; the object lives until its last user is done.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum hed_kind {
    HED_KIND_CONTEXT = 1,
    HED_KIND_STREAM,
    HED_KIND_EVENT,
    HED_KIND_MODULE,
    HED_KIND_LIBRARY,
    HED_KIND_FUNCTION,
    HED_KIND_KERNEL,
    HED_KIND_GRAPH,
    HED_KIND_GRAPH_NODE,
    HED_KIND_GRAPH_EXEC,
    HED_KIND_POOL,
    HED_KIND_PHYSICAL,
    HED_KIND_ARRAY,
    HED_KIND_MIPMAP,
    HED_KIND_TEXTURE,
    HED_KIND_SURFACE,
    HED_KIND_LINK,
    HED_KIND_USER_OBJECT,
    HED_KIND_REFERENCE, /* to a texture or surface, by name */
    HED_KIND_COUNT
};

#define HED_HANDLES_MAX (1u << 22) /* live objects in one table; stops a leaking program */
#define HED_HANDLE_ALIGN 16u       /* of every handle, as of memory from malloc() */

/* Every object with a handle begins with this. */
struct hed_object {
    uint64_t handle;                       /* constant while the object has a handle */
    _Atomic uint32_t refs;                 /* the handle counts as one until it is removed */
    void (*destroy)(struct hed_object *o); /* called with the last reference; frees the object */
};

struct hed_handles; /* a table of handles; one per session */

struct hed_handles *hed_handles_create(void);

/* Frees the table and destroys the objects that still have a handle. No other thread may use it. */
void hed_handles_free(struct hed_handles *t);

/* Gives an object a handle; the object then belongs to the table. 0, HED_ENOMEM or HED_ELIMIT. The
 * caller has set o->destroy; handle and refs are set here. */
int hed_handles_add(struct hed_handles *t, enum hed_kind kind, struct hed_object *o);

/* The object that a handle names, with a reference that the caller gives back by hed_object_put();
 * NULL if there is no such object of that kind. */
struct hed_object *hed_handles_get(struct hed_handles *t, enum hed_kind kind, uint64_t handle);

/* Removes the handle. The caller gets the object with the reference that the handle held; NULL as
 * above. */
struct hed_object *hed_handles_remove(struct hed_handles *t, enum hed_kind kind, uint64_t handle);

/* Calls fn for every object of a kind that has a handle, oldest slot first, with a reference that
 * is given back afterwards and without a lock. Stops at the first failure, which it returns. */
int hed_handles_each(struct hed_handles *t, enum hed_kind kind,
                     int (*fn)(void *arg, struct hed_object *o), void *arg);

/* Adds a reference to an object to which the caller has one already. */
static inline void
hed_object_ref(struct hed_object *o)
{
    /* Relaxed: the caller's own reference keeps it alive. */
    atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
}

/* Gives a reference back. */
void hed_object_put(struct hed_object *o);

/* The kind that a handle claims to be; 0 if it cannot be one of ours. */
static inline enum hed_kind
hed_handle_kind(uint64_t handle)
{
    const uint64_t kind = handle >> 56;

    return kind < HED_KIND_COUNT ? (enum hed_kind)kind : (enum hed_kind)0;
}
