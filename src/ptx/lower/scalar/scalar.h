/* What the files of the scalar shape share: scalar.c, and sync.c for calls, barriers and operations
 * among the lanes of a warp.
 */
#pragma once

#include "ptx/lower/lower.h"

/* hed_lower_function.state */
struct scalar {
    LLVMBasicBlockRef *blocks; /* by label id */
    bool *seen;                /* by label id: the label is above the current instruction */
    LLVMBasicBlockRef after;   /* where code continues after the guarded instruction */
    LLVMValueRef args, rets;   /* memory for the arguments and results of calls, or NULL */
    uint64_t args_size, rets_size;
};

/* The LLVM type of a kernel or function. */
LLVMTypeRef hed_lower_scalar_type(struct hed_lower *l, bool is_entry);

/* Begins code that runs only if the condition holds. The caller ends it with a branch to *after,
 * and continues there. */
void hed_lower_scalar_when(struct hed_lower *l, LLVMValueRef condition, LLVMBasicBlockRef *after);

/* See struct hed_lower_shape. */
void hed_lower_scalar_call(struct hed_lower *l, const struct hed_ptx_func *callee,
                           LLVMValueRef pointer, const struct hed_ptx_sig *sig,
                           const struct hed_ptx_operand *rets, const struct hed_ptx_operand *args);
void hed_lower_scalar_barrier(struct hed_lower *l, LLVMValueRef id, LLVMValueRef threads);
void hed_lower_scalar_barrier_arrive(struct hed_lower *l, LLVMValueRef id, LLVMValueRef threads);
LLVMValueRef hed_lower_scalar_barrier_reduce(struct hed_lower *l, LLVMValueRef id,
                                             LLVMValueRef threads, LLVMValueRef predicate,
                                             enum hed_rt_reduce op);
LLVMValueRef hed_lower_scalar_shfl(struct hed_lower *l, enum hed_rt_shfl mode, LLVMValueRef value,
                                   LLVMValueRef b, LLVMValueRef c, LLVMValueRef mask,
                                   LLVMValueRef *inside);
LLVMValueRef hed_lower_scalar_vote(struct hed_lower *l, enum hed_rt_vote mode,
                                   LLVMValueRef predicate, LLVMValueRef mask);
LLVMValueRef hed_lower_scalar_match(struct hed_lower *l, LLVMValueRef value64, LLVMValueRef mask,
                                    LLVMValueRef *same);
LLVMValueRef hed_lower_scalar_redux(struct hed_lower *l, enum hed_rt_redux op, LLVMValueRef value,
                                    LLVMValueRef mask);
LLVMValueRef hed_lower_scalar_activemask(struct hed_lower *l);
LLVMValueRef hed_lower_scalar_elect(struct hed_lower *l, LLVMValueRef mask, LLVMValueRef *elected);
void hed_lower_scalar_warp_sync(struct hed_lower *l, LLVMValueRef mask);
void hed_lower_scalar_together(struct hed_lower *l, const char *helper, LLVMValueRef mask,
                               uint64_t arg, LLVMValueRef *in, unsigned nin, LLVMValueRef *out,
                               unsigned nout);
void hed_lower_scalar_nanosleep(struct hed_lower *l, LLVMValueRef ns);
