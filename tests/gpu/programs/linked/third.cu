/* See first.cu. */
#include <cstdio>

__constant__ int factor = 3;

extern __device__ int total;

static __device__ int
local(int x)
{
    printf("third: local\n");
    return x * x;
}

__device__ int
third(int x)
{
    printf("third: begins\n");
    const int y = local(x) + factor;
    printf("third: ends with %d\n", y);
    return y;
}

__global__ void
last(int *out)
{
    *out = local(total) * factor;
}
