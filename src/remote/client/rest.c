/* Calls that only the worker can answer and that no area of the driver sends: the worker makes them
 * unchanged. Calls that are not in the table do not travel. Memory and events of other processes
 * (cuIpc..., shareable handles) never do, since they would be those of the worker's computer. */
#include "driver/driver.h"
#include "gen/cuda_sets.h"
#include "remote/client/remote.h"

#define ATTRIBUTES_MAX 64

/* Answers that depend on how a device is built. Attributes with handles are left out, since they do
 * not affect how many clusters fit. */
static CUresult
relay_clusters(struct hed_remote *r, uint64_t context, enum hed_cuda_call id, void *args,
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

/* A question about two devices. The arguments are put back as they were. */
static CUresult
relay_devices(struct hed_remote *r, uint64_t context, enum hed_cuda_call id, void *args,
              CUdevice *first, CUdevice *second)
{
    const CUdevice given[2] = {*first, *second};
    CUresult result;

    if (r->backend == HED_BACKEND_NULL)
        return CUDA_ERROR_NOT_SUPPORTED;
    *first = worker_ordinal(r, given[0]);
    *second = worker_ordinal(r, given[1]);
    result = hed_remote_ask_call(r, 0, 0, id, args, false);
    *first = given[0];
    *second = given[1];
    return result;
}

/* The worker keeps primary contexts longer than the program does, and the peers enabled in them. */
static CUresult
relay_peers(struct hed_remote *r, uint64_t context, enum hed_cuda_call id, void *args)
{
    const CUresult result = hed_remote_ask_call(r, context, 0, id, args, false);

    return result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED ||
                   result == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED
               ? CUDA_SUCCESS
               : result;
}

static CUresult
relay_plain(struct hed_remote *r, uint64_t context, enum hed_cuda_call id, void *args)
{
    return hed_remote_ask_call(r, context, 0, id, args, false);
}

#define RELAY(call, class, ...)                                    \
    case HED_##call: {                                             \
        struct hed_##call *a = args;                               \
                                                                   \
        (void)a; /* most have nothing to look at */                \
        return relay_##class(r, context, id, args, ##__VA_ARGS__); \
    }

CUresult
hed_remote_call(void *m, struct hed_context *c, enum hed_cuda_call id, void *args)
{
    struct hed_remote *r = hed_remote_of(m);
    const uint64_t context = c ? c->object.handle : 0;

    switch ((int)id) {
        HED_CUDA_RELAY(RELAY)
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
