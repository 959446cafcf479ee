/* Functions of the program that streams of a worker call (cuLaunchHostFunc, cuStreamAddCallback),
 * and the slots of streams that have been destroyed.
 *
 *   put_host: work kept under an id ──HED_MSG_HOST──> worker, in stream order
 *   thread <──HED_MSG_RUN, on a channel of its own── the stream has come to it, and waits
 *          ──the same message back──> it has run
 *
 * The thread and its channel are made for the first function. One thread runs them all, in the
 * order in which they come: CUDA promises no more. A worker that runs nothing (backend null) is not
 * told about them; then the thread simply runs them in order.
 *
 * Invariants:
 * 1. A function is called without a lock, at most once for each time it was put on a stream.
 * 2. When the session is lost, functions of cuStreamAddCallback that have not run are called with
 *    the error, the others never.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/thread.h"
#include "driver/driver.h"
#include "remote/client/memory.h"
#include "remote/client/queue.h"
#include "remote/client/remote.h"

#define LOOK_MS 500 /* how often the thread checks whether the session is lost */

/* One function. The upper half of its id is the generation, the lower half is 1 + its index. */
struct entry {
    struct hed_work *work; /* NULL: the entry is free */
    uint32_t generation;
    uint32_t of_context; /* the generation of the work's context */
    uint32_t next_free;  /* 1 + index; 0: none */
};

struct left { /* a slot that has yet to be written */
    uint32_t slot;
    uint64_t number;
};

struct ready { /* backend null: functions to be run */
    struct ready *next;
    uint64_t id;
};

struct hed_remote_host {
    struct hed_lock lock; /* rank HED_RANK_HOST; guards all of this */
    pthread_cond_t changed;
    struct entry *entries;
    uint32_t count, room, first_free; /* first_free: 1 + index */
    bool started;                     /* the thread exists */
    _Atomic bool stopping;            /* it shall end, because the worker is left */
    struct hed_channel *channel;      /* NULL for backend null */
    struct ready *first, **last;
    _Atomic uint32_t unrun; /* functions put on streams that have not run yet */
    _Atomic unsigned
        running; /* backend null: the same, and the one that runs; changed under lock */
    struct left *left;
    size_t left_count, left_room;
};

/* ---- slots ----------------------------------------------------------------------------------- */

/* Gives back the slots that have been written by now. Acquire: as in stream.c; they are not written
 * again. */
static void
sweep_locked(struct hed_remote *r, struct hed_remote_host *h)
{
    size_t kept = 0;

    for (size_t i = 0; i < h->left_count; i++) {
        const struct left l = h->left[i];

        if (atomic_load_explicit(&r->slots[l.slot], memory_order_acquire) >= l.number)
            hed_remote_slot_give(r, l.slot);
        else
            h->left[kept++] = l;
    }
    h->left_count = kept;
}

uint32_t
hed_remote_slot_enter(struct hed_remote *r)
{
    struct hed_remote_host *h = r->host;

    hed_lock(&h->lock);
    sweep_locked(r, h);
    hed_unlock(&h->lock);

    const uint32_t slot = hed_remote_slot_take(r);

    if (slot) /* relaxed: the message that asks the worker to write it comes later */
        atomic_store_explicit(&r->slots[slot], 0, memory_order_relaxed);
    return slot;
}

void
hed_remote_slot_leave(struct hed_remote *r, uint32_t slot, uint64_t number)
{
    struct hed_remote_host *h = r->host;

    hed_lock(&h->lock);
    if (h->left_count == h->left_room) {
        const size_t room = h->left_room ? 2 * h->left_room : 16;
        struct left *more = realloc(h->left, room * sizeof *more);

        if (more) {
            h->left = more;
            h->left_room = room;
        }
    }
    /* If there is no memory to note it, the slot is never used again. */
    if (h->left_count < h->left_room)
        h->left[h->left_count++] = (struct left){slot, number};
    sweep_locked(r, h);
    hed_unlock(&h->lock);
}

/* ---- the table ------------------------------------------------------------------------------- */

static struct entry *
find_entry_locked(struct hed_remote_host *h, uint64_t id)
{
    const uint32_t place = (uint32_t)id;
    struct entry *e = place >= 1 && place <= h->count ? &h->entries[place - 1] : NULL;

    return e && e->work && e->generation == id >> 32 ? e : NULL;
}

