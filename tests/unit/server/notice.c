/* The notice: workers see that the ledger has changed, cannot write it, and ask only then. */
#include "harness/unit.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "remote/server/listener/ledger.h"
#include "remote/server/notice.h"
#include "remote/server/worker/worker.h"

static void
ledger_counts_its_changes(void **state)
{
    static struct hed_ledger l;
    int fd = -1;

    assert_int_equal(hed_notice_create(&l.notice, &fd), 0);

    const struct hed_notice *seen = hed_notice_map(fd);
    uint64_t was = seen->changes;

    assert_ptr_not_equal(seen, l.notice);
    l.total[0] = 100;
    assert_int_equal(hed_ledger_take(&l, 0, 0, 60, 1, 0), 60);
    assert_int_not_equal(seen->changes, was);
    was = seen->changes;
    assert_int_equal(hed_ledger_take(&l, 1, 0, 60, 60, 0), 0); /* nothing changes */
    assert_int_equal(hed_ledger_obtainable(&l, 1, 0, 0), 40);
    assert_int_equal(seen->changes, was);
    hed_ledger_give(&l, 0, 0, 10);
    assert_int_not_equal(seen->changes, was);
    was = seen->changes;
    hed_ledger_clear(&l, 0);
    assert_int_not_equal(seen->changes, was);
    hed_notice_free(l.notice, fd);
}

static void
workers_cannot_write_it(void **state)
{
    struct hed_notice *b = NULL;
    int fd = -1;

    assert_int_equal(hed_notice_create(&b, &fd), 0);
    assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);

    void *p = (void *)(uintptr_t)hed_notice_map(fd);

    assert_non_null(p);
    assert_int_not_equal(mprotect(p, 4096, PROT_READ | PROT_WRITE), 0);
    assert_int_equal(write(fd, "x", 1), -1);
    assert_int_equal(ftruncate(fd, 0), -1);
    hed_notice_free(b, fd);
}

/* Answers n questions with 1, 2, 3 ... */
static void *
answer_questions(void *arg)
{
    const int lease_socket = *(const int *)arg;
    struct hed_lease_socket_answer a = {0};
    struct hed_lease_socket_ask ask;

    while (recv(lease_socket, &ask, sizeof ask, 0) == (ssize_t)sizeof ask) {
        a.bytes++;
        if (send(lease_socket, &a, sizeof a, 0) != (ssize_t)sizeof a)
            break;
    }
    return NULL;
}

static void
worker_asks_when_something_has_changed(void **state)
{
    static struct hed_worker w;
    struct hed_worker_start start = {.session = {0}};
    struct hed_notice *b = NULL;
    int lease_socket[2], fd = -1;
    pthread_t thread;

    assert_int_equal(hed_notice_create(&b, &fd), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, lease_socket), 0);
    start.lease_socket = lease_socket[0];
    w.start = &start;
    w.notice = hed_notice_map(fd);
    hed_lock_init(&w.lease_socket_lock, HED_RANK_LEASE_SOCKET);
    assert_int_equal(pthread_create(&thread, NULL, answer_questions, &lease_socket[1]), 0);
    assert_int_equal(hed_lease_obtainable(&w, 0), 1);
    assert_int_equal(hed_lease_obtainable(&w, 0), 1);
    assert_int_equal(hed_lease_obtainable(&w, 1), 2); /* of another device */
    assert_int_equal(hed_lease_others(&w, 0), 3);     /* another question */
    assert_int_equal(hed_lease_others(&w, 0), 3);
    atomic_fetch_add(&b->changes, 1);
    assert_int_equal(hed_lease_obtainable(&w, 0), 4);
    assert_int_equal(hed_lease_obtainable(&w, 0), 4);
    assert_int_equal(hed_lease_take(&w, 0, 5, 5), 5); /* this is always asked */
    w.notice = NULL;
    assert_int_equal(hed_lease_obtainable(&w, 0), 6);
    assert_int_equal(hed_lease_obtainable(&w, 0), 7);
    (void)close(lease_socket[0]);
    (void)pthread_join(thread, NULL);
    (void)close(lease_socket[1]);
    hed_notice_free(b, fd);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ledger_counts_its_changes),
    cmocka_unit_test(workers_cannot_write_it),
    cmocka_unit_test(worker_asks_when_something_has_changed),
};

HED_UNIT_MAIN(tests)
