/* The worker's life: the threads of its channels, and the control thread, which accepts channels.
 * See worker.h.
 *
 *   hed_worker_run: first channel ── hello ──> backend up ── loop ──┐
 *       control: channels that the listener sends ── attach ── loop ├── the first channel that ends
 *        ...                                                        │   ends the process
 *
 * A client keeps its channels to its end and never closes one before, so when a channel ends, the
 * client is gone. Then nothing is waited for: the process exits, and its memory, threads and device
 * state go with it. Unless the client has parked the worker (park.c): then all its channels end,
 * and the process waits for others.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "core/session.h"
#include "remote/server/handed.h"
#include "remote/server/notice.h"
#include "remote/server/status.h"
#include "remote/server/worker/share.h"
#include "remote/server/worker/worker.h"
#include "remote/wire/link/link.h"

#define ARENA_MAX ((size_t)64 << 20) /* bytes that decoding one message may take */
#define NO_ROOM "it has no memory or no thread for one more channel of the client"
#define BEATS_IDLE 100 /* signs of life on a channel over which nothing comes */

static const struct hed_handling handlings[HED_MSG_KINDS] = {
    [HED_MSG_CALL] = {.handler = hed_do_call,
                      .least = sizeof(struct hed_msg) + sizeof(struct hed_call_body)},
    [HED_MSG_NVML] = {.handler = hed_do_nvml,
                      .least = sizeof(struct hed_msg) + sizeof(struct hed_call_body)},
    [HED_MSG_ARENA] = {.handler = hed_do_arena,
                       .least = offsetof(struct hed_arena_offer, want),
                       .no_ticket = true},
    [HED_MSG_LEASE] = {.handler = hed_do_lease, .least = sizeof(struct hed_lease)},
    [HED_MSG_MAP] = {.handler = hed_do_map, .least = sizeof(struct hed_map)},
    [HED_MSG_UNMAP] = {.handler = hed_do_unmap, .least = sizeof(struct hed_map)},
    [HED_MSG_LAUNCH] = {.handler = hed_do_launch, .least = sizeof(struct hed_launch_body)},
    [HED_MSG_COPY_IN] = {.handler = hed_do_copy_in,
                         .least = sizeof(struct hed_copy_body),
                         .waits_itself = true},
    [HED_MSG_COPY_OUT] = {.handler = hed_do_copy_out,
                          .least = sizeof(struct hed_copy_body),
                          .waits_itself = true},
    [HED_MSG_COPY_DEFERRED] = {.handler = hed_do_copy_deferred,
                               .least = sizeof(struct hed_copy_body)},
    [HED_MSG_IMAGE] = {.handler = hed_do_image, .least = sizeof(struct hed_msg)},
    [HED_MSG_OPEN] = {.handler = hed_do_open, .least = sizeof(struct hed_msg)},
    [HED_MSG_KERNEL] = {.handler = hed_do_kernel, .least = sizeof(struct hed_msg)},
    [HED_MSG_HOST] = {.handler = hed_do_host, .least = sizeof(struct hed_host_body)},
    [HED_MSG_MARK] = {.handler = hed_do_mark, .least = sizeof(struct hed_msg)},
    [HED_MSG_PING] = {.handler = hed_do_ping, .least = sizeof(struct hed_msg)},
    [HED_MSG_SYNC_HOST] = {.handler = hed_do_sync_host,
                           .least = sizeof(struct hed_msg),
                           .waits_itself = true},
    [HED_MSG_ARRAY] = {.handler = hed_do_array, .least = sizeof(struct hed_array_body)},
    [HED_MSG_GRAPH] = {.handler = hed_do_graph, .least = sizeof(struct hed_graph_body)},
    [HED_MSG_FETCH] = {.handler = hed_do_fetch, .least = sizeof(struct hed_msg), .no_ticket = true},
    [HED_MSG_WAIT] = {.handler = hed_do_wait, .least = sizeof(struct hed_msg)},
    [HED_MSG_PARK] = {.handler = hed_do_park, .least = sizeof(struct hed_msg)},
    [HED_MSG_SHARE] = {.handler = hed_do_share, .least = sizeof(struct hed_share_body)},
};

/* ---- answers --------------------------------------------------------------------------------- */

static void
fill_answer(struct hed_worker_channel *ch, const struct hed_msg *m, int result,
            struct hed_answer *a)
{
    struct hed_worker *w = ch->worker;

