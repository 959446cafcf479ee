/* Functions that run in the client, in the order of a stream here; and marks. See worker.h.
 *
 *   HED_MSG_HOST ──> cuLaunchHostFunc ... the stream comes to it ──> HED_MSG_RUN, callback channel
 *                                  run_in_client() waits <── the same back: it has been run
 *
 * The stream waits because the function that the driver calls waits, just as if the program's own
 * function were called there. That blocks only the driver's thread for such functions, never a
 * channel.
 *
 * A mark makes a stream write a number into the page of slots that the client reads. The device
 * writes it if it can, otherwise a function that the driver calls.
 *
 * Invariants:
 * 1. A message on the callback channel is believed only if it answers a call that was made.
 *    Anything else ends the session.
 * 2. At the end of a session nothing waits for the client: the process just exits.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "remote/server/worker/worker.h"

#define SLOT_FIRST 16 /* the words before that have other uses */
/* How long to wait for the callback channel, which the client has opened before. */
#define CHANNEL_MS 5000

struct hed_host_call {
    struct hed_host_call *next; /* in h->waiting */
    struct hed_worker *worker;
    uint64_t id, stream, number; /* the client's */
    uint64_t token;              /* identifies the message that waits for its answer */
};

struct hed_worker_host {
    struct hed_lock lock; /* rank HED_RANK_HOST; guards all of this */
    pthread_cond_t changed;
    struct hed_channel *channel; /* the callback channel; NULL if it has not come yet */
    struct hed_channel *old;     /* that of a client that has parked us, until its thread ends */
    bool ended;                  /* the callback channel has come and is gone */
    uint32_t pending;            /* functions and marks of ours that are on streams */
    uint64_t tokens;
    struct hed_host_call *waiting;
    struct hed_words slots; /* for devices; for the thread that holds the current ticket */
};

/* ---- running in the client ------------------------------------------------------------------- */

static int
send_run_locked(struct hed_worker_host *h, const struct hed_host_call *c, CUresult status,
                uint64_t token)
{
    struct hed_run *run = hed_channel_begin(h->channel, sizeof *run);

    if (!run)
        return HED_EIO;
    memset(run, 0, sizeof *run);
    run->head.size = sizeof *run;
    run->head.kind = HED_MSG_RUN;
    run->head.stream = c->stream;
    run->head.number = c->number;
    run->head.reserved = token;
    run->id = c->id;
    run->status = (int32_t)status;
    return hed_channel_end(h->channel, sizeof *run, true);
}

static bool
is_waiting_locked(const struct hed_worker_host *h, uint64_t token)
{
    const struct hed_host_call *c = h->waiting;

    while (c && c->token != token)
        c = c->next;
    return c != NULL;
}

/* Sends the function to the client and, with `wait`, waits until it has been run. A call in a graph
 * may be under way more than once, so each run is noted on this function's own stack. */
static void
run_in_client(const struct hed_host_call *call, CUresult status, bool wait)
{
    struct hed_worker_host *h = call->worker->host;
    struct hed_host_call note = *call;

    hed_lock(&h->lock);
    note.token = ++h->tokens;
    if (wait) {
        note.next = h->waiting;
        h->waiting = &note;
    }
    if (h->ended || !h->channel || send_run_locked(h, call, status, note.token) != 0)
        h->ended = true;
    while (wait && !h->ended && is_waiting_locked(h, note.token))
        (void)hed_lock_wait(&h->lock, &h->changed, UINT64_MAX);

    const bool lost = h->ended && (!wait || is_waiting_locked(h, note.token));

    for (struct hed_host_call **at = &h->waiting; *at && wait; at = &(*at)->next)
        if (*at == &note) {
            *at = note.next;
            break;
        }
    hed_unlock(&h->lock);
    /* The stream must not go on as if the function had been run. */
    if (lost)
        hed_worker_exit(call->worker, HED_EIO);
}

/* A function is put on a stream (1), or has run, or could not be put there (-1). */
static void
count_pending(struct hed_worker_host *h, int n)
{
    hed_lock(&h->lock);
    h->pending += (uint32_t)n;
    hed_unlock(&h->lock);
}

/* Runs on the driver's thread for such functions. */
static void
on_host(void *data)
{
    struct hed_host_call *c = data;

    run_in_client(c, CUDA_SUCCESS, true);
    count_pending(c->worker->host, -1);
    free(c);
}

