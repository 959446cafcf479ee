/* Peers: connections that no worker owns yet. See listener.h.
 *
 *   PREFACE ──┬─ NEW, CHANNEL with TLS ──> GATE ──┬──> DEAD (a worker has it now)
 *      │      ├─ NEW ──> HELLO ───────────────────┤
 *      │      ├─ CHANNEL, ORDERS ─────────────────┴─ PASSING ──> the same, when the worker has
 *      │      │                                                  taken those before it
 *      │      ├─ ORDER ──> DEAD (a worker has it now)
 *      │      ├─ STATUS, ... > WRITING ──> DRAINING ──> DEAD
 *      │      └─ refused ────> WRITING ──> DRAINING ──> DEAD
 *      └─ nonsense, gone, late ──> DEAD
 *
 * So a peer that says nothing never has a worker. A refused client has sent its hello, or is about
 * to, and waits for a welcome. It gets one that contains the reason. What it sends meanwhile is
 * read and discarded, because closing the socket on unread data could destroy the answer. Over TLS
 * the gate does that.
 */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
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
#include "remote/server/gate/gate.h"
#include "remote/server/hello.h"
#include "remote/server/listener/listener.h"
#include "remote/wire/link/link.h"

#define DRAIN_MAX 64 /* reads in one round */
/* A worker, or the keeper, that is behind is asked again so often. Nothing tells when it has taken
 * a connection. */
#define PASS_AGAIN_NS (2 * HED_NS_PER_MS)

static void read_peer(struct hed_server *s, struct hed_peer *p);

/* Does it have to show who it is under TLS? */
static bool
needs_gate(const struct hed_server *s, const struct hed_peer *p)
{
    return !p->link->private && !s->options->tls.insecure;
}

static void
leave_gate(struct hed_server *s, struct hed_peer *p)
{
    if (p->gate < 0)
        return;
    (void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, p->gate, NULL);
    (void)close(p->gate);
    p->gate = -1;
}

void
hed_peer_close(struct hed_server *s, struct hed_peer *p)
{
    if (p->state == HED_PEER_DEAD)
        return;
    /* The gate has the connection, too. It ends with it. */
    if (p->state == HED_PEER_GATE)
        (void)shutdown(p->fd, SHUT_RDWR);
    leave_gate(s, p);
    /* Closing is not enough: a worker may hold the same connection, and epoll would go on reporting
     * it. */
    (void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, p->fd, NULL);
    (void)close(p->fd);
    p->fd = -1;
    if (p->state != HED_PEER_PASSING)
        hed_origin_leave(s, &p->origin);
    p->state = HED_PEER_DEAD; /* the sweep frees it: events of this round may still point to it */
}

static void
watch_peer(struct hed_server *s, struct hed_peer *p, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = p};

    if (epoll_ctl(s->epoll, EPOLL_CTL_MOD, p->fd, &e) != 0)
        hed_peer_close(s, p);
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
            hed_peer_close(s, p);
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
    struct hed_gate_verdict verdict = {""};
    struct hed_welcome *w;

    hed_server_refused(s, p, text);
    if (p->gate >= 0) {
        (void)hed_str_copy(verdict.text, sizeof verdict.text, text);
        (void)send(p->gate, &verdict, sizeof verdict, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    w = p->link->private || s->options->tls.insecure ? calloc(1, sizeof *w) : NULL;
    if (!w) {
        hed_peer_close(s, p);
        return;
    }
    hed_welcome_refuse(w, CUDA_ERROR_DEVICE_UNAVAILABLE, text);
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
            hed_peer_close(s, p);
        return;
    }
}

/* ---- what the preface says ------------------------------------------------------------------- */

static uint32_t
count_clients(const struct hed_server *s, const struct hed_origin *o)
{
    uint32_t n = 0;

    for (int i = 0; i < HED_LEDGER_WORKERS; i++)
        n += s->children[i].pid && !s->children[i].spare &&
             memcmp(&s->children[i].origin, o, sizeof *o) == 0;
    return n;
}

static void
begin_client(struct hed_server *s, struct hed_peer *p)
{
    struct hed_why why = {""};

    if (s->stopping)
        refuse_peer(s, p, "the server is stopping");
    else if (s->child_count >= s->options->clients && !hed_parked_make_room(s, &p->origin))
        hed_why_set(&why, "the server already has %u clients (--clients)", s->child_count);
    else if (s->options->per_source && count_clients(s, &p->origin) >= s->options->per_source)
        hed_why_set(&why, "the server already has %u clients from there (--per-source)",
                    s->options->per_source);
    else if (!hed_origin_may_begin(s, &p->origin, hed_now_ns()))
        hed_why_set(&why, "more than %u new clients in one second (--rate)", s->options->rate);
    else if (hed_child_start(s, p, &why) == 0)
        hed_peer_close(s, p);
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
    hed_origin_leave(s, &p->origin);
    (void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, p->fd, NULL);
    leave_gate(s, p); /* its end would be reported again and again */
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
    hed_peer_close(s, p);
}

