/* Does one thing many times and waits once, for latency.py to count the round trips.
 *
 *     remote_latency WHAT COUNT
 *
 * It prints "ready", waits for a line, does it COUNT times, waits for the device once, prints how
 * many microseconds that took, and waits for another line.
 */
#include "conformance/conf.h"

#include <time.h>

#define OK(call) CHECK_IS(call, CUDA_SUCCESS)
#define BYTES 4096u

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry nothing()\n{\nret;\n}\n";

static CUcontext ctx;
static CUstream stream;
static CUevent event;
static CUdeviceptr p, q;
static CUfunction kernel;
static CUgraphExec graph;
static void *pinned;
static char pageable[BYTES];

static void
launch_kernel(void)
{
    OK(CU(cuLaunchKernel)(kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
}

static void
record_event(void)
{
    OK(CU(cuEventRecord)(event, stream));
    OK(CU(cuStreamWaitEvent)(NULL, event, 0));
}

static void
copy_pageable(void)
{
    OK(CU(cuMemcpyHtoDAsync_v2)(p, pageable, BYTES, stream));
}

static void
copy_pinned(void)
{
    OK(CU(cuMemcpyHtoDAsync_v2)(p, pinned, BYTES, stream));
}

static void
copy_back(void)
{
    OK(CU(cuMemcpyDtoHAsync_v2)(pinned, p, BYTES, stream));
}

static void
copy_device(void)
{
    OK(CU(cuMemcpyDtoDAsync_v2)(q, p, BYTES, stream));
}

static void
fill_memory(void)
{
    OK(CU(cuMemsetD8Async)(p, 1, BYTES, stream));
}

static void
allocate(void)
{
    CUdeviceptr a, b;

    OK(CU(cuMemAlloc_v2)(&a, 65536));
    OK(CU(cuMemAlloc_v2)(&b, 4u << 20));
    OK(CU(cuMemFree_v2)(a));
    OK(CU(cuMemFree_v2)(b));
}

static void
allocate_in_order(void)
{
    CUdeviceptr a;

    OK(CU(cuMemAllocAsync)(&a, 65536, stream));
    OK(CU(cuMemFreeAsync)(a, stream));
}

static void
new_stream(void)
{
    CUstream s;

    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    OK(CU(cuStreamDestroy_v2)(s));
}

static void
new_event(void)
{
    CUevent e;

    OK(CU(cuEventCreate)(&e, 0));
    OK(CU(cuEventDestroy_v2)(e));
}

static void
launch_graph(void)
{
    OK(CU(cuGraphLaunch)(graph, stream));
}

static void
query_device(void)
{
    CUdevice d;
    int v;

    OK(CU(cuCtxGetDevice)(&d));
    OK(CU(cuDeviceGetAttribute)(&v, CU_DEVICE_ATTRIBUTE_WARP_SIZE, d));
    OK(CU(cuFuncGetAttribute)(&v, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel));
    OK(CU(cuPointerGetAttribute)(&d, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
}

static void
set_up_device(void)
{
    CUmodule m;
    CUgraph g;

    OK(CU(cuInit)(0));
    OK(CU(cuDevicePrimaryCtxRetain)(&ctx, 0));
    OK(CU(cuCtxSetCurrent)(ctx));
    OK(CU(cuStreamCreate)(&stream, 0));
    OK(CU(cuEventCreate)(&event, 0));
    OK(CU(cuMemAlloc_v2)(&p, BYTES));
    OK(CU(cuMemAlloc_v2)(&q, BYTES));
    OK(CU(cuMemHostAlloc)(&pinned, BYTES, 0));
    memset(pinned, 1, BYTES);
    OK(CU(cuModuleLoadData)(&m, ptx));
    OK(CU(cuModuleGetFunction)(&kernel, m, "nothing"));
    launch_kernel();
    OK(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    launch_kernel();
    fill_memory();
    OK(CU(cuStreamEndCapture)(stream, &g));
    OK(CU(cuGraphInstantiateWithFlags)(&graph, g, 0));
    OK(CU(cuCtxSynchronize)());
}

static double
now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*once)(void);
    } things[] = {
        {"launch", launch_kernel},
        {"record", record_event},
        {"copy_pageable", copy_pageable},
        {"copy_pinned", copy_pinned},
        {"copy_back", copy_back},
        {"copy_device", copy_device},
        {"fill", fill_memory},
        {"allocate", allocate},
        {"allocate_in_order", allocate_in_order},
        {"new_stream", new_stream},
        {"new_event", new_event},
        {"launch_graph", launch_graph},
        {"query", query_device},
    };
    const int count = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
    char line[16];
    size_t i = 0;

    while (i < sizeof things / sizeof *things && argc > 1 && strcmp(argv[1], things[i].name) != 0)
        i++;
    CHECK(argc > 2 && i < sizeof things / sizeof *things, "usage: latency WHAT COUNT");
    set_up_device();
    things[i].once(); /* so that things that are made only once exist */
    OK(CU(cuCtxSynchronize)());
    printf("ready\n");
    (void)fflush(stdout);
    (void)!fgets(line, sizeof line, stdin);

    const double start = now_us();

    for (int k = 0; k < count; k++)
        things[i].once();
    OK(CU(cuCtxSynchronize)());
    printf("%.0f\n", now_us() - start);
    (void)fflush(stdout);
    (void)!fgets(line, sizeof line, stdin);
    return 0;
}
