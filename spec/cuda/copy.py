"""Copies, fills, prefetch and discard."""

handle("CUarray", "array")

enum("CUmemorytype",
     CU_MEMORYTYPE_HOST=0x1, CU_MEMORYTYPE_DEVICE=0x2, CU_MEMORYTYPE_ARRAY=0x3,
     CU_MEMORYTYPE_UNIFIED=0x4)

struct("CUDA_MEMCPY2D_v1",
       F(U32, "srcXInBytes"),
       F(U32, "srcY"),
       F(CUmemorytype, "srcMemoryType"),
       F(CPTR, "srcHost", when=("srcMemoryType", 1)),
       F(CUdeviceptr_v1, "srcDevice", when=("srcMemoryType", 2, 4)),
       F(CUarray, "srcArray", when=("srcMemoryType", 3)),
       F(U32, "srcPitch"),
       F(U32, "dstXInBytes"),
       F(U32, "dstY"),
       F(CUmemorytype, "dstMemoryType"),
       F(PTR, "dstHost", when=("dstMemoryType", 1)),
       F(CUdeviceptr_v1, "dstDevice", when=("dstMemoryType", 2, 4)),
       F(CUarray, "dstArray", when=("dstMemoryType", 3)),
       F(U32, "dstPitch"),
       F(U32, "WidthInBytes"),
       F(U32, "Height"))

struct("CUDA_MEMCPY2D_v2",
       F(SIZE, "srcXInBytes"),
       F(SIZE, "srcY"),
       F(CUmemorytype, "srcMemoryType"),
       F(CPTR, "srcHost", when=("srcMemoryType", 1)),
       F(CUdeviceptr, "srcDevice", when=("srcMemoryType", 2, 4)),
       F(CUarray, "srcArray", when=("srcMemoryType", 3)),
       F(SIZE, "srcPitch"),
       F(SIZE, "dstXInBytes"),
       F(SIZE, "dstY"),
       F(CUmemorytype, "dstMemoryType"),
       F(PTR, "dstHost", when=("dstMemoryType", 1)),
       F(CUdeviceptr, "dstDevice", when=("dstMemoryType", 2, 4)),
       F(CUarray, "dstArray", when=("dstMemoryType", 3)),
       F(SIZE, "dstPitch"),
       F(SIZE, "WidthInBytes"),
       F(SIZE, "Height"))

struct("CUDA_MEMCPY3D_v1",
       F(U32, "srcXInBytes"),
       F(U32, "srcY"),
       F(U32, "srcZ"),
       F(U32, "srcLOD"),
       F(CUmemorytype, "srcMemoryType"),
       F(CPTR, "srcHost", when=("srcMemoryType", 1)),
       F(CUdeviceptr_v1, "srcDevice", when=("srcMemoryType", 2, 4)),
       F(CUarray, "srcArray", when=("srcMemoryType", 3)),
       F(PTR, "reserved0"),
       F(U32, "srcPitch"),
       F(U32, "srcHeight"),
       F(U32, "dstXInBytes"),
       F(U32, "dstY"),
       F(U32, "dstZ"),
       F(U32, "dstLOD"),
       F(CUmemorytype, "dstMemoryType"),
       F(PTR, "dstHost", when=("dstMemoryType", 1)),
       F(CUdeviceptr_v1, "dstDevice", when=("dstMemoryType", 2, 4)),
       F(CUarray, "dstArray", when=("dstMemoryType", 3)),
       F(PTR, "reserved1"),
       F(U32, "dstPitch"),
       F(U32, "dstHeight"),
       F(U32, "WidthInBytes"),
       F(U32, "Height"),
       F(U32, "Depth"))

