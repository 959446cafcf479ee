/* A refused launch fails alone: its context, other contexts and later ones can still be used. */
#include "conformance/conf.h"

#define OK(call) CHECK_IS(call, CUDA_SUCCESS)

static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                           ".visible .entry store(.param .u64 to)\n{\n"
                           ".reg .b64 %d<2>;\nld.param.u64 %d1, [to];\n"
                           "st.global.u32 [%d1], 7;\nret;\n}\n";

static CUresult
launch_threads(CUfunction f, unsigned threads, CUdeviceptr to)
{
    void *params[] = {&to};

    return CU(cuLaunchKernel)(f, 1, 1, 1, threads, 1, 1, 0, NULL, params, NULL);
}

int
main(void)
{
    CUcontext first, second;
    CUdeviceptr at, more;
    CUmodule module;
    CUfunction f;
    CUdevice device;
    uint32_t value = 0;

    OK(CU(cuInit)(0));
    OK(CU(cuDeviceGet)(&device, 0));
    OK(CU(cuCtxCreate_v2)(&first, 0, device));
    OK(CU(cuModuleLoadData)(&module, text));
    OK(CU(cuModuleGetFunction)(&f, module, "store"));
    OK(CU(cuMemAlloc_v2)(&at, sizeof value));

    /* More threads than a block can have. */
    CHECK_IS(launch_threads(f, 2048, at), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuCtxSynchronize)());
    OK(launch_threads(f, 1, at));
    OK(CU(cuMemcpyDtoH_v2)(&value, at, sizeof value));
    CHECK(value == 7, "the kernel wrote %u", value);
    OK(CU(cuMemAlloc_v2)(&more, sizeof value));
    OK(CU(cuMemFree_v2)(at));

    /* Neither another context nor a later one is affected. */
    OK(CU(cuCtxCreate_v2)(&second, 0, device));
    OK(CU(cuCtxSynchronize)());
    OK(CU(cuCtxDestroy_v2)(second));
    OK(CU(cuCtxDestroy_v2)(first));
    OK(CU(cuDevicePrimaryCtxRetain)(&first, device));
    OK(CU(cuCtxSetCurrent)(first));
    OK(CU(cuModuleLoadData)(&module, text));
    OK(CU(cuModuleGetFunction)(&f, module, "store"));
    CHECK_IS(launch_threads(f, 2048, 0), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuCtxSynchronize)());
    OK(CU(cuDevicePrimaryCtxReset_v2)(device));
    OK(CU(cuDevicePrimaryCtxRetain)(&first, device));
    OK(CU(cuCtxSetCurrent)(first));
    OK(CU(cuCtxSynchronize)());
    return 0;
}
