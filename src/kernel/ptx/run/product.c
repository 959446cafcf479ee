/* The matrix products that programs use most, done with the machine's vectors: mma.m16n8 of f16 and
 * bf16 with k 8 or 16, of tf32 with k 4 or 8, and of bytes with k 16 or 32.
 *
 *      for each row of a:  sums[0..7] = c's row
 *                          for k:  sums[0..7] += a[row][k] * b[k][0..7]
 *
 * Each sum adds its products by fma in the order of k, as matrix.c does, so the results are the
 * same bits; eight of them are in the machine's vectors at once. Fragments lie as matrix.c says.
 */
#include <math.h>
#include <string.h>

#include "base/clones.h"
#include "kernel/ptx/ptx.h"
#include "kernel/ptx/run/group.h"
#include "kernel/ptx/run/small_float.h"

#define ROWS 16
#define COLUMNS 8
#define DEPTH_MAX 32
#define NAN_F32 0x7fffffffu
#define TF32_BITS 0xffffe000u /* of a float, that a product of tf32 reads */

/* A lane's words: the first, and the distance to the next. */
struct lane_view {
    uint32_t *first[HED_PTX_LANES];
    unsigned step;
    bool is_dense; /* the words of a number lie side by side, in the order of the lanes */
};

static inline uint32_t *
view_word(const struct lane_view *v, unsigned lane, unsigned n)
{
    return v->first[lane] + (size_t)n * v->step;
}

static inline float
half_as_float(uint16_t bits)
{
#if defined(__aarch64__)
    __fp16 h;

    memcpy(&h, &bits, sizeof(h));
    return (float)h;
#elif defined(__FLT16_MAX__)
    __extension__ _Float16 h;

    memcpy(&h, &bits, sizeof(h));
    return (float)h;
#else
    return hed_from_f16(bits);
#endif
}

static inline float
factor_as_float(bool is_bf16, uint32_t bits)
{
    return is_bf16 ? hed_from_bits32(bits << 16) : half_as_float((uint16_t)bits);
}

/* ---- dense words of floats ------------------------------------------------------------------- */

/* Four lanes that follow each other have a piece of a row of a or c, and of a column of b. */
typedef uint32_t four_words __attribute__((vector_size(16)));
typedef uint32_t eight_words __attribute__((vector_size(32)));

/* Part of its caller, which is compiled for several kinds of processors. */
#define PART static inline __attribute__((always_inline))
/* gcc would write a short loop out, and then finds no vectors in it any more. */
#if defined(__GNUC__) && !defined(__clang__)
#define AS_VECTORS _Pragma("GCC unroll 1")
#else
#define AS_VECTORS
#endif
#define PICK(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)

PART four_words
dense_words(const struct lane_view *v, unsigned n, unsigned group)
{
    four_words w;

    memcpy(&w, v->first[group * 4] + (size_t)n * HED_PTX_LANES, sizeof(w));
    return w;
}

/* Rows of four become columns. */
PART void
transpose_fours(four_words *w)
{
    const four_words a = PICK(w[0], w[1], 0, 4, 1, 5), b = PICK(w[2], w[3], 0, 4, 1, 5);
    const four_words c = PICK(w[0], w[1], 2, 6, 3, 7), d = PICK(w[2], w[3], 2, 6, 3, 7);

    w[0] = PICK(a, b, 0, 1, 4, 5);
    w[1] = PICK(a, b, 2, 3, 6, 7);
    w[2] = PICK(c, d, 0, 1, 4, 5);
    w[3] = PICK(c, d, 2, 3, 6, 7);
}

/* In one piece, because a row is read as a whole soon after. */
PART void
write_row(float *to, four_words low, four_words high)
{
    const eight_words row = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);

    memcpy(to, &row, sizeof(row));
}

struct float_matrices {
    float a[ROWS][16], b[16][COLUMNS], c[ROWS][COLUMNS];
};

