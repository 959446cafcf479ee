/* The listener's loop, its signals, its start and its end. See listener.h.
 *
 *   serving ──TERM, INT──> stopping: no new connections; clients have --grace to finish
 *                              │ time, or another signal
 *                              └──> SIGTERM to the workers ── HED_KILL_MS ──> SIGKILL
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/number.h"
#include "remote/server/listener/listener.h"

#define EVENTS 64
#define QUIET_RATE 20 /* log lines about refusals per second */
#define MS UINT64_C(1000000)

/* ---- signals --------------------------------------------------------------------------------- */

static int
open_signals(struct hed_server *s)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = &s->signal_source};
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    s->signal_source.kind = HED_SOURCE_SIGNALS;
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return -1;
    s->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return s->signals < 0 ? -1 : epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->signals, &e);
}

void
hed_server_stop(struct hed_server *s, const char *why)
{
    if (!s->stopping) {
        s->stopping = true;
        s->stop_ns = hed_now_ns() + s->options->grace_ms * MS;
        if (s->child_count)
            hed_info(SERVER, "%s: stopping; %u client%s %u s to finish", why, s->child_count,
                     s->child_count == 1 ? " has" : "s have", s->options->grace_ms / 1000);
        else
            hed_info(SERVER, "%s: stopping", why);
        hed_listen_close(s);
        hed_peers_close(s);
        (void)hed_spares_end(s, 0);
        return;
    }
    if (s->child_count)
        hed_warn(SERVER, "%s: ending %u worker%s", why, s->child_count,
                 s->child_count == 1 ? "" : "s");
    hed_child_signal(s, s->killed ? SIGKILL : SIGTERM);
    s->killed = true;
    s->stop_ns = hed_now_ns() + HED_KILL_MS * MS;
}

