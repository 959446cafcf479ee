/* Tests of fastlibs/product: each type, form and size beside sums in double precision. */
#include "harness/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fastlibs/blas.h"
#include "fastlibs/convert.h"
#include "fastlibs/product.h"

/* ---- a BLAS ---------------------------------------------------------------------------------- */

#define NO_TRANSPOSE 111
#define CONJUGATE 113

static int calls;

/* One element of a matrix that may be turned. */
static int64_t
place(int op, int row, int column, int ld)
{
    return op == NO_TRANSPOSE ? row + (int64_t)column * ld : column + (int64_t)row * ld;
}

#define DEFINE_REAL(name, number)                                                                 \
    static void name(int order, int op_a, int op_b, int m, int n, int k, number alpha,            \
                     const void *a_, int lda, const void *b_, int ldb, number beta, void *c_,     \
                     int ldc)                                                                     \
    {                                                                                             \
        const number *a = a_, *b = b_;                                                            \
        number *c = c_;                                                                           \
                                                                                                  \
        assert_int_equal(order, 102);                                                             \
        calls++;                                                                                  \
        for (int j = 0; j < n; j++)                                                               \
            for (int i = 0; i < m; i++) {                                                         \
                double sum = 0;                                                                   \
                number *at = c + i + (int64_t)j * ldc;                                            \
                                                                                                  \
                for (int l = 0; l < k; l++)                                                       \
                    sum += (double)a[place(op_a, i, l, lda)] * (double)b[place(op_b, l, j, ldb)]; \
                *at = (number)((double)alpha * sum + (beta != 0 ? (double)(beta * *at) : 0));     \
            }                                                                                     \
    }

DEFINE_REAL(play_sgemm, float)
DEFINE_REAL(play_dgemm, double)

static void
play_zgemm(int order, int op_a, int op_b, int m, int n, int k, const void *alpha_, const void *a_,
           int lda, const void *b_, int ldb, const void *beta_, void *c_, int ldc)
{
    const double *alpha = alpha_, *beta = beta_, *a = a_, *b = b_;
    double *c = c_;

    (void)order;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            double re = 0, im = 0, *at = c + 2 * (i + (int64_t)j * ldc);

            for (int l = 0; l < k; l++) {
                const double *x = a + 2 * place(op_a, i, l, lda);
                const double *y = b + 2 * place(op_b, l, j, ldb);
                const double x_im = op_a == CONJUGATE ? -x[1] : x[1];
                const double y_im = op_b == CONJUGATE ? -y[1] : y[1];

                re += x[0] * y[0] - x_im * y_im;
                im += x[0] * y_im + x_im * y[0];
            }
            const double old_re = at[0], old_im = at[1];

            at[0] = alpha[0] * re - alpha[1] * im + beta[0] * old_re - beta[1] * old_im;
            at[1] = alpha[0] * im + alpha[1] * re + beta[0] * old_im + beta[1] * old_re;
        }
}

static const struct hed_blas blas = {
    .name = "played",
    .gemm = {(void *)play_sgemm, (void *)play_dgemm, NULL, (void *)play_zgemm},
};

/* ---- products -------------------------------------------------------------------------------- */

/* Numbers from -1 to 1 that all types have. */
static double
draw(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return (double)((int)(*seed >> 24) - 128) / 128;
}

static double
get(const struct hed_product_matrix *x, int64_t at)
{
    float f;

    switch (x->type) {
    case HED_PRODUCT_F64:
        return ((double *)x->data)[at];
    case HED_PRODUCT_F16:
        hed_convert_from_f16(&f, (uint16_t *)x->data + at, 1);
        return f;
    case HED_PRODUCT_BF16:
        hed_convert_from_bf16(&f, (uint16_t *)x->data + at, 1);
        return f;
    default:
        return ((float *)x->data)[at];
    }
}

static void
set(const struct hed_product_matrix *x, int64_t at, double v)
{
    const float f = (float)v;

    if (x->type == HED_PRODUCT_F64)
        ((double *)x->data)[at] = v;
    else if (x->type == HED_PRODUCT_F16)
        hed_convert_to_f16((uint16_t *)x->data + at, &f, 1);
    else if (x->type == HED_PRODUCT_BF16)
        hed_convert_to_bf16((uint16_t *)x->data + at, &f, 1);
    else
        ((float *)x->data)[at] = f;
}

