/* Blocks that work together: grid-wide synchronisation, a hand-made barrier between blocks, a scan
 * with decoupled look-back.
 */
#include "run.cuh"

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__device__ unsigned cells[2][4096];

/* A ring of cells that every thread of the grid changes in step. */
KERNEL(synchronised)
{
    const cg::grid_group grid = cg::this_grid();
    const unsigned size = gridDim.x * blockDim.x;

    cells[0][ME] = ME;
    grid.sync();
    for (unsigned i = 0; i < 10; i++) {
        cells[(i + 1) % 2][ME] = cells[i % 2][(ME + 7) % size] + cells[i % 2][(ME + size - 3) % size];
        grid.sync();
    }
    out[ME] = cells[0][ME];
    if (grid.thread_rank() == 0)
        out[0] = (unsigned)grid.size() + (unsigned)grid.is_valid();
}

__device__ unsigned arrived;

/* All blocks are resident, so they may wait for each other without a cooperative launch. */
KERNEL(hand_made)
{
    __shared__ unsigned sum;

    if (threadIdx.x == 0)
        sum = 0;
    __syncthreads();
    atomicAdd(&sum, ME);
    __syncthreads();
    if (threadIdx.x == 0) {
        out[blockIdx.x] = sum;
        __threadfence();
        atomicAdd(&arrived, 1u);
        while (*(volatile unsigned *)&arrived < gridDim.x)
            ;
        __threadfence();
        out[gridDim.x + blockIdx.x] = *(volatile unsigned *)(out + (blockIdx.x + 1) % gridDim.x);
    }
}

__device__ unsigned next_tile;
__device__ volatile unsigned long long state[256]; /* kind (1: of the tile, 2: up to here), sum */

/* Prefix sums in one pass: a tile looks back over those before it until one knows its sum. */
KERNEL(look_back)
{
    __shared__ unsigned tile;
    __shared__ unsigned before;
    __shared__ unsigned s[128];

    if (threadIdx.x == 0)
        tile = atomicAdd(&next_tile, 1u);
    __syncthreads();

    const unsigned i = tile * blockDim.x + threadIdx.x;

    s[threadIdx.x] = i % 13 + 1;
    __syncthreads();
    for (unsigned d = 1; d < blockDim.x; d *= 2) {
        const unsigned v = threadIdx.x >= d ? s[threadIdx.x - d] : 0;

        __syncthreads();
        s[threadIdx.x] += v;
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        const unsigned mine = s[blockDim.x - 1];
        unsigned sum = 0;

        state[tile] = (tile ? 1ull : 2ull) << 32 | mine;
        __threadfence();
        for (unsigned j = tile; j-- > 0;) {
            unsigned long long seen;

            do {
                seen = state[j];
            } while (seen >> 32 == 0);
            sum += (unsigned)seen;
            if (seen >> 32 == 2)
                break;
        }
        state[tile] = 2ull << 32 | (sum + mine);
        before = sum;
    }
    __syncthreads();
    if (i < n)
        out[i] = before + s[threadIdx.x];
}

RUNS(
    TOGETHER(synchronised, 8, 64, 0, 512),
    TOGETHER(synchronised, 1, 32, 0, 32),
    RUN(hand_made, 8, 32, 0, 16),
    RUN(look_back, 40, 128, 0, 5120))
