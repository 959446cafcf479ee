/* Devices, primary and other contexts, the stack of a thread, limits: what the calls answer in
 * every state, wrong arguments included. */
#include "answers.h"

#include <pthread.h>

static CUcontext primary;
static CUcontext one;
static CUcontext two;

static void
say_current(void)
{
    CUcontext current = (CUcontext)&current;
    const CUresult r = CU(cuCtxGetCurrent)(&current);
    const char *which = !current             ? "none"
                        : current == primary ? "the primary"
                        : current == one     ? "one"
                        : current == two     ? "two"
                                             : "unknown";

    printf("current: %s %s\n", ask_result(r), which);
}

static void
say_primary(void)
{
    unsigned flags = 77;
    int active = 77;
    const CUresult r = CU(cuDevicePrimaryCtxGetState)(0, &flags, &active);

    printf("state: %s flags %u active %d\n", ask_result(r), flags, active);
}

static void
before_init(void)
{
    CUcontext context;
    CUdeviceptr p;
    unsigned flags;
    size_t size;
    int i;
    int j;
    const char *text;

    ASK(cuDriverGetVersion, &i);
    ASK(cuDriverGetVersion, NULL);
    ASK(cuDeviceGetCount, &i);
    ASK(cuDeviceGetCount, NULL);
    ASK(cuDeviceGet, &i, 0);
    ASK(cuDeviceGetAttribute, &i, 1, 0);
    ASK(cuDeviceGetName, NULL, 0, 0);
    ASK(cuCtxGetCurrent, &context);
    ASK(cuCtxGetCurrent, NULL);
    ASK(cuCtxGetDevice, &i);
    ASK(cuCtxCreate_v2, &context, 0, 0);
    ASK(cuMemAlloc_v2, &p, 16);
    ASK(cuCtxPopCurrent_v2, &context);
    ASK(cuCtxSetCurrent, NULL);
    ASK(cuCtxGetLimit, &size, 0);
    ASK(cuCtxSynchronize);
    ASK(cuDevicePrimaryCtxGetState, 0, &flags, &i);
    ASK(cuGetErrorName, 999, &text);
    ASK(cuGetErrorName, 12345, &text);
    ASK(cuGetErrorString, 2, &text);
    printf("error 2: %s\n", text);
    ASK(cuModuleGetLoadingMode, (CUmoduleLoadingMode *)&i);
    ASK(cuStreamQuery, NULL);
    ASK(cuEventQuery, NULL);
    ASK(cuMemAddressReserve, &p, 2 << 20, 0, 0, 0);
    ASK(cuInit, 1);
    ASK(cuDeviceGetCount, &i);
    ASK(cuCtxGetStreamPriorityRange, &i, &j);
    ASK(cuDeviceGetByPCIBusId, &i, "00:00.0");
    ASK(cuInit, 0);
    ASK(cuDeviceGetCount, &i);
}

