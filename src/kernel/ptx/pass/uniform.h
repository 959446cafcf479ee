/* Which values are the same in all lanes, or differ from lane to lane by what is known beforehand.
 *
 * The lanes of a warp form rows: 32 threads of one row of the block, or two rows of 16, or four of
 * 8, as the block's width says. Within a row %tid.x grows by 1, and everything else that a thread
 * can ask about its position is the same.
 *
 *      UNIFORM     7 7 7 7 7 7 7 7 ...    one number for the running lanes
 *      ROWS        4 5 6 7 | 9 10 11 12   a number per row, plus lane-in-row * step; step may be 0
 *      OFFSETS     3 5 3 5 7 9 7 9 ...    a number, plus an offset that is known for each lane
 *      VARIES      anything
 *
 * All of this is said of the lanes that run: where lanes leave a loop one by one, the loop's
 * counter is still uniform among the lanes that stay. What they see behind the loop goes through a
 * phi there (ssa.h), and that varies.
 *
 * ROWS and OFFSETS are exact for every lane, running or not, modulo the width of the value. Sums
 * and products with constants keep them so; operations on bits, too, as long as they treat the bits
 * in which lanes differ alike (bits.c). Where a 32-bit number is widened, it may wrap around
 * between two lanes of a row; `wraps` names the value where that may have happened, and the code
 * asks there. OFFSETS never wrap around, and are for warps that are one row.
 */
#pragma once

#include "kernel/ptx/pass/flow.h"
#include "kernel/ptx/pass/local.h"
#include "kernel/ptx/pass/rows.h"
#include "kernel/ptx/pass/ssa.h"
#include "kernel/ptx/run/abi.h"

/* In the order in which a value gets worse. */
enum hed_uniform_kind { HED_UNKNOWN, HED_UNIFORM, HED_ROWS, HED_OFFSETS, HED_VARIES };

/* What each lane has more than the first. Equal ones are one. */
struct hed_offsets {
    int32_t lanes[HED_PTX_LANES];
    struct hed_offsets *next;
};

struct hed_uniform {
    uint8_t kind;     /* enum hed_uniform_kind */
    bool is_constant; /* UNIFORM: `constant` is its value */
    uint8_t below;    /* of an operand: all lanes' numbers are below 2^below (bounds.h); else 0 */
    uint8_t differ;   /* ROWS, OFFSETS: lanes differ in the lowest so many bits; 0: not known */
    uint8_t align;    /* the first lane's number is a multiple of 2^align */
    int64_t step;     /* of ROWS */
    const struct hed_offsets *offsets; /* of OFFSETS */
    uint64_t constant;
    uint32_t wraps; /* of ROWS: id of the value whose making may have wrapped around, or NONE */
    uint64_t same;  /* of VARIES: bits that are the same in all lanes nevertheless (bits.c) */
    int64_t wrap;   /* what lanes that wrapped around have more than the rest, in units of 2^32 */
};

/* How an instruction is carried out. */
enum hed_uniform_way {
    HED_ONCE,     /* once for the warp */
    HED_PER_ROW,  /* once for each row */
    HED_PER_LANE, /* for 32 lanes; the results may still be the same in all of them */
};

struct hed_uniforms {
    const struct hed_flow *f;
    const struct hed_ssa *ssa;
    struct hed_locals locals;
    enum hed_rows rows;
    unsigned width;             /* lanes in a row */
    uint32_t loop;              /* see hed_uniforms_init_in(); or NONE */
    struct hed_uniform *values; /* by id */
    bool *parts;                /* by block: at its end lanes may go different ways */
    bool *joins;                /* by block: lanes that parted may meet here */
    bool *partial;              /* by block: some lanes may be elsewhere, waiting to join */
    bool *leaves_singly;        /* by loop: lanes may leave it one by one */
    struct hed_flow *memory;    /* f, where offsets are kept */
    const uint8_t *bounds;      /* by value: bounds.h */
    bool of_block;              /* see hed_uniforms_init_block() */
};

/* HED_ENOMEM. The memory is the flow's. */
int hed_uniforms_init(struct hed_uniforms *u, struct hed_flow *f, const struct hed_ssa *ssa,
                      enum hed_rows rows);
/* The same for one loop, as if lanes had met again when they come to it: outside of it, phis are
 * taken for what they join. guess.h says when that holds. */
int hed_uniforms_init_in(struct hed_uniforms *u, struct hed_flow *f, const struct hed_ssa *ssa,
                         enum hed_rows rows, uint32_t loop);
/* The same for all threads of a block instead of the lanes of a warp: what may differ between its
 * warps varies. It tells nothing but UNIFORM and VARIES, and nothing of what memory holds. */
int hed_uniforms_init_block(struct hed_uniforms *u, struct hed_flow *f, const struct hed_ssa *ssa);
enum hed_uniform_way hed_uniform_way(const struct hed_uniforms *u, const struct hed_ptx_inst *i);

/* Do lanes leave a loop one by one along the edge from one block to another? */
bool hed_uniform_leaves_singly(const struct hed_uniforms *u, uint32_t from, uint32_t to);

/* The class of an operand of any kind. */
struct hed_uniform hed_uniform_operand(const struct hed_uniforms *u,
                                       const struct hed_ptx_operand *o);
/* The bytes that a lane accesses with ld, st, atom or red. */
uint32_t hed_uniform_bytes(const struct hed_ptx_inst *i);
/* A load or store of elements that lie next to each other? */
bool hed_uniform_moves_row(const struct hed_uniforms *u, const struct hed_ptx_inst *i);
