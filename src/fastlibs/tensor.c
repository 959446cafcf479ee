/* See tensor.h. */
#include "fastlibs/tensor.h"

#include <string.h>

#include "base/number.h"
#include "fastlibs/convert.h"

#define PIECE 256 /* numbers of 16 bits, or old values, at a time */

/* ---- sizes ----------------------------------------------------------------------------------- */

uint64_t
hed_tensor_extent(const struct hed_tensor *t, enum hed_product_type type)
{
    uint64_t behind = 1, more;

    for (unsigned i = 0; i < HED_TENSOR_DIMS; i++)
        if (t->size[i] < 1 || t->stride[i] < 0 ||
            __builtin_mul_overflow((uint64_t)t->stride[i], (uint64_t)t->size[i] - 1, &more) ||
            __builtin_add_overflow(behind, more, &behind))
            return 0;
    return __builtin_mul_overflow(behind, (uint64_t)hed_product_size(type), &behind) ? 0 : behind;
}

bool
hed_tensor_is_sound(const struct hed_tensor *t, enum hed_product_type type)
{
    int64_t elements = 1;

    if (!t->data || (uintptr_t)t->data % hed_product_size(type))
        return false;
    for (unsigned i = 0; i < HED_TENSOR_DIMS; i++)
        if (t->size[i] < 1 || t->size[i] > INT32_MAX || t->stride[i] < 0 ||
            __builtin_mul_overflow(elements, t->size[i], &elements) || elements > INT64_MAX / 64)
            return false;
    return hed_tensor_extent(t, type) > 0;
}

bool
hed_tensor_is_apart(const struct hed_tensor *t)
{
    int64_t behind = 0; /* the farthest element among dimensions with smaller strides */
    bool done[HED_TENSOR_DIMS] = {false};

    for (unsigned n = 0; n < HED_TENSOR_DIMS; n++) {
        int least = -1;

        for (int i = 0; i < HED_TENSOR_DIMS; i++)
            if (!done[i] && (least < 0 || t->stride[i] < t->stride[least]))
                least = i;
        done[least] = true;
        if (t->size[least] == 1)
            continue;
        if (t->stride[least] <= behind)
            return false;
        behind += (t->size[least] - 1) * t->stride[least];
    }
    return true;
}

int64_t
hed_tensor_step(const struct hed_tensor *t)
{
    int64_t step = 0, expected = 0;

    for (unsigned i = HED_TENSOR_DIMS; i-- > 2;) {
        if (t->size[i] == 1)
            continue;
        if (t->stride[i] == 0)
            return 0; /* all places are one */
        if (step == 0)
            step = expected = t->stride[i];
        if (t->stride[i] != expected)
            return 0;
        expected *= t->size[i];
    }
    return step ? step : 1;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static void
read_halves(float *to, const uint16_t *from, enum hed_product_type type, int64_t n)
{
    if (type == HED_PRODUCT_F16)
        hed_convert_from_f16(to, from, n);
    else
        hed_convert_from_bf16(to, from, n);
}

void
hed_tensor_read(float *to, const void *from, enum hed_product_type type, int64_t stride, int64_t n)
{
    const float *floats = from;
    const uint16_t *halves = from;
    uint16_t piece[PIECE];

    if (type == HED_PRODUCT_F32 && stride == 1) {
        memcpy(to, floats, (size_t)n * sizeof *to);
    } else if (type == HED_PRODUCT_F32) {
        for (int64_t i = 0; i < n; i++)
            to[i] = floats[i * stride];
    } else if (stride == 1) {
        read_halves(to, halves, type, n);
    } else {
        for (int64_t at = 0; at < n; at += PIECE) {
            const int64_t count = hed_min(n - at, PIECE);

            for (int64_t i = 0; i < count; i++)
                piece[i] = halves[(at + i) * stride];
            read_halves(to + at, piece, type, count);
        }
    }
}

static void
store_run(void *to, enum hed_product_type type, int64_t stride, const float *from, int64_t n)
{
    float *floats = to;
    uint16_t *halves = to, piece[PIECE];

    if (type == HED_PRODUCT_F32) {
        for (int64_t i = 0; i < n; i++)
            floats[i * stride] = from[i];
        return;
    }
    if (type == HED_PRODUCT_F16)
        hed_convert_to_f16(piece, from, n);
    else
        hed_convert_to_bf16(piece, from, n);
    for (int64_t i = 0; i < n; i++)
        halves[i * stride] = piece[i];
}

void
hed_tensor_write(char *to, enum hed_product_type type, int64_t stride, const float *from,
                 double beta, int64_t n)
{
    const int64_t bytes = stride * (int64_t)hed_product_size(type);
    float sum[PIECE];

    if (beta == 0 && type == HED_PRODUCT_F32 && stride == 1) {
        memcpy(to, from, (size_t)n * sizeof *from);
        return;
    }
    for (int64_t at = 0; at < n; at += PIECE) {
        const int64_t count = hed_min(n - at, PIECE);

        if (beta == 0) {
            store_run(to + at * bytes, type, stride, from + at, count);
            continue;
        }
        hed_tensor_read(sum, to + at * bytes, type, stride, count);
        for (int64_t i = 0; i < count; i++)
            sum[i] = from[at + i] + (float)beta * sum[i];
        store_run(to + at * bytes, type, stride, sum, count);
    }
}
