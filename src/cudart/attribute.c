/* Values of attributes: see attribute.h. */
#include "cudart/attribute.h"

#include <stdbool.h>
#include <string.h>

#include "cudart/front.h"

#define SIZE_OF(member) sizeof(((const cudaLaunchAttributeValue *)NULL)->member)

size_t
hed_rt_attribute_size(cudaLaunchAttributeID attr)
{
    switch (attr) {
    case cudaLaunchAttributeAccessPolicyWindow:
        return SIZE_OF(accessPolicyWindow);
    case cudaLaunchAttributeCooperative:
        return SIZE_OF(cooperative);
    case cudaLaunchAttributeSynchronizationPolicy:
        return SIZE_OF(syncPolicy);
    case cudaLaunchAttributeClusterDimension:
        return SIZE_OF(clusterDim);
    case cudaLaunchAttributeClusterSchedulingPolicyPreference:
        return SIZE_OF(clusterSchedulingPolicyPreference);
    case cudaLaunchAttributeProgrammaticStreamSerialization:
        return SIZE_OF(programmaticStreamSerializationAllowed);
    case cudaLaunchAttributeProgrammaticEvent:
        return SIZE_OF(programmaticEvent);
    case cudaLaunchAttributePriority:
        return SIZE_OF(priority);
    case cudaLaunchAttributeMemSyncDomainMap:
        return SIZE_OF(memSyncDomainMap);
    case cudaLaunchAttributeMemSyncDomain:
        return SIZE_OF(memSyncDomain);
    case cudaLaunchAttributePreferredClusterDimension:
        return SIZE_OF(preferredClusterDim);
    case cudaLaunchAttributeLaunchCompletionEvent:
        return SIZE_OF(launchCompletionEvent);
    case cudaLaunchAttributeDeviceUpdatableKernelNode:
        return SIZE_OF(deviceUpdatableKernelNode);
    case cudaLaunchAttributePreferredSharedMemoryCarveout:
        return SIZE_OF(sharedMemCarveout);
    case cudaLaunchAttributeNvlinkUtilCentricScheduling:
        return SIZE_OF(nvlinkUtilCentricScheduling);
    case cudaLaunchAttributeIgnore:
        break;
    }
    return 0;
}

/* By edition, a bit for each attribute. */
static bool
knows_attribute(enum hed_rt_attribute_of of, cudaLaunchAttributeID attr)
{
    static const struct {
        int version;
        unsigned streams, nodes;
    } known[] = {{13000, 0x70a, 0x16736}, {12000, 0x70a, 0x6736}, {0, 0xa, 0x136}};
    size_t i = 0;

    while (hed_rt_version < known[i].version)
        i++;
    return (unsigned)attr < 32 &&
           ((of == HED_RT_OF_STREAM ? known[i].streams : known[i].nodes) >> attr & 1);
}

_Static_assert(sizeof(cudaLaunchAttributeValue) == sizeof(CUlaunchAttributeValue),
               "the runtime's values have the driver's layout");

cudaError_t
hed_rt_attribute_in(enum hed_rt_attribute_of of, cudaLaunchAttributeID attr,
                    const cudaLaunchAttributeValue *value, CUlaunchAttributeValue *out)
{
    if (!value || !knows_attribute(of, attr))
        return cudaErrorInvalidValue;
    memset(out, 0, sizeof *out);
    memcpy(out, value, hed_rt_attribute_size(attr));
    return cudaSuccess;
}

cudaError_t
hed_rt_attribute_out(enum hed_rt_attribute_of of, cudaLaunchAttributeID attr,
                     const CUlaunchAttributeValue *value, cudaLaunchAttributeValue *out)
{
    if (!out || !knows_attribute(of, attr))
        return cudaErrorInvalidValue;
    memcpy(out, value, hed_rt_attribute_size(attr));
    return cudaSuccess;
}
