"""The topics of calls, for people: the colours of a trace, a column of the table of calls."""

area("copy", "cuMemcpy*", "cuMemset*", "cuMemPrefetch*", "cuMemDiscard*", "cuMemBatchDecompress*")
area("memory", "cuMem*", "cuPointer*", "cuMulticast*", "cuIpc*Mem*", "cuDevice*MemPool")
area("launch", "cuLaunch*", "cuParam*", "cuOccupancy*")
area("stream", "cuStream*", "cuThreadExchange*")
area("event", "cuEvent*", "cuIpc*Event*")
area("graphics", "cuGraphics*", "cuGL*", "cuEGL*", "cuVDPAU*")
area("external", "cu*External*", "cuDeviceGetNvSci*")
area("graph", "cuGraph*", "cuUserObject*", "cuDevice*Graph*")
area("module", "cuModule*", "cuLibrary*", "cuLink*", "cuKernel*", "cuFunc*")
area("context", "cuCtx*", "cuDevicePrimaryCtx*", "cuGreenCtx*", "cuDevSmResource*",
     "cuDevResource*")
area("array", "cuArray*", "cuMipmapped*", "cuTex*", "cuSurf*", "cuTensorMap*")
area("device", "cuDevice*", "cuInit", "cuDriver*", "cuGet*", "cuFlushGPUDirect*")
area("tools", "cuProfiler*", "cuCoredump*", "cuLogs*", "cuCheckpoint*")
