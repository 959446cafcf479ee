/* Names and texts of API results, from the spec. What backends without NVIDIA's driver answer. */
#pragma once

#include "core/export.h"
#include "gen/cuda_abi.h"
#include "gen/nvml_abi.h"

/* cuGetErrorName and cuGetErrorString: "If the error code is not recognized,
 * CUDA_ERROR_INVALID_VALUE will be returned and *pStr will be set to the NULL address." (CUDA
 * Driver API, Error Handling). */
HED_EXPORT CUresult hed_cuda_error_name(CUresult error, const char **out);
HED_EXPORT CUresult hed_cuda_error_text(CUresult error, const char **out);

/* Never NULL. */
HED_EXPORT const char *hed_nvml_error_text(nvmlReturn_t error);

/* The number of a result by name (CUDA_ERROR_OUT_OF_MEMORY) or digits; HED_ENOTFOUND. */
HED_EXPORT int hed_cuda_error_parse(const char *text, CUresult *out);
HED_EXPORT int hed_nvml_error_parse(const char *text, nvmlReturn_t *out);
