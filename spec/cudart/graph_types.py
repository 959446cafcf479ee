"""Structs of external objects and of graph nodes."""

struct("cudaExternalMemoryBufferDesc", F(U64, "offset"), F(U64, "size"), F(U32, "flags"),
       F(U32, "reserved", 16))

struct("cudaExternalMemoryMipmappedArrayDesc", F(U64, "offset"),
       F(cudaChannelFormatDesc, "formatDesc"), F(cudaExtent, "extent"), F(U32, "flags"),
       F(U32, "numLevels"), F(U32, "reserved", 16))

struct("cudaExternalSemaphoreSignalParams",
       F(inner("struct", F(inner("struct", F(U64, "value")), "fence"),
               F(inner("union", F(PTR, "fence"), F(U64, "reserved")), "nvSciSync"),
               F(inner("struct", F(U64, "key")), "keyedMutex"), F(U32, "reserved", 12)), "params"),
       F(U32, "flags"), F(U32, "reserved", 16))

struct("cudaExternalSemaphoreWaitParams",
       F(inner("struct", F(inner("struct", F(U64, "value")), "fence"),
               F(inner("union", F(PTR, "fence"), F(U64, "reserved")), "nvSciSync"),
               F(inner("struct", F(U64, "key"), F(U32, "timeoutMs")), "keyedMutex"),
               F(U32, "reserved", 10)), "params"), F(U32, "flags"), F(U32, "reserved", 16))

struct("cudaExternalMemoryHandleDesc", F(cudaExternalMemoryHandleType, "type"),
       F(inner("union", F(I32, "fd"),
               F(inner("struct", F(PTR, "handle"), F(CPTR, "name")), "win32"),
               F(CPTR, "nvSciBufObject")), "handle"), F(U64, "size"), F(U32, "flags"),
       F(U32, "reserved", 16))

struct("cudaExternalSemaphoreHandleDesc", F(cudaExternalSemaphoreHandleType, "type"),
       F(inner("union", F(I32, "fd"),
               F(inner("struct", F(PTR, "handle"), F(CPTR, "name")), "win32"),
               F(CPTR, "nvSciSyncObj")), "handle"), F(U32, "flags"), F(U32, "reserved", 16))

struct("cudaExternalMemoryBufferDesc_12", F(U64, "offset"), F(U64, "size"), F(U32, "flags"))

struct("cudaExternalMemoryMipmappedArrayDesc_12", F(U64, "offset"),
       F(cudaChannelFormatDesc, "formatDesc"), F(cudaExtent, "extent"), F(U32, "flags"),
       F(U32, "numLevels"))

struct("cudaExternalMemoryHandleDesc_12", F(cudaExternalMemoryHandleType, "type"),
       F(inner("union", F(I32, "fd"),
               F(inner("struct", F(PTR, "handle"), F(CPTR, "name")), "win32"),
               F(CPTR, "nvSciBufObject")), "handle"), F(U64, "size"), F(U32, "flags"))

struct("cudaExternalSemaphoreHandleDesc_12", F(cudaExternalSemaphoreHandleType, "type"),
       F(inner("union", F(I32, "fd"),
               F(inner("struct", F(PTR, "handle"), F(CPTR, "name")), "win32"),
               F(CPTR, "nvSciSyncObj")), "handle"), F(U32, "flags"))

struct("cudaExternalSemaphoreSignalParams_v1",
       F(inner("struct", F(inner("struct", F(U64, "value")), "fence"),
               F(inner("union", F(PTR, "fence"), F(U64, "reserved")), "nvSciSync"),
               F(inner("struct", F(U64, "key")), "keyedMutex")), "params"), F(U32, "flags"))

struct("cudaExternalSemaphoreWaitParams_v1",
       F(inner("struct", F(inner("struct", F(U64, "value")), "fence"),
               F(inner("union", F(PTR, "fence"), F(U64, "reserved")), "nvSciSync"),
               F(inner("struct", F(U64, "key"), F(U32, "timeoutMs")), "keyedMutex")), "params"),
       F(U32, "flags"))

struct("cudaGraphEdgeData", F(U8, "from_port"), F(U8, "to_port"), F(U8, "type"),
       F(U8, "reserved", 5))

struct("cudaExternalSemaphoreSignalNodeParams", F(Ptr("cudaExternalSemaphore_t *"), "extSemArray"),
       F(Ptr("const cudaExternalSemaphoreSignalParams *"), "paramsArray"), F(U32, "numExtSems"))

struct("cudaExternalSemaphoreWaitNodeParams", F(Ptr("cudaExternalSemaphore_t *"), "extSemArray"),
       F(Ptr("const cudaExternalSemaphoreWaitParams *"), "paramsArray"), F(U32, "numExtSems"))

