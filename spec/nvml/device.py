"""NVML: devices: identity, memory, clocks, power, temperature, ECC, links, processes."""

call("nvmlDeviceGetCount_v2", Out(U32, "deviceCount"), null={"deviceCount": 1})
call("nvmlDeviceGetAttributes_v2", In(nvmlDevice_t, "device"),
     Out(nvmlDeviceAttributes_t, "attributes"))
call("nvmlDeviceGetHandleByIndex_v2", In(U32, "index"), Out(nvmlDevice_t, "device"))
call("nvmlDeviceGetHandleBySerial", In(STR, "serial"), Out(nvmlDevice_t, "device"))
call("nvmlDeviceGetHandleByUUID", In(STR, "uuid"), Out(nvmlDevice_t, "device"))
call("nvmlDeviceGetHandleByUUIDV", In(Ref(nvmlUUID_v1_t), "uuid"), Out(nvmlDevice_t, "device"))
call("nvmlDeviceGetHandleByPciBusId_v2", In(STR, "pciBusId"), Out(nvmlDevice_t, "device"))
call("nvmlDeviceGetName", In(nvmlDevice_t, "device"), Out(TextBuf("length"), "name"),
     In(U32, "length"), null={"name": "heddle null device"})
call("nvmlDeviceGetBrand", In(nvmlDevice_t, "device"), Out(nvmlBrandType_t, "type"))
call("nvmlDeviceGetIndex", In(nvmlDevice_t, "device"), Out(U32, "index"))
call("nvmlDeviceGetSerial", In(nvmlDevice_t, "device"), Out(TextBuf("length"), "serial"),
     In(U32, "length"))
call("nvmlDeviceGetModuleId", In(nvmlDevice_t, "device"), Out(U32, "moduleId"))
call("nvmlDeviceGetC2cModeInfoV", In(nvmlDevice_t, "device"),
     Out(nvmlC2cModeInfo_v1_t, "c2cModeInfo"))
call("nvmlDeviceGetMemoryAffinity", In(nvmlDevice_t, "device"), In(U32, "nodeSetSize"),
     Out(Array(ULONG, "nodeSetSize"), "nodeSet"), In(nvmlAffinityScope_t, "scope"))
call("nvmlDeviceGetCpuAffinityWithinScope", In(nvmlDevice_t, "device"), In(U32, "cpuSetSize"),
     Out(Array(ULONG, "cpuSetSize"), "cpuSet"), In(nvmlAffinityScope_t, "scope"))
call("nvmlDeviceGetCpuAffinity", In(nvmlDevice_t, "device"), In(U32, "cpuSetSize"),
     Out(Array(ULONG, "cpuSetSize"), "cpuSet"))
call("nvmlDeviceGetNumaNodeId", In(nvmlDevice_t, "device"), Out(U32, "node"))
call("nvmlDeviceGetAddressingMode", In(nvmlDevice_t, "device"),
     InOut(nvmlDeviceAddressingMode_v1_t, "mode"))
call("nvmlDeviceGetRepairStatus", In(nvmlDevice_t, "device"),
     InOut(nvmlRepairStatus_v1_t, "repairStatus"))
call("nvmlDeviceGetTopologyCommonAncestor", In(nvmlDevice_t, "device1"),
     In(nvmlDevice_t, "device2"), Out(nvmlGpuTopologyLevel_t, "pathInfo"))
call("nvmlDeviceGetTopologyNearestGpus", In(nvmlDevice_t, "device"),
     In(nvmlGpuTopologyLevel_t, "level"), InOut(U32, "count"),
     Out(Array(nvmlDevice_t, "*count"), "deviceArray", opt=True))
call("nvmlDeviceGetP2PStatus", In(nvmlDevice_t, "device1"), In(nvmlDevice_t, "device2"),
     In(nvmlGpuP2PCapsIndex_t, "p2pIndex"), Out(nvmlGpuP2PStatus_t, "p2pStatus"))
call("nvmlDeviceGetUUID", In(nvmlDevice_t, "device"), Out(TextBuf("length"), "uuid"),
     In(U32, "length"))
call("nvmlDeviceGetMinorNumber", In(nvmlDevice_t, "device"), Out(U32, "minorNumber"))
call("nvmlDeviceGetBoardPartNumber", In(nvmlDevice_t, "device"),
     Out(TextBuf("length"), "partNumber"), In(U32, "length"))
