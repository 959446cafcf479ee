/* Copies: checked, resolved into addresses and pitches, then put on a stream. Copies of one row are
 * here; copies of planes and arrays are in copy_array.c, batches in copy_batch.c.
 *
 * The machine decides what the caller waits for (machine->copy).
 */
#include "driver/memory/array.h"
#include "driver/memory/memory_calls.h"
#include "driver/memory/memory_index.h"
#include "driver/stream/stream.h"
#include "driver/stream/work.h"

#define NO_MANS_LAND 4096 /* there is no memory below this address */

/* A side as the program describes it. `slice` is the height of a plane in rows. Pitch and height
 * may be 0, which stands for those of the box. */

/* As on NVIDIA's driver, a host pointer may point to device memory. */
static CUresult
resolve_memory(struct hed_driver *d, CUmemorytype type, const struct hed_box *b, bool write,
               struct hed_copy_side *side)
{
    const struct hed_copy_side s = *side;
    uint64_t row, rows, offset, up, bytes;
    struct hed_allocation a;
    bool known;

    if (__builtin_add_overflow(s.x, b->width, &row) ||
        __builtin_add_overflow(s.y, b->height, &rows) || (s.pitch && s.pitch < row) ||
        (s.slice && s.slice < rows) || s.at < NO_MANS_LAND)
        return CUDA_ERROR_INVALID_VALUE;
    *side = (struct hed_copy_side){.pitch = s.pitch ? s.pitch : row};
    if (__builtin_mul_overflow(side->pitch, s.slice ? s.slice : rows, &side->slice) ||
        __builtin_mul_overflow(side->slice, s.z, &up) ||
        __builtin_mul_overflow(side->pitch, s.y, &offset) ||
        __builtin_add_overflow(offset, up, &offset) ||
        __builtin_add_overflow(offset, s.x, &offset) ||
        __builtin_add_overflow(offset, s.at, &side->at) || !hed_side_span(side, b, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (!hed_memory_usable(d, side->at, bytes, write, &known, &a))
        return CUDA_ERROR_INVALID_VALUE;
    if (type == CU_MEMORYTYPE_DEVICE && !known)
        return CUDA_ERROR_INVALID_VALUE;
    side->pageable = !known;
    side->host = !known || a.kind == HED_MEMORY_HOST || a.kind == HED_MEMORY_REGISTERED ||
                 a.kind == HED_MEMORY_MANAGED || !a.device;
    side->mapped = known && hed_memory_is_mapped(&a);
    return CUDA_SUCCESS;
}

static CUresult
resolve_array(struct hed_driver *d, const struct hed_box *b, struct hed_copy_side *side)
{
    struct hed_array *a = hed_array_find(d, (CUarray)(uintptr_t)side->array);
    const struct hed_copy_side s = *side;
    CUresult r = CUDA_ERROR_INVALID_VALUE;

    if (!a)
        return r;

    const struct hed_texels *m = &a->image;
    const uint64_t row = (uint64_t)m->width * a->format.bytes;

    if (s.x <= row && b->width <= row - s.x && s.y <= m->height && b->height <= m->height - s.y &&
        s.z <= m->depth && b->depth <= m->depth - s.z) {
        *side = hed_side_move(
            (struct hed_copy_side){
                .at = m->at, .pitch = m->pitch, .slice = m->slice, .array = a->object.handle},
            s.x, s.y, s.z);
        r = CUDA_SUCCESS;
    }
    hed_object_put(&a->object);
    return r;
}

static CUresult
resolve_side(struct hed_driver *d, CUmemorytype type, const struct hed_box *b, bool write,
             struct hed_copy_side *side)
{
    switch (type) {
    case CU_MEMORYTYPE_HOST:
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
        return resolve_memory(d, type, b, write, side);
    case CU_MEMORYTYPE_ARRAY:
        return resolve_array(d, b, side);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static uint64_t
side_address(CUmemorytype type, const void *host, CUdeviceptr device)
{
    return type == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)host : device;
}

CUresult
hed_copy_resolve(struct hed_context *c, const CUDA_MEMCPY3D_v2 *p, struct hed_copy *out)
{
    struct hed_driver *d = c->device->driver;

    *out = (struct hed_copy){
        .from = {.at = side_address(p->srcMemoryType, p->srcHost, p->srcDevice),
                 .array = (uint64_t)(uintptr_t)p->srcArray,
                 .x = p->srcXInBytes,
                 .y = p->srcY,
                 .z = p->srcZ,
                 .pitch = p->srcPitch,
                 .slice = p->srcHeight},
        .to = {.at = side_address(p->dstMemoryType, p->dstHost, p->dstDevice),
               .array = (uint64_t)(uintptr_t)p->dstArray,
               .x = p->dstXInBytes,
               .y = p->dstY,
               .z = p->dstZ,
               .pitch = p->dstPitch,
               .slice = p->dstHeight},
        .box = {p->WidthInBytes, p->Height, p->Depth},
    };
    if (p->WidthInBytes == 0 || p->Height == 0 || p->Depth == 0) {
        out->box.width = 0;
        return CUDA_SUCCESS;
    }

    const CUresult r = resolve_side(d, p->srcMemoryType, &out->box, false, &out->from);

    return r == CUDA_SUCCESS ? resolve_side(d, p->dstMemoryType, &out->box, true, &out->to) : r;
}

/* ---- putting a copy on a stream -------------------------------------------------------------- */

/* A node reads its source when its graph runs. */
static CUresult
capture_copy(struct hed_stream *s, const struct hed_copy *c, const CUDA_MEMCPY3D_v2 *given,
             bool waits)
{
    struct hed_work *w = hed_work_create_copy(s->ctx, c, given);

    if (!w)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return waits ? hed_submit_wait(s, w) : hed_submit(s, w);
}

static CUresult
submit_copy(struct hed_stream *s, struct hed_context *c, const CUDA_MEMCPY3D_v2 *given, bool waits)
{
    struct hed_copy copy;
    CUresult r = hed_copy_resolve(c, given, &copy);
    void *m;

    if (r != CUDA_SUCCESS || copy.box.width == 0)
        return r;
    /* Relaxed: the program orders its capture and its copies. */
    if (atomic_load_explicit(&s->capture, memory_order_relaxed))
        return capture_copy(s, &copy, given, waits);
    r = hed_submit_allowed(s);
    return r == CUDA_SUCCESS ? hed_machine_of(s->ctx, &m)->copy(m, s, &copy, waits) : r;
}

CUresult
hed_copy_put(struct hed_layer *self, const struct hed_copy_call *o)
{
    struct hed_context *c;
    struct hed_stream *s;
    CUresult r = hed_stream_begin(self, o->stream, o->ptds, &s, &c);

    if (r != CUDA_SUCCESS)
        return r;
    r = submit_copy(s, c, &o->given, o->waits);
    hed_stream_put(s);
    return r;
}

CUresult
hed_copy_submit(struct hed_stream *s, const CUDA_MEMCPY3D_v2 *given)
{
    return submit_copy(s, s->ctx, given, false);
}

/* ---- one row --------------------------------------------------------------------------------- */

CUDA_MEMCPY3D_v2
hed_copy_row(CUmemorytype to_type, uint64_t to, CUmemorytype from_type, uint64_t from, size_t n)
{
    CUDA_MEMCPY3D_v2 p = {.srcMemoryType = from_type,
                          .dstMemoryType = to_type,
                          .WidthInBytes = n,
                          .Height = 1,
                          .Depth = 1};

    if (from_type == CU_MEMORYTYPE_HOST)
        p.srcHost = (const void *)(uintptr_t)from;
    else
        p.srcDevice = from;
    if (to_type == CU_MEMORYTYPE_HOST)
        p.dstHost = (void *)(uintptr_t)to;
    else
        p.dstDevice = to;
    return p;
}

static CUresult
copy_row(struct hed_layer *self, CUDA_MEMCPY3D_v2 given, bool ptds)
{
    return hed_copy_put(self, &(struct hed_copy_call){.given = given, .ptds = ptds, .waits = true});
}

static CUresult
copy_row_async(struct hed_layer *self, CUDA_MEMCPY3D_v2 given, CUstream stream, bool ptds)
{
    return hed_copy_put(self,
                        &(struct hed_copy_call){.given = given, .stream = stream, .ptds = ptds});
}

#define ADDRESS(p) ((uint64_t)(uintptr_t)(p))

static CUresult
soft_cuMemcpyHtoD_v2(struct hed_layer *self, struct hed_cuMemcpyHtoD_v2 *a)
{
    return copy_row(self,
                    hed_copy_row(CU_MEMORYTYPE_DEVICE, a->dstDevice, CU_MEMORYTYPE_HOST,
                                 ADDRESS(a->srcHost), a->ByteCount),
                    a->ptds);
}

static CUresult
soft_cuMemcpyDtoH_v2(struct hed_layer *self, struct hed_cuMemcpyDtoH_v2 *a)
{
    return copy_row(self,
                    hed_copy_row(CU_MEMORYTYPE_HOST, ADDRESS(a->dstHost), CU_MEMORYTYPE_DEVICE,
                                 a->srcDevice, a->ByteCount),
                    a->ptds);
}

static CUresult
soft_cuMemcpyDtoD_v2(struct hed_layer *self, struct hed_cuMemcpyDtoD_v2 *a)
{
    return copy_row(self,
                    hed_copy_row(CU_MEMORYTYPE_DEVICE, a->dstDevice, CU_MEMORYTYPE_DEVICE,
                                 a->srcDevice, a->ByteCount),
                    a->ptds);
}

static CUresult
soft_cuMemcpy(struct hed_layer *self, struct hed_cuMemcpy *a)
{
    return copy_row(
        self,
        hed_copy_row(CU_MEMORYTYPE_UNIFIED, a->dst, CU_MEMORYTYPE_UNIFIED, a->src, a->ByteCount),
        a->ptds);
}

static CUresult
soft_cuMemcpyHtoDAsync_v2(struct hed_layer *self, struct hed_cuMemcpyHtoDAsync_v2 *a)
{
    return copy_row_async(self,
                          hed_copy_row(CU_MEMORYTYPE_DEVICE, a->dstDevice, CU_MEMORYTYPE_HOST,
                                       ADDRESS(a->srcHost), a->ByteCount),
                          a->hStream, a->ptds);
}

static CUresult
soft_cuMemcpyDtoHAsync_v2(struct hed_layer *self, struct hed_cuMemcpyDtoHAsync_v2 *a)
{
    return copy_row_async(self,
                          hed_copy_row(CU_MEMORYTYPE_HOST, ADDRESS(a->dstHost),
                                       CU_MEMORYTYPE_DEVICE, a->srcDevice, a->ByteCount),
                          a->hStream, a->ptds);
}

static CUresult
soft_cuMemcpyDtoDAsync_v2(struct hed_layer *self, struct hed_cuMemcpyDtoDAsync_v2 *a)
{
    return copy_row_async(self,
                          hed_copy_row(CU_MEMORYTYPE_DEVICE, a->dstDevice, CU_MEMORYTYPE_DEVICE,
                                       a->srcDevice, a->ByteCount),
                          a->hStream, a->ptds);
}

static CUresult
soft_cuMemcpyAsync(struct hed_layer *self, struct hed_cuMemcpyAsync *a)
{
    return copy_row_async(
        self,
        hed_copy_row(CU_MEMORYTYPE_UNIFIED, a->dst, CU_MEMORYTYPE_UNIFIED, a->src, a->ByteCount),
        a->hStream, a->ptds);
}

/* NULL stands for the current context, as on NVIDIA's driver. */
static bool
is_context(struct hed_layer *self, CUcontext ctx)
{
    return !ctx || hed_context_find(hed_driver_of(self), ctx);
}

static CUresult
soft_cuMemcpyPeer(struct hed_layer *self, struct hed_cuMemcpyPeer *a)
{
    if (!is_context(self, a->srcContext) || !is_context(self, a->dstContext))
        return CUDA_ERROR_INVALID_CONTEXT;
    return copy_row(self,
                    hed_copy_row(CU_MEMORYTYPE_DEVICE, a->dstDevice, CU_MEMORYTYPE_DEVICE,
                                 a->srcDevice, a->ByteCount),
                    a->ptds);
}

static CUresult
soft_cuMemcpyPeerAsync(struct hed_layer *self, struct hed_cuMemcpyPeerAsync *a)
{
    if (!is_context(self, a->srcContext) || !is_context(self, a->dstContext))
        return CUDA_ERROR_INVALID_CONTEXT;
    return copy_row_async(self,
                          hed_copy_row(CU_MEMORYTYPE_DEVICE, a->dstDevice, CU_MEMORYTYPE_DEVICE,
                                       a->srcDevice, a->ByteCount),
                          a->hStream, a->ptds);
}

const struct hed_cuda_ops hed_calls_copy = {
    .cuMemcpyHtoD_v2 = soft_cuMemcpyHtoD_v2,
    .cuMemcpyDtoH_v2 = soft_cuMemcpyDtoH_v2,
    .cuMemcpyDtoD_v2 = soft_cuMemcpyDtoD_v2,
    .cuMemcpy = soft_cuMemcpy,
    .cuMemcpyHtoDAsync_v2 = soft_cuMemcpyHtoDAsync_v2,
    .cuMemcpyDtoHAsync_v2 = soft_cuMemcpyDtoHAsync_v2,
    .cuMemcpyDtoDAsync_v2 = soft_cuMemcpyDtoDAsync_v2,
    .cuMemcpyAsync = soft_cuMemcpyAsync,
    .cuMemcpyPeer = soft_cuMemcpyPeer,
    .cuMemcpyPeerAsync = soft_cuMemcpyPeerAsync,
    .cuMemcpyDtoA_v2 = hed_soft_cuMemcpyDtoA_v2,
    .cuMemcpyAtoD_v2 = hed_soft_cuMemcpyAtoD_v2,
    .cuMemcpyHtoA = hed_soft_cuMemcpyHtoA,
    .cuMemcpyHtoA_v2 = hed_soft_cuMemcpyHtoA_v2,
    .cuMemcpyAtoH = hed_soft_cuMemcpyAtoH,
    .cuMemcpyAtoH_v2 = hed_soft_cuMemcpyAtoH_v2,
    .cuMemcpyAtoA = hed_soft_cuMemcpyAtoA,
    .cuMemcpyAtoA_v2 = hed_soft_cuMemcpyAtoA_v2,
    .cuMemcpyHtoAAsync = hed_soft_cuMemcpyHtoAAsync,
    .cuMemcpyHtoAAsync_v2 = hed_soft_cuMemcpyHtoAAsync_v2,
    .cuMemcpyAtoHAsync = hed_soft_cuMemcpyAtoHAsync,
    .cuMemcpyAtoHAsync_v2 = hed_soft_cuMemcpyAtoHAsync_v2,
    .cuMemcpy2D = hed_soft_cuMemcpy2D,
    .cuMemcpy2D_v2 = hed_soft_cuMemcpy2D_v2,
    .cuMemcpy2DUnaligned = hed_soft_cuMemcpy2DUnaligned,
    .cuMemcpy2DUnaligned_v2 = hed_soft_cuMemcpy2DUnaligned_v2,
    .cuMemcpy2DAsync = hed_soft_cuMemcpy2DAsync,
    .cuMemcpy2DAsync_v2 = hed_soft_cuMemcpy2DAsync_v2,
    .cuMemcpy3D = hed_soft_cuMemcpy3D,
    .cuMemcpy3D_v2 = hed_soft_cuMemcpy3D_v2,
    .cuMemcpy3DAsync = hed_soft_cuMemcpy3DAsync,
    .cuMemcpy3DAsync_v2 = hed_soft_cuMemcpy3DAsync_v2,
    .cuMemcpy3DPeer = hed_soft_cuMemcpy3DPeer,
    .cuMemcpy3DPeerAsync = hed_soft_cuMemcpy3DPeerAsync,
    .cuMemcpyBatchAsync = hed_soft_cuMemcpyBatchAsync,
    .cuMemcpyBatchAsync_v2 = hed_soft_cuMemcpyBatchAsync_v2,
    .cuMemcpy3DBatchAsync = hed_soft_cuMemcpy3DBatchAsync,
    .cuMemcpy3DBatchAsync_v2 = hed_soft_cuMemcpy3DBatchAsync_v2,
    .cuMemsetD8_v2 = hed_soft_cuMemsetD8_v2,
    .cuMemsetD16_v2 = hed_soft_cuMemsetD16_v2,
    .cuMemsetD32_v2 = hed_soft_cuMemsetD32_v2,
    .cuMemsetD2D8_v2 = hed_soft_cuMemsetD2D8_v2,
    .cuMemsetD2D16_v2 = hed_soft_cuMemsetD2D16_v2,
    .cuMemsetD2D32_v2 = hed_soft_cuMemsetD2D32_v2,
    .cuMemsetD8Async = hed_soft_cuMemsetD8Async,
    .cuMemsetD16Async = hed_soft_cuMemsetD16Async,
    .cuMemsetD32Async = hed_soft_cuMemsetD32Async,
    .cuMemsetD2D8Async = hed_soft_cuMemsetD2D8Async,
    .cuMemsetD2D16Async = hed_soft_cuMemsetD2D16Async,
    .cuMemsetD2D32Async = hed_soft_cuMemsetD2D32Async,
};
