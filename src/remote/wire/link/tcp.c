/* TCP: a host and a port. Connections are secured by TLS unless the user has turned it off.
 *
 * A peer whose machine is gone sends nothing. While no data is under way, the kernel's keep-alive
 * notices it. While data is under way, keep-alive rests and the kernel would retry for a quarter of
 * an hour. TCP_USER_TIMEOUT would end that, but it also ends connections to a healthy peer that
 * does not read for a while, such as a worker whose stream is busy. So threads that wait check once
 * a second what the kernel knows of the peer (tcp_is_silent).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "remote/wire/conn.h"
#include "remote/wire/link/link.h"
#include "remote/wire/socket.h"
#include "remote/wire/transport.h"

#define NAME_MAX_DNS 253 /* characters of a host's name */

/* Keep-alive: IDLE + PROBES * INTERVAL is HED_CONN_LOST_MS. */
#define IDLE_S 4
#define INTERVAL_S 2
#define PROBES 3

/* A peer is silent if it did not answer this many retries, in addition to HED_CONN_LOST_MS. */
#define RETRIES 3

/* ---- the address ----------------------------------------------------------------------------- */

static bool
is_host_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
}

/* Can it be a name or an IPv4 address? Whether the host exists is another question. */
static bool
is_host_name(const char *host)
{
    const size_t n = strlen(host);

    if (n == 0 || n > NAME_MAX_DNS || host[0] == '-' || host[0] == '.')
        return false;
    for (const char *p = host; *p; p++)
        if (!is_host_character(*p) || (p[0] == '.' && p[1] == '.'))
            return false;
    return true;
}

/* An IPv6 address, with or without a zone ("fe80::1%eth0"). */
static bool
is_ipv6_address(const char *host)
{
    char number[INET6_ADDRSTRLEN];
    struct in6_addr at;
    const size_t n = strcspn(host, "%");

    if (n >= sizeof number)
        return false;
    memcpy(number, host, n);
    number[n] = '\0';
    if (host[n] == '%') {
        const char *zone = host + n + 1;

        if (!*zone || strlen(zone) > 15)
            return false;
        for (; *zone; zone++)
            if (!is_host_character(*zone))
                return false;
    }
    return inet_pton(AF_INET6, number, &at) == 1;
}

static int
parse_port(const char *text, const char *port, struct hed_address *a, struct hed_why *why)
{
    uint64_t n = 0;

    if (strlen(port) > 5 || strspn(port, "0123456789") != strlen(port) ||
        hed_parse_u64(port, &n) != 0 || n > UINT16_MAX) {
        hed_why_set(why, "%.300s: '%.40s' is not a port: use a number up to 65535", text, port);
        return HED_EINVAL;
    }
    a->port = (uint16_t)n;
    return 0;
}

/* HOST, HOST:PORT, [V6], [V6]:PORT. */
static int
parse_host(const char *text, const char *host, struct hed_address *a, struct hed_why *why)
{
    const bool v6 = *host == '[';
    const char *from = host + v6;
    const char *end = from + strcspn(from, v6 ? "]" : ":");
    const size_t n = (size_t)(end - from);
    const char *rest = end + (v6 && *end == ']');

    a->port = HED_ADDRESS_PORT;
    if (n >= sizeof a->host) {
        hed_why_set(why, "%.40s...: the name of the host is too long", text);
        return HED_ELIMIT;
    }
    memcpy(a->host, from, n);
    a->host[n] = '\0';
    if (v6 && *end != ']') {
        hed_why_set(why, "%.300s: the ']' after the IPv6 address is missing", text);
        return HED_EINVAL;
    }
    if (!v6 && *rest == ':' && strchr(rest + 1, ':')) {
        hed_why_set(why, "%.300s: write an IPv6 address in brackets: tcp://[::1]:%d", text,
                    HED_ADDRESS_PORT);
        return HED_EINVAL;
    }
    if (!(v6 ? is_ipv6_address(a->host) : is_host_name(a->host))) {
        hed_why_set(why, "%.300s: '%.100s' is not %s", text, a->host,
                    v6 ? "an IPv6 address" : "the name or address of a host");
        return HED_EINVAL;
    }
    if (!*rest)
        return 0;
    if (*rest != ':' || !rest[1]) {
        hed_why_set(why, "%.300s: expected tcp://HOST:PORT, found '%.40s' after the host", text,
                    rest);
        return HED_EINVAL;
    }
    return parse_port(text, rest + 1, a, why);
}

static void
print_host(const struct hed_address *a, char *out, size_t size)
{
    const bool v6 = strchr(a->host, ':') != NULL;

    (void)snprintf(out, size, "%s%s%s:%u", v6 ? "[" : "", a->host, v6 ? "]" : "",
                   (unsigned)a->port);
}

/* ---- connecting ------------------------------------------------------------------------------ */

/* If no process listens on a port of the range from which the kernel chooses, a connect to this
 * machine can meet itself. */
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
set_option(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof value) == 0 ? 0 : -1;
}

