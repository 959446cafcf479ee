/* Kernels with calls, returns, tables of branches and loops, for the comparison with nvdisasm. */
#include <cstdio>
__device__ __noinline__ float
slow(float x, int n)
{
    float s = 0;
    for (int i = 0; i < n; i++)
        s += sinf(x * i) / x;
    return s;
}

__device__ int table[4] = {1, 2, 3, 4};
extern "C" __global__ void
one(float *p, int n)
{
    __shared__ float s[64];
    int i = threadIdx.x;
    s[i & 63] = p[i];
    __syncthreads();
    if (n > 3)
        p[i] = slow(s[(i + 1) & 63], n);
    else
        printf("%d\n", table[n]);
    switch (n) {
    case 0:
        p[1] = 2;
        break;
    case 1:
        p[2] = 3;
        break;
    case 2:
        p[5] = n;
        break;
    case 3:
        p[7] = sqrtf(n);
        break;
    case 4:
        p[8] = __fdividef(p[2], p[3]);
        break;
    case 5:
        atomicAdd(p, 1.f);
        break;
    case 6:
        p[9] = __shfl_xor_sync(~0u, p[1], 3);
        break;
    }
}

extern "C" __global__ void
two(double *p, long long n)
{
    if (p[0] < n)
        p[n] = p[n + 1] * 3.0;
}
