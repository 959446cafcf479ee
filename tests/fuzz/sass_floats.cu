/* Machine code of floats, halves, a matrix and a call, for fuzz_sass. */
#include <cstdio>
#include <cuda_fp16.h>

extern "C" __global__ void
floats(float *out, const float *in, double d, __half2 *h)
{
    const unsigned i = threadIdx.x, *p = (const unsigned *)in;
    unsigned x[4] = {0, 0, 0, 0};

    out[i] = sqrtf(in[i]) / in[i + 1] + (float)(d * in[2]);
    h[i] = __hfma2(h[i], h[i + 1], h[i + 2]);
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                 "{%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(x[0]), "+r"(x[1]), "+r"(x[2]), "+r"(x[3])
                 : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(p[4]), "r"(p[5]));
    ((uint4 *)out)[i + 9] = make_uint4(x[0], x[1], x[2], x[3]);
    if (in[5] > 3)
        printf("%f\n", d);
}
