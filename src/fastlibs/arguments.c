/* See arguments.h. */
#include "fastlibs/arguments.h"

#include <math.h>

#include "fastlibs/cublas.h"

bool
hed_argument_type(int type, enum hed_product_type *out)
{
    switch (type) {
    case CUDA_R_32F:
        *out = HED_PRODUCT_F32;
        return true;
    case CUDA_R_64F:
        *out = HED_PRODUCT_F64;
        return true;
    case CUDA_C_32F:
        *out = HED_PRODUCT_C32;
        return true;
    case CUDA_C_64F:
        *out = HED_PRODUCT_C64;
        return true;
    case CUDA_R_16F:
        *out = HED_PRODUCT_F16;
        return true;
    case CUDA_R_16BF:
        *out = HED_PRODUCT_BF16;
        return true;
    default:
        return false;
    }
}

bool
hed_argument_op(int op, char *out)
{
    if (op < CUBLAS_OP_N || op > CUBLAS_OP_C)
        return false;
    *out = "NTC"[op];
    return true;
}

/* In numbers that are never subnormal, which the caller's thread may take for 0. */
static double
half_value(uint16_t h)
{
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    const double size = exponent == 31  ? (fraction ? NAN : INFINITY)
                        : exponent == 0 ? ldexp(fraction, -24)
                                        : ldexp(fraction + 1024, exponent - 25);

    return h >> 15 ? -size : size;
}

bool
hed_argument_scalar(const void *from, int type, struct hed_product_scalar *out)
{
    if (!from)
        return false;
    *out = (struct hed_product_scalar){0, 0};
    switch (type) {
    case CUDA_R_32F:
        out->re = *(const float *)from;
        return true;
    case CUDA_R_64F:
        out->re = *(const double *)from;
        return true;
    case CUDA_C_32F:
        out->re = ((const float *)from)[0];
        out->im = ((const float *)from)[1];
        return true;
    case CUDA_C_64F:
        out->re = ((const double *)from)[0];
        out->im = ((const double *)from)[1];
        return true;
    case CUDA_R_16F:
        out->re = half_value(*(const uint16_t *)from);
        return true;
    default:
        return false;
    }
}

bool
hed_argument_compute(int compute, enum hed_product_type type, enum hed_product_type result,
                     int *scalar)
{
    const bool is_double = type == HED_PRODUCT_F64 || type == HED_PRODUCT_C64;
    const bool is_complex = type == HED_PRODUCT_C32 || type == HED_PRODUCT_C64;

    switch (compute) {
    case CUBLAS_COMPUTE_16F:
        *scalar = CUDA_R_16F;
        return type == HED_PRODUCT_F16 && result == HED_PRODUCT_F16;
    case CUBLAS_COMPUTE_32F:
        *scalar = is_complex ? CUDA_C_32F : CUDA_R_32F;
        return !is_double;
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF:
    case CUBLAS_COMPUTE_32F_FAST_TF32:
        /* cuBLAS supports no other type. */
        *scalar = is_complex ? CUDA_C_32F : CUDA_R_32F;
        return type == HED_PRODUCT_F32 || type == HED_PRODUCT_C32;
    case CUBLAS_COMPUTE_64F:
        *scalar = is_complex ? CUDA_C_64F : CUDA_R_64F;
        return is_double;
    default:
        return false;
    }
}

bool
hed_argument_algorithm(int algorithm)
{
    return (algorithm >= CUBLAS_GEMM_DEFAULT && algorithm <= CUBLAS_GEMM_ALGO23) ||
           (algorithm >= CUBLAS_GEMM_DEFAULT_TENSOR_OP &&
            algorithm <= CUBLAS_GEMM_ALGO15_TENSOR_OP);
}
