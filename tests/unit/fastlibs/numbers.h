/* The numbers of cuBLAS's and cuDNN's interfaces that heddle knows, for files that have them from
 * two places. */
#pragma once

#define NUMBERS(X)                                 \
    X(CUBLAS_STATUS_SUCCESS)                       \
    X(CUBLAS_STATUS_NOT_INITIALIZED)               \
    X(CUBLAS_OP_N)                                 \
    X(CUBLAS_OP_T)                                 \
    X(CUBLAS_OP_C)                                 \
    X(CUBLAS_POINTER_MODE_HOST)                    \
    X(CUBLAS_PEDANTIC_MATH)                        \
    X(CUBLAS_GEMM_DEFAULT)                         \
    X(CUBLAS_GEMM_ALGO23)                          \
    X(CUBLAS_GEMM_DEFAULT_TENSOR_OP)               \
    X(CUBLAS_GEMM_ALGO15_TENSOR_OP)                \
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

/* Of some versions of cuBLAS alone. */
#define COUNTER_NUMBERS(X)                                  \
    X(CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_IN_COUNTERS_POINTER) \
    X(CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_OUT_COUNTERS_POINTER)

#define CUDNN_NUMBERS(X)                                     \
    X(CUDNN_STATUS_SUCCESS)                                  \
    X(CUDNN_STATUS_NOT_INITIALIZED)                          \
    X(CUDNN_TYPE_DATA_TYPE)                                  \
    X(CUDNN_TYPE_BOOLEAN)                                    \
    X(CUDNN_TYPE_INT64)                                      \
    X(CUDNN_TYPE_FLOAT)                                      \
    X(CUDNN_TYPE_DOUBLE)                                     \
    X(CUDNN_TYPE_VOID_PTR)                                   \
    X(CUDNN_TYPE_CONVOLUTION_MODE)                           \
    X(CUDNN_TYPE_BACKEND_DESCRIPTOR)                         \
    X(CUDNN_TYPE_TENSOR_REORDERING_MODE)                     \
    X(CUDNN_DATA_FLOAT)                                      \
    X(CUDNN_DATA_HALF)                                       \
    X(CUDNN_DATA_BFLOAT16)                                   \
    X(CUDNN_CROSS_CORRELATION)                               \
    X(CUDNN_TENSOR_REORDERING_NONE)                          \
    X(CUDNN_ATTR_CONVOLUTION_COMP_TYPE)                      \
    X(CUDNN_ATTR_CONVOLUTION_CONV_MODE)                      \
    X(CUDNN_ATTR_CONVOLUTION_DILATIONS)                      \
    X(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)                 \
    X(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS)                  \
    X(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)                   \
    X(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS)                   \
    X(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)                 \
    X(CUDNN_ATTR_ENGINEHEUR_RESULTS)                         \
    X(CUDNN_ATTR_ENGINECFG_ENGINE)                           \
    X(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)               \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA)        \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA)         \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC)    \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W)            \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X)            \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y)            \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA)       \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA)        \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC)   \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W)           \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX)          \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY)          \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA)     \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA)      \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC) \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW)        \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X)         \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY)        \
    X(CUDNN_ATTR_OPERATIONGRAPH_HANDLE)                      \
    X(CUDNN_ATTR_OPERATIONGRAPH_OPS)                         \
    X(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)                      \
    X(CUDNN_ATTR_TENSOR_DATA_TYPE)                           \
    X(CUDNN_ATTR_TENSOR_DIMENSIONS)                          \
    X(CUDNN_ATTR_TENSOR_STRIDES)                             \
    X(CUDNN_ATTR_TENSOR_VECTOR_COUNT)                        \
    X(CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION)                \
    X(CUDNN_ATTR_TENSOR_UNIQUE_ID)                           \
    X(CUDNN_ATTR_TENSOR_IS_VIRTUAL)                          \
    X(CUDNN_ATTR_TENSOR_IS_BY_VALUE)                         \
    X(CUDNN_ATTR_TENSOR_REORDERING_MODE)                     \
    X(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)                    \
    X(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)                 \
    X(CUDNN_ATTR_VARIANT_PACK_WORKSPACE)                     \
    X(CUDNN_ATTR_ENGINE_OPERATION_GRAPH)

struct number {
    const char *name;
    int value;
};

#define NUMBER(name) {#name, (int)(name)},

/* As NVIDIA's headers say. The last one has no name. */
extern const struct number nvidia_numbers[], nvidia_counter_numbers[], nvidia_cudnn_numbers[];