call("nvmlDeviceGetInforomVersion", In(nvmlDevice_t, "device"), In(nvmlInforomObject_t, "object"),
     Out(TextBuf("length"), "version"), In(U32, "length"))
call("nvmlDeviceGetInforomImageVersion", In(nvmlDevice_t, "device"),
     Out(TextBuf("length"), "version"), In(U32, "length"))
call("nvmlDeviceGetInforomConfigurationChecksum", In(nvmlDevice_t, "device"), Out(U32, "checksum"))
call("nvmlDeviceGetLastBBXFlushTime", In(nvmlDevice_t, "device"), Out(U64, "timestamp"),
     Out(ULONG, "durationUs"))
call("nvmlDeviceGetDisplayMode", In(nvmlDevice_t, "device"), Out(nvmlEnableState_t, "display"))
call("nvmlDeviceGetDisplayActive", In(nvmlDevice_t, "device"), Out(nvmlEnableState_t, "isActive"))
call("nvmlDeviceGetPersistenceMode", In(nvmlDevice_t, "device"), Out(nvmlEnableState_t, "mode"),
     travel=True)
call("nvmlDeviceGetPciInfoExt", In(nvmlDevice_t, "device"), InOut(nvmlPciInfoExt_v1_t, "pci"))
call("nvmlDeviceGetPciInfo_v3", In(nvmlDevice_t, "device"), Out(nvmlPciInfo_t, "pci"))
call("nvmlDeviceGetMaxPcieLinkGeneration", In(nvmlDevice_t, "device"), Out(U32, "maxLinkGen"))
call("nvmlDeviceGetGpuMaxPcieLinkGeneration", In(nvmlDevice_t, "device"),
     Out(U32, "maxLinkGenDevice"))
call("nvmlDeviceGetMaxPcieLinkWidth", In(nvmlDevice_t, "device"), Out(U32, "maxLinkWidth"))
call("nvmlDeviceGetCurrPcieLinkGeneration", In(nvmlDevice_t, "device"), Out(U32, "currLinkGen"),
     travel=True)
call("nvmlDeviceGetCurrPcieLinkWidth", In(nvmlDevice_t, "device"), Out(U32, "currLinkWidth"),
     travel=True)
call("nvmlDeviceGetPcieThroughput", In(nvmlDevice_t, "device"),
     In(nvmlPcieUtilCounter_t, "counter"), Out(U32, "value"), travel=True)
call("nvmlDeviceGetPcieReplayCounter", In(nvmlDevice_t, "device"), Out(U32, "value"), travel=True)
call("nvmlDeviceGetClockInfo", In(nvmlDevice_t, "device"), In(nvmlClockType_t, "type"),
     Out(U32, "clock"), travel=True)
call("nvmlDeviceGetMaxClockInfo", In(nvmlDevice_t, "device"), In(nvmlClockType_t, "type"),
     Out(U32, "clock"))
call("nvmlDeviceGetGpcClkVfOffset", In(nvmlDevice_t, "device"), Out(I32, "offset"))
call("nvmlDeviceGetApplicationsClock", In(nvmlDevice_t, "device"), In(nvmlClockType_t, "clockType"),
     Out(U32, "clockMHz"), travel=True)
call("nvmlDeviceGetDefaultApplicationsClock", In(nvmlDevice_t, "device"),
     In(nvmlClockType_t, "clockType"), Out(U32, "clockMHz"))
call("nvmlDeviceGetClock", In(nvmlDevice_t, "device"), In(nvmlClockType_t, "clockType"),
     In(nvmlClockId_t, "clockId"), Out(U32, "clockMHz"), travel=True)
call("nvmlDeviceGetMaxCustomerBoostClock", In(nvmlDevice_t, "device"),
     In(nvmlClockType_t, "clockType"), Out(U32, "clockMHz"))
call("nvmlDeviceGetSupportedMemoryClocks", In(nvmlDevice_t, "device"), InOut(U32, "count"),
     Out(Array(U32, "*count"), "clocksMHz", opt=True))
call("nvmlDeviceGetSupportedGraphicsClocks", In(nvmlDevice_t, "device"), In(U32, "memoryClockMHz"),
     InOut(U32, "count"), Out(Array(U32, "*count"), "clocksMHz", opt=True))
call("nvmlDeviceGetAutoBoostedClocksEnabled", In(nvmlDevice_t, "device"),
     Out(nvmlEnableState_t, "isEnabled"), Out(nvmlEnableState_t, "defaultIsEnabled"))
