/* Tests of the quota layer between processes: a group has one limit, and nothing is lost when one
 * of its members is killed. */
#include "unit/quota/make.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/meeting.h"
#include "harness/meeting.h"

static char group[64];
static char name[96]; /* of the file */

static int
setup(void **state)
{
    fake.uuid = 7;
    fake_context = 1;
    (void)snprintf(group, sizeof group, "test-%ld", (long)getpid());
    (void)snprintf(name, sizeof name, "quota-%s", group);
    forget_meetings(name);
    return 0;
}

static int
teardown(void **state)
{
    forget_meetings(name);
    return 0;
}

static void
two_processes_share_one_limit(void **state)
{
    struct hed_layer *a = quota_over(100 * MIB, group);
    struct hed_layer *b = quota_over(100 * MIB, group);
    const CUdeviceptr p = take(a, 60 * MIB, CUDA_SUCCESS);
    size_t free, total;

    (void)take(b, 42 * MIB, CUDA_ERROR_OUT_OF_MEMORY);
    give(b, take(b, 40 * MIB, CUDA_SUCCESS));
    assert_int_equal(CALL(b, cuMemGetInfo_v2, &free, &total), CUDA_SUCCESS);
    assert_int_equal(free, 40 * MIB);
    assert_int_equal(charged(b), 0);
    give(a, p);
    give(b, take(b, 100 * MIB, CUDA_SUCCESS));
    /* Another device has a limit of its own. */
    fake.uuid = 8;

    struct hed_layer *c = quota_over(100 * MIB, group);
    const CUdeviceptr q = take(b, 100 * MIB, CUDA_SUCCESS);

    give(c, take(c, 100 * MIB, CUDA_SUCCESS));
    give(b, q);
    quota_discard(a);
    quota_discard(b);
    quota_discard(c);
}

static void
a_member_that_leaves_frees_its_memory(void **state)
{
    struct hed_layer *a = quota_over(100 * MIB, group);
    struct hed_layer *b = quota_over(100 * MIB, group);
    const CUdeviceptr p = take(a, 90 * MIB, CUDA_SUCCESS);

    quota_discard(a); /* with the memory charged */
    give(b, take(b, 100 * MIB, CUDA_SUCCESS));
    CALL(b, cuMemFree_v2, p);
    quota_discard(b);
}

/* Starts a child that allocates whatever it can get until it is killed. */
static pid_t
start_child(int fd, bool churns)
{
    const pid_t pid = fork();

    if (pid != 0)
        return pid;

    struct hed_layer *l = quota_over(100 * MIB, group);
    CUdeviceptr p = 0;
    bool told = false;

    do {
        const bool got = CALL(l, cuMemAlloc_v2, &p, 20 * MIB) == CUDA_SUCCESS;

        if (!told && write(fd, got ? "y" : "n", 1) != 1)
            _exit(1);
        told = true;
        if (got && churns)
            (void)CALL(l, cuMemFree_v2, p);
    } while (churns);
    for (;;)
        pause();
}

static void
a_killed_process_leaks_nothing(void **state)
{
    struct hed_layer *l = quota_over(100 * MIB, group);
    pid_t pids[5];
    int fds[2];
    char c;

    assert_int_equal(pipe(fds), 0);
    for (int i = 0; i < 5; i++)
        pids[i] = start_child(fds[1], false);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(read(fds[0], &c, 1), 1);
        assert_int_equal(c, 'y');
    }
    (void)take(l, 1, CUDA_ERROR_OUT_OF_MEMORY);
    for (int i = 0; i < 5; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
        /* Exactly the memory of the dead processes is available again. */
        (void)take(l, 20 * MIB * (uint64_t)(i + 1) + 2 * MIB, CUDA_ERROR_OUT_OF_MEMORY);
        give(l, take(l, 20 * MIB * (uint64_t)(i + 1), CUDA_SUCCESS));
    }
    quota_discard(l);
    close(fds[0]);
    close(fds[1]);
}

/* A member that joins, charges 20 MiB, takes the file's lock and is stopped with it. */
static pid_t
start_stopped_member(int fd)
{
    const pid_t pid = fork();

    if (pid == 0) {
        struct hed_layer *l = quota_over(100 * MIB, group);
        const struct hed_quota *q = l->state;
        CUdeviceptr p = 0;
        const bool good =
            CALL(l, cuMemAlloc_v2, &p, 20 * MIB) == CUDA_SUCCESS && hed_meet_lock(q->meet) == 0;

        if (write(fd, good ? "y" : "n", 1) != 1)
            _exit(1);
        (void)raise(SIGSTOP);
        _exit(1);
    }

    int status = 0;

    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    return pid;
}

