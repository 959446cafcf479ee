/* Sizes of the elements of CUDA arrays, by format. */
#pragma once

#include <stdint.h>

#include "gen/cuda_abi.h"

/* Bytes of one channel of a format that has any number of channels; 0 for all other formats. */
static inline unsigned
hed_array_channel_bytes(CUarray_format format)
{
    switch ((int)format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4;
    default:
        return 0;
    }
}

/* Bytes of an element, for charging memory: an upper bound for formats with planes or blocks. */
static inline uint64_t
hed_array_element_bytes(CUarray_format format, unsigned channels)
{
    const unsigned bytes = hed_array_channel_bytes(format);

    if (bytes)
        return (uint64_t)bytes * (channels ? channels : 1);
    switch ((int)format) {
    case CU_AD_FORMAT_UNORM_INT16X4:
    case CU_AD_FORMAT_SNORM_INT16X4:
    case CU_AD_FORMAT_Y416:
        return 8;
    default:
        /* BC takes a byte or less, colours in one word take 4, video 2 to 6 in all planes. */
        return format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_BC7_UNORM_SRGB ? 1 : 6;
    }
}
