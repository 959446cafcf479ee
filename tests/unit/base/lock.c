/* Tests of base/lock: exclusion, and the order check of debug builds. */
#include "harness/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"

#define THREADS 4
#define ROUNDS 2000

static struct hed_lock outer = HED_LOCK_INIT(HED_RANK_SESSION);
static struct hed_lock inner = HED_LOCK_INIT(HED_RANK_TRACE);
static struct hed_lock other_inner = HED_LOCK_INIT(HED_RANK_TRACE);
static int counter; /* guarded by inner */

static void *
count_rounds(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        hed_lock(&inner);
        counter++;
        hed_unlock(&inner);
    }
    return NULL;
}

static void
only_one_thread_at_a_time(void **state)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_rounds, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(counter, THREADS * ROUNDS);
}

static void
locks_nest_in_the_order_of_their_ranks(void **state)
{
    struct hed_lock middle;

    hed_lock_init(&middle, HED_RANK_STATS);
    hed_lock(&outer);
    hed_lock(&middle);
    hed_lock(&inner);
    assert_true(hed_lock_held(&middle));
    /* Locks may be released in any order. */
    hed_unlock(&outer);
    hed_unlock(&inner);
    hed_unlock(&middle);
    hed_lock(&outer);
    hed_unlock(&outer);
    hed_lock_fini(&middle);
}

static void
held_is_exact_in_debug_builds_and_true_in_release_builds(void **state)
{
    hed_lock(&inner);
    assert_true(hed_lock_held(&inner));
#ifdef HED_DEBUG
    assert_false(hed_lock_held(&other_inner));
#else
    assert_true(hed_lock_held(&other_inner));
#endif
    hed_unlock(&inner);
}

#ifdef HED_DEBUG

/* Does the function end the process? It runs in a child, whose report is discarded. */
static bool
is_caught(void (*wrong)(void))
{
    int status;
    const pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGTRAP, SIG_DFL);
        signal(SIGILL, SIG_DFL);
        dup2(open("/dev/null", O_WRONLY), 2);
        wrong();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) || WEXITSTATUS(status) != 0;
}

static void
take_inner_then_outer(void)
{
    hed_lock(&inner);
    hed_lock(&outer);
}

static void
take_two_of_one_rank(void)
{
    hed_lock(&inner);
    hed_lock(&other_inner);
}

static void
take_twice(void)
{
    hed_lock(&inner);
    hed_lock(&inner);
}

static void
release_what_is_not_held(void)
{
    hed_unlock(&inner);
}

static void
take_and_release(void)
{
    hed_lock(&outer);
    hed_lock(&inner);
    hed_unlock(&inner);
    hed_unlock(&outer);
}

#endif

static void
wrong_order_is_a_bug_in_debug_builds(void **state)
{
#ifdef HED_DEBUG
    assert_false(is_caught(take_and_release));
    assert_true(is_caught(take_inner_then_outer));
    assert_true(is_caught(take_two_of_one_rank));
    assert_true(is_caught(take_twice));
    assert_true(is_caught(release_what_is_not_held));
#else
    skip();
#endif
}

struct meeting {
    struct hed_lock lock;
    pthread_cond_t cond;
    bool waits, may_go; /* guarded by the lock */
};

/* Waits with cancellation disabled, and says whether it is still disabled afterwards. */
static void *
wait_uncancellable(void *arg)
{
    struct meeting *m = arg;
    int before;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    hed_lock(&m->lock);
    m->waits = true;
    while (!m->may_go)
        (void)hed_lock_wait(&m->lock, &m->cond, UINT64_MAX);
    hed_unlock(&m->lock);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before == PTHREAD_CANCEL_DISABLE ? m : NULL;
}

/* Threads with another cancellation state take the lock in the meantime. */
static void
waiting_keeps_the_cancellation_state(void **state)
{
    struct meeting m = {.lock = HED_LOCK_INIT(HED_RANK_TRACE), .cond = PTHREAD_COND_INITIALIZER};
    pthread_t thread;
    void *result = NULL;
    int before;

    assert_int_equal(pthread_create(&thread, NULL, wait_uncancellable, &m), 0);
    for (bool waits = false; !waits;) {
        hed_lock(&m.lock);
        waits = m.waits;
        m.may_go = waits;
        if (waits)
            (void)pthread_cond_broadcast(&m.cond);
        hed_unlock(&m.lock);
    }
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &m);
    assert_int_equal(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before), 0);
    assert_int_equal(before, PTHREAD_CANCEL_ENABLE);
}

static void
waiting_ends_at_the_time_given(void **state)
{
    struct meeting m = {.lock = HED_LOCK_INIT(HED_RANK_TRACE), .cond = PTHREAD_COND_INITIALIZER};

    hed_lock(&m.lock);
    assert_int_equal(hed_lock_wait(&m.lock, &m.cond, hed_now_ns() - 1), ETIMEDOUT);
    assert_true(hed_lock_held(&m.lock));
    hed_unlock(&m.lock);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(waiting_keeps_the_cancellation_state),
    cmocka_unit_test(waiting_ends_at_the_time_given),
    cmocka_unit_test(only_one_thread_at_a_time),
    cmocka_unit_test(locks_nest_in_the_order_of_their_ranks),
    cmocka_unit_test(held_is_exact_in_debug_builds_and_true_in_release_builds),
    cmocka_unit_test(wrong_order_is_a_bug_in_debug_builds),
};

HED_UNIT_MAIN(tests)
