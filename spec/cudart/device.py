"""Devices, contexts, limits, versions, green contexts."""

call("cudaChooseDevice", Out(I32, "device"), In(Ref(cudaDeviceProp_8), "prop"), editions="8",
     by_hand=True, as_="cudaChooseDevice_8")
call("cudaChooseDevice", Out(I32, "device"), In(Ref(cudaDeviceProp_10), "prop"), editions="10",
     by_hand=True, as_="cudaChooseDevice_10")
call("cudaChooseDevice", Out(I32, "device"), In(Ref(cudaDeviceProp_11), "prop"), editions="11",
     by_hand=True, as_="cudaChooseDevice_11")
call("cudaChooseDevice", Out(I32, "device"), In(Ref(cudaDeviceProp_12), "prop"), editions="12",
     by_hand=True, as_="cudaChooseDevice_12")
call("cudaChooseDevice", Out(I32, "device"), In(Ref(cudaDeviceProp), "prop"), editions="13..",
     by_hand=True)
call("cudaCtxResetPersistingL2Cache", editions="11..", driver="cuCtxResetPersistingL2Cache")
call("cudaDevResourceGenerateDesc", Out(cudaDevResourceDesc_t, "phDesc"),
     In(PTR, "resources", c="void *"), In(U32, "nbResources"), editions="13..", since=13040,
     driver="cuDevResourceGenerateDesc")
call("cudaDevSmResourceSplit", In(PTR, "result", c="void *"), In(U32, "nbGroups"),
     In(CPTR, "input", c="const void *"), In(PTR, "remainder", c="void *"), In(U32, "flags"),
     In(PTR, "groupParams", c="void *"), editions="13..", since=13040,
     missing="it needs a driver call that came after CUDA 13.0")
call("cudaDevSmResourceSplitByCount", In(PTR, "result", c="void *"), Out(U32, "nbGroups"),
     In(CPTR, "input", c="const void *"), In(PTR, "remaining", c="void *"), In(U32, "flags"),
     In(U32, "minCount"), editions="13..", since=13040, driver="cuDevSmResourceSplitByCount")
call("cudaDeviceCanAccessPeer", Out(I32, "canAccessPeer"), In(I32, "device"),
     In(I32, "peerDevice"), by_hand=True)
call("cudaDeviceDisablePeerAccess", In(I32, "peerDevice"), by_hand=True)
call("cudaDeviceEnablePeerAccess", In(I32, "peerDevice"), In(U32, "flags"),
     by_hand=True)
call("cudaDeviceFlushGPUDirectRDMAWrites", In(cudaFlushGPUDirectRDMAWritesTarget, "target"),
     In(cudaFlushGPUDirectRDMAWritesScope, "scope"), editions="11..",
     driver="cuFlushGPUDirectRDMAWrites")
call("cudaDeviceGetAttribute", Out(I32, "value"), In(cudaDeviceAttr, "attr"), In(I32, "device"),
     driver="cuDeviceGetAttribute")
call("cudaDeviceGetByPCIBusId", Out(I32, "device"), In(STR, "pciBusId"),
     driver="cuDeviceGetByPCIBusId")
call("cudaDeviceGetCacheConfig", Out(cudaFuncCache, "pCacheConfig"), driver="cuCtxGetCacheConfig")
call("cudaDeviceGetDevResource", In(I32, "device"), In(PTR, "resource", c="void *"),
     In(cudaDevResourceType, "type"), editions="13..", since=13040,
     driver="cuDeviceGetDevResource")
call("cudaDeviceGetExecutionCtx", Out(cudaExecutionContext_t, "ctx"), In(I32, "device"),
     editions="13..", since=13040, by_hand=True)
call("cudaDeviceGetHostAtomicCapabilities", Out(U32, "capabilities"),
     In(Ref(cudaAtomicOperation), "operations"), In(U32, "count"), In(I32, "device"),
     editions="13..", driver="cuDeviceGetHostAtomicCapabilities")
call("cudaDeviceGetLimit", Out(SIZE, "pValue"), In(cudaLimit, "limit"), driver="cuCtxGetLimit")
call("cudaDeviceGetP2PAtomicCapabilities", Out(U32, "capabilities"),
     In(Ref(cudaAtomicOperation), "operations"), In(U32, "count"), In(I32, "srcDevice"),
     In(I32, "dstDevice"), editions="13..", driver="cuDeviceGetP2PAtomicCapabilities")
call("cudaDeviceGetP2PAttribute", Out(I32, "value"), In(cudaDeviceP2PAttr, "attr"),
     In(I32, "srcDevice"), In(I32, "dstDevice"), driver="cuDeviceGetP2PAttribute")
call("cudaDeviceGetPCIBusId", In(Ptr("char *"), "pciBusId"), In(I32, "len"), In(I32, "device"),
     driver="cuDeviceGetPCIBusId")
call("cudaDeviceGetSharedMemConfig", Out(cudaSharedMemConfig, "pConfig"),
     driver="cuCtxGetSharedMemConfig")
call("cudaDeviceGetStreamPriorityRange", Out(I32, "leastPriority"), Out(I32, "greatestPriority"),
     driver="cuCtxGetStreamPriorityRange")
call("cudaDeviceRegisterAsyncNotification", In(I32, "device"),
     In(cudaAsyncCallback, "callbackFunc"), In(PTR, "userData"),
     Out(cudaAsyncCallbackHandle_t, "callback"), editions="12..",
     driver="cuDeviceRegisterAsyncNotification")
