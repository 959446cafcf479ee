"""Graphs, captures, user objects."""

call("cudaDeviceGetGraphMemAttribute", In(I32, "device"), In(cudaGraphMemAttributeType, "attr"),
     In(PTR, "value"), editions="11..", driver="cuDeviceGetGraphMemAttribute")
call("cudaDeviceGraphMemTrim", In(I32, "device"), editions="11..", driver="cuDeviceGraphMemTrim")
call("cudaDeviceSetGraphMemAttribute", In(I32, "device"), In(cudaGraphMemAttributeType, "attr"),
     In(PTR, "value"), editions="11..", driver="cuDeviceSetGraphMemAttribute")
call("cudaGraphAddChildGraphNode", Out(cudaGraphNode_t, "pGraphNode"), In(cudaGraph_t, "graph"),
     In(Ref(cudaGraphNode_t), "pDependencies"), In(SIZE, "numDependencies"),
     In(cudaGraph_t, "childGraph"), driver="cuGraphAddChildGraphNode")
call("cudaGraphAddDependencies", In(cudaGraph_t, "graph"), In(Ref(cudaGraphNode_t), "from"),
     In(Ref(cudaGraphNode_t), "to"), In(SIZE, "numDependencies"), editions="..12",
     driver="cuGraphAddDependencies")
call("cudaGraphAddDependencies", In(cudaGraph_t, "graph"), In(Ref(cudaGraphNode_t), "from"),
     In(Ref(cudaGraphNode_t), "to"), In(Ref(cudaGraphEdgeData), "edgeData"),
     In(SIZE, "numDependencies"), editions="13..", driver="cuGraphAddDependencies_v2")
call("cudaGraphAddDependencies_v2", In(cudaGraph_t, "graph"), In(Ref(cudaGraphNode_t), "from"),
     In(Ref(cudaGraphNode_t), "to"), In(Ref(cudaGraphEdgeData), "edgeData"),
     In(SIZE, "numDependencies"), editions="12", driver="cuGraphAddDependencies_v2")
call("cudaGraphAddEmptyNode", Out(cudaGraphNode_t, "pGraphNode"), In(cudaGraph_t, "graph"),
     In(Ref(cudaGraphNode_t), "pDependencies"), In(SIZE, "numDependencies"),
     driver="cuGraphAddEmptyNode")
call("cudaGraphAddEventRecordNode", Out(cudaGraphNode_t, "pGraphNode"), In(cudaGraph_t, "graph"),
     In(Ref(cudaGraphNode_t), "pDependencies"), In(SIZE, "numDependencies"),
     In(cudaEvent_t, "event"), editions="11..", driver="cuGraphAddEventRecordNode")
call("cudaGraphAddEventWaitNode", Out(cudaGraphNode_t, "pGraphNode"), In(cudaGraph_t, "graph"),
     In(Ref(cudaGraphNode_t), "pDependencies"), In(SIZE, "numDependencies"),
     In(cudaEvent_t, "event"), editions="11..", driver="cuGraphAddEventWaitNode")
call("cudaGraphAddHostNode", Out(cudaGraphNode_t, "pGraphNode"), In(cudaGraph_t, "graph"),
     In(Ref(cudaGraphNode_t), "pDependencies"), In(SIZE, "numDependencies"),
     In(Ref(cudaHostNodeParams), "pNodeParams"), driver="cuGraphAddHostNode")
call("cudaGraphAddKernelNode", Out(cudaGraphNode_t, "pGraphNode"), In(cudaGraph_t, "graph"),
     In(Ref(cudaGraphNode_t), "pDependencies"), In(SIZE, "numDependencies"),
     In(Ref(cudaKernelNodeParams), "pNodeParams"), by_hand=True)
call("cudaGraphAddMemAllocNode", Out(cudaGraphNode_t, "pGraphNode"), In(cudaGraph_t, "graph"),
     In(Ref(cudaGraphNode_t), "pDependencies"), In(SIZE, "numDependencies"),
     Out(cudaMemAllocNodeParams, "nodeParams"), editions="11..", driver="cuGraphAddMemAllocNode")