/* A matrix of random numbers, with room between its columns and behind it. */
static struct hed_product_matrix
make_matrix(enum hed_product_type type, char op, int64_t rows, int64_t columns, int64_t batches,
            uint32_t *seed)
{
    struct hed_product_matrix x = {NULL, type, 0, 0, op};

    x.ld = hed_product_rows(&x, rows, columns) + 3;
    x.stride = x.ld * hed_product_columns(&x, rows, columns) + 5;

    const int64_t count = x.stride * batches;

    x.data = malloc((size_t)count * hed_product_size(type));
    assert_non_null(x.data);
    for (int64_t i = 0; i < count; i++)
        set(&x, i, draw(seed));
    return x;
}

static double
op_element(const struct hed_product_matrix *x, int64_t batch, int64_t row, int64_t column)
{
    const int64_t at = x->op == 'N' ? row + column * x->ld : column + row * x->ld;

    return get(x, batch * x->stride + at);
}

static double
post(double v, enum hed_product_post how)
{
    if (how == HED_POST_RELU)
        return v < 0 ? 0 : v;
    if (how == HED_POST_GELU)
        return 0.5 * v * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
    return v;
}

static void
check_result(const struct hed_product *p, const struct hed_product_matrix *before, double error)
{
    for (int64_t b = 0; b < p->batches; b++)
        for (int64_t j = 0; j < p->d.stride; j++) {
            const int64_t row = j % p->d.ld, column = j / p->d.ld;
            const int64_t at = b * p->d.stride + j;
            double sum = 0, want;

            if (row >= p->m || column >= p->n) { /* between the columns and behind */
                assert_true(get(&p->d, at) == get(before, at));
                continue;
            }
            for (int64_t l = 0; l < p->k; l++)
                sum += op_element(&p->a, b, row, l) * op_element(&p->b, b, l, column);
            want = p->alpha.re * sum;
            if (p->beta.re != 0)
                want += p->beta.re * get(p->c.data == p->d.data ? before : &p->c,
                                         b * p->c.stride + row + column * p->c.ld);
            if (p->bias.data)
                want += get(&p->bias, b * p->bias.stride + row);
            want = post(want, p->post);
            if (!(fabs(get(&p->d, at) - want) <= error * (1 + fabs(want))))
                fail_msg("type %u ops %c%c m %d n %d k %d: row %d column %d is %g, not %g",
                         p->a.type, p->a.op, p->b.op, (int)p->m, (int)p->n, (int)p->k, (int)row,
                         (int)column, get(&p->d, at), want);
        }
}

static void
run_product(struct hed_product *p, double error)
{
    const size_t bytes = (size_t)(p->d.stride * p->batches) * hed_product_size(p->d.type);
    struct hed_product_matrix before = p->d;

    assert_true(hed_product_prepare());
    before.data = malloc(bytes);
    assert_non_null(before.data);
    memcpy(before.data, p->d.data, bytes);
    assert_true(hed_product_is_sound(p));
    hed_product_run(p, &blas);
    check_result(p, &before, error);
    free(before.data);
}

/* In place and beside, with and without an addend, in all orientations. */
static void
check_type(enum hed_product_type type, enum hed_product_type result, int64_t m, int64_t n,
           int64_t k, double error)
{
    uint32_t seed = (uint32_t)(m * 31 + n * 7 + k);

    for (unsigned i = 0; i < 16; i++) {
        const int64_t batches = 1 + (i & 1);
        struct hed_product p = {.m = m, .n = n, .k = k, .batches = batches};

        p.alpha.re = 0.5;
        p.beta.re = i & 2 ? 2 : 0;
        p.a = make_matrix(type, "NTNC"[i / 4], m, k, batches, &seed);
        p.b = make_matrix(type, "NNTT"[i / 4], k, n, batches, &seed);
        p.d = make_matrix(result, 'N', m, n, batches, &seed);
        p.c = i & 8 ? make_matrix(result, 'N', m, n, batches, &seed) : p.d;
        if (type != HED_PRODUCT_F64 && i & 4) {
            p.bias = make_matrix(result, 'N', m, 1, batches, &seed);
            p.post = i & 8 ? HED_POST_GELU : HED_POST_RELU;
        }
        run_product(&p, error);
        free(p.bias.data);
        if (p.c.data != p.d.data)
            free(p.c.data);
        free(p.a.data);
        free(p.b.data);
        free(p.d.data);
    }
}

