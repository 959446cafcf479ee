/* Copies of two and three dimensions, arrays, mipmaps, texture and surface objects: which
 * descriptions are accepted, and which data arrive.
 */
#include "answers.h"

#define COPY2(words, ...)                             \
    do {                                              \
        CUDA_MEMCPY2D c = plain2(host, device);       \
                                                      \
        __VA_ARGS__;                                  \
        ASK_AS("copy 2D, " words, cuMemcpy2D_v2, &c); \
    } while (0)

#define COPY3(words, ...)                             \
    do {                                              \
        CUDA_MEMCPY3D c = plain3(host, device);       \
                                                      \
        __VA_ARGS__;                                  \
        ASK_AS("copy 3D, " words, cuMemcpy3D_v2, &c); \
    } while (0)

static char *host;
static CUdeviceptr device;

static void
start(void)
{
    ask_context();
    host = malloc(8 << 20);
    CHECK(host, "no memory");
    for (int i = 0; i < 8 << 20; i++)
        host[i] = (char)(i * 7 + (i >> 8));
    MUST(cuMemAlloc_v2, &device, 5 << 20);
    MUST(cuMemsetD8_v2, device, 0, 5 << 20);
}

static unsigned
sum_device(size_t size)
{
    unsigned char *back = malloc(size);
    unsigned s = 0;

    CHECK(back, "no memory");
    MUST(cuMemcpyDtoH_v2, back, device, size);
    for (size_t i = 0; i < size; i++)
        s = s * 31 + back[i];
    free(back);
    return s;
}

static CUDA_MEMCPY2D
plain2(void *from, CUdeviceptr to)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = from,
                           .srcPitch = 100,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = to,
                           .dstPitch = 200,
                           .WidthInBytes = 50,
                           .Height = 10};
}

static CUDA_MEMCPY3D
plain3(void *from, CUdeviceptr to)
{
    return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = from,
                           .srcPitch = 100,
                           .srcHeight = 10,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = to,
                           .dstPitch = 200,
                           .dstHeight = 10,
                           .WidthInBytes = 50,
                           .Height = 10,
                           .Depth = 2};
}

static void
flat(void)
{
    start();
    COPY2("plain", (void)0);
    SAY("sum", sum_device(4096));
    COPY2("source pitch under width", c.srcPitch = 40);
    COPY2("source pitch under width, one row", c.srcPitch = 40; c.Height = 1);
    COPY2("no pitch, one row", c.srcPitch = 0; c.dstPitch = 0; c.Height = 1);
    COPY2("no pitch, two rows", c.srcPitch = 0; c.dstPitch = 0; c.Height = 2);
    COPY2("no width", c.WidthInBytes = 0);
    COPY2("no height", c.Height = 0);
    COPY2("column beyond the pitch", c.srcXInBytes = 60);
    COPY2("offset", c.srcXInBytes = 3; c.srcY = 2; c.dstXInBytes = 5; c.dstY = 1);
    SAY("sum", sum_device(4096));
    COPY2("kind 0", c.srcMemoryType = 0);
    COPY2("kind 9", c.srcMemoryType = 9);
    COPY2("no array", c.srcMemoryType = CU_MEMORYTYPE_ARRAY);
    COPY2("device memory as host", c.srcHost = (void *)device);
    COPY2("host memory as device", c.dstDevice = (CUdeviceptr)host);
    COPY2("unified", c.srcMemoryType = CU_MEMORYTYPE_UNIFIED; c.srcDevice = (CUdeviceptr)host);
    COPY2("over the end", c.Height = 1 << 20);
    COPY2("null", c.srcHost = NULL);
    COPY2("null, no width", c.srcHost = NULL; c.WidthInBytes = 0);
    COPY2("to null", c.dstDevice = 0);
    ASK(cuMemcpy2D_v2, NULL);
}

