/* Tests of the parts of `heddle snap` that need no process: why CRIU failed, notes about a process,
 * times, the words of --ckpt. */
#include "harness/unit.h"

#include <limits.h>

#include "base/clock.h"
#include "base/err.h"
#include "cli/snap/ckpt.h"
#include "move/command/command.h"

static void
explain(const char *log, struct hed_why *why)
{
    hed_criu_explain(log, strlen(log), why);
}

static void
the_first_error_that_matters_is_the_reason(void **state)
{
    struct hed_why why = {""};

    (void)state;
    explain("(00.001) Error (criu/util.c:642): exited, status=1\n"
            "(00.002) Warn  (criu/x.c:1): nothing\n"
            "(00.027) Error (criu/util.c:1433): rlimit: Can't setup RLIMIT_NOFILE for self: x\n"
            "(00.030) Error (criu/sk-unix.c:831): unix: External socket is used. Consider\n"
            "(00.031) Error (criu/cr-dump.c:2053): Dumping FAILED.\n",
            &why);
    assert_non_null(strstr(why.text, "criu says: unix: External socket is used"));
    assert_non_null(strstr(why.text, "close the connection first"));
    assert_null(strstr(why.text, "rlimit"));
}

static void
advice_may_be_in_a_later_line(void **state)
{
    struct hed_why why = {""};

    (void)state;
    explain("Error (criu/cr-restore.c:1): 7: strange\n"
            "Error (criu/cr-restore.c:2): Can't fork for 7: File exists\n",
            &why);
    assert_non_null(strstr(why.text, "7: strange (is the number of the process taken?"));
}

static void
a_log_without_errors_is_said_to_be_one(void **state)
{
    static const char *const logs[] = {
        "", "\n\n", "Error", "Error (", "Error (x", "Error (criu/util.c:642): exited, status=1"};
    struct hed_why why;

    (void)state;
    for (size_t i = 0; i < sizeof logs / sizeof logs[0]; i++) {
        why.text[0] = '\0';
        explain(logs[i], &why);
        assert_non_null(strstr(why.text, "does not say why"));
    }
}

static int
read_notes(const char *text, struct hed_snap_process *out)
{
    return hed_snap_notes_read(text, strlen(text), out, NULL);
}

static void
notes_are_read(void **state)
{
    struct hed_snap_process p;

    (void)state;
    assert_int_equal(read_notes("criu 31701\npid 1234\nshell-job yes\nstream1 pipe:[47]\n"
                                "stream2 tty\nlater thing\nuser 1000\nsocket /x/snap-1234\n"
                                "private cpu:a100\n",
                                &p),
                     0);
    assert_int_equal(p.criu.pid, 1234);
    assert_int_equal(p.criu_version, 31701);
    assert_true(p.criu.shell_job);
    assert_string_equal(p.criu.stream[0], "");
    assert_string_equal(p.criu.stream[1], "pipe:[47]");
    assert_string_equal(p.criu.stream[2], "tty");
    assert_string_equal(p.socket, "/x/snap-1234");
    assert_string_equal(p.private_gpu, "cpu:a100");
    assert_true(p.has_user);
    assert_int_equal(p.user, 1000);
}

static void
bad_notes_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "pid 12\n",
        "socket /x\n",
        "pid 1\nsocket /x\n",
        "pid -5\nsocket /x\n",
        "pid 99999999999\nsocket /x\n",
        "pid 12\nuser x\nsocket /x\n",
        "pid 12\nsocket x\n",
        "pid 12\nsocket /x\nword\n",
        "pid 12\nsocket /x\nstream0 pipe:[1]:evil\n",
        "pid 12\nsocket /x\nstream0 --exec-cmd\n",
        "pid 12\nsocket /x\nstream0 pipe:[]\n",
        "pid 12\nsocket /x\nstream0 file:/x\n",
        "pid 12\nsocket /x\nstream0 file:3:x\n",
        "pid 12\nsocket /x\nshell-job perhaps\n",
    };
    struct hed_snap_process p;
    char text[700];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(read_notes(bad[i], &p), HED_EFORMAT);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(read_notes(text, &p), HED_EFORMAT);
    assert_int_equal(hed_snap_notes_read("pid 1\0002\nsocket /x\n", 19, &p, NULL), HED_EFORMAT);
}

static void
times_have_units(void **state)
{
    uint64_t ns = 5;

    (void)state;
    assert_int_equal(hed_snap_parse_time("500ms", &ns), 0);
    assert_int_equal(ns, 500 * HED_NS_PER_MS);
    assert_int_equal(hed_snap_parse_time("60", &ns), 0);
    assert_int_equal(ns, 60 * HED_NS_PER_S);
    assert_int_equal(hed_snap_parse_time("5m", &ns), 0);
    assert_int_equal(ns, 300 * HED_NS_PER_S);
    assert_int_equal(hed_snap_parse_time("2h", &ns), 0);
    assert_int_equal(ns, 7200 * HED_NS_PER_S);
    for (const char *const *s =
             (const char *const[]){"", "s", "1x", "-1s", "1.5s", "99999999999999999999s", NULL};
         *s; s++)
        assert_int_not_equal(hed_snap_parse_time(*s, &ns), 0);
    assert_int_equal(hed_snap_parse_time("9999999999999999h", &ns), HED_ERANGE);
    assert_int_equal(ns, 7200 * HED_NS_PER_S);
}

static void
the_words_of_ckpt_are_read(void **state)
{
    struct hed_ckpt c;
    struct hed_why why = {""};

    (void)state;
    assert_int_equal(hed_ckpt_parse("on", &c, &why), 0);
    assert_true(c.on);
    assert_int_equal(c.every_ns, 0);
    assert_int_equal(c.keep, 3);
    assert_int_equal(hed_ckpt_parse("every=60s,keep=5,dir=/x/y,zstd=3", &c, &why), 0);
    assert_int_equal(c.every_ns, 60 * HED_NS_PER_S);
    assert_int_equal(c.keep, 5);
    assert_int_equal(c.zstd, 3);
    assert_string_equal(c.dir, "/x/y");
    assert_int_not_equal(hed_ckpt_parse("often=1s", &c, &why), 0);
    assert_non_null(strstr(why.text, "'often'"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_first_error_that_matters_is_the_reason),
    cmocka_unit_test(advice_may_be_in_a_later_line),
    cmocka_unit_test(a_log_without_errors_is_said_to_be_one),
    cmocka_unit_test(notes_are_read),
    cmocka_unit_test(bad_notes_are_refused),
    cmocka_unit_test(times_have_units),
    cmocka_unit_test(the_words_of_ckpt_are_read),
};

HED_UNIT_MAIN(tests)