static void
all_types(void **state)
{
    static const int64_t sizes[][3] = {{1, 1, 1}, {5, 7, 3}, {33, 2, 40}, {70, 4, 9}, {3, 9, 70}};

    (void)state;
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int64_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];

        check_type(HED_PRODUCT_F32, HED_PRODUCT_F32, m, n, k, 1e-5);
        check_type(HED_PRODUCT_F64, HED_PRODUCT_F64, m, n, k, 1e-12);
        check_type(HED_PRODUCT_F16, HED_PRODUCT_F16, m, n, k, 1e-3);
        check_type(HED_PRODUCT_BF16, HED_PRODUCT_BF16, m, n, k, 1e-2);
        check_type(HED_PRODUCT_F16, HED_PRODUCT_F32, m, n, k, 1e-5);
        check_type(HED_PRODUCT_BF16, HED_PRODUCT_F32, m, n, k, 1e-5);
    }
}

/* More than one block in each direction, and with few columns more than one chunk. */
static void
blocks(void **state)
{
    (void)state;
    check_type(HED_PRODUCT_F16, HED_PRODUCT_F16, 259, 5, 1030, 2e-3);
    check_type(HED_PRODUCT_BF16, HED_PRODUCT_F32, 6, 258, 1025, 1e-5);
    check_type(HED_PRODUCT_F16, HED_PRODUCT_F32, 300, 1, 2090, 1e-5);
    check_type(HED_PRODUCT_F16, HED_PRODUCT_F32, 2090, 3, 17, 1e-5);
}

/* With few columns, A is never stored as floats, and the BLAS is not asked. */
static void
few_columns(void **state)
{
    (void)state;
    calls = 0;
    check_type(HED_PRODUCT_F16, HED_PRODUCT_F16, 20, 4, 30, 1e-3);
    assert_int_equal(calls, 0);
    check_type(HED_PRODUCT_F16, HED_PRODUCT_F16, 20, 5, 30, 1e-3);
    assert_true(calls > 0);
}

static void
complex_numbers(void **state)
{
    double a[] = {1, 2, 3, -1}, b[] = {0.5, 1, 2, -2}, c[] = {10, 20};
    struct hed_product p = {.m = 1, .n = 1, .k = 2, .batches = 1};

    (void)state;
    p.a = (struct hed_product_matrix){a, HED_PRODUCT_C64, 2, 0, 'C'};
    p.b = (struct hed_product_matrix){b, HED_PRODUCT_C64, 2, 0, 'N'};
    p.c = p.d = (struct hed_product_matrix){c, HED_PRODUCT_C64, 1, 0, 'N'};
    p.alpha.im = 1;
    p.beta.re = 1;
    assert_true(hed_product_is_sound(&p));
    assert_true(hed_product_prepare());
    hed_product_run(&p, &blas);
    /* (1 - 2i)(0.5 + i) + (3 + i)(2 - 2i) = 2.5 + 8 - 4i; times i, and 10 + 20i more. */
    assert_true(c[0] == 14 && c[1] == 30.5);
    p.post = HED_POST_RELU;
    assert_false(hed_product_is_sound(&p));
}

/* The result's old bits may be anything where beta is 0. */
static void
nothing_read(void **state)
{
    float a = 2, b = 3, d = NAN;
    struct hed_product p = {.m = 1, .n = 1, .k = 1, .batches = 1, .alpha = {1, 0}};

    (void)state;
    p.a = (struct hed_product_matrix){&a, HED_PRODUCT_F32, 1, 0, 'N'};
    p.b = (struct hed_product_matrix){&b, HED_PRODUCT_F32, 1, 0, 'N'};
    p.d = (struct hed_product_matrix){&d, HED_PRODUCT_F32, 1, 0, 'N'};
    p.c = (struct hed_product_matrix){NULL, HED_PRODUCT_F32, 1, 0, 'N'};
    assert_true(hed_product_is_sound(&p));
    assert_true(hed_product_prepare());
    hed_product_run(&p, &blas);
    assert_true(d == 6);
    p.beta.re = 1;
    assert_false(hed_product_is_sound(&p));
}

