/* The listener and its guests: what their windows cost it, and what comes from a bridge. There is
 * no QEMU and no bridge; the test has their sockets. */
#include "harness/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/err.h"
#include "remote/server/listener/listener.h"
#include "remote/server/vm/bridge.h"

#define WINDOW (UINT64_C(32) << 20)
#define AT_ONCE (UINT64_C(4) << 20) /* bytes that the listener frees in one round */

static struct hed_server_options options;

struct bench {
    struct hed_server server;
    struct hed_guest *guest;
    int bridge; /* its own end */
};

static int
setup(void **state)
{
    struct bench *b = calloc(1, sizeof *b);
    struct epoll_event e = {.events = EPOLLIN};
    struct hed_address a = {.window = WINDOW};
    struct hed_why why = {""};
    int ends[2];

    options = (struct hed_server_options){.mode = 0666, .startups = 8, .patience_ms = 1000};
    (void)setenv("XDG_RUNTIME_DIR", "/tmp", 0);
    (void)snprintf(a.host, sizeof a.host, "unit-%d", (int)getpid());
    if (!b || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return -1;
    b->server.options = &options;
    b->server.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (hed_guest_create(&b->server, &a, &b->guest, &why) != 0)
        return -1;
    b->guest->bridge = ends[0];
    b->bridge = ends[1];
    e.data.ptr = b->guest;
    *state = b;
    return epoll_ctl(b->server.epoll, EPOLL_CTL_ADD, ends[0], &e);
}

static int
teardown(void **state)
{
    struct bench *b = *state;

    hed_peers_close(&b->server);
    hed_guests_close(&b->server);
    (void)close(b->bridge);
    (void)close(b->server.epoll);
    free(b);
    return 0;
}

static uint64_t
window_pages(const struct bench *b)
{
    struct stat st;

    assert_int_equal(fstat(b->guest->window, &st), 0);
    return (uint64_t)st.st_blocks * 512;
}

/* Whoever may use the server's sockets may not read what a guest has in its window. */
static void
window_is_not_for_others(void **state)
{
    struct bench *b = *state;
    struct stat st;

    assert_int_equal(stat(b->guest->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0660);
}

/* Guests that fill their windows must not fill the file system under each other. */
static void
windows_fit_into_their_file_system(void **state)
{
    struct bench *b = *state;
    struct hed_address a = {.window = WINDOW};
    struct hed_guest *other;
    struct hed_why why = {""};
    struct statvfs fs;

    assert_int_equal(fstatvfs(b->guest->window, &fs), 0);
    while (a.window <= fs.f_blocks * fs.f_frsize)
        a.window *= 2;
    (void)snprintf(a.host, sizeof a.host, "unit-%d-other", (int)getpid());
    assert_int_equal(hed_guest_create(&b->server, &a, &other, &why),
                     fs.f_blocks ? HED_ENOMEM : 0); /* without a limit, everything fits */
    assert_true(!fs.f_blocks || strstr(why.text, "/dev/shm"));
}

/* The listener hears others between two steps. */
static void
pages_are_freed_in_steps(void **state)
{
    struct bench *b = *state;
    const uint64_t bytes = WINDOW - HED_WINDOW_UNIT;
    void *p = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, b->guest->window, 0);
    uint64_t before, after;

    assert_ptr_not_equal(p, MAP_FAILED);
    assert_int_equal(hed_guest_take_piece(b->guest, 3, bytes), HED_WINDOW_UNIT);
    memset(p, 1, WINDOW);
    assert_int_equal(munmap(p, WINDOW), 0);
    assert_false(hed_guests_clear(&b->server));
    hed_guest_forget(b->guest, 3);
    before = window_pages(b);
    assert_true(before >= WINDOW);
    while (hed_guests_clear(&b->server)) {
        after = window_pages(b);
        assert_true(before > after && before - after <= AT_ONCE);
        before = after;
    }
    assert_true(before <= HED_WINDOW_UNIT);
}

static void
send_connection(const struct bench *b)
{
    const struct hed_bridge_hello hello = {.port = 1};
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(hed_fd_send(b->bridge, &ends[1], 1, &hello, sizeof hello), 0);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* Another client may have taken all descriptors that the listener has. Then a connection is lost,
 * and not the guest with all of them. */
static void
without_descriptors_a_guest_stays(void **state)
{
    struct bench *b = *state;
    struct rlimit limit, none;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    send_connection(b);
    none = (struct rlimit){.rlim_cur = 3, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    hed_guest_ready(&b->server, b->guest);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(b->guest->bridge >= 0);
    assert_int_equal(b->server.accepted, 0);

    send_connection(b);
    hed_guest_ready(&b->server, b->guest);
    assert_int_equal(b->server.accepted, 1);
    /* Nonsense is not heard either. */
    assert_int_equal(send(b->bridge, "nonsense", 8, 0), 8);
    hed_guest_ready(&b->server, b->guest);
    assert_true(b->guest->bridge >= 0);
    assert_int_equal(b->server.accepted, 1);
}

static void
a_bridge_that_ends_is_the_end_of_its_guest(void **state)
{
    struct bench *b = *state;

    (void)close(b->bridge);
    b->bridge = -1;
    hed_guest_ready(&b->server, b->guest);
    assert_true(b->guest->bridge < 0);
}

/* A program that starts right after another has ended finds the window empty. */
static void
what_is_left_counts_as_free(void **state)
{
    const struct bench *b = *state;
    const uint64_t most = WINDOW - HED_WINDOW_UNIT;

    assert_int_not_equal(hed_guest_take_piece(b->guest, 0, most), 0);
    assert_int_equal(hed_guest_take_piece(b->guest, 1, HED_WINDOW_UNIT), 0);
    hed_guest_forget(b->guest, 0);
    assert_int_not_equal(hed_guest_take_piece(b->guest, 1, most), 0);
    assert_int_equal(b->guest->pieces.left, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(what_is_left_counts_as_free, setup, teardown),
    cmocka_unit_test_setup_teardown(window_is_not_for_others, setup, teardown),
    cmocka_unit_test_setup_teardown(windows_fit_into_their_file_system, setup, teardown),
    cmocka_unit_test_setup_teardown(pages_are_freed_in_steps, setup, teardown),
    cmocka_unit_test_setup_teardown(without_descriptors_a_guest_stays, setup, teardown),
    cmocka_unit_test_setup_teardown(a_bridge_that_ends_is_the_end_of_its_guest, setup, teardown),
};

HED_UNIT_MAIN(tests)
