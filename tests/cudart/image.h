/* Device code of programs that are linked with a libcudart: a fat binary, and the functions of the
 * runtime with which compilers' startup code registers it. */
#pragma once

#include "fatbin.h"

void **__cudaRegisterFatBinary(const void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const void *stub, const char *unused, const char *name,
                            int thread_limit, void *tid, void *bid, void *block, void *grid,
                            int *warp);
void __cudaRegisterVar(void **handle, void *shadow, const char *unused, const char *name, int ext,
                       size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **pointer, const char *unused, const char *name,
                              int ext, size_t size, int constant, int global);

/* Registers a kernel under the address of its stub, which is never called. */
static inline void
image_kernel(void **handle, const void *stub, const char *name)
{
    __cudaRegisterFunction(handle, stub, name, name, -1, NULL, NULL, NULL, NULL, NULL);
}

static inline void
image_variable(void **handle, void *shadow, const char *name, size_t size)
{
    __cudaRegisterVar(handle, shadow, name, name, 0, size, 0, 0);
}
