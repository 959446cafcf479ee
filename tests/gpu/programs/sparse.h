/* Sparse products of matrices: fragments and metadata as the PTX manual draws them, and the product
 * by plain loops. For sparse.cu and for the tests of our tiers. */
#pragma once

#include <stdint.h>
#include <string.h>

enum sparse_kind {
    SPARSE_F16,
    SPARSE_BF16,
    SPARSE_TF32,
    SPARSE_S8,
    SPARSE_U8,
    SPARSE_S4,
    SPARSE_U4,
    SPARSE_E4M3
};

struct sparse_case {
    const char *name; /* of the instruction */
    enum sparse_kind kind;
    unsigned k, a, b, selectors; /* registers of a and b; values of the selector */
    unsigned halves;             /* the results are halves */
};

#define SPARSE_MMA(shape, types) "mma.sp.sync.aligned." shape ".row.col." types
#define SPARSE_ORDERED(shape, types) \
    "mma.sp::ordered_metadata.sync.aligned." shape ".row.col." types

static const struct sparse_case sparse_cases[] = {
    {SPARSE_MMA("m16n8k16", "f32.f16.f16.f32"), SPARSE_F16, 16, 2, 2, 4, 0},
    {SPARSE_MMA("m16n8k32", "f32.f16.f16.f32"), SPARSE_F16, 32, 4, 4, 2, 0},
    {SPARSE_MMA("m16n8k32", "f16.f16.f16.f16"), SPARSE_F16, 32, 4, 4, 2, 1},
    {SPARSE_ORDERED("m16n8k32", "f32.f16.f16.f32"), SPARSE_F16, 32, 4, 4, 2, 0},
    {SPARSE_MMA("m16n8k16", "f32.bf16.bf16.f32"), SPARSE_BF16, 16, 2, 2, 4, 0},
    {SPARSE_MMA("m16n8k32", "f32.bf16.bf16.f32"), SPARSE_BF16, 32, 4, 4, 2, 0},
    {SPARSE_MMA("m16n8k8", "f32.tf32.tf32.f32"), SPARSE_TF32, 8, 2, 2, 4, 0},
    {SPARSE_MMA("m16n8k16", "f32.tf32.tf32.f32"), SPARSE_TF32, 16, 4, 4, 2, 0},
    {SPARSE_MMA("m16n8k32", "s32.s8.s8.s32"), SPARSE_S8, 32, 2, 2, 2, 0},
    {SPARSE_MMA("m16n8k64", "s32.s8.s8.s32"), SPARSE_S8, 64, 4, 4, 1, 0},
    {SPARSE_MMA("m16n8k64", "s32.u8.u8.s32"), SPARSE_U8, 64, 4, 4, 1, 0},
    {SPARSE_MMA("m16n8k64", "s32.s4.s4.s32"), SPARSE_S4, 64, 2, 2, 2, 0},
    {SPARSE_MMA("m16n8k128", "s32.s4.s4.s32"), SPARSE_S4, 128, 4, 4, 1, 0},
    {SPARSE_MMA("m16n8k128", "s32.u4.u4.s32"), SPARSE_U4, 128, 4, 4, 1, 0},
    {SPARSE_MMA("m16n8k64", "f32.e4m3.e4m3.f32"), SPARSE_E4M3, 64, 4, 4, 1, 0},
};

#define SPARSE_CASES (sizeof sparse_cases / sizeof sparse_cases[0])

/* The words of a lane: a, b, metadata, results. */
struct sparse_lane {
    uint32_t a[4], b[4], metadata, unused[3], d[4];
};

static unsigned
sparse_bits(enum sparse_kind kind)
{
    return kind == SPARSE_TF32   ? 32
           : kind <= SPARSE_BF16 ? 16
           : kind == SPARSE_S4   ? 4
           : kind == SPARSE_U4   ? 4
                                 : 8;
}

/* A small number in the format of a kind. */
static uint32_t
sparse_encode(enum sparse_kind kind, int v)
{
    static const uint16_t halves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700};
    static const uint8_t bytes[] = {0, 0x38, 0x40, 0x44, 0x48, 0x4a, 0x4c, 0x4e};
    const unsigned size = (unsigned)(v < 0 ? -v : v) & 7;
    const float f = (float)v;
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    switch (kind) {
    case SPARSE_F16:
        return halves[size] | (v < 0 ? 0x8000u : 0);
    case SPARSE_BF16:
        return bits >> 16;
    case SPARSE_TF32:
        return bits;
    case SPARSE_E4M3:
        return bytes[size] | (v < 0 ? 0x80u : 0);
    case SPARSE_S4:
    case SPARSE_U4:
        return (uint32_t)v & 15;
    default:
        return (uint32_t)v & 255;
    }
}

static uint32_t
sparse_random(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed >> 7;
}

static int
sparse_number(const struct sparse_case *c, uint32_t *seed)
{
    const int v = (int)(sparse_random(seed) % 8);

    return c->kind == SPARSE_U8 || c->kind == SPARSE_U4 ? v : v - 4;
}

