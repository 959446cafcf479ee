/* Unix sockets: a path of this machine. The transports shm: and unix: use them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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
#include "base/str.h"
#include "remote/wire/link/link.h"
#include "remote/wire/socket.h"
#include "remote/wire/transport.h"

#define LOCK_TRIES 50 /* of 20 ms, for a server that starts at the same path */

static struct sockaddr_un
name_of_path(const struct hed_address *a)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};

    memcpy(name.sun_path, a->path, sizeof name.sun_path);
    return name;
}

/* ---- the address ----------------------------------------------------------------------------- */

static int
parse_path(const char *text, const char *path, struct hed_address *a, struct hed_why *why)
{
    if (!*path) {
        hed_why_set(why, "%s: the path of the socket is missing", text);
        return HED_EINVAL;
    }
    for (const char *p = path; *p; p++) {
        if ((unsigned char)*p < ' ' || *p == 0x7f) {
            hed_why_set(why, "the path of the socket contains a control character");
            return HED_EINVAL;
        }
    }
    if (!hed_str_copy(a->path, sizeof a->path, path)) {
        hed_why_set(why, "%.40s...: the path of a socket has at most %zu characters", text,
                    sizeof a->path - 1);
        return HED_ELIMIT;
    }
    return 0;
}

static void
print_path(const struct hed_address *a, char *out, size_t size)
{
    (void)snprintf(out, size, "%s", a->path);
}

/* ---- connecting ------------------------------------------------------------------------------ */

/* Returns 0 or errno. A unix socket's connect waits for room in the listener's queue, so it needs a
 * time limit too. */
static int
try_path(const struct hed_address *a, uint64_t end, int *out)
{
    const struct sockaddr_un name = name_of_path(a);
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

static int
connect_path(const struct hed_address *a, uint64_t end, int *fd, struct hed_why *why)
{
    const int e = try_path(a, end, fd);

    if (!e)
        return 0;
    if (e == EACCES)
        hed_why_set(why, "%s (this user may not use the socket: heddle serve --mode, --allow-uid)",
                    strerror(e));
    else if (e == ETIMEDOUT)
        hed_why_set(why, "%s (is heddled stopped?)", strerror(e));
    else
        hed_why_set(why, "%s%s", strerror(e), hed_socket_is_heddled_there(e));
    return e == ETIMEDOUT ? HED_ETIME : hed_err_from_errno(e);
}

/* ---- listening ------------------------------------------------------------------------------- */

/* Two servers that start at one path must not remove each other's socket. The folder stays locked
 * from the check of what is there until this server listens. A process that never releases the lock
 * only delays us. Returns the locked folder, or -1. */
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
        hed_why_set(why, "cannot open the folder %s: %s", folder, strerror(errno));
    for (int i = 0; fd >= 0 && i < LOCK_TRIES && flock(fd, LOCK_EX | LOCK_NB) != 0; i++)
        hed_sleep_ns(20 * 1000000);
    return fd;
}

/* Removes a socket at the path that no process listens on. Anything else there is an error. */
static int
clear_path(const struct hed_address *a, struct hed_why *why)
{
    struct stat st;
    int fd = -1;

    if (lstat(a->path, &st) != 0)
        return errno == ENOENT ? 0 : hed_err_from_errno(errno);
    if (!S_ISSOCK(st.st_mode)) {
        hed_why_set(why, "there is a file that is not a socket; remove it, or use another path");
        return HED_EEXIST;
    }

    const int e = try_path(a, hed_socket_end(1000), &fd);

    if (fd >= 0)
        close(fd);
    if (e != ECONNREFUSED) {
        hed_why_set(why,
                    e == 0 ? "another process already listens there"
                           : "cannot tell whether another process listens there: %s",
                    strerror(e));
        return HED_EEXIST;
    }
    hed_info(WIRE, "%s: replacing a socket that no process listens on", a->path);
    return unlink(a->path) == 0 || errno == ENOENT ? 0 : hed_err_from_errno(errno);
}

/* Nobody can connect before listen(), which comes last. */
int
hed_unix_listen(const struct hed_address *a, int mode, int *out, struct hed_why *why)
{
    const struct sockaddr_un name = name_of_path(a);
    const int folder = lock_folder(a->path, why);

    if (folder < 0)
        return HED_ENOTFOUND;

    int err = clear_path(a, why);
    const int fd = err ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (!err && (fd < 0 || fchmod(fd, (mode_t)mode) != 0 ||
                 bind(fd, (const struct sockaddr *)&name, sizeof name) != 0 ||
                 chmod(a->path, (mode_t)mode) != 0 || listen(fd, HED_SOCKET_BACKLOG) != 0)) {
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

const struct hed_link hed_link_unix = {
    .families = {AF_UNIX},
    .local = true,
    .private = true,
    .parse = parse_path,
    .print = print_path,
    .connect = connect_path,
    .listen = hed_unix_listen,
};