static void
deep(void)
{
    start();
    COPY3("plain", (void)0);
    SAY("sum", sum_device(8192));
    COPY3("source height under height", c.srcHeight = 5);
    COPY3("source height under height, one slice", c.srcHeight = 5; c.Depth = 1);
    COPY3("no source height, one slice", c.srcHeight = 0; c.Depth = 1);
    COPY3("no depth", c.Depth = 0);
    COPY3("row beyond the height", c.srcY = 5);
    COPY3("offset", c.srcXInBytes = 1; c.srcZ = 1; c.dstXInBytes = 2; c.dstY = 3; c.dstZ = 1;
          c.dstHeight = 20);
    SAY("sum", sum_device(16384));
    ASK(cuMemcpy3D_v2, NULL);
}

static CUresult
make(CUarray *a, size_t w, size_t h, size_t d, unsigned channels, unsigned flags)
{
    CUDA_ARRAY3D_DESCRIPTOR desc = {w, h, d, CU_AD_FORMAT_FLOAT, channels, flags};

    return CU(cuArray3DCreate_v2)(a, &desc);
}

#define MAKE(w, h, d, n, f)                                    \
    printf("array %s: %s\n", #w "x" #h "x" #d ", " #n ", " #f, \
           ask_result(make(&other, w, h, d, n, f)))

static void
arrays(void)
{
    CUDA_ARRAY_DESCRIPTOR desc = {64, 32, CU_AD_FORMAT_FLOAT, 1};
    CUDA_ARRAY3D_DESCRIPTOR got = {0};
    CUarray array;
    CUarray other;

    start();
    ASK(cuArrayCreate_v2, &array, &desc);
    ASK(cuArrayCreate_v2, &other, NULL);
    ASK(cuArrayCreate_v2, NULL, &desc);
    desc.Format = 77;
    ASK_AS("format 77", cuArrayCreate_v2, &other, &desc);
    MAKE(64, 32, 0, 3, 0);
    MAKE(64, 32, 0, 0, 0);
    MAKE(0, 32, 0, 1, 0);
    MAKE(1 << 20, 32, 0, 1, 0);
    MAKE(1 << 20, 0, 0, 1, 0);
    MAKE(16, 16, 0, 1, 1);
    MAKE(16, 16, 6, 1, 4);
    MAKE(16, 8, 6, 1, 4);
    MAKE(16, 8, 6, 1, 0x1000);
    MAKE(16, 0, 4, 1, 0);
    MAKE(16, 0, 4, 1, 1);
    MAKE(16, 16, 4, 4, 0);
    ASK(cuArray3DGetDescriptor_v2, &got, array);
    printf("described: %zu %zu %zu %d %u %u\n", got.Width, got.Height, got.Depth, (int)got.Format,
           got.NumChannels, got.Flags);
    ASK(cuArray3DGetDescriptor_v2, &got, NULL);
    ASK(cuMemcpyHtoA_v2, array, 0, host, 256);
    ASK(cuMemcpyHtoA_v2, array, 0, host, 512);
    ASK(cuMemcpyHtoA_v2, array, 4, host, 256);
    ASK(cuMemcpyHtoA_v2, array, 0, host, 0);
    ASK(cuMemcpyHtoA_v2, NULL, 0, host, 16);
    COPY2("to the array", c.dstMemoryType = CU_MEMORYTYPE_ARRAY; c.dstArray = array);
    COPY2("over the array's end", c.dstMemoryType = CU_MEMORYTYPE_ARRAY; c.dstArray = array;
          c.Height = 40);
    COPY2("over the array's side", c.dstMemoryType = CU_MEMORYTYPE_ARRAY; c.dstArray = array;
          c.dstXInBytes = 240);
    COPY2("back", c.srcMemoryType = CU_MEMORYTYPE_ARRAY; c.srcArray = array; c.dstPitch = 256;
          c.WidthInBytes = 256; c.Height = 10);
    SAY("sum", sum_device(2560));
    ASK(cuMemcpyAtoD_v2, device, array, 4, 200);
    SAY("sum", sum_device(200));
    ASK(cuArrayDestroy, array);
    ASK(cuArrayDestroy, NULL);
}

