/* Matrix instructions, which work on the fragments that the lanes of a warp hold.
 *
 * A fragment of mma lies as the PTX manual says. With group = lane / 4, place = lane % 4, and e
 * elements in a register (an element of 64 bits counts as one register):
 *
 *   a   register r, element j   row group + 8 (r odd), column e * place + j + 4 e (r / 2)
 *   b   register r, element j   row e * place + j + 4 e r, column group
 *   c   element i               row group + 8 (i / 2), column 2 * place + i % 2
 *
 * A matrix of 8 rows has no odd registers in a and no second half in c. PTX does not define the
 * layout of wmma: here the elements, row by row, are divided among the lanes in equal runs, and
 * halves are held twice.
 *
 * Products are added by fma, in the order of k, in single precision (double for f64); integers are
 * exact. Results in halves are rounded once, at the end.
 */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "kernel/ptx/ptx.h"
#include "kernel/ptx/run/group.h"
#include "kernel/ptx/run/small_float.h"

#define SPARSE_WORDS 2 /* metadata, and the selector */

/* ---- elements -------------------------------------------------------------------------------- */

/* A number of any type. */
union number {
    double f;
    int64_t i;
};

static union number
decode_number(enum hed_ptx_type t, uint64_t v)
{
    switch (t) {
    case HED_PTX_TYPE_S8:
        return (union number){.i = hed_sign_extend(v, 8)};
    case HED_PTX_TYPE_S4:
        return (union number){.i = hed_sign_extend(v, 4)};
    case HED_PTX_TYPE_S32:
        return (union number){.i = hed_sign_extend(v, 32)};
    case HED_PTX_TYPE_U8:
    case HED_PTX_TYPE_U4:
    case HED_PTX_TYPE_B1:
        return (union number){.i = (int64_t)v};
    case HED_PTX_TYPE_F16:
        return (union number){.f = (double)hed_from_f16((uint16_t)v)};
    case HED_PTX_TYPE_BF16:
        return (union number){.f = (double)hed_from_bits32((uint32_t)v << 16)};
    case HED_PTX_TYPE_TF32:
        return (union number){.f = (double)hed_from_bits32((uint32_t)v & 0xffffe000u)};
    case HED_PTX_TYPE_E4M3:
        return (union number){.f = (double)hed_from_e4m3((uint8_t)v)};
    case HED_PTX_TYPE_E5M2:
        return (union number){.f = (double)hed_from_f16((uint16_t)(v << 8))};
    case HED_PTX_TYPE_F64:
        return (union number){.f = hed_from_bits64(v)};
    default:
        return (union number){.f = (double)hed_from_bits32((uint32_t)v)};
    }
}

static uint64_t
encode_number(enum hed_ptx_type t, union number v)
{
    uint64_t bits;

    switch (t) {
    case HED_PTX_TYPE_S32:
        return (uint32_t)v.i;
    case HED_PTX_TYPE_F16:
        return hed_to_f16((float)v.f);
    case HED_PTX_TYPE_F64:
        memcpy(&bits, &v.f, sizeof(bits));
        return bits;
    default:
        return isnan(v.f) ? 0x7fffffff : hed_to_bits32((float)v.f);
    }
}

/* The words of a lane. */
struct words {
    uint32_t *first; /* NULL if the lane takes no part */
    unsigned step;   /* from one to the next */
};

static struct words
lane_words(void *const *data, unsigned lane, unsigned skip, uint64_t arg)
{
    const struct words w = {data[lane], arg & HED_RT_STRIDED ? HED_PTX_LANES : 1};

    return (struct words){w.first ? w.first + (size_t)skip * w.step : NULL, w.step};
}

static uint32_t *
word_at(struct words w, unsigned n)
{
    return w.first + (size_t)n * w.step;
}

/* Element n of words that hold elements of `bits` bits. */
static uint64_t
get_element(struct words w, unsigned n, unsigned bits)
{
    if (bits == 64)
        return *word_at(w, 2 * n) | (uint64_t)*word_at(w, 2 * n + 1) << 32;
    if (bits == 32)
        return *word_at(w, n);
    return *word_at(w, n * bits / 32) >> n * bits % 32 & ((1u << bits) - 1);
}

static void
put_element(struct words w, unsigned n, unsigned bits, uint64_t v)
{
    if (bits == 64) {
        *word_at(w, 2 * n) = (uint32_t)v;
        *word_at(w, 2 * n + 1) = (uint32_t)(v >> 32);
    } else if (bits == 32) {
        *word_at(w, n) = (uint32_t)v;
    } else {
        const unsigned at = n * bits % 32;
        const uint32_t mask = ((1u << bits) - 1) << at;
        uint32_t *p = word_at(w, n * bits / 32);

        *p = (*p & ~mask) | ((uint32_t)v << at & mask);
    }
}

