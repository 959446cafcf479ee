/* Moves chunks. See pump.h.
 *
 *             agent            copy done            copy threads
 *   reading:  FREE ───> COPYING ───────────> WITH_THREADS ──────> FREE
 *   writing:  FREE ───> WITH_THREADS ──copy threads──> FILLED ──> COPYING ──copy done──> FREE
 *
 * Invariants:
 * 1. Only the agent takes a slot out of FREE, COPYING and FILLED, and only a copy thread,
 *    under the lock, out of WITH_THREADS.
 * 2. After the first error no slot goes to the copy threads any more, and all come back to FREE.
 */
#include "move/session/pump.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/number.h"
#include "base/relax.h"
#include "base/thread.h"
#include "move/session/bounce.h"
#include "move/session/snap.h"
#include "remote/client.h"

#define SLOTS 10u
#define COPIES 3u /* slots that are being read at once; the others are with the threads */
#define SLOT_CHUNKS 8u
#define SLOT_BYTES ((size_t)SLOT_CHUNKS * HED_EXTENT_CHUNK)
#define SMALL_MOST 64u /* chunks of a slot that are not whole */
#define THREADS_MAX 16
#define SPINS 20000 /* looks for work before a thread sleeps: waking one takes as long as a copy */
#define TOUCH_BYTES ((size_t)8 << 20) /* that one thread touches at a time */

enum slot_state { SLOT_FREE, SLOT_COPYING, SLOT_WITH_THREADS, SLOT_FILLED };

struct slot {
    enum slot_state state;
    char *at;
    struct hed_stream *stream; /* a reference; of the present context */
    const struct hed_remote_chunk *chunks;
    unsigned count, taken, done; /* chunks; those that threads have taken; those that are done */
};

struct hed_remote_pump {
    struct hed_remote *remote;
    struct hed_context *ctx;         /* of the streams; a reference; NULL: there are none */
    struct hed_remote_bounce bounce; /* the slots' memory */
    struct slot slots[SLOTS];
    pthread_t threads[THREADS_MAX];
    unsigned thread_count;

    _Atomic uint32_t waiting; /* chunks that no thread has taken yet; changed under the lock */
    _Atomic uint32_t ended;   /* changes when a slot leaves the threads; the same */
    pthread_mutex_t lock;     /* guards what follows, and states */
    pthread_cond_t work, done;
    hed_remote_chunk_fn *fn;
    void *arg;
    bool writing, pumping, ends;
    char *touch; /* memory to be touched */
    size_t touch_left;
    unsigned touching;
    int err; /* the first */
    struct hed_why why;
};

/* ---- copy threads ---------------------------------------------------------------------------- */

static struct slot *
slot_for_thread_locked(struct hed_remote_pump *p)
{
    for (unsigned i = 0; i < SLOTS; i++)
        if (p->slots[i].state == SLOT_WITH_THREADS && p->slots[i].taken < p->slots[i].count)
            return &p->slots[i];
    return NULL;
}

/* Does one chunk of a slot. The lock is held, except meanwhile. */
static void
do_chunk_locked(struct hed_remote_pump *p, struct slot *s)
{
    const unsigned number = s->taken++;

    atomic_fetch_sub_explicit(&p->waiting, 1, memory_order_relaxed);

    const struct hed_remote_chunk *c = &s->chunks[number];
    hed_remote_chunk_fn *fn = p->err ? NULL : p->fn;
    struct hed_why why = {""};
    char *data = s->at;
    int err;

    for (unsigned i = 0; i < number; i++)
        data += s->chunks[i].size;
    (void)pthread_mutex_unlock(&p->lock);
    err = fn ? fn(p->arg, c, data, &why) : 0;
    (void)pthread_mutex_lock(&p->lock);
    if (err && !p->err) {
        p->err = err;
        p->why = why;
    }
    if (++s->done == s->count) {
        s->state = p->writing && !p->err ? SLOT_FILLED : SLOT_FREE;
        atomic_fetch_add_explicit(&p->ended, 1, memory_order_relaxed);
        (void)pthread_cond_broadcast(&p->done);
    }
}

static void
touch_some_locked(struct hed_remote_pump *p)
{
    const size_t n = p->touch_left < TOUCH_BYTES ? p->touch_left : TOUCH_BYTES;
    char *at = p->touch;
    const size_t page = 4096;

    p->touch += n;
    p->touch_left -= n;
    p->touching++;
    (void)pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < n; i += page)
        *(volatile char *)(at + i) = 0;
    (void)pthread_mutex_lock(&p->lock);
    p->touching--;
    if (p->touching == 0 && p->touch_left == 0)
        (void)pthread_cond_broadcast(&p->done);
}

