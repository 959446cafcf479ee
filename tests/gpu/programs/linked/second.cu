/* See first.cu. */
#include <cstdio>

__device__ int total = 7;

extern __device__ int third(int x);

static __device__ int
local(int x)
{
    printf("second: local\n");
    return 2 * x;
}

__device__ int
second(int x)
{
    printf("second: begins\n");
    const int y = third(local(x));
    printf("second: ends with %d\n", y);
    return y;
}