call("cudaGraphAddMemFreeNode", Out(cudaGraphNode_t, "pGraphNode"), In(cudaGraph_t, "graph"),
     In(Ref(cudaGraphNode_t), "pDependencies"), In(SIZE, "numDependencies"), In(PTR, "dptr"),
     editions="11..", driver="cuGraphAddMemFreeNode")
call("cudaGraphAddMemcpyNode", Out(cudaGraphNode_t, "pGraphNode"), In(cudaGraph_t, "graph"),
     In(Ref(cudaGraphNode_t), "pDependencies"), In(SIZE, "numDependencies"),
     In(Ref(cudaMemcpy3DParms), "pCopyParams"), by_hand=True)
call("cudaGraphAddMemcpyNode1D", Out(cudaGraphNode_t, "pGraphNode"), In(cudaGraph_t, "graph"),
     In(Ref(cudaGraphNode_t), "pDependencies"), In(SIZE, "numDependencies"), In(PTR, "dst"),
     In(CPTR, "src"), In(SIZE, "count"), In(cudaMemcpyKind, "kind"), editions="11..", by_hand=True)
call("cudaGraphAddMemcpyNodeFromSymbol", Out(cudaGraphNode_t, "pGraphNode"),
     In(cudaGraph_t, "graph"), In(Ref(cudaGraphNode_t), "pDependencies"),
     In(SIZE, "numDependencies"), In(PTR, "dst"), In(CPTR, "symbol"), In(SIZE, "count"),
     In(SIZE, "offset"), In(cudaMemcpyKind, "kind"), editions="11..", by_hand=True)
call("cudaGraphAddMemcpyNodeToSymbol", Out(cudaGraphNode_t, "pGraphNode"), In(cudaGraph_t, "graph"),
     In(Ref(cudaGraphNode_t), "pDependencies"), In(SIZE, "numDependencies"), In(CPTR, "symbol"),
     In(CPTR, "src"), In(SIZE, "count"), In(SIZE, "offset"), In(cudaMemcpyKind, "kind"),
     editions="11..", by_hand=True)
call("cudaGraphAddMemsetNode", Out(cudaGraphNode_t, "pGraphNode"), In(cudaGraph_t, "graph"),
     In(Ref(cudaGraphNode_t), "pDependencies"), In(SIZE, "numDependencies"),
     In(Ref(cudaMemsetParams), "pMemsetParams"), by_hand=True)
call("cudaGraphAddNode", Out(cudaGraphNode_t, "pGraphNode"), In(cudaGraph_t, "graph"),
     In(Ref(cudaGraphNode_t), "pDependencies"), In(SIZE, "numDependencies"),
     Out(cudaGraphNodeParams, "nodeParams"), editions="12", by_hand=True,
     as_="cudaGraphAddNode_12")
call("cudaGraphAddNode", Out(cudaGraphNode_t, "pGraphNode"), In(cudaGraph_t, "graph"),
     In(Ref(cudaGraphNode_t), "pDependencies"), In(Ref(cudaGraphEdgeData), "dependencyData"),
     In(SIZE, "numDependencies"), Out(cudaGraphNodeParams, "nodeParams"), editions="13..",
     by_hand=True)
call("cudaGraphAddNode_v2", Out(cudaGraphNode_t, "pGraphNode"), In(cudaGraph_t, "graph"),
     In(Ref(cudaGraphNode_t), "pDependencies"), In(Ref(cudaGraphEdgeData), "dependencyData"),
     In(SIZE, "numDependencies"), Out(cudaGraphNodeParams, "nodeParams"), editions="12",
     by_hand=True, as_="cudaGraphAddNode")
call("cudaGraphChildGraphNodeGetGraph", In(cudaGraphNode_t, "node"), Out(cudaGraph_t, "pGraph"),
     driver="cuGraphChildGraphNodeGetGraph")
