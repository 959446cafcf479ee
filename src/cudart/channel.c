/* Formats of texels: see channel.h. */
#include "cudart/channel.h"

#include <stddef.h>

/* Formats whose kind says all: the bits of their channels are only checked. */
static const struct {
    cudaChannelFormatDesc desc;
    CUarray_format format;
} special_formats[] = {
    {{8, 8, 8, 0, cudaChannelFormatKindNV12}, CU_AD_FORMAT_NV12},
    {{8, 0, 0, 0, cudaChannelFormatKindUnsignedNormalized8X1}, CU_AD_FORMAT_UNORM_INT8X1},
    {{8, 8, 0, 0, cudaChannelFormatKindUnsignedNormalized8X2}, CU_AD_FORMAT_UNORM_INT8X2},
    {{8, 8, 8, 8, cudaChannelFormatKindUnsignedNormalized8X4}, CU_AD_FORMAT_UNORM_INT8X4},
    {{16, 0, 0, 0, cudaChannelFormatKindUnsignedNormalized16X1}, CU_AD_FORMAT_UNORM_INT16X1},
    {{16, 16, 0, 0, cudaChannelFormatKindUnsignedNormalized16X2}, CU_AD_FORMAT_UNORM_INT16X2},
    {{16, 16, 16, 16, cudaChannelFormatKindUnsignedNormalized16X4}, CU_AD_FORMAT_UNORM_INT16X4},
    {{8, 0, 0, 0, cudaChannelFormatKindSignedNormalized8X1}, CU_AD_FORMAT_SNORM_INT8X1},
    {{8, 8, 0, 0, cudaChannelFormatKindSignedNormalized8X2}, CU_AD_FORMAT_SNORM_INT8X2},
    {{8, 8, 8, 8, cudaChannelFormatKindSignedNormalized8X4}, CU_AD_FORMAT_SNORM_INT8X4},
    {{16, 0, 0, 0, cudaChannelFormatKindSignedNormalized16X1}, CU_AD_FORMAT_SNORM_INT16X1},
    {{16, 16, 0, 0, cudaChannelFormatKindSignedNormalized16X2}, CU_AD_FORMAT_SNORM_INT16X2},
    {{16, 16, 16, 16, cudaChannelFormatKindSignedNormalized16X4}, CU_AD_FORMAT_SNORM_INT16X4},
    {{8, 8, 8, 8, cudaChannelFormatKindUnsignedBlockCompressed1}, CU_AD_FORMAT_BC1_UNORM},
    {{8, 8, 8, 8, cudaChannelFormatKindUnsignedBlockCompressed1SRGB}, CU_AD_FORMAT_BC1_UNORM_SRGB},
    {{8, 8, 8, 8, cudaChannelFormatKindUnsignedBlockCompressed2}, CU_AD_FORMAT_BC2_UNORM},
    {{8, 8, 8, 8, cudaChannelFormatKindUnsignedBlockCompressed2SRGB}, CU_AD_FORMAT_BC2_UNORM_SRGB},
    {{8, 8, 8, 8, cudaChannelFormatKindUnsignedBlockCompressed3}, CU_AD_FORMAT_BC3_UNORM},
    {{8, 8, 8, 8, cudaChannelFormatKindUnsignedBlockCompressed3SRGB}, CU_AD_FORMAT_BC3_UNORM_SRGB},
    {{8, 0, 0, 0, cudaChannelFormatKindUnsignedBlockCompressed4}, CU_AD_FORMAT_BC4_UNORM},
    {{8, 0, 0, 0, cudaChannelFormatKindSignedBlockCompressed4}, CU_AD_FORMAT_BC4_SNORM},
    {{8, 8, 0, 0, cudaChannelFormatKindUnsignedBlockCompressed5}, CU_AD_FORMAT_BC5_UNORM},
    {{8, 8, 0, 0, cudaChannelFormatKindSignedBlockCompressed5}, CU_AD_FORMAT_BC5_SNORM},
    {{16, 16, 16, 0, cudaChannelFormatKindUnsignedBlockCompressed6H}, CU_AD_FORMAT_BC6H_UF16},
    {{16, 16, 16, 0, cudaChannelFormatKindSignedBlockCompressed6H}, CU_AD_FORMAT_BC6H_SF16},
    {{8, 8, 8, 8, cudaChannelFormatKindUnsignedBlockCompressed7}, CU_AD_FORMAT_BC7_UNORM},
    {{8, 8, 8, 8, cudaChannelFormatKindUnsignedBlockCompressed7SRGB}, CU_AD_FORMAT_BC7_UNORM_SRGB},
    {{10, 10, 10, 2, cudaChannelFormatKindUnsignedNormalized1010102},
     CU_AD_FORMAT_UNORM_INT_101010_2},
};

