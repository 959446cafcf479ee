/* The bridge: the vsock device of one QEMU guest, in a process of its own.
 *
 *   guest: connect(CID 2, port) ── queues in its RAM ──┐
 *   QEMU ── vhost-user: where RAM and queues lie ──────┴──> bridge ── socketpair ──> listener
 *
 * The listener accepts QEMU at the vhost-user socket and forks a bridge. Each connection that a
 * program in the guest makes becomes a unix socketpair (SOCK_STREAM), of which the bridge sends one
 * end to the listener: from there on it is like any accepted connection. What a guest writes into
 * its RAM is parsed only here, by a process that has nothing but that guest's connections.
 *
 * Calling it, in the forked process, while it has one thread:
 *
 *     struct hed_sandbox box = ...;              the workers', with a user of its own
 *     hed_bridge_confine(&box, &start, &why);    what a bridge needs, and nothing else
 *     status = hed_bridge_run(&start);           as long as there is the guest
 *
 * The process needs no files. It writes to the log (standard error) when an error ends it and when
 * it cuts off a silent guest; the text contains no bytes of the guest's.
 */
#pragma once

#include <stdint.h>

struct hed_bridge;
struct hed_sandbox;
struct hed_why;

#define HED_BRIDGE_CONNECTIONS 4096 /* the most that hed_bridge_start.connections may say */

/* Each connection of the guest arrives at the listener as one packet with this and one descriptor,
 * which hed_fd_take() takes. The stream of the connection begins in it; it is blocking, and other
 * than that as accept(2) gives it. Closing it ends the connection in the guest, too. */
struct hed_bridge_hello {
    uint32_t port; /* that the guest's end has; for the log */
};

struct hed_bridge_start {
    int vhost;            /* connected stream socket: QEMU's vhost-user front end. Owned */
    int listener;         /* end of a SOCK_SEQPACKET pair: takes the guest's connections. Owned */
    uint64_t cid;         /* the guest's; over 2, and 32 bits */
    uint32_t port;        /* the only one that the guest may connect to */
    uint32_t silent_ms;   /* see below; 0: the guest may be silent for ever */
    uint32_t connections; /* that the guest may have at once; others are refused */
};

/* Serves the guest until QEMU closes its end of `vhost` or the listener its end of `listener` (0),
 * or until one of them does something impossible (HED_EFORMAT, HED_ENOTSUP; logged once by name).
 * Then all connections of the guest are closed. HED_ENOMEM, HED_EIO: the system refuses what the
 * bridge needs. Takes both descriptors, whatever it returns.
 *
 * A guest that has connections and whose kernel has sent nothing for a third of silent_ms is asked
 * for an answer, which its kernel gives without its programs. If it is silent for all of silent_ms
 * because it is stopped, its connections are closed; when it goes on, it finds them reset. */
int hed_bridge_run(const struct hed_bridge_start *start);

/* Adapts the sandbox, of which the caller has set the steps, the user and the group, to what a
 * bridge needs, and enters it. Memory is limited unless box->memory is 0. After an error the
 * process must end. */
int hed_bridge_confine(struct hed_sandbox *box, const struct hed_bridge_start *start,
                       struct hed_why *why);

/* ---- for tests: the parts of hed_bridge_run() ------------------------------------------------ */

/* Takes both descriptors, also if it fails. */
int hed_bridge_open(const struct hed_bridge_start *start, struct hed_bridge **out);
/* Waits for something to do, for timeout_ms at most (negative: for ever), and does it. 0; 1 if
 * the bridge has come to its end; or an error, with the reason. */
int hed_bridge_turn(struct hed_bridge *b, int timeout_ms, struct hed_why *why);
void hed_bridge_close(struct hed_bridge *b);
