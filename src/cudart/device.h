/* Devices: their flags, and cudaDeviceProp, whose layout each edition has changed.
 *
 * Nearly all of it are attributes of the driver's. The lists below say which one a member has; the
 * table of a layout is made of the lists that apply to it:
 *
 *   static const struct hed_rt_member members_12[] = {
 *       HED_RT_PROP_ALL(HED_RT_MEMBER, cudaDeviceProp_12)
 *       HED_RT_PROP_UNTIL_12(HED_RT_MEMBER, cudaDeviceProp_12) ...
 *   };
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "gen/cudart_abi.h"
#include "gen/cudart_driver.h"

struct hed_rt_member {
    unsigned short offset; /* in the layout */
    unsigned short bytes;  /* 4 or 8 */
    short attribute;       /* CUdevice_attribute */
};

/* One layout of cudaDeviceProp. */
struct hed_rt_layout {
    size_t bytes; /* that are written */
    const struct hed_rt_member *members;
    size_t count;
    size_t memory; /* offset of totalGlobalMem */
    bool ids;      /* whether the name is followed by UUID and LUID */
};

#define HED_RT_LAYOUT_MAX 1032 /* bytes of the largest layout */

/* `end`: what is reserved for later members is left alone. */
#define HED_RT_LAYOUT(type, list, has_ids, end)                                       \
    {                                                                                 \
        .bytes = (end), .members = (list), .count = sizeof(list) / sizeof((list)[0]), \
        .memory = offsetof(type, totalGlobalMem), .ids = (has_ids)                    \
    }

/* Tells of a device. Nothing is written unless all of it is known. */
cudaError_t hed_rt_describe(const struct hed_rt_driver *cu, const struct hed_rt_layout *layout,
                            void *prop, int device);

/* The device that fits best what is asked for. */
cudaError_t hed_rt_choose(const struct hed_rt_driver *cu, const struct hed_rt_layout *layout,
                          int *device, const void *prop);

/* How many devices there are. It does not change, and the child of a process that knows it may ask
 * for it, although it has no driver any more. */
cudaError_t hed_rt_count_devices(const struct hed_rt_driver *cu, int *out);

/* Asks the driver for everything that children may ask for: the number of devices, the driver's
 * version, and since CUDA 13 the properties of all devices. Called when the process begins to use
 * its devices; does it once. */
void hed_rt_know_devices(const struct hed_rt_driver *cu);

/* Remembers the properties of all devices as CUDA 13 has them. */
void hed_rt_know_properties(const struct hed_rt_driver *cu, int count);

/* Sets the flags of a device's primary context, given as cudaSetDeviceFlags() takes them. */
cudaError_t hed_rt_set_flags(const struct hed_rt_driver *cu, int device, unsigned flags);

