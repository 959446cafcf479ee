/* Control groups of workers, in a tree of files that is the test's own: which group is used, what
 * is written to it, and when the server does without. The kernel's part is not tested here. */
#include "harness/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "remote/server/sandbox/group.h"

#define SERVICE "/sys/fs/cgroup/system.slice/heddled.service"

static char root[256];
static unsigned roots;

static void
path_of(const char *path, char out[1024])
{
    (void)snprintf(out, 1024, "%s%s", root, path);
}

static void
write_file(const char *path, const char *text)
{
    char name[1024];
    FILE *f;

    path_of(path, name);
    for (char *at = name + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        (void)mkdir(name, 0755);
        *at = '/';
    }
    f = fopen(name, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void
expect_file(const char *path, const char *text)
{
    char name[1024], got[256] = "";
    FILE *f;

    path_of(path, name);
    f = fopen(name, "r");
    assert_non_null(f);
    if (!fgets(got, sizeof got, f))
        got[0] = '\0';
    assert_int_equal(fclose(f), 0);
    assert_string_equal(got, text);
}

/* A machine on which this process is alone in the group of a service. */
static void
new_tree(const char *controllers)
{
    const char *scratch = getenv("HED_SCRATCH");
    char own[32];

    (void)snprintf(root, sizeof root, "%s/groups%u", scratch ? scratch : "/tmp", roots++);
    (void)snprintf(own, sizeof own, "%d\n", (int)getpid());
    write_file("/proc/self/cgroup", "3:cpu:/\n0::/system.slice/heddled.service\n");
    write_file(SERVICE "/cgroup.controllers", controllers);
    write_file(SERVICE "/cgroup.procs", own);
}

static void
the_listener_moves_aside(void **state)
{
    char base[HED_GROUP_PATH], want[1024], old[1024], own[32];
    struct hed_why why = {""};

    new_tree("cpuset cpu io memory pids\n");
    path_of(SERVICE "/worker-7", want);
    (void)snprintf(own, sizeof own, "%d", (int)getpid());
    write_file(SERVICE "/worker-7/x", "");
    path_of(SERVICE "/worker-7/x", old);
    assert_int_equal(unlink(old), 0);
    assert_int_equal(hed_groups_begin(root, base, &why), 0);
    assert_int_equal(access(want, F_OK), -1); /* one of an earlier server */
    path_of(SERVICE, want);
    assert_string_equal(base, want);
    expect_file(SERVICE "/listener/cgroup.procs", own);
    expect_file(SERVICE "/cgroup.subtree_control", "+cpu");
}

static void
expect_none(const char *reason)
{
    char base[HED_GROUP_PATH], path[1024];
    struct hed_why why = {""};

    assert_int_equal(hed_groups_begin(root, base, &why), HED_ENOTSUP);
    if (!strstr(why.text, reason))
        print_error("%s\n", why.text);
    assert_non_null(strstr(why.text, reason));
    path_of(SERVICE "/cgroup.subtree_control", path);
    assert_int_equal(access(path, F_OK), -1);
}

static void
groups_of_others_are_left_alone(void **state)
{
    char text[64];

    new_tree("cpu memory pids\n");
    write_file("/proc/self/cgroup", "4:memory:/\n");
    expect_none("version 2");

    new_tree("hugetlb\n");
    expect_none("Delegate=");
    new_tree("memory_recursiveprot pidsx\n");
    expect_none("Delegate=");

    new_tree("memory pids\n");
    (void)snprintf(text, sizeof text, "%d\n%d\n", (int)getpid(), (int)getppid());
    write_file(SERVICE "/cgroup.procs", text);
    expect_none("other processes");
    new_tree("memory pids\n");
    write_file(SERVICE "/cgroup.procs", "nonsense\n");
    expect_none("other processes");
}

static void
a_group_that_cannot_be_used_gets_its_processes_back(void **state)
{
    char own[32];

    new_tree("memory pids\n");
    write_file(SERVICE "/listener", "a file");
    expect_none("heddled.service");
    (void)snprintf(own, sizeof own, "%d", (int)getpid());
    expect_file(SERVICE "/cgroup.procs", own);
}

static void
limits_are_written(void **state)
{
    const struct hed_group_limits some = {.memory = 12345, .threads = 77, .cpus = 3}, none = {0};
    char path[HED_GROUP_PATH], base[1024];
    struct hed_why why = {""};

    new_tree("memory pids cpu\n");
    path_of(SERVICE, base);
    assert_int_equal(hed_group_make(base, "worker-1", &some, path, &why), 0);
    expect_file(SERVICE "/worker-1/memory.max", "12345");
    expect_file(SERVICE "/worker-1/pids.max", "77");
    expect_file(SERVICE "/worker-1/cpu.max", "300000 100000");
    assert_int_equal(hed_group_kills(path), 0);
    write_file(SERVICE "/worker-1/memory.events", "low 0\nmax 9\noom 2\noom_kill 1\n");
    assert_int_equal(hed_group_kills(path), 1);
    assert_false(hed_group_remove(path)); /* the test's files are in it */

    assert_int_equal(hed_group_make(base, "worker-2", &none, path, &why), 0);
    expect_file(SERVICE "/worker-2/memory.max", "max");
    expect_file(SERVICE "/worker-2/pids.max", "max");
    assert_int_not_equal(hed_group_make("/nonexistent", "x", &none, path, &why), 0);
    assert_non_null(strstr(why.text, "/nonexistent/x"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_listener_moves_aside),
    cmocka_unit_test(groups_of_others_are_left_alone),
    cmocka_unit_test(a_group_that_cannot_be_used_gets_its_processes_back),
    cmocka_unit_test(limits_are_written),
};

HED_UNIT_MAIN(tests)
