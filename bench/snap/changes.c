/* A program with device memory of which a part changes all the time, to be moved, and the time that
 * so many bytes take from the device to the host and back, on their own.
 *
 *   HED_LIBCUDA=/path/to/libcuda.so.1 changes run TOTAL_MIB CHANGED_MIB [MODULES]
 *   HED_LIBCUDA=/path/to/libcuda.so.1 changes link MIB...
 *
 * run: says "ready", changes its memory until its standard input ends, and checks all of it then.
 * Says how often it has, and the milliseconds that the longest round took.
 * MODULES: so many modules with a kernel and a variable each are loaded, too (8).
 * link: one line for each size, its milliseconds: bytes are read in pieces into pinned memory and
 * written from there to other device memory, both at once; the best of five.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "library.h"

#define MIB ((size_t)1 << 20)
#define PIECES 6u
#define PIECE (4 * MIB)

static double
now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- the program ----------------------------------------------------------------------------- */

static void
load_modules(unsigned count)
{
    static const char text[] =
        ".version 7.0\n.target sm_70\n.address_size 64\n"
        ".visible .global .align 4 .u32 value%u = %u;\n"
        ".visible .entry add%u(.param .u64 p)\n{\n.reg .b32 %%r<3>; .reg .b64 %%d<3>;\n"
        "ld.param.u64 %%d0, [p]; ld.global.u32 %%r0, [value%u];\n"
        "ld.global.u32 %%r1, [%%d0]; add.u32 %%r1, %%r1, %%r0; st.global.u32 [%%d0], %%r1;\n"
        "ret;\n}\n";
    char name[32], ptx[sizeof text + 128];
    CUdeviceptr sum;
    uint32_t got, want = 0;

    MUST(CU(cuMemAlloc_v2)(&sum, 4));
    MUST(CU(cuMemsetD32_v2)(sum, 0, 1));
    for (unsigned i = 0; i < count; i++) {
        void *params[] = {&sum};
        CUmodule m;
        CUfunction f;

        (void)snprintf(ptx, sizeof ptx, text, i, i + 1, i, i);
        (void)snprintf(name, sizeof name, "add%u", i);
        MUST(CU(cuModuleLoadData)(&m, ptx));
        MUST(CU(cuModuleGetFunction)(&f, m, name));
        MUST(CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
        want += i + 1;
    }
    MUST(CU(cuMemcpyDtoH_v2)(&got, sum, 4));
    if (got != want) {
        fprintf(stderr, "the kernels added up to %u, not %u\n", got, want);
        exit(1);
    }
}

static void
check_words(CUdeviceptr p, size_t bytes, uint32_t want, const char *what)
{
    uint32_t *words = malloc(PIECE);

    for (size_t at = 0; at < bytes; at += PIECE) {
        const size_t n = bytes - at < PIECE ? bytes - at : PIECE;

        MUST(CU(cuMemcpyDtoH_v2)(words, p + at, n));
        for (size_t i = 0; i < n / 4; i++)
            if (words[i] != want) {
                fprintf(stderr, "%s, word %zu is %#x, not %#x\n", what, at / 4 + i, words[i], want);
                exit(1);
            }
    }
    free(words);
}

static bool
input_ended(void)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

static int
run_program(size_t total, size_t changed, unsigned modules)
{
    const size_t rest = total - changed;
    CUdeviceptr p, still = 0;
    double longest = 0;
    uint32_t n = 1;
    CUstream s;

    load_modules(modules);
    MUST(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    MUST(CU(cuMemAlloc_v2)(&p, changed));
    if (rest)
        MUST(CU(cuMemAlloc_v2)(&still, rest));
    if (rest)
        MUST(CU(cuMemsetD32_v2)(still, 0x5eed, rest / 4));
    MUST(CU(cuMemsetD32Async)(p, n, changed / 4, s));
    MUST(CU(cuStreamSynchronize)(s));
    printf("ready\n");
    (void)fflush(stdout);
    while (!input_ended()) {
        const double begin = now();

        MUST(CU(cuMemsetD32Async)(p, ++n, changed / 4, s));
        MUST(CU(cuStreamSynchronize)(s));
        longest = now() - begin > longest ? now() - begin : longest;
        (void)usleep(200);
    }
    check_words(p, changed, n, "in what changes");
    check_words(still, rest, 0x5eed, "in what does not change");
    printf("ok %u %.3f\n", n, longest * 1e3);
    return 0;
}

/* ---- the link -------------------------------------------------------------------------------- */

/* Each piece has memory, and a stream on which it is read and then written. */
static double
pass_once(CUdeviceptr from, CUdeviceptr to, char *through, const CUstream *streams, size_t size)
{
    const double begin = now();
    unsigned next = 0;

    for (size_t at = 0; at < size; at += PIECE, next = (next + 1) % PIECES) {
        const size_t n = size - at < PIECE ? size - at : PIECE;

        MUST(CU(cuMemcpyDtoHAsync_v2)(through + next * PIECE, from + at, n, streams[next]));
        MUST(CU(cuMemcpyHtoDAsync_v2)(to + at, through + next * PIECE, n, streams[next]));
    }
    for (unsigned i = 0; i < PIECES; i++)
        MUST(CU(cuStreamSynchronize)(streams[i]));
    return now() - begin;
}

static void
measure_link(size_t size)
{
    CUdeviceptr from, to;
    CUstream streams[PIECES];
    double best = 1e9;
    char *through;

    MUST(CU(cuMemAlloc_v2)(&from, size));
    MUST(CU(cuMemAlloc_v2)(&to, size));
    MUST(CU(cuMemsetD32_v2)(from, 1, size / 4));
    MUST(CU(cuMemsetD32_v2)(to, 2, size / 4));
    MUST(CU(cuMemHostAlloc)((void **)&through, PIECES * PIECE, CU_MEMHOSTALLOC_PORTABLE));
    memset(through, 0, PIECES * PIECE);
    for (unsigned i = 0; i < PIECES; i++)
        MUST(CU(cuStreamCreate)(&streams[i], CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 5; i++) {
        const double took = pass_once(from, to, through, streams, size);

        best = took < best ? took : best;
    }
    printf("%zu %.3f\n", size / MIB, best * 1e3);
    for (unsigned i = 0; i < PIECES; i++)
        MUST(CU(cuStreamDestroy_v2)(streams[i]));
    MUST(CU(cuMemFreeHost)(through));
    MUST(CU(cuMemFree_v2)(from));
    MUST(CU(cuMemFree_v2)(to));
}

int
main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: changes run TOTAL_MIB CHANGED_MIB [MODULES]\n"
                        "       changes link MIB...\n");
        return 2;
    }
    open_library();
    open_context();
    if (strcmp(argv[1], "run") == 0)
        return run_program(strtoul(argv[2], NULL, 10) * MIB,
                           (argc > 3 ? strtoul(argv[3], NULL, 10) : 1) * MIB,
                           argc > 4 ? (unsigned)strtoul(argv[4], NULL, 10) : 8);
    for (int i = 2; i < argc; i++)
        measure_link(strtoul(argv[i], NULL, 10) * MIB);
    return 0;
}
