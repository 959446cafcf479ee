/* The hold: calls wait while it is closed, and it closes only when none is under way. */
#include "move/session/hold.h"

#include <pthread.h>

#include "base/err.h"
#include "base/futex.h"
#include "harness/unit.h"

static struct hed_hold hold;
static _Atomic uint32_t step; /* a futex: what the other thread has done */
static _Atomic bool stop;
static _Atomic uint64_t inside, calls, wrong;

static void
wait_for_step(uint32_t wanted)
{
    uint32_t now;

    while ((now = atomic_load(&step)) < wanted)
        (void)hed_futex_wait_private(&step, now, -1);
}

static void
make_step(uint32_t value)
{
    atomic_store(&step, value);
    (void)hed_futex_wake_private(&step, 10);
}

static int
setup(void **state)
{
    (void)state;
    hold = (struct hed_hold){.closed = 0};
    hed_hold_init(&hold);
    atomic_store(&step, 0);
    atomic_store(&stop, false);
    atomic_store(&calls, 0);
    return 0;
}

static void *
stay_inside(void *arg)
{
    struct hed_hold_thread *thread = hed_hold_enter(&hold, 77);

    (void)arg;
    make_step(1);
    wait_for_step(2);
    hed_hold_leave(thread);
    make_step(3);
    thread = hed_hold_enter(&hold, 78);
    make_step(4);
    hed_hold_leave(thread);
    return NULL;
}

static void
closing_names_the_call_that_stays(void **state)
{
    pthread_t thread;
    int call = 0;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, stay_inside, NULL), 0);
    wait_for_step(1);
    assert_int_equal(hed_hold_close(&hold, 1, &call), HED_ETIME);
    assert_int_equal(call, 77);
    assert_false(hed_hold_is_closed(&hold));
    make_step(2);
    assert_int_equal(hed_hold_close(&hold, 60000, &call), 0);
    hed_hold_open(&hold);
    wait_for_step(4);
    (void)pthread_join(thread, NULL);
}

static void
a_call_within_a_call_does_not_wait(void **state)
{
    int call = 0;
    struct hed_hold_thread *outer = hed_hold_enter(&hold, 1);

    (void)state;
    /* The holder may be inside itself. */
    assert_int_equal(hed_hold_close(&hold, 1, &call), 0);

    struct hed_hold_thread *own = hed_hold_enter(&hold, 2);

    assert_ptr_equal(own, outer);
    hed_hold_leave(own);
    hed_hold_open(&hold);
    hed_hold_leave(outer);
}

static void *
make_calls(void *arg)
{
    (void)arg;
    while (!atomic_load(&stop)) {
        struct hed_hold_thread *thread = hed_hold_enter(&hold, 5);

        atomic_fetch_add(&inside, 1);
        if (hed_hold_is_closed(&hold) && atomic_load(&step) == 9)
            atomic_fetch_add(&wrong, 1);
        atomic_fetch_add(&calls, 1);
        atomic_fetch_sub(&inside, 1);
        hed_hold_leave(thread);
    }
    return NULL;
}

static void
nobody_is_inside_while_it_is_closed(void **state)
{
    pthread_t threads[4];
    int call;

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_calls, NULL), 0);
    for (int i = 0; i < 200; i++) {
        const uint64_t before = atomic_load(&calls);

        assert_int_equal(hed_hold_close(&hold, 60000, &call), 0);
        atomic_store(&step, 9);
        assert_int_equal(atomic_load(&inside), 0);
        for (volatile int k = 0; k < 1000; k++)
            continue;
        assert_int_equal(atomic_load(&inside), 0);
        atomic_store(&step, 0);
        hed_hold_open(&hold);
        while (atomic_load(&calls) == before)
            (void)hed_futex_wait_private(&step, 0, 100000);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 4; i++)
        (void)pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(closing_names_the_call_that_stays, setup),
    cmocka_unit_test_setup(a_call_within_a_call_does_not_wait, setup),
    cmocka_unit_test_setup(nobody_is_inside_while_it_is_closed, setup),
};

HED_UNIT_MAIN(tests)