struct("CUDA_MEMCPY3D_v2",
       F(SIZE, "srcXInBytes"),
       F(SIZE, "srcY"),
       F(SIZE, "srcZ"),
       F(SIZE, "srcLOD"),
       F(CUmemorytype, "srcMemoryType"),
       F(CPTR, "srcHost", when=("srcMemoryType", 1)),
       F(CUdeviceptr, "srcDevice", when=("srcMemoryType", 2, 4)),
       F(CUarray, "srcArray", when=("srcMemoryType", 3)),
       F(PTR, "reserved0"),
       F(SIZE, "srcPitch"),
       F(SIZE, "srcHeight"),
       F(SIZE, "dstXInBytes"),
       F(SIZE, "dstY"),
       F(SIZE, "dstZ"),
       F(SIZE, "dstLOD"),
       F(CUmemorytype, "dstMemoryType"),
       F(PTR, "dstHost", when=("dstMemoryType", 1)),
       F(CUdeviceptr, "dstDevice", when=("dstMemoryType", 2, 4)),
       F(CUarray, "dstArray", when=("dstMemoryType", 3)),
       F(PTR, "reserved1"),
       F(SIZE, "dstPitch"),
       F(SIZE, "dstHeight"),
       F(SIZE, "WidthInBytes"),
       F(SIZE, "Height"),
       F(SIZE, "Depth"))

struct("CUDA_MEMCPY3D_PEER_v1",
       F(SIZE, "srcXInBytes"),
       F(SIZE, "srcY"),
       F(SIZE, "srcZ"),
       F(SIZE, "srcLOD"),
       F(CUmemorytype, "srcMemoryType"),
       F(CPTR, "srcHost", when=("srcMemoryType", 1)),
       F(CUdeviceptr, "srcDevice", when=("srcMemoryType", 2, 4)),
       F(CUarray, "srcArray", when=("srcMemoryType", 3)),
       F(CUcontext, "srcContext"),
       F(SIZE, "srcPitch"),
       F(SIZE, "srcHeight"),
       F(SIZE, "dstXInBytes"),
       F(SIZE, "dstY"),
       F(SIZE, "dstZ"),
       F(SIZE, "dstLOD"),
       F(CUmemorytype, "dstMemoryType"),
       F(PTR, "dstHost", when=("dstMemoryType", 1)),
       F(CUdeviceptr, "dstDevice", when=("dstMemoryType", 2, 4)),
       F(CUarray, "dstArray", when=("dstMemoryType", 3)),
       F(CUcontext, "dstContext"),
       F(SIZE, "dstPitch"),
       F(SIZE, "dstHeight"),
       F(SIZE, "WidthInBytes"),
       F(SIZE, "Height"),
       F(SIZE, "Depth"))

enum("CUmemcpySrcAccessOrder",
     CU_MEMCPY_SRC_ACCESS_ORDER_INVALID=0x0, CU_MEMCPY_SRC_ACCESS_ORDER_STREAM=0x1,
     CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL=0x2, CU_MEMCPY_SRC_ACCESS_ORDER_ANY=0x3,
     CU_MEMCPY_SRC_ACCESS_ORDER_MAX=0x7fffffff)

struct("CUmemcpyAttributes_v1",
       F(CUmemcpySrcAccessOrder, "srcAccessOrder"),
       F(CUmemLocation_v1, "srcLocHint"),
       F(CUmemLocation_v1, "dstLocHint"),
       F(U32, "flags"))

enum("CUmemcpy3DOperandType",
     CU_MEMCPY_OPERAND_TYPE_POINTER=0x1, CU_MEMCPY_OPERAND_TYPE_ARRAY=0x2,
     CU_MEMCPY_OPERAND_TYPE_MAX=0x7fffffff)

struct("CUoffset3D_v1",
       F(SIZE, "x"),
       F(SIZE, "y"),
       F(SIZE, "z"))

struct("CUmemcpy3DOperand_v1",
       F(CUmemcpy3DOperandType, "type"),
       F(inner("union",
               F(inner("struct",
                       F(CUdeviceptr, "ptr"),
                       F(SIZE, "rowLength"),
                       F(SIZE, "layerHeight"),
                       F(CUmemLocation_v1, "locHint")), "ptr"),
               F(inner("struct",
                       F(CUarray, "array"),
                       F(CUoffset3D_v1, "offset")), "array"),
               cases={1: "ptr", 2: "array"}), "op", tag="type"))

struct("CUextent3D_v1",
       F(SIZE, "width"),
       F(SIZE, "height"),
       F(SIZE, "depth"))

struct("CUDA_MEMCPY3D_BATCH_OP_v1",
       F(CUmemcpy3DOperand_v1, "src"),
       F(CUmemcpy3DOperand_v1, "dst"),
       F(CUextent3D_v1, "extent"),
       F(CUmemcpySrcAccessOrder, "srcAccessOrder"),
       F(U32, "flags"))

