/* Copies: checked and resolved into addresses and pitches, then put on a stream. Copies of one row
 * are here; of planes, of arrays and in batches in copy_array.c and copy_batch.c.
 *
 * CUDA's rules about memory that is not pinned (cuda.h, "API synchronization behavior"): a copy to
 * it returns when it is done; one from it returns when it has been read, which for up to 64 KiB
 * never waits for the stream.
 */
#include <stdlib.h>
#include <string.h>

#include "driver/far.h"
#include "driver/memory/array.h"
#include "driver/memory/memory_calls.h"
#include "driver/memory/memory_index.h"
#include "driver/stream/stream.h"
#include "driver/stream/work.h"

#define STAGED_MAX (64u << 10) /* bytes of pageable memory that are read at the call */
#define NO_MANS_LAND 4096      /* no memory is below */

/* One side as the program describes it. */
struct side {
    CUmemorytype type;
    uint64_t at; /* of memory */
    CUarray array;
    size_t x, y, z;       /* bytes, rows, planes */
    size_t pitch, height; /* of memory; 0: as the copied region has */
};

/* What kind of memory a side is. Where work is done elsewhere, it is `here` if the far side does
 * not have it: pageable and registered memory, and pinned memory that is not shared. */
struct nature {
    bool pageable, host, here;
    bool mapped; /* kernels may be told of it */
};

struct resolved {
    struct hed_copy copy;
    struct nature from, to;
};

/* Bytes from the first to the last of a region; false: more than there are. */
static bool
span(const struct hed_copy *c, const struct hed_copy_side *s, uint64_t *out)
{
    uint64_t rows, planes;

    return !__builtin_mul_overflow(s->pitch, c->height - 1, &rows) &&
           !__builtin_mul_overflow(s->slice, c->depth - 1, &planes) &&
           !__builtin_add_overflow(rows, planes, &rows) &&
           !__builtin_add_overflow(rows, c->width, out);
}

/* A host pointer may as well be a device's, as NVIDIA's driver has it. */
static CUresult
resolve_memory(struct hed_driver *d, const struct side *s, const struct hed_copy *c, bool write,
               struct hed_copy_side *out, struct nature *nature)
{
    const struct hed_far *far = d->machine->far;
    uint64_t row, rows, offset, up, bytes;
    struct hed_allocation a;
    bool known;