/* Small messages go out at once, and a silent peer is noticed. */
static int
tune_tcp(int fd)
{
    if (set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1) ||
        set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1) ||
        set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, IDLE_S) ||
        set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, INTERVAL_S) ||
        set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, PROBES))
        return hed_err_from_errno(errno);
    return hed_socket_looks(fd);
}

/* Returns 0 or errno. */
static int
try_host(const struct addrinfo *at, uint64_t end, int *out)
{
    const int fd =
        socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol);
    int e = 0;

    if (fd < 0)
        return errno;
    e = hed_socket_connect(fd, at->ai_addr, at->ai_addrlen, end);
    if (!e && met_itself(fd))
        e = ECONNREFUSED;
    if (!e && fcntl(fd, F_SETFL, 0) != 0)
        e = errno;
    if (!e && tune_tcp(fd))
        e = EIO;
    if (e)
        close(fd);
    else
        *out = fd;
    return e;
}

static int
look_up_host(const struct hed_address *a, bool listening, struct addrinfo **out,
             struct hed_why *why)
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
    hed_why_set(why, "cannot look up %s: %s", a->host,
                r == EAI_SYSTEM ? strerror(errno) : gai_strerror(r));
    return r == EAI_MEMORY ? HED_ENOMEM : HED_ENOTFOUND;
}

/* Tries each address of the host, with its share of the time that is left. */
static int
connect_host(const struct hed_address *a, uint64_t end, int *fd, struct hed_why *why)
{
    struct addrinfo *all = NULL;
    size_t left = 0;
    int e = EHOSTUNREACH;

    if (a->port == 0) {
        hed_why_set(why, "port 0 is only for listening: give the server's port");
        return HED_EINVAL;
    }

    const int err = look_up_host(a, false, &all, why);

    if (err)
        return err;
    for (const struct addrinfo *at = all; at; at = at->ai_next)
        left++;
    for (const struct addrinfo *at = all; at && e; at = at->ai_next, left--) {
        const uint64_t now = hed_now_ns();

        e = try_host(at, end == UINT64_MAX || end <= now ? end : now + (end - now) / left, fd);
    }
    freeaddrinfo(all);
    if (!e)
        return 0;
    hed_why_set(why, "%s%s", strerror(e),
                e == ETIMEDOUT ? " (is the host up, and does no firewall block the port?)"
                               : hed_socket_is_heddled_there(e));
    return e == ETIMEDOUT ? HED_ETIME : hed_err_from_errno(e);
}

static bool
tcp_is_silent(int fd)
{
    struct tcp_info info;
    socklen_t size = sizeof info;

    memset(&info, 0, sizeof info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
        return false;
    /* Retries that were answered count from 0 again: a peer without room is not silent. */
    return info.tcpi_last_ack_recv >= HED_CONN_LOST_MS &&
           ((info.tcpi_unacked > 0 && info.tcpi_retransmits >= RETRIES) ||
            info.tcpi_probes >= RETRIES);
}

/* ---- listening ------------------------------------------------------------------------------- */

static int
listen_host(const struct hed_address *a, int mode, int *out, struct hed_why *why)
{
    struct addrinfo *all = NULL;
    const int on = 1;
    int e = EADDRNOTAVAIL;
    const int err = look_up_host(a, true, &all, why);

    (void)mode;
    if (err)
        return err;
    for (const struct addrinfo *at = all; at && e; at = at->ai_next) {
        const int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);

        if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
            (at->ai_family != AF_INET6 ||
             setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) == 0) &&
            bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, HED_SOCKET_BACKLOG) == 0) {
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

/* The port that the kernel chose, where the address left it open. */
static void
note_port(int listening, struct hed_address *a)
{
    struct sockaddr_storage at;
    socklen_t size = sizeof at;

    if (getsockname(listening, (struct sockaddr *)&at, &size) == 0)
        a->port = ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
                                                 : ((struct sockaddr_in *)&at)->sin_port);
}

static bool
is_loopback(int listening)
{
    struct sockaddr_storage at;
    socklen_t size = sizeof at;

    if (getsockname(listening, (struct sockaddr *)&at, &size) != 0)
        return false;
    if (at.ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)&at)->sin6_addr);
    return ntohl(((struct sockaddr_in *)&at)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

static void
name_host(const struct sockaddr_storage *at, char *out, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "?";

    if (at->ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)at;

        (void)inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        (void)snprintf(out, size, "[%s]:%u", host, ntohs(v6->sin6_port));
    } else {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)at;

        (void)inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        (void)snprintf(out, size, "%s:%u", host, ntohs(v4->sin_port));
    }
}

const struct hed_link hed_link_tcp = {
    .families = {AF_INET, AF_INET6},
    .parse = parse_host,
    .print = print_host,
    .connect = connect_host,
    .listen = listen_host,
    .note_address = note_port,
    .is_loopback = is_loopback,
    .name_peer = name_host,
    .tune = tune_tcp,
    .is_silent = tcp_is_silent,
};
