/* printf on the device: every conversion that the CUDA C++ Programming Guide names ("hh" and ".*"
 * are not among them), widths, many arguments, strings, order in a thread, and what it returns.
 */
#include "run.cuh"

KERNEL(conversions)
{
    if (ME == 0) {
        printf("%d %i %u %x %X %o\n", -5, 6, 7u, 0xabcu, 0xabcu, 8u);
        printf("[%5d] [%-5d] [%05d] [%+d] [% d] [%.3d]\n", 42, 42, 42, 42, 42, 7);
        printf("%ld %lld %lu %llx %hd\n", -1l, 1ll << 40, ~0ul, 0x123456789abull, (short)-2);
        printf("%f %.3f %10.2f %-10.1f| %e %g %G\n", 1.5, 3.14159, 2.5, 2.5, 12345.678, 1e-10, 1e20);
        printf("%f %f %f\n", 1.0 / 0.0 * 1, -1.0f / 0.0f, 0.f);
        printf("%a\n", 1.0);
        printf("%c%c%c %s [%10s] [%-10s] [%.2s]\n", 'a', 'b', 'c', "word", "right", "left", "cut");
        printf("%% %5c|%*d|%-*d|\n", 'z', 6, 42, 6, 42);
        printf("%p\n", (void *)0x1234);
        printf("no arguments\n");
        printf("%d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d\n", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
               11, 12, 13, 14, 15, 16);
        printf("");
        printf("%s", "no newline");
        printf(" then one\n");
    }
}

KERNEL(results)
{
    if (ME == 0) {
        out[0] = (unsigned)printf("three %d %d %d\n", 1, 2, 3);
        out[1] = (unsigned)printf("none\n");
        out[2] = (unsigned)printf("%s %f\n", "a", 1.0);
    }
}

__device__ static __noinline__ void
say(const char *what, unsigned n)
{
    printf("%s %u\n", what, n);
}

/* Threads print one after the other, with a barrier in between. */
KERNEL(turns)
{
    for (unsigned i = 0; i < 8; i++) {
        if (threadIdx.x == i * 9)
            say(i % 2 ? "odd" : "even", threadIdx.x);
        __syncthreads();
    }
    out[ME] = 1;
}

/* Every lane of a warp prints one line; only their number is compared. */
KERNEL(lanes)
{
    if (ME < 8)
        printf("a lane\n");
    out[ME] = ME;
}

RUNS(
    RUN(conversions, 1, 32, 0, 1),
    RUN(results, 1, 32, 0, 3),
    RUN(turns, 1, 96, 0, 96),
    RUN(lanes, 1, 32, 0, 32))
