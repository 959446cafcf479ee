/* System-wide atomics on managed memory: a kernel on a remote GPU and the program add to the same
 * words at the same time, and no addition is lost. */
#include "conformance/conf.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define OK(call) CHECK_IS(call, CUDA_SUCCESS)
#define WORDS 64
#define TIMES 2000
#define ROUNDS 5

/* Each of WORDS threads adds 1 to its word TIMES times. */
static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                           ".visible .entry count(.param .u64 to)\n{\n"
                           ".reg .b64 %d<4>;\n.reg .b32 %r<4>;\n.reg .pred %p;\n"
                           "ld.param.u64 %d1, [to];\nmov.u32 %r1, %tid.x;\n"
                           "mul.wide.u32 %d2, %r1, 4;\nadd.u64 %d3, %d1, %d2;\n"
                           "mov.u32 %r2, 0;\n"
                           "again:\natom.global.sys.add.u32 %r3, [%d3], 1;\n"
                           "add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p, %r2, 2000;\n@%p bra again;\n"
                           "ret;\n}\n";

/* Adds 1 to a word, and waits until the program has changed another. */
static const char waiting[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                              ".visible .entry await(.param .u64 to, .param .u64 flag)\n{\n"
                              ".reg .b64 %d<4>;\n.reg .b32 %r<4>;\n.reg .pred %p;\n"
                              "ld.param.u64 %d1, [to];\nld.param.u64 %d2, [flag];\n"
                              "atom.global.sys.add.u32 %r1, [%d1], 1;\n"
                              "again:\nld.volatile.global.u32 %r2, [%d2];\n"
                              "setp.eq.u32 %p, %r2, 0;\n@%p bra again;\nret;\n}\n";

/* A kernel that waits for the program is waited for a few times, and then no more. The log says so;
 * see CMakeLists.txt. */
static void
wait_for_the_program(CUdeviceptr at)
{
    const uint32_t one = 1;
    CUstream kernels, copies;
    CUdeviceptr flag;
    CUmodule module;
    CUfunction f;
    void *params[] = {&at, &flag};

    OK(CU(cuModuleLoadData)(&module, waiting));
    OK(CU(cuModuleGetFunction)(&f, module, "await"));
    OK(CU(cuMemAlloc_v2)(&flag, sizeof one));
    OK(CU(cuStreamCreate)(&kernels, CU_STREAM_NON_BLOCKING));
    OK(CU(cuStreamCreate)(&copies, CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < 12; i++) {
        OK(CU(cuMemsetD32Async)(flag, 0, 1, kernels));
        OK(CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, kernels, params, NULL));
        OK(CU(cuMemcpyHtoDAsync_v2)(flag, &one, sizeof one, copies));
        OK(CU(cuStreamSynchronize)(kernels));
    }
    OK(CU(cuMemFree_v2)(flag));
}

int
main(int argc, char **argv)
{
    CUcontext context;
    CUdeviceptr at;
    CUmodule module;
    CUfunction f;
    CUdevice device;
    void *params[] = {&at};

    OK(CU(cuInit)(0));
    OK(CU(cuDeviceGet)(&device, 0));
    OK(CU(cuDevicePrimaryCtxRetain)(&context, device));
    OK(CU(cuCtxSetCurrent)(context));
    OK(CU(cuModuleLoadData)(&module, text));
    OK(CU(cuModuleGetFunction)(&f, module, "count"));
    OK(CU(cuMemAllocManaged)(&at, WORDS * sizeof(uint32_t), CU_MEM_ATTACH_GLOBAL));

    _Atomic uint32_t *words = (_Atomic uint32_t *)(uintptr_t)at;

    for (unsigned i = 0; i < WORDS; i++)
        atomic_store(&words[i], 0);
    for (unsigned round = 1; round <= ROUNDS; round++) {
        OK(CU(cuLaunchKernel)(f, 1, 1, 1, WORDS, 1, 1, 0, NULL, params, NULL));
        for (unsigned k = 0; k < TIMES; k++)
            for (unsigned i = 0; i < WORDS; i++)
                atomic_fetch_add(&words[i], 1);
        OK(CU(cuCtxSynchronize)());
        for (unsigned i = 0; i < WORDS; i++)
            CHECK(atomic_load(&words[i]) == 2 * TIMES * round, "word %u is %u in round %u", i,
                  atomic_load(&words[i]), round);
    }
    if (argc > 1 && strcmp(argv[1], "wait") == 0)
        wait_for_the_program(at);
    OK(CU(cuMemFree_v2)(at));
    return 0;
}
