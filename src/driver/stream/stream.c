/* Streams as objects: made, found, ended; a context's default ones; points. See stream.h. */
#include "driver/stream/stream.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "driver/driver.h"
#include "driver/far.h"
#include "driver/graph/graph.h"

/* ---- life ------------------------------------------------------------------------------------ */

static _Atomic uint64_t ids;

static void
stream_free(struct hed_object *o)
{
    struct hed_stream *s = (struct hed_stream *)o;

    (void)pthread_cond_destroy(&s->finished);
    (void)pthread_cond_destroy(&s->filled);
    hed_lock_fini(&s->lock);
    hed_context_unref(s->ctx);
    free(s);
}

/* One that belongs to nobody yet. */
static struct hed_stream *
stream_alloc(struct hed_context *c)
{
    struct hed_stream *s = calloc(1, sizeof *s);
    pthread_condattr_t attr;

    if (!s)
        return NULL;
    s->object.destroy = stream_free;
    atomic_init(&s->object.refs, 1);
    s->ctx = c;
    hed_context_ref(c);
    s->blocking = true;
    s->last = &s->first;
    s->wanted = UINT64_MAX;
    s->generation = atomic_load_explicit(&c->generation, memory_order_relaxed);
    s->id = atomic_fetch_add_explicit(&ids, 1, memory_order_relaxed) + 1;
    s->attributes[CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY].syncPolicy = CU_SYNC_POLICY_AUTO;
    if (c->device->info.profile.attributes[CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT] > 1)
        s->attributes[CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP].memSyncDomainMap.remote = 1;
    hed_lock_init(&s->lock, HED_RANK_STREAM);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&s->finished, &attr);
    (void)pthread_cond_init(&s->filled, &attr);
    (void)pthread_condattr_destroy(&attr);
    return s;
}

/* Puts it into its context's list, which gets a reference of its own. */
static void
link_stream(struct hed_stream *s)
{
    struct hed_context *c = s->ctx;

    hed_object_ref(&s->object);
    hed_lock(&c->lock);
    s->next = c->streams;
    s->link = &c->streams;
    if (s->next)
        s->next->link = &s->next;
    c->streams = s;
    hed_unlock(&c->lock);
}

static void
unlink_stream(struct hed_stream *s)
{
    struct hed_context *c = s->ctx;

    hed_lock(&c->lock);

    const bool linked = s->link != NULL;

    if (linked) {
        *s->link = s->next;
        if (s->next)
            s->next->link = s->link;
        s->link = NULL;
        s->next = NULL;
    }
    hed_unlock(&c->lock);
    if (linked)
        hed_stream_put(s);
}

/* The far side, if there is one, gets to know a stream that has its handle. */
static void
tell_made(struct hed_stream *s)
{
    void *m;
    const struct hed_far *far = hed_far_of(s->ctx, &m);

    if (far)
        far->stream_made(m, s);
}

/* The same at the end: the name goes there, too. What it has not done is only waited for with the
 * whole context from now on. True: there is a far side. */
static bool
tell_gone_locked(struct hed_stream *s)
{
    void *m;
    const struct hed_far *far = hed_far_of(s->ctx, &m);

    if (!far)
        return false;
    if (!s->is_legacy)
        far->stream_gone(m, s);
    if (s->far.answered < s->submitted)
        hed_far_left(s->ctx);
    return true;
}