alias("cuuint32_t", U32)

enum("CUmemDecompressAlgorithm",
     CU_MEM_DECOMPRESS_UNSUPPORTED=0, CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE=1,
     CU_MEM_DECOMPRESS_ALGORITHM_SNAPPY=2, CU_MEM_DECOMPRESS_ALGORITHM_LZ4=4)

struct("CUmemDecompressParams",
       F(SIZE, "srcNumBytes"),
       F(SIZE, "dstNumBytes"),
       F(Ptr("cuuint32_t *", device=True), "dstActBytes"),
       F(CDPTR, "src"),
       F(DPTR, "dst"),
       F(CUmemDecompressAlgorithm, "algo"),
       F(U8, "padding", 20))

call("cuMemcpyHtoD", In(CUdeviceptr_v1, "dstDevice"), In(Bytes("ByteCount"), "srcHost"),
     In(U32, "ByteCount"), since=2000, blocks=True, does="copy", size="ByteCount")
call("cuMemcpyHtoD_v2", In(CUdeviceptr, "dstDevice"), In(Bytes("ByteCount"), "srcHost"),
     In(SIZE, "ByteCount"), since=3020, ptds=7000, blocks=True, does="copy", size="ByteCount")
call("cuMemcpyDtoH", Out(Bytes("ByteCount"), "dstHost"), In(CUdeviceptr_v1, "srcDevice"),
     In(U32, "ByteCount"), since=2000, blocks=True, does="copy", size="ByteCount")
call("cuMemcpyDtoH_v2", Out(Bytes("ByteCount"), "dstHost"), In(CUdeviceptr, "srcDevice"),
     In(SIZE, "ByteCount"), since=3020, ptds=7000, blocks=True, does="copy", size="ByteCount")
call("cuMemcpyDtoD", In(CUdeviceptr_v1, "dstDevice"), In(CUdeviceptr_v1, "srcDevice"),
     In(U32, "ByteCount"), since=2000, blocks=True, does="copy", size="ByteCount")
call("cuMemcpyDtoD_v2", In(CUdeviceptr, "dstDevice"), In(CUdeviceptr, "srcDevice"),
     In(SIZE, "ByteCount"), since=3020, ptds=7000, blocks=True, does="copy", size="ByteCount")
call("cuMemcpyDtoA", In(CUarray, "dstArray"), In(U32, "dstOffset"), In(CUdeviceptr_v1, "srcDevice"),
     In(U32, "ByteCount"), since=2000, blocks=True, does="copy", size="ByteCount")
call("cuMemcpyDtoA_v2", In(CUarray, "dstArray"), In(SIZE, "dstOffset"),
     In(CUdeviceptr, "srcDevice"), In(SIZE, "ByteCount"), since=3020, ptds=7000, blocks=True,
     does="copy", size="ByteCount")
call("cuMemcpyAtoD", In(CUdeviceptr_v1, "dstDevice"), In(CUarray, "srcArray"), In(U32, "srcOffset"),
     In(U32, "ByteCount"), since=2000, blocks=True, does="copy", size="ByteCount")
call("cuMemcpyAtoD_v2", In(CUdeviceptr, "dstDevice"), In(CUarray, "srcArray"),
     In(SIZE, "srcOffset"), In(SIZE, "ByteCount"), since=3020, ptds=7000, blocks=True, does="copy",
     size="ByteCount")
call("cuMemcpyHtoA", In(CUarray, "dstArray"), In(U32, "dstOffset"),
     In(Bytes("ByteCount"), "srcHost"), In(U32, "ByteCount"), since=2000, blocks=True, does="copy",
     size="ByteCount")
call("cuMemcpyHtoA_v2", In(CUarray, "dstArray"), In(SIZE, "dstOffset"),
     In(Bytes("ByteCount"), "srcHost"), In(SIZE, "ByteCount"), since=3020, ptds=7000, blocks=True,
     does="copy", size="ByteCount")
call("cuMemcpyAtoH", Out(Bytes("ByteCount"), "dstHost"), In(CUarray, "srcArray"),
     In(U32, "srcOffset"), In(U32, "ByteCount"), since=2000, blocks=True, does="copy",
     size="ByteCount")
