"""Calls that later editions lack."""

call("cudaBindSurfaceToArray", In(Ref(surfaceReference), "surfref"),
     In(cudaArray_const_t, "array"), In(Ref(cudaChannelFormatDesc), "desc"), editions="..11",
     by_hand=True)
call("cudaBindTexture", Out(SIZE, "offset"), In(Ref(textureReference), "texref"),
     In(CPTR, "devPtr"), In(Ref(cudaChannelFormatDesc), "desc"), In(SIZE, "size"), editions="..11",
     by_hand=True)
call("cudaBindTexture2D", Out(SIZE, "offset"), In(Ref(textureReference), "texref"),
     In(CPTR, "devPtr"), In(Ref(cudaChannelFormatDesc), "desc"), In(SIZE, "width"),
     In(SIZE, "height"), In(SIZE, "pitch"), editions="..11", by_hand=True)
call("cudaBindTextureToArray", In(Ref(textureReference), "texref"), In(cudaArray_const_t, "array"),
     In(Ref(cudaChannelFormatDesc), "desc"), editions="..11", by_hand=True)
call("cudaBindTextureToMipmappedArray", In(Ref(textureReference), "texref"),
     In(cudaMipmappedArray_const_t, "mipmappedArray"), In(Ref(cudaChannelFormatDesc), "desc"),
     editions="..11", by_hand=True)
call("cudaConfigureCall", In(dim3, "gridDim"), In(dim3, "blockDim"), In(SIZE, "sharedMem"),
     In(cudaStream_t, "stream"), editions="..11", header="none", by_hand=True)
call("cudaGetSurfaceReference", In(Ptr("const surfaceReference **"), "surfref"),
     In(CPTR, "symbol"), editions="..11", by_hand=True, plain=True)
call("cudaGetTextureAlignmentOffset", Out(SIZE, "offset"), In(Ref(textureReference), "texref"),
     editions="..11", by_hand=True)
call("cudaGetTextureReference", In(Ptr("const textureReference **"), "texref"), In(CPTR, "symbol"),
     editions="..11", by_hand=True, plain=True)
call("cudaLaunch", In(CPTR, "func"), ptds="_ptsz", editions="..11", header="none", by_hand=True)
call("cudaLaunchCooperativeKernelMultiDevice", Out(cudaLaunchParams, "launchParamsList"),
     In(U32, "numDevices"), In(U32, "flags"), editions="..12", by_hand=True)
call("cudaMemcpyArrayToArray", In(cudaArray_t, "dst"), In(SIZE, "wOffsetDst"),
     In(SIZE, "hOffsetDst"), In(cudaArray_const_t, "src"), In(SIZE, "wOffsetSrc"),
     In(SIZE, "hOffsetSrc"), In(SIZE, "count"), In(cudaMemcpyKind, "kind"), ptds=True,
     by_hand=True)
call("cudaMemcpyFromArray", In(PTR, "dst"), In(cudaArray_const_t, "src"), In(SIZE, "wOffset"),
     In(SIZE, "hOffset"), In(SIZE, "count"), In(cudaMemcpyKind, "kind"), ptds=True,
     by_hand=True)
call("cudaMemcpyFromArrayAsync", In(PTR, "dst"), In(cudaArray_const_t, "src"), In(SIZE, "wOffset"),
     In(SIZE, "hOffset"), In(SIZE, "count"), In(cudaMemcpyKind, "kind"),
     In(cudaStream_t, "stream"), ptds=True, by_hand=True)
call("cudaMemcpyToArray", In(cudaArray_t, "dst"), In(SIZE, "wOffset"), In(SIZE, "hOffset"),
     In(CPTR, "src"), In(SIZE, "count"), In(cudaMemcpyKind, "kind"), ptds=True,
     by_hand=True)
call("cudaMemcpyToArrayAsync", In(cudaArray_t, "dst"), In(SIZE, "wOffset"), In(SIZE, "hOffset"),
     In(CPTR, "src"), In(SIZE, "count"), In(cudaMemcpyKind, "kind"), In(cudaStream_t, "stream"),
     ptds=True, by_hand=True)
call("cudaSetDoubleForDevice", Out(F64, "d"), editions="..12", by_hand=True)
call("cudaSetDoubleForHost", Out(F64, "d"), editions="..12", by_hand=True)
call("cudaSetupArgument", In(CPTR, "arg"), In(SIZE, "size"), In(SIZE, "offset"), editions="..11",
     header="none", by_hand=True)
call("cudaThreadExit", editions="..12", by_hand=True, as_="cudaDeviceReset")
call("cudaThreadGetCacheConfig", Out(cudaFuncCache, "pCacheConfig"), editions="..12",
     driver="cuCtxGetCacheConfig")
call("cudaThreadGetLimit", Out(SIZE, "pValue"), In(cudaLimit, "limit"), editions="..12",
     driver="cuCtxGetLimit")
call("cudaThreadSetCacheConfig", In(cudaFuncCache, "cacheConfig"), editions="..12",
     driver="cuCtxSetCacheConfig")
call("cudaThreadSetLimit", In(cudaLimit, "limit"), In(SIZE, "value"), editions="..12",
     driver="cuCtxSetLimit")
call("cudaThreadSynchronize", editions="..12", driver="cuCtxSynchronize")
call("cudaUnbindTexture", In(Ref(textureReference), "texref"), editions="..11",
     by_hand=True)
call("cudaProfilerInitialize", In(STR, "configFile"), In(STR, "outputFile"), In(I32, "outputMode"),
     editions="..11", driver="cuProfilerInitialize", header="cuda_profiler_api.h")

# What compilers emitted calls of.
export("__cudaRegisterTexture", "__cudaRegisterSurface", "__cudaRegisterShared",
       "__cudaRegisterSharedVar", editions="..11")
