/* Pools, sharing between processes, what comes from outside, entry points, profiling. */
#include "table.h"

#include <string.h>

static void
asynchronous_memory(void *stream)
{
    void *a = (void *)77;

    TRY("plain", cudaMallocAsync, (void **, size_t, void *), (&a, 4096, stream));
    TRY("plain", cudaFreeAsync, (void *, void *), (a, stream));
    TRY("default stream", cudaMallocAsync, (void **, size_t, void *), (&a, 4096, NULL));
    TRY("plainly", cudaFree, (void *), (a));
    a = (void *)77;
    TRY("zero bytes", cudaMallocAsync, (void **, size_t, void *), (&a, 0, stream));
    table_show("pointer %p", a);
    TRY("no place", cudaMallocAsync, (void **, size_t, void *), (NULL, 4096, stream));
    TRY("too much", cudaMallocAsync, (void **, size_t, void *), (&a, (size_t)1 << 60, stream));
    TRY("NULL", cudaFreeAsync, (void *, void *), (NULL, stream));
    TRY("not memory", cudaFreeAsync, (void *, void *), ((void *)0x1234, stream));
    QUIET(cudaStreamSynchronize, (void *), (stream));
}

static void
pools_of_devices(void)
{
    const struct table_location here = {1, 0}, seventh = {1, 7}, host = {2, 0};
    void *pool = NULL, *other = NULL;

    TRY("device 0", cudaDeviceGetDefaultMemPool, (void **, int), (&pool, 0));
    TRY("device 7", cudaDeviceGetDefaultMemPool, (void **, int), (&other, 7));
    TRY("no place", cudaDeviceGetDefaultMemPool, (void **, int), (NULL, 0));
    TRY("device 0", cudaDeviceGetMemPool, (void **, int), (&other, 0));
    table_show("same %d", pool == other);
    TRY("device 7", cudaDeviceGetMemPool, (void **, int), (&other, 7));
    TRY("no place", cudaDeviceGetMemPool, (void **, int), (NULL, 0));
    TRY("device 0", cudaDeviceSetMemPool, (int, void *), (0, pool));
    TRY("no pool", cudaDeviceSetMemPool, (int, void *), (0, NULL));
    TRY("device 7", cudaDeviceSetMemPool, (int, void *), (7, pool));
    TRY("device 1's", cudaDeviceSetMemPool, (int, void *), (1, pool));
    TRY("device 0", cudaMemGetDefaultMemPool, (void **, const struct table_location *, int),
        (&other, &here, 1));
    TRY("device 7", cudaMemGetDefaultMemPool, (void **, const struct table_location *, int),
        (&other, &seventh, 1));
    TRY("no location", cudaMemGetDefaultMemPool, (void **, const struct table_location *, int),
        (&other, NULL, 1));
    TRY("device 0", cudaMemGetMemPool, (void **, const struct table_location *, int),
        (&other, &here, 1));
    TRY("the host", cudaMemGetMemPool, (void **, const struct table_location *, int),
        (&other, &host, 1));
    TRY("device 0", cudaMemSetMemPool, (const struct table_location *, int, void *),
        (&here, 1, pool));
    TRY("no pool", cudaMemSetMemPool, (const struct table_location *, int, void *),
        (&here, 1, NULL));
    TRY("the default one", cudaMemPoolDestroy, (void *), (pool));
}

