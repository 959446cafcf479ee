/* A program whose device memory never rests: one thread changes pieces of a large allocation,
 * others allocate and free large blocks, capture graphs, make and destroy contexts, load and unload
 * code, and allocate and free pinned memory. Each checks all of its results, so whatever becomes of
 * the GPU meanwhile, nothing may be noticed.
 *
 *     snap_restless SECONDS [MIB [THREADS]]
 *
 * MIB: of memory, of which a small part changes all the time. THREADS: the first so many; all
 * of them if it is not given.
 *
 * It ends earlier at SIGTERM. It says "ready" when it begins, and prints "ok" and how many steps it
 * has made at the end.
 */
#include "conformance/conf.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OK(call) CHECK_IS(call, CUDA_SUCCESS)
#define MIB ((size_t)1 << 20)
#define PIECE 16384u /* words that change at a time */
#define BLOCK (96 * MIB)
#define BLOCKS 3u /* more than is kept in spare, so that some are really unmapped */

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    /* p[i] = p[i] * 1664525 + k + i */
    ".visible .entry mix(.param .u64 p, .param .u32 n, .param .u32 k)\n{\n"
    ".reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<4>;\n"
    "ld.param.u64 %d0, [p]; ld.param.u32 %r0, [n]; ld.param.u32 %r1, [k];\n"
    "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
    "mad.lo.u32 %r2, %r2, %r3, %r4; setp.ge.u32 %p, %r2, %r0; @%p ret;\n"
    "mul.wide.u32 %d1, %r2, 4; add.u64 %d0, %d0, %d1; ld.global.u32 %r5, [%d0];\n"
    "mad.lo.u32 %r5, %r5, 1664525, %r1; add.u32 %r5, %r5, %r2; st.global.u32 [%d0], %r5; ret;\n}\n";