call("cuMemcpyAtoH_v2", Out(Bytes("ByteCount"), "dstHost"), In(CUarray, "srcArray"),
     In(SIZE, "srcOffset"), In(SIZE, "ByteCount"), since=3020, ptds=7000, blocks=True, does="copy",
     size="ByteCount")
call("cuMemcpyAtoA", In(CUarray, "dstArray"), In(U32, "dstOffset"), In(CUarray, "srcArray"),
     In(U32, "srcOffset"), In(U32, "ByteCount"), since=2000, blocks=True, does="copy",
     size="ByteCount")
call("cuMemcpyAtoA_v2", In(CUarray, "dstArray"), In(SIZE, "dstOffset"), In(CUarray, "srcArray"),
     In(SIZE, "srcOffset"), In(SIZE, "ByteCount"), since=3020, ptds=7000, blocks=True, does="copy",
     size="ByteCount")
call("cuMemcpyHtoAAsync", In(CUarray, "dstArray"), In(U32, "dstOffset"),
     In(CPTR, "srcHost", by_hand="may be read after the call has returned"), In(U32, "ByteCount"),
     In(CUstream, "hStream"), since=2000, does="copy", size="ByteCount")
call("cuMemcpyHtoAAsync_v2", In(CUarray, "dstArray"), In(SIZE, "dstOffset"),
     In(CPTR, "srcHost", by_hand="may be read after the call has returned"), In(SIZE, "ByteCount"),
     In(CUstream, "hStream"), since=3020, ptds=7000, does="copy", size="ByteCount")
call("cuMemcpyAtoHAsync", In(PTR, "dstHost", by_hand="written after the call has returned"),
     In(CUarray, "srcArray"), In(U32, "srcOffset"), In(U32, "ByteCount"), In(CUstream, "hStream"),
     since=2000, does="copy", size="ByteCount")
call("cuMemcpyAtoHAsync_v2", In(PTR, "dstHost", by_hand="written after the call has returned"),
     In(CUarray, "srcArray"), In(SIZE, "srcOffset"), In(SIZE, "ByteCount"), In(CUstream, "hStream"),
     since=3020, ptds=7000, does="copy", size="ByteCount")
call("cuMemcpy2D", In(Ref(CUDA_MEMCPY2D_v1), "pCopy"), since=2000, blocks=True, does="copy")
call("cuMemcpy2D_v2", In(Ref(CUDA_MEMCPY2D_v2), "pCopy"), since=3020, ptds=7000, blocks=True,
     does="copy")
call("cuMemcpy2DUnaligned", In(Ref(CUDA_MEMCPY2D_v1), "pCopy"), since=2000, blocks=True,
     does="copy")
call("cuMemcpy2DUnaligned_v2", In(Ref(CUDA_MEMCPY2D_v2), "pCopy"), since=3020, ptds=7000,
     blocks=True, does="copy")
call("cuMemcpy3D", In(Ref(CUDA_MEMCPY3D_v1), "pCopy"), since=2000, blocks=True, does="copy")
call("cuMemcpy3D_v2", In(Ref(CUDA_MEMCPY3D_v2), "pCopy"), since=3020, ptds=7000, blocks=True,
     does="copy")
call("cuMemcpyHtoDAsync", In(CUdeviceptr_v1, "dstDevice"),
     In(CPTR, "srcHost", by_hand="may be read after the call has returned"), In(U32, "ByteCount"),
     In(CUstream, "hStream"), since=2000, does="copy", size="ByteCount")
call("cuMemcpyHtoDAsync_v2", In(CUdeviceptr, "dstDevice", extent="ByteCount"),
     In(CPTR, "srcHost", extent="ByteCount", by_hand="may be read after the call has returned"),
     In(SIZE, "ByteCount"), In(CUstream, "hStream"), since=3020, ptds=7000, does="copy",
     size="ByteCount", defer=Roles("copy"))
call("cuMemcpyDtoHAsync", In(PTR, "dstHost", by_hand="written after the call has returned"),
     In(CUdeviceptr_v1, "srcDevice"), In(U32, "ByteCount"), In(CUstream, "hStream"), since=2000,
     does="copy", size="ByteCount")
