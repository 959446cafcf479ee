/* Devices and kernels as the editions of CUDA 8.0 and 10.2 describe them: device.h, func.c. */
#include "cudart/device.h"

#include <string.h>

#include "gen/cudart_calls.h"

static const struct hed_rt_member members_8[] = {
    HED_RT_PROP_ALL(HED_RT_MEMBER, cudaDeviceProp_8)      /**/
    HED_RT_PROP_UNTIL_12(HED_RT_MEMBER, cudaDeviceProp_8) /**/
};

static const struct hed_rt_member members_10[] = {
    HED_RT_PROP_ALL(HED_RT_MEMBER, cudaDeviceProp_10)      /**/
    HED_RT_PROP_UNTIL_12(HED_RT_MEMBER, cudaDeviceProp_10) /**/
    HED_RT_PROP_10_TO_12(HED_RT_MEMBER, cudaDeviceProp_10) /**/
    HED_RT_PROP_SINCE_10(HED_RT_MEMBER, cudaDeviceProp_10) /**/
};

static const struct hed_rt_layout layout_8 =
    HED_RT_LAYOUT(cudaDeviceProp_8, members_8, false, sizeof(cudaDeviceProp_8));
static const struct hed_rt_layout layout_10 =
    HED_RT_LAYOUT(cudaDeviceProp_10, members_10, true, sizeof(cudaDeviceProp_10));

/* As the headers of that time have them, on 64-bit systems. */
_Static_assert(sizeof(cudaDeviceProp_8) == 648, "cudaDeviceProp of CUDA 8.0");
_Static_assert(sizeof(cudaDeviceProp_10) == 712, "cudaDeviceProp of CUDA 10.2");
_Static_assert(sizeof(cudaFuncAttributes_8) == 48, "cudaFuncAttributes of CUDA 8.0");
_Static_assert(offsetof(cudaDeviceProp_10, luid) == offsetof(cudaDeviceProp, luid), "ids");

cudaError_t
hed_rt_cudaGetDeviceProperties_8(const struct hed_rt_driver *cu, cudaDeviceProp_8 *prop, int device)
{
    return hed_rt_describe(cu, &layout_8, prop, device);
}

cudaError_t
hed_rt_cudaGetDeviceProperties_10(const struct hed_rt_driver *cu, cudaDeviceProp_10 *prop,
                                  int device)
{
    return hed_rt_describe(cu, &layout_10, prop, device);
}

cudaError_t
hed_rt_cudaChooseDevice_8(const struct hed_rt_driver *cu, int *device, const cudaDeviceProp_8 *prop)
{
    return hed_rt_choose(cu, &layout_8, device, prop);
}

cudaError_t
hed_rt_cudaChooseDevice_10(const struct hed_rt_driver *cu, int *device,
                           const cudaDeviceProp_10 *prop)
{
    return hed_rt_choose(cu, &layout_10, device, prop);
}

cudaError_t
hed_rt_cudaFuncGetAttributes_8(const struct hed_rt_driver *cu, cudaFuncAttributes_8 *attr,
                               const void *func)
{
    cudaFuncAttributes_11 a;
    const cudaError_t r = hed_rt_cudaFuncGetAttributes_11(cu, attr ? &a : NULL, func);

    if (r == cudaSuccess)
        memcpy(attr, &a, offsetof(cudaFuncAttributes_8, cacheModeCA) + sizeof attr->cacheModeCA);
    return r;
}
