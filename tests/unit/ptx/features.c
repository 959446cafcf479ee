/* Which instructions LLVM may use, for processors that need not be this one. */
#include "kernel/ptx/run/features.h"
#include <stdlib.h>

#include "harness/unit.h"

#define UNTIL_AVX2                                                                  \
    "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+avx,+f16c,+fma,+avx2,+bmi,+bmi2,+" \
    "lzcnt"
#define ALL_OF_X86 UNTIL_AVX2 ",+avx512f,+avx512dq,+avx512cd,+avx512bw,+avx512vl"

/* A processor that says yes to every question. */
static struct hed_ptx_processor
knows_all(void)
{
    struct hed_ptx_processor p = {.saves_ymm = true, .saves_zmm = true};

    memset(p.words, 0xff, sizeof p.words);
    return p;
}

/* A list of what may be used, and not of what may not, keeps out what is newer: AVX10, APX. */
static void
nothing_newer_is_told(void **state)
{
    const struct hed_ptx_processor p = knows_all();
    char text[512];

    hed_ptx_features_x86(&p, text, sizeof text);
    assert_string_equal(text, ALL_OF_X86);
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

/* A hypervisor or a kernel may leave AVX-512 out that the processor has, or a part of it. */
static void
avx512_comes_whole_or_not_at_all(void **state)
{
    struct hed_ptx_processor p = knows_all();
    char text[512];

    p.saves_zmm = false;
    hed_ptx_features_x86(&p, text, sizeof text);
    assert_string_equal(text, UNTIL_AVX2);
    p = knows_all();
    p.words[HED_PTX_CPUID_7_B] &= ~(1u << 31);
    hed_ptx_features_x86(&p, text, sizeof text);
    assert_string_equal(text, UNTIL_AVX2);
}

static void
the_oldest_processor_has_no_features(void **state)
{
    const struct hed_ptx_processor p = {.saves_ymm = true, .saves_zmm = true};
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
    cmocka_unit_test(nothing_newer_is_told),
    cmocka_unit_test(this_processor_gets_nothing_else),
    cmocka_unit_test(avx_needs_a_system_that_saves_its_registers),
    cmocka_unit_test(avx512_comes_whole_or_not_at_all),
    cmocka_unit_test(the_oldest_processor_has_no_features),
    cmocka_unit_test(half_floats_of_arm_need_both_words),
    cmocka_unit_test(a_short_text_has_whole_names),
};

HED_UNIT_MAIN(tests)
