/* What does a call cost? On the null backend: a direct call of a function in another library, the
 * same call through heddle's front and an empty chain, and through the trace layer, in one run.
 *
 * Prints `name value unit` lines. Rows with `+` are what heddle adds to the direct call, rows with
 * `x` are ratios. The chains need processes of their own, so the program runs itself; rounds
 * alternate, and the best of each is kept, because these machines are noisy. */
#include <dlfcn.h>
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

typedef CUresult (*get_current_fn)(CUcontext *);
typedef CUresult (*launch_fn)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                              unsigned, unsigned, CUstream, void **, void **);
typedef CUresult (*copy_fn)(CUdeviceptr, const void *, size_t, CUstream);

static const char *const names[] = {"cuCtxGetCurrent", "cuLaunchKernel", "cuMemcpyHtoDAsync_v2"};
enum { KINDS = 3 };

static double
best_ns(void *f, int kind)
{
    double best = 1e9;
    static char data[64];
    CUcontext c;

    for (int b = 0; b < BATCHES; b++) {
        const uint64_t start = hed_now_ns();

        for (int i = 0; i < CALLS; i++) {
            if (kind == 0)
                (void)((get_current_fn)f)(&c);
            else if (kind == 1)
                (void)((launch_fn)f)(NULL, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
            else
                (void)((copy_fn)f)(4096, data, sizeof data, NULL);
        }

        const double ns = (double)(hed_now_ns() - start) / CALLS;

        best = ns < best ? ns : best;
    }
    return best;
}

/* In a child: prints the three costs of a library's functions. */
static int
measure_library(const char *library, const char *prefix)
{
    void *l = dlopen(library, RTLD_NOW);

    if (!l) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    for (int kind = 0; kind < KINDS; kind++) {
        char name[64];

        snprintf(name, sizeof name, "%s%s", prefix, names[kind]);

        void *f = dlsym(l, name);

        if (!f)
            return 1;
        printf("%.3f\n", best_ns(f, kind));
    }
    return 0;
}

/* Runs this program again as `how` and keeps the smaller of each cost. */
static bool
round_of(const char *self, const char *how, double *best)
{
    char command[4096];
    bool ok = true;

    snprintf(command, sizeof command, "'%s' %s", self, how);

    FILE *f = popen(command, "r");

    for (int kind = 0; f && kind < KINDS; kind++) {
        double ns;

        ok = ok && fscanf(f, "%lf", &ns) == 1;
        if (ok && ns < best[kind])
            best[kind] = ns;
    }
    return f && pclose(f) == 0 && ok;
}

static void
set_backend(const char *trace)
{
    setenv("HEDDLE_GPU", "null", 1);
    if (trace)
        setenv("HEDDLE_TRACE", trace, 1);
}

int
main(int argc, char **argv)
{
    const char *heddle = getenv("HED_LIBCUDA");
    const char *direct = getenv("HED_DIRECT");
    double cost[3][KINDS];
    char trace[] = "/tmp/heddle-bench-XXXXXX.hed";

    if (!heddle || !direct) {
        fprintf(stderr, "run it by bench/run: it needs HED_LIBCUDA and HED_DIRECT\n");
        return 2;
    }
    if (argc > 1 && strcmp(argv[1], "direct") == 0)
        return measure_library(direct, "direct_");
    if (argc > 1 && strcmp(argv[1], "empty") == 0) {
        set_backend(NULL);
        return measure_library(heddle, "");
    }
    if (argc > 1 && strcmp(argv[1], "trace") == 0) {
        const int fd = mkstemps(trace, 4);

        if (fd < 0)
            return 1;
        close(fd);
        unlink(trace);
        set_backend(trace);

        const int r = measure_library(heddle, "");

        unlink(trace);
        return r;
    }
    for (int i = 0; i < 3; i++)
        for (int kind = 0; kind < KINDS; kind++)
            cost[i][kind] = 1e9;
    for (int r = 0; r < ROUNDS; r++)
        if (!round_of(argv[0], "direct", cost[0]) || !round_of(argv[0], "empty", cost[1]) ||
            !round_of(argv[0], "trace", cost[2]))
            return 1;
    for (int kind = 0; kind < KINDS; kind++) {
        printf("%s/direct %.1f ns\n", names[kind], cost[0][kind]);
        printf("%s/empty_chain %.1f ns\n", names[kind], cost[1][kind]);
        printf("%s/empty_chain+ %.1f ns\n", names[kind], cost[1][kind] - cost[0][kind]);
        printf("%s/empty_chain_x %.1f ratio\n", names[kind], cost[1][kind] / cost[0][kind]);
        printf("%s/trace %.1f ns\n", names[kind], cost[2][kind]);
        printf("%s/trace+ %.1f ns\n", names[kind], cost[2][kind] - cost[1][kind]);
        printf("%s/trace_x %.1f ratio\n", names[kind], cost[2][kind] / cost[0][kind]);
    }
    return 0;
}
