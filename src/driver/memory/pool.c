/* The memory of pools. See driver/memory/pool.h; the calls are in pool_calls.c. */
#include "driver/memory/pool.h"

#include <stdlib.h>

#include "driver/ipc/imported.h"
#include "driver/memory/memory_calls.h"
#include "driver/memory/memory_index.h"
#include "driver/stream/stream.h"
#include "driver/stream/work.h"

#define LOOKS_MOST 8            /* waiting frees that may be found unreached in one pass */
#define PENDING_LOOKS 64        /* queued frees that are searched for memory to take over */
#define WASTE_SMALL (64u << 10) /* bytes; of larger pieces at least half must be used */

struct hed_pool *
hed_pool_find(struct hed_driver *d, CUmemoryPool handle)
{
    return (struct hed_pool *)hed_handles_get(d->handles, HED_KIND_POOL,
                                              (uint64_t)(uintptr_t)handle);
}

void
hed_pool_ref(struct hed_pool *p)
{
    /* Relaxed: the caller has a reference, or the lock under which the last one is dropped. */
    if (p)
        atomic_fetch_add_explicit(&p->object.refs, 1, memory_order_relaxed);
}

void
hed_pool_unref(struct hed_pool *p)
{
    if (p)
        hed_object_put(&p->object);
}

uint64_t
hed_pool_handle(const struct hed_pool *p)
{
    return p ? p->object.handle : 0;
}

/* ---- taking ---------------------------------------------------------------------------------- */

static void
pool_count_locked(struct hed_pool *p, uint64_t more, uint64_t less)
{
    p->used = p->used + more - less;
    if (p->used > p->used_high)
        p->used_high = p->used;
}

/* Takes over memory that was freed on this stream and fits without much waste. */
static bool
take_over_locked(struct hed_pool *p, struct hed_context *c, const struct hed_stream *s,
                 uint64_t size, uint64_t *at, struct hed_pending **unlinked)
{
    struct hed_memory *m = p->driver->memory;
    struct hed_pending **link = &p->pending;

    for (int i = 0; *link && i < PENDING_LOOKS; i++, link = &(*link)->next) {
        struct hed_pending *e = *link;
        struct hed_allocation *a;

        if (e->stream != s || e->taken < size || (e->taken > WASTE_SMALL && e->taken / 2 > size))
            continue;
        a = hed_memory_in_locked(m, HED_TREE_ALLOCATIONS, e->at);
        if (!a || a->ctx != c)
            continue;
        pool_count_locked(p, size, a->size);
        a->size = size;
        a->id = ++m->ids;
        a->freeing = false;
        a->sync_memops = false;
        *at = e->at;
        *link = e->next;
        *unlinked = e;
        return true;
    }
    return false;
}

static CUresult
take_new(struct hed_pool *p, struct hed_context *c, uint64_t size, bool graph, uint64_t *at)
{
    struct hed_allocation a = {.size = size, .kind = HED_MEMORY_POOL, .pool = p, .graph = graph};
    CUresult r = hed_blocks_take(&p->blocks, size, 0, &a.at, &a.taken, &a.block);

    if (r != CUDA_SUCCESS)
        return r;
    hed_memory_mark(&a, c);
    a.device = p->device;
    if (graph)
        a.ctx = NULL; /* the graph owns it, and may outlive the context */
    hed_pool_ref(p);
    r = hed_memory_add(p->driver, &a);
    if (r != CUDA_SUCCESS) {
        hed_blocks_give(a.block, a.at, a.taken);
        hed_pool_unref(p);
        return r;
    }
    hed_lock(&p->driver->memory_lock);
    pool_count_locked(p, size, 0);
    if (graph)
        hed_device_graph_memory_locked(p->device, size, 0);
    hed_unlock(&p->driver->memory_lock);
    *at = a.at;
    return CUDA_SUCCESS;
}

CUresult
hed_pool_take(struct hed_pool *p, struct hed_context *c, struct hed_stream *s, uint64_t size,
              bool graph, uint64_t *at)
{
    struct hed_pending *unlinked = NULL;
    bool pending;

    hed_pool_settle(p->driver);
    hed_lock(&p->driver->memory_lock);

    const bool taken = s && !graph && take_over_locked(p, c, s, size, at, &unlinked);

    pending = p->pending != NULL;
    hed_unlock(&p->driver->memory_lock);
    free(unlinked);
    if (taken)
        return CUDA_SUCCESS;

    CUresult r = take_new(p, c, size, graph, at);

    if (r == CUDA_ERROR_OUT_OF_MEMORY && p->device && p->driver->machine->memory.keep) {
        hed_memory_trim(p->driver, p->device);
        r = take_new(p, c, size, graph, at);
    }
    /* Memory that other streams are about to free may be enough. A capture must not wait for it. */
    if (r == CUDA_ERROR_OUT_OF_MEMORY && pending && s && !graph) {
        r = hed_context_synchronize(c);
        hed_pool_settle(p->driver);
        if (r == CUDA_SUCCESS)
            r = take_new(p, c, size, graph, at);
    }
    return r;
}

