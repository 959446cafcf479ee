/* Actions on streams: kernels that wait or do not wait, events, functions of the program. */
#include <string.h>

#include "stress.h"

void
act_barrier(struct worker *w)
{
    const uint32_t blocks = 1 + stress_random(w, 16), n = blocks * 128;
    CUmodule m = stress_device(w)->module;
    CUstream s = stress_stream(w);
    CUdeviceptr a;
    void *params[] = {&a};

    MUST(w, cuMemAlloc_v2(&a, n * 4ul));
    stress_fill(w, m, s, a, n, 0);
    for (int i = 0; i < 3; i++)
        MUST(w, cuLaunchKernel(stress_function(w, m, "turn"), blocks, 1, 1, 128, 1, 1, 0, s, params,
                               NULL));
    MUST(w, cuMemcpyDtoHAsync_v2(w->pinned, a, n * 4ul, s));
    MUST(w, cuStreamSynchronize(s));
    CHECK_WORDS(w, w->pinned, n, 3, 1);
    MUST(w, cuMemFree_v2(a));
}

void
act_atomics(struct worker *w)
{
    const uint32_t blocks = 1 + stress_random(w, 8), threads = 1 + stress_random(w, 256);
    CUmodule m = stress_device(w)->module;
    CUstream s = stress_stream(w);
    uint32_t each = 1 + stress_random(w, 9);
    CUdeviceptr a;
    void *params[] = {&a, &each};

    MUST(w, cuMemAlloc_v2(&a, 8));
    MUST(w, cuMemsetD32Async(a, 0, 2, s));
    MUST(w, cuLaunchKernel(stress_function(w, m, "count"), blocks, 1, 1, threads, 1, 1, 0, s,
                           params, NULL));
    MUST(w, cuMemcpyDtoHAsync_v2(w->pinned, a, 8, s));
    MUST(w, cuStreamSynchronize(s));
    SAME(w, w->pinned[0], blocks * threads * each);
    SAME(w, w->pinned[1], (blocks * threads - 1) * each);
    MUST(w, cuMemFree_v2(a));
}

void
act_grid_spin(struct worker *w)
{
    const uint32_t threads = 32 * (1 + stress_random(w, 3));
    CUmodule m = stress_device(w)->module;
    CUstream s = stress_stream(w);
    uint32_t blocks = 1 + stress_random(w, 6);
    CUdeviceptr a;
    void *params[] = {&a, &blocks};

    MUST(w, cuMemAlloc_v2(&a, 4096));
    MUST(w, cuMemsetD32Async(a, 0, 1024, s));
    MUST(w, cuLaunchKernel(stress_function(w, m, "meet"), blocks, 1, 1, threads, 1, 1, 0, s, params,
                           NULL));
    MUST(w, cuMemcpyDtoHAsync_v2(w->pinned, a, 4096, s));
    MUST(w, cuStreamSynchronize(s));
    CHECK_WORDS(w, w->pinned, 1 + blocks * threads, blocks, 0);
    MUST(w, cuMemFree_v2(a));
}

void
act_shuffle(struct worker *w)
{
    const uint32_t blocks = 1 + stress_random(w, 8), n = blocks * 64;
    CUmodule m = stress_device(w)->module;
    CUstream s = stress_stream(w);
    CUdeviceptr a;
    void *params[] = {&a};

    MUST(w, cuMemAlloc_v2(&a, n * 4ul));
    MUST(w, cuMemsetD32Async(a, 3, n, s));
    MUST(w,
         cuLaunchKernel(stress_function(w, m, "sum"), blocks, 1, 1, 64, 1, 1, 0, s, params, NULL));
    MUST(w, cuMemcpyDtoHAsync_v2(w->pinned, a, n * 4ul, s));
    MUST(w, cuStreamSynchronize(s));
    CHECK_WORDS(w, w->pinned, n, 96, 0);
    MUST(w, cuMemFree_v2(a));
}

