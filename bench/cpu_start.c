/* What does the CPU GPU cost: memory before anything runs, the first launch, a launch, a copy?
 * bench/cpu measures how fast kernels run.
 *
 * Prints `name value unit` lines. Memory and first launches need processes of their own, so the
 * program runs itself: rounds alternate, and the best of each is kept, because these machines are
 * noisy. HED_LIBCUDA names the library. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "library.h"

#define ROUNDS 9
#define RATE_ROUNDS 5
#define COPY_BYTES ((size_t)64 << 20)
#define LAUNCHES 2000
#define NUMBERS 5 /* that child_first prints */

static const char small[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry saxpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 n)\n{\n"
    ".reg .b32 %r<8>; .reg .f32 %f<8>; .reg .b64 %d<8>; .reg .pred %p;\n"
    "ld.param.f32 %f1, [a];\nld.param.u64 %d1, [x];\nld.param.u64 %d2, [y];\n"
    "ld.param.u32 %r1, [n];\n"
    "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\n"
    "mad.lo.s32 %r5, %r2, %r3, %r4;\nsetp.ge.u32 %p, %r5, %r1;\n@%p bra DONE;\n"
    "mul.wide.u32 %d3, %r5, 4;\nadd.s64 %d4, %d1, %d3;\nadd.s64 %d5, %d2, %d3;\n"
    "ld.global.f32 %f2, [%d4];\nld.global.f32 %f3, [%d5];\n"
    "fma.rn.f32 %f4, %f1, %f2, %f3;\nst.global.f32 [%d5], %f4;\n"
    "DONE: ret;\n}\n"
    ".visible .entry empty()\n{\nret;\n}\n";

/* ---- memory ---------------------------------------------------------------------------------- */

static double
smaps_mib(const char *what)
{
    char line[256];
    double kib = 0;
    FILE *f = fopen("/proc/self/smaps_rollup", "r");

    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, what, strlen(what)) == 0)
            kib = strtod(line + strlen(what), NULL);
    }
    if (f)
        fclose(f);
    return kib / 1024;
}

static int
is_mapped(const char *name)
{
    char line[1024];
    int found = 0;
    FILE *f = fopen("/proc/self/maps", "r");

    while (f && fgets(line, sizeof line, f))
        found = found || strstr(line, name) != NULL;
    if (f)
        fclose(f);
    return found;
}

/* In a child: does everything that a program does before its first launch, or nothing. */
static int
child_memory(bool with)
{
    if (with) {
        CUdeviceptr p;
        CUmodule m;
        CUfunction f;

        open_library();
        open_context();
        MUST(CU(cuMemAlloc_v2)(&p, 1 << 20));
        MUST(CU(cuModuleLoadData)(&m, small));
        MUST(CU(cuModuleGetFunction)(&f, m, "saxpy"));
    }
    printf("%f %f %d\n", smaps_mib("Rss:"), smaps_mib("Pss:"), is_mapped("libLLVM"));
    return 0;
}

/* ---- the first launch ------------------------------------------------------------------------ */

static double
since_ms(uint64_t start)
{
    return (double)(hed_now_ns() - start) / 1e6;
}

static double
cpu_ms(void)
{
    return (double)hed_clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e6;
}

/* In a child: times the start, the module, the first launch and the second, in ms; and the
 * processor time of the first launch, which says more if processors are shared. */
