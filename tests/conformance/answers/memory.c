/* Memory: plain, pitched, pinned, registered, managed; pointer attributes; linear copies and
 * memsets, wrong ones included, and what is in the memory after them.
 */
#include "answers.h"

#include <string.h>
#include <sys/mman.h>

static char *
host_memory(size_t size)
{
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(p != MAP_FAILED, "no memory");
    memset(p, 1, size);
    return p;
}

static unsigned
sum(const void *p, size_t size)
{
    unsigned s = 0;

    for (size_t i = 0; i < size; i++)
        s = s * 31 + ((const unsigned char *)p)[i];
    return s;
}

static void
plain(void)
{
    CUdeviceptr a;
    CUdeviceptr b;
    CUdeviceptr big;
    CUdeviceptr base = 0;
    size_t size = 0;
    size_t pitch = 0;
    size_t before;
    size_t after;
    size_t total;

    ask_context();
    ASK(cuMemAlloc_v2, &a, 0);
    ASK(cuMemAlloc_v2, NULL, 4);
    ASK(cuMemAlloc_v2, &a, (size_t)-1);
    ASK(cuMemAlloc_v2, &a, (size_t)1 << 40);
    ASK(cuMemAlloc_v2, &a, 100);
    ASK(cuMemAlloc_v2, &b, 100);
    SAY("aligned", a % 256 == 0 && b % 256 == 0);
    SAY("small neighbours", b - a);
    MUST(cuMemGetInfo_v2, &before, &total);
    ASK(cuMemAlloc_v2, &big, (size_t)64 << 20);
    MUST(cuMemGetInfo_v2, &after, &total);
    SAY("taken", before - after);
    ASK(cuMemFree_v2, big);
    MUST(cuMemGetInfo_v2, &after, &total);
    SAY("given back", before == after);
    ASK(cuMemFree_v2, a + 4);
    ASK(cuMemFree_v2, 0);
    ASK(cuMemFree_v2, 0x1234);
    ASK(cuMemFree_v2, b);
    ASK(cuMemFree_v2, b);
    ASK(cuMemAllocPitch_v2, &b, &pitch, 100, 10, 3);
    ASK(cuMemAllocPitch_v2, &b, &pitch, 0, 10, 4);
    ASK(cuMemAllocPitch_v2, &b, &pitch, 10, 0, 4);
    ASK(cuMemAllocPitch_v2, &b, &pitch, 100, 10, 4);
    SAY("pitch", pitch);
    ASK(cuMemAllocPitch_v2, &b, &pitch, 513, 10, 16);
    SAY("pitch", pitch);
    ASK(cuMemGetAddressRange_v2, &base, &size, b);
    printf("range: %lld %zu\n", (long long)(base - b), size);
    ASK(cuMemGetAddressRange_v2, &base, &size, a + 50);
    printf("range: %lld %zu\n", (long long)(base - a), size);
    ASK(cuMemGetAddressRange_v2, &base, &size, a + 120);
    ASK(cuMemGetAddressRange_v2, &base, &size, 0x1234);
    ASK(cuMemGetAddressRange_v2, NULL, NULL, a);
    ASK(cuMemGetInfo_v2, NULL, &size);
    ASK(cuMemGetInfo_v2, &size, NULL);
}

static void
pinned(void)
{
    CUdeviceptr d;
    CUdeviceptr a;
    void *h = NULL;
    void *other = NULL;
    unsigned flags;

    ask_context();
    MUST(cuMemAlloc_v2, &a, 100);
    ASK(cuMemHostAlloc, &h, 0, 0);
    ASK(cuMemHostAlloc, &h, 100, 8);
    ASK(cuMemHostAlloc, NULL, 100, 0);
    for (unsigned f = 0; f < 8; f++) {
        CUresult r = CU(cuMemHostAlloc)(&h, 100, f);

        flags = 99;
        printf("pinned with %u: %s\n", f, ask_result(r));
        r = CU(cuMemHostGetFlags)(&flags, h);
        printf("its flags: %s %u\n", ask_result(r), flags);
        if (f < 7)
            MUST(cuMemFreeHost, h);
    }
    ASK(cuMemHostGetDevicePointer_v2, &d, h, 0);
    SAY("the same address", d == (CUdeviceptr)h);
    ASK(cuMemHostGetDevicePointer_v2, &d, h, 1);
    ASK(cuMemHostGetDevicePointer_v2, NULL, h, 0);
    ASK(cuMemHostGetDevicePointer_v2, &d, &d, 0);
    ASK(cuMemHostGetDevicePointer_v2, &d, (void *)a, 0);
    ASK(cuMemAllocHost_v2, &other, 100);
    ASK(cuMemHostGetFlags, &flags, other);
    SAY("its flags", flags);
    ASK(cuMemFreeHost, NULL);
    ASK(cuMemFreeHost, &d);
    ASK(cuMemFreeHost, (char *)other + 4);
    ASK(cuMemFree_v2, (CUdeviceptr)other);
    ASK(cuMemFreeHost, (void *)a);
    ASK(cuMemFreeHost, other);
    ASK(cuMemFreeHost, other);
}

