/* Copies in batches: all are checked before the first is put on the stream, so that a batch that is
 * refused has done nothing. */
#include <stdint.h>

#include "driver/memory/array.h"
#include "driver/memory/memory_calls.h"
#include "driver/memory/memory_index.h"
#include "driver/stream/work.h"

#define NO_INDEX SIZE_MAX /* the failure does not concern one copy in particular */

static bool
is_order(CUmemcpySrcAccessOrder order)
{
    return order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
           order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ||
           order == CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

/* Batches are not allowed on the legacy stream. */
static bool
is_legacy(CUstream stream, bool ptds)
{
    return (stream == NULL && !ptds) || stream == (CUstream)(uintptr_t)1;
}

/* The context in which copies are checked. Submitting the copies checks the stream. */
static CUresult
begin_batch(struct hed_layer *self, CUstream stream, bool ptds, struct hed_context **c)
{
    const CUresult r = hed_current(self, c);

    /* What NVIDIA's driver 580 answers without a context. */
    if (r == CUDA_ERROR_INVALID_CONTEXT)
        return CUDA_ERROR_INVALID_VALUE;
    return r == CUDA_SUCCESS && is_legacy(stream, ptds) ? CUDA_ERROR_INVALID_VALUE : r;
}

static CUresult
put_batch_copy(struct hed_layer *self, const CUDA_MEMCPY3D_v2 *given, CUmemcpySrcAccessOrder order,
               CUstream stream, bool ptds)
{
    return hed_copy_put(self, &(struct hed_copy_call){
                                  .given = *given,
                                  .stream = stream,
                                  .ptds = ptds,
                                  .waits = order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL});
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct rows {
    const CUdeviceptr *to, *from;
    const size_t *sizes;
    size_t count;
    const CUmemcpyAttributes_v1 *attributes;
    const size_t *first; /* attributes[i] apply from copy first[i] on, up to the next one's */
    size_t attribute_count;
    CUstream stream;
    bool ptds;
};

static bool
are_attributes(const struct rows *b)
{
    if (!b->attributes || !b->first || b->attribute_count == 0 || b->attribute_count > b->count ||
        b->first[0] != 0)
        return false;
    for (size_t i = 0; i < b->attribute_count; i++) {
        if (!is_order(b->attributes[i].srcAccessOrder))
            return false;
        if (i > 0 && (b->first[i] <= b->first[i - 1] || b->first[i] >= b->count))
            return false;
    }
    return true;
}

static CUDA_MEMCPY3D_v2
describe_row(const struct rows *b, size_t i)
{
    return hed_copy_row(CU_MEMORYTYPE_UNIFIED, b->to[i], CU_MEMORYTYPE_UNIFIED, b->from[i],
                        b->sizes[i]);
}

static CUresult
copy_rows(struct hed_layer *self, const struct rows *b, size_t *failed)
{
    struct hed_context *c;
    size_t attribute = 0;
    CUresult r = begin_batch(self, b->stream, b->ptds, &c);

    *failed = NO_INDEX;
    if (r != CUDA_SUCCESS)
        return r;
    if (!b->to || !b->from || !b->sizes || b->count == 0 || !are_attributes(b))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < b->count; i++) {
        const CUDA_MEMCPY3D_v2 given = describe_row(b, i);
        struct hed_copy copy;

        r = b->sizes[i] ? hed_copy_resolve(c, &given, &copy) : CUDA_ERROR_INVALID_VALUE;
        if (r != CUDA_SUCCESS) {
            *failed = i;
            return r;
        }
    }
    for (size_t i = 0; r == CUDA_SUCCESS && i < b->count; i++) {
        const CUDA_MEMCPY3D_v2 given = describe_row(b, i);

        if (attribute + 1 < b->attribute_count && b->first[attribute + 1] == i)
            attribute++;
        r = put_batch_copy(self, &given, b->attributes[attribute].srcAccessOrder, b->stream,
                           b->ptds);
    }
    return r;
}

/* Both versions of the call have arguments with the same names. */
#define ROWS(a)                                       \
    (&(struct rows){.to = (a)->dsts,                  \
                    .from = (a)->srcs,                \
                    .sizes = (a)->sizes,              \
                    .count = (a)->count,              \
                    .attributes = (a)->attrs,         \
                    .first = (a)->attrsIdxs,          \
                    .attribute_count = (a)->numAttrs, \
                    .stream = (a)->hStream,           \
                    .ptds = (a)->ptds})

CUresult
hed_soft_cuMemcpyBatchAsync(struct hed_layer *self, struct hed_cuMemcpyBatchAsync *a)
{
    size_t failed;
    const CUresult r = copy_rows(self, ROWS(a), &failed);

    if (a->failIdx)
        *a->failIdx = failed;
    return r;
}

CUresult
hed_soft_cuMemcpyBatchAsync_v2(struct hed_layer *self, struct hed_cuMemcpyBatchAsync_v2 *a)
{
    size_t failed;

    return copy_rows(self, ROWS(a), &failed);
}

/* ---- boxes ----------------------------------------------------------------------------------- */

/* cuda.h, CUmemcpy3DOperand: "rowLength: Length of each row in elements". Elements are those of the
 * array on the other side, or bytes if both sides are memory. The same applies to extents. */
static size_t
element_bytes(struct hed_driver *d, const CUmemcpy3DOperand_v1 *o)
{
    struct hed_array *a =
        o->type == CU_MEMCPY_OPERAND_TYPE_ARRAY ? hed_array_find(d, o->op.array.array) : NULL;
    const size_t bytes = a ? a->format.bytes : 1;

    if (a)
        hed_object_put(&a->object);
    return bytes;
}

struct operand {
    CUmemorytype type;
    CUdeviceptr at;
    CUarray array;
    size_t x, y, z, pitch, height;
};

static bool
operand_of(const CUmemcpy3DOperand_v1 *o, size_t bytes, struct operand *out)
{
    *out = (struct operand){.type = CU_MEMORYTYPE_UNIFIED};
    if (o->type == CU_MEMCPY_OPERAND_TYPE_POINTER) {
        out->at = o->op.ptr.ptr;
        out->height = o->op.ptr.layerHeight;
        return !__builtin_mul_overflow(o->op.ptr.rowLength, bytes, &out->pitch);
    }
    out->type = CU_MEMORYTYPE_ARRAY;
    out->array = o->op.array.array;
    out->y = o->op.array.offset.y;
    out->z = o->op.array.offset.z;
    return o->type == CU_MEMCPY_OPERAND_TYPE_ARRAY &&
           !__builtin_mul_overflow(o->op.array.offset.x, bytes, &out->x);
}

static bool
describe_box(struct hed_driver *d, const CUDA_MEMCPY3D_BATCH_OP_v1 *op, CUDA_MEMCPY3D_v2 *out)
{
    const size_t from_bytes = element_bytes(d, &op->src);
    const size_t bytes = from_bytes > 1 ? from_bytes : element_bytes(d, &op->dst);
    struct operand from, to;
    size_t width;

    if (!is_order(op->srcAccessOrder) || !operand_of(&op->src, bytes, &from) ||
        !operand_of(&op->dst, bytes, &to) || op->extent.width == 0 || op->extent.height == 0 ||
        op->extent.depth == 0 || __builtin_mul_overflow(op->extent.width, bytes, &width))
        return false;
    *out = (CUDA_MEMCPY3D_v2){.srcXInBytes = from.x,
                              .srcY = from.y,
                              .srcZ = from.z,
                              .srcMemoryType = from.type,
                              .srcDevice = from.at,
                              .srcArray = from.array,
                              .srcPitch = from.pitch,
                              .srcHeight = from.height,
                              .dstXInBytes = to.x,
                              .dstY = to.y,
                              .dstZ = to.z,
                              .dstMemoryType = to.type,
                              .dstDevice = to.at,
                              .dstArray = to.array,
                              .dstPitch = to.pitch,
                              .dstHeight = to.height,
                              .WidthInBytes = width,
                              .Height = op->extent.height,
                              .Depth = op->extent.depth};
    return true;
}

static CUresult
copy_boxes(struct hed_layer *self, const struct hed_cuMemcpy3DBatchAsync_v2 *a, size_t *failed)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_context *c;
    CUDA_MEMCPY3D_v2 given;
    CUresult r = begin_batch(self, a->hStream, a->ptds, &c);

    *failed = NO_INDEX;
    if (r != CUDA_SUCCESS)
        return r;
    if (!a->opList || a->numOps == 0 || a->flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < a->numOps; i++) {
        struct hed_copy copy;

        r = describe_box(d, &a->opList[i], &given) ? hed_copy_resolve(c, &given, &copy)
                                                   : CUDA_ERROR_INVALID_VALUE;
        if (r != CUDA_SUCCESS) {
            *failed = i;
            return r;
        }
    }
    for (size_t i = 0; r == CUDA_SUCCESS && i < a->numOps; i++)
        if (describe_box(d, &a->opList[i], &given))
            r = put_batch_copy(self, &given, a->opList[i].srcAccessOrder, a->hStream, a->ptds);
    return r;
}

CUresult
hed_soft_cuMemcpy3DBatchAsync_v2(struct hed_layer *self, struct hed_cuMemcpy3DBatchAsync_v2 *a)
{
    size_t failed;

    return copy_boxes(self, a, &failed);
}

CUresult
hed_soft_cuMemcpy3DBatchAsync(struct hed_layer *self, struct hed_cuMemcpy3DBatchAsync *a)
{
    size_t failed;
    const CUresult r = copy_boxes(self,
                                  &(struct hed_cuMemcpy3DBatchAsync_v2){.numOps = a->numOps,
                                                                        .opList = a->opList,
                                                                        .flags = a->flags,
                                                                        .hStream = a->hStream,
                                                                        .ptds = a->ptds},
                                  &failed);

    if (a->failIdx)
        *a->failIdx = failed;
    return r;
}