call("cudaGraphClone", Out(cudaGraph_t, "pGraphClone"), In(cudaGraph_t, "originalGraph"),
     driver="cuGraphClone")
call("cudaGraphConditionalHandleCreate", Out(cudaGraphConditionalHandle, "pHandle_out"),
     In(cudaGraph_t, "graph"), In(U32, "defaultLaunchValue"), In(U32, "flags"), editions="12..",
     by_hand=True)
call("cudaGraphConditionalHandleCreate_v2", Out(cudaGraphConditionalHandle, "pHandle_out"),
     In(cudaGraph_t, "graph"), In(cudaExecutionContext_t, "ctx"), In(U32, "defaultLaunchValue"),
     In(U32, "flags"), editions="13..", since=13040, by_hand=True)
call("cudaGraphCreate", Out(cudaGraph_t, "pGraph"), In(U32, "flags"), driver="cuGraphCreate")
call("cudaGraphDebugDotPrint", In(cudaGraph_t, "graph"), In(STR, "path"), In(U32, "flags"),
     editions="11..",
     driver="cuGraphDebugDotPrint(graph, path, flags | 2)")  # with the types of the runtime
call("cudaGraphDestroy", In(cudaGraph_t, "graph"), driver="cuGraphDestroy")
call("cudaGraphDestroyNode", In(cudaGraphNode_t, "node"), driver="cuGraphDestroyNode")
call("cudaGraphEventRecordNodeGetEvent", In(cudaGraphNode_t, "node"), Out(cudaEvent_t, "event_out"),
     editions="11..", driver="cuGraphEventRecordNodeGetEvent")
call("cudaGraphEventRecordNodeSetEvent", In(cudaGraphNode_t, "node"), In(cudaEvent_t, "event"),
     editions="11..", driver="cuGraphEventRecordNodeSetEvent")
call("cudaGraphEventWaitNodeGetEvent", In(cudaGraphNode_t, "node"), Out(cudaEvent_t, "event_out"),
     editions="11..", driver="cuGraphEventWaitNodeGetEvent")
call("cudaGraphEventWaitNodeSetEvent", In(cudaGraphNode_t, "node"), In(cudaEvent_t, "event"),
     editions="11..", driver="cuGraphEventWaitNodeSetEvent")
call("cudaGraphExecChildGraphNodeSetParams", In(cudaGraphExec_t, "hGraphExec"),
     In(cudaGraphNode_t, "node"), In(cudaGraph_t, "childGraph"), editions="11..",
     driver="cuGraphExecChildGraphNodeSetParams")
call("cudaGraphExecDestroy", In(cudaGraphExec_t, "graphExec"), driver="cuGraphExecDestroy")
call("cudaGraphExecEventRecordNodeSetEvent", In(cudaGraphExec_t, "hGraphExec"),
     In(cudaGraphNode_t, "hNode"), In(cudaEvent_t, "event"), editions="11..",
     driver="cuGraphExecEventRecordNodeSetEvent")
call("cudaGraphExecEventWaitNodeSetEvent", In(cudaGraphExec_t, "hGraphExec"),
     In(cudaGraphNode_t, "hNode"), In(cudaEvent_t, "event"), editions="11..",
     driver="cuGraphExecEventWaitNodeSetEvent")
call("cudaGraphExecGetFlags", In(cudaGraphExec_t, "graphExec"), Out(U64, "flags"), editions="12..",
     driver="cuGraphExecGetFlags")
call("cudaGraphExecGetId", In(cudaGraphExec_t, "hGraphExec"), Out(U32, "graphID"), editions="13..",
     since=13040, missing="it needs a driver call that came after CUDA 13.0")
call("cudaGraphExecHostNodeSetParams", In(cudaGraphExec_t, "hGraphExec"),
     In(cudaGraphNode_t, "node"), In(Ref(cudaHostNodeParams), "pNodeParams"),
     driver="cuGraphExecHostNodeSetParams")
