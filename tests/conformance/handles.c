/* Every handle that is a pointer in CUDA is a multiple of 16, like memory from malloc(): programs
 * keep flags in the low bits. PyTorch takes a stream's handle with bit 0 set for another stream.
 * Several objects of every kind are made, because the first one's number may happen to be even.
 */
#include "conf.h"

#define EACH 5
#define MUST(name, ...) CHECK_IS(CU(name)(__VA_ARGS__), CUDA_SUCCESS)
#define ALIGNED(handle) check_aligned((uint64_t)(uintptr_t)(handle), #handle, __LINE__)

static const char text[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                           ".visible .entry k() { ret; }\n"
                           ".visible .entry l() { ret; }\n";

static void
check_aligned(uint64_t handle, const char *what, int line)
{
    CHECK(handle != 0 && handle % 16 == 0, "line %d: %s is %#llx", line, what,
          (unsigned long long)handle);
}

/* Whether the backend has the call; null answers some by "not supported". */
static bool
has_call(CUresult r)
{
    CHECK(r == CUDA_SUCCESS || r == CUDA_ERROR_NOT_SUPPORTED, "it failed with %d", (int)r);
    return r == CUDA_SUCCESS;
}

static void
order(void)
{
    for (int i = 0; i < EACH; i++) {
        CUstream stream;
        CUevent event;

        MUST(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
        MUST(cuEventCreate, &event, CU_EVENT_DEFAULT);
        ALIGNED(stream);
        ALIGNED(event);
    }
}

static void
memory(void)
{
    const CUmemPoolProps_v1 props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                     .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    const CUDA_ARRAY_DESCRIPTOR_v2 shape = {16, 16, CU_AD_FORMAT_FLOAT, 1};

    for (int i = 0; i < EACH; i++) {
        CUmemoryPool pool;
        CUarray array;

        if (has_call(CU(cuMemPoolCreate)(&pool, &props)))
            ALIGNED(pool);
        if (has_call(CU(cuArrayCreate_v2)(&array, &shape)))
            ALIGNED(array);
    }
}

static void
code(void)
{
    for (int i = 0; i < EACH; i++) {
        CUmodule module;
        CUfunction function, other;
        CUlibrary library;
        CUkernel kernel;
        CUlinkState linker;

        MUST(cuModuleLoadData, &module, text);
        MUST(cuModuleGetFunction, &function, module, "k");
        MUST(cuModuleGetFunction, &other, module, "l");
        ALIGNED(module);
        ALIGNED(function);
        ALIGNED(other);
        MUST(cuLibraryLoadData, &library, text, NULL, NULL, 0, NULL, NULL, 0);
        MUST(cuLibraryGetKernel, &kernel, library, "l");
        MUST(cuKernelGetFunction, &function, kernel);
        ALIGNED(library);
        ALIGNED(kernel);
        ALIGNED(function);
        if (has_call(CU(cuLinkCreate_v2)(0, NULL, NULL, &linker)))
            ALIGNED(linker);
    }
}

static void
graphs(void)
{
    for (int i = 0; i < EACH; i++) {
        CUgraph graph;
        CUgraphNode node, second;
        CUgraphExec exec;

        MUST(cuGraphCreate, &graph, 0);
        MUST(cuGraphAddEmptyNode, &node, graph, NULL, 0);
        MUST(cuGraphAddEmptyNode, &second, graph, &node, 1);
        MUST(cuGraphInstantiateWithFlags, &exec, graph, 0);
        ALIGNED(graph);
        ALIGNED(node);
        ALIGNED(second);
        ALIGNED(exec);
    }
}

static void
hear(void *data, CUlogLevel level, char *message, size_t length)
{
    (void)data, (void)level, (void)message, (void)length;
}

static void
callbacks(void)
{
    for (int i = 0; i < EACH; i++) {
        CUlogsCallbackHandle handle;

        if (has_call(CU(cuLogsRegisterCallback)(hear, NULL, &handle)))
            ALIGNED(handle);
    }
}

int
main(void)
{
    CUcontext context;
    CUdevice device;

    MUST(cuInit, 0);
    MUST(cuDeviceGet, &device, 0);
    for (int i = 0; i < EACH; i++) {
        MUST(cuCtxCreate_v2, &context, 0, device);
        ALIGNED(context);
    }
    order();
    memory();
    code();
    graphs();
    callbacks();
    return 0;
}
