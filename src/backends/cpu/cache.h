/* Compiled kernels on disk, so that a program's second run needs no compiler.
 *
 *   FOLDER/<64 hexadecimal digits>.kernel      a header, then the object file
 *
 * The file's name is a hash of everything the object depends on. Files are written under a
 * temporary name and then renamed, so other processes only ever see complete files. A damaged file
 * is ignored and replaced. Reading a file updates its time; when the folder has grown over its
 * limit, the files with the oldest times are removed.
 *
 * No failure here reaches the program: it just runs without the cache.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

struct hed_buf;
struct hed_cache;

/* The hash (base/hash.h) of everything a compiled kernel depends on. */
struct hed_cache_key {
    uint8_t hash[HED_HASH_SIZE];
};

/* If `folder` is "", the user's own cache folder is taken ($XDG_CACHE_HOME/heddle/kernels). Returns
 * NULL, which means "no cache", if the limit is 0 or there is no folder or no memory. Touches no
 * file. */
struct hed_cache *hed_cache_create(const char *folder, uint64_t limit);
void hed_cache_free(struct hed_cache *c);
/* Also trusts what others of this process's group have stored, and lets them read and renew what it
 * stores: the workers of one client are different users of one group. c may be NULL. */
void hed_cache_trust_group(struct hed_cache *c);

/* Appends the object with that key to `out`, and tells how long it took to compile; false if there
 * is none. c may be NULL. */
bool hed_cache_get(struct hed_cache *c, const struct hed_cache_key *key, struct hed_buf *out,
                   uint32_t *compile_us);
void hed_cache_put(struct hed_cache *c, const struct hed_cache_key *key, const void *object,
                   size_t size, uint32_t compile_us);