static void
registered(void)
{
    char *page;
    CUdeviceptr d;
    CUdeviceptr a;
    void *h;
    unsigned flags = 99;

    ask_context();
    page = host_memory(8 << 20);
    MUST(cuMemAlloc_v2, &a, 100);
    MUST(cuMemHostAlloc, &h, 100, 0);
    ASK(cuMemHostRegister_v2, page, 0, 0);
    ASK(cuMemHostRegister_v2, NULL, 100, 0);
    ASK(cuMemHostRegister_v2, page, 100, 16);
    ASK(cuMemHostRegister_v2, h, 100, 0);
    ASK(cuMemHostRegister_v2, (void *)a, 100, 0);
    ASK(cuMemHostRegister_v2, (void *)0x10000, 4096, 0);
    ASK(cuMemHostRegister_v2, page, 8192, 0);
    ASK(cuMemHostRegister_v2, page, 8192, 0);
    ASK(cuMemHostRegister_v2, page + 4096, 8192, 0);
    ASK(cuMemHostGetFlags, &flags, page);
    SAY("its flags", flags);
    ASK(cuMemHostGetDevicePointer_v2, &d, page + 4, 0);
    SAY("the same address", d == (CUdeviceptr)(page + 4));
    ASK(cuMemHostGetDevicePointer_v2, &d, page + (4 << 20), 0);
    ASK(cuMemHostUnregister, page + 4096);
    ASK(cuMemHostUnregister, page + (4 << 20));
    ASK(cuMemHostUnregister, NULL);
    ASK(cuMemHostUnregister, h);
    ASK(cuMemHostUnregister, page);
    ASK(cuMemHostUnregister, page);
}

static void
managed(void)
{
    CUdeviceptr m;
    CUdeviceptr a;
    CUdeviceptr d;
    int v[4] = {77, 77, 77, 77};

    ask_context();
    MUST(cuMemAlloc_v2, &a, 100);
    ASK(cuMemAllocManaged, &m, 0, 1);
    ASK(cuMemAllocManaged, &m, 100, 0);
    ASK(cuMemAllocManaged, &m, 100, 3);
    ASK(cuMemAllocManaged, &m, 100, 4);
    ASK(cuMemAllocManaged, NULL, 100, 1);
    ASK(cuMemAllocManaged, &m, 100, 1);
    memset((void *)m, 5, 100);
    ASK(cuMemsetD8_v2, m, 6, 50);
    ASK(cuCtxSynchronize);
    printf("bytes: %d %d\n", ((char *)m)[49], ((char *)m)[50]);
    ASK(cuMemHostGetDevicePointer_v2, &d, (void *)m, 0);
    ASK(cuMemAdvise, a, 100, 1, 0);
    ASK(cuMemAdvise, m, 100, 1, 0);
    ASK(cuMemAdvise, m, 100, 9, 0);
    ASK(cuMemAdvise, m, 100, 3, 77);
    ASK(cuMemAdvise, m, 100, 3, -1);
    ASK(cuMemAdvise, m, 100 << 20, 1, 0);
    ASK(cuMemAdvise, m, 0, 1, 0);
    ASK(cuMemPrefetchAsync, m, 100, 0, NULL);
    ASK(cuMemPrefetchAsync, m, 100 << 20, 0, NULL);
    ASK(cuMemPrefetchAsync, a, 100, 0, NULL);
    ASK(cuMemPrefetchAsync, m, 0, 0, NULL);
    ASK(cuMemPrefetchAsync, m, 100, 7, NULL);
    ASK(cuMemRangeGetAttribute, v, 4, 1, m, 100);
    SAY("read mostly", v[0]);
    ASK(cuMemRangeGetAttribute, v, 4, 2, m, 100);
    SAY("preferred location", v[0]);
    ASK(cuMemRangeGetAttribute, v, 16, 3, m, 100);
    printf("accessed by: %d %d %d %d\n", v[0], v[1], v[2], v[3]);
    ASK(cuMemRangeGetAttribute, v, 8, 1, m, 100);
    ASK(cuMemRangeGetAttribute, v, 4, 1, a, 100);
    ASK(cuMemRangeGetAttribute, v, 4, 1, m, 0);
    ASK(cuMemRangeGetAttribute, v, 4, 99, m, 100);
    ASK(cuMemFree_v2, m);
    ASK(cuMemFree_v2, m);
}