call("cudaGraphExecKernelNodeSetParams", In(cudaGraphExec_t, "hGraphExec"),
     In(cudaGraphNode_t, "node"), In(Ref(cudaKernelNodeParams), "pNodeParams"),
     by_hand=True)
call("cudaGraphExecMemcpyNodeSetParams", In(cudaGraphExec_t, "hGraphExec"),
     In(cudaGraphNode_t, "node"), In(Ref(cudaMemcpy3DParms), "pNodeParams"),
     by_hand=True)
call("cudaGraphExecMemcpyNodeSetParams1D", In(cudaGraphExec_t, "hGraphExec"),
     In(cudaGraphNode_t, "node"), In(PTR, "dst"), In(CPTR, "src"), In(SIZE, "count"),
     In(cudaMemcpyKind, "kind"), editions="11..", by_hand=True)
call("cudaGraphExecMemcpyNodeSetParamsFromSymbol", In(cudaGraphExec_t, "hGraphExec"),
     In(cudaGraphNode_t, "node"), In(PTR, "dst"), In(CPTR, "symbol"), In(SIZE, "count"),
     In(SIZE, "offset"), In(cudaMemcpyKind, "kind"), editions="11..", by_hand=True)
call("cudaGraphExecMemcpyNodeSetParamsToSymbol", In(cudaGraphExec_t, "hGraphExec"),
     In(cudaGraphNode_t, "node"), In(CPTR, "symbol"), In(CPTR, "src"), In(SIZE, "count"),
     In(SIZE, "offset"), In(cudaMemcpyKind, "kind"), editions="11..", by_hand=True)
call("cudaGraphExecMemsetNodeSetParams", In(cudaGraphExec_t, "hGraphExec"),
     In(cudaGraphNode_t, "node"), In(Ref(cudaMemsetParams), "pNodeParams"),
     by_hand=True)
call("cudaGraphExecNodeSetParams", In(cudaGraphExec_t, "graphExec"), In(cudaGraphNode_t, "node"),
     Out(cudaGraphNodeParams, "nodeParams"), editions="12..", by_hand=True)
call("cudaGraphExecUpdate", In(cudaGraphExec_t, "hGraphExec"), In(cudaGraph_t, "hGraph"),
     Out(cudaGraphNode_t, "hErrorNode_out"), Out(cudaGraphExecUpdateResult, "updateResult_out"),
     editions="..11", by_hand=True, as_="cudaGraphExecUpdate_11")
call("cudaGraphExecUpdate", In(cudaGraphExec_t, "hGraphExec"), In(cudaGraph_t, "hGraph"),
     Out(cudaGraphExecUpdateResultInfo, "resultInfo"), editions="12..",
     by_hand=True)
call("cudaGraphGetEdges", In(cudaGraph_t, "graph"), Out(cudaGraphNode_t, "from"),
     Out(cudaGraphNode_t, "to"), Out(SIZE, "numEdges"), editions="..12", driver="cuGraphGetEdges")
call("cudaGraphGetEdges", In(cudaGraph_t, "graph"), Out(cudaGraphNode_t, "from"),
     Out(cudaGraphNode_t, "to"), Out(cudaGraphEdgeData, "edgeData"), Out(SIZE, "numEdges"),
     editions="13..", driver="cuGraphGetEdges_v2")
call("cudaGraphGetEdges_v2", In(cudaGraph_t, "graph"), Out(cudaGraphNode_t, "from"),
     Out(cudaGraphNode_t, "to"), Out(cudaGraphEdgeData, "edgeData"), Out(SIZE, "numEdges"),
     editions="12", driver="cuGraphGetEdges_v2")
call("cudaGraphGetId", In(cudaGraph_t, "hGraph"), Out(U32, "graphID"), editions="13..",
     since=13040, missing="it needs a driver call that came after CUDA 13.0")
