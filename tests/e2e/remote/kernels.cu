/* Code on a worker as nvcc and NVIDIA's runtime make programs use it: launches, variables, large
 * parameters, a printf in order, settings, modules in several contexts. Checks itself. */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda.h>
#include <cuda_runtime.h>

#define CHECK(call)                                                                 \
    do {                                                                            \
        const int r_ = (int)(call);                                                 \
        if (r_ != 0) {                                                              \
            fprintf(stderr, "%s:%d: %s: error %d\n", __FILE__, __LINE__, #call, r_); \
            exit(1);                                                                \
        }                                                                           \
    } while (0)
#define EXPECT(what)                                                      \
    do {                                                                  \
        if (!(what)) {                                                    \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
            exit(1);                                                      \
        }                                                                 \
    } while (0)

#define N 4096

__device__ int counter = 5;
__constant__ float factors[4] = {1, 2, 3, 4};

struct large {
    int values[1000];
};

__global__ void
add(const float *a, const float *b, float *c, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        c[i] = a[i] + b[i] * factors[i % 4];
}

__global__ void
sum(large l, int *out)
{
    int s = counter;

    for (int i = 0; i < 1000; i++)
        s += l.values[i];
    *out = s;
}

__global__ void
say(int n)
{
    printf("kernel %d\n", n);
}

__global__ void
dynamic(int *out)
{
    extern __shared__ int room[];

    room[threadIdx.x] = (int)threadIdx.x;
    __syncthreads();
    *out = room[blockDim.x - 1];
}

static void
vectors()
{
    float host[3][N], *dev[3];

    for (int i = 0; i < N; i++) {
        host[0][i] = (float)i;
        host[1][i] = 0.5f;
    }
    for (int i = 0; i < 3; i++)
        CHECK(cudaMalloc(&dev[i], sizeof host[i]));
    for (int i = 0; i < 2; i++)
        CHECK(cudaMemcpy(dev[i], host[i], sizeof host[i], cudaMemcpyHostToDevice));
    for (int i = 0; i < 50; i++)
        add<<<N / 256, 256>>>(dev[0], dev[1], dev[2], N);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(host[2], dev[2], sizeof host[2], cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++)
        EXPECT(host[2][i] == (float)i + 0.5f * (float)(i % 4 + 1));
    for (int i = 0; i < 3; i++)
        CHECK(cudaFree(dev[i]));
}

static void
variables()
{
    large l;
    int *out, result, value = 0;
    void *at;
    size_t size;
    cudaPointerAttributes a;

    for (int i = 0; i < 1000; i++)
        l.values[i] = i;
    CHECK(cudaMalloc(&out, sizeof *out));
    CHECK(cudaMemcpyFromSymbol(&value, counter, sizeof value));
    EXPECT(value == 5);
    value = 7;
    CHECK(cudaMemcpyToSymbol(counter, &value, sizeof value));
    sum<<<1, 1>>>(l, out);
    CHECK(cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost));
    EXPECT(result == 7 + 999 * 1000 / 2);
    CHECK(cudaGetSymbolAddress(&at, counter));
    CHECK(cudaGetSymbolSize(&size, counter));
    EXPECT(size == sizeof counter);
    CHECK(cudaPointerGetAttributes(&a, at));
    EXPECT(a.type == cudaMemoryTypeDevice);
    CHECK(cudaFree(out));
}

static void
prints()
{
    printf("program 1\n");
    say<<<1, 1>>>(2);
    CHECK(cudaDeviceSynchronize());
    printf("program 3\n");
    say<<<1, 1>>>(4);
    CHECK(cudaDeviceSynchronize());
    printf("program 5\n");
    fflush(stdout);
}

static void
settings()
{
    cudaFuncAttributes a;
    cudaStream_t s;
    int *out, result, blocks;
    const int bytes = 64 << 10;

    CHECK(cudaMalloc(&out, sizeof *out));
    CHECK(cudaFuncGetAttributes(&a, dynamic));
    EXPECT(a.maxThreadsPerBlock == 1024);
    dynamic<<<1, 256, bytes>>>(out);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    for (int i = 0; i < 3; i++)
        CHECK(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    CHECK(cudaStreamCreate(&s));
    dynamic<<<1, 256, bytes, s>>>(out);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(s));
    CHECK(cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost));
    EXPECT(result == 255);
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, dynamic, 256, bytes));
    EXPECT(blocks >= 1);
    dynamic<<<1, 2048, 0, s>>>(out);
    EXPECT(cudaGetLastError() != cudaSuccess);
    CHECK(cudaStreamDestroy(s));
    CHECK(cudaFree(out));
}

static const char text[] = ".version 7.0\n.target sm_52\n.address_size 64\n"
                           ".visible .global .u32 seen = 3;\n"
                           ".visible .entry store(.param .u64 to, .param .u32 what)\n{\n"
                           ".reg .b64 %rd<3>;\n.reg .b32 %r<4>;\n"
                           "ld.param.u64 %rd1, [to];\nld.param.u32 %r1, [what];\n"
                           "cvta.to.global.u64 %rd2, %rd1;\n"
                           "ld.global.u32 %r2, [seen];\nadd.u32 %r3, %r1, %r2;\n"
                           "st.global.u32 [%rd2], %r3;\nret;\n}\n";

/* The same text in two contexts: two modules, two variables. */
static void
modules()
{
    CUcontext ctx[2];
    CUmodule mod[2];
    CUfunction f[2];
    CUdeviceptr out[2], seen[2];
    CUdevice dev;

    CHECK(cuDeviceGet(&dev, 0));
    for (int i = 0; i < 2; i++) {
        size_t size;
        unsigned value = 100u * (unsigned)i;

        CHECK(cuCtxCreate(&ctx[i], NULL, 0, dev));
        CHECK(cuModuleLoadData(&mod[i], text));
        CHECK(cuModuleGetFunction(&f[i], mod[i], "store"));
        EXPECT(cuModuleGetFunction(&f[i], mod[i], "stores") == CUDA_ERROR_NOT_FOUND);
        CHECK(cuModuleGetFunction(&f[i], mod[i], "store"));
        CHECK(cuModuleGetGlobal(&seen[i], &size, mod[i], "seen"));
        EXPECT(size == 4);
        EXPECT(cuModuleGetGlobal(&seen[i], &size, mod[i], "nothing") == CUDA_ERROR_NOT_FOUND);
        CHECK(cuMemcpyHtoD(seen[i], &value, sizeof value));
        CHECK(cuMemAlloc(&out[i], 4));
    }
    EXPECT(seen[0] != seen[1]);
    for (int i = 0; i < 2; i++) {
        unsigned what = 11, result = 0;
        void *params[] = {&out[i], &what};

        CHECK(cuCtxSetCurrent(ctx[i]));
        CHECK(cuLaunchKernel(f[i], 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
        CHECK(cuMemcpyDtoH(&result, out[i], sizeof result));
        EXPECT(result == 11 + 100u * (unsigned)i);
        EXPECT(cuLaunchKernel(f[1 - i], 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL) ==
               CUDA_ERROR_INVALID_HANDLE);
    }
    CHECK(cuCtxSetCurrent(ctx[0]));
    CHECK(cuModuleUnload(mod[0]));
    EXPECT(cuModuleUnload(mod[0]) == CUDA_ERROR_INVALID_HANDLE);
    for (int i = 0; i < 2; i++)
        CHECK(cuCtxDestroy(ctx[i]));
}

int
main()
{
    vectors();
    variables();
    prints();
    settings();
    modules();
    return 0;
}
