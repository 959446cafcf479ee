"""Streams, events, stream memory operations, capture."""

enum("CUstreamCaptureMode",
     CU_STREAM_CAPTURE_MODE_GLOBAL=0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL=1,
     CU_STREAM_CAPTURE_MODE_RELAXED=2)

func("CUstreamCallback", "void", "CUstream, CUresult, void *")

enum("CUstreamBatchMemOpType",
     CU_STREAM_MEM_OP_WAIT_VALUE_32=1, CU_STREAM_MEM_OP_WRITE_VALUE_32=2,
     CU_STREAM_MEM_OP_WAIT_VALUE_64=4, CU_STREAM_MEM_OP_WRITE_VALUE_64=5,
     CU_STREAM_MEM_OP_BARRIER=6, CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES=3)

union("CUstreamBatchMemOpParams_v1",
      F(CUstreamBatchMemOpType, "operation"),
      F(inner("struct",
              F(CUstreamBatchMemOpType, "operation"),
              F(CUdeviceptr, "address"),
              F(inner("union",
                      F(cuuint32_t, "value"),
                      F(cuuint64_t, "value64")), None),
              F(U32, "flags"),
              F(CUdeviceptr, "alias")), "waitValue"),
      F(inner("struct",
              F(CUstreamBatchMemOpType, "operation"),
              F(CUdeviceptr, "address"),
              F(inner("union",
                      F(cuuint32_t, "value"),
                      F(cuuint64_t, "value64")), None),
              F(U32, "flags"),
              F(CUdeviceptr, "alias")), "writeValue"),
      F(inner("struct",
              F(CUstreamBatchMemOpType, "operation"),
              F(U32, "flags")), "flushRemoteWrites"),
      F(inner("struct",
              F(CUstreamBatchMemOpType, "operation"),
              F(U32, "flags")), "memoryBarrier"),
      F(cuuint64_t, "pad", 6), tag="operation",
      cases={1: "waitValue", 2: "writeValue", 3: "flushRemoteWrites", 4: "waitValue",
             5: "writeValue", 6: "memoryBarrier"})

handle("CUgraph", "graph")

handle("CUgraphNode", "graphNode")

struct("CUgraphEdgeData",
       F(U8, "from_port"),
       F(U8, "to_port"),
       F(U8, "type"),
       F(U8, "reserved", 5))

enum("CUstreamCaptureStatus",
     CU_STREAM_CAPTURE_STATUS_NONE=0, CU_STREAM_CAPTURE_STATUS_ACTIVE=1,
     CU_STREAM_CAPTURE_STATUS_INVALIDATED=2)

enum("CUlaunchAttributeID",
     CU_LAUNCH_ATTRIBUTE_IGNORE=0, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW=1,
     CU_LAUNCH_ATTRIBUTE_COOPERATIVE=2, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY=3,
     CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION=4,
     CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE=5,
     CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION=6,
     CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT=7, CU_LAUNCH_ATTRIBUTE_PRIORITY=8,
     CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP=9, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN=10,
     CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION=11,
     CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT=12,
     CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE=13,
     CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT=14,
     CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING=16, CU_LAUNCH_ATTRIBUTE_MAX=17)

enum("CUaccessProperty",
     CU_ACCESS_PROPERTY_NORMAL=0, CU_ACCESS_PROPERTY_STREAMING=1,
     CU_ACCESS_PROPERTY_PERSISTING=2)

struct("CUaccessPolicyWindow_v1",
       F(DPTR, "base_ptr"),
       F(SIZE, "num_bytes"),
       F(F32, "hitRatio"),
       F(CUaccessProperty, "hitProp"),
       F(CUaccessProperty, "missProp"))

enum("CUsynchronizationPolicy",
     CU_SYNC_POLICY_AUTO=1, CU_SYNC_POLICY_SPIN=2, CU_SYNC_POLICY_YIELD=3,
     CU_SYNC_POLICY_BLOCKING_SYNC=4)

enum("CUclusterSchedulingPolicy",
     CU_CLUSTER_SCHEDULING_POLICY_DEFAULT=0, CU_CLUSTER_SCHEDULING_POLICY_SPREAD=1,
     CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING=2)

struct("CUlaunchMemSyncDomainMap",
       F(U8, "default_"),
       F(U8, "remote"))