call("cudaGraphGetNodes", In(cudaGraph_t, "graph"), Out(cudaGraphNode_t, "nodes"),
     Out(SIZE, "numNodes"), driver="cuGraphGetNodes")
call("cudaGraphGetRootNodes", In(cudaGraph_t, "graph"), Out(cudaGraphNode_t, "pRootNodes"),
     Out(SIZE, "pNumRootNodes"), driver="cuGraphGetRootNodes")
call("cudaGraphHostNodeGetParams", In(cudaGraphNode_t, "node"),
     Out(cudaHostNodeParams, "pNodeParams"), driver="cuGraphHostNodeGetParams")
call("cudaGraphHostNodeSetParams", In(cudaGraphNode_t, "node"),
     In(Ref(cudaHostNodeParams), "pNodeParams"), driver="cuGraphHostNodeSetParams")
call("cudaGraphInstantiate", Out(cudaGraphExec_t, "pGraphExec"), In(cudaGraph_t, "graph"),
     Out(cudaGraphNode_t, "pErrorNode"), In(Ptr("char *"), "pLogBuffer"), In(SIZE, "bufferSize"),
     editions="..11", driver="cuGraphInstantiate_v2")
call("cudaGraphInstantiate", Out(cudaGraphExec_t, "pGraphExec"), In(cudaGraph_t, "graph"),
     In(U64, "flags"), editions="12..", driver="cuGraphInstantiateWithFlags")
call("cudaGraphInstantiateWithFlags", Out(cudaGraphExec_t, "pGraphExec"), In(cudaGraph_t, "graph"),
     In(U64, "flags"), editions="11..", driver="cuGraphInstantiateWithFlags")
call("cudaGraphInstantiateWithParams", Out(cudaGraphExec_t, "pGraphExec"),
     In(cudaGraph_t, "graph"), Out(cudaGraphInstantiateParams, "instantiateParams"), ptds="_ptsz",
     editions="12..", driver="cuGraphInstantiateWithParams")
call("cudaGraphKernelNodeCopyAttributes", In(cudaGraphNode_t, "hSrc"), In(cudaGraphNode_t, "hDst"),
     editions="11..", driver="cuGraphKernelNodeCopyAttributes")
call("cudaGraphKernelNodeGetAttribute", In(cudaGraphNode_t, "hNode"),
     In(cudaLaunchAttributeID, "attr"), Out(cudaLaunchAttributeValue, "value_out"), editions="11..",
     by_hand=True)
call("cudaGraphKernelNodeGetParams", In(cudaGraphNode_t, "node"),
     Out(cudaKernelNodeParams, "pNodeParams"), by_hand=True)
call("cudaGraphKernelNodeSetAttribute", In(cudaGraphNode_t, "hNode"),
     In(cudaLaunchAttributeID, "attr"), In(Ref(cudaLaunchAttributeValue), "value"), editions="11..",
     by_hand=True)
call("cudaGraphKernelNodeSetParams", In(cudaGraphNode_t, "node"),
     In(Ref(cudaKernelNodeParams), "pNodeParams"), by_hand=True)
call("cudaGraphLaunch", In(cudaGraphExec_t, "graphExec"), In(cudaStream_t, "stream"), ptds=True,
     driver="cuGraphLaunch")
call("cudaGraphMemAllocNodeGetParams", In(cudaGraphNode_t, "node"),
     Out(cudaMemAllocNodeParams, "params_out"), editions="11..",
     driver="cuGraphMemAllocNodeGetParams")
call("cudaGraphMemFreeNodeGetParams", In(cudaGraphNode_t, "node"), In(PTR, "dptr_out"),
     editions="11..", driver="cuGraphMemFreeNodeGetParams")
call("cudaGraphMemcpyNodeGetParams", In(cudaGraphNode_t, "node"),
     Out(cudaMemcpy3DParms, "pNodeParams"), by_hand=True)
