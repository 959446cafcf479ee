/* What the calls answer in a thread without a context, although all that they are about exists in
 * one: which of them need a current context, and which only that of their stream or object. */
#include "answers.h"

#ifdef HED_CUDA_H
#include <cudaProfiler.h>
#endif

#define BYTES 4096

static const char ptx[] = ".version 7.8\n.target sm_75\n.address_size 64\n"
                          ".visible .global .u32 value;\n"
                          ".visible .entry k(.param .u64 p) { ret; }\n";

static CUcontext context;
static CUmodule module;
static CUlibrary library;
static CUfunction function;
static CUkernel kernel;
static CUstream stream;
static CUevent event;
static CUdeviceptr device, other, managed;
static char *host;
static char data[2 * BYTES], registered[BYTES];

/* What every case begins with. */
static void
make_all(void)
{
    context = ask_context();
    MUST(cuModuleLoadData, &module, ptx);
    MUST(cuModuleGetFunction, &function, module, "k");
    MUST(cuLibraryLoadData, &library, ptx, NULL, NULL, 0, NULL, NULL, 0);
    MUST(cuLibraryGetKernel, &kernel, library, "k");
    MUST(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    MUST(cuEventCreate, &event, 0);
    MUST(cuEventRecord, event, stream);
    MUST(cuMemAlloc_v2, &device, BYTES);
    MUST(cuMemAlloc_v2, &other, BYTES);
    MUST(cuMemAllocManaged, &managed, BYTES, CU_MEM_ATTACH_GLOBAL);
    MUST(cuMemAllocHost_v2, (void **)&host, BYTES);
    MUST(cuCtxSynchronize);
}

static void
leave(void)
{
    MUST(cuCtxSetCurrent, NULL);
}

static void
contexts(void)
{
    CUcontext c = NULL;
    CUdevice d;
    CUlimit limit = CU_LIMIT_STACK_SIZE;
    CUfunc_cache cache;
    size_t size;
    unsigned number;
    unsigned long long id;
    int low, high;

    make_all();
    leave();
    ASK(cuCtxGetDevice, &d);
    ASK(cuCtxGetFlags, &number);
    ASK(cuCtxGetId, NULL, &id);
    ASK(cuCtxGetId, context, &id);
    ASK(cuCtxGetApiVersion, NULL, &number);
    ASK(cuCtxGetApiVersion, context, &number);
    ASK(cuCtxGetLimit, &size, limit);
    ASK(cuCtxSetLimit, limit, 2048);
    ASK(cuCtxGetCacheConfig, &cache);
    ASK(cuCtxSetCacheConfig, CU_FUNC_CACHE_PREFER_NONE);
    ASK(cuCtxGetStreamPriorityRange, &low, &high);
    ASK(cuCtxResetPersistingL2Cache);
    ASK(cuCtxSynchronize);
    ASK(cuCtxPopCurrent_v2, &c);
    ASK(cuProfilerStart);
    ASK(cuProfilerStop);
    ASK(cuFlushGPUDirectRDMAWrites, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
        CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER);
}

static void
memory(void)
{
    CUdeviceptr p, base;
    CUmemorytype type;
    void *h = NULL;
    size_t size, total;
    unsigned flags;
    int number;

    make_all();
    MUST(cuMemHostRegister_v2, registered, BYTES, 0);
    leave();
    ASK(cuMemAlloc_v2, &p, BYTES);
    ASK(cuMemAlloc_v2, &p, 0);
    ASK(cuMemAlloc_v2, NULL, BYTES);
    ASK(cuMemAllocPitch_v2, &p, &size, 64, 2, 4);
    ASK(cuMemAllocManaged, &p, BYTES, CU_MEM_ATTACH_GLOBAL);
    ASK(cuMemAllocHost_v2, &h, BYTES);
    ASK(cuMemHostAlloc, &h, BYTES, 0);
    ASK(cuMemHostAlloc, &h, 0, 0);
    ASK(cuMemHostRegister_v2, data, BYTES, 0);
    ASK(cuMemHostGetDevicePointer_v2, &p, host, 0);
    ASK(cuMemHostGetFlags, &flags, host);
    ASK(cuMemHostUnregister, data);
    ASK(cuMemHostUnregister, registered);
    ASK(cuMemGetInfo_v2, &size, &total);
    ASK(cuMemGetAddressRange_v2, &base, &size, device);
    ASK(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device);
    ASK(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)data);
    number = 1;
    ASK(cuPointerSetAttribute, &number, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device);
    ASK(cuMemRangeGetAttribute, &number, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed, BYTES);
    ASK(cuMemFree_v2, other);
    ASK(cuMemFree_v2, 0);
    ASK(cuMemFree_v2, 1);
    ASK(cuMemFreeHost, host);
    ASK(cuMemFreeHost, NULL);
}

