/* Finding calls by number and by name. */
#include "core/call.h"

#include <string.h>

#include "gen/cuda_calls.h"
#include "gen/nvml_calls.h"

static const struct {
    const struct hed_call_info *calls;
    uint32_t count; /* one more than the largest number */
} apis[HED_API_COUNT] = {
    [HED_API_CUDA] = {hed_cuda_info, HED_CUDA_CALLS},
    [HED_API_NVML] = {hed_nvml_info, HED_NVML_CALLS},
};

const struct hed_call_info *
hed_call_info(enum hed_api api, uint32_t id)
{
    if ((unsigned)api >= HED_API_COUNT || id >= apis[api].count || !apis[api].calls[id].name)
        return NULL;
    return &apis[api].calls[id];
}

uint32_t
hed_call_find(enum hed_api api, const char *name)
{
    for (uint32_t id = 1; (unsigned)api < HED_API_COUNT && id < apis[api].count; id++)
        if (strcmp(apis[api].calls[id].name, name) == 0)
            return id;
    return 0;
}
