"""Graphs: nodes, edges, executable graphs."""

struct("CUDA_KERNEL_NODE_PARAMS_v1",
       F(CUfunction, "func"),
       F(U32, "gridDimX"),
       F(U32, "gridDimY"),
       F(U32, "gridDimZ"),
       F(U32, "blockDimX"),
       F(U32, "blockDimY"),
       F(U32, "blockDimZ"),
       F(U32, "sharedMemBytes"),
       F(Ptr("void **"), "kernelParams"),
       F(Ptr("void **"), "extra"))

struct("CUDA_KERNEL_NODE_PARAMS_v2",
       F(CUfunction, "func"),
       F(U32, "gridDimX"),
       F(U32, "gridDimY"),
       F(U32, "gridDimZ"),
       F(U32, "blockDimX"),
       F(U32, "blockDimY"),
       F(U32, "blockDimZ"),
       F(U32, "sharedMemBytes"),
       F(Ptr("void **"), "kernelParams"),
       F(Ptr("void **"), "extra"),
       F(CUkernel, "kern"),
       F(CUcontext, "ctx"))

struct("CUDA_MEMSET_NODE_PARAMS_v1",
       F(CUdeviceptr, "dst"),
       F(SIZE, "pitch"),
       F(U32, "value"),
       F(U32, "elementSize"),
       F(SIZE, "width"),
       F(SIZE, "height"))

struct("CUDA_HOST_NODE_PARAMS_v1",
       F(CUhostFn, "fn"),
       F(PTR, "userData"))

handle("CUexternalSemaphore", "externalSemaphore", "struct CUextSemaphore_st")

struct("CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_v1",
       F(inner("struct",
               F(inner("struct",
                       F(U64, "value")), "fence"),
               F(inner("union",
                       F(PTR, "fence"),
                       F(U64, "reserved")), "nvSciSync"),
               F(inner("struct",
                       F(U64, "key")), "keyedMutex"),
               F(U32, "reserved", 12)), "params"),
       F(U32, "flags"),
       F(U32, "reserved", 16))

struct("CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v1",
       F(Array(CUexternalSemaphore, "numExtSems", mut=True), "extSemArray"),
       F(Array(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_v1, "numExtSems"), "paramsArray"),
       F(U32, "numExtSems"))

struct("CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_v1",
       F(inner("struct",
               F(inner("struct",
                       F(U64, "value")), "fence"),
               F(inner("union",
                       F(PTR, "fence"),
                       F(U64, "reserved")), "nvSciSync"),
               F(inner("struct",
                       F(U64, "key"),
                       F(U32, "timeoutMs")), "keyedMutex"),
               F(U32, "reserved", 10)), "params"),
       F(U32, "flags"),
       F(U32, "reserved", 16))

struct("CUDA_EXT_SEM_WAIT_NODE_PARAMS_v1",
       F(Array(CUexternalSemaphore, "numExtSems", mut=True), "extSemArray"),
       F(Array(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_v1, "numExtSems"), "paramsArray"),
       F(U32, "numExtSems"))

struct("CUDA_BATCH_MEM_OP_NODE_PARAMS_v1",
       F(CUcontext, "ctx"),
       F(U32, "count"),
       F(Array(CUstreamBatchMemOpParams_v1, "count", mut=True), "paramArray"),
       F(U32, "flags"))

handle("CUgraphExec", "graphExec")

struct("CUDA_MEM_ALLOC_NODE_PARAMS_v1",
       F(CUmemPoolProps_v1, "poolProps"),
       F(Array(CUmemAccessDesc_v1, "accessDescCount"), "accessDescs"),
       F(SIZE, "accessDescCount"),
       F(SIZE, "bytesize"),
       F(CUdeviceptr, "dptr"))

enum("CUgraphMem_attribute",
     CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT=0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH=1,
     CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT=2, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH=3)

enum("CUgraphNodeType",
     CU_GRAPH_NODE_TYPE_KERNEL=0, CU_GRAPH_NODE_TYPE_MEMCPY=1, CU_GRAPH_NODE_TYPE_MEMSET=2,
     CU_GRAPH_NODE_TYPE_HOST=3, CU_GRAPH_NODE_TYPE_GRAPH=4, CU_GRAPH_NODE_TYPE_EMPTY=5,
     CU_GRAPH_NODE_TYPE_WAIT_EVENT=6, CU_GRAPH_NODE_TYPE_EVENT_RECORD=7,
     CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL=8, CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT=9,
     CU_GRAPH_NODE_TYPE_MEM_ALLOC=10, CU_GRAPH_NODE_TYPE_MEM_FREE=11,
     CU_GRAPH_NODE_TYPE_BATCH_MEM_OP=12, CU_GRAPH_NODE_TYPE_CONDITIONAL=13)

