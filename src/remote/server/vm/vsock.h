/* The vsock device (virtio 1.2, "Socket Device"): streams between programs in the guest and unix
 * sockets here. streams.c keeps them, incoming.c hears the guest, outgoing.c tells it.
 *
 *   guest ── tx queue ──> incoming.c ── sendmsg, else buffer ──> socket ──> listener or worker
 *   guest <── rx queue ── outgoing.c <── recvmsg into the guest's buffers ── socket <──┘
 *
 * States of a stream, and what moves it:
 *
 *   FREE ──REQUEST──> OPEN ──the host closes──> CLOSED ──RST, or SHUTDOWN answered──> FREE
 *                      │ └──RST, or SHUTDOWN of both directions──> LEFT (unread bytes) ──> FREE
 *                      └──the guest breaks the rules, or is silent──> RESET ──told──> FREE
 *
 * Invariants:
 * 1. A stream holds at most HED_VSOCK_BUFFER bytes that the host has not read. The guest is told so
 *    and does not send more; a stream in which it does is reset. So no stream waits for another.
 * 2. What the guest has to be told is a few bits per stream (wants), not a list of packets; only
 *    resets of streams that do not exist are a list, of HED_VSOCK_REPLIES. While it is full, the
 *    guest is not heard.
 */
#pragma once

#include <linux/virtio_vsock.h>
#include <stdbool.h>
#include <stdint.h>

#include "remote/server/vm/queue.h"

struct hed_guest_memory;
struct hed_why;

#define HED_VSOCK_HOST 2              /* the CID of the host */
#define HED_VSOCK_BUFFER (256u << 10) /* bytes of a stream that the host has not read */
#define HED_VSOCK_REPLIES 128         /* resets of streams that do not exist */
#define HED_VSOCK_BATCH 64            /* packets of the guest, or turns of streams, at a time */
#define HED_VSOCK_PACKET (64u << 10)  /* bytes of a stream in one packet to the guest */
#define HED_VSOCK_TURN (256u << 10)   /* bytes of a stream to the guest, before others come */
#define HED_VSOCK_TURN_CHAINS 64      /* packets for these */
#define HED_VSOCK_TURN_PARTS (4 * HED_CHAIN_PARTS)

#define HED_VSOCK_BOTH (VIRTIO_VSOCK_SHUTDOWN_RCV | VIRTIO_VSOCK_SHUTDOWN_SEND)

enum hed_vsock_state {
    HED_VSOCK_FREE,
    HED_VSOCK_OPEN,
    HED_VSOCK_CLOSED, /* the host's end is closed, and the guest has not agreed yet */
    HED_VSOCK_RESET,  /* nothing is left of it but that the guest must be told */
    HED_VSOCK_LEFT    /* the guest knows it no more, but the host has not read all of it */
};

enum hed_vsock_want { /* what the guest has to be told */
                      HED_WANT_RESPONSE = 1,
                      HED_WANT_CREDIT = 2,   /* how much it may send */
                      HED_WANT_ANSWER = 4,   /* that it should answer */
                      HED_WANT_SHUTDOWN = 8, /* host_shut */
                      HED_WANT_RESET = 16
};

struct hed_vsock_stream {
    enum hed_vsock_state state;
    uint32_t port; /* the guest's */
    int fd;        /* our end; -1: closed */
    uint32_t
        after; /* in the same chain of the index, or of free places; HED_VSOCK_NONE at its end */
    uint32_t wants;
    uint32_t guest_shut, host_shut; /* VIRTIO_VSOCK_SHUTDOWN_...: what each does no more */
    bool queued;                    /* among the streams that have something to tell */
    bool readable;                  /* the socket may have something to read */
    bool ending;                    /* the host sends no more than what is there to read */
    bool hung;                      /* the host has closed its end */
    bool full;                      /* epoll tells when the socket takes more */

    /* To the guest. Counts of bytes wrap around, as the protocol has them. */
    uint32_t sent;         /* so far */
    uint32_t guest_read;   /* of these; the guest says so */
    uint32_t guest_buffer; /* that the guest has for them */

