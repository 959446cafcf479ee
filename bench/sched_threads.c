/* How many launches do 1, 2, 4 and 8 threads make in a second? Native, through an open gate, paced
 * beside an idle client of higher priority, and recorded (with a queue for each thread, with one
 * queue for all, and paced). Each way has a process of its own, and rounds alternate.
 *
 *     HED_LIBCUDA=.../libcuda.so.1 bench_sched_threads [SECONDS]
 *
 * Without a GPU, heddle runs on its null driver, and native is heddle without layers: what is left
 * is the cost of the layers. On a machine with a GPU, set HED_BENCH_GPU=gpu: native is then
 * NVIDIA's own library. Plain C: it needs no packages.
 *
 * Prints `name value unit` lines: the best of some rounds, because machines are noisy. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "gen/cuda_front.h"
#include "sched_scope.h"

#define ROUNDS 5
#define THREADS_MAX 8
#define PER_WAIT 256

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry empty(.param .u64 a, .param .u64 b, .param .u32 c, .param .u32 d) { ret; }\n";

enum way { NATIVE, OPEN, PACED, RECORDED, RECORDED_ONE_QUEUE, RECORDED_PACED, WAYS };

static const struct {
    const char *name;
    const char *settings; /* besides prio and cap_us */
    bool is_paced;        /* beside an idle client of higher priority */
} ways[WAYS] = {
    [NATIVE] = {"native", "", false},
    [OPEN] = {"gate_open", "", false},
    [PACED] = {"paced", "", true},
    [RECORDED] = {"recorded", ",mode=record", false},
    [RECORDED_ONE_QUEUE] = {"recorded_one_queue", ",mode=record,queues=1", false},
    [RECORDED_PACED] = {"recorded_paced", ",mode=record", true},
};

static const int thread_counts[] = {1, 2, 4, THREADS_MAX};
enum { COUNTS = sizeof thread_counts / sizeof *thread_counts };

#define DRIVER(X)                                                                              \
    X(cuInit, (unsigned))                                                                      \
    X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                       \
    X(cuCtxSetCurrent, (CUcontext))                                                            \
    X(cuModuleLoadData, (CUmodule *, const void *))                                            \
    X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                             \
    X(cuStreamCreate, (CUstream *, unsigned))                                                  \
    X(cuStreamSynchronize, (CUstream))                                                         \
    X(cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                       unsigned, CUstream, void **, void **))

#define DECLARE(name, types) static CUresult(*p_##name) types;
DRIVER(DECLARE)

static CUcontext context;
static CUfunction function;
static pthread_barrier_t barrier;
static uint64_t run_ns;

struct worker {
    pthread_t thread;
    CUstream stream;
    uint64_t launches;
    uint64_t ns;
};

static bool
open_driver(const char *library)
{
    void *l = dlopen(library, RTLD_NOW);
    CUmodule module;

#define FIND(name, types)                                     \
    p_##name = l ? (CUresult(*) types)dlsym(l, #name) : NULL; \
    if (!p_##name)                                            \
        return false;
    DRIVER(FIND)
    return p_cuInit(0) == 0 && p_cuDevicePrimaryCtxRetain(&context, 0) == 0 &&
           p_cuCtxSetCurrent(context) == 0 && p_cuModuleLoadData(&module, ptx) == 0 &&
           p_cuModuleGetFunction(&function, module, "empty") == 0;
}

static bool
launch_once(CUstream stream)
{
    uint64_t a = 0;
    uint64_t b = 0;
    unsigned c = 1;
    unsigned d = 2;
    void *params[] = {&a, &b, &c, &d};

    return p_cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL) == 0;
}

static void *
worker_main(void *arg)
{
    struct worker *w = arg;
    bool good = p_cuCtxSetCurrent(context) == 0;

    pthread_barrier_wait(&barrier);

    const uint64_t start = hed_now_ns();

    while (good && hed_now_ns() < start + run_ns) {
        for (int i = 0; good && i < PER_WAIT; i++)
            good = launch_once(w->stream);
        good = good && p_cuStreamSynchronize(w->stream) == 0;
        w->launches += PER_WAIT;
    }
    w->ns = hed_now_ns() - start;
    if (!good)
        w->launches = 0;
    return NULL;
}

