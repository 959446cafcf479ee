/* What does it cost to record a launch, and do the launches of several threads overlap? A kernel
 * with four arguments on the null backend is called directly, through the gate and through the
 * queue, alternately.
 *
 * 1. One thread, with 1, 16 and 256 launches before each wait: the cost of a launch for its thread
 *    (submit), until the wait has returned (round), and for all threads together (cpu).
 * 2. 1, 2, 4 and 8 threads, each with a stream of its own, over a driver whose launch takes 50 us
 *    without using the processor: launches per second. A driver that takes time shows whether calls
 *    are issued one after the other, and needs no more processors than there are.
 *
 * Prints `name value unit` lines: the best of some rounds, because these machines are noisy. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "backends/null/null.h"
#include "base/clock.h"
#include "base/err.h"
#include "core/config.h"
#include "core/layer.h"
#include "harness/meeting.h"
#include "layers/layers.h"
#include "share/sched/share.h"

#define ROUNDS 15
#define LAUNCHES 25600 /* a round */
#define THREADS_MAX 8
#define THREAD_LAUNCHES 256 /* a thread and round, with one wait */
#define SLOW_NS 50000

struct cost {
    double submit, round, cpu; /* ns a launch */
};

/* Null has no kernels. This one has four arguments of 8 bytes, and there is a context. */
static CUresult
params_cuFuncGetParamInfo(struct hed_layer *self, struct hed_cuFuncGetParamInfo *a)
{
    if (a->paramIndex >= 4)
        return CUDA_ERROR_INVALID_VALUE;
    *a->paramOffset = 8 * a->paramIndex;
    *a->paramSize = 8;
    return CUDA_SUCCESS;
}

static CUresult
params_cuCtxGetCurrent(struct hed_layer *self, struct hed_cuCtxGetCurrent *a)
{
    *a->pctx = (CUcontext)0x100;
    return CUDA_SUCCESS;
}

/* The second part needs a driver whose launches take time. */
static bool launches_are_slow;

static CUresult
params_cuLaunchKernel(struct hed_layer *self, struct hed_cuLaunchKernel *a)
{
    static _Thread_local bool is_exact; /* the thread's timers have no slack */
    const struct timespec slow = {0, SLOW_NS};

    if (launches_are_slow && !is_exact)
        is_exact = prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0) == 0;
    if (launches_are_slow)
        (void)nanosleep(&slow, NULL);
    return hed_next(self, cuLaunchKernel, a);
}

static const struct hed_cuda_ops params_cuda = {
    .cuLaunchKernel = params_cuLaunchKernel,
    .cuFuncGetParamInfo = params_cuFuncGetParamInfo,
    .cuCtxGetCurrent = params_cuCtxGetCurrent,
};

static const struct hed_layer_type params_type = {.name = "params", .cuda = &params_cuda};

static double
cpu_ns(void)
{
    return (double)hed_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static struct cost
measure_launches(struct hed_layer *top, int per_wait)
{
    uint64_t values[4] = {1, 2, 3, 4};
    void *params[] = {&values[0], &values[1], &values[2], &values[3]};
    struct hed_cuLaunchKernel a = {
        (CUfunction)0x1000, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL, false};
    struct hed_cuCtxSynchronize wait = {0};
    const double cpu = cpu_ns();
    const uint64_t start = hed_now_ns();
    uint64_t waited = 0;

    for (int i = 0; i < LAUNCHES; i += per_wait) {
        for (int k = 0; k < per_wait; k++) {
            values[0] = (uint64_t)k;
            (void)top->cuda->cuLaunchKernel(top, &a);
        }

        const uint64_t begin = hed_now_ns();

        (void)top->cuda->cuCtxSynchronize(top, &wait);
        waited += hed_now_ns() - begin;
    }

    const double all = (double)(hed_now_ns() - start);

    return (struct cost){
        .submit = (all - (double)waited) / LAUNCHES,
        .round = all / LAUNCHES,
        .cpu = (cpu_ns() - cpu) / LAUNCHES,
    };
}

/* ---- several threads ------------------------------------------------------------------------- */

struct worker {
    pthread_t thread;
    struct hed_layer *top;
    CUstream stream;
};

static pthread_barrier_t barrier;

static void *
worker_main(void *arg)
{
    const struct worker *w = arg;
    uint64_t value = 1;
    void *params[] = {&value, &value, &value, &value};
    struct hed_cuLaunchKernel a = {(CUfunction)0x1000, 1,      1,    1,    32, 1, 1, 0,
                                   w->stream,          params, NULL, false};
    struct hed_cuStreamSynchronize wait = {.hStream = w->stream};

    (void)w->top->cuda->cuLaunchKernel(w->top, &a); /* becomes known */
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREAD_LAUNCHES; i++)
        (void)w->top->cuda->cuLaunchKernel(w->top, &a);
    (void)w->top->cuda->cuStreamSynchronize(w->top, &wait);
    pthread_barrier_wait(&barrier);
    return NULL;
}

