/* A program for the tests of injection, on the fake driver that HEDDLE_DRIVER names.
 *
 *     inject_work CASE [SECONDS]
 *
 * Each case says what it expects of the settings that it is run with (cases.py). */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../harness/patience.h"
#include "base/clock.h"
#include "fake.h"
#include "gen/cuda_front.h"

#define STREAMS 3

#define CHECK(holds, ...)                                   \
    do {                                                    \
        if (!(holds)) {                                     \
            fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
            fprintf(stderr, __VA_ARGS__);                   \
            fprintf(stderr, " (%s)\n", #holds);             \
            exit(1);                                        \
        }                                                   \
    } while (0)

#define GOOD(call) CHECK((call) == CUDA_SUCCESS, "an error")

static void *driver;
static struct fake_seen *seen;
static CUstream streams[STREAMS];
static CUdeviceptr memory; /* two words */
static uint64_t expected;  /* value of the first word after all launches */

#define CU(name) ((__typeof__(&name))dlsym(driver, #name))

static CUfunction
kernel(enum fake_kernel k)
{
    return (CUfunction)(uintptr_t)(0x5000 + k);
}

/* The arguments no longer exist when it returns. */
static CUresult
mix(uint32_t value, CUstream stream, unsigned grid)
{
    CUdeviceptr p = memory;
    uint32_t v = value;
    void *params[] = {&p, &v};
    const CUresult r =
        CU(cuLaunchKernel)(kernel(FAKE_MIX), grid, 1, 1, 32, 1, 1, 7, stream, params, NULL);

    expected = expected * 31 + value;
    p = 0;
    v = 0xdead;
    params[0] = params[1] = NULL;
    return r;
}

static void
start_driver(void)
{
    CUcontext context;

    driver = dlopen(getenv("HEDDLE_DRIVER"), RTLD_NOW);
    CHECK(driver, "%s", dlerror());
    seen = dlsym(driver, "fake_seen");
    CHECK(seen, "no fake_seen");
    GOOD(CU(cuInit)(0));
    GOOD(CU(cuDevicePrimaryCtxRetain)(&context, 0));
    GOOD(CU(cuCtxSetCurrent)(context));
    GOOD(CU(cuMemAlloc_v2)(&memory, 16));
    for (int i = 0; i < STREAMS; i++)
        GOOD(CU(cuStreamCreate)(&streams[i], 0));
    /* Only launches whose kind and stream have succeeded once are held. */
    for (int i = 0; i < STREAMS; i++)
        GOOD(mix(1, streams[i], 3));
    GOOD(CU(cuCtxSynchronize)());
}

static unsigned
count_launches(void)
{
    return atomic_load(&seen->count);
}

static void
until_count(unsigned n)
{
    WAIT_UNTIL(count_launches() >= n);
}

static uint64_t
read_word(int i)
{
    uint64_t word = 0;

    GOOD(CU(cuMemcpyDtoH_v2)(&word, memory + (CUdeviceptr)i * 8, sizeof word));
    return word;
}

static void
finish_case(void)
{
    CHECK(read_word(0) == expected, "another result");
    CHECK(atomic_load(&seen->broken) == 0, "arguments were not put back");
}

static void
is_launch(unsigned i, uint32_t value, CUstream stream, unsigned grid)
{
    const struct fake_launch *l = &seen->launches[i];

    CHECK(l->kernel == FAKE_MIX && l->value == value, "launch %u: value %lu", i,
          (unsigned long)l->value);
    CHECK(l->stream == (uint64_t)(uintptr_t)stream, "launch %u: another stream", i);
    CHECK(l->grid == grid && l->block == 32 && l->shared == 7, "launch %u: another size", i);
}

/* Needs batch=4 and a long wait. The fourth launch releases all, on their streams and in order. */
static void
by_number(void)
{
    const unsigned before = count_launches();
    const unsigned refused = atomic_load(&seen->refused);

    for (unsigned i = 0; i < 3; i++)
        GOOD(mix(10 + i, streams[i], 20 + i));
    give_a_moment(50);
    CHECK(count_launches() == before, "%u were not held", count_launches() - before);
    CHECK(atomic_load(&seen->refused) == refused + 3, "the driver has seen others");
    GOOD(mix(13, streams[1], 23));
    until_count(before + 4);
    for (unsigned i = 0; i < 4; i++)
        is_launch(before + i, 10 + i, streams[i == 3 ? 1 : i], 20 + i);
    finish_case();
}

/* The same, all on one stream. */
static void
by_number_one_stream(void)
{
    const unsigned before = count_launches();

    for (unsigned i = 0; i < 8; i++)
        GOOD(mix(i, streams[0], 2));
    until_count(before + 8);
    for (unsigned i = 0; i < 8; i++)
        is_launch(before + i, i, streams[0], 2);
    finish_case();
}

/* Needs a large batch and a short wait. */
static void
by_time(void)
{
    const unsigned before = count_launches();

    GOOD(mix(5, streams[0], 2));
    GOOD(mix(6, streams[1], 2));
    until_count(before + 2);
    finish_case();
}

/* Needs a large batch and a long wait. */
static void
by_waiting(void)
{
    const unsigned before = count_launches();

    GOOD(mix(5, streams[0], 2));
    GOOD(mix(6, streams[0], 2));
    GOOD(CU(cuStreamSynchronize)(streams[0]));
    CHECK(count_launches() == before + 2, "%u launches", count_launches() - before);
    GOOD(mix(7, streams[1], 2));
    GOOD(CU(cuCtxSynchronize)());
    CHECK(count_launches() == before + 3, "%u launches", count_launches() - before);
    GOOD(mix(8, streams[2], 2));
    finish_case(); /* a copy waits, too */
    CHECK(count_launches() == before + 4, "%u launches", count_launches() - before);
}

/* Needs queue=8 and a large batch. More launches than fit into the queue still arrive. */
static void
full_queue(void)
{
    const unsigned before = count_launches();

    for (unsigned i = 0; i < 100; i++)
        GOOD(mix(i, streams[i % STREAMS], 2));
    GOOD(CU(cuCtxSynchronize)());
    CHECK(count_launches() == before + 100, "%u launches", count_launches() - before);
    for (unsigned i = 0; i < 100; i++)
        is_launch(before + i, i, streams[i % STREAMS], 2);
    finish_case();
}

/* Needs batch=2 and a long wait. Launches of all shapes, and calls that cannot be held. */
static void
other_calls(void)
{
    const uint64_t words[3] = {100, 200, 300};
    CUdeviceptr p = memory + 8;
    void *params[] = {(void *)words, &p};
    CUlaunchConfig config = {.gridDimX = 2,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 4,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = streams[2]};
    int launches = 0;

    for (int i = 0; i < 4; i++) {
        GOOD(CU(cuLaunchKernelEx)(&config, kernel(FAKE_WIDE), params, NULL));
        CHECK(config.gridDimX == 2, "the program's own structure was changed");
        GOOD(CU(cuLaunchCooperativeKernel)(kernel(FAKE_WIDE), 5, 1, 1, 6, 1, 1, 0, streams[0],
                                           params));
    }
    CHECK(read_word(1) == 8 * 600, "another sum");

    /* Graphs are not held, but run after the launches that are. */
    const unsigned before = count_launches();

    GOOD(mix(9, streams[0], 2));
    GOOD(CU(cuGraphLaunch)((CUgraphExec)0x9000, streams[0]));
    CHECK(seen->launches[before].kernel == FAKE_MIX, "the graph overtook a launch");
    CHECK(seen->launches[before + 1].kernel == FAKE_GRAPH, "no graph");

    /* A function that heddle does not know must not overtake them either. */
    GOOD(mix(10, streams[0], 2));
    GOOD(((CUresult(*)(int *))dlsym(driver, "cuTomorrow"))(&launches));
    CHECK(launches == (int)before + 3, "%d launches", launches);
    /* The program gets the driver's refusals. */
    CHECK(mix(0, streams[0], 0) == CUDA_ERROR_INVALID_VALUE, "an empty grid");
    expected = 0;
    CHECK(CU(cuLaunchKernel)((CUfunction)0x99, 1, 1, 1, 1, 1, 1, 0, streams[0], params, NULL) ==
              CUDA_ERROR_INVALID_HANDLE,
          "a function that is none");
    CHECK(atomic_load(&seen->broken) == 0, "arguments were not put back");
}

/* Needs a large batch and a long wait. A capture gets its launches at once. */
static void
capture(void)
{
    const unsigned before = count_launches();
    const uint64_t outside = expected;
    CUgraph graph = NULL;

    GOOD(CU(cuStreamBeginCapture_v2)(streams[0], CU_STREAM_CAPTURE_MODE_GLOBAL));
    GOOD(mix(5, streams[0], 2));
    GOOD(mix(6, streams[0], 2));
    CHECK(count_launches() == before + 2, "%u launches", count_launches() - before);
    CHECK(seen->launches[before].captured && seen->launches[before + 1].captured, "not captured");
    GOOD(CU(cuStreamEndCapture)(streams[0], &graph));
    CHECK(graph, "no graph");
    expected = outside;
    GOOD(mix(7, streams[0], 2));
    finish_case();
}

/* Needs batch=2 and a long wait. The variants for per-thread default streams. */
static void
per_thread(void)
{
    const unsigned before = count_launches();
    CUdeviceptr p = memory;
    uint32_t v = 3;
    void *params[] = {&p, &v};
    __typeof__(&cuLaunchKernel) launch = dlsym(driver, "cuLaunchKernel_ptsz");
    __typeof__(&cuStreamSynchronize) wait = dlsym(driver, "cuStreamSynchronize_ptsz");

    /* The thread's own stream, and another. */
    for (int i = 0; i < 6; i++) {
        GOOD(launch(kernel(FAKE_MIX), 1, 1, 1, 32, 1, 1, 7, i % 2 ? streams[0] : NULL, params,
                    NULL));
        expected = expected * 31 + v;
    }
    GOOD(wait(NULL));
    GOOD(wait(streams[0]));
    CHECK(count_launches() == before + 6, "%u launches", count_launches() - before);
    for (unsigned i = 0; i < 6; i++) {
        const struct fake_launch *l = &seen->launches[before + i];

        CHECK(l->stream == (i % 2 ? (uint64_t)(uintptr_t)streams[0] : 0), "another stream");
        /* Only its own thread can put work on a thread's own stream. */
        CHECK(l->stream || (l->thread == gettid() && strstr(l->function, "_ptsz")),
              "launch %u: %s by another thread", i, l->function);
    }
    finish_case();
}

static void *
many(void *arg)
{
    const long n = (long)(intptr_t)arg;
    CUcontext context;
    uint64_t words[3] = {1, 0, 0};
    CUdeviceptr p = memory + 8;

    GOOD(CU(cuDevicePrimaryCtxRetain)(&context, 0));
    GOOD(CU(cuCtxSetCurrent)(context));
    for (int i = 0; i < 200; i++) {
        GOOD(CU(cuLaunchKernel)(kernel(FAKE_WIDE), 1, 1, 1, 1, 1, 1, 0, streams[n % STREAMS],
                                (void *[]){words, &p}, NULL));
        if (i % 37 == 0)
            GOOD(CU(cuStreamSynchronize)(streams[n % STREAMS]));
    }
    return NULL;
}

/* Works with any settings: threads launch and wait at the same time. */
static void
threads(void)
{
    pthread_t t[4];
    const unsigned before = count_launches();

    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&t[i], NULL, many, (void *)(intptr_t)i) == 0, "no thread");
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(t[i], NULL) == 0, "no thread");
    GOOD(CU(cuCtxSynchronize)());
    CHECK(count_launches() == before + 800, "%u launches", count_launches() - before);
    CHECK(read_word(1) == 800, "another sum");
    finish_case();
}