enum("CUgraphExecUpdateResult",
     CU_GRAPH_EXEC_UPDATE_SUCCESS=0x0, CU_GRAPH_EXEC_UPDATE_ERROR=0x1,
     CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED=0x2,
     CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED=0x3,
     CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED=0x4,
     CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED=0x5,
     CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED=0x6,
     CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE=0x7,
     CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED=0x8)

struct("CUgraphExecUpdateResultInfo_v1",
       F(CUgraphExecUpdateResult, "result"),
       F(CUgraphNode, "errorNode"),
       F(CUgraphNode, "errorFromNode"))

handle("CUuserObject", "userObject")

struct("CUDA_KERNEL_NODE_PARAMS_v3",
       F(CUfunction, "func"),
       F(U32, "gridDimX"),
       F(U32, "gridDimY"),
       F(U32, "gridDimZ"),
       F(U32, "blockDimX"),
       F(U32, "blockDimY"),
       F(U32, "blockDimZ"),
       F(U32, "sharedMemBytes"),
       F(Ptr("void **"), "kernelParams"),
       F(Ptr("void **"), "extra"),
       F(CUkernel, "kern"),
       F(CUcontext, "ctx"))

struct("CUDA_MEMCPY_NODE_PARAMS",
       F(I32, "flags"),
       F(I32, "reserved"),
       F(CUcontext, "copyCtx"),
       F(CUDA_MEMCPY3D_v2, "copyParams"))

struct("CUDA_MEMSET_NODE_PARAMS_v2",
       F(CUdeviceptr, "dst"),
       F(SIZE, "pitch"),
       F(U32, "value"),
       F(U32, "elementSize"),
       F(SIZE, "width"),
       F(SIZE, "height"),
       F(CUcontext, "ctx"))

struct("CUDA_HOST_NODE_PARAMS_v2",
       F(CUhostFn, "fn"),
       F(PTR, "userData"))

enum("CUgraphChildGraphNodeOwnership",
     CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE=0, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE=1)

struct("CUDA_CHILD_GRAPH_NODE_PARAMS",
       F(CUgraph, "graph"),
       F(CUgraphChildGraphNodeOwnership, "ownership"))

struct("CUDA_EVENT_WAIT_NODE_PARAMS",
       F(CUevent, "event"))

struct("CUDA_EVENT_RECORD_NODE_PARAMS",
       F(CUevent, "event"))

struct("CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2",
       F(Array(CUexternalSemaphore, "numExtSems", mut=True), "extSemArray"),
       F(Array(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_v1, "numExtSems"), "paramsArray"),
       F(U32, "numExtSems"))

struct("CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2",
       F(Array(CUexternalSemaphore, "numExtSems", mut=True), "extSemArray"),
       F(Array(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_v1, "numExtSems"), "paramsArray"),
       F(U32, "numExtSems"))

struct("CUDA_MEM_ALLOC_NODE_PARAMS_v2",
       F(CUmemPoolProps_v1, "poolProps"),
       F(Array(CUmemAccessDesc_v1, "accessDescCount"), "accessDescs"),
       F(SIZE, "accessDescCount"),
       F(SIZE, "bytesize"),
       F(CUdeviceptr, "dptr"))

struct("CUDA_MEM_FREE_NODE_PARAMS",
       F(CUdeviceptr, "dptr"))

struct("CUDA_BATCH_MEM_OP_NODE_PARAMS_v2",
       F(CUcontext, "ctx"),
       F(U32, "count"),
       F(Array(CUstreamBatchMemOpParams_v1, "count", mut=True), "paramArray"),
       F(U32, "flags"))

alias("CUgraphConditionalHandle", cuuint64_t, "h.conditional")

const("CU_GRAPH_COND_ASSIGN_DEFAULT", 0x1)
enum("CUgraphConditionalNodeType",
     CU_GRAPH_COND_TYPE_IF=0, CU_GRAPH_COND_TYPE_WHILE=1, CU_GRAPH_COND_TYPE_SWITCH=2)

struct("CUDA_CONDITIONAL_NODE_PARAMS",
       F(CUgraphConditionalHandle, "handle"),
       F(CUgraphConditionalNodeType, "type"),
       F(U32, "size"),
       F(Ptr("CUgraph *"), "phGraph_out"),
       F(CUcontext, "ctx"))

