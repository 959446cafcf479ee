"""NVML: calls that change a device's state."""

alias("nvmlPowerScopeType_t", U8)

struct("nvmlPowerValue_v2_t",
       F(U32, "version"),
       F(nvmlPowerScopeType_t, "powerScope"),
       F(U32, "powerValueMw"))

struct("nvmlNvLinkPowerThres_t",
       F(U32, "lowPwrThreshold"))

struct("nvmlNvlinkSetBwMode_v1_t",
       F(U32, "version"),
       F(U32, "bSetBest"),
       F(U8, "bwMode"))

enum("nvmlDetachGpuState_t",
     NVML_DETACH_GPU_KEEP=0, NVML_DETACH_GPU_REMOVE=1)

enum("nvmlPcieLinkState_t",
     NVML_PCIE_LINK_KEEP=0, NVML_PCIE_LINK_SHUT_DOWN=1)

struct("nvmlWorkloadPowerProfileRequestedProfiles_v1_t",
       F(U32, "version"),
       F(nvmlMask255_t, "requestedProfilesMask"))

struct("nvmlPowerSmoothingProfile_v1_t",
       F(U32, "version"),
       F(U32, "profileId"),
       F(U32, "paramId"),
       F(F64, "value"))

struct("nvmlPowerSmoothingState_v1_t",
       F(U32, "version"),
       F(nvmlEnableState_t, "state"))

call("nvmlDeviceSetCpuAffinity", In(nvmlDevice_t, "device"))
call("nvmlDeviceClearCpuAffinity", In(nvmlDevice_t, "device"))
call("nvmlDeviceValidateInforom", In(nvmlDevice_t, "device"))
call("nvmlDeviceSetClockOffsets", In(nvmlDevice_t, "device"), InOut(nvmlClockOffset_v1_t, "info"))
call("nvmlDeviceSetPowerMizerMode_v1", In(nvmlDevice_t, "device"),
     In(Ref(nvmlDevicePowerMizerModes_v1_t, mut=True), "powerMizerMode"))
call("nvmlDeviceSetDramEncryptionMode", In(nvmlDevice_t, "device"),
     In(Ref(nvmlDramEncryptionInfo_v1_t), "dramEncryption"))
call("nvmlDeviceSetConfComputeUnprotectedMemSize", In(nvmlDevice_t, "device"), In(U64, "sizeKiB"))
call("nvmlDeviceSetPowerManagementLimit_v2", In(nvmlDevice_t, "device"),
     InOut(nvmlPowerValue_v2_t, "powerValue"))
call("nvmlDeviceSetHostname_v1", In(nvmlDevice_t, "device"),
     In(Ref(nvmlHostname_v1_t, mut=True), "hostname"))
call("nvmlDeviceSetPersistenceMode", In(nvmlDevice_t, "device"), In(nvmlEnableState_t, "mode"))
call("nvmlDeviceSetComputeMode", In(nvmlDevice_t, "device"), In(nvmlComputeMode_t, "mode"))
call("nvmlDeviceSetEccMode", In(nvmlDevice_t, "device"), In(nvmlEnableState_t, "ecc"))
call("nvmlDeviceClearEccErrorCounts", In(nvmlDevice_t, "device"),
     In(nvmlEccCounterType_t, "counterType"))
call("nvmlDeviceSetDriverModel", In(nvmlDevice_t, "device"), In(nvmlDriverModel_t, "driverModel"),
     In(U32, "flags"))
call("nvmlDeviceSetGpuLockedClocks", In(nvmlDevice_t, "device"), In(U32, "minGpuClockMHz"),
     In(U32, "maxGpuClockMHz"))
call("nvmlDeviceResetGpuLockedClocks", In(nvmlDevice_t, "device"))
call("nvmlDeviceSetMemoryLockedClocks", In(nvmlDevice_t, "device"), In(U32, "minMemClockMHz"),
     In(U32, "maxMemClockMHz"))
call("nvmlDeviceResetMemoryLockedClocks", In(nvmlDevice_t, "device"))
call("nvmlDeviceSetApplicationsClocks", In(nvmlDevice_t, "device"), In(U32, "memClockMHz"),
     In(U32, "graphicsClockMHz"))
call("nvmlDeviceResetApplicationsClocks", In(nvmlDevice_t, "device"))
call("nvmlDeviceSetAutoBoostedClocksEnabled", In(nvmlDevice_t, "device"),
     In(nvmlEnableState_t, "enabled"))
call("nvmlDeviceSetDefaultAutoBoostedClocksEnabled", In(nvmlDevice_t, "device"),
     In(nvmlEnableState_t, "enabled"), In(U32, "flags"))
call("nvmlDeviceSetDefaultFanSpeed_v2", In(nvmlDevice_t, "device"), In(U32, "fan"))
call("nvmlDeviceSetFanControlPolicy", In(nvmlDevice_t, "device"), In(U32, "fan"),
     In(nvmlFanControlPolicy_t, "policy"))
