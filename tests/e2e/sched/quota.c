/* The quota layer under a program: every way of allocating device memory counts, the limit holds,
 * and the memory of a killed process is available again.
 *
 *     quota [no_memory|far|all [SECTION]]
 *
 * `no_memory`: the backend has no memory, so only the layer's own counts can be checked. `far`:
 * code is loaded in another process, and its size does not show. Each section runs in a process of
 * its own, and continues after a wrong number, so that one run reports everything that is wrong on
 * a machine.
 *
 * The test asserts what the layer promises: memory over the limit cannot be allocated, whatever was
 * allocated before, and all of it is available again after it has been freed. When a driver takes
 * or gives up memory that it keeps without need is the driver's own decision.
 */
#include "quota_case.h"

#include "gen/nvml_front.h"
#include "harness/meeting.h"

bool no_memory, far;
CUcontext primary;
CUstream stream;
_Atomic int wrong;

static void
plain_memory_counts(void)
{
    const size_t base = free_bytes();
    CUdeviceptr p;
    size_t pitch;

    OK(CU(cuMemAlloc_v2)(&p, PART));
    the_rest_is_there("cuMemAlloc", base);
    OK(CU(cuMemFree_v2)(p));
    all_is_back("cuMemAlloc", base);
    OK(CU(cuMemAllocPitch_v2)(&p, &pitch, 65536, PART / 65536, 16));
    the_rest_is_there("cuMemAllocPitch", base);
    OK(CU(cuMemFree_v2)(p));
    all_is_back("cuMemAllocPitch", base);
    if (no_memory)
        return;
    OK(CU(cuMemAllocManaged)(&p, PART, CU_MEM_ATTACH_GLOBAL));
    the_rest_is_there("cuMemAllocManaged", base);
    OK(CU(cuMemFree_v2)(p));
    all_is_back("cuMemAllocManaged", base);
}

