/* Sparse matrices: which columns the elements of a have. See group.h.
 *
 * Of each chunk of columns, half is there, and four bits say which: two numbers from 0 to 3, the
 * lower one first.
 *
 *   f16, bf16, 8 bits   2 of 4 columns: their numbers
 *   tf32                1 of 2 columns: 0b0100 is the first, 0b1110 the second
 *   4 bits              4 of 8 columns: the numbers of two pairs
 *
 * The metadata of the rows g and g + 8 is in the lanes 4 g to 4 g + 3. If fewer than four of them
 * are needed, the selector says which: one of four, or one of the two pairs.
 *
 *   f16, bf16, tf32     a lane has 4 chunks of both rows: bits 0..15 are of row g, 16..31 of g + 8
 *   8 and 4 bits        a lane has 8 chunks of one row: row g, row g + 8, and again
 */
#include "kernel/ptx/ptx.h"
#include "kernel/ptx/run/group.h"

#define CHUNKS_MAX 16u /* of a row: four lanes have no more metadata */

static bool
is_narrow(const struct hed_ptx_mma *m)
{
    return hed_ptx_types[m->a].bits <= 8;
}

struct hed_ptx_chunks
hed_ptx_mma_chunks(const struct hed_ptx_mma *m)
{
    const unsigned bits = hed_ptx_types[m->a].bits, k = m->k & HED_PTX_MMA_K;
    const unsigned columns = bits == 4 ? 8 : bits >= 32 ? 2 : 4;
    const unsigned least = is_narrow(m) ? 8 : 4;
    struct hed_ptx_chunks c = {columns, columns / 2, k / columns};

    if (bits < 4 || bits > 32 || hed_ptx_types[m->b].bits != bits || k % columns || m->m != 16 ||
        m->n != 8 || (c.count != least && c.count != 2 * least) || c.count > CHUNKS_MAX)
        c.count = 0;
    return c;
}

/* The four bits of a chunk. */
static unsigned
chunk_bits(const struct hed_ptx_mma *m, const uint32_t *metadata, unsigned selector, unsigned count,
           unsigned row, unsigned chunk)
{
    const unsigned group = row % 8, lower = row / 8;
    unsigned place, shift;

    if (is_narrow(m)) {
        place = (count > 8 ? 0 : 2 * selector) + 2 * (chunk / 8) + lower;
        shift = 4 * (chunk % 8);
    } else {
        place = (count > 4 ? 2 * selector : selector) + chunk / 4;
        shift = 16 * lower + 4 * (chunk % 4);
    }
    return metadata[4 * group + place % 4] >> shift & 15;
}

void
hed_ptx_mma_columns(const struct hed_ptx_mma *m, const uint32_t metadata[HED_PTX_LANES],
                    unsigned selector, unsigned row, uint16_t *columns)
{
    const struct hed_ptx_chunks c = hed_ptx_mma_chunks(m);

    for (unsigned chunk = 0; chunk < c.count; chunk++) {
        const unsigned bits = chunk_bits(m, metadata, selector, c.count, row, chunk);

        for (unsigned i = 0; i < c.there; i++) {
            /* The first half of what is there has the lower number. */
            const unsigned nth = bits >> (2 * i >= c.there ? 2 : 0) & 3;
            const unsigned column =
                c.there == 1 ? bits >> 1 & 1 : nth * c.there / 2 + i % (c.there / 2);

            *columns++ = (uint16_t)(c.columns * chunk + column);
        }
    }
}
