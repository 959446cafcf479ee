/* The listener's side of the gate (remote/server/gate/gate.h). */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "remote/server/gate/gate.h"
#include "remote/server/listener/listener.h"
#include "remote/wire/link/link.h"

#define KEEPER_BYTES (UINT64_C(256) << 20) /* private memory of it, and of each gate */
#define READY_MS 10000                     /* it has to read a few files */
#define AGAIN_NS (1 * HED_NS_PER_S) /* a keeper that ended by itself is not replaced more often */

bool
hed_keeper_wanted(const struct hed_server_options *o)
{
    for (uint32_t i = 0; i < o->listen_count; i++) {
        if (!o->listen[i].transport->link->private && !o->tls.insecure)
            return true;
    }
    return false;
}

static _Noreturn void
be_keeper(const struct hed_server *s, const struct hed_server_options *o, int socket,
          pid_t listener)
{
    struct hed_sandbox box = s->sandbox;
    const struct hed_gate_plan plan = {
        .tls = &o->tls,
        .token_file = o->token_file,
        .deny_file = o->deny_file,
        .patience_ms = (int)(2 * o->patience_ms),
        .sandbox = &box,
    };

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
        getppid() != (hed_confine_has(s, HED_STEP_PROCESSES) ? 0 : listener))
        _exit(1);
    (void)prctl(PR_SET_NAME, "heddled-gate");
    hed_child_prepare(&socket, 1);
    box.gate = true;
    box.steps &= ~(UINT32_C(1) << HED_STEP_CGROUP); /* it stays in the listener's */
    box.driver = false;
    box.memory = KEEPER_BYTES;
    box.uid = s->options->worker_uids[1]; /* no worker's, now; see hed_child_start() */
    _exit(hed_keeper_run(socket, &plan));
}

/* Waits for the keeper's first words. */
static int
hear_keeper(int socket, struct hed_why *why)
{
    struct pollfd ready = {.fd = socket, .events = POLLIN};
    int n;

    do
        n = poll(&ready, 1, READY_MS);
    while (n < 0 && errno == EINTR);
    if (n == 1 && recv(socket, why, sizeof *why, MSG_DONTWAIT) == (ssize_t)sizeof *why) {
        why->text[sizeof why->text - 1] = '\0';
        return why->text[0] ? HED_EINVAL : 0;
    }
    hed_why_set(why, "the process for TLS handshakes does not start");
    return HED_EIO;
}

int
hed_keeper_prepare(struct hed_server *s, const struct hed_server_options *o, struct hed_why *why)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = &s->keeper_source};
    const pid_t listener = getpid();
    int ends[2];

    s->keeper_ns = hed_now_ns();
    s->keeper_source.kind = HED_SOURCE_KEEPER;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        hed_why_set(why, "%s", strerror(errno));
        return HED_ENOMEM;
    }

    const pid_t pid = hed_sandbox_fork(&s->sandbox);

    if (pid == 0)
        be_keeper(s, o, ends[1], listener);
    (void)close(ends[1]);

    int err = pid < 0 ? HED_ENOMEM : hear_keeper(ends[0], why);

    /* Whoever had prepared one before has not used it. */
    if (s->next_keeper >= 0)
        (void)close(s->next_keeper);
    s->next_keeper = -1;
    if (!err && epoll_ctl(s->epoll, EPOLL_CTL_ADD, ends[0], &e) != 0)
        err = HED_ENOMEM;
    if (err) {
        if (!why->text[0])
            hed_why_set(why, "cannot start the process for TLS handshakes: %s", strerror(errno));
        if (pid > 0)
            (void)kill(pid, SIGKILL);
        (void)close(ends[0]);
        return err;
    }
    s->next_keeper = ends[0];
    return 0;
}

void
hed_keeper_replace(struct hed_server *s)
{
    if (s->next_keeper < 0)
        return;
    hed_keeper_close(s);
    s->keeper = s->next_keeper;
    s->next_keeper = -1;
}

void
hed_keeper_close(struct hed_server *s)
{
    if (s->keeper < 0)
        return;
    (void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->keeper, NULL);
    (void)close(s->keeper);
    s->keeper = -1;
}

/* A keeper says nothing after its first words. An event of this round may be of one that has been
 * replaced. */
void
hed_keeper_ready(struct hed_server *s)
{
    struct pollfd keeper = {.fd = s->keeper, .events = POLLIN};

    if (poll(&keeper, 1, 0) <= 0)
        return;
    hed_error(SERVER, "the process for TLS handshakes has ended; it is started again");
    hed_keeper_close(s);
}

static bool
has_keeper(struct hed_server *s)
{
    struct hed_why why = {""};

    if (s->keeper >= 0)
        return true;
    if (hed_now_ns() - s->keeper_ns < AGAIN_NS)
        return false;
    if (hed_keeper_prepare(s, s->options, &why) != 0)
        hed_error(SERVER, "no client over TCP can be served: %s", why.text);
    hed_keeper_replace(s);
    return s->keeper >= 0;
}

int
hed_keeper_ask(struct hed_server *s, const struct hed_peer *p)
{
    const struct hed_gate_ask ask = {
        .kind = p->in.preface.kind == HED_PREFACE_NEW ? HED_GATE_SESSION : HED_GATE_CHANNEL};
    int ends[2];

    if (!has_keeper(s))
        return HED_EIO;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return HED_ENOMEM;

    const int err = hed_fd_send(s->keeper, (const int[]){p->fd, ends[1]}, 2, &ask, sizeof ask);

    (void)close(ends[1]);
    if (err)
        (void)close(ends[0]);
    return err ? err : ends[0];
}

/* ---- secrets of connections ------------------------------------------------------------------ */

struct hed_conn_state *
hed_state_keep(const struct hed_conn_state *state)
{
    void *kept =
        mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (kept == MAP_FAILED)
        return NULL;
    if (madvise(kept, sizeof *state, MADV_WIPEONFORK) != 0) {
        (void)munmap(kept, sizeof *state);
        return NULL;
    }
    memcpy(kept, state, sizeof *state);
    return kept;
}

void
hed_state_forget(struct hed_conn_state *kept)
{
    if (kept)
        (void)munmap(kept, sizeof *kept);
}
