/* The numbers of cuBLAS's interface that heddle knows, for two files that have them from two
 * places. */
#pragma once

#define NUMBERS(X)                                 \
    X(CUBLAS_STATUS_SUCCESS)                       \
    X(CUBLAS_STATUS_NOT_INITIALIZED)               \
    X(CUBLAS_OP_N)                                 \
    X(CUBLAS_OP_T)                                 \
    X(CUBLAS_OP_C)                                 \
    X(CUBLAS_POINTER_MODE_HOST)                    \
    X(CUDA_R_32F)                                  \
    X(CUDA_R_64F)                                  \
    X(CUDA_R_16F)                                  \
    X(CUDA_C_32F)                                  \
    X(CUDA_C_64F)                                  \
    X(CUDA_R_16BF)                                 \
    X(CUBLAS_COMPUTE_16F)                          \
    X(CUBLAS_COMPUTE_32F)                          \
    X(CUBLAS_COMPUTE_64F)                          \
    X(CUBLAS_COMPUTE_32F_FAST_16F)                 \
    X(CUBLAS_COMPUTE_32F_FAST_16BF)                \
    X(CUBLAS_COMPUTE_32F_FAST_TF32)                \
    X(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE)           \
    X(CUBLASLT_MATMUL_DESC_SCALE_TYPE)             \
    X(CUBLASLT_MATMUL_DESC_POINTER_MODE)           \
    X(CUBLASLT_MATMUL_DESC_TRANSA)                 \
    X(CUBLASLT_MATMUL_DESC_TRANSB)                 \
    X(CUBLASLT_MATMUL_DESC_TRANSC)                 \
    X(CUBLASLT_MATMUL_DESC_FILL_MODE)              \
    X(CUBLASLT_MATMUL_DESC_EPILOGUE)               \
    X(CUBLASLT_MATMUL_DESC_BIAS_POINTER)           \
    X(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE)      \
    X(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER)        \
    X(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER)        \
    X(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER)         \
    X(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE)         \
    X(CUBLASLT_MATRIX_LAYOUT_TYPE)                 \
    X(CUBLASLT_MATRIX_LAYOUT_ORDER)                \
    X(CUBLASLT_MATRIX_LAYOUT_ROWS)                 \
    X(CUBLASLT_MATRIX_LAYOUT_COLS)                 \
    X(CUBLASLT_MATRIX_LAYOUT_LD)                   \
    X(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)          \
    X(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) \
    X(CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET)         \
    X(CUBLASLT_MATRIX_LAYOUT_BATCH_MODE)           \
    X(CUBLASLT_ORDER_COL)                          \
    X(CUBLAS_FILL_MODE_FULL)                       \
    X(CUBLASLT_EPILOGUE_DEFAULT)                   \
    X(CUBLASLT_EPILOGUE_RELU)                      \
    X(CUBLASLT_EPILOGUE_BIAS)                      \
    X(CUBLASLT_EPILOGUE_GELU)

struct number {
    const char *name;
    int value;
};

#define NUMBER(name) {#name, (int)(name)},

/* As NVIDIA's headers say. The last one has no name. */
extern const struct number nvidia_numbers[];