call("cuMemcpyDtoHAsync_v2",
     In(PTR, "dstHost", extent="ByteCount", by_hand="written after the call has returned"),
     In(CUdeviceptr, "srcDevice", extent="ByteCount"), In(SIZE, "ByteCount"),
     In(CUstream, "hStream"), since=3020, ptds=7000, does="copy", size="ByteCount",
     defer=Roles("copy"))
call("cuMemcpyDtoDAsync", In(CUdeviceptr_v1, "dstDevice"), In(CUdeviceptr_v1, "srcDevice"),
     In(U32, "ByteCount"), In(CUstream, "hStream"), since=3000, does="copy", size="ByteCount")
call("cuMemcpyDtoDAsync_v2", In(CUdeviceptr, "dstDevice", extent="ByteCount"),
     In(CUdeviceptr, "srcDevice", extent="ByteCount"), In(SIZE, "ByteCount"),
     In(CUstream, "hStream"), since=3020, ptds=7000, does="copy", size="ByteCount",
     defer=Roles("copy"))
call("cuMemcpy2DAsync", In(Ref(CUDA_MEMCPY2D_v1), "pCopy"), In(CUstream, "hStream"), since=2000,
     does="copy")
call("cuMemcpy2DAsync_v2", In(Ref(CUDA_MEMCPY2D_v2), "pCopy"), In(CUstream, "hStream"), since=3020,
     ptds=7000, does="copy", defer=Roles("copy", copy_2d="pCopy", at="&pCopy"))
call("cuMemcpy3DAsync", In(Ref(CUDA_MEMCPY3D_v1), "pCopy"), In(CUstream, "hStream"), since=2000,
     does="copy")
call("cuMemcpy3DAsync_v2", In(Ref(CUDA_MEMCPY3D_v2), "pCopy"), In(CUstream, "hStream"), since=3020,
     ptds=7000, does="copy", defer=Roles("copy", copy_3d="pCopy", at="&pCopy"),
     travel=Roles("copy", "pCopy"))
call("cuMemsetD8", In(CUdeviceptr_v1, "dstDevice"), In(U8, "uc"), In(U32, "N"), since=2000,
     does="fill")
call("cuMemsetD8_v2", In(CUdeviceptr, "dstDevice"), In(U8, "uc"), In(SIZE, "N"), since=3020,
     ptds=7000, does="fill")
call("cuMemsetD16", In(CUdeviceptr_v1, "dstDevice"), In(U16, "us"), In(U32, "N"), since=2000,
     does="fill")
call("cuMemsetD16_v2", In(CUdeviceptr, "dstDevice"), In(U16, "us"), In(SIZE, "N"), since=3020,
     ptds=7000, does="fill")
call("cuMemsetD32", In(CUdeviceptr_v1, "dstDevice"), In(U32, "ui"), In(U32, "N"), since=2000,
     does="fill")
call("cuMemsetD32_v2", In(CUdeviceptr, "dstDevice"), In(U32, "ui"), In(SIZE, "N"), since=3020,
     ptds=7000, does="fill")
call("cuMemsetD2D8", In(CUdeviceptr_v1, "dstDevice"), In(U32, "dstPitch"), In(U8, "uc"),
     In(U32, "Width"), In(U32, "Height"), since=2000, does="fill")
call("cuMemsetD2D8_v2", In(CUdeviceptr, "dstDevice"), In(SIZE, "dstPitch"), In(U8, "uc"),
     In(SIZE, "Width"), In(SIZE, "Height"), since=3020, ptds=7000, does="fill")
call("cuMemsetD2D16", In(CUdeviceptr_v1, "dstDevice"), In(U32, "dstPitch"), In(U16, "us"),
     In(U32, "Width"), In(U32, "Height"), since=2000, does="fill")
call("cuMemsetD2D16_v2", In(CUdeviceptr, "dstDevice"), In(SIZE, "dstPitch"), In(U16, "us"),
     In(SIZE, "Width"), In(SIZE, "Height"), since=3020, ptds=7000, does="fill")
call("cuMemsetD2D32", In(CUdeviceptr_v1, "dstDevice"), In(U32, "dstPitch"), In(U32, "ui"),
     In(U32, "Width"), In(U32, "Height"), since=2000, does="fill")
