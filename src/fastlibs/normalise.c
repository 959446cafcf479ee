/* The calls of cuDNN for batch normalisation, as PyTorch makes them: plain ones, of channels, with
 * results that replace what was there. Everything else goes on to cuDNN.
 *
 * What cuDNN reserves between the two directions is for activations that it fuses; a plain
 * normalisation needs none of it, so either direction can be computed by either of us.
 */
#include <stddef.h>
#include <string.h>

#include "fastlibs/answer.h"
#include "fastlibs/cudnn.h"
#include "fastlibs/descriptors.h"
#include "fastlibs/normalisation.h"
#include "fastlibs/real.h"

#define EXPORT __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

typedef const void *tensor_t; /* cudnnTensorDescriptor_t */

/* ---- what is asked for ----------------------------------------------------------------------- */

/* A call's arguments that are not in struct hed_normalisation yet. */
struct asked {
    cudnnHandle_t handle;
    int mode, fused;
    const float *factors[2][2]; /* result and what was there before; the numbers' likewise */
    tensor_t x, y, dy, numbers;
    const void *caller;
};

/* Up to five dimensions with those of space at the end, as a tensor of cuDNN says. */
static bool
read_tensor(const struct asked *a, tensor_t from, int *type, struct hed_tensor *to)
{
    cudnnStatus_t (*get)(tensor_t, int, int *, int *, int *, int *) =
        (cudnnStatus_t(*)(tensor_t, int, int *, int *, int *, int *))hed_real_find(
            HED_REAL_CUDNN, "cudnnGetTensorNdDescriptor", a->caller);
    int n = 0, size[HED_TENSOR_DIMS], stride[HED_TENSOR_DIMS];

    if (!get || !from ||
        get(from, HED_TENSOR_DIMS, type, &n, size, stride) != CUDNN_STATUS_SUCCESS || n < 3 ||
        n > HED_TENSOR_DIMS)
        return false;
    for (int i = 0; i < HED_TENSOR_DIMS; i++) {
        /* Those in front of space are the first two. */
        const int at = i < 2 ? i : i - (HED_TENSOR_DIMS - n);

        to->size[i] = at < 2 && i >= 2 ? 1 : size[at];
        to->stride[i] = at < 2 && i >= 2 ? 0 : stride[at];
    }
    return true;
}

/* One float for each channel, in one piece? */
static bool
are_channels(const struct asked *a, int64_t channels)
{
    struct hed_tensor t;
    int type;

    if (!read_tensor(a, a->numbers, &type, &t) || type != CUDNN_DATA_FLOAT ||
        t.size[1] != channels || (channels > 1 && t.stride[1] != 1))
        return false;
    return t.size[0] == 1 && t.size[2] == 1 && t.size[3] == 1 && t.size[4] == 1;
}

static bool
replaces(const float *const factors[2])
{
    return factors[0] && factors[1] && *factors[0] == 1 && *factors[1] == 0;
}

/* Fills in tensors whose data is there. */
static bool
read_asked(const struct asked *a, struct hed_normalisation *n)
{
    const bool has_gradient = n->kind == HED_NORMALISATION_GRADIENTS;
    int x, y, dy;

    if (a->fused != CUDNN_BATCHNORM_OPS_BN)
        return false;
    if ((a->mode != CUDNN_BATCHNORM_SPATIAL && a->mode != CUDNN_BATCHNORM_SPATIAL_PERSISTENT) ||
        !replaces(a->factors[0]) || !replaces(a->factors[1]))
        return false;
    if (!read_tensor(a, a->x, &x, &n->x) || !read_tensor(a, a->y, &y, &n->y) || x != y ||
        (has_gradient && (!read_tensor(a, a->dy, &dy, &n->dy) || dy != x)))
        return false;
    return hed_descriptors_type(x, &n->type) && are_channels(a, n->x.size[1]);
}

static bool
answer_asked(const struct asked *a, struct hed_normalisation *n)
{
    cudnnStatus_t (*get_stream)(cudnnHandle_t, CUstream *) =
        (cudnnStatus_t(*)(cudnnHandle_t, CUstream *))hed_real_find(HED_REAL_CUDNN, "cudnnGetStream",
                                                                   a->caller);
    CUstream stream;

    if (!hed_real_driver())
        return false;
    if (!read_asked(a, n)) {
        hed_answer_leave(HED_LEFT_KIND);
        return false;
    }
    return get_stream && get_stream(a->handle, &stream) == CUDNN_STATUS_SUCCESS &&
           hed_answer_normalisation(stream, n);
}

/* ---- the calls ------------------------------------------------------------------------------- */

/* Each call is declared, found and forwarded with the same list of arguments.
 * FORWARD(name, types, arguments) */
