/* Reading JSON: what it takes, what it refuses, and that nothing makes it read too far. */
#include "harness/unit.h"

#include "base/json.h"

static struct hed_json
over(const char *text)
{
    return hed_json_over(text, strlen(text));
}

static void
members_are_read_in_order(void **state)
{
    struct hed_json j =
        over("{ \"pid\": 17, \"name\":\"a\\n\\u00e9\", \"part\":-2.25, \"yes\":true,"
             "\"none\":null, \"list\":[1, 2,[],{}] }");
    char key[16], text[16];

    assert_true(hed_json_enter(&j, '{'));
    assert_true(hed_json_key(&j, key, sizeof key));
    assert_string_equal(key, "pid");
    assert_int_equal(hed_json_number(&j), 17);
    assert_true(hed_json_key(&j, key, sizeof key));
    hed_json_text(&j, text, sizeof text);
    assert_string_equal(text, "a\n\xc3\xa9");
    assert_true(hed_json_key(&j, key, sizeof key));
    assert_true(hed_json_real(&j) == -2.25);
    assert_true(hed_json_key(&j, key, sizeof key));
    assert_true(hed_json_bool(&j));
    assert_true(hed_json_key(&j, key, sizeof key));
    assert_true(hed_json_null(&j));
    assert_true(hed_json_key(&j, key, sizeof key));
    assert_string_equal(key, "list");
    assert_true(hed_json_enter(&j, '['));
    for (uint64_t i = 1; i <= 2; i++) {
        assert_true(hed_json_next(&j));
        assert_int_equal(hed_json_number(&j), i);
    }
    assert_true(hed_json_next(&j));
    hed_json_skip(&j);
    assert_true(hed_json_next(&j));
    hed_json_skip(&j);
    assert_false(hed_json_next(&j));
    assert_false(hed_json_key(&j, key, sizeof key));
    assert_false(j.bad);
}

static void
values_of_another_kind_are_passed_over(void **state)
{
    struct hed_json j = over("[\"text\",null,{\"a\":[1]},3,-4,99999999999999999999]");
    char text[4];

    (void)hed_json_enter(&j, '[');
    assert_true(hed_json_next(&j) && hed_json_number(&j) == 0);
    assert_true(hed_json_next(&j) && hed_json_number(&j) == 0);
    assert_true(hed_json_next(&j) && !hed_json_bool(&j));
    assert_true(hed_json_next(&j));
    hed_json_text(&j, text, sizeof text);
    assert_string_equal(text, "");
    assert_true(hed_json_next(&j) && hed_json_number(&j) == 0);
    assert_true(hed_json_next(&j) && hed_json_number(&j) == UINT64_MAX);
    assert_false(hed_json_next(&j) || j.bad);
}

static void
text_is_cut_at_a_whole_character(void **state)
{
    struct hed_json j = over("\"abc\\u20ac\"");
    char text[6];

    hed_json_text(&j, text, sizeof text);
    assert_string_equal(text, "abc");
    assert_false(j.bad);
}

static void
mistakes_end_every_loop(void **state)
{
    static const char *const texts[] = {
        "",      "[",     "[1",        "[1,",         "[1 2]", "{\"a\"}", "{\"a\":",
        "{1:2}", "[\"a]", "[\"\\q\"]", "[\"\\u12\"]", "[tru]", "[1e5]",   "{\"a\":1,,}",
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct hed_json j = over(texts[i]);

        hed_json_skip(&j);
        if (!j.bad)
            fail_msg("%s was taken", texts[i]);
        assert_false(hed_json_next(&j));
        assert_int_equal(hed_json_number(&j), 0);
    }
}

static void
depth_has_an_end(void **state)
{
    char text[4096];
    struct hed_json j;

    memset(text, '[', sizeof text);
    j = hed_json_over(text, sizeof text);
    hed_json_skip(&j);
    assert_true(j.bad);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(members_are_read_in_order),
    cmocka_unit_test(values_of_another_kind_are_passed_over),
    cmocka_unit_test(text_is_cut_at_a_whole_character),
    cmocka_unit_test(mistakes_end_every_loop),
    cmocka_unit_test(depth_has_an_end),
};

HED_UNIT_MAIN(tests)
