/* A program of two parts (-DPART=1, -DPART=2) that call each other's device functions and share
 * variables, on a GPU that is elsewhere. Checks itself. */
#include <cstdio>

#if PART == 2

__device__ int total = 7;
__constant__ int factor = 3;

__device__ int
scaled(int x)
{
    return x * factor + total;
}

#else

extern __device__ int total;
extern __constant__ int factor;
extern __device__ int scaled(int x);

__global__ void
run(int *out)
{
    out[threadIdx.x] = scaled((int)threadIdx.x);
}

static bool
is(const int *out, int f, int t)
{
    for (int i = 0; i < 32; i++)
        if (out[i] != i * f + t)
            return printf("%d: %d, not %d\n", i, out[i], i * f + t), false;
    return true;
}

int
main()
{
    int *device, out[32];
    const int five = 5, ten = 10;
    int back = 0;

    if (cudaMalloc(&device, sizeof out) != cudaSuccess)
        return 1;
    run<<<1, 32>>>(device);
    if (cudaMemcpy(out, device, sizeof out, cudaMemcpyDeviceToHost) != cudaSuccess ||
        !is(out, 3, 7))
        return 2;
    if (cudaMemcpyToSymbol(factor, &five, sizeof five) != cudaSuccess ||
        cudaMemcpyToSymbol(total, &ten, sizeof ten) != cudaSuccess)
        return 3;
    run<<<1, 32>>>(device);
    if (cudaMemcpy(out, device, sizeof out, cudaMemcpyDeviceToHost) != cudaSuccess ||
        !is(out, 5, 10))
        return 4;
    if (cudaMemcpyFromSymbol(&back, total, sizeof back) != cudaSuccess || back != 10)
        return 5;
    return 0;
}

#endif
