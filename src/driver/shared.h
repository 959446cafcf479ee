/* What the processes of one user share about the devices of a soft driver, for NVML: who uses how
 * much memory, and how busy a device has been. Nothing else is shared; what a program may allocate
 * does not depend on it.
 *
 *   process A --hed_shared_memory, hed_shared_busy--> /dev/shm/heddle-UID-devices
 *   process B <--hed_shared_used, hed_shared_processes, hed_shared_load--'
 *
 * A device is known by its UUID, so processes that were given different devices do not mix them up.
 * The file is joined when there is something to tell or to ask, never before. Where it cannot be
 * used a process knows of itself only.
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

/* Tells the driver which devices the machine has, those that CUDA_VISIBLE_DEVICES hides included:
 * NVML shows all of them. Before the first call; a driver that is not told has its visible devices.
 * HED_ENOMEM. */
int hed_shared_attach(struct hed_driver *d, const struct hed_profile_device *all, size_t count);

/* The process ends, or the driver does: what it used is free again. */
void hed_shared_leave(struct hed_driver *d);
void hed_shared_free(struct hed_driver *d);

/* So much of a visible device is in use by this process now; so long it has worked, ending now. Any
 * thread, under the driver's locks or not. */
void hed_shared_memory(struct hed_driver *d, int ordinal, uint64_t used);
void hed_shared_busy(struct hed_driver *d, int ordinal, uint64_t ns);
/* For tests: another clock than hed_now_ns. Before anything is measured. */
void hed_shared_clock(struct hed_driver *d, uint64_t (*now)(void));

/* ---- for NVML: `index` is among all devices -------------------------------------------------- */

/* All devices of the machine; 0 when there is no memory to know them. */
size_t hed_shared_devices(struct hed_driver *d, const struct hed_profile_device **out);

/* nvmlInit minus nvmlShutdown; NULL as above. */
_Atomic unsigned *hed_shared_inits(struct hed_driver *d);

/* Bytes that all processes use, never over the profile's memory. */
uint64_t hed_shared_used(struct hed_driver *d, size_t index);

/* Per cent of the last second or two that the device was at work. */
unsigned hed_shared_load(struct hed_driver *d, size_t index);

/* Nanoseconds of work since the file was made. */
uint64_t hed_shared_worked(struct hed_driver *d, size_t index);

/* The processes that have memory on it; returns how many there are, of which at most `room` are
 * put. */
size_t hed_shared_processes(struct hed_driver *d, size_t index, struct hed_shared_process *out,
                            size_t room);