/* As take_tf32_factors(). */
PART void
take_dense_tf32(struct float_matrices *x, const struct lane_view *v, unsigned k)
{
    for (unsigned r = 0; r < k / 2; r++) {
        for (unsigned group = 0; group < COLUMNS; group++) {
            const four_words w = dense_words(v, r, group) & TF32_BITS;

            memcpy(&x->a[group + 8 * (r & 1)][4 * (r >> 1)], &w, sizeof(w));
        }
    }
    for (unsigned r = 0; r < k / 4; r++) {
        four_words w[8];

        for (unsigned i = 0; i < 8; i++)
            w[i] = dense_words(v, k / 2 + r, i) & TF32_BITS;
        transpose_fours(w);
        transpose_fours(w + 4);
        for (unsigned i = 0; i < 4; i++)
            write_row(x->b[i + 4 * r], w[i], w[i + 4]);
    }
}

/* As take_float_sums() and give_float_sums(), of 32 bits. */
PART void
take_dense_sums(struct float_matrices *x, const struct lane_view *v, unsigned skip)
{
    for (unsigned row = 0; row < ROWS; row++) {
        const four_words even = dense_words(v, skip + row / 8 * 2, row % 8);
        const four_words odd = dense_words(v, skip + row / 8 * 2 + 1, row % 8);
        const four_words low = PICK(even, odd, 0, 4, 1, 5), high = PICK(even, odd, 2, 6, 3, 7);

        write_row(x->c[row], low, high);
    }
}

/* The NaN that hardware gives, for any. */
PART four_words
usual_nan(four_words w)
{
    const four_words is_nan = (four_words)((w & 0x7fffffffu) > 0x7f800000u);

    return (w & ~is_nan) | (is_nan & NAN_F32);
}

PART void
give_dense_sums(const struct float_matrices *x, const struct lane_view *v, unsigned skip)
{
    for (unsigned row = 0; row < ROWS; row++) {
        const size_t at = (size_t)(skip + row / 8 * 2) * HED_PTX_LANES;
        uint32_t *to = v->first[row % 8 * 4] + at;
        four_words low, high, w;

        memcpy(&low, &x->c[row][0], sizeof(low));
        memcpy(&high, &x->c[row][4], sizeof(high));
        w = usual_nan(PICK(low, high, 0, 2, 4, 6));
        memcpy(to, &w, sizeof(w));
        w = usual_nan(PICK(low, high, 1, 3, 5, 7));
        memcpy(to + HED_PTX_LANES, &w, sizeof(w));
    }
}

/* ---- floats ---------------------------------------------------------------------------------- */

/* Two factors in a register, of which a has k / 4 and b has k / 8. */
PART void
take_float_factors(struct float_matrices *x, const struct lane_view *v, unsigned k, bool is_bf16)
{
    for (unsigned lane = 0; lane < HED_PTX_LANES; lane++) {
        const unsigned group = lane / 4, at = lane % 4 * 2;

        for (unsigned r = 0; r < k / 4; r++) {
            const uint32_t word = *view_word(v, lane, r);
            float *to = &x->a[group + 8 * (r & 1)][at + 8 * (r >> 1)];

            to[0] = factor_as_float(is_bf16, word & 0xffff);
            to[1] = factor_as_float(is_bf16, word >> 16);
        }
        for (unsigned r = 0; r < k / 8; r++) {
            const uint32_t word = *view_word(v, lane, k / 4 + r);

            x->b[at + 8 * r][group] = factor_as_float(is_bf16, word & 0xffff);
            x->b[at + 8 * r + 1][group] = factor_as_float(is_bf16, word >> 16);
        }
    }
}

/* One factor in a register, of which a has k / 2 and b has k / 4. */
PART void
take_tf32_factors(struct float_matrices *x, const struct lane_view *v, unsigned k)
{
    for (unsigned lane = 0; lane < HED_PTX_LANES; lane++) {
        const unsigned group = lane / 4, at = lane % 4;

        for (unsigned r = 0; r < k / 2; r++)
            x->a[group + 8 * (r & 1)][at + 4 * (r >> 1)] =
                hed_from_bits32(*view_word(v, lane, r) & TF32_BITS);
        for (unsigned r = 0; r < k / 4; r++)
            x->b[at + 4 * r][group] = hed_from_bits32(*view_word(v, lane, k / 2 + r) & TF32_BITS);
    }
}

