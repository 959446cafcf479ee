/* The listener's side of the lease sockets (remote/server/lease_socket.h), and the probe that tells
 * how much there is.
 *
 *   start ──fork──> probe: starts the backend as a worker would, writes what its devices have, ends
 *     until then no lease socket is read, so workers that ask wait
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/number.h"
#include "remote/server/lease_socket.h"
#include "remote/server/listener/listener.h"
#include "remote/server/listener/offers.h"
#include "remote/server/start.h"

#define ASKS_MAX 16 /* of one worker in one round, so that others have their turn */

/* ---- lease sockets --------------------------------------------------------------------------- */

static uint64_t
answer_ask(struct hed_server *s, uint32_t worker, const struct hed_lease_socket_ask *ask)
{
    const uint64_t limit =
        ask->device == HED_LEASE_SOCKET_HOST ? s->options->host_memory : s->options->memory;
    struct hed_child *c = &s->children[worker];

    switch (ask->kind) {
    case HED_LEASE_SOCKET_TAKE:
        return hed_ledger_take(&s->ledger, worker, ask->device, ask->bytes, ask->least, limit);
    case HED_LEASE_SOCKET_GIVE:
        hed_ledger_give(&s->ledger, worker, ask->device,
                        hed_min(ask->bytes, hed_offers_leave(s, worker, ask->device)));
        return 0;
    case HED_LEASE_SOCKET_OBTAINABLE:
        return hed_ledger_obtainable(&s->ledger, worker, ask->device, limit);
    case HED_LEASE_SOCKET_OTHERS:
        return hed_ledger_others(&s->ledger, worker, ask->device);
    case HED_LEASE_SOCKET_PIECE_TAKE:
        return hed_guest_take_piece(c->guest, worker, ask->bytes);
    case HED_LEASE_SOCKET_PIECE_GIVE:
        hed_guest_give_piece(c->guest, worker, ask->offset, ask->bytes);
        return 0;
    case HED_LEASE_SOCKET_WITHDRAW:
        return hed_offer_withdraw(s, c, ask->key);
    case HED_LEASE_SOCKET_CLOSE:
        hed_offer_close(s, c, ask->key);
        return 0;
    default:
        return 0;
    }
}

/* A worker has its client's socket, and closing one could take as long as its options say. */
void
hed_lease_socket_drop(int fd)
{
    if (fd < 0)
        return;
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){0}, sizeof(struct linger));
    (void)close(fd);
}

/* `fd` came along, or is -1; *out goes along, unless it is -1, and stays ours. */
static void
answer_any(struct hed_server *s, const struct hed_child *c, const struct hed_lease_socket_ask *ask,
           int fd, struct hed_lease_socket_answer *answer, int *out)
{
    if (ask->kind == HED_LEASE_SOCKET_OFFER) {
        answer->error = hed_offer_make(s, c, ask, fd, answer);
        return;
    }
    hed_lease_socket_drop(fd);
    if (ask->kind == HED_LEASE_SOCKET_OPEN)
        answer->error = hed_offer_open(s, c, ask, answer, out);
    else
        answer->bytes = answer_ask(s, (uint32_t)(c - s->children), ask);
}

void
hed_lease_socket_close(struct hed_server *s, struct hed_child *c)
{
    if (c->lease_socket < 0)
        return;
    (void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, c->lease_socket, NULL);
    (void)close(c->lease_socket);
    c->lease_socket = -1;
}

/* An honest worker reads its answer before it asks again, so there is room for this one. */
static bool
send_answer(int lease_socket, const struct hed_lease_socket_answer *answer, int fd)
{
    ssize_t n;

    if (fd >= 0)
        return hed_fd_send(lease_socket, &fd, 1, answer, sizeof *answer) == 0;
    do
        n = send(lease_socket, answer, sizeof *answer, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *answer;
}

/* Has the worker read all answers? An honest one has before it asks again. Answers on their way
 * keep the descriptors in them, and the memory of these, though nobody has it in a lease. */
static bool
has_read_answers(int lease_socket)
{
    int bytes = 0;

    return ioctl(lease_socket, SIOCOUTQ, &bytes) == 0 && bytes == 0;
}

void
hed_lease_socket_ready(struct hed_server *s, struct hed_child *c)
{
    for (int i = 0; i < ASKS_MAX && c->lease_socket >= 0; i++) {
        struct hed_lease_socket_answer answer = {0};
        struct hed_lease_socket_ask ask;
        int came, goes = -1;
        const int err = hed_fd_take_maybe(c->lease_socket, &came, &ask, sizeof ask, false);

        if (err == HED_ETIME)
            return;
        if (!err && has_read_answers(c->lease_socket)) {
            answer_any(s, c, &ask, came, &answer, &goes);
            if (send_answer(c->lease_socket, &answer, goes))
                continue;
        } else if (!err) {
            hed_lease_socket_drop(came);
        }
        hed_lease_socket_close(s, c);
    }
}

void
hed_lease_socket_open(struct hed_server *s, struct hed_child *c)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};

    if (s->probe >= 0)
        return; /* later, when there is something to lease */
    c->source.kind = HED_SOURCE_LEASE_SOCKET;
    if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, c->lease_socket, &e) != 0)
        hed_lease_socket_close(s, c);
}

/* ---- the probe ------------------------------------------------------------------------------- */

int
hed_probe_start(struct hed_server *s)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = &s->probe_source};
    const pid_t listener = getpid();
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return HED_ENOMEM;
    s->probe_source.kind = HED_SOURCE_PROBE;

    const pid_t pid = fork();

    if (pid == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != listener)
            _exit(1);
        hed_child_prepare(&ends[1], 1);
        _exit(hed_worker_probe(ends[1]));
    }
    (void)close(ends[1]);
    if (pid < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, ends[0], &e) != 0) {
        (void)close(ends[0]);
        return HED_ENOMEM;
    }
    s->probe = ends[0];
    return 0;
}

void
hed_probe_ready(struct hed_server *s)
{
    const size_t size = HED_LEASE_SOCKET_DEVICES * sizeof s->ledger.total[0];

    /* Fewer bytes than a pipe passes at once. */
    const bool known = read(s->probe, s->ledger.total, size) == (ssize_t)size;

    if (!known)
        memset(s->ledger.total, 0, size);
    if (!known && !s->plan.driver)
        hed_warn(SERVER, "cannot find out how much memory the devices have: what all clients have "
                         "together is not limited");
    hed_ledger_changed(&s->ledger);
    (void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->probe, NULL);
    (void)close(s->probe);
    s->probe = -1;
    for (int i = 0; i < HED_LEDGER_WORKERS; i++) {
        if (s->children[i].pid && s->children[i].lease_socket >= 0)
            hed_lease_socket_open(s, &s->children[i]);
    }
    /* A server that could serve nobody must not look healthy to whoever watches it. */
    if (!known && s->plan.driver) {
        hed_error(SERVER, "--gpu %s cannot be used on this machine", s->options->gpu);
        s->useless = true;
        hed_server_stop(s, "no GPU");
    } else if (!s->stopping) {
        hed_server_ready(s);
    }
}