/* Formats of equal channels, of which there are 1, 2 or 4. */
static const struct {
    cudaChannelFormatKind kind;
    int bits;
    CUarray_format format;
} plain_formats[] = {
    {cudaChannelFormatKindSigned, 8, CU_AD_FORMAT_SIGNED_INT8},
    {cudaChannelFormatKindSigned, 16, CU_AD_FORMAT_SIGNED_INT16},
    {cudaChannelFormatKindSigned, 32, CU_AD_FORMAT_SIGNED_INT32},
    {cudaChannelFormatKindUnsigned, 8, CU_AD_FORMAT_UNSIGNED_INT8},
    {cudaChannelFormatKindUnsigned, 16, CU_AD_FORMAT_UNSIGNED_INT16},
    {cudaChannelFormatKindUnsigned, 32, CU_AD_FORMAT_UNSIGNED_INT32},
    {cudaChannelFormatKindFloat, 16, CU_AD_FORMAT_HALF},
    {cudaChannelFormatKindFloat, 32, CU_AD_FORMAT_FLOAT},
};

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static unsigned
texel_channels(const cudaChannelFormatDesc *d)
{
    return (unsigned)((d->x != 0) + (d->y != 0) + (d->z != 0) + (d->w != 0));
}

cudaError_t
hed_rt_texel(const cudaChannelFormatDesc *desc, struct hed_rt_texel *out)
{
    const unsigned n = texel_channels(desc);
    const int bits[] = {desc->x, desc->y, desc->z, desc->w};

    for (size_t i = 0; i < COUNT(special_formats); i++) {
        const cudaChannelFormatDesc *d = &special_formats[i].desc;

        if (d->f == desc->f && d->x == desc->x && d->y == desc->y && d->z == desc->z &&
            d->w == desc->w) {
            *out = (struct hed_rt_texel){special_formats[i].format, n};
            return cudaSuccess;
        }
    }
    if (n != 1 && n != 2 && n != 4)
        return cudaErrorInvalidChannelDescriptor;
    for (unsigned i = 0; i < 4; i++)
        if (bits[i] != (i < n ? desc->x : 0))
            return cudaErrorInvalidChannelDescriptor;
    for (size_t i = 0; i < COUNT(plain_formats); i++)
        if (plain_formats[i].kind == desc->f && plain_formats[i].bits == desc->x) {
            *out = (struct hed_rt_texel){plain_formats[i].format, n};
            return cudaSuccess;
        }
    return cudaErrorInvalidChannelDescriptor;
}

cudaChannelFormatDesc
hed_rt_channels(CUarray_format format, unsigned channels)
{
    for (size_t i = 0; i < COUNT(special_formats); i++)
        if (special_formats[i].format == format)
            return special_formats[i].desc;
    for (size_t i = 0; i < COUNT(plain_formats); i++)
        if (plain_formats[i].format == format) {
            const int bits = plain_formats[i].bits;

            return (cudaChannelFormatDesc){bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0,
                                           channels > 3 ? bits : 0, plain_formats[i].kind};
        }
    return (cudaChannelFormatDesc){0, 0, 0, 0, cudaChannelFormatKindSigned};
}

bool
hed_rt_is_wide(CUarray_format format)
{
    return format == CU_AD_FORMAT_SIGNED_INT32 || format == CU_AD_FORMAT_UNSIGNED_INT32;
}

bool
hed_rt_is_integer(CUarray_format format)
{
    return hed_rt_is_wide(format) || format == CU_AD_FORMAT_SIGNED_INT8 ||
           format == CU_AD_FORMAT_SIGNED_INT16 || format == CU_AD_FORMAT_UNSIGNED_INT8 ||
           format == CU_AD_FORMAT_UNSIGNED_INT16;
}

bool
hed_rt_is_normalized(CUarray_format format)
{
    return format >= CU_AD_FORMAT_UNORM_INT8X1 && format <= CU_AD_FORMAT_SNORM_INT16X4;
}
