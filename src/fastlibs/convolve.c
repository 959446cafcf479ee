/* The calls of cuDNN's backend interface that lead to a convolution. All go on to cuDNN; what was
 * told to it is remembered (descriptors.h), so that a plan which is one plain convolution can be
 * computed here when it is executed. cuDNN has chosen how by then, which does not matter.
 */
#include <stddef.h>

#include "fastlibs/answer.h"
#include "fastlibs/cudnn.h"
#include "fastlibs/descriptors.h"
#include "fastlibs/real.h"

#define EXPORT __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

#define FIND(name) hed_real_find(HED_REAL_CUDNN, name, CALLER)

EXPORT cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t, int, int, int64_t,
                                              const void *);
EXPORT cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t, int, int, int64_t,
                                              int64_t *, void *);
EXPORT cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t);
EXPORT cudnnStatus_t cudnnBackendInitialize(cudnnBackendDescriptor_t);
EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t,
                                         cudnnBackendDescriptor_t);

cudnnStatus_t
cudnnBackendSetAttribute(cudnnBackendDescriptor_t of, int attribute, int type, int64_t count,
                         const void *elements)
{
    cudnnStatus_t (*real)(cudnnBackendDescriptor_t, int, int, int64_t, const void *) =
        (cudnnStatus_t(*)(cudnnBackendDescriptor_t, int, int, int64_t, const void *))FIND(
            "cudnnBackendSetAttribute");
    const cudnnStatus_t status =
        real ? real(of, attribute, type, count, elements) : CUDNN_STATUS_NOT_INITIALIZED;

    if (status == CUDNN_STATUS_SUCCESS && hed_real_driver())
        hed_descriptors_set(of, attribute, type, count, elements);
    return status;
}

cudnnStatus_t
cudnnBackendGetAttribute(cudnnBackendDescriptor_t of, int attribute, int type, int64_t count,
                         int64_t *returned, void *elements)
{
    cudnnStatus_t (*real)(cudnnBackendDescriptor_t, int, int, int64_t, int64_t *, void *) =
        (cudnnStatus_t(*)(cudnnBackendDescriptor_t, int, int, int64_t, int64_t *, void *))FIND(
            "cudnnBackendGetAttribute");
    const cudnnStatus_t status =
        real ? real(of, attribute, type, count, returned, elements) : CUDNN_STATUS_NOT_INITIALIZED;

    if (status == CUDNN_STATUS_SUCCESS && type == CUDNN_TYPE_BACKEND_DESCRIPTOR && elements &&
        hed_real_driver())
        hed_descriptors_filled(of, attribute, returned && *returned < count ? *returned : count,
                               elements);
    return status;
}

cudnnStatus_t
cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
    cudnnStatus_t (*real)(cudnnBackendDescriptor_t) =
        (cudnnStatus_t(*)(cudnnBackendDescriptor_t))FIND("cudnnBackendDestroyDescriptor");

    /* Before another thread gets its address. */
    hed_descriptors_forget(descriptor);
    return real ? real(descriptor) : CUDNN_STATUS_NOT_INITIALIZED;
}

/* A descriptor begins anew. */
cudnnStatus_t
cudnnBackendInitialize(cudnnBackendDescriptor_t descriptor)
{
    cudnnStatus_t (*real)(cudnnBackendDescriptor_t) =
        (cudnnStatus_t(*)(cudnnBackendDescriptor_t))FIND("cudnnBackendInitialize");

    hed_descriptors_forget(descriptor);
    return real ? real(descriptor) : CUDNN_STATUS_NOT_INITIALIZED;
}

static bool
answer_plan(cudnnHandle_t handle, const void *plan, const void *pack, const void *caller)
{
    cudnnStatus_t (*get_stream)(cudnnHandle_t, CUstream *) =
        (cudnnStatus_t(*)(cudnnHandle_t, CUstream *))hed_real_find(HED_REAL_CUDNN, "cudnnGetStream",
                                                                   caller);
    struct hed_convolution c;
    CUstream stream;

    switch (hed_descriptors_find(plan, pack, &c)) {
    case HED_DESCRIBED_PLAIN:
        return get_stream && get_stream(handle, &stream) == CUDNN_STATUS_SUCCESS &&
               hed_answer_convolution(stream, &c);
    case HED_DESCRIBED_OTHER:
        hed_answer_leave(HED_LEFT_KIND);
        return false;
    default:
        return false;
    }
}

cudnnStatus_t
cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                    cudnnBackendDescriptor_t pack)
{
    cudnnStatus_t (*real)(cudnnHandle_t, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t) =
        (cudnnStatus_t(*)(cudnnHandle_t, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t))FIND(
            "cudnnBackendExecute");

    if (hed_real_driver() && answer_plan(handle, plan, pack, CALLER))
        return CUDNN_STATUS_SUCCESS;
    return real ? real(handle, plan, pack) : CUDNN_STATUS_NOT_INITIALIZED;
}