call("nvmlDeviceGetFanSpeed", In(nvmlDevice_t, "device"), Out(U32, "speed"), travel=True)
call("nvmlDeviceGetFanSpeed_v2", In(nvmlDevice_t, "device"), In(U32, "fan"), Out(U32, "speed"),
     travel=True)
call("nvmlDeviceGetFanSpeedRPM", In(nvmlDevice_t, "device"),
     InOut(nvmlFanSpeedInfo_v1_t, "fanSpeed"))
call("nvmlDeviceGetTargetFanSpeed", In(nvmlDevice_t, "device"), In(U32, "fan"),
     Out(U32, "targetSpeed"))
call("nvmlDeviceGetMinMaxFanSpeed", In(nvmlDevice_t, "device"), Out(U32, "minSpeed"),
     Out(U32, "maxSpeed"))
call("nvmlDeviceGetFanControlPolicy_v2", In(nvmlDevice_t, "device"), In(U32, "fan"),
     Out(nvmlFanControlPolicy_t, "policy"))
call("nvmlDeviceGetNumFans", In(nvmlDevice_t, "device"), Out(U32, "numFans"))
call("nvmlDeviceGetTemperature", In(nvmlDevice_t, "device"),
     In(nvmlTemperatureSensors_t, "sensorType"), Out(U32, "temp"), travel=True)
call("nvmlDeviceGetCoolerInfo", In(nvmlDevice_t, "device"),
     InOut(nvmlCoolerInfo_v1_t, "coolerInfo"))
call("nvmlDeviceGetTemperatureV", In(nvmlDevice_t, "device"),
     InOut(nvmlTemperature_v1_t, "temperature"), travel=True)
call("nvmlDeviceGetTemperatureThreshold", In(nvmlDevice_t, "device"),
     In(nvmlTemperatureThresholds_t, "thresholdType"), Out(U32, "temp"))
call("nvmlDeviceGetMarginTemperature", In(nvmlDevice_t, "device"),
     InOut(nvmlMarginTemperature_v1_t, "marginTempInfo"))
call("nvmlDeviceGetThermalSettings", In(nvmlDevice_t, "device"), In(U32, "sensorIndex"),
     Out(nvmlGpuThermalSettings_t, "pThermalSettings"))
call("nvmlDeviceGetPerformanceState", In(nvmlDevice_t, "device"), Out(nvmlPstates_t, "pState"),
     travel=True)
call("nvmlDeviceGetCurrentClocksEventReasons", In(nvmlDevice_t, "device"),
     Out(U64, "clocksEventReasons"), travel=True)
call("nvmlDeviceGetCurrentClocksThrottleReasons", In(nvmlDevice_t, "device"),
     Out(U64, "clocksThrottleReasons"), travel=True)
call("nvmlDeviceGetSupportedClocksEventReasons", In(nvmlDevice_t, "device"),
     Out(U64, "supportedClocksEventReasons"))
call("nvmlDeviceGetSupportedClocksThrottleReasons", In(nvmlDevice_t, "device"),
     Out(U64, "supportedClocksThrottleReasons"))
call("nvmlDeviceGetPowerState", In(nvmlDevice_t, "device"), Out(nvmlPstates_t, "pState"),
     travel=True)
call("nvmlDeviceGetDynamicPstatesInfo", In(nvmlDevice_t, "device"),
     Out(nvmlGpuDynamicPstatesInfo_t, "pDynamicPstatesInfo"))
call("nvmlDeviceGetMemClkVfOffset", In(nvmlDevice_t, "device"), Out(I32, "offset"))
call("nvmlDeviceGetMinMaxClockOfPState", In(nvmlDevice_t, "device"), In(nvmlClockType_t, "type"),
     In(nvmlPstates_t, "pstate"), Out(U32, "minClockMHz"), Out(U32, "maxClockMHz"))
call("nvmlDeviceGetSupportedPerformanceStates", In(nvmlDevice_t, "device"),
     Out(Array(nvmlPstates_t, "size / 4"), "pstates"), In(U32, "size"))
call("nvmlDeviceGetGpcClkMinMaxVfOffset", In(nvmlDevice_t, "device"), Out(I32, "minOffset"),
     Out(I32, "maxOffset"))
call("nvmlDeviceGetMemClkMinMaxVfOffset", In(nvmlDevice_t, "device"), Out(I32, "minOffset"),
     Out(I32, "maxOffset"))
