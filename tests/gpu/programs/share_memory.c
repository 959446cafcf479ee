/* Rows of share_matrix: stream-ordered and managed memory, boxes, buffers that are used again. */
#include "share_matrix.h"

#define ROUNDS 40
#define WIDTH 64
#define HEIGHT 32
#define DEPTH 4

/* Memory is allocated and freed in the order of a stream. */
void
share_pools(void)
{
    struct share_gpu *g = share_begin();
    unsigned *host;
    CUstream s;

    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    OK(CU(cuMemAllocHost_v2)((void **)&host, BYTES));
    for (unsigned i = 0; i < ROUNDS; i++) {
        CUdeviceptr p = 0;
        CUdeviceptr q = 0;

        OK(CU(cuMemAllocAsync)(&p, BYTES, s));
        OK(CU(cuMemAllocAsync)(&q, BYTES << (i % 4), s));
        CHECK(p && q && p != q, "no memory");
        OK(CU(cuMemsetD32Async)(p, 0, WORDS, s));
        OK(CU(cuMemsetD32Async)(q, 1, WORDS, s));
        for (unsigned k = 0; k < 4; k++)
            OK(share_step(k ? g->step : g->late, p, WORDS, i + k, s));
        OK(CU(cuMemFreeAsync)(q, s));
        OK(CU(cuMemcpyDtoHAsync_v2)(host, p, BYTES, s));
        OK(CU(cuMemFreeAsync)(p, s));
        OK(CU(cuStreamSynchronize)(s));
        if (i % 10 == 0)
            share_check_host("stream-ordered", host, WORDS, i, 4);
    }
    OK(CU(cuMemFreeHost)(host));
}

void
share_managed(void)
{
    struct share_gpu *g = share_begin();
    CUdeviceptr p;
    CUstream s;

    OK(CU(cuMemAllocManaged)(&p, BYTES, CU_MEM_ATTACH_GLOBAL));
    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    memset((void *)(uintptr_t)p, 0, BYTES);
    for (unsigned i = 0; i < ROUNDS; i++)
        OK(share_step(g->step, p, WORDS, i, s));
    OK(CU(cuStreamSynchronize)(s));
    share_check_host("managed", (const unsigned *)(uintptr_t)p, WORDS, 0, ROUNDS);
    OK(CU(cuMemFree_v2)(p));
}

/* Copies rows and boxes to the device and back, after kernels. */
void
share_boxes(void)
{
    struct share_gpu *g = share_begin();
    static unsigned from[DEPTH][HEIGHT][WIDTH], to[DEPTH][HEIGHT][WIDTH];
    const size_t row = WIDTH * sizeof(unsigned);
    size_t pitch;
    CUdeviceptr box;
    CUdeviceptr p = share_memory(WORDS);
    CUstream s;
    CUDA_MEMCPY3D_v2 in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = from,
                           .srcPitch = row,
                           .srcHeight = HEIGHT,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstHeight = HEIGHT,
                           .WidthInBytes = row,
                           .Height = HEIGHT,
                           .Depth = DEPTH};
    CUDA_MEMCPY2D_v2 out = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                            .dstMemoryType = CU_MEMORYTYPE_HOST,
                            .dstHost = to,
                            .dstPitch = row,
                            .WidthInBytes = row,
                            .Height = (size_t)HEIGHT * DEPTH};

    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    OK(CU(cuMemAllocPitch_v2)(&box, &pitch, row, (size_t)HEIGHT * DEPTH, 4));
    in.dstDevice = out.srcDevice = box;
    in.dstPitch = out.srcPitch = pitch;
    for (unsigned k = 0; k < 10; k++) {
        for (unsigned i = 0; i < DEPTH * HEIGHT * WIDTH; i++)
            (&from[0][0][0])[i] = i * (k + 1);
        OK(share_step(g->late, p, WORDS, k, s));
        OK(CU(cuMemcpy3DAsync_v2)(&in, s));
        OK(CU(cuMemcpy2DAsync_v2)(&out, s));
        OK(CU(cuStreamSynchronize)(s));
        CHECK(memcmp(from, to, sizeof to) == 0, "boxes differ in round %u", k);
    }
    printf("boxes: %u\n", to[DEPTH - 1][HEIGHT - 1][WIDTH - 1]);
    share_check("kernels between", p, WORDS, 0, 10);
}

/* Pageable memory may be used again when the call has returned, whatever is still in flight; pinned
 * memory when the stream has passed the copy. */
void
share_reuse(void)
{
    struct share_gpu *g = share_begin();
    CUdeviceptr small = share_memory(16);
    CUdeviceptr large = share_memory(WORDS * 64);
    CUdeviceptr work = share_memory(WORDS);
    unsigned few[16];
    unsigned *many = malloc(BYTES * 64);
    unsigned *pinned;
    unsigned got[2];
    CUstream s;
    CUevent passed;

    CHECK(many, "no memory");
    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    OK(CU(cuEventCreate)(&passed, CU_EVENT_DISABLE_TIMING));
    OK(CU(cuMemAllocHost_v2)((void **)&pinned, BYTES));
    for (unsigned i = 0; i < ROUNDS; i++) {
        OK(share_step(g->late, work, WORDS, i, s));
        for (unsigned k = 0; k < 16; k++)
            few[k] = i * 1000 + k;
        for (unsigned k = 0; k < WORDS * 64; k++)
            many[k] = i + k;
        OK(CU(cuMemcpyHtoDAsync_v2)(small, few, sizeof few, s));
        memset(few, 0xff, sizeof few);
        OK(CU(cuMemcpyHtoDAsync_v2)(large, many, BYTES * 64, s));
        memset(many, 0xff, BYTES * 64);
        OK(CU(cuMemcpyDtoHAsync_v2)(&pinned[0], small + 60, 4, s));
        OK(CU(cuMemcpyDtoHAsync_v2)(&pinned[1], large + BYTES * 64 - 4, 4, s));
        OK(CU(cuEventRecord)(passed, s));
        OK(CU(cuEventSynchronize)(passed));
        CHECK_IS(pinned[0], i * 1000 + 15);
        CHECK_IS(pinned[1], i + WORDS * 64 - 1);
        /* From pinned memory to the device and back to pageable memory, where it is complete on
         * return. */
        pinned[2] = i ^ 0x5555;
        OK(CU(cuMemcpyHtoDAsync_v2)(small, &pinned[2], 4, s));
        OK(CU(cuMemcpyDtoHAsync_v2)(got, small, 4, s));
        OK(CU(cuStreamSynchronize)(s));
        pinned[2] = 0;
        CHECK_IS(got[0], i ^ 0x5555);
    }
    share_check("kernels between", work, WORDS, 0, ROUNDS);
    OK(CU(cuMemFreeHost)(pinned));
    free(many);
}
