/* System-wide atomics in code: read-modify-write operations that are to be atomic for the host and
 * for other devices as well (atomicAdd_system, cuda::atomic). PTX says so with .sys; in machine
 * code it is the scope of an instruction.
 */
#pragma once

#include <stdbool.h>

#include "kernel/fatbin/bytes.h"

bool hed_ptx_has_system_atomics(struct hed_bytes text);

/* For the instructions of sm_70 and newer. Not sure is false. */
bool hed_cubin_has_system_atomics(struct hed_bytes cubin);

/* Any image: fat binary, cubin, PTX. Entries of a fat binary are unpacked. */
bool hed_image_has_system_atomics(struct hed_bytes image);