enum("CUlaunchMemSyncDomain",
     CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT=0, CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE=1)

handle("CUgraphDeviceNode", "graphDeviceNode", "struct CUgraphDeviceUpdatableNode_st")

union("CUlaunchAttributeValue",
      F(CHAR, "pad", 64),
      F(CUaccessPolicyWindow_v1, "accessPolicyWindow"),
      F(I32, "cooperative"),
      F(CUsynchronizationPolicy, "syncPolicy"),
      F(inner("struct",
              F(U32, "x"),
              F(U32, "y"),
              F(U32, "z")), "clusterDim"),
      F(CUclusterSchedulingPolicy, "clusterSchedulingPolicyPreference"),
      F(I32, "programmaticStreamSerializationAllowed"),
      F(inner("struct",
              F(CUevent, "event"),
              F(I32, "flags"),
              F(I32, "triggerAtBlockStart")), "programmaticEvent"),
      F(inner("struct",
              F(CUevent, "event"),
              F(I32, "flags")), "launchCompletionEvent"),
      F(I32, "priority"),
      F(CUlaunchMemSyncDomainMap, "memSyncDomainMap"),
      F(CUlaunchMemSyncDomain, "memSyncDomain"),
      F(inner("struct",
              F(U32, "x"),
              F(U32, "y"),
              F(U32, "z")), "preferredClusterDim"),
      F(inner("struct",
              F(I32, "deviceUpdatable"),
              F(CUgraphDeviceNode, "devNode")), "deviceUpdatableKernelNode"),
      F(U32, "sharedMemCarveout"),
      F(U32, "nvlinkUtilCentricScheduling"),
      cases={1: "accessPolicyWindow", 2: "cooperative", 3: "syncPolicy", 4: "clusterDim",
             5: "clusterSchedulingPolicyPreference", 6: "programmaticStreamSerializationAllowed",
             7: "programmaticEvent", 8: "priority", 9: "memSyncDomainMap",
             10: "memSyncDomain", 11: "preferredClusterDim", 12: "launchCompletionEvent",
             13: "deviceUpdatableKernelNode", 14: "sharedMemCarveout",
             16: "nvlinkUtilCentricScheduling"})

call("cuStreamCreate", Out(CUstream, "phStream", new="stream"), In(U32, "Flags"), since=2000,
     after="none", does="make")
call("cuStreamCreateWithPriority", Out(CUstream, "phStream", new="stream"), In(U32, "flags"),
     In(I32, "priority"), since=5050, after="none", does="make", travel=True)
call("cuThreadExchangeStreamCaptureMode", InOut(CUstreamCaptureMode, "mode"), since=10010,
     after="none", does="set")
call("cuStreamDestroy", In(CUstream, "hStream", free="stream"), since=2000, does="end")
call("cuStreamDestroy_v2", In(CUstream, "hStream", free="stream"), since=4000, does="end",
     travel=True)
call("cuEventCreate", Out(CUevent, "phEvent", new="event"), In(U32, "Flags"), since=2000,
     after="none", does="make", travel=True)
call("cuEventQuery", In(CUevent, "hEvent"), since=2000, does="poll", about="hEvent", travel=True)
call("cuEventSynchronize", In(CUevent, "hEvent"), since=2000, blocks=True, does="wait",
     about="hEvent", travel=True)
call("cuEventDestroy", In(CUevent, "hEvent", free="event"), since=2000, does="end")
call("cuEventDestroy_v2", In(CUevent, "hEvent", free="event"), since=4000, does="end", travel=True)
call("cuEventElapsedTime", Out(F32, "pMilliseconds"), In(CUevent, "hStart"), In(CUevent, "hEnd"),
     since=2000, does="ask", travel=True)
call("cuEventElapsedTime_v2", Out(F32, "pMilliseconds"), In(CUevent, "hStart"), In(CUevent, "hEnd"),
     since=12080, does="ask")
call("cuStreamGetGreenCtx", In(CUstream, "hStream"), Out(CUgreenCtx, "phCtx"), since=12040,
     does="ask")
call("cuStreamGetPriority", In(CUstream, "hStream"), Out(I32, "priority"), since=5050, ptds=7000,
     after="none")
call("cuStreamGetId", In(CUstream, "hStream"), Out(U64, "streamId"), since=12000, ptds=True,
     after="none")
