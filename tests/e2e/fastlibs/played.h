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

/* asks.c: prints who has answered, and the first number of a result. */
void played_say(const char *what, int status, const float *result);

/* asks_cudnn.c: asks for convolutions. The numbers are in the GPU's memory, four each. */
void played_convolve(struct played_handle *h, float *x, float *w, float *y);