static void
pools_count(void)
{
    const size_t base = free_bytes();
    const CUmemPoolProps_v1 props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                     .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    cuuint64_t keep = UINT64_MAX;
    CUmemoryPool pool, current;
    CUdeviceptr p;

    OK(CU(cuMemAllocAsync)(&p, PART, stream));
    the_rest_is_there("cuMemAllocAsync", base);
    OK(CU(cuMemFreeAsync)(p, stream));
    OK(CU(cuStreamSynchronize)(stream));
    all_is_back("cuMemAllocAsync", base);

    OK(CU(cuMemPoolCreate)(&pool, &props));
    OK(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    OK(CU(cuMemAllocFromPoolAsync)(&p, PART, pool, stream));
    the_rest_is_there("cuMemAllocFromPoolAsync", base);
    OK(CU(cuMemFreeAsync)(p, stream));
    OK(CU(cuStreamSynchronize)(stream));
    /* The pool keeps it, but an allocation that needs it gets it. */
    try_all("a pool that keeps memory", base);
    OK(CU(cuMemAllocFromPoolAsync)(&p, PART, pool, stream));
    OK(CU(cuMemFreeAsync)(p, stream));
    OK(CU(cuStreamSynchronize)(stream));
    OK(CU(cuMemPoolTrimTo)(pool, 0));
    all_is_back("cuMemPoolTrimTo", base);
    /* It becomes the device's own pool, and is then destroyed. */
    OK(CU(cuDeviceGetMemPool)(&current, 0));
    OK(CU(cuDeviceSetMemPool)(0, pool));
    OK(CU(cuMemAllocAsync)(&p, PART, stream));
    the_rest_is_there("cuDeviceSetMemPool", base);
    OK(CU(cuMemFreeAsync)(p, stream));
    OK(CU(cuStreamSynchronize)(stream));
    OK(CU(cuDeviceSetMemPool)(0, current));
    OK(CU(cuMemPoolDestroy)(pool));
    all_is_back("cuMemPoolDestroy", base);
}

static void
physical_memory_counts(void)
{
    const size_t base = free_bytes();
    const CUmemAllocationProp_v1 prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemGenericAllocationHandle h, more;
    CUdeviceptr at = 0x100000000000ull;

    OK(CU(cuMemCreate)(&h, PART, &prop, 0));
    the_rest_is_there("cuMemCreate", base);
    EXPECT_IS(CU(cuMemCreate)(&more, base, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_IS(CU(cuMemCreate)(&more, SIZE_MAX - 2 * MIB + 1, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
    OK(CU(cuMemRelease)(h));
    all_is_back("cuMemRelease", base);
    OK(CU(cuMemCreate)(&h, PART, &prop, 0));
    OK(CU(cuMemAddressReserve)(&at, PART, 0, 0, 0));
    OK(CU(cuMemMap)(at, PART, 0, h, 0));
    OK(CU(cuMemRelease)(h));
    the_rest_is_there("cuMemMap", base);
    OK(CU(cuMemUnmap)(at, PART));
    all_is_back("cuMemUnmap", base);
    OK(CU(cuMemAddressFree)(at, PART));
}

static void
arrays_count(void)
{
    const size_t base = free_bytes();
    const CUDA_ARRAY_DESCRIPTOR_v2 flat = {4096, 2048, CU_AD_FORMAT_FLOAT, 4};
    const CUDA_ARRAY3D_DESCRIPTOR_v2 box = {
        .Width = 512, .Height = 512, .Depth = 32, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
    CUmipmappedArray mipmap;
    CUarray array;

    OK(CU(cuArrayCreate_v2)(&array, &flat));
    the_rest_is_there("cuArrayCreate", base);
    OK(CU(cuArrayDestroy)(array));
    all_is_back("cuArrayDestroy", base);
    OK(CU(cuArray3DCreate_v2)(&array, &box));
    the_rest_is_there("cuArray3DCreate", base);
    OK(CU(cuArrayDestroy)(array));
    OK(CU(cuMipmappedArrayCreate)(&mipmap, &box, 1));
    the_rest_is_there("cuMipmappedArrayCreate", base);
    OK(CU(cuMipmappedArrayDestroy)(mipmap));
    all_is_back("cuMipmappedArrayDestroy", base);
}

/* Asks for all of the limit after a graph has run that needs PART of it. The graph's memory is not
 * in use now. A driver may keep it, and then the allocation fails; or give it up, and then the
 * graph cannot run meanwhile. Both can never succeed. */
static void
all_or_the_graph(CUgraphExec exec, size_t base)
{
    CUdeviceptr p = 0;
    const CUresult r = CU(cuMemAlloc_v2)(&p, base);

    printf("    a graph that is not running: %s\n", r == CUDA_SUCCESS ? "gives up" : "keeps");
    EXPECT(r == CUDA_SUCCESS || r == CUDA_ERROR_OUT_OF_MEMORY, "%d", (int)r);
    if (r != CUDA_SUCCESS)
        return;
    EXPECT_IS(free_bytes(), 0);
    EXPECT_IS(CU(cuGraphLaunch)(exec, stream), CUDA_ERROR_OUT_OF_MEMORY);
    OK(CU(cuStreamSynchronize)(stream));
    OK(CU(cuMemFree_v2)(p));
}

/* How much is charged while a graph is built is up to the driver. That it is charged, and freed
 * again, is not. */
static void
graphs_count(bool captured)
{
    const size_t base = free_bytes();
    CUDA_MEM_ALLOC_NODE_PARAMS_v1 p = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                     .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
                                       .bytesize = PART};
    CUgraph graph;
    CUgraphNode node, last;
    CUgraphExec exec;
    CUdeviceptr at = 0;

    if (captured) {
        OK(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        OK(CU(cuMemAllocAsync)(&at, PART, stream));
        OK(CU(cuMemFreeAsync)(at, stream));
        OK(CU(cuStreamEndCapture)(stream, &graph));
    } else {
        OK(CU(cuGraphCreate)(&graph, 0));
        OK(CU(cuGraphAddMemAllocNode)(&node, graph, NULL, 0, &p));
        OK(CU(cuGraphAddMemFreeNode)(&last, graph, &node, 1, p.dptr));
    }
    OK(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0));
    OK(CU(cuGraphLaunch)(exec, stream));
    OK(CU(cuStreamSynchronize)(stream));
    if (!no_memory) {
        const size_t left = free_bytes();

        printf("    a graph: %zu of %zu are left\n", left, base);
        EXPECT(left <= base - PART, "%zu of %zu are left", left, base);
        all_or_the_graph(exec, base);
    }
    OK(CU(cuGraphLaunch)(exec, stream));
    OK(CU(cuStreamSynchronize)(stream));
    OK(CU(cuGraphExecDestroy)(exec));
    OK(CU(cuGraphDestroy)(graph));
    OK(CU(cuDeviceGraphMemTrim)(0));
    all_is_back("a graph", base);
}

static void
contexts_take_theirs_along(void)
{
    const size_t base = free_bytes();
    CUcontext c;
    CUdeviceptr p;

    OK(CU(cuCtxCreate_v2)(&c, 0, 0));
    OK(CU(cuMemAlloc_v2)(&p, PART));
    OK(CU(cuMemAlloc_v2)(&p, PART / 2));
    OK(CU(cuCtxSetCurrent)(primary));
    EXPECT_IS(free_bytes(), base - PART - PART / 2);
    OK(CU(cuCtxDestroy_v2)(c));
    OK(CU(cuCtxSetCurrent)(primary));
    all_is_back("cuCtxDestroy", base);
}

/* A thread that has no context allocates in that of the stream that it names. */
static void
streams_bring_their_context(void)
{
    const size_t base = free_bytes();
    CUstream theirs;
    CUgraph graph;
    CUdeviceptr p;
    CUcontext c;

    for (int i = 0; i < 4; i++) { /* together more than the limit */
        OK(CU(cuCtxCreate_v2)(&c, 0, 0));
        OK(CU(cuStreamCreate)(&theirs, CU_STREAM_NON_BLOCKING));
        OK(CU(cuCtxSetCurrent)(NULL));
        OK(CU(cuCtxSetCurrent)(NULL)); /* the primary one was below it */
        OK(CU(cuMemAllocAsync)(&p, PART, theirs));
        EXPECT_IS(CU(cuMemAllocAsync)(&p, base, theirs), CUDA_ERROR_OUT_OF_MEMORY);
        OK(CU(cuStreamBeginCapture_v2)(theirs, CU_STREAM_CAPTURE_MODE_RELAXED));
        EXPECT_IS(CU(cuMemAllocAsync)(&p, LIMIT + MIB, theirs), CUDA_ERROR_OUT_OF_MEMORY);
        OK(CU(cuStreamEndCapture)(theirs, &graph));
        OK(CU(cuGraphDestroy)(graph));
        OK(CU(cuCtxDestroy_v2)(c));
        OK(CU(cuCtxSetCurrent)(primary));
        all_is_back("memory of a stream", base);
    }
}

static void
globals_count(void)
{
    static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                              ".visible .global .align 8 .b8 large[134217728];\n"
                              ".visible .entry f()\n{\nret;\n}\n";
    const size_t base = free_bytes();
    CUmodule module;
    CUdeviceptr p;

    OK(CU(cuModuleLoadData)(&module, ptx));
    the_rest_is_there("cuModuleLoadData", base);
    OK(CU(cuModuleUnload)(module));
    all_is_back("cuModuleUnload", base);
    OK(CU(cuMemAlloc_v2)(&p, base - PART + 2 * MIB));
    EXPECT_IS(CU(cuModuleLoadData)(&module, ptx), CUDA_ERROR_OUT_OF_MEMORY);
    OK(CU(cuMemFree_v2)(p));
    all_is_back("a module that does not fit", base);
}

/* ---- what programs see ----------------------------------------------------------------------- */

static void *nvml;
#define NV(name) ((__typeof__(&(name)))dlsym(nvml, #name))

static void
open_nvml(void)
{
    const char *path = getenv("HED_LIBNVML");

    nvml = dlopen(path ? path : "libnvidia-ml.so.1", RTLD_NOW);
    CHECK(nvml, "%s", dlerror());
    CHECK_IS(NV(nvmlInit_v2)(), NVML_SUCCESS);
}

/* In the list of processes none uses more than the limit, and this one uses what it is charged. */
static void
processes_agree(nvmlDevice_t device, size_t held)
{
    nvmlProcessInfo_t infos[64];
    nvmlProcessInfo_v1_t old[64];
    unsigned n = 64;
    nvmlReturn_t r = NV(nvmlDeviceGetComputeRunningProcesses_v3)(device, &n, infos);

    EXPECT(r == NVML_SUCCESS || r == NVML_ERROR_NOT_SUPPORTED, "%d", (int)r);
    for (unsigned i = 0; r == NVML_SUCCESS && i < n; i++) {
        const unsigned long long used = infos[i].usedGpuMemory;

        printf("    process %u has %llu\n", infos[i].pid, used);
        if (used == UINT64_MAX) /* NVML does not say */
            continue;
        EXPECT(used <= LIMIT, "process %u has %llu", infos[i].pid, used);
        if (infos[i].pid == (unsigned)getpid())
            EXPECT_IS(used, held);
    }
    n = 64;
    r = NV(nvmlDeviceGetComputeRunningProcesses)(device, &n, old);
    for (unsigned i = 0; r == NVML_SUCCESS && i < n; i++)
        if (old[i].usedGpuMemory != UINT64_MAX)
            EXPECT(old[i].usedGpuMemory <= LIMIT, "process %u", old[i].pid);
}

/* `held` is charged to this process, and no other process has anything. */
static void
nvml_says(nvmlDevice_t device, size_t held)
{
    nvmlMemory_t m = {0};
    nvmlMemory_v2_t m2 = {.version = (unsigned)(sizeof m2 | 2u << 24)};
    const nvmlReturn_t r = NV(nvmlDeviceGetMemoryInfo_v2)(device, &m2);

    CHECK_IS(NV(nvmlDeviceGetMemoryInfo)(device, &m), NVML_SUCCESS);
    EXPECT_IS(m.total, LIMIT);
    EXPECT_IS(m.used, held);
    EXPECT_IS(m.free, LIMIT - held);
    EXPECT(r == NVML_SUCCESS || r == NVML_ERROR_NOT_SUPPORTED, "%d", (int)r);
    if (r == NVML_SUCCESS) {
        EXPECT_IS(m2.total, LIMIT);
        EXPECT_IS(m2.free, LIMIT - held);
        EXPECT_IS(m2.used + m2.free + m2.reserved, m2.total);
    }
    processes_agree(device, held);
}

static void
nvml_agrees(void)
{
    nvmlDevice_t device;
    CUdeviceptr p;

    open_nvml();
    CHECK_IS(NV(nvmlDeviceGetHandleByIndex_v2)(0, &device), NVML_SUCCESS);
    nvml_says(device, 0);
    OK(CU(cuMemAlloc_v2)(&p, PART));
    nvml_says(device, PART);
    OK(CU(cuMemFree_v2)(p));
    nvml_says(device, 0);
}

/* ---- several devices ------------------------------------------------------------------------- */

/* Allocates on the second device in every way that names it, while the first one is current. */
static void
other_device_counts(CUcontext second)
{
    const CUmemAllocationProp_v1 prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}};
    const CUmemPoolProps_v1 pool_props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                          .location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}};
    CUmemGenericAllocationHandle h;
    CUmemoryPool pool;
    CUstream there;
    CUdeviceptr p;

    OK(CU(cuCtxSetCurrent)(second));
    OK(CU(cuStreamCreate)(&there, CU_STREAM_NON_BLOCKING));
    OK(CU(cuMemAlloc_v2)(&p, PART));
    OK(CU(cuCtxSetCurrent)(primary));
    EXPECT_IS(CU(cuMemCreate)(&h, PART + 2 * MIB, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
    OK(CU(cuMemCreate)(&h, PART, &prop, 0));
    EXPECT_IS(free_bytes(), LIMIT);
    OK(CU(cuMemRelease)(h));
    OK(CU(cuMemPoolCreate)(&pool, &pool_props));
    EXPECT_IS(CU(cuMemAllocAsync)(&(CUdeviceptr){0}, PART + 2 * MIB, there),
              CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_IS(CU(cuMemAllocFromPoolAsync)(&(CUdeviceptr){0}, PART + 2 * MIB, pool, there),
              CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_IS(free_bytes(), LIMIT);
    OK(CU(cuMemPoolDestroy)(pool));
    OK(CU(cuMemFree_v2)(p)); /* of the other context */
    OK(CU(cuCtxSetCurrent)(second));
    EXPECT_IS(free_bytes(), LIMIT);
    OK(CU(cuStreamDestroy_v2)(there));
    OK(CU(cuCtxSetCurrent)(primary));
}

static void
each_device_has_its_limit(void)
{
    CUcontext contexts[2] = {primary, NULL};
    CUdeviceptr p[2];
    nvmlDevice_t device;
    size_t total = 0;
    int count = 0;

    OK(CU(cuDeviceGetCount)(&count));
    printf("    %d devices\n", count);
    if (count < 2)
        return;
    open_nvml();
    OK(CU(cuDevicePrimaryCtxRetain)(&contexts[1], 1));
    for (int i = 0; i < 2; i++) {
        OK(CU(cuDeviceTotalMem_v2)(&total, i));
        EXPECT_IS(total, LIMIT);
        OK(CU(cuCtxSetCurrent)(contexts[i]));
        EXPECT_IS(free_bytes(), LIMIT);
        OK(CU(cuMemAlloc_v2)(&p[i], LIMIT - (size_t)i * PART));
        EXPECT_IS(CU(cuMemAlloc_v2)(&(CUdeviceptr){0}, (size_t)i * PART + 1),
                  CUDA_ERROR_OUT_OF_MEMORY);
    }
    for (int i = 0; i < 2; i++) {
        OK(CU(cuCtxSetCurrent)(contexts[i]));
        EXPECT_IS(free_bytes(), (size_t)i * PART);
        CHECK_IS(NV(nvmlDeviceGetHandleByIndex_v2)((unsigned)i, &device), NVML_SUCCESS);
        nvml_says(device, LIMIT - (size_t)i * PART);
    }
    for (int i = 0; i < 2; i++) {
        OK(CU(cuCtxSetCurrent)(contexts[i]));
        OK(CU(cuMemFree_v2)(p[i]));
        EXPECT_IS(free_bytes(), LIMIT);
    }
    OK(CU(cuCtxSetCurrent)(primary));
    other_device_counts(contexts[1]);
    OK(CU(cuDevicePrimaryCtxRelease_v2)(1));
}

/* ---- memory for kernels ---------------------------------------------------------------------- */

/* A heap larger than the default one counts from cuCtxSetLimit until its context ends. */
static void
heaps_count(void)
{
    const size_t base = free_bytes();
    size_t heap = 0;
    CUcontext c;

    OK(CU(cuCtxCreate_v2)(&c, 0, 0));
    EXPECT_IS(CU(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, LIMIT + 16 * MIB),
              CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_IS(CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
    OK(CU(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, PART));
    OK(CU(cuCtxGetLimit)(&heap, CU_LIMIT_MALLOC_HEAP_SIZE));
    EXPECT(heap >= PART, "%zu", heap);
    EXPECT_IS(free_bytes(), base - (heap - 8 * MIB));
    EXPECT_IS(CU(cuMemAlloc_v2)(&(CUdeviceptr){0}, base - PART + 10 * MIB),
              CUDA_ERROR_OUT_OF_MEMORY);
    OK(CU(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, PART / 2));
    OK(CU(cuCtxGetLimit)(&heap, CU_LIMIT_MALLOC_HEAP_SIZE));
    EXPECT_IS(free_bytes(), base - (heap - 8 * MIB));
    OK(CU(cuCtxDestroy_v2)(c));
    OK(CU(cuCtxSetCurrent)(primary));
    all_is_back("a context with a heap", base);
}

/* ---- sections -------------------------------------------------------------------------------- */

static void
graphs_made(void)
{
    graphs_count(false);
}

static void
graphs_captured(void)
{
    graphs_count(true);
}

static const struct {
    const char *name;
    void (*run)(void);
    bool needs_memory, needs_near;
} sections[] = {
    {"plain", plain_memory_counts, false, false},
    {"pools", pools_count, false, false},
    {"physical", physical_memory_counts, false, false},
    {"arrays", arrays_count, false, false},
    {"threads", threads_hold_the_limit, false, false},
    {"group", a_group_shares_and_loses_nothing, false, false},
    {"killed", killed_in_the_middle_nothing_is_lost, false, false},
    /* The null backend has one context, and it is NULL. */
    {"contexts", contexts_take_theirs_along, true, false},
    {"streams", streams_bring_their_context, true, false},
    {"heaps", heaps_count, true, false},
    {"globals", globals_count, true, true},
    {"nvml", nvml_agrees, true, false},
    {"devices", each_device_has_its_limit, true, false},
    {"graphs", graphs_made, false, false},
    {"captured", graphs_captured, true, false},
    {"hold", hold, true, true}, /* run only by `group` and `killed` */
    {"struggle", struggle, true, true},
};

#define LISTED (sizeof sections / sizeof *sections - 2)

static int
run_section(const char *name)
{
    OK(CU(cuInit)(0));
    OK(CU(cuDevicePrimaryCtxRetain)(&primary, 0));
    OK(CU(cuCtxSetCurrent)(primary));
    OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        if (strcmp(sections[i].name, name) != 0)
            continue;
        if (i < LISTED)
            EXPECT_IS(free_bytes(), LIMIT);
        sections[i].run();
        return wrong != 0;
    }
    CHECK(false, "there is no section %s", name);
    return 1;
}

/* Runs every section that applies here, each in a process of its own. */
static int
run_all(const char *mode)
{
    int bad = 0;

    for (size_t i = 0; i < LISTED; i++) {
        int status = -1;

        if ((no_memory && sections[i].needs_memory) || (far && sections[i].needs_near))
            continue;
        printf("%s\n", sections[i].name);
        (void)fflush(stdout);

        const pid_t pid = fork();

        if (pid == 0) {
            execl("/proc/self/exe", "quota", mode, sections[i].name, (char *)NULL);
            _exit(126);
        }
        CHECK_IS(waitpid(pid, &status, 0), pid);
        if (status != 0)
            fprintf(stderr, "FAILED: %s (%d)\n", sections[i].name, status);
        bad += status != 0;
    }
    printf("%d of %zu sections failed\n", bad, LISTED);
    return bad != 0;
}

int
main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "all";
    char group[64];
    char name[96];

    no_memory = strcmp(mode, "no_memory") == 0;
    far = strcmp(mode, "far") == 0;
    (void)setvbuf(stdout, NULL, _IOLBF, 0); /* in order with standard error */
    setenv("HEDDLE_MEM", "256M", 1);
    if (argc > 2 && getenv("HEDDLE_MEM_GROUP"))
        return run_section(argv[2]);
    snprintf(group, sizeof group, "e2e-%ld", (long)getpid());
    setenv("HEDDLE_MEM_GROUP", group, 1);

    const int r = argc > 2 ? run_section(argv[2]) : run_all(mode);

    snprintf(name, sizeof name, "quota-%s", group);
    forget_meetings(name);
    return r || wrong;
}
