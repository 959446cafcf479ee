/* Copies of bytes to and from arrays, row after row. Deprecated since CUDA 10.1, but still there.
 *
 *       x
 *   +---+-----------+
 *   |   | head      |   one copy of a part of a row,
 *   +---+-----------+
 *   | body          |   one of whole rows,
 *   |       +-------+
 *   | tail  |           and one of a part of a row
 *   +-------+
 */
#include <stdint.h>

#include "cudart/copy.h"
#include "cudart/driver.h"
#include "gen/cudart_calls.h"

/* A copy in the making. */
struct run {
    CUDA_MEMCPY3D_v2 c; /* one end is the array */
    bool to_array;
    CUmemorytype type; /* of the other end */
    char *memory;      /* the rest of the other end */
    size_t row;        /* bytes of a row of the array */
    const cudaStream_t *stream;
};

/* Copies some rows, or a part of one, and moves on. */
static cudaError_t
run_part(const struct hed_rt_driver *cu, struct run *u, size_t x, size_t *y, size_t width,
         size_t height)
{
    cudaError_t r;

    if (width == 0 || height == 0)
        return cudaSuccess;
    u->c.WidthInBytes = width;
    u->c.Height = height;
    if (u->to_array) {
        u->c.dstXInBytes = x;
        u->c.dstY = *y;
        hed_rt_copy_from(&u->c, u->type, u->memory, u->row);
    } else {
        u->c.srcXInBytes = x;
        u->c.srcY = *y;
        hed_rt_copy_to(&u->c, u->type, u->memory, u->row);
    }
    r = hed_rt_copy(cu, &u->c, u->stream);
    if (r != cudaSuccess)
        return r;
    u->memory += width * height;
    *y += height;
    return cudaSuccess;
}

static cudaError_t
run_rows(const struct hed_rt_driver *cu, struct run *u, cudaArray_const_t array, size_t x, size_t y,
         size_t count)
{
    CUDA_ARRAY3D_DESCRIPTOR_v2 d;
    struct hed_rt_element element;
    size_t head = 0;
    cudaError_t r = (cudaError_t)cu->cuArray3DGetDescriptor_v2(&d, (CUarray)(uintptr_t)array);

    if (r == cudaSuccess)
        r = hed_rt_element(&d, &element);
    if (r != cudaSuccess)
        return r;
    u->row = (d.Width + element.side - 1) / element.side * element.bytes;
    /* The driver refuses what begins behind the row. */
    if (x)
        head = x > u->row || count < u->row - x ? count : u->row - x;
    r = run_part(cu, u, x, &y, head, 1);
    count -= head;
    if (r == cudaSuccess && x == u->row)
        y++;
    if (r == cudaSuccess)
        r = run_part(cu, u, 0, &y, u->row, count / u->row);
    if (r == cudaSuccess)
        r = run_part(cu, u, 0, &y, count % u->row, 1);
    return r;
}

/* NVIDIA's runtime lets kinds pass that do not exist, and copies nothing. */
static bool
kind_is_unknown(cudaMemcpyKind kind)
{
    return (unsigned)kind > cudaMemcpyDefault;
}

static cudaError_t
copy_to_array(const struct hed_rt_driver *cu, cudaArray_t dst, size_t x, size_t y, const void *src,
              size_t count, cudaMemcpyKind kind, const cudaStream_t *stream)
{
    struct run u = {
        .c = {.dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = (CUarray)dst, .Depth = 1},
        .to_array = true,
        .memory = (char *)(uintptr_t)src,
        .stream = stream,
    };
    CUmemorytype to;

    if (count == 0 || kind_is_unknown(kind))
        return cudaSuccess;
    (void)hed_rt_copy_types(kind, &u.type, &to);
    return to == CU_MEMORYTYPE_HOST ? cudaErrorInvalidMemcpyDirection
                                    : run_rows(cu, &u, dst, x, y, count);
}

static cudaError_t
copy_from_array(const struct hed_rt_driver *cu, void *dst, cudaArray_const_t src, size_t x,
                size_t y, size_t count, cudaMemcpyKind kind, const cudaStream_t *stream)
{
    struct run u = {
        .c = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
              .srcArray = (CUarray)(uintptr_t)src,
              .Depth = 1},
        .memory = dst,
        .stream = stream,
    };
    CUmemorytype from;

    if (count == 0 || kind_is_unknown(kind))
        return cudaSuccess;
    (void)hed_rt_copy_types(kind, &from, &u.type);
    return from == CU_MEMORYTYPE_HOST ? cudaErrorInvalidMemcpyDirection
                                      : run_rows(cu, &u, src, x, y, count);
}

/* ---- calls ----------------------------------------------------------------------------------- */

cudaError_t
hed_rt_cudaMemcpyToArray(const struct hed_rt_driver *cu, cudaArray_t dst, size_t wOffset,
                         size_t hOffset, const void *src, size_t count, cudaMemcpyKind kind)
{
    return copy_to_array(cu, dst, wOffset, hOffset, src, count, kind, NULL);
}

cudaError_t
hed_rt_cudaMemcpyToArrayAsync(const struct hed_rt_driver *cu, cudaArray_t dst, size_t wOffset,
                              size_t hOffset, const void *src, size_t count, cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    return copy_to_array(cu, dst, wOffset, hOffset, src, count, kind, &stream);
}

cudaError_t
hed_rt_cudaMemcpyFromArray(const struct hed_rt_driver *cu, void *dst, cudaArray_const_t src,
                           size_t wOffset, size_t hOffset, size_t count, cudaMemcpyKind kind)
{
    return copy_from_array(cu, dst, src, wOffset, hOffset, count, kind, NULL);
}

cudaError_t
hed_rt_cudaMemcpyFromArrayAsync(const struct hed_rt_driver *cu, void *dst, cudaArray_const_t src,
                                size_t wOffset, size_t hOffset, size_t count, cudaMemcpyKind kind,
                                cudaStream_t stream)
{
    return copy_from_array(cu, dst, src, wOffset, hOffset, count, kind, &stream);
}

/* Through memory, since the rows of the two arrays may differ in length. */
cudaError_t
hed_rt_cudaMemcpyArrayToArray(const struct hed_rt_driver *cu, cudaArray_t dst, size_t wOffsetDst,
                              size_t hOffsetDst, cudaArray_const_t src, size_t wOffsetSrc,
                              size_t hOffsetSrc, size_t count, cudaMemcpyKind kind)
{
    CUdeviceptr between;
    cudaError_t r;

    if (count == 0)
        return cudaSuccess;
    if (kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    r = (cudaError_t)cu->cuMemAlloc_v2(&between, count);
    if (r != cudaSuccess)
        return r;
    r = copy_from_array(cu, (void *)(uintptr_t)between, src, wOffsetSrc, hOffsetSrc, count,
                        cudaMemcpyDeviceToDevice, NULL);
    if (r == cudaSuccess)
        r = copy_to_array(cu, dst, wOffsetDst, hOffsetDst, (void *)(uintptr_t)between, count,
                          cudaMemcpyDeviceToDevice, NULL);
    (void)cu->cuMemFree_v2(between);
    return r;
}
