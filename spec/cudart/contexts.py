"""Calls that take no context. Every other call makes sure that the thread has one before it does
anything, as NVIDIA's runtimes do (measured in threads that had none): programs that also use the
driver count on it."""

# They ask or tell about a device by its number, or about the process.
without_context("cudaChooseDevice", "cudaDeviceCanAccessPeer", "cudaDeviceGetAttribute",
                "cudaDeviceGetByPCIBusId", "cudaDeviceGetDevResource", "cudaDeviceGetExecutionCtx",
                "cudaDeviceGetHostAtomicCapabilities", "cudaDeviceGetP2P*",
                "cudaDeviceGetTexture1DLinearMaxWidth", "cudaDevice*AsyncNotification",
                "cudaDriverGetVersion", "cudaGetDevice*", "cudaGetDriverEntryPoint*",
                "cudaGetExportTable", "cudaGLGetDevices", "cudaRuntimeGetVersion",
                "cudaVDPAUGetDevice")
without_context("cudaDeviceGetPCIBusId", editions="11..")
# They choose the device, or see to its context themselves.
without_context("cudaDeviceReset", "cudaGLSetGLDevice", "cudaInitDevice", "cudaSetDevice",
                "cudaSetDeviceFlags", "cudaSetValidDevices", "cudaThreadExit",
                "cudaVDPAUSetVDPAUDevice")
# What they are about belongs to a device, to a stream, to a context of its own or to none.
without_context("cudaArrayGetInfo", "cudaArrayGetMemoryRequirements",
                "cudaArrayGetSparseProperties", "cudaDevSmResource*", "cudaDeviceGetDefaultMemPool",
                "cudaDeviceGetMemPool", "cudaDeviceSetMemPool", "cudaDevice*GraphMem*",
                "cudaEventElapsedTime_v2", "cudaEventQuery", "cudaEventSynchronize",
                "cudaExecutionCtx*", "cudaFreeAsync", "cudaGetKernel", "cudaGraphNode*Enabled",
                "cudaGraph*UserObject", "cudaGreenCtxCreate", "cudaKernelSetAttributeForDevice",
                "cudaLibraryEnumerateKernels", "cudaLibraryGetKernel*",
                "cudaLibraryGetUnifiedFunction", "cudaLibraryLoad*", "cudaLibraryUnload",
                "cudaMallocAsync", "cudaMallocFromPoolAsync", "cudaMemGetDefaultMemPool",
                "cudaMemGetMemPool", "cudaMemPool*", "cudaMemRangeGet*", "cudaMemSetMemPool",
                "cudaMipmappedArrayGetMemoryRequirements",
                "cudaMipmappedArrayGetSparseProperties", "cudaPointerGetAttributes",
                "cudaProfilerStop", "cudaStreamGetDevice", "cudaUserObject*")
without_context("cudaEventElapsedTime", "cudaFuncGetName", "cudaLibraryGetManaged",
                editions="13..")
# They only tell the runtime something.
without_context("cudaConfigureCall", "cudaSetDoubleFor*", "cudaSetupArgument")
