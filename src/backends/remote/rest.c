/* Calls that only the worker can answer and that no area of the driver sends: the worker makes them
 * unchanged. Calls that are not in the table do not travel. Memory and events of other processes
 * (cuIpc..., shareable handles) never do, since they would be those of the worker's computer. */
#include "backends/remote/remote.h"
#include "driver/context/context.h"

#define ATTRIBUTES_MAX 64

/* Answers that depend on how a device is built. Attributes with handles are left out, since they do
 * not affect how many clusters fit. */
static CUresult
ask_clusters(struct hed_remote *r, uint64_t context, enum hed_cuda_call id, void *args,
             const CUlaunchConfig **config)
{
    const CUlaunchConfig *given = *config;
    CUlaunchAttribute attributes[ATTRIBUTES_MAX];
    CUlaunchConfig plain = *given;
    unsigned count = 0;

    for (unsigned i = 0; i < given->numAttrs && given->attrs && count < ATTRIBUTES_MAX; i++)
        if (given->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ||
            given->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE ||
            given->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            attributes[count++] = given->attrs[i];
    plain.hStream = NULL;
    plain.attrs = count ? attributes : NULL;
    plain.numAttrs = count;
    *config = &plain;

    const CUresult result = hed_remote_ask_call(r, context, 0, id, args, false);

    *config = given;
    return result;
}

/* ---- devices that reach each other's memory -------------------------------------------------- */

/* The server's number of a device. */
static CUdevice
worker_ordinal(const struct hed_remote *r, CUdevice device)
{
    return r->devices[device].ordinal;
}

static CUresult
ask_peers(struct hed_remote *r, enum hed_cuda_call id, void *args)
{
    if (id == HED_cuDeviceCanAccessPeer) {
        struct hed_cuDeviceCanAccessPeer a = *(struct hed_cuDeviceCanAccessPeer *)args;

        a.dev = worker_ordinal(r, a.dev);
        a.peerDev = worker_ordinal(r, a.peerDev);
        return hed_remote_ask_call(r, 0, 0, id, &a, false);
    }

    struct hed_cuDeviceGetP2PAttribute a = *(struct hed_cuDeviceGetP2PAttribute *)args;

    a.srcDevice = worker_ordinal(r, a.srcDevice);
    a.dstDevice = worker_ordinal(r, a.dstDevice);
    return hed_remote_ask_call(r, 0, 0, id, &a, false);
}

/* The worker keeps primary contexts longer than the program does, and the peers enabled in them. */
static CUresult
change_peers(struct hed_remote *r, uint64_t context, enum hed_cuda_call id, void *args)
{
    const CUresult result = hed_remote_ask_call(r, context, 0, id, args, false);

    return result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED ||
                   result == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED
               ? CUDA_SUCCESS
               : result;
}

CUresult
hed_remote_call(void *m, struct hed_context *c, enum hed_cuda_call id, void *args)
{
    struct hed_remote *r = hed_remote_of(m);
    const uint64_t context = c ? c->object.handle : 0;

    switch (id) {
    case HED_cuDeviceCanAccessPeer:
    case HED_cuDeviceGetP2PAttribute:
        return r->backend == HED_BACKEND_NULL ? CUDA_ERROR_NOT_SUPPORTED : ask_peers(r, id, args);
    case HED_cuCtxEnablePeerAccess:
    case HED_cuCtxDisablePeerAccess:
        return change_peers(r, context, id, args);
    case HED_cuTensorMapEncodeTiled:
    case HED_cuTensorMapEncodeIm2col:
    case HED_cuTensorMapEncodeIm2colWide:
    case HED_cuTensorMapReplaceAddress:
    case HED_cuFuncSetCacheConfig:
    case HED_cuFuncSetSharedMemConfig:
        return hed_remote_ask_call(r, context, 0, id, args, false);
    case HED_cuOccupancyMaxActiveClusters:
        return ask_clusters(r, context, id, args,
                            &((struct hed_cuOccupancyMaxActiveClusters *)args)->config);
    case HED_cuOccupancyMaxPotentialClusterSize:
        return ask_clusters(r, context, id, args,
                            &((struct hed_cuOccupancyMaxPotentialClusterSize *)args)->config);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult
hed_remote_unknown(void *m, struct hed_layer *self, enum hed_cuda_call id, void *args)
{
    struct hed_context *c = NULL;
    CUresult r = hed_current(self, &c);

    if (r == CUDA_ERROR_INVALID_CONTEXT) {
        c = NULL; /* some calls do not need one */
        r = CUDA_SUCCESS;
    }
    return r == CUDA_SUCCESS ? hed_remote_call(m, c, id, args) : r;
}