static void
on_callback(CUstream stream, CUresult status, void *data)
{
    struct hed_host_call *c = data;

    (void)stream;
    run_in_client(c, status, true);
    count_pending(c->worker->host, -1);
    free(c);
}

/* ---- the callback channel -------------------------------------------------------------------- */

/* An answer from the client: wakes the thread that waits for it. */
static int
take_run_answer(struct hed_worker_host *h, const struct hed_msg *m)
{
    struct hed_host_call **at;

    if (m->kind != HED_MSG_RUN || m->size < sizeof(struct hed_run))
        return HED_EFORMAT;
    hed_lock(&h->lock);
    for (at = &h->waiting; *at && (*at)->token != m->reserved; at = &(*at)->next)
        continue;

    /* Calls that nobody waits for are answered, too. */
    const bool known = *at || (m->reserved >= 1 && m->reserved <= h->tokens);

    if (*at) {
        *at = (*at)->next;
        (void)pthread_cond_broadcast(&h->changed);
    }
    hed_unlock(&h->lock);
    return known ? 0 : HED_EFORMAT;
}

/* Runs on a thread of its own, which reads the channel from now on. */
int
hed_worker_callback_channel(struct hed_worker *w, struct hed_channel *channel, uint32_t life)
{
    struct hed_worker_host *h = w->host;
    struct hed_msg *m;
    int err = h ? 0 : HED_EFORMAT;

    if (!err) {
        hed_lock(&h->lock);
        /* Relaxed: what hed_worker_host_leave() does under this lock comes after the change. */
        if (h->channel || h->ended || life != atomic_load_explicit(&w->life, memory_order_relaxed))
            err = HED_EEXIST;
        else
            h->channel = channel;
        (void)pthread_cond_broadcast(&h->changed);
        hed_unlock(&h->lock);
    }
    if (err) {
        hed_warn(SERVER, "a callback channel was refused: %s", hed_err_text(err));
        hed_channel_free(channel);
        return err;
    }
    while (!err) {
        err = hed_channel_next(channel, -1, &m);
        if (!err)
            err = take_run_answer(h, m);
    }
    if (err != HED_EIO) {
        hed_error(
            SERVER,
            "a client sent an impossible message on its callback channel, so its session ends");
        _exit(1);
    }
    hed_lock(&h->lock);

    /* The client has parked us; or no function was on its way, so it may open another: it has tried
     * in vain to move to another worker. */
    const bool left = h->channel != channel || (!h->pending && !h->waiting);

    if (h->old == channel)
        h->old = NULL;
    if (h->channel == channel && left)
        h->channel = NULL;
    if (!left)
        h->ended = true;
    (void)pthread_cond_broadcast(&h->changed);
    hed_unlock(&h->lock);
    if (left)
        hed_channel_free(channel);
    return err;
}

void
hed_worker_host_last(struct hed_worker *w, const struct hed_end *end)
{
    struct hed_worker_host *h = w->host;

    if (!h || !hed_lock_try(&h->lock))
        return;
    if (h->channel)
        hed_channel_last(h->channel, end);
    hed_unlock(&h->lock);
}

/* ---- functions ------------------------------------------------------------------------------- */

static struct hed_host_call *
make_host_call(struct hed_worker *w, uint64_t id, uint64_t stream, uint64_t number)
{
    struct hed_host_call *c = calloc(1, sizeof *c);

    if (c) {
        c->worker = w;
        c->id = id;
        c->stream = stream;
        c->number = number;
    }
    return c;
}

/* The client opens its callback channel before it sends the first function, but the channel may be
 * accepted a little later. A client that never opened one would wait for ever, and its streams with
 * it. */
static bool
wait_for_callback_channel(struct hed_worker_host *h)
{
    uint64_t end = 0;
    bool has;
    int err = 0;

    hed_lock(&h->lock);
    if (!h->channel && !h->ended)
        end = hed_now_ns() + CHANNEL_MS * HED_NS_PER_MS;
    while (!h->channel && !h->ended && err == 0)
        err = hed_lock_wait(&h->lock, &h->changed, end);
    has = h->channel || h->ended;
    hed_unlock(&h->lock);
    return has;
}

