"""NVML: the library, the system, units, events."""

api(prefix="nvml", result="nvmlReturn_t", headers=["nvml.h"], after="none",
    short="NVML_ERROR_INSUFFICIENT_SIZE")

# It returns a text, not a result: no layer sees it.
export("nvmlErrorString")

# The texts are those of NVIDIA's library (580).
enum("nvmlReturn_t",
     NVML_SUCCESS=(0, "Success"),
     NVML_ERROR_UNINITIALIZED=(1, "Uninitialized"),
     NVML_ERROR_INVALID_ARGUMENT=(2, "Invalid Argument"),
     NVML_ERROR_NOT_SUPPORTED=(3, "Not Supported"),
     NVML_ERROR_NO_PERMISSION=(4, "Insufficient Permissions"),
     NVML_ERROR_ALREADY_INITIALIZED=(5, "Already Initialized"),
     NVML_ERROR_NOT_FOUND=(6, "Not Found"),
     NVML_ERROR_INSUFFICIENT_SIZE=(7, "Insufficient Size"),
     NVML_ERROR_INSUFFICIENT_POWER=(8, "Insufficient External Power"),
     NVML_ERROR_DRIVER_NOT_LOADED=(9, "Driver Not Loaded"),
     NVML_ERROR_TIMEOUT=(10, "Timeout"),
     NVML_ERROR_IRQ_ISSUE=(11, "Interrupt Request Issue"),
     NVML_ERROR_LIBRARY_NOT_FOUND=(12, "NVML Shared Library Not Found"),
     NVML_ERROR_FUNCTION_NOT_FOUND=(13, "Function Not Found"),
     NVML_ERROR_CORRUPTED_INFOROM=(14, "Corrupted infoROM"),
     NVML_ERROR_GPU_IS_LOST=(15, "GPU is lost"),
     NVML_ERROR_RESET_REQUIRED=(16, "GPU requires reset"),
     NVML_ERROR_OPERATING_SYSTEM=(17, "GPU access blocked by the operating system"),
     NVML_ERROR_LIB_RM_VERSION_MISMATCH=(18, "Driver/library version mismatch"),
     NVML_ERROR_IN_USE=(19, "In use by another client"),
     NVML_ERROR_MEMORY=(20, "Insufficient Memory"),
     NVML_ERROR_NO_DATA=(21, "No data"),
     NVML_ERROR_VGPU_ECC_NOT_SUPPORTED=(22, "vGPU ECC not supported"),
     NVML_ERROR_INSUFFICIENT_RESOURCES=(23, "Insufficient Resources"),
     NVML_ERROR_FREQ_NOT_SUPPORTED=(24, "Invalid Frequency"),
     NVML_ERROR_ARGUMENT_VERSION_MISMATCH=(25, "Argument version mismatch"),
     NVML_ERROR_DEPRECATED=(26, "Requested functionality has been deprecated"),
     NVML_ERROR_NOT_READY=(27, "System is not in ready state"),
     NVML_ERROR_GPU_NOT_FOUND=(28, "No supported GPUs were found"),
     NVML_ERROR_INVALID_STATE=(
         29, "Resource not in correct state to perform requested operation"),
     NVML_ERROR_RESET_TYPE_NOT_SUPPORTED=(30, "Reset type is not supported for given device"),
     NVML_ERROR_UNKNOWN=(999, "Unknown Error"))

struct("nvmlHwbcEntry_t",
       F(U32, "hwbcId"),
       F(CHAR, "firmwareVersion", 32))

handle("nvmlDevice_t", "device", "struct nvmlDevice_st")

struct("nvmlSystemDriverBranchInfo_v1_t",
       F(U32, "version"),
       F(CHAR, "branch", 80))

handle("nvmlUnit_t", "unit", "struct nvmlUnit_st")

struct("nvmlUnitInfo_t",
       F(CHAR, "name", 96),
       F(CHAR, "id", 96),
       F(CHAR, "serial", 96),
       F(CHAR, "firmwareVersion", 96))

enum("nvmlLedColor_t",
     NVML_LED_COLOR_GREEN=0, NVML_LED_COLOR_AMBER=1)

struct("nvmlLedState_t",
       F(CHAR, "cause", 256),
       F(nvmlLedColor_t, "color"))

struct("nvmlPSUInfo_t",
       F(CHAR, "state", 256),
       F(U32, "current"),
       F(U32, "voltage"),
       F(U32, "power"))

enum("nvmlFanState_t",
     NVML_FAN_NORMAL=0, NVML_FAN_FAILED=1)

struct("nvmlUnitFanInfo_t",
       F(U32, "speed"),
       F(nvmlFanState_t, "state"))

struct("nvmlUnitFanSpeeds_t",
       F(nvmlUnitFanInfo_t, "fans", 24),
       F(U32, "count"))

