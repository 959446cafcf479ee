/* NVML as monitoring tools use it: first without any call to CUDA, then with memory that the
 * program takes. Runs with the GPU in this process and in another one. */
#include "conformance/conf.h"
#include "gen/nvml_front.h"

#define TAKEN ((size_t)64 << 20)

static void *
nvml_symbol(const char *name)
{
    static void *library;
    const char *path = getenv("HED_LIBNVML");

    if (!library)
        library = dlopen(path ? path : "libnvidia-ml.so.1", RTLD_NOW);
    CHECK(library, "%s", dlerror());

    void *p = dlsym(library, name);

    CHECK(p, "%s is missing", name);
    return p;
}

#define NV(name) ((__typeof__(&(name)))nvml_symbol(#name))
#define OK(call) CHECK_IS(call, NVML_SUCCESS)

static nvmlDevice_t device;

static void
what_it_is(void)
{
    char text[96] = "", uuid[96] = "";
    nvmlDevice_t same = NULL;
    nvmlPciInfo_t pci;
    unsigned count = 0, index = 77;

    OK(NV(nvmlDeviceGetCount_v2)(&count));
    CHECK_IS(count, 1);
    OK(NV(nvmlDeviceGetHandleByIndex_v2)(0, &device));
    OK(NV(nvmlDeviceGetName)(device, text, sizeof text));
    CHECK(strstr(text, "H200"), "%s", text);
    OK(NV(nvmlDeviceGetUUID)(device, uuid, sizeof uuid));
    OK(NV(nvmlDeviceGetHandleByUUID)(uuid, &same));
    CHECK(same == device, "another device for %s", uuid);
    OK(NV(nvmlDeviceGetIndex)(device, &index));
    CHECK_IS(index, 0);
    OK(NV(nvmlDeviceGetPciInfo_v3)(device, &pci));
    OK(NV(nvmlSystemGetDriverVersion)(text, sizeof text));
}

static void
how_it_is(void)
{
    nvmlMemory_v2_t memory2 = {.version = sizeof memory2 | 2u << 24};
    nvmlUtilization_t use = {101, 101};
    nvmlMemory_t memory = {0};
    unsigned value = 0;
    nvmlPstates_t state;
    unsigned long long reasons;

    OK(NV(nvmlDeviceGetMemoryInfo)(device, &memory));
    CHECK(memory.total > TAKEN && memory.used + memory.free <= memory.total, "of %llu bytes",
          memory.total);
    OK(NV(nvmlDeviceGetMemoryInfo_v2)(device, &memory2));
    CHECK_IS(memory2.total, memory.total);
    memory2.version = 5;
    CHECK_IS(NV(nvmlDeviceGetMemoryInfo_v2)(device, &memory2),
             NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    OK(NV(nvmlDeviceGetUtilizationRates)(device, &use));
    CHECK(use.gpu <= 100 && use.memory <= 100, "%u %%, %u %%", use.gpu, use.memory);
    OK(NV(nvmlDeviceGetTemperature)(device, NVML_TEMPERATURE_GPU, &value));
    CHECK(value > 0 && value < 120, "%u degrees", value);
    OK(NV(nvmlDeviceGetPowerUsage)(device, &value));
    OK(NV(nvmlDeviceGetClockInfo)(device, NVML_CLOCK_SM, &value));
    OK(NV(nvmlDeviceGetPerformanceState)(device, &state));
    OK(NV(nvmlDeviceGetCurrentClocksThrottleReasons)(device, &reasons));
    CHECK_IS(NV(nvmlDeviceGetMemoryInfo)(device, NULL), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_IS(NV(nvmlDeviceGetMemoryInfo)((nvmlDevice_t)(uintptr_t)77, &memory),
             NVML_ERROR_INVALID_ARGUMENT);
}

/* The memory of the program counts as used, and the program is in the list of processes. */
static void
processes_are_listed(void)
{
    nvmlProcessInfo_t all[64];
    nvmlMemory_t before = {0}, after = {0};
    unsigned count = 0;
    CUdeviceptr p = 0;
    CUcontext c;

    OK(NV(nvmlDeviceGetMemoryInfo)(device, &before));
    CHECK_IS(CU(cuInit)(0), CUDA_SUCCESS);
    CHECK_IS(CU(cuDevicePrimaryCtxRetain)(&c, 0), CUDA_SUCCESS);
    CHECK_IS(CU(cuCtxSetCurrent)(c), CUDA_SUCCESS);
    CHECK_IS(CU(cuMemAlloc_v2)(&p, TAKEN), CUDA_SUCCESS);
    CHECK_IS(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
    OK(NV(nvmlDeviceGetMemoryInfo)(device, &after));
    CHECK(after.used >= TAKEN, "%llu bytes are used, %llu before", after.used, before.used);
    CHECK_IS(NV(nvmlDeviceGetComputeRunningProcesses_v3)(device, &count, NULL),
             NVML_ERROR_INSUFFICIENT_SIZE);
    CHECK(count >= 1, "nobody uses it");
    count = sizeof all / sizeof all[0];
    OK(NV(nvmlDeviceGetComputeRunningProcesses_v3)(device, &count, all));

    bool seen = false;

    for (unsigned i = 0; i < count; i++)
        seen |= all[i].pid == (unsigned)getpid() && all[i].usedGpuMemory >= TAKEN;
    CHECK(seen, "%u processes, and this one is not among them", count);
    CHECK_IS(CU(cuMemFree_v2)(p), CUDA_SUCCESS);
}

int
main(void)
{
    CHECK_IS(NV(nvmlDeviceGetCount_v2)(&(unsigned){0}), NVML_ERROR_UNINITIALIZED);
    OK(NV(nvmlInit_v2)());
    what_it_is();
    how_it_is();
    processes_are_listed();
    OK(NV(nvmlShutdown)());
    return 0;
}