call("nvmlDeviceGetClockOffsets", In(nvmlDevice_t, "device"), InOut(nvmlClockOffset_v1_t, "info"))
call("nvmlDeviceGetPerformanceModes", In(nvmlDevice_t, "device"),
     InOut(nvmlDevicePerfModes_v1_t, "perfModes"))
call("nvmlDeviceGetCurrentClockFreqs", In(nvmlDevice_t, "device"),
     InOut(nvmlDeviceCurrentClockFreqs_v1_t, "currentClockFreqs"))
call("nvmlDeviceGetPowerManagementMode", In(nvmlDevice_t, "device"), Out(nvmlEnableState_t, "mode"))
call("nvmlDeviceGetPowerManagementLimit", In(nvmlDevice_t, "device"), Out(U32, "limit"),
     travel=True)
call("nvmlDeviceGetPowerManagementLimitConstraints", In(nvmlDevice_t, "device"),
     Out(U32, "minLimit"), Out(U32, "maxLimit"))
call("nvmlDeviceGetPowerManagementDefaultLimit", In(nvmlDevice_t, "device"),
     Out(U32, "defaultLimit"))
call("nvmlDeviceGetPowerUsage", In(nvmlDevice_t, "device"), Out(U32, "power"), travel=True)
call("nvmlDeviceGetPowerMizerMode_v1", In(nvmlDevice_t, "device"),
     Out(nvmlDevicePowerMizerModes_v1_t, "powerMizerMode"))
call("nvmlDeviceGetTotalEnergyConsumption", In(nvmlDevice_t, "device"), Out(U64, "energy"),
     travel=True)
call("nvmlDeviceGetEnforcedPowerLimit", In(nvmlDevice_t, "device"), Out(U32, "limit"), travel=True)
call("nvmlDeviceGetGpuOperationMode", In(nvmlDevice_t, "device"),
     Out(nvmlGpuOperationMode_t, "current"), Out(nvmlGpuOperationMode_t, "pending"))
call("nvmlDeviceGetMemoryInfo", In(nvmlDevice_t, "device"), Out(nvmlMemory_t, "memory"),
     memory=Roles("tell_memory", device="device", total="*memory.total", free="*memory.free",
                  used="*memory.used"), travel=True)
call("nvmlDeviceGetMemoryInfo_v2", In(nvmlDevice_t, "device"), InOut(nvmlMemory_v2_t, "memory"),
     memory=Roles("tell_memory", device="device", total="*memory.total", free="*memory.free",
                  used="*memory.used", reserved="*memory.reserved"), travel=True)
call("nvmlDeviceGetComputeMode", In(nvmlDevice_t, "device"), Out(nvmlComputeMode_t, "mode"),
     travel=True)
call("nvmlDeviceGetCudaComputeCapability", In(nvmlDevice_t, "device"), Out(I32, "major"),
     Out(I32, "minor"))
call("nvmlDeviceGetDramEncryptionMode", In(nvmlDevice_t, "device"),
     InOut(nvmlDramEncryptionInfo_v1_t, "current"),
     InOut(nvmlDramEncryptionInfo_v1_t, "pending"))
call("nvmlDeviceGetEccMode", In(nvmlDevice_t, "device"), Out(nvmlEnableState_t, "current"),
     Out(nvmlEnableState_t, "pending"), travel=True)
call("nvmlDeviceGetDefaultEccMode", In(nvmlDevice_t, "device"),
     Out(nvmlEnableState_t, "defaultMode"))
call("nvmlDeviceGetBoardId", In(nvmlDevice_t, "device"), Out(U32, "boardId"))
call("nvmlDeviceGetMultiGpuBoard", In(nvmlDevice_t, "device"), Out(U32, "multiGpuBool"))
call("nvmlDeviceGetTotalEccErrors", In(nvmlDevice_t, "device"),
     In(nvmlMemoryErrorType_t, "errorType"), In(nvmlEccCounterType_t, "counterType"),
     Out(U64, "eccCounts"), travel=True)
call("nvmlDeviceGetDetailedEccErrors", In(nvmlDevice_t, "device"),
     In(nvmlMemoryErrorType_t, "errorType"), In(nvmlEccCounterType_t, "counterType"),
     Out(nvmlEccErrorCounts_t, "eccCounts"))
