/* Fills: memory set to one value of 1, 2 or 4 bytes, in rows. */
#include "driver/memory/memory_calls.h"

#include "driver/memory/memory_index.h"
#include "driver/stream/stream.h"
#include "driver/stream/work.h"

CUresult
hed_fill_resolve(struct hed_context *c, uint64_t to, uint64_t pitch, uint32_t value,
                 unsigned element, size_t width, size_t height, struct hed_fill *out)
{
    uint64_t row, bytes;
    bool known;

    *out = (struct hed_fill){.to = to,
                             .pitch = pitch,
                             .value = value,
                             .size = element,
                             .width = width,
                             .height = height};
    if (element != 1 && element != 2 && element != 4)
        return CUDA_ERROR_INVALID_VALUE;
    if (width == 0 || height == 0) {
        out->width = 0;
        return CUDA_SUCCESS;
    }
    /* The pitch of a single row does not matter. */
    if (to % element || __builtin_mul_overflow(width, element, &row) ||
        (height > 1 && (pitch < row || pitch % element)) ||
        __builtin_mul_overflow(height > 1 ? pitch : 0, height - 1, &bytes) ||
        __builtin_add_overflow(bytes, row, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (!hed_memory_usable(c->device->driver, to, bytes, true, &known, NULL) || !known)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
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

/* CUDA's fills of device memory return before they are done, whatever their name suggests. */
static CUresult
fill_memory(struct hed_layer *self, const struct fill_call *o)
{
    struct hed_fill f;
    struct hed_context *c;
    struct hed_stream *s;
    CUresult r = hed_stream_begin(self, o->stream, o->ptds, &s, &c);

    if (r != CUDA_SUCCESS)
        return r;
    r = hed_fill_resolve(c, o->to, o->pitch, o->value, o->element, o->width, o->height, &f);
    if (r == CUDA_SUCCESS && f.width) {
        struct hed_work *w = hed_work_create(s->ctx, HED_WORK_FILL);

        if (w)
            w->fill = f;
        r = w ? hed_submit(s, w) : CUDA_ERROR_OUT_OF_MEMORY;
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
