/* Handles: the 64-bit names that a soft driver gives its objects.
 *
 *     63      56 55             32 31                 0
 *     |  kind   |   generation    |   index           |
 *
 * Made in the client, without an answer from anybody. A stale, foreign or invented handle is
 * recognised and never a crash: the kind must fit, the index must be in use, and the generation
 * must be the one the index has now. So a CUkernel is told from a CUfunction by the handle alone.
 *
 * Invariants:
 * 1. A slot's generation goes up when its handle is freed, so a freed handle never comes back to
 *    life before 2^24 more objects have lived in that slot; a slot that reaches the end is retired.
 * 2. An object that was got stays valid until it is put: freeing a handle takes the name away at
 * once
 *    and the object when the last user is done.
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
    HED_KIND_COUNT
};

#define HED_HANDLES_MAX (1u << 22) /* live objects of one table; a program's leak ends there */

/* What every object with a handle begins with. */
struct hed_object {
    uint64_t handle;                       /* constant while it has a name */
    _Atomic uint32_t refs;                 /* the name counts as one until it is freed */
    void (*destroy)(struct hed_object *o); /* called by whoever puts last; frees it */
};

struct hed_handles; /* a table; one a session */

struct hed_handles *hed_handles_create(void);

/* Frees the table and destroys what still has a name. No other thread may use it. */
void hed_handles_free(struct hed_handles *t);

/* Names an object, which then belongs to the table: 0 or HED_ENOMEM, HED_ELIMIT. o->destroy is set
 * by the caller; handle and refs are set here. */
int hed_handles_add(struct hed_handles *t, enum hed_kind kind, struct hed_object *o);

/* The object of a handle, to be put back; NULL if there is none of that kind. */
struct hed_object *hed_handles_get(struct hed_handles *t, enum hed_kind kind, uint64_t handle);

/* Takes the name away. The object is handed to the caller with the name's reference; NULL as above.
 * */
struct hed_object *hed_handles_remove(struct hed_handles *t, enum hed_kind kind, uint64_t handle);

/* Takes another reference to an object that the caller has one to. */
static inline void
hed_object_ref(struct hed_object *o)
{
    /* Relaxed: the caller's own reference keeps it alive. */
    atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
}

/* Gives a reference back. */
void hed_object_put(struct hed_object *o);

/* The kind a handle claims to be of; 0 for what cannot be one of ours. */
static inline enum hed_kind
hed_handle_kind(uint64_t handle)
{
    const uint64_t kind = handle >> 56;

    return kind < HED_KIND_COUNT ? (enum hed_kind)kind : (enum hed_kind)0;
}
