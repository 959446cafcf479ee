/* Calls about what devices are like and how they see each other. The errors for invalid arguments
 * were measured on NVIDIA's driver 580. */
#include <string.h>

#include "core/array_format.h"
#include "driver/ipc/imported.h"
#include "driver/memory/physical.h"
#include "driver/parts.h"

/* ---- properties ------------------------------------------------------------------------------ */

static CUresult
soft_cuDeviceTotalMem(struct hed_layer *self, struct hed_cuDeviceTotalMem *a)
{
    struct hed_device *dev;
    const CUresult r = hed_device_for(self, a->dev, a->bytes, &dev);

    if (r == CUDA_SUCCESS)
        *a->bytes =
            dev->info.profile.memory > UINT32_MAX ? UINT32_MAX : (unsigned)dev->info.profile.memory;
    return r;
}

static CUresult
soft_cuDeviceTotalMem_v2(struct hed_layer *self, struct hed_cuDeviceTotalMem_v2 *a)
{
    struct hed_device *dev;
    const CUresult r = hed_device_for(self, a->dev, a->bytes, &dev);

    if (r == CUDA_SUCCESS)
        *a->bytes = dev->info.profile.memory;
    return r;
}

/* Values that are the device's own come before those of its profile. */
static bool
find_device_attribute(const struct hed_device *dev, unsigned id, int *out)
{
    const struct hed_profile *p = &dev->info.profile;

    switch (id) {
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        *out = dev->info.pci_bus;
        return true;
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
        *out = dev->info.pci_slot;
        return true;
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
        *out = dev->info.pci_domain;
        return true;
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
        *out = hed_physical_can_export(dev->driver);
        return true;
    case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED:
        *out = hed_ipc_can(dev->driver);
        return true;
    case CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES:
        *out = hed_ipc_can(dev->driver) ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0;
        return true;
    default:
        break;
    }
    if (id >= HED_PROFILE_ATTRIBUTES || !(p->has_attribute[id / 64] >> (id % 64) & 1))
        return false;
    *out = p->attributes[id];
    return true;
}

static CUresult
soft_cuDeviceGetAttribute(struct hed_layer *self, struct hed_cuDeviceGetAttribute *a)
{
    struct hed_device *dev;
    const CUresult r = hed_device_for(self, a->dev, a->pi, &dev);

    if (r != CUDA_SUCCESS)
        return r;
    return find_device_attribute(dev, (unsigned)a->attrib, a->pi) ? CUDA_SUCCESS
                                                                  : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
soft_cuDeviceComputeCapability(struct hed_layer *self, struct hed_cuDeviceComputeCapability *a)
{
    struct hed_device *dev;
    const CUresult r = hed_device_for(self, a->dev, a->major && a->minor ? a : NULL, &dev);

    if (r != CUDA_SUCCESS)
        return r;
    *a->major = dev->info.profile.major;
    *a->minor = dev->info.profile.minor;
    return CUDA_SUCCESS;
}

static CUresult
soft_cuDeviceGetProperties(struct hed_layer *self, struct hed_cuDeviceGetProperties *a)
{
    struct hed_device *dev;
    const CUresult r = hed_device_for(self, a->dev, a->prop, &dev);

    if (r != CUDA_SUCCESS)
        return r;

    const int *at = dev->info.profile.attributes;

    *a->prop = (CUdevprop_v1){
        .maxThreadsPerBlock = at[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK],
        .maxThreadsDim = {at[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X],
                          at[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y],
                          at[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z]},
        .maxGridSize = {at[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X],
                        at[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y],
                        at[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z]},
        .sharedMemPerBlock = at[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK],
        .totalConstantMemory = at[CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY],
        .SIMDWidth = at[CU_DEVICE_ATTRIBUTE_WARP_SIZE],
        .memPitch = at[CU_DEVICE_ATTRIBUTE_MAX_PITCH],
        .regsPerBlock = at[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK],
        .clockRate = at[CU_DEVICE_ATTRIBUTE_CLOCK_RATE],
        .textureAlign = at[CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT],
    };
    return CUDA_SUCCESS;
}

/* The attribute is for the widest element, 16 bytes; narrower elements allow more, up to four times
 * as many. */
static CUresult
soft_cuDeviceGetTexture1DLinearMaxWidth(struct hed_layer *self,
                                        struct hed_cuDeviceGetTexture1DLinearMaxWidth *a)
{
    struct hed_device *dev;
    const CUresult r = hed_device_for(self, a->dev, a->maxWidthInElements, &dev);

    if (r != CUDA_SUCCESS)
        return r;

    const unsigned n = a->numChannels;
    const unsigned bytes = n <= 4 ? hed_array_channel_bytes(a->format) * n : 0;
    const int widest =
        dev->info.profile.attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH];

    if (bytes == 0 || n == 3 || widest < 0)
        return CUDA_ERROR_INVALID_VALUE;
    *a->maxWidthInElements = (size_t)widest * (bytes < 4 ? 4 : 16 / bytes);
    return CUDA_SUCCESS;
}

