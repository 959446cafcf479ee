"""Arrays, textures, surfaces, tensor maps."""

enum("CUarray_format",
     CU_AD_FORMAT_UNSIGNED_INT8=0x1, CU_AD_FORMAT_UNSIGNED_INT16=0x2,
     CU_AD_FORMAT_UNSIGNED_INT32=0x3, CU_AD_FORMAT_SIGNED_INT8=0x8,
     CU_AD_FORMAT_SIGNED_INT16=0x9, CU_AD_FORMAT_SIGNED_INT32=0xa, CU_AD_FORMAT_HALF=0x10,
     CU_AD_FORMAT_FLOAT=0x20, CU_AD_FORMAT_NV12=0xb0, CU_AD_FORMAT_UNORM_INT8X1=0xc0,
     CU_AD_FORMAT_UNORM_INT8X2=0xc1, CU_AD_FORMAT_UNORM_INT8X4=0xc2,
     CU_AD_FORMAT_UNORM_INT16X1=0xc3, CU_AD_FORMAT_UNORM_INT16X2=0xc4,
     CU_AD_FORMAT_UNORM_INT16X4=0xc5, CU_AD_FORMAT_SNORM_INT8X1=0xc6,
     CU_AD_FORMAT_SNORM_INT8X2=0xc7, CU_AD_FORMAT_SNORM_INT8X4=0xc8,
     CU_AD_FORMAT_SNORM_INT16X1=0xc9, CU_AD_FORMAT_SNORM_INT16X2=0xca,
     CU_AD_FORMAT_SNORM_INT16X4=0xcb, CU_AD_FORMAT_BC1_UNORM=0x91,
     CU_AD_FORMAT_BC1_UNORM_SRGB=0x92, CU_AD_FORMAT_BC2_UNORM=0x93,
     CU_AD_FORMAT_BC2_UNORM_SRGB=0x94, CU_AD_FORMAT_BC3_UNORM=0x95,
     CU_AD_FORMAT_BC3_UNORM_SRGB=0x96, CU_AD_FORMAT_BC4_UNORM=0x97,
     CU_AD_FORMAT_BC4_SNORM=0x98, CU_AD_FORMAT_BC5_UNORM=0x99, CU_AD_FORMAT_BC5_SNORM=0x9a,
     CU_AD_FORMAT_BC6H_UF16=0x9b, CU_AD_FORMAT_BC6H_SF16=0x9c, CU_AD_FORMAT_BC7_UNORM=0x9d,
     CU_AD_FORMAT_BC7_UNORM_SRGB=0x9e, CU_AD_FORMAT_P010=0x9f, CU_AD_FORMAT_P016=0xa1,
     CU_AD_FORMAT_NV16=0xa2, CU_AD_FORMAT_P210=0xa3, CU_AD_FORMAT_P216=0xa4,
     CU_AD_FORMAT_YUY2=0xa5, CU_AD_FORMAT_Y210=0xa6, CU_AD_FORMAT_Y216=0xa7,
     CU_AD_FORMAT_AYUV=0xa8, CU_AD_FORMAT_Y410=0xa9, CU_AD_FORMAT_Y416=0xb1,
     CU_AD_FORMAT_Y444_PLANAR8=0xb2, CU_AD_FORMAT_Y444_PLANAR10=0xb3,
     CU_AD_FORMAT_YUV444_8bit_SemiPlanar=0xb4, CU_AD_FORMAT_YUV444_16bit_SemiPlanar=0xb5,
     CU_AD_FORMAT_UNORM_INT_101010_2=0x50, CU_AD_FORMAT_MAX=0x7fffffff)

struct("CUDA_ARRAY_DESCRIPTOR_v1",
       F(U32, "Width"),
       F(U32, "Height"),
       F(CUarray_format, "Format"),
       F(U32, "NumChannels"))

struct("CUDA_ARRAY_DESCRIPTOR_v2",
       F(SIZE, "Width"),
       F(SIZE, "Height"),
       F(CUarray_format, "Format"),
       F(U32, "NumChannels"))

struct("CUDA_ARRAY_SPARSE_PROPERTIES_v1",
       F(inner("struct",
               F(U32, "width"),
               F(U32, "height"),
               F(U32, "depth")), "tileExtent"),
       F(U32, "miptailFirstLevel"),
       F(U64, "miptailSize"),
       F(U32, "flags"),
       F(U32, "reserved", 4))

