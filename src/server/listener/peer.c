/* Peers: connections that no worker owns yet. See listener.h.
 *
 *   PREFACE ──┬─ NEW, CHANNEL ──> DEAD (a worker has it now)
 *      │      │      ╲── PASSING ──> the same, when the worker has taken those before it
 *      │      ├─ STATUS, ... > WRITING ──> DRAINING ──> DEAD
 *      │      └─ refused ────> WRITING ──> DRAINING ──> DEAD
 *      └─ nonsense, gone, late ──> DEAD
 *
 * A refused client has sent its hello, or is about to, and waits for a welcome. It gets one that
 * contains the reason. What it sends meanwhile is read and discarded, because closing the socket on
 * unread data could destroy the answer. Over TLS the listener cannot encrypt an answer, so it just
 * closes the connection.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "gen/cuda_abi.h"
#include "server/listener/listener.h"
#include "wire/link/link.h"

#define DRAIN_MAX 64 /* reads in one round */
/* A worker that is behind is asked again so often. Nothing tells when it has taken a connection. */
#define PASS_AGAIN_NS (2 * HED_NS_PER_MS)

void
hed_server_refused(struct hed_server *s, const struct hed_peer *p, const char *text)
{
    s->refused++;
    if (!hed_bucket_take(&s->quiet, hed_now_ns())) {
        s->unsaid++;
        return;
    }
    if (s->unsaid)
        hed_warn(SERVER, "%llu more clients were refused", (unsigned long long)s->unsaid);
    s->unsaid = 0;
    if (p->link->local)
        hed_warn(SERVER, "refused process %d of user %u: %s", (int)p->user.pid, p->user.uid, text);
    else
        hed_warn(SERVER, "refused %s: %s", p->name, text);
}

static void
close_peer(struct hed_server *s, struct hed_peer *p)
{
    if (p->state == HED_PEER_DEAD)
        return;
    /* Closing is not enough: a worker may hold the same connection, and epoll would go on reporting
     * it. */
    (void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, p->fd, NULL);
    (void)close(p->fd);
    p->fd = -1;
    if (p->state != HED_PEER_PASSING)
        s->peer_count--;
    p->state = HED_PEER_DEAD; /* the sweep frees it: events of this round may still point to it */
}

static void
watch_peer(struct hed_server *s, struct hed_peer *p, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = p};

    if (epoll_ctl(s->epoll, EPOLL_CTL_MOD, p->fd, &e) != 0)
        close_peer(s, p);
}

static void
continue_writing(struct hed_server *s, struct hed_peer *p)
{
    while (p->out_done < p->out_size) {
        const ssize_t n = send(p->fd, p->out + p->out_done, p->out_size - p->out_done,
                               MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN) {
            close_peer(s, p);
            return;
        }
        if (n < 0)
            return;
        p->out_done += (size_t)n;
    }
    p->state = HED_PEER_DRAINING;
    (void)shutdown(p->fd, SHUT_WR);
    watch_peer(s, p, EPOLLIN);
}

/* Takes ownership of `out`. */
static void
begin_writing(struct hed_server *s, struct hed_peer *p, unsigned char *out, size_t size)
{
    p->state = HED_PEER_WRITING;
    p->deadline_ns = hed_now_ns() + s->options->patience_ms * HED_NS_PER_MS;
    p->out = out;
    p->out_size = size;
    watch_peer(s, p, EPOLLOUT);
    if (p->state == HED_PEER_WRITING)
        continue_writing(s, p);
}

static void
refuse_peer(struct hed_server *s, struct hed_peer *p, const char *text)
{
    struct hed_welcome *w;

    hed_server_refused(s, p, text);
    w = p->link->local || s->options->tls.insecure ? calloc(1, sizeof *w) : NULL;
    if (!w) {
        close_peer(s, p);
        return;
    }
    w->head.head.size = sizeof *w;
    w->head.head.kind = HED_MSG_ANSWER;
    w->head.result = CUDA_ERROR_DEVICE_UNAVAILABLE;
    w->major = HED_WIRE_MAJOR;
    w->minor = HED_WIRE_MINOR;
    (void)hed_str_copy(w->text, sizeof w->text, text);
    begin_writing(s, p, (unsigned char *)w, sizeof *w);
}

static void
drain_peer(struct hed_server *s, struct hed_peer *p)
{
    char waste[4096];

    for (int i = 0; i < DRAIN_MAX; i++) {
        const ssize_t n = recv(p->fd, waste, sizeof waste, MSG_DONTWAIT);

        if (n > 0 || (n < 0 && errno == EINTR))
            continue;
        if (n == 0 || errno != EAGAIN)
            close_peer(s, p);
        return;
    }
}

