/* Tests of base/meeting: which folder it is, and that no other user can take it or get into it. */
#include "harness/unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/meeting.h"

#define STRANGER 65534u /* another user, if the test runs as root */

static char root[64];
static char run[96];
static char shared[96];
static char home[96];
static char own[128]; /* the folder in `shared` */
static struct hed_meeting_places places;
static struct hed_meeting_folders folders;

static int
setup(void **state)
{
    (void)snprintf(root, sizeof root, "/tmp/heddle-meeting-XXXXXX");
    assert_non_null(mkdtemp(root));
    assert_int_equal(chmod(root, 0755), 0);
    (void)snprintf(run, sizeof run, "%s/run", root);
    (void)snprintf(shared, sizeof shared, "%s/shm", root);
    (void)snprintf(home, sizeof home, "%s/home", root);
    (void)snprintf(own, sizeof own, "%s/heddle-%u", shared, (unsigned)geteuid());
    assert_int_equal(mkdir(shared, 0700), 0);
    assert_int_equal(chmod(shared, 01777), 0);
    assert_int_equal(mkdir(home, 0755), 0);
    places = (struct hed_meeting_places){geteuid(), run, shared, home, NULL};
    return 0;
}

static void
remove_tree(const char *path)
{
    const pid_t pid = fork();

    if (pid == 0) {
        execlp("rm", "rm", "-rf", path, (char *)NULL);
        _exit(1);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int
teardown(void **state)
{
    remove_tree(root);
    return 0;
}

/* The path of the first folder, below the root; "" if there is none. */
static const char *
choose(bool make)
{
    static char chosen[HED_MEETING_PATH_MAX];
    struct hed_why why;

    chosen[0] = '\0';
    if (hed_meeting_open_in(&places, make, &folders, &why) == 0)
        (void)snprintf(chosen, sizeof chosen, "%s", folders.at[0].path + strlen(root));
    hed_meeting_close(&folders);
    return chosen;
}

static bool
is_in_shared(const char *path)
{
    return strncmp(path, "/shm/heddle-", 12) == 0;
}

static bool
is_at_home(const char *path)
{
    return strncmp(path, "/home/.heddle-", 14) == 0;
}

static void
assert_private(const char *path)
{
    struct stat st;

    assert_int_equal(lstat(path, &st), 0);
    assert_int_equal(st.st_mode, S_IFDIR | 0700);
    assert_int_equal(st.st_uid, geteuid());
}

static void
the_folder_in_run_comes_first(void **state)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/heddle", run);
    assert_int_equal(mkdir(run, 0700), 0);
    assert_string_equal(choose(true), "/run/heddle");
    assert_private(path);
    assert_int_equal(access(own, F_OK), -1);
}

static void
a_folder_in_run_that_others_can_open_is_not_used(void **state)
{
    assert_int_equal(mkdir(run, 0755), 0);
    assert_true(is_in_shared(choose(true)));
    assert_private(own);
    assert_int_equal(rmdir(run), 0);
    assert_int_equal(symlink(home, run), 0);
    assert_true(is_in_shared(choose(true)));
}

static void
looking_creates_no_folder(void **state)
{
    assert_string_equal(choose(false), "");
    assert_int_equal(access(own, F_OK), -1);
    assert_int_equal(mkdir(run, 0700), 0);
    assert_string_equal(choose(false), "");
    assert_true(*choose(true));
    assert_string_equal(choose(false), "/run/heddle");
}

/* The user logs in while a program that was started before is in the other folder. */
static void
a_file_in_the_other_folder_is_found(void **state)
{
    struct hed_why why;

    assert_true(is_in_shared(choose(true)));
    assert_int_equal(mkdir(run, 0700), 0);
    assert_int_equal(hed_meeting_open_in(&places, true, &folders, &why), 0);
    assert_int_equal(folders.count, 2);
    assert_ptr_equal(hed_meeting_find(&folders, "x"), &folders.at[0]);
    close(openat(folders.at[1].fd, "x", O_CREAT | O_WRONLY, 0600));
    assert_ptr_equal(hed_meeting_find(&folders, "x"), &folders.at[1]);
    close(openat(folders.at[0].fd, "x", O_CREAT | O_WRONLY, 0600));
    assert_ptr_equal(hed_meeting_find(&folders, "x"), &folders.at[0]);
    hed_meeting_close(&folders);
}

/* Puts something in the way, in each way that another user could. */
static void
take_name(int how)
{
    if (how == 0)
        assert_int_equal(mkdir(own, 0755), 0); /* the right owner, but others can read it */
    else if (how == 1)
        assert_int_equal(symlink(home, own), 0);
    else if (how == 2)
        close(open(own, O_CREAT | O_WRONLY, 0600));
    else
        assert_int_equal(mkdir(own, 0700), 0);
    if (how >= 3)
        assert_int_equal(lchown(own, STRANGER, STRANGER), 0);
}

static void
a_name_that_was_taken_sends_programs_home(void **state)
{
    const int ways = geteuid() == 0 ? 4 : 3;
    char owner[64];

    for (int how = 0; how < ways; how++) {
        take_name(how);
        assert_true(is_at_home(choose(true)));
        (void)snprintf(owner, sizeof owner, "belongs to user %u",
                       how == 3 ? STRANGER : (unsigned)geteuid());
        assert_non_null(strstr(folders.warning.text, owner));
        remove_tree(own);
    }
}

static void
a_taken_name_does_not_matter_with_a_folder_in_run(void **state)
{
    take_name(1);
    assert_int_equal(mkdir(run, 0700), 0);
    assert_string_equal(choose(true), "/run/heddle");
    assert_string_equal(folders.warning.text, "");
}

/* Programs that have met at home are met there. */
static void
a_name_that_is_given_up_separates_no_programs(void **state)
{
    take_name(1);
    assert_true(is_at_home(choose(true)));
    assert_int_equal(unlink(own), 0);
    assert_true(is_at_home(choose(true)));
    assert_true(is_at_home(choose(false)));
    assert_int_equal(access(own, F_OK), -1);
}

static void
a_home_that_others_can_change_is_not_used(void **state)
{
    struct hed_why why = {""};

    take_name(1);
    assert_int_equal(chmod(home, 0777), 0);
    assert_int_equal(hed_meeting_open_in(&places, true, &folders, &why), HED_EACCESS);
    assert_non_null(strstr(why.text, "belongs to user"));
    assert_non_null(strstr(why.text, "home"));
}

static void
without_shared_memory_there_is_no_folder(void **state)
{
    struct hed_why why = {""};

    assert_int_equal(rmdir(shared), 0);
    assert_true(hed_meeting_open_in(&places, true, &folders, &why) < 0);
    assert_non_null(strstr(why.text, own));
}

static void
only_plain_files_of_the_user_alone_are_owned(void **state)
{
    struct hed_why why;

    assert_int_equal(hed_meeting_open_in(&places, true, &folders, &why), 0);

    const struct hed_meeting_folder *f = &folders.at[0];
    const int fd = openat(f->fd, "x", O_CREAT | O_RDWR, 0600);

    assert_true(hed_meeting_owns(f, fd));
    assert_int_equal(fchmod(fd, 0640), 0);
    assert_false(hed_meeting_owns(f, fd));
    assert_int_equal(fchmod(fd, 0600), 0);
    assert_int_equal(linkat(f->fd, "x", f->fd, "y", 0), 0);
    assert_false(hed_meeting_owns(f, fd));
    assert_int_equal(unlinkat(f->fd, "y", 0), 0);
    assert_int_equal(unlinkat(f->fd, "x", 0), 0);
    assert_true(hed_meeting_owns(f, fd));
    if (geteuid() == 0) {
        assert_int_equal(fchown(fd, STRANGER, STRANGER), 0);
        assert_false(hed_meeting_owns(f, fd));
    }
    assert_false(hed_meeting_owns(f, f->fd));
    close(fd);
    hed_meeting_close(&folders);
}

/* The folder of the setting meet_dir, which an administrator has made. */
static const char *
make_team(mode_t mode)
{
    static char team[96];

    (void)snprintf(team, sizeof team, "%s/team", root);
    assert_int_equal(mkdir(team, 0700), 0);
    assert_int_equal(chmod(team, mode), 0);
    places.given = team;
    return team;
}

static void
a_given_folder_is_the_only_one(void **state)
{
    struct hed_why why;

    (void)make_team(0700);
    assert_int_equal(mkdir(run, 0700), 0);
    assert_int_equal(hed_meeting_open_in(&places, true, &folders, &why), 0);
    assert_int_equal(folders.count, 1);
    assert_string_equal(folders.at[0].path, places.given);
    assert_false(folders.at[0].shared);
    assert_int_equal(folders.at[0].mode, 0600);
    hed_meeting_close(&folders);
}

static void
files_belong_to_the_group_whatever_the_umask(void **state)
{
    struct hed_why why;
    struct stat st;

    (void)make_team(02770);
    assert_int_equal(hed_meeting_open_in(&places, true, &folders, &why), 0);

    const struct hed_meeting_folder *f = &folders.at[0];
    const mode_t before = umask(077);
    const int fd = openat(f->fd, "x", O_CREAT | O_RDWR, f->mode);

    assert_true(f->shared);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(hed_meeting_adopt(f, fd), 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0660);
    assert_int_equal(st.st_gid, f->group);
    assert_true(hed_meeting_owns(f, fd));
    assert_int_equal(fchmod(fd, 0664), 0); /* others can read it */
    assert_false(hed_meeting_owns(f, fd));
    assert_int_equal(fchmod(fd, 0660), 0);
    if (geteuid() == 0) {
        assert_int_equal(fchown(fd, STRANGER, (gid_t)-1), 0); /* another member's */
        assert_true(hed_meeting_owns(f, fd));
        assert_int_equal(fchown(fd, (uid_t)-1, STRANGER), 0);
        assert_false(hed_meeting_owns(f, fd));
    }
    (void)umask(before);
    close(fd);
    hed_meeting_close(&folders);
}

static void
assert_refused(int expected, const char *says)
{
    struct hed_why why = {""};

    assert_int_equal(hed_meeting_open_in(&places, true, &folders, &why), expected);
    assert_int_equal(folders.count, 0);
    assert_non_null(strstr(why.text, "meet_dir: "));
    assert_non_null(strstr(why.text, says));
}

static void
a_given_folder_that_cannot_be_used_is_refused(void **state)
{
    const char *team = make_team(02777);
    char path[128];

    assert_refused(HED_EACCESS, "all users can write to it");
    assert_int_equal(rmdir(team), 0);
    assert_refused(HED_ENOTFOUND, "an administrator has to make it");
    assert_int_equal(symlink(home, team), 0);
    assert_refused(HED_EACCESS, "");
    assert_int_equal(unlink(team), 0);
    close(open(team, O_CREAT | O_WRONLY, 0600));
    assert_refused(HED_EACCESS, "");
    places.given = "team";
    assert_refused(HED_EINVAL, "not the full path");
    if (geteuid() == 0) {
        (void)snprintf(path, sizeof path, "%s/theirs", root);
        assert_int_equal(mkdir(path, 0770), 0);
        assert_int_equal(chown(path, STRANGER, STRANGER), 0);
        places.given = path;
        assert_refused(HED_EACCESS, "belongs to another user");
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_given_folder_is_the_only_one, setup, teardown),
    cmocka_unit_test_setup_teardown(files_belong_to_the_group_whatever_the_umask, setup, teardown),
    cmocka_unit_test_setup_teardown(a_given_folder_that_cannot_be_used_is_refused, setup, teardown),
    cmocka_unit_test_setup_teardown(the_folder_in_run_comes_first, setup, teardown),
    cmocka_unit_test_setup_teardown(a_folder_in_run_that_others_can_open_is_not_used, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(looking_creates_no_folder, setup, teardown),
    cmocka_unit_test_setup_teardown(a_file_in_the_other_folder_is_found, setup, teardown),
    cmocka_unit_test_setup_teardown(a_name_that_was_taken_sends_programs_home, setup, teardown),
    cmocka_unit_test_setup_teardown(a_taken_name_does_not_matter_with_a_folder_in_run, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(a_name_that_is_given_up_separates_no_programs, setup, teardown),
    cmocka_unit_test_setup_teardown(a_home_that_others_can_change_is_not_used, setup, teardown),
    cmocka_unit_test_setup_teardown(without_shared_memory_there_is_no_folder, setup, teardown),
    cmocka_unit_test_setup_teardown(only_plain_files_of_the_user_alone_are_owned, setup, teardown),
};

HED_UNIT_MAIN(tests)
