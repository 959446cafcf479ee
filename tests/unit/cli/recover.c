/* Tests of the recovery of programs that have lost their server, as far as no program has to be
 * restored, and of ending a process with its descendants. */
#include "harness/unit.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/meeting.h"
#include "base/tree.h"
#include "cli/cli.h"
#include "cli/snap/ckpt.h"
#include "move/command/criu.h"
#include "move/command/private.h"
#include "move/command/recover.h"
#include "move/command/tails.h"

static char folder[64]; /* where the processes of this test meet, and snapshots would be */

static int
make_recover_folder(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/hed-recover-XXXXXX");
    assert_non_null(mkdtemp(folder));
    hed_meeting_choose(folder);
    return 0;
}

static int
remove_recover_folder(void **state)
{
    (void)state;
    (void)rmdir(folder);
    hed_meeting_choose("");
    return 0;
}

static void
words_about_recovery_are_read(void **state)
{
    struct hed_ckpt c;
    struct hed_why why = {""};

    (void)state;
    assert_int_equal(hed_ckpt_parse("every=60s", &c, &why), 0);
    assert_int_equal(c.recover, 0);
    assert_int_equal(hed_ckpt_parse("every=60s,recover", &c, &why), 0);
    assert_int_equal(c.recover, 3);
    assert_int_equal(c.wait_ns, 60 * HED_NS_PER_S);
    assert_int_equal(hed_ckpt_parse("recover=7,wait=5m,every=60s", &c, &why), 0);
    assert_int_equal(c.recover, 7);
    assert_int_equal(c.wait_ns, 300 * HED_NS_PER_S);
    assert_int_not_equal(hed_ckpt_parse("recover", &c, &why), 0);
    assert_non_null(strstr(why.text, "every="));
    assert_int_not_equal(hed_ckpt_parse("every=60s,recover=often", &c, &why), 0);
    assert_int_not_equal(hed_ckpt_parse("every=60s,recover,wait=9999h", &c, &why), 0);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* In a child: waits for the parent to listen, and asks. The exit code is 0 after a refusal. */
static pid_t
start_asking(void)
{
    const pid_t pid = fork();
    struct hed_talk_request q;
    struct hed_talk_answer a;
    int fd;

    if (pid != 0)
        return pid;
    while (hed_talk_open_rescue(&fd, NULL) != 0)
        hed_sleep_ns(HED_NS_PER_MS);
    hed_talk_ask(&q, HED_TALK_RESCUE);
    (void)snprintf(q.label, sizeof q.label, "for a test");
    _exit(hed_talk_send(fd, &q, NULL, 0, NULL) == 0 &&
                  hed_talk_wait(fd, -1, HED_TALK_RESCUE, &a, NULL) == 0 && a.err == HED_ENOTFOUND &&
                  strstr(a.why, "no snapshot")
              ? 0
              : 1);
}

static void
hear_until_it_ends(struct hed_recovery *r, pid_t pid, int *status)
{
    while (waitpid(pid, status, WNOHANG) == 0) {
        hed_recovery_ops.hear(r);
        hed_sleep_ns(HED_NS_PER_MS);
    }
}

static void
a_program_without_a_snapshot_is_refused(void **state)
{
    struct hed_ckpt ckpt = {.recover = 3};
    struct hed_private_server server = {.pid = 0};
    struct hed_ckpt_memory memory = {.quiet = false};
    struct hed_recovery r = {.say = hed_cli_say,
                             .ckpt = &ckpt,
                             .server = &server,
                             .memory = &memory,
                             .address = "unix:/nowhere"};
    const pid_t pid = start_asking();
    int status = 0;

    (void)state;
    (void)snprintf(ckpt.dir, sizeof ckpt.dir, "%s", folder);
    assert_int_equal(hed_recovery_open(&r, pid, NULL), 0);
    hear_until_it_ends(&r, pid, &status);
    assert_int_equal(status, 0);
    assert_false(r.waiting);
    assert_int_equal(hed_recovery_ops.timeout(&r), -1);
    assert_int_equal(hed_recovery_ops.step(&r, true), HED_RECOVERY_NOT_YET);
    hed_recovery_close(&r);
    assert_int_not_equal(access(r.path, F_OK), 0);
}

static void
only_the_program_itself_is_heard(void **state)
{
    struct hed_ckpt ckpt = {.recover = 3};
    struct hed_private_server server = {.pid = 0};
    struct hed_ckpt_memory memory = {.quiet = false};
    struct hed_recovery r = {
        .say = hed_cli_say, .ckpt = &ckpt, .server = &server, .memory = &memory};
    struct hed_talk_request q;
    struct hed_talk_answer a;
    int fd;

    (void)state;
    /* Nobody listens as our own parent, and we are not the program that is listened for. */
    assert_int_equal(hed_talk_open_rescue(&fd, NULL), HED_ENOTFOUND);
    assert_int_equal(hed_recovery_open(&r, getpid(), NULL), 0);
    assert_int_equal(hed_talk_open_rescue(&fd, NULL), HED_ENOTFOUND);
    hed_recovery_ops.hear(&r);
    r.pid = 1;
    assert_int_equal(hed_talk_open_at(r.path, &fd, NULL), 0);
    hed_talk_ask(&q, HED_TALK_RESCUE);
    assert_int_equal(hed_talk_send(fd, &q, NULL, 0, NULL), 0);
    hed_recovery_ops.hear(&r);
    assert_int_equal(hed_talk_wait(fd, -1, HED_TALK_RESCUE, &a, NULL), HED_ETRUNC);
    close(fd);
    hed_recovery_close(&r);
}

static void
programs_that_end_by_themselves_are_not_recovered(void **state)
{
    struct hed_ckpt ckpt = {.recover = 3};
    struct hed_private_server server = {.pid = 0};
    struct hed_ckpt_memory memory = {.quiet = false};
    struct hed_recovery r = {.say = hed_cli_say,
                             .ckpt = &ckpt,
                             .server = &server,
                             .memory = &memory,
                             .address = "unix:/nowhere",
                             .peer = -1};

    (void)state;
    assert_false(hed_recovery_ops.ended(&r, 0));
    assert_false(hed_recovery_ops.ended(&r, 1 << 8)); /* exit code 1 */
    assert_false(hed_recovery_ops.ended(&r, SIGTERM));
    assert_false(hed_recovery_ops.ended(&r, SIGKILL));
    r.waiting = true;
    assert_false(hed_recovery_ops.ended(&r, SIGTERM));
    assert_false(r.waiting);
    r.waiting = true;
    assert_true(hed_recovery_ops.ended(&r, SIGSEGV));
    r.waiting = false;
    assert_false(hed_recovery_ops.ended(&r, SIGSEGV)); /* there is no snapshot */
}

/* ---- processes ------------------------------------------------------------------------------- */

/* A process with two children, each with a family of four, which all say their numbers. */
__attribute__((noreturn)) static void
be_family(int out)
{
    pid_t self;

    (void)(fork() == 0 ? fork() + fork() : fork() == 0 ? fork() + fork() : 0);
    self = getpid();
    (void)!write(out, &self, sizeof self);
    for (;;)
        (void)pause();
}

static void
a_process_is_killed_with_its_descendants(void **state)
{
    enum { PROCESSES = 9 };
    pid_t pids[PROCESSES];
    int fds[2];
    int status = 0;

    (void)state;
    hed_tree_adopt();
    assert_int_equal(pipe(fds), 0);

    const pid_t root = fork();

    if (root == 0)
        be_family(fds[1]);
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(read(fds[0], &pids[i], sizeof pids[i]), sizeof pids[i]);
    hed_tree_kill(root);
    assert_int_equal(waitpid(root, &status, 0), root);
    assert_int_equal(status, SIGKILL);
    for (int i = 0; i < PROCESSES; i++)
        assert_int_not_equal(kill(pids[i], 0), 0);
    close(fds[0]);
    close(fds[1]);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void
write_text(const char *path, const char *text, size_t size)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

/* An entry of files.img: flags, where the program was, its path, the size. All below 128. */
static size_t
put_open_file(uint8_t *out, uint8_t flags_low, uint8_t flags_high, uint8_t pos, const char *path,
              uint8_t size)
{
    const uint8_t n = (uint8_t)strlen(path);
    uint8_t reg[128] = {
        0x08, 1,    0x10, (uint8_t)(flags_low | 0x80), flags_high, 0x18, pos, 0x2a, 2, 0x08,
        0,    0x32, n};
    const uint8_t reg_size = (uint8_t)(13 + n + 2 + 4);
    const uint32_t entry = 4 + 2 + (uint32_t)reg_size;

    memcpy(reg + 13, path, n);
    memcpy(reg + 13 + n, (uint8_t[]){0x40, size, 0x50, 0xa4, 0x83, 0x02}, 6);
    memcpy(out, &entry, sizeof entry);
    memcpy(out + 4, (uint8_t[]){0x08, 1, 0x10, 7, 0x1a, reg_size}, 6);
    memcpy(out + 10, reg, reg_size);
    return 10 + (size_t)reg_size;
}

static void
note_tail(void *arg, const char *path, uint64_t size)
{
    char *text = arg;

    (void)snprintf(text + strlen(text), 256 - strlen(text), "%s %u;", path, (unsigned)size);
}

static void
files_that_are_written_to_their_end_are_found(void **state)
{
    uint8_t image[512] = {0};
    char found[256] = "";
    size_t n = 8;

    (void)state;
    n += put_open_file(image + n, 0x01, 0, 9, "/a/log", 9);
    n += put_open_file(image + n, 0x00, 0, 9, "/read", 9);
    n += put_open_file(image + n, 0x02, 0, 9, "/both", 9);
    n += put_open_file(image + n, 0x01, 8, 9, "/append", 9);
    n += put_open_file(image + n, 0x01, 0, 3, "/inside", 9);
    n += put_open_file(image + n, 0x01, 0, 0, "/empty", 0);
    n += put_open_file(image + n, 0x01, 0, 9, "relative", 9);
    hed_snap_tails_each(image, n, note_tail, found);
    assert_string_equal(found, "/a/log 9;/empty 0;");
}

/* Nothing else is promised than that it ends, and stays inside. */
static void
any_image_of_files_is_safe(void **state)
{
    uint8_t good[512] = {0};
    const size_t n = 8 + put_open_file(good + 8, 0x01, 0, 9, "/a/log", 9);
    char found[256];

    (void)state;
    for (size_t cut = 0; cut <= n; cut++) {
        uint8_t *exact = malloc(cut ? cut : 1);

        assert_non_null(exact);
        memcpy(exact, good, cut);
        found[0] = '\0';
        hed_snap_tails_each(exact, cut, note_tail, found);
        free(exact);
    }
    for (size_t at = 8; at < n; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            good[at] ^= (uint8_t)(1u << bit);
            found[0] = '\0';
            hed_snap_tails_each(good, n, note_tail, found);
            good[at] ^= (uint8_t)(1u << bit);
        }
}

static void
files_that_have_grown_are_cut(void **state)
{
    struct hed_criu_process p = {.pid = 1};
    char image[96], log[96], out[96];
    uint8_t bytes[512] = {0};
    size_t n = 8;
    struct stat st;
    struct hed_why why = {""};

    (void)state;
    (void)snprintf(image, sizeof image, "%s/files.img", folder);
    (void)snprintf(log, sizeof log, "%s/log", folder);
    (void)snprintf(out, sizeof out, "%s/out", folder);
    (void)snprintf(p.stream[1], sizeof p.stream[1], "file:3:%s", out);
    n += put_open_file(bytes + n, 0x01, 0, 3, log, 3);
    n += put_open_file(bytes + n, 0x01, 0, 3, out, 3);
    write_text(image, (const char *)bytes, n);
    write_text(log, "123456", 6);
    write_text(out, "123456", 6);
    assert_int_equal(hed_snap_tails_check(bytes, n, &p, &why), 0);
    assert_int_equal(hed_snap_tails_cut(folder, &p), 1);
    assert_int_equal(stat(log, &st), 0);
    assert_int_equal(st.st_size, 3);
    assert_int_equal(stat(out, &st), 0);
    assert_int_equal(st.st_size, 6);
    assert_int_equal(hed_snap_tails_cut(folder, &p), 0);
    n += put_open_file(bytes + n, 0x02, 0, 3, log, 3); /* also open for reading */
    assert_int_equal(hed_snap_tails_check(bytes, n, &p, &why), 0);
    write_text(log, "123456", 6);
    assert_int_equal(hed_snap_tails_check(bytes, n, &p, &why), HED_ESTATE);
    assert_non_null(strstr(why.text, "has 6 bytes, but had 3"));
    (void)unlink(image);
    (void)unlink(log);
    (void)unlink(out);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(words_about_recovery_are_read),
    cmocka_unit_test_setup_teardown(a_program_without_a_snapshot_is_refused, make_recover_folder,
                                    remove_recover_folder),
    cmocka_unit_test_setup_teardown(only_the_program_itself_is_heard, make_recover_folder,
                                    remove_recover_folder),
    cmocka_unit_test(programs_that_end_by_themselves_are_not_recovered),
    cmocka_unit_test(a_process_is_killed_with_its_descendants),
    cmocka_unit_test(files_that_are_written_to_their_end_are_found),
    cmocka_unit_test(any_image_of_files_is_safe),
    cmocka_unit_test_setup_teardown(files_that_have_grown_are_cut, make_recover_folder,
                                    remove_recover_folder),
};

HED_UNIT_MAIN(tests)
