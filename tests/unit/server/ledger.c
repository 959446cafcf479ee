/* The ledger of leases, and the lease sockets over which workers ask for them: what is granted
 * never exceeds the total, and what a worker says changes nothing but its own leases. */
#include "harness/unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "remote/server/lease_socket.h"
#include "remote/server/listener/listener.h"

#define MIB (UINT64_C(1) << 20)

static struct hed_server_options options;

/* A listener with two workers; lease_sockets[i] is worker i's end. */
struct bench {
    struct hed_server server;
    int lease_sockets[2];
};

static int
setup(void **state)
{
    struct bench *b = calloc(1, sizeof *b);

    if (!b)
        return -1;
    options.memory = 0;
    b->server.options = &options;
    b->server.epoll = epoll_create1(0);
    b->server.probe = -1;
    for (int i = 0; i < 2; i++) {
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0)
            return -1;
        b->server.children[i].pid = 1234 + i;
        b->server.children[i].lease_socket = pair[0];
        b->lease_sockets[i] = pair[1];
        hed_lease_socket_open(&b->server, &b->server.children[i]);
    }
    *state = b;
    return 0;
}

static int
teardown(void **state)
{
    struct bench *b = *state;

    for (int i = 0; i < 2; i++) {
        hed_lease_socket_close(&b->server, &b->server.children[i]);
        (void)close(b->lease_sockets[i]);
    }
    (void)close(b->server.epoll);
    free(b);
    return 0;
}

static void
ledger_grants_what_there_is(void **state)
{
    struct bench *b = *state;
    struct hed_ledger *l = &b->server.ledger;

    /* The total is not known. */
    assert_int_equal(hed_ledger_take(l, 0, 0, 100 * MIB, 1, 0), 100 * MIB);
    hed_ledger_give(l, 0, 0, 100 * MIB);

    l->total[0] = 10 * MIB;
    assert_int_equal(hed_ledger_take(l, 0, 0, 6 * MIB, 6 * MIB, 0), 6 * MIB);
    assert_int_equal(hed_ledger_obtainable(l, 1, 0, 0), 4 * MIB);
    assert_int_equal(hed_ledger_obtainable(l, 0, 0, 0), 10 * MIB);
    assert_int_equal(hed_ledger_take(l, 1, 0, 6 * MIB, 4 * MIB, 0), 4 * MIB);
    assert_int_equal(hed_ledger_take(l, 1, 0, 6 * MIB, 1, 0), 0);
    hed_ledger_give(l, 0, 0, MIB);
    assert_int_equal(hed_ledger_take(l, 1, 0, 6 * MIB, 2 * MIB, 0), 0);
    assert_int_equal(hed_ledger_take(l, 1, 0, 6 * MIB, MIB, 0), MIB);
    assert_int_equal(hed_ledger_leased(l, 0), 10 * MIB);
    assert_int_equal(hed_ledger_leased(l, 1), 0);
    hed_ledger_clear(l, 1);
    assert_int_equal(hed_ledger_leased(l, 0), 5 * MIB);
}

/* Clients that ask for much more than they need must not keep out those that come later. */
static void
ledger_has_something_for_everybody(void **state)
{
    enum { CLIENTS = 400 };
    const uint64_t all = 16384 * MIB;
    struct bench *b = *state;
    struct hed_ledger *l = &b->server.ledger;

    l->total[0] = all;
    for (uint32_t i = 0; i < CLIENTS; i++)
        assert_true(hed_ledger_take(l, i, 0, all, 6 * MIB, 0) >= 6 * MIB);
    /* What they have in advance is less than what is left. */
    const uint64_t advance = hed_ledger_leased(l, 0) - CLIENTS * 6 * MIB;
    const uint64_t rest = all - hed_ledger_leased(l, 0);

    assert_true(advance < rest);
    /* Whoever needs all of the rest gets it. */
    assert_int_equal(hed_ledger_take(l, CLIENTS, 0, rest, rest, 0), rest);
    /* A client that needs little at once gets a little more than that. */
    hed_ledger_clear(l, CLIENTS);
    assert_true(hed_ledger_take(l, CLIENTS, 0, 64 * MIB, MIB, 0) > MIB);
}

static void
ledger_keeps_memory_for_spares(void **state)
{
    struct bench *b = *state;
    struct hed_ledger *l = &b->server.ledger;

    l->total[0] = 10 * MIB;
    l->kept[0] = 4 * MIB;
    assert_int_equal(hed_ledger_obtainable(l, 0, 0, 0), 6 * MIB);
    assert_int_equal(hed_ledger_take(l, 0, 0, 10 * MIB, 7 * MIB, 0), 0);
    assert_int_equal(hed_ledger_take(l, 0, 0, 10 * MIB, 6 * MIB, 0), 6 * MIB);
    assert_int_equal(hed_ledger_take(l, 1, 0, MIB, 1, 0), 0);
    l->kept[0] = 20 * MIB; /* more than there is: leases that exist stay */
    assert_int_equal(hed_ledger_obtainable(l, 0, 0, 0), 6 * MIB);
    assert_int_equal(hed_ledger_obtainable(l, 1, 0, 0), 0);
}

