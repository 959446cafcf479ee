/* The life of contexts, both created and primary. */
#include "driver/context/context.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "driver/memory/memory.h"
#include "driver/module/module.h"

static _Atomic uint64_t ids;

static uint64_t
next_id(void)
{
    return atomic_fetch_add_explicit(&ids, 1, memory_order_relaxed) + 1;
}

/* ---- objects --------------------------------------------------------------------------------- */

static void
destroy_object(struct hed_object *o)
{
    struct hed_context *c = (struct hed_context *)o;

    hed_lock_fini(&c->lock);
    free(c);
}

void
hed_context_ref(struct hed_context *c)
{
    /* Relaxed: the caller already has a reference. */
    atomic_fetch_add_explicit(&c->object.refs, 1, memory_order_relaxed);
}

void
hed_context_unref(struct hed_context *c)
{
    if (c)
        hed_object_put(&c->object);
}

/* The highest is taken where any context will do. */
static int
rank_of(const struct hed_context *c)
{
    return 2 * (hed_context_error(c) == CUDA_SUCCESS) + (c->primary ? 1 : 0);
}

struct hed_context *
hed_context_living(struct hed_driver *d, int device)
{
    struct hed_context *found = NULL;

    hed_lock(&d->contexts_lock);
    for (struct hed_context *c = d->contexts; c; c = c->next)
        if (hed_context_alive(c) && (device < 0 || c->device->ordinal == device) &&
            (!found || rank_of(c) > rank_of(found)))
            found = c;
    if (found)
        hed_context_ref(found);
    hed_unlock(&d->contexts_lock);
    return found;
}

struct hed_context *
hed_context_any(struct hed_driver *d, int device)
{
    struct hed_context *c = hed_context_living(d, device);

    return c ? hed_thread_borrow(d, c) : NULL;
}

struct hed_context *
hed_context_find_inactive(struct hed_driver *d, CUcontext handle)
{
    struct hed_context *c = hed_thread_context(d);

    /* Usually the handle is that of the current context, and then no lock is needed. */
    if (c && hed_context_handle(c) == handle)
        return c->primary || hed_context_alive(c) ? c : NULL;

    struct hed_object *o = hed_handles_get(d->handles, HED_KIND_CONTEXT, (uintptr_t)handle);

    return o ? hed_thread_borrow(d, (struct hed_context *)o) : NULL;
}

struct hed_context *
hed_context_find(struct hed_driver *d, CUcontext handle)
{
    struct hed_context *c = hed_context_find_inactive(d, handle);

    return c && hed_context_alive(c) ? c : NULL;
}

void
hed_context_fail(struct hed_context *c, CUresult error)
{
    int expected = CUDA_SUCCESS;

    if (error == CUDA_SUCCESS)
        return;
    /* Release: pairs with the acquire in hed_context_error. */
    if (atomic_compare_exchange_strong_explicit(&c->error, &expected, (int)error,
                                                memory_order_release, memory_order_relaxed))
        hed_info(DRIVER, "context %llu of device %d has failed with error %d for good",
                 (unsigned long long)hed_context_id(c), c->device->ordinal, (int)error);
}

CUresult
hed_context_synchronize(struct hed_context *c)
{
    void *m;
    const CUresult r = hed_machine_of(c, &m)->context_wait(m, c);
    const CUresult sticky = hed_context_error(c);

    return sticky != CUDA_SUCCESS ? sticky : r;
}

/* ---- contents -------------------------------------------------------------------------------- */

/* Gives a new or revived context its contents. */
static CUresult
open_contents(struct hed_context *c)
{
    atomic_store_explicit(&c->error, CUDA_SUCCESS, memory_order_relaxed);
    atomic_store_explicit(&c->peers, 0, memory_order_relaxed);
    atomic_store_explicit(&c->cache_config, CU_FUNC_CACHE_PREFER_NONE, memory_order_relaxed);
    c->shared_config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    atomic_store_explicit(&c->id, next_id(), memory_order_relaxed);
    hed_context_default_limits(c);

    void *m;
    const struct hed_machine *machine = hed_machine_of(c, &m);
    CUresult r = machine->context_made(m, c);

    if (r == CUDA_SUCCESS) {
        r = hed_stream_context_made(c);
        if (r != CUDA_SUCCESS)
            machine->context_gone(m, c);
    }
    /* Release: pairs with the acquire in hed_context_alive. */
    if (r == CUDA_SUCCESS)
        atomic_store_explicit(&c->alive, true, memory_order_release);
    return r;
}

/* Empties a context. First its queued work is waited for and no new work can come in. Then the
 * runtime's destructors are called; NVIDIA's driver also calls them when the context is already
 * dead. Objects that refer to others go before those. No lock is held. */
static void
close_contents(struct hed_context *c)
{
    void *m;
    const struct hed_machine *machine = hed_machine_of(c, &m);

    (void)hed_context_synchronize(c);
    /* Release: a thread that still sees the context alive sees its contents too. */
    atomic_store_explicit(&c->alive, false, memory_order_release);
    atomic_fetch_add_explicit(&c->generation, 1, memory_order_release);
    hed_storage_clear(c);
    hed_stream_context_gone(c);
    hed_module_context_gone(c);
    hed_memory_context_gone(c);
    machine->context_gone(m, c);
}

/* ---- created contexts ------------------------------------------------------------------------ */

