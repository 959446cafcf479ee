/* See launch.h. */
#include "see/inject/launch.h"

#include <stdatomic.h>

#include "base/log.h"
#include "gen/cuda_sets.h"

static _Atomic enum hed_inject_proof proofs[HED_CUDA_CALLS];

/* Launches of kernels that the recording queue may hold. A graph has no grid. */
bool
hed_inject_voids(enum hed_cuda_call id)
{
#define HAS_GRID(call, ...) case HED_##call:
    switch ((int)id) {
        HED_CUDA_GRID(HAS_GRID)
        return hed_cuda_info[id].flags & HED_CALL_DEFER;
    default:
        return false;
    }
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

/* Where a launch has its grid: in its arguments, or in a config, which is the program's. */
struct grid_place {
    unsigned *width;
    const CUlaunchConfig **config;
};

#define GRID(call, class, ...)                   \
    case HED_##call: {                           \
        struct hed_##call *a = params;           \
                                                 \
        return (struct grid_place){__VA_ARGS__}; \
    }

static struct grid_place
find_grid(enum hed_cuda_call id, void *params)
{
    switch ((int)id) {
        HED_CUDA_GRID(GRID)
    default:
        return (struct grid_place){0};
    }
}

void
hed_inject_void(struct hed_inject_void *v, enum hed_cuda_call id, void *params)
{
    const struct grid_place at = find_grid(id, params);

    if (at.width) {
        v->grid = *at.width;
        *at.width = 0;
    } else if (at.config) {
        v->config = *at.config;
        v->empty = **at.config;
        v->empty.gridDimX = 0;
        *at.config = &v->empty;
    }
}

void
hed_inject_put_back(const struct hed_inject_void *v, enum hed_cuda_call id, void *params)
{
    const struct grid_place at = find_grid(id, params);

    if (at.width)
        *at.width = v->grid;
    else if (at.config)
        *at.config = v->config;
}