handle("CUmipmappedArray", "mipmap")

struct("CUDA_ARRAY_MEMORY_REQUIREMENTS_v1",
       F(SIZE, "size"),
       F(SIZE, "alignment"),
       F(U32, "reserved", 4))

struct("CUDA_ARRAY3D_DESCRIPTOR_v1",
       F(U32, "Width"),
       F(U32, "Height"),
       F(U32, "Depth"),
       F(CUarray_format, "Format"),
       F(U32, "NumChannels"),
       F(U32, "Flags"))

struct("CUDA_ARRAY3D_DESCRIPTOR_v2",
       F(SIZE, "Width"),
       F(SIZE, "Height"),
       F(SIZE, "Depth"),
       F(CUarray_format, "Format"),
       F(U32, "NumChannels"),
       F(U32, "Flags"))

enum("CUaddress_mode",
     CU_TR_ADDRESS_MODE_WRAP=0, CU_TR_ADDRESS_MODE_CLAMP=1, CU_TR_ADDRESS_MODE_MIRROR=2,
     CU_TR_ADDRESS_MODE_BORDER=3)

enum("CUfilter_mode",
     CU_TR_FILTER_MODE_POINT=0, CU_TR_FILTER_MODE_LINEAR=1)

alias("CUtexObject_v1", U64, "h.texture")

alias("CUtexObject", CUtexObject_v1, "h.texture")

enum("CUresourcetype",
     CU_RESOURCE_TYPE_ARRAY=0x0, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY=0x1,
     CU_RESOURCE_TYPE_LINEAR=0x2, CU_RESOURCE_TYPE_PITCH2D=0x3)

struct("CUDA_RESOURCE_DESC_v1",
       F(CUresourcetype, "resType"),
       F(inner("union",
               F(inner("struct",
                       F(CUarray, "hArray")), "array"),
               F(inner("struct",
                       F(CUmipmappedArray, "hMipmappedArray")), "mipmap"),
               F(inner("struct",
                       F(CUdeviceptr, "devPtr"),
                       F(CUarray_format, "format"),
                       F(U32, "numChannels"),
                       F(SIZE, "sizeInBytes")), "linear"),
               F(inner("struct",
                       F(CUdeviceptr, "devPtr"),
                       F(CUarray_format, "format"),
                       F(U32, "numChannels"),
                       F(SIZE, "width"),
                       F(SIZE, "height"),
                       F(SIZE, "pitchInBytes")), "pitch2D"),
               F(inner("struct",
                       F(I32, "reserved", 32)), "reserved"),
               cases={0: "array", 1: "mipmap", 2: "linear", 3: "pitch2D"}), "res", tag="resType"),
       F(U32, "flags"))

struct("CUDA_TEXTURE_DESC_v1",
       F(CUaddress_mode, "addressMode", 3),
       F(CUfilter_mode, "filterMode"),
       F(U32, "flags"),
       F(U32, "maxAnisotropy"),
       F(CUfilter_mode, "mipmapFilterMode"),
       F(F32, "mipmapLevelBias"),
       F(F32, "minMipmapLevelClamp"),
       F(F32, "maxMipmapLevelClamp"),
       F(F32, "borderColor", 4),
       F(I32, "reserved", 12))

