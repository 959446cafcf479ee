/* Several devices in one program, which prints the same wherever the devices are.
 *
 *     remote_devices
 */
#include "conformance/conf.h"

#include <pthread.h>

#define OK(call) CHECK_IS(call, CUDA_SUCCESS)
#define MOST 16
#define WORDS 1000
#define BYTES (WORDS * sizeof(uint32_t))

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 4 .u32 mark;\n"
    /* to[i] = from[i] + v */
    ".visible .entry plus(.param .u64 to, .param .u64 from, .param .u32 v, .param .u32 n)\n{\n"
    ".reg .b32 %r<6>; .reg .b64 %d<5>; .reg .pred %p<2>;\n"
    "ld.param.u64 %d1, [to];\nld.param.u64 %d2, [from];\n"
    "ld.param.u32 %r1, [v];\nld.param.u32 %r2, [n];\n"
    "mov.u32 %r3, %tid.x;\nmov.u32 %r4, %ctaid.x;\nmad.lo.u32 %r3, %r4, 128, %r3;\n"
    "setp.ge.u32 %p1, %r3, %r2;\n@%p1 bra end;\n"
    "mul.wide.u32 %d3, %r3, 4;\nadd.u64 %d1, %d1, %d3;\nadd.u64 %d2, %d2, %d3;\n"
    "ld.global.u32 %r5, [%d2];\nadd.u32 %r5, %r5, %r1;\nst.global.u32 [%d1], %r5;\n"
    "end: ret;\n}\n";

static int count;
static CUcontext contexts[MOST];
static CUfunction plus[MOST];
static CUdeviceptr memory[MOST], marks[MOST];