/* Answers an operator's question or order. */
static void
begin_answer(struct hed_server *s, struct hed_peer *p)
{
    const uid_t *viewer = hed_operator_is(p) || s->options->show_all ? NULL : &p->user.uid;
    struct hed_buf text;

    if (!p->link->local) {
        hed_server_refused(s, p, "operators' questions are answered over unix sockets only");
        hed_peer_close(s, p);
        return;
    }
    hed_buf_init(&text, HED_STATUS_MAX);
    if (p->in.preface.kind == HED_PREFACE_STATUS)
        hed_status_write(s, viewer, &text);
    else if (p->in.preface.kind == HED_PREFACE_REPORT)
        hed_status_report(s, viewer, &text);
    else if (p->in.preface.kind == HED_PREFACE_LIST)
        hed_status_list(s, viewer, &text);
    else
        hed_operator_heard(s, p, &text);
    if (text.err)
        hed_error(SERVER, "cannot write the status: %s", hed_err_text(text.err));
    /* An order that was passed on is answered by its worker. */
    if (text.err || text.size == 0) {
        hed_buf_fini(&text);
        hed_peer_close(s, p);
        return;
    }
    begin_writing(s, p, text.data, text.size);
}

/* ---- at the gate ----------------------------------------------------------------------------- */

static void
begin_gate(struct hed_server *s, struct hed_peer *p)
{
    p->state = HED_PEER_GATE;
    p->deadline_ns = hed_now_ns() + s->options->patience_ms * HED_NS_PER_MS;
    hed_gates_await(s, p);
}

/* The gate runs no code of the client's, but it has read what the client sent. So what it says is
 * not believed further than needed. */
static void
hear_gate(struct hed_server *s, struct hed_peer *p)
{
    static struct hed_gate_answer answer; /* large; the listener has one thread */
    const ssize_t n = recv(p->gate, &answer, sizeof answer, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n != (ssize_t)sizeof answer || answer.state.cipher == 0)
        (void)hed_str_copy(answer.refused, sizeof answer.refused,
                           n == (ssize_t)sizeof answer && answer.refused[0]
                               ? answer.refused
                               : "its TLS handshake came to no end");
    p->state = HED_PEER_HELLO; /* the gate is done with it */
    answer.refused[sizeof answer.refused - 1] = '\0';
    answer.state.who.name[sizeof answer.state.who.name - 1] = '\0';
    if (answer.refused[0]) {
        hed_server_refused(s, p, answer.refused);
        hed_peer_close(s, p);
        return;
    }
    p->who = answer.state.who;
    p->in.hello = answer.hello;
    p->conn = hed_state_keep(&answer.state);
    explicit_bzero(&answer, sizeof answer);
    if (!p->conn)
        refuse_peer(s, p, "the server has no memory left");
    else if (p->in.preface.kind == HED_PREFACE_NEW)
        begin_client(s, p);
    else
        begin_channel(s, p);
}

/* ---- the first bytes ------------------------------------------------------------------------- */

static void
begin_session(struct hed_server *s, struct hed_peer *p)
{
    if (needs_gate(s, p)) {
        begin_gate(s, p);
        return;
    }
    p->state = HED_PEER_HELLO;
    p->deadline_ns = hed_now_ns() + s->options->patience_ms * HED_NS_PER_MS;
    read_peer(s, p);
}

static void
handle_preface(struct hed_server *s, struct hed_peer *p)
{
    const struct hed_preface *preface = &p->in.preface;

    if (memcmp(preface->magic, HED_PREFACE_MAGIC, sizeof preface->magic) != 0 ||
        preface->reserved != 0) {
        hed_server_refused(s, p, "it does not speak heddle's protocol");
        hed_peer_close(s, p);
        return;
    }
    switch (preface->kind) {
    case HED_PREFACE_NEW:
        begin_session(s, p);
        break;
    case HED_PREFACE_CHANNEL:
    case HED_PREFACE_ORDERS:
        if (needs_gate(s, p) && hed_child_find(s, p, &(struct hed_child *){NULL}) == 0)
            begin_gate(s, p);
        else
            begin_channel(s, p);
        break;
    case HED_PREFACE_STATUS:
    case HED_PREFACE_REPORT:
    case HED_PREFACE_LIST:
    case HED_PREFACE_EVICT:
    case HED_PREFACE_ORDER:
        begin_answer(s, p);
        break;
    default:
        hed_server_refused(s, p, "it asks for something that this version does not know");
        hed_peer_close(s, p);
    }
}

static void
read_peer(struct hed_server *s, struct hed_peer *p)
{
    static_assert(offsetof(struct hed_peer, in.hello) ==
                      offsetof(struct hed_peer, in.preface) + sizeof p->in.preface,
                  "the hello follows the preface");

    /* Reads not a byte more, since what follows is for the gate or for the worker. */
    const size_t want = p->state == HED_PEER_HELLO ? sizeof p->in : sizeof p->in.preface;
    const ssize_t n = recv(p->fd, (char *)&p->in + p->got, want - p->got, MSG_DONTWAIT);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        if (p->got)
            hed_server_refused(s, p, "it hung up before it had said what it wants");
        hed_peer_close(s, p);
        return;
    }
    p->got += (size_t)n;
    if (p->state == HED_PEER_HELLO && p->got == want)
        begin_client(s, p);
    /* Wrong first bytes are enough to refuse the peer, without waiting for the rest. */
    else if (p->state == HED_PEER_PREFACE &&
             (p->got == want || memcmp(&p->in, HED_PREFACE_MAGIC, p->got < 8 ? p->got : 8) != 0))
        handle_preface(s, p);
}

