"""External memory and semaphores, graphics resources."""

handle("CUexternalMemory", "externalMemory", "struct CUextMemory_st")

enum("CUexternalMemoryHandleType",
     CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD=1,
     CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32=2,
     CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_KMT=3,
     CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP=4,
     CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE=5,
     CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE=6,
     CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE_KMT=7,
     CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF=8, CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD=9)

struct("CUDA_EXTERNAL_MEMORY_HANDLE_DESC_v1",
       F(CUexternalMemoryHandleType, "type"),
       F(inner("union",
               F(I32, "fd"),
               F(inner("struct",
                       F(PTR, "handle"),
                       F(CPTR, "name")), "win32"),
               F(CPTR, "nvSciBufObject"),
               cases={1: "fd", 2: "win32", 3: "win32", 8: "nvSciBufObject"}), "handle", tag="type"),
       F(U64, "size"),
       F(U32, "flags"),
       F(U32, "reserved", 16))

struct("CUDA_EXTERNAL_MEMORY_BUFFER_DESC_v1",
       F(U64, "offset"),
       F(U64, "size"),
       F(U32, "flags"),
       F(U32, "reserved", 16))

struct("CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC_v1",
       F(U64, "offset"),
       F(CUDA_ARRAY3D_DESCRIPTOR_v2, "arrayDesc"),
       F(U32, "numLevels"),
       F(U32, "reserved", 16))

enum("CUexternalSemaphoreHandleType",
     CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD=1,
     CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32=2,
     CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32_KMT=3,
     CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE=4,
     CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_FENCE=5,
     CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_NVSCISYNC=6,
     CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX=7,
     CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX_KMT=8,
     CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD=9,
     CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32=10)

struct("CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_v1",
       F(CUexternalSemaphoreHandleType, "type"),
       F(inner("union",
               F(I32, "fd"),
               F(inner("struct",
                       F(PTR, "handle"),
                       F(CPTR, "name")), "win32"),
               F(CPTR, "nvSciSyncObj"),
               cases={1: "fd", 2: "win32", 3: "win32", 6: "nvSciSyncObj", 9: "fd"}),
         "handle", tag="type"),
       F(U32, "flags"),
       F(U32, "reserved", 16))

handle("CUgraphicsResource", "graphicsResource")

call("cuDeviceGetNvSciSyncAttributes", In(PTR, "nvSciSyncAttrList"), In(CUdevice, "dev"),
     In(I32, "flags"), since=10020, after="none")
call("cuImportExternalMemory", Out(CUexternalMemory, "extMem_out", new="externalMemory"),
     In(Ref(CUDA_EXTERNAL_MEMORY_HANDLE_DESC_v1), "memHandleDesc"), since=10000, does="make")
call("cuExternalMemoryGetMappedBuffer", Out(CUdeviceptr, "devPtr", new="memory"),
     In(CUexternalMemory, "extMem"), In(Ref(CUDA_EXTERNAL_MEMORY_BUFFER_DESC_v1), "bufferDesc"),
     since=10000, does="make")
call("cuExternalMemoryGetMappedMipmappedArray", Out(CUmipmappedArray, "mipmap", new="mipmap"),
     In(CUexternalMemory, "extMem"),
     In(Ref(CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC_v1), "mipmapDesc"), since=10000, does="make")
call("cuDestroyExternalMemory", In(CUexternalMemory, "extMem", free="externalMemory"), since=10000,
     does="end")
call("cuImportExternalSemaphore", Out(CUexternalSemaphore, "extSem_out", new="externalSemaphore"),
     In(Ref(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_v1), "semHandleDesc"), since=10000, does="make")
call("cuDestroyExternalSemaphore", In(CUexternalSemaphore, "extSem", free="externalSemaphore"),
     since=10000, does="end")
call("cuGraphicsUnregisterResource", In(CUgraphicsResource, "resource", free="graphicsResource"),
     since=3000, does="end")
call("cuGraphicsSubResourceGetMappedArray", Out(CUarray, "pArray"),
     In(CUgraphicsResource, "resource"), In(U32, "arrayIndex"), In(U32, "mipLevel"), since=3000,
     does="ask")
call("cuGraphicsResourceGetMappedMipmappedArray", Out(CUmipmappedArray, "pMipmappedArray"),
     In(CUgraphicsResource, "resource"), since=5000, does="ask")
call("cuGraphicsResourceGetMappedPointer", Out(CUdeviceptr_v1, "pDevPtr"), Out(U32, "pSize"),
     In(CUgraphicsResource, "resource"), since=3000, does="ask")
call("cuGraphicsResourceGetMappedPointer_v2", Out(CUdeviceptr, "pDevPtr"), Out(SIZE, "pSize"),
     In(CUgraphicsResource, "resource"), since=3020, does="ask")
call("cuGraphicsResourceSetMapFlags", In(CUgraphicsResource, "resource"), In(U32, "flags"),
     since=3000, does="set")
call("cuGraphicsResourceSetMapFlags_v2", In(CUgraphicsResource, "resource"), In(U32, "flags"),
     since=6050, does="set")
call("cuGraphicsMapResources", In(U32, "count"),
     In(Array(CUgraphicsResource, "count", mut=True), "resources"), In(CUstream, "hStream"),
     since=3000, ptds=7000, does="order")
call("cuGraphicsUnmapResources", In(U32, "count"),
     In(Array(CUgraphicsResource, "count", mut=True), "resources"), In(CUstream, "hStream"),
     since=3000, ptds=7000, does="order")
call("cuSignalExternalSemaphoresAsync", In(Array(CUexternalSemaphore, "numExtSems"), "extSemArray"),
     In(Array(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_v1, "numExtSems"), "paramsArray"),
     In(U32, "numExtSems"), In(CUstream, "stream"), since=10000, ptds=True, does="order")
call("cuWaitExternalSemaphoresAsync", In(Array(CUexternalSemaphore, "numExtSems"), "extSemArray"),
     In(Array(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_v1, "numExtSems"), "paramsArray"),
     In(U32, "numExtSems"), In(CUstream, "stream"), since=10000, ptds=True, does="order")
