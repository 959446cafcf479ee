/* Kernels of two streams run at the same time: each waits until the other has begun. If streams
 * took turns, this would never end. */
#include "conformance/conf.h"

#include <stdint.h>

#define OK(call) CHECK_IS(call, CUDA_SUCCESS)
#define ROUNDS 20

static const char text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry meet(.param .u64 mine, .param .u64 other, .param .u32 round)\n{\n"
    ".reg .b64 %m, %o; .reg .b32 %n, %v; .reg .pred %p;\n"
    "ld.param.u64 %m, [mine]; ld.param.u64 %o, [other]; ld.param.u32 %n, [round];\n"
    "st.release.sys.global.u32 [%m], %n;\n"
    "AGAIN: ld.acquire.sys.global.u32 %v, [%o];\n"
    "setp.lt.u32 %p, %v, %n; @%p bra AGAIN;\n"
    "ret;\n}\n";

int
main(void)
{
    CUcontext context;
    CUdeviceptr words;
    CUmodule module;
    CUfunction f;
    CUdevice device;
    CUstream streams[2];
    uint32_t seen[2] = {0, 0};

    OK(CU(cuInit)(0));
    OK(CU(cuDeviceGet)(&device, 0));
    OK(CU(cuCtxCreate_v2)(&context, 0, device));
    OK(CU(cuModuleLoadData)(&module, text));
    OK(CU(cuModuleGetFunction)(&f, module, "meet"));
    OK(CU(cuMemAlloc_v2)(&words, sizeof seen));
    OK(CU(cuMemsetD32_v2)(words, 0, 2));
    for (int i = 0; i < 2; i++)
        OK(CU(cuStreamCreate)(&streams[i], CU_STREAM_NON_BLOCKING));
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        for (unsigned i = 0; i < 2; i++) {
            CUdeviceptr mine = words + i * sizeof(uint32_t);
            CUdeviceptr other = words + (1 - i) * sizeof(uint32_t);
            void *params[] = {&mine, &other, &round};

            OK(CU(cuLaunchKernel)(f, 1, 1, 1, 32, 1, 1, 0, streams[i], params, NULL));
        }
        /* In odd rounds this thread waits at once, and may run the first kernel itself. */
        for (unsigned i = 0; i < 2 && round % 2; i++)
            OK(CU(cuStreamSynchronize)(streams[i]));
    }
    OK(CU(cuCtxSynchronize)());
    OK(CU(cuMemcpyDtoH_v2)(seen, words, sizeof seen));
    CHECK(seen[0] == ROUNDS && seen[1] == ROUNDS, "%u and %u", seen[0], seen[1]);
    OK(CU(cuCtxDestroy_v2)(context));
    return 0;
}
