/* Memory in blocks: large pieces of mapped address space that smaller allocations are cut from.
 *
 *   device->space, driver->host_space          addresses
 *     struct hed_memory_block   2 MiB or more, mapped  memory
 *       pieces of 512 bytes and up              allocations
 *
 * Blocks of a keeper (a pool) stay mapped while no more than `keep` bytes are; all others go as
 * soon as they are empty, so that a kernel that uses freed memory fails. Where mapping is dear
 * (machine->memory.keep) some of those stay as spare ones: mapped, but nobody's.
 *
 * Invariants, when driver->memory_lock is free:
 * 1. Every block is mapped, and in exactly one of the lists unless it is alone.
 * 2. reserved is the sum of the sizes of all blocks but the spare ones, alone ones included; the
 *    payer's `used` has that much in it. spare_bytes is that of the spare ones, at most spare_most.
 * 3. A spare block has nothing in it. It comes back as what it was: alone, or to be cut.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver/driver.h"

struct hed_memory_block {
    struct hed_blocks *owner;
    struct hed_memory_block *next, **link; /* in a list of the owner; link is NULL in none */
    struct hed_space *pieces;              /* NULL: one allocation has it alone */
    uint64_t at, size;
    uint64_t used; /* bytes of pieces that are taken */
    uint64_t room; /* a piece of more bytes than this is not to be had: a bound, not the truth */
};

struct hed_blocks {
    struct hed_driver *driver;
    struct hed_space *space;
    struct hed_device *payer; /* whose memory it is; NULL: the host's */
    bool keeps;               /* empty blocks stay, up to `keep`; large ones are cut too */
    uint64_t keep;            /* bytes that may stay reserved */
    uint64_t limit;           /* bytes that may be reserved; 0: as many as there are */
    uint64_t reserved, reserved_high;
    struct hed_memory_block *open; /* have room */
    struct hed_memory_block *full;
    struct hed_memory_block *spare;
    uint64_t spare_bytes, spare_most;
    uint64_t unit; /* sizes of blocks are multiples */
};

void hed_blocks_init(struct hed_blocks *b, struct hed_driver *d, struct hed_space *space,
                     struct hed_device *payer, bool keeps);

/* Memory for an allocation: OUT_OF_MEMORY. The lock is not held. */
CUresult hed_blocks_take(struct hed_blocks *b, uint64_t size, uint64_t align, uint64_t *at,
                         uint64_t *taken, struct hed_memory_block **block);

/* Gives a piece back that is in no index any more. The lock is not held. */
void hed_blocks_give(struct hed_memory_block *block, uint64_t at, uint64_t taken);

/* Unmaps empty blocks until no more than `keep` bytes are reserved, and all spare ones. The lock is
 * not held. */
void hed_blocks_trim(struct hed_blocks *b, uint64_t keep);

/* The bytes that blocks of a keeper have when they are to hold so many. */
uint64_t hed_blocks_round(uint64_t size);

/* Forgets all blocks without unmapping: the process ends. */
void hed_blocks_fini(struct hed_blocks *b);

/* Counts bytes on a device: false if its profile has no more. NULL devices pay for nothing. */
bool hed_device_charge(struct hed_device *dev, uint64_t bytes);
void hed_device_discharge(struct hed_device *dev, uint64_t bytes);
