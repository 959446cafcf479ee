"""NVML: virtual GPUs."""

enum("nvmlHostVgpuMode_t",
     NVML_HOST_VGPU_MODE_NON_SRIOV=0, NVML_HOST_VGPU_MODE_SRIOV=1)

struct("nvmlVgpuHeterogeneousMode_v1_t",
       F(U32, "version"),
       F(U32, "mode"))

struct("nvmlVgpuPlacementId_v1_t",
       F(U32, "version"),
       F(U32, "placementId"))

alias("nvmlVgpuTypeId_t", U32)

struct("nvmlVgpuPlacementList_v2_t",
       F(U32, "version"),
       F(U32, "placementSize"),
       F(U32, "count"),
       F(Ptr("unsigned int *"), "placementIds"),
       F(U32, "mode"))

struct("nvmlVgpuRuntimeState_v1_t",
       F(U32, "version"),
       F(U64, "size"))

enum("nvmlDeviceVgpuCapability_t",
     NVML_DEVICE_VGPU_CAP_FRACTIONAL_MULTI_VGPU=0,
     NVML_DEVICE_VGPU_CAP_HETEROGENEOUS_TIMESLICE_PROFILES=1,
     NVML_DEVICE_VGPU_CAP_HETEROGENEOUS_TIMESLICE_SIZES=2,
     NVML_DEVICE_VGPU_CAP_READ_DEVICE_BUFFER_BW=3,
     NVML_DEVICE_VGPU_CAP_WRITE_DEVICE_BUFFER_BW=4, NVML_DEVICE_VGPU_CAP_DEVICE_STREAMING=5,
     NVML_DEVICE_VGPU_CAP_MINI_QUARTER_GPU=6, NVML_DEVICE_VGPU_CAP_COMPUTE_MEDIA_ENGINE_GPU=7,
     NVML_DEVICE_VGPU_CAP_WARM_UPDATE=8, NVML_DEVICE_VGPU_CAP_HOMOGENEOUS_PLACEMENTS=9,
     NVML_DEVICE_VGPU_CAP_MIG_TIMESLICING_SUPPORTED=10,
     NVML_DEVICE_VGPU_CAP_MIG_TIMESLICING_ENABLED=11, NVML_DEVICE_VGPU_CAP_COUNT=12)

enum("nvmlGridLicenseFeatureCode_t",
     NVML_GRID_LICENSE_FEATURE_CODE_UNKNOWN=0, NVML_GRID_LICENSE_FEATURE_CODE_VGPU=1,
     NVML_GRID_LICENSE_FEATURE_CODE_NVIDIA_RTX=2,
     NVML_GRID_LICENSE_FEATURE_CODE_VWORKSTATION=2, NVML_GRID_LICENSE_FEATURE_CODE_GAMING=3,
     NVML_GRID_LICENSE_FEATURE_CODE_COMPUTE=4)

struct("nvmlGridLicenseExpiry_t",
       F(U32, "year"),
       F(U16, "month"),
       F(U16, "day"),
       F(U16, "hour"),
       F(U16, "min"),
       F(U16, "sec"),
       F(U8, "status"))

struct("nvmlGridLicensableFeature_t",
       F(nvmlGridLicenseFeatureCode_t, "featureCode"),
       F(U32, "featureState"),
       F(CHAR, "licenseInfo", 128),
       F(CHAR, "productName", 128),
       F(U32, "featureEnabled"),
       F(nvmlGridLicenseExpiry_t, "licenseExpiry"))

struct("nvmlGridLicensableFeatures_t",
       F(I32, "isGridLicenseSupported"),
       F(U32, "licensableFeaturesCount"),
       F(nvmlGridLicensableFeature_t, "gridLicensableFeatures", 3))

enum("nvmlVgpuDriverCapability_t",
     NVML_VGPU_DRIVER_CAP_HETEROGENEOUS_MULTI_VGPU=0, NVML_VGPU_DRIVER_CAP_WARM_UPDATE=1,
     NVML_VGPU_DRIVER_CAP_COUNT=2)

