/* Cooperative groups, warp functions, cluster barriers. */
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

__global__ void
grid(int *p)
{
    cg::grid_group g = cg::this_grid();

    p[g.thread_rank()] = 1;
    g.sync();
    p[0] += (int)g.size();
}

__global__ void
tiles(int *p, float *f)
{
    cg::thread_block b = cg::this_thread_block();
    cg::thread_block_tile<32> t = cg::tiled_partition<32>(b);
    cg::thread_block_tile<8> e = cg::tiled_partition<8>(t);
    cg::coalesced_group a = cg::coalesced_threads();

    p[0] = cg::reduce(t, p[t.thread_rank()], cg::plus<int>());
    f[0] = cg::reduce(e, f[e.thread_rank()], cg::greater<float>());
    p[1] = cg::inclusive_scan(t, p[2]);
    p[3] = t.any(p[4]) + t.ballot(p[5]) + e.match_any(p[6]) + a.size() + t.shfl_xor(p[7], 3);
    __shared__ int s[256];

    cg::memcpy_async(b, s, p, sizeof(s));
    cg::wait(b);
    p[8] = s[threadIdx.x ^ 1];
}

__global__ void
warp(unsigned *p)
{
    const unsigned m = __activemask();

    p[0] = __shfl_sync(m, p[0], 1) + __shfl_up_sync(m, p[1], 2) + __shfl_down_sync(m, p[2], 3, 16);
    p[1] = __ballot_sync(m, p[3]) + __all_sync(m, p[4]) + __any_sync(m, p[5]);
    p[2] = __match_any_sync(m, p[6]) + __popc(p[7]) + __clz(p[8]) + __brev(p[9]) + __ffs(p[10]);
    int all;

    p[3] = __match_all_sync(m, (unsigned long long)p[11], &all) + all;
#if __CUDA_ARCH__ >= 800
    p[4] = __reduce_add_sync(m, p[12]) + __reduce_max_sync(m, (int)p[13]) +
           __reduce_xor_sync(m, p[14]);
#endif
    p[5] = __syncthreads_count(p[15]) + __syncthreads_and(p[16]) + __syncthreads_or(p[17]);
    __syncwarp(m);
    p[6] = __byte_perm(p[0], p[1], p[2]) + __funnelshift_l(p[3], p[4], 5) + __dp4a(p[5], p[6], p[7]);
    p[7] = __vadd4(p[0], p[1]) + __vabsdiffu4(p[2], p[3]) + __vcmpgtu2(p[4], p[5]) +
           __sad(1, (int)p[6], p[7]) + __umulhi(p[8], p[9]) + __mul24((int)p[1], 3);
    __nanosleep(100);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
__global__ void __cluster_dims__(2, 1, 1)
cluster(int *p)
{
    __shared__ int s[32];
    cg::cluster_group c = cg::this_cluster();

    s[threadIdx.x & 31] = p[threadIdx.x];
    c.sync();
    p[0] = *c.map_shared_rank(s, 1) + c.block_rank();
    c.barrier_arrive();
    c.barrier_wait();
}
#endif