call("cuMemsetD2D32_v2", In(CUdeviceptr, "dstDevice"), In(SIZE, "dstPitch"), In(U32, "ui"),
     In(SIZE, "Width"), In(SIZE, "Height"), since=3020, ptds=7000, does="fill")
call("cuMemcpy", In(CUdeviceptr, "dst"), In(CUdeviceptr, "src"), In(SIZE, "ByteCount"), since=4000,
     ptds=7000, blocks=True, does="copy", size="ByteCount")
call("cuMemcpyAsync", In(CUdeviceptr, "dst", extent="ByteCount"),
     In(CUdeviceptr, "src", extent="ByteCount"), In(SIZE, "ByteCount"), In(CUstream, "hStream"),
     since=4000, ptds=7000, does="copy", size="ByteCount", defer=Roles("copy", any=1), travel=True)
call("cuMemcpyPeer", In(CUdeviceptr, "dstDevice"), In(CUcontext, "dstContext"),
     In(CUdeviceptr, "srcDevice"), In(CUcontext, "srcContext"), In(SIZE, "ByteCount"), since=4000,
     ptds=7000, blocks=True, does="copy", size="ByteCount")
call("cuMemcpyPeerAsync", In(CUdeviceptr, "dstDevice"), In(CUcontext, "dstContext"),
     In(CUdeviceptr, "srcDevice"), In(CUcontext, "srcContext"), In(SIZE, "ByteCount"),
     In(CUstream, "hStream"), since=4000, ptds=7000, does="copy", size="ByteCount")
call("cuMemcpy3DPeer", In(Ref(CUDA_MEMCPY3D_PEER_v1), "pCopy"), since=4000, ptds=7000, blocks=True,
     does="copy")
call("cuMemcpy3DPeerAsync", In(Ref(CUDA_MEMCPY3D_PEER_v1), "pCopy"), In(CUstream, "hStream"),
     since=4000, ptds=7000, does="copy")
call("cuMemcpyBatchAsync", In(Array(CUdeviceptr, "count", mut=True), "dsts"),
     In(Array(CUdeviceptr, "count", mut=True), "srcs"), In(Array(SIZE, "count", mut=True), "sizes"),
     In(SIZE, "count"), In(Array(CUmemcpyAttributes_v1, "numAttrs", mut=True), "attrs"),
     In(Array(SIZE, "numAttrs", mut=True), "attrsIdxs"), In(SIZE, "numAttrs"),
     Out(SIZE, "failIdx", opt=True, on="failure"), In(CUstream, "hStream"), since=12080, ptds=True,
     does="copy")
call("cuMemcpyBatchAsync_v2", In(Array(CUdeviceptr, "count", mut=True), "dsts"),
     In(Array(CUdeviceptr, "count", mut=True), "srcs"), In(Array(SIZE, "count", mut=True), "sizes"),
     In(SIZE, "count"), In(Array(CUmemcpyAttributes_v1, "numAttrs", mut=True), "attrs"),
     In(Array(SIZE, "numAttrs", mut=True), "attrsIdxs"), In(SIZE, "numAttrs"),
     In(CUstream, "hStream"), since=13000, ptds=True, does="copy")
call("cuMemcpy3DBatchAsync", In(SIZE, "numOps"),
     In(Array(CUDA_MEMCPY3D_BATCH_OP_v1, "numOps", mut=True), "opList"),
     Out(SIZE, "failIdx", opt=True, on="failure"), In(U64, "flags"), In(CUstream, "hStream"),
     since=12080, ptds=True, does="copy")
call("cuMemcpy3DBatchAsync_v2", In(SIZE, "numOps"),
     In(Array(CUDA_MEMCPY3D_BATCH_OP_v1, "numOps", mut=True), "opList"), In(U64, "flags"),
     In(CUstream, "hStream"), since=13000, ptds=True, does="copy")
call("cuMemsetD8Async", In(CUdeviceptr, "dstDevice", extent="N"), In(U8, "uc"), In(SIZE, "N"),
     In(CUstream, "hStream"), since=3020, ptds=7000, does="fill", defer=Roles("copy"),
     travel=True)
