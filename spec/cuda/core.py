"""Start-up, errors, entry points, profiler, logs, core dumps, process checkpoint."""

api(prefix="cu", result="CUresult", headers=["cuda.h", "cudaProfiler.h"])

# Objects that programs name by address or number.
kind("memory", "host", "range", "asyncCallback", "logsCallback", "conditional", "physical",
     "texture", "surface", "texref", "userObject", "graphicsResource")

enum("CUresult",
     CUDA_SUCCESS=(0, "no error"),
     CUDA_ERROR_INVALID_VALUE=(1, "invalid argument"),
     CUDA_ERROR_OUT_OF_MEMORY=(2, "out of memory"),
     CUDA_ERROR_NOT_INITIALIZED=(3, "initialization error"),
     CUDA_ERROR_DEINITIALIZED=(4, "driver shutting down"),
     CUDA_ERROR_PROFILER_DISABLED=(5, "profiler disabled while using external profiling tool"),
     CUDA_ERROR_PROFILER_NOT_INITIALIZED=(
         6, "profiler not initialized: call cudaProfilerInitialize()"),
     CUDA_ERROR_PROFILER_ALREADY_STARTED=(7, "profiler already started"),
     CUDA_ERROR_PROFILER_ALREADY_STOPPED=(8, "profiler already stopped"),
     CUDA_ERROR_STUB_LIBRARY=(34, "CUDA driver is a stub library"),
     CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER=(
         36, "API call is not supported in the installed CUDA driver"),
     CUDA_ERROR_DEVICE_UNAVAILABLE=(46, "CUDA-capable device(s) is/are busy or unavailable"),
     CUDA_ERROR_NO_DEVICE=(100, "no CUDA-capable device is detected"),
     CUDA_ERROR_INVALID_DEVICE=(101, "invalid device ordinal"),
     CUDA_ERROR_DEVICE_NOT_LICENSED=(102, "device doesn't have valid Grid license"),
     CUDA_ERROR_INVALID_IMAGE=(200, "device kernel image is invalid"),
     CUDA_ERROR_INVALID_CONTEXT=(201, "invalid device context"),
     CUDA_ERROR_CONTEXT_ALREADY_CURRENT=(202, "context already current"),
     CUDA_ERROR_MAP_FAILED=(205, "mapping of buffer object failed"),
     CUDA_ERROR_UNMAP_FAILED=(206, "unmapping of buffer object failed"),
     CUDA_ERROR_ARRAY_IS_MAPPED=(207, "array is mapped"),
     CUDA_ERROR_ALREADY_MAPPED=(208, "resource already mapped"),
     CUDA_ERROR_NO_BINARY_FOR_GPU=(
         209, "no kernel image is available for execution on the device"),
     CUDA_ERROR_ALREADY_ACQUIRED=(210, "resource already acquired"),
     CUDA_ERROR_NOT_MAPPED=(211, "resource not mapped"),
     CUDA_ERROR_NOT_MAPPED_AS_ARRAY=(212, "resource not mapped as array"),
     CUDA_ERROR_NOT_MAPPED_AS_POINTER=(213, "resource not mapped as pointer"),
     CUDA_ERROR_ECC_UNCORRECTABLE=(214, "uncorrectable ECC error encountered"),
     CUDA_ERROR_UNSUPPORTED_LIMIT=(215, "limit is not supported on this architecture"),
     CUDA_ERROR_CONTEXT_ALREADY_IN_USE=(
         216, "exclusive-thread device already in use by a different thread"),
     CUDA_ERROR_PEER_ACCESS_UNSUPPORTED=(
         217, "peer access is not supported between these two devices"),
     CUDA_ERROR_INVALID_PTX=(218, "a PTX JIT compilation failed"),
     CUDA_ERROR_INVALID_GRAPHICS_CONTEXT=(219, "invalid OpenGL or DirectX context"),
     CUDA_ERROR_NVLINK_UNCORRECTABLE=(
         220, "uncorrectable NVLink error detected during the execution"),
     CUDA_ERROR_JIT_COMPILER_NOT_FOUND=(221, "PTX JIT compiler library not found"),
     CUDA_ERROR_UNSUPPORTED_PTX_VERSION=(
         222, "the provided PTX was compiled with an unsupported toolchain."),
     CUDA_ERROR_JIT_COMPILATION_DISABLED=(223, "PTX JIT compilation was disabled"),
     CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY=(
         224, "the provided execution affinity is not supported"),
     CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC=(
         225, "the provided PTX contains unsupported call to cudaDeviceSynchronize"),
     CUDA_ERROR_CONTAINED=(
         226, "Invalid access of peer GPU memory over nvlink or a hardware error"),
     CUDA_ERROR_INVALID_SOURCE=(300, "device kernel image is invalid"),
     CUDA_ERROR_FILE_NOT_FOUND=(301, "file not found"),
     CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND=(302, "shared object symbol not found"),
     CUDA_ERROR_SHARED_OBJECT_INIT_FAILED=(303, "shared object initialization failed"),
     CUDA_ERROR_OPERATING_SYSTEM=(304, "OS call failed or operation not supported on this OS"),
     CUDA_ERROR_INVALID_HANDLE=(400, "invalid resource handle"),
     CUDA_ERROR_ILLEGAL_STATE=(401, "the operation cannot be performed in the present state"),
     CUDA_ERROR_LOSSY_QUERY=(402, "attempted introspection would be semantically lossy"),
     CUDA_ERROR_NOT_FOUND=(500, "named symbol not found"),
     CUDA_ERROR_NOT_READY=(600, "device not ready"),
     CUDA_ERROR_ILLEGAL_ADDRESS=(700, "an illegal memory access was encountered"),
     CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES=(701, "too many resources requested for launch"),
     CUDA_ERROR_LAUNCH_TIMEOUT=(702, "the launch timed out and was terminated"),
     CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING=(703, "launch uses incompatible texturing mode"),
     CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED=(704, "peer access is already enabled"),
     CUDA_ERROR_PEER_ACCESS_NOT_ENABLED=(705, "peer access has not been enabled"),
     CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE=(708, "cannot set while device is active in this process"),
     CUDA_ERROR_CONTEXT_IS_DESTROYED=(709, "context is destroyed"),
     CUDA_ERROR_ASSERT=(710, "device-side assert triggered"),
     CUDA_ERROR_TOO_MANY_PEERS=(711, "peer mapping resources exhausted"),
     CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED=(
         712, "part or all of the requested memory range is already mapped"),
     CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED=(
         713, "pointer does not correspond to a registered memory region"),
     CUDA_ERROR_HARDWARE_STACK_ERROR=(714, "hardware stack error"),
     CUDA_ERROR_ILLEGAL_INSTRUCTION=(715, "an illegal instruction was encountered"),
     CUDA_ERROR_MISALIGNED_ADDRESS=(716, "misaligned address"),
     CUDA_ERROR_INVALID_ADDRESS_SPACE=(
         717, "operation not supported on global/shared address space"),
     CUDA_ERROR_INVALID_PC=(718, "invalid program counter"),
     CUDA_ERROR_LAUNCH_FAILED=(719, "unspecified launch failure"),
     CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE=(720, "too many blocks in cooperative launch"),
     CUDA_ERROR_TENSOR_MEMORY_LEAK=(721, "tensor memory not completely freed"),
     CUDA_ERROR_NOT_PERMITTED=(800, "operation not permitted"),
     CUDA_ERROR_NOT_SUPPORTED=(801, "operation not supported"),
     CUDA_ERROR_SYSTEM_NOT_READY=(802, "system not yet initialized"),
     CUDA_ERROR_SYSTEM_DRIVER_MISMATCH=(
         803, "system has unsupported display driver / cuda driver combination"),
     CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE=(
         804, "forward compatibility was attempted on non supported HW"),
     CUDA_ERROR_MPS_CONNECTION_FAILED=(
         805, "MPS client failed to connect to the MPS control daemon or the MPS server"),
     CUDA_ERROR_MPS_RPC_FAILURE=(
         806, "the remote procedural call between the MPS server and the MPS client failed"),
     CUDA_ERROR_MPS_SERVER_NOT_READY=(
         807, "MPS server is not ready to accept new MPS client requests"),
     CUDA_ERROR_MPS_MAX_CLIENTS_REACHED=(
         808, "the hardware resources required to create MPS client have been exhausted"),
     CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED=(
         809, "the hardware resources required to support device connections have been exhausted"),
     CUDA_ERROR_MPS_CLIENT_TERMINATED=(810, "the MPS client has been terminated by the server"),
     CUDA_ERROR_CDP_NOT_SUPPORTED=(
         811, "is using CUDA Dynamic Parallelism, but "
              "the current configuration, like MPS, does not support it"),
     CUDA_ERROR_CDP_VERSION_MISMATCH=(
         812, "unsupported interaction between different versions of CUDA Dynamic Parallelism"),
     CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED=(
         900, "operation not permitted when stream is capturing"),
     CUDA_ERROR_STREAM_CAPTURE_INVALIDATED=(
         901, "operation failed due to a previous error during capture"),
     CUDA_ERROR_STREAM_CAPTURE_MERGE=(
         902, "operation would result in a merge of separate capture sequences"),
     CUDA_ERROR_STREAM_CAPTURE_UNMATCHED=(
         903, "capture was not ended in the same stream as it began"),
     CUDA_ERROR_STREAM_CAPTURE_UNJOINED=(904, "capturing stream has unjoined work"),
     CUDA_ERROR_STREAM_CAPTURE_ISOLATION=(
         905, "dependency created on uncaptured work in another stream"),
     CUDA_ERROR_STREAM_CAPTURE_IMPLICIT=(
         906, "operation would make the legacy stream depend on a capturing blocking stream"),
     CUDA_ERROR_CAPTURED_EVENT=(
         907, "operation not permitted on an event last recorded in a capturing stream"),
     CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD=(
         908, "attempt to terminate a thread-local capture sequence from another thread"),
     CUDA_ERROR_TIMEOUT=(909, "wait operation timed out"),
     CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE=(
         910, "the graph update was not performed because it included "
              "changes which violated constraints specific to instantiated graph update"),
     CUDA_ERROR_EXTERNAL_DEVICE=(
         911, "an async error has occured in external entity outside of CUDA"),
     CUDA_ERROR_INVALID_CLUSTER_SIZE=(
         912, "a kernel launch error has occurred due to cluster misconfiguration"),
     CUDA_ERROR_FUNCTION_NOT_LOADED=(
         913, "the function handle is not loaded when calling an API that "
              "requires a loaded function"),
     CUDA_ERROR_INVALID_RESOURCE_TYPE=(
         914, "one or more resources passed in are not valid resource types for the operation"),
     CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION=(
         915, "one or more resources are insufficient or non-applicable for the operation"),
     CUDA_ERROR_KEY_ROTATION=916,
     CUDA_ERROR_UNKNOWN=(999, "unknown error"))

