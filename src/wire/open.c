/* How connections begin: connecting, listening, accepting. See conn.h. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "wire/conn.h"
#include "wire/socket.h"
#include "wire/wire.h"

#define BACKLOG 256
#define ADDRESS_TEXT (HED_ADDRESS_HOST + 32)
#define LOCK_TRIES 50 /* of 20 ms, for a server that begins at the same path */

static struct sockaddr_un
unix_name(const struct hed_address *a)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};

    memcpy(name.sun_path, a->path, sizeof name.sun_path);
    return name;
}

static int
make(int fd, bool tcp, struct hed_conn **out)
{
    struct hed_conn *c = calloc(1, sizeof *c);

    if (!c)
        return HED_ENOMEM;
    c->fd = fd;
    c->tcp = tcp;
    *out = c;
    return 0;
}

/* ---- connecting ------------------------------------------------------------------------------ */

/* A unix socket's connect waits for room in the queue of the listener, so it needs an end too. */
static int
connect_unix(const struct hed_address *a, uint64_t end, int *out)
{
    const struct sockaddr_un name = unix_name(a);
    const struct timeval never = {0};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int r;

    if (fd < 0)
        return errno;
    do {
        const uint64_t now = hed_now_ns();
        const uint64_t left = end > now ? end - now : 1000;
        struct timeval t = {.tv_sec = (time_t)(left / HED_NS_PER_S),
                            .tv_usec = (suseconds_t)(left % HED_NS_PER_S / 1000)};

        if (end == UINT64_MAX)
            t = never;
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
        r = connect(fd, (const struct sockaddr *)&name, sizeof name);
    } while (r != 0 && errno == EINTR);
    if (r != 0) {
        const int e = errno == EAGAIN ? ETIMEDOUT : errno;

        close(fd);
        return e;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &never, sizeof never);
    *out = fd;
    return 0;
}

/* With no listener on a port of the range that connects choose from, a connect to one's own machine
 * can meet itself. */
static bool
met_itself(int fd)
{
    struct sockaddr_storage here, there;
    socklen_t here_size = sizeof here;
    socklen_t there_size = sizeof there;

    return getsockname(fd, (struct sockaddr *)&here, &here_size) == 0 &&
           getpeername(fd, (struct sockaddr *)&there, &there_size) == 0 &&
           here_size == there_size && memcmp(&here, &there, here_size) == 0;
}

static int
connect_one(const struct addrinfo *at, uint64_t end, int *out)
{
    const int fd =
        socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol);
    int e = 0;

    if (fd < 0)
        return errno;
    if (connect(fd, at->ai_addr, at->ai_addrlen) != 0)
        e = errno == EINTR ? EINPROGRESS : errno;
    if (e == EINPROGRESS) {
        socklen_t size = sizeof e;

        if (hed_socket_wait(fd, POLLOUT, end, false) != 0)
            e = ETIMEDOUT;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &size) != 0)
            e = errno;
    }
    if (!e && met_itself(fd))
        e = ECONNREFUSED;
    if (!e && fcntl(fd, F_SETFL, 0) != 0)
        e = errno;
    if (!e && hed_socket_tune(fd))
        e = EIO;
    if (e)
        close(fd);
    else
        *out = fd;
    return e;
}

static int
look_up(const struct hed_address *a, bool listening, struct addrinfo **out, struct hed_why *why)
{
    const struct addrinfo want = {
        .ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
        .ai_flags = AI_NUMERICSERV | (listening ? AI_PASSIVE : 0),
    };
    char port[8];

    (void)snprintf(port, sizeof port, "%u", (unsigned)a->port);

    const int r = getaddrinfo(a->host, port, &want, out);

    if (r == 0)
        return 0;
    hed_why_set(why, "%s: %s", a->host, r == EAI_SYSTEM ? strerror(errno) : gai_strerror(r));
    return r == EAI_MEMORY ? HED_ENOMEM : HED_ENOTFOUND;
}

/* What a failure to connect means most of the time. */
static const char *
what_to_do(int e, bool tcp)
{
    switch (e) {
    case ENOENT:
    case ECONNREFUSED:
        return " (is heddled running there? `heddle serve` starts it)";
    case EACCES:
        return tcp ? "" : " (the socket is not for this user: heddle serve --mode, --allow-uid)";
    case ETIMEDOUT:
        return tcp ? " (is the host up, and no firewall between?)" : " (is heddled stopped?)";
    default:
        return "";
    }
}