struct("CUgraphNodeParams",
       F(CUgraphNodeType, "type"),
       F(I32, "reserved0", 3),
       F(inner("union",
               F(I64, "reserved1", 29),
               F(CUDA_KERNEL_NODE_PARAMS_v3, "kernel"),
               F(CUDA_MEMCPY_NODE_PARAMS, "memcpy"),
               F(CUDA_MEMSET_NODE_PARAMS_v2, "memset"),
               F(CUDA_HOST_NODE_PARAMS_v2, "host"),
               F(CUDA_CHILD_GRAPH_NODE_PARAMS, "graph"),
               F(CUDA_EVENT_WAIT_NODE_PARAMS, "eventWait"),
               F(CUDA_EVENT_RECORD_NODE_PARAMS, "eventRecord"),
               F(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2, "extSemSignal"),
               F(CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2, "extSemWait"),
               F(CUDA_MEM_ALLOC_NODE_PARAMS_v2, "alloc"),
               F(CUDA_MEM_FREE_NODE_PARAMS, "free"),
               F(CUDA_BATCH_MEM_OP_NODE_PARAMS_v2, "memOp"),
               F(CUDA_CONDITIONAL_NODE_PARAMS, "conditional"),
               cases={0: "kernel", 1: "memcpy", 2: "memset", 3: "host", 4: "graph", 6: "eventWait",
                      7: "eventRecord", 8: "extSemSignal", 9: "extSemWait", 10: "alloc", 11: "free",
                      12: "memOp", 13: "conditional"}), None, tag="type"),
       F(I64, "reserved2"))

enum("CUgraphInstantiateResult",
     CUDA_GRAPH_INSTANTIATE_SUCCESS=0, CUDA_GRAPH_INSTANTIATE_ERROR=1,
     CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE=2,
     CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED=3,
     CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED=4,
     CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED=5)

struct("CUDA_GRAPH_INSTANTIATE_PARAMS",
       F(cuuint64_t, "flags"),
       F(CUstream, "hUploadStream"),
       F(CUgraphNode, "hErrNode_out"),
       F(CUgraphInstantiateResult, "result_out"))

call("cuGraphCreate", Out(CUgraph, "phGraph", new="graph"), In(U32, "flags"), since=10000,
     does="make")
call("cuGraphAddKernelNode", Out(CUgraphNode, "phGraphNode", new="graphNode"),
     In(CUgraph, "hGraph"), In(Array(CUgraphNode, "numDependencies"), "dependencies"),
     In(SIZE, "numDependencies"), In(Ref(CUDA_KERNEL_NODE_PARAMS_v1), "nodeParams"), since=10000,
     does="make")
call("cuGraphAddKernelNode_v2", Out(CUgraphNode, "phGraphNode", new="graphNode"),
     In(CUgraph, "hGraph"), In(Array(CUgraphNode, "numDependencies"), "dependencies"),
     In(SIZE, "numDependencies"), In(Ref(CUDA_KERNEL_NODE_PARAMS_v2), "nodeParams"), since=12000,
     does="make")
call("cuGraphKernelNodeGetParams", In(CUgraphNode, "hNode"),
     Out(CUDA_KERNEL_NODE_PARAMS_v1, "nodeParams"), since=10000, does="ask")
call("cuGraphKernelNodeGetParams_v2", In(CUgraphNode, "hNode"),
     Out(CUDA_KERNEL_NODE_PARAMS_v2, "nodeParams"), since=12000, does="ask")
call("cuGraphKernelNodeSetParams", In(CUgraphNode, "hNode"),
     In(Ref(CUDA_KERNEL_NODE_PARAMS_v1), "nodeParams"), since=10000, does="set")
call("cuGraphKernelNodeSetParams_v2", In(CUgraphNode, "hNode"),
     In(Ref(CUDA_KERNEL_NODE_PARAMS_v2), "nodeParams"), since=12000, does="set")
call("cuGraphAddMemcpyNode", Out(CUgraphNode, "phGraphNode", new="graphNode"),
     In(CUgraph, "hGraph"), In(Array(CUgraphNode, "numDependencies"), "dependencies"),
     In(SIZE, "numDependencies"), In(Ref(CUDA_MEMCPY3D_v2), "copyParams"), In(CUcontext, "ctx"),
     since=10000, does="make")
call("cuGraphMemcpyNodeGetParams", In(CUgraphNode, "hNode"), Out(CUDA_MEMCPY3D_v2, "nodeParams"),
     since=10000, does="ask")
