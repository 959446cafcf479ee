/* Tests of core/stats: calls are counted, and named once. The log goes through a pipe. */
#include "harness/unit.h"

#include <pthread.h>
#include <unistd.h>

#include "base/log.h"
#include "core/stats.h"
#include "gen/cuda_calls.h"
#include "gen/nvml_calls.h"

/* Returns what is written to standard error while `run` runs. */
static void
capture(void (*run)(void), char *text, size_t size)
{
    int ends[2];
    const int before = dup(STDERR_FILENO);
    ssize_t n = 0;

    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    run();
    dup2(before, STDERR_FILENO);
    close(before);
    for (ssize_t got; (got = read(ends[0], text + n, size - 1 - (size_t)n)) > 0;)
        n += got;
    text[n] = 0;
    close(ends[0]);
}

static void
several_unsupported(void)
{
    for (int i = 0; i < 3; i++)
        hed_stats_unsupported(HED_API_CUDA, HED_cuMemAlloc_v2, "somebody");
    hed_stats_unsupported(HED_API_NVML, HED_nvmlDeviceGetName, "somebody");
}

static unsigned
lines(const char *text)
{
    unsigned n = 0;

    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void
unsupported_calls_are_named_once(void **state)
{
    const uint64_t before = atomic_load(&hed_stats.unsupported_calls);
    char text[4096];

    assert_int_equal(hed_log_setup("warn", NULL), 0);
    capture(several_unsupported, text, sizeof text);
    assert_true(atomic_load(&hed_stats.unsupported_calls) == before + 4);
    assert_int_equal(lines(text), 2);
    assert_non_null(strstr(text, "cuMemAlloc_v2 is not supported by somebody"));
    assert_non_null(strstr(text, "nvmlDeviceGetName is not supported by somebody"));
}

static void
numbers_that_are_no_call_are_only_counted(void **state)
{
    const uint64_t before = atomic_load(&hed_stats.unsupported_calls);

    hed_stats_unsupported(HED_API_CUDA, 0, "somebody");
    hed_stats_unsupported(HED_API_CUDA, HED_CUDA_CALLS, "somebody");
    hed_stats_unsupported(HED_API_NVML, UINT32_MAX, "somebody");
    hed_stats_unsupported(HED_API_COUNT, 1, "somebody");
    assert_true(atomic_load(&hed_stats.unsupported_calls) == before + 4);
}

static void *
count_many(void *p)
{
    for (int i = 0; i < 10000; i++) {
        hed_stats_unsupported(HED_API_CUDA, HED_cuCtxGetLimit, "somebody");
        hed_stats_add(&hed_stats.faults_injected, 2);
    }
    return NULL;
}

static void
counts_are_right_under_threads(void **state)
{
    const uint64_t before = atomic_load(&hed_stats.unsupported_calls);
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_many, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_true(atomic_load(&hed_stats.unsupported_calls) == before + 40000);
    assert_true(atomic_load(&hed_stats.faults_injected) == 80000);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(unsupported_calls_are_named_once),
    cmocka_unit_test(numbers_that_are_no_call_are_only_counted),
    cmocka_unit_test(counts_are_right_under_threads),
};

HED_UNIT_MAIN(tests)