enum("CUflushGPUDirectRDMAWritesTarget",
     CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX=0)

enum("CUflushGPUDirectRDMAWritesScope",
     CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER=100,
     CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES=200)

alias("cuuint64_t", ULONG)

enum("CUdriverProcAddressQueryResult",
     CU_GET_PROC_ADDRESS_SUCCESS=0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND=1,
     CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT=2)

enum("CUcoredumpSettings",
     CU_COREDUMP_ENABLE_ON_EXCEPTION=1, CU_COREDUMP_TRIGGER_HOST=2, CU_COREDUMP_LIGHTWEIGHT=3,
     CU_COREDUMP_ENABLE_USER_TRIGGER=4, CU_COREDUMP_FILE=5, CU_COREDUMP_PIPE=6,
     CU_COREDUMP_GENERATION_FLAGS=7, CU_COREDUMP_MAX=8)

struct("CUuuid",
       F(CHAR, "bytes", 16))

enum("CUlogLevel",
     CU_LOG_LEVEL_ERROR=0, CU_LOG_LEVEL_WARNING=1)

func("CUlogsCallback", "void", "void *, CUlogLevel, char *, size_t")

handle("CUlogsCallbackHandle", "logsCallbackHandle", "struct CUlogsCallbackEntry_st")

