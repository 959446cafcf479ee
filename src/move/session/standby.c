/* A worker that is being prepared. See standby.h. */
#include "move/session/standby.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/number.h"
#include "move/session/early.h"
#include "move/session/extents.h"
#include "move/session/snap.h"
#include "remote/client.h"

#define WRITERS 4u /* at once; each has a connection */

static int
standby_lost(const struct hed_remote_standby *t, struct hed_why *why)
{
    /* Relaxed: this thread has noticed it, or will at the next look. */
    if (!atomic_load_explicit(&t->remote.lost, memory_order_relaxed))
        return 0;
    hed_why_set(why, "the new worker is lost: %s", t->moving.trouble.text);
    return HED_EIO;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* What a session needs before it joins a worker: the settings and the addresses of the program's.
 */
static int
copy_session(struct hed_remote_standby *standby, const struct hed_remote *r, const char *address,
             struct hed_why *why)
{
    struct hed_remote *t = &standby->remote;

    *t = (struct hed_remote){.driver = r->driver,
                             .address = r->address,
                             .tls = r->tls,
                             .timeout_ms = r->timeout_ms,
                             .silent_ms = r->silent_ms,
                             .mover = r->mover,
                             .moving = &standby->moving,
                             .arena = r->arena,
                             .base = r->base,
                             .size = r->size,
                             .stride = r->stride,
                             .usable = r->usable,
                             .map_unit = r->map_unit,
                             .device_count = r->device_count,
                             .heap = r->heap,
                             .heap_size = r->heap_size};
    memcpy(t->token, r->token, sizeof t->token);
    for (int i = 0; i < r->device_count; i++)
        t->devices[i].ordinal = r->devices[i].ordinal;
    hed_lock_init(&t->channels_lock, HED_RANK_CHANNELS);
    hed_lock_init(&t->events_lock, HED_RANK_EVENTS);
    hed_lock_init(&t->flush_lock, HED_RANK_FLUSH);
    hed_lock_init(&t->unmap_lock, HED_RANK_UNMAP);
    standby->moving.obeys = r->moving->obeys;
    /* Relaxed, both: no other thread knows of it yet. Losing it is no loss for the program, and
     * every function here flushes what it sends. */
    atomic_store_explicit(&standby->moving.trying, true, memory_order_relaxed);
    atomic_store_explicit(&t->flusher, true, memory_order_relaxed);
    if (address && address[0]) {
        const int err = hed_address_parse(address, &t->address, why);

        if (err)
            return err;
    }
    return hed_remote_memory_init(t, why);
}

int
hed_remote_standby_open(struct hed_remote *r, const char *address, struct hed_remote_standby **out,
                        struct hed_why *why)
{
    struct hed_remote_standby *t = calloc(1, sizeof *t);
    struct hed_channel *first = NULL;
    int err = t ? 0 : HED_ENOMEM;

    if (err)
        return err;
    t->of = r;
    t->remote.heap = r->heap;
    (void)pthread_mutex_init(&t->gate, NULL);
    (void)pthread_cond_init(&t->passed, NULL);
    err = copy_session(t, r, address, why);
    if (!err)
        err = hed_remote_join_again(&t->remote, &first, why);
    if (!err && (err = hed_remote_channel_adopt(&t->remote, first)) != 0)
        hed_channel_free(first);
    /* A heap of the server's own would not have the program's pinned memory. */
    if (!err && r->heap >= 0 && t->remote.heap != r->heap)
        err = HED_ENOTSUP;
    if (err) {
        hed_remote_standby_close(t);
        return err;
    }
    t->here = hed_remote_known_create();
    t->there = hed_remote_known_create();
    r->moving->known = t->here;
    t->moving.known = t->there;
    r->moving->standby = &t->remote;
    *out = t;
    return 0;
}

static void
free_range(struct hed_remote_standby_range *g)
{
    free(g->hashes);
    free(g->known);
}

static int
forget_mapping(void *arg, const struct hed_remote_mapping *m)
{
    (void)hed_remote_mapping_remove(arg, m->kind, m->at);
    return 0;
}

void
hed_remote_standby_close(struct hed_remote_standby *t)
{
    if (!t)
        return;

    struct hed_remote *standby = &t->remote;

    t->of->moving->standby = NULL;
    t->of->moving->known = NULL;
    hed_remote_known_free(t->here);
    hed_remote_known_free(t->there);
    hed_remote_early_free(t);
    if (standby->memory) {
        hed_remote_attachment_close(standby);
        (void)hed_remote_mappings_each(standby, HED_MAP_DEVICE, forget_mapping, standby);
        (void)hed_remote_mappings_each(standby, HED_MAP_HOST, forget_mapping, standby);
        (void)pthread_cond_destroy(&standby->memory->answered);
        (void)pthread_cond_destroy(&standby->copies->came);
    }
    if (standby->heap >= 0 && standby->heap != t->of->heap)
        (void)close(standby->heap);
    while (standby->channels) {
        struct hed_remote_channel *gone = standby->channels;

        standby->channels = gone->next;
        free(gone);
    }
    for (size_t i = 0; i < t->context_count; i++)
        hed_context_unref(t->contexts[i]);
    for (size_t i = 0; i < t->count; i++)
        free_range(&t->ranges[i]);
    free(t->ranges);
    free(standby->memory);
    free(standby->copies);
    (void)pthread_mutex_destroy(&t->gate);
    (void)pthread_cond_destroy(&t->passed);
    free(t);
}

/* ---- contexts -------------------------------------------------------------------------------- */

/* No stream of the program has such a name: it is odd, and the program's handles are multiples of
 * HED_HANDLE_ALIGN. */
static uint64_t
standby_stream_name(uint64_t first, unsigned slot)
{
    return first + 2 * slot;
}

/* Streams for writers. They need not have an order with anything: each waits for its own. */
static void
make_standby_streams(struct hed_remote_standby *t, size_t i)
{
    t->streams[i] = (uint64_t)HED_KIND_STREAM << 56 | (2 * t->names + 1);
    t->names += WRITERS;
    for (unsigned k = 0; k < WRITERS; k++) {
        CUstream name = (CUstream)(uintptr_t)standby_stream_name(t->streams[i], k);

        hed_remote_send(&t->remote, t->contexts[i]->object.handle, 0, 0, cuStreamCreateWithPriority,
                        .phStream = &name, .flags = CU_STREAM_NON_BLOCKING);
    }
}

static void
drop_standby_streams(struct hed_remote_standby *t, size_t i)
{
    for (unsigned k = 0; k < WRITERS && t->streams[i]; k++)
        hed_remote_send(&t->remote, t->contexts[i]->object.handle, 0, 0, cuStreamDestroy_v2,
                        .hStream = (CUstream)(uintptr_t)standby_stream_name(t->streams[i], k));
    t->streams[i] = 0;
}

/* Primary contexts stay at a worker, as they do at the program's. */
static void
drop_dead_contexts(struct hed_remote_standby *t)
{
    size_t left = 0;

    for (size_t i = 0; i < t->context_count; i++) {
        struct hed_context *c = t->contexts[i];

        if (c->primary || hed_context_alive(c)) {
            t->streams[left] = t->streams[i];
            t->contexts[left++] = c;
            continue;
        }
        drop_standby_streams(t, i);
        (void)hed_remote_ask_waiting(&t->remote, c->object.handle, 0, cuCtxDestroy_v2,
                                     .ctx = hed_context_handle(c));
        hed_context_unref(c);
    }
    t->context_count = left;
}

/* A living context that the standby does not have, as a reference; NULL: there is none. */
static struct hed_context *
next_new_context(struct hed_remote_standby *t)
{
    struct hed_driver *d = t->of->driver;
    struct hed_context *c;

    hed_lock(&d->contexts_lock);
    for (c = d->contexts; c; c = c->next)
        if (hed_context_alive(c) && !hed_remote_standby_has(&t->remote, c))
            break;
    if (c)
        hed_context_ref(c);
    hed_unlock(&d->contexts_lock);
    return c;
}

static int
adjust_contexts(struct hed_remote_standby *t, struct hed_why *why)
{
    struct hed_context *c;

    drop_dead_contexts(t);
    while ((c = next_new_context(t))) {
        const CUresult result = t->context_count == HED_STANDBY_CONTEXTS
                                    ? CUDA_ERROR_NOT_SUPPORTED
                                    : hed_remote_context_tell(&t->remote, c);

        if (result != CUDA_SUCCESS) {
            hed_context_unref(c);
            hed_why_set(why, "the server refuses a context: CUDA error %d", (int)result);
            return result == CUDA_ERROR_OUT_OF_MEMORY ? HED_ENOMEM : HED_ENOTSUP;
        }
        t->streams[t->context_count] = 0;
        t->contexts[t->context_count++] = c;
    }
    return 0;
}

/* Makes a context that both have the thread's: messages name it. */
static bool
enter_common(struct hed_remote_standby *t)
{
    struct hed_context *found = NULL;

    for (size_t i = 0; i < t->context_count; i++)
        if (hed_context_alive(t->contexts[i]) && (!found || t->contexts[i]->primary))
            found = t->contexts[i];
    return found && hed_thread_push(t->of->driver, found);
}

/* ---- memory to write from -------------------------------------------------------------------- */

void
hed_remote_standby_offer(struct hed_remote_standby *t, uint64_t at, uint64_t size)
{
    if (!t->remote.shares_heap || !t->of->shares_heap || t->remote.heap != t->of->heap)
        return;
    t->offered = at;
    t->offered_size = size;
}

/* A context is current. A server that allows less pinned memory gets all bytes in messages. */
static int
adjust_sharing(struct hed_remote_standby *t, bool held)
{
    const int err = t->offered ? hed_remote_standby_adjust_pinned(t, held) : 0;

    for (size_t i = 0; i < t->context_count && t->shared && !t->written; i++)
        if (!t->streams[i])
            make_standby_streams(t, i);
    return err;
}

void
hed_remote_standby_written(struct hed_remote_standby *t)
{
    struct hed_remote_channel *own = hed_remote_channel_aside();

    t->written = true;
    for (size_t i = 0; i < t->context_count; i++)
        drop_standby_streams(t, i);
    hed_remote_channel_back(own);
}

/* ---- memory ---------------------------------------------------------------------------------- */

struct range_list {
    struct hed_remote_standby_range *all;
    size_t count;
};

static int
compare_standby_ranges(const void *left, const void *right)
{
    const struct hed_remote_standby_range *a = left, *b = right;

    return (a->at > b->at) - (a->at < b->at);
}

/* The device memory that the program has now, by address. */
static int
list_ranges(struct hed_remote_standby *t, struct range_list *out)
{
    struct hed_remote_mappings m;
    int err = hed_remote_mappings_list(t->of, HED_MAP_DEVICE, &m);

    *out = (struct range_list){.count = 0};
    if (!err && m.count && !(out->all = calloc(m.count, sizeof *out->all)))
        err = HED_ENOMEM;
    for (; !err && out->count < m.count; out->count++)
        out->all[out->count] =
            (struct hed_remote_standby_range){.at = m.all[out->count].at,
                                              .size = m.all[out->count].size,
                                              .device = m.all[out->count].device};
    if (out->count)
        qsort(out->all, out->count, sizeof *out->all, compare_standby_ranges);
    free(m.all);
    return err;
}

static int
make_range(struct hed_remote_standby *t, struct hed_remote_standby_range *g)
{
    const size_t chunks = (size_t)hed_divide_up(g->size, HED_EXTENT_CHUNK);

    g->hashes = calloc(chunks, sizeof *g->hashes);
    g->known = calloc(chunks, sizeof *g->known);
    return g->hashes && g->known ? hed_remote_map(&t->remote, g->at, g->size) : HED_ENOMEM;
}

/* Both lists are sorted. What is in both stays. What is only in the old one goes first, since new
 * memory may overlap it. */
static int
adjust_ranges(struct hed_remote_standby *t, struct range_list *now)
{
    int err = 0;

    for (size_t i = 0, k = 0; i < t->count; i++) {
        struct hed_remote_standby_range *g = &t->ranges[i];

        while (k < now->count && now->all[k].at < g->at)
            k++;
        if (k < now->count && now->all[k].at == g->at && now->all[k].size == g->size) {
            now->all[k] = *g;
        } else {
            hed_remote_unmap(&t->remote, g->at, g->size);
            free_range(g);
        }
    }
    free(t->ranges);
    t->ranges = now->all;
    t->count = now->count;
    for (size_t i = 0; i < t->count && !err; i++)
        if (!t->ranges[i].hashes)
            err = make_range(t, &t->ranges[i]);
    return err;
}

int
hed_remote_standby_adjust(struct hed_remote_standby *t, bool held, struct hed_why *why)
{
    struct range_list now;
    struct hed_remote_channel *own;
    int err = list_ranges(t, &now);

    if (err)
        return err;
    own = hed_remote_channel_aside();
    err = adjust_contexts(t, why);
    if (err) {
        free(now.all);
    } else {
        const bool entered = enter_common(t);

        err = adjust_ranges(t, &now);
        if (!err && entered && t->coded)
            err = adjust_sharing(t, held);
        if (entered)
            hed_thread_pop(t->of->driver);
        if (err)
            hed_why_set(why, err == HED_ENOMEM
                                 ? "the server does not have as much memory as the program uses"
                                 : "the program's memory could not be mapped at the server");
    }
    if (!err) {
        hed_remote_look(&t->remote); /* sends all of it, and learns of failures */
        err = standby_lost(t, why);
    }
    hed_remote_channel_back(own);
    return err;
}

/* ---- contents -------------------------------------------------------------------------------- */

static unsigned
take_writer_slot(struct hed_remote_standby *t)
{
    unsigned slot;

    (void)pthread_mutex_lock(&t->gate);
    while (t->slots == (1u << WRITERS) - 1)
        (void)pthread_cond_wait(&t->passed, &t->gate);
    slot = (unsigned)__builtin_ctz(~t->slots);
    t->slots |= 1u << slot;
    (void)pthread_mutex_unlock(&t->gate);
    return slot;
}

static void
give_writer_slot(struct hed_remote_standby *t, unsigned slot)
{
    (void)pthread_mutex_lock(&t->gate);
    t->slots &= ~(1u << slot);
    (void)pthread_cond_signal(&t->passed);
    (void)pthread_mutex_unlock(&t->gate);
}

/* The name of a writer's stream in a context; 0: bytes go in messages. */
static uint64_t
stream_of_slot(const struct hed_remote_standby *t, uint64_t context, unsigned slot)
{
    for (size_t i = 0; i < t->context_count; i++)
        if (t->contexts[i]->object.handle == context && t->streams[i])
            return standby_stream_name(t->streams[i], slot);
    return 0;
}

/* The worker's device reads the bytes itself. */
static int
write_shared(struct hed_remote_standby *t, uint64_t context, uint64_t stream, uint64_t to,
             uint64_t from, uint64_t size)
{
    hed_remote_send(&t->remote, context, stream, 0, cuMemcpyAsync, .dst = to, .src = from,
                    .ByteCount = size, .hStream = (CUstream)(uintptr_t)stream);
    return hed_remote_wait(&t->remote, context, stream) == CUDA_SUCCESS ? 0 : HED_EIO;
}

static int
write_in_messages(struct hed_remote_standby *t, uint64_t context, uint64_t to, const void *from,
                  uint64_t size)
{
    const int err = hed_remote_write(&t->remote, context, to, from, size);

    /* Relaxed: the agent learns of the end of this in other ways. */
    atomic_store_explicit(&t->on_the_way, true, memory_order_relaxed);
    /* The worker takes messages in order: none may stay behind in the buffer of a channel that
     * nobody uses. */
    if (!err)
        hed_remote_flush_others(&t->remote, NULL, UINT64_MAX);
    return err;
}

/* Each writer takes a channel that another has left, so there are no more channels than writers. */
int
hed_remote_standby_write(struct hed_remote_standby *t, uint64_t context, uint64_t to,
                         const void *from, uint64_t size, struct hed_why *why)
{
    struct hed_remote_channel *own = hed_remote_channel_aside();
    const uint64_t at = (uintptr_t)from;
    const unsigned slot = take_writer_slot(t);
    const uint64_t stream = t->shared && at >= t->offered && at - t->offered < t->offered_size
                                ? stream_of_slot(t, context, slot)
                                : 0;
    const int err = stream ? write_shared(t, context, stream, to, at, size)
                           : write_in_messages(t, context, to, from, size);

    hed_remote_channel_back(own);
    give_writer_slot(t, slot);
    if (err && !standby_lost(t, why))
        hed_why_set(why, "memory cannot be written at the new server: %s", hed_err_text(err));
    return err;
}

int
hed_remote_standby_settle(struct hed_remote_standby *t, struct hed_why *why)
{
    struct hed_remote_channel *own = hed_remote_channel_aside();
    /* Relaxed: the copy threads are done. Writers wait for what they write from shared memory. */
    const bool waits = atomic_exchange_explicit(&t->on_the_way, false, memory_order_relaxed);
    CUresult result = CUDA_SUCCESS;
    int err;

    for (size_t i = 0; i < t->context_count && result == CUDA_SUCCESS && waits; i++)
        result = hed_remote_wait(&t->remote, t->contexts[i]->object.handle, 0);
    hed_remote_channel_back(own);
    err = standby_lost(t, why);
    if (!err && result != CUDA_SUCCESS) {
        hed_why_set(why, "memory cannot be written at the new server: CUDA error %d", (int)result);
        err = HED_EIO;
    }
    return err;
}