    /* From the guest. */
    uint32_t passed;      /* bytes that the socket took */
    uint32_t passed_told; /* of which the guest knows */
    uint8_t *buffer;      /* HED_VSOCK_BUFFER bytes, a ring; NULL while nothing is held; owned */
    uint32_t first, held;
};

#define HED_VSOCK_NONE UINT32_MAX

struct hed_vsock_reply { /* a reset for a stream that does not exist */
    uint64_t cid;        /* to which the guest has sent */
    uint32_t port, guest_port;
    uint16_t type;
};

struct hed_vsock {
    uint64_t cid;
    uint32_t port;
    int listener; /* where new connections go */
    int epoll;    /* that sockets are added to, with their place as data */
    const struct hed_guest_memory *memory;
    struct hed_virtq *rx, *tx; /* to and from the guest */

    struct hed_vsock_stream *streams; /* `most`; owned */
    uint32_t most;
    uint32_t free;   /* the first free place, or HED_VSOCK_NONE */
    uint32_t known;  /* how many the guest has: OPEN and CLOSED */
    uint32_t *index; /* by the guest's port: the first stream of a chain; owned */
    uint32_t index_mask;
    uint32_t *ready; /* streams that have something to tell, a ring of `most`; owned */
    uint32_t ready_first, ready_count;

    struct hed_vsock_reply replies[HED_VSOCK_REPLIES]; /* a ring */
    uint32_t reply_first, reply_count;

    bool busy;    /* there is more to do at once */
    bool starved; /* the guest has no buffers for what it should be told */

    uint64_t silent_ns;          /* 0: for ever */
    uint64_t heard_ns, asked_ns; /* when the guest last said something, was last asked to */
    uint32_t asked;              /* the last stream of which it was asked */

    struct hed_chain chains[HED_VSOCK_TURN_CHAINS]; /* of one turn */
    struct iovec parts[HED_VSOCK_TURN_PARTS];
};

/* ---- streams.c ------------------------------------------------------------------------------- */

/* The caller has set the first six fields. */
int hed_vsock_init(struct hed_vsock *v, uint32_t streams, uint32_t silent_ms);
void hed_vsock_fini(struct hed_vsock *v);

struct hed_vsock_stream *hed_vsock_find(const struct hed_vsock *v, uint32_t port);
/* A new stream, whose other end the listener has got. NULL: it cannot be. */
struct hed_vsock_stream *hed_vsock_open(struct hed_vsock *v, uint32_t port);
/* The guest has to be told, or may be able to take more. */
void hed_vsock_ready(struct hed_vsock *v, struct hed_vsock_stream *s, uint32_t wants);
/* The host does no more what `shut` says. */
void hed_vsock_host_shut(struct hed_vsock *v, struct hed_vsock_stream *s, uint32_t shut);
void hed_vsock_reset(struct hed_vsock *v, struct hed_vsock_stream *s);
void hed_vsock_leave(struct hed_vsock *v, struct hed_vsock_stream *s); /* the guest has left it */
void hed_vsock_free(struct hed_vsock *v, struct hed_vsock_stream *s);
void hed_vsock_reset_all(struct hed_vsock *v);
void hed_vsock_forget_all(struct hed_vsock *v); /* the guest has started anew */

/* epoll's events of the socket at a place. */
void hed_vsock_event(struct hed_vsock *v, uint32_t place, uint32_t events);

/* Asks a guest that says nothing, and resets all its streams if it does not answer. */
void hed_vsock_tick(struct hed_vsock *v);
/* When to call it, as hed_now_ns() counts; UINT64_MAX: never. */
uint64_t hed_vsock_next_tick(const struct hed_vsock *v);

/* ---- incoming.c ------------------------------------------------------------------------------ */

/* Takes packets of the guest. 0, or an error. */
int hed_vsock_hear(struct hed_vsock *v, struct hed_why *why);
/* Passes on what is held. */
void hed_vsock_flush(struct hed_vsock *v, struct hed_vsock_stream *s);

/* ---- outgoing.c ------------------------------------------------------------------------------ */

/* Tells the guest what there is to tell, as far as it has buffers. 0, or an error. */
int hed_vsock_tell(struct hed_vsock *v, struct hed_why *why);
