/* Kernels whose parameters, shared memory, stack and launch bounds are known, for the tests of fat
 * binaries. With -DMAIN a program, with -DLARGE a kernel with more than 4 KiB of parameters.
 */
struct pair {
    char c;
    double d[3];
};

#ifdef LARGE
struct large {
    int words[1100];
};

extern "C" __global__ void
large(char c, large v, int *out)
{
    *out = v.words[c];
}
#else
extern "C" __global__ void
add(const float *a, float *b, int n, char c, double d)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        b[i] = a[i] + c + (float)d;
}

extern "C" __global__ void
__launch_bounds__(128, 2) shared(pair p, short s, float *out)
{
    __shared__ float t[64];

    t[threadIdx.x & 63] = (float)p.d[0] + s;
    __syncthreads();
    out[threadIdx.x] = t[(threadIdx.x + 1) & 63] + p.c;
}

extern "C" __global__ void
empty()
{
}
#endif

#ifdef MAIN
int
main()
{
    empty<<<1, 1>>>();
    return 0;
}
#endif
