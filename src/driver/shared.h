/* What the processes of one user share about the devices of a soft driver, for NVML: how much
 * memory each process uses, and how busy a device has been. Nothing else is shared, and what a
 * program may allocate does not depend on it.
 *
 *   process A --hed_shared_memory, hed_shared_busy--> the file "devices" (base/meeting.h)
 *   process B <--hed_shared_used, hed_shared_processes, hed_shared_load--'
 *
 * Devices are identified by UUID, so processes that were given different devices do not mix them
 * up. A process joins the file when it has something to report or to ask, never before. If the file
 * cannot be used, a process knows about itself only.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "driver/profile.h"

struct hed_driver;

/* One of the processes that use a device. */
struct hed_shared_process {
    pid_t pid;
    uint64_t used; /* bytes; never 0 */
};

/* Tells the driver which devices the computer has, including those that CUDA_VISIBLE_DEVICES hides:
 * NVML shows all of them. Called before the first call of the program; otherwise the driver knows
 * its visible devices only. HED_ENOMEM. */
int hed_shared_attach(struct hed_driver *d, const struct hed_profile_device *all, size_t count);

/* The process or the driver ends: its memory no longer counts as used. The last process removes the
 * file, and with it the history of the devices. */
void hed_shared_leave(struct hed_driver *d);
void hed_shared_free(struct hed_driver *d);

/* Reports how much memory of a visible device this process uses now, and how long the device worked
 * until `end`, a time of the clock. Any thread may call them, with or without the driver's locks.
 */
void hed_shared_memory(struct hed_driver *d, int ordinal, uint64_t used);
void hed_shared_busy(struct hed_driver *d, int ordinal, uint64_t ns, uint64_t end);
/* For tests: replaces hed_now_ns() as the clock. Call it before anything is measured. */
void hed_shared_clock(struct hed_driver *d, uint64_t (*now)(void));

/* ---- for NVML: `index` is among all devices -------------------------------------------------- */

/* All devices of the computer; 0 if there is no memory for the list. */
size_t hed_shared_devices(struct hed_driver *d, const struct hed_profile_device **out);

/* nvmlInit minus nvmlShutdown; NULL if there is no memory. */
_Atomic unsigned *hed_shared_inits(struct hed_driver *d);

/* Bytes that all processes use together, at most the profile's memory. */
uint64_t hed_shared_used(struct hed_driver *d, size_t index);

/* The percentage of the last second or two during which the device worked. */
unsigned hed_shared_load(struct hed_driver *d, size_t index);

/* Nanoseconds of work since the file was created. */
uint64_t hed_shared_worked(struct hed_driver *d, size_t index);

/* Lists the processes that use memory of a device. Returns how many there are; at most `room` are
 * written. */
size_t hed_shared_processes(struct hed_driver *d, size_t index, struct hed_shared_process *out,
                            size_t room);