struct("cudaHostNodeParams", F(cudaHostFn_t, "fn"), F(PTR, "userData"))

struct("cudaKernelNodeParams", F(PTR, "func"), F(dim3, "gridDim"), F(dim3, "blockDim"),
       F(U32, "sharedMemBytes"), F(Ptr("void **"), "kernelParams"), F(Ptr("void **"), "extra"))

struct("cudaMemAllocNodeParams", F(cudaMemPoolProps, "poolProps"),
       F(Ptr("const cudaMemAccessDesc *"), "accessDescs"), F(SIZE, "accessDescCount"),
       F(SIZE, "bytesize"), F(PTR, "dptr"))

struct("cudaKernelNodeParamsV2", F(PTR, "func"), F(dim3, "gridDim"), F(dim3, "blockDim"),
       F(U32, "sharedMemBytes"), F(Ptr("void **"), "kernelParams"), F(Ptr("void **"), "extra"))

struct("cudaMemcpyNodeParams", F(I32, "flags"), F(I32, "reserved", 3),
       F(cudaMemcpy3DParms, "copyParams"))

struct("cudaHostNodeParamsV2", F(cudaHostFn_t, "fn"), F(PTR, "userData"))

struct("cudaChildGraphNodeParams", F(cudaGraph_t, "graph"),
       F(cudaGraphChildGraphNodeOwnership, "ownership"))

struct("cudaEventWaitNodeParams", F(cudaEvent_t, "event"))

struct("cudaEventRecordNodeParams", F(cudaEvent_t, "event"))

struct("cudaExternalSemaphoreSignalNodeParamsV2",
       F(Ptr("cudaExternalSemaphore_t *"), "extSemArray"),
       F(Ptr("const cudaExternalSemaphoreSignalParams *"), "paramsArray"), F(U32, "numExtSems"))

struct("cudaExternalSemaphoreWaitNodeParamsV2", F(Ptr("cudaExternalSemaphore_t *"), "extSemArray"),
       F(Ptr("const cudaExternalSemaphoreWaitParams *"), "paramsArray"), F(U32, "numExtSems"))

struct("cudaMemAllocNodeParamsV2", F(cudaMemPoolProps, "poolProps"),
       F(Ptr("const cudaMemAccessDesc *"), "accessDescs"), F(SIZE, "accessDescCount"),
       F(SIZE, "bytesize"), F(PTR, "dptr"))

struct("cudaMemFreeNodeParams", F(PTR, "dptr"))

struct("cudaConditionalNodeParams", F(cudaGraphConditionalHandle, "handle"),
       F(cudaGraphConditionalNodeType, "type"), F(U32, "size"),
       F(Ptr("cudaGraph_t *"), "phGraph_out"))

struct("cudaGraphNodeParams", F(cudaGraphNodeType, "type"), F(I32, "reserved0", 3),
       F(inner("union", F(I64, "reserved1", 29), F(cudaKernelNodeParamsV2, "kernel"),
               F(cudaMemcpyNodeParams, "memcpy"), F(cudaMemsetParamsV2, "memset"),
               F(cudaHostNodeParamsV2, "host"), F(cudaChildGraphNodeParams, "graph"),
               F(cudaEventWaitNodeParams, "eventWait"),
               F(cudaEventRecordNodeParams, "eventRecord"),
               F(cudaExternalSemaphoreSignalNodeParamsV2, "extSemSignal"),
               F(cudaExternalSemaphoreWaitNodeParamsV2, "extSemWait"),
               F(cudaMemAllocNodeParamsV2, "alloc"), F(cudaMemFreeNodeParams, "free"),
               F(cudaConditionalNodeParams, "conditional")), ""), F(I64, "reserved2"))

struct("cudaGraphExecUpdateResultInfo", F(cudaGraphExecUpdateResult, "result"),
       F(cudaGraphNode_t, "errorNode"), F(cudaGraphNode_t, "errorFromNode"))

struct("cudaGraphInstantiateParams", F(U64, "flags"), F(cudaStream_t, "uploadStream"),
       F(cudaGraphNode_t, "errNode_out"), F(cudaGraphInstantiateResult, "result_out"))

typedefs("cudaUUID_t", "cudaGraphEdgeData", "cudaGraphExecUpdateResultInfo",
         "cudaGraphInstantiateParams", "cudaGraphInstantiateResult", "cudaIpcEventHandle_t",
         "cudaIpcMemHandle_t", "cudaLaunchAttribute", "cudaLaunchAttributeID",
         "cudaLaunchAttributeValue", "cudaLaunchConfig_t", "cudaLaunchMemSyncDomain",
         "cudaLaunchMemSyncDomainMap", "dim3")