call("cuStreamGetFlags", In(CUstream, "hStream"), Out(U32, "flags"), since=5050, ptds=7000,
     after="none")
call("cuStreamGetDevice", In(CUstream, "hStream"), Out(CUdevice, "device"), since=12080, ptds=True,
     after="none")
call("cuStreamGetCtx", In(CUstream, "hStream"), Out(CUcontext, "pctx"), since=9020, ptds=True,
     after="none")
call("cuStreamGetCtx_v2", In(CUstream, "hStream"), Out(CUcontext, "pCtx", opt=True),
     Out(CUgreenCtx, "pGreenCtx", opt=True), since=12050, ptds=True, after="none")
call("cuStreamWaitEvent", In(CUstream, "hStream"), In(CUevent, "hEvent"), In(U32, "Flags"),
     since=3020, ptds=7000, after="all", does="order",
     defer=Roles("object", object="hEvent", flags="Flags"), travel=True)
call("cuStreamAddCallback", In(CUstream, "hStream"), In(CUstreamCallback, "callback"),
     In(PTR, "userData"), In(U32, "flags"), since=5000, ptds=7000, does="order",
     defer=Roles("callback", callback="callback", flags="flags"))
call("cuStreamAttachMemAsync", In(CUstream, "hStream"), In(CUdeviceptr, "dptr"), In(SIZE, "length"),
     In(U32, "flags"), since=6000, ptds=7000, does="order")
call("cuStreamQuery", In(CUstream, "hStream"), since=2000, ptds=7000, does="poll", travel=True)
call("cuStreamSynchronize", In(CUstream, "hStream"), since=2000, ptds=7000, blocks=True,
     does="wait", travel=True)
call("cuEventRecord", In(CUevent, "hEvent"), In(CUstream, "hStream"), since=2000, ptds=7000,
     does="order", about="hEvent", defer=Roles("object", object="hEvent"), travel=True)
call("cuEventRecordWithFlags", In(CUevent, "hEvent"), In(CUstream, "hStream"), In(U32, "flags"),
     since=11010, ptds=True, does="order", about="hEvent",
     defer=Roles("object", object="hEvent", flags="flags"))
call("cuStreamWriteValue32", In(CUstream, "stream"), In(CUdeviceptr, "addr"),
     In(cuuint32_t, "value"), In(U32, "flags"), since=8000, ptds=True, does="order",
     defer=Roles("word", address="addr", bytes=4, flags="flags"))
call("cuStreamWriteValue32_v2", In(CUstream, "stream"), In(CUdeviceptr, "addr"),
     In(cuuint32_t, "value"), In(U32, "flags"), since=11070, ptds=True, does="order",
     defer=Roles("word", address="addr", bytes=4, flags="flags"))
call("cuStreamWaitValue32", In(CUstream, "stream"), In(CUdeviceptr, "addr"),
     In(cuuint32_t, "value"), In(U32, "flags"), since=8000, ptds=True, does="order",
     defer=Roles("word", address="addr", bytes=4, flags="flags"))
call("cuStreamWaitValue32_v2", In(CUstream, "stream"), In(CUdeviceptr, "addr"),
     In(cuuint32_t, "value"), In(U32, "flags"), since=11070, ptds=True, does="order",
     defer=Roles("word", address="addr", bytes=4, flags="flags"))
call("cuStreamWriteValue64", In(CUstream, "stream"), In(CUdeviceptr, "addr"),
     In(cuuint64_t, "value"), In(U32, "flags"), since=9000, ptds=True, does="order",
     defer=Roles("word", address="addr", bytes=8, flags="flags"))
call("cuStreamWriteValue64_v2", In(CUstream, "stream"), In(CUdeviceptr, "addr"),
     In(cuuint64_t, "value"), In(U32, "flags"), since=11070, ptds=True, does="order",
     defer=Roles("word", address="addr", bytes=8, flags="flags"))
call("cuStreamWaitValue64", In(CUstream, "stream"), In(CUdeviceptr, "addr"),
     In(cuuint64_t, "value"), In(U32, "flags"), since=9000, ptds=True, does="order",
     defer=Roles("word", address="addr", bytes=8, flags="flags"))
call("cuStreamWaitValue64_v2", In(CUstream, "stream"), In(CUdeviceptr, "addr"),
     In(cuuint64_t, "value"), In(U32, "flags"), since=11070, ptds=True, does="order",
     defer=Roles("word", address="addr", bytes=8, flags="flags"))