/* Launches in a second, of all threads; negative: something failed. */
static double
measure_rate(int threads)
{
    struct worker workers[THREADS_MAX] = {0};
    double rate = 0;

    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++)
        if (p_cuStreamCreate(&workers[i].stream, 1 /* non-blocking */) != 0 ||
            pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) != 0)
            return -1;
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        if (!workers[i].launches)
            return -1;
        rate += (double)workers[i].launches / (double)workers[i].ns * 1e9;
    }
    return rate;
}

/* The work of the idle client: one launch. */
static bool
launch_and_wait(const char *library)
{
    return open_driver(library) && launch_once(NULL) && p_cuStreamSynchronize(NULL) == 0;
}

/* In a process of its own: prints the rates of one way. */
static int
measure_way(enum way way, const char *heddle)
{
    const char *gpu = getenv("HED_BENCH_GPU");
    const bool real = gpu && strcmp(gpu, "gpu") == 0;
    const char *library = way == NATIVE && real ? "libcuda.so.1" : heddle;
    pid_t idle = 0;

    setenv("HEDDLE_GPU", real ? "gpu" : "null", 1);
    if (ways[way].is_paced) {
        set_sched("prio=high");
        idle = start_idle(launch_and_wait, library);
    }
    if (way != NATIVE) {
        char text[96];

        /* The null driver's kernels take no time, but count as some: the cap must not matter. */
        snprintf(text, sizeof text, "prio=low,cap_us=%d%s", real ? 1000 : 10000000,
                 ways[way].settings);
        set_sched(text);
    }

    const bool good = idle >= 0 && open_driver(library);

    for (int i = 0; i < COUNTS; i++)
        printf("%.0f ", good ? measure_rate(thread_counts[i]) : -1);
    printf("\n");
    end_idle(idle);
    if (way != NATIVE)
        remove_scope();
    return good ? 0 : 1;
}

static bool
run_way(const char *self, enum way way, double seconds, double best[COUNTS])
{
    char command[4096];
    bool good;

    snprintf(command, sizeof command, "'%s' %.3f %d", self, seconds, (int)way);

    FILE *f = popen(command, "r");

    good = f != NULL;
    for (int i = 0; good && i < COUNTS; i++) {
        double rate;

        good = fscanf(f, "%lf", &rate) == 1 && rate > 0;
        if (good && rate > best[i])
            best[i] = rate;
    }
    return f && pclose(f) == 0 && good;
}

int
main(int argc, char **argv)
{
    const char *heddle = getenv("HED_LIBCUDA");
    const double seconds = argc > 1 ? strtod(argv[1], NULL) : 0.2;
    double best[WAYS][COUNTS] = {{0}};

    if (!heddle) {
        fprintf(stderr, "set HED_LIBCUDA to heddle's libcuda.so.1 (bench/run does)\n");
        return 2;
    }
    run_ns = (uint64_t)(seconds * 1e9);
    if (argc > 2)
        return measure_way((enum way)(argv[2][0] - '0'), heddle);
    for (int r = 0; r < ROUNDS; r++)
        for (int w = 0; w < WAYS; w++)
            if (!run_way(argv[0], (enum way)w, seconds, best[w])) {
                fprintf(stderr, "%s: the launches failed\n", ways[w].name);
                return 1;
            }
    for (int i = 0; i < COUNTS; i++)
        for (int w = 0; w < WAYS; w++) {
            printf("launches/%s/%d_threads %.3f M/s\n", ways[w].name, thread_counts[i],
                   best[w][i] / 1e6);
            if (w != NATIVE)
                printf("launches/%s/%d_threads/of_native %.2f x\n", ways[w].name, thread_counts[i],
                       best[w][i] / best[NATIVE][i]);
        }
    return 0;
}