#define FORWARD(name, types, arguments)                                          \
    do {                                                                         \
        cudnnStatus_t(*real) types =                                             \
            (cudnnStatus_t(*) types)hed_real_find(HED_REAL_CUDNN, name, CALLER); \
        return real ? real arguments : CUDNN_STATUS_NOT_INITIALIZED;             \
    } while (0)

#define TRAINING_TYPES                                                                     \
    (cudnnHandle_t, int, const float *, const float *, tensor_t, void *, tensor_t, void *, \
     tensor_t, void *, void *, double, void *, void *, double, void *, void *)
#define TRAINING_EX_TYPES                                                                        \
    (cudnnHandle_t, int, int, const float *, const float *, tensor_t, void *, tensor_t, void *,  \
     tensor_t, void *, tensor_t, void *, void *, double, void *, void *, double, void *, void *, \
     void *, void *, size_t, void *, size_t)
#define INFERENCE_TYPES                                                                    \
    (cudnnHandle_t, int, const float *, const float *, tensor_t, void *, tensor_t, void *, \
     tensor_t, void *, void *, void *, void *, double)
#define BACKWARD_TYPES                                                                             \
    (cudnnHandle_t, int, const float *, const float *, const float *, const float *, tensor_t,     \
     void *, tensor_t, void *, tensor_t, void *, tensor_t, void *, void *, void *, double, void *, \
     void *)
#define BACKWARD_EX_TYPES                                                                      \
    (cudnnHandle_t, int, int, const float *, const float *, const float *, const float *,      \
     tensor_t, void *, tensor_t, void *, tensor_t, void *, tensor_t, void *, tensor_t, void *, \
     tensor_t, void *, void *, void *, void *, double, void *, void *, void *, void *, size_t, \
     void *, size_t)

EXPORT cudnnStatus_t cudnnBatchNormalizationForwardTraining TRAINING_TYPES;
EXPORT cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx TRAINING_EX_TYPES;
EXPORT cudnnStatus_t cudnnBatchNormalizationForwardInference INFERENCE_TYPES;
EXPORT cudnnStatus_t cudnnBatchNormalizationBackward BACKWARD_TYPES;
EXPORT cudnnStatus_t cudnnBatchNormalizationBackwardEx BACKWARD_EX_TYPES;

cudnnStatus_t
cudnnBatchNormalizationForwardTraining(cudnnHandle_t handle, int mode, const float *alpha,
                                       const float *beta, tensor_t x_is, void *x, tensor_t y_is,
                                       void *y, tensor_t numbers_are, void *scale, void *bias,
                                       double factor, void *mean, void *variance, double epsilon,
                                       void *saved_mean, void *saved_deviation)
{
    const struct asked a = {handle,
                            mode,
                            CUDNN_BATCHNORM_OPS_BN,
                            {{alpha, beta}, {alpha, beta}},
                            x_is,
                            y_is,
                            NULL,
                            numbers_are,
                            CALLER};
    struct hed_normalisation n = {
        .kind = HED_NORMALISATION_TRAINING,
        .x.data = x,
        .y.data = y,
        .numbers = {scale, bias, mean, variance, saved_mean, saved_deviation},
        .epsilon = epsilon,
        .factor = factor};

    if (answer_asked(&a, &n))
        return CUDNN_STATUS_SUCCESS;
    FORWARD("cudnnBatchNormalizationForwardTraining", TRAINING_TYPES,
            (handle, mode, alpha, beta, x_is, x, y_is, y, numbers_are, scale, bias, factor, mean,
             variance, epsilon, saved_mean, saved_deviation));
}

cudnnStatus_t
cudnnBatchNormalizationForwardTrainingEx(cudnnHandle_t handle, int mode, int fused,
                                         const float *alpha, const float *beta, tensor_t x_is,
                                         void *x, tensor_t z_is, void *z, tensor_t y_is, void *y,
                                         tensor_t numbers_are, void *scale, void *bias,
                                         double factor, void *mean, void *variance, double epsilon,
                                         void *saved_mean, void *saved_deviation, void *activation,
                                         void *workspace, size_t workspace_size, void *reserve,
                                         size_t reserve_size)
{
    const struct asked a = {handle, mode,        fused, {{alpha, beta}, {alpha, beta}}, x_is, y_is,
                            NULL,   numbers_are, CALLER};
    struct hed_normalisation n = {
        .kind = HED_NORMALISATION_TRAINING,
        .x.data = x,
        .y.data = y,
        .numbers = {scale, bias, mean, variance, saved_mean, saved_deviation},
        .epsilon = epsilon,
        .factor = factor};

    if (answer_asked(&a, &n))
        return CUDNN_STATUS_SUCCESS;
    FORWARD("cudnnBatchNormalizationForwardTrainingEx", TRAINING_EX_TYPES,
            (handle, mode, fused, alpha, beta, x_is, x, z_is, z, y_is, y, numbers_are, scale, bias,
             factor, mean, variance, epsilon, saved_mean, saved_deviation, activation, workspace,
             workspace_size, reserve, reserve_size));
}

