"""Structs of memory, copies, textures and launches. `_12`: as in that edition and before."""

struct("cudaChannelFormatDesc", F(I32, "x"), F(I32, "y"), F(I32, "z"), F(I32, "w"),
       F(cudaChannelFormatKind, "f"))

struct("cudaExtent", F(SIZE, "width"), F(SIZE, "height"), F(SIZE, "depth"))

struct("cudaArrayMemoryRequirements", F(SIZE, "size"), F(SIZE, "alignment"), F(U32, "reserved", 4))

struct("cudaArraySparseProperties",
       F(inner("struct", F(U32, "width"), F(U32, "height"), F(U32, "depth")), "tileExtent"),
       F(U32, "miptailFirstLevel"), F(U64, "miptailSize"), F(U32, "flags"), F(U32, "reserved", 4))

struct("cudaResourceDesc", F(cudaResourceType, "resType"),
       F(inner("union", F(inner("struct", F(cudaArray_t, "array")), "array"),
               F(inner("struct", F(cudaMipmappedArray_t, "mipmap")), "mipmap"),
               F(inner("struct", F(PTR, "devPtr"), F(cudaChannelFormatDesc, "desc"),
                       F(SIZE, "sizeInBytes")), "linear"),
               F(inner("struct", F(PTR, "devPtr"), F(cudaChannelFormatDesc, "desc"),
                       F(SIZE, "width"), F(SIZE, "height"), F(SIZE, "pitchInBytes")), "pitch2D"),
               F(inner("struct", F(I32, "reserved", 32)), "reserved")), "res"), F(U32, "flags"))

struct("cudaTextureDesc", F(cudaTextureAddressMode, "addressMode", 3),
       F(cudaTextureFilterMode, "filterMode"), F(cudaTextureReadMode, "readMode"), F(I32, "sRGB"),
       F(F32, "borderColor", 4), F(I32, "normalizedCoords"), F(U32, "maxAnisotropy"),
       F(cudaTextureFilterMode, "mipmapFilterMode"), F(F32, "mipmapLevelBias"),
       F(F32, "minMipmapLevelClamp"), F(F32, "maxMipmapLevelClamp"),
       F(I32, "disableTrilinearOptimization"), F(I32, "seamlessCubemap"))

struct("cudaResourceViewDesc", F(cudaResourceViewFormat, "format"), F(SIZE, "width"),
       F(SIZE, "height"), F(SIZE, "depth"), F(U32, "firstMipmapLevel"), F(U32, "lastMipmapLevel"),
       F(U32, "firstLayer"), F(U32, "lastLayer"), F(U32, "reserved", 16))

struct("dim3", F(U32, "x"), F(U32, "y"), F(U32, "z"))

struct("cudaMemLocation", F(cudaMemLocationType, "type"), F(I32, "id"))

struct("cudaMemPoolProps", F(cudaMemAllocationType, "allocType"),
       F(cudaMemAllocationHandleType, "handleTypes"), F(cudaMemLocation, "location"),
       F(PTR, "win32SecurityAttributes"), F(SIZE, "maxSize"), F(U16, "usage"),
       F(U8, "reserved", 54))

struct("cudaMemAccessDesc", F(cudaMemLocation, "location"), F(cudaMemAccessFlags, "flags"))

struct("cudaPos", F(SIZE, "x"), F(SIZE, "y"), F(SIZE, "z"))

struct("cudaPitchedPtr", F(PTR, "ptr"), F(SIZE, "pitch"), F(SIZE, "xsize"), F(SIZE, "ysize"))

struct("cudaMemcpy3DParms", F(cudaArray_t, "srcArray"), F(cudaPos, "srcPos"),
       F(cudaPitchedPtr, "srcPtr"), F(cudaArray_t, "dstArray"), F(cudaPos, "dstPos"),
       F(cudaPitchedPtr, "dstPtr"), F(cudaExtent, "extent"), F(cudaMemcpyKind, "kind"))

struct("cudaMemsetParams", F(PTR, "dst"), F(SIZE, "pitch"), F(U32, "value"), F(U32, "elementSize"),
       F(SIZE, "width"), F(SIZE, "height"))

