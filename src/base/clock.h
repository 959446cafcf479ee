/* Time in nanoseconds: a clock that never goes back, the wall clock, sleeping. */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <time.h>

#define HED_NS_PER_S UINT64_C(1000000000)
#define HED_NS_PER_MS UINT64_C(1000000)

static inline uint64_t
hed_clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * HED_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* CLOCK_MONOTONIC: for measuring and for timeouts. Comparable between processes of a machine. */
static inline uint64_t
hed_now_ns(void)
{
    return hed_clock_ns(CLOCK_MONOTONIC);
}

/* Time since the epoch, for showing to people. May jump. */
static inline uint64_t
hed_wall_ns(void)
{
    return hed_clock_ns(CLOCK_REALTIME);
}

static inline struct timespec
hed_time_of(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / HED_NS_PER_S),
                             .tv_nsec = (long)(ns % HED_NS_PER_S)};
}

/* Sleeps at least that long, even if signals arrive. Keeps errno. */
static inline void
hed_sleep_ns(uint64_t ns)
{
    const struct timespec t = hed_time_of(hed_now_ns() + ns);

    /* Until a point in time, not for a duration, so that signals do not make it longer. */
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}
