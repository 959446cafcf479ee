/* Memory: of the device, managed, of the host, and what a pointer is. */
#include "table.h"

#include <stdlib.h>
#include <string.h>

static void
allocations(void)
{
    void *a = (void *)77, *b = NULL;

    TRY("1 KiB", cudaMalloc, (void **, size_t), (&b, 1024));
    TRY("1 KiB", cudaFree, (void *), (b));
    TRY("twice", cudaFree, (void *), (b));
    TRY("zero bytes", cudaMalloc, (void **, size_t), (&a, 0));
    table_show("pointer %p", a);
    TRY("no place", cudaMalloc, (void **, size_t), (NULL, 4));
    TRY("no place, zero bytes", cudaMalloc, (void **, size_t), (NULL, 0));
    a = (void *)77;
    TRY("too much", cudaMalloc, (void **, size_t), (&a, (size_t)1 << 60));
    table_show("untouched %d, NULL %d", a == (void *)77, a == NULL);
    TRY("everything", cudaMalloc, (void **, size_t), (&a, (size_t)-1));
    TRY("NULL", cudaFree, (void *), (NULL));
    TRY("not memory", cudaFree, (void *), ((void *)0x1234));
    TRY("memory of the host", cudaFree, (void *), (&a));
    QUIET(cudaMalloc, (void **, size_t), (&b, 1024));
    TRY("inside", cudaFree, (void *), ((char *)b + 256));
    QUIET(cudaFree, (void *), (b));
}

static void
pitched_allocations(void)
{
    struct table_pitched three;
    size_t pitch = 77;
    void *a = (void *)77;

    TRY("plain", cudaMallocPitch, (void **, size_t *, size_t, size_t), (&a, &pitch, 100, 8));
    table_show("pitch %zu", pitch);
    QUIET(cudaFree, (void *), (a));
    TRY("no place", cudaMallocPitch, (void **, size_t *, size_t, size_t), (NULL, &pitch, 100, 8));
    TRY("no pitch", cudaMallocPitch, (void **, size_t *, size_t, size_t), (&a, NULL, 100, 8));
    a = (void *)77;
    TRY("no width", cudaMallocPitch, (void **, size_t *, size_t, size_t), (&a, &pitch, 0, 8));
    table_show("pointer %p, pitch %zu", a, pitch);
    a = (void *)77, pitch = 77;
    TRY("no height", cudaMallocPitch, (void **, size_t *, size_t, size_t), (&a, &pitch, 100, 0));
    table_show("pointer %p, pitch %zu", a, pitch);
    TRY("too wide", cudaMallocPitch, (void **, size_t *, size_t, size_t),
        (&a, &pitch, (size_t)1 << 60, 2));
    TRY("too high", cudaMallocPitch, (void **, size_t *, size_t, size_t),
        (&a, &pitch, 100, (size_t)1 << 60));
    TRY("plain", cudaMalloc3D, (struct table_pitched *, struct table_extent),
        (&three, (struct table_extent){100, 8, 4}));
    table_show("pitch %zu, x %zu, y %zu", three.pitch, three.xsize, three.ysize);
    QUIET(cudaFree, (void *), (three.ptr));
    TRY("no width", cudaMalloc3D, (struct table_pitched *, struct table_extent),
        (&three, (struct table_extent){0, 8, 4}));
    table_show("pointer %p, pitch %zu, x %zu, y %zu", three.ptr, three.pitch, three.xsize,
               three.ysize);
    TRY("no depth", cudaMalloc3D, (struct table_pitched *, struct table_extent),
        (&three, (struct table_extent){100, 8, 0}));
    table_show("pointer %p, pitch %zu, x %zu, y %zu", three.ptr, three.pitch, three.xsize,
               three.ysize);
    TRY("no place", cudaMalloc3D, (struct table_pitched *, struct table_extent),
        (NULL, (struct table_extent){100, 8, 4}));
    TRY("too deep", cudaMalloc3D, (struct table_pitched *, struct table_extent),
        (&three, (struct table_extent){100, 8, (size_t)1 << 60}));
}