/* Launches per second, of all threads. */
static double
measure_threads(struct hed_layer *top, int threads)
{
    struct worker workers[THREADS_MAX] = {0};

    pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++) {
        workers[i].top = top;
        workers[i].stream = (CUstream)(uintptr_t)(0x10000 + 0x100 * i);
        if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) != 0)
            return -1;
    }
    pthread_barrier_wait(&barrier);

    const uint64_t start = hed_now_ns();

    pthread_barrier_wait(&barrier);

    const double ns = (double)(hed_now_ns() - start);

    for (int i = 0; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    pthread_barrier_destroy(&barrier);
    return threads * THREAD_LAUNCHES / ns * 1e9;
}

static void
print_threads(struct hed_layer *const layers[3], const char *const names[3])
{
    launches_are_slow = true;
    for (int threads = 1; threads <= THREADS_MAX; threads *= 2) {
        double best[3] = {0};

        for (int r = 0; r < 3; r++)
            for (int l = 0; l < 3; l++) {
                const double rate = measure_threads(layers[l], threads);

                best[l] = rate > best[l] ? rate : best[l];
            }
        for (int l = 0; l < 3; l++) {
            printf("slow_launches/%s/%d_threads %.1f k/s\n", names[l], threads, best[l] / 1e3);
            if (l > 0)
                printf("slow_launches/%s/%d_threads/of_direct %.2f x\n", names[l], threads,
                       best[l] / best[0]);
        }
    }
    launches_are_slow = false;
}

static void
keep_best(struct cost *best, struct cost c)
{
    best->submit = c.submit < best->submit ? c.submit : best->submit;
    best->round = c.round < best->round ? c.round : best->round;
    best->cpu = c.cpu < best->cpu ? c.cpu : best->cpu;
}

static void
forget_scope(const char *scope)
{
    const unsigned char uuid[16] = {0}; /* null's */
    char name[HED_SCHED_MEET_MAX];

    hed_sched_meet_name(scope, uuid, name);
    forget_meetings(name);
}

int
main(void)
{
    static const int waits[] = {1, 16, 256};
    static const char *const names[] = {"direct", "gate", "record"};
    static struct hed_config config; /* large */
    struct hed_layer *layers[3];     /* as the names */
    struct cost best[3][3];
    struct hed_why why = {""};
    char scope[32];

    snprintf(scope, sizeof scope, "bench%ld", (long)getpid());
    hed_config_init(&config);
    snprintf(config.sched, sizeof config.sched, "mode=record,scope=%s", scope);
    if (hed_layer_create(&hed_null_backend, NULL, &config, &layers[0], &why) ||
        hed_layer_create(&params_type, layers[0], &config, &layers[0], &why) ||
        hed_layer_create(&hed_sched_layer, layers[0], &config, &layers[1], &why) ||
        hed_layer_create(&hed_record_layer, layers[1], &config, &layers[2], &why)) {
        fprintf(stderr, "%s\n", why.text);
        return 1;
    }
    for (int w = 0; w < 3; w++)
        for (int l = 0; l < 3; l++)
            best[w][l] = (struct cost){1e9, 1e9, 1e9};
    for (int r = 0; r < ROUNDS; r++)
        for (int w = 0; w < 3; w++)
            for (int l = 0; l < 3; l++)
                keep_best(&best[w][l], measure_launches(layers[l], waits[w]));
    for (int w = 0; w < 3; w++) {
        for (int l = 0; l < 3; l++) {
            printf("launch/%s/%d/submit %.1f ns\n", names[l], waits[w], best[w][l].submit);
            printf("launch/%s/%d/round %.1f ns\n", names[l], waits[w], best[w][l].round);
            printf("launch/%s/%d/cpu %.1f ns\n", names[l], waits[w], best[w][l].cpu);
        }
    }
    print_threads(layers, names);
    hed_record_layer.fini(layers[2]);
    forget_scope(scope);
    return 0;
}
