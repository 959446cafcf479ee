/* Exported functions that do not return an error, or that compilers emit calls of. Compiled once
 * for each edition: the version script leaves out what an edition does not have. */
#include "cudart/exports.h"

#include <stdint.h>

#include "cudart/front.h"
#include "cudart/old_texture.h"
#include "cudart/registry.h"

/* ---- errors ---------------------------------------------------------------------------------- */

HED_EXPORT const char *cudaGetErrorName(cudaError_t error);
HED_EXPORT const char *cudaGetErrorString(cudaError_t error);

static const struct hed_rt_error *
error_of_edition(cudaError_t error)
{
    return hed_rt_find_error(hed_rt_version < 10010 ? (int)hed_rt_new_error((int)error)
                                                    : (int)error);
}

HED_EXPORT const char *
cudaGetErrorName(cudaError_t error)
{
    const struct hed_rt_error *e = error_of_edition(error);

    return e ? e->name : "unrecognized error code";
}

/* Texts that were reworded later. */
static const struct {
    int number, until; /* the version that has today's text */
    const char *text;
} older_texts[] = {
    {cudaErrorInvalidNormSetting, 12000,
     "read as normalized float not supported for 32-bit non float type"},
    {cudaErrorDevicesUnavailable, 11000, "all CUDA-capable devices are busy or unavailable"},
};

HED_EXPORT const char *
cudaGetErrorString(cudaError_t error)
{
    const struct hed_rt_error *e = error_of_edition(error);

    for (size_t i = 0; e && i < sizeof older_texts / sizeof older_texts[0]; i++)
        if (e->number == older_texts[i].number && hed_rt_version < older_texts[i].until)
            return older_texts[i].text;
    return e ? e->text : "unrecognized error code";
}

/* ---- formats --------------------------------------------------------------------------------- */

HED_EXPORT cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                       cudaChannelFormatKind f);

HED_EXPORT cudaChannelFormatDesc
cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f)
{
    return (cudaChannelFormatDesc){x, y, z, w, f};
}

/* ---- registration ---------------------------------------------------------------------------- */

HED_EXPORT void **__cudaRegisterFatBinary(void *fatCubin);
HED_EXPORT void __cudaRegisterFatBinaryEnd(void **fatCubinHandle);
HED_EXPORT void __cudaUnregisterFatBinary(void **fatCubinHandle);
HED_EXPORT void __cudaRegisterFunction(void **fatCubinHandle, const char *hostFun, char *deviceFun,
                                       const char *deviceName, int thread_limit, void *tid,
                                       void *bid, void *bDim, void *gDim, int *wSize);
HED_EXPORT void __cudaRegisterVar(void **fatCubinHandle, char *hostVar, char *deviceAddress,
                                  const char *deviceName, int ext, size_t size, int constant,
                                  int global);
HED_EXPORT void __cudaRegisterManagedVar(void **fatCubinHandle, void **hostVarPtrAddress,
                                         char *deviceAddress, const char *deviceName, int ext,
                                         size_t size, int constant, int global);
HED_EXPORT void __cudaRegisterHostVar(void **fatCubinHandle, const char *deviceName, char *hostVar,
                                      size_t size);
HED_EXPORT void __cudaRegisterUnifiedTable(void **fatCubinHandle);
HED_EXPORT char __cudaInitModule(void **fatCubinHandle);
HED_EXPORT unsigned __cudaPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem,
                                                cudaStream_t stream);
HED_EXPORT void *__cudaGetProcAddress(const char *name);

HED_EXPORT void **
__cudaRegisterFatBinary(void *fatCubin)
{
    return (void **)hed_rt_add_module(fatCubin);
}

HED_EXPORT void
__cudaRegisterFatBinaryEnd(void **fatCubinHandle)
{
    (void)fatCubinHandle;
}

HED_EXPORT void
__cudaUnregisterFatBinary(void **fatCubinHandle)
{
    if (fatCubinHandle)
        hed_rt_forget_textures((struct hed_rt_module *)fatCubinHandle);
    if (fatCubinHandle)
        hed_rt_remove_module((struct hed_rt_module *)fatCubinHandle);
}

HED_EXPORT void
__cudaRegisterFunction(void **fatCubinHandle, const char *hostFun, char *deviceFun,
                       const char *deviceName, int thread_limit, void *tid, void *bid, void *bDim,
                       void *gDim, int *wSize)
{
    hed_rt_add_symbol((struct hed_rt_module *)fatCubinHandle, HED_RT_KERNEL, hostFun, deviceName,
                      0);
}

HED_EXPORT void
__cudaRegisterVar(void **fatCubinHandle, char *hostVar, char *deviceAddress, const char *deviceName,
                  int ext, size_t size, int constant, int global)
{
    hed_rt_add_symbol((struct hed_rt_module *)fatCubinHandle, HED_RT_VARIABLE, hostVar, deviceName,
                      size);
}

HED_EXPORT void
__cudaRegisterManagedVar(void **fatCubinHandle, void **hostVarPtrAddress, char *deviceAddress,
                         const char *deviceName, int ext, size_t size, int constant, int global)
{
    hed_rt_add_symbol((struct hed_rt_module *)fatCubinHandle, HED_RT_MANAGED_POINTER,
                      hostVarPtrAddress, deviceName, size);
}

HED_EXPORT void
__cudaRegisterHostVar(void **fatCubinHandle, const char *deviceName, char *hostVar, size_t size)
{
    hed_rt_say_missing("__cudaRegisterHostVar", "kernels cannot reach variables of the host");
}

HED_EXPORT void
__cudaRegisterUnifiedTable(void **fatCubinHandle)
{
    hed_rt_say_missing("__cudaRegisterUnifiedTable", "not documented");
}

HED_EXPORT char
__cudaInitModule(void **fatCubinHandle)
{
    return fatCubinHandle && hed_rt_init_module((struct hed_rt_module *)fatCubinHandle) ? 1 : 0;
}

HED_EXPORT unsigned
__cudaPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem, cudaStream_t stream)
{
    return hed_rt_push_config(&(struct hed_rt_config){gridDim, blockDim, sharedMem, stream});
}

HED_EXPORT void *
__cudaGetProcAddress(const char *name)
{
    hed_rt_say_missing("__cudaGetProcAddress", "not documented");
    return NULL;
}
