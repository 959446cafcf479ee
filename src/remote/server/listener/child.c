/* The workers as the listener sees them: starting them, passing channels to them, reaping them. See
 * listener.h.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/number.h"
#include "base/search.h"
#include "base/str.h"
#include "remote/server/handed.h"
#include "remote/server/listener/listener.h"
#include "remote/server/listener/offers.h"
#include "remote/server/start.h"
#include "remote/server/status.h"
#include "remote/wire/link/link.h"

/* Leases are for what clients allocate. The limit of a worker's own chain (the layer quota) also
 * counts what comes with code: variables of modules, and contexts. So it has more. */
#define ROOM_ON_CPU (UINT64_C(64) << 20) /* bytes over --memory */
#define ROOM_ON_GPU (UINT64_C(512) << 20)
#define DISMISS_MS 5000 /* for a worker to tell its client that it is evicted, and to end */

/* ---- in the new process ---------------------------------------------------------------------- */

static void
close_between(int first, int last)
{
    if (first > last || close_range((unsigned)first, (unsigned)last, 0) == 0)
        return;

    const long most = sysconf(_SC_OPEN_MAX);

    for (int fd = first; fd <= last && fd < most; fd++)
        (void)close(fd);
}

/* Closes the listener's descriptors. A client's code has no use for them, least of all for those of
 * other clients. `kept` is in rising order. */
static void
close_others(const int *kept, size_t count)
{
    int next = STDERR_FILENO + 1;

    for (size_t i = 0; i < count; i++) {
        close_between(next, kept[i] - 1);
        next = kept[i] + 1;
    }
    close_between(next, INT32_MAX);
}