struct("nvmlVgpuTypeBar1Info_v1_t",
       F(U32, "version"),
       F(U64, "bar1Size"))

enum("nvmlVgpuVmIdType_t",
     NVML_VGPU_VM_ID_DOMAIN_ID=0, NVML_VGPU_VM_ID_UUID=1)

enum("nvmlVgpuCapability_t",
     NVML_VGPU_CAP_NVLINK_P2P=0, NVML_VGPU_CAP_GPUDIRECT=1,
     NVML_VGPU_CAP_MULTI_VGPU_EXCLUSIVE=2, NVML_VGPU_CAP_EXCLUSIVE_TYPE=3,
     NVML_VGPU_CAP_EXCLUSIVE_SIZE=4, NVML_VGPU_CAP_COUNT=5)

struct("nvmlVgpuTypeIdInfo_v1_t",
       F(U32, "version"),
       F(U32, "vgpuCount"),
       F(Ptr("nvmlVgpuTypeId_t *"), "vgpuTypeIds"))

struct("nvmlVgpuTypeMaxInstance_v1_t",
       F(U32, "version"),
       F(nvmlVgpuTypeId_t, "vgpuTypeId"),
       F(U32, "maxInstancePerGI"))

struct("nvmlActiveVgpuInstanceInfo_v1_t",
       F(U32, "version"),
       F(U32, "vgpuCount"),
       F(Ptr("nvmlVgpuInstance_t *"), "vgpuInstances"))

union("nvmlVgpuSchedulerSetParams_t",
      F(inner("struct",
              F(U32, "avgFactor"),
              F(U32, "frequency")), "vgpuSchedDataWithARR"),
      F(inner("struct",
              F(U32, "timeslice")), "vgpuSchedData"))

struct("nvmlVgpuSchedulerState_v1_t",
       F(U32, "version"),
       F(U32, "engineId"),
       F(U32, "schedulerPolicy"),
       F(U32, "enableARRMode"),
       F(nvmlVgpuSchedulerSetParams_t, "schedulerParams"))

union("nvmlVgpuSchedulerParams_t",
      F(inner("struct",
              F(U32, "avgFactor"),
              F(U32, "timeslice")), "vgpuSchedDataWithARR"),
      F(inner("struct",
              F(U32, "timeslice")), "vgpuSchedData"))

struct("nvmlVgpuSchedulerStateInfo_v1_t",
       F(U32, "version"),
       F(U32, "engineId"),
       F(U32, "schedulerPolicy"),
       F(U32, "arrMode"),
       F(nvmlVgpuSchedulerParams_t, "schedulerParams"))

struct("nvmlVgpuSchedulerLogEntry_t",
       F(U64, "timestamp"),
       F(U64, "timeRunTotal"),
       F(U64, "timeRun"),
       F(U32, "swRunlistId"),
       F(U64, "targetTimeSlice"),
       F(U64, "cumulativePreemptionTime"))

struct("nvmlVgpuSchedulerLogInfo_v1_t",
       F(U32, "version"),
       F(U32, "engineId"),
       F(U32, "schedulerPolicy"),
       F(U32, "arrMode"),
       F(nvmlVgpuSchedulerParams_t, "schedulerParams"),
       F(U32, "entriesCount"),
       F(nvmlVgpuSchedulerLogEntry_t, "logEntries", 200))

struct("nvmlVgpuCreatablePlacementInfo_v1_t",
       F(U32, "version"),
       F(nvmlVgpuTypeId_t, "vgpuTypeId"),
       F(U32, "count"),
       F(Ptr("unsigned int *"), "placementIds"),
       F(U32, "placementSize"))