/* Each address of the host in turn, with its share of the time that is left. */
static int
connect_tcp(const struct hed_address *a, uint64_t end, int *fd, struct hed_why *why)
{
    struct addrinfo *all = NULL;
    size_t left = 0;
    int e = EHOSTUNREACH;
    const int err = look_up(a, false, &all, why);

    if (err)
        return err;
    for (const struct addrinfo *at = all; at; at = at->ai_next)
        left++;
    for (const struct addrinfo *at = all; at && e; at = at->ai_next, left--) {
        const uint64_t now = hed_now_ns();

        e = connect_one(at, end == UINT64_MAX || end <= now ? end : now + (end - now) / left, fd);
    }
    freeaddrinfo(all);
    if (!e)
        return 0;
    hed_why_set(why, "%s%s", strerror(e), what_to_do(e, true));
    return e == ETIMEDOUT ? HED_ETIME : hed_err_from_errno(e);
}

/* Is it clear how a TCP connection is to be secured? */
static int
check_client(const struct hed_address *a, const struct hed_tls *tls, struct hed_why *why)
{
    if (a->port == 0) {
        hed_why_set(why, "nobody can be reached at port 0: give the server's");
        return HED_EINVAL;
    }
    if (tls && tls->insecure && (tls->ca[0] || tls->cert[0] || tls->key[0])) {
        hed_why_set(why, "both TLS files and insecure = yes are set: take one away");
        return HED_EINVAL;
    }
    if (tls && (tls->insecure || tls->ca[0]))
        return 0;
    hed_why_set(why, "TCP needs TLS: set tls_ca, and tls_cert with tls_key or tls_token "
                     "(`heddle cert` makes the files), or insecure = yes on a network you trust");
    return HED_EACCESS;
}

static int
connect_any(const struct hed_address *a, const struct hed_tls *tls, uint64_t end, int *fd,
            struct hed_why *why)
{
    if (a->transport == HED_TRANSPORT_TCP) {
        const int err = check_client(a, tls, why);

        return err ? err : connect_tcp(a, end, fd, why);
    }

    const int e = connect_unix(a, end, fd);

    if (!e)
        return 0;
    hed_why_set(why, "%s%s", strerror(e), what_to_do(e, false));
    return e == ETIMEDOUT ? HED_ETIME : hed_err_from_errno(e);
}

int
hed_conn_open(const struct hed_address *a, const struct hed_tls *tls,
              const struct hed_preface *preface, int timeout_ms, struct hed_conn **out,
              struct hed_why *why)
{
    const uint64_t end = hed_socket_end(timeout_ms);
    const bool tcp = a->transport == HED_TRANSPORT_TCP;
    struct hed_why reason = {""};
    struct hed_conn *c = NULL;
    char text[ADDRESS_TEXT];
    char ready = 0;
    int fd = -1;
    int err = connect_any(a, tls, end, &fd, &reason);

    if (!err && (err = make(fd, tcp, &c)))
        close(fd);
    if (!err && (err = hed_conn_write(c, preface, sizeof *preface)))
        hed_why_set(&reason, "the server hung up at once");
    if (!err && tcp && !tls->insecure)
        err = hed_tls_begin(fd, tls, a->host, end, &c->tls, &reason);
    if (!err && c->tls) {
        /* The peer's refusal comes as an answer to what we sent last: wait for its word. */
        err = hed_tls_ready(c->tls, &ready, end, &reason);
        if (!err && ready != HED_TLS_READY) {
            hed_why_set(&reason, "the server does not speak this protocol");
            err = HED_EFORMAT;
        }
    }
    if (!err) {
        *out = c;
        return 0;
    }
    hed_conn_close(c);
    hed_address_text(a, text, sizeof text);
    hed_why_set(why, "%s: %s", text, reason.text[0] ? reason.text : hed_err_text(err));
    return err;
}

/* ---- listening ------------------------------------------------------------------------------- */

/* Two servers that begin at one path take turns: the folder is locked from the look at what is
 * there until somebody listens. Whoever keeps the lock for himself delays us, no more. */
static int
lock_folder(const char *path, struct hed_why *why)
{
    char folder[sizeof((struct hed_address *)0)->path];
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) : 0;

    (void)snprintf(folder, sizeof folder, "%.*s", (int)n, path);
    if (n == 0)
        (void)snprintf(folder, sizeof folder, "%s", slash ? "/" : ".");

    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        hed_why_set(why, "%s: %s", folder, strerror(errno));
    for (int i = 0; fd >= 0 && i < LOCK_TRIES && flock(fd, LOCK_EX | LOCK_NB) != 0; i++)
        hed_sleep_ns(20 * 1000000);
    return fd;
}

