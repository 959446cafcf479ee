"""Contexts, primary contexts, green contexts, limits."""

handle("CUcontext", "context", "struct CUctx_st")

struct("CUexecAffinitySmCount_v1",
       F(U32, "val"))

struct("CUexecAffinityParam_v1",
       F(CUexecAffinityType, "type"),
       F(inner("union",
               F(CUexecAffinitySmCount_v1, "smCount"),
               cases={0: "smCount"}), "param", tag="type"))

enum("CUcigDataType",
     CIG_DATA_TYPE_D3D12_COMMAND_QUEUE=0x1, CIG_DATA_TYPE_NV_BLOB=0x2)

struct("CUctxCigParam",
       F(CUcigDataType, "sharedDataType"),
       F(PTR, "sharedData"))

struct("CUctxCreateParams",
       F(Array(CUexecAffinityParam_v1, "numExecAffinityParams", mut=True), "execAffinityParams"),
       F(I32, "numExecAffinityParams"),
       F(Ref(CUctxCigParam, mut=True), "cigParams"))

enum("CUlimit",
     CU_LIMIT_STACK_SIZE=0x0, CU_LIMIT_PRINTF_FIFO_SIZE=0x1, CU_LIMIT_MALLOC_HEAP_SIZE=0x2,
     CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH=0x3, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT=0x4,
     CU_LIMIT_MAX_L2_FETCH_GRANULARITY=0x5, CU_LIMIT_PERSISTING_L2_CACHE_SIZE=0x6,
     CU_LIMIT_SHMEM_SIZE=0x7, CU_LIMIT_CIG_ENABLED=0x8,
     CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED=0x9, CU_LIMIT_MAX=10)

enum("CUfunc_cache",
     CU_FUNC_CACHE_PREFER_NONE=0x0, CU_FUNC_CACHE_PREFER_SHARED=0x1,
     CU_FUNC_CACHE_PREFER_L1=0x2, CU_FUNC_CACHE_PREFER_EQUAL=0x3)

handle("CUevent", "event")

enum("CUsharedconfig",
     CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE=0x0, CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE=0x1,
     CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE=0x2)

handle("CUgreenCtx", "greenCtx")

handle("CUdevResourceDesc", "devResourceDesc")

handle("CUstream", "stream")

call("cuDevicePrimaryCtxRetain", Out(CUcontext, "pctx", new="context"), In(CUdevice, "dev"),
     since=7000, does="begin_context", about="dev",
     memory=Roles("primary_retain", out="*pctx", device="dev"), travel=True)
call("cuDevicePrimaryCtxRelease", In(CUdevice, "dev"), since=7000, blocks=True, does="end_context",
     memory=Roles("primary_release", device="dev"))
call("cuDevicePrimaryCtxRelease_v2", In(CUdevice, "dev"), since=11000, blocks=True,
     does="end_context", memory=Roles("primary_release", device="dev"))
call("cuDevicePrimaryCtxSetFlags", In(CUdevice, "dev"), In(U32, "flags"), since=7000, does="set")
call("cuDevicePrimaryCtxSetFlags_v2", In(CUdevice, "dev"), In(U32, "flags"), since=11000,
     does="set", travel=True)
call("cuDevicePrimaryCtxGetState", In(CUdevice, "dev"), Out(U32, "flags"), Out(I32, "active"),
     since=7000, does="ask")
call("cuDevicePrimaryCtxReset", In(CUdevice, "dev"), since=7000, blocks=True, does="end_context",
     memory=Roles("primary_reset", device="dev"))
call("cuDevicePrimaryCtxReset_v2", In(CUdevice, "dev"), since=11000, blocks=True,
     does="end_context", memory=Roles("primary_reset", device="dev"), travel=True)
call("cuCtxCreate", Out(CUcontext, "pctx", new="context"), In(U32, "flags"), In(CUdevice, "dev"),
     since=2000, does="begin_context", about="dev")
call("cuCtxCreate_v2", Out(CUcontext, "pctx", new="context"), In(U32, "flags"), In(CUdevice, "dev"),
     since=3020, does="begin_context", about="dev", travel=True)
call("cuCtxCreate_v3", Out(CUcontext, "pctx", new="context"),
     In(Array(CUexecAffinityParam_v1, "numParams", mut=True), "paramsArray"), In(I32, "numParams"),
     In(U32, "flags"), In(CUdevice, "dev"), since=11040, does="begin_context", about="dev")
call("cuCtxCreate_v4", Out(CUcontext, "pctx", new="context"),
     In(Ref(CUctxCreateParams, mut=True), "ctxCreateParams"), In(U32, "flags"), In(CUdevice, "dev"),
     since=12050, does="begin_context", about="dev")
call("cuCtxDestroy", In(CUcontext, "ctx", free="context"), since=2000, blocks=True,
     does="end_context", memory=Roles("context_end", key="ctx"))
call("cuCtxDestroy_v2", In(CUcontext, "ctx", free="context"), since=4000, blocks=True,
     does="end_context", memory=Roles("context_end", key="ctx"), travel=True)