call("cuStreamBatchMemOp", In(CUstream, "stream"), In(U32, "count"),
     In(Array(CUstreamBatchMemOpParams_v1, "count", mut=True), "paramArray"), In(U32, "flags"),
     since=8000, ptds=True, does="order")
call("cuStreamBatchMemOp_v2", In(CUstream, "stream"), In(U32, "count"),
     In(Array(CUstreamBatchMemOpParams_v1, "count", mut=True), "paramArray"), In(U32, "flags"),
     since=11070, ptds=True, does="order", travel=Roles("memory_ops", "paramArray", "count"))
call("cuStreamBeginCapture", In(CUstream, "hStream"), since=10000, ptds=True, does="begin_capture",
     memory=Roles("capture"))
call("cuStreamBeginCapture_v2", In(CUstream, "hStream"), In(CUstreamCaptureMode, "mode"),
     since=10010, ptds=True, does="begin_capture", memory=Roles("capture"))
call("cuStreamBeginCaptureToGraph", In(CUstream, "hStream"), In(CUgraph, "hGraph"),
     In(Array(CUgraphNode, "numDependencies"), "dependencies"),
     In(Array(CUgraphEdgeData, "numDependencies"), "dependencyData"), In(SIZE, "numDependencies"),
     In(CUstreamCaptureMode, "mode"), since=12030, ptds=True, does="begin_capture",
     memory=Roles("capture"))
call("cuStreamEndCapture", In(CUstream, "hStream"),
     Out(CUgraph, "phGraph", new="graph", on=["CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"]),
     since=10000, ptds=True, does="end_capture")
call("cuStreamIsCapturing", In(CUstream, "hStream"), Out(CUstreamCaptureStatus, "captureStatus"),
     since=10000, ptds=True, after="none")
call("cuStreamGetCaptureInfo", In(CUstream, "hStream"),
     Out(CUstreamCaptureStatus, "captureStatus_out"), Out(cuuint64_t, "id_out", opt=True),
     since=10010, ptds=True, after="none")
call("cuStreamGetCaptureInfo_v2", In(CUstream, "hStream"),
     Out(CUstreamCaptureStatus, "captureStatus_out"), Out(cuuint64_t, "id_out", opt=True),
     Out(CUgraph, "graph_out", opt=True),
     Out(Ptr("const CUgraphNode *"), "dependencies_out", opt=True),
     Out(SIZE, "numDependencies_out", opt=True), since=11030, ptds=True, after="none")
call("cuStreamGetCaptureInfo_v3", In(CUstream, "hStream"),
     Out(CUstreamCaptureStatus, "captureStatus_out"), Out(cuuint64_t, "id_out", opt=True),
     Out(CUgraph, "graph_out", opt=True),
     Out(Ptr("const CUgraphNode *"), "dependencies_out", opt=True),
     Out(Ptr("const CUgraphEdgeData *"), "edgeData_out", opt=True),
     Out(SIZE, "numDependencies_out", opt=True), since=12030, ptds=True, after="none")
call("cuStreamCopyAttributes", In(CUstream, "dstStream"), In(CUstream, "srcStream"), since=11000,
     ptds=True, does="set")
call("cuStreamGetAttribute", In(CUstream, "hStream"), In(CUlaunchAttributeID, "attr"),
     Out(CUlaunchAttributeValue, "value", tag="attr"), since=11000, ptds=True, does="ask")
call("cuStreamSetAttribute", In(CUstream, "hStream"), In(CUlaunchAttributeID, "attr"),
     In(Ref(CUlaunchAttributeValue), "param", tag="attr", extent="0"), since=11000, ptds=True,
     does="set", travel=True)
call("cuStreamUpdateCaptureDependencies", In(CUstream, "hStream"),
     In(Array(CUgraphNode, "numDependencies", mut=True), "dependencies"),
     In(SIZE, "numDependencies"), In(U32, "flags"), since=11030, ptds=True, does="set")
call("cuStreamUpdateCaptureDependencies_v2", In(CUstream, "hStream"),
     In(Array(CUgraphNode, "numDependencies", mut=True), "dependencies"),
     In(Array(CUgraphEdgeData, "numDependencies"), "dependencyData"), In(SIZE, "numDependencies"),
     In(U32, "flags"), since=12030, ptds=True, does="set")
