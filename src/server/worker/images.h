/* Images that clients have sent, by what is in them (base/hash.h): sent once, used by all.
 *
 * With a folder they are files in it, named by their hash, shared by all workers of the server;
 * without one they are this worker's own, in memory. A worker hashes what it is sent itself, from a
 * copy that the client cannot change any more, and an image gets its name only if that fits: so no
 * client can put something else in the place of another's code.
 *
 * Any thread may call these; pieces of one image come from one channel.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

struct hed_images;

/* folder: "" for none. One that somebody else may write to is not used. NULL: no memory. */
struct hed_images *hed_images_create(const char *folder);
void hed_images_free(struct hed_images *i); /* NULL is fine; files stay */

bool hed_images_has(struct hed_images *i, const uint8_t hash[HED_HASH_SIZE], uint64_t size);

/* A piece of an image, from whoever `channel` is, in order from offset 0. *complete: it was the
 * last, and the image is there. HED_EFORMAT: pieces that make no sense, or the hash is another
 * one's. HED_EIO, HED_ENOMEM, HED_ELIMIT: it cannot be kept; what follows of it is answered
 * likewise. */
int hed_images_add(struct hed_images *i, const void *channel, const uint8_t hash[HED_HASH_SIZE],
                   uint64_t size, uint64_t offset, const void *p, size_t n, bool *complete);

/* The image in memory, with at least one 0 behind it. HED_ENOTFOUND, HED_ENOMEM. */
int hed_images_map(struct hed_images *i, const uint8_t hash[HED_HASH_SIZE], uint64_t size,
                   void **out);
void hed_images_unmap(void *p, uint64_t size);
