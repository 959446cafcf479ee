/* Tests of what the command and a program say about snapshots: everything that arrives is checked,
 * descriptors come with it, and sockets of the dead do not stay in the way. */
#include "harness/unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/meeting.h"
#include "move/talk/talk.h"

static char folder[64]; /* where the processes of this test meet */

static int
make_folder(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/hed-talk-XXXXXX");
    assert_non_null(mkdtemp(folder));
    hed_meeting_choose(folder);
    return 0;
}

static int
remove_folder(void **state)
{
    char path[HED_TALK_PATH_MAX];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/snap-%d", folder, (int)getpid());
    (void)unlink(path);
    (void)rmdir(folder);
    hed_meeting_choose("");
    return 0;
}

/* A child that listens; with `stays`, it lives until it is killed. Its socket is old. */
static pid_t
listen_in_child(bool stays, char path[HED_TALK_PATH_MAX])
{
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    int fds[2];

    assert_int_equal(pipe(fds), 0);

    const pid_t pid = fork();

    if (pid == 0) {
        char own[HED_TALK_PATH_MAX];
        int listener;
        const int err = hed_talk_listen(&listener, own, NULL);

        (void)!write(fds[1], "", 1);
        while (err == 0 && stays)
            (void)pause();
        _exit(err != 0);
    }
    assert_int_equal(read(fds[0], &(char){0}, 1), 1);
    (void)close(fds[0]);
    (void)close(fds[1]);
    if (!stays)
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    (void)snprintf(path, HED_TALK_PATH_MAX, "%s/snap-%d", folder, (int)pid);
    assert_int_equal(utimensat(AT_FDCWD, path, old, AT_SYMLINK_NOFOLLOW), 0);
    return pid;
}

static void
sockets_of_the_dead_are_swept(void **state)
{
    char dead[HED_TALK_PATH_MAX], alive[HED_TALK_PATH_MAX], own[HED_TALK_PATH_MAX];
    char other[HED_TALK_PATH_MAX];
    const pid_t pid = listen_in_child(true, alive);
    int listener, fd;

    (void)state;
    (void)listen_in_child(false, dead);
    (void)snprintf(other, sizeof other, "%s/snap-x", folder);
    fd = open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    assert_int_equal(hed_talk_listen(&listener, own, NULL), 0);
    assert_int_not_equal(access(dead, F_OK), 0);
    assert_int_equal(access(alive, F_OK), 0);
    assert_int_equal(access(own, F_OK), 0);
    assert_int_equal(unlink(other), 0); /* not ours to remove */
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(unlink(alive), 0);
    hed_talk_forget_own();
    assert_int_not_equal(access(own, F_OK), 0);
    (void)close(listener);
}

static void
structs_that_are_right_pass(void **state)
{
    struct hed_talk_request q, q2;
    struct hed_talk_answer a, a2;

    (void)state;
    for (unsigned k = HED_TALK_INFO; k <= HED_TALK_KIND_LAST; k++) {
        hed_talk_ask(&q, k);
        assert_int_equal(hed_talk_check_request(&q, sizeof q, 0, &q2, NULL), 0);
        assert_int_equal(q2.kind, k);
        hed_talk_reply(&a, &q);
        assert_int_equal(hed_talk_check_answer(&a, sizeof a, &a2, NULL), 0);
        assert_int_equal(a2.kind, k);
        assert_string_not_equal(hed_talk_kind_name(k), "?");
    }
    assert_string_equal(hed_talk_kind_name(99), "?");
    assert_string_equal(hed_talk_state_name(HED_TALK_STATE_LAST), "lost");
    assert_string_equal(hed_talk_state_name(99), "?");
    for (unsigned o = 0; o < HED_TALK_OBJECTS; o++)
        assert_non_null(hed_talk_object_name(o));
}