static void
mipmaps(void)
{
    CUDA_ARRAY3D_DESCRIPTOR desc = {64, 32, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    CUmipmappedArray mip;
    CUarray level;
    CUarray again;

    start();
    ASK(cuMipmappedArrayCreate, &mip, &desc, 0);
    ASK(cuMipmappedArrayCreate, &mip, &desc, 100);
    for (unsigned i = 0; i < 9; i++) {
        CUDA_ARRAY3D_DESCRIPTOR got = {0};
        const CUresult r = CU(cuMipmappedArrayGetLevel)(&level, mip, i);

        if (r == CUDA_SUCCESS)
            MUST(cuArray3DGetDescriptor_v2, &got, level);
        printf("level %u: %s %zux%zu\n", i, ask_result(r), got.Width, got.Height);
    }
    MUST(cuMipmappedArrayGetLevel, &level, mip, 0);
    MUST(cuMipmappedArrayGetLevel, &again, mip, 0);
    SAY("the same handle", level == again);
    ASK(cuMipmappedArrayDestroy, mip);
}

static void
objects(void)
{
    CUDA_RESOURCE_DESC res = {.resType = CU_RESOURCE_TYPE_LINEAR};
    CUDA_TEXTURE_DESC tex = {.filterMode = CU_TR_FILTER_MODE_POINT};
    CUtexObject t;
    CUsurfObject s;
    CUarray array;

    start();
    res.res.linear.devPtr = device;
    res.res.linear.format = CU_AD_FORMAT_FLOAT;
    res.res.linear.numChannels = 1;
    res.res.linear.sizeInBytes = 4096;
    ASK(cuTexObjectCreate, &t, &res, &tex, NULL);
    ASK(cuTexObjectDestroy, t);
    ASK(cuTexObjectCreate, &t, NULL, &tex, NULL);
    ASK(cuTexObjectCreate, &t, &res, NULL, NULL);
    ASK(cuTexObjectCreate, NULL, &res, &tex, NULL);
    res.res.linear.devPtr = device + 4;
    ASK_AS("not aligned", cuTexObjectCreate, &t, &res, &tex, NULL);
    res.res.linear.devPtr = (CUdeviceptr)host;
    ASK_AS("host memory", cuTexObjectCreate, &t, &res, &tex, NULL);
    res.res.linear.devPtr = device;
    res.res.linear.numChannels = 3;
    ASK_AS("three channels", cuTexObjectCreate, &t, &res, &tex, NULL);
    res.res.linear.numChannels = 1;
    tex.addressMode[0] = 7;
    ASK_AS("address mode 7", cuTexObjectCreate, &t, &res, &tex, NULL);
    tex.addressMode[0] = 0;
    tex.filterMode = 9;
    ASK_AS("filter 9", cuTexObjectCreate, &t, &res, &tex, NULL);
    tex.filterMode = CU_TR_FILTER_MODE_POINT;
    tex.flags = 0x1000;
    ASK_AS("flags 0x1000", cuTexObjectCreate, &t, &res, &tex, NULL);
    CHECK(make(&array, 16, 16, 0, 1, CUDA_ARRAY3D_SURFACE_LDST) == CUDA_SUCCESS, "no array");
    res = (CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_ARRAY};
    res.res.array.hArray = array;
    ASK(cuSurfObjectCreate, &s, &res);
    ASK(cuSurfObjectDestroy, s);
    res.resType = CU_RESOURCE_TYPE_LINEAR;
    ASK_AS("surface of linear memory", cuSurfObjectCreate, &s, &res);
}

ASK_MAIN({"flat", flat}, {"deep", deep}, {"arrays", arrays}, {"mipmaps", mipmaps},
         {"objects", objects})