call("nvmlDeviceGetMemoryErrorCounter", In(nvmlDevice_t, "device"),
     In(nvmlMemoryErrorType_t, "errorType"), In(nvmlEccCounterType_t, "counterType"),
     In(nvmlMemoryLocation_t, "locationType"), Out(U64, "count"), travel=True)
call("nvmlDeviceGetUtilizationRates", In(nvmlDevice_t, "device"),
     Out(nvmlUtilization_t, "utilization"), travel=True)
call("nvmlDeviceGetEncoderUtilization", In(nvmlDevice_t, "device"), Out(U32, "utilization"),
     Out(U32, "samplingPeriodUs"), travel=True)
call("nvmlDeviceGetEncoderCapacity", In(nvmlDevice_t, "device"),
     In(nvmlEncoderType_t, "encoderQueryType"), Out(U32, "encoderCapacity"))
call("nvmlDeviceGetEncoderStats", In(nvmlDevice_t, "device"), Out(U32, "sessionCount"),
     Out(U32, "averageFps"), Out(U32, "averageLatency"))
call("nvmlDeviceGetEncoderSessions", In(nvmlDevice_t, "device"), InOut(U32, "sessionCount"),
     Out(Array(nvmlEncoderSessionInfo_t, "*sessionCount"), "sessionInfos", opt=True))
call("nvmlDeviceGetDecoderUtilization", In(nvmlDevice_t, "device"), Out(U32, "utilization"),
     Out(U32, "samplingPeriodUs"), travel=True)
call("nvmlDeviceGetJpgUtilization", In(nvmlDevice_t, "device"), Out(U32, "utilization"),
     Out(U32, "samplingPeriodUs"), travel=True)
call("nvmlDeviceGetOfaUtilization", In(nvmlDevice_t, "device"), Out(U32, "utilization"),
     Out(U32, "samplingPeriodUs"), travel=True)
call("nvmlDeviceGetFBCStats", In(nvmlDevice_t, "device"), Out(nvmlFBCStats_t, "fbcStats"))
call("nvmlDeviceGetFBCSessions", In(nvmlDevice_t, "device"), InOut(U32, "sessionCount"),
     Out(Array(nvmlFBCSessionInfo_t, "*sessionCount"), "sessionInfo", opt=True))
call("nvmlDeviceGetDriverModel_v2", In(nvmlDevice_t, "device"), Out(nvmlDriverModel_t, "current"),
     Out(nvmlDriverModel_t, "pending"))
call("nvmlDeviceGetVbiosVersion", In(nvmlDevice_t, "device"), Out(TextBuf("length"), "version"),
     In(U32, "length"))
call("nvmlDeviceGetBridgeChipInfo", In(nvmlDevice_t, "device"),
     Out(nvmlBridgeChipHierarchy_t, "bridgeHierarchy"))
tell_processes = Roles("tell_processes", device="device", count="*infoCount", list="*infos",
                       pid="*infos.pid", used="*infos.usedGpuMemory")
call("nvmlDeviceGetComputeRunningProcesses_v3", In(nvmlDevice_t, "device"), InOut(U32, "infoCount"),
     Out(Array(nvmlProcessInfo_t, "*infoCount"), "infos", opt=True), memory=tell_processes)
call("nvmlDeviceGetGraphicsRunningProcesses_v3", In(nvmlDevice_t, "device"),
     InOut(U32, "infoCount"), Out(Array(nvmlProcessInfo_t, "*infoCount"), "infos", opt=True),
     memory=tell_processes)
call("nvmlDeviceGetMPSComputeRunningProcesses_v3", In(nvmlDevice_t, "device"),
     InOut(U32, "infoCount"), Out(Array(nvmlProcessInfo_t, "*infoCount"), "infos", opt=True),
     memory=tell_processes)
call("nvmlDeviceGetRunningProcessDetailList", In(nvmlDevice_t, "device"),
     InOut(nvmlProcessDetailList_v1_t, "plist"),
     memory=Roles("tell_details", device="device", details="plist"))
call("nvmlDeviceOnSameBoard", In(nvmlDevice_t, "device1"), In(nvmlDevice_t, "device2"),
     Out(I32, "onSameBoard"))
call("nvmlDeviceGetAPIRestriction", In(nvmlDevice_t, "device"), In(nvmlRestrictedAPI_t, "apiType"),
     Out(nvmlEnableState_t, "isRestricted"))
