/* Copies to and from arrays: in rows, across rows, in boxes, from array to array. See copies.h. */
#include "copies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cudaError_t cudaMallocArray(cudaArray_t *a, const cudaChannelFormatDesc *d, size_t width,
                            size_t height, unsigned flags);
cudaError_t cudaMalloc3DArray(cudaArray_t *a, const cudaChannelFormatDesc *d, cudaExtent extent,
                              unsigned flags);
cudaError_t cudaFreeArray(cudaArray_t a);
cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch,
                                size_t width, size_t height, cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from,
                                     size_t pitch, size_t width, size_t height, cudaMemcpyKind kind,
                                     cudaStream_t s);
cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_const_t from, size_t x,
                                  size_t y, size_t width, size_t height, cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DFromArrayAsync(void *to, size_t pitch, cudaArray_const_t from, size_t x,
                                       size_t y, size_t width, size_t height, cudaMemcpyKind kind,
                                       cudaStream_t s);
cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t tx, size_t ty, cudaArray_const_t from,
                                     size_t fx, size_t fy, size_t width, size_t height,
                                     cudaMemcpyKind kind);
cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t count,
                              cudaMemcpyKind kind);
cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from,
                                   size_t count, cudaMemcpyKind kind, cudaStream_t s);
cudaError_t cudaMemcpyFromArray(void *to, cudaArray_const_t from, size_t x, size_t y, size_t count,
                                cudaMemcpyKind kind);
cudaError_t cudaMemcpyFromArrayAsync(void *to, cudaArray_const_t from, size_t x, size_t y,
                                     size_t count, cudaMemcpyKind kind, cudaStream_t s);
cudaError_t cudaMemcpyArrayToArray(cudaArray_t to, size_t tx, size_t ty, cudaArray_const_t from,
                                   size_t fx, size_t fy, size_t count, cudaMemcpyKind kind);
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *p);
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms *p, cudaStream_t s);

enum { WIDTH = 24, HEIGHT = 10, DEPTH = 4 }; /* of arrays, in elements */

static const struct {
    cudaChannelFormatDesc desc;
    size_t size; /* bytes of an element */
} formats[] = {
    {{8, 0, 0, 0, cudaChannelFormatKindUnsigned}, 1},
    {{16, 16, 0, 0, cudaChannelFormatKindSigned}, 4},
    {{32, 0, 0, 0, cudaChannelFormatKindFloat}, 4},
    {{32, 32, 32, 32, cudaChannelFormatKindUnsigned}, 16},
};

enum { FORMATS = sizeof formats / sizeof formats[0] };

static bool
is_same(const unsigned char *a, const unsigned char *b, size_t size)
{
    return memcmp(a, b, size) == 0;
}