call("cudaGraphMemcpyNodeSetParams", In(cudaGraphNode_t, "node"),
     In(Ref(cudaMemcpy3DParms), "pNodeParams"), by_hand=True)
call("cudaGraphMemcpyNodeSetParams1D", In(cudaGraphNode_t, "node"), In(PTR, "dst"), In(CPTR, "src"),
     In(SIZE, "count"), In(cudaMemcpyKind, "kind"), editions="11..", by_hand=True)
call("cudaGraphMemcpyNodeSetParamsFromSymbol", In(cudaGraphNode_t, "node"), In(PTR, "dst"),
     In(CPTR, "symbol"), In(SIZE, "count"), In(SIZE, "offset"), In(cudaMemcpyKind, "kind"),
     editions="11..", by_hand=True)
call("cudaGraphMemcpyNodeSetParamsToSymbol", In(cudaGraphNode_t, "node"), In(CPTR, "symbol"),
     In(CPTR, "src"), In(SIZE, "count"), In(SIZE, "offset"), In(cudaMemcpyKind, "kind"),
     editions="11..", by_hand=True)
call("cudaGraphMemsetNodeGetParams", In(cudaGraphNode_t, "node"),
     Out(cudaMemsetParams, "pNodeParams"), driver="cuGraphMemsetNodeGetParams")
call("cudaGraphMemsetNodeSetParams", In(cudaGraphNode_t, "node"),
     In(Ref(cudaMemsetParams), "pNodeParams"), driver="cuGraphMemsetNodeSetParams")
call("cudaGraphNodeFindInClone", Out(cudaGraphNode_t, "pNode"),
     In(cudaGraphNode_t, "originalNode"), In(cudaGraph_t, "clonedGraph"),
     driver="cuGraphNodeFindInClone")
call("cudaGraphNodeGetContainingGraph", In(cudaGraphNode_t, "hNode"), Out(cudaGraph_t, "phGraph"),
     editions="13..", since=13040, missing="it needs a driver call that came after CUDA 13.0")
call("cudaGraphNodeGetDependencies", In(cudaGraphNode_t, "node"),
     Out(cudaGraphNode_t, "pDependencies"), Out(SIZE, "pNumDependencies"), editions="..12",
     driver="cuGraphNodeGetDependencies")
call("cudaGraphNodeGetDependencies", In(cudaGraphNode_t, "node"),
     Out(cudaGraphNode_t, "pDependencies"), Out(cudaGraphEdgeData, "edgeData"),
     Out(SIZE, "pNumDependencies"), editions="13..", driver="cuGraphNodeGetDependencies_v2")
call("cudaGraphNodeGetDependencies_v2", In(cudaGraphNode_t, "node"),
     Out(cudaGraphNode_t, "pDependencies"), Out(cudaGraphEdgeData, "edgeData"),
     Out(SIZE, "pNumDependencies"), editions="12", driver="cuGraphNodeGetDependencies_v2")
call("cudaGraphNodeGetDependentNodes", In(cudaGraphNode_t, "node"),
     Out(cudaGraphNode_t, "pDependentNodes"), Out(SIZE, "pNumDependentNodes"), editions="..12",
     driver="cuGraphNodeGetDependentNodes")
call("cudaGraphNodeGetDependentNodes", In(cudaGraphNode_t, "node"),
     Out(cudaGraphNode_t, "pDependentNodes"), Out(cudaGraphEdgeData, "edgeData"),
     Out(SIZE, "pNumDependentNodes"), editions="13..", driver="cuGraphNodeGetDependentNodes_v2")
call("cudaGraphNodeGetDependentNodes_v2", In(cudaGraphNode_t, "node"),
     Out(cudaGraphNode_t, "pDependentNodes"), Out(cudaGraphEdgeData, "edgeData"),
     Out(SIZE, "pNumDependentNodes"), editions="12", driver="cuGraphNodeGetDependentNodes_v2")
