/* Threads that wait for each other: spin locks between the lanes of a warp and between blocks, a
 * lane that waits for another of its warp, blocks that alternate.
 */
#include "run.cuh"

__device__ unsigned locks[4];

/* Every lane takes the same lock: the lane that has it must go on while the others spin. */
KERNEL(spin_lock)
{
    bool done = false;

    while (!done) {
        if (atomicCAS(&locks[0], 0, 1) == 0) {
            __threadfence();
            *(volatile unsigned *)out += ME + 1;
            *(volatile unsigned *)(out + 1) = *(volatile unsigned *)(out + 1) + 1;
            __threadfence();
            atomicExch(&locks[0], 0);
            done = true;
        }
    }
}

/* This form hangs if lanes do not progress independently. */
KERNEL(naive_lock)
{
    while (atomicCAS(&locks[1], 0, 1) != 0)
        ;
    __threadfence();
    *(volatile unsigned *)out += ME * 3;
    __threadfence();
    atomicExch(&locks[1], 0);
}

/* One lane waits for another of its warp. */
KERNEL(lane_waits)
{
    volatile unsigned *flag = out + 64;

    if (ME == 5) {
        while (*flag != 1)
            ;
        out[ME] = 55;
        __threadfence();
        *flag = 2;
    } else if (ME == 9) {
        *flag = 1;
        while (*flag != 2)
            ;
        out[ME] = 99;
    } else {
        out[ME] = ME;
    }
}

/* Producer and consumer in different blocks. */
KERNEL(hand_over)
{
    volatile unsigned *v = out;

    if (threadIdx.x != 0)
        return;
    for (unsigned i = 0; i < 20; i++) {
        while (v[0] % 2 != blockIdx.x)
            ;
        v[1] = v[1] * 3 + blockIdx.x + 1;
        __threadfence();
        v[0] = v[0] + 1;
        __threadfence();
    }
}

RUNS(
    RUN(spin_lock, 4, 64, 0, 2),
    RUN(naive_lock, 2, 64, 0, 1),
    RUN(lane_waits, 1, 32, 0, 65),
    RUN(hand_over, 2, 32, 0, 2))
