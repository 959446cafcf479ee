/* Variables of every kind, for machine_code.c: fatbin_corpus.py makes corpus/cubin/sm_80 of it. */

__device__ int first = 3;
__device__ int second[4] = {10, 20, 30, 40};
__constant__ int scale = 4; /* and the number that pick has in bank 2 */
__managed__ int counted = 5;
__device__ int *where = &second[2];
__device__ int zero[6];

extern "C" __global__ void
sum(int *out, int n)
{
    const int i = (int)(threadIdx.x + blockIdx.x * blockDim.x);

    if (i < n)
        out[i] = second[i & 3] * scale + *where + first + counted + zero[i & 3];
}

__constant__ int listed[7] = {3, 1, 4, 1, 5, 9, 2};

extern "C" __global__ void
pick(int *out)
{
    out[threadIdx.x] = listed[threadIdx.x % 7];
}

/* Without parameters, a cubin does not say where they are. */
extern "C" __global__ void
count(void)
{
    if (threadIdx.x < 7)
        zero[0] = 7;
}

extern "C" __global__ void __launch_bounds__(64)
turn(unsigned *out)
{
    __shared__ unsigned turned[64];

    turned[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = turned[63 - threadIdx.x];
}
