/* What the files of connections share: the connection itself, and the kernel's calls.
 *
 * Every byte of a connection passes through the two calls of struct hed_conn_kernel. Tests replace
 * them to produce short reads and writes, signals, delays and cut lines. Not for other rooms.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

struct hed_conn_state;
struct hed_conn_who;
struct hed_link;
struct hed_tls;
struct hed_tls_end;
struct hed_why;
struct hed_window;

struct hed_conn {
    int fd;
    const struct hed_link *link;
    int patience;                    /* seconds in which nothing may arrive; 0 for any number */
    struct hed_tls_end *tls;         /* NULL without TLS */
    const struct hed_window *window; /* as hed_conn_set_window() said; or NULL */
};

/* For tests: called instead of recvmsg(2) and sendmsg(2), with their results and errno. NULL
 * restores the kernel's own. Set it while no connection is in use. */
struct hed_conn_kernel {
    ssize_t (*recvmsg)(int fd, struct msghdr *m, int flags);
    ssize_t (*sendmsg)(int fd, const struct msghdr *m, int flags);
};
void hed_conn_kernel(const struct hed_conn_kernel *k);

/* One call each, never SIGPIPE. They return -1 and set errno; callers handle EINTR. */
ssize_t hed_socket_recv(int fd, void *p, size_t n, int flags);
ssize_t hed_socket_recvmsg(int fd, struct msghdr *m, int flags);
ssize_t hed_socket_sendmsg(int fd, const struct msghdr *m, int flags);

/* When a timeout ends, as a time of hed_now_ns(); UINT64_MAX for never. */
uint64_t hed_socket_end(int timeout_ms);

/* Waits for POLLIN or POLLOUT until `end`. Returns 0, HED_ETIME, or HED_EIO for a peer that is
 * silent. Other events of poll are left to the next read or write. `link` is NULL for a socket that
 * is connecting. */
int hed_socket_wait(int fd, short events, uint64_t end, const struct hed_link *link);

/* Connects a socket that does not block, and waits for it until `end`. Returns 0 or errno. */
int hed_socket_connect(int fd, const struct sockaddr *at, socklen_t size, uint64_t end);

/* Makes blocking calls return with EAGAIN once a second (HED_SOCKET_LOOK_MS), for a check. */
#define HED_SOCKET_LOOK_MS 1000
int hed_socket_looks(int fd);

#define HED_SOCKET_BACKLOG 256 /* of listening sockets */

/* For links: a hint about an errno of connect(), to be appended to its text; "" for no hint. */
const char *hed_socket_is_heddled_there(int error);

/* ---- TLS over a connected socket: tls/, of which none.c is for builds without OpenSSL -------- */

/* Does the handshake. `host` is the server that the client expects; NULL on the server's side. A
 * client also reads the server's first byte, which tells it that it was accepted. A server's end is
 * `exact`, see hed_tls_resume(). */
int hed_tls_begin(int fd, const struct hed_link *link, const struct hed_tls *tls, const char *host,
                  uint64_t end, struct hed_tls_end **out, struct hed_why *why);
/* Carries on where a handshake or another process has stopped. If `exact`, nothing is read from the
 * socket before it is asked for, so that the connection can go on elsewhere. */
int hed_tls_resume(int fd, const struct hed_link *link, const struct hed_conn_state *s, bool exact,
                   struct hed_tls_end **out);
/* HED_ESTATE if something has arrived that was not read. Afterwards only hed_tls_close() is
 * allowed, which says nothing to the peer. */
int hed_tls_suspend(struct hed_tls_end *t, struct hed_conn_state *out);
/* Reads at least one byte, or returns HED_EIO or HED_ETIME. */
ssize_t hed_tls_read(struct hed_tls_end *t, void *p, size_t n, uint64_t end);
int hed_tls_write(struct hed_tls_end *t, const void *p, size_t n);
const struct hed_conn_who *hed_tls_who(const struct hed_tls_end *t);
/* With `bye` the peer is told. Otherwise, in the child of a fork, nothing is sent and nothing
 * freed. */
void hed_tls_close(struct hed_tls_end *t, bool bye);
