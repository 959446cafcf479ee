/* The counters of core/stats.h. */
#include "core/stats.h"

#include <stdbool.h>

#include "base/log.h"
#include "core/refusal.h"
#include "gen/cuda_calls.h"
#include "gen/nvml_calls.h"

struct hed_stats hed_stats;

static _Atomic bool cuda_named[HED_CUDA_CALLS];
static _Atomic bool nvml_named[HED_NVML_CALLS];

void
hed_stats_unsupported(enum hed_api api, uint32_t id, const char *who)
{
    const struct hed_call_info *info = hed_call_info(api, id);

    hed_stats_add(&hed_stats.unsupported_calls, 1);
    if (!info)
        return;

    _Atomic bool *named = api == HED_API_CUDA ? &cuda_named[id] : &nvml_named[id];

    if (atomic_exchange_explicit(named, true, memory_order_relaxed)) {
        if (api == HED_API_CUDA)
            hed_refused_again("%s is not supported by %s", info->name, who);
        return;
    }
    hed_warn(CORE, "%s is not supported by %s", info->name, who);
    /* Many GPUs answer questions of NVML so, and nothing that a program computes depends on it. */
    if (api == HED_API_CUDA)
        hed_refused("%s is not supported by %s", info->name, who);
}
