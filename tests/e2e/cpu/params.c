/* Parameters lie as kernels may expect: a struct that is read by an index, 16 bytes at once, and
 * one at a multiple of 64 that is reached by its address, as a CUtensorMap is. By every way in
 * which a launch keeps its parameters: at the call, on a stream, in a graph. */
#include "conformance/conf.h"

#include <stdint.h>

#define OK(call) CHECK_IS(call, CUDA_SUCCESS)
#define ROWS 16

static const char text[] =
    ".version 7.7\n.target sm_70\n.address_size 64\n"
    ".visible .entry pick(.param .align 64 .b8 rows[256], .param .u32 which, .param .u64 out)\n{\n"
    ".reg .b64 %a, %g, %o, %d; .reg .b32 %w, %r<5>;\n"
    "mov.b64 %a, rows; ld.param.u32 %w, [which]; ld.param.u64 %o, [out];\n"
    "cvta.param.u64 %g, %a; cvt.u32.u64 %r4, %g; and.b32 %r4, %r4, 63;\n"
    "mul.wide.u32 %d, %w, 16; add.s64 %a, %a, %d; add.s64 %o, %o, %d;\n"
    "ld.param.v4.b32 {%r0, %r1, %r2, %r3}, [%a];\n"
    "add.u32 %r0, %r0, %r4; st.global.v4.b32 [%o], {%r0, %r1, %r2, %r3};\n"
    "ret;\n}\n";

static struct {
    uint32_t words[ROWS][4];
} rows;

static void
check_rows(CUdeviceptr out, const char *how)
{
    uint32_t got[ROWS][4];

    OK(CU(cuCtxSynchronize)());
    OK(CU(cuMemcpyDtoH_v2)(got, out, sizeof got));
    for (unsigned i = 0; i < ROWS; i++)
        for (unsigned k = 0; k < 4; k++)
            CHECK(got[i][k] == rows.words[i][k], "%s: row %u, word %u: %u", how, i, k, got[i][k]);
    OK(CU(cuMemsetD8_v2)(out, 0xee, sizeof got));
    OK(CU(cuCtxSynchronize)());
}

static void
launch_on(CUfunction f, CUstream s, CUdeviceptr out)
{
    for (uint32_t which = 0; which < ROWS; which++) {
        void *params[] = {&rows, &which, &out};

        OK(CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
    }
}

static void
launch_graph(CUfunction f, CUdeviceptr out)
{
    CUgraph graph, clone;
    CUgraphExec exec;

    OK(CU(cuGraphCreate)(&graph, 0));
    for (uint32_t which = 0; which < ROWS; which++) {
        void *params[] = {&rows, &which, &out};
        CUDA_KERNEL_NODE_PARAMS_v2 node = {.func = f,
                                           .gridDimX = 1,
                                           .gridDimY = 1,
                                           .gridDimZ = 1,
                                           .blockDimX = 1,
                                           .blockDimY = 1,
                                           .blockDimZ = 1,
                                           .kernelParams = params};
        CUgraphNode n;

        OK(CU(cuGraphAddKernelNode_v2)(&n, graph, NULL, 0, &node));
    }
    OK(CU(cuGraphClone)(&clone, graph));
    OK(CU(cuGraphInstantiateWithFlags)(&exec, clone, 0));
    OK(CU(cuGraphLaunch)(exec, NULL));
    check_rows(out, "graph");
    OK(CU(cuGraphExecDestroy)(exec));
    OK(CU(cuGraphDestroy)(clone));
    OK(CU(cuGraphDestroy)(graph));
}

int
main(void)
{
    CUcontext context;
    CUdeviceptr out;
    CUmodule module;
    CUfunction f;
    CUdevice device;
    CUstream stream;

    for (unsigned i = 0; i < ROWS * 4; i++)
        rows.words[i / 4][i % 4] = 1000 + i;
    OK(CU(cuInit)(0));
    OK(CU(cuDeviceGet)(&device, 0));
    OK(CU(cuCtxCreate_v2)(&context, 0, device));
    OK(CU(cuModuleLoadData)(&module, text));
    OK(CU(cuModuleGetFunction)(&f, module, "pick"));
    OK(CU(cuMemAlloc_v2)(&out, sizeof rows));
    OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < 3; i++) {
        launch_on(f, NULL, out);
        check_rows(out, "null stream");
        launch_on(f, stream, out);
        check_rows(out, "stream");
    }
    launch_graph(f, out);
    OK(CU(cuCtxDestroy_v2)(context));
    return 0;
}
