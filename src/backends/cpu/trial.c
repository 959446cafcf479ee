/* For tests: grids change from the baseline tier to compiled code at moments of the test's choice.
 * No program may notice it.
 *
 *   HED_TEST_TIERS=N        after N blocks of each grid
 *   HED_TEST_TIERS=seed:S   after a random number of blocks, which differs from launch to launch;
 *                           some grids are compiled from the start, and some never
 *
 * Kernels are compiled when they are first launched. Grids of cooperative launches never change.
 */
#include "backends/cpu/code.h"

#ifdef HED_DEBUG

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/str.h"

#define EARLY 16 /* blocks; half of the random moments are among so many */

static pthread_once_t trial_once = PTHREAD_ONCE_INIT;
static bool is_on, is_random;
static uint64_t number; /* blocks, or the seed */
static _Atomic uint64_t launches;

static void
read_trial(void)
{
    const char *text = secure_getenv("HED_TEST_TIERS");

    if (!text || !*text)
        return;
    is_random = strncmp(text, "seed:", 5) == 0;
    is_on = hed_parse_u64(is_random ? text + 5 : text, &number) == 0;
}

bool
hed_tier_trial(void)
{
    pthread_once(&trial_once, read_trial);
    return is_on;
}

/* splitmix64: every launch gets a number that looks unlike its neighbours'. */
static uint64_t
mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t
hed_tier_trial_moment(uint64_t blocks)
{
    if (!is_random)
        return number;

    /* Relaxed: every launch gets another number, and that is all. */
    const uint64_t launch = atomic_fetch_add_explicit(&launches, 1, memory_order_relaxed);
    const uint64_t chance = mix(mix(number) + launch);
    const uint64_t most = chance & 1 ? hed_min(blocks, EARLY) : blocks;

    /* From 0, compiled from the start, to one more than there are: it never changes. */
    return (chance >> 8) % (most + 2);
}

#else

bool
hed_tier_trial(void)
{
    return false;
}

uint64_t
hed_tier_trial_moment(uint64_t blocks)
{
    (void)blocks;
    return 0;
}

#endif