enum("CUresourceViewFormat",
     CU_RES_VIEW_FORMAT_NONE=0x0, CU_RES_VIEW_FORMAT_UINT_1X8=0x1,
     CU_RES_VIEW_FORMAT_UINT_2X8=0x2, CU_RES_VIEW_FORMAT_UINT_4X8=0x3,
     CU_RES_VIEW_FORMAT_SINT_1X8=0x4, CU_RES_VIEW_FORMAT_SINT_2X8=0x5,
     CU_RES_VIEW_FORMAT_SINT_4X8=0x6, CU_RES_VIEW_FORMAT_UINT_1X16=0x7,
     CU_RES_VIEW_FORMAT_UINT_2X16=0x8, CU_RES_VIEW_FORMAT_UINT_4X16=0x9,
     CU_RES_VIEW_FORMAT_SINT_1X16=0xa, CU_RES_VIEW_FORMAT_SINT_2X16=0xb,
     CU_RES_VIEW_FORMAT_SINT_4X16=0xc, CU_RES_VIEW_FORMAT_UINT_1X32=0xd,
     CU_RES_VIEW_FORMAT_UINT_2X32=0xe, CU_RES_VIEW_FORMAT_UINT_4X32=0xf,
     CU_RES_VIEW_FORMAT_SINT_1X32=0x10, CU_RES_VIEW_FORMAT_SINT_2X32=0x11,
     CU_RES_VIEW_FORMAT_SINT_4X32=0x12, CU_RES_VIEW_FORMAT_FLOAT_1X16=0x13,
     CU_RES_VIEW_FORMAT_FLOAT_2X16=0x14, CU_RES_VIEW_FORMAT_FLOAT_4X16=0x15,
     CU_RES_VIEW_FORMAT_FLOAT_1X32=0x16, CU_RES_VIEW_FORMAT_FLOAT_2X32=0x17,
     CU_RES_VIEW_FORMAT_FLOAT_4X32=0x18, CU_RES_VIEW_FORMAT_UNSIGNED_BC1=0x19,
     CU_RES_VIEW_FORMAT_UNSIGNED_BC2=0x1a, CU_RES_VIEW_FORMAT_UNSIGNED_BC3=0x1b,
     CU_RES_VIEW_FORMAT_UNSIGNED_BC4=0x1c, CU_RES_VIEW_FORMAT_SIGNED_BC4=0x1d,
     CU_RES_VIEW_FORMAT_UNSIGNED_BC5=0x1e, CU_RES_VIEW_FORMAT_SIGNED_BC5=0x1f,
     CU_RES_VIEW_FORMAT_UNSIGNED_BC6H=0x20, CU_RES_VIEW_FORMAT_SIGNED_BC6H=0x21,
     CU_RES_VIEW_FORMAT_UNSIGNED_BC7=0x22)

struct("CUDA_RESOURCE_VIEW_DESC_v1",
       F(CUresourceViewFormat, "format"),
       F(SIZE, "width"),
       F(SIZE, "height"),
       F(SIZE, "depth"),
       F(U32, "firstMipmapLevel"),
       F(U32, "lastMipmapLevel"),
       F(U32, "firstLayer"),
       F(U32, "lastLayer"),
       F(U32, "reserved", 16))

alias("CUsurfObject_v1", U64, "h.surface")

alias("CUsurfObject", CUsurfObject_v1, "h.surface")

struct("CUtensorMap",
       F(cuuint64_t, "opaque", 16), align=128)

enum("CUtensorMapDataType",
     CU_TENSOR_MAP_DATA_TYPE_UINT8=0, CU_TENSOR_MAP_DATA_TYPE_UINT16=1,
     CU_TENSOR_MAP_DATA_TYPE_UINT32=2, CU_TENSOR_MAP_DATA_TYPE_INT32=3,
     CU_TENSOR_MAP_DATA_TYPE_UINT64=4, CU_TENSOR_MAP_DATA_TYPE_INT64=5,
     CU_TENSOR_MAP_DATA_TYPE_FLOAT16=6, CU_TENSOR_MAP_DATA_TYPE_FLOAT32=7,
     CU_TENSOR_MAP_DATA_TYPE_FLOAT64=8, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16=9,
     CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ=10, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32=11,
     CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ=12, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B=13,
     CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B=14, CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B=15)

enum("CUtensorMapInterleave",
     CU_TENSOR_MAP_INTERLEAVE_NONE=0, CU_TENSOR_MAP_INTERLEAVE_16B=1,
     CU_TENSOR_MAP_INTERLEAVE_32B=2)

enum("CUtensorMapSwizzle",
     CU_TENSOR_MAP_SWIZZLE_NONE=0, CU_TENSOR_MAP_SWIZZLE_32B=1, CU_TENSOR_MAP_SWIZZLE_64B=2,
     CU_TENSOR_MAP_SWIZZLE_128B=3, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B=4,
     CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B=5, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B=6)

enum("CUtensorMapL2promotion",
     CU_TENSOR_MAP_L2_PROMOTION_NONE=0, CU_TENSOR_MAP_L2_PROMOTION_L2_64B=1,
     CU_TENSOR_MAP_L2_PROMOTION_L2_128B=2, CU_TENSOR_MAP_L2_PROMOTION_L2_256B=3)

enum("CUtensorMapFloatOOBfill",
     CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE=0, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA=1)

enum("CUtensorMapIm2ColWideMode",
     CU_TENSOR_MAP_IM2COL_WIDE_MODE_W=0, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128=1)

enum("CUarraySparseSubresourceType",
     CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL=0,
     CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL=1)

