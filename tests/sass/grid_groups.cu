/* The grid groups of the device runtime, which Numba uses, and those of cooperative_groups.h: both
 * kinds of barrier take turns.
 *
 *     grid_groups
 *
 * Exits with 1 if a block did not wait for another, or a rank is wrong.
 */
#include <cooperative_groups.h>
#include <cstdio>

#define BLOCKS 6
#define THREADS 64
#define ROUNDS 10

namespace cg = cooperative_groups;

__device__ unsigned cells[2][BLOCKS * THREADS];

/* Each thread looks at one of another block. */
__global__ void
ring(unsigned *out)
{
    const unsigned long long handle = cudaCGGetIntrinsicHandle(cudaCGScopeGrid);
    const unsigned me = (blockIdx.y * gridDim.x + blockIdx.x) * THREADS + threadIdx.x;
    unsigned rank = ~0u, grid = ~0u, threads = 0, grids = 0, failed = handle == 0;

    cells[0][me] = me;
    failed |= cudaCGSynchronize(handle, 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        cells[(i + 1) % 2][me] = cells[i % 2][(me + THREADS + 7) % (BLOCKS * THREADS)] + 1;
        if (i % 3)
            cg::this_grid().sync();
        else
            failed |= cudaCGSynchronize(handle, 0);
    }
    failed |= cudaCGGetRank(&rank, &grid, handle) != cudaSuccess;
    failed |= rank != me || grid != 0;
    failed |= cudaCGGetSize(&threads, &grids, handle) != cudaSuccess;
    failed |= threads != BLOCKS * THREADS || grids != 1;
    failed |= cudaCGSynchronize(0, 0) == cudaSuccess;
    out[me] = failed ? ~0u : cells[0][me];
}

int
main()
{
    unsigned *out, got[BLOCKS * THREADS];
    int wrong = 0;

    if (cudaMalloc(&out, sizeof got) != cudaSuccess)
        return 1;

    void *arguments[] = {&out};

    if (cudaLaunchCooperativeKernel((const void *)ring, dim3(BLOCKS / 2, 2), dim3(THREADS),
                                    arguments, 0, 0) != cudaSuccess ||
        cudaMemcpy(got, out, sizeof got, cudaMemcpyDefault) != cudaSuccess) {
        printf("%s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
    for (unsigned i = 0; i < BLOCKS * THREADS; i++) {
        const unsigned want = (i + ROUNDS * (THREADS + 7)) % (BLOCKS * THREADS) + ROUNDS;

        if (got[i] != want && wrong++ < 10)
            printf("thread %u: %u, not %u\n", i, got[i], want);
    }
    return wrong != 0;
}
