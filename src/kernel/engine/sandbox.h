/* The address sandbox: the addresses that confined kernels can reach (kernel/ptx/run/abi.h).
 *
 *   margin | nothing | devices and the host's share | local | shared | open | nothing | margin
 *
 * It is reserved as a whole when the backend starts, and stays so: what is unmapped in it becomes
 * inaccessible, but not free, so nothing of the process can come to lie there. Nothing is mapped at
 * its beginning, where a null pointer leads, nor in its upper third, where addresses of stacks and
 * libraries lead.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernel/engine/region.h"

struct hed_address_sandbox {
    uint64_t base;
    struct hed_regions local;  /* variables of warps */
    struct hed_regions shared; /* shared memory of blocks */
    struct hed_regions open;   /* parameters of launches, the heap of kernels */
};

/* `usual`, a multiple of HED_PTX_SANDBOX_SIZE, is where it begins if that address is free.
 * HED_ENOMEM: the process cannot have so many addresses in one piece. */
int hed_address_sandbox_create(uint64_t usual, struct hed_address_sandbox **out,
                               struct hed_why *why);
void hed_address_sandbox_free(struct hed_address_sandbox *p);

/* Addresses for devices; called once. HED_ENOMEM: there are not so many. */
int hed_address_sandbox_reserve(const struct hed_address_sandbox *p, uint64_t size, uint64_t *base);
