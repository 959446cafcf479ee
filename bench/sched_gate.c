/* What does the gate of the sched layer cost? Launches on the null driver: without the layer, with
 * it and alone, beside an idle client, and beside an idle client of higher priority. In the last
 * case the gate is not open, and GPU time is counted and measured all the time.
 *
 * Prints `name value unit` lines; rows with `+` are what the layer adds. Every way needs a process
 * of its own, so the program runs itself. The ways alternate, and the best of each is kept, because
 * these machines are noisy. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "gen/cuda_front.h"
#include "sched_scope.h"

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
open_driver(const char *library)
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

/* The work of the other client: one call. */
static bool
launch_once(const char *library)
{
    launch_fn launch = open_driver(library);

    return launch && launch(NULL, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL) == 0;
}

/* In a child: prints the cost of one way. */
static int
measure_way(const char *library, int way)
{
    pid_t idle = 0;

    setenv("HEDDLE_GPU", "null", 1);
    if (way > 0)
        set_sched(way == 3 ? "prio=high" : "prio=normal");
    if (way > 1)
        idle = start_idle(launch_once, library);
    if (way == 3)
        set_sched("prio=low,cap_us=10000000"); /* work of null takes no time, but counts */
    if (idle < 0)
        return 1;

    launch_fn launch = open_driver(library);
    const double ns = launch ? best_ns(launch) : -1;

    end_idle(idle);
    if (way > 0)
        remove_scope();
    printf("%.3f\n", ns);
    return ns < 0;
}

static bool
run_way(const char *self, int way, double *best)
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
        return measure_way(heddle, argv[1][0] - '0');
    for (int w = 0; w < WAYS; w++)
        cost[w] = 1e9;
    for (int r = 0; r < ROUNDS; r++)
        for (int w = 0; w < WAYS; w++)
            if (!run_way(argv[0], w, &cost[w]))
                return 1;
    for (int w = 0; w < WAYS; w++) {
        printf("cuLaunchKernel/%s %.1f ns\n", ways[w], cost[w]);
        if (w > 0)
            printf("cuLaunchKernel/%s+ %.1f ns\n", ways[w], cost[w] - cost[0]);
    }
    return 0;
}