alias("CUlogIterator", U32)

enum("CUprocessState",
     CU_PROCESS_STATE_RUNNING=0, CU_PROCESS_STATE_LOCKED=1, CU_PROCESS_STATE_CHECKPOINTED=2,
     CU_PROCESS_STATE_FAILED=3)

struct("CUcheckpointLockArgs",
       F(U32, "timeoutMs"),
       F(U32, "reserved0"),
       F(cuuint64_t, "reserved1", 7))

struct("CUcheckpointCheckpointArgs",
       F(cuuint64_t, "reserved", 8))

struct("CUcheckpointGpuPair",
       F(CUuuid, "oldUuid"),
       F(CUuuid, "newUuid"))

struct("CUcheckpointRestoreArgs",
       F(Array(CUcheckpointGpuPair, "gpuPairsCount", mut=True), "gpuPairs"),
       F(U32, "gpuPairsCount"),
       F(CHAR, "reserved", 44),
       F(cuuint64_t, "reserved1"))

struct("CUcheckpointUnlockArgs",
       F(cuuint64_t, "reserved", 8))

enum("CUoutput_mode",
     CU_OUT_KEY_VALUE_PAIR=0x0, CU_OUT_CSV=0x1)

call("cuGetErrorString", In(CUresult, "error"), Out(STR, "pStr", on=["CUDA_ERROR_INVALID_VALUE"]),
     since=6000, after="none", offline=Roles("error_text", "error", "pStr"))
call("cuGetErrorName", In(CUresult, "error"), Out(STR, "pStr", on=["CUDA_ERROR_INVALID_VALUE"]),
     since=6000, after="none", offline=Roles("error_name", "error", "pStr"))