static void
take_signals(struct hed_server *s)
{
    struct signalfd_siginfo info;

    while (read(s->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
            hed_server_stop(s, info.ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT");
        else if (info.ssi_signo == SIGHUP)
            hed_server_reload(s);
    }
    /* Always reap, because one SIGCHLD may stand for many. */
    hed_child_reap(s);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static int
next_timeout(struct hed_server *s)
{
    const uint64_t now = hed_now_ns();
    uint64_t next = hed_min(hed_peers_sweep(s, now), hed_children_expire(s, now));

    next = hed_min(next, hed_lines_resume(s, now));
    next = hed_min(next, hed_pressure_look(s, now));
    next = hed_min(next, hed_space_look(s, now));
    next = hed_min(next, hed_parked_look(s, now));
    next = hed_min(next, hed_spares_look(s, now));
    if (hed_guests_clear(s))
        next = now;
    if (s->deaf && s->deaf_until_ns < next)
        next = s->deaf_until_ns;
    if (s->stopping && s->stop_ns < next)
        next = s->stop_ns;
    if (next == UINT64_MAX)
        return -1;
    /* Rounded up, so that the time has passed when the wait ends. */
    return next <= now ? 0 : (int)hed_divide_up(next - now, MS);
}

static void
run_loop(struct hed_server *s)
{
    struct epoll_event events[EVENTS];

    while (!s->stopping || s->child_count || s->spare_count) {
        const int n = epoll_wait(s->epoll, events, EVENTS, next_timeout(s));

        for (int i = 0; i < n; i++) {
            struct hed_source *source = events[i].data.ptr;

            if (source->kind == HED_SOURCE_SIGNALS)
                take_signals(s);
            else if (source->kind == HED_SOURCE_LISTENER && !s->stopping)
                hed_listen_accept(s, (struct hed_listener *)source);
            else if (source->kind == HED_SOURCE_PEER)
                hed_peer_ready(s, (struct hed_peer *)source);
            else if (source->kind == HED_SOURCE_LEASE_SOCKET)
                hed_lease_socket_ready(s, (struct hed_child *)source);
            else if (source->kind == HED_SOURCE_LINES)
                hed_lines_ready(s, (struct hed_lines *)source);
            else if (source->kind == HED_SOURCE_PROBE)
                hed_probe_ready(s);
            else if (source->kind == HED_SOURCE_GUEST)
                hed_guest_ready(s, (struct hed_guest *)source);
            else if (source->kind == HED_SOURCE_KEEPER)
                hed_keeper_ready(s);
        }
        if (s->deaf && hed_now_ns() >= s->deaf_until_ns)
            hed_listen_pause(s, false);
        if (s->stopping && hed_now_ns() >= s->stop_ns)
            hed_server_stop(s, "time is up");
    }
}

/* ---- beginning ------------------------------------------------------------------------------- */

/* Many clients may connect, and each needs a connection, a control socket and a few channels. */
static void
raise_limits(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &r);
    }
}

/* Creates a folder and those above it. Without it, clients send their images each time, and their
 * kernels are compiled each time. */
static const char *
make_folders(const char *path)
{
    char part[PATH_MAX];
    int error = 0;

    if (!path[0])
        return path;
    for (const char *at = path + 1; !error; at++) {
        if (*at && *at != '/')
            continue;
        (void)snprintf(part, sizeof part, "%.*s", (int)(at - path), path);
        if (mkdir(part, 0700) != 0 && errno != EEXIST && errno != EISDIR)
            error = errno;
        if (!*at)
            break;
    }
    if (!error)
        return path;
    hed_warn(SERVER, "cannot create the folder %s: %s; nothing is stored there", path,
             strerror(error));
    return "";
}

/* Tells systemd, if it asked for that, that the server accepts connections. */
static void
notify_ready(void)
{
    static const char text[] = "READY=1\nSTATUS=Serving";
    const char *path = secure_getenv("NOTIFY_SOCKET");
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const size_t n = path ? strlen(path) : 0;

    if (n < 2 || n >= sizeof at.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(at.sun_path, path, n);
    if (at.sun_path[0] == '@')
        at.sun_path[0] = '\0';

    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return;
    if (sendto(fd, text, sizeof text - 1, MSG_NOSIGNAL, (const struct sockaddr *)&at,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0)
        hed_warn(SERVER, "cannot notify systemd: %m");
    (void)close(fd);
}

void
hed_server_ready(const struct hed_server *s)
{
    hed_info(SERVER, "heddle " HED_VERSION " serves --gpu %s", s->options->gpu);
    notify_ready();
}

static const char *
limit_text(uint64_t bytes, char out[HED_SIZE_TEXT])
{
    return bytes ? hed_size_text(bytes, out) : "no limit";
}

static void
say_memory(const struct hed_server *s)
{
    const struct hed_server_options *o = s->options;
    char total[HED_SIZE_TEXT], device[HED_SIZE_TEXT], host[HED_SIZE_TEXT], own[HED_SIZE_TEXT];

    hed_info(SERVER,
             "memory of this machine for all workers: %s (--total-memory); for each client: "
             "devices %s (--memory), pinned %s (--host-memory), private %s (--worker-memory)",
             limit_text(o->total_memory, total),
             o->memory ? hed_size_text(o->memory, device) : "as they have",
             limit_text(o->host_memory, host), limit_text(s->sandbox.memory, own));
}

static int
start_serving(struct hed_server *s, struct hed_why *why)
{
    raise_limits();
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (s->epoll < 0 || open_signals(s) != 0 || hed_probe_start(s) != 0 ||
        getrandom(&s->origin_seed, sizeof s->origin_seed, 0) != (ssize_t)sizeof s->origin_seed) {
        hed_why_set(why, "cannot start the server: %m");
        return HED_ENOMEM;
    }
    if (hed_notice_create(&s->ledger.notice, &s->notice) != 0)
        hed_warn(SERVER, "cannot create the page that notifies workers, so they ask more often");
    s->started_ns = hed_now_ns();
    hed_bucket_init(&s->rate, s->options->rate, s->started_ns);
    hed_bucket_init(&s->quiet, QUIET_RATE, s->started_ns);
    s->images = make_folders(s->options->images);
    s->kernels = "";

    int err = hed_confine_begin(s, why);

    if (err)
        return err;
    s->ledger.total[HED_LEASE_SOCKET_HOST] = s->options->total_memory;
    say_memory(s);
    if (s->sandbox.steps)
        s->kernels = make_folders(s->plan.cache);
    hed_spares_begin(s);
    err = hed_keeper_wanted(s->options) ? hed_keeper_prepare(s, s->options, why) : 0;
    hed_keeper_replace(s);
    return err ? err : hed_listen_open(s, why);
}

int
hed_server_run(const struct hed_server_options *o, int count, char **words, struct hed_why *why)
{
    static struct hed_server server; /* static because it is large; there is only one */
    struct hed_server *s = &server;

    *s = (struct hed_server){.options = &s->own,
                             .own = *o,
                             .words = words,
                             .word_count = count,
                             .epoll = -1,
                             .signals = -1,
                             .probe = -1,
                             .keeper = -1,
                             .next_keeper = -1,
                             .notice = -1};

    const int err = start_serving(s, why);

    if (!err) {
        run_loop(s);
        hed_info(SERVER, "stopped after %llu client%s", (unsigned long long)s->served,
                 s->served == 1 ? "" : "s");
    }
    hed_listen_close(s);
    hed_peers_close(s);
    hed_guests_close(s);
    hed_notice_free(s->ledger.notice, s->notice);
    hed_keeper_close(s);
    if (s->signals >= 0)
        (void)close(s->signals);
    if (s->epoll >= 0)
        (void)close(s->epoll);
    if (s->probe >= 0)
        (void)close(s->probe);
    if (!err && s->useless) {
        hed_why_set(why, "no client could be served: the GPU cannot be used; the log says why");
        return HED_ENOTFOUND;
    }
    return err;
}
