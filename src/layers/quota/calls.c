/* The table of calls (layers/quota/quota.h). The spec says of each call that has to do with device
 * memory which class it is of, and which arguments play which role there (memory=). A class without
 * a function is an undefined reference. */
#include "gen/cuda_sets.h"
#include "gen/nvml_sets.h"
#include "layers/quota/quota.h"

#define CUDA_CALL(call, class, ...)                                                              \
    static CUresult quota_##call(struct hed_layer *self, struct hed_##call *a)                   \
    {                                                                                            \
        return quota_do_##class(self,                                                            \
                                &(struct quota_call){.id = HED_##call, .args = a, __VA_ARGS__}); \
    }

HED_CUDA_MEMORY(CUDA_CALL)

#define NVML_CALL(call, class, ...)                                                     \
    static nvmlReturn_t quota_##call(struct hed_layer *self, struct hed_##call *a)      \
    {                                                                                   \
        return quota_do_##class(                                                        \
            self, &(struct quota_nvml_call){.id = HED_##call, .args = a, __VA_ARGS__}); \
    }

HED_NVML_MEMORY(NVML_CALL)

#define ENTRY(call, ...) .call = quota_##call,

const struct hed_cuda_ops quota_cuda = {HED_CUDA_MEMORY(ENTRY)};
const struct hed_nvml_ops quota_nvml = {HED_NVML_MEMORY(ENTRY)};
