/* A guest and its QEMU. See guest.h. */
#include "unit/vm/guest.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/sanitize.h"
#include "harness/patience.h"
#include "remote/server/sandbox/sandbox.h"
#include "remote/wire/conn.h"
#include "unit/vm/must.h"

/* A sanitizer's shadow is private memory, too. */
#define HAS_MEMORY_LIMIT (!HED_SANITIZED)

#define HEADER sizeof(struct virtio_vsock_hdr)

/* Where things lie in the memory. The border between its two regions is in the middle, and goes
 * through a buffer for sending. */
#define QUEUE_AT(n) ((n)*8192u)
#define TABLE_AT(n) (16384u + (n)*4096u)
#define RX_AT (1u << 20)
#define RX_STEP 8192u
#define TX_AT ((8u << 20) - 100000u)
#define TX_STEP (68u << 10)

uint8_t
guest_pattern(uint32_t port, uint64_t offset)
{
    return (uint8_t)(offset * 31 + (offset >> 8) * 7 + (offset >> 16) + port);
}

/* ---- QEMU ------------------------------------------------------------------------------------ */

void
guest_say_raw(struct guest *g, const void *p, size_t n, const int *fds, int count)
{
    struct iovec part = {(void *)p, n};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(64 * sizeof(int))];
    } control = {0};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

    if (count > 0) {
        m.msg_control = &control;
        m.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
        memcpy(CMSG_DATA(&control.head), fds, (size_t)count * sizeof(int));
    }
    (void)!sendmsg(g->vhost, &m, MSG_NOSIGNAL);
}

void
guest_say(struct guest *g, uint32_t request, uint32_t flags, const void *p, uint32_t size,
          const int *fds, int count)
{
    struct {
        struct hed_vhost_head head;
        uint8_t payload[HED_VHOST_PAYLOAD];
    } m = {.head = {request, flags, size}};

    must(size <= sizeof m.payload);
    if (size > 0)
        memcpy(m.payload, p, size);
    guest_say_raw(g, &m, sizeof m.head + size, fds, count);
}

uint32_t
guest_hear(struct guest *g, void *p, uint32_t size)
{
    struct hed_vhost_head h;

    must(recv(g->vhost, &h, sizeof h, MSG_WAITALL) == sizeof h);
    must(h.flags == 5 && h.size <= size);
    must(h.size == 0 || recv(g->vhost, p, h.size, MSG_WAITALL) == (ssize_t)h.size);
    return h.size;
}

void
guest_say_number(struct guest *g, uint32_t request, uint64_t n)
{
    guest_say(g, request, 1, &n, sizeof n, NULL, 0);
}

uint64_t
guest_ask_number(struct guest *g, uint32_t request)
{
    uint64_t n;

    guest_say(g, request, 1, NULL, 0, NULL, 0);
    must(guest_hear(g, &n, sizeof n) == sizeof n);
    return n;
}

void
guest_say_state(struct guest *g, uint32_t request, uint32_t queue, uint32_t number)
{
    const uint32_t s[2] = {queue, number};

    guest_say(g, request, 1, s, sizeof s, NULL, 0);
}

/* Two regions of one file, and an answer that it was done. */
void
guest_say_memory(struct guest *g)
{
    const struct {
        uint32_t count, padding;
        struct hed_guest_place places[2];
    } m = {2,
           0,
           {{GUEST_BASE, GUEST_RAM / 2, GUEST_USER, 0},
            {GUEST_BASE + GUEST_RAM / 2, GUEST_RAM / 2, GUEST_USER + GUEST_RAM, GUEST_RAM / 2}}};
    uint64_t done = 1;

    guest_say(g, SET_MEM_TABLE, 9, &m, sizeof m, (int[]){g->memory, g->memory}, 2);
    must(guest_hear(g, &done, sizeof done) == sizeof done && done == 0);
}

struct guest_queue *
guest_queue(struct guest *g, uint32_t number)
{
    return number == 0 ? &g->rx : &g->tx;
}

