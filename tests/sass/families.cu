/* Kernels with instructions of every family, for the comparison with nvdisasm. They are only
 * compiled, never run.
 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
extern "C" __global__ void
ints(int *p, unsigned *u, long long *q, int n)
{
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    int a = p[i], b = p[i + 1], c = p[i + 2];
    unsigned x = u[i], y = u[i + 1];
    p[0] = a * b + c;
    p[1] = __mulhi(a, b);
    p[2] = abs(a);
    p[3] = min(a, b);
    u[4] = max(x, y);
    p[5] = __popc(a);
    p[6] = __clz(b);
    p[7] = __brev(c);
    p[8] = __byte_perm(a, b, c);
    u[9] = __funnelshift_l(x, y, a);
    p[10] = a >> b;
    p[11] = (a & b) | ~c;
    p[12] = a / b;
    u[13] = x % 7;
    q[0] += q[1] * n;
    q[2] = q[3] < q[4] ? q[5] : q[6];
    q[7] = q[8] >> a;
    p[14] = __dp4a(a, b, c);
    p[15] = __ffs(a);
    q[9] = (long long)a * b + q[10];
    u[16] = x << 5 | y >> 27;
    p[17] = (a < 3 && b > n) || c == 7;
    u[18] = __sad(a, b, x);
    p[20] = __vadd4(x, y);
}

extern "C" __global__ void
floats(float *f, double *d, int n)
{
    int i = threadIdx.x;
    float a = f[i], b = f[i + 1], c = f[i + 2];
    double x = d[i], y = d[i + 1];
    f[0] = fmaf(a, b, c);
    f[1] = __fadd_rz(a, -b);
    f[2] = __fmul_ru(a, fabsf(b));
    f[3] = fminf(a, b);
    f[4] = a > b ? -c : c;
    f[5] = rsqrtf(a);
    f[6] = __sinf(b);
    f[7] = exp2f(c);
    f[8] = floorf(a);
    f[9] = a / b;
    f[10] = sqrtf(c);
    d[0] = fma(x, y, 3.0);
    d[1] = x + y;
    d[2] = x * 0.5;
    d[3] = fmax(x, y);
    d[4] = x / y;
    d[5] = sqrt(x);
    d[6] = floor(y);
    f[11] = (float)x;
    d[7] = a;
    f[12] = n;
    d[8] = n;
    ((int *)f)[13] = (int)a;
    ((long long *)d)[9] = (long long)y;
    ((unsigned char *)f)[99] = (unsigned char)a;
    f[14] = ((short *)f)[n];
    f[15] = __saturatef(a * b);
    f[16] = 1e20f * a + 1.0e-8f;
    f[17] = (a == b) ? 1.0f : 0.0f;
    f[18] = logf(a);
    f[19] = isnan(a) ? INFINITY : b;
}

extern "C" __global__ void
halves(half2 *h, __nv_bfloat162 *b, float *f, half *s)
{
    int i = threadIdx.x;
    half2 x = h[i], y = h[i + 1], z = h[i + 2];
    h[0] = __hfma2(x, y, z);
    h[1] = __hadd2(x, y);
    h[2] = __hmul2(x, y);
    h[3] = __hmax2(x, y);
    h[4] = __hgt2(x, y);
    f[0] = __low2float(x);
    f[1] = __high2float(y);
    h[5] = __floats2half2_rn(f[2], f[3]);
    b[0] = __hfma2(b[1], b[2], b[3]);
    b[4] = __floats2bfloat162_rn(f[4], f[5]);
    s[9] = __hlt(s[1], s[2]) ? s[3] : s[4];
    h[6] = __hfma2_relu(x, y, z);
    h[7] = __hfma2(x, __float2half2_rn(0.5f), z);
    s[11] = hrcp(s[1]);
    b[9] = __hmax2(b[1], b[2]);
    s[13] = __int2half_rn(i);
    s[20] = hexp2(s[21]);
}

extern "C" __global__ void
mem(int *p, float *f, volatile int *v, const int *__restrict__ r, double *d)
{
    __shared__ int s[256];
    __shared__ double t[64];
    int l[32];
    int i = threadIdx.x;
    s[i] = p[i];
    for (int k = 0; k < 32; k++)
        l[k] = r[k * i];
    __syncthreads();
    p[1] = l[s[i] & 31];
    atomicAdd(p, 1);
    atomicAdd(f, 1.0f);
    int o = atomicCAS(p + 2, 1, 2);
    p[3] = o;
    atomicMax(s + i, 5);
    p[4] = atomicExch(p + 5, 3);
    t[i & 63] = d[i];
    v[0] = v[1];
    __threadfence();
    __threadfence_system();
    p[6] = ((signed char *)p)[i];
    ((short *)p)[i] = p[7];
    *(int4 *)(p + 8) = *(int4 *)(p + 16);
    p[20] = (int)t[(i + 1) & 63];
    atomicAdd(d, 1.0);
    p[30] = atomicCAS(s + 3, 1, 2);
    p[22] = __isShared(p);
    p[23] = s[i + 1];
    __prof_trigger(1);
    atomicAdd_system(p + 4, 2);
    unsigned sp = __cvta_generic_to_shared(s);
    asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(sp), "l"(p));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 0;");
    __syncthreads();
    p[40] = s[i];
}

extern "C" __global__ void
warp(int *p, unsigned *u, int n)
{
    int i = threadIdx.x;
    int a = p[i];
    p[0] = __shfl_sync(~0u, a, n);
    p[1] = __shfl_xor_sync(~0u, a, 1);
    p[2] = __shfl_up_sync(~0u, a, 2);
    u[0] = __ballot_sync(~0u, a > 3);
    p[3] = __any_sync(~0u, a);
    p[4] = __all_sync(~0u, a);
    u[1] = __match_any_sync(~0u, a);
    int pr;
    u[2] = __match_all_sync(~0u, a, &pr);
    p[5] = pr;
    p[6] = __reduce_add_sync(~0u, a);
    u[3] = __activemask();
    p[7] = __syncthreads_or(a);
    p[8] = __syncthreads_count(a);
    __syncwarp(n);
    u[5] = clock();
    u[6] = clock64();
    __nanosleep(100);
    if (a == 4)
        __trap();
    asm volatile("bar.sync 1, 64;");
    asm volatile("bar.arrive 2, 64;");
    unsigned lm;
    asm("mov.u32 %0,%%lanemask_lt;" : "=r"(lm));
    u[9] = lm;
    while (atomicAdd(p, 1) < n) {
        if (p[i] == 7)
            break;
        __syncwarp();
    }
    u[20] = i;
}

extern "C" __global__ void
matrix(half *h, float *f, int *p, double *d)
{
    using namespace nvcuda;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::load_matrix_sync(a, h, 16);
    wmma::load_matrix_sync(b, h, 16);
    wmma::fill_fragment(c, 0.f);
    wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(f, c, 16, wmma::mem_row_major);
    __shared__ int s[256];
    unsigned sp = __cvta_generic_to_shared(s) + threadIdx.x * 16;
    int x, y, z, w;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
                 : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
                 : "r"(sp));
    int c0 = 0, c1 = 0, c2 = 0, c3 = 0;
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+r"(c0), "+r"(c1), "+r"(c2), "+r"(c3)
        : "r"(x), "r"(y), "r"(z), "r"(w), "r"(x), "r"(y));
    p[threadIdx.x] = c0 + c1 + c2 + c3;
    double e = d[0], g = d[1];
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1},{%2},{%3},{%0,%1};"
                 : "+d"(e), "+d"(g)
                 : "d"(d[2]), "d"(d[3]));
    d[0] = e + g;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0,%1;" : "=r"(x) : "r"(y));
    p[1] = x;
}

extern "C" __global__ void
uniform(int *p, int n, long long m, const float *q, int k)
{
    int s = 0;
    for (int i = blockIdx.x * n; i < k; i += n * 3 + 1) {
        s += p[i] * (n > 3 ? n : 7) + (n >> 2) + (n & k);
        if (n % 5 == k)
            s ^= k << n;
    }
    p[blockIdx.x] = s + (int)m + __popc(n) + __clz(k) + max(n, k);
    p[1] = q[n] * 3.f > 1.f;
    if (m > n)
        p[m] = 1;
}
