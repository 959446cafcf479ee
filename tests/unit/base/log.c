/* Tests of base/log: the levels, the form of a line, and when arguments are evaluated. */
#include "harness/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"

static char text[8192];
static int saved_stderr;
static int fds[2];

static void
capture(void)
{
    fflush(stderr);
    assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
    saved_stderr = dup(2);
    dup2(fds[1], 2);
}

/* Ends the capture: `text` then holds what was written. */
static void
captured(void)
{
    dup2(saved_stderr, 2);
    close(saved_stderr);
    close(fds[1]);

    const ssize_t n = read(fds[0], text, sizeof(text) - 1);

    text[n > 0 ? n : 0] = '\0';
    close(fds[0]);
}

static int
quiet(void **state)
{
    return hed_log_setup(NULL, NULL);
}

static void
silent_by_default(void **state)
{
    capture();
    hed_error(BASE, "lost");
    captured();
    assert_string_equal(text, "");
}

static void
line_names_process_level_and_component(void **state)
{
    char want[128];

    assert_int_equal(hed_log_setup("warn", NULL), 0);
    capture();
    hed_warn(GPU, "device %d is gone", 3);
    captured();
    snprintf(want, sizeof(want), "heddle[%d] warn gpu: device 3 is gone\n", (int)getpid());
    assert_string_equal(text, want);
}

static void
levels_below_are_left_out(void **state)
{
    assert_int_equal(hed_log_setup("warn", NULL), 0);
    assert_true(hed_log_on(CORE, HED_LEVEL_ERROR));
    assert_true(hed_log_on(CORE, HED_LEVEL_WARN));
    assert_false(hed_log_on(CORE, HED_LEVEL_INFO));
    assert_false(hed_log_on(CORE, HED_LEVEL_DEBUG));
}

static void
component_level_beats_general_level_in_any_order(void **state)
{
    static const char *const specs[] = {"warn,wire=debug", "wire=debug,warn",
                                        " wire = debug , warn,"};

    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        assert_int_equal(hed_log_setup(specs[i], NULL), 0);
        assert_true(hed_log_on(WIRE, HED_LEVEL_DEBUG));
        assert_true(hed_log_on(CPU, HED_LEVEL_WARN));
        assert_false(hed_log_on(CPU, HED_LEVEL_INFO));
    }
}

static void
named_component_alone_leaves_the_others_off(void **state)
{
    assert_int_equal(hed_log_setup("null=info", NULL), 0);
    assert_true(hed_log_on(NULL_BACKEND, HED_LEVEL_INFO));
    assert_false(hed_log_on(GPU, HED_LEVEL_ERROR));
}

static void
bad_spec_is_named_and_changes_nothing(void **state)
{
    struct hed_why why;

    assert_int_equal(hed_log_setup("info", NULL), 0);
    assert_int_equal(hed_log_setup("error,loud", &why), HED_EINVAL);
    assert_non_null(strstr(why.text, "'loud'"));
    assert_int_equal(hed_log_setup("error,wired=warn", &why), HED_EINVAL);
    assert_non_null(strstr(why.text, "'wired'"));
    assert_int_equal(hed_log_setup("wire=", NULL), HED_EINVAL);
    assert_int_equal(hed_log_setup("=warn", NULL), HED_EINVAL);
    assert_int_equal(hed_log_setup("war", NULL), HED_EINVAL);
    assert_true(hed_log_on(GPU, HED_LEVEL_INFO));
}

static void
arguments_are_not_evaluated_when_off(void **state)
{
    int n = 0;

    hed_debug(BASE, "%d", ++n);
    assert_int_equal(n, 0);
}

static void
errno_is_kept(void **state)
{
    assert_int_equal(hed_log_setup("debug", NULL), 0);
    capture();
    errno = ENOENT;
    hed_info(BASE, "%m");
    assert_int_equal(errno, ENOENT);
    captured();
    assert_non_null(strstr(text, "No such file"));
}

static void
text_cannot_forge_a_line(void **state)
{
    assert_int_equal(hed_log_setup("error", NULL), 0);
    capture();
    hed_error(WIRE, "%s", "a\nheddle[1] error gpu: \x1b[31mforged");
    captured();
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    assert_null(strchr(text, '\x1b'));
}

static void
a_long_line_is_truncated_and_terminated(void **state)
{
    assert_int_equal(hed_log_setup("error", NULL), 0);
    capture();
    hed_error(BASE, "%05000d", 1);
    captured();
    assert_int_equal(strlen(text), 1024);
    assert_string_equal(text + 1020, "...\n");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(silent_by_default),
    cmocka_unit_test_setup(line_names_process_level_and_component, quiet),
    cmocka_unit_test_setup(levels_below_are_left_out, quiet),
    cmocka_unit_test_setup(component_level_beats_general_level_in_any_order, quiet),
    cmocka_unit_test_setup(named_component_alone_leaves_the_others_off, quiet),
    cmocka_unit_test_setup(bad_spec_is_named_and_changes_nothing, quiet),
    cmocka_unit_test_setup(arguments_are_not_evaluated_when_off, quiet),
    cmocka_unit_test_setup(errno_is_kept, quiet),
    cmocka_unit_test_setup(text_cannot_forge_a_line, quiet),
    cmocka_unit_test_setup(a_long_line_is_truncated_and_terminated, quiet),
};

HED_UNIT_MAIN(tests)
