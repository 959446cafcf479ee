/* Tests of connections: bytes in both directions, whatever the kernel does to them; descriptors;
 * listening; peers that hang up, send nothing or send too much.
 */
#include "unit/wire/make.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MS UINT64_C(1000000)
#define BIG (3u << 20)

static const char *const kinds[] = {"unix:pair.sock", "shm:pair.sock", "tcp://127.0.0.1:0",
                                    "tcp://[::1]:0"};

/* Not every machine has IPv6. */
static bool
usable(const char *text)
{
    struct hed_address a = address(text);
    int fd = -1;

    if (!strchr(a.host, ':'))
        return true;
    if (hed_conn_listen(&a, 0600, &fd, NULL))
        return false;
    close(fd);
    return true;
}

static unsigned char
byte_at(size_t i)
{
    return (unsigned char)(i * 31 + (i >> 8) * 7);
}

struct flow {
    struct hed_conn *conn;
    size_t n;
    size_t parts; /* of a writev; 0 for one write */
    int err;
};

static void *
pour(void *arg)
{
    struct flow *f = arg;
    unsigned char *p = malloc(f->n);
    struct iovec *v = calloc(f->parts + 1, sizeof *v);

    for (size_t i = 0; i < f->n; i++)
        p[i] = byte_at(i);
    for (size_t i = 0; i < f->parts; i++) {
        /* Every third part is empty, and the one before it has its bytes. */
        const size_t from = f->n * i / f->parts;
        const size_t next = i % 3 == 2 ? i : i % 3 == 1 && i + 2 <= f->parts ? i + 2 : i + 1;

        v[i].iov_base = p + from;
        v[i].iov_len = f->n * next / f->parts - from;
    }
    f->err =
        f->parts ? hed_conn_writev(f->conn, v, (int)f->parts) : hed_conn_write(f->conn, p, f->n);
    free(v);
    free(p);
    return NULL;
}

static void
check_flow(struct hed_conn *from, struct hed_conn *to, size_t n, size_t parts, int timeout_ms)
{
    struct flow f = {from, n, parts, 1};
    unsigned char *p = calloc(1, n);
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, pour, &f), 0);
    assert_int_equal(hed_conn_read(to, p, n, timeout_ms), 0);
    pthread_join(thread, NULL);
    assert_int_equal(f.err, 0);
    for (size_t i = 0; i < n; i++)
        if (p[i] != byte_at(i))
            fail_msg("byte %zu of %zu differs", i, n);
    free(p);
}

static void
bytes_go_both_ways(void **state)
{
    enter_scratch();
    for (size_t i = 0; i < COUNT(kinds); i++) {
        if (!usable(kinds[i]))
            continue;

        const struct pair p = make_pair(kinds[i]);

        check_flow(p.client, p.server, BIG, 0, -1);
        check_flow(p.server, p.client, BIG, 0, PATIENCE_MS);
        check_flow(p.client, p.server, BIG, 3 * IOV_MAX, PATIENCE_MS);
        check_flow(p.server, p.client, 1, 0, -1);
        assert_int_equal(hed_conn_write(p.client, "", 0), 0);
        assert_int_equal(hed_conn_read(p.server, NULL, 0, 0), 0);
        assert_false(hed_conn_secure(p.client));
        assert_false(hed_conn_who(p.server)->certified);
        assert_string_equal(hed_conn_who(p.server)->name, "");
        close_pair(p);
    }
}

static void
short_and_interrupted_calls_change_nothing(void **state)
{
    enter_scratch();
    for (size_t i = 0; i < COUNT(kinds); i++) {
        if (!usable(kinds[i]))
            continue;

        const struct pair p = make_pair(kinds[i]);

        hed_conn_kernel(&bad_kernel);
        bad.most = 7;
        bad.interrupt = 3;
        check_flow(p.client, p.server, 70001, 0, -1);
        check_flow(p.server, p.client, 70001, 90, PATIENCE_MS);
        bad.most = 1;
        bad.interrupt = 2;
        check_flow(p.server, p.client, 999, 5, -1);
        bad.delay_ns = MS;
        bad.interrupt = 0;
        check_flow(p.server, p.client, 50, 0, PATIENCE_MS);
        good_again(NULL);
        close_pair(p);
    }
}