static void
ledger_keeps_a_workers_limit(void **state)
{
    struct bench *b = *state;
    struct hed_ledger *l = &b->server.ledger;

    l->total[1] = 100;
    assert_int_equal(hed_ledger_take(l, 0, 1, 50, 31, 30), 0);
    assert_int_equal(hed_ledger_take(l, 0, 1, 50, 30, 30), 30);
    assert_int_equal(hed_ledger_obtainable(l, 0, 1, 30), 30);
    assert_int_equal(hed_ledger_take(l, 0, 1, 1, 1, 30), 0);
    assert_int_equal(hed_ledger_take(l, 0, 1, 1, 1, 10), 0);
    assert_int_equal(hed_ledger_take(l, 0, 1, 50, 50, 60), 0);
    assert_int_equal(hed_ledger_take(l, 0, 1, 50, 30, 60), 30);
    hed_ledger_give(l, 0, 1, 1000);
    assert_int_equal(hed_ledger_leased(l, 1), 0);
}

static void
ledger_survives_nonsense(void **state)
{
    struct bench *b = *state;
    struct hed_ledger *l = &b->server.ledger;

    l->total[0] = 100;
    assert_int_equal(hed_ledger_take(l, 0, -1, 1, 1, 0), 0);
    assert_int_equal(hed_ledger_take(l, 0, HED_LEASE_SOCKET_PLACES, 1, 1, 0), 0);
    assert_int_equal(hed_ledger_take(l, HED_LEDGER_WORKERS, 0, 1, 1, 0), 0);
    assert_int_equal(hed_ledger_take(l, 0, 0, 0, 0, 0), 0);
    assert_int_equal(hed_ledger_take(l, 0, 0, 1, 2, 0), 0);
    assert_int_equal(hed_ledger_take(l, 0, 0, UINT64_MAX, UINT64_MAX, 0), 0);
    assert_int_equal(hed_ledger_take(l, 0, 0, UINT64_MAX, 100, 0), 100);
    assert_int_equal(hed_ledger_take(l, 1, 0, UINT64_MAX, 1, 0), 0);
    hed_ledger_give(l, 0, 99, 1);
    hed_ledger_give(l, 1, 0, UINT64_MAX);
    assert_int_equal(hed_ledger_leased(l, 0), 100);
    /* Without a total, sums do not overflow. */
    l->total[0] = 0;
    assert_int_equal(hed_ledger_take(l, 1, 0, UINT64_MAX, UINT64_MAX - 100, 0), UINT64_MAX - 100);
    assert_int_equal(hed_ledger_take(l, 1, 0, 1, 1, 0), 0);
}

/* Pinned memory has a limit for each worker, and one for all. */
static void
ledger_has_a_place_for_pinned_memory(void **state)
{
    struct bench *b = *state;
    struct hed_ledger *l = &b->server.ledger;

    l->total[HED_LEASE_SOCKET_HOST] = 100;
    assert_int_equal(hed_ledger_take(l, 0, HED_LEASE_SOCKET_HOST, 60, 60, 50), 0);
    assert_int_equal(hed_ledger_take(l, 0, HED_LEASE_SOCKET_HOST, 60, 60, 0), 60);
    assert_int_equal(hed_ledger_take(l, 1, HED_LEASE_SOCKET_HOST, 60, 60, 0), 0);
    hed_ledger_clear(l, 0);
    assert_int_equal(hed_ledger_take(l, 1, HED_LEASE_SOCKET_HOST, 60, 60, 0), 60);
}

/* ---- lease sockets --------------------------------------------------------------------------- */

static void
put_ask(struct bench *b, int worker, uint32_t kind, int device, uint64_t bytes)
{
    const struct hed_lease_socket_ask ask = {
        .kind = kind, .device = device, .bytes = bytes, .least = 1};

    assert_int_equal(send(b->lease_sockets[worker], &ask, sizeof ask, MSG_DONTWAIT), sizeof ask);
}

static uint64_t
ask(struct bench *b, int worker, uint32_t kind, int device, uint64_t bytes)
{
    struct hed_lease_socket_answer answer;

    put_ask(b, worker, kind, device, bytes);
    hed_lease_socket_ready(&b->server, &b->server.children[worker]);
    assert_int_equal(recv(b->lease_sockets[worker], &answer, sizeof answer, MSG_DONTWAIT),
                     sizeof answer);
    return answer.bytes;
}

