"""Memory: allocation, host memory, virtual memory, pools, multicast, IPC, pointers."""

handle("CUmemoryPool", "pool", "struct CUmemPoolHandle_st")

struct("CUipcEventHandle_v1",
       F(CHAR, "reserved", 64))

struct("CUipcMemHandle_v1",
       F(CHAR, "reserved", 64))

enum("CUmemRangeHandleType",
     CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD=0x1, CU_MEM_RANGE_HANDLE_TYPE_MAX=0x7fffffff)

alias("CUmemGenericAllocationHandle_v1", U64, "h.physical")

alias("CUmemGenericAllocationHandle", CUmemGenericAllocationHandle_v1, "h.physical")

enum("CUmemAllocationType",
     CU_MEM_ALLOCATION_TYPE_INVALID=0x0, CU_MEM_ALLOCATION_TYPE_PINNED=0x1,
     CU_MEM_ALLOCATION_TYPE_MANAGED=0x2, CU_MEM_ALLOCATION_TYPE_MAX=0x7fffffff)

enum("CUmemAllocationHandleType",
     CU_MEM_HANDLE_TYPE_NONE=0x0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR=0x1,
     CU_MEM_HANDLE_TYPE_WIN32=0x2, CU_MEM_HANDLE_TYPE_WIN32_KMT=0x4,
     CU_MEM_HANDLE_TYPE_FABRIC=0x8, CU_MEM_HANDLE_TYPE_MAX=0x7fffffff)

enum("CUmemLocationType",
     CU_MEM_LOCATION_TYPE_INVALID=0x0, CU_MEM_LOCATION_TYPE_NONE=0x0,
     CU_MEM_LOCATION_TYPE_DEVICE=0x1, CU_MEM_LOCATION_TYPE_HOST=0x2,
     CU_MEM_LOCATION_TYPE_HOST_NUMA=0x3, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT=0x4,
     CU_MEM_LOCATION_TYPE_MAX=0x7fffffff)

struct("CUmemLocation_v1",
       F(CUmemLocationType, "type"),
       F(I32, "id"))

struct("CUmemAllocationProp_v1",
       F(CUmemAllocationType, "type"),
       F(CUmemAllocationHandleType, "requestedHandleTypes"),
       F(CUmemLocation_v1, "location"),
       F(PTR, "win32HandleMetaData"),
       F(inner("struct",
               F(U8, "compressionType"),
               F(U8, "gpuDirectRDMACapable"),
               F(U16, "usage"),
               F(U8, "reserved", 4)), "allocFlags"))

enum("CUmemAccess_flags",
     CU_MEM_ACCESS_FLAGS_PROT_NONE=0x0, CU_MEM_ACCESS_FLAGS_PROT_READ=0x1,
     CU_MEM_ACCESS_FLAGS_PROT_READWRITE=0x3, CU_MEM_ACCESS_FLAGS_PROT_MAX=0x7fffffff)

struct("CUmemAccessDesc_v1",
       F(CUmemLocation_v1, "location"),
       F(CUmemAccess_flags, "flags"))

enum("CUmemAllocationGranularity_flags",
     CU_MEM_ALLOC_GRANULARITY_MINIMUM=0x0, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED=0x1)

enum("CUmemPool_attribute",
     CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES=1,
     CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC=2,
     CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES=3, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD=4,
     CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT=5, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH=6,
     CU_MEMPOOL_ATTR_USED_MEM_CURRENT=7, CU_MEMPOOL_ATTR_USED_MEM_HIGH=8)

struct("CUmemPoolProps_v1",
       F(CUmemAllocationType, "allocType"),
       F(CUmemAllocationHandleType, "handleTypes"),
       F(CUmemLocation_v1, "location"),
       F(PTR, "win32SecurityAttributes"),
       F(SIZE, "maxSize"),
       F(U16, "usage"),
       F(U8, "reserved", 54))

struct("CUmemPoolPtrExportData_v1",
       F(U8, "reserved", 64))