/* Resets all signals. Those that a terminal sends are ignored: the listener handles them. */
static void
reset_signals(void)
{
    const struct sigaction plain = {.sa_handler = SIG_DFL};
    const struct sigaction ignored = {.sa_handler = SIG_IGN};
    sigset_t none;

    for (int i = 1; i < NSIG; i++)
        (void)sigaction(i, &plain, NULL);
    (void)sigaction(SIGINT, &ignored, NULL);
    (void)sigaction(SIGHUP, &ignored, NULL);
    (void)sigaction(SIGPIPE, &ignored, NULL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

void
hed_child_prepare(int *kept, size_t count)
{
    qsort(kept, count, sizeof *kept, hed_compare_u32);
    close_others(kept, count);
    reset_signals();
}

/* Closes what is not the worker's. */
static void
keep_descriptors(const struct hed_worker_start *start)
{
    int kept[] = {start->control, start->lease_socket, start->conn, start->notice, start->window};
    size_t count = 2;

    for (size_t i = count; i < sizeof kept / sizeof kept[0]; i++)
        if (kept[i] > 0)
            kept[count++] = kept[i];
    hed_child_prepare(kept, count);
}

/* What a worker has from the options and the server, whoever its client is. */
static struct hed_worker_start
common_start(const struct hed_server *s, const struct hed_child *c)
{
    const struct hed_server_options *o = s->options;
    struct hed_worker_start start = {
        .conn = -1,
        .notice = s->notice > 0 ? s->notice : 0,
        .memory_limit = o->memory,
        .memory_room = s->plan.driver ? ROOM_ON_GPU : ROOM_ON_CPU,
        .host_limit = o->host_memory,
        .channel_limit = o->channels,
        .idle_ms = o->idle_ms,
        .session_ms = o->session_ms,
        .kernel_ms = o->kernel_ms,
        .compile_ms = o->compile_ms,
        .park_ms = o->park_ms,
        .hello_ms = (int)(2 * o->patience_ms),
        .images = s->images,
        .images_most = o->images_client,
        .images_reserve = o->images_reserve,
        .status = c->status,
    };

    memcpy(start.session, c->session, sizeof start.session);
    return start;
}

static void
add_client(struct hed_worker_start *start, const struct hed_peer *p, const struct hed_child *c,
           const struct hed_conn_state *state)
{
    start->conn = p->fd;
    start->link = p->link;
    start->state = state;
    start->hello = &p->in.hello;
    start->peer = c->peer;
    start->client_pid = (uint32_t)c->user.pid;
    start->client_uid = (uint32_t)c->user.uid;
    if (c->guest && c->guest->window >= 0) {
        start->window = c->guest->window;
        start->window_size = c->guest->size;
        memcpy(start->window_id, c->guest->id, sizeof start->window_id);
    }
}

/* `p` is NULL for a spare, which has no client yet. */
static _Noreturn void
be_worker(const struct hed_server *s, const struct hed_peer *p, const struct hed_child *c,
          const struct hed_conn_state *state, int control, int lease_socket, int words,
          pid_t listener)
{
    const bool first = hed_confine_has(s, HED_STEP_PROCESSES); /* of its PID namespace */
    struct hed_why why = {""};
    struct hed_worker_start start = common_start(s, c);

    hed_offers_wipe(s);
    start.control = control;
    start.lease_socket = lease_socket;
    if (p)
        add_client(&start, p, c, state);
    start.warm = p && hed_spare_fits(s, p);
    start.offers = p && hed_offers_may(p);
    /* SIGKILL, not SIGTERM: a driver may be in the middle of anything. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != (first ? 0 : listener))
        _exit(1);
    (void)prctl(PR_SET_NAME, p ? "heddled-worker" : "heddled-spare");
    /* The server's own may be a file that a client's code must not change. */
    if (dup2(words, STDOUT_FILENO) < 0 || dup2(words, STDERR_FILENO) < 0)
        _exit(1);
    keep_descriptors(&start);
    if (hed_confine_worker(s, c->owner, (uint32_t)(c - s->children), &start, &why) != 0) {
        hed_warn(SERVER, "a client (%s) was not served: %s", p ? c->peer : "none yet", why.text);
        _exit(1);
    }
    /* When the user changed, there was a moment in which the listener could die unnoticed.
     * In a PID namespace the kernel says that the parent is process 0, dead or alive. But the
     * listener has the other end of the control socket. */
    if (hed_fd_hung_up(control))
        _exit(1);
    _exit((p ? hed_worker_run(&start) : hed_worker_spare(&start)) == 0 ? 0 : 1);
}

/* ---- in the listener ------------------------------------------------------------------------- */

struct hed_child *
hed_child_place(struct hed_server *s)
{
    for (int i = 0; i < HED_LEDGER_WORKERS; i++) {
        if (s->children[i].pid == 0)
            return &s->children[i];
    }
    return NULL;
}

/* Forks the worker; the ends of its sockets that stay here are in the child's struct. */
static pid_t
fork_worker(struct hed_server *s, const struct hed_peer *p, struct hed_child *c)
{
    /* What the peer keeps is empty after the fork. */
    struct hed_conn_state state = p && p->conn ? *p->conn : (struct hed_conn_state){.cipher = 0};
    const pid_t listener = getpid();
    int control[2] = {-1, -1};
    int lease_socket[2] = {-1, -1};
    const int words = hed_lines_open(&c->lines);
    char name[16];
    pid_t pid = -1;

    c->status = hed_status_create();
    if (c->status && words >= 0 &&
        getrandom(c->session, sizeof c->session, 0) == (ssize_t)sizeof c->session &&
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) == 0 &&
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, lease_socket) == 0)
        pid = hed_sandbox_fork(&s->sandbox);
    if (pid == 0)
        be_worker(s, p, c, &state, control[1], lease_socket[1], words, listener);
    explicit_bzero(&state, sizeof state);
    if (pid < 0)
        hed_error(SERVER, "cannot start a worker: %m");
    for (int i = pid < 0 ? 0 : 1; i < 2; i++) {
        if (control[i] >= 0)
            (void)close(control[i]);
        if (lease_socket[i] >= 0)
            (void)close(lease_socket[i]);
    }
    if (words >= 0)
        (void)close(words);
    if (pid < 0) {
        hed_status_free(c->status);
        hed_lines_end(s, &c->lines);
    } else {
        hed_status_keep(c->status);
        (void)snprintf(name, sizeof name, "%02x%02x%02x%02x", c->session[0], c->session[1],
                       c->session[2], c->session[3]);
        hed_lines_begin(s, &c->lines, pid, name);
    }
    c->control = control[0];
    c->lease_socket = lease_socket[0];
    return pid;
}

void
hed_child_log(const struct hed_child *c, const char *what)
{
    if (c->link->local)
        hed_debug(SERVER, "%s %d for process %d of user %u", what, (int)c->pid, (int)c->user.pid,
                  c->user.uid);
    else
        hed_debug(SERVER, "%s %d for %s", what, (int)c->pid, c->peer);
}

uint32_t
hed_child_places(const struct hed_server *s)
{
    /* The last user is that of the keeper and of bridges. */
    const uint32_t users = s->options->worker_uids[1] - s->options->worker_uids[0] +
                           (hed_keeper_wanted(s->options) || s->guests ? 0 : 1);

    return hed_confine_has(s, HED_STEP_USER) ? hed_min(users, HED_LEDGER_WORKERS)
                                             : HED_LEDGER_WORKERS;
}

