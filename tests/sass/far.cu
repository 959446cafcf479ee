/* A table of functions that are too large to be put into every kernel that may call them. They use
 * local and shared memory, barriers and each other, and lanes of a warp call different ones.
 *
 *     far
 *
 * Computes the same on the host. Exits with 1 if something differs.
 */
#include <cstdio>
#include <cstdlib>

#define FUNCTIONS 12
#define STEPS 3000 /* of each: two instructions, so that all are more than a megabyte */
#define THREADS 96

struct work {
    unsigned value, other;
    unsigned *shared; /* of the block */
};

typedef void (*function)(work *);

#define TEN(x) x x x x x x x x x x
#define THREE(x) x x x

/* Straight code, of which the compilers of C++ see one statement. */
template <unsigned N>
__device__ static __forceinline__ unsigned
unrolled(unsigned x)
{
    asm volatile(THREE(TEN(TEN(TEN("mad.lo.u32 %0, %0, 5, 7;\n\txor.b32 %0, %0, %1;\n\t"))))
                 : "+r"(x)
                 : "n"(N * 7919 + 1));
    return x;
}

static unsigned
unrolled_on_host(unsigned n, unsigned x)
{
    for (unsigned i = 0; i < STEPS; i++)
        x = (x * 5 + 7) ^ (n * 7919 + 1);
    return x;
}

extern __device__ function table[FUNCTIONS];

/* Neighbours exchange their values while the others of the block stand at the same barrier. */
template <unsigned N>
__device__ void
far(work *w)
{
    unsigned room[8];

    for (unsigned i = 0; i < 8; i++)
        room[i] = w->value + i * N;
    w->value = unrolled<N>(room[w->value % 8]);
    w->shared[threadIdx.x] = w->value;
    __syncthreads();
    w->other = w->shared[(threadIdx.x + 1) % THREADS];
    __syncthreads();
    if (N % 2)
        table[N - 1](w);
}

static unsigned
on_host(unsigned n, unsigned x)
{
    return unrolled_on_host(n, x + x % 8 * n);
}

__device__ function table[FUNCTIONS] = {far<0>, far<1>, far<2>, far<3>, far<4>,  far<5>,
                                        far<6>, far<7>, far<8>, far<9>, far<10>, far<11>};

__global__ void
all_the_same(unsigned *out, unsigned which)
{
    __shared__ unsigned shared[THREADS];
    work w = {threadIdx.x, 0, shared};

    table[which](&w);
    out[threadIdx.x] = w.value;
    out[THREADS + threadIdx.x] = w.other;
}

/* Without barriers: each lane has a function of its own. */
template <unsigned N>
__device__ void
alone(work *w)
{
    w->value = unrolled<N>(w->value);
    w->other += N;
}

__device__ function lonely[4] = {alone<20>, alone<21>, alone<22>, alone<23>};

__global__ void
all_different(unsigned *out)
{
    work w = {threadIdx.x, 1, nullptr};

    if (threadIdx.x % 5)
        lonely[threadIdx.x % 4](&w);
    out[threadIdx.x] = w.value;
    out[THREADS + threadIdx.x] = w.other;
}

static int failures;

static void
check(const char *what, unsigned i, unsigned got, unsigned want)
{
    if (got != want && failures++ < 10)
        printf("%s: thread %u: %08x, not %08x\n", what, i, got, want);
}

int
main()
{
    unsigned *out, got[2 * THREADS], values[THREADS];

    if (cudaMalloc(&out, sizeof got) != cudaSuccess)
        return 1;
    all_the_same<<<1, THREADS>>>(out, 5);
    if (cudaMemcpy(got, out, sizeof got, cudaMemcpyDefault) != cudaSuccess) {
        printf("all_the_same: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
    for (unsigned i = 0; i < THREADS; i++)
        values[i] = on_host(4, on_host(5, i)); /* the odd one calls the one before it */
    for (unsigned i = 0; i < THREADS; i++) {
        check("value", i, got[i], values[i]);
        check("other", i, got[THREADS + i], values[(i + 1) % THREADS]);
    }
    all_different<<<1, THREADS>>>(out);
    if (cudaMemcpy(got, out, sizeof got, cudaMemcpyDefault) != cudaSuccess) {
        printf("all_different: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
    for (unsigned i = 0; i < THREADS; i++) {
        check("alone", i, got[i], i % 5 ? unrolled_on_host(20 + i % 4, i) : i);
        check("alone, other", i, got[THREADS + i], i % 5 ? 21 + i % 4 : 1);
    }
    return failures != 0;
}
