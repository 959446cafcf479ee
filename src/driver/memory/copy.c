/* Copies: checked, resolved into addresses and pitches, then put on a stream. Copies of one row are
 * here; copies of planes and arrays are in copy_array.c, batches in copy_batch.c.
 *
 *   a row     the call's addresses ──> struct hed_copy ──> the machine
 *   a box     CUDA_MEMCPY3D_v2 ──hed_copy_resolve()──> struct hed_copy ──> the machine
 *
 * The machine decides what the caller waits for (machine->copy).
 */
#include "driver/memory/array.h"
#include "driver/memory/memory_calls.h"
#include "driver/memory/memory_index.h"
#include "driver/stream/stream.h"
#include "driver/stream/work.h"

#define NO_MANS_LAND 4096 /* there is no memory below this address */

/* Finds out what memory the side, whose address and pitches are known, is. As on NVIDIA's driver, a
 * host pointer may point to device memory. */
static CUresult
resolve_kind(struct hed_driver *d, CUmemorytype type, uint64_t bytes, bool write,
             struct hed_copy_side *side)
{
    struct hed_allocation a;
    bool known;

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

/* The side is as the program describes it: `slice` is the height of a plane in rows, and pitch and
 * slice may be 0, which stands for those of the box. */
static CUresult
resolve_memory(struct hed_driver *d, CUmemorytype type, const struct hed_box *b, bool write,
               struct hed_copy_side *side)
{
    const struct hed_copy_side s = *side;
    uint64_t row, rows, offset, up, bytes;

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
    return resolve_kind(d, type, bytes, write, side);
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

/* Is the stream being captured? Relaxed: the program orders its capture and its copies. */
static bool
is_stream_captured(struct hed_stream *s)
{
    return atomic_load_explicit(&s->capture, memory_order_relaxed);
}

static CUresult
machine_copy(struct hed_stream *s, const struct hed_copy *c, bool waits)
{
    const CUresult r = hed_submit_allowed(s);
    void *m;

    return r == CUDA_SUCCESS ? hed_machine_of(s->ctx, &m)->copy(m, s, c, waits) : r;
}

static CUresult
submit_copy(struct hed_stream *s, struct hed_context *c, const CUDA_MEMCPY3D_v2 *given, bool waits)
{
    struct hed_copy copy;
    const CUresult r = hed_copy_resolve(c, given, &copy);

    if (r != CUDA_SUCCESS || copy.box.width == 0)
        return r;
    return is_stream_captured(s) ? capture_copy(s, &copy, given, waits)
                                 : machine_copy(s, &copy, waits);
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

/* How a row is copied: what the call says its addresses are, and the stream. */
struct row_copy {
    CUmemorytype to, from;
    CUstream stream;
    bool ptds;
    bool waits; /* the call returns when the copy is done */
};

static CUresult
resolve_row(struct hed_driver *d, const struct row_copy *o, struct hed_copy *row)
{
    CUresult r = CUDA_ERROR_INVALID_VALUE;

    if (row->from.at >= NO_MANS_LAND)
        r = resolve_kind(d, o->from, row->box.width, false, &row->from);
    if (r == CUDA_SUCCESS)
        r = row->to.at < NO_MANS_LAND ? CUDA_ERROR_INVALID_VALUE
                                      : resolve_kind(d, o->to, row->box.width, true, &row->to);
    return r;
}

static CUresult
capture_row(struct hed_stream *s, const struct row_copy *o, const struct hed_copy *row)
{
    const CUDA_MEMCPY3D_v2 given =
        hed_copy_row(o->to, row->to.at, o->from, row->from.at, row->box.width);

    return capture_copy(s, row, &given, o->waits);
}

static CUresult
copy_row(struct hed_layer *self, const struct row_copy *o, uint64_t to, uint64_t from, size_t n)
{
    struct hed_copy row = {.from = {.at = from, .pitch = n, .slice = n},
                           .to = {.at = to, .pitch = n, .slice = n},
                           .box = {n, 1, 1}};
    struct hed_context *c;
    struct hed_stream *s;
    CUresult r = hed_stream_begin(self, o->stream, o->ptds, &s, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (n > 0)
        r = resolve_row(c->device->driver, o, &row);
    if (r == CUDA_SUCCESS && n > 0)
        r = is_stream_captured(s) ? capture_row(s, o, &row) : machine_copy(s, &row, o->waits);
    hed_stream_put(s);
    return r;
}

#define ADDRESS(p) ((uint64_t)(uintptr_t)(p))

/* The types of the two addresses, and how the call waits: until the copy is done, or not. */
#define COPY(to_type, from_type, ...)                                                      \
    &(struct row_copy)                                                                     \
    {                                                                                      \
        .to = CU_MEMORYTYPE_##to_type, .from = CU_MEMORYTYPE_##from_type, .ptds = a->ptds, \
        __VA_ARGS__                                                                        \
    }
#define WAITS .waits = true
#define ASYNC .stream = a->hStream

static CUresult
soft_cuMemcpyHtoD_v2(struct hed_layer *self, struct hed_cuMemcpyHtoD_v2 *a)
{
    return copy_row(self, COPY(DEVICE, HOST, WAITS), a->dstDevice, ADDRESS(a->srcHost),
                    a->ByteCount);
}

static CUresult
soft_cuMemcpyDtoH_v2(struct hed_layer *self, struct hed_cuMemcpyDtoH_v2 *a)
{
    return copy_row(self, COPY(HOST, DEVICE, WAITS), ADDRESS(a->dstHost), a->srcDevice,
                    a->ByteCount);
}

static CUresult
soft_cuMemcpyDtoD_v2(struct hed_layer *self, struct hed_cuMemcpyDtoD_v2 *a)
{
    return copy_row(self, COPY(DEVICE, DEVICE, WAITS), a->dstDevice, a->srcDevice, a->ByteCount);
}

static CUresult
soft_cuMemcpy(struct hed_layer *self, struct hed_cuMemcpy *a)
{
    return copy_row(self, COPY(UNIFIED, UNIFIED, WAITS), a->dst, a->src, a->ByteCount);
}

static CUresult
soft_cuMemcpyHtoDAsync_v2(struct hed_layer *self, struct hed_cuMemcpyHtoDAsync_v2 *a)
{
    return copy_row(self, COPY(DEVICE, HOST, ASYNC), a->dstDevice, ADDRESS(a->srcHost),
                    a->ByteCount);
}

static CUresult
soft_cuMemcpyDtoHAsync_v2(struct hed_layer *self, struct hed_cuMemcpyDtoHAsync_v2 *a)
{
    return copy_row(self, COPY(HOST, DEVICE, ASYNC), ADDRESS(a->dstHost), a->srcDevice,
                    a->ByteCount);
}

static CUresult
soft_cuMemcpyDtoDAsync_v2(struct hed_layer *self, struct hed_cuMemcpyDtoDAsync_v2 *a)
{
    return copy_row(self, COPY(DEVICE, DEVICE, ASYNC), a->dstDevice, a->srcDevice, a->ByteCount);
}

static CUresult
soft_cuMemcpyAsync(struct hed_layer *self, struct hed_cuMemcpyAsync *a)
{
    return copy_row(self, COPY(UNIFIED, UNIFIED, ASYNC), a->dst, a->src, a->ByteCount);
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
    return copy_row(self, COPY(DEVICE, DEVICE, WAITS), a->dstDevice, a->srcDevice, a->ByteCount);
}

static CUresult
soft_cuMemcpyPeerAsync(struct hed_layer *self, struct hed_cuMemcpyPeerAsync *a)
{
    if (!is_context(self, a->srcContext) || !is_context(self, a->dstContext))
        return CUDA_ERROR_INVALID_CONTEXT;
    return copy_row(self, COPY(DEVICE, DEVICE, ASYNC), a->dstDevice, a->srcDevice, a->ByteCount);
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
