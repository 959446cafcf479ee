/* How long does a program take from its first call to the end of its first kernel?
 * bench/remote_start runs it against servers with and without spare workers.
 *
 * Prints `name value unit` lines, one for each step. HED_LIBCUDA names the library.
 */
#include <stdio.h>

#include "base/clock.h"
#include "library.h"

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry empty()\n{\nret;\n}\n";

static uint64_t
report_step(const char *name, uint64_t begin)
{
    const uint64_t now = hed_now_ns();

    printf("%s %.3f ms\n", name, (double)(now - begin) / 1e6);
    return now;
}

int
main(void)
{
    CUcontext context;
    CUmodule module;
    CUfunction f;
    CUdeviceptr memory;

    open_library();

    const uint64_t begin = hed_now_ns();

    MUST(CU(cuInit)(0));

    uint64_t at = report_step("connect", begin);

    MUST(CU(cuDevicePrimaryCtxRetain)(&context, 0));
    MUST(CU(cuCtxSetCurrent)(context));
    at = report_step("context", at);
    MUST(CU(cuMemAlloc_v2)(&memory, 1 << 20));
    at = report_step("memory", at);
    MUST(CU(cuModuleLoadData)(&module, ptx));
    MUST(CU(cuModuleGetFunction)(&f, module, "empty"));
    at = report_step("code", at);
    MUST(CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    MUST(CU(cuCtxSynchronize)());
    at = report_step("kernel", at);
    printf("all %.3f ms\n", (double)(at - begin) / 1e6);
    return 0;
}
