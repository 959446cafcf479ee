/* The control flow of a function: blocks, dominators, loops, and the order in which a warp runs the
 * blocks.
 *
 *      0: entry ──────────┐            The number of a block is its position in the order. An edge
 *      1: loop header <─┐ │            to a higher number goes forward, any other edge closes a
 *      2:   body        │ │            loop. All blocks of a loop follow each other. So a warp
 *      3:   latch ──────┘ │            whose lanes part can run the blocks in the order, each for
 *      4: join <──────────┘            the lanes that want it, and lanes meet again at joins.
 *
 * An edge to a block that does nothing but return is no edge: `ends` says which lanes leave. That
 * keeps "if (i >= n) return;" from being a place where lanes part.
 *
 * Invariants:
 * 1. Every block is reached from block 0. Block 0 has no predecessor.
 * 2. Every loop has one header, which dominates its blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "kernel/ptx/ptx.h"

struct hed_offsets;

#define HED_FLOW_NONE UINT32_MAX

/* What the running lanes do at the end of a block. The guard is that of `last`. */
enum hed_flow_end {
    HED_FLOW_GOES,          /* all go to next[0] */
    HED_FLOW_BRANCHES,      /* to next[0] where the guard holds, else to next[1] */
    HED_FLOW_LEAVES,        /* all end */
    HED_FLOW_LEAVES_IF,     /* those end for which the guard holds; the others go to next[0] */
    HED_FLOW_LEAVES_UNLESS, /* those end for which it does not hold; the others go to next[0] */
};

/* In static single assignment form (ssa.c): the value that a register has at the beginning of a
 * block, by the edge that the lane came along. */
struct hed_flow_phi {
    struct hed_flow_phi *next;
    const struct hed_ptx_reg *to;
    const struct hed_ptx_reg **from; /* by index in `before`; NULL: a value that is never read */
    uint32_t origin;                 /* id of the register in the function's text */
};

struct hed_flow_block {
    struct hed_ptx_inst **insts; /* without the instruction that ends the block */
    uint32_t ninsts;
    uint8_t end;                     /* enum hed_flow_end */
    const struct hed_ptx_inst *last; /* that ends the block; NULL if it simply goes on */
    uint32_t next[2], nnext;         /* successors */
    uint32_t *before, nbefore;       /* predecessors, in rising order */
    uint32_t dominator;              /* the nearest one; NONE for block 0 */
    uint32_t after;                  /* the nearest block that all paths to the end pass; NONE */
    uint32_t loop;                   /* the innermost loop, or NONE */
    struct hed_flow_phi *phis;       /* set by ssa.c */
};

struct hed_flow_loop {
    uint32_t header, last; /* blocks header..last are the loop */
    uint32_t parent;       /* the loop around it, or NONE */
    uint32_t nlatches;     /* edges back to the header */
};

struct hed_flow {
    struct hed_arena arena;
    const struct hed_ptx_func *func;
    struct hed_flow_block *blocks;
    uint32_t nblocks;
    struct hed_flow_loop *loops; /* outer ones before inner ones */
    uint32_t nloops;
    uint32_t *of_label; /* by label id: block, or NONE if nothing goes there */
    /* Set by ssa.c: the registers are values, each with one definition. */
    const struct hed_ptx_reg **values; /* by id */
    uint32_t nvalues;
    struct hed_offsets *offsets; /* of values in analyses of this flow (uniform.h), each once */
};

/* HED_ENOTSUP, with the reason, if the flow has no such order (a loop with two entries), or jumps
 * through a table; HED_ENOMEM. Call fini in any case. */
int hed_flow_init(struct hed_flow *f, const struct hed_ptx_func *func, const char **why);
void hed_flow_fini(struct hed_flow *f);

/* Zeroed memory that lives as long as the flow, or NULL. */
void *hed_flow_alloc(struct hed_flow *f, size_t count, size_t size);

/* Is the block in the loop? Everything is in NONE. */
bool hed_flow_in_loop(const struct hed_flow *f, uint32_t block, uint32_t loop);
/* Which of the edges that come in at `to` comes from `from`: an index into before and phi->from. */
uint32_t hed_flow_edge(const struct hed_flow *f, uint32_t from, uint32_t to);
/* Does a dominate b? Every block dominates itself. */
bool hed_flow_dominates(const struct hed_flow *f, uint32_t a, uint32_t b);

/* Calls fn for each register that an instruction reads (its guard first) or writes, through the
 * pointer in the operand, so that fn may replace it. A guarded instruction may leave what it writes
 * as it is. */
typedef void (*hed_flow_reg_fn)(void *arg, const struct hed_ptx_reg **reg);
void hed_flow_each_read(struct hed_ptx_inst *i, hed_flow_reg_fn fn, void *arg);
void hed_flow_each_write(struct hed_ptx_inst *i, hed_flow_reg_fn fn, void *arg);
/* Such a function: sets an element of an array of bool, by the id of the register or value. */
void hed_flow_note_value(void *set, const struct hed_ptx_reg **reg);
