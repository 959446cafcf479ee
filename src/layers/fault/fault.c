/* The fault layer: makes the n-th call of a name fail with a given error, to test the layers above
 * it and programs: what does my code do when the third allocation fails?
 *
 *     HEDDLE_FAULT=cuMemAlloc_v2:3:CUDA_ERROR_OUT_OF_MEMORY,cuLaunchKernel:*:700
 *
 * core/fault.h describes the rules. A call that fails this way does not reach the layer below.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/err.h"
#include "core/config.h"
#include "core/fault.h"
#include "core/layer.h"
#include "core/stats.h"

struct fault {
    struct hed_fault_rule rules[HED_FAULT_RULES];
    _Atomic uint64_t seen[HED_FAULT_RULES]; /* calls that each rule has seen */
    size_t count;
};

/* The result to fail a call with, or 0. */
static int32_t
planned_result(struct fault *f, enum hed_api api, uint32_t call)
{
    int32_t result = 0;

    for (size_t i = 0; i < f->count; i++) {
        const struct hed_fault_rule *r = &f->rules[i];

        if (r->api != api || r->call != call)
            continue;

        const uint64_t n = atomic_fetch_add_explicit(&f->seen[i], 1, memory_order_relaxed) + 1;

        if (!result && (r->n == HED_FAULT_EVERY || r->n == n))
            result = r->result;
    }
    if (result)
        hed_stats_add(&hed_stats.faults_injected, 1);
    return result;
}

static CUresult
fault_cuda_any(struct hed_layer *self, enum hed_cuda_call id, void *args)
{
    const int32_t result = planned_result(self->state, HED_API_CUDA, id);

    return result ? (CUresult)result : hed_cuda_invoke(self->next, id, args);
}

static nvmlReturn_t
fault_nvml_any(struct hed_layer *self, enum hed_nvml_call id, void *args)
{
    const int32_t result = planned_result(self->state, HED_API_NVML, id);

    return result ? (nvmlReturn_t)result : hed_nvml_invoke(self->next, id, args);
}

static int
fault_init(struct hed_layer *self, const struct hed_config *config, struct hed_why *why)
{
    struct fault *f = calloc(1, sizeof *f);
    const int err = f ? hed_fault_parse(config->fault, f->rules, &f->count, why) : HED_ENOMEM;

    if (err) {
        free(f);
        return err;
    }
    self->state = f;
    return 0;
}

const struct hed_layer_type hed_fault_layer = {
    .name = "fault",
    .cuda_any = fault_cuda_any,
    .nvml_any = fault_nvml_any,
    .init = fault_init,
};
