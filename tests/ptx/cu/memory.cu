/* Memory of all kinds: atomics, textures, surfaces, asynchronous copies, printf, assert, malloc. */
#include <assert.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_pipeline.h>
#include <stdio.h>

__constant__ float table[16] = {1.0f, 2.5f, -3.0f};
__device__ int counter = 7;
__device__ int *pointer = &counter;
__device__ const char *words[2] = {"zero", "one"};
__managed__ long long shared_with_host = -5;
struct thing {
    char c;
    double d;
    int a[3];
};
__device__ thing things[2] = {{'a', 1.5, {1, 2, 3}}, {'b', -2.5, {4, 5, 6}}};
extern __shared__ float dynamic[];

typedef int (*function)(int);
__device__ int __noinline__
twice(int x)
{
    return 2 * x;
}
__device__ int __noinline__
fib(int n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
__device__ function functions[2] = {twice, fib};

__global__ void __launch_bounds__(256, 2)
basics(thing t, int *p, const float *__restrict__ f, float *o)
{
    int local[32];

    for (int i = 0; i < 32; i++)
        local[i] = p[i];
    dynamic[threadIdx.x] = f[threadIdx.x] * table[p[0] & 15];
    __syncthreads();
    o[threadIdx.x] = dynamic[255 - threadIdx.x] + t.d + t.a[p[1] % 3] + local[p[2] & 31];
    p[3] = functions[p[4] & 1](p[5]) + words[p[6] & 1][0] + *pointer + things[p[7] & 1].a[1];
    if (p[8] > 4)
        printf("thread %d of %s: %f\n", (int)threadIdx.x, words[1], o[0]);
    assert(p[9] != 5);
    void *m = malloc(p[10]);
    p[11] = m != nullptr;
    free(m);
    if (p[12])
        __trap();
    switch (p[13]) {
    case 1: p[14] = 7; break;
    case 2: p[14] = 9; break;
    case 3: p[15] = 11; break;
    case 4: p[16] = 12; break;
    case 5: p[17] = 13; break;
    }
    shared_with_host += clock64();
    __threadfence();
    __threadfence_block();
    __threadfence_system();
}

__global__ void
atomics(int *i, unsigned *u, unsigned long long *l, float *f, double *d)
{
    __shared__ int s;

    atomicAdd(i, 1), atomicSub(i, 2), atomicExch(u, 3), atomicMin(i, 4), atomicMax(u, 5);
    atomicInc(u, 6), atomicDec(u, 7), atomicCAS(i, 8, 9), atomicAnd(u, 10), atomicOr(u, 11);
    atomicXor(l, 12), atomicAdd(f, 1.f), atomicAdd(d, 1.), atomicCAS(l, 1ull, 2ull);
    atomicAdd_system(i, 1), atomicMax_block(l, 3ull), i[1] = atomicAdd(&s, 1);
    cuda::atomic_ref<int, cuda::thread_scope_device> a(*i);
    a.fetch_add(1, cuda::memory_order_acq_rel);
    a.store(2, cuda::memory_order_release);
    i[2] = a.load(cuda::memory_order_acquire);
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_block);
    cuda::atomic_ref<unsigned long long, cuda::thread_scope_system> b(*l);
    unsigned long long e = 1;
    b.compare_exchange_strong(e, 5);
    volatile int *v = i;
    v[3] = v[4];
    __ldcs(f), __stcg(f, 2.f), f[1] = __ldg(f + 2) + __ldca(f + 3), __stwt(f + 4, 1.f);
}

__global__ void
textures(cudaTextureObject_t t, cudaSurfaceObject_t s, float4 *o, int *i)
{
    o[0] = tex2D<float4>(t, 1.f, 2.f);
    o[1].x = tex1Dfetch<float>(t, i[0]) + tex3D<float>(t, 1.f, 2.f, 3.f);
    o[2] = tex2DLod<float4>(t, 1.f, 2.f, 3.f);
    o[3] = tex2DLayered<float4>(t, 1.f, 2.f, i[1]);
    o[4] = texCubemap<float4>(t, 1.f, 2.f, 3.f);
    o[5] = tex2Dgather<float4>(t, 1.f, 2.f, 1);
    o[6] = tex2DGrad<float4>(t, 1.f, 2.f, make_float2(1, 2), make_float2(3, 4));
    o[7] = surf2Dread<float4>(s, 16, 2);
    surf2Dwrite(o[8], s, 32, 3, cudaBoundaryModeZero);
    surf1Dwrite<unsigned char>(7, s, 5);
    surf3Dread(&o[9], s, 16, 2, 3);
}

__global__ void
copies(const float4 *p, float4 *o)
{
    __shared__ float4 s[256];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;

    if (threadIdx.x == 0)
        init(&bar, blockDim.x);
    __syncthreads();
    cuda::memcpy_async(&s[threadIdx.x], &p[threadIdx.x], sizeof(float4), bar);
    bar.arrive_and_wait();
    __pipeline_memcpy_async(&s[threadIdx.x], &p[threadIdx.x + 256], sizeof(float4));
    __pipeline_commit();
    __pipeline_wait_prior(0);
    auto pipe = cuda::make_pipeline();
    pipe.producer_acquire();
    cuda::memcpy_async(&s[0], &p[7], cuda::aligned_size_t<16>(sizeof(float4)), pipe);
    pipe.producer_commit();
    pipe.consumer_wait();
    pipe.consumer_release();
    o[threadIdx.x] = s[threadIdx.x ^ 3];
}
