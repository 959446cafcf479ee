/* The engine of memory limits: it lets a process, or a group of processes, have no more than a
 * limit of each device's memory. The layer `quota` (src/layers/quota) puts it into the chain.
 *
 * The engine has a function for each call that takes, frees, maps or tells of device memory
 * (memory= in the spec). `self` is a layer whose state is the engine. The function makes the call
 * by calling self->next, or refuses it with the error that CUDA has for a device without memory.
 */
#pragma once

#include <stdint.h>

#include "core/layer.h"
#include "gen/cuda_sets.h"
#include "gen/nvml_sets.h"

struct hed_quota;
struct hed_why;

/* Makes an engine with a limit in bytes (0: none). `group` names the processes that share the
 * limit; NULL or "": this process has it alone. */
int hed_quota_create(uint64_t limit, const char *group, struct hed_quota **out,
                     struct hed_why *why);

/* The process ends: it leaves its group. Calls that come later still find the group's memory. */
void hed_quota_fini(struct hed_quota *q);

/* In the child of a fork. */
void hed_quota_forked(struct hed_quota *q);

/* All calls. A class that no part treats is an undefined reference of the layer's table. */
#define QUOTA_DECLARE(call, ...) \
    CUresult hed_quota_##call(struct hed_layer *self, struct hed_##call *a);
HED_CUDA_MEMORY(QUOTA_DECLARE)
#undef QUOTA_DECLARE
#define QUOTA_DECLARE(call, ...) \
    nvmlReturn_t hed_quota_##call(struct hed_layer *self, struct hed_##call *a);
HED_NVML_MEMORY(QUOTA_DECLARE)
#undef QUOTA_DECLARE
