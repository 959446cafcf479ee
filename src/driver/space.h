/* Device addresses: one reserved range at a fixed base, handed out in the client.
 *
 * The same base on every backend lets a program's memory move between them without touching a
 * pointer; choosing addresses needs no answer from anybody. This is bookkeeping of addresses: what
 * memory is behind them, if any, is the backend's business.
 *
 * Invariants:
 * 1. Blocks tile the range: each byte of it is in exactly one block, free or taken; two neighbours
 * are
 *    never both free.
 * 2. used is the sum of the sizes of taken blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hed_why;
struct hed_space;

#define HED_SPACE_BASE 0x200000000000ull /* where the range starts, unless that is taken */
#define HED_SPACE_ALIGN 512              /* bytes; what cuMemAlloc guarantees is 256 */

/* Bookkeeping for [base, base + size). NULL when there is no memory. */
struct hed_space *hed_space_create(uint64_t base, uint64_t size);
void hed_space_free(struct hed_space *s);

/* The lowest place of the smallest free block that fits: 0, or HED_EINVAL (size 0, or an alignment
 * that is no power of two), HED_ELIMIT (no block is large enough), HED_ENOMEM. `align` is at least
 * HED_SPACE_ALIGN. */
int hed_space_take(struct hed_space *s, uint64_t size, uint64_t align, uint64_t *out);

/* Exactly the range [at, at + size), as cuMemAddressReserve's hint asks: HED_EEXIST if any of it is
 * taken. at and size are multiples of HED_SPACE_ALIGN. */
int hed_space_take_at(struct hed_space *s, uint64_t at, uint64_t size);

/* Gives a taken block back, by its first address: HED_ENOTFOUND if none begins there. */
int hed_space_give(struct hed_space *s, uint64_t at);

/* The taken block that an address is in; false if there is none. */
bool hed_space_find(struct hed_space *s, uint64_t address, uint64_t *at, uint64_t *size);

/* Bytes taken, rounding included. */
uint64_t hed_space_used(struct hed_space *s);
