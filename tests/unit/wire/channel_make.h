/* Two ends of a channel in one process, over each transport, and messages that can be checked. */
#pragma once

#include "harness/unit.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/sanitize.h"
#include "remote/wire/channel/channel.h"
#include "remote/wire/channel/shm.h"
#include "remote/wire/window.h"

enum over { OVER_SHM, OVER_WINDOW, OVER_UNIX, OVER_TCP, OVERS };

struct pair {
    struct hed_channel *client, *worker;
};

static inline void
tcp_pair(int *fds)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &size), 0);
    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fds[0], (struct sockaddr *)&a, sizeof a), 0);
    fds[1] = accept(listener, NULL, NULL);
    assert_true(fds[1] >= 0);
    close(listener);
}

static inline void
make_conns(enum over over, struct hed_conn **conns)
{
    static const struct hed_tls none = {.insecure = true};
    struct hed_why why;
    int fds[2];

    if (over == OVER_TCP)
        tcp_pair(fds);
    else
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(hed_conn_accept(fds[i], &none, PATIENCE_MS, &conns[i], &why), 0);
}

static inline bool
in_memory(enum over over)
{
    return over == OVER_SHM || over == OVER_WINDOW;
}

#define WINDOW_BYTES (UINT64_C(32) << 20)

static inline uint64_t
take_first_piece(void *arg, uint64_t bytes)
{
    return bytes <= WINDOW_BYTES - HED_WINDOW_UNIT ? HED_WINDOW_UNIT : 0;
}

static inline void
give_no_piece(void *arg, uint64_t offset, uint64_t bytes)
{
}

struct half {
    struct hed_conn *conn;
    struct hed_channel *channel;
};

static inline void *
make_client_half(void *arg)
{
    struct half *h = arg;

    return (void *)(intptr_t)hed_channel_create(h->conn, &hed_channel_window, &h->channel, NULL);
}

/* The two sides talk to each other, so each has a thread. */
static inline struct pair
make_window_pair(void)
{
    static struct hed_window window = {.fd = -1, .take = take_first_piece, .give = give_no_piece};
    struct hed_conn *conns[2];
    struct hed_why why = {""};
    struct pair p = {NULL, NULL};
    void *result = NULL;
    pthread_t thread;

    if (window.fd < 0)
        window = (struct hed_window){.fd = memfd_create("window", MFD_CLOEXEC),
                                     .size = WINDOW_BYTES,
                                     .take = take_first_piece,
                                     .give = give_no_piece};
    assert_int_equal(ftruncate(window.fd, WINDOW_BYTES), 0);
    make_conns(OVER_UNIX, conns);
    hed_conn_set_window(conns[0], &window);
    hed_conn_set_window(conns[1], &window);

    struct half client = {.conn = conns[0]};

    assert_int_equal(pthread_create(&thread, NULL, make_client_half, &client), 0);
    assert_int_equal(hed_channel_accept(conns[1], &hed_channel_window, &p.worker, &why), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_null(result);
    p.client = client.channel;
    assert_ptr_equal(p.client->ops, &hed_channel_window);
    assert_ptr_equal(p.worker->ops, &hed_channel_window);
    return p;
}

static inline struct pair
make_pair(enum over over)
{
    struct hed_conn *conns[2];
    struct hed_why why = {""};
    struct pair p;
    const struct hed_channel_ops *ops = over == OVER_SHM ? &hed_channel_shm : &hed_channel_stream;

    if (over == OVER_WINDOW)
        return make_window_pair();

    make_conns(over, conns);
    assert_int_equal(hed_channel_create(conns[0], ops, &p.client, &why), 0);
    assert_int_equal(hed_channel_accept(conns[1], ops, &p.worker, &why), 0);
    return p;
}

/* From now on the clock does not end a sleep on shared memory, so a sleep that only the clock would
 * end runs into the alarm. */
static inline void
sleep_until_woken(struct hed_channel *ch)
{
    if (hed_channel_shares(ch)) {
        hed_shm_of(ch)->in.waiter.park_ms = 10 * PATIENCE_MS;
        hed_shm_of(ch)->out.waiter.park_ms = 10 * PATIENCE_MS;
    }
    alarm(PATIENCE_S);
}

static inline void
free_pair(struct pair *p)
{
    hed_channel_free(p->client);
    hed_channel_free(p->worker);
}

static inline uint32_t
next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

/* The bytes after the head follow from the number. If there are many, only some are checked. */
static inline uint8_t
pattern(uint64_t number, uint64_t i)
{
    return (uint8_t)(number * 31 + i * 7 + i / 251);
}

static inline void
fill_pattern(uint8_t *p, size_t n, uint64_t number)
{
    for (size_t i = 0; i < n; i++)
        p[i] = pattern(number, i);
}

static inline bool
has_pattern(const uint8_t *p, size_t n, uint64_t number, uint64_t first)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != pattern(number, first + i))
            return false;
    return true;
}

static inline int
send_one(struct hed_channel *ch, uint64_t number, uint32_t size, uint64_t bulk, bool urgent)
{
    struct hed_msg *m = hed_channel_begin(ch, size);

    if (!m)
        return HED_EIO;
    *m = (struct hed_msg){.size = size, .kind = HED_MSG_PING, .number = number, .bulk = bulk};
    fill_pattern((uint8_t *)(m + 1), size - sizeof *m, number);
    return hed_channel_end(ch, size, urgent);
}

static inline bool
is_right(const struct hed_msg *m, uint64_t number, uint32_t size)
{
    return m->size == size && m->kind == HED_MSG_PING && m->number == number &&
           (uintptr_t)m % HED_MSG_ALIGN == 0 &&
           has_pattern((const uint8_t *)(m + 1), size - sizeof *m, number, 0);
}

/* Sanitizers make everything ten times slower. */
#define SLOWER (HED_SANITIZED ? 20 : 1)
