/* The quota layer under a program: every way to have memory of a device counts, the limit holds,
 * and what a killed process had is there again.
 *
 *     quota [hollow|far]  HEDDLE_MEM is set to 256M and HEDDLE_MEM_GROUP to a name of its own
 *
 * `hollow`: nothing is below, so only what the layer itself counts can be looked at. `far`: code is
 * elsewhere, and does not show.
 */
#include "conformance/conf.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "gen/nvml_front.h"

#define OK(call) CHECK_IS(call, CUDA_SUCCESS)
#define MIB ((size_t)1 << 20)
#define LIMIT (256 * MIB)
#define PART (128 * MIB)

static bool hollow, far;
static CUcontext primary;
static CUstream stream;

static size_t
free_bytes(void)
{
    size_t free = 0, total = 0;

    OK(CU(cuMemGetInfo_v2)(&free, &total));
    CHECK_IS(total, LIMIT);
    CHECK(free <= total, "%zu of %zu", free, total);
    return free;
}

/* While PART is taken: the rest can be had, and not more. */
static void
the_rest_is_there(const char *what, size_t base)
{
    const size_t left = free_bytes();
    CUdeviceptr p = 0;

    CHECK(left <= base - PART, "%s: %zu of %zu are left", what, left, base);
    CHECK(left >= base - PART - 8 * MIB, "%s: only %zu of %zu are left", what, left, base);
    CHECK_IS(CU(cuMemAlloc_v2)(&p, left + 1), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_IS(CU(cuMemAllocAsync)(&p, base, stream), CUDA_ERROR_OUT_OF_MEMORY);
    OK(CU(cuMemAlloc_v2)(&p, left));
    CHECK_IS(free_bytes(), 0);
    OK(CU(cuMemFree_v2)(p));
}

static void
all_is_back(const char *what, size_t base)
{
    CUdeviceptr p;

    CHECK(free_bytes() == base, "%s: %zu of %zu are back", what, free_bytes(), base);
    OK(CU(cuMemAlloc_v2)(&p, base));
    OK(CU(cuMemFree_v2)(p));
}

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
    if (hollow)
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
    /* The pool keeps it; somebody who needs it gets it. */
    OK(CU(cuMemAlloc_v2)(&p, base));
    OK(CU(cuMemFree_v2)(p));
    OK(CU(cuMemAllocFromPoolAsync)(&p, PART, pool, stream));
    OK(CU(cuMemFreeAsync)(p, stream));
    OK(CU(cuStreamSynchronize)(stream));
    OK(CU(cuMemPoolTrimTo)(pool, 0));
    all_is_back("cuMemPoolTrimTo", base);
    /* As the device's own pool; then it goes. */
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
    CHECK_IS(CU(cuMemCreate)(&more, base, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
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

/* What is charged while a graph is built is the driver's affair; that it is, and goes, is not. */
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
    if (!hollow) {
        const size_t left = free_bytes();

        CHECK(left <= base - PART, "%zu of %zu are left", left, base);
        CHECK_IS(CU(cuMemAlloc_v2)(&at, base), CUDA_ERROR_OUT_OF_MEMORY);
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
    CHECK_IS(free_bytes(), base - PART - PART / 2);
    OK(CU(cuCtxDestroy_v2)(c));
    OK(CU(cuCtxSetCurrent)(primary));
    all_is_back("cuCtxDestroy", base);
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
    CHECK_IS(CU(cuModuleLoadData)(&module, ptx), CUDA_ERROR_OUT_OF_MEMORY);
    OK(CU(cuMemFree_v2)(p));
    all_is_back("a module that does not fit", base);
}

static void
nvml_agrees(void)
{
    const char *path = getenv("HED_LIBNVML");
    void *library = dlopen(path ? path : "libnvidia-ml.so.1", RTLD_NOW);
    nvmlDevice_t device;
    nvmlMemory_t m = {0};
    CUdeviceptr p;

    CHECK(library, "%s", dlerror());
#define NV(name) ((__typeof__(&(name)))dlsym(library, #name))
    CHECK_IS(NV(nvmlInit_v2)(), NVML_SUCCESS);
    CHECK_IS(NV(nvmlDeviceGetHandleByIndex_v2)(0, &device), NVML_SUCCESS);
    OK(CU(cuMemAlloc_v2)(&p, PART));
    CHECK_IS(NV(nvmlDeviceGetMemoryInfo)(device, &m), NVML_SUCCESS);
    CHECK_IS(m.total, LIMIT);
    CHECK_IS(m.free, free_bytes());
    CHECK_IS(m.used, LIMIT - m.free);
    OK(CU(cuMemFree_v2)(p));
}

/* ---- threads --------------------------------------------------------------------------------- */

static _Atomic size_t held, most;

static void *
churn(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg;
    CUdeviceptr own[8] = {0};
    size_t size[8];

    OK(CU(cuCtxSetCurrent)(primary));
    for (int i = 0; i < 400; i++) {
        const unsigned k = (seed = seed * 1664525u + 1013904223u) >> 29;

        if (own[k]) {
            held -= size[k];
            OK(CU(cuMemFree_v2)(own[k]));
            own[k] = 0;
            continue;
        }
        size[k] = ((seed = seed * 1664525u + 1013904223u) >> 28) * 2 * MIB + 2 * MIB;

        const CUresult r = CU(cuMemAlloc_v2)(&own[k], size[k]);

        CHECK(r == CUDA_SUCCESS || r == CUDA_ERROR_OUT_OF_MEMORY, "%d", (int)r);
        if (r == CUDA_SUCCESS) {
            const size_t now = held += size[k];

            if (now > most)
                most = now;
        } else {
            own[k] = 0;
        }
    }
    for (unsigned k = 0; k < 8; k++) {
        if (own[k]) {
            held -= size[k];
            OK(CU(cuMemFree_v2)(own[k]));
        }
    }
    return NULL;
}

static void
threads_hold_the_limit(void)
{
    const size_t base = free_bytes();
    pthread_t threads[8];

    for (uintptr_t i = 0; i < 8; i++)
        CHECK_IS(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
    for (int i = 0; i < 8; i++)
        CHECK_IS(pthread_join(threads[i], NULL), 0);
    CHECK(most <= LIMIT, "%zu were had together", (size_t)most);
    all_is_back("threads", base);
}

/* ---- the group ------------------------------------------------------------------------------- */

/* The program again, holding PART and a half until it is killed. */
static pid_t
start_holder(void)
{
    int ends[2];
    char c = 0;

    CHECK_IS(pipe(ends), 0);

    const pid_t pid = fork();

    if (pid == 0) {
        char fd[16];

        snprintf(fd, sizeof fd, "%d", ends[1]);
        execl("/proc/self/exe", "quota", hollow ? "hollow" : "whole", fd, (char *)NULL);
        _exit(126);
    }
    close(ends[1]);
    CHECK_IS(read(ends[0], &c, 1), 1);
    CHECK_IS(c, 'y');
    close(ends[0]);
    return pid;
}

static int
hold(int fd)
{
    CUdeviceptr p;

    OK(CU(cuMemAlloc_v2)(&p, PART + PART / 2));
    CHECK_IS(CU(cuMemAlloc_v2)(&p, PART), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_IS(write(fd, "y", 1), 1);
    for (;;)
        pause();
}

static void
a_group_shares_and_loses_nothing(void)
{
    const size_t base = free_bytes();
    CUdeviceptr p;

    for (int round = 0; round < 3; round++) {
        const pid_t pid = start_holder();

        CHECK_IS(free_bytes(), base - PART - PART / 2);
        CHECK_IS(CU(cuMemAlloc_v2)(&p, PART), CUDA_ERROR_OUT_OF_MEMORY);
        OK(CU(cuMemAlloc_v2)(&p, base - PART - PART / 2));
        OK(CU(cuMemFree_v2)(p));
        kill(pid, SIGKILL);
        CHECK_IS(waitpid(pid, NULL, 0), pid);
        all_is_back("a killed process", base);
    }
}

int
main(int argc, char **argv)
{
    char group[64];
    char path[128];

    hollow = argc > 1 && strcmp(argv[1], "hollow") == 0;
    far = argc > 1 && strcmp(argv[1], "far") == 0;
    setenv("HEDDLE_MEM", "256M", 1);
    snprintf(group, sizeof group, "e2e-%ld", (long)getpid());
    if (argc < 3)
        setenv("HEDDLE_MEM_GROUP", group, 1);
    OK(CU(cuInit)(0));
    OK(CU(cuDevicePrimaryCtxRetain)(&primary, 0));
    OK(CU(cuCtxSetCurrent)(primary));
    if (argc == 3)
        return hold((int)strtol(argv[2], NULL, 10));
    OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    CHECK_IS(free_bytes(), LIMIT);
    plain_memory_counts();
    pools_count();
    physical_memory_counts();
    arrays_count();
    threads_hold_the_limit();
    a_group_shares_and_loses_nothing();
    if (!hollow) { /* the null backend has one context, and it is NULL */
        contexts_take_theirs_along();
        if (!far)
            globals_count();
        nvml_agrees();
    }
    graphs_count(false);
    if (!hollow)
        graphs_count(true);
    snprintf(path, sizeof path, "/dev/shm/heddle-%u-quota-%s", (unsigned)geteuid(), group);
    CHECK_IS(unlink(path), 0);
    return 0;
}