/* The values of attributes that do not differ from run to run; for the others, only the result. */
static void
say_attributes(const char *what, CUdeviceptr p, CUcontext context)
{
    static const int small[] = {2, 6, 8, 9, 10, 13, 15, 16, 21};
    unsigned long long room[2]; /* the tokens of attribute 5 take both */
    unsigned long long v;
    CUresult r;

    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++) {
        memset(room, 0, sizeof room);
        r = CU(cuPointerGetAttribute)(room, (CUpointer_attribute)small[i], p);
        v = room[0];
        printf("%s, attribute %d: %s %llu\n", what, small[i], ask_result(r), v);
    }
    for (int i = 1; i <= 12; i++) {
        memset(room, 0, sizeof room);
        r = CU(cuPointerGetAttribute)(room, (CUpointer_attribute)i, p);
        v = room[0];
        if (i == 1)
            printf("%s, context: %s %d\n", what, ask_result(r), (CUcontext)v == context);
        if (i == 3 || i == 4)
            printf("%s, pointer %d: %s %d\n", what, i, ask_result(r), v == p);
        if (i == 11)
            printf("%s, start: %s %lld\n", what, ask_result(r), v ? (long long)(p - v) : -1);
        if (i == 12)
            printf("%s, size: %s %llu\n", what, ask_result(r), v);
    }
}

static void
pointers(void)
{
    CUcontext context = ask_context();
    static CUpointer_attribute wanted[] = {2, 8, 9, 12};
    unsigned long long v[4] = {0};
    void *into[] = {&v[0], &v[1], &v[2], &v[3]};
    CUdeviceptr a;
    CUdeviceptr m;
    void *h;
    char *page = host_memory(1 << 20);
    int one = 1;

    MUST(cuMemAlloc_v2, &a, 100);
    MUST(cuMemHostAlloc, &h, 100, 0);
    MUST(cuMemAllocManaged, &m, 100, 1);
    MUST(cuMemHostRegister_v2, page, 8192, 0);
    say_attributes("device", a + 8, context);
    MUST(cuMemsetD8_v2, a, 0, 100);
    MUST(cuPointerGetAttribute, &one, 6, a);
    SAY("synchronous after a memset", one);
    MUST(cuMemcpyHtoD_v2, a, page, 100);
    MUST(cuPointerGetAttribute, &one, 6, a);
    SAY("synchronous after a copy", one);
    one = 1;
    say_attributes("pinned", (CUdeviceptr)h + 8, context);
    say_attributes("managed", m + 8, context);
    say_attributes("registered", (CUdeviceptr)page + 8, context);
    say_attributes("unknown", (CUdeviceptr)page + 65536, context);
    say_attributes("null", 0, context);
    ASK(cuPointerGetAttributes, 4, wanted, into, a);
    printf("values: %llu %llu %llu %llu\n", v[0], v[1], v[2], v[3]);
    ASK(cuPointerGetAttributes, 4, wanted, into, (CUdeviceptr)page + 65536);
    printf("values: %llu %llu %llu %llu\n", v[0], v[1], v[2], v[3]);
    ASK(cuPointerGetAttributes, 0, wanted, into, a);
    ASK(cuPointerGetAttribute, NULL, 2, a);
    ASK(cuPointerGetAttribute, v, 99, a);
    ASK(cuPointerSetAttribute, &one, 6, a);
    ASK(cuPointerSetAttribute, &one, 2, a);
    ASK(cuPointerSetAttribute, &one, 6, (CUdeviceptr)page + 65536);
    ASK(cuMemFree_v2, a);
    ASK(cuPointerGetAttribute, v, 2, a);
}

