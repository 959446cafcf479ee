/* What the files of the warp shape share.
 *
 *   warp.c    functions, guards, values
 *   branch.c  going to a place in the code, waiting there, meeting, branching
 *   lanes.c   lanes as bits and vectors, loops over lanes
 *   local.c   registers that are used in one place only
 *   memory.c  loads and stores
 *   mover.c   the same for an address per lane
 *   gather.c  by the gathers and scatters of the processor
 *   sync.c    operations among lanes, barriers, calls
 *
 * The mask shape (lower/mask/) uses lanes.c, memory.c and sync.c as well.
 *
 * A "place" is a point in the code where lanes may come together or part.
 */
#pragma once

#include "kernel/ptx/lower/lower.h"
#include "kernel/ptx/run/warp.h"

/* How the code of an instruction obeys its guard. */
enum warp_guard {
    WARP_GUARD_NONE,
    WARP_GUARD_SELECT, /* all lanes compute, and the result is kept only where the guard holds */
    WARP_GUARD_SKIP,   /* a branch skips the instruction if the guard holds for no lane */
    WARP_GUARD_SPLIT,  /* the other lanes wait after the instruction, which may park lanes */
    WARP_GUARD_LEAVE,  /* bra, ret and exit obey it themselves */
};

struct mask;

/* hed_lower_function.state */
struct warp {
    struct mask *mask;             /* of the mask shape, which has no machine; else NULL */
    LLVMValueRef machine;          /* alloca: struct hed_warp; or NULL */
    LLVMValueRef bits;             /* slot, i32: the running lanes */
    LLVMValueRef where;            /* slot, i32: the pc to go to */
    LLVMBasicBlockRef next, go;    /* next asks hed_warp_next; go jumps to `where` */
    LLVMBasicBlockRef end;         /* no lane is left */
    LLVMValueRef jump;             /* the switch at the end of `go` */
    LLVMBasicBlockRef *blocks;     /* by label id */
    bool *seen;                    /* by label id: the label is above the current instruction */
    struct hed_lower_map *index;   /* statement -> its number, from 1 */
    struct hed_lower_map *locals;  /* has the slot of a register if the values that other lanes
                                    * had in it are never read */
    struct hed_lower_map *strides; /* variable -> bytes from lane to lane */

    LLVMValueRef addresses, data; /* allocas for the operands of memory accesses; or NULL */

    enum warp_guard guard;
    LLVMValueRef holds;      /* i1, lanes: where the guard holds; NULL if there is none */
    LLVMValueRef outer;      /* i32: the lanes that ran before the guard */
    LLVMValueRef inside;     /* i1, lanes: the guard of code that is run for these lanes only */
    LLVMBasicBlockRef after; /* where code continues after the guarded instruction */
};

static inline struct warp *
hed_lower_warp_state(const struct hed_lower *l)
{
    return l->function->state;
}

/* The running lanes for which the guard holds, as i32 and as <32 x i1>. */
LLVMValueRef hed_lower_warp_bits(struct hed_lower *l);
LLVMValueRef hed_lower_warp_mask(struct hed_lower *l);
/* <32 x i1> to i32 and back. */
LLVMValueRef hed_lower_warp_pack(struct hed_lower *l, LLVMValueRef lanes);
LLVMValueRef hed_lower_warp_unpack(struct hed_lower *l, LLVMValueRef bits);
/* The running lanes, whatever the guard: i32. */
LLVMValueRef hed_lower_warp_running(struct hed_lower *l);
/* The lowest lane in a mask: i32; 0 if the mask is empty. */
LLVMValueRef hed_lower_warp_lowest(struct hed_lower *l, LLVMValueRef bits);
/* The value of the lowest running lane. */
LLVMValueRef hed_lower_warp_first(struct hed_lower *l, LLVMValueRef v);
/* An alloca for a vector of 32; v is stored in it unless it is NULL. */
LLVMValueRef hed_lower_warp_array(struct hed_lower *l, LLVMTypeRef element, LLVMValueRef v);
/* Keeps a slot in memory. Needed for values that live across a place: lanes come to a place from
 * everywhere, so LLVM would have to carry vectors of eight or more machine registers along every
 * path. */
