/* Fills: memory set to one value of 1, 2 or 4 bytes, in rows. */
#include "driver/memory/memory_calls.h"

#include "driver/graph/graph.h"
#include "driver/memory/memory_index.h"
#include "driver/stream/stream.h"
#include "driver/stream/work.h"

/* How many bytes there are from the first to the last; 0 if the fill makes no sense. */
static uint64_t
fill_span(const struct hed_fill *f)
{
    uint64_t row, bytes;

    /* The pitch of a single row does not matter. */
    if (f->to % f->size || __builtin_mul_overflow(f->width, f->size, &row) ||
        (f->height > 1 && (f->pitch < row || f->pitch % f->size)) ||
        __builtin_mul_overflow(f->height > 1 ? f->pitch : 0, f->height - 1, &bytes) ||
        __builtin_add_overflow(bytes, row, &bytes))
        return 0;
    return bytes;
}

/* Fills in *out. A fill of nothing has no width, and needs no memory. */
static CUresult
describe_fill(uint64_t to, uint64_t pitch, uint32_t value, unsigned element, size_t width,
              size_t height, struct hed_fill *out)
{
    *out = (struct hed_fill){.to = to,
                             .pitch = pitch,
                             .value = value,
                             .size = element,
                             .width = height ? width : 0,
                             .height = height};
    if (element != 1 && element != 2 && element != 4)
        return CUDA_ERROR_INVALID_VALUE;
    return out->width == 0 || fill_span(out) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool
hed_fill_fits(struct hed_driver *d, const struct hed_fill *f)
{
    bool known;

    return f->width == 0 ||
           (hed_memory_usable(d, f->to, fill_span(f), true, &known, NULL) && known);
}

CUresult
hed_fill_resolve(struct hed_context *c, uint64_t to, uint64_t pitch, uint32_t value,
                 unsigned element, size_t width, size_t height, struct hed_fill *out)
{
    const CUresult r = describe_fill(to, pitch, value, element, width, height, out);

    if (r != CUDA_SUCCESS)
        return r;
    return hed_fill_fits(c->device->driver, out) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- calls ----------------------------------------------------------------------------------- */

struct fill_call {
    uint64_t to, pitch;
    uint32_t value;
    unsigned element;
    size_t width, height;
    CUstream stream;
    bool ptds;
};

/* CUDA's fills of device memory return before they are done, whatever their name suggests. Captured
 * ones need no memory yet: cuDNN captures work on memory that is still to be allocated, to look at
 * the nodes. */
static CUresult
fill_memory(struct hed_layer *self, const struct fill_call *o)
{
    struct hed_fill f;
    struct hed_stream *s;
    CUresult r = hed_stream_begin(self, o->stream, o->ptds, &s, NULL);

    if (r != CUDA_SUCCESS)
        return r;
    r = describe_fill(o->to, o->pitch, o->value, o->element, o->width, o->height, &f);
    f.unplaced = r == CUDA_SUCCESS && !hed_fill_fits(s->ctx->device->driver, &f);
    /* Acquire: pairs with the release where the capture begins. */
    if (f.unplaced && !atomic_load_explicit(&s->capture, memory_order_acquire))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS && f.width) {
        struct hed_work *w = hed_work_create(s->ctx, HED_WORK_FILL);

        if (w)
            w->fill = f;
        if (!w)
            r = CUDA_ERROR_OUT_OF_MEMORY;
        else if (f.unplaced) /* even if the capture has just ended: it must not run */
            r = hed_capture_add(s, w);
        else
            r = hed_submit(s, w);
    }
    hed_stream_put(s);
    return r;
}

/* The calls differ in the name and the size of their value. The stream is NULL for calls that name
 * none. */
#define FILL(call, member, bytes, on, row_pitch, row_width, rows) \
    HED_SOFT(call)                                                \
    {                                                             \
        return fill_memory(self, &(struct fill_call){             \
                                     .to = a->dstDevice,          \
                                     .pitch = (row_pitch),        \
                                     .value = a->member,          \
                                     .element = (bytes),          \
                                     .width = (row_width),        \
                                     .height = (rows),            \
                                     .stream = (on),              \
                                     .ptds = a->ptds,             \
                                 });                              \
    }

#define FILL_ROW(call, member, bytes, on) FILL(call, member, bytes, on, 0, a->N, 1)
#define FILL_PLANE(call, member, bytes, on) \
    FILL(call, member, bytes, on, a->dstPitch, a->Width, a->Height)

FILL_ROW(cuMemsetD8_v2, uc, 1, NULL)
FILL_ROW(cuMemsetD16_v2, us, 2, NULL)
FILL_ROW(cuMemsetD32_v2, ui, 4, NULL)
FILL_ROW(cuMemsetD8Async, uc, 1, a->hStream)
FILL_ROW(cuMemsetD16Async, us, 2, a->hStream)
FILL_ROW(cuMemsetD32Async, ui, 4, a->hStream)
FILL_PLANE(cuMemsetD2D8_v2, uc, 1, NULL)
FILL_PLANE(cuMemsetD2D16_v2, us, 2, NULL)
FILL_PLANE(cuMemsetD2D32_v2, ui, 4, NULL)
FILL_PLANE(cuMemsetD2D8Async, uc, 1, a->hStream)
FILL_PLANE(cuMemsetD2D16Async, us, 2, a->hStream)
FILL_PLANE(cuMemsetD2D32Async, ui, 4, a->hStream)