/* sum += k; p[0] = sum */
static const char summing[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.global .align 4 .u32 sum = 5;\n"
    ".visible .entry bump(.param .u64 p, .param .u32 k)\n{\n"
    ".reg .b32 %r<3>; .reg .b64 %d<2>;\n"
    "ld.param.u64 %d0, [p]; ld.param.u32 %r0, [k]; ld.global.u32 %r1, [sum];\n"
    "add.u32 %r1, %r1, %r0; st.global.u32 [sum], %r1; st.global.u32 [%d0], %r1; ret;\n}\n";

#define THREADS 6
#define PINNED MIB

static CUcontext primary;
static CUfunction mix;
static atomic_bool ends;
static atomic_ulong steps[THREADS];
static volatile sig_atomic_t asked_to_end;
static size_t bytes = 32 * MIB;

static void
run_mix(CUdeviceptr p, uint32_t n, uint32_t k, CUstream s)
{
    void *params[] = {&p, &n, &k};

    OK(CU(cuLaunchKernel)(mix, (n + 255) / 256, 1, 1, 256, 1, 1, 0, s, params, NULL));
}

static void
mix_here(uint32_t *p, uint32_t n, uint32_t k)
{
    for (uint32_t i = 0; i < n; i++)
        p[i] = p[i] * 1664525 + k + i;
}

static uint32_t
next_random(uint32_t *seed)
{
    return *seed = *seed * 1103515245 + 12345;
}

static void
compare(const uint32_t *got, const uint32_t *want, size_t words, const char *what)
{
    for (size_t i = 0; i < words; i++)
        if (got[i] != want[i]) {
            printf("%s: word %zu is %#x, not %#x\n", what, i, got[i], want[i]);
            exit(1);
        }
}

/* Changes pieces of a large allocation; this process computes the same. */
static void *
change_pieces(void *arg)
{
    const size_t words = bytes / 4;
    uint32_t *want = calloc(words, 4), *got = malloc(bytes);
    uint32_t seed = 1;
    CUdeviceptr p;
    CUstream s;

    (void)arg;
    OK(CU(cuCtxSetCurrent)(primary));
    OK(CU(cuStreamCreate)(&s, CU_STREAM_DEFAULT));
    OK(CU(cuMemAlloc_v2)(&p, bytes));
    OK(CU(cuMemsetD32_v2)(p, 0, words));
    for (unsigned n = 1; !ends; n++) {
        const size_t at = next_random(&seed) % (words / PIECE) / (n % 4 ? 8 : 1) * PIECE;

        run_mix(p + at * 4, PIECE, n, s);
        mix_here(want + at, PIECE, n);
        if (n % 64 == 0) {
            OK(CU(cuMemcpyDtoHAsync_v2)(got + at, p + at * 4, (size_t)PIECE * 4, s));
            OK(CU(cuStreamSynchronize)(s));
            compare(got + at, want + at, PIECE, "a piece");
        }
        steps[0]++;
        (void)usleep(100);
    }
    OK(CU(cuStreamSynchronize)(s));
    OK(CU(cuMemcpyDtoH_v2)(got, p, bytes));
    compare(got, want, words, "all pieces");
    free(want);
    free(got);
    return NULL;
}

/* Allocates and frees blocks, so that memory is mapped and unmapped all the time. */
static void *
change_blocks(void *arg)
{
    static uint32_t want[PIECE], got[PIECE];
    uint32_t seed = 7;

    (void)arg;
    OK(CU(cuCtxSetCurrent)(primary));
    for (unsigned n = 1; !ends; n++) {
        CUdeviceptr p[BLOCKS];
        size_t at[BLOCKS];

        for (unsigned i = 0; i < BLOCKS; i++) {
            at[i] = next_random(&seed) % (BLOCK / 4 / PIECE) * PIECE * 4;
            OK(CU(cuMemAlloc_v2)(&p[i], BLOCK));
            OK(CU(cuMemsetD32_v2)(p[i] + at[i], n + i, PIECE));
            run_mix(p[i] + at[i], PIECE, i, NULL);
        }
        for (unsigned i = 0; i < BLOCKS; i++) {
            OK(CU(cuMemcpyDtoH_v2)(got, p[i] + at[i], sizeof got));
            for (size_t k = 0; k < PIECE; k++)
                want[k] = n + i;
            mix_here(want, PIECE, i);
            compare(got, want, PIECE, "a block");
            OK(CU(cuMemFree_v2)(p[i]));
        }
        steps[1]++;
    }
    return NULL;
}

/* Makes contexts with memory, and destroys them. */
static void *
change_contexts(void *arg)
{
    static uint32_t want[PIECE], got[PIECE];

    (void)arg;
    for (unsigned n = 1; !ends; n++) {
        CUcontext c;
        CUdeviceptr p;

        OK(CU(cuCtxCreate_v2)(&c, 0, 0));
        OK(CU(cuMemAlloc_v2)(&p, 4 * MIB));
        OK(CU(cuMemsetD32_v2)(p, n, PIECE));
        for (size_t k = 0; k < PIECE; k++)
            want[k] = n;
        OK(CU(cuMemcpyDtoH_v2)(got, p, sizeof got));
        compare(got, want, PIECE, "a context");
        OK(CU(cuCtxDestroy_v2)(c));
        steps[2]++;
        (void)usleep(100);
    }
    return NULL;
}

/* Captures and launches graphs. While it captures, other threads may not do this or that. */
static void *
capture_graphs(void *arg)
{
    static uint32_t want[PIECE], got[PIECE], want_kept[PIECE];
    CUdeviceptr p, q;
    CUgraphExec kept;
    CUgraph first;
    CUstream s;

    (void)arg;
    OK(CU(cuCtxSetCurrent)(primary));
    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    OK(CU(cuMemAlloc_v2)(&p, sizeof want));
    OK(CU(cuMemAlloc_v2)(&q, sizeof want));
    OK(CU(cuMemsetD32Async)(p, 0, PIECE, s));
    OK(CU(cuMemsetD32Async)(q, 0, PIECE, s));
    OK(CU(cuStreamBeginCapture_v2)(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    run_mix(q, PIECE, 7, s);
    OK(CU(cuStreamEndCapture)(s, &first));
    OK(CU(cuGraphInstantiateWithFlags)(&kept, first, 0));
    for (unsigned n = 1; !ends; n++) {
        CUgraph g;
        CUgraphExec x;

        OK(CU(cuStreamBeginCapture_v2)(s, CU_STREAM_CAPTURE_MODE_RELAXED));
        run_mix(p, PIECE, n, s);
        run_mix(p, PIECE, n + 1, s);
        OK(CU(cuStreamEndCapture)(s, &g));
        OK(CU(cuGraphInstantiateWithFlags)(&x, g, 0));
        OK(CU(cuGraphLaunch)(x, s));
        OK(CU(cuGraphLaunch)(kept, s));
        OK(CU(cuStreamSynchronize)(s));
        mix_here(want, PIECE, n);
        mix_here(want, PIECE, n + 1);
        mix_here(want_kept, PIECE, 7);
        OK(CU(cuGraphExecDestroy)(x));
        OK(CU(cuGraphDestroy)(g));
        steps[3]++;
        (void)usleep(500);
    }
    OK(CU(cuMemcpyDtoH_v2)(got, p, sizeof got));
    compare(got, want, PIECE, "a graph");
    OK(CU(cuMemcpyDtoH_v2)(got, q, sizeof got));
    compare(got, want_kept, PIECE, "a graph that stays");
    return NULL;
}

/* Loads code with a variable, changes that, and unloads it. */
static void *
change_modules(void *arg)
{
    CUdeviceptr p;

    (void)arg;
    OK(CU(cuCtxSetCurrent)(primary));
    OK(CU(cuMemAlloc_v2)(&p, 4));
    for (unsigned n = 1; !ends; n++) {
        uint32_t want = 5, got = 0;
        CUfunction f;
        CUmodule m;

        OK(CU(cuModuleLoadData)(&m, summing));
        OK(CU(cuModuleGetFunction)(&f, m, "bump"));
        OK(CU(cuFuncSetAttribute)(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                  (int)(1024 * (n % 3 + 1))));
        for (uint32_t k = n; k < n + 8; k++) {
            void *params[] = {&p, &k};

            OK(CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 1024 * (n % 3 + 1), NULL, params, NULL));
            want += k;
            (void)usleep(2000);
        }
        OK(CU(cuMemcpyDtoH_v2)(&got, p, 4));
        compare(&got, &want, 1, "a variable");
        OK(CU(cuModuleUnload)(m));
        steps[4]++;
    }
    return NULL;
}

/* Pinned memory that the device changes: some stays, some is allocated and freed. */
static void *
change_pinned(void *arg)
{
    static uint32_t kept[PIECE], want[PIECE];
    uint32_t *stays, *goes[BLOCKS];
    CUdeviceptr p;

    (void)arg;
    OK(CU(cuCtxSetCurrent)(primary));
    OK(CU(cuMemHostAlloc)((void **)&stays, PINNED, CU_MEMHOSTALLOC_DEVICEMAP));
    memset(stays, 0, PINNED);
    for (unsigned n = 1; !ends; n++) {
        for (unsigned i = 0; i < BLOCKS; i++) {
            OK(CU(cuMemHostAlloc)((void **)&goes[i], PINNED * (i + 1), CU_MEMHOSTALLOC_DEVICEMAP));
            for (size_t k = 0; k < PIECE; k++)
                goes[i][k] = n + i;
            OK(CU(cuMemHostGetDevicePointer_v2)(&p, goes[i], 0));
            run_mix(p, PIECE, n, CU_STREAM_PER_THREAD);
        }
        OK(CU(cuMemHostGetDevicePointer_v2)(&p, stays, 0));
        run_mix(p, PIECE, n, CU_STREAM_PER_THREAD);
        mix_here(kept, PIECE, n);
        (void)usleep(n % 7 * 1000);
        OK(CU(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
        compare(stays, kept, PIECE, "pinned memory");
        for (unsigned i = 0; i < BLOCKS; i++) {
            for (size_t k = 0; k < PIECE; k++)
                want[k] = n + i;
            mix_here(want, PIECE, n);
            compare(goes[i], want, PIECE, "new pinned memory");
            if (n % 4 || i)
                OK(CU(cuMemFreeHost)(goes[i]));
        }
        if (n % 4 == 0) { /* this one is there for a while */
            (void)usleep(50000);
            OK(CU(cuMemFreeHost)(goes[0]));
        }
        steps[5]++;
    }
    return NULL;
}

static void
ask_to_end(int number)
{
    (void)number;
    asked_to_end = 1;
}

int
main(int argc, char **argv)
{
    static void *(*const all[THREADS])(void *) = {change_pieces,   change_blocks,  capture_graphs,
                                                  change_contexts, change_modules, change_pinned};
    const size_t count = argc > 3 ? strtoul(argv[3], NULL, 10) % (THREADS + 1) : THREADS;
    const double seconds = argc > 1 ? strtod(argv[1], NULL) : 5;
    pthread_t threads[THREADS];
    CUmodule m;

    if (argc > 2)
        bytes = strtoul(argv[2], NULL, 10) * MIB;
    (void)signal(SIGTERM, ask_to_end);
    conf_open();
    OK(CU(cuInit)(0));
    OK(CU(cuDevicePrimaryCtxRetain)(&primary, 0));
    OK(CU(cuCtxSetCurrent)(primary));
    OK(CU(cuModuleLoadData)(&m, ptx));
    OK(CU(cuModuleGetFunction)(&mix, m, "mix"));
    printf("ready\n");
    (void)fflush(stdout);
    for (size_t i = 0; i < count; i++)
        CHECK_IS(pthread_create(&threads[i], NULL, all[i], NULL), 0);
    for (double passed = 0; passed < seconds && !asked_to_end; passed += 0.05)
        (void)nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    ends = true;
    for (size_t i = 0; i < count; i++)
        (void)pthread_join(threads[i], NULL);
    printf("ok");
    for (size_t i = 0; i < THREADS; i++)
        printf(" %lu", steps[i]);
    printf("\n");
    return 0;
}
