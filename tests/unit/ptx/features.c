/* Which instructions LLVM may use, for processors that need not be this one. */
#include "kernel/ptx/run/features.h"
#include <stdlib.h>

#include "harness/unit.h"

#define ALL_OF_X86                                                                  \
    "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+avx,+f16c,+fma,+avx2,+bmi,+bmi2,+" \
    "lzcnt"

/* A processor that says yes to every question. */
static struct hed_ptx_processor
knows_all(void)
{
    struct hed_ptx_processor p = {.saves_ymm = true};

    memset(p.words, 0xff, sizeof p.words);
    return p;
}

/* LLVM 19 merges and, or and select into one instruction of AVX-512 (vpternlog) and gets the sign
 * of a result wrong, so whatever a processor says, LLVM must not hear of AVX-512, of AVX10, which
 * includes it, nor of APX, which is as new. */
static void
llvm_19_gets_signs_wrong_with_avx512_and_never_gets_it(void **state)
{
    const struct hed_ptx_processor p = knows_all();
    char text[512];

    hed_ptx_features_x86(&p, text, sizeof text);
    assert_string_equal(text, ALL_OF_X86);
    assert_null(strstr(text, "avx512"));
    assert_null(strstr(text, "avx10"));
    assert_null(strstr(text, "evex"));
    assert_null(strstr(text, "apx"));
}

/* The processor that the test runs on: the list is all that it may be told. */
static void
this_processor_gets_nothing_else(void **state)
{
    const struct hed_ptx_processor p = knows_all();
    char x86[512], arm[512], all[1040], text[512];
    const char *next = text;

    hed_ptx_features_x86(&p, x86, sizeof x86);
    hed_ptx_features_arm(&p, arm, sizeof arm);
    snprintf(all, sizeof all, "%s,%s,", x86, arm);
    assert_int_equal(unsetenv("HED_TEST_FEATURES"), 0);
    hed_ptx_features(text, sizeof text);
    while (*next) {
        char one[64];
        const size_t n = strcspn(next, ",");

        assert_in_range(n, 2, sizeof one - 2);
        snprintf(one, sizeof one, "%.*s,", (int)n, next);
        if (!strstr(all, one))
            fail_msg("%s is not in the list: %s", one, all);
        next += n + (next[n] == ',');
    }
}

static void
avx_needs_a_system_that_saves_its_registers(void **state)
{
    struct hed_ptx_processor p = knows_all();
    char text[512];

    p.saves_ymm = false;
    hed_ptx_features_x86(&p, text, sizeof text);
    assert_string_equal(text, "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+bmi,+bmi2,+lzcnt");
}

static void
the_oldest_processor_has_no_features(void **state)
{
    const struct hed_ptx_processor p = {.saves_ymm = true};
    char text[512];

    hed_ptx_features_x86(&p, text, sizeof text);
    assert_string_equal(text, "");
    hed_ptx_features_arm(&p, text, sizeof text);
    assert_string_equal(text, "");
}

static void
half_floats_of_arm_need_both_words(void **state)
{
    struct hed_ptx_processor p = {0};
    char text[512];

    p.words[HED_PTX_HWCAP] = 1u << 9 | 1u << 8;
    hed_ptx_features_arm(&p, text, sizeof text);
    assert_string_equal(text, "+lse");
    p.words[HED_PTX_HWCAP] |= 1u << 10;
    hed_ptx_features_arm(&p, text, sizeof text);
    assert_string_equal(text, "+lse,+fullfp16");
}

static void
a_short_text_has_whole_names(void **state)
{
    const struct hed_ptx_processor p = knows_all();
    char text[16];

    hed_ptx_features_x86(&p, text, sizeof text);
    assert_string_equal(text, "+sse3,+ssse3");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(llvm_19_gets_signs_wrong_with_avx512_and_never_gets_it),
    cmocka_unit_test(this_processor_gets_nothing_else),
    cmocka_unit_test(avx_needs_a_system_that_saves_its_registers),
    cmocka_unit_test(the_oldest_processor_has_no_features),
    cmocka_unit_test(half_floats_of_arm_need_both_words),
    cmocka_unit_test(a_short_text_has_whole_names),
};

HED_UNIT_MAIN(tests)
