/* What does the bridge cost beyond a unix socket? A guest that is played by this program sends
 * single bytes and bulk through the bridge, a process in its sandbox; beside each, the same over a
 * bare socketpair. There is no virtual machine: a real guest adds its kernel, exits and interrupts.
 *
 * Prints `name value unit` lines; `x` rows are ratios of the bridge to the socket. The guest sends
 * packets of 64 KiB and offers buffers of 4 KiB, as Linux does.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "unit/vm/guest.h"

#define TRIPS 5000
#define BULK (UINT64_C(128) << 20)
#define ROUNDS 8          /* of each; the best counts, because these machines are noisy */
#define CREDIT (1u << 20) /* bytes that the guest has room for */
#define PACKETS_AT (9u << 20)
#define PACKET_STEP (68u << 10)

static struct guest g;
static char bytes[1 << 20];

static void
must(bool holds, const char *what)
{
    if (!holds) {
        perror(what);
        _exit(1);
    }
}

/* ---- the host's end -------------------------------------------------------------------------- */

static void *
echo_bytes(void *arg)
{
    const int fd = (int)(intptr_t)arg;
    char byte;

    for (int i = 0; i < TRIPS; i++)
        must(read(fd, &byte, 1) == 1 && write(fd, &byte, 1) == 1, "echo");
    return NULL;
}

static void *
take_bulk(void *arg)
{
    const int fd = (int)(intptr_t)arg;
    static char room[1 << 20];

    for (uint64_t left = BULK; left > 0;) {
        const ssize_t n = read(fd, room, left < sizeof room ? left : sizeof room);

        must(n > 0, "read");
        left -= (uint64_t)n;
    }
    return NULL;
}

static void *
send_bulk(void *arg)
{
    const int fd = (int)(intptr_t)arg;

    for (uint64_t left = BULK; left > 0;) {
        const ssize_t n = write(fd, bytes, left < sizeof bytes ? left : sizeof bytes);

        must(n > 0, "write");
        left -= (uint64_t)n;
    }
    return NULL;
}

static pthread_t
start_host(void *(*run)(void *), int fd)
{
    pthread_t t;

    must(pthread_create(&t, NULL, run, (void *)(intptr_t)fd) == 0, "thread");
    return t;
}

/* ---- the guest's end ------------------------------------------------------------------------- */

