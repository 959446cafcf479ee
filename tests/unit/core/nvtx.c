/* Tests of core/nvtx with a profiler's library (tests/e2e/sched/nvtx_tool.c). A process loads that
 * library only once, so each case runs in a child process. */
#include "harness/unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "core/nvtx.h"
#include "core/nvtx_abi.h"

#define THREADS 8
#define TIMES 50

static char log_path[512];
static char err_path[512];
static char text[1 << 20];

/* Runs `body` in a child whose profiler is `tool`, and reads what the profiler has written. */
static void
in_child(const char *tool, const char *mode, int (*body)(void))
{
    const char *scratch = getenv("HED_SCRATCH");

    (void)snprintf(log_path, sizeof log_path, "%s/nvtx.log", scratch ? scratch : "/tmp");
    (void)snprintf(err_path, sizeof err_path, "%s/nvtx.err", scratch ? scratch : "/tmp");
    (void)unlink(log_path);

    const pid_t child = fork();

    if (child == 0) {
        if (!freopen(err_path, "w", stderr))
            _exit(99);
        if (tool)
            setenv(HED_NVTX_VARIABLE, tool, 1);
        else
            unsetenv(HED_NVTX_VARIABLE);
        setenv("HED_NVTX_MODE", mode, 1);
        setenv("HED_NVTX_LOG", log_path, 1);
        (void)hed_log_setup("warn", NULL);
        _exit(body());
    }

    int status = -1;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static const char *
read_text(const char *path)
{
    FILE *f = fopen(path, "r");

    text[f ? fread(text, 1, sizeof text - 1, f) : 0] = '\0';
    if (f)
        (void)fclose(f);
    return text;
}

/* How often does the output contain the text? */
static unsigned
count_in_file(const char *path, const char *what)
{
    unsigned n = 0;

    for (const char *p = read_text(path); (p = strstr(p, what)) != NULL; p++)
        n++;
    return n;
}

static int
two_ranges(void)
{
    hed_nvtx_push("outer");
    hed_nvtx_push("inner");
    hed_nvtx_pop();
    hed_nvtx_pop();
    hed_nvtx_pop(); /* one too many, which the tool is not told */
    return hed_nvtx_on() ? 0 : 1;
}

static int
stays_off(void)
{
    hed_nvtx_push("nothing");
    hed_nvtx_pop();
    return hed_nvtx_on() || atomic_load(&hed_nvtx_state) != HED_NVTX_OFF;
}

static void
ranges_have_a_domain(void **state)
{
    in_child(getenv("HED_NVTX_TOOL"), "", two_ranges);
    assert_int_equal(count_in_file(log_path, "+ heddle: outer\n"), 1);
    assert_int_equal(count_in_file(log_path, "+ heddle: inner\n"), 1);
    assert_int_equal(count_in_file(log_path, "- heddle\n"), 2);
    assert_int_equal(count_in_file(err_path, "\n"), 0);
}

static void
a_tool_without_domains_gets_plain_ranges(void **state)
{
    in_child(getenv("HED_NVTX_TOOL"), "plain", two_ranges);
    assert_int_equal(count_in_file(log_path, "+ default: outer\n"), 1);
    assert_int_equal(count_in_file(log_path, "- default\n"), 2);
}

static void
without_a_tool_it_is_off(void **state)
{
    in_child(NULL, "", stays_off);
    assert_int_equal(count_in_file(err_path, "\n"), 0);
    in_child("", "", stays_off);
    assert_int_equal(count_in_file(err_path, "\n"), 0);
}

static void
a_broken_tool_is_one_line_in_the_log(void **state)
{
    in_child("/no/such/library.so", "", stays_off);
    assert_int_equal(count_in_file(err_path, "\n"), 1);
    assert_int_equal(count_in_file(err_path, "/no/such/library.so"), 1);
    in_child("libm.so.6", "", stays_off);
    assert_int_equal(count_in_file(err_path, "\n"), 1);
    assert_int_equal(count_in_file(err_path, "has no InitializeInjectionNvtx2"), 1);
    in_child(getenv("HED_NVTX_TOOL"), "refuse", stays_off);
    assert_int_equal(count_in_file(err_path, "\n"), 1);
    assert_int_equal(count_in_file(err_path, "refuses to start"), 1);
    in_child(getenv("HED_NVTX_TOOL"), "none", stays_off);
    assert_int_equal(count_in_file(err_path, "\n"), 1);
    assert_int_equal(count_in_file(err_path, "accepts none"), 1);
}

static pthread_barrier_t barrier;

static void *
push_and_pop(void *arg)
{
    (void)pthread_barrier_wait(&barrier);
    for (int i = 0; i < TIMES; i++) {
        hed_nvtx_push("a");
        hed_nvtx_push("b");
        hed_nvtx_pop();
        hed_nvtx_pop();
    }
    return arg;
}

static int
many_threads(void)
{
    pthread_t threads[THREADS];

    (void)pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, push_and_pop, NULL) != 0)
            return 1;
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    return 0;
}

/* A thread that comes while the library is being loaded waits for it, so no range is lost. */
static void
threads_that_begin_at_once_lose_no_range(void **state)
{
    in_child(getenv("HED_NVTX_TOOL"), "slow", many_threads);
    assert_int_equal(count_in_file(log_path, "+ heddle: "), 2 * TIMES * THREADS);
    assert_int_equal(count_in_file(log_path, "- heddle\n"), 2 * TIMES * THREADS);
}

/* The parent forked while it was loading the library, and no thread of the child goes on. */
static int
nobody_loads(void)
{
    atomic_store(&hed_nvtx_state, HED_NVTX_STARTING);
    return stays_off();
}

static void
a_start_that_does_not_end_is_abandoned(void **state)
{
    in_child(getenv("HED_NVTX_TOOL"), "", nobody_loads);
    assert_int_equal(count_in_file(log_path, "\n"), 0);
}

static int
fork_within_a_range(void)
{
    hed_nvtx_push("both");

    const pid_t child = fork();

    hed_nvtx_push(child == 0 ? "child" : "parent");
    hed_nvtx_pop();
    hed_nvtx_pop();
    if (child == 0)
        _exit(0);
    return waitpid(child, NULL, 0) != child;
}

static void
a_forked_child_has_ranges(void **state)
{
    in_child(getenv("HED_NVTX_TOOL"), "", fork_within_a_range);
    assert_int_equal(count_in_file(log_path, "+ heddle: both\n"), 1);
    assert_int_equal(count_in_file(log_path, "+ heddle: child\n"), 1);
    assert_int_equal(count_in_file(log_path, "+ heddle: parent\n"), 1);
    assert_int_equal(count_in_file(log_path, "- heddle\n"),
                     4); /* the child's copy of `both` is closed, too */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ranges_have_a_domain),
    cmocka_unit_test(a_tool_without_domains_gets_plain_ranges),
    cmocka_unit_test(without_a_tool_it_is_off),
    cmocka_unit_test(a_broken_tool_is_one_line_in_the_log),
    cmocka_unit_test(threads_that_begin_at_once_lose_no_range),
    cmocka_unit_test(a_start_that_does_not_end_is_abandoned),
    cmocka_unit_test(a_forked_child_has_ranges),
};

HED_UNIT_MAIN(tests)
