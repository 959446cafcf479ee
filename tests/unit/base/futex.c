/* Tests of base/futex: between threads, between processes, against the clock. */
#include "harness/unit.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"

static _Atomic uint32_t word;

static void
changed_word_does_not_wait(void **state)
{
    atomic_store(&word, 1);
    assert_true(hed_futex_wait(&word, 0, -1));
    assert_true(hed_futex_wait_private(&word, 0, -1));
}

static void
timeout_ends_the_wait_and_keeps_errno(void **state)
{
    const uint64_t start = hed_now_ns();

    atomic_store(&word, 0);
    errno = 7;
    assert_false(hed_futex_wait(&word, 0, 2000000));
    assert_true(hed_now_ns() - start >= 2000000);
    assert_false(hed_futex_wait_private(&word, 0, 0));
    assert_int_equal(errno, 7);
}

static void
wake_without_waiters_wakes_none(void **state)
{
    assert_int_equal(hed_futex_wake(&word, INT_MAX), 0);
    assert_int_equal(hed_futex_wake_private(&word, INT_MAX), 0);
}

static _Atomic pid_t waiters[3];

static void *
wait_for_one(void *arg)
{
    atomic_store((_Atomic pid_t *)arg, gettid());
    /* Acquire: pairs with the release store in the test. */
    while (atomic_load_explicit(&word, memory_order_acquire) == 0)
        hed_futex_wait_private(&word, 0, -1);
    return NULL;
}

static void
threads_are_woken(void **state)
{
    pthread_t threads[3];

    atomic_store(&word, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_one, &waiters[i]), 0);
    for (int i = 0; i < 3; i++)
        WAIT_UNTIL(waiters[i] && thread_state(waiters[i]) == 'S');
    atomic_store_explicit(&word, 1, memory_order_release);
    hed_futex_wake_private(&word, INT_MAX);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

static void
other_process_is_woken(void **state)
{
    _Atomic uint32_t *shared =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;

    assert_ptr_not_equal(shared, MAP_FAILED);

    const pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        while (atomic_load_explicit(shared, memory_order_acquire) == 0)
            hed_futex_wait(shared, 0, -1);
        _exit(5);
    }
    WAIT_UNTIL(process_state(child) == 'S');
    atomic_store_explicit(shared, 1, memory_order_release);
    hed_futex_wake(shared, 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    munmap(shared, 4096);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(changed_word_does_not_wait),
    cmocka_unit_test(timeout_ends_the_wait_and_keeps_errno),
    cmocka_unit_test(wake_without_waiters_wakes_none),
    cmocka_unit_test(threads_are_woken),
    cmocka_unit_test(other_process_is_woken),
};

HED_UNIT_MAIN(tests)