void
hed_peer_ready(struct hed_server *s, struct hed_peer *p)
{
    switch (p->state) {
    case HED_PEER_PREFACE:
    case HED_PEER_HELLO:
        read_peer(s, p);
        break;
    case HED_PEER_GATE:
        if (p->gate >= 0)
            hear_gate(s, p);
        else if (!p->speaks)
            hed_gates_await(s, p);
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

static bool
is_silent_state(const struct hed_peer *p)
{
    return p->state == HED_PEER_PREFACE || p->state == HED_PEER_HELLO || p->state == HED_PEER_GATE;
}

/* If there are too many peers, closes the oldest of the origin that has most of them: whoever
 * floods the server keeps out himself. */
static void
make_room_for_peer(struct hed_server *s)
{
    struct hed_peer *worst = NULL;
    uint32_t most = 0;

    if (s->peer_count < s->options->startups)
        return;
    for (struct hed_peer *p = s->peers; p; p = p->next) {
        if (p->state == HED_PEER_DEAD || p->state == HED_PEER_PASSING ||
            hed_origin_count(s, &p->origin) <= most)
            continue;
        worst = p;
        most = hed_origin_count(s, &p->origin);
    }
    if (!worst)
        return;
    if (is_silent_state(worst))
        hed_server_refused(s, worst,
                           "too many connections have not said what they want (--startups)");
    hed_peer_close(s, worst);
}

void
hed_peer_add(struct hed_server *s, int fd, const struct hed_link *link,
             const struct sockaddr_storage *at, struct hed_guest *guest)
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
    p->gate = -1;
    p->link = link;
    p->guest = guest;
    p->user = (struct hed_peer_user){.uid = (uid_t)-1, .gid = (gid_t)-1};
    p->deadline_ns = hed_now_ns() + s->options->patience_ms * HED_NS_PER_MS;
    (void)hed_str_copy(p->name, sizeof p->name, "local");
    if (guest)
        (void)snprintf(p->name, sizeof p->name, "vm:%s", guest->name);
    else if (link->name_peer)
        link->name_peer(at, p->name, sizeof p->name);
    for (end = &s->peers; *end; end = &(*end)->next)
        ;
    *end = p;

    const bool may = !link->local || hed_user_may(s->options, fd, &p->user);

    p->origin = guest ? hed_origin_of_guest(guest) : hed_origin_of(at, p->user.uid);
    hed_origin_arrive(s, &p->origin);
    if (!may)
        refuse_peer(s, p, "this user may not use the server (--allow-uid, --allow-gid)");
    else
        /* Most clients send the preface as soon as they are connected, so it is often there
         * already. */
        read_peer(s, p);
}

/* Tries again to pass the connection on, unless the worker was found behind in this round. */
static void
pass_again(struct hed_server *s, struct hed_peer *p, uint64_t now_ns)
{
    struct hed_child *c = p->child;
    int err = HED_ETIME;

    /* The worker may be gone, and its place taken by another. */
    if (c->pid == 0 || memcmp(c->session, p->in.preface.session, sizeof c->session) != 0)
        err = HED_ENOTFOUND;
    else if (c->behind_ns != now_ns)
        err = hed_child_pass(c, p);
    if (err == HED_ETIME)
        c->behind_ns = now_ns;
    else
        hed_peer_close(s, p);
}

uint64_t
hed_peers_sweep(struct hed_server *s, uint64_t now_ns)
{
    uint64_t next = UINT64_MAX;

    hed_gates_fill(s, now_ns);
    for (struct hed_peer **at = &s->peers; *at;) {
        struct hed_peer *p = *at;

        if (p->state == HED_PEER_PASSING)
            pass_again(s, p, now_ns);
        if (p->state != HED_PEER_DEAD && now_ns >= p->deadline_ns) {
            if (is_silent_state(p))
                hed_server_refused(s, p, "it did not say in time what it wants (--patience)");
            else if (p->state == HED_PEER_PASSING)
                hed_server_refused(s, p, "its worker did not take a channel in time (--patience)");
            hed_peer_close(s, p);
        }
        if (p->state == HED_PEER_DEAD) {
            *at = p->next;
            hed_state_forget(p->conn);
            free(p->out);
            free(p);
            continue;
        }
        next = hed_min(next, p->deadline_ns);
        if (p->state == HED_PEER_PASSING || (p->state == HED_PEER_GATE && p->gate < 0 && p->speaks))
            next = hed_min(next, now_ns + PASS_AGAIN_NS);
        at = &p->next;
    }
    return next;
}

void
hed_peers_close(struct hed_server *s)
{
    for (struct hed_peer *p = s->peers; p; p = p->next)
        hed_peer_close(s, p);
    (void)hed_peers_sweep(s, 0);
}