static void
devices(void)
{
    char text[64] = "";
    char id[64] = "";
    size_t size;
    unsigned mask;
    int v;
    int w;

    ASK(cuInit, 0);
    ASK(cuInit, 1);
    ASK(cuDeviceGetCount, NULL);
    ASK(cuDeviceGet, &v, -1);
    ASK(cuDeviceGet, &v, 99);
    ASK(cuDeviceGet, NULL, 0);
    ASK(cuDeviceGetName, text, 5, 0);
    printf("first five: %s\n", text);
    ASK(cuDeviceGetName, text, -1, 0);
    ASK(cuDeviceGetName, NULL, 5, 0);
    ASK(cuDeviceGetName, text, 64, 9);
    ASK(cuDeviceGetName, text, 64, 0);
    printf("name: %s\n", text);
    ASK(cuDeviceGetAttribute, &v, 0, 0);
    ASK(cuDeviceGetAttribute, &v, 999, 0);
    ASK(cuDeviceGetAttribute, NULL, 1, 0);
    ASK(cuDeviceGetAttribute, &v, 1, 9);
    ASK(cuDeviceTotalMem_v2, NULL, 0);
    ASK(cuDeviceTotalMem_v2, &size, 9);
    ASK(cuDeviceGetUuid_v2, NULL, 0);
    ASK(cuDeviceGetUuid_v2, (CUuuid *)text, 9);
    ASK(cuDeviceGetLuid, text, &mask, 0);
    ASK(cuDeviceGetPCIBusId, id, 13, 0);
    ASK(cuDeviceGetPCIBusId, text, 12, 0);
    ASK(cuDeviceGetPCIBusId, text, 0, 0);
    ASK(cuDeviceGetPCIBusId, NULL, 13, 0);
    ASK(cuDeviceGetPCIBusId, text, 13, 9);
    ASK(cuDeviceGetByPCIBusId, &v, id);
    ASK(cuDeviceGetByPCIBusId, &v, id + 5);
    ASK(cuDeviceGetByPCIBusId, &v, "ffff:ff:1f.0");
    ASK(cuDeviceGetByPCIBusId, &v, "zz");
    ASK(cuDeviceGetByPCIBusId, &v, "");
    ASK(cuDeviceGetByPCIBusId, &v, NULL);
    ASK(cuDeviceGetByPCIBusId, NULL, id);
    ASK(cuDeviceCanAccessPeer, &v, 0, 0);
    SAY("itself a peer", v);
    ASK(cuDeviceCanAccessPeer, &v, 0, 9);
    ASK(cuDeviceGetP2PAttribute, &v, 1, 0, 0);
    ASK(cuDeviceComputeCapability, &v, &w, 0);
    printf("capability: %d.%d\n", v, w);
    ASK(cuDeviceComputeCapability, NULL, &w, 0);
    ASK(cuDeviceComputeCapability, &v, &w, 9);
}

/* The attributes by which programs are most likely to size their work. */
static void
attributes(void)
{
    static const int same[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,   10,  11,  12,  14,  15, 16,
                               17, 18, 19, 20, 21, 22, 30, 31, 32,  35,  37,  38,  39,  40, 41,
                               42, 43, 75, 76, 78, 79, 80, 81, 82,  83,  84,  85,  86,  87, 88,
                               89, 90, 91, 95, 96, 97, 98, 99, 100, 101, 102, 106, 111, 115};

    MUST(cuInit, 0);
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        int v = -77;
        const CUresult r = CU(cuDeviceGetAttribute)(&v, (CUdevice_attribute)same[i], 0);

        printf("attribute %d: %s %d\n", same[i], ask_result(r), v);
    }
}

static void
no_context(void)
{
    CUcontext c;
    CUdeviceptr p;
    CUdevice d;
    CUstream s;
    CUevent e;
    unsigned flags;
    unsigned long long id;
    size_t size;
    int i;
    int j;

    MUST(cuInit, 0);
    say_current();
    ASK(cuCtxGetDevice, &d);
    ASK(cuCtxGetDevice, NULL);
    ASK(cuCtxPopCurrent_v2, &c);
    ASK(cuCtxPopCurrent_v2, NULL);
    ASK(cuCtxSetCurrent, NULL);
    ASK(cuCtxPushCurrent_v2, NULL);
    ASK(cuCtxSynchronize);
    ASK(cuCtxGetFlags, &flags);
    ASK(cuCtxGetFlags, NULL);
    ASK(cuCtxGetLimit, &size, 0);
    ASK(cuCtxSetLimit, 0, 1024);
    ASK(cuCtxGetCacheConfig, (CUfunc_cache *)&i);
    ASK(cuCtxSetCacheConfig, 0);
    ASK(cuCtxGetStreamPriorityRange, &i, &j);
    ASK(cuCtxGetApiVersion, NULL, &flags);
    ASK(cuCtxGetId, NULL, &id);
    ASK(cuCtxDestroy_v2, NULL);
    ASK(cuCtxEnablePeerAccess, NULL, 0);
    ASK(cuMemAlloc_v2, &p, 16);
    ASK(cuMemFree_v2, 0);
    ASK(cuMemGetInfo_v2, &size, &size);
    ASK(cuStreamCreate, &s, 0);
    ASK(cuStreamQuery, NULL);
    ASK(cuStreamSynchronize, NULL);
    ASK(cuEventCreate, &e, 0);
    ASK(cuModuleLoadData, (CUmodule *)&c, "garbage");
    ASK(cuPointerGetAttribute, &i, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0x1234);
    ASK(cuCtxGetCurrent, NULL);
}

