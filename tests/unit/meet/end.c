/* Tests of meet/meet: the file is removed by the last process that leaves, and by no other; and the
 * names that other users can take do not matter. */
#include "harness/unit.h"

#include <sys/stat.h>

#include "base/err.h"
#include "unit/meet/make.h"

static bool
has_file(void)
{
    return access(meet_path, F_OK) == 0;
}

static void
the_last_to_leave_removes_the_file(void **state)
{
    struct hed_meet *a = join_meeting();
    struct hed_meet *b = join_meeting();
    struct hed_meet *look = NULL;

    assert_int_equal(hed_meet_look(meet_name, &meet_shape, &look, NULL), 0);
    hed_meet_leave(a);
    assert_true(has_file());
    hed_meet_leave(b);
    assert_false(has_file());
    hed_meet_leave(look);
    assert_false(has_file());
}

static void
an_end_keeps_the_slot(void **state)
{
    struct hed_meet *a = join_meeting();
    struct hed_meet *b = join_meeting();

    hed_meet_end(a);
    hed_meet_end(a);
    assert_true(has_file());
    assert_true(hed_meet_taken(b, 0, NULL));
    memcpy(hed_meet_mine(a), "late", 5);
    assert_string_equal(hed_meet_slot(b, 0), "late");
    assert_int_equal(hed_meet_lock(a), 0);
    hed_meet_unlock(a);

    struct hed_meet *c = join_meeting();

    assert_int_equal(hed_meet_index(c), 2);
    hed_meet_leave(c);
    assert_true(has_file());
    hed_meet_leave(b); /* the other one that is left is about to end */
    assert_false(has_file());
    hed_meet_leave(a);
}

static void
one_that_only_looks_removes_nothing(void **state)
{
    struct hed_meet *m = join_meeting();
    struct hed_meet *look = NULL;

    assert_int_equal(hed_meet_look(meet_name, &meet_shape, &look, NULL), 0);
    hed_meet_end(look);
    assert_true(has_file());
    hed_meet_leave(look);
    assert_true(has_file());
    hed_meet_leave(m);
}

/* Starts `count` children that run `work` when all are ready, and waits for them. */
static void
run_at_once(int count, bool (*work)(struct hed_meet *m), bool join)
{
    int ready[2];
    int go[2];
    pid_t pids[16];
    char c;

    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(go), 0);
    for (int i = 0; i < count; i++) {
        pids[i] = fork();
        if (pids[i] != 0)
            continue;
        close(go[1]);

        struct hed_meet *m = NULL;

        if (join && hed_meet_join(meet_name, &meet_shape, &m, NULL) != 0)
            _exit(1);
        if (write(ready[1], "y", 1) != 1 || read(go[0], &c, 1) != 0)
            _exit(1);
        _exit(work(m) ? 0 : 1);
    }
    close(go[0]);
    wait_for(ready[0], count);
    close(go[1]);
    for (int i = 0; i < count; i++) {
        int status = -1;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    close(ready[0]);
    close(ready[1]);
}

static bool
only_end(struct hed_meet *m)
{
    hed_meet_end(m); /* as when a process exits: it does not close anything */
    return true;
}

static void
members_that_leave_at_once_leave_no_file(void **state)
{
    for (int round = 0; round < 20; round++) {
        run_at_once(8, only_end, true);
        assert_false(has_file());
    }
}

/* Two that have joined one after the other are in the same file, whatever others do. */
static bool
come_and_go(struct hed_meet *none)
{
    for (int i = 0; i < 100; i++) {
        struct hed_meet *a = NULL;
        struct hed_meet *b = NULL;

        if (hed_meet_join(meet_name, &meet_shape, &a, NULL) != 0)
            return false;
        *(pid_t *)hed_meet_mine(a) = getpid();
        if (hed_meet_join(meet_name, &meet_shape, &b, NULL) != 0 ||
            *(pid_t *)hed_meet_slot(b, (uint32_t)hed_meet_index(a)) != getpid() ||
            !hed_meet_taken(b, (uint32_t)hed_meet_index(a), NULL))
            return false;
        hed_meet_leave(a);
        hed_meet_leave(b);
    }
    return true;
}

