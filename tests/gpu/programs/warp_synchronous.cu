// Code of old style: lanes of a warp read what others wrote just before, without a barrier, because
// memory is volatile and lanes run together.
#include <cstdio>

__device__ unsigned scan_warp(unsigned value, volatile unsigned *s, int levels)
{
    const int t = threadIdx.x;
    int at = 2 * t - (t & 31);

    s[at] = 0;
    at += 32;
    s[at] = value;
    if (0 <= levels)
        s[at] += s[at - 1];
    if (1 <= levels)
        s[at] += s[at - 2];
    if (2 <= levels)
        s[at] += s[at - 4];
    if (3 <= levels)
        s[at] += s[at - 8];
    if (4 <= levels)
        s[at] += s[at - 16];
    return s[at] - value;
}

__global__ void scan(const unsigned *in, unsigned *out)
{
    __shared__ unsigned s[512];
    const unsigned v = in[blockIdx.x * blockDim.x + threadIdx.x], r = scan_warp(v, s, 4);

    __syncthreads();
    if ((threadIdx.x & 31) == 31)
        s[threadIdx.x >> 5] = r + v;
    __syncthreads();
    if (threadIdx.x < 32)
        s[threadIdx.x] = scan_warp(s[threadIdx.x], s, 2);
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = r + s[threadIdx.x >> 5];
}

// The last steps of a reduction, as NVIDIA's samples had them for years.
__global__ void reduce(const unsigned *in, unsigned *out)
{
    __shared__ volatile unsigned s[128];
    const int t = threadIdx.x;

    s[t] = in[blockIdx.x * 128 + t];
    __syncthreads();
    if (t < 64)
        s[t] = s[t] + s[t + 64];
    __syncthreads();
    if (t < 32) {
        s[t] = s[t] + s[t + 32];
        s[t] = s[t] + s[t + 16];
        s[t] = s[t] + s[t + 8];
        s[t] = s[t] + s[t + 4];
        s[t] = s[t] + s[t + 2];
        s[t] = s[t] + s[t + 1];
    }
    if (t == 0)
        out[blockIdx.x] = s[0];
}

int main()
{
    const int n = 1 << 16;
    static unsigned in[n], got[n], want[n];
    unsigned *d, *e;
    int scans = 0, sums = 0;

    for (int i = 0; i < n; i++)
        in[i] = i * 2654435761u >> 7;
    cudaMalloc(&d, sizeof in);
    cudaMalloc(&e, sizeof in);
    cudaMemcpy(d, in, sizeof in, cudaMemcpyHostToDevice);
    scan<<<n / 128, 128>>>(d, e);
    cudaMemcpy(got, e, sizeof got, cudaMemcpyDeviceToHost);
    for (int b = 0; b < n; b += 128) {
        unsigned sum = 0;

        for (int i = b; i < b + 128; i++) {
            scans += got[i] != sum;
            sum += in[i];
        }
        want[b / 128] = sum;
    }
    reduce<<<n / 128, 128>>>(d, e);
    cudaMemcpy(got, e, sizeof got, cudaMemcpyDeviceToHost);
    for (int b = 0; b < n / 128; b++)
        sums += got[b] != want[b];
    if (cudaDeviceSynchronize() != cudaSuccess)
        printf("%s\n", cudaGetErrorString(cudaGetLastError()));
    printf("scans: %d wrong\nsums: %d wrong\n", scans, sums);
    return scans + sums != 0;
}
