/* The memory of a machine, and of the control groups that a server may be in; the defaults that
 * follow from it. The files are a test's own. */
#include "harness/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "remote/server/listener/listener.h"

#define GIB (UINT64_C(1) << 30)

static char root[256];
static unsigned roots;

/* Writes root/path, and makes the folders above it. */
static void
write_file(const char *path, const char *text)
{
    char name[1024];
    FILE *f;

    (void)snprintf(name, sizeof name, "%s%s", root, path);
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
new_machine(const char *groups)
{
    const char *scratch = getenv("HED_SCRATCH");

    (void)snprintf(root, sizeof root, "%s/machine%u", scratch ? scratch : "/tmp", roots++);
    write_file("/proc/meminfo", "MemTotal:       67108864 kB\nMemFree: 1 kB\n");
    write_file("/proc/self/cgroup", groups);
}

static void
without_groups_it_is_the_machines(void **state)
{
    new_machine("");
    assert_true(hed_machine_memory(root) == 64 * GIB);
    write_file("/proc/meminfo", "nonsense");
    assert_true(hed_machine_memory(root) == 0);
    assert_true(hed_machine_memory("/nonexistent") == 0);
}

static void
groups_above_count(void **state)
{
    new_machine("0::/system.slice/heddled.service\n");
    write_file("/sys/fs/cgroup/system.slice/heddled.service/memory.max", "max\n");
    assert_true(hed_machine_memory(root) == 64 * GIB);
    write_file("/sys/fs/cgroup/system.slice/memory.max", "8589934592\n");
    assert_true(hed_machine_memory(root) == 8 * GIB);
    write_file("/sys/fs/cgroup/system.slice/heddled.service/memory.max", "4294967296\n");
    assert_true(hed_machine_memory(root) == 4 * GIB);
}

static void
the_first_version_counts_too(void **state)
{
    new_machine("9:name=systemd:/\n4:memory:/box\n0::/\n");
    write_file("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "2147483648\n");
    write_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_true(hed_machine_memory(root) == 2 * GIB);
}

static void
defaults_follow_from_it(void **state)
{
    static struct hed_server_options o;

    new_machine("");
    o.total_memory = o.host_memory = o.worker_memory = HED_NOT_GIVEN;
    hed_memory_defaults(&o, root);
    assert_true(o.total_memory == 48 * GIB && o.host_memory == 48 * GIB);
    assert_false(o.worker_memory_given);

    o.total_memory = 3 * GIB;
    o.host_memory = HED_NOT_GIVEN;
    o.worker_memory = 7 * GIB;
    hed_memory_defaults(&o, root);
    assert_true(o.total_memory == 3 * GIB && o.host_memory == 3 * GIB);
    assert_true(o.worker_memory_given && o.worker_memory == 7 * GIB);

    /* An unknown machine has no limits, rather than limits of nothing. */
    o.total_memory = o.host_memory = o.worker_memory = HED_NOT_GIVEN;
    hed_memory_defaults(&o, "/nonexistent");
    assert_true(o.total_memory == 0 && o.host_memory == 0 && o.worker_memory == 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(without_groups_it_is_the_machines),
    cmocka_unit_test(groups_above_count),
    cmocka_unit_test(the_first_version_counts_too),
    cmocka_unit_test(defaults_follow_from_it),
};

HED_UNIT_MAIN(tests)