enum("CUmemOperationType",
     CU_MEM_OPERATION_TYPE_MAP=1, CU_MEM_OPERATION_TYPE_UNMAP=2)

enum("CUmemHandleType",
     CU_MEM_HANDLE_TYPE_GENERIC=0)

struct("CUarrayMapInfo_v1",
       F(CUresourcetype, "resourceType"),
       F(inner("union",
               F(CUmipmappedArray, "mipmap"),
               F(CUarray, "array"),
               cases={0: "array", 1: "mipmap"}), "resource", tag="resourceType"),
       F(CUarraySparseSubresourceType, "subresourceType"),
       F(inner("union",
               F(inner("struct",
                       F(U32, "level"),
                       F(U32, "layer"),
                       F(U32, "offsetX"),
                       F(U32, "offsetY"),
                       F(U32, "offsetZ"),
                       F(U32, "extentWidth"),
                       F(U32, "extentHeight"),
                       F(U32, "extentDepth")), "sparseLevel"),
               F(inner("struct",
                       F(U32, "layer"),
                       F(U64, "offset"),
                       F(U64, "size")), "miptail"),
               cases={0: "sparseLevel", 1: "miptail"}), "subresource", tag="subresourceType"),
       F(CUmemOperationType, "memOperationType"),
       F(CUmemHandleType, "memHandleType"),
       F(inner("union",
               F(CUmemGenericAllocationHandle, "memHandle"),
               cases={0: "memHandle"}), "memHandle", tag="memHandleType"),
       F(U64, "offset"),
       F(U32, "deviceBitMask"),
       F(U32, "flags"),
       F(U32, "reserved", 2))



def alloc_array(desc, **more):
    """The roles of a call that makes an array as `desc` describes it."""
    return Roles("alloc_array", out="*pHandle", width=f"{desc}.Width", height=f"{desc}.Height",
                 format=f"{desc}.Format", channels=f"{desc}.NumChannels", **more)


call("cuDeviceGetTexture1DLinearMaxWidth", Out(SIZE, "maxWidthInElements"),
     In(CUarray_format, "format"), In(U32, "numChannels"), In(CUdevice, "dev"), since=11010,
     after="none")
call("cuArrayCreate", Out(CUarray, "pHandle", new="array"),
     In(Ref(CUDA_ARRAY_DESCRIPTOR_v1), "pAllocateArray"), since=2000, does="make",
     memory=alloc_array("pAllocateArray"))
call("cuArrayCreate_v2", Out(CUarray, "pHandle", new="array"),
     In(Ref(CUDA_ARRAY_DESCRIPTOR_v2), "pAllocateArray"), since=3020, does="make",
     memory=alloc_array("pAllocateArray"))
call("cuArrayGetDescriptor", Out(CUDA_ARRAY_DESCRIPTOR_v1, "pArrayDescriptor"),
     In(CUarray, "hArray"), since=2000, does="ask")
call("cuArrayGetDescriptor_v2", Out(CUDA_ARRAY_DESCRIPTOR_v2, "pArrayDescriptor"),
     In(CUarray, "hArray"), since=3020, does="ask")
call("cuArrayGetSparseProperties", Out(CUDA_ARRAY_SPARSE_PROPERTIES_v1, "sparseProperties"),
     In(CUarray, "array"), since=11010, does="ask")
call("cuMipmappedArrayGetSparseProperties",
     Out(CUDA_ARRAY_SPARSE_PROPERTIES_v1, "sparseProperties"), In(CUmipmappedArray, "mipmap"),
     since=11010, does="ask")
call("cuArrayGetMemoryRequirements", Out(CUDA_ARRAY_MEMORY_REQUIREMENTS_v1, "memoryRequirements"),
     In(CUarray, "array"), In(CUdevice, "device"), since=11060, does="ask")
call("cuMipmappedArrayGetMemoryRequirements",
     Out(CUDA_ARRAY_MEMORY_REQUIREMENTS_v1, "memoryRequirements"), In(CUmipmappedArray, "mipmap"),
     In(CUdevice, "device"), since=11060, does="ask")
call("cuArrayGetPlane", Out(CUarray, "pPlaneArray"), In(CUarray, "hArray"), In(U32, "planeIdx"),
     since=11020, does="ask")
call("cuArrayDestroy", In(CUarray, "hArray", free="array"), since=2000, blocks=True, does="end",
     memory=Roles("free", key="hArray"))
