/* Device memory that the program has allocated and not freed, by kind and address or handle.
 *
 * Invariants:
 * 1. live and bytes are the number of blocks in the table and the sum of their sizes.
 * 2. Serials rise, and none is given out twice.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "core/layer.h"

struct watch_block {
    uint64_t bytes;
    CUcontext context; /* the memory ends with it; NULL: with none */
    uint32_t kind;     /* enum hed_cuda_kind; 0: the slot is free */
    uint32_t refs;     /* handles that the program must give back */
    struct hed_control_memory item;
};

struct watch_table {
    struct hed_lock lock; /* guards the rest */
    struct watch_block *slots;
    size_t size; /* a power of two, or 0 */
    uint64_t serial, live, bytes, peak;
};

/* Blocks that are out of the table for a while. */
struct watch_taken {
    struct watch_block *blocks;
    size_t count;
};

struct watch_totals {
    uint64_t serial, live, bytes, peak;
};

void watch_table_init(struct watch_table *t);
void watch_table_fini(struct watch_table *t);

/* Adds a block, and gives it a serial if it has none. One with its kind and address is replaced:
 * its end was not seen. Returns whether there was memory for it. */
bool watch_table_put(struct watch_table *t, const struct watch_block *b);

/* Adds a reference to a block that is there. */
bool watch_table_share(struct watch_table *t, uint32_t kind, uint64_t address);

/* Gives a reference back, and takes the block out with the last one. False: it is not there, or has
 * more references. */
bool watch_table_take(struct watch_table *t, uint32_t kind, uint64_t address,
                      struct watch_block *out);

/* Takes out all blocks that end with a context: to put them back, if it does not end, and to free
 * what was taken. If there is no memory for that, they are forgotten at once. */
void watch_table_take_context(struct watch_table *t, CUcontext context, struct watch_taken *out);
void watch_table_put_back(struct watch_table *t, const struct watch_taken *taken);
void watch_taken_free(struct watch_taken *taken);

/* Writes blocks with serials above `after` in the order of their serials: the first `room` of them.
 * Returns how many. */
size_t watch_table_list(struct watch_table *t, uint64_t after, struct hed_control_memory *out,
                        size_t room);

struct watch_totals watch_table_totals(struct watch_table *t);