CUresult
hed_stream_create(struct hed_context *c, unsigned flags, int priority, CUstream *out)
{
    struct hed_stream *s = stream_alloc(c);

    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->flags = flags;
    s->blocking = !(flags & CU_STREAM_NON_BLOCKING);
    s->priority = hed_stream_priority(priority);
    if (hed_handles_add(c->device->driver->handles, HED_KIND_STREAM, &s->object) != 0) {
        stream_free(&s->object);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    tell_made(s);
    link_stream(s);
    *out = (CUstream)(uintptr_t)s->object.handle;
    return CUDA_SUCCESS;
}

void
hed_stream_end(struct hed_stream *s)
{
    hed_lock(&s->lock);

    /* Once: afterwards the driver may be gone, and the stream be only a thread's memory of it. */
    const bool far = !s->destroyed && tell_gone_locked(s);

    s->destroyed = true;

    const bool over = far || (!s->first && !s->running);

    /* The runner, if it sleeps, goes home. */
    (void)pthread_cond_broadcast(&s->filled);
    hed_unlock(&s->lock);
    if (over)
        hed_stream_retire(s);
}

void
hed_stream_retire(struct hed_stream *s)
{
    unlink_stream(s);
}

void
hed_stream_put(struct hed_stream *s)
{
    hed_object_put(&s->object);
}

/* ---- each thread's own default stream -------------------------------------------------------- */

/* One a context that the thread has used so. */
struct own {
    struct own *next;
    struct hed_stream *stream; /* a reference */
};

struct owns {
    pid_t process; /* in the child of a fork, nothing of the parent's is touched */
    struct own *first;
};

/* Is it of the context's present life? */
static bool
is_current(const struct hed_stream *s)
{
    /* Acquire: pairs with the end of the context's contents. */
    return s->generation == atomic_load_explicit(&s->ctx->generation, memory_order_acquire);
}

/* Where work is done elsewhere they have names, by which the far side knows them. */
static bool
give_name(struct hed_stream *s)
{
    void *m;

    if (!hed_far_of(s->ctx, &m))
        return true;
    if (hed_handles_add(s->ctx->device->driver->handles, HED_KIND_STREAM, &s->object) != 0)
        return false;
    hed_object_ref(&s->object); /* the thread's; the first has become the name's */
    tell_made(s);
    return true;
}

static void
drop_name(struct hed_stream *s)
{
    struct hed_object *o = s->object.handle ? hed_handles_remove(s->ctx->device->driver->handles,
                                                                 HED_KIND_STREAM, s->object.handle)
                                            : NULL;

    if (o)
        hed_object_put(o);
}

static pthread_key_t owns_key;
static bool owns_key_made;

/* The thread ends. What it put on its streams is still done. */
static void
owns_free(void *arg)
{
    struct owns *all = arg;

    while (all->first && all->process == getpid()) {
        struct own *o = all->first;

        all->first = o->next;
        hed_stream_end(o->stream);
        if (is_current(o->stream))
            drop_name(o->stream);
        hed_stream_put(o->stream);
        free(o);
    }
    free(all);
}

static void
make_owns_key(void)
{
    owns_key_made = pthread_key_create(&owns_key, owns_free) == 0;
}

static struct owns *
this_threads(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct owns *all;

    (void)pthread_once(&once, make_owns_key);
    if (!owns_key_made)
        return NULL;
    all = pthread_getspecific(owns_key);
    if (all && all->process == getpid())
        return all;
    /* The parent's list, if there was one, is left where it is. */
    all = calloc(1, sizeof *all);
    if (!all)
        return NULL;
    all->process = getpid();
    if (pthread_setspecific(owns_key, all) != 0) {
        free(all);
        return NULL;
    }
    return all;
}

/* The thread's own stream of a context, with a reference; NULL: no memory. */
static struct hed_stream *
own_stream(struct hed_context *c)
{
    struct owns *all = this_threads();
    struct own *o;

    if (!all)
        return NULL;
    for (struct own **at = &all->first; (o = *at);) {
        if (!is_current(o->stream)) {
            *at = o->next;
            hed_stream_put(o->stream);
            free(o);
        } else if (o->stream->ctx == c) {
            hed_object_ref(&o->stream->object);
            return o->stream;
        } else {
            at = &o->next;
        }
    }
    o = malloc(sizeof *o);
    if (!o)
        return NULL;
    o->stream = stream_alloc(c);
    if (!o->stream || !give_name(o->stream)) {
        if (o->stream)
            stream_free(&o->stream->object);
        free(o);
        return NULL;
    }
    o->stream->is_per_thread = true;
    link_stream(o->stream);
    o->next = all->first;
    all->first = o;
    hed_object_ref(&o->stream->object);
    return o->stream;
}

/* ---- finding --------------------------------------------------------------------------------- */

static CUresult
find_default(struct hed_layer *self, bool own, struct hed_stream **out)
{
    struct hed_context *c;
    struct hed_stream *s;
    const CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (own) {
        s = own_stream(c);
        if (!s)
            return CUDA_ERROR_OUT_OF_MEMORY;
    } else {
        hed_lock_brief(&c->lock);
        s = c->legacy;
        if (s)
            hed_object_ref(&s->object);
        hed_unlock_brief(&c->lock);
        if (!s)
            return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    *out = s;
    return CUDA_SUCCESS;
}

CUresult
hed_stream_find(struct hed_layer *self, CUstream handle, bool ptds, struct hed_stream **out)
{
    struct hed_driver *d = hed_driver_of(self);

    if (!handle)
        return find_default(self, ptds, out);
    if (handle == HED_STREAM_LEGACY || handle == HED_STREAM_PER_THREAD)
        return find_default(self, handle == HED_STREAM_PER_THREAD, out);
    /* Acquire: pairs with cuInit. */
    if (!atomic_load_explicit(&d->initialized, memory_order_acquire))
        return CUDA_ERROR_NOT_INITIALIZED;

    struct hed_object *o = hed_handles_get(d->handles, HED_KIND_STREAM, (uintptr_t)handle);

    if (!o)
        return CUDA_ERROR_INVALID_HANDLE;

    struct hed_stream *s = (struct hed_stream *)o;
    const CUresult r = hed_context_error(s->ctx);

    if (r != CUDA_SUCCESS) {
        hed_object_put(o);
        return r;
    }
    *out = s;
    return CUDA_SUCCESS;
}

/* ---- points ---------------------------------------------------------------------------------- */

bool
hed_points_add_point(struct hed_points *p, struct hed_point point)
{
    if (p->count == p->room) {
        const unsigned room = p->room ? 2 * p->room : 2;
        struct hed_point *at = realloc(p->at, room * sizeof *at);

        if (!at)
            return false;
        p->at = at;
        p->room = room;
    }
    hed_object_ref(&point.stream->object);
    p->at[p->count++] = point;
    return true;
}

bool
hed_points_add(struct hed_points *p, struct hed_stream *s)
{
    hed_lock(&s->lock);

    const uint64_t number = s->submitted;
    const bool reached = s->done >= number;

    hed_unlock(&s->lock);
    return reached || hed_points_add_point(p, (struct hed_point){s, number});
}

bool
hed_points_add_all(struct hed_points *p, struct hed_context *c, bool only_blocking)
{
    bool good = true;

    hed_lock(&c->lock);
    for (struct hed_stream *s = c->streams; s && good; s = s->next)
        if (s->blocking || !only_blocking)
            good = hed_points_add(p, s);
    if (good && !only_blocking && c->legacy)
        good = hed_points_add(p, c->legacy);
    hed_unlock(&c->lock);
    return good;
}

void
hed_points_prune(struct hed_points *p)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < p->count; i++) {
        if (hed_point_reached(p->at[i]))
            hed_stream_put(p->at[i].stream);
        else
            p->at[kept++] = p->at[i];
    }
    p->count = kept;
}