call("nvmlDeviceGetSamples", In(nvmlDevice_t, "device"), In(nvmlSamplingType_t, "type"),
     In(U64, "lastSeenTimeStamp"), Out(nvmlValueType_t, "sampleValType"),
     InOut(U32, "sampleCount"), Out(Array(nvmlSample_t, "*sampleCount"), "samples", opt=True))
call("nvmlDeviceGetBAR1MemoryInfo", In(nvmlDevice_t, "device"), Out(nvmlBAR1Memory_t, "bar1Memory"),
     travel=True)
call("nvmlDeviceGetViolationStatus", In(nvmlDevice_t, "device"),
     In(nvmlPerfPolicyType_t, "perfPolicyType"), Out(nvmlViolationTime_t, "violTime"))
call("nvmlDeviceGetIrqNum", In(nvmlDevice_t, "device"), Out(U32, "irqNum"))
call("nvmlDeviceGetNumGpuCores", In(nvmlDevice_t, "device"), Out(U32, "numCores"))
call("nvmlDeviceGetPowerSource", In(nvmlDevice_t, "device"), Out(nvmlPowerSource_t, "powerSource"))
call("nvmlDeviceGetMemoryBusWidth", In(nvmlDevice_t, "device"), Out(U32, "busWidth"))
call("nvmlDeviceGetPcieLinkMaxSpeed", In(nvmlDevice_t, "device"), Out(U32, "maxSpeed"))
call("nvmlDeviceGetPcieSpeed", In(nvmlDevice_t, "device"), Out(U32, "pcieSpeed"))
call("nvmlDeviceGetAdaptiveClockInfoStatus", In(nvmlDevice_t, "device"),
     Out(U32, "adaptiveClockStatus"))
call("nvmlDeviceGetBusType", In(nvmlDevice_t, "device"), Out(nvmlBusType_t, "type"))
call("nvmlDeviceGetGpuFabricInfo", In(nvmlDevice_t, "device"),
     Out(nvmlGpuFabricInfo_t, "gpuFabricInfo"))
call("nvmlDeviceGetGpuFabricInfoV", In(nvmlDevice_t, "device"),
     InOut(nvmlGpuFabricInfo_v3_t, "gpuFabricInfo"))
call("nvmlDeviceGetConfComputeMemSizeInfo", In(nvmlDevice_t, "device"),
     Out(nvmlConfComputeMemSizeInfo_t, "memInfo"))
call("nvmlDeviceGetConfComputeProtectedMemoryUsage", In(nvmlDevice_t, "device"),
     Out(nvmlMemory_t, "memory"))
call("nvmlDeviceGetConfComputeGpuCertificate", In(nvmlDevice_t, "device"),
     Out(nvmlConfComputeGpuCertificate_t, "gpuCert"))
call("nvmlDeviceGetConfComputeGpuAttestationReport", In(nvmlDevice_t, "device"),
     Out(nvmlConfComputeGpuAttestationReport_t, "gpuAtstReport"))
call("nvmlDeviceGetGspFirmwareVersion", In(nvmlDevice_t, "device"),
     Out(TextBuf("64"), "version"))
call("nvmlDeviceGetGspFirmwareMode", In(nvmlDevice_t, "device"), Out(U32, "isEnabled"),
     Out(U32, "defaultMode"))
call("nvmlDeviceGetSramEccErrorStatus", In(nvmlDevice_t, "device"),
     InOut(nvmlEccSramErrorStatus_v1_t, "status"))
call("nvmlDeviceGetAccountingMode", In(nvmlDevice_t, "device"), Out(nvmlEnableState_t, "mode"))
call("nvmlDeviceGetAccountingStats", In(nvmlDevice_t, "device"), In(U32, "pid"),
     Out(nvmlAccountingStats_t, "stats"))
call("nvmlDeviceGetAccountingPids", In(nvmlDevice_t, "device"), InOut(U32, "count"),
     Out(Array(U32, "*count"), "pids", opt=True))
call("nvmlDeviceGetAccountingBufferSize", In(nvmlDevice_t, "device"), Out(U32, "bufferSize"))
call("nvmlDeviceGetRetiredPages", In(nvmlDevice_t, "device"),
     In(nvmlPageRetirementCause_t, "cause"), InOut(U32, "pageCount"),
     Out(Array(U64, "*pageCount"), "addresses", opt=True))
call("nvmlDeviceGetRetiredPages_v2", In(nvmlDevice_t, "device"),
     In(nvmlPageRetirementCause_t, "cause"), InOut(U32, "pageCount"),
     Out(Array(U64, "*pageCount"), "addresses", opt=True),
     Out(Array(U64, "*pageCount"), "timestamps", opt=True))
