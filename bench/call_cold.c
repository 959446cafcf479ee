/* What does tracing cost a program that does something between its calls? A loop of nothing but
 * calls finds everything in the nearest caches; a real program's own code and data evict it. Here
 * every call is preceded by a walk over more code and data than those caches hold.
 *
 * Prints `name value unit` lines on the null backend: what a call takes without the trace layer,
 * and with it, in blocks of calls that are recorded and blocks in between that are not. A call
 * passes through the layer in both, so only the first figure says what tracing costs in all. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "gen/cuda_front.h"

#define BLOCKS 200
#define CALLS 300
#define LINE 64
#define DATA_LINES 2048 /* 128 KiB */

static unsigned char data[DATA_LINES * LINE];
static volatile unsigned sum;

/* 1536 cache lines of code, 96 KiB, each a jump to the next. */
static __attribute__((noinline)) void
walk_code(void)
{
#if defined(__aarch64__)
    __asm__ volatile(".rept 1536\n b 1f\n .skip 60\n 1:\n .endr");
#elif defined(__x86_64__)
    __asm__ volatile(".rept 1536\n jmp 1f\n .p2align 6\n 1:\n .endr");
#endif
}

static void
evict_caches(void)
{
    unsigned s = 0;

    for (size_t i = 0; i < DATA_LINES; i++)
        s += data[i * LINE];
    sum = s;
    walk_code();
}

static CUresult (*get_current)(CUcontext *);
static CUresult (*get_device)(CUdevice *, CUcontext);
static CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, CUstream, void **, void **);

static void
make_call(int kind)
{
    CUcontext c;
    CUdevice d;

    if (kind == 0)
        (void)get_current(&c);
    else if (kind == 1)
        (void)get_device(&d, NULL);
    else
        (void)launch(NULL, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
}

static double
block_ns(int kind)
{
    uint64_t total = 0;

    for (int i = 0; i < CALLS; i++) {
        evict_caches();

        const uint64_t start = hed_now_ns();

        make_call(kind);
        total += hed_now_ns() - start;
    }
    return (double)total / CALLS;
}

static int
by_value(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Measures in a process of its own, with a chain of its own: trace is NULL for one without a trace.
 */
static int
measure(const char *heddle, const char *trace)
{
    static const char *const names[] = {"cuCtxGetCurrent", "cuCtxGetDevice_v2", "cuLaunchKernel"};
    static double times[2][BLOCKS];
    int (*record)(int);

    setenv("HEDDLE_GPU", "null", 1);
    unsetenv("HEDDLE_TRACE");
    if (trace)
        setenv("HEDDLE_TRACE", trace, 1);

    void *library = dlopen(heddle, RTLD_NOW);

    if (!library)
        return 1;
    *(void **)&record = dlsym(library, "heddle_record");
    *(void **)&get_current = dlsym(library, names[0]);
    *(void **)&get_device = dlsym(library, names[1]);
    *(void **)&launch = dlsym(library, names[2]);
    for (int kind = 0; kind < 3; kind++) {
        for (int b = 0; b < BLOCKS; b++) {
            for (int on = 0; on < 2; on++) {
                (void)record(on);
                times[on][b] = block_ns(kind);
            }
        }
        for (int on = 0; on < 2; on++)
            qsort(times[on], BLOCKS, sizeof times[on][0], by_value);
        if (!trace)
            printf("%s/cold %.1f ns\n", names[kind], times[0][BLOCKS / 4]);
        for (int on = 0; trace && on < 2; on++)
            printf("%s/cold_trace_%s %.1f ns\n", names[kind], on ? "on" : "off",
                   times[on][BLOCKS / 4]);
    }
    return 0;
}

int
main(void)
{
    const char *heddle = getenv("HED_LIBCUDA");
    char trace[] = "/tmp/heddle-bench-XXXXXX.hed";
    const int fd = mkstemps(trace, 4);
    int bad = 0;

    if (!heddle || fd < 0)
        return 2;
    close(fd);
    for (int with = 0; with < 2; with++) {
        int status = 1;

        unlink(trace);
        fflush(stdout);

        const pid_t child = fork();

        if (child == 0)
            exit(measure(heddle, with ? trace : NULL));
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            bad = 1;
    }
    unlink(trace);
    return bad;
}
