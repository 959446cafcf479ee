/* How many launches do 1 and 8 threads make in a second? Native, through an open gate, paced beside
 * an idle client of higher priority, and recorded. Each way has a process of its own, and rounds
 * alternate.
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
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "gen/cuda_front.h"

#define ROUNDS 5
#define THREADS_MAX 8
#define PER_WAIT 256

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry empty(.param .u64 a, .param .u64 b, .param .u32 c, .param .u32 d) { ret; }\n";

enum way { NATIVE, OPEN, PACED, RECORDED, WAYS };

static const char *const way_names[WAYS] = {"native", "gate_open", "paced", "recorded"};
static const int thread_counts[] = {1, THREADS_MAX};

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

/* Another process, which makes one launch and is idle then. */
static pid_t
start_idle(const char *library)
{
    int ends[2];
    char byte;

    if (pipe(ends) != 0)
        return -1;

    const pid_t pid = fork();

    if (pid == 0) {
        if (!open_driver(library) || !launch_once(NULL) || p_cuStreamSynchronize(NULL) != 0 ||
            write(ends[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ends[1]);

    const bool up = pid > 0 && read(ends[0], &byte, 1) == 1;

    close(ends[0]);
    return up ? pid : -1;
}

static void
set_sched(const char *settings)
{
    char text[128];

    snprintf(text, sizeof text, "scope=bench%ld,%s", (long)getpid(), settings);
    setenv("HEDDLE_SCHED", text, 1);
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
    if (way == PACED) {
        set_sched("prio=high");
        idle = start_idle(library);
        /* The null driver's kernels take no time, but count as some: the cap must not matter. */
        set_sched(real ? "prio=low,cap_us=1000" : "prio=low,cap_us=10000000");
    } else if (way != NATIVE) {
        set_sched(way == RECORDED ? "mode=record" : "prio=normal");
    }

    const bool good = idle >= 0 && open_driver(library);

    for (size_t i = 0; i < sizeof thread_counts / sizeof *thread_counts; i++)
        printf("%.0f ", good ? measure_rate(thread_counts[i]) : -1);
    printf("\n");
    if (idle > 0) {
        kill(idle, SIGKILL);
        (void)waitpid(idle, NULL, 0);
    }
    if (way != NATIVE) {
        char command[128];

        snprintf(command, sizeof command, "rm -f /dev/shm/heddle-%u-sched-bench%ld-*",
                 (unsigned)geteuid(), (long)getpid());
        FILE *f = popen(command, "r");

        if (f)
            (void)pclose(f);
    }
    return good ? 0 : 1;
}

static bool
run_way(const char *self, enum way way, double seconds, double best[2])
{
    char command[4096];
    double rates[2] = {-1, -1};

    snprintf(command, sizeof command, "'%s' %.3f %d", self, seconds, (int)way);

    FILE *f = popen(command, "r");
    const bool read = f && fscanf(f, "%lf %lf", &rates[0], &rates[1]) == 2;
    const bool good = f && pclose(f) == 0 && read && rates[0] > 0 && rates[1] > 0;

    for (int i = 0; good && i < 2; i++)
        best[i] = rates[i] > best[i] ? rates[i] : best[i];
    return good;
}

int
main(int argc, char **argv)
{
    const char *heddle = getenv("HED_LIBCUDA");
    const double seconds = argc > 1 ? strtod(argv[1], NULL) : 0.2;
    double best[WAYS][2] = {{0}};

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
                fprintf(stderr, "%s: the launches failed\n", way_names[w]);
                return 1;
            }
    for (int i = 0; i < 2; i++)
        for (int w = 0; w < WAYS; w++) {
            printf("launches/%s/%d_threads %.3f M/s\n", way_names[w], thread_counts[i],
                   best[w][i] / 1e6);
            if (w != NATIVE)
                printf("launches/%s/%d_threads/of_native %.2f x\n", way_names[w], thread_counts[i],
                       best[w][i] / best[NATIVE][i]);
        }
    return 0;
}
