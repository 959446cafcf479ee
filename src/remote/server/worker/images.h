/* Images that clients have sent, found by their hash (base/hash.h): an image is sent once and
 * serves all clients.
 *
 * With a folder, images are files in it, named by their hash and shared by all workers of the
 * server. Without a folder, they are in this worker's memory. A worker computes the hash of what it
 * receives itself, from a copy that the client cannot change any more, and an image gets its name
 * only if the hash is right. So no client can replace the code of another.
 *
 * Any thread may call these functions. The pieces of one image come over one channel.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

struct hed_images;

/* `folder` is "" for none. A folder that other users may write to is not used. NULL if there is no
 * memory. */
struct hed_images *hed_images_create(const char *folder);
/* Before there are images. What does not fit into the folder stays in memory, as without one. */
struct hed_images_limits {
    uint64_t folder;  /* bytes in the folder; 0: as many as without limits */
    uint64_t reserve; /* bytes that stay free on its disk */
    /* Asks for memory, and gives it back; NULL: there is no limit. */
    bool (*take)(void *arg, uint64_t bytes);
    void (*give)(void *arg, uint64_t bytes);
    void *arg;
};
void hed_images_limit(struct hed_images *i, const struct hed_images_limits *l);
void hed_images_free(struct hed_images *i); /* NULL is allowed; files stay */

bool hed_images_has(struct hed_images *i, const uint8_t hash[HED_HASH_SIZE], uint64_t size);

/* Adds a piece of an image. The pieces of a channel come in order, from offset 0. *complete is set
 * when the last piece has come and the image is there. HED_EFORMAT if the pieces make no sense;
 * HED_EINVAL if the hash is wrong, as of memory that changes while it is sent. HED_EIO, HED_ENOMEM
 * or HED_ELIMIT if the image cannot be stored; later pieces of it then get the same answer. */
int hed_images_add(struct hed_images *i, const void *channel, const uint8_t hash[HED_HASH_SIZE],
                   uint64_t size, uint64_t offset, const void *p, size_t n, bool *complete);

/* Maps the image, with at least one 0 after it. HED_ENOTFOUND, HED_ENOMEM. */
int hed_images_map(struct hed_images *i, const uint8_t hash[HED_HASH_SIZE], uint64_t size,
                   void **out);
void hed_images_unmap(void *p, uint64_t size);