/* A chain of work over all streams of the thread, connected by events. */
void
act_events(struct worker *w)
{
    const uint32_t n = 1 + stress_random(w, 4096);
    CUmodule m = stress_device(w)->module;
    CUevent events[STREAMS], begin;
    CUdeviceptr a;
    float ms = -1;

    MUST(w, cuMemAlloc_v2(&a, n * 4ul));
    MUST(w, cuEventCreate(&begin, CU_EVENT_DEFAULT));
    MUST(w, cuEventRecord(begin, w->streams[0]));
    stress_fill(w, m, w->streams[0], a, n, 1);
    for (int i = 0; i < STREAMS; i++) {
        MUST(w, cuEventCreate(&events[i],
                              i == STREAMS - 1 ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING));
        if (i > 0)
            MUST(w, cuStreamWaitEvent(w->streams[i], events[i - 1], 0));
        stress_mix(w, m, w->streams[i], a, n, 1, 10);
        MUST(w, cuEventRecord(events[i], w->streams[i]));
    }
    for (CUresult r; (r = cuEventQuery(events[0])) != CUDA_SUCCESS;)
        SAME(w, r, CUDA_ERROR_NOT_READY);
    MUST(w, cuEventSynchronize(events[STREAMS - 1]));
    MUST(w, cuEventElapsedTime_v2(&ms, begin, events[STREAMS - 1]));
    SAME(w, ms >= 0, true);
    MUST(w, cuMemcpyDtoH_v2(w->host, a, n * 4ul));
    CHECK_WORDS(w, w->host, n, 1 + 10 * STREAMS, 1);
    for (int i = 0; i < STREAMS; i++)
        MUST(w, cuEventDestroy_v2(events[i]));
    MUST(w, cuEventDestroy_v2(begin));
    MUST(w, cuMemFree_v2(a));
}

/* Destroys a stream with work in it; the work is still done. */
void
act_streams(struct worker *w)
{
    const uint32_t n = 1 + stress_random(w, 8192);
    CUmodule m = stress_device(w)->module;
    CUevent e;
    CUstream s;
    CUdeviceptr a;

    MUST(w, cuMemAlloc_v2(&a, n * 4ul));
    MUST(w, cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    MUST(w, cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, -(int)stress_random(w, 3)));
    stress_fill(w, m, s, a, n, 4);
    for (int i = 0; i < 8; i++)
        stress_mix(w, m, s, a, n, 1, 1);
    MUST(w, cuEventRecord(e, s));
    MUST(w, cuStreamDestroy_v2(s));
    MUST(w, cuEventSynchronize(e));
    MUST(w, cuEventDestroy_v2(e));
    MUST(w, cuMemcpyDtoH_v2(w->host, a, n * 4ul));
    CHECK_WORDS(w, w->host, n, 12, 1);
    MUST(w, cuMemFree_v2(a));
}

/* A blocking stream, the legacy stream and the thread's own keep their order by themselves. */
void
act_defaults(struct worker *w)
{
    const uint32_t n = 1 + stress_random(w, 4096);
    CUmodule m = stress_device(w)->module;
    CUstream s;
    CUdeviceptr a;

    MUST(w, cuMemAlloc_v2(&a, n * 4ul));
    MUST(w, cuStreamCreate(&s, CU_STREAM_DEFAULT));
    stress_fill(w, m, s, a, n, 2);
    stress_mix(w, m, STREAM_LEGACY, a, n, 1, 3);
    stress_mix(w, m, STREAM_PER_THREAD, a, n, 1, 4);
    stress_mix(w, m, NULL, a, n, 1, 5);
    stress_mix(w, m, s, a, n, 1, 6);
    MUST(w, cuMemcpyDtoH_v2(w->host, a, n * 4ul));
    CHECK_WORDS(w, w->host, n, 20, 1);
    MUST(w, cuStreamDestroy_v2(s));
    MUST(w, cuMemFree_v2(a));
}

/* The argument of functions of the program. */
struct called {
    const struct worker *w;
    uint32_t *words;
    uint32_t n, sum; /* sum of what they saw */
};

static void
called_on_host(void *arg)
{
    struct called *c = arg;

    for (uint32_t i = 0; i < c->n; i++)
        c->sum += c->words[i];
}

static void
called_back(CUstream s, CUresult r, void *arg)
{
    struct called *c = arg;

    (void)s;
    if (r == CUDA_SUCCESS)
        called_on_host(c);
}

void
act_host_function(struct worker *w)
{
    const uint32_t n = 1 + stress_random(w, 1024);
    CUstream s = stress_stream(w);
    struct called c = {.w = w, .words = w->pinned, .n = n};
    CUdeviceptr a;

    MUST(w, cuMemAllocAsync(&a, n * 4ul, s));
    MUST(w, cuMemsetD32Async(a, 2, n, s));
    MUST(w, cuMemcpyDtoHAsync_v2(w->pinned, a, n * 4ul, s));
    MUST(w, cuLaunchHostFunc(s, called_on_host, &c));
    MUST(w, cuMemsetD32Async(a, 1, n, s));
    MUST(w, cuMemcpyDtoHAsync_v2(w->pinned, a, n * 4ul, s));
    MUST(w, cuStreamAddCallback(s, called_back, &c, 0));
    MUST(w, cuMemFreeAsync(a, s));
    MUST(w, cuStreamSynchronize(s));
    SAME(w, c.sum, 3 * n);
}
