/* Loads an image as runtimes up to CUDA 11 do: by a function of an export table, which calls the
 * driver without going through the chain of layers. Then launches the image's kernel. */
#include "conformance/conf.h"

enum { SLOT_LOAD = 1 }; /* of CUDART_INTERFACE; slot 0 has the table's size */

static const char ptx[] = ".version 7.0\n"
                          ".target sm_50\n"
                          ".address_size 64\n"
                          ".visible .entry kernel()\n"
                          "{\n"
                          "ret;\n"
                          "}\n";

#define CALL(name, ...) CHECK_IS(((typeof(&name))dlsym(cuda, #name))(__VA_ARGS__), CUDA_SUCCESS)

int
main(void)
{
    CUuuid id = {.bytes = {0x6b, (char)0xd5, (char)0xfb, 0x6c, 0x5b, (char)0xf4, (char)0xe7, 0x4a,
                           (char)0x89, (char)0x87, (char)0xd9, 0x39, 0x12, (char)0xfd, (char)0x9d,
                           (char)0xf9}};
    void *cuda = conf_open();
    const void *table = NULL;
    CUcontext context;
    CUfunction kernel;
    CUmodule module = NULL;
    CUresult (*load)(CUmodule *, const void *);

    CALL(cuInit, 0);
    CALL(cuDevicePrimaryCtxRetain, &context, 0);
    CALL(cuCtxSetCurrent, context);
    CALL(cuGetExportTable, &table, &id);
    memcpy(&load, (const char *)table + SLOT_LOAD * sizeof load, sizeof load);
    CHECK_IS(load(&module, ptx), CUDA_SUCCESS);
    CALL(cuModuleGetFunction, &kernel, module, "kernel");
    CALL(cuLaunchKernel, kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
    CALL(cuCtxSynchronize, );
    return 0;
}