/* Execution affinity needs NVIDIA's MPS. */
static CUresult
soft_cuDeviceGetExecAffinitySupport(struct hed_layer *self,
                                    struct hed_cuDeviceGetExecAffinitySupport *a)
{
    struct hed_device *dev;
    const CUresult r = hed_device_for(self, a->dev, a->pi, &dev);

    if (r == CUDA_SUCCESS)
        *a->pi = 0;
    return r;
}

/* As on NVIDIA's driver over PCI Express, no operation is promised to be atomic with the host's. */
static CUresult
soft_cuDeviceGetHostAtomicCapabilities(struct hed_layer *self,
                                       struct hed_cuDeviceGetHostAtomicCapabilities *a)
{
    struct hed_device *dev;
    const bool answer = a->capabilities && a->operations && a->count > 0;
    const CUresult r = hed_device_for(self, a->dev, answer ? a : NULL, &dev);

    for (unsigned i = 0; r == CUDA_SUCCESS && i < a->count; i++)
        a->capabilities[i] = 0;
    return r;
}

static CUresult
soft_cuDeviceGetNvSciSyncAttributes(struct hed_layer *self,
                                    struct hed_cuDeviceGetNvSciSyncAttributes *a)
{
    struct hed_device *dev;
    const CUresult r = hed_device_get(self, a->dev, &dev);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->nvSciSyncAttrList)
        return CUDA_ERROR_INVALID_HANDLE;
    return hed_driver_unsupported(self, HED_cuDeviceGetNvSciSyncAttributes, a);
}

/* ---- peers: all devices are the same machine's memory ---------------------------------------- */

