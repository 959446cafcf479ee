/* What the files of the mask shape share.
 *
 *   analyse.c what the passes of ptx/pass/ find out
 *   mask.c    the body: blocks in their order, instructions, guards
 *   edge.c    from block to block: masks, phis
 *   value.c   the values of registers: one number, one per row, or one per lane
 *   compare.c comparisons that are prefixes of the lanes
 *   late.c    the NaNs of f64, chosen late
 *   access.c  loads and stores by the class of their address
 *   offsets.c those whose lanes differ by what is known
 *   local.c   variables in local memory
 *   each.c    short code for each lane, and for all lanes at once
 *   region.c  kernels that are cut at barriers
 *   tile.c    tiles of sums, a register at a time
 *   solo.c    loops that run lane by lane
 *   guess.c   loops that are made twice
 *   run.c     the loops over blocks and warps
 *
 * Its state is struct warp (lower/warp/warp.h) without a machine, so that operations among lanes
 * are the same code in both shapes.
 */
#pragma once

#include "kernel/ptx/lower/warp/warp.h"
#include "kernel/ptx/pass/flow.h"
#include "kernel/ptx/pass/guess.h"
#include "kernel/ptx/pass/live.h"
#include "kernel/ptx/pass/masks.h"
#include "kernel/ptx/pass/nan.h"
#include "kernel/ptx/pass/solo.h"
#include "kernel/ptx/pass/ssa.h"
#include "kernel/ptx/pass/tiles.h"
#include "kernel/ptx/pass/uniform.h"

#define HED_MASK_ROWS_MAX 4

/* What the code keeps of a value. All are slots: LLVM turns them into values of its own. */
struct mask_value {
    LLVMValueRef slots[HED_MASK_ROWS_MAX]; /* one, or one per row; NULL until it is needed */
    LLVMValueRef constant;                 /* its only value, of one lane; or NULL */
    LLVMValueRef bits;    /* i32 slot: of a predicate that is kept as bits; or NULL */
    LLVMValueRef wrapped; /* i32: lanes that wrapped around when this was widened; or NULL */
};

struct mask_solo;

#define MASK_LATE_MAX 32

/* Instructions whose results may be any NaN until they are tested: late.c. */
struct mask_late {
    struct hed_ptx_inst *insts[MASK_LATE_MAX];
    uint32_t ninsts;
    bool *pending;     /* by value: made by one of insts */
    bool is_repeating; /* insts are being made for one lane, with the right NaNs */
    LLVMValueRef *own; /* by value, then: of that lane */
};

struct mask {
    struct hed_flow flow;
    struct hed_ssa ssa;
    struct hed_uniforms uniforms;
    struct hed_masks masks;
    bool *loose, *stored;       /* by value: pass/nan.h */
    bool *runs_solo;            /* by loop: pass/solo.h */
    struct hed_guess **guesses; /* by loop: pass/guess.h */
    struct hed_tiles tiles;
    struct mask_late late;
    struct mask_value *values; /* by id */
    LLVMBasicBlockRef *begins; /* by block: its first instruction */
    LLVMBasicBlockRef *gates;  /* by block: runs it if lanes wait there, else goes on */
    LLVMValueRef *waiting;     /* by block: i32 slot, the lanes that wait to enter */
    LLVMBasicBlockRef end;     /* no lane is left */
    uint32_t block, index;     /* the block and its instruction that are being made */
    enum hed_uniform_way way;  /* of the instruction that is being made */
    unsigned row;              /* with HED_PER_ROW */
    LLVMValueRef guard;        /* i1, one lane: a guard that is the same for all; or NULL */
    LLVMBasicBlockRef after;   /* where code goes on behind the instruction with that guard */
    /* region.c */
    bool is_cut; /* the kernel returns at barriers */
    struct hed_live live;
    struct hed_uniforms of_block; /* the same in all warps of the block, too */
    bool *again;                  /* by value: made again behind a barrier, rather than kept */
    LLVMValueRef resume;          /* the switch at the kernel's beginning */
    LLVMValueRef at;              /* i32: where this call goes on; 0 at the beginning */
    LLVMValueRef in;  /* ptr: what all warps brought to the last barrier; 64-bit words */
    LLVMValueRef out; /* ptr: what they bring to the next; the first word is where they go on */
    struct mask_solo *solo; /* solo.c: the loop whose code is being made; or NULL */
    uint32_t variables;     /* bytes of variables at the beginning of the frame */
};

static inline struct mask *
hed_mask_state(const struct hed_lower *l)
{
    return hed_lower_warp_state(l)->mask;
}