static void
setting_bytes(void)
{
    char bytes[16] = "";
    void *a = NULL, *stream = NULL;

    QUIET(cudaMalloc, (void **, size_t), (&a, 1024));
    QUIET(cudaStreamCreate, (void **), (&stream));
    TRY("plain", cudaMemset, (void *, int, size_t), (a, 0x1ab, 1024));
    QUIET(cudaMemcpy, (void *, const void *, size_t, int), (bytes, a, 16, TO_HOST));
    table_show("0x%x", (unsigned char)bytes[3]);
    TRY("nothing", cudaMemset, (void *, int, size_t), (a, 1, 0));
    TRY("nothing at NULL", cudaMemset, (void *, int, size_t), (NULL, 1, 0));
    TRY("at NULL", cudaMemset, (void *, int, size_t), (NULL, 1, 4));
    TRY("too much", cudaMemset, (void *, int, size_t), (a, 1, (size_t)1 << 40));
    TRY("not memory", cudaMemset, (void *, int, size_t), ((void *)0x1234, 1, 4));
    TRY("plain", cudaMemsetAsync, (void *, int, size_t, void *), (a, 1, 1024, stream));
    TRY("default", cudaMemsetAsync, (void *, int, size_t, void *), (a, 1, 1024, NULL));
    TRY("nothing", cudaMemsetAsync, (void *, int, size_t, void *), (a, 1, 0, stream));
    TRY("at NULL", cudaMemsetAsync, (void *, int, size_t, void *), (NULL, 1, 4, stream));
    TRY("plain", cudaMemset_ptds, (void *, int, size_t), (a, 1, 1024));
    TRY("plain", cudaMemsetAsync_ptsz, (void *, int, size_t, void *), (a, 1, 1024, NULL));
    QUIET(cudaDeviceSynchronize, (void), ());
    QUIET(cudaFree, (void *), (a));
}

static void
setting_rows(void)
{
    struct table_pitched three = {NULL, 0, 0, 0};
    void *stream = NULL;

    QUIET(cudaStreamCreate, (void **), (&stream));
    QUIET(cudaMalloc3D, (struct table_pitched *, struct table_extent),
          (&three, (struct table_extent){100, 8, 4}));
    TRY("plain", cudaMemset2D, (void *, size_t, int, size_t, size_t),
        (three.ptr, three.pitch, 1, 100, 8));
    TRY("no width", cudaMemset2D, (void *, size_t, int, size_t, size_t),
        (three.ptr, three.pitch, 1, 0, 8));
    TRY("no height", cudaMemset2D, (void *, size_t, int, size_t, size_t),
        (three.ptr, three.pitch, 1, 100, 0));
    TRY("pitch too small", cudaMemset2D, (void *, size_t, int, size_t, size_t),
        (three.ptr, 50, 1, 100, 8));
    TRY("pitch too small, one row", cudaMemset2D, (void *, size_t, int, size_t, size_t),
        (three.ptr, 50, 1, 100, 1));
    TRY("at NULL", cudaMemset2D, (void *, size_t, int, size_t, size_t),
        (NULL, three.pitch, 1, 100, 8));
    TRY("plain", cudaMemset2DAsync, (void *, size_t, int, size_t, size_t, void *),
        (three.ptr, three.pitch, 1, 100, 8, stream));
    TRY("plain", cudaMemset3D, (struct table_pitched, int, struct table_extent),
        (three, 1, (struct table_extent){100, 8, 4}));
    TRY("no width", cudaMemset3D, (struct table_pitched, int, struct table_extent),
        (three, 1, (struct table_extent){0, 8, 4}));
    TRY("half of the rows", cudaMemset3D, (struct table_pitched, int, struct table_extent),
        (three, 1, (struct table_extent){100, 4, 4}));
    TRY("wider than the rows", cudaMemset3D, (struct table_pitched, int, struct table_extent),
        (three, 1, (struct table_extent){1000, 8, 1}));
    TRY("wider than x", cudaMemset3D, (struct table_pitched, int, struct table_extent),
        (three, 1, (struct table_extent){200, 8, 1}));
    TRY("higher than y", cudaMemset3D, (struct table_pitched, int, struct table_extent),
        (three, 1, (struct table_extent){100, 9, 2}));
    TRY("higher than y, one layer", cudaMemset3D, (struct table_pitched, int, struct table_extent),
        (three, 1, (struct table_extent){100, 9, 1}));
    TRY("plain", cudaMemset3DAsync, (struct table_pitched, int, struct table_extent, void *),
        (three, 1, (struct table_extent){100, 8, 4}, stream));
    three.ptr = NULL;
    TRY("at NULL", cudaMemset3D, (struct table_pitched, int, struct table_extent),
        (three, 1, (struct table_extent){100, 8, 4}));
}