static int
child_first(void)
{
    uint32_t n = 1024;
    float a = 2;
    CUdeviceptr x, y;
    CUmodule m;
    CUfunction f;
    void *params[] = {&a, &x, &y, &n};
    double ms[4], cpu = 0;
    uint64_t start = hed_now_ns();

    open_library();
    open_context();
    ms[0] = since_ms(start);
    MUST(CU(cuMemAlloc_v2)(&x, n * 4));
    MUST(CU(cuMemAlloc_v2)(&y, n * 4));
    start = hed_now_ns();
    MUST(CU(cuModuleLoadData)(&m, small));
    MUST(CU(cuModuleGetFunction)(&f, m, "saxpy"));
    ms[1] = since_ms(start);
    for (int i = 2; i < 4; i++) {
        const double before = cpu_ms();

        start = hed_now_ns();
        MUST(CU(cuLaunchKernel)(f, 8, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
        MUST(CU(cuCtxSynchronize)());
        ms[i] = since_ms(start);
        cpu = i == 2 ? cpu_ms() - before : cpu;
    }
    printf("%f %f %f %f %f\n", ms[0], ms[1], ms[2], ms[3], cpu);
    return 0;
}

/* ---- launches and copies --------------------------------------------------------------------- */

static void
show_launches(CUmodule m)
{
    CUfunction f;
    double best = 1e9;

    MUST(CU(cuModuleGetFunction)(&f, m, "empty"));

    __typeof__(&cuLaunchKernel) launch = CU(cuLaunchKernel);
    __typeof__(&cuStreamSynchronize) wait = CU(cuStreamSynchronize);

    for (int round = 0; round < RATE_ROUNDS; round++) {
        const uint64_t start = hed_now_ns();

        for (int i = 0; i < LAUNCHES; i++) {
            MUST(launch(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
            MUST(wait(NULL));
        }

        const double us = (double)(hed_now_ns() - start) / 1e3 / LAUNCHES;

        best = us < best ? us : best;
    }
    printf("%f ", best);
    best = 1e9;
    for (int round = 0; round < RATE_ROUNDS; round++) {
        const uint64_t start = hed_now_ns();

        for (int i = 0; i < LAUNCHES; i++)
            MUST(launch(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
        MUST(wait(NULL));

        const double us = (double)(hed_now_ns() - start) / 1e3 / LAUNCHES;

        best = us < best ? us : best;
    }
    printf("%f ", best);
}

/* GB/s of memcpy and of copies to and from the device, between memory that has been touched. */
static void
show_copies(void)
{
    double best[3] = {0};
    char *from = malloc(COPY_BYTES), *to = malloc(COPY_BYTES);
    CUdeviceptr p;

    if (!from || !to)
        exit(1);
    memset(from, 1, COPY_BYTES);
    memset(to, 2, COPY_BYTES);
    MUST(CU(cuMemAlloc_v2)(&p, COPY_BYTES));
    MUST(CU(cuMemcpyHtoD_v2)(p, from, COPY_BYTES));
    for (int round = 0; round < RATE_ROUNDS * 3; round++) {
        const uint64_t start = hed_now_ns();

        if (round % 3 == 0)
            memcpy(to, from, COPY_BYTES);
        else if (round % 3 == 1)
            MUST(CU(cuMemcpyHtoD_v2)(p, from, COPY_BYTES));
        else
            MUST(CU(cuMemcpyDtoH_v2)(to, p, COPY_BYTES));

        const double rate = (double)COPY_BYTES / (double)(hed_now_ns() - start);

        if (rate > best[round % 3])
            best[round % 3] = rate;
    }
    printf("%f %f %f ", best[0], best[1], best[2]);
    free(from);
    free(to);
    MUST(CU(cuMemFree_v2)(p));
}

/* In a child. */
static int
child_rates(void)
{
    CUmodule m;

    open_library();
    open_context();
    MUST(CU(cuModuleLoadData)(&m, small));
    show_launches(m);
    show_copies();
    printf("\n");
    return 0;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* Runs this program in a role, and returns the numbers that it printed. */
static void
run_role(const char *role, const char *codegen, const char *cache, double *out, int count)
{
    int ends[2];
    int status = 0;
    char text[4096];
    char *at = text;
    size_t n = 0;
    pid_t child;

    if (pipe(ends) != 0 || (child = fork()) < 0)
        exit(1);
    if (child == 0) {
        setenv("HEDDLE_CPU_CODEGEN", codegen, 1);
        setenv("HEDDLE_CACHE", cache, 1);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/proc/self/exe", "cpu_start", role, (char *)NULL);
        _exit(126);
    }
    close(ends[1]);
    for (ssize_t got;
         n < sizeof text - 1 && (got = read(ends[0], text + n, sizeof text - 1 - n)) > 0;)
        n += (size_t)got;
    text[n] = 0;
    close(ends[0]);
    if (waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "%s failed\n", role);
        exit(1);
    }
    for (int i = 0; i < count; i++)
        out[i] = strtod(at, &at);
}

static void
show_memory(const char *cache)
{
    double bare[3], with[3];

    run_role("bare", "warp", cache, bare, 3);
    run_role("idle", "warp", cache, with, 3);
    printf("idle_rss_added %.1f MiB\n", with[0] - bare[0]);
    printf("idle_pss_added %.1f MiB\n", with[1] - bare[1]);
    printf("idle_llvm_mapped %.0f bool\n", with[2]);
}

static void
show_first(const char *folder, const char *codegen)
{
    double best[2][NUMBERS];

    for (int i = 0; i < 2 * NUMBERS; i++)
        best[i / NUMBERS][i % NUMBERS] = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        char cache[256];

        snprintf(cache, sizeof cache, "%s/%s.%d", folder, codegen, round);
        for (int warm = 0; warm < 2; warm++) {
            double ms[NUMBERS];

            run_role("first", codegen, cache, ms, NUMBERS);
            for (int i = 0; i < NUMBERS; i++)
                best[warm][i] = ms[i] < best[warm][i] ? ms[i] : best[warm][i];
        }
    }
    printf("start_%s %.2f ms\n", codegen, best[1][0]);
    printf("module_load_%s %.2f ms\n", codegen, best[1][1]);
    printf("first_launch_cold_%s %.2f ms\n", codegen, best[0][2]);
    printf("first_launch_cold_cpu_%s %.2f ms\n", codegen, best[0][4]);
    printf("first_launch_warm_%s %.2f ms\n", codegen, best[1][2]);
    printf("second_launch_%s %.3f ms\n", codegen, best[1][3]);
}

static void
show_rates(const char *cache)
{
    double of[5];

    run_role("rates", "warp", cache, of, 5);
    printf("launch_and_wait %.2f us\n", of[0]);
    printf("launch_queued %.2f us\n", of[1]);
    printf("memcpy %.2f GB/s\n", of[2]);
    printf("copy_to_device %.2f GB/s\n", of[3]);
    printf("copy_from_device %.2f GB/s\n", of[4]);
}

int
main(int argc, char **argv)
{
    const char *folder = getenv("HED_SCRATCH"); /* for caches */

    if (argc > 1 && strcmp(argv[1], "rates") == 0)
        return child_rates();
    if (argc > 1 && strcmp(argv[1], "first") == 0)
        return child_first();
    if (argc > 1)
        return child_memory(strcmp(argv[1], "idle") == 0);
    if (!getenv("HED_LIBCUDA") || !folder) {
        fprintf(stderr, "run it by bench/run\n");
        return 1;
    }
    show_memory(folder);
    show_first(folder, "tiered");
    show_first(folder, "warp");
    show_rates(folder);
    return 0;
}