static void
own_pools(void *stream)
{
    struct table_pool_props props = {.alloc_type = 1, .location = {1, 0}};
    struct {
        struct table_location location;
        int flags;
    } access = {{1, 0}, 3};
    void *pool = NULL, *a = NULL, *bad = NULL;
    uint64_t value = 77;
    int flags = 77, fd = -1;
    char data[64] = {0};

    TRY("plain", cudaMemPoolCreate, (void **, const struct table_pool_props *), (&pool, &props));
    TRY("no place", cudaMemPoolCreate, (void **, const struct table_pool_props *), (NULL, &props));
    TRY("no description", cudaMemPoolCreate, (void **, const struct table_pool_props *),
        (&bad, NULL));
    props.location.id = 7;
    TRY("device 7", cudaMemPoolCreate, (void **, const struct table_pool_props *), (&bad, &props));
    props.location.id = 0;
    props.alloc_type = 0;
    TRY("no type", cudaMemPoolCreate, (void **, const struct table_pool_props *), (&bad, &props));
    TRY("plain", cudaMallocFromPoolAsync, (void **, size_t, void *, void *),
        (&a, 4096, pool, stream));
    TRY("of a pool", cudaFreeAsync, (void *, void *), (a, stream));
    TRY("no place", cudaMallocFromPoolAsync, (void **, size_t, void *, void *),
        (NULL, 4096, pool, stream));
    TRY("no pool", cudaMallocFromPoolAsync, (void **, size_t, void *, void *),
        (&a, 4096, NULL, stream));
    TRY("nothing", cudaMallocFromPoolAsync, (void **, size_t, void *, void *),
        (&a, 0, pool, stream));
    TRY("threshold", cudaMemPoolGetAttribute, (void *, int, void *), (pool, 4, &value));
    table_show("%llu", (unsigned long long)value);
    value = 65536;
    TRY("threshold", cudaMemPoolSetAttribute, (void *, int, void *), (pool, 4, &value));
    TRY("bad", cudaMemPoolGetAttribute, (void *, int, void *), (pool, 77, &value));
    TRY("no place", cudaMemPoolGetAttribute, (void *, int, void *), (pool, 4, NULL));
    TRY("read only", cudaMemPoolSetAttribute, (void *, int, void *), (pool, 5, &value));
    TRY("plain", cudaMemPoolTrimTo, (void *, size_t), (pool, 0));
    TRY("no pool", cudaMemPoolTrimTo, (void *, size_t), (NULL, 0));
    TRY("plain", cudaMemPoolSetAccess, (void *, const void *, size_t), (pool, &access, 1));
    TRY("plain", cudaMemPoolGetAccess, (int *, void *, struct table_location *),
        (&flags, pool, &access.location));
    table_show("%d", flags);
    TRY("not shareable", cudaMemPoolExportToShareableHandle, (void *, void *, int, unsigned),
        (&fd, pool, 1, 0));
    TRY("not of a pool", cudaMemPoolExportPointer, (void *, void *), (data, &fd));
    TRY("nothing", cudaMemPoolImportPointer, (void **, void *, void *), (&a, pool, data));
    TRY("plain", cudaMemPoolDestroy, (void *), (pool));
    TRY("none", cudaMemPoolDestroy, (void *), (NULL));
}

void
table_pools(void)
{
    void *stream = NULL;

    QUIET(cudaStreamCreate, (void **), (&stream));
    asynchronous_memory(stream);
    pools_of_devices();
    own_pools(stream);
}

static void
sharing(void)
{
    struct {
        char bytes[64];
    } handle;
    void *memory = NULL, *event = NULL, *opened = NULL;
    char room[256] = {0};

    memset(&handle, 0, sizeof handle);
    QUIET(cudaMalloc, (void **, size_t), (&memory, 4096));
    QUIET(cudaEventCreate, (void **), (&event));
    TRY("memory", cudaIpcGetMemHandle, (void *, void *), (&handle, memory));
    TRY("not memory", cudaIpcGetMemHandle, (void *, void *), (&handle, room));
    TRY("not opened", cudaIpcCloseMemHandle, (void *), (memory));
    TRY("not shareable", cudaIpcGetEventHandle, (void *, void *), (&handle, event));
    memset(room, 0, sizeof room);
    TRY("no place", cudaImportExternalMemory, (void **, const void *), (NULL, room));
    TRY("no description", cudaImportExternalMemory, (void **, const void *), (&opened, NULL));
    TRY("no description", cudaImportExternalSemaphore, (void **, const void *), (&opened, NULL));
    TRY("none", cudaDestroyExternalMemory, (void *), (NULL));
    TRY("none", cudaDestroyExternalSemaphore, (void *), (NULL));
    TRY("no place", cudaExternalMemoryGetMappedBuffer, (void **, void *, const void *),
        (NULL, NULL, room));
    TRY("nothing", cudaGraphicsUnregisterResource, (void *), (NULL));
    TRY("none", cudaGraphicsMapResources, (int, void **, void *), (0, NULL, NULL));
}