/* ---- where elements lie ---------------------------------------------------------------------- */

enum part { PART_A, PART_B, PART_C };

struct fragment {
    enum part part;
    unsigned rows, columns;
    unsigned bits;
    unsigned count; /* elements in a lane */
    unsigned words; /* in a lane */
    bool is_wmma;
};

struct cell {
    unsigned row, column;
};

static struct cell
element_cell(const struct fragment *f, unsigned lane, unsigned n)
{
    const unsigned group = lane / 4;
    const unsigned place = lane % 4;
    const unsigned each = f->bits >= 32 ? 1 : 32 / f->bits;
    const unsigned r = n / each;
    const unsigned j = n % each;

    if (f->is_wmma) {
        const unsigned share = f->rows * f->columns / HED_PTX_LANES;
        const unsigned at = lane * share + n % share;

        return (struct cell){at / f->columns, at % f->columns};
    }
    switch (f->part) {
    case PART_A:
        if (f->rows == 8)
            return (struct cell){group, each * place + j + 4 * each * r};
        return (struct cell){group + 8 * (r & 1), each * place + j + 4 * each * (r >> 1)};
    case PART_B:
        return (struct cell){each * place + j + 4 * each * r, group};
    default:
        return (struct cell){group + 8 * (n >> 1), 2 * place + (n & 1)};
    }
}

static struct fragment
fragment_of(enum part part, const struct hed_ptx_mma *m, enum hed_ptx_type t)
{
    const unsigned k = m->k & HED_PTX_MMA_K;
    struct fragment f = {
        .part = part,
        .rows = part == PART_B ? k : m->m,
        .columns = part == PART_B || part == PART_C ? m->n
                   : m->k & HED_PTX_MMA_SPARSE      ? k / 2
                                                    : k,
        .bits = hed_ptx_types[t].bits,
        .is_wmma = (m->k & HED_PTX_MMA_WMMA) != 0,
    };

    f.count = f.rows * f.columns / HED_PTX_LANES;
    /* wmma holds halves twice, in eight registers. */
    if (f.is_wmma && part != PART_C && t == HED_PTX_TYPE_F16)
        f.count = 16;
    f.words = (unsigned)hed_divide_up(f.count * f.bits, 32);
    return f;
}

void
hed_ptx_mma_words(const struct hed_ptx_mma *m, unsigned *in, unsigned *out)
{
    *in = fragment_of(PART_A, m, m->a).words + fragment_of(PART_B, m, m->b).words +
          fragment_of(PART_C, m, m->c).words + (m->k & HED_PTX_MMA_SPARSE ? SPARSE_WORDS : 0);
    *out = fragment_of(PART_C, m, m->d).words;
}

/* ---- mma ------------------------------------------------------------------------------------- */

/* It lies on the stack of a warp, so each array is only as large as it must be. */
struct matrices {
    unsigned columns, depth;           /* n and k */
    union number a[HED_PTX_MMA_A_MAX]; /* by row */
    union number b[HED_PTX_MMA_B_MAX]; /* by column */
    union number c[HED_PTX_MMA_C_MAX]; /* by row */
};

static void
gather_fragment(struct matrices *x, const struct fragment *f, enum hed_ptx_type t,
                void *const *data, unsigned skip, uint64_t arg)
{
    for (unsigned lane = 0; lane < HED_PTX_LANES; lane++) {
        const struct words w = lane_words(data, lane, skip, arg);

        for (unsigned n = 0; w.first && n < f->count; n++) {
            const struct cell at = element_cell(f, lane, n);
            const union number v = decode_number(t, get_element(w, n, f->bits));

            if (f->part == PART_A)
                x->a[at.row * f->columns + at.column] = v;
            else if (f->part == PART_B)
                x->b[at.column * x->depth + at.row] = v;
            else
                x->c[at.row * x->columns + at.column] = v;
        }
    }
}

static int64_t
saturate_s32(int64_t v)
{
    return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v;
}

static union number
dot_of_row(const struct hed_ptx_mma *m, unsigned k, const union number *a, const union number *b,
           union number c)
{
    float sum;