    if (__builtin_add_overflow(s->x, c->width, &row) ||
        __builtin_add_overflow(s->y, c->height, &rows) || (s->pitch && s->pitch < row) ||
        (s->height && s->height < rows) || s->at < NO_MANS_LAND)
        return CUDA_ERROR_INVALID_VALUE;
    out->pitch = s->pitch ? s->pitch : row;
    if (__builtin_mul_overflow(out->pitch, s->height ? s->height : rows, &out->slice) ||
        __builtin_mul_overflow(out->slice, s->z, &up) ||
        __builtin_mul_overflow(out->pitch, s->y, &offset) ||
        __builtin_add_overflow(offset, up, &offset) ||
        __builtin_add_overflow(offset, s->x, &offset) ||
        __builtin_add_overflow(offset, s->at, &out->at) || !span(c, out, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (!hed_memory_usable(d, out->at, bytes, write, &known, &a))
        return CUDA_ERROR_INVALID_VALUE;
    if (s->type == CU_MEMORYTYPE_DEVICE && !known)
        return CUDA_ERROR_INVALID_VALUE;
    nature->pageable = !known;
    nature->host = !known || a.kind == HED_MEMORY_HOST || a.kind == HED_MEMORY_REGISTERED ||
                   a.kind == HED_MEMORY_MANAGED || !a.device;
    nature->mapped = known && hed_memory_is_mapped(&a);
    nature->here = far && nature->host && !far->shares(d->machine_state, out->at, bytes);
    return CUDA_SUCCESS;
}

static CUresult
resolve_array(struct hed_driver *d, const struct side *s, const struct hed_copy *c,
              struct hed_copy_side *out)
{
    struct hed_array *a = hed_array_find(d, s->array);
    CUresult r = CUDA_ERROR_INVALID_VALUE;

    if (!a)
        return r;

    const struct hed_texels *m = &a->image;
    const uint64_t row = (uint64_t)m->width * a->format.bytes;

    if (s->x <= row && c->width <= row - s->x && s->y <= m->height &&
        c->height <= m->height - s->y && s->z <= m->depth && c->depth <= m->depth - s->z) {
        if (d->machine->far)
            *out =
                (struct hed_copy_side){.array = a->object.handle, .x = s->x, .y = s->y, .z = s->z};
        else
            *out = (struct hed_copy_side){.at = m->at + s->z * m->slice + s->y * m->pitch + s->x,
                                          .pitch = m->pitch,
                                          .slice = m->slice};
        r = CUDA_SUCCESS;
    }
    hed_object_put(&a->object);
    return r;
}

static CUresult
resolve_side(struct hed_driver *d, const struct side *s, const struct hed_copy *c, bool write,
             struct hed_copy_side *out, struct nature *nature)
{
    *nature = (struct nature){0};
    switch (s->type) {
    case CU_MEMORYTYPE_HOST:
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
        return resolve_memory(d, s, c, write, out, nature);
    case CU_MEMORYTYPE_ARRAY:
        return resolve_array(d, s, c, out);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static uint64_t
address(CUmemorytype type, const void *host, CUdeviceptr device)
{
    return type == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)host : device;
}

static CUresult
resolve(struct hed_context *c, const CUDA_MEMCPY3D_v2 *p, struct resolved *out)
{
    const struct side from = {.type = p->srcMemoryType,
                              .at = address(p->srcMemoryType, p->srcHost, p->srcDevice),
                              .array = p->srcArray,
                              .x = p->srcXInBytes,
                              .y = p->srcY,
                              .z = p->srcZ,
                              .pitch = p->srcPitch,
                              .height = p->srcHeight};
    const struct side to = {.type = p->dstMemoryType,
                            .at = address(p->dstMemoryType, p->dstHost, p->dstDevice),
                            .array = p->dstArray,
                            .x = p->dstXInBytes,
                            .y = p->dstY,
                            .z = p->dstZ,
                            .pitch = p->dstPitch,
                            .height = p->dstHeight};
    struct hed_driver *d = c->device->driver;
    struct hed_copy *copy = &out->copy;

    *out = (struct resolved){
        .copy = {.width = p->WidthInBytes, .height = p->Height, .depth = p->Depth, .given = *p}};
    if (p->WidthInBytes == 0 || p->Height == 0 || p->Depth == 0) {
        copy->width = 0;
        return CUDA_SUCCESS;
    }

    CUresult r = resolve_side(d, &from, copy, false, &copy->from, &out->from);

    if (r == CUDA_SUCCESS)
        r = resolve_side(d, &to, copy, true, &copy->to, &out->to);
    return r;
}

CUresult
hed_copy_resolve(struct hed_context *c, const CUDA_MEMCPY3D_v2 *given, struct hed_copy *out)
{
    struct resolved d;
    const CUresult r = resolve(c, given, &d);

    if (r == CUDA_SUCCESS)
        *out = d.copy;
    return r;
}

/* ---- putting a copy on a stream -------------------------------------------------------------- */

/* Reads pageable memory now: rows side by side in memory of the work. False: it is too much. */
static bool
stage(struct hed_copy *c)
{
    const size_t most = STAGED_MAX;

    if (c->width > most || c->height > most / c->width || c->depth > most / c->width / c->height)
        return false;
    c->staged_size = c->width * c->height * c->depth;
    c->staged = malloc(c->staged_size);
    if (!c->staged)
        return false;

    char *at = c->staged;

    for (size_t z = 0; z < c->depth; z++)
        for (size_t y = 0; y < c->height; y++, at += c->width)
            memcpy(at,
                   (const void *)(uintptr_t)(c->from.at + z * c->from.slice + y * c->from.pitch),
                   c->width);
    c->from = (struct hed_copy_side){.at = (uint64_t)(uintptr_t)c->staged,
                                     .pitch = c->width,
                                     .slice = (uint64_t)c->width * c->height};
    return true;
}

static CUresult
submit(struct hed_stream *s, struct hed_context *c, const struct resolved *d, bool waits)
{
    struct hed_work *w = hed_work_create(c, HED_WORK_COPY);

    if (!w)
        return CUDA_ERROR_OUT_OF_MEMORY;
    w->copy = d->copy;
    if (waits)
        return hed_submit_wait(s, w);
    /* Relaxed: the program orders its capture and its copies. A node reads when the graph runs. */
    if (atomic_load_explicit(&s->capture, memory_order_relaxed))
        return hed_submit(s, w);
    if (d->to.pageable || (d->from.pageable && !stage(&w->copy)))
        return hed_submit_wait(s, w);
    return hed_submit(s, w);
}

/* Both sides are memory of this process only: done here, when the stream has come so far. */
static CUresult
copy_here(struct hed_stream *s, const struct hed_copy *c)
{
    const CUresult r = hed_stream_synchronize(s);

    if (r != CUDA_SUCCESS)
        return r;
    for (size_t z = 0; z < c->depth; z++)
        for (size_t y = 0; y < c->height; y++)
            memmove((void *)(uintptr_t)(c->to.at + z * c->to.slice + y * c->to.pitch),
                    (const void *)(uintptr_t)(c->from.at + z * c->from.slice + y * c->from.pitch),
                    c->width);
    return CUDA_SUCCESS;
}

/* The stream is elsewhere. Bytes from pageable memory are taken at the call, so nobody waits for
 * those; neither for a copy from device to device: cuda.h, "API synchronization behavior". */
static CUresult
submit_far(struct hed_stream *s, struct hed_context *c, const struct resolved *d, bool waits)
{
    void *m;
    const struct hed_far *far = hed_far_of(c, &m);

    /* Relaxed: as in submit. */
    if (atomic_load_explicit(&s->capture, memory_order_relaxed) || (!d->from.here && !d->to.here))
        return submit(s, c, d,
                      waits && (d->from.host || d->to.host ||
                                atomic_load_explicit(&s->capture, memory_order_relaxed)));

    CUresult r = hed_submit_allowed(s);

    if (r != CUDA_SUCCESS)
        return r;
    if (d->from.here && d->to.here)
        return copy_here(s, &d->copy);
    hed_far_settle(s);
    /* A kernel behind this one may read it: it is to have it when that is launched. */
    if (d->to.here)
        return far->copy_host(m, s, &d->copy, true, waits || d->to.pageable || d->to.mapped);
    /* What is before it on the stream may still write what is read here. */
    if (d->from.mapped || (!d->from.pageable && far->functions_wait(m)))
        r = hed_stream_synchronize(s);
    if (r != CUDA_SUCCESS)
        return r;
    r = far->copy_host(m, s, &d->copy, false, waits && !d->from.pageable);
    if (r == CUDA_SUCCESS && waits && d->from.pageable)
        hed_far_copied(s);
    return r;
}

CUresult
hed_copy_put(struct hed_layer *self, const struct hed_copy_order *o)
{
    struct resolved d;
    struct hed_context *c;
    struct hed_stream *s;
    CUresult r = hed_current(self, &c);

    if (r == CUDA_SUCCESS)
        r = hed_stream_find(self, o->stream, o->ptds, &s);
    if (r != CUDA_SUCCESS)
        return r;
    r = resolve(c, &o->given, &d);
    if (r == CUDA_SUCCESS && d.copy.width)
        r = c->device->driver->machine->far ? submit_far(s, s->ctx, &d, o->waits)
                                            : submit(s, s->ctx, &d, o->waits);
    hed_stream_put(s);
    return r;
}

CUresult
hed_copy_submit(struct hed_stream *s, const CUDA_MEMCPY3D_v2 *given)
{
    struct hed_context *c = s->ctx;
    struct resolved d;
    const CUresult r = resolve(c, given, &d);

    if (r != CUDA_SUCCESS || d.copy.width == 0)
        return r;
    return c->device->driver->machine->far ? submit_far(s, c, &d, false) : submit(s, c, &d, false);
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
    return hed_copy_put(self,
                        &(struct hed_copy_order){.given = given, .ptds = ptds, .waits = true});
}

static CUresult
copy_row_async(struct hed_layer *self, CUDA_MEMCPY3D_v2 given, CUstream stream, bool ptds)
{
    return hed_copy_put(self,
                        &(struct hed_copy_order){.given = given, .stream = stream, .ptds = ptds});
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

/* NULL stands for the current context, as NVIDIA's driver has it. */
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
