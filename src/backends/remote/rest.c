/* Calls that only the far side can answer and that no area of the driver sends: made there as they
 * are. What is not in the table does not travel; memory and events of other processes (cuIpc...,
 * shareable handles) never do, since they are the far machine's.
 */
#include "backends/remote/remote.h"
#include "driver/context/context.h"

#define ATTRIBUTES_MAX 64

/* Answers that depend on how a device is built. Attributes with handles are left out: they do not
 * matter to how many clusters fit. */
static CUresult
ask_clusters(struct hed_remote *r, uint64_t context, enum hed_cuda_call id, void *args,
             const CUlaunchConfig **config)
{
    const CUlaunchConfig *given = *config;
    CUlaunchAttribute attributes[ATTRIBUTES_MAX];
    CUlaunchConfig plain = *given;
    unsigned count = 0;

    for (unsigned i = 0; i < given->numAttrs && given->attrs && count < ATTRIBUTES_MAX; i++)
        if (given->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ||
            given->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE ||
            given->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            attributes[count++] = given->attrs[i];
    plain.hStream = NULL;
    plain.attrs = count ? attributes : NULL;
    plain.numAttrs = count;
    *config = &plain;

    const CUresult result = hed_remote_ask(r, context, 0, id, args, false);

    *config = given;
    return result;
}

CUresult
hed_remote_call(void *m, struct hed_context *c, enum hed_cuda_call id, void *args)
{
    struct hed_remote *r = hed_remote_of(m);
    const uint64_t context = c ? c->object.handle : 0;

    switch (id) {
    case HED_cuTensorMapEncodeTiled:
    case HED_cuTensorMapEncodeIm2col:
    case HED_cuTensorMapEncodeIm2colWide:
    case HED_cuTensorMapReplaceAddress:
        return hed_remote_ask(r, context, 0, id, args, false);
    case HED_cuOccupancyMaxActiveClusters:
        return ask_clusters(r, context, id, args,
                            &((struct hed_cuOccupancyMaxActiveClusters *)args)->config);
    case HED_cuOccupancyMaxPotentialClusterSize:
        return ask_clusters(r, context, id, args,
                            &((struct hed_cuOccupancyMaxPotentialClusterSize *)args)->config);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}
