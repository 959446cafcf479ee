"""Graphics, other processes, external memory and semaphores."""

call("cudaDestroyExternalMemory", In(cudaExternalMemory_t, "extMem"),
     driver="cuDestroyExternalMemory")
call("cudaDestroyExternalSemaphore", In(cudaExternalSemaphore_t, "extSem"),
     driver="cuDestroyExternalSemaphore")
call("cudaDeviceGetNvSciSyncAttributes", In(PTR, "nvSciSyncAttrList"), In(I32, "device"),
     In(I32, "flags"), driver="cuDeviceGetNvSciSyncAttributes")
call("cudaExternalMemoryGetMappedBuffer", Out(PTR, "devPtr"), In(cudaExternalMemory_t, "extMem"),
     In(Ref(cudaExternalMemoryBufferDesc_12), "bufferDesc"), editions="..12",
     by_hand=True, as_="cudaExternalMemoryGetMappedBuffer_12")
call("cudaExternalMemoryGetMappedBuffer", Out(PTR, "devPtr"), In(cudaExternalMemory_t, "extMem"),
     In(Ref(cudaExternalMemoryBufferDesc), "bufferDesc"), editions="13..",
     by_hand=True)
call("cudaExternalMemoryGetMappedMipmappedArray", Out(cudaMipmappedArray_t, "mipmap"),
     In(cudaExternalMemory_t, "extMem"),
     In(Ref(cudaExternalMemoryMipmappedArrayDesc_12), "mipmapDesc"), editions="..12",
     by_hand=True, as_="cudaExternalMemoryGetMappedMipmappedArray_12")
call("cudaExternalMemoryGetMappedMipmappedArray", Out(cudaMipmappedArray_t, "mipmap"),
     In(cudaExternalMemory_t, "extMem"),
     In(Ref(cudaExternalMemoryMipmappedArrayDesc), "mipmapDesc"), editions="13..",
     by_hand=True)
call("cudaGraphAddExternalSemaphoresSignalNode", Out(cudaGraphNode_t, "pGraphNode"),
     In(cudaGraph_t, "graph"), In(Ref(cudaGraphNode_t), "pDependencies"),
     In(SIZE, "numDependencies"), In(Ref(cudaExternalSemaphoreSignalNodeParams), "nodeParams"),
     editions="11..", driver="cuGraphAddExternalSemaphoresSignalNode")
call("cudaGraphAddExternalSemaphoresWaitNode", Out(cudaGraphNode_t, "pGraphNode"),
     In(cudaGraph_t, "graph"), In(Ref(cudaGraphNode_t), "pDependencies"),
     In(SIZE, "numDependencies"), In(Ref(cudaExternalSemaphoreWaitNodeParams), "nodeParams"),
     editions="11..", driver="cuGraphAddExternalSemaphoresWaitNode")
call("cudaGraphExecExternalSemaphoresSignalNodeSetParams", In(cudaGraphExec_t, "hGraphExec"),
     In(cudaGraphNode_t, "hNode"), In(Ref(cudaExternalSemaphoreSignalNodeParams), "nodeParams"),
     editions="11..", driver="cuGraphExecExternalSemaphoresSignalNodeSetParams")
call("cudaGraphExecExternalSemaphoresWaitNodeSetParams", In(cudaGraphExec_t, "hGraphExec"),
     In(cudaGraphNode_t, "hNode"), In(Ref(cudaExternalSemaphoreWaitNodeParams), "nodeParams"),
     editions="11..", driver="cuGraphExecExternalSemaphoresWaitNodeSetParams")
call("cudaGraphExternalSemaphoresSignalNodeGetParams", In(cudaGraphNode_t, "hNode"),
     Out(cudaExternalSemaphoreSignalNodeParams, "params_out"), editions="11..",
     driver="cuGraphExternalSemaphoresSignalNodeGetParams")
call("cudaGraphExternalSemaphoresSignalNodeSetParams", In(cudaGraphNode_t, "hNode"),
     In(Ref(cudaExternalSemaphoreSignalNodeParams), "nodeParams"), editions="11..",
     driver="cuGraphExternalSemaphoresSignalNodeSetParams")
