/* cublasLtMatmul: a matrix product that its descriptors describe, which are read by the library's
 * own functions. See gemm.c for the rest of cuBLAS.
 */
#include <stddef.h>

#include "fastlibs/answer.h"
#include "fastlibs/arguments.h"
#include "fastlibs/cublas.h"
#include "fastlibs/real.h"

#define EXPORT __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

typedef cublasStatus_t get_attribute(const void *of, int attribute, void *out, size_t size,
                                     size_t *written);

/* Reads attributes; `failed` sticks. */
struct reader {
    get_attribute *get;
    const void *of;
    bool failed;
};

static void
read_bytes(struct reader *r, int attribute, void *out, size_t size)
{
    size_t written = 0;

    r->failed = r->failed || !r->get || !r->of ||
                r->get(r->of, attribute, out, size, &written) != CUBLAS_STATUS_SUCCESS ||
                written != size;
}

static int
read_int(struct reader *r, int attribute)
{
    int32_t v = -1;

    read_bytes(r, attribute, &v, sizeof v);
    return v;
}

static void *
read_address(struct reader *r, int attribute)
{
    void *v = NULL;

    read_bytes(r, attribute, &v, sizeof v);
    return v;
}

static int64_t
read_number(struct reader *r, int attribute)
{
    int64_t v = -1;

    read_bytes(r, attribute, &v, sizeof v);
    return v;
}

struct layout {
    struct hed_product_matrix matrix;
    int64_t rows, columns;
    int32_t batches;
};