int
hed_do_host(struct hed_worker_channel *ch, struct hed_msg *m)
{
    const struct hed_host_body *b = (const struct hed_host_body *)m;
    struct hed_worker *w = ch->worker;
    struct hed_host_call *c;
    CUresult r = CUDA_ERROR_INVALID_HANDLE; /* the stream could not be created, or never existed */
    CUstream stream;

    if (!w->host || !wait_for_callback_channel(w->host))
        return HED_EFORMAT;
    c = make_host_call(w, b->id, m->stream, m->number);
    if (!c)
        return HED_ENOMEM;
    count_pending(w->host, 1);
    if (hed_worker_stream(ch, m, &stream) == 0)
        r = b->always ? hed_worker_do(w, cuStreamAddCallback, .hStream = stream,
                                      .callback = on_callback, .userData = c)
                      : hed_worker_do(w, cuLaunchHostFunc, .hStream = stream, .fn = on_host,
                                      .userData = c);
    if (r != CUDA_SUCCESS)
        hed_worker_failed(w, m->context, r);
    /* Nothing will call the function: those that are run in any case are run now, the others are
     * forgotten. */
    if (r != CUDA_SUCCESS || w->no_memory) {
        hed_ticket_pass(ch);
        run_in_client(c, r, false);
        count_pending(w->host, -1);
        free(c);
    }
    return 0;
}

/* A function is about to run and needs the bytes that were copied before it. The thread that holds
 * the current ticket may be waiting for that very function, so this message has no ticket. */
int
hed_do_fetch(struct hed_worker_channel *ch, struct hed_msg *m)
{
    const int err = hed_worker_before_answer(ch);

    return err ? err : hed_worker_answer(ch, m, CUDA_SUCCESS, NULL, 0);
}

/* ---- marks ----------------------------------------------------------------------------------- */

struct mark {
    struct hed_worker_host *host;
    _Atomic uint64_t *slot;
    uint64_t number;
};

/* Release: pairs with the acquire in remote/stream.c. A client that reads the number sees what the
 * stream did before. */
static void
write_slot(void *data)
{
    struct mark *k = data;

    atomic_store_explicit(k->slot, k->number, memory_order_release);
    count_pending(k->host, -1);
    free(k);
}

static CUresult
mark_by_host(struct hed_worker *w, CUstream stream, _Atomic uint64_t *slot, uint64_t number)
{
    struct mark *k = malloc(sizeof *k);

    if (!k)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *k = (struct mark){w->host, slot, number};
    count_pending(w->host, 1);

    const CUresult r =
        hed_worker_do(w, cuLaunchHostFunc, .hStream = stream, .fn = write_slot, .userData = k);

    if (r != CUDA_SUCCESS) {
        count_pending(w->host, -1);
        free(k);
    }
    return r;
}

/* Lets devices write the words. The registration ends with the context that is current now. */
static CUdeviceptr
register_words(struct hed_worker *w, const struct hed_words *words)
{
    void *page = (void *)(uintptr_t)words->first;
    CUdeviceptr at = 0;
    const CUresult r = hed_worker_do(
        w, cuMemHostRegister_v2, .p = page, .bytesize = words->count * sizeof *words->first,
        .Flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);

    if ((r != CUDA_SUCCESS && r != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) ||
        hed_worker_do(w, cuMemHostGetDevicePointer_v2, .pdptr = &at, .p = page) != CUDA_SUCCESS)
        return 0;
    return at;
}

/* If the context of the registration is gone, the words are registered once more. */
static CUresult
use_word(struct hed_worker *w, struct hed_words *words, CUstream stream, size_t i, uint64_t number,
         bool waits)
{
    CUresult r = CUDA_ERROR_NOT_SUPPORTED;

    for (int round = 0; round < 2 && r != CUDA_SUCCESS; round++) {
        if (!words->at || round > 0)
            words->at = register_words(w, words);
        if (words->at && waits)
            r = hed_worker_do(w, cuStreamWaitValue64_v2, .stream = stream,
                              .addr = words->at + i * sizeof *words->first, .value = number,
                              .flags = CU_STREAM_WAIT_VALUE_GEQ);
        else if (words->at)
            r = hed_worker_do(w, cuStreamWriteValue64_v2, .stream = stream,
                              .addr = words->at + i * sizeof *words->first, .value = number);
        if (r != CUDA_ERROR_INVALID_VALUE)
            break;
    }
    return r;
}

CUresult
hed_words_write(struct hed_worker *w, struct hed_words *words, CUstream stream, size_t i,
                uint64_t number)
{
    return use_word(w, words, stream, i, number, false);
}

CUresult
hed_words_await(struct hed_worker *w, struct hed_words *words, CUstream stream, size_t i,
                uint64_t number)
{
    return use_word(w, words, stream, i, number, true);
}

