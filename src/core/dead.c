/* The backend of core/dead.h. Error names still work: a program will want to print the error. */
#include "core/dead.h"

#include "core/errors.h"
#include "gen/cuda_sets.h"

static CUresult cuda_answer;
static nvmlReturn_t nvml_answer;

static CUresult
dead_cuda_any(struct hed_layer *self, enum hed_cuda_call id, void *args)
{
    return cuda_answer;
}

static nvmlReturn_t
dead_nvml_any(struct hed_layer *self, enum hed_nvml_call id, void *args)
{
    return nvml_answer;
}

#define CALL(call, function, ...)                                             \
    static CUresult dead_##call(struct hed_layer *self, struct hed_##call *a) \
    {                                                                         \
        return hed_cuda_##function(__VA_ARGS__);                              \
    }

HED_CUDA_OFFLINE(CALL)

#define ENTRY(call, ...) .call = dead_##call,

static const struct hed_cuda_ops dead_cuda = {HED_CUDA_OFFLINE(ENTRY)};

static const struct hed_layer_type dead = {
    .name = "none",
    .cuda = &dead_cuda,
    .cuda_any = dead_cuda_any,
    .nvml_any = dead_nvml_any,
};

struct hed_layer *
hed_dead_layer(CUresult cuda, nvmlReturn_t nvml)
{
    static struct hed_layer_room room; /* static: there may be no memory left */

    cuda_answer = cuda;
    nvml_answer = nvml;
    hed_layer_place(&room, &dead, NULL);
    return &room.layer;
}
