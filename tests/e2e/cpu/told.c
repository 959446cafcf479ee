/* Work of every kind that a trace tells: kernels on two streams and in a graph, copies, fills,
 * functions of the program. See told.py, which knows how many of each there are. */
#include "conformance/conf.h"

#include <stdint.h>

#define OK(call) CHECK_IS(call, CUDA_SUCCESS)
#define BYTES 4096

static const char text[] = ".version 7.7\n.target sm_70\n.address_size 64\n"
                           ".visible .entry _Z5scaleIfEvPT_i(.param .u64 at, .param .u32 n)\n{\n"
                           ".shared .align 4 .b8 room[64];\n"
                           ".reg .b64 %a, %d; .reg .b32 %i, %x;\n"
                           "ld.param.u64 %a, [at]; cvta.to.global.u64 %a, %a;\n"
                           "mov.u32 %i, %tid.x; mul.wide.u32 %d, %i, 4; add.s64 %a, %a, %d;\n"
                           "ld.global.u32 %x, [%a]; add.u32 %x, %x, 1; st.global.u32 [%a], %x;\n"
                           "ret;\n}\n"
                           ".visible .entry traps()\n{\ntrap;\n}\n";

static void
count_one(void *counter)
{
    (*(int *)counter)++;
}

static void
launch_graph(CUstream stream, CUfunction f, void **params)
{
    CUgraph graph;
    CUgraphExec exec;

    OK(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    for (unsigned i = 0; i < 3; i++)
        OK(CU(cuLaunchKernel)(f, 1, 1, 1, 16, 1, 1, 0, stream, params, NULL));
    OK(CU(cuStreamEndCapture)(stream, &graph));
    OK(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0));
    OK(CU(cuGraphLaunch)(exec, stream));
    OK(CU(cuGraphLaunch)(exec, stream));
    OK(CU(cuStreamSynchronize)(stream));
    OK(CU(cuGraphExecDestroy)(exec));
    OK(CU(cuGraphDestroy)(graph));
}

int
main(int argc, char **argv)
{
    static unsigned char host[BYTES];
    int counter = 0, n = 16;
    CUcontext context;
    CUdeviceptr at;
    CUmodule module;
    CUfunction f, traps;
    CUdevice device;
    CUstream stream;
    void *params[] = {&at, &n}, *pinned;

    (void)argv;
    OK(CU(cuInit)(0));
    OK(CU(cuDeviceGet)(&device, 0));
    OK(CU(cuCtxCreate_v2)(&context, 0, device));
    OK(CU(cuModuleLoadData)(&module, text));
    OK(CU(cuModuleGetFunction)(&f, module, "_Z5scaleIfEvPT_i"));
    OK(CU(cuModuleGetFunction)(&traps, module, "traps"));
    OK(CU(cuMemAlloc_v2)(&at, BYTES));
    OK(CU(cuMemHostAlloc)(&pinned, BYTES, 0));
    OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    OK(CU(cuMemsetD32Async)(at, 0, BYTES / 4, stream));
    for (unsigned i = 0; i < 5; i++)
        OK(CU(cuLaunchKernel)(f, 2, 1, 1, 16, 1, 1, 128, stream, params, NULL));
    OK(CU(cuLaunchHostFunc)(stream, count_one, &counter));
    OK(CU(cuMemcpyDtoHAsync_v2)(pinned, at, BYTES, stream));
    OK(CU(cuStreamSynchronize)(stream));
    OK(CU(cuMemcpyHtoD_v2)(at, host, BYTES));
    OK(CU(cuLaunchKernel)(f, 1, 1, 1, 16, 1, 1, 0, NULL, params, NULL));
    OK(CU(cuMemcpyDtoH_v2)(host, at, BYTES));
    launch_graph(stream, f, params);
    CHECK(counter == 1, "%d", counter);
    CHECK(host[0] == 1, "%d", host[0]);
    if (argc > 1) {
        OK(CU(cuLaunchKernel)(traps, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
        CHECK(CU(cuCtxSynchronize)() != CUDA_SUCCESS, "it did not fail");
        return 0;
    }
    OK(CU(cuCtxDestroy_v2)(context));
    return 0;
}