static void
joining_and_leaving_at_once_separates_nobody(void **state)
{
    run_at_once(6, come_and_go, false);
    assert_false(has_file());
}

/* A child joins and is killed. */
static void
leave_behind(void)
{
    int fds[2];

    assert_int_equal(pipe(fds), 0);

    const pid_t pid = fork();

    if (pid == 0) {
        struct hed_meet *m = NULL;
        const bool good = hed_meet_join(meet_name, &meet_shape, &m, NULL) == 0;

        if (write(fds[1], good ? "y" : "n", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    wait_for(fds[0], 1);
    end_child(pid);
    close(fds[0]);
    close(fds[1]);
}

static void
the_file_of_a_killed_process_goes_with_the_next(void **state)
{
    leave_behind();
    assert_true(has_file());
    hed_meet_leave(join_meeting());
    assert_false(has_file());
}

/* Joins and leaves a meeting of another name, which creates a file. */
static void
meet_elsewhere(void)
{
    char other[80];
    struct hed_meet *m = NULL;

    (void)snprintf(other, sizeof other, "%s-other", meet_name);
    assert_int_equal(hed_meet_join(other, &meet_shape, &m, NULL), 0);
    hed_meet_leave(m);
}

static void
make_old(void)
{
    const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};

    assert_int_equal(utimensat(AT_FDCWD, meet_path, times, 0), 0);
}

static void
an_old_file_that_nobody_uses_is_swept_away(void **state)
{
    struct hed_meet *m = join_meeting();

    make_old();
    meet_elsewhere();
    assert_true(has_file());
    hed_meet_leave(m);

    leave_behind();
    meet_elsewhere();
    assert_true(has_file()); /* it may be about to be used */
    make_old();
    meet_elsewhere();
    assert_false(has_file());

    const int fd = open(meet_path, O_CREAT | O_WRONLY, 0600);

    assert_int_equal(write(fd, "precious", 8), 8);
    close(fd);
    make_old();
    meet_elsewhere();
    assert_true(has_file());
}

/* Another user has created files with names that can be guessed. */
static void
names_taken_in_shared_memory_do_not_matter(void **state)
{
    const uid_t user = 61000u + (uid_t)getpid() % 1000; /* that nobody else has */
    char folder[64];
    char taken[128];

    if (geteuid() != 0)
        skip(); /* it needs two users */
    (void)snprintf(folder, sizeof folder, "/dev/shm/heddle-%u", (unsigned)user);
    (void)snprintf(taken, sizeof taken, "%s-%s", folder, meet_name);
    close(open(taken, O_CREAT | O_WRONLY, 0600));

    const pid_t pid = fork();

    if (pid == 0) {
        struct hed_meet *m = NULL;

        if (setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0)
            _exit(2);

        const int err = hed_meet_join(meet_name, &meet_shape, &m, NULL);

        hed_meet_leave(m);
        _exit(err ? 1 : 0);
    }

    int status = -1;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(unlink(taken), 0);
    assert_int_equal(rmdir(folder), 0); /* and the file in it is gone */
    assert_int_equal(status, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(the_last_to_leave_removes_the_file, setup, teardown),
    cmocka_unit_test_setup_teardown(an_end_keeps_the_slot, setup, teardown),
    cmocka_unit_test_setup_teardown(one_that_only_looks_removes_nothing, setup, teardown),
    cmocka_unit_test_setup_teardown(members_that_leave_at_once_leave_no_file, setup, teardown),
    cmocka_unit_test_setup_teardown(joining_and_leaving_at_once_separates_nobody, setup, teardown),
    cmocka_unit_test_setup_teardown(the_file_of_a_killed_process_goes_with_the_next, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(an_old_file_that_nobody_uses_is_swept_away, setup, teardown),
    cmocka_unit_test_setup_teardown(names_taken_in_shared_memory_do_not_matter, setup, teardown),
};

HED_UNIT_MAIN(tests)