struct("CUmulticastObjectProp_v1",
       F(U32, "numDevices"),
       F(SIZE, "size"),
       F(U64, "handleTypes"),
       F(U64, "flags"))

enum("CUmulticastGranularity_flags",
     CU_MULTICAST_GRANULARITY_MINIMUM=0x0, CU_MULTICAST_GRANULARITY_RECOMMENDED=0x1)

enum("CUpointer_attribute",
     CU_POINTER_ATTRIBUTE_CONTEXT=1, CU_POINTER_ATTRIBUTE_MEMORY_TYPE=2,
     CU_POINTER_ATTRIBUTE_DEVICE_POINTER=3, CU_POINTER_ATTRIBUTE_HOST_POINTER=4,
     CU_POINTER_ATTRIBUTE_P2P_TOKENS=5, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS=6,
     CU_POINTER_ATTRIBUTE_BUFFER_ID=7, CU_POINTER_ATTRIBUTE_IS_MANAGED=8,
     CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL=9,
     CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE=10,
     CU_POINTER_ATTRIBUTE_RANGE_START_ADDR=11, CU_POINTER_ATTRIBUTE_RANGE_SIZE=12,
     CU_POINTER_ATTRIBUTE_MAPPED=13, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES=14,
     CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE=15, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS=16,
     CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE=17, CU_POINTER_ATTRIBUTE_MAPPING_SIZE=18,
     CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR=19, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID=20,
     CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE=21)

enum("CUmem_advise",
     CU_MEM_ADVISE_SET_READ_MOSTLY=1, CU_MEM_ADVISE_UNSET_READ_MOSTLY=2,
     CU_MEM_ADVISE_SET_PREFERRED_LOCATION=3, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION=4,
     CU_MEM_ADVISE_SET_ACCESSED_BY=5, CU_MEM_ADVISE_UNSET_ACCESSED_BY=6)

enum("CUmem_range_attribute",
     CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY=1, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION=2,
     CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY=3, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION=4,
     CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE=5,
     CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID=6,
     CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE=7,
     CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID=8)

call("cuDeviceSetMemPool", In(CUdevice, "dev"), In(CUmemoryPool, "pool"), since=11020, does="set",
     memory=Roles("pool_choose"))
call("cuDeviceGetMemPool", Out(CUmemoryPool, "pool"), In(CUdevice, "dev"), since=11020,
     after="none",
     memory=Roles("pool_seen", out="*pool", where="CU_MEM_LOCATION_TYPE_DEVICE", device="dev"))
call("cuDeviceGetDefaultMemPool", Out(CUmemoryPool, "pool_out"), In(CUdevice, "dev"), since=11020,
     after="none",
     memory=Roles("pool_seen", out="*pool_out", where="CU_MEM_LOCATION_TYPE_DEVICE", device="dev"))
call("cuMemGetInfo", Out(U32, "free"), Out(U32, "total"), since=2000, does="ask",
     memory=Roles("tell_free", free="*free", total="*total"))
call("cuMemGetInfo_v2", Out(SIZE, "free"), Out(SIZE, "total"), since=3020, does="ask",
     memory=Roles("tell_free", free="*free", total="*total"),
     null={"free": "HED_NULL_MEMORY", "total": "HED_NULL_MEMORY"})
call("cuMemAlloc", Out(CUdeviceptr_v1, "dptr", new="memory"), In(U32, "bytesize"), since=2000,
     does="make", memory=Roles("alloc", out="*dptr", bytes="bytesize"))
call("cuMemAlloc_v2", Out(CUdeviceptr, "dptr", new="memory"), In(SIZE, "bytesize"), since=3020,
     does="make", memory=Roles("alloc", out="*dptr", bytes="bytesize"),
     null=Roles("alloc", "dptr", "bytesize"))
