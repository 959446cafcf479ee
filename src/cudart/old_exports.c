/* Exported functions that old compilers emit calls of. Compiled once for each edition: the version
 * script leaves out what an edition does not have. */
#include "cudart/front.h"
#include "cudart/old_texture.h"

HED_EXPORT void __cudaRegisterTexture(void **fatCubinHandle, const textureReference *hostVar,
                                      const void **deviceAddress, const char *deviceName, int dim,
                                      int norm, int ext);
HED_EXPORT void __cudaRegisterSurface(void **fatCubinHandle, const surfaceReference *hostVar,
                                      const void **deviceAddress, const char *deviceName, int dim,
                                      int ext);
HED_EXPORT void __cudaRegisterShared(void **fatCubinHandle, void **devicePtr);
HED_EXPORT void __cudaRegisterSharedVar(void **fatCubinHandle, void **devicePtr, size_t size,
                                        size_t alignment, int storage);

HED_EXPORT void
__cudaRegisterTexture(void **fatCubinHandle, const textureReference *hostVar,
                      const void **deviceAddress, const char *deviceName, int dim, int norm,
                      int ext)
{
    hed_rt_add_symbol((struct hed_rt_module *)fatCubinHandle, HED_RT_TEXTURE, hostVar, deviceName,
                      norm ? HED_RT_AS_FRACTIONS : 0);
}

HED_EXPORT void
__cudaRegisterSurface(void **fatCubinHandle, const surfaceReference *hostVar,
                      const void **deviceAddress, const char *deviceName, int dim, int ext)
{
    hed_rt_add_symbol((struct hed_rt_module *)fatCubinHandle, HED_RT_SURFACE, hostVar, deviceName,
                      0);
}

/* The driver knows the shared variables of kernels by itself. */
HED_EXPORT void
__cudaRegisterShared(void **fatCubinHandle, void **devicePtr)
{
}

HED_EXPORT void
__cudaRegisterSharedVar(void **fatCubinHandle, void **devicePtr, size_t size, size_t alignment,
                        int storage)
{
}