    if (m->a == HED_PTX_TYPE_B1) {
        for (unsigned i = 0; i < k; i++)
            c.i += m->k & HED_PTX_MMA_AND ? a[i].i & b[i].i : a[i].i ^ b[i].i;
        return c;
    }
    if (hed_ptx_is_integer_element(m->a)) {
        for (unsigned i = 0; i < k; i++)
            c.i += a[i].i * b[i].i;
        if (m->k & HED_PTX_MMA_SATURATE)
            c.i = saturate_s32(c.i);
        return c;
    }
    if (m->a == HED_PTX_TYPE_F64) {
        for (unsigned i = 0; i < k; i++)
            c.f = fma(a[i].f, b[i].f, c.f);
        return c;
    }
    sum = (float)c.f;
    for (unsigned i = 0; i < k; i++)
        sum = fmaf((float)a[i].f, (float)b[i].f, sum);
    return (union number){.f = (double)sum};
}

/* The product of a row that has its elements in some columns only. What b has in the others does
 * not matter, even if it is no number. */
static void
multiply_sparse_row(struct matrices *x, const struct hed_ptx_mma *m, const uint32_t *metadata,
                    unsigned selector, unsigned row)
{
    const unsigned there = x->depth / 2;
    uint16_t columns[HED_PTX_MMA_DEPTH_MAX / 2];
    union number b[HED_PTX_MMA_DEPTH_MAX / 2];

    hed_ptx_mma_columns(m, metadata, selector, row, columns);
    for (unsigned n = 0; n < x->columns; n++) {
        for (unsigned i = 0; i < there; i++)
            b[i] = x->b[n * x->depth + columns[i]];
        x->c[row * x->columns + n] =
            dot_of_row(m, there, x->a + (size_t)row * there, b, x->c[row * x->columns + n]);
    }
}

/* skip: the words before the metadata. */
static void
multiply_sparse(struct matrices *x, const struct hed_ptx_mma *m, void *const *data, unsigned skip,
                uint64_t arg)
{
    uint32_t metadata[HED_PTX_LANES] = {0}, selector = 0;

    for (unsigned lane = 0; lane < HED_PTX_LANES; lane++) {
        const struct words w = lane_words(data, lane, skip, arg);

        if (w.first) {
            metadata[lane] = *word_at(w, 0);
            selector = *word_at(w, 1) & 3;
        }
    }
    for (unsigned row = 0; row < m->m; row++)
        multiply_sparse_row(x, m, metadata, selector, row);
}

static void
multiply_dense(struct matrices *x, const struct hed_ptx_mma *m)
{
    for (unsigned row = 0; row < m->m; row++)
        for (unsigned column = 0; column < m->n; column++)
            x->c[row * m->n + column] =
                dot_of_row(m, x->depth, x->a + (size_t)row * x->depth,
                           x->b + (size_t)column * x->depth, x->c[row * m->n + column]);
}

void
hed_ptx_mma(void *const data[HED_PTX_LANES], uint32_t mask, uint64_t arg)
{
    unsigned in, out;
    struct matrices x;
    struct hed_ptx_mma m;

    (void)mask;
    memcpy(&m, &arg, sizeof(m));
    m.c &= 0x7f; /* HED_RT_STRIDED is above it */
    if (hed_ptx_mma_usual(data, &m, arg & HED_RT_STRIDED) || !hed_ptx_is_product_shape(&m))
        return; /* hed_ptx_mma_describe() accepts no other shape */
    x.columns = m.n;
    x.depth = m.k & HED_PTX_MMA_K;

    const struct fragment a = fragment_of(PART_A, &m, m.a);
    const struct fragment b = fragment_of(PART_B, &m, m.b);
    const struct fragment c = fragment_of(PART_C, &m, m.c);
    const struct fragment d = fragment_of(PART_C, &m, m.d);

    gather_fragment(&x, &a, m.a, data, 0, arg);
    gather_fragment(&x, &b, m.b, data, a.words, arg);
    gather_fragment(&x, &c, m.c, data, a.words + b.words, arg);
    hed_ptx_mma_words(&m, &in, &out);
    if (m.k & HED_PTX_MMA_SPARSE)
        multiply_sparse(&x, &m, data, in - SPARSE_WORDS, arg);
    else
        multiply_dense(&x, &m);
    for (unsigned lane = 0; lane < HED_PTX_LANES; lane++) {
        const struct words w = lane_words(data, lane, in, arg);

        for (unsigned n = 0; w.first && n < d.count; n++) {
            const struct cell at = element_cell(&d, lane, n);

            put_element(w, n, d.bits, encode_number(m.d, x.c[at.row * m.n + at.column]));
        }
    }
}

/* ---- 8 by 8 matrices of 16 bits -------------------------------------------------------------- */

/* The row of matrix n, whose address a lane gave. */
static uint16_t *
row_of(void *const *data, unsigned n, unsigned row, uint64_t arg)
{
    const struct words w = lane_words(data, 8 * n + row, 0, arg);

    return w.first ? (uint16_t *)(uintptr_t)get_element(w, 0, 64) : NULL;
}