static void
copies(void)
{
    make_all();
    leave();
    ASK(cuMemcpy, device, other, 64);
    ASK(cuMemcpy, device, (CUdeviceptr)data, 64);
    ASK(cuMemcpyHtoD_v2, device, data, 64);
    ASK(cuMemcpyHtoD_v2, device, data, 0);
    ASK(cuMemcpyDtoH_v2, data, device, 64);
    ASK(cuMemcpyDtoD_v2, device, other, 64);
    ASK(cuMemcpyPeer, device, context, other, context, 64);
    ASK(cuMemcpyAsync, device, other, 64, NULL);
    ASK(cuMemcpyAsync, device, other, 64, stream);
    ASK(cuMemcpyHtoDAsync_v2, device, data, 64, NULL);
    ASK(cuMemcpyHtoDAsync_v2, device, data, 64, stream);
    ASK(cuMemcpyHtoDAsync_v2, device, data, 0, stream);
    ASK(cuMemcpyDtoHAsync_v2, data, device, 64, stream);
    ASK(cuMemcpyDtoDAsync_v2, device, other, 64, stream);
    ASK(cuMemcpyPeerAsync, device, context, other, context, 64, stream);
    ASK(cuMemsetD8_v2, device, 1, 64);
    ASK(cuMemsetD32_v2, device, 1, 16);
    ASK(cuMemsetD2D8_v2, device, 64, 1, 32, 2);
    ASK(cuMemsetD8Async, device, 1, 64, NULL);
    ASK(cuMemsetD8Async, device, 1, 64, stream);
    ASK(cuMemsetD2D8Async, device, 64, 1, 32, 2, stream);
    ASK(cuMemPrefetchAsync_v2, managed, BYTES,
        ((CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}), 0, NULL);
    ASK(cuMemPrefetchAsync_v2, managed, BYTES,
        ((CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}), 0, stream);
    ASK(cuMemAdvise_v2, managed, BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY,
        ((CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}));
}

/* Addresses that the program maps itself, and batches. */
static void
mappings(void)
{
    CUmemAllocationProp props = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle physical;
    CUdeviceptr at = 0;
    size_t size = 2 << 20;
    CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    CUmemcpyAttributes how = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    size_t bytes = 64, whole = BYTES, first = 0;

    make_all();
    leave();
    ASK(cuMemAddressReserve, &at, size, 0, 0, 0);
    ASK(cuMemCreate, &physical, size, &props, 0);
    ASK(cuMemMap, at, size, 0, physical, 0);
    ASK(cuMemSetAccess, at, size, &access, 1);
    ASK(cuMemsetD8Async, at, 1, 64, stream);
    ASK(cuStreamSynchronize, stream);
    ASK(cuMemUnmap, at, size);
    ASK(cuMemRelease, physical);
    ASK(cuMemAddressFree, at, size);
    ASK(cuMemcpyBatchAsync_v2, &device, &other, &bytes, 1, &how, &first, 1, stream);
    ASK(cuMemPrefetchBatchAsync, &managed, &whole, 1, &here, &first, 1, 0, stream);
}

