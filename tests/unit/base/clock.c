/* Tests of base/clock: time goes forward, in nanoseconds, and a sleep is long enough. */
#include "harness/unit.h"

#include "base/clock.h"

static void
monotonic_clock_does_not_go_back(void **state)
{
    uint64_t last = hed_now_ns();

    for (int i = 0; i < 10000; i++) {
        const uint64_t now = hed_now_ns();

        assert_true(now >= last);
        last = now;
    }
}

static void
wall_clock_counts_from_the_epoch(void **state)
{
    const uint64_t before = (uint64_t)time(NULL);
    const uint64_t s = hed_wall_ns() / HED_NS_PER_S;

    /* time() may lag by a tick of the kernel. */
    assert_in_range(s, before - 1, (uint64_t)time(NULL) + 1);
}

static void
sleep_takes_at_least_its_time(void **state)
{
    const uint64_t start = hed_now_ns();

    hed_sleep_ns(3000000);
    assert_true(hed_now_ns() - start >= 3000000);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(monotonic_clock_does_not_go_back),
    cmocka_unit_test(wall_clock_counts_from_the_epoch),
    cmocka_unit_test(sleep_takes_at_least_its_time),
};

HED_UNIT_MAIN(tests)