/* False: it cannot be read, or is none that the CPU's BLAS knows. */
static bool
read_layout(get_attribute *get, const void *of, const void *data, struct layout *l)
{
    struct reader r = {get, of, false};
    const int type = read_int(&r, CUBLASLT_MATRIX_LAYOUT_TYPE);
    const int order = read_int(&r, CUBLASLT_MATRIX_LAYOUT_ORDER);

    *l = (struct layout){.matrix = {.data = (void *)(uintptr_t)data, .op = 'N'}};
    l->rows = read_number(&r, CUBLASLT_MATRIX_LAYOUT_ROWS);
    l->columns = read_number(&r, CUBLASLT_MATRIX_LAYOUT_COLS);
    l->matrix.ld = read_number(&r, CUBLASLT_MATRIX_LAYOUT_LD);
    l->batches = read_int(&r, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
    l->matrix.stride = read_number(&r, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
    if (r.failed || order != CUBLASLT_ORDER_COL ||
        read_number(&r, CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET) != 0 || r.failed)
        return false;
    /* Versions before 13 do not know it. */
    if (read_int(&r, CUBLASLT_MATRIX_LAYOUT_BATCH_MODE) != 0 && !r.failed)
        return false;
    return hed_argument_type(type, &l->matrix.type);
}

/* What is added to the product, and what is made of the sum. */
static bool
read_epilogue(struct reader *r, struct hed_product *p)
{
    const int epilogue = read_int(r, CUBLASLT_MATMUL_DESC_EPILOGUE);
    int type;

    if (epilogue == CUBLASLT_EPILOGUE_DEFAULT)
        return true;
    switch (epilogue & ~CUBLASLT_EPILOGUE_BIAS) {
    case 0:
        break;
    case CUBLASLT_EPILOGUE_RELU:
        p->post = HED_POST_RELU;
        break;
    case CUBLASLT_EPILOGUE_GELU:
        p->post = HED_POST_GELU;
        break;
    default:
        return false;
    }
    /* A bias that is not asked for: cuBLAS refuses it. */
    if (!(epilogue & CUBLASLT_EPILOGUE_BIAS))
        return !read_address(r, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
    p->bias.data = read_address(r, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
    p->bias.stride = read_number(r, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE);
    p->bias.op = 'N';
    type = read_int(r, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
    p->bias.type = p->d.type;
    return p->bias.data && (type == -1 || hed_argument_type(type, &p->bias.type));
}

/* Numbers of 8 bits have scales, and this is never about them. */
static bool
has_scales(struct reader *r)
{
    for (int i = CUBLASLT_MATMUL_DESC_A_SCALE_POINTER; i <= CUBLASLT_MATMUL_DESC_AMAX_D_POINTER;
         i++)
        if (read_address(r, i))
            return true;
    return false;
}

/* Does it wait for other kernels' counters while it computes, or set counters for them? A host
 * function does neither. Versions that cannot do it do not know the attributes. */
static bool
has_counters(const struct reader *of)
{
    for (int i = CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_IN_COUNTERS_POINTER;
         i <= CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_OUT_COUNTERS_POINTER; i++) {
        struct reader r = {of->get, of->of, false};

        if (read_address(&r, i) && !r.failed)
            return true;
    }
    return false;
}

static bool
read_product(get_attribute *get_of_desc, get_attribute *get_of_layout, const void *desc,
             const void *const layouts[4], const void *const data[4], const void *alpha,
             const void *beta, struct hed_product *p)
{
    struct reader r = {get_of_desc, desc, false};
    struct layout l[4];
    int scalar, expected;
    char op_a, op_b;

    for (unsigned i = 0; i < 4; i++)
        if (!read_layout(get_of_layout, layouts[i], data[i], &l[i]) || l[i].batches != l[0].batches)
            return false;
    *p = (struct hed_product){.m = l[3].rows,
                              .n = l[3].columns,
                              .batches = l[0].batches,
                              .a = l[0].matrix,
                              .b = l[1].matrix,
                              .c = l[2].matrix,
                              .d = l[3].matrix};
    scalar = read_int(&r, CUBLASLT_MATMUL_DESC_SCALE_TYPE);
    if (!hed_argument_op(read_int(&r, CUBLASLT_MATMUL_DESC_TRANSA), &op_a) ||
        !hed_argument_op(read_int(&r, CUBLASLT_MATMUL_DESC_TRANSB), &op_b) ||
        read_int(&r, CUBLASLT_MATMUL_DESC_TRANSC) != CUBLAS_OP_N ||
        read_int(&r, CUBLASLT_MATMUL_DESC_FILL_MODE) != CUBLAS_FILL_MODE_FULL ||
        !hed_argument_compute(read_int(&r, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE), l[0].matrix.type,
                              l[3].matrix.type, &expected) ||
        scalar != expected || has_scales(&r) || has_counters(&r) || !read_epilogue(&r, p) ||
        r.failed || !hed_argument_scalar(alpha, scalar, &p->alpha) ||
        !hed_argument_scalar(beta, scalar, &p->beta))
        return false;
    p->a.op = op_a;
    p->b.op = op_b;
    p->k = op_a == 'N' ? l[0].columns : l[0].rows;
    /* Sizes that do not fit together are cuBLAS's to refuse. */
    return (op_a == 'N' ? l[0].rows : l[0].columns) == p->m &&
           (op_b == 'N' ? l[1].rows : l[1].columns) == p->k &&
           (op_b == 'N' ? l[1].columns : l[1].rows) == p->n && l[2].rows == p->m &&
           l[2].columns == p->n;
}

#define PARAMETERS                                                                          \
    void *handle, const void *desc, const void *alpha, const void *a, const void *layout_a, \
        const void *b, const void *layout_b, const void *beta, const void *c,               \
        const void *layout_c, void *d, const void *layout_d, const void *algorithm,         \
        void *workspace, size_t workspace_size, CUstream stream
#define ARGUMENTS                                                                             \
    handle, desc, alpha, a, layout_a, b, layout_b, beta, c, layout_c, d, layout_d, algorithm, \
        workspace, workspace_size, stream

EXPORT cublasStatus_t cublasLtMatmul(PARAMETERS);

static bool
answer_matmul(PARAMETERS, const void *caller)
{
    get_attribute *get_of_desc =
        (get_attribute *)hed_real_find(HED_REAL_CUBLASLT, "cublasLtMatmulDescGetAttribute", caller);
    get_attribute *get_of_layout = (get_attribute *)hed_real_find(
        HED_REAL_CUBLASLT, "cublasLtMatrixLayoutGetAttribute", caller);
    struct reader r = {get_of_desc, desc, false};
    struct hed_product p;

    (void)workspace;
    (void)workspace_size;
    (void)algorithm;
    if (!handle || !get_of_desc || !get_of_layout || !desc)
        return false;
    if (read_int(&r, CUBLASLT_MATMUL_DESC_POINTER_MODE) != CUBLAS_POINTER_MODE_HOST) {
        hed_answer_leave(HED_LEFT_SCALARS);
        return false;
    }
    if (!read_product(get_of_desc, get_of_layout, desc,
                      (const void *const[]){layout_a, layout_b, layout_c, layout_d},
                      (const void *const[]){a, b, c, d}, alpha, beta, &p)) {
        hed_answer_leave(HED_LEFT_KIND);
        return false;
    }
    return hed_answer_product(stream, &p);
}

cublasStatus_t
cublasLtMatmul(PARAMETERS)
{
    cublasStatus_t (*real)(PARAMETERS) =
        (cublasStatus_t(*)(PARAMETERS))hed_real_find(HED_REAL_CUBLASLT, "cublasLtMatmul", CALLER);

    if (hed_real_driver() && answer_matmul(ARGUMENTS, CALLER))
        return CUBLAS_STATUS_SUCCESS;
    return real ? real(ARGUMENTS) : CUBLAS_STATUS_NOT_INITIALIZED;
}
