/* Actions on objects that hold others: graphs, modules, libraries, contexts, threads. */
#include <string.h>

#include "stress.h"

#define GRAPH_WORDS 1000

/* Launches a graph a few times, on any of the streams. */
static void
launch_graph(struct worker *w, CUgraph g, CUdeviceptr a, uint32_t expected)
{
    CUgraphExec exec;
    const uint32_t times = 1 + stress_random(w, 4);
    CUstream s = stress_stream(w);

    MUST(w, cuGraphInstantiateWithFlags(&exec, g, 0));
    for (uint32_t i = 0; i < times; i++)
        MUST(w, cuGraphLaunch(exec, s));
    if (stress_random(w, 2)) {
        MUST(w, cuGraphExecDestroy(exec)); /* while it runs */
        exec = NULL;
    }
    MUST(w, cuStreamSynchronize(s));
    MUST(w, cuMemcpyDtoH_v2(w->host, a, GRAPH_WORDS * 4));
    CHECK_WORDS(w, w->host, GRAPH_WORDS, expected, 1);
    if (exec)
        MUST(w, cuGraphExecDestroy(exec));
}

void
act_capture(struct worker *w)
{
    CUmodule m = stress_device(w)->module;
    CUstream s = w->streams[0], other = w->streams[1];
    CUevent fork, join;
    CUdeviceptr a;
    CUgraph g;

    MUST(w, cuMemAlloc_v2(&a, GRAPH_WORDS * 4));
    MUST(w, cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    MUST(w, cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    MUST(w, cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    stress_fill(w, m, s, a, GRAPH_WORDS, 1);
    MUST(w, cuEventRecord(fork, s));
    MUST(w, cuStreamWaitEvent(other, fork, 0));
    stress_mix(w, m, other, a, GRAPH_WORDS, 1, 2);
    MUST(w, cuMemcpyDtoHAsync_v2(w->pinned, a, GRAPH_WORDS * 4, other));
    MUST(w, cuEventRecord(join, other));
    MUST(w, cuStreamWaitEvent(s, join, 0));
    stress_mix(w, m, s, a, GRAPH_WORDS, 1, 4);
    MUST(w, cuStreamEndCapture(s, &g));
    launch_graph(w, g, a, 7);
    CHECK_WORDS(w, w->pinned, GRAPH_WORDS, 3, 1);
    MUST(w, cuGraphDestroy(g));
    MUST(w, cuEventDestroy_v2(fork));
    MUST(w, cuEventDestroy_v2(join));
    MUST(w, cuMemFree_v2(a));
}

static void
count_call(void *arg)
{
    /* Relaxed: the reader waits for the stream first. */
    atomic_fetch_add_explicit((_Atomic uint32_t *)arg, 1, memory_order_relaxed);
}

void
act_graph(struct worker *w)
{
    struct device *d = stress_device(w);
    _Atomic uint32_t calls = 0;
    uint32_t n = GRAPH_WORDS, times = 1, plus = 6, first = 30;
    CUdeviceptr a;
    CUgraph g, copy;
    CUgraphNode set, fill, call, mix;
    void *fill_params[] = {&a, &n, &first}, *mix_params[] = {&a, &n, &times, &plus};
    CUDA_KERNEL_NODE_PARAMS_v2 kernel = {.func = stress_function(w, d->module, "fill"),
                                         .gridDimX = (GRAPH_WORDS + 63) / 64,
                                         .gridDimY = 1,
                                         .gridDimZ = 1,
                                         .blockDimX = 64,
                                         .blockDimY = 1,
                                         .blockDimZ = 1,
                                         .kernelParams = fill_params};
    CUDA_HOST_NODE_PARAMS_v1 host = {.fn = count_call, .userData = &calls};

    MUST(w, cuMemAlloc_v2(&a, GRAPH_WORDS * 4));

    CUDA_MEMSET_NODE_PARAMS_v1 zero = {
        .dst = a, .value = 0, .elementSize = 4, .width = GRAPH_WORDS, .height = 1};

    MUST(w, cuGraphCreate(&g, 0));
    MUST(w, cuGraphAddMemsetNode(&set, g, NULL, 0, &zero, d->primary));
    MUST(w, cuGraphAddKernelNode_v2(&fill, g, &set, 1, &kernel));
    MUST(w, cuGraphAddHostNode(&call, g, &set, 1, &host));
    kernel.func = stress_function(w, d->module, "mix");
    kernel.kernelParams = mix_params;

    const CUgraphNode both[] = {fill, call};

    MUST(w, cuGraphAddKernelNode_v2(&mix, g, both, 2, &kernel));
    MUST(w, cuGraphClone(&copy, g));
    launch_graph(w, g, a, 36);
    MUST(w, cuGraphDestroy(g));
    launch_graph(w, copy, a, 36);
    MUST(w, cuGraphDestroy(copy));
    SAME(w, calls >= 2 && calls <= 8, true);
    MUST(w, cuMemFree_v2(a));
}

/* The module's own counter begins at 7 in every copy. */
static void
count_in(struct worker *w, CUmodule m, CUfunction f, CUdeviceptr counter)
{
    CUstream s = stress_stream(w);
    uint32_t each = 1, seen = 0;
    CUdeviceptr a;
    void *params[] = {&a, &each};

    (void)m;
    MUST(w, cuMemAlloc_v2(&a, 8));
    MUST(w, cuMemsetD32Async(a, 0, 2, s));
    MUST(w, cuLaunchKernel(f, 2, 1, 1, 50, 1, 1, 0, s, params, NULL));
    MUST(w, cuStreamSynchronize(s));
    MUST(w, cuMemcpyDtoH_v2(&seen, counter, 4));
    SAME(w, seen, 107);
    MUST(w, cuMemFree_v2(a));
}

void
act_module(struct worker *w)
{
    CUmodule m;
    CUdeviceptr counter;
    size_t size;

    MUST(w, cuModuleLoadData(&m, stress_ptx));
    MUST(w, cuModuleGetGlobal_v2(&counter, &size, m, "counter"));
    SAME(w, size, 4);
    count_in(w, m, stress_function(w, m, "count"), counter);
    MUST(w, cuModuleUnload(m));
}

void
act_library(struct worker *w)
{
    CUlibrary l;
    CUkernel k;
    CUdeviceptr counter;
    size_t size;

    MUST(w, cuLibraryLoadData(&l, stress_ptx, NULL, NULL, 0, NULL, NULL, 0));
    MUST(w, cuLibraryGetKernel(&k, l, "count"));
    MUST(w, cuLibraryGetGlobal(&counter, &size, l, "counter"));
    count_in(w, NULL, (CUfunction)k, counter);
    MUST(w, cuLibraryUnload(l));
}

/* A context of the thread's own, destroyed with everything in it. */
void
act_context(struct worker *w)
{
    CUcontext c;
    CUmodule m;
    CUstream s;
    CUdeviceptr a;
    uint32_t seen[64];

    MUST(w, cuCtxCreate_v2(&c, 0, stress_device(w)->device));
    MUST(w, cuModuleLoadData(&m, stress_ptx));
    MUST(w, cuStreamCreate(&s, CU_STREAM_DEFAULT));
    MUST(w, cuMemAlloc_v2(&a, 64 * 4));
    stress_fill(w, m, s, a, 64, 8);
    MUST(w, cuCtxSynchronize());
    MUST(w, cuMemcpyDtoH_v2(seen, a, sizeof seen));
    CHECK_WORDS(w, seen, 64, 8, 1);
    if (stress_random(w, 2))
        stress_fill(w, m, s, a, 64, 9); /* completes before the context ends */
    MUST(w, cuCtxDestroy_v2(c));
    SAME(w, cuCtxGetCurrent(&c), CUDA_SUCCESS);
    SAME(w, (uintptr_t)c, (uintptr_t)stress_device(w)->primary);
}

void
act_primary(struct worker *w)
{
    CUcontext c;
    unsigned flags;
    int active = 0;

    MUST(w, cuDevicePrimaryCtxRetain(&c, stress_device(w)->device));
    SAME(w, (uintptr_t)c, (uintptr_t)stress_device(w)->primary);
    MUST(w, cuDevicePrimaryCtxGetState(stress_device(w)->device, &flags, &active));
    SAME(w, active, 1);
    MUST(w, cuDevicePrimaryCtxRelease_v2(stress_device(w)->device));
}

/* A kernel that fails makes its context unusable, and nothing else. */
void
act_failure(struct worker *w)
{
    CUcontext c;
    CUmodule m;
    CUdeviceptr nowhere = 16;
    void *params[] = {&nowhere};

    MUST(w, cuCtxCreate_v2(&c, 0, stress_device(w)->device));
    MUST(w, cuModuleLoadData(&m, stress_ptx));
    MUST(w,
         cuLaunchKernel(stress_function(w, m, "wrong"), 3, 1, 1, 40, 1, 1, 0, NULL, params, NULL));
    SAME(w, cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    SAME(w, cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    MUST(w, cuCtxDestroy_v2(c));
}

static void *
short_life(void *arg)
{
    struct worker *w = arg;

    MUST(w, cuCtxSetCurrent(stress_device(w)->primary));
    act_defaults(w);
    act_plain(w);
    return NULL;
}

/* Starts threads with streams of their own. The worker waits for them, so they can use its
 * memory. */
void
act_thread(struct worker *w)
{
    pthread_t thread;

    SAME(w, pthread_create(&thread, NULL, short_life, w), 0);
    SAME(w, pthread_join(thread, NULL), 0);
}
