/* Rows of share_matrix: streams of all kinds, events, host functions, threads, children. */
#include "share_matrix.h"

#include <pthread.h>

#define ROUNDS 40
#define THREADS 8

/* The legacy stream waits for blocking streams, and they for it. */
void
share_legacy(void)
{
    struct share_gpu *g = share_begin();
    CUdeviceptr p = share_memory(WORDS);
    CUstream side;

    OK(CU(cuStreamCreate)(&side, CU_STREAM_DEFAULT));
    for (unsigned i = 0; i < ROUNDS; i += 2) {
        OK(share_step(g->late, p, WORDS, i, NULL));
        OK(share_step(g->step, p, WORDS, i + 1, side));
    }
    share_check("legacy and a blocking stream", p, WORDS, 0, ROUNDS);
    OK(CU(cuMemsetD32_v2)(p, 0, WORDS));
    for (unsigned i = 0; i < ROUNDS; i++)
        OK(share_step(g->step, p, WORDS, i, (CUstream)1)); /* CU_STREAM_LEGACY */
    share_check("legacy by its number", p, WORDS, 0, ROUNDS);
    OK(CU(cuStreamDestroy_v2)(side));
}

static void *
own_default(void *arg)
{
    struct share_gpu *g = share_begin();
    CUdeviceptr p = share_memory(WORDS);
    unsigned n = WORDS;
    unsigned *host = malloc(BYTES);
    const unsigned first = (unsigned)(uintptr_t)arg;

    CHECK(host, "no memory");
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned a = first + i;
        void *params[] = {&p, &n, &a};

        OK(CU(cuLaunchKernel_ptsz)(i % 8 ? g->step : g->late, WORDS / 128, 1, 1, 128, 1, 1, 0, NULL,
                                   params, NULL));
    }
    OK(CU(cuMemcpyDtoHAsync_v2_ptsz)(host, p, BYTES, NULL));
    OK(CU(cuStreamSynchronize_ptsz)(NULL));
    for (unsigned i = 0; i < WORDS; i += WORDS / 4) {
        unsigned v = 0;

        for (unsigned k = 0; k < ROUNDS; k++)
            v = v * 3 + first + k + i;
        CHECK(host[i] == v, "word %u of thread %u", i, first);
    }
    free(host);
    return NULL;
}

/* Each thread has a default stream of its own. */
void
share_ptds(void)
{
    pthread_t threads[4];

    share_begin();
    for (uintptr_t i = 0; i < 4; i++)
        CHECK_IS(pthread_create(&threads[i], NULL, own_default, (void *)(i * 100)), 0);
    for (int i = 0; i < 4; i++)
        CHECK_IS(pthread_join(threads[i], NULL), 0);
    printf("per-thread default streams: 4\n");
}

/* Streams in a ring: each step waits for the previous one, on another stream. */
void
share_streams(void)
{
    struct share_gpu *g = share_begin();
    CUdeviceptr p = share_memory(WORDS);
    CUstream s[4];
    CUevent e[4];

    for (int i = 0; i < 4; i++) {
        OK(CU(cuStreamCreateWithPriority)(&s[i], CU_STREAM_NON_BLOCKING, -(i % 2)));
        OK(CU(cuEventCreate)(&e[i], CU_EVENT_DISABLE_TIMING));
    }
    for (unsigned i = 0; i < 4 * ROUNDS; i++) {
        if (i > 0)
            OK(CU(cuStreamWaitEvent)(s[i % 4], e[(i - 1) % 4], 0));
        OK(share_step(i % 5 ? g->step : g->late, p, WORDS, i, s[i % 4]));
        OK(CU(cuEventRecord)(e[i % 4], s[i % 4]));
    }
    OK(CU(cuStreamSynchronize)(s[(4 * ROUNDS - 1) % 4]));
    share_check("a ring of streams", p, WORDS, 0, 4 * ROUNDS);
    for (int i = 0; i < 4; i++) {
        OK(CU(cuStreamDestroy_v2)(s[i]));
        OK(CU(cuEventDestroy_v2)(e[i]));
    }
}

/* Queries soon notice that an event has passed, and times are those of the work. */
void
share_events(void)
{
    struct share_gpu *g = share_begin();
    CUdeviceptr p = share_memory(WORDS);
    CUevent before, between, after;
    CUstream s;
    float first = -1;
    float both = -1;
    CUresult r;

    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    OK(CU(cuEventCreate)(&before, 0));
    OK(CU(cuEventCreate)(&between, 0));
    OK(CU(cuEventCreate)(&after, 0));
    for (unsigned i = 0; i < ROUNDS; i += 2) {
        OK(CU(cuEventRecord)(before, s));
        OK(share_step(g->late, p, WORDS, i, s));
        OK(CU(cuEventRecord)(between, s));
        OK(share_step(g->late, p, WORDS, i + 1, s));
        OK(CU(cuEventRecord)(after, s));
        while ((r = CU(cuEventQuery)(after)) == CUDA_ERROR_NOT_READY)
            ;
        OK(r);
        OK(CU(cuEventQuery)(before));
        OK(CU(cuStreamQuery)(s));
        OK(CU(cuEventElapsedTime)(&first, before, between));
        OK(CU(cuEventElapsedTime)(&both, before, after));
        CHECK(first > 0 && both > first, "%f of %f ms", (double)first, (double)both);
    }
    share_check("events asked", p, WORDS, 0, ROUNDS);
    OK(CU(cuEventDestroy_v2)(before));
    OK(CU(cuEventDestroy_v2)(between));
    OK(CU(cuEventDestroy_v2)(after));
}