CUresult
hed_words_forget(struct hed_worker *w, struct hed_words *words)
{
    CUresult r = CUDA_SUCCESS;

    if (words->at)
        r = hed_worker_do(w, cuMemHostUnregister, .p = (void *)(uintptr_t)words->first);
    words->at = 0;
    return r;
}

int
hed_do_mark(struct hed_worker_channel *ch, struct hed_msg *m)
{
    struct hed_worker *w = ch->worker;
    const uint64_t slot = m->reserved;
    CUstream stream;
    CUresult r = CUDA_ERROR_NOT_SUPPORTED;

    if (!w->slots || !w->host || slot < SLOT_FIRST || slot >= w->slot_count)
        return HED_EFORMAT;
    if (hed_worker_stream(ch, m, &stream) != 0) {
        hed_worker_failed(w, m->context, CUDA_ERROR_INVALID_HANDLE);
        return 0;
    }
    if (w->no_memory) {
        /* Release: as in write_slot(). */
        atomic_store_explicit(&w->slots[slot], m->number, memory_order_release);
        return 0;
    }
    /* Only the thread that holds the current ticket comes here. */
    if (w->memops) {
        w->host->slots.first = w->slots;
        w->host->slots.count = w->slot_count;
        r = hed_words_write(w, &w->host->slots, stream, slot, m->number);
        w->memops = r != CUDA_ERROR_NOT_SUPPORTED && r != CUDA_ERROR_INVALID_VALUE;
        if (!w->memops)
            hed_info(SERVER, "devices cannot write values (error %d), so the host writes marks",
                     (int)r);
    }
    if (!w->memops)
        r = mark_by_host(w, stream, &w->slots[slot], m->number);
    hed_worker_failed(w, m->context, r);
    return 0;
}

/* ---- parking --------------------------------------------------------------------------------- */

/* In a window, the page of slots goes with its channel. Meanwhile its numbers are in memory of
 * ours. */
static void
slots_leave_window(struct hed_worker *w)
{
    const size_t size = w->slot_count * sizeof *w->slots;
    struct hed_words *words = &w->host->slots;
    _Atomic uint64_t *copy = malloc(size);

    if (!copy)
        hed_worker_exit(w, HED_ENOMEM);
    (void)hed_words_forget(w, words);
    memcpy((void *)copy, (const void *)w->slots, size);
    w->slots = copy;
}

bool
hed_worker_host_is_quiet(struct hed_worker *w)
{
    struct hed_worker_host *h = w->host;

    hed_lock(&h->lock);

    const bool quiet = !h->pending && !h->waiting && !h->ended;

    hed_unlock(&h->lock);
    return quiet;
}

void
hed_worker_host_leave(struct hed_worker *w)
{
    struct hed_worker_host *h = w->host;

    hed_lock(&h->lock);
    h->old = h->channel;
    h->channel = NULL;
    hed_unlock(&h->lock);
    if (w->in_window && w->slots)
        slots_leave_window(w);
}

void
hed_worker_host_return(struct hed_worker *w, struct hed_channel *channel)
{
    struct hed_worker_host *h = w->host;
    void *slots = NULL;

    hed_lock(&h->lock);
    if (h->old)
        hed_channel_stop(h->old);
    hed_unlock(&h->lock);
    if (!w->in_window || !w->slots || !hed_channel_window_of(channel, &slots))
        return;
    memcpy(slots, (const void *)w->slots, w->slot_count * sizeof *w->slots);
    free((void *)w->slots);
    w->slots = slots;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Can all devices write 64-bit values in stream order? */
static bool
have_memops(struct hed_worker *w)
{
    bool all = !w->no_memory;

    for (int i = 0; i < w->device_count && all; i++) {
        int value = 0;

        all = hed_worker_do(w, cuDeviceGetAttribute, .pi = &value,
                            .attrib = CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,
                            .dev = i) == CUDA_SUCCESS &&
              value;
    }
    return all;
}

int
hed_worker_host_init(struct hed_worker *w, struct hed_why *why)
{
    struct hed_worker_host *h = calloc(1, sizeof *h);

    if (!h) {
        hed_why_set(why, "not enough memory for the client's functions");
        return HED_ENOMEM;
    }
    hed_lock_init(&h->lock, HED_RANK_HOST);
    (void)pthread_cond_init(&h->changed, NULL);
    w->host = h;
    w->memops = have_memops(w);
    return 0;
}