void hed_lower_warp_pin(struct hed_lower *l, LLVMValueRef slot);

/* Lanes may be parked where they meet and continue later. A value that is computed before the
 * meeting is kept in memory and loaded after it. */
struct warp_kept {
    LLVMTypeRef type;
    LLVMValueRef slot, constant;
};
struct warp_kept hed_lower_warp_keep(struct hed_lower *l, LLVMValueRef v);
LLVMValueRef hed_lower_warp_kept(struct hed_lower *l, const struct warp_kept *k);

/* Waits until the lanes of the mask (i32, with lanes; NULL means all) have arrived. */
void hed_lower_warp_meet(struct hed_lower *l, const struct warp_kept *mask);

/* The number of a statement's place in the machine (its pc); the next two numbers are free. */
uint32_t hed_lower_warp_number(struct hed_lower *l, const void *stmt);
void hed_lower_warp_may_resume(struct hed_lower *l, uint32_t pc, LLVMBasicBlockRef at);
void hed_lower_warp_wait_at(struct hed_lower *l, LLVMValueRef bits, uint32_t pc);
/* The running lanes go to a place: directly, or through the machine if other lanes wait there or
 * before it. Ends the block. */
void hed_lower_warp_proceed(struct hed_lower *l, uint32_t pc, LLVMBasicBlockRef to);
/* Code that is never reached still needs a block. */
void hed_lower_warp_go_on(struct hed_lower *l);
bool hed_lower_warp_is_closed(struct hed_lower *l);
/* Loads a word of struct hed_warp. */
LLVMValueRef hed_lower_warp_field(struct hed_lower *l, size_t offset);
void hed_lower_warp_branch(struct hed_lower *l, const struct hed_ptx_label *to);
void hed_lower_warp_branch_table(struct hed_lower *l, LLVMValueRef index,
                                 const struct hed_ptx_table *to);

/* The vector 0, step, 2 * step, ... */
LLVMValueRef hed_lower_warp_iota(struct hed_lower *l, LLVMTypeRef t, uint64_t step);

/* A loop over the lanes in a mask. loop_begin sets the lane (i32) of this round; loop_end closes
 * the loop. */
struct warp_loop {
    LLVMBasicBlockRef head, after;
    LLVMValueRef left; /* phi */
    LLVMValueRef lane;
};
void hed_lower_warp_loop_begin(struct hed_lower *l, LLVMValueRef bits, struct warp_loop *loop);
void hed_lower_warp_loop_end(struct hed_lower *l, struct warp_loop *loop);
LLVMValueRef hed_lower_warp_element(struct hed_lower *l, LLVMTypeRef t, LLVMValueRef array,
                                    LLVMValueRef lane);

/* Sets warp->locals. */
void hed_lower_warp_find_locals(struct hed_lower *l);
/* How the code of an instruction obeys its guard, and so whether lanes may be parked at it. */
enum warp_guard hed_lower_warp_guard(const struct hed_ptx_inst *i);

/* Gives each lane its copy of a variable in local memory, on the stack. */
void hed_lower_warp_place_variable(struct hed_lower *l, const struct hed_ptx_var *v);
/* Bytes from one lane's copy to the next. */
uint64_t hed_lower_warp_stride(const struct hed_ptx_var *v);
/* New state, with what both shapes need; NULL and l->err if there is no memory. */
struct warp *hed_lower_warp_new(struct hed_lower *l);
void hed_lower_warp_free(struct warp *w);
unsigned hed_lower_warp_bytes(LLVMTypeRef t);
/* Element i of an access by one lane. */
LLVMValueRef hed_lower_warp_load_element(struct hed_lower *l, LLVMValueRef at,
                                         const struct hed_lower_access *how, unsigned i);
void hed_lower_warp_store_element(struct hed_lower *l, LLVMValueRef at,
                                  const struct hed_lower_access *how, unsigned i, LLVMValueRef v);
/* Memory shared by all accesses of the function (w->addresses, w->data): it is written right before
 * a call of a mover and read right after it. */
LLVMValueRef hed_lower_warp_scratch(struct hed_lower *l, LLVMValueRef *slot);
/* Moves elements between memory and `data`, an array of 32 for each element, for the running
 * lanes. */
