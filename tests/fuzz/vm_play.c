/* A small guest and its QEMU. See vm_play.h. */
#include "fuzz/vm_play.h"

#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "remote/wire/conn.h"

#define TURNS 8 /* after each event; more work than that waits for the next one */
#define FDS 16

uint64_t
play_number(struct play_input *in, size_t n)
{
    uint64_t v = 0;

    (void)play_bytes(in, &v, n < sizeof v ? n : sizeof v);
    return v;
}

size_t
play_bytes(struct play_input *in, void *to, size_t n)
{
    const size_t left = (size_t)(in->end - in->at);

    n = n < left ? n : left;
    if (n > 0)
        memcpy(to, in->at, n);
    in->at += n;
    return n;
}

void
play_begin(struct play *p)
{
    static int memory = -1, event;
    static uint8_t *ram;
    int vhost[2], listener[2];

    if (memory < 0) {
        memory = memfd_create("guest", MFD_CLOEXEC);
        event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        must(memory >= 0 && event >= 0 && ftruncate(memory, PLAY_RAM) == 0);
        ram = mmap(NULL, PLAY_RAM, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
        must(ram != MAP_FAILED);
    }
    memset(ram, 0, PLAY_RAM);
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, vhost) == 0);
    must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, listener) == 0);
    *p = (struct play){
        .vhost = vhost[0], .listener = listener[0], .memory = memory, .ram = ram, .event = event};
    for (int i = 0; i < PLAY_HOSTS; i++)
        p->hosts[i] = -1;

    const struct hed_bridge_start start = {.vhost = vhost[1],
                                           .listener = listener[1],
                                           .cid = PLAY_CID,
                                           .port = PLAY_PORT,
                                           .connections = PLAY_HOSTS};

    must(hed_bridge_open(&start, &p->bridge) == 0);
}

void
play_end(struct play *p)
{
    hed_bridge_close(p->bridge);
    (void)close(p->vhost);
    (void)close(p->listener);
    for (int i = 0; i < PLAY_HOSTS; i++)
        if (p->hosts[i] >= 0)
            (void)close(p->hosts[i]);
}

void
play_say_raw(struct play *p, const void *bytes, size_t n, int fd, int fds)
{
    struct iovec part = {(void *)bytes, n};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(FDS * sizeof(int))];
    } control = {0};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

    fds = fds < FDS ? fds : FDS;
    if (n == 0)
        return;
    if (fds > 0) {
        m.msg_control = &control;
        m.msg_controllen = CMSG_SPACE((size_t)fds * sizeof(int));
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN((size_t)fds * sizeof(int));
        for (int i = 0; i < fds; i++)
            memcpy(CMSG_DATA(&control.head) + (size_t)i * sizeof fd, &fd, sizeof fd);
    }
    (void)!sendmsg(p->vhost, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void
play_say(struct play *p, uint32_t request, uint32_t flags, const void *payload, uint32_t n, int fd,
         int fds)
{
    struct {
        struct hed_vhost_head head;
        uint8_t payload[2 * HED_VHOST_PAYLOAD];
    } m = {.head = {request, flags, n}};

    must(n <= sizeof m.payload);
    if (n > 0)
        memcpy(m.payload, payload, n);
    play_say_raw(p, &m, sizeof m.head + n, fd, fds);
}

/* The listener takes new connections, and QEMU its answers. */
static void
take_results(struct play *p)
{
    char answers[1024];
    struct hed_bridge_hello hello;
    int fd;

    while (recv(p->vhost, answers, sizeof answers, MSG_DONTWAIT) > 0)
        ;
    while (hed_fd_take(p->listener, &fd, 1, &hello, sizeof hello) == 0) {
        int *place = NULL;

        for (int i = 0; i < PLAY_HOSTS && !place; i++)
            place = p->hosts[i] < 0 ? &p->hosts[i] : NULL;
        if (place)
            *place = fd;
        else
            (void)close(fd);
    }
}

void
play_turn(struct play *p)
{
    struct hed_why why = {""};

    for (int i = 0; i < TURNS && !p->ended; i++) {
        const int result = hed_bridge_turn(p->bridge, 0, &why);

        must(result == 0 || result == 1 || why.text[0] != '\0');
        must(result >= 0 || result == HED_EFORMAT || result == HED_ENOTSUP);
        p->ended = result != 0;
    }
    take_results(p);
}