static void
boxes(void)
{
    CUarray array;
    CUDA_ARRAY_DESCRIPTOR like = {
        .Width = 16, .Height = 16, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    CUDA_MEMCPY2D flat = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = data,
                          .srcPitch = 64,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstPitch = 64,
                          .WidthInBytes = 32,
                          .Height = 2};
    CUDA_MEMCPY3D deep = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = data,
                          .srcPitch = 64,
                          .srcHeight = 2,
                          .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                          .WidthInBytes = 32,
                          .Height = 2,
                          .Depth = 1};

    make_all();
    MUST(cuArrayCreate_v2, &array, &like);
    flat.dstDevice = device;
    deep.dstArray = array;
    leave();
    ASK(cuMemcpy2D_v2, &flat);
    ASK(cuMemcpy2DUnaligned_v2, &flat);
    ASK(cuMemcpy2DAsync_v2, &flat, NULL);
    ASK(cuMemcpy2DAsync_v2, &flat, stream);
    ASK(cuMemcpy3D_v2, &deep);
    ASK(cuMemcpy3DAsync_v2, &deep, stream);
    ASK(cuMemcpyHtoA_v2, array, 0, data, 32);
    ASK(cuMemcpyAtoH_v2, data, array, 0, 32);
    ASK(cuMemcpyHtoAAsync_v2, array, 0, data, 32, stream);
}

