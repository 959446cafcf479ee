/* Compilers are processes of their own: whatever becomes of one, the program's results are right,
 * and the next kernel finds a fresh one. In debug builds, a kernel's name makes a compiler fail
 * (kernel/ptx/lower/serve.c). Needs the compiler, which HED_COMPILER names. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/cpu/start.h"
#include "base/buf.h"
#include "base/sanitize.h"
#include "base/sealed.h"
#include "kernel/forkserver/message.h"
#include "kernel/ptx/run/abi.h"
#include "unit/cpu/compiled.h"

/* A kernel that writes its threads' numbers. */
static struct hed_code *
open_kernel(const char *name)
{
    static int number;
    struct hed_buf text;

    hed_buf_init(&text, 1 << 16);
    /* The comment makes it a text that no cache knows. */
    hed_buf_addf(&text,
                 ".version 7.0\n.target sm_75\n.address_size 64\n// %d.%d\n"
                 ".visible .entry %s(.param .u64 out)\n{\n"
                 "  .reg .b32 %%r<2>; .reg .b64 %%rd<4>;\n"
                 "  ld.param.u64 %%rd1, [out]; mov.u32 %%r1, %%tid.x;\n"
                 "  mul.wide.u32 %%rd2, %%r1, 4; add.s64 %%rd3, %%rd1, %%rd2;\n"
                 "  st.global.u32 [%%rd3], %%r1; ret;\n}\n",
                 (int)getpid(), number++, name);
    assert_int_equal(text.err, 0);

    const struct hed_code_source source = {
        .data = text.data, .size = text.size, .device = 86, .arch = 75};
    struct hed_code *code = open_source(&source);

    hed_buf_fini(&text);
    return code;
}

static const uint32_t block[3] = {64, 1, 1};

/* Runs the kernel, and returns where its code came from. */
static int
run_kernel(const char *name, struct hed_why *why)
{
    static uint32_t out[64];
    uint32_t *const at = out;
    struct hed_code *code = open_kernel(name);
    const struct hed_launch l = {.code = code,
                                 .grid = {1, 1, 1},
                                 .block = {64, 1, 1},
                                 .param_bytes = sizeof at,
                                 .params = (const unsigned char *)&at};
    const struct hed_cpu_kernel *k = hed_cpu_kernel_of(&cpu, code, 0, block);

    memset(out, 0xff, sizeof out);
    assert_int_equal(prepare_and_launch(&l, why), CUDA_SUCCESS);
    for (uint32_t i = 0; i < 64; i++)
        assert_int_equal(out[i], i);
    hed_why_set(why, "%s", k->why.text);

    const int tier = k->tier;

    hed_cpu_close(&cpu, code);
    return tier;
}

/* The kernel runs all the same, and the one after it is compiled. */
static void
expect_survival(const char *name, const char *reason)
{
#ifdef HED_DEBUG
    struct hed_why why = {""};

    assert_int_equal(run_kernel("before", &why), HED_TIER_COMPILED);
    assert_int_equal(run_kernel(name, &why), HED_TIER_STAYS);
    if (!strstr(why.text, reason))
        fail_msg("'%s' is not in '%s'", reason, why.text);
    assert_int_equal(run_kernel("after", &why), HED_TIER_COMPILED);
#else
    (void)name;
    (void)reason;
    skip();
#endif
}

static void
a_compiler_that_crashes_ends_no_program(void **state)
{
    /* A sanitizer catches the signal, reports it, and ends the compiler itself. */
    expect_survival("heddle_test_compiler_crashes",
                    HED_SANITIZED ? "ended without an answer" : "signal 11");
}

static void
a_compiler_that_hangs_is_ended(void **state)
{
    cpu.compile_time = 1;
    expect_survival("heddle_test_compiler_spins", "took more than 1 s of processor time");
}

static void
a_compiler_that_eats_memory_is_ended(void **state)
{
    if (HED_SANITIZED)
        skip();
    cpu.compiler_memory = (uint64_t)512 << 20;
    expect_survival("heddle_test_compiler_eats", "of at most 512");
}

/* ---- what the program sees ------------------------------------------------------------------- */

static void
count_signal(int signal)
{
    (void)signal;
    fail();
}

static void
the_program_sees_no_child(void **state)
{
    const struct sigaction counts = {.sa_handler = count_signal};
    struct sigaction old;
    struct hed_why why = {""};

    assert_int_equal(sigaction(SIGCHLD, &counts, &old), 0);
    assert_int_equal(run_kernel("unseen", &why), HED_TIER_COMPILED);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(sigaction(SIGCHLD, &old, NULL), 0);
}

