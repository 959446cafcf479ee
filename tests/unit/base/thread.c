/* Tests of base/thread: which signals a thread blocks, its name and stack, and that the caller's
 * own signals stay as they were.
 */
#include "harness/unit.h"

#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "base/futex.h"
#include "base/thread.h"

struct seen {
    sigset_t blocked;
    size_t stack;
    _Atomic uint32_t done;
};

static void *
look_around(void *arg)
{
    struct seen *s = arg;
    pthread_attr_t attr;

    pthread_sigmask(SIG_BLOCK, NULL, &s->blocked);
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getstacksize(&attr, &s->stack);
    pthread_attr_destroy(&attr);
    atomic_store(&s->done, 1);
    hed_futex_wake_private(&s->done, INT_MAX);
    return NULL;
}

static void
all_signals_are_blocked(void **state)
{
    struct seen s = {.done = 0};

    assert_int_equal(hed_thread_wait(NULL, look_around, &s), 0);
    assert_true(sigismember(&s.blocked, SIGINT));
    assert_true(sigismember(&s.blocked, SIGSEGV));
    assert_true(sigismember(&s.blocked, SIGABRT));
}

static void
signals_of_its_own_code_can_be_left_out(void **state)
{
    const struct hed_thread_how how = {.faults = true};
    struct seen s = {.done = 0};

    assert_int_equal(hed_thread_wait(&how, look_around, &s), 0);
    assert_true(sigismember(&s.blocked, SIGINT));
    assert_true(sigismember(&s.blocked, SIGTERM));
    assert_false(sigismember(&s.blocked, SIGSEGV));
    assert_false(sigismember(&s.blocked, SIGABRT));
}

static void
the_caller_keeps_its_signals(void **state)
{
    struct seen s = {.done = 0};
    sigset_t before, after;

    sigemptyset(&before);
    sigaddset(&before, SIGUSR1);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert_int_equal(hed_thread_wait(NULL, look_around, &s), 0);
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    assert_true(sigismember(&after, SIGUSR1));
    assert_false(sigismember(&after, SIGINT));
    assert_false(sigismember(&after, SIGSEGV));
}

static void *
wait_for_word(void *arg)
{
    while (!atomic_load((_Atomic uint32_t *)arg))
        (void)hed_futex_wait_private(arg, 0, -1);
    return NULL;
}

static void
a_thread_has_its_name(void **state)
{
    const struct hed_thread_how how = {.name = "heddle-test"};
    _Atomic uint32_t go = 0;
    pthread_t thread;
    char name[16];

    assert_int_equal(hed_thread_start(&how, wait_for_word, &go, &thread), 0);
    assert_int_equal(pthread_getname_np(thread, name, sizeof name), 0);
    assert_string_equal(name, "heddle-test");
    atomic_store(&go, 1);
    (void)hed_futex_wake_private(&go, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void
a_thread_has_the_stack_that_it_needs(void **state)
{
    const struct hed_thread_how how = {.stack = (size_t)24 << 20};
    struct seen s = {.done = 0};

    assert_int_equal(hed_thread_wait(&how, look_around, &s), 0);
    assert_true(s.stack >= (size_t)24 << 20);
}

static void
a_thread_that_nobody_joins_runs(void **state)
{
    static struct seen s;

    assert_int_equal(hed_thread_detached(NULL, look_around, &s), 0);
    assert_null(wait_for_word(&s.done));
    assert_true(sigismember(&s.blocked, SIGINT));
}

static void
what_the_system_refuses_is_an_error(void **state)
{
    const struct hed_thread_how how = {.stack = SIZE_MAX / 4};
    struct seen s = {.done = 0};

    assert_true(hed_thread_wait(&how, look_around, &s) < 0);
    assert_int_equal(s.done, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_signals_are_blocked),
    cmocka_unit_test(signals_of_its_own_code_can_be_left_out),
    cmocka_unit_test(the_caller_keeps_its_signals),
    cmocka_unit_test(a_thread_has_its_name),
    cmocka_unit_test(a_thread_has_the_stack_that_it_needs),
    cmocka_unit_test(a_thread_that_nobody_joins_runs),
    cmocka_unit_test(what_the_system_refuses_is_an_error),
};

HED_UNIT_MAIN(tests)
