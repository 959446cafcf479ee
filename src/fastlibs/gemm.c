/* The calls of cuBLAS that ask for a matrix product. Each makes a struct hed_product of its
 * arguments and puts it into the handle's stream. What cannot be put there goes to cuBLAS, with
 * the arguments as they came: wrong ones are cuBLAS's to refuse.
 */
#include <stddef.h>

#include "fastlibs/answer.h"
#include "fastlibs/arguments.h"
#include "fastlibs/cublas.h"
#include "fastlibs/real.h"

#define EXPORT __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

/* A call's arguments in one form. */
struct gemm {
    int op_a, op_b;
    int64_t m, n, k, batches;
    const void *alpha, *beta;
    int type_scalar; /* of alpha and beta */
    const void *a, *b;
    void *c;
    int type_a, type_b, type_c;
    int64_t lda, ldb, ldc, stride_a, stride_b, stride_c;
};

#define MATH_FLAGS 16 /* of a math mode: which sums may be halves */

/* A setting of a handle; -1: it has none. */
static int
read_setting(cublasHandle_t handle, const void *caller, const char *getter)
{
    cublasStatus_t (*get)(cublasHandle_t, int *) =
        (cublasStatus_t(*)(cublasHandle_t, int *))hed_real_find(HED_REAL_CUBLAS, getter, caller);
    int value = -1;

    return get && get(handle, &value) == CUBLAS_STATUS_SUCCESS ? value : -1;
}

static bool
read_stream(cublasHandle_t handle, const void *caller, CUstream *stream)
{
    cublasStatus_t (*get_stream)(cublasHandle_t, CUstream *) =
        (cublasStatus_t(*)(cublasHandle_t, CUstream *))hed_real_find(HED_REAL_CUBLAS,
                                                                     "cublasGetStream_v2", caller);

    return get_stream && get_stream(handle, stream) == CUBLAS_STATUS_SUCCESS;
}

static bool
make_product(const struct gemm *g, struct hed_product *p)
{
    *p = (struct hed_product){
        .m = g->m,
        .n = g->n,
        .k = g->k,
        .batches = g->batches,
        .a = {(void *)(uintptr_t)g->a, 0, g->lda, g->stride_a, 'N'},
        .b = {(void *)(uintptr_t)g->b, 0, g->ldb, g->stride_b, 'N'},
        .c = {g->c, 0, g->ldc, g->stride_c, 'N'},
    };
    if (!hed_argument_type(g->type_a, &p->a.type) || !hed_argument_type(g->type_b, &p->b.type) ||
        !hed_argument_type(g->type_c, &p->c.type) || !hed_argument_op(g->op_a, &p->a.op) ||
        !hed_argument_op(g->op_b, &p->b.op) ||
        !hed_argument_scalar(g->alpha, g->type_scalar, &p->alpha) ||
        !hed_argument_scalar(g->beta, g->type_scalar, &p->beta))
        return false;
    p->d = p->c;
    return true;
}

/* Was it put into the stream? */
static bool
answer_gemm(cublasHandle_t handle, const void *caller, const struct gemm *g)
{
    struct hed_product p;
    CUstream stream;
    int math;

    if (!hed_real_driver() || !read_stream(handle, caller, &stream))
        return false;
    if (read_setting(handle, caller, "cublasGetPointerMode_v2") != CUBLAS_POINTER_MODE_HOST) {
        hed_answer_leave(HED_LEFT_SCALARS);
        return false;
    }
    math = read_setting(handle, caller, "cublasGetMathMode");
    if (math < 0 || (math & (MATH_FLAGS - 1)) == CUBLAS_PEDANTIC_MATH || !make_product(g, &p)) {
        hed_answer_leave(HED_LEFT_KIND);
        return false;
    }
    return hed_answer_product(stream, &p);
}

/* ---- one type -------------------------------------------------------------------------------- */

#define GEMM_PARAMETERS                                                                \
    cublasHandle_t handle, int op_a, int op_b, int m, int n, int k, const void *alpha, \
        const void *a, int lda, const void *b, int ldb, const void *beta, void *c, int ldc
#define GEMM_ARGUMENTS handle, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc

#define STRIDED_PARAMETERS                                                                      \
    cublasHandle_t handle, int op_a, int op_b, int m, int n, int k, const void *alpha,          \
        const void *a, int lda, long long stride_a, const void *b, int ldb, long long stride_b, \
        const void *beta, void *c, int ldc, long long stride_c, int batches
#define STRIDED_ARGUMENTS                                                                 \
    handle, op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc, \
        stride_c, batches

#define ONE_TYPE(type)                                                                           \
    .op_a = op_a, .op_b = op_b, .m = m, .n = n, .k = k, .alpha = alpha, .beta = beta,            \
    .type_scalar = type, .a = a, .b = b, .c = c, .type_a = type, .type_b = type, .type_c = type, \
    .lda = lda, .ldb = ldb, .ldc = ldc

/* The function that cuBLAS has under this name, or its answer if there is none. */
#define PASS_ON(name, parameters, arguments)                                         \
    cublasStatus_t (*real)(parameters) =                                             \
        (cublasStatus_t(*)(parameters))hed_real_find(HED_REAL_CUBLAS, name, CALLER); \
    return real ? real(arguments) : CUBLAS_STATUS_NOT_INITIALIZED