/* Is it the fork server of this process? Its third argument says whose it is. */
static bool
is_own_forkserver(const char *pid)
{
    char path[300], text[256], own[32];
    FILE *file;
    size_t n = 0;

    snprintf(path, sizeof path, "/proc/%s/cmdline", pid);
    snprintf(own, sizeof own, "%d", (int)getpid());
    file = fopen(path, "r");
    if (file) {
        n = fread(text, 1, sizeof text - 1, file);
        (void)fclose(file);
    }
    text[n] = 0;

    const char *at = text;

    if (strcmp(at, "heddle-compiler") != 0)
        return false;
    for (int i = 0; i < 3 && at < text + n; i++)
        at += strlen(at) + 1;
    return at < text + n && strcmp(at, own) == 0;
}

static int
niceness_of_forkserver(void)
{
    DIR *folder = opendir("/proc");
    int niceness = -1;

    assert_non_null(folder);
    for (const struct dirent *e; (e = readdir(folder));)
        if (is_own_forkserver(e->d_name))
            niceness = getpriority(PRIO_PROCESS, (id_t)strtol(e->d_name, NULL, 10));
    (void)closedir(folder);
    return niceness;
}

/* Root could give them any priority. */
static void
compilers_come_behind_a_program_of_low_priority(void **state)
{
    const int before = getpriority(PRIO_PROCESS, 0), own = before > 10 ? before : 10;
    struct hed_why why = {""};

    assert_int_equal(setpriority(PRIO_PROCESS, 0, own), 0);
    cpu.compilers.niceness = 5;
    assert_int_equal(run_kernel("behind", &why), HED_TIER_COMPILED);
    assert_int_equal(niceness_of_forkserver(), own + 5 < 19 ? own + 5 : 19);
}

/* The compilers hang on the sockets alone. */
static void
compilers_end_with_the_program(void **state)
{
    struct hed_why why = {""};
    int copy;
    char byte;

    assert_int_equal(run_kernel("last", &why), HED_TIER_COMPILED);
    /* A pipe whose end is open as long as the fork server lives, which inherits nothing else. */
    copy = cpu.compilers.slots[0].socket;
    assert_int_equal(shutdown(copy, SHUT_WR), 0);
    while (recv(copy, &byte, sizeof byte, 0) > 0)
        ;
    /* Hung up: the other side has closed all of its copies. */
    assert_int_equal(run_kernel("lost", &why), HED_TIER_STAYS);
    assert_non_null(strstr(why.text, "has died"));
    /* And the next kernel starts another fork server. */
    assert_int_equal(run_kernel("found", &why), HED_TIER_COMPILED);
}

