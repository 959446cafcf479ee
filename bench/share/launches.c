/* What does a launch cost? 1 and 8 threads launch empty kernels, 1, 16 and 256 before each wait.
 *
 *     launches SECONDS         prints one line of JSON per row
 *     launches idle            one launch, "ready", then nothing until standard input ends
 *     launches first           a launch and a wait; prints when they were done (monotonic ns), then
 *                              nothing until standard input ends
 *
 * submit: from the return of the previous launch or wait to the return of this one. round: from
 * before the first launch to after the wait. cpu: the processor time of the process, per launch. */
#include <pthread.h>

#include "gpu.h"

#define THREADS 8
#define SAMPLES ((size_t)1 << 18)

struct thread {
    pthread_t id;
    CUstream stream;
    double *submit, *round;    /* ns */
    size_t submits, rounds;    /* samples */
    uint64_t launches, end_ns; /* of the thread's row */
    int a_wait;
};

static struct bench_gpu gpu;
static pthread_barrier_t barrier;

static void *
launch_rows(void *arg)
{
    struct thread *t = arg;
    CUdeviceptr a = gpu.out;
    CUdeviceptr b = gpu.out;
    unsigned c = 1;
    unsigned d = 2;
    void *params[] = {&a, &b, &c, &d};

    MUST(CU(cuCtxSetCurrent)(gpu.context));
    pthread_barrier_wait(&barrier);
    while (hed_now_ns() < t->end_ns) {
        const uint64_t start = hed_now_ns();
        uint64_t before = start;

        for (int i = 0; i < t->a_wait; i++) {
            MUST(gpu.launch(gpu.empty, 1, 1, 1, 32, 1, 1, 0, t->stream, params, NULL));

            const uint64_t after = hed_now_ns();

            if (t->submits < SAMPLES)
                t->submit[t->submits++] = (double)(after - before);
            before = after;
        }
        MUST(gpu.wait(t->stream));
        if (t->rounds < SAMPLES)
            t->round[t->rounds++] = (double)(hed_now_ns() - start);
        t->launches += (uint64_t)t->a_wait;
    }
    return NULL;
}

/* Collects the samples of all threads, sorted, in those of the first, which has space for all. */
static size_t
gather(struct thread *t, int threads, bool submit)
{
    double *all = submit ? t[0].submit : t[0].round;
    size_t n = submit ? t[0].submits : t[0].rounds;

    for (int i = 1; i < threads; i++) {
        const size_t more = submit ? t[i].submits : t[i].rounds;

        memcpy(all + n, submit ? t[i].submit : t[i].round, more * sizeof *all);
        n += more;
    }
    qsort(all, n, sizeof *all, bench_order);
    return n;
}

static void
row(struct thread *t, int threads, int a_wait, double seconds)
{
    const uint64_t start = hed_now_ns();
    const uint64_t cpu = hed_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t launches = 0;

    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        t[i].submits = t[i].rounds = t[i].launches = 0;
        t[i].a_wait = a_wait;
        t[i].end_ns = start + (uint64_t)(seconds * 1e9);
        CHECK_IS(pthread_create(&t[i].id, NULL, launch_rows, &t[i]), 0);
    }
    for (int i = 0; i < threads; i++) {
        CHECK_IS(pthread_join(t[i].id, NULL), 0);
        launches += t[i].launches;
    }
    pthread_barrier_destroy(&barrier);

    const double wall = (double)(hed_now_ns() - start);
    const double used = (double)(hed_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    const size_t n = gather(t, threads, true);
    const size_t m = gather(t, threads, false);
    const double *s = t[0].submit;
    const double *r = t[0].round;

    printf("{\"threads\": %d, \"a_wait\": %d, \"launches\": %llu, \"per_s\": %.0f, "
           "\"submit_p50\": %.0f, \"submit_p99\": %.0f, \"round_p50\": %.0f, \"round_p99\": %.0f, "
           "\"cpu\": %.0f}\n",
           threads, a_wait, (unsigned long long)launches, (double)launches / wall * 1e9,
           bench_at(s, n, 0.5), bench_at(s, n, 0.99), bench_at(r, m, 0.5), bench_at(r, m, 0.99),
           used / (double)(launches ? launches : 1));
    fflush(stdout);
}

static int
until_told(const char *what)
{
    char c;
    void *params[] = {&gpu.out, &gpu.out, &(unsigned){1}, &(unsigned){2}};

    MUST(gpu.launch(gpu.empty, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    MUST(gpu.wait(NULL));
    if (strcmp(what, "first") == 0)
        printf("%llu\n", (unsigned long long)hed_now_ns());
    else
        printf("ready\n");
    fflush(stdout);
    while (read(0, &c, 1) > 0)
        ;
    return 0;
}

int
main(int argc, char **argv)
{
    static const int a_wait[] = {1, 16, 256};
    struct thread threads[THREADS] = {0};
    const double seconds = argc > 1 ? strtod(argv[1], NULL) : 0.5;

    gpu = bench_begin();
    if (argc > 1 && (strcmp(argv[1], "idle") == 0 || strcmp(argv[1], "first") == 0))
        return until_told(argv[1]);
    for (int i = 0; i < THREADS; i++) {
        /* The first has space for all samples; unused pages cost nothing. */
        const size_t room = SAMPLES * (i ? 1 : THREADS) * sizeof(double);

        threads[i].submit = malloc(room);
        threads[i].round = malloc(room);
        CHECK(threads[i].submit && threads[i].round, "no memory");
        MUST(CU(cuStreamCreate)(&threads[i].stream, CU_STREAM_NON_BLOCKING));
    }
    row(threads, 1, 16, 0.1); /* to warm up; the reader drops this line */
    for (size_t k = 0; k < sizeof a_wait / sizeof *a_wait; k++)
        row(threads, 1, a_wait[k], seconds);
    for (size_t k = 0; k < sizeof a_wait / sizeof *a_wait; k++)
        row(threads, THREADS, a_wait[k], seconds);
    return 0;
}
