/* Tests of base/process: families of processes. */
#include "harness/unit.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"

/* The family that a child sees for itself, after it has left the group or not. */
static uint64_t
family_of_child(bool leaves)
{
    uint64_t family = 0;
    int fds[2];

    assert_int_equal(pipe(fds), 0);

    const pid_t pid = fork();

    if (pid == 0) {
        if (leaves && setpgid(0, 0) != 0)
            _exit(1);
        family = hed_process_family(getpid());
        _exit(write(fds[1], &family, sizeof family) == (ssize_t)sizeof family ? 0 : 1);
    }
    assert_int_equal(read(fds[0], &family, sizeof family), sizeof family);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(fds[0]);
    close(fds[1]);
    return family;
}

static void
children_are_of_the_family(void **state)
{
    const uint64_t mine = hed_process_family(getpid());

    assert_true(mine != 0);
    assert_true(family_of_child(false) == mine);
    assert_true(family_of_child(true) != mine);
}

static void
a_process_that_is_not_there_has_none(void **state)
{
    const pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(hed_process_family(pid) == 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(children_are_of_the_family),
    cmocka_unit_test(a_process_that_is_not_there_has_none),
};

HED_UNIT_MAIN(tests)
