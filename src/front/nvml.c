/* libnvidia-ml.so.1: the entry point that cannot be generated. */
#include "core/errors.h"
#include "core/layer.h"
#include "core/session.h"

const char *nvmlErrorString(nvmlReturn_t result);

/* NVIDIA's own texts if its library is there, otherwise ours. The function returns no result, so
 * layers do not see it. */
HED_EXPORT const char *
nvmlErrorString(nvmlReturn_t result)
{
    struct hed_layer *backend = hed_session_backend();
    const char *(*theirs)(nvmlReturn_t) = NULL;

    if (backend->type->symbol)
        *(void **)&theirs = backend->type->symbol(backend, HED_API_NVML, "nvmlErrorString");
    return theirs ? theirs(result) : hed_nvml_error_text(result);
}
