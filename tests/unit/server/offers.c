/* What workers share through the listener: only those of one client, only by the right key, and
 * never more than there is. */
#include "harness/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/number.h"
#include "base/str.h"
#include "remote/server/lease_socket.h"
#include "remote/server/listener/listener.h"
#include "remote/server/listener/offers.h"

#define MIB (UINT64_C(1) << 20)
#define WORKERS 4 /* the last belongs to another client */

static struct hed_server_options options;

struct bench {
    struct hed_server server;
    int lease_sockets[WORKERS];
};

static struct hed_child *
worker(struct bench *b, int i)
{
    return &b->server.children[i];
}

static int
setup(void **state)
{
    struct bench *b = calloc(1, sizeof *b);

    if (!b)
        return -1;
    options.memory = 0;
    b->server.options = &options;
    b->server.ledger.total[0] = 100 * MIB;
    b->server.probe = -1;
    b->server.epoll = -1;
    for (int i = 0; i < WORKERS; i++) {
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0)
            return -1;
        worker(b, i)->pid = 1234 + i;
        worker(b, i)->lease_socket = pair[0];
        b->lease_sockets[i] = pair[1];
        (void)hed_str_copy(worker(b, i)->client, sizeof worker(b, i)->client,
                           i == WORKERS - 1 ? "uid-2" : "uid-1");
    }
    *state = b;
    return 0;
}

static int
teardown(void **state)
{
    struct bench *b = *state;

    for (int i = 0; i < WORKERS; i++) {
        hed_offers_forget(&b->server, worker(b, i));
        (void)close(worker(b, i)->lease_socket);
        (void)close(b->lease_sockets[i]);
    }
    assert_null(b->server.offers);
    free(b);
    return 0;
}

/* Says something over a worker's lease socket, and takes the answer. */
static int
say(struct bench *b, int i, const struct hed_lease_socket_ask *ask, int fd,
    struct hed_lease_socket_answer *answer, int *got)
{
    int came;

    if (fd >= 0)
        assert_int_equal(hed_fd_send(b->lease_sockets[i], &fd, 1, ask, sizeof *ask), 0);
    else
        assert_int_equal(send(b->lease_sockets[i], ask, sizeof *ask, 0), sizeof *ask);
    hed_lease_socket_ready(&b->server, worker(b, i));
    assert_int_equal(hed_fd_take_maybe(b->lease_sockets[i], &came, answer, sizeof *answer, false),
                     0);
    if (got)
        *got = came;
    else if (came >= 0)
        (void)close(came);
    return answer->error;
}

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* A file in memory of this size. */
static int
make_file(uint64_t bytes, int seals)
{
    const int fd = memfd_create("offered", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

/* Worker i offers memory of which it has leased as much. */
static void
offer(struct bench *b, int i, uint64_t bytes, uint8_t key[HED_LEASE_SOCKET_KEY])
{
    struct hed_lease_socket_ask ask = {.kind = HED_LEASE_SOCKET_OFFER,
                                       .thing = HED_LEASE_SOCKET_MEMORY,
                                       .bytes = bytes,
                                       .owner = {7}};
    const int fd = make_file(bytes + HED_LEASE_SOCKET_MORE, SEALS);
    struct hed_lease_socket_answer answer;

    assert_int_equal(hed_ledger_take(&b->server.ledger, (uint32_t)i, 0, bytes, bytes, 0), bytes);
    assert_int_equal(pwrite(fd, "shared", 6, 0), 6);
    assert_int_equal(say(b, i, &ask, fd, &answer, NULL), 0);
    (void)close(fd);
    memcpy(key, answer.key, HED_LEASE_SOCKET_KEY);
}

static struct hed_lease_socket_ask
about(enum hed_lease_socket_kind kind, const uint8_t key[HED_LEASE_SOCKET_KEY])
{
    struct hed_lease_socket_ask ask = {.kind = kind, .thing = HED_LEASE_SOCKET_MEMORY};

    memcpy(ask.key, key, sizeof ask.key);
    return ask;
}

static int
open_as(struct bench *b, int i, const uint8_t key[HED_LEASE_SOCKET_KEY])
{
    const struct hed_lease_socket_ask ask = about(HED_LEASE_SOCKET_OPEN, key);
    struct hed_lease_socket_answer answer;

    return say(b, i, &ask, -1, &answer, NULL);
}

static void
the_descriptor_goes_to_who_has_the_key(void **state)
{
    struct bench *b = *state;
    uint8_t key[HED_LEASE_SOCKET_KEY];
    struct hed_lease_socket_answer answer;
    char text[6];
    int fd;

    offer(b, 0, 4 * MIB, key);

    const struct hed_lease_socket_ask ask = about(HED_LEASE_SOCKET_OPEN, key);

    assert_int_equal(say(b, 1, &ask, -1, &answer, &fd), 0);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, text, sizeof text, 0), 6);
    assert_memory_equal(text, "shared", 6);
    (void)close(fd);
    assert_int_equal(answer.bytes, 4 * MIB);
    assert_int_equal(answer.device, 0);
    assert_int_equal(answer.owner[0], 7);
    assert_int_equal(open_as(b, 0, key), HED_ESTATE); /* its own */
}

