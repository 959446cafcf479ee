"""NVML: devices: identity, memory, clocks, power, temperature, ECC, links, processes: types."""

struct("nvmlDeviceAttributes_t",
       F(U32, "multiprocessorCount"),
       F(U32, "sharedCopyEngineCount"),
       F(U32, "sharedDecoderCount"),
       F(U32, "sharedEncoderCount"),
       F(U32, "sharedJpegCount"),
       F(U32, "sharedOfaCount"),
       F(U32, "gpuInstanceSliceCount"),
       F(U32, "computeInstanceSliceCount"),
       F(U64, "memorySizeMB"))

union("nvmlUUIDValue_t",
      F(CHAR, "str", 41),
      F(U8, "bytes", 16))

struct("nvmlUUID_v1_t",
       F(U32, "version"),
       F(U32, "type"),
       F(nvmlUUIDValue_t, "value"))

enum("nvmlBrandType_t",
     NVML_BRAND_UNKNOWN=0, NVML_BRAND_QUADRO=1, NVML_BRAND_TESLA=2, NVML_BRAND_NVS=3,
     NVML_BRAND_GRID=4, NVML_BRAND_GEFORCE=5, NVML_BRAND_TITAN=6, NVML_BRAND_NVIDIA_VAPPS=7,
     NVML_BRAND_NVIDIA_VPC=8, NVML_BRAND_NVIDIA_VCS=9, NVML_BRAND_NVIDIA_VWS=10,
     NVML_BRAND_NVIDIA_CLOUD_GAMING=11, NVML_BRAND_NVIDIA_VGAMING=11,
     NVML_BRAND_QUADRO_RTX=12, NVML_BRAND_NVIDIA_RTX=13, NVML_BRAND_NVIDIA=14,
     NVML_BRAND_GEFORCE_RTX=15, NVML_BRAND_TITAN_RTX=16, NVML_BRAND_COUNT=18)

struct("nvmlC2cModeInfo_v1_t",
       F(U32, "isC2cEnabled"))

alias("nvmlAffinityScope_t", U32)

struct("nvmlDeviceAddressingMode_v1_t",
       F(U32, "version"),
       F(U32, "value"))

struct("nvmlRepairStatus_v1_t",
       F(U32, "version"),
       F(U32, "bChannelRepairPending"),
       F(U32, "bTpcRepairPending"))

enum("nvmlGpuTopologyLevel_t",
     NVML_TOPOLOGY_INTERNAL=0, NVML_TOPOLOGY_SINGLE=10, NVML_TOPOLOGY_MULTIPLE=20,
     NVML_TOPOLOGY_HOSTBRIDGE=30, NVML_TOPOLOGY_NODE=40, NVML_TOPOLOGY_SYSTEM=50)

enum("nvmlGpuP2PCapsIndex_t",
     NVML_P2P_CAPS_INDEX_READ=0, NVML_P2P_CAPS_INDEX_WRITE=1, NVML_P2P_CAPS_INDEX_NVLINK=2,
     NVML_P2P_CAPS_INDEX_ATOMICS=3, NVML_P2P_CAPS_INDEX_PCI=4, NVML_P2P_CAPS_INDEX_PROP=4,
     NVML_P2P_CAPS_INDEX_UNKNOWN=5)

enum("nvmlGpuP2PStatus_t",
     NVML_P2P_STATUS_OK=0, NVML_P2P_STATUS_CHIPSET_NOT_SUPPORED=1,
     NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED=1, NVML_P2P_STATUS_GPU_NOT_SUPPORTED=2,
     NVML_P2P_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED=3, NVML_P2P_STATUS_DISABLED_BY_REGKEY=4,
     NVML_P2P_STATUS_NOT_SUPPORTED=5, NVML_P2P_STATUS_UNKNOWN=6)

enum("nvmlInforomObject_t",
     NVML_INFOROM_OEM=0, NVML_INFOROM_ECC=1, NVML_INFOROM_POWER=2, NVML_INFOROM_DEN=3,
     NVML_INFOROM_COUNT=4)

enum("nvmlEnableState_t",
     NVML_FEATURE_DISABLED=0, NVML_FEATURE_ENABLED=1)