/* value.c */
LLVMValueRef hed_mask_read(struct hed_lower *l, const struct hed_ptx_reg *r);
bool hed_mask_takes_any_nan(struct hed_lower *l, const struct hed_ptx_reg *r);
LLVMValueRef hed_mask_hide(struct hed_lower *l, const struct hed_ptx_reg *to, LLVMValueRef v);
/* The GPU's NaN for any other, if `from` is loose and `to` is not; to may be NULL. */
LLVMValueRef hed_mask_settle(struct hed_lower *l, const struct hed_ptx_reg *from,
                             const struct hed_ptx_reg *to, LLVMValueRef v);
/* i1: is one of 32 floats or doubles NaN? */
LLVMValueRef hed_mask_any_nan(struct hed_lower *l, LLVMValueRef f);
void hed_mask_write(struct hed_lower *l, const struct hed_ptx_reg *r, LLVMValueRef v);
/* A value as 32 lanes, whatever its class and its NaNs. */
LLVMValueRef hed_mask_lanes(struct hed_lower *l, const struct hed_ptx_reg *r);
/* The number of a uniform value, or of a row. */
LLVMValueRef hed_mask_number(struct hed_lower *l, const struct hed_ptx_reg *r, unsigned row);
/* Stores what another value holds; plain copies of classes that fit. */
void hed_mask_copy(struct hed_lower *l, const struct hed_ptx_reg *to,
                   const struct hed_ptx_reg *from);
/* What the lanes of a value of rows or offsets have more than the first of their row: 32 lanes. */
LLVMValueRef hed_mask_offsets(struct hed_lower *l, LLVMTypeRef t, const struct hed_uniform *c);
unsigned hed_mask_rows(const struct hed_lower *l, const struct hed_ptx_reg *r);
LLVMValueRef hed_mask_slot(struct hed_lower *l, const struct hed_ptx_reg *r, unsigned row);
/* After an instruction that widened a number: notes the lanes that wrapped around. */
void hed_mask_note_wraps(struct hed_lower *l, const struct hed_ptx_inst *i);
LLVMValueRef hed_mask_tid(struct hed_lower *l, unsigned dimension);
LLVMValueRef hed_mask_lane(struct hed_lower *l);

/* Does the last lane of a row wrap around? `first` is the row's number, i32; span is the last
 * lane's distance from it. i1. */
LLVMValueRef hed_mask_row_wraps(struct hed_lower *l, LLVMValueRef first, int64_t span,
                                bool is_signed);
/* A predicate as bits: i32. */
LLVMValueRef hed_mask_bits(struct hed_lower *l, const struct hed_ptx_reg *r);

/* compare.c: makes a setp if it can be done with numbers; else returns false. */
bool hed_mask_compare(struct hed_lower *l, const struct hed_ptx_inst *i);

/* each.c */
void hed_mask_each_short(struct hed_lower *l, hed_lower_each fn, void *arg, LLVMValueRef *args,
                         unsigned nargs, const LLVMTypeRef *types, LLVMValueRef *results,
                         unsigned nresults);
bool hed_mask_once(struct hed_lower *l, hed_lower_each fn, void *arg, LLVMValueRef *args,
                   const struct hed_lower_place *at, const struct hed_ptx_operand *result,
                   enum hed_ptx_oper op, bool is_signed);

/* late.c */
/* Before instruction i is made: takes it up if its NaNs can wait, and chooses those of earlier
 * instructions if it sees them. */
void hed_mask_note_late(struct hed_lower *l, struct hed_ptx_inst *i);
/* Chooses the NaNs of all that is pending. */
void hed_mask_settle_late(struct hed_lower *l);

/* tile.c */
/* Has the processor so small registers that tiles are made piece by piece? */
bool hed_mask_has_pieces(const struct hed_lower *l);
/* Makes the tile that begins with the first of n instructions. Returns how many of them it has; 0:
 * none begins there, or it is to be made like other instructions. */
uint32_t hed_mask_make_tile(struct hed_lower *l, struct hed_ptx_inst *const *insts, uint32_t n);

/* edge.c */
void hed_mask_begin_block(struct hed_lower *l, uint32_t b);
void hed_mask_end_block(struct hed_lower *l, uint32_t b);
/* Lanes end where they are: those of `gone`, i32. Ends the block if none is left. */
void hed_mask_leave(struct hed_lower *l, LLVMValueRef gone);
int hed_mask_make_gates(struct hed_lower *l);
/* New gates for the blocks of a loop. */
void hed_mask_make_loop_gates(struct hed_lower *l, uint32_t loop);
/* On to the next block for which lanes wait behind block b. Ends the code. */
void hed_mask_go_on_behind(struct hed_lower *l, uint32_t b);