static void
unsound(void **state)
{
    float x[4];
    const struct hed_product_matrix one = {x, HED_PRODUCT_F32, 2, 0, 'N'};
    const struct hed_product good = {.m = 2,
                                     .n = 1,
                                     .k = 2,
                                     .batches = 1,
                                     .alpha = {1, 0},
                                     .a = one,
                                     .b = one,
                                     .c = one,
                                     .d = one};
    struct hed_product p = good;

    (void)state;
    assert_true(hed_product_is_sound(&p));
#define REFUSED(change)                         \
    do {                                        \
        p = good;                               \
        change;                                 \
        assert_false(hed_product_is_sound(&p)); \
    } while (0)
    REFUSED(p.m = 0);
    REFUSED(p.m = 3); /* more rows than from one column to the next */
    REFUSED(p.k = -1);
    REFUSED(p.n = (int64_t)1 << 31);
    REFUSED(p.batches = 0);
    REFUSED(p.batches = 2); /* both results are in one place */
    REFUSED(p.a.ld = 1);
    REFUSED(p.a.stride = -1);
    REFUSED(p.a.data = (char *)x + 2);
    REFUSED(p.b.data = NULL);
    REFUSED(p.b.type = HED_PRODUCT_F64);
    REFUSED(p.c.type = HED_PRODUCT_F16);
    REFUSED(p.c.type = p.d.type = HED_PRODUCT_F16);
    REFUSED(p.d.op = 'T');
    REFUSED(p.a.op = 'X');
    REFUSED(p.bias = one; p.bias.type = HED_PRODUCT_F64);
    REFUSED(p.alpha.re = 0); /* then A and B are not read */
    REFUSED(p.c.ld = 3);     /* in place, but not where D lies */
    REFUSED(p.batches = 2; p.n = 2; p.d.ld = INT64_MAX);
}

/* A batch's columns may lie between those of the others, as the heads of attention do. */
static void
interleaved(void **state)
{
    static const enum hed_product_type types[] = {HED_PRODUCT_F32, HED_PRODUCT_F64,
                                                  HED_PRODUCT_F16};
    enum { M = 3, N = 6, K = 5, BATCHES = 4 };
    const int64_t stride = M + 1, ld = stride * (BATCHES - 1) + M;
    uint32_t seed = 1;

    (void)state;
    for (unsigned i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct hed_product p = {.m = M, .n = N, .k = K, .batches = BATCHES, .alpha = {1, 0}};

        p.a = make_matrix(types[i], 'N', M, K, BATCHES, &seed);
        p.b = make_matrix(types[i], 'N', K, N, BATCHES, &seed);
        p.d = make_matrix(types[i], 'N', ld, N, 1, &seed);
        p.d.ld = ld;
        p.d.stride = stride;
        p.c = p.d;
        assert_true(hed_product_is_sound(&p));
        assert_true(hed_product_prepare());
        hed_product_run(&p, &blas);
        for (int64_t b = 0; b < BATCHES; b++)
            for (int64_t at = 0; at < M * N; at++) {
                const int64_t row = at % M, column = at / M;
                double want = 0;

                for (int64_t l = 0; l < K; l++)
                    want += op_element(&p.a, b, row, l) * op_element(&p.b, b, l, column);
                assert_true(fabs(op_element(&p.d, b, row, column) - want) <= 2e-3);
            }
        p.batches++; /* one more does not fit */
        assert_false(hed_product_is_sound(&p));
        p.batches--;
        p.d.stride = p.c.stride = M - 1;
        assert_false(hed_product_is_sound(&p));
        free(p.a.data);
        free(p.b.data);
        free(p.d.data);
    }
}

static void
extents(void **state)
{
    struct hed_product_matrix x = {NULL, HED_PRODUCT_C64, 10, 100, 'N'};

    (void)state;
    assert_int_equal(hed_product_extent(&x, 4, 3, 2), (100 + 20 + 4) * 16);
    assert_int_equal(hed_product_extent(&x, 4, 1, 1), 4 * 16);
    x.stride = INT64_MAX;
    assert_int_equal(hed_product_extent(&x, 4, 3, 3), 0);
    x.stride = 0;
    x.ld = INT64_MAX;
    assert_int_equal(hed_product_extent(&x, 4, 3, 3), 0);
    assert_int_equal(hed_product_extent(&x, 4, 0, 1), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_types),    cmocka_unit_test(blocks),
        cmocka_unit_test(few_columns),  cmocka_unit_test(complex_numbers),
        cmocka_unit_test(nothing_read), cmocka_unit_test(unsound),
        cmocka_unit_test(interleaved),  cmocka_unit_test(extents),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