call("cuMemAllocPitch", Out(CUdeviceptr_v1, "dptr", new="memory"), Out(U32, "pPitch"),
     In(U32, "WidthInBytes"), In(U32, "Height"), In(U32, "ElementSizeBytes"), since=2000,
     does="make",
     memory=Roles("alloc_rows", out="*dptr", pitch="*pPitch", bytes="WidthInBytes", rows="Height"))
call("cuMemAllocPitch_v2", Out(CUdeviceptr, "dptr", new="memory"), Out(SIZE, "pPitch"),
     In(SIZE, "WidthInBytes"), In(SIZE, "Height"), In(U32, "ElementSizeBytes"), since=3020,
     does="make",
     memory=Roles("alloc_rows", out="*dptr", pitch="*pPitch", bytes="WidthInBytes", rows="Height"))
call("cuMemFree", In(CUdeviceptr_v1, "dptr", free="memory"), since=2000, blocks=True, does="end",
     memory=Roles("free", key="dptr"))
call("cuMemFree_v2", In(CUdeviceptr, "dptr", free="memory"), since=3020, blocks=True, does="end",
     memory=Roles("free", key="dptr"))
call("cuMemGetAddressRange", Out(CUdeviceptr_v1, "pbase", opt=True), Out(U32, "psize", opt=True),
     In(CUdeviceptr_v1, "dptr"), since=2000, after="none")
call("cuMemGetAddressRange_v2", Out(CUdeviceptr, "pbase", opt=True), Out(SIZE, "psize", opt=True),
     In(CUdeviceptr, "dptr"), since=3020, after="none")
call("cuMemAllocHost", Out(PTR, "pp", new="host"), In(U32, "bytesize"), since=2000, does="make")
call("cuMemAllocHost_v2", Out(PTR, "pp", new="host"), In(SIZE, "bytesize"), since=3020, does="make",
     null=Roles("alloc_host", "pp", "bytesize"))
call("cuMemFreeHost", In(PTR, "p", free="host"), since=2000, blocks=True, does="end",
     null=Roles("free_host", "p"))
call("cuMemHostAlloc", Out(PTR, "pp", new="host"), In(SIZE, "bytesize"), In(U32, "Flags"),
     since=2020, does="make", null=Roles("alloc_host", "pp", "bytesize"))
call("cuMemHostGetDevicePointer", Out(CUdeviceptr_v1, "pdptr"), In(PTR, "p"), In(U32, "Flags"),
     since=2020, after="none")
call("cuMemHostGetDevicePointer_v2", Out(CUdeviceptr, "pdptr"), In(PTR, "p"), In(U32, "Flags"),
     since=3020, after="none")
call("cuMemHostGetFlags", Out(U32, "pFlags"), In(PTR, "p"), since=2030, after="none")
call("cuMemAllocManaged", Out(CUdeviceptr, "dptr", new="memory"), In(SIZE, "bytesize"),
     In(U32, "flags"), since=6000, does="make",
     memory=Roles("alloc", out="*dptr", bytes="bytesize"),
     null=Roles("refuse", "CUDA_ERROR_NOT_SUPPORTED"))
call("cuIpcGetEventHandle", Out(CUipcEventHandle_v1, "pHandle"), In(CUevent, "event"), since=4010,
     does="ask")
call("cuIpcOpenEventHandle", Out(CUevent, "phEvent", new="event"),
     In(CUipcEventHandle_v1, "handle"), since=4010, does="make")
call("cuIpcGetMemHandle", Out(CUipcMemHandle_v1, "pHandle"), In(CUdeviceptr, "dptr"), since=4010,
     does="ask")
call("cuIpcOpenMemHandle", Out(CUdeviceptr, "pdptr", new="memory"), In(CUipcMemHandle_v1, "handle"),
     In(U32, "Flags"), since=4010, does="make")
call("cuIpcOpenMemHandle_v2", Out(CUdeviceptr, "pdptr", new="memory"),
     In(CUipcMemHandle_v1, "handle"), In(U32, "Flags"), since=11000, does="make")
