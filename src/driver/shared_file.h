/* The file that processes share, "devices" in their folder (base/meeting.h): its layout, and how a
 * process joins it. driver/shared.h says what it is for; only shared.c uses it.
 *
 * Invariants:
 * 1. A slot belongs to the process in its `owner`, and only that process writes `used`. Slots are
 *    claimed, and devices entered, under the file's lock. A slot is emptied before it gets a new
 *    owner, and a device's entry is given to another device only when no living process uses it.
 * 2. Nothing in the file is trusted: indices are checked and sums are bounded, so nonsense in the
 *    file causes wrong numbers at worst.
 * 3. Readers take no lock. A slot whose owner (process id and start time) is dead does not count.
 * 4. The file loses its name under its lock, and only if no slot has a living owner. A process that
 *    has locked the file checks that it still has a name before it claims a slot.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "driver/profile.h"

#define HED_SHARED_DEVICES 256
#define HED_SHARED_SLOTS 256
#define HED_SHARED_SECONDS 4 /* length of the history */

/* One device, shared by all processes. */
struct hed_shared_device {
    _Atomic uint64_t uuid[2];                     /* both 0: the entry is empty */
    _Atomic uint64_t worked;                      /* nanoseconds */
    _Atomic uint64_t seconds[HED_SHARED_SECONDS]; /* second of the clock << 32 | microseconds */
    uint64_t reserved;
};

struct hed_shared_slot {
    _Atomic uint64_t owner; /* pid << 32 | low half of its start time; 0: empty */
    _Atomic uint64_t used[HED_PROFILE_DEVICES_MAX];   /* bytes */
    _Atomic uint32_t device[HED_PROFILE_DEVICES_MAX]; /* the device's entry, plus 1; 0: none */
};

struct hed_shared_file {
    _Atomic uint64_t magic;
    uint64_t reserved[7];
    struct hed_shared_device devices[HED_SHARED_DEVICES];
    struct hed_shared_slot slots[HED_SHARED_SLOTS];
};

/* This process's part of the file. */
struct hed_shared_part {
    struct hed_shared_slot *slot;             /* NULL if none was free */
    uint64_t owner;                           /* as in the slot */
    ino_t file;                               /* of the file; 0 for a private one */
    dev_t system;                             /* where the file is */
    uint32_t device[HED_PROFILE_DEVICES_MAX]; /* index of each device's entry in the file, plus 1 */
};

/* Joins the file with these devices. If the file cannot be used, returns a private one; NULL if
 * there is no memory for that either. */
struct hed_shared_file *hed_shared_join(const struct hed_profile_device *all, size_t count,
                                        struct hed_shared_part *part);

/* Removes the file if no living process has a slot in it. The mapping can still be used. */
void hed_shared_remove(const struct hed_shared_file *f, const struct hed_shared_part *part);

/* Is the process of a slot alive? */
bool hed_shared_alive(uint64_t owner);