static void
others_and_wrong_keys_open_nothing(void **state)
{
    struct bench *b = *state;
    uint8_t key[HED_LEASE_SOCKET_KEY];

    offer(b, 0, 4 * MIB, key);
    assert_int_equal(open_as(b, WORKERS - 1, key), HED_ENOTFOUND);
    for (int i = 0; i < HED_LEASE_SOCKET_KEY; i++) {
        key[i] ^= 1;
        assert_int_equal(open_as(b, 1, key), HED_ENOTFOUND);
        key[i] ^= 1;
    }

    struct hed_lease_socket_ask ask = about(HED_LEASE_SOCKET_OPEN, key);
    struct hed_lease_socket_answer answer;

    ask.thing = HED_LEASE_SOCKET_EVENT;
    assert_int_equal(say(b, 1, &ask, -1, &answer, NULL), HED_ENOTFOUND);
    /* Another cannot take it away, either. */
    ask = about(HED_LEASE_SOCKET_WITHDRAW, key);
    assert_int_equal(say(b, 1, &ask, -1, &answer, NULL), 0);
    assert_int_equal(open_as(b, 1, key), 0);
    /* Another certificate of a folder with the same name is another client. */
    worker(b, 2)->who.certified = true;
    assert_int_equal(open_as(b, 2, key), HED_ENOTFOUND);
    worker(b, 2)->who.certified = false;
    /* Who is known by an address is nobody. */
    (void)hed_str_copy(worker(b, 2)->client, sizeof worker(b, 2)->client, "net-7f000001");
    assert_int_equal(open_as(b, 2, key), HED_ENOTFOUND);
}

static void
nonsense_is_not_offered(void **state)
{
    struct bench *b = *state;
    struct hed_lease_socket_ask ask = {.kind = HED_LEASE_SOCKET_OFFER,
                                       .thing = HED_LEASE_SOCKET_MEMORY};
    struct hed_lease_socket_answer answer;

    assert_int_equal(say(b, 0, &ask, -1, &answer, NULL), HED_EINVAL); /* without a descriptor */
    ask.thing = 9;
    assert_int_equal(say(b, 0, &ask, 0, &answer, NULL), HED_EINVAL);
    ask.thing = HED_LEASE_SOCKET_MEMORY;
    ask.device = HED_LEASE_SOCKET_PLACES;
    assert_int_equal(say(b, 0, &ask, 0, &answer, NULL), HED_EINVAL);
    ask.device = -7;
    assert_int_equal(say(b, 0, &ask, 0, &answer, NULL), HED_EINVAL);
    (void)hed_str_copy(worker(b, 0)->client, sizeof worker(b, 0)->client, "net-7f000001");
    ask.device = 0;
    assert_int_equal(say(b, 0, &ask, 0, &answer, NULL), HED_EACCESS);
    assert_null(b->server.offers);
    /* A descriptor that nobody has asked for is closed, and the question is answered. */
    ask = (struct hed_lease_socket_ask){.kind = HED_LEASE_SOCKET_OBTAINABLE};
    assert_int_equal(say(b, 0, &ask, 0, &answer, NULL), 0);
    assert_int_equal(answer.bytes, 100 * MIB);
}

/* Offers descriptors of events until the listener wants no more. */
static uint32_t
offer_events(struct bench *b, int i)
{
    const struct hed_lease_socket_ask ask = {.kind = HED_LEASE_SOCKET_OFFER,
                                             .thing = HED_LEASE_SOCKET_EVENT,
                                             .device = HED_LEASE_SOCKET_NO_DEVICE};
    const int fd = make_file(HED_LEASE_SOCKET_EVENT_SIZE, SEALS);
    struct hed_lease_socket_answer answer = {0};
    uint32_t n = 0;

    while (n <= HED_OFFERS_WORKER && say(b, i, &ask, fd, &answer, NULL) == 0)
        n++;
    assert_int_equal(answer.error, HED_ELIMIT);
    (void)close(fd);
    return n;
}

