/* User objects: objects of the program that live at least as long as the graphs that use them.
 *
 * A user object has a count, part of which is held by graphs. When the count reaches zero, the
 * program's destructor is called, once, with no lock held.
 */
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "driver/graph/node.h"
#include "driver/parts.h"

struct hed_user_object {
    struct hed_object object; /* must come first */
    void *data;
    CUhostFn destroy;
    _Atomic uint32_t count; /* references that the program knows of */
    struct hed_driver *driver;
};

static void
object_free(struct hed_object *o)
{
    free(o);
}

/* Gives up references that the program counts; the last one destroys the object. */
static CUresult
release_user_object(struct hed_user_object *o, unsigned count)
{
    uint32_t have = atomic_load_explicit(&o->count, memory_order_relaxed);

    do {
        if (count == 0 || count > have)
            return CUDA_ERROR_INVALID_VALUE;
        /* Acquire and release: the thread that gives up the last sees what the others did
         * before. */
    } while (!atomic_compare_exchange_weak_explicit(&o->count, &have, have - count,
                                                    memory_order_acq_rel, memory_order_relaxed));
    if (have != count)
        return CUDA_SUCCESS;

    struct hed_object *named =
        hed_handles_remove(o->driver->handles, HED_KIND_USER_OBJECT, o->object.handle);

    o->destroy(o->data);
    if (named)
        hed_object_put(named);
    return CUDA_SUCCESS;
}

static CUresult
retain_user_object(struct hed_user_object *o, unsigned count)
{
    uint32_t have = atomic_load_explicit(&o->count, memory_order_relaxed);

    do {
        if (count == 0 || have == 0 || count > INT_MAX - have)
            return CUDA_ERROR_INVALID_VALUE;
        /* Relaxed: the caller has a reference; nothing else is published. */
    } while (!atomic_compare_exchange_weak_explicit(&o->count, &have, have + count,
                                                    memory_order_relaxed, memory_order_relaxed));
    return CUDA_SUCCESS;
}

CUresult
hed_graph_users_add(struct hed_graph_user **list, struct hed_user_object *o, unsigned count)
{
    struct hed_graph_user *u = malloc(sizeof *u);

    if (!u)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *u = (struct hed_graph_user){*list, o, count};
    *list = u;
    return CUDA_SUCCESS;
}

CUresult
hed_graph_users_copy(struct hed_graph_user *from, struct hed_graph_user **to)
{
    for (; from; from = from->next) {
        CUresult r = retain_user_object(from->object, from->count);

        if (r == CUDA_SUCCESS)
            r = hed_graph_users_add(to, from->object, from->count);
        if (r != CUDA_SUCCESS)
            return r;
    }
    return CUDA_SUCCESS;
}

void
hed_graph_users_free(struct hed_graph_user **list)
{
    while (*list) {
        struct hed_graph_user *u = *list;

        *list = u->next;
        (void)release_user_object(u->object, u->count);
        free(u);
    }
}

static struct hed_user_object *
find_user_object(struct hed_layer *self, CUuserObject handle)
{
    return (struct hed_user_object *)hed_handles_get(
        hed_driver_of(self)->handles, HED_KIND_USER_OBJECT, (uint64_t)(uintptr_t)handle);
}

static CUresult
soft_cuUserObjectCreate(struct hed_layer *self, struct hed_cuUserObjectCreate *a)
{
    struct hed_driver *d = hed_driver_of(self);

    if (!a->object_out || !a->destroy || a->initialRefcount == 0 || a->initialRefcount > INT_MAX ||
        a->flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;

    struct hed_user_object *o = calloc(1, sizeof *o);

    if (!o)
        return CUDA_ERROR_OUT_OF_MEMORY;
    o->object.destroy = object_free;
    o->data = a->ptr;
    o->destroy = a->destroy;
    o->driver = d;
    atomic_init(&o->count, a->initialRefcount);
    if (hed_handles_add(d->handles, HED_KIND_USER_OBJECT, &o->object) != 0) {
        free(o);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *a->object_out = (CUuserObject)(uintptr_t)o->object.handle;
    return CUDA_SUCCESS;
}

static CUresult
soft_cuUserObjectRetain(struct hed_layer *self, struct hed_cuUserObjectRetain *a)
{
    struct hed_user_object *o = find_user_object(self, a->object);

    if (!o)
        return CUDA_ERROR_INVALID_VALUE;

    const CUresult r = retain_user_object(o, a->count);

    hed_object_put(&o->object);
    return r;
}

static CUresult
soft_cuUserObjectRelease(struct hed_layer *self, struct hed_cuUserObjectRelease *a)
{
    struct hed_user_object *o = find_user_object(self, a->object);

    if (!o)
        return CUDA_ERROR_INVALID_VALUE;

    const CUresult r = release_user_object(o, a->count);

    hed_object_put(&o->object);
    return r;
}

static CUresult
soft_cuGraphRetainUserObject(struct hed_layer *self, struct hed_cuGraphRetainUserObject *a)
{
    struct hed_graph *g = hed_graph_find(hed_driver_of(self), a->graph);
    struct hed_user_object *o = find_user_object(self, a->object);
    CUresult r = CUDA_ERROR_INVALID_VALUE;

    if (g && o && a->count > 0 && (a->flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE) == 0) {
        r = a->flags & CU_GRAPH_USER_OBJECT_MOVE ? CUDA_SUCCESS : retain_user_object(o, a->count);
        if (r == CUDA_SUCCESS)
            r = hed_graph_users_add(&g->users, o, a->count);
    }
    if (o)
        hed_object_put(&o->object);
    if (g)
        hed_object_put(&g->object);
    return r;
}

static CUresult
soft_cuGraphReleaseUserObject(struct hed_layer *self, struct hed_cuGraphReleaseUserObject *a)
{
    struct hed_graph *g = hed_graph_find(hed_driver_of(self), a->graph);
    struct hed_user_object *o = find_user_object(self, a->object);
    unsigned left = a->count;

    if (g && o)
        for (struct hed_graph_user **at = &g->users; *at && left > 0;) {
            struct hed_graph_user *u = *at;
            const unsigned n = u->object != o ? 0 : left < u->count ? left : u->count;

            u->count -= n;
            left -= n;
            if (n > 0)
                (void)release_user_object(o, n);
            if (u->count > 0) {
                at = &u->next;
                continue;
            }
            *at = u->next;
            free(u);
        }
    if (o)
        hed_object_put(&o->object);
    if (g)
        hed_object_put(&g->object);
    return g && o && a->count > 0 && left == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

const struct hed_cuda_ops hed_calls_user_object = {
    .cuUserObjectCreate = soft_cuUserObjectCreate,
    .cuUserObjectRetain = soft_cuUserObjectRetain,
    .cuUserObjectRelease = soft_cuUserObjectRelease,
    .cuGraphRetainUserObject = soft_cuGraphRetainUserObject,
    .cuGraphReleaseUserObject = soft_cuGraphReleaseUserObject,
};
