/* Kernels that a server runs stay in their address sandbox: whatever a kernel can take the address
 * of lies there, other addresses fail the launch, and the worker lives on. */
#include <stdio.h>

#include "conformance/conf.h"

#define OK(call) CHECK_IS(call, CUDA_SUCCESS)
#define SANDBOX_BITS 45 /* kernel/ptx/run/abi.h */

/* look stores the addresses of what a kernel has; poke stores to an address. */
static const char text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".extern .func (.param .b64 p) malloc(.param .b64 n);\n"
    ".global .align 8 .b8 global[64];\n.const .align 8 .b8 constant[64];\n"
    ".shared .align 8 .b8 shared[64];\n"
    ".visible .entry look(.param .u64 to)\n{\n"
    ".local .align 8 .b8 local[64];\n.param .b64 n; .param .b64 p;\n.reg .b64 %d<9>;\n"
    "ld.param.u64 %d1, [to];\n"
    "mov.u64 %d2, to;\nst.u64 [%d1], %d2;\n"
    "mov.u64 %d2, local;\ncvta.local.u64 %d2, %d2;\nst.u64 [%d1+8], %d2;\nst.u64 [%d2], %d1;\n"
    "mov.u64 %d2, shared;\ncvta.shared.u64 %d2, %d2;\nst.u64 [%d1+16], %d2;\nst.u64 [%d2], %d1;\n"
    "mov.u64 %d2, global;\nst.u64 [%d1+24], %d2;\nst.u64 [%d2], %d1;\n"
    "mov.u64 %d2, constant;\nst.u64 [%d1+32], %d2;\n"
    "st.param.b64 [n], 1000;\ncall (p), malloc, (n);\nld.param.b64 %d2, [p];\n"
    "st.u64 [%d1+40], %d2;\nst.u64 [%d2], %d1;\n"
    "ret;\n}\n"
    ".visible .entry poke(.param .u64 at)\n{\n"
    ".reg .b64 %d1;\nld.param.u64 %d1, [at];\nst.u64 [%d1], 7;\nret;\n}\n";

static CUcontext context;
static CUfunction look, poke;

static void
begin(void)
{
    CUmodule module;

    OK(CU(cuCtxCreate_v2)(&context, 0, 0));
    OK(CU(cuModuleLoadData)(&module, text));
    OK(CU(cuModuleGetFunction)(&look, module, "look"));
    OK(CU(cuModuleGetFunction)(&poke, module, "poke"));
}

static void
check_addresses(void)
{
    static const char *const names[] = {"a parameter", "local memory",    "shared memory",
                                        "a variable",  "constant memory", "memory of malloc"};
    enum { COUNT = sizeof names / sizeof *names };
    CUdeviceptr at;
    uint64_t found[COUNT] = {0};
    void *params[] = {&at};

    begin();
    OK(CU(cuMemAlloc_v2)(&at, 4096));
    OK(CU(cuLaunchKernel)(look, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(CU(cuMemcpyDtoH_v2)(found, at, sizeof found));
    for (int i = 0; i < COUNT; i++)
        CHECK(found[i] >> SANDBOX_BITS == at >> SANDBOX_BITS, "%s is at %#llx, memory at %#llx",
              names[i], (unsigned long long)found[i], (unsigned long long)at);
    OK(CU(cuCtxDestroy_v2)(context));
}

static void
check_failure(CUdeviceptr at)
{
    void *params[] = {&at};
    CUresult r;

    begin();
    OK(CU(cuLaunchKernel)(poke, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    r = CU(cuCtxSynchronize)();
    CHECK(r == CUDA_ERROR_ILLEGAL_ADDRESS, "%#llx: %d", (unsigned long long)at, (int)r);
    (void)CU(cuCtxDestroy_v2)(context);
}

int
main(void)
{
    static int here;

    OK(CU(cuInit)(0));
    check_addresses();
    check_failure(0);
    check_failure(8);
    check_failure((uintptr_t)&here & ~(uintptr_t)7);
    check_failure((uintptr_t)&context & ~(uintptr_t)7);
    check_failure(0x7ffff0000000);
    check_failure(0xfffff0000000);
    check_failure(0x8000000000000000);
    check_failure(UINT64_MAX - 7);
    check_addresses();
    return 0;
}