call("cuArray3DCreate", Out(CUarray, "pHandle", new="array"),
     In(Ref(CUDA_ARRAY3D_DESCRIPTOR_v1), "pAllocateArray"), since=2000, does="make",
     memory=alloc_array("pAllocateArray", depth="pAllocateArray.Depth",
                        flags="pAllocateArray.Flags"))
call("cuArray3DCreate_v2", Out(CUarray, "pHandle", new="array"),
     In(Ref(CUDA_ARRAY3D_DESCRIPTOR_v2), "pAllocateArray"), since=3020, does="make",
     memory=alloc_array("pAllocateArray", depth="pAllocateArray.Depth",
                        flags="pAllocateArray.Flags"))
call("cuArray3DGetDescriptor", Out(CUDA_ARRAY3D_DESCRIPTOR_v1, "pArrayDescriptor"),
     In(CUarray, "hArray"), since=2000, does="ask")
call("cuArray3DGetDescriptor_v2", Out(CUDA_ARRAY3D_DESCRIPTOR_v2, "pArrayDescriptor"),
     In(CUarray, "hArray"), since=3020, does="ask")
call("cuMipmappedArrayCreate", Out(CUmipmappedArray, "pHandle", new="mipmap"),
     In(Ref(CUDA_ARRAY3D_DESCRIPTOR_v2), "pMipmappedArrayDesc"), In(U32, "numMipmapLevels"),
     since=5000, does="make",
     memory=alloc_array("pMipmappedArrayDesc", depth="pMipmappedArrayDesc.Depth",
                        flags="pMipmappedArrayDesc.Flags", levels="numMipmapLevels"))
call("cuMipmappedArrayGetLevel", Out(CUarray, "pLevelArray"),
     In(CUmipmappedArray, "hMipmappedArray"), In(U32, "level"), since=5000, does="ask")
call("cuMipmappedArrayDestroy", In(CUmipmappedArray, "hMipmappedArray", free="mipmap"), since=5000,
     blocks=True, does="end", memory=Roles("free", key="hMipmappedArray"))
call("cuTexRefSetArray", In(CUtexref, "hTexRef"), In(CUarray, "hArray"), In(U32, "Flags"),
     since=2000, does="set")
call("cuTexRefSetMipmappedArray", In(CUtexref, "hTexRef"), In(CUmipmappedArray, "hMipmappedArray"),
     In(U32, "Flags"), since=5000, does="set")
call("cuTexRefSetAddress", Out(U32, "ByteOffset", opt=True), In(CUtexref, "hTexRef"),
     In(CUdeviceptr_v1, "dptr"), In(U32, "bytes"), since=2000, does="set")
call("cuTexRefSetAddress_v2", Out(SIZE, "ByteOffset", opt=True), In(CUtexref, "hTexRef"),
     In(CUdeviceptr, "dptr"), In(SIZE, "bytes"), since=3020, does="set")
call("cuTexRefSetAddress2D", In(CUtexref, "hTexRef"), In(Ref(CUDA_ARRAY_DESCRIPTOR_v1), "desc"),
     In(CUdeviceptr_v1, "dptr"), In(U32, "Pitch"), since=2020, does="set")
call("cuTexRefSetAddress2D_v2", In(CUtexref, "hTexRef"), In(Ref(CUDA_ARRAY_DESCRIPTOR_v2), "desc"),
     In(CUdeviceptr, "dptr"), In(SIZE, "Pitch"), since=3020, does="set")
call("cuTexRefSetAddress2D_v3", In(CUtexref, "hTexRef"), In(Ref(CUDA_ARRAY_DESCRIPTOR_v2), "desc"),
     In(CUdeviceptr, "dptr"), In(SIZE, "Pitch"), since=4010, does="set")
call("cuTexRefSetFormat", In(CUtexref, "hTexRef"), In(CUarray_format, "fmt"),
     In(I32, "NumPackedComponents"), since=2000, does="set")
call("cuTexRefSetAddressMode", In(CUtexref, "hTexRef"), In(I32, "dim"), In(CUaddress_mode, "am"),
     since=2000, does="set")
call("cuTexRefSetFilterMode", In(CUtexref, "hTexRef"), In(CUfilter_mode, "fm"), since=2000,
     does="set")
call("cuTexRefSetMipmapFilterMode", In(CUtexref, "hTexRef"), In(CUfilter_mode, "fm"), since=5000,
     does="set")
