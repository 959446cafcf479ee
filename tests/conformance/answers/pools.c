/* Stream-ordered memory and its pools, and virtual memory. */
#include "answers.h"

#define MIB ((size_t)1 << 20)

static char host[4096];

static void
say_pool(CUmemoryPool pool)
{
    for (int i = 1; i <= 8; i++) {
        unsigned long long v = 0;
        const CUresult r = CU(cuMemPoolGetAttribute)(pool, (CUmemPool_attribute)i, &v);

        printf("pool attribute %d: %s %llu\n", i, ask_result(r), v);
    }
}

static void
ordered(void)
{
    CUmemoryPool pool;
    CUdeviceptr p;
    CUdeviceptr plain;
    CUstream s;
    unsigned long long v = 5;

    ask_context();
    MUST(cuMemAlloc_v2, &plain, 100);
    MUST(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
    ASK(cuDeviceGetDefaultMemPool, &pool, 0);
    ASK(cuDeviceGetDefaultMemPool, &pool, 9);
    ASK(cuDeviceGetDefaultMemPool, NULL, 0);
    MUST(cuDeviceGetDefaultMemPool, &pool, 0);
    say_pool(pool);
    ASK(cuMemPoolDestroy, pool);
    ASK(cuMemAllocAsync, &p, 0, s);
    ASK(cuMemAllocAsync, NULL, 100, s);
    ASK(cuMemAllocAsync, &p, 100, s);
    say_pool(pool);
    ASK(cuMemsetD8Async, p, 7, 100, s);
    ASK(cuMemcpyDtoHAsync_v2, host, p, 100, s);
    ASK(cuStreamSynchronize, s);
    SAY("byte", host[99]);
    ASK(cuMemFreeAsync, plain, s);
    ASK(cuMemFreeAsync, 0, s);
    ASK(cuMemFreeAsync, 0x1234, s);
    ASK(cuMemFreeAsync, p + 8, s);
    ASK(cuMemFreeAsync, p, s);
    ASK(cuMemFreeAsync, p, s);
    ASK(cuStreamSynchronize, s);
    say_pool(pool);
    ASK(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &v);
    v = 0;
    ASK_AS("high to zero", cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &v);
    ASK(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &v);
    ASK(cuMemPoolSetAttribute, pool, 99, &v);
    ASK(cuMemPoolGetAttribute, pool, 99, &v);
    ASK(cuMemPoolGetAttribute, NULL, 4, &v);
    ASK(cuMemPoolTrimTo, pool, 0);
    ASK(cuMemAllocAsync, &p, 1000, s);
    ASK(cuMemFree_v2, p);
}

static void
made_pools(void)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemAccessDesc access = {here, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemAccess_flags flags = 9;
    CUmemoryPool first;
    CUmemoryPool pool;
    CUmemoryPool now;
    CUdeviceptr p;

    ask_context();
    MUST(cuDeviceGetDefaultMemPool, &first, 0);
    ASK(cuMemPoolCreate, &pool, &props);
    ASK(cuMemPoolCreate, NULL, &props);
    ASK(cuMemPoolCreate, &now, NULL);
    ASK(cuMemAllocFromPoolAsync, &p, 1000, pool, NULL);
    ASK(cuMemFreeAsync, p, NULL);
    ASK(cuMemPoolGetAccess, &flags, pool, &here);
    SAY("access", flags);
    ASK(cuMemPoolSetAccess, pool, &access, 1);
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    ASK_AS("no access from its own device", cuMemPoolSetAccess, pool, &access, 1);
    ASK(cuDeviceGetMemPool, &now, 0);
    SAY("the default", now == first);
    ASK(cuDeviceSetMemPool, 0, pool);
    ASK(cuDeviceGetMemPool, &now, 0);
    SAY("the new one", now == pool);
    ASK(cuMemPoolDestroy, pool);
    ASK(cuDeviceGetMemPool, &now, 0);
    SAY("the default", now == first);
    props.allocType = 0;
    ASK_AS("pool of no kind", cuMemPoolCreate, &pool, &props);
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.id = 9;
    ASK_AS("pool of device 9", cuMemPoolCreate, &pool, &props);
    props.location.id = 0;
    props.location.type = CU_MEM_LOCATION_TYPE_INVALID;
    ASK_AS("pool of no place", cuMemPoolCreate, &pool, &props);
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    props.maxSize = 1;
    ASK_AS("pool of one byte", cuMemPoolCreate, &pool, &props);
    ASK(cuMemAllocFromPoolAsync, &p, 1000, pool, NULL);
    ASK(cuMemAllocFromPoolAsync, &p, 40 * MIB, pool, NULL);
}

static void
mapped(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemAccessDesc access = {here, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle h;
    CUmemGenericAllocationHandle again;
    CUdeviceptr va;
    CUdeviceptr other;
    unsigned long long flags = 99;
    size_t size = 0;

    ask_context();
    ASK(cuMemGetAllocationGranularity, &size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    SAY("granularity", size);
    ASK(cuMemGetAllocationGranularity, &size, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    SAY("granularity", size);
    ASK(cuMemAddressReserve, &va, 1000, 0, 0, 0);
    ASK(cuMemAddressReserve, &va, 8 * MIB, 3, 0, 0);
    ASK(cuMemAddressReserve, &va, 0, 0, 0, 0);
    ASK(cuMemAddressReserve, &va, 8 * MIB, 0, 0, 1);
    ASK(cuMemAddressReserve, &va, 8 * MIB, 0, 0, 0);
    ASK(cuMemAddressReserve, &other, 8 * MIB, 0, va, 0);
    SAY("another place", other != va);
    ASK(cuMemCreate, &h, 1000, &prop, 0);
    ASK(cuMemCreate, &h, 2 * MIB, &prop, 1);
    ASK(cuMemCreate, &h, 2 * MIB, &prop, 0);
    ASK(cuMemMap, va, 2 * MIB, 2 * MIB, h, 0);
    ASK(cuMemMap, va, 4 * MIB, 0, h, 0);
    ASK(cuMemMap, va, 2 * MIB, 0, h, 0);
    ASK(cuMemMap, va, 2 * MIB, 0, h, 0);
    ASK(cuMemcpyHtoD_v2, va, host, 16);
    ASK(cuMemMap, va + 2 * MIB, 2 * MIB, 0, h, 0);
    ASK(cuMemSetAccess, va, MIB, &access, 1);
    ASK(cuMemSetAccess, va, 4 * MIB, &access, 1);
    ASK(cuMemSetAccess, va, 8 * MIB, &access, 1);
    ASK(cuMemGetAccess, &flags, &here, va);
    SAY("access", flags);
    ASK(cuMemGetAccess, &flags, &here, va + 6 * MIB);
    MUST(cuMemsetD8_v2, va, 3, 4096);
    ASK(cuMemcpyDtoH_v2, host, va + 2 * MIB, 4096);
    SAY("the same memory twice", host[4095]);
    ASK(cuMemRetainAllocationHandle, &again, (void *)va);
    SAY("the same handle", again == h);
    ASK(cuMemRelease, h);
    ASK(cuMemRelease, h);
    ASK(cuMemAddressFree, va, 8 * MIB);
    ASK(cuMemUnmap, va, MIB);
    ASK(cuMemUnmap, va, 4 * MIB);
    ASK(cuMemAddressFree, va, 4 * MIB);
    ASK(cuMemAddressFree, va, 8 * MIB);
    ASK(cuMemAddressFree, va, 8 * MIB);
    prop.location.id = 7;
    ASK_AS("memory of device 7", cuMemCreate, &h, 2 * MIB, &prop, 0);
    prop.location.id = 0;
    prop.type = 0;
    ASK_AS("memory of no kind", cuMemCreate, &h, 2 * MIB, &prop, 0);
}

ASK_MAIN({"ordered", ordered}, {"made_pools", made_pools}, {"mapped", mapped})
