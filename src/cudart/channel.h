/* Formats of texels: how the runtime describes them, and how the driver does. */
#pragma once

#include <stdbool.h>

#include "gen/cudart_abi.h"
#include "gen/cudart_driver.h"

/* A driver's format and the number of channels. */
struct hed_rt_texel {
    CUarray_format format;
    unsigned channels;
};

/* cudaErrorInvalidChannelDescriptor: there is no such format. */
cudaError_t hed_rt_texel(const cudaChannelFormatDesc *desc, struct hed_rt_texel *out);

/* All zero if the runtime has no name for the format. */
cudaChannelFormatDesc hed_rt_channels(CUarray_format format, unsigned channels);

/* How textures may read a format. */
bool hed_rt_is_integer(CUarray_format format);    /* of 8, 16 or 32 bits */
bool hed_rt_is_wide(CUarray_format format);       /* an integer of 32 bits */
bool hed_rt_is_normalized(CUarray_format format); /* integers that stand for 0 to 1, or -1 to 1 */