call("cuTexRefSetMipmapLevelBias", In(CUtexref, "hTexRef"), In(F32, "bias"), since=5000, does="set")
call("cuTexRefSetMipmapLevelClamp", In(CUtexref, "hTexRef"), In(F32, "minMipmapLevelClamp"),
     In(F32, "maxMipmapLevelClamp"), since=5000, does="set")
call("cuTexRefSetMaxAnisotropy", In(CUtexref, "hTexRef"), In(U32, "maxAniso"), since=5000,
     does="set")
call("cuTexRefSetBorderColor", In(CUtexref, "hTexRef"),
     In(Array(F32, "4", mut=True), "pBorderColor"), since=8000, does="set")
call("cuTexRefSetFlags", In(CUtexref, "hTexRef"), In(U32, "Flags"), since=2000, does="set")
call("cuTexRefGetAddress", Out(CUdeviceptr_v1, "pdptr"), In(CUtexref, "hTexRef"), since=2000,
     after="none")
call("cuTexRefGetAddress_v2", Out(CUdeviceptr, "pdptr"), In(CUtexref, "hTexRef"), since=3020,
     after="none")
call("cuTexRefGetArray", Out(CUarray, "phArray"), In(CUtexref, "hTexRef"), since=2000, after="none")
call("cuTexRefGetMipmappedArray", Out(CUmipmappedArray, "phMipmappedArray"),
     In(CUtexref, "hTexRef"), since=5000, after="none")
call("cuTexRefGetAddressMode", Out(CUaddress_mode, "pam"), In(CUtexref, "hTexRef"), In(I32, "dim"),
     since=2000, after="none")
call("cuTexRefGetFilterMode", Out(CUfilter_mode, "pfm"), In(CUtexref, "hTexRef"), since=2000,
     after="none")
call("cuTexRefGetFormat", Out(CUarray_format, "pFormat"), Out(I32, "pNumChannels"),
     In(CUtexref, "hTexRef"), since=2000, after="none")
call("cuTexRefGetMipmapFilterMode", Out(CUfilter_mode, "pfm"), In(CUtexref, "hTexRef"), since=5000,
     after="none")
call("cuTexRefGetMipmapLevelBias", Out(F32, "pbias"), In(CUtexref, "hTexRef"), since=5000,
     after="none")
call("cuTexRefGetMipmapLevelClamp", Out(F32, "pminMipmapLevelClamp"),
     Out(F32, "pmaxMipmapLevelClamp"), In(CUtexref, "hTexRef"), since=5000, after="none")
call("cuTexRefGetMaxAnisotropy", Out(I32, "pmaxAniso"), In(CUtexref, "hTexRef"), since=5000,
     after="none")
call("cuTexRefGetBorderColor", Out(Array(F32, "4"), "pBorderColor"), In(CUtexref, "hTexRef"),
     since=8000, after="none")
call("cuTexRefGetFlags", Out(U32, "pFlags"), In(CUtexref, "hTexRef"), since=2000, after="none")
call("cuTexRefCreate", Out(CUtexref, "pTexRef", new="texref"), since=2000, does="make")
call("cuTexRefDestroy", In(CUtexref, "hTexRef", free="texref"), since=2000, does="end")
call("cuSurfRefSetArray", In(CUsurfref, "hSurfRef"), In(CUarray, "hArray"), In(U32, "Flags"),
     since=3000, does="set")
call("cuSurfRefGetArray", Out(CUarray, "phArray"), In(CUsurfref, "hSurfRef"), since=3000,
     does="ask")
call("cuTexObjectCreate", Out(CUtexObject, "pTexObject", new="texture"),
     In(Ref(CUDA_RESOURCE_DESC_v1), "pResDesc"), In(Ref(CUDA_TEXTURE_DESC_v1), "pTexDesc"),
     In(Ref(CUDA_RESOURCE_VIEW_DESC_v1), "pResViewDesc"), since=5000, does="make",
     travel=Roles("resource", "pResDesc"))
call("cuTexObjectDestroy", In(CUtexObject, "texObject", free="texture"), since=5000, does="end",
     travel=True)
call("cuTexObjectGetResourceDesc", Out(CUDA_RESOURCE_DESC_v1, "pResDesc"),
     In(CUtexObject, "texObject"), since=5000, does="ask")
call("cuTexObjectGetTextureDesc", Out(CUDA_TEXTURE_DESC_v1, "pTexDesc"),
     In(CUtexObject, "texObject"), since=5000, does="ask")
