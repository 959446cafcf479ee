/* A program of three files (-rdc=true) whose device code calls from file to file and shares
 * variables. Each file prints three strings, which the compiler gives the same names in each file.
 * The program prints the same on every GPU; its status says whether the calls succeeded. */
#include <cstdio>

extern __device__ int total;
extern __constant__ int factor;
extern __device__ int second(int x);
extern __global__ void last(int *out);

static __device__ int
local(int x) /* every file has one */
{
    printf("first: local\n");
    return x + 1;
}

__global__ void
run(int *out)
{
    printf("first: begins\n");
    *out = second(local(1)) + total * factor;
    printf("first: ends with %d\n", *out);
}

static int
call(cudaError_t e, const char *what)
{
    if (e != cudaSuccess)
        printf("%s: %s\n", what, cudaGetErrorString(e));
    return e != cudaSuccess;
}

#define CALL(what)        \
    if (call(what, #what)) \
    return 1

int
main()
{
    const int five = 5;
    int *device, out = 0, back = 0;

    setvbuf(stdout, nullptr, _IONBF, 0);
    CALL(cudaMalloc(&device, sizeof out));
    run<<<1, 1>>>(device);
    CALL(cudaGetLastError());
    CALL(cudaDeviceSynchronize());
    CALL(cudaMemcpy(&out, device, sizeof out, cudaMemcpyDeviceToHost));
    printf("program: %d\n", out);
    CALL(cudaMemcpyToSymbol(factor, &five, sizeof five));
    CALL(cudaMemcpyFromSymbol(&back, total, sizeof back));
    last<<<1, 1>>>(device);
    CALL(cudaGetLastError());
    CALL(cudaMemcpy(&out, device, sizeof out, cudaMemcpyDeviceToHost));
    printf("program: %d, total %d\n", out, back);
    return 0;
}