static void
arrays(void)
{
    CUarray array, level;
    CUmipmappedArray mipmap;
    CUDA_ARRAY_DESCRIPTOR like = {
        .Width = 16, .Height = 16, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    CUDA_ARRAY3D_DESCRIPTOR deep = {.Width = 16,
                                    .Height = 16,
                                    .Format = CU_AD_FORMAT_FLOAT,
                                    .NumChannels = 1,
                                    .Flags = CUDA_ARRAY3D_SURFACE_LDST};
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    CUDA_RESOURCE_DESC told;
    CUDA_TEXTURE_DESC texture = {.maxAnisotropy = 0};
    CUtexObject object, made = 0;
    CUsurfObject surface, made_surface = 0;

    make_all();
    MUST(cuArray3DCreate_v2, &array, &deep);
    MUST(cuMipmappedArrayCreate, &mipmap, &deep, 2);
    resource.res.array.hArray = array;
    MUST(cuTexObjectCreate, &object, &resource, &texture, NULL);
    MUST(cuSurfObjectCreate, &surface, &resource);
    leave();
    ASK(cuArrayCreate_v2, &level, &like);
    ASK(cuArray3DCreate_v2, &level, &deep);
    ASK(cuMipmappedArrayCreate, &mipmap, &deep, 2);
    ASK(cuArrayGetDescriptor_v2, &like, array);
    ASK(cuArray3DGetDescriptor_v2, &deep, array);
    ASK(cuMipmappedArrayGetLevel, &level, mipmap, 0);
    ASK(cuTexObjectCreate, &made, &resource, &texture, NULL);
    ASK(cuTexObjectGetResourceDesc, &told, object);
    ASK(cuTexObjectGetTextureDesc, &texture, object);
    ASK(cuTexObjectDestroy, object);
    ASK(cuSurfObjectCreate, &made_surface, &resource);
    ASK(cuSurfObjectGetResourceDesc, &told, surface);
    ASK(cuSurfObjectDestroy, surface);
    ASK(cuMipmappedArrayDestroy, mipmap);
    ASK(cuArrayDestroy, array);
}

static void CUDA_CB
do_nothing(void *unused)
{
}

static void CUDA_CB
do_nothing_then(CUstream s, CUresult r, void *unused)
{
}

static void
streams(void)
{
    CUstream s, gone;
    CUcontext c;
    CUgraph g;
    CUstreamCaptureStatus status;
    CUlaunchAttributeValue value = {{0}};
    unsigned flags;
    unsigned long long id;
    int number;

    make_all();
    MUST(cuStreamCreate, &gone, 0);
    leave();
    ASK(cuStreamCreate, &s, 0);
    ASK(cuStreamCreateWithPriority, &s, 0, 0);
    ASK(cuStreamQuery, NULL);
    ASK(cuStreamQuery, CU_STREAM_LEGACY);
    ASK(cuStreamQuery, CU_STREAM_PER_THREAD);
    ASK(cuStreamQuery, stream);
    ASK(cuStreamSynchronize, NULL);
    ASK(cuStreamSynchronize, stream);
    ASK(cuStreamWaitEvent, NULL, event, 0);
    ASK(cuStreamWaitEvent, stream, event, 0);
    ASK(cuStreamGetFlags, stream, &flags);
    ASK(cuStreamGetPriority, stream, &number);
    ASK(cuStreamGetCtx, stream, &c);
    ASK(cuStreamGetCtx, NULL, &c);
    ASK(cuStreamGetId, stream, &id);
    ASK(cuStreamGetId, NULL, &id);
    ASK(cuStreamGetAttribute, stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
    ASK(cuStreamIsCapturing, NULL, &status);
    ASK(cuStreamIsCapturing, stream, &status);
    ASK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    ASK(cuMemcpyDtoDAsync_v2, device, other, 64, stream);
    ASK(cuStreamEndCapture, stream, &g);
    ASK(cuStreamAddCallback, stream, do_nothing_then, NULL, 0);
    ASK(cuStreamAddCallback, NULL, do_nothing_then, NULL, 0);
    ASK(cuLaunchHostFunc, stream, do_nothing, NULL);
    ASK(cuLaunchHostFunc, NULL, do_nothing, NULL);
    ASK(cuStreamAttachMemAsync, stream, managed, 0, CU_MEM_ATTACH_GLOBAL);
    ASK(cuStreamWriteValue32_v2, stream, device, 1, 0);
    ASK(cuStreamWaitValue32_v2, stream, device, 1, CU_STREAM_WAIT_VALUE_EQ);
    ASK(cuStreamSynchronize, stream);
    ASK(cuStreamDestroy_v2, gone);
}

static void
events(void)
{
    CUevent e = NULL;
    float ms;

    make_all();
    leave();
    ASK(cuEventCreate, &e, 0);
    ASK(cuEventRecord, event, NULL);
    ASK(cuEventRecord, event, stream);
    ASK(cuEventRecordWithFlags, event, stream, 0);
    ASK(cuEventSynchronize, event);
    ASK(cuEventQuery, event);
    ASK(cuEventElapsedTime_v2, &ms, event, event);
    ASK(cuEventDestroy_v2, event);
}

static void
code(void)
{
    CUmodule m;
    CUlibrary l;
    CUfunction f;
    CUkernel k;
    CUdeviceptr p;
    size_t size;
    int number;
    const char *name;

    make_all();
    leave();
    ASK(cuModuleLoadData, &m, ptx);
    ASK(cuModuleGetFunction, &f, module, "k");
    ASK(cuModuleGetGlobal_v2, &p, &size, module, "value");
    ASK(cuModuleGetLoadingMode, (CUmoduleLoadingMode *)&number);
    ASK(cuLibraryLoadData, &l, ptx, NULL, NULL, 0, NULL, NULL, 0);
    ASK(cuLibraryGetKernel, &k, library, "k");
    ASK(cuLibraryGetModule, &m, library);
    ASK(cuLibraryGetGlobal, &p, &size, library, "value");
    ASK(cuKernelGetFunction, &f, kernel);
    ASK(cuKernelGetAttribute, &number, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, 0);
    ASK(cuKernelSetAttribute, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0, kernel, 0);
    ASK(cuKernelGetName, &name, kernel);
    ASK(cuFuncGetAttribute, &number, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
    ASK(cuFuncSetAttribute, function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0);
    ASK(cuFuncSetCacheConfig, function, CU_FUNC_CACHE_PREFER_NONE);
    ASK(cuFuncGetModule, &m, function);
    ASK(cuFuncGetName, &name, function);
    ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor, &number, function, 32, 0);
    ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor, &number, (CUfunction)kernel, 32, 0);
    ASK(cuModuleUnload, module);
    ASK(cuLibraryUnload, library);
}

static void
launches(void)
{
    CUlaunchConfig on_stream = {1, 1, 1, 1, 1, 1, 0, NULL, NULL, 0};
    void *args[] = {&device};

    make_all();
    on_stream.hStream = stream;
    leave();
    ASK(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL);
    ASK(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, stream, args, NULL);
    ASK(cuLaunchKernel, (CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL);
    ASK(cuLaunchKernel, (CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, stream, args, NULL);
    ASK(cuLaunchKernelEx, &on_stream, function, args, NULL);
    ASK(cuLaunchCooperativeKernel, function, 1, 1, 1, 1, 1, 1, 0, stream, args);
}

static void
pools(void)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemoryPool pool, made;
    CUdeviceptr p = 0;
    cuuint64_t value = 0;

    make_all();
    MUST(cuMemPoolCreate, &pool, &props);
    leave();
    ASK(cuMemPoolCreate, &made, &props);
    ASK(cuDeviceGetDefaultMemPool, &made, 0);
    ASK(cuDeviceGetMemPool, &made, 0);
    ASK(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
    ASK(cuMemPoolTrimTo, pool, 0);
    ASK(cuMemAllocAsync, &p, BYTES, NULL);
    ASK(cuMemAllocAsync, &p, BYTES, CU_STREAM_LEGACY);
    ASK(cuMemAllocAsync, &p, BYTES, stream);
    ASK(cuMemFreeAsync, p, NULL);
    ASK(cuMemFreeAsync, p, stream);
    ASK(cuMemFreeAsync, 0, stream);
    ASK(cuMemFreeAsync, 0, NULL);
    ASK(cuMemAllocFromPoolAsync, &p, BYTES, pool, NULL);
    ASK(cuMemAllocFromPoolAsync, &p, BYTES, pool, stream);
    ASK(cuMemFree_v2, p);
    ASK(cuMemPoolDestroy, pool);
}

static void
graphs(void)
{
    CUgraph graph, other_graph, g;
    CUgraphNode n, empty;
    CUgraphExec exec = NULL, e;
    CUgraphNodeType type;
    CUgraphConditionalHandle handle;
    CUuserObject object;
    CUDA_HOST_NODE_PARAMS call = {do_nothing, NULL};
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = data,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .WidthInBytes = 64,
                          .Height = 1,
                          .Depth = 1};
    CUDA_MEM_ALLOC_NODE_PARAMS take = {
        .bytesize = BYTES,
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}}};
    CUDA_MEMSET_NODE_PARAMS fill = {.elementSize = 1, .width = 64, .height = 1};

    make_all();
    copy.dstDevice = device;
    fill.dst = device;
    MUST(cuGraphCreate, &graph, 0);
    MUST(cuGraphCreate, &other_graph, 0);
    MUST(cuGraphAddEmptyNode, &empty, other_graph, NULL, 0);
    MUST(cuGraphAddEmptyNode, &empty, graph, NULL, 0);
    MUST(cuGraphInstantiateWithFlags, &exec, graph, 0);
    leave();
    ASK(cuGraphCreate, &g, 0);
    ASK(cuGraphAddEmptyNode, &n, graph, NULL, 0);
    ASK(cuGraphAddHostNode, &n, graph, NULL, 0, &call);
    ASK(cuGraphAddMemsetNode, &n, graph, NULL, 0, &fill, context);
    ASK(cuGraphAddMemsetNode, &n, graph, NULL, 0, &fill, NULL);
    ASK(cuGraphAddMemcpyNode, &n, graph, NULL, 0, &copy, context);
    ASK(cuGraphAddMemcpyNode, &n, graph, NULL, 0, &copy, NULL);
    ASK(cuGraphAddMemAllocNode, &n, graph, NULL, 0, &take);
    ASK(cuGraphAddEventRecordNode, &n, graph, NULL, 0, event);
    ASK(cuGraphAddEventWaitNode, &n, graph, NULL, 0, event);
    ASK(cuGraphNodeGetType, empty, &type);
    ASK(cuGraphClone, &g, other_graph);
    ASK(cuGraphInstantiateWithFlags, &e, other_graph, 0);
    ASK(cuGraphInstantiateWithFlags, &e, graph, 0);
    ASK(cuGraphUpload, exec, NULL);
    ASK(cuGraphUpload, exec, stream);
    ASK(cuGraphLaunch, exec, NULL);
    ASK(cuGraphLaunch, exec, stream);
    ASK(cuGraphConditionalHandleCreate, &handle, g, NULL, 0, 0);
    ASK(cuGraphConditionalHandleCreate, &handle, g, context, 0, 0);
    ASK(cuGraphClone, &g, g);
    ASK(cuGraphInstantiateWithFlags, &e, g, 0);
    ASK(cuUserObjectCreate, &object, data, do_nothing, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    ASK(cuUserObjectRelease, object, 1);
    ASK(cuGraphExecDestroy, exec);
    ASK(cuGraphDestroy, graph);
}

ASK_MAIN({"contexts", contexts}, {"memory", memory}, {"copies", copies}, {"mappings", mappings},
         {"boxes", boxes}, {"arrays", arrays}, {"streams", streams}, {"events", events},
         {"code", code}, {"launches", launches}, {"pools", pools}, {"graphs", graphs})
