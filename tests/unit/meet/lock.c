/* Tests of meet/meet: its lock, whose holder may die, stop or be slow. */
#include "harness/unit.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "unit/meet/make.h"

/* A child that joins, takes the lock, reports through the pipe and keeps the lock for hold_ns (0:
 * until it is killed). */
static pid_t
start_lock_holder(int fd, uint64_t hold_ns)
{
    const pid_t pid = fork();

    if (pid != 0)
        return pid;

    struct hed_meet *m = NULL;
    const bool good = hed_meet_join(meet_name, &meet_shape, &m, NULL) == 0 && hed_meet_lock(m) == 0;

    if (write(fd, good ? "y" : "n", 1) != 1)
        _exit(1);
    while (hold_ns == 0)
        pause();
    hed_sleep_ns(hold_ns);
    hed_meet_unlock(m);
    _exit(0);
}

static void
stop_child(pid_t pid)
{
    int status = 0;

    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
}

static void
a_killed_holder_of_the_lock_lets_go(void **state)
{
    int fds[2];
    struct hed_meet *m = join_meeting();

    assert_int_equal(pipe(fds), 0);

    const pid_t pid = start_lock_holder(fds[1], 0);

    wait_for(fds[0], 1);
    end_child(pid);
    assert_int_equal(hed_meet_lock(m), 0);
    hed_meet_unlock(m);
    hed_meet_leave(m);
    close(fds[0]);
    close(fds[1]);
}

static void
a_stopped_holder_of_the_lock_blocks_nobody(void **state)
{
    int fds[2];
    struct hed_meet *a = join_meeting();
    struct hed_meet *look = NULL;

    assert_int_equal(pipe(fds), 0);

    const pid_t pid = start_lock_holder(fds[1], 0);

    wait_for(fds[0], 1);
    stop_child(pid);

    /* Joining, looking and leaving do not need the lock. */
    struct hed_meet *b = join_meeting();

    assert_int_equal(hed_meet_look(meet_name, &meet_shape, &look, NULL), 0);
    assert_int_equal(count_people(look), 3);
    hed_meet_leave(b);
    assert_int_equal(count_people(look), 2);
    hed_meet_leave(look);
    /* Only one call waits for it. If every call did, this would take ten minutes. */
    for (int i = 0; i < 300; i++)
        assert_int_equal(hed_meet_lock(a), HED_ETIME);
    end_child(pid);
    assert_int_equal(hed_meet_lock(a), 0);
    hed_meet_unlock(a);
    hed_meet_leave(a);
    close(fds[0]);
    close(fds[1]);
}

/* It is held longer than this process would wait for the lock of a stopped holder. */
static void
a_slow_holder_of_the_lock_is_waited_for(void **state)
{
    int fds[2];
    struct hed_meet *m = join_meeting();

    assert_int_equal(pipe(fds), 0);

    const pid_t pid = start_lock_holder(fds[1], 3 * HED_NS_PER_S);

    wait_for(fds[0], 1);
    assert_int_equal(hed_meet_lock(m), 0);
    hed_meet_unlock(m);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    hed_meet_leave(m);
    close(fds[0]);
    close(fds[1]);
}

static void
a_lock_that_nobody_lets_go_of_is_a_wait_that_ends(void **state)
{
    struct hed_meet *a = join_meeting();
    const int fd = lock_from_outside(0);

    assert_int_equal(hed_meet_lock(a), HED_ETIME);
    close(fd);
    assert_int_equal(hed_meet_lock(a), 0);
    hed_meet_unlock(a);
    hed_meet_leave(a);
}

struct add {
    struct hed_meet *m;
    int times;
};

static void *
add_many(void *arg)
{
    const struct add *a = arg;

    for (int i = 0; i < a->times; i++) {
        assert_int_equal(hed_meet_lock(a->m), 0);
        /* Not atomic on purpose: the lock is what is tested. */
        *(volatile uint64_t *)hed_meet_common(a->m) += 1;
        hed_meet_unlock(a->m);
    }
    return NULL;
}

static void
the_lock_keeps_threads_and_processes_apart(void **state)
{
    struct hed_meet *m = join_meeting();
    pthread_t threads[3];
    const pid_t pid = fork();
    struct add a = {m, 300};

    if (pid == 0) {
        struct hed_meet *own = NULL;

        hed_meet_forked(m);
        if (hed_meet_join(meet_name, &meet_shape, &own, NULL) != 0)
            _exit(1);
        add_many(&(struct add){own, 300});
        _exit(0);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, &a), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);

    int status = -1;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(*(uint64_t *)hed_meet_common(m), 1200);
    hed_meet_leave(m);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_killed_holder_of_the_lock_lets_go, setup, teardown),
    cmocka_unit_test_setup_teardown(a_stopped_holder_of_the_lock_blocks_nobody, setup, teardown),
    cmocka_unit_test_setup_teardown(a_slow_holder_of_the_lock_is_waited_for, setup, teardown),
    cmocka_unit_test_setup_teardown(a_lock_that_nobody_lets_go_of_is_a_wait_that_ends, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(the_lock_keeps_threads_and_processes_apart, setup, teardown),
};

HED_UNIT_MAIN(tests)