static void
wrong_requests_are_refused(void **state)
{
    struct hed_talk_request q, out;
    struct hed_why why;

    (void)state;
    hed_talk_ask(&q, HED_TALK_INFO);
    for (size_t n = 0; n < sizeof q; n++)
        assert_int_equal(hed_talk_check_request(&q, n, 0, &out, &why), HED_EFORMAT);
    assert_int_equal(hed_talk_check_request(&q, sizeof q + 1, 0, &out, &why), HED_EFORMAT);
    assert_int_equal(hed_talk_check_request(&q, sizeof q, 1, &out, &why), HED_EFORMAT);
    q.magic++;
    assert_int_equal(hed_talk_check_request(&q, sizeof q, 0, &out, &why), HED_EFORMAT);
    hed_talk_ask(&q, HED_TALK_INFO);
    q.version++;
    assert_int_equal(hed_talk_check_request(&q, sizeof q, 0, &out, &why), HED_EVERSION);
    assert_non_null(strstr(why.text, "different versions"));
    hed_talk_ask(&q, HED_TALK_KIND_LAST + 1);
    assert_int_equal(hed_talk_check_request(&q, sizeof q, 0, &out, &why), HED_EFORMAT);
    hed_talk_ask(&q, HED_TALK_INFO);
    q.flags = HED_TALK_MORE;
    assert_int_equal(hed_talk_check_request(&q, sizeof q, 0, &out, &why), HED_EFORMAT);
    q.flags = 1u << 31;
    assert_int_equal(hed_talk_check_request(&q, sizeof q, 0, &out, &why), HED_EFORMAT);
    hed_talk_ask(&q, HED_TALK_MOVE);
    memset(q.address, 'x', sizeof q.address);
    assert_int_equal(hed_talk_check_request(&q, sizeof q, 0, &out, &why), HED_EFORMAT);
}

static void
wrong_answers_are_refused(void **state)
{
    struct hed_talk_request q;
    struct hed_talk_answer a, out;
    struct hed_why why;

    (void)state;
    hed_talk_ask(&q, HED_TALK_INFO);
    hed_talk_reply(&a, &q);
    a.err = 1;
    assert_int_equal(hed_talk_check_answer(&a, sizeof a, &out, &why), HED_EFORMAT);
    hed_talk_reply(&a, &q);
    a.state = HED_TALK_STATE_LAST + 1;
    assert_int_equal(hed_talk_check_answer(&a, sizeof a, &out, &why), HED_EFORMAT);
    hed_talk_reply(&a, &q);
    memset(a.why, 'x', sizeof a.why);
    assert_int_equal(hed_talk_check_answer(&a, sizeof a, &out, &why), HED_EFORMAT);
}

/* The program's side, in a thread: answers each request with the bytes of its first file. */
static void *
play_program(void *arg)
{
    const int listener = *(int *)arg;
    int fds[HED_TALK_FDS_MAX];
    struct hed_talk_request q;
    struct hed_talk_answer a;
    pid_t peer = 0;
    int fd = -1;

    assert_int_equal(hed_talk_accept(listener, 20000, &fd, &peer), 0);
    assert_int_equal(peer, getpid());
    assert_int_equal(hed_talk_receive(fd, 20000, &q, fds, NULL), 0);
    hed_talk_reply(&a, &q);
    a.flags = HED_TALK_MORE;
    assert_int_equal(hed_talk_answer(fd, &a), 0);
    a.flags = 0;
    a.written = q.fds;
    if (q.fds > 0)
        assert_int_equal(pread(fds[q.fds - 1], a.why, 5, 0), 5);
    for (uint32_t i = 0; i < q.fds; i++)
        close(fds[i]);
    if (q.kind == HED_TALK_MOVE)
        a.err = HED_ENOTSUP;
    assert_int_equal(hed_talk_answer(fd, &a), 0);
    close(fd);
    return NULL;
}

static void
requests_carry_descriptors(void **state)
{
    char path[HED_TALK_PATH_MAX];
    char name[] = "/tmp/hed-talk-file-XXXXXX";
    int fds[HED_TALK_FDS_MAX];
    struct hed_talk_request q;
    struct hed_talk_answer a;
    struct hed_why why = {""};
    pthread_t t;
    int listener = -1;

    (void)state;
    assert_int_equal(hed_talk_listen(&listener, path, &why), 0);

    const int file = mkstemp(name);

    assert_true(file >= 0);
    assert_int_equal(pwrite(file, "hello", 5, 0), 5);
    unlink(name);
    for (size_t i = 0; i < HED_TALK_FDS_MAX; i++)
        fds[i] = file;
    pthread_create(&t, NULL, play_program, &listener);
    hed_talk_ask(&q, HED_TALK_CAPTURE);
    assert_int_equal(hed_talk_call(getpid(), &q, fds, HED_TALK_FDS_MAX, 20000, &a, &why), 0);
    assert_string_equal(a.why, "hello");
    assert_int_equal(a.written, HED_TALK_FDS_MAX);
    pthread_join(t, NULL);

    pthread_create(&t, NULL, play_program, &listener);
    hed_talk_ask(&q, HED_TALK_MOVE);
    assert_int_equal(hed_talk_call(getpid(), &q, NULL, 0, 20000, &a, &why), HED_ENOTSUP);
    assert_string_equal(why.text, "not supported");
    pthread_join(t, NULL);
    assert_int_equal(hed_talk_call(getpid(), &q, fds, HED_TALK_FDS_MAX + 1, 0, &a, &why),
                     HED_ELIMIT);
    close(file);
    close(listener);
}