/* Waits for an interrupt if nothing has been used. */
static void
wait_used(struct guest_queue *q)
{
    struct pollfd p = {.fd = q->call, .events = POLLIN};
    uint64_t count;

    while (__atomic_load_n(&q->used->idx, __ATOMIC_ACQUIRE) == q->seen) {
        __atomic_store_n(&q->avail->ring[GUEST_QUEUE], q->seen, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (__atomic_load_n(&q->used->idx, __ATOMIC_ACQUIRE) != q->seen)
            return;
        (void)poll(&p, 1, -1);
        (void)!read(q->call, &count, sizeof count);
    }
}

static struct virtio_vsock_hdr
take_packet(struct guest_stream *s)
{
    struct guest_queue *q = &g.rx;
    struct virtio_vsock_hdr h;

    wait_used(q);

    const uint16_t head = (uint16_t)q->used->ring[q->seen++ % GUEST_QUEUE].id;

    memcpy(&h, g.ram + (q->desc[head].addr - GUEST_BASE), sizeof h);
    guest_offer(&g, q, head);
    s->host_buffer = h.buf_alloc;
    s->host_read = h.fwd_cnt;
    s->got += h.op == VIRTIO_VSOCK_OP_RW ? h.len : 0;
    return h;
}

/* Sends n bytes of whatever lies in the slot. */
static void
send_packet(struct guest_stream *s, uint16_t op, uint32_t n)
{
    struct guest_queue *q = &g.tx;

    if (q->free_count == 0)
        wait_used(q);
    while (__atomic_load_n(&q->used->idx, __ATOMIC_ACQUIRE) != q->seen)
        q->free[q->free_count++] = (uint16_t)(q->used->ring[q->seen++ % GUEST_QUEUE].id / 2);

    const uint16_t slot = q->free[--q->free_count], head = (uint16_t)(2 * slot);
    uint8_t *at = g.ram + PACKETS_AT + slot * PACKET_STEP;
    struct virtio_vsock_hdr h = guest_header(s, op);

    h.len = n;
    h.buf_alloc = CREDIT;
    h.fwd_cnt = s->got;
    s->got_told = s->got;
    s->sent += n;
    memcpy(at, &h, sizeof h);
    q->desc[head] = (struct vring_desc){guest_address(&g, at), sizeof h, VRING_DESC_F_NEXT,
                                        (uint16_t)(head + 1)};
    q->desc[head + 1] = (struct vring_desc){guest_address(&g, at + sizeof h), n, 0, 0};
    guest_offer(&g, q, head);
}

static void
guest_trip(struct guest_stream *s)
{
    const uint32_t before = s->got;

    send_packet(s, VIRTIO_VSOCK_OP_RW, 1);
    while (s->got == before)
        (void)take_packet(s);
}

static void
guest_send_bulk(struct guest_stream *s)
{
    for (uint64_t left = BULK; left > 0;) {
        const uint32_t unread = s->sent - s->host_read;
        uint32_t n = unread < s->host_buffer ? s->host_buffer - unread : 0;

        n = n < GUEST_TX_BYTES ? n : GUEST_TX_BYTES;
        n = n < left ? n : (uint32_t)left;
        if (n > 0)
            send_packet(s, VIRTIO_VSOCK_OP_RW, n);
        left -= n;
        if (n == 0 || guest_has_packet(&g))
            (void)take_packet(s);
    }
}

static void
guest_take_bulk(struct guest_stream *s)
{
    const uint32_t before = s->got;

    send_packet(s, VIRTIO_VSOCK_OP_CREDIT_UPDATE, 0);
    while (s->got - before < BULK) {
        (void)take_packet(s);
        if (s->got - s->got_told >= CREDIT / 4)
            send_packet(s, VIRTIO_VSOCK_OP_CREDIT_UPDATE, 0);
    }
}

/* ---- the questions --------------------------------------------------------------------------- */

static int
compare_times(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* The median of many round trips of one byte, in microseconds. */
static double
trip_once(int fd, struct guest_stream *s, int host)
{
    static uint64_t times[TRIPS];
    const pthread_t t = start_host(echo_bytes, host);
    char byte = 'x';

    for (int i = 0; i < TRIPS; i++) {
        const uint64_t start = hed_now_ns();

        if (s)
            guest_trip(s);
        else
            must(write(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1, "trip");
        times[i] = hed_now_ns() - start;
    }
    (void)pthread_join(t, NULL);
    qsort(times, TRIPS, sizeof *times, compare_times);
    return (double)times[TRIPS / 2] / 1e3;
}

static double
round_trip(int fd, struct guest_stream *s, int host)
{
    double best = trip_once(fd, s, host);

    for (int i = 1; i < ROUNDS; i++) {
        const double us = trip_once(fd, s, host);

        best = us < best ? us : best;
    }
    return best;
}

/* GB/s of one direction. */
static double
bulk_once(int fd, struct guest_stream *s, int host, bool to_host)
{
    const uint64_t start = hed_now_ns();
    const pthread_t t = start_host(to_host ? take_bulk : send_bulk, host);

    if (!s && to_host)
        (void)send_bulk((void *)(intptr_t)fd);
    else if (!s)
        (void)take_bulk((void *)(intptr_t)fd);
    else if (to_host)
        guest_send_bulk(s);
    else
        guest_take_bulk(s);
    (void)pthread_join(t, NULL);
    return (double)BULK / (double)(hed_now_ns() - start);
}

static double
bulk_rate(int fd, struct guest_stream *s, int host, bool to_host)
{
    double best = 0;

    for (int i = 0; i < ROUNDS; i++) {
        const double rate = bulk_once(fd, s, host, to_host);

        best = rate > best ? rate : best;
    }
    return best;
}

static void
print_pair(const char *what, const char *unit, double socket, double bridge)
{
    printf("%s_socket %.2f %s\n%s_bridge %.2f %s\n%s_x %.2f x\n", what, socket, unit, what, bridge,
           unit, what, bridge / socket);
}

int
main(void)
{
    int pair[2], hosts[3];

    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "socketpair");
    guest_begin(&g, &(struct guest_how){.confined = true});
    for (uint32_t i = 0; i < 3; i++) {
        hosts[i] = guest_connect(&g, i);
        must(hosts[i] >= 0, "connect");
    }
    print_pair("round_trip", "us", round_trip(pair[0], NULL, pair[1]),
               round_trip(-1, &g.streams[0], hosts[0]));
    print_pair("to_host", "GB/s", bulk_rate(pair[0], NULL, pair[1], true),
               bulk_rate(-1, &g.streams[1], hosts[1], true));
    print_pair("to_guest", "GB/s", bulk_rate(pair[0], NULL, pair[1], false),
               bulk_rate(-1, &g.streams[2], hosts[2], false));
    return guest_end(&g) == 0 ? 0 : 1;
}
