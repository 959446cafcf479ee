/* assert on the device: the message, and the sticky error. */
#undef NDEBUG
#include "run.cuh"

#include <cassert>

KERNEL(holds)
{
    assert(n == 32);
    out[ME] = 1;
}

KERNEL(fails)
{
    assert(ME != 17);
    out[ME] = 1;
}

RUNS(
    RUN(holds, 1, 32, 0, 32),
    RUN(fails, 1, 32, 0, 32))
