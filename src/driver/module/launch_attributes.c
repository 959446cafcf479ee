/* Attributes of a launch. See launch.h.
 *
 * Here the work on a stream always runs in order, one piece after the other. Attributes that allow
 * the device to overlap or reorder work are checked and kept for queries, but have no effect.
 */
#include "driver/module/launch.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "driver/module/module.h"
#include "driver/module/occupancy.h"
#include "driver/stream/work.h"

#define ATTRIBUTES_MAX 64  /* in one launch */
#define PORTABLE_CLUSTER 8 /* blocks that every device with clusters accepts */
#define LARGEST_CLUSTER 16 /* if the program allows it */
#define MEM_SYNC_DOMAINS 4

static bool
is_flag(int value)
{
    return value == 0 || value == 1;
}

static CUresult
check_window(const CUaccessPolicyWindow_v1 *w)
{
    /* Written so that NaN is refused. */
    if (!(w->hitRatio >= 0.0f && w->hitRatio <= 1.0f))
        return CUDA_ERROR_INVALID_VALUE;
    if ((unsigned)w->hitProp > CU_ACCESS_PROPERTY_PERSISTING ||
        (unsigned)w->missProp > CU_ACCESS_PROPERTY_STREAMING)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult
valid_if(bool yes)
{
    return yes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
check_cluster_dims(const uint32_t d[3])
{
    const int zeros = (d[0] == 0) + (d[1] == 0) + (d[2] == 0);

    return zeros == 0 || zeros == 3 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

/* Checks one attribute, independently of the others. */
static CUresult
check_attribute(const CUlaunchAttribute *a, struct hed_launch *l)
{
    const CUlaunchAttributeValue *v = &a->value;

    switch (a->id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        return check_window(&v->accessPolicyWindow);
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        l->cooperative = v->cooperative == 1;
        return valid_if(is_flag(v->cooperative));
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        return valid_if(v->syncPolicy >= CU_SYNC_POLICY_AUTO &&
                        v->syncPolicy <= CU_SYNC_POLICY_BLOCKING_SYNC);
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        l->cluster[0] = v->clusterDim.x;
        l->cluster[1] = v->clusterDim.y;
        l->cluster[2] = v->clusterDim.z;
        return check_cluster_dims(l->cluster);
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return valid_if((unsigned)v->clusterSchedulingPolicyPreference <=
                        CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING);
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        return valid_if(is_flag(v->programmaticStreamSerializationAllowed));
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        return valid_if(v->memSyncDomainMap.default_ < MEM_SYNC_DOMAINS &&
                        v->memSyncDomainMap.remote < MEM_SYNC_DOMAINS);
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return valid_if((unsigned)v->memSyncDomain <= CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        hed_stats_unsupported(HED_API_CUDA, HED_cuLaunchKernelEx,
                              "the soft driver (nodes that kernels update)");
        return CUDA_ERROR_NOT_SUPPORTED;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return valid_if(v->sharedMemCarveout <= 100 || (int)v->sharedMemCarveout == -1);
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* If the launch has no cluster size, takes the one that is compiled in or that the program has
 * set. */
static CUresult
default_cluster(const struct hed_function *f, struct hed_launch *l)
{
    const struct hed_code_kernel *k = hed_function_kernel(f);

    if (l->cluster[0]) {
        if (k->cluster[0] && memcmp(k->cluster, l->cluster, sizeof l->cluster) != 0)
            return CUDA_ERROR_INVALID_VALUE;
        return CUDA_SUCCESS;
    }
    for (int i = 0; i < 3; i++) {
        const int set = atomic_load_explicit(&f->settings->cluster[i], memory_order_relaxed);

        l->cluster[i] = k->cluster[0] ? k->cluster[i] : (uint32_t)set;
    }
    if (l->cluster[0] == 0 && k->must_have_cluster)
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < 3 && l->cluster[0]; i++)
        l->cluster[i] = l->cluster[i] ? l->cluster[i] : 1;
    if (l->cluster[0] == 0)
        l->cluster[1] = l->cluster[2] = 0;
    return CUDA_SUCCESS;
}

static CUresult
check_cluster(struct hed_function *f, const struct hed_launch *l)
{
    const uint64_t blocks = (uint64_t)l->cluster[0] * l->cluster[1] * l->cluster[2];
    const bool large =
        atomic_load_explicit(&f->settings->nonportable_cluster, memory_order_relaxed) != 0;

    if (blocks <= 1)
        return CUDA_SUCCESS;
    if (hed_function_profile(f)->major < HED_CLUSTERS_FROM)
        return CUDA_ERROR_INVALID_VALUE;
    if (blocks > (large ? LARGEST_CLUSTER : PORTABLE_CLUSTER))
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    for (int i = 0; i < 3; i++)
        if (l->grid[i] % l->cluster[i] != 0)
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    if (!f->module->driver->machine->clusters) {
        hed_stats_add(&hed_stats.unsupported_calls, 1);
        hed_function_refused(f, CUDA_ERROR_NOT_SUPPORTED, "clusters of blocks are not supported");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

CUresult
hed_launch_attributes(struct hed_function *f, struct hed_launch *l,
                      const CUlaunchAttribute *attributes, unsigned count)
{
    CUresult r = CUDA_SUCCESS;

    if (count > ATTRIBUTES_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = check_attribute(&attributes[i], l);
    if (r == CUDA_SUCCESS)
        r = default_cluster(f, l);
    if (r == CUDA_SUCCESS)
        r = check_cluster(f, l);
    return r;
}

CUresult
hed_launch_keep(struct hed_launch *l, const CUlaunchAttribute *attributes, unsigned count)
{
    CUlaunchAttribute *kept = count ? malloc(count * sizeof *kept) : NULL;

    l->attributes = kept;
    l->attribute_count = kept ? count : 0;
    if (kept)
        memcpy(kept, attributes, count * sizeof *kept);
    return kept || count == 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
