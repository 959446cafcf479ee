"""NVML: multi-instance GPUs."""

struct("nvmlGpuInstanceProfileInfo_t",
       F(U32, "id"),
       F(U32, "isP2pSupported"),
       F(U32, "sliceCount"),
       F(U32, "instanceCount"),
       F(U32, "multiprocessorCount"),
       F(U32, "copyEngineCount"),
       F(U32, "decoderCount"),
       F(U32, "encoderCount"),
       F(U32, "jpegCount"),
       F(U32, "ofaCount"),
       F(U64, "memorySizeMB"))

struct("nvmlGpuInstanceProfileInfo_v2_t",
       F(U32, "version"),
       F(U32, "id"),
       F(U32, "isP2pSupported"),
       F(U32, "sliceCount"),
       F(U32, "instanceCount"),
       F(U32, "multiprocessorCount"),
       F(U32, "copyEngineCount"),
       F(U32, "decoderCount"),
       F(U32, "encoderCount"),
       F(U32, "jpegCount"),
       F(U32, "ofaCount"),
       F(U64, "memorySizeMB"),
       F(CHAR, "name", 96))

struct("nvmlGpuInstancePlacement_t",
       F(U32, "start"),
       F(U32, "size"))

handle("nvmlGpuInstance_t", "gpuInstance", "struct nvmlGpuInstance_st")

struct("nvmlGpuInstanceInfo_t",
       F(nvmlDevice_t, "device"),
       F(U32, "id"),
       F(U32, "profileId"),
       F(nvmlGpuInstancePlacement_t, "placement"))

struct("nvmlComputeInstanceProfileInfo_t",
       F(U32, "id"),
       F(U32, "sliceCount"),
       F(U32, "instanceCount"),
       F(U32, "multiprocessorCount"),
       F(U32, "sharedCopyEngineCount"),
       F(U32, "sharedDecoderCount"),
       F(U32, "sharedEncoderCount"),
       F(U32, "sharedJpegCount"),
       F(U32, "sharedOfaCount"))

struct("nvmlComputeInstanceProfileInfo_v2_t",
       F(U32, "version"),
       F(U32, "id"),
       F(U32, "sliceCount"),
       F(U32, "instanceCount"),
       F(U32, "multiprocessorCount"),
       F(U32, "sharedCopyEngineCount"),
       F(U32, "sharedDecoderCount"),
       F(U32, "sharedEncoderCount"),
       F(U32, "sharedJpegCount"),
       F(U32, "sharedOfaCount"),
       F(CHAR, "name", 96))

struct("nvmlComputeInstancePlacement_t",
       F(U32, "start"),
       F(U32, "size"))

handle("nvmlComputeInstance_t", "computeInstance", "struct nvmlComputeInstance_st")

struct("nvmlComputeInstanceInfo_t",
       F(nvmlDevice_t, "device"),
       F(nvmlGpuInstance_t, "gpuInstance"),
       F(U32, "id"),
       F(U32, "profileId"),
       F(nvmlComputeInstancePlacement_t, "placement"))

call("nvmlDeviceSetMigMode", In(nvmlDevice_t, "device"), In(U32, "mode"),
     Out(nvmlReturn_t, "activationStatus"))
call("nvmlDeviceGetMigMode", In(nvmlDevice_t, "device"), Out(U32, "currentMode"),
     Out(U32, "pendingMode"))
call("nvmlDeviceGetGpuInstanceProfileInfo", In(nvmlDevice_t, "device"), In(U32, "profile"),
     Out(nvmlGpuInstanceProfileInfo_t, "info"))
call("nvmlDeviceGetGpuInstanceProfileInfoV", In(nvmlDevice_t, "device"), In(U32, "profile"),
     InOut(nvmlGpuInstanceProfileInfo_v2_t, "info"))
call("nvmlDeviceGetGpuInstanceProfileInfoByIdV", In(nvmlDevice_t, "device"), In(U32, "profileId"),
     InOut(nvmlGpuInstanceProfileInfo_v2_t, "info"))
call("nvmlDeviceGetGpuInstancePossiblePlacements_v2", In(nvmlDevice_t, "device"),
     In(U32, "profileId"),
     Out(Array(nvmlGpuInstancePlacement_t, "*count"), "placements", opt=True),
     InOut(U32, "count"))
call("nvmlDeviceGetGpuInstanceRemainingCapacity", In(nvmlDevice_t, "device"), In(U32, "profileId"),
     Out(U32, "count"))
call("nvmlDeviceCreateGpuInstance", In(nvmlDevice_t, "device"), In(U32, "profileId"),
     Out(nvmlGpuInstance_t, "gpuInstance"))
