"""Memory, arrays, pools, host memory, pointers."""

call("cudaArrayGetInfo", Out(cudaChannelFormatDesc, "desc"), Out(cudaExtent, "extent"),
     Out(U32, "flags"), In(cudaArray_t, "array"), by_hand=True)
call("cudaArrayGetMemoryRequirements", Out(cudaArrayMemoryRequirements, "memoryRequirements"),
     In(cudaArray_t, "array"), In(I32, "device"), editions="11..",
     driver="cuArrayGetMemoryRequirements")
call("cudaArrayGetPlane", Out(cudaArray_t, "pPlaneArray"), In(cudaArray_t, "hArray"),
     In(U32, "planeIdx"), editions="11..", driver="cuArrayGetPlane")
call("cudaArrayGetSparseProperties", Out(cudaArraySparseProperties, "sparseProperties"),
     In(cudaArray_t, "array"), editions="11..", driver="cuArrayGetSparseProperties")
call("cudaDeviceGetDefaultMemPool", Out(cudaMemPool_t, "memPool"), In(I32, "device"),
     editions="11..", driver="cuDeviceGetDefaultMemPool")
call("cudaDeviceGetMemPool", Out(cudaMemPool_t, "memPool"), In(I32, "device"), editions="11..",
     driver="cuDeviceGetMemPool")
call("cudaDeviceSetMemPool", In(I32, "device"), In(cudaMemPool_t, "memPool"), editions="11..",
     driver="cuDeviceSetMemPool")
call("cudaFree", In(PTR, "devPtr"), by_hand=True)
call("cudaFreeArray", In(cudaArray_t, "array"), by_hand=True)
call("cudaFreeAsync", In(PTR, "devPtr"), In(cudaStream_t, "hStream"), ptds=True, editions="11..",
     driver="cuMemFreeAsync")
call("cudaFreeHost", In(PTR, "ptr"), driver="cuMemFreeHost")
call("cudaFreeMipmappedArray", In(cudaMipmappedArray_t, "mipmappedArray"),
     by_hand=True)
call("cudaGetMipmappedArrayLevel", Out(cudaArray_t, "levelArray"),
     In(cudaMipmappedArray_const_t, "mipmappedArray"), In(U32, "level"),
     driver="cuMipmappedArrayGetLevel")
call("cudaHostAlloc", Out(PTR, "pHost"), In(SIZE, "size"), In(U32, "flags"), by_hand=True)
call("cudaHostGetDevicePointer", Out(PTR, "pDevice"), In(PTR, "pHost"), In(U32, "flags"),
     by_hand=True)
call("cudaHostGetFlags", Out(U32, "pFlags"), In(PTR, "pHost"), driver="cuMemHostGetFlags")
call("cudaHostRegister", In(PTR, "ptr"), In(SIZE, "size"), In(U32, "flags"),
     driver="cuMemHostRegister_v2")
call("cudaHostUnregister", In(PTR, "ptr"), driver="cuMemHostUnregister")
call("cudaMalloc", Out(PTR, "devPtr"), In(SIZE, "size"), by_hand=True)
call("cudaMalloc3D", Out(cudaPitchedPtr, "pitchedDevPtr"), In(cudaExtent, "extent"),
     by_hand=True)
call("cudaMalloc3DArray", Out(cudaArray_t, "array"), In(Ref(cudaChannelFormatDesc), "desc"),
     In(cudaExtent, "extent"), In(U32, "flags"), by_hand=True)
call("cudaMallocArray", Out(cudaArray_t, "array"), In(Ref(cudaChannelFormatDesc), "desc"),
     In(SIZE, "width"), In(SIZE, "height"), In(U32, "flags"), by_hand=True)
call("cudaMallocAsync", Out(PTR, "devPtr"), In(SIZE, "size"), In(cudaStream_t, "hStream"),
     ptds=True, editions="11..", by_hand=True)
call("cudaMallocFromPoolAsync", Out(PTR, "ptr"), In(SIZE, "size"), In(cudaMemPool_t, "memPool"),
     In(cudaStream_t, "stream"), ptds=True, editions="11..", by_hand=True)
call("cudaMallocHost", Out(PTR, "ptr"), In(SIZE, "size"), by_hand=True)
call("cudaMallocManaged", Out(PTR, "devPtr"), In(SIZE, "size"), In(U32, "flags"),
     by_hand=True)
call("cudaMallocMipmappedArray", Out(cudaMipmappedArray_t, "mipmappedArray"),
     In(Ref(cudaChannelFormatDesc), "desc"), In(cudaExtent, "extent"), In(U32, "numLevels"),
     In(U32, "flags"), by_hand=True)
call("cudaMallocPitch", Out(PTR, "devPtr"), Out(SIZE, "pitch"), In(SIZE, "width"),
     In(SIZE, "height"), by_hand=True)
call("cudaMemGetDefaultMemPool", Out(cudaMemPool_t, "memPool"), Out(cudaMemLocation, "location"),
     In(cudaMemAllocationType, "type"), editions="13..", driver="cuMemGetDefaultMemPool")