pid_t
hed_child_fork(struct hed_server *s, const struct hed_peer *p, struct hed_child *c)
{
    struct hed_why reason = {""};
    const uint32_t place = (uint32_t)(c - s->children);
    pid_t pid = -1;

    if (hed_confine_group(s, place, &reason) != 0)
        hed_error(SERVER, "cannot make a control group for a worker: %s", reason.text);
    else
        pid = fork_worker(s, p, c);
    if (pid < 0) {
        (void)hed_confine_ended(s, place);
        return -1;
    }
    c->pid = pid;
    hed_lease_socket_open(s, c);
    return pid;
}

void
hed_child_meet(struct hed_server *s, const struct hed_peer *p, struct hed_child *c)
{
    c->link = p->link;
    c->guest = p->guest;
    c->user = p->user;
    c->session_ms = s->options->session_ms;
    c->origin = p->origin;
    c->who = p->who;
    c->started_ns = hed_now_ns();
    c->started_wall_ns = hed_wall_ns();
    (void)hed_str_copy(c->peer, sizeof c->peer, p->name);
    hed_confine_owner(p, c->client, sizeof c->client);
}

/* A worker of its own for this client. */
static int
start_worker(struct hed_server *s, const struct hed_peer *p, struct hed_why *why)
{
    struct hed_child *c = hed_child_place(s);

    if (!c) {
        hed_why_set(why, "the server already serves %d clients, which is the most that it can",
                    HED_LEDGER_WORKERS);
        return HED_ELIMIT;
    }
    if (c - s->children >= hed_child_places(s)) {
        hed_why_set(why, "the server has no more users for workers (--worker-uids)");
        return HED_ELIMIT;
    }
    *c = (struct hed_child){.pid = 0};
    hed_child_meet(s, p, c);
    hed_confine_owner(p, c->owner, sizeof c->owner);
    if (hed_child_fork(s, p, c) > 0) {
        hed_child_log(c, "new worker");
        return 0;
    }
    /* The reason concerns the server's administrator. The client only learns that it is not at
     * fault. */
    hed_why_set(why, "the server could not start a worker for this client; its log says why");
    return HED_ENOMEM;
}

int
hed_child_start(struct hed_server *s, const struct hed_peer *p, struct hed_why *why)
{
    const int err = hed_spare_take(s, p) ? 0 : start_worker(s, p, why);

    s->child_count += !err;
    s->served += !err;
    return err;
}

static bool
is_same_client(const struct hed_child *c, const struct hed_peer *p)
{
    return c->who.certified == p->who.certified &&
           memcmp(c->who.subject, p->who.subject, sizeof c->who.subject) == 0;
}

/* The number of a session is not secret, but it is useless without the right user. Over TCP, the
 * worker asks for the session's secret. */
int
hed_child_find(struct hed_server *s, const struct hed_peer *p, struct hed_child **out)
{
    for (int i = 0; i < HED_LEDGER_WORKERS; i++) {
        struct hed_child *c = &s->children[i];

        if (c->pid == 0 || c->spare ||
            memcmp(c->session, p->in.preface.session, sizeof c->session) != 0)
            continue;
        if (c->link != p->link || c->guest != p->guest ||
            (p->link->local && c->user.uid != p->user.uid) || (p->conn && !is_same_client(c, p)))
            return HED_EACCESS;
        *out = c;
        return 0;
    }
    return HED_ENOTFOUND;
}

int
hed_child_pass(const struct hed_child *c, const struct hed_peer *p)
{
    struct hed_handed h = {.kind = p->in.preface.kind};

    if (p->conn)
        h.state = *p->conn;

    const int err = hed_fd_send(c->control, &p->fd, 1, &h, sizeof h);

    explicit_bzero(&h, sizeof h);
    return err;
}

static void
log_worker_end(const struct hed_server *s, const struct hed_child *c, int how)
{
    const struct hed_worker_status *line = c->status;
    const unsigned long long messages = atomic_load(&line->messages);
    const unsigned long long launches = atomic_load(&line->launches);
    const uint32_t failed = atomic_load(&line->failed);
    const char *program = line->program[0] ? line->program : "?";
    char end[64];
    char error[40] = "";

    if (c->deserted)
        (void)snprintf(end, sizeof end, "ended after its client");
    else if (c->evicted)
        (void)snprintf(end, sizeof end, "was evicted");
    else if (WIFSIGNALED(how))
        (void)snprintf(end, sizeof end, "was killed by signal %d (%s)", WTERMSIG(how),
                       strsignal(WTERMSIG(how)));
    else if (how == 0)
        (void)snprintf(end, sizeof end, "ended");
    else
        (void)snprintf(end, sizeof end, "ended with status %d", WEXITSTATUS(how));
    if (failed)
        (void)snprintf(error, sizeof error, ", after CUDA error %u", failed);
    /* If the client was refused, its worker has already logged why. One that looked for room and
     * found none comes again soon. */
    if (WIFEXITED(how) && (!line->program[0] || (how == 0 && atomic_load(&line->looks))))
        hed_debug(SERVER, "worker %d %s", (int)c->pid, end);
    else if (how == 0 || s->stopping || c->deserted)
        hed_info(SERVER, "worker %d (%.63s) %s: %llu message%s, %llu launch%s%s", (int)c->pid,
                 program, end, messages, messages == 1 ? "" : "s", launches,
                 launches == 1 ? "" : "es", error);
    else
        hed_warn(SERVER, "worker %d (%.63s) %s: %llu message%s, %llu launch%s%s", (int)c->pid,
                 program, end, messages, messages == 1 ? "" : "s", launches,
                 launches == 1 ? "" : "es", error);
}

