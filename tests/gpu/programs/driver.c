/* A program of the driver API: PTX, launches by parameters and by a packed buffer, every way to
 * find functions. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry add(.param .u64 p, .param .u32 n) {\n"
    "  .reg .u64 %a; .reg .u32 %t, %n, %v; .reg .pred %q; .reg .u64 %o;\n"
    "  ld.param.u64 %a, [p]; ld.param.u32 %n, [n]; mov.u32 %t, %tid.x;\n"
    "  setp.ge.u32 %q, %t, %n; @%q ret;\n"
    "  mul.wide.u32 %o, %t, 4; add.u64 %a, %a, %o;\n"
    "  ld.global.u32 %v, [%a]; add.u32 %v, %v, %n; st.global.u32 [%a], %v; ret;\n}\n";

static void
check_result(CUresult r, const char *what)
{
    const char *name = NULL;

    if (r == CUDA_SUCCESS)
        return;
    cuGetErrorName(r, &name);
    printf("%s: %s\n", what, name ? name : "?");
    exit(1);
}

int
main(void)
{
    unsigned host[64];
    unsigned n = 64;
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction add;
    CUdeviceptr memory;
    const char *name = NULL;
    int version = 0;
    void *entry = NULL;
    CUdriverProcAddressQueryResult status;

    check_result(cuInit(0), "cuInit");
    check_result(cuDriverGetVersion(&version), "version");
    check_result(cuDeviceGet(&device, 0), "device");
    check_result(cuDevicePrimaryCtxRetain(&context, device), "context");
    check_result(cuCtxSetCurrent(context), "current");
    check_result(cuModuleLoadData(&module, ptx), "module");
    check_result(cuModuleGetFunction(&add, module, "add"), "function");
    check_result(cuMemAlloc(&memory, sizeof host), "alloc");
    for (unsigned i = 0; i < n; i++)
        host[i] = i * i;
    check_result(cuMemcpyHtoD(memory, host, sizeof host), "copy");

    void *params[] = {&memory, &n};
    struct {
        CUdeviceptr p;
        unsigned n;
    } packed = {memory, 32};
    size_t size = sizeof packed.p + sizeof packed.n;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};

    check_result(cuLaunchKernel(add, 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL), "launch");
    check_result(cuLaunchKernel(add, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, extra), "packed launch");
    check_result(cuCtxSynchronize(), "synchronize");
    check_result(cuMemcpyDtoH(host, memory, sizeof host), "copy");
    for (unsigned i = 0; i < n; i++)
        printf("%u%c", host[i], i + 1 == n ? '\n' : ' ');
    printf("%d\n", (int)cuLaunchKernel(add, 0, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
    printf("%d\n", (int)cuMemAlloc(NULL, 16));
    printf("%d\n", (int)cuModuleGetFunction(&add, module, "no_such"));
    check_result(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &name), "name");
    printf("%s %d\n", name, version);
    printf("%d\n", (int)cuGetProcAddress("cuMemAlloc", &entry, 3020, 0, &status));
    printf("%d %d\n", (int)cuGetProcAddress("cuNope", &entry, 13000, 0, &status), (int)status);
    check_result(cuMemFree(memory), "free");
    check_result(cuModuleUnload(module), "unload");
    check_result(cuDevicePrimaryCtxRelease(device), "release");
    return 0;
}
