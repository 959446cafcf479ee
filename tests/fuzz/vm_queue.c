/* Fuzz target: what a guest writes into its memory: queues, descriptors, headers of packets. Honest
 * packets in between, and a host that reads, writes and closes, reach the streams. */
#include "fuzz/vm_play.h"

#include <linux/virtio_ring.h>
#include <linux/virtio_vsock.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define QUEUE 16 /* descriptors */
#define QUEUE_AT(q) ((q)*1024u)
#define USED_AT 512u
#define PACKETS 8        /* chains of a header and bytes, which the guest sends */
#define PACKETS_AT 4096u /* their headers; their bytes are whatever lies in the memory */
#define PACKET_ROOM 64u
#define BUFFERS_AT 8192u
#define BUFFER_ROOM 1024u
#define FIRST_PORT 1000

enum {
    SET_FEATURES = 2,
    SET_MEM_TABLE = 5,
    SET_VRING_NUM = 8,
    SET_VRING_ADDR,
    SET_VRING_BASE,
    GET_VRING_BASE,
    SET_VRING_KICK,
    SET_VRING_CALL,
    SET_VRING_ENABLE = 18,
    RESET_DEVICE = 34
};

static struct vring_desc *
descriptors(const struct play *p, uint32_t q)
{
    return (void *)(p->ram + QUEUE_AT(q));
}

static struct vring_avail *
available(const struct play *p, uint32_t q)
{
    return (void *)(p->ram + QUEUE_AT(q) + QUEUE * sizeof(struct vring_desc));
}

static void
say_memory(struct play *p)
{
    const struct {
        uint64_t count;
        struct hed_guest_place place;
    } m = {1, {PLAY_BASE, PLAY_RAM, PLAY_USER, 0}};

    play_say(p, SET_MEM_TABLE, 1, &m, sizeof m, p->memory, 1);
}

static void
start_queue(struct play *p, uint32_t q, uint32_t base)
{
    const uint32_t size[2] = {q, QUEUE}, first[2] = {q, base}, enable[2] = {q, 1};
    const uint64_t number = q;
    const struct {
        uint32_t queue, flags;
        uint64_t desc, used, avail, log;
    } address = {q,
                 0,
                 PLAY_USER + QUEUE_AT(q),
                 PLAY_USER + QUEUE_AT(q) + USED_AT,
                 PLAY_USER + QUEUE_AT(q) + QUEUE * sizeof(struct vring_desc),
                 0};

    play_say(p, SET_VRING_NUM, 1, size, sizeof size, -1, 0);
    play_say(p, SET_VRING_BASE, 1, first, sizeof first, -1, 0);
    play_say(p, SET_VRING_ADDR, 1, &address, sizeof address, -1, 0);
    play_say(p, SET_VRING_KICK, 1, &number, sizeof number, p->event, 1);
    play_say(p, SET_VRING_CALL, 1, &number, sizeof number, p->event, 1);
    play_say(p, SET_VRING_ENABLE, 1, enable, sizeof enable, -1, 0);
}

static void
offer_chain(struct play *p, uint32_t q, uint16_t head)
{
    struct vring_avail *a = available(p, q);

    a->ring[a->idx % QUEUE] = head;
    a->idx++;
}

/* A packet as a guest would send it, with any numbers in its header. */
static void
send_packet(struct play *p, struct play_input *in)
{
    const uint16_t slot = available(p, 1)->idx % PACKETS;
    const uint32_t at = PACKETS_AT + slot * PACKET_ROOM;
    struct vring_desc *d = &descriptors(p, 1)[2 * slot];
    struct virtio_vsock_hdr h = {
        .src_cid = PLAY_CID,
        .dst_cid = 2,
        .dst_port = PLAY_PORT,
        .type = VIRTIO_VSOCK_TYPE_STREAM,
    };

    h.src_port = FIRST_PORT + (uint32_t)play_number(in, 1) % 10;
    h.op = (uint16_t)(play_number(in, 1) % 9);
    h.flags = (uint32_t)play_number(in, 1);
    h.len = (uint32_t)play_number(in, 2);
    h.buf_alloc = 1u << play_number(in, 1) % 32;
    h.fwd_cnt = (uint32_t)play_number(in, 2);
    if (h.op != VIRTIO_VSOCK_OP_RW)
        h.len = 0;
    memcpy(p->ram + at, &h, sizeof h);
    d[0] = (struct vring_desc){
        .addr = PLAY_BASE + at,
        .len = (uint32_t)sizeof h,
        .flags = VRING_DESC_F_NEXT,
        .next = (uint16_t)(2 * slot + 1),
    };
    d[1] = (struct vring_desc){.addr = PLAY_BASE, .len = h.len};
    offer_chain(p, 1, (uint16_t)(2 * slot));
}