static void
advice_by_device(void *managed, void *plain, void *stream)
{
    TRY("plain", cudaMemPrefetchAsync, (const void *, size_t, int, void *),
        (managed, 65536, 0, stream));
    TRY("to the host", cudaMemPrefetchAsync, (const void *, size_t, int, void *),
        (managed, 65536, -1, stream));
    TRY("device 7", cudaMemPrefetchAsync, (const void *, size_t, int, void *),
        (managed, 65536, 7, stream));
    TRY("not managed", cudaMemPrefetchAsync, (const void *, size_t, int, void *),
        (plain, 1024, 0, stream));
    TRY("nothing", cudaMemPrefetchAsync, (const void *, size_t, int, void *),
        (managed, 0, 0, stream));
    TRY("read mostly", cudaMemAdvise, (const void *, size_t, int, int), (managed, 65536, 1, 0));
    TRY("bad advice", cudaMemAdvise, (const void *, size_t, int, int), (managed, 65536, 77, 0));
    TRY("not managed", cudaMemAdvise, (const void *, size_t, int, int), (plain, 1024, 1, 0));
}

static void
advice_by_place(void *managed, void *plain, void *stream)
{
    const struct table_location first = {1, 0}, seventh = {1, 7};

    TRY("plain", cudaMemPrefetchAsync,
        (const void *, size_t, struct table_location, unsigned, void *),
        (managed, 65536, first, 0, stream));
    TRY("device 7", cudaMemPrefetchAsync,
        (const void *, size_t, struct table_location, unsigned, void *),
        (managed, 65536, seventh, 0, stream));
    TRY("not managed", cudaMemPrefetchAsync,
        (const void *, size_t, struct table_location, unsigned, void *),
        (plain, 1024, first, 0, stream));
    TRY("bad flags", cudaMemPrefetchAsync,
        (const void *, size_t, struct table_location, unsigned, void *),
        (managed, 65536, first, 3, stream));
    TRY("read mostly", cudaMemAdvise, (const void *, size_t, int, struct table_location),
        (managed, 65536, 1, first));
    TRY("bad advice", cudaMemAdvise, (const void *, size_t, int, struct table_location),
        (managed, 65536, 77, first));
    TRY("not managed", cudaMemAdvise, (const void *, size_t, int, struct table_location),
        (plain, 1024, 1, first));
}

static void
managed_memory(void)
{
    void *managed = NULL, *plain = NULL, *stream = NULL, *other = (void *)77;
    int value[2] = {77, 77}, attribute = 1;
    void *values[] = {&value[1]};
    size_t size = 4;

    TRY("global", cudaMallocManaged, (void **, size_t, unsigned), (&managed, 65536, 1));
    TRY("host", cudaMallocManaged, (void **, size_t, unsigned), (&other, 65536, 2));
    other = (void *)77;
    TRY("zero bytes", cudaMallocManaged, (void **, size_t, unsigned), (&other, 0, 1));
    table_show("pointer %p", other);
    TRY("bad flags", cudaMallocManaged, (void **, size_t, unsigned), (&other, 65536, 99));
    TRY("no flags", cudaMallocManaged, (void **, size_t, unsigned), (&other, 65536, 0));
    TRY("no place", cudaMallocManaged, (void **, size_t, unsigned), (NULL, 65536, 1));
    QUIET(cudaMalloc, (void **, size_t), (&plain, 1024));
    QUIET(cudaStreamCreate, (void **), (&stream));
    if (table_edition() < 13)
        advice_by_device(managed, plain, stream);
    else
        advice_by_place(managed, plain, stream);
    TRY("read mostly", cudaMemRangeGetAttribute, (void *, size_t, int, const void *, size_t),
        (value, 4, 1, managed, 65536));
    table_show("%d", value[0]);
    TRY("bad attribute", cudaMemRangeGetAttribute, (void *, size_t, int, const void *, size_t),
        (value, 4, 77, managed, 65536));
    TRY("bad size", cudaMemRangeGetAttribute, (void *, size_t, int, const void *, size_t),
        (value, 3, 1, managed, 65536));
    TRY("no place", cudaMemRangeGetAttribute, (void *, size_t, int, const void *, size_t),
        (NULL, 4, 1, managed, 65536));
    TRY("one", cudaMemRangeGetAttributes, (void **, size_t *, int *, size_t, const void *, size_t),
        (values, &size, &attribute, 1, managed, 65536));
    table_show("%d", value[1]);
    TRY("no places", cudaMemRangeGetAttributes,
        (void **, size_t *, int *, size_t, const void *, size_t),
        (NULL, &size, &attribute, 1, managed, 65536));
    TRY("managed", cudaFree, (void *), (managed));
}