cudnnStatus_t
cudnnBatchNormalizationForwardInference(cudnnHandle_t handle, int mode, const float *alpha,
                                        const float *beta, tensor_t x_is, void *x, tensor_t y_is,
                                        void *y, tensor_t numbers_are, void *scale, void *bias,
                                        void *mean, void *variance, double epsilon)
{
    const struct asked a = {handle,
                            mode,
                            CUDNN_BATCHNORM_OPS_BN,
                            {{alpha, beta}, {alpha, beta}},
                            x_is,
                            y_is,
                            NULL,
                            numbers_are,
                            CALLER};
    struct hed_normalisation n = {.kind = HED_NORMALISATION_INFERENCE,
                                  .x.data = x,
                                  .y.data = y,
                                  .numbers = {scale, bias, mean, variance},
                                  .epsilon = epsilon};

    if (answer_asked(&a, &n))
        return CUDNN_STATUS_SUCCESS;
    FORWARD("cudnnBatchNormalizationForwardInference", INFERENCE_TYPES,
            (handle, mode, alpha, beta, x_is, x, y_is, y, numbers_are, scale, bias, mean, variance,
             epsilon));
}

cudnnStatus_t
cudnnBatchNormalizationBackward(cudnnHandle_t handle, int mode, const float *alpha,
                                const float *beta, const float *numbers_alpha,
                                const float *numbers_beta, tensor_t x_is, void *x, tensor_t dy_is,
                                void *dy, tensor_t dx_is, void *dx, tensor_t numbers_are,
                                void *scale, void *scale_gradient, void *bias_gradient,
                                double epsilon, void *saved_mean, void *saved_deviation)
{
    const struct asked a = {handle,
                            mode,
                            CUDNN_BATCHNORM_OPS_BN,
                            {{alpha, beta}, {numbers_alpha, numbers_beta}},
                            x_is,
                            dx_is,
                            dy_is,
                            numbers_are,
                            CALLER};
    struct hed_normalisation n = {.kind = HED_NORMALISATION_GRADIENTS,
                                  .x.data = x,
                                  .y.data = dx,
                                  .dy.data = dy,
                                  .numbers = {scale, NULL, NULL, NULL, saved_mean, saved_deviation,
                                              scale_gradient, bias_gradient},
                                  .epsilon = epsilon};

    if (answer_asked(&a, &n))
        return CUDNN_STATUS_SUCCESS;
    FORWARD("cudnnBatchNormalizationBackward", BACKWARD_TYPES,
            (handle, mode, alpha, beta, numbers_alpha, numbers_beta, x_is, x, dy_is, dy, dx_is, dx,
             numbers_are, scale, scale_gradient, bias_gradient, epsilon, saved_mean,
             saved_deviation));
}

cudnnStatus_t
cudnnBatchNormalizationBackwardEx(cudnnHandle_t handle, int mode, int fused, const float *alpha,
                                  const float *beta, const float *numbers_alpha,
                                  const float *numbers_beta, tensor_t x_is, void *x, tensor_t y_is,
                                  void *y, tensor_t dy_is, void *dy, tensor_t dz_is, void *dz,
                                  tensor_t dx_is, void *dx, tensor_t numbers_are, void *scale,
                                  void *bias, void *scale_gradient, void *bias_gradient,
                                  double epsilon, void *saved_mean, void *saved_deviation,
                                  void *activation, void *workspace, size_t workspace_size,
                                  void *reserve, size_t reserve_size)
{
    const struct asked a = {handle, mode,  fused, {{alpha, beta}, {numbers_alpha, numbers_beta}},
                            x_is,   dx_is, dy_is, numbers_are,
                            CALLER};
    struct hed_normalisation n = {.kind = HED_NORMALISATION_GRADIENTS,
                                  .x.data = x,
                                  .y.data = dx,
                                  .dy.data = dy,
                                  .numbers = {scale, NULL, NULL, NULL, saved_mean, saved_deviation,
                                              scale_gradient, bias_gradient},
                                  .epsilon = epsilon};

    if (answer_asked(&a, &n))
        return CUDNN_STATUS_SUCCESS;
    FORWARD("cudnnBatchNormalizationBackwardEx", BACKWARD_EX_TYPES,
            (handle, mode, fused, alpha, beta, numbers_alpha, numbers_beta, x_is, x, y_is, y, dy_is,
             dy, dz_is, dz, dx_is, dx, numbers_are, scale, bias, scale_gradient, bias_gradient,
             epsilon, saved_mean, saved_deviation, activation, workspace, workspace_size, reserve,
             reserve_size));
}