call("cudaGraphNodeGetEnabled", In(cudaGraphExec_t, "hGraphExec"), In(cudaGraphNode_t, "hNode"),
     Out(U32, "isEnabled"), editions="11..", driver="cuGraphNodeGetEnabled")
call("cudaGraphNodeGetLocalId", In(cudaGraphNode_t, "hNode"), Out(U32, "nodeId"), editions="13..",
     since=13040, missing="it needs a driver call that came after CUDA 13.0")
call("cudaGraphNodeGetParams", In(cudaGraphNode_t, "node"), Out(cudaGraphNodeParams, "nodeParams"),
     editions="13..", since=13040, by_hand=True)
call("cudaGraphNodeGetToolsId", In(cudaGraphNode_t, "hNode"), Out(U64, "toolsNodeId"),
     editions="13..", since=13040, missing="it needs a driver call that came after CUDA 13.0")
call("cudaGraphNodeGetType", In(cudaGraphNode_t, "node"), Out(cudaGraphNodeType, "pType"),
     driver="cuGraphNodeGetType")
call("cudaGraphNodeSetEnabled", In(cudaGraphExec_t, "hGraphExec"), In(cudaGraphNode_t, "hNode"),
     In(U32, "isEnabled"), editions="11..", driver="cuGraphNodeSetEnabled")
call("cudaGraphNodeSetParams", In(cudaGraphNode_t, "node"), Out(cudaGraphNodeParams, "nodeParams"),
     editions="12..", by_hand=True)
call("cudaGraphReleaseUserObject", In(cudaGraph_t, "graph"), In(cudaUserObject_t, "object"),
     In(U32, "count"), editions="11..", driver="cuGraphReleaseUserObject")
call("cudaGraphRemoveDependencies", In(cudaGraph_t, "graph"), In(Ref(cudaGraphNode_t), "from"),
     In(Ref(cudaGraphNode_t), "to"), In(SIZE, "numDependencies"), editions="..12",
     driver="cuGraphRemoveDependencies")
call("cudaGraphRemoveDependencies", In(cudaGraph_t, "graph"), In(Ref(cudaGraphNode_t), "from"),
     In(Ref(cudaGraphNode_t), "to"), In(Ref(cudaGraphEdgeData), "edgeData"),
     In(SIZE, "numDependencies"), editions="13..", driver="cuGraphRemoveDependencies_v2")
call("cudaGraphRemoveDependencies_v2", In(cudaGraph_t, "graph"), In(Ref(cudaGraphNode_t), "from"),
     In(Ref(cudaGraphNode_t), "to"), In(Ref(cudaGraphEdgeData), "edgeData"),
     In(SIZE, "numDependencies"), editions="12", driver="cuGraphRemoveDependencies_v2")
call("cudaGraphRetainUserObject", In(cudaGraph_t, "graph"), In(cudaUserObject_t, "object"),
     In(U32, "count"), In(U32, "flags"), editions="11..", driver="cuGraphRetainUserObject")
call("cudaGraphUpload", In(cudaGraphExec_t, "graphExec"), In(cudaStream_t, "stream"), ptds=True,
     editions="11..", driver="cuGraphUpload")
call("cudaStreamBeginCapture", In(cudaStream_t, "stream"), In(cudaStreamCaptureMode, "mode"),
     ptds=True, driver="cuStreamBeginCapture_v2")
call("cudaStreamBeginCaptureToGraph", In(cudaStream_t, "stream"), In(cudaGraph_t, "graph"),
     In(Ref(cudaGraphNode_t), "dependencies"), In(Ref(cudaGraphEdgeData), "dependencyData"),
     In(SIZE, "numDependencies"), In(cudaStreamCaptureMode, "mode"), ptds=True, editions="12..",
     driver="cuStreamBeginCaptureToGraph")
call("cudaStreamBeginRecaptureToGraph", In(cudaStream_t, "stream"),
     In(cudaStreamCaptureMode, "mode"), In(cudaGraph_t, "graph"),
     In(PTR, "callbackData", c="void *"), ptds=True, editions="13..", since=13040,
     missing="it needs a driver call that came after CUDA 13.0")