static void
copies(void)
{
    char *h;
    void *pin;
    CUdeviceptr a;
    CUdeviceptr big;
    char back[128] = {0};

    ask_context();
    h = host_memory(8 << 20);
    MUST(cuMemAlloc_v2, &a, 100);
    MUST(cuMemAlloc_v2, &big, 5 << 20);
    MUST(cuMemHostAlloc, &pin, 100, 0);
    ASK(cuMemcpyHtoD_v2, a, h, 100);
    ASK(cuMemcpyHtoD_v2, a, h, 101);
    ASK(cuMemcpyHtoD_v2, a, h, 513);
    ASK(cuMemcpyHtoD_v2, a, h, 3 << 20);
    ASK(cuMemcpyHtoD_v2, a, (void *)big, 4);
    ASK(cuMemcpyHtoD_v2, (CUdeviceptr)h, h + 100, 4);
    ASK(cuMemcpyDtoH_v2, h, (CUdeviceptr)h + 100, 4);
    ASK(cuMemcpyDtoH_v2, (void *)big, a, 4);
    ASK(cuMemcpyDtoD_v2, (CUdeviceptr)h, (CUdeviceptr)h + 100, 4);
    ASK(cuMemcpyHtoD_v2, 0x1234, NULL, 0);
    ASK(cuMemcpyHtoD_v2, a, NULL, 4);
    ASK(cuMemcpyHtoD_v2, 0, h, 4);
    ASK(cuMemcpy, (CUdeviceptr)h, (CUdeviceptr)h + 100, 4);
    ASK(cuMemcpy, 0, 0, 4);
    ASK(cuMemcpyHtoD_v2, (CUdeviceptr)pin, h, 4);
    ASK(cuMemcpyDtoH_v2, h, (CUdeviceptr)pin, 4);
    ASK(cuMemcpy, (CUdeviceptr)pin, (CUdeviceptr)h, 101);
    ASK(cuMemcpyDtoH_v2, pin, big, 3 << 20);
    ASK(cuMemcpyPeer, big, NULL, big + 4096, NULL, 16);
    for (int i = 0; i < 100; i++)
        h[i] = (char)(i * 7);
    ASK(cuMemcpyHtoD_v2, a, h, 100);
    ASK(cuMemcpyDtoD_v2, big + 1, a + 3, 90);
    ASK(cuMemcpyDtoH_v2, back, big + 1, 90);
    SAY("sum", sum(back, sizeof back));
    ASK(cuMemcpyDtoHAsync_v2, back, a, 100, NULL);
    ASK(cuStreamSynchronize, NULL);
    SAY("sum", sum(back, sizeof back));
}

static void
memsets(void)
{
    CUdeviceptr a;
    CUdeviceptr big;
    void *pin;
    char *h = host_memory(1 << 20);
    unsigned char back[256];

    ask_context();
    MUST(cuMemAlloc_v2, &a, 100);
    MUST(cuMemAlloc_v2, &big, 5 << 20);
    MUST(cuMemHostAlloc, &pin, 100, 0);
    MUST(cuMemsetD8_v2, big, 0, 5 << 20);
    ASK(cuMemsetD32_v2, a + 2, 1, 1);
    ASK(cuMemsetD16_v2, a + 1, 1, 1);
    ASK(cuMemsetD8_v2, a, 1, 0);
    ASK(cuMemsetD8_v2, 0x1234, 1, 0);
    ASK(cuMemsetD8_v2, a, 1, 101);
    ASK(cuMemsetD8_v2, a, 1, 4 << 20);
    ASK(cuMemsetD8_v2, (CUdeviceptr)h, 1, 100);
    ASK(cuMemsetD8_v2, (CUdeviceptr)pin, 1, 100);
    ASK(cuMemsetD8_v2, 0, 1, 100);
    ASK(cuMemsetD2D8_v2, big, 10, 1, 20, 2);
    ASK(cuMemsetD2D8_v2, big, 10, 2, 20, 1);
    ASK(cuMemsetD2D8_v2, big, 0, 3, 20, 1);
    ASK(cuMemsetD2D8_v2, big, 10, 1, 0, 2);
    ASK(cuMemsetD2D8_v2, big, 10, 1, 5, 0);
    ASK(cuMemsetD2D32_v2, big, 6, 1, 1, 2);
    ASK(cuMemsetD2D32_v2, big, 6, 1, 1, 1);
    ASK(cuMemsetD2D8_v2, big, 1 << 20, 1, 20, 6);
    ASK(cuMemsetD2D8_v2, big, 1 << 20, 1, 20, 5);
    ASK(cuMemsetD8_v2, big + 1, 0xab, 30);
    ASK(cuMemsetD16_v2, big + 40, 0xabcd, 7);
    ASK(cuMemsetD32_v2, big + 60, 0x12345678, 5);
    ASK(cuMemsetD2D16_v2, big + 100, 20, 0x1234, 3, 4);
    ASK(cuMemsetD2D32Async, big + 200, 16, 0x89abcdef, 2, 3, NULL);
    ASK(cuMemcpyDtoH_v2, back, big, 256);
    SAY("sum", sum(back, 256));
    printf("bytes: %x %x %x %x %x\n", back[1], back[41], back[60], back[120], back[216]);
}

ASK_MAIN({"plain", plain}, {"pinned", pinned}, {"registered", registered}, {"managed", managed},
         {"pointers", pointers}, {"copies", copies}, {"memsets", memsets})