call("cuMemsetD16Async", In(CUdeviceptr, "dstDevice", extent=Span("N", of=2)), In(U16, "us"),
     In(SIZE, "N"), In(CUstream, "hStream"), since=3020, ptds=7000, does="fill",
     defer=Roles("copy"), travel=True)
call("cuMemsetD32Async", In(CUdeviceptr, "dstDevice", extent=Span("N", of=4)), In(U32, "ui"),
     In(SIZE, "N"), In(CUstream, "hStream"), since=3020, ptds=7000, does="fill",
     defer=Roles("copy"), travel=True)
call("cuMemsetD2D8Async", In(CUdeviceptr, "dstDevice", extent=Span("Width", "Height", "dstPitch")),
     In(SIZE, "dstPitch"), In(U8, "uc"), In(SIZE, "Width"), In(SIZE, "Height"),
     In(CUstream, "hStream"), since=3020, ptds=7000, does="fill", defer=Roles("copy"),
     travel=True)
call("cuMemsetD2D16Async",
     In(CUdeviceptr, "dstDevice", extent=Span("Width", "Height", "dstPitch", of=2)),
     In(SIZE, "dstPitch"), In(U16, "us"), In(SIZE, "Width"), In(SIZE, "Height"),
     In(CUstream, "hStream"), since=3020, ptds=7000, does="fill", defer=Roles("copy"),
     travel=True)
call("cuMemsetD2D32Async",
     In(CUdeviceptr, "dstDevice", extent=Span("Width", "Height", "dstPitch", of=4)),
     In(SIZE, "dstPitch"), In(U32, "ui"), In(SIZE, "Width"), In(SIZE, "Height"),
     In(CUstream, "hStream"), since=3020, ptds=7000, does="fill", defer=Roles("copy"),
     travel=True)
call("cuMemPrefetchAsync", In(CUdeviceptr, "devPtr", extent="count"), In(SIZE, "count"),
     In(CUdevice, "dstDevice"), In(CUstream, "hStream"), since=8000, ptds=True, does="move",
     defer=Roles("copy", prefetch=1, address="devPtr", bytes="count", device="dstDevice"))
call("cuMemPrefetchAsync_v2", In(CUdeviceptr, "devPtr", extent="count"), In(SIZE, "count"),
     In(CUmemLocation_v1, "location"), In(U32, "flags"), In(CUstream, "hStream"), since=12020,
     ptds=True, does="move",
     defer=Roles("copy", prefetch=1, address="devPtr", bytes="count", where="location.type",
                 device="location.id", flags="flags"))
call("cuMemPrefetchBatchAsync", In(Array(CUdeviceptr, "count", mut=True), "dptrs"),
     In(Array(SIZE, "count", mut=True), "sizes"), In(SIZE, "count"),
     In(Array(CUmemLocation_v1, "numPrefetchLocs", mut=True), "prefetchLocs"),
     In(Array(SIZE, "numPrefetchLocs", mut=True), "prefetchLocIdxs"), In(SIZE, "numPrefetchLocs"),
     In(U64, "flags"), In(CUstream, "hStream"), since=13000, ptds=True, does="move")
call("cuMemDiscardBatchAsync", In(Array(CUdeviceptr, "count", mut=True), "dptrs"),
     In(Array(SIZE, "count", mut=True), "sizes"), In(SIZE, "count"), In(U64, "flags"),
     In(CUstream, "hStream"), since=13000, ptds=True, does="order")
call("cuMemDiscardAndPrefetchBatchAsync", In(Array(CUdeviceptr, "count", mut=True), "dptrs"),
     In(Array(SIZE, "count", mut=True), "sizes"), In(SIZE, "count"),
     In(Array(CUmemLocation_v1, "numPrefetchLocs", mut=True), "prefetchLocs"),
     In(Array(SIZE, "numPrefetchLocs", mut=True), "prefetchLocIdxs"), In(SIZE, "numPrefetchLocs"),
     In(U64, "flags"), In(CUstream, "hStream"), since=13000, ptds=True, does="move")
call("cuMemBatchDecompressAsync",
     In(Array(CUmemDecompressParams, "count", mut=True), "paramsArray"), In(SIZE, "count"),
     In(U32, "flags"), Out(SIZE, "errorIndex", opt=True), In(CUstream, "stream"), since=12060,
     ptds=True, does="move")
