/* Memory, copies and fills on a remote GPU.
 *
 *     remote_memory [no_memory]
 *
 * `no_memory`: the server's GPU does nothing, so that only what the client knows can be checked.
 */
#include "conformance/conf.h"

#include <pthread.h>
#include <string.h>

#define OK(call) CHECK_IS(call, CUDA_SUCCESS)
#define MIB ((size_t)1 << 20)
#define THREADS 8

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry add(.param .u64 p, .param .u32 v)\n{\n"
    ".reg .b32 %r<4>; .reg .b64 %d<2>;\n"
    "ld.param.u64 %d1, [p];\nld.param.u32 %r1, [v];\n"
    "ld.global.u32 %r2, [%d1];\nadd.u32 %r2, %r2, %r1;\nst.global.u32 [%d1], %r2;\nret;\n}\n";

static bool no_memory;
static CUcontext primary;
static CUfunction add;

static uint32_t
next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static void
scramble(void *p, size_t n, uint32_t seed)
{
    unsigned char *to = p;

    for (size_t i = 0; i < n; i++)
        to[i] = (unsigned char)(next_random(&seed) >> 8);
}

static void
launch_add(uint64_t at, uint32_t value, CUstream s)
{
    void *params[] = {&at, &value};

    OK(CU(cuLaunchKernel)(add, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Copies to the device, on to other device memory, and back. */
static void
a_row_comes_back(size_t n, bool waits, CUstream s)
{
    unsigned char *from = malloc(n), *to = malloc(n);
    CUdeviceptr a, b;

    CHECK(from && to, "no memory for the test");
    scramble(from, n, (uint32_t)n + 1);
    memset(to, 0x11, n);
    OK(CU(cuMemAlloc_v2)(&a, n));
    OK(CU(cuMemAlloc_v2)(&b, n));
    if (waits) {
        OK(CU(cuMemcpyHtoD_v2)(a, from, n));
        OK(CU(cuMemcpyDtoD_v2)(b, a, n));
        OK(CU(cuMemcpyDtoH_v2)(to, b, n));
    } else {
        OK(CU(cuMemcpyHtoDAsync_v2)(a, from, n, s));
        OK(CU(cuMemcpyDtoDAsync_v2)(b, a, n, s));
        OK(CU(cuMemcpyDtoHAsync_v2)(to, b, n, s));
        OK(CU(cuStreamSynchronize)(s));
    }
    if (!no_memory)
        CHECK(memcmp(from, to, n) == 0, "%zu bytes came back changed", n);
    OK(CU(cuMemFree_v2)(a));
    OK(CU(cuMemFree_v2)(b));
    free(from);
    free(to);
}

static void
rows_come_back(void)
{
    static const size_t sizes[] = {1,       3,           8,           4095,        4096,
                                   4097,    65536,       65537,       MIB - 1,     MIB,
                                   MIB + 1, 3 * MIB + 5, 8 * MIB + 1, 20 * MIB + 3};
    CUstream s;

    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        a_row_comes_back(sizes[i], true, NULL);
        a_row_comes_back(sizes[i], false, s);
    }
    OK(CU(cuStreamDestroy_v2)(s));
}

/* ---- boxes ----------------------------------------------------------------------------------- */

struct layout {
    size_t x, y, z, pitch, height, bytes;
};

static struct layout
random_layout(uint32_t *state, size_t w, size_t h, size_t d)
{
    struct layout l = {
        .x = next_random(state) % 9, .y = next_random(state) % 4, .z = next_random(state) % 3};

    l.pitch = l.x + w + (next_random(state) % 3 ? next_random(state) % 70 : 0);
    l.height = l.y + h + next_random(state) % 3;
    l.bytes = l.pitch * l.height * (l.z + d);
    return l;
}

/* The same copy in plain memory, as the reference. */
static void
copy_box(unsigned char *to, const struct layout *t, const unsigned char *from,
         const struct layout *f, size_t w, size_t h, size_t d)
{
    for (size_t z = 0; z < d; z++)
        for (size_t y = 0; y < h; y++)
            memcpy(to + ((t->z + z) * t->height + t->y + y) * t->pitch + t->x,
                   from + ((f->z + z) * f->height + f->y + y) * f->pitch + f->x, w);
}

static CUDA_MEMCPY3D_v2
box(const struct layout *f, const struct layout *t, size_t w, size_t h, size_t d)
{
    return (CUDA_MEMCPY3D_v2){.srcXInBytes = f->x,
                              .srcY = f->y,
                              .srcZ = f->z,
                              .srcPitch = f->pitch,
                              .srcHeight = f->height,
                              .dstXInBytes = t->x,
                              .dstY = t->y,
                              .dstZ = t->z,
                              .dstPitch = t->pitch,
                              .dstHeight = t->height,
                              .WidthInBytes = w,
                              .Height = h,
                              .Depth = d};
}

/* Copies from one layout in host memory to others in device memory, and back to yet another. */
static void
a_box_comes_back(uint32_t *state, bool large)
{
    const size_t w = 1 + next_random(state) % (large ? 3000 : 130);
    const size_t h = 1 + next_random(state) % (large ? 700 : 12);
    const size_t d = 1 + next_random(state) % 5;
    const struct layout l[4] = {random_layout(state, w, h, d), random_layout(state, w, h, d),
                                random_layout(state, w, h, d), random_layout(state, w, h, d)};
    unsigned char *from = malloc(l[0].bytes), *to = malloc(l[3].bytes), *ref = malloc(l[3].bytes);
    CUDA_MEMCPY3D_v2 in = box(&l[0], &l[1], w, h, d), over = box(&l[1], &l[2], w, h, d);
    CUDA_MEMCPY3D_v2 out = box(&l[2], &l[3], w, h, d);
    CUdeviceptr a, b;

    CHECK(from && to && ref, "no memory for the test");
    scramble(from, l[0].bytes, *state);
    memset(to, 0x22, l[3].bytes);
    memset(ref, 0x22, l[3].bytes);
    copy_box(ref, &l[3], from, &l[0], w, h, d);
    OK(CU(cuMemAlloc_v2)(&a, l[1].bytes));
    OK(CU(cuMemAlloc_v2)(&b, l[2].bytes));
    in.srcMemoryType = CU_MEMORYTYPE_HOST;
    in.srcHost = from;
    in.dstMemoryType = over.srcMemoryType = over.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    in.dstDevice = over.srcDevice = a;
    over.dstDevice = out.srcDevice = b;
    out.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    out.dstMemoryType = CU_MEMORYTYPE_HOST;
    out.dstHost = to;
    OK(CU(cuMemcpy3D_v2)(&in));
    OK(CU(cuMemcpy3D_v2)(&over));
    OK(CU(cuMemcpy3D_v2)(&out));
    if (!no_memory)
        CHECK(memcmp(ref, to, l[3].bytes) == 0, "a box of %zu x %zu x %zu came back changed", w, h,
              d);
    OK(CU(cuMemFree_v2)(a));
    OK(CU(cuMemFree_v2)(b));
    free(from);
    free(to);
    free(ref);
}

static void
boxes_come_back(void)
{
    uint32_t state = 12345;

    for (int i = 0; i < 150; i++)
        a_box_comes_back(&state, false);
    for (int i = 0; i < 12; i++)
        a_box_comes_back(&state, true);
}

/* ---- fills ----------------------------------------------------------------------------------- */

static void
fills_fill(void)
{
    unsigned char host[4096];
    CUdeviceptr p;

    OK(CU(cuMemAlloc_v2)(&p, sizeof host));
    OK(CU(cuMemsetD8_v2)(p, 0xaa, sizeof host));
    OK(CU(cuMemsetD16_v2)(p + 16, 0x1234, 8));
    OK(CU(cuMemsetD32_v2)(p + 64, 0xdeadbeef, 4));
    OK(CU(cuMemsetD2D8_v2)(p + 1024, 64, 0x55, 10, 4));
    OK(CU(cuMemcpyDtoH_v2)(host, p, sizeof host));
    if (!no_memory) {
        CHECK_IS(host[0], 0xaa);
        CHECK_IS(host[16], 0x34);
        CHECK_IS(host[17], 0x12);
        CHECK_IS(host[64], 0xef);
        CHECK_IS(host[67], 0xde);
        CHECK_IS(host[1024], 0x55);
        CHECK_IS(host[1024 + 10], 0xaa);
        CHECK_IS(host[1024 + 3 * 64 + 9], 0x55);
        CHECK_IS(host[1024 + 4 * 64], 0xaa);
    }
    OK(CU(cuMemFree_v2)(p));
}

/* ---- pinned host memory ---------------------------------------------------------------------- */

/* An asynchronous copy is complete when its stream, or an event after it, is. */
static void
later_copies_come(void *host, size_t n, bool by_event)
{
    unsigned char *from = malloc(n);
    CUstream s;
    CUevent e;
    CUdeviceptr p;

    CHECK(from, "no memory for the test");
    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    OK(CU(cuEventCreate)(&e, CU_EVENT_DISABLE_TIMING));
    OK(CU(cuMemAlloc_v2)(&p, n));
    for (int i = 0; i < 6; i++) {
        scramble(from, n, (uint32_t)i + 77);
        memset(host, 0, n);
        OK(CU(cuMemcpyHtoDAsync_v2)(p, from, n, s));
        OK(CU(cuMemcpyDtoHAsync_v2)(host, p, n, s));
        OK(CU(cuEventRecord)(e, s));
        if (by_event)
            OK(CU(cuEventSynchronize)(e));
        else
            OK(CU(cuStreamSynchronize)(s));
        if (!no_memory)
            CHECK(memcmp(host, from, n) == 0, "round %d: %zu bytes have not come", i, n);
        /* Copies it to the device and back, and to the device again. */
        OK(CU(cuMemsetD8Async)(p, 0, n, s));
        OK(CU(cuMemcpyHtoDAsync_v2)(p, host, n, s));
        OK(CU(cuMemcpyDtoHAsync_v2)(host, p, n, s));
        OK(CU(cuMemcpyHtoDAsync_v2)(p, host, n, s));
        OK(CU(cuCtxSynchronize)());
        if (!no_memory)
            CHECK(memcmp(host, from, n) == 0, "round %d: %zu bytes went wrong", i, n);
    }
    OK(CU(cuMemFree_v2)(p));
    OK(CU(cuEventDestroy_v2)(e));
    OK(CU(cuStreamDestroy_v2)(s));
    free(from);
}

static void
pinned_memory_works(void)
{
    static const size_t sizes[] = {100, 70000, 5 * MIB + 7};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *host;

        OK(CU(cuMemHostAlloc)(&host, sizes[i], 0));
        later_copies_come(host, sizes[i], i & 1);
        OK(CU(cuMemFreeHost)(host));
    }
}

static void
registered_memory_works(void)
{
    const size_t n = 3 * MIB;
    unsigned char *host = aligned_alloc(65536, n);

    CHECK(host, "no memory for the test");
    memset(host, 0, n);
    OK(CU(cuMemHostRegister_v2)(host, n, 0));
    later_copies_come(host, n, true);
    later_copies_come(host + 100, 1000, false);
    OK(CU(cuMemHostUnregister)(host));
    free(host);
}

/* Each side sees what the other one wrote, after waiting for it. */
static void
mapped_memory_is_alike(bool managed)
{
    volatile uint32_t *host;
    CUdeviceptr p;
    CUstream s;

    if (no_memory)
        return;
    OK(CU(cuStreamCreate)(&s, 0));
    if (managed) {
        OK(CU(cuMemAllocManaged)(&p, 200000, CU_MEM_ATTACH_GLOBAL));
        host = (volatile uint32_t *)(uintptr_t)p;
    } else {
        void *q;

        OK(CU(cuMemHostAlloc)(&q, 200000, 2 /* CU_MEMHOSTALLOC_DEVICEMAP */));
        OK(CU(cuMemHostGetDevicePointer_v2)(&p, q, 0));
        host = q;
    }
    for (uint32_t i = 0; i < 10; i++) {
        host[0] = i;
        host[40000] = 7;
        launch_add(p, 1000, s);
        OK(CU(cuStreamSynchronize)(s));
        CHECK_IS(host[0], 1000 + i);
        launch_add(p + 160000, 5, s);
        launch_add(p, 1, s);
        OK(CU(cuCtxSynchronize)());
        CHECK_IS(host[0], 1001 + i);
        CHECK_IS(host[40000], 12);
    }
    if (managed)
        OK(CU(cuMemFree_v2)(p));
    else
        OK(CU(cuMemFreeHost)((void *)(uintptr_t)host));
    OK(CU(cuStreamDestroy_v2)(s));
}

/* ---- how much memory there is ---------------------------------------------------------------- */

static void
memory_ends_where_it_says(void)
{
    size_t free_before, free_after, total;
    CUdeviceptr all, more;

    OK(CU(cuMemGetInfo_v2)(&free_before, &total));
    CHECK(free_before <= total && free_before > 64 * MIB, "%zu of %zu bytes are free", free_before,
          total);

    const size_t whole = free_before / (2 * MIB) * (2 * MIB);

    CHECK_IS(CU(cuMemAlloc_v2)(&all, whole + 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    OK(CU(cuMemAlloc_v2)(&all, whole));
    CHECK_IS(CU(cuMemAlloc_v2)(&more, 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    OK(CU(cuMemGetInfo_v2)(&free_after, &total));
    CHECK(free_after < 2 * MIB, "%zu bytes are free when all is taken", free_after);
    OK(CU(cuMemFree_v2)(all));
    OK(CU(cuMemGetInfo_v2)(&free_after, &total));
    CHECK_IS(free_after, free_before);
    OK(CU(cuMemAlloc_v2)(&all, whole - 2 * MIB));
    OK(CU(cuMemAlloc_v2)(&more, 2 * MIB));
    OK(CU(cuMemFree_v2)(more));
    OK(CU(cuMemFree_v2)(all));
}

/* Another client of the same server, while this one has most of the memory, and afterwards. */
static void
clients_share_the_memory(void)
{
    static const char *const nothing[] = {NULL};
    const char *kind = no_memory ? "no_memory" : "full";
    size_t free_before, total;
    CUdeviceptr most;
    char text[512];
    char mode[32];

    OK(CU(cuMemGetInfo_v2)(&free_before, &total));
    OK(CU(cuMemAlloc_v2)(&most, total / 10 * 6));
    snprintf(mode, sizeof mode, "%s-taken", kind);
    CHECK_IS(conf_again(mode, text, sizeof text, nothing), 0);
    OK(CU(cuMemFree_v2)(most));
    snprintf(mode, sizeof mode, "%s-free", kind);
    CHECK_IS(conf_again(mode, text, sizeof text, nothing), 0);
}

static int
be_the_other_client(bool taken)
{
    size_t left, total;
    CUdeviceptr p, q;

    OK(CU(cuMemGetInfo_v2)(&left, &total));
    if (!taken) {
        /* A free does not wait, so the first client's worker may not have performed it yet. */
        WAIT_UNTIL(CU(cuMemAlloc_v2)(&p, total / 10 * 6) == CUDA_SUCCESS);
        return 0;
    }
    CHECK(left < total / 2, "%zu of %zu bytes are free", left, total);
    CHECK_IS(CU(cuMemAlloc_v2)(&p, total / 2), CUDA_ERROR_OUT_OF_MEMORY);
    OK(CU(cuMemAlloc_v2)(&p, total / 10));
    CHECK_IS(CU(cuMemAlloc_v2)(&q, total / 2), CUDA_ERROR_OUT_OF_MEMORY);
    OK(CU(cuMemFree_v2)(p));
    return 0;
}

/* ---- memory of the program's own ------------------------------------------------------------- */

static void
virtual_memory_works(void)
{
    const CUmemAllocationProp_v1 prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    const CUmemAccessDesc_v1 desc = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                                     .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle h[2];
    const size_t n = 4 * MIB;
    unsigned char *host = malloc(2 * n), *back = malloc(2 * n);
    CUdeviceptr p;

    CHECK(host && back, "no memory for the test");
    scramble(host, 2 * n, 5);
    OK(CU(cuMemAddressReserve)(&p, 2 * n, 0, 0, 0));
    for (int i = 0; i < 2; i++) {
        OK(CU(cuMemCreate)(&h[i], n, &prop, 0));
        OK(CU(cuMemMap)(p + (size_t)i * n, n, 0, h[i], 0));
    }
    OK(CU(cuMemSetAccess)(p, 2 * n, &desc, 1));
    OK(CU(cuMemcpyHtoD_v2)(p, host, 2 * n));
    OK(CU(cuMemcpyDtoH_v2)(back, p, 2 * n));
    if (!no_memory)
        CHECK(memcmp(host, back, 2 * n) == 0, "virtual memory changed");
    OK(CU(cuMemUnmap)(p, 2 * n));
    /* The other way round. */
    OK(CU(cuMemMap)(p, n, 0, h[1], 0));
    OK(CU(cuMemSetAccess)(p, n, &desc, 1));
    OK(CU(cuMemcpyDtoH_v2)(back, p, n));
    if (!no_memory)
        CHECK(memcmp(host + n, back, n) == 0, "virtual memory was mapped wrong");
    OK(CU(cuMemRelease)(h[0]));
    OK(CU(cuMemRelease)(h[1]));
    OK(CU(cuMemUnmap)(p, n));
    OK(CU(cuMemAddressFree)(p, 2 * n));
    free(host);
    free(back);
}

/* ---- many at once ---------------------------------------------------------------------------- */

static void *
storm(void *arg)
{
    uint32_t state = 1 + (uint32_t)(uintptr_t)arg;
    unsigned char mine[256], back[256];
    CUdeviceptr live[16] = {0};
    CUstream s;

    OK(CU(cuCtxSetCurrent)(primary));
    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 400; i++) {
        const unsigned at = next_random(&state) % 16;
        const bool pool = at % 2;

        if (live[at]) {
            if (pool)
                OK(CU(cuMemFreeAsync)(live[at], s));
            else
                OK(CU(cuMemFree_v2)(live[at]));
            live[at] = 0;
            continue;
        }

        const size_t n = next_random(&state) % 5 ? 256 + next_random(&state) % 5000
                                                 : MIB + next_random(&state) % (3 * MIB);

        if (pool)
            OK(CU(cuMemAllocAsync)(&live[at], n, s));
        else
            OK(CU(cuMemAlloc_v2)(&live[at], n));
        scramble(mine, sizeof mine, state);
        OK(CU(cuMemcpyHtoDAsync_v2)(live[at], mine, sizeof mine, s));
        OK(CU(cuMemcpyDtoHAsync_v2)(back, live[at], sizeof back, s));
        if (!no_memory)
            CHECK(memcmp(mine, back, sizeof mine) == 0, "memory of another thread");
    }
    for (int i = 0; i < 16; i++)
        OK(CU(cuMemFree_v2)(live[i]));
    OK(CU(cuStreamDestroy_v2)(s));
    return NULL;
}

static void
run_threads(void *(*body)(void *))
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        CHECK_IS(pthread_create(&threads[i], NULL, body, (void *)(uintptr_t)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_IS(pthread_join(threads[i], NULL), 0);
}

/* The bytes of its copies also come while other threads wait for answers. */
static void *
overwrite(void *arg)
{
    unsigned char *host;
    CUdeviceptr p;
    CUstream s;

    (void)arg;
    OK(CU(cuCtxSetCurrent)(primary));
    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    OK(CU(cuMemAlloc_v2)(&p, MIB));
    OK(CU(cuMemAllocHost_v2)((void **)&host, MIB));
    for (int round = 0; round < 8; round++) {
        for (unsigned char i = 1; i <= 20; i++) {
            OK(CU(cuMemsetD8Async)(p, i, MIB, s));
            OK(CU(cuMemcpyDtoHAsync_v2)(host, p, MIB, s));
        }
        OK(CU(cuStreamSynchronize)(s));
        for (size_t i = 0; i < MIB && !no_memory; i++)
            CHECK(host[i] == 20, "byte %zu is that of copy %d", i, host[i]);
    }
    OK(CU(cuMemFreeHost)(host));
    OK(CU(cuMemFree_v2)(p));
    OK(CU(cuStreamDestroy_v2)(s));
    return NULL;
}

/* More copies than a worker keeps in mind. */
static void
many_copies_come_back(void)
{
    const unsigned count = 70000;
    CUdeviceptr p;
    CUstream s;
    unsigned *host;

    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    OK(CU(cuMemAlloc_v2)(&p, sizeof *host));
    OK(CU(cuMemAllocHost_v2)((void **)&host, count * sizeof *host));
    for (unsigned i = 0; i < count; i++) {
        if (i % 1000 == 0)
            OK(CU(cuMemsetD32Async)(p, i, 1, s));
        OK(CU(cuMemcpyDtoHAsync_v2)(host + i, p, sizeof *host, s));
    }
    OK(CU(cuStreamSynchronize)(s));
    for (unsigned i = 0; i < count && !no_memory; i++)
        CHECK(host[i] == i - i % 1000, "copy %u has brought %u", i, host[i]);
    OK(CU(cuMemFreeHost)(host));
    OK(CU(cuMemFree_v2)(p));
    OK(CU(cuStreamDestroy_v2)(s));
}

/* The stream that a call names says where it works. */
static void
work_needs_no_current_context(void)
{
    unsigned char from[256], to[256];
    CUdeviceptr p;
    CUstream s;

    memset(from, 7, sizeof from);
    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    OK(CU(cuMemAlloc_v2)(&p, sizeof to));
    OK(CU(cuCtxSetCurrent)(NULL));
    OK(CU(cuMemcpyHtoDAsync_v2)(p, from, sizeof from, s));
    OK(CU(cuMemsetD8Async)(p, 9, sizeof to / 2, s));
    OK(CU(cuMemcpyDtoHAsync_v2)(to, p, sizeof to, s));
    OK(CU(cuStreamSynchronize)(s));
    for (size_t i = 0; i < sizeof to && !no_memory; i++)
        CHECK_IS(to[i], i < sizeof to / 2 ? 9 : 7);
    OK(CU(cuMemFree_v2)(p));
    OK(CU(cuCtxSetCurrent)(primary));
    OK(CU(cuStreamDestroy_v2)(s));
}

int
main(int argc, char **argv)
{
    CUmodule module;

    no_memory = argc > 1 && strncmp(argv[1], "no_memory", 6) == 0;
    OK(CU(cuInit)(0));
    OK(CU(cuDevicePrimaryCtxRetain)(&primary, 0));
    OK(CU(cuCtxSetCurrent)(primary));
    if (argc > 1 && strchr(argv[1], '-'))
        return be_the_other_client(strstr(argv[1], "-taken") != NULL);
    if (!no_memory) {
        OK(CU(cuModuleLoadData)(&module, ptx));
        OK(CU(cuModuleGetFunction)(&add, module, "add"));
    }
    memory_ends_where_it_says();
    rows_come_back();
    boxes_come_back();
    fills_fill();
    pinned_memory_works();
    registered_memory_works();
    mapped_memory_is_alike(false);
    mapped_memory_is_alike(true);
    virtual_memory_works();
    run_threads(storm);
    run_threads(overwrite);
    many_copies_come_back();
    work_needs_no_current_context();
    memory_ends_where_it_says();
    clients_share_the_memory(); /* last: the server takes a moment to notice their end */
    return 0;
}