static void
on_signal(int signal)
{
    (void)signal;
}

static void
real_signals_change_nothing(void **state)
{
    const struct sigaction action = {.sa_handler = on_signal}; /* not SA_RESTART */
    const struct itimerval often = {{0, 500}, {0, 500}};
    const struct itimerval never = {{0, 0}, {0, 0}};
    struct sigaction before;

    enter_scratch();
    sigaction(SIGALRM, &action, &before);
    for (size_t i = 0; i < COUNT(kinds); i++) {
        if (!usable(kinds[i]))
            continue;

        const struct pair p = make_pair(kinds[i]);

        setitimer(ITIMER_REAL, &often, NULL);
        check_flow(p.client, p.server, BIG, 0, -1);
        check_flow(p.server, p.client, BIG, 100, PATIENCE_MS);
        setitimer(ITIMER_REAL, &never, NULL);
        close_pair(p);
    }
    sigaction(SIGALRM, &before, NULL);
}

static void
a_cut_line_is_an_error_on_both_sides(void **state)
{
    char bytes[100] = {0};

    enter_scratch();
    for (size_t cut = 0; cut < sizeof bytes; cut += 9) {
        const struct pair p = make_pair("unix:cut.sock");

        hed_conn_kernel(&bad_kernel);
        bad.cut = true;
        bad.left = cut;
        assert_int_equal(hed_conn_write(p.client, bytes, sizeof bytes), HED_EIO);
        assert_int_equal(hed_conn_read(p.server, bytes, sizeof bytes, PATIENCE_MS), HED_EIO);
        good_again(NULL);
        close_pair(p);
    }
}

static void
a_peer_that_hung_up_is_noticed(void **state)
{
    enter_scratch();
    for (size_t i = 0; i < COUNT(kinds); i++) {
        if (!usable(kinds[i]))
            continue;

        const struct pair p = make_pair(kinds[i]);
        char bytes[4];

        assert_false(hed_conn_gone(p.client));
        assert_int_equal(hed_conn_write(p.server, "word", 4), 0);
        assert_false(hed_conn_gone(p.client));
        hed_conn_close(p.server);
        WAIT_UNTIL(hed_conn_gone(p.client));
        assert_int_equal(hed_conn_read(p.client, bytes, 4, -1), 0);
        assert_memory_equal(bytes, "word", 4);
        assert_int_equal(hed_conn_read(p.client, bytes, 1, -1), HED_EIO);
        assert_int_equal(hed_conn_read(p.client, bytes, 1, 100), HED_EIO);

        /* The write must not fail with SIGPIPE, which would end this program. */
        int err = 0;

        WAIT_UNTIL((err = hed_conn_write(p.client, bytes, 4)) != 0);
        assert_int_equal(err, HED_EIO);
        hed_conn_close(p.client);
        hed_conn_close(NULL);
    }
}

