/* Many entries of a cache in one file, to be shipped with an image or kept by a CI system.
 *
 *   archive = magic[8] version entry* end      version: 4 bytes, now 1
 *   entry   = size bytes                       size: 8 bytes, not 0; then a file of the cache
 *   end     = 0 hash[32]                       8 bytes; BLAKE2b of all bytes before the hash
 *
 *   version 1: the entries are files of the format HEDKRN4 (entry.c)
 *
 * Numbers are little-endian. An archive has no names of files: an entry's name follows from its
 * key. Reading one believes no length before the bytes are there. Its hash finds damage, not
 * tampering: the code in it will be executed, so an archive deserves the trust that a program does.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hed_cache;
struct hed_cache_entry;
struct hed_why;

/* Each entry of the cache: true if it is to be in the archive. */
typedef bool (*hed_archive_want_fn)(void *arg, const struct hed_cache_entry *e);
/* Writes an archive of the cache to a file; *count is the number of entries in it. Files that
 * cannot be read are left out. */
int hed_archive_write(const struct hed_cache *c, int fd, hed_archive_want_fn want, void *arg,
                      size_t *count, struct hed_why *why);

/* Each entry of an archive, and the bytes of its file. A result other than 0 ends the reading. */
typedef int (*hed_archive_entry_fn)(void *arg, const struct hed_cache_entry *e, const void *bytes,
                                    size_t size);
/* Reads an archive from its beginning to its end, and checks all of it. `fn` is called before the
 * hash at the end is known, so read it once without (NULL). HED_EFORMAT, HED_ETRUNC,
 * HED_EVERSION, HED_ELIMIT, HED_ENOMEM, HED_EIO, or fn's error. */
int hed_archive_read(int fd, hed_archive_entry_fn fn, void *arg, struct hed_why *why);

/* Puts an entry that came out of an archive into the cache. */
int hed_archive_keep(struct hed_cache *c, const struct hed_cache_entry *e, const void *bytes,
                     size_t size);
