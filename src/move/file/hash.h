/* The hash of a chunk: 128 bits that say whether two pieces of memory are equal.
 *
 * The function is made to be computed at memory speed by a GPU and by vector instructions alike,
 * and both give the same bits. It finds changes. It is no protection against someone who looks for
 * collisions, and no name for content between parties that do not trust each other (base/hash.h).
 *
 *   The bytes are cut into stripes of 4 KiB; zeros fill up the last one. Lane i of 256 takes word i
 *   and word 256 + i of every stripe (64-bit words, little-endian) into its state, words a and b:
 *
 *       a ^= word i;  b ^= word 256 + i;  mix
 *       mix:  a += lo(b) * hi(b);  swap the halves of b;
 *             b += lo(a) * hi(a);  swap the halves of a;
 *             a += lo(b) * hi(b);  swap the halves of b;
 *
 *   At first a and b of lane i are scatter(2 i + 1) and scatter(2 i + 2). At the end the states are
 *   joined in pairs, i with i + 128, then i with i + 64, and so on: mix the first, add the second
 *   to it by xor, mix. To what is left the size is added (a ^= size), and it is mixed four times.
 *
 * Every step can be undone, so one changed pair of words always gives another state, and a later
 * change hides it only if it happens to equal a difference of 128 bits that looks random.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HED_SNAP_LANES 256
#define HED_SNAP_STRIPE (16 * HED_SNAP_LANES) /* bytes */

struct hed_snap_hash {
    uint64_t w[2];
};

/* Any address, any size; data may be NULL if size is 0. Any thread, any time. */
void hed_snap_hash(const void *data, size_t size, struct hed_snap_hash *out);

/* The hash of as many zeros. Fast: needs no memory. */
void hed_snap_hash_zeros(size_t size, struct hed_snap_hash *out);

static inline bool
hed_snap_hash_same(const struct hed_snap_hash *a, const struct hed_snap_hash *b)
{
    return a->w[0] == b->w[0] && a->w[1] == b->w[1];
}

/* The same function as a kernel: PTX text with the entry
 *
 *     hed_snap_hash(const struct hed_snap_piece *pieces, struct hed_snap_hash *out, uint32_t count)
 *
 * Blocks of HED_SNAP_HASH_THREADS threads and any number of blocks: block b hashes the pieces
 * number b, b + blocks, ... Addresses of pieces are multiples of 16. */
#define HED_SNAP_HASH_THREADS 128
extern const char hed_snap_hash_ptx[];

struct hed_snap_piece {
    uint64_t at;   /* address on the device */
    uint64_t size; /* bytes */
};