call("cudaGraphExternalSemaphoresWaitNodeGetParams", In(cudaGraphNode_t, "hNode"),
     Out(cudaExternalSemaphoreWaitNodeParams, "params_out"), editions="11..",
     driver="cuGraphExternalSemaphoresWaitNodeGetParams")
call("cudaGraphExternalSemaphoresWaitNodeSetParams", In(cudaGraphNode_t, "hNode"),
     In(Ref(cudaExternalSemaphoreWaitNodeParams), "nodeParams"), editions="11..",
     driver="cuGraphExternalSemaphoresWaitNodeSetParams")
call("cudaGraphicsMapResources", In(I32, "count"), Out(cudaGraphicsResource_t, "resources"),
     In(cudaStream_t, "stream"), driver="cuGraphicsMapResources")
call("cudaGraphicsResourceGetMappedMipmappedArray", Out(cudaMipmappedArray_t, "mipmappedArray"),
     In(cudaGraphicsResource_t, "resource"), driver="cuGraphicsResourceGetMappedMipmappedArray")
call("cudaGraphicsResourceGetMappedPointer", Out(PTR, "devPtr"), Out(SIZE, "size"),
     In(cudaGraphicsResource_t, "resource"), driver="cuGraphicsResourceGetMappedPointer_v2")
call("cudaGraphicsResourceSetMapFlags", In(cudaGraphicsResource_t, "resource"), In(U32, "flags"),
     driver="cuGraphicsResourceSetMapFlags_v2")
call("cudaGraphicsSubResourceGetMappedArray", Out(cudaArray_t, "array"),
     In(cudaGraphicsResource_t, "resource"), In(U32, "arrayIndex"), In(U32, "mipLevel"),
     driver="cuGraphicsSubResourceGetMappedArray")
call("cudaGraphicsUnmapResources", In(I32, "count"), Out(cudaGraphicsResource_t, "resources"),
     In(cudaStream_t, "stream"), driver="cuGraphicsUnmapResources")
call("cudaGraphicsUnregisterResource", In(cudaGraphicsResource_t, "resource"),
     driver="cuGraphicsUnregisterResource")
call("cudaImportExternalMemory", Out(cudaExternalMemory_t, "extMem_out"),
     In(Ref(cudaExternalMemoryHandleDesc_12), "memHandleDesc"), editions="..12",
     by_hand=True, as_="cudaImportExternalMemory_12")
call("cudaImportExternalMemory", Out(cudaExternalMemory_t, "extMem_out"),
     In(Ref(cudaExternalMemoryHandleDesc), "memHandleDesc"), editions="13..",
     by_hand=True)
call("cudaImportExternalSemaphore", Out(cudaExternalSemaphore_t, "extSem_out"),
     In(Ref(cudaExternalSemaphoreHandleDesc_12), "semHandleDesc"), editions="..12",
     by_hand=True, as_="cudaImportExternalSemaphore_12")
call("cudaImportExternalSemaphore", Out(cudaExternalSemaphore_t, "extSem_out"),
     In(Ref(cudaExternalSemaphoreHandleDesc), "semHandleDesc"), editions="13..",
     by_hand=True)
call("cudaIpcCloseMemHandle", In(PTR, "devPtr"), driver="cuIpcCloseMemHandle")
call("cudaIpcGetEventHandle", Out(cudaIpcEventHandle_t, "handle"), In(cudaEvent_t, "event"),
     driver="cuIpcGetEventHandle")
call("cudaIpcGetMemHandle", Out(cudaIpcMemHandle_t, "handle"), In(PTR, "devPtr"),
     driver="cuIpcGetMemHandle")
call("cudaIpcOpenEventHandle", Out(cudaEvent_t, "event"), In(cudaIpcEventHandle_t, "handle"),
     driver="cuIpcOpenEventHandle")
call("cudaIpcOpenMemHandle", Out(PTR, "devPtr"), In(cudaIpcMemHandle_t, "handle"),
     In(U32, "flags"), driver="cuIpcOpenMemHandle_v2")
