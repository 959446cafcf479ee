/* Actions on memory: every way to allocate, fill and copy it. */
#include <stdlib.h>
#include <string.h>

#include "stress.h"

static uint32_t
some_words(struct worker *w)
{
    return 1 + stress_random(w, WORDS_MAX - 1);
}

void
act_plain(struct worker *w)
{
    const uint32_t n = some_words(w);
    const uint32_t first = stress_random(w, 1u << 20);
    CUdeviceptr a, b;
    size_t size;
    CUdeviceptr base;

    MUST(w, cuMemAlloc_v2(&a, n * 4ul));
    MUST(w, cuMemAlloc_v2(&b, n * 4ul));
    for (uint32_t i = 0; i < n; i++)
        w->host[i] = first + i;
    MUST(w, cuMemcpyHtoD_v2(a, w->host, n * 4ul));
    MUST(w, cuMemcpyDtoD_v2(b, a, n * 4ul));
    memset(w->host, 0, n * 4ul);
    MUST(w, cuMemcpyDtoH_v2(w->host, b, n * 4ul));
    CHECK_WORDS(w, w->host, n, first, 1);
    MUST(w, cuMemsetD32_v2(a, first, n));
    MUST(w, cuMemsetD16_v2(b, 0x0101, n * 2ul));
    MUST(w, cuMemcpyDtoH_v2(w->host, a, n * 4ul));
    CHECK_WORDS(w, w->host, n, first, 0);
    MUST(w, cuMemsetD8_v2(b, 1, n * 2ul));
    MUST(w, cuMemcpyDtoH_v2(w->host, b, n * 4ul));
    CHECK_WORDS(w, w->host, n, 0x01010101, 0);
    MUST(w, cuMemGetAddressRange_v2(&base, &size, a + n * 2ul));
    SAME(w, base, a);
    SAME(w, size, n * 4ul);
    MUST(w, cuMemFree_v2(a));
    MUST(w, cuMemFree_v2(b));
}

static void
copy_2d(struct worker *w, CUDA_MEMCPY2D_v2 *c, size_t width, size_t height)
{
    c->WidthInBytes = width;
    c->Height = height;
    if (stress_random(w, 2)) {
        MUST(w, cuMemcpy2D_v2(c));
    } else {
        CUstream s = stress_stream(w);

        MUST(w, cuMemcpy2DAsync_v2(c, s));
        MUST(w, cuStreamSynchronize(s));
    }
}

void
act_pitched(struct worker *w)
{
    const uint32_t width = 1 + stress_random(w, 100), height = 1 + stress_random(w, 100);
    const uint32_t value = stress_random(w, 1000);
    CUdeviceptr a;
    size_t pitch;

    MUST(w, cuMemAllocPitch_v2(&a, &pitch, width * 4ul, height, 4));
    MUST(w, cuMemsetD2D32_v2(a, pitch, value, width, height));
    MUST(w, cuStreamSynchronize(NULL)); /* the thread's streams do not wait for the default one */

    CUDA_MEMCPY2D_v2 out = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                            .srcDevice = a,
                            .srcPitch = pitch,
                            .dstMemoryType = CU_MEMORYTYPE_HOST,
                            .dstHost = w->host,
                            .dstPitch = width * 4ul};

    copy_2d(w, &out, width * 4ul, height);
    CHECK_WORDS(w, w->host, width * height, value, 0);
    MUST(w, cuMemFree_v2(a));
}

/* Allocates, fills, changes, reads and frees in stream order. */
static void
use_in_order(struct worker *w, CUstream s, CUdeviceptr a, uint32_t n)
{
    const uint32_t value = stress_random(w, 1000);

    MUST(w, cuMemsetD32Async(a, value, n, s));
    stress_mix(w, stress_device(w)->module, s, a, n, 3, 5);
    MUST(w, cuMemcpyDtoHAsync_v2(w->pinned, a, n * 4ul, s));
    MUST(w, cuMemFreeAsync(a, s));
    MUST(w, cuStreamSynchronize(s));
    CHECK_WORDS(w, w->pinned, n, value * 3 + 5, 0);
}

void
act_async(struct worker *w)
{
    CUstream s = stress_stream(w);

    for (int i = 0; i < 4; i++) {
        const uint32_t n = some_words(w);
        CUdeviceptr a;

        MUST(w, cuMemAllocAsync(&a, n * 4ul, s));
        use_in_order(w, s, a, n);
    }
}

void
act_pool(struct worker *w)
{
    CUmemPoolProps_v1 props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = w->device}};
    CUstream s = stress_stream(w);
    uint64_t keep = stress_random(w, 2) ? UINT64_MAX : 0;
    CUmemoryPool pool;

    MUST(w, cuMemPoolCreate(&pool, &props));
    MUST(w, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    for (int i = 0; i < 3; i++) {
        const uint32_t n = some_words(w);
        CUdeviceptr a;

        MUST(w, cuMemAllocFromPoolAsync(&a, n * 4ul, pool, s));
        use_in_order(w, s, a, n);
    }
    MUST(w, cuMemPoolTrimTo(pool, 0));
    MUST(w, cuMemPoolDestroy(pool));
}

