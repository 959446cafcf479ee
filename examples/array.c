/* The usual first example: copies an array of 32 doubles, 0..31, to the device, adds one to each
 * with a kernel of 32 threads, and copies it back: 1..32.
 *
 * This is a program of the driver API with its kernel as PTX text, so it needs no CUDA toolkit. It
 * links libcuda.so.1 like any other program, and knows nothing of heddle except for two ranges in
 * the trace.
 */
#include <stdio.h>
#include <stdlib.h>

#include "gen/cuda_front.h"

#define HEDDLE_DYNAMIC
#include <heddle.h>

static const char ptx[] = ".version 7.0\n"
                          ".target sm_70\n"
                          ".address_size 64\n"
                          ".visible .entry sum(.param .u64 array)\n"
                          "{\n"
                          "    .reg .u64 %a, %offset;\n"
                          "    .reg .u32 %t;\n"
                          "    .reg .f64 %x;\n"
                          "    ld.param.u64 %a, [array];\n"
                          "    mov.u32 %t, %tid.x;\n"
                          "    mul.wide.u32 %offset, %t, 8;\n"
                          "    add.u64 %a, %a, %offset;\n"
                          "    ld.global.f64 %x, [%a];\n"
                          "    add.f64 %x, %x, 0d3FF0000000000000;\n"
                          "    st.global.f64 [%a], %x;\n"
                          "    ret;\n"
                          "}\n";

static void
check(CUresult r, const char *what)
{
    const char *text = NULL;

    if (r == CUDA_SUCCESS)
        return;
    cuGetErrorString(r, &text);
    fprintf(stderr, "%s: %s (%d)\n", what, text ? text : "unknown error", (int)r);
    exit(1);
}

int
main(void)
{
    double host[32];
    char name[128] = "";
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction sum;
    CUdeviceptr array;

    check(cuInit(0), "cuInit");
    check(cuDeviceGet(&device, 0), "cuDeviceGet");
    check(cuDeviceGetName(name, sizeof name, device), "cuDeviceGetName");
    printf("device: %s\n", name);

    const struct heddle_api *heddle = heddle_load(); /* NULL without heddle */

    if (heddle)
        heddle->range_push("set up");
    check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    check(cuModuleLoadData(&module, ptx), "cuModuleLoadData");
    check(cuModuleGetFunction(&sum, module, "sum"), "cuModuleGetFunction");
    if (heddle) {
        heddle->range_pop();
        heddle->range_push("sum");
    }
    for (int i = 0; i < 32; i++)
        host[i] = i;
    check(cuMemAlloc_v2(&array, sizeof host), "cuMemAlloc");
    check(cuMemcpyHtoD_v2(array, host, sizeof host), "cuMemcpyHtoD");

    void *params[] = {&array};

    check(cuLaunchKernel(sum, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL), "cuLaunchKernel");
    check(cuMemcpyDtoH_v2(host, array, sizeof host), "cuMemcpyDtoH");
    check(cuMemFree_v2(array), "cuMemFree");
    if (heddle)
        heddle->range_pop();
    check(cuModuleUnload(module), "cuModuleUnload");
    check(cuDevicePrimaryCtxRelease_v2(device), "cuDevicePrimaryCtxRelease");
    for (int i = 0; i < 32; i++)
        printf("%g%c", host[i], i == 31 ? '\n' : ' ');
    return 0;
}
