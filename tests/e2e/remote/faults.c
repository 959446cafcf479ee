/* A program that uses a bit of everything and prints how far it came. See faults.py.
 *
 *     remote_faults [wait]
 *
 * Every call succeeds, with the right bytes, until the first one that fails. From then on, every
 * call that needs the device returns the same error, and nothing hangs or crashes. The program
 * writes one line, "done" or "lost at CALL: ERROR", and exits with 0 if all of this was so. With
 * `wait` it writes "ready" and waits for the end of its input before the last part.
 */
#include "conformance/conf.h"

#include <pthread.h>
#include <stdatomic.h>

#define WORDS 1024
#define LARGE (300u << 10) /* bytes: more than a message holds */

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry add(.param .u64 p, .param .u32 v)\n{\n"
    ".reg .b32 %r<4>; .reg .b64 %d<2>;\n"
    "ld.param.u64 %d1, [p];\nld.param.u32 %r1, [v];\n"
    "ld.global.u32 %r2, [%d1];\nadd.u32 %r2, %r2, %r1;\nst.global.u32 [%d1], %r2;\nret;\n}\n";

static _Atomic int first; /* CUresult; 0: none yet */
static CUcontext ctx;

/* Remembers the first failure, and checks that later ones are the same. */
static bool
did(CUresult r, const char *what)
{
    int none = 0;

    if (r == CUDA_SUCCESS)
        return atomic_load(&first) == 0;
    if (atomic_compare_exchange_strong(&first, &none, (int)r)) {
        printf("lost at %s: %d\n", what, (int)r);
        (void)fflush(stdout);
    }
    CHECK(r == (CUresult)atomic_load(&first), "%s is %d after %d", what, (int)r, first);
    return false;
}

#define DID(call) did(call, #call)

/* Bytes are compared only if there was no failure so far. */
static void
same(const uint32_t *p, size_t n, uint32_t expected)
{
    for (size_t i = 0; i < n && atomic_load(&first) == 0; i++)
        CHECK(p[i] == expected, "word %zu is %u, not %u", i, p[i], expected);
}

static void
count_run(void *arg)
{
    atomic_fetch_add((_Atomic int *)arg, 1);
}

static bool
memory(void)
{
    static uint32_t host[LARGE / 4], back[LARGE / 4];
    uint32_t *pinned = NULL;
    CUdeviceptr p = 0, q = 0;
    CUstream s = NULL;

    for (size_t i = 0; i < LARGE / 4; i++)
        host[i] = 7;
    memset(back, 0, sizeof back);
    if (!DID(CU(cuStreamCreate)(&s, 0)) || !DID(CU(cuMemAlloc_v2)(&p, LARGE)) ||
        !DID(CU(cuMemAlloc_v2)(&q, LARGE)) ||
        !DID(CU(cuMemHostAlloc)((void **)&pinned, LARGE, 0)) ||
        !DID(CU(cuMemcpyHtoD_v2)(p, host, LARGE)) || !DID(CU(cuMemcpyDtoD_v2)(q, p, LARGE)) ||
        !DID(CU(cuMemcpyDtoH_v2)(back, q, LARGE)))
        return false;
    same(back, LARGE / 4, 7);
    memset(back, 0, sizeof back);
    if (!DID(CU(cuMemsetD32Async)(p, 9, WORDS, s)) ||
        !DID(CU(cuMemcpyDtoHAsync_v2)(back, p, WORDS * 4, s)) ||
        !DID(CU(cuMemcpyDtoHAsync_v2)(pinned, q, LARGE, s)) || !DID(CU(cuStreamSynchronize)(s)))
        return false;
    same(back, WORDS, 9);
    same(pinned, LARGE / 4, 7);
    return DID(CU(cuMemFreeHost)(pinned)) && DID(CU(cuMemFree_v2)(p)) && DID(CU(cuMemFree_v2)(q)) &&
           DID(CU(cuStreamDestroy_v2)(s));
}

static bool
run_work(void)
{
    CUstream s = NULL;
    CUevent e = NULL;
    CUmodule m = NULL;
    CUfunction f = NULL;
    CUdeviceptr p = 0;
    CUgraph g = NULL;
    CUgraphExec x = NULL;
    uint32_t three = 3, got = 0;
    _Atomic int ran = 0;
    void *params[] = {&p, &three};

    if (!DID(CU(cuModuleLoadData)(&m, ptx)) || !DID(CU(cuModuleGetFunction)(&f, m, "add")) ||
        !DID(CU(cuMemAlloc_v2)(&p, 4096)) || !DID(CU(cuMemsetD32_v2)(p, 0, WORDS)) ||
        !DID(CU(cuCtxSynchronize)()) || !DID(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING)) ||
        !DID(CU(cuEventCreate)(&e, 0)))
        return false;
    for (int i = 0; i < 5; i++) {
        if (!DID(CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL)) ||
            !DID(CU(cuLaunchHostFunc)(s, count_run, (void *)&ran)))
            return false;
    }
    if (!DID(CU(cuEventRecord)(e, s)) || !DID(CU(cuEventSynchronize)(e)) ||
        !DID(CU(cuMemcpyDtoH_v2)(&got, p, 4)))
        return false;
    same(&got, 1, 15);
    CHECK(atomic_load(&first) || ran == 5, "%d functions ran", ran);
    if (!DID(CU(cuStreamBeginCapture_v2)(s, CU_STREAM_CAPTURE_MODE_RELAXED)) ||
        !DID(CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL)) ||
        !DID(CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL)) ||
        !DID(CU(cuStreamEndCapture)(s, &g)) || !DID(CU(cuGraphInstantiateWithFlags)(&x, g, 0)) ||
        !DID(CU(cuGraphLaunch)(x, s)) || !DID(CU(cuStreamSynchronize)(s)) ||
        !DID(CU(cuMemcpyDtoH_v2)(&got, p, 4)))
        return false;
    same(&got, 1, 21);
    return DID(CU(cuGraphExecDestroy)(x)) && DID(CU(cuGraphDestroy)(g)) &&
           DID(CU(cuEventDestroy_v2)(e)) && DID(CU(cuStreamDestroy_v2)(s)) &&
           DID(CU(cuMemFree_v2)(p)) && DID(CU(cuModuleUnload)(m));
}

