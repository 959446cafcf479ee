/* An address without memory: the launch fails with the error for that. */
#include "run.cuh"

KERNEL(inside)
{
    out[n - 1 - ME] = ME;
}

KERNEL(outside)
{
    unsigned *p = ME == 3 ? (unsigned *)(size_t)(n - 16) : out + ME;

    *(volatile unsigned *)p = 1;
}

RUNS(
    RUN(inside, 1, 32, 0, 32),
    RUN(outside, 1, 32, 0, 32))