call("cuGraphMemcpyNodeSetParams", In(CUgraphNode, "hNode"),
     In(Ref(CUDA_MEMCPY3D_v2), "nodeParams"), since=10000, does="set")
call("cuGraphAddMemsetNode", Out(CUgraphNode, "phGraphNode", new="graphNode"),
     In(CUgraph, "hGraph"), In(Array(CUgraphNode, "numDependencies"), "dependencies"),
     In(SIZE, "numDependencies"), In(Ref(CUDA_MEMSET_NODE_PARAMS_v1), "memsetParams"),
     In(CUcontext, "ctx"), since=10000, does="make")
call("cuGraphMemsetNodeGetParams", In(CUgraphNode, "hNode"),
     Out(CUDA_MEMSET_NODE_PARAMS_v1, "nodeParams"), since=10000, does="ask")
call("cuGraphMemsetNodeSetParams", In(CUgraphNode, "hNode"),
     In(Ref(CUDA_MEMSET_NODE_PARAMS_v1), "nodeParams"), since=10000, does="set")
call("cuGraphAddHostNode", Out(CUgraphNode, "phGraphNode", new="graphNode"), In(CUgraph, "hGraph"),
     In(Array(CUgraphNode, "numDependencies"), "dependencies"), In(SIZE, "numDependencies"),
     In(Ref(CUDA_HOST_NODE_PARAMS_v1), "nodeParams"), since=10000, does="make")
call("cuGraphHostNodeGetParams", In(CUgraphNode, "hNode"),
     Out(CUDA_HOST_NODE_PARAMS_v1, "nodeParams"), since=10000, does="ask")
call("cuGraphHostNodeSetParams", In(CUgraphNode, "hNode"),
     In(Ref(CUDA_HOST_NODE_PARAMS_v1), "nodeParams"), since=10000, does="set")
call("cuGraphAddChildGraphNode", Out(CUgraphNode, "phGraphNode", new="graphNode"),
     In(CUgraph, "hGraph"), In(Array(CUgraphNode, "numDependencies"), "dependencies"),
     In(SIZE, "numDependencies"), In(CUgraph, "childGraph"), since=10000, does="make")
call("cuGraphChildGraphNodeGetGraph", In(CUgraphNode, "hNode"), Out(CUgraph, "phGraph"),
     since=10000, does="ask")
call("cuGraphAddEmptyNode", Out(CUgraphNode, "phGraphNode", new="graphNode"), In(CUgraph, "hGraph"),
     In(Array(CUgraphNode, "numDependencies"), "dependencies"), In(SIZE, "numDependencies"),
     since=10000, does="make")
call("cuGraphAddEventRecordNode", Out(CUgraphNode, "phGraphNode", new="graphNode"),
     In(CUgraph, "hGraph"), In(Array(CUgraphNode, "numDependencies"), "dependencies"),
     In(SIZE, "numDependencies"), In(CUevent, "event"), since=11010, does="make")
call("cuGraphEventRecordNodeGetEvent", In(CUgraphNode, "hNode"), Out(CUevent, "event_out"),
     since=11010, does="ask")
call("cuGraphEventRecordNodeSetEvent", In(CUgraphNode, "hNode"), In(CUevent, "event"), since=11010,
     does="set")
call("cuGraphAddEventWaitNode", Out(CUgraphNode, "phGraphNode", new="graphNode"),
     In(CUgraph, "hGraph"), In(Array(CUgraphNode, "numDependencies"), "dependencies"),
     In(SIZE, "numDependencies"), In(CUevent, "event"), since=11010, does="make")
call("cuGraphEventWaitNodeGetEvent", In(CUgraphNode, "hNode"), Out(CUevent, "event_out"),
     since=11010, does="ask")
call("cuGraphEventWaitNodeSetEvent", In(CUgraphNode, "hNode"), In(CUevent, "event"), since=11010,
     does="set")
call("cuGraphAddExternalSemaphoresSignalNode", Out(CUgraphNode, "phGraphNode", new="graphNode"),
     In(CUgraph, "hGraph"), In(Array(CUgraphNode, "numDependencies"), "dependencies"),
     In(SIZE, "numDependencies"), In(Ref(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v1), "nodeParams"),
     since=11020, does="make")
call("cuGraphExternalSemaphoresSignalNodeGetParams", In(CUgraphNode, "hNode"),
     Out(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v1, "params_out"), since=11020, does="ask")