static void
offer_buffers(struct play *p, struct play_input *in)
{
    const uint32_t count = (uint32_t)play_number(in, 1) % QUEUE;
    const uint32_t n = (uint32_t)play_number(in, 2) % BUFFER_ROOM;

    for (uint32_t i = 0; i < count; i++) {
        const uint16_t slot = available(p, 0)->idx % QUEUE;

        descriptors(p, 0)[slot] = (struct vring_desc){
            .addr = PLAY_BASE + BUFFERS_AT + slot * BUFFER_ROOM,
            .len = n,
            .flags = VRING_DESC_F_WRITE,
        };
        offer_chain(p, 0, slot);
    }
}

/* A descriptor with anything in it, near the memory. */
static void
set_descriptor(struct play *p, struct play_input *in)
{
    const uint8_t which = (uint8_t)play_number(in, 1);
    struct vring_desc d;

    d.addr = PLAY_BASE + play_number(in, 3) - 4096;
    d.len = (uint32_t)play_number(in, 3);
    d.flags = (uint16_t)play_number(in, 1);
    d.next = (uint16_t)play_number(in, 1);
    descriptors(p, which & 1)[which / 2 % QUEUE] = d;
}

static void
scribble_bytes(struct play *p, struct play_input *in)
{
    const uint32_t at = (uint32_t)play_number(in, 2);
    const size_t n = play_number(in, 1);

    (void)play_bytes(in, p->ram + at, n < PLAY_RAM - at ? n : PLAY_RAM - at);
}

/* The host's end of a stream. */
static void
use_host(struct play *p, struct play_input *in)
{
    static uint8_t bytes[65536];
    const uint8_t what = (uint8_t)play_number(in, 1);
    int *fd = &p->hosts[what % PLAY_HOSTS];
    const size_t n = play_number(in, 2);

    if (*fd < 0)
        return;
    switch (what / PLAY_HOSTS % 5) {
    case 0:
        (void)!recv(*fd, bytes, n, MSG_DONTWAIT);
        break;
    case 1:
        (void)!send(*fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        break;
    case 2:
        (void)shutdown(*fd, SHUT_WR);
        break;
    case 3:
        (void)shutdown(*fd, SHUT_RD);
        break;
    default:
        (void)close(*fd);
        *fd = -1;
    }
}

/* QEMU stops queues, lets them go on, moves the memory or resets the device. */
static void
use_front_end(struct play *p, struct play_input *in)
{
    const uint8_t what = (uint8_t)play_number(in, 1);
    const uint32_t queue[2] = {what & 1, 0};

    if (what & 2)
        play_say(p, GET_VRING_BASE, 1, queue, sizeof queue, -1, 0);
    if (what & 4)
        say_memory(p);
    if (what & 8)
        play_say(p, RESET_DEVICE, 1, NULL, 0, -1, 0);
    if (what & 16 && what & (2 | 8))
        start_queue(p, what & 1, (uint32_t)play_number(in, 1));
}

static void
play_step(struct play *p, struct play_input *in)
{
    switch (play_number(in, 1) % 8) {
    case 0:
        scribble_bytes(p, in);
        break;
    case 1:
    case 2:
        send_packet(p, in);
        break;
    case 3:
        offer_buffers(p, in);
        break;
    case 4:
        set_descriptor(p, in);
        break;
    case 5:
        use_host(p, in);
        break;
    case 6:
        use_front_end(p, in);
        break;
    default:
        play_turn(p);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct play_input in = {data, data + size};
    struct play p;
    const uint64_t features = UINT64_C(1) << 32 | (play_number(&in, 1) & 3) << 28;

    play_begin(&p);
    play_say(&p, SET_FEATURES, 1, &features, sizeof features, -1, 0);
    say_memory(&p);
    start_queue(&p, 0, 0);
    start_queue(&p, 1, 0);
    play_turn(&p);
    must(!p.ended);
    while (in.at < in.end && !p.ended)
        play_step(&p, &in);
    play_turn(&p);
    play_end(&p);
    return 0;
}
