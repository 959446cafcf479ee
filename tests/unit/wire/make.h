/* What tests of connections share: a folder of their own, pairs of connections, and a kernel that
 * misbehaves on request.
 */
#pragma once

#include "harness/unit.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "remote/wire/conn.h"
#include "remote/wire/link/link.h"
#include "remote/wire/socket.h"
#include "remote/wire/transport.h"
#include "remote/wire/wire.h"

static const struct hed_tls insecure = {.insecure = true};
static const struct hed_preface preface = {.magic = HED_PREFACE_MAGIC, .kind = HED_PREFACE_NEW};

/* Paths of sockets are short, so they are relative to a folder of the test's own. */
static inline void
enter_scratch(void)
{
    char folder[] = "/tmp/heddle-wire-XXXXXX";
    const char *scratch = getenv("HED_SCRATCH");

    assert_int_equal(chdir(scratch ? scratch : mkdtemp(folder)), 0);
}

static inline struct hed_address
address(const char *text)
{
    struct hed_address a;
    struct hed_why why = {""};

    if (hed_address_parse(text, &a, &why))
        fail_msg("%s", why.text);
    return a;
}

/* Listens. With port 0, the address gets the port that the kernel chose. */
static inline int
listen_at(struct hed_address *a)
{
    struct hed_why why = {""};
    struct sockaddr_storage name;
    socklen_t size = sizeof name;
    int fd = -1;

    if (hed_conn_listen(a, 0600, &fd, &why))
        fail_msg("%s", why.text);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &size), 0);
    if (name.ss_family == AF_INET)
        a->port = ntohs(((struct sockaddr_in *)&name)->sin_port);
    else if (name.ss_family == AF_INET6)
        a->port = ntohs(((struct sockaddr_in6 *)&name)->sin6_port);
    return fd;
}

/* What the listener does: accepts, and reads the preface. */
static inline int
accept_at(int listener)
{
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    struct hed_preface p;

    assert_true(fd >= 0);
    assert_int_equal(recv(fd, &p, sizeof p, MSG_WAITALL), sizeof p);
    assert_memory_equal(&p, &preface, sizeof p);
    return fd;
}

struct pair {
    struct hed_conn *client, *server;
};

static inline struct pair
make_pair(const char *text)
{
    struct hed_address a = address(text);
    const int listener = listen_at(&a);
    struct hed_why why = {""};
    struct pair p = {NULL, NULL};

    if (hed_conn_open(&a, &insecure, &preface, PATIENCE_MS, &p.client, &why) ||
        hed_conn_accept(accept_at(listener), &insecure, PATIENCE_MS, &p.server, &why))
        fail_msg("%s", why.text);
    close(listener);
    if (a.transport->link->local)
        unlink(a.path);
    return p;
}

static inline void
close_pair(struct pair p)
{
    hed_conn_close(p.client);
    hed_conn_close(p.server);
}

/* ---- a kernel that misbehaves ---------------------------------------------------------------- */

static struct {
    size_t most;            /* bytes that a call moves; 0 for all */
    unsigned interrupt;     /* one of so many calls fails with EINTR; 0 for none */
    uint64_t delay_ns;      /* before each call */
    _Atomic uint64_t left;  /* bytes until the connection is cut, if `cut` */
    bool cut;               /* after `left` bytes in either direction */
    _Atomic unsigned calls; /* calls made in all */
} bad;

/* True if the call fails, with errno. Otherwise *n is how much it may move. */
static inline bool
bad_call(size_t *n)
{
    const unsigned call = atomic_fetch_add(&bad.calls, 1) + 1;

    if (bad.delay_ns)
        hed_sleep_ns(bad.delay_ns);
    if (bad.interrupt && call % bad.interrupt == 0) {
        errno = EINTR;
        return true;
    }
    if (bad.most && *n > bad.most)
        *n = bad.most;
    if (bad.cut && *n > atomic_load(&bad.left))
        *n = atomic_load(&bad.left);
    if (bad.cut && *n == 0) {
        errno = ECONNRESET;
        return true;
    }
    return false;
}

static inline ssize_t
bad_recvmsg(int fd, struct msghdr *m, int flags)
{
    struct iovec part = m->msg_iov[0];
    struct msghdr one = *m;

    if (bad_call(&part.iov_len))
        return -1;
    one.msg_iov = &part;
    one.msg_iovlen = 1;

    const ssize_t got = recvmsg(fd, &one, flags);

    m->msg_flags = one.msg_flags;
    m->msg_controllen = one.msg_controllen;
    if (bad.cut && got > 0)
        atomic_fetch_sub(&bad.left, (uint64_t)got);
    return got;
}

static inline ssize_t
bad_sendmsg(int fd, const struct msghdr *m, int flags)
{
    struct iovec part = m->msg_iov[0];
    struct msghdr one = *m;

    if (bad_call(&part.iov_len))
        return -1;
    one.msg_iov = &part;
    one.msg_iovlen = 1;

    const ssize_t sent = sendmsg(fd, &one, flags);

    if (bad.cut && sent > 0)
        atomic_fetch_sub(&bad.left, (uint64_t)sent);
    return sent;
}

static const struct hed_conn_kernel bad_kernel = {bad_recvmsg, bad_sendmsg};

static inline int
good_again(void **state)
{
    (void)state;
    hed_conn_kernel(NULL);
    memset(&bad, 0, sizeof bad);
    return 0;
}
