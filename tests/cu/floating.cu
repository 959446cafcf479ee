/* Floating point: every rounding mode, fused, flushing and saturating forms, comparisons with NaN,
 * minima, the library's functions; f32, f64, f16, bf16. Only results that are defined to the last
 * bit, or rounded coarsely enough that any permitted approximation gives the same.
 */
#include "run.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

__constant__ unsigned floats[16] = {0x00000000, 0x80000000, 0x3f800000, 0xbf800000,
                                    0x00000001, 0x807fffff, 0x00800000, 0x7f7fffff,
                                    0x7f800000, 0xff800000, 0x3eaaaaab, 0xc2f6e979,
                                    0x4b7fffff, 0x34000000, 0x3fffffff, 0x7fc00000};

#define FA __uint_as_float(floats[ME / 16])
#define FB __uint_as_float(floats[ME % 16])

/* All NaNs count as one, since the payload depends on the processor. */
__device__ static unsigned
bits(float f)
{
    return f != f ? 0x7fffffff : __float_as_uint(f);
}

__device__ static void
put(unsigned *out, double d)
{
    const unsigned long long u = (unsigned long long)__double_as_longlong(d);

    out[0] = d != d ? 0x7fffffff : (unsigned)(u >> 32);
    out[1] = d != d ? 0xffffffff : (unsigned)u;
}

KERNEL(add)
{
    out[ME] = bits(__fadd_rn(FA, FB));
    out[256 + ME] = bits(__fadd_rz(FA, FB));
    out[512 + ME] = bits(__fadd_ru(FA, FB));
    out[768 + ME] = bits(__fadd_rd(FA, FB));
}

KERNEL(multiply)
{
    out[ME] = bits(__fmul_rn(FA, FB));
    out[256 + ME] = bits(__fmul_rz(FA, FB));
    out[512 + ME] = bits(__fmul_ru(FA, FB));
    out[768 + ME] = bits(__fmul_rd(FA, FB));
}

KERNEL(fused)
{
    out[ME] = bits(__fmaf_rn(FA, FB, FA));
    out[256 + ME] = bits(__fmaf_rz(FA, FB, FA));
    out[512 + ME] = bits(__fmaf_ru(FA, FB, FB));
    out[768 + ME] = bits(__fmaf_rd(FA, FB, -FB));
}

KERNEL(divide)
{
    out[ME] = bits(__fdiv_rn(FA, FB));
    out[256 + ME] = bits(__fdiv_rz(FA, FB));
    out[512 + ME] = bits(__fdiv_ru(FA, FB));
    out[768 + ME] = bits(__fdiv_rd(FA, FB));
}

KERNEL(roots)
{
    const float a = fabsf(FA);

    out[ME] = bits(__fsqrt_rn(a)) ^ bits(__frcp_rn(FB));
    out[256 + ME] = bits(__fsqrt_rz(a)) ^ bits(__frcp_rz(FB));
    out[512 + ME] = bits(__fsqrt_ru(a)) ^ bits(__frcp_ru(FB));
    out[768 + ME] = bits(__fsqrt_rd(a)) ^ bits(__frcp_rd(FB));
}

KERNEL(flushing)
{
    float a;
    float m;
    float f;
    float s;

    asm("add.ftz.f32 %0, %1, %2;" : "=f"(a) : "f"(FA), "f"(FB));
    asm("mul.rn.ftz.f32 %0, %1, %2;" : "=f"(m) : "f"(FA), "f"(FB));
    asm("fma.rn.ftz.f32 %0, %1, %2, %1;" : "=f"(f) : "f"(FA), "f"(FB));
    asm("add.sat.f32 %0, %1, %2;" : "=f"(s) : "f"(FA), "f"(FB));
    out[ME] = bits(a);
    out[256 + ME] = bits(m);
    out[512 + ME] = bits(f);
    out[768 + ME] = bits(s);
}

KERNEL(compare)
{
    float m;
    float x;

    asm("min.NaN.f32 %0, %1, %2;" : "=f"(m) : "f"(FA), "f"(FB));
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(FA), "f"(FB));
    out[ME] = (FA < FB) | (FA <= FB) << 1 | (FA == FB) << 2 | (FA != FB) << 3 | !(FA < FB) << 4 |
              !(FA >= FB) << 5 | isnan(FA) << 6 | isinf(FB) << 7 | signbit(FA) << 8;
    out[256 + ME] = bits(fminf(FA, FB));
    out[512 + ME] = bits(fmaxf(FA, FB));
    out[768 + ME] = bits(m) ^ bits(x);
}