static void
launch_plus(int device, CUdeviceptr to, CUdeviceptr from, uint32_t v, uint32_t n)
{
    void *params[] = {&to, &from, &v, &n};

    OK(CU(cuCtxSetCurrent)(contexts[device]));
    OK(CU(cuLaunchKernel)(plus[device], (n + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
}

static uint32_t
sum_of(int device)
{
    uint32_t words[WORDS], sum = 0;

    OK(CU(cuCtxSetCurrent)(contexts[device]));
    OK(CU(cuMemcpyDtoH_v2)(words, memory[device], BYTES));
    for (size_t i = 0; i < WORDS; i++)
        sum = sum * 31 + words[i];
    return sum;
}

static void
describe(int i)
{
    char name[100], bus[32];
    size_t free, total;
    CUuuid uuid;

    OK(CU(cuDeviceGetName)(name, sizeof name, i));
    OK(CU(cuDeviceGetPCIBusId)(bus, sizeof bus, i));
    OK(CU(cuDeviceGetUuid_v2)(&uuid, i));
    OK(CU(cuMemGetInfo_v2)(&free, &total));
    CHECK(free <= total && free > total / 2, "%zu of %zu bytes are free", free, total);
    printf("device %d: %s at %s, %zu MiB, ", i, name, bus, total >> 20);
    for (size_t b = 0; b < sizeof uuid.bytes; b++)
        printf("%02x", (unsigned char)uuid.bytes[b]);
    printf("\n");
}

static void
set_up_device(int i)
{
    CUmodule module;
    size_t size;

    OK(CU(cuDevicePrimaryCtxRetain)(&contexts[i], i));
    OK(CU(cuCtxSetCurrent)(contexts[i]));
    describe(i);
    OK(CU(cuModuleLoadData)(&module, ptx));
    OK(CU(cuModuleGetFunction)(&plus[i], module, "plus"));
    OK(CU(cuModuleGetGlobal_v2)(&marks[i], &size, module, "mark"));
    OK(CU(cuMemAlloc_v2)(&memory[i], BYTES));
    OK(CU(cuMemsetD32_v2)(memory[i], 100u * ((unsigned)i + 1), WORDS));
    OK(CU(cuMemsetD32_v2)(marks[i], (unsigned)i + 7, 1));
    OK(CU(cuCtxSynchronize)());
}

/* The driver knows on which device memory is, and copies it to another. */
static void
copy_in_a_ring(void)
{
    for (int i = 0; i < count; i++) {
        const int next = (i + 1) % count;
        int where = -1;

        OK(CU(cuPointerGetAttribute)(&where, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory[i]));
        CHECK_IS(where, i);
        launch_plus(i, memory[i], memory[i], 3, WORDS);
        OK(CU(cuCtxSynchronize)());
        if (i & 1)
            OK(CU(cuMemcpyPeer)(memory[next] + 8, contexts[next], memory[i], contexts[i],
                                BYTES / 2));
        else
            OK(CU(cuMemcpyPeerAsync)(memory[next] + 8, contexts[next], memory[i], contexts[i],
                                     BYTES / 2, NULL));
        OK(CU(cuCtxSynchronize)());
    }
    for (int i = 0; i < count; i++)
        printf("after the ring, %d: %u\n", i, sum_of(i));
}

/* Kernels read memory and variables of another device. */
static void
reach(int i, int peer)
{
    int can = -1, rank = -1;

    OK(CU(cuDeviceCanAccessPeer)(&can, i, peer));
    OK(CU(cuDeviceGetP2PAttribute)(&rank, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, i, peer));
    printf("%d reaches %d: %d %d\n", i, peer, can, rank);
    OK(CU(cuCtxSetCurrent)(contexts[i]));
    CHECK_IS(CU(cuCtxDisablePeerAccess)(contexts[peer]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    OK(CU(cuCtxEnablePeerAccess)(contexts[peer], 0));
    CHECK_IS(CU(cuCtxEnablePeerAccess)(contexts[peer], 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    CHECK_IS(CU(cuCtxEnablePeerAccess)(contexts[i], 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    launch_plus(i, memory[i], memory[peer], 1, WORDS);
    launch_plus(i, memory[i] + 40, marks[peer], 1, 1);
    OK(CU(cuCtxSynchronize)());
    printf("after reaching, %d: %u\n", i, sum_of(i));
    OK(CU(cuCtxSetCurrent)(contexts[i]));
    OK(CU(cuCtxDisablePeerAccess)(contexts[peer]));
}

/* Memory that all devices share, and a context of the program's own beside the primary one. */
static void
share(void)
{
    CUdeviceptr all;
    CUcontext own;
    uint32_t sum = 0;

    OK(CU(cuCtxCreate_v2)(&own, CU_CTX_SCHED_YIELD, count - 1));
    OK(CU(cuMemAllocManaged)(&all, BYTES, CU_MEM_ATTACH_GLOBAL));
    memset((void *)(uintptr_t)all, 0, BYTES);
    for (int i = 0; i < count; i++) {
        launch_plus(i, all, all, (uint32_t)i + 1, WORDS);
        OK(CU(cuCtxSynchronize)());
    }
    for (size_t i = 0; i < WORDS; i++)
        sum += ((volatile uint32_t *)(uintptr_t)all)[i];
    printf("in all: %u\n", sum);
    OK(CU(cuCtxSetCurrent)(own));
    OK(CU(cuMemFree_v2)(all));
    OK(CU(cuCtxDestroy_v2)(own));
}

static void *
alone(void *arg)
{
    const int i = (int)(uintptr_t)arg;

    for (int round = 0; round < 50; round++)
        launch_plus(i, memory[i], memory[i], (uint32_t)round, WORDS);
    OK(CU(cuCtxSynchronize)());
    return NULL;
}

/* One thread for each device. */
static void
all_at_once(void)
{
    pthread_t threads[MOST];

    for (int i = 0; i < count; i++)
        CHECK_IS(pthread_create(&threads[i], NULL, alone, (void *)(uintptr_t)i), 0);
    for (int i = 0; i < count; i++)
        CHECK_IS(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < count; i++)
        printf("after threads, %d: %u\n", i, sum_of(i));
}

/* If one device has no more memory, the others still have. */
static void
fill_up(int i)
{
    CUdeviceptr p;
    size_t free, total;

    OK(CU(cuCtxSetCurrent)(contexts[i]));
    OK(CU(cuMemGetInfo_v2)(&free, &total));
    CHECK_IS(CU(cuMemAlloc_v2)(&p, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
    OK(CU(cuMemAlloc_v2)(&p, 1 << 20));
    OK(CU(cuMemFree_v2)(p));
}

int
main(void)
{
    const CUresult r = CU(cuInit)(0);

    if (r == CUDA_ERROR_NO_DEVICE) {
        printf("no device\n");
        return 0;
    }
    OK(r);
    OK(CU(cuDeviceGetCount)(&count));
    CHECK(count >= 1 && count <= MOST, "%d devices", count);
    for (int i = 0; i < count; i++)
        set_up_device(i);
    copy_in_a_ring();
    for (int i = 0; i < count; i++)
        if (i != (i + 1) % count)
            reach(i, (i + 1) % count);
    share();
    all_at_once();
    for (int i = 0; i < count; i++)
        fill_up(i);
    for (int i = 0; i < count; i++)
        OK(CU(cuDevicePrimaryCtxRelease_v2)(i));
    return 0;
}