struct("nvmlPciInfoExt_v1_t",
       F(U32, "version"),
       F(U32, "domain"),
       F(U32, "bus"),
       F(U32, "device"),
       F(U32, "pciDeviceId"),
       F(U32, "pciSubSystemId"),
       F(U32, "baseClass"),
       F(U32, "subClass"),
       F(CHAR, "busId", 32))

enum("nvmlPcieUtilCounter_t",
     NVML_PCIE_UTIL_TX_BYTES=0, NVML_PCIE_UTIL_RX_BYTES=1, NVML_PCIE_UTIL_COUNT=2)

enum("nvmlClockType_t",
     NVML_CLOCK_GRAPHICS=0, NVML_CLOCK_SM=1, NVML_CLOCK_MEM=2, NVML_CLOCK_VIDEO=3,
     NVML_CLOCK_COUNT=4)

enum("nvmlClockId_t",
     NVML_CLOCK_ID_CURRENT=0, NVML_CLOCK_ID_APP_CLOCK_TARGET=1,
     NVML_CLOCK_ID_APP_CLOCK_DEFAULT=2, NVML_CLOCK_ID_CUSTOMER_BOOST_MAX=3,
     NVML_CLOCK_ID_COUNT=4)

struct("nvmlFanSpeedInfo_v1_t",
       F(U32, "version"),
       F(U32, "fan"),
       F(U32, "speed"))

alias("nvmlFanControlPolicy_t", U32)

enum("nvmlTemperatureSensors_t",
     NVML_TEMPERATURE_GPU=0, NVML_TEMPERATURE_COUNT=1)

enum("nvmlCoolerControl_t",
     NVML_THERMAL_COOLER_SIGNAL_NONE=0, NVML_THERMAL_COOLER_SIGNAL_TOGGLE=1,
     NVML_THERMAL_COOLER_SIGNAL_VARIABLE=2, NVML_THERMAL_COOLER_SIGNAL_COUNT=3)

enum("nvmlCoolerTarget_t",
     NVML_THERMAL_COOLER_TARGET_NONE=1, NVML_THERMAL_COOLER_TARGET_GPU=2,
     NVML_THERMAL_COOLER_TARGET_MEMORY=4, NVML_THERMAL_COOLER_TARGET_POWER_SUPPLY=8,
     NVML_THERMAL_COOLER_TARGET_GPU_RELATED=14)

struct("nvmlCoolerInfo_v1_t",
       F(U32, "version"),
       F(U32, "index"),
       F(nvmlCoolerControl_t, "signalType"),
       F(nvmlCoolerTarget_t, "target"))

struct("nvmlTemperature_v1_t",
       F(U32, "version"),
       F(nvmlTemperatureSensors_t, "sensorType"),
       F(I32, "temperature"))

enum("nvmlTemperatureThresholds_t",
     NVML_TEMPERATURE_THRESHOLD_SHUTDOWN=0, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN=1,
     NVML_TEMPERATURE_THRESHOLD_MEM_MAX=2, NVML_TEMPERATURE_THRESHOLD_GPU_MAX=3,
     NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MIN=4, NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_CURR=5,
     NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MAX=6, NVML_TEMPERATURE_THRESHOLD_GPS_CURR=7,
     NVML_TEMPERATURE_THRESHOLD_COUNT=8)

struct("nvmlMarginTemperature_v1_t",
       F(U32, "version"),
       F(I32, "marginTemperature"))

enum("nvmlThermalController_t",
     NVML_THERMAL_CONTROLLER_NONE=0, NVML_THERMAL_CONTROLLER_GPU_INTERNAL=1,
     NVML_THERMAL_CONTROLLER_ADM1032=2, NVML_THERMAL_CONTROLLER_ADT7461=3,
     NVML_THERMAL_CONTROLLER_MAX6649=4, NVML_THERMAL_CONTROLLER_MAX1617=5,
     NVML_THERMAL_CONTROLLER_LM99=6, NVML_THERMAL_CONTROLLER_LM89=7,
     NVML_THERMAL_CONTROLLER_LM64=8, NVML_THERMAL_CONTROLLER_G781=9,
     NVML_THERMAL_CONTROLLER_ADT7473=10, NVML_THERMAL_CONTROLLER_SBMAX6649=11,
     NVML_THERMAL_CONTROLLER_VBIOSEVT=12, NVML_THERMAL_CONTROLLER_OS=13,
     NVML_THERMAL_CONTROLLER_NVSYSCON_CANOAS=14, NVML_THERMAL_CONTROLLER_NVSYSCON_E551=15,
     NVML_THERMAL_CONTROLLER_MAX6649R=16, NVML_THERMAL_CONTROLLER_ADT7473S=17,
     NVML_THERMAL_CONTROLLER_UNKNOWN=-1)

