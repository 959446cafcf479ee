// Several constants of different sizes and alignments in one bank, filled by name and read by an
// index, so that machine code has their places only as numbers in registers.
#include <cstdio>

template <typename T> __constant__ T table[10];
__constant__ signed char odd[3];
__constant__ signed char odder[7];
__constant__ unsigned short tail[5];
__constant__ int one, two;
struct pair {
    char tag;
    double value;
};
__constant__ pair pairs[3];

template <typename T> __global__ void weigh(const T *in, T *out, int n, int width)
{
    const int i = threadIdx.x + blockIdx.x * blockDim.x, first = i - width / 2;
    T sum = 0;

    for (int j = 0; j < width; j++)
        if (first + j >= 0 && first + j < n)
            sum += in[first + j] * table<T>[j];
    out[i] = sum;
}

__global__ void mix(long long *out, int shift)
{
    const int i = threadIdx.x;

    out[i] = odd[(i + shift) % 3] + 100 * odder[(i + shift) % 7] + 10000ll * tail[(i + shift) % 5] +
             1000000000ll * (one - two) + (long long)pairs[(i + shift) % 3].value +
             pairs[(i + shift) % 3].tag;
}

template <typename T> static int check_table(const char *name)
{
    const int n = 4096, width = 9;
    static T in[n], out[n];
    T weights[10], *d, *e;
    int bad = 0;

    for (int i = 0; i < n; i++)
        in[i] = (T)(i * 7919 % 251);
    for (int i = 0; i < 10; i++)
        weights[i] = (T)(i + 1);
    cudaMalloc(&d, sizeof in);
    cudaMalloc(&e, sizeof out);
    cudaMemcpy(d, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemcpyToSymbol(table<T>, weights, width * sizeof(T));
    weigh<T><<<n / 256, 256>>>(d, e, n, width);
    cudaMemcpy(out, e, sizeof out, cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; i++) {
        T sum = 0;

        for (int j = 0; j < width; j++)
            if (i - width / 2 + j >= 0 && i - width / 2 + j < n)
                sum += in[i - width / 2 + j] * weights[j];
        bad += out[i] != sum;
    }
    printf("%s: %d wrong\n", name, bad);
    return bad;
}

static int check_mix()
{
    const signed char h_odd[3] = {1, -2, 3}, h_odder[7] = {7, -6, 5, -4, 3, -2, 1};
    const unsigned short h_tail[5] = {65535, 1, 2, 3, 40000};
    const int h_one = 123456789, h_two = -5;
    const pair h_pairs[3] = {{1, 1e15}, {2, -2e15}, {3, 3e15}};
    long long *d, out[64];
    int bad = 0;

    cudaMalloc(&d, sizeof out);
    cudaMemcpyToSymbol(odd, h_odd, sizeof h_odd);
    cudaMemcpyToSymbol(odder, h_odder, sizeof h_odder);
    cudaMemcpyToSymbol(tail, h_tail, sizeof h_tail);
    cudaMemcpyToSymbol(one, &h_one, sizeof h_one);
    cudaMemcpyToSymbol(two, &h_two, sizeof h_two);
    cudaMemcpyToSymbol(pairs, h_pairs, sizeof h_pairs);
    for (int shift = 0; shift < 105; shift++) {
        mix<<<1, 64>>>(d, shift);
        cudaMemcpy(out, d, sizeof out, cudaMemcpyDeviceToHost);
        for (int i = 0; i < 64; i++) {
            const int k = i + shift;

            bad += out[i] != h_odd[k % 3] + 100 * h_odder[k % 7] + 10000ll * h_tail[k % 5] +
                                 1000000000ll * (h_one - h_two) + (long long)h_pairs[k % 3].value +
                                 h_pairs[k % 3].tag;
        }
    }
    printf("mixed: %d wrong\n", bad);
    return bad;
}

int main()
{
    const int bad = check_table<double>("double") + check_table<float>("float") +
                    check_table<short>("short") + check_table<int>("int") +
                    check_table<unsigned char>("char") + check_table<long long>("long") + check_mix();

    if (cudaDeviceSynchronize() != cudaSuccess)
        printf("%s\n", cudaGetErrorString(cudaGetLastError()));
    puts(bad ? "wrong" : "right");
    return bad != 0;
}