static void
primary_contexts(void)
{
    CUcontext c;
    CUdeviceptr p;
    CUdevice d;
    unsigned flags;
    size_t size;

    MUST(cuInit, 0);
    say_primary();
    for (unsigned f = 1; f <= 256; f *= 2) {
        printf("primary flags %u: %s\n", f, ask_result(CU(cuDevicePrimaryCtxSetFlags_v2)(0, f)));
        say_primary();
    }
    ASK(cuDevicePrimaryCtxSetFlags_v2, 0, 3);
    ASK(cuDevicePrimaryCtxSetFlags_v2, 9, 0);
    ASK(cuDevicePrimaryCtxGetState, 9, &flags, &(int){0});
    ASK(cuDevicePrimaryCtxRelease_v2, 0);
    ASK(cuDevicePrimaryCtxReset_v2, 0);
    ASK(cuDevicePrimaryCtxRetain, NULL, 0);
    ASK(cuDevicePrimaryCtxRetain, &primary, 9);
    ASK(cuDevicePrimaryCtxRetain, &primary, 0);
    say_primary();
    say_current();
    ASK(cuDevicePrimaryCtxRetain, &c, 0);
    SAY("the same", c == primary);
    ASK(cuCtxSetCurrent, primary);
    ASK(cuCtxDestroy_v2, primary);
    ASK(cuCtxGetFlags, &flags);
    SAY("flags", flags);
    ASK(cuCtxSetLimit, 0, 4096);
    ASK(cuDevicePrimaryCtxRelease_v2, 0);
    say_primary();
    ASK(cuDevicePrimaryCtxRelease_v2, 0);
    say_primary();
    ASK(cuDevicePrimaryCtxRelease_v2, 0);
    say_current();
    ASK(cuMemAlloc_v2, &p, 16);
    ASK(cuCtxSynchronize);
    ASK(cuCtxGetDevice, &d);
    ASK(cuCtxGetFlags, &flags);
    ASK(cuCtxGetLimit, &size, 0);
    ASK(cuCtxGetApiVersion, primary, &flags);
    ASK(cuCtxPushCurrent_v2, primary);
    ASK(cuCtxPopCurrent_v2, &c);
    ASK(cuCtxSetCurrent, NULL);
    ASK(cuCtxSetCurrent, primary);
    ASK(cuMemAlloc_v2, &p, 16);
    ASK(cuDevicePrimaryCtxRetain, &c, 0);
    SAY("the same", c == primary);
    ASK(cuMemAlloc_v2, &p, 16);
    ASK(cuCtxGetLimit, &size, 0);
    SAY("limit", size);
    ASK(cuDevicePrimaryCtxReset_v2, 0);
    say_primary();
    say_current();
    ASK(cuMemAlloc_v2, &p, 16);
    ASK(cuMemFree_v2, p);
    ASK(cuDevicePrimaryCtxReset_v2, 9);
    ASK(cuDevicePrimaryCtxRelease_v2, 9);
}

static void
made_contexts(void)
{
    CUcontext c;

    MUST(cuInit, 0);
    ASK(cuCtxCreate_v2, NULL, 0, 0);
    ASK(cuCtxCreate_v2, &c, 0, 9);
    for (unsigned f = 1; f <= 0x400; f *= 2) {
        unsigned now = 77;
        const CUresult r = CU(cuCtxCreate_v2)(&c, f, 0);

        if (r == CUDA_SUCCESS) {
            MUST(cuCtxGetFlags, &now);
            MUST(cuCtxDestroy_v2, c);
        }
        printf("create with flags %#x: %s %#x\n", f, ask_result(r), now);
    }
    ASK(cuCtxCreate_v2, &c, 3, 0);
    say_current();
    ASK(cuCtxCreate_v2, &one, 0, 0);
    ASK(cuCtxCreate_v2, &two, 0, 0);
    say_current();
    ASK(cuCtxPopCurrent_v2, &c);
    SAY("popped two", c == two);
    ASK(cuCtxPopCurrent_v2, NULL);
    ASK(cuCtxPopCurrent_v2, &c);
    ASK(cuCtxPushCurrent_v2, one);
    ASK(cuCtxPushCurrent_v2, one);
    ASK(cuCtxPushCurrent_v2, two);
    ASK(cuCtxSetCurrent, one);
    say_current();
    ASK(cuCtxSetCurrent, NULL);
    say_current();
    ASK(cuCtxPopCurrent_v2, &c);
    say_current();
    ASK(cuCtxPopCurrent_v2, &c);
    ASK(cuCtxPopCurrent_v2, &c);
    ASK(cuCtxSetCurrent, two);
    ASK(cuCtxDestroy_v2, two);
    say_current();
    ASK(cuCtxSetCurrent, one);
    ASK(cuCtxDestroy_v2, one);
    say_current();
    ASK(cuCtxPopCurrent_v2, &c);
}