/* Looks for work for a while without the lock. Relaxed: the lock is taken before it is used. */
static void
spin_for_work(struct hed_remote_pump *p)
{
    (void)pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < SPINS && atomic_load_explicit(&p->waiting, memory_order_relaxed) == 0;
         i++)
        hed_relax();
    (void)pthread_mutex_lock(&p->lock);
}

static void *
copy_thread(void *arg)
{
    struct hed_remote_pump *p = arg;
    bool spun = false;

    (void)pthread_mutex_lock(&p->lock);
    while (!p->ends) {
        struct slot *s = slot_for_thread_locked(p);
        if (s) {
            do_chunk_locked(p, s);
            spun = false;
        } else if (p->touch_left) {
            touch_some_locked(p);
        } else if (p->pumping && !spun) {
            spin_for_work(p);
            spun = true;
        } else {
            (void)pthread_cond_wait(&p->work, &p->lock);
            spun = false;
        }
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

void
hed_remote_pump_touch(struct hed_remote_pump *p, void *at, size_t size)
{
    (void)pthread_mutex_lock(&p->lock);
    p->touch = at;
    p->touch_left = size;
    (void)pthread_cond_broadcast(&p->work);
    while (p->touch_left || p->touching)
        (void)pthread_cond_wait(&p->done, &p->lock);
    (void)pthread_mutex_unlock(&p->lock);
}

/* ---- streams --------------------------------------------------------------------------------- */

static void
drop_streams(struct hed_remote_pump *p)
{
    struct hed_handles *handles = p->remote->driver->handles;

    for (unsigned i = 0; i < SLOTS; i++) {
        struct hed_stream *s = p->slots[i].stream;

        p->slots[i].stream = NULL;
        if (!s)
            continue;
        hed_stream_end(s);

        struct hed_object *named = hed_handles_remove(handles, HED_KIND_STREAM, s->object.handle);

        if (named)
            hed_object_put(named);
        hed_stream_put(s);
    }
    if (p->ctx)
        hed_context_unref(p->ctx);
    p->ctx = NULL;
}

/* One stream for each slot, so that each can be waited for alone. */
static CUresult
make_streams(struct hed_remote_pump *p, struct hed_context *c)
{
    CUresult r = CUDA_SUCCESS;

    if (p->ctx == c)
        return r;
    drop_streams(p);
    p->ctx = c;
    hed_context_ref(c);
    for (unsigned i = 0; i < SLOTS && r == CUDA_SUCCESS; i++) {
        CUstream handle = NULL;

        r = hed_stream_create(c, CU_STREAM_NON_BLOCKING, 0, &handle);
        if (r == CUDA_SUCCESS)
            p->slots[i].stream = (struct hed_stream *)hed_handles_get(
                p->remote->driver->handles, HED_KIND_STREAM, (uint64_t)(uintptr_t)handle);
        if (r == CUDA_SUCCESS && !p->slots[i].stream)
            r = CUDA_ERROR_INVALID_HANDLE;
    }
    if (r != CUDA_SUCCESS)
        drop_streams(p);
    return r;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void
set_error(struct hed_remote_pump *p, CUresult r, const char *what)
{
    (void)pthread_mutex_lock(&p->lock);
    if (!p->err) {
        p->err = HED_EIO;
        hed_why_set(&p->why, "%s: CUDA error %d", what, (int)r);
    }
    (void)pthread_mutex_unlock(&p->lock);
}

static uint64_t
address_of_chunk(const struct hed_remote_chunk *c)
{
    return c->extent->array ? 0 : c->from ? c->from : c->extent->at + c->offset;
}

/* Do the bytes of b lie right behind those of a? */
static bool
is_next_chunk(const struct hed_remote_chunk *a, const struct hed_remote_chunk *b)
{
    return a->extent == b->extent && a->offset + a->size == b->offset &&
           (a->extent->array || address_of_chunk(a) + a->size == address_of_chunk(b));
}

/* Begins the copies of a slot; neighbours are one copy. */
static CUresult
copy_slot(struct hed_remote_pump *p, struct slot *s, bool to_host)
{
    CUresult r = CUDA_SUCCESS;
    char *data = s->at;

    for (unsigned i = 0, n; i < s->count && r == CUDA_SUCCESS; i += n) {
        const struct hed_remote_chunk *c = &s->chunks[i];
        uint64_t size = c->size;

        for (n = 1; i + n < s->count && is_next_chunk(&c[n - 1], &c[n]); n++)
            size += c[n].size;
        r = hed_remote_extent_copy(p->remote, s->stream, c->extent, address_of_chunk(c), c->offset,
                                   size, data, to_host);
        data += size;
    }
    return r;
}

static void
set_slot_state(struct hed_remote_pump *p, struct slot *s, enum slot_state state)
{
    (void)pthread_mutex_lock(&p->lock);
    if (p->err && state == SLOT_WITH_THREADS)
        state = SLOT_FREE;
    s->state = state;
    if (state == SLOT_WITH_THREADS) {
        atomic_fetch_add_explicit(&p->waiting, s->count, memory_order_relaxed);
        (void)pthread_cond_broadcast(&p->work);
    }
    (void)pthread_mutex_unlock(&p->lock);
}

/* The slot's copies, if any, are done after this. */
static void
await_copies(struct hed_remote_pump *p, struct slot *s)
{
    const CUresult r = hed_stream_synchronize(s->stream);

    if (r != CUDA_SUCCESS)
        set_error(p, r, "memory cannot be copied");
}

/* Gives a slot the next chunks, of one context. Few are spread, so that all have work soon. */
static size_t
load_slot(struct slot *s, const struct hed_remote_chunk *chunks, size_t left, size_t count)
{
    const size_t most = hed_clamp(count / (2 * SLOTS), 1, SLOT_CHUNKS) * HED_EXTENT_CHUNK;
    size_t bytes = 0;

    s->chunks = chunks;
    s->count = s->taken = s->done = 0;
    while (s->count < left && s->count < SMALL_MOST && bytes + chunks[s->count].size <= most &&
           chunks[s->count].extent->ctx == chunks[0].extent->ctx)
        bytes += chunks[s->count++].size;
    return s->count;
}

static bool
has_failed(struct hed_remote_pump *p)
{
    (void)pthread_mutex_lock(&p->lock);
    const bool failed = p->err != 0;
    (void)pthread_mutex_unlock(&p->lock);
    return failed;
}

static enum slot_state
slot_state_now(struct hed_remote_pump *p, const struct slot *s)
{
    (void)pthread_mutex_lock(&p->lock);
    const enum slot_state state = s->state;
    (void)pthread_mutex_unlock(&p->lock);
    return state;
}

/* Waits for the copies of a slot, if there are any, and frees it. */
static void
end_copies(struct hed_remote_pump *p, struct slot *s)
{
    if (slot_state_now(p, s) != SLOT_COPYING)
        return;
    await_copies(p, s);
    set_slot_state(p, s, SLOT_FREE);
}

/* Waits until the slot is in one of two states, and says in which. */
static enum slot_state
await_state(struct hed_remote_pump *p, struct slot *s, enum slot_state a, enum slot_state b)
{
    for (unsigned i = 0; i < SPINS; i++) {
        /* Relaxed: the state is read under the lock. */
        const uint32_t before = atomic_load_explicit(&p->ended, memory_order_relaxed);
        const enum slot_state now = slot_state_now(p, s);

        if (now == a || now == b)
            return now;
        while (i < SPINS && atomic_load_explicit(&p->ended, memory_order_relaxed) == before) {
            hed_relax();
            i++;
        }
    }
    (void)pthread_mutex_lock(&p->lock);
    while (s->state != a && s->state != b)
        (void)pthread_cond_wait(&p->done, &p->lock);

    const enum slot_state state = s->state;

    (void)pthread_mutex_unlock(&p->lock);
    return state;
}

/* ---- reading and writing --------------------------------------------------------------------- */

static void
begin_pumping(struct hed_remote_pump *p, bool writing, hed_remote_chunk_fn *fn, void *arg)
{
    (void)pthread_mutex_lock(&p->lock);
    p->fn = fn;
    p->arg = arg;
    p->writing = writing;
    p->pumping = true;
    p->err = 0;
    (void)pthread_mutex_unlock(&p->lock);
}

static int
end_pumping(struct hed_remote_pump *p, struct hed_why *why)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot *s = &p->slots[i];

        end_copies(p, s);
        if (await_state(p, s, SLOT_FREE, SLOT_FILLED) == SLOT_FILLED)
            set_slot_state(p, s, SLOT_FREE);
    }
    (void)pthread_mutex_lock(&p->lock);
    p->pumping = false;
    (void)pthread_mutex_unlock(&p->lock);
    if (p->err)
        hed_why_set(why, "%s", p->why.text);
    return p->err;
}

/* Slots are used in turn: the one that comes next was begun first. */
int
hed_remote_pump_read(struct hed_remote_pump *p, const struct hed_remote_chunk *chunks, size_t count,
                     hed_remote_chunk_fn *fn, void *arg, struct hed_why *why)
{
    size_t next = 0, begun = 0, ended = 0; /* chunks; slots */

    begin_pumping(p, false, fn, arg);
    while ((next < count || ended < begun) && !has_failed(p)) {
        struct slot *s = &p->slots[begun % SLOTS];
        const bool other = next < count && p->ctx != chunks[next].extent->ctx;

        if (next < count && begun - ended < COPIES && !(other && ended < begun)) {
            (void)await_state(p, s, SLOT_FREE, SLOT_FREE);

            CUresult r = make_streams(p, chunks[next].extent->ctx);

            if (r == CUDA_SUCCESS) {
                next += load_slot(s, chunks + next, count - next, count);
                r = copy_slot(p, s, true);
                set_slot_state(p, s, SLOT_COPYING);
            }
            if (r != CUDA_SUCCESS)
                set_error(p, r, "memory cannot be read");
            begun++;
            continue;
        }
        s = &p->slots[ended++ % SLOTS];
        await_copies(p, s);
        set_slot_state(p, s, SLOT_WITH_THREADS);
    }
    return end_pumping(p, why);
}

int
hed_remote_pump_write(struct hed_remote_pump *p, const struct hed_remote_chunk *chunks,
                      size_t count, hed_remote_chunk_fn *fn, void *arg, struct hed_why *why)
{
    size_t next = 0, begun = 0, ended = 0;

    begin_pumping(p, true, fn, arg);
    while ((next < count || ended < begun) && !has_failed(p)) {
        struct slot *s = &p->slots[begun % SLOTS];

        if (next < count && begun - ended < SLOTS) {
            /* Its last copies must have read it. */
            end_copies(p, s);
            next += load_slot(s, chunks + next, count - next, count);
            set_slot_state(p, s, SLOT_WITH_THREADS);
            begun++;
            continue;
        }
        s = &p->slots[ended++ % SLOTS];
        if (await_state(p, s, SLOT_FILLED, SLOT_FREE) == SLOT_FREE)
            break; /* a copy thread has failed */

        CUresult r = CUDA_SUCCESS;

        if (p->ctx != s->chunks->extent->ctx) {
            for (unsigned i = 0; i < SLOTS; i++)
                end_copies(p, &p->slots[i]);
            r = make_streams(p, s->chunks->extent->ctx);
        }
        if (r == CUDA_SUCCESS)
            r = copy_slot(p, s, false);
        set_slot_state(p, s, SLOT_COPYING);
        if (r != CUDA_SUCCESS)
            set_error(p, r, "memory cannot be written");
    }
    return end_pumping(p, why);
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Some cores are left for the agent and the worker, without whom the bus stands still: with 16
 * of 16 cores, 32 GiB came in 15 % later than with 10. */
static unsigned
wanted_threads(void)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);

    return (unsigned)hed_clamp(((uint64_t)(cores > 0 ? cores : 1) * 5 + 7) / 8, 1, THREADS_MAX);
}