enum("nvmlVgpuGuestInfoState_t",
     NVML_VGPU_INSTANCE_GUEST_INFO_STATE_UNINITIALIZED=0,
     NVML_VGPU_INSTANCE_GUEST_INFO_STATE_INITIALIZED=1)

struct("nvmlVgpuMetadata_t",
       F(U32, "version"),
       F(U32, "revision"),
       F(nvmlVgpuGuestInfoState_t, "guestInfoState"),
       F(CHAR, "guestDriverVersion", 80),
       F(CHAR, "hostDriverVersion", 80),
       F(U32, "reserved", 6),
       F(U32, "vgpuVirtualizationCaps"),
       F(U32, "guestVgpuVersion"),
       F(U32, "opaqueDataSize"),
       F(CHAR, "opaqueData", 4))

struct("nvmlVgpuVersion_t",
       F(U32, "minVersion"),
       F(U32, "maxVersion"))

struct("nvmlVgpuPgpuMetadata_t",
       F(U32, "version"),
       F(U32, "revision"),
       F(CHAR, "hostDriverVersion", 80),
       F(U32, "pgpuVirtualizationCaps"),
       F(U32, "reserved", 5),
       F(nvmlVgpuVersion_t, "hostSupportedVgpuRange"),
       F(U32, "opaqueDataSize"),
       F(CHAR, "opaqueData", 4))

enum("nvmlVgpuVmCompatibility_t",
     NVML_VGPU_VM_COMPATIBILITY_NONE=0x0, NVML_VGPU_VM_COMPATIBILITY_COLD=0x1,
     NVML_VGPU_VM_COMPATIBILITY_HIBERNATE=0x2, NVML_VGPU_VM_COMPATIBILITY_SLEEP=0x4,
     NVML_VGPU_VM_COMPATIBILITY_LIVE=0x8)

enum("nvmlVgpuPgpuCompatibilityLimitCode_t",
     NVML_VGPU_COMPATIBILITY_LIMIT_NONE=0x0, NVML_VGPU_COMPATIBILITY_LIMIT_HOST_DRIVER=0x1,
     NVML_VGPU_COMPATIBILITY_LIMIT_GUEST_DRIVER=0x2, NVML_VGPU_COMPATIBILITY_LIMIT_GPU=0x4,
     NVML_VGPU_COMPATIBILITY_LIMIT_OTHER=-2147483648)

struct("nvmlVgpuPgpuCompatibility_t",
       F(nvmlVgpuVmCompatibility_t, "vgpuVmCompatibility"),
       F(nvmlVgpuPgpuCompatibilityLimitCode_t, "compatibilityLimitCode"))

struct("nvmlVgpuSchedulerLog_t",
       F(U32, "engineId"),
       F(U32, "schedulerPolicy"),
       F(U32, "arrMode"),
       F(nvmlVgpuSchedulerParams_t, "schedulerParams"),
       F(U32, "entriesCount"),
       F(nvmlVgpuSchedulerLogEntry_t, "logEntries", 200))

struct("nvmlVgpuSchedulerGetState_t",
       F(U32, "schedulerPolicy"),
       F(U32, "arrMode"),
       F(nvmlVgpuSchedulerParams_t, "schedulerParams"))

struct("nvmlVgpuSchedulerCapabilities_t",
       F(U32, "supportedSchedulers", 3),
       F(U32, "maxTimeslice"),
       F(U32, "minTimeslice"),
       F(U32, "isArrModeSupported"),
       F(U32, "maxFrequencyForARR"),
       F(U32, "minFrequencyForARR"),
       F(U32, "maxAvgFactorForARR"),
       F(U32, "minAvgFactorForARR"))

struct("nvmlVgpuSchedulerSetState_t",
       F(U32, "schedulerPolicy"),
       F(U32, "enableARRMode"),
       F(nvmlVgpuSchedulerSetParams_t, "schedulerParams"))