call("cuGraphExternalSemaphoresSignalNodeSetParams", In(CUgraphNode, "hNode"),
     In(Ref(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v1), "nodeParams"), since=11020, does="set")
call("cuGraphAddExternalSemaphoresWaitNode", Out(CUgraphNode, "phGraphNode", new="graphNode"),
     In(CUgraph, "hGraph"), In(Array(CUgraphNode, "numDependencies"), "dependencies"),
     In(SIZE, "numDependencies"), In(Ref(CUDA_EXT_SEM_WAIT_NODE_PARAMS_v1), "nodeParams"),
     since=11020, does="make")
call("cuGraphExternalSemaphoresWaitNodeGetParams", In(CUgraphNode, "hNode"),
     Out(CUDA_EXT_SEM_WAIT_NODE_PARAMS_v1, "params_out"), since=11020, does="ask")
call("cuGraphExternalSemaphoresWaitNodeSetParams", In(CUgraphNode, "hNode"),
     In(Ref(CUDA_EXT_SEM_WAIT_NODE_PARAMS_v1), "nodeParams"), since=11020, does="set")
call("cuGraphAddBatchMemOpNode", Out(CUgraphNode, "phGraphNode", new="graphNode"),
     In(CUgraph, "hGraph"), In(Array(CUgraphNode, "numDependencies"), "dependencies"),
     In(SIZE, "numDependencies"), In(Ref(CUDA_BATCH_MEM_OP_NODE_PARAMS_v1), "nodeParams"),
     since=11070, does="make")
call("cuGraphBatchMemOpNodeGetParams", In(CUgraphNode, "hNode"),
     Out(CUDA_BATCH_MEM_OP_NODE_PARAMS_v1, "nodeParams_out"), since=11070, does="ask")
call("cuGraphBatchMemOpNodeSetParams", In(CUgraphNode, "hNode"),
     In(Ref(CUDA_BATCH_MEM_OP_NODE_PARAMS_v1), "nodeParams"), since=11070, does="set")
call("cuGraphExecBatchMemOpNodeSetParams", In(CUgraphExec, "hGraphExec"), In(CUgraphNode, "hNode"),
     In(Ref(CUDA_BATCH_MEM_OP_NODE_PARAMS_v1), "nodeParams"), since=11070, does="set")
call("cuGraphAddMemAllocNode", Out(CUgraphNode, "phGraphNode", new="graphNode"),
     In(CUgraph, "hGraph"), In(Array(CUgraphNode, "numDependencies"), "dependencies"),
     In(SIZE, "numDependencies"), InOut(CUDA_MEM_ALLOC_NODE_PARAMS_v1, "nodeParams"), since=11040,
     does="make",
     memory=Roles("node_add", node="CU_GRAPH_NODE_TYPE_MEM_ALLOC",
                  where="nodeParams.poolProps.location.type",
                  device="nodeParams.poolProps.location.id", bytes="nodeParams.bytesize"))
call("cuGraphMemAllocNodeGetParams", In(CUgraphNode, "hNode"),
     Out(CUDA_MEM_ALLOC_NODE_PARAMS_v1, "params_out"), since=11040, does="ask")
call("cuGraphAddMemFreeNode", Out(CUgraphNode, "phGraphNode", new="graphNode"),
     In(CUgraph, "hGraph"), In(Array(CUgraphNode, "numDependencies"), "dependencies"),
     In(SIZE, "numDependencies"), In(CUdeviceptr, "dptr"), since=11040, does="make")
call("cuGraphMemFreeNodeGetParams", In(CUgraphNode, "hNode"), Out(CUdeviceptr, "dptr_out"),
     since=11040, does="ask")
call("cuDeviceGraphMemTrim", In(CUdevice, "device"), since=11040, blocks=True, does="set",
     memory=Roles("graph_trim", device="device"))
call("cuDeviceGetGraphMemAttribute", In(CUdevice, "device"), In(CUgraphMem_attribute, "attr"),
     In(PTR, "value", by_hand="its size depends on the attribute", fills=True), since=11040,
     does="ask")
call("cuDeviceSetGraphMemAttribute", In(CUdevice, "device"), In(CUgraphMem_attribute, "attr"),
     In(PTR, "value", by_hand="its size depends on the attribute"), since=11040, does="set")
call("cuGraphClone", Out(CUgraph, "phGraphClone", new="graph"), In(CUgraph, "originalGraph"),
     since=10000, does="make")
call("cuGraphNodeFindInClone", Out(CUgraphNode, "phNode"), In(CUgraphNode, "hOriginalNode"),
     In(CUgraph, "hClonedGraph"), since=10000, does="ask")
