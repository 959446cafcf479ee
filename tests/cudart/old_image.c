/* The image of an old program: PTX in a fat binary (docs/internals/fatbin.md), in a wrapper of
 * version 1. It is registered before main() and unregistered by atexit(); there was no
 * __cudaRegisterFatBinaryEnd(). */
#include "fatbin.h"
#include "old.h"

static void **old_handle;

static void
unregister_old(void)
{
    __cudaUnregisterFatBinary(old_handle);
}

void **
old_register(const char *ptx)
{
    old_handle = __cudaRegisterFatBinary((void *)(uintptr_t)image_wrap_as(ptx, 4, 2, 20));
    EXPECT(old_handle);
    EXPECT(atexit(unregister_old) == 0);
    return old_handle;
}