KERNEL(parts)
{
    out[ME] = bits(truncf(FA)) ^ bits(ceilf(FB));
    out[256 + ME] = bits(floorf(FA)) ^ bits(rintf(FB));
    out[512 + ME] = bits(copysignf(FA, FB)) ^ bits(fabsf(FA));
    out[768 + ME] = bits(fmodf(FA, FB));
}

KERNEL(doubles)
{
    const double a = FA * 1.0000000001;
    const double b = FB * 0.3;

    put(out + 2 * ME, __dadd_rn(a, b));
    put(out + 512 + 2 * ME, __dadd_ru(a, b));
    put(out + 1024 + 2 * ME, __dmul_rz(a, b));
    put(out + 1536 + 2 * ME, __dmul_rd(a, b));
    put(out + 2048 + 2 * ME, __fma_rn(a, b, a));
    put(out + 2560 + 2 * ME, __ddiv_rn(a, b));
    put(out + 3072 + 2 * ME, __dsqrt_rn(fabs(a)));
    put(out + 3584 + 2 * ME, fmin(a, b));
}

/* Six digits of well-behaved arguments, which every approximation must get right. */
KERNEL(functions)
{
    const float x = 0.05f + 0.11f * (float)ME;
    const double d = 0.05 + 0.11 * (double)ME;

    out[ME * 8] = (unsigned)(int)rintf(sinf(x) * 10000.f);
    out[ME * 8 + 1] = (unsigned)(int)rintf(expf(x * 0.1f) * 1000.f);
    out[ME * 8 + 2] = (unsigned)(int)rintf(logf(x) * 10000.f);
    out[ME * 8 + 3] = (unsigned)(int)rintf(powf(x, 0.7f) * 1000.f);
    out[ME * 8 + 4] = (unsigned)(int)rint(cos(d) * 1e8);
    out[ME * 8 + 5] = (unsigned)(int)rint(exp(d * 0.1) * 1e5);
    out[ME * 8 + 6] = (unsigned)(int)rint(atan2(d, 2.0) * 1e8);
    out[ME * 8 + 7] = (unsigned)(int)rint(cbrt(d) * 1e7);
}

__device__ static unsigned
half_bits(__half h)
{
    return __hisnan(h) ? 0x7fff : __half_as_ushort(h);
}

__device__ static unsigned
bf16_bits(__nv_bfloat16 h)
{
    return __hisnan(h) ? 0x7fff : __bfloat16_as_ushort(h);
}

KERNEL(halves)
{
    const __half a = __float2half_rn(FA);
    const __half b = __float2half_rz(FB);

    out[ME] = half_bits(__hadd_rn(a, b)) | half_bits(__hmul_rn(a, b)) << 16;
    out[256 + ME] = half_bits(__hfma(a, b, a)) | half_bits(__hfma_relu(a, b, b)) << 16;
    out[512 + ME] = half_bits(__hmin(a, b)) | half_bits(__hmax_nan(a, b)) << 16;
    out[768 + ME] = (unsigned)__hlt(a, b) | (unsigned)__hgeu(a, b) << 1 |
                    half_bits(__hadd_sat(a, b)) << 16;
}

KERNEL(brains)
{
    const __nv_bfloat16 a = __float2bfloat16_rn(FA);
    const __nv_bfloat16 b = __float2bfloat16_rd(FB);

    out[ME] = bf16_bits(__hadd_rn(a, b)) | bf16_bits(__hmul_rn(a, b)) << 16;
    out[256 + ME] = bf16_bits(__hfma(a, b, a)) | bf16_bits(__hfma_relu(a, b, b)) << 16;
    out[512 + ME] = bf16_bits(__hmin(a, b)) | bf16_bits(__hmax_nan(a, b)) << 16;
}

RUNS(
    RUN(add, 4, 64, 0, 1024),
    RUN(multiply, 4, 64, 0, 1024),
    RUN(fused, 4, 64, 0, 1024),
    RUN(divide, 4, 64, 0, 1024),
    RUN(roots, 4, 64, 0, 1024),
    RUN(flushing, 4, 64, 0, 1024),
    RUN(compare, 4, 64, 0, 1024),
    RUN(parts, 4, 64, 0, 1024),
    RUN(doubles, 4, 64, 0, 4096),
    RUN(functions, 1, 32, 0, 256),
    RUN(halves, 4, 64, 0, 1024),
    RUN(brains, 4, 64, 0, 768))