call("cuGraphNodeGetType", In(CUgraphNode, "hNode"), Out(CUgraphNodeType, "type"), since=10000,
     does="ask")
call("cuGraphGetNodes", In(CUgraph, "hGraph"),
     Out(Array(CUgraphNode, "*numNodes"), "nodes", opt=True), InOut(SIZE, "numNodes"), since=10000,
     does="ask")
call("cuGraphGetRootNodes", In(CUgraph, "hGraph"),
     Out(Array(CUgraphNode, "*numRootNodes"), "rootNodes", opt=True), InOut(SIZE, "numRootNodes"),
     since=10000, does="ask")
call("cuGraphGetEdges", In(CUgraph, "hGraph"),
     Out(Array(CUgraphNode, "*numEdges"), "from", opt=True),
     Out(Array(CUgraphNode, "*numEdges"), "to", opt=True), InOut(SIZE, "numEdges"), since=10000,
     does="ask")
call("cuGraphGetEdges_v2", In(CUgraph, "hGraph"),
     Out(Array(CUgraphNode, "*numEdges"), "from", opt=True),
     Out(Array(CUgraphNode, "*numEdges"), "to", opt=True),
     Out(Array(CUgraphEdgeData, "*numEdges"), "edgeData", opt=True), InOut(SIZE, "numEdges"),
     since=12030, does="ask")
call("cuGraphNodeGetDependencies", In(CUgraphNode, "hNode"),
     Out(Array(CUgraphNode, "*numDependencies"), "dependencies", opt=True),
     InOut(SIZE, "numDependencies"), since=10000, does="ask")
call("cuGraphNodeGetDependencies_v2", In(CUgraphNode, "hNode"),
     Out(Array(CUgraphNode, "*numDependencies"), "dependencies", opt=True),
     Out(Array(CUgraphEdgeData, "*numDependencies"), "edgeData", opt=True),
     InOut(SIZE, "numDependencies"), since=12030, does="ask")
call("cuGraphNodeGetDependentNodes", In(CUgraphNode, "hNode"),
     Out(Array(CUgraphNode, "*numDependentNodes"), "dependentNodes", opt=True),
     InOut(SIZE, "numDependentNodes"), since=10000, does="ask")
call("cuGraphNodeGetDependentNodes_v2", In(CUgraphNode, "hNode"),
     Out(Array(CUgraphNode, "*numDependentNodes"), "dependentNodes", opt=True),
     Out(Array(CUgraphEdgeData, "*numDependentNodes"), "edgeData", opt=True),
     InOut(SIZE, "numDependentNodes"), since=12030, does="ask")
call("cuGraphAddDependencies", In(CUgraph, "hGraph"),
     In(Array(CUgraphNode, "numDependencies"), "from"),
     In(Array(CUgraphNode, "numDependencies"), "to"), In(SIZE, "numDependencies"), since=10000,
     does="set")
call("cuGraphAddDependencies_v2", In(CUgraph, "hGraph"),
     In(Array(CUgraphNode, "numDependencies"), "from"),
     In(Array(CUgraphNode, "numDependencies"), "to"),
     In(Array(CUgraphEdgeData, "numDependencies"), "edgeData"), In(SIZE, "numDependencies"),
     since=12030, does="set")
call("cuGraphRemoveDependencies", In(CUgraph, "hGraph"),
     In(Array(CUgraphNode, "numDependencies"), "from"),
     In(Array(CUgraphNode, "numDependencies"), "to"), In(SIZE, "numDependencies"), since=10000,
     does="set")
call("cuGraphRemoveDependencies_v2", In(CUgraph, "hGraph"),
     In(Array(CUgraphNode, "numDependencies"), "from"),
     In(Array(CUgraphNode, "numDependencies"), "to"),
     In(Array(CUgraphEdgeData, "numDependencies"), "edgeData"), In(SIZE, "numDependencies"),
     since=12030, does="set")
call("cuGraphDestroyNode", In(CUgraphNode, "hNode", free="graphNode"), since=10000, does="end")
call("cuGraphInstantiateWithFlags", Out(CUgraphExec, "phGraphExec", new="graphExec"),
     In(CUgraph, "hGraph"), In(U64, "flags"), since=11040, does="make",
     memory=Roles("exec_make", out="*phGraphExec", key="hGraph"))
call("cuGraphExecGetFlags", In(CUgraphExec, "hGraphExec"), Out(cuuint64_t, "flags"), since=12000,
     does="ask")
