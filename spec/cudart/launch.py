"""Functions, launches, occupancy, libraries, entry points."""

call("cudaFuncGetAttributes", Out(cudaFuncAttributes_8, "attr"), In(CPTR, "func"), editions="8",
     by_hand=True, as_="cudaFuncGetAttributes_8")
call("cudaFuncGetAttributes", Out(cudaFuncAttributes_11, "attr"), In(CPTR, "func"),
     editions="10..11", by_hand=True, as_="cudaFuncGetAttributes_11")
call("cudaFuncGetAttributes", Out(cudaFuncAttributes, "attr"), In(CPTR, "func"), editions="12..",
     by_hand=True)
call("cudaFuncGetName", In(Ptr("const char **"), "name"), In(CPTR, "func"), editions="12..",
     by_hand=True)
call("cudaFuncGetParamCount", In(CPTR, "func"), Out(SIZE, "paramCount"), editions="13..",
     since=13040, by_hand=True)
call("cudaFuncGetParamInfo", In(CPTR, "func"), In(SIZE, "paramIndex"), Out(SIZE, "paramOffset"),
     Out(SIZE, "paramSize"), editions="12..", by_hand=True)
call("cudaFuncSetAttribute", In(CPTR, "func"), In(cudaFuncAttribute, "attr"), In(I32, "value"),
     by_hand=True)
call("cudaFuncSetCacheConfig", In(CPTR, "func"), In(cudaFuncCache, "cacheConfig"),
     by_hand=True)
call("cudaFuncSetSharedMemConfig", In(CPTR, "func"), In(cudaSharedMemConfig, "config"),
     by_hand=True)
call("cudaGetDriverEntryPoint", In(STR, "symbol"), Out(PTR, "funcPtr"), In(U64, "flags"),
     ptds="_ptsz", editions="11", by_hand=True, as_="cudaGetDriverEntryPoint_11")
call("cudaGetDriverEntryPoint", In(STR, "symbol"), Out(PTR, "funcPtr"), In(U64, "flags"),
     Out(cudaDriverEntryPointQueryResult, "driverStatus"), ptds="_ptsz", editions="12..",
     by_hand=True)
call("cudaGetDriverEntryPointByVersion", In(STR, "symbol"), Out(PTR, "funcPtr"),
     In(U32, "cudaVersion"), In(U64, "flags"),
     Out(cudaDriverEntryPointQueryResult, "driverStatus"), ptds="_ptsz", editions="12..",
     by_hand=True)
call("cudaGetExportTable", In(Ptr("const void **"), "ppExportTable"),
     In(Ref(cudaUUID_t), "pExportTableId"), driver="cuGetExportTable")
call("cudaGetFuncBySymbol", Out(cudaFunction_t, "functionPtr"), In(CPTR, "symbolPtr"),
     editions="11..", by_hand=True)
call("cudaGetKernel", Out(cudaKernel_t, "kernel"), In(CPTR, "entry"), editions="12..",
     by_hand=True)
call("cudaKernelSetAttributeForDevice", In(cudaKernel_t, "kernel"), In(cudaFuncAttribute, "attr"),
     In(I32, "value"), In(I32, "device"), editions="12..",
     driver="cuKernelSetAttribute(attr, value, kernel, device)")
call("cudaLaunchCooperativeKernel", In(CPTR, "func"), In(dim3, "gridDim"), In(dim3, "blockDim"),
     Out(PTR, "args"), In(SIZE, "sharedMem"), In(cudaStream_t, "stream"), ptds=True,
     by_hand=True)
call("cudaLaunchKernel", In(CPTR, "func"), In(dim3, "gridDim"), In(dim3, "blockDim"),
     Out(PTR, "args"), In(SIZE, "sharedMem"), In(cudaStream_t, "stream"), ptds=True, by_hand=True)
call("cudaLaunchKernelExC", In(Ref(cudaLaunchConfig_t), "config"), In(CPTR, "func"),
     Out(PTR, "args"), ptds="_ptsz", editions="11..", by_hand=True)
call("cudaLibraryEnumerateKernels", Out(cudaKernel_t, "kernels"), In(U32, "numKernels"),
     In(cudaLibrary_t, "lib"), editions="12..", driver="cuLibraryEnumerateKernels")
call("cudaLibraryGetGlobal", Out(PTR, "dptr"), Out(SIZE, "bytes"), In(cudaLibrary_t, "library"),
     In(STR, "name"), editions="12..", driver="cuLibraryGetGlobal")