/* Is every descriptor that came with a bad request closed? */
static void
descriptors_of_bad_requests_are_closed(void **state)
{
    char path[HED_TALK_PATH_MAX];
    struct hed_talk_request q;
    int fds[HED_TALK_FDS_MAX];
    struct hed_why why;
    int listener, fd, there, pipe_fds[2];
    char c;

    (void)state;
    assert_int_equal(hed_talk_listen(&listener, path, &why), 0);
    assert_int_equal(hed_talk_open_at(path, &fd, &why), 0);
    assert_int_equal(hed_talk_accept(listener, 20000, &there, NULL), 0);
    assert_int_equal(pipe(pipe_fds), 0);
    hed_talk_ask(&q, HED_TALK_CAPTURE);
    q.kind = 77;
    assert_int_equal(hed_talk_send(fd, &q, &pipe_fds[1], 1, &why), 0);
    close(pipe_fds[1]);
    assert_int_equal(hed_talk_receive(there, 20000, &q, fds, &why), HED_EFORMAT);
    assert_int_equal(read(pipe_fds[0], &c, 1), 0); /* nobody has the other end any more */
    close(fd);
    assert_int_equal(hed_talk_receive(there, 20000, &q, fds, &why), HED_ETRUNC);
    close(pipe_fds[0]);
    close(there);
    close(listener);
}

static void
a_dead_process_leaves_its_path_free(void **state)
{
    char path[HED_TALK_PATH_MAX];
    struct hed_why why;
    int first, second, fd;

    (void)state;
    assert_int_equal(hed_talk_listen(&first, path, &why), 0);
    assert_int_equal(hed_talk_listen(&second, path, &why), HED_EEXIST); /* the first one lives */
    close(first);
    assert_int_equal(hed_talk_open(getpid(), &fd, &why), HED_ENOTFOUND);
    assert_int_equal(hed_talk_listen(&second, path, &why), 0);
    assert_int_equal(hed_talk_open(getpid(), &fd, &why), 0);
    close(fd);
    close(second);
}

static bool
find_own_number(void *arg, pid_t pid)
{
    if (pid == getpid())
        ++*(int *)arg;
    return true;
}

static void
programs_that_listen_are_found(void **state)
{
    char path[HED_TALK_PATH_MAX];
    struct hed_why why;
    int listener, fd;
    int found = 0;

    (void)state;
    hed_talk_each(find_own_number, &found);
    assert_int_equal(found, 0);
    assert_int_equal(hed_talk_listen(&listener, path, &why), 0);
    hed_talk_each(find_own_number, &found);
    assert_int_equal(found, 1);

    /* The path of a process that has another one's socket, as in another container. */
    const pid_t child = fork();

    if (child == 0) {
        char other[HED_TALK_PATH_MAX];
        struct hed_why reason;

        _exit(hed_talk_path(getpid(), other, NULL) == 0 && rename(path, other) == 0 &&
                      hed_talk_open(getpid(), &fd, &reason) == HED_ENOTFOUND &&
                      strstr(reason.text, "another container") && rename(other, path) == 0
                  ? 0
                  : 1);
    }

    int status = -1;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(listener);
}

