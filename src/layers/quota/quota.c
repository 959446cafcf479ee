/* The quota layer: a process, or a group of processes, gets no more than a limit of each device's
 * memory (settings mem and mem_group). An adapter: the engine (src/share/quota) has a function for
 * each call that concerns memory, and all other calls pass.
 */
#include "core/config.h"
#include "share/share.h"

static int
quota_init(struct hed_layer *self, const struct hed_config *config, struct hed_why *why)
{
    struct hed_quota *q = NULL;
    const int err = hed_quota_create(config->mem, config->mem_group, &q, why);

    self->state = q;
    return err;
}

static void
quota_fini(struct hed_layer *self)
{
    hed_quota_fini(self->state);
}

static void
quota_forked(struct hed_layer *self)
{
    hed_quota_forked(self->state);
}

#define ENTRY(call, ...) .call = hed_quota_##call,

static const struct hed_cuda_ops quota_cuda = {HED_CUDA_MEMORY(ENTRY)};
static const struct hed_nvml_ops quota_nvml = {HED_NVML_MEMORY(ENTRY)};

extern const struct hed_layer_type hed_quota_layer;

const struct hed_layer_type hed_quota_layer = {
    .name = "quota",
    .cuda = &quota_cuda,
    .nvml = &quota_nvml,
    .init = quota_init,
    .fini = quota_fini,
    .forked = quota_forked,
};