call("cuCtxPushCurrent", In(CUcontext, "ctx"), since=2000, after="none", does="set")
call("cuCtxPushCurrent_v2", In(CUcontext, "ctx"), since=4000, after="none", does="set")
call("cuCtxPopCurrent", Out(CUcontext, "pctx", opt=True), since=2000, after="none", does="set")
call("cuCtxPopCurrent_v2", Out(CUcontext, "pctx", opt=True), since=4000, after="none", does="set")
call("cuCtxSetCurrent", In(CUcontext, "ctx"), since=4000, after="none", does="set")
call("cuCtxGetCurrent", Out(CUcontext, "pctx"), since=4000, after="none")
call("cuCtxGetDevice", Out(CUdevice, "device"), since=2000, after="none")
call("cuCtxGetDevice_v2", Out(CUdevice, "device"), In(CUcontext, "ctx"), since=13000, after="none")
call("cuCtxGetFlags", Out(U32, "flags"), since=7000, after="none")
call("cuCtxSetFlags", In(U32, "flags"), since=12010, does="set")
call("cuCtxGetId", In(CUcontext, "ctx"), Out(U64, "ctxId"), since=12000, does="ask")
call("cuCtxSynchronize", since=2000, blocks=True, does="wait", travel=True)
call("cuCtxSynchronize_v2", In(CUcontext, "ctx"), since=13000, blocks=True, does="wait",
     about="ctx")
call("cuCtxSetLimit", In(CUlimit, "limit"), In(SIZE, "value"), since=3010, does="set",
     memory=Roles("context_limit", limit="limit", bytes="value"),
     travel=Roles("limit", "limit", "value"))
call("cuCtxGetLimit", Out(SIZE, "pvalue"), In(CUlimit, "limit"), since=3010, after="none")
call("cuCtxGetCacheConfig", Out(CUfunc_cache, "pconfig"), since=3020, after="none")
call("cuCtxSetCacheConfig", In(CUfunc_cache, "config"), since=3020, does="set")
call("cuCtxGetApiVersion", In(CUcontext, "ctx"), Out(U32, "version"), since=3020, after="none")
call("cuCtxGetStreamPriorityRange", Out(I32, "leastPriority", opt=True),
     Out(I32, "greatestPriority", opt=True), since=5050, after="none")
call("cuCtxResetPersistingL2Cache", since=11000, blocks=True, does="set")
call("cuCtxGetExecAffinity", Out(CUexecAffinityParam_v1, "pExecAffinity"),
     In(CUexecAffinityType, "type"), since=11040, does="ask")
call("cuCtxRecordEvent", In(CUcontext, "hCtx"), In(CUevent, "hEvent"), since=12050, does="order")
call("cuCtxWaitEvent", In(CUcontext, "hCtx"), In(CUevent, "hEvent"), since=12050, does="order")
call("cuCtxAttach", Out(CUcontext, "pctx"), In(U32, "flags"), since=2000, does="set")
call("cuCtxDetach", In(CUcontext, "ctx", free="context"), since=2000, blocks=True,
     does="end_context", memory=Roles("context_detach", key="ctx"))
call("cuCtxGetSharedMemConfig", Out(CUsharedconfig, "pConfig"), since=4020, does="ask")
call("cuCtxSetSharedMemConfig", In(CUsharedconfig, "config"), since=4020, does="set")
call("cuCtxEnablePeerAccess", In(CUcontext, "peerContext"), In(U32, "Flags"), since=4000,
     does="set", travel=True, relay=Roles("peers"))
call("cuCtxDisablePeerAccess", In(CUcontext, "peerContext"), since=4000, does="set", travel=True,
     relay=Roles("peers"))
call("cuGreenCtxCreate", Out(CUgreenCtx, "phCtx", new="greenCtx"), In(CUdevResourceDesc, "desc"),
     In(CUdevice, "dev"), In(U32, "flags"), since=12040, does="begin_context", about="dev")
call("cuGreenCtxDestroy", In(CUgreenCtx, "hCtx", free="greenCtx"), since=12040, blocks=True,
     does="end_context")
call("cuCtxFromGreenCtx", Out(CUcontext, "pContext"), In(CUgreenCtx, "hCtx"), since=12040,
     does="set")
call("cuCtxGetDevResource", In(CUcontext, "hCtx"), Out(CUdevResource_v1, "resource"),
     In(CUdevResourceType, "type"), since=12040, does="ask")
call("cuGreenCtxGetDevResource", In(CUgreenCtx, "hCtx"), Out(CUdevResource_v1, "resource"),
     In(CUdevResourceType, "type"), since=12040, does="ask")
call("cuDevSmResourceSplitByCount", Out(Array(CUdevResource_v1, "*nbGroups"), "result", opt=True),
     InOut(U32, "nbGroups"), In(Ref(CUdevResource_v1), "input"),
     Out(CUdevResource_v1, "remaining", opt=True), In(U32, "useFlags"), In(U32, "minCount"),
     since=12040, does="set")
call("cuDevResourceGenerateDesc", Out(CUdevResourceDesc, "phDesc"),
     In(Array(CUdevResource_v1, "nbResources", mut=True), "resources"), In(U32, "nbResources"),
     since=12040, does="set")
call("cuGreenCtxRecordEvent", In(CUgreenCtx, "hCtx"), In(CUevent, "hEvent"), since=12040,
     does="order")
call("cuGreenCtxWaitEvent", In(CUgreenCtx, "hCtx"), In(CUevent, "hEvent"), since=12040,
     does="order")
call("cuGreenCtxStreamCreate", Out(CUstream, "phStream", new="stream"), In(CUgreenCtx, "greenCtx"),
     In(U32, "flags"), In(I32, "priority"), since=12050, does="make")
call("cuGreenCtxGetId", In(CUgreenCtx, "greenCtx"), Out(U64, "greenCtxId"), since=12090, does="ask")