enum("nvmlThermalTarget_t",
     NVML_THERMAL_TARGET_NONE=0, NVML_THERMAL_TARGET_GPU=1, NVML_THERMAL_TARGET_MEMORY=2,
     NVML_THERMAL_TARGET_POWER_SUPPLY=4, NVML_THERMAL_TARGET_BOARD=8,
     NVML_THERMAL_TARGET_VCD_BOARD=9, NVML_THERMAL_TARGET_VCD_INLET=10,
     NVML_THERMAL_TARGET_VCD_OUTLET=11, NVML_THERMAL_TARGET_ALL=15,
     NVML_THERMAL_TARGET_UNKNOWN=-1)

struct("nvmlGpuThermalSettings_t",
       F(U32, "count"),
       F(inner("struct",
               F(nvmlThermalController_t, "controller"),
               F(I32, "defaultMinTemp"),
               F(I32, "defaultMaxTemp"),
               F(I32, "currentTemp"),
               F(nvmlThermalTarget_t, "target")), "sensor", 3))

enum("nvmlPstates_t",
     NVML_PSTATE_0=0, NVML_PSTATE_1=1, NVML_PSTATE_2=2, NVML_PSTATE_3=3, NVML_PSTATE_4=4,
     NVML_PSTATE_5=5, NVML_PSTATE_6=6, NVML_PSTATE_7=7, NVML_PSTATE_8=8, NVML_PSTATE_9=9,
     NVML_PSTATE_10=10, NVML_PSTATE_11=11, NVML_PSTATE_12=12, NVML_PSTATE_13=13,
     NVML_PSTATE_14=14, NVML_PSTATE_15=15, NVML_PSTATE_UNKNOWN=32)

struct("nvmlGpuDynamicPstatesInfo_t",
       F(U32, "flags"),
       F(inner("struct",
               F(U32, "bIsPresent"),
               F(U32, "percentage"),
               F(U32, "incThreshold"),
               F(U32, "decThreshold")), "utilization", 8))

struct("nvmlClockOffset_v1_t",
       F(U32, "version"),
       F(nvmlClockType_t, "type"),
       F(nvmlPstates_t, "pstate"),
       F(I32, "clockOffsetMHz"),
       F(I32, "minClockOffsetMHz"),
       F(I32, "maxClockOffsetMHz"))

struct("nvmlDevicePerfModes_v1_t",
       F(U32, "version"),
       F(CHAR, "str", 2048))

struct("nvmlDeviceCurrentClockFreqs_v1_t",
       F(U32, "version"),
       F(CHAR, "str", 2048))

struct("nvmlDevicePowerMizerModes_v1_t",
       F(U32, "currentMode"),
       F(U32, "mode"),
       F(U32, "supportedPowerMizerModes"))

enum("nvmlGpuOperationMode_t",
     NVML_GOM_ALL_ON=0, NVML_GOM_COMPUTE=1, NVML_GOM_LOW_DP=2)

struct("nvmlMemory_t",
       F(U64, "total"),
       F(U64, "free"),
       F(U64, "used"))

struct("nvmlMemory_v2_t",
       F(U32, "version"),
       F(U64, "total"),
       F(U64, "reserved"),
       F(U64, "free"),
       F(U64, "used"))

enum("nvmlComputeMode_t",
     NVML_COMPUTEMODE_DEFAULT=0, NVML_COMPUTEMODE_EXCLUSIVE_THREAD=1,
     NVML_COMPUTEMODE_PROHIBITED=2, NVML_COMPUTEMODE_EXCLUSIVE_PROCESS=3,
     NVML_COMPUTEMODE_COUNT=4)

struct("nvmlDramEncryptionInfo_v1_t",
       F(U32, "version"),
       F(nvmlEnableState_t, "encryptionState"))

enum("nvmlMemoryErrorType_t",
     NVML_MEMORY_ERROR_TYPE_CORRECTED=0, NVML_MEMORY_ERROR_TYPE_UNCORRECTED=1,
     NVML_MEMORY_ERROR_TYPE_COUNT=2)