call("cudaStreamEndCapture", In(cudaStream_t, "stream"), Out(cudaGraph_t, "pGraph"), ptds=True,
     driver="cuStreamEndCapture")
call("cudaStreamGetCaptureInfo", In(cudaStream_t, "stream"),
     Out(cudaStreamCaptureStatus, "captureStatus_out"), Out(U64, "id_out"), ptds=True,
     editions="..12", driver="cuStreamGetCaptureInfo")
call("cudaStreamGetCaptureInfo", In(cudaStream_t, "stream"),
     Out(cudaStreamCaptureStatus, "captureStatus_out"), Out(U64, "id_out"),
     Out(cudaGraph_t, "graph_out"), In(Ptr("const cudaGraphNode_t **"), "dependencies_out"),
     In(Ptr("const cudaGraphEdgeData **"), "edgeData_out"), Out(SIZE, "numDependencies_out"),
     ptds=True, editions="13..", driver="cuStreamGetCaptureInfo_v3")
call("cudaStreamGetCaptureInfo_v2", In(cudaStream_t, "stream"),
     Out(cudaStreamCaptureStatus, "captureStatus_out"), Out(U64, "id_out"),
     Out(cudaGraph_t, "graph_out"), In(Ptr("const cudaGraphNode_t **"), "dependencies_out"),
     Out(SIZE, "numDependencies_out"), ptds=True, editions="11..12",
     driver="cuStreamGetCaptureInfo_v2")
call("cudaStreamGetCaptureInfo_v3", In(cudaStream_t, "stream"),
     Out(cudaStreamCaptureStatus, "captureStatus_out"), Out(U64, "id_out"),
     Out(cudaGraph_t, "graph_out"), In(Ptr("const cudaGraphNode_t **"), "dependencies_out"),
     In(Ptr("const cudaGraphEdgeData **"), "edgeData_out"), Out(SIZE, "numDependencies_out"),
     ptds=True, editions="12", driver="cuStreamGetCaptureInfo_v3")
call("cudaStreamUpdateCaptureDependencies", In(cudaStream_t, "stream"),
     Out(cudaGraphNode_t, "dependencies"), In(SIZE, "numDependencies"), In(U32, "flags"), ptds=True,
     editions="11..12", driver="cuStreamUpdateCaptureDependencies")
call("cudaStreamUpdateCaptureDependencies", In(cudaStream_t, "stream"),
     Out(cudaGraphNode_t, "dependencies"), In(Ref(cudaGraphEdgeData), "dependencyData"),
     In(SIZE, "numDependencies"), In(U32, "flags"), ptds=True, editions="13..",
     driver="cuStreamUpdateCaptureDependencies_v2")
call("cudaStreamUpdateCaptureDependencies_v2", In(cudaStream_t, "stream"),
     Out(cudaGraphNode_t, "dependencies"), In(Ref(cudaGraphEdgeData), "dependencyData"),
     In(SIZE, "numDependencies"), In(U32, "flags"), ptds=True, editions="12",
     driver="cuStreamUpdateCaptureDependencies_v2")
call("cudaThreadExchangeStreamCaptureMode", Out(cudaStreamCaptureMode, "mode"),
     driver="cuThreadExchangeStreamCaptureMode")
call("cudaUserObjectCreate", Out(cudaUserObject_t, "object_out"), In(PTR, "ptr"),
     In(cudaHostFn_t, "destroy"), In(U32, "initialRefcount"), In(U32, "flags"), editions="11..",
     driver="cuUserObjectCreate")
call("cudaUserObjectRelease", In(cudaUserObject_t, "object"), In(U32, "count"), editions="11..",
     driver="cuUserObjectRelease")
call("cudaUserObjectRetain", In(cudaUserObject_t, "object"), In(U32, "count"), editions="11..",
     driver="cuUserObjectRetain")
