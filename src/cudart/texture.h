/* What texture objects and texture references share. */
#pragma once

#include "cudart/channel.h"

/* Whether texels of a format can be read so. */
cudaError_t hed_rt_check_reading(CUarray_format format, cudaTextureReadMode read,
                                 cudaTextureFilterMode filter);
