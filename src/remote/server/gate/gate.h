/* The gate: where clients over TLS show who they are, before they have a worker.
 *
 *   listener ── connection, answer socket ──> keeper ──fork──> gate: handshake, hello, token
 *       <────────────── struct hed_gate_answer ──────────────────┘
 *       └─fork──> worker: goes on with the connection where the gate has stopped
 *
 * The keeper has read the server's key and the token. The listener has not, so neither has any
 * worker, in whose memory a client's code may look around. A gate handles one connection, runs no
 * code of the client's, and ends. Keeper and gates are in a sandbox of their own.
 *
 * Sockets between these processes are SOCK_SEQPACKET, so messages arrive complete or not at all.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "remote/wire/conn.h"
#include "remote/wire/wire.h"

struct hed_sandbox;
struct hed_why;

/* ---- what is said ---------------------------------------------------------------------------- */

enum hed_gate_kind {
    HED_GATE_SESSION, /* reads the hello of a new session */
    HED_GATE_CHANNEL  /* reads nothing */
};

struct hed_gate_ask { /* listener to keeper, with two descriptors: connection, answer socket */
    uint32_t kind;
};

#define HED_GATE_TEXT 512

struct hed_gate_answer {         /* gate to listener */
    char refused[HED_GATE_TEXT]; /* why; "" if the client may go on */
    struct hed_conn_state state;
    struct hed_hello hello; /* of a session, without the token */
};

/* Listener to gate, if the listener does not take the client; the gate tells it. If the listener
 * does, it just closes the answer socket. */
struct hed_gate_verdict {
    char text[HED_GATE_TEXT];
};

/* ---- the processes --------------------------------------------------------------------------- */

#define HED_TOKEN_MAX 128 /* bytes, with the zero */

struct hed_gate_plan {
    const struct hed_tls *tls;
    const char *token_file; /* "" if clients need no token */
    const char *deny_file;  /* certificates that are refused; "" for none */
    int patience_ms;        /* for all that a client has to say */
    const struct hed_sandbox *sandbox;
};

/* In a process of its own: reads the files, enters the sandbox, says over the socket whether that
 * worked (struct hed_why, empty if it did), and serves until the socket is closed. Returns the
 * status to end with. */
int hed_keeper_run(int socket, const struct hed_gate_plan *plan);

/* ---- between the files of this room ---------------------------------------------------------- */

struct hed_deny_list { /* deny.c */
    char *text;        /* lines; owned */
};
int hed_deny_read(const char *path, struct hed_deny_list *out, struct hed_why *why);
bool hed_deny_has(const struct hed_deny_list *l, const struct hed_conn_who *who);

/* Reads the first line of the file. Other users must not be able to read it, because a client needs
 * nothing but the token. */
int hed_token_read(const char *path, char out[HED_TOKEN_MAX], struct hed_why *why);

struct hed_keeper {
    const struct hed_gate_plan *plan;
    char token[HED_TOKEN_MAX]; /* "" for none */
    struct hed_deny_list denied;
};
/* In a process of its own: handles one connection. Takes both descriptors. */
void hed_gate_run(const struct hed_keeper *k, enum hed_gate_kind kind, int conn, int answer);
