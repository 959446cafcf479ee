/* Events between clients: HED_MSG_SHARE. The page of each is event_page.h.
 *
 * Invariants:
 * 1. The list is changed by the thread that holds the current ticket, under the lock. That thread
 *    reads it without; others take the lock. What the other threads change, it reads with it.
 * 2. The file of an event is closed, which says that this worker is dead, only when no stream of
 *    this worker uses it any more (page_uses.h). All descriptors of it are closed at once.
 * 3. What drivers do when memory is no longer registered may take as long as all work of a context.
 *    So it is done by a thread of its own, which has no ticket. It uses a context only while that
 *    exists: who ends one waits for the thread, as the driver would wait for the work.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "remote/server/lease_socket.h"
#include "remote/server/worker/event_page.h"
#include "remote/server/worker/memory.h"
#include "remote/server/worker/page_uses.h"
#include "remote/server/worker/share.h"

#define OPENS_MAX 64u                     /* of one event by one client */
#define LOOK_NS (HED_NS_PER_MS / 20)      /* between two looks of a waiting thread, at first */
#define LOOK_MOST_NS (2 * HED_NS_PER_MS)  /* and later */
#define DEAD_LOOK_NS (50 * HED_NS_PER_MS) /* how often it looks whether the other is alive */

struct event {
    struct event *next;
    uint64_t names[OPENS_MAX]; /* the client's names of it */
    int fds[OPENS_MAX];
    uint32_t name_count, fd_count;
    uint32_t waiting; /* threads that wait without a ticket; under the lock */
    bool own;         /* this client has made it */
    bool offered;     /* of an own one: the key is valid */
    uint8_t key[HED_SHARE_KEY];
    struct hed_event_page page;
    struct hed_words words; /* the page, for devices */
    uint64_t context;       /* in which it is registered, if it is */
    struct hed_page_uses uses;
};

struct hed_shared_events {
    struct hed_lock lock; /* rank HED_RANK_SHARES */
    struct event *first;
    struct event *old;   /* those that nobody has or uses */
    uint32_t count;      /* of both */
    bool freeing;        /* a thread frees old ones */
    uint64_t freeing_in; /* the context that it uses; 0 for none */
    pthread_cond_t freed;
    struct hed_uses *uses;
};

static struct hed_shared_events *
all_events(struct hed_worker *w)
{
    hed_lock(&w->lock);

    struct hed_shared_events *all = w->shared;

    hed_unlock(&w->lock);
    return all;
}

void
hed_shared_events_look(struct hed_worker *w)
{
    struct hed_shared_events *all = all_events(w);

    if (!all)
        return;
    hed_lock(&all->lock);
    for (struct event *e = all->first; e; e = e->next)
        hed_event_page_bury(&e->page);
    hed_unlock(&all->lock);
}

/* Forgets that a page is registered in a context that ends. */
static void
leave_context_locked(struct event *first, uint64_t context)
{
    for (struct event *e = first; e; e = e->next)
        if (e->context == context)
            e->words.at = 0;
}

void
hed_shared_events_context_ends(struct hed_worker *w, uint64_t context)
{
    struct hed_shared_events *all = all_events(w);

    if (!all)
        return;
    hed_lock(&all->lock);
    leave_context_locked(all->first, context);
    leave_context_locked(all->old, context);
    while (all->freeing_in == context && context)
        (void)hed_lock_wait(&all->lock, &all->freed, UINT64_MAX);
    hed_unlock(&all->lock);
}