call("cuIpcCloseMemHandle", In(CUdeviceptr, "dptr", free="memory"), since=4010, blocks=True,
     does="end")
call("cuMemHostRegister", In(PTR, "p"), In(SIZE, "bytesize"), In(U32, "Flags"), since=4000,
     does="set")
call("cuMemHostRegister_v2", In(PTR, "p"), In(SIZE, "bytesize"), In(U32, "Flags"), since=6050,
     does="set")
call("cuMemHostUnregister", In(PTR, "p"), since=4000, blocks=True, does="set")
call("cuMemGetHandleForAddressRange",
     In(PTR, "handle", by_hand="what it is depends on the handle type", fills=True),
     In(CUdeviceptr, "dptr"), In(SIZE, "size"), In(CUmemRangeHandleType, "handleType"),
     In(U64, "flags"), since=11070, does="ask")
call("cuMemAddressReserve", Out(CUdeviceptr, "ptr", new="range"), In(SIZE, "size"),
     In(SIZE, "alignment"), In(CUdeviceptr, "addr"), In(U64, "flags"), since=10020, does="make")
call("cuMemAddressFree", In(CUdeviceptr, "ptr", free="range"), In(SIZE, "size"), since=10020,
     does="end")
call("cuMemCreate", Out(CUmemGenericAllocationHandle, "handle", new="physical"), In(SIZE, "size"),
     In(Ref(CUmemAllocationProp_v1), "prop"), In(U64, "flags"), since=10020, does="make",
     memory=Roles("physical_make", out="*handle", bytes="size", where="prop.location.type",
                  device="prop.location.id"))
call("cuMemRelease", In(CUmemGenericAllocationHandle, "handle", free="physical"), since=10020,
     does="end", memory=Roles("physical_release", key="handle"))
call("cuMemMap", In(CUdeviceptr, "ptr"), In(SIZE, "size"), In(SIZE, "offset"),
     In(CUmemGenericAllocationHandle, "handle"), In(U64, "flags"), since=10020, does="set",
     memory=Roles("physical_map", key="handle", at="ptr", bytes="size"))
call("cuMemUnmap", In(CUdeviceptr, "ptr"), In(SIZE, "size"), since=10020, blocks=True, does="set",
     memory=Roles("physical_unmap", at="ptr", bytes="size"))
call("cuMemSetAccess", In(CUdeviceptr, "ptr"), In(SIZE, "size"),
     In(Array(CUmemAccessDesc_v1, "count"), "desc"), In(SIZE, "count"), since=10020, does="set")
call("cuMemGetAccess", Out(U64, "flags"), In(Ref(CUmemLocation_v1), "location"),
     In(CUdeviceptr, "ptr"), since=10020, does="ask")
call("cuMemExportToShareableHandle",
     In(PTR, "shareableHandle", by_hand="what it is depends on the handle type", fills=True),
     In(CUmemGenericAllocationHandle, "handle"), In(CUmemAllocationHandleType, "handleType"),
     In(U64, "flags"), since=10020, does="set")
call("cuMemImportFromShareableHandle", Out(CUmemGenericAllocationHandle, "handle", new="physical"),
     In(PTR, "osHandle", by_hand="what it is depends on the handle type"),
     In(CUmemAllocationHandleType, "shHandleType"), since=10020, does="make")
call("cuMemGetAllocationGranularity", Out(SIZE, "granularity"),
     In(Ref(CUmemAllocationProp_v1), "prop"), In(CUmemAllocationGranularity_flags, "option"),
     since=10020, after="none")
call("cuMemGetAllocationPropertiesFromHandle", Out(CUmemAllocationProp_v1, "prop"),
     In(CUmemGenericAllocationHandle, "handle"), since=10020, does="ask")
call("cuMemRetainAllocationHandle", Out(CUmemGenericAllocationHandle, "handle", new="physical"),
     In(DPTR, "addr"), since=11000, does="make",
     memory=Roles("physical_retain", out="*handle", at="addr"))