    a->head.kind = HED_MSG_ANSWER;
    a->head.call = m->call;
    a->head.thread = ch->thread;
    a->head.ticket = m->ticket;
    a->head.number = hed_copies_delivered(w);
    a->result = result;
    hed_worker_heard(w, m->context, (CUresult)result);
    /* Acquire: pairs with the release in hed_worker_failed(), which writes failed_context
     * before. */
    a->failed = atomic_load_explicit(&w->failed, memory_order_acquire);
    a->failed_context = a->failed ? w->failed_context : 0;
    /* What fails in a context that has failed, fails because of that. */
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY && a->failed &&
        a->failed_context == m->context)
        a->result = a->failed;
}

int
hed_worker_answer_with(struct hed_worker_channel *ch, const struct hed_msg *m, int result,
                       void *answer, size_t size, uint64_t bulk)
{
    struct hed_answer *a = answer;

    memset(&a->head, 0, sizeof a->head);
    fill_answer(ch, m, result, a);
    a->head.size = (uint32_t)size;
    a->head.bulk = bulk;

    /* After the failure was read, so that its reason is there. */
    void *out = hed_refusals_deliver(ch) ? NULL : hed_channel_begin(ch->channel, (uint32_t)size);

    if (!out)
        return HED_EIO;
    memcpy(out, answer, size);
    if (bulk && ch->worker->start->status) /* relaxed: only displayed */
        atomic_fetch_add_explicit(&ch->worker->start->status->bytes_out, bulk,
                                  memory_order_relaxed);
    return hed_channel_end(ch->channel, (uint32_t)size, bulk == 0);
}

int
hed_worker_answer(struct hed_worker_channel *ch, const struct hed_msg *m, int result,
                  const void *body, size_t n)
{
    const uint32_t size = (uint32_t)(sizeof(struct hed_answer) + n);
    struct hed_answer head, *out;

    if (n > HED_MSG_MAX - sizeof(struct hed_answer)) {
        hed_bug("an answer of %zu bytes", n);
        return HED_ELIMIT;
    }
    memset(&head, 0, sizeof head);
    fill_answer(ch, m, result, &head);
    head.head.size = size;
    out = hed_refusals_deliver(ch) ? NULL : hed_channel_begin(ch->channel, size);
    if (!out)
        return HED_EIO;
    *out = head;
    if (n)
        memcpy(out + 1, body, n);
    return hed_channel_end(ch->channel, size, true);
}

int
hed_worker_before_answer(struct hed_worker_channel *ch)
{
    const int err = hed_copies_deliver(ch);

    return err ? err : hed_print_deliver(ch);
}

/* ---- one message ----------------------------------------------------------------------------- */

/* Until there is an arena, a client can ask for it, and do little else. */
static bool
is_too_early(const struct hed_worker *w, const struct hed_msg *m)
{
    return (!w->memory || !w->code || !w->host) && m->kind != HED_MSG_ARENA &&
           m->kind != HED_MSG_NVML && m->kind != HED_MSG_PING && m->kind != HED_MSG_FETCH;
}

int
hed_worker_handle(struct hed_worker_channel *ch, struct hed_msg *m)
{
    const struct hed_handling *h = m->kind < HED_MSG_KINDS ? &handlings[m->kind] : NULL;
    int err = 0;

    if (!h || !h->handler || m->size < h->least || m->bulk > HED_BULK_CHUNK ||
        (m->ticket == 0) != h->no_ticket || is_too_early(ch->worker, m) || hed_worker_is_left(ch))
        return HED_EFORMAT;
    hed_worker_count(ch, m);
    hed_arena_reset(&ch->arena);
    if (m->bulk && m->kind != HED_MSG_COPY_IN)
        hed_copies_settle(ch);
    if (!h->waits_itself && !h->no_ticket)
        err = hed_ticket_wait(ch, m->ticket);
    /* A message may come after its context is gone, for example when it destroys objects. */
    if (!err && !h->no_ticket && !h->waits_itself)
        err = hed_worker_context(ch, m->context);
    if (err == HED_ENOTFOUND) {
        hed_debug(SERVER, "message %u names a context that is not there", m->kind);
        err = 0;
    }
    if (!err)
        err = h->handler(ch, m);
    hed_ticket_pass(ch);
    return err;
}

/* ---- channels -------------------------------------------------------------------------------- */