static void
reading_ends_when_time_runs_out(void **state)
{
    enter_scratch();
    for (size_t i = 0; i < COUNT(kinds); i++) {
        if (!usable(kinds[i]))
            continue;

        const struct pair p = make_pair(kinds[i]);
        char bytes[8] = {0};
        ssize_t n;
        const uint64_t begin = hed_now_ns();

        assert_int_equal(hed_conn_read(p.client, bytes, 4, 100), HED_ETIME);
        assert_true(hed_now_ns() - begin >= 100 * MS); /* not earlier */
        assert_int_equal(hed_conn_read(p.client, bytes, 4, 0), HED_ETIME);
        assert_int_equal(hed_conn_read_some(p.client, bytes, 1, 8, 10), HED_ETIME);
        assert_int_equal(hed_conn_write(p.server, "abc", 3), 0);
        WAIT_UNTIL((n = hed_conn_read_some(p.client, bytes, 1, 8, 0)) != HED_ETIME);
        assert_int_equal(n, 3);
        assert_memory_equal(bytes, "abc", 3);
        assert_int_equal(hed_conn_read_some(p.client, bytes, 0, 8, 0), 0);
        assert_int_equal(hed_conn_read_some(p.client, bytes, 9, 8, 0), HED_EINVAL);
        assert_int_equal(hed_conn_write(p.server, "abc", 3), 0);
        assert_int_equal(hed_conn_read(p.client, bytes, 4, 50), HED_ETIME);
        close_pair(p);
    }
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static int
open_count(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void
descriptors_arrive_and_close_on_exec(void **state)
{
    enter_scratch();

    const struct pair p = make_pair("shm:fds.sock");
    int pipes[2];
    int got[2] = {-1, -1};
    char c = 0;

    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(hed_conn_write(p.client, "x", 1), 0);
    assert_int_equal(hed_conn_send_fds(p.client, pipes, 2), 0);
    assert_int_equal(hed_conn_write(p.client, "y", 1), 0);
    assert_int_equal(hed_conn_read(p.server, &c, 1, PATIENCE_MS), 0);
    assert_int_equal(c, 'x');
    assert_int_equal(hed_conn_take_fds(p.server, got, 2, PATIENCE_MS), 0);
    assert_int_equal(hed_conn_read(p.server, &c, 1, PATIENCE_MS), 0);
    assert_int_equal(c, 'y');
    assert_true(fcntl(got[0], F_GETFD) & FD_CLOEXEC && fcntl(got[1], F_GETFD) & FD_CLOEXEC);
    assert_int_equal(write(got[1], "z", 1), 1);
    assert_int_equal(read(pipes[0], &c, 1), 1);
    assert_int_equal(c, 'z');
    for (int i = 0; i < 2; i++) {
        close(pipes[i]);
        close(got[i]);
    }
    close_pair(p);
}

static void
other_numbers_of_descriptors_are_refused_and_closed(void **state)
{
    enter_scratch();

    const struct pair p = make_pair("unix:fds.sock");
    const int fds[HED_CONN_FDS] = {0};
    const int before = open_count();
    int got[HED_CONN_FDS];

    memset(got, 0x5a, sizeof got);
    for (int sent = 1; sent <= HED_CONN_FDS; sent++) {
        for (int want = 1; want <= HED_CONN_FDS; want++) {
            assert_int_equal(hed_conn_send_fds(p.client, fds, sent), 0);
            assert_int_equal(hed_conn_take_fds(p.server, got, want, PATIENCE_MS),
                             sent == want ? 0 : HED_EFORMAT);
            for (int i = 0; sent == want && i < want; i++)
                close(got[i]);
            assert_int_equal(open_count(), before);
        }
    }
    /* A byte without descriptors, and descriptors with another byte. */
    assert_int_equal(hed_conn_write(p.client, "F", 1), 0);
    assert_int_equal(hed_conn_take_fds(p.server, got, 1, PATIENCE_MS), HED_EFORMAT);
    /* The kernel closes descriptors that come with what is read as plain bytes. */
    assert_int_equal(hed_conn_send_fds(p.client, fds, 4), 0);
    assert_int_equal(hed_conn_read(p.server, got, 1, PATIENCE_MS), 0);
    assert_int_equal(open_count(), before);

    assert_int_equal(hed_conn_send_fds(p.client, fds, 0), HED_EINVAL);
    assert_int_equal(hed_conn_send_fds(p.client, fds, HED_CONN_FDS + 1), HED_EINVAL);
    assert_int_equal(hed_conn_take_fds(p.server, got, 0, 0), HED_EINVAL);
    assert_int_equal(hed_conn_take_fds(p.server, got, HED_CONN_FDS + 1, 0), HED_EINVAL);
    assert_int_equal(hed_conn_take_fds(p.server, got, 1, 20), HED_ETIME);
    hed_conn_kernel(&bad_kernel);
    bad.interrupt = 2;
    assert_int_equal(hed_conn_send_fds(p.client, fds, 1), 0);
    assert_int_equal(hed_conn_take_fds(p.server, got, 1, PATIENCE_MS), 0);
    close(got[0]);
    good_again(NULL);
    hed_conn_close(p.client);
    assert_int_equal(hed_conn_take_fds(p.server, got, 1, PATIENCE_MS), HED_EIO);
    hed_conn_close(p.server);

    const struct pair t = make_pair("tcp://127.0.0.1:0");

    assert_int_equal(hed_conn_send_fds(t.client, fds, 1), HED_ENOTSUP);
    assert_int_equal(hed_conn_take_fds(t.server, got, 1, 0), HED_ENOTSUP);
    close_pair(t);
}

static void
the_peer_of_a_unix_socket_is_known(void **state)
{
    enter_scratch();

    const struct pair p = make_pair("unix:peer.sock");
    const struct pair t = make_pair("tcp://127.0.0.1:0");
    uid_t uid = 1;
    gid_t gid = 1;
    pid_t pid = 1;

    assert_int_equal(hed_conn_peer(p.server, &uid, &gid, &pid), 0);
    assert_int_equal(uid, getuid());
    assert_int_equal(gid, getgid());
    assert_int_equal(pid, getpid());
    assert_int_equal(hed_conn_peer(t.server, &uid, &gid, &pid), HED_ENOTSUP);
    assert_true(fcntl(hed_conn_fd(p.server), F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(hed_conn_fd(t.client), F_GETFD) & FD_CLOEXEC);
    close_pair(p);
    close_pair(t);
}

/* ---- beginning ------------------------------------------------------------------------------- */

static void
a_unix_socket_has_the_mode_whatever_the_umask(void **state)
{
    static const mode_t masks[] = {0, 022, 077, 0177};
    const struct hed_address a = address("unix:mode.sock");

    enter_scratch();
    for (size_t i = 0; i < COUNT(masks); i++) {
        const mode_t old = umask(masks[i]);
        struct stat st;
        int fd = -1;

        assert_int_equal(hed_conn_listen(&a, 0660, &fd, NULL), 0);
        umask(old);
        assert_int_equal(stat("mode.sock", &st), 0);
        assert_int_equal(st.st_mode & 07777, 0660);
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        close(fd); /* the file stays: the next round replaces it */
    }
}

static void
a_live_socket_a_file_and_a_missing_folder_are_refused(void **state)
{
    struct hed_address a = address("unix:live.sock");
    const struct hed_address nowhere = address("unix:no/such/x.sock");
    struct hed_why why = {""};
    struct stat before, after;
    int second = -1;

    enter_scratch();

    const int fd = listen_at(&a);

    assert_int_equal(stat("live.sock", &before), 0);
    assert_int_equal(hed_conn_listen(&a, 0600, &second, &why), HED_EEXIST);
    assert_non_null(strstr(why.text, "unix:live.sock: another process already listens there"));
    assert_int_equal(stat("live.sock", &after), 0);
    assert_true(before.st_ino == after.st_ino);
    close(fd);
    unlink("live.sock");

    close(open("live.sock", O_CREAT | O_WRONLY, 0600));
    assert_int_equal(hed_conn_listen(&a, 0600, &second, &why), HED_EEXIST);
    assert_non_null(strstr(why.text, "a file that is not a socket"));
    assert_int_equal(hed_conn_listen(&nowhere, 0600, &second, &why), HED_ENOTFOUND);
    assert_non_null(strstr(why.text, "No such file or directory"));
    assert_int_equal(second, -1);
}

static void
a_taken_port_is_refused(void **state)
{
    struct hed_address a = address("tcp://127.0.0.1:0");
    struct hed_why why = {""};
    const int fd = listen_at(&a);
    int second = -1;

    assert_int_equal(hed_conn_listen(&a, 0, &second, &why), HED_EEXIST);
    assert_non_null(strstr(why.text, "Address already in use"));
    close(fd);
}

static void
nobody_there_is_told(void **state)
{
    struct hed_address port = address("tcp://127.0.0.1:0");
    const struct hed_address path = address("unix:nobody.sock");
    const struct hed_address name = address("tcp://no-such-host.invalid:1");
    struct hed_conn *c = NULL;
    struct hed_why why = {""};

    enter_scratch();
    close(listen_at(&port));
    assert_int_equal(hed_conn_open(&port, &insecure, &preface, PATIENCE_MS, &c, &why), HED_EIO);
    assert_non_null(strstr(why.text, "Connection refused"));
    assert_int_equal(hed_conn_open(&path, NULL, &preface, PATIENCE_MS, &c, &why), HED_ENOTFOUND);
    assert_non_null(strstr(why.text, "is heddled running there? `heddle serve` starts it"));
    assert_int_equal(hed_conn_open(&name, &insecure, &preface, PATIENCE_MS, &c, &why),
                     HED_ENOTFOUND);
    assert_non_null(strstr(why.text, "tcp://no-such-host.invalid:1: "));
    assert_null(c);
}

static void
tcp_without_tls_must_be_asked_for(void **state)
{
    struct hed_address a = address("tcp://127.0.0.1:0");
    const struct hed_address zero = a;
    const struct hed_tls nothing = {.insecure = false};
    const struct hed_tls both = {.ca = "ca.pem", .insecure = true};
    const int listener = listen_at(&a);
    struct hed_conn *c = NULL;
    struct hed_why why = {""};

    assert_int_equal(hed_conn_open(&a, NULL, &preface, PATIENCE_MS, &c, &why), HED_EACCESS);
    assert_int_equal(hed_conn_open(&a, &nothing, &preface, PATIENCE_MS, &c, &why), HED_EACCESS);
    assert_non_null(strstr(why.text, "tls_ca"));
    assert_non_null(strstr(why.text, "insecure = yes"));
    assert_int_equal(hed_conn_open(&a, &both, &preface, PATIENCE_MS, &c, &why), HED_EINVAL);
    assert_int_equal(hed_conn_open(&zero, &insecure, &preface, PATIENCE_MS, &c, &why), HED_EINVAL);

    /* A server does not accept an insecure connection either, unless it was told to. */
    struct hed_conn *client = NULL;

    assert_int_equal(hed_conn_open(&a, &insecure, &preface, PATIENCE_MS, &client, &why), 0);
    assert_int_equal(hed_conn_accept(accept_at(listener), NULL, PATIENCE_MS, &c, &why),
                     HED_EACCESS);
    hed_conn_close(client);
    assert_int_equal(hed_conn_open(&a, &insecure, &preface, PATIENCE_MS, &client, &why), 0);
    assert_int_equal(hed_conn_accept(accept_at(listener), &nothing, PATIENCE_MS, &c, &why),
                     HED_EACCESS);
    hed_conn_close(client);
    assert_int_equal(hed_conn_accept(-1, NULL, PATIENCE_MS, &c, &why), HED_EINVAL);
    assert_null(c);
    close(listener);
}

static void
a_full_queue_is_waited_for_in_vain_no_longer_than_allowed(void **state)
{
    const struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "full.sock"};
    const struct hed_address a = address("unix:full.sock");
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct hed_conn *c[16] = {NULL};
    uint64_t begin = 0;
    int err = 0;

    enter_scratch();
    assert_int_equal(bind(listener, (const struct sockaddr *)&name, sizeof name), 0);
    assert_int_equal(listen(listener, 1), 0);
    for (size_t i = 0; i < COUNT(c) && !err; i++) {
        begin = hed_now_ns();
        err = hed_conn_open(&a, NULL, &preface, 200, &c[i], NULL);
    }
    assert_int_equal(err, HED_ETIME);
    assert_true(hed_now_ns() - begin >= 190 * MS); /* not earlier */
    for (size_t i = 0; i < COUNT(c); i++)
        hed_conn_close(c[i]);
    close(listener);
}

/* A server that refuses a client sends the reason and hangs up, although more has arrived that it
 * does not read. */
static void
last_words_are_heard(void **state)
{
    const struct pair p = make_pair("tcp://127.0.0.1:0");
    char more[100000] = {0};
    char bytes[8];
    int unread = 0;

    assert_int_equal(hed_conn_write(p.client, more, sizeof more), 0);
    WAIT_UNTIL(ioctl(hed_conn_fd(p.server), FIONREAD, &unread) == 0 && unread > 0);
    assert_int_equal(hed_conn_write(p.server, "refused!", 8), 0);
    hed_conn_close(p.server);
    give_a_moment(50); /* meanwhile a reset would discard the reason */
    assert_int_equal(hed_conn_read(p.client, bytes, 8, PATIENCE_MS), 0);
    assert_memory_equal(bytes, "refused!", 8);
    hed_conn_close(p.client);
}

/* A busy worker reads nothing for a long while, but its machine is there all the same. */
static void
a_peer_without_room_is_not_silent(void **state)
{
    const struct pair p = make_pair("tcp://127.0.0.1:0");
    struct flow f = {p.client, 16u << 20, 0, 1};
    unsigned char *bytes = malloc(f.n);
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, pour, &f), 0);
    give_a_moment(HED_CONN_LOST_MS + 2500);
    assert_false(hed_conn_gone(p.client));
    assert_int_equal(hed_conn_read(p.server, bytes, f.n, PATIENCE_MS), 0);
    pthread_join(thread, NULL);
    assert_int_equal(f.err, 0);
    free(bytes);
    close_pair(p);
}