static struct cell
cell_of_8x8(unsigned lane, unsigned j, bool transposed)
{
    const struct cell at = {lane / 4, 2 * (lane % 4) + j};

    return transposed ? (struct cell){at.column, at.row} : at;
}

void
hed_ptx_ldmatrix(void *const data[HED_PTX_LANES], uint32_t mask, uint64_t arg)
{
    const unsigned count = arg & 7;

    (void)mask;
    for (unsigned lane = 0; lane < HED_PTX_LANES; lane++) {
        const struct words w = lane_words(data, lane, 2, arg);

        for (unsigned n = 0; w.first && n < count; n++) {
            uint32_t v = 0;

            for (unsigned j = 0; j < 2; j++) {
                const struct cell at = cell_of_8x8(lane, j, (arg & HED_PTX_MATRIX_TRANSPOSED) != 0);
                const uint16_t *row = row_of(data, n, at.row, arg);

                v |= (row ? (uint32_t)row[at.column] : 0) << 16 * j;
            }
            *word_at(w, n) = v;
        }
    }
}

void
hed_ptx_stmatrix(void *const data[HED_PTX_LANES], uint32_t mask, uint64_t arg)
{
    const unsigned count = arg & 7;

    (void)mask;
    for (unsigned lane = 0; lane < HED_PTX_LANES; lane++) {
        const struct words w = lane_words(data, lane, 2, arg);

        for (unsigned n = 0; w.first && n < 2 * count; n++) {
            const struct cell at = cell_of_8x8(lane, n % 2, (arg & HED_PTX_MATRIX_TRANSPOSED) != 0);
            uint16_t *row = row_of(data, n / 2, at.row, arg);

            if (row)
                row[at.column] = (uint16_t)get_element(w, n, 16);
        }
    }
}

void
hed_ptx_movmatrix(void *const data[HED_PTX_LANES], uint32_t mask, uint64_t arg)
{
    (void)mask;
    for (unsigned lane = 0; lane < HED_PTX_LANES; lane++) {
        const struct words w = lane_words(data, lane, 1, arg);

        for (unsigned j = 0; w.first && j < 2; j++) {
            const struct cell at = cell_of_8x8(lane, j, true);
            const struct words from = lane_words(data, 4 * at.row + at.column / 2, 0, arg);

            put_element(w, j, 16, from.first ? get_element(from, at.column % 2, 16) : 0);
        }
    }
}

/* ---- wmma and memory ------------------------------------------------------------------------- */

#define DISTANCE_MAX (UINT64_C(1) << 28) /* elements */

/* Moves one lane's fragment from or to memory. */
static void
move_wmma_lane(void *const *data, unsigned lane, uint64_t arg, bool is_load)
{
    const struct words head = lane_words(data, lane, 0, arg);
    const struct words body = lane_words(data, lane, 3, arg);
    struct hed_ptx_wmma w;

    memcpy(&w, &arg, sizeof(w));
    if (!head.first)
        return;

    const unsigned bits = hed_ptx_types[w.type].bits;
    const struct fragment f = {.rows = w.rows, .columns = w.columns, .bits = bits, .is_wmma = true};
    /* The whole matrix stays within reach of its address, which is in the address sandbox:
     * abi.h. */
    const uint64_t distance = hed_min(*word_at(head, 2), DISTANCE_MAX);

    for (unsigned n = 0; n < w.words * 32u / bits; n++) {
        const struct cell at = element_cell(&f, lane, n);
        const uint64_t bit =
            bits * (w.is_column ? at.column * distance + at.row : at.row * distance + at.column);
        unsigned char *p = (unsigned char *)(uintptr_t)(get_element(head, 0, 64) + bit / 8);
        uint64_t v = 0;

        if (bits < 8 && is_load) {
            put_element(body, n, bits, *p >> bit % 8 & ((1u << bits) - 1));
        } else if (is_load) {
            memcpy(&v, p, bits / 8);
            put_element(body, n, bits, v);
        } else {
            v = get_element(body, n, bits);
            memcpy(p, &v, bits / 8);
        }
    }
}

void
hed_ptx_wmma_load(void *const data[HED_PTX_LANES], uint32_t mask, uint64_t arg)
{
    (void)mask;
    for (unsigned lane = 0; lane < HED_PTX_LANES; lane++)
        move_wmma_lane(data, lane, arg, true);
}

void
hed_ptx_wmma_store(void *const data[HED_PTX_LANES], uint32_t mask, uint64_t arg)
{
    (void)mask;
    for (unsigned lane = 0; lane < HED_PTX_LANES; lane++)
        move_wmma_lane(data, lane, arg, false);
}