call("nvmlDeviceSetTemperatureThreshold", In(nvmlDevice_t, "device"),
     In(nvmlTemperatureThresholds_t, "thresholdType"), In(Ref(I32, mut=True), "temp"))
call("nvmlDeviceSetPowerManagementLimit", In(nvmlDevice_t, "device"), In(U32, "limit"))
call("nvmlDeviceSetGpuOperationMode", In(nvmlDevice_t, "device"),
     In(nvmlGpuOperationMode_t, "mode"))
call("nvmlDeviceSetAPIRestriction", In(nvmlDevice_t, "device"), In(nvmlRestrictedAPI_t, "apiType"),
     In(nvmlEnableState_t, "isRestricted"))
call("nvmlDeviceSetFanSpeed_v2", In(nvmlDevice_t, "device"), In(U32, "fan"), In(U32, "speed"))
call("nvmlDeviceSetGpcClkVfOffset", In(nvmlDevice_t, "device"), In(I32, "offset"))
call("nvmlDeviceSetMemClkVfOffset", In(nvmlDevice_t, "device"), In(I32, "offset"))
call("nvmlDeviceSetAccountingMode", In(nvmlDevice_t, "device"), In(nvmlEnableState_t, "mode"))
call("nvmlDeviceClearAccountingPids", In(nvmlDevice_t, "device"))
call("nvmlDeviceResetNvLinkErrorCounters", In(nvmlDevice_t, "device"), In(U32, "link"))
call("nvmlDeviceSetNvLinkUtilizationControl", In(nvmlDevice_t, "device"), In(U32, "link"),
     In(U32, "counter"), In(Ref(nvmlNvLinkUtilizationControl_t, mut=True), "control"),
     In(U32, "reset"))
call("nvmlDeviceFreezeNvLinkUtilizationCounter", In(nvmlDevice_t, "device"), In(U32, "link"),
     In(U32, "counter"), In(nvmlEnableState_t, "freeze"))
call("nvmlDeviceResetNvLinkUtilizationCounter", In(nvmlDevice_t, "device"), In(U32, "link"),
     In(U32, "counter"))
call("nvmlDeviceSetNvLinkDeviceLowPowerThreshold", In(nvmlDevice_t, "device"),
     In(Ref(nvmlNvLinkPowerThres_t, mut=True), "info"))
call("nvmlDeviceSetNvlinkBwMode", In(nvmlDevice_t, "device"),
     InOut(nvmlNvlinkSetBwMode_v1_t, "setBwMode"))
call("nvmlDeviceRegisterEvents", In(nvmlDevice_t, "device"), In(U64, "eventTypes"),
     In(nvmlEventSet_t, "set"))
call("nvmlDeviceModifyDrainState", In(Ref(nvmlPciInfo_t, mut=True), "pciInfo"),
     In(nvmlEnableState_t, "newState"))
call("nvmlDeviceRemoveGpu_v2", In(Ref(nvmlPciInfo_t, mut=True), "pciInfo"),
     In(nvmlDetachGpuState_t, "gpuState"), In(nvmlPcieLinkState_t, "linkState"))
call("nvmlDeviceDiscoverGpus", In(Ref(nvmlPciInfo_t, mut=True), "pciInfo"))
call("nvmlDeviceClearFieldValues", In(nvmlDevice_t, "device"), In(I32, "valuesCount"),
     InOut(Array(nvmlFieldValue_t, "valuesCount"), "values"))
call("nvmlDeviceSetVirtualizationMode", In(nvmlDevice_t, "device"),
     In(nvmlGpuVirtualizationMode_t, "virtualMode"))
call("nvmlDeviceWorkloadPowerProfileSetRequestedProfiles", In(nvmlDevice_t, "device"),
     InOut(nvmlWorkloadPowerProfileRequestedProfiles_v1_t, "requestedProfiles"))
call("nvmlDeviceWorkloadPowerProfileClearRequestedProfiles", In(nvmlDevice_t, "device"),
     InOut(nvmlWorkloadPowerProfileRequestedProfiles_v1_t, "requestedProfiles"))
call("nvmlDevicePowerSmoothingActivatePresetProfile", In(nvmlDevice_t, "device"),
     InOut(nvmlPowerSmoothingProfile_v1_t, "profile"))
call("nvmlDevicePowerSmoothingUpdatePresetProfileParam", In(nvmlDevice_t, "device"),
     InOut(nvmlPowerSmoothingProfile_v1_t, "profile"))
call("nvmlDevicePowerSmoothingSetState", In(nvmlDevice_t, "device"),
     InOut(nvmlPowerSmoothingState_v1_t, "state"))
call("nvmlDeviceRemoveGpu", In(Ref(nvmlPciInfo_t, mut=True), "pciInfo"))