call("nvmlDeviceGetRetiredPagesPendingStatus", In(nvmlDevice_t, "device"),
     Out(nvmlEnableState_t, "isPending"))
call("nvmlDeviceGetRemappedRows", In(nvmlDevice_t, "device"), Out(U32, "corrRows"),
     Out(U32, "uncRows"), Out(U32, "isPending"), Out(U32, "failureOccurred"), travel=True)
call("nvmlDeviceGetRowRemapperHistogram", In(nvmlDevice_t, "device"),
     Out(nvmlRowRemapperHistogramValues_t, "values"))
call("nvmlDeviceGetArchitecture", In(nvmlDevice_t, "device"), Out(nvmlDeviceArchitecture_t, "arch"))
call("nvmlDeviceGetClkMonStatus", In(nvmlDevice_t, "device"), Out(nvmlClkMonStatus_t, "status"))
call("nvmlDeviceGetProcessUtilization", In(nvmlDevice_t, "device"),
     Out(Array(nvmlProcessUtilizationSample_t, "*processSamplesCount"), "utilization", opt=True),
     InOut(U32, "processSamplesCount"), In(U64, "lastSeenTimeStamp"))
call("nvmlDeviceGetProcessesUtilizationInfo", In(nvmlDevice_t, "device"),
     InOut(nvmlProcessesUtilizationInfo_v1_t, "procesesUtilInfo"))
call("nvmlDeviceGetPlatformInfo", In(nvmlDevice_t, "device"),
     InOut(nvmlPlatformInfo_v2_t, "platformInfo"))
call("nvmlDeviceGetPdi", In(nvmlDevice_t, "device"), InOut(nvmlPdi_v1_t, "pdi"))
call("nvmlDeviceGetHostname_v1", In(nvmlDevice_t, "device"), Out(nvmlHostname_v1_t, "hostname"))
call("nvmlDeviceGetNvLinkState", In(nvmlDevice_t, "device"), In(U32, "link"),
     Out(nvmlEnableState_t, "isActive"))
call("nvmlDeviceGetNvLinkVersion", In(nvmlDevice_t, "device"), In(U32, "link"), Out(U32, "version"))
call("nvmlDeviceGetNvLinkCapability", In(nvmlDevice_t, "device"), In(U32, "link"),
     In(nvmlNvLinkCapability_t, "capability"), Out(U32, "capResult"))
call("nvmlDeviceGetNvLinkRemotePciInfo_v2", In(nvmlDevice_t, "device"), In(U32, "link"),
     Out(nvmlPciInfo_t, "pci"))
call("nvmlDeviceGetNvLinkErrorCounter", In(nvmlDevice_t, "device"), In(U32, "link"),
     In(nvmlNvLinkErrorCounter_t, "counter"), Out(U64, "counterValue"))
call("nvmlDeviceGetNvLinkUtilizationControl", In(nvmlDevice_t, "device"), In(U32, "link"),
     In(U32, "counter"), Out(nvmlNvLinkUtilizationControl_t, "control"))
call("nvmlDeviceGetNvLinkUtilizationCounter", In(nvmlDevice_t, "device"), In(U32, "link"),
     In(U32, "counter"), Out(U64, "rxcounter"), Out(U64, "txcounter"))
call("nvmlDeviceGetNvLinkRemoteDeviceType", In(nvmlDevice_t, "device"), In(U32, "link"),
     Out(nvmlIntNvLinkDeviceType_t, "pNvLinkDeviceType"))
call("nvmlDeviceGetNvlinkSupportedBwModes", In(nvmlDevice_t, "device"),
     InOut(nvmlNvlinkSupportedBwModes_v1_t, "supportedBwMode"))
call("nvmlDeviceGetNvlinkBwMode", In(nvmlDevice_t, "device"),
     InOut(nvmlNvlinkGetBwMode_v1_t, "getBwMode"))
call("nvmlDeviceGetNvLinkInfo", In(nvmlDevice_t, "device"), InOut(nvmlNvLinkInfo_v2_t, "info"))
call("nvmlDeviceGetSupportedEventTypes", In(nvmlDevice_t, "device"), Out(U64, "eventTypes"))
call("nvmlDeviceQueryDrainState", In(Ref(nvmlPciInfo_t, mut=True), "pciInfo"),
     Out(nvmlEnableState_t, "currentState"))