/* However few descriptors there are, other workers of the owner and other owners get some. */
static void
a_worker_offers_so_much_and_no_more(void **state)
{
    struct bench *b = *state;
    struct rlimit before, few;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = hed_min(before.rlim_cur, 256);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);

    const uint32_t first = offer_events(b, 0), second = offer_events(b, 1);
    const uint32_t other = offer_events(b, WORKERS - 1);

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_in_range(first, 1, HED_OFFERS_WORKER);
    assert_in_range(second, 1, first);
    assert_true(other >= second && first + second + other < few.rlim_cur / HED_OFFERS_PART);
}

static int
offer_file(struct bench *b, enum hed_lease_socket_thing thing, uint64_t bytes, int fd)
{
    const struct hed_lease_socket_ask ask = {
        .kind = HED_LEASE_SOCKET_OFFER,
        .thing = thing,
        .device = thing == HED_LEASE_SOCKET_EVENT ? HED_LEASE_SOCKET_NO_DEVICE : 0,
        .bytes = bytes};
    struct hed_lease_socket_answer answer;
    const int err = say(b, 0, &ask, fd, &answer, NULL);

    (void)close(fd);
    return err;
}

/* A worker that was taken over gives others no memory beyond its lease. */
static void
a_file_is_as_large_as_the_lease(void **state)
{
    struct bench *b = *state;
    struct hed_ledger *l = &b->server.ledger;

    assert_int_equal(offer_file(b, HED_LEASE_SOCKET_MEMORY, MIB, make_file(MIB, SEALS)),
                     HED_EINVAL);
    assert_int_equal(hed_ledger_take(l, 0, 0, 2 * MIB, 2 * MIB, 0), 2 * MIB);
    assert_int_equal(offer_file(b, HED_LEASE_SOCKET_MEMORY, MIB, make_file(2 * MIB, SEALS)),
                     HED_EINVAL);
    assert_int_equal(offer_file(b, HED_LEASE_SOCKET_MEMORY, MIB, make_file(MIB, F_SEAL_SHRINK)),
                     HED_EINVAL);
    assert_int_equal(offer_file(b, HED_LEASE_SOCKET_MEMORY, UINT64_MAX, make_file(MIB, SEALS)),
                     HED_EINVAL);
    assert_int_equal(offer_file(b, HED_LEASE_SOCKET_EVENT, 0, make_file(MIB, SEALS)), HED_EINVAL);
    assert_int_equal(offer_file(b, HED_LEASE_SOCKET_EVENT, 0, memfd_create("file", MFD_CLOEXEC)),
                     HED_EINVAL);
    assert_int_equal(offer_file(b, HED_LEASE_SOCKET_MEMORY, MIB, socket(AF_UNIX, SOCK_STREAM, 0)),
                     HED_EINVAL);
    /* Memory behind the end of a file is memory, too. */
    const int longer = memfd_create("file", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    assert_int_equal(ftruncate(longer, MIB), 0);
    assert_int_equal(fallocate(longer, FALLOC_FL_KEEP_SIZE, MIB, 16 * MIB), 0);
    assert_int_equal(fcntl(longer, F_ADD_SEALS, SEALS), 0);
    assert_int_equal(offer_file(b, HED_LEASE_SOCKET_MEMORY, MIB, longer),
                     sysconf(_SC_PAGESIZE) == 4096 ? HED_EINVAL : 0);
    assert_null(b->server.offers);
}

/* What is offered is leased, as often as it is offered, and stays so. */
static void
a_lease_is_offered_once(void **state)
{
    struct bench *b = *state;
    struct hed_ledger *l = &b->server.ledger;
    struct hed_lease_socket_ask give = {.kind = HED_LEASE_SOCKET_GIVE, .bytes = 3 * MIB};
    struct hed_lease_socket_answer answer;

    assert_int_equal(hed_ledger_take(l, 0, 0, 3 * MIB, 3 * MIB, 0), 3 * MIB);
    assert_int_equal(offer_file(b, HED_LEASE_SOCKET_MEMORY, 2 * MIB, make_file(2 * MIB, SEALS)), 0);
    assert_int_equal(offer_file(b, HED_LEASE_SOCKET_MEMORY, 2 * MIB, make_file(2 * MIB, SEALS)),
                     HED_EINVAL);
    assert_int_equal(say(b, 0, &give, -1, &answer, NULL), 0);
    assert_int_equal(l->leased[0][0], 2 * MIB);
}

/* Descriptors that wait to be read are memory that nobody has leased. */
static void
who_does_not_read_its_answers_gets_no_more(void **state)
{
    struct bench *b = *state;
    uint8_t key[HED_LEASE_SOCKET_KEY];

    offer(b, 0, MIB, key);

    const struct hed_lease_socket_ask ask = about(HED_LEASE_SOCKET_OPEN, key);

    for (int i = 0; i < 3; i++)
        assert_int_equal(send(b->lease_sockets[1], &ask, sizeof ask, 0), sizeof ask);
    hed_lease_socket_ready(&b->server, worker(b, 1));
    assert_int_equal(worker(b, 1)->lease_socket, -1);
}

/* Memory that its worker gives up while another has it stays in the book, once. */
static void
orphaned_memory_is_counted_until_it_is_closed(void **state)
{
    struct bench *b = *state;
    struct hed_ledger *l = &b->server.ledger;
    struct hed_lease_socket_answer answer;
    uint8_t key[HED_LEASE_SOCKET_KEY];

    offer(b, 0, 60 * MIB, key);
    assert_int_equal(open_as(b, 1, key), 0);
    assert_int_equal(open_as(b, 1, key), 0); /* once more */
    assert_int_equal(hed_ledger_leased(l, 0), 60 * MIB);

    struct hed_lease_socket_ask ask = about(HED_LEASE_SOCKET_WITHDRAW, key);

    (void)say(b, 0, &ask, -1, &answer, NULL);
    assert_int_equal(answer.bytes, 60 * MIB); /* of its lease are gone */
    assert_int_equal(l->leased[0][0], 0);
    assert_int_equal(hed_ledger_leased(l, 0), 60 * MIB);
    assert_int_equal(hed_ledger_take(l, 0, 0, 60 * MIB, 60 * MIB, 0), 0);
    assert_int_equal(open_as(b, 2, key), HED_ENOTFOUND);
    ask = about(HED_LEASE_SOCKET_CLOSE, key);
    (void)say(b, 1, &ask, -1, &answer, NULL);
    assert_int_equal(hed_ledger_leased(l, 0), 60 * MIB);
    (void)say(b, 1, &ask, -1, &answer, NULL);
    assert_int_equal(hed_ledger_leased(l, 0), 0);
    assert_null(b->server.offers);
    (void)say(b, 1, &ask, -1, &answer, NULL); /* too often */
}

static void
workers_that_die_leave_nothing(void **state)
{
    struct bench *b = *state;
    struct hed_ledger *l = &b->server.ledger;
    uint8_t key[HED_LEASE_SOCKET_KEY];

    offer(b, 0, 60 * MIB, key);
    assert_int_equal(open_as(b, 1, key), 0);
    hed_offers_forget(&b->server, worker(b, 0));
    hed_ledger_clear(l, 0);
    assert_int_equal(hed_ledger_leased(l, 0), 60 * MIB);
    assert_int_equal(open_as(b, 2, key), HED_ENOTFOUND);
    hed_offers_forget(&b->server, worker(b, 1));
    hed_ledger_clear(l, 1);
    assert_int_equal(hed_ledger_leased(l, 0), 0);
    assert_null(b->server.offers);
}

/* What a worker has opened counts for its limit, before and after. */
static void
opened_memory_counts_for_the_limit(void **state)
{
    struct bench *b = *state;
    struct hed_ledger *l = &b->server.ledger;
    uint8_t keys[2][HED_LEASE_SOCKET_KEY];

    offer(b, 0, 20 * MIB, keys[0]);
    offer(b, 0, 20 * MIB, keys[1]);
    options.memory = 30 * MIB;
    assert_int_equal(open_as(b, 1, keys[0]), 0);
    assert_int_equal(open_as(b, 1, keys[1]), HED_ENOMEM);
    assert_int_equal(hed_ledger_take(l, 1, 0, 20 * MIB, 20 * MIB, options.memory), 0);
    assert_int_equal(hed_ledger_take(l, 1, 0, 10 * MIB, 10 * MIB, options.memory), 10 * MIB);
    hed_ledger_clear(l, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(the_descriptor_goes_to_who_has_the_key, setup, teardown),
    cmocka_unit_test_setup_teardown(others_and_wrong_keys_open_nothing, setup, teardown),
    cmocka_unit_test_setup_teardown(nonsense_is_not_offered, setup, teardown),
    cmocka_unit_test_setup_teardown(a_worker_offers_so_much_and_no_more, setup, teardown),
    cmocka_unit_test_setup_teardown(a_file_is_as_large_as_the_lease, setup, teardown),
    cmocka_unit_test_setup_teardown(a_lease_is_offered_once, setup, teardown),
    cmocka_unit_test_setup_teardown(who_does_not_read_its_answers_gets_no_more, setup, teardown),
    cmocka_unit_test_setup_teardown(orphaned_memory_is_counted_until_it_is_closed, setup, teardown),
    cmocka_unit_test_setup_teardown(workers_that_die_leave_nothing, setup, teardown),
    cmocka_unit_test_setup_teardown(opened_memory_counts_for_the_limit, setup, teardown),
};

HED_UNIT_MAIN(tests)