struct("nvmlVgpuInstanceUtilizationSample_t",
       F(nvmlVgpuInstance_t, "vgpuInstance"),
       F(U64, "timeStamp"),
       F(nvmlValue_t, "smUtil"),
       F(nvmlValue_t, "memUtil"),
       F(nvmlValue_t, "encUtil"),
       F(nvmlValue_t, "decUtil"))

struct("nvmlVgpuInstanceUtilizationInfo_v1_t",
       F(U64, "timeStamp"),
       F(nvmlVgpuInstance_t, "vgpuInstance"),
       F(nvmlValue_t, "smUtil"),
       F(nvmlValue_t, "memUtil"),
       F(nvmlValue_t, "encUtil"),
       F(nvmlValue_t, "decUtil"),
       F(nvmlValue_t, "jpgUtil"),
       F(nvmlValue_t, "ofaUtil"))

struct("nvmlVgpuInstancesUtilizationInfo_v1_t",
       F(U32, "version"),
       F(nvmlValueType_t, "sampleValType"),
       F(U32, "vgpuInstanceCount"),
       F(U64, "lastSeenTimeStamp"),
       F(Ptr("nvmlVgpuInstanceUtilizationInfo_v1_t *"), "vgpuUtilArray"))

struct("nvmlVgpuProcessUtilizationSample_t",
       F(nvmlVgpuInstance_t, "vgpuInstance"),
       F(U32, "pid"),
       F(CHAR, "processName", 64),
       F(U64, "timeStamp"),
       F(U32, "smUtil"),
       F(U32, "memUtil"),
       F(U32, "encUtil"),
       F(U32, "decUtil"))

struct("nvmlVgpuProcessUtilizationInfo_v1_t",
       F(CHAR, "processName", 64),
       F(U64, "timeStamp"),
       F(nvmlVgpuInstance_t, "vgpuInstance"),
       F(U32, "pid"),
       F(U32, "smUtil"),
       F(U32, "memUtil"),
       F(U32, "encUtil"),
       F(U32, "decUtil"),
       F(U32, "jpgUtil"),
       F(U32, "ofaUtil"))

struct("nvmlVgpuProcessesUtilizationInfo_v1_t",
       F(U32, "version"),
       F(U32, "vgpuProcessCount"),
       F(U64, "lastSeenTimeStamp"),
       F(Ptr("nvmlVgpuProcessUtilizationInfo_v1_t *"), "vgpuProcUtilArray"))

struct("nvmlVgpuLicenseExpiry_t",
       F(U32, "year"),
       F(U16, "month"),
       F(U16, "day"),
       F(U16, "hour"),
       F(U16, "min"),
       F(U16, "sec"),
       F(U8, "status"))

struct("nvmlVgpuLicenseInfo_t",
       F(U8, "isLicensed"),
       F(nvmlVgpuLicenseExpiry_t, "licenseExpiry"),
       F(U32, "currentState"))

call("nvmlDeviceGetHostVgpuMode", In(nvmlDevice_t, "device"),
     Out(nvmlHostVgpuMode_t, "pHostVgpuMode"))
call("nvmlDeviceGetVgpuHeterogeneousMode", In(nvmlDevice_t, "device"),
     InOut(nvmlVgpuHeterogeneousMode_v1_t, "pHeterogeneousMode"))
call("nvmlDeviceSetVgpuHeterogeneousMode", In(nvmlDevice_t, "device"),
     In(Ref(nvmlVgpuHeterogeneousMode_v1_t), "pHeterogeneousMode"))
call("nvmlVgpuInstanceGetPlacementId", In(nvmlVgpuInstance_t, "vgpuInstance"),
     InOut(nvmlVgpuPlacementId_v1_t, "pPlacement"))
call("nvmlDeviceGetVgpuTypeSupportedPlacements", In(nvmlDevice_t, "device"),
     In(nvmlVgpuTypeId_t, "vgpuTypeId"), InOut(nvmlVgpuPlacementList_v2_t, "pPlacementList"))