call("cudaLibraryGetKernel", Out(cudaKernel_t, "pKernel"), In(cudaLibrary_t, "library"),
     In(STR, "name"), editions="12..", driver="cuLibraryGetKernel")
call("cudaLibraryGetKernelCount", Out(U32, "count"), In(cudaLibrary_t, "lib"), editions="12..",
     driver="cuLibraryGetKernelCount")
call("cudaLibraryGetManaged", Out(PTR, "dptr"), Out(SIZE, "bytes"), In(cudaLibrary_t, "library"),
     In(STR, "name"), editions="12..", driver="cuLibraryGetManaged")
call("cudaLibraryGetUnifiedFunction", Out(PTR, "fptr"), In(cudaLibrary_t, "library"),
     In(STR, "symbol"), editions="12..", driver="cuLibraryGetUnifiedFunction")
call("cudaLibraryLoadData", Out(cudaLibrary_t, "library"), In(CPTR, "code"),
     Out(cudaJitOption, "jitOptions"), Out(PTR, "jitOptionsValues"), In(U32, "numJitOptions"),
     Out(cudaLibraryOption, "libraryOptions"), Out(PTR, "libraryOptionValues"),
     In(U32, "numLibraryOptions"), editions="12..", driver="cuLibraryLoadData")
call("cudaLibraryLoadFromFile", Out(cudaLibrary_t, "library"), In(STR, "fileName"),
     Out(cudaJitOption, "jitOptions"), Out(PTR, "jitOptionsValues"), In(U32, "numJitOptions"),
     Out(cudaLibraryOption, "libraryOptions"), Out(PTR, "libraryOptionValues"),
     In(U32, "numLibraryOptions"), editions="12..", driver="cuLibraryLoadFromFile")
call("cudaLibraryUnload", In(cudaLibrary_t, "library"), editions="12..", driver="cuLibraryUnload")
call("cudaOccupancyAvailableDynamicSMemPerBlock", Out(SIZE, "dynamicSmemSize"), In(CPTR, "func"),
     In(I32, "numBlocks"), In(I32, "blockSize"), editions="11..", by_hand=True)
call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", Out(I32, "numBlocks"), In(CPTR, "func"),
     In(I32, "blockSize"), In(SIZE, "dynamicSMemSize"), by_hand=True)
call("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", Out(I32, "numBlocks"),
     In(CPTR, "func"), In(I32, "blockSize"), In(SIZE, "dynamicSMemSize"), In(U32, "flags"),
     by_hand=True)
call("cudaOccupancyMaxActiveClusters", Out(I32, "numClusters"), In(CPTR, "func"),
     In(Ref(cudaLaunchConfig_t), "launchConfig"), editions="11..", by_hand=True)
call("cudaOccupancyMaxPotentialClusterSize", Out(I32, "clusterSize"), In(CPTR, "func"),
     In(Ref(cudaLaunchConfig_t), "launchConfig"), editions="11..", by_hand=True)
call("cudaSubgridCreate", editions="13..", since=13040, missing="not documented", header="none")
call("cudaSubgridWorkerGridCreate", editions="13..", since=13040, missing="not documented",
     header="none")
call("cudaSubgridWorksetCreate", editions="13..", since=13040, missing="not documented",
     header="none")

# What compilers emit calls of.
call("__cudaGetKernel", Out(cudaKernel_t, "kernel"), In(CPTR, "entry"), editions="12..",
     by_hand=True, header="crt/host_runtime.h")
call("__cudaLaunchKernel", In(cudaKernel_t, "kernel"), In(dim3, "gridDim"), In(dim3, "blockDim"),
     Out(PTR, "args"), In(SIZE, "sharedMem"), In(cudaStream_t, "stream"), ptds=True,
     editions="12..", by_hand=True, header="crt/host_runtime.h")
call("__cudaPopCallConfiguration", Out(dim3, "gridDim"), Out(dim3, "blockDim"),
     Out(SIZE, "sharedMem"), In(PTR, "stream"), by_hand=True, header="crt/host_runtime.h")
export("__cudaPushCallConfiguration", "__cudaRegisterFatBinary", "__cudaRegisterFatBinaryEnd",
       "__cudaRegisterFunction", "__cudaRegisterHostVar", "__cudaRegisterManagedVar",
       "__cudaRegisterVar", "__cudaUnregisterFatBinary", "__cudaInitModule", "cudaGetErrorName",
       "cudaGetErrorString", "cudaCreateChannelDesc")
export("__cudaRegisterUnifiedTable", editions="12..")
export("__cudaGetProcAddress", editions="13..")