call("cuGraphExecKernelNodeSetParams", In(CUgraphExec, "hGraphExec"), In(CUgraphNode, "hNode"),
     In(Ref(CUDA_KERNEL_NODE_PARAMS_v1), "nodeParams"), since=10010, does="set")
call("cuGraphExecKernelNodeSetParams_v2", In(CUgraphExec, "hGraphExec"), In(CUgraphNode, "hNode"),
     In(Ref(CUDA_KERNEL_NODE_PARAMS_v2), "nodeParams"), since=12000, does="set")
call("cuGraphExecMemcpyNodeSetParams", In(CUgraphExec, "hGraphExec"), In(CUgraphNode, "hNode"),
     In(Ref(CUDA_MEMCPY3D_v2), "copyParams"), In(CUcontext, "ctx"), since=10020, does="set")
call("cuGraphExecMemsetNodeSetParams", In(CUgraphExec, "hGraphExec"), In(CUgraphNode, "hNode"),
     In(Ref(CUDA_MEMSET_NODE_PARAMS_v1), "memsetParams"), In(CUcontext, "ctx"), since=10020,
     does="set")
call("cuGraphExecHostNodeSetParams", In(CUgraphExec, "hGraphExec"), In(CUgraphNode, "hNode"),
     In(Ref(CUDA_HOST_NODE_PARAMS_v1), "nodeParams"), since=10020, does="set")
call("cuGraphExecChildGraphNodeSetParams", In(CUgraphExec, "hGraphExec"), In(CUgraphNode, "hNode"),
     In(CUgraph, "childGraph"), since=11010, does="set")
call("cuGraphExecEventRecordNodeSetEvent", In(CUgraphExec, "hGraphExec"), In(CUgraphNode, "hNode"),
     In(CUevent, "event"), since=11010, does="set")
call("cuGraphExecEventWaitNodeSetEvent", In(CUgraphExec, "hGraphExec"), In(CUgraphNode, "hNode"),
     In(CUevent, "event"), since=11010, does="set")
call("cuGraphExecExternalSemaphoresSignalNodeSetParams", In(CUgraphExec, "hGraphExec"),
     In(CUgraphNode, "hNode"), In(Ref(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v1), "nodeParams"),
     since=11020, does="set")
call("cuGraphExecExternalSemaphoresWaitNodeSetParams", In(CUgraphExec, "hGraphExec"),
     In(CUgraphNode, "hNode"), In(Ref(CUDA_EXT_SEM_WAIT_NODE_PARAMS_v1), "nodeParams"), since=11020,
     does="set")
call("cuGraphNodeSetEnabled", In(CUgraphExec, "hGraphExec"), In(CUgraphNode, "hNode"),
     In(U32, "isEnabled"), since=11060, does="set")
call("cuGraphNodeGetEnabled", In(CUgraphExec, "hGraphExec"), In(CUgraphNode, "hNode"),
     Out(U32, "isEnabled"), since=11060, does="ask")
call("cuGraphExecDestroy", In(CUgraphExec, "hGraphExec", free="graphExec"), since=10000, does="end",
     memory=Roles("exec_end", key="hGraphExec"))
call("cuGraphDestroy", In(CUgraph, "hGraph", free="graph"), since=10000, does="end",
     memory=Roles("graph_end"))
call("cuGraphExecUpdate", In(CUgraphExec, "hGraphExec"), In(CUgraph, "hGraph"),
     Out(CUgraphNode, "hErrorNode_out", opt=True,
         on=["CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"]),
     Out(CUgraphExecUpdateResult, "updateResult_out",
         on=["CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"]), since=10020, does="set")
call("cuGraphExecUpdate_v2", In(CUgraphExec, "hGraphExec"), In(CUgraph, "hGraph"),
     Out(CUgraphExecUpdateResultInfo_v1, "resultInfo",
         on=["CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"]), since=12000, does="set")
call("cuGraphKernelNodeCopyAttributes", In(CUgraphNode, "dst"), In(CUgraphNode, "src"), since=11000,
     does="set")
call("cuGraphKernelNodeGetAttribute", In(CUgraphNode, "hNode"), In(CUlaunchAttributeID, "attr"),
     Out(CUlaunchAttributeValue, "value_out", tag="attr"), since=11000, does="ask")
call("cuGraphKernelNodeSetAttribute", In(CUgraphNode, "hNode"), In(CUlaunchAttributeID, "attr"),
     In(Ref(CUlaunchAttributeValue), "value", tag="attr"), since=11000, does="set")
