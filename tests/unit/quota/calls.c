/* No call that can take memory of a device is forgotten: every call of the spec whose name sounds
 * like it is charged by the quota layer, or stands here with the reason why it is not. The reasons
 * are those of docs/internals/quota.md. */
#include "unit/quota/make.h"

#include "core/call.h"

static const char *const sounds[] = {
    "Alloc",       "Create", "Load",      "Import",    "Open",    "Register",   "Clone",    "Limit",
    "Instantiate", "Launch", "Upload",    "Pool",      "Add",     "Update",     "Prefetch", "Map",
    "Link",        "Retain", "SetParams", "Multicast", "Restore", "Materialize"};

/* Names are separated by blanks. */
static const struct {
    const char *why;
    const char *names;
} decided[] = {
    {"it asks or sets, and takes nothing",
     " cuCtxGetLimit cuMemGetAllocationGranularity cuMemGetAllocationPropertiesFromHandle"
     " cuMemPoolSetAttribute cuMemPoolGetAttribute cuMemPoolSetAccess cuMemPoolGetAccess"
     " cuMemPoolExportToShareableHandle cuMemPoolExportPointer cuModuleGetLoadingMode"
     " cuFuncIsLoaded cuGraphMemAllocNodeGetParams cuGraphNodeFindInClone cuGetProcAddress"
     " cuGetProcAddress_v2 cuTensorMapEncodeTiled cuTensorMapEncodeIm2col"
     " cuTensorMapEncodeIm2colWide cuTensorMapReplaceAddress cuMulticastGetGranularity"
     " cuLogsRegisterCallback cuDeviceRegisterAsyncNotification cuGraphicsResourceSetMapFlags"
     " cuGraphicsResourceSetMapFlags_v2 cuGLSetBufferObjectMapFlags"
     " cuCheckpointProcessGetRestoreThreadId cuMemGetAddressRange cuMemGetAddressRange_v2"
     " cuMemGetHandleForAddressRange cuTexRefGetAddress cuTexRefGetAddress_v2 cuTexRefSetAddress"
     " cuTexRefSetAddress_v2 cuTexRefSetAddress2D cuTexRefSetAddress2D_v2"
     " cuTexRefSetAddress2D_v3 cuTexRefGetAddressMode cuTexRefSetAddressMode"
     " cuStreamUpdateCaptureDependencies cuStreamUpdateCaptureDependencies_v2"
     " cuGraphAddDependencies cuGraphAddDependencies_v2 cuStreamAddCallback"},
    {"addresses without memory", " cuMemAddressReserve cuMemAddressFree"},
    {"objects of a few bytes, of a context's own memory",
     " cuTexRefCreate cuTexObjectCreate cuSurfObjectCreate cuStreamCreate"
     " cuStreamCreateWithPriority cuGreenCtxStreamCreate cuEventCreate cuUserObjectCreate"
     " cuUserObjectRetain cuGraphRetainUserObject cuGraphCreate cuGraphConditionalHandleCreate"},
    {"a context is not charged for itself",
     " cuCtxCreate cuCtxCreate_v2 cuCtxCreate_v3 cuCtxCreate_v4 cuGreenCtxCreate cuGLCtxCreate"
     " cuGLCtxCreate_v2 cuVDPAUCtxCreate cuVDPAUCtxCreate_v2"},
    {"managed memory is charged whole when it is allocated; other pages are the system's",
     " cuMemPrefetchAsync cuMemPrefetchAsync_v2 cuMemPrefetchBatchAsync"
     " cuMemDiscardAndPrefetchBatchAsync"},
    {"memory of the host", " cuMemAllocHost cuMemAllocHost_v2 cuMemHostAlloc cuMemHostRegister"
                           " cuMemHostRegister_v2"},
    {"memory of another process, which is charged",
     " cuIpcOpenMemHandle cuIpcOpenMemHandle_v2 cuIpcOpenEventHandle"
     " cuMemImportFromShareableHandle cuMemPoolImportPointer"},
    {"memory of another API",
     " cuImportExternalMemory cuImportExternalSemaphore cuExternalMemoryGetMappedBuffer"
     " cuExternalMemoryGetMappedMipmappedArray cuGraphicsSubResourceGetMappedArray"
     " cuGraphicsResourceGetMappedMipmappedArray cuGraphicsResourceGetMappedPointer"
     " cuGraphicsResourceGetMappedPointer_v2 cuGraphicsResourceGetMappedEglFrame"
     " cuGraphicsMapResources cuGraphicsGLRegisterBuffer"
     " cuGraphicsGLRegisterImage cuGLRegisterBufferObject"
     " cuGLMapBufferObject cuGLMapBufferObject_v2 cuGLMapBufferObjectAsync"
     " cuGLMapBufferObjectAsync_v2"
     " cuGraphicsEGLRegisterImage cuEventCreateFromEGLSync cuGraphicsVDPAURegisterVideoSurface"
     " cuGraphicsVDPAURegisterOutputSurface"},
    {"what is bound to it is charged already",
     " cuMulticastCreate cuMulticastAddDevice cuMulticastBindMem cuMulticastBindAddr"
     " cuMulticastUnbind"},
    {"a node without memory of its own, or one whose memory counts when the graph is made",
     " cuGraphAddKernelNode cuGraphAddKernelNode_v2 cuGraphAddMemcpyNode cuGraphAddMemsetNode"
     " cuGraphAddHostNode cuGraphAddEmptyNode cuGraphAddEventRecordNode cuGraphAddEventWaitNode"
     " cuGraphAddExternalSemaphoresSignalNode cuGraphAddExternalSemaphoresWaitNode"
     " cuGraphAddBatchMemOpNode cuGraphAddChildGraphNode cuGraphAddMemFreeNode cuGraphClone"
     " cuGraphKernelNodeSetParams cuGraphKernelNodeSetParams_v2 cuGraphMemcpyNodeSetParams"
     " cuGraphMemsetNodeSetParams cuGraphHostNodeSetParams"
     " cuGraphExternalSemaphoresSignalNodeSetParams cuGraphExternalSemaphoresWaitNodeSetParams"
     " cuGraphBatchMemOpNodeSetParams cuGraphNodeSetParams"},
    {"nodes that allocate cannot be changed in an executable graph",
     " cuGraphExecBatchMemOpNodeSetParams cuGraphExecKernelNodeSetParams"
     " cuGraphExecKernelNodeSetParams_v2 cuGraphExecMemcpyNodeSetParams"
     " cuGraphExecMemsetNodeSetParams cuGraphExecHostNodeSetParams"
     " cuGraphExecChildGraphNodeSetParams cuGraphExecExternalSemaphoresSignalNodeSetParams"
     " cuGraphExecExternalSemaphoresWaitNodeSetParams cuGraphExecUpdate cuGraphExecUpdate_v2"
     " cuGraphExecNodeSetParams"},
    {"linked on the host; what comes of it is charged when it is loaded",
     " cuLinkCreate cuLinkCreate_v2 cuLinkAddData cuLinkAddData_v2 cuLinkAddFile"
     " cuLinkAddFile_v2 cuLinkComplete cuLinkDestroy"},
    {"code at its first use, and threads' local memory: not known, not charged",
     " cuLaunch cuLaunchGrid cuLaunchGridAsync cuLaunchKernel cuLaunchKernelEx"
     " cuLaunchCooperativeKernel cuLaunchCooperativeKernelMultiDevice cuLaunchHostFunc"
     " cuFuncLoad"},
    {"it is charged to the process that comes back with it", " cuCheckpointProcessRestore"},
};