/* The machine may know more about a pair of devices than the driver does. */
static bool
machine_knows(struct hed_layer *self, enum hed_cuda_call id, void *args, CUresult *r)
{
    struct hed_driver *d = hed_driver_of(self);

    *r = d->machine->call(d->machine_state, NULL, id, args);
    return *r != CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult
soft_cuDeviceCanAccessPeer(struct hed_layer *self, struct hed_cuDeviceCanAccessPeer *a)
{
    struct hed_device *dev;
    CUresult r = hed_device_for(self, a->dev, a->canAccessPeer, &dev);

    if (r == CUDA_SUCCESS)
        r = hed_device_get(self, a->peerDev, &dev);
    if (r == CUDA_SUCCESS && a->dev != a->peerDev &&
        machine_knows(self, HED_cuDeviceCanAccessPeer, a, &r))
        return r;
    if (r == CUDA_SUCCESS || r == CUDA_ERROR_NOT_SUPPORTED)
        *a->canAccessPeer = a->dev != a->peerDev;
    return r == CUDA_ERROR_NOT_SUPPORTED ? CUDA_SUCCESS : r;
}

static CUresult
check_device_pair(struct hed_layer *self, const void *answer, CUdevice from, CUdevice to)
{
    struct hed_device *dev;
    CUresult r = hed_device_for(self, from, answer, &dev);

    if (r == CUDA_SUCCESS)
        r = hed_device_get(self, to, &dev);
    return r == CUDA_SUCCESS && from == to ? CUDA_ERROR_INVALID_DEVICE : r;
}

static CUresult
soft_cuDeviceGetP2PAttribute(struct hed_layer *self, struct hed_cuDeviceGetP2PAttribute *a)
{
    CUresult r = check_device_pair(self, a->value, a->srcDevice, a->dstDevice);

    if (r != CUDA_SUCCESS || machine_knows(self, HED_cuDeviceGetP2PAttribute, a, &r))
        return r;
    switch (a->attrib) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
    case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED:
        *a->value = 0;
        break;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
        *a->value = 1;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult
soft_cuDeviceGetP2PAtomicCapabilities(struct hed_layer *self,
                                      struct hed_cuDeviceGetP2PAtomicCapabilities *a)
{
    const bool answer = a->capabilities && a->operations && a->count > 0;
    const CUresult r = check_device_pair(self, answer ? a : NULL, a->srcDevice, a->dstDevice);

    if (r != CUDA_SUCCESS)
        return r;
    return hed_driver_unsupported(self, HED_cuDeviceGetP2PAtomicCapabilities, a);
}

/* ---- memory of graphs ------------------------------------------------------------------------ */

/* Graph memory counts as reserved and as used for as long as the graph lives, because graphs share
 * none of it. */
static CUresult
soft_cuDeviceGetGraphMemAttribute(struct hed_layer *self,
                                  struct hed_cuDeviceGetGraphMemAttribute *a)
{
    struct hed_device *dev;
    const CUresult r = hed_device_for(self, a->device, a->value, &dev);
    cuuint64_t value = 0;

    if (r != CUDA_SUCCESS)
        return r;
    hed_lock(&dev->driver->memory_lock);
    switch (a->attr) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
        value = dev->graph_memory;
        break;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        value = dev->graph_used_high;
        break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        value = dev->graph_reserved_high;
        break;
    default:
        break;
    }
    hed_unlock(&dev->driver->memory_lock);
    if ((unsigned)a->attr > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(a->value, &value, sizeof value);
    return CUDA_SUCCESS;
}

/* "Only 0 may be set" (CUDA Driver API), and only for attributes that keep a peak. */
static CUresult
soft_cuDeviceSetGraphMemAttribute(struct hed_layer *self,
                                  struct hed_cuDeviceSetGraphMemAttribute *a)
{
    struct hed_device *dev;
    const CUresult r = hed_device_for(self, a->device, a->value, &dev);
    cuuint64_t value = 0;

    if (r != CUDA_SUCCESS)
        return r;
    memcpy(&value, a->value, sizeof value);
    if (value != 0 || (a->attr != CU_GRAPH_MEM_ATTR_USED_MEM_HIGH &&
                       a->attr != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH))
        return CUDA_ERROR_INVALID_VALUE;
    hed_lock(&dev->driver->memory_lock);
    if (a->attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
        dev->graph_used_high = dev->graph_memory;
    else
        dev->graph_reserved_high = dev->graph_memory;
    hed_unlock(&dev->driver->memory_lock);
    return CUDA_SUCCESS;
}

/* There is nothing to trim: memory that no graph uses is not kept. */
static CUresult
soft_cuDeviceGraphMemTrim(struct hed_layer *self, struct hed_cuDeviceGraphMemTrim *a)
{
    struct hed_device *dev;

    return hed_device_get(self, a->device, &dev);
}

/* "On Compute Architecture 8.X: The minimum count is 4 SMs and must be a multiple of 2": cuda.h, on
 * green contexts. There are none here, but cuSOLVER asks how many multiprocessors it has this way.
 */
CUresult
hed_device_resource(const struct hed_device *dev, CUdevResourceType type, CUdevResource_v1 *out)
{
    const struct hed_profile *p = &dev->info.profile;

    if (type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    *out = (CUdevResource_v1){
        .type = type,
        .sm = {.smCount = (unsigned)p->attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT],
               .minSmPartitionSize = p->major >= 9   ? 8
                                     : p->major == 8 ? 4
                                                     : 2,
               .smCoscheduledAlignment = p->major >= 9 ? 8 : 2}};
    return CUDA_SUCCESS;
}

static CUresult
soft_cuDeviceGetDevResource(struct hed_layer *self, struct hed_cuDeviceGetDevResource *a)
{
    struct hed_device *dev;
    const CUresult r = hed_device_for(self, a->device, a->resource, &dev);

    return r == CUDA_SUCCESS ? hed_device_resource(dev, a->type, a->resource) : r;
}

const struct hed_cuda_ops hed_calls_device_info = {
    .cuDeviceTotalMem = soft_cuDeviceTotalMem,
    .cuDeviceTotalMem_v2 = soft_cuDeviceTotalMem_v2,
    .cuDeviceGetAttribute = soft_cuDeviceGetAttribute,
    .cuDeviceComputeCapability = soft_cuDeviceComputeCapability,
    .cuDeviceGetProperties = soft_cuDeviceGetProperties,
    .cuDeviceGetTexture1DLinearMaxWidth = soft_cuDeviceGetTexture1DLinearMaxWidth,
    .cuDeviceGetExecAffinitySupport = soft_cuDeviceGetExecAffinitySupport,
    .cuDeviceGetHostAtomicCapabilities = soft_cuDeviceGetHostAtomicCapabilities,
    .cuDeviceGetNvSciSyncAttributes = soft_cuDeviceGetNvSciSyncAttributes,
    .cuDeviceCanAccessPeer = soft_cuDeviceCanAccessPeer,
    .cuDeviceGetP2PAttribute = soft_cuDeviceGetP2PAttribute,
    .cuDeviceGetP2PAtomicCapabilities = soft_cuDeviceGetP2PAtomicCapabilities,
    .cuDeviceGetGraphMemAttribute = soft_cuDeviceGetGraphMemAttribute,
    .cuDeviceSetGraphMemAttribute = soft_cuDeviceSetGraphMemAttribute,
    .cuDeviceGraphMemTrim = soft_cuDeviceGraphMemTrim,
    .cuDeviceGetDevResource = soft_cuDeviceGetDevResource,
};
