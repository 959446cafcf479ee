/* Plays libcudnn.so.9: takes everything that it is told, chooses one engine, and answers 97 when it
 * has to compute. */
#include <stdlib.h>

#include "played.h"

int
cudnnGetStream(void *handle, void **stream)
{
    if (!handle)
        return 1001;
    *stream = ((struct played_handle *)handle)->stream;
    return 0;
}

int
cudnnBackendCreateDescriptor(int type, void **out)
{
    (void)type;
    *out = malloc(1);
    return *out ? 0 : 1;
}

int
cudnnBackendDestroyDescriptor(void *descriptor)
{
    free(descriptor);
    return 0;
}

int
cudnnBackendSetAttribute(void *descriptor, int attribute, int type, int64_t count,
                         const void *elements)
{
    (void)descriptor;
    (void)attribute;
    (void)type;
    (void)elements;
    return count < 1 ? 2000 : 0;
}

/* The program made the descriptors that it wants to have filled in. */
int
cudnnBackendGetAttribute(void *descriptor, int attribute, int type, int64_t count,
                         int64_t *returned, void *elements)
{
    (void)descriptor;
    (void)type;
    (void)count;
    (void)elements;
    if (attribute != 202)
        return 3000;
    *returned = 1;
    return 0;
}

int
cudnnBackendExecute(void *handle, void *plan, void *pack)
{
    (void)handle;
    (void)plan;
    (void)pack;
    return 97;
}

/* A descriptor is what it says. */
int
cudnnGetTensorNdDescriptor(const struct played_tensor *t, int most, int *type, int *dims,
                           int *sizes, int *strides)
{
    *type = t->type;
    *dims = 4;
    for (int i = 0; i < 4 && i < most; i++) {
        sizes[i] = t->size[i];
        strides[i] = t->stride[i];
    }
    return 0;
}

int
cudnnBatchNormalizationForwardTrainingEx(void *handle, int mode, int fused, const void *alpha,
                                         const void *beta, const struct played_tensor *x_is,
                                         const void *x, const struct played_tensor *z_is,
                                         const void *z, const struct played_tensor *y_is, void *y,
                                         const struct played_tensor *numbers_are, const void *scale,
                                         const void *bias, double factor, void *mean,
                                         void *variance, double epsilon, void *saved_mean,
                                         void *saved_deviation, void *activation, void *workspace,
                                         size_t workspace_size, void *reserve, size_t reserve_size)
{
    (void)handle, (void)mode, (void)alpha, (void)beta, (void)x_is, (void)x, (void)z_is, (void)z;
    (void)y_is, (void)y, (void)numbers_are, (void)scale, (void)bias, (void)mean, (void)variance;
    (void)saved_mean, (void)saved_deviation, (void)activation, (void)reserve;
    /* The last of each kind of argument came where it belongs. */
    return fused <= 1 && factor == 1 && epsilon == 0 && (size_t)workspace == 11 &&
                   workspace_size == 12 && reserve_size == 14
               ? 97
               : 1;
}

int
cudnnBatchNormalizationBackwardEx(
    void *handle, int mode, int fused, const void *alpha, const void *beta,
    const void *numbers_alpha, const void *numbers_beta, const struct played_tensor *x_is,
    const void *x, const struct played_tensor *y_is, const void *y,
    const struct played_tensor *dy_is, const void *dy, const struct played_tensor *dz_is, void *dz,
    const struct played_tensor *dx_is, void *dx, const struct played_tensor *numbers_are,
    const void *scale, const void *bias, void *scale_gradient, void *bias_gradient, double epsilon,
    const void *saved_mean, const void *saved_deviation, void *activation, void *workspace,
    size_t workspace_size, void *reserve, size_t reserve_size)
{
    (void)handle, (void)mode, (void)fused, (void)alpha, (void)beta, (void)numbers_alpha;
    (void)numbers_beta, (void)x_is, (void)x, (void)y_is, (void)y, (void)dy_is, (void)dy;
    (void)dz_is, (void)dz, (void)dx_is, (void)dx, (void)numbers_are, (void)scale, (void)bias;
    (void)scale_gradient, (void)bias_gradient, (void)saved_mean, (void)saved_deviation;
    (void)activation, (void)reserve;
    return epsilon == 0 && (size_t)workspace == 11 && workspace_size == 12 && reserve_size == 14
               ? 97
               : 1;
}