call("nvmlDeviceGetVgpuTypeCreatablePlacements", In(nvmlDevice_t, "device"),
     In(nvmlVgpuTypeId_t, "vgpuTypeId"), InOut(nvmlVgpuPlacementList_v2_t, "pPlacementList"))
call("nvmlVgpuTypeGetGspHeapSize", In(nvmlVgpuTypeId_t, "vgpuTypeId"), Out(U64, "gspHeapSize"))
call("nvmlVgpuTypeGetFbReservation", In(nvmlVgpuTypeId_t, "vgpuTypeId"), Out(U64, "fbReservation"))
call("nvmlVgpuInstanceGetRuntimeStateSize", In(nvmlVgpuInstance_t, "vgpuInstance"),
     InOut(nvmlVgpuRuntimeState_v1_t, "pState"))
call("nvmlDeviceSetVgpuCapabilities", In(nvmlDevice_t, "device"),
     In(nvmlDeviceVgpuCapability_t, "capability"), In(nvmlEnableState_t, "state"))
call("nvmlDeviceGetGridLicensableFeatures_v4", In(nvmlDevice_t, "device"),
     Out(nvmlGridLicensableFeatures_t, "pGridLicensableFeatures"))
call("nvmlGetVgpuDriverCapabilities", In(nvmlVgpuDriverCapability_t, "capability"),
     Out(U32, "capResult"))
call("nvmlDeviceGetVgpuCapabilities", In(nvmlDevice_t, "device"),
     In(nvmlDeviceVgpuCapability_t, "capability"), Out(U32, "capResult"))
call("nvmlDeviceGetSupportedVgpus", In(nvmlDevice_t, "device"), InOut(U32, "vgpuCount"),
     Out(Array(nvmlVgpuTypeId_t, "*vgpuCount"), "vgpuTypeIds", opt=True))
call("nvmlDeviceGetCreatableVgpus", In(nvmlDevice_t, "device"), InOut(U32, "vgpuCount"),
     Out(Array(nvmlVgpuTypeId_t, "*vgpuCount"), "vgpuTypeIds", opt=True))
call("nvmlVgpuTypeGetClass", In(nvmlVgpuTypeId_t, "vgpuTypeId"),
     Out(TextBuf("*size"), "vgpuTypeClass", opt=True), InOut(U32, "size"))
call("nvmlVgpuTypeGetName", In(nvmlVgpuTypeId_t, "vgpuTypeId"),
     Out(TextBuf("*size"), "vgpuTypeName", opt=True), InOut(U32, "size"))
call("nvmlVgpuTypeGetGpuInstanceProfileId", In(nvmlVgpuTypeId_t, "vgpuTypeId"),
     Out(U32, "gpuInstanceProfileId"))
call("nvmlVgpuTypeGetDeviceID", In(nvmlVgpuTypeId_t, "vgpuTypeId"), Out(U64, "deviceID"),
     Out(U64, "subsystemID"))
call("nvmlVgpuTypeGetFramebufferSize", In(nvmlVgpuTypeId_t, "vgpuTypeId"), Out(U64, "fbSize"))
call("nvmlVgpuTypeGetNumDisplayHeads", In(nvmlVgpuTypeId_t, "vgpuTypeId"),
     Out(U32, "numDisplayHeads"))
call("nvmlVgpuTypeGetResolution", In(nvmlVgpuTypeId_t, "vgpuTypeId"), In(U32, "displayIndex"),
     Out(U32, "xdim"), Out(U32, "ydim"))
call("nvmlVgpuTypeGetLicense", In(nvmlVgpuTypeId_t, "vgpuTypeId"),
     Out(TextBuf("size"), "vgpuTypeLicenseString"), In(U32, "size"))
call("nvmlVgpuTypeGetFrameRateLimit", In(nvmlVgpuTypeId_t, "vgpuTypeId"),
     Out(U32, "frameRateLimit"))
