/* Order on a remote GPU: threads that wait for each other, and host memory that kernels, functions
 * and copies use one after the other. Nothing is lost.
 *
 *     remote_order
 */
#include "conformance/conf.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define OK(call) CHECK_IS(call, CUDA_SUCCESS)
#define MIB ((size_t)1 << 20)

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry add(.param .u64 p, .param .u32 v)\n{\n"
    ".reg .b32 %r<4>; .reg .b64 %d<2>;\n"
    "ld.param.u64 %d1, [p];\nld.param.u32 %r1, [v];\n"
    "ld.global.u32 %r2, [%d1];\nadd.u32 %r2, %r2, %r1;\nst.global.u32 [%d1], %r2;\nret;\n}\n";

static CUcontext primary;
static CUfunction add;

static void
launch_add(uint64_t at, uint32_t value, CUstream s)
{
    void *params[] = {&at, &value};

    OK(CU(cuLaunchKernel)(add, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
}

static uint32_t
read_word(CUdeviceptr p)
{
    uint32_t word;

    OK(CU(cuMemcpyDtoH_v2)(&word, p, sizeof word));
    return word;
}

/* The thread may be new, so the context is made current. */
static CUstream
new_stream(void)
{
    CUstream s;

    OK(CU(cuCtxSetCurrent)(primary));
    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    return s;
}

/* ---- threads --------------------------------------------------------------------------------- */

#define ROUNDS 40
#define LARGE (4 * MIB)

static _Atomic int begun, ended;

/* Makes a large copy whenever the other thread has put something small on its stream. */
static void *
copies_much(void *arg)
{
    char *from = malloc(LARGE);
    CUdeviceptr p;
    const CUstream s = new_stream();

    CHECK(from, "no memory for the test");
    memset(from, 3, LARGE);
    OK(CU(cuMemAlloc_v2)(&p, LARGE));
    for (int i = 1; i <= ROUNDS; i++) {
        while (atomic_load(&begun) < i)
            continue;
        OK(CU(cuMemcpyHtoDAsync_v2)(p, from, LARGE, s));
        atomic_store(&ended, i);
    }
    OK(CU(cuStreamSynchronize)(s));
    OK(CU(cuMemFree_v2)(p));
    OK(CU(cuStreamDestroy_v2)(s));
    free(from);
    return arg;
}

/* Work that one thread has put on a stream reaches the server, although that thread does nothing
 * more and another thread fills its own connection. */
static void
nobody_waits_for_ever(void)
{
    const CUstream s = new_stream();
    pthread_t thread;
    CUdeviceptr p;

    OK(CU(cuMemAlloc_v2)(&p, 4096));
    CHECK(pthread_create(&thread, NULL, copies_much, NULL) == 0, "no thread");
    for (int i = 1; i <= ROUNDS; i++) {
        OK(CU(cuMemsetD8Async)(p, 1, 4096, s));
        atomic_store(&begun, i);
        WAIT_UNTIL(atomic_load(&ended) >= i);
    }
    CHECK(pthread_join(thread, NULL) == 0, "the thread does not end");
    OK(CU(cuMemFree_v2)(p));
    OK(CU(cuStreamDestroy_v2)(s));
}

/* ---- memory that kernels reach --------------------------------------------------------------- */

static volatile uint32_t *
mapped(CUdeviceptr *p, bool managed)
{
    void *q;

    if (managed) {
        OK(CU(cuMemAllocManaged)(p, MIB, CU_MEM_ATTACH_GLOBAL));
        return (volatile uint32_t *)(uintptr_t)*p;
    }
    OK(CU(cuMemHostAlloc)(&q, MIB, 2 /* CU_MEMHOSTALLOC_DEVICEMAP */));
    OK(CU(cuMemHostGetDevicePointer_v2)(p, q, 0));
    return q;
}

static void
free_mapped(volatile uint32_t *host, CUdeviceptr p, bool managed)
{
    if (managed)
        OK(CU(cuMemFree_v2)(p));
    else
        OK(CU(cuMemFreeHost)((void *)(uintptr_t)host));
}

/* A thread that has learned that a stream is done, in whatever way, sees what kernels wrote. */
static void
being_told_is_enough(bool managed)
{
    const CUstream s = new_stream();
    CUdeviceptr p, other;
    volatile uint32_t *host = mapped(&p, managed);
    CUevent e;
    uint32_t word = 0;
    CUresult r;

    OK(CU(cuEventCreate)(&e, CU_EVENT_DISABLE_TIMING));
    OK(CU(cuMemAlloc_v2)(&other, 4));
    host[0] = 1;
    launch_add(p, 10, s);
    while ((r = CU(cuStreamQuery)(s)) == CUDA_ERROR_NOT_READY)
        continue;
    CHECK_IS(r, CUDA_SUCCESS);
    CHECK_IS(host[0], 11);
    launch_add(p, 10, s);
    OK(CU(cuEventRecord)(e, s));
    while ((r = CU(cuEventQuery)(e)) == CUDA_ERROR_NOT_READY)
        continue;
    CHECK_IS(r, CUDA_SUCCESS);
    CHECK_IS(host[0], 21);
    launch_add(p, 10, s);
    OK(CU(cuMemcpyDtoHAsync_v2)(&word, other, 4, s)); /* a copy to pageable memory waits */
    OK(CU(cuStreamSynchronize)(s));
    CHECK_IS(host[0], 31);
    OK(CU(cuMemFree_v2)(other));
    OK(CU(cuEventDestroy_v2)(e));
    free_mapped(host, p, managed);
    OK(CU(cuStreamDestroy_v2)(s));
}

/* Kernels, copies and fills of the same memory, one after the other on a stream. */
static void
copies_see_kernels(bool managed)
{
    const CUstream s = new_stream();
    CUdeviceptr p, q;
    volatile uint32_t *host = mapped(&p, managed);

    OK(CU(cuMemAlloc_v2)(&q, 4096));
    OK(CU(cuMemsetD32_v2)(q, 500, 1024));
    OK(CU(cuCtxSynchronize)());
    for (uint32_t i = 1; i <= 5; i++) {
        host[0] = i;
        launch_add(p, 100, s);
        OK(CU(cuMemcpyAsync)(q, p, 4, s)); /* copies what the kernel writes */
        OK(CU(cuStreamSynchronize)(s));
        CHECK_IS(read_word(q), 100 + i);
        OK(CU(cuMemsetD32Async)(q, 1000 * i, 1, s));
        OK(CU(cuMemcpyAsync)(p, q, 4, s));
        launch_add(p, 7, s); /* copies what was copied */
        OK(CU(cuStreamSynchronize)(s));
        CHECK_IS(host[0], 1000 * i + 7);
        host[0] = 4711;
        OK(CU(cuMemsetD32Async)(p, 0, 1, s));
        launch_add(p, 3, s);
        OK(CU(cuStreamSynchronize)(s));
        CHECK_IS(host[0], 3);
    }
    OK(CU(cuMemFree_v2)(q));
    free_mapped(host, p, managed);
    OK(CU(cuStreamDestroy_v2)(s));
}

#define SHARERS 4
#define TURNS 60

static CUdeviceptr shared_at;

/* Each thread has a word in memory that all share; the thread and kernels change it alternately. */
static void *
shares_a_page(void *arg)
{
    const size_t mine = (size_t)(uintptr_t)arg;
    volatile uint32_t *word = (volatile uint32_t *)(uintptr_t)(shared_at + 4 * mine);
    const CUstream s = new_stream();
    uint32_t want = 0;

    for (uint32_t i = 0; i < TURNS; i++) {
        *word += 3;
        launch_add(shared_at + 4 * mine, 5, s);
        OK(CU(cuStreamSynchronize)(s));
        want += 8;
        CHECK(*word == want, "thread %zu, turn %u: %u instead of %u", mine, i, *word, want);
    }
    OK(CU(cuStreamDestroy_v2)(s));
    return NULL;
}

static void
threads_share_a_page(void)
{
    pthread_t threads[SHARERS];

    OK(CU(cuMemAllocManaged)(&shared_at, 4096, CU_MEM_ATTACH_GLOBAL));
    memset((void *)(uintptr_t)shared_at, 0, 4096);
    for (size_t i = 0; i < SHARERS; i++)
        CHECK(pthread_create(&threads[i], NULL, shares_a_page, (void *)(uintptr_t)i) == 0,
              "no thread");
    for (size_t i = 0; i < SHARERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0, "a thread does not end");
    OK(CU(cuMemFree_v2)(shared_at));
}

/* ---- functions of the program ---------------------------------------------------------------- */

static void
writes(void *arg)
{
    give_a_moment(20); /* a copy that does not wait would be made meanwhile */
    *(volatile uint32_t *)arg += 1;
}

/* A copy after a function reads what the function wrote, even on another stream. */
static void
copies_see_functions(uint32_t *host)
{
    const CUstream s = new_stream(), t = new_stream();
    CUdeviceptr p;
    CUevent e;

    OK(CU(cuMemAlloc_v2)(&p, 4));
    OK(CU(cuEventCreate)(&e, CU_EVENT_DISABLE_TIMING));
    *host = 41;
    OK(CU(cuLaunchHostFunc)(s, writes, host));
    OK(CU(cuMemcpyHtoDAsync_v2)(p, host, 4, s));
    OK(CU(cuStreamSynchronize)(s));
    CHECK_IS(read_word(p), 42);
    OK(CU(cuLaunchHostFunc)(s, writes, host));
    OK(CU(cuEventRecord)(e, s));
    OK(CU(cuStreamWaitEvent)(t, e, 0));
    OK(CU(cuMemcpyHtoDAsync_v2)(p, host, 4, t));
    OK(CU(cuStreamSynchronize)(t));
    CHECK_IS(read_word(p), 43);
    /* Fills of such memory are in stream order, too. */
    OK(CU(cuLaunchHostFunc)(s, writes, host));
    OK(CU(cuMemsetD32Async)((CUdeviceptr)(uintptr_t)host, 7, 1, s));
    OK(CU(cuStreamSynchronize)(s));
    CHECK_IS(*(volatile uint32_t *)host, 7);
    OK(CU(cuMemFree_v2)(p));
    OK(CU(cuEventDestroy_v2)(e));
    OK(CU(cuStreamDestroy_v2)(s));
    OK(CU(cuStreamDestroy_v2)(t));
}

static void
functions_come_before_copies(void)
{
    uint32_t *own = aligned_alloc(65536, 65536);
    CUdeviceptr p;
    void *pinned;

    CHECK(own, "no memory for the test");
    OK(CU(cuMemAllocHost_v2)(&pinned, 4096));
    copies_see_functions(pinned);
    OK(CU(cuMemFreeHost)(pinned));
    OK(CU(cuMemHostRegister_v2)(own, 65536, 2 /* CU_MEMHOSTREGISTER_DEVICEMAP */));
    copies_see_functions(own);
    /* A kernel cannot reach it, and the call says so. */
    CHECK_IS(CU(cuMemHostGetDevicePointer_v2)(&p, own, 0), CUDA_ERROR_NOT_SUPPORTED);
    OK(CU(cuMemHostUnregister)(own));
    free(own);
}

static void
sleeps(void *arg)
{
    (void)arg;
    give_a_moment(100);
}

/* When the call of a synchronous copy has returned, even streams that do not wait for the default
 * one see its result. */
static void
copies_come_first(void)
{
    const CUstream s = new_stream();
    const uint32_t word = 42;
    CUdeviceptr p;

    OK(CU(cuMemAlloc_v2)(&p, 4));
    for (int i = 0; i < 3; i++) {
        OK(CU(cuMemsetD32_v2)(p, 0, 1));
        OK(CU(cuLaunchHostFunc)(NULL, sleeps, NULL));
        OK(CU(cuMemcpyHtoD_v2)(p, &word, 4));
        launch_add(p, 1, s);
        OK(CU(cuStreamSynchronize)(s));
        OK(CU(cuCtxSynchronize)());
        CHECK_IS(read_word(p), 43);
    }
    OK(CU(cuMemFree_v2)(p));
    OK(CU(cuStreamDestroy_v2)(s));
}

#define READERS 6
#define READS 300

/* Each thread gets its own data, although all of it arrives on many channels. */
static void *
reads_later(void *arg)
{
    const uint32_t mine = (uint32_t)(uintptr_t)arg;
    const size_t n = mine % 2 ? 300000 : 64;
    const CUstream s = new_stream();
    uint32_t *to;
    CUdeviceptr p;
    void *host;

    OK(CU(cuMemHostAlloc)(&host, n, 0));
    to = host;
    OK(CU(cuMemAlloc_v2)(&p, n));
    for (uint32_t i = 0; i < READS; i++) {
        OK(CU(cuMemsetD32Async)(p, mine << 16 | i, n / 4, s));
        OK(CU(cuMemcpyDtoHAsync_v2)(to, p, n, s));
        OK(CU(cuStreamSynchronize)(s));
        CHECK(to[0] == (mine << 16 | i) && to[n / 4 - 1] == to[0], "%u: %x and %x", i, to[0],
              to[n / 4 - 1]);
    }
    OK(CU(cuMemFree_v2)(p));
    OK(CU(cuMemFreeHost)(host));
    OK(CU(cuStreamDestroy_v2)(s));
    return NULL;
}

static void
threads_read_later(void)
{
    pthread_t threads[READERS];

    for (size_t i = 0; i < READERS; i++)
        CHECK(pthread_create(&threads[i], NULL, reads_later, (void *)(uintptr_t)(i + 1)) == 0,
              "no thread");
    for (size_t i = 0; i < READERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0, "a thread does not end");
}

/* ---- what a device cannot do with memory of another machine ---------------------------------- */

static void
attributes_are_ours(void)
{
    static const CUdevice_attribute none[] = {
        CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
        CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
        CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED,
    };

    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        int value = -1;

        OK(CU(cuDeviceGetAttribute)(&value, none[i], 0));
        CHECK_IS(value, 0);
    }

    /* Clients share memory through their server, unless it cannot know who they are. */
    const char *gpu = getenv("HEDDLE_GPU");
    int shares = -1;

    CHECK(gpu, "no HEDDLE_GPU");
    OK(CU(cuDeviceGetAttribute)(
        &shares, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0));
    CHECK_IS(shares, strncmp(gpu, "tcp:", 4) != 0);
}

int
main(void)
{
    CUmodule module;

    (void)alarm(PATIENCE_S); /* a test that waits for ever has failed */
    OK(CU(cuInit)(0));
    attributes_are_ours();
    OK(CU(cuDevicePrimaryCtxSetFlags_v2)(0, CU_CTX_SCHED_BLOCKING_SYNC));
    OK(CU(cuDevicePrimaryCtxRetain)(&primary, 0));
    OK(CU(cuCtxSetCurrent)(primary));
    OK(CU(cuModuleLoadData)(&module, ptx));
    OK(CU(cuModuleGetFunction)(&add, module, "add"));
    nobody_waits_for_ever();
    for (int managed = 0; managed < 2; managed++) {
        being_told_is_enough(managed);
        copies_see_kernels(managed);
    }
    threads_share_a_page();
    functions_come_before_copies();
    copies_come_first();
    threads_read_later();
    OK(CU(cuCtxSynchronize)());
    return 0;
}
