/* The example that everybody starts with: copies an array of 32 doubles, 0..31, to the device, adds
 * one to each with a kernel of 32 threads, and copies it back: 1..32. array.c does the same without
 * the CUDA runtime.
 *
 *     nvcc --cudart shared array.cu -o array && heddle run -- ./array
 */
#include <cstdio>
#include <cstdlib>

__global__ void
sum(double *array)
{
    array[threadIdx.x] += 1;
}

static void
check(cudaError_t r, const char *what)
{
    if (r == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s (%d)\n", what, cudaGetErrorString(r), (int)r);
    exit(1);
}

int
main()
{
    double host[32];
    double *device;

    for (int i = 0; i < 32; i++)
        host[i] = i;
    check(cudaMalloc(&device, sizeof host), "cudaMalloc");
    check(cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice), "cudaMemcpy");
    sum<<<1, 32>>>(device);
    check(cudaGetLastError(), "sum");
    check(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost), "cudaMemcpy");
    check(cudaFree(device), "cudaFree");
    for (int i = 0; i < 32; i++)
        printf("%g%c", host[i], i < 31 ? ' ' : '\n');
    return 0;
}