/* region.c */
/* May the kernel return at its barriers? */
bool hed_mask_may_be_cut(const struct hed_lower *l);
/* Do all lanes that exist run block b, whenever it runs? */
bool hed_mask_all_lanes_come(const struct mask *m, uint32_t b);
/* Makes the kernel's beginning, cut or not. */
void hed_mask_prepare_cuts(struct hed_lower *l);
/* Returns at instruction i of a block, a barrier, and makes the place where the kernel goes on. */
void hed_mask_cut(struct hed_lower *l, uint32_t block, uint32_t i);

/* The shape's barrier_reduce, which cuts a kernel that may be cut. */
LLVMValueRef hed_mask_barrier_reduce(struct hed_lower *l, LLVMValueRef id, LLVMValueRef threads,
                                     LLVMValueRef predicate, enum hed_rt_reduce op);

/* solo.c */
void hed_mask_make_solo(struct hed_lower *l, uint32_t loop);
/* While such a loop is being made: the lane's value of a register, the lane. */
LLVMValueRef hed_mask_solo_number(struct hed_lower *l, const struct hed_ptx_reg *r);
void hed_mask_solo_write(struct hed_lower *l, const struct hed_ptx_reg *r, LLVMValueRef v);
LLVMValueRef hed_mask_solo_lane(struct hed_lower *l);
void hed_mask_solo_each(struct hed_lower *l, hed_lower_each fn, void *arg, LLVMValueRef *args,
                        LLVMValueRef *results);

/* run.c */
LLVMValueRef hed_mask_declare(struct hed_lower *l, const struct hed_ptx_func *f);
/* Sets what the kernel's function takes from the loops around it. */
void hed_mask_take_arguments(struct hed_lower *l);
void hed_mask_finish(struct hed_lower *l);

/* guess.c: makes the version of a loop for which its guess holds. Lanes go on at the header's
 * `begins`, which is another one then, where it does not. */
void hed_mask_make_guess(struct hed_lower *l, uint32_t loop);

/* mask.c */
/* The lanes of the warp that have a thread: i32. */
LLVMValueRef hed_mask_lanes_that_exist(struct hed_lower *l);
void hed_mask_make_block(struct hed_lower *l, uint32_t b);
void hed_mask_inst(struct hed_lower *l, struct hed_ptx_inst *i);

/* access.c */
void hed_mask_load(struct hed_lower *l, const struct hed_lower_place *at,
                   const struct hed_lower_access *how, LLVMValueRef *out);
void hed_mask_store(struct hed_lower *l, const struct hed_lower_place *at,
                    const struct hed_lower_access *how, LLVMValueRef *in);
/* Is the address of the first lane of each row, as far as is known now, as aligned as it must be?
 * So it is if the code need not test it. */
bool hed_mask_is_aligned(const struct hed_lower *l, const struct hed_lower_place *at,
                         const struct hed_lower_access *how);
/* The address of the first lane of a row: i64. */
LLVMValueRef hed_mask_row_address(struct hed_lower *l, const struct hed_lower_place *at,
                                  unsigned row);
/* offsets.c: an access whose address differs from lane to lane by what is known, in a way that
 * vectors and shuffles can do. Else returns false and makes nothing. */
bool hed_mask_move_offsets(struct hed_lower *l, const struct hed_lower_place *at,
                           const struct hed_lower_access *how, bool is_store, LLVMValueRef *values);
/* Puts n vectors one behind the other; n is a power of 2. Overwrites parts. */
LLVMValueRef hed_mask_join(struct hed_lower *l, LLVMValueRef *parts, unsigned n);
void hed_mask_trap(struct hed_lower *l, LLVMValueRef condition, enum hed_ptx_trap trap);
/* Traps if the condition, an i1 without lanes, holds. */
void hed_mask_trap_if(struct hed_lower *l, LLVMValueRef condition, enum hed_ptx_trap trap);

/* local.c */
void hed_mask_place_variables(struct hed_lower *l);
LLVMValueRef hed_mask_address(struct hed_lower *l, const struct hed_lower_place *at);
/* Loads or stores if the place is in a variable that lies element by element; else returns
 * false. */
bool hed_mask_move_local(struct hed_lower *l, const struct hed_lower_place *at,
                         const struct hed_lower_access *how, bool is_store, LLVMValueRef *values);
