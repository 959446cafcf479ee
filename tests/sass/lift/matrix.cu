/* Products of matrices of small integers, which no rounding changes. */
#include <cuda_bf16.h>
#include <mma.h>

using namespace nvcuda;

#define WARP (threadIdx.x / 32)

template <class T, class S, int M, int N, int K>
__device__ void
multiply(unsigned *out, const unsigned *in)
{
    __shared__ __align__(128) T a[3][M * K], b[3][K * N];
    __shared__ __align__(128) S c[3][M * N];
    wmma::fragment<wmma::matrix_a, M, N, K, T, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, T, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, M, N, K, S> fc;
    const unsigned w = WARP, lane = threadIdx.x % 32;

    for (unsigned i = lane; i < M * K; i += 32)
        a[w][i] = (T)(float)(int)(in[i + w] % 8);
    for (unsigned i = lane; i < K * N; i += 32)
        b[w][i] = (T)(float)(int)(in[i * 2 + w] % 8);
    __syncwarp();
    wmma::fill_fragment(fc, (S)(float)blockIdx.x);
    wmma::load_matrix_sync(fa, a[w], K);
    wmma::load_matrix_sync(fb, b[w], K);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c[w], fc, N, wmma::mem_row_major);
    __syncwarp();
    for (unsigned i = lane; i < M * N; i += 32)
        out[(blockIdx.x * 3 + w) * M * N + i] = (unsigned)(int)(float)c[w][i];
}

extern "C" __global__ void
halves(unsigned *out, const unsigned *in, unsigned n)
{
    multiply<__half, float, 16, 16, 16>(out, in);
}

extern "C" __global__ void
half_sums(unsigned *out, const unsigned *in, unsigned n)
{
    multiply<__half, __half, 16, 16, 16>(out, in);
}

extern "C" __global__ void
brains(unsigned *out, const unsigned *in, unsigned n)
{
    multiply<__nv_bfloat16, float, 16, 16, 16>(out, in);
}

extern "C" __global__ void
bytes(unsigned *out, const unsigned *in, unsigned n)
{
    multiply<signed char, int, 16, 16, 16>(out, in);
}

extern "C" __global__ void
doubles(unsigned *out, const unsigned *in, unsigned n)
{
    multiply<double, double, 8, 8, 4>(out, in);
}

#define PRODUCT(name, text, d, a, b)                                                               \
    extern "C" __global__ void name(unsigned *out, const unsigned *in, unsigned n)                 \
    {                                                                                              \
        const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;                                  \
        unsigned x[4] = {0, 0, 0, 0}, p[4], q[4];                                                  \
        for (unsigned k = 0; k < 4; k++) {                                                         \
            p[k] = in[i * 4 + k] & (a);                                                            \
            q[k] = in[i * 4 + k + 7] & (b);                                                        \
        }                                                                                          \
        asm volatile(text : "+r"(x[0]), "+r"(x[1]), "+r"(x[2]), "+r"(x[3])                         \
                     : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(q[0]), "r"(q[1]));          \
        for (unsigned k = 0; k < (d); k++)                                                         \
            out[i * 4 + k] = x[k];                                                                 \
    }

PRODUCT(s8_wide,
        "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%0,%1,%2,%3}, "
        "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};",
        4, ~0u, ~0u)
PRODUCT(s4_wide,
        "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};",
        4, ~0u, ~0u)
PRODUCT(u4,
        "mma.sync.aligned.m16n8k32.row.col.s32.u4.s4.s32 {%0,%1,%2,%3}, {%4,%5}, {%8}, "
        "{%0,%1,%2,%3};",
        4, ~0u, ~0u)
PRODUCT(s8_small, "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%4}, {%8}, {%0,%1};", 2,
        ~0u, ~0u)
PRODUCT(bits,
        "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};",
        4, ~0u, ~0u)
PRODUCT(bits_of_both,
        "mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3}, {%4,%5}, {%8}, "
        "{%0,%1,%2,%3};",
        4, ~0u, ~0u)
PRODUCT(bits_small,
        "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc {%0,%1}, {%4}, {%8}, {%0,%1};", 2,
        ~0u, ~0u)
/* 1, 2, 4, ... as TF32: exponents from 1 to 16. */
PRODUCT(tf32,
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};",
        4, 0x40000000, 0x40000000)
PRODUCT(tf32_small,
        "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5}, {%8}, "
        "{%0,%1,%2,%3};",
        4, 0x40000000, 0x40000000)
PRODUCT(half_small,
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%8}, "
        "{%0,%1,%2,%3};",
        4, 0x40004000, 0x40004000)

extern "C" __global__ void
loads(unsigned *out, const unsigned *in, unsigned n)
{
    __shared__ __align__(16) unsigned s[3][128];
    const unsigned w = WARP, lane = threadIdx.x % 32, i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned at = (unsigned)__cvta_generic_to_shared(&s[w][lane * 4]);
    unsigned x[4], y[2], z, t;

    for (unsigned k = 0; k < 4; k++)
        s[w][lane + k * 32] = in[i + k * 32] + n;
    __syncwarp();
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(y[0]), "=r"(y[1])
                 : "r"(at));
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(z) : "r"(at));
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(t) : "r"(z));
    ((uint4 *)out)[i] = make_uint4(x[0], x[1], x[2], x[3]);
    ((uint4 *)(out + 4096))[i] = make_uint4(y[0], y[1], z, t);
}