/* Takes ownership of the work; 0 if there is no memory, and then the caller keeps it. */
static uint64_t
add_function_locked(struct hed_remote_host *h, struct hed_work *w)
{
    uint32_t place = h->first_free;

    if (!place) {
        if (h->count == h->room) {
            const uint32_t room = h->room ? 2 * h->room : 64;
            struct entry *more = realloc(h->entries, room * sizeof *more);

            if (!more)
                return 0;
            h->entries = more;
            h->room = room;
        }
        place = ++h->count;
        h->entries[place - 1] = (struct entry){0};
    } else {
        h->first_free = h->entries[place - 1].next_free;
    }

    struct entry *e = &h->entries[place - 1];

    e->work = w;
    /* Relaxed: a thread that asks about it later put it there itself, or was told by the one that
     * did. */
    atomic_fetch_add_explicit(&h->unrun, 1, memory_order_relaxed);
    return (uint64_t)e->generation << 32 | place;
}

static struct hed_work *
remove_locked(struct hed_remote_host *h, struct entry *e)
{
    struct hed_work *w = e->work;

    e->work = NULL;
    e->generation++;
    e->next_free = h->first_free;
    h->first_free = (uint32_t)(e - h->entries) + 1;
    return w;
}

static uint64_t
add_function(struct hed_remote_host *h, const struct hed_work *w)
{
    struct hed_work *copy = hed_work_copy(w);
    uint64_t id = 0;

    if (!copy)
        return 0;
    hed_lock(&h->lock);
    id = add_function_locked(h, copy);
    if (id) /* relaxed: the thread that adds it uses the context */
        find_entry_locked(h, id)->of_context =
            atomic_load_explicit(&w->ctx->generation, memory_order_relaxed);
    hed_unlock(&h->lock);
    if (!id)
        hed_work_free(copy);
    return id;
}

/* Release: pairs with hed_remote_functions_wait(); what the function wrote becomes visible. */
static void
note_run(struct hed_remote_host *h)
{
    atomic_fetch_sub_explicit(&h->unrun, 1, memory_order_release);
}

/* Takes the work of an id; the caller frees it. NULL if there is none any more. */
static struct hed_work *
take_function(struct hed_remote_host *h, uint64_t id, uint32_t *of_context)
{
    hed_lock(&h->lock);

    struct entry *e = find_entry_locked(h, id);

    *of_context = e ? e->of_context : 0;

    struct hed_work *w = e ? remove_locked(h, e) : NULL;

    hed_unlock(&h->lock);
    return w;
}