struct("cudaMemsetParamsV2", F(PTR, "dst"), F(SIZE, "pitch"), F(U32, "value"),
       F(U32, "elementSize"), F(SIZE, "width"), F(SIZE, "height"))

struct("cudaAccessPolicyWindow", F(PTR, "base_ptr"), F(SIZE, "num_bytes"), F(F32, "hitRatio"),
       F(cudaAccessProperty, "hitProp"), F(cudaAccessProperty, "missProp"))

struct("cudaLaunchMemSyncDomainMap", F(U8, "default_"), F(U8, "remote"))

union("cudaLaunchAttributeValue", F(CHAR, "pad", 64),
      F(cudaAccessPolicyWindow, "accessPolicyWindow"), F(I32, "cooperative"),
      F(cudaSynchronizationPolicy, "syncPolicy"),
      F(inner("struct", F(U32, "x"), F(U32, "y"), F(U32, "z")), "clusterDim"),
      F(cudaClusterSchedulingPolicy, "clusterSchedulingPolicyPreference"),
      F(I32, "programmaticStreamSerializationAllowed"),
      F(inner("struct", F(cudaEvent_t, "event"), F(I32, "flags"), F(I32, "triggerAtBlockStart")),
        "programmaticEvent"), F(I32, "priority"),
      F(cudaLaunchMemSyncDomainMap, "memSyncDomainMap"),
      F(cudaLaunchMemSyncDomain, "memSyncDomain"),
      F(inner("struct", F(U32, "x"), F(U32, "y"), F(U32, "z")), "preferredClusterDim"),
      F(inner("struct", F(cudaEvent_t, "event"), F(I32, "flags")), "launchCompletionEvent"),
      F(inner("struct", F(I32, "deviceUpdatable"), F(cudaGraphDeviceNode_t, "devNode")),
        "deviceUpdatableKernelNode"), F(U32, "sharedMemCarveout"),
      F(U32, "nvlinkUtilCentricScheduling"))

struct("cudaIpcEventHandle_t", F(CHAR, "reserved", 64))

struct("cudaIpcMemHandle_t", F(CHAR, "reserved", 64))

struct("cudaLaunchAttribute", F(cudaLaunchAttributeID, "id"), F(CHAR, "pad", 4),
       F(cudaLaunchAttributeValue, "val"))

struct("cudaLaunchConfig_t", F(dim3, "gridDim"), F(dim3, "blockDim"), F(SIZE, "dynamicSmemBytes"),
       F(cudaStream_t, "stream"), F(Ptr("cudaLaunchAttribute *"), "attrs"), F(U32, "numAttrs"))

struct("cudaMemPoolPtrExportData", F(U8, "reserved", 64))

struct("cudaOffset3D", F(SIZE, "x"), F(SIZE, "y"), F(SIZE, "z"))

struct("cudaMemcpy3DOperand", F(cudaMemcpy3DOperandType, "type"),
       F(inner("union",
               F(inner("struct", F(PTR, "ptr"), F(SIZE, "rowLength"), F(SIZE, "layerHeight"),
                       F(cudaMemLocation, "locHint")), "ptr"),
               F(inner("struct", F(cudaArray_t, "array"), F(cudaOffset3D, "offset")), "array")),
         "op"))

struct("cudaMemcpy3DBatchOp", F(cudaMemcpy3DOperand, "src"), F(cudaMemcpy3DOperand, "dst"),
       F(cudaExtent, "extent"), F(cudaMemcpySrcAccessOrder, "srcAccessOrder"), F(U32, "flags"))

struct("cudaMemcpy3DPeerParms", F(cudaArray_t, "srcArray"), F(cudaPos, "srcPos"),
       F(cudaPitchedPtr, "srcPtr"), F(I32, "srcDevice"), F(cudaArray_t, "dstArray"),
       F(cudaPos, "dstPos"), F(cudaPitchedPtr, "dstPtr"), F(I32, "dstDevice"),
       F(cudaExtent, "extent"))

