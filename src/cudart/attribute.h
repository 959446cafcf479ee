/* Attributes of streams, kernel nodes and launches. A value is a union, of which older programs
 * have a smaller one: only the bytes of the attribute are read and written. */
#pragma once

#include <stddef.h>

#include "gen/cuda_abi.h"
#include "gen/cudart_abi.h"

/* Bytes of an attribute's value; 0: it is none that we know. */
size_t hed_rt_attribute_size(cudaLaunchAttributeID attr);

/* What has an attribute. Editions know different ones. */
enum hed_rt_attribute_of { HED_RT_OF_STREAM, HED_RT_OF_NODE };

/* The value as the driver takes it. cudaErrorInvalidValue: NULL, or an attribute that the edition
 * does not know for it. */
cudaError_t hed_rt_attribute_in(enum hed_rt_attribute_of of, cudaLaunchAttributeID attr,
                                const cudaLaunchAttributeValue *value, CUlaunchAttributeValue *out);

/* The driver's value for the program. The same errors. */
cudaError_t hed_rt_attribute_out(enum hed_rt_attribute_of of, cudaLaunchAttributeID attr,
                                 const CUlaunchAttributeValue *value,
                                 cudaLaunchAttributeValue *out);
