/* How much memory can be allocated under a limit, with each API?
 *
 *     quota PIECE      allocates pieces of PIECE bytes until there are no more, with each API
 *     quota hold N     allocates N bytes with cuMemAlloc, prints "ready", and waits to be killed
 *     quota most       the largest number of bytes that cuMemAlloc gives in pieces of 1 MiB
 *
 * Prints `api bytes error` lines: the bytes that were allocated, and the code of the first refusal.
 * A line `api - error` means that this GPU does not support the API. */
#include "gpu.h"

#define PIECES 4096

static CUdeviceptr pieces[PIECES];
static CUmemGenericAllocationHandle handles[PIECES];
static CUarray arrays[PIECES];
static CUstream stream;
static CUmemoryPool pool;

/* Allocates the i-th piece; `less` frees it again. */
static CUresult
plain(size_t i, size_t size)
{
    return CU(cuMemAlloc_v2)(&pieces[i], size);
}

static CUresult
pitched(size_t i, size_t size)
{
    size_t pitch;

    return CU(cuMemAllocPitch_v2)(&pieces[i], &pitch, 65536, size / 65536, 16);
}

static CUresult
managed(size_t i, size_t size)
{
    return CU(cuMemAllocManaged)(&pieces[i], size, CU_MEM_ATTACH_GLOBAL);
}

static CUresult
ordered(size_t i, size_t size)
{
    const CUresult r = CU(cuMemAllocAsync)(&pieces[i], size, stream);

    return r == CUDA_SUCCESS ? CU(cuStreamSynchronize)(stream) : r;
}

static CUresult
pooled(size_t i, size_t size)
{
    return CU(cuMemAllocFromPoolAsync)(&pieces[i], size, pool, stream);
}

static CUresult
created(size_t i, size_t size)
{
    const CUmemAllocationProp_v1 prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

    return CU(cuMemCreate)(&handles[i], size, &prop, 0);
}

static CUresult
array(size_t i, size_t size)
{
    const CUDA_ARRAY_DESCRIPTOR_v2 d = {.Width = 1024,
                                        .Height = size / 4096,
                                        .Format = CU_AD_FORMAT_UNSIGNED_INT32,
                                        .NumChannels = 1};

    return CU(cuArrayCreate_v2)(&arrays[i], &d);
}

static CUresult
graph_node(size_t i, size_t size)
{
    CUDA_MEM_ALLOC_NODE_PARAMS_v1 p = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                     .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
                                       .bytesize = size};
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec;
    CUresult r = CU(cuGraphCreate)(&graph, 0);

    if (r == CUDA_SUCCESS)
        r = CU(cuGraphAddMemAllocNode)(&node, graph, NULL, 0, &p);
    if (r == CUDA_SUCCESS)
        r = CU(cuGraphInstantiateWithFlags)(&exec, graph, 0);
    if (r == CUDA_SUCCESS)
        r = CU(cuGraphLaunch)(exec, stream);
    if (r == CUDA_SUCCESS)
        r = CU(cuStreamSynchronize)(stream);
    pieces[i] = p.dptr;
    return r;
}

static void
give_plain(size_t i)
{
    MUST(CU(cuMemFree_v2)(pieces[i]));
}

static void
give_ordered(size_t i)
{
    MUST(CU(cuMemFreeAsync)(pieces[i], stream));
}

static void
give_created(size_t i)
{
    MUST(CU(cuMemRelease)(handles[i]));
}

static void
give_array(size_t i)
{
    MUST(CU(cuArrayDestroy)(arrays[i]));
}

static const struct way {
    const char *name;
    CUresult (*take)(size_t i, size_t size);
    void (*give)(size_t i);
} ways[] = {
    {"cuMemAlloc", plain, give_plain},
    {"cuMemAllocPitch", pitched, give_plain},
    {"cuMemAllocManaged", managed, give_plain},
    {"cuMemAllocAsync", ordered, give_ordered},
    {"cuMemAllocFromPoolAsync", pooled, give_ordered},
    {"cuMemCreate", created, give_created},
    {"cuArrayCreate", array, give_array},
    {"cuGraphAddMemAllocNode", graph_node, give_ordered},
};

static size_t
take_all(const struct way *w, size_t piece, CUresult *refused)
{
    size_t n = 0;

    for (*refused = CUDA_SUCCESS; n < PIECES; n++) {
        *refused = w->take(n, piece);
        if (*refused != CUDA_SUCCESS)
            break;
    }
    for (size_t i = 0; i < n; i++)
        w->give(i);
    MUST(CU(cuStreamSynchronize)(stream));
    return n * piece;
}

static int
hold(size_t bytes)
{
    MUST(CU(cuMemAlloc_v2)(&pieces[0], bytes));
    printf("ready\n");
    fflush(stdout);
    for (;;)
        pause();
}

int
main(int argc, char **argv)
{
    const CUmemPoolProps_v1 props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                     .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUcontext context;
    CUresult refused;

    if (argc < 2)
        return 2;
    MUST(CU(cuInit)(0));
    MUST(CU(cuDevicePrimaryCtxRetain)(&context, 0));
    MUST(CU(cuCtxSetCurrent)(context));
    if (strcmp(argv[1], "hold") == 0)
        return argc < 3 ? 2 : hold(strtoull(argv[2], NULL, 10));
    MUST(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    if (strcmp(argv[1], "most") == 0) {
        printf("%zu\n", take_all(&ways[0], (size_t)1 << 20, &refused));
        return 0;
    }
    MUST(CU(cuMemPoolCreate)(&pool, &props));
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const size_t got = take_all(&ways[i], strtoull(argv[1], NULL, 10), &refused);

        if (got == 0 && refused == CUDA_ERROR_NOT_SUPPORTED)
            printf("%s - %d\n", ways[i].name, (int)refused);
        else
            printf("%s %zu %d\n", ways[i].name, got, (int)refused);
    }
    return 0;
}
