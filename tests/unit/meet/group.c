/* Users of one group meet in a folder of theirs (the setting meet_dir). Needs root, to be several
 * users; skipped otherwise. */
#include "harness/unit.h"

#include <grp.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/err.h"
#include "unit/meet/make.h"

#define TEAM 61234u /* a group; no account needs to exist */

static char folder[64];

static int
make_folder(void **state)
{
    (void)snprintf(meet_name, sizeof meet_name, "test-meet-%ld", (long)getpid());
    (void)snprintf(folder, sizeof folder, "/dev/shm/heddle-team-XXXXXX");
    assert_non_null(mkdtemp(folder));
    (void)snprintf(meet_path, sizeof meet_path, "%s/%s", folder, meet_name);
    hed_meeting_choose(folder);
    return 0;
}

static int
remove_folder(void **state)
{
    (void)unlink(meet_path);
    (void)rmdir(folder);
    hed_meeting_choose("");
    return 0;
}

/* A child of another user that joins, reports through the pipe, and stays until it is killed. */
static pid_t
start_user(uid_t user, gid_t group, int fd)
{
    const pid_t pid = fork();

    if (pid != 0)
        return pid;

    struct hed_meet *m = NULL;

    (void)umask(077);
    if (setgroups(1, &group) != 0 || setresgid(user, user, user) != 0 ||
        setresuid(user, user, user) != 0)
        _exit(1);
    if (write(fd, hed_meet_join(meet_name, &meet_shape, &m, NULL) == 0 ? "y" : "n", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

static void
users_of_a_group_meet(void **state)
{
    char answer = 0;
    struct stat st;
    int fds[2];

    if (geteuid() != 0)
        skip();
    assert_int_equal(chown(folder, 0, TEAM), 0);
    assert_int_equal(chmod(folder, 02770), 0);
    assert_int_equal(pipe(fds), 0);

    const pid_t first = start_user(61001, TEAM, fds[1]);

    wait_for(fds[0], 1);
    assert_int_equal(stat(meet_path, &st), 0);
    assert_int_equal(st.st_uid, 61001);
    assert_int_equal(st.st_gid, TEAM);
    assert_int_equal(st.st_mode & 07777, 0660);

    const pid_t second = start_user(61002, TEAM, fds[1]);

    wait_for(fds[0], 1);

    struct hed_meet *m = join_meeting();

    assert_int_equal(count_people(m), 3);
    end_child(first);
    assert_int_equal(count_people(m), 2);

    /* A user who is not in the group does not get in. */
    const pid_t stranger = start_user(61003, 61003, fds[1]);

    assert_int_equal(read(fds[0], &answer, 1), 1);
    assert_int_equal(answer, 'n');
    end_child(stranger);
    end_child(second);
    hed_meet_leave(m);
    assert_int_equal(access(meet_path, F_OK), -1); /* the last one, of whatever user, removes it */
    close(fds[0]);
    close(fds[1]);
}

static void
a_folder_that_cannot_be_used_has_no_substitute(void **state)
{
    struct hed_meet *m = NULL;
    struct hed_why why = {""};

    assert_int_equal(chmod(folder, 0777), 0);
    assert_int_equal(hed_meet_join(meet_name, &meet_shape, &m, &why), HED_EACCESS);
    assert_non_null(strstr(why.text, "meet_dir: "));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(users_of_a_group_meet, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_folder_that_cannot_be_used_has_no_substitute, make_folder,
                                    remove_folder),
};

HED_UNIT_MAIN(tests)