#define NAME(call) #call,
static const char *const charged_calls[] = {QUOTA_CALLS(NAME)};
#undef NAME

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool
is_charged(const char *name)
{
    for (size_t i = 0; i < COUNT(charged_calls); i++)
        if (strcmp(charged_calls[i], name) == 0)
            return true;
    return false;
}

/* How many reasons name it? */
static unsigned
count_reasons(const char *name)
{
    const size_t n = strlen(name);
    unsigned found = 0;

    for (size_t i = 0; i < COUNT(decided); i++)
        for (const char *p = decided[i].names; (p = strstr(p, name)) != NULL; p += n)
            found += p[-1] == ' ' && (p[n] == ' ' || p[n] == '\0');
    return found;
}

static bool
sounds_like_memory(const char *name)
{
    for (size_t i = 0; i < COUNT(sounds); i++)
        if (strstr(name, sounds[i]))
            return true;
    return false;
}

static void
every_call_that_may_allocate_is_decided(void **state)
{
    const struct hed_call_info *info;
    unsigned undecided = 0;

    for (uint32_t id = 1; (info = hed_call_info(HED_API_CUDA, id)) != NULL; id++) {
        const unsigned reasons = count_reasons(info->name);
        const bool charged = is_charged(info->name);

        if (charged ? reasons != 0 : reasons != (unsigned)sounds_like_memory(info->name)) {
            print_error("%s: %s, and %u reasons why not\n", info->name,
                        charged ? "charged" : "not charged", reasons);
            undecided++;
        }
    }
    assert_int_equal(undecided, 0);
}

static void
what_is_decided_exists(void **state)
{
    char name[128];
    unsigned unknown = 0;

    for (size_t i = 0; i < COUNT(charged_calls); i++)
        assert_int_not_equal(hed_call_find(HED_API_CUDA, charged_calls[i]), 0);
    for (size_t i = 0; i < COUNT(decided); i++) {
        for (const char *p = decided[i].names; *p; p += strcspn(p + 1, " ") + 1) {
            (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(p + 1, " "), p + 1);
            if (hed_call_find(HED_API_CUDA, name) == 0) {
                print_error("there is no %s\n", name);
                unknown++;
            }
        }
    }
    assert_int_equal(unknown, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_call_that_may_allocate_is_decided),
    cmocka_unit_test(what_is_decided_exists),
};

HED_UNIT_MAIN(tests)
