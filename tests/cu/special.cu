/* Special registers, clocks, sleeping: the values that are the same everywhere, and that the rest
 * is plausible (time goes forward, numbers stay within bounds).
 */
#include "run.cuh"

#define READ(name)                                \
    ({                                            \
        unsigned r_;                              \
                                                  \
        asm volatile("mov.u32 %0, %%" name ";" : "=r"(r_)); \
        r_;                                       \
    })

KERNEL(places)
{
    out[ME] = READ("tid.x") | READ("ctaid.x") << 8 | READ("ntid.x") << 16 | READ("nctaid.x") << 24;
    out[128 + ME] = READ("laneid") | READ("warpid") << 8;
    out[256 + ME] = READ("tid.y") + READ("tid.z") + READ("ctaid.y") + READ("ctaid.z") +
                    READ("ntid.y") * 2 + READ("ntid.z") * 3 + READ("nctaid.y") * 5 +
                    READ("nctaid.z") * 7;
    out[384 + ME] = (unsigned)(READ("nwarpid") >= 2) | (unsigned)(READ("smid") < READ("nsmid")) << 1 |
                    (unsigned)(warpSize == 32) << 2;
}

KERNEL(shared_sizes)
{
    __shared__ unsigned s[100];

    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[ME] = READ("dynamic_smem_size") + s[(threadIdx.x + 1) % 32] * 0;
    out[32 + ME] = (unsigned)(READ("total_smem_size") >= 400 + 256);
}

KERNEL(clocks)
{
    const long long a = clock64();
    const clock_t b = clock();
    unsigned long long t;
    unsigned long long u;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    __nanosleep(2000);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(u));

    const long long c = clock64();

    out[ME] = (unsigned)(c > a) | (unsigned)(u >= t) << 1 | (unsigned)(clock() != b) << 2 |
              (unsigned)(READ("clock_hi") == (unsigned)(c >> 32)) << 3 |
              (unsigned)(u - t < 1000000000ull) << 4;
}

/* A thread that sleeps while it waits for a slow one. */
KERNEL(sleeping)
{
    volatile unsigned *flag = out + 64;

    if (ME == 63) {
        for (int i = 0; i < 20; i++)
            __nanosleep(500);
        __threadfence();
        *flag = 5;
    }
    while (*flag == 0)
        __nanosleep(100);
    out[ME] = *flag + ME;
}

KERNEL(leaving)
{
    out[ME] = 1;
    if (ME % 3 == 1)
        asm volatile("exit;");
    out[ME] = 2;
    if (__activemask() == 0)
        out[ME] = 3;
}

KERNEL(cluster)
{
#if __CUDA_ARCH__ < 900 /* every block is a cluster of its own */
    out[ME] = 1u << 8 | 1u << 24;
    out[64 + ME] = blockIdx.x | gridDim.x << 8;
#else
    out[ME] = READ("cluster_ctaid.x") | READ("cluster_nctaid.x") << 8 |
              READ("cluster_ctarank") << 16 | READ("cluster_nctarank") << 24;
    out[64 + ME] = READ("clusterid.x") | READ("nclusterid.x") << 8;
#endif
}

RUNS(
    RUN(places, 2, 64, 0, 512),
    RUN(shared_sizes, 1, 32, 256, 64),
    RUN(clocks, 1, 32, 0, 32),
    RUN(sleeping, 1, 64, 0, 65),
    RUN(leaving, 1, 64, 0, 64),
    RUN(cluster, 2, 32, 0, 128))