/* ---- what the preface says ------------------------------------------------------------------- */

static void
begin_client(struct hed_server *s, struct hed_peer *p)
{
    struct hed_why why = {""};

    if (s->stopping)
        refuse_peer(s, p, "the server is stopping");
    else if (s->child_count >= s->options->clients)
        hed_why_set(&why, "the server already has %u clients (--clients)", s->child_count);
    else if (!hed_bucket_take(&s->rate, hed_now_ns()))
        hed_why_set(&why, "more than %u new clients in one second (--rate)", s->options->rate);
    else if (hed_child_start(s, p, &why) == 0)
        close_peer(s, p);
    if (why.text[0])
        refuse_peer(s, p, why.text);
}

static uint32_t
count_passing(const struct hed_server *s, const struct hed_child *c)
{
    uint32_t n = 0;

    for (const struct hed_peer *p = s->peers; p; p = p->next)
        n += p->state == HED_PEER_PASSING && p->child == c;
    return n;
}

/* The worker is behind: the connection waits. Only the clock is watched meanwhile; if the client
 * hangs up, the worker will notice. */
static void
await_worker(struct hed_server *s, struct hed_peer *p, struct hed_child *c)
{
    p->state = HED_PEER_PASSING;
    p->child = c;
    s->peer_count--;
    (void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, p->fd, NULL);
}

static void
begin_channel(struct hed_server *s, struct hed_peer *p)
{
    struct hed_child *c;
    int err = hed_child_find(s, p, &c);

    if (!err)
        err = hed_child_pass(c, p);
    if (err == HED_ETIME && count_passing(s, c) < s->options->channels) {
        await_worker(s, p, c);
        return;
    }
    if (err == HED_ENOTFOUND)
        hed_server_refused(s, p,
                           "a channel of a session that does not exist; was the server restarted?");
    else if (err == HED_EACCESS)
        hed_server_refused(s, p, "a channel of another user's session");
    else if (err)
        hed_server_refused(s, p, "a channel that its worker does not accept");
    close_peer(s, p);
}

/* Who may evict: the server's own user, and root. */
static void
evict_client(struct hed_server *s, const struct hed_peer *p, struct hed_buf *out)
{
    const unsigned long long worker = p->preface.worker;

    if (p->user.uid != 0 && p->user.uid != geteuid())
        hed_buf_addf(out, "refused: only the server's user and root may evict clients\n");
    else if (!hed_child_evict(s, worker))
        hed_buf_addf(out, "refused: there is no worker %llu\n", worker);
    else {
        hed_buf_addf(out, "evicted\n");
        hed_warn(SERVER, "worker %llu is evicted by user %u", worker, p->user.uid);
    }
}

/* Answers an operator's question or order with text. */
static void
begin_answer(struct hed_server *s, struct hed_peer *p)
{
    struct hed_buf text;

    if (!p->link->local) {
        hed_server_refused(s, p, "operators' questions are answered over unix sockets only");
        close_peer(s, p);
        return;
    }
    hed_buf_init(&text, HED_STATUS_MAX);
    if (p->preface.kind == HED_PREFACE_STATUS)
        hed_status_write(s, &text);
    else if (p->preface.kind == HED_PREFACE_REPORT)
        hed_status_report(s, &text);
    else if (p->preface.kind == HED_PREFACE_LIST)
        hed_status_list(s, &text);
    else
        evict_client(s, p, &text);
    if (text.err) {
        hed_error(SERVER, "cannot write the status: %s", hed_err_text(text.err));
        hed_buf_fini(&text);
        close_peer(s, p);
        return;
    }
    begin_writing(s, p, text.data, text.size);
}

static void
handle_preface(struct hed_server *s, struct hed_peer *p)
{
    if (memcmp(p->preface.magic, HED_PREFACE_MAGIC, sizeof p->preface.magic) != 0 ||
        p->preface.reserved != 0) {
        hed_server_refused(s, p, "it does not speak heddle's protocol");
        close_peer(s, p);
        return;
    }
    switch (p->preface.kind) {
    case HED_PREFACE_NEW:
        begin_client(s, p);
        break;
    case HED_PREFACE_CHANNEL:
        begin_channel(s, p);
        break;
    case HED_PREFACE_STATUS:
    case HED_PREFACE_REPORT:
    case HED_PREFACE_LIST:
    case HED_PREFACE_EVICT:
        begin_answer(s, p);
        break;
    default:
        hed_server_refused(s, p, "it asks for something that this version does not know");
        close_peer(s, p);
    }
}