/* What is at the path already: nothing, or a socket that nobody listens at, which goes. */
static int
clear_path(const struct hed_address *a, struct hed_why *why)
{
    struct stat st;
    int fd = -1;

    if (lstat(a->path, &st) != 0)
        return errno == ENOENT ? 0 : hed_err_from_errno(errno);
    if (!S_ISSOCK(st.st_mode)) {
        hed_why_set(why, "there is a file of another kind");
        return HED_EEXIST;
    }

    const int e = connect_unix(a, hed_socket_end(1000), &fd);

    if (fd >= 0)
        close(fd);
    if (e != ECONNREFUSED) {
        hed_why_set(why, e == 0 ? "somebody listens there already" : "cannot tell who is there: %s",
                    strerror(e));
        return HED_EEXIST;
    }
    hed_info(WIRE, "%s: a socket nobody listens at is replaced", a->path);
    return unlink(a->path) == 0 || errno == ENOENT ? 0 : hed_err_from_errno(errno);
}

/* Nobody can connect before listen(), which comes last. */
static int
listen_unix(const struct hed_address *a, int mode, int *out, struct hed_why *why)
{
    const struct sockaddr_un name = unix_name(a);
    const int folder = lock_folder(a->path, why);

    if (folder < 0)
        return HED_ENOTFOUND;

    int err = clear_path(a, why);
    const int fd = err ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (!err && (fd < 0 || fchmod(fd, (mode_t)mode) != 0 ||
                 bind(fd, (const struct sockaddr *)&name, sizeof name) != 0 ||
                 chmod(a->path, (mode_t)mode) != 0 || listen(fd, BACKLOG) != 0)) {
        err = hed_err_from_errno(errno);
        hed_why_set(why, "%s", strerror(errno));
        if (fd >= 0)
            close(fd);
    }
    close(folder);
    if (!err)
        *out = fd;
    return err;
}

static int
listen_tcp(const struct hed_address *a, int *out, struct hed_why *why)
{
    struct addrinfo *all = NULL;
    const int on = 1;
    int e = EADDRNOTAVAIL;
    const int err = look_up(a, true, &all, why);

    if (err)
        return err;
    for (const struct addrinfo *at = all; at && e; at = at->ai_next) {
        const int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);

        if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
            (at->ai_family != AF_INET6 ||
             setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) == 0) &&
            bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) {
            *out = fd;
            e = 0;
        } else {
            e = errno;
            if (fd >= 0)
                close(fd);
        }
    }
    freeaddrinfo(all);
    if (!e)
        return 0;
    hed_why_set(why, "%s", strerror(e));
    return hed_err_from_errno(e);
}

int
hed_conn_listen(const struct hed_address *a, int mode, int *fd, struct hed_why *why)
{
    struct hed_why reason = {""};
    char text[ADDRESS_TEXT];
    const int err = a->transport == HED_TRANSPORT_TCP ? listen_tcp(a, fd, &reason)
                                                      : listen_unix(a, mode, fd, &reason);

    if (err) {
        hed_address_text(a, text, sizeof text);
        hed_why_set(why, "%s: %s", text, reason.text[0] ? reason.text : hed_err_text(err));
    }
    return err;
}

/* ---- accepting ------------------------------------------------------------------------------- */

static int
check_server(const struct hed_tls *tls, struct hed_why *why)
{
    if (tls && (tls->insecure || tls->cert[0]))
        return 0;
    hed_why_set(why, "a client over TCP is refused: there is no certificate to show it");
    return HED_EACCESS;
}

int
hed_conn_accept(int fd, const struct hed_tls *tls, int timeout_ms, struct hed_conn **out,
                struct hed_why *why)
{
    const uint64_t end = hed_socket_end(timeout_ms);
    const char ready = HED_TLS_READY;
    struct hed_conn *c = NULL;
    int family = 0;
    socklen_t size = sizeof family;

    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) != 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || fcntl(fd, F_SETFL, 0) != 0) {
        hed_why_set(why, "%s", strerror(errno));
        if (fd >= 0)
            close(fd);
        return HED_EINVAL;
    }

    const bool tcp = family != AF_UNIX;
    int err = make(fd, tcp, &c);

    if (err) {
        close(fd);
        hed_why_set(why, "%s", hed_err_text(err));
        return err;
    }
    if (tcp)
        err = check_server(tls, why);
    if (!err && tcp && (err = hed_socket_tune(fd)))
        hed_why_set(why, "the client hung up");
    if (!err && tcp && !tls->insecure)
        err = hed_tls_begin(fd, tls, NULL, end, &c->tls, why);
    if (!err && c->tls && (err = hed_tls_write(c->tls, &ready, 1)))
        hed_why_set(why, "the client hung up");
    if (err)
        hed_conn_close(c);
    else
        *out = c;
    return err;
}