static void
what_pointers_are(void)
{
    struct table_pointer what = {77, 77, NULL, NULL, {0}};
    void *plain = NULL, *managed = NULL, *host = NULL;
    char here[16];

    QUIET(cudaMalloc, (void **, size_t), (&plain, 1024));
    QUIET(cudaMallocManaged, (void **, size_t, unsigned), (&managed, 1024, 1));
    QUIET(cudaMallocHost, (void **, size_t), (&host, 1024));
    TRY("device", cudaPointerGetAttributes, (struct table_pointer *, const void *), (&what, plain));
    table_show("type %d, device %d, device pointer %d, host pointer %d", what.type, what.device,
               what.device_pointer == plain, what.host_pointer != NULL);
    TRY("inside", cudaPointerGetAttributes, (struct table_pointer *, const void *),
        (&what, (char *)plain + 256));
    table_show("same pointer %d", what.device_pointer == (char *)plain + 256);
    TRY("managed", cudaPointerGetAttributes, (struct table_pointer *, const void *),
        (&what, managed));
    table_show("type %d, device %d, device pointer %d, host pointer %d", what.type, what.device,
               what.device_pointer == managed, what.host_pointer == managed);
    TRY("pinned", cudaPointerGetAttributes, (struct table_pointer *, const void *), (&what, host));
    table_show("type %d, device %d, device pointer %d, host pointer %d", what.type, what.device,
               what.device_pointer == host, what.host_pointer == host);
    TRY("plain host", cudaPointerGetAttributes, (struct table_pointer *, const void *),
        (&what, here));
    table_show("type %d, device %d, device pointer %p, host pointer %d", what.type, what.device,
               what.device_pointer, what.host_pointer == here);
    TRY("NULL", cudaPointerGetAttributes, (struct table_pointer *, const void *), (&what, NULL));
    table_show("type %d, device %d, device pointer %p", what.type, what.device,
               what.device_pointer);
    TRY("no place", cudaPointerGetAttributes, (struct table_pointer *, const void *),
        (NULL, plain));
    QUIET(cudaSetDevice, (int), (1));
    TRY("of the other device", cudaPointerGetAttributes, (struct table_pointer *, const void *),
        (&what, plain));
    table_show("type %d, device %d", what.type, what.device);
    TRY("of the other device", cudaFree, (void *), (plain));
}

void
table_memory(void)
{
    size_t bytes = 0, all = 0;

    allocations();
    pitched_allocations();
    setting_bytes();
    setting_rows();
    TRY("both", cudaMemGetInfo, (size_t *, size_t *), (&bytes, &all));
    table_show("free is less %d", bytes <= all && bytes > 0);
    TRY("no place", cudaMemGetInfo, (size_t *, size_t *), (NULL, NULL));
    managed_memory();
    what_pointers_are();
}