call("cudaSignalExternalSemaphoresAsync", In(Ref(cudaExternalSemaphore_t), "extSemArray"),
     In(Ref(cudaExternalSemaphoreSignalParams_v1), "paramsArray"), In(U32, "numExtSems"),
     In(cudaStream_t, "stream"), ptds=True, editions="..12", by_hand=True,
     as_="cudaSignalExternalSemaphoresAsync_12")
call("cudaSignalExternalSemaphoresAsync", In(Ref(cudaExternalSemaphore_t), "extSemArray"),
     In(Ref(cudaExternalSemaphoreSignalParams), "paramsArray"), In(U32, "numExtSems"),
     In(cudaStream_t, "stream"), ptds=True, editions="13..",
     driver="cuSignalExternalSemaphoresAsync")
call("cudaSignalExternalSemaphoresAsync_v2", In(Ref(cudaExternalSemaphore_t), "extSemArray"),
     In(Ref(cudaExternalSemaphoreSignalParams), "paramsArray"), In(U32, "numExtSems"),
     In(cudaStream_t, "stream"), ptds=True, editions="11..12",
     driver="cuSignalExternalSemaphoresAsync")
call("cudaWaitExternalSemaphoresAsync", In(Ref(cudaExternalSemaphore_t), "extSemArray"),
     In(Ref(cudaExternalSemaphoreWaitParams_v1), "paramsArray"), In(U32, "numExtSems"),
     In(cudaStream_t, "stream"), ptds=True, editions="..12", by_hand=True,
     as_="cudaWaitExternalSemaphoresAsync_12")
call("cudaWaitExternalSemaphoresAsync", In(Ref(cudaExternalSemaphore_t), "extSemArray"),
     In(Ref(cudaExternalSemaphoreWaitParams), "paramsArray"), In(U32, "numExtSems"),
     In(cudaStream_t, "stream"), ptds=True, editions="13..",
     driver="cuWaitExternalSemaphoresAsync")
call("cudaWaitExternalSemaphoresAsync_v2", In(Ref(cudaExternalSemaphore_t), "extSemArray"),
     In(Ref(cudaExternalSemaphoreWaitParams), "paramsArray"), In(U32, "numExtSems"),
     In(cudaStream_t, "stream"), ptds=True, editions="11..12",
     driver="cuWaitExternalSemaphoresAsync")

call("cudaGLGetDevices", Out(U32, "pCudaDeviceCount"), Out(I32, "pCudaDevices"),
     In(U32, "cudaDeviceCount"), In(I32, "deviceList"), driver="cuGLGetDevices_v2",
     header="cuda_gl_interop.h")
call("cudaGLSetGLDevice", In(I32, "device"), by_hand=True, as_="cudaSetDevice",
     header="cuda_gl_interop.h")
call("cudaGraphicsGLRegisterBuffer", Out(cudaGraphicsResource_t, "resource"), In(U32, "buffer"),
     In(U32, "flags"), driver="cuGraphicsGLRegisterBuffer", header="cuda_gl_interop.h")
call("cudaGraphicsGLRegisterImage", Out(cudaGraphicsResource_t, "resource"), In(U32, "image"),
     In(U32, "target"), In(U32, "flags"), driver="cuGraphicsGLRegisterImage",
     header="cuda_gl_interop.h")

call("cudaGLMapBufferObject", Out(PTR, "devPtr"), In(U32, "bufObj"),
     driver="cuGLMapBufferObject_v2(devPtr, 0, bufObj)", header="cuda_gl_interop.h")
call("cudaGLMapBufferObjectAsync", Out(PTR, "devPtr"), In(U32, "bufObj"),
     In(cudaStream_t, "stream"), driver="cuGLMapBufferObjectAsync_v2(devPtr, 0, bufObj, stream)",
     header="cuda_gl_interop.h")
call("cudaGLRegisterBufferObject", In(U32, "bufObj"), driver="cuGLRegisterBufferObject",
     header="cuda_gl_interop.h")
call("cudaGLSetBufferObjectMapFlags", In(U32, "bufObj"), In(U32, "flags"),
     driver="cuGLSetBufferObjectMapFlags", header="cuda_gl_interop.h")