call("nvmlVgpuTypeGetMaxInstances", In(nvmlDevice_t, "device"), In(nvmlVgpuTypeId_t, "vgpuTypeId"),
     Out(U32, "vgpuInstanceCount"))
call("nvmlVgpuTypeGetMaxInstancesPerVm", In(nvmlVgpuTypeId_t, "vgpuTypeId"),
     Out(U32, "vgpuInstanceCountPerVm"))
call("nvmlVgpuTypeGetBAR1Info", In(nvmlVgpuTypeId_t, "vgpuTypeId"),
     InOut(nvmlVgpuTypeBar1Info_v1_t, "bar1Info"))
call("nvmlDeviceGetActiveVgpus", In(nvmlDevice_t, "device"), InOut(U32, "vgpuCount"),
     Out(Array(nvmlVgpuInstance_t, "*vgpuCount"), "vgpuInstances", opt=True))
call("nvmlVgpuInstanceGetVmID", In(nvmlVgpuInstance_t, "vgpuInstance"),
     Out(TextBuf("size"), "vmId"), In(U32, "size"), Out(nvmlVgpuVmIdType_t, "vmIdType"))
call("nvmlVgpuInstanceGetUUID", In(nvmlVgpuInstance_t, "vgpuInstance"),
     Out(TextBuf("size"), "uuid"), In(U32, "size"))
call("nvmlVgpuInstanceGetVmDriverVersion", In(nvmlVgpuInstance_t, "vgpuInstance"),
     Out(TextBuf("length"), "version"), In(U32, "length"))
call("nvmlVgpuInstanceGetFbUsage", In(nvmlVgpuInstance_t, "vgpuInstance"), Out(U64, "fbUsage"))
call("nvmlVgpuInstanceGetLicenseStatus", In(nvmlVgpuInstance_t, "vgpuInstance"),
     Out(U32, "licensed"))
call("nvmlVgpuInstanceGetType", In(nvmlVgpuInstance_t, "vgpuInstance"),
     Out(nvmlVgpuTypeId_t, "vgpuTypeId"))
call("nvmlVgpuInstanceGetFrameRateLimit", In(nvmlVgpuInstance_t, "vgpuInstance"),
     Out(U32, "frameRateLimit"))
call("nvmlVgpuInstanceGetEccMode", In(nvmlVgpuInstance_t, "vgpuInstance"),
     Out(nvmlEnableState_t, "eccMode"))
call("nvmlVgpuInstanceGetEncoderCapacity", In(nvmlVgpuInstance_t, "vgpuInstance"),
     Out(U32, "encoderCapacity"))
call("nvmlVgpuInstanceSetEncoderCapacity", In(nvmlVgpuInstance_t, "vgpuInstance"),
     In(U32, "encoderCapacity"))
call("nvmlVgpuInstanceGetEncoderStats", In(nvmlVgpuInstance_t, "vgpuInstance"),
     Out(U32, "sessionCount"), Out(U32, "averageFps"), Out(U32, "averageLatency"))
call("nvmlVgpuInstanceGetEncoderSessions", In(nvmlVgpuInstance_t, "vgpuInstance"),
     InOut(U32, "sessionCount"),
     Out(Array(nvmlEncoderSessionInfo_t, "*sessionCount"), "sessionInfo", opt=True))
call("nvmlVgpuInstanceGetFBCStats", In(nvmlVgpuInstance_t, "vgpuInstance"),
     Out(nvmlFBCStats_t, "fbcStats"))
call("nvmlVgpuInstanceGetFBCSessions", In(nvmlVgpuInstance_t, "vgpuInstance"),
     InOut(U32, "sessionCount"),
     Out(Array(nvmlFBCSessionInfo_t, "*sessionCount"), "sessionInfo", opt=True))
call("nvmlVgpuInstanceGetGpuInstanceId", In(nvmlVgpuInstance_t, "vgpuInstance"),
     Out(U32, "gpuInstanceId"))