void
hed_points_clear(struct hed_points *p)
{
    for (unsigned i = 0; i < p->count; i++)
        hed_stream_put(p->at[i].stream);
    free(p->at);
    *p = (struct hed_points){0};
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* What a question about a stream is about: the legacy stream's has the blocking ones in it. */
static bool
pending(struct hed_stream *s, struct hed_points *p)
{
    return hed_points_add(p, s) && (!s->is_legacy || hed_points_add_all(p, s->ctx, true));
}

static void
wait_all(struct hed_points *p)
{
    for (unsigned i = 0; i < p->count; i++)
        hed_point_wait(p->at[i]);
    hed_points_clear(p);
}

bool
hed_stream_idle(struct hed_stream *s)
{
    struct hed_points p = {0};
    void *m;

    /* What has failed does no more. */
    if (hed_far_of(s->ctx, &m))
        return hed_far_stream_query(s) != CUDA_ERROR_NOT_READY;

    const bool idle = pending(s, &p) && p.count == 0;

    hed_points_clear(&p);
    return idle;
}

CUresult
hed_stream_synchronize(struct hed_stream *s)
{
    struct hed_points p = {0};
    void *m;

    if (hed_far_of(s->ctx, &m))
        return hed_far_stream_synchronize(s);

    const bool good = pending(s, &p);

    wait_all(&p);
    return good ? hed_context_error(s->ctx) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- contexts -------------------------------------------------------------------------------- */

CUresult
hed_stream_context_made(struct hed_context *c)
{
    struct hed_stream *s = stream_alloc(c);

    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->is_legacy = true;
    s->blocking = false; /* it waits for those that are, and not for itself */
    hed_lock(&c->lock);
    c->legacy = s;
    hed_unlock(&c->lock);
    return CUDA_SUCCESS;
}

/* A stream of the context that captures, with a reference; or NULL. */
static struct hed_stream *
capturing_stream(struct hed_context *c)
{
    struct hed_stream *s;

    hed_lock(&c->lock);
    /* Relaxed: the capture is looked at again under its own lock. */
    for (s = c->streams; s; s = s->next)
        if (atomic_load_explicit(&s->capture, memory_order_relaxed))
            break;
    if (s)
        hed_object_ref(&s->object);
    hed_unlock(&c->lock);
    return s;
}

CUresult
hed_stream_context_uncaptured(struct hed_context *c)
{
    struct hed_stream *s = capturing_stream(c);

    if (!s)
        return CUDA_SUCCESS;

    const CUresult r = hed_capture_broken(s);

    hed_stream_put(s);
    return r;
}

CUresult
hed_stream_context_wait(struct hed_context *c)
{
    struct hed_points p = {0};
    void *m;

    if (hed_far_of(c, &m))
        return hed_far_context_wait(c);

    const bool good = hed_points_add_all(&p, c, false);

    wait_all(&p);
    return good ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void
wait_all_of(struct hed_stream *s)
{
    hed_lock(&s->lock);

    const uint64_t number = s->submitted;

    hed_unlock(&s->lock);
    hed_point_wait((struct hed_point){s, number});
}

/* Ends a stream that the caller has a reference to, and waits for its work. */
static void
close_stream(struct hed_stream *s)
{
    hed_capture_stream_gone(s);
    hed_stream_end(s);
    drop_name(s);
    wait_all_of(s);
    hed_stream_retire(s);
}

void
hed_stream_context_gone(struct hed_context *c)
{
    for (;;) {
        hed_lock(&c->lock);

        const bool legacy = !c->streams;
        struct hed_stream *s = legacy ? c->legacy : c->streams;

        /* The context's reference to the legacy stream becomes ours. */
        if (legacy)
            c->legacy = NULL;
        else
            hed_object_ref(&s->object);
        hed_unlock(&c->lock);
        if (!s)
            break;
        close_stream(s);
        hed_stream_put(s);
    }
}