call("cudaGLUnmapBufferObject", In(U32, "bufObj"), driver="cuGLUnmapBufferObject",
     header="cuda_gl_interop.h")
call("cudaGLUnmapBufferObjectAsync", In(U32, "bufObj"), In(cudaStream_t, "stream"),
     driver="cuGLUnmapBufferObjectAsync", header="cuda_gl_interop.h")
call("cudaGLUnregisterBufferObject", In(U32, "bufObj"), driver="cuGLUnregisterBufferObject",
     header="cuda_gl_interop.h")

# A connection is the driver's; what points to a stream may be NULL.
call("cudaEGLStreamConsumerAcquireFrame", In(PTR, "conn"),
     Out(cudaGraphicsResource_t, "pCudaResource"), In(PTR, "pStream"), In(U32, "timeout"),
     driver="cuEGLStreamConsumerAcquireFrame", header="cuda_egl_interop.h")
call("cudaEGLStreamConsumerConnect", In(PTR, "conn"), In(PTR, "eglStream"),
     driver="cuEGLStreamConsumerConnect", header="cuda_egl_interop.h")
call("cudaEGLStreamConsumerConnectWithFlags", In(PTR, "conn"), In(PTR, "eglStream"),
     In(U32, "flags"), driver="cuEGLStreamConsumerConnectWithFlags",
     header="cuda_egl_interop.h")
call("cudaEGLStreamConsumerDisconnect", In(PTR, "conn"), driver="cuEGLStreamConsumerDisconnect",
     header="cuda_egl_interop.h")
call("cudaEGLStreamConsumerReleaseFrame", In(PTR, "conn"),
     In(cudaGraphicsResource_t, "pCudaResource"), In(PTR, "pStream"),
     driver="cuEGLStreamConsumerReleaseFrame", header="cuda_egl_interop.h")
call("cudaEGLStreamProducerConnect", In(PTR, "conn"), In(PTR, "eglStream"), In(I32, "width"),
     In(I32, "height"), driver="cuEGLStreamProducerConnect", header="cuda_egl_interop.h")
call("cudaEGLStreamProducerDisconnect", In(PTR, "conn"), driver="cuEGLStreamProducerDisconnect",
     header="cuda_egl_interop.h")
call("cudaEventCreateFromEGLSync", Out(cudaEvent_t, "phEvent"), In(PTR, "eglSync"),
     In(U32, "flags"), driver="cuEventCreateFromEGLSync", header="cuda_egl_interop.h")
call("cudaGraphicsEGLRegisterImage", Out(cudaGraphicsResource_t, "pCudaResource"),
     In(PTR, "image"), In(U32, "flags"), driver="cuGraphicsEGLRegisterImage",
     header="cuda_egl_interop.h")
call("cudaGraphicsVDPAURegisterOutputSurface", Out(cudaGraphicsResource_t, "resource"),
     In(U32, "vdpSurface"), In(U32, "flags"), driver="cuGraphicsVDPAURegisterOutputSurface",
     header="cuda_vdpau_interop.h")
call("cudaGraphicsVDPAURegisterVideoSurface", Out(cudaGraphicsResource_t, "resource"),
     In(U32, "vdpSurface"), In(U32, "flags"), driver="cuGraphicsVDPAURegisterVideoSurface",
     header="cuda_vdpau_interop.h")
call("cudaVDPAUGetDevice", Out(I32, "device"), In(U32, "vdpDevice"), In(PTR, "vdpGetProcAddress"),
     driver="cuVDPAUGetDevice", header="cuda_vdpau_interop.h")

# Nobody reads the arguments of what is not supported.
call("cudaEGLStreamProducerPresentFrame",
     missing="EGL frames are described otherwise than for the driver", header="cuda_egl_interop.h")
call("cudaEGLStreamProducerReturnFrame",
     missing="EGL frames are described otherwise than for the driver", header="cuda_egl_interop.h")
call("cudaGraphicsResourceGetMappedEglFrame",
     missing="EGL frames are described otherwise than for the driver", header="cuda_egl_interop.h")
call("cudaVDPAUSetVDPAUDevice", missing="no driver call makes a primary context with VDPAU",
     header="cuda_vdpau_interop.h")