void
hed_worker_exit(struct hed_worker *w, int err)
{
    /* Relaxed: waiting threads check it from time to time. */
    atomic_store_explicit(&w->ending, true, memory_order_relaxed);
    hed_worker_orders_end(w);
    hed_lock(&w->lock);
    for (struct hed_worker_channel *ch = w->channels; ch; ch = ch->next)
        hed_worker_tell_counts(ch);
    hed_unlock(&w->lock);
    if (err == HED_EFORMAT)
        hed_error(SERVER, "a client sent an impossible message, so its session ends");
    _exit(err == HED_EIO || err == 0 ? 0 : 1);
}

static void *
serve_channel(void *arg)
{
    struct hed_worker_channel *ch = arg;
    struct hed_msg none = {0};
    struct hed_msg *m = &none;
    uint64_t taken = 0;
    int err;

    (void)prctl(PR_SET_TIMERSLACK, 1000); /* ns: naps are short (wire/wait.h) */
    do {
        err = hed_channel_next(ch->channel, -1, &m);
        if (!err && m->kind == HED_MSG_BYE)
            err = HED_EIO;
        /* Relaxed, both: the control thread looks at it from time to time. No other thread writes
         * it. */
        atomic_store_explicit(&ch->taken, ++taken, memory_order_relaxed);
        if (!err)
            err = hed_worker_handle(ch, m);
        atomic_store_explicit(&ch->taken, ++taken, memory_order_relaxed);
    } while (!err);
    if (err == HED_EIO && hed_worker_is_left(ch)) {
        hed_worker_leave(ch);
        return NULL;
    }
    if (err != HED_EIO)
        hed_error(SERVER, "channel %u ends at message %u of kind %u (call %u): %s", ch->thread,
                  (unsigned)m->ticket, m->kind, m->call, hed_err_text(err));
    hed_worker_exit(ch->worker, err);
}

struct hed_worker_channel *
hed_worker_channel_add(struct hed_worker *w, struct hed_channel *channel, uint32_t thread,
                       uint32_t life)
{
    struct hed_worker_channel *ch = calloc(1, sizeof *ch);

    if (!ch)
        return NULL;
    ch->worker = w;
    ch->channel = channel;
    ch->thread = thread;
    ch->life = life;
    hed_arena_init(&ch->arena, ARENA_MAX);
    hed_lock(&w->lock);
    ch->next = w->channels;
    w->channels = ch;
    if (w->start->status)
        w->start->status->channels++;
    hed_unlock(&w->lock);
    return ch;
}

/* Accepts a channel that knows the session's secret. Any other is closed, and the session goes
 * on. */
static int
attach_channel(struct hed_worker *w, int fd, const struct hed_conn_state *state)
{
    struct hed_why why = {""};
    struct hed_conn *conn;
    struct hed_channel *channel = NULL;
    struct hed_msg *m;
    uint32_t life = 0;
    int err = hed_conn_resume(fd, w->start->link, state, &conn, &why);

    if (!err) {
        hed_conn_set_window(conn, &w->window);
        err = hed_channel_accept(conn, w->transport->channel, &channel, &why);
        if (!err)
            err = hed_channel_next(channel, w->start->hello_ms, &m);
    }

    const struct hed_attach *a = err ? NULL : (const struct hed_attach *)m;

    if (a && (m->kind != HED_MSG_ATTACH || m->size < offsetof(struct hed_attach, key) ||
              a->purpose > HED_CHANNEL_RETURN || !hed_worker_knows(w, a, &life)))
        err = HED_EACCESS;
    /* Acquire: pairs with the release in accept_base() of arena.c. Until then only the first
     * channel is allowed. */
    if (!err && !atomic_load_explicit(&w->settled, memory_order_acquire))
        err = HED_EACCESS;
    atomic_fetch_sub_explicit(&w->new_channels, 1, memory_order_relaxed); /* only a count */
    if (!err && a->purpose == HED_CHANNEL_CALLBACKS)
        return hed_worker_callback_channel(w, channel, life);

    struct hed_worker_channel *ch = NULL;
    pthread_t thread;

    if (!err && a->purpose == HED_CHANNEL_RETURN)
        err = hed_worker_take_back(w, channel, a, life, &ch);
    else if (!err)
        ch = hed_worker_channel_add(w, channel, m->thread, life);

    if (ch && pthread_create(&thread, NULL, serve_channel, ch) == 0) {
        (void)pthread_detach(thread);
        return 0;
    }
    /* Messages of the client's other threads may already wait for those of this one. */
    if (!err || err == HED_ENOMEM)
        hed_worker_end(w, NO_ROOM);
    hed_warn(SERVER, "a channel was refused: %s", hed_err_text(err));
    hed_channel_free(channel);
    return err;
}