static void
a_child_of_the_program_has_compilers_of_its_own(void **state)
{
    struct hed_why why = {""};
    int status = 0;

    assert_int_equal(run_kernel("parent", &why), HED_TIER_COMPILED);

    const pid_t pid = fork();

    if (pid == 0) {
        hed_engine_forked(cpu.engine);
        hed_tier_forked(&cpu);
        _exit(run_kernel("child", &why) == HED_TIER_COMPILED ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(run_kernel("parent_again", &why), HED_TIER_COMPILED);
}

static void
a_compiler_that_cannot_be_started_is_named(void **state)
{
    struct hed_why why = {""};
    char name[] = "x";
    char *const arguments[] = {name, NULL};

    assert_int_equal(hed_start_process("/nowhere", arguments, NULL, 0), -ENOENT);
    (void)hed_str_copy(cpu.compilers.path, sizeof cpu.compilers.path, "/nowhere");
    cpu.baseline = cpu.tiered = true;

    struct hed_code *code = open_kernel("cold");
    struct hed_cpu_kernel *k = hed_cpu_kernel_of(&cpu, code, 0, block);

    assert_int_equal(hed_cpu_prepare(&cpu, code, 0, block, &why), CUDA_SUCCESS);
    hed_tier_note(&cpu, k, UINT64_C(1000000000));
    while (k->tier == HED_TIER_QUEUED)
        sched_yield();
    assert_int_equal(k->tier, HED_TIER_STAYS);
    hed_cpu_close(&cpu, code);
}

/* ---- answers that are not to be believed ----------------------------------------------------- */

struct liar {
    int socket;
    struct hed_forkserver_answer answer;
    size_t size; /* of the answer */
    const char *object;
};

static struct liar liar;

/* Answers every request with what the test says. */
static void *
lie(void *arg)
{
    struct liar *l = arg;
    static unsigned char packet[HED_FORKSERVER_REQUEST_MAX];
    /* A copy: the test goes on as soon as it has arrived, and ThreadSanitizer takes what is sent as
     * read a little after that. */
    struct hed_forkserver_answer answer;
    int fd;

    while (hed_forkserver_receive(l->socket, packet, sizeof packet, 0, &fd) > 0) {
        int object = -1;

        if (l->object)
            (void)hed_fd_write_sealed("object", l->object, strlen(l->object), &object);
        if (fd >= 0)
            (void)close(fd);
        answer = l->answer;
        answer.number = ((const struct hed_forkserver_request *)packet)->number;
        (void)hed_forkserver_send(l->socket, &answer, l->size, NULL, 0, object);
        if (object >= 0)
            (void)close(object);
    }
    (void)close(l->socket);
    return NULL;
}

static int liars[2];

static unsigned
give_liar(int *sockets, unsigned room)
{
    sockets[0] = liars[0];
    return 1;
}

static void
answers_are_checked(void **state)
{
    static const struct {
        uint32_t kind, size;
        const char *object;
        uint64_t object_size;
        int err;
    } rows[] = {
        {HED_FORKSERVER_DONE, sizeof(struct hed_forkserver_answer), NULL, 100, 0},
        {HED_FORKSERVER_DONE, sizeof(struct hed_forkserver_answer), "short", 100, 0},
        {HED_FORKSERVER_DONE, sizeof(struct hed_forkserver_answer), "not an object", 13, 0},
        {HED_FORKSERVER_DONE, sizeof(struct hed_forkserver_answer), "huge", UINT64_MAX, 0},
        {HED_FORKSERVER_DONE, sizeof(struct hed_forkserver_answer), NULL, 0, 12345},
        {HED_FORKSERVER_NEEDS_TEXT, sizeof(struct hed_forkserver_answer), NULL, 0, 0},
        {99, sizeof(struct hed_forkserver_answer), "x", 1, 0},
    };
    pthread_t thread;

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, liars), 0);
    liar.socket = liars[1];
    cpu.compilers.given = give_liar;
    assert_int_equal(pthread_create(&thread, NULL, lie, &liar), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hed_why why = {""};

        liar.answer = (struct hed_forkserver_answer){.magic = HED_FORKSERVER_MAGIC,
                                                     .kind = rows[i].kind,
                                                     .err = rows[i].err,
                                                     .size = rows[i].object_size};
        memset(liar.answer.why.text, 'x', sizeof liar.answer.why.text);
        liar.size = rows[i].size;
        liar.object = rows[i].object;

        struct hed_code *code = open_kernel("k");
        const struct hed_cpu_kernel *k = hed_cpu_kernel_of(&cpu, code, 0, block);

        (void)hed_cpu_prepare(&cpu, code, 0, block, &why);
        assert_int_not_equal(k->tier, HED_TIER_COMPILED);
        hed_cpu_close(&cpu, code);
    }
    hed_compilers_fini(&cpu.compilers);
    hed_compilers_init(&cpu.compilers, 1, 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_compiler_that_crashes_ends_no_program, setup_cpu,
                                    teardown_cpu),
    cmocka_unit_test_setup_teardown(a_compiler_that_hangs_is_ended, setup_cpu, teardown_cpu),
    cmocka_unit_test_setup_teardown(a_compiler_that_eats_memory_is_ended, setup_cpu, teardown_cpu),
    cmocka_unit_test_setup_teardown(the_program_sees_no_child, setup_cpu, teardown_cpu),
    cmocka_unit_test_setup_teardown(compilers_come_behind_a_program_of_low_priority, setup_cpu,
                                    teardown_cpu),
    cmocka_unit_test_setup_teardown(compilers_end_with_the_program, setup_cpu, teardown_cpu),
    cmocka_unit_test_setup_teardown(a_child_of_the_program_has_compilers_of_its_own, setup_cpu,
                                    teardown_cpu),
    cmocka_unit_test_setup_teardown(a_compiler_that_cannot_be_started_is_named, setup_cpu,
                                    teardown_cpu),
    cmocka_unit_test_setup_teardown(answers_are_checked, setup_cpu, teardown_cpu),
};

HED_UNIT_MAIN(tests)
