// The usual first example: adds one to each of 32 doubles on the device, 0..31 become 1..32.
// Built with a static and with a shared runtime.
#include <cstdio>

__global__ void sum(double *a)
{
    a[threadIdx.x] += 1.0;
}

static void check(cudaError_t e, const char *what)
{
    if (e != cudaSuccess) {
        std::printf("%s: %s\n", what, cudaGetErrorString(e));
        std::exit(1);
    }
}

int main()
{
    double host[32];
    double *device = nullptr;

    for (int i = 0; i < 32; i++)
        host[i] = i;
    check(cudaMalloc(&device, sizeof host), "cudaMalloc");
    check(cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice), "cudaMemcpy");
    sum<<<1, 32>>>(device);
    check(cudaGetLastError(), "launch");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost), "cudaMemcpy");
    check(cudaFree(device), "cudaFree");
    for (int i = 0; i < 32; i++)
        std::printf("%g%c", host[i], i == 31 ? '\n' : ' ');

    // The program must get the same error.
    std::printf("%s\n", cudaGetErrorName(cudaMemcpy(device, nullptr, 8, cudaMemcpyHostToDevice)));
    std::printf("%s\n", cudaGetErrorName(cudaMalloc(&device, ~size_t(0) / 2)));
    return 0;
}