call("cuMemPoolTrimTo", In(CUmemoryPool, "pool"), In(SIZE, "minBytesToKeep"), since=11020,
     blocks=True, does="set", memory=Roles("pool_trim", key="pool"))
call("cuMemPoolSetAttribute", In(CUmemoryPool, "pool"), In(CUmemPool_attribute, "attr"),
     In(PTR, "value", by_hand="its size depends on the attribute"), since=11020, does="set")
call("cuMemPoolGetAttribute", In(CUmemoryPool, "pool"), In(CUmemPool_attribute, "attr"),
     In(PTR, "value", by_hand="its size depends on the attribute", fills=True), since=11020,
     does="ask")
call("cuMemPoolSetAccess", In(CUmemoryPool, "pool"), In(Array(CUmemAccessDesc_v1, "count"), "map"),
     In(SIZE, "count"), since=11020, does="set")
call("cuMemPoolGetAccess", Out(CUmemAccess_flags, "flags"), In(CUmemoryPool, "memPool"),
     In(Ref(CUmemLocation_v1, mut=True), "location"), since=11020, does="ask")
call("cuMemPoolCreate", Out(CUmemoryPool, "pool", new="pool"),
     In(Ref(CUmemPoolProps_v1), "poolProps"), since=11020, does="make",
     memory=Roles("pool_seen", out="*pool", where="poolProps.location.type",
                  device="poolProps.location.id", type="poolProps.allocType"))
call("cuMemPoolDestroy", In(CUmemoryPool, "pool", free="pool"), since=11020, blocks=True,
     does="end", memory=Roles("pool_end", key="pool"))
call("cuMemGetDefaultMemPool", Out(CUmemoryPool, "pool_out"),
     In(Ref(CUmemLocation_v1, mut=True), "location"), In(CUmemAllocationType, "type"), since=13000,
     does="ask",
     memory=Roles("pool_seen", out="*pool_out", where="location.type", device="location.id",
                  type="type"))
call("cuMemGetMemPool", Out(CUmemoryPool, "pool"), In(Ref(CUmemLocation_v1, mut=True), "location"),
     In(CUmemAllocationType, "type"), since=13000, does="ask",
     memory=Roles("pool_seen", out="*pool", where="location.type", device="location.id",
                  type="type"))
call("cuMemSetMemPool", In(Ref(CUmemLocation_v1, mut=True), "location"),
     In(CUmemAllocationType, "type"), In(CUmemoryPool, "pool"), since=13000, does="set",
     memory=Roles("pool_choose"))
call("cuMemPoolExportToShareableHandle",
     In(PTR, "handle_out", by_hand="what it is depends on the handle type", fills=True),
     In(CUmemoryPool, "pool"), In(CUmemAllocationHandleType, "handleType"), In(U64, "flags"),
     since=11020, does="set")
call("cuMemPoolImportFromShareableHandle", Out(CUmemoryPool, "pool_out", new="pool"),
     In(PTR, "handle", by_hand="what it is depends on the handle type"),
     In(CUmemAllocationHandleType, "handleType"), In(U64, "flags"), since=11020, does="make",
     memory=Roles("pool_seen", out="*pool_out"))
call("cuMemPoolExportPointer", Out(CUmemPoolPtrExportData_v1, "shareData_out"),
     In(CUdeviceptr, "ptr"), since=11020, does="set")
call("cuMemPoolImportPointer", Out(CUdeviceptr, "ptr_out", new="memory"), In(CUmemoryPool, "pool"),
     In(Ref(CUmemPoolPtrExportData_v1, mut=True), "shareData"), since=11020, does="make")
call("cuMulticastCreate", Out(CUmemGenericAllocationHandle, "mcHandle", new="physical"),
     In(Ref(CUmulticastObjectProp_v1), "prop"), since=12010, does="make")
call("cuMulticastAddDevice", In(CUmemGenericAllocationHandle, "mcHandle"), In(CUdevice, "dev"),
     since=12010, does="set")