PART void
take_float_sums(struct float_matrices *x, const struct lane_view *v, unsigned skip, bool is_half)
{
    for (unsigned lane = 0; lane < HED_PTX_LANES; lane++) {
        for (unsigned i = 0; i < 4; i++) {
            const uint32_t word = *view_word(v, lane, skip + (is_half ? i / 2 : i));
            float *to = &x->c[lane / 4 + 8 * (i / 2)][lane % 4 * 2 + i % 2];

            *to = is_half ? half_as_float((uint16_t)(i % 2 ? word >> 16 : word))
                          : hed_from_bits32(word);
        }
    }
}

/* A row of b, or of the sums. */
typedef float row_of_floats __attribute__((vector_size(COLUMNS * 4)));

PART void
add_product(row_of_floats *sums, float by, const row_of_floats *row)
{
    AS_VECTORS
    for (unsigned n = 0; n < COLUMNS; n++)
        (*sums)[n] = fmaf(by, (*row)[n], (*sums)[n]);
}

/* Four rows at a time, since a sum waits for the one before it. They are no array, which the
 * compiler would keep in memory. */
PART void
multiply_floats(struct float_matrices *x, unsigned k)
{
    for (unsigned row = 0; row < ROWS; row += 4) {
        row_of_floats first, second, third, fourth, b;

        memcpy(&first, x->c[row], sizeof(first));
        memcpy(&second, x->c[row + 1], sizeof(second));
        memcpy(&third, x->c[row + 2], sizeof(third));
        memcpy(&fourth, x->c[row + 3], sizeof(fourth));
        for (unsigned i = 0; i < k; i++) {
            memcpy(&b, x->b[i], sizeof(b));
            add_product(&first, x->a[row][i], &b);
            add_product(&second, x->a[row + 1][i], &b);
            add_product(&third, x->a[row + 2][i], &b);
            add_product(&fourth, x->a[row + 3][i], &b);
        }
        memcpy(x->c[row], &first, sizeof(first));
        memcpy(x->c[row + 1], &second, sizeof(second));
        memcpy(x->c[row + 2], &third, sizeof(third));
        memcpy(x->c[row + 3], &fourth, sizeof(fourth));
    }
}

PART void
give_float_sums(const struct float_matrices *x, const struct lane_view *v, unsigned skip,
                bool is_half)
{
    for (unsigned lane = 0; lane < HED_PTX_LANES; lane++) {
        for (unsigned i = 0; i < 4; i += 2) {
            const float *from = &x->c[lane / 4 + 8 * (i / 2)][lane % 4 * 2];

            if (is_half) {
                *view_word(v, lane, skip + i / 2) =
                    hed_to_f16(from[0]) | (uint32_t)hed_to_f16(from[1]) << 16;
                continue;
            }
            for (unsigned n = 0; n < 2; n++)
                *view_word(v, lane, skip + i + n) =
                    isnan(from[n]) ? NAN_F32 : hed_to_bits32(from[n]);
        }
    }
}