void hed_lower_warp_move(struct hed_lower *l, const struct hed_lower_place *at,
                         const struct hed_lower_access *how, bool is_store, LLVMValueRef data);

/* gather.c: does the processor move the elements of lanes that have an address each? Then makes
 * code for those of the mask. */
bool hed_lower_has_gather(struct hed_lower *l, const struct hed_lower_access *how);
void hed_lower_gather(struct hed_lower *l, const struct hed_lower_access *how,
                      LLVMValueRef pointers, LLVMValueRef mask, bool is_store,
                      LLVMValueRef *values);

/* Refuses what is left to the baseline tier. */
void hed_lower_warp_refuse(struct hed_lower *l, const struct hed_ptx_func *f);
/* See struct hed_lower_shape. */
LLVMValueRef hed_lower_warp_declare(struct hed_lower *l, const struct hed_ptx_func *f);
void hed_lower_warp_trap(struct hed_lower *l, LLVMValueRef condition, enum hed_ptx_trap trap);
LLVMValueRef hed_lower_warp_tid(struct hed_lower *l, unsigned dimension);
LLVMValueRef hed_lower_warp_lane(struct hed_lower *l);
LLVMValueRef hed_lower_warp_address(struct hed_lower *l, const struct hed_lower_place *at);
void hed_lower_warp_load(struct hed_lower *l, const struct hed_lower_place *at,
                         const struct hed_lower_access *how, LLVMValueRef *out);
void hed_lower_warp_store(struct hed_lower *l, const struct hed_lower_place *at,
                          const struct hed_lower_access *how, LLVMValueRef *in);
void hed_lower_warp_each(struct hed_lower *l, hed_lower_each fn, void *arg, LLVMValueRef *args,
                         unsigned nargs, const LLVMTypeRef *types, LLVMValueRef *results,
                         unsigned nresults);
void hed_lower_warp_do_call(struct hed_lower *l, const struct hed_ptx_func *callee,
                            LLVMValueRef pointer, const struct hed_ptx_sig *sig,
                            const struct hed_ptx_operand *rets, const struct hed_ptx_operand *args);
LLVMTypeRef hed_lower_warp_type(struct hed_lower *l, bool is_entry);
void hed_lower_warp_barrier(struct hed_lower *l, LLVMValueRef id, LLVMValueRef threads);
void hed_lower_warp_barrier_arrive(struct hed_lower *l, LLVMValueRef id, LLVMValueRef threads);
LLVMValueRef hed_lower_warp_barrier_reduce(struct hed_lower *l, LLVMValueRef id,
                                           LLVMValueRef threads, LLVMValueRef predicate,
                                           enum hed_rt_reduce op);
LLVMValueRef hed_lower_warp_shfl(struct hed_lower *l, enum hed_rt_shfl mode, LLVMValueRef value,
                                 LLVMValueRef b, LLVMValueRef c, LLVMValueRef mask,
                                 LLVMValueRef *inside);
LLVMValueRef hed_lower_warp_vote(struct hed_lower *l, enum hed_rt_vote mode, LLVMValueRef predicate,
                                 LLVMValueRef mask);
LLVMValueRef hed_lower_warp_match(struct hed_lower *l, LLVMValueRef value64, LLVMValueRef mask,
                                  LLVMValueRef *same);
LLVMValueRef hed_lower_warp_redux(struct hed_lower *l, enum hed_rt_redux op, LLVMValueRef value,
                                  LLVMValueRef mask);
LLVMValueRef hed_lower_warp_activemask(struct hed_lower *l);
LLVMValueRef hed_lower_warp_elect(struct hed_lower *l, LLVMValueRef mask, LLVMValueRef *elected);
void hed_lower_warp_sync(struct hed_lower *l, LLVMValueRef mask);
void hed_lower_warp_together(struct hed_lower *l, const char *helper, LLVMValueRef mask,
                             uint64_t arg, LLVMValueRef *in, unsigned nin, LLVMValueRef *out,
                             unsigned nout);
void hed_lower_warp_nanosleep(struct hed_lower *l, LLVMValueRef ns);
