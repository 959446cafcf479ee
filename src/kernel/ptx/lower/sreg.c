/* The values of special registers. */
#include <stddef.h>

#include "kernel/ptx/lower/lower.h"

#define FIELD(record, type, field) \
    hed_lower_field(l, type, l->function->record, offsetof(struct hed_ptx_##record, field))

/* What we report as the number of warps that an SM can hold. */
#define WARPS_OF_SM 64

static LLVMValueRef
field_word(struct hed_lower *l, LLVMValueRef record, size_t offset, unsigned dimension)
{
    return hed_lower_field(l, l->i32, record, offset + dimension * sizeof(uint32_t));
}

/* In a function it is no constant for LLVM: the kernel may go from block to block. */
static LLVMValueRef
ctaid(struct hed_lower *l, unsigned d)
{
    const struct hed_lower_function *f = l->function;
    const size_t at = offsetof(struct hed_ptx_block, ctaid) + d * sizeof(uint32_t);

    if (f->ctaid[d])
        return f->ctaid[d];
    return f->ptx->is_entry
               ? hed_lower_field(l, l->i32, f->block, at)
               : LLVMBuildLoad2(l->b, l->i32, hed_lower_at(l, f->block, (int64_t)at), "");
}

static LLVMValueRef
nctaid(struct hed_lower *l, unsigned d)
{
    return field_word(l, l->function->grid, offsetof(struct hed_ptx_grid, nctaid), d);
}

static LLVMValueRef
ncluster(struct hed_lower *l, unsigned d)
{
    return field_word(l, l->function->grid, offsetof(struct hed_ptx_grid, ncluster), d);
}

/* The position of the block in its cluster. */
static LLVMValueRef
position_in_cluster(struct hed_lower *l, unsigned d)
{
    return LLVMBuildURem(l->b, ctaid(l, d), ncluster(l, d), "");
}

static LLVMValueRef
cluster_rank(struct hed_lower *l)
{
    LLVMValueRef rank = LLVMBuildMul(l->b, position_in_cluster(l, 2), ncluster(l, 1), "");

    rank = LLVMBuildAdd(l->b, rank, position_in_cluster(l, 1), "");
    rank = LLVMBuildMul(l->b, rank, ncluster(l, 0), "");
    return LLVMBuildAdd(l->b, rank, position_in_cluster(l, 0), "");
}

static LLVMValueRef
cluster_size(struct hed_lower *l)
{
    LLVMValueRef size = LLVMBuildMul(l->b, ncluster(l, 0), ncluster(l, 1), "");

    return LLVMBuildMul(l->b, size, ncluster(l, 2), "");
}

static LLVMValueRef
runtime64(struct hed_lower *l, const char *name)
{
    return hed_lower_runtime(l, name, l->i64, &l->function->warp, 1);
}

static LLVMValueRef
word_half(struct hed_lower *l, LLVMValueRef v, bool is_high)
{
    if (is_high)
        v = LLVMBuildLShr(l->b, v, LLVMConstInt(l->i64, 32, false), "");
    return LLVMBuildTrunc(l->b, v, l->i32, "");
}

/* The masks of lanes below, at and above the lane's own; the value differs by lane. */
static LLVMValueRef
lanemask_sreg(struct hed_lower *l, unsigned sreg)
{
    LLVMValueRef lane = l->shape->lane(l);
    LLVMValueRef own = LLVMBuildShl(l->b, hed_lower_int(l, l->i32, 1), lane, "");
    LLVMValueRef below = LLVMBuildSub(l->b, own, hed_lower_int(l, l->i32, 1), "");

    switch (sreg) {
    case HED_PTX_SREG_LANEMASK_EQ:
        return own;
    case HED_PTX_SREG_LANEMASK_LT:
        return below;
    case HED_PTX_SREG_LANEMASK_LE:
        return LLVMBuildOr(l->b, own, below, "");
    case HED_PTX_SREG_LANEMASK_GE:
        return LLVMBuildNot(l->b, below, "");
    default:
        return LLVMBuildNot(l->b, LLVMBuildOr(l->b, own, below, ""), "");
    }
}

/* Registers with .x .y .z that are the same in all lanes; NULL if sreg is none of them. */
static LLVMValueRef
vector_sreg(struct hed_lower *l, unsigned sreg, unsigned d)
{
    switch (sreg) {
    case HED_PTX_SREG_NTID:
        if (l->options->rows == HED_ROWS_ONE)
            return hed_lower_word(l, 1);
        /* LLVM proves with it that nothing wraps around. */
        if (d == 0 && l->options->rows == HED_ROWS_32)
            return LLVMBuildAnd(
                l->b, field_word(l, l->function->grid, offsetof(struct hed_ptx_grid, ntid), 0),
                hed_lower_word(l, ~UINT64_C(31)), "");
        return field_word(l, l->function->grid, offsetof(struct hed_ptx_grid, ntid), d);
    case HED_PTX_SREG_CTAID:
        return ctaid(l, d);
    case HED_PTX_SREG_NCTAID:
        return nctaid(l, d);
    case HED_PTX_SREG_CLUSTERID:
        return LLVMBuildUDiv(l->b, ctaid(l, d), ncluster(l, d), "");
    case HED_PTX_SREG_NCLUSTERID:
        return LLVMBuildUDiv(l->b, nctaid(l, d), ncluster(l, d), "");
    case HED_PTX_SREG_CLUSTER_CTAID:
        return position_in_cluster(l, d);
    case HED_PTX_SREG_CLUSTER_NCTAID:
        return ncluster(l, d);
    default:
        return NULL;
    }
}

/* Clocks, which are read anew each time; NULL if sreg is none of them. */
static LLVMValueRef
clock_sreg(struct hed_lower *l, unsigned sreg)
{
    switch (sreg) {
    case HED_PTX_SREG_CLOCK:
        return word_half(l, runtime64(l, "hed_rt_clock"), false);
    case HED_PTX_SREG_CLOCK_HI:
        return word_half(l, runtime64(l, "hed_rt_clock"), true);
    case HED_PTX_SREG_CLOCK64:
        return runtime64(l, "hed_rt_clock");
    case HED_PTX_SREG_GLOBALTIMER:
        return runtime64(l, "hed_rt_globaltimer");
    case HED_PTX_SREG_GLOBALTIMER_LO:
        return word_half(l, runtime64(l, "hed_rt_globaltimer"), false);
    case HED_PTX_SREG_GLOBALTIMER_HI:
        return word_half(l, runtime64(l, "hed_rt_globaltimer"), true);
    default:
        return NULL;
    }
}

/* All other registers that are the same in all lanes. */
static LLVMValueRef
plain_sreg(struct hed_lower *l, unsigned sreg)
{
    switch (sreg) {
    case HED_PTX_SREG_WARPID:
        return FIELD(warp, l->i32, warp);
    case HED_PTX_SREG_NWARPID:
        return LLVMConstInt(l->i32, WARPS_OF_SM, false);
    case HED_PTX_SREG_SMID:
        return FIELD(block, l->i32, smid);
    case HED_PTX_SREG_NSMID:
        return FIELD(grid, l->i32, nsm);
    case HED_PTX_SREG_GRIDID:
        return FIELD(grid, l->i64, id);
    case HED_PTX_SREG_CLUSTER_CTARANK:
        return cluster_rank(l);
    case HED_PTX_SREG_CLUSTER_NCTARANK:
        return cluster_size(l);
    case HED_PTX_SREG_IS_EXPLICIT_CLUSTER:
        return LLVMBuildICmp(l->b, LLVMIntUGT, cluster_size(l), LLVMConstInt(l->i32, 1, false), "");
    case HED_PTX_SREG_TOTAL_SMEM_SIZE:
    case HED_PTX_SREG_AGGR_SMEM_SIZE:
        return FIELD(grid, l->i32, total_shared);
    case HED_PTX_SREG_DYNAMIC_SMEM_SIZE:
        return FIELD(grid, l->i32, dynamic_shared);
    case HED_PTX_SREG_ENVREG1:
        return word_half(l, FIELD(grid, l->i64, workspace), true);
    case HED_PTX_SREG_ENVREG2:
        return word_half(l, FIELD(grid, l->i64, workspace), false);
    default:
        /* Event counters and registers of the system: we count nothing and keep nothing. */
        return LLVMConstNull(hed_lower_int_type(l, hed_ptx_sregs[sreg].type));
    }
}

LLVMValueRef
hed_lower_sreg(struct hed_lower *l, const struct hed_ptx_operand *o)
{
    const unsigned d = o->sel ? o->sel - 1u : 0;
    LLVMValueRef v;

    if (hed_ptx_sregs[o->sreg].dims && d > 2)
        return hed_lower_int(l, l->i32, 0);
    switch (o->sreg) {
    case HED_PTX_SREG_TID:
        return l->shape->tid(l, d);
    case HED_PTX_SREG_LANEID:
        return l->shape->lane(l);
    case HED_PTX_SREG_LANEMASK_EQ:
    case HED_PTX_SREG_LANEMASK_LE:
    case HED_PTX_SREG_LANEMASK_LT:
    case HED_PTX_SREG_LANEMASK_GE:
    case HED_PTX_SREG_LANEMASK_GT:
        return lanemask_sreg(l, o->sreg);
    default:
        v = vector_sreg(l, o->sreg, d);
        v = v ? v : clock_sreg(l, o->sreg);
        return hed_lower_splat(l, v ? v : plain_sreg(l, o->sreg));
    }
}
