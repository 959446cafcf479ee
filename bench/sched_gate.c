/* What does the gate of the sched layer cost? Launches on the null driver: without the layer, with
 * it and alone, with another process there that is idle, and with an idle one of higher priority:
 * then the gate is not open, and GPU time is counted and measured all the while.
 *
 * Prints `name value unit` lines; `+` rows are what the layer adds. Every way needs processes of
 * its own, so the program runs itself: rounds alternate, and the best of each is kept, because
 * these machines are noisy. */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "gen/cuda_front.h"

#define ROUNDS 7
#define BATCHES 20
#define CALLS 20000

typedef CUresult (*init_fn)(unsigned);
typedef CUresult (*retain_fn)(CUcontext *, CUdevice);
typedef CUresult (*set_fn)(CUcontext);
typedef CUresult (*launch_fn)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                              unsigned, unsigned, CUstream, void **, void **);

static const char *const ways[] = {"no_layer", "open_alone", "open_idle_other", "watched"};
enum { WAYS = 4 };

static launch_fn
begin(const char *library)
{
    void *l = dlopen(library, RTLD_NOW);
    init_fn init = l ? (init_fn)dlsym(l, "cuInit") : NULL;
    retain_fn retain = l ? (retain_fn)dlsym(l, "cuDevicePrimaryCtxRetain") : NULL;
    set_fn set = l ? (set_fn)dlsym(l, "cuCtxSetCurrent") : NULL;
    launch_fn launch = l ? (launch_fn)dlsym(l, "cuLaunchKernel") : NULL;
    CUcontext c;

    if (!init || !retain || !set || init(0) != 0 || retain(&c, 0) != 0 || set(c) != 0)
        return NULL;
    return launch;
}

static double
best_ns(launch_fn launch)
{
    double best = 1e9;

    for (int b = 0; b < BATCHES; b++) {
        const uint64_t start = hed_now_ns();

        for (int i = 0; i < CALLS; i++)
            (void)launch(NULL, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);

        const double ns = (double)(hed_now_ns() - start) / CALLS;

        best = ns < best ? ns : best;
    }
    return best;
}

/* Another process: makes one call and sleeps. */
static int
other(const char *library)
{
    launch_fn launch = begin(library);

    if (!launch || launch(NULL, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL) != 0)
        return 1;
    (void)write(1, "", 1);
    pause();
    return 0;
}

static pid_t
start_other(const char *library)
{
    int ends[2];
    char byte;

    if (pipe(ends) != 0)
        return -1;

    const pid_t pid = fork();

    if (pid == 0) {
        dup2(ends[1], 1);
        _exit(other(library));
    }
    close(ends[1]);

    const bool up = read(ends[0], &byte, 1) == 1;

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

/* In a child: prints the cost of one way. */
static int
measure(const char *library, int way)
{
    char path[128];
    pid_t pid = 0;

    setenv("HEDDLE_GPU", "null", 1);
    if (way > 0)
        set_sched(way == 3 ? "prio=high" : "prio=normal");
    if (way > 1)
        pid = start_other(library);
    if (way == 3)
        set_sched("prio=low,cap_us=10000000"); /* null's work takes no time, but counts as some */
    if (pid < 0)
        return 1;

    launch_fn launch = begin(library);
    const double ns = launch ? best_ns(launch) : -1;

    if (pid > 0) {
        kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
    if (way > 0) {
        snprintf(path, sizeof path, "/dev/shm/heddle-%u-sched-bench%ld-%032d", (unsigned)geteuid(),
                 (long)getpid(), 0); /* null's UUID */
        (void)unlink(path);
    }
    printf("%.3f\n", ns);
    return ns < 0;
}

static bool
round_of(const char *self, int way, double *best)
{
    char command[4096];
    double ns = -1;

    snprintf(command, sizeof command, "'%s' %d", self, way);

    FILE *f = popen(command, "r");
    const bool ok = f && fscanf(f, "%lf", &ns) == 1;

    if (ok && ns < *best)
        *best = ns;
    return f && pclose(f) == 0 && ok;
}

int
main(int argc, char **argv)
{
    const char *heddle = getenv("HED_LIBCUDA");
    double cost[WAYS];

    if (!heddle) {
        fprintf(stderr, "run it by bench/run: it needs HED_LIBCUDA\n");
        return 2;
    }
    if (argc > 1)
        return measure(heddle, argv[1][0] - '0');
    for (int w = 0; w < WAYS; w++)
        cost[w] = 1e9;
    for (int r = 0; r < ROUNDS; r++)
        for (int w = 0; w < WAYS; w++)
            if (!round_of(argv[0], w, &cost[w]))
                return 1;
    for (int w = 0; w < WAYS; w++) {
        printf("cuLaunchKernel/%s %.1f ns\n", ways[w], cost[w]);
        if (w > 0)
            printf("cuLaunchKernel/%s+ %.1f ns\n", ways[w], cost[w] - cost[0]);
    }
    return 0;
}
