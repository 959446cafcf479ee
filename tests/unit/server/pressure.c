/* The memory that workers use: what they share counts once, for the one that has made it. Processes
 * that are forked here play workers. */
#include "harness/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sanitize.h"
#include "base/str.h"
#include "remote/server/listener/listener.h"
#include "remote/server/listener/offers.h"

/* A sanitizer's shadow is private memory, too. */
#define HAS_OWN_MEMORY_ONLY (!HED_SANITIZED)

#define MIB (UINT64_C(1) << 20)
#define SHARED (128 * MIB)
#define WORKERS 3
/* What a process has besides, and what the kernel has not counted yet. */
#define ABOUT (48 * MIB)

static struct hed_server_options options;

struct bench {
    struct hed_server server;
    int fd; /* the memory that they share */
};

/* A worker that touches so much of the memory, and waits to be killed. */
static pid_t
begin_worker(int fd, uint64_t touches)
{
    char good = 0;
    int ends[2];

    assert_int_equal(pipe(ends), 0);

    const pid_t child = fork();

    if (child == 0) {
        char *p = mmap(NULL, SHARED, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        good = p != MAP_FAILED;
        for (uint64_t i = 0; good && i < touches; i += 4096)
            p[i] = 1;
        (void)!write(ends[1], &good, 1);
        for (;;)
            (void)pause();
    }
    assert_int_equal(read(ends[0], &good, 1), 1);
    assert_true(good);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return child;
}

static int
setup(void **state)
{
    struct bench *b = calloc(1, sizeof *b);

    if (!b)
        return -1;
    options = (struct hed_server_options){0};
    b->server.options = &options;
    b->server.epoll = -1;
    b->fd = memfd_create("shared", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (b->fd < 0 || ftruncate(b->fd, SHARED) != 0 ||
        fcntl(b->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
        return -1;
    for (int i = 0; i < WORKERS; i++) {
        b->server.children[i].lease_socket = b->server.children[i].control = -1;
        (void)hed_str_copy(b->server.children[i].client, sizeof b->server.children[i].client,
                           "uid-1");
    }
    b->server.child_count = WORKERS;
    *state = b;
    return 0;
}

static void
end_worker(struct bench *b, int i)
{
    struct hed_child *c = &b->server.children[i];

    if (!c->pid)
        return;
    (void)kill(c->pid, SIGKILL);
    assert_int_equal(waitpid(c->pid, NULL, 0), c->pid);
    hed_offers_forget(&b->server, c);
    hed_ledger_clear(&b->server.ledger, (uint32_t)i);
    c->pid = 0;
}

static int
teardown(void **state)
{
    struct bench *b = *state;

    for (int i = 0; i < WORKERS; i++)
        end_worker(b, i);
    assert_null(b->server.offers);
    (void)close(b->fd);
    free(b);
    return 0;
}

/* The first worker has made the memory, and the others have opened it. */
static void
share_memory(struct bench *b, uint64_t first_touches)
{
    struct hed_lease_socket_ask ask = {.thing = HED_LEASE_SOCKET_MEMORY, .bytes = SHARED};
    struct hed_lease_socket_answer answer = {0};
    int fd;

    for (int i = 0; i < WORKERS; i++)
        b->server.children[i].pid = begin_worker(b->fd, i ? SHARED : first_touches);
    assert_int_equal(hed_ledger_take(&b->server.ledger, 0, 0, SHARED, SHARED, 0), SHARED);
    assert_int_equal(hed_offer_make(&b->server, &b->server.children[0], &ask, dup(b->fd), &answer),
                     0);
    memcpy(ask.key, answer.key, sizeof ask.key);
    for (int i = 1; i < WORKERS; i++)
        assert_int_equal(hed_offer_open(&b->server, &b->server.children[i], &ask, &answer, &fd), 0);
}

static uint64_t
pressure_of(struct bench *b, int i)
{
    return hed_pressure_of(&b->server, &b->server.children[i]);
}

static void
shared_memory_counts_for_who_has_made_it(void **state)
{
    struct bench *b = *state;

    if (!HAS_OWN_MEMORY_ONLY)
        skip();
    share_memory(b, SHARED);
    assert_in_range(pressure_of(b, 0), SHARED - 4 * MIB, SHARED + ABOUT);
    for (int i = 1; i < WORKERS; i++)
        assert_in_range(pressure_of(b, i), 1, ABOUT);

    /* So nobody is ended if all of it fits. */
    options.total_memory = SHARED + WORKERS * ABOUT;
    (void)hed_pressure_look(&b->server, 1);
    for (int i = 0; i < WORKERS; i++)
        assert_false(b->server.children[i].evicted);
}

/* Only others have touched it. */
static void
the_maker_pays_for_what_others_fill(void **state)
{
    struct bench *b = *state;

    if (!HAS_OWN_MEMORY_ONLY)
        skip();
    share_memory(b, 0);
    assert_in_range(pressure_of(b, 0), SHARED - 4 * MIB, SHARED + ABOUT);
    assert_in_range(pressure_of(b, 1), 1, ABOUT);
}

/* A worker hides nothing of its own behind what it has opened. */
static void
own_memory_counts_beside_what_is_opened(void **state)
{
    struct bench *b = *state;

    if (!HAS_OWN_MEMORY_ONLY)
        skip();
    share_memory(b, SHARED);
    assert_int_equal(hed_ledger_take(&b->server.ledger, 1, 0, SHARED, SHARED, 0), SHARED);
    assert_in_range(pressure_of(b, 1), SHARED - 4 * MIB, SHARED + ABOUT);
}

/* When its maker is gone, it counts for one of the others. */
static void
orphaned_memory_counts_once(void **state)
{
    struct bench *b = *state;
    uint64_t sum = 0;

    if (!HAS_OWN_MEMORY_ONLY)
        skip();
    share_memory(b, SHARED);
    end_worker(b, 0);
    for (int i = 1; i < WORKERS; i++)
        sum += pressure_of(b, i);
    assert_in_range(sum, SHARED - 4 * MIB, SHARED + (WORKERS - 1) * ABOUT);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(shared_memory_counts_for_who_has_made_it, setup, teardown),
    cmocka_unit_test_setup_teardown(the_maker_pays_for_what_others_fill, setup, teardown),
    cmocka_unit_test_setup_teardown(own_memory_counts_beside_what_is_opened, setup, teardown),
    cmocka_unit_test_setup_teardown(orphaned_memory_counts_once, setup, teardown),
};

HED_UNIT_MAIN(tests)
