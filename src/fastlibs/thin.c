/* See thin.h. */
#include "fastlibs/thin.h"

#include <string.h>

#include "base/clones.h"
#include "base/number.h"
#include "fastlibs/convert.h"

#define CHUNK 2048 /* elements that are floats at a time: 8 KiB */
#define SUMS 32    /* partial sums of a dot product, so that they are vectors */

/* sums[c] += x * b[c], element by element. */
HED_CLONES static void
add_products(float sums[][SUMS], const float *x, const float *b, int64_t stride, int64_t count,
             int64_t columns)
{
    for (int64_t c = 0; c < columns; c++) {
        const float *with = b + c * stride;
        float s[SUMS];

        memcpy(s, sums[c], sizeof s);
        for (int64_t i = 0; i + SUMS <= count; i += SUMS)
            for (int64_t l = 0; l < SUMS; l++)
                s[l] += x[i + l] * with[i + l];
        for (int64_t i = count / SUMS * SUMS; i < count; i++)
            s[i % SUMS] += x[i] * with[i];
        memcpy(sums[c], s, sizeof s);
    }
}

/* t += x * f */
HED_CLONES static void
add_scaled(float *t, const float *x, float f, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        t[i] += x[i] * f;
}

static void
read_chunk(float *to, const struct hed_product_matrix *a, const uint16_t *from, int64_t count)
{
    if (a->type == HED_PRODUCT_F16)
        hed_convert_from_f16(to, from, count);
    else
        hed_convert_from_bf16(to, from, count);
}

/* Each row of op(A) lies in one piece. */
static void
sum_rows(const struct hed_product_matrix *a, const uint16_t *from, int64_t rows, int64_t k,
         int64_t n, const float *b, float *t)
{
    float x[CHUNK];

    for (int64_t i = 0; i < rows; i++) {
        float sums[HED_THIN_MOST][SUMS] = {{0}};

        for (int64_t j = 0; j < k; j += CHUNK) {
            const int64_t count = hed_min_signed(k - j, CHUNK);

            read_chunk(x, a, from + i * a->ld + j, count);
            add_products(sums, x, b + j, k, count, n);
        }
        for (int64_t c = 0; c < n; c++) {
            float sum = 0;

            for (unsigned l = 0; l < SUMS; l++)
                sum += sums[c][l];
            t[c * rows + i] = sum;
        }
    }
}

/* Each column of op(A) lies in one piece. */
static void
sum_columns(const struct hed_product_matrix *a, const uint16_t *from, int64_t rows, int64_t k,
            int64_t n, const float *b, float *t)
{
    float x[CHUNK];

    memset(t, 0, (size_t)(rows * n) * sizeof *t);
    for (int64_t i = 0; i < rows; i += CHUNK) {
        const int64_t count = hed_min_signed(rows - i, CHUNK);

        for (int64_t j = 0; j < k; j++) {
            read_chunk(x, a, from + j * a->ld + i, count);
            for (int64_t c = 0; c < n; c++)
                add_scaled(t + c * rows + i, x, b[c * k + j], count);
        }
    }
}

void
hed_thin_sum(const struct hed_product_matrix *a, int64_t batch, int64_t row, int64_t rows,
             int64_t k, int64_t n, const float *b, float *t)
{
    const uint16_t *from = (const uint16_t *)a->data + batch * a->stride;

    if (a->op == 'N')
        sum_columns(a, from + row, rows, k, n, b, t);
    else
        sum_rows(a, from + row * a->ld, rows, k, n, b, t);
}