/* However slowly one member runs, others join, allocate, get what a dead one had, and leave. */
static void
a_stopped_member_does_not_block_others(void **state)
{
    int fds[2];
    char c[2];

    assert_int_equal(pipe(fds), 0);

    const pid_t dead = start_child(fds[1], false);

    assert_int_equal(read(fds[0], &c[0], 1), 1);

    const pid_t stopped = start_stopped_member(fds[1]);

    assert_int_equal(read(fds[0], &c[1], 1), 1);
    assert_memory_equal(c, "yy", 2);

    struct hed_layer *l = quota_over(100 * MIB, group);

    (void)take(l, 62 * MIB, CUDA_ERROR_OUT_OF_MEMORY);
    kill(dead, SIGKILL);
    assert_int_equal(waitpid(dead, NULL, 0), dead);
    (void)take(l, 82 * MIB, CUDA_ERROR_OUT_OF_MEMORY);

    const CUdeviceptr p = take(l, 80 * MIB, CUDA_SUCCESS);

    /* Another device needs a number in the group. */
    fake.uuid = 8;

    struct hed_layer *other = quota_over(100 * MIB, group);

    give(other, take(other, 100 * MIB, CUDA_SUCCESS));
    quota_discard(other);
    give(l, p);
    kill(stopped, SIGKILL);
    assert_int_equal(waitpid(stopped, NULL, 0), stopped);
    give(l, take(l, 100 * MIB, CUDA_SUCCESS));
    quota_discard(l);
    close(fds[0]);
    close(fds[1]);
}

/* Members are killed at random points while they compete for the limit. Afterwards all of it is
 * available, and nothing more. */
static void
members_killed_in_the_middle_leak_nothing(void **state)
{
    struct hed_layer *l = quota_over(100 * MIB, group);
    uint32_t seed = 7;
    int fds[2];
    char c;

    assert_int_equal(pipe(fds), 0);
    for (int round = 0; round < 12; round++) {
        pid_t pids[8];

        for (int i = 0; i < 8; i++)
            pids[i] = start_child(fds[1], true);
        for (int i = 0; i < 8; i++)
            assert_int_equal(read(fds[0], &c, 1), 1);
        for (int i = 0; i < 8; i++) {
            seed = seed * 1664525u + 1013904223u;
            usleep(seed >> 22); /* to be anywhere when it is killed */
            kill(pids[i], SIGKILL);
        }
        for (int i = 0; i < 8; i++)
            waitpid(pids[i], NULL, 0);
        assert_int_equal(hed_quota_used(hed_quota_device(l, 0)), 0);

        const CUdeviceptr p = take(l, 100 * MIB, CUDA_SUCCESS);

        (void)take(l, 1, CUDA_ERROR_OUT_OF_MEMORY);
        give(l, p);
    }
    quota_discard(l);
    close(fds[0]);
    close(fds[1]);
}

/* The same while another member lives on, so that the total never starts again from zero. */
static void
a_living_member_keeps_its_memory(void **state)
{
    struct hed_layer *l = quota_over(100 * MIB, group);
    const CUdeviceptr mine = take(l, 40 * MIB, CUDA_SUCCESS);
    int fds[2];
    char c;

    assert_int_equal(pipe(fds), 0);
    for (int round = 0; round < 6; round++) {
        pid_t pids[8];

        for (int i = 0; i < 8; i++)
            pids[i] = start_child(fds[1], true);
        for (int i = 0; i < 8; i++)
            assert_int_equal(read(fds[0], &c, 1), 1);
        for (int i = 0; i < 8; i++) {
            kill(pids[i], SIGKILL);
            waitpid(pids[i], NULL, 0);
            (void)take(l, 62 * MIB, CUDA_ERROR_OUT_OF_MEMORY);
        }
        assert_int_equal(hed_quota_used(hed_quota_device(l, 0)), 40 * MIB);
        give(l, take(l, 60 * MIB, CUDA_SUCCESS));
    }
    give(l, mine);
    quota_discard(l);
    close(fds[0]);
    close(fds[1]);
}

#define MANY 64

static void
many_processes_can_join_at_once(void **state)
{
    struct hed_layer *l = quota_over(MANY * 2 * MIB, group);
    pid_t pids[MANY];
    int fds[2];
    char c;

    assert_int_equal(pipe(fds), 0);
    for (int i = 0; i < MANY; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            struct hed_layer *own = quota_over(MANY * 2 * MIB, group);
            CUdeviceptr p = 0;
            const bool got = CALL(own, cuMemAlloc_v2, &p, 2 * MIB) == CUDA_SUCCESS;

            if (write(fds[1], got ? "y" : "n", 1) != 1)
                _exit(1);
            for (;;)
                pause();
        }
    }
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(read(fds[0], &c, 1), 1);
        assert_int_equal(c, 'y');
    }
    (void)take(l, 1, CUDA_ERROR_OUT_OF_MEMORY);
    for (int i = 0; i < MANY; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    give(l, take(l, MANY * 2 * MIB, CUDA_SUCCESS));
    quota_discard(l);
    close(fds[0]);
    close(fds[1]);
}

