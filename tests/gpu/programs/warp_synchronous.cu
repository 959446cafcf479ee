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

// Lanes part and meet again before others read; memory is shared, then global.
__global__ void part(const unsigned *in, volatile unsigned *room, unsigned *out)
{
    __shared__ volatile unsigned s[128];
    const int t = threadIdx.x, at = blockIdx.x * 128 + t, warp = at & ~31;
    unsigned v = in[at];

    for (int round = 0; round < 5; round++) {
        if (v & 1) {
            for (unsigned k = 0; k < (v & 7); k++)
                v = v * 5 + k;
            s[t] = v;
        } else {
            s[t] = v + 3;
        }
        v += s[t ^ (1 << round)];
        room[at] = v;
        v ^= room[warp + ((t + round + 1) & 31)];
    }
    out[at] = v;
}

static void part_on_host(const unsigned *in, unsigned *out)
{
    for (int warp = 0; warp < 1 << 16; warp += 32) {
        unsigned v[32], s[32], room[32];

        for (int i = 0; i < 32; i++)
            v[i] = in[warp + i];
        for (int round = 0; round < 5; round++) {
            for (int i = 0; i < 32; i++) {
                if (v[i] & 1) {
                    unsigned first = v[i];

                    for (unsigned k = 0; k < (first & 7); k++)
                        first = first * 5 + k;
                    v[i] = s[i] = first;
                } else {
                    s[i] = v[i] + 3;
                }
            }
            for (int i = 0; i < 32; i++)
                room[i] = v[i] += s[i ^ (1 << round)];
            for (int i = 0; i < 32; i++)
                v[i] ^= room[(i + round + 1) & 31];
        }
        for (int i = 0; i < 32; i++)
            out[warp + i] = v[i];
    }
}

int main()
{
    const int n = 1 << 16;
    static unsigned in[n], got[n], want[n];
    unsigned *d, *e, *room;
    int scans = 0, sums = 0, parts = 0;

    for (int i = 0; i < n; i++)
        in[i] = i * 2654435761u >> 7;
    cudaMalloc(&d, sizeof in);
    cudaMalloc(&e, sizeof in);
    cudaMalloc(&room, sizeof in);
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
    part<<<n / 128, 128>>>(d, room, e);
    cudaMemcpy(got, e, sizeof got, cudaMemcpyDeviceToHost);
    part_on_host(in, want);
    for (int i = 0; i < n; i++)
        parts += got[i] != want[i];
    if (cudaDeviceSynchronize() != cudaSuccess)
        printf("%s\n", cudaGetErrorString(cudaGetLastError()));
    printf("scans: %d wrong\nsums: %d wrong\nparted lanes: %d wrong\n", scans, sums, parts);
    return scans + sums + parts != 0;
}