void
hed_shared_events_context_ended(struct hed_worker *w, uint64_t context)
{
    struct hed_shared_events *all = all_events(w);

    if (!all)
        return;
    hed_lock(&all->lock);
    for (struct event *e = all->first; e; e = e->next)
        hed_event_page_give_up(&e->page, context);
    hed_uses_context_ended(all->uses, context);
    hed_unlock(&all->lock);
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Nothing uses the page. If the driver does not let go of it, its address must stay taken. */
static void
free_page(struct hed_worker *w, struct event *e)
{
    uint64_t real;
    CUresult r = CUDA_SUCCESS;

    if (e->words.at && hed_name_real(w->names, e->context, &real) == 0) {
        r = hed_worker_do(w, cuCtxSetCurrent, .ctx = (CUcontext)(uintptr_t)real);
        if (r == CUDA_SUCCESS)
            r = hed_words_forget(w, &e->words);
    }
    if (r == CUDA_SUCCESS || r == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED)
        hed_event_page_unmap(&e->page);
    for (uint32_t i = 0; i < e->fd_count; i++)
        (void)close(e->fds[i]);
    free(e);
}

/* A thread that frees pages, and ends when there is none. */
static void *
free_old_pages(void *arg)
{
    struct hed_worker *w = arg;
    struct hed_shared_events *all = w->shared;
    struct event *e;

    hed_lock(&all->lock);
    while ((e = all->old)) {
        all->old = e->next;
        all->freeing_in = e->words.at ? e->context : 0;
        hed_unlock(&all->lock);
        free_page(w, e);
        hed_lock(&all->lock);
        all->freeing_in = 0;
        all->count--;
        (void)pthread_cond_broadcast(&all->freed);
    }
    all->freeing = false;
    hed_unlock(&all->lock);
    return NULL;
}

/* Sets aside the events that the client does not have any more, when no stream uses them. */
static void
free_unnamed(struct hed_worker *w)
{
    struct hed_shared_events *all = w->shared;
    struct event **link = &all->first;
    pthread_t thread;
    struct event *e;

    hed_lock(&all->lock);
    while ((e = *link)) {
        if (e->name_count || e->waiting || !hed_uses_are_over(all->uses, &e->uses)) {
            link = &e->next;
            continue;
        }
        *link = e->next;
        e->next = all->old;
        all->old = e;
    }
    if (all->old && !all->freeing && pthread_create(&thread, NULL, free_old_pages, w) == 0) {
        (void)pthread_detach(thread);
        all->freeing = true;
    }
    hed_unlock(&all->lock);
}

/* All events of the worker; NULL if there is no memory. */
static struct hed_shared_events *
events_of(struct hed_worker *w)
{
    if (!w->shared) {
        struct hed_shared_events *all = calloc(1, sizeof *all);

        if (!all || !(all->uses = hed_uses_create())) {
            free(all);
            return NULL;
        }
        hed_lock_init(&all->lock, HED_RANK_SHARES);
        (void)pthread_cond_init(&all->freed, NULL);
        hed_lock(&w->lock);
        w->shared = all;
        hed_unlock(&w->lock);
    }
    free_unnamed(w);
    return w->shared;
}

static struct event *
find_named_page(struct hed_worker *w, uint64_t name, uint32_t *at)
{
    for (struct event *e = w->shared->first; e; e = e->next)
        for (uint32_t i = 0; i < e->name_count; i++)
            if (e->names[i] == name) {
                *at = i;
                return e;
            }
    return NULL;
}

/* Takes the descriptor, also on failure. */
static struct event *
map_shared_page(int fd)
{
    struct event *e = calloc(1, sizeof *e);

    if (!e || hed_event_page_map(&e->page, fd) != 0) {
        (void)close(fd);
        free(e);
        return NULL;
    }
    e->fds[0] = fd;
    e->fd_count = 1;
    e->words.first = (_Atomic uint64_t *)(void *)e->page.words;
    e->words.count = HED_EVENT_PAGE / sizeof *e->words.first;
    return e;
}

static void
list_page(struct hed_worker *w, struct event *e, uint64_t name)
{
    e->names[0] = name;
    e->name_count = 1;
    hed_lock(&w->shared->lock);
    e->next = w->shared->first;
    w->shared->first = e;
    w->shared->count++;
    hed_unlock(&w->shared->lock);
}

static CUresult
make_page(struct hed_worker *w, uint64_t name)
{
    struct event *e = NULL;
    int fd;

    if (hed_event_file(&fd) == 0)
        e = map_shared_page(fd);
    if (!e)
        return CUDA_ERROR_OUT_OF_MEMORY;
    e->own = true;
    list_page(w, e, name);
    return CUDA_SUCCESS;
}

static CUresult
offer_page(struct hed_worker *w, struct event *e, uint8_t key[HED_SHARE_KEY])
{
    const struct hed_lease_socket_ask ask = {.device = HED_LEASE_SOCKET_NO_DEVICE,
                                             .thing = HED_LEASE_SOCKET_EVENT};
    CUresult r = CUDA_SUCCESS;

    if (!e->own)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!e->offered)
        r = hed_share_result(hed_share_offer(w, &ask, e->fds[0], e->key));
    if (r == CUDA_SUCCESS) {
        e->offered = true;
        memcpy(key, e->key, HED_SHARE_KEY);
    }
    return r;
}