static void
read_preface(struct hed_server *s, struct hed_peer *p)
{
    /* Reads not a byte more, since what follows is for the worker. */
    const ssize_t n = recv(p->fd, p->in + p->got, sizeof p->in - p->got, MSG_DONTWAIT);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        if (p->got)
            hed_server_refused(s, p, "it hung up before it had said what it wants");
        close_peer(s, p);
        return;
    }
    p->got += (size_t)n;
    /* Wrong first bytes are enough to refuse the peer, without waiting for the rest. */
    if (p->got == sizeof p->in || memcmp(p->in, HED_PREFACE_MAGIC, p->got < 8 ? p->got : 8) != 0)
        handle_preface(s, p);
}

void
hed_peer_ready(struct hed_server *s, struct hed_peer *p)
{
    switch (p->state) {
    case HED_PEER_PREFACE:
        read_preface(s, p);
        break;
    case HED_PEER_WRITING:
        continue_writing(s, p);
        break;
    case HED_PEER_DRAINING:
        drain_peer(s, p);
        break;
    case HED_PEER_PASSING:
    case HED_PEER_DEAD:
        break;
    }
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* If there are too many peers, closes the oldest. An honest client sends its preface at once. */
static void
make_room_for_peer(struct hed_server *s)
{
    struct hed_peer *p = s->peers;

    while (p && (p->state == HED_PEER_DEAD || p->state == HED_PEER_PASSING))
        p = p->next;
    if (s->peer_count < HED_PEERS_MAX || !p)
        return;
    if (p->state == HED_PEER_PREFACE)
        hed_server_refused(s, p, "too many connections have not said what they want");
    close_peer(s, p);
}

void
hed_peer_add(struct hed_server *s, int fd, const struct hed_link *link, const char *name)
{
    struct hed_peer *p = calloc(1, sizeof *p);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = p};
    struct hed_peer **end;

    if (!p || epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e) != 0) {
        hed_warn(SERVER, "cannot handle a new connection: %m");
        (void)close(fd);
        free(p);
        return;
    }
    make_room_for_peer(s);
    p->source.kind = HED_SOURCE_PEER;
    p->fd = fd;
    p->link = link;
    p->user = (struct hed_peer_user){.uid = (uid_t)-1, .gid = (gid_t)-1};
    p->deadline_ns = hed_now_ns() + s->options->patience_ms * HED_NS_PER_MS;
    (void)hed_str_copy(p->name, sizeof p->name, name);
    for (end = &s->peers; *end; end = &(*end)->next)
        ;
    *end = p;
    s->peer_count++;
    if (link->local && !hed_user_may(s->options, fd, &p->user))
        refuse_peer(s, p, "this user may not use the server (--allow-uid, --allow-gid)");
    else
        /* Most clients send the preface as soon as they are connected, so it is often there
         * already. */
        read_preface(s, p);
}

/* Tries again to pass the connection on, unless the worker was found behind in this round. */
static void
pass_again(struct hed_server *s, struct hed_peer *p, uint64_t now_ns)
{
    struct hed_child *c = p->child;
    int err = HED_ETIME;

    /* The worker may be gone, and its place taken by another. */
    if (c->pid == 0 || memcmp(c->session, p->preface.session, sizeof c->session) != 0)
        err = HED_ENOTFOUND;
    else if (c->behind_ns != now_ns)
        err = hed_child_pass(c, p);
    if (err == HED_ETIME)
        c->behind_ns = now_ns;
    else
        close_peer(s, p);
}

uint64_t
hed_peers_sweep(struct hed_server *s, uint64_t now_ns)
{
    uint64_t next = UINT64_MAX;

    for (struct hed_peer **at = &s->peers; *at;) {
        struct hed_peer *p = *at;

        if (p->state == HED_PEER_PASSING)
            pass_again(s, p, now_ns);
        if (p->state != HED_PEER_DEAD && now_ns >= p->deadline_ns) {
            if (p->state == HED_PEER_PREFACE)
                hed_server_refused(s, p, "it did not say in time what it wants (--patience)");
            else if (p->state == HED_PEER_PASSING)
                hed_server_refused(s, p, "its worker did not take a channel in time (--patience)");
            close_peer(s, p);
        }
        if (p->state == HED_PEER_DEAD) {
            *at = p->next;
            free(p->out);
            free(p);
            continue;
        }
        next = hed_min(next, p->deadline_ns);
        if (p->state == HED_PEER_PASSING)
            next = hed_min(next, now_ns + PASS_AGAIN_NS);
        at = &p->next;
    }
    return next;
}

void
hed_peers_close(struct hed_server *s)
{
    for (struct hed_peer *p = s->peers; p; p = p->next)
        close_peer(s, p);
    (void)hed_peers_sweep(s, 0);
}