#define DEFINE_GEMM(name, type)                                                        \
    EXPORT cublasStatus_t name(GEMM_PARAMETERS);                                       \
    cublasStatus_t name(GEMM_PARAMETERS)                                               \
    {                                                                                  \
        if (answer_gemm(handle, CALLER, &(struct gemm){ONE_TYPE(type), .batches = 1})) \
            return CUBLAS_STATUS_SUCCESS;                                              \
        PASS_ON(#name, GEMM_PARAMETERS, GEMM_ARGUMENTS);                               \
    }

#define DEFINE_STRIDED(name, type)                                                               \
    EXPORT cublasStatus_t name(STRIDED_PARAMETERS);                                              \
    cublasStatus_t name(STRIDED_PARAMETERS)                                                      \
    {                                                                                            \
        if (answer_gemm(handle, CALLER,                                                          \
                        &(struct gemm){ONE_TYPE(type), .batches = batches, .stride_a = stride_a, \
                                       .stride_b = stride_b, .stride_c = stride_c}))             \
            return CUBLAS_STATUS_SUCCESS;                                                        \
        PASS_ON(#name, STRIDED_PARAMETERS, STRIDED_ARGUMENTS);                                   \
    }

DEFINE_GEMM(cublasSgemm_v2, CUDA_R_32F)
DEFINE_GEMM(cublasDgemm_v2, CUDA_R_64F)
DEFINE_GEMM(cublasCgemm_v2, CUDA_C_32F)
DEFINE_GEMM(cublasZgemm_v2, CUDA_C_64F)
DEFINE_GEMM(cublasHgemm, CUDA_R_16F)
DEFINE_STRIDED(cublasSgemmStridedBatched, CUDA_R_32F)
DEFINE_STRIDED(cublasDgemmStridedBatched, CUDA_R_64F)
DEFINE_STRIDED(cublasCgemmStridedBatched, CUDA_C_32F)
DEFINE_STRIDED(cublasZgemmStridedBatched, CUDA_C_64F)
DEFINE_STRIDED(cublasHgemmStridedBatched, CUDA_R_16F)

/* ---- any types ------------------------------------------------------------------------------- */

static bool
answer_any(cublasHandle_t handle, const void *caller, struct gemm *g, int compute, int algorithm)
{
    enum hed_product_type type, result;

    if (!hed_argument_algorithm(algorithm) || !hed_argument_type(g->type_a, &type) ||
        !hed_argument_type(g->type_c, &result) ||
        !hed_argument_compute(compute, type, result, &g->type_scalar)) {
        hed_answer_leave(HED_LEFT_KIND);
        return false;
    }
    return answer_gemm(handle, caller, g);
}

#define EX_PARAMETERS                                                                             \
    cublasHandle_t handle, int op_a, int op_b, int m, int n, int k, const void *alpha,            \
        const void *a, int type_a, int lda, const void *b, int type_b, int ldb, const void *beta, \
        void *c, int type_c, int ldc, int compute, int algorithm
#define EX_ARGUMENTS                                                                          \
    handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c, type_c, ldc, \
        compute, algorithm

#define EX_STRIDED_PARAMETERS                                                              \
    cublasHandle_t handle, int op_a, int op_b, int m, int n, int k, const void *alpha,     \
        const void *a, int type_a, int lda, long long stride_a, const void *b, int type_b, \
        int ldb, long long stride_b, const void *beta, void *c, int type_c, int ldc,       \
        long long stride_c, int batches, int compute, int algorithm
#define EX_STRIDED_ARGUMENTS                                                                      \
    handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, stride_a, b, type_b, ldb, stride_b, beta, \
        c, type_c, ldc, stride_c, batches, compute, algorithm

#define ANY_TYPE                                                                                  \
    .op_a = op_a, .op_b = op_b, .m = m, .n = n, .k = k, .alpha = alpha, .beta = beta, .a = a,     \
    .b = b, .c = c, .type_a = type_a, .type_b = type_b, .type_c = type_c, .lda = lda, .ldb = ldb, \
    .ldc = ldc

EXPORT cublasStatus_t cublasGemmEx(EX_PARAMETERS);
EXPORT cublasStatus_t cublasGemmStridedBatchedEx(EX_STRIDED_PARAMETERS);

cublasStatus_t
cublasGemmEx(EX_PARAMETERS)
{
    struct gemm g = {ANY_TYPE, .batches = 1};

    if (answer_any(handle, CALLER, &g, compute, algorithm))
        return CUBLAS_STATUS_SUCCESS;
    PASS_ON("cublasGemmEx", EX_PARAMETERS, EX_ARGUMENTS);
}

cublasStatus_t
cublasGemmStridedBatchedEx(EX_STRIDED_PARAMETERS)
{
    struct gemm g = {ANY_TYPE, .batches = batches, .stride_a = stride_a, .stride_b = stride_b,
                     .stride_c = stride_c};

    if (answer_any(handle, CALLER, &g, compute, algorithm))
        return CUBLAS_STATUS_SUCCESS;
    PASS_ON("cublasGemmStridedBatchedEx", EX_STRIDED_PARAMETERS, EX_STRIDED_ARGUMENTS);
}