call("cuInit", In(U32, "Flags"), since=2000, after="none", does="set", null=Roles("init", "Flags"))
call("cuDriverGetVersion", Out(I32, "driverVersion"), since=2020, after="none",
     null={"driverVersion": "HED_NULL_VERSION"})
call("cuFlushGPUDirectRDMAWrites", In(CUflushGPUDirectRDMAWritesTarget, "target"),
     In(CUflushGPUDirectRDMAWritesScope, "scope"), since=11030, blocks=True, does="set")
call("cuGetProcAddress", In(STR, "symbol"), Out(PTR, "pfn"), In(I32, "cudaVersion"),
     In(cuuint64_t, "flags"), since=11030, by_hand="it hands out our own functions", after="none",
     null=Roles("check_proc", "symbol", "pfn", "flags"))
call("cuGetProcAddress_v2", In(STR, "symbol"), Out(PTR, "pfn"), In(I32, "cudaVersion"),
     In(cuuint64_t, "flags"), Out(CUdriverProcAddressQueryResult, "symbolStatus", opt=True,
                                  on=["CUDA_ERROR_NOT_FOUND"]), since=12000,
     by_hand="it hands out our own functions", after="none",
     null=Roles("check_proc", "symbol", "pfn", "flags"))
call("cuCoredumpGetAttribute", In(CUcoredumpSettings, "attrib"),
     Out(Bytes("*size"), "value", opt=True), InOut(SIZE, "size"), since=12010, after="none")
call("cuCoredumpGetAttributeGlobal", In(CUcoredumpSettings, "attrib"),
     Out(Bytes("*size"), "value", opt=True), InOut(SIZE, "size"), since=12010, after="none")
call("cuCoredumpSetAttribute", In(CUcoredumpSettings, "attrib"),
     In(PTR, "value", by_hand="its size depends on the attribute"), In(Ref(SIZE, mut=True), "size"),
     since=12010, after="none", does="set")
call("cuCoredumpSetAttributeGlobal", In(CUcoredumpSettings, "attrib"),
     In(PTR, "value", by_hand="its size depends on the attribute"), In(Ref(SIZE, mut=True), "size"),
     since=12010, after="none", does="set")
call("cuGetExportTable", Out(CPTR, "ppExportTable"), In(Ref(CUuuid), "pExportTableId"), since=3000,
     after="none", null=Roles("find_table", "ppExportTable", "pExportTableId"))
call("cuLogsRegisterCallback", In(CUlogsCallback, "callbackFunc"), In(PTR, "userData"),
     Out(CUlogsCallbackHandle, "callback_out", new="logsCallback"), since=12090, after="none",
     does="make")
call("cuLogsUnregisterCallback", In(CUlogsCallbackHandle, "callback", free="logsCallback"),
     since=12090, after="none", does="end")
call("cuLogsCurrent", Out(CUlogIterator, "iterator_out"), In(U32, "flags"), since=12090,
     after="none")
call("cuLogsDumpToFile", InOut(CUlogIterator, "iterator"), In(STR, "pathToFile"), In(U32, "flags"),
     since=12090, after="none")
call("cuLogsDumpToMemory", InOut(CUlogIterator, "iterator"),
     Out(TextBuf("*size"), "buffer", opt=True), InOut(SIZE, "size"), In(U32, "flags"),
     since=12090, after="none")
call("cuCheckpointProcessGetRestoreThreadId", In(I32, "pid"), Out(I32, "tid"), since=12080,
     blocks=True, does="ask")
call("cuCheckpointProcessGetState", In(I32, "pid"), Out(CUprocessState, "state"), since=12080,
     blocks=True, does="ask")
call("cuCheckpointProcessLock", In(I32, "pid"), In(Ref(CUcheckpointLockArgs, mut=True), "args"),
     since=12080, blocks=True, does="set")
call("cuCheckpointProcessCheckpoint", In(I32, "pid"),
     In(Ref(CUcheckpointCheckpointArgs, mut=True), "args"), since=12080, blocks=True, does="set")
call("cuCheckpointProcessRestore", In(I32, "pid"),
     In(Ref(CUcheckpointRestoreArgs, mut=True), "args"), since=12080, blocks=True, does="set")
call("cuCheckpointProcessUnlock", In(I32, "pid"), In(Ref(CUcheckpointUnlockArgs, mut=True), "args"),
     since=12080, blocks=True, does="set")
call("cuProfilerInitialize", In(STR, "configFile"), In(STR, "outputFile"),
     In(CUoutput_mode, "outputMode"), since=4000, after="none", does="set")
call("cuProfilerStart", since=4000, does="set")
call("cuProfilerStop", since=4000, does="set")
