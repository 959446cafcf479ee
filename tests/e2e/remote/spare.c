/* For spare.py: prints all that a program can see of its contexts, which must not depend on whether
 * its worker was there before it came.
 *
 *     e2e_remote_spare primary | flags | created | reset | second | hold
 *
 * hold: prints "ready", waits for a line, and then looks whether a kernel still runs and all memory
 * is as it was.
 */
#include "conformance/conf.h"

#define OK(call) CHECK_IS(call, CUDA_SUCCESS)
#define WORDS 1024u

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 4 .u32 salt = 0;\n"
    ".visible .entry count(.param .u64 p)\n{\n.reg .b32 %r<2>; .reg .b64 %d<3>;\n"
    "ld.param.u64 %d0, [p]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4;\n"
    "add.u64 %d0, %d0, %d1; st.global.u32 [%d0], %r0; ret;\n}\n";

static void
show_state(const char *when, int count)
{
    for (int i = 0; i < count; i++) {
        unsigned flags = 77;
        int active = 77;

        OK(CU(cuDevicePrimaryCtxGetState)(i, &flags, &active));
        printf("%s: device %d flags %u active %d\n", when, i, flags, active);
    }
}

static void
show_context(void)
{
    size_t free_bytes = 0, total = 0, stack = 0, heap = 0, fifo = 0;
    unsigned flags = 0, version = 0;
    int least = 0, greatest = 0;

    OK(CU(cuMemGetInfo_v2)(&free_bytes, &total));
    OK(CU(cuCtxGetFlags)(&flags));
    OK(CU(cuCtxGetApiVersion)(NULL, &version));
    OK(CU(cuCtxGetLimit)(&stack, CU_LIMIT_STACK_SIZE));
    OK(CU(cuCtxGetLimit)(&heap, CU_LIMIT_MALLOC_HEAP_SIZE));
    OK(CU(cuCtxGetLimit)(&fifo, CU_LIMIT_PRINTF_FIFO_SIZE));
    OK(CU(cuCtxGetStreamPriorityRange)(&least, &greatest));
    printf("free %zu of %zu, flags %u, version %u, limits %zu %zu %zu, priorities %d %d\n",
           free_bytes, total, flags, version, stack, heap, fifo, least, greatest);
}

static void
run_kernel(void)
{
    static unsigned got[WORDS];
    CUmodule module;
    CUfunction f;
    CUdeviceptr at = 0;
    void *args[] = {&at};

    OK(CU(cuMemAlloc_v2)(&at, sizeof got));
    OK(CU(cuModuleLoadData)(&module, ptx));
    OK(CU(cuModuleGetFunction)(&f, module, "count"));
    OK(CU(cuLaunchKernel)(f, 1, 1, 1, WORDS, 1, 1, 0, NULL, args, NULL));
    OK(CU(cuMemcpyDtoH_v2)(got, at, sizeof got));
    for (unsigned i = 0; i < WORDS; i++)
        CHECK(got[i] == i, "word %u is %u", i, got[i]);
    printf("memory at %#llx\n", (unsigned long long)at);
    show_context();
    OK(CU(cuModuleUnload)(module));
    OK(CU(cuMemFree_v2)(at));
}

static void
use_context(const char *mode, int count)
{
    const CUdevice device = strcmp(mode, "second") == 0 ? 1 : 0;
    CUcontext ctx = NULL;

    if (strcmp(mode, "flags") == 0)
        OK(CU(cuDevicePrimaryCtxSetFlags_v2)(device, CU_CTX_SCHED_YIELD));
    if (strcmp(mode, "created") == 0)
        OK(CU(cuCtxCreate_v2)(&ctx, CU_CTX_SCHED_SPIN, device));
    else
        OK(CU(cuDevicePrimaryCtxRetain)(&ctx, device));
    OK(CU(cuCtxSetCurrent)(ctx));
    show_state("with a context", count);
    show_context();
    run_kernel();
    if (strcmp(mode, "created") == 0)
        OK(CU(cuCtxDestroy_v2)(ctx));
    else if (strcmp(mode, "reset") == 0)
        OK(CU(cuDevicePrimaryCtxReset_v2)(device));
    else
        OK(CU(cuDevicePrimaryCtxRelease_v2)(device));
    show_state("without it", count);
}

/* With memory, code and the address of a variable: whatever happens to the worker meanwhile. */
static void
hold(void)
{
    static unsigned got[WORDS];
    const unsigned salt = 12345;
    unsigned salt_now = 0;
    CUcontext ctx;
    CUmodule module;
    CUfunction f;
    CUdeviceptr at = 0, variable = 0, later = 0;
    size_t size = 0;
    void *args[] = {&at};

    OK(CU(cuDevicePrimaryCtxRetain)(&ctx, 0));
    OK(CU(cuCtxSetCurrent)(ctx));
    OK(CU(cuMemAlloc_v2)(&at, sizeof got));
    OK(CU(cuModuleLoadData)(&module, ptx));
    OK(CU(cuModuleGetFunction)(&f, module, "count"));
    OK(CU(cuModuleGetGlobal_v2)(&variable, &size, module, "salt"));
    OK(CU(cuMemcpyHtoD_v2)(variable, &salt, sizeof salt));
    OK(CU(cuLaunchKernel)(f, 1, 1, 1, WORDS, 1, 1, 0, NULL, args, NULL));
    OK(CU(cuCtxSynchronize)());
    printf("ready\n");
    (void)fflush(stdout);
    (void)getchar();
    OK(CU(cuMemcpyDtoH_v2)(got, at, sizeof got));
    for (unsigned i = 0; i < WORDS; i++)
        CHECK(got[i] == i, "word %u is %u", i, got[i]);
    OK(CU(cuMemcpyDtoH_v2)(&salt_now, variable, sizeof salt_now));
    CHECK(salt_now == salt, "the variable is %u", salt_now);
    OK(CU(cuMemAlloc_v2)(&later, sizeof got));
    args[0] = &later;
    OK(CU(cuLaunchKernel)(f, 1, 1, 1, WORDS, 1, 1, 0, NULL, args, NULL));
    OK(CU(cuMemcpyDtoH_v2)(got, later, sizeof got));
    CHECK(got[WORDS - 1] == WORDS - 1, "the kernel wrote %u", got[WORDS - 1]);
    printf("good\n");
}

int
main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "primary";
    int count = 0;

    OK(CU(cuInit)(0));
    OK(CU(cuDeviceGetCount)(&count));
    printf("%d devices\n", count);
    for (int i = 0; i < count; i++) {
        char name[128];
        size_t bytes;

        OK(CU(cuDeviceGetName)(name, sizeof name, i));
        OK(CU(cuDeviceTotalMem_v2)(&bytes, i));
        printf("%s, %zu bytes\n", name, bytes);
    }
    show_state("at first", count);
    use_context(mode, count);
    use_context(mode, count); /* and all of it again */
    if (strcmp(mode, "hold") == 0)
        hold();
    return 0;
}