/* Two threads, so that there are several channels with tickets between them. */
static void *
thread(void *arg)
{
    (void)arg;
    if (DID(CU(cuCtxSetCurrent)(ctx)))
        (void)memory();
    return NULL;
}

static void
both(void)
{
    pthread_t other;

    CHECK(pthread_create(&other, NULL, thread, NULL) == 0, "no thread");
    (void)run_work();
    CHECK(pthread_join(other, NULL) == 0, "no end of the thread");
}

/* After the loss, every call that needs the device reports it. */
static void
stays_lost(void)
{
    static uint32_t host[WORDS];
    CUdeviceptr p;
    CUstream s;
    void *pinned;
    size_t a, b;

    CHECK(CU(cuCtxSynchronize)() == (CUresult)first, "not for cuCtxSynchronize");
    CHECK(CU(cuMemAlloc_v2)(&p, 4096) == (CUresult)first, "not for cuMemAlloc");
    CHECK(CU(cuStreamCreate)(&s, 0) == (CUresult)first, "not for cuStreamCreate");
    CHECK(CU(cuStreamSynchronize)(NULL) == (CUresult)first, "not for cuStreamSynchronize");
    CHECK(CU(cuMemHostAlloc)(&pinned, 4096, 0) == (CUresult)first, "not for cuMemHostAlloc");
    CHECK(CU(cuMemGetInfo_v2)(&a, &b) == (CUresult)first, "not for cuMemGetInfo");
    (void)host;
}

int
main(int argc, char **argv)
{
    const bool waits = argc > 1 && strcmp(argv[1], "wait") == 0;
    char line[16];

    if (!DID(CU(cuInit)(0)))
        return 0;
    if (DID(CU(cuDevicePrimaryCtxRetain)(&ctx, 0)) && DID(CU(cuCtxSetCurrent)(ctx))) {
        both();
        if (waits && atomic_load(&first) == 0) {
            printf("ready\n");
            (void)fflush(stdout);
            while (fgets(line, sizeof line, stdin))
                ;
        }
        if (atomic_load(&first) == 0 && memory() && run_work() && DID(CU(cuCtxSynchronize)()))
            printf("done\n");
        if (atomic_load(&first) != 0)
            stays_lost();
    }
    return 0;
}