#define HED_RT_MEMBER(layout, member, attribute)                                 \
    {(unsigned short)offsetof(layout, member), sizeof(((layout *)NULL)->member), \
     CU_DEVICE_ATTRIBUTE_##attribute},

/* In all editions. */
#define HED_RT_PROP_ALL(M, L)                                                \
    M(L, sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK)                     \
    M(L, regsPerBlock, MAX_REGISTERS_PER_BLOCK)                              \
    M(L, warpSize, WARP_SIZE)                                                \
    M(L, memPitch, MAX_PITCH)                                                \
    M(L, maxThreadsPerBlock, MAX_THREADS_PER_BLOCK)                          \
    M(L, maxThreadsDim[0], MAX_BLOCK_DIM_X)                                  \
    M(L, maxThreadsDim[1], MAX_BLOCK_DIM_Y)                                  \
    M(L, maxThreadsDim[2], MAX_BLOCK_DIM_Z)                                  \
    M(L, maxGridSize[0], MAX_GRID_DIM_X)                                     \
    M(L, maxGridSize[1], MAX_GRID_DIM_Y)                                     \
    M(L, maxGridSize[2], MAX_GRID_DIM_Z)                                     \
    M(L, totalConstMem, TOTAL_CONSTANT_MEMORY)                               \
    M(L, major, COMPUTE_CAPABILITY_MAJOR)                                    \
    M(L, minor, COMPUTE_CAPABILITY_MINOR)                                    \
    M(L, textureAlignment, TEXTURE_ALIGNMENT)                                \
    M(L, texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT)                     \
    M(L, multiProcessorCount, MULTIPROCESSOR_COUNT)                          \
    M(L, integrated, INTEGRATED)                                             \
    M(L, canMapHostMemory, CAN_MAP_HOST_MEMORY)                              \
    M(L, maxTexture1D, MAXIMUM_TEXTURE1D_WIDTH)                              \
    M(L, maxTexture1DMipmap, MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH)              \
    M(L, maxTexture2D[0], MAXIMUM_TEXTURE2D_WIDTH)                           \
    M(L, maxTexture2D[1], MAXIMUM_TEXTURE2D_HEIGHT)                          \
    M(L, maxTexture2DMipmap[0], MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH)           \
    M(L, maxTexture2DMipmap[1], MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT)          \
    M(L, maxTexture2DLinear[0], MAXIMUM_TEXTURE2D_LINEAR_WIDTH)              \
    M(L, maxTexture2DLinear[1], MAXIMUM_TEXTURE2D_LINEAR_HEIGHT)             \
    M(L, maxTexture2DLinear[2], MAXIMUM_TEXTURE2D_LINEAR_PITCH)              \
    M(L, maxTexture2DGather[0], MAXIMUM_TEXTURE2D_GATHER_WIDTH)              \
    M(L, maxTexture2DGather[1], MAXIMUM_TEXTURE2D_GATHER_HEIGHT)             \
    M(L, maxTexture3D[0], MAXIMUM_TEXTURE3D_WIDTH)                           \
    M(L, maxTexture3D[1], MAXIMUM_TEXTURE3D_HEIGHT)                          \
    M(L, maxTexture3D[2], MAXIMUM_TEXTURE3D_DEPTH)                           \
    M(L, maxTexture3DAlt[0], MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE)              \
    M(L, maxTexture3DAlt[1], MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE)             \
    M(L, maxTexture3DAlt[2], MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE)              \
    M(L, maxTextureCubemap, MAXIMUM_TEXTURECUBEMAP_WIDTH)                    \
    M(L, maxTexture1DLayered[0], MAXIMUM_TEXTURE1D_LAYERED_WIDTH)            \
    M(L, maxTexture1DLayered[1], MAXIMUM_TEXTURE1D_LAYERED_LAYERS)           \
    M(L, maxTexture2DLayered[0], MAXIMUM_TEXTURE2D_LAYERED_WIDTH)            \
    M(L, maxTexture2DLayered[1], MAXIMUM_TEXTURE2D_LAYERED_HEIGHT)           \
    M(L, maxTexture2DLayered[2], MAXIMUM_TEXTURE2D_LAYERED_LAYERS)           \
    M(L, maxTextureCubemapLayered[0], MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH)  \
    M(L, maxTextureCubemapLayered[1], MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS) \
    M(L, maxSurface1D, MAXIMUM_SURFACE1D_WIDTH)                              \
    M(L, maxSurface2D[0], MAXIMUM_SURFACE2D_WIDTH)                           \
    M(L, maxSurface2D[1], MAXIMUM_SURFACE2D_HEIGHT)                          \
    M(L, maxSurface3D[0], MAXIMUM_SURFACE3D_WIDTH)                           \
    M(L, maxSurface3D[1], MAXIMUM_SURFACE3D_HEIGHT)                          \
    M(L, maxSurface3D[2], MAXIMUM_SURFACE3D_DEPTH)                           \
    M(L, maxSurface1DLayered[0], MAXIMUM_SURFACE1D_LAYERED_WIDTH)            \
    M(L, maxSurface1DLayered[1], MAXIMUM_SURFACE1D_LAYERED_LAYERS)           \
    M(L, maxSurface2DLayered[0], MAXIMUM_SURFACE2D_LAYERED_WIDTH)            \
    M(L, maxSurface2DLayered[1], MAXIMUM_SURFACE2D_LAYERED_HEIGHT)           \
    M(L, maxSurface2DLayered[2], MAXIMUM_SURFACE2D_LAYERED_LAYERS)           \
    M(L, maxSurfaceCubemap, MAXIMUM_SURFACECUBEMAP_WIDTH)                    \
    M(L, maxSurfaceCubemapLayered[0], MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH)  \
    M(L, maxSurfaceCubemapLayered[1], MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS) \
    M(L, surfaceAlignment, SURFACE_ALIGNMENT)                                \
    M(L, concurrentKernels, CONCURRENT_KERNELS)                              \
    M(L, ECCEnabled, ECC_ENABLED)                                            \
    M(L, pciBusID, PCI_BUS_ID)                                               \
    M(L, pciDeviceID, PCI_DEVICE_ID)                                         \
    M(L, pciDomainID, PCI_DOMAIN_ID)                                         \
    M(L, tccDriver, TCC_DRIVER)                                              \
    M(L, asyncEngineCount, ASYNC_ENGINE_COUNT)                               \
    M(L, unifiedAddressing, UNIFIED_ADDRESSING)                              \
    M(L, memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH)                            \
    M(L, l2CacheSize, L2_CACHE_SIZE)                                         \
    M(L, maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR)        \
    M(L, streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED)             \
    M(L, globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED)                  \
    M(L, localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED)                    \
    M(L, sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)   \
    M(L, regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR)            \
    M(L, managedMemory, MANAGED_MEMORY)                                      \
    M(L, isMultiGpuBoard, MULTI_GPU_BOARD)                                   \
    M(L, multiGpuBoardGroupID, MULTI_GPU_BOARD_GROUP_ID)                     \
    M(L, hostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED)            \
    M(L, pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS)                       \
    M(L, concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS)

/* In 8.0 to 12. */
#define HED_RT_PROP_UNTIL_12(M, L)                           \
    M(L, clockRate, CLOCK_RATE)                              \
    M(L, deviceOverlap, GPU_OVERLAP)                         \
    M(L, kernelExecTimeoutEnabled, KERNEL_EXEC_TIMEOUT)      \
    M(L, computeMode, COMPUTE_MODE)                          \
    M(L, maxTexture1DLinear, MAXIMUM_TEXTURE1D_LINEAR_WIDTH) \
    M(L, memoryClockRate, MEMORY_CLOCK_RATE)                 \
    M(L, singleToDoublePrecisionPerfRatio, SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO)

/* In 10.2 to 12. */
#define HED_RT_PROP_10_TO_12(M, L) \
    M(L, cooperativeMultiDeviceLaunch, COOPERATIVE_MULTI_DEVICE_LAUNCH)

/* Since 10.2. */
#define HED_RT_PROP_SINCE_10(M, L)                                                             \
    M(L, computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED)                             \
    M(L, canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM)           \
    M(L, cooperativeLaunch, COOPERATIVE_LAUNCH)                                                \
    M(L, sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)                            \
    M(L, pageableMemoryAccessUsesHostPageTables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES) \
    M(L, directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST)

/* Since 11. */
#define HED_RT_PROP_SINCE_11(M, L)                                  \
    M(L, persistingL2CacheMaxSize, MAX_PERSISTING_L2_CACHE_SIZE)    \
    M(L, maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR) \
    M(L, accessPolicyMaxWindowSize, MAX_ACCESS_POLICY_WINDOW_SIZE)  \
    M(L, reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK)

/* Since 12. */
#define HED_RT_PROP_SINCE_12(M, L)                                                 \
    M(L, hostRegisterSupported, HOST_REGISTER_SUPPORTED)                           \
    M(L, sparseCudaArraySupported, SPARSE_CUDA_ARRAY_SUPPORTED)                    \
    M(L, hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED)         \
    M(L, timelineSemaphoreInteropSupported, TIMELINE_SEMAPHORE_INTEROP_SUPPORTED)  \
    M(L, memoryPoolsSupported, MEMORY_POOLS_SUPPORTED)                             \
    M(L, gpuDirectRDMASupported, GPU_DIRECT_RDMA_SUPPORTED)                        \
    M(L, gpuDirectRDMAFlushWritesOptions, GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS)    \
    M(L, gpuDirectRDMAWritesOrdering, GPU_DIRECT_RDMA_WRITES_ORDERING)             \
    M(L, memoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES)           \
    M(L, deferredMappingCudaArraySupported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED) \
    M(L, ipcEventSupported, IPC_EVENT_SUPPORTED)                                   \
    M(L, clusterLaunch, CLUSTER_LAUNCH)                                            \
    M(L, unifiedFunctionPointers, UNIFIED_FUNCTION_POINTERS)

/* Since 13. */
#define HED_RT_PROP_SINCE_13(M, L)                \
    M(L, deviceNumaConfig, NUMA_CONFIG)           \
    M(L, deviceNumaId, NUMA_ID)                   \
    M(L, mpsEnabled, MPS_ENABLED)                 \
    M(L, hostNumaId, HOST_NUMA_ID)                \
    M(L, gpuPciDeviceID, GPU_PCI_DEVICE_ID)       \
    M(L, gpuPciSubsystemID, GPU_PCI_SUBSYSTEM_ID) \
    M(L, hostNumaMultinodeIpcSupported, HOST_NUMA_MULTINODE_IPC_SUPPORTED)