static struct hed_context *
create_object(struct hed_device *dev)
{
    struct hed_driver *d = dev->driver;
    struct hed_context *c = calloc(1, sizeof *c + d->machine->context_bytes);

    if (!c)
        return NULL;
    c->own = c + 1;
    c->device = dev;
    c->object.destroy = destroy_object;
    hed_lock_init(&c->lock, HED_RANK_CONTEXT);
    if (hed_handles_add(d->handles, HED_KIND_CONTEXT, &c->object) != 0) {
        hed_lock_fini(&c->lock);
        free(c);
        return NULL;
    }
    return c;
}

static void
link_context(struct hed_context *c)
{
    struct hed_driver *d = c->device->driver;

    hed_lock(&d->contexts_lock);
    c->next = d->contexts;
    d->contexts = c;
    hed_unlock(&d->contexts_lock);
}

static void
unlink_context(struct hed_context *c)
{
    struct hed_driver *d = c->device->driver;

    hed_lock(&d->contexts_lock);
    for (struct hed_context **at = &d->contexts; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    hed_unlock(&d->contexts_lock);
}

/* Removes the handle, and with it the reference that the handle held. */
static void
forget_name(struct hed_context *c)
{
    struct hed_object *o =
        hed_handles_remove(c->device->driver->handles, HED_KIND_CONTEXT, c->object.handle);

    if (o)
        hed_object_put(o);
}

CUresult
hed_context_create(struct hed_device *dev, unsigned flags, struct hed_context **out)
{
    struct hed_context *c = create_object(dev);

    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->flags = flags;
    c->attaches = 1;

    const CUresult r = open_contents(c);

    if (r != CUDA_SUCCESS) {
        forget_name(c);
        return r;
    }
    link_context(c);
    *out = c;
    return CUDA_SUCCESS;
}

CUresult
hed_context_destroy(struct hed_context *c)
{
    struct hed_driver *d = c->device->driver;

    hed_lock(&d->contexts_lock);

    const bool mine = !c->closing && hed_context_alive(c);

    c->closing = true;
    hed_unlock(&d->contexts_lock);
    if (!mine)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    close_contents(c);
    unlink_context(c);
    forget_name(c);
    return CUDA_SUCCESS;
}

/* ---- primary contexts ------------------------------------------------------------------------ */

CUresult
hed_primary_retain(struct hed_device *dev, struct hed_context **out)
{
    struct hed_driver *d = dev->driver;
    struct hed_context *c = dev->primary;
    CUresult r = CUDA_SUCCESS;

    hed_lock(&d->contexts_lock);
    while (c->closing)
        (void)hed_lock_wait(&d->contexts_lock, &d->contexts_changed, UINT64_MAX);
    if (!hed_context_alive(c)) {
        /* No lock is held while the machine is called. Other threads wait for `closing`
         * meanwhile. */
        c->closing = true;
        hed_unlock(&d->contexts_lock);
        r = open_contents(c);
        hed_lock(&d->contexts_lock);
        c->closing = false;
        (void)pthread_cond_broadcast(&d->contexts_changed);
    }
    if (r == CUDA_SUCCESS) {
        c->retains++;
        *out = c;
    }
    hed_unlock(&d->contexts_lock);
    return r;
}

/* Empties a primary context that is marked as closing. */
static void
close_primary(struct hed_context *c)
{
    struct hed_driver *d = c->device->driver;

    close_contents(c);
    hed_lock(&d->contexts_lock);
    c->closing = false;
    c->flags = 0;
    c->state_flags = 0;
    (void)pthread_cond_broadcast(&d->contexts_changed);
    hed_unlock(&d->contexts_lock);
}

CUresult
hed_primary_release(struct hed_device *dev)
{
    struct hed_driver *d = dev->driver;
    struct hed_context *c = dev->primary;

    hed_lock(&d->contexts_lock);
    while (c->closing)
        (void)hed_lock_wait(&d->contexts_lock, &d->contexts_changed, UINT64_MAX);

    const bool had = c->retains > 0;

    if (had)
        c->retains--;

    const bool last = had && c->retains == 0 && hed_context_alive(c);

    c->closing = last;
    hed_unlock(&d->contexts_lock);
    if (last)
        close_primary(c);
    return had ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult
hed_primary_reset(struct hed_device *dev)
{
    struct hed_driver *d = dev->driver;
    struct hed_context *c = dev->primary;

    hed_lock(&d->contexts_lock);
    while (c->closing)
        (void)hed_lock_wait(&d->contexts_lock, &d->contexts_changed, UINT64_MAX);

    const bool active = hed_context_alive(c);

    c->closing = active;
    c->flags = 0;
    c->state_flags = 0;
    hed_unlock(&d->contexts_lock);
    if (active)
        close_primary(c);
    return CUDA_SUCCESS;
}

int
hed_context_driver_init(struct hed_driver *d)
{
    for (int i = 0; i < d->device_count; i++) {
        struct hed_context *c = create_object(&d->devices[i]);

        if (!c)
            return HED_ENOMEM;
        c->primary = true;
        d->devices[i].primary = c;
        link_context(c);
    }
    return 0;
}

void
hed_context_driver_fini(struct hed_driver *d)
{
    while (d->contexts) {
        struct hed_context *c = d->contexts;

        d->contexts = c->next;
        if (hed_context_alive(c))
            close_contents(c);
        hed_storage_clear(c);
        forget_name(c);
    }
}