static void
forget_host_function(struct hed_remote_host *h, uint64_t id)
{
    uint32_t of_context;
    struct hed_work *w = take_function(h, id, &of_context);

    if (w)
        note_run(h);
    hed_work_free(w);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Fetches bytes that were copied before the function, but would only come with an answer. The
 * message has no ticket: the thread that the worker is serving in ticket order may be waiting for
 * the function. */
static void
fetch_functions(struct hed_remote *r)
{
    struct hed_remote_channel *channel;
    struct hed_msg *m;

    /* Relaxed: copies before this function were counted before it was sent. */
    if (!r->copies || atomic_load_explicit(&r->copies->count, memory_order_relaxed) == 0)
        return;
    channel = hed_remote_channel_need(r);
    m = channel ? hed_channel_begin(channel->channel, sizeof *m) : NULL;
    if (!m)
        return;
    *m = (struct hed_msg){.size = sizeof *m,
                          .kind = HED_MSG_FETCH,
                          .flags = HED_MSG_WANTS_ANSWER,
                          .thread = channel->thread};
    if (hed_remote_end(channel, m, sizeof *m) == 0)
        (void)hed_remote_answer(channel);
}

static void
run_function(struct hed_remote *r, uint64_t id, CUresult status)
{
    uint32_t of_context;
    struct hed_work *w = take_function(r->host, id, &of_context);

    if (!w)
        return;
    fetch_functions(r);
    /* The worker's word may come late: it is not about what the program has made of a context that
     * was reset. Acquire: pairs with the release in close_contents(). */
    if (of_context == atomic_load_explicit(&w->ctx->generation, memory_order_acquire))
        hed_context_fail(w->ctx, status);
    if (w->kind == HED_WORK_CALLBACK ||
        (status == CUDA_SUCCESS && hed_context_error(w->ctx) == CUDA_SUCCESS))
        hed_work_call(w);
    hed_work_free(w);
    note_run(r->host);
}

/* The session is lost: handles the functions that have not run. */
static void
abandon_functions(struct hed_remote_host *h)
{
    for (uint32_t place = 0;; place++) {
        struct hed_work *w = NULL;

        hed_lock(&h->lock);

        const bool over = place >= h->count;

        if (!over && h->entries[place].work)
            w = remove_locked(h, &h->entries[place]);
        hed_unlock(&h->lock);
        if (over)
            return;
        if (!w)
            continue;
        hed_context_fail(w->ctx, CUDA_ERROR_DEVICE_UNAVAILABLE);
        if (w->kind == HED_WORK_CALLBACK)
            hed_work_call(w);
        hed_work_free(w);
        note_run(h);
    }
}

/* ---- the thread ------------------------------------------------------------------------------ */

static bool
is_session_over(const struct hed_remote *r)
{
    /* Relaxed, both: it does not matter if this is seen a little later. */
    return atomic_load_explicit(&r->lost, memory_order_relaxed) ||
           atomic_load_explicit(&r->ended, memory_order_relaxed);
}

/* Runs a function that the worker asks for, and tells the worker. */
static int
answer_run(struct hed_remote *r, const struct hed_msg *m)
{
    struct hed_remote_host *h = r->host;
    struct hed_run come;
    struct hed_run *back;

    if (m->kind != HED_MSG_RUN || m->size < sizeof come)
        return HED_EFORMAT;
    memcpy(&come, m, sizeof come);
    run_function(r, come.id, (CUresult)come.status);
    back = hed_channel_begin(h->channel, sizeof *back);
    if (!back)
        return HED_EIO;
    *back = come;
    back->head.size = sizeof *back;
    return hed_channel_end(h->channel, sizeof *back, true);
}

static void *
serve_functions(void *arg)
{
    struct hed_remote *r = arg;
    struct hed_remote_host *h = r->host;
    struct hed_msg *m;
    int err = 0;

    (void)pthread_setname_np(pthread_self(), "heddle-host");
    /* Acquire: pairs with hed_remote_host_stop(). */
    /* While another worker is tried, this one is kept, whatever becomes of the other. */
    while (!err && (!is_session_over(r) || hed_remote_on_trial(r)) &&
           !atomic_load_explicit(&h->stopping, memory_order_acquire)) {
        err = hed_channel_next(h->channel, LOOK_MS, &m);
        if (!err)
            err = answer_run(r, m);
        else if (err == HED_ETIME)
            err = 0;
    }
    if (atomic_load_explicit(&h->stopping, memory_order_acquire)) {
        hed_lock(&h->lock);
        h->started = false;
        (void)pthread_cond_broadcast(&h->changed);
        hed_unlock(&h->lock);
        return NULL;
    }
    if (err)
        hed_remote_lose_channel(r, h->channel, err);
    abandon_functions(h);
    return NULL;
}

void
hed_remote_host_leave(struct hed_remote *r)
{
    hed_lock(&r->host->lock);
    r->host->left_count = 0;
    hed_unlock(&r->host->lock);
}

void
hed_remote_host_stop(struct hed_remote *r)
{
    struct hed_remote_host *h = r->host;

    hed_lock(&h->lock);
    if (h->started && h->channel) {
        atomic_store_explicit(&h->stopping, true, memory_order_release);
        hed_channel_stop(h->channel);
        while (h->started)
            (void)hed_lock_wait(&h->lock, &h->changed, UINT64_MAX);
        atomic_store_explicit(&h->stopping, false, memory_order_relaxed);
    }
    hed_channel_free(h->channel);
    h->channel = NULL;
    hed_unlock(&h->lock);
}

/* Runs functions if there is no worker to wait for (backend null). */
static void *
serve_alone(void *arg)
{
    struct hed_remote *r = arg;
    struct hed_remote_host *h = r->host;

    (void)pthread_setname_np(pthread_self(), "heddle-host");
    hed_lock(&h->lock);
    for (;;) {
        struct ready *one = h->first;

        if (!one) {
            (void)hed_lock_wait(&h->lock, &h->changed, UINT64_MAX);
            continue;
        }
        h->first = one->next;
        if (!h->first)
            h->last = &h->first;
        hed_unlock(&h->lock);
        run_function(r, one->id, CUDA_SUCCESS);
        free(one);
        hed_lock(&h->lock);
        /* Release: pairs with hed_remote_host_busy(); what the function did becomes visible. */
        atomic_fetch_sub_explicit(&h->running, 1, memory_order_release);
        (void)pthread_cond_broadcast(&h->changed);
    }
    return NULL; /* not reached */
}

static int
start_server_locked(struct hed_remote *r, struct hed_remote_host *h)
{
    const bool alone = r->backend == HED_BACKEND_NULL;
    struct hed_why why = {""};
    int err = 0;

    if (h->started)
        return 0;
    if (!alone && !h->channel) {
        err = hed_remote_channel_open(r, 0, HED_CHANNEL_CALLBACKS, &h->channel, &why);
        if (err)
            hed_remote_lose(r, why.text[0] ? why.text : hed_err_text(err));
    }
    if (!err)
        err = hed_thread_detached(&(struct hed_thread_how){.faults = true},
                                  alone ? serve_alone : serve_functions, r);
    h->started = err == 0;
    if (err)
        hed_warn(REMOTE, "cannot open a channel for functions of the program: %s",
                 why.text[0] ? why.text : hed_err_text(err));
    return err;
}

static int
start_function_server(struct hed_remote *r)
{
    hed_lock(&r->host->lock);

    const int err = start_server_locked(r, r->host);

    hed_unlock(&r->host->lock);
    return err;
}

/* ---- putting on streams ---------------------------------------------------------------------- */

/* Backend null: everything before the function is done, so it runs next. */
static bool
run_soon(struct hed_remote_host *h, uint64_t id)
{
    struct ready *one = malloc(sizeof *one);

    if (!one)
        return false;
    *one = (struct ready){NULL, id};
    hed_lock(&h->lock);
    *h->last = one;
    h->last = &one->next;
    /* Relaxed: a thread that asks about it later put it there itself, or was told by the one that
     * did. */
    atomic_fetch_add_explicit(&h->running, 1, memory_order_relaxed);
    (void)pthread_cond_broadcast(&h->changed);
    hed_unlock(&h->lock);
    return true;
}

static bool
send_host(struct hed_remote *r, struct hed_stream *s, const struct hed_work *w, uint64_t id)
{
    struct hed_remote_channel *channel;
    struct hed_host_body *b = hed_remote_begin(r, HED_MSG_HOST, sizeof *b, s->ctx->object.handle,
                                               hed_stream_name(s), w->number, &channel);

    if (!b)
        return false;
    b->id = id;
    b->always = w->kind == HED_WORK_CALLBACK;
    b->holds = 1;
    return hed_remote_end(channel, &b->head, sizeof *b) == 0;
}

CUresult
hed_remote_put_host(struct hed_remote *r, struct hed_stream *s, struct hed_work *w)
{
    struct hed_remote_host *h = r->host;

    if (start_function_server(r) != 0)
        return is_session_over(r) ? CUDA_ERROR_DEVICE_UNAVAILABLE : CUDA_ERROR_OUT_OF_MEMORY;

    const uint64_t id = add_function(h, w);

    if (!id)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (r->backend == HED_BACKEND_NULL ? run_soon(h, id) : send_host(r, s, w, id))
        return CUDA_SUCCESS;
    forget_host_function(h, id);
    return is_session_over(r) ? CUDA_ERROR_DEVICE_UNAVAILABLE : CUDA_ERROR_OUT_OF_MEMORY;
}

bool
hed_remote_host_busy(const struct hed_remote *r)
{
    /* Acquire: pairs with the release in serve_alone(). */
    return r->backend == HED_BACKEND_NULL &&
           atomic_load_explicit(&r->host->running, memory_order_acquire) > 0;
}

bool
hed_remote_functions_wait(void *m)
{
    /* Acquire: pairs with the release in note_run(). */
    return atomic_load_explicit(&hed_remote_of(m)->host->unrun, memory_order_acquire) > 0;
}

void
hed_remote_host_drain(struct hed_remote *r)
{
    struct hed_remote_host *h = r->host;

    if (!hed_remote_host_busy(r) || hed_in_callback())
        return;
    hed_lock(&h->lock);
    while (hed_remote_host_busy(r))
        (void)hed_lock_wait(&h->lock, &h->changed, UINT64_MAX);
    hed_unlock(&h->lock);
}

/* ---- life ------------------------------------------------------------------------------------ */

int
hed_remote_host_init(struct hed_remote *r)
{
    struct hed_remote_host *h = calloc(1, sizeof *h);

    if (!h)
        return HED_ENOMEM;
    hed_lock_init(&h->lock, HED_RANK_HOST);
    (void)pthread_cond_init(&h->changed, NULL);
    h->last = &h->first;
    r->host = h;
    return 0;
}

void
hed_remote_host_forked(struct hed_remote *r)
{
    if (r->host && r->host->channel)
        hed_channel_forked(r->host->channel);
}
