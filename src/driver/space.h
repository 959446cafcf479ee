/* Device addresses: one reserved range at a fixed base, handed out in the client.
 *
 * The base is the same on every backend, so a program's memory can move between backends without
 * changing a pointer, and choosing an address needs no answer from a server. This is bookkeeping of
 * addresses only: the backend decides what memory is behind them, if any.
 *
 * Invariants:
 * 1. Blocks tile the range: each byte of it is in exactly one block, free or taken. Two neighbours
 *    are never both free.
 * 2. used is the sum of the sizes of taken blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hed_why;
struct hed_space;

#define HED_SPACE_BASE 0x200000000000ull /* where the range starts, unless that address is taken */
#define HED_SPACE_ALIGN 512              /* bytes; cuMemAlloc guarantees 256 */

/* Bookkeeping for [base, base + size). NULL if there is no memory. */
struct hed_space *hed_space_create(uint64_t base, uint64_t size);
void hed_space_free(struct hed_space *s);

/* Takes the lowest aligned piece of the smallest free block that fits. 0, or HED_EINVAL (size 0, or
 * an alignment that is not a power of two), HED_ELIMIT (no block is large enough), HED_ENOMEM. The
 * alignment is at least HED_SPACE_ALIGN. */
int hed_space_take(struct hed_space *s, uint64_t size, uint64_t align, uint64_t *out);

/* Takes exactly [at, at + size), as cuMemAddressReserve's hint asks: HED_EEXIST if any of it is
 * taken. Both are multiples of HED_SPACE_ALIGN. */
int hed_space_take_at(struct hed_space *s, uint64_t at, uint64_t size);

/* Gives a taken block back. `at` is its first address: HED_ENOTFOUND if no taken block begins
 * there. */
int hed_space_give(struct hed_space *s, uint64_t at);

/* The taken block that an address is in; false if there is none. */
bool hed_space_find(struct hed_space *s, uint64_t address, uint64_t *at, uint64_t *size);

/* Bytes taken, including rounding. */
uint64_t hed_space_used(struct hed_space *s);