static struct event *
find_page_by_key(struct hed_worker *w, const uint8_t key[HED_SHARE_KEY])
{
    struct event *e = w->shared->first;

    while (e && (e->own || memcmp(e->key, key, sizeof e->key) != 0))
        e = e->next;
    return e;
}

/* One more name of an event that is open already. The descriptor stays open with the others. */
static CUresult
name_page_again(struct hed_worker *w, struct event *e, uint64_t name, int fd)
{
    hed_lock(&w->shared->lock);
    e->fds[e->fd_count++] = fd;
    e->names[e->name_count++] = name;
    hed_unlock(&w->shared->lock);
    return CUDA_SUCCESS;
}

static CUresult
open_page(struct hed_worker *w, uint64_t name, const uint8_t key[HED_SHARE_KEY])
{
    struct hed_lease_socket_ask ask = {.kind = HED_LEASE_SOCKET_OPEN,
                                       .thing = HED_LEASE_SOCKET_EVENT};
    struct event *e = find_page_by_key(w, key);
    struct hed_lease_socket_answer what;
    int fd = -1;

    if (e && e->fd_count == OPENS_MAX)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(ask.key, key, sizeof ask.key);

    const int err = hed_lease_exchange(w, &ask, -1, &what, &fd);

    if (err)
        return hed_share_result(err);
    if (e && fd >= 0)
        return name_page_again(w, e, name, fd);
    e = fd >= 0 ? map_shared_page(fd) : NULL;
    if (!e) {
        hed_share_close(w, key);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    memcpy(e->key, key, sizeof e->key);
    list_page(w, e, name);
    return CUDA_SUCCESS;
}

static void
drop_page_name(struct hed_worker *w, struct event *e, uint32_t at)
{
    hed_lock(&w->shared->lock);
    e->names[at] = e->names[--e->name_count];
    hed_unlock(&w->shared->lock);
    if (!e->own)
        hed_share_close(w, e->key);
    else if (e->offered)
        (void)hed_share_withdraw(w, e->key);
    if (e->own)
        e->offered = false;
}

/* ---- records and waits ----------------------------------------------------------------------- */

/* Makes a stream write or await a number in the page. */
static CUresult
use_in_stream(struct hed_worker_channel *ch, struct event *e, const struct hed_msg *m, int place,
              uint64_t number, bool waits)
{
    struct hed_worker *w = ch->worker;
    struct hed_uses *uses = w->shared->uses;
    const size_t word = hed_event_page_word(place);
    CUstream stream;

    if (hed_worker_stream(ch, m, &stream) != 0)
        return CUDA_ERROR_INVALID_HANDLE;
    hed_lock(&w->shared->lock);

    struct hed_words words = e->words;

    hed_unlock(&w->shared->lock);

    const int use = hed_uses_begin(uses, m->context, m->stream);

    if (use < 0) {
        hed_warn(SERVER, "too many streams use events of other clients at the same time");
        return CUDA_ERROR_OUT_OF_MEMORY;
    }

    const CUresult r = waits ? hed_words_await(w, &words, stream, word, number)
                             : hed_words_write(w, &words, stream, word, number);

    hed_uses_end(uses, w, stream, use, &e->uses);
    hed_lock(&w->shared->lock);
    if (words.at != e->words.at)
        e->context = m->context;
    e->words = words;
    hed_unlock(&w->shared->lock);
    return r;
}

static CUresult
record_in_page(struct hed_worker_channel *ch, struct event *e, const struct hed_msg *m)
{
    struct hed_shared_events *all = ch->worker->shared;
    uint64_t number;
    int place;

    hed_lock(&all->lock);

    const int err = hed_event_page_begin(&e->page, m->context, m->stream, &number, &place);

    hed_unlock(&all->lock);
    if (err) {
        hed_warn(SERVER, "an event is recorded on too many streams, or by too many clients");
        return CUDA_ERROR_OUT_OF_MEMORY;
    }

    const CUresult r = use_in_stream(ch, e, m, place, number, false);

    if (r == CUDA_SUCCESS)
        hed_event_page_end(&e->page, number, place);
    else
        hed_event_page_drop(&e->page, number, place);
    return r;
}

static CUresult
wait_on_stream(struct hed_worker_channel *ch, struct event *e, const struct hed_msg *m)
{
    uint64_t number;
    int place;

    if (!hed_event_page_last(&e->page, &number, &place) ||
        hed_event_page_is_over(&e->page, number, place))
        return CUDA_SUCCESS;
    hed_progress_put_wait(ch, m);

    const CUresult r = use_in_stream(ch, e, m, place, number, true);

    hed_progress_put(ch, m);
    return r;
}

/* Relaxed, both: they are looked at again soon. */
static bool
is_wait_in_vain(struct hed_worker *w, uint64_t context)
{
    return atomic_load_explicit(&w->ending, memory_order_relaxed) ||
           (atomic_load_explicit(&w->failed, memory_order_relaxed) && w->failed_context == context);
}

/* Waits here, while other messages go on. */
static CUresult
wait_for_page(struct hed_worker_channel *ch, struct event *e, uint64_t context)
{
    struct hed_worker *w = ch->worker;
    uint64_t pause = LOOK_NS, looked = hed_now_ns(), number;
    int place;

    if (!hed_event_page_last(&e->page, &number, &place))
        return CUDA_SUCCESS;
    hed_lock(&w->shared->lock);
    e->waiting++;
    hed_unlock(&w->shared->lock);
    hed_ticket_pass(ch);
    while (!hed_event_page_is_reached(&e->page, number, place) && !is_wait_in_vain(w, context)) {
        const struct timespec t = {.tv_nsec = (long)pause};

        if (hed_now_ns() - looked > DEAD_LOOK_NS) {
            if (hed_event_page_is_over(&e->page, number, place))
                break;
            looked = hed_now_ns();
        }
        (void)nanosleep(&t, NULL);
        pause = pause * 2 < LOOK_MOST_NS ? pause * 2 : LOOK_MOST_NS;
    }
    hed_lock(&w->shared->lock);
    e->waiting--;
    hed_unlock(&w->shared->lock);
    return CUDA_SUCCESS;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* A new name. */
static CUresult
begin_page(struct hed_worker *w, const struct hed_share_body *b)
{
    hed_lock(&w->shared->lock);

    const bool full = w->shared->count >= HED_SHARE_EVENTS_MAX;

    hed_unlock(&w->shared->lock);
    if (full)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return b->op == HED_SHARE_EVENT_MADE ? make_page(w, b->name) : open_page(w, b->name, b->key);
}

static CUresult
use_page(struct hed_worker_channel *ch, struct event *e, const struct hed_share_body *b,
         uint8_t key[HED_SHARE_KEY])
{
    uint64_t number;
    int place;

    switch (b->op) {
    case HED_SHARE_EVENT_OFFER:
        return offer_page(ch->worker, e, key);
    case HED_SHARE_EVENT_RECORD:
        return record_in_page(ch, e, &b->head);
    case HED_SHARE_EVENT_WAIT:
        return wait_on_stream(ch, e, &b->head);
    case HED_SHARE_EVENT_QUERY:
        return hed_event_page_last(&e->page, &number, &place) &&
                       !hed_event_page_is_over(&e->page, number, place)
                   ? CUDA_ERROR_NOT_READY
                   : CUDA_SUCCESS;
    default:
        return wait_for_page(ch, e, b->head.context);
    }
}

int
hed_shared_event_do(struct hed_worker_channel *ch, const struct hed_share_body *b,
                    uint8_t key[HED_SHARE_KEY], CUresult *r)
{
    struct hed_worker *w = ch->worker;
    uint32_t at = 0;

    if (b->op < HED_SHARE_EVENT_MADE || b->op > HED_SHARE_EVENT_SYNC || b->name == 0)
        return HED_EFORMAT;
    if (!events_of(w)) {
        *r = CUDA_ERROR_OUT_OF_MEMORY;
        return 0;
    }

    struct event *e = find_named_page(w, b->name, &at);

    if (b->op == HED_SHARE_EVENT_MADE || b->op == HED_SHARE_EVENT_OPEN) {
        if (e)
            return HED_EFORMAT;
        *r = begin_page(w, b);
        return 0;
    }
    if (!e)
        return hed_memory_missing(w);
    if (b->op == HED_SHARE_EVENT_GONE) {
        drop_page_name(w, e, at);
        return 0;
    }
    *r = use_page(ch, e, b, key);
    if (*r != CUDA_SUCCESS || (b->op != HED_SHARE_EVENT_QUERY && b->op != HED_SHARE_EVENT_SYNC))
        return 0;
    hed_ticket_pass(ch);
    return hed_worker_before_answer(ch);
}
