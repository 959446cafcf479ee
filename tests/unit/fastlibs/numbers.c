/* Tests of fastlibs/cublas.h: its numbers are NVIDIA's. */
#include "harness/unit.h"

#include "fastlibs/cublas.h"
#include "numbers.h"

static void
same_numbers(void **state)
{
    static const struct number ours[] = {NUMBERS(NUMBER){NULL, 0}};

    (void)state;
    for (unsigned i = 0; ours[i].name; i++) {
        assert_string_equal(ours[i].name, nvidia_numbers[i].name);
        if (ours[i].value != nvidia_numbers[i].value)
            fail_msg("%s is %d, not %d", ours[i].name, nvidia_numbers[i].value, ours[i].value);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