static void
a_forked_child_has_nothing_charged(void **state)
{
    struct hed_layer *l = quota_over(100 * MIB, group);
    const CUdeviceptr p = take(l, 60 * MIB, CUDA_SUCCESS);
    const pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        hed_quota_layer.forked(l);
        (void)CALL(l, cuMemFree_v2,
                   p); /* belongs to the parent, so the child does not give it back */

        struct hed_layer *own = quota_over(100 * MIB, group);
        CUdeviceptr q;

        _exit(charged(own) == 0 && CALL(own, cuMemAlloc_v2, &q, 40 * MIB) == CUDA_SUCCESS &&
                      CALL(own, cuMemAlloc_v2, &q, 1) == CUDA_ERROR_OUT_OF_MEMORY
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    (void)take(l, 42 * MIB, CUDA_ERROR_OUT_OF_MEMORY);
    give(l, take(l, 40 * MIB, CUDA_SUCCESS));
    give(l, p);
    quota_discard(l);
}

static int
open_group_file(void)
{
    struct hed_meeting_folders folders;

    assert_int_equal(hed_meeting_open(false, &folders, NULL), 0);

    const int fd = openat(hed_meeting_find(&folders, name)->fd, name, O_RDWR);

    hed_meeting_close(&folders);
    assert_true(fd >= 0);
    return fd;
}

static void
nonsense_in_the_file_is_a_wrong_number(void **state)
{
    struct hed_layer *l = quota_over(100 * MIB, group);
    const CUdeviceptr held = take(l, MIB, CUDA_SUCCESS);
    struct stat st;
    uint32_t seed = 3;
    size_t free, total;

    const int fd = open_group_file();

    assert_int_equal(fstat(fd, &st), 0);

    unsigned char *m = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    for (int round = 0; round < 20; round++) {
        for (off_t i = 64; i < st.st_size; i++)
            m[i] = (unsigned char)((seed = seed * 1664525u + 1013904223u) >> 24);

        CUdeviceptr p = 0;

        if (CALL(l, cuMemAlloc_v2, &p, MIB) == CUDA_SUCCESS)
            give(l, p);
        assert_int_equal(CALL(l, cuMemGetInfo_v2, &free, &total), CUDA_SUCCESS);
        assert_true(free <= total && total == 100 * MIB);
    }
    give(l, held);
    munmap(m, (size_t)st.st_size);
    close(fd);
    quota_discard(l);
}

static void
a_group_needs_a_limit_and_a_name(void **state)
{
    static struct hed_config config;
    struct hed_layer_room bottom;
    struct hed_layer *top = NULL;
    struct hed_why why = {""};

    hed_config_init(&config);
    hed_layer_place(&bottom, &fake_backend, NULL);
    assert_int_equal(hed_config_set(&config, "mem_group", "x", NULL), 0);
    assert_int_equal(hed_layer_create(&hed_quota_layer, &bottom.layer, &config, &top, &why),
                     HED_EINVAL);
    assert_non_null(strstr(why.text, "needs a limit"));
    assert_int_equal(hed_config_set(&config, "mem", "1G", NULL), 0);
    assert_int_equal(hed_config_set(&config, "mem_group", "../x", NULL), 0);
    assert_int_equal(hed_layer_create(&hed_quota_layer, &bottom.layer, &config, &top, &why),
                     HED_EINVAL);
    assert_null(top);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(two_processes_share_one_limit, setup, teardown),
    cmocka_unit_test_setup_teardown(a_member_that_leaves_frees_its_memory, setup, teardown),
    cmocka_unit_test_setup_teardown(a_killed_process_leaks_nothing, setup, teardown),
    cmocka_unit_test_setup_teardown(a_stopped_member_does_not_block_others, setup, teardown),
    cmocka_unit_test_setup_teardown(members_killed_in_the_middle_leak_nothing, setup, teardown),
    cmocka_unit_test_setup_teardown(a_living_member_keeps_its_memory, setup, teardown),
    cmocka_unit_test_setup_teardown(many_processes_can_join_at_once, setup, teardown),
    cmocka_unit_test_setup_teardown(a_forked_child_has_nothing_charged, setup, teardown),
    cmocka_unit_test_setup_teardown(nonsense_in_the_file_is_a_wrong_number, setup, teardown),
    cmocka_unit_test_setup_teardown(a_group_needs_a_limit_and_a_name, setup, teardown),
};

HED_UNIT_MAIN(tests)
