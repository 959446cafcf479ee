/* The file that processes share: what is in it, and becoming part of it. driver/shared.h says what
 * for; nobody but shared.c uses this.
 *
 * Invariants:
 * 1. A slot belongs to the process in its `owner`; only that process writes `used`. Slots are
 *    claimed, and devices entered, under the file's lock; a slot is emptied before it is given a
 *    new owner, and a device's place is given to another only when no living process has it.
 * 2. Nothing in the file is believed: whatever it holds, indices are checked and sums are cut, so
 *    the worst that nonsense in it does is a wrong number.
 * 3. Readers take no lock. An owner that is not alive (process id and start time) does not count.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/profile.h"

#define HED_SHARED_DEVICES 256
#define HED_SHARED_SLOTS 256
#define HED_SHARED_SECONDS 4 /* of history */

/* One device, for all processes. */
struct hed_shared_device {
    _Atomic uint64_t uuid[2];                     /* both 0: nobody has entered it */
    _Atomic uint64_t worked;                      /* nanoseconds */
    _Atomic uint64_t seconds[HED_SHARED_SECONDS]; /* second of the clock << 32 | microseconds */
    uint64_t reserved;
};

struct hed_shared_slot {
    _Atomic uint64_t owner; /* pid << 32 | low half of its start time; 0: nobody */
    _Atomic uint64_t used[HED_PROFILE_DEVICES_MAX];   /* bytes */
    _Atomic uint32_t device[HED_PROFILE_DEVICES_MAX]; /* which one that is, plus 1; 0: none */
};

struct hed_shared_file {
    _Atomic uint64_t magic;
    uint64_t reserved[7];
    struct hed_shared_device devices[HED_SHARED_DEVICES];
    struct hed_shared_slot slots[HED_SHARED_SLOTS];
};

/* What a process is in the file. */
struct hed_shared_part {
    struct hed_shared_slot *slot;             /* NULL: none was free */
    uint64_t owner;                           /* as in the slot */
    uint32_t device[HED_PROFILE_DEVICES_MAX]; /* place of each device in the file, plus 1 */
};

/* Joins with these devices. Where the file cannot be used it is a private one, and NULL where there
 * is not even memory. */
struct hed_shared_file *hed_shared_join(const struct hed_profile_device *all, size_t count,
                                        struct hed_shared_part *part);

/* Does the process of a slot live? */
bool hed_shared_alive(uint64_t owner);
