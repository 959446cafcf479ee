/* Loads and stores: every width, vectors, cache hints, volatile and ordered forms; constant, static,
 * dynamic and external shared, local and parameter memory; generic addresses into all of them.
 */
#include "run.cuh"

__constant__ unsigned table[64] = {5, 4, 3, 2, 1};
__constant__ unsigned char bytes[8] = {1, 2, 3, 250, 251, 252, 253, 254};
__device__ unsigned counter = 100;
__device__ unsigned long long pairs[4] = {1, 2, 0x123456789abcdefull, 4};
__device__ unsigned *const pointer = &counter;
extern __shared__ unsigned dynamic[];

KERNEL(widths)
{
    unsigned char *c = (unsigned char *)out + 64 * threadIdx.x;

    for (int i = 0; i < 64; i++)
        c[i] = (unsigned char)(i * 7 + threadIdx.x);

    const signed char s8 = *(volatile signed char *)(c + 37);
    const short s16 = *(volatile short *)(c + 38);
    const unsigned short u16 = *(volatile unsigned short *)(c + 40);
    const unsigned long long u64 = *(volatile unsigned long long *)(c + 48);

    *(volatile unsigned *)(c + 0) = (unsigned)(int)s8;
    *(volatile unsigned *)(c + 4) = (unsigned)(int)s16;
    *(volatile unsigned short *)(c + 8) = u16;
    *(volatile unsigned long long *)(c + 16) = u64 + 1;
}

KERNEL(vectors)
{
    uint4 *v = (uint4 *)out;
    const uint4 a = {ME, ME * 2, ME * 3, ME * 4};
    const ushort4 b = {1, 2, 3, (unsigned short)ME};

    v[ME] = a;
    __syncthreads();

    const uint4 c = v[(ME + 1) % 32];
    const uint2 d = ((uint2 *)out)[(ME * 2 + 5) % 64];

    __syncthreads();
    ((uint2 *)out)[ME * 2] = make_uint2(c.x + c.w, d.x ^ d.y);
    ((ushort4 *)out)[ME * 2 + 1] = b;
}

KERNEL(hints)
{
    unsigned a;
    unsigned b;
    unsigned c;
    unsigned d;
    unsigned *p = out + ME;

    asm volatile("st.global.cg.u32 [%0], %1;" ::"l"(p), "r"(ME + 3) : "memory");
    asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(a) : "l"(p) : "memory");
    asm volatile("ld.global.cv.u32 %0, [%1];" : "=r"(b) : "l"(p) : "memory");
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(c) : "l"(p) : "memory");
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(d) : "l"(p) : "memory");
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
    asm volatile("prefetchu.L1 [%0];" ::"l"(p));
    __threadfence();
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(a + b + c + d) : "memory");
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(a) : "l"(table));
    asm volatile("st.wt.u32 [%0], %1;" ::"l"(p), "r"(*(volatile unsigned *)p + 1) : "memory");
}

KERNEL(constants)
{
    out[ME] = table[ME] * 10 + bytes[ME % 8];
    if (ME == 63)
        out[ME] = (unsigned)sizeof table + (unsigned)(pairs[2] >> 40);
}

KERNEL(globals)
{
    if (ME == 0) {
        *pointer += 11;
        pairs[1] = pairs[2] + pairs[0];
        out[0] = counter;
        out[1] = (unsigned)pairs[1];
        out[2] = (unsigned)(pairs[1] >> 32);
        out[3] = pointer == &counter;
    }
}

KERNEL(shared_static)
{
    __shared__ unsigned words[64];
    __shared__ unsigned char small[3];
    __shared__ double wide[4];

    words[threadIdx.x] = threadIdx.x * 3;
    if (threadIdx.x < 3)
        small[threadIdx.x] = (unsigned char)(threadIdx.x + 1);
    if (threadIdx.x < 4)
        wide[threadIdx.x] = threadIdx.x * 0.5;
    __syncthreads();
    out[ME] = words[63 - threadIdx.x] + small[threadIdx.x % 3] + (unsigned)(wide[threadIdx.x % 4] * 4);
}

KERNEL(shared_dynamic)
{
    unsigned size;

    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(size));
    for (unsigned i = threadIdx.x; i < size / 4; i += blockDim.x)
        dynamic[i] = i * i + blockIdx.x;
    __syncthreads();
    out[ME] = dynamic[size / 4 - 1 - threadIdx.x] + size;
}

KERNEL(shared_large)
{
    dynamic[threadIdx.x * 512] = threadIdx.x;
    __syncthreads();
    out[ME] = dynamic[(31 - threadIdx.x) * 512] + 1;
}

KERNEL(local_arrays)
{
    unsigned a[40];
    unsigned char b[16];

    for (unsigned i = 0; i < 40; i++)
        a[(i * 7) % 40] = i + ME;
    for (unsigned i = 0; i < 16; i++)
        b[(i + ME) % 16] = (unsigned char)(i * 3);
    out[ME] = a[ME % 40] * 256 + b[(ME * 5) % 16];
}

__device__ static __noinline__ unsigned
through(const unsigned *p)
{
    return *p + 1;
}

__device__ static __noinline__ unsigned
kinds(const void *p)
{
    return (unsigned)__isShared(p) | (unsigned)__isLocal(p) << 1 | (unsigned)__isGlobal(p) << 2 |
           (unsigned)__isConstant(p) << 3;
}

KERNEL(generic)
{
    __shared__ unsigned s[32];
    unsigned l[32];
    const unsigned *places[3] = {s, l, out};

    s[threadIdx.x] = 100 + threadIdx.x;
    for (int i = 0; i < 32; i++)
        l[(i + threadIdx.x) % 32] = 200 + i;
    out[ME] = 300 + ME;
    __syncwarp();

    const unsigned *p = places[threadIdx.x % 3];
    const unsigned v = through(p + (threadIdx.x * 3) % 32);

    __syncwarp();
    out[ME] = v << 8 | kinds(p);
}

KERNEL(generic_constant)
{
    out[ME] = through(table + ME) << 8 | kinds(table + ME);
}

struct big {
    unsigned a[20];
    unsigned char b;
};

__device__ static __noinline__ big
turned(big v, unsigned by)
{
    big r;

    for (unsigned i = 0; i < 20; i++)
        r.a[i] = v.a[(i + by) % 20];
    r.b = (unsigned char)(v.b + by);
    return r;
}

KERNEL(structures)
{
    big v;

    for (unsigned i = 0; i < 20; i++)
        v.a[i] = i * ME;
    v.b = 7;
    v = turned(v, ME);
    out[ME] = v.a[3] * 1000 + v.a[19] + v.b;
}

RUNS(
    RUN(widths, 1, 4, 0, 64),
    RUN(vectors, 1, 32, 0, 128),
    RUN(hints, 1, 32, 0, 32),
    RUN(constants, 1, 64, 0, 64),
    RUN(globals, 1, 32, 0, 4),
    RUN(globals, 1, 32, 0, 4),
    RUN(shared_static, 2, 64, 0, 128),
    RUN(shared_dynamic, 2, 64, 1024, 128),
    RUN(shared_large, 1, 32, 65536, 32),
    RUN(local_arrays, 1, 64, 0, 64),
    RUN(generic, 1, 32, 0, 32),
    RUN(generic_constant, 1, 8, 0, 8),
    RUN(structures, 1, 32, 0, 32))