call("cuTexObjectGetResourceViewDesc", Out(CUDA_RESOURCE_VIEW_DESC_v1, "pResViewDesc"),
     In(CUtexObject, "texObject"), since=5000, does="ask")
call("cuSurfObjectCreate", Out(CUsurfObject, "pSurfObject", new="surface"),
     In(Ref(CUDA_RESOURCE_DESC_v1), "pResDesc"), since=5000, does="make",
     travel=Roles("resource", "pResDesc"))
call("cuSurfObjectDestroy", In(CUsurfObject, "surfObject", free="surface"), since=5000, does="end",
     travel=True)
call("cuSurfObjectGetResourceDesc", Out(CUDA_RESOURCE_DESC_v1, "pResDesc"),
     In(CUsurfObject, "surfObject"), since=5000, does="ask")
call("cuTensorMapEncodeTiled", Out(CUtensorMap, "tensorMap"),
     In(CUtensorMapDataType, "tensorDataType"), In(cuuint32_t, "tensorRank"),
     In(DPTR, "globalAddress", extent="0"), In(Array(cuuint64_t, "tensorRank"), "globalDim"),
     In(Array(cuuint64_t, "tensorRank - 1"), "globalStrides"),
     In(Array(cuuint32_t, "tensorRank"), "boxDim"),
     In(Array(cuuint32_t, "tensorRank"), "elementStrides"), In(CUtensorMapInterleave, "interleave"),
     In(CUtensorMapSwizzle, "swizzle"), In(CUtensorMapL2promotion, "l2Promotion"),
     In(CUtensorMapFloatOOBfill, "oobFill"), since=12000, after="none", travel=True,
     relay=Roles("plain"))
call("cuTensorMapEncodeIm2col", Out(CUtensorMap, "tensorMap"),
     In(CUtensorMapDataType, "tensorDataType"), In(cuuint32_t, "tensorRank"),
     In(DPTR, "globalAddress", extent="0"), In(Array(cuuint64_t, "tensorRank"), "globalDim"),
     In(Array(cuuint64_t, "tensorRank - 1"), "globalStrides"),
     In(Array(I32, "tensorRank - 2"), "pixelBoxLowerCorner"),
     In(Array(I32, "tensorRank - 2"), "pixelBoxUpperCorner"), In(cuuint32_t, "channelsPerPixel"),
     In(cuuint32_t, "pixelsPerColumn"), In(Array(cuuint32_t, "tensorRank"), "elementStrides"),
     In(CUtensorMapInterleave, "interleave"), In(CUtensorMapSwizzle, "swizzle"),
     In(CUtensorMapL2promotion, "l2Promotion"), In(CUtensorMapFloatOOBfill, "oobFill"), since=12000,
     after="none", travel=True, relay=Roles("plain"))
call("cuTensorMapEncodeIm2colWide", Out(CUtensorMap, "tensorMap"),
     In(CUtensorMapDataType, "tensorDataType"), In(cuuint32_t, "tensorRank"),
     In(DPTR, "globalAddress", extent="0"), In(Array(cuuint64_t, "tensorRank"), "globalDim"),
     In(Array(cuuint64_t, "tensorRank - 1"), "globalStrides"), In(I32, "pixelBoxLowerCornerWidth"),
     In(I32, "pixelBoxUpperCornerWidth"), In(cuuint32_t, "channelsPerPixel"),
     In(cuuint32_t, "pixelsPerColumn"), In(Array(cuuint32_t, "tensorRank"), "elementStrides"),
     In(CUtensorMapInterleave, "interleave"), In(CUtensorMapIm2ColWideMode, "mode"),
     In(CUtensorMapSwizzle, "swizzle"), In(CUtensorMapL2promotion, "l2Promotion"),
     In(CUtensorMapFloatOOBfill, "oobFill"), since=12080, after="none", travel=True,
     relay=Roles("plain"))
call("cuTensorMapReplaceAddress", InOut(CUtensorMap, "tensorMap"),
     In(DPTR, "globalAddress", extent="0"), since=12000, after="none", travel=True,
     relay=Roles("plain"))
call("cuMemMapArrayAsync", In(Array(CUarrayMapInfo_v1, "count", mut=True), "mapInfoList"),
     In(U32, "count"), In(CUstream, "hStream"), since=11010, ptds=True, does="order",
     memory=Roles("physical_map_arrays", maps="mapInfoList", count="count"))
