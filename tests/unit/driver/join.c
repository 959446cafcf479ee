/* Joining several PTX modules into one text. */
#include "base/buf.h"
#include "base/err.h"
#include "driver/module/image.h"
#include "harness/unit.h"

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

/* Joins texts. The result is valid until the next call. */
static const char *
join_texts(const char *const *list, size_t count)
{
    static struct hed_buf out;
    struct hed_bytes texts[8];
    struct hed_why why = {""};

    for (size_t i = 0; i < count; i++)
        texts[i] = (struct hed_bytes){(const uint8_t *)list[i], strlen(list[i])};
    hed_buf_fini(&out);
    hed_buf_init(&out, 1 << 20);
    if (hed_ptx_join(texts, count, &out, &why) != 0)
        fail_msg("%s", why.text);
    return hed_buf_cstr(&out);
}

static const char *
joined(const char *a, const char *b)
{
    return join_texts((const char *[]){a, b}, 2);
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
    /* It is no longer external: an assembler would refuse the definition. */
    assert_non_null(strstr(out, ".visible .func (.param .b32 r) f(.param .b32 a);"));
    assert_int_equal(occurrences(out, ".extern .global .u32 x"), 1);
    assert_int_equal(occurrences(out, "x = 1"), 1);
}

/* Of a table of functions, other modules only know that it is an array. */
static void
external_variables_get_the_type_of_their_definition(void **state)
{
    const char *out = joined(HEAD ".extern .global .align 8 .b8 table[];\n",
                             HEAD ".visible .global .align 8 .u64 table[2] = {1, 2};\n");

    assert_int_equal(occurrences(out, ".extern .global .align 8 .u64 table[2];"), 1);
    assert_int_equal(occurrences(out, ".visible .global .align 8 .u64 table[2] = {1, 2};"), 1);
    assert_int_equal(occurrences(out, ".b8"), 0);
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

    assert_non_null(strstr(out, "$str$link1[2] = {66, 0}"));
    assert_non_null(strstr(out, ".func help$link1(){mov a, $str$link1; mov b, $strange;}"));
    assert_non_null(strstr(out, ".visible .entry l(){call help$link1;}"));
    assert_non_null(strstr(out, ".visible .entry k(){call help;}"));
}

/* nvcc calls the second and third string of a file $str$1 and $str$2. */
#define THREE_STRINGS                                                       \
    HEAD ".global .align 1 .b8 $str[1];\n.global .align 1 .b8 $str$1[1];\n" \
         ".global .align 1 .b8 $str$2[1];\n"

static void
a_new_name_is_nobody_elses(void **state)
{
    const char *const texts[] = {THREE_STRINGS, THREE_STRINGS, THREE_STRINGS};
    const char *out = join_texts(texts, 3);
    static const char *const names[] = {" $str[",       " $str$1[",       " $str$2[",
                                        " $str$link1[", " $str$1$link1[", " $str$2$link1[",
                                        " $str$link2[", " $str$1$link2[", " $str$2$link2["};

    assert_int_equal(occurrences(out, ".global"), 9);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_int_equal(occurrences(out, names[i]), 1);
}

static void
a_text_that_was_joined_before_can_be_joined_again(void **state)
{
    const char *out = joined(HEAD ".func f(){}\n.func f$link7(){}\n.func g$link99999999999(){}\n",
                             HEAD ".func f(){}\n.func f$link1(){}\n.func f$link9(){}\n");

    assert_int_equal(occurrences(out, ".func f("), 1);
    assert_non_null(strstr(out, ".func f$link11(){}"));
    assert_int_equal(occurrences(out, ".func f$link1("), 1);
    assert_int_equal(occurrences(out, ".func f$link7("), 1);
    assert_int_equal(occurrences(out, ".func f$link9("), 1);
}

static void
a_static_name_gives_way_to_one_that_all_see(void **state)
{
    const char *out = joined(HEAD ".func f(){ one; }\n.visible .entry k(){call f;}\n",
                             HEAD ".visible .func f(){ two; }\n");

    assert_non_null(strstr(out, ".func f$link0(){ one; }"));
    assert_non_null(strstr(out, "{call f$link0;}"));
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
    cmocka_unit_test(external_variables_get_the_type_of_their_definition),
    cmocka_unit_test(of_weak_definitions_the_first_stays),
    cmocka_unit_test(names_of_one_module_are_kept_apart),
    cmocka_unit_test(a_new_name_is_nobody_elses),
    cmocka_unit_test(a_text_that_was_joined_before_can_be_joined_again),
    cmocka_unit_test(a_static_name_gives_way_to_one_that_all_see),
    cmocka_unit_test(strings_and_comments_are_not_looked_into),
    cmocka_unit_test(what_is_no_ptx_is_refused),
};

HED_UNIT_MAIN(tests)
