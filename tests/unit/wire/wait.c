/* Tests of waiting for a word in shared memory: what a waiter expects, and that it wakes up in
 * every phase of a wait. */
#include "harness/unit.h"

#include <pthread.h>

#include "base/err.h"
#include "base/number.h"
#include "base/relax.h"
#include "remote/wire/channel/wait.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

static void
nothing_is_expected_without_a_usual_wait(void **state)
{
    struct hed_waiter w = {.expects = true};
    uint64_t from, to;

    assert_false(hed_wait_expects(&w, &from, &to));
    w.usual = HED_WAIT_USUAL_MOST + 1;
    assert_false(hed_wait_expects(&w, &from, &to));
    w = (struct hed_waiter){.usual = MS};
    assert_false(hed_wait_expects(&w, &from, &to));
}

static void
the_second_spin_is_an_eighth_of_the_wait_within_limits(void **state)
{
    static const struct {
        uint64_t usual, from, to;
    } rows[] = {
        {50 * US, 0, 150 * US},         {100 * US, 0, 200 * US},     {800 * US, 700 * US, 900 * US},
        {4 * MS, 3500 * US, 4500 * US}, {80 * MS, 79 * MS, 81 * MS},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct hed_waiter w = {.expects = true, .usual = rows[i].usual};
        uint64_t from = 1, to = 1;

        assert_true(hed_wait_expects(&w, &from, &to));
        assert_int_equal(from, rows[i].from);
        assert_int_equal(to, rows[i].to);
    }
}

/* Waits for a change, in a guest whose sleepers are always late, whoever wakes them. Returns when
 * the change is seen. */
static uint64_t
wait_in_guest(struct hed_waiter *w, uint64_t change, uint64_t late, enum hed_wait_end *how)
{
    uint64_t from, to, took = change + late;

    *how = HED_WAIT_END_LATE;
    if (hed_wait_expects(w, &from, &to)) {
        if (change < from + late) {
            *how = HED_WAIT_END_EARLY;
            took = hed_min(change, from) + late;
        } else if (change <= to) {
            *how = HED_WAIT_END_SPUN;
            took = change;
        }
    }
    hed_wait_learn(w, took, *how);
    return took;
}

static void
late_sleepers_learn_to_spin(void **state)
{
    static const struct {
        uint64_t change, late;
    } rows[] = {
        {1500 * US, 10 * US}, {1500 * US, 250 * US}, {2400 * US, 10 * US}, {2400 * US, 400 * US},
        {5 * MS, 800 * US},   {40 * MS, 10 * US},    {40 * MS, 1500 * US},
    };
    struct hed_doorbell doorbell;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hed_waiter w = {.expects = true, .doorbell = &doorbell};
        enum hed_wait_end how = HED_WAIT_END_LATE;

        for (int n = 0; n < 16; n++)
            (void)wait_in_guest(&w, rows[i].change, rows[i].late, &how);
        for (int n = 0; n < 16; n++)
            assert_int_equal(wait_in_guest(&w, rows[i].change, rows[i].late, &how), rows[i].change);
    }
}

static void
a_futex_is_taken_at_its_word(void **state)
{
    struct hed_waiter w = {.expects = true, .usual = 3 * MS};

    hed_wait_learn(&w, 2 * MS, HED_WAIT_END_EARLY);
    assert_int_equal(w.usual, 2 * MS);
    hed_wait_learn(&w, 4 * MS, HED_WAIT_END_LATE);
    assert_int_equal(w.usual, 4 * MS);
}

struct word {
    _Atomic uint64_t position;
    _Atomic uint32_t parked;
    struct hed_waiter waiter;
    int result;
};

static void *
wait_for_word(void *arg)
{
    struct word *w = arg;

    w->result = hed_wait_change(&w->waiter, &w->position, 0, &w->parked, -1);
    return NULL;
}

/* Writes the word when the waiter sleeps. */
static void
wake_sleeper(struct word *w)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, wait_for_word, w), 0);
    while (atomic_load(&w->parked) != HED_WAIT_PARKED)
        hed_relax();
    hed_wait_tell(&w->position, 1, &w->parked, false, NULL);
    pthread_join(thread, NULL);
    assert_int_equal(w->result, 0);
    assert_int_equal(atomic_load(&w->parked), HED_WAIT_AWAKE);
}

static void
a_long_wait_is_remembered(void **state)
{
    struct word w = {.waiter = {.park_ms = 500, .expects = true}};

    wake_sleeper(&w);
    assert_true(w.waiter.usual > 0);
}

static void
a_change_before_the_usual_time_wakes_it(void **state)
{
    struct word w = {.waiter = {.park_ms = 500, .expects = true, .usual = 90 * MS}};

    for (int i = 0; i < 20; i++) {
        atomic_store(&w.position, 0);
        w.waiter.usual = 90 * MS;
        wake_sleeper(&w);
    }
}

static void
a_change_during_the_second_spin_is_seen(void **state)
{
    struct word w = {.waiter = {.park_ms = 500, .expects = true, .usual = 50 * US}};
    pthread_t thread;

    /* The first margin is longer than the usual wait, so it spins at once and then sleeps. */
    assert_int_equal(pthread_create(&thread, NULL, wait_for_word, &w), 0);
    hed_wait_tell(&w.position, 1, &w.parked, false, NULL);
    pthread_join(thread, NULL);
    assert_int_equal(w.result, 0);
}

static void
a_change_after_the_second_spin_wakes_it(void **state)
{
    struct word w = {.waiter = {.park_ms = 500, .expects = true, .usual = 50 * US}};

    wake_sleeper(&w);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nothing_is_expected_without_a_usual_wait),
    cmocka_unit_test(the_second_spin_is_an_eighth_of_the_wait_within_limits),
    cmocka_unit_test(late_sleepers_learn_to_spin),
    cmocka_unit_test(a_futex_is_taken_at_its_word),
    cmocka_unit_test(a_long_wait_is_remembered),
    cmocka_unit_test(a_change_before_the_usual_time_wakes_it),
    cmocka_unit_test(a_change_during_the_second_spin_is_seen),
    cmocka_unit_test(a_change_after_the_second_spin_wakes_it),
};

HED_UNIT_MAIN(tests)
