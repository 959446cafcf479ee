/* Conversions and products whose instructions depend on the architecture: numbers of 8 bits,
 * integers to floats, complex halves.
 */
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#define ME (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void
bytes(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned a = in[ME], b = in[ME + 512];
    const float2 two = {__uint_as_float(a), __uint_as_float(b)};
    const __half2_raw halves = {(unsigned short)a, (unsigned short)b};
    const __half2_raw low = __nv_cvt_fp8x2_to_halfraw2((__nv_fp8x2_storage_t)a, __NV_E4M3);
    const __half2_raw high = __nv_cvt_fp8x2_to_halfraw2((__nv_fp8x2_storage_t)(b >> 16), __NV_E5M2);

    out[ME * 6] = __nv_cvt_float2_to_fp8x2(two, __NV_SATFINITE, __NV_E4M3);
    out[ME * 6 + 1] = __nv_cvt_float2_to_fp8x2(two, __NV_SATFINITE, __NV_E5M2);
    out[ME * 6 + 2] = __nv_cvt_halfraw2_to_fp8x2(halves, __NV_SATFINITE, __NV_E4M3);
    out[ME * 6 + 3] = __nv_cvt_halfraw2_to_fp8x2(halves, __NV_SATFINITE, __NV_E5M2);
    out[ME * 6 + 4] = low.x | (unsigned)low.y << 16;
    out[ME * 6 + 5] = high.x | (unsigned)high.y << 16;
}

extern "C" __global__ void
numbers(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned a = in[ME];

    out[ME * 4] = __float_as_uint((float)a);
    out[ME * 4 + 1] = __float_as_uint((float)(int)a);
    out[ME * 4 + 2] = __float_as_uint(__uint2float_rz(a));
    out[ME * 4 + 3] = __float_as_uint((float)n + __int2float_rz((int)a));
}

/* Halves from 1 to 4: no result is a NaN, of which there are several. */
extern "C" __global__ void
complex(unsigned *out, const unsigned *in, unsigned n)
{
    union {
        unsigned u;
        __half2 h;
    } a, b, c;

    a.u = (in[ME] & 0x07ff07ff) | 0x3c003c00;
    b.u = (in[ME + 512] & 0x07ff07ff) | 0x3c003c00;
    c.u = (in[ME + 1024] & 0x07ff07ff) | 0xbc003c00;
    c.h = __hcmadd(a.h, b.h, c.h);
    out[ME] = c.u;
}