call("cuGraphDebugDotPrint", In(CUgraph, "hGraph"), In(STR, "path"), In(U32, "flags"), since=11030,
     does="set")
call("cuUserObjectCreate", Out(CUuserObject, "object_out", new="userObject"), In(PTR, "ptr"),
     In(CUhostFn, "destroy"), In(U32, "initialRefcount"), In(U32, "flags"), since=11030,
     does="make")
call("cuUserObjectRetain", In(CUuserObject, "object"), In(U32, "count"), since=11030, does="set")
call("cuUserObjectRelease", In(CUuserObject, "object", free="userObject"), In(U32, "count"),
     since=11030, does="end")
call("cuGraphRetainUserObject", In(CUgraph, "graph"), In(CUuserObject, "object"), In(U32, "count"),
     In(U32, "flags"), since=11030, does="set")
call("cuGraphReleaseUserObject", In(CUgraph, "graph"), In(CUuserObject, "object"), In(U32, "count"),
     since=11030, does="set")
add_node = Roles("node_add", node="nodeParams.type",
                 where="nodeParams.alloc.poolProps.location.type",
                 device="nodeParams.alloc.poolProps.location.id",
                 bytes="nodeParams.alloc.bytesize")
call("cuGraphAddNode", Out(CUgraphNode, "phGraphNode", new="graphNode"), In(CUgraph, "hGraph"),
     In(Array(CUgraphNode, "numDependencies"), "dependencies"), In(SIZE, "numDependencies"),
     InOut(CUgraphNodeParams, "nodeParams"), since=12020, does="make", memory=add_node)
call("cuGraphAddNode_v2", Out(CUgraphNode, "phGraphNode", new="graphNode"), In(CUgraph, "hGraph"),
     In(Array(CUgraphNode, "numDependencies"), "dependencies"),
     In(Array(CUgraphEdgeData, "numDependencies"), "dependencyData"), In(SIZE, "numDependencies"),
     InOut(CUgraphNodeParams, "nodeParams"), since=12030, does="make", memory=add_node)
call("cuGraphNodeSetParams", In(CUgraphNode, "hNode"),
     In(Ref(CUgraphNodeParams, mut=True), "nodeParams"), since=12020, does="set")
call("cuGraphExecNodeSetParams", In(CUgraphExec, "hGraphExec"), In(CUgraphNode, "hNode"),
     In(Ref(CUgraphNodeParams, mut=True), "nodeParams"), since=12020, does="set")
call("cuGraphConditionalHandleCreate",
     Out(CUgraphConditionalHandle, "pHandle_out", new="conditional"), In(CUgraph, "hGraph"),
     In(CUcontext, "ctx"), In(U32, "defaultLaunchValue"), In(U32, "flags"), since=12030,
     does="make")
call("cuGraphInstantiateWithParams", Out(CUgraphExec, "phGraphExec", new="graphExec"),
     In(CUgraph, "hGraph"), InOut(CUDA_GRAPH_INSTANTIATE_PARAMS, "instantiateParams", on="failure"),
     since=12000, ptds=True, stream="instantiateParams.hUploadStream", does="make",
     memory=Roles("exec_make", out="*phGraphExec", key="hGraph"))
call("cuGraphUpload", In(CUgraphExec, "hGraph"), In(CUstream, "hStream"), since=11010, ptds=True,
     does="order", memory=Roles("exec_launch", key="hGraph"))
call("cuGraphLaunch", In(CUgraphExec, "hGraph"), In(CUstream, "hStream"), since=10000, ptds=True,
     does="launch", about="hGraph", defer=Roles("object", object="hGraph"),
     memory=Roles("exec_launch", key="hGraph"), travel=True)
call("cuGraphInstantiate", Out(CUgraphExec, "phGraphExec", new="graphExec"), In(CUgraph, "hGraph"),
     Out(CUgraphNode, "phErrorNode", opt=True), Out(TextBuf("bufferSize"), "logBuffer", opt=True),
     In(SIZE, "bufferSize"), since=10000, does="make",
     memory=Roles("exec_make", out="*phGraphExec", key="hGraph"))
call("cuGraphInstantiate_v2", Out(CUgraphExec, "phGraphExec", new="graphExec"),
     In(CUgraph, "hGraph"), Out(CUgraphNode, "phErrorNode", opt=True),
     Out(TextBuf("bufferSize"), "logBuffer", opt=True), In(SIZE, "bufferSize"), since=11000,
     does="make", memory=Roles("exec_make", out="*phGraphExec", key="hGraph"))