/* Channels that have not yet shown the secret count, too, because each has a thread. */
static bool
has_all_channels(struct hed_worker *w)
{
    uint32_t n = atomic_load_explicit(&w->new_channels, memory_order_relaxed);

    hed_lock(&w->lock);
    for (const struct hed_worker_channel *ch = w->channels; ch; ch = ch->next)
        n++;
    hed_unlock(&w->lock);
    return w->start->channel_limit && n >= w->start->channel_limit;
}

static void *
attach_main(void *arg)
{
    struct hed_worker_new_channel *d = arg;

    (void)attach_channel(d->worker, d->fd, &d->state);
    free(d);
    return NULL;
}

/* Each new channel gets a thread at once, so that a silent one does not keep out others. */
static void
accept_channel(struct hed_worker *w, int fd, const struct hed_conn_state *state)
{
    const bool full = has_all_channels(w);
    struct hed_worker_new_channel *d = full ? NULL : malloc(sizeof *d);
    pthread_t thread;

    if (d) {
        *d = (struct hed_worker_new_channel){w, fd, *state};
        /* Relaxed: a count that only the control thread reads. */
        atomic_fetch_add_explicit(&w->new_channels, 1, memory_order_relaxed);
        if (pthread_create(&thread, NULL, attach_main, d) == 0) {
            (void)pthread_detach(thread);
            return;
        }
        free(d);
    }
    if (!full)
        hed_worker_end(w, NO_ROOM);
    hed_warn(SERVER, "closed a connection: its client has %u channels already (--channels)",
             w->start->channel_limit);
    (void)close(fd);
}

/* Channels whose end wakes the control thread. It notices the end of others when it polls. */
#define WATCHED 64

/* Waits for the listener, or for the peer of a channel to go away. Only channels of the worker's
 * present life count, and only if that is not over by then: their descriptors may be others'. */
