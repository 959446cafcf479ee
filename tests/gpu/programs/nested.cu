/* Kernels that launch kernels (dynamic parallelism, -rdc=true). libcudadevrt is linked in. The
 * program prints the same on every GPU that can do it; its status says whether the calls
 * succeeded. */
#include <cstdio>

__device__ int sum;

__global__ void
child(int depth)
{
    atomicAdd(&sum, depth);
    if (threadIdx.x == 0 && depth < 3)
        child<<<1, 32>>>(depth + 1);
}

__global__ void
parent()
{
    child<<<2, 32>>>(1);
}

int
main()
{
    int out = 0;

    parent<<<1, 1>>>();
    const cudaError_t launched = cudaGetLastError();
    const cudaError_t copied = cudaMemcpyFromSymbol(&out, sum, sizeof out);

    printf("launch: %s, copy: %s, sum %d\n", cudaGetErrorString(launched),
           cudaGetErrorString(copied), out);
    return launched != cudaSuccess || copied != cudaSuccess;
}