void
guest_start_queue(struct guest *g, uint32_t number, uint16_t base)
{
    const struct guest_queue *q = guest_queue(g, number);
    const uint64_t queue = number;
    const struct {
        uint32_t queue, flags;
        uint64_t desc, used, avail, log;
    } address = {number,
                 0,
                 GUEST_USER + (uint64_t)((uint8_t *)q->desc - g->ram),
                 GUEST_USER + (uint64_t)((uint8_t *)q->used - g->ram),
                 GUEST_USER + (uint64_t)((uint8_t *)q->avail - g->ram),
                 0};

    guest_say_state(g, SET_VRING_NUM, number, GUEST_QUEUE);
    guest_say_state(g, SET_VRING_BASE, number, base);
    guest_say(g, SET_VRING_ADDR, 1, &address, sizeof address, NULL, 0);
    guest_say(g, SET_VRING_KICK, 1, &queue, sizeof queue, &q->kick, 1);
    guest_say(g, SET_VRING_CALL, 1, &queue, sizeof queue, &q->call, 1);
    guest_say_state(g, SET_VRING_ENABLE, number, 1);
}

uint32_t
guest_stop_queue(struct guest *g, uint32_t number)
{
    uint32_t s[2];

    guest_say_state(g, GET_VRING_BASE, number, 0);
    must(guest_hear(g, s, sizeof s) == sizeof s && s[0] == number);
    return s[1];
}

static void *
run_bridge(void *arg)
{
    struct hed_bridge_start *s = arg;
    const int result = hed_bridge_run(s);

    free(s);
    return (void *)(intptr_t)result;
}

/* In a process of its own. The steps of the sandbox that any user can take. */
static _Noreturn void
run_confined(struct guest *g, const struct hed_bridge_start *s)
{
    struct hed_sandbox box = {
        .steps = UINT32_C(1) << HED_STEP_PRIVILEGES | UINT32_C(1) << HED_STEP_LIMITS |
                 UINT32_C(1) << HED_STEP_CALLS,
        .memory = HAS_MEMORY_LIMIT,
    };
    struct hed_why why = {""};

    close(g->vhost);
    close(g->listener);
    if (hed_bridge_confine(&box, s, &why) != 0) {
        fprintf(stderr, "%s\n", why.text);
        _exit(1);
    }
    _exit(-hed_bridge_run(s));
}

static void
queue_init(struct guest *g, struct guest_queue *q, uint32_t number)
{
    uint8_t *at = g->ram + QUEUE_AT(number);

    q->desc = (void *)at;
    q->avail = (void *)(at + GUEST_QUEUE * sizeof *q->desc);
    q->used = (void *)(at + 4096);
    q->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    q->call = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    must(q->kick >= 0 && q->call >= 0);
    for (uint16_t i = 0; i < GUEST_SLOTS; i++)
        q->free[q->free_count++] = i;
}

void
guest_open(struct guest *g, const struct guest_how *how)
{
    static const struct guest_how plain = {0};
    struct hed_bridge_start *s = calloc(1, sizeof *s);
    int vhost[2], listener[2];

    *g = (struct guest){.how = how ? *how : plain};
    must(s && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, vhost) == 0);
    must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, listener) == 0);
    g->vhost = vhost[0];
    g->listener = listener[0];
    g->memory = memfd_create("guest", MFD_CLOEXEC);
    must(g->memory >= 0 && ftruncate(g->memory, GUEST_RAM) == 0);
    g->ram = mmap(NULL, GUEST_RAM, PROT_READ | PROT_WRITE, MAP_SHARED, g->memory, 0);
    must(g->ram != MAP_FAILED);
    queue_init(g, &g->rx, 0);
    queue_init(g, &g->tx, 1);
    for (uint32_t i = 0; i < GUEST_STREAMS; i++)
        g->streams[i].port = GUEST_FIRST_PORT + i;
    *s = (struct hed_bridge_start){
        .vhost = vhost[1],
        .listener = listener[1],
        .cid = GUEST_CID,
        .port = GUEST_PORT,
        .silent_ms = g->how.silent_ms,
        .connections = g->how.connections ? g->how.connections : GUEST_STREAMS,
    };
    if (!g->how.confined) {
        must(pthread_create(&g->bridge, NULL, run_bridge, s) == 0);
        return;
    }
    g->process = fork();
    must(g->process >= 0);
    if (g->process == 0)
        run_confined(g, s);
    close(vhost[1]);
    close(listener[1]);
    free(s);
}

