/* Loads a cubin in every way of the driver API and runs its kernel.
 *
 *     lift_ways FILE.cubin
 *
 * Prints a line for each way: "ok", or the error and what gave it. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#define N 256

static const char *what;

/* Remembers the first call that fails. */
static int
good(CUresult r, const char *call)
{
    const char *name = NULL;

    if (r == CUDA_SUCCESS)
        return 1;
    cuGetErrorName(r, &name);
    printf("%s: %s: %s\n", what, call, name ? name : "?");
    return 0;
}

#define GOOD(call) good(call, #call)

/* Changes the variable, launches, and compares. */
static void
run_fill(CUfunction fill, CUdeviceptr factor)
{
    unsigned host[N], value = 7, n = N, wrong = 0;
    CUdeviceptr memory;
    void *parameters[] = {&memory, &n};

    if (!GOOD(cuMemAlloc(&memory, sizeof host)) ||
        !GOOD(cuMemcpyHtoD(factor, &value, sizeof value)) ||
        !GOOD(cuLaunchKernel(fill, 2, 1, 1, N / 2, 1, 1, 0, NULL, parameters, NULL)) ||
        !GOOD(cuMemcpyDtoH(host, memory, sizeof host)))
        return;
    for (unsigned i = 0; i < N; i++)
        wrong += host[i] != 7 * i;
    if (wrong)
        printf("%s: %u of %d words are wrong\n", what, wrong, N);
    else
        printf("%s: ok\n", what);
    cuMemFree(memory);
}

static void
run_module(CUmodule module)
{
    CUdeviceptr factor;
    CUfunction fill;
    size_t size;

    if (GOOD(cuModuleGetFunction(&fill, module, "fill")) &&
        GOOD(cuModuleGetGlobal(&factor, &size, module, "factor")))
        run_fill(fill, factor);
    cuModuleUnload(module);
}

static void
run_library(CUlibrary library)
{
    CUdeviceptr factor;
    CUkernel kernel;
    size_t size;

    if (GOOD(cuLibraryGetKernel(&kernel, library, "fill")) &&
        GOOD(cuLibraryGetGlobal(&factor, &size, library, "factor")))
        run_fill((CUfunction)kernel, factor);
    cuLibraryUnload(library);
}

static void *
read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    void *data = malloc(1 << 20);

    if (!f || !data)
        exit(2);
    *size = fread(data, 1, 1 << 20, f);
    fclose(f);
    return data;
}

static void
run_link(const char *path, void *data, size_t size)
{
    CUlinkState link;
    CUmodule module;
    void *image;
    size_t image_size;

    if (!GOOD(cuLinkCreate(0, NULL, NULL, &link)))
        return;
    if ((data ? GOOD(cuLinkAddData(link, CU_JIT_INPUT_CUBIN, data, size, "x", 0, NULL, NULL))
              : GOOD(cuLinkAddFile(link, CU_JIT_INPUT_CUBIN, path, 0, NULL, NULL))) &&
        GOOD(cuLinkComplete(link, &image, &image_size)) && GOOD(cuModuleLoadData(&module, image)))
        run_module(module);
    cuLinkDestroy(link);
}

int
main(int argc, char **argv)
{
    char log[4096] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUlibrary library;
    size_t size;
    void *data;

    if (argc != 2)
        return 2;
    what = "start";
    data = read_file(argv[1], &size);
    if (!GOOD(cuInit(0)) || !GOOD(cuDeviceGet(&device, 0)) ||
        !GOOD(cuDevicePrimaryCtxRetain(&context, device)) || !GOOD(cuCtxSetCurrent(context)))
        return 2;
    what = "module from file";
    if (GOOD(cuModuleLoad(&module, argv[1])))
        run_module(module);
    what = "module from memory";
    if (GOOD(cuModuleLoadData(&module, data)))
        run_module(module);
    what = "module with options";
    if (GOOD(cuModuleLoadDataEx(&module, data, 2, options, values)))
        run_module(module);
    what = "library from file";
    if (GOOD(cuLibraryLoadFromFile(&library, argv[1], NULL, NULL, 0, NULL, NULL, 0)))
        run_library(library);
    what = "library from memory";
    if (GOOD(cuLibraryLoadData(&library, data, NULL, NULL, 0, NULL, NULL, 0)))
        run_library(library);
    what = "link of a file";
    run_link(argv[1], NULL, 0);
    what = "link of memory";
    run_link(NULL, data, size);
    if (log[0])
        printf("%s\n", log);
    return 0;
}
