/* Tests of base/folder: where a user's files go. */
#include "base/folder.h"

#include <stdlib.h>

#include "harness/unit.h"

static void
the_cache_is_in_the_xdg_folder(void **state)
{
    char out[64];

    setenv("XDG_CACHE_HOME", "/c", 1);
    setenv("HOME", "/h", 1);
    assert_true(hed_cache_folder("kernels", out, sizeof out));
    assert_string_equal(out, "/c/heddle/kernels");
}

static void
without_xdg_the_cache_is_in_the_home_folder(void **state)
{
    char out[64];

    setenv("XDG_CACHE_HOME", "relative", 1);
    setenv("HOME", "/h", 1);
    assert_true(hed_cache_folder("images", out, sizeof out));
    assert_string_equal(out, "/h/.cache/heddle/images");
}

static void
without_a_home_there_is_no_cache(void **state)
{
    char out[64] = "x", small[8];

    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", "", 1);
    assert_false(hed_cache_folder("kernels", out, sizeof out));
    assert_string_equal(out, "");
    setenv("HOME", "/home", 1);
    assert_false(hed_cache_folder("kernels", small, sizeof small));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_cache_is_in_the_xdg_folder),
    cmocka_unit_test(without_xdg_the_cache_is_in_the_home_folder),
    cmocka_unit_test(without_a_home_there_is_no_cache),
};

HED_UNIT_MAIN(tests)
