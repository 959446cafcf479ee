/* A program that uses a bit of everything on a GPU elsewhere, while something fails in it, in the
 * server or in its worker. See sweep.py.
 *
 * It does the same twice. Each time every call succeeds, with the right bytes, or one fails with an
 * error that has a name. The program prints one line for each time, "done" or "failed at CALL:
 * NAME", and exits with 0. Whether the second time may fail is for sweep.py to say.
 */
#include "conformance/conf.h"

#include <pthread.h>
#include <stdatomic.h>

#define WORDS 1024
#define LARGE (300u << 10) /* bytes: more than a message holds */

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .u32 factor = 3;\n"
    ".visible .entry add(.param .u64 p, .param .u32 v)\n{\n"
    ".reg .b32 %r<4>; .reg .b64 %d<2>;\n"
    "ld.param.u64 %d1, [p];\nld.param.u32 %r1, [v];\n"
    "ld.global.u32 %r2, [%d1];\nadd.u32 %r2, %r2, %r1;\nst.global.u32 [%d1], %r2;\nret;\n}\n";

static _Atomic int first; /* CUresult; 0: nothing has failed this time */

static bool
did(CUresult r, const char *call)
{
    const char *name = NULL;
    int none = 0;

    if (r == CUDA_SUCCESS)
        return true;
    CHECK(CU(cuGetErrorName)(r, &name) == CUDA_SUCCESS && name, "%s: error %d has no name", call,
          (int)r);
    if (atomic_compare_exchange_strong(&first, &none, (int)r))
        printf("failed at %.*s: %s\n", (int)strcspn(call, "("), call, name);
    return false;
}

#define DID(call, ...) did(CU(call)(__VA_ARGS__), #call)

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

/* What was created is destroyed, whatever fails in between. */
static void
use_memory(void)
{
    uint32_t *host = malloc(LARGE), *back = calloc(1, LARGE), *pinned = NULL;
    CUdeviceptr p = 0, q = 0;
    CUstream s = NULL;

    CHECK(host && back, "no memory");
    for (size_t i = 0; i < LARGE / 4; i++)
        host[i] = 7;
    if (DID(cuStreamCreate, &s, 0) && DID(cuMemAlloc_v2, &p, LARGE) &&
        DID(cuMemAlloc_v2, &q, LARGE) && DID(cuMemHostAlloc, (void **)&pinned, LARGE, 0) &&
        DID(cuMemcpyHtoD_v2, p, host, LARGE) && DID(cuMemcpyDtoD_v2, q, p, LARGE) &&
        DID(cuMemcpyDtoH_v2, back, q, LARGE)) {
        same(back, LARGE / 4, 7);
        if (DID(cuMemsetD32Async, p, 9, WORDS, s) &&
            DID(cuMemcpyDtoHAsync_v2, back, p, WORDS * 4, s) &&
            DID(cuMemcpyDtoHAsync_v2, pinned, q, LARGE, s) && DID(cuStreamSynchronize, s)) {
            same(back, WORDS, 9);
            same(pinned, LARGE / 4, 7);
        }
    }
    if (pinned)
        (void)DID(cuMemFreeHost, pinned);
    if (q)
        (void)DID(cuMemFree_v2, q);
    if (p)
        (void)DID(cuMemFree_v2, p);
    if (s)
        (void)DID(cuStreamDestroy_v2, s);
    free(host);
    free(back);
}

static void
use_graph(CUfunction f, CUstream s, CUdeviceptr p)
{
    uint32_t three = 3, got = 0;
    void *params[] = {&p, &three};
    CUgraph g = NULL;
    CUgraphExec x = NULL;

    if (!DID(cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_RELAXED))
        return;

    const bool launched = DID(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL) &&
                          DID(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL);

    if (DID(cuStreamEndCapture, s, &g) && launched && DID(cuGraphInstantiateWithFlags, &x, g, 0) &&
        DID(cuGraphLaunch, x, s) && DID(cuStreamSynchronize, s) && DID(cuMemcpyDtoH_v2, &got, p, 4))
        same(&got, 1, 21);
    if (x)
        (void)DID(cuGraphExecDestroy, x);
    if (g)
        (void)DID(cuGraphDestroy, g);
}

static void
use_kernel(CUmodule m)
{
    CUstream s = NULL;
    CUevent e = NULL;
    CUfunction f = NULL;
    CUdeviceptr p = 0, factor;
    size_t size;
    uint32_t three = 3, got = 0;
    static _Atomic int ran; /* static: a function may run after a failure */
    void *params[] = {&p, &three};
    bool ok = DID(cuModuleGetFunction, &f, m, "add") &&
              DID(cuModuleGetGlobal_v2, &factor, &size, m, "factor") &&
              DID(cuMemcpyDtoH_v2, &got, factor, 4) && DID(cuMemAlloc_v2, &p, 4096) &&
              DID(cuMemsetD32_v2, p, 0, WORDS) && DID(cuCtxSynchronize) &&
              DID(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING) && DID(cuEventCreate, &e, 0);

    if (ok)
        same(&got, 1, 3);
    atomic_store(&ran, 0);
    for (int i = 0; ok && i < 5; i++)
        ok = DID(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL) &&
             DID(cuLaunchHostFunc, s, count_run, (void *)&ran);
    if (ok && DID(cuEventRecord, e, s) && DID(cuEventSynchronize, e) &&
        DID(cuMemcpyDtoH_v2, &got, p, 4)) {
        same(&got, 1, 15);
        CHECK(atomic_load(&first) || ran == 5, "%d functions ran", ran);
        use_graph(f, s, p);
    }
    if (e)
        (void)DID(cuEventDestroy_v2, e);
    if (s)
        (void)DID(cuStreamDestroy_v2, s);
    if (p)
        (void)DID(cuMemFree_v2, p);
}

/* A thread of its own, so that there are several channels with tickets between them. */
static void *
thread_memory(void *context)
{
    if (DID(cuCtxSetCurrent, context))
        use_memory();
    return NULL;
}

static void
use_context(CUcontext ctx)
{
    pthread_t other;
    CUmodule m = NULL;
    size_t a, b;

    CHECK(pthread_create(&other, NULL, thread_memory, ctx) == 0, "no thread");
    if (DID(cuModuleLoadData, &m, ptx)) {
        use_kernel(m);
        (void)DID(cuModuleUnload, m);
    }
    CHECK(pthread_join(other, NULL) == 0, "no end of the thread");
    (void)DID(cuMemGetInfo_v2, &a, &b);
    (void)DID(cuCtxSynchronize);
}

static void
run_once(void)
{
    CUcontext ctx = NULL;

    atomic_store(&first, 0);
    if (DID(cuInit, 0) && DID(cuDevicePrimaryCtxRetain, &ctx, 0)) {
        if (DID(cuCtxSetCurrent, ctx)) {
            use_context(ctx);
            (void)DID(cuCtxSetCurrent, NULL);
        }
        (void)DID(cuDevicePrimaryCtxRelease_v2, 0);
    }
    if (atomic_load(&first) == 0)
        printf("done\n");
    (void)fflush(stdout);
}

int
main(void)
{
    run_once();
    run_once();
    return 0;
}