static void
settings(void)
{
    static const size_t values[] = {0, 1, 100, 1024, 4096, 65536, 1 << 20};
    unsigned version = 0;
    int low;
    int high;
    int v = 77;

    MUST(cuInit, 0);
    MUST(cuCtxCreate_v2, &one, 0, 0);
    ASK(cuCtxGetApiVersion, one, &version);
    SAY("version", version);
    ASK(cuCtxGetApiVersion, one, NULL);
    ASK(cuCtxGetStreamPriorityRange, &low, &high);
    printf("priorities: %d %d\n", low, high);
    ASK(cuCtxGetStreamPriorityRange, NULL, NULL);
    ASK(cuCtxGetDevice, NULL);
    ASK(cuCtxGetCacheConfig, NULL);
    ASK(cuCtxGetCacheConfig, (CUfunc_cache *)&v);
    SAY("cache config", v);
    for (int k = -1; k < 6; k++)
        printf("cache config %d: %s\n", k, ask_result(CU(cuCtxSetCacheConfig)((CUfunc_cache)k)));
    for (int k = -1; k < 6; k++) {
        size_t now = 77;
        const CUresult r = CU(cuCtxGetLimit)(&now, (CUlimit)k);

        printf("limit %d: %s %zu\n", k, ask_result(r), now);
    }
    ASK(cuCtxGetLimit, NULL, 0);
    for (int k = 0; k < 5; k++) {
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
            size_t now = 77;
            const CUresult r = CU(cuCtxSetLimit)((CUlimit)k, values[i]);

            (void)CU(cuCtxGetLimit)(&now, (CUlimit)k);
            printf("limit %d to %zu: %s %zu\n", k, values[i], ask_result(r), now);
        }
    }
    ASK(cuCtxEnablePeerAccess, one, 0);
    ASK(cuCtxEnablePeerAccess, NULL, 0);
    ASK(cuCtxDisablePeerAccess, NULL);
}

static pthread_barrier_t step;

static void *
other_thread(void *unused)
{
    CUcontext c;
    CUdeviceptr p;
    CUdevice d;
    size_t size;

    say_current();
    ASK(cuCtxSetCurrent, one);
    say_current();
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    say_current();
    ASK(cuMemAlloc_v2, &p, 16);
    ASK(cuCtxGetDevice, &d);
    ASK(cuCtxGetLimit, &size, 0);
    ASK(cuCtxSynchronize);
    ASK(cuCtxPopCurrent_v2, &c);
    say_current();
    return unused;
}

/* A context destroyed while another thread has it current. */
static void
threads(void)
{
    pthread_t t;
    CUcontext c;

    MUST(cuInit, 0);
    MUST(cuCtxCreate_v2, &one, 0, 0);
    MUST(cuCtxCreate_v2, &two, 0, 0);
    MUST(cuCtxPushCurrent_v2, one);
    CHECK(pthread_barrier_init(&step, NULL, 2) == 0, "no barrier");
    CHECK(pthread_create(&t, NULL, other_thread, NULL) == 0, "no thread");
    pthread_barrier_wait(&step);
    ASK(cuCtxDestroy_v2, one);
    say_current();
    pthread_barrier_wait(&step);
    pthread_join(t, NULL);
    ASK(cuCtxPopCurrent_v2, &c);
    SAY("popped two", c == two);
    say_current();
}

ASK_MAIN({"before_init", before_init}, {"devices", devices}, {"attributes", attributes},
         {"no_context", no_context}, {"primary_contexts", primary_contexts},
         {"made_contexts", made_contexts}, {"settings", settings}, {"threads", threads})
