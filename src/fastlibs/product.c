/* Computes matrix products by the CPU's BLAS. See product.h.
 *
 * Types that the BLAS has go to it as they are. Numbers of 16 bits become floats block by block, so
 * that the floats stay in the processor's caches, and are summed up as floats:
 *
 *     for each block of D:
 *         for each block of k:  A and B to floats, T += A * B
 *         D = post(alpha * T + beta * C + bias), rounded once
 */
#include "fastlibs/product.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "fastlibs/blas.h"
#include "fastlibs/convert.h"
#include "fastlibs/scratch.h"
#include "fastlibs/thin.h"

/* Blocks: as floats, one of A and one of B are 1 MiB each, and one of D is 256 KiB. */
#define BLOCK_ROWS 256
#define BLOCK_COLUMNS 256
#define BLOCK_DEPTH 1024

/* How long the columns of B may be that are floats all at once. */
#define THIN_DEPTH (BLOCK_DEPTH * BLOCK_COLUMNS / HED_THIN_MOST)

struct scratch {
    float a[BLOCK_ROWS * BLOCK_DEPTH];
    float b[BLOCK_DEPTH * BLOCK_COLUMNS];
    float t[BLOCK_ROWS * BLOCK_COLUMNS];
    float column[BLOCK_ROWS], bias[BLOCK_ROWS];
};

/* A part of a matrix. */
struct block {
    int64_t row, column, rows, columns;
};

unsigned
hed_product_size(enum hed_product_type type)
{
    static const unsigned char sizes[] = {
        [HED_PRODUCT_F32] = 4,  [HED_PRODUCT_F64] = 8, [HED_PRODUCT_C32] = 8,
        [HED_PRODUCT_C64] = 16, [HED_PRODUCT_F16] = 2, [HED_PRODUCT_BF16] = 2,
    };

    return sizes[type];
}

static bool
is_half(enum hed_product_type type)
{
    return type == HED_PRODUCT_F16 || type == HED_PRODUCT_BF16;
}

int64_t
hed_product_rows(const struct hed_product_matrix *x, int64_t rows, int64_t columns)
{
    return x->op == 'N' ? rows : columns;
}

int64_t
hed_product_columns(const struct hed_product_matrix *x, int64_t rows, int64_t columns)
{
    return x->op == 'N' ? columns : rows;
}

uint64_t
hed_product_extent(const struct hed_product_matrix *x, int64_t rows, int64_t columns,
                   int64_t batches)
{
    uint64_t behind, more;

    if (rows < 1 || columns < 1 || batches < 1 || x->ld < 0 || x->stride < 0 ||
        __builtin_mul_overflow((uint64_t)x->ld, (uint64_t)columns - 1, &behind) ||
        __builtin_mul_overflow((uint64_t)x->stride, (uint64_t)batches - 1, &more) ||
        __builtin_add_overflow(behind, (uint64_t)rows, &behind) ||
        __builtin_add_overflow(behind, more, &behind) ||
        __builtin_mul_overflow(behind, (uint64_t)hed_product_size(x->type), &behind))
        return 0;
    return behind;
}

static bool
is_aligned(const struct hed_product_matrix *x)
{
    return (uintptr_t)x->data % hed_product_size(x->type) == 0;
}

static bool
is_sound_matrix(const struct hed_product_matrix *x, int64_t rows)
{
    return x->data && is_aligned(x) && x->ld >= rows && x->ld <= INT32_MAX && x->stride >= 0 &&
           (x->op == 'N' || x->op == 'T' || x->op == 'C');
}

/* Matrices of the result that share elements are not computed one after the other. They may lie
 * behind each other, or the columns of all between two columns of one. */
static bool
are_results_apart(const struct hed_product *p)
{
    const struct hed_product_matrix *d = &p->d;

    return p->batches == 1 || d->stride >= d->ld * (p->n - 1) + p->m ||
           (d->stride >= p->m && p->batches - 1 <= (d->ld - p->m) / d->stride);
}

bool
hed_product_is_sound(const struct hed_product *p)
{
    const bool is_plain = p->post == HED_POST_NONE && !p->bias.data;

    /* Then nobody reads A and B. A BLAS may, and multiply NaN by 0. */
    if (p->alpha.re == 0 && p->alpha.im == 0)
        return false;

    if (p->m < 1 || p->n < 1 || p->k < 1 || p->batches < 1 || p->m > INT32_MAX ||
        p->n > INT32_MAX || p->k > INT32_MAX || p->a.type != p->b.type || p->c.type != p->d.type ||
        p->c.op != 'N' || p->d.op != 'N')
        return false;
    if (p->d.type != p->a.type && (!is_half(p->a.type) || p->d.type != HED_PRODUCT_F32))
        return false;
    if (!is_plain && p->d.type != HED_PRODUCT_F32 && !is_half(p->d.type))
        return false;
    if (p->bias.data && (p->bias.type != p->d.type || p->bias.stride < 0 || !is_aligned(&p->bias)))
        return false;
    if (!is_sound_matrix(&p->d, p->m))
        return false;
    if (!are_results_apart(p))
        return false;
    if (p->c.data == p->d.data && (p->c.ld != p->d.ld || p->c.stride != p->d.stride))
        return false;
    return is_sound_matrix(&p->a, hed_product_rows(&p->a, p->m, p->k)) &&
           is_sound_matrix(&p->b, hed_product_rows(&p->b, p->k, p->n)) &&
           ((p->beta.re == 0 && p->beta.im == 0) || is_sound_matrix(&p->c, p->m));
}

