/* Compares our description of CUPTI's structures (src/see/inject/cupti.h) with NVIDIA's headers.
 * The program does nothing: if something is wrong, it does not compile. */
#include <cuda.h>
#include <cupti.h>

#include "see/inject/cupti.h"

#define SAME(ours, a, theirs, b)                                                            \
    _Static_assert(offsetof(struct ours, a) == offsetof(theirs, b), #ours "." #a " moved"); \
    _Static_assert(sizeof(((struct ours *)0)->a) == sizeof(((theirs *)0)->b), #ours "." #a " grew")

SAME(hed_cupti_call, site, CUpti_CallbackData, callbackSite);
SAME(hed_cupti_call, function, CUpti_CallbackData, functionName);
SAME(hed_cupti_call, params, CUpti_CallbackData, functionParams);
SAME(hed_cupti_call, returns, CUpti_CallbackData, functionReturnValue);
SAME(hed_cupti_call, context, CUpti_CallbackData, context);
SAME(hed_cupti_call, correlation, CUpti_CallbackData, correlationId);

#define KERNEL(ours, theirs) SAME(hed_cupti_kernel, ours, CUpti_ActivityKernel4, theirs)
KERNEL(kind, kind);
KERNEL(registers, registersPerThread);
KERNEL(start, start);
KERNEL(end, end);
KERNEL(device, deviceId);
KERNEL(context, contextId);
KERNEL(stream, streamId);
KERNEL(grid[0], gridX);
KERNEL(grid[2], gridZ);
KERNEL(block[0], blockX);
KERNEL(block[2], blockZ);
KERNEL(static_shared, staticSharedMemory);
KERNEL(dynamic_shared, dynamicSharedMemory);
KERNEL(correlation, correlationId);
KERNEL(name, name);

#define COPY(ours, theirs) SAME(hed_cupti_copy, ours, CUpti_ActivityMemcpy, theirs)
COPY(kind, kind);
COPY(direction, copyKind);
COPY(from, srcKind);
COPY(to, dstKind);
COPY(bytes, bytes);
COPY(start, start);
COPY(end, end);
COPY(device, deviceId);
COPY(context, contextId);
COPY(stream, streamId);
COPY(correlation, correlationId);

#define PEER(ours, theirs) SAME(hed_cupti_copy, ours, CUpti_ActivityMemcpyPtoP, theirs)
PEER(kind, kind);
PEER(bytes, bytes);
PEER(start, start);
PEER(device, deviceId);
PEER(stream, streamId);
PEER(peer.from_device, srcDeviceId);
PEER(peer.to_device, dstDeviceId);
PEER(peer.correlation, correlationId);

#define FILL(ours, theirs) SAME(hed_cupti_fill, ours, CUpti_ActivityMemset, theirs)
FILL(kind, kind);
FILL(bytes, bytes);
FILL(start, start);
FILL(end, end);
FILL(device, deviceId);
FILL(context, contextId);
FILL(stream, streamId);
FILL(correlation, correlationId);

/* The newest ones that these headers have. */
#if CUPTI_API_VERSION >= 130000
_Static_assert(offsetof(CUpti_ActivityKernel10, name) == offsetof(CUpti_ActivityKernel4, name) &&
                   offsetof(CUpti_ActivityKernel10, correlationId) ==
                       offsetof(CUpti_ActivityKernel4, correlationId),
               "records of kernels begin in another way");
_Static_assert(offsetof(CUpti_ActivityMemcpy6, correlationId) ==
                   offsetof(CUpti_ActivityMemcpy, correlationId),
               "records of copies begin in another way");
_Static_assert(offsetof(CUpti_ActivityMemcpyPtoP4, correlationId) ==
                   offsetof(CUpti_ActivityMemcpyPtoP, correlationId),
               "records of peer copies begin in another way");
_Static_assert(offsetof(CUpti_ActivityMemset4, correlationId) ==
                   offsetof(CUpti_ActivityMemset, correlationId),
               "records of fills begin in another way");
#endif

_Static_assert(HED_CUPTI_DRIVER_API == CUPTI_CB_DOMAIN_DRIVER_API, "domain");
_Static_assert(HED_CUPTI_ENTER == CUPTI_API_ENTER && HED_CUPTI_EXIT == CUPTI_API_EXIT, "site");
_Static_assert((int)HED_CUPTI_COPY == (int)CUPTI_ACTIVITY_KIND_MEMCPY, "copy");
_Static_assert((int)HED_CUPTI_FILL == (int)CUPTI_ACTIVITY_KIND_MEMSET, "fill");
_Static_assert((int)HED_CUPTI_KERNEL == (int)CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "kernel");
_Static_assert((int)HED_CUPTI_PEER_COPY == (int)CUPTI_ACTIVITY_KIND_MEMCPY2, "peer copy");
_Static_assert(HED_CUPTI_FULL == CUPTI_ERROR_MAX_LIMIT_REACHED, "full");
_Static_assert(HED_CUPTI_OTHER_PROFILER == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "");
_Static_assert(HED_CUPTI_CALLS_MAX > CUPTI_DRIVER_TRACE_CBID_SIZE, "callback ids");

int
main(void)
{
    return 0;
}