CUresult
hed_pool_graph_take(struct hed_context *c, struct hed_pool *pool, uint64_t size, uint64_t *at)
{
    struct hed_driver *d = c->device->driver;

    if (size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    hed_lock(&d->memory_lock);
    if (!pool)
        pool = c->device->current_pool;
    hed_pool_ref(pool);
    hed_unlock(&d->memory_lock);

    const CUresult r = hed_pool_take(pool, c, NULL, size, true, at);

    hed_pool_unref(pool);
    return r;
}

/* ---- giving back ----------------------------------------------------------------------------- */

/* Takes the entry of an address out of the list. */
static struct hed_pending *
unlink_locked(struct hed_pool *p, uint64_t at)
{
    struct hed_pending **link = &p->pending;

    while (*link && (*link)->at != at)
        link = &(*link)->next;

    struct hed_pending *e = *link;

    if (e)
        *link = e->next;
    return e;
}

void
hed_pool_release(const struct hed_allocation *a)
{
    struct hed_pool *p = a->pool;

    hed_lock(&p->driver->memory_lock);

    struct hed_pending *e = unlink_locked(p, a->at);

    pool_count_locked(p, 0, a->size);
    if (a->graph)
        hed_device_graph_memory_locked(p->device, 0, a->size);
    hed_unlock(&p->driver->memory_lock);
    free(e);
    hed_blocks_give(a->block, a->at, a->taken);
    hed_pool_unref(p);
}

void
hed_pool_trim_device(struct hed_device *dev)
{
    struct hed_driver *d = dev->driver;

    hed_lock(&d->memory_lock);

    struct hed_pool *pools[2] = {dev->default_pool, dev->current_pool};

    for (int i = 0; i < 2; i++)
        hed_pool_ref(pools[i]);
    hed_unlock(&d->memory_lock);
    for (int i = 0; i < 2; i++) {
        if (pools[i])
            hed_blocks_trim(&pools[i]->blocks, 0);
        hed_pool_unref(pools[i]);
    }
}

uint64_t
hed_pool_spare_locked(const struct hed_device *dev)
{
    const struct hed_pool *p = dev->default_pool;
    const struct hed_pool *q = dev->current_pool;

    return (p ? p->blocks.spare_bytes : 0) + (q && q != p ? q->blocks.spare_bytes : 0);
}

void
hed_pool_graph_give(struct hed_driver *d, uint64_t at)
{
    (void)hed_memory_give(d, HED_MEMORY_POOL, at);
}

CUresult
hed_pool_work_alloc(struct hed_work *w)
{
    return CUDA_SUCCESS; /* the memory exists since the call that chose the address */
}

/* The stream has reached a free of this address. */
static void
finish_free(struct hed_driver *d, uint64_t at)
{
    struct hed_memory_node *n = NULL;
    struct hed_allocation gone;

    hed_lock(&d->memory_lock);

    struct hed_allocation *a = hed_memory_in_locked(d->memory, HED_TREE_ALLOCATIONS, at);

    if (a && a->at == at && !a->graph) {
        /* No free is queued: this one was captured, and frees memory from outside its graph. */
        const bool captured = a->frees == 0;

        if (!captured)
            a->frees--;
        if (captured || (a->freeing && a->frees == 0)) {
            gone = *a;
            n = hed_memory_remove_locked(d->memory, a);
        }
    }
    hed_unlock(&d->memory_lock);
    if (n) {
        hed_memory_node_free(n);
        hed_memory_release(d, &gone);
    }
}

CUresult
hed_pool_work_free(struct hed_work *w)
{
    finish_free(w->ctx->device->driver, w->memory.at);
    return CUDA_SUCCESS;
}

/* ---- frees that wait for a point ------------------------------------------------------------- */

/* Takes the whole list. */
static struct hed_waiting_free *
detach_waiting_locked(struct hed_memory *m)
{
    struct hed_waiting_free *all = m->waiting;

    m->waiting = NULL;
    m->waiting_last = &m->waiting;
    return all;
}

/* Puts a list back, before the frees that were added meanwhile. */
static void
reattach_waiting(struct hed_driver *d, struct hed_waiting_free *list,
                 struct hed_waiting_free **last)
{
    struct hed_memory *m = d->memory;

    if (!list)
        return;
    hed_lock(&d->memory_lock);
    *last = m->waiting;
    if (!m->waiting)
        m->waiting_last = last;
    m->waiting = list;
    hed_unlock(&d->memory_lock);
}

/* Does the waiting frees for which is_due() returns true, oldest first. The others stay. */
static void
do_waiting_frees(struct hed_driver *d, bool (*is_due)(const struct hed_waiting_free *f, void *arg),
                 void *arg)
{
    struct hed_waiting_free *left = NULL;
    struct hed_waiting_free **last = &left;

    hed_lock(&d->memory_lock);

    struct hed_waiting_free *f = detach_waiting_locked(d->memory);

    hed_unlock(&d->memory_lock);
    while (f) {
        struct hed_waiting_free *next = f->next;

        if (is_due(f, arg)) {
            finish_free(d, f->at);
            hed_stream_put(f->stream);
            free(f);
            /* Relaxed: as in hed_pool_settle(). */
            atomic_fetch_sub_explicit(&d->memory->waiting_count, 1, memory_order_relaxed);
        } else {
            *last = f;
            last = &f->next;
            *last = NULL;
        }
        f = next;
    }
    reattach_waiting(d, left, last);
}

/* Looking may cost a message, so it stops after a few frees that have not been reached. */
static bool
is_free_reached(const struct hed_waiting_free *f, void *arg)
{
    int *unreached = arg;

    if (*unreached < LOOKS_MOST && hed_point_reached((struct hed_point){f->stream, f->number}))
        return true;
    (*unreached)++;
    return false;
}

void
hed_pool_settle(struct hed_driver *d)
{
    int unreached = 0;

    /* Relaxed: a thread sees its own frees. Those that another thread adds at this moment may just
     * as well come after this call. */
    if (atomic_load_explicit(&d->memory->waiting_count, memory_order_relaxed) > 0)
        do_waiting_frees(d, is_free_reached, &unreached);
}

static bool
is_free_of_context(const struct hed_waiting_free *f, void *arg)
{
    return f->stream->ctx == arg;
}

void
hed_pool_context_gone(struct hed_context *c)
{
    do_waiting_frees(c->device->driver, is_free_of_context, c);
}

bool
hed_pool_free_behind(struct hed_stream *s, uint64_t at)
{
    struct hed_driver *d = s->ctx->device->driver;
    struct hed_waiting_free *f = malloc(sizeof *f);

    if (!f)
        return false;
    *f = (struct hed_waiting_free){.stream = s, .number = hed_stream_now(s), .at = at};
    hed_object_ref(&s->object);
    hed_lock(&d->memory_lock);
    *d->memory->waiting_last = f;
    d->memory->waiting_last = &f->next;
    /* Relaxed: as in hed_pool_settle(). */
    atomic_fetch_add_explicit(&d->memory->waiting_count, 1, memory_order_relaxed);
    hed_unlock(&d->memory_lock);
    return true;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* On a capturing stream the memory becomes the graph's. */
static CUresult
take_captured(struct hed_pool *p, struct hed_stream *s, uint64_t size, uint64_t *at)
{
    uint64_t taken;
    CUresult r = hed_pool_take(p, s->ctx, s, size, true, &taken);

    if (r != CUDA_SUCCESS)
        return r;

    struct hed_work *w = hed_work_create(s->ctx, HED_WORK_ALLOC);

    if (w) {
        w->memory.at = taken;
        w->memory.size = size;
        w->memory.pool = p;
        hed_pool_ref(p);
        r = hed_submit(s, w);
    } else {
        r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (r == CUDA_SUCCESS)
        *at = taken;
    else
        hed_pool_graph_give(p->driver, taken);
    return r;
}

static bool
stream_is_capturing(struct hed_stream *s)
{
    /* Relaxed: the program orders its capture and its calls. */
    return atomic_load_explicit(&s->capture, memory_order_relaxed) != NULL;
}

/* A NULL pool is the current one of the stream's device. */
static CUresult
alloc_in_stream_order(struct hed_layer *self, CUdeviceptr *out, size_t size, struct hed_pool *pool,
                      CUstream stream, bool ptds)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_stream *s;
    uint64_t at = 0;
    CUresult r = hed_stream_begin(self, stream, ptds, &s, NULL);

    if (r != CUDA_SUCCESS)
        return r;
    hed_lock(&d->memory_lock);
    if (!pool)
        pool = s->ctx->device->current_pool;
    hed_pool_ref(pool);
    hed_unlock(&d->memory_lock);
    if (!out)
        r = CUDA_ERROR_INVALID_VALUE;
    else if (size > 0) /* allocating 0 bytes succeeds and does nothing, as on NVIDIA's driver */
        r = stream_is_capturing(s) ? take_captured(pool, s, size, &at)
                                   : hed_pool_take(pool, s->ctx, s, size, false, &at);
    if (r == CUDA_SUCCESS)
        *out = at;
    hed_pool_unref(pool);
    hed_stream_put(s);
    return r == CUDA_ERROR_INVALID_VALUE && out ? CUDA_ERROR_OUT_OF_MEMORY : r;
}

CUresult
hed_soft_cuMemAllocAsync(struct hed_layer *self, struct hed_cuMemAllocAsync *a)
{
    return alloc_in_stream_order(self, a->dptr, a->bytesize, NULL, a->hStream, a->ptds);
}

CUresult
hed_soft_cuMemAllocFromPoolAsync(struct hed_layer *self, struct hed_cuMemAllocFromPoolAsync *a)
{
    struct hed_pool *p = hed_pool_find(hed_driver_of(self), a->pool);
    const CUresult r = p && !p->imported ? alloc_in_stream_order(self, a->dptr, a->bytesize, p,
                                                                 a->hStream, a->ptds)
                                         : CUDA_ERROR_INVALID_VALUE;

    hed_pool_unref(p);
    return r;
}

/* The program frees the memory now. False if it is not the program's to free. */
static bool
give_up(struct hed_driver *d, uint64_t at, struct hed_stream *s, struct hed_pending *e,
        struct hed_work *w)
{
    bool used = false;

    hed_lock(&d->memory_lock);

    struct hed_allocation *a = hed_memory_in_locked(d->memory, HED_TREE_ALLOCATIONS, at);
    const bool ok =
        a && a->at == at && !a->freeing &&
        (a->kind == HED_MEMORY_POOL || a->kind == HED_MEMORY_DEVICE || hed_imported_from_pool(a));

    if (ok) {
        w->memory.at = at;
        w->memory.size = a->size;
        w->memory.pool = a->pool;
        hed_pool_ref(a->pool);
    }
    if (ok && !stream_is_capturing(s) && !a->graph) {
        a->freeing = true;
        a->frees++;
        if (a->pool) {
            *e = (struct hed_pending){
                .next = a->pool->pending, .stream = s, .at = at, .taken = a->taken};
            a->pool->pending = e;
            used = true;
        }
    }
    hed_unlock(&d->memory_lock);
    if (!used)
        free(e);
    return ok;
}

/* The stream refused the free, so the program has the memory again. */
static void
take_back_free(struct hed_driver *d, uint64_t at)
{
    struct hed_pending *e = NULL;

    hed_lock(&d->memory_lock);

    struct hed_allocation *a = hed_memory_in_locked(d->memory, HED_TREE_ALLOCATIONS, at);

    if (a && a->freeing) {
        a->freeing = false;
        a->frees--;
        if (a->pool)
            e = unlink_locked(a->pool, at);
    }
    hed_unlock(&d->memory_lock);
    free(e);
}

CUresult
hed_soft_cuMemFreeAsync(struct hed_layer *self, struct hed_cuMemFreeAsync *a)
{
    struct hed_stream *s;
    CUresult r = hed_stream_begin(self, a->hStream, a->ptds, &s, NULL);

    if (r != CUDA_SUCCESS)
        return r;

    struct hed_work *w = a->dptr ? hed_work_create(s->ctx, HED_WORK_FREE) : NULL;
    struct hed_pending *e = w ? calloc(1, sizeof *e) : NULL;

    if (a->dptr == 0) {
        r = CUDA_SUCCESS;
    } else if (!e) {
        hed_work_free(w);
        r = CUDA_ERROR_OUT_OF_MEMORY;
    } else if (!give_up(hed_driver_of(self), a->dptr, s, e, w)) {
        hed_work_free(w);
        r = CUDA_ERROR_INVALID_VALUE;
    } else {
        r = hed_submit(s, w);
        if (r != CUDA_SUCCESS)
            take_back_free(hed_driver_of(self), a->dptr);
    }
    hed_stream_put(s);
    return r;
}