bool
hed_product_prepare(void)
{
    return hed_scratch_reserve(sizeof(struct scratch));
}

static char *
element(const struct hed_product_matrix *x, int64_t batch, int64_t row, int64_t column)
{
    const int64_t at = batch * x->stride + column * x->ld + row;

    return (char *)x->data + at * (int64_t)hed_product_size(x->type);
}

/* ---- what comes behind the product ----------------------------------------------------------- */

static void
read_floats(float *to, const void *from, enum hed_product_type type, int64_t n)
{
    if (type == HED_PRODUCT_F16)
        hed_convert_from_f16(to, from, n);
    else if (type == HED_PRODUCT_BF16)
        hed_convert_from_bf16(to, from, n);
    else
        memcpy(to, from, (size_t)n * sizeof *to);
}

static void
write_floats(void *to, enum hed_product_type type, const float *from, int64_t n)
{
    if (type == HED_PRODUCT_F16)
        hed_convert_to_f16(to, from, n);
    else if (type == HED_PRODUCT_BF16)
        hed_convert_to_bf16(to, from, n);
    else
        memcpy(to, from, (size_t)n * sizeof *from);
}

static float
gelu(float x)
{
    /* sqrt(2 / pi) */
    return 0.5f * x * (1 + tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x)));
}

static void
apply_post(float *x, const float *bias, enum hed_product_post post, int64_t n)
{
    if (bias)
        for (int64_t i = 0; i < n; i++)
            x[i] += bias[i];
    if (post == HED_POST_RELU)
        for (int64_t i = 0; i < n; i++)
            x[i] = x[i] < 0 ? 0 : x[i]; /* a NaN stays one */
    else if (post == HED_POST_GELU)
        for (int64_t i = 0; i < n; i++)
            x[i] = gelu(x[i]);
}

static const float *
read_bias(const struct hed_product *p, struct scratch *s, int64_t batch, int64_t row, int64_t rows)
{
    if (!p->bias.data)
        return NULL;
    read_floats(s->bias, element(&p->bias, batch, row, 0), p->bias.type, rows);
    return s->bias;
}

/* D = post(T + beta * C + bias) for one block, of which T has the columns `ld` apart, times alpha
 * already. It has no more than BLOCK_ROWS rows. */
static void
finish_block(const struct hed_product *p, struct scratch *s, int64_t batch, const struct block *d,
             float *t, int64_t ld)
{
    const float *bias = read_bias(p, s, batch, d->row, d->rows);
    const float beta = (float)p->beta.re;

    for (int64_t j = 0; j < d->columns; j++, t += ld) {
        if (p->beta.re != 0) {
            read_floats(s->column, element(&p->c, batch, d->row, d->column + j), p->c.type,
                        d->rows);
            for (int64_t i = 0; i < d->rows; i++)
                t[i] += beta * s->column[i];
        }
        apply_post(t, bias, p->post, d->rows);
        write_floats(element(&p->d, batch, d->row, d->column + j), p->d.type, t, d->rows);
    }
}

/* ---- numbers of 16 bits ---------------------------------------------------------------------- */

/* Reads a block of op(X) and stores it as X is stored. */
static void
read_block(float *to, const struct hed_product_matrix *x, int64_t batch, const struct block *of)
{
    const bool turned = x->op != 'N';
    const struct block b =
        turned ? (struct block){of->column, of->row, of->columns, of->rows} : *of;

    for (int64_t j = 0; j < b.columns; j++)
        read_floats(to + j * b.rows, element(x, batch, b.row, b.column + j), x->type, b.rows);
}

/* from has `rows` rows, to as many columns. */
static void
turn_block(float *to, const float *from, int64_t rows, int64_t columns)
{
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
            to[i * columns + j] = from[j * rows + i];
}

