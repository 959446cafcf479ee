/* Streams as objects: creating, finding, ending; a context's default streams; points. See
 * stream.h. */
#include "driver/stream/stream.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "driver/graph/graph.h"
#include "driver/parts.h"

/* ---- life ------------------------------------------------------------------------------------ */

static _Atomic uint64_t ids;

static void
free_stream_object(struct hed_object *o)
{
    struct hed_stream *s = (struct hed_stream *)o;

    if (s->fini)
        s->fini(s);
    hed_lock_fini(&s->lock);
    hed_context_unref(s->ctx);
    free(s);
}

/* A stream that is in no list yet. */
static struct hed_stream *
stream_alloc(struct hed_context *c)
{
    void *m;
    const struct hed_machine *machine = hed_machine_of(c, &m);
    struct hed_stream *s = calloc(1, sizeof *s + machine->stream_bytes);

    if (!s)
        return NULL;
    s->own = s + 1;
    s->object.destroy = free_stream_object;
    atomic_init(&s->object.refs, 1);
    s->ctx = c;
    hed_context_ref(c);
    s->blocking = true;
    s->generation = atomic_load_explicit(&c->generation, memory_order_relaxed);
    s->id = atomic_fetch_add_explicit(&ids, 1, memory_order_relaxed) + 1;
    s->attributes[CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY].syncPolicy = CU_SYNC_POLICY_AUTO;
    if (c->device->info.profile.attributes[CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT] > 1)
        s->attributes[CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP].memSyncDomainMap.remote = 1;
    hed_lock_init(&s->lock, HED_RANK_STREAM);
    machine->stream_init(m, s);
    return s;
}

/* Puts it into its context's list, which gets its own reference. */
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

/* Gives the stream its handle, and with it a reference. False if there is no memory. */
static bool
give_name(struct hed_stream *s)
{
    void *m;
    const struct hed_machine *machine = hed_machine_of(s->ctx, &m);

    if (hed_handles_add(s->ctx->device->driver->handles, HED_KIND_STREAM, &s->object) != 0)
        return false;
    machine->stream_made(m, s);
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
    if (!give_name(s)) {
        free_stream_object(&s->object);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    link_stream(s);
    *out = (CUstream)(uintptr_t)s->object.handle;
    return CUDA_SUCCESS;
}

void
hed_stream_end(struct hed_stream *s)
{
    bool over = false;
    void *m;

    hed_lock(&s->lock);
    /* Only once: afterwards the driver may be gone, and the stream is only kept by a thread's
     * list. */
    if (!s->destroyed) {
        s->destroyed = true;
        over = hed_machine_of(s->ctx, &m)->stream_gone(m, s);
    }
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

/* One for each context in which the thread has used its own default stream. */
struct own {
    struct own *next;
    struct hed_stream *stream; /* a reference */
};

struct owns {
    pid_t process; /* in the child of a fork, nothing of the parent is touched */
    struct own *first;
};

/* Does the stream belong to the context's current contents? */
static bool
is_current(const struct hed_stream *s)
{
    /* Acquire: pairs with the release in close_contents(). */
    return s->generation == atomic_load_explicit(&s->ctx->generation, memory_order_acquire);
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

/* The thread ends. The work on its streams still runs. */
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
    /* The parent's list, if there was one, is not touched. */
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

/* The thread's own default stream of a context, with a reference; NULL if there is no memory. */
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
            free_stream_object(&o->stream->object);
        free(o);
        return NULL;
    }
    hed_object_ref(&o->stream->object); /* the thread's; the first is the handle's */
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
    if (handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
        return find_default(self, handle == CU_STREAM_PER_THREAD, out);
    /* Relaxed: a program that uses the driver from several threads orders cuInit itself. */
    if (!atomic_load_explicit(&d->initialized, memory_order_relaxed))
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

CUresult
hed_stream_begin(struct hed_layer *self, CUstream handle, bool ptds, struct hed_stream **out,
                 struct hed_context **c)
{
    struct hed_context *current;
    CUresult r = hed_current_if_any(self, &current);

    if (r == CUDA_SUCCESS)
        r = hed_stream_find(self, handle, ptds, out);
    if (r == CUDA_SUCCESS && c)
        *c = current ? current : (*out)->ctx;
    return r;
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

uint64_t
hed_stream_now(struct hed_stream *s)
{
    hed_lock(&s->lock);

    const uint64_t number = s->submitted;

    hed_unlock(&s->lock);
    return number;
}

void
hed_point_wait(struct hed_point p)
{
    void *m;

    if (p.stream)
        (void)hed_machine_of(p.stream->ctx, &m)->point_wait(m, p);
}

bool
hed_point_reached(struct hed_point p)
{
    void *m;

    return !p.stream || hed_machine_of(p.stream->ctx, &m)->point_reached(m, p);
}

CUresult
hed_stream_synchronize(struct hed_stream *s)
{
    void *m;

    return hed_machine_of(s->ctx, &m)->stream_wait(m, s);
}

/* ---- contexts -------------------------------------------------------------------------------- */

CUresult
hed_stream_context_made(struct hed_context *c)
{
    struct hed_stream *s = stream_alloc(c);

    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->is_legacy = true;
    s->blocking = false; /* it waits for blocking streams, but not for itself */
    hed_lock(&c->lock);
    c->legacy = s;
    hed_unlock(&c->lock);
    return CUDA_SUCCESS;
}

/* A capturing stream of the context, with a reference; or NULL. */
static struct hed_stream *
capturing_stream(struct hed_context *c)
{
    struct hed_stream *s;

    hed_lock(&c->lock);
    /* Relaxed: the capture is checked again under its own lock. */
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

/* Ends a stream to which the caller has a reference, and waits for its work. */
static void
close_stream(struct hed_stream *s)
{
    hed_capture_stream_gone(s);
    hed_stream_end(s);
    drop_name(s);
    hed_point_wait((struct hed_point){s, hed_stream_now(s)});
    hed_stream_retire(s);
}

void
hed_stream_context_gone(struct hed_context *c)
{
    for (;;) {
        hed_lock(&c->lock);

        const bool legacy = !c->streams;
        struct hed_stream *s = legacy ? c->legacy : c->streams;

        /* This function takes over the context's reference to the legacy stream. */
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