/* Works with any settings: a forked child does not affect its parent. */
static void
forks(void)
{
    const pid_t child = fork();
    int status = -1;

    if (child == 0)
        _exit(CU(cuStreamSynchronize)(streams[0]) == CUDA_SUCCESS ? 0 : 1);
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the child: %d", status);
    GOOD(mix(3, streams[0], 2));
    finish_case();
}

static jmp_buf way_out;

static void
jump(void)
{
    longjmp(way_out, 1);
}

/* Needs a large batch and a long wait. Calls that never return leave nothing behind. While one
 * seems to wait for the GPU, nothing is held, and only a few of them could be remembered. */
static void
jumps(void)
{
    for (volatile int i = 0; i < 20; i++) {
        if (setjmp(way_out) == 0) {
            seen->signal = jump;
            (void)CU(cuStreamSynchronize)(streams[0]);
        }
    }
    GOOD(CU(cuStreamSynchronize)(streams[0]));
    GOOD(mix(5, streams[0], 2)); /* after an error, a launch must succeed again before it is held */
    GOOD(CU(cuStreamSynchronize)(streams[0]));

    const unsigned before = count_launches();

    GOOD(mix(6, streams[0], 2));
    GOOD(mix(7, streams[0], 2));
    give_a_moment(20);
    CHECK(count_launches() == before, "%u were not held", count_launches() - before);
    GOOD(CU(cuStreamSynchronize)(streams[0]));
    CHECK(count_launches() == before + 2, "%u launches", count_launches() - before);
    finish_case();
}

static volatile sig_atomic_t stopped;

static void
note_stop(int sig)
{
    (void)sig;
    stopped = 1;
}

/* Launches until SIGTERM, and prints how many launches there were. */
static void
launch_until_stopped(void)
{
    (void)signal(SIGTERM, note_stop);
    puts("ready");
    fflush(stdout);
    while (!stopped) {
        GOOD(mix(1, streams[0], 2));
        GOOD(CU(cuStreamSynchronize)(streams[0]));
        hed_sleep_ns(200000);
    }
    finish_case();
    printf("%u\n", count_launches());
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"by_number", by_number},   {"by_number_one_stream", by_number_one_stream},
        {"by_time", by_time},       {"by_waiting", by_waiting},
        {"full_queue", full_queue}, {"other_calls", other_calls},
        {"capture", capture},       {"per_thread", per_thread},
        {"threads", threads},       {"forks", forks},
        {"jumps", jumps},
    };

    start_driver();
    if (argc > 1 && strcmp(argv[1], "work") == 0) {
        launch_until_stopped();
        return 0;
    }
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            return 0;
        }
    }
    fprintf(stderr, "which case?\n");
    return 2;
}
