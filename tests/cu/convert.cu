/* Conversions: float to integer and back with every rounding, out of range and NaN; between widths;
 * f16 and bf16; bit patterns.
 */
#include "run.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

__constant__ unsigned floats[32] = {
    0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x3f000000, 0xbf000000, 0x3fc00000, 0xbfc00000,
    0x40200000, 0xc0200000, 0x00000001, 0x80000001, 0x4f000000, 0xcf000000, 0x4effffff, 0x4f800000,
    0x5f000000, 0xdf000000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x477fe000,
    0x477ff000, 0x33800000, 0x387fc000, 0x38800000, 0x43000000, 0xc3008000, 0x47000000, 0x3f7fffff};

#define F __uint_as_float(floats[ME])

KERNEL(to_int)
{
    out[ME] = (unsigned)__float2int_rn(F);
    out[32 + ME] = (unsigned)__float2int_rz(F);
    out[64 + ME] = (unsigned)__float2int_ru(F);
    out[96 + ME] = (unsigned)__float2int_rd(F);
    out[128 + ME] = __float2uint_rn(F);
    out[160 + ME] = __float2uint_rz(F);
    out[192 + ME] = __float2uint_ru(F);
    out[224 + ME] = __float2uint_rd(F);
}

KERNEL(to_long)
{
    const long long a = __float2ll_rn(F);
    const unsigned long long b = __float2ull_rz(F);
    const long long c = __double2ll_ru((double)F * 1.5);
    const unsigned long long d = __double2ull_rd((double)F * 1.5);

    out[ME] = (unsigned)a;
    out[32 + ME] = (unsigned)((unsigned long long)a >> 32);
    out[64 + ME] = (unsigned)b;
    out[96 + ME] = (unsigned)(b >> 32);
    out[128 + ME] = (unsigned)c;
    out[160 + ME] = (unsigned)((unsigned long long)c >> 32);
    out[192 + ME] = (unsigned)d;
    out[224 + ME] = (unsigned)(d >> 32);
}

/* Saturation to narrow integers. */
KERNEL(to_narrow)
{
    int a;
    int b;
    int c;
    int d;

    asm("{.reg .s16 t; cvt.rni.sat.s8.f32 t, %1; cvt.s32.s16 %0, t;}" : "=r"(a) : "f"(F));
    asm("{.reg .u16 t; cvt.rzi.sat.u8.f32 t, %1; cvt.u32.u16 %0, t;}" : "=r"(b) : "f"(F));
    asm("{.reg .s16 t; cvt.rmi.sat.s16.f32 t, %1; cvt.s32.s16 %0, t;}" : "=r"(c) : "f"(F));
    asm("{.reg .u16 t; cvt.rpi.sat.u16.f32 t, %1; cvt.u32.u16 %0, t;}" : "=r"(d) : "f"(F));
    out[ME] = (unsigned)a;
    out[32 + ME] = (unsigned)b;
    out[64 + ME] = (unsigned)c;
    out[96 + ME] = (unsigned)d;
}

KERNEL(from_int)
{
    const unsigned u = floats[ME] * 3 + 1;
    const unsigned long long w = ((unsigned long long)u << 31) + u;

    out[ME] = __float_as_uint(__int2float_rn((int)u));
    out[32 + ME] = __float_as_uint(__int2float_rz((int)u));
    out[64 + ME] = __float_as_uint(__uint2float_ru(u));
    out[96 + ME] = __float_as_uint(__uint2float_rd(u));
    out[128 + ME] = __float_as_uint(__ll2float_rn((long long)w));
    out[160 + ME] = __float_as_uint(__ull2float_rz(w));
    out[192 + ME] = (unsigned)(__double_as_longlong(__ull2double_ru(w)));
    out[224 + ME] = (unsigned)(__double_as_longlong(__ll2double_rd((long long)w)));
}

__device__ static unsigned
half_bits(__half h)
{
    return __hisnan(h) ? 0x7fff : __half_as_ushort(h);
}

KERNEL(halves)
{
    const __half h = __ushort_as_half((unsigned short)(floats[ME] >> 12));
    const float f = __half2float(h);
    const __nv_bfloat16 b = __float2bfloat16_rn(F);

    out[ME] = half_bits(__float2half_rn(F)) | half_bits(__float2half_rz(F)) << 16;
    out[32 + ME] = half_bits(__float2half_ru(F)) | half_bits(__float2half_rd(F)) << 16;
    out[64 + ME] = f != f ? 0x7fffffff : __float_as_uint(f);
    out[96 + ME] = __hisnan(b) ? 0x7fff : __bfloat16_as_ushort(b);
    out[128 + ME] = (unsigned)__half2int_rn(h);
    out[160 + ME] = (unsigned)__half2uint_rz(h);
    out[192 + ME] = half_bits(__int2half_rn((int)floats[ME]));
    out[224 + ME] = half_bits(__double2half((double)F));
}

KERNEL(doubles)
{
    const double d = (double)F * 1.0000000123;

    out[ME] = __float_as_uint(__double2float_rn(d)) & (d != d ? 0u : ~0u);
    out[32 + ME] = __float_as_uint(__double2float_rz(d)) & (d != d ? 0u : ~0u);
    out[64 + ME] = __float_as_uint(__double2float_ru(d)) & (d != d ? 0u : ~0u);
    out[96 + ME] = __float_as_uint(__double2float_rd(d)) & (d != d ? 0u : ~0u);
    out[128 + ME] = (unsigned)__double2int_rn(d);
    out[160 + ME] = __double2uint_rz(d);
    out[192 + ME] = (unsigned)__double2hiint(d) & (d != d ? 0u : ~0u);
    out[224 + ME] = (unsigned)__double2loint(d) & (d != d ? 0u : ~0u);
}

KERNEL(widths)
{
    const unsigned u = floats[ME] ^ (floats[ME] >> 9);

    out[ME] = (unsigned)(int)(signed char)u;
    out[32 + ME] = (unsigned)(int)(short)u;
    out[64 + ME] = (unsigned)((long long)(int)u >> 20);
    out[96 + ME] = (unsigned)(unsigned char)u | (unsigned)(unsigned short)u << 8;
}

RUNS(
    RUN(to_int, 1, 32, 0, 256),
    RUN(to_long, 1, 32, 0, 256),
    RUN(to_narrow, 1, 32, 0, 128),
    RUN(from_int, 1, 32, 0, 256),
    RUN(halves, 1, 32, 0, 256),
    RUN(doubles, 1, 32, 0, 256),
    RUN(widths, 1, 32, 0, 128))