void
act_host(struct worker *w)
{
    const uint32_t n = some_words(w);
    CUstream s = stress_stream(w);
    CUmodule m = stress_device(w)->module;
    uint32_t *mine;
    void *p, *raw = NULL;
    CUdeviceptr at, other = 0;
    CUresult r;

    MUST(w, cuMemHostAlloc(&p, n * 4ul, HOST_MAPPED | HOST_PORTABLE));
    mine = p;
    MUST(w, cuMemHostGetDevicePointer_v2(&at, p, 0));
    stress_fill(w, m, s, at, n, 77);
    MUST(w, cuStreamSynchronize(s));
    CHECK_WORDS(w, mine, n, 77, 1);
    MUST(w, cuMemFreeHost(p));

    SAME(w, posix_memalign(&raw, 65536, 65536), 0);
    MUST(w, cuMemHostRegister_v2(raw, 65536, HOST_MAPPED));
    r = cuMemHostGetDevicePointer_v2(&at, raw, 0);
    if (r ==
        CUDA_ERROR_NOT_SUPPORTED) { /* a device of another machine, which only copies can reach */
        MUST(w, cuMemAlloc_v2(&other, 65536));
        stress_fill(w, m, s, other, 16384, 5);
        MUST(w, cuMemcpyDtoHAsync_v2(raw, other, 65536, s));
    } else {
        MUST(w, r);
        stress_fill(w, m, s, at, 16384, 5);
    }
    MUST(w, cuStreamSynchronize(s));
    CHECK_WORDS(w, raw, 16384, 5, 1);
    MUST(w, cuMemHostUnregister(raw));
    MUST(w, cuMemFree_v2(other));
    free(raw);
}

void
act_managed(struct worker *w)
{
    const uint32_t n = some_words(w);
    CUstream s = stress_stream(w);
    CUdeviceptr a;
    CUmemLocation_v1 here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = w->device};

    MUST(w, cuMemAllocManaged(&a, n * 4ul, CU_MEM_ATTACH_GLOBAL));

    uint32_t *words = (uint32_t *)(uintptr_t)a;

    for (uint32_t i = 0; i < n; i++)
        words[i] = i;
    MUST(w, cuMemPrefetchAsync_v2(a, n * 4ul, here, 0, s));
    stress_mix(w, stress_device(w)->module, s, a, n, 1, 9);
    MUST(w, cuStreamSynchronize(s));
    CHECK_WORDS(w, words, n, 9, 1);
    MUST(w, cuMemFree_v2(a));
}

void
act_virtual(struct worker *w)
{
    const CUmemAllocationProp_v1 prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = w->device}};
    const CUmemAccessDesc_v1 access = {.location = prop.location,
                                       .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUstream s = stress_stream(w);
    CUmemGenericAllocationHandle memory;
    CUdeviceptr at;
    size_t size;

    MUST(w, cuMemGetAllocationGranularity(&size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    MUST(w, cuMemAddressReserve(&at, 2 * size, 0, 0, 0));
    MUST(w, cuMemCreate(&memory, size, &prop, 0));
    MUST(w, cuMemMap(at, size, 0, memory, 0));
    MUST(w, cuMemMap(at + size, size, 0, memory, 0));
    MUST(w, cuMemRelease(memory));
    MUST(w, cuMemSetAccess(at, 2 * size, &access, 1));
    stress_fill(w, stress_device(w)->module, s, at, 1000, 3);
    MUST(w, cuMemcpyDtoHAsync_v2(w->pinned, at + size, 4000, s));
    MUST(w, cuStreamSynchronize(s));
    CHECK_WORDS(w, w->pinned, 1000, 3, 1);
    MUST(w, cuMemUnmap(at, 2 * size));
    MUST(w, cuMemAddressFree(at, 2 * size));
}

void
act_array(struct worker *w)
{
    const uint32_t width = 1 + stress_random(w, 64), height = 1 + stress_random(w, 64);
    const CUDA_ARRAY_DESCRIPTOR_v2 d = {
        .Width = width, .Height = height, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
    CUarray a;

    MUST(w, cuArrayCreate_v2(&a, &d));
    for (uint32_t i = 0; i < width * height; i++)
        w->host[i] = 11 + i;

    CUDA_MEMCPY2D_v2 in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = w->host,
                           .srcPitch = width * 4ul,
                           .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                           .dstArray = a};
    CUDA_MEMCPY2D_v2 out = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                            .srcArray = a,
                            .dstMemoryType = CU_MEMORYTYPE_HOST,
                            .dstHost = w->pinned,
                            .dstPitch = width * 4ul};

    copy_2d(w, &in, width * 4ul, height);
    copy_2d(w, &out, width * 4ul, height);
    CHECK_WORDS(w, w->pinned, width * height, 11, 1);
    MUST(w, cuArrayDestroy(a));
}

void
act_peer(struct worker *w)
{
    const uint32_t n = some_words(w);
    struct device *other = &w->devices[stress_random(w, (uint32_t)w->device_count)];
    struct device *own = stress_device(w);
    CUstream s = stress_stream(w);
    CUdeviceptr a, b;

    MUST(w, cuMemAlloc_v2(&a, n * 4ul));
    MUST(w, cuCtxPushCurrent_v2(other->primary));
    MUST(w, cuMemAlloc_v2(&b, n * 4ul));
    MUST(w, cuCtxPopCurrent_v2(NULL));
    stress_fill(w, own->module, s, a, n, 21);
    MUST(w, cuMemcpyPeerAsync(b, other->primary, a, own->primary, n * 4ul, s));
    MUST(w, cuMemsetD32Async(a, 0, n, s));
    MUST(w, cuMemcpyPeerAsync(a, own->primary, b, other->primary, n * 4ul, s));
    MUST(w, cuMemcpyDtoHAsync_v2(w->host, a, n * 4ul, s));
    MUST(w, cuStreamSynchronize(s));
    CHECK_WORDS(w, w->host, n, 21, 1);
    memset(w->host, 0, n * 4ul);
    MUST(w, cuMemcpy((CUdeviceptr)(uintptr_t)w->host, b, n * 4ul));
    CHECK_WORDS(w, w->host, n, 21, 1);
    MUST(w, cuMemFree_v2(b));
    MUST(w, cuMemFree_v2(a));
}