static void
sum_block(const struct hed_product *p, const struct hed_blas *blas, struct scratch *s,
          int64_t batch, const struct block *d)
{
    for (int64_t k = 0; k < p->k; k += BLOCK_DEPTH) {
        const int64_t depth = hed_min_signed(p->k - k, BLOCK_DEPTH);
        const struct block a = {d->row, k, d->rows, depth}, b = {k, d->column, depth, d->columns};
        /* A matrix of reals is its own conjugate. */
        const char op_a = p->a.op == 'N' ? 'N' : 'T', op_b = p->b.op == 'N' ? 'N' : 'T';

        /* Where D has few columns, B is read once and stays. */
        read_block(s->a, &p->a, batch, &a);
        read_block(s->b, &p->b, batch, &b);
        hed_blas_gemm(blas, &(struct hed_blas_gemm){
                                .type = HED_PRODUCT_F32,
                                .op_a = op_a,
                                .op_b = op_b,
                                .m = d->rows,
                                .n = d->columns,
                                .k = depth,
                                .alpha = p->alpha,
                                .beta = {k ? 1 : 0, 0},
                                .a = s->a,
                                .b = s->b,
                                .c = s->t,
                                .lda = op_a == 'N' ? d->rows : depth,
                                .ldb = op_b == 'N' ? depth : d->columns,
                                .ldc = d->rows,
                            });
    }
}

/* A few columns: B is read once, and A is not stored as floats. */
static void
run_thin(const struct hed_product *p, struct scratch *s, int64_t batch)
{
    const int64_t most = BLOCK_ROWS * BLOCK_COLUMNS / p->n;
    const struct block b = {0, 0, p->k, p->n};

    read_block(s->b, &p->b, batch, &b);
    if (p->b.op != 'N')
        turn_block(s->a, s->b, p->n, p->k);
    for (int64_t i = 0; i < p->m; i += most) {
        const int64_t rows = hed_min_signed(p->m - i, most);

        hed_thin_sum(&p->a, batch, i, rows, p->k, p->n, p->b.op != 'N' ? s->a : s->b, s->t);
        for (int64_t j = 0; j < rows * p->n; j++)
            s->t[j] *= (float)p->alpha.re;
        for (int64_t j = 0; j < rows; j += BLOCK_ROWS) {
            const struct block d = {i + j, 0, hed_min_signed(rows - j, BLOCK_ROWS), p->n};

            finish_block(p, s, batch, &d, s->t + j, rows);
        }
    }
}

static void
run_halves(const struct hed_product *p, const struct hed_blas *blas, struct scratch *s,
           int64_t batch)
{
    for (int64_t j = 0; j < p->n; j += BLOCK_COLUMNS)
        for (int64_t i = 0; i < p->m; i += BLOCK_ROWS) {
            const struct block d = {i, j, hed_min_signed(p->m - i, BLOCK_ROWS),
                                    hed_min_signed(p->n - j, BLOCK_COLUMNS)};

            sum_block(p, blas, s, batch, &d);
            finish_block(p, s, batch, &d, s->t, d.rows);
        }
}

/* ---- types that the BLAS has ----------------------------------------------------------------- */

/* The BLAS adds to D, so C has to be there. */
static void
copy_addend(const struct hed_product *p, int64_t batch)
{
    const size_t bytes = (size_t)p->m * hed_product_size(p->d.type);

    if ((p->beta.re == 0 && p->beta.im == 0) ||
        (p->c.data == p->d.data && p->c.ld == p->d.ld && p->c.stride == p->d.stride))
        return;
    for (int64_t j = 0; j < p->n; j++)
        memmove(element(&p->d, batch, 0, j), element(&p->c, batch, 0, j), bytes);
}

static void
post_matrix(const struct hed_product *p, struct scratch *s, int64_t batch)
{
    for (int64_t i = 0; i < p->m; i += BLOCK_ROWS) {
        const int64_t rows = hed_min_signed(p->m - i, BLOCK_ROWS);
        const float *bias = read_bias(p, s, batch, i, rows);

        for (int64_t j = 0; j < p->n; j++)
            apply_post((float *)element(&p->d, batch, i, j), bias, p->post, rows);
    }
}

static void
run_whole(const struct hed_product *p, const struct hed_blas *blas, struct scratch *s,
          int64_t batch)
{
    copy_addend(p, batch);
    hed_blas_gemm(blas, &(struct hed_blas_gemm){
                            .type = p->a.type,
                            .op_a = p->a.op,
                            .op_b = p->b.op,
                            .m = p->m,
                            .n = p->n,
                            .k = p->k,
                            .alpha = p->alpha,
                            .beta = p->beta,
                            .a = element(&p->a, batch, 0, 0),
                            .b = element(&p->b, batch, 0, 0),
                            .c = element(&p->d, batch, 0, 0),
                            .lda = p->a.ld,
                            .ldb = p->b.ld,
                            .ldc = p->d.ld,
                        });
    if (p->bias.data || p->post != HED_POST_NONE)
        post_matrix(p, s, batch);
}

void
hed_product_run(const struct hed_product *p, const struct hed_blas *blas)
{
    struct scratch *s = hed_scratch_take(sizeof *s);

    for (int64_t batch = 0; batch < p->batches; batch++) {
        if (is_half(p->a.type) && p->n <= HED_THIN_MOST && p->k <= THIN_DEPTH)
            run_thin(p, s, batch);
        else if (is_half(p->a.type))
            run_halves(p, blas, s, batch);
        else
            run_whole(p, blas, s, batch);
    }
    hed_scratch_put(s);
}