call("nvmlDeviceGetFieldValues", In(nvmlDevice_t, "device"), In(I32, "valuesCount"),
     InOut(Array(nvmlFieldValue_t, "valuesCount"), "values"), travel=True)
call("nvmlDeviceGetVirtualizationMode", In(nvmlDevice_t, "device"),
     Out(nvmlGpuVirtualizationMode_t, "pVirtualMode"))
call("nvmlDeviceGetPgpuMetadataString", In(nvmlDevice_t, "device"),
     Out(TextBuf("*bufferSize"), "pgpuMetadata", opt=True), InOut(U32, "bufferSize"))
call("nvmlDeviceReadWritePRM_v1", In(nvmlDevice_t, "device"), Out(nvmlPRMTLV_v1_t, "buffer"))
call("nvmlDeviceGetCapabilities", In(nvmlDevice_t, "device"),
     InOut(nvmlDeviceCapabilities_v1_t, "caps"))
call("nvmlDeviceWorkloadPowerProfileGetProfilesInfo", In(nvmlDevice_t, "device"),
     InOut(nvmlWorkloadPowerProfileProfilesInfo_v1_t, "profilesInfo"))
call("nvmlDeviceWorkloadPowerProfileGetCurrentProfiles", In(nvmlDevice_t, "device"),
     InOut(nvmlWorkloadPowerProfileCurrentProfiles_v1_t, "currentProfiles"))
call("nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts", In(nvmlDevice_t, "device"),
     InOut(nvmlEccSramUniqueUncorrectedErrorCounts_v1_t, "errorCounts"))
call("nvmlDeviceGetCount", Out(U32, "deviceCount"))
call("nvmlDeviceGetHandleByIndex", In(U32, "index"), Out(nvmlDevice_t, "device"))
call("nvmlDeviceGetHandleByPciBusId", In(STR, "pciBusId"), Out(nvmlDevice_t, "device"))
call("nvmlDeviceGetPciInfo", In(nvmlDevice_t, "device"), Out(nvmlPciInfo_t, "pci"))
call("nvmlDeviceGetPciInfo_v2", In(nvmlDevice_t, "device"), Out(nvmlPciInfo_t, "pci"))
call("nvmlDeviceGetNvLinkRemotePciInfo", In(nvmlDevice_t, "device"), In(U32, "link"),
     Out(nvmlPciInfo_t, "pci"))
call("nvmlDeviceGetAttributes", In(nvmlDevice_t, "device"),
     Out(nvmlDeviceAttributes_t, "attributes"))
call("nvmlDeviceGetComputeRunningProcesses", In(nvmlDevice_t, "device"), InOut(U32, "infoCount"),
     Out(Array(nvmlProcessInfo_v1_t, "*infoCount"), "infos", opt=True), memory=tell_processes)
call("nvmlDeviceGetComputeRunningProcesses_v2", In(nvmlDevice_t, "device"), InOut(U32, "infoCount"),
     Out(Array(nvmlProcessInfo_v2_t, "*infoCount"), "infos", opt=True), memory=tell_processes)
call("nvmlDeviceGetGraphicsRunningProcesses", In(nvmlDevice_t, "device"), InOut(U32, "infoCount"),
     Out(Array(nvmlProcessInfo_v1_t, "*infoCount"), "infos", opt=True), memory=tell_processes)
call("nvmlDeviceGetGraphicsRunningProcesses_v2", In(nvmlDevice_t, "device"),
     InOut(U32, "infoCount"), Out(Array(nvmlProcessInfo_v2_t, "*infoCount"), "infos", opt=True),
     memory=tell_processes)
call("nvmlDeviceGetMPSComputeRunningProcesses", In(nvmlDevice_t, "device"), InOut(U32, "infoCount"),
     Out(Array(nvmlProcessInfo_v1_t, "*infoCount"), "infos", opt=True), memory=tell_processes)
call("nvmlDeviceGetMPSComputeRunningProcesses_v2", In(nvmlDevice_t, "device"),
     InOut(U32, "infoCount"), Out(Array(nvmlProcessInfo_v2_t, "*infoCount"), "infos", opt=True),
     memory=tell_processes)
call("nvmlDeviceGetDriverModel", In(nvmlDevice_t, "device"), Out(nvmlDriverModel_t, "current"),
     Out(nvmlDriverModel_t, "pending"))