/* What an array has, in rows without gaps. */
static const unsigned char *
look_at_array(cudaArray_const_t a, size_t row)
{
    static unsigned char bytes[ROOM];

    expect_ok(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    memset(bytes, 0x55, ROOM);
    expect_ok(cudaMemcpy2DFromArray(bytes, row, a, 0, 0, row, HEIGHT, cudaMemcpyDeviceToHost),
              "cudaMemcpy2DFromArray");
    return bytes;
}

static void
clear_array(cudaArray_t a, size_t row)
{
    static unsigned char bytes[ROOM];

    memset(bytes, 0xee, ROOM);
    expect_ok(cudaMemcpy2DToArray(a, 0, 0, bytes, row, row, HEIGHT, cudaMemcpyHostToDevice),
              "cudaMemcpy2DToArray");
}

/* ---- rows and runs --------------------------------------------------------------------------- */

/* A part of the array's rows, to it and back. */
static void
rows_of_array(cudaArray_t a, size_t size, enum place_kind k, bool async, bool by_default)
{
    const size_t row = WIDTH * size, x = 3 * size, width = 11 * size, pitch = width + 5;
    const cudaMemcpyKind to = by_default ? cudaMemcpyDefault : copies_kind(DEVICE, k);
    const cudaMemcpyKind back = by_default ? cudaMemcpyDefault : copies_kind(k, DEVICE);
    unsigned char want[ROOM];

    clear_array(a, row);
    memset(want, 0xee, sizeof want);
    for (size_t y = 0; y < 6; y++)
        for (size_t i = 0; i < width; i++)
            want[(y + 2) * row + x + i] = copies_byte(y * pitch + i);
    expect_ok(async ? cudaMemcpy2DToArrayAsync(a, x, 2, copies.from[k], pitch, width, 6, to,
                                               copies.stream)
                    : cudaMemcpy2DToArray(a, x, 2, copies.from[k], pitch, width, 6, to),
              "cudaMemcpy2DToArray");
    expect(is_same(look_at_array(a, row), want, row * HEIGHT), "rows in the array");

    copies_clear(copies.to[k]);
    memset(want, 0xee, sizeof want);
    for (size_t y = 0; y < 6; y++)
        for (size_t i = 0; i < width; i++)
            want[y * pitch + i] = copies_byte(y * pitch + i);
    expect_ok(async ? cudaMemcpy2DFromArrayAsync(copies.to[k], pitch, a, x, 2, width, 6, back,
                                                 copies.stream)
                    : cudaMemcpy2DFromArray(copies.to[k], pitch, a, x, 2, width, 6, back),
              "cudaMemcpy2DFromArray");
    expect(is_same(copies_look(copies.to[k]), want, ROOM), "rows that came back");
}

/* A run of bytes that begins and ends within rows, to the array and back. */
static void
run_of_array(cudaArray_t a, size_t size, enum place_kind k, size_t x, size_t count, bool async)
{
    const size_t row = WIDTH * size, start = row + x;
    unsigned char want[ROOM];

    clear_array(a, row);
    memset(want, 0xee, sizeof want);
    for (size_t i = 0; i < count; i++)
        want[start + i] = copies_byte(i);
    expect_ok(async ? cudaMemcpyToArrayAsync(a, x, 1, copies.from[k], count, copies_kind(DEVICE, k),
                                             copies.stream)
                    : cudaMemcpyToArray(a, x, 1, copies.from[k], count, copies_kind(DEVICE, k)),
              "cudaMemcpyToArray");
    expect(is_same(look_at_array(a, row), want, row * HEIGHT), "a run in the array");

    copies_clear(copies.to[k]);
    memset(want, 0xee, sizeof want);
    for (size_t i = 0; i < count; i++)
        want[i] = copies_byte(i);
    expect_ok(async ? cudaMemcpyFromArrayAsync(copies.to[k], a, x, 1, count, copies_kind(k, DEVICE),
                                               copies.stream)
                    : cudaMemcpyFromArray(copies.to[k], a, x, 1, count, copies_kind(k, DEVICE)),
              "cudaMemcpyFromArray");
    expect(is_same(copies_look(copies.to[k]), want, ROOM), "a run that came back");
}

static void
array_to_array(cudaArray_t a, cudaArray_t b, size_t size)
{
    const size_t row = WIDTH * size;
    unsigned char want[ROOM];

    clear_array(b, row);
    expect_ok(cudaMemcpy2DToArray(a, 0, 0, copies.from[PAGEABLE], row, row, HEIGHT,
                                  cudaMemcpyHostToDevice),
              "cudaMemcpy2DToArray");
    memset(want, 0xee, sizeof want);
    for (size_t y = 0; y < 4; y++)
        for (size_t i = 0; i < 5 * size; i++)
            want[(y + 3) * row + 2 * size + i] = copies_byte((y + 1) * row + 4 * size + i);
    expect_ok(cudaMemcpy2DArrayToArray(b, 2 * size, 3, a, 4 * size, 1, 5 * size, 4,
                                       cudaMemcpyDeviceToDevice),
              "cudaMemcpy2DArrayToArray");
    expect(is_same(look_at_array(b, row), want, row * HEIGHT), "rows of an array");

    clear_array(b, row);
    memset(want, 0xee, sizeof want);
    for (size_t i = 0; i < 3 * row; i++)
        want[2 * row + 6 * size + i] = copies_byte(row + size + i);
    expect_ok(cudaMemcpyArrayToArray(b, 6 * size, 2, a, size, 1, 3 * row, cudaMemcpyDeviceToDevice),
              "cudaMemcpyArrayToArray");
    expect(is_same(look_at_array(b, row), want, row * HEIGHT), "a run of an array");
}

/* ---- boxes ----------------------------------------------------------------------------------- */

/* To an array, on to another one, and back: positions and widths are in elements on both sides. */
static void
box_of_arrays(const cudaChannelFormatDesc *desc, size_t size, enum place_kind k, bool async)
{
    enum { W = 5, H = 4, D = 3 };

    const size_t pitch = 12 * size, rows = 6, layers = 4;
    const cudaPitchedPtr from = {copies.from[k], pitch, 12, rows};
    const cudaPitchedPtr to = {copies.to[k], pitch, 12, rows};
    const cudaMemcpyKind kinds[] = {copies_kind(DEVICE, k), cudaMemcpyDeviceToDevice,
                                    copies_kind(k, DEVICE)};
    cudaArray_t a = NULL, b = NULL;
    unsigned char want[ROOM];
    cudaMemcpy3DParms steps[] = {
        {.srcPtr = from, .srcPos = {2, 1, 1}, .dstPos = {3, 2, 1}, .extent = {W, H, D}},
        {.srcPos = {3, 2, 1}, .dstPos = {1, 0, 0}, .extent = {W, H, D}},
        {.srcPos = {1, 0, 0}, .dstPos = {4, 2, 1}, .dstPtr = to, .extent = {W, H, D}},
    };

    if (pitch * rows * layers > ROOM)
        abort();
    expect_ok(cudaMalloc3DArray(&a, desc, (cudaExtent){WIDTH, HEIGHT, DEPTH}, 0),
              "cudaMalloc3DArray");
    expect_ok(cudaMalloc3DArray(&b, desc, (cudaExtent){WIDTH, HEIGHT, DEPTH}, 0),
              "cudaMalloc3DArray");
    steps[0].dstArray = steps[1].srcArray = a;
    steps[1].dstArray = steps[2].srcArray = b;
    copies_clear(copies.to[k]);
    for (int i = 0; i < 3; i++) {
        steps[i].kind = kinds[i];
        expect_ok(async ? cudaMemcpy3DAsync(&steps[i], copies.stream) : cudaMemcpy3D(&steps[i]),
                  "cudaMemcpy3D with arrays");
    }
    memset(want, 0xee, sizeof want);
    for (size_t z = 0; z < D; z++)
        for (size_t y = 0; y < H; y++)
            for (size_t i = 0; i < W * size; i++)
                want[((z + 1) * rows + y + 2) * pitch + 4 * size + i] =
                    copies_byte(((z + 1) * rows + y + 1) * pitch + 2 * size + i);
    expect(is_same(copies_look(copies.to[k]), want, ROOM), "a box that came back");
    expect_ok(cudaFreeArray(a), "cudaFreeArray");
    expect_ok(cudaFreeArray(b), "cudaFreeArray");
}

void
copies_of_arrays(void)
{
    for (int f = 0; f < FORMATS; f++) {
        const size_t size = formats[f].size, row = WIDTH * size;
        cudaArray_t a = NULL, b = NULL;

        expect_ok(cudaMallocArray(&a, &formats[f].desc, WIDTH, HEIGHT, 0), "cudaMallocArray");
        expect_ok(cudaMallocArray(&b, &formats[f].desc, WIDTH, HEIGHT, 0), "cudaMallocArray");
        for (int k = 0; k < PLACES; k++)
            for (int async = 0; async < 2; async++) {
                rows_of_array(a, size, k, async, false);
                rows_of_array(a, size, k, async, true);
                run_of_array(a, size, k, 0, 3 * row, async);
                run_of_array(a, size, k, 2 * size, 3 * row, async);
                run_of_array(a, size, k, 2 * size, 4 * size, async);
                run_of_array(a, size, k, 2 * size, row - 2 * size, async);
                run_of_array(a, size, k, row, row + size, async);
                box_of_arrays(&formats[f].desc, size, k, async);
            }
        array_to_array(a, b, size);
        expect_ok(cudaFreeArray(a), "cudaFreeArray");
        expect_ok(cudaFreeArray(b), "cudaFreeArray");
    }
}