static unsigned order[2 * ROUNDS];
static unsigned ordered;

static void
note_order(void *arg)
{
    order[ordered++] = (unsigned)(uintptr_t)arg;
}

static void
called_back(CUstream s, CUresult r, void *arg)
{
    (void)s;
    CHECK_IS(r, CUDA_SUCCESS);
    note_order(arg);
}

/* Host functions run in the order of the stream, and hold the work after them. */
void
share_callbacks(void)
{
    struct share_gpu *g = share_begin();
    CUdeviceptr p = share_memory(WORDS);
    unsigned *host;
    CUstream s;

    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    OK(CU(cuMemAllocHost_v2)((void **)&host, BYTES));
    for (uintptr_t i = 0; i < ROUNDS; i++) {
        OK(share_step(g->step, p, WORDS, (unsigned)i, s));
        OK(CU(cuLaunchHostFunc)(s, note_order, (void *)(2 * i)));
        OK(CU(cuStreamAddCallback)(s, called_back, (void *)(2 * i + 1), 0));
    }
    OK(CU(cuMemcpyDtoHAsync_v2)(host, p, BYTES, s));
    OK(CU(cuStreamSynchronize)(s));
    CHECK_IS(ordered, 2 * ROUNDS);
    for (unsigned i = 0; i < ordered; i++)
        CHECK_IS(order[i], i);
    share_check_host("callbacks between", host, WORDS, 0, ROUNDS);
    OK(CU(cuMemFreeHost)(host));
}

static void *
one_of_many(void *arg)
{
    struct share_gpu *g = share_begin();
    const unsigned first = (unsigned)(uintptr_t)arg;
    CUdeviceptr p = share_memory(WORDS);
    CUstream s;

    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < 10 * ROUNDS; i++) {
        OK(share_step(g->step, p, WORDS, first + i, s));
        if (i % 16 == 15)
            OK(CU(cuStreamSynchronize)(s));
    }
    OK(CU(cuStreamSynchronize)(s));

    unsigned last[1];
    unsigned v = 0;

    OK(CU(cuMemcpyDtoH_v2)(last, p, sizeof last));
    for (unsigned k = 0; k < 10 * ROUNDS; k++)
        v = v * 3 + first + k;
    CHECK_IS(last[0], v);
    OK(CU(cuMemFree_v2)(p));
    OK(CU(cuStreamDestroy_v2)(s));
    return NULL;
}

void
share_threads(void)
{
    pthread_t threads[THREADS];

    share_begin();
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_IS(pthread_create(&threads[i], NULL, one_of_many, (void *)(i * 1000)), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_IS(pthread_join(threads[i], NULL), 0);
    printf("threads: %d\n", THREADS);
}

/* Prints "working" and works until standard input ends; other processes are killed meanwhile. */
void
share_steady(void)
{
    struct share_gpu *g = share_begin();
    CUdeviceptr p = share_memory(WORDS);
    CUstream s;
    char c;
    unsigned rounds = 0;
    pid_t reader;

    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    printf("working\n");
    fflush(stdout);
    reader = fork(); /* it uses no CUDA; it ends when standard input does */
    CHECK(reader >= 0, "no child");
    if (reader == 0) {
        while (read(0, &c, 1) > 0)
            ;
        _exit(0);
    }
    for (; waitpid(reader, NULL, WNOHANG) == 0; rounds++) {
        OK(CU(cuMemsetD32Async)(p, 0, WORDS, s));
        for (unsigned i = 0; i < 20; i++)
            OK(share_step(i % 4 ? g->step : g->late, p, WORDS, i, s));
        OK(CU(cuStreamSynchronize)(s));
    }
    CHECK(rounds > 0, "nothing was done");
    share_check("steady", p, WORDS, 0, 20);
}

/* A child by fork and exec while the parent works, and one by fork alone that does not use CUDA. */
void
share_children(void)
{
    struct share_gpu *g = share_begin();
    CUdeviceptr p = share_memory(WORDS);
    pid_t children[3];
    int status;

    fflush(stdout);
    for (int i = 0; i < 3; i++) {
        children[i] = fork();
        CHECK(children[i] >= 0, "no child");
        if (children[i] == 0 && i == 2)
            _exit(0);
        if (children[i] == 0) {
            (void)!freopen("/dev/null", "w", stdout);
            execl("/proc/self/exe", "share_matrix", i ? "streams" : "legacy", (char *)NULL);
            _exit(126);
        }
    }
    for (unsigned i = 0; i < ROUNDS; i++)
        OK(share_step(g->late, p, WORDS, i, NULL));
    share_check("the parent meanwhile", p, WORDS, 0, ROUNDS);
    for (int i = 0; i < 3; i++) {
        CHECK_IS(waitpid(children[i], &status, 0), children[i]);
        CHECK_IS(WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status), 0);
    }
    printf("children: 3\n");
}