/* Four bits for a chunk of columns, and which of its columns are there. */
static unsigned
sparse_choose(const struct sparse_case *c, uint32_t *seed, unsigned columns[4], unsigned *count)
{
    static const uint8_t pairs[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
    const unsigned bits = sparse_bits(c->kind);
    const uint8_t *p = pairs[sparse_random(seed) % 6];

    if (bits == 32) {
        columns[0] = sparse_random(seed) & 1;
        *count = 1;
        return columns[0] ? 14 : 4;
    }
    *count = bits == 4 ? 4 : 2;
    for (unsigned i = 0; i < *count; i++)
        columns[i] = bits == 4 ? 2u * p[i / 2] + i % 2 : p[i];
    return p[0] | (unsigned)p[1] << 2;
}

/* Where the metadata of a chunk lies. */
static void
sparse_put_metadata(const struct sparse_case *c, struct sparse_lane *lanes, unsigned selector,
                    unsigned row, unsigned chunk, unsigned bits)
{
    unsigned lane = row % 8 * 4, shift;

    if (sparse_bits(c->kind) >= 16) { /* both rows in one word */
        lane += c->selectors == 4 ? selector : 2 * selector + chunk / 4;
        shift = chunk % 4 * 4 + (row >= 8 ? 16 : 0);
    } else { /* a word for each row */
        lane += (c->selectors == 2 ? 2 * selector : chunk / 8 * 2) + (row >= 8);
        shift = chunk % 8 * 4;
    }
    lanes[lane].metadata = (lanes[lane].metadata & ~(15u << shift)) | bits << shift;
}

static void
sparse_put(uint32_t *words, unsigned n, unsigned bits, uint32_t v)
{
    words[n * bits / 32] |= v << n * bits % 32;
}

/* Fills the words of all lanes, and says what the product is. */
static void
sparse_fill(const struct sparse_case *c, unsigned selector, uint32_t seed,
            struct sparse_lane lanes[32], int product[16][8])
{
    const unsigned bits = sparse_bits(c->kind), each = 32 / bits;
    const unsigned chunk_columns = bits == 4 ? 8 : bits == 32 ? 2 : 4;
    int b[128][8];

    memset(lanes, 0, 32 * sizeof *lanes);
    memset(product, 0, 16 * sizeof *product);
    for (unsigned i = 0; i < 32; i++)
        lanes[i].metadata = sparse_random(&seed) * 2654435761u;
    for (unsigned k = 0; k < c->k; k++)
        for (unsigned n = 0; n < 8; n++) {
            struct sparse_lane *l = &lanes[4 * n + k % (4 * each) / each];

            b[k][n] = sparse_number(c, &seed);
            sparse_put(l->b + k / (4 * each), k % each, bits, sparse_encode(c->kind, b[k][n]));
        }
    for (unsigned row = 0; row < 16; row++)
        for (unsigned chunk = 0, at = 0; chunk < c->k / chunk_columns; chunk++) {
            unsigned columns[4], count;

            sparse_put_metadata(c, lanes, selector, row, chunk,
                                sparse_choose(c, &seed, columns, &count));
            for (unsigned i = 0; i < count; i++, at++) {
                struct sparse_lane *l = &lanes[row % 8 * 4 + at % (4 * each) / each];
                const int v = sparse_number(c, &seed);

                sparse_put(l->a + (row >= 8) + at / (4 * each) * 2, at % each, bits,
                           sparse_encode(c->kind, v));
                for (unsigned n = 0; n < 8; n++)
                    product[row][n] += v * b[chunk * chunk_columns + columns[i]][n];
            }
        }
}

/* A result as a lane has it. */
static int
sparse_result(const struct sparse_case *c, const struct sparse_lane lanes[32], unsigned row,
              unsigned column)
{
    const struct sparse_lane *l = &lanes[row % 8 * 4 + column / 2];
    const unsigned n = (row >= 8 ? 2 : 0) + column % 2;
    const uint32_t word = l->d[c->halves ? n / 2 : n], half = word >> (n % 2 ? 16 : 0) & 0xffff;
    float f;

    if (c->halves) {
        const int size = (half & 0x3ff) | 0x400, exponent = (int)(half >> 10 & 31) - 25;
        const int v = (half & 0x7fff) == 0 ? 0
                      : exponent < 0       ? size >> -exponent
                                           : size << exponent;

        return half & 0x8000 ? -v : v;
    }
    if (c->kind >= SPARSE_S8 && c->kind <= SPARSE_U4)
        return (int)word;
    memcpy(&f, &word, sizeof f);
    return (int)f;
}

/* How many results differ. */
static unsigned
sparse_count_wrong(const struct sparse_case *c, const struct sparse_lane lanes[32],
                   int product[16][8])
{
    unsigned wrong = 0;

    for (unsigned row = 0; row < 16; row++)
        for (unsigned column = 0; column < 8; column++)
            wrong += sparse_result(c, lanes, row, column) != product[row][column];
    return wrong;
}
