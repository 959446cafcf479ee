"""NVML: devices: types of samples, errors, processes, links, power profiles."""

struct("nvmlProcessDetailList_v1_t",
       F(U32, "version"),
       F(U32, "mode"),
       F(U32, "numProcArrayEntries"),
       F(Ptr("nvmlProcessDetail_v1_t *"), "procArray"))

enum("nvmlRestrictedAPI_t",
     NVML_RESTRICTED_API_SET_APPLICATION_CLOCKS=0,
     NVML_RESTRICTED_API_SET_AUTO_BOOSTED_CLOCKS=1, NVML_RESTRICTED_API_COUNT=2)

enum("nvmlSamplingType_t",
     NVML_TOTAL_POWER_SAMPLES=0, NVML_GPU_UTILIZATION_SAMPLES=1,
     NVML_MEMORY_UTILIZATION_SAMPLES=2, NVML_ENC_UTILIZATION_SAMPLES=3,
     NVML_DEC_UTILIZATION_SAMPLES=4, NVML_PROCESSOR_CLK_SAMPLES=5, NVML_MEMORY_CLK_SAMPLES=6,
     NVML_MODULE_POWER_SAMPLES=7, NVML_JPG_UTILIZATION_SAMPLES=8,
     NVML_OFA_UTILIZATION_SAMPLES=9, NVML_SAMPLINGTYPE_COUNT=10)

enum("nvmlValueType_t",
     NVML_VALUE_TYPE_DOUBLE=0, NVML_VALUE_TYPE_UNSIGNED_INT=1,
     NVML_VALUE_TYPE_UNSIGNED_LONG=2, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG=3,
     NVML_VALUE_TYPE_SIGNED_LONG_LONG=4, NVML_VALUE_TYPE_SIGNED_INT=5,
     NVML_VALUE_TYPE_UNSIGNED_SHORT=6, NVML_VALUE_TYPE_COUNT=7)

union("nvmlValue_t",
      F(F64, "dVal"),
      F(I32, "siVal"),
      F(U32, "uiVal"),
      F(ULONG, "ulVal"),
      F(U64, "ullVal"),
      F(I64, "sllVal"),
      F(U16, "usVal"))

struct("nvmlSample_t",
       F(U64, "timeStamp"),
       F(nvmlValue_t, "sampleValue"))

struct("nvmlBAR1Memory_t",
       F(U64, "bar1Total"),
       F(U64, "bar1Free"),
       F(U64, "bar1Used"))

enum("nvmlPerfPolicyType_t",
     NVML_PERF_POLICY_POWER=0, NVML_PERF_POLICY_THERMAL=1, NVML_PERF_POLICY_SYNC_BOOST=2,
     NVML_PERF_POLICY_BOARD_LIMIT=3, NVML_PERF_POLICY_LOW_UTILIZATION=4,
     NVML_PERF_POLICY_RELIABILITY=5, NVML_PERF_POLICY_TOTAL_APP_CLOCKS=10,
     NVML_PERF_POLICY_TOTAL_BASE_CLOCKS=11, NVML_PERF_POLICY_COUNT=12)

struct("nvmlViolationTime_t",
       F(U64, "referenceTime"),
       F(U64, "violationTime"))

alias("nvmlPowerSource_t", U32)

alias("nvmlBusType_t", U32)

alias("nvmlGpuFabricState_t", U8)

struct("nvmlGpuFabricInfo_t",
       F(U8, "clusterUuid", 16),
       F(nvmlReturn_t, "status"),
       F(U32, "cliqueId"),
       F(nvmlGpuFabricState_t, "state"))

struct("nvmlGpuFabricInfo_v3_t",
       F(U32, "version"),
       F(U8, "clusterUuid", 16),
       F(nvmlReturn_t, "status"),
       F(U32, "cliqueId"),
       F(nvmlGpuFabricState_t, "state"),
       F(U32, "healthMask"),
       F(U8, "healthSummary"))

struct("nvmlConfComputeMemSizeInfo_t",
       F(U64, "protectedMemSizeKib"),
       F(U64, "unprotectedMemSizeKib"))

struct("nvmlConfComputeGpuCertificate_t",
       F(U32, "certChainSize"),
       F(U32, "attestationCertChainSize"),
       F(U8, "certChain", 4096),
       F(U8, "attestationCertChain", 5120))

struct("nvmlConfComputeGpuAttestationReport_t",
       F(U32, "isCecAttestationReportPresent"),
       F(U32, "attestationReportSize"),
       F(U32, "cecAttestationReportSize"),
       F(U8, "nonce", 32),
       F(U8, "attestationReport", 8192),
       F(U8, "cecAttestationReport", 4096))