call("cudaDeviceReset", by_hand=True)
call("cudaDeviceSetCacheConfig", In(cudaFuncCache, "cacheConfig"), driver="cuCtxSetCacheConfig")
call("cudaDeviceSetLimit", In(cudaLimit, "limit"), In(SIZE, "value"), driver="cuCtxSetLimit")
call("cudaDeviceSetSharedMemConfig", In(cudaSharedMemConfig, "config"),
     driver="cuCtxSetSharedMemConfig")
call("cudaDeviceSynchronize", driver="cuCtxSynchronize")
call("cudaDeviceUnregisterAsyncNotification", In(I32, "device"),
     In(cudaAsyncCallbackHandle_t, "callback"), editions="12..",
     driver="cuDeviceUnregisterAsyncNotification")
call("cudaDriverGetVersion", Out(I32, "driverVersion"), by_hand=True)
call("cudaExecutionCtxDestroy", In(cudaExecutionContext_t, "ctx"), editions="13..", since=13040,
     by_hand=True)
call("cudaExecutionCtxGetDevResource", In(cudaExecutionContext_t, "ctx"),
     In(PTR, "resource", c="void *"), In(cudaDevResourceType, "type"), editions="13..",
     since=13040, by_hand=True)
call("cudaExecutionCtxGetDevice", Out(I32, "device"), In(cudaExecutionContext_t, "ctx"),
     editions="13..", since=13040, by_hand=True)
call("cudaExecutionCtxGetId", In(cudaExecutionContext_t, "ctx"), Out(U64, "ctxId"),
     editions="13..", since=13040, by_hand=True)
call("cudaExecutionCtxRecordEvent", In(cudaExecutionContext_t, "ctx"), In(cudaEvent_t, "event"),
     editions="13..", since=13040, by_hand=True)
call("cudaExecutionCtxStreamCreate", Out(cudaStream_t, "phStream"),
     In(cudaExecutionContext_t, "ctx"), In(U32, "flags"), In(I32, "priority"), editions="13..",
     since=13040, by_hand=True)
call("cudaExecutionCtxSynchronize", In(cudaExecutionContext_t, "ctx"), editions="13..",
     since=13040, by_hand=True)
call("cudaExecutionCtxWaitEvent", In(cudaExecutionContext_t, "ctx"), In(cudaEvent_t, "event"),
     editions="13..", since=13040, by_hand=True)
call("cudaGetDevice", Out(I32, "device"), by_hand=True)
call("cudaGetDeviceCount", Out(I32, "count"), by_hand=True)
call("cudaGetDeviceFlags", Out(U32, "flags"), by_hand=True)
call("cudaGetDeviceProperties", Out(cudaDeviceProp_8, "prop"), In(I32, "device"), editions="8",
     by_hand=True, as_="cudaGetDeviceProperties_8")
call("cudaGetDeviceProperties", Out(cudaDeviceProp_10, "prop"), In(I32, "device"), editions="10",
     by_hand=True, as_="cudaGetDeviceProperties_10")
call("cudaGetDeviceProperties", Out(cudaDeviceProp_11, "prop"), In(I32, "device"), editions="11",
     by_hand=True, as_="cudaGetDeviceProperties_11")
call("cudaGetDeviceProperties", Out(cudaDeviceProp_12, "prop"), In(I32, "device"), editions="12",
     by_hand=True, as_="cudaGetDeviceProperties_12")
call("cudaGetDeviceProperties", Out(cudaDeviceProp, "prop"), In(I32, "device"), editions="13..",
     by_hand=True)
call("cudaGetDeviceProperties_v2", Out(cudaDeviceProp_12, "prop"), In(I32, "device"),
     editions="12", by_hand=True)
call("cudaGetLastError", by_hand=True, plain=True)
call("cudaGreenCtxCreate", Out(cudaExecutionContext_t, "phCtx"), In(cudaDevResourceDesc_t, "desc"),
     In(I32, "device"), In(U32, "flags"), editions="13..", since=13040, by_hand=True)
call("cudaInitDevice", In(I32, "device"), In(U32, "deviceFlags"), In(U32, "flags"),
     editions="12..", by_hand=True)
call("cudaLogsCurrent", Out(cudaLogIterator, "iterator_out"), In(U32, "flags"), editions="13..",
     driver="cuLogsCurrent")
call("cudaLogsDumpToFile", Out(cudaLogIterator, "iterator"), In(STR, "pathToFile"),
     In(U32, "flags"), editions="13..", driver="cuLogsDumpToFile")
call("cudaLogsDumpToMemory", Out(cudaLogIterator, "iterator"), In(Ptr("char *"), "buffer"),
     Out(SIZE, "size"), In(U32, "flags"), editions="13..", driver="cuLogsDumpToMemory")
call("cudaLogsRegisterCallback", In(cudaLogsCallback_t, "callbackFunc"), In(PTR, "userData"),
     Out(cudaLogsCallbackHandle, "callback_out"), editions="13..", driver="cuLogsRegisterCallback")
call("cudaLogsUnregisterCallback", In(cudaLogsCallbackHandle, "callback"), editions="13..",
     driver="cuLogsUnregisterCallback")
call("cudaPeekAtLastError", by_hand=True, plain=True)
call("cudaProfilerStart", driver="cuProfilerStart")
call("cudaProfilerStop", by_hand=True)
call("cudaRuntimeGetVersion", Out(I32, "runtimeVersion"), by_hand=True)
call("cudaSetDevice", In(I32, "device"), by_hand=True)
call("cudaSetDeviceFlags", In(U32, "flags"), by_hand=True)
call("cudaSetValidDevices", Out(I32, "device_arr"), In(I32, "len"), by_hand=True)
