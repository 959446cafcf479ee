/* How much memory this process has on each device, for whoever shows it to others.
 *
 *     a soft driver, the engine of limits --hed_usage_set--> numbers --> a slot in shared memory,
 *                                                                        by hed_usage_publish()
 *
 * The two count in their own ways: a soft driver what it has taken, the engine of limits what it
 * compares with the limit. Where there is a limit, the second is shown.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "core/export.h"

#define HED_USAGE_DEVICES 64 /* those with a higher ordinal are not counted */

enum hed_usage_by { HED_USAGE_BY_DRIVER, HED_USAGE_BY_LIMIT, HED_USAGE_COUNTERS };

/* Where the numbers of a device are to be seen. The words live as long as the process, or until
 * hed_usage_publish() names others. */
struct hed_usage_words {
    _Atomic uint64_t *used;  /* bytes */
    _Atomic uint64_t *limit; /* bytes; 0: none */
    _Atomic uint32_t *known; /* 1: somebody counts */
};

/* The process has `used` bytes of that device now, and may have `limit` (0: any number). */
HED_EXPORT void hed_usage_set(int device, enum hed_usage_by by, uint64_t used, uint64_t limit);

/* The device's numbers are shown there from now on; NULL: nowhere. */
HED_EXPORT void hed_usage_publish(int device, const struct hed_usage_words *to);
