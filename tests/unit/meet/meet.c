/* Tests of meet/meet: joining, leaving and dying at any step, and files with nonsense in them. */
#include "harness/unit.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/err.h"
#include "unit/meet/make.h"

/* A child that joins, writes to its slot, reports through the pipe and waits to be killed. */
static pid_t
start_holder(int fd)
{
    const pid_t pid = fork();

    if (pid != 0)
        return pid;

    struct hed_meet *m = NULL;
    char c = hed_meet_join(meet_name, &meet_shape, &m, NULL) == 0 ? 'y' : 'n';

    if (m)
        memset(hed_meet_mine(m), 0xee, meet_shape.slot);
    if (write(fd, &c, 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

static void
two_have_a_place_each_and_one_common_part(void **state)
{
    struct hed_meet *a = join_meeting();
    struct hed_meet *b = join_meeting();
    struct hed_meet *look = NULL;
    pid_t pid = 0;

    assert_int_equal(hed_meet_index(a), 0);
    assert_int_equal(hed_meet_index(b), 1);
    memcpy(hed_meet_common(a), "hello", 6);
    assert_string_equal(hed_meet_common(b), "hello");
    memcpy(hed_meet_mine(a), "mine", 5);
    assert_string_equal(hed_meet_slot(b, 0), "mine");
    assert_null(hed_meet_slot(b, meet_shape.slots));
    assert_true(hed_meet_taken(a, 0, &pid));
    assert_int_equal(pid, getpid());
    assert_true(hed_meet_taken(a, 1, NULL));
    assert_false(hed_meet_taken(a, 2, NULL));
    assert_false(hed_meet_taken(a, meet_shape.slots, NULL));
    assert_int_equal(hed_meet_look(meet_name, &meet_shape, &look, NULL), 0);
    assert_null(hed_meet_mine(look));
    assert_int_equal(hed_meet_index(look), -1);
    assert_int_equal(count_people(look), 2);
    hed_meet_leave(a);
    assert_int_equal(count_people(look), 1);
    hed_meet_leave(look);

    struct stat st;

    assert_int_equal(stat(meet_path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    hed_meet_leave(b);
    hed_meet_leave(NULL);
}

static void
looking_makes_nothing(void **state)
{
    struct hed_meet *m = NULL;

    assert_int_equal(hed_meet_look(meet_name, &meet_shape, &m, NULL), HED_ENOTFOUND);
    assert_null(m);
    assert_int_equal(access(meet_path, F_OK), -1);
}

static void
a_killed_holder_is_gone_and_its_place_is_zero(void **state)
{
    int fds[2];
    struct hed_meet *m = join_meeting();

    assert_int_equal(pipe(fds), 0);

    const pid_t pid = start_holder(fds[1]);
    pid_t says = 0;

    wait_for(fds[0], 1);
    assert_true(hed_meet_taken(m, 1, &says));
    assert_int_equal(says, pid);
    assert_int_equal(((unsigned char *)hed_meet_slot(m, 1))[0], 0xee);
    end_child(pid);
    assert_false(hed_meet_taken(m, 1, NULL));

    struct hed_meet *next = join_meeting();
    const unsigned char *mine = hed_meet_mine(next);

    assert_int_equal(hed_meet_index(next), 1);
    for (uint32_t i = 0; i < meet_shape.slot; i++)
        assert_int_equal(mine[i], 0);
    hed_meet_leave(next);
    hed_meet_leave(m);
    close(fds[0]);
    close(fds[1]);
}

/* It has claimed the slot of a dead process, and gets no further before others join. */
static void
a_member_that_stops_while_it_joins_blocks_nobody(void **state)
{
    int fds[2];
    struct hed_meet *m = join_meeting();

    assert_int_equal(pipe(fds), 0);

    const pid_t pid = start_holder(fds[1]);

    wait_for(fds[0], 1);
    end_child(pid);

    const int fd = lock_from_outside(1 + 4096 + 1); /* the claim of slot 1 */
    struct hed_meet *b = join_meeting();

    assert_int_equal(hed_meet_index(b), 2);
    /* What the dead process has left there is not taken for data of the new owner. */
    assert_int_equal(((unsigned char *)hed_meet_slot(m, 1))[0], 0xee);
    assert_false(hed_meet_taken(m, 1, NULL));
    assert_int_equal(count_people(m), 2);
    close(fd);

    struct hed_meet *c = join_meeting();

    assert_int_equal(hed_meet_index(c), 1);
    assert_int_equal(((unsigned char *)hed_meet_mine(c))[0], 0);
    hed_meet_leave(c);
    hed_meet_leave(b);
    hed_meet_leave(m);
    close(fds[0]);
    close(fds[1]);
}

/* Leaves as a process does that is killed: the file stays. */
static void
leave_behind(struct hed_meet *m)
{
    char kept[sizeof meet_path + 8];

    (void)snprintf(kept, sizeof kept, "%s.kept", meet_path);
    assert_int_equal(link(meet_path, kept), 0);
    hed_meet_leave(m);
    assert_int_equal(rename(kept, meet_path), 0);
}

/* All at once; with `old`, over a file that another version has left behind. */
static void
sixty_four_join(bool old)
{
    int ready[2];
    int go[2];
    pid_t pids[64];
    char c;

    if (old) {
        const struct hed_meet_shape other = {meet_shape.magic + 1, 64, 64, 2};
        struct hed_meet *m = NULL;

        assert_int_equal(hed_meet_join(meet_name, &other, &m, NULL), 0);
        leave_behind(m);
    }
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(go), 0);
    for (int i = 0; i < 64; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            close(go[1]);
            if (read(go[0], &c, 1) != 0)
                _exit(1);
            struct hed_meet *m = NULL;
            const bool good = hed_meet_join(meet_name, &meet_shape, &m, NULL) == 0;

            if (write(ready[1], &(char){(char)(good ? hed_meet_index(m) + 1 : 0)}, 1) != 1)
                _exit(1);
            for (;;)
                pause();
        }
    }

    bool seen[65] = {false};

    close(go[0]);
    close(go[1]);
    for (int i = 0; i < 64; i++) {
        assert_int_equal(read(ready[0], &c, 1), 1);
        assert_in_range(c, 1, 64);
        assert_false(seen[(int)c]);
        seen[(int)c] = true;
    }

    struct hed_meet *m = join_meeting();

    assert_int_equal(count_people(m), 65);
    for (int i = 0; i < 64; i++)
        end_child(pids[i]);
    assert_int_equal(count_people(m), 1);
    hed_meet_leave(m);
    close(ready[0]);
    close(ready[1]);
}

static void
sixty_four_join_at_once(void **state)
{
    sixty_four_join(false);
}

static void
sixty_four_join_over_a_file_of_another_version(void **state)
{
    sixty_four_join(true);
}

static void
a_forked_child_leaves_the_parents_place_alone(void **state)
{
    int fds[2];
    struct hed_meet *m = join_meeting();
    struct hed_meet *look = NULL;

    assert_int_equal(pipe(fds), 0);
    assert_int_equal(hed_meet_look(meet_name, &meet_shape, &look, NULL), 0);
    memcpy(hed_meet_mine(m), "parent", 7);

    char *mine = hed_meet_mine(m);
    const pid_t pid = fork();

    if (pid == 0) {
        struct hed_meet *own = NULL;

        hed_meet_forked(m);
        memcpy(mine, "child!", 7); /* an old address is harmless */

        const bool good = hed_meet_mine(m) == NULL && hed_meet_index(m) == -1 &&
                          !hed_meet_taken(m, 0, NULL) && hed_meet_lock(m) == HED_ESTATE &&
                          hed_meet_join(meet_name, &meet_shape, &own, NULL) == 0 &&
                          hed_meet_index(own) == 1;

        if (write(fds[1], good ? "y" : "n", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    wait_for(fds[0], 1);
    assert_string_equal(mine, "parent");
    assert_int_equal(count_people(look), 2);
    /* The parent's slot is freed when the parent leaves, although the child inherited its
     * descriptor. */
    hed_meet_leave(m);
    assert_false(hed_meet_taken(look, 0, NULL));
    assert_true(hed_meet_taken(look, 1, NULL));
    end_child(pid);
    assert_int_equal(count_people(look), 0);
    hed_meet_leave(look);
    close(fds[0]);
    close(fds[1]);
}

static void
all_places_taken_is_a_limit(void **state)
{
    struct hed_meet *all[80];
    struct hed_meet *more = NULL;
    struct hed_why why = {""};

    for (uint32_t i = 0; i < meet_shape.slots; i++)
        all[i] = join_meeting();
    assert_int_equal(hed_meet_join(meet_name, &meet_shape, &more, &why), HED_ELIMIT);
    assert_non_null(strstr(why.text, "slots are taken"));
    hed_meet_leave(all[7]);
    more = join_meeting();
    assert_int_equal(hed_meet_index(more), 7);
    all[7] = more;
    for (uint32_t i = 0; i < meet_shape.slots; i++)
        hed_meet_leave(all[i]);
}

static void
another_kind_is_not_joined_while_somebody_is_there(void **state)
{
    struct hed_meet_shape other = meet_shape;
    struct hed_meet *m = join_meeting();
    struct hed_meet *b = NULL;

    other.magic++;
    assert_int_equal(hed_meet_join(meet_name, &other, &b, NULL), HED_EVERSION);
    other = meet_shape;
    other.slots *= 2;
    assert_int_equal(hed_meet_join(meet_name, &other, &b, NULL), HED_EVERSION);
    assert_int_equal(hed_meet_look(meet_name, &other, &b, NULL), HED_EVERSION);
    memcpy(hed_meet_common(m), "old", 4);
    leave_behind(m);
    /* What an older version has left behind blocks nobody. */
    assert_int_equal(hed_meet_look(meet_name, &other, &b, NULL), HED_ENOTFOUND);
    assert_int_equal(hed_meet_join(meet_name, &other, &b, NULL), 0);
    assert_string_equal(hed_meet_common(b), "");
    hed_meet_leave(b);
    m = join_meeting();
    hed_meet_leave(m);
}

static void
write_file(const void *p, size_t n)
{
    const int fd = open(meet_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_int_equal(write(fd, p, n), (ssize_t)n);
    close(fd);
}

static void
wrong_magic_is_left_as_it_is(void **state)
{
    struct hed_meet *m = NULL;
    char back[16] = "";

    write_file("precious", 8);
    assert_int_equal(hed_meet_join(meet_name, &meet_shape, &m, NULL), HED_EVERSION);
    assert_int_equal(hed_meet_look(meet_name, &meet_shape, &m, NULL), HED_EVERSION);

    const int fd = open(meet_path, O_RDONLY);

    assert_int_equal(read(fd, back, sizeof back), 8);
    assert_string_equal(back, "precious");
    close(fd);

    /* The process that created it died before it had written anything. */
    write_file("\0\0\0\0\0\0\0\0\0", 9);
    assert_int_equal(hed_meet_join(meet_name, &meet_shape, &m, NULL), 0);
    leave_behind(m);
    /* The right head, but truncated. */
    assert_int_equal(truncate(meet_path, 100), 0);
    assert_int_equal(hed_meet_look(meet_name, &meet_shape, &m, NULL), HED_ENOTFOUND);
    assert_int_equal(hed_meet_join(meet_name, &meet_shape, &m, NULL), 0);
    memset(hed_meet_mine(m), 1, meet_shape.slot);
    hed_meet_leave(m);
}

static void
hostile_contents_are_only_wrong_numbers(void **state)
{
    struct hed_meet *m = join_meeting();
    struct stat st;
    uint32_t seed = 1;

    assert_int_equal(stat(meet_path, &st), 0);

    const int fd = open(meet_path, O_RDWR);
    unsigned char *p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    assert_ptr_not_equal(p, MAP_FAILED);
    for (int round = 0; round < 50; round++) {
        /* The magic in the head is kept, or no process would join. The shape is not believed. */
        for (off_t i = round % 2 ? 8 : 64; i < st.st_size; i++)
            p[i] = (unsigned char)((seed = seed * 1664525u + 1013904223u) >> 24);
        assert_int_equal(count_people(m), 1);
        assert_int_equal(hed_meet_lock(m), 0);
        hed_meet_unlock(m);

        struct hed_meet *b = NULL;
        const int err = hed_meet_join(meet_name, &meet_shape, &b, NULL);

        assert_int_equal(err, round % 2 ? HED_EVERSION : 0);
        if (b) {
            assert_int_equal(((unsigned char *)hed_meet_mine(b))[5], 0);
            hed_meet_leave(b);
        }
        memcpy(p + 8, &meet_shape, sizeof meet_shape);
    }
    munmap(p, (size_t)st.st_size);
    close(fd);
    hed_meet_leave(m);
}

static void
only_a_file_of_this_user_alone_will_do(void **state)
{
    struct hed_meet *m = NULL;

    write_file("", 0);
    assert_int_equal(chmod(meet_path, 0666), 0);
    assert_int_equal(hed_meet_join(meet_name, &meet_shape, &m, NULL), HED_EACCESS);
    assert_int_equal(unlink(meet_path), 0);
    assert_int_equal(symlink("/dev/null", meet_path), 0);
    assert_true(hed_meet_join(meet_name, &meet_shape, &m, NULL) < 0);
    assert_int_equal(unlink(meet_path), 0);
    assert_int_equal(mkdir(meet_path, 0700), 0);
    assert_true(hed_meet_join(meet_name, &meet_shape, &m, NULL) < 0);
    assert_int_equal(rmdir(meet_path), 0);
    assert_int_equal(mkfifo(meet_path, 0600), 0);
    assert_int_equal(hed_meet_join(meet_name, &meet_shape, &m, NULL), HED_EACCESS);
    assert_null(m);
}

static void
names_and_shapes_are_checked(void **state)
{
    static const char *const bad[] = {"", "a/b", "a b", "../x", "a\nb", "ä"};
    struct hed_meet *m = NULL;
    char many[200];

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(hed_meet_join(bad[i], &meet_shape, &m, NULL), HED_EINVAL);
    memset(many, 'a', sizeof many);
    many[sizeof many - 1] = '\0';
    assert_int_equal(hed_meet_join(many, &meet_shape, &m, NULL), HED_EINVAL);
    assert_int_equal(hed_meet_join(meet_name, &(struct hed_meet_shape){0, 1, 1, 1}, &m, NULL),
                     HED_EINVAL);
    assert_int_equal(hed_meet_join(meet_name, &(struct hed_meet_shape){1, 1, 1, 0}, &m, NULL),
                     HED_EINVAL);
    assert_int_equal(
        hed_meet_join(meet_name, &(struct hed_meet_shape){1, UINT32_MAX, 1, 1}, &m, NULL),
        HED_EINVAL);
}

static void
a_file_removed_underneath_goes_on_working(void **state)
{
    struct hed_meet *a = join_meeting();
    struct hed_meet *b = join_meeting();

    assert_int_equal(unlink(meet_path), 0);
    memcpy(hed_meet_mine(a), "still", 6);
    assert_string_equal(hed_meet_slot(b, 0), "still");
    assert_int_equal(count_people(a), 2);
    assert_int_equal(hed_meet_lock(b), 0);
    hed_meet_unlock(b);

    struct hed_meet *c = join_meeting(); /* a new file, which no other process is in */

    assert_int_equal(count_people(c), 1);
    hed_meet_leave(a);
    hed_meet_leave(b);
    hed_meet_leave(c);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(two_have_a_place_each_and_one_common_part, setup, teardown),
    cmocka_unit_test_setup_teardown(looking_makes_nothing, setup, teardown),
    cmocka_unit_test_setup_teardown(a_killed_holder_is_gone_and_its_place_is_zero, setup, teardown),
    cmocka_unit_test_setup_teardown(a_member_that_stops_while_it_joins_blocks_nobody, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(sixty_four_join_at_once, setup, teardown),
    cmocka_unit_test_setup_teardown(sixty_four_join_over_a_file_of_another_version, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(a_forked_child_leaves_the_parents_place_alone, setup, teardown),
    cmocka_unit_test_setup_teardown(all_places_taken_is_a_limit, setup, teardown),
    cmocka_unit_test_setup_teardown(another_kind_is_not_joined_while_somebody_is_there, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(wrong_magic_is_left_as_it_is, setup, teardown),
    cmocka_unit_test_setup_teardown(hostile_contents_are_only_wrong_numbers, setup, teardown),
    cmocka_unit_test_setup_teardown(only_a_file_of_this_user_alone_will_do, setup, teardown),
    cmocka_unit_test_setup_teardown(names_and_shapes_are_checked, setup, teardown),
    cmocka_unit_test_setup_teardown(a_file_removed_underneath_goes_on_working, setup, teardown),
};

HED_UNIT_MAIN(tests)
