/* See launch.h. */
#include "inject/launch.h"

#include <stdatomic.h>

#include "base/log.h"

static _Atomic enum hed_inject_proof proofs[HED_CUDA_CALLS];

/* Launches of kernels that the recording queue may hold. A graph has no grid. */
bool
hed_inject_voids(enum hed_cuda_call id)
{
    const struct hed_call_info *info = &hed_cuda_info[id];

    return info->does == HED_DOES_LAUNCH && info->flags & HED_CALL_DEFER &&
           info->of_kind == HED_CUDA_KIND_FUNCTION;
}

enum hed_inject_proof
hed_inject_proof(enum hed_cuda_call id)
{
    /* Relaxed: a launch that is taken because of it was known to be good after it. */
    return hed_inject_voids(id) ? atomic_load_explicit(&proofs[id], memory_order_relaxed)
                                : HED_INJECT_FAILS;
}

void
hed_inject_prove(enum hed_cuda_call id, enum hed_inject_proof proof)
{
    if (!hed_inject_voids(id))
        return;
    if (atomic_exchange_explicit(&proofs[id], proof, memory_order_relaxed) != proof &&
        proof == HED_INJECT_FAILS)
        hed_warn(INJECT, "this driver does not let heddle hold %s", hed_cuda_info[id].name);
}

bool
hed_inject_is_refusal(CUresult result)
{
    return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_INVALID_CLUSTER_SIZE ||
           result == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
}

/* Finds the width of the grid. NULL if it is in the config of cuLaunchKernelEx, which is the
 * program's. */
static unsigned *
grid_width(enum hed_cuda_call id, void *params)
{
    if (id == HED_cuLaunchKernel)
        return &((struct hed_cuLaunchKernel *)params)->gridDimX;
    if (id == HED_cuLaunchCooperativeKernel)
        return &((struct hed_cuLaunchCooperativeKernel *)params)->gridDimX;
    return NULL;
}

void
hed_inject_void(struct hed_inject_void *v, enum hed_cuda_call id, void *params)
{
    unsigned *grid = grid_width(id, params);
    struct hed_cuLaunchKernelEx *x = params;

    if (grid) {
        v->grid = *grid;
        *grid = 0;
        return;
    }
    v->config = x->config;
    v->empty = *x->config;
    v->empty.gridDimX = 0;
    x->config = &v->empty;
}

void
hed_inject_put_back(const struct hed_inject_void *v, enum hed_cuda_call id, void *params)
{
    unsigned *grid = grid_width(id, params);

    if (grid)
        *grid = v->grid;
    else
        ((struct hed_cuLaunchKernelEx *)params)->config = v->config;
}
