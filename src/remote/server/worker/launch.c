/* Launches: checked, translated and passed on to the backend. Most messages are launches. */
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "remote/server/worker/code.h"
#include "remote/server/worker/worker.h"
#include "remote/wire/code.h"

#define ATTRIBUTES_MAX 64

_Static_assert(sizeof(CUlaunchAttribute) == 72, "as wire.h has it");

/* Attributes that are plain numbers: no handles, and no addresses except as a hint. Unknown ones
 * could be anything. */
static bool
can_attribute_travel(const CUlaunchAttribute *a)
{
    switch (a->id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
        return true;
    default:
        return false;
    }
}

static CUresult
launch_plain(struct hed_worker *w, const struct hed_launch_body *b, CUfunction f, CUstream stream,
             void **extra)
{
    return hed_worker_do(w, cuLaunchKernel, .f = f, .gridDimX = b->grid[0], .gridDimY = b->grid[1],
                         .gridDimZ = b->grid[2], .blockDimX = b->block[0], .blockDimY = b->block[1],
                         .blockDimZ = b->block[2], .sharedMemBytes = b->dynamic_shared,
                         .hStream = stream, .extra = extra);
}

static CUresult
launch_with_attributes(struct hed_worker *w, const struct hed_launch_body *b, CUfunction f,
                       CUstream stream, void **extra)
{
    CUlaunchAttribute attributes[ATTRIBUTES_MAX];
    const CUlaunchConfig config = {.gridDimX = b->grid[0],
                                   .gridDimY = b->grid[1],
                                   .gridDimZ = b->grid[2],
                                   .blockDimX = b->block[0],
                                   .blockDimY = b->block[1],
                                   .blockDimZ = b->block[2],
                                   .sharedMemBytes = b->dynamic_shared,
                                   .hStream = stream,
                                   .attrs = attributes,
                                   .numAttrs = b->attributes};

    memcpy(attributes, b + 1, b->attributes * sizeof *attributes);
    for (uint32_t i = 0; i < b->attributes; i++)
        if (!can_attribute_travel(&attributes[i]))
            return CUDA_ERROR_NOT_SUPPORTED;
    return hed_worker_do(w, cuLaunchKernelEx, .config = &config, .f = f, .extra = extra);
}

int
hed_do_launch(struct hed_worker_channel *ch, struct hed_msg *m)
{
    const struct hed_launch_body *b = (const struct hed_launch_body *)m;
    struct hed_worker *w = ch->worker;
    const struct hed_worker_function *f;
    CUstream stream;

    if (!w->code || b->attributes > ATTRIBUTES_MAX || b->params > HED_PARAMS_MAX || m->bulk ||
        m->size - sizeof *b < b->attributes * sizeof(CUlaunchAttribute) + b->params)
        return HED_EFORMAT;
    f = hed_worker_function(w->code, b->function);
    /* The program unloads in one thread what it launches in another, or the code was never
     * loaded. */
    if (!f || hed_worker_stream(ch, m, &stream) != 0) {
        hed_worker_failed(w, m->context, CUDA_ERROR_INVALID_HANDLE);
        return 0;
    }
    if (f->param_bytes != b->params && f->param_bytes != HED_PARAMS_UNKNOWN)
        return HED_EFORMAT;

    size_t size = b->params;
    unsigned char *params = (unsigned char *)(m + 1) + (sizeof *b - sizeof *m) +
                            b->attributes * sizeof(CUlaunchAttribute);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, params, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    const CUresult r = b->attributes
                           ? launch_with_attributes(w, b, f->real, stream, size ? extra : NULL)
                           : launch_plain(w, b, f->real, stream, size ? extra : NULL);

    if (r != CUDA_SUCCESS)
        hed_worker_failed(w, m->context, r);
    else
        hed_progress_put(ch, m);
    return 0;
}