call("cuMulticastBindMem", In(CUmemGenericAllocationHandle, "mcHandle"), In(SIZE, "mcOffset"),
     In(CUmemGenericAllocationHandle, "memHandle"), In(SIZE, "memOffset"), In(SIZE, "size"),
     In(U64, "flags"), since=12010, does="set")
call("cuMulticastBindAddr", In(CUmemGenericAllocationHandle, "mcHandle"), In(SIZE, "mcOffset"),
     In(CUdeviceptr, "memptr"), In(SIZE, "size"), In(U64, "flags"), since=12010, does="set")
call("cuMulticastUnbind", In(CUmemGenericAllocationHandle, "mcHandle"), In(CUdevice, "dev"),
     In(SIZE, "mcOffset"), In(SIZE, "size"), since=12010, does="set")
call("cuMulticastGetGranularity", Out(SIZE, "granularity"),
     In(Ref(CUmulticastObjectProp_v1), "prop"), In(CUmulticastGranularity_flags, "option"),
     since=12010, after="none")
call("cuPointerGetAttribute",
     In(PTR, "data", by_hand="its size depends on the attribute", fills=True),
     In(CUpointer_attribute, "attribute"), In(CUdeviceptr, "ptr"), since=4000, after="none")
call("cuMemAdvise", In(CUdeviceptr, "devPtr"), In(SIZE, "count"), In(CUmem_advise, "advice"),
     In(CUdevice, "device"), since=8000, does="set")
call("cuMemAdvise_v2", In(CUdeviceptr, "devPtr"), In(SIZE, "count"), In(CUmem_advise, "advice"),
     In(CUmemLocation_v1, "location"), since=12020, does="set")
call("cuMemRangeGetAttribute", Out(Bytes("dataSize"), "data"), In(SIZE, "dataSize"),
     In(CUmem_range_attribute, "attribute"), In(CUdeviceptr, "devPtr"), In(SIZE, "count"),
     since=8000, does="ask")
call("cuMemRangeGetAttributes", In(Array(PTR, "numAttributes", mut=True), "data",
        by_hand="every element is an out-buffer of its own", fills=True),
     In(Array(SIZE, "numAttributes", mut=True), "dataSizes"),
     In(Array(CUmem_range_attribute, "numAttributes", mut=True), "attributes"),
     In(SIZE, "numAttributes"), In(CUdeviceptr, "devPtr"), In(SIZE, "count"), since=8000,
     does="ask")
call("cuPointerSetAttribute", In(CPTR, "value", by_hand="its size depends on the attribute"),
     In(CUpointer_attribute, "attribute"), In(CUdeviceptr, "ptr"), since=6000, does="set")
call("cuPointerGetAttributes", In(U32, "numAttributes"),
     In(Array(CUpointer_attribute, "numAttributes", mut=True), "attributes"),
     In(Array(PTR, "numAttributes", mut=True), "data",
        by_hand="every element is an out-buffer of its own", fills=True), In(CUdeviceptr, "ptr"),
     since=7000, after="none")
call("cuMemFreeAsync", In(CUdeviceptr, "dptr", free="memory"), In(CUstream, "hStream"), since=11020,
     ptds=True, does="order", defer=Roles("free", address="dptr"), memory=Roles("free", key="dptr"))
call("cuMemAllocAsync", Out(CUdeviceptr, "dptr", new="memory"), In(SIZE, "bytesize"),
     In(CUstream, "hStream"), since=11020, ptds=True, does="order",
     memory=Roles("pool_alloc", out="*dptr", bytes="bytesize", stream="hStream", ptds="ptds"))
call("cuMemAllocFromPoolAsync", Out(CUdeviceptr, "dptr", new="memory"), In(SIZE, "bytesize"),
     In(CUmemoryPool, "pool"), In(CUstream, "hStream"), since=11020, ptds=True, does="order",
     memory=Roles("pool_alloc", out="*dptr", bytes="bytesize", key="pool", stream="hStream",
                  ptds="ptds"))
