/* trap: the launch fails, and the program gets the error. */
#include "run.cuh"

KERNEL(passes)
{
    if (n == 1)
        __trap();
    out[ME] = ME;
}

KERNEL(trapped)
{
    if (ME == 40)
        __trap();
    out[ME] = ME;
}

RUNS(
    RUN(passes, 1, 32, 0, 32),
    RUN(trapped, 2, 32, 0, 64))
