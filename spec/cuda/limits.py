"""Calls that a limit on device memory does not count, although their names suggest it, and why
(docs/internals/quota.md says more). Calls that it counts say memory=.
"""

device_memory(["memory", "array", "mipmap", "physical", "pool", "module", "library", "graphExec"],
              ["Alloc", "Create", "Load", "Import", "Open", "Register", "Clone", "Limit",
               "Instantiate", "Launch", "Upload", "Pool", "Add", "Update", "Prefetch", "Map",
               "Link", "Retain", "SetParams", "Multicast", "Restore", "Materialize"])

uncounted("it asks or sets, and takes nothing",
          "cuCtxGetLimit", "cuMemGetAllocationGranularity",
          "cuMemGetAllocationPropertiesFromHandle", "cuMemPoolSetAttribute",
          "cuMemPoolGetAttribute", "cuMemPoolSetAccess", "cuMemPoolGetAccess",
          "cuMemPoolExportToShareableHandle", "cuMemPoolExportPointer", "cuModuleGetLoadingMode",
          "cuFuncIsLoaded", "cuGraphMemAllocNodeGetParams", "cuGraphNodeFindInClone",
          "cuGetProcAddress", "cuGetProcAddress_v2", "cuTensorMapEncodeTiled",
          "cuTensorMapEncodeIm2col", "cuTensorMapEncodeIm2colWide", "cuTensorMapReplaceAddress",
          "cuMulticastGetGranularity", "cuLogsRegisterCallback",
          "cuDeviceRegisterAsyncNotification", "cuGraphicsResourceSetMapFlags",
          "cuGraphicsResourceSetMapFlags_v2", "cuGLSetBufferObjectMapFlags",
          "cuCheckpointProcessGetRestoreThreadId", "cuMemGetAddressRange",
          "cuMemGetAddressRange_v2", "cuMemGetHandleForAddressRange", "cuTexRefGetAddress",
          "cuTexRefGetAddress_v2", "cuTexRefSetAddress", "cuTexRefSetAddress_v2",
          "cuTexRefSetAddress2D", "cuTexRefSetAddress2D_v2", "cuTexRefSetAddress2D_v3",
          "cuTexRefGetAddressMode", "cuTexRefSetAddressMode", "cuStreamUpdateCaptureDependencies",
          "cuStreamUpdateCaptureDependencies_v2", "cuGraphAddDependencies",
          "cuGraphAddDependencies_v2", "cuStreamAddCallback")
uncounted("addresses without memory",
          "cuMemAddressReserve", "cuMemAddressFree")
uncounted("objects of a few bytes, of a context's own memory",
          "cuTexRefCreate", "cuTexObjectCreate", "cuSurfObjectCreate", "cuStreamCreate",
          "cuStreamCreateWithPriority", "cuGreenCtxStreamCreate", "cuEventCreate",
          "cuUserObjectCreate", "cuUserObjectRetain", "cuGraphRetainUserObject", "cuGraphCreate",
          "cuGraphConditionalHandleCreate")
uncounted("a context is not charged for itself",
          "cuCtxCreate", "cuCtxCreate_v2", "cuCtxCreate_v3", "cuCtxCreate_v4", "cuGreenCtxCreate",
          "cuGLCtxCreate", "cuGLCtxCreate_v2", "cuVDPAUCtxCreate", "cuVDPAUCtxCreate_v2")
uncounted("managed memory is charged whole when it is allocated; other pages are the system's",
          "cuMemPrefetchAsync", "cuMemPrefetchAsync_v2", "cuMemPrefetchBatchAsync",
          "cuMemDiscardAndPrefetchBatchAsync")
uncounted("memory of the host",
          "cuMemAllocHost", "cuMemAllocHost_v2", "cuMemHostAlloc", "cuMemHostRegister",
          "cuMemHostRegister_v2")
uncounted("memory of another process, which is charged",
          "cuIpcOpenMemHandle", "cuIpcOpenMemHandle_v2", "cuIpcCloseMemHandle",
          "cuIpcOpenEventHandle", "cuMemImportFromShareableHandle", "cuMemPoolImportPointer")