static void
a_forked_child_lets_go_without_a_word(void **state)
{
    enter_scratch();

    const struct pair p = make_pair("unix:fork.sock");
    int pipes[2];
    char c = 0;

    assert_int_equal(pipe(pipes), 0);

    const pid_t child = fork();

    if (child == 0) {
        hed_conn_forget(p.client);
        hed_conn_forget(NULL);
        _exit(write(pipes[1], "d", 1) == 1 ? 0 : 1);
    }
    assert_int_equal(read(pipes[0], &c, 1), 1);
    assert_false(hed_conn_gone(p.server));
    check_flow(p.client, p.server, 1000, 0, PATIENCE_MS);
    close(pipes[0]);
    close(pipes[1]);
    close_pair(p);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bytes_go_both_ways),
    cmocka_unit_test_teardown(short_and_interrupted_calls_change_nothing, good_again),
    cmocka_unit_test(real_signals_change_nothing),
    cmocka_unit_test_teardown(a_cut_line_is_an_error_on_both_sides, good_again),
    cmocka_unit_test(a_peer_that_hung_up_is_noticed),
    cmocka_unit_test(reading_ends_when_time_runs_out),
    cmocka_unit_test(descriptors_arrive_and_close_on_exec),
    cmocka_unit_test_teardown(other_numbers_of_descriptors_are_refused_and_closed, good_again),
    cmocka_unit_test(the_peer_of_a_unix_socket_is_known),
    cmocka_unit_test(a_unix_socket_has_the_mode_whatever_the_umask),
    cmocka_unit_test(a_live_socket_a_file_and_a_missing_folder_are_refused),
    cmocka_unit_test(a_taken_port_is_refused),
    cmocka_unit_test(nobody_there_is_told),
    cmocka_unit_test(tcp_without_tls_must_be_asked_for),
    cmocka_unit_test(a_full_queue_is_waited_for_in_vain_no_longer_than_allowed),
    cmocka_unit_test(last_words_are_heard),
    cmocka_unit_test(a_peer_without_room_is_not_silent),
    cmocka_unit_test(a_forked_child_lets_go_without_a_word),
};

HED_UNIT_MAIN(tests)
