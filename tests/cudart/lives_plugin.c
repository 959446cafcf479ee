/* A plug-in with device code of its own, as lives.c loads and unloads it. */
#include "image.h"

#include "gen/cudart_abi.h"

cudaError_t cudaLaunchKernel(const void *f, dim3 grid, dim3 block, void **args, size_t shared,
                             cudaStream_t stream);
__attribute__((visibility("default"))) int plugin_add(void *p);

static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
                          ".visible .entry count(.param .u64 p)\n"
                          "{\n"
                          ".reg .b64 %p; .reg .b32 %a;\n"
                          "ld.param.u64 %p, [p];\n"
                          "atom.global.add.u32 %a, [%p], 10;\n"
                          "ret;\n"
                          "}\n";

static char stub;
static void **handle;
static const struct image_wrapper *wrapper;

__attribute__((constructor)) static void
register_code(void)
{
    wrapper = image_wrap(ptx);
    handle = __cudaRegisterFatBinary(wrapper);
    image_kernel(handle, &stub, "count");
    __cudaRegisterFatBinaryEnd(handle);
}

__attribute__((destructor)) static void
unregister(void)
{
    __cudaUnregisterFatBinary(handle);
    free((void *)(uintptr_t)wrapper);
}

int
plugin_add(void *p)
{
    const dim3 one = {1, 1, 1};
    void *args[] = {&p};

    return (int)cudaLaunchKernel(&stub, one, one, args, 0, NULL);
}
