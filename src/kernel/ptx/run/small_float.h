/* Floating point of 16 and 8 bits, for code that runs on the host. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernel/ptx/run/bits.h"

static inline float
hed_from_f16(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    const uint32_t exponent = h >> 10 & 31;
    const uint32_t fraction = h & 0x3ff;

    if (exponent == 31)
        return hed_from_bits32(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0) /* fraction * 2^-24 */
        return hed_from_bits32(sign | hed_to_bits32((float)fraction * 0x1p-24f));
    return hed_from_bits32(sign | (exponent + 112) << 23 | fraction << 13);
}

/* To nearest even; every NaN becomes the one that NVIDIA's hardware makes. */
static inline uint16_t
hed_to_f16(float f)
{
    const uint32_t bits = hed_to_bits32(f);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    const uint32_t size = bits & 0x7fffffff;

    if (size > 0x7f800000)
        return 0x7fff;
    if (size >= 0x477ff000) /* 65520 and more */
        return sign | 0x7c00;
    if (size < 0x38800000) { /* below 2^-14: adding 0.5 leaves the result in the low bits */
        const float rounded = hed_from_bits32(size) + 0.5f;

        return sign | (uint16_t)(hed_to_bits32(rounded) - 0x3f000000);
    }
    return sign | (uint16_t)((size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13);
}

static inline float
hed_from_e4m3(uint8_t v)
{
    const uint32_t sign = (uint32_t)(v & 0x80) << 24;
    const uint32_t exponent = v >> 3 & 15;
    const uint32_t fraction = v & 7;

    if ((v & 0x7f) == 0x7f)
        return hed_from_bits32(0x7fffffff);
    if (exponent == 0) /* fraction * 2^-9 */
        return hed_from_bits32(sign | hed_to_bits32((float)fraction * 0x1p-9f));
    return hed_from_bits32(sign | (exponent + 120) << 23 | fraction << 20);
}
