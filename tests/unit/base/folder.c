/* Folders of the user. */
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
or_in_the_home_folder(void **state)
{
    char out[64];

    setenv("XDG_CACHE_HOME", "relative", 1);
    setenv("HOME", "/h", 1);
    assert_true(hed_cache_folder("images", out, sizeof out));
    assert_string_equal(out, "/h/.cache/heddle/images");
}

static void
there_may_be_none(void **state)
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
    cmocka_unit_test(or_in_the_home_folder),
    cmocka_unit_test(there_may_be_none),
};

HED_UNIT_MAIN(tests)
