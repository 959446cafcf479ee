/* Several PTX modules as one text. */
#include "base/buf.h"
#include "base/err.h"
#include "driver/module/image.h"
#include "harness/unit.h"

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

/* Joins two texts; the result is valid until the next. */
static const char *
joined(const char *a, const char *b)
{
    static struct hed_buf out;
    const struct hed_bytes texts[] = {{(const uint8_t *)a, strlen(a)},
                                      {(const uint8_t *)b, strlen(b)}};
    struct hed_why why = {""};

    hed_buf_fini(&out);
    hed_buf_init(&out, 1 << 20);
    if (hed_ptx_join(texts, 2, &out, &why) != 0)
        fail_msg("%s", why.text);
    return hed_buf_cstr(&out);
}

static int
occurrences(const char *text, const char *word)
{
    int n = 0;

    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        n++;
    return n;
}

static void
the_newest_header_is_kept(void **state)
{
    const char *out = joined(".version 7.8 .target sm_90a, debug\n.address_size 64\n",
                             "// a comment\n.version 8.0\n.target sm_80\n.address_size 64\n");

    assert_int_equal(strncmp(out, ".version 8.0\n.target sm_90a\n.address_size 64\n", 43), 0);
    assert_int_equal(occurrences(out, ".version"), 1);
}

static void
declarations_before_their_definition_stay(void **state)
{
    const char *out = joined(HEAD ".extern .func (.param .b32 r) f(.param .b32 a);\n"
                                  ".extern .global .u32 x;\n.visible .entry k(){call f;}\n",
                             HEAD ".visible .func (.param .b32 r) f(.param .b32 a){ret;}\n"
                                  ".visible .global .u32 x = 1;\n.extern .global .u32 x;\n");

    assert_int_equal(occurrences(out, " f("), 2);
    /* External it is no longer: an assembler would refuse the definition. */
    assert_non_null(strstr(out, ".visible .func (.param .b32 r) f(.param .b32 a);"));
    assert_int_equal(occurrences(out, ".extern .global .u32 x"), 1);
    assert_int_equal(occurrences(out, "x = 1"), 1);
}

static void
of_weak_definitions_the_first_stays(void **state)
{
    const char *out = joined(HEAD ".weak .func f(){/* } */ add; }\n.common .global .u32 c;\n",
                             HEAD ".weak .func f(){ sub; }\n.common .global .u32 c;\n"
                                  ".visible .entry k(){call f;}\n");

    assert_int_equal(occurrences(out, "add;"), 1);
    assert_int_equal(occurrences(out, "sub;"), 0);
    assert_int_equal(occurrences(out, ".common"), 1);
    assert_int_equal(occurrences(out, ".entry k"), 1);
}

static void
names_of_one_module_are_kept_apart(void **state)
{
    const char *out = joined(HEAD ".global .align 1 .b8 $str[2] = {65, 0};\n"
                                  ".func help(){mov a, $str;}\n.visible .entry k(){call help;}\n",
                             HEAD ".global .align 1 .b8 $str[2] = {66, 0};\n"
                                  ".func help(){mov a, $str; mov b, $strange;}\n"
                                  ".visible .entry l(){call help;}\n");

    assert_non_null(strstr(out, "$str$1[2] = {66, 0}"));
    assert_non_null(strstr(out, ".func help$1(){mov a, $str$1; mov b, $strange;}"));
    assert_non_null(strstr(out, ".visible .entry l(){call help$1;}"));
    assert_non_null(strstr(out, ".visible .entry k(){call help;}"));
}

static void
a_static_name_gives_way_to_one_that_all_see(void **state)
{
    const char *out = joined(HEAD ".func f(){ one; }\n.visible .entry k(){call f;}\n",
                             HEAD ".visible .func f(){ two; }\n");

    assert_non_null(strstr(out, ".func f$0(){ one; }"));
    assert_non_null(strstr(out, "{call f$0;}"));
    assert_non_null(strstr(out, ".visible .func f(){ two; }"));
}

static void
strings_and_comments_are_not_looked_into(void **state)
{
    const char *out = joined(HEAD ".file 1 \"a;{b.cu\"\n.section .debug_info { .b8 1 }\n"
                                  ".visible .entry k(){ .pragma \"nounroll }\"; ret; }\n",
                             HEAD "/* .visible .entry no(){} */ .visible .entry l(){}\n");

    assert_non_null(strstr(out, ".pragma \"nounroll }\"; ret; }"));
    assert_int_equal(occurrences(out, ".entry no"), 0);
    assert_int_equal(occurrences(out, ".entry l"), 1);
}

static void
what_is_no_ptx_is_refused(void **state)
{
    const struct hed_bytes texts[] = {{(const uint8_t *)HEAD, sizeof HEAD - 1},
                                      {(const uint8_t *)"nothing", 7}};
    struct hed_buf out;

    hed_buf_init(&out, 1 << 20);
    assert_int_equal(hed_ptx_join(texts, 2, &out, NULL), HED_EFORMAT);
    hed_buf_fini(&out);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_newest_header_is_kept),
    cmocka_unit_test(declarations_before_their_definition_stay),
    cmocka_unit_test(of_weak_definitions_the_first_stays),
    cmocka_unit_test(names_of_one_module_are_kept_apart),
    cmocka_unit_test(a_static_name_gives_way_to_one_that_all_see),
    cmocka_unit_test(strings_and_comments_are_not_looked_into),
    cmocka_unit_test(what_is_no_ptx_is_refused),
};

HED_UNIT_MAIN(tests)