static char unasked;

/* Of a pointer that was to `unasked`: addresses differ from run to run. */
static const char *
what_became_of(const void *address)
{
    return !address ? "none" : address == &unasked ? "as before" : "found";
}

static void
entry_points(void)
{
    int status = 77;
    void *address = &unasked;

    if (table_edition() < 12) {
        TRY("cuMemAlloc", cudaGetDriverEntryPoint, (const char *, void **, unsigned long long),
            ("cuMemAlloc", &address, 0));
        address = &unasked;
        TRY("none", cudaGetDriverEntryPoint, (const char *, void **, unsigned long long),
            ("cuNothing", &address, 0));
        table_show("address %s", what_became_of(address));
        address = &unasked;
        TRY("empty", cudaGetDriverEntryPoint, (const char *, void **, unsigned long long),
            ("", &address, 0));
        table_show("address %s", what_became_of(address));
        TRY_SOFT("no name", cudaGetDriverEntryPoint, (const char *, void **, unsigned long long),
                 (NULL, &address, 0));
    } else {
        TRY("cuMemAlloc", cudaGetDriverEntryPoint,
            (const char *, void **, unsigned long long, int *),
            ("cuMemAlloc", &address, 0, &status));
        table_show("status %d", status);
        address = &unasked;
        TRY("none", cudaGetDriverEntryPoint, (const char *, void **, unsigned long long, int *),
            ("cuNothing", &address, 0, &status));
        table_show("address %s, status %d", what_became_of(address), status);
        TRY("no status", cudaGetDriverEntryPoint,
            (const char *, void **, unsigned long long, int *), ("cuMemAlloc", &address, 0, NULL));
        TRY("bad flags", cudaGetDriverEntryPoint,
            (const char *, void **, unsigned long long, int *),
            ("cuMemAlloc", &address, 77, &status));
        TRY_SOFT("no name", cudaGetDriverEntryPoint,
                 (const char *, void **, unsigned long long, int *), (NULL, &address, 0, &status));
        TRY_SOFT("no place", cudaGetDriverEntryPoint,
                 (const char *, void **, unsigned long long, int *),
                 ("cuMemAlloc", NULL, 0, &status));
    }
    TRY("plain", cudaGetDriverEntryPointByVersion,
        (const char *, void **, unsigned, unsigned long long, int *),
        ("cuMemAlloc", &address, 12000, 0, &status));
    address = &unasked;
    TRY("too old", cudaGetDriverEntryPointByVersion,
        (const char *, void **, unsigned, unsigned long long, int *),
        ("cuGreenCtxCreate", &address, 11000, 0, &status));
    table_show("address %s, status %d", what_became_of(address), status);
    address = &unasked;
    TRY("none", cudaGetDriverEntryPointByVersion,
        (const char *, void **, unsigned, unsigned long long, int *),
        ("cuNothing", &address, 12000, 0, &status));
    table_show("address %s, status %d", what_became_of(address), status);
    TRY_SOFT("no name", cudaGetDriverEntryPointByVersion,
             (const char *, void **, unsigned, unsigned long long, int *),
             (NULL, &address, 12000, 0, &status));
    TRY_SOFT("no place", cudaGetDriverEntryPointByVersion,
             (const char *, void **, unsigned, unsigned long long, int *),
             ("cuMemAlloc", NULL, 12000, 0, &status));
    TRY("bad flags", cudaGetDriverEntryPointByVersion,
        (const char *, void **, unsigned, unsigned long long, int *),
        ("cuMemAlloc", &address, 12000, 77, &status));
}

void
table_others(void)
{
    unsigned char unknown[16] = {1, 2, 3};
    const void *table = NULL;

    sharing();
    entry_points();
    TRY("plain", cudaProfilerStart, (void), ());
    TRY("plain", cudaProfilerStop, (void), ());
    TRY("unknown", cudaGetExportTable, (const void **, const void *), (&table, unknown));
    TRY("no place", cudaGetExportTable, (const void **, const void *), (NULL, unknown));
}
