/* What the passes find out about a kernel, for people: `heddle cpu explain`.
 *
 *   flow -> ssa -> uniform -> solo, live      as for the mask shape (lower/mask)
 *        -> a struct hed_explain_line for each instruction, in the order in which a warp runs them
 */
#pragma once

#include "kernel/ptx/pass/flow.h"
#include "kernel/ptx/pass/live.h"
#include "kernel/ptx/pass/rows.h"
#include "kernel/ptx/pass/ssa.h"
#include "kernel/ptx/pass/uniform.h"

struct hed_ptx_unit;

/* How an instruction accesses memory. */
enum hed_access {
    HED_ACCESS_NONE,
    HED_ACCESS_ONE,      /* one address for all lanes, or one for each row */
    HED_ACCESS_ROW,      /* consecutive elements: vectors, if all lanes run */
    HED_ACCESS_STEPS,    /* a fixed distance from lane to lane */
    HED_ACCESS_OFFSETS,  /* another one for each lane, but known: vectors, if all lanes run */
    HED_ACCESS_ANYWHERE, /* a gather or a scatter: an address for each lane */
    HED_ACCESS_COUNT
};

struct hed_explain_line {
    const struct hed_ptx_inst *inst; /* its registers are values: %r4.2 */
    uint32_t line;                   /* in the PTX text */
    uint32_t block, loop;            /* loop: the innermost, or HED_FLOW_NONE */
    enum hed_uniform_way way;
    const struct hed_uniform *value; /* the class of the first result, or NULL */
    enum hed_access access;
    uint32_t bytes;      /* that a lane accesses */
    int64_t step;        /* bytes from lane to lane, with ROW and STEPS */
    const char *cause;   /* of ANYWHERE: why the address varies */
    uint32_t cause_line; /* where that happens */
    bool parts;          /* lanes may go different ways */
    bool is_barrier;     /* of the block */
    bool is_split;       /* a barrier that some lanes do not reach: no cut */
    uint32_t live;       /* values that are needed behind the barrier */
};

/* Operations that a warp takes, estimated. */
struct hed_explain_cost {
    uint32_t numbers; /* on one number */
    uint32_t vectors; /* on 16 bytes */
    uint32_t singles; /* accesses for one lane each */
    uint32_t slow;    /* divisions, roots and approximations, among the others */
};

struct hed_explain_loop {
    uint32_t first, last;         /* lines */
    uint32_t parent;              /* or HED_FLOW_NONE */
    bool is_solo;                 /* runs lane by lane; the cost is for one lane then */
    bool leaves_singly;           /* lanes may leave it one by one */
    struct hed_explain_cost cost; /* of one round, without the loops inside */
};

struct hed_explain {
    struct hed_flow flow;
    struct hed_ssa ssa;
    struct hed_uniforms uniforms;
    struct hed_live live;
    const char *why; /* why a warp cannot run under masks; NULL if it can. There may be no lines */
    bool is_baseline_only; /* for that reason it is not compiled at all */
    struct hed_explain_line *lines;
    uint32_t nlines;
    struct hed_explain_loop *loops;
    uint32_t nloops;
    struct hed_explain_cost cost;        /* outside of loops */
    uint32_t ways[HED_PER_LANE + 1];     /* instructions by enum hed_uniform_way */
    uint32_t accesses[HED_ACCESS_COUNT]; /* instructions */
    uint32_t barriers, splits, partings; /* instructions */
};

/* HED_ENOMEM. Call fini in any case. */
int hed_explain_init(struct hed_explain *e, const struct hed_ptx_unit *unit,
                     const struct hed_ptx_func *kernel, enum hed_rows rows);
void hed_explain_fini(struct hed_explain *e);
