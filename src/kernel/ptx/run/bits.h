/* Numbers and their bits, for code that runs on the host. */
#pragma once

#include <stdint.h>
#include <string.h>

static inline float
hed_from_bits32(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof(f));
    return f;
}

static inline uint32_t
hed_to_bits32(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

static inline double
hed_from_bits64(uint64_t bits)
{
    double f;

    memcpy(&f, &bits, sizeof(f));
    return f;
}

static inline uint64_t
hed_to_bits64(double f)
{
    uint64_t bits;

    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

/* The number whose `bits` lower bits are v's, 1 to 64. */
static inline int64_t
hed_sign_extend(uint64_t v, unsigned bits)
{
    return (int64_t)(v << (64 - bits)) >> (64 - bits);
}