static bool
wait_for_listener_or_peer(struct hed_worker *w, bool *from_listener)
{
    struct pollfd p[1 + WATCHED] = {{.fd = w->start->control, .events = POLLIN}};
    nfds_t n = 1;
    bool gone = false;

    hed_lock(&w->lock);

    const uint32_t life = atomic_load_explicit(&w->life, memory_order_relaxed); /* under the lock */

    for (struct hed_worker_channel *ch = w->channels; ch && n < 1 + WATCHED; ch = ch->next)
        if (!hed_worker_is_left(ch))
            p[n++] = (struct pollfd){.fd = hed_conn_fd(hed_channel_conn(ch->channel)),
                                     .events = POLLRDHUP};
    hed_unlock(&w->lock);

    const int ready = poll(p, n, HED_CHANNEL_LOST_MS / 4);

    *from_listener = ready > 0 && p[0].revents != 0;
    for (nfds_t i = 1; i < n && ready > 0; i++)
        gone |= (p[i].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
    /* Acquire: as in hed_worker_is_left(). */
    return gone && life == atomic_load_explicit(&w->life, memory_order_acquire);
}

/* Sends signs of life: to a client that waits, and for some time to one that may have sent
 * something that is still on its way. Not for ever, because an idle client reads nothing. */
static void
send_signs_of_life(struct hed_worker *w, uint64_t *last)
{
    const uint64_t now = hed_now_ns();

    if (now - *last < w->transport->channel->beat_ms * HED_NS_PER_MS)
        return;
    *last = now;
    hed_lock(&w->lock);
    for (struct hed_worker_channel *ch = w->channels; ch; ch = ch->next) {
        const uint64_t taken = atomic_load_explicit(&ch->taken, memory_order_relaxed);

        if (taken != ch->heard)
            ch->beats = 0;
        ch->heard = taken;
        if (taken % 2 == 1 || ch->beats < BEATS_IDLE)
            hed_channel_beat(ch->channel);
        ch->beats++;
    }
    hed_unlock(&w->lock);
}

/* Waits for channels to accept. While a kernel runs, the threads of all channels may be in a call;
 * then the end of the client is noticed here. */
static void *
control_thread(void *arg)
{
    struct hed_worker *w = arg;
    struct hed_worker_limits limits = {.begin_ns = hed_now_ns(), .heard_ns = hed_now_ns()};
    uint64_t sign = limits.begin_ns;
    bool gone = false;

    while (!gone) {
        bool from_listener;

        if (wait_for_listener_or_peer(w, &from_listener))
            hed_worker_exit(w, 0);

        int fd;
        struct hed_handed h;
        const int err =
            from_listener ? hed_fd_take(w->start->control, &fd, 1, &h, sizeof h) : HED_ETIME;

        gone = err == HED_EIO;
        if (!err && h.kind == HED_PREFACE_CHANNEL)
            accept_channel(w, fd, &h.state);
        else if (!err)
            hed_worker_orders_accept(w, fd, &h);
        send_signs_of_life(w, &sign);
        hed_print_trim(w);
        hed_shared_events_look(w);
        hed_worker_check_limits(w, &limits);
    }
    hed_info(SERVER, "the listener is gone, so this session ends");
    hed_worker_exit(w, 0);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int
open_first_channel(struct hed_worker *w, struct hed_worker_channel **out, struct hed_why *why)
{
    const struct hed_worker_start *s = w->start;
    struct hed_conn *conn;
    struct hed_channel *channel;
    void *slots = NULL;
    int err = hed_conn_resume(s->conn, s->link, s->state, &conn, why);

    if (err)
        return err;
    /* The hello says which kind of channel it will be, so it comes before the channel. */
    err = hed_worker_welcome(w, conn, s->hello, why);
    hed_conn_set_window(conn, &w->window);
    if (!err)
        err = hed_channel_accept(conn, w->transport->channel, &channel, why);
    else
        hed_conn_close(conn);
    if (err)
        return err;
    w->shares = hed_channel_shares(channel);
    w->in_window = hed_channel_window_of(channel, &slots) != NULL;
    w->slots = slots;
    *out = hed_worker_channel_add(w, channel, 0, 0);
    return *out ? hed_worker_tell_devices(*out) : HED_ENOMEM;
}

static struct hed_worker *this_session; /* for the backend, which knows no worker */

static void
end_for_backend(const char *why)
{
    hed_worker_end(this_session, why);
}

/* On the CPU GPU, programs tell each other in a file how much memory they use, which a worker in a
 * sandbox does not have. */
static uint64_t
ask_for_others(int device)
{
    return hed_lease_others(this_session, device);
}

struct hed_worker *
hed_worker_begin(const struct hed_worker_start *start)
{
    struct hed_worker *w = calloc(1, sizeof *w);

    if (!w)
        return NULL;
    w->start = start;
    this_session = w;
    hed_session_on_give_up(end_for_backend);
    if (start->confined)
        hed_session_on_others(ask_for_others);
    w->heap = w->slots_fd = -1;
    atomic_init(&w->next_ticket, 1);
    hed_lock_init(&w->lock, HED_RANK_WORKER);
    hed_lock_init(&w->lease_socket_lock, HED_RANK_LEASE_SOCKET);
    hed_worker_window_init(w);
    w->notice = hed_notice_map(start->notice);
    w->names = hed_names_create();
    if (w->names && getrandom(w->secret, sizeof w->secret, 0) == sizeof w->secret)
        return w;
    free(w);
    return NULL;
}

int
hed_worker_serve(struct hed_worker *w)
{
    struct hed_worker_channel *ch = NULL;
    struct hed_why why = {""};
    pthread_t control;
    int err = open_first_channel(w, &ch, &why);

    if (!err && pthread_create(&control, NULL, control_thread, w) != 0)
        err = HED_ENOMEM;
    if (err) {
        hed_warn(SERVER, "a client (%s) was not served: %s",
                 w->start->peer ? w->start->peer : "unknown",
                 why.text[0] ? why.text : hed_err_text(err));
        _exit(1);
    }
    (void)serve_channel(ch);
    /* The client has parked the worker. The process ends when the control thread says so. */
    (void)pthread_join(control, NULL);
    return 0;
}

int
hed_worker_run(const struct hed_worker_start *start)
{
    struct hed_worker *w = hed_worker_begin(start);

    /* The welcome tries again what fails, and tells the client. */
    if (w && start->warm)
        (void)hed_worker_warm_up(w, NULL);
    if (w)
        return hed_worker_serve(w);
    hed_warn(SERVER, "a client (%s) was not served: %s", start->peer ? start->peer : "unknown",
             hed_err_text(HED_ENOMEM));
    return HED_ENOMEM;
}
