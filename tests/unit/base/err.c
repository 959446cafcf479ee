/* Tests of base/err: codes, texts, reasons, bug reports. */
#include "harness/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"

static void
every_code_is_negative_and_has_its_own_text(void **state)
{
    static const int codes[] = {
#define CODE(name, value, text) name,
        HED_ERR_MAP(CODE)
#undef CODE
    };
    const size_t n = sizeof(codes) / sizeof(codes[0]);

    for (size_t i = 0; i < n; i++) {
        assert_true(codes[i] < 0);
        assert_string_not_equal(hed_err_text(codes[i]), hed_err_text(-9999));
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(codes[i], codes[j]);
            assert_string_not_equal(hed_err_text(codes[i]), hed_err_text(codes[j]));
        }
    }
}

static void
zero_and_unknown_codes_have_texts(void **state)
{
    assert_string_equal(hed_err_text(0), "no error");
    assert_string_equal(hed_err_text(1), "unknown error");
    assert_string_equal(hed_err_text(-9999), "unknown error");
}

static void
errno_maps_to_the_nearest_code(void **state)
{
    assert_int_equal(hed_err_from_errno(0), 0);
    assert_int_equal(hed_err_from_errno(ENOMEM), HED_ENOMEM);
    assert_int_equal(hed_err_from_errno(ENOENT), HED_ENOTFOUND);
    assert_int_equal(hed_err_from_errno(EPERM), HED_EACCESS);
    assert_int_equal(hed_err_from_errno(EEXIST), HED_EEXIST);
    assert_int_equal(hed_err_from_errno(ECONNRESET), HED_EIO);
    assert_int_equal(hed_err_from_errno(123456), HED_EIO);
}

static void
why_holds_the_text_and_keeps_errno(void **state)
{
    struct hed_why why;

    errno = ENOENT;
    hed_why_set(&why, "%s: %d", "port", 7717);
    assert_string_equal(why.text, "port: 7717");
    assert_int_equal(errno, ENOENT);
}

static void
why_may_be_null(void **state)
{
    hed_why_set(NULL, "%d", 1);
}

static void
why_is_truncated_and_terminated(void **state)
{
    struct hed_why why;

    hed_why_set(&why, "%0600d", 7);
    assert_int_equal(strlen(why.text), sizeof(why.text) - 1);
}

static void
why_may_be_its_own_argument(void **state)
{
    struct hed_why why;

    hed_why_set(&why, "no such file");
    hed_why_set(&why, "open %s: %s", "a.hed", why.text);
    assert_string_equal(why.text, "open a.hed: no such file");
}

/* Calls hed_bug in a child. `text` receives what it wrote; returns its wait status. */
static int
bug_in_child(const char *levels, char *text, size_t size)
{
    int fds[2];
    int status;

    assert_int_equal(pipe(fds), 0);

    const pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        /* cmocka's handlers would turn the trap into a failed test of the child. */
        signal(SIGTRAP, SIG_DFL);
        signal(SIGILL, SIG_DFL);
        dup2(fds[1], 2);
        close(fds[0]);
        close(fds[1]);
        hed_log_setup(levels, NULL);
        hed_bug("count is %d", 3);
        _exit(0);
    }
    close(fds[1]);

    size_t n = 0;
    ssize_t got;

    while ((got = read(fds[0], text + n, size - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = '\0';
    close(fds[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void
bug_reports_where_and_traps_in_debug_builds_only(void **state)
{
    char text[4096];
    const int status = bug_in_child("error", text, sizeof(text));

    assert_non_null(strstr(text, " error base: bug: "));
    assert_non_null(strstr(text, "tests/unit/base/err.c:"));
    assert_non_null(strstr(text, ": count is 3\n"));
#ifdef HED_DEBUG
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
#else
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
#endif
}

static void
bug_is_silent_with_the_log_off_in_release_builds_only(void **state)
{
    char text[4096];

    bug_in_child("off", text, sizeof(text));
#ifdef HED_DEBUG
    assert_non_null(strstr(text, "count is 3"));
#else
    assert_string_equal(text, "");
#endif
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_code_is_negative_and_has_its_own_text),
    cmocka_unit_test(zero_and_unknown_codes_have_texts),
    cmocka_unit_test(errno_maps_to_the_nearest_code),
    cmocka_unit_test(why_holds_the_text_and_keeps_errno),
    cmocka_unit_test(why_may_be_null),
    cmocka_unit_test(why_is_truncated_and_terminated),
    cmocka_unit_test(why_may_be_its_own_argument),
    cmocka_unit_test(bug_reports_where_and_traps_in_debug_builds_only),
    cmocka_unit_test(bug_is_silent_with_the_log_off_in_release_builds_only),
};

HED_UNIT_MAIN(tests)
