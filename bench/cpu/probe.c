/* What this machine's core can do, as a line of JSON: fused multiply-adds in a second, and the
 * bandwidth of a triad out of the second-level cache and out of memory. Best of several tries, by
 * the CPU time of this process. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef __AVX512F__
enum { VECTOR = 16 };
#elif defined(__AVX__)
enum { VECTOR = 8 };
#else
enum { VECTOR = 4 };
#endif

/* The compiler must believe that v has changed. */
#ifdef __aarch64__
#define KEEP(v) __asm__ volatile("" : "+w"(v))
#else
#define KEEP(v) __asm__ volatile("" : "+v"(v))
#endif

/* Independent sums: more than a core has multiply-adds in flight, and they fit in its registers. */
enum { SUMS = 20, TRIES = 15 };

typedef float vector __attribute__((vector_size(VECTOR * sizeof(float))));

static double
cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double
fma_gflops(int rounds)
{
    vector sum[SUMS] = {0}, a = {0}, b = {0};
    float total = 0;

    for (int i = 0; i < VECTOR; i++) {
        a[i] = 0.999f;
        b[i] = 0.001f;
    }

    const double start = cpu_seconds();

    for (int i = 0; i < rounds; i++) {
#pragma GCC unroll 20
        for (int j = 0; j < SUMS; j++) {
            KEEP(a);
            sum[j] += a * b;
        }
    }

    const double took = cpu_seconds() - start;

    for (int j = 0; j < SUMS; j++)
        total += sum[j][0];
    return total == 12345.0f ? 0 : 2.0 * VECTOR * SUMS * rounds / took * 1e-9;
}

static double
triad_gbs(float *restrict a, const float *restrict b, const float *restrict c, size_t n, int rounds)
{
    const double start = cpu_seconds();

    for (int i = 0; i < rounds; i++) {
        for (size_t j = 0; j < n; j++)
            a[j] = 3.0f * c[j] + b[j];
        __asm__ volatile("" ::"r"(a) : "memory");
    }
    return 12.0 * (double)n * rounds / (cpu_seconds() - start) * 1e-9;
}

int
main(void)
{
    const size_t small = 48 << 10, large = 4 << 20;
    float *data = calloc(3 * large, sizeof *data);
    double best[3] = {0};

    if (!data)
        return 1;
    for (size_t i = 0; i < 3 * large; i++)
        data[i] = (float)i;
    for (int try = 0; try < TRIES; try++) {
        /* Pages may collide in the cache: each try has others. */
        float *part = data + (size_t)try * 3 * small;
        const double got[3] = {
            fma_gflops(1 << 20),
            triad_gbs(part, part + small, part + 2 * small, small, 400),
            triad_gbs(data, data + large, data + 2 * large, large, 5),
        };

        for (int i = 0; i < 3; i++)
            best[i] = got[i] > best[i] ? got[i] : best[i];
    }
    printf("{\"fma_gflops\": %.1f, \"triad_l2_gbs\": %.1f, \"triad_mem_gbs\": %.1f}\n", best[0],
           best[1], best[2]);
    free(data);
    return 0;
}
