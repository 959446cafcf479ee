/* Included by unit test programs: cmocka in the order that it needs, and a main().
 *
 *     static void
 *     quota_refuses_over_limit(void **state) { ... }
 *
 *     static const struct CMUnitTest tests[] = {
 *         cmocka_unit_test(quota_refuses_over_limit),
 *     };
 *
 *     HED_UNIT_MAIN(tests)
 *
 * Without arguments the program runs every test; with one, the test of that name.
 */
#pragma once

/* cmocka.h does not include what it uses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "harness/patience.h"

/* If no test matches the filter, cmocka runs nothing and succeeds, which must not pass. */
static inline int
hed_unit_choose(int argc, char **argv, const struct CMUnitTest *tests, size_t count)
{
    if (argc < 2)
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(tests[i].name, argv[1]) == 0) {
            cmocka_set_test_filter(argv[1]);
            return 0;
        }
    }
    fprintf(stderr, "%s: no test called %s\n", argv[0], argv[1]);
    return 1;
}

/* HED_UNIT_COUNT is the number of tests that CMake found in the source and made into CTest
 * cases. */
#define HED_UNIT_MAIN(tests)                                                                   \
    _Static_assert(sizeof(tests) / sizeof((tests)[0]) == HED_UNIT_COUNT,                       \
                   "a test is not spelled cmocka_unit_test...(name), or is not in the table"); \
                                                                                               \
    int main(int argc, char **argv)                                                            \
    {                                                                                          \
        if (hed_unit_choose(argc, argv, tests, sizeof(tests) / sizeof((tests)[0])))            \
            return 1;                                                                          \
        return cmocka_run_group_tests(tests, NULL, NULL);                                      \
    }