call("cudaMemGetInfo", Out(SIZE, "free"), Out(SIZE, "total"), driver="cuMemGetInfo_v2")
call("cudaMemGetLocationInfo", In(PTR, "devPtr"), In(SIZE, "size"), In(SIZE, "summaryGranularity"),
     In(SIZE, "samplingGranularity"), Out(cudaMemLocation, "location_out"), editions="13..",
     since=13040, missing="no driver that heddle knows has such a call")
call("cudaMemGetMemPool", Out(cudaMemPool_t, "memPool"), Out(cudaMemLocation, "location"),
     In(cudaMemAllocationType, "type"), editions="13..", driver="cuMemGetMemPool")
call("cudaMemPoolCreate", Out(cudaMemPool_t, "memPool"), In(Ref(cudaMemPoolProps), "poolProps"),
     editions="11..", driver="cuMemPoolCreate")
call("cudaMemPoolDestroy", In(cudaMemPool_t, "memPool"), editions="11..", driver="cuMemPoolDestroy")
call("cudaMemPoolExportPointer", Out(cudaMemPoolPtrExportData, "exportData"), In(PTR, "ptr"),
     editions="11..", driver="cuMemPoolExportPointer")
call("cudaMemPoolExportToShareableHandle", In(PTR, "shareableHandle"), In(cudaMemPool_t, "memPool"),
     In(cudaMemAllocationHandleType, "handleType"), In(U32, "flags"), editions="11..",
     driver="cuMemPoolExportToShareableHandle")
call("cudaMemPoolGetAccess", Out(cudaMemAccessFlags, "flags"), In(cudaMemPool_t, "memPool"),
     Out(cudaMemLocation, "location"), editions="11..", driver="cuMemPoolGetAccess")
call("cudaMemPoolGetAttribute", In(cudaMemPool_t, "memPool"), In(cudaMemPoolAttr, "attr"),
     In(PTR, "value"), editions="11..", driver="cuMemPoolGetAttribute")
call("cudaMemPoolImportFromShareableHandle", Out(cudaMemPool_t, "memPool"),
     In(PTR, "shareableHandle"), In(cudaMemAllocationHandleType, "handleType"), In(U32, "flags"),
     editions="11..", driver="cuMemPoolImportFromShareableHandle")
call("cudaMemPoolImportPointer", Out(PTR, "ptr"), In(cudaMemPool_t, "memPool"),
     Out(cudaMemPoolPtrExportData, "exportData"), editions="11..", driver="cuMemPoolImportPointer")
call("cudaMemPoolSetAccess", In(cudaMemPool_t, "memPool"), In(Ref(cudaMemAccessDesc), "descList"),
     In(SIZE, "count"), editions="11..", driver="cuMemPoolSetAccess")
call("cudaMemPoolSetAttribute", In(cudaMemPool_t, "memPool"), In(cudaMemPoolAttr, "attr"),
     In(PTR, "value"), editions="11..", driver="cuMemPoolSetAttribute")
call("cudaMemPoolTrimTo", In(cudaMemPool_t, "memPool"), In(SIZE, "minBytesToKeep"), editions="11..",
     driver="cuMemPoolTrimTo")
call("cudaMemSetMemPool", Out(cudaMemLocation, "location"), In(cudaMemAllocationType, "type"),
     In(cudaMemPool_t, "memPool"), editions="13..", driver="cuMemSetMemPool")
call("cudaMipmappedArrayGetMemoryRequirements",
     Out(cudaArrayMemoryRequirements, "memoryRequirements"), In(cudaMipmappedArray_t, "mipmap"),
     In(I32, "device"), editions="11..", driver="cuMipmappedArrayGetMemoryRequirements")
call("cudaMipmappedArrayGetSparseProperties", Out(cudaArraySparseProperties, "sparseProperties"),
     In(cudaMipmappedArray_t, "mipmap"), editions="11..",
     driver="cuMipmappedArrayGetSparseProperties")

# Until CUDA 9 and in CUDA 10; since 11 `type` stands for both.
struct("cudaPointerAttributes_8", F(cudaMemoryType, "memoryType"), F(I32, "device"),
       F(PTR, "devicePointer"), F(PTR, "hostPointer"), F(I32, "isManaged"))
struct("cudaPointerAttributes_10", F(cudaMemoryType, "memoryType"), F(cudaMemoryType, "type"),
       F(I32, "device"), F(PTR, "devicePointer"), F(PTR, "hostPointer"), F(I32, "isManaged"))
call("cudaPointerGetAttributes", Out(cudaPointerAttributes_8, "attributes"), In(CPTR, "ptr"),
     editions="8", by_hand=True, as_="cudaPointerGetAttributes_8")
call("cudaPointerGetAttributes", Out(cudaPointerAttributes_10, "attributes"), In(CPTR, "ptr"),
     editions="10", by_hand=True, as_="cudaPointerGetAttributes_10")
call("cudaPointerGetAttributes", Out(cudaPointerAttributes_12, "attributes"), In(CPTR, "ptr"),
     editions="11..12", by_hand=True, as_="cudaPointerGetAttributes_12")
call("cudaPointerGetAttributes", Out(cudaPointerAttributes, "attributes"), In(CPTR, "ptr"),
     editions="13..", by_hand=True)