struct("nvmlEccSramErrorStatus_v1_t",
       F(U32, "version"),
       F(U64, "aggregateUncParity"),
       F(U64, "aggregateUncSecDed"),
       F(U64, "aggregateCor"),
       F(U64, "volatileUncParity"),
       F(U64, "volatileUncSecDed"),
       F(U64, "volatileCor"),
       F(U64, "aggregateUncBucketL2"),
       F(U64, "aggregateUncBucketSm"),
       F(U64, "aggregateUncBucketPcie"),
       F(U64, "aggregateUncBucketMcu"),
       F(U64, "aggregateUncBucketOther"),
       F(U32, "bThresholdExceeded"))

struct("nvmlAccountingStats_t",
       F(U32, "gpuUtilization"),
       F(U32, "memoryUtilization"),
       F(U64, "maxMemoryUsage"),
       F(U64, "time"),
       F(U64, "startTime"),
       F(U32, "isRunning"),
       F(U32, "reserved", 5))

enum("nvmlPageRetirementCause_t",
     NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS=0,
     NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR=1, NVML_PAGE_RETIREMENT_CAUSE_COUNT=2)

struct("nvmlRowRemapperHistogramValues_t",
       F(U32, "max"),
       F(U32, "high"),
       F(U32, "partial"),
       F(U32, "low"),
       F(U32, "none"))

alias("nvmlDeviceArchitecture_t", U32)

struct("nvmlClkMonFaultInfo_t",
       F(U32, "clkApiDomain"),
       F(U32, "clkDomainFaultMask"))

struct("nvmlClkMonStatus_t",
       F(U32, "bGlobalStatus"),
       F(U32, "clkMonListSize"),
       F(nvmlClkMonFaultInfo_t, "clkMonList", 32))

struct("nvmlProcessUtilizationSample_t",
       F(U32, "pid"),
       F(U64, "timeStamp"),
       F(U32, "smUtil"),
       F(U32, "memUtil"),
       F(U32, "encUtil"),
       F(U32, "decUtil"))

struct("nvmlProcessUtilizationInfo_v1_t",
       F(U64, "timeStamp"),
       F(U32, "pid"),
       F(U32, "smUtil"),
       F(U32, "memUtil"),
       F(U32, "encUtil"),
       F(U32, "decUtil"),
       F(U32, "jpgUtil"),
       F(U32, "ofaUtil"))

struct("nvmlProcessesUtilizationInfo_v1_t",
       F(U32, "version"),
       F(U32, "processSamplesCount"),
       F(U64, "lastSeenTimeStamp"),
       F(Ptr("nvmlProcessUtilizationInfo_v1_t *"), "procUtilArray"))

struct("nvmlPlatformInfo_v2_t",
       F(U32, "version"),
       F(U8, "ibGuid", 16),
       F(U8, "chassisSerialNumber", 16),
       F(U8, "slotNumber"),
       F(U8, "trayIndex"),
       F(U8, "hostId"),
       F(U8, "peerType"),
       F(U8, "moduleId"))

struct("nvmlPdi_v1_t",
       F(U32, "version"),
       F(U64, "value"))

struct("nvmlHostname_v1_t",
       F(CHAR, "value", 64))

enum("nvmlNvLinkCapability_t",
     NVML_NVLINK_CAP_P2P_SUPPORTED=0, NVML_NVLINK_CAP_SYSMEM_ACCESS=1,
     NVML_NVLINK_CAP_P2P_ATOMICS=2, NVML_NVLINK_CAP_SYSMEM_ATOMICS=3,
     NVML_NVLINK_CAP_SLI_BRIDGE=4, NVML_NVLINK_CAP_VALID=5, NVML_NVLINK_CAP_COUNT=6)

enum("nvmlNvLinkErrorCounter_t",
     NVML_NVLINK_ERROR_DL_REPLAY=0, NVML_NVLINK_ERROR_DL_RECOVERY=1,
     NVML_NVLINK_ERROR_DL_CRC_FLIT=2, NVML_NVLINK_ERROR_DL_CRC_DATA=3,
     NVML_NVLINK_ERROR_DL_ECC_DATA=4, NVML_NVLINK_ERROR_COUNT=5)

enum("nvmlNvLinkUtilizationCountUnits_t",
     NVML_NVLINK_COUNTER_UNIT_CYCLES=0, NVML_NVLINK_COUNTER_UNIT_PACKETS=1,
     NVML_NVLINK_COUNTER_UNIT_BYTES=2, NVML_NVLINK_COUNTER_UNIT_RESERVED=3,
     NVML_NVLINK_COUNTER_UNIT_COUNT=4)