call("nvmlVgpuInstanceGetGpuPciId", In(nvmlVgpuInstance_t, "vgpuInstance"),
     Out(TextBuf("*length"), "vgpuPciId", opt=True), InOut(U32, "length"))
call("nvmlVgpuTypeGetCapabilities", In(nvmlVgpuTypeId_t, "vgpuTypeId"),
     In(nvmlVgpuCapability_t, "capability"), Out(U32, "capResult"))
call("nvmlVgpuInstanceGetMdevUUID", In(nvmlVgpuInstance_t, "vgpuInstance"),
     Out(TextBuf("size"), "mdevUuid"), In(U32, "size"))
call("nvmlGpuInstanceGetCreatableVgpus", In(nvmlGpuInstance_t, "gpuInstance"),
     InOut(nvmlVgpuTypeIdInfo_v1_t, "pVgpus"))
call("nvmlVgpuTypeGetMaxInstancesPerGpuInstance",
     InOut(nvmlVgpuTypeMaxInstance_v1_t, "pMaxInstance"))
call("nvmlGpuInstanceGetActiveVgpus", In(nvmlGpuInstance_t, "gpuInstance"),
     InOut(nvmlActiveVgpuInstanceInfo_v1_t, "pVgpuInstanceInfo"))
call("nvmlGpuInstanceSetVgpuSchedulerState", In(nvmlGpuInstance_t, "gpuInstance"),
     InOut(nvmlVgpuSchedulerState_v1_t, "pScheduler"))
call("nvmlGpuInstanceGetVgpuSchedulerState", In(nvmlGpuInstance_t, "gpuInstance"),
     InOut(nvmlVgpuSchedulerStateInfo_v1_t, "pSchedulerStateInfo"))
call("nvmlGpuInstanceGetVgpuSchedulerLog", In(nvmlGpuInstance_t, "gpuInstance"),
     InOut(nvmlVgpuSchedulerLogInfo_v1_t, "pSchedulerLogInfo"))
call("nvmlGpuInstanceGetVgpuTypeCreatablePlacements", In(nvmlGpuInstance_t, "gpuInstance"),
     InOut(nvmlVgpuCreatablePlacementInfo_v1_t, "pCreatablePlacementInfo"))
call("nvmlGpuInstanceGetVgpuHeterogeneousMode", In(nvmlGpuInstance_t, "gpuInstance"),
     InOut(nvmlVgpuHeterogeneousMode_v1_t, "pHeterogeneousMode"))
call("nvmlGpuInstanceSetVgpuHeterogeneousMode", In(nvmlGpuInstance_t, "gpuInstance"),
     In(Ref(nvmlVgpuHeterogeneousMode_v1_t), "pHeterogeneousMode"))
call("nvmlVgpuInstanceGetMetadata", In(nvmlVgpuInstance_t, "vgpuInstance"),
     Out(Bytes("*bufferSize", c="nvmlVgpuMetadata_t"), "vgpuMetadata", opt=True),
     InOut(U32, "bufferSize"))
call("nvmlDeviceGetVgpuMetadata", In(nvmlDevice_t, "device"),
     Out(Bytes("*bufferSize", c="nvmlVgpuPgpuMetadata_t"), "pgpuMetadata", opt=True),
     InOut(U32, "bufferSize"))
call("nvmlGetVgpuCompatibility", In(Ref(nvmlVgpuMetadata_t, mut=True), "vgpuMetadata"),
     In(Ref(nvmlVgpuPgpuMetadata_t, mut=True), "pgpuMetadata"),
     Out(nvmlVgpuPgpuCompatibility_t, "compatibilityInfo"))
call("nvmlDeviceGetVgpuSchedulerLog", In(nvmlDevice_t, "device"),
     Out(nvmlVgpuSchedulerLog_t, "pSchedulerLog"))
