/* A matrix product as cuBLAS is asked for it, and how a CPU library computes it.
 *
 *     D = post(alpha * op(A) * op(B) + beta * C)        for each of `batches`
 *
 * Matrices are stored column by column. op(A) has m rows and k columns, op(B) k and n, C and D m
 * and n.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum hed_product_type {
    HED_PRODUCT_F32,
    HED_PRODUCT_F64,
    HED_PRODUCT_C32,
    HED_PRODUCT_C64,
    HED_PRODUCT_F16,
    HED_PRODUCT_BF16,
    HED_PRODUCT_TYPES
};

struct hed_product_matrix {
    void *data;
    enum hed_product_type type;
    int64_t ld;     /* elements from one column to the next */
    int64_t stride; /* elements from one matrix of the batch to the next; 0: all are the same */
    char op;        /* 'N', 'T' or 'C' (conjugate transposed); C and D: 'N' */
};

/* A number of any type: a real one has no second part. */
struct hed_product_scalar {
    double re, im;
};

enum hed_product_post {
    HED_POST_NONE,
    HED_POST_RELU,
    HED_POST_GELU, /* by tanh, as cuBLAS's */
};

struct hed_product {
    int64_t m, n, k;
    int64_t batches;
    struct hed_product_matrix a, b, c, d; /* A and B have one type, C and D have one */
    struct hed_product_scalar alpha, beta;
    /* One number for each row of D, added before `post`; data is NULL: none. */
    struct hed_product_matrix bias;
    enum hed_product_post post;
};

/* Bytes of an element. */
unsigned hed_product_size(enum hed_product_type type);

/* Is it one that hed_product_run() can compute, as far as sizes and types say? */
bool hed_product_is_sound(const struct hed_product *p);

/* Bytes from the matrix's first element to behind its last one, in all batches; 0: more than there
 * are. */
uint64_t hed_product_extent(const struct hed_product_matrix *x, int64_t rows, int64_t columns,
                            int64_t batches);

/* Rows and columns of A and B as they are stored. */
int64_t hed_product_rows(const struct hed_product_matrix *x, int64_t rows, int64_t columns);
int64_t hed_product_columns(const struct hed_product_matrix *x, int64_t rows, int64_t columns);

/* Gets memory for hed_product_run(), which needs it to have said yes once. False: there is none. */
bool hed_product_prepare(void);

struct hed_blas;

/* Computes a sound product. If memory is short, it waits for other products to end. */
void hed_product_run(const struct hed_product *p, const struct hed_blas *blas);