enum("nvmlNvLinkUtilizationCountPktTypes_t",
     NVML_NVLINK_COUNTER_PKTFILTER_NOP=0x1, NVML_NVLINK_COUNTER_PKTFILTER_READ=0x2,
     NVML_NVLINK_COUNTER_PKTFILTER_WRITE=0x4, NVML_NVLINK_COUNTER_PKTFILTER_RATOM=0x8,
     NVML_NVLINK_COUNTER_PKTFILTER_NRATOM=0x10, NVML_NVLINK_COUNTER_PKTFILTER_FLUSH=0x20,
     NVML_NVLINK_COUNTER_PKTFILTER_RESPDATA=0x40,
     NVML_NVLINK_COUNTER_PKTFILTER_RESPNODATA=0x80, NVML_NVLINK_COUNTER_PKTFILTER_ALL=0xff)

struct("nvmlNvLinkUtilizationControl_t",
       F(nvmlNvLinkUtilizationCountUnits_t, "units"),
       F(nvmlNvLinkUtilizationCountPktTypes_t, "pktfilter"))

enum("nvmlIntNvLinkDeviceType_t",
     NVML_NVLINK_DEVICE_TYPE_GPU=0x0, NVML_NVLINK_DEVICE_TYPE_IBMNPU=0x1,
     NVML_NVLINK_DEVICE_TYPE_SWITCH=0x2, NVML_NVLINK_DEVICE_TYPE_UNKNOWN=0xff)

struct("nvmlNvlinkSupportedBwModes_v1_t",
       F(U32, "version"),
       F(U8, "bwModes", 23),
       F(U8, "totalBwModes"))

struct("nvmlNvlinkGetBwMode_v1_t",
       F(U32, "version"),
       F(U32, "bIsBest"),
       F(U8, "bwMode"))

struct("nvmlNvlinkFirmwareVersion_t",
       F(U8, "ucodeType"),
       F(U32, "major"),
       F(U32, "minor"),
       F(U32, "subMinor"))

struct("nvmlNvlinkFirmwareInfo_t",
       F(nvmlNvlinkFirmwareVersion_t, "firmwareVersion", 100),
       F(U32, "numValidEntries"))

struct("nvmlNvLinkInfo_v2_t",
       F(U32, "version"),
       F(U32, "isNvleEnabled"),
       F(nvmlNvlinkFirmwareInfo_t, "firmwareInfo"))

struct("nvmlFieldValue_t",
       F(U32, "fieldId"),
       F(U32, "scopeId"),
       F(I64, "timestamp"),
       F(I64, "latencyUsec"),
       F(nvmlValueType_t, "valueType"),
       F(nvmlReturn_t, "nvmlReturn"),
       F(nvmlValue_t, "value"))

enum("nvmlGpuVirtualizationMode_t",
     NVML_GPU_VIRTUALIZATION_MODE_NONE=0, NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH=1,
     NVML_GPU_VIRTUALIZATION_MODE_VGPU=2, NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU=3,
     NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA=4)

struct("nvmlPRMTLV_v1_t",
       F(U32, "dataSize"),
       F(U32, "status"),
       F(inner("union",
               F(U8, "inData", 496),
               F(U8, "outData", 496)), None))

struct("nvmlDeviceCapabilities_v1_t",
       F(U32, "version"),
       F(U32, "capMask"))

struct("nvmlMask255_t",
       F(U32, "mask", 8))

struct("nvmlWorkloadPowerProfileInfo_v1_t",
       F(U32, "version"),
       F(U32, "profileId"),
       F(U32, "priority"),
       F(nvmlMask255_t, "conflictingMask"))

struct("nvmlWorkloadPowerProfileProfilesInfo_v1_t",
       F(U32, "version"),
       F(nvmlMask255_t, "perfProfilesMask"),
       F(nvmlWorkloadPowerProfileInfo_v1_t, "perfProfile", 255))

struct("nvmlWorkloadPowerProfileCurrentProfiles_v1_t",
       F(U32, "version"),
       F(nvmlMask255_t, "perfProfilesMask"),
       F(nvmlMask255_t, "requestedProfilesMask"),
       F(nvmlMask255_t, "enforcedProfilesMask"))

struct("nvmlEccSramUniqueUncorrectedErrorEntry_v1_t",
       F(U32, "unit"),
       F(U32, "location"),
       F(U32, "sublocation"),
       F(U32, "extlocation"),
       F(U32, "address"),
       F(U32, "isParity"),
       F(U32, "count"))

struct("nvmlEccSramUniqueUncorrectedErrorCounts_v1_t",
       F(U32, "version"),
       F(U32, "entryCount"),
       F(Ptr("nvmlEccSramUniqueUncorrectedErrorEntry_v1_t *"), "entries"))

struct("nvmlProcessInfo_v1_t",
       F(U32, "pid"),
       F(U64, "usedGpuMemory"))

struct("nvmlProcessInfo_v2_t",
       F(U32, "pid"),
       F(U64, "usedGpuMemory"),
       F(U32, "gpuInstanceId"),
       F(U32, "computeInstanceId"))
