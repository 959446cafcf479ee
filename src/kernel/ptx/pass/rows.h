/* How a launch lays the threads of a block out in warps. Part of a compiled kernel's key: the code
 * knows it (uniform.h). */
#pragma once

#include <stdint.h>

enum hed_rows {
    HED_ROWS_ANY,  /* nothing is known */
    HED_ROWS_FLAT, /* rows of 32: the block has one dimension */
    HED_ROWS_32,   /* rows of 32: ntid.x is a multiple of 32 */
    HED_ROWS_16,   /* ntid.x is 16 */
    HED_ROWS_8,    /* ntid.x is 8 */
    HED_ROWS_ONE,  /* the block has one thread: all values are the same in "all" lanes */
    HED_ROWS_COUNT
};

/* The rows of a block with these threads. */
enum hed_rows hed_rows_of(const uint32_t ntid[3]);
unsigned hed_rows_width(enum hed_rows rows); /* 32, 16 or 8 */
