/* Threads that race for the first call: there is one chain, so one trace, and no call is lost. */
#include "conf_trace.h"

#include <pthread.h>

#define THREADS 32
#define CALLS 50

static pthread_barrier_t start;
static int failures;

static void *
race(void *p)
{
    __typeof__(&cuInit) init = CU(cuInit);
    __typeof__(&cuDriverGetVersion) version = CU(cuDriverGetVersion);
    int n = 0;

    pthread_barrier_wait(&start);
    if (init(0) != CUDA_SUCCESS)
        __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < CALLS; i++)
        if (version(&n) != CUDA_SUCCESS || n < 12000)
            __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
    return NULL;
}

static int
race_threads(void)
{
    pthread_t threads[THREADS];

    (void)CU(cuInit); /* loaded, not called */
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, race, NULL) == 0, "no thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_IS(failures, 0);
    return 0;
}

int
main(int argc, char **argv)
{
    char path[4096];
    char text[4096];
    const char *const env[] = {"HEDDLE_TRACE", conf_path(path, sizeof path, "t.hed"), NULL};

    if (argc > 1)
        return race_threads();

    const int status = conf_again("run", text, sizeof text, env);

    CHECK(status == 0, "%s", text);
    CHECK_IS(conf_trace_files(NULL, 0), 1);

    struct hed_trace *t = conf_trace_open(path);

    CHECK(hed_trace_state(t)->ended, "no end");
    CHECK_IS(hed_trace_state(t)->threads, THREADS);
    CHECK_IS(conf_trace_count(t, HED_TRACE_CALL, "cuInit"), THREADS);
    CHECK_IS(conf_trace_count(t, HED_TRACE_CALL, "cuDriverGetVersion"), THREADS * CALLS);
    hed_trace_close(t);
    return 0;
}
