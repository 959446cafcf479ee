/* A copy whose handles and addresses are those of this process, and its bytes as calls of the
 * driver. A row is one call; a box is cut into the largest parts that the memory at hand has room
 * for. See copy.h. */
#include "remote/server/worker/copy.h"

uint64_t
hed_copy_size(const struct hed_copy *c, const struct hed_copy_side *side)
{
    const struct hed_box *b = &c->box;
    uint64_t n;

    if (b->width == 0 || b->height == 0 || b->depth == 0 ||
        __builtin_mul_overflow(b->width, b->height, &n) ||
        __builtin_mul_overflow(n, b->depth, &n) || n > HED_BULK_CHUNK)
        return 0;
    /* The API gives the distance between planes in rows. */
    if (!side->array && b->height * b->depth > 1 &&
        (side->pitch < b->width ||
         (b->depth > 1 && (side->slice % side->pitch || side->slice / side->pitch < b->height))))
        return 0;
    return n;
}

CUresult
hed_copy_open(struct hed_worker_channel *ch, const struct hed_copy_body *b, bool in,
              struct hed_opened_copy *out)
{
    const struct hed_copy_side *side = in ? &b->copy.to : &b->copy.from;
    struct hed_worker *w = ch->worker;
    uint64_t real, span;

    *out = (struct hed_opened_copy){
        .body = b, .side = side, .in = in, .bytes = hed_copy_size(&b->copy, side)};
    if (out->bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (hed_worker_stream(ch, &b->head, &out->stream) != 0)
        return CUDA_ERROR_INVALID_HANDLE;
    if (side->array) {
        if (!hed_name_fits(side->array, "array") ||
            hed_name_real(w->names, side->array, &real) != 0)
            return CUDA_ERROR_INVALID_HANDLE;
        out->array = (CUarray)(uintptr_t)real;
        return CUDA_SUCCESS;
    }
    if (!hed_side_span(side, &b->copy.box, &span) || !hed_memory_reaches(w, side->at, span))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* A part of a copy's box: a box of its own that begins at (x, y, z). */
struct part {
    uint64_t x, y, z;
    struct hed_box box;
};

/* n bytes of one row of memory, at this address. */
static CUresult
copy_row_part(struct hed_worker *w, const struct hed_opened_copy *o, uint64_t at, void *p,
              uint64_t n)
{
    return o->in ? hed_worker_do(w, cuMemcpyHtoDAsync_v2, .dstDevice = at, .srcHost = p,
                                 .ByteCount = n, .hStream = o->stream)
                 : hed_worker_do(w, cuMemcpyDtoHAsync_v2, .dstHost = p, .srcDevice = at,
                                 .ByteCount = n, .hStream = o->stream);
}

static CUresult
copy_part(struct hed_worker *w, const struct hed_opened_copy *o, const struct part *q, void *p)
{
    const struct hed_copy_side *s = o->side;
    const uint64_t at = hed_side_at(s, q->x, q->y, q->z);
    const uint64_t rows =
        o->body->copy.box.depth > 1 && s->pitch ? s->slice / s->pitch : q->box.height;
    CUDA_MEMCPY3D_v2 c = {
        .WidthInBytes = q->box.width, .Height = q->box.height, .Depth = q->box.depth};

    if (!o->array && q->box.height == 1 && q->box.depth == 1)
        return copy_row_part(w, o, at, p, q->box.width);
    if (o->in) {
        c.srcMemoryType = CU_MEMORYTYPE_HOST;
        c.srcHost = p;
        c.srcPitch = q->box.width;
        c.srcHeight = q->box.height;
        c.dstMemoryType = o->array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_DEVICE;
        c.dstArray = o->array;
        c.dstDevice = o->array ? 0 : at;
        c.dstPitch = o->array ? 0 : s->pitch;
        c.dstHeight = o->array ? 0 : rows;
        c.dstXInBytes = o->array ? s->x + q->x : 0;
        c.dstY = o->array ? s->y + q->y : 0;
        c.dstZ = o->array ? s->z + q->z : 0;
    } else {
        c.dstMemoryType = CU_MEMORYTYPE_HOST;
        c.dstHost = p;
        c.dstPitch = q->box.width;
        c.dstHeight = q->box.height;
        c.srcMemoryType = o->array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_DEVICE;
        c.srcArray = o->array;
        c.srcDevice = o->array ? 0 : at;
        c.srcPitch = o->array ? 0 : s->pitch;
        c.srcHeight = o->array ? 0 : rows;
        c.srcXInBytes = o->array ? s->x + q->x : 0;
        c.srcY = o->array ? s->y + q->y : 0;
        c.srcZ = o->array ? s->z + q->z : 0;
    }
    return hed_worker_do(w, cuMemcpy3DAsync_v2, .pCopy = &c, .hStream = o->stream);
}

/* The largest part that begins at byte `from` and has at most n bytes: complete planes, complete
 * rows, or a part of a row. */
static struct part
part_at(const struct hed_box *b, uint64_t from, uint64_t n)
{
    const uint64_t plane = b->width * b->height;
    struct part q = {.x = from % b->width,
                     .y = from / b->width % b->height,
                     .z = from / plane,
                     .box = {b->width, b->height, 1}};

    if (q.x == 0 && q.y == 0 && n >= plane) {
        q.box.depth = n / plane;
    } else if (q.x == 0 && n >= b->width) {
        q.box.height = n / b->width < b->height - q.y ? n / b->width : b->height - q.y;
    } else {
        q.box.width = n < b->width - q.x ? n : b->width - q.x;
        q.box.height = 1;
    }
    return q;
}

CUresult
hed_copy_bytes(struct hed_worker *w, const struct hed_opened_copy *c, uint64_t from, void *p,
               uint64_t n)
{
    const struct hed_box *box = &c->body->copy.box;
    CUresult r = CUDA_SUCCESS;

    if (!c->array && box->height == 1 && box->depth == 1)
        return copy_row_part(w, c, c->side->at + from, p, n);
    while (n > 0 && r == CUDA_SUCCESS) {
        const struct part q = part_at(box, from, n);
        const uint64_t bytes = hed_box_bytes(&q.box);

        r = copy_part(w, c, &q, p);
        p = (char *)p + bytes;
        from += bytes;
        n -= bytes;
    }
    return r;
}