int
hed_remote_pump_open(struct hed_remote *r, struct hed_remote_pump **out, struct hed_why *why)
{
    const unsigned wanted = wanted_threads();
    struct hed_remote_pump *p = calloc(1, sizeof *p);
    int err = p ? 0 : HED_ENOMEM;

    if (!err) {
        p->remote = r;
        (void)pthread_mutex_init(&p->lock, NULL);
        (void)pthread_cond_init(&p->work, NULL);
        (void)pthread_cond_init(&p->done, NULL);
        err = hed_remote_bounce_make(r, SLOTS * SLOT_BYTES, &p->bounce);
    }
    for (unsigned i = 0; i < SLOTS && !err; i++)
        p->slots[i].at = p->bounce.at + i * SLOT_BYTES;
    while (!err && p->thread_count < wanted) {
        if (hed_thread_start(&(struct hed_thread_how){.name = "heddle-snap"}, copy_thread, p,
                             &p->threads[p->thread_count]) != 0)
            break;
        p->thread_count++;
    }
    if (!err && p->thread_count == 0)
        err = HED_ENOMEM;
    if (err) {
        hed_why_set(why, "not enough memory for a bounce buffer");
        hed_remote_pump_close(p);
        return err;
    }
    *out = p;
    return 0;
}

bool
hed_remote_pump_pinned(const struct hed_remote_pump *p, uint64_t *at, uint64_t *size)
{
    *at = p->bounce.pinned;
    *size = SLOTS * SLOT_BYTES;
    return p->bounce.pinned != 0;
}

void
hed_remote_pump_close(struct hed_remote_pump *p)
{
    if (!p)
        return;
    (void)pthread_mutex_lock(&p->lock);
    p->ends = true;
    (void)pthread_cond_broadcast(&p->work);
    (void)pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->thread_count; i++)
        (void)pthread_join(p->threads[i], NULL);
    drop_streams(p);
    hed_remote_bounce_drop(p->remote, &p->bounce);
    (void)pthread_mutex_destroy(&p->lock);
    (void)pthread_cond_destroy(&p->work);
    (void)pthread_cond_destroy(&p->done);
    free(p);
}
