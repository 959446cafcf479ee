/* Names and texts of API results. */
#include "core/errors.h"

#include <stddef.h>

#include "base/err.h"
#include "base/names.h"
#include "base/str.h"
#include "gen/cuda_names.h"
#include "gen/nvml_names.h"

static const struct hed_enum *
cuda_results(void)
{
    return hed_enums_find(hed_cuda_enums, hed_cuda_enum_count, "CUresult");
}

static const struct hed_enum *
nvml_results(void)
{
    return hed_enums_find(hed_nvml_enums, hed_nvml_enum_count, "nvmlReturn_t");
}

CUresult
hed_cuda_error_name(CUresult error, const char **out)
{
    const struct hed_enum_value *v = hed_enum_find(cuda_results(), (int32_t)error);

    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = v ? v->name : NULL;
    return v ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult
hed_cuda_error_text(CUresult error, const char **out)
{
    const struct hed_enum_value *v = hed_enum_find(cuda_results(), (int32_t)error);

    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = !v ? NULL : v->text ? v->text : v->name;
    return v ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

const char *
hed_nvml_error_text(nvmlReturn_t error)
{
    const struct hed_enum_value *v = hed_enum_find(nvml_results(), (int32_t)error);

    return !v ? "Unknown Error" : v->text ? v->text : v->name;
}

static int
parse_error(const struct hed_enum *e, const char *text, int32_t *out)
{
    const struct hed_enum_value *v = hed_enum_find_name(e, text);
    uint64_t n;

    if (!v && !hed_parse_u64(text, &n) && n <= INT32_MAX)
        v = hed_enum_find(e, (int32_t)n);
    if (!v)
        return HED_ENOTFOUND;
    *out = v->value;
    return 0;
}

int
hed_cuda_error_parse(const char *text, CUresult *out)
{
    int32_t n;
    const int err = parse_error(cuda_results(), text, &n);

    if (!err)
        *out = (CUresult)n;
    return err;
}

int
hed_nvml_error_parse(const char *text, nvmlReturn_t *out)
{
    int32_t n;
    const int err = parse_error(nvml_results(), text, &n);

    if (!err)
        *out = (nvmlReturn_t)n;
    return err;
}
