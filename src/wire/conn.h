/* Connections: bytes in order, between processes. Unix sockets, TCP, TLS over TCP.
 *
 * Functions return 0 or HED_E...: HED_EIO for a peer that is gone, HED_ETIME where a time ran
 * out. A connection is used by one reader and one writer at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct hed_conn;
struct hed_why;

/* "unix:PATH", "shm:PATH", "tcp://HOST:PORT", "tcp://[V6]:PORT"; PORT may be left out (7717). Port
 * 0 is for listening only: any free one. */
#define HED_ADDRESS_PORT 7717
#define HED_ADDRESS_HOST 256
struct hed_address {
    uint32_t transport;          /* enum hed_transport */
    char path[108];              /* unix, shm */
    char host[HED_ADDRESS_HOST]; /* tcp */
    uint16_t port;
};
int hed_address_parse(const char *text, struct hed_address *out, struct hed_why *why);
bool hed_address_is(const char *text); /* does it begin like one? */
void hed_address_text(const struct hed_address *a, char *out, size_t size);

/* How TCP is secured. Empty paths: none. Files are PEM.
 *
 * A client needs ca, by which the server is known, and either cert and key or a token. A server
 * needs cert and key, and either ca, by which clients are known, or a token, or both. */
struct hed_tls {
    char ca[1024], cert[1024], key[1024];
    bool insecure; /* no TLS at all: asked for, and logged */
    bool token;    /* server: clients without a certificate may come; their hello has the token */
};
bool hed_tls_built(void); /* was OpenSSL there? */

/* Client: connects and sends the preface; TLS is begun after it. timeout_ms for all of it but for
 * looking up a name, which takes what the system's resolver takes. TCP without tls->ca is refused
 * unless tls->insecure says so. The server's first byte under TLS is HED_TLS_READY; it is taken
 * here, so that a client whose certificate the server refuses is told by this function. */
#define HED_TLS_READY 'R'
struct hed_preface;
int hed_conn_open(const struct hed_address *a, const struct hed_tls *tls,
                  const struct hed_preface *preface, int timeout_ms, struct hed_conn **out,
                  struct hed_why *why);

/* Server: listening; accepting gives a bare socket. A unix socket's file gets `mode`. */
int hed_conn_listen(const struct hed_address *a, int mode, int *fd, struct hed_why *why);

/* Server: a connection over an accepted socket (the preface has been read). The handshake is done
 * here. tls may be NULL for unix sockets only: TCP needs certificates, or tls->insecure. Takes the
 * descriptor also on failure. */
int hed_conn_accept(int fd, const struct hed_tls *tls, int timeout_ms, struct hed_conn **out,
                    struct hed_why *why);

void hed_conn_close(struct hed_conn *c); /* and frees it; NULL is fine */
void
hed_conn_forget(struct hed_conn *c); /* in the child of a fork: closes, says nothing to the peer */
int hed_conn_fd(const struct hed_conn *c); /* for poll: POLLHUP */
bool hed_conn_secure(const struct hed_conn *c);
/* Did the peer show a certificate that the CA vouches for? Its name (CN) for the log, "" if none. A
 * server that takes tokens must ask for one where this is false. */
bool hed_conn_certified(const struct hed_conn *c);
const char *hed_conn_name(const struct hed_conn *c);
/* Who is on the other end of a unix socket. HED_ENOTSUP for TCP. */
int hed_conn_peer(const struct hed_conn *c, uid_t *uid, gid_t *gid, pid_t *pid);

/* All of it, or an error. timeout_ms < 0: until the peer is gone; 0: what is there. Short reads and
 * writes, EINTR: handled. After HED_ETIME some of it may be lost: where that matters, read_some
 * with least = 1, which takes nothing when it says HED_ETIME. A peer's machine that says nothing
 * any more, not even that it got what was sent, counts as gone after HED_CONN_LOST_MS. */
#define HED_CONN_LOST_MS 10000
int hed_conn_read(struct hed_conn *c, void *p, size_t n, int timeout_ms);
int hed_conn_write(struct hed_conn *c, const void *p, size_t n);
int hed_conn_writev(struct hed_conn *c, struct iovec *parts, int count); /* parts is used up */
/* What goes out without waiting, of n bytes: how many, 0 too, or an error. */
ssize_t hed_conn_write_now(struct hed_conn *c, const void *p, size_t n);
/* A peer that is there and says nothing: from now on reads without a time-out, and writes that it
 * takes nothing of, end with HED_EIO when not a byte has come from it for so long. Whole seconds.
 * For a peer that says something now and then (hed_channel_beat). */
int hed_conn_patience(struct hed_conn *c, int ms);
/* Ends both directions: whoever waits, here or there, finds out. Any thread. */
void hed_conn_break(struct hed_conn *c);
/* At least `least` bytes, at most n: how many, or an error. */
ssize_t hed_conn_read_some(struct hed_conn *c, void *p, size_t least, size_t n, int timeout_ms);

/* Descriptors over a unix socket, each message with exactly these many: HED_EFORMAT where others
 * came, which are closed. The sender's stay open. */
#define HED_CONN_FDS 16 /* at most */
int hed_conn_send_fds(struct hed_conn *c, const int *fds, int count);
int hed_conn_take_fds(struct hed_conn *c, int *fds, int count, int timeout_ms);

/* One over a bare unix socket, without waiting: HED_EIO where nobody takes it, or gives one any
 * more; HED_ETIME for none to be had now; HED_EFORMAT for anything else than one, which is
 * closed. */
int hed_fd_send(int socket, int fd);
int hed_fd_take(int socket, int *fd);

/* Who is on the other end of a bare unix socket. */
int hed_fd_peer(int socket, uid_t *uid, gid_t *gid, pid_t *pid);

/* Has the peer gone? Does not wait. What it said before may still be there to read. */
bool hed_conn_gone(struct hed_conn *c);
