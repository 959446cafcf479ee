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

/* ---- floats ---------------------------------------------------------------------------------- */

struct float_matrices {
    float a[ROWS][16], b[16][COLUMNS], c[ROWS][COLUMNS];
};

/* Two factors in a register, of which a has k / 4 and b has k / 8. */
static void
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
static void
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

static void
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

static void
multiply_floats(struct float_matrices *x, unsigned k)
{
    for (unsigned row = 0; row < ROWS; row++) {
        float sums[COLUMNS];

        memcpy(sums, x->c[row], sizeof(sums));
        for (unsigned i = 0; i < k; i++)
            for (unsigned n = 0; n < COLUMNS; n++)
                sums[n] = fmaf(x->a[row][i], x->b[i][n], sums[n]);
        memcpy(x->c[row], sums, sizeof(sums));
    }
}

static void
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
static void
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
static void
multiply_bytes(struct byte_matrices *x, unsigned k)
{
    for (unsigned row = 0; row < ROWS; row++) {
        uint32_t sums[COLUMNS];

        memcpy(sums, x->c[row], sizeof(sums));
        for (unsigned i = 0; i < k; i++)
            for (unsigned n = 0; n < COLUMNS; n++)
                sums[n] += (uint32_t)(x->a[row][i] * x->b[i][n]);
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

    if (m->m != ROWS || m->n != COLUMNS || !(halves || tf32 || bytes))
        return false;
    for (unsigned lane = 0; lane < HED_PTX_LANES; lane++) {
        v.first[lane] = data[lane];
        if (!v.first[lane])
            return false;
    }
    if (halves || tf32)
        product_of_floats(m, &v);
    else
        product_of_bytes(m, &v);
    return true;
}