call("nvmlDeviceCreateGpuInstanceWithPlacement", In(nvmlDevice_t, "device"), In(U32, "profileId"),
     In(Ref(nvmlGpuInstancePlacement_t), "placement"), Out(nvmlGpuInstance_t, "gpuInstance"))
call("nvmlGpuInstanceDestroy", In(nvmlGpuInstance_t, "gpuInstance"))
call("nvmlDeviceGetGpuInstances", In(nvmlDevice_t, "device"), In(U32, "profileId"),
     Out(Array(nvmlGpuInstance_t, "*count"), "gpuInstances", opt=True), InOut(U32, "count"))
call("nvmlDeviceGetGpuInstanceById", In(nvmlDevice_t, "device"), In(U32, "id"),
     Out(nvmlGpuInstance_t, "gpuInstance"))
call("nvmlGpuInstanceGetInfo", In(nvmlGpuInstance_t, "gpuInstance"),
     Out(nvmlGpuInstanceInfo_t, "info"))
call("nvmlGpuInstanceGetComputeInstanceProfileInfo", In(nvmlGpuInstance_t, "gpuInstance"),
     In(U32, "profile"), In(U32, "engProfile"), Out(nvmlComputeInstanceProfileInfo_t, "info"))
call("nvmlGpuInstanceGetComputeInstanceProfileInfoV", In(nvmlGpuInstance_t, "gpuInstance"),
     In(U32, "profile"), In(U32, "engProfile"),
     InOut(nvmlComputeInstanceProfileInfo_v2_t, "info"))
call("nvmlGpuInstanceGetComputeInstanceRemainingCapacity", In(nvmlGpuInstance_t, "gpuInstance"),
     In(U32, "profileId"), Out(U32, "count"))
call("nvmlGpuInstanceGetComputeInstancePossiblePlacements", In(nvmlGpuInstance_t, "gpuInstance"),
     In(U32, "profileId"),
     Out(Array(nvmlComputeInstancePlacement_t, "*count"), "placements", opt=True),
     InOut(U32, "count"))
call("nvmlGpuInstanceCreateComputeInstance", In(nvmlGpuInstance_t, "gpuInstance"),
     In(U32, "profileId"), Out(nvmlComputeInstance_t, "computeInstance"))
call("nvmlGpuInstanceCreateComputeInstanceWithPlacement", In(nvmlGpuInstance_t, "gpuInstance"),
     In(U32, "profileId"), In(Ref(nvmlComputeInstancePlacement_t), "placement"),
     Out(nvmlComputeInstance_t, "computeInstance"))
call("nvmlComputeInstanceDestroy", In(nvmlComputeInstance_t, "computeInstance"))
call("nvmlGpuInstanceGetComputeInstances", In(nvmlGpuInstance_t, "gpuInstance"),
     In(U32, "profileId"),
     Out(Array(nvmlComputeInstance_t, "*count"), "computeInstances", opt=True),
     InOut(U32, "count"))
call("nvmlGpuInstanceGetComputeInstanceById", In(nvmlGpuInstance_t, "gpuInstance"), In(U32, "id"),
     Out(nvmlComputeInstance_t, "computeInstance"))
call("nvmlComputeInstanceGetInfo_v2", In(nvmlComputeInstance_t, "computeInstance"),
     Out(nvmlComputeInstanceInfo_t, "info"))
call("nvmlDeviceIsMigDeviceHandle", In(nvmlDevice_t, "device"), Out(U32, "isMigDevice"))
call("nvmlDeviceGetGpuInstanceId", In(nvmlDevice_t, "device"), Out(U32, "id"))
call("nvmlDeviceGetComputeInstanceId", In(nvmlDevice_t, "device"), Out(U32, "id"))
call("nvmlDeviceGetMaxMigDeviceCount", In(nvmlDevice_t, "device"), Out(U32, "count"))
call("nvmlDeviceGetMigDeviceHandleByIndex", In(nvmlDevice_t, "device"), In(U32, "index"),
     Out(nvmlDevice_t, "migDevice"))
call("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", In(nvmlDevice_t, "migDevice"),
     Out(nvmlDevice_t, "device"))
call("nvmlGpmMigSampleGet", In(nvmlDevice_t, "device"), In(U32, "gpuInstanceId"),
     In(nvmlGpmSample_t, "gpmSample"))
call("nvmlComputeInstanceGetInfo", In(nvmlComputeInstance_t, "computeInstance"),
     Out(nvmlComputeInstanceInfo_t, "info"))
call("nvmlDeviceGetGpuInstancePossiblePlacements", In(nvmlDevice_t, "device"), In(U32, "profileId"),
     Out(Array(nvmlGpuInstancePlacement_t, "*count"), "placements", opt=True),
     InOut(U32, "count"))