static void
registering_memory(void)
{
    void *memory = aligned_alloc(4096, 8192), *device = NULL;

    TRY("plain", cudaHostRegister, (void *, size_t, unsigned), (memory, 8192, 0));
    TRY("again", cudaHostRegister, (void *, size_t, unsigned), (memory, 8192, 0));
    TRY("registered", cudaHostGetDevicePointer, (void **, void *, unsigned), (&device, memory, 0));
    TRY("plain", cudaHostUnregister, (void *), (memory));
    TRY("again", cudaHostUnregister, (void *), (memory));
    TRY("NULL", cudaHostUnregister, (void *), (NULL));
    TRY("NULL", cudaHostRegister, (void *, size_t, unsigned), (NULL, 8192, 0));
    TRY("nothing", cudaHostRegister, (void *, size_t, unsigned), (memory, 0, 0));
    TRY("bad flags", cudaHostRegister, (void *, size_t, unsigned), (memory, 8192, 0xff));
    TRY("mapped, portable", cudaHostRegister, (void *, size_t, unsigned), (memory, 8192, 3));
    TRY("at last", cudaHostUnregister, (void *), (memory));
    free(memory);
}

void
table_host(void)
{
    void *a = NULL, *b = (void *)77, *device = NULL;
    unsigned flags = 77;

    TRY("4 KiB", cudaMallocHost, (void **, size_t), (&a, 4096));
    TRY("zero bytes", cudaMallocHost, (void **, size_t), (&b, 0));
    table_show("pointer %p", b);
    TRY("no place", cudaMallocHost, (void **, size_t), (NULL, 4096));
    TRY("too much", cudaMallocHost, (void **, size_t), (&b, (size_t)1 << 60));
    TRY("of the host", cudaFree, (void *), (a));
    TRY("4 KiB", cudaFreeHost, (void *), (a));
    TRY("twice", cudaFreeHost, (void *), (a));
    TRY("NULL", cudaFreeHost, (void *), (NULL));
    TRY("not memory", cudaFreeHost, (void *), ((void *)0x100));
    TRY("of the stack", cudaFreeHost, (void *), (&flags));
    TRY("mapped", cudaHostAlloc, (void **, size_t, unsigned), (&a, 4096, 2));
    TRY("mapped", cudaHostGetFlags, (unsigned *, void *), (&flags, a));
    table_show("%u", flags);
    QUIET(cudaFreeHost, (void *), (a));
    TRY("write-combined, portable", cudaHostAlloc, (void **, size_t, unsigned), (&a, 4096, 5));
    TRY("write-combined", cudaHostGetFlags, (unsigned *, void *), (&flags, a));
    table_show("%u", flags);
    TRY("plain", cudaHostGetDevicePointer, (void **, void *, unsigned), (&device, a, 0));
    table_show("same %d", device == a);
    TRY("inside", cudaHostGetDevicePointer, (void **, void *, unsigned),
        (&device, (char *)a + 64, 0));
    table_show("same %d", device == (char *)a + 64);
    TRY("bad flags", cudaHostGetDevicePointer, (void **, void *, unsigned), (&device, a, 1));
    TRY("no place", cudaHostGetDevicePointer, (void **, void *, unsigned), (NULL, a, 0));
    TRY("NULL", cudaHostGetDevicePointer, (void **, void *, unsigned), (&device, NULL, 0));
    TRY("of the stack", cudaHostGetDevicePointer, (void **, void *, unsigned),
        (&device, &flags, 0));
    TRY("of the stack", cudaHostGetFlags, (unsigned *, void *), (&flags, &flags));
    TRY("no place", cudaHostGetFlags, (unsigned *, void *), (NULL, a));
    TRY("NULL", cudaHostGetFlags, (unsigned *, void *), (&flags, NULL));
    QUIET(cudaFreeHost, (void *), (a));
    TRY("bad flags", cudaHostAlloc, (void **, size_t, unsigned), (&a, 4096, 0xff));
    TRY("no place", cudaHostAlloc, (void **, size_t, unsigned), (NULL, 4096, 0));
    b = (void *)77;
    TRY("zero bytes", cudaHostAlloc, (void **, size_t, unsigned), (&b, 0, 0));
    table_show("pointer %p", b);
    TRY("zero bytes, bad flags", cudaHostAlloc, (void **, size_t, unsigned), (&b, 0, 0xff));
    registering_memory();
}
