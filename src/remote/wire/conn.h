/* Connections: bytes in order between two processes, over any link, with or without TLS.
 *
 * Functions return 0 or HED_E...: HED_EIO when the peer is gone, HED_ETIME when time has run out.
 * A connection has one reader and one writer at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct hed_address;
struct hed_conn;
struct hed_link;
struct hed_preface;
struct hed_why;
struct hed_window;

/* How a connection that leaves this machine is secured. Files are PEM; an empty path means none.
 *
 * A client needs ca, by which it recognizes the server, and either cert and key or a token. A
 * server needs cert and key, and either ca, by which it recognizes clients, or a token, or both. */
struct hed_tls {
    char ca[1024], cert[1024], key[1024];
    bool insecure; /* no TLS at all: the user asked for it, and the log says so */
    bool token;    /* server: a client without a certificate may connect; its hello has the token */
};
bool hed_tls_built(void); /* was heddle built with OpenSSL? */
/* Server: reads the files now. All later connections with this very struct use what was read, so
 * that the files need not be readable any more. Once per process, before there are threads. */
int hed_tls_prepare(const struct hed_tls *tls, struct hed_why *why);

/* Client: connects, sends the preface, and then begins TLS. timeout_ms limits the first; the
 * handshake has four times as long. Looking up a name takes as long as the system's resolver takes.
 * A connection that leaves
 * this machine without tls->ca is refused unless tls->insecure is set. The server's first byte
 * under TLS is HED_TLS_READY; it is read here, so that this function reports it when the server
 * refuses the client's certificate. */
#define HED_TLS_READY 'R'
int hed_conn_open(const struct hed_address *a, const struct hed_tls *tls,
                  const struct hed_preface *preface, int timeout_ms, struct hed_conn **out,
                  struct hed_why *why);

/* Server: creates a listening socket; accept(2) gives bare sockets. The file of a unix socket gets
 * `mode`. */
int hed_conn_listen(const struct hed_address *a, int mode, int *fd, struct hed_why *why);

/* Server: creates a connection over an accepted socket whose preface has been read, and does the
 * handshake. tls may be NULL for local links only. Takes ownership of the descriptor, even if it
 * fails. */
int hed_conn_accept(int fd, const struct hed_tls *tls, int timeout_ms, struct hed_conn **out,
                    struct hed_why *why);

/* ---- a connection that goes on in another process -------------------------------------------- */

struct hed_conn_who {        /* whom a certificate names that our authority has signed */
    bool certified;          /* else the rest is zero */
    char name[65];           /* CN, for people: what X.509 allows, printable; "" for none */
    uint8_t subject[32];     /* the same for all certificates of one client of one authority */
    uint8_t fingerprint[32]; /* SHA-256 of the certificate */
};

void hed_conn_show_name(char *name); /* makes it printable */

struct hed_conn_secret { /* of one direction */
    uint8_t bytes[48];
    uint64_t records; /* that have used it */
};

struct hed_conn_state {
    uint32_t cipher; /* TLS's number; 0: the connection is not secured */
    struct hed_conn_who who;
    struct hed_conn_secret read, write;
    uint32_t asked; /* not 0: the peer wants us to change our key */
};

/* Server: frees the connection without a word to the peer, and closes the descriptor, of which
 * others have copies. HED_ESTATE if the peer has said more than was read; then it goes on. */
int hed_conn_suspend(struct hed_conn *c, struct hed_conn_state *out);
/* Server: carries on over a socket that came by this link. Takes ownership of the descriptor, even
 * if it fails. That a connection without TLS is allowed is for the caller to know. */
int hed_conn_resume(int fd, const struct hed_link *link, const struct hed_conn_state *s,
                    struct hed_conn **out, struct hed_why *why);

/* Channels over this connection may be in this window. For the worker, whose client is in a guest.
 * A client finds the window by itself, unless it is told here. */