static void
reap_child(struct hed_server *s, struct hed_child *c, int how)
{
    const uint32_t place = (uint32_t)(c - s->children);

    hed_lines_end(s, &c->lines);
    if (c->spare)
        hed_spare_ended(s, c, how);
    else
        log_worker_end(s, c, how);
    if (hed_confine_ended(s, place))
        hed_warn(SERVER, "worker %d took more memory than its control group allows", (int)c->pid);
    (void)close(c->control);
    hed_lease_socket_close(s, c);
    hed_offers_forget(s, c);
    hed_ledger_clear(&s->ledger, place);
    hed_guest_forget(c->guest, place);
    hed_status_free(c->status);
    c->kill_ns = 0;
    c->pid = 0;
    if (c->spare)
        s->spare_count--;
    else
        s->child_count--;
}

void
hed_child_reap(struct hed_server *s)
{
    pid_t pid;
    int how;

    while ((pid = waitpid(-1, &how, WNOHANG)) > 0) {
        hed_guests_reaped(s, pid);
        if (pid == s->space)
            s->space = 0;
        for (int i = 0; i < HED_LEDGER_WORKERS; i++) {
            if (s->children[i].pid == pid) {
                reap_child(s, &s->children[i], how);
                break;
            }
        }
    }
}

static struct hed_child *
find_client_worker(struct hed_server *s, uint64_t worker)
{
    for (int i = 0; i < HED_LEDGER_WORKERS; i++) {
        struct hed_child *c = &s->children[i];

        if (c->pid > 0 && !c->spare && (uint64_t)c->pid == worker)
            return c;
    }
    return NULL;
}

bool
hed_child_evict(struct hed_server *s, uint64_t worker)
{
    struct hed_child *c = find_client_worker(s, worker);

    if (c)
        c->evicted = true;
    return c && kill(c->pid, SIGKILL) == 0;
}

bool
hed_child_dismiss(struct hed_server *s, uint64_t worker)
{
    struct hed_child *c = find_client_worker(s, worker);

    if (!c)
        return false;
    /* Nobody is there to be told. */
    if (!c->status || atomic_load_explicit(&c->status->parked_ns, memory_order_relaxed))
        return hed_child_evict(s, worker);
    atomic_store_explicit(&c->status->evicted, 1, memory_order_relaxed);
    c->evicted = true;
    c->kill_ns = hed_now_ns() + DISMISS_MS * HED_NS_PER_MS;
    return true;
}

uint64_t
hed_children_expire(struct hed_server *s, uint64_t now_ns)
{
    uint64_t next = UINT64_MAX;

    for (int i = 0; i < HED_LEDGER_WORKERS; i++) {
        struct hed_child *c = &s->children[i];
        /* The worker ends by itself, and tells its client why, unless the client has taken it
         * over. */
        const uint64_t end =
            c->started_ns + (c->session_ms + (uint64_t)HED_KILL_MS) * HED_NS_PER_MS;

        if (c->pid > 0 && c->kill_ns && now_ns >= c->kill_ns) {
            c->kill_ns = 0;
            (void)kill(c->pid, SIGKILL);
        }
        if (c->pid > 0 && c->kill_ns)
            next = hed_min(next, c->kill_ns);
        if (c->pid <= 0 || c->evicted || !c->session_ms)
            continue;
        if (end > now_ns) {
            next = hed_min(next, end);
            continue;
        }
        hed_warn(SERVER, "worker %d does not end after %u s (--session), so it is killed",
                 (int)c->pid, c->session_ms / 1000);
        (void)hed_child_evict(s, (uint64_t)c->pid);
    }
    return next;
}

void
hed_child_signal(struct hed_server *s, int signal)
{
    for (int i = 0; i < HED_LEDGER_WORKERS; i++) {
        if (s->children[i].pid > 0)
            (void)kill(s->children[i].pid, signal);
    }
}
