// Differences of 64 bits in halves, where what is subtracted may be 0: the borrow is a carry then.
#include <cstdio>

__global__ void ladder(long long *out, long long length, long long n)
{
    const long long t = threadIdx.x;
    long long last = -1;

    for (auto step = length; step > 0; step >>= 1) {
        const auto low = t & (step - 1), i = (t << 1) - low;

        if (i + step < n)
            last = i;
        __syncthreads();
    }
    out[t] = last;
}

int main()
{
    long long *d, got[64];
    int bad = 0;

    cudaMalloc(&d, sizeof got);
    ladder<<<1, 64>>>(d, 4, 16);
    cudaMemcpy(got, d, sizeof got, cudaMemcpyDeviceToHost);
    for (int t = 0; t < 64; t++) {
        long long want = -1;

        for (long long step = 4; step > 0; step >>= 1) {
            const long long i = (t << 1) - (t & (step - 1));

            if (i + step < 16)
                want = i;
        }
        bad += got[t] != want;
    }
    printf("%d wrong\n", bad);
    return bad != 0;
}