void hed_conn_set_window(struct hed_conn *c, const struct hed_window *window);

void hed_conn_close(struct hed_conn *c);   /* also frees it; NULL is allowed */
void hed_conn_forget(struct hed_conn *c);  /* in the child of a fork; the peer does not notice */
int hed_conn_fd(const struct hed_conn *c); /* for poll: POLLHUP */
bool hed_conn_secure(const struct hed_conn *c);
/* A server that accepts tokens must ask for one if the peer is not certified. */
const struct hed_conn_who *hed_conn_who(const struct hed_conn *c);
/* The user and process at the other end. HED_ENOTSUP for links that are not local. */
int hed_conn_peer(const struct hed_conn *c, uid_t *uid, gid_t *gid, pid_t *pid);

/* Read or write all of it, or fail. A negative timeout_ms waits until the peer is gone; 0 takes
 * only what is there. Short reads and writes and EINTR are handled. After HED_ETIME, bytes may be
 * lost; where that matters, call hed_conn_read_some() with least = 1, which takes nothing if it
 * returns HED_ETIME. A peer whose machine no longer acknowledges what it is sent counts as gone
 * after HED_CONN_LOST_MS. */
#define HED_CONN_LOST_MS 10000
int hed_conn_read(struct hed_conn *c, void *p, size_t n, int timeout_ms);
int hed_conn_write(struct hed_conn *c, const void *p, size_t n);
int hed_conn_writev(struct hed_conn *c, struct iovec *parts, int count); /* changes parts */
/* Writes as many of n bytes as possible without waiting. Returns how many (maybe 0), or an
 * error. */
ssize_t hed_conn_write_now(struct hed_conn *c, const void *p, size_t n);
/* From now on, a read without a timeout fails with HED_EIO if nothing at all has arrived for this
 * long, and so does a write of which the peer takes nothing. For a peer that gives signs of life
 * (hed_channel_beat). In multiples of a second. */
int hed_conn_patience(struct hed_conn *c, int ms);
/* Ends both directions, so that threads that wait on either side notice it. Any thread may call
 * it. */
void hed_conn_break(struct hed_conn *c);
/* Copies up to n bytes that have come, and leaves them to be read. Returns how many (maybe 0), or
 * an error. Without TLS only. */
ssize_t hed_conn_peek(struct hed_conn *c, void *p, size_t n);
/* Reads at least `least` bytes, at most n. Returns how many, or an error. */
ssize_t hed_conn_read_some(struct hed_conn *c, void *p, size_t least, size_t n, int timeout_ms);

/* Pass descriptors over a local link. Each message carries exactly `count`. If another number
 * arrives, all are closed and the answer is HED_EFORMAT. The sender's descriptors stay open. */
#define HED_CONN_FDS 16 /* at most */
int hed_conn_send_fds(struct hed_conn *c, const int *fds, int count);
int hed_conn_take_fds(struct hed_conn *c, int *fds, int count, int timeout_ms);

/* Pass descriptors and n bytes in one message over a bare unix socket of packets, without waiting.
 * HED_ETIME if the other end is full, or if there is none now; HED_EIO if the other end is closed;
 * HED_EFORMAT if something else arrived, whose descriptors were closed. */
int hed_fd_send(int socket, const int *fds, int count, const void *p, size_t n);
/* Has the other side closed its end, with nothing left to read? Does not wait. */
bool hed_fd_hung_up(int socket);
int hed_fd_take(int socket, int *fds, int count, void *p, size_t n);
/* Takes a message with one descriptor or none, which is -1; with `wait`, when it comes. */
int hed_fd_take_maybe(int socket, int *fd, void *p, size_t n, bool wait);

/* The user and process at the other end of a bare unix socket. */
int hed_fd_peer(int socket, uid_t *uid, gid_t *gid, pid_t *pid);

/* Is the peer gone? Does not wait. What it sent before may still be there to read. */
bool hed_conn_gone(struct hed_conn *c);
