/* See convert.h. Each loop is plain integer and float arithmetic without a branch, which the
 * compiler turns into vectors of the widest kind that the processor has. */
#include "fastlibs/convert.h"

#include <string.h>

#include "base/clones.h"

static inline float
float_of_bits(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t
bits_of_float(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return bits;
}

HED_CLONES void
hed_convert_from_f16(float *to, const uint16_t *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const uint32_t h = from[i];
        /* The exponent is moved by a multiplication, which also does what subnormal numbers need.
         * Only infinity and NaN must have all bits of the exponent. */
        const uint32_t size = bits_of_float(float_of_bits((h & 0x7fff) << 13) * 0x1p112f);
        const uint32_t all = (h & 0x7c00) == 0x7c00 ? 0x7f800000 : 0;

        to[i] = float_of_bits((h & 0x8000) << 16 | size | all);
    }
}

HED_CLONES void
hed_convert_from_bf16(float *to, const uint16_t *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = float_of_bits((uint32_t)from[i] << 16);
}

HED_CLONES void
hed_convert_to_f16(uint16_t *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = bits_of_float(from[i]);
        const uint32_t size = bits & 0x7fffffff;
        /* Below 2^-14, adding 0.5 leaves the rounded result in the low bits. */
        const uint32_t small = bits_of_float(float_of_bits(size) + 0.5f) - 0x3f000000;
        const uint32_t normal = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
        const uint32_t large = size > 0x7f800000 ? 0x7fff : 0x7c00;
        const uint32_t h = size < 0x38800000 ? small : size < 0x477ff000 ? normal : large;

        to[i] = (uint16_t)((bits >> 16 & 0x8000) | h);
    }
}

HED_CLONES void
hed_convert_to_bf16(uint16_t *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = bits_of_float(from[i]);
        const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;

        to[i] = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded);
    }
}
