/* What the libraries that play cuBLAS and its program agree on. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A handle of cublasCreate(). */
struct played_handle {
    void *stream;
    int pointer_mode, math_mode;
};

/* A descriptor of cublasLt: the value of each attribute by its number. */
#define PLAYED_ATTRIBUTES 40

struct played_descriptor {
    int64_t values[PLAYED_ATTRIBUTES];
    size_t sizes[PLAYED_ATTRIBUTES]; /* bytes; 0: this version does not have it */
};

/* A tensor's descriptor of cuDNN's older calls. */
struct played_tensor {
    int type, size[4], stride[4];
};

int cublasGetStream_v2(void *handle, void **stream);
int cublasGetPointerMode_v2(void *handle, int *mode);
int cublasGetMathMode(void *handle, int *mode);
int cublasSgemm_v2(void *handle, int op_a, int op_b, int m, int n, int k, const float *alpha,
                   const float *a, int lda, const float *b, int ldb, const float *beta, float *c,
                   int ldc);
int cublasLtMatmulDescGetAttribute(const struct played_descriptor *d, int attribute, void *out,
                                   size_t size, size_t *written);
int cublasLtMatrixLayoutGetAttribute(const struct played_descriptor *d, int attribute, void *out,
                                     size_t size, size_t *written);
int cublasLtMatmul(void *handle, const void *desc, const void *alpha, const void *a,
                   const void *layout_a, const void *b, const void *layout_b, const void *beta,
                   const void *c, const void *layout_c, void *d, const void *layout_d,
                   const void *algorithm, void *workspace, size_t workspace_size, void *stream);

int cudnnGetStream(void *handle, void **stream);
int cudnnBackendCreateDescriptor(int type, void **out);
int cudnnBackendDestroyDescriptor(void *descriptor);
int cudnnBackendSetAttribute(void *descriptor, int attribute, int type, int64_t count,
                             const void *elements);
int cudnnBackendGetAttribute(void *descriptor, int attribute, int type, int64_t count,
                             int64_t *returned, void *elements);
int cudnnBackendExecute(void *handle, void *plan, void *pack);

int cudnnGetTensorNdDescriptor(const struct played_tensor *t, int most, int *type, int *dims,
                               int *sizes, int *strides);
int cudnnBatchNormalizationForwardTrainingEx(
    void *handle, int mode, int fused, const void *alpha, const void *beta,
    const struct played_tensor *x_is, const void *x, const struct played_tensor *z_is,
    const void *z, const struct played_tensor *y_is, void *y,
    const struct played_tensor *numbers_are, const void *scale, const void *bias, double factor,
    void *mean, void *variance, double epsilon, void *saved_mean, void *saved_deviation,
    void *activation, void *workspace, size_t workspace_size, void *reserve, size_t reserve_size);
int cudnnBatchNormalizationBackwardEx(
    void *handle, int mode, int fused, const void *alpha, const void *beta,
    const void *numbers_alpha, const void *numbers_beta, const struct played_tensor *x_is,
    const void *x, const struct played_tensor *y_is, const void *y,
    const struct played_tensor *dy_is, const void *dy, const struct played_tensor *dz_is, void *dz,
    const struct played_tensor *dx_is, void *dx, const struct played_tensor *numbers_are,
    const void *scale, const void *bias, void *scale_gradient, void *bias_gradient, double epsilon,
    const void *saved_mean, const void *saved_deviation, void *activation, void *workspace,
    size_t workspace_size, void *reserve, size_t reserve_size);

/* asks.c: prints who has answered, and the first number of a result. */
void played_say(const char *what, int status, const float *result);

/* asks_cudnn.c: asks for convolutions. The numbers are in the GPU's memory, four each. */
void played_convolve(struct played_handle *h, float *x, float *w, float *y);

/* Asks for batch normalisations of two images with one channel of two places. */
void played_normalise(struct played_handle *h, float *x, float *y, float *numbers, float *saved);
