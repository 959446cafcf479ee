/* Tests of base/meminfo: memory that holds cached files is available, although it is not free. */
#include "harness/unit.h"

#include "base/meminfo.h"

static void
cached_files_count_as_available(void **state)
{
    const char *text = "MemTotal:       24681472 kB\nMemFree:          204800 kB\n"
                       "MemAvailable:   23068672 kB\nCached:         22560000 kB\n";

    assert_int_equal(hed_memory_available_in(text), 23068672ull << 10);
}

static void
a_kernel_that_does_not_tell_sets_no_limit(void **state)
{
    assert_int_equal(hed_memory_available_in(""), UINT64_MAX);
    assert_int_equal(hed_memory_available_in("MemFree: 1 kB\n"), UINT64_MAX);
}

static void
this_machine_has_memory(void **state)
{
    assert_true(hed_memory_available() > 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(cached_files_count_as_available),
    cmocka_unit_test(a_kernel_that_does_not_tell_sets_no_limit),
    cmocka_unit_test(this_machine_has_memory),
};

HED_UNIT_MAIN(tests)