struct("nvmlConfComputeSystemCaps_t",
       F(U32, "cpuCaps"),
       F(U32, "gpusCaps"))

struct("nvmlConfComputeSystemState_t",
       F(U32, "environment"),
       F(U32, "ccFeature"),
       F(U32, "devToolsMode"))

struct("nvmlConfComputeGetKeyRotationThresholdInfo_v1_t",
       F(U32, "version"),
       F(U64, "attackerAdvantage"))

struct("nvmlConfComputeSetKeyRotationThresholdInfo_v1_t",
       F(U32, "version"),
       F(U64, "maxAttackerAdvantage"))

struct("nvmlSystemConfComputeSettings_v1_t",
       F(U32, "version"),
       F(U32, "environment"),
       F(U32, "ccFeature"),
       F(U32, "devToolsMode"),
       F(U32, "multiGpuMode"))

handle("nvmlEventSet_t", "eventSet", "struct nvmlEventSet_st")

struct("nvmlEventData_t",
       F(nvmlDevice_t, "device"),
       F(U64, "eventType"),
       F(U64, "eventData"),
       F(U32, "gpuInstanceId"),
       F(U32, "computeInstanceId"))

handle("nvmlSystemEventSet_t", "systemEventSet", "struct nvmlSystemEventSet_st")

struct("nvmlSystemEventSetCreateRequest_v1_t",
       F(U32, "version"),
       F(nvmlSystemEventSet_t, "set"))

struct("nvmlSystemEventSetFreeRequest_v1_t",
       F(U32, "version"),
       F(nvmlSystemEventSet_t, "set"))

struct("nvmlSystemRegisterEventRequest_v1_t",
       F(U32, "version"),
       F(U64, "eventTypes"),
       F(nvmlSystemEventSet_t, "set"))

struct("nvmlSystemEventData_v1_t",
       F(U64, "eventType"),
       F(U32, "gpuId"))

struct("nvmlSystemEventSetWaitRequest_v1_t",
       F(U32, "version"),
       F(U32, "timeoutms"),
       F(nvmlSystemEventSet_t, "set"),
       F(Ptr("nvmlSystemEventData_v1_t *"), "data"),
       F(U32, "dataSize"),
       F(U32, "numEvent"))

struct("nvmlPciInfo_t",
       F(CHAR, "busIdLegacy", 16),
       F(U32, "domain"),
       F(U32, "bus"),
       F(U32, "device"),
       F(U32, "pciDeviceId"),
       F(U32, "pciSubSystemId"),
       F(CHAR, "busId", 32))

struct("nvmlExcludedDeviceInfo_t",
       F(nvmlPciInfo_t, "pciInfo"),
       F(CHAR, "uuid", 80))

handle("nvmlGpmSample_t", "gpmSample", "struct nvmlGpmSample_st")

struct("nvmlGpmMetric_t",
       F(U32, "metricId"),
       F(nvmlReturn_t, "nvmlReturn"),
       F(F64, "value"),
       F(inner("struct",
               F(Ptr("char *"), "shortName"),
               F(Ptr("char *"), "longName"),
               F(Ptr("char *"), "unit")), "metricInfo"))

struct("nvmlGpmMetricsGet_t",
       F(U32, "version"),
       F(U32, "numMetrics"),
       F(nvmlGpmSample_t, "sample1"),
       F(nvmlGpmSample_t, "sample2"),
       F(nvmlGpmMetric_t, "metrics", 210))

struct("nvmlGpmSupport_t",
       F(U32, "version"),
       F(U32, "isSupportedDevice"))

call("nvmlInit_v2")
call("nvmlInitWithFlags", In(U32, "flags"))
call("nvmlShutdown")
call("nvmlSystemGetDriverVersion", Out(TextBuf("length"), "version"), In(U32, "length"))
call("nvmlSystemGetNVMLVersion", Out(TextBuf("length"), "version"), In(U32, "length"))
call("nvmlSystemGetCudaDriverVersion", Out(I32, "cudaDriverVersion"))
call("nvmlSystemGetCudaDriverVersion_v2", Out(I32, "cudaDriverVersion"))
call("nvmlSystemGetProcessName", In(U32, "pid"), Out(TextBuf("length"), "name"), In(U32, "length"))
call("nvmlSystemGetHicVersion", InOut(U32, "hwbcCount"),
     Out(Array(nvmlHwbcEntry_t, "*hwbcCount"), "hwbcEntries", opt=True))
call("nvmlSystemGetTopologyGpuSet", In(U32, "cpuNumber"), InOut(U32, "count"),
     Out(Array(nvmlDevice_t, "*count"), "deviceArray", opt=True))
call("nvmlSystemGetDriverBranch", InOut(nvmlSystemDriverBranchInfo_v1_t, "branchInfo"),
     In(U32, "length"))
