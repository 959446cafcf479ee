/* Tests of fastlibs/cublas.h and fastlibs/cudnn.h: their numbers are NVIDIA's. */
#include "harness/unit.h"

#include "fastlibs/cublas.h"
#include "fastlibs/cudnn.h"
#include "numbers.h"

static void
check(const struct number *ours, const struct number *theirs)
{
    for (unsigned i = 0; ours[i].name; i++) {
        assert_string_equal(ours[i].name, theirs[i].name);
        if (ours[i].value != theirs[i].value)
            fail_msg("%s is %d, not %d", ours[i].name, theirs[i].value, ours[i].value);
    }
}

static void
cublas(void **state)
{
    static const struct number ours[] = {NUMBERS(NUMBER){NULL, 0}};

    (void)state;
    check(ours, nvidia_numbers);
}

static void
counters(void **state)
{
    static const struct number ours[] = {COUNTER_NUMBERS(NUMBER){NULL, 0}};

    (void)state;
    if (!nvidia_counter_numbers[0].name)
        skip();
    check(ours, nvidia_counter_numbers);
}

static void
cudnn(void **state)
{
    static const struct number ours[] = {CUDNN_NUMBERS(NUMBER){NULL, 0}};

    (void)state;
    if (!nvidia_cudnn_numbers[0].name)
        skip();
    check(ours, nvidia_cudnn_numbers);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cublas),
        cmocka_unit_test(counters),
        cmocka_unit_test(cudnn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