static HED_CLONES void
product_of_floats(const struct hed_ptx_mma *m, const struct lane_view *v)
{
    const bool is_tf32 = m->a == HED_PTX_TYPE_TF32;
    const unsigned k = m->k, c_words = m->c == HED_PTX_TYPE_F16 ? 2 : 4;
    const unsigned factors = is_tf32 ? k / 2 + k / 4 : k / 4 + k / 8; /* words of a lane */
    struct float_matrices x;

    if (is_tf32 && v->is_dense) {
        take_dense_tf32(&x, v, k);
        take_dense_sums(&x, v, factors);
        multiply_floats(&x, k);
        give_dense_sums(&x, v, factors + c_words);
        return;
    }
    if (is_tf32)
        take_tf32_factors(&x, v, k);
    else
        take_float_factors(&x, v, k, m->a == HED_PTX_TYPE_BF16);
    take_float_sums(&x, v, factors, m->c == HED_PTX_TYPE_F16);
    multiply_floats(&x, k);
    give_float_sums(&x, v, factors + c_words, m->d == HED_PTX_TYPE_F16);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

struct byte_matrices {
    int32_t a[ROWS][DEPTH_MAX], b[DEPTH_MAX][COLUMNS];
    uint32_t c[ROWS][COLUMNS];
};

static inline int32_t
byte_number(bool is_signed, uint32_t word, unsigned n)
{
    const uint8_t byte = (uint8_t)(word >> 8 * n);

    return is_signed ? (int8_t)byte : byte;
}

/* Four factors in a register, of which a has k / 8 and b has k / 16. */
PART void
take_byte_factors(struct byte_matrices *x, const struct hed_ptx_mma *m, const struct lane_view *v)
{
    const bool a_signed = m->a == HED_PTX_TYPE_S8, b_signed = m->b == HED_PTX_TYPE_S8;

    for (unsigned lane = 0; lane < HED_PTX_LANES; lane++) {
        const unsigned group = lane / 4, at = lane % 4 * 4;

        for (unsigned r = 0; r < m->k / 8u; r++)
            for (unsigned j = 0; j < 4; j++)
                x->a[group + 8 * (r & 1)][at + j + 16 * (r >> 1)] =
                    byte_number(a_signed, *view_word(v, lane, r), j);
        for (unsigned r = 0; r < m->k / 16u; r++)
            for (unsigned j = 0; j < 4; j++)
                x->b[at + j + 16 * r][group] =
                    byte_number(b_signed, *view_word(v, lane, m->k / 8u + r), j);
    }
}

/* Sums wrap around. */
PART void
multiply_bytes(struct byte_matrices *x, unsigned k)
{
    for (unsigned row = 0; row < ROWS; row++) {
        uint32_t sums[COLUMNS];

        memcpy(sums, x->c[row], sizeof(sums));
        for (unsigned i = 0; i < k; i++) {
            AS_VECTORS
            for (unsigned n = 0; n < COLUMNS; n++)
                sums[n] += (uint32_t)(x->a[row][i] * x->b[i][n]);
        }
        memcpy(x->c[row], sums, sizeof(sums));
    }
}

static HED_CLONES void
product_of_bytes(const struct hed_ptx_mma *m, const struct lane_view *v)
{
    const unsigned skip = m->k / 8u + m->k / 16u;
    struct byte_matrices x;

    take_byte_factors(&x, m, v);
    for (unsigned lane = 0; lane < HED_PTX_LANES; lane++)
        for (unsigned i = 0; i < 4; i++)
            x.c[lane / 4 + 8 * (i / 2)][lane % 4 * 2 + i % 2] = *view_word(v, lane, skip + i);
    multiply_bytes(&x, m->k);
    for (unsigned lane = 0; lane < HED_PTX_LANES; lane++)
        for (unsigned i = 0; i < 4; i++)
            *view_word(v, lane, skip + 4 + i) = x.c[lane / 4 + 8 * (i / 2)][lane % 4 * 2 + i % 2];
}

/* ---- entry point ----------------------------------------------------------------------------- */

bool
hed_ptx_mma_usual(void *const data[HED_PTX_LANES], const struct hed_ptx_mma *m, bool is_strided)
{
    const bool halves = m->a == m->b && (m->a == HED_PTX_TYPE_F16 || m->a == HED_PTX_TYPE_BF16) &&
                        (m->c == HED_PTX_TYPE_F32 || m->c == HED_PTX_TYPE_F16) &&
                        (m->d == HED_PTX_TYPE_F32 || m->d == HED_PTX_TYPE_F16) &&
                        (m->k == 8 || m->k == 16);
    const bool tf32 = m->a == HED_PTX_TYPE_TF32 && m->b == m->a && m->c == HED_PTX_TYPE_F32 &&
                      m->d == HED_PTX_TYPE_F32 && (m->k == 4 || m->k == 8);
    const bool bytes = (m->a == HED_PTX_TYPE_S8 || m->a == HED_PTX_TYPE_U8) &&
                       (m->b == HED_PTX_TYPE_S8 || m->b == HED_PTX_TYPE_U8) &&
                       (m->k == 16 || m->k == 32);
    struct lane_view v = {.step = is_strided ? HED_PTX_LANES : 1};
    bool is_whole = true, is_dense = is_strided;

    if (m->m != ROWS || m->n != COLUMNS || !(halves || tf32 || bytes))
        return false;
    for (unsigned lane = 0; lane < HED_PTX_LANES; lane++) {
        v.first[lane] = data[lane];
        is_whole &= data[lane] != NULL;
        is_dense &= v.first[lane] == v.first[0] + lane;
    }
    if (!is_whole)
        return false;
    v.is_dense = is_dense;
    if (halves || tf32)
        product_of_floats(m, &v);
    else
        product_of_bytes(m, &v);
    return true;
}