enum("nvmlEccCounterType_t",
     NVML_VOLATILE_ECC=0, NVML_AGGREGATE_ECC=1, NVML_ECC_COUNTER_TYPE_COUNT=2)

struct("nvmlEccErrorCounts_t",
       F(U64, "l1Cache"),
       F(U64, "l2Cache"),
       F(U64, "deviceMemory"),
       F(U64, "registerFile"))

enum("nvmlMemoryLocation_t",
     NVML_MEMORY_LOCATION_L1_CACHE=0, NVML_MEMORY_LOCATION_L2_CACHE=1,
     NVML_MEMORY_LOCATION_DRAM=2, NVML_MEMORY_LOCATION_DEVICE_MEMORY=2,
     NVML_MEMORY_LOCATION_REGISTER_FILE=3, NVML_MEMORY_LOCATION_TEXTURE_MEMORY=4,
     NVML_MEMORY_LOCATION_TEXTURE_SHM=5, NVML_MEMORY_LOCATION_CBU=6,
     NVML_MEMORY_LOCATION_SRAM=7, NVML_MEMORY_LOCATION_COUNT=8)

struct("nvmlUtilization_t",
       F(U32, "gpu"),
       F(U32, "memory"))

enum("nvmlEncoderType_t",
     NVML_ENCODER_QUERY_H264=0x0, NVML_ENCODER_QUERY_HEVC=0x1, NVML_ENCODER_QUERY_AV1=0x2,
     NVML_ENCODER_QUERY_UNKNOWN=0xff)

alias("nvmlVgpuInstance_t", U32)

struct("nvmlEncoderSessionInfo_t",
       F(U32, "sessionId"),
       F(U32, "pid"),
       F(nvmlVgpuInstance_t, "vgpuInstance"),
       F(nvmlEncoderType_t, "codecType"),
       F(U32, "hResolution"),
       F(U32, "vResolution"),
       F(U32, "averageFps"),
       F(U32, "averageLatency"))

struct("nvmlFBCStats_t",
       F(U32, "sessionsCount"),
       F(U32, "averageFPS"),
       F(U32, "averageLatency"))

enum("nvmlFBCSessionType_t",
     NVML_FBC_SESSION_TYPE_UNKNOWN=0, NVML_FBC_SESSION_TYPE_TOSYS=1,
     NVML_FBC_SESSION_TYPE_CUDA=2, NVML_FBC_SESSION_TYPE_VID=3, NVML_FBC_SESSION_TYPE_HWENC=4)

struct("nvmlFBCSessionInfo_t",
       F(U32, "sessionId"),
       F(U32, "pid"),
       F(nvmlVgpuInstance_t, "vgpuInstance"),
       F(U32, "displayOrdinal"),
       F(nvmlFBCSessionType_t, "sessionType"),
       F(U32, "sessionFlags"),
       F(U32, "hMaxResolution"),
       F(U32, "vMaxResolution"),
       F(U32, "hResolution"),
       F(U32, "vResolution"),
       F(U32, "averageFPS"),
       F(U32, "averageLatency"))

enum("nvmlDriverModel_t",
     NVML_DRIVER_WDDM=0, NVML_DRIVER_WDM=1, NVML_DRIVER_MCDM=2)

enum("nvmlBridgeChipType_t",
     NVML_BRIDGE_CHIP_PLX=0, NVML_BRIDGE_CHIP_BRO4=1)

struct("nvmlBridgeChipInfo_t",
       F(nvmlBridgeChipType_t, "type"),
       F(U32, "fwVersion"))

struct("nvmlBridgeChipHierarchy_t",
       F(U8, "bridgeCount"),
       F(nvmlBridgeChipInfo_t, "bridgeChipInfo", 128))

struct("nvmlProcessInfo_t",
       F(U32, "pid"),
       F(U64, "usedGpuMemory"),
       F(U32, "gpuInstanceId"),
       F(U32, "computeInstanceId"))

struct("nvmlProcessDetail_v1_t",
       F(U32, "pid"),
       F(U64, "usedGpuMemory"),
       F(U32, "gpuInstanceId"),
       F(U32, "computeInstanceId"),
       F(U64, "usedGpuCcProtectedMemory"))