uncounted("memory of another API",
          "cuImportExternalMemory", "cuImportExternalSemaphore",
          "cuExternalMemoryGetMappedBuffer", "cuExternalMemoryGetMappedMipmappedArray",
          "cuGraphicsSubResourceGetMappedArray", "cuGraphicsResourceGetMappedMipmappedArray",
          "cuGraphicsResourceGetMappedPointer", "cuGraphicsResourceGetMappedPointer_v2",
          "cuGraphicsResourceGetMappedEglFrame", "cuGraphicsMapResources",
          "cuGraphicsGLRegisterBuffer", "cuGraphicsGLRegisterImage", "cuGLRegisterBufferObject",
          "cuGLMapBufferObject", "cuGLMapBufferObject_v2", "cuGLMapBufferObjectAsync",
          "cuGLMapBufferObjectAsync_v2", "cuGraphicsEGLRegisterImage", "cuEventCreateFromEGLSync",
          "cuGraphicsVDPAURegisterVideoSurface", "cuGraphicsVDPAURegisterOutputSurface")
uncounted("what is bound to it is charged already",
          "cuMulticastCreate", "cuMulticastAddDevice", "cuMulticastBindMem",
          "cuMulticastBindAddr", "cuMulticastUnbind")
uncounted("a node without memory of its own, or one whose memory counts when the graph is made",
          "cuGraphAddKernelNode", "cuGraphAddKernelNode_v2", "cuGraphAddMemcpyNode",
          "cuGraphAddMemsetNode", "cuGraphAddHostNode", "cuGraphAddEmptyNode",
          "cuGraphAddEventRecordNode", "cuGraphAddEventWaitNode",
          "cuGraphAddExternalSemaphoresSignalNode", "cuGraphAddExternalSemaphoresWaitNode",
          "cuGraphAddBatchMemOpNode", "cuGraphAddChildGraphNode", "cuGraphAddMemFreeNode",
          "cuGraphClone", "cuGraphKernelNodeSetParams", "cuGraphKernelNodeSetParams_v2",
          "cuGraphMemcpyNodeSetParams", "cuGraphMemsetNodeSetParams", "cuGraphHostNodeSetParams",
          "cuGraphExternalSemaphoresSignalNodeSetParams",
          "cuGraphExternalSemaphoresWaitNodeSetParams", "cuGraphBatchMemOpNodeSetParams",
          "cuGraphNodeSetParams")
uncounted("nodes that allocate cannot be changed in an executable graph",
          "cuGraphExecBatchMemOpNodeSetParams", "cuGraphExecKernelNodeSetParams",
          "cuGraphExecKernelNodeSetParams_v2", "cuGraphExecMemcpyNodeSetParams",
          "cuGraphExecMemsetNodeSetParams", "cuGraphExecHostNodeSetParams",
          "cuGraphExecChildGraphNodeSetParams",
          "cuGraphExecExternalSemaphoresSignalNodeSetParams",
          "cuGraphExecExternalSemaphoresWaitNodeSetParams", "cuGraphExecUpdate",
          "cuGraphExecUpdate_v2", "cuGraphExecNodeSetParams")
uncounted("linked on the host; what comes of it is charged when it is loaded",
          "cuLinkCreate", "cuLinkCreate_v2", "cuLinkAddData", "cuLinkAddData_v2", "cuLinkAddFile",
          "cuLinkAddFile_v2", "cuLinkComplete", "cuLinkDestroy")
uncounted("code at its first use, and threads' local memory: not known, not charged",
          "cuLaunch", "cuLaunchGrid", "cuLaunchGridAsync", "cuLaunchKernel", "cuLaunchKernelEx",
          "cuLaunchCooperativeKernel", "cuLaunchCooperativeKernelMultiDevice", "cuLaunchHostFunc",
          "cuFuncLoad")
uncounted("it is charged to the process that comes back with it",
          "cuCheckpointProcessRestore")
