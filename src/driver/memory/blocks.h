/* Memory in blocks: large pieces of mapped address space from which smaller allocations are cut.
 *
 *   device->space, driver->host_space          addresses
 *     struct hed_memory_block   2 MiB or more, mapped  memory
 *       pieces of 512 bytes and up              allocations
 *
 * A keeper (a pool) keeps empty blocks mapped as long as it has at most `keep` bytes. All other
 * blocks are unmapped as soon as they are empty, so that a kernel that uses freed memory fails.
 * Where mapping is expensive (machine->memory.keep), some of those stay as spare blocks: mapped,
 * but without an owner.
 *
 * The blocks of a pool that can be shared with other processes lie in one file. A plain block gets
 * a file of its own when a part of it is first shared (driver/ipc/).
 *
 * Invariants, when driver->memory_lock is free:
 * 1. Every block is mapped, and is in exactly one of the lists unless it is alone.
 * 2. reserved is the sum of the sizes of all blocks but the spare ones, including those that are
 *    alone; the payer's `used` contains it. spare_bytes is the sum of the spare ones, at most
 *    spare_most.
 * 3. A spare block is empty. It is used again as what it was: alone, or to be cut.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver/ipc/name.h"
#include "driver/parts.h"

/* Memory of this process that others may map: a file, or a key of the machine. */
struct hed_share {
    struct hed_physical_memory *memory; /* NULL: there is a key */
    int fd; /* open for others as long as the memory is shared; -1: there is a key */
    uint8_t secret[HED_IPC_SECRET]; /* of the file; or the key */
};

struct hed_memory_block {
    struct hed_blocks *owner;
    struct hed_memory_block *next, **link; /* in a list of the owner; link is NULL in none */
    struct hed_space *pieces;              /* NULL: one allocation has the whole block */
    uint64_t at, size;
    uint64_t used;           /* bytes of pieces in use */
    uint64_t room;           /* no free piece is larger than this; an upper bound */
    uint32_t pins;           /* threads that use it without having a piece: it is not dropped */
    struct hed_share *share; /* owned; NULL: not shared. Guarded by hed_memory.share_lock */
};

struct hed_blocks {
    struct hed_driver *driver;
    struct hed_space *space;
    struct hed_device *payer; /* the device it is charged to; NULL for host memory */
    bool keeps;               /* keeps empty blocks, up to `keep`; large ones are cut too */
    uint64_t keep;            /* bytes that may stay reserved */
    uint64_t limit;           /* bytes that may be reserved; 0: no limit */
    uint64_t reserved, reserved_high;
    struct hed_memory_block *open; /* blocks with room */
    struct hed_memory_block *full;
    struct hed_memory_block *spare;
    uint64_t spare_bytes, spare_most;
    uint64_t unit;                    /* sizes of blocks are multiples of this */
    struct hed_physical_memory *file; /* all blocks are in it, at their addresses less file_base;
                                       * NULL: memory of their own */
    uint64_t file_base;
};

void hed_blocks_init(struct hed_blocks *b, struct hed_driver *d, struct hed_space *space,
                     struct hed_device *payer, bool keeps);

/* Takes memory for an allocation: OUT_OF_MEMORY. The lock is not held. */
CUresult hed_blocks_take(struct hed_blocks *b, uint64_t size, uint64_t align, uint64_t *at,
                         uint64_t *taken, struct hed_memory_block **block);

/* Gives back a piece that has left the index. The lock is not held. */
void hed_blocks_give(struct hed_memory_block *block, uint64_t at, uint64_t taken);

/* Keeps a block, or lets it go again: the memory stays even if all of its pieces are given back
 * meanwhile. unpin takes the lock. */
void hed_blocks_pin_locked(struct hed_memory_block *block);
void hed_blocks_unpin(struct hed_memory_block *block);

/* Unmaps all spare blocks, and empty blocks until at most `keep` bytes are reserved. The lock is
 * not held. */
void hed_blocks_trim(struct hed_blocks *b, uint64_t keep);

/* The size of a keeper's blocks that can hold this many bytes. */
uint64_t hed_blocks_round(uint64_t size);

/* Forgets all blocks without unmapping them, because the process ends. */
void hed_blocks_fini(struct hed_blocks *b);

/* Charges bytes to a device: false if its profile has no more. Nothing is charged if dev is
 * NULL. */
bool hed_device_charge(struct hed_device *dev, uint64_t bytes);
void hed_device_discharge(struct hed_device *dev, uint64_t bytes);
