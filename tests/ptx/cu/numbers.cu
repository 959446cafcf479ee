/* Halves, bfloats, fp8, doubles, and most functions of libm. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

__global__ void
halves(__half *h, __half2 *v, float *f, int *i)
{
    h[0] = __hadd(h[1], h[2]) * h[3] - h[4] / h[5];
    h[1] = __hfma(h[2], h[3], h[4]) + hsqrt(h[5]) + hexp(h[6]) + hlog2(h[7]) + hsin(h[8]);
    v[0] = __hfma2(v[1], v[2], v[3]) + h2rcp(v[4]) + __hmax2(v[5], v[6]) + __hmin2_nan(v[1], v[2]);
    v[1] = __hfma2_relu(v[2], v[3], v[4]) + __hadd2_sat(v[5], v[6]);
    i[0] = __half2int_rn(h[0]) + __half2uint_rz(h[1]) + (int)__hgt(h[2], h[3]) + __hbequ2(v[0], v[1]);
    f[0] = __half2float(h[4]) + __low2float(v[0]);
    h[2] = __float2half_rd(f[1]) + __int2half_ru(i[1]) + __ull2half_rn(i[2]) + htanh_approx(h[3]);
    atomicAdd(h, h[1]);
    atomicAdd(v, v[1]);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
__global__ void
bfloats(__nv_bfloat16 *h, __nv_bfloat162 *v, float *f, double *d)
{
    h[0] = __hadd(h[1], h[2]) * h[3] - h[4] / h[5] + hsqrt(h[5]) + hexp2(h[1]) + hcos(h[2]);
    v[0] = __hfma2(v[1], v[2], v[3]) + __hmax2(v[5], v[6]) + __hneg2(v[4]) + __habs2(v[3]);
    h[1] = __float2bfloat16(f[0]) + __double2bfloat16(d[0]) + (__nv_bfloat16)(int)f[1];
    v[1] = __floats2bfloat162_rn(f[1], f[2]);
    f[3] = __bfloat162float(h[3]) + (float)(long long)h[4];
    atomicAdd(h, h[1]);
    atomicAdd(v, v[1]);
}
#endif

__global__ void
fp8(__nv_fp8_e4m3 *a, __nv_fp8x2_e5m2 *b, __nv_fp8x4_e4m3 *c, float4 *f, __half2 *h)
{
    a[0] = __nv_fp8_e4m3(f[0].x);
    b[0] = __nv_fp8x2_e5m2(make_float2(f[1].x, f[1].y));
    c[0] = __nv_fp8x4_e4m3(f[2]);
    f[3].x = (float)a[1];
    f[4] = (float4)c[1];
    h[0] = (__half2)b[1];
}

__global__ void
floats(float *f, double *d, long long *l, unsigned *u)
{
    f[0] = sinf(f[0]) + cosf(f[1]) + tanf(f[2]) + expf(f[3]) + logf(f[4]) + powf(f[5], f[6]);
    f[1] = __fadd_rz(f[0], f[1]) + __fmul_ru(f[2], f[3]) + __fmaf_rd(f[1], f[2], f[3]) +
           __fdiv_rn(f[4], f[5]) + __frcp_ru(f[6]) + __fsqrt_rd(f[7]) + __frsqrt_rn(f[8]);
    f[2] = __sinf(f[0]) + __expf(f[1]) + __logf(f[2]) + __fdividef(f[3], f[4]) + rsqrtf(f[5]) +
           tanhf(f[6]) + erff(f[7]) + lgammaf(f[8]) + j0f(f[9]) + __saturatef(f[1]) + fmodf(f[1], f[2]);
    d[0] = sin(d[0]) + pow(d[1], d[2]) + exp(d[3]) + log(d[4]) + sqrt(d[5]) + cbrt(d[6]) +
           tgamma(d[7]) + __dadd_ru(d[0], d[1]) + __ddiv_rd(d[2], d[3]) + remainder(d[4], d[5]);
    l[0] = __double2ll_rn(d[0]) + __float2ll_rd(f[0]) + __mul64hi(l[1], l[2]) + l[3] / l[4] % l[5] +
           __double_as_longlong(d[1]) + __float2ull_ru(f[2]);
    u[0] = __float_as_uint(f[0]) + __double2hiint(d[0]) + isnan(f[1]) + isinf(d[2]) + signbit(f[3]) +
           __float2uint_rn(f[4]) + (unsigned char)f[5] + (short)d[3];
    f[3] = __ll2float_rz(l[0]) + __uint2float_ru(u[1]) + copysignf(f[1], f[2]) + fmaxf(f[1], f[2]) +
           fminf(f[3], f[4]) + nearbyintf(f[5]) + ceilf(f[6]) + truncf(f[7]) + __hiloint2double(1, 2);
}