static void
silence_ends_at_the_deadline(void **state)
{
    char path[HED_TALK_PATH_MAX];
    struct hed_talk_request q;
    struct hed_talk_answer a;
    struct hed_why why;
    int listener, fd, none;

    (void)state;
    assert_int_equal(hed_talk_listen(&listener, path, &why), 0);
    assert_int_equal(hed_talk_accept(listener, 1, &none, NULL), HED_ETIME);
    assert_int_equal(hed_talk_open_at(path, &fd, &why), 0);
    hed_talk_ask(&q, HED_TALK_INFO);
    assert_int_equal(hed_talk_send(fd, &q, NULL, 0, &why), 0);
    assert_int_equal(hed_talk_wait(fd, 1, HED_TALK_INFO, &a, &why), HED_ETIME);
    close(listener);
    assert_int_equal(hed_talk_wait(fd, 20000, HED_TALK_INFO, &a, &why), HED_ETRUNC);
    close(fd);
}

/* A program that never comes to the end of its answers does not keep the command. */
static void
endless_answers_are_refused(void **state)
{
    struct hed_talk_request q;
    struct hed_talk_answer a;
    struct hed_why why;
    int fds[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    hed_talk_ask(&q, HED_TALK_OUT);
    hed_talk_reply(&a, &q);
    a.flags = HED_TALK_MORE;
    for (int i = 0; i < 20; i++)
        assert_int_equal(hed_talk_answer(fds[1], &a), 0);
    close(fds[1]);
    assert_int_equal(hed_talk_rest(fds[0], 1000, &a, &why), HED_EFORMAT);
    close(fds[0]);
}

/* A program that accepts nobody does not keep those who ask it. */
static void
a_full_queue_is_not_waited_for(void **state)
{
    char path[HED_TALK_PATH_MAX];
    struct hed_why why;
    int listener, fds[256], count = 0, err = 0;

    (void)state;
    assert_int_equal(hed_talk_listen(&listener, path, &why), 0);
    while (count < 256 && err == 0) {
        err = hed_talk_open_at(path, &fds[count], &why);
        count += err == 0;
    }
    assert_int_equal(err, HED_ETIME);
    while (count > 0)
        close(fds[--count]);
    close(listener);
}

static void *
lift_limit(void *arg)
{
    const struct timespec moment = {.tv_nsec = 20000000};

    (void)nanosleep(&moment, NULL);
    (void)setrlimit(RLIMIT_NOFILE, arg);
    return NULL;
}

/* A program that has used up its descriptors can be asked again when it has some. */
static void
a_lack_of_descriptors_passes(void **state)
{
    char path[HED_TALK_PATH_MAX];
    struct rlimit usual, none;
    pthread_t thread;
    int listener, fd, got;

    (void)state;
    assert_int_equal(hed_talk_listen(&listener, path, NULL), 0);
    assert_int_equal(hed_talk_open_at(path, &fd, NULL), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    none = usual;
    none.rlim_cur = 1; /* what poll(2) needs, and it is taken */
    assert_int_equal(pthread_create(&thread, NULL, lift_limit, &usual), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);

    const int err = hed_talk_accept(listener, -1, &got, NULL);

    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(err, 0);
    close(got);
    close(fd);
    close(listener);
}

static void
long_folders_are_refused(void **state)
{
    char path[300];
    struct hed_why why;
    int fd;

    (void)state;
    memset(path, 'x', sizeof path - 1);
    path[0] = '/';
    path[sizeof path - 1] = 0;
    assert_int_equal(hed_talk_listen_at(path, &fd, &why), HED_ERANGE);
    assert_int_equal(hed_talk_open_at(path, &fd, &why), HED_ERANGE);
    assert_non_null(strstr(why.text, "meet_dir"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(structs_that_are_right_pass),
    cmocka_unit_test(wrong_requests_are_refused),
    cmocka_unit_test(wrong_answers_are_refused),
    cmocka_unit_test_setup_teardown(requests_carry_descriptors, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(descriptors_of_bad_requests_are_closed, make_folder,
                                    remove_folder),
    cmocka_unit_test_setup_teardown(a_dead_process_leaves_its_path_free, make_folder,
                                    remove_folder),
    cmocka_unit_test_setup_teardown(sockets_of_the_dead_are_swept, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(programs_that_listen_are_found, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(silence_ends_at_the_deadline, make_folder, remove_folder),
    cmocka_unit_test(endless_answers_are_refused),
    cmocka_unit_test_setup_teardown(a_full_queue_is_not_waited_for, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_lack_of_descriptors_passes, make_folder, remove_folder),
    cmocka_unit_test(long_folders_are_refused),
};

HED_UNIT_MAIN(tests)