call("nvmlUnitGetCount", Out(U32, "unitCount"))
call("nvmlUnitGetHandleByIndex", In(U32, "index"), Out(nvmlUnit_t, "unit"))
call("nvmlUnitGetUnitInfo", In(nvmlUnit_t, "unit"), Out(nvmlUnitInfo_t, "info"))
call("nvmlUnitGetLedState", In(nvmlUnit_t, "unit"), Out(nvmlLedState_t, "state"))
call("nvmlUnitGetPsuInfo", In(nvmlUnit_t, "unit"), Out(nvmlPSUInfo_t, "psu"))
call("nvmlUnitGetTemperature", In(nvmlUnit_t, "unit"), In(U32, "type"), Out(U32, "temp"))
call("nvmlUnitGetFanSpeedInfo", In(nvmlUnit_t, "unit"), Out(nvmlUnitFanSpeeds_t, "fanSpeeds"))
call("nvmlUnitGetDevices", In(nvmlUnit_t, "unit"), InOut(U32, "deviceCount"),
     Out(Array(nvmlDevice_t, "*deviceCount"), "devices", opt=True))
call("nvmlSystemGetConfComputeCapabilities", Out(nvmlConfComputeSystemCaps_t, "capabilities"))
call("nvmlSystemGetConfComputeState", Out(nvmlConfComputeSystemState_t, "state"))
call("nvmlSystemGetConfComputeGpusReadyState", Out(U32, "isAcceptingWork"))
call("nvmlSystemGetConfComputeKeyRotationThresholdInfo",
     InOut(nvmlConfComputeGetKeyRotationThresholdInfo_v1_t, "pKeyRotationThrInfo"))
call("nvmlSystemSetConfComputeGpusReadyState", In(U32, "isAcceptingWork"))
call("nvmlSystemSetConfComputeKeyRotationThresholdInfo",
     InOut(nvmlConfComputeSetKeyRotationThresholdInfo_v1_t, "pKeyRotationThrInfo"))
call("nvmlSystemGetConfComputeSettings", InOut(nvmlSystemConfComputeSettings_v1_t, "settings"))
call("nvmlUnitSetLedState", In(nvmlUnit_t, "unit"), In(nvmlLedColor_t, "color"))
call("nvmlSystemSetNvlinkBwMode", In(U32, "nvlinkBwMode"))
call("nvmlSystemGetNvlinkBwMode", Out(U32, "nvlinkBwMode"))
call("nvmlEventSetCreate", Out(nvmlEventSet_t, "set", new="eventSet"))
call("nvmlEventSetWait_v2", In(nvmlEventSet_t, "set"), Out(nvmlEventData_t, "data"),
     In(U32, "timeoutms"), blocks=True)
call("nvmlEventSetFree", In(nvmlEventSet_t, "set", free="eventSet"))
call("nvmlSystemEventSetCreate", InOut(nvmlSystemEventSetCreateRequest_v1_t, "request"))
call("nvmlSystemEventSetFree", InOut(nvmlSystemEventSetFreeRequest_v1_t, "request"))
call("nvmlSystemRegisterEvents", InOut(nvmlSystemRegisterEventRequest_v1_t, "request"))
call("nvmlSystemEventSetWait", InOut(nvmlSystemEventSetWaitRequest_v1_t, "request"), blocks=True)
call("nvmlGetExcludedDeviceCount", Out(U32, "deviceCount"))
call("nvmlGetExcludedDeviceInfoByIndex", In(U32, "index"), Out(nvmlExcludedDeviceInfo_t, "info"))
call("nvmlGpmMetricsGet", InOut(nvmlGpmMetricsGet_t, "metricsGet"))
call("nvmlGpmSampleFree", In(nvmlGpmSample_t, "gpmSample"))
call("nvmlGpmSampleAlloc", Out(nvmlGpmSample_t, "gpmSample"))
call("nvmlGpmSampleGet", In(nvmlDevice_t, "device"), In(nvmlGpmSample_t, "gpmSample"))
call("nvmlGpmQueryDeviceSupport", In(nvmlDevice_t, "device"), InOut(nvmlGpmSupport_t, "gpmSupport"))
call("nvmlGpmQueryIfStreamingEnabled", In(nvmlDevice_t, "device"), Out(U32, "state"))
call("nvmlGpmSetStreamingEnabled", In(nvmlDevice_t, "device"), In(U32, "state"))
call("nvmlInit")
call("nvmlEventSetWait", In(nvmlEventSet_t, "set"), Out(nvmlEventData_t, "data"),
     In(U32, "timeoutms"), blocks=True)
call("nvmlInternalGetExportTable", Out(CPTR, "table"), In(CPTR, "id"), header="none")