struct("cudaMemcpyAttributes", F(cudaMemcpySrcAccessOrder, "srcAccessOrder"),
       F(cudaMemLocation, "srcLocHint"), F(cudaMemLocation, "dstLocHint"), F(U32, "flags"))

struct("cudaResourceDesc_12", F(cudaResourceType, "resType"),
       F(inner("union", F(inner("struct", F(cudaArray_t, "array")), "array"),
               F(inner("struct", F(cudaMipmappedArray_t, "mipmap")), "mipmap"),
               F(inner("struct", F(PTR, "devPtr"), F(cudaChannelFormatDesc, "desc"),
                       F(SIZE, "sizeInBytes")), "linear"),
               F(inner("struct", F(PTR, "devPtr"), F(cudaChannelFormatDesc, "desc"),
                       F(SIZE, "width"), F(SIZE, "height"), F(SIZE, "pitchInBytes")), "pitch2D")),
         "res"))

struct("cudaResourceViewDesc_12", F(cudaResourceViewFormat, "format"), F(SIZE, "width"),
       F(SIZE, "height"), F(SIZE, "depth"), F(U32, "firstMipmapLevel"), F(U32, "lastMipmapLevel"),
       F(U32, "firstLayer"), F(U32, "lastLayer"))

struct("cudaLaunchParams", F(PTR, "func"), F(dim3, "gridDim"), F(dim3, "blockDim"),
       F(Ptr("void **"), "args"), F(SIZE, "sharedMem"), F(cudaStream_t, "stream"))

struct("surfaceReference", F(cudaChannelFormatDesc, "channelDesc"))

struct("textureReference", F(I32, "normalized"), F(cudaTextureFilterMode, "filterMode"),
       F(cudaTextureAddressMode, "addressMode", 3), F(cudaChannelFormatDesc, "channelDesc"),
       F(I32, "sRGB"), F(U32, "maxAnisotropy"), F(cudaTextureFilterMode, "mipmapFilterMode"),
       F(F32, "mipmapLevelBias"), F(F32, "minMipmapLevelClamp"), F(F32, "maxMipmapLevelClamp"),
       F(I32, "disableTrilinearOptimization"), F(I32, "__cudaReserved", 14))

struct("cudaTextureDesc_11", F(cudaTextureAddressMode, "addressMode", 3),
       F(cudaTextureFilterMode, "filterMode"), F(cudaTextureReadMode, "readMode"), F(I32, "sRGB"),
       F(F32, "borderColor", 4), F(I32, "normalizedCoords"), F(U32, "maxAnisotropy"),
       F(cudaTextureFilterMode, "mipmapFilterMode"), F(F32, "mipmapLevelBias"),
       F(F32, "minMipmapLevelClamp"), F(F32, "maxMipmapLevelClamp"),
       F(I32, "disableTrilinearOptimization"))

struct("cudaTextureDesc_v2", F(cudaTextureAddressMode, "addressMode", 3),
       F(cudaTextureFilterMode, "filterMode"), F(cudaTextureReadMode, "readMode"), F(I32, "sRGB"),
       F(F32, "borderColor", 4), F(I32, "normalizedCoords"), F(U32, "maxAnisotropy"),
       F(cudaTextureFilterMode, "mipmapFilterMode"), F(F32, "mipmapLevelBias"),
       F(F32, "minMipmapLevelClamp"), F(F32, "maxMipmapLevelClamp"),
       F(I32, "disableTrilinearOptimization"), F(I32, "seamlessCubemap"))

struct("cudaTextureDesc_10", F(cudaTextureAddressMode, "addressMode", 3),
       F(cudaTextureFilterMode, "filterMode"), F(cudaTextureReadMode, "readMode"), F(I32, "sRGB"),
       F(F32, "borderColor", 4), F(I32, "normalizedCoords"), F(U32, "maxAnisotropy"),
       F(cudaTextureFilterMode, "mipmapFilterMode"), F(F32, "mipmapLevelBias"),
       F(F32, "minMipmapLevelClamp"), F(F32, "maxMipmapLevelClamp"))
