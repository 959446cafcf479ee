/* Addresses of servers: reading and printing them. Nothing is looked up here.
 *
 * What is read is strict, so that a slip is told here and not by a lookup that fails a minute
 * later; and what is printed reads back as the same address.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "wire/conn.h"
#include "wire/wire.h"

#define TCP "tcp://"
#define NAME_MAX_DNS 253 /* characters of a host's name */

bool
hed_address_is(const char *text)
{
    return strncmp(text, "unix:", 5) == 0 || strncmp(text, "shm:", 4) == 0 ||
           strncmp(text, "tcp:", 4) == 0;
}

static bool
is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
}

static int
parse_path(const char *text, const char *path, struct hed_address *a, struct hed_why *why)
{
    if (!*path) {
        hed_why_set(why, "%s: the path of the socket is missing", text);
        return HED_EINVAL;
    }
    for (const char *p = path; *p; p++) {
        if ((unsigned char)*p < ' ' || *p == 0x7f) {
            hed_why_set(why, "the path of the socket has a control character");
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

/* A name or an IPv4 address: what may stand there, not whether it exists. */
static bool
host_name_fits(const char *host)
{
    const size_t n = strlen(host);

    if (n == 0 || n > NAME_MAX_DNS || host[0] == '-' || host[0] == '.')
        return false;
    for (const char *p = host; *p; p++)
        if (!is_plain(*p) || (p[0] == '.' && p[1] == '.'))
            return false;
    return true;
}

/* An IPv6 address, with or without a zone ("fe80::1%eth0"). */
static bool
host_v6_fits(const char *host)
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
            if (!is_plain(*zone))
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
        hed_why_set(why, "%.300s: '%.40s' is not a port, which is a number up to 65535", text,
                    port);
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
        hed_why_set(why, "%.300s: there is no ']' behind the IPv6 address", text);
        return HED_EINVAL;
    }
    if (!v6 && *rest == ':' && strchr(rest + 1, ':')) {
        hed_why_set(why, "%.300s: an IPv6 address stands in brackets: tcp://[::1]:%d", text,
                    HED_ADDRESS_PORT);
        return HED_EINVAL;
    }
    if (!(v6 ? host_v6_fits(a->host) : host_name_fits(a->host))) {
        hed_why_set(why, "%.300s: '%.100s' is not %s", text, a->host,
                    v6 ? "an IPv6 address" : "the name or address of a host");
        return HED_EINVAL;
    }
    if (!*rest)
        return 0;
    if (*rest != ':' || !rest[1]) {
        hed_why_set(why, "%.300s: expected tcp://HOST:PORT, found '%.40s' behind the host", text,
                    rest);
        return HED_EINVAL;
    }
    return parse_port(text, rest + 1, a, why);
}

int
hed_address_parse(const char *text, struct hed_address *out, struct hed_why *why)
{
    struct hed_address a;
    int err;

    memset(&a, 0, sizeof a);
    if (strncmp(text, "unix:", 5) == 0) {
        a.transport = HED_TRANSPORT_UNIX;
        err = parse_path(text, text + 5, &a, why);
    } else if (strncmp(text, "shm:", 4) == 0) {
        a.transport = HED_TRANSPORT_SHM;
        err = parse_path(text, text + 4, &a, why);
    } else if (strncmp(text, TCP, strlen(TCP)) == 0) {
        a.transport = HED_TRANSPORT_TCP;
        err = parse_host(text, text + strlen(TCP), &a, why);
    } else {
        hed_why_set(why,
                    "'%.200s' is not an address: expected unix:PATH, shm:PATH or tcp://HOST:PORT",
                    text);
        err = HED_EINVAL;
    }
    if (!err)
        *out = a;
    return err;
}

void
hed_address_text(const struct hed_address *a, char *out, size_t size)
{
    const bool v6 = strchr(a->host, ':') != NULL;

    switch (a->transport) {
    case HED_TRANSPORT_SHM:
        (void)snprintf(out, size, "shm:%s", a->path);
        break;
    case HED_TRANSPORT_UNIX:
        (void)snprintf(out, size, "unix:%s", a->path);
        break;
    case HED_TRANSPORT_TCP:
        (void)snprintf(out, size, TCP "%s%s%s:%u", v6 ? "[" : "", a->host, v6 ? "]" : "",
                       (unsigned)a->port);
        break;
    default:
        (void)snprintf(out, size, "?");
        break;
    }
}
