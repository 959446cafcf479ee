/* Functions that compiled code calls for what threads do in groups: barrier objects (mbarrier.c)
 * and matrices (matrix.c). Functions of type hed_rt_together get each lane's data as 32-bit words:
 * the operands and, after them, room for the results. HED_RT_STRIDED in arg says how the words lie.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/ptx/run/abi.h"
#include "kernel/ptx/words.h"

struct hed_ptx_form;

/* ---- mbarrier.c ------------------------------------------------------------------------------ */

void hed_ptx_mbarrier_init(uint64_t *b, uint32_t count);
/* Adds tx to the expected bytes, then `drop` threads leave for good, then `count` threads arrive.
 * Returns the state before. */
uint64_t hed_ptx_mbarrier_arrive(uint64_t *b, uint32_t count, int32_t tx, uint32_t drop);
/* Is the phase of `state` over? Only its top bit counts, so a parity can be shifted there. */
uint32_t hed_ptx_mbarrier_test(const uint64_t *b, uint64_t state);
/* The number of arrivals that a state was still waiting for. */
uint32_t hed_ptx_mbarrier_pending(uint64_t state);

/* ---- matrix.c: of type hed_rt_together; matrix_shape.c --------------------------------------- */

/* A multiplication, described in the number that the function gets. */
struct hed_ptx_mma {
    uint8_t m, n;
    uint16_t k;
    uint8_t d, a, b, c; /* enum hed_ptx_type */
};

/* The highest bits of k are flags. */
#define HED_PTX_MMA_K 0x0fffu
#define HED_PTX_MMA_WMMA 0x8000u     /* fragments lie as in wmma */
#define HED_PTX_MMA_SATURATE 0x4000u /* integers saturate */
#define HED_PTX_MMA_AND 0x2000u      /* of single bits: and, not xor */
#define HED_PTX_MMA_SPARSE 0x1000u   /* a has half of its elements, and metadata */

/* Elements of the largest matrices, mma.m16n8k256 on single bits and wmma, and the largest k. */
#define HED_PTX_MMA_A_MAX (16 * 256)
#define HED_PTX_MMA_B_MAX (256 * 8)
#define HED_PTX_MMA_C_MAX (16 * 16)
#define HED_PTX_MMA_DEPTH_MAX 256

/* May the elements of a matrix have this type? Is it one of integers? */
bool hed_ptx_is_matrix_type(enum hed_ptx_type t);
bool hed_ptx_is_integer_element(enum hed_ptx_type t);
/* The parser takes any numbers for a shape. All elements of those that this allows are inside. */
bool hed_ptx_is_product_shape(const struct hed_ptx_mma *m);
/* Can a matrix of this shape be divided among the lanes, as wmma does? */
bool hed_ptx_is_fragment_shape(unsigned rows, unsigned columns);
/* Describes mma and wmma.mma of this form. Returns why they cannot be done, or NULL. */
const char *hed_ptx_mma_describe(const struct hed_ptx_form *f, struct hed_ptx_mma *m);
uint64_t hed_ptx_mma_pack(const struct hed_ptx_mma *m);
/* The words of a lane that hed_ptx_mma() takes and gives. Whoever calls it must have as many. */
void hed_ptx_mma_words(const struct hed_ptx_mma *m, unsigned *in, unsigned *out);

/* sparse.c: half of the elements of a row are there. How many columns have metadata of four bits,
 * how many of them are there, and the number of such chunks in a row. */
struct hed_ptx_chunks {
    unsigned columns, there, count;
};
/* count is 0 if there are no sparse matrices of this type and depth. */
struct hed_ptx_chunks hed_ptx_mma_chunks(const struct hed_ptx_mma *m);
/* The columns that the elements of a row have. metadata: a word from each lane. */
void hed_ptx_mma_columns(const struct hed_ptx_mma *m, const uint32_t metadata[HED_PTX_LANES],
                         unsigned selector, unsigned row, uint16_t *columns);

/* Operands: the words of a, b and c; of a sparse product also the metadata and the selector.
 * Results: those of d. */
void hed_ptx_mma(void *const data[HED_PTX_LANES], uint32_t mask, uint64_t arg);
/* product.c: the same for the usual shapes and types, faster. Returns false for others, and if some
 * lanes take no part. */
bool hed_ptx_mma_usual(void *const data[HED_PTX_LANES], const struct hed_ptx_mma *m,
                       bool is_strided);
/* Operands: an address (two words). Results: one word per matrix. arg is the number of matrices,
 * plus this if they are transposed. */
#define HED_PTX_MATRIX_TRANSPOSED 256u
void hed_ptx_ldmatrix(void *const data[HED_PTX_LANES], uint32_t mask, uint64_t arg);
/* Operands: an address (two words), one word per matrix. */
void hed_ptx_stmatrix(void *const data[HED_PTX_LANES], uint32_t mask, uint64_t arg);
/* Operands: one word. Results: one word. */
void hed_ptx_movmatrix(void *const data[HED_PTX_LANES], uint32_t mask, uint64_t arg);

/* A fragment of wmma in memory: rows and columns of the matrix, its type, and words per lane. */
struct hed_ptx_wmma {
    uint8_t rows, columns;
    uint8_t type;      /* enum hed_ptx_type */
    uint8_t words;     /* of 32 bits, per lane */
    uint8_t is_column; /* columns are consecutive in memory */
};

uint64_t hed_ptx_wmma_pack(const struct hed_ptx_wmma *w);

/* Operands: an address (two words), the distance of rows (or columns) in elements. Results: the
 * fragment. */
void hed_ptx_wmma_load(void *const data[HED_PTX_LANES], uint32_t mask, uint64_t arg);
/* Operands: an address, a distance, the fragment. */
void hed_ptx_wmma_store(void *const data[HED_PTX_LANES], uint32_t mask, uint64_t arg);
