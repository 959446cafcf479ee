/* The hash of a chunk: 128 bits, the same from this function and from the kernel that computes it
 * on a device. It finds changes and damage; it is no protection against somebody who makes two
 * contents with one hash on purpose.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hed_snap_hash {
    uint64_t w[2];
};

/* Any thread, any time. data may be NULL if size is 0. */
void hed_snap_hash(const void *data, size_t size, struct hed_snap_hash *out);

static inline bool
hed_snap_hash_same(const struct hed_snap_hash *a, const struct hed_snap_hash *b)
{
    return a->w[0] == b->w[0] && a->w[1] == b->w[1];
}
