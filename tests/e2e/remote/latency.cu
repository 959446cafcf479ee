/* The shortest program of CUDA's runtime that has a result, for latency.py. */
#include <cstdio>

__global__ void
answer(int *p)
{
    *p = 42;
}

int
main()
{
    int *p = nullptr;
    int got = 0;

    if (cudaMalloc(&p, sizeof *p) != cudaSuccess)
        return 1;
    answer<<<1, 1>>>(p);
    if (cudaMemcpy(&got, p, sizeof got, cudaMemcpyDeviceToHost) != cudaSuccess)
        return 1;
    std::printf("%d\n", got);
    return got != 42;
}