static void
lease_socket_answers_from_the_book(void **state)
{
    struct bench *b = *state;

    b->server.ledger.total[0] = 100;
    options.memory = 60; /* the listener's limit: the worker cannot choose one */
    assert_int_equal(ask(b, 0, HED_LEASE_SOCKET_OBTAINABLE, 0, 0), 60);
    assert_int_equal(ask(b, 0, HED_LEASE_SOCKET_TAKE, 0, 80), 60);
    assert_int_equal(ask(b, 1, HED_LEASE_SOCKET_TAKE, 0, 80), 40);
    assert_int_equal(ask(b, 0, HED_LEASE_SOCKET_OTHERS, 0, 0), 40);
    assert_int_equal(ask(b, 1, HED_LEASE_SOCKET_OTHERS, 0, 0), 60);
    assert_int_equal(ask(b, 0, HED_LEASE_SOCKET_GIVE, 0, 1000), 0);
    assert_int_equal(ask(b, 1, HED_LEASE_SOCKET_OBTAINABLE, 0, 0), 60);
    assert_int_equal(hed_ledger_leased(&b->server.ledger, 0), 40);
}

static void
lease_socket_survives_nonsense(void **state)
{
    struct bench *b = *state;

    b->server.ledger.total[0] = 100;
    assert_int_equal(ask(b, 0, HED_LEASE_SOCKET_TAKE, -1, 5), 0);
    assert_int_equal(ask(b, 0, HED_LEASE_SOCKET_TAKE, INT32_MAX, 5), 0);
    assert_int_equal(ask(b, 0, HED_LEASE_SOCKET_OTHERS, INT32_MAX, 5), 0);
    assert_int_equal(ask(b, 0, 77, 0, 5), 0);
    assert_int_equal(ask(b, 0, HED_LEASE_SOCKET_GIVE, INT32_MIN, 5), 0);
    assert_int_equal(hed_ledger_leased(&b->server.ledger, 0), 0);
    /* A packet of another size ends the conversation; the other worker's goes on. */
    assert_int_equal(send(b->lease_sockets[0], "x", 1, MSG_DONTWAIT), 1);
    hed_lease_socket_ready(&b->server, &b->server.children[0]);
    assert_int_equal(b->server.children[0].lease_socket, -1);
    assert_int_equal(ask(b, 1, HED_LEASE_SOCKET_TAKE, 0, 80), 80);
}

/* A worker that asks and never reads the answers: the listener does not wait for it. */
static void
lease_socket_of_a_worker_that_does_not_listen_is_closed(void **state)
{
    struct bench *b = *state;

    for (int i = 0; i < 100000 && b->server.children[0].lease_socket >= 0; i++) {
        put_ask(b, 0, HED_LEASE_SOCKET_OBTAINABLE, 0, 0);
        hed_lease_socket_ready(&b->server, &b->server.children[0]);
    }
    assert_int_equal(b->server.children[0].lease_socket, -1);
}

static void
lease_sockets_wait_for_the_probe(void **state)
{
    struct bench *b = *state;
    const uint64_t total[HED_LEASE_SOCKET_DEVICES] = {100, 200};
    struct epoll_event e;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    hed_lease_socket_close(&b->server, &b->server.children[1]);
    (void)close(b->lease_sockets[1]);
    b->server.probe = ends[0];

    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    b->server.children[1].lease_socket = pair[0];
    b->lease_sockets[1] = pair[1];
    hed_lease_socket_open(&b->server, &b->server.children[1]);
    put_ask(b, 1, HED_LEASE_SOCKET_TAKE, 1, 500);
    assert_int_equal(epoll_wait(b->server.epoll, &e, 1, 0), 0);
    assert_int_equal(write(ends[1], total, sizeof total), sizeof total);
    hed_lease_socket_close(&b->server, &b->server.children[0]);
    hed_probe_ready(&b->server);
    assert_int_equal(epoll_wait(b->server.epoll, &e, 1, 0), 1);
    assert_ptr_equal(e.data.ptr, &b->server.children[1]);
    hed_lease_socket_ready(&b->server, e.data.ptr);
    assert_int_equal(hed_ledger_leased(&b->server.ledger, 1), 200);
    (void)close(ends[1]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(ledger_grants_what_there_is, setup, teardown),
    cmocka_unit_test_setup_teardown(ledger_has_something_for_everybody, setup, teardown),
    cmocka_unit_test_setup_teardown(ledger_keeps_memory_for_spares, setup, teardown),
    cmocka_unit_test_setup_teardown(ledger_keeps_a_workers_limit, setup, teardown),
    cmocka_unit_test_setup_teardown(ledger_survives_nonsense, setup, teardown),
    cmocka_unit_test_setup_teardown(ledger_has_a_place_for_pinned_memory, setup, teardown),
    cmocka_unit_test_setup_teardown(lease_socket_answers_from_the_book, setup, teardown),
    cmocka_unit_test_setup_teardown(lease_socket_survives_nonsense, setup, teardown),
    cmocka_unit_test_setup_teardown(lease_socket_of_a_worker_that_does_not_listen_is_closed, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(lease_sockets_wait_for_the_probe, setup, teardown),
};

HED_UNIT_MAIN(tests)
