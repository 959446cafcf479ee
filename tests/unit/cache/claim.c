/* Who makes which object, and who compiles for programs that have ended. */
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/err.h"
#include "kernel/cache/room.h"
#include "unit/cache/store.h"

static void
an_object_is_claimed_once(void **state)
{
    struct hed_cache *c = make_cache(1000);
    const struct hed_cache_key a = key_of("a"), b = key_of("b");
    int first = -1, second = -1, other = -1;

    assert_int_equal(hed_cache_claim(c, &a, &first), 0);
    assert_true(first >= 0);
    assert_int_equal(hed_cache_claim(c, &a, &second), HED_ESTATE);
    assert_int_equal(second, -1);
    assert_true(hed_cache_is_claimed(c, &a));
    assert_false(hed_cache_is_claimed(c, &b));
    assert_int_equal(hed_cache_claim(c, &b, &other), 0);
    hed_cache_release(c, &a, first);
    assert_false(hed_cache_is_claimed(c, &a));
    assert_int_equal(hed_cache_claim(c, &a, &second), 0);
    assert_true(second >= 0);
    hed_cache_release(c, &a, second);
    hed_cache_release(c, &b, other);
    hed_cache_free(c);
}

/* Others may put pipes in the place of our files: opening one must not wait. */
static void
pipes_in_the_folder_stop_nobody(void **state)
{
    struct hed_cache *c = make_cache(1000);
    const struct hed_cache_key a = key_of("a");
    char path[HED_CACHE_PATH_ROOM], text[HED_CACHE_TURN_TEXT];
    struct hed_buf out;
    uint32_t us;
    int fd = -1;

    hed_buf_init(&out, 1000);
    assert_int_equal(hed_cache_claim(c, &a, &fd), 0);
    hed_cache_release(c, &a, fd);
    hed_cache_entry_path(c, &a, path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(hed_cache_get(c, &a, &out, &us));
    assert_int_equal(unlink(path), 0);
    snprintf(path + strlen(path), sizeof path - strlen(path), ".making");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(hed_cache_is_claimed(c, &a));
    assert_int_equal(hed_cache_claim(c, &a, &fd), 0);
    assert_int_equal(fd, -1);
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof path, "%s/after.lock", hed_cache_path(c));
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(hed_cache_see_turn(c, text));
    assert_int_equal(unlink(path), 0);
    hed_buf_fini(&out);
    hed_cache_free(c);
}

static void
a_dead_process_claims_nothing(void **state)
{
    struct hed_cache *c = make_cache(1000);
    const struct hed_cache_key a = key_of("a");
    int ready[2], fd = -1, status;
    char byte;

    assert_int_equal(pipe(ready), 0);

    const pid_t child = fork();

    if (child == 0) {
        const bool is_ours = hed_cache_claim(c, &a, &fd) == 0 && fd >= 0;

        (void)!write(ready[1], is_ours ? "y" : "n", 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    assert_int_equal(hed_cache_claim(c, &a, &fd), HED_ESTATE);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(hed_cache_is_claimed(c, &a));
    assert_int_equal(hed_cache_claim(c, &a, &fd), 0);
    assert_true(fd >= 0);
    hed_cache_release(c, &a, fd);
    close(ready[0]);
    close(ready[1]);
    hed_cache_free(c);
}

static void
a_folder_without_locks_stops_nobody(void **state)
{
    struct hed_cache *c = hed_cache_create("/proc/nowhere", 1000);
    const struct hed_cache_key a = key_of("a");
    int fd = 5;

    assert_int_equal(hed_cache_claim(c, &a, &fd), 0);
    assert_int_equal(fd, -1);
    hed_cache_release(c, &a, fd);
    assert_int_equal(hed_cache_claim(NULL, &a, &fd), 0);
    assert_int_equal(fd, -1);
    hed_cache_free(c);
}

static bool
waits_twice(void *arg)
{
    return ++*(int *)arg < 2;
}

static void
one_has_the_turn(void **state)
{
    struct hed_cache *c = make_cache(1000);
    char text[HED_CACHE_TURN_TEXT];
    int asked = 0, turn, later;

    assert_false(hed_cache_see_turn(c, text));
    turn = hed_cache_take_turn(c, false, waits_twice, &asked);
    assert_true(turn >= 0);
    assert_int_equal(asked, 0);
    hed_cache_tell_turn(turn, "kernel a\n");
    assert_true(hed_cache_see_turn(c, text));
    assert_string_equal(text, "kernel a\n");
    assert_int_equal(hed_cache_take_turn(c, false, waits_twice, &asked), -1);
    assert_int_equal(asked, 2);
    assert_int_equal(hed_cache_take_turn(c, true, waits_twice, &asked), -1);
    assert_int_equal(asked, 3);
    close(turn);
    assert_false(hed_cache_see_turn(c, text));
    later = hed_cache_take_turn(c, false, waits_twice, &asked);
    assert_true(later >= 0);
    close(later);
    hed_cache_free(c);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_object_is_claimed_once),
    cmocka_unit_test(pipes_in_the_folder_stop_nobody),
    cmocka_unit_test(a_dead_process_claims_nothing),
    cmocka_unit_test(a_folder_without_locks_stops_nobody),
    cmocka_unit_test(one_has_the_turn),
};

HED_UNIT_MAIN(tests)