call("nvmlDeviceGetVgpuSchedulerState", In(nvmlDevice_t, "device"),
     Out(nvmlVgpuSchedulerGetState_t, "pSchedulerState"))
call("nvmlDeviceGetVgpuSchedulerCapabilities", In(nvmlDevice_t, "device"),
     Out(nvmlVgpuSchedulerCapabilities_t, "pCapabilities"))
call("nvmlDeviceSetVgpuSchedulerState", In(nvmlDevice_t, "device"),
     In(Ref(nvmlVgpuSchedulerSetState_t, mut=True), "pSchedulerState"))
call("nvmlGetVgpuVersion", Out(nvmlVgpuVersion_t, "supported"), Out(nvmlVgpuVersion_t, "current"))
call("nvmlSetVgpuVersion", In(Ref(nvmlVgpuVersion_t, mut=True), "vgpuVersion"))
call("nvmlDeviceGetVgpuUtilization", In(nvmlDevice_t, "device"), In(U64, "lastSeenTimeStamp"),
     Out(nvmlValueType_t, "sampleValType"), InOut(U32, "vgpuInstanceSamplesCount"),
     Out(Array(nvmlVgpuInstanceUtilizationSample_t, "*vgpuInstanceSamplesCount"),
         "utilizationSamples", opt=True))
call("nvmlDeviceGetVgpuInstancesUtilizationInfo", In(nvmlDevice_t, "device"),
     InOut(nvmlVgpuInstancesUtilizationInfo_v1_t, "vgpuUtilInfo"))
call("nvmlDeviceGetVgpuProcessUtilization", In(nvmlDevice_t, "device"),
     In(U64, "lastSeenTimeStamp"), InOut(U32, "vgpuProcessSamplesCount"),
     Out(Array(nvmlVgpuProcessUtilizationSample_t, "*vgpuProcessSamplesCount"),
         "utilizationSamples", opt=True))
call("nvmlDeviceGetVgpuProcessesUtilizationInfo", In(nvmlDevice_t, "device"),
     InOut(nvmlVgpuProcessesUtilizationInfo_v1_t, "vgpuProcUtilInfo"))
call("nvmlVgpuInstanceGetAccountingMode", In(nvmlVgpuInstance_t, "vgpuInstance"),
     Out(nvmlEnableState_t, "mode"))
call("nvmlVgpuInstanceGetAccountingPids", In(nvmlVgpuInstance_t, "vgpuInstance"),
     InOut(U32, "count"), Out(Array(U32, "*count"), "pids", opt=True))
call("nvmlVgpuInstanceGetAccountingStats", In(nvmlVgpuInstance_t, "vgpuInstance"), In(U32, "pid"),
     Out(nvmlAccountingStats_t, "stats"))
call("nvmlVgpuInstanceClearAccountingPids", In(nvmlVgpuInstance_t, "vgpuInstance"))
call("nvmlVgpuInstanceGetLicenseInfo_v2", In(nvmlVgpuInstance_t, "vgpuInstance"),
     Out(nvmlVgpuLicenseInfo_t, "licenseInfo"))
call("nvmlDeviceGetGridLicensableFeatures", In(nvmlDevice_t, "device"),
     Out(nvmlGridLicensableFeatures_t, "pGridLicensableFeatures"))
call("nvmlDeviceGetGridLicensableFeatures_v2", In(nvmlDevice_t, "device"),
     Out(nvmlGridLicensableFeatures_t, "pGridLicensableFeatures"))
call("nvmlDeviceGetGridLicensableFeatures_v3", In(nvmlDevice_t, "device"),
     Out(nvmlGridLicensableFeatures_t, "pGridLicensableFeatures"))
call("nvmlVgpuInstanceGetLicenseInfo", In(nvmlVgpuInstance_t, "vgpuInstance"),
     Out(nvmlVgpuLicenseInfo_t, "licenseInfo"))
