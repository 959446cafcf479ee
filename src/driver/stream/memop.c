/* Operations on values in memory, in stream order: cuStreamWaitValue, cuStreamWriteValue, batches.
 * near/run.c runs them. */
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "driver/memory/memory.h"
#include "driver/parts.h"
#include "driver/stream/stream.h"

#define BATCH_MOST 256 /* cuda.h: "The number of operations in the array. Must be less than 256." */

/* ---- checks ---------------------------------------------------------------------------------- */

/* Is it memory that a device may use, and not just any address of the program? */
static bool
is_good_address(struct hed_driver *d, CUdeviceptr at, size_t size)
{
    bool known = false;

    return at % size == 0 && hed_memory_covers(d, at, size, &known) && known;
}

static CUresult
check_wait(struct hed_driver *d, CUdeviceptr at, size_t size, unsigned flags)
{
    const unsigned how = flags & ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH;

    if (how > CU_STREAM_WAIT_VALUE_NOR || !is_good_address(d, at, size))
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & CU_STREAM_WAIT_VALUE_FLUSH) {
        /* CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES is 0. */
        hed_stats_unsupported(HED_API_CUDA, HED_cuStreamWaitValue32_v2, "flushing remote writes");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

static CUresult
check_write(struct hed_driver *d, CUdeviceptr at, size_t size, unsigned flags)
{
    return flags <= CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER && is_good_address(d, at, size)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
check_one(struct hed_driver *d, const CUstreamBatchMemOpParams_v1 *op)
{
    switch (op->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        return check_wait(d, op->waitValue.address, 4, op->waitValue.flags);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        return check_wait(d, op->waitValue.address, 8, op->waitValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        return check_write(d, op->writeValue.address, 4, op->writeValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return check_write(d, op->writeValue.address, 8, op->writeValue.flags);
    case CU_STREAM_MEM_OP_BARRIER:
        return op->memoryBarrier.flags <= CU_STREAM_MEMORY_BARRIER_TYPE_GPU
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_VALUE;
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        hed_stats_unsupported(HED_API_CUDA, HED_cuStreamBatchMemOp_v2, "flushing remote writes");
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult
hed_memops_check(struct hed_driver *d, const CUstreamBatchMemOpParams_v1 *ops, unsigned count)
{
    CUresult r = CUDA_SUCCESS;

    if (count > BATCH_MOST || (count > 0 && !ops))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = check_one(d, &ops[i]);
    return r;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static CUresult
put_on(struct hed_stream *s, const CUstreamBatchMemOpParams_v1 *ops, unsigned count)
{
    struct hed_work *w = hed_work_create(s->ctx, HED_WORK_MEMOP);

    if (!w)
        return CUDA_ERROR_OUT_OF_MEMORY;
    w->memops.ops = malloc(count * sizeof *ops);
    if (!w->memops.ops) {
        hed_work_free(w);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(w->memops.ops, ops, count * sizeof *ops);
    w->memops.count = count;
    return hed_submit(s, w);
}

static CUresult
submit_memops(struct hed_layer *self, CUstream stream, bool ptds, unsigned count,
              const CUstreamBatchMemOpParams_v1 *ops)
{
    struct hed_stream *s;
    CUresult r = hed_stream_find(self, stream, ptds, &s);

    if (r != CUDA_SUCCESS)
        return r;
    r = hed_memops_check(hed_driver_of(self), ops, count);
    if (r == CUDA_SUCCESS && count > 0)
        r = put_on(s, ops, count);
    hed_stream_put(s);
    return r;
}

static CUresult
submit_memop(struct hed_layer *self, CUstream stream, bool ptds, CUstreamBatchMemOpType what,
             CUdeviceptr address, uint64_t value, unsigned flags)
{
    CUstreamBatchMemOpParams_v1 op;

    memset(&op, 0, sizeof op);
    /* The structs of the two kinds of operation have the same layout. */
    op.waitValue.operation = what;
    op.waitValue.address = address;
    op.waitValue.flags = flags;
    if (what == CU_STREAM_MEM_OP_WAIT_VALUE_64 || what == CU_STREAM_MEM_OP_WRITE_VALUE_64)
        op.waitValue.value64 = value;
    else
        op.waitValue.value = (cuuint32_t)value;
    return submit_memops(self, stream, ptds, 1, &op);
}

#define SINGLE(call, what)                                                                        \
    static CUresult soft_##call(struct hed_layer *self, struct hed_##call *a)                     \
    {                                                                                             \
        return submit_memop(self, a->stream, a->ptds, CU_STREAM_MEM_OP_##what, a->addr, a->value, \
                            a->flags);                                                            \
    }

SINGLE(cuStreamWaitValue32, WAIT_VALUE_32)
SINGLE(cuStreamWaitValue32_v2, WAIT_VALUE_32)
SINGLE(cuStreamWaitValue64, WAIT_VALUE_64)
SINGLE(cuStreamWaitValue64_v2, WAIT_VALUE_64)
SINGLE(cuStreamWriteValue32, WRITE_VALUE_32)
SINGLE(cuStreamWriteValue32_v2, WRITE_VALUE_32)
SINGLE(cuStreamWriteValue64, WRITE_VALUE_64)
SINGLE(cuStreamWriteValue64_v2, WRITE_VALUE_64)

static CUresult
soft_cuStreamBatchMemOp(struct hed_layer *self, struct hed_cuStreamBatchMemOp *a)
{
    if (a->flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return submit_memops(self, a->stream, a->ptds, a->count, a->paramArray);
}

static CUresult
soft_cuStreamBatchMemOp_v2(struct hed_layer *self, struct hed_cuStreamBatchMemOp_v2 *a)
{
    if (a->flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return submit_memops(self, a->stream, a->ptds, a->count, a->paramArray);
}

const struct hed_cuda_ops hed_calls_memop = {
    .cuStreamBatchMemOp = soft_cuStreamBatchMemOp,
    .cuStreamBatchMemOp_v2 = soft_cuStreamBatchMemOp_v2,
    .cuStreamWaitValue32 = soft_cuStreamWaitValue32,
    .cuStreamWaitValue32_v2 = soft_cuStreamWaitValue32_v2,
    .cuStreamWaitValue64 = soft_cuStreamWaitValue64,
    .cuStreamWaitValue64_v2 = soft_cuStreamWaitValue64_v2,
    .cuStreamWriteValue32 = soft_cuStreamWriteValue32,
    .cuStreamWriteValue32_v2 = soft_cuStreamWriteValue32_v2,
    .cuStreamWriteValue64 = soft_cuStreamWriteValue64,
    .cuStreamWriteValue64_v2 = soft_cuStreamWriteValue64_v2,
};
