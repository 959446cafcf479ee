/* The processor's time counter: one instruction instead of a reading of the clock.
 *
 * It runs at a constant rate, in units of its own, and all processors of the machine agree on it.
 * That holds only where hed_counter_usable() says so; elsewhere use base/clock.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The counter now. The processor does not wait for the instructions around the reading, which may
 * therefore be a few nanoseconds early or late. */
static inline uint64_t
hed_counter_read(void)
{
#if defined(__aarch64__)
    uint64_t ticks;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#elif defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

/* Does the counter keep time on this machine? It does if the kernel itself uses it for its clock.
 * This opens a file of /sys, so ask once. */
bool hed_counter_usable(void);