/* ---- the driver ------------------------------------------------------------------------------ */

uint64_t
guest_address(const struct guest *g, const void *p)
{
    return GUEST_BASE + (uint64_t)((const uint8_t *)p - g->ram);
}

void
guest_offer(struct guest *g, struct guest_queue *q, uint16_t head)
{
    const uint64_t one = 1;
    const uint16_t *event = (const uint16_t *)&q->used->ring[GUEST_QUEUE];
    bool kick;

    q->avail->ring[q->next % GUEST_QUEUE] = head;
    q->next++;
    __atomic_store_n(&q->avail->idx, q->next, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (g->how.no_events)
        kick = !(__atomic_load_n(&q->used->flags, __ATOMIC_RELAXED) & VRING_USED_F_NO_NOTIFY);
    else
        kick = vring_need_event(__atomic_load_n(event, __ATOMIC_RELAXED), q->next,
                                (uint16_t)(q->next - 1));
    if (kick)
        must(write(q->kick, &one, sizeof one) == sizeof one);
}

static uint8_t *
slot_memory(struct guest *g, const struct guest_queue *q, uint16_t slot)
{
    return q == &g->rx ? g->ram + RX_AT + slot * RX_STEP : g->ram + TX_AT + slot * TX_STEP;
}

/* Describes the slot's header and n bytes after it, directly or in a table. Returns the head. */
static uint16_t
slot_describe(struct guest *g, struct guest_queue *q, uint16_t slot, uint32_t n)
{
    const uint16_t kind = q == &g->rx ? VRING_DESC_F_WRITE : 0;
    struct vring_desc *d = q->desc + 2 * slot;
    const uint64_t at = guest_address(g, slot_memory(g, q, slot));
    uint16_t second = (uint16_t)(2 * slot + 1);

    if (g->how.indirect) {
        d = (void *)(g->ram + TABLE_AT(q == &g->tx) + slot * 2 * sizeof *d);
        q->desc[2 * slot] = (struct vring_desc){
            .addr = guest_address(g, d), .len = 2 * sizeof *d, .flags = VRING_DESC_F_INDIRECT};
        second = 1;
    }
    d[0] = (struct vring_desc){
        .addr = at, .len = HEADER, .flags = kind | VRING_DESC_F_NEXT, .next = second};
    d[1] = (struct vring_desc){.addr = at + HEADER, .len = n, .flags = kind};
    return (uint16_t)(2 * slot);
}

static void
offer_rx(struct guest *g, uint16_t slot)
{
    guest_offer(g, &g->rx, slot_describe(g, &g->rx, slot, GUEST_RX_BYTES));
}

/* Waits until the bridge has used something, with the interrupt on. */
static void
wait_used(struct guest *g, struct guest_queue *q)
{
    struct pollfd p = {.fd = q->call, .events = POLLIN};
    uint64_t count;

    for (;;) {
        if (__atomic_load_n(&q->used->idx, __ATOMIC_ACQUIRE) != q->seen)
            return;
        __atomic_store_n(&q->avail->ring[GUEST_QUEUE], q->seen, __ATOMIC_RELAXED);
        __atomic_store_n(&q->avail->flags, 0, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (__atomic_load_n(&q->used->idx, __ATOMIC_ACQUIRE) != q->seen)
            return;
        must(poll(&p, 1, PATIENCE_MS) == 1);
        (void)!read(q->call, &count, sizeof count);
        __atomic_store_n(&q->avail->flags, VRING_AVAIL_F_NO_INTERRUPT, __ATOMIC_RELAXED);
    }
}

/* The next chain that the bridge has used: its slot, and how many bytes it wrote. */
static uint16_t
take_used(struct guest_queue *q, uint32_t *written)
{
    const struct vring_used_elem *e = &q->used->ring[q->seen % GUEST_QUEUE];

    q->seen++;
    must(e->id % 2 == 0 && e->id < GUEST_QUEUE);
    *written = e->len;
    return (uint16_t)(e->id / 2);
}

void
guest_send(struct guest *g, const struct virtio_vsock_hdr *h, const void *p)
{
    struct guest_queue *q = &g->tx;
    uint32_t written;

    if (q->free_count == 0)
        wait_used(g, q);
    while (__atomic_load_n(&q->used->idx, __ATOMIC_ACQUIRE) != q->seen)
        q->free[q->free_count++] = take_used(q, &written);

    const uint16_t slot = q->free[--q->free_count];
    uint8_t *at = slot_memory(g, q, slot);

    memcpy(at, h, HEADER);
    if (h->len > 0)
        memcpy(at + HEADER, p, h->len);
    guest_offer(g, q, slot_describe(g, q, slot, h->len));
}

static void
check_data(struct guest *g, struct guest_stream *s, const uint8_t *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        must(p[i] == guest_pattern(s->port, s->got + i));
    s->got += n;
    must(s->got - s->got_told <= GUEST_BUFFER);
    if (!s->stalled && s->got - s->got_told >= GUEST_BUFFER / 4)
        guest_tell(g, s, VIRTIO_VSOCK_OP_CREDIT_UPDATE, 0);
}

static void
handle_packet(struct guest *g, const struct virtio_vsock_hdr *h, const uint8_t *p)
{
    const uint32_t n = h->dst_port - GUEST_FIRST_PORT;
    struct guest_stream *s = n < GUEST_STREAMS ? &g->streams[n] : NULL;

    must(h->dst_cid == GUEST_CID);
    if (!s || h->src_port != GUEST_PORT || h->src_cid != 2 || h->type != 1) {
        must(h->op == VIRTIO_VSOCK_OP_RST);
        g->stray_resets++;
        return;
    }
    if (h->op != VIRTIO_VSOCK_OP_RST) {
        s->host_buffer = h->buf_alloc;
        s->host_read = h->fwd_cnt;
    }
    if (h->op == VIRTIO_VSOCK_OP_RESPONSE)
        s->up = true;
    else if (h->op == VIRTIO_VSOCK_OP_RST)
        s->reset = true;
    else if (h->op == VIRTIO_VSOCK_OP_SHUTDOWN)
        s->host_shut |= h->flags;
    else if (h->op == VIRTIO_VSOCK_OP_RW)
        check_data(g, s, p, h->len);
    else if (h->op == VIRTIO_VSOCK_OP_CREDIT_UPDATE)
        s->credits++;
    else
        must(h->op == VIRTIO_VSOCK_OP_CREDIT_REQUEST);
    if (h->op == VIRTIO_VSOCK_OP_CREDIT_REQUEST) {
        s->asked++;
        if (!g->mute)
            guest_tell(g, s, VIRTIO_VSOCK_OP_CREDIT_UPDATE, 0);
    }
}

bool
guest_has_packet(struct guest *g)
{
    return __atomic_load_n(&g->rx.used->idx, __ATOMIC_ACQUIRE) != g->rx.seen;
}

struct virtio_vsock_hdr
guest_take(struct guest *g)
{
    struct virtio_vsock_hdr h;
    uint32_t written;

    wait_used(g, &g->rx);

    const uint16_t slot = take_used(&g->rx, &written);
    const uint8_t *at = slot_memory(g, &g->rx, slot);

    must(written >= HEADER);
    memcpy(&h, at, HEADER);
    must(h.len == written - HEADER && h.len <= GUEST_RX_BYTES);
    handle_packet(g, &h, at + HEADER);
    offer_rx(g, slot);
    return h;
}

/* ---- streams --------------------------------------------------------------------------------- */

struct virtio_vsock_hdr
guest_header(const struct guest_stream *s, uint16_t op)
{
    return (struct virtio_vsock_hdr){
        .src_cid = GUEST_CID,
        .dst_cid = 2,
        .src_port = s->port,
        .dst_port = GUEST_PORT,
        .type = VIRTIO_VSOCK_TYPE_STREAM,
        .op = op,
        .buf_alloc = GUEST_BUFFER,
        .fwd_cnt = s->got_told,
    };
}

void
guest_tell(struct guest *g, struct guest_stream *s, uint16_t op, uint32_t flags)
{
    if (!s->stalled)
        s->got_told = s->got;

    struct virtio_vsock_hdr h = guest_header(s, op);

    h.flags = flags;
    guest_send(g, &h, NULL);
}

int
guest_accept(struct guest *g)
{
    struct pollfd p = {.fd = g->listener, .events = POLLIN};
    struct hed_bridge_hello hello;
    int fd;

    must(poll(&p, 1, PATIENCE_MS) == 1);
    must(hed_fd_take(g->listener, &fd, 1, &hello, sizeof hello) == 0);
    must(hello.port - GUEST_FIRST_PORT < GUEST_STREAMS);
    return fd;
}

int
guest_connect(struct guest *g, uint32_t n)
{
    struct guest_stream *s = &g->streams[n];

    *s = (struct guest_stream){.port = s->port};
    guest_tell(g, s, VIRTIO_VSOCK_OP_REQUEST, 0);
    while (!s->up && !s->reset)
        (void)guest_take(g);
    return s->up ? guest_accept(g) : -1;
}

void
guest_write(struct guest *g, struct guest_stream *s, uint32_t n)
{
    static uint8_t bytes[GUEST_TX_BYTES];

    while (n > 0 && !s->reset) {
        const uint32_t unread = s->sent - s->host_read;
        const uint32_t room = unread < s->host_buffer ? s->host_buffer - unread : 0;
        struct virtio_vsock_hdr h = guest_header(s, VIRTIO_VSOCK_OP_RW);

        h.len = n < room ? n : room;
        h.len = h.len < GUEST_TX_BYTES ? h.len : GUEST_TX_BYTES;
        for (uint32_t i = 0; i < h.len; i++)
            bytes[i] = guest_pattern(s->port, s->sent + i);
        s->sent += h.len;
        n -= h.len;
        if (h.len > 0)
            guest_send(g, &h, bytes);
        if (h.len == 0 || guest_has_packet(g))
            (void)guest_take(g);
    }
}

void
guest_read_until(struct guest *g, struct guest_stream *s, uint32_t total)
{
    while (s->got < total)
        (void)guest_take(g);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

void
guest_begin(struct guest *g, const struct guest_how *how)
{
    uint64_t wanted = UINT64_C(1) << 32 | UINT64_C(1) << 30;

    guest_open(g, how);
    wanted |= g->how.no_events ? 0 : UINT64_C(1) << VIRTIO_RING_F_EVENT_IDX;
    wanted |= g->how.indirect ? UINT64_C(1) << VIRTIO_RING_F_INDIRECT_DESC : 0;
    must((guest_ask_number(g, GET_FEATURES) & wanted) == wanted);
    guest_say_number(g, SET_PROTOCOL_FEATURES, guest_ask_number(g, GET_PROTOCOL_FEATURES));
    must(guest_ask_number(g, GET_QUEUE_NUM) == 2);
    guest_say(g, SET_OWNER, 1, NULL, 0, NULL, 0);
    guest_say_number(g, SET_FEATURES, wanted);
    guest_say_memory(g);
    for (uint16_t i = 0; i < GUEST_SLOTS; i++)
        offer_rx(g, i);
    guest_start_queue(g, 0, 0);
    guest_start_queue(g, 1, 0);
}

int
guest_wait_end(struct guest *g)
{
    void *result = NULL;
    int status;

    if (g->process == 0) {
        must(pthread_join(g->bridge, &result) == 0);
    } else {
        must(waitpid(g->process, &status, 0) == g->process && WIFEXITED(status));
        result = (void *)(intptr_t)-WEXITSTATUS(status);
    }
    if (g->vhost >= 0)
        close(g->vhost);
    close(g->listener);
    close(g->memory);
    munmap(g->ram, GUEST_RAM);
    for (uint32_t i = 0; i < 2; i++) {
        close(guest_queue(g, i)->kick);
        close(guest_queue(g, i)->call);
    }
    return (int)(intptr_t)result;
}

int
guest_end(struct guest *g)
{
    close(g->vhost);
    g->vhost = -1;
    return guest_wait_end(g);
}
