/* A guest and its QEMU, played by a test: memory, queues with a driver of their own, and messages
 * of vhost-user. The bridge runs in a thread of the test, and has its own view of the memory.
 *
 * Honest streams are in `streams`: their bytes are a pattern, so that each side can check what it
 * gets, and both sides keep to the credit. What a hostile guest does, a test does by hand.
 */
#pragma once

#include <linux/virtio_ring.h>
#include <linux/virtio_vsock.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "remote/server/vm/bridge.h"
#include "remote/server/vm/vhost.h"
#include "remote/server/vm/vsock.h"

#define GUEST_RAM (16u << 20)
#define GUEST_BASE UINT64_C(0x40000000)     /* physical address of it */
#define GUEST_USER UINT64_C(0x7f0000000000) /* QEMU's address */
#define GUEST_CID 77
#define GUEST_PORT 7717
#define GUEST_QUEUE 128               /* descriptors */
#define GUEST_SLOTS (GUEST_QUEUE / 2) /* chains of two buffers: header, bytes */
#define GUEST_RX_BYTES 4096
#define GUEST_TX_BYTES 65536
#define GUEST_BUFFER (256u << 10) /* of a stream */
#define GUEST_STREAMS 256
#define GUEST_FIRST_PORT 1000 /* of the guest's end of the first stream */

/* Numbers of messages. */
enum {
    GET_FEATURES = 1,
    SET_FEATURES,
    SET_OWNER,
    RESET_OWNER,
    SET_MEM_TABLE,
    SET_LOG_BASE,
    SET_VRING_NUM = 8,
    SET_VRING_ADDR,
    SET_VRING_BASE,
    GET_VRING_BASE,
    SET_VRING_KICK,
    SET_VRING_CALL,
    SET_VRING_ERR,
    GET_PROTOCOL_FEATURES,
    SET_PROTOCOL_FEATURES,
    GET_QUEUE_NUM,
    SET_VRING_ENABLE,
    GET_CONFIG = 24,
    RESET_DEVICE = 34
};

struct guest_how {
    bool no_events;       /* without VIRTIO_RING_F_EVENT_IDX */
    bool indirect;        /* chains in tables of their own */
    uint32_t silent_ms;   /* as hed_bridge_start has it */
    uint32_t connections; /* 0: GUEST_STREAMS */
    bool confined;        /* the bridge is a process in its sandbox */
};

struct guest_queue {
    struct vring_desc *desc;
    struct vring_avail *avail;
    struct vring_used *used;
    int kick, call;
    uint16_t next; /* avail->idx */
    uint16_t seen; /* of used->idx */
    uint32_t free_count;
    uint16_t free[GUEST_SLOTS];
};

struct guest_stream {
    uint32_t port;
    bool up, reset;     /* a RESPONSE came; a RST came */
    uint32_t host_shut; /* flags of SHUTDOWN */
    uint32_t sent;      /* bytes to the host */
    uint32_t host_buffer, host_read;
    uint32_t got, got_told; /* bytes from the host; those of which it knows */
    bool stalled;           /* it reads nothing, and so gives no credit */
    uint32_t asked;         /* CREDIT_REQUESTs that came */
    uint32_t credits;       /* CREDIT_UPDATEs that came */
};

struct guest {
    struct guest_how how;
    int vhost, listener; /* the other ends of the bridge's */
    int memory;          /* a memfd */
    uint8_t *ram;
    struct guest_queue rx, tx;
    struct guest_stream streams[GUEST_STREAMS];
    bool mute;             /* does not answer CREDIT_REQUESTs */
    uint32_t stray_resets; /* of ports that are no streams' */
    pthread_t bridge;      /* or, if it is not 0, */
    pid_t process;
};

uint8_t guest_pattern(uint32_t port, uint64_t offset);

/* The memory and the bridge, without a word. */
void guest_open(struct guest *g, const struct guest_how *how);
/* All that QEMU says until the queues run. */
void guest_begin(struct guest *g, const struct guest_how *how);
/* Closes QEMU's end and waits for the bridge. What it returned. */
int guest_end(struct guest *g);
/* Waits until the bridge ends by itself. */
int guest_wait_end(struct guest *g);

/* ---- QEMU ------------------------------------------------------------------------------------ */

/* Bytes and descriptors as they are. A bridge that has ended already hears nothing. */
void guest_say_raw(struct guest *g, const void *p, size_t n, const int *fds, int count);
void guest_say(struct guest *g, uint32_t request, uint32_t flags, const void *p, uint32_t size,
               const int *fds, int count);
uint32_t guest_hear(struct guest *g, void *p, uint32_t size); /* an answer; its size */
void guest_say_number(struct guest *g, uint32_t request, uint64_t n);
uint64_t guest_ask_number(struct guest *g, uint32_t request);
void guest_say_state(struct guest *g, uint32_t request, uint32_t queue, uint32_t number);
void guest_say_memory(struct guest *g);
void guest_start_queue(struct guest *g, uint32_t number, uint16_t base);
uint32_t guest_stop_queue(struct guest *g, uint32_t number);
struct guest_queue *guest_queue(struct guest *g, uint32_t number);

/* ---- the driver ------------------------------------------------------------------------------ */

uint64_t guest_address(const struct guest *g, const void *p);
/* Makes a chain available as it is, and kicks. */
void guest_offer(struct guest *g, struct guest_queue *q, uint16_t head);
/* Sends a packet, when there is room. */
void guest_send(struct guest *g, const struct virtio_vsock_hdr *h, const void *p);
/* Waits for one packet of the bridge and handles it. Returns its header. */
struct virtio_vsock_hdr guest_take(struct guest *g);
bool guest_has_packet(struct guest *g);

/* ---- streams --------------------------------------------------------------------------------- */

struct virtio_vsock_hdr guest_header(const struct guest_stream *s, uint16_t op);
void guest_tell(struct guest *g, struct guest_stream *s, uint16_t op, uint32_t flags);
/* The n-th stream. Returns the host's end of it, or -1 if it was refused. */
int guest_connect(struct guest *g, uint32_t n);
int guest_accept(struct guest *g); /* the host's end of the next stream */
/* Sends the next n bytes of the stream, as the credit allows. */
void guest_write(struct guest *g, struct guest_stream *s, uint32_t n);
void guest_read_until(struct guest *g, struct guest_stream *s, uint32_t total);

/* ---- the host's end -------------------------------------------------------------------------- */

/* A thread that reads or writes bytes of a stream from an offset on, and checks them. */
struct host_task {
    int fd;
    uint32_t port;
    uint64_t from, bytes;
    pthread_t thread;
};
void host_read(struct host_task *t, int fd, uint32_t port, uint64_t from, uint64_t bytes);
void host_write(struct host_task *t, int fd, uint32_t port, uint64_t from, uint64_t bytes);
void host_wait(struct host_task *t);
