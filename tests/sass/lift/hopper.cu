/* What compilers make instructions of sm_90 of: sums and minima in one, votes of tiles, barriers in
 * shared memory, generic addresses. Other architectures have it, too, in more instructions. */
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

#define I (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void
extremes(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned i = I, a = in[i], b = in[i + 1], c = in[i + 2] + n;
    unsigned *o = out + i * 16;

    o[0] = __vimax3_s32(a, b, c) + __vimin3_u32(a, b, c);
    o[1] = __vimax3_s16x2(a, b, c) ^ __vimin3_u16x2(a, b, c);
    o[2] = __vimax3_s32_relu(a, b, c) + __vimin3_s16x2_relu(a, b, c);
    o[3] = __viaddmax_s32(a, b, c) + __viaddmin_u32(a, b, c);
    o[4] = __viaddmax_s16x2(a, b, c) ^ __viaddmin_u16x2(a, b, c);
    o[5] = __viaddmin_s32_relu(a, b, c) + __viaddmax_s16x2_relu(a, b, c);
    o[6] = __vimax_s32_relu(a, b) + __vimin_s16x2_relu(a, b);
    o[7] = __vadd2(a, b) ^ __vmaxs2(b, c) ^ __vminu2(a, c);
    o[8] = min(max((int)a, (int)b), (int)c) + max(a + 17, b);
    o[9] = (int)a < 0 ? 0 : min((int)a, 1000);
}

/* Masks that differ from tile to tile. */
extern "C" __global__ void
tiles(unsigned *out, const unsigned *in, unsigned n)
{
    const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    const unsigned i = I, x = in[i];
    unsigned v = x & 255;

    out[i] = tile.any(x % 16 == 3) + tile.all(x % 8 != 1) * 2 + tile.ballot(x & 1) * 4;
    for (int d = 4; d > 0; d /= 2)
        v += tile.shfl_down(v, d);
    out[1024 + i] = tile.shfl(v, 0) + n;
    out[2048 + i] = tile.match_any(x % 3);
    if (x & 2) {
        const auto some = cg::coalesced_threads();

        out[3072 + i] = some.shfl(x, 0) + some.any(x & 4) + some.size();
    }
}

#if __CUDA_ARCH__ >= 900
#define MBARRIER(text, ...) asm volatile("mbarrier." text __VA_ARGS__ : "memory")

/* Is the phase with this parity over, and that of a state? */
__device__ static unsigned
is_over(unsigned bar, unsigned parity, unsigned long long state)
{
    unsigned a, b;

    asm volatile("{\n.reg .pred p, q;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%2], %3;\n"
                 "mbarrier.test_wait.shared::cta.b64 q, [%2], %4;\n"
                 "selp.u32 %0, 1, 0, p;\nselp.u32 %1, 2, 0, q;\n}"
                 : "=r"(a), "=r"(b)
                 : "r"(bar), "r"(parity), "l"(state)
                 : "memory");
    return a + b;
}
#endif

/* Three phases of a barrier in shared memory. */
extern "C" __global__ void
phases(unsigned *out, const unsigned *in, unsigned n)
{
    __shared__ unsigned long long bar;
    unsigned sum = n + in[I];

#if __CUDA_ARCH__ >= 900
    const unsigned at = (unsigned)__cvta_generic_to_shared(&bar);
    unsigned long long state;

    if (threadIdx.x == 0)
        MBARRIER("init.shared::cta.b64 [%0], %1;", ::"r"(at), "r"(blockDim.x));
    __syncthreads();
    for (unsigned k = 0; k < 3; k++) {
        MBARRIER("arrive.shared::cta.b64 %0, [%1];", : "=l"(state) : "r"(at));
        __syncthreads();
        sum = sum * 9 + is_over(at, k & 1, state) * 4 + is_over(at, ~k & 1, state);
        __syncthreads();
    }
    if (threadIdx.x == 1)
        MBARRIER("arrive.shared::cta.b64 %0, [%1], %2;", : "=l"(state) : "r"(at), "r"(3));
    if (threadIdx.x == 2)
        MBARRIER("arrive_drop.shared::cta.b64 %0, [%1];", : "=l"(state) : "r"(at));
    if (threadIdx.x == 3)
        MBARRIER("arrive.expect_tx.shared::cta.b64 %0, [%1], %2;", : "=l"(state) : "r"(at), "r"(64));
    __syncthreads();
    sum = sum * 9 + is_over(at, 1, state);
    if (threadIdx.x == 4)
        MBARRIER("inval.shared::cta.b64 [%0];", ::"r"(at));
#endif
    out[I] = sum;
}

/* Products of doubles in the larger shapes. */
extern "C" __global__ void
doubles(unsigned *out, const unsigned *in, unsigned n)
{
    double a[8], b[4], c[4], *o = (double *)out + I * 4;

    for (int k = 0; k < 8; k++)
        a[k] = in[I + k * 32] % 1000;
    for (int k = 0; k < 4; k++) {
        b[k] = in[I + k * 32 + 7] % 500 + n % 3;
        c[k] = k;
    }
#if __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, "
                 "{%6}, {%0, %1, %2, %3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a[0]), "d"(a[1]), "d"(b[0]));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]),
                   "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
#endif
    for (int k = 0; k < 4; k++)
        o[k] = c[k] + a[k];
}

/* Matrices of halves to shared memory. */
extern "C" __global__ void
matrices(unsigned *out, const unsigned *in, unsigned n)
{
    __shared__ alignas(16) unsigned s[2][256];
    const unsigned lane = threadIdx.x % 32, at = (unsigned)__cvta_generic_to_shared(s);
    const unsigned row = at + lane * 16;

    for (unsigned k = lane; k < 512; k += 32)
        s[0][k] = n;
    __syncthreads();
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x < 32) {
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
                     "r"(in[lane]), "r"(in[lane + 32]), "r"(in[lane + 64]), "r"(in[lane + 96])
                     : "memory");
        asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(
                         row + 1024),
                     "r"(in[lane]), "r"(in[lane + 5])
                     : "memory");
    }
#endif
    __syncthreads();
    if (threadIdx.x < 32)
        for (unsigned k = lane; k < 512; k += 32)
            out[blockIdx.x * 512 + k] = s[0][k];
}

extern "C" __global__ void
elected(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned leader = 0, is = 0;

#if __CUDA_ARCH__ >= 900
    asm volatile("{\n.reg .pred p;\nelect.sync %0|p, 0xffffffff;\nselp.u32 %1, 1, 0, p;\n}"
                 : "=r"(leader), "=r"(is));
#endif
    out[I] = leader * 2 + is + in[0] * 0 + n * 0;
}

/* The address of a sum is one of shared or global memory. */
extern "C" __global__ void
anywhere(unsigned *out, const unsigned *in, unsigned n)
{
    __shared__ unsigned s[32];
    const unsigned t = threadIdx.x % 32;

    s[t] = 0;
    __syncthreads();

    unsigned *p = in[I] & 1 ? &s[t] : &out[1024 + t];

    atomicAdd(p, in[I]);
    __syncthreads();
    p = in[t] & 2 ? s : out + 1024;
    out[I] = p[(t + n) % 32] * (blockIdx.x == 0);
}
